"""Every number of the paper beside ours, with a verdict."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from primax.output.sheet import ABSENT, Sheet
from primax.paper.evidence import MissingError
from primax.paper.scorecard import rule

COLUMNS = ("id", "where", "what", "paper", "ours", "difference, 95%", "verdict", "remark")
KINDS = {
    "means and IQMs of scores": ("mean", "iqm"),
    "standard deviations": ("std",),
    "differences and effect sizes": ("delta", "d", "PoI"),
    "outcomes of tests": ("interval", "holm_wilcoxon", "holm_mann_whitney"),
}
"""What a number is, by the first word of its id; the rest are of single runs and their insides."""
OTHERS = "others"
NO_LEARNING = ("random", "position_only", "settings", "floor", "log5", "ceiling")
"""Scripted policies, settings and arithmetic: whatever an agent learns, they stay."""
RULE = (
    "Reproduced: the 95% bootstrap interval of the difference (ours minus the paper's) lies inside "
    "the margin. If it does not contain zero, the two differ reliably, but by less than the margin.",
    "Above, below: the interval is not inside the margin, and all of it is on one side of zero.",
    "Undecided: the interval is not inside the margin, and it contains zero.",
    "Differs: a yes or no came out the other way (p below 0.05 in the same direction, the "
    "interval's side of zero, a setting).",
    "The paper's seeds are not ours, so the two sides are resampled separately. [Rules](rules.md) "
    "has what is compared for each kind of number, and the margin.",
    "A std beside a mean has a row of its own. Numbers that the paper repeats are listed once. "
    "Single seeds are not compared, because the paper's seeds are not ours.",
)
"""How verdicts come about, a note for each."""


@dataclass(frozen=True)
class Number:
    """A number the paper states, and what became of it."""

    id: str
    where: str
    what: str
    paper: str
    ours: str
    interval: str
    verdict: str
    is_apart: bool = False
    """Whether the interval of the difference is known, and all on one side of zero."""

    @property
    def is_learnt(self) -> bool:
        """Whether what an agent learns can change it."""
        return self.id.partition(".")[0] not in NO_LEARNING


@cache
def remarks() -> dict[str, str]:
    """A sentence for numbers whose verdict needs one, by id."""
    return json.loads((files("primax.paper") / "remarks.json").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Stated:
    """What the paper says, before anything is measured."""

    id: str
    where: str
    what: str
    paper: str

    def found(self, judged: Callable[[], rule.Judged]) -> Number:
        """With ours, the interval and the verdict; `not run` where what it needs is missing."""
        try:
            result = judged()
        except MissingError as error:
            result = rule.Judged(f"({error})", ABSENT, rule.NOT_RUN)
        return Number(self.id, self.where, self.what, self.paper, *result)


def sheet(numbers: list[Number]) -> Sheet:
    """The scorecard as a table, the count of each verdict above it."""
    notes = tuple(_notes(numbers))
    above = (_counted(numbers), _by_kind([n for n in numbers if n.is_learnt]))
    return Sheet("scorecard", "Scorecard", COLUMNS, _rows(numbers), notes, above)


def missed(numbers: list[Number]) -> Sheet:
    """Those that are judged and not reproduced."""
    rows = _rows([n for n in numbers if n.verdict not in (rule.REPRODUCED, rule.NOT_RUN)])
    return Sheet("missed", "Numbers that are not reproduced", COLUMNS, rows)


def _rows(numbers: list[Number]) -> tuple[tuple[str, ...], ...]:
    remark = remarks()
    return tuple(
        (
            f"`{n.id}`",
            n.where,
            n.what,
            n.paper,
            n.ours,
            n.interval,
            n.verdict,
            remark.get(n.id, ""),
        )
        for n in numbers
    )


def rules() -> Sheet:
    """What is compared for each kind of number, and when it is reproduced."""
    columns = ("numbers", "what is compared", "reproduced")
    return Sheet("rules", "The rule for each kind of number", columns, rule.RULES)


def _counted(numbers: list[Number]) -> str:
    """Of what learning decides; then of what needs none, which nobody should read as a success."""
    learnt, rest = ([n for n in numbers if n.is_learnt == is_learnt] for is_learnt in (True, False))
    told = (
        [f"Of {len(learnt)} numbers that depend on learning: {_verdicts(learnt)}."]
        if learnt
        else []
    )
    if rest:
        told.append(f"Of {len(rest)} that need none: {_verdicts(rest)}.")
    return " ".join(told)


def _verdicts(numbers: list[Number]) -> str:
    counts = Counter(n.verdict for n in numbers)
    parts = {name: f"{counts[name]} {name}" for name in rule.VERDICTS if counts[name]}
    if apart := sum(n.is_apart for n in numbers if n.verdict == rule.REPRODUCED):
        parts[rule.REPRODUCED] += f" ({apart} of them differ reliably, but by less than the margin)"
    return ", ".join(parts.values())


def _by_kind(numbers: list[Number]) -> str:
    """How many of each kind are reproduced: a p value on its side of 0.05 is no mean."""
    kinds = {word: kind for kind, words in KINDS.items() for word in words}
    of = [kinds.get(n.id.partition(".")[0], OTHERS) for n in numbers]
    good = Counter(
        kind for kind, n in zip(of, numbers, strict=True) if n.verdict == rule.REPRODUCED
    )
    told = [f"{good[kind]} of {of.count(kind)} {kind}" for kind in (*KINDS, OTHERS) if kind in of]
    return f"Reproduced by kind: {', '.join(told)}."


def _notes(numbers: list[Number]) -> Iterator[str]:
    yield from RULE
    if any(n.verdict == rule.NOT_RUN for n in numbers):
        yield "`not run`: `primax reproduce --plan` says what is missing and what it costs."
    margins = ", ".join(
        f"{world} {measure.removeprefix('tail:')} {margin:g}"
        for (world, measure), margin in rule.MARGINS.items()
    )
    yield f"Margins: {margins}; probability of improvement {rule.POI_MARGIN:g}."
    yield (
        "`floor`, `log5` and `ceiling` are arithmetic; `random.catch`, `random.maze` and "
        "`position_only` are exact scores of scripted policies. No run can change them."
    )
    yield "`where` is the paper's own label of a table or section."
