"""The one reader of runs: what a folder holds, checked, and in one line what is wrong with it.

A folder is of a run that is finished, going on, or packed. Configuration and manifest are read
when it is opened, everything else when it is asked for.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primax import files
from primax.agent.learner import Learner
from primax.agent.training import state_like
from primax.config.schema import Config
from primax.config.seeds import check_seeds
from primax.errors import InputError
from primax.methods import find_world
from primax.runs import checkpoints, disk, npz, records, trees
from primax.runs.config_json import from_json, unsaid
from primax.runs.tables import (
    FURTHEST,
    Table,
    by_seed,
    read_table,
    read_whole,
    rows_by_seed,
    stored,
)
from primax.worlds import WORLDS, world_name

Floats = NDArray[np.float64]
NOT_RUN, UNFINISHED, BROKEN = "not run", "unfinished", "broken"
"""Why a run cannot be used."""
NO_REPLAYS = "none are recorded where episodes end when they like; primax watch plays fresh ones"


@dataclass(frozen=True)
class Unusable:
    """A run that cannot be used."""

    why: str
    """In a few words."""
    reason: str = ""
    """One line that says what is wrong, where something is."""


@dataclass(frozen=True)
class Run:
    """What a folder says of itself, and its tables and records when they are asked for."""

    path: Path
    content: dict[str, Any]
    """config.json."""
    manifest: dict[str, Any] = field(default_factory=dict)
    """manifest.json; empty before the run began, or where it cannot be read."""
    damage: str = ""
    """Why manifest.json cannot be read."""

    @property
    def method(self) -> str:
        return str(self.content["method"])

    @property
    def world(self) -> str:
        """The world's name."""
        return str(self.content["world"].get("name", ""))

    @property
    def seeds(self) -> tuple[int, ...]:
        """In rising order, as the rows of every table are."""
        return tuple(sorted(set(self.content["seeds"])))

    @property
    def is_finished(self) -> bool:
        return is_finished(self.manifest)

    @property
    def steps(self) -> int | None:
        """Environment steps a seed took; None while the run goes on."""
        return self.manifest["steps"] if self.is_finished else None

    @property
    def devices(self) -> int:
        """How many its seeds were shared out among, the last time somebody worked on it."""
        return devices_in(self.manifest)

    def digest(self, name: str) -> str | None:
        """Of one of the run's files, uncompressed, as it was when the run had finished."""
        files = self.manifest.get("files") if self.is_finished else None
        return str(files[name]) if isinstance(files, dict) and name in files else None

    def keeps(self, name: str) -> bool:
        """Whether a file belongs to the run: `primax pack --keep episodes` leaves most of them out."""
        files = self.manifest.get("files") if self.is_finished else None
        return not isinstance(files, dict) or name in files or "windows.csv" in files

    def _check_kept(self, name: str) -> None:
        if not self.keeps(name):
            what = "episodes and maps" if self.keeps("maps.npz") else "episodes"
            raise InputError(f"of {self.path} only the {what} were kept: it has no {name}")

    def check_made(self) -> None:
        """Refuses a manifest that cannot be read, or tells of another length than config.json."""
        if self.damage:
            raise InputError(self.damage)
        if self.steps not in (None, self.config.total_steps):
            both = (
                f"{self.steps:,} steps in manifest.json, {self.config.total_steps:,} in config.json"
            )
            raise InputError(f"{self.path} is not the run its files tell of: {both}")

    @property
    def parts(self) -> list[dict[str, Any]]:
        """What is known of each part the run was made in."""
        listed = self.manifest.get("parts")
        return (
            [part for part in listed if isinstance(part, dict)] if isinstance(listed, list) else []
        )

    def seconds(self, kind: str) -> list[float | None]:
        """What each part took to compile (`compile_s`) or to run (`run_s`), where that is known."""
        known = (part.get(kind) for part in self.parts)
        return [
            float(value) if isinstance(value, int | float) and abs(value) < FURTHEST else None
            for value in known
        ]

    @cached_property
    def config(self) -> Config:
        """The configuration, where this version can have it."""
        return self._configured[0]

    @cached_property
    def given_seeds(self) -> tuple[int, ...]:
        """In the order they were given, as the rows of a state are."""
        return self._configured[1]

    @cached_property
    def _configured(self) -> tuple[Config, tuple[int, ...]]:
        try:
            return from_json(self.content)
        except (ValueError, KeyError, TypeError) as error:
            path = self.path / "config.json"
            raise InputError(f"{path} is not a configuration of this version: {error}") from error

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting under its dotted name, as config.json has it."""
        return dict(leaves(self.content))

    @property
    def unsaid(self) -> tuple[str, ...]:
        """Settings that config.json does not give; `config` then has today's defaults."""
        try:
            return unsaid(self.content)
        except (ValueError, KeyError, TypeError):
            return ()  # of a method or with a field this version does not have

    @cached_property
    def episodes(self) -> Table:
        """By seed, then by step: whole where the run is finished, else as far as every seed is.

        Where episodes end when they like, seeds may have more and fewer of them.
        """
        every = 1 if self.is_free else self.content["world"].get("horizon", 1)
        return self._rows("episodes.csv", every)

    @cached_property
    def windows(self) -> Table:
        """The same for windows."""
        return self._rows(
            "windows.csv", self.content.get("window", 1), self.content.get("warmup", 0)
        )

    def _rows(self, name: str, every: Any, warmup: Any = 0) -> Table:
        is_whole = all(type(number) is int for number in (every, warmup))
        if not is_whole or not 1 <= every < FURTHEST or not 0 <= warmup < FURTHEST:
            odd = f"it has {every!r} steps for a row of {name}"
            raise InputError(f"{self.path / 'config.json'} is not a configuration: {odd}")
        self._check_kept(name)
        path = self.path / name
        is_free = name == "episodes.csv" and self.can_end
        table = read_table(path, not self.is_finished, self.digest(name), is_free)
        return by_seed(table, self.seeds, stored(path), every, self.steps, warmup, is_free)

    @property
    def is_free(self) -> bool:
        """Whether it was in a world of another suite, with episodes of any length and no grid."""
        try:
            return self.config.is_free
        except InputError:  # of a world that is not here: those of suites need no horizon
            return self.world not in WORLDS and self.content["world"].get("horizon", 1) is None

    @property
    def can_end(self) -> bool:
        """Whether episodes end when they like: seeds may then have more and fewer of them."""
        try:
            return find_world(world_name(self.config.world))[0].can_end
        except InputError:  # tables of a world that is not here can be read all the same
            return self.is_free

    def as_written(self, name: str) -> Table:
        """`episodes` or `windows` in the order of the file: window by window, then by seed."""
        getattr(self, name)  # refuses what is not whole, or was changed
        return read_table(self.path / f"{name}.csv", may_be_empty=self.can_end)

    def grid(self, table: str, column: str) -> Floats | None:
        """A column of `episodes` or `windows` as [seed, row]; None where it was not measured or kept.

        Where seeds have more and fewer rows, the missing ones are not numbers.
        """
        if not self.keeps(f"{table}.csv"):
            return None
        found: Table = getattr(self, table)
        return rows_by_seed(found, self.seeds, column) if column in found else None

    @property
    def has_maps(self) -> bool:
        """Whether its states are cells of a grid, which can be drawn."""
        return not self.is_free and self.content.get("keys") is None

    def maps(self) -> dict[str, np.ndarray]:
        """All windows' maps, of a run that is finished or of one that is not."""
        self._check_kept("maps.npz")
        packed, raw = self.path / "maps.npz", self.path / "maps.raw"
        if not packed.exists() and not raw.exists():
            why = "this world has no grid to draw" if self.is_free else "states are no cells here"
            raise InputError("no maps.npz" if self.has_maps else why)
        try:
            is_whole = packed.exists() and (self.is_finished or not raw.exists())
            digest = self.digest("maps.npz")
            made = read_whole(packed, digest) if is_whole else records.packed_maps(raw)
            maps = dict(npz.read(made))
        except (OSError, npz.NpzError) as error:
            raise InputError(f"maps.npz of {self.path} cannot be read: {error}") from error
        records.check_maps(maps, self.seeds)
        return maps

    def replays(self) -> list[dict[str, Any]]:
        """The recorded episodes, whole lines only."""
        self._check_kept("replays.jsonl")
        path = self.path / "replays.jsonl"
        if not stored(path).exists():
            raise InputError(NO_REPLAYS if self.can_end else "no replays.jsonl")
        try:
            raw = read_whole(path, self.digest("replays.jsonl"))
            lines = raw[: raw.rfind(b"\n") + 1].splitlines()
            episodes = [files.from_json(line) for line in lines]
        except (OSError, ValueError) as error:
            raise InputError(f"{stored(path)} cannot be read: {error}") from error
        if not lines:
            raise InputError(NO_REPLAYS if self.can_end else "replays.jsonl has no episode yet")
        if not all(isinstance(episode, dict) for episode in episodes):
            raise InputError(f"{stored(path)} is not what a run writes: a line holds no fields")
        return episodes

    @cached_property
    def checkpoint(self) -> checkpoints.Checkpoint:
        """The newest whose state verifies."""
        is_gone = self.is_finished and not checkpoints.newest_step(self.path)
        if is_gone and not disk.is_packed(self.path):
            raise InputError(f"{self.path} has no checkpoints any more: its networks are gone")
        return checkpoints.newest(self.path)

    def state(self, learner: Learner) -> Any:
        """What the newest checkpoint holds, for every seed in the order given."""
        return trees.restore(self.checkpoint.state, state_like(learner, len(self.given_seeds)))


