"""Rewards frozen for a window, alone and as PRIME's novelty; the Dirichlet gain against scipy."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reward_case import ACTIONS, KEY, PLANES, SPEC, STATES, batch, snapshot, step
from scipy.integrate import dblquad, quad
from scipy.special import digamma, entr, gammaln
from scipy.stats import beta

from primax.errors import InputError
from primax.presets import configure
from primax.rewards.dirichlet import Dirichlet, DirichletConfig, information_gain
from primax.rewards.disagreement import DisagreementConfig
from primax.rewards.frozen import ensemble_snapshot, rnd_snapshot
from primax.rewards.prime import Prime, PrimeConfig
from primax.rewards.prime.novelty import Where
from primax.rewards.rnd import RndConfig

RATE = {"learning_rate": 0.01}
SMALL = {"models": 2, "features": 4, "hidden": 6}


@pytest.mark.parametrize(
    "reward",
    [rnd_snapshot(SPEC, RndConfig(**RATE)), ensemble_snapshot(SPEC, DisagreementConfig(**SMALL))],
    ids=["rnd", "ensemble"],
)
def test_within_a_window_rewards_keep_their_bits_and_at_its_end_they_are_the_live_ones(reward):
    state, rows = jax.jit(reward.init)(KEY), batch(0)
    score, learn, refresh = (jax.jit(f) for f in (reward.score, reward.learn, reward.refresh))
    first = np.asarray(score(state, rows))
    for i in range(5):
        state, _ = learn(state, batch(i), jax.random.key(i))
    np.testing.assert_array_equal(score(state, rows), first)
    live = np.asarray(reward.inner.score(state.live, rows))
    assert abs(live / first - 1).min() > 1e-3
    state, said = refresh(state, snapshot(rows), KEY)
    now = np.asarray(score(state, rows))
    np.testing.assert_allclose(now, live, rtol=1e-5)
    jump = abs(now - first)[:-1].mean()
    np.testing.assert_allclose(said["reward_jump"], jump, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("novelty", ["rnd", "ensemble"])
def test_prime_takes_a_learnt_novelty(novelty):
    """Frozen with the window, of the state asked about, and worth less once it was learnt."""
    prime = Prime(SPEC, PrimeConfig(novelty=novelty, heads=1, calibration=4))
    source = prime.freezer.novelty
    live = jax.jit(source.init)(KEY)
    learn = jax.jit(source.learn)
    rows = replace(batch(0), weight=jnp.ones(8).at[4:].set(0.0))
    where = Where(rows.obs, rows.action, rows.key)
    frozen = source.freeze(live)
    value = jax.jit(source.value)
    before = np.asarray(value(frozen, where))
    for i in range(300):
        live, _ = learn(live, rows, jax.random.key(i))
    np.testing.assert_array_equal(value(frozen, where), before)
    after = np.asarray(value(source.freeze(live), where))
    assert (after >= 0).all() and (after <= source.bound).all()
    # Not by the raw numbers: they are divided by the deviation of what was learnt meanwhile.
    fall = after / before
    assert fall[:4].mean() < 0.75 * fall[4:].mean()


def test_a_frozen_reward_is_not_stored():
    with pytest.raises(InputError, match="rnd_snapshot reads what a window froze"):
        rnd_snapshot(SPEC, RndConfig(read="lived"))


def test_prime_refuses_a_bonus_without_a_bound():
    with pytest.raises(InputError, match="inv_sqrt"):
        PrimeConfig(novelty="ensemble", bonus="inv_sqrt")
    with pytest.raises(InputError, match="novelty has no value"):
        PrimeConfig(novelty="counts")


def divergence(new, old) -> float:
    """KL between two Dirichlet distributions, the textbook's formula."""
    weigh = lambda a: gammaln(a.sum()) - gammaln(a).sum()  # noqa: E731
    away = ((new - old) * (digamma(new) - digamma(new.sum()))).sum()
    return float(weigh(new) - weigh(old) + away)


def expected_gain(alpha) -> float:
    """The oracle: the divergence after each outcome, weighed by its chance."""
    eye = np.eye(len(alpha))
    return sum(
        p * divergence(alpha + one, alpha) for p, one in zip(alpha / alpha.sum(), eye, strict=True)
    )


def test_information_gain_by_hand():
    """A fair coin never thrown, α = (1, 1): H = log 2, and 1/2 nat of it is expected to stay."""
    found = float(information_gain(jnp.ones(2)))
    assert found == pytest.approx(np.log(2) - 0.5, rel=1e-5)


