"""The page on which reward to use is what its kept scores say, and its plan is what was run."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import suite

from primax.errors import InputError
from primax.paper.pages.embed import filled
from primax.runs.read import Run
from primax.sweep.plan import read_plan

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def cells():
    return suite.read()


def sheets(cells):
    made = (suite.found(cells), suite.tails(cells), suite.differences(cells))
    return {sheet.name: sheet.body() for sheet in made}


def test_the_tables_of_the_page_are_made_anew_to_the_same_bytes(cells):
    page, made = suite.PAGE.read_text(encoding="utf-8"), sheets(cells)
    assert filled(page, made, "..") == page
    assert filled(page, made | {"tails": made["tails"].replace("0.77", "0.78")}, "..") != page


@pytest.mark.slow
def test_its_figure_too(cells, tmp_path, monkeypatch):
    monkeypatch.setattr(suite, "PICTURE", tmp_path / "suite.svg")
    suite.draw(cells)
    kept = DOCS / "pictures" / "suite.svg"
    assert (tmp_path / "suite.svg").read_bytes() == kept.read_bytes()


def test_the_plan_is_what_the_script_makes_and_all_of_it_was_run(cells):
    assert (suite.KEPT / "plan.toml").read_text(encoding="utf-8") == suite.plan()
    planned = read_plan(suite.KEPT / "plan.toml").cells
    assert {cell.name for cell in planned} == {
        suite._folder(place, method) for place in suite.PLACES for method in suite.METHODS
    }
    assert set(cells) == {(place.name, m) for place in suite.PLACES for m in suite.METHODS}
    assert all(len(cell.found) == suite.SEEDS for cell in cells.values())
    parts = json.loads(suite.ABOUT.read_text(encoding="utf-8"))
    assert sorted(name for part in parts for name in part["seconds"]) == sorted(
        map(" ".join, cells)
    )
    assert all(part["about"]["code"] for part in parts)
    assert sum(path.stat().st_size for path in suite.KEPT.iterdir()) < 2_000_000


def test_runs_of_a_few_cells_are_added_and_the_others_stay(tmp_path, monkeypatch):
    before, table = json.loads(suite.ABOUT.read_text(encoding="utf-8")), suite._table()
    for name in ("TABLE", "ABOUT"):
        kept = tmp_path / getattr(suite, name).name
        kept.write_bytes(getattr(suite, name).read_bytes())
        monkeypatch.setattr(suite, name, kept)
    own = [[*row[:3], "7", *row[4:]] for row in table if row[:2] == ["asterix", "task"]]
    part = {"about": {"code": "new"}, "seconds": {"asterix task": [1.0, 2.0]}}
    monkeypatch.setattr(suite, "collect", lambda home: (own, part))
    suite.keep(tmp_path)
    assert [row for row in suite._table() if row not in own] == [
        row for row in table if row[:2] != ["asterix", "task"]
    ]
    assert [row[:3] for row in suite._table()] == [row[:3] for row in table]
    assert (suite.read()["asterix", "task"].found == 7).all()
    *old, new = json.loads(suite.ABOUT.read_text(encoding="utf-8"))
    assert new == part and len(old) == len(before)
    assert all("asterix task" not in one["seconds"] for one in old)


def test_the_seconds_of_a_resumed_run_are_those_of_all_its_parts():
    assert suite._total([1.5]) == 1.5 and suite._total([1.25, 2.5]) == 3.75
    assert suite._total([1.25, None]) is None


def test_a_folder_without_a_run_of_the_plan_is_refused(tmp_path):
    with pytest.raises(InputError, match="no run of the plan"):
        suite.keep(tmp_path)


def test_what_is_kept_of_a_run_by_hand(monkeypatch):
    """Two seeds over 100 steps: the first finds the goal at step 20, the second at once."""
    run = Run(Path("run"), {"seeds": [0, 1]}, {"finished": "", "steps": 100})
    grids = {
        "score": np.array([[0.0, 0.2, 0.6], [0.1, 0.5, np.nan]]),
        "step": np.array([[2.0, 20, 90], [1, 99, np.nan]]),
    }
    monkeypatch.setattr(Run, "grid", lambda self, table, column: grids[column])
    monkeypatch.setattr(Run, "can_end", True)
    cell = suite.kept_of(run)
    assert cell.found.tolist() == [20, 1]
    assert cell.curve.shape == (2, 50)
    assert cell.curve[0, [0, 9, 44]].tolist() == [0.0, 0.2, 0.6]
    assert cell.curve[1, [0, 49]].tolist() == [0.1, 0.5]
    assert np.isnan(cell.curve).sum() == 100 - 5
    np.testing.assert_allclose(cell.values["average"], [0.8 / 3, 0.3])
    assert np.isfinite(cell.values["last"]).all()


@pytest.mark.slow
def test_the_examples_of_other_worlds_run(capsys):
    text = (DOCS / "other_worlds.md").read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(examples) == 2
    for example in examples:
        exec(example, {})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "5.0 steps an episode" and 0 <= float(lines[1]) <= 1
