"""Numbers with nothing to draw again: scripted policies, settings, arithmetic, counts of seeds."""

import itertools
import math
from collections.abc import Iterator

import numpy as np

from primax import stats
from primax.output.sheet import ABSENT
from primax.paper.evidence import MissingError, Runs, need
from primax.paper.experiments import WORLDS, cell_name
from primax.paper.published import published
from primax.paper.references import average
from primax.paper.scorecard import rule
from primax.paper.scorecard.card import Number, Stated
from primax.paper.scorecard.rule import Judged
from primax.paper.scorecard.scalars import short
from primax.paper.tables.beside import (
    BASELINE_FIELDS,
    BASELINES,
    PRIME_FIELDS,
    baseline_settings,
    inert,
    prime_settings,
)
from primax.runs.read import Unusable


def exact(runs: Runs) -> Iterator[Number]:
    """Scripted policies, ratios, settings and plain arithmetic."""
    paper = published()
    walker = paper["main"]["butterflies"]["catch"]["random"]
    yield Stated(
        "random.catch", "tab:main", "Random walker, catches an episode", f"{walker['mean']:.2f}"
    ).found(lambda: _exactly(average(runs, "butterflies", "random"), walker["mean"], 0.05))
    yield Stated(
        "random.std", "tab:main", "Random walker, std over episodes", f"{walker['std']:.2f}"
    ).found(lambda: _episode_std(runs, walker["std"]))
    yield Stated("random.maze", "tab:main", "Random walker, Maze", "0.00").found(
        lambda: _exactly(average(runs, "maze", "random"), 0.0, 0.005)
    )
    blind = paper["evaluation"]["position_only_catch"]
    yield Stated(
        "position_only", "sec:eval-h1", "position-only comparator (centre and stay)", f"{blind:.2f}"
    ).found(lambda: _exactly(average(runs, "butterflies", "centre_stay"), blind, 0.05))
    ratio = paper["evaluation"]["catch_over_position_only"]
    yield Stated(
        "catch_ratio", "sec:eval-h1", "PRIME's catches over the position-only", f"{ratio:.2f}"
    ).found(lambda: _ratio(runs, ratio))
    yield from _settings(runs)
    yield from _arithmetic()


def _exactly(ours: float, theirs: float, margin: float) -> Judged:
    apart = ours - theirs
    return Judged(f"{ours:.4f} (exact)", ABSENT, rule.verdict((apart, apart), rule.within(margin)))


def _episode_std(runs: Runs, theirs: float) -> Judged:
    ours = need(runs, "random", "butterflies", "episode_std")
    band = rule.within(rule.MARGINS["butterflies", "episode_std"])
    return rule.against_value(f"{ours.mean():.2f}", ours, theirs, band, ".3f")


def _ratio(runs: Runs, theirs: float) -> Judged:
    blind = average(runs, "butterflies", "centre_stay")
    ours = need(runs, "prime", "butterflies", "average") / blind
    band = rule.within(rule.MARGINS["butterflies", "average"] / blind)
    return rule.against_value(f"{ours.mean():.2f}", ours, theirs, band)


def _settings(runs: Runs) -> Iterator[Number]:
    for name, where, settings, fields, variants in (
        ("settings.prime", "tab:hp-prime", prime_settings, PRIME_FIELDS, ("prime",)),
        ("settings.baselines", "tab:hp-base", baseline_settings, BASELINE_FIELDS, BASELINES),
    ):

        def judged(settings=settings, fields=fields, variants=variants) -> Judged:
            for variant, world in itertools.product(variants, WORLDS):
                if isinstance(run := runs.run(variant, world), Unusable):
                    raise MissingError(cell_name(variant, world), run.why)
            idle = inert(runs) if variants == ("prime",) else {}
            same = sum(s.is_same for s in settings(runs) if s.name not in idle)
            verdict = rule.REPRODUCED if same == len(fields) else rule.DIFFERS
            beside = [f"{name} has no effect: {why}" for name, why in idle.items()]
            return Judged("; ".join([str(same), *beside]), ABSENT, verdict)

        what = f"settings of {where} that are ours"
        yield Stated(name, where, what, str(len(fields))).found(judged)


def _arithmetic() -> Iterator[Number]:
    """Constants that follow from others."""
    given, settings = published()["analysis"], published()["prime_settings"]
    ceiling = settings["reward_clip"] + settings["gamma"] * settings["Q_max"]
    cells = (
        ("floor.wilcoxon", "exact signed-rank floor at 15 seeds", given["wilcoxon_floor_at_15"],
         stats.wilcoxon_exact(np.arange(1.0, 16), np.zeros(15))),
        ("floor.mann_whitney", "exact Mann-Whitney floor at 5 seeds",
         given["mann_whitney_floor_at_5"],
         stats.mann_whitney_exact(np.arange(1.0, 6), -np.arange(1.0, 6))),
        ("log5", "entropy of five equal actions, nats", published()["protocol"]["log5_nats"],
         math.log(5)),
        ("ceiling", "R_r + γ·Q_max", 20.0, ceiling),
    )  # fmt: skip
    for name, what, theirs, ours in cells:
        verdict = rule.REPRODUCED if math.isclose(ours, theirs, rel_tol=0.01) else rule.DIFFERS
        yield Stated(name, "app:stats, app:exp", what, short(theirs)).found(
            lambda ours=ours, verdict=verdict: Judged(f"{ours:.4g}", ABSENT, verdict)
        )


def counts(runs: Runs) -> Iterator[Number]:
    """So many seeds of so many: reproduced within one seed of fifteen."""
    cells = (
        ("seeds.coverage", "sec:eval-butter", "PRIME: seeds whose coverage falls", "prime",
         "butterflies", "coverage_fall", lambda x: x > 0, (15, 15)),
        ("seeds.task", "sec:eval-h1", "Ext-DQN: seeds that sustain the goal (last ≥ 0.95)", "task",
         "maze", "last", lambda x: x >= 0.95, (14, 15)),
        ("seeds.smirl", "tab:seed", "SMIRL: seeds that ever reach the goal on Maze", "smirl",
         "maze", "peak", lambda x: x > 0, (3, 15)),
    )  # fmt: skip
    for name, where, what, variant, world, measure, is_in, (num, of) in cells:

        def judged(cell=(variant, world, measure), is_in=is_in, num=num, of=of) -> Judged:
            ours = is_in(need(runs, *cell))
            apart = float(ours.mean()) - num / of
            verdict = rule.verdict((apart, apart), rule.within(1 / of))
            return Judged(f"{ours.sum()} of {len(ours)}", ABSENT, verdict)

        yield Stated(name, where, what, f"{num} of {of}").found(judged)
