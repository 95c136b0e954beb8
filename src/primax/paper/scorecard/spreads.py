"""Standard deviations over seeds: numbers of the paper too, judged like the means beside them."""

from collections.abc import Iterator

import numpy as np

from primax import stats
from primax.paper.evidence import Published, Runs, need
from primax.paper.experiments import VARIANTS
from primax.paper.scorecard import rule
from primax.paper.scorecard.card import Number, Stated
from primax.paper.scorecard.rule import Judged
from primax.paper.scorecard.stated import in_text, scores


def of_scores(runs: Runs) -> Iterator[Number]:
    """Tables 1 and 2: the paper gives every seed, and both sides are resampled."""
    for where, variant, metric, (world, measure), given in scores():
        what = f"std over seeds of {VARIANTS[variant].label}, {metric}"
        stated = Stated(f"std.{variant}.{world}.{measure}", where, what, f"{given['std']:.2f}")

        def judged(cell=(variant, world, measure), std=given["std"]) -> Judged:
            ours, theirs = need(runs, *cell), need(Published(), *cell)
            difference = stats.difference_interval(ours, theirs, _std)
            return rule.against(f"{_std(ours):.2f}", difference, band(std, 2))

        yield stated.found(judged)


def of_scalars(runs: Runs) -> Iterator[Number]:
    """Of what the paper gives as mean ± std: its std is drawn as that of 15 normal seeds."""
    for name, where, world, measure, what, given in in_text():
        digits = len(str(given["std"]).partition(".")[2])
        stated = Stated(f"std.{name}", where, f"std over seeds of {what}", f"{given['std']:g}")

        def judged(w=world, m=measure, std=given["std"], digits=digits) -> Judged:
            ours = need(runs, "prime", w, m)
            text = f"{_std(ours):.{digits}f}"
            difference = rule.from_std(ours, std, 15)
            return rule.against(text, difference, band(std, digits), f".{digits}f")

        yield stated.found(judged)


def band(std: float, digits: int) -> rule.Interval:
    """A factor of two, or half of the last digit that is printed where that is more."""
    (low, high), half = rule.factor_band(std), 0.5 * 10.0**-digits
    return min(low, -half), max(high, half)


def _std(values: stats.Floats, axis: int = -1) -> stats.Floats | np.floating:
    return np.std(values, axis=axis, ddof=1)
