"""Which reading of the paper comes nearest to all its numbers at once.

    python benchmarks/readings.py                                 # the tables, from what is kept
    python benchmarks/readings.py --trials RUNS --commit 5a84524  # measures run folders, and keeps that too

A reading is a run of every method, each under its own settings. What is kept is a value a seed, in
`results/readings/seeds.json`; the tables beside it are made from that alone. `trials.toml` there has the
last trials, for `primax sweep`.
"""

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from distances import INSIDES, METHODS, SCORES, SPREADS, numbers

from primax.config.fields import flatten
from primax.errors import InputError
from primax.output.sheet import ABSENT, Sheet, plus_minus
from primax.paper.evidence import PAPERS_MEASURE
from primax.paper.experiments import FITS, WORLDS
from primax.paper.published import published
from primax.paper.tables.results import METRICS, mean_std
from primax.presets import configure
from primax.runs.measures import measure
from primax.runs.provenance import SAME_RUN
from primax.runs.read import Run, find_run, read_manifest

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "results" / "readings"
LITERAL = "literal"
Kept = dict[str, dict[str, Any]]
"""By a run's name: method, world, settings, seeds, and of every measure a value a seed."""
Distances = dict[str, float]
"""By a number's id, with its sign."""

END = {method: f"{method}_end" for method in METHODS} | {"prime": "prime_both"}
END_RELU = END | {"prime": "prime_both_relu", "task": "task_end_relu"}
END_STANDARD = END | {m: f"{m}_standard_end" for m in ("smirl", "disagreement", "rnd")}
SMALL_MAZE = {f"{method}_maze": f"{run}_27" for method, run in END_STANDARD.items()}
SMALL_MAZE["smirl_maze"] = "smirl_end_27"
READINGS: dict[str, dict[str, str]] = {
    LITERAL: {},
    "ReLU": {"prime": "prime_relu", "task": "task_relu"},
    "live": {"prime": "prime_live"},
    "live, ReLU": {"prime": "prime_live_relu", "task": "task_relu"},
    "statistics end": {"prime": "prime_rt"},
    "critics end": END | {"prime": "prime_ct"},
    "end": END,
    "end, live": END | {"prime": "prime_both_live"},
    "end, ReLU": END_RELU,
    "end, live, ReLU": END_RELU | {"prime": "prime_both_live_relu"},
    "end, RND standard": END | {"rnd": "rnd_standard_end"},
    "end, Disagreement standard": END | {"disagreement": "disagreement_standard_end"},
    "end, SMIRL standard": END | {"smirl": "smirl_standard_end"},
    "end, standard": END_STANDARD,
    "end, random snapshot": END | {"prime": "prime_both_random"},
    "end, one head an episode": END | {"prime": "prime_both_episode"},
    "end, shared trunk": END | {"prime": "prime_both_shared"},
    "end, prior 6": END | {"prime": "prime_both_prior6"},
    "end, standard, Maze of 27 cells": END_STANDARD | SMALL_MAZE,
}
"""The run that stands for a method, or for a method in a world, where it is not the literal one, which
has the method's name."""
CHOSEN = "each method at its nearest"
FITTED = {method: FITS[method] for method in METHODS}
ON_PAPERS_SEEDS = "end, standard, on seeds 0 to 14"
"""The one that was chosen, in the published runs."""


def measured(folder: Path) -> dict[str, Any]:
    """What is kept of a run: every measure that a number needs, or a table shows."""
    run = find_run(folder)
    if not isinstance(run, Run):
        raise InputError(f"{folder}: {run.reason or run.why}")
    known = {n.cell[2] for n in numbers() if n.cell[:2] == (run.method, run.world)}
    known |= {of for world, of in METRICS.values() if world == run.world}
    values = {name: measure(run, name) for name in sorted(known)}
    return {
        "method": run.method,
        "world": run.world,
        "settings": _settings(run),
        "seeds": list(run.seeds),
        "values": {
            name: [float(f"{value:.6g}") for value in found.values]
            for name, found in values.items()
            if found is not None
        },
    }


