"""Noise that never ends, beside any world: `noisy:maze`, `noisy:gymnax:DeepSea-bsuite`.

The observation has one more plane of fair coins (an image one more channel of bytes, a vector a few
more numbers). Everything else is the world's own: for one key it begins and goes on as without noise.
"""

import math
from dataclasses import fields
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree, Shaped, UInt32

from primax.errors import check_range
from primax.worlds.base import GridWorld, World
from primax.worlds.grid import STAY
from primax.worlds.suites.base import MOST_ACTIONS

NOISE = "noise"
"""Name of the plane, and of the action that is a switch."""
NUMBERS = 4
"""How many numbers of noise stand beside a vector."""
BITS = {"planes": 1, "image": 8, "vector": 32}
"""Of a random word, what each number of noise takes."""
OWN = 0x6E6F6973
"""The part of a key that noise is drawn from; worlds split keys into far fewer parts."""


class NoisyState(eqx.Module):
    """The world's own state, and the noise shown beside it; all zero where it is silent."""

    inner: PyTree
    shown: Shaped[Array, "..."]
    is_on: Bool[Array, ""]
    time: Int[Array, ""]

    @property
    def agent(self) -> Int[Array, "..."]:
        """The agent's flat cell, where there is a grid."""
        return self.inner.agent


class NoisyNoise(eqx.Module):
    """All that is random in the world's own step, and random words for the noise beside it."""

    inner: PyTree
    words: UInt32[Array, "*steps words"]


