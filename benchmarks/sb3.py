"""PRIME in Stable-Baselines3's agents: what it finds in three worlds, and what it costs.

    python benchmarks/sb3.py corridor [--seeds 0-4] [--steps 20000] [--bonus none] [--out FILE]
    python benchmarks/sb3.py rooms [--seeds 0-4] [--steps 40000] [--bonus none] [--out FILE]
    python benchmarks/sb3.py deepsea [--seeds 0-4] [--steps 10000] [--bonus none] [--out FILE]
    python benchmarks/sb3.py cost [--steps 1024] [--out FILE]

`corridor`: SB3's DQN in Maze, layout `long`, with and without the bonus, the same settings and the same
number of steps; the episode in which the flag was first taken counts from 0. `rooms`: PPO in three rooms
of MiniGrid, which is examples/sb3_minigrid.py. `deepsea`: DQN in gymnax's DeepSea, which is
examples/sb3_deepsea.py. `cost`: DQN and PPO with each bonus in one process, one after another; programs
are compiled before the clock starts, and it counts processor time, which other work on the machine moves
least. One thread each for torch and XLA.
"""

import argparse
import importlib.util
import json
import os
import platform
import shlex
import sys
import time
from functools import cache, partial
from importlib import metadata
from pathlib import Path
from typing import Any

os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "")
    + " --xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
)

import gymnasium
import jax
import numpy as np
import stable_baselines3
import torch
from gymnasium.wrappers import FlattenObservation
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.monitor import Monitor

import primax
import primax.gym
from primax.config.seeds import parse_seeds
from primax.runs.provenance import provenance
from primax.sb3 import BonusCallback, BonusReplayBuffer

GAMMA, WEIGHT, LAST = 0.99, 0.1, 20
DQN_SETTINGS = {
    "learning_rate": 1e-3,
    "learning_starts": 1_000,
    "batch_size": 64,
    "train_freq": 4,
    "gradient_steps": 4,
    "target_update_interval": 20,
    "gamma": GAMMA,
}
"""Fixed before the seeds that are reported were run; all else is SB3's default."""

WINDOWS = {"window": 500, "recent": 1_000}
"""Shorter than the default: what is new is told anew twice as often."""
SHORT = "prime, short windows"
EXAMPLES = Path(__file__).parent.parent / "examples"
BY_EXAMPLE = {"rooms": ("sb3_minigrid", "minigrid"), "deepsea": ("sb3_deepsea", "gymnax")}
"""Which example is run, and the library that has its world."""
STEPS = {"corridor": 20_000, "rooms": 40_000, "deepsea": 10_000, "cost": 1_024}
MOST = 1_000
"""Episodes at the goal whose steps are kept."""


def corridor() -> Monitor:
    """Maze with a corridor of 28 steps as its only way, as vectors of zeros and ones."""
    return Monitor(FlattenObservation(gymnasium.make("primax/Maze-v0", layout="long")))


@cache
def programs(name: str) -> Any:
    """One bonus for all seeds: its functions are pure, so they are compiled once."""
    method, _, is_short = name.partition(", ")
    keys = {"keys": "simhash"} if method in ("prime", "count") else {}
    return primax.bonus(
        method,
        primax.Space.of(corridor()),
        gamma=GAMMA,
        settings=WINDOWS if is_short else {},
        **keys,
    )


def dqn(method: str, seed: int, steps: int) -> DQN:
    """SB3's agent, with a bonus whose weight goes to zero, or with none."""
    beside: dict[str, Any] = {}
    if method != "none":
        options = {"weight": WEIGHT, "schedule": "linear", "steps": steps, "seed": seed}
        told = {"bonus": lambda space, envs: programs(method), **options}
        beside = {"replay_buffer_class": BonusReplayBuffer, "replay_buffer_kwargs": told}
    settings = DQN_SETTINGS | {"buffer_size": steps, "seed": seed, "device": "cpu"}
    return DQN("MlpPolicy", corridor(), **settings, **beside)


