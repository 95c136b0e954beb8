"""Pictures of a world, drawn from its planes and their names alone: a new world gets them free."""

import io
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8
from rich.console import Console
from rich.live import Live
from rich.text import Text

from primax import files
from primax.errors import InputError, check_range
from primax.worlds.drawing import glyphs as looks

Grid = Bool[np.ndarray, "rows cols"]
FADE = 0.93  # what one step leaves of a trail
SHOWN = 64  # steps after which it is too faint to see
ARMS = {(-1, 0): (1, 2), (1, 0): (2, 1), (0, 1): (3, 4), (0, -1): (4, 3)}  # out of, into a cell
HALF = np.float32(0.5)  # rounds where a cast to bytes would cut
SMALLEST_CELL, LARGEST_CELL = 4, 256


@dataclass(frozen=True, eq=False)
class Scene:
    """What one moment of an episode shows."""

    planes: np.ndarray
    """(channels, rows, cols), 0 or 1."""
    channels: tuple[str, ...]
    """Name of each plane."""
    trail: tuple[int, ...] = ()
    """Flat cells the agent stood on before, oldest first."""
    time: int = 0
    """Steps taken."""
    horizon: int = 100
    """Steps in an episode."""
    score: int | float | None = 0.0
    """Task signal summed so far; None where that is not known."""
    alive: int | None = None
    """Targets left; None where the world has none."""
    total: int | None = None
    """Targets at the start."""
    title: str = ""
    """Heading in a terminal, e.g. `Butterflies · chase`."""

    def __post_init__(self) -> None:
        if self.planes.ndim != 3 or len(self.planes) != len(self.channels):
            raise InputError(
                f"planes of shape {self.planes.shape} for {len(self.channels)} channels"
            )
        if any(not 0 <= cell < self.planes[0].size for cell in self.trail):
            raise InputError(f"trail leaves the {self.planes[0].size} cells of the grid")


def rgb(scene: Scene, cell: int = 32) -> np.ndarray:
    """The scene as `uint8` (height, width, 3), both even as video encoders want, with a HUD below."""
    check_range("cell", cell, SMALLEST_CELL, LARGEST_CELL)
    _, rows, cols = scene.planes.shape
    tiles = np.empty((rows, cols, cell, cell, 3), np.uint8)
    tiles[:] = _floor(cell)
    order = looks.glyphs(scene.channels)
    _draw(tiles, scene, [glyph for glyph in order if glyph[1].depth < 0])
    _draw_trail(tiles, scene)
    _draw(tiles, scene, [glyph for glyph in order if glyph[1].depth >= 0])
    return _framed(scene, tiles.transpose(0, 2, 1, 3, 4).reshape(rows * cell, cols * cell, 3))


def _floor(cell: int) -> UInt8[np.ndarray, "cell cell 3"]:
    tile = np.full((cell, cell, 3), looks.colour(looks.FLOOR), np.uint8)
    tile[0] = tile[:, 0] = looks.colour(looks.LINE)
    return tile


def _draw(tiles: np.ndarray, scene: Scene, order: list[tuple[int, looks.Glyph]]) -> None:
    """Lays each channel's sprites over the cells where its plane is set."""
    for index, glyph in order:
        on = scene.planes[index] != 0
        bank = looks.sprites(glyph, len(tiles[0, 0]))
        over = bank[_variants(on, glyph, scene.time)[on]]
        tiles[on] = tiles[on] * (1 - over[..., 3:]) + over[..., :3] + HALF


def _variants(on: Grid, glyph: looks.Glyph, moment: int) -> Int[np.ndarray, "rows cols"]:
    """Which of the glyph's sprites each cell takes."""
    if glyph.joins:
        near = np.pad(on, 1).astype(int)
        return near[:-2, 1:-1] + 2 * near[2:, 1:-1] + 4 * near[1:-1, 2:] + 8 * near[1:-1, :-2]
    rows, cols = np.indices(on.shape)
    return (rows + 2 * cols + moment) % len(glyph.shapes)


