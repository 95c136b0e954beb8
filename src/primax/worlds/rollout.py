"""Running a scripted policy: one episode to look at, or many to score."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PRNGKeyArray

from primax.worlds import tally
from primax.worlds.base import World
from primax.worlds.scripted import Act

BATCH = 2_000


class Episode(eqx.Module):
    """One episode: the states before and after each of its actions."""

    states: Any
    """Every leaf leads with horizon + 1."""
    actions: Int[Array, " horizon"]


def _draws(world: World, key: PRNGKeyArray):
    """The first state, and for every step of an episode the world's noise and the policy's word."""
    k_reset, k_world, k_policy = jax.random.split(key, 3)
    noise = world.noise(k_world, world.horizon)
    return world.reset(k_reset), (noise, jax.random.bits(k_policy, (world.horizon,), "uint32"))


def play(world: World, act: Act, key: PRNGKeyArray) -> Episode:
    """One episode with all its states."""
    first, draws = _draws(world, key)

    def step(state, draw):
        noise, word = draw
        action = act(state, word)
        after = world.step(state, action, noise)
        return after, (after, action)

    _, (states, actions) = jax.lax.scan(step, first, draws)
    states = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), first, states)
    return Episode(states, actions)


def outcome(world: World, act: Act, key: PRNGKeyArray) -> tally.Outcome:
    """One episode's measures."""
    first, draws = _draws(world, key)

    def step(carry, draw):
        (state, sums), (noise, word) = carry, draw
        after = world.step(state, act(state, word), noise)
        added = (after, tally.add(world, sums, after))
        if not world.can_end:
            return added, None
        is_over = world.terminated(state) | world.truncated(state)
        return jax.tree.map(lambda a, b: jnp.where(is_over, a, b), carry, added), None

    (_, sums), _ = jax.lax.scan(step, (first, tally.start(world, first)), draws)
    return tally.outcome(sums)


def outcomes(world: World, act: Act, seed: int, episodes: int) -> tally.Outcome:
    """The measures of many episodes, as numpy arrays; episode i depends on seed and i alone."""
    root = jax.random.key(seed)

    @jax.jit
    def batch(ids):
        return jax.vmap(lambda i: outcome(world, act, jax.random.fold_in(root, i)))(ids)

    size = min(BATCH, episodes)
    starts = range(0, episodes, size)
    parts = [jax.tree.map(np.asarray, batch(jnp.arange(size) + i)) for i in starts]
    return jax.tree.map(lambda *x: np.concatenate(x)[:episodes], *parts)


__all__ = ["Episode", "outcome", "outcomes", "play"]
