"""The paper's numbers of single runs, and how far a run is from each.

Distances are in the paper's standard deviations. Where it gives none, a factor of two counts as one,
and of a count of seeds one seed of fifteen: these are the scorecard's own margins.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from primax.paper.published import published
from primax.paper.scorecard.stated import COUNTS, bare, in_text, scores
from primax.paper.tables.results import MAIN
from primax.runs.read import Floats

METHODS = MAIN[1:]
SCORES, INSIDES, SPREADS = "scores", "PRIME in the text", "standard deviations"


@dataclass(frozen=True)
class Number:
    """A number of the paper, under the scorecard's id."""

    id: str
    kind: str
    cell: tuple[str, str, str]
    """Method, world, measure."""
    of: Callable[[Floats], Any]
    """What is made of a value a seed."""
    paper: float
    std: float | None = None
    """What counts as one; None where a factor of two does."""
    half: float = 0.0
    """Of the last printed digit: nothing is told apart below it."""

    def apart(self, values: Floats) -> float:
        return apart(float(self.of(values)), self.paper, self.std, self.half)


def apart(ours: float, paper: float, std: float | None, half: float = 0.0) -> float:
    """Ours less the paper's, in its standard deviations; without one, in factors of two."""
    if std is None:
        return math.log2(max(ours, half) / max(paper, half))
    return (ours - paper) / max(std, half)


def std_of(values: Floats) -> np.floating:
    return np.std(values, ddof=1)


def numbers() -> Iterator[Number]:
    """Every number the paper gives of single runs of these methods, each once."""
    for _, method, _, cell, given in scores():
        if method in METHODS:
            name = ".".join((method, *cell))
            yield from _pair(f"mean.{name}", f"std.{name}", SCORES, (method, *cell), given, 2)
    for name, _, _, cell, is_in, (num, of) in COUNTS:
        kind = INSIDES if cell[0] == "prime" else SCORES
        share = lambda x, is_in=is_in: is_in(x).mean()  # noqa: E731
        yield Number(name, kind, cell, share, num / of, 1 / of)
    for name, _, world, which, _, given in in_text():
        digits = len(str(given["std"]).partition(".")[2])
        yield from _pair(name, f"std.{name}", INSIDES, ("prime", world, which), given, digits)
    for name, world, which, value in _values():
        of = np.max if which.startswith("rolling") else np.mean
        yield Number(name, INSIDES, ("prime", world, which), of, value)


def _pair(
    name: str, std: str, kind: str, cell: tuple[str, str, str], given: dict, digits: int
) -> Iterator[Number]:
    """A mean, and its standard deviation as a number of its own."""
    half = 0.5 * 10.0**-digits
    yield Number(name, kind, cell, np.mean, given["mean"], given["std"], half)
    yield Number(std, SPREADS, cell, std_of, given["std"], half=half)


def _values() -> Iterator[tuple[str, str, str, float]]:
    """Of PRIME, without a spread; of what the text leaves open, its words: batches, the largest."""
    yield from bare()
    paper = published()
    for world, value in paper["ablation_text"]["gate_clamped_share_of_batches"].items():
        yield f"gate_clamp.{world}", world, "tail:clamped_batch", value
    for world, ends in paper["ceiling"]["target_magnitude_tail20"].items():
        yield f"y_abs.{world}", world, "tail:y_abs_top", sum(ends) / 2
    value = paper["ceiling"]["largest_rolling_q_taken"]
    yield "q_taken.rolling", "butterflies", "rolling:q_taken_abs_max", value
