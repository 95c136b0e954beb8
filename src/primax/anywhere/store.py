"""The rows a bonus keeps: [ticks, envs], the newest overwriting the oldest."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree, Shaped, UInt8

from primax.rewards.parts import normaliser
from primax.rewards.transition import Batch

MOST = 10.0
"""Where numbers brought to scale are clipped, up and down."""


class Rows(eqx.Module):
    """What is kept of transitions; both observations, since episodes end when they like."""

    obs: Shaped[Array, "..."]
    """Binary planes eight cells a byte, all else as it came."""
    next_obs: Shaped[Array, "..."]
    action: Int[Array, "*n"]
    task: Float[Array, "*n"]
    key: Int[Array, "*n"]
    """Of state and action."""
    next_key: Int[Array, "*n"]
    """Of the state alone."""
    terminated: Bool[Array, "*n"]
    truncated: Bool[Array, "*n"]
    is_lived: Bool[Array, "*n"]
    """It is a step."""
    memo: PyTree
    next_memo: PyTree


def packed(obs: Shaped[Array, "envs ..."], kind: str) -> Shaped[Array, "envs ..."]:
    """Observations of all environments as they are kept."""
    return jnp.packbits(obs.reshape(obs.shape[0], -1), axis=1) if kind == "planes" else obs


def unpacked(
    stored: Shaped[Array, "n ..."], kind: str, shape: tuple[int, ...]
) -> Shaped[Array, "n ..."]:
    """Observations as they came."""
    if kind != "planes":
        return stored
    bits: UInt8[Array, "n flat"] = jnp.unpackbits(stored, axis=1, count=math.prod(shape))
    return bits.reshape(-1, *shape)


def moments(x: Float[Array, "n numbers"], is_lived: Bool[Array, " n"]) -> normaliser.Running:
    """Of the rows that are steps, without a prior: units may be anything."""
    weight = is_lived.astype(jnp.float32)[:, None]
    num = jnp.maximum(jnp.sum(weight), 1.0)
    mean = jnp.sum(weight * x, axis=0) / num
    variance = jnp.sum(weight * (x - mean[None]) ** 2, axis=0) / num
    return normaliser.Running(jnp.full(mean.shape, num), mean, variance)


def scaled(
    moments: normaliser.Running | None, obs: Shaped[Array, "n ..."]
) -> Shaped[Array, "n ..."]:
    """Vectors less their mean over their deviation; other observations as they are."""
    if moments is None:
        return obs
    width = jnp.where(moments.variance > 0, jnp.sqrt(moments.variance), 1.0)
    return jnp.clip((obs - moments.mean[None]) / width[None], -MOST, MOST)


def batch(
    rows: Rows, moments: normaliser.Running | None, kind: str, shape: tuple[int, ...]
) -> Batch:
    """Rows as rewards see them."""
    before, after = (scaled(moments, unpacked(x, kind, shape)) for x in (rows.obs, rows.next_obs))
    return Batch(
        obs=before,
        action=rows.action,
        task=rows.task,
        next_obs=after,
        terminated=rows.terminated,
        truncated=rows.truncated,
        weight=rows.is_lived.astype(jnp.float32),
        key=rows.key,
        next_key=rows.next_key,
        memo=rows.memo,
        next_memo=rows.next_memo,
    )


def put(kept: Rows, rows: Rows, tick: Int[Array, ""]) -> Rows:
    """Overwrites one tick."""

    def one(x: Any, y: Any) -> Any:
        return jax.lax.dynamic_update_index_in_dim(x, y.astype(x.dtype), tick, axis=0)

    return jax.tree.map(one, kept, rows)
