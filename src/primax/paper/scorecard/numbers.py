"""Means and IQMs of scores, judged against the paper's seeds."""

from collections.abc import Iterator

from primax import stats
from primax.output.sheet import bracket, plus_minus
from primax.paper.evidence import PAPERS_MEASURE, PAPERS_NAME, Published, Runs, need
from primax.paper.experiments import VARIANTS
from primax.paper.published import published
from primax.paper.scorecard import rule
from primax.paper.scorecard.card import Number, Stated
from primax.paper.scorecard.rule import Judged
from primax.paper.scorecard.stated import scores
from primax.paper.tables.results import ALL, METRICS


def means(runs: Runs) -> Iterator[Number]:
    """Tables 1 and 2."""
    for where, variant, metric, (world, measure), given in scores():
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
