"""What PRIME reports of itself: of minibatches, at a window's boundary, and over the grid."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from primax.rewards.base import Metrics, Spec
from primax.rewards.prime.intrinsic import DETECTORS, Parts
from primax.rewards.prime.moments import At, buckets
from primax.rewards.prime.window import Readout, Window
from primax.rewards.transition import Recent

MEANS = ("v_count", "v_lotv", "v_epi", "v_ale_heads", "v_ale_phi", "v_ale_psi", "v_ale", "v_ahead")
MAPS = ("v_epi", "v_ale", "v_ahead", "r_int", "reward")


def of_parts(parts: Parts, weight: Float[Array, " n"], clip: Float[Array, ""]) -> Metrics:
    """Means over a minibatch's elements.

    `clamped` counts elements with data whose bracket the gate closed, `no_data` those the snapshot
    knows nothing of: the clamp share of elements with data is clamped / (1 - no_data).
    `wins_*` says which detector was the largest, where any saw noise.
    """
    weight = weight / jnp.maximum(jnp.sum(weight), 1.0)
    seen = jnp.stack([getattr(parts, f"v_ale_{name}") for name in DETECTORS])
    winner = jnp.where(parts.v_ale > 0, jnp.argmax(seen, axis=0), -1)
    values = {name: getattr(parts, name) for name in (*MEANS, "bracket", "r_int")}
    values |= {f"wins_{name}": winner == i for i, name in enumerate(DETECTORS)}
    values |= {
        "penalty": parts.v_epi - parts.r_int,
        "lotv_leads": parts.v_lotv > parts.v_count,
        "clamped": parts.has_data & (parts.bracket == 0),
        "no_data": ~parts.has_data,
        "reward_clipped": jnp.abs(parts.reward) >= clip,
    }
    # One sum for all: this runs at every update.
    stacked = jnp.stack([value.astype(jnp.float32) for value in values.values()])
    means = dict(zip(values, jnp.sum(stacked * weight[None], axis=1), strict=True))
    return means | {
        "clamped_batch": (means["bracket"] == 0).astype(jnp.float32),
        "reward_abs_max": jnp.max(jnp.abs(parts.reward) * (weight > 0)),
    }


def from_uniform(policy: Float[Array, "n actions"], weight: Float[Array, " n"]) -> Float[Array, ""]:
    """‖π - u‖₁, averaged: the margin δ_π where π is the reference policy."""
    away = jnp.sum(jnp.abs(policy - 1.0 / policy.shape[-1]), axis=-1)
    return jnp.sum(weight * away) / jnp.maximum(jnp.sum(weight), 1.0)


def boundary(
    window: Window,
    readout: Readout,
    recent: Recent,
    was: Float[Array, " rows"],
    now: Float[Array, " rows"],
) -> Metrics:
    """Of a new window: its policy against u and the agent's, its calibration, the reward's jump."""
    weight = recent.is_lived.astype(jnp.float32)
    weight = weight / jnp.maximum(jnp.sum(weight), 1.0)
    mean = lambda x: jnp.sum(jnp.where(weight > 0, weight * x, 0.0))  # noqa: E731
    metrics = {
        "pi_ref_from_u_recent": from_uniform(readout.policy, weight),
        "reward_jump": mean(jnp.abs(now - was)),
    }
    if recent.policy is not None:
        away = jnp.sum(jnp.abs(recent.policy - readout.policy), axis=-1)
        metrics |= {"pi_act_from_ref": mean(away)}
    for k in range(window.slope.shape[0]):
        metrics |= {f"slope_{k}": window.slope[k], f"offset_{k}": window.offset[k]}
    return metrics


def maps(spec: Spec, parts: Parts, recent: Recent) -> dict[str, Float[Array, "rows cols"]]:
    """Means over the snapshot's rows that start in each cell; NaN where none does."""
    row, col, _ = spec.coordinates(recent.rows.key)
    shape = spec.shape[1:]
    cells = shape[0] * shape[1]
    channels = jnp.stack([getattr(parts, name) for name in MAPS], axis=1)
    everywhere = At(jnp.arange(cells), jnp.zeros(cells, jnp.int32), jnp.zeros((cells, 0)))
    index = buckets(row * shape[1] + col, recent.is_lived, cells)
    mean, _, has_data = index.moments(channels).at(everywhere)
    drawn = jnp.where(has_data[:, None], mean, jnp.nan)
    return {name: drawn[:, i].reshape(shape) for i, name in enumerate(MAPS)}
