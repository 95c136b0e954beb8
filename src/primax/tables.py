"""Tables: columns of numbers, as CSV that anyone can read."""

import csv
import io
from pathlib import Path

import numpy as np

from primax.errors import InputError

Table = dict[str, np.ndarray]


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


def read_table(path: Path) -> Table:
    """A table as columns of numbers."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            header, *rows = csv.reader(file)
        columns = zip(*rows, strict=True)
        return {
            name: np.array([float(value or "nan") for value in column])
            for name, column in zip(header, columns, strict=True)
        }
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is not the table a run writes: {error}") from error


def concatenate(tables: list[Table]) -> Table:
    """Tables of the same columns, one under the other."""
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
