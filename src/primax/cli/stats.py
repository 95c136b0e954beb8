"""Means, intervals and tests for a CSV of scores, or for runs' folders.

The CSV is long (columns method, seed, score, and task if there are several) or wide (a column seed,
then one column for each method). Each run's folder gives one score for each seed, under the
folder's name.
"""

import argparse
import math
from collections.abc import Mapping
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from primax import stats
from primax.cli.common import plain_console
from primax.errors import InputError, hint
from primax.output.sheet import plain_p
from primax.runs.measures import Sample
from primax.runs.measures import measure as measure_of
from primax.runs.read import Run, Unusable, find_run

PEAK = "peak"
"""The measure of folders unless another is asked for."""
WIDE = 1_000
"""Columns where no terminal says how many there are: nothing is folded."""
NOISE = 1e-13
"""What is smaller is left by rounding."""


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", type=Path, nargs="+", help="one CSV of scores, or folders of runs")
    parser.add_argument(
        "--against",
        metavar="METHOD",
        help="compare this method with every other (default: the first)",
    )
    parser.add_argument(
        "--measure",
        help=f"which score to take from folders: average, {PEAK}, last, tail:COLUMN, ... (default: {PEAK})",
    )


def run(args: argparse.Namespace) -> None:
    console = plain_console()
    if not console.is_terminal:
        console.width = WIDE
    scores = _scores(args.path, args.measure, console)
    first = args.against or next(iter(scores))
    if first not in scores:
        raise InputError(f"{args.path[0]} has no method {first!r}{hint(first, scores)}")
    title = f"measure: {args.measure or PEAK}" if args.path[0].is_dir() else None
    console.print(_summaries(stats.summarise(scores), title))
    pairs = [(first, other) for other in scores if other != first]
    if pairs:
        console.print(_comparisons(stats.compare_all(scores, pairs)))


def _scores(paths: list[Path], measure: str | None, console: Console) -> Mapping[str, stats.Floats]:
    """By method from one file, or by folder, a run a method."""
    if not paths[0].is_dir():
        if len(paths) > 1 or measure:
            raise InputError(f"{paths[0]} is not a folder: give one CSV file, or runs' folders")
        return stats.read_scores(paths[0])
    scores: dict[str, stats.Floats] = {}
    seeds: set[tuple[int, ...]] = set()
    runs = [_run(path) for path in paths]
    worlds = dict.fromkeys(run.world for run in runs)
    if len(worlds) > 1:
        raise InputError(
            f"the runs are in different worlds ({', '.join(worlds)}): compare runs in one world"
        )
    for path, run in zip(paths, runs, strict=True):
        sample = _sample(run, measure or PEAK)
        name = path.resolve().name
        if name in scores:
            raise InputError(f"two folders are called {name}: rename one of them")
        scores[name] = sample.values
        seeds.add(sample.seeds)
    if len(seeds) > 1:
        raise InputError("the runs have different seeds: compare runs that have the same seeds")
    if differing := _differing(runs):
        console.print(
            f"these settings are not the same in all runs: {', '.join(differing)}", soft_wrap=True
        )
    return scores


def _run(path: Path) -> Run:
    """A finished run, or one line on why there is none."""
    found = find_run(path)
    if isinstance(found, Unusable):
        why = found.reason or f"{path}: {found.why}"
        raise InputError(f"{why}; give the folder of a finished run")
    return found


def _sample(run: Run, measure: str) -> Sample:
    """A measure of one run, or one line on why there is none."""
    sample = measure_of(run, measure)
    column = measure.partition(":")[2]
    if column and column not in run.windows:
        raise InputError(f"{run.path} has no column {column!r}{hint(column, run.windows)}")
    if sample is None:
        raise InputError(f"{run.path} has no {measure}: the run did not record it")
    return sample


def _differing(runs: list[Run]) -> list[str]:
    """Of the world's settings and the budget, those that are not the same in all runs."""
    settings = [run.settings for run in runs]
    names = [name for name in settings[0] if name.startswith("world.") or name == "steps"]
    return [name for name in names if len({str(of.get(name)) for of in settings}) > 1]


def _summaries(rows: list[stats.Summary], title: str | None) -> Table:
    table = _table("method", "seeds", "mean", "std", "IQM", "95% interval of the IQM")
    table.title, table.title_justify = title, "left"
    for row in rows:
        interval = f"{_text(row.low)} to {_text(row.high)}"
        table.add_row(
            row.method, str(row.seeds), _text(row.mean), _text(row.std), _text(row.iqm), interval
        )
    return table


def _comparisons(rows: list[stats.ComparisonRow]) -> Table:
    table = _table(
        "first - second",
        "difference",
        "95% interval",
        "d",
        "PoI",
        "p W",
        "p U",
    )
    for row in rows:
        found = row.result
        table.add_row(
            f"{row.first} - {row.second}",
            _text(found.delta),
            f"{_text(found.low)} to {_text(found.high)}",
            _text(found.d),
            _text(found.poi),
            plain_p(row.holm_wilcoxon),
            plain_p(row.holm_mann_whitney),
        )
    table.caption = "PoI: chance that the first is better. p: exact Wilcoxon and Mann-Whitney, Holm"
    return table


def _table(*columns: str) -> Table:
    table = Table(box=SIMPLE_HEAD)
    for i, column in enumerate(columns):
        table.add_column(column, justify="right" if i else "left", overflow="fold")
    return table


def _text(value: float) -> str:
    """Three decimals; of small values three digits."""
    if math.isnan(value):
        return ""
    return f"{value:#.3g}" if NOISE < abs(value) < 0.01 else f"{value:.3f}"
