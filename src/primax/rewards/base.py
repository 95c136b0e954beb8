"""The interface of a reward: a few pure functions over its own state.

A reward sees every step as it happens (`observe`), is frozen at a window's boundary (`refresh`),
trains its own networks on minibatches (`learn`) and says what sampled transitions are worth
(`score`). Scoring never learns; where all that scores is frozen at the boundary, as PRIME's is, the
reward is a fixed function of the transition within a window.
"""

import abc
import math
from typing import Any, ClassVar, Generic, TypeVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree, Shaped

from primax.config.schema import NetConfig
from primax.errors import InputError
from primax.nn import nets
from primax.nn.encoders import Encoder, Planes
from primax.rewards.transition import Batch, Metrics, Obs, Recent, Step

State = TypeVar("State")


class Spec(eqx.Module):
    """What a reward may know of its world."""

    shape: tuple[int, ...] = eqx.field(static=True)
    """Of an observation: channels, rows and columns where it is binary planes."""
    num_actions: int = eqx.field(static=True)
    """Actions are whole numbers below this."""
    num_keys: int = eqx.field(static=True)
    """How many different count keys there are: states that are told apart, times actions."""
    horizon: int = eqx.field(static=True)
    """Steps after which an episode is cut."""
    net: NetConfig = eqx.field(static=True)
    """The trunk of every network."""
    gamma: float = eqx.field(static=True)
    """The discount under which the reward is valued."""
    recent: int = eqx.field(static=True)
    """How many rows a refresh sees."""
    channels: tuple[str, ...] = eqx.field(static=True, default=())
    """Names of the observation's planes."""
    kind: str = eqx.field(static=True, default="planes")
    """What an observation is: binary `planes`, an `image` of bytes, or a `vector`."""
    encoder: Encoder = eqx.field(static=True, default=Planes())
    """How networks see it."""
    has_cells: bool = eqx.field(static=True, default=True)
    """Whether a key is a cell of the grid and a level: it can be drawn, and has neighbours."""

    @property
    def num_pixels(self) -> int:
        """Numbers in an observation."""
        return math.prod(self.shape)

    def see(self, obs: Obs) -> Shaped[Array, "n ..."]:
        """Observations as the first layer of every network wants them; computed once for all."""
        return self.encoder.see(obs)

    def trunk(
        self, key: PRNGKeyArray, net: NetConfig, *beside: tuple[int, int]
    ) -> tuple[Any, list[nets.Linear]]:
        """A fresh network from what is seen to an embedding, and layers beside it."""
        return self.encoder.build(key, self.shape, net, *beside)

    def network(self, key: PRNGKeyArray, outputs: int) -> nets.Net:
        """A fresh trunk with an output layer."""
        trunk, (head,) = self.trunk(key, self.net, (self.net.embedding, outputs))
        return nets.Net(trunk, head)

    def coordinates(
        self, key: Int[Array, "*n"]
    ) -> tuple[Int[Array, "*n"], Int[Array, "*n"], Int[Array, "*n"]]:
        """Row, column and level (what else the key tells apart) of count keys."""
        cols = self.shape[2]
        cell, level = jnp.divmod(key // self.num_actions, self.levels)
        return cell // cols, cell % cols, level

    @property
    def levels(self) -> int:
        """How many keys of one action a cell has."""
        _, rows, cols = self.shape
        return self.num_keys // (self.num_actions * rows * cols)

    def need_planes(self, why: str) -> None:
        """Refuses observations that are not binary planes."""
        if self.kind != "planes":
            raise InputError(f"{why} needs binary planes: this world shows a {self.kind}")

    def beside(self, obs: Obs, numbers: Float[Array, "*n k"]) -> Float[Array, "..."]:
        """Observations with more numbers: planes or channels that are the same all over, or entries."""
        if self.kind == "vector":
            return jnp.concatenate([obs, numbers], axis=-1)
        if self.kind == "image":
            obs, numbers = obs.astype(jnp.float32) / 255.0, numbers[..., None, None, :]
            shape = (*obs.shape[:-1], numbers.shape[-1])
            return jnp.concatenate([obs, jnp.broadcast_to(numbers, shape)], axis=-1)
        planes = numbers[..., None, None]
        planes = jnp.broadcast_to(planes, (*planes.shape[:-2], *obs.shape[-2:]))
        return jnp.concatenate([obs.astype(jnp.float32), planes], axis=-3)

    def shape_beside(self, num: int) -> tuple[int, ...]:
        """The shape `beside` gives one observation."""
        at = 0 if self.kind in ("planes", "vector") else 2
        return (*self.shape[:at], self.shape[at] + num, *self.shape[at + 1 :])

    def no_rows(self) -> "Recent":
        """A snapshot in which nothing was ever written."""
        num = self.recent
        kind = jnp.float32 if self.kind == "vector" else jnp.uint8
        obs = jnp.zeros((num, *self.shape), kind)
        whole, number, never = (jnp.zeros(num, kind) for kind in (jnp.int32, jnp.float32, bool))
        rows = Batch(obs, whole, number, obs, never, never, number, whole, whole, (), (), whole)
        return Recent(rows, never, never)


class Reward(eqx.Module, Generic[State]):
    """Abstract; a concrete reward is one file."""

    spec: eqx.AbstractVar[Spec]
    only_counts: ClassVar[bool] = False
    """Whether `observe` counts the step's key and does nothing else."""
    uses_keys: ClassVar[bool] = True
    """Whether it reads the keys of states."""
    needs_horizon: ClassVar[bool] = False
    """Whether it must know how long episodes are at most."""

    @abc.abstractmethod
    def init(self, key: PRNGKeyArray) -> State:
        """The state before the first step."""

    @abc.abstractmethod
    def score(self, state: State, batch: Batch) -> Float[Array, " batch"]:
        """What each transition is worth; pure, never learns."""

    def begin(self, state: State, obs: Obs, key: PRNGKeyArray) -> tuple[State, PyTree]:
        """An episode starts with `obs`; the memo is stored with that observation."""
        return state, ()

    def observe(self, state: State, step: Step, key: PRNGKeyArray) -> tuple[State, PyTree]:
        """One step was taken; the memo is stored with the observation it led to."""
        return state, ()

    def view(self, obs: Obs, memo: PyTree) -> Any:
        """What the critics see of an observation."""
        return obs

    @property
    def view_shape(self) -> tuple[int, ...]:
        """The shape of a view."""
        return self.spec.shape

    def refresh(self, state: State, recent: Recent, key: PRNGKeyArray) -> tuple[State, Metrics]:
        """A window begins: freeze what scores, and say what there is to say of it."""
        return state, {}

    @property
    def begins(self) -> bool:
        """Whether `begin` does anything."""
        return type(self).begin is not Reward.begin

    @property
    def reads_memo(self) -> bool:
        """Whether `score` and `learn` need what `begin` and `observe` keep with observations."""
        return self.begins

    @property
    def reads_next_memo(self) -> bool:
        """Whether `score` and `learn` also need what is kept with the observation arrived at."""
        return False

    @property
    def pays_once(self) -> bool:
        """Whether a step's reward is settled when it is taken, and kept with `next_memo`."""
        return False

    @property
    def observes(self) -> bool:
        """Whether `observe` does anything."""
        return type(self).observe is not Reward.observe

    def stream(self, state: State) -> PyTree:
        """The part of the state that belongs to one environment; all else is shared by all."""
        return ()

    def with_stream(self, state: State, stream: PyTree) -> State:
        """The state with another environment's part."""
        return state

    def count(self, state: State, key: Int[Array, " n"], is_lived: Bool[Array, " n"]) -> State:
        """Many steps at once, where a step is counted and nothing else (`only_counts`)."""
        return state

    def forget(self, state: State) -> State:
        """Nothing was ever counted."""
        return state

    def maps(self, state: State, recent: Recent) -> dict[str, Float[Array, "rows cols"]]:
        """Pictures of the reward over the grid, drawn after every refresh."""
        return {}

    def learn(self, state: State, batch: Batch, key: PRNGKeyArray) -> tuple[State, Metrics]:
        """One training step of the reward's own networks, after scoring."""
        return state, {}
