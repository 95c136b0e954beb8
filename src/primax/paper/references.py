"""What policies that learn nothing score, for scale: exactly where that can be had, else simulated."""

from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np

from primax.paper import experiments
from primax.paper.evidence import Runs
from primax.paper.experiments import VARIANTS
from primax.runs.measures import rolling
from primax.runs.read import Run
from primax.worlds import WORLDS, World, make_world
from primax.worlds.exact import expected_score
from primax.worlds.rollout import outcomes
from primax.worlds.scripted import make_policy

POLICIES = {"random": "random walker", "sweep": "blind sweep", "centre_stay": "centre and stay"}
REPEATS = 4
"""Simulated runs, each as long as a learner's."""

Options = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Reference:
    """A scripted policy in a world."""

    average: float
    """Score of an episode, computed exactly."""
    peak: float
    """Best mean over 20 episodes of a run as long as a learner's."""
    coverage: float
    distance: float


@dataclass(frozen=True)
class Density:
    """How near a butterfly that nobody catches is to uniform at an episode's end, in total variation."""

    typical: float
    """From where butterflies start."""
    worst: float
    """From the start cell that is slowest to be forgotten."""


def reference(runs: Runs, world: str, policy: str) -> Reference:
    """The world as these runs had it; as the paper's budget has it where there is no run."""
    options = _options(runs, world)
    return _reference(world, options, policy, _episodes(runs, world, options))


def average(runs: Runs, world: str, policy: str) -> float:
    """Its exact mean score, without any simulation."""
    exact = _average(world, _options(runs, world), policy)
    return reference(runs, world, policy).average if exact is None else exact


def all_of(runs: Runs) -> dict[str, dict[str, dict[str, float]]]:
    """Every policy in every world, by name."""
    return {
        world: {policy: asdict(reference(runs, world, policy)) for policy in POLICIES}
        for world in experiments.WORLDS
    }


def world_of(runs: Runs, world: str) -> World:
    """The world as these runs had it."""
    return _world(world, _options(runs, world))


def density(runs: Runs) -> Density:
    """Of the runs' Butterflies."""
    return _density(_options(runs, "butterflies"))


def _options(runs: Runs, world: str) -> Options:
    """The world's options in the first run there is."""
    there = (v for v in ("prime", *VARIANTS) if isinstance(runs.run(v, world), Run))
    settings = runs.settings(next(there, "random"), world)
    named = {k.removeprefix("world."): v for k, v in settings.items() if k.startswith("world.")}
    return tuple((name, value) for name, value in named.items() if name != "name")


def _episodes(runs: Runs, world: str, options: Options) -> int:
    """How many a run has."""
    for variant in ("prime", *VARIANTS):
        run = runs.run(variant, world)
        if isinstance(run, Run) and run.steps:
            return max(1, run.steps // int(dict(options)["horizon"]))
    return WORLDS[world].steps // int(dict(options)["horizon"])


@cache
def _world(name: str, options: Options) -> World:
    return make_world(name, **dict(options))


@cache
def _average(name: str, options: Options, policy: str) -> float | None:
    return expected_score(_world(name, options), policy)


@cache
def _reference(name: str, options: Options, policy: str, episodes: int) -> Reference:
    world, exact = _world(name, options), _average(name, options, policy)
    found = outcomes(world, make_policy(policy, world), 0, REPEATS * episodes)
    scores = np.asarray(found.score, float).reshape(REPEATS, episodes)
    assert found.distance is not None and found.coverage is not None  # worlds of the paper
    chased = found.distance[np.isfinite(found.distance)]
    return Reference(
        average=float(scores.mean()) if exact is None else exact,
        peak=float(rolling(scores).max(axis=1).mean()),
        coverage=float(found.coverage.mean()),
        distance=float(chased.mean()) if chased.size else float("nan"),
    )


@cache
def _density(options: Options) -> Density:
    """By powers of the walk's matrix; uniform over the cells without a wall is its limit."""
    world: Any = _world("butterflies", options)
    moves, free = np.asarray(world.moves), np.asarray(world.free)
    walk = np.zeros((len(moves), len(moves)))
    for action in range(moves.shape[1]):
        np.add.at(walk, (moves[:, action], np.arange(len(moves))), 1 / moves.shape[1])
    after = np.linalg.matrix_power(walk, world.horizon)[np.ix_(free, free)]
    start = np.ones(len(free))
    if world.start is not None:
        start[free == world.start] = 0
    typical = after @ (start / start.sum())
    apart = 0.5 * np.abs(np.column_stack([typical, after]) - 1 / len(free)).sum(axis=0)
    return Density(float(apart[0]), float(apart[1:].max()))
