"""The page on learnt keys is what the kept runs say, and its plans are what was run."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import keys_page

from primax.paper.pages.embed import filled
from primax.runs.read import open_run
from primax.sweep.plan import read_plan

KEPT = keys_page.KEPT
MOST = 2_000_000
"""Bytes that may be kept."""
PLANS = ("trials", "final", "quick")


def test_the_tables_of_the_page_are_made_anew_to_the_same_bytes():
    made, page = keys_page.blocks(), keys_page.PAGE.read_text(encoding="utf-8")
    assert filled(page, made, "..") == page
    assert filled(page, made | {"final": made["final"].replace("4.41", "4.42")}, "..") != page


@pytest.mark.parametrize("name", PLANS)
def test_the_plans_are_the_runs_that_are_kept(name):
    cells = {cell.name: cell for cell in read_plan(KEPT / f"{name}.toml").cells}
    kept = {path.name for path in (KEPT / name).iterdir()}
    assert kept == set(cells)
    for one in kept:
        run = open_run(KEPT / name / one)
        assert (run.config, run.given_seeds) == (cells[one].config, cells[one].given_seeds), one
        assert run.is_finished, one


def test_one_configuration_serves_all_worlds():
    """But for the world and its steps, the runs with `place` differ in nothing."""
    runs = [open_run(KEPT / "final" / f"prime_{w}_place").config for w in keys_page.SHOWN]
    first, second, third = (
        {k: v for k, v in vars(c).items() if k not in ("world", "steps")} for c in runs
    )
    assert first == second == third and first["keys"].kind == "place"


def test_the_goals_that_were_set_are_reached():
    """At least 3.8 catches, a peak of 0.82, and in TwoWings 0.9 of the given key's share; above RND."""
    rows = {row[0]: row[1:] for row in keys_page.final().rows}
    mean = {head: [float(text.split()[0]) for text in row[:3]] for head, row in rows.items()}
    catches, peak, share = (mean[head] for head in keys_page.HEADS)
    assert catches[0] >= 3.8 and peak[0] >= 0.82 and share[0] >= 0.9 * share[1]
    for head in (keys_page.HEADS[0], keys_page.HEADS[2]):
        low = rows[head][4].partition("[")[2].partition(",")[0]
        assert float(low) > 0, head


def test_windows_are_means_over_seeds(monkeypatch):
    """And the least V_count is the least of any seed."""

    class Made:
        def __init__(self, folder): ...

        def grid(self, table, column):
            values = {"step": [[5, 6], [5, 6]], "v_count": [[0.25, 0.5], [0.75, 0.0]]}
            return np.array(values.get(column, [[1, 2], [3, 4]]), float)

    monkeypatch.setattr(keys_page, "open_run", Made)
    head, *rows = keys_page.windows([Path("a")]).splitlines()
    assert head == "run,step,states_met,keys_accuracy,v_count,v_epi,v_ale,penalty,v_count_least"
    assert rows == ["a,5,2,2,0.5,2,2,2,0.25", "a,6,3,3,0.25,3,3,3,0"]


def test_what_is_kept_is_small():
    sizes = [path.stat().st_size for path in KEPT.rglob("*") if path.is_file()]
    assert np.sum(sizes) <= MOST
