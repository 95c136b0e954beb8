"""Every formula of PRIME and of its measures, on numbers worked by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from primax.config.schema import NetConfig
from primax.nn import nets
from primax.rewards.prime import (
    PrimeConfig,
    counts,
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

NUMBERS = constants(PrimeConfig(), 0.9)
"""The paper's: γ 0.9, κ 0.5, G_q 2, a in [1, 2], |b| at most 1, α, λ and σ₀² 0.5."""
PLANES, NET = (2, 3, 4), NetConfig(first_channels=2, second_channels=2, embedding=2)
assert_close = np.testing.assert_allclose


def numbers(*values: float) -> jax.Array:
    return jnp.array(values, jnp.float32)


def whole(*values: int) -> jax.Array:
    return jnp.array(values, jnp.int32)


def scalar(value: float) -> jax.Array:
    return jnp.float32(value)


def test_the_count_realization():
    """N = 0: 0.5 * 0.81 * 0.761594²; N = 1: of tanh 0.707107 = 0.608860; N = 3: of tanh 0.5."""
    x = counts.inverse_root(whole(0, 1, 3, 99))
    assert_close(x, [1.0, 0.707107, 0.5, 0.1], rtol=1e-6)
    v = novelty.v_epi(x, scalar(0.5), scalar(0.9))
    assert_close(v, [0.2349104, 0.1501371, 0.0864887, 0.00402315], rtol=1e-5)


@pytest.mark.parametrize(
    ("kind", "bonus"),
    [
        ("tanh", [0.7615942, 0.4621172]),
        ("v_count", [0.2349104, 0.0864887]),
        ("inv_sqrt", [1.0, 0.5]),
    ],
)
def test_the_continuation_bonus_of_no_visit_and_of_three(kind, bonus):
    x = numbers(1.0, 0.5)
    assert_close(novelty.continuation_bonus(x, kind, scalar(0.5), scalar(0.9)), bonus, rtol=1e-6)


def silent(bias: jax.Array) -> nets.Net:
    """A network that says the same of everything."""
    net = nets.net(jax.random.key(0), PLANES, NET, bias.shape[0])
    return nets.Net(net.trunk, nets.Linear(jnp.zeros_like(net.head.weight), bias))


def test_quantiles_are_bounded_with_the_prior_inside():
    """2 tanh(0.5 - 2 * 0.1) = 0.5826252; outputs go by action, then quantile."""
    net = silent(numbers(0.5, 100.0, -100.0, 0.0, 0.0, -0.5))
    prior = silent(numbers(-0.1, -1.0, 1.0, 0.25, 90.0, 0.1))
    seen = nets.patches(jnp.zeros((1, *PLANES), jnp.uint8))
    q = heads.quantiles(net, prior, seen, 2, NUMBERS)
    # 2 tanh(0.5) = 0.9242343.
    assert_close(q[0], [[0.5826252, 2.0, -2.0], [0.9242343, 2.0, -0.5826252]], rtol=1e-6)


REFERENCE = np.array([[0.0, 1.0], [2.0, 3.0]])


@pytest.mark.parametrize(
    ("head", "a", "b"),
    [
        (REFERENCE, 1.0, 0.0),
        ((REFERENCE - 0.75) / 1.5, 1.5, 0.75),
        # Slope 4 is cut to 2; the means are 1.5 and 0.375: 1.5 - 2 * 0.375.
        (REFERENCE / 4, 2.0, 0.75),
        # Slope 1/3 is raised to 1; 1.5 - 4.5 is cut to -1.
        (3 * REFERENCE, 1.0, -1.0),
        # Slope 1 fits; its offset 5 is cut.
        (REFERENCE - 5, 1.0, 1.0),
        # Opposed: slope -1 is raised to 1; 1.5 + 1.5 is cut.
        (-REFERENCE, 1.0, 1.0),
        # Without slope: 1, and 1.5 - 1.25.
        (np.full((2, 2), 1.25), 1.0, 0.25),
        # y on x: cov 0.625 * 1.5 over var 0.6875, by x = (0, 0, 1, 2), y = (0, 1, 2, 3).
        (np.array([[0.0, 0.0], [1.0, 2.0]]), 1.2727273, 0.5454545),
    ],
)
def test_a_heads_calibration(head, a, b):
    """The third state was never written."""
    poison = np.array([[1e6, -1e6]])
    logits = np.stack([np.concatenate([x, poison]) for x in (REFERENCE, head)])
    is_valid = jnp.array([True, True, False])
    slope, offset = heads.calibrate(jnp.asarray(logits, jnp.float32), is_valid, NUMBERS)
    assert_close(slope, [1.0, a], rtol=1e-6)
    assert_close(offset, [0.0, b], rtol=1e-6)


