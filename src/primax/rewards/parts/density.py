"""The episode's own density: a Bernoulli for every cell of every plane, independent of each other."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Shaped, UInt, UInt8

from primax.rewards.base import Spec

NEVER = 1e-4
"""No cell is held more certain than this, set or not."""


class Density(eqx.Module):
    """How often each cell was set since the episode began, and in how many observations."""

    total: UInt[Array, "*n c rows cols"]
    num: UInt[Array, "*n"]


def start(spec: Spec) -> Density:
    """One observation with nothing in it."""
    spec.need_planes("a density of cells")
    # An episode adds its horizon and perhaps its first observation; the smallest type that counts so far.
    most = spec.horizon + 2
    kind = jnp.uint8 if most < 2**8 else jnp.uint16 if most < 2**16 else jnp.uint32
    return Density(jnp.zeros(spec.shape, kind), jnp.ones((), kind))


def add(density: Density, obs: UInt8[Array, "c rows cols"]) -> Density:
    """With one observation more."""
    kind = density.num.dtype
    return Density(density.total + obs.astype(kind), density.num + jnp.ones((), kind))


def theta(density: Density, prior: float = 0.0) -> Float[Array, "*n c rows cols"]:
    """The chance that each cell is set, kept away from certainty; with Laplace's prior at 1."""
    # Rows of the ring that were never written hold no observation at all.
    num = jnp.maximum(density.num, 1).astype(jnp.float32)[..., None, None, None]
    total = density.total.astype(jnp.float32)
    return jnp.clip((total + prior) / (num + 2.0 * prior), NEVER, 1.0 - NEVER)


def log_density(
    density: Density,
    obs: UInt8[Array, "*n c rows cols"],
    prior: float = 0.0,
    planes: tuple[int, ...] | None = None,
) -> Float[Array, "*n"]:
    """log p of observations, in nats, under what was seen before them; of the named planes, or all."""
    chance, x = theta(density, prior), obs.astype(jnp.float32)
    cells = x * jnp.log(chance) + (1.0 - x) * jnp.log1p(-chance)
    sums = jnp.sum(cells, axis=(-2, -1))
    return jnp.sum(sums if planes is None else sums[..., jnp.array(planes)], axis=-1)


def entropy(density: Density) -> Float[Array, "*n"]:
    """Of an observation drawn from it, in nats."""
    chance = theta(density)
    cells = chance * jnp.log(chance) + (1.0 - chance) * jnp.log1p(-chance)
    return -jnp.sum(cells, axis=(-3, -2, -1))


def view(
    obs: UInt8[Array, "*n c rows cols"],
    density: Density,
    horizon: int,
    *more: Shaped[Array, "*n"],
    is_summed: bool = False,
    prior: float = 0.0,
) -> Float[Array, "*n views rows cols"]:
    """The observation, the density of each plane, how much of the time is gone, and other numbers.

    Summed, the densities of all planes are one plane: how much is expected in each cell.
    """

    def plane(x: Shaped[Array, "*n"]) -> Float[Array, "*n 1 rows cols"]:
        whole = (*x.shape, 1, *obs.shape[-2:])
        return jnp.broadcast_to(x.astype(jnp.float32)[..., None, None, None], whole)

    clock = density.num.astype(jnp.float32) / horizon
    chance = theta(density, prior)
    chance = jnp.sum(chance, axis=-3, keepdims=True) if is_summed else chance
    planes = [obs.astype(jnp.float32), chance, plane(clock), *map(plane, more)]
    return jnp.concatenate(planes, axis=-3)
