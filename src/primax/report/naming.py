"""What a run is called and how it is drawn: one name and one colour a method."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from primax.methods import METHODS
from primax.paper.experiments import VARIANTS
from primax.paper.figures.drawing import STYLE
from primax.report.reading import attempt
from primax.runs.naming import method_label, method_of
from primax.runs.read import Run
from primax.worlds import GridWorld, World, make_world

OTHERS = ("#CC79A7", "#56B4E9", "#D55E00", "#009E73", "#E69F00", "#0072B2")
"""Okabe and Ito's, for methods without a colour of their own."""
SOLID = ("task", "task_relu")
"""Dotted in the paper's figures; here dots are the level lines'."""
MOST_SETTINGS = 3
"""So many that differ make a name, if it is not too long; more would not be remembered."""
LONGEST = 60
AGAIN = ((6.0, 2.5), (2.0, 2.0), (9.0, 2.0, 2.0, 2.0))
"""Dashes of the second, third and fourth run of a method in a world."""
ON_DARK = {
    "#000000": "#f2efe8",
    "#0072B2": "#3a96db",
    "#56B4E9": "#a6d9f7",
    "#5D3A9B": "#a487e6",
    "#777777": "#a0a0a0",
    "#882255": "#d0739f",
    "#8B6508": "#c0922f",
}
"""What would not be seen on a dark page, lighter; every other colour is the same on both."""


@dataclass(frozen=True)
class Place:
    """A world as some runs had it."""

    name: str
    title: str
    score: str
    """What its score counts."""
    world: World | None
    """None where this version cannot build it."""


@dataclass(frozen=True)
class LineStyle:
    """A run's name and line."""

    label: str
    variant: str
    colour: str
    on_dark: str
    dash: tuple[float, ...]


def places(runs: Sequence[Run]) -> tuple[list[Place], list[int]]:
    """The different worlds, and which of them each run is in."""
    keys: dict[Any, int] = {}
    firsts: list[tuple[Run, World | None]] = []
    of_run = []
    for run in runs:
        world = attempt("world", lambda run=run: _build(run))
        world = world if isinstance(world, World) else None
        key = _key(run, world)
        if key not in keys:
            keys[key] = len(firsts)
            firsts.append((run, world))
        of_run.append(keys[key])
    return _titled(firsts), of_run


def _build(run: Run) -> World:
    options = {name: value for name, value in run.content["world"].items() if name != "name"}
    return make_world(run.world, **options)


def _key(run: Run, world: World | None) -> Any:
    """The same map under its name and drawn out is one world."""
    options = sorted((k, str(v)) for k, v in run.content["world"].items() if k != "layout")
    if world is None:
        return run.world, tuple(options), str(run.content["world"].get("layout"))
    if not isinstance(world, GridWorld):
        return run.world, tuple(options)
    return run.world, tuple(options), np.asarray(world.walls).tobytes(), world.start


def _titled(firsts: list[tuple[Run, World | None]]) -> list[Place]:
    """By kind and size, and where that is not enough by the options that differ."""
    titles = [_title(run, world) for run, world in firsts]
    found = []
    for i, (run, world) in enumerate(firsts):
        same = [k for k, title in enumerate(titles) if title == titles[i]]
        title = titles[i]
        if len(same) > 1:
            told = differing([_settings(firsts[k][0], is_world=True) for k in same])[same.index(i)]
            title += f", {told or f'options {same.index(i) + 1}'}"
        score = World.score if world is None else world.score
        found.append(Place(run.world, title, score, world))
    return found


def _title(run: Run, world: World | None) -> str:
    title = run.world.replace("_", " ").title() or "a world without a name"
    title = run.world if ":" in run.world else title
    return title + " {} × {}".format(*world.shape) if isinstance(world, GridWorld) else title


def _settings(run: Run, is_world: bool) -> dict[str, Any]:
    """Those of the world, or all others but the seeds."""
    return {
        name: value
        for name, value in run.settings.items()
        if name.startswith("world.") == is_world and name not in ("seeds", "start.digest")
    }


def differing(settings: Sequence[dict[str, Any]]) -> list[str]:
    """Of each, in words, the settings in which they differ; nothing where that makes no names."""
    names = dict.fromkeys(name for one in settings for name in one)
    names = [n for n in names if any(one.get(n) != settings[0].get(n) for one in settings)]
    found = [", ".join(_said(name, one[name]) for name in names if name in one) for one in settings]
    is_short = len(names) <= MOST_SETTINGS and max(map(len, found)) <= LONGEST
    return found if is_short and all(found) and len(set(found)) == len(found) else [""] * len(found)


def _said(name: str, value: Any) -> str:
    """`reward.gate_weight: 0.5` as `gate weight 0.5`."""
    last = name.rpartition(".")[2].replace("_", " ")
    if isinstance(value, bool):
        return last if value else f"no {last}"
    return f"{last} {value:,}" if isinstance(value, int) else f"{last} {value}"


def styles(runs: Sequence[Run], names: Sequence[str], of_run: Sequence[int]) -> list[LineStyle]:
    """By the paper's variant where the folder is called so, else by method."""
    variants = [_variant(run) for run in runs]
    pairs = list(zip(variants, of_run, strict=True))
    strangers = list(dict.fromkeys(v for v in variants if v not in STYLE))
    found = []
    for i, (name, variant, pair) in enumerate(zip(names, variants, pairs, strict=True)):
        label = label_of(variant)
        same = [k for k, other in enumerate(pairs) if other == pair]
        if len(same) > 1:
            told = differing([_settings(runs[k], is_world=False) for k in same])[same.index(i)]
            label += f", {told}" if told else f" ({name})"
        if variant in STYLE:
            colour, dash = STYLE[variant]
        else:
            place = strangers.index(variant)
            colour = OTHERS[place % len(OTHERS)]
            dash = (0, (5 - place // len(OTHERS) % 3, 1.5, 1, 1.5))
        is_solid = isinstance(dash, str) or variant in SOLID
        lengths = () if is_solid else tuple(2.0 * float(part) for part in dash[1])
        if before := pairs[:i].count(pair):
            lengths = AGAIN[(before - 1) % len(AGAIN)]
        found.append(LineStyle(label, variant, colour, ON_DARK.get(colour, colour), lengths))
    return found


def label_of(variant: str) -> str:
    """Of the paper's variants, of methods that are none, and of what this version does not know.

    What is another setting of a method has the method's name before it."""
    if variant in VARIANTS:
        known = VARIANTS[variant]
        method = METHODS[known.method].label if known.is_available else known.method
        is_other = variant != known.method and not known.label.startswith(method)
        return f"{method}, {known.label}" if is_other else known.label
    return method_label(variant)


def _variant(run: Run) -> str:
    """A cell's folder (`prime_relu_maze`) names a variant; its method must be that of the run."""
    name = run.path.resolve().name.removesuffix(f"_{run.world}")
    known = VARIANTS.get(name)
    return name if known and known.method == run.method else method_of(run)
