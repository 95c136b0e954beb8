"""A run's folder on disk: tables that grow, checkpoints that are whole or not there.

    config.json  manifest.json  episodes.csv  windows.csv  maps.raw  replays.jsonl  lock
    checkpoints/00012000/about.json, state.npz

A row once appended stays. A checkpoint is written beside its place, synced, and renamed into it;
it records how long every table was and a hash of that much of it. Whatever moment the machine dies
at, the newest checkpoint that verifies, with the tables cut back to what it saw, is a moment the
run was really in. The last checkpoint knows maps.npz in place of maps.raw, which then goes.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from primax.errors import InputError
from primax.npz import Sink

TABLES = ("episodes.csv", "windows.csv", "maps.raw", "replays.jsonl")
FINAL = ("episodes.csv", "windows.csv", "maps.npz", "replays.jsonl")
"""The tables of a run that is through."""
KEEP = 2
CHUNK = 1 << 20


class DamagedError(Exception):
    """A checkpoint is not what was written; the message names the file."""


@dataclass(frozen=True)
class Checkpoint:
    """A verified checkpoint: where the run stood, and the file of its state."""

    clock: int
    state: Path
    about: dict[str, Any]


class _Hashing:
    """A file that hashes what is written to it."""

    def __init__(self, file: BinaryIO):
        self.file, self.hash = file, hashlib.sha256()

    def write(self, content: Any) -> int:
        self.hash.update(content)
        return self.file.write(content)

    def flush(self) -> None:
        self.file.flush()


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file so that it is either the old one or the new one, never a part."""
    temporary = path.with_name(path.name + ".part")
    try:
        _write(temporary, content, "wb")
        os.replace(temporary, path)
    except OSError:
        if temporary.exists():
            temporary.unlink()
        raise
    sync_folder(path.parent)


def append(path: Path, rows: bytes) -> None:
    """Adds rows at the end of a table and waits until they are on the disk."""
    _write(path, rows, "ab")


def _write(path: Path, content: bytes, mode: str) -> None:
    with path.open(mode) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _stream(path: Path, write: Callable[[Sink], None]) -> str:
    """Writes a file piece by piece; returns the hash of it all."""
    with path.open("wb") as file:
        hashing = _Hashing(file)
        write(hashing)
        file.flush()
        os.fsync(file.fileno())
    return hashing.hash.hexdigest()


def sync_folder(path: Path) -> None:
    """Waits until the names in a folder are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def save(
    folder: Path,
    clock: int,
    write: Callable[[Sink], None],
    about: dict[str, Any],
    tables: tuple[str, ...] = TABLES,
) -> None:
    """Adds a checkpoint, its state written by `write`, and drops all but the newest two."""
    home = folder / "checkpoints"
    home.mkdir(exist_ok=True)
    place, temporary = home / f"{clock:09d}", home / f"{clock:09d}.part"
    for leftover in (*home.glob("*.part"), place):
        if leftover.exists():
            shutil.rmtree(leftover)
    temporary.mkdir()
    try:
        seen = {name: _length_and_hash(folder / name) for name in tables}
        state = _stream(temporary / "state.npz", write)
        content = {**about, "clock": clock, "tables": seen, "state": state}
        sealed = {"content": content, "seal": _seal(content)}
        _write(temporary / "about.json", json.dumps(sealed, indent=1).encode(), "wb")
    except OSError:
        shutil.rmtree(temporary, ignore_errors=True)  # a full disk needs the space
        raise
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
            checkpoint = _verified(place)
            _check_tables(folder, checkpoint)
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
            return _verified(place)
        except DamagedError as error:
            damaged.append(str(error))
    if is_packed(folder):
        whole = "give the folder it was packed from, or train it anew"
        raise InputError(f"{folder} is a packed run, which carries no networks: {whole}")
    why = damaged[0] if damaged else f"there is none; primax resume {folder} goes on"
    raise InputError(f"{folder} has no checkpoint that can be used: {why}")


def is_packed(folder: Path) -> bool:
    """Whether a run's tables are compressed: it can be read, and not gone on with."""
    table = folder / "episodes.csv"
    packed = [table.with_name(f"{table.name}{end}") for end in (".bz2", ".gz")]
    return not table.exists() and any(path.exists() for path in packed)


