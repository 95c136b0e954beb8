"""What a run is called and how it is drawn: one name and one colour a method."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from primax.methods import METHODS
from primax.paper.experiments import VARIANTS
from primax.paper.figures.drawing import STYLE
from primax.report.reading import attempt
from primax.runs.read import Run
from primax.worlds import World, make_world

OTHERS = ("#CC79A7", "#56B4E9", "#D55E00", "#009E73", "#E69F00", "#0072B2")
"""Okabe and Ito's, for methods without a colour of their own."""
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
    found: list[Place] = []
    of_run = []
    for run in runs:
        world = attempt("world", lambda run=run: _build(run))
        world = world if isinstance(world, World) else None
        key = _key(run, world)
        if key not in keys:
            keys[key] = len(found)
            found.append(_place(run, world, [place.title for place in found]))
        of_run.append(keys[key])
    return found, of_run


def _build(run: Run) -> World:
    options = {name: value for name, value in run.content["world"].items() if name != "name"}
    return make_world(run.world, **options)


def _key(run: Run, world: World | None) -> Any:
    """The same map under its name and drawn out is one world."""
    options = sorted((k, str(v)) for k, v in run.content["world"].items() if k != "layout")
    if world is None:
        return run.world, tuple(options), str(run.content["world"].get("layout"))
    return run.world, tuple(options), np.asarray(world.walls).tobytes(), world.start


def _place(run: Run, world: World | None, taken: list[str]) -> Place:
    title = run.world.replace("_", " ").title() or "a world without a name"
    if world is not None:
        title += " {} × {}".format(*world.shape)
    if title in taken:
        again = sum(name == title or name.startswith(f"{title}, ") for name in taken) + 1
        title += f", options {again}"
    score = World.score if world is None else world.score
    return Place(run.world, title, score, world)


def styles(runs: Sequence[Run], names: Sequence[str], of_run: Sequence[int]) -> list[LineStyle]:
    """By the paper's variant where the folder is called so, else by method."""
    variants = [_variant(run) for run in runs]
    pairs = list(zip(variants, of_run, strict=True))
    strangers = list(dict.fromkeys(v for v in variants if v not in STYLE))
    found = []
    for i, (name, variant, pair) in enumerate(zip(names, variants, pairs, strict=True)):
        label = label_of(variant)
        if pairs.count(pair) > 1:
            label += f" ({name})"
        if variant in STYLE:
            colour, dash = STYLE[variant]
        else:
            place = strangers.index(variant)
            colour = OTHERS[place % len(OTHERS)]
            dash = (0, (5 - place // len(OTHERS) % 3, 1.5, 1, 1.5))
        lengths = () if isinstance(dash, str) else tuple(2.0 * float(part) for part in dash[1])
        if before := pairs[:i].count(pair):
            lengths = AGAIN[(before - 1) % len(AGAIN)]
        found.append(LineStyle(label, variant, colour, ON_DARK.get(colour, colour), lengths))
    return found


def label_of(variant: str) -> str:
    """Of the paper's variants, of methods that are none, and of what this version does not know."""
    for known in (VARIANTS, METHODS):
        if variant in known:
            return known[variant].label
    return variant


def _variant(run: Run) -> str:
    """A cell's folder (`prime_relu_maze`) names a variant; its method must be that of the run."""
    name = run.path.resolve().name.removesuffix(f"_{run.world}")
    known = VARIANTS.get(name)
    return name if known and known.method == run.method else run.method
