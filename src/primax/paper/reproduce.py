"""Running what is missing: what there is to do, what it should take, and doing it."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from primax import files
from primax.agent.learner import make_learner
from primax.errors import InputError, StoppedError
from primax.paper.evidence import Runs
from primax.paper.experiments import SCALES, Cell
from primax.paper.predict import cores, predict, side_by_side
from primax.runs import checkpoints, disk
from primax.runs.loop import Say
from primax.runs.proceed import Job, Listener, proceed
from primax.runs.proceed import begin as begin_run
from primax.runs.read import BROKEN, UNFINISHED, Run, Unusable, check_same
from primax.runs.stops import interrupts

TO_RUN, FINISHED, HALFWAY, ABSENT = "to run", "finished", "to go on", "not available yet"
MOST_JOBS = 4
"""Cells side by side unless more are asked for: compiling takes up to a gigabyte each."""

LISTEN_S = 0.2
"""Seconds until a signal is answered."""


@dataclass(frozen=True)
class Task:
    """A cell, where it stands, and what is left of it."""

    cell: Cell
    state: str
    seconds: float
    """Predicted for what is left, alone on the machine; 0 where nothing is."""
    why: str = ""
    """A broken folder cannot be used."""
    done: int = 0
    """Steps it need not take again."""

    @property
    def is_open(self) -> bool:
        """Whether there is something to be done."""
        return self.state in (TO_RUN, HALFWAY)


Watch = Callable[[Task], AbstractContextManager[Listener]]
"""Entered when a task begins, left when it is through."""


@dataclass(frozen=True)
class Home:
    """The folder a reproduction lives in, at one scale."""

    path: Path
    scale: str
    runs: Path

    def folder(self, cell: Cell) -> Path:
        """A cell's run."""
        return self.runs / cell.name


def open_home(path: Path, scale: str, runs_in: Path | None = None) -> Home:
    """Takes up a reproduction; one folder holds one scale."""
    if scale not in SCALES:
        raise InputError(f"--scale takes {', '.join(SCALES)}, got {scale!r}")
    note = path / "scale"
    try:
        before = files.read(note).decode("utf-8").strip() if note.exists() else scale
    except (OSError, ValueError) as error:
        raise InputError(f"{note} cannot be read: choose another --out") from error
    if before != scale:
        raise InputError(f"{path} holds a reproduction at scale {before}: choose another --out")
    return Home(path, scale, runs_in or path / "runs")


def begin(home: Home) -> None:
    """Puts the scale on the disk, so that scales do not mix."""
    try:
        home.path.mkdir(parents=True, exist_ok=True)
        disk.put(home.path / "scale", f"{home.scale}\n".encode())
    except OSError as error:
        raise InputError(f"cannot write {home.path}: {error.strerror}") from error


def put_plan(home: Home, text: str) -> Path:
    """Puts a plan for `primax sweep` where the runs will be."""
    begin(home)
    try:
        home.runs.mkdir(parents=True, exist_ok=True)
        disk.put(home.runs / "plan.toml", text.encode())
    except OSError as error:
        raise InputError(f"cannot write {home.runs}: {error.strerror}") from error
    return home.runs / "plan.toml"


def plan(home: Home, cells: list[Cell], platform: str) -> list[Task]:
    """Where every cell stands."""
    there, tasks = Runs.under(home.runs, home.scale), []
    for cell in cells:
        try:
            state, why = _state(home, cell, there.of(cell))
        except InputError as error:
            state, why = BROKEN, str(error)
        task = Task(cell, state, 0.0, why, checkpoints.newest_step(home.folder(cell)))
        seconds = predict(cell, home.scale, platform, task.done) if task.is_open else 0.0
        tasks.append(replace(task, seconds=seconds))
    return tasks


def _state(home: Home, cell: Cell, found: Run | Unusable) -> tuple[str, str]:
    """Where a cell stands and, if its folder is broken, why."""
    if isinstance(found, Run):
        return FINISHED, ""
    if not cell.variant.is_available:
        return ABSENT, ""
    if found.why == UNFINISHED:
        check_same(home.folder(cell), cell.config(home.scale), cell.seeds(home.scale))
        return HALFWAY, ""
    return (BROKEN, found.reason) if found.why == BROKEN else (TO_RUN, "")


def jobs(platform: str) -> int:
    """How many cells to run side by side: on a CPU one for each core, for a small program cannot
    keep two busy."""
    if platform != "cpu":
        return 1
    return min(MOST_JOBS, cores())


def in_order(tasks: list[Task]) -> list[Task]:
    """PRIME first, whose programs gate off then finds compiled; then the longest, so that no core is
    left alone with one at the end."""
    return sorted(tasks, key=lambda task: (task.cell.variant.name != "prime", -task.seconds))


def in_all(tasks: list[Task], num: int, platform: str) -> float:
    """Seconds, `num` tasks side by side, each begun when there is room; they share a CPU's cores."""
    return side_by_side((task.seconds for task in in_order(tasks)), num, platform)


def work(home: Home, cell: Cell, listener: Listener) -> None:
    """Begins a cell's run or takes it up."""
    folder, config = home.folder(cell), cell.config(home.scale)
    learner, seeds = make_learner(config), cell.seeds(home.scale)
    if (folder / "config.json").exists():
        check_same(folder, config, seeds)
        job = Job(folder, learner, seeds)
    else:
        job = begin_run(folder, learner, seeds)
    proceed(job, listener)


def work_all(home: Home, tasks: list[Task], num: int, watch: Watch, say: Say) -> None:
    """Runs tasks side by side. A signal, or the first to fail, stops the others too, at the end of
    their windows and with a checkpoint. Of a signal and a failure, the failure is told.

    In threads and not in processes: what kills this one leaves none behind.
    """
    failures: list[BaseException] = []
    with interrupts() as is_told, ThreadPoolExecutor(num) as pool:

        def is_asked() -> bool:
            return is_told() or bool(failures)

        def one(task: Task) -> None:
            if is_asked():
                return
            try:
                with watch(task) as listener:
                    work(home, task.cell, replace(listener, is_asked=is_asked))
            except StoppedError:
                return  # because of a signal or a failure, which are told below
            except BaseException as error:  # raised again below, where somebody hears it
                failures.append(error)

        left: set[Future[None]] = {pool.submit(one, task) for task in in_order(tasks)}
        while left and not is_asked():
            left = wait(left, timeout=LISTEN_S).not_done
        if left:
            say(
                "stopping after the current windows, or after compiling "
                "(press Ctrl-C again to stop at once) …"
            )
    if failures:
        raise failures[0]
    if is_told():
        raise StoppedError(f"stopped; the same command goes on from what is in {home.runs}")
