"""Checkpoints of a run: whole or not there.

A row once appended to a table stays. A checkpoint is written beside its place, synced, and renamed
into it; it records how long every table was and a hash of that much of it. Whatever moment the
machine dies at, the newest checkpoint that verifies, with the tables cut back to what it saw, is a
moment the run was really in. The last checkpoint knows maps.npz in place of maps.raw, which then
goes. Where a finished run is made longer, both are turned back.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from primax import files
from primax.errors import InputError
from primax.runs import disk
from primax.runs.npz import Sink

KEEP = 2
"""Checkpoints at a time."""


class DamagedError(Exception):
    """A checkpoint is not what was written; the message names the file."""


@dataclass(frozen=True)
class Checkpoint:
    """A verified checkpoint: where the run stood, and the file of its state."""

    clock: int
    state: Path
    about: dict[str, Any]
    damaged: tuple[str, ...] = ()
    """What is wrong with newer ones, which were passed over."""


def save(
    folder: Path,
    clock: int,
    write: Callable[[Sink], None],
    about: dict[str, Any],
    tables: tuple[str, ...] = disk.TABLES,
) -> None:
    """Adds a checkpoint, its state written by `write`, and drops all but the newest two."""
    home = _home(folder)
    home.mkdir(exist_ok=True)
    place, temporary = home / f"{clock:09d}", home / f"{clock:09d}.part"
    for leftover in (*home.glob("*.part"), place):
        if leftover.exists():
            shutil.rmtree(leftover)
    temporary.mkdir()
    try:
        seen = {name: disk.length_and_hash(folder / name) for name in tables}
        state = disk.stream(temporary / "state.npz", write)
        content = {**about, "clock": clock, "tables": seen, "state": state}
        disk.write(temporary / "about.json", _sealed(content), "wb")
    except OSError:
        shutil.rmtree(temporary, ignore_errors=True)  # a full disk needs the space
        raise
    disk.sync_folder(temporary)
    os.replace(temporary, place)
    disk.sync_folder(home)
    for old in _places(folder)[KEEP:]:
        shutil.rmtree(old)


def amend(folder: Path, checkpoint: Checkpoint, about: dict[str, Any]) -> None:
    """Describes a checkpoint anew, as one of a run that goes on: with the tables as they are now."""
    seen = {name: disk.length_and_hash(folder / name) for name in disk.TABLES}
    content = {**checkpoint.about, **about, "tables": seen}
    disk.write_whole(checkpoint.state.with_name("about.json"), _sealed(content))


def load(folder: Path) -> tuple[Checkpoint | None, list[str]]:
    """The newest checkpoint that verifies, and what is wrong with newer ones.

    Those are renamed where an older one serves: by their number they would pass for the newest.
    """
    damaged: dict[Path, str] = {}
    for place in _places(folder):
        try:
            checkpoint = _verified(place)
            check_tables(folder, checkpoint)
        except DamagedError as error:
            damaged[place] = str(error)
            continue
        for bad in damaged:
            os.replace(bad, _unused(bad.with_name(f"{bad.name}.damaged")))
        return checkpoint, list(damaged.values())
    return None, list(damaged.values())


def newest(folder: Path) -> Checkpoint:
    """The newest checkpoint whose state verifies, for those who only read; nothing is changed."""
    damaged = []
    for place in _places(folder):
        try:
            return replace(_verified(place), damaged=tuple(damaged))
        except DamagedError as error:
            damaged.append(str(error))
    if disk.is_packed(folder):
        whole = "give the folder it was packed from, or train it again"
        raise InputError(f"{folder} is a packed run, which has no networks: {whole}")
    why = (
        damaged[0]
        if damaged
        else f"there is none yet; if nothing trains it, primax resume {folder} goes on with it"
    )
    raise InputError(f"{folder} has no checkpoint that can be used: {why}")


def newest_step(folder: Path) -> int:
    """The step of the newest checkpoint, unverified; 0 where there is none."""
    return max((int(place.name) for place in _places(folder)), default=0)


def clear(folder: Path) -> None:
    """Removes tables and checkpoints: the run is to begin again."""
    disk.keep_only(folder, ())
    if _home(folder).is_dir():
        shutil.rmtree(_home(folder))


def _unused(path: Path) -> Path:
    return path if not path.exists() else _unused(path.with_name(f"{path.name}.damaged"))


def rewind(folder: Path, checkpoint: Checkpoint) -> None:
    """Cuts the tables back to what a checkpoint saw; one it saw nothing of goes, header and all."""
    lengths = {name: length for name, (length, _) in checkpoint.about["tables"].items() if length}
    disk.keep_only(folder, tuple(lengths))
    for name, length in lengths.items():
        with files.opened(folder / name, "r+b") as file:
            file.truncate(length)
            os.fsync(file.fileno())


def _places(folder: Path) -> list[Path]:
    """Finished checkpoints, newest first."""
    home = _home(folder)
    if not home.is_dir():
        return []
    named = (place for place in home.iterdir() if re.fullmatch("[0-9]+", place.name))
    return sorted(named, reverse=True)


def _home(folder: Path) -> Path:
    """Where checkpoints are kept, and old ones removed: in the folder itself, not where a link leads."""
    home = folder / "checkpoints"
    if home.is_symlink():
        raise InputError(f"{home} is a link, and links are not followed: remove it")
    return home


def _verified(place: Path) -> Checkpoint:
    try:
        sealed = files.read_fields(place / "about.json")
        content = sealed["content"]
        is_sealed = sealed["seal"] == _seal(content) and _is_about(place, content)
        with files.opened(place / "state.npz") as file:
            state = hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedError(f"{place.name}: cannot be read ({error})") from error
    if not is_sealed:
        raise DamagedError(f"{place / 'about.json'} is damaged")
    if state != content["state"]:
        raise DamagedError(f"{place / 'state.npz'} is damaged")
    return Checkpoint(content["clock"], place / "state.npz", content)


def _is_about(place: Path, content: Any) -> bool:
    """Whether it is what `save` writes: a seal can be forged, and tables are cut by these names."""
    lengths = {name: length for name, (length, _) in content["tables"].items()}
    return (
        set(lengths) <= {*disk.TABLES, *disk.FINAL}
        and all(type(length) is int and length >= 0 for length in lengths.values())
        and type(content["clock"]) is int
        and content["clock"] == int(place.name)
        and isinstance(content.get("provenance", {}), dict)
        and isinstance(content["state"], str)
    )


def check_tables(folder: Path, checkpoint: Checkpoint) -> None:
    """Whether the tables still begin with what a checkpoint saw of them."""
    for name, (length, digest) in checkpoint.about["tables"].items():
        try:
            is_same = disk.length_and_hash(folder / name, length) == [length, digest]
        except OSError as error:
            raise DamagedError(f"{folder / name} cannot be read: {error.strerror}") from error
        if not is_same:
            place = checkpoint.state.parent.name
            raise DamagedError(f"{folder / name} was changed after checkpoint {place} was written")


def _sealed(content: dict[str, Any]) -> bytes:
    return json.dumps({"content": content, "seal": _seal(content)}, indent=1).encode()


def _seal(content: dict[str, Any]) -> str:
    body = json.dumps(content, indent=1, sort_keys=True)
    return hashlib.sha256(body.encode()).hexdigest()
