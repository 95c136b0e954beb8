"""Lemma 2: uniform bounds, on a window the learner made and on the worst that could be made up."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from primax.presets import paper
from primax.rewards.prime import heads, lotv, moments, probes
from primax.rewards.prime.config import Constants, constants
from primax.rewards.prime.intrinsic import Parts, compose
from primax.rewards.prime.novelty import v_epi
from primax.rewards.prime.window import Readout, continuations
from primax.verify.bounds import Bounds, bounds
from primax.verify.lab import Lab, compiled
from primax.verify.row import SLACK, Row, text, verdict

TRIALS, ROWS, ACTIONS, PIXELS, BUCKETS = 64, 96, 5, (4, 6, 6), 8
Found = dict[str, tuple[float, float]]
"""What was measured at most, and its bound."""
CLAMPED = ("|reward|", "a", "|b|", "a_min / a", "|Ê|")
"""These are cut to their bound, or built at it: that they come near says nothing."""


def lemma_window(lab: Lab) -> Row:
    """Every count key and every stored row of a real window."""
    window, readout, limits = lab.watch.boundary.window, lab.readout, lab.bounds
    slope, offset = np.asarray(window.slope), np.asarray(window.offset)
    calibrated = slope[:, None, None] * readout.logits + offset[:, None, None]
    centred = calibrated - calibrated.mean(axis=-1, keepdims=True)
    g = np.sum(readout.policy[None] * centred, axis=-1)
    found = of_logits(calibrated, centred, g, limits)
    stored = lab.score(lab.watch.now)[1]
    for parts in (stored, lab.parts(lab.every_key)):
        found = _larger(found, of_parts(parts, limits))
    num = len(stored.r_int)
    where = f"{lab.prime.spec.num_keys} keys and {num} stored rows"
    return _row("lemma2_window", f"Lemma 2 on a real window ({where})", found, limits)


def lemma_random() -> Row:
    """Random and extreme heads, calibrations, policies and features, at the paper's constants."""
    config = paper("prime", "butterflies")
    limits, numbers = bounds(config), constants(config.reward, config.critics.gamma)
    keys = jax.random.split(jax.random.key(0), TRIALS)
    trials = compiled(jax.vmap(lambda key: trial(key, numbers, config.reward.heads)), keys)(keys)
    calibrated, centred, g, parts, clamps = jax.tree.map(np.asarray, trials)
    found = of_logits(calibrated, centred, g, limits) | of_parts(parts, limits)
    low, high = clamps[0].min(), clamps[0].max()
    found["a_min / a"] = (config.reward.a_min / low, 1.0)
    found["a"] = (float(high), config.reward.a_max)
    found["|b|"] = (float(np.abs(clamps[1]).max()), config.reward.b_max)
    statement = f"Lemma 2 on {TRIALS} random and extreme ensembles of {config.reward.heads} heads"
    return _row("lemma2_random", statement, found, limits)


def trial(key: PRNGKeyArray, numbers: Constants, num: int) -> Any:
    """One made-up window, through the functions windows are made with."""
    k_logits, k_sign, k_extreme, k_fit, k_bucket, k_phi, k_psi, k_probe, k_count = jax.random.split(
        key, 9
    )
    limit = numbers.quantile_bound
    shape = (num, ROWS, ACTIONS)
    extreme = jnp.where(jax.random.bernoulli(k_sign, 0.5, shape), limit, -limit)
    mild = jax.random.uniform(k_logits, shape, minval=-limit, maxval=limit)
    logits = jnp.where(jax.random.bernoulli(k_extreme), extreme, mild)
    slope, offset = heads.calibrate(logits, jnp.ones(ROWS, bool), numbers)
    k_heat, k_slope, k_offset = jax.random.split(k_fit, 3)
    wild_slope = jnp.where(jax.random.bernoulli(k_slope, 0.5, (num,)), numbers.a_min, numbers.a_max)
    wild_offset = jnp.where(jax.random.bernoulli(k_offset, 0.5, (num,)), 1.0, -1.0) * numbers.b_max
    heat = 10.0 ** jax.random.uniform(k_heat, (), minval=-3.0, maxval=1.0)
    policy = heads.reference_policy(logits[0], heat)
    phi = jnp.sign(jax.random.normal(k_phi, (ROWS, 32))) * jax.random.uniform(k_phi, (ROWS, 1))
    readout = Readout(policy, heads.probe_policy(policy), logits, phi)
    uniform = jnp.full(ACTIONS, 1.0 / ACTIONS)
    calibrated = wild_slope[:, None, None] * logits + wild_offset[:, None, None]
    g = continuations(readout, wild_slope, wild_offset)
    planes = jax.random.bernoulli(k_psi, 0.1, (ROWS, *PIXELS)).astype(jnp.uint8)
    key = jax.random.randint(k_bucket, (ROWS,), 0, BUCKETS)
    parts = _made_up(numbers, g, (phi, probes.psi(planes)), key, (k_probe, k_count))
    return calibrated, heads.centre(calibrated, uniform), g, parts, (slope, offset)


