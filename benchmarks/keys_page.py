"""PRIME where the world gives no key: the tables of docs/keys.md, from what is kept in results/keys.

    python benchmarks/keys_page.py
    python benchmarks/keys_page.py windows final/prime_*_place   # final_windows.csv, of runs not packed

The runs: `primax sweep results/keys/trials.toml`, the same of `final.toml` and `quick.toml`, and
`primax pack --keep episodes` (of the trials `--keep scores`). How true the counts are, and
what keys cost, `benchmarks/keys.py` measures; how far keys move, `keys_drift.py`; noise in images,
`keys_image.py`.
"""

import bz2
import csv
import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import keys
import keys_drift
import keys_image
import numpy as np

from primax import stats
from primax.output.sheet import ABSENT, Sheet, bracket
from primax.paper.pages.embed import Blocks, fill
from primax.paper.tables.results import mean_std
from primax.runs.measures import measure
from primax.runs.read import Floats, open_run

ROOT = Path(__file__).parents[1]
KEPT, PAPER = ROOT / "results" / "keys", ROOT / "results" / "paper" / "runs"
PAGE, SUITE = ROOT / "docs" / "keys.md", ROOT / "results" / "suite" / "scores.csv.bz2"
KINDS = ("given", "place", "place_alone", "codes", "encoded", "simhash", "cfn")
SHOWN = {"butterflies": "average", "maze": "peak", "two_wings": "score_tail"}
"""The measure of each world that a key is judged by."""
HEADS = ("Butterflies catch/ep", "Maze peak", "TwoWings silent share, last fifth")
DEEP = KEPT / "final" / "task-prime_gymnax-DeepSea-bsuite_deepsea20_place"
WINDOWS = ("states_met", "keys_accuracy", "v_count", "v_epi", "v_ale", "penalty")
"""Columns of windows.csv that say whether learnt keys and their counts are in order."""
FOUND = 0.5
"""An episode of DeepSea that scores more has reached the goal, which pays about 1."""


def values(folder: Path, name: str) -> Floats:
    """A measure of a run, a value a seed."""
    sample = measure(open_run(folder), name)
    assert sample is not None, f"{folder} lacks {name}"
    return sample.values


def apart(a: Floats, b: Floats) -> str:
    """How much higher the mean of a is, with its interval."""
    return f"{a.mean() - b.mean():+.2f} {bracket(*stats.difference_interval(a, b), sign='+')}"


def trials() -> Sheet:
    """Every kind of key on the seeds that nothing else uses."""
    rows = []
    for kind in KINDS:
        folders = {world: KEPT / "trials" / f"prime_{world}_{kind}" for world in SHOWN}
        texts = [
            mean_std(values(folders[world], name)) if folders[world].exists() else ABSENT
            for world, name in SHOWN.items()
        ]
        rows.append((f"`{kind}`", *texts))
    return Sheet("trials", "", ("key", *HEADS), tuple(rows))


def final() -> Sheet:
    """The chosen one at the paper's size, beside the given key and RND."""
    rows = []
    for (world, name), head in zip(SHOWN.items(), HEADS, strict=True):
        folders = [KEPT / "final" / f"prime_{world}_place"]
        for who in ("prime", "rnd"):
            mine = KEPT / "final" / f"{who}_{world}_given"
            folders.append(mine if mine.exists() else PAPER / f"{who}_{world}")
        place, given, rnd = (values(folder, name) for folder in folders)
        texts = map(mean_std, (place, given, rnd))
        rows.append((head, *texts, apart(place, given), apart(place, rnd)))
    columns = ("measure", "`place`", "given key", "RND", "`place` less given", "`place` less RND")
    return Sheet("final", "", columns, tuple(rows))


def quick() -> Sheet:
    """TwoWings at `quick` size."""
    name = SHOWN["two_wings"]
    folders = [KEPT / "quick" / f"{who}_two_wings" for who in ("prime", "rnd")]
    mine, (given, rnd) = KEPT / "quick" / "prime_two_wings_place", folders
    found = [values(folder, name) for folder in (mine, given, rnd)]
    ratio = f"{found[0].mean() / found[1].mean():.2f}"
    row = (*map(mean_std, found), apart(found[0], found[1]), apart(found[0], found[2]), ratio)
    columns = (
        "`place`",
        "given key",
        "RND",
        "`place` less given",
        "`place` less RND",
        "`place` / given",
    )
    return Sheet("quick", "", columns, (row,))


def deepsea() -> Sheet:
    """Seeds of DeepSea 20 that found the goal, and the score over the last fifth."""
    with bz2.open(SUITE, "rt", encoding="utf-8") as file:
        kept = [
            row for row in csv.DictReader(io.StringIO(file.read())) if row["place"] == "deepsea20"
        ]
    rows = []
    for label, method in (
        ("no bonus", "task"),
        ("PRIME, `simhash`", "task+prime"),
        ("counts, `simhash`", "task+count"),
    ):
        own = [row for row in kept if row["method"] == method]
        found = sum(np.isfinite(float(row["found"])) for row in own)
        tail = np.array([float(row["score_tail"]) for row in own])
        rows.append((label, f"{found} of {len(own)}", mean_std(tail)))
    scores = open_run(DEEP).grid("episodes", "score")
    assert scores is not None
    found = (np.nanmax(scores, axis=1) > FOUND).sum()
    tail = mean_std(values(DEEP, "score_tail"))
    rows.append(("PRIME, `place`", f"{found} of {len(scores)}", tail))
    return Sheet(
        "deepsea", "", ("beside the task", "seeds that found it", "last fifth"), tuple(rows)
    )


def windows(folders: Sequence[Path]) -> str:
    """Of every window of runs with learnt keys, means over seeds; and the least V_count."""
    lines = [",".join(("run", "step", *WINDOWS, "v_count_least"))]
    for folder in folders:
        run = open_run(folder)
        columns = [run.grid("windows", name) for name in ("step", *WINDOWS)]
        assert all(column is not None for column in columns), f"{folder} has no whole windows.csv"
        step, *means = (column.mean(axis=0) for column in columns)
        least = columns[1 + WINDOWS.index("v_count")].min(axis=0)
        for row in zip(step, *means, least, strict=True):
            lines.append(f"{folder.name},{row[0]:.0f}," + ",".join(f"{x:.5g}" for x in row[1:]))
    return "\n".join(lines) + "\n"


def blocks() -> Blocks:
    """Every table of the page."""
    sheets = [trials(), final(), quick(), deepsea()]
    tables = {sheet.name: sheet.body() for sheet in sheets}
    for name in ("counts", "counts_paper"):
        files = keys.opened(sorted((KEPT / name).glob("*.json")))
        tables[name] = keys.table(files).body()
        tables[name.replace("counts", "bonus")] = keys.bonuses(files).body()
    tables["drift"] = keys_drift.table(sorted((KEPT / "drift").glob("*.json"))).body()
    tables["image"] = keys_image.table(json.loads((KEPT / "image.json").read_text("utf-8"))).body()
    cost = json.loads((KEPT / "cost.json").read_text(encoding="utf-8"))
    return tables | {"cost": keys.costs(cost)}


if __name__ == "__main__":
    if sys.argv[1:2] == ["windows"]:
        text = windows([Path(folder) for folder in sys.argv[2:]])
        (KEPT / "final_windows.csv").write_text(text, encoding="utf-8")
        sys.exit()
    tables = blocks()
    fill(PAGE, tables, ROOT)
    print("\n".join(tables.values()))
