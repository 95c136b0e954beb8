"""E3B against numpy: the ellipse of an episode, when it begins anew, its scale, and what teaches φ."""

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from episodes_case import PATHS, PLANES, SMALL, live, many, places, probed, rows
from probes import Constant, Delayed, Walks
from reward_case import GAMMA, KEY, SPEC, batch, features, mlp, poisoned, running_std

import primax
from primax.rewards.e3b import E3b, E3bConfig, added, bonus

RIDGE = 0.1


@cache
def made(**options):
    """A reward, its first state, and its compiled functions."""
    small = {"features": 6, "learning_rate": 0.01, "normaliser": "none", "reward_clip": 1e6}
    reward = E3b(SPEC, E3bConfig(**small | options))
    return reward, jax.jit(reward.init)(KEY), jax.jit(reward.learn), jax.jit(reward.score)


def phi(state, obs) -> np.ndarray:
    return np.tanh(features(state.model.encoder, obs))


def oracle(x: np.ndarray, ridge: float = RIDGE) -> tuple[list[float], np.ndarray]:
    """What an episode of these features pays, by plain inverses; and its C."""
    c, paid = ridge * np.eye(x.shape[1]) + np.outer(x[0], x[0]), []
    for row in x[1:]:
        paid.append(float(row @ np.linalg.inv(c) @ row))
        c += np.outer(row, row)
    return paid, c


@cache
def lived(**options):
    """The two episodes: the state after them, and their rows."""
    reward, state, _, _ = made(**options)
    memos = []
    for path in PATHS:
        state, kept = live(reward, state, path, places())
        memos.append(kept)
    return state, rows(PATHS, places(), memos)


def wanted(state, ridge: float = RIDGE) -> np.ndarray:
    return np.concatenate([oracle(phi(state, places()[path]), ridge)[0] for path in PATHS])


# Formulas


def test_a_bonus_by_hand():
    """λ = 0.1: 10 for the first (1, 0), 1/1.1 for it again, and 1/1.1 + 10 for (1, 1)."""
    first, both = jnp.array([1.0, 0.0]), jnp.array([1.0, 1.0])
    precision = jnp.eye(2) / 0.1
    assert float(bonus(precision, first)) == pytest.approx(10.0)
    precision = added(precision, first)
    np.testing.assert_allclose(precision, [[1 / 1.1, 0], [0, 10]], rtol=1e-6)
    assert float(bonus(precision, first)) == pytest.approx(1 / 1.1)
    assert float(bonus(precision, both)) == pytest.approx(1 / 1.1 + 10)
    want = np.linalg.inv(np.array([[2.1, 1.0], [1.0, 1.1]]))
    np.testing.assert_allclose(added(precision, both), want, rtol=1e-5)


def test_the_inverse_stays_one_over_a_long_episode():
    """A thousand rank-one updates in float32."""
    x = np.tanh(np.random.default_rng(0).normal(size=(1_000, 16)))
    grow = lambda now, row: (added(now, row), bonus(now, row))  # noqa: E731
    last, paid = jax.jit(lambda x: jax.lax.scan(grow, jnp.eye(16) / RIDGE, x))(
        jnp.asarray(x, jnp.float32)
    )
    c = RIDGE * np.eye(16) + x.T @ x
    np.testing.assert_allclose(np.asarray(last) @ c, np.eye(16), atol=1e-3)
    before = c - np.outer(x[-1], x[-1])
    np.testing.assert_allclose(paid[-1], x[-1] @ np.linalg.inv(before) @ x[-1], rtol=1e-3)


def test_rounding_never_makes_a_bonus_negative():
    assert float(bonus(-1e-6 * jnp.eye(2), jnp.ones(2))) == 0.0


# Episodes


def test_bonuses_of_two_episodes_are_the_oracles():
    """Scored before it is added, with the first observation in C, which begins anew."""
    state, found = lived()
    want = wanted(state)
    np.testing.assert_allclose(found.next_memo, want, rtol=1e-3)
    np.testing.assert_allclose(made()[3](state, found), want, rtol=1e-3)
    _, c = oracle(phi(state, places()[PATHS[1]]))
    np.testing.assert_allclose(state.precision, np.linalg.inv(c), rtol=1e-3, atol=1e-3)


def test_every_part_of_the_statistic_is_told_apart_by_these_numbers():
    """Another ridge, C kept over episodes, the first observation left out, or an s' added too early."""
    state, found = lived()
    paid, x = np.asarray(found.next_memo), [phi(state, places()[path]) for path in PATHS]
    joined = np.array(oracle(np.concatenate(x))[0])
    kept_on = np.delete(joined, len(PATHS[0]) - 1)
    others = {
        "ridge": wanted(state, 1.0),
        "kept on": kept_on,
        "no first": [oracle(np.concatenate([0 * y[:1], y[1:]]))[0] for y in x],
        "early": paid / (1 + paid),
    }
    for name, other in others.items():
        assert np.abs(np.ravel(other) - paid).max() > 0.05 * paid.max(), name


def test_the_ridge_is_what_c_begins_with():
    state, found = lived(ridge=2.0)
    np.testing.assert_allclose(found.next_memo, wanted(state, 2.0), rtol=1e-3)


def test_an_episode_forgets_the_one_before():
    reward, state, _, _ = made()
    _, alone = live(reward, state, PATHS[1], places())
    after, _ = live(reward, state, PATHS[0], places())
    _, second = live(reward, after, PATHS[1], places())
    np.testing.assert_array_equal(alone, second)


