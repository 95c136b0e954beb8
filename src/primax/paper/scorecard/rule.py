"""When a published number counts as reproduced.

`reproduced`  the 95% bootstrap interval of the difference (ours less the paper's) lies inside a
              margin stated for the measure; where the paper gives no spread, the interval of our
              mean lies within a factor of two of its value. Zero need not lie in it: such numbers
              differ reliably, if little, and are counted apart. `RULES` says it kind by kind
`above`, `below`   it does not, and the interval of the difference is all on one side of zero
`undecided`   it does not, and the interval holds zero: more seeds would tell
`differs`     a yes or no (p below 0.05, an interval on a side of zero) is the other one
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from primax import stats

REPRODUCED, ABOVE, BELOW = "reproduced", "above", "below"
UNDECIDED, DIFFERS = "undecided", "differs"
UNDETERMINED, NOT_RUN = "not determined by the text", "not run"
VERDICTS = (REPRODUCED, ABOVE, BELOW, UNDECIDED, DIFFERS, UNDETERMINED, NOT_RUN)

FACTOR = 2.0
SLACK = 1e-9
"""Ends that meet a margin to the last digit are inside."""
MARGINS = {
    ("butterflies", "average"): 0.25,
    ("butterflies", "peak"): 0.30,
    ("maze", "average"): 0.10,
    ("maze", "peak"): 0.10,
    ("maze", "last"): 0.10,
    ("butterflies", "episode_std"): 0.05,
    ("butterflies", "coverage_fall"): 0.02,
    ("butterflies", "distance_tail"): 0.25,
    ("butterflies", "tail:mutual_information"): 0.10,
    ("maze", "tail:mutual_information"): 0.10,
    ("maze", "tail:greedy_entropy"): 0.005,
    ("butterflies", "tail:pi_ref_from_u"): 0.01,
    ("maze", "tail:pi_ref_from_u"): 0.01,
}
"""Catches an episode; shares of episodes; cells; nats; L1."""
POI_MARGIN = 0.10

Interval = tuple[float, float]
RULES = (
    ("means, IQMs and differences of scores",
     "means over seeds; both sides resampled, seeds of a difference in pairs",
     "a margin for each measure"),
    ("d", "Cohen's d; both sides resampled, seeds in pairs", "a factor of two"),
    ("PoI", "probability of improvement; both sides resampled, seeds in pairs", "0.10"),
    ("standard deviations over seeds",
     "both sides resampled; where the paper gives no seeds, its std is drawn as that of normal seeds",
     "a factor of two, or half of the last printed digit if that is more"),
    ("p values, sides of zero", "a yes or a no each", "the same answer, in the same direction"),
    ("mean ± std in the text", "means; the paper's is drawn from a normal law",
     "a margin for each measure"),
    ("tail values without a spread", "our mean against the value", "a factor of two"),
    ("V_ale", "the same, of all rows and of rows with data",
     "a factor of two; if the two verdicts differ, it is not determined by the text"),
    ("first deciles", "our mean against the value, as it is rounded",
     "the interval holds the value, and is within a factor of two of it"),
    ("|y|", "the tail mean of the largest target of each minibatch (of each window in runs that did not "
     "keep that) against the middle of the range", "a factor of two"),
    ("Maze peak, range over seeds", "our range", "the paper's range, 0.10 wider at both ends"),
    ("seeds that do something", "their share", "one seed of fifteen"),
    ("exact scores, arithmetic (no learning)", "the number", "0.05 (Maze 0.005); 1%"),
    ("settings (no learning)", "how many have the paper's value and an effect", "all of them"),
)  # fmt: skip
"""For each kind of number: what is compared, and what makes it reproduced."""


class Judged(NamedTuple):
    """What became of a number."""

    ours: str
    interval: str
    """Of ours less the paper's."""
    verdict: str
    is_apart: bool = False
    """Whether that interval, with both sides' spread in it, is all on one side of zero."""


