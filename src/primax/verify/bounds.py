"""The constants of Lemma 2 and Corollary 3, from a configuration."""

from dataclasses import dataclass
from math import log1p

import jax.numpy as jnp

from primax.config.schema import Config
from primax.methods import build
from primax.rewards.prime import Prime, PrimeConfig
from primax.rewards.prime.novelty import continuation_bonus


@dataclass(frozen=True)
class Bounds:
    """Upper bounds, named as in the paper."""

    gamma: float
    q_max: float
    """Q_max, the soft bound on the critics."""
    logit: float
    """G_E = a_max G_q + b_max, on a calibrated logit."""
    centred: float
    """2 G_E, on a centred logit and on g_k."""
    y_k: float
    """2 γ G_E, on Y_k."""
    v_heads: float
    """4 γ² G_E², on V_epi,LoTV + V_ale."""
    v_count: float
    """κ γ², on the count realization."""
    b_ale: float
    """B_ale, on the largest of the three detectors."""
    r_low: float
    """-λ log(1 + B_ale / σ₀²), below the reward before scale and clip."""
    r_high: float
    """max{4 γ² G_E², κ γ²}, above it."""
    r_r: float
    """R_r of Cor. 3, of the reward before scale and clip."""
    deployed: float
    """R_r of the reward the critics get: scaled, then clipped."""
    zeta: float
    """R_0 + γ G_q, on the statistics heads' targets."""
    bonus: float
    """R_0, on the continuation bonus."""


def bounds(config: Config) -> Bounds:
    """The constants of a PRIME configuration."""
    reward, gamma = config.reward, config.reward_gamma
    assert isinstance(reward, PrimeConfig)
    logit = reward.a_max * reward.quantile_bound + reward.b_max
    v_heads, v_count = 4 * gamma**2 * logit**2, reward.count_scale * gamma**2
    # φ has `feature_dim` numbers within (-1, 1); ψ has at most unit length.
    b_ale = max(v_heads, gamma**2 * reward.feature_dim, gamma**2)
    penalty = reward.aleatoric_weight * log1p(b_ale / reward.log_scale)
    r_high = max(v_heads, v_count)
    r_r = max(r_high, penalty)
    bonus = largest_bonus(config)
    return Bounds(
        gamma=gamma,
        q_max=config.critics.q_max,
        logit=logit,
        centred=2 * logit,
        y_k=2 * gamma * logit,
        v_heads=v_heads,
        v_count=v_count,
        b_ale=b_ale,
        r_low=0.0 - penalty,  # never -0.0
        r_high=r_high,
        r_r=r_r,
        deployed=min(reward.reward_clip, reward.reward_scale * r_r),
        zeta=bonus + gamma * reward.quantile_bound,
        bonus=bonus,
    )


def largest_bonus(config: Config) -> float:
    """R_0: the continuation bonus of the most novel place there can be."""
    _, prime = build(config)
    assert isinstance(prime, Prime)
    numbers = (config.reward.count_scale, config.reward_gamma)
    scale, gamma = (jnp.asarray(number, jnp.float32) for number in numbers)
    most = jnp.asarray(prime.freezer.novelty.bound, jnp.float32)
    return float(continuation_bonus(most, config.reward.bonus, scale, gamma))
