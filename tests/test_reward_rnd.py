"""RND against numpy: the error, its scale, what trains it and what must not."""

from dataclasses import replace
from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reward_case import GAMMA, KEY, SPEC, batch, features, mlp, noisy, poisoned, running_std, step

from primax.errors import InputError
from primax.rewards.rnd import Rnd, RndConfig, mean_square


@cache
def made(**options):
    """A reward, its first state, and its compiled functions."""
    small = {"features": 8, "learning_rate": 0.01, "predictor_layers": 2, "normaliser": "rewards"}
    rnd = Rnd(SPEC, RndConfig(**small | options))
    return rnd, jax.jit(rnd.init)(KEY), jax.jit(rnd.learn), jax.jit(rnd.score)


def error(state, obs) -> np.ndarray:
    """The oracle, in float64."""
    says = features(state.predictor.trunk, obs)
    for layer in state.predictor.layers:
        says = mlp(np.maximum(says, 0), layer)
    return ((says - features(state.target, obs)) ** 2).mean(axis=1)


def test_the_error_is_a_mean_over_features():
    x = jnp.asarray([[1.0, 2.0, 3.0], [0.0, 0.0, 6.0]])
    np.testing.assert_allclose(mean_square(x), [14 / 3, 12.0], rtol=1e-6)


def zeroed(tree):
    return jax.tree.map(jnp.zeros_like, tree)


def test_a_reward_by_hand():
    """The random network says 1 of everything and the predictor 3: an error of 4, deviation 0.5."""
    rnd = Rnd(SPEC, RndConfig(features=8, predictor_layers=0))
    state = jax.jit(rnd.init)(KEY)
    says = lambda net, x: eqx.tree_at(lambda n: n.embed.bias, zeroed(net), jnp.full(8, x))  # noqa: E731
    predictor = replace(state.predictor, trunk=says(state.predictor.trunk, 3.0))
    moments = replace(state.scale.moments, mean=jnp.float32(9.0), variance=jnp.float32(0.25))
    state = replace(
        state,
        target=says(state.target, 1.0),
        predictor=predictor,
        scale=replace(state.scale, moments=moments),
    )
    np.testing.assert_allclose(rnd.error(state, batch(0).next_obs), 4.0)
    np.testing.assert_array_equal(rnd.score(state, batch(0)), 5.0)
    wide = Rnd(SPEC, RndConfig(features=8, predictor_layers=0, reward_clip=10.0))
    np.testing.assert_allclose(wide.score(state, batch(0)), 8.0, rtol=1e-6)


def test_a_predictor_without_layers_is_built_like_the_random_network():
    rnd = Rnd(SPEC, RndConfig(features=8, predictor_layers=0))
    state = jax.jit(rnd.init)(KEY)
    assert jax.tree.structure(state.predictor.trunk) == jax.tree.structure(state.target)
    assert (error(state, batch(0).next_obs) > 1e-3).all()
    knows = replace(state, predictor=replace(state.predictor, trunk=state.target))
    assert np.abs(rnd.error(knows, batch(0).next_obs)).max() == 0
    layers = [
        [
            layer.weight.shape
            for layer in Rnd(SPEC, RndConfig(predictor_layers=n)).init(KEY).predictor.layers
        ]
        for n in (1, 3)
    ]
    assert layers == [[(16, 64)], [(16, 16), (16, 16), (16, 64)]]


def test_the_current_observation_is_scored_and_learnt_if_it_is_asked_for():
    _, state, learn, score = made(input="current", predictor_layers=2)
    rows = batch(0)
    np.testing.assert_allclose(score(state, rows), error(state, rows.obs), rtol=1e-4)
    for _ in range(60):
        state, _ = learn(state, rows, KEY)
    assert error(state, rows.obs)[:-1].mean() < 0.5 * error(state, rows.next_obs)[:-1].mean()


def test_a_stored_reward_is_what_it_was_when_it_was_lived():
    """Over the deviation of those lived before it; what is learnt later does not change it."""
    rnd, state, learn, _ = made(read="lived", reward_clip=1e6)
    rows, observe, memos, seen = batch(6), jax.jit(rnd.observe), [], []
    _, first = rnd.begin(state, rows.obs[0], KEY)
    assert first == 0
    raw = error(state, rows.next_obs)
    for i in range(4):
        state, memo = observe(state, step(rows.obs[i], 0, rows.next_obs[i]), KEY)
        np.testing.assert_allclose(memo, raw[i] / running_std(seen), rtol=2e-3)
        seen.append(raw[i : i + 1])
        memos.append(memo)
    count = state.scale.moments.count
    stored = replace(rows, next_memo=jnp.stack(memos * 2))
    for _ in range(20):
        state, _ = learn(state, stored, KEY)
    assert error(state, rows.next_obs)[:-1].mean() < 0.8 * raw[:-1].mean()
    np.testing.assert_array_equal(rnd.score(state, stored), stored.next_memo)
    assert state.scale.moments.count == count


