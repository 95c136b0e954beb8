"""Running what is missing: what there is to do, what it should take, and doing it."""

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from primax import folder as disk
from primax import runs
from primax.config import Config
from primax.config_json import create, read_config
from primax.errors import InputError, StoppedError
from primax.paper.evidence import BROKEN, Runs
from primax.paper.experiments import SCALES, Cell
from primax.paper.folders import UNFINISHED
from primax.stops import interrupts

TO_RUN, FINISHED, HALFWAY, ABSENT = "to run", "finished", "to go on", "not available yet"
MOST_JOBS = 4
"""Cells side by side unless more are asked for: compiling takes up to a gigabyte each."""

LISTEN_S = 0.2
"""Seconds until a signal is answered."""

# docs/performance.md, 442f739: an H200, 15 seeds alone for 250,000 steps, without compiling (all
# but `task` and ten networks with MPS running, which costs 4 to 10%); PRIME with 2 and 10 networks.
# What is launches does not grow with seeds (1, 15 and 60 were timed).
GPU_S = {"task": 23.5, "random": 23.5, "rnd": 36.8, "disagreement": 38.3, "smirl": 33.8}
GPU_OTHER_S = 38.0  # not timed alone
GPU_PRIME_S = {2: 60.1, 10: 103.0}
GPU_SEEDS, GPU_LAUNCHES, GPU_COMPILE_S = 15, (0.68, 0.38), (20.0, 45.0)  # without PRIME and with
# Fitted to results/bench/table_cpu.json (646b59c): a run alone on two cores of an AMD EPYC. A network
# does so many multiplications a second, and takes a time besides; compiling without PRIME and with.
CPU_CORES, CPU_WORK, CPU_UPDATE_S, CPU_COMPILE_S = 2, 4.3e10, 1.9e-4, (10.0, 18.0)
CPU_REWARD = {  # all but PRIME's by docs/rewards.md, beside `task`, whose critics are two there
    "task": 0.0,
    "random": 0.0,
    "rnd": 0.8,
    "rnd_snapshot": 1.8,
    "disagreement": 1.9,
    "moss": 2.3,
    "prime": 1.05,
}
"""What a reward costs at an update, in critics; PRIME's as much again for each of its heads."""
CPU_OTHER_REWARD = 0.4
STEPS = 250_000


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


@dataclass(frozen=True)
class Worker:
    """Whom a cell's run tells of what it does."""

    say: Callable[[str], None]
    on_window: Callable[[Any], None]


Watch = Callable[[Task], AbstractContextManager[Worker]]
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
        before = note.read_text(encoding="utf-8").strip() if note.exists() else scale
    except (OSError, ValueError) as error:
        raise InputError(f"{note} cannot be read: choose another --out") from error
    if before != scale:
        raise InputError(f"{path} holds a reproduction at scale {before}: choose another --out")
    return Home(path, scale, runs_in or path / "runs")


def begin(home: Home) -> None:
    """Puts the scale on the disk, so that scales do not mix."""
    mine = home.path / f"scale.{os.getpid()}"  # others may begin here at the same moment
    try:
        home.path.mkdir(parents=True, exist_ok=True)
        disk.write_whole(mine, f"{home.scale}\n".encode())
        mine.replace(home.path / "scale")
    except OSError as error:
        raise InputError(f"cannot write {home.path}: {error.strerror}") from error


def plan(home: Home, cells: list[Cell], platform: str) -> list[Task]:
    """Where every cell stands."""
    there, tasks = Runs.under(home.runs, home.scale), []
    for cell in cells:
        try:
            state, why = _state(home, cell, there), there.broken.get(cell.name, "")
        except InputError as error:
            state, why = BROKEN, str(error)
        task = Task(cell, state, 0.0, why, disk.newest_step(home.folder(cell)))
        seconds = predict(cell, home.scale, platform, task.done) if task.is_open else 0.0
        tasks.append(replace(task, seconds=seconds))
    return tasks


def _state(home: Home, cell: Cell, there: Runs) -> str:
    found = there.run(cell.variant.name, cell.world)
    if not isinstance(found, str):
        return FINISHED
    if not cell.variant.is_available:
        return ABSENT
    if found == UNFINISHED:
        _check_same(home, cell)
        return HALFWAY
    return BROKEN if found == BROKEN else TO_RUN


