"""Maps over training a page can carry: windows in equal groups, eight bits a cell."""

import math
from typing import Any

import numpy as np

from primax import explain
from primax.report.packing import U8, Scale, quantise, scale_of, text
from primax.runs.records import check_maps

BYTES = 3_200_000
"""All maps on a page take about so much."""
POSITIONS, FEWEST_BY_SEED, FEWEST = 60, 20, 8
"""Of the slider: at most, at least where every seed is kept, at least."""
MAPS = explain.MAPS | {"visits": ("visits", "% of steps", "√")}
Arrays = dict[str, np.ndarray]


def checked(maps: Arrays, seeds: tuple[int, ...]) -> Arrays:
    """The maps with seeds in rising order; InputError where they are not those of the run."""
    check_maps(maps, seeds)
    order = np.argsort(maps["seed"], kind="stable")
    return {"step": maps["step"]} | {name: maps[name][:, order] for name in MAPS if name in maps}


def pack(maps: Arrays, room: int) -> dict[str, Any]:
    """Groups of windows: of visits the share of steps, of the reward's parts the mean."""
    names = [name for name in MAPS if name in maps]
    windows, seeds, rows, cols = maps["visits"].shape
    positions, by_seed = fit(windows, seeds, len(names) * rows * cols, room)
    bins = np.array_split(np.arange(windows), positions)
    begins = [0, *(int(maps["step"][part[-1]]) for part in bins)]
    drawn = {name: _packed(_grouped(maps[name], bins, name, by_seed)) for name in names}
    return {
        "shape": [rows, cols],
        "begins": begins,
        "windows": windows,
        "by_seed": by_seed,
        "maps": drawn,
    }


def need(maps: Arrays) -> int:
    """Bytes of all positions and seeds."""
    windows, seeds, rows, cols = maps["visits"].shape
    cells = sum(name in maps for name in MAPS) * rows * cols
    return math.ceil(4 / 3 * min(windows, POSITIONS) * cells * (seeds + 1))


def fit(windows: int, seeds: int, cells: int, room: int) -> tuple[int, bool]:
    """How many slider positions fit, and whether every seed does beside the mean."""
    most = min(windows, POSITIONS)
    all_seeds = int(room / (4 / 3 * cells * (seeds + 1)))
    if all_seeds >= min(most, FEWEST_BY_SEED):
        return min(most, all_seeds), seeds > 1
    return max(min(most, int(room / (4 / 3 * cells))), min(most, FEWEST)), False


def _grouped(values: np.ndarray, bins: list[np.ndarray], name: str, by_seed: bool) -> np.ndarray:
    """[position, mean then seeds, rows, cols]."""
    found = []
    for part in bins:
        group = values[part].astype(float)
        if name == "visits":
            total = np.maximum(group.sum(axis=(0, 2, 3), keepdims=True)[0], 1)
            seeds = 100 * group.sum(axis=0) / total
            mean = seeds.mean(axis=0)
        else:
            seeds, mean = _mean(group, (0,)), _mean(group, (0, 1))
        found.append(np.concatenate([mean[None], seeds]) if by_seed else mean[None])
    return np.stack(found)


def _mean(values: np.ndarray, axis: tuple[int, ...]) -> np.ndarray:
    """Over what there is; not a number where there is nothing."""
    known = np.isfinite(values)
    count, total = known.sum(axis=axis), np.where(known, values, 0).sum(axis=axis)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _packed(values: np.ndarray) -> dict[str, Any]:
    """Each position on its own scale, in 254 steps; 255 is no data."""
    scales: list[Scale] = [scale_of(frame) for frame in values]
    frames = [quantise(frame, scale, U8) for frame, scale in zip(values, scales, strict=True)]
    known = [list(s) if np.isfinite(f).any() else None for f, s in zip(values, scales, strict=True)]
    return {"scales": known, "data": text(np.stack(frames))}
