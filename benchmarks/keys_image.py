"""Does `place` find what actions move in an image with noise? A white square over pixels that flicker.

    python benchmarks/keys_image.py

Counts beside four environments that walk at random: images of 20x20, the square 2x2 and 255, every
other pixel drawn anew at each step below a bound. A seed has found it if, of the last 500 of its 2,000
steps, nine in ten have the square's block as their key.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from keys import ROOT, written
from timing import start_jax

import primax
from primax import Space, Transition
from primax.output.sheet import Sheet

SIDE, ENVS, PART, PARTS = 10, 4, 125, 4
BOUNDS, SEEDS = (100, 150, 200), 5
FOUND = 0.9
MOVES = np.array([[0, 0], [-1, 0], [1, 0], [0, -1], [0, 1]])
SETTINGS = {"replay": 4_000, "recent": 500, "window": 500, "warmup": 500, "update_every": 1}


def shots(rng: np.random.Generator, bound: int) -> tuple[Transition, np.ndarray]:
    """Steps of every environment, and the block of the square before each."""
    actions, at = rng.integers(0, 5, (PART, ENVS)), rng.integers(0, SIDE, (ENVS, 2))
    cells = [at]
    for action in actions:
        cells.append(np.clip(cells[-1] + MOVES[action], 0, SIDE - 1))
    obs = rng.integers(0, bound, (PART + 1, ENVS, 2 * SIDE, 2 * SIDE, 1)).astype(np.uint8)
    for when in np.ndindex(PART + 1, ENVS):
        row, col = 2 * cells[when[0]][when[1]]
        obs[(*when, slice(row, row + 2), slice(col, col + 2))] = 255
    never = np.zeros(actions.shape, bool)
    return Transition(obs[:-1], actions, obs[1:], never, never), np.stack(cells[:-1]) @ [SIDE, 1]


def share(bonus: Any, bound: int, seed: int) -> float:
    """Of the last part's steps whose key is the square's block."""
    rng, state, found = np.random.default_rng(seed), bonus.init(seed), 0.0
    levels = bonus.core.keys.slow_levels
    for _ in range(PARTS):
        part, block = shots(rng, bound)
        state, _ = bonus.step(state, part)
        obs = jnp.asarray(part.obs.reshape(-1, 2 * SIDE, 2 * SIDE, 1))
        key = np.asarray(bonus.core.keys.of(state.keys, obs))
        found = float(np.mean(key // levels == block.reshape(-1)))
    return found


def table(found: dict[str, Any]) -> Sheet:
    """How many seeds found it, and every seed's share."""
    rows = []
    for row in found["noise"]:
        num, shares = sum(x > FOUND for x in row["shares"]), row["shares"]
        each = ", ".join(f"{x:.2f}" for x in shares)
        rows.append((f"{row['below']}", f"{num} of {len(shares)}", each))
    heads = ("noise below", "seeds that found it", "share of the last steps, seed by seed")
    return Sheet("image", "", heads, tuple(rows))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "keys" / "image.json")
    args, began = parser.parse_args(), time.perf_counter()
    start_jax(fast=False)
    space = Space((2 * SIDE, 2 * SIDE, 1), 5)
    bonus = primax.bonus("count", space, envs=ENVS, keys="place", settings=SETTINGS)
    rows = []
    for bound in BOUNDS:
        shares = [round(share(bonus, bound, seed), 4) for seed in range(args.seeds)]
        rows.append({"below": bound, "shares": shares})
        print(rows[-1], flush=True)
    written(args.out, {"seeds": args.seeds, "noise": rows}, began)


if __name__ == "__main__":
    main()
