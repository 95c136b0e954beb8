"""Scores to numbers: means, IQM, bootstrap intervals, effect sizes, exact rank tests, Holm.

Scores are `seeds x tasks`; a 1-D array is one task. Where a test needs one number per seed and there
are several tasks, that number is the seed's mean over tasks.
"""

import csv
import io
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import scipy  # which loads its parts when they are first used: stats alone takes most of a second
from numpy.typing import ArrayLike, NDArray

from primax import files
from primax.errors import InputError, hint

Floats = NDArray[np.float64]

# 0.95 - 0.85 and 0.8 - 0.7 differ in the 16th digit: differences this close, as a share of the
# largest score, are ties.
TIE = 1e-9


def _scores(values: ArrayLike) -> Floats:
    """`values` as a finite `seeds x tasks` array."""
    scores = np.asarray(values, dtype=np.float64)
    scores = scores[:, None] if scores.ndim == 1 else scores
    if scores.ndim != 2 or scores.size == 0:
        raise InputError(f"scores must be seeds x tasks and not empty; got shape {scores.shape}")
    if not np.isfinite(scores).all():
        seed, task = np.argwhere(~np.isfinite(scores))[0]
        raise InputError(f"the score of row {seed}, column {task} is not finite; drop that seed")
    return scores


def _both(a: ArrayLike, b: ArrayLike, paired: bool = False) -> tuple[Floats, Floats]:
    """Two checked score arrays over the same tasks, and over the same seeds if `paired`."""
    first, second = _scores(a), _scores(b)
    sizes = f"got {first.shape} and {second.shape} seeds x tasks"
    if first.shape[1] != second.shape[1]:
        raise InputError(f"compare scores over the same tasks; {sizes}")
    if paired and len(first) != len(second):
        raise InputError(f"a paired comparison needs the same seeds on both sides; {sizes}")
    return first, second


def _levels(values: Floats, scale: float) -> NDArray[np.int64]:
    """Dense integer levels of `values`; neighbours within `TIE * scale` share one."""
    order = np.argsort(values, kind="stable")
    levels = np.zeros(len(values), dtype=np.int64)
    levels[order[1:]] = np.cumsum(np.diff(values[order]) > TIE * scale)
    return levels


def _variance(x: Floats) -> float:
    """Sample variance (ddof=1): exactly 0 for equal values, nan for one."""
    if len(x) == 1:
        return math.nan
    return 0.0 if np.ptp(x) == 0 else float(np.var(x, ddof=1))


def mean_std(scores: ArrayLike) -> tuple[float, float]:
    """Mean and sample std (ddof=1) over seeds; the std of one seed is nan."""
    x = _scores(scores).mean(axis=1)
    return float(x.mean()), math.sqrt(_variance(x))


def iqm(scores: ArrayLike, axis: int | None = None) -> Any:
    """Interquartile mean: floor(n/4) entries cut from each end of all n, the rest averaged."""
    x = np.asarray(scores, dtype=np.float64)
    if x.size == 0 or not np.isfinite(x).all():
        raise InputError("the IQM needs at least one score and only finite ones; drop the others")
    trimmed = scipy.stats.trim_mean(x, 0.25, axis=axis)
    return float(trimmed) if axis is None else trimmed


def interval(
    scores: ArrayLike,
    statistic: Callable[..., Any] = iqm,
    resamples: int = 10_000,
    confidence: float = 0.95,
    seed: int = 0,
) -> tuple[float, float]:
    """Percentile bootstrap; seeds are redrawn within each task. `statistic` takes `axis`, as np.mean does."""
    x = _scores(scores)
    rows = np.random.default_rng(seed).integers(len(x), size=(resamples, *x.shape))
    values = statistic(x[rows, np.arange(x.shape[1])].reshape(resamples, -1), axis=-1)
    low, high = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def mean_bands(
    values: ArrayLike, resamples: int = 10_000, confidence: float = 0.95, seed: int = 0
) -> tuple[Floats, Floats]:
    """The interval of the mean over seeds at every point of curves [seed, point]: at each that of
    `interval(point, np.mean)`, for the seeds redrawn are the same."""
    x = _scores(values)
    rows = np.random.default_rng(seed).integers(len(x), size=(resamples, len(x)))
    times = (rows[:, :, None] == np.arange(len(x))).sum(axis=1)  # each seed was drawn
    means = times @ x / len(x)
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    return low, high


