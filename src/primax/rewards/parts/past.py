"""Errors as they were when they were made, with the state and action they were made on."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, Shaped

from primax.rewards import observations
from primax.rewards.base import Spec
from primax.rewards.transition import Batch, Obs


class Past(eqx.Module):
    """The newest of them; the oldest is overwritten first."""

    obs: Shaped[Array, "room ..."]
    """Binary planes eight cells a byte, all else as it came."""
    action: Int[Array, " room"]
    log_error: Float[Array, " room"]
    at: Int[Array, ""]
    """Where the next is written."""
    num: Int[Array, ""]
    """How many there are."""


def nothing(spec: Spec, room: int) -> Past:
    """No error was ever made."""
    kind = jnp.float32 if spec.kind == "vector" else jnp.uint8
    one = observations.packed(jnp.zeros((1, *spec.shape), kind), spec.kind)
    obs = jnp.zeros((room, *one.shape[1:]), one.dtype)
    return Past(obs, jnp.zeros(room, jnp.int32), jnp.zeros(room), jnp.int32(0), jnp.int32(0))


def remembered(past: Past, batch: Batch, log_error: Float[Array, " batch"], kind: str) -> Past:
    """With the errors of a minibatch; of more than there is room for the last, of weight 0 none."""
    room = past.action.shape[0]
    obs = observations.packed(batch.obs, kind).astype(past.obs.dtype)
    new = jax.tree.map(lambda x: x[-room:], (obs, batch.action, log_error))
    is_lived = batch.weight[-room:] > 0
    nth = jnp.cumsum(is_lived)
    where = jnp.where(is_lived, (past.at + nth - 1) % room, room)  # out of bounds: not written
    old = past.obs, past.action, past.log_error
    kept = jax.tree.map(lambda old, new: old.at[where].set(new, mode="drop"), old, new)
    return Past(*kept, (past.at + nth[-1]) % room, jnp.minimum(past.num + nth[-1], room))


def drawn(
    past: Past, key: PRNGKeyArray, num: int, spec: Spec
) -> tuple[Obs, Int[Array, " num"], Float[Array, " num"]]:
    """So many of them, each as likely as any other: the observation, the action, the log-error."""
    which = jax.random.randint(key, (num,), 0, jnp.maximum(past.num, 1))
    obs = observations.unpacked(past.obs[which], spec.kind, spec.shape)
    return obs, past.action[which], past.log_error[which]
