"""Butterflies in plain numpy: what the world costs without JAX, and an oracle for its rules."""

import numpy as np

STEPS = np.array([(-1, 0), (1, 0), (0, 1), (0, -1), (0, 0)])  # north, south, east, west, stay
CATCHES = {
    "after_both": lambda agent, old, new: new == agent,
    "after_each": lambda agent, old, new: (old == agent) | (new == agent),
    "after_agent": lambda agent, old, new: old == agent,
}


def move_table(size: int) -> np.ndarray:
    """The flat cell that action a leads to from cell c, at 5 * c + a; the grid's edge blocks."""
    cells = np.stack(np.divmod(np.arange(size * size), size), axis=-1)
    row, col = np.moveaxis(np.clip(cells[:, None] + STEPS, 0, size - 1), -1, 0)
    return (row * size + col).ravel()


class NumpyButterflies:
    """`num` open worlds in lockstep, or with `num=None` a single one without the leading axis.

    The agent starts in the corner. It moves, every butterfly alive moves, then a shared cell is a
    catch; `catch` names the other two readings of when that is.
    """

    horizon = 100

    def __init__(
        self,
        num: int | None = None,
        size: int = 10,
        butterflies: int = 6,
        catch: str = "after_both",
    ):
        self.batch = () if num is None else (num,)
        self.size, self.num_cells, self.num_butterflies = size, size * size, butterflies
        self.is_met = CATCHES[catch]
        self.table = move_table(size)
        # Where a world's planes begin in the flat observation: one index is faster than three.
        worlds = np.arange(1 if num is None else num).reshape(self.batch)
        self.agent_plane = worlds * 4 * self.num_cells
        self.butterfly_plane = self.agent_plane[..., None] + self.num_cells

    def reset(self, rng: np.random.Generator) -> None:
        """Begins an episode: butterflies on distinct cells, none in the agent's corner."""
        num = self.num_butterflies
        order = rng.random((*self.batch, self.num_cells - 1)).argpartition(num, axis=-1)
        self.place(1 + order[..., :num])

    def place(self, cells: np.ndarray) -> None:
        """Begins an episode with the butterflies on these flat cells."""
        self.cells, self.alive = cells, np.ones(cells.shape, bool)
        self.agent = np.zeros(self.batch, np.int64)
        self.caught = np.zeros(self.batch, np.int64)
        self.time = 0

    def draw(self, rng: np.random.Generator, num_steps: int) -> tuple[np.ndarray, np.ndarray]:
        """The agents' and the butterflies' uniform actions, for many steps at once."""
        actions = rng.integers(5, size=(num_steps, *self.batch))
        return actions, rng.integers(5, size=(num_steps, *self.batch, self.num_butterflies))

    def step(self, action: np.ndarray, moves: np.ndarray) -> None:
        """One step of every world."""
        self.agent = self.table[self.agent * 5 + action]
        old, self.cells = self.cells, self.table[self.cells * 5 + moves]
        caught = self.alive & self.is_met(self.agent[..., None], old, self.cells)
        # A caught butterfly walks on unseen: leaving it where it is would cost a select.
        self.alive = self.alive & ~caught
        self.caught = np.count_nonzero(caught, axis=-1)
        self.time += 1

    def observe(self) -> np.ndarray:
        """The planes agent, butterfly, wall and caught_flash; an open world has no wall."""
        planes = np.zeros((*self.batch, 4, self.size, self.size), np.uint8)
        flat, agent = planes.reshape(-1), self.agent_plane + self.agent
        flat[agent] = 1
        flat[(self.butterfly_plane + self.cells)[self.alive]] = 1
        flat[agent + 3 * self.num_cells] = self.caught > 0
        return planes

    @property
    def truncated(self) -> bool:
        """Whether the episode's time is up."""
        return self.time >= self.horizon
