"""Worlds: pure functions that jit, vmap and scan. `make_world(name, **options)` builds one."""

import dataclasses
from typing import Any

from primax.config.fields import check_values
from primax.errors import InputError, hint, lookup
from primax.worlds.base import World
from primax.worlds.butterflies import Butterflies
from primax.worlds.grid import ACTIONS
from primax.worlds.maze import Maze
from primax.worlds.two_wings import TwoWings

WORLDS: dict[str, type[World]] = {
    "butterflies": Butterflies,
    "maze": Maze,
    "two_wings": TwoWings,
}
"""A new world is one file and one line here: every command then knows it."""


def make_world(name: str, **options: Any) -> World:
    """The world called `name`; an unknown name or option is refused with the nearest one."""
    kind = lookup("world", name, WORLDS)
    known = [field.name for field in dataclasses.fields(kind.options())]
    for option in options:
        if option not in known:
            raise InputError(f"{name} has no option {option!r}{hint(option, known)}")
    check_values(kind.options(), options)
    return kind.of(kind.options()(**options))


def world_name(options: object) -> str:
    """The name of the world these options belong to."""
    for name, kind in WORLDS.items():
        if type(options) is kind.options():
            return name
    raise InputError(f"no world has options of the kind {type(options).__name__}")


__all__ = ["ACTIONS", "WORLDS", "World", "make_world", "world_name"]
