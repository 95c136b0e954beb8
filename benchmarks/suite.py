"""Which reward should I use? Bonuses beside the task in other people's worlds: docs/suite.md.

    python benchmarks/suite.py plan           # writes results/suite/plan.toml
    primax sweep results/suite/plan.toml --out RUNS --jobs 12
    python benchmarks/suite.py collect RUNS   # keeps measures and curves of every seed
    python benchmarks/suite.py                # the tables and the figure, from what is kept

The weights are those that trials in Maze's corridors chose (docs/beyond.md); ICM was not among them
and has RND's. Nothing was chosen in these worlds.
"""

import argparse
import bz2
import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from primax import stats
from primax.errors import InputError
from primax.output.figure import make
from primax.output.sheet import Sheet, bracket, plus_minus
from primax.paper.figures.drawing import STYLE, legend_below
from primax.paper.pages.embed import fill
from primax.report.naming import OTHERS
from primax.runs.measures import measure
from primax.runs.naming import method_label
from primax.runs.read import Floats, Run, open_run

ROOT = Path(__file__).parents[1]
KEPT, PAGE = ROOT / "results" / "suite", ROOT / "docs" / "suite.md"
PICTURE = ROOT / "docs" / "pictures" / "suite.svg"
BINS = 50
"""Equal parts of a run's steps, of each of which the mean score is kept."""
FOUND = 0.0
"""An episode with a higher score has found the goal, in a sea without chance or behind a door."""
WEIGHTS = {"prime": 0.01, "count": 0.1, "rnd": 0.1, "icm": 0.1, "disagreement": 10}
"""What a bonus counts beside the task in the beginning; it goes to zero in a linear way."""
SEEDS = 10


@dataclass(frozen=True)
class Place:
    """A world of the benchmark."""

    name: str
    """Of the cells in it."""
    world: str
    steps: int
    best: float | None = None
    """What the best policy scores on average at the last ε, about; none where that is not known."""
    options: dict[str, Any] = field(default_factory=dict)
    has_luck: bool = False
    """Whether an episode can pay without what makes the world hard."""


def _deep_sea(size: int, steps: int, **options: Any) -> Place:
    """Every step must go right: at ε = 0.05 one in forty does not, and in a random sea one in N more."""
    name = f"deepsea{size}" + "-stochastic" * bool(options)
    best = 0.975**size * ((1 - 1 / size) ** (size - 1) if options else 1.0) - 0.01
    return Place(
        name, "gymnax:DeepSea-bsuite", steps, best, {"size": size, **options}, bool(options)
    )


def _rooms(name: str, id_: str, steps: int, has_luck: bool = False) -> Place:
    return Place(name, f"xminigrid:MiniGrid-{id_}", steps, 0.9, has_luck=has_luck)


PLACES = (
    _deep_sea(10, 50_000),
    _deep_sea(20, 100_000),
    _deep_sea(30, 150_000),
    _deep_sea(40, 200_000),
    _deep_sea(20, 100_000, deterministic=False),
    _rooms("doorkey5", "DoorKey-5x5", 50_000),
    _rooms("doorkey6", "DoorKey-6x6", 100_000),
    _rooms("doorkey8", "DoorKey-8x8", 200_000),
    _rooms("doorkey16", "DoorKey-16x16", 200_000),
    _rooms("unlockpickup", "UnlockPickUp", 200_000),
    # In one episode of thirty what blocks the door is what is to be picked up.
    _rooms("blockedunlockpickup", "BlockedUnlockPickUp", 200_000, has_luck=True),
    Place("asterix", "pgx:minatar-asterix", 100_000),
    Place("breakout", "pgx:minatar-breakout", 100_000),
    Place("spaceinvaders", "pgx:minatar-space_invaders", 100_000),
)


def plan() -> str:
    """The runs as `primax sweep` takes them."""
    lines = [
        "# Made by benchmarks/suite.py: every bonus beside the task in every world of the benchmark.",
        f"methods = {_list(METHODS)}",
        f"worlds = {_list(dict.fromkeys(place.world for place in PLACES))}",
        f'seeds = "{SEEDS}"',
        "plain = false",
    ]
    for place in PLACES:
        for method in METHODS:
            settings = {"steps": place.steps}
            settings |= {f"world.{name}": value for name, value in place.options.items()}
            settings |= {"net.planes": "flat"} if "DeepSea" in place.world else {}
            if method != "task":
                settings |= {"mix.weight": WEIGHTS[method.removeprefix("task+")]}
            lines += ["", "[[vary]]", f'name = "{place.name}"', f'methods = ["{method}"]']
            lines += [f'worlds = ["{place.world}"]', f"set = {{ {_pairs(settings)} }}"]
    return "\n".join(lines) + "\n"


