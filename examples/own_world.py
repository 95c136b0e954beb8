"""A world of your own: an object with reset and step, trained in, and shown.

python examples/own_world.py [--steps 30000] [--seeds 3] [--curve FILE.csv]
primax train task+prime cliff --plugin own_world --preset quick --out DIR    (in the folder examples)
primax watch DIR --plugin own_world

The way to the goal goes along the edge of a cliff, and a step over it ends the episode.
"""

import argparse
import csv
from pathlib import Path

import jax.numpy as jnp
import numpy as np

import primax

ROWS, COLS = 3, 9


class Cliff:
    """Three rows; the lowest is the cliff, with the start at its left end and the goal at its right."""

    num_actions, horizon = 4, 60

    def reset(self, key):
        return self.seen(2, 0), (2, 0)  # what is seen, and the state

    def step(self, key, state, action):
        row = jnp.clip(state[0] + jnp.array([-1, 1, 0, 0])[action], 0, ROWS - 1)
        col = jnp.clip(state[1] + jnp.array([0, 0, -1, 1])[action], 0, COLS - 1)
        is_goal = (row == 2) & (col == COLS - 1)
        is_over = (row == 2) & (col > 0)  # the goal, or the cliff
        return self.seen(row, col), (row, col), is_goal * 1.0, is_over, False

    def seen(self, row, col):
        """Planes of yes and no: the agent, the cliff, the goal."""
        at = (jnp.arange(ROWS)[:, None] == row) & (jnp.arange(COLS) == col)
        low = (jnp.arange(ROWS)[:, None] == 2) & (jnp.arange(COLS) > 0)
        goal = low & (jnp.arange(COLS) == COLS - 1)
        return jnp.stack([at, low & ~goal, goal])


primax.register_world("cliff", Cliff())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=30_000)
    parser.add_argument("--seeds", default="3", help="3 (0 to 2), 0-4 or 3,7")
    parser.add_argument("--curve", type=Path, help="a CSV file for the curve")
    args = parser.parse_args()

    rows = []
    for method in ("task+prime", "task"):
        result = primax.train(method, Cliff(), args.seeds, "quick", {"steps": args.steps})
        told = result.episodes
        for seed in result.seeds:
            score = told["score"][told["seed"] == seed]
            first = f"first in episode {score.argmax() + 1}" if score.any() else "never"
            print(
                f"{method}, seed {seed}: goal {first}, in {score[-50:].mean():.0%} of the last 50"
            )
        columns = (np.asarray(told[column]).tolist() for column in ("seed", "step", "score"))
        rows += [(method, *row) for row in zip(*columns, strict=True)]
    if args.curve:
        with args.curve.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("curve", "seed", "step", "share"), *rows])


if __name__ == "__main__":
    main()
