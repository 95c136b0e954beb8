"""Arrays in numpy's npz, without pickle: streamed, read back by name, equal bytes for equal arrays."""

import io
import math
import zipfile
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from primax import files

CHUNK = 1 << 20
"""Bytes that go on together: checksum, hash and write then find them in the cache."""


Header = tuple[np.dtype, tuple[int, ...]]


class NpzError(Exception):
    """The file is not what `write` wrote."""


@runtime_checkable
class Sink(Protocol):
    """What bytes can be written to, in order."""

    def write(self, content: memoryview, /) -> int: ...
    def flush(self) -> object: ...


class _Forward:
    """Hides that a file can seek: every byte is then written once, and can be hashed on its way."""

    def __init__(self, file: Sink):
        self.write, self.flush = file.write, file.flush


def write(
    file: Sink, arrays: Iterable[tuple[str, np.ndarray]], is_compressed: bool = False
) -> None:
    """Writes arrays one by one; no more than one of them need be in memory."""
    with zipfile.ZipFile(_Forward(file), "w") as archive:  # ty: ignore[no-matching-overload]
        for name, array in arrays:
            # A fixed date: a time stamp would make equal arrays unequal files.
            info = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED if is_compressed else zipfile.ZIP_STORED
            info.file_size = array.nbytes + 1_024  # tells whether 32 bits will do for its length
            with archive.open(info, "w") as member:
                _write_array(member, np.asarray(array, order="C"))


def _write_array(member, array: np.ndarray) -> None:
    """As `numpy.save` would, without its copies."""
    header = np.lib.format.header_data_from_array_1_0(array)
    np.lib.format.write_array_header_1_0(member, header)
    content = array.reshape(-1).view(np.uint8).data
    for start in range(0, len(content), CHUNK):
        member.write(content[start : start + CHUNK])


def to_bytes(arrays: Iterable[tuple[str, np.ndarray]], is_compressed: bool = False) -> bytes:
    """What `write` would write."""
    buffer = io.BytesIO()
    write(buffer, arrays, is_compressed)
    return buffer.getvalue()


def read(
    source: Path | bytes, is_wanted: Callable[[str], bool] = lambda name: True
) -> Iterator[tuple[str, np.ndarray]]:
    """The arrays one by one, in the order written; each is checked before it is looked into."""
    with _opened(source) as archive:
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            if is_wanted(name):
                with archive.open(info) as member:  # by size: `archive.read` unpacks all there is
                    content = io.BytesIO(member.read(info.file_size))
                yield name, read_array(content, info.file_size)


def headers(source: Path | bytes) -> dict[str, Header]:
    """Type and shape of what `read` would give."""
    found = {}
    with _opened(source) as archive:
        for info in archive.infolist():
            with archive.open(info) as member:
                found[info.filename.removesuffix(".npy")] = _header(member, info.file_size)
    return found


def read_array(file: Any, size: int) -> np.ndarray:
    """The array a file of that size goes on with; nothing is allocated that the file does not have."""
    kind, shape = _header(file, size)
    content = file.read(kind.itemsize * math.prod(shape))
    return np.ndarray(shape, kind, content).copy()


def _header(file: Any, size: int) -> Header:
    """Type and shape of the array that comes next, of numbers in plain order."""
    version = np.lib.format.read_magic(file)
    shape, is_fortran, kind = np.lib.format.read_array_header_1_0(file)
    numbers = [part for part, *_ in (kind.fields or {"": (kind,)}).values()]
    is_plain = version == (1, 0) and not is_fortran and kind.itemsize > 0
    if not is_plain or not all(part.base.kind in "biuf" and part.isnative for part in numbers):
        raise NpzError(f"an array of {kind} is none that a run writes")
    if kind.itemsize * math.prod(shape) > size - file.tell():
        raise NpzError(f"an array of {kind} {list(shape)} is larger than its file")
    return kind, shape


@contextmanager
def _opened(source: Path | bytes) -> Generator[zipfile.ZipFile]:
    """A zip to read from that unpacks to no more than it may."""
    with reading():
        file = io.BytesIO(source) if isinstance(source, bytes) else files.opened(source)
        with file, zipfile.ZipFile(file) as archive:
            size, kinds = file.seek(0, io.SEEK_END), (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
            whole = sum(info.file_size for info in archive.infolist())
            if whole > max(files.SMALL, files.TIMES * size):
                raise NpzError(f"it would unpack to {whole:,} bytes")
            if any(info.compress_type not in kinds for info in archive.infolist()):
                raise NpzError("it is compressed in a way no run writes")
            yield archive


@contextmanager
def reading() -> Generator[None]:
    """All that can be wrong with a file is one kind of error.

    Its bytes go through the parsers of zipfile and numpy, and what those raise is not on any list:
    `tokenize.TokenError` for a header that is not closed is one example.
    """
    try:
        yield
    except NpzError:
        raise
    except Exception as error:
        raise NpzError(str(error) or type(error).__name__) from error
