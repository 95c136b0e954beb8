"""A run's folder on disk: tables that grow, checkpoints that are whole or not there.

    config.json  manifest.json  episodes.csv  windows.csv  lock
    checkpoints/00012000/about.json, state.npz

A row once appended stays. A checkpoint is written beside its place, synced, and renamed into it;
it records how long every table was and a hash of that much of it. Whatever moment the machine dies
at, the newest checkpoint that verifies, with the tables cut back to what it saw, is a moment the
run was really in.
"""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from primax.errors import InputError

TABLES = ("episodes.csv", "windows.csv")
KEEP = 2


class DamagedError(Exception):
    """A checkpoint is not what was written; the message names the file."""


@dataclass(frozen=True)
class Checkpoint:
    """A verified checkpoint: where the run stood, and its state's bytes."""

    clock: int
    state: bytes
    about: dict[str, Any]


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file so that it is either the old one or the new one, never a part."""
    temporary = path.with_name(path.name + ".part")
    _write(temporary, content, "wb")
    os.replace(temporary, path)
    sync_folder(path.parent)


def append(path: Path, rows: bytes) -> None:
    """Adds rows at the end of a table and waits until they are on the disk."""
    _write(path, rows, "ab")


def _write(path: Path, content: bytes, mode: str) -> None:
    with path.open(mode) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Waits until the names in a folder are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def save(folder: Path, clock: int, state: bytes, about: dict[str, Any]) -> None:
    """Adds a checkpoint and drops all but the newest two."""
    home = folder / "checkpoints"
    home.mkdir(exist_ok=True)
    place, temporary = home / f"{clock:09d}", home / f"{clock:09d}.part"
    for leftover in (temporary, place):
        if leftover.exists():
            shutil.rmtree(leftover)
    temporary.mkdir()
    tables = {name: _length_and_hash(folder / name) for name in TABLES}
    content = {**about, "clock": clock, "tables": tables, "state": _hash(state)}
    body = json.dumps(content, indent=1, sort_keys=True)
    sealed = json.dumps({"content": content, "seal": _hash(body.encode())}, indent=1)
    _write(temporary / "state.npz", state, "wb")
    _write(temporary / "about.json", sealed.encode(), "wb")
    sync_folder(temporary)
    os.replace(temporary, place)
    sync_folder(home)
    for old in _places(folder)[KEEP:]:
        shutil.rmtree(old)


def load(folder: Path) -> tuple[Checkpoint | None, list[str]]:
    """The newest checkpoint that verifies, and what is wrong with newer ones.

    Those are renamed where an older one serves: by their number they would pass for the newest.
    """
    damaged: dict[Path, str] = {}
    for place in _places(folder):
        try:
            checkpoint = _verified(folder, place)
        except DamagedError as error:
            damaged[place] = str(error)
            continue
        for bad in damaged:
            os.replace(bad, _unused(bad.with_name(f"{bad.name}.damaged")))
        return checkpoint, list(damaged.values())
    return None, list(damaged.values())


def _unused(path: Path) -> Path:
    return path if not path.exists() else _unused(path.with_name(f"{path.name}.damaged"))


def clear(folder: Path) -> None:
    """Removes tables and checkpoints: the run is to begin again."""
    for name in TABLES:
        (folder / name).unlink(missing_ok=True)
    if (folder / "checkpoints").is_dir():
        shutil.rmtree(folder / "checkpoints")


def rewind(folder: Path, checkpoint: Checkpoint) -> int:
    """Cuts the tables back to what a checkpoint saw; says how many bytes went."""
    cut = 0
    for name, (length, _) in checkpoint.about["tables"].items():
        cut += (folder / name).stat().st_size - length
        with (folder / name).open("r+b") as file:
            file.truncate(length)
            os.fsync(file.fileno())
    return cut


def _places(folder: Path) -> list[Path]:
    """Finished checkpoints, newest first."""
    home = folder / "checkpoints"
    if not home.is_dir():
        return []
    return sorted((place for place in home.iterdir() if place.name.isdigit()), reverse=True)


def _verified(folder: Path, place: Path) -> Checkpoint:
    try:
        sealed = json.loads((place / "about.json").read_bytes())
        content = sealed["content"]
        body = json.dumps(content, indent=1, sort_keys=True)
        is_sealed = sealed["seal"] == _hash(body.encode())
        state = (place / "state.npz").read_bytes()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DamagedError(f"{place.name}: cannot be read ({error})") from error
    if not is_sealed:
        raise DamagedError(f"{place / 'about.json'} is damaged")
    if _hash(state) != content["state"]:
        raise DamagedError(f"{place / 'state.npz'} is damaged")
    for name, (length, digest) in content["tables"].items():
        if _length_and_hash(folder / name, length) != [length, digest]:
            raise DamagedError(f"{folder / name} is not the table checkpoint {place.name} saw")
    return Checkpoint(int(content["clock"]), state, content)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _length_and_hash(path: Path, length: int | None = None) -> list[Any]:
    content = path.read_bytes()[:length] if path.exists() else b""
    return [len(content), _hash(content)]


@contextmanager
def locked(folder: Path) -> Generator[None]:
    """Holds the folder for this process; the system lets go when the process ends, however it ends."""
    try:
        file = (folder / "lock").open("a")
    except OSError as error:
        raise InputError(f"cannot lock {folder}: {error.strerror}") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"{folder} is in use by another process") from None
        yield
