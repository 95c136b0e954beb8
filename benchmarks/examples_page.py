"""The pictures of docs/examples.md, from the curves that examples write.

    python examples/noise.py --curve results/examples/noise.csv
    python benchmarks/examples_page.py results/examples --pictures docs/pictures

Curves of one example are those of all files whose name begins with its name. A line is the mean over
seeds, shaded is one standard deviation, and each seed's curve is the share in each of twenty parts of its steps.
"""

import argparse
import csv
import re
from pathlib import Path
from typing import Any

import numpy as np

from primax.output import figure

TITLES = {
    "gymnasium_many": "episodes at the flag, MountainCar",
    "noise": "steps in the silent half, TwoWings",
    "own_reward": "episodes at the flag, Maze",
    "own_world": "episodes at the goal, Cliff",
    "ppo_jax": "episodes at the goal, DeepSea",
    "sb3_minigrid": "episodes at the goal, rooms of MiniGrid",
}
"""What an example's share is of."""
POINTS = 20
"""Parts of a run."""
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#555555")
Curves = dict[str, dict[str, list[tuple[int, float]]]]


def read(paths: list[Path]) -> Curves:
    """Steps and shares, by curve and seed."""
    found: Curves = {}
    for path in paths:
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                at = int(row["step"]), float(row["share"])
                found.setdefault(row["curve"], {}).setdefault(row["seed"], []).append(at)
    return found


def shares(rows: list[tuple[int, float]], edges: np.ndarray) -> np.ndarray:
    """The mean in every part of a seed's steps; a part in which no episode ended has the one before."""
    steps, share = np.array(rows, float).T
    place = np.clip(np.searchsorted(edges, steps) - 1, 0, len(edges) - 2)
    found = np.full(len(edges) - 1, np.nan)
    for i in range(len(found)):
        if np.any(place == i):
            found[i] = share[place == i].mean()
        elif i:
            found[i] = found[i - 1]
    return found


def draw(name: str, curves: Curves, into: Any) -> None:
    """One panel."""
    axes = into.subplots()
    most = max(step for seeds in curves.values() for rows in seeds.values() for step, _ in rows)
    edges = np.linspace(0, most, POINTS + 1)
    for (label, seeds), colour in zip(curves.items(), COLOURS, strict=False):
        every = np.stack([shares(rows, edges) for rows in seeds.values()])
        mean, std = every.mean(axis=0), every.std(axis=0)
        at = edges[1:] / 1_000
        axes.plot(at, mean, color=colour, lw=1.5, label=f"{label}, {len(seeds)} seeds")
        low, high = np.clip((mean - std, mean + std), 0, 1)
        axes.fill_between(at, low, high, color=colour, alpha=0.15, lw=0)
    axes.set(xlabel="thousand steps", ylabel="share", title=TITLES[name], ylim=(-0.02, 1.02))
    axes.legend(fontsize=8)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where the curves are")
    parser.add_argument("--pictures", type=Path, required=True, help="a folder for the pictures")
    args = parser.parse_args()
    for name in TITLES:
        paths = sorted(
            p for p in args.folder.glob("*.csv") if re.match(rf"{name}(_without)?$", p.stem)
        )
        if not paths:
            print(f"{name}: no curve in {args.folder}")
            continue
        curves = read(paths)
        path = args.pictures / f"example_{name}.svg"
        figure.make(path, (4.8, 2.6), lambda into, n=name, c=curves: draw(n, c, into))
        print(f"{path}: {', '.join(curves)}")


if __name__ == "__main__":
    main()
