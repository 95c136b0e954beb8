"""The pictures of docs/examples.md, from the curves that examples write.

    python examples/noise.py --curve results/examples/noise.csv
    python benchmarks/examples_page.py results/examples --pictures docs/pictures

Curves of one example are those of all files whose name begins with its name. A line is the mean over
seeds, shaded is one standard deviation, and each seed's curve is the share in each of twenty parts of its steps.
Of examples/noise.py it draws the packed runs of a folder (`--runs results/keys/quick`), which are what it
trains, at 15 seeds. Of examples/sb3_minigrid.py it draws what `benchmarks/sb3.py rooms` measured with it: in how many seeds the
goal was found by then.
"""

import argparse
import bz2
import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np

import primax
from primax.output import figure

TITLES = {
    "gymnasium_many": "places met, MountainCar",
    "noise": "steps in the silent half, TwoWings",
    "own_reward": "episodes at the flag, Maze",
    "own_world": "episodes at the goal, Cliff",
    "ppo_jax": "episodes at the goal, DeepSea",
    "sb3_minigrid": "seeds that found the goal, MiniGrid",
}
"""What an example's share is of."""
POINTS = 20
"""Parts of a run."""
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#555555")
"""The first is PRIME's."""
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


def read_rooms(paths: list[Path]) -> Curves:
    """Of each seed, whether it had found the goal."""
    found: Curves = {}
    for path in paths:
        for row in json.loads(path.read_text(encoding="utf-8"))["rows"]:
            first = row["first_step"] or np.inf
            told = [(step, float(step >= first)) for step in range(2_000, 40_001, 2_000)]
            name = "PPO" if row["bonus"] == "none" else "PPO with PRIME"
            found.setdefault(name, {})[str(row["seed"])] = told
    return found


def read_runs(folder: Path) -> Curves:
    """PRIME's and RND's episodes in TwoWings."""
    found: Curves = {}
    for method in ("prime", "rnd"):
        with bz2.open(folder / f"{method}_two_wings" / "episodes.csv.bz2", "rt") as file:
            seeds = found.setdefault(primax.METHODS[method].label, {})
            for row in csv.DictReader(file):
                seeds.setdefault(row["seed"], []).append((int(row["step"]), float(row["score"])))
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
    in_order = sorted(curves.items(), key=lambda curve: "prime" not in curve[0].lower())
    for (label, seeds), colour in zip(in_order, COLOURS, strict=False):
        every = np.stack([shares(rows, edges) for rows in seeds.values()])
        mean, std = every.mean(axis=0), every.std(axis=0)
        at = edges[1:] / 1_000
        axes.plot(at, mean, color=colour, lw=1.5, label=f"{label}, {len(seeds)} seeds")
        low, high = np.clip((mean - std, mean + std), 0, 1)
        if name != "sb3_minigrid":  # yes or no has no band
            axes.fill_between(at, low, high, color=colour, alpha=0.15, lw=0)
    axes.set(xlabel="thousand steps", ylabel="share", title=TITLES[name], ylim=(-0.02, 1.02))
    axes.legend(fontsize=8)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where the curves are")
    parser.add_argument("--rooms", type=Path, nargs="*", default=[], help="files of `sb3.py rooms`")
    parser.add_argument("--runs", type=Path, help="a folder of packed runs in TwoWings")
    parser.add_argument("--pictures", type=Path, required=True, help="a folder for the pictures")
    args = parser.parse_args()
    for name in TITLES:
        known = re.compile(rf"{name}(_count|_without)?")
        paths = sorted(path for path in args.folder.glob("*.csv") if known.fullmatch(path.stem))
        if name == "sb3_minigrid" and args.rooms:
            curves = read_rooms(args.rooms)
        elif name == "noise" and args.runs:
            curves = read_runs(args.runs)
        elif paths:
            curves = read(paths)
        else:
            print(f"{name}: no curve in {args.folder}")
            continue
        path = args.pictures / f"example_{name}.svg"
        figure.make(path, (4.8, 2.6), lambda into, n=name, c=curves: draw(n, c, into))
        print(f"{path}: {', '.join(curves)}")


if __name__ == "__main__":
    main()
