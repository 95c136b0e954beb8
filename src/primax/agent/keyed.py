"""Keys of observations in the engine, where the world's own are not used."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray, PyTree, Shaped

from primax.rewards.keys import Keys


class Hashed(eqx.Module):
    """What makes keys, and what they say now."""

    projection: PyTree
    """What they depend on."""
    now: Int[Array, ""]
    """The key of what is seen now."""
    met: Bool[Array, " keys"]
    """Which of them were ever met."""


def start(keys: Keys | None, key: PRNGKeyArray, obs: Shaped[Array, "..."]) -> Hashed | None:
    """Before the first step; None where the world has keys."""
    if keys is None:
        return None
    projection = keys.init(key, obs.shape)
    return Hashed(projection, _one(keys, projection, obs), jnp.zeros(keys.num, bool))


def seen(keys: Keys, was: Hashed, obs: Shaped[Array, "..."]) -> Hashed:
    """This is seen now."""
    now = _one(keys, was.projection, obs)
    return Hashed(was.projection, now, was.met.at[now].set(True))


def _one(keys: Keys, projection: Any, obs: Shaped[Array, "..."]) -> Int[Array, ""]:
    return keys.of(projection, obs[None])[0]
