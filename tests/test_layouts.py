"""Maps: those drawn by hand, and every way a map can be wrong."""

import numpy as np
import pytest

from primax.errors import InputError
from primax.worlds.grid import move_table, steps_to
from primax.worlds.layouts import MAZE_LAYOUTS, load, parse

DRAWN = {
    "full_walls": """
S.........
..........
..........
.#########
..........
..........
#########.
..........
..........
.........F""",
    "half_walls": """
S.........
..........
..........
#####.....
..........
..........
.....#####
..........
..........
.........F""",
    "long": """
S.......##
#######.##
#######.##
#######.##
##......##
##.#######
##.#######
##.#######
##.#######
##.......F""",
    "longest": """
S.........
#########.
#########.
#########.
..........
.#########
.#########
.#########
.#########
.........F""",
    "one_wide": """
S.....####
#####.####
#####.####
#####.####
####..####
####.#####
####.#####
####.#####
####.#####
####.....F""",
    "switchback": """
S.........
..........
..........
#########.
..........
..........
.#########
..........
..........
.........F""",
}
PATHS = {
    "full_walls": 18,
    "half_walls": 20,
    "one_wide": 20,
    "switchback": 36,
    "long": 28,
    "longest": 36,
}
EMPTY = "\n".join(["S....F", *["......"] * 5])


@pytest.mark.parametrize("name", MAZE_LAYOUTS)
def test_the_maze_layouts_are_the_drawn_ones(name):
    assert MAZE_LAYOUTS[name](10) == DRAWN[name].strip()


@pytest.mark.parametrize("name", PATHS)
def test_path_lengths(name):
    layout = load(name, 10, flag=True)
    steps = steps_to(move_table(layout.walls), np.array([layout.flag]))[0]
    assert steps[layout.start] == PATHS[name]


@pytest.mark.parametrize("size", [6, 7, 16, 31, 32])
@pytest.mark.parametrize("name", MAZE_LAYOUTS)
def test_every_layout_is_valid_at_every_size(name, size):
    layout = load(name, size, flag=True)
    assert layout.walls.shape == (size, size)
    assert layout.walls.any()
    assert (layout.start, layout.flag) == (0, size * size - 1)


def test_a_map_and_a_file_read_the_same(tmp_path):
    path = tmp_path / "map.txt"
    path.write_text(DRAWN["one_wide"])
    by_file, by_text = (load(source, 6, flag=True) for source in (str(path), DRAWN["one_wide"]))
    np.testing.assert_array_equal(by_file.walls, by_text.walls)
    assert by_file.walls.shape == (10, 10)


def changed(line: int, column: int, mark: str) -> str:
    rows = [list(row) for row in EMPTY.split("\n")]
    rows[line - 1][column - 1] = mark
    return "\n".join("".join(row) for row in rows)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (changed(3, 5, "?"), "line 3 column 5: unknown mark '?'"),
        (changed(4, 2, "S"), "line 4 column 2: a second S; the first is at line 1 column 1"),
        (changed(6, 6, "F"), "line 6 column 6: a second F"),
        (EMPTY.replace("S", "."), "no start: mark one cell with S"),
        (EMPTY.replace("F", "."), "no flag: mark one cell with F"),
        (EMPTY + "\n.....", "line 7 column 6: 5 cells in this line, 6 in line 1"),
        (EMPTY + "\n.......", "line 7 column 7: 7 cells in this line, 6 in line 1"),
        ("S.F\n...", "2x3 cells: each side must be 6 to 32"),
        ("\n".join(["S....F", "######", *["......"] * 4]), "line 3 column 1: this cell cannot"),
    ],
)
def test_a_bad_map_is_named_by_line_and_column(text, says):
    with pytest.raises(InputError, match="layout") as error:
        parse(text, flag=True)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_a_flag_in_a_world_without_one_is_refused():
    with pytest.raises(InputError, match="line 1 column 6: a flag"):
        parse(EMPTY, flag=False)


def test_a_layout_file_that_is_not_text(tmp_path):
    path = tmp_path / "map.txt"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not a text file"):
        load(str(path), 10, flag=True)
