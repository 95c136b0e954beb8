"""Eight Gymnasium environments at once, an agent that is a table, and a bonus beside the task.

python examples/gymnasium_many.py [--bonus prime] [--steps 40000] [--seeds 3] [--curve FILE.csv]

A car must swing up a hill to a flag, which a random walker does not reach in 200 steps. Only the flag
pays here: the -1 for every step that MountainCar gives is by itself a reason to try what is new.
"""

import argparse
import csv
from pathlib import Path

import gymnasium
import numpy as np

import primax
from primax.config.seeds import parse_seeds

ENVS, SIDE, GAMMA = 8, 20, 0.99
LOW, HIGH = np.array([-1.2, -0.07], np.float32), np.array([0.6, 0.07], np.float32)


def place(obs: np.ndarray) -> np.ndarray:
    """Position and speed in 20 parts each: the table's row, and the bonus's key of a state."""
    part = ((obs - LOW) / (HIGH - LOW) * SIDE).astype(int).clip(0, SIDE - 1)
    return part[:, 0] * SIDE + part[:, 1]


def train(method: str, steps: int, seed: int) -> list[tuple[int, int]]:
    """The step at which each episode ended, and whether at the flag."""
    envs = gymnasium.make_vec("MountainCar-v0", num_envs=ENVS, vectorization_mode="sync")
    space, rng = (
        primax.Space(obs=(2,), num_actions=3, num_keys=SIDE**2),
        np.random.default_rng(seed),
    )
    bonus = primax.bonus(method, space, ENVS, GAMMA, "given")
    state, values = bonus.init(seed), np.zeros((SIDE**2, 3))
    obs, _ = envs.reset(seed=seed)
    only_resets, ended = np.zeros(ENVS, bool), []
    for tick in range(steps // ENVS):
        at = place(obs)
        greedy = (values[at] + 1e-6 * rng.random((ENVS, 3))).argmax(axis=1)
        action = np.where(rng.random(ENVS) < 0.05, rng.integers(3, size=ENVS), greedy)
        next_obs, _, terminated, truncated, _ = envs.step(action)
        later = place(next_obs)
        valid = ~only_resets  # in these vectors the step after an end resets, and does nothing else
        step = primax.Transition(
            obs, action, next_obs, terminated, truncated, at, later, valid=valid
        )
        state, worth = bonus.step(state, step)
        onward = GAMMA * ~terminated * values[later].max(axis=1)  # nothing after an end
        error = terminated + worth + onward - values[at, action]
        np.add.at(values, (at[valid], action[valid]), 0.2 * error[valid])
        obs, only_resets = next_obs, terminated | truncated
        ended += [((tick + 1) * ENVS, int(is_flag)) for is_flag in terminated[only_resets]]
    return ended


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bonus", default="prime", help="prime, count, rnd, ... or none")
    parser.add_argument("--steps", type=int, default=40_000)
    parser.add_argument("--seeds", type=parse_seeds, default="3", help="3 (0 to 2), 0-4 or 3,7")
    parser.add_argument("--curve", type=Path, help="a CSV file for the curve")
    args = parser.parse_args()

    rows = []
    for seed in args.seeds:
        ended = train(args.bonus, args.steps, seed)
        reached = [step for step, at in ended if at]
        first = f"first at step {reached[0]}" if reached else "never"
        print(
            f"{args.bonus}, seed {seed}: {len(ended)} episodes, {len(reached)} at the flag, {first}"
        )
        rows += [(args.bonus, seed, *one) for one in ended]
    if args.curve:
        with args.curve.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("curve", "seed", "step", "share"), *rows])


if __name__ == "__main__":
    main()