@pytest.mark.parametrize(
    "counts", [[0] * 12, [1] + [0] * 11, [3, 5, 0, 40], [900, 100], [10**6, 0]]
)
def test_information_gain_is_the_expected_divergence(counts):
    alpha = np.asarray(counts, float) + 1 / len(counts)
    found = float(information_gain(jnp.asarray(alpha, jnp.float32)))
    assert found == pytest.approx(expected_gain(alpha), rel=5e-3)


@pytest.mark.parametrize("alpha", [(1.0, 1.0), (0.5, 0.5), (3.5, 0.5), (40.5, 7.5)])
def test_information_gain_is_what_integration_finds(alpha):
    """Entropy of the next state less its mean entropy were the chance of it known: over a Beta."""
    entropy = lambda p: entr(p) + entr(1 - p)  # noqa: E731
    left, _ = quad(lambda p: beta.pdf(p, *alpha) * entropy(p), 0, 1)
    gain = entropy(alpha[0] / sum(alpha)) - left
    assert float(information_gain(jnp.asarray(alpha))) == pytest.approx(gain, rel=2e-3)


def test_information_gain_is_what_integration_finds_for_three():
    """The same over a triangle, by both its sides."""
    alpha = np.array([2.0, 1.0, 3.0])
    norm = np.exp(gammaln(alpha.sum()) - gammaln(alpha).sum())

    def left(p, q):
        chance = np.array([p, q, 1 - p - q])
        return norm * np.prod(chance ** (alpha - 1)) * entr(chance).sum()

    known, _ = dblquad(left, 0, 1, 0, lambda q: 1 - q, epsabs=1e-5)
    gain = entr(alpha / alpha.sum()).sum() - known
    assert float(information_gain(jnp.asarray(alpha, jnp.float32))) == pytest.approx(gain, rel=1e-4)


def test_counts_transitions_once_each_and_scores_by_the_frozen_table():
    reward = Dirichlet(SPEC, DirichletConfig(prior=2.0, reward_scale=3.0))
    state = reward.init(KEY)
    refresh = jax.jit(reward.refresh)
    _, memo = reward.begin(state, jnp.zeros(PLANES, jnp.uint8), KEY)
    assert memo == 0
    first = replace(batch(0), next_memo=jnp.zeros(8, jnp.int32))
    # What was never written must not be counted, whatever it contains.
    recent = replace(snapshot(first), is_valid=jnp.ones(8, bool).at[0].set(False))
    state, _ = refresh(state, recent, KEY)
    table = np.zeros((STATES * ACTIONS, STATES))
    np.add.at(table, (np.asarray(first.key)[1:-1], np.asarray(first.next_key)[1:-1]), 1)
    np.testing.assert_array_equal(state.count, table)

    nothing = np.zeros(PLANES, np.uint8)
    _, memo = reward.observe(state, step(nothing, 0, nothing), KEY)
    assert memo == 1
    second = replace(batch(0), next_memo=jnp.asarray([0, 0, 0, 0, 1, 1, 1, 1], jnp.int32))
    was = reward.score(state, second)
    state, _ = refresh(state, snapshot(second), KEY)
    np.add.at(table, (np.asarray(second.key)[4:7], np.asarray(second.next_key)[4:7]), 1)
    np.testing.assert_array_equal(state.count, table)
    alpha = table[np.asarray(second.key)] + 2.0 / STATES
    expected = [3 * expected_gain(row) for row in alpha]
    now = reward.score(state, second)
    np.testing.assert_allclose(now, expected, rtol=1e-4)
    assert (now[4:7] < was[4:7]).all()


def test_noise_that_is_known_is_worth_nothing():
    """A key seen a thousand times with two outcomes is worth less than one seen ten times with one."""
    noisy = information_gain(jnp.asarray([500.1, 500.1] + [0.1] * 8))
    new = information_gain(jnp.asarray([10.1] + [0.1] * 9))
    assert float(noisy) < 0.02 < float(new)


def test_what_would_not_be_counted_is_refused():
    with pytest.raises(InputError, match="recent"):
        configure("dirichlet", "maze", settings={"window": "6_000"})
    with pytest.raises(InputError, match="uncounted"):
        configure("dirichlet", "maze", settings={"snapshot": "random"})
    with pytest.raises(InputError, match="times its states"):
        Dirichlet(replace(SPEC, num_keys=10**6), DirichletConfig())
