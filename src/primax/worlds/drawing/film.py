"""An episode as scenes to draw."""

from collections.abc import Sequence

import jax
import numpy as np

from primax.errors import InputError
from primax.worlds.base import GridWorld, World
from primax.worlds.drawing.render import Scene
from primax.worlds.rollout import Episode

KINDS = ("colour ", "state ")
"""How planes begin that say of what kind a thing is."""
BARE = ("empty", "floor")


def scenes(world: World, episode: Episode, title: str = "") -> list[Scene]:
    """One scene for the reset and one for every step, up to where the world ended or cut it."""
    if world.kind != "planes":
        raise InputError(f"{type(world).__name__} shows a {world.kind}: only planes can be drawn")
    ended, cut = (jax.vmap(of)(episode.states) for of in (world.terminated, world.truncated))
    is_over = np.asarray(ended | cut)
    num = int(is_over.argmax()) + 1 if is_over.any() else len(is_over)
    states = jax.tree.map(lambda x: x[:num], episode.states)
    task = np.asarray(jax.vmap(world.task)(states))
    score = np.concatenate([[0.0], np.cumsum(task[1:])])
    alive = None
    if isinstance(world, GridWorld) and world.takes_targets:
        alive = np.asarray(jax.vmap(world.targets)(states)[1]).sum(axis=1).tolist()
    planes = np.asarray(jax.vmap(world.observe)(states))
    return seen(world, planes, score.tolist(), alive, title)


def seen(
    world: World,
    planes: np.ndarray,
    score: Sequence[float | None],
    alive: Sequence[int] | None,
    title: str = "",
) -> list[Scene]:
    """One scene for every observation; with the score and the targets left, where they are known.

    Planes of the bare floor, and of colours and states, which MiniGrid's kin have, are left out.
    """
    names = enumerate(world.channels)
    drawn = [i for i, name in names if name not in BARE and not name.startswith(KINDS)]
    cells: list[int] = []
    if "agent" in world.channels:
        agent = planes[:, world.channels.index("agent")]
        cells = agent.reshape(len(agent), -1).argmax(axis=1).tolist()
    return [
        Scene(
            planes=planes[i][drawn],
            channels=tuple(world.channels[k] for k in drawn),
            trail=tuple(cells[:i]),
            time=i,
            horizon=world.horizon,
            score=score[i],
            alive=alive[i] if alive else None,
            total=alive[0] if alive else None,
            title=title,
        )
        for i in range(len(planes))
    ]
