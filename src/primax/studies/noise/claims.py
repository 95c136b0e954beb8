"""What is expected of each method where noise stays, written down before the runs were looked at.

A comparison holds where its interval lies on the side that was expected and its p value, corrected
after Holm over all comparisons there are, is below 0.05. That two things are alike cannot be shown
by a p value: such a claim holds where the interval of the difference lies within a margin.
"""

from dataclasses import dataclass

import numpy as np

from primax import stats
from primax.output.sheet import ABSENT, Sheet, bracket, plain_p
from primax.paper.evidence import MissingError
from primax.studies.noise.cells import BARE, BETTER, NOISY, VARIANTS, WINGS
from primax.studies.noise.found import Found

ALPHA = 0.05
CHANCE = 0.5
"""The share of the silent wing for whoever does not care."""
MARGIN = 0.05
"""Shares that differ by less are alike."""
HOLDS, OPEN, OPPOSITE = "holds", "not shown", "the opposite"


@dataclass(frozen=True)
class Compared:
    """The first is above the second (or the number) by a measure; `below` where it is under it."""

    id: str
    words: str
    first: str
    second: str | float
    side: str = "above"
    place: str = WINGS.name
    measure: str = WINGS.measure

    def values(self, found: Found) -> tuple[np.ndarray, np.ndarray]:
        """Both sides, a value a seed."""
        if isinstance(self.second, str):
            return found.paired((self.first, self.second), self.place, self.measure)
        own = found.sample(self.first, self.place, self.measure).values
        return own, np.full_like(own, self.second)


@dataclass(frozen=True)
class Alike(Compared):
    """The difference of the two is within the margin."""

    side: str = "alike"


def _silent(id_: str, first: str, second: str | float, words: str, side: str = "above") -> Compared:
    return Compared(id_, words, first, second, side)


def _same(id_: str, first: str, second: str | float, words: str) -> Alike:
    return Alike(id_, words, first, second)


CLAIMS: tuple[Compared, ...] = (
    # What PRIME is for.
    _silent("prime_leaves", "prime", CHANCE, "PRIME leaves the noise."),
    _silent("penalty_decides", "prime", "no_penalty", "It does so because of its penalty."),
    _same(
        "novelty_indifferent",
        "no_penalty",
        CHANCE,
        "Without the penalty it does not care where noise is.",
    ),
    _same("count_indifferent", "count", CHANCE, "A plain count does not care."),
    # Who is held.
    _silent("rnd_held", "rnd", CHANCE, "RND is held by the noise.", "below"),
    _silent("rnd_snapshot_held", "rnd_snapshot", CHANCE, "So is RND frozen by windows.", "below"),
    _silent("noveld_held", "noveld", CHANCE, "So is NovelD, whose novelty is RND's.", "below"),
    _silent(
        "icm_held", "icm", CHANCE, "ICM is held, though the noise is not of its making.", "below"
    ),
    _same(
        "disagreement_indifferent",
        "disagreement",
        CHANCE,
        "Models that agree on the mean do not care.",
    ),
    # Who leaves, for other reasons.
    _silent("smirl_leaves", "smirl", CHANCE, "SMIRL leaves the noise."),
    _silent("smirl_more", "smirl", "prime", "It does so more than PRIME: it shuns all surprise."),
    _same(
        "ama_indifferent",
        "ama",
        CHANCE,
        "AMA is paid nothing for noise it has learnt, and does not care.",
    ),
    _same("lpm_indifferent", "lpm", CHANCE, "Nor does LPM."),
    _silent("above_ama", "prime", "ama", "PRIME is in the silent wing more than AMA is."),
    _silent("above_lpm", "prime", "lpm", "And more than LPM."),
    # What of PRIME it takes.
    _silent("gate_delays", "no_gate", "prime", "Without the gate PRIME leaves the noise more."),
    _silent("gate_dose", "gate_double", "prime", "With twice the gate it leaves it less.", "below"),
    _silent(
        "penalty_dose", "penalty_four", "prime", "With four times the penalty it leaves it more."
    ),
    _silent("penalty_less", "penalty_quarter", "prime", "With a quarter of it, less.", "below"),
    _same("heads_idle", "one_head", "prime", "One statistics head does as well as five."),
    _same("freeze_idle", "live_counts", "prime", "Counts read live do as well as frozen ones."),
    _same("window_idle", "window200", "prime", "So do windows of 200 steps."),
    # The better one, against the numbers that were set for it.
    _silent("better_leaves", BETTER.name, 0.9, "Net novelty leaves the noise nearly for good."),
    _silent("better_than_prime", BETTER.name, "prime", "It leaves the noise more than PRIME does."),
    *(
        Compared(
            f"better_{place.name}", words, BETTER.name, goal, "above", place.name, place.measure
        )
        for place, goal, words in zip(
            BARE,
            (4.8, 0.95),
            (
                "Where noise dies out, it catches more than 4.8 butterflies.",
                "And its peak on Maze is above 0.95.",
            ),
            strict=True,
        )
    ),
    # Elsewhere.
    *(
        Compared(
            f"{id_}_{place.name}",
            f"{words}: {place.label}.",
            "prime",
            other,
            "above",
            place.name,
            place.measure,
        )
        for id_, other, words in (
            ("rnd", "rnd", "PRIME scores more than RND"),
            ("penalty", "no_penalty", "The penalty helps"),
        )
        for place in NOISY
    ),
    *(
        Compared(
            f"less_{place.name}",
            f"PRIME has the noise on less than RND: {place.label}.",
            "prime",
            "rnd",
            "below",
            place.name,
            "noise_tail",
        )
        for place in NOISY
        if not place.name.endswith("always")
    ),
    *(
        Compared(
            f"pressed_{place.name}",
            f"RND asks for noise more than chance does: {place.label}.",
            "rnd",
            1 / 6,
            "above",
            place.name,
            "noise_tail",
        )
        for place in NOISY
        if place.name.endswith("switch")
    ),
)


