"""Files of folders that may come from anyone: what is not a plain file is not read (a pipe would
wait for ever), nothing unpacks to more than an honest file would, no link is written through. And
files that somebody asked for by name.
"""

import bz2
import errno
import gzip
import json
import os
import secrets
import stat
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from primax.errors import InputError

MOST = 2 << 30
"""Bytes of one file in memory: windows.csv of 10,000 seeds at the paper's size is a little less."""
SMALL, TIMES = 64 << 20, 200
"""What a compressed file may become: so many bytes, or so many times its own. Of all files of the
published runs none becomes more than 78 times its own."""
FIELDS = 4 << 20
"""Bytes of a JSON file: the largest, the configuration of 10,000 seeds, has 100 thousand."""
DEEPEST = 16
"""Levels of JSON; a run's files have four."""
CHUNK = 1 << 20
UNPACK: dict[str, Callable[..., Any]] = {".bz2": bz2.BZ2File, ".gz": gzip.open}
"""How a file is read, by what stands behind its name."""


def place(path: object) -> Path:
    """A path that somebody gave; InputError for what names no file or folder."""
    try:
        text = os.fsdecode(path)  # ty: ignore[invalid-argument-type]
    except TypeError as error:
        raise InputError(f"a path is text, got {path!r}") from error
    if not text or "\0" in text:
        raise InputError(f"{text!r} names no file or folder")
    return Path(text)


def opened(path: str | Path, mode: str = "rb") -> Any:
    """A plain file; OSError for anything else. For writing no link is followed, but refused."""
    follow = 0 if mode == "rb" else os.O_NOFOLLOW
    try:
        file = open(  # noqa: SIM115 (returned)
            path,
            mode,
            opener=lambda name, flags: os.open(name, flags | follow | os.O_NONBLOCK, 0o666),
        )
    except ValueError as error:  # a name no file can have
        raise OSError(errno.EINVAL, str(error), str(path)) from error
    except OSError as error:
        if follow and Path(path).is_symlink():
            raise InputError(f"{path} is a link, and links are not followed: remove it") from error
        raise
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "not a plain file", str(path))
    return file


def overwrite(path: Path, data: bytes) -> None:
    """Writes a file that somebody asked for; what was there stays until the new one is whole.

    What is no plain file (a pipe, a device, a link) is written to as it is, not replaced.
    """
    part = path.parent / f".{secrets.token_hex(8)}.part"
    try:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            path.write_bytes(data)
            return
        part.write_bytes(data)
        os.replace(part, path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def read(path: str | Path, most: int = MOST) -> bytes:
    """A file's content, unpacked where its name says that it is compressed; never more than `most`."""
    unpack = UNPACK.get(Path(path).suffix)
    with opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        if unpack is None:
            content = file.read(size) if size <= most else None
        else:
            most = min(most, max(SMALL, TIMES * size))
            content = _unpacked(unpack(file), most, str(path))
    if content is None:
        raise InputError(f"{path} has more than {most:,} bytes, more than any run writes")
    return content


def _unpacked(stream: Any, most: int, path: str) -> bytes | None:
    """All that a stream gives; None where that is more than `most`."""
    content = bytearray()
    try:
        while piece := stream.read(CHUNK):
            content += piece
            if len(content) > most:
                return None
    except (OSError, EOFError, zlib.error) as error:
        raise OSError(errno.EINVAL, f"cannot be unpacked ({error})", path) from error
    return bytes(content)


def read_fields(path: Path) -> dict[str, Any]:
    """What a JSON file holds; OSError where it cannot be read, ValueError where it holds no fields."""
    content = from_json(read(path, FIELDS))
    if not isinstance(content, dict):
        raise ValueError("it holds no fields")
    return content


def from_json(raw: bytes) -> Any:
    """JSON that can be walked over and printed; ValueError where it is none."""
    try:
        return _plain(json.loads(raw))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _plain(value: Any, depth: int = 0) -> Any:
    """The same with ? for halves of characters, which no file could hold."""
    if depth > DEEPEST:
        raise ValueError("it is nested too deeply")
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_plain(part, depth + 1) for part in value]
    if isinstance(value, dict):
        return {_plain(name): _plain(part, depth + 1) for name, part in value.items()}
    return value
