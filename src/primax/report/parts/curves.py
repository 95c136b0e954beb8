"""Learning curves a page can carry: smoothed or binned, thinned, quantised; measures exact."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from primax import stats
from primax.report.packing import column, number
from primax.report.reading import Grid
from primax.runs.measures import ROLLING, rolling, score_measures
from primax.runs.read import Floats

POINTS = 256
"""A curve has at most; a screen is not much wider."""
FEWEST = 48
WINDOWS_BYTES = 2_600_000
"""All curves of windows.csv on a page take about so much; longer tables get fewer points."""


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


def episodes(table: Grid) -> dict[str, Any]:
    """Every column that was measured, smoothed."""
    all_ = (*EPISODES, LENGTH)
    known = [c.name for c in all_ if c.name in table and np.isfinite(table[c.name]).any()]
    columns = {name: column(smoothed(table, name)[1]) for name in known}
    return {"steps": smoothed(table, "score")[0].astype(int).tolist(), "columns": columns}


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


def windows(table: Grid, points: int) -> dict[str, Any]:
    """Every column that was measured, binned."""
    known = [c.name for c in WINDOWS if c.name in table and np.isfinite(table[c.name]).any()]
    columns = {name: column(binned(table, name, points)[1]) for name in known}
    ends = binned(table, "step", points)[0].astype(int).tolist()
    return {"steps": ends, "columns": columns, "windows": len(table["step"])}


def binned(table: Grid, name: str, points: int = POINTS) -> tuple[Floats, Floats]:
    """Means over as many equal runs of windows as there are points; of maxima the maximum."""
    steps, values = table["step"], np.atleast_2d(table[name])
    bins = np.array_split(np.arange(len(steps)), min(points, len(steps)))
    if any(len(part) > 1 for part in bins):
        reduce = np.max if name.endswith("_max") else np.mean
        values = np.stack([reduce(values[:, part], axis=1) for part in bins], axis=1)
    return steps[[part[-1] for part in bins]], values


def window_points(tables: list[Grid]) -> int:
    """Points of a curve of windows.csv, the same for every run of a page."""
    rows = sum(len(t["loss"]) * sum(c.name in t for c in WINDOWS) for t in tables if "loss" in t)
    room = int(WINDOWS_BYTES / (2 * 4 / 3 * max(rows, 1)))
    return int(np.clip(room, FEWEST, POINTS))


def measures(table: Grid) -> dict[str, list[float | None]]:
    """Of every seed, from all its episodes."""
    found = score_measures(table["score"])
    return {name: [number(v) for v in values] for name, values in found.items()}


def summary(values: list[float | None]) -> dict[str, float | None] | None:
    """Mean, std and a 95% bootstrap interval of the mean over seeds."""
    known = np.array([value for value in values if value is not None])
    if not known.size:
        return None
    if known.size == 1:
        return {"mean": number(known[0]), "std": None, "low": None, "high": None}
    low, high = stats.interval(known, np.mean)
    found = {"mean": known.mean(), "std": known.std(ddof=1), "low": low, "high": high}
    return {name: number(value) for name, value in found.items()}