@dataclass(frozen=True)
class Tested:
    """A claim, and what came of it."""

    claim: Compared
    verdict: str
    difference: float
    low: float
    high: float
    p: float | None
    """Corrected; None where the claim is that two are alike."""
    seeds: int

    @property
    def row(self) -> tuple[str, ...]:
        claim = self.claim
        apart = f"{self.difference:+.3f} {bracket(self.low, self.high, 3, '+')}"
        p = ABSENT if self.p is None else plain_p(self.p)
        return f"`{claim.id}`", claim.words, _rule(claim), self.verdict, apart, p, str(self.seeds)


def _rule(claim: Compared) -> str:
    second = claim.second
    other = VARIANTS[second].label if isinstance(second, str) else f"{second:.2g}"
    return f"{VARIANTS[claim.first].label} {claim.side} {other}"


def tested(found: Found) -> tuple[list[Tested], dict[str, str]]:
    """Every claim whose runs are there; and why others cannot be tested."""
    sides, missing = {}, {}
    for claim in CLAIMS:
        try:
            sides[claim] = claim.values(found)
        except MissingError as error:
            missing[claim.id] = str(error)
    compared = [claim for claim in sides if not isinstance(claim, Alike)]
    raw = [stats.wilcoxon_exact(*sides[claim]) for claim in compared]
    corrected = dict(zip(compared, stats.holm(raw).tolist(), strict=True)) if raw else {}
    return [_tested(claim, *both, corrected.get(claim)) for claim, both in sides.items()], missing


def _tested(claim: Compared, a: np.ndarray, b: np.ndarray, p: float | None) -> Tested:
    low, high = stats.paired_interval(a, b)
    verdict = alike(low, high) if p is None else sided(claim.side, low, high, p)
    return Tested(claim, verdict, float(np.mean(a - b)), low, high, p, len(a))


def alike(low: float, high: float) -> str:
    """Within the margin, outside of it, or neither."""
    if low >= -MARGIN and high <= MARGIN:
        return HOLDS
    return OPPOSITE if low > MARGIN or high < -MARGIN else OPEN


def sided(side: str, low: float, high: float, p: float) -> str:
    """On the side that was expected, on the other, or neither."""
    if p >= ALPHA or low <= 0 <= high:
        return OPEN
    return HOLDS if (low > 0) == (side == "above") else OPPOSITE


COLUMNS = (
    "claim",
    "in words",
    "it holds when",
    "verdict",
    "difference, 95% interval",
    "p (Holm)",
    "seeds",
)


def sheet(found: Found) -> Sheet:
    """All claims as a table."""
    done, missing = tested(found)
    counts = [sum(each.verdict == word for each in done) for word in (HOLDS, OPEN, OPPOSITE)]
    above = (
        f"Of {len(CLAIMS)} claims {counts[0]} hold, {counts[1]} are not shown, of {counts[2]} the "
        f"opposite holds, {len(missing)} cannot be tested yet."
    )
    rows = [each.row for each in done]
    rows += [
        (f"`{claim.id}`", claim.words, _rule(claim), f"({missing[claim.id]})", *[ABSENT] * 3)
        for claim in CLAIMS
        if claim.id in missing
    ]
    return Sheet("claims", "Claims, tested", COLUMNS, tuple(rows), (), (above,))
