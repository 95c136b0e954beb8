"""LPM against numpy: what is remembered, what the error model learns from it, and progress."""

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from coins_case import COINS, KNOWN, NEW, stream, taught
from reward_case import KEY, SPEC, batch, features, mlp, one_hot, poisoned, running_std, step

from primax.errors import InputError
from primax.rewards.lpm import Lpm, LpmConfig, log_error, mean_square, progress
from primax.rewards.parts import past


@cache
def made(**options):
    """A reward, its first state, and its compiled functions."""
    small = {"hidden": 6, "learning_rate": 0.01, "memory": 20}
    lpm = Lpm(SPEC, LpmConfig(**small | options))
    return lpm, jax.jit(lpm.init)(KEY), jax.jit(lpm.learn), jax.jit(lpm.score)


def says(model, rows) -> np.ndarray:
    x = np.concatenate([features(model.trunk, rows.obs), one_hot(rows.action)], axis=1)
    return mlp(x, model.head.hidden, model.head.out)


def error(state, rows) -> np.ndarray:
    """The oracle, in float64: the forward model's mean squared error on each row."""
    after = np.asarray(rows.next_obs, float).reshape(rows.action.shape[0], -1)
    return ((says(state.model, rows) - after) ** 2).mean(axis=1)


def gained(state, rows, past_weight: float = 1.0) -> np.ndarray:
    return past_weight * np.exp(says(state.expects, rows)[:, 0]) - error(state, rows)


def test_progress_by_hand():
    """An error of 2 was to be expected, half of it counts, and it is ¼: ¾. No log-error is above 10."""
    found = progress(jnp.log(jnp.asarray([2.0])), jnp.asarray([0.25]), 0.5)
    np.testing.assert_allclose(found, 0.75, rtol=1e-6)
    found = progress(jnp.asarray([50.0]), jnp.asarray([0.0]), 1.0)
    np.testing.assert_allclose(found, np.exp(10), rtol=1e-6)


def test_errors_by_hand():
    x = jnp.asarray([[1.0, 2.0, 3.0], [0.0, 0.0, 6.0]])
    np.testing.assert_allclose(mean_square(x), [14 / 3, 12.0], rtol=1e-6)
    errors = jnp.asarray([0.0, 1.0 - 1e-6, 0.5])
    np.testing.assert_allclose(
        log_error(errors), [np.log(1e-6), 0.0, np.log(0.500001)], rtol=1e-6, atol=1e-7
    )


def kept(made) -> list[float]:
    return np.asarray(made.log_error).tolist()


def test_the_oldest_error_makes_room_and_rows_of_weight_zero_are_not_kept():
    put = lambda was, errors, weight: past.remembered(  # noqa: E731
        was,
        replace(batch(0, len(errors)), weight=jnp.asarray(weight, jnp.float32)),
        jnp.asarray(errors, jnp.float32),
        "planes",
    )
    none = past.nothing(SPEC, 4)
    one = put(none, [1, 2, 3], [1, 0, 1])
    assert kept(one) == [1, 3, 0, 0] and (int(one.at), int(one.num)) == (2, 2)
    two = put(one, [4, 5, 6], [1, 1, 1])
    assert kept(two) == [6, 3, 4, 5] and (int(two.at), int(two.num)) == (1, 4)
    same = put(two, [7, 8], [0, 0])
    assert kept(same) == kept(two) and (int(same.at), int(same.num)) == (1, 4)
    many = put(two, [1, 2, 3, 4, 5, 6], [1] * 6)
    assert sorted(kept(many)) == [3, 4, 5, 6] and int(many.num) == 4


def test_what_is_drawn_was_put_there_together():
    rows = batch(3)
    made = past.remembered(past.nothing(SPEC, 20), rows, jnp.arange(8.0), "planes")
    obs, action, log_errors = past.drawn(made, KEY, 200, SPEC)
    which = np.asarray(log_errors).astype(int)
    assert set(which) == set(range(7)), "of seven, all come up, and nothing else"
    np.testing.assert_array_equal(obs, np.asarray(rows.obs)[which])
    np.testing.assert_array_equal(action, np.asarray(rows.action)[which])


def test_rewards_of_a_short_training_are_the_oracles():
    """Scored before it learns, over the deviation of the past, clipped; the last row is not there."""
    options = {"past_weight": 0.5, "normaliser": "rewards", "reward_clip": 1.5}
    _, state, learn, score = made(**options)
    seen, clipped = [], 0
    for i in range(4):
        rows = batch(i)
        raw = gained(state, rows, 0.5)
        ratio = raw / running_std(seen)
        clipped += (abs(ratio) > 1.5).sum()
        np.testing.assert_allclose(score(state, rows), np.clip(ratio, -1.5, 1.5), rtol=2e-3)
        errors = error(state, rows)
        state, said = learn(state, poisoned(rows), KEY)
        np.testing.assert_allclose(said["forward_loss"], errors[:-1].mean(), rtol=1e-4)
        np.testing.assert_allclose(said["progress"], raw[:-1].mean(), rtol=1e-3)
        seen.append(raw[:-1])
    assert 0 < clipped < 32
    np.testing.assert_allclose(said["reward_std"], running_std(seen), rtol=1e-3)


