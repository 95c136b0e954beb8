"""A bonus beside a task, and training before one: the tables and figures of docs/beyond.md.

    python benchmarks/beyond.py                  # from what is kept in results/beyond
    python benchmarks/beyond.py --trials RUNS    # measures the runs of trials.toml first, and keeps that

The runs: `primax sweep results/beyond/trials.toml`, the same of `beside.toml` and `before.toml`, then
`after.sh`. Kept are the scores of `beside` and `after` (`primax pack --keep scores`), and of the trials
three measures a seed.
"""

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from primax import stats
from primax.errors import InputError
from primax.output.sheet import ABSENT, Sheet, bracket
from primax.paper.pages.embed import Blocks, fill
from primax.paper.tables.results import mean_std
from primax.report.figure import draw
from primax.runs.measures import SCORES, measure
from primax.runs.naming import method_label
from primax.runs.read import Floats, Run, open_run

ROOT = Path(__file__).parents[1]
KEPT, PAPER = ROOT / "results" / "beyond", ROOT / "results" / "paper" / "runs"
PAGE, PICTURES = ROOT / "docs" / "beyond.md", ROOT / "docs" / "pictures"
HELD = 0.95
"""Of the last 20 episodes of a seed that holds the goal, the share that reach it at least."""
BONUSES = ("prime", "count", "rnd", "disagreement")
BEFORE = ("prime", "count", "rnd", "random")
WORLDS = ("butterflies", "maze")
CORRIDORS = ("long", "longest")
"""Layouts of Maze."""
WAYS = (("whole", "1"), ("whole", "0.05"), ("trunk", "1"))
"""What is taken of other networks, and where ε begins."""


@dataclass(frozen=True)
class Cell:
    """One run: a value a seed of every measure."""

    label: str
    weight: str
    values: dict[str, Floats]
    run: Run

    def text(self, name: str) -> str:
        return mean_std(self.values[name])

    @property
    def held(self) -> str:
        """Seeds whose last 20 episodes hold the goal."""
        return f"{(self.values['last'] >= HELD).sum()} of {len(self.run.seeds)}"

    def above(self, other: "Cell") -> str:
        """How much higher the average is, with its interval."""
        pair = self.values["average"], other.values["average"]
        low, high = stats.difference_interval(*pair)
        return f"{pair[0].mean() - pair[1].mean():+.2f} {bracket(low, high, sign='+')}"


def cell(folder: Path) -> Cell:
    """Reads a run."""
    run = open_run(folder)
    weight = f"{run.config.mix.weight:g}" if run.config.mix else ABSENT
    return Cell(method_label(run.method), weight, measures(run), run)


def measures(run: Run) -> dict[str, Floats]:
    """Average, peak and last."""
    found = {name: measure(run, name) for name in SCORES}
    return {name: sample.values for name, sample in found.items() if sample}


def corridors() -> tuple[Sheet, list[Run]]:
    """Where the task alone fails."""
    rows, runs = [], []
    for method in ("task", *(f"task-{bonus}" for bonus in BONUSES)):
        found = [cell(KEPT / "beside" / f"{method}_maze_{layout}") for layout in CORRIDORS]
        texts = [text for one in found for text in (one.held, *map(one.text, SCORES))]
        rows.append((found[0].label, found[0].weight, *texts))
        runs += [one.run for one in found]
    heads = [f"`{name}`: {what}" for name in CORRIDORS for what in ("held", *SCORES)]
    return Sheet("corridors", "", ("method", "weight", *heads), tuple(rows)), runs


def easy() -> tuple[Sheet, list[Run]]:
    """Where the task needs no bonus: the published runs of the task alone beside the mixes."""
    alone = {world: cell(PAPER / f"task_{world}") for world in WORLDS}
    rows = [("Ext-DQN", ABSENT, *_easy(alone, alone))]
    runs = [one.run for one in alone.values()]
    for bonus in BONUSES:
        found = {w: cell(KEPT / "beside" / f"task-{bonus}_{w}_easy") for w in WORLDS}
        first = found[WORLDS[0]]
        rows.append((first.label, first.weight, *_easy(found, alone)))
        runs += [one.run for one in found.values()]
    whats = ("average", "difference", "last")
    heads = [f"{world.capitalize()} {what}" for world in WORLDS for what in whats]
    return Sheet("easy", "", ("method", "weight", *heads), tuple(rows)), runs


