"""A small world, its snapshot, and states and windows of PRIME in it, for the tests beside this."""

import functools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import prime_oracle as oracle

from primax.config.schema import NetConfig
from primax.rewards.base import Spec
from primax.rewards.prime import Prime, PrimeConfig
from primax.rewards.prime.config import constants
from primax.rewards.prime.window import draw_valid
from primax.rewards.transition import Batch, Recent

ROWS, COLS, LEVELS, ACTIONS, GAMMA, NUM = 4, 5, 3, 4, 0.9, 60
NEVER, IDLE = np.arange(7), np.array([30, 31, 32])
"""Rows that were never written, and rows of a world that had ended."""
WORLD = oracle.World(COLS, LEVELS, ACTIONS)
SPEC = Spec(
    shape=(2, ROWS, COLS),
    num_actions=ACTIONS,
    num_keys=ROWS * COLS * LEVELS * ACTIONS,
    horizon=13,
    net=NetConfig(first_channels=3, second_channels=4, embedding=5),
    gamma=GAMMA,
    recent=NUM,
)
SMALL = {"heads": 3, "quantiles": 4, "probes": 3, "feature_dim": 5, "neighbours": 4}
SMALL |= {
    "calibration": 20,
    "a_min": 0.6,
    "a_max": 1.3,
    "b_max": 0.1,
    "gate_weight": 0.08,
    "reward_scale": 150.0,
    "reward_clip": 1.0,
}
KEY = jax.random.key(5)
BUCKET = ("bucket", "uniform")
KINDS = ("uniform", "gaussian", "rank")
NEAREST = [(moments, kind) for moments in ("nearest16", "knn16") for kind in KINDS]


@functools.cache
def program(moments: str, weights: str):
    """The reward, and one compiled step that refreshes it and asks for everything."""
    prime = Prime(SPEC, PrimeConfig(moments=moments, weights=weights, **SMALL))

    @jax.jit
    def refresh(state, recent, ask, key):
        state, said = prime.refresh(state, recent, key)
        return state, said, prime.parts(state, ask), prime.maps(state, recent)

    return prime, lambda state, recent: refresh(state, recent, queries(), KEY)