def devices_in(made: dict[str, Any]) -> int:
    """Of how many a manifest or a checkpoint tells; older ones do not say it, and had one."""
    num = made.get("devices")
    return num if type(num) is int and num > 0 else 1


def is_finished(manifest: dict[str, Any]) -> bool:
    """Whether a run is through, by its manifest."""
    return "finished" in manifest


def open_run(path: Path) -> Run:
    """A run's folder, finished or not; refused in one line where it does not say what it holds."""
    try:
        content = files.read_fields(path / "config.json")
    except OSError as error:
        says = "config.json cannot be read; give the folder of primax train --out"
        if inside := [run for run in _runs_in(path) if run != path]:
            says = f"it contains {len(inside)}; give one of them, such as {inside[0]}"
        raise InputError(f"{path} holds no run: {says}") from error
    except ValueError as error:
        raise InputError(
            f"{path / 'config.json'} is damaged, restore it from a copy: {error}"
        ) from error
    _check_content(path, content)
    try:
        manifest, damage = read_manifest(path), ""
    except InputError as error:
        manifest, damage = {}, str(error)
    steps = manifest.get("steps")
    if is_finished(manifest) and not (type(steps) is int and 0 < steps < FURTHEST):
        raise InputError(f"{path / 'manifest.json'} does not say how many steps the run took")
    run = Run(path, content, manifest, damage)
    try:
        read_whole(path / "config.json", run.digest("config.json"))
    except InputError as error:
        raise InputError(f"{error}{_for_steps(run)}") from error
    return run


