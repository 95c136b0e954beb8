"""When a published number counts as reproduced.

`reproduced`  the 95% bootstrap interval of the difference (ours less the paper's) lies inside a
              margin stated for the measure; where the paper gives no spread, the interval of our
              mean lies within a factor of two of its value. Zero need not lie in it: such numbers
              differ reliably, if little, and are counted apart
`above`, `below`   it does not, and the interval of the difference is all on one side of zero
`undecided`   it does not, and the interval holds zero: more seeds would tell
`differs`     a yes or no (p below 0.05, an interval on a side of zero) is the other one
"""

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