def _settings(run: Run) -> list[str]:
    """How they differ from those of the text taken literally."""
    plain = flatten(configure(run.method, run.world, "paper"))
    apart = {name: value for name, value in flatten(run.config).items() if value != plain[name]}
    return [f"{name}={str(value).lower()}" for name, value in apart.items()]


def distances(kept: Kept, reading: dict[str, str], of: str | None = None) -> Distances:
    """Of all numbers that the reading's runs have, or of one method's."""
    found = {}
    for number in numbers():
        method, world, which = number.cell
        run = reading.get(f"{method}_{world}", reading.get(method, method))
        values = kept[f"{run}_{world}"]["values"]
        if which in values and of in (None, method):
            found[number.id] = number.apart(np.array(values[which]))
    return found


def tried(kept: Kept, method: str) -> list[str]:
    """The readings of a method that were run in both worlds, the literal one first."""
    names = [name.rpartition("_")[0] for name in kept if kept[name]["method"] == method]
    both = {name for name in names if names.count(name) == len(WORLDS)} - {*FITTED.values()}
    return sorted(both, key=lambda x: (x != method, x))


def nearest(kept: Kept) -> dict[str, str]:
    """Of every method the reading whose own numbers are nearest, by their median."""
    own = {method: by_run(kept, method) for method in METHODS}
    return {
        method: min(runs, key=lambda run, of=runs: middle(of[run])) for method, runs in own.items()
    }


def by_run(kept: Kept, method: str) -> dict[str, Distances]:
    """Of every reading of a method, how far its own numbers are."""
    runs = tried(kept, method)
    return comparable({run: distances(kept, {method: run}, method) for run in runs})


def middle(found: Distances) -> float:
    """The median distance."""
    return float(np.median(np.abs([*found.values()])))


def farthest(found: Distances) -> str:
    """The largest distance, and whose it is."""
    name = max(found, key=lambda name: abs(found[name]))
    return f"{found[name]:+.1f} (`{name}`)"


def moved(found: Distances, literal: Distances) -> tuple[int, int]:
    """Numbers that are nearer, and farther, by more than one than under the literal reading."""
    change = [abs(found[name]) - abs(literal[name]) for name in literal]
    return sum(x < -1 for x in change), sum(x > 1 for x in change)


def comparable(every: dict[str, Distances]) -> dict[str, Distances]:
    """Only the numbers that all of them have, in the paper's order."""
    ids = [n.id for n in numbers() if all(n.id in found for found in every.values())]
    return {name: {key: found[key] for key in ids} for name, found in every.items()}


def whole(kept: Kept) -> Sheet:
    """Readings of all methods at once, nearest first."""
    best = nearest(kept)
    readings = READINGS | {CHOSEN: best, ON_PAPERS_SEEDS: FITTED}
    every = comparable({name: distances(kept, of) for name, of in readings.items()})
    kinds = {kind: [n.id for n in numbers() if n.kind == kind and n.id in every[LITERAL]]
             for kind in (SCORES, INSIDES, SPREADS)}  # fmt: skip
    rows = []
    for name, found in sorted(every.items(), key=lambda item: middle(item[1])):
        medians = [f"{middle({key: found[key] for key in ids}):.2f}" for ids in kinds.values()]
        near, far = moved(found, every[LITERAL])
        close = sum(abs(value) <= 1 for value in found.values())
        counts = (str(close), str(near), str(far))
        rows.append((name, f"{middle(found):.2f}", farthest(found), *counts, *medians))
    heads = [f"{kind} ({len(ids)})" for kind, ids in kinds.items()]
    median = f"median of {len(every[LITERAL])}"
    columns = ("reading", median, "farthest", "within 1", "nearer", "farther", *heads)
    each = {method: tried(kept, method) for method in METHODS}
    notes = (
        "Nearer, farther: numbers whose distance is smaller, or larger, by more than one than under the "
        "literal reading. The last three columns are medians.",
        f"The published runs (`{LITERAL}`, `ReLU`, `{ON_PAPERS_SEEDS}`) have 15 seeds, the trials 8. Where a "
        "reading does not change a method, the method's literal runs stand for it.",
        f"{len(READINGS)} readings of all methods were compared. By itself each method was tried under "
        + ", ".join(f"{len(runs)} ({method})" for method, runs in each.items())
        + f". `{CHOSEN}` is not one of these readings: it takes each method under the one that is best for it "
        + f"alone, out of {math.prod(map(len, each.values())):,} combinations: "
        + f"{', '.join(f'`{run}`' for run in best.values())}.",
        "Choosing among readings after looking is a fit.",
    )
    return Sheet("readings", "Readings of all methods", columns, tuple(rows), notes)


