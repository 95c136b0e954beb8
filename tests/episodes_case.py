"""Streams of several episodes, for the tests of rewards that remember the one under way."""

import itertools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from probes import ProbeConfig
from reward_case import KEY, batch, observations, step

from primax import Space, Transition
from primax.agent import ring
from primax.agent.learner import Learner
from primax.config.schema import Config, CriticsConfig, ExploreConfig, NetConfig
from primax.methods import METHODS, spec

PATHS = ([0, 1, 0, 2, 2, 3, 1], [3, 1, 1, 0, 3, 4, 1])
"""Two episodes over a few places: the first place of each is seen again in it."""


def places(num: int = 5) -> np.ndarray:
    return observations(np.random.default_rng(11), num)


def live(reward, state, path, seen):
    """One episode along a path: the state, and what is kept with each observation."""
    begin, observe = jax.jit(reward.begin), jax.jit(reward.observe)
    state, memo = begin(state, jnp.asarray(seen[path[0]]), KEY)
    memos = [memo]
    for a, b in itertools.pairwise(path):
        state, memo = observe(state, step(seen[a], 0, seen[b]), KEY)
        memos.append(memo)
    return state, np.array(memos)


def rows(paths, seen, memos):
    """The steps of the episodes as a minibatch."""
    before = np.concatenate([path[:-1] for path in paths])
    after = np.concatenate([path[1:] for path in paths])
    made = batch(3, len(before))
    kept = jnp.asarray(np.concatenate([m[1:] for m in memos]))
    return replace(
        made, obs=jnp.asarray(seen[before]), next_obs=jnp.asarray(seen[after]), next_memo=kept
    )


def many(rng: np.random.Generator, time: int, envs: int) -> tuple[Transition, np.ndarray]:
    """Environments over four observations, with episodes that end or are cut at different times."""
    seen = np.unpackbits(np.arange(1, 5, dtype=np.uint8)[:, None], axis=1, count=8)[:, 2:]
    seen = seen.reshape(4, 1, 2, 3)
    at, after = rng.integers(0, 4, (2, time, envs))
    ended = rng.random((time, envs)) < 0.25
    for t in range(1, time):
        at[t] = np.where(ended[t - 1], at[t], after[t - 1])
    is_cut = rng.random((time, envs)) < 0.5
    action = rng.integers(0, 3, (time, envs))
    return Transition(seen[at], action, seen[after], ended & ~is_cut, ended & is_cut), after


PLANES = Space(obs=(1, 2, 3), num_actions=3, kind="planes")
SMALL = {
    "net.embedding": 4,
    "net.first_channels": 2,
    "net.second_channels": 2,
    "critics.batch": 4,
    "replay": 256,
    "recent": 16,
    "window": 6,
    "warmup": 3,
    "update_every": 0,
}


def probed(method: str, probe, options, num: int = 12):
    """A random walk in a probe world: the state after the warm-up, and its rows, oldest first."""
    config = Config(
        method=method,
        world=ProbeConfig(),
        reward=options,
        steps=2 * num,
        window=num,
        warmup=num,
        replay=2 * num,
        recent=num,
        net=NetConfig(first_channels=2, second_channels=2, embedding=4),
        critics=CriticsConfig(batch=4, sync_every=num),
        explore=ExploreConfig(start=1.0, end=1.0),
    )
    world = probe()
    learner = Learner(config, world, METHODS[method].reward(spec(world, config), options))

    @jax.jit
    def walk():
        state = learner.init(jax.random.key(0), jnp.int32(0))
        state, _ = learner.warm_up(state, jnp.int32(0))
        return state, ring.read(state.ring, jnp.int32(num), jnp.arange(num, 0, -1), (1, 1, 3))

    return learner.reward, *walk()
