"""Worlds: pure functions that jit, vmap and scan. `make_world(name, **options)` builds one."""

import dataclasses
import importlib
import re
from typing import Any

from primax.config.fields import check_values
from primax.errors import InputError, canonical, hint, lookup
from primax.worlds.base import GridWorld, World, on_grid
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


SUITES = {
    "gymnax": "primax.worlds.suites.gymnax",
    "pgx": "primax.worlds.suites.pgx",
    "xminigrid": "primax.worlds.suites.xminigrid",
}
"""Other people's worlds: `gymnax:DeepSea-bsuite`. Each module has `kind(id)`, and is imported when
one of its worlds is named."""
OBJECTS = "primax.worlds.suites.own"
"""The same for any object with reset and step: `of_object`."""


SUITE = "gymnax:DeepSea-bsuite"
"""Such a world, for people."""


def is_suite(name: str) -> bool:
    """Whether a name is that of a suite's world."""
    suite, colon, _ = str(name).partition(":")
    return bool(colon) and canonical(suite) in SUITES


def world_kind(name: str) -> type[World]:
    """The class of the world called `name`, ours or `SUITE:ID`; else one line naming the nearest."""
    suite, colon, id_ = str(name).partition(":")
    if not colon:
        return lookup("world", name, WORLDS)
    home = importlib.import_module(lookup("suite of worlds", suite.strip(), SUITES))
    return home.kind(id_.strip())


def as_world(world: object) -> World:
    """A world object as it is, or a world made of an object with reset and step."""
    return world if isinstance(world, World) else importlib.import_module(OBJECTS).of_object(world)


def register_world(name: Any, world: object) -> None:
    """Keeps an environment of your own under a name: then commands and folders know it too.

    It is an object with reset and step, or one of a suite. Whoever reads a run in it must call
    this before, with the same name; a package of worlds does so when it is imported.
    """
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name):
        raise InputError(f"register_world takes a name of letters, digits, _ and -, got {name!r}")
    known = WORLDS.get(canonical(name))
    if known is not None and not hasattr(known, "of_defaults"):
        raise InputError(f"register_world: {canonical(name)} is a world of Primax already")
    kind = importlib.import_module(OBJECTS).world_of(world, f"own:{canonical(name)}")
    kind.of_defaults()  # refused here, where it is no world
    WORLDS[canonical(name)] = kind


def make_world(name: str, **options: Any) -> World:
    """The world called `name`, ours or a suite's: make_world("maze", size=8).

    `options` are the fields that settings call `world.*`, without that word. An unknown name or
    option is refused with the nearest one.
    """
    kind = world_kind(name)
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
    if isinstance(name := getattr(options, "world_name", None), str):
        return name  # of a suite: the options say it
    raise InputError(f"no world has options of the kind {type(options).__name__}")


__all__ = [
    "ACTIONS",
    "SUITE",
    "SUITES",
    "WORLDS",
    "GridWorld",
    "World",
    "as_world",
    "is_suite",
    "make_world",
    "on_grid",
    "register_world",
    "world_kind",
    "world_name",
]
