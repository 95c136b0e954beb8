"""Extrinsic-DQN and PRIME in eager PyTorch, an ordinary loop over steps: what primax is beside.

    python benchmarks/torch_loop.py prime:paper task:paper --device cuda

Checks against primax that one is the other (torch_check.py), then prints milliseconds a round of
one seed, as JSON; a round is four steps and one update.
"""

import argparse
import json
import os
import time
from dataclasses import fields

import jax
import numpy as np
import torch_nets
from numpy_butterflies import NumpyButterflies
from timing import wait
from torch_nets import torch
from torch_prime import Batch, Prime

from primax.config.schema import Config, CriticsConfig
from primax.methods import build
from primax.presets import configure
from primax.worlds import ACTIONS

functional = torch.nn.functional
METHODS = ("task", "prime")
SLICES, FEWEST = 3, 10


def dqn_losses(critics: torch_nets.Ensemble, batch: Batch, reward, config: CriticsConfig) -> list:
    """Every critic's Double-DQN loss and soft bound."""
    losses = []
    for online, target in zip(critics.online, critics.target, strict=True):
        with torch.no_grad():
            best = online(batch.next_obs).argmax(dim=1, keepdim=True)
            value = target(batch.next_obs).gather(1, best).squeeze(1)
            y = reward + config.gamma * (1.0 - batch.terminated) * value
        q = online(batch.obs)
        taken = q.gather(1, batch.action[:, None]).squeeze(1)
        loss = functional.mse_loss(taken, y)
        if config.q_penalty:
            over = functional.relu(q.abs() - config.q_max).square().sum(dim=1)
            loss = loss + config.q_penalty * over.mean()
        losses.append(loss)
    return losses


class Replay:
    """A ring in numpy; minibatches go to the device when they are drawn."""

    def __init__(self, capacity: int, planes: tuple[int, int, int], device: str):
        kinds = {"obs": "u1", "next_obs": "u1", "task": "f4", "terminated": "f4"}
        shapes = {"obs": planes, "next_obs": planes}
        self.columns = {
            x.name: np.zeros((capacity, *shapes.get(x.name, ())), kinds.get(x.name, "i8"))
            for x in fields(Batch)
        }
        self.capacity, self.device, self.written = capacity, device, 0

    def add(self, row: dict) -> None:
        """Writes one transition."""
        for name, column in self.columns.items():
            column[self.written % self.capacity] = row[name]
        self.written += 1

    def read(self, index: np.ndarray) -> Batch:
        """Transitions by their place."""
        rows = {
            name: torch.from_numpy(column[index]).to(self.device, non_blocking=True)
            for name, column in self.columns.items()
        }
        rows["obs"], rows["next_obs"] = rows["obs"].float(), rows["next_obs"].float()
        return Batch(**rows)


class Loop:
    """One seed: it acts, stores, and learns."""

    def __init__(self, config: Config, device: str, seed: int = 0):
        torch.manual_seed(seed)
        world, reward = build(config)
        spec, critics = reward.spec, config.critics
        self.config, self.spec, self.device = config, spec, device
        self.rng = np.random.default_rng(seed)
        self.world = NumpyButterflies(None, config.world.size, world.num_butterflies)
        make = lambda: torch_nets.net(spec.shape, spec.net, spec.num_actions)  # noqa: E731
        rate, clip = critics.learning_rate, critics.grad_clip
        self.critics = torch_nets.Ensemble(make, critics.heads, rate, clip, device)
        self.prime = Prime(spec, config, device) if config.method == "prime" else None
        self.replay = Replay(config.replay, spec.shape, device)
        self.reset()

    def reset(self) -> None:
        """An episode begins."""
        self.world.reset(self.rng)
        self.moves = self.world.draw(self.rng, self.world.horizon)[1]
        self.obs = self.world.observe()

    def state_key(self) -> int:
        world = self.world
        return int(world.agent) * (world.num_butterflies + 1) + int(world.alive.sum())

    @torch.no_grad()
    def greedy(self) -> int:
        """The action of the highest value, averaged over critics."""
        obs = torch.from_numpy(self.obs).to(self.device).float()[None]
        return int(torch.stack([net(obs) for net in self.critics.online]).mean(0).argmax())

    def step(self, epsilon: float) -> None:
        """One environment step, stored."""
        is_random = self.rng.random() < epsilon
        action = int(self.rng.integers(len(ACTIONS))) if is_random else self.greedy()
        key = self.state_key() * len(ACTIONS) + action
        self.world.step(action, self.moves[self.world.time])
        before, self.obs = self.obs, self.world.observe()
        row = {"obs": before, "next_obs": self.obs, "action": action, "task": self.world.caught}
        row |= {"terminated": 0.0, "key": key, "next_key": self.state_key()}
        self.replay.add(row)
        if self.prime:
            self.prime.observe(key)
        if self.world.truncated:
            self.reset()

    def update(self) -> None:
        """One step of every network on one minibatch."""
        config, replay = self.config.critics, self.replay
        rows = min(replay.written, replay.capacity)
        batch = replay.read(self.rng.integers(rows, size=config.batch))
        reward = self.prime.score(batch.key) if self.prime else batch.task
        self.critics.step(dqn_losses(self.critics, batch, reward, config))
        if self.prime:
            self.prime.learn(batch, *self.prime.ask(batch))

    def round(self, epsilon: float) -> None:
        """A few steps and one update."""
        for _ in range(self.config.update_every):
            self.step(epsilon)
        self.update()

    def boundary(self) -> None:
        """A window begins: PRIME freezes its reward, and the critics' targets are synced."""
        self.critics.sync()
        if self.prime:
            written = self.replay.written
            newest = np.arange(max(0, written - self.config.recent), written)
            recent = self.replay.read(newest % self.replay.capacity)
            is_last = torch.from_numpy(newest % self.world.horizon == self.world.horizon - 1)
            draws = self.prime.draw(len(newest))
            self.prime.refresh(recent, is_last.to(self.device), draws)


