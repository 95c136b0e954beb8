"""Whether a run's table is whole is asked in one way."""

from pathlib import Path

import numpy as np
import pytest

from primax.errors import InputError
from primax.tables import by_seed

PATH = Path("run") / "windows.csv"


def table(rows: str) -> dict[str, np.ndarray]:
    """Seed and step of every row; a value that tells them all apart."""
    seed, step = np.array([row.split(",") for row in rows.split()], float).T
    return {"seed": seed, "step": step, "loss": 10_000 * seed + step}


def test_rows_come_by_seed_and_step():
    found = by_seed(table("7,30 2,30 7,20 2,20"), (7, 2), PATH, 10, 30)
    assert found["loss"].tolist() == [20_020, 20_030, 70_020, 70_030]
    assert by_seed(table("0,30"), (0,), PATH, 10, 39)["step"].tolist() == [30]


@pytest.mark.parametrize(
    ("rows", "steps", "said"),
    [
        ("0,20 1,20 0,30", 30, "3 of 4 rows of a finished run, to step 30 of 30"),
        ("0,20 1,20 0,30 1,30", 40, "4 of 6 rows of a finished run, to step 30 of 40"),
        ("0,20 1,20 0,30 1,30 0,50 1,50", 50, "6 of 8 rows"),  # no seed has step 40
        ("0,20 1,20", 30, "2 of 4 rows"),  # one row a seed does not tell how far the next is
        ("0,20 1,20 0,30 1,20", 30, "4 of 4 rows"),  # one twice for another
        ("0,20 1,20 0,30 1,30 0,40 1,40", 30, "6 of 4 rows"),  # beyond the end
    ],
)
def test_what_a_finished_run_lacks_is_counted(rows, steps, said):
    with pytest.raises(InputError, match="is not whole") as error:
        by_seed(table(rows), (0, 1), PATH, 10, steps)
    assert said in str(error.value) and str(PATH) in str(error.value)


def test_of_a_run_that_goes_on_rows_not_every_seed_has_are_left_out():
    found = by_seed(table("0,20 1,20 0,30"), (0, 1), PATH, 10)
    assert found["loss"].tolist() == [20, 10_020]


@pytest.mark.parametrize("steps", [None, 30])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.pop("seed"), "no column seed"),
        (lambda t: t.update(step=np.array([np.nan, 30])), "a row has no step"),
        (lambda t: t.update(table("0,30 1,30 3,30")), "not tell of the same seeds: 3"),
        (lambda t: t.update(seed=np.array([0, 0.0])), "not tell of the same seeds: 1"),
    ],
)
def test_other_seeds_and_columns_that_are_gone_are_named(change, said, steps):
    found = table("0,30 1,30")
    change(found)
    with pytest.raises(InputError, match=said):
        by_seed(found, (0, 1), PATH, 10, steps)
