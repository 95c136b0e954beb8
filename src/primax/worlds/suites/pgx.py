"""Games of Pgx for one player: `pgx:minatar-breakout`."""

import inspect
from collections.abc import Mapping
from functools import cache
from typing import Any

import jax.numpy as jnp

from primax.errors import InputError
from primax.worlds.base import World
from primax.worlds.suites.base import (
    Environment,
    as_planes,
    as_vector,
    built,
    known_id,
    library,
    world_class,
)

HORIZON = 2_500
"""Pgx sets no limit, and some games of MinAtar never end by themselves."""


@cache
def kind(id_: str) -> type[World]:
    """The world of a game's id."""
    pgx = library("pgx", "suites")
    id_ = known_id("pgx", id_, tuple(pgx.available_envs()))
    name = f"pgx:{id_}"
    env = built(name, lambda: pgx.make(id_))
    _check_alone(env, name)
    arguments = inspect.signature(type(env).__init__).parameters.values()
    given = {item.name: item.default for item in arguments if item.default is not item.empty}

    def make(chosen: Mapping[str, Any]) -> Environment:
        others = {key: value for key, value in chosen.items() if key != "horizon"}
        return environment(type(env)(**others), chosen.get("horizon", HORIZON))

    return world_class(name, f"{id_} of Pgx.", given, make)


def _check_alone(env: Any, name: str) -> None:
    if env.num_players != 1:
        raise InputError(f"{name} is for {env.num_players} players: Primax trains one agent alone")


def environment(env: Any, horizon: int) -> Environment:
    """A game of one player, cut after `horizon` steps; an action that is not allowed ends it."""
    _check_alone(env, f"pgx:{env.id}")
    shape = env.observation_shape
    is_binary = len(shape) == 3
    see = as_planes if is_binary else as_vector

    def reset(key):
        first = env.init(key)
        return first, see(first.observation)

    def step(key, state, action):
        now = env.step(state, action, key)
        is_cut = now.truncated | (now._step_count >= horizon)
        return now, see(now.observation), jnp.sum(now.rewards), now.terminated, is_cut

    channels = tuple(map(str, range(shape[2]))) if is_binary else ()
    kind = "planes" if is_binary else "vector"
    return Environment(reset, step, env.num_actions, horizon, kind, channels)
