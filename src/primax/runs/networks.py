"""Trained agents from where they are kept: a run's folder, or a file that `primax export` wrote.

Both give the same networks: those of a folder are rounded to half precision as those of a file are.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from primax import files
from primax.agent import critics as critic
from primax.agent.learner import Learner, make_learner
from primax.agent.play import Agent
from primax.errors import InputError, check_choice
from primax.runs.export import WHICH, Exported, load, take
from primax.runs.read import open_run


@dataclass(frozen=True)
class Trained:
    """Agents that have learnt, and what they live in."""

    learner: Learner
    seeds: tuple[int, ...]
    which: str
    """The networks as they were in the end, at their best, or at the oracle's best."""
    steps: tuple[int, ...]
    """Of the run, at which each seed's networks are taken."""
    agents: Agent
    """Every leaf leads with the seed."""


def find(
    path: str | Path,
    which: str | None = None,
    seeds: tuple[int, ...] | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Trained:
    """The agents of some seeds, by default all; `which` as in an export, by default what there is."""
    if which is not None:
        check_choice("which", which, WHICH)
    path = files.place(path)
    if not path.exists():
        raise InputError(f"{path} is neither a run's folder nor an exported file")
    if path.is_dir():
        return _trained(take(open_run(path), which or "last", seeds, say), path, seeds)
    exported = load(path)
    if which not in (None, exported.about.get("which")):
        raise InputError(f"{path} has other networks: primax export --which {which} writes those")
    return _trained(exported, path, seeds)


def _trained(exported: Exported, path: Path, seeds: tuple[int, ...] | None) -> Trained:
    about, seeds = exported.about, exported.seeds if seeds is None else seeds
    steps, which = about.get("step"), about.get("which")
    is_whole = isinstance(steps, list) and len(steps) == len(exported.seeds)
    if which not in list(WHICH) or not is_whole or any(type(step) is not int for step in steps):
        raise InputError(f"{path} does not say which networks it has: export them again")
    learner = make_learner(exported.config)
    taken = tuple(steps[exported.row(seed)] for seed in seeds)
    agents = [_agent(exported, learner, *of) for of in zip(seeds, taken, strict=True)]
    return Trained(
        learner,
        seeds,
        which,
        taken,
        jax.tree.map(lambda *leaves: jnp.stack(leaves), *agents),
    )


def _agent(exported: Exported, learner: Learner, seed: int, step: int) -> Agent:
    """An agent as it would go on from its step: a mix has the weight of the next window."""
    config = exported.config
    weight = learner.bonus_weight(critic.rates(config.critics, config.mix), jnp.int32(step))
    like = jax.eval_shape(learner.init, jax.random.key(0), jnp.int32(seed))
    online = exported.tree("critics", like.critics.online, seed)
    reward = _reward(exported, learner, like.reward, seed)
    return Agent(jnp.int32(seed), online, reward, weight)


def _reward(exported: Exported, learner: Learner, like: Any, seed: int) -> Any:
    """The reward's state; what an export leaves out, such as its optimiser, is as in the beginning."""
    if not learner.reward.begins:
        return ()
    kept = exported.tree("reward", like, seed, is_partial=True)
    fresh = learner.reward.init(jax.random.key(0))
    is_none = lambda x: x is None  # noqa: E731
    return jax.tree.map(lambda a, b: b if a is None else a, kept, fresh, is_leaf=is_none)
