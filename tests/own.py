"""A world and a reward as a stranger would write them, from CONTRIBUTING.md alone."""

from dataclasses import dataclass
from typing import Annotated

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt8

from primax.config.fields import Range, check
from primax.methods import Method
from primax.rewards.base import Reward, Spec
from primax.rewards.transition import Batch
from primax.worlds.base import GridWorld, WorldState, gather
from primax.worlds.grid import move_table, paint


@dataclass(frozen=True)
class CorridorConfig:
    """Options of the world Corridor."""

    length: Annotated[int, Range(4, 32)] = 6
    """Cells from one end to the other."""
    horizon: Annotated[int, Range(1, 100_000)] = 100
    """Steps an episode lasts."""

    def __post_init__(self):
        check(self)


class CorridorState(WorldState):
    """Where the agent is, and when."""

    agent: Int[Array, ""]
    time: Int[Array, ""]


class CorridorNoise(eqx.Module):
    """Nothing is random."""

    nothing: UInt8[Array, "*steps 0"]


class Corridor(GridWorld[CorridorState, CorridorNoise]):
    """A way of four rows from left to right; the last column pays."""

    takes_targets = False
    score = "steps at the far end"
    steps = 30_000

    config: CorridorConfig = eqx.field(static=True)
    channels: tuple[str, ...] = eqx.field(static=True)
    shape: tuple[int, int] = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    num_keys: int = eqx.field(static=True)
    start: int | None = eqx.field(static=True)
    walls: Bool[Array, "rows cols"]
    moves: Int[Array, "cells 5"]

    def __init__(self, config: CorridorConfig):
        walls = np.zeros((4, config.length), bool)
        self.config, self.horizon, self.start = config, config.horizon, 0
        self.channels, self.shape, self.num_keys = ("agent", "wall"), walls.shape, walls.size
        self.walls, self.moves = jnp.asarray(walls), jnp.asarray(move_table(walls))

    def reset(self, key: PRNGKeyArray) -> CorridorState:
        return CorridorState(jnp.int32(0), jnp.int32(0))

    def noise(self, key: PRNGKeyArray, num_steps: int) -> CorridorNoise:
        return CorridorNoise(jnp.zeros((num_steps, 0), jnp.uint8))

    def step(
        self, state: CorridorState, action: Int[Array, ""], noise: CorridorNoise
    ) -> CorridorState:
        return CorridorState(gather(self.moves, state.agent, action), state.time + 1)

    def observe(self, state: CorridorState) -> UInt8[Array, "2 rows cols"]:
        return paint(self.shape, (state.agent[None], jnp.ones(1, bool)), self.walls)

    def state_key(self, state: CorridorState) -> Int[Array, ""]:
        return state.agent

    def task(self, state: CorridorState) -> Float[Array, ""]:
        is_there = state.agent % self.config.length == self.config.length - 1
        return is_there.astype(jnp.float32)

    def targets(self, state: CorridorState) -> tuple[Int[Array, " 1"], Bool[Array, " 1"]]:
        return jnp.full((1,), self.config.length - 1, jnp.int32), jnp.ones(1, bool)


@dataclass(frozen=True)
class MovedConfig:
    """Options of the reward Moved."""

    reward_scale: Annotated[float, Range(0, 1e9)] = 0.5
    """What a step to another cell is worth."""

    def __post_init__(self):
        check(self, "reward.")


class Moved(Reward[tuple]):
    """Pays for every step that leads somewhere else."""

    spec: Spec
    config: MovedConfig = eqx.field(static=True)

    def init(self, key: PRNGKeyArray) -> tuple:
        return ()

    def score(self, state: tuple, batch: Batch) -> Float[Array, " batch"]:
        is_moved = batch.next_key != batch.key // self.spec.num_actions
        return self.config.reward_scale * is_moved.astype(jnp.float32)


MOVED = Method("moved", "Moved", "every step that leads somewhere else", Moved, options=MovedConfig)