def test_the_reference_head_is_calibrated_to_itself_exactly():
    logits = 0.7 + 0.03 * jax.random.normal(jax.random.key(0), (50, 1, 256, 5))
    fit = jax.jit(jax.vmap(lambda x: heads.calibrate(x, jnp.ones(256, bool), NUMBERS)))
    slope, offset = fit(logits)
    assert set(slope.ravel().tolist()) == {1.0} and set(offset.ravel().tolist()) == {0.0}


def test_a_head_that_says_the_same_everywhere_has_slope_one():
    """Whatever it says: the sum that makes its mean may round."""
    logits = 0.7 + 0.03 * jax.random.normal(jax.random.key(0), (50, 2, 256, 5))
    says = jnp.linspace(0.1, 1.9, 50)[:, None, None]
    logits = logits.at[:, 1].set(jnp.broadcast_to(says, (50, 256, 5)))
    fit = jax.jit(jax.vmap(lambda x: heads.calibrate(x, jnp.ones(256, bool), NUMBERS)))
    assert set(fit(logits)[0][:, 1].tolist()) == {1.0}


def test_centring():
    """Means 3 and 2.5."""
    logits = jnp.array([[1.0, 2.0, 6.0], [0.0, 0.0, 0.0]])
    uniform, other = jnp.full(3, 1 / 3), numbers(0.5, 0.25, 0.25)
    assert_close(heads.centre(logits, uniform), [[-2, -1, 3], [0, 0, 0]], atol=1e-6)
    assert_close(heads.centre(logits[0], other), [-1.5, -0.5, 3.5], rtol=1e-6)


def test_the_reference_policy_and_its_probe():
    """Logits log 1, log 2, log 5 at τ = 1; twice that at τ = 2; ties go to the first."""
    logits = np.log([1.0, 2.0, 5.0])
    for tau in (1.0, 2.0):
        policy = heads.reference_policy(jnp.asarray(tau * logits, jnp.float32), scalar(tau))
        assert_close(policy, [0.125, 0.25, 0.625], rtol=1e-6)
    many = jnp.array([[0.1, 0.2, 0.7], [0.4, 0.4, 0.2], [0.5, 0.3, 0.2]])
    assert heads.probe_policy(many).tolist() == [2, 0, 0]


def test_continuation_is_the_policys_mean_of_centred_logits():
    """-1 - 0.25 + 0.75; nothing at all under u itself."""
    centred = numbers(-2.0, -1.0, 3.0)
    assert float(heads.continuation(numbers(0.5, 0.25, 0.25), centred)) == -0.5
    assert float(heads.continuation(jnp.full(3, 1 / 3), centred)) == pytest.approx(0.0, abs=1e-7)


def test_the_law_of_total_variance():
    """Means 1, 2, 6: (4 + 1 + 9) / 3; one head disagrees with nobody."""
    assert_close(
        lotv.epistemic(jnp.array([[1.0, 2.0, 6.0], [2.0, 2.0, 2.0]])), [14 / 3, 0], rtol=1e-6
    )
    assert_close(lotv.aleatoric(jnp.array([[1.0, 2.0, 6.0]])), [3.0], rtol=1e-6)
    assert float(lotv.epistemic(numbers(5.0))) == 0.0


def test_psi_has_unit_length():
    obs = np.zeros((2, *PLANES), np.uint8)
    obs[0].flat[[0, 5, 7, 20]] = 1
    flat = np.asarray(probes.psi(jnp.asarray(obs)))
    assert flat.shape == (2, 24) and np.flatnonzero(flat[0]).tolist() == [0, 5, 7, 20]
    assert flat[0].max() == 0.5 and not flat[1].any()


def test_probe_readings():
    """0.9 * (3 * 0.6 + 4 * 0.8) and 0.9 * 3."""
    w = jnp.array([[0.6, 0.8], [1.0, 0.0]])
    assert_close(probes.readings(jnp.array([[3.0, 4.0]]), w, scalar(0.9)), [[4.5, 2.7]], rtol=1e-6)
    assert_close(probes.probe_variance(jnp.array([[1.0, 2.0, 6.0]])), [3.0], rtol=1e-6)


