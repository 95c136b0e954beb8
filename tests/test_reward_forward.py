"""Disagreement and ICM against numpy: which error or variance is the reward, and what trains."""

from dataclasses import replace
from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from reward_case import KEY, SPEC, batch, features, mlp, noisy, one_hot, poisoned, running_std, step

from primax.nn import nets
from primax.rewards.disagreement import Disagreement, DisagreementConfig, spread
from primax.rewards.icm import Icm, IcmConfig


@cache
def ensemble(**options):
    """A reward, its first state, and its compiled functions."""
    options = {"models": 3, "features": 4, "hidden": 6, "learning_rate": 0.01} | options
    reward = Disagreement(SPEC, DisagreementConfig(**options))
    return reward, jax.jit(reward.init)(KEY), jax.jit(reward.learn), jax.jit(reward.score)


def predictions(state, rows) -> np.ndarray:
    """The oracle: what each model says of each row, in float64."""
    x = np.concatenate([features(state.encoder, rows.obs), one_hot(rows.action)], axis=1)
    return np.stack([mlp(x, state.models.hidden, state.models.out, at=k) for k in range(3)])


def test_spread_by_hand():
    """Features 1 and 3 of two models: variances 1 and 4, the second clipped from 9 to 5."""
    says = jnp.asarray([[[1.0, 9.0]], [[3.0, 1.0]]])
    np.testing.assert_allclose(spread(says, 5.0), [(1 + 4) / 2], rtol=1e-6)


def test_rewards_of_a_short_training_are_the_oracles():
    _, state, learn, score = ensemble(prediction_clip=0.2)
    seen, clipped = [], 0
    for i in range(4):
        rows = batch(i)
        says = predictions(state, rows)
        clipped += (abs(says) > 0.2).sum()
        raw = np.clip(says, -0.2, 0.2).var(axis=0).mean(axis=1)
        np.testing.assert_allclose(score(state, rows), raw / running_std(seen), rtol=1e-3)
        state, _ = learn(state, rows, KEY)
        seen.append(raw[:-1])
    assert 0 < clipped < 4 * says.size


def test_models_that_agree_are_worth_nothing_however_wrong():
    """Variance over models, not error."""
    _, state, _, score = ensemble(prediction_clip=0.2)
    same = jax.tree.map(lambda x: jnp.broadcast_to(x[:1], x.shape), state.models)
    state = replace(state, models=same)
    rows = batch(0)
    off = predictions(state, rows)[0] - features(state.encoder, rows.next_obs)
    assert (off**2).mean() > 1e-3
    assert np.abs(score(state, rows)).max() < 1e-12


def test_what_comes_next_does_not_change_the_score():
    _, state, _, score = ensemble(prediction_clip=0.2)
    rows = batch(0)
    other = replace(rows, next_obs=batch(1).next_obs, next_key=rows.next_key * 0)
    np.testing.assert_array_equal(score(state, rows), score(state, other))


def test_each_model_learns_from_rows_of_its_own_and_the_features_stay():
    """With every row kept, equal models stay equal; with some dropped, they part."""
    for keep, parts in ((1.0, False), (0.5, True)):
        _, state, learn, _ = ensemble(keep=keep)
        same = jax.tree.map(lambda x: jnp.broadcast_to(x[:1], x.shape), state.models)
        after, _ = learn(replace(state, models=same), batch(0), KEY)
        weight = np.asarray(after.models.out.weight)
        assert (abs(weight - weight[:1]).max() > 1e-4) == parts
        for a, b in zip(*(jax.tree.leaves(x.encoder) for x in (after, state)), strict=True):
            np.testing.assert_array_equal(a, b)


def test_disagreement_falls_where_it_was_trained():
    _, state, learn, score = ensemble(prediction_clip=0.2)
    rows = replace(batch(0), weight=jnp.ones(8).at[4:].set(0.0))
    for i in range(400):
        state, _ = learn(state, rows, jax.random.key(i))
    worth = np.asarray(score(state, rows))
    assert worth[4:].mean() > 5 * worth[:4].mean()


def test_disagreement_falls_where_it_was_trained_noise_or_not():
    """Half the rows lead to one place, half to another each time: all models learn the same of both."""
    _, state, learn, _ = ensemble(prediction_clip=0.2)
    known = batch(0)
    first = spread(jnp.asarray(predictions(state, known), jnp.float32), 0.2)
    for i in range(300):
        state, _ = learn(state, noisy(known, i), jax.random.key(i))
    says = predictions(state, known)
    fall = spread(jnp.asarray(says, jnp.float32), 0.2) / first
    off = ((says[0] - features(state.encoder, noisy(known, 999).next_obs)) ** 2).mean(axis=1)
    hit = ((says[0] - features(state.encoder, known.next_obs)) ** 2).mean(axis=1)
    assert fall[:7].max() < 0.3
    assert off[4:7].mean() > 5 * hit[:4].mean()


def test_features_are_whitened_by_what_was_learnt_from():
    """By moments from before the minibatch: the first is not whitened, but clipped at five."""
    _, state, learn, score = ensemble(whiten=True, prediction_clip=0.2)
    rows, codes = batch(0), features(state.encoder, batch(0).next_obs)
    np.testing.assert_allclose(
        score(state, rows), ensemble(prediction_clip=0.2)[3](state, rows), rtol=1e-4
    )
    after, _ = learn(state, rows, KEY)
    np.testing.assert_allclose(after.moments.mean, codes[:-1].mean(axis=0), rtol=1e-3, atol=1e-5)
    spread_by = codes[:-1].var(axis=0) + 1e-4 / 7  # the weight of what moments start with
    np.testing.assert_allclose(after.moments.variance, spread_by, rtol=1e-3)
    x = (features(state.encoder, rows.obs) - codes[:-1].mean(axis=0)) / spread_by**0.5
    x = np.concatenate([np.clip(x, -5, 5), one_hot(rows.action)], axis=1)
    models = after.models
    says = np.stack([mlp(x, models.hidden, models.out, at=k) for k in range(3)])
    variance = np.clip(says, -0.2, 0.2).var(axis=0).mean(axis=1)
    found = score(after, rows) * after.scale.moments.variance**0.5
    np.testing.assert_allclose(found, variance, rtol=2e-2)


