"""The tables of `primax stats`, for reading, for a program and for a paper."""

import csv
import io
import math

from primax.output.sheet import Sheet, plain_p
from primax.stats import ComparisonRow, Summary

NOISE = 1e-13
"""What is smaller is left by rounding."""
FEW = 2
"""Seeds up to which an interval only says where the scores lie."""
MARK = "*"
FOOTNOTE = (
    f"{MARK} an interval of only two seeds: it shows where the two lie, not how sure the number is"
)
ALONE = "With one seed there is no spread and no interval."
COLUMNS = (
    "method",
    "seeds",
    "mean",
    "std",
    "iqm",
    "iqm_low",
    "iqm_high",
    "compared",
    "difference",
    "difference_low",
    "difference_high",
    "effect_size",
    "chance_first_is_better",
    "p_paired",
    "p_unpaired",
)


def summaries(rows: list[Summary], title: str) -> Sheet:
    """A row for each method."""
    cells = [
        (
            row.method,
            str(row.seeds),
            text(row.mean),
            text(row.std),
            text(row.iqm),
            interval(row.low, row.high, row.seeds),
        )
        for row in rows
    ]
    columns = ("method", "seeds", "mean", "std", "mean of the middle half", "its 95% interval")
    notes = (
        *_on_few(rows[0].seeds),
        "mean of the middle half: without the lowest and the highest quarter of the seeds (IQM)",
    )
    return Sheet("summaries", title, columns, tuple(cells), notes)


def comparisons(rows: list[ComparisonRow], seeds: int) -> Sheet:
    """A row for each pair."""
    cells = [
        (
            f"{row.first} - {row.second}",
            text(row.result.delta),
            interval(row.result.low, row.result.high, seeds),
            text(row.result.d),
            text(row.result.poi),
            plain_p(row.holm_wilcoxon),
            plain_p(row.holm_mann_whitney),
        )
        for row in rows
    ]
    columns = (
        "first - second",
        "difference",
        "its 95% interval",
        "effect size",
        "chance first is better",
        "p, paired",
        "p, unpaired",
    )
    notes = (
        *_on_few(seeds),
        "effect size: the difference in standard deviations over seeds (Cohen's d)",
        "chance first is better: of a seed of the first against a seed of the second",
        "p: exact Wilcoxon (paired by seed) and Mann-Whitney (unpaired), Holm-corrected",
    )
    return Sheet("comparisons", "", columns, tuple(cells), notes)


def one_csv(rows: list[Summary], compared: list[ComparisonRow]) -> str:
    """A row for each method, all digits; beside it the comparison of the first with it."""
    against = {row.second: row for row in compared}
    lines = [[*_plain(row), *_beside(against.get(row.method))] for row in rows]
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([COLUMNS, *lines])
    return out.getvalue()


def _plain(row: Summary) -> list[object]:
    numbers = (row.mean, row.std, row.iqm, row.low, row.high)
    return [row.method, row.seeds, *map(_cell, numbers)]


def _beside(row: ComparisonRow | None) -> list[object]:
    if row is None:
        return [""] * (len(COLUMNS) - COLUMNS.index("compared"))
    found = row.result
    numbers = (found.delta, found.low, found.high, found.d, found.poi)
    p = (row.holm_wilcoxon, row.holm_mann_whitney)
    return [f"{row.first} - {row.second}", *map(_cell, (*numbers, *p))]


def _cell(value: float) -> object:
    """Nothing where there is no number."""
    return "" if math.isnan(value) else value


def _on_few(seeds: int) -> tuple[str, ...]:
    return {1: (ALONE,), FEW: (FOOTNOTE,)}.get(seeds, ())


def interval(low: float, high: float, seeds: int) -> str:
    """From, to; marked where so few seeds have it that it says little."""
    if seeds == 1:
        return ""
    return f"{text(low)} to {text(high)}{MARK if seeds <= FEW else ''}"


def text(value: float) -> str:
    """Three decimals; of small values three digits."""
    if math.isnan(value):
        return ""
    return f"{value:#.3g}" if NOISE < abs(value) < 0.01 else f"{value:z.3f}"
