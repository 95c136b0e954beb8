"""The ring against a plain list of everything that was ever written."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from primax.agent import ring
from primax.rewards import observations

PLANES = (2, 3, 3)


def observation(number: int) -> np.ndarray:
    """A plane pattern that tells which observation it is."""
    bits = [(number >> i) & 1 for i in range(18)]
    return np.array(bits, np.uint8).reshape(PLANES)


def slot(number: int) -> ring.Slot:
    return ring.Slot(ring.pack(jnp.asarray(observation(number))), jnp.int32(number))


def row(number: int) -> ring.Row:
    return ring.Row(
        jnp.uint8(number % 5),
        jnp.float32(number),
        jnp.int32(10 * number),
        jnp.int32(20 * number),
        jnp.bool_(number % 3 == 0),
        jnp.bool_(number % 7 == 0),
    )


def stack(items):
    return jax.tree.map(lambda *x: jnp.stack(x), *items)


def filled(capacity: int, horizon: int, rounds: int, size: int):
    """A ring after some rounds of `size` rows, and the list (before, row, after) of all rows.

    Observations are numbered over all episodes, each with one more than its rows.
    """
    stored = ring.empty(capacity, horizon, slot(0), row(0))
    everything = []
    for start in range(0, rounds * size, size):
        first = start + start // horizon
        stored = ring.open_slot(stored, jnp.int32(start), slot(first))
        rows = list(range(start, start + size))
        stored = ring.write(
            stored,
            jnp.int32(start),
            stack([slot(first + 1 + i) for i in range(size)]),
            stack(map(row, rows)),
        )
        everything += [(first + i, n, first + 1 + i) for i, n in enumerate(rows)]
    return stored, everything


@pytest.mark.parametrize(
    ("capacity", "horizon", "rounds", "size"),
    [(12, 6, 1, 2), (12, 6, 5, 2), (12, 6, 11, 3), (40, 4, 33, 4)],
)
def test_reading_by_age_gives_what_was_written(capacity, horizon, rounds, size):
    stored, everything = filled(capacity, horizon, rounds, size)
    written = len(everything)
    readable = int(ring.open_rows(stored, jnp.int32(written)))
    assert readable == min(written, capacity - 1)
    ages = np.arange(1, readable + 1)
    batch = ring.read(stored, jnp.int32(written), jnp.asarray(ages), PLANES)
    for i, age in enumerate(ages):
        before, number, after = everything[-age]
        np.testing.assert_array_equal(batch.obs[i], observation(before))
        np.testing.assert_array_equal(batch.next_obs[i], observation(after))
        assert (int(batch.memo[i]), int(batch.next_memo[i])) == (before, after)
        assert (int(batch.action[i]), float(batch.task[i])) == (number % 5, number)
        assert (int(batch.key[i]), bool(batch.terminated[i])) == (10 * number, number % 3 == 0)
        assert float(batch.weight[i]) == (0.0 if number % 7 == 0 else 1.0)


def test_the_last_row_of_an_episode_sees_the_observation_before_the_reset():
    stored, everything = filled(capacity=12, horizon=6, rounds=4, size=3)
    batch = ring.read(stored, jnp.int32(12), jnp.array([7, 6]), PLANES)
    assert (int(batch.next_memo[0]), int(batch.memo[1])) == (6, 7)
    assert everything[5] == (5, 5, 6) and everything[6] == (7, 6, 8)


def test_opening_a_slot_again_inside_an_episode_changes_nothing():
    stored, _ = filled(capacity=12, horizon=6, rounds=2, size=2)
    again = ring.open_slot(stored, jnp.int32(4), slot(4))
    for one, two in zip(jax.tree.leaves(stored), jax.tree.leaves(again), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("planes", [(4, 10, 10), (3, 6, 6), (2, 3, 10), (1, 1, 1)])
def test_packing_round_trips(planes):
    flat = np.random.default_rng(0).integers(0, 2, size=(5, *planes)).astype(np.uint8)
    bits = jax.vmap(ring.pack)(jnp.asarray(flat))
    assert bits.shape == (5, -(-planes[0] * planes[1] * planes[2] // 8))
    np.testing.assert_array_equal(observations.unpacked(bits, "planes", planes), flat)


@pytest.mark.parametrize("written", [3, 8, 10, 41, 44, 77])
def test_whole_episodes_are_drawn_once_each_and_in_the_order_of_time(written):
    """Against a list: twelve rows are three episodes of four, of a ring of twenty."""
    stored, horizon = ring.empty(20, 4, slot(0), row(0)), 4
    drawn = jax.jit(ring.draw_episodes, static_argnums=2)
    whole = [e for e in range(written // 4) if 4 * e > written - 20]
    met = set()
    for key in jax.random.split(jax.random.key(0), 30):
        age, is_there = drawn(stored, jnp.int32(written), 12, key)
        assert int(is_there.sum()) == 4 * min(3, len(whole))
        at = (written - np.asarray(age))[np.asarray(is_there)].reshape(-1, horizon)
        assert (at == at[:, :1] + np.arange(horizon)).all() and (at[:, 0] % horizon == 0).all()
        episodes = at[:, 0] // horizon
        assert (np.diff(episodes) > 0).all() and set(episodes) <= set(whole)
        met |= set(episodes)
    assert met == set(whole)


def test_the_time_limit_comes_after_the_last_row_of_each_episode():
    stored, _ = filled(12, 6, 5, 2)
    batch = ring.read(stored, jnp.int32(10), jnp.arange(1, 11), PLANES)
    np.testing.assert_array_equal(batch.truncated, np.arange(9, -1, -1) % 6 == 5)
