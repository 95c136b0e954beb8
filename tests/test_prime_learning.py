"""One learning step of PRIME's own networks against numpy loops."""

import functools
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import prime_oracle as oracle
import pytest
from prime_case import (
    ACTIONS,
    BUCKET,
    GAMMA,
    KEY,
    SMALL,
    SPEC,
    arrays,
    batch,
    begun,
    live,
    lived,
    program,
    same_bits,
)

from primax.nn import nets
from primax.rewards.prime import Prime, PrimeConfig
from primax.rewards.transition import Batch

SIZE = 12
"""Rows of a minibatch."""


def teach(temperature: float, at: np.ndarray, weight: np.ndarray):
    """A state whose online heads have left the targets behind, and a minibatch."""
    state, rows = begun(*BUCKET)[0], lived()
    frozen = replace(state.window.constants, temperature=jnp.float32(temperature))
    state = replace(
        state,
        online=live(1).online,
        novelty=state.novelty[::-1],
        window=replace(state.window, constants=frozen),
    )
    stored = (rows.obs, rows.action, rows.key, rows.next_obs, rows.next_key)
    ends = {"terminated": at % 5 == 0, "truncated": at % 4 == 0}
    return state, batch(*(x[at] for x in stored), weight, **ends)


def quantiles(state, heads, k: int, obs) -> np.ndarray:
    nets = oracle.Nets(arrays(heads), arrays(state.prior), None)
    return oracle.quantiles(nets, k, np.asarray(obs), ACTIONS, program(*BUCKET)[0].config)


def zetas(state, rows: Batch, k: int, table=None, ended=None) -> np.ndarray:
    """ζ_k of every row for every a': frozen heads, frozen counts, no bootstrap where it ended."""
    after = quantiles(state, state.window.heads, k, rows.next_obs)
    count = np.asarray(state.window.novelty if table is None else table)[np.asarray(rows.key)]
    bonus = np.tanh((count + 1.0) ** -0.5)
    going = 1.0 - np.asarray(rows.terminated if ended is None else ended, float)
    return bonus[:, None, None] + GAMMA * going[:, None, None] * after


def stats_loss(state, rows: Batch, action: np.ndarray, online) -> float:
    """Mean over heads and rows of the weighted loss when a' is the given action."""
    total, at = 0.0, np.arange(SIZE)
    for k in range(SMALL["heads"]):
        own = quantiles(state, online, k, rows.obs)[at, np.asarray(rows.action)]
        goal = zetas(state, rows, k)[at, action]
        total += sum(float(rows.weight[i]) * oracle.quantile_huber(own[i], goal[i]) for i in at)
    return total / SMALL["heads"] / SIZE


def reference_policy(state, rows: Batch) -> np.ndarray:
    logits = quantiles(state, state.window.heads, 0, rows.next_obs).mean(axis=-1)
    return oracle.softmax(logits / float(state.window.constants.temperature))


@functools.cache
def learn():
    return jax.jit(program(*BUCKET)[0].learn)


def test_one_learning_step_against_numpy_loops():
    """So cold a temperature that a' is the best action: no draw is left to chance."""
    weight = np.where(np.arange(SIZE) % 4 == 1, 0.0, 1.0)
    state, rows = teach(1e-4, np.arange(18, 18 + SIZE), weight)
    policy = reference_policy(state, rows)
    assert policy.max(axis=1).min() > 1 - 1e-9 and rows.terminated.sum() == 2
    after, said = learn()(state, rows, KEY)
    action = policy.argmax(axis=1)
    taken = [zetas(state, rows, k)[np.arange(SIZE), action] for k in range(3)]
    loss = stats_loss(state, rows, action, state.online)
    assert float(said["stats_loss"]) == pytest.approx(loss, rel=1e-4)
    assert float(said["zeta_abs_max"]) == pytest.approx(np.abs(taken).max(), rel=1e-4)
    numbers = (rows.obs, rows.next_obs, rows.action, rows.weight)
    entropy, right = oracle.inverse_loss(arrays(state.inverse), *map(np.asarray, numbers))
    assert float(said["inverse_loss"]) == pytest.approx(entropy, rel=1e-4)
    assert float(said["inverse_accuracy"]) == pytest.approx(right, rel=1e-6)
    margin = (np.abs(policy - 1 / ACTIONS).sum(axis=1) * weight).sum() / weight.sum()
    assert float(said["pi_ref_from_u"]) == pytest.approx(margin, rel=1e-4)
    assert same_bits(after.window, state.window) and same_bits(after.prior, state.prior)
    _descends(state, after, rows, action)


def _descends(state, after, rows: Batch, action: np.ndarray) -> None:
    """Adam's first step goes down the loss's slope by the learning rate, the targets held."""
    step, shape = np.asarray(after.online.head.bias - state.online.head.bias), (3, ACTIONS * 4)
    checked = 0
    for k, i in np.ndindex(*shape):
        bump = np.zeros(shape)
        bump[k, i] = 1e-4
        losses = []
        for sign in (1, -1):
            bias = arrays(state.online.head.bias) + sign * bump
            online = eqx.tree_at(lambda net: net.head.bias, arrays(state.online), bias)
            losses.append(stats_loss(state, rows, action, online))
        slope = (losses[0] - losses[1]) / 2e-4
        if abs(slope) > 1e-4:
            checked += 1
            assert step[k, i] == pytest.approx(-1e-4 * np.sign(slope), rel=1e-2)
    assert checked > 15


@pytest.mark.parametrize("truncation", ["bootstrap", "end"])
@pytest.mark.parametrize("counts", ["frozen", "live"])
def test_targets_under_the_other_readings_against_numpy(truncation, counts):
    """At the time limit `end` leaves r̄ alone; `live` reads r̄ off the table that still counts."""
    state, rows = teach(1e-4, np.arange(18, 18 + SIZE), np.ones(SIZE))
    prime = Prime(SPEC, PrimeConfig(truncation=truncation, counts=counts, **SMALL))
    targets = jax.jit(lambda *args: prime._targets(*args))
    _, found = targets(state, rows, nets.patches(rows.next_obs), KEY)
    table = state.novelty if counts == "live" else state.window.novelty
    ended = np.asarray(rows.terminated)
    if truncation == "end":
        ended = ended | np.asarray(rows.truncated)
    assert ended.sum() == (4 if truncation == "end" else 2)
    action = reference_policy(state, rows).argmax(axis=1)
    for k in range(SMALL["heads"]):
        goal = zetas(state, rows, k, table, ended)[np.arange(SIZE), action]
        np.testing.assert_allclose(found[k], goal, rtol=1e-4, atol=1e-6)


def test_the_next_action_is_drawn_from_the_reference_policy_and_shared_by_the_heads():
    """One row has weight: its loss is that of one action, the same one for every head."""
    weight = np.eye(SIZE)[0]
    state, rows = teach(0.5, np.full(SIZE, 22), weight)
    policy = reference_policy(state, rows)[0]
    losses = [stats_loss(state, rows, np.full(SIZE, a), state.online) for a in range(ACTIONS)]
    assert np.diff(np.sort(losses)).min() > 1e-3 * max(losses) and np.ptp(policy) > 0.2
    met = np.zeros(ACTIONS)
    for key in jax.random.split(KEY, 400):
        loss = float(learn()(state, rows, key)[1]["stats_loss"])
        action = np.abs(np.array(losses) - loss).argmin()
        assert loss == pytest.approx(losses[action], rel=1e-4)
        met[action] += 1
    sigma = np.sqrt(policy * (1 - policy) / 400)
    assert (np.abs(met / 400 - policy) < 4 * sigma).all()
