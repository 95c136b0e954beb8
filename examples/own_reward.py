"""A reward of your own, beside PRIME: one class and one line, and every command knows it.

python examples/own_reward.py [--steps 20000] [--seeds 3] [--curve FILE.csv]
primax train rarest maze --plugin own_reward --preset quick --out DIR    (in the folder examples)

This one pays the rarer the place a step leads to: -log of its share of all visits.
"""

import argparse
import csv
from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import numpy as np

import primax
from primax.rewards.base import Reward, Spec


class Rarest(Reward):
    """Pays 1 for a place never met, and less the more of all steps led there."""

    spec: Spec
    config: object = eqx.field(static=True)

    def init(self, key):
        return jnp.zeros(self.spec.num_keys // self.spec.num_actions)

    def observe(self, state, step, key):
        """A step was taken: its place is counted. The key is the state's, times actions, plus one."""
        return state.at[step.key // self.spec.num_actions].add(1), ()

    def score(self, state, batch):
        """What transitions are worth now; nothing is learnt here."""
        total = jnp.maximum(state.sum(), 2)
        share = jnp.maximum(state[batch.next_key], 1) / total
        return -jnp.log(share) / jnp.log(total)


primax.METHODS["rarest"] = primax.Method("rarest", "Rarest", "places that few steps led to", Rarest)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--seeds", default="3", help="3 (0 to 2), 0-4 or 3,7")
    parser.add_argument("--curve", type=Path, help="a CSV file for the curve")
    args = parser.parse_args()

    rows = []
    for method in ("rarest", "prime"):
        name, settings = primax.METHODS[method].label, {"steps": args.steps}
        result = primax.train(method, "maze", args.seeds, "quick", settings)
        told = result.episodes
        for seed in result.seeds:
            mine = told["seed"] == seed
            print(f"{name}, seed {seed}: flag in {told['score'][mine].mean():.0%} of episodes")
        columns = (np.asarray(told[column]).tolist() for column in ("seed", "step", "score"))
        rows += [(name, *row) for row in zip(*columns, strict=True)]
    if args.curve:
        with args.curve.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("curve", "seed", "step", "share"), *rows])


if __name__ == "__main__":
    main()
