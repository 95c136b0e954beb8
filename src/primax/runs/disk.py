"""Files of a run's folder: written whole or not at all, tables that only grow, hashes of both.

    config.json  manifest.json  episodes.csv  windows.csv  maps.raw  replays.jsonl  lock
    checkpoints/00012000/about.json, state.npz

A finished run has maps.npz in place of maps.raw.
"""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from primax import files
from primax.errors import InputError
from primax.runs.npz import Sink

TABLES = ("episodes.csv", "windows.csv", "maps.raw", "replays.jsonl")
FINAL = ("episodes.csv", "windows.csv", "maps.npz", "replays.jsonl")
"""The tables of a run that is through."""
PART = ".part"
"""Behind the name of a file that is not whole yet."""


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
    temporary = path.with_name(path.name + PART)
    try:
        write(temporary, content, "wb")
        os.replace(temporary, path)
    except OSError:
        if temporary.is_file():
            temporary.unlink()
        raise
    sync_folder(path.parent)


def put(path: Path, content: bytes) -> None:
    """The same where other processes may write this file at the same moment."""
    mine = path.with_name(f"{path.name}.{os.getpid()}")
    write_whole(mine, content)
    mine.replace(path)


def append(path: Path, rows: bytes) -> None:
    """Adds rows at the end of a table and waits until they are on the disk."""
    write(path, rows, "ab")


def write(path: Path, content: bytes, mode: str) -> None:
    """Writes or appends, and waits until it is on the disk."""
    with files.opened(path, mode) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def stream(path: Path, write: Callable[[Sink], None]) -> str:
    """Writes a file piece by piece; returns the hash of it all."""
    with files.opened(path, "wb") as file:
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


def is_packed(folder: Path) -> bool:
    """Whether a run's tables are compressed: it can be read, and not gone on with."""
    table = folder / "episodes.csv"
    packed = [table.with_name(f"{table.name}{end}") for end in (".bz2", ".gz")]
    return not table.exists() and any(path.exists() for path in packed)


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


def keep_only(folder: Path, tables: tuple[str, ...]) -> None:
    """Removes the tables that are not named."""
    for name in {*TABLES, *FINAL} - set(tables):
        (folder / name).unlink(missing_ok=True)
    sync_folder(folder)


def length_and_hash(path: Path, length: int | None = None) -> list[Any]:
    """Of the first `length` bytes, or of all; a file that is not there is empty."""
    left = path.stat().st_size if path.exists() else 0
    left, size, digest = left if length is None else min(left, length), 0, hashlib.sha256()
    if left:
        with files.opened(path) as file:
            while chunk := file.read(min(files.CHUNK, left - size)):
                digest.update(chunk)
                size += len(chunk)
    return [size, digest.hexdigest()]
