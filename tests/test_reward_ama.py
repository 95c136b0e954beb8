"""AMA against numpy: the loss, the error less the variance, and what is left of coin flips."""

from dataclasses import replace
from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from coins_case import COINS, KNOWN, NEW, stream, taught
from reward_case import KEY, SPEC, batch, features, mlp, one_hot, poisoned, running_std, step

import primax
from primax.errors import InputError
from primax.rewards.ama import Ama, AmaConfig, likelihood_loss, unexplained


@cache
def made(**options):
    """A reward, its first state, and its compiled functions."""
    ama = Ama(SPEC, AmaConfig(**{"hidden": 6, "learning_rate": 0.01} | options))
    return ama, jax.jit(ama.init)(KEY), jax.jit(ama.learn), jax.jit(ama.score)


def says(model, rows) -> tuple[np.ndarray, np.ndarray]:
    """The oracle, in float64: squared errors and variances of every number."""
    x = np.concatenate([features(model.trunk, rows.obs), one_hot(rows.action)], axis=1)
    mean, log_variance = (mlp(x, h.hidden, h.out) for h in (model.mean, model.log_variance))
    after = np.asarray(rows.next_obs, float).reshape(len(x), -1)
    return (after - mean) ** 2, np.exp(log_variance)


def oracle(model, rows, weight: float = 1.0) -> np.ndarray:
    squared, variance = says(model, rows)
    return (squared - weight * variance).mean(axis=1)


def test_the_loss_by_hand():
    """With noise of ½: (3½ + ½) / 2 and (0 + ½) / 1, and λ times log 2 and log 1."""
    squared, variance = jnp.asarray([[3.5, 0.0]]), jnp.asarray([[1.5, 0.5]])
    found = likelihood_loss(squared, variance, 0.5, 3.0)
    np.testing.assert_allclose(found, (2 + 0.5 + 3 * np.log(2)) / 2, rtol=1e-6)


def test_the_reward_by_hand():
    """4 - 2 · 1 and 0 - 2 · ½, averaged."""
    found = unexplained(jnp.asarray([[4.0, 0.0]]), jnp.asarray([[1.0, 0.5]]), 2.0)
    np.testing.assert_allclose(found, (2 - 1) / 2, rtol=1e-6)


@pytest.mark.parametrize("noise", [1e-9, 0.01, 1.0])
def test_the_best_variance_is_the_mean_squared_error_whatever_the_noise(noise):
    """Of errors 0.1 and 0.5, by turns: 0.3 exactly, and the noise is not in it."""
    grid = jnp.linspace(0.05, 0.6, 56)[:, None]
    both = [likelihood_loss(jnp.full_like(grid, x), grid, noise, 1.0) for x in (0.1, 0.5)]
    np.testing.assert_allclose(grid[int(jnp.argmin(both[0] + both[1]))], 0.3, atol=1e-6)


def test_coins_that_are_understood_pay_nothing_and_their_squared_error_is_a_quarter():
    _, state, _, score = made(normaliser="none", reward_clip=1e6)
    zero = jax.tree.map(jnp.zeros_like, state.model)
    heads = lambda m: (m.mean.out.bias, m.log_variance.out.bias)  # noqa: E731
    half, quarter = jnp.full(24, 0.5), jnp.full(24, np.log(0.25))
    knows = replace(state, model=eqx.tree_at(heads, zero, (half, quarter)))
    assert np.abs(score(knows, batch(0))).max() < 1e-6
    plain = made(normaliser="none", reward_clip=1e6, variance_weight=0.0)[3]
    np.testing.assert_allclose(plain(knows, batch(0)), 0.25, rtol=1e-6)


def test_rewards_of_a_short_training_are_the_oracles():
    """Scored before it learns, over the deviation of the past, clipped; the last row is not there."""
    options = {"variance_weight": 0.5, "normaliser": "rewards", "reward_clip": 1.5}
    _, state, learn, score = made(**options)
    seen, clipped = [], 0
    for i in range(4):
        rows = batch(i)
        raw = oracle(state.model, rows, 0.5)
        ratio = raw / running_std(seen)
        clipped += (abs(ratio) > 1.5).sum()
        np.testing.assert_allclose(score(state, rows), np.clip(ratio, -1.5, 1.5), rtol=1e-3)
        squared, variance = says(state.model, rows)
        state, said = learn(state, poisoned(rows), KEY)
        np.testing.assert_allclose(said["forward_loss"], squared[:-1].mean(), rtol=1e-4)
        np.testing.assert_allclose(said["variance"], variance[:-1].mean(), rtol=1e-4)
        seen.append(raw[:-1])
    assert 0 < clipped < 32
    np.testing.assert_allclose(said["reward_std"], running_std(seen), rtol=1e-3)


