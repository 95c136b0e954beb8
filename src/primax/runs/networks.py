"""Trained agents from where they are kept: a run's folder, or a file that `primax export` wrote.

Both give the same networks: those of a folder are rounded to half precision as those of a file are.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from primax.agent import critics as critic
from primax.agent.learner import Learner, make_learner
from primax.agent.play import Agent
from primax.runs import export
from primax.runs.export import Exported


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
    exported = export.find(path, which, seeds, say)
    seeds = exported.seeds if seeds is None else seeds
    learner = make_learner(exported.config)
    like = jax.eval_shape(learner.init, jax.random.key(0), jnp.int32(0))
    agents = [_agent(exported, learner, like, seed) for seed in seeds]
    return Trained(
        learner,
        seeds,
        exported.which,
        tuple(exported.steps[exported.row(seed)] for seed in seeds),
        jax.tree.map(lambda *leaves: jnp.stack(leaves), *agents),
    )


def _agent(exported: Exported, learner: Learner, like: Any, seed: int) -> Agent:
    """An agent as it would go on from its step: a mix has the weight of the next window."""
    config, step = exported.config, exported.steps[exported.row(seed)]
    weight = learner.bonus_weight(critic.rates(config.critics, config.mix), jnp.int32(step))
    online = exported.tree("critics", like.critics.online, seed)
    reward = _reward(exported, learner, like.reward, seed)
    moments = None if like.moments is None else exported.tree("moments", like.moments, seed)
    return Agent(jnp.int32(seed), online, reward, weight, moments)


def _reward(exported: Exported, learner: Learner, like: Any, seed: int) -> Any:
    """The reward's state; what an export leaves out, such as its optimiser, is as in the beginning."""
    if not learner.reward.begins:
        return ()
    kept = exported.tree("reward", like, seed, is_partial=True)
    fresh = learner.reward.init(jax.random.key(0))
    is_none = lambda x: x is None  # noqa: E731
    return jax.tree.map(lambda a, b: b if a is None else a, kept, fresh, is_leaf=is_none)
