"""What a bonus costs beside someone's loop, at 1, 16 and 256 environments; RND in PyTorch beside it.

    python benchmarks/anywhere.py [--seconds 2] [--spaces vector] [--rewards prime,torch] [--envs 1,256]
    python benchmarks/anywhere.py --programs

`step` takes a rollout of 128 ticks a call, with one update of the reward's networks every four
ticks; where freezing has windows they are 1,000, 312 and 20 ticks long at 1, 16 and 256 environments,
so the median call of `step` has a refresh in it only at 256. `score` takes as many transitions as
there are environments. Both are microseconds a call divided by ticks: what a step of all
environments costs. Observations are vectors of 8 numbers; images are 84x84x1. `--programs` runs the
two whole programs of docs/anywhere.md instead, each in a process of its own that compiles everything.
"""

import argparse
import itertools
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import primax

PAGE = Path(__file__).parent.parent / "docs" / "anywhere.md"
TICKS, ACTIONS = 128, 4
ENVS = (1, 16, 256)
SPACES = {"vector": primax.Space((8,), ACTIONS), "image": primax.Space((84, 84, 1), ACTIONS)}


def rollout(space: primax.Space, envs: int) -> primax.Transition:
    """Random steps; every hundredth ends an episode."""
    rng = np.random.default_rng(0)
    lead = (TICKS, envs)
    if space.kind == "image":
        obs = rng.integers(0, 256, (2, *lead, *space.obs)).astype(np.uint8)
    else:
        obs = rng.normal(size=(2, *lead, *space.obs)).astype(np.float32)
    ends = rng.random(lead) < 0.01
    steps = primax.Transition(
        obs[0], rng.integers(0, ACTIONS, lead), obs[1], ends, np.zeros(lead, bool)
    )
    return jax.tree.map(jnp.asarray, steps)


def settings(envs: int) -> dict[str, int]:
    """Updates every four ticks for any number of environments; windows of what there is to see."""
    recent = max(5_000, 20 * envs)
    window = max(1_000, min(1_000 * envs, recent))
    return {
        "update_every": 4 * envs,
        "window": window,
        "recent": recent,
        "replay": max(20_000, 2 * recent),
        "warmup": 1_000,
    }


def timed(call: Callable[[], Any], seconds: float) -> float:
    """Median seconds of a call."""
    found, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(found) < 3:
        start = time.perf_counter()
        jax.block_until_ready(call())
        found.append(time.perf_counter() - start)
    return float(np.median(found))