def test_both_models_take_their_first_step_down_the_oracles_loss():
    """Adam's first step is as long as its step size: up or down, by the slope in float64."""
    _, state, learn, _ = made(noise=1.0, log_weight=0.6)
    rows = batch(0)

    def loss(model) -> float:
        squared, variance = says(model, rows)
        both = variance + 1.0
        return ((squared + 1.0) / both + 0.6 * np.log(both))[:-1].sum()

    after, _ = learn(state, rows, KEY)
    for place in (lambda m: m.mean.out.bias, lambda m: m.log_variance.out.bias):
        bias = np.asarray(place(state.model), float)
        moved = np.asarray(place(after.model), float) - bias
        for i, nudge in enumerate(1e-5 * np.eye(24)):
            up, down = (loss(eqx.tree_at(place, state.model, bias + x)) for x in (nudge, -nudge))
            np.testing.assert_allclose(moved[i], -0.01 * np.sign(up - down), rtol=2e-2)


def test_coins_lose_their_reward_and_what_is_new_keeps_its_own_until_it_is_learnt(optimised):
    ama, state, _, _ = made(hidden=32, learning_rate=3e-3, noise=0.05)
    coins, known, new = (stream(99, actions, 512) for actions in (COINS, KNOWN, NEW))
    left = lambda state, rows: oracle(state.model, rows).mean()  # noqa: E731
    plain = lambda state, rows: says(state.model, rows)[0].mean()  # noqa: E731
    state = taught(ama, state, COINS + KNOWN, 1, 800)
    assert plain(state, coins) > 0.12 and abs(left(state, coins)) < 0.01
    assert plain(state, known) < 0.01 and abs(left(state, known)) < 0.004
    assert left(state, new) > 0.04
    state = taught(ama, state, COINS + KNOWN + NEW, 2, 300)
    assert abs(left(state, new)) < 0.004 and plain(state, coins) > 0.12
    assert abs(left(state, coins)) < 0.01


def test_rows_that_teach_nothing_change_nothing():
    _, state, learn, _ = made()
    rows = batch(0)
    for a, b in zip(
        *(jax.tree.leaves(learn(state, x, KEY)) for x in (rows, poisoned(rows))), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-8)


def test_returns_count_the_steps_lived():
    ama, state, _, score = made(normaliser="returns", reward_clip=1e6)
    rows, observe = batch(2), jax.jit(ama.observe)
    at_one, sums = np.asarray(score(state, rows)), [0.0]
    for i in range(3):
        lived = step(rows.obs[i], int(rows.action[i]), rows.next_obs[i])
        state, _ = observe(state, lived, KEY)
        sums.append(SPEC.gamma * sums[-1] + at_one[i])
    np.testing.assert_allclose(state.scale.filtered, sums[-1], rtol=1e-3)
    assert round(float(state.scale.moments.count)) == 3


@pytest.mark.parametrize("method", ["ama", "lpm"])
@pytest.mark.parametrize("shape", [(3,), (9, 10, 3)])
def test_vectors_and_images_beside_an_agent_of_ones_own(method, shape):
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(2, 30, 1, *shape)) if len(shape) == 1 else None
    obs, after = rng.integers(0, 256, (2, 30, 1, *shape)) if numbers is None else numbers
    kind, never = (np.uint8 if numbers is None else np.float32), np.zeros((30, 1), bool)
    sizes = {"warmup": 10, "window": 10, "recent": 10, "replay": 30, "reward.hidden": 4}
    bonus = primax.bonus(method, primax.Space(shape, 2), gamma=0.9, settings=sizes)
    action = rng.integers(0, 2, (30, 1))
    steps = primax.Transition(obs.astype(kind), action, after.astype(kind), never, never)
    state, worth = bonus.step(bonus.init(0), steps)
    assert np.isfinite(worth).all() and (np.asarray(worth)[10:] != 0).all()
    assert 0 < float(state.metrics["forward_loss"]) < 10, "numbers, not bytes, are predicted"


def test_options_out_of_range_are_refused():
    for wrong in ({"noise": 0.0}, {"hidden": 0}, {"normaliser": "mean"}, {"log_weight": 0.0}):
        with pytest.raises(InputError, match=f"reward.{next(iter(wrong))}"):
            AmaConfig(**wrong)
