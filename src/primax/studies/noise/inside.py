"""What PRIME's reward was made of in either wing of TwoWings over training, and what the formulas make
of the visits that were found there."""

from dataclasses import asdict, dataclass

import jax
import jax.numpy as jnp
import numpy as np

from primax.errors import InputError
from primax.runs.read import Floats, Run
from primax.runs.records import recorded
from primax.studies.noise import predict
from primax.studies.noise.cells import WINGS, Cell, Variant
from primax.studies.noise.found import BY_NAME, Found
from primax.studies.noise.predict import Numbers
from primax.worlds import World, make_world

READ = ("v_epi", "v_ale", "v_ahead", "r_int")
"""Maps that are read: means over the newest rows that start in a cell; r_int as it is before it is
scaled and clipped."""


@dataclass(frozen=True)
class Inside:
    """Of one wing, at the windows that are kept: means over the cells that the newest rows hold, then
    over seeds; not a number where no seed's rows hold any."""

    steps: Floats
    """At which the reward was frozen."""
    visits: Floats
    """N of a state and action then, on average over all of the wing's."""
    held: Floats
    """Share of the wing's cells that the newest rows hold; of others the reward knows no noise."""
    v_epi: Floats
    v_ale: Floats
    gate: Floats
    """α times the look-ahead."""
    penalty: Floats
    """V_epi less R_int."""
    r_int: Floats


def inside(found: Found, variant: Variant, is_noisy: bool) -> Inside | None:
    """Of a variant of PRIME in TwoWings; None where its runs or their maps are not there."""
    cell = _cell(variant)
    runs = [run for run in found.runs(cell) if isinstance(run, Run) and run.keeps("maps.npz")]
    if len(runs) < len(found.runs(cell)):
        return None
    config = cell.config(found.scale)
    return joined([wing(run, is_noisy) for run in runs], Numbers.of(config))


def computed(found: Found, variant: Variant, seen: Inside) -> Inside:
    """What the formulas make of the visits that were found in the noisy wing."""
    config = _cell(variant).config(found.scale)
    return from_visits(seen, Numbers.of(config), predict.least_noise(config))


def why_not(found: Found, variant: Variant) -> str:
    """In a sentence, where there is nothing of a variant."""
    return "No maps were kept of these runs." if found.is_there(_cell(variant)) else "Not run."


def _cell(variant: Variant) -> Cell:
    return BY_NAME[variant.name, WINGS.name]


Parts = dict[str, Floats]
"""Arrays [seed, time] by name."""


def wing(run: Run, is_noisy: bool) -> Parts:
    """One run's maps, averaged over the cells of the noisy wing or of the silent one.

    A map of step t is of the reward that was frozen a window before t, and so are the counts it was
    made with. A packed run has visits between kept windows alone: those of the last window before t
    are taken off as its share of that time. A run with all windows is read in the same way.
    """
    maps, window, ends = run.maps(), run.config.window, sorted(recorded(run.config))
    steps = maps["step"]
    if not np.isin(ends, steps).all():
        raise InputError(f"maps.npz of {run.path} lacks windows")
    at = np.searchsorted(steps, ends)
    total = np.cumsum(maps["visits"], axis=0)[at]
    share = (window / np.diff(ends, prepend=0))[:, None, None, None]
    before = total - np.diff(total, axis=0, prepend=0) * share
    world, mask = _wings(run, maps["seed"], is_noisy)
    values = {name: maps[name][at].astype(float) for name in READ}
    values |= {"visits": before / world.num_actions, "held": 1.0 * np.isfinite(values["v_ale"])}
    means = {name: _mean(value, mask, axis=(2, 3)).T for name, value in values.items()}
    return means | {"steps": np.array(ends, float)[None] - window}


def _wings(run: Run, seeds: np.ndarray, is_noisy: bool) -> tuple[World, np.ndarray]:
    """The run's world; and which cells lie in the wing, [1, seed, rows, cols]: sides may differ."""
    world = make_world(WINGS.world, **asdict(run.config.world))
    cells = jnp.arange(world.num_keys)  # a state is a cell
    noisy = [jax.vmap(world.for_seed(seed).is_noisy)(cells) for seed in seeds.tolist()]
    return world, (np.stack(noisy) == is_noisy).reshape(1, len(seeds), *world.obs_shape[1:])


def _mean(values: np.ndarray, mask: np.ndarray, axis: int | tuple[int, ...]) -> Floats:
    """Over what a mask lets through and has a value; NaN where nothing has."""
    is_there = mask & np.isfinite(values)
    num = is_there.sum(axis=axis)
    total = np.where(is_there, values, 0.0).sum(axis=axis)
    return np.where(num > 0, total / np.maximum(num, 1), np.nan)


def joined(runs: list[Parts], numbers: Numbers) -> Inside:
    """All seeds of some runs in one."""
    every = {name: np.concatenate([run[name] for run in runs]) for name in runs[0]}
    means = {name: _mean(values, np.array(True), axis=0) for name, values in every.items()}
    gate = numbers.gate_weight * means.pop("v_ahead")
    return Inside(**means, gate=gate, penalty=means["v_epi"] - means["r_int"])


def from_visits(seen: Inside, numbers: Numbers, noise: float) -> Inside:
    """What the formulas make of the visits alone, where noise has this variance."""
    parts = [_parts(num, numbers, noise) for num in seen.visits]
    v_epi, gate, r_int = (np.array(column) for column in zip(*parts, strict=True))
    same = np.full_like(v_epi, noise)
    return Inside(seen.steps, seen.visits, seen.held, v_epi, same, gate, v_epi - r_int, r_int)


def _parts(num: float, numbers: Numbers, noise: float) -> tuple[float, float, float]:
    gate = numbers.gate_weight * predict.look_ahead(num, numbers)
    return predict.v_count(num, numbers), gate, predict.r_int(num, noise, numbers)


def gate_opens(seen: Inside) -> float | None:
    """The step from which noise is above what the gate hides."""
    return first(seen.steps, seen.v_ale - seen.gate)


def noise_costs(seen: Inside) -> float | None:
    """The step from which it costs more than its novelty pays."""
    return first(seen.steps, -seen.r_int)


def first(steps: Floats, values: Floats) -> float | None:
    """Where values first rise above zero, on straight lines between them; None if they never do."""
    above = np.flatnonzero(values > 0)
    if len(above) == 0:
        return None
    i = int(above[0])
    if i == 0 or not np.isfinite(values[i - 1]):
        return float(steps[i])
    low, high = values[i - 1], values[i]
    return float(steps[i - 1] + (steps[i] - steps[i - 1]) * -low / (high - low))