def _runs_in(path: Path) -> list[Path]:
    try:
        return disk.runs_in(path)
    except InputError:  # not a folder
        return []


def _for_steps(run: Run) -> str:
    """How a run is made longer, where somebody has tried by editing its configuration."""
    try:
        is_other = run.config.total_steps != run.steps and not disk.is_packed(run.path)
    except InputError:
        return ""
    return f"; primax resume {run.path} --steps N makes a run longer" if is_other else ""


def find_run(path: Path) -> Run | Unusable:
    """A finished run, or why there is none."""
    try:
        if not (path / "config.json").exists():
            if path.exists() and not path.is_dir():
                return Unusable(BROKEN, f"{path} is a file, not a run's folder")
            return Unusable(NOT_RUN)
        run = open_run(path)
    except OSError as error:
        return Unusable(BROKEN, f"{path} cannot be read: {error.strerror}")
    except InputError as error:
        return Unusable(BROKEN, str(error))
    if run.damage or not run.world:
        return Unusable(BROKEN, run.damage or f"{path / 'config.json'} names no world")
    return run if run.is_finished else Unusable(UNFINISHED)


def check_same(folder: Path, config: Config, seeds: tuple[int, ...]) -> None:
    """Refuses a folder of another configuration."""
    run = open_run(folder)
    if (run.config, run.given_seeds) != (config, seeds):
        raise InputError(
            f"{folder} holds a run with other settings: move it, or choose another --out"
        )


def reached(folder: Path) -> int:
    """The last step the tables tell of, by whole rows only: what comes after them is cut anyway."""
    path = folder / "episodes.csv"
    lines = files.read(path).split(b"\n")[1:-1] if path.exists() else []
    steps = (line.split(b",")[2:3] for line in reversed(lines))
    return next((int(step) for (step,) in filter(None, steps) if step.isdigit()), 0)


def read_manifest(folder: Path) -> dict[str, Any]:
    """What is known of how a run was made; empty before it began."""
    path = folder / "manifest.json"
    try:
        return files.read_fields(path) if path.exists() else {}
    except (OSError, ValueError) as error:
        says = "remove it to resume from the newest checkpoint"
        if disk.is_packed(folder):
            says = "restore it from a copy"
        raise InputError(f"{path} is damaged: {says}") from error


def _check_content(path: Path, content: dict[str, Any]) -> None:
    """Refuses a configuration that does not name method, world and seeds."""
    world, seeds, method = (content.get(name) for name in ("world", "seeds", "method"))
    is_named = isinstance(world, dict) and isinstance(method, str) and isinstance(seeds, list)
    if not is_named or not method:
        names = "it names no method, world or seeds"
        raise InputError(f"{path / 'config.json'} is not a configuration: {names}")
    try:
        check_seeds(seeds)
    except InputError as error:
        where = path / "config.json"
        raise InputError(f"{where} is not a configuration of this version: {error}") from error


def leaves(content: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """What nested tables hold, under dotted names."""
    for name, value in content.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value
