"""TwoWings: two like halves, one of which shows noise for as long as the agent is in it."""

from dataclasses import dataclass
from typing import Annotated

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt8

from primax.config.fields import Choice, Range, check
from primax.worlds.base import GridWorld, WorldState, gather
from primax.worlds.grid import move_table, paint

ROWS, COLS = 3, 10
SIDES = ("by_seed", "left", "right")


@dataclass(frozen=True)
class TwoWingsConfig:
    """Options of the world TwoWings."""

    noisy: Annotated[str, Choice(SIDES)] = "by_seed"
    """The wing with noise: `left`, `right`, or `by_seed` (left for even seeds, right for odd)."""
    noise_cells: Annotated[int, Range(0, ROWS * COLS)] = 20
    """How many cells of the noise plane flicker, in reading order; 0 is the silent control."""
    horizon: Annotated[int, Range(1, 100_000)] = 100
    """Steps an episode lasts."""

    def __post_init__(self):
        check(self)


class TwoWingsState(WorldState):
    """Where the agent is and what the noise plane shows; `shown` is all zero in the silent wing."""

    agent: Int[Array, ""]
    shown: Bool[Array, "rows cols"]
    time: Int[Array, ""]


class TwoWingsNoise(eqx.Module):
    """Fair coins of a step, one a cell."""

    coins: Bool[Array, "*steps rows cols"]


class TwoWings(GridWorld[TwoWingsState, TwoWingsNoise]):
    """Thirty cells, fifteen a wing; the agent starts on either side of the line between them."""

    takes_targets = False
    score = "share of steps in the silent wing"
    steps = 150_000

    config: TwoWingsConfig = eqx.field(static=True)
    channels: tuple[str, ...] = eqx.field(static=True)
    shape: tuple[int, int] = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    num_keys: int = eqx.field(static=True)
    start: int | None = eqx.field(static=True)
    walls: Bool[Array, "rows cols"]
    right_is_noisy: Bool[Array, ""]
    moves: Int[Array, "cells 5"]
    flickers: Bool[Array, "rows cols"]

    def __init__(self, config: TwoWingsConfig):
        self.config, self.horizon = config, config.horizon
        self.channels = ("agent", "noise")
        self.shape, self.num_keys = (ROWS, COLS), ROWS * COLS
        self.right_is_noisy = jnp.asarray(config.noisy == "right")
        self.start, self.walls = None, jnp.zeros((ROWS, COLS), bool)
        self.moves = jnp.asarray(move_table(np.zeros((ROWS, COLS), bool)))
        self.flickers = (jnp.arange(ROWS * COLS) < config.noise_cells).reshape(ROWS, COLS)

    def for_seed(self, seed: Int[Array, ""] | int) -> "TwoWings":
        """Sides alternate over seeds, so that an even number of them is balanced."""
        if self.config.noisy != "by_seed":
            return self
        return eqx.tree_at(lambda w: w.right_is_noisy, self, jnp.asarray(seed) % 2 == 1)

    def is_noisy(self, agent: Int[Array, ""]) -> Bool[Array, ""]:
        """Whether the agent stands in the noisy wing."""
        return (agent % COLS >= COLS // 2) == self.right_is_noisy

    def reset(self, key: PRNGKeyArray) -> TwoWingsState:
        """In the middle row, left or right of the line by a fair coin: neither wing is favoured."""
        k_side, k_coins = jax.random.split(key)
        side = jax.random.bernoulli(k_side).astype(jnp.int32)
        agent = (ROWS // 2) * COLS + COLS // 2 - 1 + side
        coins = jax.random.bernoulli(k_coins, shape=self.shape)
        return TwoWingsState(agent, self._shown(agent, coins), jnp.zeros((), jnp.int32))

    def noise(self, key: PRNGKeyArray, num_steps: int) -> TwoWingsNoise:
        return TwoWingsNoise(jax.random.bernoulli(key, shape=(num_steps, *self.shape)))

    def step(
        self, state: TwoWingsState, action: Int[Array, ""], noise: TwoWingsNoise
    ) -> TwoWingsState:
        agent = gather(self.moves, state.agent, action)
        return TwoWingsState(agent, self._shown(agent, noise.coins), state.time + 1)

    def _shown(
        self, agent: Int[Array, ""], coins: Bool[Array, "rows cols"]
    ) -> Bool[Array, "rows cols"]:
        return coins & self.flickers & self.is_noisy(agent)

    def observe(self, state: TwoWingsState) -> UInt8[Array, "2 rows cols"]:
        return paint(self.shape, (state.agent[None], jnp.ones(1, bool)), state.shown)

    def state_key(self, state: TwoWingsState) -> Int[Array, ""]:
        return state.agent

    def task(self, state: TwoWingsState) -> Float[Array, ""]:
        """The silent wing pays 1/horizon a step: an episode's score is the share spent there."""
        return jnp.where(self.is_noisy(state.agent), 0.0, 1.0 / self.horizon)

    def targets(self, state: TwoWingsState) -> tuple[Int[Array, " 1"], Bool[Array, " 1"]]:
        """The far end of the silent wing."""
        far = (ROWS // 2) * COLS + jnp.where(self.right_is_noisy, 0, COLS - 1)
        return far[None].astype(jnp.int32), jnp.ones(1, bool)
