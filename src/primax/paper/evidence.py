"""Where numbers come from: our run folders, or the paper's own per-seed values."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from primax.config_json import unsaid
from primax.errors import InputError
from primax.paper.experiments import CELLS, cell_name
from primax.paper.folders import NOT_RUN, Floats, RunFolder, Sample, open_run
from primax.paper.measures import measure
from primax.paper.published import published
from primax.paper.whole import CEILING, check
from primax.settings import flatten
from primax.worlds.layouts import read

PAPERS_NAME = {"prime_no_gate": "prime_alpha0"}
"""Variants the published numbers call otherwise."""
BROKEN, LEFT_OUT = "broken", "not part of this scale"
"""Why else a run is not there."""
PAPERS_MEASURE = {"average": "catch", "peak": "peak"}


class MissingError(Exception):
    """A number that is not there; the message says which and why."""


@runtime_checkable
class Source(Protocol):
    """Per-seed numbers by variant, world and measure."""

    def sample(self, variant: str, world: str, name: str) -> Sample | None:
        """A value a seed, or None."""
        ...

    def status(self, variant: str, world: str) -> str:
        """Why there is none."""
        ...


class Published:
    """What the paper prints seed by seed: catch, peak and mutual information."""

    def sample(self, variant: str, world: str, name: str) -> Sample | None:
        paper = published()
        if name == "tail:mutual_information" and variant == "prime":
            values = paper["mutual_information"][world]["values"]
        else:
            metric = paper["per_seed"][world].get(PAPERS_MEASURE.get(name, ""), {})
            values = metric.get(PAPERS_NAME.get(variant, variant))
        return None if values is None else Sample(tuple(paper["seeds"]), np.array(values, float))

    def status(self, variant: str, world: str) -> str:
        return "not given by seed"


class Runs:
    """Runs in folders named like the cells, read once each; broken ones are set apart."""

    def __init__(self, folders: Mapping[str, Path], left_out: frozenset[str] = frozenset()):
        self.folders = dict(folders)
        self.left_out = left_out
        """Cells that nobody asked for: without them nothing is missing."""
        self.broken: dict[str, str] = {}
        """Why a cell's folder, as far as any was opened, cannot be used."""
        self._opened: dict[str, RunFolder | str] = {}

    @classmethod
    def under(cls, path: Path, scale: str = "paper") -> "Runs":
        """Every cell's folder below a path."""
        left_out = frozenset(name for name, cell in CELLS.items() if not cell.is_in(scale))
        return cls({name: path / name for name in CELLS}, left_out)

    def run(self, variant: str, world: str) -> RunFolder | str:
        """A finished run, or in a few words why there is none."""
        name = cell_name(variant, world)
        if name not in self._opened:
            self._opened[name] = self._open(name)
        return self._opened[name]

    def _open(self, name: str) -> RunFolder | str:
        try:
            found = open_run(self.folders[name]) if name in self.folders else NOT_RUN
            if isinstance(found, RunFolder) and CELLS[name].variant.is_available:
                check(found, CELLS[name])
        except InputError as error:
            self.broken[name] = str(error)
            return BROKEN
        return LEFT_OUT if found == NOT_RUN and name in self.left_out else found

    def sample(self, variant: str, world: str, name: str) -> Sample | None:
        run = self.run(variant, world)
        return None if isinstance(run, str) else measure(run, name)

    def status(self, variant: str, world: str) -> str:
        run = self.run(variant, world)
        return run if isinstance(run, str) else "not recorded"

    def settings(self, variant: str, world: str) -> dict[str, Any]:
        """A run's settings by dotted name; where it was not run, what it would run with."""
        run = self.run(variant, world)
        if not isinstance(run, str):
            return run.settings
        return flatten(CELLS[cell_name(variant, world)].config("paper"))

    def ceiling(self) -> float:
        """R_r + γ·Q_max of PRIME, which no target may exceed."""
        known = self.settings("prime", "butterflies")
        clip, gamma, q_max = (known[name] for name in CEILING)
        return clip + gamma * q_max

    def changes(self, variant: str, world: str) -> list[str]:
        """How a run's settings differ from those of its cell at the paper's scale."""
        run, cell = self.run(variant, world), CELLS[cell_name(variant, world)]
        if isinstance(run, str) or not cell.variant.is_available:
            return []
        theirs, ours = _named(run), flatten(cell.config("paper"))
        apart = [name for name in ours if name in theirs and theirs[name] != ours[name]]
        return [f"{name} {_short(theirs[name])}" for name in apart]

    def unsaid(self, variant: str, world: str) -> list[str]:
        """Settings a run's config.json does not give, which are read as they are in this version."""
        run = self.run(variant, world)
        try:
            return [] if isinstance(run, str) else list(unsaid(run.content))
        except (ValueError, KeyError, TypeError):
            return []  # of a method or with a field this version does not have

    def mixed(self) -> list[str]:
        """Runs whose world or length is not that of the first run there is in the same world."""
        first: dict[str, dict[str, Any]] = {}
        said = []
        for name, cell in CELLS.items():
            run = self.run(cell.variant.name, cell.world)
            if isinstance(run, str):
                continue
            named = _named(run).items()
            known = {k: v for k, v in named if k == "steps" or k.startswith("world.")}
            other = first.setdefault(cell.world, known)
            apart = [f"{k} {_short(known.get(k))}" for k in other if known.get(k) != other[k]]
            said += [f"{name} ({', '.join(apart)})"] if apart else []
        return said


def _named(run: RunFolder) -> dict[str, Any]:
    """A run's settings, its map as the map itself where it was given by name."""
    found = run.settings
    if "world.layout" in found:
        found["world.layout"] = read(str(found["world.layout"]))
    return found


def _short(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 20 else text[:17] + "…"


def need(source: Source, variant: str, world: str, name: str) -> Floats:
    """A value a seed; MissingError where there is none."""
    found = source.sample(variant, world, name)
    if found is None:
        raise MissingError(f"{cell_name(variant, world)}: {source.status(variant, world)}")
    return found.values


def pair(source: Source, sides: tuple[str, str], world: str, name: str) -> tuple[Floats, Floats]:
    """Two variants' values on the seeds both have."""
    found = [source.sample(side, world, name) for side in sides]
    for side, sample in zip(sides, found, strict=True):
        if sample is None:
            raise MissingError(f"{cell_name(side, world)}: {source.status(side, world)}")
    a, b = (dict(zip(s.seeds, s.values.tolist(), strict=True)) for s in found if s is not None)
    both = [seed for seed in a if seed in b]
    if not both:
        raise MissingError(f"{' and '.join(cell_name(s, world) for s in sides)}: no common seed")
    return np.array([a[seed] for seed in both]), np.array([b[seed] for seed in both])
