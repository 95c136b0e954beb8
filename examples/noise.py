"""Noise that no agent can learn: RND is held by it, PRIME leaves it.

python examples/noise.py [--steps 40000] [--seeds 4] [--curve FILE.csv]

In TwoWings one half of the room flickers while the agent is in it. RND pays for what its network
cannot predict, which is the flicker; PRIME takes off what stays as hard however often it was seen.
"""

import argparse
import csv
from pathlib import Path

import numpy as np

import primax


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=40_000)
    parser.add_argument("--seeds", default="4", help="4 (0 to 3), 0-3 or 3,7")
    parser.add_argument("--curve", type=Path, help="a CSV file for the curve")
    args = parser.parse_args()

    rows = []
    for method in ("prime", "rnd"):
        name, settings = primax.METHODS[method].label, {"steps": args.steps}
        result = primax.train(method, "two_wings", args.seeds, "quick", settings)
        told = result.episodes  # the score: the share of steps in the silent half
        is_late = told["step"] > 0.8 * args.steps
        for seed in result.seeds:
            share = told["score"][(told["seed"] == seed) & is_late].mean()
            print(f"{name}, seed {seed}: {share:.0%} of the last fifth in the silent half")
        print(f"{name}: {told['score'][is_late].mean():.0%}; a random walker has 50%")
        columns = (np.asarray(told[column]).tolist() for column in ("seed", "step", "score"))
        rows += [(name, *row) for row in zip(*columns, strict=True)]
    if args.curve:
        with args.curve.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("curve", "seed", "step", "share"), *rows])


if __name__ == "__main__":
    main()