def _check_same(home: Home, cell: Cell) -> None:
    """Refuses a folder of another configuration."""
    folder = home.folder(cell)
    if read_config(folder) != (cell.config(home.scale), cell.seeds(home.scale)):
        raise InputError(
            f"{folder} holds a run of other settings: move it, or choose another --out"
        )


def jobs(platform: str) -> int:
    """How many cells to run side by side: on a CPU one for each core, for a small program cannot
    keep two busy."""
    if platform != "cpu":
        return 1
    return min(MOST_JOBS, _cores())


def _cores() -> int:
    own = getattr(os, "sched_getaffinity", None)
    return len(own(0)) if own else os.cpu_count() or 1


def in_order(tasks: list[Task]) -> list[Task]:
    """PRIME first, whose programs gate off then finds compiled; then the longest, so that no core is
    left alone with one at the end."""
    return sorted(tasks, key=lambda task: (task.cell.variant.name != "prime", -task.seconds))


def in_all(tasks: list[Task], num: int, platform: str) -> float:
    """Seconds, `num` tasks side by side, each begun when there is room; they share a CPU's cores."""
    num = min(num, sum(task.is_open for task in tasks))
    share = 1.0 if platform == "gpu" else min(1.0, _cores() / (CPU_CORES * num))
    busy = [0.0] * num
    for task in in_order(tasks):
        busy[busy.index(min(busy))] += task.seconds
    return max(busy) / share


def predict(cell: Cell, scale: str, platform: str, done: int = 0) -> float:
    """Seconds from a step on, compiling included."""
    config, num_seeds = cell.config(scale), len(cell.seeds(scale))
    heads, left = getattr(config.reward, "heads", 0), config.total_steps - done
    is_prime = config.method == "prime"
    if platform == "gpu":
        launches, whole = GPU_LAUNCHES[is_prime], GPU_S.get(config.method, GPU_OTHER_S)
        if is_prime:
            (few, least), (many, most) = GPU_PRIME_S.items()
            share = (config.critics.heads + heads - few) / (many - few)
            whole = least + share * (most - least)
        whole *= launches + (1 - launches) * num_seeds / GPU_SEEDS
        return GPU_COMPILE_S[is_prime] + whole * left / STEPS
    reward = CPU_REWARD.get(config.method, CPU_OTHER_REWARD) * (1 + heads)
    updates = num_seeds * left / config.update_every
    each = CPU_UPDATE_S + _work(config) / CPU_WORK
    return CPU_COMPILE_S[is_prime] + updates * (config.critics.heads + reward) * each


def _work(config: Config) -> float:
    """Multiplications of a network's update on one minibatch: forward, target and backward."""
    net, cells = config.net, getattr(config.world, "size", 10) ** 2
    convolutions = 9 * cells * net.first_channels * (4 + net.second_channels)
    embedding = cells * net.second_channels * net.embedding
    return 5.0 * config.critics.batch * (convolutions + embedding)


def work(home: Home, cell: Cell, worker: Worker, is_asked: runs.IsAsked) -> None:
    """Begins a cell's run or takes it up."""
    folder = home.folder(cell)
    if (folder / "config.json").exists():
        _check_same(home, cell)
    else:
        create(folder, cell.config(home.scale), cell.seeds(home.scale))
    runs.proceed(folder, worker.say, worker.on_window, is_asked=is_asked)


def work_all(home: Home, tasks: list[Task], num: int, watch: Watch, say: runs.Say) -> None:
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
                with watch(task) as worker:
                    work(home, task.cell, worker, is_asked)
            except StoppedError:
                return  # because of a signal or a failure, which are told below
            except BaseException as error:  # raised again below, where somebody hears it
                failures.append(error)

        left: set[Future[None]] = {pool.submit(one, task) for task in in_order(tasks)}
        while left and not is_asked():
            left = wait(left, timeout=LISTEN_S).not_done
        if left:
            say(
                "stopping when the windows under way are done, or what is compiling is compiled "
                "(Ctrl-C again: at once) …"
            )
    if failures:
        raise failures[0]
    if is_told():
        raise StoppedError(f"stopped; the same command goes on from what is in {home.runs}")
