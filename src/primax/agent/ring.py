"""The ring of experience: every observation stored once, binary planes in bits.

Row t reads slot t as what was seen before its action and slot t + 1 as what was seen after, which is
never the next episode's first. Where episodes are all of one length, `horizon` rows have
`horizon + 1` slots. Where they end when they like, an idle row follows an episode's last, and
its slot is the next episode's first observation; one slot more closes the ring.
"""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree, Shaped, UInt8

from primax.rewards import observations
from primax.rewards.transition import Batch


class Slot(eqx.Module):
    """What is kept of a moment."""

    bits: Shaped[Array, "..."]
    """The observation: binary planes eight cells a byte, all else as it came."""
    memo: PyTree
    """What the reward keeps with an observation."""


class Row(eqx.Module):
    """What is kept of a step."""

    action: UInt8[Array, "*n"]
    task: Float[Array, "*n"]
    key: Int[Array, "*n"]
    """The count key of state and action."""
    next_key: Int[Array, "*n"]
    """The key of the state it led to."""
    terminated: Bool[Array, "*n"]
    idle: Bool[Array, "*n"]
    """The world had ended before this step: the row teaches nothing."""


class Ring(eqx.Module):
    """The newest rows. How many were ever written is kept by whoever owns the ring."""

    slots: Slot
    rows: Row
    horizon: int | None = eqx.field(static=True)
    """Steps of every episode; None where they end when they like."""

    @property
    def capacity(self) -> int:
        return self.rows.action.shape[0]

    @property
    def stretch(self) -> int:
        """Rows after which there is a slot more than rows."""
        return self.capacity if self.horizon is None else self.horizon


def pack(obs: Shaped[Array, "..."], kind: str = "planes") -> Shaped[Array, "..."]:
    """One observation as it is kept."""
    return observations.packed(obs[None], kind)[0]


def empty(capacity: int, horizon: int | None, slot: Slot, row: Row) -> Ring:
    """A ring of zeros shaped after one slot and one row."""

    def zeros(count: int, like: Any) -> Any:
        return jax.tree.map(lambda x: jnp.zeros((count, *x.shape), x.dtype), like)

    stretch = horizon or capacity
    return Ring(zeros(capacity // stretch * (stretch + 1), slot), zeros(capacity, row), horizon)


def open_slot(ring: Ring, written: Int[Array, ""], slot: Slot) -> Ring:
    """Writes the observation that the next row will start from."""
    first = jax.tree.map(lambda x: x[None], slot)
    return Ring(_put(ring.slots, first, _slot(ring, written)), ring.rows, ring.horizon)


def write(ring: Ring, written: Int[Array, ""], slots: Slot, rows: Row) -> Ring:
    """Adds consecutive rows of one episode, and the observations they led to."""
    slots = _put(ring.slots, slots, _slot(ring, written) + 1)
    rows = _put(ring.rows, rows, written % ring.capacity)
    # A compiler that folds this write into the read that follows must copy the ring to keep both.
    return Ring(*jax.lax.optimization_barrier((slots, rows)), ring.horizon)


def _slot(ring: Ring, row: Int[Array, "*n"]) -> Int[Array, "*n"]:
    """Where the observation before a row lies."""
    at = row % ring.capacity
    return at // ring.stretch * (ring.stretch + 1) + at % ring.stretch


def _put(stored: Any, new: Any, at: Int[Array, ""]) -> Any:
    """Overwrites from index `at` on; in place, since one index serves every seed."""

    def put(x, y):
        return jax.lax.dynamic_update_slice_in_dim(x, y.astype(x.dtype), at, axis=0)

    return jax.tree.map(put, stored, new)


def open_rows(ring: Ring, written: Int[Array, ""]) -> Int[Array, ""]:
    """How many rows can be read: when full, the row under the write head is half overwritten."""
    return jnp.minimum(written, ring.capacity - 1)


def read(
    ring: Ring,
    written: Int[Array, ""],
    age: Int[Array, " n"],
    shape: tuple[int, ...],
    kind: str = "planes",
) -> Batch:
    """The rows written `age` rows ago, the newest being 1; observations are of a shape and kind."""
    at, slot = (written - age) % ring.capacity, _slot(ring, written - age)
    row, before, after = _take(ring.rows, at), _take(ring.slots, slot), _take(ring.slots, slot + 1)
    return Batch(
        obs=observations.unpacked(before.bits, kind, shape),
        action=row.action.astype(jnp.int32),
        task=row.task,
        next_obs=observations.unpacked(after.bits, kind, shape),
        terminated=row.terminated,
        truncated=_truncated(ring, written, age),
        weight=1.0 - row.idle.astype(jnp.float32),
        key=row.key,
        next_key=row.next_key,
        memo=before.memo,
        next_memo=after.memo,
        number=written - age,
    )


def _truncated(ring: Ring, written: Int[Array, ""], age: Int[Array, " n"]) -> Bool[Array, " n"]:
    """After which rows a time limit came; of the newest row it is not known where limits vary."""
    if ring.horizon is not None:
        return (written - age) % ring.horizon == ring.horizon - 1
    rows = ring.rows
    at, after = (written - age) % ring.capacity, (written - age + 1) % ring.capacity
    return rows.idle[after] & (age > 1) & ~rows.terminated[at] & ~rows.idle[at]


def lived(
    ring: Ring, written: Int[Array, ""], age: Int[Array, " n"]
) -> tuple[Int[Array, " n"], Bool[Array, " n"]]:
    """Count keys of the rows written `age` rows ago, and whether those are steps that were lived."""
    rows = ring.rows
    at = (written - age) % ring.capacity
    return rows.key[at], (age <= written) & ~rows.idle[at]


def rename(
    ring: Ring, written: Int[Array, ""], key: Int[Array, " n"], next_key: Int[Array, " n"]
) -> Ring:
    """Gives the newest rows, oldest first, other keys."""
    at = (written - jnp.arange(key.shape[0], 0, -1)) % ring.capacity
    rows = ring.rows
    kept = replace(rows, key=rows.key.at[at].set(key), next_key=rows.next_key.at[at].set(next_key))
    return Ring(ring.slots, kept, ring.horizon)


def draw_episodes(
    ring: Ring, written: Int[Array, ""], num: int, key: PRNGKeyArray
) -> tuple[Int[Array, " n"], Bool[Array, " n"]]:
    """Ages of `num` rows of whole episodes, each drawn at most once, and which of them there are.

    Episodes are in the order of time and those that are not there come first, as in `newest`.
    """
    horizon = ring.stretch
    under_way = written % horizon
    whole = (open_rows(ring, written) - under_way) // horizon
    back = jnp.arange(ring.capacity // horizon)
    lots = jnp.where(back < whole, jax.random.uniform(key, back.shape), -1.0)
    lot, drawn = jax.lax.top_k(lots, num // horizon)
    drawn = jnp.sort(jnp.where(lot >= 0, drawn, len(back)))[::-1]
    age = under_way + drawn[:, None] * horizon + jnp.arange(horizon, 0, -1)[None]
    return age.reshape(-1), jnp.repeat(drawn < len(back), horizon)


def _take(stored: Any, index: Int[Array, " n"]) -> Any:
    return jax.tree.map(lambda x: x[index], stored)
