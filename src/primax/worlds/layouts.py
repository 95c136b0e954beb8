"""Layouts are ASCII maps: `#` wall, `.` floor, `S` start, `F` flag."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from primax import files
from primax.errors import InputError, lookup
from primax.worlds.grid import move_table, steps_to

SMALLEST, LARGEST = 6, 32
MOST = 1 << 16
"""Bytes of a map: the largest has a thousand cells."""


@dataclass(frozen=True)
class Layout:
    """A validated map."""

    walls: np.ndarray
    """True where a wall stands, (rows, cols)."""
    start: int
    """The agent's first cell, flat."""
    flag: int | None
    """The flag's cell, flat; None where the map has none."""


def parse(text: str, flag: bool = False) -> Layout:
    """Reads a map; what is wrong with it is named by line and column, counted from one."""
    lines = [line.rstrip() for line in text.strip("\n").split("\n")]
    rows, cols = len(lines), len(lines[0])
    marks: dict[str, tuple[int, int]] = {}
    for i, line in enumerate(lines):
        if len(line) != cols:
            raise InputError(
                f"layout line {i + 1} column {min(len(line), cols) + 1}: "
                f"{len(line)} cells in this line, {cols} in line 1; make every line as long"
            )
        for j, mark in enumerate(line):
            where = f"layout line {i + 1} column {j + 1}"
            if mark not in "#.SF":
                raise InputError(f"{where}: unknown mark {mark!r}; use # . S F")
            if mark in marks:
                first = marks[mark]
                raise InputError(
                    f"{where}: a second {mark}; the first is at line {first[0] + 1} column {first[1] + 1}"
                )
            if mark in "SF":
                marks[mark] = (i, j)
    for size in (rows, cols):
        if not SMALLEST <= size <= LARGEST:
            raise InputError(
                f"layout of {rows}x{cols} cells: each side must be {SMALLEST} to {LARGEST}"
            )
    return _placed(np.array([[mark == "#" for mark in line] for line in lines]), marks, flag)


def _placed(walls: np.ndarray, marks: dict[str, tuple[int, int]], flag: bool) -> Layout:
    """Checks that the marks a world needs are there, and that every floor cell can be reached."""
    cols = walls.shape[1]
    for mark, name, needed in (("S", "start", True), ("F", "flag", flag)):
        if needed and mark not in marks:
            raise InputError(f"layout has no {name}: mark one cell with {mark}")
        if mark == "F" and not flag and mark in marks:
            i, j = marks[mark]
            raise InputError(
                f"layout line {i + 1} column {j + 1}: a flag, in a world that has none"
            )
    start = marks["S"][0] * cols + marks["S"][1]
    reached = steps_to(move_table(walls), np.array([start]))[0] < walls.size
    cut = np.flatnonzero(~walls.ravel() & ~reached)
    if len(cut):
        i, j = divmod(int(cut[0]), cols)
        raise InputError(f"layout line {i + 1} column {j + 1}: this cell cannot be reached from S")
    end = marks["F"][0] * cols + marks["F"][1] if flag else None
    return Layout(walls, start, end)


def _text(walls: np.ndarray, start: tuple[int, int], flag: tuple[int, int] | None = None) -> str:
    """Draws a map that `parse` reads back."""
    chars = np.where(walls, "#", ".")
    chars[start] = "S"
    if flag is not None:
        chars[flag] = "F"
    return "\n".join("".join(line) for line in chars)


def _two_walls(size: int, first: slice, second: slice) -> str:
    """Walls along the rows at one and two thirds; start top left, flag bottom right."""
    walls = np.zeros((size, size), bool)
    walls[size // 3, first] = True
    walls[2 * size // 3, second] = True
    return _text(walls, (0, 0), (size - 1, size - 1))


def _open(size: int) -> str:
    return _text(np.zeros((size, size), bool), (0, 0))


def _border(size: int) -> str:
    walls = np.ones((size, size), bool)
    walls[1:-1, 1:-1] = False
    return _text(walls, (1, 1))


def _full_walls(size: int) -> str:
    """The way through lies down the left side, then down the right."""
    return _two_walls(size, np.s_[1:], np.s_[:-1])


def _switchback(size: int) -> str:
    """The way through crosses the whole grid twice."""
    return _two_walls(size, np.s_[:-1], np.s_[1:])


def _half_walls(size: int) -> str:
    """Each wall covers one half, from opposite sides."""
    return _two_walls(size, np.s_[: size // 2], np.s_[size // 2 :])


def _one_wide(size: int) -> str:
    """A corridor one cell wide in the form of an S."""
    walls, middle = np.ones((size, size), bool), size // 2
    walls[0, : middle + 1] = False
    walls[:middle, middle] = False
    walls[middle - 1 :, middle - 1] = False
    walls[-1, middle - 1 :] = False
    return _text(walls, (0, 0), (size - 1, size - 1))


def _winding(size: int, inset: int) -> str:
    """A corridor one cell wide: right, down, back, down and right, turning so far from the sides."""
    walls, middle = np.ones((size, size), bool), size // 2 - 1
    right, left = size - 1 - inset, inset
    walls[0, : right + 1] = False
    walls[: middle + 1, right] = False
    walls[middle, left : right + 1] = False
    walls[middle:, left] = False
    walls[-1, left:] = False
    return _text(walls, (0, 0), (size - 1, size - 1))


def _long(size: int) -> str:
    """A corridor one cell wide that turns two cells from the sides."""
    return _winding(size, 2)


def _longest(size: int) -> str:
    """A corridor one cell wide that turns at the sides."""
    return _winding(size, 0)


OPEN_LAYOUTS = {"open": _open, "border": _border}
MAZE_LAYOUTS = {
    "full_walls": _full_walls,
    "half_walls": _half_walls,
    "long": _long,
    "longest": _longest,
    "one_wide": _one_wide,
    "switchback": _switchback,
}


def load(layout: str, size: int, flag: bool) -> Layout:
    """A layout by name (drawn at `size`), by file name (`.txt`), or as the map itself."""
    if "\n" in layout:
        return parse(layout, flag)
    if layout.endswith(".txt"):
        return parse(read(layout), flag)
    return parse(lookup("layout", layout, MAZE_LAYOUTS if flag else OPEN_LAYOUTS)(size), flag)


def read(layout: str) -> str:
    """A file's map; a map or a layout's name as it is."""
    if not layout.endswith(".txt"):
        return layout
    try:
        text = files.read(Path(layout), MOST).decode("utf-8")
        return text.replace("\r\n", "\n").strip("\n") + "\n"
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a text file"
        raise InputError(f"cannot read layout {layout}: {reason}") from error
