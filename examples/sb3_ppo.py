"""Stable-Baselines3's PPO in a corridor of 28 steps, four at a time, with RND beside the task.

pip install 'primax-rl[sb3]'
python examples/sb3_ppo.py [--bonus rnd] [--steps 30000] [--seeds 0-2] [--curve FILE.csv] [--out agents]
"""

import argparse
import csv
from pathlib import Path

import gymnasium
import numpy as np
from gymnasium.wrappers import FlattenObservation
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

import primax.gym  # noqa: F401 (registers the worlds)
from primax.config.seeds import parse_seeds
from primax.sb3 import BonusCallback, save_bonus

ENVS = 4


def corridor() -> gymnasium.Env:
    """Maze with one way, as vectors of zeros and ones."""
    return FlattenObservation(gymnasium.make("primax/Maze-v0", layout="long"))


def train(bonus: str, seed: int, steps: int, out: Path | None) -> tuple[np.ndarray, np.ndarray]:
    """At which steps episodes ended, and whether the flag was taken."""
    env = make_vec_env(corridor, n_envs=ENVS, seed=seed)
    model = PPO("MlpPolicy", env, n_steps=128, seed=seed, device="cpu")
    callback = None
    if bonus != "none":
        callback = BonusCallback(bonus, weight=0.1, schedule="linear", seed=seed)
    model.learn(steps, callback=callback)
    if out:
        model.save(out / f"agent{seed}")
        if callback is not None:
            save_bonus(callback, out / f"bonus{seed}.npz")
    lengths, rewards = (env.env_method(f"get_episode_{name}") for name in ("lengths", "rewards"))
    ends = np.concatenate([ENVS * np.cumsum(one) for one in lengths])
    order = ends.argsort(kind="stable")
    return ends[order], np.concatenate(rewards)[order] > 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bonus", default="rnd", help="prime, rnd, count, ... or none")
    parser.add_argument("--steps", type=int, default=30_000)
    parser.add_argument("--seeds", type=parse_seeds, default="0-2", help="3 (0 to 2), 0-4 or 3,7")
    parser.add_argument("--curve", type=Path, help="a CSV file for the curve")
    parser.add_argument("--out", type=Path, help="a folder for the agents and their bonuses")
    args = parser.parse_args()

    name, rows = "PPO" if args.bonus == "none" else f"PPO with {args.bonus}", []
    for seed in args.seeds:
        ends, taken = train(args.bonus, seed, args.steps, args.out)
        first = f"first at step {ends[taken.argmax()]}" if taken.any() else "never"
        print(f"{name}, seed {seed}: {len(ends)} episodes, the flag in {taken.sum()}, {first}")
        rows += [(name, seed, end, int(at)) for end, at in zip(ends, taken, strict=True)]
    if args.curve:
        with args.curve.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("curve", "seed", "step", "share"), *rows])


if __name__ == "__main__":
    main()
