"""The interface of a world: pure functions of one stream, to be vmapped over a batch."""

import abc
from typing import Any, ClassVar, Generic, TypeVar, get_type_hints

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped, UInt32

from primax.errors import InputError
from primax.worlds.grid import ACTIONS


class WorldState(eqx.Module):
    """What the state of every grid world has."""

    agent: eqx.AbstractVar[Int[Array, ""]]
    """The agent's flat cell."""
    time: eqx.AbstractVar[Int[Array, ""]]
    """Steps since the reset."""


State = TypeVar("State", bound=eqx.Module)
Noise = TypeVar("Noise", bound=eqx.Module)


class World(eqx.Module, Generic[State, Noise]):
    """A world whose step is a function of (state, action, noise) alone.

    What is random in a step comes in as `noise`, drawn for many steps at once: that is fast, and
    it lets a test write down a transition in full. A world never resets by itself: whoever runs
    it resets at an episode's start, so the last observation is never lost.
    """

    config: eqx.AbstractVar[Any]
    """The options it was built with, a frozen dataclass."""
    horizon: eqx.AbstractVar[int]
    """Steps after which an episode is truncated."""
    num_keys: eqx.AbstractVar[Any]
    """How many different state keys there are; None where the world tells no states apart."""
    channels: eqx.AbstractVar[tuple[str, ...]]
    """Names of the observation's planes, where it has any."""
    has_keys: ClassVar[bool] = True
    """Whether it tells states apart by a key of its own; else `num_keys` is None."""
    can_end: ClassVar[bool] = False
    """Whether `terminated` is ever true; what is learnt in such a world stops at its end."""
    score: ClassVar[str] = "score an episode"
    """What the sum of an episode's task signals counts."""
    steps: ClassVar[int] = 200_000
    """Environment steps of a whole run, unless others are asked for."""

    @classmethod
    def options(cls) -> Any:
        """The dataclass of its options: the type its `config` is declared with."""
        return get_type_hints(cls)["config"]

    @classmethod
    def of(cls, options: Any) -> "World[State, Noise]":
        """The world with these options; a concrete world is built from them alone."""
        build: Any = cls
        return build(options)

    @property
    @abc.abstractmethod
    def actions(self) -> tuple[str, ...]:
        """The names of the actions."""

    @property
    @abc.abstractmethod
    def kind(self) -> str:
        """What an observation is: binary `planes` (channels first), an `image` of bytes, a `vector`."""

    @property
    @abc.abstractmethod
    def obs_shape(self) -> tuple[int, ...]:
        """The observation's shape."""

    @abc.abstractmethod
    def reset(self, key: PRNGKeyArray) -> State:
        """The first state of an episode."""

    @abc.abstractmethod
    def noise(self, key: PRNGKeyArray, num_steps: int) -> Noise:
        """All that is random in `num_steps` steps; every leaf leads with that axis."""

    @abc.abstractmethod
    def step(self, state: State, action: Int[Array, ""], noise: Noise) -> State:
        """The state after one action."""

    @abc.abstractmethod
    def observe(self, state: State) -> Shaped[Array, "..."]:
        """What the agent sees."""

    @abc.abstractmethod
    def state_key(self, state: State) -> Int[Array, ""]:
        """The controllable part of the state as a number in [0, num_keys)."""

    @abc.abstractmethod
    def task(self, state: State) -> Float[Array, ""]:
        """The task signal of the step that led here; never part of the observation."""

    @abc.abstractmethod
    def truncated(self, state: State) -> Bool[Array, ""]:
        """Whether the episode's time is up."""

    def terminated(self, state: State) -> Bool[Array, ""]:
        """Whether the world ended here; the grid worlds of the paper never do."""
        return jnp.zeros((), bool)

    def noise_shown(self, state: State) -> Bool[Array, ""] | None:
        """Whether the noise that was put beside a world is seen; None where there is none."""
        return None

    def count_key(self, state: State, action: Int[Array, ""]) -> Int[Array, ""]:
        """The key the visit counts use: the state's key and the action."""
        return self.state_key(state) * self.num_actions + action

    def for_seed(self, seed: Int[Array, ""] | int) -> Any:
        """This world as the run of one seed meets it; most worlds are the same for all."""
        return self

    @property
    def num_actions(self) -> int:
        """Actions are whole numbers below this."""
        return len(self.actions)


GridState = TypeVar("GridState", bound=WorldState)


class GridWorld(World[GridState, Noise]):
    """A world on a grid: the agent stands on a cell, and a key is a cell and a level."""

    channels: eqx.AbstractVar[tuple[str, ...]]
    """Names of the observation's planes."""
    shape: eqx.AbstractVar[tuple[int, int]]
    """Rows and columns."""
    num_keys: eqx.AbstractVar[int]
    """How many different state keys there are: cell * levels + level is one."""
    start: eqx.AbstractVar[int | None]
    """The agent's first cell, flat; None where it is drawn."""
    walls: eqx.AbstractVar[Bool[Array, "rows cols"]]
    """Where no one can go."""
    moves: eqx.AbstractVar[Int[Array, "cells actions"]]
    """The cell each action leads to."""
    takes_targets: ClassVar[bool] = True
    """Whether a target is gone once the agent has it, so that those left can be counted."""

    @abc.abstractmethod
    def targets(self, state: GridState) -> tuple[Int[Array, " n"], Bool[Array, " n"]]:
        """The cells a chaser would go for, and which of them still count."""

    def truncated(self, state: GridState) -> Bool[Array, ""]:
        """Whether the episode's time is up."""
        return state.time >= self.horizon

    @property
    def actions(self) -> tuple[str, ...]:
        """Moves to the four sides, and none."""
        return ACTIONS

    @property
    def kind(self) -> str:
        """Binary planes, channels first."""
        return "planes"

    @property
    def obs_shape(self) -> tuple[int, ...]:
        """Channels, rows and columns."""
        return (len(self.channels), *self.shape)


def on_grid(world: World, what: str) -> GridWorld:
    """The same world, where it is on a grid; else one line on what needs one."""
    if not isinstance(world, GridWorld):
        raise InputError(f"{what} needs a world on a grid: {type(world).__name__} is none")
    return world


def fives(words: UInt32[Array, " words"], num: int) -> Int[Array, " num"]:
    """`num` numbers in 0..4, six from each word: its digits to the base five.

    A word costs as much to draw as a whole butterfly step; 5^6 / 2^32 leaves a bias under 4e-6.
    """
    digits = [words // jnp.uint32(5**place) % 5 for place in range(6)]
    return jnp.stack(digits, axis=-1).reshape(-1)[:num].astype(jnp.int32)


def gather(table: Shaped[Array, "n *rest"], *index: Int[Array, "..."]) -> Shaped[Array, "..."]:
    """`table[index]` without the bounds check, for indices known to lie inside."""
    return table.at[index].get(mode="promise_in_bounds")
