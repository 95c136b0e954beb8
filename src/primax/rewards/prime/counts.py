"""The count realization of novelty, on the controllable key (row, column, action, n_alive)."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from primax.rewards.base import Spec
from primax.rewards.prime.novelty import Novelty, Where
from primax.rewards.transition import Step

Table = Int[Array, " keys"]


class Counts(Novelty[Table, Table]):
    """x = 1/√(N+1): how often the key was met before the window began."""

    spec: Spec

    @property
    def bound(self) -> float:
        return 1.0

    def init(self, key: PRNGKeyArray) -> Table:
        return jnp.zeros(self.spec.num_keys, jnp.int32)

    def observe(self, live: Table, step: Step) -> Table:
        return live.at[step.key].add(1)

    def count(self, live: Table, key: Int[Array, " n"], is_lived: Bool[Array, " n"]) -> Table:
        return live.at[key].add(is_lived.astype(jnp.int32))

    def forget(self, live: Table) -> Table:
        return jnp.zeros_like(live)

    def freeze(self, live: Table) -> Table:
        return live

    def value(self, frozen: Table, where: Where) -> Float[Array, "*n"]:
        return inverse_root(frozen[where.key])


def inverse_root(count: Int[Array, "*n"]) -> Float[Array, "*n"]:
    """1/√(N+1)."""
    return (count.astype(jnp.float32) + 1.0) ** -0.5
