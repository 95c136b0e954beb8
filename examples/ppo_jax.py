"""PPO in JAX with PRIME beside the task: the whole training is one program, all seeds at once.

pip install 'primax-rl[suites]'
python examples/ppo_jax.py [--without] [--steps 60000] [--size 14] [--seeds 0-2] [--curve FILE.csv]

The world is gymnax's DeepSea: only the last of `size` right steps pays, and every other one costs.
"""

import argparse
import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import optax

import primax
from primax.config.seeds import parse_seeds


class Settings(NamedTuple):
    """Of the agent, and of the bonus beside it."""

    envs: int = 16
    ticks: int = 64  # of every environment between two updates
    epochs: int = 4
    minibatches: int = 4
    learning_rate: float = 1e-3
    gamma: float = 0.99
    decay: float = 0.95  # GAE's lambda
    clip: float = 0.2
    entropy: float = 0.01
    weight: float = 0.1  # of the bonus at first; by the end it is 0


class Agent(eqx.Module):
    policy: eqx.nn.MLP
    value: eqx.nn.MLP

    def __init__(self, inputs: int, actions: int, key: jax.Array):
        k_policy, k_value = jax.random.split(key)
        self.policy = eqx.nn.MLP(inputs, actions, 64, 2, jnp.tanh, key=k_policy)
        self.value = eqx.nn.MLP(inputs, "scalar", 64, 2, jnp.tanh, key=k_value)


class Rollout(NamedTuple):
    """Steps [ticks, envs], and what the agent thought of them."""

    obs: jax.Array
    action: jax.Array
    next_obs: jax.Array
    task: jax.Array
    terminated: jax.Array
    truncated: jax.Array
    log_prob: jax.Array


def gae(rewards: Any, values: Any, next_values: Any, rollout: Rollout, set_: Settings) -> jax.Array:
    """Generalised advantages: after an end nothing is worth anything; after a cut, what it led to is."""
    delta = rewards + set_.gamma * next_values * ~rollout.terminated - values
    goes_on = ~(rollout.terminated | rollout.truncated)

    def back(onward: jax.Array, now: tuple) -> tuple[jax.Array, jax.Array]:
        onward = now[0] + set_.gamma * set_.decay * now[1] * onward
        return onward, onward

    return jax.lax.scan(back, jnp.zeros_like(delta[0]), (delta, goes_on), reverse=True)[1]


def of(log_probs: jax.Array, action: jax.Array) -> jax.Array:
    """Those of the actions taken."""
    return jnp.take_along_axis(log_probs, action[:, None], axis=1)[:, 0]


def loss(agent: Agent, rows: dict[str, jax.Array], set_: Settings) -> jax.Array:
    """PPO's: the clipped policy's, the value's, and the entropy."""
    log_probs = jax.nn.log_softmax(jax.vmap(agent.policy)(rows["obs"]))
    ratio = jnp.exp(of(log_probs, rows["action"]) - rows["log_prob"])
    wanted = (rows["advantage"] - rows["advantage"].mean()) / (rows["advantage"].std() + 1e-8)
    clipped = jnp.clip(ratio, 1 - set_.clip, 1 + set_.clip)
    policy = -jnp.minimum(ratio * wanted, clipped * wanted).mean()
    value = jnp.square(jax.vmap(agent.value)(rows["obs"]) - rows["target"]).mean()
    entropy = -(jnp.exp(log_probs) * log_probs).sum(axis=1).mean()
    return policy + 0.5 * value - set_.entropy * entropy


def make_world(size: int) -> tuple[Callable, Callable, primax.Space]:
    """DeepSea as vectors: reset and step of one environment, and what they show."""
    env, params = gymnax.make("DeepSea-bsuite", size=size)

    def reset(key: jax.Array) -> tuple[jax.Array, Any]:
        obs, state = env.reset(key, params)
        return obs.ravel(), state

    def step(key: jax.Array, state: Any, action: jax.Array) -> tuple:
        obs, state, task, terminated, truncated, info = env.step(key, state, action, params)
        # `obs` is the next episode's after an end; what the step led to is here, in every step.
        next_obs = info["final_observation"].ravel()
        return obs.ravel(), state, next_obs, task, terminated, truncated & ~terminated

    return reset, step, primax.Space(obs=(size * size,), num_actions=env.num_actions)


def rewarded(bonus: Any, kept: Any, rollout: Rollout, weight: Any) -> tuple[Any, jax.Array]:
    """Between rollout and advantages: the bonus takes the steps in, and stands beside the task."""
    steps = primax.Transition(*rollout[:3], rollout.terminated, rollout.truncated)
    kept, worth = bonus.step(kept, steps)
    return kept, rollout.task + weight * worth


