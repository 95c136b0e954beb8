"""The one host loop of training: windows come out of the program, and keepers are told of each."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from primax.agent.learner import Learner
from primax.agent.training import Program, Progress, compile_program, windows
from primax.config.schema import Config
from primax.errors import RunError
from primax.runs import shown
from primax.runs.tables import Table, concatenate

Say = Callable[[str], None]
OnWindow = Callable[[Progress], None]
Keep = Callable[[Any, Progress], None]
"""Told of every window: the state at its end, and what it measured."""


@dataclass(frozen=True, repr=False)
class Result:
    """A finished run: columns of the per-episode and the per-window table, and the last state."""

    config: Config
    """All settings."""
    seeds: tuple[int, ...]
    """The numbers of its seeds."""
    episodes: Table
    """Columns by name, as in episodes.csv: a row for every episode of every seed."""
    windows: Table
    """Columns by name, as in windows.csv: a row for every window and seed."""
    state: Any
    """All that the learner is at the end; every array leads with the seed."""
    compile_s: float
    """Seconds that compiling took."""
    run_s: float
    """Seconds that training took."""
    memory: dict[str, int]
    """Bytes of the compiled program, by what they are for."""

    def __repr__(self) -> str:
        config, rows = self.config, (len(self.episodes["seed"]), len(self.windows["seed"]))
        world = type(config.world).__name__.removesuffix("Config")
        what = (
            f"{config.method} in {world}, {len(self.seeds)} seeds of {config.total_steps:,} steps"
        )
        return f"<Result: {what}, {rows[0]:,} episodes, {rows[1]:,} rows of windows>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the scores, mean and deviation over seeds."""
        return shown.scores(self.config, self.episodes, self.seeds).html()

    def plot(self, column: str = "score") -> Any:
        """A column of `episodes` or `windows` over training, as a figure of matplotlib.

        The mean over seeds, and its 95% interval shaded; scores are rolling means of 20 episodes.
        """
        return shown.figure(self.config, self.seeds, (self.episodes, self.windows), column)


def compiled(learner: Learner, seeds: tuple[int, ...], say: Say, devices: int = 1) -> Program:
    """The program of a run, telling a person that it is being made and what it took."""
    where = f"{devices} × " * (devices > 1) + jax.devices()[0].device_kind
    say(f"compiling for {len(seeds)} seed{'s' * (len(seeds) > 1)} on {where} …")
    program = compile_program(learner, seeds, devices)
    say(program.summary)
    return program


def loop(program: Program, keepers: Sequence[Keep], start: tuple[Any, int] | None = None) -> Any:
    """Runs to the end, from the beginning or from a state at a clock; returns the last state.

    Every number is checked before any keeper sees it; a keeper stops the run by raising.
    """
    state = None
    for state, progress in windows(program, start):
        check_finite(progress)
        for keep in keepers:
            keep(state, progress)
    return jax.block_until_ready(state)


def check_finite(progress: Progress) -> None:
    """Stops at the first NaN or infinity, naming window, seed and quantity."""
    for name, column in progress.window.items():
        bad = np.flatnonzero(~np.isfinite(column))
        if len(bad):
            seed = progress.window["seed"][bad[0]]
            raise RunError(
                f"{name} of seed {seed} is {column[bad[0]]} in the window that ends at step "
                f"{progress.clock:,}"
            )


def in_memory(program: Program, on_window: OnWindow = lambda progress: None) -> Result:
    """Trains and keeps everything in memory."""
    began, history = time.perf_counter(), list[Progress]()

    def keep(state: Any, progress: Progress) -> None:
        history.append(progress)
        on_window(progress)

    state = loop(program, [keep])
    return Result(
        config=program.learner.config,
        seeds=program.seeds,
        episodes=concatenate([progress.episodes for progress in history]),
        windows=concatenate([progress.window for progress in history if progress.window]),
        state=state,
        compile_s=program.compile_s,
        run_s=time.perf_counter() - began,
        memory=program.memory,
    )
