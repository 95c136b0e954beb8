"""How a channel looks: a character, two terminal columns, and an anti-aliased sprite."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float

Plane = Float[np.ndarray, "cell cell"]
Layer = tuple[Plane, str | np.ndarray, float | Plane]  # signed distance, colour, opacity

PAGE, FLOOR, LINE, INK, MUTED = "#fdfcf9", "#f6f3ec", "#e6e1d6", "#2b303b", "#b9b4a8"
BLUE, ORANGE, VERMILLION, GREEN, YELLOW = "#0072b2", "#e69f00", "#d55e00", "#009e73", "#f0e442"
# Okabe and Ito's colour-blind safe set, those no known channel uses first.
FALLBACK = ("#cc79a7", "#56b4e9", VERMILLION, GREEN, ORANGE, YELLOW, BLUE)
STATIC = np.array([[3, 9, 1, 6], [8, 0, 5, 10], [2, 7, 11, 4], [10, 5, 3, 8]]) / 11


@dataclass(frozen=True)
class Glyph:
    """The looks of one channel."""

    char: str
    """One plain character."""
    columns: str
    """Two terminal columns, none of ambiguous width."""
    ink: str
    """Colour of the columns."""
    paper: str | None
    """Colour behind the columns; None keeps what lies below."""
    depth: int
    """Drawn in this order; below zero is ground, under the trail."""
    shapes: tuple[Callable[[Plane, Plane], list[Layer]], ...]
    """Variants of the sprite, each a picture over x and y from -0.5 to 0.5."""
    joins: bool = False
    """Variant by which neighbours are set too (bits: N, S, E, W); else they take turns."""


def colour(code: str) -> np.ndarray:
    """`#rrggbb` as three floats from 0 to 255."""
    return np.array(list(bytes.fromhex(code[1:])), np.float32)


def coverage(distance: np.ndarray, scale: int) -> np.ndarray:
    """How much of each pixel lies inside, by its signed distance; `scale` is pixels a unit."""
    return np.clip(0.5 - distance * scale, 0, 1)


def disc(x: np.ndarray, y: np.ndarray, radius: float | np.ndarray) -> np.ndarray:
    """Signed distance to a disc about the origin."""
    return np.hypot(x, y) - radius


def capsule(x: np.ndarray, y: np.ndarray, end: tuple[float, float], radius: float) -> np.ndarray:
    """Signed distance to a round-ended line from the origin to `end`."""
    along = np.clip((x * end[0] + y * end[1]) / (end[0] ** 2 + end[1] ** 2), 0, 1)
    return disc(x - along * end[0], y - along * end[1], radius)


def _ellipse(x: Plane, y: Plane, radii: tuple[float, float], turn: float) -> Plane:
    """Distance to a turned ellipse, first order: exact on the outline, where it is looked at."""
    a = (x * np.cos(turn) + y * np.sin(turn)) / radii[0]
    b = (y * np.cos(turn) - x * np.sin(turn)) / radii[1]
    ratio = np.hypot(a, b)
    return ratio * (ratio - 1) / np.maximum(np.hypot(a / radii[0], b / radii[1]), 1e-6)


def _shadow(distance: Plane) -> Layer:
    return distance, INK, 0.12


def _agent(x: Plane, y: Plane) -> list[Layer]:
    return [
        _shadow(disc(x, y - 0.05, 0.38)),
        (disc(x, y, 0.38), BLUE, 1.0),
        (disc(x, y, 0.315), "#ffffff", 1.0),
        (disc(x, y, 0.255), BLUE, 1.0),
        (disc(x + 0.07, y + 0.08, 0.06), "#ffffff", 0.55),
    ]


def _wings(x: Plane, y: Plane, grow: float = 0.0) -> tuple[Plane, Plane]:
    """One upper and one lower wing, mirrored."""
    side = np.abs(x)
    upper = _ellipse(side - 0.21, y + 0.13, (0.21, 0.14), -0.6) - grow
    return upper, _ellipse(side - 0.15, y - 0.16, (0.16, 0.12), 0.8) - grow


def _butterfly(x: Plane, y: Plane) -> list[Layer]:
    upper, lower = _wings(x, y)
    side = np.abs(x)
    return [
        _shadow(np.minimum(*_wings(x, y - 0.05))),
        (np.minimum(*_wings(x, y, 0.025)), "#8a3d00", 1.0),
        (lower, VERMILLION, 1.0),
        (upper, ORANGE, 1.0),
        (disc(side - 0.26, y + 0.16, 0.055), "#fff3d6", 0.9),
        (capsule(side, y + 0.2, (0.1, -0.17), 0.012), INK, 1.0),
        (capsule(x, y + 0.18, (0.0, 0.4), 0.04), INK, 1.0),
    ]


def _flag(x: Plane, y: Plane) -> list[Layer]:
    """On a pad, which stays in sight when the agent stands there."""
    pad = np.hypot(np.maximum(np.abs(x) - 0.3, 0), np.maximum(np.abs(y) - 0.3, 0)) - 0.16
    x, y = x + 0.2, y + 0.18
    pennant = np.maximum(-x, x * 0.42 + np.abs(y) * 0.91 - 0.21) - 0.025
    return [
        (pad, GREEN, 0.25),
        _shadow(_ellipse(x - 0.04, y - 0.54, (0.2, 0.07), 0.0)),
        (pennant, GREEN, 1.0),
        (capsule(x, y + 0.22, (0.0, 0.75), 0.035), INK, 1.0),
    ]


def _flash(x: Plane, y: Plane) -> list[Layer]:
    """Wider than the agent, which stands on what it has just caught."""
    radius, angle = np.hypot(x, y), np.arctan2(y, x)
    glow = np.clip(1.6 - radius / 0.5, 0, 1)
    star = (radius - 0.45 - 0.1 * np.cos(8 * angle)) * 0.6  # scaled: the rays are steep
    return [(radius - 1, YELLOW, 0.7 * glow), (star, ORANGE, 1.0), (star + 0.035, YELLOW, 1.0)]


def _noise(turns: int) -> Callable[[Plane, Plane], list[Layer]]:
    def shape(x: Plane, y: Plane) -> list[Layer]:
        level = np.rot90(STATIC, turns)[((y + 0.5) * 4).astype(int), ((x + 0.5) * 4).astype(int)]
        grey = colour("#a9a8ad") + level[..., None] * (colour("#e4e2e0") - colour("#a9a8ad"))
        return [(np.maximum(np.abs(x), np.abs(y)) - 0.47, grey, 1.0)]

    return shape


def _wall(joined: int) -> Callable[[Plane, Plane], list[Layer]]:
    """A block whose corners are round unless a wall stands beside them (bits: N, S, E, W)."""

    def shape(x: Plane, y: Plane) -> list[Layer]:
        beside = np.where(y < 0, joined & 1, joined & 2) | np.where(x > 0, joined & 4, joined & 8)
        radius = np.where(beside, 0.0, 0.26)
        right, down = np.abs(x) - 0.5 + radius, np.abs(y) - 0.5 + radius
        corner = np.hypot(np.maximum(right, 0), np.maximum(down, 0)) - radius
        # A straight edge reaches past the cell so that neighbours meet without a seam.
        return [(np.where(np.minimum(right, down) > 0, corner, -1.0), INK, 1.0)]

    return shape


def _unknown(code: str) -> Callable[[Plane, Plane], list[Layer]]:
    def shape(x: Plane, y: Plane) -> list[Layer]:
        diamond = (np.abs(x) + np.abs(y) - 0.34) * 0.7 - 0.05
        return [(diamond - 0.03, INK, 0.55), (diamond, code, 1.0)]

    return shape


KNOWN = {
    "noise": Glyph("~", "::", "#8d8b90", "#d5d3d2", -2, tuple(map(_noise, range(4)))),
    "wall": Glyph("#", "##", "#3c4250", INK, -1, tuple(map(_wall, range(16))), joins=True),
    "flag": Glyph("F", "|>", "#00694c", "#b9e2d2", 0, (_flag,)),
    "butterfly": Glyph("B", "ʚɞ", VERMILLION, None, 2, (_butterfly,)),
    "caught_flash": Glyph("*", "**", "#8a6d00", YELLOW, 3, (_flash,)),
    "agent": Glyph("@", "◖◗", BLUE, None, 4, (_agent,)),
}


@lru_cache(maxsize=64)
def glyphs(channels: tuple[str, ...]) -> tuple[tuple[int, Glyph], ...]:
    """Index and looks of every channel in drawing order; unknown names get a fallback."""
    strangers = [name for name in channels if name not in KNOWN]
    looks = [KNOWN.get(name) or _stranger(name, strangers.index(name)) for name in channels]
    order = sorted(range(len(channels)), key=lambda i: looks[i].depth)
    return tuple((i, looks[i]) for i in order)


def _stranger(name: str, index: int) -> Glyph:
    """Initial in lower case (known characters are not) and a colour by order of appearance."""
    char = name[:1].lower() if name[:1].isascii() and name[:1].isalnum() else "?"
    code = FALLBACK[index % len(FALLBACK)]
    return Glyph(char, char * 2, INK, code, 1, (_unknown(code),))


def centres(cell: int) -> tuple[Plane, Plane]:
    """x and y of every pixel's centre in a cell that reaches from -0.5 to 0.5."""
    at = ((np.arange(cell) + 0.5) / cell - 0.5).astype(np.float32)
    return np.broadcast_to(at, (cell, cell)), np.broadcast_to(at[:, None], (cell, cell))


