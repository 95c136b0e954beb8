"""What a learnt novelty tells apart: how much more it pays for what a random walk in Maze never saw.

    python benchmarks/contrast.py rnd --set reward.predictor_layers=0

The reward learns from a random walk's rows and from nothing else, without critics. Then the raw
rewards of moves in cells far from the start, and of moves after the flag was taken, are divided by
the mean raw reward of the walk. Near one, the reward does not know the new from the known.
"""

import argparse
import json

import jax
import jax.numpy as jnp
import numpy as np

from primax.config.fields import parse_pairs
from primax.methods import build
from primax.presets import configure
from primax.rewards.transition import Batch, Step
from primax.runs.provenance import provenance
from primax.worlds.grid import steps_to
from primax.worlds.maze import Maze, MazeState

METHODS = ("rnd", "disagreement", "icm")
FAR = 14
"""Steps from the start."""


def rows(world: Maze, cell: np.ndarray, flag: np.ndarray, action: np.ndarray) -> Batch:
    """The transitions of these actions in these cells."""
    zero = jnp.zeros(len(cell), jnp.int32)
    state = MazeState(jnp.asarray(cell, jnp.int32), jnp.asarray(flag), zero > 0, zero)
    action = jnp.asarray(action, jnp.int32)
    after = jax.vmap(lambda state, a: world.step(state, a, world.noise(jax.random.key(0), 1)))(
        state, action
    )
    obs, next_obs = (jax.vmap(world.observe)(x) for x in (state, after))
    number, key = jnp.ones(len(cell)), state.agent * world.moves.shape[1] + action
    return Batch(
        obs, action, number * 0, next_obs, zero > 0, zero > 0, number, key, after.agent, (), ()
    )


def walk(world: Maze, steps: int, rng: np.random.Generator) -> Batch:
    """A uniform random walk, episode after episode."""
    moves, cells, flags, actions = np.asarray(world.moves), [], [], rng.integers(0, 5, steps)
    for t, action in enumerate(actions):
        if t % world.horizon == 0:
            cell, flag = world.start, True
        cells.append(cell)
        flags.append(flag)
        cell = moves[cell, action]
        flag = flag and cell != world.goal
    return rows(world, np.array(cells), np.array(flags), actions)


def contrast(config, seed: int, steps: int, updates: int) -> dict[str, float]:
    """Raw rewards where the walk was, far from it, and after the flag."""
    world, reward = build(config)
    rng, key = np.random.default_rng(seed), jax.random.key(seed)
    lived = walk(world, steps, rng)

    def observe(state, row):
        step = Step(row.obs, row.action, row.next_obs, row.key, row.task)
        return reward.observe(state, step, key)[0], None

    def learn(state, draw):
        index, key = draw
        return reward.learn(state, jax.tree.map(lambda x: x[index], lived), key)

    @jax.jit
    def trained(index):
        state, _ = jax.lax.scan(observe, reward.init(key), lived)
        state, _ = jax.lax.scan(learn, state, (index, jax.random.split(key, updates)))
        return state

    state = trained(jnp.asarray(rng.integers(0, steps, (updates, config.critics.batch))))
    away = steps_to(np.asarray(world.moves), np.array([world.start]))[0]
    floor = np.flatnonzero(~np.asarray(world.walls).ravel())
    cell, action = (x.ravel() for x in np.meshgrid(floor, np.arange(5), indexing="ij"))
    score = jax.jit(lambda rows: reward.score(state, rows))
    known = float(jnp.mean(score(lived)))
    far = score(rows(world, cell, np.ones(cell.size, bool), action))[away[cell] >= FAR]
    taken = score(rows(world, cell, np.zeros(cell.size, bool), action))
    return {"known": known, "far": float(far.mean()) / known, "taken": float(taken.mean()) / known}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("method", choices=METHODS)
    parser.add_argument("--set", nargs="+", default=[], metavar="FIELD=VALUE")
    parser.add_argument("--preset", default="paper")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=8_000, help="of the walk")
    parser.add_argument("--updates", type=int, default=2_000)
    args = parser.parse_args()
    raw = {"reward.normaliser": "none"}
    raw |= {"reward.reward_clip": "1e9"} if args.method != "disagreement" else {}
    config = configure(args.method, "maze", args.preset, raw | parse_pairs(args.set))
    found = [contrast(config, seed, args.steps, args.updates) for seed in range(args.seeds)]
    median = {name: float(f"{np.median([x[name] for x in found]):.3g}") for name in found[0]}
    about = {"method": args.method, "set": args.set, "preset": args.preset, "seeds": args.seeds}
    print(
        json.dumps(about | {"steps": args.steps, "updates": args.updates} | median | provenance())
    )


if __name__ == "__main__":
    main()
