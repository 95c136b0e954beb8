"""Rewards without a mind of their own: the task signal, and nothing at all."""

from dataclasses import dataclass

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from primax.rewards.base import Reward, Spec
from primax.rewards.transition import Batch


@dataclass(frozen=True)
class NoOptions:
    """Nothing to choose."""


class Task(Reward[tuple]):
    """The world's own signal: with it, the learner is the paper's Extrinsic-DQN."""

    uses_keys = False

    spec: Spec
    config: NoOptions = eqx.field(static=True)

    def init(self, key: PRNGKeyArray) -> tuple:
        return ()

    def score(self, state: tuple, batch: Batch) -> Float[Array, " batch"]:
        return batch.task


class Nothing(Reward[tuple]):
    """Zero: what the learner does when nothing is worth anything."""

    uses_keys = False

    spec: Spec
    config: NoOptions = eqx.field(static=True)

    def init(self, key: PRNGKeyArray) -> tuple:
        return ()

    def score(self, state: tuple, batch: Batch) -> Float[Array, " batch"]:
        return jnp.zeros_like(batch.task)
