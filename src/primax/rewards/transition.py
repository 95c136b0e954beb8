"""What a reward sees of experience: one step as it happens, a minibatch, the newest rows."""

import equinox as eqx
from jaxtyping import Array, Bool, Float, Int, PyTree, UInt8


class Step(eqx.Module):
    """One environment step, as it happens."""

    obs: UInt8[Array, "c rows cols"]
    action: Int[Array, ""]
    next_obs: UInt8[Array, "c rows cols"]
    key: Int[Array, ""]
    task: Float[Array, ""]


class Batch(eqx.Module):
    """Transitions as the critics and the reward see them."""

    obs: UInt8[Array, "*n c rows cols"]
    action: Int[Array, "*n"]
    task: Float[Array, "*n"]
    next_obs: UInt8[Array, "*n c rows cols"]
    terminated: Bool[Array, "*n"]
    truncated: Bool[Array, "*n"]
    """Whether the time limit came after this row."""
    weight: Float[Array, "*n"]
    """One, or zero where the row teaches nothing."""
    key: Int[Array, "*n"]
    next_key: Int[Array, "*n"]
    memo: PyTree
    next_memo: PyTree

    def is_end(self, truncation: str) -> Bool[Array, "*n"]:
        """After which rows nothing follows: where the world ended, and for `end` at the time limit."""
        return self.terminated | self.truncated if truncation == "end" else self.terminated


class Recent(eqx.Module):
    """The newest rows, oldest first."""

    rows: Batch
    is_valid: Bool[Array, " rows"]
    """Which of them were ever written."""
    is_last: Bool[Array, " rows"]
    """After which of them an episode was over."""
    policy: Float[Array, "rows actions"]
    """What the agent would do now in the states they led to."""

    @property
    def is_lived(self) -> Bool[Array, " rows"]:
        """Which of them were written and are steps of a world that had not ended."""
        return self.is_valid & (self.rows.weight > 0)
