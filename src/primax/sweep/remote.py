"""What launchers on other machines share: a cell is a command line, and what became of it is in its folder.

The command line is `primax sweep OUT --only CELL`. Wherever it is run it begins the cell or goes on
with it, leaves it to another process that is at it, and saves where it is told to stop. So a job that
is requeued needs to know nothing. Only command lines travel, no object of ours.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from primax.errors import StoppedError
from primax.runs.stops import interrupts
from primax.sweep.launch import CANNOT_START, Ended
from primax.sweep.logs import last_words
from primax.sweep.plan import Cell
from primax.sweep.stand import FINISHED, RUNNING, Home, stand
from primax.sweep.work import PRIMAX

EVERY_S = 1.0
"""Seconds between looks at the jobs."""


@dataclass(frozen=True)
class Job:
    """A cell that somebody else runs."""

    is_done: Callable[[], bool]
    cancel: Callable[[], Any]
    why: Callable[[], str]
    """Where its own log says nothing: what kept it from starting."""


@dataclass(frozen=True)
class Sweep:
    """What a launcher needs to know of the sweep whose cells it hands over."""

    home: Home
    cells: dict[str, Cell]
    options: list[str]
    """Passed on to every run."""
    tick: Callable[[], object] = bool
    say: Callable[[str], object] = bool

    def command(self, name: str) -> list[str]:
        """What makes a cell, wherever the folder is found under the same name."""
        return [*PRIMAX, "sweep", str(self.home.path.absolute()), "--only", name, *self.options]

    def became(self, name: str, why: str = "") -> Ended:
        """How a cell ended, by its folder and its log."""
        cell = self.cells[name]
        state = stand(self.home, cell).state
        if state in (FINISHED, RUNNING):
            return Ended(name, 0 if state == FINISHED else None)
        status, _ = last_words(self.home.log(cell))
        return Ended(name, status) if status else Ended(name, CANNOT_START, why)


def follow(sweep: Sweep, jobs: dict[str, Job]) -> Iterator[Ended]:
    """Waits for jobs, each told of as it ends. Asked to stop, it cancels them all."""
    left, is_told = dict(jobs), False
    with interrupts() as is_asked:
        try:
            while left:
                if is_asked() and not is_told:
                    is_told = True
                    sweep.say("cancelling every job (press Ctrl-C again not to wait) …")
                    for job in left.values():
                        job.cancel()
                for name in [name for name, job in left.items() if job.is_done()]:
                    job = left.pop(name)
                    yield _told(sweep, name, job, is_told)
                sweep.tick()
                time.sleep(EVERY_S)
        finally:  # whoever waits for the next one may have failed
            for job in left.values():
                job.cancel()
        if is_asked():
            raise StoppedError("stopped")


def _told(sweep: Sweep, name: str, job: Job, is_told: bool) -> Ended:
    ended = sweep.became(name, job.why())
    if not is_told or ended.status == 0:
        return ended
    if ended.status is None:
        sweep.say(f"{name}: goes on to its end where it is; primax sweep --status shows it")
        return ended
    return Ended(name, ended.status, ended.why, is_stopped=True)
