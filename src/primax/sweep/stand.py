"""Where every cell of a sweep stands, from its folder and its log alone.

OUT/plan.toml  OUT/CELL/ (a run's folder)  OUT/logs/CELL.log (locked while its process lives)
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from primax import files
from primax.errors import InputError
from primax.output.sheet import ABSENT, aligned, clock, counted
from primax.paper.predict import predict_run, side_by_side
from primax.runs import checkpoints, disk
from primax.runs.read import BROKEN, UNFINISHED, Run, check_same, find_run, open_run, reached
from primax.runs.stops import is_claimed
from primax.sweep.logs import last_words
from primax.sweep.plan import Cell, Plan, read_plan

WAITING, RUNNING, FINISHED, FAILED, KILLED = "waiting", "running", "finished", "failed", "killed"
PLAN, LOGS = "plan.toml", "logs"
COLUMNS = ("cell", "seeds × steps", "state", "predicted", "taken")


@dataclass(frozen=True)
class Home:
    """The folder a sweep lives in."""

    path: Path

    def folder(self, cell: Cell) -> Path:
        """A cell's run."""
        return self.path / cell.name

    def log(self, cell: Cell) -> Path:
        """What its processes said."""
        return self.path / LOGS / f"{cell.name}.log"


@dataclass(frozen=True)
class Stand:
    """A cell and how far it is."""

    cell: Cell
    state: str
    done: int = 0
    """Steps of each seed."""
    taken: float = 0.0
    """Seconds, as far as they are known: what a killed process took is not."""
    why: str = ""
    """The last line of a log, where it failed."""

    @property
    def share(self) -> float:
        """Of all steps."""
        return min(1.0, self.done / self.cell.config.total_steps)

    def predicted(self, platform: str, done: int = 0) -> float:
        """Seconds, from a step on."""
        return predict_run(self.cell.config, len(self.cell.given_seeds), platform, done)

    def left(self, platform: str) -> float:
        """Seconds still to come, alone on the machine."""
        return 0.0 if self.state == FINISHED else self.predicted(platform, self.done)


def begin(home: Home, plan: Plan) -> None:
    """Puts the plan into the folder."""
    try:
        (home.path / LOGS).mkdir(parents=True, exist_ok=True)
        there = home.path / PLAN
        if not (there.exists() and files.read(there, files.FIELDS) == plan.raw):
            disk.put(there, plan.raw)
    except OSError as error:
        raise InputError(f"cannot write {home.path}: {error.strerror}") from error


def check_home(home: Home, plan: Plan) -> None:
    """Refuses a folder whose plan or runs are others of the same names."""
    if (home.path / "config.json").exists():
        raise InputError(f"{home.path} is the folder of a run: choose another --out")
    there = home.path / PLAN
    before = {cell.name: cell for cell in read_plan(there).cells} if there.exists() else {}
    odd = [cell.name for cell in plan.cells if not _agree(cell, before.get(cell.name, cell))]
    if odd:
        raise InputError(
            f"{there} has other settings for {', '.join(odd)}: give them other names, or choose "
            "another --out"
        )
    for cell in plan.cells:
        found = find_run(home.folder(cell))
        if isinstance(found, Run) or found.why == UNFINISHED:
            check_same(home.folder(cell), cell.config, cell.given_seeds)


def _agree(one: Cell, other: Cell) -> bool:
    return (one.config, one.given_seeds) == (other.config, other.given_seeds)


def stand(home: Home, cell: Cell) -> Stand:
    """Where a cell stands."""
    folder, log = home.folder(cell), home.log(cell)
    is_live = is_claimed(log) or is_claimed(folder / "lock")
    found = find_run(folder)
    if isinstance(found, Run):
        return Stand(cell, FINISHED, found.steps or 0, _taken(found))
    is_begun, done, taken = found.why == UNFINISHED, 0, 0.0
    if is_begun:
        done, taken = _reached(folder), _taken(open_run(folder), is_live)
    if is_live:
        return Stand(cell, RUNNING, done, taken)
    if found.why == BROKEN:
        return Stand(cell, FAILED, why=found.reason)
    status, line = last_words(log)
    if status > 0:
        return Stand(cell, FAILED, done, taken, line)
    return Stand(cell, KILLED if is_begun or status < 0 else WAITING, done, taken)


def _reached(folder: Path) -> int:
    """Steps on the disk; a table that is just being written may be anything."""
    try:
        return max(reached(folder), checkpoints.newest_step(folder))
    except (OSError, InputError):
        return 0


def saved(home: Home, cell: Cell) -> int:
    """The step of its newest checkpoint, 0 where there is none: what the tables have more is cut."""
    try:
        return checkpoints.newest_step(home.folder(cell))
    except (OSError, InputError):
        return 0


def _taken(run: Run, is_live: bool = False) -> float:
    """Seconds of a run's parts that are known, and since the last began where it goes on."""
    known = [*run.seconds("compile_s"), *run.seconds("run_s")]
    seconds = sum((value for value in known if value is not None), 0.0)
    if is_live and run.parts:
        try:
            began = datetime.fromisoformat(str(run.parts[-1].get("started")))
            seconds += max(0.0, (datetime.now(UTC) - began).total_seconds())
        except (ValueError, TypeError):  # a manifest may say anything
            return seconds
    return seconds


def in_order(stands: list[Stand], platform: str) -> list[Stand]:
    """The longest first, so that no place is left alone with one at the end."""
    return sorted(stands, key=lambda one: -one.left(platform))


def told(
    home: Home, stands: list[Stand], places: int, platform: str, is_known: bool = True
) -> Iterator[str]:
    """A line a cell, then what failed and why, and how long the rest should take with so many at a
    time, which may be known or only assumed."""
    yield from aligned([COLUMNS, *(_row(one, platform) for one in stands)], numbers=2)
    yield ""
    for one in stands:
        if one.state == FAILED:
            yield f"{one.cell.name} failed: {one.why}; see {home.log(one.cell)}"
    yield f"{counted(len(stands), 'run')}, each in {home.path}/CELL: {states(stands)}"
    seconds = [one.left(platform) for one in in_order(stands, platform)]
    if any(seconds):
        left = clock(side_by_side(seconds, places, platform))
        how = f", {places}" if is_known else f" if they run {places}"
        yield f"about {left} left{how} at a time, by rates measured on other machines"


def states(stands: list[Stand]) -> str:
    """How many are in each state."""
    counts = Counter(one.state for one in stands)
    return ", ".join(f"{num} {state}" for state, num in counts.items())


def _row(one: Stand, platform: str) -> tuple[str, ...]:
    size = f"{len(one.cell.given_seeds)} × {one.cell.config.total_steps:,}"
    is_between = one.done and one.state != FINISHED
    state = f"{one.state} at {one.done:,} ({one.share:.0%})" if is_between else one.state
    taken = clock(one.taken) if one.taken else ABSENT
    return one.cell.name, size, state, clock(one.predicted(platform)), taken
