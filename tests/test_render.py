"""Pictures of a world: what must be seen, pixel by pixel and character by character."""

import io
import os
import sys
import unicodedata
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageSequence
from rich.cells import cell_len
from rich.console import Console

from primax.worlds import WORLDS, make_world
from primax.worlds.drawing import glyphs, render
from primax.worlds.drawing.render import Scene, ansi, rgb, show, text, write_gif

CHANNELS = ("agent", "butterfly", "wall", "caught_flash", "flag", "noise")
FLOOR, BLUE, ORANGE = (glyphs.colour(c) for c in (glyphs.FLOOR, glyphs.BLUE, glyphs.ORANGE))


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    """Whether a console counts as a terminal is the test's choice, not the caller's shell's."""
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")


def scene(shape=(6, 6), channels=CHANNELS, options=None, **cells):
    """A scene with the named channels set at (row, col) pairs."""
    planes = np.zeros((len(channels), *shape), np.uint8)
    for name, places in cells.items():
        for place in places:
            planes[channels.index(name)][place] = 1
    planes.flags.writeable = False
    return Scene(planes, channels, **(options or {}))


def tiles(frame, moment, cell):
    """The frame's board as (row, col, y, x, 3), and the strip below it."""
    _, rows, cols = moment.planes.shape
    pad = (frame.shape[1] - cols * cell) // 2
    board = frame[pad : pad + rows * cell, pad : pad + cols * cell].astype(int)
    hud = frame[pad + rows * cell + 1 :, pad : pad + cols * cell].astype(int)
    return board.reshape(rows, cell, cols, cell, 3).transpose(0, 2, 1, 3, 4), hud


def drawn(moment, cell=32):
    return tiles(rgb(moment, cell), moment, cell)


def runs(line):
    """How many separate stretches of a boolean line are true."""
    return int(np.sum(np.diff(np.concatenate([[0], line.astype(int)])) == 1))


def yellow(tile):
    """How many pixels are rather red and green than blue."""
    return int((tile[..., :2].min(axis=-1) - tile[..., 2] > 60).sum())


def changed(first, second):
    """Which cells of two boards differ."""
    return {tuple(map(int, at)) for at in np.argwhere((first != second).any(axis=(2, 3, 4)))}


# What the picture shows.


@pytest.mark.parametrize("cell, least", [(4, 30), (12, 60), (32, 60)])
def test_every_channel_looks_different_from_the_floor_and_from_the_others(cell, least):
    names = (*CHANNELS, "key", "door")
    boards = {
        name: drawn(scene(channels=names, **{name: [(2, 3)]}), cell)[0][2, 3] for name in names
    }
    boards["floor"] = drawn(scene(channels=names), cell)[0][2, 3]
    for one, other in combinations(boards, 2):
        assert np.abs(boards[one] - boards[other]).max() > least, (one, other)


@pytest.mark.parametrize("name", [*CHANNELS, "key"])
def test_a_channel_is_drawn_in_its_cell_and_nowhere_else(name):
    channels = (*CHANNELS, "key")
    before, hud = drawn(scene(channels=channels))
    after, hud_after = drawn(scene(channels=channels, **{name: [(2, 3), (0, 0), (5, 5)]}))
    assert changed(before, after) == {(2, 3), (0, 0), (5, 5)}
    assert np.array_equal(hud, hud_after)


def test_shapes_show_their_colours():
    board, _ = drawn(scene(agent=[(0, 0)], butterfly=[(0, 1)], flag=[(0, 2)], wall=[(0, 3)]))
    for col, codes in enumerate(
        [(glyphs.BLUE,), (glyphs.ORANGE, glyphs.VERMILLION), (glyphs.GREEN,), (glyphs.INK,)]
    ):
        for code in codes:
            exact = (board[0, col] == glyphs.colour(code)).all(axis=-1)
            assert exact.sum() > 30, (col, code)


def test_grid_lines_are_faint_and_close_the_board():
    frame = rgb(scene())
    board, _ = tiles(frame, scene(), 32)
    line = glyphs.colour(glyphs.LINE)
    assert (board[:, :, 0] == line).all() and (board[:, :, :, 0] == line).all()
    assert (board[:, :, 1:, 1:] == FLOOR).all() and 0 < (FLOOR - line).sum() < 80
    pad = (frame.shape[1] - 6 * 32) // 2
    low, right = frame[pad + 6 * 32, pad : pad + 6 * 32], frame[pad : pad + 6 * 32, pad + 6 * 32]
    assert (low == line).all() and (right == line).all()


