"""Tables: columns of numbers, as CSV that anyone can read."""

import csv
import hashlib
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from primax import files
from primax.errors import InputError

Table = dict[str, np.ndarray]
PLACES = ("seed", "episode", "step")
"""Columns that say where a row belongs."""
FURTHEST = 1 << 40
"""Above any step or seed there can be, and a float holds every whole number below it."""


def csv_rows(table: Table, has_header: bool) -> bytes:
    """Columns as CSV; floats with the digits that give the same float32 back, no clocks."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if has_header:
        writer.writerow(table)
    writer.writerows(zip(*(_texts(column) for column in table.values()), strict=True))
    return text.getvalue().encode()


def _texts(column: np.ndarray) -> list[str]:
    if column.dtype == bool:
        return [str(int(value)) for value in column]
    if np.issubdtype(column.dtype, np.floating):
        return ["" if np.isnan(value) else str(value) for value in column.astype(np.float32)]
    return [str(value) for value in column]


def stored(path: Path) -> Path:
    """The file a table is in, compressed or not; both are refused, for they may differ."""
    there = [end for end in ("", *files.UNPACK) if path.with_name(path.name + end).exists()]
    if len(there) > 1:
        raise InputError(f"{path} is also there as {path.name}{there[1]}: remove one of them")
    return path.with_name(path.name + there[0]) if there else path


def read_whole(path: Path, digest: str | None = None) -> bytes:
    """A file's content, compressed or not; refused where it is not the content of that digest."""
    there = stored(path)
    raw = files.read(there)
    if digest is not None and digest_of(raw) != digest:
        raise InputError(f"{there} was changed after the run had finished: restore it from a copy")
    return raw


def digest_of(content: bytes) -> str:
    """What a finished run's manifest keeps of each of its files, uncompressed."""
    return hashlib.sha256(content).hexdigest()


def read_table(
    path: Path, is_growing: bool = False, digest: str | None = None, may_be_empty: bool = False
) -> Table:
    """A table, compressed or not, as columns of numbers; an empty cell is not a number.

    Of one that is still written, a last line that is not whole is left out. One without rows is
    refused, unless it may be empty.
    """
    there = path
    try:
        there = stored(path)
        raw = read_whole(path, digest)
        end = raw.rfind(b"\n") + 1
        if end < len(raw) and not is_growing:
            raise ValueError("the last row may lack digits")
        header, _, body = raw[:end].decode("utf-8").partition("\n")
        names = header.split(",")
        while ",," in body:
            body = body.replace(",,", ",nan,")
        body = body.replace(",\n", ",nan\n")
        if not body.strip():
            if may_be_empty and header:
                return {name: np.empty(0) for name in names}
            raise ValueError("no rows")
        rows = np.loadtxt(io.StringIO(body), delimiter=",", ndmin=2, comments=None)
        return dict(zip(names, np.ascontiguousarray(rows.T), strict=True))
    except OSError as error:
        raise InputError(f"{there} is not the table a run writes: {error.strerror}") from error
    except InputError:
        raise
    except ValueError as error:
        reason = "a row is cut short, or is not numbers"
        raise InputError(f"{there} is not the table a run writes: {reason}") from error


def by_seed(
    table: Table,
    seeds: Sequence[int],
    path: Path,
    every: int,
    steps: int | None = None,
    warmup: int = 0,
    is_free: bool = False,
) -> Table:
    """Rows by seed, then by step, as many of every seed; one line says what a run's table lacks.

    A finished run took `steps` and has, from the end of its `warmup`, a row for `every` so many, or
    evenly more. Without `steps` it still goes on, and what not every seed has is left out. Where
    episodes end when they like (`is_free`) seeds may have more, fewer or none; no seed lacks one in
    between.
    """
    for name in ("seed", "step"):
        if name not in table:
            raise InputError(f"{path} is not the table a run writes: it has no column {name}")
        if not (np.abs(table[name]) < FURTHEST).all() or (table[name] % 1).any():
            raise InputError(f"{path} is not the table a run writes: a row has no {name}")
    odd = set(table["seed"].tolist()) ^ set(seeds)
    if is_free:
        odd -= set(seeds)  # one whose first episode is not over yet
    if odd := sorted(odd):
        raise InputError(
            f"{path} and config.json have different seeds: only one of them has seed {odd[0]:g}"
        )
    if is_free and not len(table["seed"]):
        return table
    order = np.lexsort((table["step"], table["seed"]))
    ends, counts = np.unique(table["step"]), np.unique(table["seed"], return_counts=True)[1]
    begins = np.concatenate([[0], np.cumsum(counts)[:-1]])
    if is_free:
        number = np.arange(len(order)) - np.repeat(begins, counts)
        if not np.array_equal(table.get("episode", np.empty(0))[order], number):
            raise InputError(f"{path} is not whole: an episode of some seed is missing")
    elif steps is None:
        order = order[begins[:, None] + np.arange(counts.min())].ravel()
    else:
        first, apart = min(ends[0], warmup + every), min([every, *np.diff(ends)])
        rows = len(seeds) * max(0, int((steps - first) // apart) + 1)
        is_whole = rows == len(order) and np.array_equal(
            table["step"][order],
            np.tile(first + apart * np.arange(rows // len(seeds)), len(seeds)),
        )
        if not is_whole:
            raise InputError(
                f"{path} is not whole: {len(order):,} of {rows:,} rows of a finished run, "
                f"from step {ends[0]:,.0f} to {ends[-1]:,.0f} of {steps:,}"
            )
    return {name: column[order] for name, column in table.items()}


def rows_by_seed(table: Table, seeds: Sequence[int], column: str) -> np.ndarray:
    """A column of a table that is in order, as [seed, row]; not a number where a seed has no more."""
    counts = np.array([np.count_nonzero(table["seed"] == seed) for seed in seeds])
    if (counts == counts[0]).all():
        return table[column].reshape(len(seeds), -1)
    padded = np.full((len(seeds), counts.max()), np.nan)
    padded[np.arange(counts.max()) < counts[:, None]] = table[column]
    return padded


def concatenate(tables: list[Table]) -> Table:
    """Tables of the same columns, one under the other."""
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
