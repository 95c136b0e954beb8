"""What an episode is judged by: score, reach and, on a grid, coverage and pursuit distance."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from primax.worlds.base import GridWorld, World
from primax.worlds.grid import l1, one_hot


class Outcome(eqx.Module):
    """An episode's measures; None is what a world does not have."""

    score: Float[Array, "*batch"]
    """Task signal summed over the episode: catches, flags taken, share in the silent wing."""
    coverage: Float[Array, "*batch"] | None = None
    """Share of all cells of the grid the agent stood on, its first cell included."""
    distance: Float[Array, "*batch"] | None = None
    """Mean L1 distance to the nearest target over the steps that have one; NaN if none has."""
    length: Int[Array, "*batch"] | None = None
    """Steps, where there is no grid to measure on."""
    noise: Float[Array, "*batch"] | None = None
    """Share of steps whose observation showed noise, where some was put beside a world."""


class Tally(eqx.Module):
    """Running sums of an episode."""

    score: Float[Array, ""]
    visited: Bool[Array, "rows cols"] | None = None
    distance: Int[Array, ""] | None = None
    chased: Int[Array, ""] | None = None
    length: Int[Array, ""] | None = None
    noisy: Int[Array, ""] | None = None


def start(world: World, state: Any) -> Tally:
    """The tally of an episode that begins in `state`."""
    zero, nothing = jnp.zeros((), jnp.int32), jnp.zeros((), jnp.float32)
    noisy = None if world.noise_shown(state) is None else zero
    if not isinstance(world, GridWorld):
        return Tally(nothing, length=zero, noisy=noisy)
    visited = one_hot(state.agent, world.shape)
    return Tally(nothing, visited, zero, zero, length=noisy, noisy=noisy)


def add(world: World, tally: Tally, state: Any) -> Tally:
    """The tally after one more step, which led to `state`."""
    score = tally.score + world.task(state)
    length = None if tally.length is None else tally.length + 1
    shown = world.noise_shown(state)
    noisy = None if tally.noisy is None or shown is None else tally.noisy + shown
    if not isinstance(world, GridWorld):
        return Tally(score, length=length, noisy=noisy)
    assert tally.visited is not None and tally.distance is not None and tally.chased is not None
    cells, wanted = world.targets(state)
    away = jnp.where(wanted, l1(cells, state.agent, world.shape[1]), sum(world.shape))
    any_left = jnp.any(wanted)
    return Tally(
        score=score,
        visited=tally.visited | one_hot(state.agent, world.shape),
        distance=tally.distance + jnp.where(any_left, jnp.min(away), 0),
        chased=tally.chased + any_left,
        length=length,
        noisy=noisy,
    )


def outcome(tally: Tally) -> Outcome:
    """The measures of a finished episode."""
    noise = None
    if tally.noisy is not None and tally.length is not None:
        noise = tally.noisy.astype(jnp.float32) / tally.length
    if tally.visited is None or tally.distance is None or tally.chased is None:
        return Outcome(tally.score, length=tally.length, noise=noise)
    return Outcome(
        score=tally.score,
        coverage=jnp.mean(tally.visited, dtype=jnp.float32),
        distance=tally.distance.astype(jnp.float32) / tally.chased,
        noise=noise,
    )