def newest_step(folder: Path) -> int:
    """The step of the newest checkpoint, unverified; 0 where there is none."""
    return max((int(place.name) for place in _places(folder)), default=0)


def runs_in(folder: Path) -> list[Path]:
    """A run's folder itself, or those in it (in a reproduction: in its `runs`), by name."""
    try:
        if not folder.is_dir():
            raise InputError(f"{folder} is not a folder")
        if (folder / "config.json").exists():
            return [folder]
        home = folder / "runs" if (folder / "runs").is_dir() else folder
        return sorted(path for path in home.iterdir() if (path / "config.json").exists())
    except OSError as error:
        raise InputError(f"cannot read {folder}: {error.strerror}") from error


def _unused(path: Path) -> Path:
    return path if not path.exists() else _unused(path.with_name(f"{path.name}.damaged"))


def clear(folder: Path) -> None:
    """Removes tables and checkpoints: the run is to begin again."""
    keep_only(folder, ())
    if (folder / "checkpoints").is_dir():
        shutil.rmtree(folder / "checkpoints")


def keep_only(folder: Path, tables: tuple[str, ...]) -> None:
    """Removes the tables that are not named."""
    for name in {*TABLES, *FINAL} - set(tables):
        (folder / name).unlink(missing_ok=True)
    sync_folder(folder)


def rewind(folder: Path, checkpoint: Checkpoint) -> None:
    """Cuts the tables back to what a checkpoint saw; one it saw nothing of goes, header and all."""
    lengths = {name: length for name, (length, _) in checkpoint.about["tables"].items() if length}
    keep_only(folder, tuple(lengths))
    for name, length in lengths.items():
        with (folder / name).open("r+b") as file:
            file.truncate(length)
            os.fsync(file.fileno())


def _places(folder: Path) -> list[Path]:
    """Finished checkpoints, newest first."""
    home = folder / "checkpoints"
    if not home.is_dir():
        return []
    return sorted((place for place in home.iterdir() if place.name.isdigit()), reverse=True)


def _verified(place: Path) -> Checkpoint:
    try:
        sealed = json.loads((place / "about.json").read_bytes())
        content = sealed["content"]
        is_sealed = sealed["seal"] == _seal(content)
        with (place / "state.npz").open("rb") as file:
            state = hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DamagedError(f"{place.name}: cannot be read ({error})") from error
    if not is_sealed:
        raise DamagedError(f"{place / 'about.json'} is damaged")
    if state != content["state"]:
        raise DamagedError(f"{place / 'state.npz'} is damaged")
    return Checkpoint(int(content["clock"]), place / "state.npz", content)


def _check_tables(folder: Path, checkpoint: Checkpoint) -> None:
    """Whether the tables still begin with what a checkpoint saw of them."""
    for name, (length, digest) in checkpoint.about["tables"].items():
        if _length_and_hash(folder / name, length) != [length, digest]:
            place = checkpoint.state.parent.name
            raise DamagedError(f"{folder / name} is not the table checkpoint {place} saw")


def _seal(content: dict[str, Any]) -> str:
    body = json.dumps(content, indent=1, sort_keys=True)
    return hashlib.sha256(body.encode()).hexdigest()


def _length_and_hash(path: Path, length: int | None = None) -> list[Any]:
    """Of the first `length` bytes, or of all; a file that is not there is empty."""
    left = path.stat().st_size if path.exists() else 0
    left, size, digest = left if length is None else min(left, length), 0, hashlib.sha256()
    if left:
        with path.open("rb") as file:
            while chunk := file.read(min(CHUNK, left - size)):
                digest.update(chunk)
                size += len(chunk)
    return [size, digest.hexdigest()]
