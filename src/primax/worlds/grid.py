"""What every grid world shares: actions, blocked moves, distances, planes."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, UInt8

ACTIONS = ("N", "S", "E", "W", "Stay")
STEPS = ((-1, 0), (1, 0), (0, 1), (0, -1), (0, 0))
STAY = 4


def move_table(walls: Bool[np.ndarray, "rows cols"]) -> Int[np.ndarray, "cells 5"]:
    """The cell each action leads to; a move into a wall or off the grid stays where it is."""
    rows, cols = walls.shape
    table = np.empty((rows * cols, len(ACTIONS)), np.int32)
    for cell in range(rows * cols):
        for action, (down, right) in enumerate(STEPS):
            row, col = cell // cols + down, cell % cols + right
            inside = 0 <= row < rows and 0 <= col < cols
            table[cell, action] = row * cols + col if inside and not walls[row, col] else cell
    return table


def steps_to(
    moves: Int[np.ndarray, "cells actions"], targets: Int[np.ndarray, " n"]
) -> Int[np.ndarray, "n cells"]:
    """Fewest moves from every cell to each target; the number of cells where there is no way."""
    cells = len(moves)
    steps = np.full((len(targets), cells), cells, np.int32)
    steps[np.arange(len(targets)), targets] = 0
    while True:
        nearer = np.minimum(steps, steps[:, moves].min(axis=2) + 1)
        if np.array_equal(nearer, steps):
            return steps
        steps = nearer


def nearest_free(walls: np.ndarray, cell: tuple[int, int]) -> int:
    """The floor cell nearest to `cell`, the first in reading order among equals."""
    rows, cols = np.indices(walls.shape)
    away = np.abs(rows - cell[0]) + np.abs(cols - cell[1])
    return int(np.argmin(np.where(walls, walls.size, away)))


def one_hot(cell: Int[Array, ""], shape: tuple[int, int]) -> Bool[Array, "rows cols"]:
    """A plane that is true at one cell."""
    return (jnp.arange(shape[0] * shape[1]) == cell).reshape(shape)


def occupied(
    cells: Int[Array, " n"], mask: Bool[Array, " n"], shape: tuple[int, int]
) -> Bool[Array, "rows cols"]:
    """A plane that is true wherever a masked-in cell lies.

    Compared, not scattered: on a GPU that is one fused kernel.
    """
    masked = jnp.where(mask, cells, -1)
    return jnp.any(masked[:, None] == jnp.arange(shape[0] * shape[1])[None], axis=0).reshape(shape)


def paint(
    shape: tuple[int, int], *layers: Bool[Array, "rows cols"] | tuple[Array, Array]
) -> UInt8[Array, "channels rows cols"]:
    """An observation, channels first: each layer is a plane, or (cells, which of them count).

    A CPU scatters faster than it compares; on a GPU a comparison is one fused kernel.
    """
    if jax.default_backend() != "cpu":
        planes = [occupied(*x, shape) if isinstance(x, tuple) else x for x in layers]
        return jnp.stack(planes).astype(jnp.uint8)
    blank = jnp.zeros(shape, bool)
    planes = jnp.stack([blank if isinstance(x, tuple) else x for x in layers])
    planes = planes.astype(jnp.uint8).reshape(len(layers), -1)
    for i, layer in enumerate(layers):
        if isinstance(layer, tuple):
            planes = planes.at[i, layer[0]].max(layer[1].astype(jnp.uint8))
    return planes.reshape(len(layers), *shape)


def l1(a: Int[Array, "..."], b: Int[Array, "..."], cols: int) -> Int[Array, "..."]:
    """Distance in rows plus distance in columns between flat cells."""
    return jnp.abs(a // cols - b // cols) + jnp.abs(a % cols - b % cols)
