"""Maze: a fixed S-shaped way from a corner to a flag that can be taken once."""

from dataclasses import dataclass
from typing import Annotated

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt8

from primax.config.fields import Range, check
from primax.worlds import layouts
from primax.worlds.base import GridWorld, WorldState, gather
from primax.worlds.grid import move_table, paint


@dataclass(frozen=True)
class MazeConfig:
    """Options of the world Maze; the defaults are the paper's world as we read it."""

    size: Annotated[int, Range(layouts.SMALLEST, layouts.LARGEST)] = 10
    """Rows and columns of a named layout, 6 to 32."""
    layout: str = "full_walls"
    """`full_walls`, `half_walls`, `one_wide`, `switchback`, `long`, `longest`, a map, or a .txt file with one."""
    horizon: Annotated[int, Range(1, 100_000)] = 100
    """Steps an episode lasts."""

    def __post_init__(self):
        check(self)


class MazeState(WorldState):
    """Where the agent is, whether the flag still stands, whether it was taken just now."""

    agent: Int[Array, ""]
    flag: Bool[Array, ""]
    taken: Bool[Array, ""]
    time: Int[Array, ""]


class MazeNoise(eqx.Module):
    """Nothing: the Maze is deterministic."""

    nothing: UInt8[Array, "*steps 0"]


class Maze(GridWorld[MazeState, MazeNoise]):
    """The agent walks; stepping on the flag takes it, and the episode runs on."""

    score = "share of episodes that reach the flag"
    steps = 200_000

    config: MazeConfig = eqx.field(static=True)
    channels: tuple[str, ...] = eqx.field(static=True)
    shape: tuple[int, int] = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    num_keys: int = eqx.field(static=True)
    start: int | None = eqx.field(static=True)
    goal: int = eqx.field(static=True)
    walls: Bool[Array, "rows cols"]
    moves: Int[Array, "cells 5"]

    def __init__(self, config: MazeConfig):
        layout = layouts.load(config.layout, config.size, flag=True)
        assert layout.flag is not None
        self.config, self.horizon = config, config.horizon
        self.channels = ("agent", "wall", "flag")
        self.shape, self.num_keys = layout.walls.shape, layout.walls.size
        self.start, self.goal = layout.start, layout.flag
        self.walls = jnp.asarray(layout.walls)
        self.moves = jnp.asarray(move_table(layout.walls))

    def reset(self, key: PRNGKeyArray) -> MazeState:
        return MazeState(
            agent=jnp.asarray(self.start, jnp.int32),
            flag=jnp.ones((), bool),
            taken=jnp.zeros((), bool),
            time=jnp.zeros((), jnp.int32),
        )

    def noise(self, key: PRNGKeyArray, num_steps: int) -> MazeNoise:
        return MazeNoise(jnp.zeros((num_steps, 0), jnp.uint8))

    def step(self, state: MazeState, action: Int[Array, ""], noise: MazeNoise) -> MazeState:
        agent = gather(self.moves, state.agent, action)
        taken = state.flag & (agent == self.goal)
        return MazeState(agent, state.flag & ~taken, taken, state.time + 1)

    def observe(self, state: MazeState) -> UInt8[Array, "3 rows cols"]:
        agent, goal = state.agent[None], jnp.full((1,), self.goal, jnp.int32)
        return paint(self.shape, (agent, jnp.ones(1, bool)), self.walls, (goal, state.flag[None]))

    def state_key(self, state: MazeState) -> Int[Array, ""]:
        """Position alone, as the paper has it: the flag is not part of the key."""
        return state.agent

    def task(self, state: MazeState) -> Float[Array, ""]:
        """One in the step that takes the flag."""
        return state.taken.astype(jnp.float32)

    def targets(self, state: MazeState) -> tuple[Int[Array, " 1"], Bool[Array, " 1"]]:
        return jnp.full((1,), self.goal, jnp.int32), state.flag[None]
