"""Why a transition is worth what it is: the frozen window of a run, taken apart key by key."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from primax.agent.learner import Learner
from primax.config.schema import Config
from primax.errors import InputError
from primax.methods import build
from primax.output.figure import make_png
from primax.rewards.base import Spec
from primax.rewards.prime import Prime, PrimeConfig
from primax.rewards.prime.intrinsic import Parts
from primax.rewards.prime.novelty import Where
from primax.runs.export import load
from primax.runs.read import open_run
from primax.runs.tables import Table
from primax.worlds import GridWorld, World

PARTS = tuple(field.name for field in fields(Parts))
PLACE = ("row", "col", "level", "action")
MAPS = {
    "visits": ("visits", "steps", "√"),
    "v_epi": ("V_epi", "what can be learnt", "log"),
    "v_ale": ("V_ale", "what is noise", "√"),
    "v_ahead": ("look-ahead", "the gate", "log"),
    "r_int": ("R_int", "before scale and clip", ""),
    "reward": ("reward", "scaled and clipped", ""),
}
"""Name, what it is, and how its colours go where not evenly: what cannot be negative spans a lot."""
WALL, NO_DATA = "#8f939a", "#f4f1ea"
"""As on the page of `primax report`."""


@dataclass(frozen=True)
class Explained:
    """A frozen window, and a row for every count key."""

    config: Config
    seed: int
    step: int
    """Where the run stood when its state was kept."""
    spec: Spec
    walls: np.ndarray | None
    """Where nobody can be, in this seed's world; None where it is not on a grid."""
    damaged: tuple[str, ...]
    """What is wrong with newer checkpoints, which were passed over."""
    table: Table
    """Place (or number of the state) and action, `count`, every part of the reward, and `scaled`,
    before the clip."""


def explain(path: Path, seed: int) -> Explained:
    """From a run's folder (its newest checkpoint) or a file that `primax export` wrote."""
    return _of_run(path, seed) if path.is_dir() else _of_export(path, seed)


def first_seed(path: Path) -> int:
    """The first seed of a run or an exported file."""
    if not path.exists():
        raise InputError(f"{path} is neither a run's folder nor an exported file")
    return (open_run(path).given_seeds if path.is_dir() else load(path).seeds)[0]


def _of_run(folder: Path, seed: int) -> Explained:
    run = open_run(folder)
    config, row = run.config, _row(seed, run.given_seeds)
    world, prime = _built(config)
    clock = run.checkpoint.clock
    if clock <= config.warmup:
        raise InputError(f"{folder} has no window yet: primax resume {folder} goes on with it")
    learner = Learner(config, world, prime)
    state = jax.tree.map(lambda x: x[row], run.state(learner))
    keys, obs, is_met = _newest_observations(learner, state, clock)
    table = _table(prime, state.reward.window, keys, obs, is_met)
    walls = _walls(world, prime.spec, seed)
    return Explained(config, seed, clock, prime.spec, walls, run.checkpoint.damaged, table)


def _walls(world: World, spec: Spec, seed: int) -> np.ndarray | None:
    """None where keys are no cells: there is nothing to draw."""
    mine = world.for_seed(seed)
    return np.asarray(mine.walls) if isinstance(mine, GridWorld) and spec.has_cells else None


def _of_export(path: Path, seed: int) -> Explained:
    exported = load(path)
    world, prime = _built(exported.config)
    _row(seed, exported.seeds)
    if _needs_sight(prime.config):
        raise InputError(
            "this reward depends on observations, which are not exported: give the run's folder"
        )
    like = jax.eval_shape(lambda: prime.init(jax.random.key(0)).window)
    window = exported.tree("reward.window", like, seed)
    keys = _listed_keys(prime.spec, window, np.empty(0, int))
    obs = jnp.zeros((len(keys), *prime.spec.shape), jnp.uint8)
    table = _table(prime, window, keys, obs, np.ones(len(keys), bool))
    step, walls = exported.about["reward_step"], _walls(world, prime.spec, seed)
    return Explained(exported.config, seed, step, prime.spec, walls, (), table)


