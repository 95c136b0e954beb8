"""Coin-flip networks: signs that stay with their visit, and counts that are read off them."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reward_case import ACTIONS, KEY, SPEC, batch, poisoned
from scipy.stats import spearmanr

import primax
from primax.agent import ring
from primax.config.schema import NetConfig
from primax.errors import InputError
from primax.nn import nets
from primax.rewards.parts import normaliser
from primax.rewards.prime import Prime, PrimeConfig, cfn
from primax.rewards.prime.novelty import Where
from primax.rewards.transition import Batch

VISITS = np.array([1, 2, 4, 8, 16, 32, 64, 128])
STATE = np.repeat(np.arange(len(VISITS)), VISITS)
"""The state of each row."""
EYE = np.eye(12, dtype=np.uint8).reshape(12, 1, 3, 4)
"""States as one set cell each; the last four are never met."""
TABLE = replace(
    SPEC,
    shape=EYE.shape[1:],
    num_actions=2,
    num_keys=24,
    net=NetConfig(first_channels=8, second_channels=8, embedding=32),
)


def numbered(rows: Batch, first: int = 0) -> Batch:
    return replace(rows, number=first + jnp.arange(rows.action.shape[0]))


def where(state: np.ndarray, action: np.ndarray) -> Where:
    return Where(jnp.asarray(EYE[state]), jnp.asarray(action), jnp.zeros(len(state), jnp.int32))


def visits() -> Batch:
    """Every row of the table: in a state its parity is the action; in no order."""
    num, obs, action = len(STATE), jnp.asarray(EYE[STATE]), jnp.asarray(STATE % 2, jnp.int32)
    zero, never = jnp.zeros(num), jnp.zeros(num, bool)
    number = jnp.asarray(np.random.default_rng(0).permutation(num), jnp.int32)
    rows = Batch(obs, action, zero, obs, never, never, zero + 1.0, action, action, (), ())
    return replace(rows, number=number)


def test_a_value_by_hand():
    """m of 1/4 and of 1/2, one beyond 1, and one the random network alone makes: (3 - 1) / 4 = 1/2."""
    novelty, half = cfn.CfnNovelty(SPEC), cfn.FLIPS // 2
    says = np.zeros((ACTIONS, cfn.FLIPS), np.float32)
    says[0], says[1, :half], says[2] = 0.5, 1.0, 3.0
    random, mean, variance = (np.zeros_like(says) + x for x in (0.0, 0.0, 1.0))
    random[3], mean[3], variance[3] = 3.0, 1.0, 16.0

    def saying(net: nets.Net, bias: np.ndarray) -> nets.Net:
        weight = jnp.zeros_like(net.head.weight)
        return nets.Net(net.trunk, nets.Linear(weight, jnp.asarray(bias.reshape(-1))))

    live = novelty.init(KEY)
    one = jnp.ones(says.size)
    moments = normaliser.Running(one, *(jnp.asarray(x.reshape(-1)) for x in (mean, variance)))
    coins = cfn.Coins(saying(live.coins.net, says), saying(live.coins.prior, random), moments)
    asked = Where(batch(0).obs[:5], jnp.arange(5), jnp.zeros(5, jnp.int32))
    share = [0.25, 0.5, 1.0, 0.25, 0.0]
    np.testing.assert_allclose(novelty.inverse_count(coins, asked), share, rtol=1e-5)
    x = [0.2**0.5, (1 / 3) ** 0.5, 0.5**0.5, 0.2**0.5, 0.0]
    np.testing.assert_allclose(novelty.value(coins, asked), x, rtol=1e-5)
    assert novelty.bound == pytest.approx(0.5**0.5)


def test_signs_belong_to_the_visit():
    key, other = (jax.random.key_data(jax.random.key(i)) for i in range(2))
    number = jnp.arange(2_000)
    signs = np.asarray(cfn.flips(key, number))
    assert signs.shape == (2_000, cfn.FLIPS) and set(np.unique(signs)) == {-1.0, 1.0}
    np.testing.assert_array_equal(cfn.flips(key, number[::-7]), signs[::-7])
    assert len(np.unique(signs, axis=0)) > 1_990
    # The deviation of each mean is 1 / √2,000, and that of each correlation.
    assert np.abs(signs.mean(axis=0)).max() < 4.5 / 2_000**0.5
    assert np.abs(signs.T @ signs / 2_000 - np.eye(cfn.FLIPS)).max() < 4.5 / 2_000**0.5
    assert 0.4 < (np.asarray(cfn.flips(other, number)) == signs).mean() < 0.6


def test_a_row_of_the_ring_keeps_its_number():
    slot = ring.Slot(jnp.zeros(3, jnp.uint8), ())
    row = ring.Row(
        jnp.uint8(0), jnp.float32(0), jnp.int32(0), jnp.int32(0), *[jnp.array(False)] * 2
    )
    kept = ring.empty(4, None, slot, row)
    for i in range(10):
        one = replace(row, key=jnp.int32(i))
        add = lambda x: jax.tree.map(lambda y: y[None], x)  # noqa: E731
        kept = ring.write(kept, jnp.int32(i), add(slot), add(one))
    found = ring.read(kept, jnp.int32(10), jnp.array([1, 3, 2]), (3,), "vector")
    assert found.number is not None
    np.testing.assert_array_equal(found.number, [9, 7, 8])
    np.testing.assert_array_equal(found.number, found.key)


@pytest.fixture(scope="module")
def trained():
    """A novelty, its state before and after long training on all of the table, and the rows."""
    novelty, rows = cfn.CfnNovelty(TABLE), visits()
    first = novelty.init(KEY)

    def one(live, key):
        live, said = novelty.learn(live, rows, key)
        return live, said["cfn_loss"]

    train = jax.jit(lambda live: jax.lax.scan(one, live, jax.random.split(KEY, 6_000)))
    last, loss = train(first)
    return novelty, first, last, rows, loss


def test_full_training_finds_the_mean_of_the_signs_met(trained):
    novelty, _, last, rows, loss = trained
    signs = np.asarray(cfn.flips(last.coin_key, rows.number))
    best = np.stack([signs[i == STATE].mean(axis=0) for i in range(len(VISITS))])
    met = np.arange(len(VISITS))
    says = novelty.says(last.coins, where(met, met % 2))
    np.testing.assert_allclose(says, best, atol=0.03)
    share = np.asarray(novelty.inverse_count(last.coins, where(met, met % 2)))
    np.testing.assert_allclose(share, (best**2).mean(axis=1), rtol=0.1)
    assert spearmanr(share, 1 / VISITS).statistic > 0.95
    # A mean square of 20 squared means of N signs is 1/N but for luck.
    assert (np.abs(np.log(share * VISITS)) < np.log(2.5)).all()
    x = np.asarray(novelty.value(last.coins, where(met, met % 2)))
    np.testing.assert_allclose(x, np.sqrt(share / (1 + share)), rtol=1e-5)
    assert (x <= novelty.bound).all()
    # What is left is the spread of the signs about their means.
    left = np.mean((signs - best[STATE]) ** 2)
    assert float(loss[-1]) == pytest.approx(left, rel=1e-3)


def test_what_was_never_met_is_taken_for_met_once(trained):
    novelty, first, last, *_ = trained
    every = np.arange(12)
    start = novelty.inverse_count(first.coins, where(every, every % 2))
    np.testing.assert_array_equal(start, 1.0)
    never = np.arange(8, 12)
    assert novelty.inverse_count(last.coins, where(never, never % 2)).min() > 0.5
    # Nor was the other action, in states that were met often.
    often = np.arange(4, 8)
    assert novelty.inverse_count(last.coins, where(often, 1 - often % 2)).min() > 0.5


def test_the_random_network_is_at_scale_over_the_rows_learnt_from(trained):
    _, first, last, rows, _ = trained
    for a, b in zip(*map(jax.tree.leaves, (first.coins.prior, last.coins.prior)), strict=True):
        np.testing.assert_array_equal(a, b)
    outputs = np.asarray(last.coins.prior(TABLE.see(rows.obs)), float)
    moments = last.coins.moments
    np.testing.assert_allclose(moments.mean, outputs.mean(axis=0), atol=0.01)
    np.testing.assert_allclose(moments.variance, outputs.var(axis=0), rtol=0.1, atol=1e-5)


def test_a_row_that_teaches_nothing_changes_nothing():
    novelty = cfn.CfnNovelty(SPEC)
    learn, live, rows = jax.jit(novelty.learn), novelty.init(KEY), numbered(batch(0))
    assert rows.number is not None
    other = replace(poisoned(rows), number=rows.number.at[-1].set(99))
    assert (np.asarray(other.obs[-1]) != np.asarray(rows.obs[-1])).any()
    found = learn(live, rows, KEY), learn(live, other, KEY)
    for a, b in zip(*map(jax.tree.leaves, found), strict=True):
        np.testing.assert_array_equal(a, b)
    taught = learn(live, replace(other, weight=jnp.ones(8)), KEY)[0]
    assert not np.array_equal(taught.coins.moments.mean, found[0][0].coins.moments.mean)
    assert not np.array_equal(taught.coins.net.head.bias, found[0][0].coins.net.head.bias)


def test_prime_reads_it_as_of_the_windows_beginning():
    prime = Prime(SPEC, PrimeConfig(novelty="cfn", bonus="inv_sqrt", heads=1, calibration=4))
    source, rows = prime.freezer.novelty, numbered(batch(0))
    live = source.init(KEY)
    learn, value = jax.jit(source.learn), jax.jit(source.value)
    live, _ = learn(live, rows, KEY)
    frozen, asked = source.freeze(live), Where(rows.obs, rows.action, rows.key)
    before = np.asarray(value(frozen, asked))
    for _ in range(20):
        live, _ = learn(live, rows, KEY)
    np.testing.assert_array_equal(value(frozen, asked), before)
    assert not np.array_equal(value(source.freeze(live), asked), before)
    assert jax.tree.structure(frozen) == jax.tree.structure(live.coins)


def test_steps_of_no_known_number_are_refused():
    novelty = cfn.CfnNovelty(SPEC)
    with pytest.raises(InputError, match=r"reward\.novelty=cfn.*leave update_every above 0"):
        novelty.learn(novelty.init(KEY), batch(0), KEY)


@pytest.mark.slow
def test_a_run_is_the_same_twice_and_seeds_differ():
    small = {"reward.novelty": "cfn", "reward.heads": 1, "reward.calibration": 8, "steps": 1_500}
    a, b = (primax.train("prime", "maze", 2, "smoke", small) for _ in range(2))
    for name in a.windows:
        np.testing.assert_array_equal(a.windows[name], b.windows[name])
    live = [one.state.reward.novelty for one in (a, b)]
    for x, y in zip(*map(jax.tree.leaves, live), strict=True):
        np.testing.assert_array_equal(x, y)
        assert np.isfinite(x).all()
    assert not np.array_equal(live[0].coin_key[0], live[0].coin_key[1])
    assert not np.array_equal(live[0].coins.net.head.bias[0], live[0].coins.net.head.bias[1])
    assert (a.windows["cfn_loss"] > 0).all() and (a.windows["v_count"] > 0).all()
