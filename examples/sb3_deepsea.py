"""Stable-Baselines3's DQN in gymnax's DeepSea through Gymnasium, with PRIME beside the task or without it.

pip install 'primax-rl[sb3,suites]'
python examples/sb3_deepsea.py [--without] [--steps 10000] [--seeds 0-2] [--curve FILE.csv]

Only the last of twelve right steps in a row pays, and every other one costs a little.
"""

import argparse
import csv
from functools import cache
from pathlib import Path

import numpy as np
from gymnasium.wrappers import FlattenObservation

import primax
from primax.config.seeds import parse_seeds

try:
    import gymnax
    from gymnax.wrappers.gym import GymnaxToGymWrapper
    from stable_baselines3 import DQN
    from stable_baselines3.common.monitor import Monitor
except ImportError as error:
    raise SystemExit(f"{error}: pip install 'primax-rl[sb3,suites]'") from None
from primax.sb3 import BonusReplayBuffer

SIZE = 12


class DeepSea(GymnaxToGymWrapper):
    """In an episode's last step gymnax's wrapper shows the next one's first observation; this does not."""

    def step(self, action: int) -> tuple:
        _, reward, terminated, _, info = super().step(action)
        return info["final_observation"], float(reward), bool(terminated), False, {}


@cache
def prime(space: primax.Space, envs: int) -> object:
    """Made once for all seeds; windows are shorter than the default."""
    settings = {"window": 500, "recent": 1_000}
    return primax.bonus("prime", space, envs, gamma=0.99, keys="simhash", settings=settings)


def train(seed: int, steps: int, is_without: bool) -> tuple[np.ndarray, np.ndarray]:
    """At which steps episodes ended, and whether at the goal."""
    env = Monitor(FlattenObservation(DeepSea(*gymnax.make("DeepSea-bsuite", size=SIZE))))
    told = {"learning_rate": 1e-3, "buffer_size": steps, "learning_starts": 1_000, "batch_size": 64}
    told |= {"gradient_steps": 4, "target_update_interval": 20, "seed": seed, "device": "cpu"}
    bonus = {"bonus": prime, "weight": 0.1, "schedule": "linear", "steps": steps, "seed": seed}
    beside = {"replay_buffer_class": BonusReplayBuffer, "replay_buffer_kwargs": bonus}
    DQN("MlpPolicy", env, **told, **({} if is_without else beside)).learn(steps)
    return np.cumsum(env.get_episode_lengths()), np.array(env.get_episode_rewards()) > 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--without", action="store_true", help="the task alone")
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--seeds", type=parse_seeds, default="0-2", help="3 (0 to 2), 0-4 or 3,7")
    parser.add_argument("--curve", type=Path, help="a CSV file for the curve")
    args = parser.parse_args()

    name, rows = "DQN" if args.without else "DQN with PRIME", []
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
