"""An episode as scenes to draw."""

import jax
import numpy as np

from primax.worlds.base import World
from primax.worlds.drawing.render import Scene
from primax.worlds.rollout import Episode


def scenes(world: World, episode: Episode, title: str = "") -> list[Scene]:
    """One scene for the reset and one for every step."""
    planes = np.asarray(jax.vmap(world.observe)(episode.states))
    task = np.asarray(jax.vmap(world.task)(episode.states))
    score = np.concatenate([[0.0], np.cumsum(task[1:])])
    wanted = np.asarray(jax.vmap(world.targets)(episode.states)[1]).sum(axis=1)
    cells = np.asarray(episode.states.agent)
    return [
        Scene(
            planes=planes[i],
            channels=world.channels,
            trail=tuple(int(cell) for cell in cells[:i]),
            time=i,
            horizon=world.horizon,
            score=float(score[i]),
            alive=int(wanted[i]) if world.takes_targets else None,
            total=int(wanted[0]) if world.takes_targets else None,
            title=title,
        )
        for i in range(len(planes))
    ]
