"""A stream of transitions, some of which are coin flips and some of which can be learnt."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from reward_case import PLANES, batch

PLACES, CELLS = 6, 12
COINS, KNOWN, NEW = (0,), (1, 2), (3,)
"""Actions: one fills the second plane with coins, the others move by as much as their number."""


def stream(seed: int, actions: tuple[int, ...], num: int):
    """From one of six places to another; action 0 draws twelve coins besides."""
    rng = np.random.default_rng(seed)
    place, action = rng.integers(0, PLACES, num), rng.choice(actions, num)
    obs, after = np.zeros((2, num, 2, CELLS), np.uint8)
    obs[np.arange(num), 0, place] = 1
    after[np.arange(num), 0, (place + action) % PLACES] = 1
    after[:, 1] = rng.integers(0, 2, (num, CELLS)) * (action == 0)[:, None]
    obs, after = (jnp.asarray(x.reshape(num, *PLANES)) for x in (obs, after))
    action = jnp.asarray(action, jnp.int32)
    return replace(batch(0, num), obs=obs, action=action, next_obs=after, weight=jnp.ones(num))


@partial(jax.jit, static_argnums=0)
def _taught(reward, state, batches, keys):
    return jax.lax.scan(lambda state, x: (reward.learn(state, *x)[0], ()), state, (batches, keys))


def taught(reward, state, actions: tuple[int, ...], seed: int, times: int):
    """After so many minibatches of 32 rows, no two of them the same."""
    rows = stream(1_000 + seed, actions, 32 * times)
    batches = jax.tree.map(lambda x: x.reshape(times, 32, *x.shape[1:]), rows)
    return _taught(reward, state, batches, jax.random.split(jax.random.key(seed), times))[0]