def ours(method: str, space: primax.Space, envs: int, seconds: float) -> tuple[float, float]:
    """Microseconds a tick of `step` and of `score`."""
    keys = {"keys": "simhash"} if method in ("prime", "count") else {}
    bonus = primax.bonus(method, space, envs=envs, settings=settings(envs), **keys)
    steps = rollout(space, envs)
    step = jax.jit(bonus.step, donate_argnums=0)
    score = jax.jit(bonus.score)
    state, _ = step(bonus.init(0), steps)
    for _ in range(-(-1_000 // (TICKS * envs))):
        state, _ = step(state, steps)
    one = jax.tree.map(lambda x: x[0], steps)
    scored = timed(lambda: score(state, one), seconds)
    holder = [state]

    def go() -> Any:
        holder[0], worth = step(holder[0], steps)
        return worth

    return timed(go, seconds) / TICKS * 1e6, scored * 1e6


def torch_rnd(space: primax.Space, envs: int, seconds: float) -> tuple[float, float] | None:
    """RND as it is usually written: rewards of every tick, one update of 64 rows every four ticks."""
    try:
        import torch
    except ImportError:
        return None
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)

    def net() -> Any:
        nn = torch.nn
        if space.kind == "vector":
            body = [nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU()]
            return nn.Sequential(*body, nn.Linear(64, 64)).to(device)
        widths, layers = (1, 16, 32, 32, 32), []
        for before, after in itertools.pairwise(widths):
            layers += [nn.Conv2d(before, after, 3, 2, 1), nn.ReLU()]
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(32 * 36, 64)).to(device)

    target, predictor = net(), net()
    optimiser = torch.optim.Adam(predictor.parameters(), 3e-4)
    raw = np.array(rollout(space, envs).next_obs)  # one that may be written to
    rows = torch.as_tensor(raw, device=device)
    if space.kind == "image":
        rows = rows.permute(0, 1, 4, 2, 3)
    kept = rows.reshape(-1, *rows.shape[2:])[:20_000]
    mean, variance, count = 0.0, 1.0, 1e-4

    def see(x: Any) -> Any:
        return x.float() / 255.0 if space.kind == "image" else x

    def reward(x: Any) -> Any:
        with torch.no_grad():
            seen = see(x)
            return ((predictor(seen) - target(seen)) ** 2).mean(-1)

    def go() -> None:
        nonlocal mean, variance, count
        for tick in range(TICKS):
            error = reward(rows[tick])
            if tick % 4 == 3:
                seen = see(kept[torch.randint(0, kept.shape[0], (64,), device=device)])
                with torch.no_grad():
                    says = target(seen)
                loss = ((predictor(seen) - says) ** 2).mean()
                optimiser.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(predictor.parameters(), 10.0)
                optimiser.step()
            num, off = error.shape[0], float(error.mean()) - mean
            spread = float(error.var(unbiased=False))
            total = count + num
            variance = (variance * count + spread * num + off**2 * count * num / total) / total
            mean, count = mean + off * num / total, total
            _ = (error / (variance**0.5 + 1e-8)).clamp(-5, 5)

    def synced(function: Callable[[], Any]) -> Callable[[], Any]:
        def call() -> None:
            function()
            if device == "cuda":
                torch.cuda.synchronize()

        return call

    go()
    scored = timed(synced(lambda: reward(rows[0])), seconds)
    return timed(synced(go), seconds) / TICKS * 1e6, scored * 1e6


def programs() -> None:
    """What the page's two whole programs take, from import to end; XLA uses one thread."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    for name, code in zip(("CartPole", "Square"), blocks, strict=False):
        assert name in code
        start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        env = os.environ | {"XLA_FLAGS": flags}
        subprocess.run([sys.executable, "-c", code], check=True, env=env)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        took = time.perf_counter() - start
        print(f"{name}: {used:.0f} s of a processor, {took:.0f} s by the clock", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="to measure each number for")
    parser.add_argument("--spaces", default="vector,image", help="vector, image, or both")
    parser.add_argument("--rewards", default="prime,rnd,count,torch", help="torch: RND in PyTorch")
    parser.add_argument("--envs", default=",".join(map(str, ENVS)), help="numbers of environments")
    parser.add_argument("--programs", action="store_true", help="the page's two programs, no table")
    args = parser.parse_args()
    if args.programs:
        print(f"jax {jax.__version__}")
        return programs()
    envs_of = [int(envs) for envs in args.envs.split(",")]
    device = jax.devices()[0]
    print(f"jax {jax.__version__} on {device.device_kind}")
    print("| observation | reward | envs | step, µs a tick | score, µs a call |")
    print("| --- | --- | ---: | ---: | ---: |")
    for kind in args.spaces.split(","):
        for reward in args.rewards.split(","):
            name = "rnd in PyTorch" if reward == "torch" else reward
            for envs in envs_of:
                if reward == "torch":
                    found = torch_rnd(SPACES[kind], envs, args.seconds)
                else:
                    found = ours(reward, SPACES[kind], envs, args.seconds)
                said = (
                    "{:,.0f} | {:,.0f}".format(*found) if found else "not installed | not installed"
                )
                print(f"| {kind} | {name} | {envs} | {said} |", flush=True)


if __name__ == "__main__":
    main()
