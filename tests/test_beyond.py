"""The page on bonuses beside a task is what its kept scores say, and its plans are what was run."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import beyond

from primax.paper.pages.embed import filled
from primax.runs.read import open_run
from primax.sweep.plan import read_plan

KEPT = beyond.KEPT
MOST = 2_000_000
"""Bytes that may be kept."""


@pytest.fixture(scope="module")
def made():
    return beyond.blocks()


def test_the_tables_of_the_page_are_made_anew_to_the_same_bytes(made):
    page = beyond.PAGE.read_text(encoding="utf-8")
    assert filled(page, made[0], "..") == page
    changed = made[0] | {"easy": made[0]["easy"].replace("5.29", "5.30")}
    assert filled(page, changed, "..") != page


@pytest.mark.slow
def test_its_figures_too(made, tmp_path):
    for name, runs in made[1].items():
        path = tmp_path / f"beyond_{name}.svg"
        beyond.draw(runs, path)
        assert path.read_bytes() == (beyond.PICTURES / path.name).read_bytes(), name


def test_the_plans_are_the_runs_that_are_kept():
    cells = read_plan(KEPT / "beside.toml").cells
    assert {cell.name for cell in cells} == {path.name for path in (KEPT / "beside").iterdir()}
    for cell in cells:
        run = open_run(KEPT / "beside" / cell.name)
        assert (run.config, run.given_seeds) == (cell.config, cell.given_seeds), cell.name
    planned = [
        (cell.method, mix.schedule, mix.values, mix.weight, [*cell.given_seeds])
        for cell in read_plan(KEPT / "trials.toml").cells
        for mix in [cell.config.mix]
    ]
    names = ("method", "schedule", "values", "weight", "seeds")
    tried = json.loads((KEPT / "trials.json").read_text(encoding="utf-8"))["runs"]
    assert sorted(planned) == sorted(tuple(one[name] for name in names) for one in tried)
    assert len(read_plan(KEPT / "before.toml").cells) == 8


def test_the_weights_are_those_with_the_best_end_among_the_trials():
    """By the last 20 episodes, then by the average; of one value with a weight that goes to zero."""
    kept = json.loads((KEPT / "trials.json").read_text(encoding="utf-8"))["runs"]
    for bonus in beyond.BONUSES:
        known = [one for one in kept if one["method"] == f"task+{bonus}"]
        best = max(known, key=lambda one: (np.mean(one["last"]), np.mean(one["average"])))
        config = open_run(KEPT / "beside" / f"task-{bonus}_maze_long").config
        assert (best["schedule"], best["values"]) == ("linear", "one")
        assert config.mix.weight == best["weight"] and config.mix.schedule == "linear", bonus
        assert best["seeds"] == [*range(100, 108)] and len(known) >= 4


def test_after_another_runs_networks():
    for path in (KEPT / "after").iterdir():
        before, world, *how = path.name.split("_")
        run = open_run(path)
        assert (run.method, run.world, run.steps) == ("task", world, 25_000)
        assert run.config.explore.start == float(how[-1].removeprefix("eps-"))
        start = run.config.start
        if before == "none":
            assert start is None
            continue
        steps = {"butterflies": 250_000, "maze": 200_000}[world]
        assert (start.method, start.take, start.steps) == (before, how[0], steps)


def test_little_is_kept():
    assert sum(path.stat().st_size for path in KEPT.rglob("*") if path.is_file()) < MOST
