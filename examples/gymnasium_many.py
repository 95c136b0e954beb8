"""Eight Gymnasium environments at once, an agent that is a table, and a bonus that it learns from.

python examples/gymnasium_many.py [--bonus prime] [--steps 16000] [--seeds 0-2] [--curve FILE.csv]

MountainCar's task is not used here. Counted is how many of 400 places, parts of position and speed,
the eight cars have been at.
"""

import argparse
import csv
from pathlib import Path

import gymnasium
import numpy as np

import primax
from primax.config.seeds import parse_seeds

ENVS, SIDE, GAMMA = 8, 20, 0.5
LOW, HIGH = np.array([-1.2, -0.07], np.float32), np.array([0.6, 0.07], np.float32)


def place(obs: np.ndarray) -> np.ndarray:
    """Position and speed in 20 parts each: the table's row, and the bonus's key of a state."""
    part = ((obs - LOW) / (HIGH - LOW) * SIDE).astype(int).clip(0, SIDE - 1)
    return part[:, 0] * SIDE + part[:, 1]


def train(method: str, steps: int, seed: int) -> list[float]:
    """The share of places met, after every step of all cars."""
    envs = gymnasium.make_vec("MountainCar-v0", num_envs=ENVS, vectorization_mode="sync")
    space = primax.Space(obs=(2,), num_actions=3, num_keys=SIDE**2)
    rng = np.random.default_rng(seed)
    bonus = primax.bonus(method, space, ENVS, GAMMA, "given")
    state, values = bonus.init(seed), np.zeros((SIDE**2, 3))
    obs, _ = envs.reset(seed=seed)
    is_met, only_resets, found = np.zeros(SIDE**2, bool), np.zeros(ENVS, bool), []
    for _ in range(steps // ENVS):
        at = place(obs)
        best = (values[at] + 1e-6 * rng.random((ENVS, 3))).argmax(axis=1)
        action = np.where(rng.random(ENVS) < 0.05, rng.integers(3, size=ENVS), best)
        next_obs, _, ended, cut, _ = envs.step(action)
        later = place(next_obs)
        valid = ~only_resets  # the step after an end resets, and that is all
        step = primax.Transition(obs, action, next_obs, ended, cut, at, later, valid=valid)
        state, worth = bonus.step(state, step)
        error = worth + GAMMA * ~ended * values[later].max(axis=1) - values[at, action]
        np.add.at(values, (at[valid], action[valid]), 0.5 * error[valid])
        obs, only_resets = next_obs, ended | cut
        is_met[later] = True
        found.append(float(is_met.mean()))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bonus", default="prime", help="prime, count, rnd, ... or none")
    parser.add_argument("--steps", type=int, default=16_000)
    parser.add_argument("--seeds", type=parse_seeds, default="0-2", help="3 (0 to 2), 0-4 or 3,7")
    parser.add_argument("--curve", type=Path, help="a CSV file for the curve")
    args = parser.parse_args()

    rows = []
    for seed in args.seeds:
        found = train(args.bonus, args.steps, seed)
        print(f"{args.bonus}, seed {seed}: {found[-1] * SIDE**2:.0f} of {SIDE**2} places")
        rows += [(args.bonus, seed, ENVS * (i + 1), share) for i, share in enumerate(found)][9::10]
    if args.curve:
        with args.curve.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("curve", "seed", "step", "share"), *rows])


if __name__ == "__main__":
    main()
