"""A configuration as JSON, and back; where a run's folder begins."""

import json
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

from primax import folder as disk
from primax.config import Config, CriticsConfig, ExploreConfig, NetConfig
from primax.errors import InputError
from primax.methods import METHODS, world_name
from primax.settings import check_type
from primax.worlds import WORLDS

Seeds = tuple[int, ...]


def create(folder: Path, config: Config, seeds: Seeds) -> None:
    """Makes the folder and puts the configuration on the disk, before anything costs time."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / "config.json").exists():
            raise InputError(f"{folder} holds a run: primax resume {folder} goes on with it")
        if any(folder.iterdir()):
            raise InputError(f"{folder} is not empty: choose another folder, or remove it")
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
    options = WORLDS[world.pop("name")][1](**world)
    groups = {"net": NetConfig, "critics": CriticsConfig, "explore": ExploreConfig}
    content |= {name: group(**content[name]) for name, group in groups.items()}
    content["reward"] = METHODS[content["method"]].options(**content["reward"])
    config = Config(world=options, **content)
    _check_types(config)
    if not seeds or not all(type(seed) is int for seed in seeds):
        raise ValueError(f"seeds takes whole numbers, got {seeds}")
    return config, seeds


def _check_types(config: Any, prefix: str = "") -> None:
    """Of every field: ranges, which are checked elsewhere, let `true` and 2.5 pass for numbers."""
    kinds = get_type_hints(type(config))
    for field in fields(config):
        value, name = getattr(config, field.name), prefix + field.name
        if is_dataclass(value):
            _check_types(value, f"{name}.")
        else:
            check_type(name, value, kinds[field.name])


def read_config(folder: Path) -> tuple[Config, Seeds]:
    """The configuration and the seeds a folder was made for."""
    path = folder / "config.json"
    try:
        content = json.loads(path.read_bytes())
        if not isinstance(content, dict):
            raise ValueError("it holds no fields")
    except OSError as error:
        says = f"{path.name} cannot be read; give the folder of primax train --out"
        raise InputError(f"{folder} holds no run: {says}") from error
    except ValueError as error:
        raise InputError(f"{path} is damaged, restore it from a copy: {error}") from error
    try:
        return from_json(content)
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is not a configuration of this version: {error}") from error


def unsaid(content: dict[str, Any]) -> tuple[str, ...]:
    """Fields a config.json does not give, by dotted name: `from_json` takes today's defaults."""
    return _missing(content, as_json(*from_json(content)))


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
