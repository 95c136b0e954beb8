"""Running moments against numpy, and which of the three normalisers does what."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.wrappers.utils import RunningMeanStd
from reward_case import GAMMA

from primax.rewards.parts import normaliser


def after(batches, weights=None):
    now = normaliser.start()
    for i, x in enumerate(batches):
        weight = np.ones(len(x)) if weights is None else weights[i]
        now = normaliser.merge(now, jnp.asarray(x, jnp.float32), jnp.asarray(weight, jnp.float32))
    return now


def test_moments_by_hand():
    """1, 3 and 5: mean 3 and variance 8/3, but for the weight of what they start with."""
    now = after([[1.0, 3.0], [5.0]])
    assert float(now.mean) == pytest.approx(3.0, abs=1e-3)
    assert float(now.variance) == pytest.approx(8 / 3, abs=1e-3)
    assert float(now.count) == pytest.approx(3.0, abs=1e-3)


def test_moments_are_those_of_all_batches_together():
    rng = np.random.default_rng(0)
    batches = [rng.normal(3.0, 0.1 * (i + 1), 64) for i in range(300)]
    now, all_ = after(batches), np.concatenate(batches)
    np.testing.assert_allclose(float(now.mean), all_.mean(), rtol=1e-5)
    np.testing.assert_allclose(float(now.variance), all_.var(), rtol=1e-3)


def test_moments_are_gymnasiums():
    rng, theirs = np.random.default_rng(1), RunningMeanStd()
    batches = [rng.normal(0.01, 1e-3, size) for size in (1, 64, 64, 7, 64)]
    for x in batches:
        theirs.update(x)
    ours = after(batches)
    np.testing.assert_allclose(
        [ours.count, ours.mean, ours.variance], [theirs.count, theirs.mean, theirs.var], rtol=1e-4
    )


def test_what_has_no_weight_is_not_there():
    poison = after([[1.0, 1e6, 3.0], [np.nan, 5.0]], [[1, 0, 1], [0, 1]])
    clean = after([[1.0, 3.0], [5.0]])
    for name in ("count", "mean", "variance"):
        np.testing.assert_allclose(getattr(poison, name), getattr(clean, name), rtol=1e-6)
    nothing = normaliser.merge(clean, jnp.full(4, 1e6), jnp.zeros(4))
    for name in ("count", "mean", "variance"):
        assert getattr(nothing, name) == getattr(clean, name)


def test_separate_things_have_separate_moments():
    x = jnp.asarray([[1.0, 10.0], [3.0, 10.0]])
    now = normaliser.merge(normaliser.start((2,)), x, jnp.asarray([[1.0, 1.0], [1.0, 0.0]]))
    np.testing.assert_allclose(now.count, [2, 1], rtol=1e-3)
    np.testing.assert_allclose(now.mean, [2, 10], rtol=1e-3)
    np.testing.assert_allclose(now.variance, [1, 0.0], atol=2e-2)


REWARDS = np.array([2.0, 4.0, 6.0, 100.0])
WEIGHT = np.array([1.0, 1.0, 1.0, 0.0])


def scaled(kind):
    """Rewards 2, 4 and 6, met one by one and then sampled together."""
    scale = normaliser.fresh()
    for reward in REWARDS[:3]:
        scale = normaliser.stream(scale, jnp.float32(reward), kind, GAMMA)
    weight = jnp.asarray(WEIGHT, jnp.float32)
    scale = normaliser.minibatch(scale, jnp.asarray(REWARDS, jnp.float32), weight, kind)
    return np.asarray(normaliser.normalise(scale, jnp.asarray(REWARDS, jnp.float32), kind))


def test_rewards_divides_by_their_deviation_and_leaves_the_zero_where_it_is():
    np.testing.assert_allclose(scaled("rewards"), REWARDS / np.std([2, 4, 6]), rtol=1e-3)


def test_returns_divides_the_rewards_by_the_deviation_of_their_discounted_sum():
    """The sums are 2, 0.9 * 2 + 4 and so on. What comes out is rewards, not those sums."""
    sums = [2.0, 5.8, 0.9 * 5.8 + 6]
    np.testing.assert_allclose(scaled("returns"), REWARDS / np.std(sums), rtol=1e-3)


def test_standard_alone_subtracts_the_mean():
    np.testing.assert_allclose(
        scaled("standard"), (REWARDS - 4) / np.std([2, 4, 6]), rtol=1e-3, atol=1e-3
    )


def test_moving_alone_forgets():
    """A first minibatch of errors a hundred times as large as all that come after."""
    rng, found = np.random.default_rng(2), {}
    batches = np.abs(rng.normal(scale=1e-3, size=(1_200, 64)))
    batches[0] *= 100
    for kind in ("rewards", "moving"):
        take = lambda scale, x: (normaliser.minibatch(scale, x, jnp.ones(64), kind), None)  # noqa: B023, E731
        scale, _ = jax.lax.scan(take, normaliser.fresh(), jnp.asarray(batches, jnp.float32))
        found[kind] = float(normaliser.deviation(scale.moments))
    np.testing.assert_allclose(found["rewards"], np.std(batches), rtol=1e-3)
    np.testing.assert_allclose(found["moving"], np.std(batches[-500:]), rtol=0.05)
    assert found["rewards"] > 3 * found["moving"]
    np.testing.assert_allclose(scaled("moving"), scaled("rewards"))


def test_none_does_nothing():
    np.testing.assert_array_equal(scaled("none"), REWARDS)


def test_before_anything_was_seen_the_scale_is_one():
    for kind in normaliser.KINDS:
        assert normaliser.normalise(normaliser.fresh(), jnp.float32(3.0), kind) == 3.0