def _strength(scene: Scene) -> Float[np.ndarray, "5 rows cols"]:
    """How strong the trail is at each cell: a dot, then the bars towards N, S, E and W."""
    strength = np.zeros((5, *scene.planes.shape[1:]), np.float32)
    trail = scene.trail[-SHOWN:]
    agents = [p for p, name in zip(scene.planes, scene.channels, strict=True) if name == "agent"]
    cells = (*trail, *(int(cell) for plane in agents for cell in np.flatnonzero(plane)[:1]))
    path = [divmod(cell, scene.planes.shape[2]) for cell in cells]
    # Oldest first: of two visits the newer, stronger one stays.
    for step, here in enumerate(path[: len(trail)]):
        there = path[min(step + 1, len(path) - 1)]
        arm, back = ARMS.get((there[0] - here[0], there[1] - here[1]), (0, 0))
        strength[(0, arm), *here] = strength[back, *there] = FADE ** (len(trail) - 1 - step)
    return strength


def _draw_trail(tiles: np.ndarray, scene: Scene) -> None:
    strength = _strength(scene)
    on = strength.max(axis=0) > 0
    pieces = strength[:, on][..., None, None] * looks.arms(len(tiles[0, 0]))[:, None]
    alpha = np.float32(0.55) * pieces.max(axis=0)
    tiles[on] = _blend(tiles[on], alpha, looks.BLUE) + HALF


