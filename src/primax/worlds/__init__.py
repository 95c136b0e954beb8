"""Worlds: pure functions that jit, vmap and scan. `make_world(name, **options)` builds one."""

import dataclasses
from collections.abc import Callable
from typing import Any

from primax.errors import InputError, hint, lookup
from primax.settings import check_type
from primax.worlds.base import World
from primax.worlds.butterflies import Butterflies, ButterfliesConfig
from primax.worlds.grid import ACTIONS
from primax.worlds.maze import Maze, MazeConfig
from primax.worlds.two_wings import TwoWings, TwoWingsConfig

WORLDS: dict[str, tuple[Callable[[Any], World], Any]] = {
    "butterflies": (Butterflies, ButterfliesConfig),
    "maze": (Maze, MazeConfig),
    "two_wings": (TwoWings, TwoWingsConfig),
}


def world_options(name: str) -> dict[str, dataclasses.Field]:
    """The options of a world, by name."""
    return {field.name: field for field in dataclasses.fields(lookup("world", name, WORLDS)[1])}


def make_world(name: str, **options: Any) -> World:
    """The world called `name`; an unknown name or option is refused with the nearest one."""
    build, config = lookup("world", name, WORLDS)
    known = world_options(name)
    for option in options:
        if option not in known:
            raise InputError(f"{name} has no option {option!r}{hint(option, known)}")
        check_type(option, options[option], known[option].type)
    return build(config(**options))


__all__ = ["ACTIONS", "WORLDS", "World", "make_world", "world_options"]