def timed(work, device: str) -> float:
    """Seconds a piece of work takes, waited for."""
    start = time.perf_counter()
    work()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def measure(config: Config, device: str, seconds: float) -> dict:
    """Milliseconds a round, a boundary's share included; the fastest of three slices.

    On a CPU with one thread or with all, whichever is faster in a trial.
    """
    loop, explore = Loop(config, device), config.explore
    for _ in range(max(config.recent, config.warmup)):
        loop.step(1.0)
    # As many random actions as a whole run has on average: those need no network.
    ramp = explore.fraction * (explore.start - explore.end) / 2
    epsilon = explore.end + ramp
    loop.boundary()

    def rounds_take(num: int, threads: int) -> float:
        torch.set_num_threads(threads)
        return timed(lambda: [loop.round(epsilon) for _ in range(num)], device)

    rounds_take(FEWEST, 1)
    trials = {num: rounds_take(FEWEST, num) for num in {1, os.cpu_count() or 1}}
    threads = min(trials, key=trials.__getitem__)
    rounds = max(FEWEST, round(FEWEST * seconds / SLICES / trials[threads]))
    slices = [rounds_take(rounds, threads) for _ in range(SLICES)]
    boundary = timed(loop.boundary, device)
    a_window = config.window // config.update_every
    found = {"round_ms": 1e3 * (min(slices) / rounds + boundary / a_window)}
    found |= {"boundary_ms": 1e3 * boundary, "slice_ms": [1e3 * x / rounds for x in slices]}
    if device == "cuda":
        found["peak_mb"] = torch.cuda.max_memory_allocated() / 1e6
        torch.cuda.reset_peak_memory_stats()
    return found | {"rounds": rounds, "epsilon": epsilon, "threads": threads}


def allow_tf32(is_allowed: bool) -> None:
    """What a GPU's matrix products and convolutions round factors to."""
    torch.backends.cuda.matmul.allow_tf32 = is_allowed
    torch.backends.cudnn.allow_tf32 = is_allowed


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", default=["task:quick", "prime:quick"])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seconds", type=float, default=3.0, help="timed, of each case")
    parser.add_argument("--wait", action="store_true", help="for a turn: see timing.py")
    args = parser.parse_args()
    if args.device == "cuda" and not torch.cuda.is_available():
        parser.error("this PyTorch has no GPU: --device cpu")
    from torch_check import check  # which imports this file

    jax.config.update("jax_platforms", "cpu")  # the GPU is PyTorch's
    pairs = {case: case.split(":") for case in args.cases}
    cases = {case: configure(name, "butterflies", size) for case, (name, size) in pairs.items()}
    allow_tf32(False)
    torch.set_num_threads(1)
    presets = dict.fromkeys(preset for _, preset in pairs.values())
    found = {"check": {preset: check(preset, args.device) for preset in presets}}
    allow_tf32(True)
    if args.wait:
        wait()
    found["cases"] = {
        case: measure(config, args.device, args.seconds) for case, config in cases.items()
    }
    print(json.dumps(found | {"torch": torch.__version__}))


if __name__ == "__main__":
    main()
