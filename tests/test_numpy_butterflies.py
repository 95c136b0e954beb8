"""Butterflies in JAX and in numpy, driven alike: two writings of one rule book must agree."""

import functools
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from primax import make_world
from primax.worlds.base import fives
from primax.worlds.butterflies import Butterflies, ButterfliesConfig

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from numpy_butterflies import CATCHES, NumpyButterflies

WORLDS, STEPS = 64, 100


@functools.cache
def draws(size: int, butterflies: int):
    """First states, actions and noise, alike for all readings of a catch; steps lead, then worlds."""
    world = make_world("butterflies", size=size, butterflies=butterflies)

    def episode(key):
        k_reset, k_noise, k_act = jax.random.split(key, 3)
        actions = jax.random.randint(k_act, (STEPS,), 0, 5)
        return world.reset(k_reset), (actions, world.noise(k_noise, STEPS))

    split = jax.vmap(episode, out_axes=(0, 1))
    return jax.jit(split)(jax.random.split(jax.random.key(size), WORLDS))


@functools.cache
def play(size: int, butterflies: int, catch: str):
    """Uniform play: (first state, its observation), (actions, moves), (states, observations)."""
    world = make_world("butterflies", size=size, butterflies=butterflies, catch=catch)

    def step(states, draw):
        states = jax.vmap(world.step)(states, *draw)
        return states, (states, jax.vmap(world.observe)(states))

    def run(first, steps):
        actions, noise = steps
        moves = jax.vmap(jax.vmap(lambda words: fives(words, butterflies)))(noise.moves)
        seen = (first, jax.vmap(world.observe)(first))
        return seen, (actions, moves), jax.lax.scan(step, first, steps)[1]

    return jax.tree.map(np.asarray, jax.jit(run)(*draws(size, butterflies)))


def assert_same(ours: NumpyButterflies, state, observation) -> None:
    """One moment of both; where a caught butterfly is counts for nothing."""
    np.testing.assert_array_equal(ours.observe(), observation)
    np.testing.assert_array_equal(ours.agent, state.agent)
    np.testing.assert_array_equal(ours.alive, state.alive)
    np.testing.assert_array_equal(ours.caught, state.caught)
    np.testing.assert_array_equal(ours.cells[ours.alive], state.butterflies[state.alive])
    assert (state.time == ours.time).all()


def at(tree, index):
    """The step or the world at `index`."""
    return jax.tree.map(lambda x: x[index], tree)


@pytest.mark.parametrize("catch", CATCHES)
@pytest.mark.parametrize(("size", "butterflies"), [(10, 6), (6, 12)])
def test_the_worlds_agree_at_every_step(size, butterflies, catch):
    first, steps, after = play(size, butterflies, catch)
    ours = NumpyButterflies(WORLDS, size, butterflies, catch)
    ours.place(first[0].butterflies)
    assert_same(ours, *first)
    for t in range(STEPS):
        assert not ours.truncated
        ours.step(*at(steps, t))
        assert_same(ours, *at(after, t))
    assert ours.truncated


@pytest.mark.parametrize("catch", CATCHES)
def test_a_single_world_is_one_of_the_batch(catch):
    first, steps, after = play(10, 6, catch)
    most = int(after[0].caught.sum(axis=0).argmax())
    ours = NumpyButterflies(catch=catch)
    ours.place(first[0].butterflies[most])
    assert_same(ours, *at(first, most))
    for t in range(STEPS):
        ours.step(*at(steps, (t, most)))
        assert_same(ours, *at(after, (t, most)))
    assert not ours.alive.all()


def test_the_default_worlds_are_the_same():
    world, ours = Butterflies(ButterfliesConfig()), NumpyButterflies(WORLDS)
    _, _, (states, observations) = play(10, 6, "after_both")
    ours.reset(np.random.default_rng(0))
    assert ours.observe().shape == observations[0].shape == (WORLDS, *world.obs_shape)
    assert ours.observe().dtype == observations.dtype
    assert world.num_butterflies == ours.num_butterflies and world.config.catch == "after_both"
    truncated = jax.vmap(jax.vmap(world.truncated))(states)
    assert truncated[-1].all() and not truncated[:-1].any()


def test_the_play_meets_every_rule():
    """Agreement means little where nothing happened: edges, catches, pairs, near misses."""
    first, (actions, moves), (states, observations) = play(6, 12, "after_both")
    cells = np.concatenate([first[0].butterflies[None], states.butterflies])
    alive = np.concatenate([first[0].alive[None], states.alive])
    agents = np.concatenate([first[0].agent[None], states.agent])
    for direction in range(4):
        assert ((agents[1:] == agents[:-1]) & (actions == direction)).any(), "agent at no edge"
        blocked = (cells[1:] == cells[:-1]) & (moves == direction)
        assert (blocked & alive[:-1]).any(), "butterfly at no edge"
    assert (states.caught > 1).any(), "no two caught at once"
    swapped = (cells[1:] == agents[:-1, :, None]) & (cells[:-1] == agents[1:, :, None])
    assert (swapped & alive[1:] & (moves != 4)).any(), "no swap of places"
    assert (~alive[:-1] & (cells[1:] == agents[1:, :, None])).any(), "no caught one met again"
    assert (observations[:, :, 1].sum((2, 3)) < alive[1:].sum(-1)).any(), "no shared cell"


def resets(num: int | None) -> np.ndarray:
    """The butterflies' cells after numpy's reset."""
    ours = NumpyButterflies(num)
    ours.reset(np.random.default_rng(0))
    assert ours.alive.all() and (ours.agent == 0).all() and (ours.caught == 0).all()
    return ours.cells.reshape(-1, 6)


def test_resets_put_butterflies_on_distinct_cells_away_from_the_agent():
    theirs = np.asarray(draws(10, 6)[0].butterflies)
    for cells in (theirs, resets(None), resets(500)):
        assert all(len(set(row)) == 6 for row in cells.tolist())
        assert cells.min() >= 1 and cells.max() <= 99
    for cells in (theirs, resets(500)):
        assert len(np.unique(cells)) > 90, "some cells are never drawn"


def test_draws_cover_the_five_actions():
    actions, moves = NumpyButterflies(8).draw(np.random.default_rng(0), 100)
    assert actions.shape == (100, 8) and moves.shape == (100, 8, 6)
    assert np.unique(actions).tolist() == np.unique(moves).tolist() == [0, 1, 2, 3, 4]
