"""The paper's numbers, one by one, judged against a source."""

from collections.abc import Iterator

import numpy as np

from primax import stats
from primax.output.sheet import ABSENT, bracket, number, plain_p, plus_minus
from primax.paper.evidence import (
    PAPERS_MEASURE,
    PAPERS_NAME,
    MissingError,
    Published,
    Runs,
    need,
    pair,
)
from primax.paper.experiments import VARIANTS
from primax.paper.published import published
from primax.paper.scorecard import rule
from primax.paper.scorecard.card import Number, Stated
from primax.paper.scorecard.rule import Judged
from primax.paper.tables.comparisons import FAMILY, Compared, Pair, compared
from primax.paper.tables.results import ABLATIONS, ALL, MAIN, METRICS

SHOWN = {
    "interval": "paired interval",
    "holm_wilcoxon": "Wilcoxon p, Holm",
    "holm_mann_whitney": "Mann-Whitney p, Holm",
}


def means(runs: Runs) -> Iterator[Number]:
    """Tables 1 and 2."""
    groups = [("tab:main", "main", v) for v in MAIN if v != "random"]
    groups += [("tab:ablations", "ablations", v) for v in ABLATIONS if v != "prime"]
    for where, group, variant in groups:
        for metric, (world, measure) in METRICS.items():
            name = PAPERS_NAME.get(variant, variant)
            given = published()[group][world][PAPERS_MEASURE[measure]][name]
            what = f"{VARIANTS[variant].label}, {metric}"
            printed = plus_minus(given["mean"], given["std"])
            stated = Stated(f"mean.{variant}.{world}.{measure}", where, what, printed)
            yield stated.found(lambda v=variant, w=world, m=measure: _mean(runs, v, w, m))


def _mean(runs: Runs, variant: str, world: str, measure: str) -> Judged:
    ours = need(runs, variant, world, measure)
    theirs = need(Published(), variant, world, measure)
    difference = stats.difference_interval(ours, theirs)
    band = rule.within(rule.MARGINS[world, measure])
    return rule.against(plus_minus(*stats.mean_std(ours)), difference, band)


def iqms(runs: Runs) -> Iterator[Number]:
    """Table 6."""
    for variant in ALL:
        for metric, (world, measure) in METRICS.items():
            name = PAPERS_NAME.get(variant, variant)
            given = published()["iqm"][world][PAPERS_MEASURE[measure]][name]
            printed = f"{given['iqm']:.2f} {bracket(*given['interval'])}"
            what = f"IQM of {VARIANTS[variant].label}, {metric}"
            stated = Stated(f"iqm.{variant}.{world}.{measure}", "tab:iqm", what, printed)
            yield stated.found(lambda v=variant, w=world, m=measure: _iqm(runs, v, w, m))


def _iqm(runs: Runs, variant: str, world: str, measure: str) -> Judged:
    ours = need(runs, variant, world, measure)
    theirs = need(Published(), variant, world, measure)
    difference = stats.difference_interval(ours, theirs, stats.iqm)
    text = f"{stats.iqm(ours):.2f} {bracket(*stats.interval(ours))}"
    band = rule.within(rule.MARGINS[world, measure])
    return rule.against(text, difference, band)


def comparisons(runs: Runs) -> Iterator[Number]:
    """Table 5, six numbers a row."""
    found = compared(runs, FAMILY)
    gone = next((result for result in found.values() if isinstance(result, MissingError)), None)
    for each, given in zip(FAMILY, published()["comparisons"]["rows"], strict=True):
        yield _delta(runs, each, given).found(lambda e=each: _delta_judged(runs, e))
        for name, printed, judged in _effects(given, found[each], gone):
            what = f"{each.label}: {SHOWN.get(name, name)}"
            stated = Stated(f"{name}.{each.id}", "tab:stats", what, printed)
            yield stated.found(judged)


def _delta(runs: Runs, each: Pair, given: dict) -> Stated:
    printed = f"{given['delta']:+.3f} {bracket(*given['interval'], 3, '+')}"
    return Stated(f"delta.{each.id}", "tab:stats", f"{each.label}: Δ", printed)


def _delta_judged(runs: Runs, each: Pair) -> Judged:
    sides = (each.first, each.second)
    a, b = pair(runs, sides, each.world, each.measure)
    c, d = pair(Published(), sides, each.world, each.measure)
    difference = stats.difference_interval(a - b, c - d)
    text = f"{np.mean(a - b):+.3f} {bracket(*stats.paired_interval(a, b), 3, '+')}"
    band = rule.within(rule.MARGINS[each.world, each.measure])
    return rule.against(text, difference, band, ".3f")


def _effects(given: dict, found: Compared, gone: MissingError | None):
    """d, PoI, the interval's side of zero, and the two corrected p values.

    A p value is corrected over the whole family: where one of it is `gone` it cannot be told.
    """

    def row() -> stats.ComparisonRow:
        if isinstance(found, MissingError):
            raise found
        return found[0]

    def d() -> Judged:
        value = row().result.d
        band, apart = rule.factor_band(given["d"]), value - given["d"]
        return Judged(number(value), ABSENT, rule.verdict((apart, apart), band))

    def poi() -> Judged:
        value = row().result.poi
        apart = value - given["poi"]
        band = rule.within(rule.POI_MARGIN)
        return Judged(f"{value:.2f}", ABSENT, rule.verdict((apart, apart), band))

    def excludes() -> Judged:
        ours = side_of_zero(row().result.low, row().result.high)
        verdict = rule.REPRODUCED if ours == side_of_zero(*given["interval"]) else rule.DIFFERS
        return Judged(ours, ABSENT, verdict)

    yield "d", number(given["d"]), d
    yield "PoI", f"{given['poi']:.2f}", poi
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