def collect(step: Callable, agent: Agent, shown: tuple, keys: jax.Array) -> tuple[tuple, Rollout]:
    """A rollout: a key for every tick."""

    def tick(shown: tuple, key: jax.Array) -> tuple[tuple, Rollout]:
        obs, state = shown
        k_act, k_step = jax.random.split(key)
        log_probs = jax.nn.log_softmax(jax.vmap(agent.policy)(obs))
        action = jax.random.categorical(k_act, log_probs)
        later, state, *led_to = jax.vmap(step)(jax.random.split(k_step, len(obs)), state, action)
        return (later, state), Rollout(obs, action, *led_to, of(log_probs, action))

    return jax.lax.scan(tick, shown, keys)


def make_train(world: tuple, set_: Settings, updates: int) -> Callable[[jax.Array], jax.Array]:
    """A whole training as a function of its random key: it gives the curve."""
    reset, step, space = world
    told = {"recent": 2_000, "update_every": 4 * set_.envs}
    bonus = primax.bonus("prime", space, set_.envs, set_.gamma, "simhash", settings=told)
    optimiser = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(set_.learning_rate))
    num, parts = set_.ticks * set_.envs, set_.epochs * set_.minibatches

    def train(key: jax.Array) -> jax.Array:
        k_agent, k_bonus, k_reset, k_train = jax.random.split(key, 4)
        params, rest = eqx.partition(Agent(*space.obs, space.num_actions, k_agent), eqx.is_array)

        def minibatch(learnt: tuple, rows: dict) -> tuple[tuple, None]:
            params, moments = learnt
            slope = jax.grad(lambda params: loss(eqx.combine(params, rest), rows, set_))(params)
            change, moments = optimiser.update(slope, moments)
            return (optax.apply_updates(params, change), moments), None

        def update(now: tuple, done: jax.Array) -> tuple[tuple, jax.Array]:
            learnt, kept, shown = now
            agent = eqx.combine(learnt[0], rest)
            k_collect, k_learn = jax.random.split(jax.random.fold_in(k_train, done))
            shown, rollout = collect(step, agent, shown, jax.random.split(k_collect, set_.ticks))
            rewards = rollout.task
            if set_.weight:
                kept, rewards = rewarded(bonus, kept, rollout, set_.weight * (1 - done / updates))
            value = jax.vmap(jax.vmap(agent.value))
            values = value(rollout.obs)
            advantage = gae(rewards, values, value(rollout.next_obs), rollout, set_)
            rows = {"advantage": advantage, "target": advantage + values} | rollout._asdict()
            order = [jax.random.permutation(k, num) for k in jax.random.split(k_learn, set_.epochs)]
            place = jnp.concatenate(order).reshape(parts, -1)
            rows = jax.tree.map(lambda x: x.reshape(num, *x.shape[2:])[place], rows)
            learnt, _ = jax.lax.scan(minibatch, learnt, rows)
            over = jnp.sum(rollout.terminated | rollout.truncated)
            return (learnt, kept, shown), jnp.sum(rollout.task > 0.5) / jnp.maximum(over, 1)

        first = jax.vmap(reset)(jax.random.split(k_reset, set_.envs))
        start = ((params, optimiser.init(params)), bonus.init(k_bonus), first)
        return jax.lax.scan(update, start, jnp.arange(updates))[1]

    return train


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--without", action="store_true", help="the task alone")
    parser.add_argument("--steps", type=int, default=60_000)
    parser.add_argument("--size", type=int, default=14, help="of DeepSea")
    parser.add_argument("--seeds", type=parse_seeds, default="0-2")
    parser.add_argument("--curve", type=Path, help="a CSV file for the curve")
    args = parser.parse_args()

    set_ = Settings(weight=0.0) if args.without else Settings()
    each = set_.ticks * set_.envs
    train = make_train(make_world(args.size), set_, max(1, args.steps // each))
    keys = jnp.stack([jax.random.fold_in(jax.random.key(0), seed) for seed in args.seeds])
    found = np.asarray(jax.jit(jax.vmap(train))(keys))
    when = each * (1 + np.arange(found.shape[1]))
    name, rows = "PPO" if args.without else "PPO with PRIME", []
    for seed, curve in zip(args.seeds, found, strict=True):
        first = f"at the goal by step {when[curve > 0][0]}" if curve.any() else "never at the goal"
        print(f"{name}, seed {seed}: {first}; in the last rollout {curve[-1]:.0%} of episodes")
        rows += [(name, seed, *one) for one in zip(when.tolist(), curve.tolist(), strict=True)]
    if args.curve:
        with args.curve.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("curve", "seed", "step", "share"), *rows])


if __name__ == "__main__":
    main()
