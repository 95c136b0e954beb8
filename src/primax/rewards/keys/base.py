"""The interface of keys: which observations count as the same state.

A key is a whole number below `num`. It is given with every transition, or a function of the
observation says it, or it is a hash, or it is learnt. Tables are as long as there are keys, so a
bound is all that they need: never a list of all states.
"""

import abc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray, Shaped

from primax.errors import InputError, check_range
from primax.nn.encoders import named
from primax.rewards.base import Spec
from primax.rewards.transition import Batch, Metrics

MOST = 10_000_000
"""Keys of states there may be; tables have one entry for each and each action."""

Obs = Shaped[Array, "n ..."]


@dataclass(frozen=True)
class Keys(abc.ABC):
    """Abstract."""

    @property
    @abc.abstractmethod
    def num(self) -> int:
        """How many there are."""

    @property
    def learns(self) -> bool:
        """Whether they change with what is learnt; then observations come as networks see them."""
        return False

    def fitted(self, spec: Spec) -> "Keys":
        """For a world; the number of its keys is not known before."""
        return self

    def init(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Any:
        """What they depend on."""
        return ()

    def of(self, state: Any, obs: Obs) -> Int[Array, " n"]:
        """The keys of observations."""
        raise InputError("keys are given here: a transition needs key and next_key")

    def settle(self, state: Any, obs: Obs, is_lived: Bool[Array, " n"], kind: str) -> Any:
        """The first window begins, after these observations: keys that do not learn stay so."""
        return state

    def learn(self, state: Any, batch: Batch, key: PRNGKeyArray) -> tuple[Any, Metrics]:
        """One training step; keys stay as they are until they are renewed."""
        return state, {}

    def renewals(self, windows: int) -> list[int]:
        """After how many windows keys are renewed, of those before so many."""
        return []

    def renew(self, state: Any, obs: Obs, next_obs: Obs, is_lived: Bool[Array, " n"]) -> Any:
        """Keys by all that was learnt, and by these rows; whoever counts counts everything again."""
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
