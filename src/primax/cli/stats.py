"""Means, intervals and tests for a CSV of scores, or for runs' folders.

The CSV is long (columns method, seed, score, and task if there are several) or wide (a column seed,
then one column for each method). Each run's folder gives one score for each seed; its row is named
by what sets the run apart from the others: method and settings.
"""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from primax import stats
from primax.cli.common import plain_console
from primax.cli.stats_sheets import comparisons, one_csv, summaries
from primax.errors import InputError, check_choice, hint
from primax.output.sheet import Sheet
from primax.runs.disk import runs_in
from primax.runs.measures import Sample
from primax.runs.measures import measure as measure_of
from primax.runs.naming import name_runs
from primax.runs.read import Run, Unusable, find_run

PEAK = "peak"
"""The measure of folders unless another is asked for."""
FORMATS = ("table", "csv", "latex")
WIDE = 1_000
"""Columns where no terminal says how many there are: nothing is folded."""


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "path", type=Path, nargs="+", help="one CSV of scores, or folders of (or with) runs"
    )
    parser.add_argument(
        "--against",
        metavar="METHOD",
        help="compare this method, or the run in this folder, with every other (default: the first)",
    )
    parser.add_argument(
        "--measure",
        help=f"which score to take from folders: average, {PEAK}, last, tail:COLUMN, ... (default: {PEAK})",
    )
    parser.add_argument(
        "--expert",
        type=Path,
        metavar="DIR",
        help="give every score as a share of the mean of this run, of a method that was given the task",
    )
    parser.add_argument(
        "--format",
        default="table",
        help="table (for reading), csv (one row for each method, all digits) or latex (two tabulars "
        "that need the package booktabs); default: %(default)s",
    )


def run(args: argparse.Namespace) -> None:
    check_choice("--format", args.format, FORMATS)
    console = plain_console()
    if not console.is_terminal:
        console.width = WIDE
    scores, folders = _scores(args.path, args.measure)
    expert = [_run(args.expert)] if args.expert else []
    _warn([*folders.values(), *expert], is_apart=args.format != "table")
    title = f"measure: {args.measure or PEAK}" if folders else ""
    if expert:
        mean = _expert_mean(expert[0], folders, args.measure or PEAK)
        scores = {name: values / mean for name, values in scores.items()}
        shares = f"as a share of {mean:.3f}, the mean of {args.expert}"
        title += f", {shares}"
        if args.format != "table":
            print(f"scores are given {shares}", file=sys.stderr)
    first = _first(args.against, scores, folders, args.path[0])
    pairs = [(first, other) for other in scores if other != first]
    compared = stats.compare_all(scores, pairs) if pairs else []
    rows = stats.summarise(scores)
    if args.format == "csv":
        print(one_csv(rows, compared), end="")
        return
    sheets = [summaries(rows, title), *([comparisons(compared, rows[0].seeds)] if pairs else [])]
    if args.format == "latex":
        print("\n".join(sheet.latex() for sheet in sheets), end="")
        return
    for sheet in sheets:
        console.print(_table(sheet, console))
        for note in sheet.notes:
            console.print(note)
        console.print()


def _scores(
    paths: list[Path], measure: str | None
) -> tuple[Mapping[str, stats.Floats], dict[str, Run]]:
    """By method from one file, or by run; and the runs by the same names."""
    if not paths[0].exists():
        raise InputError(f"{paths[0]} is not there; give a CSV file of scores, or folders of runs")
    if not paths[0].is_dir():
        if len(paths) > 1 or measure:
            raise InputError(f"{paths[0]} is not a folder: give one CSV file, or runs' folders")
        return stats.read_scores(paths[0]), {}
    runs = [_run(path) for given in paths for path in runs_in(given) or [given]]
    worlds = dict.fromkeys(run.world for run in runs)
    if len(worlds) > 1:
        raise InputError(
            f"the runs are in different worlds ({', '.join(worlds)}): compare runs in one world"
        )
    samples = [_sample(run, measure or PEAK) for run in runs]
    if len({sample.seeds for sample in samples}) > 1:
        raise InputError("the runs have different seeds: compare runs that have the same seeds")
    names = [name.text for name in name_runs(runs)]
    values = [sample.values for sample in samples]
    return dict(zip(names, values, strict=True)), dict(zip(names, runs, strict=True))


def _expert_mean(expert: Run, runs: dict[str, Run], measure: str) -> float:
    """What the scores of runs are measured by."""
    path = expert.path
    if any(run.world != expert.world for run in runs.values()) or not runs:
        raise InputError(
            f"--expert {path} is a run in {expert.world}: give runs' folders of that world"
        )
    mean = float(_sample(expert, measure).values.mean())
    if mean <= 0:
        raise InputError(f"--expert {path} has a mean of {mean:g}: no share of that can be had")
    return mean


def _first(
    asked: str | None, scores: Mapping[str, stats.Floats], runs: dict[str, Run], path: Path
) -> str:
    """The row that is compared with every other: by its name, or by the run's folder."""
    if asked is None or asked in scores:
        return asked or next(iter(scores))
    for name, of in runs.items():
        if asked == of.path.resolve().name or Path(asked).resolve() == of.path.resolve():
            return name
    what = "no run is called" if runs else f"{path} has no method"
    raise InputError(f"{what} {asked!r}{hint(asked, scores)}")


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


def _warn(runs: list[Run], is_apart: bool) -> None:
    """Of the world's settings and the budget, those that are not the same in all runs; on stderr \
where a program reads the rest."""
    settings = [run.settings for run in runs]
    names = [n for n in settings[0] if n.startswith("world.") or n == "steps"] if runs else []
    if odd := [name for name in names if len({str(of.get(name)) for of in settings}) > 1]:
        says = f"these settings are not the same in all runs: {', '.join(odd)}"
        print(says, file=sys.stderr if is_apart else sys.stdout)


def _table(sheet: Sheet, console: Console) -> Table:
    """Where it does not fit, numbers keep their words whole and names are folded."""
    table = Table(box=SIMPLE_HEAD, title=sheet.title or None, title_justify="left")
    for i, column in enumerate(sheet.columns):
        table.add_column(column, justify="right" if i else "left", overflow="fold")
    for row in sheet.rows:
        table.add_row(*row)
    if console.measure(table, options=console.options.update(width=WIDE)).maximum > console.width:
        for column in table.columns[1:]:
            cells = [str(column.header), *map(str, column.cells)]
            column.width = max(len(word) for cell in cells for word in cell.split())
    return table
