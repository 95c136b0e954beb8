"""The engine beside a plain DQN in one jitted scan, as PureJaxRL writes it: steps a second, all seeds at once.

    python benchmarks/plain_loop.py --seeds 10 --steps 20000

Both run the task in the same gymnax world with the same network (two hidden layers), minibatch, updates
and replay; the plain loop keeps flat buffers, resets in the step and decides with `lax.cond` whether to
learn. It checks itself by learning DeepSea of size 4 first. Steps of the warm-up are not counted, on
either side.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import optax

from primax.agent.learner import make_learner
from primax.agent.training import compile_program, windows
from primax.config.schema import Config
from primax.nn.encoders import Flat
from primax.nn.nets import Net
from primax.presets import configure
from primax.runs.provenance import provenance

WORLDS = {"DeepSea-bsuite": {"size": 20}, "Breakout-MinAtar": {}}


def plain(id_: str, sizes: dict[str, Any], config: Config, steps: int) -> Any:
    """Training of one seed, from a key to the scores of the episodes that ended and whether they did."""
    env, params = gymnax.make(id_, **sizes)
    first, _ = env.reset(jax.random.key(0), params)
    shape = (1, *first.shape) if first.ndim == 2 else (first.shape[2], *first.shape[:2])
    critics, batch = config.critics, config.critics.batch
    optimiser = optax.chain(optax.clip_by_global_norm(10.0), optax.adam(critics.learning_rate))
    ramp = config.explore.fraction * config.total_steps

    def network(key: Any) -> Net:
        width = config.net.embedding
        trunk, (last,) = Flat().build(key, shape, config.net, (width, env.num_actions))
        return Net(trunk, last)

    def loss(net: Net, target: Net, rows: Any) -> Any:
        obs, action, reward, next_obs, ended = rows
        best = jnp.argmax(net(next_obs), axis=1)
        after = jnp.take_along_axis(target(next_obs), best[:, None], axis=1)[:, 0]
        y = reward + critics.gamma * (1.0 - ended) * after
        q = jnp.take_along_axis(net(obs), action[:, None], axis=1)[:, 0]
        return jnp.mean(optax.huber_loss(q, jax.lax.stop_gradient(y)))

    def step(carry: Any, clock: Any) -> Any:
        net, target, state, obs, world, rows, score, key = carry
        key, k_act, k_explore, k_step, k_sample = jax.random.split(key, 5)
        epsilon = 1.0 - 0.95 * jnp.minimum(1.0, clock / ramp)
        is_random = (jax.random.uniform(k_explore) < epsilon) | (clock < config.warmup)
        drawn = jax.random.randint(k_act, (), 0, env.num_actions)
        action = jnp.where(is_random, drawn, jnp.argmax(net(obs[None])[0]))
        after, world, reward, ended, cut, info = env.step(k_step, world, action, params)
        last = info["final_observation"].reshape(-1)
        new = (obs, action, reward.astype(jnp.float32), last, ended.astype(jnp.float32))
        at = clock % config.replay
        rows = jax.tree.map(lambda kept, x: kept.at[at].set(x), rows, new)

        def learn(both: Any) -> Any:
            net, state = both
            size = jnp.minimum(clock + 1, config.replay)
            index = jax.random.randint(k_sample, (batch,), 0, size)
            grads = jax.grad(loss)(net, target, jax.tree.map(lambda x: x[index], rows))
            changes, state = optimiser.update(grads, state)
            return optax.apply_updates(net, changes), state

        is_due = (clock >= config.warmup) & (clock % config.update_every == 0)
        net, state = jax.lax.cond(is_due, learn, lambda both: both, (net, state))
        is_sync = clock % critics.sync_every == 0
        target = jax.tree.map(lambda a, b: jnp.where(is_sync, a, b), net, target)
        score, is_over = score + reward, ended | cut
        told = score, is_over
        score = jnp.where(is_over, 0.0, score)
        return (net, target, state, after.reshape(-1), world, rows, score, key), told

    def train(key: Any) -> Any:
        k_net, k_reset, key = jax.random.split(key, 3)
        net = network(k_net)
        obs, world = env.reset(k_reset, params)
        flat = jnp.zeros((config.replay, obs.size))
        number = jnp.zeros(config.replay)
        rows = (flat, number.astype(jnp.int32), number, flat, number)
        world = jax.tree.map(lambda x, y: jnp.asarray(x, y.dtype), world, _stepped(env, params))
        carry = (net, net, optimiser.init(net), obs.reshape(-1), world, rows, jnp.float32(0), key)
        return jax.lax.scan(step, carry, jnp.arange(steps))[1]

    return train


def _stepped(env: Any, params: Any) -> Any:
    """Types of a state after a step."""

    def one(key: Any) -> Any:
        return env.step(key, env.reset(key, params)[1], 0, params)[1]

    return jax.eval_shape(one, jax.random.key(0))


def plain_rate(id_: str, sizes: dict[str, Any], config: Config, seeds: int) -> Callable[[], float]:
    """Steps a second of all seeds while they learn: what a whole run takes longer than its warm-up."""
    keys = jax.random.split(jax.random.key(0), seeds)
    lengths = config.total_steps, config.warmup
    whole, warm = (
        jax.jit(jax.vmap(plain(id_, sizes, config, steps))).lower(keys).compile()
        for steps in lengths
    )

    def seconds(part: Callable[..., Any]) -> float:
        began = time.perf_counter()
        jax.block_until_ready(part(keys))
        return time.perf_counter() - began

    seconds(whole)
    return lambda: seeds * (lengths[0] - lengths[1]) / (seconds(whole) - seconds(warm))


def engine_rate(config: Config, seeds: int) -> Callable[[], float]:
    """The same of the engine: the windows after the warm-up, with their rows brought to the host."""
    program = compile_program(make_learner(config), tuple(range(seeds)))

    def rate() -> float:
        took = [(progress.steps, progress.seconds) for _, progress in windows(program)][1:]
        return seeds * sum(steps for steps, _ in took) / sum(seconds for _, seconds in took)

    rate()
    return rate


def check() -> None:
    """The plain loop learns a sea of four: its last episodes nearly all reach the goal."""
    config = configuration("DeepSea-bsuite", {"size": 4}, 6_000)
    score, is_over = jax.jit(plain("DeepSea-bsuite", {"size": 4}, config, 6_000))(jax.random.key(1))
    last = np.asarray(score)[np.asarray(is_over)][-100:]
    if last.mean() < 0.7:
        raise SystemExit(f"the plain loop does not learn: {last.mean():.2f} in a sea of four")


def configuration(id_: str, sizes: dict[str, Any], steps: int) -> Config:
    """The task in that world, with two hidden layers."""
    options = {f"world.{name}": value for name, value in sizes.items()}
    settings = {"net.planes": "flat", "steps": steps, "replay": 20_000, **options}
    return configure("task", f"gymnax:{id_}", settings=settings)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument(
        "--repeats", type=int, default=3, help="of each, in turns; the median counts"
    )
    args = parser.parse_args()
    check()
    about = provenance()
    print({name: about[name] for name in ("commit", "jax", "device")}, vars(args))
    for id_, sizes in WORLDS.items():
        config = configuration(id_, sizes, args.steps)
        rates = engine_rate(config, args.seeds), plain_rate(id_, sizes, config, args.seeds)
        found = [[rate() for rate in rates] for _ in range(args.repeats)]
        ours, theirs = np.median(found, axis=0)
        told = f"engine {ours:,.0f} steps/s, plain loop {theirs:,.0f}: {ours / theirs:.2f} times"
        print(f"{id_} {sizes}: {told}", flush=True)


if __name__ == "__main__":
    main()
