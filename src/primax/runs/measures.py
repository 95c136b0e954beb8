"""The measures of a run, a value a seed; every table, page and summary takes them from here.

`average`, `peak`, `last`          score of all episodes; best and last mean over 20 of them
`episode_std`                      of the score, over a seed's episodes
`coverage_fall`                    share of cells visited, first less last fifth of the steps
`score_tail`, `coverage_tail`, `distance_tail`   over the last fifth of the steps
`score_start`, `distance_start`    over the first fifth
`clamp_share`                      tail share of elements the gate clamps, of those with data
`tail:C`, `first:C`                a column of windows.csv over the last fifth, the first tenth
`top:C`, `late:C`                  its largest value; the largest of the last fifth
`rolling:C`                        the largest mean over 20 windows
`peak:C`                           its value in the window in which the best 20 episodes end
"""

from dataclasses import dataclass

import numpy as np

from primax.errors import InputError, hint
from primax.runs.read import Floats, Run
from primax.runs.tables import Table

ROLLING = 20
TAIL, FIFTH, TENTH = 0.8, 0.2, 0.1
SCORES = {
    "average": "mean of all episodes",
    "peak": "best mean over 20 consecutive episodes",
    "last": "mean over the last 20 episodes",
}
PLAIN = (
    *SCORES,
    "episode_std",
    "score_start",
    "score_tail",
    "coverage_fall",
    "coverage_tail",
    "distance_start",
    "distance_tail",
    "clamp_share",
)
KINDS = ("tail", "first", "top", "late", "rolling", "peak")
"""Before a column of windows.csv."""


@dataclass(frozen=True)
class Sample:
    """A value a seed."""

    seeds: tuple[int, ...]
    values: Floats


def rolling(values: Floats, length: int = ROLLING) -> Floats:
    """Means over `length` consecutive entries of each row; shorter rows use all they have."""
    length = min(length, values.shape[1])
    return np.lib.stride_tricks.sliding_window_view(values, length, axis=1).mean(axis=2)


def score_measures(scores: Floats, length: int = ROLLING) -> dict[str, Floats]:
    """`average`, `peak` and `last` of scores [seed, episode]; shorter runs use all they have."""
    smooth = rolling(scores, length)
    return {"average": scores.mean(axis=1), "peak": smooth.max(axis=1), "last": smooth[:, -1]}


def scores_by_seed(episodes: Table, num_seeds: int) -> Floats:
    """Scores [seed, episode] of a table in any order, of as many episodes as every seed has."""
    order = np.lexsort((episodes["episode"], episodes["seed"]))
    _, begins, counts = np.unique(episodes["seed"][order], return_index=True, return_counts=True)
    if len(counts) != num_seeds:
        raise InputError(f"the table of episodes has {len(counts)} seeds, not {num_seeds}")
    rows = begins[:, None] + np.arange(counts.min())
    return episodes["score"][order][rows].astype(float)


def measure(run: Run, name: str) -> Sample | None:
    """A measure by name; None where the run did not record what it needs."""
    kind, _, column = name.partition(":")
    values = _of_windows(run, kind, column) if column else _plain(run, name)
    if values is None or not np.isfinite(values).all():
        return None
    return Sample(run.seeds, values)


def _plain(run: Run, name: str) -> Floats | None:
    if name not in PLAIN:
        known = [*PLAIN, *(f"{kind}:COLUMN" for kind in KINDS)]
        raise InputError(f"unknown measure {name!r}{hint(name, known)}")
    scores = run.grid("episodes", "score")
    if name in SCORES:
        return None if scores is None else score_measures(scores)[name]
    if name == "episode_std":
        return None if scores is None else scores.std(axis=1, ddof=1)
    if name == "clamp_share":
        clamped, absent = (_of_windows(run, "tail", c) for c in ("clamped", "no_data"))
        if clamped is None or absent is None or (absent == 1).any():
            return None
        return clamped / (1 - absent)
    column, part = name.split("_")
    values, share = run.grid("episodes", column), _share(run, "episodes")
    if values is None:
        return None
    start, tail = _mean(values[:, share <= FIFTH]), _mean(values[:, share > TAIL])
    return {"start": start, "tail": tail, "fall": start - tail}[part]


def _of_windows(run: Run, kind: str, column: str) -> Floats | None:
    values = run.grid("windows", column)
    if values is None:
        return None
    share = _share(run, "windows")
    if kind == "tail":
        return _mean(values[:, share > TAIL])
    if kind == "first":
        return _mean(values[:, share <= TENTH])
    if kind == "top":
        return values.max(axis=1)
    if kind == "late":
        return values[:, share > TAIL].max(axis=1)
    if kind == "rolling":
        return rolling(values).max(axis=1)
    if kind == "peak":
        return _at_peak(run, values)
    raise InputError(f"unknown measure '{kind}:'{hint(kind, KINDS)}")


def _at_peak(run: Run, values: Floats) -> Floats | None:
    scores, ends, windows = (
        run.grid(*cell)
        for cell in (("episodes", "score"), ("episodes", "step"), ("windows", "step"))
    )
    if scores is None or ends is None or windows is None:
        return None
    last = rolling(scores).argmax(axis=1) + min(ROLLING, scores.shape[1]) - 1
    at = [np.searchsorted(windows[i], ends[i, end]) for i, end in enumerate(last)]
    return np.array([row[min(k, len(row) - 1)] for row, k in zip(values, at, strict=True)])


def _share(run: Run, table: str) -> Floats:
    """How far through the run each row is; a row is where its window or episode ends."""
    steps = run.grid(table, "step")
    assert steps is not None
    return steps[0] / (run.steps or steps[0][-1])


def _mean(values: Floats) -> Floats:
    """Over what is there (an episode without a target has no distance); else not a number."""
    count = (~np.isnan(values)).sum(axis=1)
    total = np.nansum(values, axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