class Noisy(World[NoisyState, NoisyNoise]):
    """Noise beside a world without a grid, which knows no way to stay: a switch stops it for a step."""

    beside: ClassVar[type[World]]
    """The world that there is noise beside."""

    config: Any = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    num_keys: Any = eqx.field(static=True)
    channels: tuple[str, ...] = eqx.field(static=True)
    inner: Any

    def __init__(self, options: Any):
        kind = self.beside.options()
        own = {item.name: getattr(options, item.name) for item in fields(kind)}
        self.config, self.inner = options, self.beside.of(kind(**own))
        self.horizon, self.num_keys = self.inner.horizon, self.inner.num_keys
        self.channels = (*self.inner.channels, NOISE) if self.kind == "planes" else ()
        check_range(f"actions of {options.world_name}", self.num_actions, 1, MOST_ACTIONS)

    @property
    def has_switch(self) -> bool:
        """Whether one more action asks for noise."""
        return self.config.noise_when == "switch"

    @property
    def actions(self) -> tuple[str, ...]:
        """The world's own, and where noise has a switch one more."""
        return (*self.inner.actions, *([NOISE] if self.has_switch else []))

    @property
    def kind(self) -> str:
        return self.inner.kind

    @property
    def obs_shape(self) -> tuple[int, ...]:
        shape, at = list(self.inner.obs_shape), self._axis
        shape[at] += self._noise_shape[at]
        return tuple(shape)

    @property
    def _axis(self) -> int:
        """Along which noise is put beside what the world shows."""
        return -1 if self.kind == "image" else 0

    @property
    def _noise_shape(self) -> tuple[int, ...]:
        shape = list(self.inner.obs_shape)
        shape[self._axis] = NUMBERS if self.kind == "vector" else 1
        return tuple(shape)

    def for_seed(self, seed: Int[Array, ""] | int) -> Any:
        return eqx.tree_at(lambda world: world.inner, self, self.inner.for_seed(seed))

    def reset(self, key: PRNGKeyArray) -> NoisyState:
        inner, words = self.inner.reset(key), self._words(key, ())
        return self._state(inner, self._is_on(inner, jnp.bool_(False)), words, jnp.int32(0))

    def noise(self, key: PRNGKeyArray, num_steps: int) -> NoisyNoise:
        return NoisyNoise(self.inner.noise(key, num_steps), self._words(key, (num_steps,)))

    def _words(self, key: PRNGKeyArray, steps: tuple[int, ...]) -> UInt32[Array, "*steps words"]:
        count = math.prod(self._noise_shape) * BITS[self.kind]
        return jax.random.bits(jax.random.fold_in(key, OWN), (*steps, -(-count // 32)), "uint32")

    def step(self, state: NoisyState, action: Int[Array, ""], noise: NoisyNoise) -> NoisyState:
        is_asked = self.has_switch & (action == self.inner.num_actions)
        inner = self._moved(state.inner, action, noise.inner, is_asked)
        return self._state(inner, self._is_on(inner, is_asked), noise.words, state.time + 1)

    def _moved(
        self, inner: Any, action: Int[Array, ""], noise: Any, is_asked: Bool[Array, ""]
    ) -> Any:
        """The world's own state after an action; the switch is none of its own, so it stands still."""
        after = self.inner.step(inner, jnp.where(is_asked, 0, action), noise)
        if not self.has_switch:
            return after
        return jax.tree.map(lambda a, b: jnp.where(is_asked, a, b), inner, after)

    def _is_on(self, inner: Any, is_asked: Bool[Array, ""]) -> Bool[Array, ""]:
        """Whether noise is seen in a state that was, or was not, asked for with the switch."""
        return is_asked if self.has_switch else jnp.bool_(True)

    def _state(
        self, inner: Any, is_on: Bool[Array, ""], words: UInt32[Array, " words"], time: Any
    ) -> NoisyState:
        drawn = numbers(words, self._noise_shape, self.kind)
        return NoisyState(inner, jnp.where(is_on, drawn, jnp.zeros_like(drawn)), is_on, time)

    def observe(self, state: NoisyState) -> Shaped[Array, "..."]:
        """What the world shows, and last the noise."""
        own = self.inner.observe(state.inner)
        return jnp.concatenate([own, state.shown.astype(own.dtype)], axis=self._axis)

    def noise_shown(self, state: NoisyState) -> Bool[Array, ""]:
        return state.is_on

    def state_key(self, state: NoisyState) -> Int[Array, ""]:
        """The world's own: noise is no part of it."""
        return self.inner.state_key(state.inner)

    def task(self, state: NoisyState) -> Float[Array, ""]:
        """The world's own; a step in which it stood still pays nothing."""
        task = self.inner.task(state.inner)
        return jnp.where(state.is_on, 0.0, task) if self.has_switch else task

    def terminated(self, state: NoisyState) -> Bool[Array, ""]:
        return self.inner.terminated(state.inner)

    def truncated(self, state: NoisyState) -> Bool[Array, ""]:
        """As the world has it; steps in which it stood still count too."""
        is_cut = self.inner.truncated(state.inner)
        if not self.has_switch:
            return is_cut
        return (is_cut | (state.time >= self.horizon)) & ~self.terminated(state)


class NoisyGrid(Noisy, GridWorld[Any, NoisyNoise]):
    """Noise beside a world on a grid; whoever takes the switch stays, and the world goes on."""

    shape: tuple[int, int] = eqx.field(static=True)
    start: int | None = eqx.field(static=True)
    walls: Bool[Array, "rows cols"]
    moves: Int[Array, "cells actions"]
    right: Bool[Array, ""]
    """Whether the region is the right half."""

    def __init__(self, options: Any):
        super().__init__(options)
        self.shape, self.start, self.walls = self.inner.shape, self.inner.start, self.inner.walls
        self.moves = self._moves(self.inner)
        self.right = jnp.asarray(options.noise_region == "right")

    def _moves(self, inner: Any) -> Int[Array, "cells actions"]:
        """The cell each action leads to; the switch leads nowhere else."""
        more = [inner.moves[:, STAY, None]] if self.has_switch else []
        return jnp.concatenate([inner.moves, *more], axis=1)

    def for_seed(self, seed: Int[Array, ""] | int) -> "NoisyGrid":
        """Regions alternate over seeds, so that an even number of them is balanced."""
        inner, right = self.inner.for_seed(seed), self.right
        if self.config.noise_region == "by_seed":
            right = jnp.asarray(seed) % 2 == 1
        parts = inner, inner.walls, self._moves(inner), right
        return eqx.tree_at(lambda w: (w.inner, w.walls, w.moves, w.right), self, parts)

    def is_in_region(self, agent: Int[Array, ""]) -> Bool[Array, ""]:
        """Whether the agent stands in the half with noise; a middle column is of the right one."""
        cols = self.shape[1]
        return (agent % cols >= cols // 2) == self.right

    def _moved(
        self, inner: Any, action: Int[Array, ""], noise: Any, is_asked: Bool[Array, ""]
    ) -> Any:
        return self.inner.step(inner, jnp.where(is_asked, STAY, action), noise)

    def _is_on(self, inner: Any, is_asked: Bool[Array, ""]) -> Bool[Array, ""]:
        if self.config.noise_when == "region":
            return self.is_in_region(inner.agent)
        return super()._is_on(inner, is_asked)

    def task(self, state: NoisyState) -> Float[Array, ""]:
        """The world's own, which never stands still."""
        return self.inner.task(state.inner)

    def truncated(self, state: NoisyState) -> Bool[Array, ""]:
        return self.inner.truncated(state.inner)

    def targets(self, state: NoisyState) -> tuple[Int[Array, " n"], Bool[Array, " n"]]:
        return self.inner.targets(state.inner)


def numbers(
    words: UInt32[Array, " words"], shape: tuple[int, ...], kind: str
) -> Shaped[Array, "..."]:
    """Words as noise: coins of planes a bit each, an image's bytes, a vector's numbers in [0, 1)."""
    bits = BITS[kind]
    if kind == "vector":
        return ((words >> 8) * 2.0**-24).reshape(shape)
    parts = words[:, None] >> (bits * jnp.arange(32 // bits, dtype=jnp.uint32))[None]
    count = math.prod(shape)
    return (parts & (2**bits - 1)).astype(jnp.uint8).reshape(-1)[:count].reshape(shape)