@cache
def curious(**options):
    """A reward, its first state, and its compiled functions."""
    options = {"features": 4, "hidden": 6, "learning_rate": 0.01} | options
    reward = Icm(SPEC, IcmConfig(**options))
    return reward, jax.jit(reward.init)(KEY), jax.jit(reward.learn), jax.jit(reward.score)


def icm_error(state, rows) -> np.ndarray:
    model = state.model
    phi, after = (features(model.encoder, x) for x in (rows.obs, rows.next_obs))
    x = np.concatenate([phi, one_hot(rows.action)], axis=1)
    return 0.5 * ((mlp(x, model.forward.hidden, model.forward.out) - after) ** 2).sum(axis=1)


def cross_entropy(state, rows) -> np.ndarray:
    model = state.model
    both = [features(model.encoder, x) for x in (rows.obs, rows.next_obs)]
    logits = mlp(np.concatenate(both, axis=1), model.hidden, model.out)
    chosen = (logits * one_hot(rows.action)).sum(axis=1)
    return np.log(np.exp(logits).sum(axis=1)) - chosen


def test_icm_rewards_are_the_oracles():
    _, state, learn, score = curious(reward_clip=2.0)
    seen = []
    for i in range(4):
        rows = batch(i)
        raw = icm_error(state, rows)
        ratio = raw / running_std(seen)
        np.testing.assert_allclose(score(state, rows), np.minimum(ratio, 2), rtol=1e-3)
        surprise = cross_entropy(state, rows)[:-1].mean()
        state, said = learn(state, rows, KEY)
        np.testing.assert_allclose(said["inverse_loss"], surprise, rtol=1e-4)
        np.testing.assert_allclose(said["forward_loss"], raw[:-1].mean(), rtol=1e-3)
        seen.append(raw[:-1])


def test_an_icm_reward_by_hand():
    """φ is 1 everywhere and the forward model says 3, in four features: 4 · 2² / 2. No action is likelier."""
    reward, state, _, score = curious(reward_clip=2.0)
    model = jax.tree.map(jnp.zeros_like, state.model)
    places = lambda m: (m.encoder.embed.bias, m.forward.out.bias)  # noqa: E731
    model = eqx.tree_at(places, model, (jnp.full(4, 1.0), jnp.full(4, 3.0)))
    rows = batch(0)
    seen = [nets.patches(x) for x in (rows.obs, rows.next_obs)]
    error, surprise, _ = reward._errors(model, seen[0], rows.action, seen[1])
    np.testing.assert_allclose(error, 8.0)
    np.testing.assert_allclose(surprise, np.log(5), rtol=1e-6)
    np.testing.assert_array_equal(score(replace(state, model=model), rows), 2.0)


def test_icm_forgets_what_it_can_predict_and_not_noise():
    """Half the rows lead to one place, half to another each time."""
    _, state, learn, _ = curious(reward_clip=2.0)
    known = batch(0)
    for i in range(300):
        state, _ = learn(state, noisy(known, i), KEY)
    error = icm_error(state, noisy(known, 999))
    assert error[4:7].mean() > 4 * error[:4].mean()


def test_icm_features_learn_from_the_forward_model_unless_detached():
    rows = batch(0)
    before, after = nets.patches(rows.obs), nets.patches(rows.next_obs)
    for detach in (False, True):
        reward, state, _, _ = curious(detach=detach)
        error = lambda m: reward._errors(m, before, rows.action, after)[0].sum()  # noqa: B023, E731
        slope = jax.jit(jax.grad(error))(state.model)
        assert (abs(slope.encoder.embed.weight).max() > 0) == (not detach)
        assert abs(slope.forward.out.weight).max() > 0


def test_icm_learns_to_tell_the_actions_it_was_shown():
    _, state, learn, _ = curious(reward_clip=2.0)
    rows = batch(0)
    first = cross_entropy(state, rows)
    for _ in range(200):
        state, said = learn(state, rows, KEY)
    assert said["inverse_accuracy"] == 1
    assert (cross_entropy(state, rows) / first)[:-1].max() < 0.5


def test_rows_that_teach_nothing_change_nothing():
    rows = batch(0)
    for _, state, learn, _ in (ensemble(prediction_clip=0.2), curious(reward_clip=2.0)):
        for a, b in zip(
            *(jax.tree.leaves(learn(state, x, KEY)) for x in (rows, poisoned(rows))), strict=True
        ):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-8)


def test_returns_count_the_steps_lived():
    rows = batch(2)
    for reward, state, _, score in (ensemble(normaliser="returns"), curious(normaliser="returns")):
        at_one, observe = np.asarray(score(state, rows)), jax.jit(reward.observe)
        for i in range(3):
            lived = step(rows.obs[i], int(rows.action[i]), rows.next_obs[i])
            state, _ = observe(state, lived, KEY)
        sums = [at_one[0]]
        for x in at_one[1:3]:
            sums.append(SPEC.gamma * sums[-1] + x)
        np.testing.assert_allclose(state.scale.filtered, sums[-1], rtol=1e-3)
        assert round(float(state.scale.moments.count)) == 3
