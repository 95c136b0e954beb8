"""Whether the PyTorch learner is ours: the same weights and rows must give the same new weights.

PRIME, from one snapshot of a random walk and a few minibatches of it, in float32 on both sides;
what is drawn at random our side draws for both. Settings are such that all of it shows: clip and
soft bound act, heads outweigh counts, and the gate leaves some noise.
"""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from torch_loop import Loop, dqn_losses
from torch_nets import torch
from torch_prime import Draws

from primax.agent import critics as critic
from primax.config.schema import Config
from primax.methods import build
from primax.nn import nets
from primax.presets import configure
from primax.rewards.base import Reward
from primax.rewards.prime import heads
from primax.rewards.prime.window import draw_valid
from primax.rewards.transition import Batch, Recent

UPDATES, LOUD = 3, 30.0
LIMITS = {"reward": 1e-5, "loss": 1e-3, "critics": 5e-3, "statistics": 5e-3, "inverse": 5e-3}
"""Of the reward and the loss in proportion, of weights over how far they have moved."""
TELLING = {
    "net.precision": "highest",
    "critics.q_max": "0.05",
    "critics.q_penalty": "10",
    "critics.grad_clip": "0.05",
    "reward.grad_clip": "0.05",
    "reward.a_min": "0",
    "reward.reward_scale": "1",
    "reward.count_scale": "1e-5",
    "reward.gate_weight": "0.1",
    "reward.log_scale": "0.01",
}


def layers(trunk: nets.Trunk, planes: tuple[int, int, int], *rest: nets.Linear) -> list[np.ndarray]:
    """One of our networks as PyTorch's parameters; ours flattens (rows, cols, channels)."""
    _, rows, cols = planes
    found = []
    for conv in (trunk.first, trunk.second):
        kernel = np.asarray(conv.weight)
        kernel = kernel.reshape(3, 3, -1, kernel.shape[1])
        found += [kernel.transpose(3, 2, 0, 1), np.asarray(conv.bias)]
    embed = np.asarray(trunk.embed.weight)
    flat = embed.reshape(rows, cols, -1, embed.shape[1]).transpose(3, 2, 0, 1)
    found += [flat.reshape(embed.shape[1], -1), np.asarray(trunk.embed.bias)]
    for layer in rest:
        found += [np.asarray(layer.weight).T, np.asarray(layer.bias)]
    return found


def members(ensemble: nets.Net, planes: tuple[int, int, int]) -> list[list[np.ndarray]]:
    """Every network of an ensemble as PyTorch's parameters."""
    num = jax.tree.leaves(ensemble)[0].shape[0]
    each = [jax.tree.map(lambda x, k=k: x[k], ensemble) for k in range(num)]
    return [layers(net.trunk, planes, net.head) for net in each]


def load(modules: list[torch.nn.Module], weights: list[list[np.ndarray]]) -> None:
    """Gives PyTorch's networks these parameters."""
    with torch.no_grad():
        for module, values in zip(modules, weights, strict=True):
            for parameter, value in zip(module.parameters(), values, strict=True):
                parameter.copy_(torch.tensor(value))


def rows_of(loop: Loop, index: np.ndarray, ended: np.ndarray) -> Batch:
    """Our minibatch of the same rows."""
    row = {name: column[index] for name, column in loop.replay.columns.items()}
    whole = {name: jnp.asarray(row[name], jnp.int32) for name in ("action", "key", "next_key")}
    return Batch(
        obs=jnp.asarray(row["obs"]),
        next_obs=jnp.asarray(row["next_obs"]),
        task=jnp.asarray(row["task"]),
        terminated=jnp.asarray(ended),
        truncated=jnp.zeros(len(index), bool),
        weight=jnp.ones(len(index)),
        memo=(),
        next_memo=(),
        **whole,
    )


def next_actions(reward: Reward, state: Any, batch: Batch, key: jax.Array) -> jax.Array:
    """The actions that `learn` draws from π_ref."""
    window, num = state.window, reward.spec.num_actions
    seen = nets.patches(batch.next_obs)
    q = heads.ensemble(window.heads, state.prior, seen, num, window.constants)
    policy = heads.reference_policy(jnp.mean(q[0], axis=-1), window.constants.temperature)
    return jax.random.categorical(jax.random.split(key)[0], jnp.log(policy))


def apart(ours: list, theirs: list[torch.nn.Module], start: list) -> float:
    """The largest difference of a layer, in proportion to how far the layer has moved."""
    gaps = []
    for net, module, first in zip(ours, theirs, start, strict=True):
        for a, b, at in zip(net, module.parameters(), first, strict=True):
            b = b.detach().cpu().numpy()
            gaps.append(np.linalg.norm(a - b) / np.linalg.norm(b - at))
    return float(max(gaps))


