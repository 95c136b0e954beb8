"""Stable-Baselines3's DQN in a corridor of 28 steps, with PRIME beside the task or without it.

pip install 'primax-rl[sb3]'
python examples/sb3_dqn.py [--without] [--steps 20000] [--seed 0] [--curve FILE.csv] [--out agents]
"""

import argparse
import csv
from pathlib import Path

import gymnasium
import numpy as np
from gymnasium.wrappers import FlattenObservation
from stable_baselines3 import DQN
from stable_baselines3.common.monitor import Monitor

import primax.gym  # noqa: F401 (registers the worlds)
from primax.sb3 import BonusReplayBuffer, save_bonus


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--without", action="store_true", help="the task alone")
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--curve", type=Path, help="a CSV file for the curve")
    parser.add_argument("--out", type=Path, help="a folder for the agent and its bonus")
    args = parser.parse_args()

    maze = gymnasium.make("primax/Maze-v0", layout="long")
    env = Monitor(FlattenObservation(maze))
    beside = {}
    if not args.without:
        beside = {
            "replay_buffer_class": BonusReplayBuffer,
            "replay_buffer_kwargs": {
                "bonus": "prime",
                "weight": 0.1,
                "schedule": "linear",  # to zero, by the last step
                "steps": args.steps,
                "settings": {"window": 500, "recent": 1_000},  # shorter than the default
                "seed": args.seed,
            },
        }
    model = DQN(
        "MlpPolicy",
        env,
        learning_rate=1e-3,
        buffer_size=args.steps,
        learning_starts=1_000,
        batch_size=64,
        gradient_steps=4,
        target_update_interval=20,
        seed=args.seed,
        device="cpu",
        **beside,
    )
    model.learn(args.steps)

    taken = np.array(env.get_episode_rewards()) > 0
    first = f"first in episode {np.argmax(taken) + 1}" if taken.any() else "never"
    print(f"{len(taken)} episodes; the flag was taken in {taken.sum()}, {first}")
    if args.curve:
        name = "DQN" if args.without else "DQN with PRIME"
        ends = np.cumsum(env.get_episode_lengths())
        rows = [(name, args.seed, end, int(at)) for end, at in zip(ends, taken, strict=True)]
        with args.curve.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("curve", "seed", "step", "share"), *rows])
    if args.out:
        model.save(args.out / "agent")
        if not args.without:
            save_bonus(model, args.out / "bonus.npz")


if __name__ == "__main__":
    main()
