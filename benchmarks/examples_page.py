"""The pictures of docs/examples.md, from the curves that examples write.

    python examples/noise.py --curve results/examples/noise.csv
    python benchmarks/examples_page.py results/examples --pictures docs/pictures

Curves of one example are those of all files whose name begins with its name. A line is the mean over
seeds, shaded is one standard deviation, and each seed's curve is the share in each of twenty parts of its steps.
Of examples/noise.py it draws the packed runs of a folder (`--runs results/keys/quick`), which are what it
trains, at 15 seeds. Of the examples that benchmarks/sb3.py measures it draws that script's files
(`--bench results/bench`): in how many seeds the goal was found by then.
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
    "sb3_deepsea": "seeds that found the goal, DeepSea",
    "sb3_dqn": "seeds that found the flag, Maze",
    "sb3_minigrid": "seeds that found the goal, MiniGrid",
    "sb3_ppo": "episodes at the flag, Maze",
}
"""What an example's share is of."""
MEASURED = {
    "sb3_deepsea": ("DQN", "sb3_deepsea_*_cpu.json", 10_000),
    "sb3_dqn": ("DQN", "sb3_corridor_cpu.json", 20_000),
    "sb3_minigrid": ("PPO", "sb3_rooms_*_cpu.json", 40_000),
}
"""Of benchmarks/sb3.py: the agent, its files and the steps of a run."""
EPISODE = 100
"""Steps of every episode in Maze."""
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


def read_measured(folder: Path, agent: str, files: str, steps: int) -> Curves:
    """Of each seed, whether it had found the goal."""
    found: Curves = {}
    for path in sorted(folder.glob(files)):
        for row in json.loads(path.read_text(encoding="utf-8"))["rows"]:
            first = first_step(row)
            parts = range(steps // POINTS, steps + 1, steps // POINTS)
            name = agent if row["bonus"] == "none" else f"{agent} with PRIME"
            seeds = found.setdefault(name, {})
            seeds[str(row["seed"])] = [(step, float(step >= first)) for step in parts]
    return found


def first_step(row: dict[str, Any]) -> float:
    """By which step a seed had found the goal; `first` is an episode of Maze, counted from 0."""
    if "first" in row:
        return np.inf if row["first"] is None else (row["first"] + 1) * EPISODE
    return row["first_step"] or np.inf


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
    colours = COLOURS if "prime" in in_order[0][0].lower() else COLOURS[1:]
    for (label, seeds), colour in zip(in_order, colours, strict=False):
        every = np.stack([shares(rows, edges) for rows in seeds.values()])
        mean, std = every.mean(axis=0), every.std(axis=0)
        at = edges[1:] / 1_000
        axes.plot(at, mean, color=colour, lw=1.5, label=f"{label}, {len(seeds)} seeds")
        low, high = np.clip((mean - std, mean + std), 0, 1)
        if name not in MEASURED:  # yes or no has no band
            axes.fill_between(at, low, high, color=colour, alpha=0.15, lw=0)
    axes.set(xlabel="thousand steps", ylabel="share", title=TITLES[name], ylim=(-0.02, 1.02))
    axes.legend(fontsize=8)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where the curves are")
    parser.add_argument("--bench", type=Path, help="a folder of files of benchmarks/sb3.py")
    parser.add_argument("--runs", type=Path, help="a folder of packed runs in TwoWings")
    parser.add_argument("--pictures", type=Path, required=True, help="a folder for the pictures")
    args = parser.parse_args()
    for name in TITLES:
        known = re.compile(rf"{name}(_count|_without)?")
        paths = sorted(path for path in args.folder.glob("*.csv") if known.fullmatch(path.stem))
        curves = {}
        if name in MEASURED and args.bench:
            curves = read_measured(args.bench, *MEASURED[name])
        elif name == "noise" and args.runs:
            curves = read_runs(args.runs)
        elif paths:
            curves = read(paths)
        if not curves:
            print(f"{name}: no curve in {args.folder}")
            continue
        path = args.pictures / f"example_{name}.svg"
        figure.make(path, (4.8, 2.6), lambda into, n=name, c=curves: draw(n, c, into))
        print(f"{path}: {', '.join(curves)}")


if __name__ == "__main__":
    main()
