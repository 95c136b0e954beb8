"""Environments of navix, MiniGrid in JAX: `navix:Navix-DoorKey-8x8-v0`."""

import sys
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from importlib.metadata import version
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Shaped, UInt8

from primax.errors import InputError
from primax.worlds.base import World
from primax.worlds.suites.base import Environment, built, known_id, library, world_class

OLDEST = 4
"""In navix 0.7.4, the newest for Python 3.11, KeyCorridor never pays."""
PYTHON = (3, 12)
"""What that navix needs."""
TAGS = ("unseen", "floor", "wall", "", "door", "key", "ball", "box", "goal", "lava", "agent")
COLOURS = ("red", "green", "blue", "purple", "yellow", "grey")
STATES = 4
"""A door is open, closed or locked; the agent faces one of four ways."""
DOCS = {
    "partial": "Whether the agent sees MiniGrid's seven by seven cells before it, or the whole grid.",
    "carries": "Whether what it holds is then shown on its own cell, as MiniGrid does.",
}
UNSET = ("disable_autoreset", "gamma")
"""Switches and rates of an environment that a world has no use for."""


@cache
def kind(id_: str) -> type[World]:
    """The world of an environment's id."""
    navix = _navix()
    id_ = known_id("navix", id_, tuple(sorted(navix.registry())))
    name = f"navix:{id_}"
    env = built(name, lambda: navix.make(id_))
    own = {x.name: getattr(env, x.name) for x in fields(env) if x.name not in UNSET}
    own = {key: value for key, value in own.items() if type(value) in (bool, float)}

    def make(chosen: Mapping[str, Any]) -> Environment:
        given = {key: chosen[key] for key in own}
        limit = {"max_steps": chosen["horizon"]} if "horizon" in chosen else {}
        made = env.replace(**given, **limit)
        return environment(made, chosen["partial"], chosen["carries"])

    options = own | {"partial": False, "carries": True}
    return world_class(name, f"{id_} of navix.", options, make, DOCS)


def _navix() -> ModuleType:
    """The package, where it is one whose environments pay what they should."""
    if sys.version_info < PYTHON:
        have, need = (".".join(map(str, x)) for x in (sys.version_info[:2], PYTHON))
        raise InputError(f"worlds of navix need Python {need} or newer: this is {have}")
    navix = library("navix", "navix")
    if int((found := version("navix")).partition(".")[0]) < OLDEST:
        raise InputError(
            f"worlds of navix need its version {OLDEST} or newer, and this is {found}, "
            "where KeyCorridor never pays: pip install 'navix>=4'"
        )
    return navix


def environment(env: Any, partial: bool, carries: bool) -> Environment:
    """A navix environment; `step` would reset by itself, so its inner step is taken.

    Pictures are never drawn, so a state goes without those that navix keeps in it.
    """

    def shown(timestep: Any) -> tuple[Any, UInt8[Array, "c rows cols"]]:
        now = timestep.replace(state=timestep.state.replace(cache=None))
        return now, planes(now.state, partial, carries)

    def reset(key):
        return shown(env.reset(key))

    def step(key, state, action):
        now, seen = shown(env._step(state, action))
        return now, seen, now.reward, now.is_termination(), now.is_truncation()

    env = env.replace(observation_fn=library("navix.observations", "navix").none)  # planes are ours
    colours, states = (f"colour {x}" for x in COLOURS), (f"state {x}" for x in range(STATES))
    tags = (*TAGS[:-1], "player") if partial else TAGS  # its own cell is bare in the partial view
    num, names = len(env.action_set), (*tags, *colours, *states)
    return Environment(reset, step, num, int(env.max_steps), "planes", names)


def planes(state: Any, partial: bool, carries: bool) -> UInt8[Array, "c rows cols"]:
    """A plane for each kind of thing, each colour and each state of things.

    What is seen is the whole grid or, if `partial`, what MiniGrid shows: seven by seven cells
    before the agent, which stands in the middle of the last row. With `carries` what it holds
    lies on its own cell there, as in MiniGrid; navix shows bare floor.
    """
    observations = library("navix.observations", "navix")
    see = observations.symbolic_first_person if partial else observations.symbolic
    view = see(state)
    if partial and carries:
        rows, cols, _ = view.shape
        view = view.at[rows - 1, cols // 2].set(_held(state, view[rows - 1, cols // 2]))
    parts = zip((len(TAGS), len(COLOURS), STATES), jnp.moveaxis(view, -1, 0), strict=True)
    hot = [jax.nn.one_hot(part, num, axis=0, dtype=jnp.uint8) for num, part in parts]
    return jnp.concatenate(hot)


def _held(state: Any, empty: Shaped[Array, "3"]) -> Shaped[Array, "3"]:
    """Kind, colour and state of what the agent holds; `empty` where it is nothing."""
    pocket, found = state.get_player().pocket, empty
    for thing in state.entities.values():
        if not hasattr(thing, "id"):
            continue
        is_it = (thing.id == pocket) & (pocket >= 0)
        for i in range(is_it.shape[0]):
            said = (thing.tag[i], thing.colour[i], thing.symbolic_state[i])
            symbol = jnp.stack([jnp.asarray(x, found.dtype) for x in said])
            found = jnp.where(is_it[i], symbol, found)
    return found
