"""The measures of a run, a value a seed; every table, page and summary takes them from here.

`average`, `peak`, `last`          score of all episodes; best and last mean over 20 of them
`episode_std`                      of the score, over a seed's episodes
`coverage_fall`                    share of cells visited, first less last fifth of the steps
`score_tail`, `coverage_tail`, `distance_tail`   over the last fifth of the steps
`score_start`, `distance_start`    over the first fifth
`noise_tail`, `noise_start`        share of steps that showed the noise beside a world, likewise
`clamp_share`                      tail share of elements the gate clamps, of those with data
`tail:C`, `first:C`                a column of windows.csv over the last fifth, the first tenth
`top:C`, `late:C`                  its largest value; the largest of the last fifth
`rolling:C`                        the largest mean over 20 windows
`peak:C`                           its value in the window in which the best 20 episodes end
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from primax.errors import InputError, hint
from primax.runs.read import Floats, Run
from primax.runs.tables import Table, rows_by_seed

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
    "noise_start",
    "noise_tail",
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
    """`average`, `peak` and `last` of scores [seed, episode]; shorter runs use all they have.

    Where seeds have more and fewer episodes, the missing ones are not numbers; a seed without any
    has no measures.
    """
    if np.isnan(scores).any() or not scores.size:
        known = [row[~np.isnan(row)][None] for row in scores]
        each = [score_measures(row, length) if row.size else {} for row in known]
        return {name: np.array([m.get(name, [np.nan])[0] for m in each]) for name in SCORES}
    smooth = rolling(scores, length)
    return {"average": scores.mean(axis=1), "peak": smooth.max(axis=1), "last": smooth[:, -1]}


def scores_by_seed(episodes: Table, seeds: Sequence[int]) -> Floats:
    """Scores [seed, episode] of a table in any order; not a number where a seed has no more."""
    order = np.lexsort((episodes["episode"], episodes["seed"]))
    table = {name: episodes[name][order].astype(float) for name in ("seed", "score")}
    return rows_by_seed(table, sorted(seeds), "score")


def over_seeds(episodes: Table, seeds: Sequence[int]) -> dict[str, tuple[float, float]]:
    """Mean and deviation of `average`, `peak` and `last` over the seeds of which an episode is over.

    Of one seed there is no deviation: it is not a number.
    """
    found = score_measures(scores_by_seed(episodes, seeds))
    known = {name: values[np.isfinite(values)] for name, values in found.items()}
    return {
        name: (float(x.mean()), float(np.std(x, ddof=1)) if x.size > 1 else np.nan)
        for name, x in known.items()
        if x.size
    }


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
        spread = np.nanstd if run.can_end else np.std
        return None if scores is None else spread(scores, axis=1, ddof=1)
    if name == "clamp_share":
        clamped, absent = (_of_windows(run, "tail", c) for c in ("clamped", "no_data"))
        if clamped is None or absent is None or (absent == 1).any():
            return None
        return clamped / (1 - absent)
    column, part = name.split("_")
    values = run.grid("episodes", column)
    if values is None:
        return None
    if run.can_end:
        return _free_part(run, values, part)
    share = _share(run, "episodes")
    start, tail = _mean(values[:, share <= FIFTH]), _mean(values[:, share > TAIL])
    return {"start": start, "tail": tail, "fall": start - tail}[part]


def _free_part(run: Run, values: Floats, part: str) -> Floats:
    """A fifth of the steps, or their difference, where each seed's episodes end when they like."""
    ends = run.grid("episodes", "step")
    assert ends is not None
    share = ends / (run.steps or np.nanmax(ends, initial=1))
    start = _mean(np.where(share <= FIFTH, values, np.nan))
    tail = _mean(np.where(share > TAIL, values, np.nan))
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
    if not scores.size or np.isnan(scores).all(axis=1).any():
        return None  # of some seed no episode is over
    last = [_best_end(row[~np.isnan(row)]) for row in scores]
    at = [np.searchsorted(windows[i], ends[i, end]) for i, end in enumerate(last)]
    return np.array([row[min(k, len(row) - 1)] for row, k in zip(values, at, strict=True)])


def _best_end(scores: Floats) -> int:
    """The last of the best 20 episodes of one seed."""
    return int(rolling(scores[None]).argmax()) + min(ROLLING, len(scores)) - 1


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