@lru_cache(maxsize=64)
def sprites(glyph: Glyph, cell: int) -> Float[np.ndarray, "variants cell cell 4"]:
    """Every variant of a glyph, colour times opacity and then opacity."""
    bank = np.zeros((len(glyph.shapes), cell, cell, 4), np.float32)
    for picture, shape in zip(bank, glyph.shapes, strict=True):
        for distance, code, opacity in shape(*centres(cell)):
            alpha = (coverage(distance, cell) * opacity)[..., None]
            ink = colour(code) if isinstance(code, str) else code
            picture *= 1 - alpha
            picture += np.concatenate([ink * alpha, alpha + np.zeros_like(picture[..., :1])], -1)
    bank.flags.writeable = False
    return bank


@lru_cache(maxsize=64)
def arms(cell: int) -> Float[np.ndarray, "5 cell cell"]:
    """Pieces of a trail: a dot, then bars from the centre to the N, S, E and W edge."""
    x, y = centres(cell)
    ends = ((0.0, -1.0), (0.0, 1.0), (1.0, 0.0), (-1.0, 0.0))
    bars = [coverage(capsule(x, y, end, max(0.045, 0.8 / cell)), cell) for end in ends]
    pieces = np.stack([coverage(disc(x, y, max(0.11, 1.6 / cell)), cell), *bars], dtype=np.float32)
    pieces.flags.writeable = False
    return pieces
