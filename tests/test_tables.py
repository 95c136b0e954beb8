"""Whether a run's table is whole is asked in one way."""

import bz2
from pathlib import Path

import numpy as np
import pytest

from primax.errors import InputError
from primax.runs.tables import by_seed, read_table

PATH = Path("run") / "windows.csv"


def table(rows: str) -> dict[str, np.ndarray]:
    """Seed and step of every row; a value that tells them all apart."""
    seed, step = np.array([row.split(",") for row in rows.split()], float).T
    return {"seed": seed, "step": step, "loss": 10_000 * seed + step}


def test_rows_come_by_seed_and_step():
    found = by_seed(table("7,30 2,30 7,20 2,20"), (7, 2), PATH, 10, 30, 10)
    assert found["loss"].tolist() == [20_020, 20_030, 70_020, 70_030]
    assert by_seed(table("0,30"), (0,), PATH, 10, 39, 20)["step"].tolist() == [30]
    often = table("0,5 0,10 0,15 0,20")  # oftener than told
    assert by_seed(often, (0,), PATH, 10, 20)["step"].tolist() == [5, 10, 15, 20]


@pytest.mark.parametrize(
    ("rows", "steps", "said"),
    [
        ("0,20 1,20 0,30", 30, "3 of 4 rows of a finished run, from step 20 to 30 of 30"),
        ("0,20 1,20 0,30 1,30", 40, "4 of 6 rows of a finished run, from step 20 to 30 of 40"),
        ("0,30 1,30 0,40 1,40", 40, "4 of 6 rows"),  # no seed has step 20, the first
        ("0,20 1,20 0,40 1,40 0,60 1,60", 60, "6 of 10 rows"),  # every second is gone
        ("0,20 1,20 0,30 1,30 0,50 1,50", 49, "6 of 6 rows"),  # the last beyond the end
        ("0,20 1,20 0,30 1,30 0,50 1,50", 50, "6 of 8 rows"),  # no seed has step 40
        ("0,20 1,20", 30, "2 of 4 rows"),  # one row a seed does not tell how far the next is
        ("0,20 1,20 0,30 1,20", 30, "4 of 4 rows"),  # one twice for another
        ("0,20 1,20 0,30 1,30 0,40 1,40", 30, "6 of 4 rows"),  # beyond the end
    ],
)
def test_what_a_finished_run_lacks_is_counted(rows, steps, said):
    with pytest.raises(InputError, match="is not whole") as error:
        by_seed(table(rows), (0, 1), PATH, 10, steps, 10)
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
        (
            lambda t: t.update(table("0,30 1,30 3,30")),
            "have different seeds: only one of them has seed 3",
        ),
        (
            lambda t: t.update(seed=np.array([0, 0.0])),
            "have different seeds: only one of them has seed 1",
        ),
    ],
)
def test_other_seeds_and_columns_that_are_gone_are_named(change, said, steps):
    found = table("0,30 1,30")
    change(found)
    with pytest.raises(InputError, match=said):
        by_seed(found, (0, 1), PATH, 10, steps)


def test_a_damaged_table_is_named_as_it_is_stored(tmp_path):
    packed = tmp_path / "episodes.csv.bz2"
    packed.write_bytes(bz2.compress(b"seed,step\n0,100\n")[:-9])
    with pytest.raises(InputError) as error:
        read_table(tmp_path / "episodes.csv")
    assert str(error.value).startswith(f"{packed} is not the table a run writes")
