"""Stable-Baselines3's PPO in three rooms of MiniGrid, with PRIME beside the task or without it.

pip install 'primax-rl[sb3,examples]'
python examples/sb3_minigrid.py [--without] [--steps 40000] [--seeds 0-2] [--curve FILE.csv]

Two closed doors are between the agent and the goal. A random walker seldom comes through both.
"""

import argparse
import csv
from functools import cache
from pathlib import Path

import gymnasium
import numpy as np
from gymnasium.wrappers import FlattenObservation

import primax
from primax.config.seeds import parse_seeds

try:
    from minigrid.wrappers import ImgObsWrapper, ReseedWrapper
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env
except ImportError as error:
    raise SystemExit(f"{error}: pip install 'primax-rl[sb3,examples]'") from None
from primax.sb3 import BonusCallback

ENVS, LAYOUT = 16, 4


def rooms() -> gymnasium.Env:
    """The same three rooms in every episode, as the agent sees them from where it is: 147 numbers."""
    sizes = {"minNumRooms": 3, "maxNumRooms": 3, "maxRoomSize": 4}
    env = gymnasium.make("MiniGrid-MultiRoom-N4-S5-v1", **sizes)
    return FlattenObservation(ImgObsWrapper(ReseedWrapper(env, seeds=(LAYOUT,))))


@cache
def prime(space: primax.Space, envs: int) -> object:
    """Made once for all seeds, since its programs take long to compile."""
    settings = {"recent": 2_000, "update_every": 4 * envs}
    return primax.bonus("prime", space, envs, gamma=0.99, keys="simhash", settings=settings)


def train(seed: int, steps: int, is_without: bool) -> tuple[np.ndarray, np.ndarray]:
    """At which steps episodes ended, and whether at the goal."""
    env = make_vec_env(rooms, n_envs=ENVS, seed=seed)
    told = {"learning_rate": 1e-3, "n_steps": 64, "batch_size": 256, "n_epochs": 4}
    model = PPO("MlpPolicy", env, ent_coef=0.01, seed=seed, device="cpu", **told)
    beside = BonusCallback(prime, weight=0.1, schedule="linear", seed=seed)
    model.learn(steps, callback=None if is_without else beside)
    lengths, rewards = (env.env_method(f"get_episode_{name}") for name in ("lengths", "rewards"))
    ends = np.concatenate([ENVS * np.cumsum(one) for one in lengths])
    order = ends.argsort(kind="stable")
    return ends[order], np.concatenate(rewards)[order] > 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--without", action="store_true", help="the task alone")
    parser.add_argument("--steps", type=int, default=40_000)
    parser.add_argument("--seeds", type=parse_seeds, default="0-2", help="3 (0 to 2), 0-4 or 3,7")
    parser.add_argument("--curve", type=Path, help="a CSV file for the curve")
    args = parser.parse_args()

    name, rows = "PPO" if args.without else "PPO with PRIME", []
    for seed in args.seeds:
        ends, reached = train(seed, args.steps, args.without)
        first = f"first at step {ends[reached.argmax()]}" if reached.any() else "never"
        print(f"{name}, seed {seed}: {len(ends)} episodes, {reached.sum()} at the goal, {first}")
        rows += [(name, seed, end, int(at)) for end, at in zip(ends, reached, strict=True)]
    if args.curve:
        with args.curve.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("curve", "seed", "step", "share"), *rows])


if __name__ == "__main__":
    main()
