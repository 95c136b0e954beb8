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

OURS = ("ours", "difference, 95%", "verdict")
COLUMNS = ("id", "where", "what", "paper", *OURS, "remark")
FIT = tuple(f"nearest: {column}" for column in OURS)
"""The same under the reading that is nearest to the paper's numbers."""
KINDS = {
    "means and IQMs of scores": ("mean", "iqm"),
    "standard deviations": ("std",),
    "differences and effect sizes": ("delta", "d", "PoI"),
    "outcomes of tests": ("interval", "holm_wilcoxon", "holm_mann_whitney"),
}
"""What a number is, by the first word of its id; the rest are of single runs and their insides."""
OTHERS = "others"
NEAREST = "Under the reading nearest to the paper, which was chosen by these numbers:"
WHO = {
    (True, True): "both",
    (True, False): "the text taken literally alone",
    (False, True): "the nearest reading alone",
    (False, False): "neither",
}
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
    def found(self) -> tuple[str, str, str]:
        """What came of it, in the order of OURS."""
        return self.ours, self.interval, self.verdict

    @property
    def is_learnt(self) -> bool:
        """Whether what an agent learns can change it."""
        return self.id.partition(".")[0] not in NO_LEARNING


Numbers = list[Number]


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


def sheet(numbers: Numbers, nearest: Numbers | None = None) -> Sheet:
    """The scorecard as a table, the count of each verdict above it; under the nearest reading too."""
    notes = tuple(_notes(numbers))
    above = _counts(numbers)
    if nearest is not None:
        learnt, kinds = _counts(nearest)
        above += (f"{NEAREST} {learnt}", kinds)
    return Sheet("scorecard", "Scorecard", *_table(numbers, nearest), notes, above)


def _counts(numbers: Numbers) -> tuple[str, str]:
    return _counted(numbers), _by_kind([n for n in numbers if n.is_learnt])


def missed(numbers: Numbers, nearest: Numbers | None = None) -> Sheet:
    """Those that are judged and not reproduced."""
    at = [i for i, n in enumerate(numbers) if n.verdict not in (rule.REPRODUCED, rule.NOT_RUN)]
    parts = [None if of is None else [of[i] for i in at] for of in (numbers, nearest)]
    return Sheet("missed", "Numbers that are not reproduced", *_table(parts[0] or [], parts[1]))


def explained(numbers: Numbers, nearest: Numbers) -> Sheet:
    """Which reading reproduces which number, of those that learning decides."""
    found: dict[tuple[bool, bool], list[str]] = {}
    for ours, fit in zip(numbers, nearest, strict=True):
        if ours.is_learnt:
            pair = ours.verdict == rule.REPRODUCED, fit.verdict == rule.REPRODUCED
            found.setdefault(pair, []).append(f"`{ours.id}`")
    rows = []
    for pair, who in WHO.items():
        ids = found.get(pair, [])
        rows.append((who, str(len(ids)), ", ".join(ids) or ABSENT))
    columns = ("reproduced by", "numbers", "which")
    return Sheet("explained", "Which reading reproduces what", columns, tuple(rows))


def _table(
    numbers: Numbers, nearest: Numbers | None
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Columns and rows."""
    if nearest is None:
        return COLUMNS, tuple((*_stated(n), *n.found, _remark(n)) for n in numbers)
    rows = tuple(
        (*_stated(n), *n.found, *fit.found, _remark(n))
        for n, fit in zip(numbers, nearest, strict=True)
    )
    return (*COLUMNS[:-1], *FIT, COLUMNS[-1]), rows


def _stated(number: Number) -> tuple[str, ...]:
    return f"`{number.id}`", number.where, number.what, number.paper


def _remark(number: Number) -> str:
    return remarks().get(number.id, "")


def rules() -> Sheet:
    """What is compared for each kind of number, and when it is reproduced."""
    columns = ("numbers", "what is compared", "reproduced")
    return Sheet("rules", "The rule for each kind of number", columns, rule.RULES)


def _counted(numbers: Numbers) -> str:
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


def _verdicts(numbers: Numbers) -> str:
    counts = Counter(n.verdict for n in numbers)
    parts = {name: f"{counts[name]} {name}" for name in rule.VERDICTS if counts[name]}
    if apart := sum(n.is_apart for n in numbers if n.verdict == rule.REPRODUCED):
        parts[rule.REPRODUCED] += f" ({apart} of them differ reliably, but by less than the margin)"
    return ", ".join(parts.values())


def _by_kind(numbers: Numbers) -> str:
    """How many of each kind are reproduced: a p value on its side of 0.05 is no mean."""
    kinds = {word: kind for kind, words in KINDS.items() for word in words}
    of = [kinds.get(n.id.partition(".")[0], OTHERS) for n in numbers]
    good = Counter(
        kind for kind, n in zip(of, numbers, strict=True) if n.verdict == rule.REPRODUCED
    )
    told = [f"{good[kind]} of {of.count(kind)} {kind}" for kind in (*KINDS, OTHERS) if kind in of]
    return f"Reproduced by kind: {', '.join(told)}."


def _notes(numbers: Numbers) -> Iterator[str]:
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
