"""What the study's runs have: a value a seed, the folders of one cell read as one run."""

from pathlib import Path

import numpy as np

from primax.config.seeds import parse_seeds
from primax.errors import InputError, check_choice
from primax.paper.evidence import MissingError
from primax.runs.measures import Sample, measure
from primax.runs.read import BROKEN, Run, Unusable, check_same, find_run
from primax.studies.noise.cells import CELLS, SCALES, Cell

BY_NAME = {(cell.variant.name, cell.place.name): cell for cell in CELLS}


class Found:
    """Runs below a folder, opened once each."""

    def __init__(self, path: Path, scale: str):
        check_choice("--scale", scale, SCALES)
        self.path, self.scale = path, scale
        self._opened: dict[str, Run | Unusable] = {}

    def runs(self, cell: Cell) -> list[Run | Unusable]:
        """Of each set of seeds a finished run, or why there is none."""
        return [self._run(cell, *each) for each in cell.folders(self.scale).items()]

    def _run(self, cell: Cell, name: str, seeds: str) -> Run | Unusable:
        if name not in self._opened:
            self._opened[name] = self._open(cell, name, seeds)
        return self._opened[name]

    def _open(self, cell: Cell, name: str, seeds: str) -> Run | Unusable:
        found = find_run(self.path / name)
        if isinstance(found, Unusable):
            return found
        try:
            check_same(found.path, cell.config(self.scale), parse_seeds(seeds))
        except InputError as error:
            return Unusable(BROKEN, str(error))
        return found

    @property
    def broken(self) -> dict[str, str]:
        """Why a folder cannot be used, of all that are broken."""
        for cell in CELLS:
            self.runs(cell)
        opened = self._opened.items()
        return {n: x.reason for n, x in opened if isinstance(x, Unusable) and x.why == BROKEN}

    def sample(self, variant: str, place: str, name: str) -> Sample:
        """A value a seed, in rising order; MissingError where some seeds are not there."""
        samples = [
            self._measured(run, variant, place, name) for run in self.runs(BY_NAME[variant, place])
        ]
        seeds = tuple(seed for each in samples for seed in each.seeds)
        values = np.concatenate([each.values for each in samples])
        order = np.argsort(seeds, kind="stable")
        return Sample(tuple(np.array(seeds)[order].tolist()), values[order])

    def _measured(self, run: Run | Unusable, variant: str, place: str, name: str) -> Sample:
        what = f"{variant} in {place}"
        if isinstance(run, Unusable):
            raise MissingError(what, run.why)
        found = measure(run, name)
        if found is None:
            raise MissingError(what, f"has no {name}")
        return found

    def paired(
        self, sides: tuple[str, str], place: str, name: str
    ) -> tuple[np.ndarray, np.ndarray]:
        """The values of two variants on the same seeds."""
        a, b = (self.sample(side, place, name) for side in sides)
        assert a.seeds == b.seeds, "every cell of a place has the same seeds"
        return a.values, b.values

    def is_there(self, cell: Cell) -> bool:
        """Whether all of its runs are finished and whole."""
        return all(isinstance(run, Run) for run in self.runs(cell))
