"""An ensemble of Double-DQN critics, trained on one shared minibatch."""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from primax.config.schema import Config, CriticsConfig, MixConfig, NetConfig
from primax.nn import nets
from primax.nn.encoders import Encoder, Planes
from primax.nn.optim import adam_start, adam_step
from primax.rewards.base import Reward

Seen = Float[Array, "batch ..."]
"""Observations as the first layer wants them."""
PLANES = Planes()


class Rates(eqx.Module):
    """Numbers of the learner that are data: runs that differ in them share a program."""

    gamma: Float[Array, ""]
    learning_rate: Float[Array, ""]
    grad_clip: Float[Array, ""]
    q_max: Float[Array, ""]
    q_penalty: Float[Array, ""]
    mix_weight: Float[Array, ""] | None = None
    mix_gamma: Float[Array, ""] | None = None


class Critics(eqx.Module):
    """Every leaf leads with the heads' axis."""

    online: nets.Net
    target: nets.Net
    optimiser: PyTree


def rates(config: CriticsConfig, mix: MixConfig | None = None) -> Rates:
    """The configured numbers as arrays."""
    fields = ("gamma", "learning_rate", "grad_clip", "q_max", "q_penalty")
    numbers = {name: getattr(config, name) for name in fields}
    if mix:
        numbers |= {"mix_weight": mix.weight, "mix_gamma": mix.gamma}
    return Rates(**{name: jnp.asarray(value, jnp.float32) for name, value in numbers.items()})


def init(
    key: PRNGKeyArray,
    heads: int,
    net: NetConfig,
    shape: tuple[int, ...],
    outputs: int,
    encoder: Encoder = PLANES,
) -> Critics:
    """Fresh heads, distinct in every weight; the targets start as copies."""

    def head(key: PRNGKeyArray) -> nets.Net:
        trunk, (last,) = encoder.build(key, shape, net, (net.embedding, outputs))
        return nets.Net(trunk, last)

    online = jax.vmap(head)(jax.random.split(key, heads))
    optimiser = jax.vmap(adam_start)(online)
    return Critics(online, jax.tree.map(jnp.copy, online), optimiser)


def sized(config: Config, reward: Reward) -> dict[str, Any]:
    """What `init` needs to know, for the critics of a run."""
    return {
        "heads": config.critics.heads,
        "net": config.net,
        "shape": reward.view_shape,
        "outputs": reward.spec.num_actions * config.num_values,
        "encoder": reward.spec.encoder,
    }


def begin_with(critics: Critics, given: Any) -> Critics:
    """The same with other networks, or with other trunks under new output layers."""
    online = given if isinstance(given, nets.Net) else nets.Net(given, critics.online.head)
    return Critics(*(jax.tree.map(jnp.copy, online) for _ in range(2)), critics.optimiser)


def share(critics: Critics) -> Critics:
    """Every head with the first one's trunk."""
    online, target = (with_one_trunk(net) for net in (critics.online, critics.target))
    return Critics(online, target, critics.optimiser)


def with_one_trunk(heads: nets.Net) -> nets.Net:
    """The same heads over the first one's trunk."""
    return _with_trunk(heads, _first)


def shared_gradient(grads: nets.Net, clip: Float[Array, ""]) -> nets.Net:
    """Of one network with as many output layers: the trunk's adds up, and all is clipped together."""
    grads = _with_trunk(grads, lambda g: jnp.sum(g, axis=0, keepdims=True))
    trunk = jax.tree.map(lambda g: g[0], grads.trunk)
    norm = optax.tree.norm((trunk, grads.head))
    return jax.tree.map(lambda g: g * jnp.where(norm > clip, clip / norm, 1.0), grads)


def _first(x: Array) -> Array:
    return x[:1]


def _with_trunk(net: nets.Net, one: Callable[[Array], Array]) -> nets.Net:
    """Every head's trunk as what `one` makes of them all."""
    trunk = jax.tree.map(lambda x: jnp.broadcast_to(one(x), x.shape), net.trunk)
    return nets.Net(trunk, net.head)


def values(heads: nets.Net, seen: Seen) -> Float[Array, "heads batch actions"]:
    """Action values of every head, all seeing the same."""
    return jax.vmap(lambda net: net(seen))(heads)


def greedy(
    values: Float[Array, "heads actions"], head: Int[Array, ""] | None = None
) -> Int[Array, ""]:
    """The action of the highest value: averaged over heads, or by one of them."""
    return jnp.argmax(jnp.mean(values, axis=0) if head is None else values[head])


def split(values: Float[Array, "*n outputs"]) -> Float[Array, "*n 2 actions"]:
    """Of critics with two values: the task's and the bonus's."""
    return values.reshape(*values.shape[:-1], 2, -1)


def combined(
    values: Float[Array, "*n outputs"], weight: Float[Array, ""]
) -> Float[Array, "*n actions"]:
    """What is acted on: the task's value and, at its weight, the bonus's."""
    task, bonus = jnp.moveaxis(split(values), -2, 0)
    return task + weight * bonus


def td_target(
    reward: Float[Array, ""],
    discount: Float[Array, ""],
    selector: Float[Array, " actions"],
    value: Float[Array, " actions"],
) -> Float[Array, ""]:
    """One transition's target: the reward and the discounted value of the selector's best action.

    With the online critic as selector this is Double-DQN's y; with `value` itself, plain DQN's.
    """
    return reward + discount * value[jnp.argmax(selector)]