def paired_interval(
    a: ArrayLike, b: ArrayLike, resamples: int = 10_000, confidence: float = 0.95, seed: int = 0
) -> tuple[float, float]:
    """Bootstrap interval of mean(a - b), redrawing per-seed differences."""
    first, second = _both(a, b, paired=True)
    return interval(first - second, np.mean, resamples, confidence, seed)


def difference_interval(
    a: ArrayLike,
    b: ArrayLike,
    statistic: Callable[..., Any] = np.mean,
    resamples: int = 10_000,
    confidence: float = 0.95,
    seed: int = 0,
) -> tuple[float, float]:
    """Bootstrap interval of statistic(a) - statistic(b), each side redrawn by itself: no pairs."""
    first, second = _both(a, b)
    stream, drawn = np.random.default_rng(seed), []
    for x in (first, second):
        rows = stream.integers(len(x), size=(resamples, *x.shape))
        values = x[rows, np.arange(x.shape[1])].reshape(resamples, -1)
        drawn.append(statistic(values, axis=-1))
    ends = np.quantile(drawn[0] - drawn[1], [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(ends[0]), float(ends[1])


def cohens_d(a: ArrayLike, b: ArrayLike) -> float:
    """(mean a - mean b) / sqrt(((n-1) var a + (m-1) var b) / (n+m-2)); signed inf, or 0, if no spread."""
    x, y = (s.mean(axis=1) for s in _both(a, b))
    if len(x) + len(y) == 2:
        return math.nan
    squares = sum((len(s) - 1) * _variance(s) for s in (x, y) if len(s) > 1)
    if squares == 0:
        return 0.0 if x[0] == y[0] else math.copysign(math.inf, x[0] - y[0])
    return float(x.mean() - y.mean()) / math.sqrt(squares / (len(x) + len(y) - 2))


def probability_of_improvement(a: ArrayLike, b: ArrayLike) -> float:
    """P(a > b) + P(a = b)/2 over all pairs of seeds, averaged over tasks."""
    pooled = np.concatenate(both := _both(a, b))
    levels = np.stack([_levels(task, np.abs(task).max()) for task in pooled.T], axis=1)
    gaps = levels[: len(both[0]), None] - levels[None, len(both[0]) :]
    return float(np.mean((np.sign(gaps) + 1) / 2))


def wilcoxon_exact(a: ArrayLike, b: ArrayLike) -> float:
    """Two-sided signed-rank p = P(|W - E W| >= observed) over all signs; zeros dropped, ties mid-ranked."""
    x, y = (s.mean(axis=1) for s in _both(a, b, paired=True))
    scale = float(max(np.abs(x).max(), np.abs(y).max()))
    gaps = (x - y)[np.abs(x - y) > TIE * scale]
    # Twice a mid-rank is an integer.
    ranks = (2 * scipy.stats.rankdata(_levels(np.abs(gaps), scale))).astype(np.int64)
    total = int(ranks.sum())
    # Halves add without rounding up to 52 seeds and without cancellation after.
    share = np.zeros(total + 1)
    share[0] = 1.0
    for rank in ranks:
        share[rank:] += share[: total + 1 - rank].copy()
        share /= 2
    distance = np.abs(2 * np.arange(total + 1) - total)
    return min(1.0, float(share[distance >= abs(2 * int(ranks[gaps > 0].sum()) - total)].sum()))


def mann_whitney_exact(a: ArrayLike, b: ArrayLike) -> float:
    """Two-sided rank-sum p = P(|W - E W| >= observed) over all splits of the pool; ties mid-ranked."""
    x, y = (s.mean(axis=1) for s in _both(a, b))
    pooled = np.concatenate([x, y])
    levels = _levels(pooled, float(np.abs(pooled).max()))
    ranks = (2 * scipy.stats.rankdata(levels)).astype(np.int64)
    total = int(ranks.sum())
    # Floats count exactly to 2**53 and without cancellation after, where int64 would wrap round.
    ways = np.zeros((len(x) + 1, total + 1))
    ways[0, 0] = 1.0
    for rank in ranks:
        ways[1:, rank:] += ways[:-1, : total + 1 - rank].copy()
    expected = len(x) * (len(pooled) + 1)
    far = np.abs(np.arange(total + 1) - expected) >= abs(int(ranks[: len(x)].sum()) - expected)
    return min(1.0, float(ways[-1, far].sum() / math.comb(len(pooled), len(x))))


def welch(a: ArrayLike, b: ArrayLike) -> float:
    """Two-sided Welch t p; 1 where a side has one seed; 1 or 0 where neither side has spread."""
    x, y = (s.mean(axis=1) for s in _both(a, b))
    if min(len(x), len(y)) == 1:
        return 1.0
    first, second = ((s.mean(), math.sqrt(_variance(s)), len(s)) for s in (x, y))
    if first[1] == second[1] == 0:
        return float(x[0] == y[0])
    # ttest_ind itself warns where one side is constant.
    return float(scipy.stats.ttest_ind_from_stats(*first, *second, equal_var=False).pvalue)


def holm(p_values: ArrayLike) -> Floats:
    """Step-down: the i-th smallest of m becomes max over j <= i of (m - j + 1) p_j, at most 1."""
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise InputError(f"p values must be a flat list within 0 and 1; got {p.tolist()}")
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(np.arange(len(p), 0, -1) * p[order]))
    return adjusted


@dataclass(frozen=True)
class Comparison:
    """The first method's scores against the second's; p values as they are, not corrected."""

    delta: float
    low: float
    high: float
    d: float
    poi: float
    p_wilcoxon: float
    p_mann_whitney: float
    p_welch: float


@dataclass(frozen=True)
class ComparisonRow:
    """One pair of a family, with the p values Holm-corrected over that family, test by test."""

    first: str
    second: str
    result: Comparison
    holm_wilcoxon: float
    holm_mann_whitney: float
    holm_welch: float


@dataclass(frozen=True)
class Summary:
    """One method: mean and std over seeds, IQM and its 95% interval."""

    method: str
    seeds: int
    mean: float
    std: float
    iqm: float
    low: float
    high: float


def compare(a: ArrayLike, b: ArrayLike) -> Comparison:
    """Every comparison of `a` with `b`, seed by seed; delta = mean a - mean b."""
    first, second = _both(a, b, paired=True)
    return Comparison(
        float(np.mean(first - second)),
        *paired_interval(first, second),
        cohens_d(first, second),
        probability_of_improvement(first, second),
        wilcoxon_exact(first, second),
        mann_whitney_exact(first, second),
        welch(first, second),
    )


def summarise(scores_by_method: Mapping[str, ArrayLike]) -> list[Summary]:
    """One row a method, in the order given."""
    return [
        Summary(name, len(_scores(x)), *mean_std(x), iqm(x), *interval(x))
        for name, x in scores_by_method.items()
    ]


def compare_all(
    scores_by_method: Mapping[str, ArrayLike], pairs: Iterable[tuple[str, str]] | None = None
) -> list[ComparisonRow]:
    """One row a pair (None: the first method against each other one); the pairs are the Holm family."""
    names = list(scores_by_method)
    family = [(names[0], name) for name in names[1:]] if pairs is None else list(pairs)
    if not family:
        raise InputError("a comparison needs two methods; add the scores of another")
    for name in (name for pair in family for name in pair if name not in names):
        raise InputError(f"unknown method {name!r}{hint(name, names)}")
    results = [compare(scores_by_method[a], scores_by_method[b]) for a, b in family]
    raw = np.array([(r.p_wilcoxon, r.p_mann_whitney, r.p_welch) for r in results])
    corrected = np.apply_along_axis(holm, 0, raw).tolist()
    rows = zip(family, results, corrected, strict=True)
    return [ComparisonRow(*pair, result, *p) for pair, result, p in rows]


Rows = list[tuple[int, list[str]]]


def _refusal(path: object, line: int, column: str, fault: str) -> InputError:
    """The one line a bad file is refused with."""
    return InputError(f"{path}, line {line}, column {column!r}: {fault}")


def _read_rows(path: str | PathLike[str]) -> Rows:
    """The file's lines that hold something, numbered, the column names first."""
    try:
        text = files.read(Path(path)).decode("utf-8-sig")
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
    except (OSError, UnicodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: {reason}; give a CSV file of scores") from error
    rows = [(line, row) for line, row in rows if any(row)]
    if len(rows) < 2 or len(rows[0][1]) < 2:
        raise InputError(f"{path}: no scores; write a line of column names, then the scores")
    return rows


def _cells(path: object, rows: Rows) -> Iterator[tuple[int, str, str, str, str, str]]:
    """Line, column, method, task, seed and score of each score, whichever of the two shapes."""
    (top, header), *body = rows
    is_long = header[0] != "seed" or not {"method", "task", "score"}.isdisjoint(header)
    needed = ("method", "seed", "score") if is_long else header
    for name in (*needed, *(name for name in header if name == "task")):
        if header.count(name) != 1 or not name:
            fault = "write each of method, task, seed, score once, or seed and each method once"
            raise _refusal(path, top, name, fault)
    for line, row in body:
        if len(row) != len(header):
            fault = f"{len(row)} cells in the line; write {len(header)}"
            raise _refusal(path, line, header[-1], fault)
        cell = dict(zip(header, row, strict=True))
        if is_long:
            task = cell.get("task", "")
            yield line, "score", cell["method"], task, cell["seed"], cell["score"]
        else:
            yield from ((line, name, name, "", cell["seed"], cell[name]) for name in header[1:])


def _number(kind: type[int] | type[float], text: str) -> int | float | None:
    """`text` read as `kind`, or None where it is not a finite one."""
    try:
        number = kind(text)
        return number if math.isfinite(number) else None
    except (ValueError, OverflowError):
        return None


def read_scores(path: str | PathLike[str]) -> dict[str, Floats]:
    """Scores by method from a CSV: long (method, task, seed, score) or wide (seed, then the methods).

    Methods and tasks keep the file's order; seeds rise.
    """
    table: dict[tuple[str, str, float], float] = {}
    lines: dict[float, int] = {}
    for line, column, method, task, seed_text, score_text in _cells(path, _read_rows(path)):
        seed, score = _number(int, seed_text), _number(float, score_text)
        if not method:
            raise _refusal(path, line, "method", "empty; write the method's name")
        if seed is None:
            raise _refusal(path, line, "seed", f"{seed_text!r} is no whole number; write one")
        if score is None:
            raise _refusal(path, line, column, f"{score_text!r} is no finite number; write one")
        if (method, task, seed) in table:
            raise _refusal(path, line, column, f"{method}, seed {seed} again; keep one score")
        table[method, task, seed] = score
        lines.setdefault(seed, line)
    methods, tasks = (list(dict.fromkeys(key[i] for key in table)) for i in (0, 1))
    seeds = sorted(lines)
    for key in (key for key in product(methods, tasks, seeds) if key not in table):
        fault = (
            f"{' '.join(key[:2]).strip()} has no seed {key[2]}; add it, or drop it from the others"
        )
        raise _refusal(path, lines[key[2]], "seed", fault)
    return {m: np.array([[table[m, t, s] for t in tasks] for s in seeds]) for m in methods}
