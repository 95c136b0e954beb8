"""Effect sizes and outcomes of tests, six numbers a row of Table 5."""

from collections.abc import Callable, Iterator

import numpy as np

from primax import stats
from primax.output.sheet import ABSENT, bracket, number, plain_p
from primax.paper.evidence import MissingError, Published, Runs, pair
from primax.paper.published import published
from primax.paper.scorecard import rule
from primax.paper.scorecard.card import Number, Stated
from primax.paper.scorecard.rule import Judged
from primax.paper.tables.comparisons import FAMILY, Compared, Pair, compared

SHOWN = {
    "delta": "Δ",
    "interval": "paired interval",
    "holm_wilcoxon": "Wilcoxon p, Holm",
    "holm_mann_whitney": "Mann-Whitney p, Holm",
}
Sides = tuple[stats.Floats, stats.Floats]


def comparisons(runs: Runs) -> Iterator[Number]:
    """Table 5. A p value is corrected over the whole family: where one is gone none can be told."""
    found = compared(runs, FAMILY)
    gone = next((result for result in found.values() if isinstance(result, MissingError)), None)
    for each, given in zip(FAMILY, published()["comparisons"]["rows"], strict=True):
        parts = (*_sizes(runs, each, given), *_outcomes(given, found[each], gone))
        for name, printed, judged in parts:
            what = f"{each.label}: {SHOWN.get(name, name)}"
            yield Stated(f"{name}.{each.id}", "tab:stats", what, printed).found(judged)


Part = tuple[str, str, Callable[[], Judged]]


def _sizes(runs: Runs, each: Pair, given: dict) -> Iterator[Part]:
    """Δ, d and PoI, each by the interval of ours less the paper's."""
    margin = rule.within(rule.MARGINS[each.world, each.measure])
    printed = f"{given['delta']:+.3f} {bracket(*given['interval'], 3, '+')}"

    def sides() -> tuple[Sides, Sides]:
        names, cell = (each.first, each.second), (each.world, each.measure)
        return pair(runs, names, *cell), pair(Published(), names, *cell)

    def delta() -> Judged:
        (a, b), (c, d) = sides()
        text = f"{np.mean(a - b):+.3f} {bracket(*stats.paired_interval(a, b), 3, '+')}"
        return rule.against(text, stats.difference_interval(a - b, c - d), margin, ".3f")

    def effect() -> Judged:
        ours, theirs = sides()
        difference = rule.effect_difference(ours, theirs, cohens_d)
        return rule.against(number(stats.cohens_d(*ours)), difference, rule.factor_band(given["d"]))

    def poi() -> Judged:
        ours, theirs = sides()
        difference = rule.effect_difference(ours, theirs, improvement)
        text = f"{stats.probability_of_improvement(*ours):.2f}"
        return rule.against(text, difference, rule.within(rule.POI_MARGIN))

    yield "delta", printed, delta
    yield "d", number(given["d"]), effect
    yield "PoI", f"{given['poi']:.2f}", poi


def cohens_d(a: stats.Floats, b: stats.Floats) -> stats.Floats:
    """Of every redraw, rows of as many seeds on either side; signed inf, or 0, if no spread."""
    spread = np.sqrt((a.var(axis=-1, ddof=1) + b.var(axis=-1, ddof=1)) / 2)
    gap, least = (
        a.mean(axis=-1) - b.mean(axis=-1),
        stats.TIE * max(np.abs(a).max(), np.abs(b).max()),
    )
    none = np.where(np.abs(gap) <= least, 0.0, np.copysign(np.inf, gap))
    return np.where(spread > least, gap / np.maximum(spread, 1e-300), none)


def improvement(a: stats.Floats, b: stats.Floats) -> stats.Floats:
    """Of every redraw, the chance that a seed of the first is better; ties count half."""
    gap = a[..., :, None] - b[..., None, :]
    tie = stats.TIE * max(np.abs(a).max(), np.abs(b).max())
    sign = np.where(np.abs(gap) <= tie, 0.0, np.sign(gap))
    return (sign.mean(axis=(-1, -2)) + 1) / 2


def _outcomes(given: dict, found: Compared, gone: MissingError | None) -> Iterator[Part]:
    """The interval's side of zero, and the two corrected p values: a yes or a no each."""

    def row() -> stats.ComparisonRow:
        if isinstance(found, MissingError):
            raise found
        return found[0]

    def excludes() -> Judged:
        ours = side_of_zero(row().result.low, row().result.high)
        verdict = rule.REPRODUCED if ours == side_of_zero(*given["interval"]) else rule.DIFFERS
        return Judged(ours, ABSENT, verdict)

    yield "interval", side_of_zero(*given["interval"]), excludes
    for name in ("holm_wilcoxon", "holm_mann_whitney"):
        theirs = given[name]
        text = f"<{theirs['below']:g}" if isinstance(theirs, dict) else f"{theirs:.3f}"
        limit = theirs["below"] if isinstance(theirs, dict) else theirs

        def p(name: str = name, limit: float = limit) -> Judged:
            if gone is not None:
                raise gone
            value = getattr(row(), name)
            is_agreed = (value < 0.05) == (limit < 0.05)
            is_opposed = value < 0.05 and row().result.delta * given["delta"] <= 0
            verdict = rule.REPRODUCED if is_agreed and not is_opposed else rule.DIFFERS
            return Judged(plain_p(value), ABSENT, verdict)

        yield name, text, p


def side_of_zero(low: float, high: float) -> str:
    """Where an interval lies."""
    if low > 0:
        return "above zero"
    return "below zero" if high < 0 else "holds zero"
