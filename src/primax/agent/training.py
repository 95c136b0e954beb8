"""Training: every seed in one compiled program, run window by window."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding

from primax.agent import critics
from primax.agent.devices import OnEach, each_device, seed_sharding
from primax.agent.learner import Learner
from primax.config.schema import Config
from primax.errors import RunError

Table = dict[str, np.ndarray]
EPISODE_COLUMNS = ("seed", "episode", "step", "score", "reach", "coverage", "distance")


@dataclass(frozen=True)
class Program:
    """The compiled parts of a run, and what compiling took."""

    learner: Learner
    seeds: tuple[int, ...]
    init: Callable[..., Any]
    warm_up: Callable[..., Any]
    window: Callable[..., Any]
    compile_s: float
    memory: dict[str, int]
    networks: Any = None
    """Control heads or their trunks [seed, head, ...] to begin with, in place of new ones."""
    renew: Callable[..., Any] | None = None
    """Renews learnt keys; None where none are learnt."""
    sharding: NamedSharding | None = None
    """Where arrays of all seeds lie; None on one device."""

    @property
    def summary(self) -> str:
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
    """Empty after the warm-up, which learns nothing."""
    epsilon: float
    maps: Table = field(default_factory=dict)
    """Pictures over the grid, [seed, rows, cols] each."""
    steps: int = 0
    """Of this window."""
    seconds: float = 0.0
    """What they took."""


def compile_program(learner: Learner, seeds: tuple[int, ...], devices: int = 1) -> Program:
    """Lowers and compiles the run for a number of seeds; nothing is executed."""
    start, sharding = time.perf_counter(), seed_sharding(devices)
    num = len(seeds) // devices
    traced, made = _traced(learner, num), list[list[Any]]()
    with ThreadPoolExecutor(len(traced)) as pool:  # compiling needs no interpreter
        for device in each_device(sharding):  # one by one: GPUs find the first one's in the cache
            with device, multiplying(learner.config):
                lowered = [part.lower() for part in traced]
            made.append(list(pool.map(lambda part: part.compile(), lowered)))
    stats: Any = made[0][0].memory_analysis()
    memory = {
        "state_bytes_a_seed": stats.argument_size_in_bytes // num,
        "temporary_bytes": stats.temp_size_in_bytes,
    }
    parts: Any = (
        made[0] if sharding is None else [OnEach(p, sharding) for p in zip(*made, strict=True)]
    )
    window, warm_up, *renew, init = parts
    took = time.perf_counter() - start
    program = Program(learner, seeds, init, warm_up, window, took, memory, sharding=sharding)
    return replace(program, renew=renew[0]) if renew else program


def _traced(learner: Learner, num_seeds: int) -> list[Any]:
    """The parts of a run for so many seeds: window, warm-up, where keys are learnt renewal, init."""
    with multiplying(learner.config):
        ids = jax.ShapeDtypeStruct((num_seeds,), jnp.int32)
        clock = jax.ShapeDtypeStruct((), jnp.int32)
        root = jax.eval_shape(lambda: jax.random.key(0))
        state = state_like(learner, num_seeds)
        keys = learner.keys
        parts = [
            learner.window,
            learner.warm_up,
            *([learner.renew] if keys and keys.learns else []),
        ]
        traced = [
            jax.jit(jax.vmap(part, in_axes=(0, None)), donate_argnums=0).trace(state, clock)
            for part in parts
        ]
        return [*traced, jax.jit(jax.vmap(learner.init, in_axes=(None, 0))).trace(root, ids)]


def multiplying(config: Config) -> AbstractContextManager[Any]:
    """As precisely as a configuration asks for; programs are lowered in it."""
    return jax.default_matmul_precision("highest" if config.net.precision == "highest" else None)


def state_like(learner: Learner, num_seeds: int, sharding: NamedSharding | None = None) -> Any:
    """Shapes and types of a run's state, and where it lies."""
    root = jax.eval_shape(lambda: jax.random.key(0))
    ids = jax.ShapeDtypeStruct((num_seeds,), jnp.int32)
    like = jax.eval_shape(jax.vmap(learner.init, in_axes=(None, 0)), root, ids)
    return like if sharding is None else jax.tree.map(lambda x: x.update(sharding=sharding), like)


