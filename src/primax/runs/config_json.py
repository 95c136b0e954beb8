"""A configuration as JSON, and back; where a run's folder begins."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from primax.config.fields import Later, walk
from primax.config.schema import (
    Config,
    CriticsConfig,
    ExploreConfig,
    KeysConfig,
    MixConfig,
    NetConfig,
    StartConfig,
)
from primax.config.seeds import check_seeds
from primax.errors import InputError
from primax.methods import known_method
from primax.runs import disk
from primax.worlds import WORLDS, bare_name, world_kind, world_name

T = TypeVar("T")
Seeds = tuple[int, ...]
PLUGIN = (
    "if it is in a package of your own, add --plugin PACKAGE (in Python, import the package first)"
)
"""What may be missing where a folder names a method or world that is not known."""


def create(
    folder: Path, config: Config, seeds: Seeds, beside: Mapping[str, bytes] | None = None
) -> None:
    """Makes the folder and puts the configuration on the disk, before anything costs time.

    Files that belong `beside` it come first, so that a folder with a configuration has them.
    """
    beside = beside or {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / "config.json").exists():
            raise InputError(f"{folder} holds a run: primax resume {folder} goes on with it")
        # A process that was killed before its first file had its name may have left a part of it.
        begun = {f"{name}{disk.PART}" for name in ("config.json", *beside)} | set(beside)
        if any(path.name not in begun for path in folder.iterdir()):
            raise InputError(
                f"{folder} is not empty and holds no run: choose another folder, or remove it"
            )
        for name, content in beside.items():
            disk.write_whole(folder / name, content)
        disk.write_whole(folder / "config.json", to_bytes(as_json(config, seeds)))
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror}") from error


def as_json(config: Config, seeds: Seeds) -> dict[str, Any]:
    """The resolved configuration, with the world's and the seeds' names."""
    content = asdict(config)
    content["world"] = {"name": world_name(config.world), **content["world"]}
    content = {name: group for name, group in content.items() if group is not None}
    return {**content, "seeds": list(seeds)}


def from_json(content: dict[str, Any]) -> tuple[Config, Seeds]:
    """What `as_json` was made from; ValueError, KeyError or TypeError where it was not."""
    content = dict(content)
    seeds, world = tuple(content.pop("seeds")), dict(content.pop("world"))
    name = world.pop("name")
    if ":" not in bare_name(name):
        _known("world", name, WORLDS.get(bare_name(name)))
    kind = world_kind(name)
    options = kind.options()(**world)
    groups = {"net": NetConfig, "critics": CriticsConfig, "explore": ExploreConfig}
    some = {"mix": MixConfig, "start": StartConfig, "keys": KeysConfig}
    groups = {**groups, **{name: kind for name, kind in some.items() if name in content}}
    content |= {name: group(**content[name]) for name, group in groups.items()}
    entry = _known("method", content["method"], known_method(content["method"]))
    content["reward"] = entry.options(**content["reward"])
    config = Config(world=options, **content)
    for field in walk(config):  # options may be of a class that checks nothing itself
        field.check()
    check_seeds(seeds)
    if "\n" not in (layout := str(getattr(options, "layout", ""))) and layout.endswith(".txt"):
        raise ValueError("world.layout names a file; a run keeps the map itself")
    return config, seeds


def _known(kind: str, name: str, found: T | None) -> T:
    """The method or world that a folder names, if it was found."""
    if found is None:
        raise ValueError(f"there is no {kind} {name!r}; {PLUGIN}")
    return found


def unsaid(content: dict[str, Any]) -> tuple[str, ...]:
    """Fields a config.json does not give, by dotted name: `from_json` takes today's defaults.

    Not those that came later with a default that is what was done before.
    """
    config, seeds = from_json(content)
    later = {field.name for field in walk(config) if Later() in field.rules}
    gone = _missing(content, as_json(config, seeds))
    return tuple(name for name in gone if name not in later)


def _missing(content: dict[str, Any], whole: dict[str, Any], prefix: str = "") -> tuple[str, ...]:
    names: list[str] = []
    for name, value in whole.items():
        if isinstance(value, dict):
            names += _missing(content.get(name, {}), value, f"{prefix}{name}.")
        elif name not in content:
            names.append(prefix + name)
    return tuple(names)


def to_bytes(content: dict[str, Any]) -> bytes:
    """JSON as all files of a run are written."""
    return (json.dumps(content, indent=1) + "\n").encode()
