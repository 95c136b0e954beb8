"""Environments of gymnax: `gymnax:DeepSea-bsuite`, `gymnax:Breakout-MinAtar`, `gymnax:CartPole-v1`."""

import inspect
from collections.abc import Mapping
from functools import cache
from typing import Any

import jax

from primax.errors import InputError
from primax.worlds.base import World
from primax.worlds.suites.base import (
    Environment,
    as_planes,
    as_vector,
    built,
    known_id,
    library,
    parameters,
    world_class,
)

BINARY = ("-MinAtar", "DeepSea-bsuite", "Catch-bsuite")
"""Environments whose observations are zeros and ones on a grid, channels last; by how names end."""
LIMIT = "max_steps_in_episode"
"""What gymnax calls the horizon."""


@cache
def kind(id_: str) -> type[World]:
    """The world of an environment's id."""
    gymnax = library("gymnax", "suites")
    name = f"gymnax:{known_id('gymnax', id_, tuple(gymnax.registered_envs))}"
    id_ = name.partition(":")[2]
    env, params = built(name, lambda: gymnax.make(id_))
    sizes = _sizes(type(env))
    given = sizes | {key: value for key, value in parameters(params).items() if key != LIMIT}

    def make(chosen: Mapping[str, Any]) -> Environment:
        env, params = gymnax.make(id_, **{key: chosen[key] for key in sizes})
        others = {key: value for key, value in chosen.items() if key in given and key not in sizes}
        limit = {LIMIT: chosen["horizon"]} if "horizon" in chosen else {}
        return environment(env, params.replace(**others, **limit), id_)

    return world_class(name, f"{id_} of gymnax.", given, make)


def _sizes(env: type) -> dict[str, Any]:
    """What an environment is made with: numbers, yes or no, and texts that have a default."""
    arguments = inspect.signature(env.__init__).parameters.values()
    known = {item.name: item.default for item in arguments if item.default is not item.empty}
    return {
        name: value for name, value in known.items() if isinstance(value, (bool, int, float, str))
    }


def environment(env: Any, params: Any, name: str) -> Environment:
    """A gymnax environment with its parameters; a step has the randomness of `env.step`."""
    space = env.action_space(params)
    if type(space).__name__ != "Discrete":
        raise InputError(
            f"{name} takes actions of the kind {type(space).__name__}: discrete ones are needed"
        )
    is_binary = name.endswith(BINARY)
    see = as_planes if is_binary else as_vector

    def reset(key):
        obs, state = env.reset_env(key, params)
        return state, see(_whole(obs, name))

    def step(key, state, action):
        k_step, _ = jax.random.split(key)  # the second is of gymnax's own reset
        obs, state, reward, terminated, _ = env.step_env(k_step, state, action, params)
        return state, see(obs), reward, terminated, env.is_truncated(state, params)

    limit, shape = int(getattr(params, LIMIT)), env.observation_space(params).shape
    channels = tuple(map(str, range(shape[2] if len(shape) == 3 else 1))) if is_binary else ()
    return Environment(
        reset, step, int(space.n), limit, "planes" if is_binary else "vector", channels
    )


def _whole(obs: Any, name: str) -> Any:
    if not hasattr(obs, "shape"):
        raise InputError(f"{name} shows {type(obs).__name__}: one array is needed")
    return obs