def _framed(scene: Scene, board: np.ndarray) -> UInt8[np.ndarray, "height width 3"]:
    """The board on a page, closed by a line, with the HUD below."""
    rows, cols = board.shape[:2]
    pad = int(np.clip(cols // 24, 2, 12))
    hud = _hud(scene, cols, pad)
    height, width = rows + len(hud) + 2 * pad + pad // 2, cols + 2 * pad
    page = np.empty((height + height % 2, width + width % 2, 3), np.uint8)
    page[:] = np.full(page.shape[1:], looks.colour(looks.PAGE), np.uint8)
    page[pad + rows, pad : pad + cols + 1] = looks.colour(looks.LINE)
    page[pad : pad + rows, pad + cols] = looks.colour(looks.LINE)
    page[pad : pad + rows, pad : pad + cols] = board
    page[2 * pad + rows :, pad : pad + cols][: len(hud)] = hud
    return page


def _hud(scene: Scene, width: int, unit: int) -> UInt8[np.ndarray, "height width 3"]:
    """A bar of the time gone and, where there are targets, a row of pips."""
    x = np.arange(width, dtype=np.float32) + HALF
    y = np.arange(unit + unit // 2, dtype=np.float32)[:, None] + HALF
    page = np.full((len(y), width, 3), looks.colour(looks.PAGE))
    total = _total(scene)
    pips = [_pips(page, x, y - unit * 0.6, scene.alive or 0, total)] if total else []
    rows = [_bar(page, x, y, unit * 0.3, scene.time / max(scene.horizon, 1)), *pips]
    return (np.concatenate(rows) + HALF).astype(np.uint8)


def _total(scene: Scene) -> int:
    """Targets at the start; zero where the world has none."""
    return (scene.alive or 0) if scene.total is None else scene.total


def _bar(page: np.ndarray, x: np.ndarray, y: np.ndarray, radius: float, part: float) -> np.ndarray:
    """A round-ended track along the top, `part` of it filled."""
    end = (len(x) - 2 * radius, 0.0)
    track = looks.coverage(looks.capsule(x - radius, y - radius, end, radius), 1)
    filled = track * np.clip(len(x) * part - x + HALF, 0, 1)
    return _blend(_blend(page, track, looks.LINE), filled, looks.BLUE)


def _pips(page: np.ndarray, x: np.ndarray, y: np.ndarray, alive: int, total: int) -> np.ndarray:
    """One pip a target about y = 0, whole while it lives and a rim after."""
    space = min(len(page) * 0.93, len(x) / total)
    pip = np.floor(x / space)
    far = looks.disc(x - (pip + HALF) * space, y, 0.36 * space)
    rim = np.maximum(far, -far - max(1.0, 0.1 * space))
    whole = looks.coverage(far, 1) * (pip < min(alive, total))
    empty = looks.coverage(rim, 1) * (pip >= alive) * (pip < total)
    return _blend(_blend(page, whole, looks.ORANGE), empty, looks.MUTED)


def _blend(under: np.ndarray, alpha: np.ndarray, code: str) -> np.ndarray:
    return under + alpha[..., None] * (looks.colour(code) - under)


def ansi(scene: Scene) -> str:
    """One plain character a cell, the topmost channel's."""
    chars = np.full(scene.planes.shape[1:], ".")
    for index, glyph in looks.glyphs(scene.channels):
        chars[scene.planes[index] != 0] = glyph.char
    return "\n".join("".join(row) for row in chars)


def text(scene: Scene) -> Text:
    """Two columns a cell on paper of its own, so that it reads on dark and light terminals."""
    picture = Text(no_wrap=True, overflow="crop")
    if scene.title:
        picture.append(_one_line(scene.title) + "\n", style="bold")
    strength = _strength(scene)[0]
    for where in np.ndindex(scene.planes.shape[1:]):
        picture.append(*_columns(scene, where, float(strength[where])))
        if where[1] == scene.planes.shape[2] - 1:
            picture.append("\n")
    return picture.append(_status(scene))


def _columns(scene: Scene, where: tuple[int, int], trail: float) -> tuple[str, str]:
    """The two characters of a cell and their style; colours off, the characters still tell."""
    tint = _blend(looks.colour(looks.FLOOR)[None], np.array([0.4 * trail]), looks.BLUE)[0]
    columns, ink = (" o", looks.BLUE) if trail else (" .", looks.MUTED)
    paper = "#" + bytes(tint.astype(np.uint8)).hex()
    for index, glyph in looks.glyphs(scene.channels):
        if scene.planes[index][where]:
            columns, ink, paper = glyph.columns, glyph.ink, glyph.paper or paper
    return columns, f"{ink} on {paper}"


def _status(scene: Scene) -> str:
    alive = f"   alive {scene.alive or 0}/{_total(scene)}" if _total(scene) else ""
    score = "" if scene.score is None else f"   score {scene.score:g}"
    return f"time {scene.time}/{scene.horizon}{score}{alive}"


def _one_line(title: str) -> str:
    """Control characters would move the cursor."""
    return "".join(char if char.isprintable() else " " for char in title)


def write_gif(path: Path, frames: Iterable[np.ndarray], fps: int = 8) -> None:
    """An endless GIF with one palette for all frames; `path` is replaced whole or not at all."""
    check_range("fps", fps, 1, 50)
    pictures = [_checked(frame) for frame in frames]
    if not pictures:
        raise InputError(f"cannot write {path}: no frames")
    if len({picture.shape for picture in pictures}) > 1:
        raise InputError(f"cannot write {path}: the frames differ in size")
    files.overwrite(path, _gif(pictures, fps))


def _checked(frame: np.ndarray) -> np.ndarray:
    if frame.ndim != 3 or frame.shape[-1] != 3 or frame.dtype != np.uint8:
        raise InputError(
            f"a frame must be uint8 (height, width, 3), got {frame.dtype} {frame.shape}"
        )
    return frame


def _gif(frames: list[np.ndarray], fps: int) -> bytes:
    try:
        from PIL import Image
    except ImportError:
        raise InputError("a GIF needs pillow: pip install 'primax-rl[report]'") from None
    codes = [frame @ np.array([1 << 16, 1 << 8, 1], np.uint32) for frame in frames]
    seen = np.unique(np.concatenate([np.unique(code) for code in codes]))
    strip = np.stack([seen >> 16, seen >> 8 & 255, seen & 255], axis=-1).astype(np.uint8)
    # Each colour counts once, so that a flash of one frame weighs as much as a wall; a pixel is
    # looked up by its colour alone, so that what stands still cannot flicker.
    mixed = Image.fromarray(strip[None]).quantize(256, Image.Quantize.MAXCOVERAGE)
    table = np.asarray(mixed)[0]
    first, *rest = [Image.fromarray(table[np.searchsorted(seen, code)]) for code in codes]
    for picture in (first, *rest):
        picture.putpalette(mixed.getpalette() or ())
    data = io.BytesIO()
    first.save(data, "GIF", save_all=True, append_images=rest, duration=1000 / fps, loop=0)
    return data.getvalue()


def show(scenes: Iterable[Scene], console: Console, fps: int | float = 8) -> None:
    """Plays in a terminal; elsewhere prints the last scene only."""
    check_range("fps", fps, 0.1, 240)
    picture = _plain if console.options.ascii_only else text
    if not console.is_terminal or console.is_dumb_terminal:
        for scene in deque(scenes, maxlen=1):
            console.print(picture(scene))
        return
    with Live(console=console, auto_refresh=False) as live:
        for scene in scenes:
            live.update(picture(scene), refresh=True)
            time.sleep(1 / fps)


def _plain(scene: Scene) -> Text:
    """For a console whose encoding is not UTF-8."""
    return Text(f"{ansi(scene)}\n{_status(scene)}", no_wrap=True, overflow="crop")
