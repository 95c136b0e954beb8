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
from primax.worlds.noisy_class import has_noise, noisy_class
from primax.worlds.two_wings import TwoWings

WORLDS: dict[str, type[World]] = {
    "butterflies": Butterflies,
    "maze": Maze,
    "two_wings": TwoWings,
}
"""A new world is one file and one line here: every command then knows it."""


SUITES = {
    "gymnax": "primax.worlds.suites.gymnax",
    "navix": "primax.worlds.suites.navix",
    "pgx": "primax.worlds.suites.pgx",
    "xminigrid": "primax.worlds.suites.xminigrid",
}
"""Other people's worlds: `gymnax:DeepSea-bsuite`. Each module has `kind(id)`, and is imported when
one of its worlds is named."""
OBJECTS = "primax.worlds.suites.own"
"""The same for any object with reset and step: `of_object`."""


SUITE = "gymnax:DeepSea-bsuite"
"""Such a world, for people."""


NOISY = "noisy"
"""Before the name of any world: the same with noise beside it."""


def is_prefixed(name: str) -> bool:
    """Whether a name is that of a suite's world, or of one with noise beside it."""
    before, colon, _ = str(name).partition(":")
    return bool(colon) and canonical(before) in (*SUITES, NOISY)


def world_kind(name: str) -> type[World]:
    """The class of the world called `name`: ours, `SUITE:ID`, or `noisy:` and one of these.

    Else one line naming the nearest.
    """
    before, colon, id_ = str(name).partition(":")
    if not colon:
        return lookup("world", name, WORLDS)
    if canonical(before) == NOISY:
        return _with_noise(id_.strip())
    home = lookup("suite of worlds", before.strip(), {**SUITES, NOISY: ""})
    return importlib.import_module(home).kind(id_.strip())


def _with_noise(name: str) -> type[World]:
    """The class of a world with noise beside it."""
    if ":" not in name and canonical(name) not in WORLDS:
        known = [noisy.partition(":")[2] for noisy in noisy_names()]
        raise InputError(f"unknown world '{NOISY}:{name}'{hint(name, known, f'{NOISY}:')}")
    kind = world_kind(name)
    return noisy_class(kind, f"{NOISY}:{world_name(kind.options()())}")


def noisy_names() -> list[str]:
    """Our worlds with noise beside them, but those that have noise of their own."""
    return [f"{NOISY}:{name}" for name, kind in WORLDS.items() if not has_noise(kind)]


def bare_name(name: str) -> str:
    """The name of the world that there is noise beside; any other name as it is."""
    return name.removeprefix(f"{NOISY}:")


def with_noise(world: object, **options: Any) -> World:
    """A world of yours with noise beside it: with_noise(Mine(), noise_when="switch").

    `world` is a `primax.World`, or any object with `reset` and `step`. What has a name needs no
    function: it is `noisy:NAME`.
    """
    made = as_world(world)
    try:
        name = world_name(made.config)
    except InputError:
        name = f"own:{type(made).__name__}"
    kind = noisy_class(type(made), f"{NOISY}:{name}")
    own = {item.name: getattr(made.config, item.name) for item in dataclasses.fields(made.config)}
    return _of(kind, f"{NOISY}:{name}", own | options)


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
    """The world called `name`, ours or a suite's: make_world("maze", size=8); with noise beside it: "noisy:maze".

    `options` are the fields that settings call `world.*`, without that word. An unknown name or
    option is refused with the nearest one.
    """
    return _of(world_kind(name), name, options)


def _of(kind: type[World], name: str, options: dict[str, Any]) -> World:
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
        return name  # of a suite, or with noise: the options say it
    raise InputError(f"no world has options of the kind {type(options).__name__}")


__all__ = [
    "ACTIONS",
    "NOISY",
    "SUITE",
    "SUITES",
    "WORLDS",
    "GridWorld",
    "World",
    "as_world",
    "bare_name",
    "is_prefixed",
    "make_world",
    "noisy_names",
    "on_grid",
    "register_world",
    "with_noise",
    "world_kind",
    "world_name",
]