def _made_up(
    numbers: Constants,
    g: Float[Array, "heads rows"],
    features: tuple[Array, Array],
    key: Array,
    keys: tuple[PRNGKeyArray, PRNGKeyArray],
) -> Parts:
    """Estimates of random buckets, and the reward of them."""
    num, (k_probe, k_count) = g.shape[0], keys
    readings = [
        probes.readings(x, probes.unit_probes(k_probe, 8, x.shape[1]), numbers.gamma)
        for x in features
    ]
    index = moments.buckets(key, jnp.ones(ROWS, bool), BUCKETS)
    channels = jnp.concatenate([numbers.gamma * g.T, *readings], axis=1)
    at = moments.At(jnp.arange(BUCKETS), jnp.zeros(BUCKETS, jnp.int32), jnp.zeros((BUCKETS, 0)))
    mean, variance, has_data = index.moments(channels).at(at)
    novelty = jax.random.uniform(k_count, (BUCKETS,), maxval=1.0)
    return compose(
        v_count=v_epi(novelty, numbers.count_scale, numbers.gamma),
        v_lotv=lotv.epistemic(mean[:, :num]),
        detectors=(
            lotv.aleatoric(variance[:, :num]),
            probes.probe_variance(variance[:, num : num + 8]),
            probes.probe_variance(variance[:, num + 8 :]),
        ),
        v_ahead=jnp.zeros(BUCKETS),
        has_data=has_data,
        constants=numbers,
    )


def of_logits(calibrated: Any, centred: Any, g: Any, limits: Bounds) -> Found:
    """The bounds on logits, continuations and Y_k."""
    top = lambda x: float(np.max(np.abs(x)))  # noqa: E731
    return {
        "|Ê|": (top(calibrated), limits.logit),
        "|Ẽ|": (top(centred), limits.centred),
        "|g|": (top(g), limits.centred),
        "|Y|": (limits.gamma * top(g), limits.y_k),
    }


def of_parts(parts: Parts, limits: Bounds) -> Found:
    """The bounds on variances and on the reward, before and after scale and clip."""
    top = lambda x: float(np.max(x))  # noqa: E731
    return {
        "V_LoTV + V_ale": (top(parts.v_lotv + parts.v_ale_heads), limits.v_heads),
        "V_count": (top(parts.v_count), limits.v_count),
        "V_ale^aug": (top(parts.v_ale), limits.b_ale),
        "r_int": (top(parts.r_int), limits.r_high),
        "-r_int": (top(-parts.r_int), -limits.r_low),
        "|reward|": (top(np.abs(parts.reward)), limits.deployed),
    }


def _larger(a: Found, b: Found) -> Found:
    return a | {name: max(pair, a.get(name, pair)) for name, pair in b.items()}


def _row(name: str, statement: str, found: Found, limits: Bounds) -> Row:
    """Compares everything with its bound; names what comes nearest or breaks it."""
    share = {key: value / bound for key, (value, bound) in found.items()}
    broken = [key for key in share if not share[key] <= 1 + SLACK]
    nearest = max((key for key in share if key not in CLAMPED), key=share.__getitem__)
    breaches = [f"{key} = {text(found[key][0])} > {text(found[key][1])}" for key in broken]
    return Row(
        name=name,
        statement=statement,
        bound=f"R_r = {text(limits.r_r)} for any reward of this form (G_E = {text(limits.logit)}), "
        f"{text(limits.deployed)} as deployed",
        measured="; ".join(breaches)
        or f"r_int {text(-found['-r_int'][0])} to {text(found['r_int'][0])}, "
        f"|reward| ≤ {text(found['|reward|'][0])}; nearest to its bound: {nearest} at {share[nearest]:.0%}",
        verdict=verdict(not broken),
        numbers={key: value for key, (value, _) in found.items()},
    )
