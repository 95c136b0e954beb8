"""Times the engine: compile seconds, milliseconds a round, memory; for several loads and seeds.

    python benchmarks/engine.py task:15 load:15 load:1:highest

A case is METHOD:SEEDS[:PRECISION]; `load` is a reward of PRIME's size (see load.py).
"""

import argparse
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from load import Load

from primax.config import Config, CriticsConfig, NetConfig
from primax.learner import Learner
from primax.methods import spec
from primax.rewards.task import NoOptions, Task
from primax.worlds import make_world


def measure(case: str, world_name: str, windows: int) -> dict:
    method, seeds, *rest = case.split(":")
    world = make_world(world_name)
    heads = 5 if method == "load" else 1
    precision = rest[0] if rest else "default"
    net = NetConfig(precision=precision)
    critics = CriticsConfig(heads=heads)
    config = Config(method, world.config, NoOptions(), net=net, critics=critics)
    reward = {"load": Load, "task": Task}[method]
    learner = Learner(config, world, reward(spec(world, config), config.reward))
    with jax.default_matmul_precision("highest" if precision == "highest" else None):
        start = time.perf_counter()
        init = jax.jit(jax.vmap(learner.init, in_axes=(None, 0)))
        state = init(jax.random.key(0), jnp.arange(int(seeds)))
        warm = jax.jit(jax.vmap(learner.warm_up, in_axes=(0, None)), donate_argnums=0)
        state, _ = jax.block_until_ready(warm(state, jnp.int32(0)))
        init_s = time.perf_counter() - start
        window = jax.jit(jax.vmap(learner.window, in_axes=(0, None)), donate_argnums=0)
        start = time.perf_counter()
        program = window.lower(state, jnp.int32(config.warmup)).compile()
        compile_s = time.perf_counter() - start
    times, metrics = [], {}
    for i in range(windows):
        state, metrics, seconds = timed(program, state, config.warmup + i * config.window)
        times.append(seconds)
    memory = program.memory_analysis()
    rounds = config.window // config.update_every
    return {
        "case": case,
        "world": world_name,
        "init_and_warmup_s": round(init_s, 2),
        "compile_s": round(compile_s, 2),
        "round_ms": round(1e3 * min(times[1:]) / rounds, 4),
        "run_250k_s": round(min(times[1:]) * 249, 1),
        "state_mb_a_seed": round(memory.argument_size_in_bytes / 1e6 / int(seeds), 1),
        "temporaries_mb": round(memory.temp_size_in_bytes / 1e6, 1),
        "score": float(metrics["episodes"]["outcome"].score.mean()),
        "bits": fingerprint(state),
        "flags": os.environ.get("XLA_FLAGS", ""),
        "device": jax.devices()[0].device_kind,
        "jax": jax.__version__,
    }


def timed(program: Callable[..., Any], state: Any, clock: int) -> tuple[Any, Any, float]:
    """What a compiled part of a run makes of a state, and how many seconds it takes."""
    start = time.perf_counter()
    state, metrics = jax.block_until_ready(program(state, jnp.int32(clock)))
    return state, metrics, time.perf_counter() - start


def fingerprint(state) -> str:
    """A short hash of every bit of the networks: equal between processes, or the run is not."""
    digest = hashlib.sha256()
    for leaf in jax.tree.leaves((state.critics, state.obs)):
        digest.update(np.asarray(leaf).tobytes())
    return digest.hexdigest()[:12]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="+")
    parser.add_argument("--world", default="butterflies")
    parser.add_argument("--windows", type=int, default=4)
    args = parser.parse_args()
    for case in args.cases:
        print(json.dumps(measure(case, args.world, args.windows)), flush=True)


if __name__ == "__main__":
    main()
