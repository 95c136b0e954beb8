"""A tiny world's worth of transitions for the tests of rewards, and a run short enough for all."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from prime_oracle import trunk

from primax.agent.learner import Learner
from primax.config.schema import NetConfig
from primax.methods import build
from primax.presets import configure
from primax.rewards.base import Spec
from primax.rewards.transition import Batch, Recent, Step

PLANES, ACTIONS, GAMMA, HORIZON = (2, 3, 4), 5, 0.9, 6
STATES = 12
SPEC = Spec(
    shape=PLANES,
    num_actions=ACTIONS,
    num_keys=STATES * ACTIONS,
    horizon=HORIZON,
    net=NetConfig(first_channels=4, second_channels=6, embedding=16),
    gamma=GAMMA,
    recent=8,
)
KEY = jax.random.key(7)


def observations(rng: np.random.Generator, num: int) -> np.ndarray:
    return rng.integers(0, 2, (num, *PLANES)).astype(np.uint8)


def batch(seed: int, num: int = 8, memo=(), next_memo=()) -> Batch:
    """Random transitions; the last one teaches nothing."""
    rng = np.random.default_rng(seed)
    key = rng.integers(0, STATES * ACTIONS, num)
    return Batch(
        obs=jnp.asarray(observations(rng, num)),
        action=jnp.asarray(key % ACTIONS, jnp.int32),
        task=jnp.asarray(rng.normal(size=num), jnp.float32),
        next_obs=jnp.asarray(observations(rng, num)),
        terminated=jnp.zeros(num, bool),
        truncated=jnp.zeros(num, bool),
        weight=jnp.ones(num).at[-1].set(0.0),
        key=jnp.asarray(key, jnp.int32),
        next_key=jnp.asarray(rng.integers(0, STATES, num), jnp.int32),
        memo=memo,
        next_memo=next_memo,
    )


def poisoned(rows: Batch, seed: int = 99) -> Batch:
    """The same rows, but the one that teaches nothing is another."""
    other = batch(seed, rows.action.shape[0])
    put = lambda a, b: a.at[-1].set(b[-1])  # noqa: E731
    names = ("obs", "next_obs", "action", "key", "next_key", "task")
    return replace(rows, **{name: put(getattr(rows, name), getattr(other, name)) for name in names})


def noisy(rows: Batch, seed: int) -> Batch:
    """The same rows, but the second half of them leads to somewhere else with every seed."""
    half = rows.action.shape[0] // 2
    after = np.array(rows.next_obs)
    after[half:] = observations(np.random.default_rng(1_000 + seed), half)
    return replace(rows, next_obs=jnp.asarray(after))


def step(obs, action: int, next_obs, key: int = 0) -> Step:
    obs, next_obs = (jnp.asarray(x, jnp.uint8) for x in (obs, next_obs))
    return Step(obs, jnp.int32(action), next_obs, jnp.int32(key), jnp.float32(0))


def snapshot(rows: Batch) -> Recent:
    """Rows as a refresh sees them, all of them written."""
    num = rows.action.shape[0]
    return Recent(rows, jnp.ones(num, bool), jnp.zeros(num, bool), jnp.full((num, ACTIONS), 0.2))


def mlp(x: np.ndarray, *layers, at=()) -> np.ndarray:
    """Linear layers with ReLU between them, in float64; `at` picks one of several."""
    for i, layer in enumerate(layers):
        x = x if i == 0 else np.maximum(x, 0)
        x = x @ np.asarray(layer.weight, float)[at] + np.asarray(layer.bias, float)[at]
    return x


def features(encoder, obs) -> np.ndarray:
    return trunk(jax.tree.map(lambda x: np.asarray(x, float), encoder), np.asarray(obs))


def one_hot(action) -> np.ndarray:
    return np.eye(ACTIONS)[np.asarray(action)]


def running_std(seen: list[np.ndarray]) -> float:
    """Of all that was seen, and 1e-4 of an observation with mean 0 and variance 1."""
    x = np.concatenate([np.zeros(0), *seen])
    num = x.size + 1e-4
    mean = x.sum() / num
    return float(np.sqrt((1e-4 * (1 + mean**2) + ((x - mean) ** 2).sum()) / num)) + 1e-8


TINY = {
    "steps": "80",
    "warmup": "40",
    "window": "20",
    "replay": "60",
    "recent": "40",
    "world.horizon": "20",
    "net.first_channels": "2",
    "net.second_channels": "2",
    "net.embedding": "4",
    "critics.batch": "6",
    "critics.heads": "1",
    "critics.sync_every": "20",
}


def tiny(method: str, world: str = "two_wings", **settings):
    """The smallest run that warms up and has windows."""
    return configure(method, world, settings=TINY | settings)


def compiled(function, *arguments):
    """Compiled in a hurry: these programs run for less time than the compiler takes."""
    program = jax.jit(function).lower(*arguments)
    program = program.compile(compiler_options={"xla_backend_optimization_level": 0})
    return lambda: program(*arguments)


def lived(config, seeds: tuple[int, ...] = (0, 1), windows: int = 2):
    """What is left of each seed after some windows, as a compiled function of nothing."""
    learner = Learner(config, *build(config))

    def one(seed):
        state = learner.init(jax.random.key(0), seed)
        state, _ = learner.warm_up(state, jnp.int32(0))
        clocks = config.warmup + config.window * jnp.arange(windows)
        return jax.lax.scan(lambda state, clock: learner.window(state, clock), state, clocks)

    return compiled(lambda seeds: jax.vmap(one)(seeds), jnp.asarray(seeds, jnp.int32))


def dreamt(reward, seeds: tuple[int, ...] = (0, 1), rounds: int = 3):
    """The same for a reward alone, on an episode of random observations."""
    spec = reward.spec

    def one(seed):
        keys = jax.random.split(jax.random.fold_in(KEY, seed), 6)
        k_init, k_begin, k_obs, k_key, k_steps, k_rounds = keys
        num = spec.recent
        obs = jax.random.bernoulli(k_obs, shape=(num + 1, *spec.shape)).astype(jnp.uint8)
        key = jax.random.randint(k_key, (num + 1,), 0, spec.num_keys)
        action, task = key % spec.num_actions, jnp.zeros(num)
        state, first = reward.begin(reward.init(k_init), obs[0], k_begin)
        steps = (obs[:-1], action[:-1], obs[1:], key[:-1], task, jax.random.split(k_steps, num))
        live = lambda state, x: reward.observe(state, Step(*x[:-1]), x[-1])  # noqa: E731
        state, memos = jax.lax.scan(live, state, steps)
        memo = jax.tree.map(lambda x, y: jnp.concatenate([x[None], y[:-1]]), first, memos)
        never = jnp.zeros(num, bool)
        next_key = key[1:] // spec.num_actions
        rows = (obs[:-1], action[:-1], task, obs[1:], never, never, jnp.ones(num), key[:-1])
        rows = Batch(*rows, next_key, memo, memos, jnp.arange(num))
        state, _ = reward.refresh(state, snapshot(rows), k_begin)

        def round_(state, key):
            score = reward.score(state, rows)
            state, said = reward.learn(state, rows, key)
            return state, (score, said)

        return jax.lax.scan(round_, state, jax.random.split(k_rounds, rounds))

    return compiled(lambda seeds: jax.vmap(one)(seeds), jnp.asarray(seeds, jnp.int32))
