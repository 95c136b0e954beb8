"""A recorded episode of a run, to look at."""

import math
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from primax.errors import InputError
from primax.methods import build
from primax.runs.read import Run
from primax.runs.records import levels_of, planes_of
from primax.worlds import GridWorld, World, on_grid


@dataclass(frozen=True, eq=False)
class Replay:
    """An episode as it was, of a seed's world."""

    world: World
    seed: int
    episode: int
    """Of the run."""
    step: int
    """Of the run, when it was over."""
    score: float
    planes: np.ndarray
    """[frame, channel, rows, cols], a frame more than there are steps."""
    left: list[int] | None
    """Targets left in every frame, where that is known."""


def find(run: Run, seed: int | None = None, episode: int | None = None) -> Replay:
    """The last recorded episode, or that of a number, of a seed; by default of the first that has any."""
    lines = run.replays()
    seeds = sorted({_number(line, "seed") for line in lines})
    seed = seeds[0] if seed is None else seed
    own = {_number(line, "episode"): line for line in lines if line["seed"] == seed}
    if not own:
        kept = f"there are episodes of {_listed('seed', seeds)}"
        raise InputError(f"{run.path} has no recorded episode of seed {seed}: {kept}")
    chosen = max(own) if episode is None else episode
    if chosen not in own:
        kept = f"there are {_listed('episode', sorted(own))}"
        raise InputError(f"episode {chosen} of seed {seed} was not recorded: {kept}")
    return _made(run, own[chosen])


def _made(run: Run, line: dict[str, Any]) -> Replay:
    try:
        world = on_grid(build(run.config)[0], "a recorded episode").for_seed(line["seed"])
        step, score = _number(line, "step"), float(line["score"])
        planes = planes_of(line, world)
        left = _left(line, world, score)
        if left and len(left) != len(planes):
            raise ValueError(f"{len(left) - 1} keys for {len(planes) - 1} steps")
    except (KeyError, ValueError, TypeError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"replays.jsonl of {run.path} cannot be used: {error}") from error
    return Replay(world, line["seed"], line["episode"], step, score, planes, left)


def _left(line: dict[str, Any], world: GridWorld, score: float) -> list[int] | None:
    """By the level of each step's count key; of the last frame, which has none, by the score."""
    told = levels_of(line, world)
    total = int(np.sum(np.asarray(world.targets(world.reset(jax.random.key(0)))[1])))
    levels = world.num_keys // math.prod(world.shape)
    if not told or not world.takes_targets or levels != total + 1:
        return None
    is_gone = not getattr(world.config, "respawn", False)
    return [*told, max(0, min(told[-1], total - int(score))) if is_gone else told[-1]]


def _number(line: dict[str, Any], name: str) -> int:
    if type(line.get(name)) is not int:
        raise InputError(f"replays.jsonl is not what a run writes: {name} {line.get(name)!r}")
    return line[name]


def _listed(what: str, numbers: list[int]) -> str:
    return f"{what}{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"
