"""The rows a bonus keeps: [ticks, envs], the newest overwriting the oldest."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree, Shaped

from primax.rewards.observations import scaled, unpacked
from primax.rewards.parts import normaliser
from primax.rewards.transition import Batch


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


def batch(
    rows: Rows,
    moments: normaliser.Running | None,
    kind: str,
    shape: tuple[int, ...],
    number: Int[Array, "*n"] | None = None,
) -> Batch:
    """Rows as rewards see them; `number` says which steps they were, where that is asked."""
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
        number=number,
    )


def put(kept: Rows, rows: Rows, tick: Int[Array, ""]) -> Rows:
    """Overwrites one tick."""

    def one(x: Any, y: Any) -> Any:
        return jax.lax.dynamic_update_index_in_dim(x, y.astype(x.dtype), tick, axis=0)

    return jax.tree.map(one, kept, rows)
