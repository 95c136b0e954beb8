"""What changes slowly, and a code does not tell: one more number of a learnt key.

An agent does not steer all that it changes: what it collects or opens stays so. Such things leave
a trace in how much of each plane or channel is filled, and that changes rarely. The number is the
slowest direction of those means (Wiskott & Sejnowski 2002), after what the code tells of them is
taken away: noise in a part of the world would else be slow because the agent stays there.
"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Shaped

from primax.rewards.base import Spec

SMALLEST = 1e-6
"""Variance below which a mean is taken not to vary."""
RIDGE = 1e-2
"""Added to the variances of scaled means and of their changes, so that few rows prove nothing."""
MOST = 0.5
"""What is slow: its mean square change in a step is less than this share of its variance, of \
which white noise has 2."""
FIRST = 0.45
"""Where in its level the lowest value lies: not at half, or whole numbers would lie on borders."""


class Slow(eqx.Module):
    """One number of an observation's means, and the width of its levels; 0 where nothing is slow."""

    direction: Float[Array, " means"]
    lowest: Float[Array, ""]
    width: Float[Array, ""]


def nothing(spec: Spec) -> Slow:
    """Before anything is known to be slow."""
    num = spec.shape[-1] if spec.kind == "image" else spec.shape[0]
    return Slow(jnp.zeros(num), jnp.float32(0), jnp.float32(0))


def means(obs: Shaped[Array, "n ..."], kind: str) -> Float[Array, "n means"]:
    """Of every plane, as a sum, or of every channel; a vector's numbers are their own."""
    x = obs.astype(jnp.float32)
    if kind == "vector":
        return x
    return jnp.sum(x, axis=(2, 3)) if kind == "planes" else jnp.mean(x, axis=(1, 2))


def level(slow: Slow, means: Float[Array, "n means"], levels: int) -> Int[Array, " n"]:
    """Steps of one width from the lowest on; all one level where nothing is slow."""
    value = jnp.matmul(means, slow.direction, precision="highest") - slow.lowest
    is_slow = slow.width > 0
    step = jnp.floor(jnp.where(is_slow, value / jnp.where(is_slow, slow.width, 1.0), 0.0))
    return jnp.clip(step, 0, levels - 1).astype(jnp.int32)


def slowest(
    before: Float[Array, "n means"],
    after: Float[Array, "n means"],
    codes: tuple[Int[Array, " n"], Int[Array, " n"], int],
    is_lived: Bool[Array, " n"],
    levels: int,
) -> Slow:
    """The slowest direction of what `codes`, those before and after and how many, leave open.

    Levels share out the values met, and are at least twice as wide as a step's root mean square.
    """
    weight = is_lived.astype(jnp.float32)[:, None]
    num = jnp.maximum(jnp.sum(weight), 1.0)
    table = _by_code(before, *codes[::2], weight)
    x = before - table[codes[0]]
    variance = jnp.sum(weight * x**2, axis=0) / num
    varies = variance > SMALLEST
    scale = jnp.where(varies, jax.lax.rsqrt(jnp.where(varies, variance, 1.0)), 0.0)
    change = (after - table[codes[1]] - x) * scale[None]
    ratio, direction = _least(weight, x * scale[None], change, num)
    direction = direction * scale
    product = partial(jnp.matmul, precision="highest")
    value, step = product(before, direction), product(after - before, direction)
    lowest = jnp.min(jnp.where(is_lived, value, jnp.inf))
    span = jnp.max(jnp.where(is_lived, value, -jnp.inf)) - lowest
    width = 2.0 * jnp.sqrt(jnp.sum(weight[:, 0] * step**2) / num)
    width = jnp.maximum(width, span / max(levels - 1, 1))
    is_slow = (ratio < MOST) & (width > 0)
    kept = lambda x: jnp.where(is_slow, x, 0.0)  # noqa: E731
    return Slow(kept(direction), kept(lowest - FIRST * width), kept(width))


def _by_code(
    x: Float[Array, "n means"], code: Int[Array, " n"], num: int, weight: Float[Array, "n 1"]
) -> Float[Array, "codes means"]:
    """The mean of every code's rows; that of all where it has none."""
    total = jnp.zeros((num, x.shape[1])).at[code].add(weight * x)
    count = jnp.zeros((num, 1)).at[code].add(weight)
    whole = jnp.sum(weight * x, axis=0) / jnp.maximum(jnp.sum(weight), 1.0)
    return jnp.where(count > 0, total / jnp.maximum(count, 1.0), whole[None])


def _least(
    weight: Float[Array, "n 1"],
    x: Float[Array, "n means"],
    change: Float[Array, "n means"],
    num: Float[Array, ""],
) -> tuple[Float[Array, ""], Float[Array, " means"]]:
    """The smallest ratio of mean square change to variance, and its direction."""
    product, eye = partial(jnp.matmul, precision="highest"), RIDGE * jnp.eye(x.shape[1])
    spread = product((weight * x).T, x) / num + eye
    jitter = product((weight * change).T, change) / num + eye
    value, vector = jnp.linalg.eigh(spread)
    whiten = vector * jax.lax.rsqrt(value)[None]
    ratio, turned = jnp.linalg.eigh(product(product(whiten.T, jitter), whiten))
    return ratio[0], product(whiten, turned[:, 0])
