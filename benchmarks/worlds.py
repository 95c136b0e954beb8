"""Steps per second of the worlds, side by side in one run; docs/benchmarks.md says how."""

import argparse
import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

import jax
import numpy as np
from numpy_butterflies import NumpyButterflies
from rich import box
from rich.console import Console
from rich.table import Table

import primax
from primax import make_world
from primax.worlds import ACTIONS

BATCHES = (1, 16, 4096)
GPU_BATCH = 65_536
SIZES, SIZE_BATCHES = (6, 10, 16, 24, 32), (16, 4096)
GYMNAX, NUMPY, PAPER_GRID = "gymnax", "numpy", "10x10"
FEWEST_ROUNDS = 3

console = Console()


@dataclass
class Cell:
    """One number of the table: a world at one batch size, and its rate in every round."""

    world: str
    label: str
    batch: int
    run: Callable[[int, int], None]
    """Runs a seed's first so many chunks, and returns when their numbers are there."""
    chunk: int
    """Steps in a chunk, all worlds together."""
    compile_s: float | None = None
    rates: list[float] = field(default_factory=list)

    def time(self, seed: int, chunks: int) -> float:
        """Seconds that so many chunks take."""
        start = time.perf_counter()
        self.run(seed, chunks)
        return time.perf_counter() - start


def steps_per_draw(batch: int) -> int:
    """Steps whose random numbers are drawn at once: a small batch would wait on each draw."""
    return 1000 if batch < 1000 else 100


def jax_cell(world: str, label: str, batch: int, start: Callable, chunk: Callable, steps: int):
    """A compiled loop over chunks; both functions are of one world, on (state, observation)."""

    def rollout(seed, num_chunks):
        k_start, k_chunks = jax.random.split(jax.random.key(seed))

        def body(i, carry):
            keys = jax.random.split(jax.random.fold_in(k_chunks, i), batch)
            return jax.vmap(chunk)(keys, carry)

        carry = jax.vmap(start)(jax.random.split(k_start, batch))
        return jax.lax.fori_loop(0, num_chunks, body, carry)[1].sum()

    begin = time.perf_counter()
    compiled = jax.jit(rollout).lower(0, 1).compile()
    compile_s = time.perf_counter() - begin

    def run(seed: int, num_chunks: int) -> None:
        compiled(seed, num_chunks).block_until_ready()

    return Cell(world, label, batch, run, batch * steps, compile_s)


def primax_cell(size: int, batch: int, label: str = "primax") -> Cell:
    """Butterflies as users run it: noise for whole episodes at once, a reset at each start."""
    world, num_steps = make_world("butterflies", size=size), steps_per_draw(batch)
    episodes = num_steps // world.horizon

    def start(key):
        state = world.reset(key)
        return state, world.observe(state)

    def step(carry, draw):
        state = world.step(carry[0], *draw)
        # Nothing reads the observation, but as a part of the carry it is written at every step.
        return (state, world.observe(state)), None

    def episode(carry, draws):
        first, steps = draws
        return jax.lax.scan(step, (first, carry[1]), steps)[0], None

    def chunk(key, carry):
        k_reset, k_noise, k_act = jax.random.split(key, 3)
        actions = jax.random.randint(k_act, (num_steps,), 0, len(ACTIONS))
        flat = (actions, world.noise(k_noise, num_steps))
        steps = jax.tree.map(lambda x: x.reshape(episodes, world.horizon, *x.shape[1:]), flat)
        firsts = jax.vmap(world.reset)(jax.random.split(k_reset, episodes))
        return jax.lax.scan(episode, carry, (firsts, steps))[0]

    return jax_cell(f"Butterflies {size}x{size}", label, batch, start, chunk, num_steps)


def gymnax_cell(batch: int) -> Cell:
    """Breakout-MinAtar, whose step resets by itself; its keys and actions too are drawn ahead."""
    import gymnax

    env, params = gymnax.make("Breakout-MinAtar")
    num_steps = steps_per_draw(batch)

    def start(key):
        observation, state = env.reset(key, params)
        return state, observation

    def step(carry, draw):
        key, action = draw
        observation, state, *_ = env.step(key, carry[0], action, params)
        return (state, observation), None

    def chunk(key, carry):
        k_steps, k_act = jax.random.split(key)
        actions = jax.random.randint(k_act, (num_steps,), 0, env.num_actions)
        return jax.lax.scan(step, carry, (jax.random.split(k_steps, num_steps), actions))[0]

    return jax_cell("Breakout-MinAtar 10x10", GYMNAX, batch, start, chunk, num_steps)


