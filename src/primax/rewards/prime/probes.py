"""Probes: random directions along which the noise of the next state's features is measured."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, Shaped


def unit_probes(key: PRNGKeyArray, num: int, dim: int) -> Float[Array, "num dim"]:
    """w_i, uniform on the unit sphere."""
    draws = jax.random.normal(key, (num, dim))
    return draws / jnp.linalg.norm(draws, axis=1, keepdims=True)


def psi(obs: Shaped[Array, "n ..."]) -> Float[Array, "n flat"]:
    """ψ, the observation flattened and scaled to unit length."""
    flat = obs.reshape(obs.shape[0], -1).astype(jnp.float32)
    length = jnp.linalg.norm(flat, axis=-1, keepdims=True)
    return flat / jnp.maximum(length, 1.0)


def readings(
    features: Float[Array, "n dim"], probes: Float[Array, "m dim"], gamma: Float[Array, ""]
) -> Float[Array, "n m"]:
    """γ w_iᵀ φ(S'), whose variance given (s, a) a probe reports; in full precision."""
    return gamma * jnp.matmul(features, probes.T, precision="highest")


def probe_variance(variances: Float[Array, "*n m"]) -> Float[Array, "*n"]:
    """Ṽ_ale of a feature map, eq. (8): the mean over probes of their conditional variance."""
    return jnp.mean(variances, axis=-1)