@pytest.mark.parametrize("dim", [2, 10])
def test_probes_report_the_trace_over_the_dimension(dim):
    """E over the sphere of Var(γ wᵀφ) is γ² tr Σ / d: 0.81 * 3 / d, all noise in one direction."""
    w = probes.unit_probes(jax.random.key(0), 20_000, dim)
    assert_close(jnp.linalg.norm(w, axis=1), 1.0, rtol=1e-5)
    assert_close(jnp.mean(w, axis=0), np.zeros(dim), atol=0.03)
    features = np.zeros((2, dim), np.float32)
    features[:, 0] = [3**0.5, -(3**0.5)]
    variances = np.var(probes.readings(jnp.asarray(features), w, scalar(0.9)), axis=0)
    assert float(probes.probe_variance(jnp.asarray(variances))) == pytest.approx(
        2.43 / dim, rel=0.03
    )


def test_the_statistics_targets():
    after = numbers(-2.0, 0.0, 1.0)
    assert_close(quantile.zeta(scalar(0.5), scalar(0.9), after), [-1.3, 0.5, 1.4], rtol=1e-6)
    assert_close(quantile.zeta(scalar(0.5), scalar(0.0), after), [0.5, 0.5, 0.5], rtol=1e-6)


def test_the_quantile_huber_loss():
    """Quantile 0 at level 1/4: errors 0.5 and 3, 0.25 * (0.125 + 2.5) / 2 = 0.328125.

    Quantile 1 at level 3/4: errors -0.5 and 2, (0.25 * 0.125 + 0.75 * 1.5) / 2 = 0.578125.
    """
    assert float(quantile.quantile_huber(numbers(0.0, 1.0), numbers(0.5, 3.0))) == 0.90625
    # One quantile is half the Huber loss: 0.5 * 0.5 * 0.4².
    assert float(quantile.quantile_huber(numbers(0.1), numbers(0.5))) == pytest.approx(0.04)


@pytest.mark.parametrize(
    ("horizon", "decay", "sums"),
    [
        (1, 0.5, [1, 2, 4, 8, 16]),
        (2, 0.5, [2, 4, 4, 16, 16]),
        (4, 0.5, [3, 4, 4, 16, 16]),
        (9, 1.0, [7, 6, 4, 24, 16]),
    ],
)
def test_look_ahead_ends_with_the_episode_and_with_the_newest_row(horizon, decay, sums):
    """The third row ends an episode."""
    value, is_last = numbers(1, 2, 4, 8, 16), jnp.array([False, False, True, False, False])
    assert gate.look_ahead(value, is_last, scalar(decay), horizon).tolist() == sums


def test_the_bracket_and_the_reward():
    """0.5 - 0.5 * 0.4; 0.2 - 0.5 log(1 + 0.3 / 0.5) = -0.0350018; scaled -1.750092."""
    net_noise = gate.bracket(numbers(0.5, 0.1), numbers(0.4, 0.4), scalar(0.5))
    assert_close(net_noise, [0.3, 0.0], rtol=1e-6)
    assert_close(gate.bracket(numbers(0.5), numbers(9.0), scalar(0.0)), [0.5])
    r_int = intrinsic.intrinsic(numbers(0.2, 0.02), net_noise, NUMBERS)
    assert_close(r_int, [-0.0350018, 0.02], rtol=1e-5)
    assert_close(intrinsic.deployed(r_int, NUMBERS), [-1.750092, 1.0], rtol=1e-5)
    assert_close(intrinsic.deployed(numbers(-0.05, 0.05), NUMBERS), [-2.0, 2.0])
    novelty_alone = constants(PrimeConfig(aleatoric_weight=0.0), 0.9)
    assert_close(intrinsic.intrinsic(numbers(0.2), numbers(7.0), novelty_alone), [0.2])


