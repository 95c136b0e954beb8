"""How scores go in the course of a run: when Maze peaks and falls, catches and distance (E, F)."""

from dataclasses import dataclass
from itertools import groupby

import numpy as np

from primax import stats
from primax.output.sheet import ABSENT, Sheet, bracket
from primax.paper.evidence import MissingError, Runs, pair
from primax.paper.experiments import VARIANTS
from primax.paper.published import published
from primax.paper.tables.results import MAIN, as_printed, mean_std, shown
from primax.runs.measures import rolling
from primax.runs.read import Unusable

SHOWN = (*MAIN, "prime_no_penalty")
HALF = 0.5
"""Of the last 20 episodes, from which on an episode is part of a burst."""
FIFTHS = {
    "catch/ep": "average",
    "catch/ep, first fifth": "score_start",
    "catch/ep, last fifth": "score_tail",
    "distance, first fifth": "distance_start",
    "distance, last fifth": "distance_tail",
}
DIFFERENCES = (("prime_no_penalty", "prime"), ("prime", "random"))


@dataclass(frozen=True)
class Course:
    """Rolling means of a run's scores, and when each is reached."""

    curves: stats.Floats
    """[seed, episode], from the first that has enough before it."""
    steps: stats.Floats
    """At which those episodes end."""

    @classmethod
    def of(cls, scores: stats.Floats, ends: stats.Floats) -> "Course":
        """From scores [seed, episode] and the steps at which episodes end."""
        curves = rolling(scores)
        return cls(curves, ends[-curves.shape[1] :])

    def until(self, step: int) -> "Course":
        """What is seen of it when it is cropped."""
        seen = self.steps <= step
        return Course(self.curves[:, seen], self.steps[seen])

    @property
    def mean(self) -> stats.Floats:
        """The curve averaged over seeds."""
        return self.curves.mean(axis=0)

    @property
    def peak_steps(self) -> stats.Floats:
        """When each seed first has its best."""
        return self.steps[self.curves.argmax(axis=1)]

    @property
    def bursts(self) -> list[list[int]]:
        """For each seed, how many episodes each stretch of its curve at a half or above lasts."""
        return [
            [len(list(stretch)) for is_high, stretch in groupby(curve >= HALF) if is_high]
            for curve in self.curves
        ]


def table_e(runs: Runs) -> Sheet:
    """Maze: the curve's top, the seeds' own peaks, and how long the goal is held."""
    crop = int(published()["evaluation"]["maze_curves_cropped_at_steps"])
    columns = (
        "method",
        "mean curve, top",
        "at step",
        f"at {crop:,} steps",
        "at the end",
        f"peak within {crop:,} steps",
        "peak",
        "paper",
        "at step, median (range)",
        "bursts, median (range)",
        "longest burst, episodes, median (range)",
        "seeds in a burst at the end",
    )
    rows = tuple((VARIANTS[name].label, *_maze(runs, name, crop)) for name in SHOWN)
    notes = (
        "The curve is the mean over 20 episodes. Its average over seeds has one top; the peaks are "
        "each seed's own. A burst is a stretch of episodes at each of which at least half of the last "
        "20 reached the goal. Random walker: the note to Table 1 says what the paper's 0.00 is.",
    )
    title = "Table E. When Maze peaks and falls (not in the paper)"
    return Sheet("tableE", title, columns, rows, notes)


def _maze(runs: Runs, variant: str, crop: int) -> tuple[str, ...]:
    run = runs.run(variant, "maze")
    if isinstance(run, Unusable):
        return (f"({run.why})", *[ABSENT] * 10)
    scores, ends = (run.grid("episodes", column) for column in ("score", "step"))
    assert scores is not None and ends is not None
    return maze_cells(Course.of(scores, ends[0]), crop, as_printed("main", variant, "maze", "peak"))


def maze_cells(course: Course, crop: int, paper: str) -> tuple[str, ...]:
    """A row of Table E; a run that is shorter than the crop is not cropped."""
    mean, seen = course.mean, course.until(crop)
    longest = np.array([max(lengths, default=0) for lengths in course.bursts], float)
    return (
        f"{mean.max():.2f}",
        f"{course.steps[mean.argmax()]:,.0f}",
        f"{seen.mean[-1]:.2f}",
        f"{mean[-1]:.2f}",
        mean_std(seen.curves.max(axis=1)),
        mean_std(course.curves.max(axis=1)),
        paper,
        _range(course.peak_steps),
        _range(np.array([len(lengths) for lengths in course.bursts], float)),
        _range(longest),
        f"{(course.curves[:, -1] >= HALF).sum()} of {len(course.curves)}",
    )


def _range(values: stats.Floats) -> str:
    """Of whole numbers."""
    return f"{np.median(values):,.0f} ({values.min():,.0f} to {values.max():,.0f})"


def table_f(runs: Runs) -> Sheet:
    """Butterflies: catches, and distance from the nearest butterfly, early and late."""
    cell = shown(runs, mean_std)
    rows = [
        (VARIANTS[name].label, *(cell(name, "butterflies", m) for m in FIFTHS.values()))
        for name in SHOWN
    ]
    for sides in DIFFERENCES:
        label = " - ".join(VARIANTS[side].label for side in sides)
        rows.append((label, *(_difference(runs, sides, m) for m in FIFTHS.values())))
    notes = (
        "Fifths of a run's steps. Distance: cells, by rows plus columns, to the nearest butterfly that "
        "is not caught yet, averaged over an episode's steps. Differences: of the means over seeds, with "
        "a bootstrap interval (seeds are resampled in pairs).",
    )
    title = "Table F. Catches and distance on Butterflies, early and late (not in the paper)"
    return Sheet("tableF", title, ("method", *FIFTHS), tuple(rows), notes)


def _difference(runs: Runs, sides: tuple[str, str], measure: str) -> str:
    try:
        a, b = pair(runs, sides, "butterflies", measure)
    except MissingError as error:
        return f"({error.why})"
    return f"{np.mean(a - b):+z.2f} {bracket(*stats.paired_interval(a, b), 2, '+')}"
