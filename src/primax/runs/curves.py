"""Learning curves: what can be drawn of a run's tables, smoothed or binned, and how it is drawn."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from primax import stats
from primax.runs.measures import ROLLING, rolling
from primax.runs.read import Floats
from primax.runs.tables import Table, rows_by_seed

Grid = dict[str, Floats]
"""Columns [seed, row], and `step`, which is mostly [row]."""
POINTS = 256
"""A curve has at most; a screen is not much wider."""


@dataclass(frozen=True)
class Column:
    """A quantity over training."""

    name: str
    label: str
    unit: str
    is_log: bool = False
    """Whether it spans orders of magnitude, so that a log scale reads better."""


EPISODES = (
    Column("score", "Score", ""),
    Column("coverage", "Coverage", "share of cells visited in an episode"),
    Column("distance", "Distance", "cells to the nearest target, mean of an episode"),
)
LENGTH = Column("length", "Length", "steps of an episode")
"""Where episodes end when they like."""
NOISE = Column("noise", "Noise", "share of an episode's steps that showed noise")
"""Where noise was put beside a world."""
SOME = (LENGTH, NOISE)
"""Of episodes of some worlds alone."""
WINDOWS = (
    Column("reward", "Reward", "mean over minibatches"),
    Column("r_int", "R_int", "before scale and clip, mean over minibatches"),
    Column("v_epi", "V_epi: what can be learnt", "mean over minibatches", True),
    Column("v_count", "V_count", "mean over minibatches", True),
    Column("v_lotv", "V_LoTV", "mean over minibatches", True),
    Column("v_ale", "V_ale: what is noise", "mean over minibatches", True),
    Column("v_ahead", "look-ahead: the gate", "mean over minibatches", True),
    Column("clamped", "Clamped by the gate", "share of elements"),
    Column("pi_ref_from_u", "‖π_ref − u‖₁", "mean over a window", True),
    Column("mutual_information", "Mutual information", "nats"),
    Column("greedy_entropy", "Entropy of argmax Q", "nats"),
    Column("loss", "Loss", "of the critics", True),
    Column("y_abs_max", "Largest |target|", "in any minibatch of the window"),
    Column("q_taken_abs_max", "Largest |Q(s, a)|", "in any minibatch of the window"),
)
COLUMNS = {column.name: column for column in (*EPISODES, *SOME, *WINDOWS)}


def grid(table: Table, seeds: Sequence[int]) -> Grid:
    """Columns a row a seed, of a table that is in order.

    Where seeds have rows at other steps, as of episodes that end when they like, `step` is
    [seed, row] too, and rows that a seed has not are not numbers.
    """
    columns = {name: rows_by_seed(table, seeds, name) for name in table if name != "seed"}
    steps = columns["step"]
    return columns | {"step": steps[0] if (steps == steps[:1]).all() else steps}


def curve(table: Grid, name: str) -> tuple[Floats, Floats]:
    """Steps, and values [seed, point], of episodes smoothed and of windows binned."""
    steps, values = (smoothed if "episode" in table else binned)(table, name)
    known = np.isfinite(values).all(axis=0)  # a seed's first episode may end late
    return steps[known], values[:, known]


def plot(axes: Any, steps: Floats, values: Floats, label: str, colour: str, dash: Any) -> None:
    """The mean over seeds, and its 95% interval shaded."""
    axes.plot(steps / 1000, values.mean(axis=0), color=colour, ls=dash, lw=1.5, label=label)
    if len(values) > 1:
        ends = stats.mean_bands(values)
        axes.fill_between(steps / 1000, *ends, color=colour, alpha=0.15, lw=0)


def smoothed(table: Grid, name: str) -> tuple[Floats, Floats]:
    """Rolling means over 20 episodes, at no more than 256 of them, evenly spaced, and their steps."""
    if table["step"].ndim == 2:
        return _at_steps(table["step"], table[name])
    ends = table["step"][min(ROLLING, len(table["step"])) - 1 :]
    thin = np.unique(np.linspace(0, len(ends) - 1, POINTS).round().astype(int))
    return ends[thin], _rolling(table[name])[:, thin]


def _at_steps(ends: Floats, values: Floats) -> tuple[Floats, Floats]:
    """The same where each seed's episodes end when they like: at steps that are even for all.

    A seed has a value from its first episode's end on: the mean over its newest 20 at most.
    """
    steps = np.linspace(0, np.nanmax(ends), POINTS + 1)[1:]
    found = np.full((len(ends), POINTS), np.nan)
    for row, end, value in zip(found, ends, values, strict=True):
        known = np.isfinite(end)
        total = np.concatenate([[0.0], np.cumsum(value[known])])
        done = np.searchsorted(end[known], steps, side="right")
        few = np.minimum(done, ROLLING)
        row[few > 0] = ((total[done] - total[done - few]) / np.maximum(few, 1))[few > 0]
    return steps, found


def _rolling(values: Floats) -> Floats:
    """Over what there is: an episode without a target has no distance."""
    if not np.isnan(values).any():
        return rolling(values)
    known = rolling((~np.isnan(values)).astype(float))
    total = rolling(np.nan_to_num(values))
    return np.where(known > 0, total / np.maximum(known, 1e-12), np.nan)


def binned(table: Grid, name: str, points: int = POINTS) -> tuple[Floats, Floats]:
    """Means over as many equal runs of windows as there are points; of maxima the maximum."""
    steps, values = table["step"], np.atleast_2d(table[name])
    bins = np.array_split(np.arange(len(steps)), min(points, len(steps)))
    if any(len(part) > 1 for part in bins):
        reduce = np.max if name.endswith("_max") else np.mean
        values = np.stack([reduce(values[:, part], axis=1) for part in bins], axis=1)
    return steps[[part[-1] for part in bins]], values
