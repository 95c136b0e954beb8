"""Times one checkpoint at the paper's size: what it costs a run that saves at the default interval.

    python benchmarks/checkpoints.py --seeds 15 --folder /tmp

The state is a run's first: its size is that of any other. Seconds are medians over the rounds.
"""

import argparse
import hashlib
import json
import os
import shutil
import statistics
import tempfile
import time
import tracemalloc
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp

from primax.agent import training
from primax.agent.learner import Learner, make_learner
from primax.methods import build
from primax.presets import configure
from primax.runs import checkpoints, trees
from primax.runs.proceed import SAVE_EVERY_S
from primax.runs.provenance import provenance


class Count:
    """Takes bytes and keeps none: what is left is reading the state and packing it."""

    def __init__(self):
        self.size = 0

    def write(self, content) -> int:
        self.size += len(content)
        return len(content)

    def flush(self) -> None:
        """Nothing waits."""


class Hash(Count):
    """Hashes what it takes."""

    def __init__(self):
        super().__init__()
        self.hash = hashlib.sha256()

    def write(self, content) -> int:
        self.hash.update(content)
        return super().write(content)


def timed(function, *args) -> float:
    start = time.perf_counter()
    function(*args)
    return time.perf_counter() - start


def peak_mb(function, *args) -> float:
    """The most memory Python and numpy hold at once for a call; a device's copies do not count."""
    tracemalloc.start()
    function(*args)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return peak


def load(folder: Path, like) -> None:
    """What a resume does first."""
    trees.restore(checkpoints.newest(folder).state, like)


def measure(args: argparse.Namespace) -> dict:
    config, seeds = configure(args.method, args.world), tuple(range(args.seeds))
    learner = Learner(config, *build(config))
    init = jax.jit(jax.vmap(learner.init, in_axes=(None, 0)))
    seconds: dict[str, list[float]] = {"pack": [], "and_hash": [], "save": [], "load": []}
    size = 0
    folder = Path(tempfile.mkdtemp(dir=args.folder))
    try:
        for round_ in range(args.rounds):
            # Anew, since a device's array remembers that it was copied to the host.
            for name, sink in (("pack", Count()), ("and_hash", Hash())):
                state = jax.block_until_ready(init(jax.random.key(0), jnp.asarray(seeds)))
                seconds[name].append(timed(trees.write, sink, state))
                size = sink.size
            state = jax.block_until_ready(init(jax.random.key(0), jnp.asarray(seeds)))
            write = partial(trees.write, tree=state)
            seconds["save"].append(timed(checkpoints.save, folder, round_, write, {}))
            del state, write
            seconds["load"].append(
                timed(load, folder, training.state_like(make_learner(config), len(seeds)))
            )
        state = jax.block_until_ready(init(jax.random.key(0), jnp.asarray(seeds)))
        peak = peak_mb(checkpoints.save, folder, args.rounds, partial(trees.write, tree=state), {})
    finally:
        shutil.rmtree(folder)
    middle = {name: round(statistics.median(values), 3) for name, values in seconds.items()}
    return {
        "method": args.method,
        "world": args.world,
        "seeds": args.seeds,
        "state_mb": round(size / 1e6, 1),
        **{f"{name}_s": value for name, value in middle.items()},
        "save_mb_a_second": round(size / 1e6 / middle["save"]),
        "every_s": SAVE_EVERY_S,
        "share_of_the_time": round(middle["save"] / (SAVE_EVERY_S + middle["save"]), 5),
        "saving_takes_mb": round(peak, 1),
        "folder": os.fspath(args.folder),
        **provenance(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=15)
    parser.add_argument("--method", default="prime")
    parser.add_argument("--world", default="butterflies")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path(), help="on the disk to be measured")
    print(json.dumps(measure(parser.parse_args()), indent=1))


if __name__ == "__main__":
    main()
