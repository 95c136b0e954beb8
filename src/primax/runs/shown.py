"""How a result shows itself in a notebook: a table of its scores, and learning curves."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from primax.config.schema import Config
from primax.errors import InputError, hint
from primax.methods import find_world
from primax.output.figure import drawn
from primax.output.sheet import Sheet
from primax.runs import curves
from primax.runs.measures import SCORES, over_seeds
from primax.runs.naming import method_label
from primax.runs.tables import PLACES, Table
from primax.worlds import World, world_name

BLUE = "#0072B2"
SIZE = (6.0, 3.6)
"""Inches."""


def scores(config: Config, episodes: Table, seeds: Sequence[int]) -> Sheet:
    """What `primax train` prints at its end: mean and deviation over seeds."""
    rows = tuple(
        (name, f"{mean:.3f}", f"{std:.3f}" if np.isfinite(std) else "", SCORES[name])
        for name, (mean, std) in over_seeds(episodes, seeds).items()
    )
    title = f"{_title(config)}: score, {len(seeds)} seeds of {config.total_steps:,} steps"
    notes = tuple(filter(None, [waiting(episodes, seeds)]))
    return Sheet("scores", title, ("", "mean", "std over seeds", ""), rows, notes)


def played(config: Config, which: str, measures: dict[str, np.ndarray]) -> Sheet:
    """How trained agents did, arrays [seed, episode]: mean and deviation over seeds of their means."""
    rows = []
    for name, values in measures.items():
        means = values.mean(axis=1, dtype=float)
        std = f"{means.std(ddof=1):.3f}" if len(means) > 1 else ""
        rows.append((name, f"{means.mean():.3f}", std))
    seeds, episodes = measures["score"].shape
    title = f"{_title(config)} ({which}): {seeds} seeds of {episodes:,} episodes"
    return Sheet("played", title, ("", "mean", "std over seeds"), tuple(rows))


def waiting(episodes: Table, seeds: Sequence[int]) -> str:
    """Of how many seeds no episode is over, which can be where they are long."""
    num = len(set(seeds) - set(episodes["seed"].tolist()))
    return f"of {num} of {len(seeds)} seeds no episode is over yet: take more steps" if num else ""


def figure(config: Config, seeds: Sequence[int], tables: Sequence[Table], column: str) -> Any:
    """The curve of a column of one of the tables: mean over seeds, its 95% interval shaded."""
    known = {name: table for table in reversed(tables) for name in table if name not in PLACES}
    if column not in known:
        raise InputError(f"unknown column {column!r}{hint(column, known)}")
    steps, values = curves.curve(_grid(known[column], seeds), column)
    if not steps.size:
        raise InputError(f"there is no {column} of every seed yet: take more steps")
    about = curves.COLUMNS.get(column)
    words = _score(config) if column == "score" else about.label if about else column

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        curves.plot(axes, steps, values, method_label(config.method), BLUE, "-")
        axes.set(title=_title(config), xlabel="thousand steps", ylabel=words)
        if about and about.is_log:
            axes.set_yscale("log")

    return drawn(SIZE, draw)


def _grid(table: Table, seeds: Sequence[int]) -> curves.Grid:
    order = np.lexsort((table["step"], table["seed"]))
    ordered = {name: column[order].astype(float) for name, column in table.items()}
    return curves.grid(ordered, sorted(seeds))


def _title(config: Config) -> str:
    return f"{method_label(config.method)} in {type(config.world).__name__.removesuffix('Config')}"


def _score(config: Config) -> str:
    """What the world's score counts; of an object of somebody's own nothing is known."""
    try:
        return find_world(world_name(config.world))[0].score
    except InputError:
        return World.score
