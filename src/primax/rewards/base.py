"""The interface of a reward: a few pure functions over its own state.

A reward sees every step as it happens (`observe`), is frozen at a window's boundary (`refresh`),
trains its own networks on minibatches (`learn`) and says what sampled transitions are worth
(`score`). Scoring never learns; where all that scores is frozen at the boundary, as PRIME's is, the
reward is a fixed function of the transition within a window.
"""

import abc
import math
from typing import Any, Generic, TypeVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree, UInt8

from primax.config.schema import NetConfig
from primax.rewards.transition import Batch, Recent, Step

State = TypeVar("State")
Metrics = dict[str, Float[Array, ""]]


class Spec(eqx.Module):
    """What a reward may know of its world."""

    planes: tuple[int, int, int] = eqx.field(static=True)
    """Channels, rows and columns of an observation."""
    num_actions: int = eqx.field(static=True)
    num_keys: int = eqx.field(static=True)
    """How many different count keys there are: cells times levels times actions."""
    horizon: int = eqx.field(static=True)
    net: NetConfig = eqx.field(static=True)
    """The trunk of every network."""
    gamma: float = eqx.field(static=True)
    """The critics' discount."""
    recent: int = eqx.field(static=True)
    """How many rows a refresh sees."""
    channels: tuple[str, ...] = eqx.field(static=True, default=())
    """Names of the observation's planes."""

    @property
    def num_pixels(self) -> int:
        """Numbers in an observation."""
        return math.prod(self.planes)

    def coordinates(
        self, key: Int[Array, "*n"]
    ) -> tuple[Int[Array, "*n"], Int[Array, "*n"], Int[Array, "*n"]]:
        """Row, column and level (what else the key tells apart) of count keys."""
        cols = self.planes[2]
        cell, level = jnp.divmod(key // self.num_actions, self.levels)
        return cell // cols, cell % cols, level

    @property
    def levels(self) -> int:
        """How many keys of one action a cell has."""
        _, rows, cols = self.planes
        return self.num_keys // (self.num_actions * rows * cols)

    def no_rows(self) -> "Recent":
        """A snapshot in which nothing was ever written."""
        num = self.recent
        obs = jnp.zeros((num, *self.planes), jnp.uint8)
        whole, number, never = (jnp.zeros(num, kind) for kind in (jnp.int32, jnp.float32, bool))
        rows = Batch(obs, whole, number, obs, never, never, number, whole, whole, (), ())
        return Recent(rows, never, never, jnp.zeros((num, self.num_actions), jnp.float32))


class Reward(eqx.Module, Generic[State]):
    """Abstract; a concrete reward is one file."""

    spec: eqx.AbstractVar[Spec]

    @abc.abstractmethod
    def init(self, key: PRNGKeyArray) -> State:
        """The state before the first step."""

    @abc.abstractmethod
    def score(self, state: State, batch: Batch) -> Float[Array, " batch"]:
        """What each transition is worth; pure, never learns."""

    def begin(
        self, state: State, obs: UInt8[Array, "c rows cols"], key: PRNGKeyArray
    ) -> tuple[State, PyTree]:
        """An episode starts with `obs`; the memo is stored with that observation."""
        return state, ()

    def observe(self, state: State, step: Step, key: PRNGKeyArray) -> tuple[State, PyTree]:
        """One step was taken; the memo is stored with the observation it led to."""
        return state, ()

    def view(self, obs: UInt8[Array, "*n c rows cols"], memo: PyTree) -> Any:
        """What the critics see of an observation."""
        return obs

    @property
    def view_planes(self) -> tuple[int, int, int]:
        """The shape of a view."""
        return self.spec.planes

    def refresh(self, state: State, recent: Recent, key: PRNGKeyArray) -> tuple[State, Metrics]:
        """A window begins: freeze what scores, and say what there is to say of it."""
        return state, {}

    def maps(self, state: State, recent: Recent) -> dict[str, Float[Array, "rows cols"]]:
        """Pictures of the reward over the grid, drawn after every refresh."""
        return {}

    def learn(self, state: State, batch: Batch, key: PRNGKeyArray) -> tuple[State, Metrics]:
        """One training step of the reward's own networks, after scoring."""
        return state, {}
