"""Learning curves a page can carry: thinned and quantised; measures exact."""

from typing import Any

import numpy as np

from primax import stats
from primax.report.packing import column, number
from primax.runs.curves import EPISODES, POINTS, SOME, WINDOWS, Grid, binned, smoothed
from primax.runs.measures import score_measures

FEWEST = 48
WINDOWS_BYTES = 2_600_000
"""All curves of windows.csv on a page take about so much; longer tables get fewer points."""


def episodes(table: Grid) -> dict[str, Any]:
    """Every column that was measured, smoothed."""
    all_ = (*EPISODES, *SOME)
    known = [c.name for c in all_ if c.name in table and np.isfinite(table[c.name]).any()]
    columns = {name: column(smoothed(table, name)[1]) for name in known}
    return {"steps": smoothed(table, "score")[0].astype(int).tolist(), "columns": columns}


def windows(table: Grid, points: int) -> dict[str, Any]:
    """Every column that was measured, binned."""
    known = [c.name for c in WINDOWS if c.name in table and np.isfinite(table[c.name]).any()]
    columns = {name: column(binned(table, name, points)[1]) for name in known}
    ends = binned(table, "step", points)[0].astype(int).tolist()
    return {"steps": ends, "columns": columns, "windows": len(table["step"])}


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