def test_the_flag_flies_from_a_dark_pole():
    board, _ = drawn(scene(flag=[(1, 1)]))
    dark = board[1, 1].sum(axis=-1) < 250
    assert dark.any(axis=1).sum() > 20 and dark.any(axis=0).sum() <= 3


def test_the_flash_is_a_burst_of_eight_rays_that_glows():
    board, _ = drawn(scene(caught_flash=[(1, 1)]))
    y, x = np.indices((32, 32)) - 15.5
    angle = np.round(np.degrees(np.arctan2(y, x))) % 45
    rim = (np.hypot(x, y) > 13) & (np.hypot(x, y) < 15)
    strong = board[1, 1][..., 2] < 90
    assert strong[rim & (np.minimum(angle, 45 - angle) < 5)].all()
    assert not strong[rim & (np.abs(angle - 22) < 5)].any()
    assert board[1, 1][2, 2][2] < FLOOR[2] - 20  # the glow reaches the corner


def test_cached_sprites_cannot_be_painted_over():
    for bank in (glyphs.sprites(glyphs.KNOWN["agent"], 12), glyphs.arms(12)):
        with pytest.raises(ValueError, match="read-only"):
            bank[:] = 0


def test_agent_is_a_disc_inside_a_ring():
    board, _ = drawn(scene(agent=[(1, 1)]))
    across = (board[1, 1][16] == BLUE).all(axis=-1)
    assert runs(across) == 3  # ring, disc, ring


def test_butterfly_is_its_own_mirror_image_about_a_dark_body():
    board, _ = drawn(scene(butterfly=[(1, 1)]))
    left, right = board[1, 1][:, 1:16], board[1, 1][:, 31:15:-1]  # column 0 is the grid line
    assert np.abs(left - right[:, 1:]).max() <= 1
    assert board[1, 1][16, 16].sum() < 0.4 * board[1, 1][12, 8].sum()


def test_walls_are_darker_than_the_floor_round_at_free_corners_and_seamless_between():
    board, _ = drawn(scene(wall=[(1, 1), (1, 2), (4, 4)]))
    assert board[1, 1][16, 16].sum() < 0.3 * board[0, 0][16, 16].sum()
    lone, left, right = board[4, 4], board[1, 1], board[1, 2]
    for y, x in ((0, 0), (0, 31), (31, 0), (31, 31)):
        assert lone[y, x].sum() > 600
    assert left[0, 0].sum() > 600 and right[0, 31].sum() > 600
    ink = glyphs.colour(glyphs.INK)
    assert (left[:, 31] == ink).all() and (right[:, 0] == ink).all()


@pytest.mark.parametrize("beside", [(1, 2), (3, 2), (2, 3), (2, 1)])
def test_a_wall_squares_only_the_corners_it_shares(beside):
    board, _ = drawn(scene(wall=[(2, 2), beside]))
    down, right = beside[0] - 2, beside[1] - 2
    for y, x in ((0, 0), (0, 31), (31, 0), (31, 31)):
        shared = (y > 0) == (down > 0) if down else (x > 0) == (right > 0)
        assert (board[2, 2][y, x].sum() < 200) == shared


def test_noise_is_muted_static_that_turns_with_time():
    def static(time):
        moment = scene(noise=[(2, 2)], options={"time": time})
        return drawn(moment)[0][2, 2][2:-2, 2:-2]

    first = static(0)
    assert np.ptp(first, axis=-1).max() < 16  # grey
    assert np.ptp(first[..., 0]) > 30 and first.min() > 140
    assert not np.array_equal(first, static(1)) and np.array_equal(first, static(4))


def test_the_flash_is_seen_around_the_agent_that_stands_on_it():
    caught, _ = drawn(scene(agent=[(2, 2)], caught_flash=[(2, 2)]))
    agent, _ = drawn(scene(agent=[(2, 2)]))
    assert (caught[2, 2][16, 16] == agent[2, 2][16, 16]).all()
    assert yellow(caught[2, 2]) > 200 and yellow(agent[2, 2]) == 0