def test_the_larger_estimate_and_the_largest_detector_count():
    three = (numbers(0.1, 0.0, 0.0), numbers(0.0, 0.2, 0.0), numbers(0.0, 0.1, 0.3))
    ahead, has_data = numbers(0.0, 0.0, 0.8), jnp.array([True, True, False])
    parts = intrinsic.compose(
        numbers(0.1, 0.2, 0.1), numbers(0.2, 0.1, 0.0), three, ahead, has_data, NUMBERS
    )
    assert_close(parts.v_epi, [0.2, 0.2, 0.1])
    assert_close(parts.v_ale, [0.1, 0.2, 0.3])
    assert_close(parts.bracket, [0.1, 0.2, 0.0], atol=1e-8)
    # 0.2 - 0.5 log 1.2 and 0.2 - 0.5 log 1.4.
    assert_close(parts.r_int, [0.1088392, 0.0317639, 0.1], rtol=1e-5)
    assert_close(parts.reward, [2.0, 1.588194, 2.0], rtol=1e-5)


def at(key=(), action=(), place=()) -> moments.At:
    num = max(len(key), len(action), len(place))
    fill = lambda x: whole(*x) if x else jnp.zeros(num, jnp.int32)  # noqa: E731
    return moments.At(fill(key), fill(action), jnp.asarray(place, jnp.float32).reshape(num, -1))


def test_moments_of_a_bucket():
    """Key 3 has 1 and 3, and a row that is not valid; key 1 has 10 and 14; key 2 a single 0.1."""
    is_valid = jnp.array([True, True, True, False, True, True])
    index = moments.buckets(whole(3, 1, 3, 3, 1, 2), is_valid, 5)
    channels = jnp.array([[1.0, 0], [10, 0], [3, 6], [jnp.nan, jnp.inf], [14, 0], [0.1, 7]])
    mean, variance, has_data = index.moments(channels).at(at(key=(3, 1, 0, 2, 4)))
    assert_close(mean, [[2, 3], [12, 0], [0, 0], [0.1, 7], [0, 0]], rtol=1e-6)
    assert_close(variance, [[1, 9], [4, 0], [0, 0], [0, 0], [0, 0]], rtol=1e-6)
    assert has_data.tolist() == [True, True, False, True, False]


PLACES, SAID = ((2,), (0,), (2,), (5,), (2,), (1,)), (100, 10, 20, 7, np.nan, 50)
"""Oldest first; the fifth row is not valid and the sixth is of another action."""


@pytest.mark.parametrize(
    ("weights", "mean", "variance"),
    [
        # From 1 all are 1 away but the 5: the newest two said 20 and 10.
        ("uniform", 15.0, 25.0),
        ("rank", 16.666667, 22.222222),
        ("gaussian", 15.0, 25.0),
    ],
)
def test_moments_of_the_nearest(weights, mean, variance):
    is_valid = jnp.array([True, True, True, True, False, True])
    rows = at(action=(0, 0, 0, 0, 0, 1), place=PLACES)
    index = moments.nearest(rows, is_valid, 2, weights)
    said = jnp.asarray(SAID, jnp.float32)[:, None]
    ask = at(action=(0, 1, 2), place=((1,), (9,), (1,)))
    means, variances, has_data = index.moments(said).at(ask)
    # The other action has one row, however far; a third has none.
    assert_close(means[:, 0], [mean, 50, 0], rtol=1e-5)
    assert_close(variances[:, 0], [variance, 0, 0], rtol=1e-5)
    assert has_data.tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("kind", "away", "found", "weights"),
    [
        ("uniform", (0, 1, 9), 3, [1 / 3, 1 / 3, 1 / 3]),
        ("uniform", (0, 1, np.inf), 2, [0.5, 0.5, 0]),
        # 1, 1/2, 1/3 over 11/6.
        ("rank", (0, 1, 9), 3, [6 / 11, 3 / 11, 2 / 11]),
        ("rank", (0, 1, np.inf), 2, [2 / 3, 1 / 3, 0]),
        # 1, exp -0.5, exp -4.5: 1, 0.6065307, 0.0111090 over 1.6176397.
        ("gaussian", (0, 1, 9), 3, [0.6181846, 0.3749479, 0.0068674]),
        # Of two found the nearer is the median: exp -0.5 and exp -2.
        ("gaussian", (1, 4, np.inf), 2, [0.8175745, 0.1824255, 0]),
        ("gaussian", (0, 0, 4), 3, [1 / 3, 1 / 3, 1 / 3]),
        ("gaussian", (np.inf, np.inf, np.inf), 0, [0, 0, 0]),
    ],
)
def test_weights_of_neighbours(kind, away, found, weights):
    is_found = jnp.arange(3) < found
    assert_close(moments.neighbour_weights(numbers(*away), is_found, kind), weights, rtol=1e-5)
