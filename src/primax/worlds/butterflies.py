"""Butterflies: an open grid, an agent, and butterflies that walk at random."""

from dataclasses import dataclass
from typing import Annotated

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt8, UInt32

from primax.config.fields import Choice, Range, check
from primax.errors import check_range
from primax.worlds import layouts
from primax.worlds.base import GridWorld, WorldState, fives, gather
from primax.worlds.grid import move_table, nearest_free, paint

STARTS = ("layout", "centre", "random")
CATCHES = ("after_both", "after_each", "after_agent")


@dataclass(frozen=True)
class ButterfliesConfig:
    """Options of the world Butterflies; the defaults are the paper's world."""

    size: Annotated[int, Range(layouts.SMALLEST, layouts.LARGEST)] = 10
    """Rows and columns of a named layout, 6 to 32."""
    butterflies: Annotated[int | None, Range(1, 100)] = None
    """How many butterflies; by default six to a hundred cells, and at least three."""
    layout: str = "open"
    """`open`, `border` (a wall all around), a map, or a .txt file with one."""
    start: Annotated[str, Choice(STARTS)] = "layout"
    """Where the agent starts: `layout` (the map's S, a corner), `centre`, `random`."""
    catch: Annotated[str, Choice(CATCHES)] = "after_both"
    """When a shared cell is a catch: `after_both` moved, `after_each` move, `after_agent` moved."""
    respawn: bool = False
    """Whether a caught butterfly comes back at once, on a free cell away from the agent."""
    horizon: Annotated[int, Range(1, 100_000)] = 100
    """Steps an episode lasts."""

    def __post_init__(self):
        check(self)


class ButterfliesState(WorldState):
    """Where everything is; a caught butterfly keeps a cell but is not alive."""

    agent: Int[Array, ""]
    butterflies: Int[Array, " n"]
    alive: Bool[Array, " n"]
    caught: Int[Array, ""]
    time: Int[Array, ""]


class ButterfliesNoise(eqx.Module):
    """Random bits of a step: each butterfly's move and, with `respawn`, where it comes back."""

    moves: UInt32[Array, "*steps words"]
    spawns: UInt32[Array, "*steps n"]