def test_rewards_of_a_short_training_are_the_oracles():
    """Scored before it learns, from the observation arrived at, over the deviation, clipped."""
    _, state, learn, score = made(reward_clip=2.0)
    seen, clipped = [], 0
    for i in range(4):
        rows = batch(i)
        raw = error(state, rows.next_obs)
        ratio = raw / running_std(seen)
        clipped += (ratio > 2).sum()
        np.testing.assert_allclose(score(state, rows), np.minimum(ratio, 2), rtol=1e-3)
        other = replace(rows, obs=rows.next_obs, action=rows.action * 0, task=rows.task + 1e6)
        np.testing.assert_array_equal(score(state, other), score(state, rows))
        state, said = learn(state, rows, KEY)
        seen.append(raw[:-1])
    assert 0 < clipped < 32
    np.testing.assert_allclose(said["reward_std"], running_std(seen), rtol=1e-3)


def test_the_predictor_learns_from_the_rows_it_scored_and_the_target_never():
    _, state, learn, _ = made(reward_clip=2.0)
    rows, others = batch(0), batch(1)
    now = state
    for _ in range(60):
        now, _ = learn(now, rows, KEY)
    lower = error(now, rows.next_obs)[:-1] / error(state, rows.next_obs)[:-1]
    assert lower.max() < 0.5
    assert error(now, others.next_obs).mean() > 2 * error(now, rows.next_obs)[:-1].mean()
    for a, b in zip(*(jax.tree.leaves(x.target) for x in (now, state)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_row_that_teaches_nothing_changes_nothing():
    _, state, learn, _ = made(reward_clip=2.0)
    rows = batch(0)
    for a, b in zip(
        *(jax.tree.leaves(learn(state, x, KEY)) for x in (rows, poisoned(rows))), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)


def test_what_is_new_is_worth_more_than_what_was_seen_often():
    _, state, learn, score = made(reward_clip=2.0)
    rows = replace(batch(0), weight=jnp.ones(8).at[4:].set(0.0))
    for _ in range(200):
        state, _ = learn(state, rows, KEY)
    worth = np.asarray(score(state, rows))
    assert worth[4:].mean() > 5 * worth[:4].mean()


def test_noise_stays_new():
    """One observation over and over, and others that never come again: only the first is learnt."""
    _, state, learn, score = made(reward_clip=2.0)
    rows = batch(0)
    rows = replace(rows, next_obs=jnp.broadcast_to(rows.next_obs[:1], rows.next_obs.shape))
    for i in range(200):
        state, _ = learn(state, noisy(rows, i), KEY)
    worth = np.asarray(score(state, noisy(rows, 999)))
    assert worth[4:].min() > 5 * worth[0]


def test_pixels_are_whitened_before_patches_and_by_what_was_lived():
    """Mean and deviation of the observations arrived at; a pixel that never changes is left near 0."""
    rnd, state, _, score = made(whiten=True, normaliser="none", reward_clip=1e6)
    rows = batch(3)
    obs = np.asarray(rows.next_obs, float)
    obs[:, 0, 0, 0] = 1.0
    rows = replace(rows, next_obs=jnp.asarray(obs, jnp.uint8))
    observe = jax.jit(rnd.observe)
    for i in range(8):
        state, memo = observe(state, step(rows.obs[i], 0, rows.next_obs[i]), KEY)
    assert memo == ()
    width = np.maximum(obs.std(axis=0), 0.01)
    white = np.clip((obs - obs.mean(axis=0)) / width, -5, 5)
    assert abs(white[:, 0, 0, 0]).max() == 0
    np.testing.assert_allclose(score(state, rows), error(state, white), rtol=2e-3)
    assert not np.allclose(error(state, white), error(state, obs), rtol=0.01)


def test_returns_are_filtered_in_the_order_of_time():
    rnd, state, learn, score = made(normaliser="returns", reward_clip=1e6)
    rows = batch(5)
    observe = jax.jit(rnd.observe)
    for i in range(8):
        state, _ = observe(state, step(rows.obs[i], 0, rows.next_obs[i]), KEY)
    raw, sums = error(state, rows.next_obs), []
    for e in raw:
        sums.append(e + GAMMA * (sums[-1] if sums else 0.0))
    np.testing.assert_allclose(score(state, rows), raw / running_std([np.array(sums)]), rtol=1e-3)
    after, _ = learn(state, rows, KEY)
    assert after.scale.moments.count == state.scale.moments.count


def test_refused_options():
    with pytest.raises(InputError, match="did you mean rewards"):
        RndConfig(normaliser="reward")
    with pytest.raises(InputError, match="reward_clip"):
        RndConfig(reward_clip=0.0)
