"""Counts: one over the root of how often the state and action were met."""

from dataclasses import dataclass
from typing import Annotated

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from primax.config.fields import Choice, Range, check
from primax.config.symbols import Symbol
from primax.errors import check_range
from primax.rewards.base import Reward, Spec
from primax.rewards.transition import Batch, Step

MOST_KEYS = 20_000_000
"""Entries of the table, four bytes each."""


@dataclass(frozen=True)
class CountConfig:
    """Options of the count bonus."""

    reward_scale: Annotated[float, Range(0, 1e9), Symbol("β")] = 1.0
    """The reward of what was met once."""
    of: Annotated[str, Choice(("state_action", "state"))] = "state_action"
    """What is counted: `state_action`, or `state` alone."""

    def __post_init__(self):
        check(self, "reward.")


class Count(Reward[Int[Array, " keys"]]):
    """β/√N, read off the table as it is when a row is sampled."""

    only_counts = True

    spec: Spec
    config: CountConfig = eqx.field(static=True)

    def __init__(self, spec: Spec, config: CountConfig):
        check_range("the world's count keys", spec.num_keys, 1, MOST_KEYS)
        self.spec, self.config = spec, config

    def init(self, key: PRNGKeyArray) -> Int[Array, " keys"]:
        num = self.spec.num_keys // (1 if self._counts_actions else self.spec.num_actions)
        return jnp.zeros(num, jnp.int32)

    @property
    def _counts_actions(self) -> bool:
        return self.config.of == "state_action"

    def _place(self, key: Int[Array, "*n"]) -> Int[Array, "*n"]:
        return key if self._counts_actions else key // self.spec.num_actions

    def observe(
        self, state: Int[Array, " keys"], step: Step, key: PRNGKeyArray
    ) -> tuple[Int[Array, " keys"], tuple]:
        return state.at[self._place(step.key)].add(1), ()

    def count(
        self, state: Int[Array, " keys"], key: Int[Array, " n"], is_lived: Bool[Array, " n"]
    ) -> Int[Array, " keys"]:
        return state.at[self._place(key)].add(is_lived.astype(jnp.int32))

    def forget(self, state: Int[Array, " keys"]) -> Int[Array, " keys"]:
        return jnp.zeros_like(state)

    def score(self, state: Int[Array, " keys"], batch: Batch) -> Float[Array, " batch"]:
        """A row that can be sampled has been counted: N is at least one."""
        num = jnp.maximum(state[self._place(batch.key)], 1)
        return self.config.reward_scale * num.astype(jnp.float32) ** -0.5