def _list(names: Any) -> str:
    return "[" + ", ".join(f'"{name}"' for name in names) + "]"


def _pairs(settings: dict[str, Any]) -> str:
    texts = {
        name: f'"{x}"' if isinstance(x, str) else str(x).lower() for name, x in settings.items()
    }
    return ", ".join(f"{name} = {text}" for name, text in texts.items())


METHODS = ("task", *(f"task+{bonus}" for bonus in WEIGHTS))
MEASURES = ("average", "peak", "last", "score_tail")
COLUMNS = ["place", "method", "seed", "found", *MEASURES, *(f"part{k + 1}" for k in range(BINS))]
MADE = ("commit", "code", "jax", "device")
TABLE, ABOUT = KEPT / "scores.csv.bz2", KEPT / "made.json"
Cells = dict[tuple[str, str], "Cell"]


@dataclass(frozen=True)
class Cell:
    """What is kept of one run, a row a seed."""

    found: Floats
    """The step at which the first episode with a score above FOUND ended; infinite if none did."""
    values: dict[str, Floats]
    curve: Floats
    """Mean score in every part of the run [seed, part]; not a number where no episode ended."""


def kept_of(run: Run) -> Cell:
    """Of a finished run."""
    scores, ends = (run.grid("episodes", name) for name in ("score", "step"))
    values = {name: measure(run, name) for name in MEASURES}
    if scores is None or ends is None or run.steps is None or not all(values.values()):
        raise InputError(f"{run.path} is not whole")
    found = [
        min(end[score > FOUND], default=np.inf) for score, end in zip(scores, ends, strict=True)
    ]
    part = np.ceil(ends / run.steps * BINS)
    curve = [
        [score[at == k].mean() if (at == k).any() else np.nan for k in range(1, BINS + 1)]
        for score, at in zip(scores, part, strict=True)
    ]
    known = {name: sample.values for name, sample in values.items() if sample}
    return Cell(np.array(found), known, np.array(curve))


def collect(home: Path) -> tuple[list[list[str]], dict[str, Any]]:
    """The finished runs of the plan in a folder, a row a seed, and how they were made."""
    rows, made, times = list[list[str]](), list[dict[str, Any]](), {}
    for place in PLACES:
        for method in METHODS:
            path = home / _folder(place, method)
            if not path.exists():
                continue
            run = open_run(path)
            cell = kept_of(run)
            for i, seed in enumerate(run.seeds):
                values = (cell.values[name][i] for name in MEASURES)
                numbers = [cell.found[i], *values, *cell.curve[i]]
                rows.append([place.name, method, str(seed), *map(_short, numbers)])
            made.append({name: run.manifest.get(name) for name in MADE})
            kinds = ("compile_s", "run_s")
            times[f"{place.name} {method}"] = [_total(run.seconds(kind)) for kind in kinds]
    if not made:
        raise InputError(f"{home} has no run of the plan")
    if any(each != made[0] for each in made):
        raise InputError(f"the runs in {home} were not made by one version on one device")
    return rows, {"about": made[0], "seconds": times}


def keep(home: Path) -> None:
    """Adds the runs of a folder to what is kept; the cells it lacks stay as they were."""
    rows, part = collect(home)
    text, now = io.StringIO(), {tuple(row[:2]) for row in rows}
    parts = json.loads(ABOUT.read_text("utf-8")) if ABOUT.exists() else []
    before = [row for row in _table() if tuple(row[:2]) not in now] if TABLE.exists() else []
    order = {(place.name, method): i for i, (place, method) in enumerate(product(PLACES, METHODS))}
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(sorted(before + rows, key=lambda row: order[row[0], row[1]]))
    for old in parts:
        old["seconds"] = {k: v for k, v in old["seconds"].items() if k not in part["seconds"]}
    parts = [old for old in parts if old["seconds"]] + [part]
    TABLE.write_bytes(bz2.compress(text.getvalue().encode()))
    ABOUT.write_text(json.dumps(parts, indent=1) + "\n", encoding="utf-8")


def _total(parts: list[float | None]) -> float | None:
    """Of a run that was stopped and resumed; none where a part was killed before it could tell."""
    known = [part for part in parts if part is not None]
    return round(sum(known), 2) if len(known) == len(parts) else None


def _folder(place: Place, method: str) -> str:
    return f"{method.replace('+', '-')}_{place.world.replace(':', '-')}_{place.name}"


def _short(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.5g}"


def _table() -> list[list[str]]:
    """The rows that are kept."""
    head, *rows = csv.reader(io.StringIO(bz2.decompress(TABLE.read_bytes()).decode()))
    if head != COLUMNS:
        raise InputError(f"{TABLE} has other columns")
    return rows