def test_the_flag_is_seen_around_the_agent_that_reached_it():
    reached, _ = drawn(scene(agent=[(2, 2)], flag=[(2, 2)]))
    agent, _ = drawn(scene(agent=[(2, 2)]))
    assert (reached[2, 2][16, 16] == agent[2, 2][16, 16]).all()
    red, green, _ = np.moveaxis(reached[2, 2] - agent[2, 2], -1, 0)
    assert (green - red > 20).sum() > 200


def test_the_order_of_the_channels_does_not_matter():
    cells = {name: [(2, 2)] for name in CHANNELS}
    one = scene(**cells)
    other = scene(channels=CHANNELS[::-1], **cells)
    assert np.array_equal(rgb(one), rgb(other))
    assert ansi(one) == ansi(other) and text(one) == text(other)


def test_unknown_channels_get_colours_of_the_safe_palette_one_each():
    names = ("agent", "key", "door", "lava")
    board, _ = drawn(scene(channels=names, key=[(0, 0)], door=[(0, 1)], lava=[(0, 2)]))
    centres = [tuple(board[0, col][16, 16]) for col in range(3)]
    assert centres == [tuple(glyphs.colour(code).astype(int)) for code in glyphs.FALLBACK[:3]]


def test_more_unknown_channels_than_colours_still_draw():
    names = tuple(f"thing_{i}" for i in range(len(glyphs.FALLBACK) + 2))
    board, _ = drawn(scene(channels=names, **{names[-1]: [(1, 1)]}))
    assert tuple(board[1, 1][16, 16]) == tuple(glyphs.colour(glyphs.FALLBACK[1]).astype(int))


@pytest.mark.parametrize("name", sorted(WORLDS))
def test_no_world_of_ours_falls_back(name):
    assert set(make_world(name).channels) <= set(glyphs.KNOWN)


def test_same_scene_same_bytes_whatever_was_drawn_between():
    moment = scene(agent=[(1, 1)], butterfly=[(2, 2)], wall=[(3, 3)], options={"trail": (0, 1)})
    first = rgb(moment)
    rgb(scene(agent=[(2, 2)], butterfly=[(1, 1)], wall=[(3, 3), (3, 4)], noise=[(0, 0)]))
    first_bytes = first.tobytes()
    first[:] = 0  # the caller may scribble on its frame
    assert rgb(moment).tobytes() == first_bytes


@settings(max_examples=60, deadline=None)
@given(
    st.integers(6, 32), st.integers(6, 32), st.sampled_from([4, 5, 7, 12, 13, 16]), st.booleans()
)
def test_frames_have_even_sizes(rows, cols, cell, targets):
    moment = scene((rows, cols), options={"total": 3, "alive": 2} if targets else None)
    height, width, depth = rgb(moment, cell).shape
    assert height % 2 == 0 and width % 2 == 0 and depth == 3
    assert height > rows * cell and cols * cell < width <= cols * cell + 25


