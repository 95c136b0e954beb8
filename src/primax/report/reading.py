"""A run's folder read with patience: each part is there, or it is said why it is not."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from primax import npz, records
from primax.errors import InputError
from primax.tables import UNPACK, Table, by_seed, read_table, read_whole

T = TypeVar("T")
Floats = NDArray[np.float64]
Grid = dict[str, Floats]
"""Columns [seed, row], and `step` [row]."""
FILES = {
    "episodes": "episodes.csv",
    "windows": "windows.csv",
    "audit": "windows.csv",
    "maps": "maps.npz",
    "replays": "replays.jsonl",
}
"""Where the parts of a page come from."""


@dataclass(frozen=True)
class Gap:
    """Something a page cannot show, and why."""

    part: str
    why: str


@dataclass(frozen=True)
class Run:
    """What a folder says of itself, checked; its tables come after."""

    path: Path
    name: str
    """Its folder's, with as much of the path as tells it from the others."""
    content: dict[str, Any]
    """config.json."""
    manifest: dict[str, Any]
    method: str
    world: str
    seeds: tuple[int, ...]
    """In rising order, as the rows of every grid are."""
    gaps: tuple[Gap, ...]

    @property
    def is_finished(self) -> bool:
        return "finished" in self.manifest


def attempt(part: str, read: Callable[[], T]) -> T | Gap:
    """What `read` gives, or why there is nothing.

    A folder can be damaged in any way and a page is still to be made of the rest, so whatever goes
    wrong here is put on the page.
    """
    try:
        return read()
    except InputError as error:
        return Gap(part, str(error))
    except Exception as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())
        return Gap(part, f"{FILES.get(part, part)} cannot be used ({said})")


def open_run(path: Path, name: str) -> Run:
    """Configuration and manifest; InputError where they do not tell method, world and seeds."""
    content = _json(path / "config.json")
    world, seeds = content.get("world"), content.get("seeds")
    method = content.get("method")
    if not isinstance(world, dict) or not isinstance(seeds, list) or not isinstance(method, str):
        raise InputError(f"{path / 'config.json'} names no method, world or seeds")
    if not seeds or not all(isinstance(seed, int) for seed in seeds):
        raise InputError(f"{path / 'config.json'} has no list of seeds")
    manifest: dict[str, Any] | Gap = {}
    gaps: list[Gap] = []
    if (path / "manifest.json").exists():
        manifest = attempt("manifest", lambda: _json(path / "manifest.json"))
    else:
        gaps.append(Gap("manifest", "no manifest.json: the run was not begun, or it was removed"))
    if isinstance(manifest, Gap):
        gaps.append(manifest)
        manifest = {}
    if "finished" not in manifest:
        why = f"the run is not finished: primax resume {path} goes on with it"
        gaps.append(Gap("rest of the run", why))
    return Run(
        path,
        name,
        content,
        manifest,
        method,
        str(world.get("name", "")),
        tuple(sorted(set(seeds))),
        tuple(gaps),
    )


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise InputError(f"{path} is not what a run writes")
    return content


def grid(table: Table, num_seeds: int) -> Grid:
    """Columns a row a seed, of a table that is in order."""
    columns = {key: column.reshape(num_seeds, -1) for key, column in table.items() if key != "seed"}
    return columns | {"step": columns["step"][0]}


def read_rows(run: Run, name: str, every: int, warmup: int = 0) -> Table:
    """A table of a run in order: whole where it is finished, else as far as every seed is."""
    table = read_table(run.path / name, is_growing=not run.is_finished)
    steps = run.manifest.get("steps") if run.is_finished else None
    return by_seed(table, run.seeds, Path(name), every, steps, warmup)


def read_maps(folder: Path) -> dict[str, np.ndarray]:
    """All windows' maps, of a run that is through or of one that is not."""
    packed, raw = folder / "maps.npz", folder / "maps.raw"
    if not packed.exists() and not raw.exists():
        raise InputError("no maps.npz")
    return dict(npz.read(packed if packed.exists() else records.packed_maps(raw)))


def read_replays(folder: Path) -> list[dict[str, Any]]:
    """The recorded episodes, whole lines only."""
    if not any((folder / f"replays.jsonl{end}").exists() for end in UNPACK):
        raise InputError("no replays.jsonl")
    raw = read_whole(folder / "replays.jsonl")
    lines = raw[: raw.rfind(b"\n") + 1].decode("utf-8").splitlines()
    if not lines:
        raise InputError("replays.jsonl has no episode yet")
    return [json.loads(line) for line in lines]
