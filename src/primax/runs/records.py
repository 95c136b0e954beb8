"""What a run records beside its tables: pictures over the grid, and a few episodes in full.

Both are a function of a window's outputs and state alone, and hold no clock: a run that is killed
and taken up again records the same bytes.
"""

import base64
import io
import json
import math
from pathlib import Path
from typing import Any

import jax
import numpy as np

from primax import files
from primax.config.schema import Config
from primax.errors import InputError
from primax.runs import npz
from primax.runs.tables import Table
from primax.worlds import GridWorld, World

REPLAYS = 10
"""Windows of a run whose last episode is recorded."""


def map_rows(seeds: tuple[int, ...], clock: int, maps: Table) -> bytes:
    """A window's maps as one npy, a row a seed; `numpy.load` reads one such after the other.

    Nothing where there are none, for want of a grid.
    """
    if not maps:
        return b""
    kinds: list[Any] = [("seed", "<i4"), ("step", "<i4")]
    for name, drawn in maps.items():
        kind = "<f4" if np.issubdtype(drawn.dtype, np.floating) else "<i4"
        kinds.append((name, kind, drawn.shape[1:]))
    rows = np.zeros(len(seeds), kinds)
    for name, values in {"seed": np.array(seeds), "step": clock, **maps}.items():
        rows[name] = values
    file = io.BytesIO()
    np.lib.format.write_array(file, rows, allow_pickle=False)
    return file.getvalue()


def packed_maps(path: Path) -> bytes:
    """All windows' maps as one npz: arrays [window, seed, rows, cols], `step` and `seed`."""
    try:
        with npz.reading():
            return npz.to_bytes(_stacked(path).items(), is_compressed=True)
    except npz.NpzError as error:
        raise InputError(f"{path} cannot be read: {error}") from error


def unpacked_maps(path: Path, seeds: tuple[int, ...]) -> bytes:
    """What `packed_maps` was made from: every window's rows, with the maps that it drew."""
    try:
        with npz.reading():
            maps = dict(npz.read(path))
            check_maps(maps, seeds)
            order, steps = tuple(maps.pop("seed").tolist()), maps.pop("step").tolist()
            drawn = [
                {name: values[i] for name, values in maps.items() if _is_drawn(values[i])}
                for i in range(len(steps))
            ]
            return b"".join(map_rows(order, *window) for window in zip(steps, drawn, strict=True))
    except npz.NpzError as error:
        raise InputError(f"{path} cannot be read: {error}") from error


def _stacked(path: Path) -> Table:
    windows, size = [], path.stat().st_size
    with files.opened(path) as file:
        while file.tell() < size:
            windows.append(npz.read_array(file, size))
    last = windows[-1]
    names = [name for name in last.dtype.names or () if name not in ("seed", "step")]
    arrays = {name: np.stack([_map(rows, last, name) for rows in windows]) for name in names}
    return arrays | {"step": np.array([rows["step"][0] for rows in windows]), "seed": last["seed"]}


def check_maps(maps: Table, seeds: tuple[int, ...]) -> None:
    """Refuses maps that are not [window, seed, rows, cols], or of other seeds."""
    if not {"step", "seed", "visits"} <= set(maps):
        raise InputError("maps.npz lacks step, seed or visits")
    step, seed, shape = maps["step"], maps["seed"], maps["visits"].shape
    if step.dtype.kind != "i" or seed.dtype.kind != "i":
        raise InputError("maps.npz has steps or seeds that are not whole numbers")
    if sorted(seed.ravel().tolist()) != sorted(seeds):
        raise InputError("maps.npz and config.json have different seeds")
    if len(shape) != 4 or shape[:2] != (step.size, seed.size) or not step.size:
        raise InputError(f"maps.npz has visits of shape {shape}")
    for name, values in maps.items():
        if values.shape != {"step": step.shape[:1], "seed": seed.shape[:1]}.get(name, shape):
            raise InputError(f"maps.npz has {name} of shape {values.shape}")