def _easy(found: dict[str, Cell], alone: dict[str, Cell]) -> list[str]:
    texts = []
    for world, one in found.items():
        apart = ABSENT if one is alone[world] else one.above(alone[world])
        texts += [one.text("average"), apart, one.text("last")]
    return texts


def adapted() -> tuple[Sheet, list[Run]]:
    """The task's first steps, after training without it and from scratch."""
    rows, runs = [], []
    expert = {w: cell(PAPER / f"task_{w}").values["average"].mean() for w in WORLDS}
    for take, start in WAYS:
        none = {w: cell(KEPT / "after" / f"none_{w}_eps-{start}") for w in WORLDS}
        by_method = {"none": none} | {
            m: {w: cell(KEPT / "after" / f"{m}_{w}_{take}_eps-{start}") for w in WORLDS}
            for m in BEFORE
        }
        for before, found in by_method.items():
            if before == "none" and take == "trunk":
                continue  # there is nothing to take
            texts = []
            for w, one in found.items():
                share = one.values["average"].mean() / expert[w]
                apart = ABSENT if before == "none" else one.above(none[w])
                texts += [one.text("average"), apart, f"{share:.0%}"]
            what = ABSENT if before == "none" else take
            label = "nothing" if before == "none" else method_label(before)
            rows.append((label, what, start, *texts))
            if (take, start) == WAYS[0]:
                runs += [one.run for one in found.values()]
    heads = [f"{w.capitalize()} {what}" for w in WORLDS for what in ("average", "difference", "of Ext-DQN")]  # fmt: skip
    return Sheet("adapted", "", ("after", "taken", "ε begins at", *heads), tuple(rows)), runs


def trials(kept: dict[str, Any]) -> Sheet:
    """Which weight was chosen for each bonus, and from what."""
    rows = [
        (
            method_label(one["method"]),
            one["schedule"],
            one["values"],
            f"{one['weight']:g}",
            f"{sum(value >= HELD for value in one['last'])} of {len(one['last'])}",
            *(f"{np.mean(one[name]):.2f}" for name in SCORES),
        )
        for one in kept["runs"]
    ]
    columns = ("method", "schedule", "values", "weight", "held", *SCORES)
    return Sheet("trials", "", columns, tuple(rows))


def collect(home: Path) -> dict[str, Any]:
    """Three measures a seed of every trial, by method, schedule and weight."""
    runs, made = [], []
    for folder in sorted(path.parent for path in home.glob("*/config.json")):
        run = open_run(folder)
        mix = run.config.mix
        if mix is None or not run.is_finished:
            raise InputError(f"{folder} is no finished run of a mix")
        about = {"method": run.method, "schedule": mix.schedule, "values": mix.values, "weight": mix.weight}  # fmt: skip
        values = {name: [round(float(x), 6) for x in of] for name, of in measures(run).items()}
        runs.append(about | {"seeds": list(run.seeds)} | values)
        made.append({name: run.manifest.get(name) for name in ("commit", "code", "jax", "device")})
    if not runs or any(each != made[0] for each in made):
        raise InputError(f"the trials in {home} were not made by one version on one device")
    order = [f"task+{bonus}" for bonus in BONUSES]
    runs.sort(key=lambda r: (order.index(r["method"]), r["values"], r["schedule"], r["weight"]))
    return {"about": made[0], "runs": runs}


def blocks() -> tuple[Blocks, dict[str, list[Run]]]:
    """Every table of the page, and the runs of every figure."""
    kept = json.loads((KEPT / "trials.json").read_text(encoding="utf-8"))
    made = {"corridors": corridors(), "easy": easy(), "adapted": adapted()}
    sheets = {name: sheet.body() for name, (sheet, _) in made.items()}
    sheets["trials"] = trials(kept).body()
    return sheets, {name: runs for name, (_, runs) in made.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=Path, help="folder of the trials' run folders")
    args = parser.parse_args()
    try:
        if args.trials:
            text = json.dumps(collect(args.trials)).replace('{"method"', '\n{"method"')
            (KEPT / "trials.json").write_text(text + "\n", encoding="utf-8")
        tables, figures = blocks()
    except InputError as error:
        parser.error(str(error))
    fill(PAGE, tables, ROOT)
    for name, runs in figures.items():
        draw(runs, PICTURES / f"beyond_{name}.svg")
    print("\n".join(tables.values()))


if __name__ == "__main__":
    main()