def windows(
    program: Program, start: tuple[Any, int] | None = None
) -> Iterator[tuple[Any, Progress]]:
    """Runs a program window by window, from its beginning or from a state at a clock."""
    config, seeds = program.learner.config, program.seeds
    state, clock = start or (_first(program), 0)
    fixed = _fixed(state)
    while clock < config.total_steps:
        began, is_warm = time.perf_counter(), clock >= config.warmup
        part, length = (
            (program.window, config.window) if is_warm else (program.warm_up, config.warmup)
        )
        if program.renew and program.learner.renews(clock):
            state = program.renew(state, jnp.asarray(clock, jnp.int32))
        state, outputs = part(state, jnp.asarray(clock, jnp.int32))
        outputs = jax.tree.map(np.asarray, outputs)
        _check_fixed(fixed, state, clock + length)
        told = outputs["episodes"]
        if program.learner.world.can_end:
            episodes = free_episode_rows(seeds, clock, told)
        else:
            episodes = episode_rows(config, seeds, clock, length, told)
        clock += length
        window = window_rows(seeds, clock, outputs["window"])
        epsilon = float(program.learner.epsilon(jnp.int32(clock)))
        took, maps = time.perf_counter() - began, outputs["maps"]
        total = config.total_steps
        yield state, Progress(clock, total, episodes, window, epsilon, maps, length, took)


def _fixed(state: Any) -> dict[str, np.ndarray]:
    """What no window may change: learning rates and the like, and the reward's constants."""
    frozen = getattr(state.reward, "window", None)
    parts = {"rates": state.rates, "reward": getattr(state.reward, "constants", None)}
    parts |= {"window": getattr(frozen, "constants", None)}
    leaves = jax.tree_util.tree_leaves_with_path(parts)
    return {jax.tree_util.keystr(at): np.asarray(x) for at, x in leaves}


def _check_fixed(fixed: dict[str, np.ndarray], state: Any, clock: int) -> None:
    """Stops where a program has overwritten one of them: a compiler for a GPU was seen to."""
    for name, now in _fixed(state).items():
        if not np.array_equal(fixed[name], now, equal_nan=True):
            raise RunError(
                f"the compiled program overwrote {name} in the window that ends at step {clock:,}: "
                "its numbers cannot be used; another version of jax may compile it rightly"
            )


def _first(program: Program) -> Any:
    """The state before the first step."""
    ids = jax.device_put(jnp.asarray(program.seeds, jnp.int32), program.sharding)
    state = program.init(jax.random.key(0), ids)
    if program.networks is None:
        return state
    given = critics.begin_with(state.critics, program.networks)
    given = jax.device_put(given, program.sharding)
    return eqx.tree_at(lambda state: state.critics, state, given)


def episode_rows(
    config: Config, seeds: tuple[int, ...], clock: int, length: int, episodes: Any
) -> Table:
    """One row for every episode that ended, seed by seed; a pure function of a window's outputs."""
    ends = clock + config.segment * (1 + np.arange(length // config.segment))
    is_over = episodes["is_over"][0]
    step = ends[is_over]
    shape = (len(seeds), len(step))
    when = {
        "seed": np.broadcast_to(np.array(seeds)[:, None], shape),
        "episode": np.broadcast_to(step // config.world.horizon - 1, shape),
        "step": np.broadcast_to(step, shape),
    }
    outcome = jax.tree.map(lambda x: x[:, is_over], episodes["outcome"])
    return {name: column.reshape(-1) for name, column in (when | _told(outcome)).items()}


def free_episode_rows(seeds: tuple[int, ...], clock: int, episodes: Any) -> Table:
    """The same where episodes end when they like: [seed, step] says which steps ended one."""
    seed, step = np.nonzero(episodes["is_over"])
    outcome = jax.tree.map(lambda x: x[seed, step], episodes["outcome"])
    return {
        "seed": np.array(seeds)[seed],
        "episode": episodes["episode"][seed, step],
        "step": clock + 1 + step,
        **_told(outcome),
    }


def _told(outcome: Any) -> Table:
    """The columns of what is known of episodes."""
    known = {"score": outcome.score, "reach": outcome.score > 0}
    more = {name: getattr(outcome, name) for name in ("coverage", "distance", "length", "noise")}
    return known | {name: column for name, column in more.items() if column is not None}


def window_rows(seeds: tuple[int, ...], clock: int, metrics: Any) -> Table:
    """One row a seed of what a window measured."""
    if not metrics:
        return {}
    return {"seed": np.array(seeds), "step": np.full(len(seeds), clock), **metrics}