@pytest.mark.parametrize(
    "shape, cell", [((10, 10), 32), ((32, 32), 12), ((3, 10), 32), ((6, 6), 32)]
)
def test_the_whole_grid_is_on_the_page(shape, cell):
    last = (shape[0] - 1, shape[1] - 1)
    frame = rgb(scene(shape, agent=[last]), cell)
    board, hud = tiles(frame, scene(shape), cell)
    assert frame.dtype == np.uint8 and len(hud) > 10
    assert changed(board, drawn(scene(shape), cell)[0]) == {last}
    assert (board[0, 0][cell // 2, cell // 2] == FLOOR).all()


@pytest.mark.parametrize("cell", [3, 257, 0])
def test_a_cell_out_of_range_is_refused(cell):
    with pytest.raises(ValueError, match="cell must be between 4 and 256"):
        rgb(scene(), cell)


# The trail.


def test_the_trail_fades_with_age():
    trail = tuple(range(10, 10 + 10)) + tuple(range(29, 19, -1))
    board, _ = drawn(scene((10, 10), agent=[(3, 0)], options={"trail": trail}))
    centres = [board[divmod(cell, 10)][16, 16] for cell in trail]
    strength = [float(np.abs(centre - FLOOR).sum()) for centre in centres]
    assert all(older < newer for older, newer in pairwise(strength))
    assert strength[0] > 20 and strength[-1] > 150


def test_of_two_visits_the_newer_counts():
    once, _ = drawn(scene(options={"trail": (7, 8, 9)}))
    again, _ = drawn(scene(options={"trail": (9, 8, 7, 8, 9)}))
    assert np.array_equal(once[1, 3], again[1, 3])


def test_the_trail_joins_cells_that_follow_each_other_and_the_agent():
    board, _ = drawn(scene(agent=[(2, 2)], options={"trail": (0, 1, 7, 8)}))
    tinted = {
        "0 to 1": board[0, 0][16, 31],
        "1 to 7": board[0, 1][31, 16],
        "7 to 8": board[1, 1][16, 31],
        "8 to the agent": board[1, 2][31, 16],
    }
    for name, pixel in tinted.items():
        assert np.abs(pixel - FLOOR).sum() > 100, name
    assert (board[0, 0][31, 16] == FLOOR).all()  # cell 6 below was never entered
    assert (board[1, 1][31, 16] == FLOOR).all()


def test_a_jump_leaves_dots_and_no_line():
    board, _ = drawn(scene(options={"trail": (5, 6)}))  # the end of a row and the start of the next
    assert (board[0, 5][16, 31] == FLOOR).all() and (board[1, 0][16, 1] == FLOOR).all()
    assert (board[0, 5][16, 16] != FLOOR).any() and (board[1, 0][16, 16] != FLOOR).any()


def test_what_is_too_old_is_left_out():
    trail = (35,) + (0,) * render.SHOWN
    board, _ = drawn(scene(options={"trail": trail}))
    assert changed(board, drawn(scene())[0]) == {(0, 0)}


def test_the_trail_lies_over_noise_and_under_the_agent():
    noisy, _ = drawn(scene(noise=[(0, 1)]))
    trail, _ = drawn(scene(noise=[(0, 1)], agent=[(0, 0)], options={"trail": (1,)}))
    agent, _ = drawn(scene(agent=[(0, 0)]))
    assert (trail[0, 1][16, 16] != noisy[0, 1][16, 16]).any()
    assert (trail[0, 0][12:20, 12:20] == agent[0, 0][12:20, 12:20]).all()


# The strip below.


@pytest.mark.parametrize("alive", range(6))
def test_one_pip_a_target_filled_while_it_lives(alive):
    _, hud = drawn(scene((10, 10), options={"alive": alive, "total": 5}))
    pips = hud[len(hud) // 2 :]
    assert runs((pips == ORANGE).all(axis=-1).any(axis=0)) == alive
    assert runs((pips != glyphs.colour(glyphs.PAGE)).any(axis=(0, 2))) == 5


def test_removing_a_butterfly_changes_only_its_cell_and_its_pip():
    options = {"trail": (0, 1, 2), "total": 3}
    two = scene((8, 8), butterfly=[(2, 2), (4, 6)], agent=[(0, 3)], options={**options, "alive": 2})
    one = scene((8, 8), butterfly=[(2, 2)], agent=[(0, 3)], options={**options, "alive": 1})
    (board, hud), (board_after, hud_after) = drawn(two), drawn(one)
    assert changed(board, board_after) == {(4, 6)}
    moved = np.flatnonzero((hud != hud_after).any(axis=(0, 2)))
    assert len(moved) and np.ptp(moved) < 16 and not (hud != hud_after)[: len(hud) // 3].any()


def test_many_targets_still_fit():
    _, hud = drawn(scene((32, 32), options={"alive": 30, "total": 60}), 12)
    pips = hud[len(hud) // 2 :]
    inked = np.abs(pips - glyphs.colour(glyphs.PAGE)).sum(axis=-1) > 100
    assert runs(inked.any(axis=0)) == 60
    assert runs((pips == ORANGE).all(axis=-1).any(axis=0)) == 30


def test_more_alive_than_at_the_start_draws_no_extra_pip():
    full = rgb(scene(options={"alive": 3, "total": 3}))
    assert np.array_equal(full, rgb(scene(options={"alive": 9, "total": 3})))


def test_without_targets_there_are_no_pips():
    none = rgb(scene())
    assert len(none) < len(rgb(scene(options={"alive": 0, "total": 2})))
    assert np.array_equal(none, rgb(scene(options={"alive": 0, "total": 0})))


def test_the_bar_grows_with_time_and_stops_at_the_horizon():
    def filled(time, horizon=100):
        _, hud = drawn(scene((10, 10), options={"time": time, "horizon": horizon}))
        return int((hud == BLUE).all(axis=-1).any(axis=0).sum())

    lengths = [filled(time) for time in (0, 1, 25, 50, 75, 100)]
    assert lengths[0] == 0 and lengths == sorted(set(lengths))
    assert abs(lengths[3] - 160) <= 2 and lengths[-1] >= 316
    assert filled(250) == lengths[-1] and filled(0, 0) == 0


# Characters.


def test_ansi_is_the_map():
    moment = scene(
        (3, 5),
        agent=[(1, 1)],
        wall=[(0, 0), (0, 1), (0, 2)],
        butterfly=[(0, 3)],
        caught_flash=[(1, 1), (2, 4)],
        flag=[(2, 0)],
        noise=[(1, 4)],
    )
    assert ansi(moment) == "###B.\n.@..~\nF...*"


def test_ansi_names_unknown_channels_by_their_initial():
    names = ("Key", "door", "蝶", "", "agent")
    cells = {"Key": [(0, 0)], "door": [(0, 1)], "蝶": [(0, 2)], "": [(0, 3)]}
    assert ansi(scene((1, 5), channels=names, **cells)) == "kd??."


def test_text_is_two_columns_a_cell_between_title_and_status():
    options = {"time": 7, "score": 2.5, "alive": 1, "total": 2, "title": "Butterflies · chase"}
    moment = scene(
        (2, 4),
        agent=[(0, 1)],
        wall=[(0, 0)],
        butterfly=[(1, 3)],
        options={**options, "trail": (5,)},
    )
    assert text(moment).plain.split("\n") == [
        "Butterflies · chase",
        "##◖◗ . .",
        " . o .ʚɞ",
        "time 7/100   score 2.5   alive 1/2",
    ]


def test_text_without_targets_or_title_has_no_such_words():
    lines = text(scene((1, 2), options={"score": 0.1 + 0.2})).plain.split("\n")
    assert lines == [" . .", "time 0/100   score 0.3"]
    assert "alive" not in text(scene(options={"alive": 0, "total": 0})).plain


def test_no_glyph_is_wider_than_its_columns():
    looks = [look for _, look in glyphs.glyphs((*glyphs.KNOWN, "key", "蝶"))]
    assert len(looks) == len(glyphs.KNOWN) + 2
    for look in looks:
        assert cell_len(look.columns) == 2 and look.char.isascii() and len(look.char) == 1
        assert {unicodedata.east_asian_width(char) for char in look.columns} <= {"N", "Na"}


def test_a_title_is_text_and_one_line():
    title = "[red]not markup[/red]\n\x1b[2J"
    out = io.StringIO()
    Console(file=out).print(text(scene((1, 1), options={"title": title})))
    assert out.getvalue() == "[red]not markup[/red]  [2J\n .\ntime 0/100   score 0\n"


def styles(picture):
    """The style of each two-column cell, by its characters."""
    return [(picture.plain[s.start : s.end], str(s.style)) for s in picture.spans]


def test_text_colours_every_cell_and_keeps_what_lies_under_the_agent():
    moment = scene((1, 3), agent=[(0, 0)], caught_flash=[(0, 0)], options={"trail": (1,)})
    cells = styles(text(moment))
    assert cells[0] == ("◖◗", f"{glyphs.BLUE} on {glyphs.YELLOW}")
    assert cells[2] == (" .", f"{glyphs.MUTED} on {glyphs.FLOOR}")
    assert cells[1][0] == " o" and not cells[1][1].endswith(glyphs.FLOOR)


def test_text_honours_no_color(monkeypatch):
    def printed():
        out = io.StringIO()
        Console(file=out, force_terminal=True).print(text(scene((1, 2), agent=[(0, 0)])))
        return out.getvalue()

    assert "\x1b[38" in printed()
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[38" not in printed() and "◖◗ ." in printed()


@pytest.mark.parametrize(
    "planes, names, trail, words",
    [
        ((2, 3, 3), ("agent",), (), "planes of shape"),
        ((3, 3), ("agent", "wall", "flag"), (), "planes of shape"),
        ((1, 3, 3), ("agent",), (9,), "trail leaves the 9 cells"),
        ((1, 3, 3), ("agent",), (-1,), "trail leaves the 9 cells"),
    ],
)
def test_a_scene_that_does_not_fit_is_refused(planes, names, trail, words):
    with pytest.raises(ValueError, match=words):
        Scene(np.zeros(planes, np.uint8), names, trail)


# Files.


def walk(steps, size=10):
    """An agent that sweeps the grid while butterflies stay."""
    for step in range(steps):
        options = {"trail": tuple(range(step)), "time": step, "alive": 5, "total": 8}
        others = [(2, 2), (3, 7), (8, 1), (8, 8), (6, 4)]
        border = [(size - 1, col) for col in range(size)]
        yield scene(
            (size, size),
            agent=[divmod(step, size)],
            butterfly=others,
            wall=border,
            caught_flash=[divmod(step, size)] if step == 3 else [],
            options=options,
        )


def frames_of(path):
    with Image.open(path) as picture:
        for frame in ImageSequence.Iterator(picture):
            yield np.asarray(frame.convert("RGB")).astype(int)


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    """A GIF of 90 steps: its path, the scenes, what was drawn, what is stored."""
    path = tmp_path_factory.mktemp("film") / "film.gif"
    moments = list(walk(90))
    frames = [rgb(moment) for moment in moments]
    write_gif(path, iter(frames), fps=10)
    return path, moments, frames, list(frames_of(path))


def test_gif_round_trip(film):
    path, _, frames, stored = film
    with Image.open(path) as picture:
        assert picture.size == frames[0].shape[1::-1]
        assert picture.info["loop"] == 0 and picture.info["duration"] == 100
    assert path.stat().st_size < 1_500_000 and os.listdir(path.parent) == ["film.gif"]
    assert len(stored) == 90
    assert max(np.abs(s - f).max() for s, f in zip(stored, frames, strict=True)) <= 8


def test_gif_does_not_flicker(film):
    """One palette: what stands still has the same colour in every frame."""
    _, moments, _, stored = film
    boards = [tiles(frame, moments[0], 32)[0] for frame in stored[:40]]
    assert all(np.array_equal(board[5:], boards[0][5:]) for board in boards)


def test_gif_keeps_a_colour_shown_once(film):
    _, moments, _, stored = film
    shown = [yellow(tiles(frame, moments[0], 32)[0][0, 3]) for frame in stored]
    assert shown[3] > 200 and not any(shown[:3] + shown[4:])


def test_gif_of_one_plain_frame(tmp_path):
    write_gif(tmp_path / "one.gif", [np.full((4, 6, 3), 200, np.uint8)])
    assert [f.tolist() for f in frames_of(tmp_path / "one.gif")] == [[[[200] * 3] * 6] * 4]


def test_gif_obeys_the_umask_and_replaces_what_was_there(tmp_path):
    path = tmp_path / "film.gif"
    path.write_bytes(b"old")
    (tmp_path / "plain").write_bytes(b"")
    write_gif(path, [rgb(scene(), 4)])
    assert path.read_bytes().startswith(b"GIF8")
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize(
    "where", ["missing/film.gif", "file/film.gif", "folder"], ids=["missing", "file", "folder"]
)
def test_gif_says_where_it_cannot_write_and_leaves_nothing(tmp_path, where):
    (tmp_path / "file").write_text("kept")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError) as caught:
        write_gif(tmp_path / where, [rgb(scene(), 4)])
    assert f"cannot write {tmp_path / where}: " in str(caught.value)
    assert "\n" not in str(caught.value)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]
    assert not os.listdir(tmp_path / "folder") and (tmp_path / "file").read_text() == "kept"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_gif_in_a_folder_without_permission(tmp_path):
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    with pytest.raises(ValueError, match="Permission denied"):
        write_gif(folder / "film.gif", [rgb(scene(), 4)])


@pytest.mark.parametrize("fails", ["write_bytes", "replace"])
def test_gif_that_fails_midway_leaves_the_old_file_alone(tmp_path, monkeypatch, fails):
    path = tmp_path / "film.gif"
    path.write_bytes(b"old")

    def half(self, data):
        with self.open("wb") as file:
            file.write(data[:10])
        raise OSError(28, "No space left on device")

    def refuse(source, target):
        assert Path(source).parent == tmp_path and Path(source).read_bytes().startswith(b"GIF8")
        raise PermissionError(13, "Permission denied")

    if fails == "write_bytes":
        monkeypatch.setattr(Path, "write_bytes", half)
    else:
        monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(ValueError, match=r"film\.gif: (No space left|Permission denied)"):
        write_gif(path, [rgb(scene(), 4)])
    assert os.listdir(tmp_path) == ["film.gif"] and path.read_bytes() == b"old"


def broken():
    yield rgb(scene(), 4)
    raise RuntimeError("the episode broke")


@pytest.mark.parametrize(
    "frames, error, words",
    [
        ([], ValueError, "film.gif: no frames"),
        (
            [np.zeros((4, 4, 3), np.uint8), np.zeros((4, 6, 3), np.uint8)],
            ValueError,
            "differ in size",
        ),
        ([np.zeros((4, 4, 3))], ValueError, "must be uint8"),
        ([np.zeros((4, 4), np.uint8)], ValueError, "must be uint8"),
        (broken(), RuntimeError, "the episode broke"),
    ],
    ids=["none", "sizes", "dtype", "shape", "broken"],
)
def test_gif_of_bad_frames_writes_nothing(tmp_path, frames, error, words):
    with pytest.raises(error, match=words):
        write_gif(tmp_path / "film.gif", frames)
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("fps", [0, -1, 51])
def test_gif_of_an_impossible_speed_is_refused(tmp_path, fps):
    with pytest.raises(ValueError, match="fps must be between 1 and 50"):
        write_gif(tmp_path / "film.gif", [rgb(scene(), 4)], fps)


def test_gif_without_pillow_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ValueError, match=r"pip install 'primax-rl\[report\]'"):
        write_gif(tmp_path / "film.gif", [rgb(scene(), 4)])
    assert not os.listdir(tmp_path)


# Playing.


def steps(count):
    return (
        scene((2, 3), agent=[divmod(i, 3)], options={"time": i, "title": f"take {i}"})
        for i in range(count)
    )


@pytest.fixture
def naps(monkeypatch):
    """The pauses asked for, none of them taken."""
    taken = []
    monkeypatch.setattr(render.time, "sleep", taken.append)
    return taken


@pytest.mark.parametrize("dumb", [False, True])
def test_show_away_from_a_terminal_prints_the_last_scene_once(naps, monkeypatch, dumb):
    monkeypatch.setenv("TERM", "dumb" if dumb else "xterm")
    out = io.StringIO()
    show(steps(4), Console(file=out, force_terminal=dumb, color_system=None))
    assert out.getvalue().replace("\x1b[1m", "").replace("\x1b[0m", "") == (
        "take 3\n . . .\n◖◗ . .\ntime 3/100   score 0\n"
    )
    assert not naps


def test_show_of_nothing_prints_nothing(naps):
    out = io.StringIO()
    show([], Console(file=out))
    assert out.getvalue() == ""


def test_show_plays_every_scene_in_a_terminal_at_its_speed(naps):
    out = io.StringIO()
    show(steps(3), Console(file=out, force_terminal=True, width=40, height=20), fps=4)
    played = out.getvalue()
    order = [played.index(f"take {i}") for i in range(3)]
    assert order == sorted(order) and naps == [0.25] * 3
    assert played.rstrip().endswith("\x1b[?25h")  # the cursor is back


def test_show_falls_back_to_plain_characters_where_the_encoding_has_no_others(naps):
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="ascii", newline="\n")
    show(steps(2), Console(file=file))
    file.flush()
    assert raw.getvalue() == b".@.\n...\ntime 1/100   score 0\n"


def test_show_at_an_impossible_speed_is_refused(naps):
    with pytest.raises(ValueError, match="fps must be between"):
        show(steps(1), Console(file=io.StringIO()), fps=0)