def _map(rows: np.ndarray, like: np.ndarray, name: str) -> np.ndarray:
    """A window's map; one that was not drawn (the warm-up has no reward) is not a number."""
    names = rows.dtype.names or ()
    return rows[name] if name in names else np.full_like(like[name], np.nan)


def _is_drawn(values: np.ndarray) -> bool:
    """Whether a window drew a map, by its bits: `_map` has one not a number for all cells."""
    is_float = np.issubdtype(values.dtype, np.floating)
    return not is_float or values.tobytes() != np.full_like(values, np.nan).tobytes()


def recorded(config: Config, num: int = REPLAYS) -> dict[int, int]:
    """Evenly spaced windows, by their last step, and the episode each is remembered by.

    There are `num` in the schedules' span, and a longer run goes on with the same distances. None
    is where episodes end when they like, for none lies where the clock says.
    """
    if config.is_free:
        return {}
    span = max(1, -(-(config.schedule_span - config.warmup) // config.window))
    chosen, last = dict[int, int](), -1
    for part in range(1, config.windows * num // span + 1):
        clock = config.warmup + -(-part * span // num) * config.window
        episode = clock // config.world.horizon - 1
        if episode > last:
            chosen[clock] = last = episode
    return chosen


def telling(scores: dict[int, float]) -> list[int]:
    """Seeds by how much their episodes tell: the best, the worst, the middle one, then the rest."""
    ranked = sorted(scores, key=lambda seed: (-scores[seed], seed))
    return list(dict.fromkeys([ranked[0], ranked[-1], ranked[len(ranked) // 2], *ranked]))


def replay_lines(config: Config, seeds: tuple[int, ...], clock: int, state: Any) -> bytes:
    """The last whole episode of every seed, a line of JSON each; nothing at most windows' ends.

    Nothing at all where episodes end when they like: none lies where the clock says.
    """
    episode = recorded(config).get(clock)
    if episode is None or state.episodes is not None:
        return b""
    horizon, planes = config.world.horizon, state.obs.shape[1:]
    place = episode % (config.replay // horizon)
    rows = state.ring.rows
    actions, tasks, keys = (_piece(x, place, horizon) for x in (rows.action, rows.task, rows.key))
    bits = _piece(state.ring.slots.bits, place, horizon + 1)
    lines = []
    for i, seed in enumerate(seeds):
        # Added up as the world's tally is, in order, so that it is the score of the table.
        score = np.cumsum(tasks[i], dtype=np.float32)[-1]
        content = {
            "seed": seed,
            "episode": episode,
            "step": (episode + 1) * horizon,
            "score": float(str(score)),
            "actions": "".join(map(str, actions[i].tolist())),
            "keys": keys[i].tolist() if config.keys is None else [],  # others say nothing of cells
            "observations": base64.b64encode(bits[i].tobytes()).decode(),
            "planes": list(planes),
        }
        lines.append(json.dumps(content, separators=(",", ":")) + "\n")
    return "".join(lines).encode()


def planes_of(line: dict[str, Any], world: World) -> np.ndarray:
    """What a recorded episode shows: [frame, channel, rows, cols], zeros and ones."""
    if tuple(line["planes"]) != world.obs_shape:
        raise InputError(f"replays.jsonl has planes {line['planes']}, the world {world.obs_shape}")
    bits = np.frombuffer(base64.b64decode(line["observations"]), np.uint8)
    count, frames = math.prod(world.obs_shape), len(line["actions"]) + 1
    bits = bits.reshape(frames, -(-count // 8))
    return np.unpackbits(bits, axis=1, count=count).reshape(-1, *world.obs_shape)


def levels_of(line: dict[str, Any], world: GridWorld) -> list[int] | None:
    """Where the count key tells levels apart (butterflies alive), the level of every step."""
    num = world.num_keys // math.prod(world.shape)
    if num == 1 or not line["keys"]:
        return None
    return [int(key) // world.num_actions % num for key in line["keys"]]


def _piece(leaf: Any, place: int, size: int) -> np.ndarray:
    """One episode's part of every seed's ring; the place is data, so that nothing is compiled anew."""
    return np.asarray(jax.lax.dynamic_slice_in_dim(leaf, place * size, size, axis=1))
