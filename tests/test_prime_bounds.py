"""The paper's bounds and preferences as properties: random draws, and draws that reach for them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from primax.rewards.prime import (
    PrimeConfig,
    gate,
    heads,
    intrinsic,
    lotv,
    moments,
    novelty,
    probes,
    quantile,
)
from primax.rewards.prime.config import constants

GAMMA, K, N, A = 0.9, 3, 8, 4
SLACK = 1 + 1e-5
"""Float32 may round a bound upwards."""
many = settings(max_examples=60, deadline=None)
seeds = st.integers(0, 2**32 - 1)
share = st.floats(0, 1, width=32)


def sharp(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """In [-1, 1], half the time at the very ends."""
    inside, ends = rng.uniform(-1, 1, shape), rng.choice([-1.0, 1.0], shape)
    return np.where(rng.random() < 0.5, inside, ends).astype(np.float32)


@jax.jit
def returns(logits, slope, offset, baseline, temperature):
    """Ẽ_k and g_k of every head and state."""
    policy = heads.reference_policy(logits[0], temperature)
    calibrated = slope[:, None, None] * logits + offset[:, None, None]
    centred = jax.vmap(lambda x: heads.centre(x, baseline))(calibrated)
    return centred, jax.vmap(lambda x: heads.continuation(policy, x))(centred)


fit = jax.jit(heads.calibrate)


@jax.jit
def variances(channels, key):
    """Mean and variance of channels in every bucket of two."""
    index = moments.buckets(key, jnp.ones(N, bool), 2)
    where = moments.At(jnp.arange(2), jnp.zeros(2, jnp.int32), jnp.zeros((2, 0)))
    return index.moments(channels).at(where)[:2]


@many
@given(seeds, st.floats(0.5, 4, width=32), share, share, st.sampled_from([1e-6, 0.1, 1.0, 100.0]))
@example(0, 2.0, 1.0, 0.0, 1e-6)
def test_lemma_2_for_the_return_space(seed, bound, stretch, shift, temperature):
    """|Ẽ| and |g| are within 2 G_E, and the two variances together within 4 γ² G_E²."""
    rng = np.random.default_rng(seed)
    slope, offset = stretch * rng.uniform(0, 1, K), shift * sharp(rng, K)
    most = slope.max() * bound + np.abs(offset).max()
    logits = bound * sharp(rng, K, N, A)
    baseline = np.eye(A)[1] if rng.random() < 0.5 else rng.dirichlet(np.ones(A))
    args = (logits, slope, offset, baseline, np.float32(temperature))
    centred, g = returns(*(jnp.asarray(x, jnp.float32) for x in args))
    assert float(jnp.abs(centred).max()) <= 2 * most * SLACK + 1e-6
    assert float(jnp.abs(g).max()) <= 2 * most * SLACK + 1e-6
    mean, variance = variances(GAMMA * g.T, jnp.asarray(rng.integers(0, 2, N), jnp.int32))
    both = lotv.epistemic(mean) + lotv.aleatoric(variance)
    assert float(jnp.min(both)) >= 0
    assert float(jnp.max(both)) <= 4 * GAMMA**2 * most**2 * SLACK + 1e-6


@many
@given(seeds, st.sampled_from([1e-6, 1e-2, 1.0]), st.sampled_from([-2.0, 0.0, 2.0]))
def test_calibrated_heads_stay_within_their_bound(seed, spread, middle):
    """|a Ē + b| <= a_max G_q + b_max = 5, however alike or odd the heads are."""
    rng, numbers = np.random.default_rng(seed), constants(PrimeConfig(), GAMMA)
    logits = np.clip(middle + spread * 4 * sharp(rng, K, N, A), -2, 2).astype(np.float32)
    is_valid = jnp.asarray(rng.random(N) < rng.random())
    slope, offset = fit(jnp.asarray(logits), is_valid, numbers)
    assert float(slope.min()) >= 1 and float(slope.max()) <= 2
    assert float(jnp.abs(offset).max()) <= 1
    calibrated = np.asarray(slope)[:, None, None] * logits + np.asarray(offset)[:, None, None]
    assert np.abs(calibrated).max() <= 5


def test_lemma_2_is_reached():
    """Every head says ±G_q, u and π_ref stand on opposite actions, b is 0: Y = ±2 γ G_E exactly."""
    logits = np.full((K, N, A), -2.0)
    logits[:, :, 0] = 2.0
    baseline = np.eye(A)[1]
    args = (logits, np.full(K, 2.0), np.zeros(K), baseline, np.float32(1e-3))
    centred, g = returns(*(jnp.asarray(x, jnp.float32) for x in args))
    assert float(centred.max()) == 8.0 and set(g.ravel().tolist()) == {8.0}
    flip = np.resize([1.0, -1.0], N)[:, None]
    mean, variance = variances(
        jnp.asarray(GAMMA * flip * g.T, jnp.float32), jnp.zeros(N, jnp.int32)
    )
    assert float(lotv.epistemic(mean)[0] + lotv.aleatoric(variance)[0]) == pytest.approx(51.84)
    assert float(lotv.aleatoric(variance)[0]) == pytest.approx(4 * 0.81 * 16.0)


@many
@given(seeds, st.integers(1, 4))
def test_lemma_2_for_the_probes(seed, num):
    """Features within [-1, 1] have B_φ² = their number, ψ has B_ψ = 1."""
    rng = np.random.default_rng(seed)
    w = probes.unit_probes(jax.random.key(seed), num, 6)
    features = sharp(rng, N, 6)
    # The worst there is: features that have the signs of a probe, or their opposites.
    worst = np.sign(np.asarray(w[:1])) * np.resize([1.0, -1.0], N)[:, None]
    obs = rng.binomial(1, rng.random(), (N, 1, 2, 3)).astype(np.uint8)
    for rows, most in (
        (features, 6.0),
        (worst, 6.0),
        (probes.psi(jnp.asarray(obs)), 1.0),
    ):
        read = probes.readings(jnp.asarray(rows, jnp.float32), w, jnp.float32(GAMMA))
        noise = probes.probe_variance(jnp.asarray(np.var(read, axis=0)))
        assert 0 <= float(noise) <= GAMMA**2 * most * SLACK


def test_the_probes_bound_is_reached():
    """One probe along the diagonal, features all 1 or all -1: γ² times their number."""
    w = jnp.full((1, 4), 0.5)
    rows = jnp.asarray(np.resize([1.0, -1.0], 6)[:, None] * np.ones(4), jnp.float32)
    read = probes.readings(rows, w, jnp.float32(GAMMA))
    assert float(np.var(read)) == pytest.approx(0.81 * 4)


@many
@given(
    st.lists(share, min_size=5, max_size=5),
    st.floats(0, 10, width=32),
    st.floats(0, 5, width=32),
    st.floats(0, 5, width=32),
)
@example([1.0, 1.0, 1.0, 1.0, 1.0], 0.0, 0.5, 0.5)
@example([0.0, 0.0, 1.0, 1.0, 1.0], 0.0, 0.5, 0.5)
def test_lemma_2_for_the_reward(sizes, ahead, alpha, lam):
    """-λ log(1 + B_ale / σ₀²) <= r_int <= max(4 γ² G_E², κ γ²), and 81 is both B_ale and the top."""
    options = PrimeConfig(gate_weight=float(alpha), aleatoric_weight=float(lam))
    ge = options.a_max * options.quantile_bound + options.b_max
    head, phi, psi = 4 * GAMMA**2 * ge**2, GAMMA**2 * options.feature_dim, GAMMA**2
    assert (head, phi) == pytest.approx((81.0, 25.92))
    tops = (options.count_scale * GAMMA**2, head, head, phi, psi)
    v_count, v_lotv, *three = (
        jnp.full(1, s * top, jnp.float32) for s, top in zip(sizes, tops, strict=True)
    )
    parts = intrinsic.compose(
        v_count,
        v_lotv,
        tuple(three),
        jnp.full(1, ahead, jnp.float32),
        jnp.ones(1, bool),
        constants(options, GAMMA),
    )
    lowest = -lam * np.log1p(max(head, phi, psi) / options.log_scale)
    assert lowest * SLACK - 1e-6 <= float(parts.r_int[0]) <= 81.0 * SLACK
    assert abs(float(parts.reward[0])) <= options.reward_clip


LARGEST = {"tanh": 0.7615942, "v_count": 0.2349104, "inv_sqrt": 1.0}
"""R₀ of each continuation bonus."""


@many
@given(
    st.sampled_from(sorted(LARGEST)),
    share,
    st.lists(st.floats(-2, 2, width=32), min_size=4, max_size=4),
    st.booleans(),
)
@example("tanh", 1.0, [2.0, -2.0, 2.0, 2.0], False)
def test_corollary_3_for_the_statistics_targets(kind, x, after, is_over):
    """|ζ| <= R₀ + γ G_q, which is 2.5616 as deployed."""
    scale, gamma = jnp.float32(0.5), jnp.float32(GAMMA)
    bonus = novelty.continuation_bonus(jnp.float32(x), kind, scale, gamma)
    discount = gamma * (1.0 - is_over)
    zeta = quantile.zeta(bonus, discount, jnp.array(after, jnp.float32))
    assert float(jnp.abs(zeta).max()) <= (LARGEST[kind] + GAMMA * 2.0) * SLACK


def test_corollary_3_is_reached():
    zeta = quantile.zeta(jnp.tanh(jnp.float32(1)), jnp.float32(GAMMA), jnp.full(3, 2.0))
    assert float(zeta.max()) == pytest.approx(2.5615942)


@jax.jit
def reward(v_epi, x):
    """r_int where the bracket is x σ₀²: noise of that size, and nothing ahead."""
    numbers = constants(PrimeConfig(), GAMMA)
    net_noise = gate.bracket(x * numbers.log_scale, jnp.zeros_like(x), numbers.gate_weight)
    return intrinsic.intrinsic(v_epi, net_noise, numbers)


noises = st.one_of(st.floats(0, 2**-10, width=32), st.floats(0, 200, width=32), st.just(162.0))


@settings(max_examples=200, deadline=None)
@given(noises, noises, st.floats(0, 0.5, width=32), st.floats(0, 1, width=32))
@example(162.0, 0.0, 0.0, 0.0)
@example(1e-3, 0.0, 0.0, 0.0)
@example(3.0, 3.0, 0.1, 0.0)
def test_proposition_4_has_no_violation(one, two, base, more):
    """Enough more novelty outweighs more noise; `more` of 0 is the condition's very edge."""
    x1, x2 = max(one, two), min(one, two)
    edge = 0.5 * (x1 - x2) / (1 + x2)
    novelties = jnp.array([base + edge + more, base], jnp.float32)
    first, second = reward(novelties, jnp.array([x1, x2], jnp.float32)).tolist()
    assert first >= second - 1e-5 * (1 + abs(edge) + abs(second))


@many
@given(noises, st.floats(0, 0.5, width=32))
def test_proposition_4_at_equal_noise_is_an_equality(x, base):
    first, second = reward(jnp.full(2, base, jnp.float32), jnp.full(2, x, jnp.float32)).tolist()
    assert first == second
    ahead, behind = reward(jnp.array([base + 0.01, base]), jnp.full(2, x)).tolist()
    assert ahead > behind


def test_less_novelty_than_the_noise_is_worth_is_not_preferred():
    """log 4 - log 2 = 0.6931 of noise at λ = 0.5: 0.34 more novelty loses, 0.35 wins."""
    noise = jnp.array([3.0, 1.0])
    for more, is_better in ((0.34, False), (0.35, True)):
        first, second = reward(jnp.array([0.1 + more, 0.1]), noise).tolist()
        assert (first >= second) is is_better
