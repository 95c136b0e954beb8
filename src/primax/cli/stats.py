"""Means, intervals and tests for a CSV of scores.

The file is long (columns method, seed, score, and task if there are several) or wide (a column
seed, then one a method).
"""

import argparse
import math
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.table import Table

from primax import stats
from primax.cli.common import plain_console
from primax.errors import InputError, hint


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="a CSV of scores")
    parser.add_argument("--against", metavar="METHOD", help="compare this method with every other")


def run(args: argparse.Namespace) -> None:
    scores = stats.read_scores(args.file)
    first = args.against or next(iter(scores))
    if first not in scores:
        raise InputError(f"{args.file} has no method {first!r}{hint(first, scores)}")
    console = plain_console()
    console.print(_summaries(stats.summarise(scores)))
    pairs = [(first, other) for other in scores if other != first]
    if pairs:
        console.print(_comparisons(stats.compare_all(scores, pairs)))


def _summaries(rows: list[stats.Summary]) -> Table:
    table = _table("method", "seeds", "mean", "std", "IQM", "95% interval of the IQM")
    for row in rows:
        interval = f"{row.low:.3f} to {row.high:.3f}"
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
            f"{found.low:.3f} to {found.high:.3f}",
            _text(found.d),
            _text(found.poi),
            _text(row.holm_wilcoxon),
            _text(row.holm_mann_whitney),
        )
    table.caption = "PoI: chance that the first is better. p: exact Wilcoxon and Mann-Whitney, Holm"
    return table


def _table(*columns: str) -> Table:
    table = Table(box=SIMPLE_HEAD)
    for i, column in enumerate(columns):
        table.add_column(column, justify="right" if i else "left")
    return table


def _text(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3f}"
