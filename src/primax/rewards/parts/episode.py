"""Which observations an episode has shown, told apart to the last number by hashes of 64 bits."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray, UInt32

from primax.rewards.base import Spec
from primax.rewards.keys.simhash import mixed
from primax.rewards.transition import Obs


class Memory(eqx.Module):
    """The newest different observations of an episode, and how many there were in all."""

    codes: UInt32[Array, "size 2"]
    num: Int[Array, ""]


def empty(size: int) -> Memory:
    """An episode that has shown nothing; it keeps `size` observations."""
    return Memory(jnp.zeros((size, 2), jnp.uint32), jnp.int32(0))


def salt(key: PRNGKeyArray, spec: Spec) -> UInt32[Array, "2 numbers"]:
    """Random bits for every number of an observation, for two hashes that differ."""
    return jax.random.bits(key, (2, spec.num_pixels), "uint32")


def code(salt: UInt32[Array, "2 numbers"], obs: Obs) -> UInt32[Array, "2"]:
    """Two hashes of one observation: each number is mixed with the bits of its place, and all summed."""
    flat = obs.reshape(-1)
    if jnp.issubdtype(flat.dtype, jnp.floating):
        # Zero has two signs, and they are one number.
        flat = jnp.where(flat == 0, 0.0, flat).astype(jnp.float32)
        words = jax.lax.bitcast_convert_type(flat, jnp.uint32)
    else:
        words = flat.astype(jnp.uint32)
    return jnp.sum(mixed(salt ^ words[None]), axis=1, dtype=jnp.uint32)


def met(memory: Memory, code: UInt32[Array, "2"]) -> Bool[Array, ""]:
    """Whether the episode has shown it."""
    is_kept = jnp.arange(memory.codes.shape[0]) < memory.num
    return jnp.any(is_kept & jnp.all(memory.codes == code[None], axis=1))


def added(memory: Memory, code: UInt32[Array, "2"]) -> Memory:
    """With one observation more, unless it is there; where all places are taken the oldest goes."""
    size, is_met = memory.codes.shape[0], met(memory, code)
    is_place = (jnp.arange(size) == memory.num % size) & ~is_met
    codes = jnp.where(is_place[:, None], code[None], memory.codes)
    return Memory(codes, memory.num + ~is_met)