def _built(config: Config) -> tuple[World, Prime]:
    world, reward = build(config)
    if not isinstance(reward, Prime):
        raise InputError(f"explain works for PRIME's reward only; this is a run of {config.method}")
    return world, reward


def _needs_sight(config: PrimeConfig) -> bool:
    """Whether the reward of a key depends on more than the key."""
    return config.moments == "knn16" or config.novelty != "count"


def _row(seed: int, seeds: tuple[int, ...]) -> int:
    if seed not in seeds:
        raise InputError(f"seed {seed} is not one of the run's seeds: {', '.join(map(str, seeds))}")
    return seeds.index(seed)


def _newest_observations(
    learner: Learner, state: Any, clock: int
) -> tuple[np.ndarray, Any, np.ndarray]:
    """The keys to list, the newest observation each was met in, and whether there is one."""
    spec = learner.reward.spec
    age = np.arange(min(learner.config.recent, clock), 0, -1)
    rows = learner.read(state, jnp.int32(clock), jnp.asarray(age))
    is_lived = np.asarray(rows.weight) > 0
    key, seen = np.asarray(rows.key)[is_lived], np.asarray(rows.obs)[is_lived]
    if key.size and not 0 <= key.min() <= key.max() < spec.num_keys:
        raise InputError("the state was not made by a run: it has keys the world has not")
    keys = _listed_keys(spec, state.reward.window, key)
    at = np.full(spec.num_keys, -1)
    at[keys] = np.arange(len(keys))
    is_listed = at[key] >= 0
    obs = np.zeros((len(keys), *spec.shape), seen.dtype)
    obs[at[key[is_listed]]] = seen[is_listed]  # oldest first, so the newest stays
    is_met = np.zeros(len(keys), bool)
    is_met[at[key[is_listed]]] = True
    return keys, jnp.asarray(obs), is_met


def _listed_keys(spec: Spec, window: Any, met: np.ndarray) -> np.ndarray:
    """All of a grid; of hashed states, which are mostly never met, those that were counted or kept."""
    if spec.has_cells:
        return np.arange(spec.num_keys)
    counts = np.asarray(window.novelty) if hasattr(window.novelty, "shape") else np.empty(0)
    counted = np.flatnonzero(counts > 0) if counts.shape == (spec.num_keys,) else np.empty(0, int)
    return np.union1d(counted, met).astype(int)


