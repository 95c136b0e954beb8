"""A table under both readings of the paper: the text taken literally, and the one nearest to it."""

from collections.abc import Callable
from dataclasses import replace

from primax.output.sheet import ABSENT, Sheet
from primax.paper.evidence import LITERAL_ONLY, Nearest, Runs
from primax.paper.experiments import FIT, VARIANTS

LITERAL, NEAREST = "literal", "nearest"
PAPER = "paper"
"""The column that a value of ours stands before."""
NOTE = (
    "nearest: a fit. It is one of 19 readings of the text (76 trials on other seeds), chosen by a rule "
    "that looks at the paper's numbers. Over all these numbers it is no nearer than the text taken "
    "literally: the median distance, in the paper's standard deviations, is 0.94 against 0.93. All else "
    "is the text taken literally."
)
"""Must be read beside every value of the second column; its numbers are those of results/readings."""
Make = Callable[[Runs], Sheet]


def interleaved(make: Make, runs: Runs, nearest: Nearest) -> Sheet:
    """Behind each value that stands before the paper's, what it is under the nearest reading."""
    ours, fit = make(runs), make(nearest)
    at = [i for i, column in enumerate(ours.columns[1:]) if column == PAPER]
    columns = _woven(ours.columns, [NEAREST] * len(ours.columns), at)
    rows = tuple(
        _woven(row, [_text(cell) for cell in other], at)
        for row, other in zip(ours.rows, fit.rows, strict=True)
    )
    return replace(ours, columns=columns, rows=rows, notes=(*ours.notes, NOTE))


def _woven(ours: tuple[str, ...], others: list[str], at: list[int]) -> tuple[str, ...]:
    """Cells, and behind each of those named the other's."""
    pairs = ([cell, others[i]] if i in at else [cell] for i, cell in enumerate(ours))
    return tuple(cell for pair in pairs for cell in pair)


def _text(cell: str) -> str:
    return ABSENT if cell == f"({LITERAL_ONLY})" else cell


def stacked(make: Make, runs: Runs, nearest: Nearest) -> Sheet:
    """The rows of one reading, then those of the other."""
    ours, fit = make(runs), make(nearest)
    rows = [(LITERAL, *row) for row in ours.rows]
    rows += [(NEAREST, *row) for row in fit.rows if f"({LITERAL_ONLY})" not in row]
    columns = ("reading", *ours.columns)
    return replace(ours, columns=columns, rows=tuple(rows), notes=(*ours.notes, NOTE))


def noted(make: Make, runs: Runs) -> Sheet:
    """A table that has rows of both, and says what those of the nearest reading are."""
    sheet = make(runs)
    return replace(sheet, notes=(*sheet.notes, NOTE))


def told(make: Make, methods: tuple[str, ...], runs: Runs) -> Sheet:
    """A table of settings, and below it how those of the nearest reading differ."""
    sheet = make(runs)
    apart = [
        f"{VARIANTS[method].label} has "
        + " ".join(f"`{name}={value}`" for name, value in FIT[method].items())
        for method in methods
        if FIT[method]
    ]
    return replace(
        sheet, notes=(*sheet.notes, f"Nearest: {', '.join(apart)}; all else is the same.")
    )
