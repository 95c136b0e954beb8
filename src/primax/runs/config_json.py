"""A configuration as JSON, and back; where a run's folder begins."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from primax.config.fields import Later, walk
from primax.config.schema import Config, CriticsConfig, ExploreConfig, NetConfig
from primax.config.seeds import check_seeds
from primax.errors import InputError
from primax.methods import METHODS
from primax.runs import disk
from primax.worlds import WORLDS, world_name

T = TypeVar("T")
Seeds = tuple[int, ...]
PLUGIN = (
    "if it is in a package of your own, add --plugin PACKAGE (in Python, import the package first)"
)
"""What may be missing where a folder names a method or world that is not known."""


def create(folder: Path, config: Config, seeds: Seeds) -> None:
    """Makes the folder and puts the configuration on the disk, before anything costs time."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / "config.json").exists():
            raise InputError(f"{folder} holds a run: primax resume {folder} goes on with it")
        # A process that was killed before its first file had its name may have left a part of it.
        if any(path.name != f"config.json{disk.PART}" for path in folder.iterdir()):
            raise InputError(
                f"{folder} is not empty and holds no run: choose another folder, or remove it"
            )
        disk.write_whole(folder / "config.json", to_bytes(as_json(config, seeds)))
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror}") from error


def as_json(config: Config, seeds: Seeds) -> dict[str, Any]:
    """The resolved configuration, with the world's and the seeds' names."""
    content = asdict(config)
    content["world"] = {"name": world_name(config.world), **content["world"]}
    return {**content, "seeds": list(seeds)}


def from_json(content: dict[str, Any]) -> tuple[Config, Seeds]:
    """What `as_json` was made from; ValueError, KeyError or TypeError where it was not."""
    content = dict(content)
    seeds, world = tuple(content.pop("seeds")), dict(content.pop("world"))
    options = _known("world", world.pop("name"), WORLDS).options()(**world)
    groups = {"net": NetConfig, "critics": CriticsConfig, "explore": ExploreConfig}
    content |= {name: group(**content[name]) for name, group in groups.items()}
    content["reward"] = _known("method", content["method"], METHODS).options(**content["reward"])
    config = Config(world=options, **content)
    for field in walk(config):  # options may be of a class that checks nothing itself
        field.check()
    check_seeds(seeds)
    if "\n" not in (layout := str(getattr(options, "layout", ""))) and layout.endswith(".txt"):
        raise ValueError("world.layout names a file; a run keeps the map itself")
    return config, seeds


def _known(kind: str, name: str, table: Mapping[str, T]) -> T:
    """The method or world that a folder names."""
    if name not in table:
        raise ValueError(f"there is no {kind} {name!r}; {PLUGIN}")
    return table[name]


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