def test_errors_are_remembered_as_they_were_before_the_step_and_stay_so():
    _, state, learn, _ = made()
    first, second = batch(0), batch(1)
    targets = np.log(error(state, first)[:-1] + 1e-6)
    state, _ = learn(state, first, KEY)
    np.testing.assert_allclose(state.past.log_error[:7], targets, rtol=1e-4)
    assert abs(np.log(error(state, first)[:-1] + 1e-6) - targets).max() > 1e-2
    targets = np.concatenate([targets, np.log(error(state, second)[:-1] + 1e-6)])
    state, _ = learn(state, second, KEY)
    np.testing.assert_allclose(state.past.log_error[:14], targets, rtol=1e-4)
    assert int(state.past.num) == 14


def test_the_error_model_learns_the_past_and_not_the_present():
    """Of the same rows errors of 2 are remembered, whatever the forward model errs by now."""
    _, state, learn, _ = made(memory=4_096)
    rows = batch(0)
    old = past.nothing(SPEC, 4_096)
    for _ in range(50):
        old = past.remembered(old, rows, jnp.full(8, np.log(2.0)), "planes")
    still = replace(rows, weight=jnp.zeros(8))
    state = replace(state, past=old)
    for i in range(200):
        state, said = learn(state, still, jax.random.key(i))
    np.testing.assert_allclose(np.exp(says(state.expects, rows)[:-1, 0]), 2.0, rtol=0.05)
    assert error(state, rows).max() < 1 and float(said["past_loss"]) < 0.01


def test_the_squared_error_of_the_log_error_is_what_it_learns_by():
    """Where errors of 1 and e² are remembered alike, e is expected: the mean of the logarithms."""
    _, state, learn, _ = made(memory=4_096, learning_rate=3e-3)
    rows, old = batch(0), past.nothing(SPEC, 4_096)
    for i in range(200):
        old = past.remembered(old, rows, jnp.full(8, 2.0 * (i % 2)), "planes")
    state = replace(state, past=old)
    for i in range(600):
        state, _ = learn(state, replace(rows, weight=jnp.zeros(8)), jax.random.key(i))
    np.testing.assert_allclose(says(state.expects, rows)[:-1, 0].mean(), 1.0, atol=0.15)


def test_without_a_row_that_teaches_nothing_is_learnt():
    _, state, learn, _ = made()
    after, _ = learn(state, replace(batch(0), weight=jnp.zeros(8)), KEY)
    parts = lambda x: (x.model, x.expects, x.past, x.scale)  # noqa: E731
    for a, b in zip(*(jax.tree.leaves(parts(x)) for x in (state, after)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_rows_that_teach_nothing_change_nothing():
    _, state, learn, _ = made()
    rows = batch(0)
    for a, b in zip(
        *(jax.tree.leaves(learn(state, x, KEY)) for x in (rows, poisoned(rows))), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-8)


def test_coins_pay_nothing_and_what_can_be_learnt_pays_while_it_is_learnt(optimised):
    """A move never met costs at first: the error model takes it for a known one."""
    lpm, state, _, _ = made(hidden=32, learning_rate=3e-3, memory=1_024)
    coins, known, new = (stream(99, actions, 512) for actions in (COINS, KNOWN, NEW))
    worth = lambda state, rows: gained(state, rows).mean()  # noqa: E731
    for i in range(25):
        state = taught(lpm, state, COINS + KNOWN, 100 + i, 20)
    assert error(state, coins).mean() > 0.12 and error(state, new).mean() > 0.05
    assert abs(worth(state, known)) < 0.001 and worth(state, new) < -0.03
    paid, flips = [], []
    for i in range(12):
        state = taught(lpm, state, COINS + KNOWN + NEW, 2 + i, 20)
        paid.append(worth(state, new))
        flips.append(worth(state, coins))
    assert paid[0] > 0.005 and sum(paid[:4]) > 0.01 and abs(paid[-1]) < 0.002
    assert error(state, coins).mean() > 0.12 and abs(np.mean(flips)) < 0.02


def test_returns_count_the_steps_lived():
    lpm, state, _, score = made(normaliser="returns", reward_clip=1e6)
    rows, observe = batch(2), jax.jit(lpm.observe)
    at_one, sums = np.asarray(score(state, rows)), [0.0]
    for i in range(3):
        lived = step(rows.obs[i], int(rows.action[i]), rows.next_obs[i])
        state, _ = observe(state, lived, KEY)
        sums.append(SPEC.gamma * sums[-1] + at_one[i])
    np.testing.assert_allclose(state.scale.filtered, sums[-1], rtol=1e-3)
    assert round(float(state.scale.moments.count)) == 3


def test_options_out_of_range_are_refused():
    for wrong in ({"memory": 0}, {"hidden": 0}, {"normaliser": "mean"}, {"past_weight": -1.0}):
        with pytest.raises(InputError, match=f"reward.{next(iter(wrong))}"):
            LpmConfig(**wrong)
