"""Training: every seed in one compiled program, and the host loop around it."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from primax.config import Config
from primax.errors import InputError
from primax.learner import Learner
from primax.methods import build
from primax.tables import Table, concatenate

EPISODE_COLUMNS = ("seed", "episode", "step", "score", "reach", "coverage", "distance")


@dataclass(frozen=True)
class Program:
    """The compiled parts of a run, and what compiling took."""

    init: Callable[..., Any]
    warm_up: Callable[..., Any]
    window: Callable[..., Any]
    compile_s: float
    memory: dict[str, int]

    @property
    def said(self) -> str:
        """What compiling took and what running will, for people."""
        state, temporary = (size / 1e6 for size in self.memory.values())
        sizes = f"{state:.1f} MB of state a seed, {temporary:.0f} MB of temporaries"
        return f"compiled in {self.compile_s:.1f} s; {sizes}"


@dataclass(frozen=True)
class Progress:
    """Where a run stands, after every window."""

    clock: int
    total: int
    episodes: Table
    window: Table
    epsilon: float
    maps: Table = field(default_factory=dict)
    """Pictures over the grid, [seed, rows, cols] each."""


@dataclass(frozen=True)
class Result:
    """A finished run: columns of the per-episode and the per-window table, and the last state."""

    config: Config
    seeds: tuple[int, ...]
    episodes: Table
    windows: Table
    state: Any
    compile_s: float
    run_s: float
    memory: dict[str, int]


@dataclass(frozen=True)
class Measures:
    """A value a seed of what the paper's tables report."""

    average: np.ndarray
    """Score of all episodes."""
    peak: np.ndarray
    """Best mean over 20 consecutive episodes."""
    last: np.ndarray
    """Mean over the last 20 episodes."""


def measures(episodes: Table, num_seeds: int, window: int = 20) -> Measures:
    """The paper's measures from a per-episode table; shorter runs use all they have."""
    if len(episodes["seed"]) % num_seeds:
        raise InputError("the table of episodes does not have the same rows of every seed")
    order = np.lexsort((episodes["episode"], episodes["seed"]))
    scores = episodes["score"][order].reshape(num_seeds, -1).astype(float)
    window = min(window, scores.shape[1])
    rolling = np.lib.stride_tricks.sliding_window_view(scores, window, axis=1).mean(axis=2)
    return Measures(scores.mean(axis=1), rolling.max(axis=1), rolling[:, -1])


def compile_program(config: Config, seeds: tuple[int, ...]) -> Program:
    """Lowers and compiles the run for a number of seeds; nothing is executed."""
    world, reward = build(config)
    learner = Learner(config, world, reward)
    start = time.perf_counter()
    with jax.default_matmul_precision("highest" if config.net.precision == "highest" else None):
        ids = jax.ShapeDtypeStruct((len(seeds),), jnp.int32)
        clock = jax.ShapeDtypeStruct((), jnp.int32)
        root = jax.eval_shape(lambda: jax.random.key(0))
        state = state_like(config, seeds)
        lowered = [
            jax.jit(jax.vmap(part, in_axes=(0, None)), donate_argnums=0).lower(state, clock)
            for part in (learner.window, learner.warm_up)
        ]
        lowered.append(jax.jit(jax.vmap(learner.init, in_axes=(None, 0))).lower(root, ids))
    with ThreadPoolExecutor(len(lowered)) as pool:  # compiling needs no interpreter
        window, warm_up, init = pool.map(lambda part: part.compile(), lowered)
    stats: Any = window.memory_analysis()
    memory = {
        "state_bytes_a_seed": stats.argument_size_in_bytes // len(seeds),
        "temporary_bytes": stats.temp_size_in_bytes,
    }
    return Program(init, warm_up, window, time.perf_counter() - start, memory)


def state_like(config: Config, seeds: tuple[int, ...]) -> Any:
    """Shapes and types of a run's state."""
    learner = Learner(config, *build(config))
    root = jax.eval_shape(lambda: jax.random.key(0))
    ids = jax.ShapeDtypeStruct((len(seeds),), jnp.int32)
    return jax.eval_shape(jax.vmap(learner.init, in_axes=(None, 0)), root, ids)


def steps(
    config: Config,
    seeds: tuple[int, ...],
    program: Program,
    start: tuple[Any, int] | None = None,
) -> Iterator[tuple[Any, Progress]]:
    """Runs a program window by window, from its beginning or from a state at a clock."""
    state, clock = start or (program.init(jax.random.key(0), jnp.asarray(seeds, jnp.int32)), 0)
    epsilon = Learner(config, *build(config)).epsilon
    while clock < config.total_steps:
        is_warm = clock >= config.warmup
        part, length = (
            (program.window, config.window) if is_warm else (program.warm_up, config.warmup)
        )
        state, metrics = part(state, jnp.asarray(clock, jnp.int32))
        metrics = jax.tree.map(np.asarray, metrics)
        episodes = episode_rows(config, seeds, clock, length, metrics["episodes"])
        clock += length
        window = window_rows(seeds, clock, metrics["window"])
        now = float(epsilon(jnp.int32(clock)))
        maps = metrics["maps"]
        yield state, Progress(clock, config.total_steps, episodes, window, now, maps)


def episode_rows(
    config: Config, seeds: tuple[int, ...], clock: int, length: int, episodes: Any
) -> Table:
    """One row for every episode that ended, seed by seed; a pure function of a window's outputs."""
    ends = clock + config.segment * (1 + np.arange(length // config.segment))
    is_over = episodes["is_over"][0]
    step, outcome = ends[is_over], episodes["outcome"]
    shape = (len(seeds), len(step))
    score = outcome.score[:, is_over]
    columns = {
        "seed": np.broadcast_to(np.array(seeds)[:, None], shape),
        "episode": np.broadcast_to(step // config.world.horizon - 1, shape),
        "step": np.broadcast_to(step, shape),
        "score": score,
        "reach": score > 0,
        "coverage": outcome.coverage[:, is_over],
        "distance": outcome.distance[:, is_over],
    }
    return {name: columns[name].reshape(-1) for name in EPISODE_COLUMNS}


def window_rows(seeds: tuple[int, ...], clock: int, metrics: Any) -> Table:
    """One row a seed of what a window measured."""
    if not metrics:
        return {}
    return {"seed": np.array(seeds), "step": np.full(len(seeds), clock), **metrics}


def run(
    config: Config,
    seeds: tuple[int, ...],
    on_window: Callable[[Progress], None] = lambda progress: None,
    program: Program | None = None,
) -> Result:
    """Trains a configuration; `on_window` is told of every window."""
    program = program or compile_program(config, seeds)
    start, history, state = time.perf_counter(), [], None
    for state, progress in steps(config, seeds, program):  # noqa: B007
        history.append(progress)
        on_window(progress)
    jax.block_until_ready(state)
    return Result(
        config=config,
        seeds=seeds,
        episodes=concatenate([progress.episodes for progress in history]),
        windows=concatenate([progress.window for progress in history if progress.window]),
        state=state,
        compile_s=program.compile_s,
        run_s=time.perf_counter() - start,
        memory=program.memory,
    )