def read() -> Cells:
    """What is kept, by place and method."""
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in _table()]
    cells = {}
    for place, method in dict.fromkeys((row["place"], row["method"]) for row in rows):
        own = [row for row in rows if (row["place"], row["method"]) == (place, method)]
        curve = [[float(row[f"part{k}"] or "nan") for k in range(1, BINS + 1)] for row in own]
        values = {name: np.array([float(row[name]) for row in own]) for name in MEASURES}
        cells[place, method] = Cell(
            np.array([float(row["found"]) for row in own]), values, np.array(curve)
        )
    return cells


def found(cells: Cells) -> Sheet:
    """Where there is a goal to find: on how many seeds, and when."""
    rows = [
        (_label(place), *(_found(cells[place.name, method].found) for method in METHODS))
        for place in PLACES
        if place.best is not None and not place.has_luck
    ]
    return Sheet("found", "", ("world", *map(method_label, METHODS)), tuple(rows))


def _found(steps: Floats) -> str:
    known = np.isfinite(steps)
    middle = np.median(steps)
    when = f", {middle / 1000:.0f}k" if np.isfinite(middle) else ""
    return f"{known.sum()}{when}"


def tails(cells: Cells) -> Sheet:
    """Scores over the last fifth of the steps."""
    rows = []
    for place in PLACES:
        best = "—" if place.best is None else f"{place.best:.2f}"
        texts = (plus_minus(*stats.mean_std(_tail(cells, place, method))) for method in METHODS)
        rows.append((_label(place), best, *texts))
    return Sheet("tails", "", ("world", "best", *map(method_label, METHODS)), tuple(rows))


def differences(cells: Cells) -> Sheet:
    """How much a bonus adds to the task alone over the last fifth, with the interval of that."""
    rows = []
    for place in PLACES:
        tail = {method: _tail(cells, place, method) for method in METHODS}
        texts = [_apart(tail[method], tail["task"]) for method in METHODS[1:]]
        rows.append((_label(place), *texts, _apart(tail["task+prime"], tail["task+count"])))
    heads = [*map(method_label, METHODS[1:]), "PRIME less Counts"]
    return Sheet("differences", "", ("world", *heads), tuple(rows))


def _apart(mine: Floats, other: Floats) -> str:
    low, high = stats.difference_interval(mine, other)
    return f"{mine.mean() - other.mean():+.3f} {bracket(low, high, 3, sign='+')}"


def _tail(cells: Cells, place: Place, method: str) -> Floats:
    return cells[place.name, method].values["score_tail"]


def _label(place: Place) -> str:
    return f"{place.name} ({place.steps // 1000}k)"


def draw(cells: Cells) -> None:
    """Scores over training, a panel for each world."""
    styles = dict(zip(METHODS, _styles(), strict=True))

    def fill_in(figure: Any) -> None:
        panels = list(figure.subplots(3, 5, squeeze=False).flat)
        for axes, place in zip(panels, PLACES, strict=False):
            axes.set_title(place.name, fontsize=9)
            for method, (colour, dash) in styles.items():
                curve = cells[place.name, method].curve
                known = ~np.isnan(curve).all(axis=0)
                at = (np.arange(BINS) + 1)[known] * place.steps / BINS / 1000
                middle = np.nanmean(curve[:, known], axis=0)
                axes.plot(at, middle, color=colour, ls=dash, lw=1.3, label=method_label(method))
            axes.tick_params(labelsize=7)
            if place.best is not None:
                axes.set_ylim(-0.05, 1.05 * place.best)
        for axes in panels[len(PLACES) :]:
            axes.set_axis_off()
        for axes in panels[len(PLACES) - 5 : len(PLACES)]:
            axes.set_xlabel("thousand steps", fontsize=8)
        legend_below(figure, panels[: len(PLACES)], {}, loc="outside lower center", ncols=3)

    make(PICTURE, (13.0, 7.5), fill_in)


def _styles() -> Iterator[tuple[str, Any]]:
    others = iter([OTHERS[0], OTHERS[1]])
    for method in METHODS:
        name = method.removeprefix("task+")
        yield STYLE[name] if name in STYLE else (next(others), "-")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="?", choices=("plan", "collect", "tables"), default="tables")
    parser.add_argument("runs", nargs="?", type=Path, help="with collect: the sweep's folder")
    args = parser.parse_args()
    KEPT.mkdir(parents=True, exist_ok=True)
    try:
        if args.what == "plan":
            (KEPT / "plan.toml").write_text(plan(), encoding="utf-8")
            return
        if args.what == "collect":
            if args.runs is None:
                raise InputError("collect needs the folder of the runs")
            keep(args.runs)
        cells = read()
        sheets = {
            sheet.name: sheet.body() for sheet in (found(cells), tails(cells), differences(cells))
        }
        fill(PAGE, sheets, ROOT)
        draw(cells)
        print("\n".join(sheets.values()))
    except InputError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
