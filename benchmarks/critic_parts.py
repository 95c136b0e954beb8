"""What PRIME makes of the grid of "Curiosity-Critic": its parts in both halves, after a random walk.

    python benchmarks/critic_parts.py --out results/noise/curiosity_critic_parts.json

The walk is as long as a run of benchmarks/curiosity_critic.py and sees what is seen there. Means are
over its last 5,000 steps, by the half that a step led to.
"""

import argparse
import json
import shlex
import sys
from pathlib import Path
from typing import Any

import critic_grid as grid
import jax
import numpy as np
from critic_rewards import KEPT, LENGTHS

import primax
from primax.output.sheet import Sheet
from primax.runs.provenance import provenance

STEPS, CHUNK, LAST = 35_000, 1_000, 5_000
SHOWN = {
    "v_epi": "V_epi: what is new",
    "v_ale": "V_ale: the noise",
    "v_ahead": "look-ahead",
    "bracket": "noise that the gate leaves",
    "reward": "reward",
}
HALVES = ("learnable", "noise")


def walk(steps: int, seed: int) -> primax.Transition:
    """Uniform moves from the start, [time, 1], with place and screen to be seen and cells as keys."""
    rng, cells, actions = np.random.default_rng(seed), [grid.START], []
    for _ in range(steps):
        actions.append(rng.choice(np.flatnonzero(grid.ALLOWED[cells[-1]])))
        cells.append(grid.LEADS_TO[cells[-1], actions[-1]])
    cell = np.array(cells)
    coins = rng.integers(0, 2, (steps + 1, grid.NUM_PIXELS))
    screens = np.where(grid.is_noise(cell)[:, None], coins, grid.PICTURES[cell])
    seen = np.concatenate([grid.PLACES[cell], screens], axis=1).astype(np.float32)
    never = np.zeros(steps, bool)
    made = primax.Transition(
        seen[:-1], np.array(actions), seen[1:], never, never, cell[:-1], cell[1:]
    )
    return jax.tree.map(lambda x: x[:, None], made)


def parts(steps: int, seed: int) -> dict[str, Any]:
    """The mean of every part over the last steps, by half, and how often their pairs were met."""
    space = primax.Space((LENGTHS["both"],), grid.NUM_ACTIONS, num_keys=grid.NUM_CELLS)
    bonus = primax.bonus("prime", space, keys="given", settings={"replay": KEPT})
    state, lived = bonus.init(seed), walk(steps, seed)
    for start in range(0, steps, CHUNK):
        state, _ = bonus.step(state, jax.tree.map(lambda x, i=start: x[i : i + CHUNK], lived))
    last = jax.tree.map(lambda x: x[-LAST:], lived)
    made, is_noise = bonus.parts(state, last), grid.is_noise(last.next_key)
    halves = (~is_noise, is_noise)
    found = {name: [round(float(made[name][own].mean()), 4) for own in halves] for name in SHOWN}
    met = np.bincount((last.key * grid.NUM_ACTIONS + last.action).ravel())
    return {"parts": found, "pairs": int(grid.ALLOWED.sum()), "met_twice": int((met > 1).sum())}


def sheet(told: dict[str, Any]) -> Sheet:
    """A part a row."""
    rows = [(label, *(f"{x:.3f}" for x in told["parts"][name])) for name, label in SHOWN.items()]
    return Sheet("parts", "PRIME's parts", ("mean of", *HALVES), tuple(rows))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--out", type=Path, help="a JSON file for all of it")
    args = parser.parse_args()
    told = {"command": shlex.join(["python", "benchmarks/critic_parts.py", *sys.argv[1:]])}
    told |= provenance() | parts(args.steps, args.seed)
    print(sheet(told).body())
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
