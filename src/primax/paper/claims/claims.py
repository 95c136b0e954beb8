"""The paper's claims in words, one by one, each with a test on numbers."""

from collections.abc import Callable
from dataclasses import dataclass

from primax.output.sheet import Sheet
from primax.paper.claims import forced
from primax.paper.claims import insides as inside
from primax.paper.claims import scores as score
from primax.paper.claims.scores import Case
from primax.paper.evidence import MissingError, Published, Runs
from primax.paper.references import reference

HOLDS, FAILS = "holds", "fails"
CANNOT_FAIL = "cannot fail here"
"""It holds, and so it would for an agent that learnt nothing, or by arithmetic."""
VERDICTS = (HOLDS, CANNOT_FAIL, FAILS)


@dataclass(frozen=True)
class Claim:
    """A statement of the paper; its test's first line says when it holds."""

    id: str
    where: str
    words: str
    test: Callable[[Case], tuple[bool, str]]
    forced: Callable[[Case], str] | None = None
    """What decides the test whatever an agent learns, with its numbers; None where nothing does."""

    @property
    def rule(self) -> str:
        """In words."""
        return " ".join((self.test.__doc__ or "").split())

    def verdict(self, case: Case) -> tuple[str, str]:
        """Whether it holds, and what that rests on; what is missing where it cannot be told."""
        try:
            is_held, evidence = self.test(case)
            if is_held and self.forced is not None and case.is_ours:
                return CANNOT_FAIL, f"{evidence}; {self.forced(case)}"
        except MissingError as error:
            return error.why, str(error)
        return HOLDS if is_held else FAILS, evidence


@dataclass(frozen=True)
class Tested:
    """A claim, and what came of its test."""

    claim: Claim
    verdict: str
    evidence: str
    on_theirs: str
    """The verdict on the paper's own seeds."""

    @property
    def row(self) -> tuple[str, ...]:
        claim = self.claim
        stated = (f"`{claim.id}`", claim.where, claim.words, claim.rule)
        return *stated, self.verdict, self.evidence, self.on_theirs


