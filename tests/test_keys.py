"""Which observations count as the same state."""

import jax
import jax.numpy as jnp
import numpy as np

import primax
from primax import SimHash, Space, Transition
from primax.rewards.keys import Projection, mixed


def test_signs_of_projections_are_the_bits_of_a_code():
    """By hand: (x - mean) * scale on three directions; the first is the lowest bit."""
    directions = jnp.array([[1.0, 0.0, -1.0], [0.0, 1.0, 1.0]])
    told = Projection(jnp.array([1.0, 10.0]), jnp.array([1.0, 0.1]), directions)
    keys = SimHash(bits=3, size=8)
    obs = jnp.array([[2.0, 0.0], [2.0, 40.0], [0.0, 20.0], [1.0, 10.0]])
    # shifted and scaled: (1, -1), (1, 3), (-1, 1), (0, 0)
    np.testing.assert_array_equal(keys.of(told, obs), [0b001, 0b111, 0b110, 0b000])


def test_more_codes_than_keys_are_spread_over_them():
    keys = SimHash(bits=32, size=1_000)
    assert keys.num == 1_000 and SimHash(bits=5, size=1_000).num == 32
    told = keys.init(jax.random.key(0), (3, 4))
    obs = jax.random.normal(jax.random.key(1), (4_000, 3, 4))
    found = np.bincount(np.asarray(keys.of(told, obs)), minlength=1_000)
    assert found.size == 1_000
    # 4,000 codes thrown into 1,000 boxes: about e^-4 of these stay empty, and none is crowded
    assert np.sum(found == 0) < 60 and found.max() < 25


def test_the_mix_is_a_bijection_by_its_inverse():
    x = np.random.default_rng(0).integers(0, 2**32, 1_000, dtype=np.uint64)
    y = np.asarray(mixed(jnp.asarray(x.astype(np.uint32)))).astype(np.uint64)
    back, mask = y, np.uint64(2**32 - 1)
    for multiplier, shift in ((0xC2B2AE35, 16), (0x85EBCA6B, 13)):
        back = _unshift(back, shift)
        back = back * np.uint64(pow(multiplier, -1, 2**32)) & mask
    np.testing.assert_array_equal(_unshift(back, 16), x)


def _unshift(x: np.ndarray, by: int) -> np.ndarray:
    found = x
    for _ in range(32 // by):
        found = x ^ (found >> np.uint64(by))
    return found


def test_the_warm_up_settles_the_scale():
    """Zeros and ones by (n1 + 1/2)/(n + 1); other numbers by mean and deviation; constants stay."""
    keys = SimHash(bits=2)
    told = keys.init(jax.random.key(0), (3,))
    obs = jnp.array([[0, 1, 0], [1, 1, 0], [0, 1, 0], [9, 9, 9]], jnp.uint8)
    is_lived = jnp.array([True, True, True, False])
    settled = keys.settle(told, obs, is_lived, "planes")
    mean = np.array([1.5, 3.5, 0.5]) / 4
    np.testing.assert_allclose(settled.mean, mean, rtol=1e-6)
    np.testing.assert_allclose(settled.scale, (mean * (1 - mean)) ** -0.5, rtol=1e-6)
    settled = keys.settle(told, obs.astype(jnp.float32), is_lived, "vector")
    np.testing.assert_allclose(settled.mean, [1 / 3, 1, 0], rtol=1e-6)
    np.testing.assert_allclose(settled.scale, [4.5**0.5, 1, 1], rtol=1e-6)
    np.testing.assert_array_equal(settled.directions, told.directions)


STATES, ACTIONS = 5, 2
SMALL = {"replay": 64, "recent": 16, "window": 6, "warmup": 4}


def shown(keys: np.ndarray) -> Transition:
    """States of a line: an observation is the place on it, in large units."""
    seen = np.stack([1_000.0 + 50 * keys, (keys - 2.0) ** 2], axis=-1).astype(np.float32)
    never = np.zeros(keys.shape, bool)
    actions = np.zeros(keys.shape, int)
    return Transition(seen[:-1], actions[1:], seen[1:], never[1:], never[1:])


def test_steps_of_the_warm_up_are_counted_by_the_settled_keys():
    """Exact counts: five places, told apart by 32 signs; one that is met N times is worth 1/√N."""
    bonus = primax.bonus("count", Space((2,), ACTIONS), keys="simhash", settings=SMALL)
    line = np.array([0, 1, 2, 3, 4, 3, 2, 1, 0, 1, 2, 1, 0])[:, None]
    part = shown(line)
    state, worth = bonus.step(bonus.init(0), part)
    from_, seen = line[:-1, 0], np.zeros(STATES)
    for t, place in enumerate(from_):
        seen[place] += 1
        if t >= 4:
            np.testing.assert_allclose(worth[t, 0], seen[place] ** -0.5, rtol=1e-6)
    assert int(jnp.sum(state.reward)) == 12
    np.testing.assert_array_equal(np.sort(np.asarray(state.reward))[-5:], np.sort(seen))


def test_a_function_says_the_key_and_is_held_to_its_word():
    space = Space((2,), ACTIONS)
    bonus = primax.bonus(
        "count",
        space,
        keys=(lambda obs: ((obs[0] - 1_000) // 50).astype(int), STATES),
        settings=SMALL,
    )
    assert "0x" not in repr(bonus.core.keys) and "lambda" in repr(bonus.core.keys)
    line = np.array([0, 1, 0, 1, 0, 1, 2])[:, None]
    state, worth = bonus.step(bonus.init(0), shown(line))
    np.testing.assert_allclose(worth[-2:, 0], [3**-0.5, 3**-0.5], rtol=1e-6)
    try:
        bonus.step(state, shown(np.array([[7], [0]])))
    except primax.InputError as error:
        assert "key: expected whole numbers from 0 to 4, got 7" in str(error)
    else:
        raise AssertionError("a key out of range was taken")
