"""Arrays in numpy's npz, without pickle: streamed, read back by name, equal bytes for equal arrays."""

import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

CHUNK = 1 << 20
"""Bytes that go on together: checksum, hash and write then find them in the cache."""


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
                content = io.BytesIO(archive.read(info))
                yield name, np.lib.format.read_array(content, allow_pickle=False)


def names(source: Path | bytes) -> list[str]:
    """What `read` would give."""
    with _opened(source) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


@contextmanager
def _opened(source: Path | bytes) -> Generator[zipfile.ZipFile]:
    """A zip to read from; all that can be wrong with it is one kind of error."""
    try:
        with zipfile.ZipFile(
            io.BytesIO(source) if isinstance(source, bytes) else source
        ) as archive:
            yield archive
    except (ValueError, KeyError, EOFError, OSError, RuntimeError, OverflowError) as error:
        raise NpzError(str(error)) from error
    except (zipfile.BadZipFile, zlib.error, struct.error) as error:
        raise NpzError(str(error)) from error