H1, BUTTER, GATE = "sec:eval-h1", "sec:eval-butter", "sec:eval-gate"
THEORY, STATS, ESTIMATORS = "sec:eval-theory", "app:stats", "app:estimators"
CLAIMS = (
    Claim(
        "smirl_fails_maze",
        H1,
        "SMIRL collapses on Maze.",
        score.smirl_fails_maze,
        forced.walker_fails_too,
    ),
    Claim(
        "disagreement_fails_butterflies",
        H1,
        "Disagreement degrades on Butterflies below the random walker.",
        score.disagreement_below_random,
    ),
    Claim("rnd_attains_both", H1, "RND attains both worlds.", score.rnd_attains_both),
    Claim("prime_attains_both", H1, "PRIME attains both worlds.", score.prime_attains_both),
    Claim(
        "one_configuration",
        "sec:eval-setup",
        "It does so under one configuration shared across the two worlds.",
        inside.one_configuration,
        forced.made_so,
    ),
    Claim(
        "positions_enter",
        BUTTER,
        "The run-average catch rate is consistent with butterfly positions entering the policy.",
        score.above_blind_sweep,
    ),
    Claim(
        "baselines_win_maze",
        "tab:main",
        "RND and Disagreement lead PRIME on Maze (in the table; the tests leave the pair out).",
        score.baselines_win_maze,
    ),
    Claim(
        "late_collapse",
        H1,
        "Late-training collapse of the reach rate on Maze is shared by every intrinsic method.",
        score.late_collapse,
    ),
    Claim(
        "task_sustains",
        H1,
        "The Extrinsic-DQN reference sustains at 1.00 on 14 of 15 seeds.",
        score.task_sustains,
    ),
    Claim("task_iqm", STATS, "Its Maze IQM stays 1.00.", score.task_iqm),
    Claim(
        "targets_bounded",
        THEORY,
        "The bounded targets stay below the ceiling on every seed.",
        inside.targets_bounded,
    ),
    Claim(
        "coverage_contracts",
        BUTTER,
        "Coverage contracts between the first and the last training quintile on every seed.",
        inside.coverage_contracts,
    ),
    Claim(
        "close_pursuit",
        BUTTER,
        "The min-distance it saturates at is the steady state of close pursuit.",
        inside.close_pursuit,
    ),
    Claim(
        "uniform_density",
        BUTTER,
        "The butterflies' end-of-episode density approaches uniform within the horizon.",
        inside.uniform_density,
        forced.no_run_enters,
    ),
    Claim(
        "near_deterministic",
        BUTTER,
        "On Maze PRIME develops a near-deterministic policy.",
        inside.near_deterministic,
        forced.walkers_critic,
    ),
    Claim(
        "mi_positive",
        STATS,
        "Mutual information is positive on every seed in both worlds, below log 5.",
        inside.mi_positive,
        forced.walker_has_it_too,
    ),
    Claim("mi_larger", STATS, "Butterflies carries the larger value.", inside.mi_larger),
    Claim(
        "mi_walker",
        BUTTER,
        "A random walker has zero state-action mutual information.",
        inside.mi_walker,
        forced.drawn_blindly,
    ),
    Claim(
        "leads_ablations",
        GATE,
        "The full configuration leads both ablations on all six cells.",
        score.leads_ablations,
    ),
    Claim(
        "ablation_intervals",
        GATE,
        "The seed-paired interval of the difference excludes zero on five of six.",
        score.ablation_intervals,
    ),
    Claim(
        "k1_catch",
        STATS,
        "Of the ablations only K = 1 on catches survives the correction, by Mann-Whitney alone.",
        score.k1_catch,
    ),
    Claim(
        "direction_without_gate",
        GATE,
        "The cross-environment direction holds with the gate off.",
        score.gate_off_attains_both,
    ),
    Claim(
        "gate_order",
        GATE,
        "The gate clamps more on Maze than on Butterflies.",
        inside.gate_order,
        forced.no_noise_to_clamp,
    ),
    Claim(
        "lotv_collapses",
        ESTIMATORS,
        "The return-space frame collapses: cross-head variance is near 1e-7.",
        inside.lotv_collapses,
        forced.fourth_power,
    ),
    Claim(
        "count_above_lotv",
        ESTIMATORS,
        "The count ends three to four orders of magnitude above the cross-head variance.",
        inside.count_above_lotv,
    ),
    Claim(
        "v_epi_is_count",
        GATE,
        "V_epi reduces to the count realization.",
        inside.v_epi_is_count,
        forced.fourth_power,
    ),
    Claim(
        "count_decays",
        ESTIMATORS,
        "The count decays under accumulating coverage.",
        inside.decays,
        forced.full_ring,
    ),
    Claim(
        "noise_separates",
        ESTIMATORS,
        "The aleatoric term separates stochastic Butterflies from deterministic Maze.",
        inside.noise_separates,
        forced.deterministic,
    ),
    Claim(
        "margin_positive",
        "sec:discussion",
        "The non-triviality premise holds: π_ref stays away from u on every seed.",
        inside.margin_positive,
        forced.softmax,
    ),
    Claim(
        "baselines_separate",
        STATS,
        "All five PRIME-baseline comparisons clear 0.05 under the corrected signed-rank test.",
        score.baselines_separate,
    ),
    Claim(
        "welch_agrees",
        STATS,
        "Corrected Welch's t agrees with the Mann-Whitney column on all eleven comparisons.",
        score.welch_agrees,
    ),
    Claim(
        "five_seeds_floor",
        STATS,
        "At n = 5 no Holm-corrected rank test could reach 0.05.",
        score.five_seeds_floor,
        forced.no_run_enters,
    ),
    Claim(
        "five_seeds_catch",
        STATS,
        "The n = 5 sample left the catch comparison with RND unresolved.",
        score.five_seeds_catch,
    ),
    Claim(
        "highest_blind",
        "app:exp",
        "2.45, the best of the blind policies simulated, is what one can score without seeing "
        "butterflies.",
        score.highest_blind,
    ),
    Claim(
        "heads_supply_penalty",
        "sec:vepi",
        "Noise within the heads survives their convergence and supplies the penalty's input.",
        inside.heads_supply_penalty,
    ),
    Claim(
        "collapse_is_neutrality",
        H1,
        "The collapse on Maze is Proposition 6: novelty is used up and the penalty alone remains.",
        inside.collapse_is_neutrality,
    ),
    Claim(
        "state_at_peak",
        BUTTER,
        "On Maze the policy is state-conditional during the peak phase.",
        inside.state_at_peak,
    ),
    Claim(
        "noise_depletes",
        "app:noisytv",
        "Butterflies are caught for good, so the noise depletes within the horizon.",
        inside.noise_depletes,
    ),
)


COLUMNS = ("id", "where", "claim", "it holds when", "ours", "evidence", "the paper's own seeds")
FIT = ("nearest", "nearest: evidence")
"""Verdict and evidence under the reading that is nearest to the paper's numbers."""


def tested(runs: Runs) -> list[Tested]:
    """Every claim, on our runs and on the paper's own per-seed values."""
    ours, theirs = Case(runs, runs), Case(Published(), runs)
    return [Tested(claim, *claim.verdict(ours), claim.verdict(theirs)[0]) for claim in CLAIMS]


def claims_sheet(runs: Runs, found: list[Tested], nearest: list[Tested] | None = None) -> Sheet:
    """The claims as a table, the count of each verdict above it; under the nearest reading too."""
    above = (_counted(found),)
    columns, rows = COLUMNS, tuple(each.row for each in found)
    if nearest is not None:
        above += (f"Under the nearest reading: {_counted(nearest)}",)
        columns = (*COLUMNS, *FIT)
        rows = tuple(
            (*row, fit.verdict, fit.evidence) for row, fit in zip(rows, nearest, strict=True)
        )
    walker = reference(runs, "butterflies", "random").distance
    beside = f"`close_pursuit`: the paper's own 4.05 ± 0.09 cells beside a walker's {walker:.2f}."
    cannot = (
        f"`{CANNOT_FAIL}`: the test would also hold for an agent that learnt nothing, or arithmetic, "
        "the world or the way the runs were made decides it. The evidence says which."
    )
    return Sheet("claims", "The paper's claims, tested", columns, rows, (cannot, beside), above)


def _counted(found: list[Tested]) -> str:
    holds, forced, fails = (sum(each.verdict == word for each in found) for word in VERDICTS)
    note = f"Of {len(found)} claims {holds} hold, {fails} fail, {forced} cannot fail here, "
    return note + f"{len(found) - holds - forced - fails} cannot be decided yet."