def same_window(config: Config, reward: Reward, loop: Loop, key: Any) -> tuple[Any, float]:
    """Freezes a window from the same heads on both sides; ours, and how far the reward is apart."""
    planes, prime, device = reward.spec.shape, loop.prime, loop.device
    everything = rows_of(loop, np.arange(config.recent), np.zeros(config.recent, bool))
    is_last = np.arange(config.recent) % loop.world.horizon == loop.world.horizon - 1
    no_policy = jnp.zeros((config.recent, reward.spec.num_actions))
    recent = Recent(everything, jnp.ones(config.recent, bool), jnp.asarray(is_last), no_policy)
    k_init, k_window = jax.random.split(key)
    state = jax.jit(reward.init)(k_init)
    # A fresh φ hardly moves, and its noise would never be the largest: louder, it shows.
    embed = lambda model: model.encoder.embed.weight  # noqa: E731
    model = eqx.tree_at(embed, state.inverse, replace_fn=lambda weight: LOUD * weight)
    state = replace(state, novelty=jnp.asarray(prime.counts, jnp.int32), inverse=model)
    load(prime.heads.online, members(state.online, planes))
    load(prime.priors, members(state.prior, planes))
    load(prime.inverse.online, [layers(model.encoder, planes, model.hidden, model.out)])
    state, _ = jax.jit(reward.refresh)(state, recent, k_window)
    k_calibrate = jax.random.split(k_window, 3)[2]
    chosen, _ = draw_valid(k_calibrate, recent.is_lived, config.reward.calibration)
    drawn = (chosen, state.window.phi_probes, state.window.psi_probes)
    draws = Draws(*(torch.tensor(np.asarray(x)).to(device) for x in drawn))
    snapshot = loop.replay.read(np.arange(config.recent))
    prime.refresh(snapshot, torch.tensor(is_last).to(device), draws)
    scores = np.asarray(jax.jit(reward.score)(state, everything))
    theirs = prime.score(snapshot.key).cpu().numpy()
    return state, float(np.abs(scores - theirs).max() / np.abs(scores).max())


def same_updates(
    config: Config, reward: Reward, loop: Loop, state: Any, key: Any
) -> dict[str, float]:
    """Takes a few updates on both sides, with heads and targets that differ; how far they come apart."""
    planes, prime, device = reward.spec.shape, loop.prime, loop.device
    k_other, k_critics, k_target, k_learn = jax.random.split(key, 4)
    state = replace(state, online=jax.jit(reward.init)(k_other).online)
    sizes = (config.critics.heads, config.net, planes, reward.spec.num_actions)
    begin = jax.jit(lambda key: critic.init(key, *sizes))
    critics, other = begin(k_critics), begin(k_target)
    critics = critic.Critics(critics.online, other.online, critics.optimiser)
    load(prime.heads.online, members(state.online, planes))
    load(loop.critics.online, members(critics.online, planes))
    load(loop.critics.target, members(critics.target, planes))

    @jax.jit
    def update(critics, state, batch, key):
        rest = (batch.action, reward.score(state, batch), batch.weight, batch.terminated)
        before, after = nets.patches(batch.obs), nets.patches(batch.next_obs)
        critics, said = critic.update(
            critics, critic.rates(config.critics), before, after, rest, double=True
        )
        action = next_actions(reward, state, batch, key)
        state, _ = reward.learn(state, batch, key)
        return critics, state, action, said["loss"]

    def weights() -> dict[str, list]:
        model = state.inverse
        return {
            "critics": members(critics.online, planes),
            "statistics": members(state.online, planes),
            "inverse": [layers(model.encoder, planes, model.hidden, model.out)],
        }

    start, losses, rng = weights(), [], np.random.default_rng(0)
    for key in jax.random.split(k_learn, UPDATES):
        index = rng.integers(config.recent, size=config.critics.batch)
        ended = rng.random(len(index)) < 0.1  # so that the mask shows
        critics, state, action, loss = update(critics, state, rows_of(loop, index, ended), key)
        batch = loop.replay.read(index)
        batch = replace(batch, terminated=torch.tensor(ended).float().to(device))
        each = dqn_losses(loop.critics, batch, prime.score(batch.key), config.critics)
        losses.append(float(loss) / float(loop.critics.step(each).mean()) - 1)
        q, _ = prime.ask(batch)
        prime.learn(batch, q, torch.tensor(np.asarray(action)).long().to(device))
    sides = {"critics": loop.critics, "statistics": prime.heads, "inverse": prime.inverse}
    now = weights()
    gaps = {name: apart(now[name], x.online, start[name]) for name, x in sides.items()}
    return {"loss": max(abs(x) for x in losses)} | gaps


def check(preset: str, device: str) -> dict[str, float]:
    """How far the sides are apart after a few updates; stops the program where that is too far."""
    config = configure("prime", "butterflies", preset, TELLING)
    reward, loop = build(config)[1], Loop(config, device)
    for _ in range(config.recent):
        loop.step(1.0)
    k_window, k_updates = jax.random.split(jax.random.key(0))
    state, gap = same_window(config, reward, loop, k_window)
    found = {"reward": gap} | same_updates(config, reward, loop, state, k_updates)
    found = {name: float(f"{gap:.1e}") for name, gap in found.items()}
    if not all(gap <= LIMITS[name] for name, gap in found.items()):
        raise SystemExit(f"PyTorch and primax differ, nothing is timed: {found}")
    return found
