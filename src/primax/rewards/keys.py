"""Keys: which observations count as the same state.

A key is a whole number below `num`. It is given with every transition, or a function of the
observation says it, or it is a hash. Tables are as long as there are keys, so a bound is all that
they need: never a list of all states.
"""

import abc
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped, UInt32

from primax.config.fields import Range, check
from primax.config.schema import KeysConfig
from primax.errors import InputError, check_range
from primax.nn.encoders import named

MOST = 10_000_000
"""Keys of states there may be; tables have one entry for each and each action."""
SMALLEST = 1e-6
"""A number that varied less than this before the first window is taken as it is."""

Obs = Shaped[Array, "n ..."]


@dataclass(frozen=True)
class Keys(abc.ABC):
    """Abstract."""

    @property
    @abc.abstractmethod
    def num(self) -> int:
        """How many there are."""

    def init(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Any:
        """What they depend on."""
        return ()

    def of(self, state: Any, obs: Obs) -> Int[Array, " n"]:
        """The keys of observations."""
        raise InputError("keys are given here: a transition needs key and next_key")

    def settle(self, state: Any, obs: Obs, is_lived: Bool[Array, " n"], kind: str) -> Any:
        """The first window begins, after these observations: from now on keys stay as they are."""
        return state


@dataclass(frozen=True)
class Given(Keys):
    """Every transition has its `key` and `next_key`."""

    states: int

    def __post_init__(self):
        check_range("keys", self.states, 1, MOST)

    @property
    def num(self) -> int:
        return self.states


@dataclass(frozen=True)
class Same(Keys):
    """One key for all, where the reward reads none."""

    @property
    def num(self) -> int:
        return 1

    def of(self, state: Any, obs: Obs) -> Int[Array, " n"]:
        return jnp.zeros(obs.shape[0], jnp.int32)


@dataclass(frozen=True)
class Function(Keys):
    """`function` of one observation gives its key, as a jax function."""

    function: Callable[[Any], Any]
    states: int

    def __post_init__(self):
        check_range("keys", self.states, 1, MOST)

    def __repr__(self) -> str:
        """By name: an address would not be the same in another process."""
        return f"Function({named(self.function)}, {self.states})"

    @property
    def num(self) -> int:
        return self.states

    def of(self, state: Any, obs: Obs) -> Int[Array, " n"]:
        return jnp.clip(jax.vmap(self.function)(obs).astype(jnp.int32), 0, self.states - 1)


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
        # In full precision: a sign must not depend on how many rows are asked at once.
        signs = jnp.matmul(x, state.directions, precision="highest") > 0
        code = jnp.sum(jnp.where(signs, _powers(self.bits)[None], jnp.uint32(0)), axis=1)
        if 2**self.bits > self.size:
            code = mixed(code) % jnp.uint32(self.size)
        return code.astype(jnp.int32)


def hashed(config: KeysConfig) -> SimHash:
    """The keys of a run in a world that gives none."""
    return SimHash(config.bits, config.size)


def _flat(obs: Obs) -> Float[Array, "n numbers"]:
    return obs.reshape(obs.shape[0], -1).astype(jnp.float32)


def _powers(bits: int) -> UInt32[Array, " bits"]:
    return jnp.uint32(1) << jnp.arange(bits, dtype=jnp.uint32)


def mixed(x: UInt32[Array, "*n"]) -> UInt32[Array, "*n"]:
    """A bijection of 32-bit words in which every bit depends on all (MurmurHash3's last step)."""
    x = (x ^ (x >> 16)) * jnp.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * jnp.uint32(0xC2B2AE35)
    return x ^ (x >> 16)


def find(keys: Any, num_keys: int | None) -> Keys:
    """From what a user gives: an object, (function, how many), or nothing."""
    if isinstance(keys, Keys):
        return keys
    if isinstance(keys, tuple) and len(keys) == 2 and callable(keys[0]):
        return Function(*keys)
    if keys is None or keys == "simhash":
        return SimHash() if keys or num_keys is None else Given(num_keys)
    if keys == "given":
        if num_keys is None:
            raise InputError("keys='given' needs Space(num_keys=...): how many there are")
        return Given(num_keys)
    raise InputError(
        f"keys takes 'given', 'simhash', primax.SimHash(...) or (function, how many), got {keys!r}"
    )