def two_targets(
    reward: Float[Array, "batch 2"],
    discount: Float[Array, "batch 2"],
    selector: Float[Array, "heads batch actions"],
    value: Float[Array, "heads batch outputs"],
) -> Float[Array, "heads batch 2"]:
    """A target for each of two values; both are of the one policy that acts on their sum."""
    each = jax.vmap(td_target, in_axes=(0, 0, None, 0))
    return jax.vmap(jax.vmap(each), in_axes=(None, None, 0, 0))(
        reward, discount, selector, split(value)
    )


def soft_bound(q: Float[Array, "*n"], rates: Rates) -> Float[Array, "*n"]:
    """The penalty 0.1 * relu(|Q| - Q_max)^2 on each action value."""
    return rates.q_penalty * jax.nn.relu(jnp.abs(q) - rates.q_max) ** 2


def head_loss(
    net: nets.Net,
    seen: Seen,
    action: Int[Array, " batch"],
    y: Float[Array, "batch *two"],
    weight: Float[Array, " batch"],
    rates: Rates,
) -> tuple[Float[Array, ""], Float[Array, "batch *two"]]:
    """Squared error to the targets and the soft bound summed over actions, averaged over rows.

    Two values have a target each, and their errors add up.
    """
    q = net(seen)
    bound = jnp.sum(soft_bound(q, rates), axis=1)
    if y.ndim == 2:
        taken = nets.chosen(jnp.moveaxis(split(q), 1, 2), action)
        return jnp.mean(weight * (jnp.sum((taken - y) ** 2, axis=1) + bound)), taken
    taken = nets.chosen(q, action)
    return jnp.mean(weight * ((taken - y) ** 2 + bound)), taken


def update(
    critics: Critics,
    rates: Rates,
    before: Seen,
    after: Seen,
    batch: tuple[
        Int[Array, " batch"],
        Float[Array, "batch *two"],
        Float[Array, " batch"],
        Bool[Array, " batch"],
    ],
    double: bool,
    is_shared: bool = False,
    bonus_weight: Float[Array, ""] | None = None,
    has_idle: bool = False,
) -> tuple[Critics, dict[str, Float[Array, ""]]]:
    """One step of every head on (action, reward, weight, terminated) of a shared minibatch.

    With `bonus_weight` there are two values, and rewards are those of the task and of the bonus.
    Where there are idle rows (`has_idle`) what is told is of the others.
    """
    action, reward, weight, terminated = batch
    discount = rates.gamma * (1.0 - terminated.astype(jnp.float32))
    q_after = values(critics.target, after)
    selector = values(critics.online, after) if double else q_after
    if bonus_weight is None:
        per_row = jax.vmap(td_target)
        y = jax.vmap(per_row, in_axes=(None, None, 0, 0))(reward, discount, selector, q_after)
    else:
        assert rates.mix_gamma is not None
        bonus_discount = rates.mix_gamma * (1.0 - terminated.astype(jnp.float32))
        discount = jnp.stack([discount, bonus_discount], axis=1)
        y = two_targets(reward, discount, combined(selector, bonus_weight), q_after)
        reward = reward[:, 0] + bonus_weight * reward[:, 1]

    loss = partial(head_loss, seen=before, action=action, weight=weight, rates=rates)
    grad = jax.value_and_grad(lambda net, y: loss(net, y=y), has_aux=True)
    (losses, taken), grads = jax.vmap(grad)(critics.online, y)
    if is_shared:
        grads = shared_gradient(grads, rates.grad_clip)
    descend = partial(adam_step, learning_rate=rates.learning_rate, grad_clip=rates.grad_clip)
    online, optimiser = jax.vmap(descend)(critics.online, grads, critics.optimiser)
    if is_shared:
        online = with_one_trunk(online)
    lived = weight if has_idle else None
    metrics = {
        "loss": jnp.mean(losses),
        "reward": mean_of(reward, lived),
        "y_abs": mean_of(jnp.abs(y), lived, 1),
        "y_abs_top": max_of(jnp.abs(y), lived, 1),
        "y_abs_max": max_of(jnp.abs(y), lived, 1),
        "q_taken_abs_max": max_of(jnp.abs(taken), lived, 1),
        "q_target_abs_max": jnp.max(jnp.abs(q_after)),
    }
    return Critics(online, critics.target, optimiser), metrics


def mean_of(
    x: Float[Array, "..."], weight: Float[Array, " batch"] | None, axis: int = 0
) -> Float[Array, ""]:
    """Over all rows, or with weights of the rows along `axis` over those that are not idle."""
    if weight is None:
        return jnp.mean(x)
    share = weight / jnp.maximum(jnp.mean(weight), 1.0 / weight.shape[0])
    return jnp.mean(x * _along(share, x.ndim, axis))


def max_of(
    x: Float[Array, "..."], weight: Float[Array, " batch"] | None, axis: int = 0
) -> Float[Array, ""]:
    """The same of what is not negative: the largest."""
    return jnp.max(x if weight is None else x * _along(weight, x.ndim, axis))


def _along(weight: Float[Array, " batch"], ndim: int, axis: int) -> Float[Array, "..."]:
    return jnp.expand_dims(weight, [i for i in range(ndim) if i != axis])


def sync(critics: Critics, is_due: Bool[Array, ""]) -> Critics:
    """Copies the online heads to the targets where it is due."""
    target = jax.tree.map(lambda o, t: jnp.where(is_due, o, t), critics.online, critics.target)
    return Critics(critics.online, target, critics.optimiser)
