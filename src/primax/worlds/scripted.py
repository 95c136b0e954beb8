"""Scripted policies: what every learnt score is to be read against."""

import itertools
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, UInt32

from primax.errors import lookup
from primax.worlds.base import GridWorld, World, gather, on_grid
from primax.worlds.grid import STAY, nearest_free, steps_to

Act = Callable[..., Int[Array, ""]]
"""(state, random word) -> action."""


def _toward(moves: np.ndarray, target: int) -> np.ndarray:
    """From every cell the first action, in the order N S E W, of a shortest way to `target`."""
    return np.argmin(steps_to(moves, np.array([target]))[0][moves], axis=1)


def stay(world: GridWorld) -> np.ndarray:
    """Stay, always."""
    return np.full((world.horizon, len(world.moves)), STAY)


def centre_stay(world: GridWorld) -> np.ndarray:
    """Go to the cell (rows/2, cols/2) and stay there: the paper's position-only comparator."""
    rows, cols = world.shape
    moves = np.asarray(world.moves)
    centre = nearest_free(np.asarray(world.walls), (rows // 2, cols // 2))
    actions = _toward(moves, centre)
    actions[centre] = STAY
    return np.tile(actions, (world.horizon, 1))


def sweep(world: GridWorld) -> np.ndarray:
    """Mow the lawn: row by row, back and forth, then the same way back; blind to everything.

    An open loop of actions from the world's start, by the shortest way where walls intervene. Cells
    to which there is no way are left out; where there is none to any, it stays.
    """
    moves, walls = np.asarray(world.moves), np.asarray(world.walls)
    rows = [row[:: (-1) ** i] for i, row in enumerate(np.arange(walls.size).reshape(walls.shape))]
    order = [int(cell) for cell in np.concatenate(rows) if not walls.ravel()[cell]]
    here = order[0] if world.start is None else world.start
    away = steps_to(moves, np.arange(len(moves)))
    goals = itertools.cycle([*order, *order[::-1]])
    actions: list[int] = []
    while len(actions) < world.horizon:
        goal, has_way = next(goals), away[order, here] < len(moves)
        if has_way.sum() <= 1:  # only to itself
            actions.append(STAY)
        if away[goal, here] == len(moves):
            continue
        way = np.argmin(away[goal][moves], axis=1)
        while here != goal:
            actions.append(int(way[here]))
            here = int(moves[here, way[here]])
    return np.tile(np.array(actions[: world.horizon])[:, None], (1, len(moves)))


BLIND = {"centre_stay": centre_stay, "sweep": sweep, "stay": stay}
"""Policies that see only the clock and their own cell: a table (time, cell) -> action each."""


def _follow(table: np.ndarray) -> Act:
    actions = jnp.asarray(table, jnp.int32)
    return lambda state, word: gather(actions, state.time, state.agent)


def _random(world: World) -> Act:
    return lambda state, word: (word % world.num_actions).astype(jnp.int32)


def _chase(world: GridWorld) -> Act:
    """One step nearer to the nearest target, by walking distance; stay where there is none."""
    moves = np.asarray(world.moves)
    away = jnp.asarray(steps_to(moves, np.arange(len(moves))))

    def act(state, word: UInt32[Array, ""]) -> Int[Array, ""]:
        cells, wanted = world.targets(state)
        after = gather(away, cells[:, None], gather(world.moves, state.agent)[None, :])
        nearest = jnp.min(jnp.where(wanted[:, None], after, len(moves)), axis=0)
        return jnp.where(jnp.any(wanted), jnp.argmin(nearest), STAY).astype(jnp.int32)

    return act


POLICIES = {
    "random": _random,
    "centre_stay": lambda world: _follow(centre_stay(world)),
    "sweep": lambda world: _follow(sweep(world)),
    "chase": _chase,
    "stay": lambda world: _follow(stay(world)),
}


def make_policy(name: str, world: World) -> Act:
    """The scripted policy called `name`, prepared for one world."""
    make = lookup("policy", name, POLICIES)
    return make(world) if make is _random else make(on_grid(world, f"the policy {name}"))
