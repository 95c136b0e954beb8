"""Stable-Baselines3's DQN in four rooms of MiniGrid, with PRIME beside the task or without it.

pip install 'primax-rl[sb3]' minigrid
python examples/sb3_minigrid.py [--without] [--steps 15000] [--seeds 0] [--curve FILE.csv]

Three closed doors are between the agent and the goal, and a random walker does not come through them.
"""

import argparse
import csv
from pathlib import Path

import gymnasium
import numpy as np
from gymnasium.wrappers import FlattenObservation
from minigrid.wrappers import ImgObsWrapper, ReseedWrapper
from stable_baselines3 import DQN
from stable_baselines3.common.monitor import Monitor

from primax.config.seeds import parse_seeds
from primax.sb3 import BonusReplayBuffer


def train(seed: int, steps: int, is_without: bool) -> tuple[np.ndarray, np.ndarray]:
    """At which steps episodes ended, and whether at the goal."""
    rooms = gymnasium.make("MiniGrid-MultiRoom-N4-S5-v1")
    rooms = ReseedWrapper(rooms, seeds=(0,))  # the same rooms in every episode
    env = Monitor(FlattenObservation(ImgObsWrapper(rooms)))  # what the agent sees: 147 numbers
    bonus = {
        "bonus": "prime",
        "weight": 0.1,
        "schedule": "linear",  # to zero, by the last step
        "steps": steps,
        "settings": {"window": 500, "recent": 1_000},  # shorter than the default
        "seed": seed,
    }
    beside = {"replay_buffer_class": BonusReplayBuffer, "replay_buffer_kwargs": bonus}
    model = DQN(
        "MlpPolicy",
        env,
        learning_rate=1e-3,
        buffer_size=steps,
        learning_starts=1_000,
        batch_size=64,
        gradient_steps=4,
        target_update_interval=20,
        seed=seed,
        device="cpu",
        **({} if is_without else beside),
    )
    model.learn(steps)
    return np.cumsum(env.get_episode_lengths()), np.array(env.get_episode_rewards()) > 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--without", action="store_true", help="the task alone")
    parser.add_argument("--steps", type=int, default=15_000)
    parser.add_argument("--seeds", type=parse_seeds, default="1", help="3, 0-4 or 3,7")
    parser.add_argument("--curve", type=Path, help="a CSV file for the curve")
    args = parser.parse_args()

    name, rows = "DQN" if args.without else "DQN with PRIME", []
    for seed in args.seeds:
        ends, reached = train(seed, args.steps, args.without)
        first = f"first at step {ends[reached.argmax()]}" if reached.any() else "never"
        print(f"{name}, seed {seed}: {len(ends)} episodes, {reached.sum()} at the goal, {first}")
        rows += [(name, seed, step, int(at)) for step, at in zip(ends, reached, strict=True)]
    if args.curve:
        with args.curve.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("curve", "seed", "step", "share"), *rows])


if __name__ == "__main__":
    main()
