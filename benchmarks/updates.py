"""Milliseconds per learner update on the CPU, beside PyTorch's; docs/benchmarks.md says how."""

import argparse
import json
import os
import platform
import shlex
import statistics
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy_butterflies import NumpyButterflies
from rich import box
from rich.console import Console
from rich.table import Table

from primax import critics as critic
from primax import nets
from primax.config import CriticsConfig, NetConfig
from primax.provenance import provenance

try:
    import torch
    from torch import nn
    from torch.nn import functional
except ImportError as error:
    how = "pip install -c constraints.txt -e '.[sb3]'"
    raise SystemExit(f"PyTorch is needed ({error}): {how}") from None

CASES = ((1, 1), (5, 1), (1, 15))  # heads, seeds
PLANES, NUM_ACTIONS = (4, 10, 10), 5
NUM_BATCHES, WARM, FEWEST, TOLERANCE = 32, 2, 5, 1e-4
# Bounds low enough to act on fresh networks: at the defaults neither would show in the check.
TIGHT = {"q_max": 0.05, "q_penalty": 10.0, "grad_clip": 0.05}

console = Console()


def draw_batches(seeds: int, size: int) -> list[tuple[np.ndarray, ...]]:
    """Minibatches of a random walk in Butterflies; every leaf: (seeds, size, ...).

    Observations before and after, actions, catches, and whether the episode ended. Butterflies only
    truncates; a tenth is marked as ended so that the check sees the mask.
    """
    rng, world = np.random.default_rng(0), NumpyButterflies(seeds * size)
    world.reset(rng)
    after, batches = world.observe(), []
    for action, moves in zip(*world.draw(rng, NUM_BATCHES), strict=True):
        world.step(action, moves)
        before, after = after, world.observe()
        ended = rng.random(seeds * size) < 0.1
        rows = (before, after, action, world.caught, ended)
        types = (np.float32, np.float32, np.int32, np.float32, bool)
        cast = [x.astype(to) for x, to in zip(rows, types, strict=True)]
        batches.append(tuple(x.reshape(seeds, size, *x.shape[1:]) for x in cast))
    return batches


def fresh(config: CriticsConfig, seeds: int) -> critic.Critics:
    """Every seed's critics, in numpy; the targets differ from the online heads, as in a run."""

    def one(key: jax.Array) -> critic.Critics:
        k_online, k_target = jax.random.split(key)
        start, other = (
            critic.init(k, config.heads, NetConfig(), PLANES, NUM_ACTIONS)
            for k in (k_online, k_target)
        )
        return critic.Critics(start.online, other.online, start.optimiser)

    start = jax.vmap(one)(jax.random.split(jax.random.key(0), seeds))
    return jax.tree.map(np.asarray, start)


def update(critics: critic.Critics, rates: critic.Rates, batch: tuple) -> tuple:
    """One seed's update from plain observations: PyTorch's convolution too makes its own patches."""
    before, after, action, reward, ended = batch
    rest = (action, reward, jnp.ones_like(reward), ended)
    return critic.update(critics, rates, nets.see(before), nets.see(after), rest, double=True)


def single(critics: critic.Critics, rates: critic.Rates, batch: tuple) -> tuple:
    """The update where there is one seed: its axis goes and comes back, and nothing is mapped."""
    first = jax.tree.map(lambda x: x[0], (critics, batch))
    return jax.tree.map(lambda x: x[None], update(first[0], rates, first[1]))


class Primax:
    """Our side: one compiled program for all seeds and heads."""

    def __init__(self, config: CriticsConfig, start: critic.Critics, batches: list):
        self.batches = jax.tree.map(jnp.asarray, batches)
        self.begin(config, start)
        seeds = len(batches[0][0])
        every = single if seeds == 1 else jax.vmap(update, in_axes=(0, None, 0))
        program = jax.jit(every, donate_argnums=0)
        clock = time.perf_counter()
        self.program = program.lower(self.critics, self.rates, self.batches[0]).compile()
        self.compile_s = time.perf_counter() - clock

    def begin(self, config: CriticsConfig, start: critic.Critics) -> None:
        """Sets the critics and the numbers they learn by."""
        self.critics, self.rates = jax.tree.map(jnp.array, start), critic.rates(config)

    def step(self, i: int) -> jax.Array:
        """The losses of one update, by seed; on the CPU too they may still be on their way."""
        batch = self.batches[i % NUM_BATCHES]
        self.critics, metrics = self.program(self.critics, self.rates, batch)
        return metrics["loss"]

    def wait(self) -> None:
        """Returns when every update asked for is done."""
        jax.block_until_ready(self.critics)


