"""Where numbers come from: our run folders, or the paper's own per-seed values."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from primax.config.fields import flatten
from primax.errors import InputError
from primax.paper.experiments import CELLS, FITS, WORLDS, Cell, cell_name
from primax.paper.published import published
from primax.paper.whole import CEILING, check
from primax.runs.measures import Sample, measure
from primax.runs.read import BROKEN, NOT_RUN, Floats, Run, Unusable, find_run
from primax.worlds.layouts import read

PAPERS_NAME = {"prime_no_gate": "prime_alpha0"}
"""Variants the published numbers call otherwise."""
LEFT_OUT = "not part of this scale"
"""Why else a run is not there."""
LITERAL_ONLY = "not run under this reading"
"""And why one has no run under the nearest reading."""
PAPERS_MEASURE = {"average": "catch", "peak": "peak"}


class MissingError(Exception):
    """A number that is not there."""

    def __init__(self, what: str, why: str):
        super().__init__(f"{what}: {why}")
        self.what, self.why = what, why


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
    """Runs in folders named like the cells, read once each."""

    def __init__(self, folders: Mapping[str, Path], left_out: frozenset[str] = frozenset()):
        self.folders = dict(folders)
        self.left_out = left_out
        """Cells that nobody asked for: without them nothing is missing."""
        self._opened: dict[str, Run | Unusable] = {}

    @classmethod
    def under(cls, path: Path, scale: str = "paper") -> "Runs":
        """Every cell's folder below a path."""
        left_out = frozenset(name for name, cell in CELLS.items() if not cell.is_in(scale))
        return cls({name: path / name for name in CELLS}, left_out)

    def of(self, cell: Cell) -> Run | Unusable:
        """A cell's finished run, or why there is none."""
        if cell.name not in self._opened:
            self._opened[cell.name] = self._open(cell)
        return self._opened[cell.name]

    def cell(self, variant: str, world: str) -> Cell:
        """By name."""
        return CELLS[cell_name(variant, world)]

    def run(self, variant: str, world: str) -> Run | Unusable:
        """A cell's run, by name."""
        return self.of(self.cell(variant, world))

    def _open(self, cell: Cell) -> Run | Unusable:
        folder = self.folders.get(cell.name)
        found = Unusable(NOT_RUN) if folder is None else find_run(folder)
        if isinstance(found, Unusable):
            is_left_out = found.why == NOT_RUN and cell.name in self.left_out
            return Unusable(LEFT_OUT) if is_left_out else found
        try:
            if cell.variant.is_available:
                check(found, cell)
        except InputError as error:
            return Unusable(BROKEN, str(error))
        return found

    @property
    def broken(self) -> dict[str, str]:
        """Why a cell's folder cannot be used, of all that are broken."""
        opened = {name: self.of(cell) for name, cell in CELLS.items()}
        return {
            name: found.reason
            for name, found in opened.items()
            if isinstance(found, Unusable) and found.why == BROKEN
        }

    @property
    def usable(self) -> dict[str, Run]:
        """By cell, the runs that are there and whole."""
        opened = {name: self.of(cell) for name, cell in CELLS.items()}
        return {name: found for name, found in opened.items() if isinstance(found, Run)}

    def sample(self, variant: str, world: str, name: str) -> Sample | None:
        run = self.run(variant, world)
        return measure(run, name) if isinstance(run, Run) else None

    def status(self, variant: str, world: str) -> str:
        run = self.run(variant, world)
        return run.why if isinstance(run, Unusable) else "not recorded"

    def settings(self, variant: str, world: str) -> dict[str, Any]:
        """A run's settings by dotted name; where it was not run, what it would run with."""
        run = self.run(variant, world)
        if isinstance(run, Run):
            return run.settings
        return flatten(self.cell(variant, world).config("paper"))

    def ceiling(self) -> float:
        """R_r + γ·Q_max of PRIME, which no target may exceed."""
        known = self.settings("prime", "butterflies")
        clip, gamma, q_max = (known[name] for name in CEILING)
        return clip + gamma * q_max

    def changes(self, cell: Cell) -> list[str]:
        """How a run's settings differ from those of its cell at the paper's scale."""
        run = self.of(cell)
        if isinstance(run, Unusable) or not cell.variant.is_available:
            return []
        theirs, ours = _named(run), flatten(cell.config("paper"))
        apart = [name for name in ours if name in theirs and theirs[name] != ours[name]]
        return [f"{name} {_short(theirs[name])}" for name in apart]

    def mixed(self) -> list[str]:
        """Runs whose world or length is not that of the first run there is in the same world."""
        first: dict[str, dict[str, Any]] = {}
        apart_by_name = []
        for name, run in self.usable.items():
            named = _named(run).items()
            known = {k: v for k, v in named if k == "steps" or k.startswith("world.")}
            other = first.setdefault(CELLS[name].world, known)
            apart = [f"{k} {_short(known.get(k))}" for k in other if known.get(k) != other[k]]
            apart_by_name += [f"{name} ({', '.join(apart)})"] if apart else []
        return apart_by_name


class Nearest(Runs):
    """The same runs under the nearest reading: each of the paper's variants is what stands for it."""

    def __init__(self, runs: Runs):
        super().__init__(runs.folders, runs.left_out)
        self._opened = runs._opened

    def cell(self, variant: str, world: str) -> Cell:
        return super().cell(FITS.get(variant, variant), world)

    def run(self, variant: str, world: str) -> Run | Unusable:
        return super().run(variant, world) if variant in FITS else Unusable(LITERAL_ONLY)

    @property
    def is_there(self) -> bool:
        """Whether there is a run that is not also one of the text taken literally."""
        return any(
            isinstance(self.run(name, world), Run)
            for name in FITS
            for world in WORLDS
            if FITS[name] != name
        )


def _named(run: Run) -> dict[str, Any]:
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
        raise MissingError(cell_name(variant, world), source.status(variant, world))
    return found.values


def pair(source: Source, sides: tuple[str, str], world: str, name: str) -> tuple[Floats, Floats]:
    """Two variants' values on the seeds both have."""
    found = [source.sample(side, world, name) for side in sides]
    for side, sample in zip(sides, found, strict=True):
        if sample is None:
            raise MissingError(cell_name(side, world), source.status(side, world))
    a, b = (dict(zip(s.seeds, s.values.tolist(), strict=True)) for s in found if s is not None)
    both = [seed for seed in a if seed in b]
    if not both:
        raise MissingError(" and ".join(cell_name(s, world) for s in sides), "no common seed")
    return np.array([a[seed] for seed in both]), np.array([b[seed] for seed in both])
