"""SMIRL and the density under it: by hand, against numpy, and what an episode must forget."""

import itertools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reward_case import HORIZON, KEY, PLANES, SPEC, observations, step
from scipy.stats import bernoulli

from primax.rewards.parts import density
from primax.rewards.smirl import Smirl, SmirlConfig
from primax.rewards.transition import Batch


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
        truncated=jnp.zeros(num, bool),
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


def test_an_episode_is_scipys_whatever_lies_in_rows_never_written():
    """The last row is another episode's density and a full observation, and weighs nothing."""
    obs = observations(np.random.default_rng(6), HORIZON + 1)
    reward = Smirl(SPEC, SmirlConfig())
    state, found = episode(reward, reward.init(KEY), obs)
    seen = np.concatenate([np.zeros((1, *PLANES)), obs[1:]])
    theta = [np.clip(seen[:t].mean(axis=0), 1e-4, 1 - 1e-4) for t in range(1, HORIZON)]
    logs = [bernoulli.logpmf(x, p).sum() for x, p in zip(obs[1:], theta, strict=False)]
    poison = replace(
        found,
        next_obs=found.next_obs.at[-1].set(255),
        weight=found.weight.at[-1].set(0.0),
        memo=jax.tree.map(lambda x: x.at[-1].set(0), found.memo),
    )
    state, said = reward.learn(state, poison, KEY)
    np.testing.assert_allclose(said["log_density"], np.mean(logs), rtol=1e-5)
    np.testing.assert_allclose(said["reward_std"], np.std(logs), rtol=1e-4)
    np.testing.assert_allclose(reward.score(state, poison)[:-1], logs / np.std(logs), rtol=1e-4)


def test_what_never_changes_costs_less_and_less_and_a_coin_always_the_same():
    obs = np.zeros((HORIZON + 1, *PLANES), np.uint8)
    obs[:, 0, 0, 0] = 1
    now, costs = density.start(SPEC), []
    for x in obs[1:]:
        costs.append(float(density.log_density(now, jnp.asarray(x))))
        now = density.add(now, jnp.asarray(x))
    assert (np.diff(costs) > 0).all()
    # A fair coin in one cell, seen a hundred times: whichever side comes costs log 2 for ever.
    many = density.Density(jnp.zeros(PLANES, jnp.uint8).at[1, 0, 0].set(50), jnp.uint8(100))
    sides = [jnp.zeros(PLANES, jnp.uint8).at[1, 0, 0].set(side) for side in (0, 1)]
    rest = 23 * np.log(1 - 1e-4)
    for side in sides:
        assert float(density.log_density(many, side)) == pytest.approx(np.log(0.5) + rest, rel=1e-4)


def test_one_map_for_all_planes_if_it_is_asked_for():
    """What is expected in each cell: the planes' chances, summed."""
    obs = observations(np.random.default_rng(3), 3)
    one, each = (Smirl(SPEC, SmirlConfig(map=name)) for name in ("cells", "planes"))
    _, found = episode(one, one.init(KEY), obs)
    seen = np.asarray(one.view(found.next_obs, found.next_memo))
    wide = np.asarray(each.view(found.next_obs, found.next_memo))
    assert seen.shape[1:] == one.view_shape == (4, 3, 4)
    np.testing.assert_allclose(seen[:, 2], wide[:, 2:4].sum(axis=1), rtol=1e-6)
    np.testing.assert_array_equal(seen[:, [0, 1, 3]], wide[:, [0, 1, 4]])


def test_the_agents_plane_enters_the_density_only_if_it_is_asked_to():
    """The critics see its density all the same."""
    obs = observations(np.random.default_rng(7), 4)
    spec = replace(SPEC, channels=("agent", "other"))
    for agent in (False, True):
        reward = Smirl(spec, SmirlConfig(normaliser="none", agent=agent))
        state, found = episode(reward, reward.init(KEY), obs)
        seen = obs.copy()
        seen[:, 0] *= agent  # a plane never set costs next to nothing
        expected = [log_p(list(seen[1:t]), seen[t]) for t in range(1, 4)]
        np.testing.assert_allclose(reward.score(state, found), expected, atol=2e-3)
        chances = reward.view(found.next_obs, found.next_memo)[0, 2:4]
        np.testing.assert_allclose(chances, np.clip(obs[1] / 2, 1e-4, 1 - 1e-4), rtol=1e-6)


def test_a_prior_is_so_many_cells_set_and_so_many_not():
    """Laplace's rule: a cell never set in one observation, (0 + 1) / (1 + 2)."""
    x = np.zeros(PLANES, np.uint8)
    x[0, 1, 2] = 1
    now, x = density.start(SPEC), jnp.asarray(x)
    expected = np.log(1 / 3) + 23 * np.log(2 / 3)
    assert float(density.log_density(now, x, 1.0)) == pytest.approx(expected, rel=1e-5)
    expected = np.log(2 / 4) + 23 * np.log(3 / 4)
    assert float(density.log_density(density.add(now, x), x, 1.0)) == pytest.approx(
        expected, rel=1e-5
    )


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
    assert seen.shape[1:] == reward.view_shape == (5, 3, 4)
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