def planes(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.binomial(1, 0.35, (*shape, *SPEC.shape)).astype(np.uint8)


def batch(
    obs, action, key, next_obs, next_key, weight, terminated=False, task=0.0, truncated=False
) -> Batch:
    num, whole = len(action), functools.partial(jnp.asarray, dtype=jnp.int32)
    return Batch(
        jnp.asarray(obs),
        whole(action),
        jnp.asarray(np.broadcast_to(task, num), jnp.float32),
        jnp.asarray(next_obs),
        jnp.asarray(np.broadcast_to(terminated, num)),
        jnp.asarray(np.broadcast_to(truncated, num)),
        jnp.asarray(weight, jnp.float32),
        whole(key),
        whole(next_key),
        (),
        (),
    )


@functools.cache
def lived() -> oracle.Rows:
    """Walks over six states; episodes end after rows 15, 29 (early, with idle rows) and 45."""
    rng, at = np.random.default_rng(0), np.arange(NUM)
    states = rng.choice(ROWS * COLS * LEVELS, 6, replace=False)
    walk, seen = states[rng.integers(0, 6, NUM + 1)], planes(rng, NUM + 1)
    is_last = np.isin(at, [15, 29, 45, *IDLE])
    # What an episode ends with is not what the next begins with.
    next_obs = np.where(is_last[:, None, None, None], planes(rng, NUM), seen[1:])
    next_state = np.where(is_last, states[rng.integers(0, 6, NUM)], walk[1:])
    # Action 2 has fewer rows than neighbours are asked for, and nobody ever took action 3.
    action = np.where(np.isin(at, [12, 40, 51]), 2, rng.integers(0, 2, NUM))
    return oracle.Rows(
        obs=seen[:-1],
        action=action,
        key=walk[:-1] * ACTIONS + action,
        next_key=next_state,
        next_obs=next_obs,
        is_valid=~np.isin(at, NEVER),
        weight=np.where(np.isin(at, IDLE), 0.0, 1.0),
        is_last=is_last,
    )


@functools.cache
def agent() -> np.ndarray:
    """Some policy."""
    return np.random.default_rng(2).dirichlet(np.ones(ACTIONS), NUM)


def recent(rows: oracle.Rows, policy: np.ndarray, task: float | np.ndarray = 0.0) -> Recent:
    """The snapshot as the program sees it."""
    stored = (rows.obs, rows.action, rows.key, rows.next_obs, rows.next_key, rows.weight)
    is_valid, is_last = jnp.asarray(rows.is_valid), jnp.asarray(rows.is_last)
    return Recent(batch(*stored, task=task), is_valid, is_last, jnp.asarray(policy, jnp.float32))


@functools.cache
def queries() -> Batch:
    """Every row's (s, a), every action in every lived state, and keys that no row has."""
    rng, rows = np.random.default_rng(1), lived()
    state = np.repeat(np.unique(rows.key // ACTIONS), ACTIONS)
    state = np.concatenate([state, rng.integers(0, SPEC.num_keys // ACTIONS, 12)])
    action = np.concatenate([rows.action, np.arange(len(state)) % ACTIONS])
    key = np.concatenate([rows.key, state * ACTIONS + action[NUM:]])
    obs = np.concatenate([rows.obs, planes(rng, len(state))])
    return batch(obs, action, key, obs, key, np.ones(len(key)))


@functools.cache
def live(seed: int):
    """A state before its first window, the heads alike enough to calibrate and apart enough."""
    prime, rng = program(*BUCKET)[0], np.random.default_rng(seed)
    like = jax.eval_shape(prime.init, KEY)
    state = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), like)

    def draw(shape: tuple[int, ...], spread: float) -> np.ndarray:
        bound = spread * (shape[-2] if len(shape) == 3 else 12) ** -0.5
        return rng.uniform(-bound, bound, shape)

    def alike(x):
        own = np.array([0, 0.15, 0.9]).reshape(-1, *[1] * (x.ndim - 1)) * draw(x.shape, 2.15)
        return jnp.asarray(draw((1, *x.shape[1:]), 2.15) + own, jnp.float32)

    return replace(
        state,
        constants=constants(prime.config, GAMMA),
        online=jax.tree.map(alike, state.online),
        prior=jax.tree.map(alike, state.prior),
        inverse=jax.tree.map(
            lambda x: jnp.asarray(draw((1, *x.shape), 1.7)[0], jnp.float32), state.inverse
        ),
        novelty=jnp.asarray(10 ** rng.uniform(0, 5, SPEC.num_keys) - 1, jnp.int32),
    )


@functools.cache
def begun(moments: str, weights: str):
    """After the first boundary: the state, what was said, all parts and the maps."""
    return program(moments, weights)[1](live(0), recent(lived(), agent()))


def arrays(tree):
    return jax.tree.map(lambda x: np.asarray(x, np.float64), tree)


@functools.cache
def truth(moments: str, weights: str) -> oracle.Oracle:
    """The oracle's window; of the program's it reads the probes alone."""
    rows, state, window = lived(), live(0), begun(moments, weights)[0].window
    config = program(moments, weights)[0].config
    k_calibrate = jax.random.split(KEY, 3)[2]
    chosen, is_chosen = draw_valid(k_calibrate, jnp.asarray(rows.speak), config.calibration)
    assert is_chosen.all() and rows.speak[chosen].all() and len(set(chosen.tolist())) == 20
    return oracle.Oracle(
        rows,
        np.asarray(state.novelty),
        oracle.Nets(arrays(state.online), arrays(state.prior), arrays(state.inverse.encoder)),
        oracle.Draws(arrays(window.phi_probes), arrays(window.psi_probes), np.asarray(chosen)),
        WORLD,
        config,
        GAMMA,
    )


def same_bits(one, two) -> bool:
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True)
    return all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs)
