"""What a reward sees of experience: one step as it happens, a minibatch, the newest rows."""

import equinox as eqx
from jaxtyping import Array, Bool, Float, Int, PyTree, Shaped

Metrics = dict[str, Float[Array, ""]]

Obs = Shaped[Array, "..."]
"""Observations: binary planes (channels first), images of bytes (channels last), or vectors."""


class Step(eqx.Module):
    """One environment step, as it happens; or one of each of many environments."""

    obs: Obs
    action: Int[Array, "*n"]
    next_obs: Obs
    """What the step led to, in an episode's last step too."""
    key: Int[Array, "*n"]
    """The count key: the state's, times actions, plus the action."""
    task: Float[Array, "*n"]
    """The world's own signal."""


class Batch(eqx.Module):
    """Transitions as the critics and the reward see them."""

    obs: Obs
    action: Int[Array, "*n"]
    task: Float[Array, "*n"]
    """The world's own signal."""
    next_obs: Obs
    terminated: Bool[Array, "*n"]
    """Whether the world ended after this row."""
    truncated: Bool[Array, "*n"]
    """Whether the time limit came after this row."""
    weight: Float[Array, "*n"]
    """One, or zero where the row teaches nothing."""
    key: Int[Array, "*n"]
    """The count key: the state's, times actions, plus the action."""
    next_key: Int[Array, "*n"]
    """The key of the state that the step led to, without an action."""
    memo: PyTree
    """What the reward keeps with `obs`."""
    next_memo: PyTree
    """What it keeps with `next_obs`."""
    number: Int[Array, "*n"] | None = None
    """Which step of the run it was, counted from its beginning; None where nobody knows."""

    def is_end(self, truncation: str) -> Bool[Array, "*n"]:
        """After which rows nothing follows: where the world ended, and for `end` at the time limit."""
        return self.terminated | self.truncated if truncation == "end" else self.terminated


class Recent(eqx.Module):
    """The newest rows, oldest first."""

    rows: Batch
    """The transitions themselves."""
    is_valid: Bool[Array, " rows"]
    """Which of them were ever written."""
    is_last: Bool[Array, " rows"]
    """After which of them an episode was over."""
    policy: Float[Array, "rows actions"] | None = None
    """What the agent would do now in the states they led to, where that is known."""

    @property
    def is_lived(self) -> Bool[Array, " rows"]:
        """Which of them were written and are steps of a world that had not ended."""
        return self.is_valid & (self.rows.weight > 0)