def _table(prime: Prime, window: Any, keys: np.ndarray, obs: Any, is_met: np.ndarray) -> Table:
    spec, key = prime.spec, jnp.asarray(keys, jnp.int32)
    parts = prime.freezer.parts(window, Where(obs, key % spec.num_actions, key))
    table: Table = {"state": keys // spec.num_actions, "action": keys % spec.num_actions}
    if spec.has_cells:
        row, col, level = (np.asarray(x) for x in spec.coordinates(key))
        table = {"row": row, "col": col, "level": level, "action": table["action"]}
    if prime.config.novelty == "count":
        table["count"] = np.asarray(window.novelty)[keys]
    table |= {name: np.asarray(getattr(parts, name)) for name in PARTS}
    if _needs_sight(prime.config):
        # Without an observation there is nothing to look from.
        table["has_data"] = table["has_data"] & is_met
    table["scaled"] = float(window.constants.reward_scale) * table["r_int"]
    return table


def choose(table: Table, at: tuple[int, ...] | None, num: int) -> np.ndarray:
    """Rows to show: all of a cell (and level), or those with data that are worth most and least."""
    if at is not None:
        if "row" not in table:
            raise InputError("a place is a cell of a grid: this run's states are no cells of one")
        names = PLACE[: len(at)]
        chosen = np.all([table[name] == value for name, value in zip(names, at, strict=True)], 0)
        if not chosen.any():
            raise InputError(f"{','.join(map(str, at))} is not a place in this world")
        return np.flatnonzero(
            chosen & (table["has_data"] | (table.get("count", table["has_data"]) > 0))
        )
    known = np.flatnonzero(table["has_data"])
    order = known[np.argsort(-table["r_int"][known], kind="stable")]
    return order if len(order) <= 2 * num else np.concatenate([order[:num], order[-num:]])


def cell_maps(found: Explained) -> dict[str, np.ndarray]:
    """The window's parts over the grid: means over the keys of a cell that have data."""
    shape = found.spec.shape[1:]
    cell = found.table["row"] * shape[1] + found.table["col"]
    is_known = found.table["has_data"]
    size = np.bincount(cell[is_known], minlength=shape[0] * shape[1])

    def mean(name: str) -> np.ndarray:
        total = np.bincount(cell[is_known], found.table[name][is_known], shape[0] * shape[1])
        return np.where(size > 0, total / np.maximum(size, 1), np.nan).reshape(shape)

    maps = {}
    if "count" in found.table:
        visits = np.bincount(cell, found.table["count"], shape[0] * shape[1])
        maps["visits"] = visits.reshape(shape)
    return maps | {name: mean(name) for name in MAPS if name != "visits"}


def recorded_maps(folder: Path, seed: int, step: int) -> tuple[int, dict[str, np.ndarray]]:
    """The maps a run kept of the window that ended at a step, or of the nearest one."""
    run = open_run(folder)
    maps = run.maps()
    window = min(range(len(maps["step"])), key=lambda i: abs(int(maps["step"][i]) - step))
    row = _row(seed, run.given_seeds)
    drawn = {name: maps[name][window, row] for name in MAPS if name in maps}
    return int(maps["step"][window]), drawn


def draw(maps: dict[str, np.ndarray], walls: np.ndarray, title: str, path: Path) -> None:
    """Heat maps as one PNG; each has its own scale, and walls are unlike cells without data."""
    columns = min(3, len(maps))
    rows = -(-len(maps) // columns)

    def panels(figure: Any) -> None:
        figure.suptitle(title, x=0.01, ha="left", fontweight="bold")
        drawn = figure.subplots(rows, columns, squeeze=False).flat
        for axes, (name, values) in zip(drawn, maps.items(), strict=False):
            _panel(figure, axes, name, np.where(walls, np.nan, values.astype(float)), walls)
        for axes in drawn[len(maps) :]:
            axes.set_axis_off()

    height = 0.75 + 2.8 * walls.shape[0] / walls.shape[1]
    make_png(path, (3.4 * columns, 0.3 + height * rows), panels)


def _panel(figure: Any, axes: Any, name: str, values: np.ndarray, walls: np.ndarray) -> None:
    from matplotlib.colors import ListedColormap

    label, about, colours = MAPS[name]
    axes.set_title(f"{label}: {about}{f', {colours} colours' * bool(colours)}", loc="left", size=9)
    axes.set(xticks=[], yticks=[], facecolor=NO_DATA)
    axes.spines[:].set_visible(False)
    known = values[np.isfinite(values)]
    ends = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
    image = axes.imshow(np.ma.masked_invalid(values), cmap="viridis", norm=_norm(colours, *ends))
    axes.imshow(np.ma.masked_equal(walls, 0), cmap=ListedColormap([WALL]))
    bar = figure.colorbar(image, ax=axes, location="bottom", aspect=40, pad=0.03)
    bar.outline.set_visible(False)
    bar.minorticks_off()
    labels = [f"{end:.3g}".replace("-", "\N{MINUS SIGN}") for end in ends]
    bar.set_ticks(image.get_clim(), labels=labels if known.size else ["no data", ""])


def _norm(colours: str, low: float, high: float) -> Any:
    """From the lowest to the highest value; by powers of ten no further down than four."""
    from matplotlib.colors import LogNorm, Normalize, PowerNorm

    if low == high:
        return Normalize(low, low + 1)
    floor = max(low, high / 1e4)
    if colours == "log" and high > floor:
        return LogNorm(floor, high, clip=True)
    return PowerNorm(0.5, low, high) if colours == "√" else Normalize(low, high)
