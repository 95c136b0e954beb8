"""Observations as they are kept and as networks see them: binary planes, images of bytes, vectors."""

import math

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Shaped, UInt8

from primax.rewards.parts import normaliser

MOST = 10.0
"""Where numbers brought to scale are clipped, up and down."""


def packed(obs: Shaped[Array, "n ..."], kind: str) -> Shaped[Array, "n ..."]:
    """Observations as they are kept: planes eight cells a byte, all else as it came."""
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