class Butterflies(GridWorld[ButterfliesState, ButterfliesNoise]):
    """The agent moves, every butterfly alive moves, then a shared cell is a catch."""

    score = "catches an episode"
    steps = 250_000

    config: ButterfliesConfig = eqx.field(static=True)
    channels: tuple[str, ...] = eqx.field(static=True)
    shape: tuple[int, int] = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    num_keys: int = eqx.field(static=True)
    num_butterflies: int = eqx.field(static=True)
    start: int | None = eqx.field(static=True)
    walls: Bool[Array, "rows cols"]
    moves: Int[Array, "cells 5"]
    free: Int[Array, " free"]
    rank: Int[Array, " cells"]

    def __init__(self, config: ButterfliesConfig):
        layout = layouts.load(config.layout, config.size, flag=False)
        rows, cols = layout.walls.shape
        free = np.flatnonzero(~layout.walls.ravel())
        count = config.butterflies or max(3, round(0.06 * rows * cols))
        check_range("butterflies", count, 1, len(free) - 1)
        self.config, self.horizon = config, config.horizon
        self.channels = ("agent", "butterfly", "wall", "caught_flash")
        self.shape, self.num_butterflies = (rows, cols), count
        self.num_keys = rows * cols * (count + 1)
        centre = nearest_free(layout.walls, (rows // 2, cols // 2))
        self.start = {"layout": layout.start, "centre": centre, "random": None}[config.start]
        self.walls = jnp.asarray(layout.walls)
        self.moves = jnp.asarray(move_table(layout.walls))
        self.free = jnp.asarray(free, jnp.int32)
        self.rank = jnp.asarray(np.searchsorted(free, np.arange(rows * cols)), jnp.int32)

    def reset(self, key: PRNGKeyArray) -> ButterfliesState:
        """Butterflies on distinct free cells other than the agent's."""
        k_agent, k_cells = jax.random.split(key)
        if self.start is None:
            agent = gather(self.free, jax.random.randint(k_agent, (), 0, len(self.free)))
        else:
            agent = jnp.asarray(self.start, jnp.int32)
        num = self.num_butterflies
        places = distinct(k_cells, num, len(self.free) - 1)
        return ButterfliesState(
            agent=agent,
            butterflies=self._elsewhere(places, agent),
            alive=jnp.ones(num, bool),
            caught=jnp.zeros((), jnp.int32),
            time=jnp.zeros((), jnp.int32),
        )

    def noise(self, key: PRNGKeyArray, num_steps: int) -> ButterfliesNoise:
        k_moves, k_spawns = jax.random.split(key)
        spawns = self.num_butterflies if self.config.respawn else 0
        words = -(-self.num_butterflies // 6)
        return ButterfliesNoise(
            moves=jax.random.bits(k_moves, (num_steps, words), "uint32"),
            spawns=jax.random.bits(k_spawns, (num_steps, spawns), "uint32"),
        )

    def _elsewhere(self, places: Int[Array, " n"], agent: Int[Array, ""]) -> Int[Array, " n"]:
        """The `places`-th free cells, not counting the agent's."""
        return gather(self.free, places + (places >= gather(self.rank, agent)))

    def step(
        self, state: ButterfliesState, action: Int[Array, ""], noise: ButterfliesNoise
    ) -> ButterfliesState:
        agent = gather(self.moves, state.agent, action)
        met_first = state.alive & (state.butterflies == agent)
        cells = gather(self.moves, state.butterflies, fives(noise.moves, self.num_butterflies))
        met_last = state.alive & (cells == agent)
        met = {"after_both": met_last, "after_each": met_first | met_last, "after_agent": met_first}
        caught = met[self.config.catch]
        alive = state.alive & ~caught
        if self.config.respawn:
            place = (noise.spawns % (len(self.free) - 1)).astype(jnp.int32)
            cells, alive = jnp.where(caught, self._elsewhere(place, agent), cells), state.alive
        return ButterfliesState(
            agent, cells, alive, jnp.sum(caught, dtype=jnp.int32), state.time + 1
        )

    def observe(self, state: ButterfliesState) -> UInt8[Array, "4 rows cols"]:
        agent, caught = state.agent[None], state.caught[None] > 0
        return paint(
            self.shape,
            (agent, jnp.ones(1, bool)),
            (state.butterflies, state.alive),
            self.walls,
            (agent, caught),
        )

    def state_key(self, state: ButterfliesState) -> Int[Array, ""]:
        """Agent's cell and how many are alive; where the butterflies are is left out."""
        alive = jnp.sum(state.alive, dtype=jnp.int32)
        return state.agent * (self.num_butterflies + 1) + alive

    def task(self, state: ButterfliesState) -> Float[Array, ""]:
        """Butterflies caught in this step."""
        return state.caught.astype(jnp.float32)

    def targets(self, state: ButterfliesState) -> tuple[Int[Array, " n"], Bool[Array, " n"]]:
        return state.butterflies, state.alive


def distinct(key: PRNGKeyArray, num: int, among: int) -> Int[Array, " num"]:
    """A uniform set of `num` different numbers in [0, among), by Floyd's method.

    Number i is drawn up to its last candidate, and is that candidate where the draw was taken:
    a few compares, where a shuffle would sort the whole grid at every reset.
    """
    last = among - num + jnp.arange(num)
    draws = jax.random.randint(key, (num,), 0, last + 1)

    def add(i: Int[Array, ""], chosen: Int[Array, " num"]) -> Int[Array, " num"]:
        return chosen.at[i].set(jnp.where(jnp.any(chosen == draws[i]), last[i], draws[i]))

    return jax.lax.fori_loop(0, num, add, jnp.full(num, -1, jnp.int32))
