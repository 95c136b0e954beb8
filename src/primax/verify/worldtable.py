"""A world as a table: every state and where each action leads, by its own `step`."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from primax.rewards.transition import Batch
from primax.worlds import ACTIONS, World
from primax.worlds.butterflies import Butterflies, ButterfliesNoise
from primax.worlds.maze import Maze


@dataclass(frozen=True)
class WorldTable:
    """States are told apart by what is seen, which in these worlds is all there is to know."""

    obs: np.ndarray
    """[states, channels, rows, cols]."""
    key: np.ndarray
    """[states, actions]: count keys."""
    to: np.ndarray
    """[states, actions, outcomes]: the next state; outcomes are equally likely."""
    ends: np.ndarray
    """[states, actions, outcomes]: whether the world ends there."""

    def batch(self) -> Batch:
        """Every (s, a) as transitions, in the order of a [states, actions] array."""
        states, actions = self.key.shape
        obs = jnp.asarray(np.repeat(self.obs, actions, axis=0))
        none = jnp.zeros(states * actions, jnp.float32)
        key = jnp.asarray(self.key.reshape(-1))
        action = jnp.tile(jnp.arange(actions), states)
        return Batch(obs, action, none, obs, none > 0, none > 0, none + 1.0, key, key, (), ())


def outcomes(world: World) -> Any:
    """One noise for each equally likely outcome of a step."""
    if isinstance(world, Maze):
        return world.noise(jax.random.key(0), 1)
    if isinstance(world, Butterflies) and world.num_butterflies == 1 and not world.config.respawn:
        moves = jnp.arange(len(ACTIONS), dtype=jnp.uint32)[:, None]
        return ButterfliesNoise(moves, jnp.zeros((len(ACTIONS), 0), jnp.uint32))
    raise TypeError(f"the outcomes of {type(world).__name__} are not enumerated")


def enumerate_world(world: World) -> WorldTable:
    """All states that can be reached from a reset."""
    noises, actions = outcomes(world), jnp.arange(len(ACTIONS))

    def go(state: Any, action: Any, noise: Any) -> Any:
        after = world.step(state, action, noise)
        return after, world.observe(after), world.terminated(after)

    over_noise = jax.vmap(go, in_axes=(None, None, 0))
    expand = jax.jit(
        lambda state: jax.vmap(over_noise, in_axes=(None, 0, None))(state, actions, noises)
    )
    keys = jax.jit(lambda state: jax.vmap(world.count_key, in_axes=(None, 0))(state, actions))
    first = world.reset(jax.random.key(0))
    queue, seen = [first], [np.asarray(world.observe(first))]
    number, to, ends, key = {seen[0].tobytes(): 0}, [], [], []
    for state in queue:  # grows as new states are met
        after, obs, is_end = jax.tree.map(np.asarray, expand(state))
        key.append(np.asarray(keys(state)))
        ends.append(is_end)
        to.append(np.zeros(obs.shape[:2], np.int32))
        for at in np.ndindex(obs.shape[:2]):
            name = obs[at].tobytes()
            if name not in number:
                number[name] = len(queue)
                seen.append(obs[at])
                queue.append(jax.tree.map(lambda x, at=at: x[at], after))
            to[-1][at] = number[name]
    return WorldTable(np.stack(seen), np.stack(key), np.stack(to), np.stack(ends))
