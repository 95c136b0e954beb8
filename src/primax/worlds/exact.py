"""Expected scores without simulation, for policies that cannot see the targets.

Such a policy makes the agent a Markov chain of its own. On Butterflies each butterfly is then one
more chain beside it, and expectation adds up over butterflies, so a table (agent, butterfly) tells
the mean catch exactly, in float64.
"""

import numpy as np

from primax.errors import canonical
from primax.worlds.base import GridWorld, World
from primax.worlds.butterflies import Butterflies
from primax.worlds.maze import Maze
from primax.worlds.noisy import Noisy
from primax.worlds.scripted import BLIND
from primax.worlds.two_wings import TwoWings


def expected_score(world: World, policy: str) -> float | None:
    """The mean score of a policy; None where it cannot be had this way."""
    policy = canonical(policy)
    if policy != "random" and policy not in BLIND:
        return None
    inner = world.inner if isinstance(world, Noisy) else world
    if isinstance(world, GridWorld) and isinstance(inner, Maze):
        return _reach(inner, _chain(world, policy))
    if isinstance(world, TwoWings):
        return _silent_share(world, _chain(world, policy))
    if isinstance(world, GridWorld) and isinstance(inner, Butterflies) and not inner.config.respawn:
        return inner.num_butterflies * _caught(inner, _chain(world, policy))
    return None


def _chain(world: GridWorld, policy: str) -> list[np.ndarray]:
    """For every step the matrix P[to, from] of the agent's move."""
    moves, cells = np.asarray(world.moves), np.arange(len(world.moves))
    if policy == "random":
        matrix = np.zeros((len(cells), len(cells)))
        for action in range(moves.shape[1]):
            np.add.at(matrix, (moves[:, action], cells), 1 / moves.shape[1])
        return [matrix] * world.horizon
    matrices = []
    for actions in BLIND[policy](world):
        matrix = np.zeros((len(cells), len(cells)))
        matrix[moves[cells, actions], cells] = 1
        matrices.append(matrix)
    return matrices


def _reach(world: Maze, chain: list[np.ndarray]) -> float:
    """Chance that the agent touches the flag within the horizon."""
    at = np.zeros(len(world.moves))
    at[world.start], reached = 1, 0.0
    for matrix in chain:
        at = matrix @ at
        reached += at[world.goal]
        at[world.goal] = 0
    return float(reached)


def _silent_share(world: TwoWings, chain: list[np.ndarray]) -> float:
    """Expected share of steps in the silent wing."""
    rows, cols = world.shape
    cells = np.arange(rows * cols)
    is_silent = (cells % cols >= cols // 2) != bool(world.right_is_noisy)
    at = np.zeros(rows * cols)
    at[(rows // 2) * cols + cols // 2 - 1 : (rows // 2) * cols + cols // 2 + 1] = 0.5
    share = 0.0
    for matrix in chain:
        at = matrix @ at
        share += at[is_silent].sum() / world.horizon
    return float(share)


def _caught(world: Butterflies, chain: list[np.ndarray]) -> float:
    """Chance that one butterfly is caught: mass leaves the table where the two cells meet."""
    free, cells = np.asarray(world.free), len(world.moves)
    joint = np.zeros((cells, cells))
    joint[np.ix_(free if world.start is None else np.array([world.start]), free)] = 1
    np.fill_diagonal(joint, 0)
    joint /= joint.sum()
    walk = _chain(world, "random")[0]
    for matrix in chain:
        joint = matrix @ joint
        if world.config.catch != "after_both":
            np.fill_diagonal(joint, 0)
        joint = joint @ walk.T
        if world.config.catch != "after_agent":
            np.fill_diagonal(joint, 0)
    return float(1 - joint.sum())
