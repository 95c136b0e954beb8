"""What an episode is judged by: score, reach, coverage, pursuit distance."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from primax.worlds.base import World
from primax.worlds.grid import l1, one_hot


class Outcome(eqx.Module):
    """An episode's measures."""

    score: Float[Array, "*batch"]
    """Task signal summed over the episode: catches, flags taken, share in the silent wing."""
    coverage: Float[Array, "*batch"]
    """Share of all cells of the grid the agent stood on, its first cell included."""
    distance: Float[Array, "*batch"]
    """Mean L1 distance to the nearest target over the steps that have one; NaN if none has."""


class Tally(eqx.Module):
    """Running sums of an episode."""

    score: Float[Array, ""]
    visited: Bool[Array, "rows cols"]
    distance: Int[Array, ""]
    chased: Int[Array, ""]


def start(world: World, state) -> Tally:
    """The tally of an episode that begins in `state`."""
    zero = jnp.zeros((), jnp.int32)
    return Tally(jnp.zeros((), jnp.float32), one_hot(state.agent, world.shape), zero, zero)


def add(world: World, tally: Tally, state) -> Tally:
    """The tally after one more step, which led to `state`."""
    cells, wanted = world.targets(state)
    away = jnp.where(wanted, l1(cells, state.agent, world.shape[1]), sum(world.shape))
    any_left = jnp.any(wanted)
    return Tally(
        score=tally.score + world.task(state),
        visited=tally.visited | one_hot(state.agent, world.shape),
        distance=tally.distance + jnp.where(any_left, jnp.min(away), 0),
        chased=tally.chased + any_left,
    )


def outcome(tally: Tally) -> Outcome:
    """The measures of a finished episode."""
    return Outcome(
        score=tally.score,
        coverage=jnp.mean(tally.visited, dtype=jnp.float32),
        distance=tally.distance.astype(jnp.float32) / tally.chased,
    )
