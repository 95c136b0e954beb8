"""Environments of XLand-MiniGrid: `xminigrid:MiniGrid-DoorKey-8x8`."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, UInt8

from primax.worlds.base import World
from primax.worlds.suites.base import Environment, built, known_id, library, parameters, world_class

CARRIES = {"carries": "Whether what the agent holds is shown on its own cell, as MiniGrid does."}
UNSET = ("max_steps", "render_mode", "ruleset")
"""Parameters that are no options: the first is `horizon`, the others are not simple."""


@cache
def kind(id_: str) -> type[World]:
    """The world of an environment's id."""
    xminigrid = library("xminigrid", "suites")
    id_ = known_id("xminigrid", id_, xminigrid.registered_environments())
    name = f"xminigrid:{id_}"
    env, params = built(name, lambda: xminigrid.make(id_))
    own = {key: value for key, value in parameters(params).items() if key not in UNSET}

    def make(chosen: Mapping[str, Any]) -> Environment:
        given = {key: chosen[key] for key in own if type(own[key]) in (bool, int, float, str)}
        if "horizon" in chosen:
            given["max_steps"] = chosen["horizon"]
        return environment(env, env.default_params(**given), chosen["carries"])

    return world_class(name, f"{id_} of XLand-MiniGrid.", own | {"carries": True}, make, CARRIES)


def environment(env: Any, params: Any, carries: bool) -> Environment:
    """An XLand-MiniGrid environment; it resets nothing by itself, so its last observation is kept."""

    def reset(key):
        first = env.reset(params, key)
        return first, planes(first, carries)

    def step(key, state, action):
        now = env.step(params, state, action)
        is_cut = now.last() & (now.discount > 0)
        return now, planes(now, carries), now.reward, now.discount == 0, is_cut

    num = env.num_actions(params)
    return Environment(reset, step, num, int(params.max_steps), "planes", _names())


def planes(timestep: Any, carries: bool) -> UInt8[Array, "c rows cols"]:
    """The view as a plane for each tile and each colour.

    With `carries` what the agent holds lies on its own cell, as in MiniGrid: this suite does not
    show it, and without it the agent cannot see that it has a key.
    """
    constants = library("xminigrid.core.constants", "suites")
    view = timestep.observation
    if carries:
        pocket, rows, cols = timestep.state.agent.pocket, *view.shape[:2]
        under = view[rows - 1, cols // 2]
        is_held = pocket[0] != constants.Tiles.EMPTY
        view = view.at[rows - 1, cols // 2].set(
            jnp.where(is_held, pocket, under).astype(view.dtype)
        )
    tiles = jax.nn.one_hot(view[..., 0], constants.NUM_TILES, axis=0)
    colours = jax.nn.one_hot(view[..., 1], constants.NUM_COLORS, axis=0)
    return jnp.concatenate([tiles, colours]).astype(jnp.uint8)


def _names() -> tuple[str, ...]:
    constants = library("xminigrid.core.constants", "suites")
    tiles, colours = (parameters(names()) for names in (constants.Tiles, constants.Colors))
    return (*(name.lower() for name in tiles), *(f"colour {name.lower()}" for name in colours))
