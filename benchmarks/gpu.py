"""Where a GPU's time goes: by kernel, for one window of a run or for the trunk alone.

    python benchmarks/gpu.py window prime --seeds 15
    python benchmarks/gpu.py window prime --seeds 15 --set net.kernels=false
    python benchmarks/gpu.py trunk --seeds 15 --heads 5

A window is run four times first, and its shortest time is printed; the fifth is traced. `trunk` does a
forward pass and a gradient of every head of every seed on one minibatch a seed, as kernels and as
plain products, and says how far each is from float32 products.
"""

import argparse
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from timing import timed

from primax.agent import training
from primax.agent.learner import make_learner
from primax.config.fields import parse_pairs
from primax.config.schema import NetConfig
from primax.config.seeds import parse_seeds
from primax.nn import nets
from primax.presets import configure
from primax.runs.provenance import provenance

TURNS = 20


def traced(work: Callable[[], Any]) -> list[tuple[str, float, int]]:
    """Every kernel a piece of work runs: its name, microseconds in all, and how often."""
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            jax.block_until_ready(work())
        (path,) = Path(folder).rglob("*.xplane.pb")
        data = jax.profiler.ProfileData.from_file(str(path))
    spent, times = Counter(), Counter()
    lines = (line for plane in data.planes if "GPU" in plane.name for line in plane.lines)
    for event in (event for line in lines if "Stream" in line.name for event in line.events):
        spent[event.name] += event.duration_ns / 1e3
        times[event.name] += 1
    if not spent:
        raise SystemExit("no kernels in the trace: this needs a GPU")
    return [(name, microseconds, times[name]) for name, microseconds in spent.most_common()]


def repeat(work: Callable[[], Any]) -> list[Any]:
    return [work() for _ in range(TURNS)]


def show(kernels: list[tuple[str, float, int]], turns: int, most: int) -> None:
    total, num = sum(x for _, x, _ in kernels) / turns, sum(n for _, _, n in kernels) / turns
    print(f"{total:9.1f} us  {num:7.1f} kernels in all")
    for name, microseconds, count in kernels[:most]:
        print(f"{microseconds / turns:9.2f} us  {count / turns:7.2f} x  {name[:90]}")


def window(args: argparse.Namespace) -> None:
    config = configure(args.method, args.world, args.preset, parse_pairs(args.set))
    seeds = parse_seeds(args.seeds)
    program = training.compile_program(make_learner(config), seeds)
    print(program.said)
    state = program.init(jax.random.key(0), jnp.asarray(seeds, jnp.int32))
    state, _, _ = timed(program.warm_up, state, 0)
    times = []
    for clock in range(config.warmup, config.warmup + 4 * config.window, config.window):
        state, _, seconds = timed(program.window, state, clock)
        times.append(seconds)
    rounds = config.window // config.update_every
    whole = min(times) * (config.total_steps - config.warmup) / config.window
    print(f"{1e3 * min(times) / rounds:.4f} ms a round, {whole:.1f} s for the budget; a round:")
    clock = jnp.int32(config.warmup + 4 * config.window)
    show(traced(lambda: program.window(state, clock)), rounds, args.most)


def trunk(args: argparse.Namespace) -> None:
    seeds, size = len(parse_seeds(args.seeds)), (4, 10, 10)
    k_net, k_see, k_weigh = jax.random.split(jax.random.key(0), 3)
    patches = jax.vmap(nets.patches)(jax.random.bernoulli(k_see, 0.2, (seeds, 64, *size)))
    weight = jax.random.normal(k_weigh, (seeds, args.heads, 64, 64))

    def made(config: NetConfig) -> tuple[nets.Trunk, Callable, Callable]:
        keys = jax.random.split(k_net, (seeds, args.heads))
        net = jax.vmap(jax.vmap(lambda key: nets.with_trunk(key, size, config)[0]))(keys)
        say = jax.vmap(jax.vmap(lambda net, x: net(x), in_axes=(0, None)))
        loss = lambda net, x, weight: jnp.sum(say(net, x) * weight)  # noqa: E731
        return net, jax.jit(say), jax.jit(jax.grad(loss))

    net, say, grad = made(NetConfig(precision="highest"))
    with jax.default_matmul_precision("highest"):
        exact = jax.tree.leaves((say(net, patches), grad(net, patches, weight)))
    far = lambda a, b: float(jnp.linalg.norm(a - b) / jnp.linalg.norm(b))  # noqa: E731
    for precision in ("default", "bfloat16"):
        for is_kernels in (False, True):
            net, say, grad = made(NetConfig(precision=precision, kernels=is_kernels))
            found = jax.tree.leaves((say(net, patches), grad(net, patches, weight)))
            apart = [f"{far(a, b):.1e}" for a, b in zip(found, exact, strict=True) if b.any()]
            print(f"\n{precision}, {'kernels' if is_kernels else 'products'}, off by", *apart)
            for work in (partial(say, net, patches), partial(grad, net, patches, weight)):
                show(traced(partial(repeat, work)), TURNS, args.most)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("window", "trunk"))
    parser.add_argument("method", nargs="?", default="prime")
    parser.add_argument("--world", default="butterflies")
    parser.add_argument("--preset", default="paper")
    parser.add_argument("--seeds", default="15")
    parser.add_argument("--heads", type=int, default=5)
    parser.add_argument("--set", nargs="+", default=[], metavar="FIELD=VALUE")
    parser.add_argument("--most", type=int, default=40, help="kernels shown")
    args = parser.parse_args()
    print({key: value for key, value in provenance().items() if value != ""})
    {"window": window, "trunk": trunk}[args.what](args)


if __name__ == "__main__":
    main()
