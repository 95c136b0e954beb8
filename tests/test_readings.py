"""How far a reading is from the paper's numbers, worked by hand; and the kept table made anew."""

import json
import re
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import readings
from distances import INSIDES, METHODS, SCORES, SPREADS, apart, numbers

from primax.paper.tables.readings import NOTE

NUMBERS = {number.id: number for number in numbers()}


@pytest.mark.parametrize(
    ("ours", "paper", "std", "half", "expected"),
    [
        (3.71, 3.47, 0.10, 0.005, 2.4),
        (0.35, 1.00, 0.00, 0.005, -130),  # a std of 0.00 may be anything below 0.005
        (0.012, 0.006, None, 0, 1),
        (0.25, 1.0, None, 0, -2),
        (0.0, 0.04, None, 0.005, -3),
        (0.0, 0.0, None, 0.005, 0),
    ],
)
def test_a_distance(ours, paper, std, half, expected):
    assert apart(ours, paper, std, half) == pytest.approx(expected)


def test_every_number_is_there_once():
    assert len(NUMBERS) == len(list(numbers()))
    # 5 methods in 3 metrics, and 2 counts; 8 with a spread, 8 bare, 5 left open, a count; 15 + 8
    assert Counter(n.kind for n in numbers()) == {SCORES: 17, INSIDES: 22, SPREADS: 23}


def test_what_is_made_of_seeds():
    assert NUMBERS["mean.prime.maze.peak"].apart(np.array([0.8, 1.0])) == pytest.approx(1)
    assert NUMBERS["std.prime.maze.peak"].apart(np.array([0.0, 0.44 * 2**0.5])) == pytest.approx(2)
    assert NUMBERS["seeds.task"].apart(np.array([0.95, 0.94, 1.0])) == pytest.approx(-4)
    assert NUMBERS["q_taken.rolling"].apart(np.array([1.0, 40.12])) == pytest.approx(1)
    assert NUMBERS["y_abs.butterflies"].apart(np.array([3.0, 3.74])) == pytest.approx(-1)


def test_numbers_move_by_more_than_one():
    literal = {"a": 3.0, "b": -2.0, "c": 0.5, "d": 0.0}
    assert readings.moved({"a": 1.9, "b": 3.1, "c": -1.4, "d": -1.5}, literal) == (1, 2)
    assert readings.middle(literal) == 1.25 and readings.farthest(literal) == "+3.0 (`a`)"


def perfect(method: str, world: str) -> dict:
    """A run of two seeds that has the paper's means and standard deviations."""
    values = {}
    for number in numbers():
        if number.cell[:2] == (method, world) and number.id.startswith("mean."):
            off = (number.std or 0) / 2**0.5
            values[number.cell[2]] = [number.paper - off, number.paper + off]
    return {"method": method, "world": world, "settings": [], "values": values}


def test_a_reading_takes_each_method_s_own_run():
    kept = {f"{m}_{w}": perfect(m, w) for m in METHODS for w in ("butterflies", "maze")}
    for world in ("butterflies", "maze"):
        run = perfect("task", world)
        run["values"] = {name: [v + 0.32 for v in of] for name, of in run["values"].items()}
        kept[f"task_end_{world}"] = run
    kept["rnd_maze"]["values"] = {}
    here, there = readings.distances(kept, {}), readings.distances(kept, {"task": "task_end"})
    assert max(abs(v) for name, v in here.items() if not name.startswith("seeds")) < 1e-9
    assert there["mean.task.butterflies.peak"] == pytest.approx(1)
    assert there["mean.task.butterflies.average"] == pytest.approx(0.32 / 0.67)
    assert there["std.task.maze.peak"] == pytest.approx(0)
    assert "mean.rnd.maze.peak" not in here and "mean.rnd.butterflies.peak" in here
    assert readings.tried(kept, "task") == ["task", "task_end"]
    assert readings.nearest(kept)["task"] == "task"


def test_the_kept_table_is_made_anew_and_its_seeds_are_those_of_the_runs():
    content = json.loads((readings.KEPT / "seeds.json").read_text(encoding="utf-8"))
    text = (readings.KEPT / "readings.md").read_text(encoding="utf-8")
    assert readings.page(content) == text
    page = (readings.ROOT / "docs" / "levels.md").read_text(encoding="utf-8")
    assert readings.whole(content["runs"]).body() in page
    rows = {row[0]: row for row in readings.whole(content["runs"]).rows}
    trials = [run for run in content["runs"].values() if run["seeds"][0] == 100]
    tried = [len(readings.READINGS), len(trials)]
    medians = [float(rows[name][1]) for name in (readings.ON_PAPERS_SEEDS, readings.LITERAL)]
    assert [float(number) for number in re.findall(r"\d+(?:\.\d+)?", NOTE)] == tried + medians
    folder = readings.ROOT / "results" / "paper" / "runs" / "smirl_maze"
    assert readings.measured(folder) == content["runs"]["smirl_maze"]