def against(ours: str, difference: Interval, band: Interval, form: str = ".2f") -> Judged:
    """A number with an interval of the difference, against the band around zero it should lie in."""
    low, high = difference
    text = f"[{low:+z{form}}, {high:+z{form}}]"
    return Judged(ours, text, verdict(difference, band), low > SLACK or high < -SLACK)


def against_value(
    text: str, ours: stats.Floats, value: float, band: Interval, form: str = ".2f"
) -> Judged:
    """The same where the paper prints a rounded value and no spread: apart it cannot be called."""
    return against(text, from_value(ours, value), band, form)._replace(is_apart=False)


def against_printed(text: str, ours: stats.Floats, value: float, form: str) -> Judged:
    """A value of two figures as it stands: our interval must hold it, as far as it is rounded."""
    half = 0.5 * 10.0 ** (np.floor(np.log10(abs(value))) - 1)
    low, high = from_value(ours, value)
    judged = against(text, (low, high), factor_band(value), form)
    if judged.verdict == REPRODUCED and (low > half or high < -half):
        return judged._replace(verdict=ABOVE if low > half else BELOW)
    return judged._replace(is_apart=False)


def verdict(difference: Interval, band: Interval) -> str:
    """Of an interval of ours less the paper's, and the band around zero it should lie in."""
    low, high = difference
    if band[0] - SLACK <= low and high <= band[1] + SLACK:
        return REPRODUCED
    if low > 0:
        return ABOVE
    return BELOW if high < 0 else UNDECIDED


def within(margin: float) -> Interval:
    """The same distance up and down."""
    return -margin, margin


def factor_band(value: float) -> Interval:
    """From half to twice a value, as differences from it."""
    ends = value / FACTOR - value, value * FACTOR - value
    return min(ends), max(ends)


def from_value(ours: stats.Floats, value: float) -> Interval:
    """Interval of our mean less a value that is taken as it stands."""
    low, high = stats.interval(ours, np.mean)
    return low - value, high - value


def from_spread(ours: stats.Floats, mean: float, std: float, seeds: int) -> Interval:
    """The same where the paper gives mean ± std: its mean is redrawn from a normal law."""
    stream = np.random.default_rng(0)
    rows = stream.integers(len(ours), size=(10_000, len(ours)))
    theirs = stream.normal(mean, std / np.sqrt(seeds), 10_000)
    low, high = np.quantile(ours[rows].mean(axis=1) - theirs, [0.025, 0.975])
    return float(low), float(high)


def from_std(ours: stats.Floats, std: float, seeds: int) -> Interval:
    """Of standard deviations: ours is resampled, the paper's drawn as that of so many normal seeds."""
    stream = np.random.default_rng(0)
    rows = stream.integers(len(ours), size=(10_000, len(ours)))
    theirs = std * np.sqrt(stream.chisquare(seeds - 1, 10_000) / (seeds - 1))
    low, high = np.quantile(np.std(ours[rows], axis=1, ddof=1) - theirs, [0.025, 0.975])
    return float(low), float(high)


def effect_difference(
    ours: tuple[stats.Floats, stats.Floats],
    theirs: tuple[stats.Floats, stats.Floats],
    effect: Callable[[stats.Floats, stats.Floats], stats.Floats],
) -> Interval:
    """Of an effect size, ours less the paper's: on each side seeds are redrawn in pairs."""
    stream = np.random.default_rng(0)

    def drawn(a: stats.Floats, b: stats.Floats) -> stats.Floats:
        rows = stream.integers(len(a), size=(10_000, len(a)))
        return effect(a[rows], b[rows])

    with np.errstate(invalid="ignore"):
        gap = drawn(*ours) - drawn(*theirs)
    gap[np.isnan(gap)] = 0.0  # without spread on either side: both infinite, and of one sign
    between = "linear" if np.isfinite(gap).all() else "nearest"
    low, high = np.quantile(gap, [0.025, 0.975], method=between)
    return float(low), float(high)
