"""Seconds a run should take, from rates that were measured."""

import os
from collections.abc import Iterable

from primax.config.schema import Config
from primax.output.sheet import clock
from primax.paper.experiments import Cell

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


def predict(cell: Cell, scale: str, platform: str, done: int = 0) -> float:
    """Seconds a cell takes from a step on, compiling included."""
    return predict_run(cell.config(scale), len(cell.seeds(scale)), platform, done)


def predict_run(config: Config, num_seeds: int, platform: str, done: int = 0) -> float:
    """The same for any run."""
    heads, left = getattr(config.reward, "heads", 0), config.total_steps - done
    method = config.method.rpartition("+")[2]  # beside the task, a bonus costs the same
    is_prime = method == "prime"
    if platform == "gpu":
        launches, whole = GPU_LAUNCHES[is_prime], GPU_S.get(method, GPU_OTHER_S)
        if is_prime:
            (few, least), (many, most) = GPU_PRIME_S.items()
            share = (config.critics.heads + heads - few) / (many - few)
            whole = least + share * (most - least)
        whole *= launches + (1 - launches) * num_seeds / GPU_SEEDS
        return GPU_COMPILE_S[is_prime] + whole * left / STEPS
    reward = CPU_REWARD.get(method, CPU_OTHER_REWARD) * (1 + heads)
    updates = num_seeds * left / config.update_every
    each = CPU_UPDATE_S + _work(config) / CPU_WORK
    return CPU_COMPILE_S[is_prime] + updates * (config.critics.heads + reward) * each


def cores() -> int:
    """Those this process may use."""
    own = getattr(os, "sched_getaffinity", None)
    return len(own(0)) if own else os.cpu_count() or 1


def side_by_side(seconds: Iterable[float], num: int, platform: str) -> float:
    """Seconds of all, in this order, `num` at a time, each begun when there is room; they share a
    CPU's cores. Those that are finished take no time, and no room."""
    left = [each for each in seconds if each]
    num = max(1, min(num, len(left)))
    share = 1.0 if platform == "gpu" else min(1.0, cores() / (CPU_CORES * num))
    busy = [0.0] * num
    for each in left:
        busy[busy.index(min(busy))] += each
    return max(busy) / share


def at_pace(took: float, done: float, total: float) -> str:
    """How long the rest will take at the pace so far, of predicted seconds."""
    return (
        f"about {clock(took * (total / done - 1))} left" if done > 0 else "the rest not known yet"
    )


def _work(config: Config) -> float:
    """Multiplications of a network's update on one minibatch: forward, target and backward."""
    net, size = config.net, getattr(config.world, "size", 10)
    cells = size**2 if isinstance(size, int) else 100
    convolutions = 9 * cells * net.first_channels * (4 + net.second_channels)
    embedding = cells * net.second_channels * net.embedding
    return 5.0 * config.critics.batch * (convolutions + embedding)
