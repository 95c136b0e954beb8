"""Learning curves of runs as one figure for a paper: mean and interval over seeds, a panel for each world."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from primax.errors import InputError, hint
from primax.output.figure import make
from primax.paper.figures.drawing import GREY, STYLE, legend_below
from primax.report import naming
from primax.report.naming import OTHERS, Place
from primax.report.parts.lines import lines
from primax.runs import curves
from primax.runs.curves import COLUMNS
from primax.runs.naming import name_runs
from primax.runs.read import Floats, Run

DASHES: tuple[Any, ...] = ("-", (0, (6, 1.5)), (0, (2.5, 1)), (0, (4, 1.2, 1, 1.2)), (0, (1, 0.8)))
"""Lines differ in dash too, for print in grey."""
PANEL = (4.4, 3.0)
"""Inches, without the legend."""
SAMPLE, LETTER, LINE = 0.55, 0.062, 0.19
"""Inches that a legend's line, a letter and a row take."""


def draw(runs: Sequence[Run], path: Path, column: str = "score") -> None:
    """Writes the figure in the format that the file's name asks for."""
    if column not in COLUMNS:
        raise InputError(f"unknown column {column!r}{hint(column, COLUMNS)}")
    found = [_curve(run, column) for run in runs]
    places, of_run = naming.places(runs)
    labels = _labels(runs, is_one=len(places) == 1)
    styles = _styles(runs, labels)

    def fill(figure: Any) -> None:
        panels = figure.subplots(1, len(places), squeeze=False)[0]
        for axes, place in zip(panels, places, strict=True):
            _frame(axes, place, column)
        for label, number, curve in zip(labels, of_run, found, strict=True):
            curves.plot(panels[number], *curve, label, *styles[label])
        legend_below(figure, panels, {}, loc="outside lower center", ncols=columns)

    width = PANEL[0] * len(places)
    columns = max(1, min(len(styles), int(width / (SAMPLE + LETTER * max(map(len, labels))))))
    rows = -(-len(styles) // columns)
    make(path, (width, PANEL[1] + LINE * (rows + 1)), fill)


def _curve(run: Run, column: str) -> tuple[Floats, Floats]:
    """Steps, and values [seed, point], smoothed and thinned as on the report's page."""
    is_episodes = column in {of.name for of in (*curves.EPISODES, *curves.SOME)}
    table = curves.grid(run.episodes if is_episodes else run.windows, run.seeds)
    if is_episodes and not table["step"].size:
        raise InputError(f"{run.path} has no {column}: no episode is over yet")
    if column in table:
        steps, values = curves.curve(table, column)
        if steps.size:
            return steps, values
    raise InputError(f"{run.path} has no {column}: the run did not record it")


def _labels(runs: Sequence[Run], is_one: bool) -> list[str]:
    """What tells runs apart, but for the world, which is a panel's title."""
    names = name_runs(runs)
    if is_one:
        return [name.label for name in names]
    bare = [
        replace(name, changes=tuple(c for c in name.changes if not c[0].startswith("world.")))
        for name in names
    ]
    return [name.label for name in bare]


def _styles(runs: Sequence[Run], labels: Sequence[str]) -> dict[str, tuple[str, Any]]:
    """A colour and a dash for each label: the paper's for its methods, else what is left of the palette."""
    plain = {naming.label_of(run.method): run.method for run in runs}
    own = {label: STYLE[plain[label]] for label in labels if plain.get(label) in STYLE}
    taken = {colour for colour, _ in own.values()}
    left = [colour for colour in OTHERS if colour not in taken] or list(OTHERS)
    others = [label for label in dict.fromkeys(labels) if label not in own]
    pairs = [
        (colour, DASHES[(1 + i + turn) % len(DASHES)])
        for turn in range(len(DASHES))
        for i, colour in enumerate(left)
    ]
    return own | dict(zip(others, itertools.cycle(pairs), strict=False))


def _frame(axes: Any, place: Place, column: str) -> None:
    """Title, names of the axes, and what policies that learn nothing score."""
    about = COLUMNS[column]
    words = place.score if column == "score" else about.label
    axes.set(title=place.title, xlabel="thousand steps", ylabel=words)
    if about.is_log:
        axes.set_yscale("log")
    for line in lines(place) if column == "score" else ():
        axes.axhline(line["value"], color=GREY, ls=(0, (1, 2)), lw=1, zorder=1)
        axes.annotate(
            f"{line['name']} {line['value']:.2f}",
            (1, line["value"]),
            xycoords=("axes fraction", "data"),
            xytext=(2, 0),
            textcoords="offset points",
            va="center",
            fontsize=6,
            color="#444444",
            annotation_clip=False,
        )
