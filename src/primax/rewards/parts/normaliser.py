"""Running moments, and the things that are called dividing by a running deviation.

`returns` divides by the deviation of the discounted sum of rewards along the stream, as RND does.
`rewards` divides by the deviation of the rewards themselves, as they are sampled, as URLB does.
`moving` does that too, and forgets what was sampled long ago.
`standard` does not forget, and subtracts their mean first. Only the last moves the zero.
"""

from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Shaped

KINDS = ("rewards", "returns", "moving", "standard", "none")
MEMORY = 6_400.0
"""Rows whose weight `moving` moments keep: a hundred of the paper's minibatches."""
PRIOR_COUNT = 1e-4
"""How many observations of mean 0 and variance 1 the moments start with."""
MOST = 5.0
"""Where what is whitened is clipped, up and down."""
SMALLEST = 1e-8
"""Added to every deviation that is divided by."""


class Running(eqx.Module):
    """Moments of all that was merged so far; leading axes are moments of separate things."""

    count: Float[Array, "*n"]
    mean: Float[Array, "*n"]
    variance: Float[Array, "*n"]


class Scale(eqx.Module):
    """What an intrinsic reward is measured by."""

    moments: Running
    filtered: Float[Array, ""]
    """The discounted sum of the rewards met so far; only `returns` uses it."""


def start(shape: tuple[int, ...] = ()) -> Running:
    """Moments before anything was seen: mean 0 and variance 1, of next to no weight."""
    count = jnp.full(shape, PRIOR_COUNT, jnp.float32)
    return Running(count, jnp.zeros(shape), jnp.ones(shape))


def merge(now: Running, x: Float[Array, "batch *n"], weight: Float[Array, "batch *n"]) -> Running:
    """The moments with a batch added, by the batch's own moments; weight 0 is not there at all."""
    num = jnp.sum(weight, axis=0)
    x = jnp.where(weight > 0, x, 0.0)
    mean = jnp.sum(weight * x, axis=0) / jnp.maximum(num, SMALLEST)
    spread = jnp.sum(weight * (x - mean[None]) ** 2, axis=0)
    count = now.count + num
    away = jnp.where(num > 0, mean - now.mean, 0.0)
    variance = (now.variance * now.count + spread + away**2 * now.count * num / count) / count
    return Running(count, now.mean + away * num / count, variance)


def deviation(now: Running) -> Float[Array, "*n"]:
    """The standard deviation, never quite zero."""
    return jnp.sqrt(now.variance) + SMALLEST


def whitened(now: Running, x: Shaped[Array, "batch *n"], least: float) -> Float[Array, "batch *n"]:
    """Each number less its mean, over its deviation or the least there may be, within five of them."""
    width = jnp.maximum(jnp.sqrt(now.variance), least)
    ratio = (x.astype(jnp.float32) - now.mean[None]) / width[None]
    return jnp.clip(ratio, -MOST, MOST)


def fresh() -> Scale:
    """The scale before the first reward: one."""
    return Scale(start(), jnp.zeros(()))


def stream(scale: Scale, reward: Float[Array, ""], kind: str, discount: float) -> Scale:
    """One step was lived: `returns` filters its reward, in the order of time and across episodes."""
    if kind != "returns":
        return scale
    filtered = discount * scale.filtered + reward
    return Scale(merge(scale.moments, filtered[None], jnp.ones(1)), filtered)


def minibatch(
    scale: Scale, reward: Float[Array, " batch"], weight: Float[Array, " batch"], kind: str
) -> Scale:
    """A minibatch was scored: all kinds but `returns` take its raw rewards in."""
    if kind in ("returns", "none"):
        return scale
    now = merge(scale.moments, reward, weight)
    if kind == "moving":
        now = replace(now, count=jnp.minimum(now.count, MEMORY))
    return replace(scale, moments=now)


def normalise(scale: Scale, reward: Float[Array, "*n"], kind: str) -> Float[Array, "*n"]:
    """The raw rewards, never their filtered sums, at the scale of the past."""
    if kind == "none":
        return reward
    zero = scale.moments.mean if kind == "standard" else 0.0
    return (reward - zero) / deviation(scale.moments)