def test_what_is_learnt_later_does_not_change_what_was_paid():
    _, _, learn, score = made()
    state, found = lived()
    now = state
    for _ in range(5):
        now, _ = learn(now, found, KEY)
    assert np.abs(phi(now, places()) - phi(state, places())).max() > 0.01
    np.testing.assert_array_equal(score(now, found), score(state, found))


# Scale


def test_divided_by_the_deviation_of_all_bonuses_lived_and_clipped():
    _, _, _, score = made(normaliser="rewards", reward_clip=2.0)
    state, found = lived(normaliser="rewards", reward_clip=2.0)
    raw = wanted(state)
    want = raw / running_std([raw])
    assert (want > 2).any() and (want < 2).any()
    np.testing.assert_allclose(score(state, found), np.minimum(want, 2), rtol=2e-3)


def test_returns_are_filtered_in_the_order_of_time():
    state, found = lived(normaliser="returns")
    sums = []
    for r in wanted(state):
        sums.append(r + GAMMA * (sums[-1] if sums else 0.0))
    want = wanted(state) / running_std([np.array(sums)])
    np.testing.assert_allclose(made(normaliser="returns")[3](state, found), want, rtol=2e-3)


# Learning


def test_the_loss_is_the_surprise_at_the_action():
    _, state, learn, _ = made()
    found = batch(0, next_memo=jnp.zeros(8))
    pairs = np.concatenate([phi(state, found.obs), phi(state, found.next_obs)], axis=1)
    logits = mlp(pairs, state.model.hidden, state.model.out)
    log_p = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    chosen = log_p[np.arange(8), np.asarray(found.action)]
    _, said = learn(state, found, KEY)
    np.testing.assert_allclose(said["inverse_loss"], -chosen[:-1].sum() / 8, rtol=1e-4)
    hits = logits.argmax(axis=1) == np.asarray(found.action)
    np.testing.assert_allclose(said["inverse_accuracy"], hits[:-1].mean(), rtol=1e-6)


def test_features_learn_to_tell_the_actions():
    _, state, learn, _ = made()
    found, first = batch(0, next_memo=jnp.zeros(8)), None
    for _ in range(150):
        state, said = learn(state, found, KEY)
        first = said["inverse_loss"] if first is None else first
    assert said["inverse_accuracy"] == 1.0 and said["inverse_loss"] < 0.2 * first


def test_a_row_that_teaches_nothing_changes_nothing():
    _, state, learn, _ = made(normaliser="rewards")
    found = batch(0, next_memo=jnp.ones(8))
    poison = replace(poisoned(found), next_memo=found.next_memo.at[-1].set(1e6))
    for a, b in zip(*(jax.tree.leaves(learn(state, x, KEY)) for x in (found, poison)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)


# Worlds


def test_in_probe_worlds_bonuses_are_those_by_hand():
    """A place never left pays p / (λ + n p) with p = ‖φ‖² at its n-th return; a circle, and a walk
    that ends, pay as plain inverses say."""
    options = E3bConfig(features=3, normaliser="none")
    for probe, path, episodes in (
        (Constant, [0, 0, 0, 0, 0], 3),
        (Delayed, [0, 1, 2, 0, 1], 3),
        (Walks, [0, 1, 2], 4),
    ):
        _, state, found = probed("e3b", probe, options)
        x = phi(state.reward, np.eye(3).reshape(3, 1, 1, 3))[path]
        want = oracle(x)[0]
        if probe is Constant:
            p = float(x[0] @ x[0])
            np.testing.assert_allclose(want, [p / (RIDGE + n * p) for n in (1, 2, 3, 4)])
        kept = np.asarray(found.next_memo).reshape(episodes, -1)[:, : len(want)]
        np.testing.assert_allclose(kept, np.tile(want, (episodes, 1)), rtol=1e-3)


def test_many_environments_have_ellipses_of_their_own():
    """Across ends and cuts; rewards are what a step is paid when it is taken, and no other way."""
    part, after = many(np.random.default_rng(1), 40, 3)
    settings = SMALL | {"reward.normaliser": "none", "reward.reward_clip": 1e6}
    made = primax.bonus("e3b", PLANES, envs=3, settings=settings)
    state, worth = made.step(made.init(0), part)
    ended, want = np.asarray(part.terminated | part.truncated), np.zeros(after.shape)
    encoded = lambda x: phi(state.reward, x[None])[0]  # noqa: E731
    for env in range(3):
        episode = []
        for t in range(40):
            episode = episode or [encoded(part.obs[t, env])]
            episode.append(encoded(part.next_obs[t, env]))
            want[t, env] = oracle(np.array(episode))[0][-1]
            episode = [] if ended[t, env] else episode
    np.testing.assert_allclose(worth[1:], want[1:], rtol=2e-3)
    with pytest.raises(primax.InputError, match="paid once"):
        made.score(state, jax.tree.map(lambda x: x[-1], part))
    state, said = made.learn(state, jax.tree.map(lambda x: x[-1], part))
    assert float(said["inverse_loss"]) > 0


@pytest.mark.parametrize("obs", [(4,), (16, 16, 3)])
def test_vectors_and_images_fit(obs):
    """Traced, not compiled."""
    bonus = primax.bonus("e3b", primax.Space(obs, 3), envs=2, settings=SMALL)
    seen, never = (
        np.zeros((5, 2, *obs), np.uint8 if obs[1:] else np.float32),
        np.zeros((5, 2), bool),
    )
    part = primax.Transition(seen, np.zeros((5, 2), int), seen, never, never)
    _, worth = jax.eval_shape(bonus.step, jax.eval_shape(bonus.core.init, KEY), part)
    assert worth.shape == (5, 2)
