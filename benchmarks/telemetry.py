"""What PRIME's telemetry costs: a window with all its outputs against one with the episodes only.

    python benchmarks/telemetry.py --preset quick --seeds 2 --windows 10

What is not asked for the compiler leaves out, so the second program is the first without its
telemetry. Both run in turns, in one process; the ratio of their fastest windows is printed.
"""

import argparse
import json
import time

import jax
import jax.numpy as jnp

from primax.agent.learner import Learner
from primax.methods import build
from primax.presets import configure
from primax.runs.provenance import provenance


def compiled(learner: Learner, is_full: bool, state, clock):
    def window(state, clock):
        state, outputs = learner.window(state, clock)
        return state, outputs if is_full else outputs["episodes"]

    program = jax.jit(jax.vmap(window, in_axes=(0, None)))
    return program.lower(state, clock).compile()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--world", default="butterflies")
    parser.add_argument("--preset", default="quick")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--windows", type=int, default=10)
    args = parser.parse_args()
    config = configure("prime", args.world, args.preset)
    learner = Learner(config, *build(config))
    seeds = jnp.arange(args.seeds)
    state = jax.jit(jax.vmap(learner.init, in_axes=(None, 0)))(jax.random.key(0), seeds)
    state, _ = jax.jit(jax.vmap(learner.warm_up, in_axes=(0, None)))(state, jnp.int32(0))
    clock = jnp.int32(config.warmup)
    programs = {full: compiled(learner, full, state, clock) for full in (True, False)}
    times: dict[bool, list[float]] = {True: [], False: []}
    for i in range(args.windows):
        clock = jnp.int32(config.warmup + i * config.window)
        for full in (True, False):
            start = time.perf_counter()
            after, _ = jax.block_until_ready(programs[full](state, clock))
            times[full].append(time.perf_counter() - start)
        state = after
    best = {full: min(seconds) for full, seconds in times.items()}
    figures = {
        "world": args.world,
        "preset": args.preset,
        "seeds": args.seeds,
        "window_s": round(best[True], 4),
        "window_without_telemetry_s": round(best[False], 4),
        "ratio": round(best[True] / best[False], 3),
    }
    print(json.dumps(figures | provenance()))


if __name__ == "__main__":
    main()
