"""A run's folder as arrays a row a seed; tables may be compressed."""

import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primax.errors import InputError
from primax.tables import Table, by_seed, read_table, stored

Floats = NDArray[np.float64]
NOT_RUN, UNFINISHED = "not run", "unfinished"
"""Why a folder has no finished run."""


@dataclass(frozen=True)
class Sample:
    """A value a seed."""

    seeds: tuple[int, ...]
    values: Floats


@dataclass(frozen=True)
class RunFolder:
    """A finished run; its tables are read when they are asked for."""

    path: Path
    content: dict[str, Any]
    """config.json."""
    steps: int
    """Environment steps a seed took."""
    manifest: dict[str, Any] = field(default_factory=dict)
    """manifest.json."""

    @cached_property
    def episodes(self) -> Table:
        """By seed, then by step."""
        return self._read("episodes.csv", self.content["world"].get("horizon", 1))

    @cached_property
    def windows(self) -> Table:
        """By seed, then by step."""
        return self._read(
            "windows.csv", self.content.get("window", 1), self.content.get("warmup", 0)
        )

    def _read(self, name: str, every: int, warmup: int = 0) -> Table:
        path = self.path / name
        return by_seed(read_table(path), self.seeds, stored(path), every, self.steps, warmup)

    @property
    def seeds(self) -> tuple[int, ...]:
        """In rising order, as the rows are."""
        return tuple(sorted(int(seed) for seed in self.content["seeds"]))

    def grid(self, table: str, column: str) -> Floats | None:
        """A column as [seed, row]; None where the run did not measure it."""
        found: Table = getattr(self, table)
        return found[column].reshape(len(self.seeds), -1) if column in found else None

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting under its dotted name."""
        return _flat(self.content)


def open_run(path: Path) -> RunFolder | str:
    """A finished run, or in a word why there is none."""
    try:
        if not (path / "config.json").exists():
            if path.exists() and not path.is_dir():
                raise InputError(f"{path} is a file, not a run's folder")
            return NOT_RUN
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    content, manifest = _json(path / "config.json"), {}
    if (path / "manifest.json").exists():
        manifest = _json(path / "manifest.json")
    if "finished" not in manifest:
        return UNFINISHED
    try:
        seeds, steps = [int(seed) for seed in content["seeds"]], int(manifest["steps"])
        known = content["method"], content["world"]["name"]
    except KeyError as error:
        raise InputError(f"{path} is not a run's folder: it does not say {error}") from error
    except (TypeError, ValueError) as error:
        raise InputError(f"{path} is not a run's folder: seeds, steps or world are none") from error
    if not seeds or not all(known) or steps < 1:
        raise InputError(f"{path} is not a run's folder: it names no seed, step, method or world")
    return RunFolder(path, content, steps, manifest)


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path} cannot be read: {reason}") from error
    if not isinstance(content, dict):
        raise InputError(f"{path} is not what a run writes")
    return content


def _flat(content: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    leaves: dict[str, Any] = {}
    for name, value in content.items():
        leaves |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {}
        leaves |= {} if isinstance(value, dict) else {prefix + name: value}
    return leaves
