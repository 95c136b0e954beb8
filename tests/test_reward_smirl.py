"""SMIRL and the density under it: by hand, against numpy, and what an episode must forget."""

import itertools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reward_case import HORIZON, KEY, PLANES, SPEC, observations, step

from primax.replay import Batch
from primax.rewards import density
from primax.rewards.smirl import Smirl, SmirlConfig


def stack(items):
    return jax.tree.map(lambda *x: jnp.stack(x), *items)


def rows(obs: np.ndarray, memos: list) -> Batch:
    """The transitions of one episode, as the ring would give them."""
    num = len(obs) - 1
    whole = jnp.zeros(num, jnp.int32)
    return Batch(
        obs=jnp.asarray(obs[:-1]),
        action=whole,
        task=jnp.zeros(num),
        next_obs=jnp.asarray(obs[1:]),
        terminated=jnp.zeros(num, bool),
        weight=jnp.ones(num),
        key=whole,
        next_key=whole,
        memo=stack(memos[:-1]),
        next_memo=stack(memos[1:]),
    )


def episode(reward: Smirl, state, obs: np.ndarray):
    """Lives through these observations; the state after them, and their rows."""
    state, memo = reward.begin(state, jnp.asarray(obs[0]), KEY)
    memos = [memo]
    for before, after in itertools.pairwise(obs):
        state, memo = reward.observe(state, step(before, 0, after), KEY)
        memos.append(memo)
    return state, rows(obs, memos)


def log_p(before: list[np.ndarray], x: np.ndarray) -> float:
    """The oracle: each cell's chance is its share of set ones among those before and one empty."""
    seen = np.stack([np.zeros(PLANES), *before]).astype(float)
    theta = np.clip(seen.mean(axis=0), 1e-4, 1 - 1e-4)
    return float(np.sum(np.where(x == 1, np.log(theta), np.log(1 - theta))))


def test_density_by_hand():
    """One cell, set in one observation of two: a fair coin. The other 23 were never set."""
    x = np.zeros(PLANES, np.uint8)
    x[0, 1, 2] = 1
    now = density.add(density.start(SPEC), jnp.asarray(x))
    rest = 23 * np.log(1 - 1e-4)
    assert float(density.log_density(now, jnp.asarray(x))) == pytest.approx(np.log(0.5) + rest)
    never = jnp.asarray(np.roll(x, 1))
    found = float(density.log_density(now, never))
    assert found == pytest.approx(np.log(0.5) + np.log(1e-4) + 22 * np.log(1 - 1e-4), rel=1e-5)
    one = -(1e-4 * np.log(1e-4) + (1 - 1e-4) * np.log(1 - 1e-4))
    assert float(density.entropy(now)) == pytest.approx(np.log(2) + 23 * one, rel=1e-5)


def test_an_episodes_rewards_are_the_oracles():
    """Each observation under those before it, itself and the first not among them."""
    obs = observations(np.random.default_rng(0), HORIZON + 1)
    reward = Smirl(SPEC, SmirlConfig(normaliser="none"))
    state, found = episode(reward, reward.init(KEY), obs)
    expected = [log_p(list(obs[1:t]), obs[t]) for t in range(1, HORIZON + 1)]
    np.testing.assert_allclose(reward.score(state, found), expected, rtol=1e-5)
    with_itself = [log_p(list(obs[1 : t + 1]), obs[t]) for t in range(1, HORIZON + 1)]
    assert not np.allclose(with_itself, expected, rtol=0.1)


def test_the_first_observation_counts_if_it_is_asked_to():
    obs = observations(np.random.default_rng(1), 3)
    reward = Smirl(SPEC, SmirlConfig(normaliser="none", count_first=True))
    state, found = episode(reward, reward.init(KEY), obs)
    expected = [log_p(list(obs[:t]), obs[t]) for t in (1, 2)]
    np.testing.assert_allclose(reward.score(state, found), expected, rtol=1e-5)


def test_an_episode_forgets_the_one_before():
    rng = np.random.default_rng(2)
    first, second = observations(rng, HORIZON + 1), observations(rng, HORIZON + 1)
    reward = Smirl(SPEC, SmirlConfig(normaliser="none"))
    fresh, alone = episode(reward, reward.init(KEY), second)
    state, _ = episode(reward, reward.init(KEY), first)
    state, after = episode(reward, state, second)
    np.testing.assert_array_equal(reward.score(state, after), reward.score(fresh, alone))


def test_staying_pays_and_going_on_does_not():
    """An agent that stays where it is, and one that is somewhere new at every step."""
    stay = np.zeros((HORIZON + 1, *PLANES), np.uint8)
    go = stay.copy()
    stay[:, 0, 0, 0] = 1
    go[range(HORIZON + 1), 0, np.arange(HORIZON + 1) // 4, np.arange(HORIZON + 1) % 4] = 1
    reward = Smirl(SPEC, SmirlConfig())
    returns = []
    for obs in (stay, go):
        state, found = episode(reward, reward.init(KEY), obs)
        worth = np.asarray(reward.score(state, found))
        assert (worth < 0).all()
        returns.append(worth.sum())
    assert returns[0] > 0.5 * returns[1]


def test_the_critics_see_the_density_and_the_clock():
    obs = observations(np.random.default_rng(3), 3)
    reward = Smirl(SPEC, SmirlConfig())
    _, found = episode(reward, reward.init(KEY), obs)
    seen = np.asarray(reward.view(found.next_obs, found.next_memo))
    assert seen.shape[1:] == reward.view_planes == (5, 3, 4)
    np.testing.assert_array_equal(seen[:, :2], obs[1:])
    theta = np.clip(np.stack([obs[1] / 2, (obs[1] + obs[2]) / 3]), 1e-4, 1 - 1e-4)
    np.testing.assert_allclose(seen[:, 2:4], theta, rtol=1e-6)
    np.testing.assert_allclose(seen[:, 4], np.full((2, 3, 4), [[[2]], [[3]]]) / HORIZON, rtol=1e-6)
    one = reward.view(found.obs[0], jax.tree.map(lambda x: x[0], found.memo))
    np.testing.assert_allclose(one[4], 1 / HORIZON, rtol=1e-6)


def test_divided_by_the_deviation_of_what_was_sampled_and_not_shifted():
    obs = observations(np.random.default_rng(4), HORIZON + 1)
    reward = Smirl(SPEC, SmirlConfig())
    state, found = episode(reward, reward.init(KEY), obs)
    raw = np.array([log_p(list(obs[1:t]), obs[t]) for t in range(1, HORIZON + 1)])
    found = replace(found, weight=found.weight.at[-1].set(0.0))
    state, said = reward.learn(state, found, KEY)
    np.testing.assert_allclose(reward.score(state, found), raw / raw[:-1].std(), rtol=1e-3)
    np.testing.assert_allclose(said["log_density"], raw[:-1].mean(), rtol=1e-5)


def test_log_densities_are_clipped():
    obs = observations(np.random.default_rng(5), 3)
    reward = Smirl(SPEC, SmirlConfig(normaliser="none", log_clip=20.0))
    state, found = episode(reward, reward.init(KEY), obs)
    assert log_p([], obs[1]) < -20
    assert float(reward.score(state, found)[0]) == -20.0


def test_counts_are_kept_in_the_smallest_type_that_holds_an_episode():
    for horizon, kind in ((100, jnp.uint8), (254, jnp.uint16), (65_534, jnp.uint32)):
        now = density.start(replace(SPEC, horizon=horizon))
        assert now.total.dtype == now.num.dtype == kind
