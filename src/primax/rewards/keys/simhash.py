"""SimHash: signs of random projections."""

import math
from dataclasses import dataclass
from typing import Annotated

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt32

from primax.config.fields import Range, check
from primax.rewards.keys.base import MOST, Keys, Obs

SMALLEST = 1e-6
"""A number that varied less than this before the first window is taken as it is."""


class Projection(eqx.Module):
    """What an observation is shifted and scaled by, and the directions whose signs are its code."""

    mean: Float[Array, " numbers"]
    scale: Float[Array, " numbers"]
    directions: Float[Array, "numbers bits"]


@dataclass(frozen=True)
class SimHash(Keys):
    """Signs of random projections (Tang et al. 2017), of observations brought to one scale.

    The scale is that of the warm-up and then stays: steps of the warm-up are counted again under it.
    Noise that an agent cannot control makes every state new to this key.
    """

    bits: Annotated[int, Range(1, 32)] = 32
    """Signs in a code."""
    size: Annotated[int, Range(2, MOST)] = 65_536
    """Keys that codes are spread over, where there are more codes."""

    def __post_init__(self):
        check(self, "SimHash: ")

    @property
    def num(self) -> int:
        return min(2**self.bits, self.size)

    def init(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Projection:
        numbers = math.prod(shape)
        directions = jax.random.normal(key, (numbers, self.bits))
        return Projection(jnp.zeros(numbers), jnp.ones(numbers), directions)

    def settle(
        self, state: Projection, obs: Obs, is_lived: Bool[Array, " n"], kind: str
    ) -> Projection:
        """Zeros and ones by their smoothed frequency; other numbers by their mean and deviation."""
        x, weight = _flat(obs), is_lived.astype(jnp.float32)[:, None]
        num = jnp.sum(weight)
        total = jnp.sum(weight * x, axis=0)
        if kind == "planes":
            mean = (total + 0.5) / (num + 1.0)
            variance = mean * (1.0 - mean)
        else:
            mean = total / jnp.maximum(num, 1.0)
            variance = jnp.sum(weight * (x - mean[None]) ** 2, axis=0) / jnp.maximum(num, 1.0)
        varies = variance > SMALLEST**2
        scale = jnp.where(varies, jax.lax.rsqrt(jnp.where(varies, variance, 1.0)), 1.0)
        return Projection(mean, scale, state.directions)

    def of(self, state: Projection, obs: Obs) -> Int[Array, " n"]:
        x = (_flat(obs) - state.mean[None]) * state.scale[None]
        return hashed(x, state.directions, self.size)


def hashed(
    x: Float[Array, "n numbers"], directions: Float[Array, "numbers bits"], size: int
) -> Int[Array, " n"]:
    """The signs along directions as bits of a word, spread over `size` keys if there are more."""
    bits = directions.shape[1]
    # In full precision: a sign must not depend on how many rows are asked at once.
    signs = jnp.matmul(x, directions, precision="highest") > 0
    code = jnp.sum(jnp.where(signs, _powers(bits)[None], jnp.uint32(0)), axis=1)
    if 2**bits > size:
        code = mixed(code) % jnp.uint32(size)
    return code.astype(jnp.int32)


def _flat(obs: Obs) -> Float[Array, "n numbers"]:
    return obs.reshape(obs.shape[0], -1).astype(jnp.float32)


def _powers(bits: int) -> UInt32[Array, " bits"]:
    return jnp.uint32(1) << jnp.arange(bits, dtype=jnp.uint32)


def mixed(x: UInt32[Array, "*n"]) -> UInt32[Array, "*n"]:
    """A bijection of 32-bit words in which every bit depends on all (MurmurHash3's last step)."""
    x = (x ^ (x >> 16)) * jnp.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * jnp.uint32(0xC2B2AE35)
    return x ^ (x >> 16)
