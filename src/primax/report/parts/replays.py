"""Recorded episodes as frames a browser can play: the cells that are set, plane by plane."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from primax.errors import InputError
from primax.report.packing import column, number, text
from primax.report.parts.frozen import Frozen
from primax.report.parts.heat import MAPS, Arrays
from primax.runs import records
from primax.worlds import GridWorld

BYTES = 2_600_000
"""All episodes on a page take about so much."""
PARTS = tuple(name for name in MAPS if name != "visits")
U8_CELLS = 255
"""The most cells whose numbers, and whose count, fit a byte."""
Line = dict[str, Any]


@dataclass(frozen=True)
class Known:
    """What a run's folder tells of its reward, step by step."""

    seeds: tuple[int, ...]
    maps: Arrays | None = None
    """Means of each cell in every window."""
    frozen: Frozen | None = None
    """The newest window, key by key."""


def pack(lines: list[Line], world: GridWorld, known: Known) -> dict[str, Any]:
    """Every episode, with the reward's parts where they can be had."""
    planes = [records.planes_of(line, world) for line in lines]
    whole = np.concatenate(planes)
    moving = ~(whole == whole[:1]).all(axis=(0, 2, 3))
    still = {
        name: np.flatnonzero(whole[0, i]).tolist()
        for i, name in enumerate(world.channels)
        if not moving[i]
    }
    return {
        "shape": list(world.shape),
        "channels": [name for i, name in enumerate(world.channels) if moving[i]],
        "still": still,
        "bytes": 1 if math.prod(world.shape) <= U8_CELLS else 2,
        "episodes": [
            _episode(line, world, known, drawn, moving)
            for line, drawn in zip(lines, planes, strict=True)
        ],
    }


def choose(packed: dict[str, Any], scores: dict[int, float], room: int) -> dict[str, Any]:
    """As many seeds as fit: the best by run average, the worst, the middle, then the rest."""
    episodes = packed["episodes"]
    seeds = {episode["seed"] for episode in episodes}
    kept: list[int] = []
    for seed in records.telling({seed: scores.get(seed, -math.inf) for seed in seeds}):
        size = sum(_size(episode) for episode in episodes if episode["seed"] == seed)
        if kept and size > room:
            break
        kept.append(seed)
        room -= size
    chosen = [episode for episode in episodes if episode["seed"] in kept]
    return packed | {"episodes": chosen, "seeds": len(seeds), "kept": sorted(kept)}


def need(packed: dict[str, Any]) -> int:
    """Bytes of all episodes, about."""
    return sum(_size(episode) for episode in packed["episodes"])


def _size(episode: dict[str, Any]) -> int:
    parts = episode["parts"].values() if episode["parts"] else ()
    return len(episode["frames"]) + sum(len(part["data"]) for part in parts) + 500


def _episode(
    line: Line, world: GridWorld, known: Known, planes: np.ndarray, moving: np.ndarray
) -> dict[str, Any]:
    actions = str(line["actions"])
    if set(actions) - set("0123456789"[: world.num_actions]):
        raise InputError("replays.jsonl has an action this world does not know")
    agents = planes[:, world.channels.index("agent")].reshape(len(planes), -1).argmax(axis=1)
    exact = _exact(line, known.frozen)
    return {
        "seed": int(line["seed"]),
        "episode": int(line["episode"]),
        "step": int(line["step"]),
        "score": number(float(line["score"])),
        "actions": actions,
        "left": records.levels_of(line, world),
        "frames": frames(planes[:, moving]),
        "parts": exact or _means(line, agents[:-1], known),
        "is_exact": exact is not None,
    }


def frames(planes: np.ndarray) -> str:
    """Per frame and channel how many cells are set, then which; two bytes where one is too few."""
    flat = planes.reshape(*planes.shape[:2], -1)
    kind = np.dtype("u1" if flat.shape[2] <= U8_CELLS else "<u2")
    pieces: list[int] = []
    for frame in flat:
        for plane in frame:
            cells = np.flatnonzero(plane)
            pieces += [len(cells), *cells.tolist()]
    return text(np.array(pieces, kind))


def _exact(line: Line, frozen: Frozen | None) -> dict[str, Any] | None:
    """Of the very step, by its count key, where the episode lies in the window that is frozen."""
    seed, last, keys = int(line["seed"]), int(line["step"]), np.array(line["keys"], int)
    if not len(keys) or frozen is None or not frozen.covers(seed, last - len(keys), last):
        return None
    table = frozen.tables[seed]
    return {name: column(table[name][keys].astype(float)) for name in PARTS}


def _means(line: Line, cells: np.ndarray, known: Known) -> dict[str, Any] | None:
    """Means of the cell each step starts in, as of the beginning of that step's window."""
    maps = known.maps
    names = [name for name in PARTS if maps and name in maps]
    if maps is None or not names:
        return None
    steps = int(line["step"]) - len(cells) + np.arange(len(cells))
    window = np.searchsorted(maps["step"], steps, side="right")
    if window.max(initial=0) >= len(maps["step"]):
        return None  # the run's maps end before the episode does
    row = known.seeds.index(int(line["seed"]))
    flat = {name: maps[name].reshape(*maps[name].shape[:2], -1) for name in names}
    return {name: column(values[window, row, cells].astype(float)) for name, values in flat.items()}
