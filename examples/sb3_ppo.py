"""Stable-Baselines3's PPO in a corridor of 28 steps, four at a time, with RND beside the task.

pip install 'primax-rl[sb3]'
python examples/sb3_ppo.py [--bonus rnd] [--steps 30000] [--seed 0] [--out agents]
"""

import argparse
from pathlib import Path

import gymnasium
from gymnasium.wrappers import FlattenObservation
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

import primax.gym  # noqa: F401 (registers the worlds)
from primax.sb3 import BonusCallback, save_bonus


def corridor() -> gymnasium.Env:
    """Maze with one way, as vectors of zeros and ones."""
    return FlattenObservation(gymnasium.make("primax/Maze-v0", layout="long"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bonus", default="rnd", help="prime, rnd, count, ... or none")
    parser.add_argument("--steps", type=int, default=30_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="a folder for the agent and its bonus")
    args = parser.parse_args()

    env = make_vec_env(corridor, n_envs=4, seed=args.seed)
    model = PPO("MlpPolicy", env, n_steps=128, seed=args.seed, device="cpu")
    callback = None
    if args.bonus != "none":
        callback = BonusCallback(args.bonus, weight=0.1, schedule="linear", seed=args.seed)
    model.learn(args.steps, callback=callback)

    taken = [sum(one > 0 for one in rewards) for rewards in env.env_method("get_episode_rewards")]
    episodes = [len(rewards) for rewards in env.env_method("get_episode_rewards")]
    print(f"{sum(episodes)} episodes; the flag was taken in {sum(taken)}")
    if args.out:
        model.save(args.out / "agent")
        if callback is not None:
            save_bonus(callback, args.out / "bonus.npz")


if __name__ == "__main__":
    main()
