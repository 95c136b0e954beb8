"""Pairs of variants compared seed by seed: the paper's eleven, those it leaves out, the rest."""

from dataclasses import dataclass

from primax import stats
from primax.output.sheet import ABSENT, Sheet, bracket, number, p_value
from primax.paper.evidence import PAPERS_MEASURE, PAPERS_NAME, MissingError, Source, pair
from primax.paper.experiments import VARIANTS
from primax.paper.published import published

COLUMNS = ("comparison", "Δ", "95% CI", "d", "PoI", "p_W", "p_U", "p_t", "seeds")


@dataclass(frozen=True)
class Pair:
    """The first less the second, by one measure in one world."""

    first: str
    second: str
    world: str
    measure: str

    @property
    def label(self) -> str:
        """As a row is called."""
        what = {"average": "average", "peak": "peak"}[self.measure]
        sides = f"{VARIANTS[self.first].label} - {VARIANTS[self.second].label}"
        return f"{sides} ({self.world.capitalize()}, {what})"

    @property
    def id(self) -> str:
        """As a number is called."""
        return f"{self.first}-{self.second}.{self.world}.{self.measure}"


def _ours(name: str) -> str:
    """The variant the paper's name stands for."""
    return next((ours for ours, theirs in PAPERS_NAME.items() if theirs == name), name)


def _papers() -> tuple[Pair, ...]:
    """In the order of the paper's table."""
    measures = {theirs: ours for ours, theirs in PAPERS_MEASURE.items()}
    return tuple(
        Pair(_ours(row["first"]), _ours(row["second"]), row["world"], measures[row["metric"]])
        for row in published()["comparisons"]["rows"]
    )


FAMILY = _papers()
"""The paper's eleven."""
BOTH = (("butterflies", "average"), ("butterflies", "peak"), ("maze", "peak"))
LEFT_OUT = (
    Pair("prime", "rnd", "maze", "peak"),
    Pair("prime", "disagreement", "maze", "peak"),
    Pair("prime", "smirl", "butterflies", "average"),
    Pair("prime", "smirl", "butterflies", "peak"),
    *(Pair("prime", "rnd_gamma", *metric) for metric in BOTH),
    *(Pair("prime_relu", "prime", *metric) for metric in BOTH),
    *(Pair("task_relu", "task", *metric) for metric in BOTH),
)
"""What it leaves out: two baselines that win on Maze, one that loses, the controls."""
REST = (
    *(
        Pair("prime", name, *metric)
        for name in (
            "prime_k1_statistics",
            "prime_no_penalty",
            "prime_nearest16",
            "prime_knn16",
            "rnd_snapshot",
            "s_adapt",
            "moss",
        )
        for metric in BOTH
    ),
    *(Pair("rnd_snapshot", "rnd", *metric) for metric in (*BOTH, ("maze", "average"))),
)
"""PRIME and every other variant that learns and has all its seeds; RND frozen and not."""

Rows = tuple[tuple[str, ...], ...]


Compared = tuple[stats.ComparisonRow, int] | MissingError
"""A row and its number of seeds, or what is missing."""


def compared(source: Source, family: tuple[Pair, ...]) -> dict[Pair, Compared]:
    """Each pair, with Holm's correction over those that are there."""
    scores: dict[str, stats.Floats] = {}
    found: dict[Pair, Compared] = {}
    there = []
    for each in family:
        try:
            a, b = pair(source, (each.first, each.second), each.world, each.measure)
        except MissingError as error:
            found[each] = error
            continue
        scores |= {f"{each.id} first": a, f"{each.id} second": b}
        there.append(each)
    names = [(f"{each.id} first", f"{each.id} second") for each in there]
    rows = stats.compare_all(scores, names) if names else []
    for each, row in zip(there, rows, strict=True):
        found[each] = row, len(scores[f"{each.id} first"])
    return found


def comparison_rows(
    source: Source, family: tuple[Pair, ...]
) -> tuple[tuple[str, ...], Rows, tuple[str, ...]]:
    """Columns, rows and notes of a family."""
    found = compared(source, family)
    there = sum(not isinstance(result, MissingError) for result in found.values())
    rows = []
    for each in family:
        result = found[each]
        if isinstance(result, MissingError):
            rows.append((each.label, f"({result})", *[ABSENT] * 7))
        else:
            rows.append((each.label, *_cells(*result)))
    notes = [
        "Δ: difference of the means over seeds, with its bootstrap interval (seeds are resampled in "
        "pairs); d: Cohen's d; PoI: chance that a seed of the first is better than a seed of the "
        "second; p: exact Wilcoxon, exact Mann-Whitney and Welch, each Holm-corrected over these "
        f"{there} comparisons. Bold: below 0.05."
    ]
    if there < len(family):
        notes.append(f"{len(family) - there} of {len(family)} comparisons are not there yet.")
    return COLUMNS, tuple(rows), tuple(notes)


def _cells(row: stats.ComparisonRow, seeds: int) -> tuple[str, ...]:
    result = row.result
    return (
        f"{result.delta:+z.3f}",
        bracket(result.low, result.high, 3, "+"),
        number(round(result.d, 9)),
        f"{result.poi:.2f}",
        p_value(row.holm_wilcoxon),
        p_value(row.holm_mann_whitney),
        p_value(row.holm_welch),
        str(seeds),
    )


def completed(source: Source) -> Sheet:
    """The paper's eleven and what they leave out, corrected together."""
    columns, rows, notes = comparison_rows(source, (*FAMILY, *LEFT_OUT))
    title = "Table A. The comparison family completed (not in the paper)"
    return Sheet("tableA", title, columns, rows, notes)


def rest(source: Source) -> Sheet:
    """Variants that no other table compares, a family of their own."""
    columns, rows, notes = comparison_rows(source, REST)
    title = "Table D. The other variants (not in the paper)"
    return Sheet("tableD", title, columns, rows, notes)