def torch_net() -> nn.Module:
    """The network of the paper, with PyTorch's own layers."""
    config, (channels, rows, cols) = NetConfig(), PLANES
    return nn.Sequential(
        nn.Conv2d(channels, config.first_channels, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(config.first_channels, config.second_channels, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(rows * cols * config.second_channels, config.embedding),
        nn.Linear(config.embedding, NUM_ACTIONS),
    )


def torch_layout(net: nets.Net, seed: int, head: int) -> list[np.ndarray]:
    """One of our networks as PyTorch's parameters; ours flattens (rows, cols, channels)."""
    net, (_, rows, cols) = jax.tree.map(lambda x: np.asarray(x[seed, head]), net), PLANES
    found = []
    for conv in (net.trunk.first, net.trunk.second):
        kernel = conv.weight.reshape(3, 3, -1, conv.weight.shape[1])
        found += [kernel.transpose(3, 2, 0, 1), conv.bias]
    embed = net.trunk.embed.weight
    planes = embed.reshape(rows, cols, -1, embed.shape[1]).transpose(3, 2, 0, 1)
    found += [planes.reshape(embed.shape[1], -1), net.trunk.embed.bias]
    return [*found, net.head.weight.T, net.head.bias]


class TorchHead:
    """A Double-DQN critic as one writes it in PyTorch."""

    def __init__(self, config: CriticsConfig, online: list[np.ndarray], target: list[np.ndarray]):
        self.config, self.online, self.target = config, torch_net(), torch_net()
        with torch.no_grad():
            for net, values in ((self.online, online), (self.target, target)):
                for parameter, value in zip(net.parameters(), values, strict=True):
                    parameter.copy_(torch.tensor(value))
        self.optimiser = torch.optim.Adam(self.online.parameters(), lr=config.learning_rate)

    def update(self, before, after, action, reward, ended) -> torch.Tensor:
        """One step on a minibatch; the loss."""
        config = self.config
        with torch.no_grad():
            best = self.online(after).argmax(dim=1, keepdim=True)
            value = self.target(after).gather(1, best).squeeze(1)
            y = reward + config.gamma * (1.0 - ended) * value
        q = self.online(before)
        taken = q.gather(1, action[:, None]).squeeze(1)
        over = functional.relu(q.abs() - config.q_max).square().sum(dim=1)
        bound = config.q_penalty * over.mean()
        loss = functional.mse_loss(taken, y) + bound
        self.optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.online.parameters(), config.grad_clip)
        self.optimiser.step()
        return loss.detach()


class PyTorch:
    """The other side: Python loops over seeds and heads."""

    def __init__(self, config: CriticsConfig, start: critic.Critics, batches: list):
        types = (torch.float32, torch.float32, torch.int64, torch.float32, torch.float32)
        self.batches = [
            [
                [torch.tensor(x[seed], dtype=to) for x, to in zip(batch, types, strict=True)]
                for seed in range(len(batch[0]))
            ]
            for batch in batches
        ]
        self.begin(config, start)

    def begin(self, config: CriticsConfig, start: critic.Critics) -> None:
        """Sets the critics and the numbers they learn by."""

        def build(seed: int, head: int) -> TorchHead:
            weights = (torch_layout(net, seed, head) for net in (start.online, start.target))
            return TorchHead(config, *weights)

        seeds = range(len(self.batches[0]))
        self.seeds = [[build(seed, head) for head in range(config.heads)] for seed in seeds]

    def step(self, i: int) -> list[list[torch.Tensor]]:
        """The losses of one update, by seed and head."""
        batches = self.batches[i % NUM_BATCHES]
        return [
            [head.update(*batch) for head in heads]
            for heads, batch in zip(self.seeds, batches, strict=True)
        ]

    def wait(self) -> None:
        """Nothing is outstanding: eager PyTorch on the CPU returns when it is done."""


def difference(ours: Primax, theirs: PyTorch) -> float:
    """The largest after one update: of losses, parameters, and Adam's moments.

    Adam's first step hides the gradient's length, hence the clip; its moments show it. The latter
    and the losses are compared in proportion to their size. Later steps are not compared: a tie
    between two actions that rounding breaks either way makes two correct learners part.
    """
    losses = np.asarray(ours.step(0))
    other = np.array([[float(loss) for loss in heads] for heads in theirs.step(0)]).mean(axis=1)
    gaps = [np.abs(losses / other - 1).max()]
    adam = ours.critics.optimiser
    for seed, heads in enumerate(theirs.seeds):
        for k, head in enumerate(heads):
            parts = [torch_layout(net, seed, k) for net in (ours.critics.online, adam.mu, adam.nu)]
            for a, *moments, b in zip(*parts, head.online.parameters(), strict=True):
                gaps.append(np.abs(a - b.detach().numpy()).max())
                for x, name in zip(moments, ("exp_avg", "exp_avg_sq"), strict=True):
                    y = head.optimiser.state[b][name].numpy()
                    gaps.append(np.abs(x - y).max() / np.abs(y).max())
    return float(np.max(gaps))


@dataclass
class Turns:
    """One side's milliseconds per update, round by round."""

    side: Any
    updates: int = 1
    times: list[float] = field(default_factory=list)

    def run(self, first: int, updates: int) -> float:
        """Milliseconds per update; a few go before the clock, while the other side's threads rest."""
        for i in range(WARM):
            self.side.step(first + i)
        self.side.wait()
        begin = time.perf_counter()
        for i in range(updates):
            self.side.step(first + WARM + i)
        self.side.wait()
        return 1e3 * (time.perf_counter() - begin) / updates


def race(sides: list[Turns], seconds: float, rounds: int) -> None:
    """Times the sides in turns, so that a busy spell of the machine meets both alike."""
    for turns in sides:
        turns.updates = max(FEWEST, round(1e3 * seconds / turns.run(0, FEWEST)))
    for i in range(rounds):
        for turns in sides if i % 2 == 0 else sides[::-1]:
            turns.times.append(turns.run(i * NUM_BATCHES // rounds, turns.updates))


def spread(values: list[float]) -> dict[str, float]:
    """Median, least and greatest, to four digits."""
    found = {"median": statistics.median(values), "min": min(values), "max": max(values)}
    return {name: float(f"{value:.4g}") for name, value in found.items()}


def measure(heads: int, seeds: int, seconds: float, rounds: int) -> dict:
    """One case: both sides must agree, then they race."""
    config = CriticsConfig(heads=heads)
    start, batches = fresh(config, seeds), draw_batches(seeds, config.batch)
    tight = replace(config, **TIGHT)
    ours, theirs = Primax(tight, start, batches), PyTorch(tight, start, batches)
    gap = difference(ours, theirs)
    if not gap <= TOLERANCE:
        raise SystemExit(f"{heads} heads, {seeds} seeds: the sides differ by {gap:.1e}; not timed")
    ours.begin(config, start)
    theirs.begin(config, start)
    sides = [Turns(ours), Turns(theirs)]
    race(sides, seconds, rounds)
    ratios = [b / a for a, b in zip(sides[0].times, sides[1].times, strict=True)]
    return {
        "heads": heads,
        "seeds": seeds,
        "primax_ms": spread(sides[0].times),
        "pytorch_ms": spread(sides[1].times),
        "pytorch_to_primax": spread(ratios),
        "rounds": rounds,
        "updates_a_round": {"primax": sides[0].updates, "pytorch": sides[1].updates},
        "compile_s": round(ours.compile_s, 2),
        "difference": float(f"{gap:.1e}"),
    }


def cpu_name() -> str:
    """The processor's name where the system tells it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def setting() -> dict[str, Any]:
    """Where and with what the numbers are made."""
    versions = {"torch": torch.__version__, "optax": optax.__version__}
    return (
        provenance()
        | versions
        | {
            "cpu": cpu_name(),
            "cores": os.cpu_count(),
            "torch_threads": torch.get_num_threads(),
            "load": os.getloadavg() if hasattr(os, "getloadavg") else None,
            "command": shlex.join([Path(sys.executable).name, *sys.argv]),
        }
    )


def text(found: dict[str, float]) -> str:
    """The median, and the range of the rounds behind it."""
    return f"{found['median']:.3g} ({found['min']:.3g}-{found['max']:.3g})"


def show(found: list[dict]) -> None:
    """Prints the cases as a table."""
    table = Table(
        title="Milliseconds per update of all heads and seeds", box=box.SIMPLE_HEAD, pad_edge=False
    )
    for name in ("heads", "seeds", "primax", "PyTorch", "PyTorch / primax", "compile"):
        table.add_column(name, justify="right")
    for row in found:
        cells = [text(row[name]) for name in ("primax_ms", "pytorch_ms", "pytorch_to_primax")]
        table.add_row(str(row["heads"]), str(row["seeds"]), *cells, f"{row['compile_s']:.1f} s")
    console.print(table)


def main() -> None:
    """Measures, prints, and writes the JSON where asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.6, help="of each turn (0.6)")
    parser.add_argument("--rounds", type=int, default=7, help="turns of each side, 5 or more (7)")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    args = parser.parse_args()
    if args.seconds <= 0 or args.rounds < FEWEST:
        parser.error(f"--seconds must be positive and --rounds at least {FEWEST}")
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
    jax.config.update("jax_platforms", "cpu")
    torch.set_num_threads(os.cpu_count() or 1)
    result = setting()
    result["cases"] = [measure(*case, args.seconds, args.rounds) for case in CASES]
    show(result["cases"])
    if args.out:
        args.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