def numpy_cell(batch: int) -> Cell:
    """The same Butterflies in numpy; a single world does without the batch axis."""
    world = NumpyButterflies(None if batch == 1 else batch)

    def run(seed: int, episodes: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(episodes):
            world.reset(rng)
            for action, moves in zip(*world.draw(rng, world.horizon), strict=True):
                world.step(action, moves)
                world.observe()

    return Cell("Butterflies 10x10", NUMPY, batch, run, batch * world.horizon)


def race(cells: list[Cell], seconds: float, rounds: int) -> None:
    """Times the cells in turns, so that a busy spell of the machine meets all of them alike."""
    chunks = []
    for cell in cells:
        first = cell.time(0, 1)
        chunk_s = first if first > seconds / rounds else cell.time(1, 1)
        chunks.append(max(1, round(seconds / rounds / chunk_s)))
    deadline = time.perf_counter() + seconds * len(cells)
    for i in range(rounds):
        if i >= FEWEST_ROUNDS and time.perf_counter() > deadline:
            return
        for cell, num in zip(cells, chunks, strict=True):
            cell.rates.append(num * cell.chunk / cell.time(2 + i, num))


def spread(values: list[float]) -> dict[str, float]:
    """Median, least and greatest, to four digits."""
    found = {"median": statistics.median(values), "min": min(values), "max": max(values)}
    return {name: float(f"{value:.4g}") for name, value in found.items()}


def rows(cells: list[Cell], references: list[str]) -> list[dict]:
    """What the JSON says of cells that raced; a ratio is taken within each round."""
    known = {cell.label: cell for cell in cells}
    found = []
    for cell in cells:
        ratios = {
            name: spread([a / b for a, b in zip(cell.rates, known[name].rates, strict=True)])
            for name in references
        }
        facts = {"label": cell.label, "world": cell.world, "worlds": cell.batch}
        counts = {"rounds": len(cell.rates), "compile_s": cell.compile_s}
        found.append(facts | {"steps_per_s": spread(cell.rates), "ratio_to": ratios} | counts)
    return found


def measure(args: argparse.Namespace, with_gymnax: bool) -> dict[str, list[dict]]:
    """Both tables: the contenders at each batch size, then Butterflies at each grid size."""
    contenders, sizes = [], []
    on_gpu = jax.default_backend() != "cpu"
    for batch in () if args.only == "grid_sizes" else (*BATCHES, *[GPU_BATCH] * on_gpu):
        console.print(f"{batch} worlds ...")
        cells = [primax_cell(10, batch), numpy_cell(batch)]
        cells += [gymnax_cell(batch)] if with_gymnax else []
        race(cells, args.seconds, args.rounds)
        contenders += rows(cells, [GYMNAX, NUMPY] if with_gymnax else [NUMPY])
    for batch in () if args.only == "contenders" else SIZE_BATCHES:
        console.print(f"{batch} worlds, grids of {SIZES} ...")
        cells = [primax_cell(size, batch, f"{size}x{size}") for size in SIZES]
        race(cells, args.seconds, args.rounds)
        sizes += rows(cells, [PAPER_GRID])
    return {"contenders": contenders, "grid_sizes": sizes}


def has_gymnax() -> bool:
    """Whether gymnax can be imported; says how to get it where it cannot."""
    try:
        import gymnax  # noqa: F401
    except ImportError as error:
        how = "pip install -c constraints.txt -e '.[bench]'"
        line = f"gymnax left out ({error}); to measure it: {how}"
        console.print(line, markup=False, soft_wrap=True)
        return False
    return True


def commit() -> str:
    """The commit the code is at, `+dirty` where tracked files differ from it."""

    def git(*command: str) -> str:
        here = Path(__file__).parent
        done = subprocess.run(["git", *command], cwd=here, capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else ""

    try:
        head = git("rev-parse", "--short", "HEAD")
        dirty = "+dirty" if git("status", "--porcelain", "--untracked-files=no") else ""
    except OSError:
        head = ""
    return head + dirty if head else "unknown"


def setting(with_gymnax: bool) -> dict:
    """Where and with what the numbers were made."""
    device = jax.devices()[0]
    packages = ["jax", "jaxlib", "numpy"] + (["gymnax"] if with_gymnax else [])
    return {
        "device": f"{device.device_kind} ({device.platform}), {os.cpu_count()} CPU cores",
        "load": os.getloadavg()[0] if sys.platform != "win32" else None,
        "versions": {"python": platform.python_version()}
        | {"primax": primax.__version__}
        | {name: metadata.version(name) for name in packages},
        "commit": commit(),
        "command": shlex.join([Path(sys.executable).name, *sys.argv]),
    }


def short(value: float, digits: int = 3) -> str:
    """A few digits, and no exponent for a large number."""
    return f"{value:.{digits}g}" if value < 99.5 else f"{value:,.0f}"


def ratio_text(ratio: dict[str, float]) -> str:
    """The median, and the range of the rounds behind it."""
    return f"{short(ratio['median'])} ({short(ratio['min'], 2)}-{short(ratio['max'], 2)})"


def show(title: str, found: list[dict]) -> None:
    """Prints rows as a table; a ratio comes with its least and greatest in the rounds."""
    if not found:
        return
    references = list(found[0]["ratio_to"])
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("worlds", "", "steps/s", *(f"to {name}" for name in references), "compile"):
        table.add_column(name, justify="right" if name else "left")
    for row in found:
        ratios = [
            "1" if name == row["label"] else ratio_text(ratio)
            for name, ratio in row["ratio_to"].items()
        ]
        compile_s = "-" if row["compile_s"] is None else f"{row['compile_s']:.1f} s"
        rate = short(row["steps_per_s"]["median"])
        table.add_row(f"{row['worlds']:,}", row["label"], rate, *ratios, compile_s)
    console.print(table)


def main() -> None:
    """Measures, prints, and writes the JSON where asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="time for each cell (2)")
    parser.add_argument("--rounds", type=int, default=7, help="turns of each cell (7)")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--only", choices=("contenders", "grid_sizes"), help="one table alone")
    parser.add_argument("--no-gymnax", action="store_true", help="leave gymnax out")
    args = parser.parse_args()
    if args.seconds <= 0 or args.rounds < 1:
        parser.error("--seconds and --rounds must be positive")
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
    with_gymnax = not args.no_gymnax and has_gymnax()
    result = setting(with_gymnax) | measure(args, with_gymnax)
    show("Steps per second under a uniform random policy", result["contenders"])
    show("Butterflies against its grid size", result["grid_sizes"])
    if args.out:
        args.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
