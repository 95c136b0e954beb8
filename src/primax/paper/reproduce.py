"""Running what is missing: what there is to do, what it should take, and doing it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from primax import folder as disk
from primax import runs
from primax.config import Config
from primax.config_json import create, read_config
from primax.errors import InputError
from primax.paper.experiments import SCALES, Cell
from primax.paper.folders import open_run

TO_RUN, FINISHED, HALFWAY, ABSENT = "to run", "finished", "to go on", "not available yet"

# Measured on an H200: 15 seeds of PRIME take 226 s for 250,000 steps and one 52 s; 15 seeds of a
# method with one head take 52 s. Between them time is linear in networks x seeds.
GPU_S, GPU_EACH_S, GPU_COMPILE_S = 40.0, 1.2, 21.0
# Measured on two cores under load, and rough: so many multiplications a second, a time for every
# update besides, and for compiling with few and with many networks.
CPU_WORK, CPU_UPDATE_S, CPU_COMPILE_S = 1.2e10, 5e-4, (20.0, 45.0)
MANY = 3
STEPS = 250_000


@dataclass(frozen=True)
class Task:
    """A cell, where it stands, and what is left of it."""

    cell: Cell
    state: str
    seconds: float
    """Predicted; 0 where nothing is to be done."""


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
    if note.exists() and (before := note.read_text(encoding="utf-8").strip()) != scale:
        raise InputError(f"{path} holds a reproduction at scale {before}: choose another --out")
    return Home(path, scale, runs_in or path / "runs")


def begin(home: Home) -> None:
    """Puts the scale on the disk, so that scales do not mix."""
    try:
        home.path.mkdir(parents=True, exist_ok=True)
        disk.write_whole(home.path / "scale", f"{home.scale}\n".encode())
    except OSError as error:
        raise InputError(f"cannot write {home.path}: {error.strerror}") from error


def plan(home: Home, cells: list[Cell], platform: str) -> list[Task]:
    """Where every cell stands."""
    tasks = []
    for cell in cells:
        state = _state(home, cell)
        left = predict(cell, home.scale, platform) if state in (TO_RUN, HALFWAY) else 0.0
        tasks.append(Task(cell, state, left))
    return tasks


def _state(home: Home, cell: Cell) -> str:
    found = open_run(home.folder(cell))
    if not isinstance(found, str):
        return FINISHED
    if not cell.variant.is_available:
        return ABSENT
    return HALFWAY if found == "unfinished" else TO_RUN


def predict(cell: Cell, scale: str, platform: str) -> float:
    """Seconds from the beginning, compiling included."""
    config, num_seeds = cell.config(scale), len(cell.seeds(scale))
    networks = config.critics.heads + getattr(config.reward, "heads", 0)
    share = config.total_steps / STEPS
    if platform == "gpu":
        return GPU_COMPILE_S + share * (GPU_S + GPU_EACH_S * networks * num_seeds)
    updates = num_seeds * config.total_steps / config.update_every
    each = CPU_UPDATE_S + networks * _work(config) / CPU_WORK
    return CPU_COMPILE_S[networks >= MANY] + updates * each


def _work(config: Config) -> float:
    """Multiplications of a network's update on one minibatch: forward, target and backward."""
    net, cells = config.net, getattr(config.world, "size", 10) ** 2
    convolutions = 9 * cells * net.first_channels * (4 + net.second_channels)
    embedding = cells * net.second_channels * net.embedding
    return 5.0 * config.critics.batch * (convolutions + embedding)


def work(
    home: Home, task: Task, say: Callable[[str], None], on_window: Callable[[Any], None]
) -> None:
    """Begins a cell's run or takes it up; a folder of another configuration is refused."""
    folder, cell = home.folder(task.cell), task.cell
    wanted = cell.config(home.scale), cell.seeds(home.scale)
    if not (folder / "config.json").exists():
        create(folder, *wanted)
    elif read_config(folder) != wanted:
        raise InputError(
            f"{folder} holds a run of other settings: move it, or choose another --out"
        )
    runs.proceed(folder, say, on_window)