def by_method(kept: Kept) -> Sheet:
    """Every reading of a method beside the paper, by its own numbers, nearest first."""
    rows = []
    for method in METHODS:
        given = [published()["main"][w][PAPERS_MEASURE[m]][method] for w, m in METRICS.values()]
        texts = [plus_minus(cell["mean"], cell["std"]) for cell in given]
        rows.append((f"**{method}: the paper**", *texts, "", "", ""))
        for run, found in sorted(by_run(kept, method).items(), key=lambda item: middle(item[1])):
            values = [kept[f"{run}_{w}"]["values"][m] for w, m in METRICS.values()]
            texts = [mean_std(np.array(each)) for each in values]
            what = f"`{' '.join(kept[f'{run}_maze']['settings'])}`" if run != method else LITERAL
            rows.append((what, *texts, str(len(found)), f"{middle(found):.2f}", farthest(found)))
    columns = ("reading", *METRICS, "numbers", "median", "farthest")
    return Sheet("methods", "Readings of each method", columns, tuple(rows))


def by_number(kept: Kept) -> Sheet:
    """Every number: its distance under every reading."""
    found = {name: distances(kept, reading) for name, reading in READINGS.items()}
    rows = [
        (
            f"`{n.id}`",
            f"{n.paper:.3g}",
            "a factor of two" if n.std is None else f"{max(n.std, n.half):.2g}",
            *(f"{each[n.id]:+.1f}" if n.id in each else ABSENT for each in found.values()),
        )
        for n in numbers()
    ]
    columns = ("number", "paper", "counts as one", *READINGS)
    return Sheet(
        "numbers", "Every number, and how far each reading is from it", columns, tuple(rows)
    )


def page(content: dict[str, Any]) -> str:
    """All tables, and what they were made with."""
    sets = [", ".join(f"{k} {v}" for k, v in about.items()) for about in content["about"]]
    intro = (
        f"`python benchmarks/readings.py`, from `seeds.json`. The trials: {'. Then '.join(sets)}."
    )
    sheets = [sheet(content["runs"]).markdown() for sheet in (whole, by_method, by_number)]
    return "\n".join(["# Readings by their distance from the paper\n", f"{intro}\n", *sheets])


def collect(content: dict[str, Any], trials: Path, commit: str) -> dict[str, Any]:
    """What was kept and the trials, and with what these were made, which must be one thing."""
    folders = sorted(path.parent for path in trials.glob("*/config.json"))
    if not folders:
        raise InputError(f"{trials} holds no run's folder")
    made = [{name: read_manifest(folder).get(name) for name in SAME_RUN} for folder in folders]
    if any(each != made[0] for each in made):
        raise InputError(f"the runs in {trials} were made by different versions or devices")
    runs = content["runs"] | {folder.name: measured(folder) for folder in folders}
    return {"about": [*content["about"], {"commit": commit, **made[0]}], "runs": runs}


def write(content: dict[str, Any], path: Path) -> None:
    """A line a run."""
    runs = [f"{json.dumps(name)}: {json.dumps(run)}" for name, run in content["runs"].items()]
    about = json.dumps(content["about"])
    text = f'{{"about": {about},\n"runs": {{\n' + ",\n".join(runs) + "\n}}\n"
    path.write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=Path, help="folder of the trials' run folders")
    parser.add_argument("--commit", default="unknown", help="the trials' commit")
    args = parser.parse_args()
    content = json.loads((KEPT / "seeds.json").read_text(encoding="utf-8"))
    if args.trials:
        try:
            content = collect(content, args.trials, args.commit)
        except InputError as error:
            parser.error(str(error))
        write(content, KEPT / "seeds.json")
    text = page(content)
    (KEPT / "readings.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