def found(method: str, seed: int, steps: int) -> dict[str, Any]:
    """One run: in which episode the flag was first taken, in how many, and in how many of the last."""
    start = time.perf_counter()
    model = dqn(method, seed, steps)
    model.learn(steps)
    monitor = model.get_env().envs[0]
    taken = np.array(monitor.get_episode_rewards()) > 0
    return {
        "bonus": method,
        "seed": seed,
        "episodes": len(taken),
        "first": int(np.argmax(taken)) if taken.any() else None,
        "taken": int(taken.sum()),
        "last": int(taken[-LAST:].sum()),
        "seconds": round(time.perf_counter() - start, 1),
    }


def by_example(name: str, method: str, seed: int, steps: int) -> dict[str, Any]:
    """One run of an example, whose settings were fixed before these seeds were run."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    example = sys.modules.setdefault(name, importlib.util.module_from_spec(spec))
    if not hasattr(example, "train"):
        spec.loader.exec_module(example)
    start = time.process_time()
    ends, reached = example.train(seed, steps, method == "none")
    return {
        "bonus": method,
        "seed": seed,
        "episodes": len(ends),
        "first_step": int(ends[reached.argmax()]) if reached.any() else None,
        "reached": int(reached.sum()),
        "steps": ends[reached].tolist()[:MOST],
        "processor_s": round(time.process_time() - start, 1),
    }


def ppo(method: str) -> tuple[PPO, BonusCallback | None]:
    """SB3's agent, and the callback that brings a bonus."""
    model = PPO("MlpPolicy", corridor(), n_steps=256, seed=0, device="cpu")
    if method == "none":
        return model, None
    return model, BonusCallback(lambda space, envs: programs(method), weight=WEIGHT)


def cost(steps: int) -> list[dict[str, Any]]:
    """Processor seconds of `learn` for so many steps, after as many that are not timed."""
    rows = []
    for method in ("none", "count", "rnd", "prime", SHORT):
        took = {}
        agent = dqn(method, 0, 2 * steps)
        on_policy, callback = ppo(method)
        for name, model, more in (("dqn", agent, None), ("ppo", on_policy, callback)):
            model.learn(steps, callback=more)
            start = time.process_time()
            model.learn(steps, callback=more, reset_num_timesteps=False)
            took[name] = round(time.process_time() - start, 2)
        rows.append({"bonus": method, "steps": steps, **took})
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=tuple(STEPS))
    parser.add_argument("--seeds", default="0-4")
    usual = ", ".join(f"{steps:,} for {what}" for what, steps in STEPS.items())
    parser.add_argument("--steps", type=int, help=usual)
    parser.add_argument(
        "--bonus", help=f"by semicolons: none;{SHORT} in the corridor, none;prime in the others"
    )
    parser.add_argument("--out", type=Path, help="a JSON file for all of it")
    args = parser.parse_args()
    torch.set_num_threads(1)
    begin, rows, code = time.perf_counter(), [], provenance()
    steps = args.steps or STEPS[args.what]
    example, library = BY_EXAMPLE.get(args.what, (None, None))
    if args.what == "cost":
        rows = cost(steps)
    else:
        one = partial(by_example, example) if example else found
        for method in (args.bonus or f"none;{'prime' if example else SHORT}").split(";"):
            for seed in parse_seeds(args.seeds):
                rows.append(one(method, seed, steps))
                print(rows[-1], flush=True)
    versions = {
        "python": platform.python_version(),
        "jax": jax.__version__,
        "torch": torch.__version__,
        "stable-baselines3": stable_baselines3.__version__,
    }
    if library:
        versions[library] = metadata.version(library)
    told = {"command": shlex.join(["python", "benchmarks/sb3.py", *sys.argv[1:]])}
    told |= {"took_s": round(time.perf_counter() - begin, 1), "versions": versions, **code}
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps({"rows": rows, **told}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
