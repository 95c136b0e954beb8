"""Networks as plain arrays: the convolutional trunk of the paper, and ensembles of it.

Everything here is written for one network; an ensemble is a `vmap` over leading axes of the
parameters. Convolutions are patches and one matrix product: `lax.conv` under vmap is several times
slower, and the patches of the observation are shared by every network that sees it. On a GPU the
trunk runs as kernels of its own where it can; on a CPU a large second convolution is XLA's own, one
network after another.
"""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, Shaped

from primax.config.schema import NetConfig
from primax.nn import kernels

DIRECT = 3_000_000
"""Multiplications of a convolution from which on a CPU does without patches; measured."""


class Linear(eqx.Module):
    """An affine map."""

    weight: Float[Array, "*n inputs outputs"]
    bias: Float[Array, "*n outputs"]

    def __call__(self, x: Float[Array, "*batch inputs"]) -> Float[Array, "*batch outputs"]:
        return self.shift(x @ self.weight.astype(x.dtype))

    def shift(self, product: Float[Array, "*batch outputs"]) -> Float[Array, "*batch outputs"]:
        """Adds the bias."""
        return product + jnp.broadcast_to(self.bias.astype(product.dtype), product.shape)


class Trunk(eqx.Module):
    """Two 3x3 convolutions with ReLU, flattened and mapped to an embedding."""

    first: Linear
    second: Linear
    embed: Linear
    config: NetConfig = eqx.field(static=True)

    def __call__(
        self, patches: Float[Array, "batch rows cols nine_c"]
    ) -> Float[Array, "batch embedding"]:
        x = self._by_kernels(patches) if self._fits(patches) else self._by_products(patches)
        x = self.embed.shift(x)
        return jax.nn.relu(x) if self.config.activation == "relu" else x

    def _fits(self, patches: Float[Array, "batch rows cols nine_c"]) -> bool:
        config, (rows, cols, nine_c) = self.config, patches.shape[1:]
        widths = (config.first_channels, config.second_channels, self.embed.bias.shape[-1])
        is_wanted = config.kernels and config.precision != "highest"
        return is_wanted and kernels.works(rows, cols, nine_c // 9, widths, self._factors)

    @property
    def _factors(self) -> str:
        """What the kernels round factors to: float16 is as fine as TF32, and half the memory."""
        return "float16" if self.config.precision == "default" else self.config.dtype

    def _by_kernels(
        self, patches: Float[Array, "batch rows cols nine_c"]
    ) -> Float[Array, "batch embedding"]:
        middle = jnp.split(patches, 9, axis=-1)[4]
        first = self.first.weight, self.first.bias
        second = self.second.weight, self.second.bias
        return kernels.trunk(middle, first, second, self.embed.weight, self._factors)

    def _by_products(
        self, patches: Float[Array, "batch rows cols nine_c"]
    ) -> Float[Array, "batch embedding"]:
        x = jax.nn.relu(self.first(patches)).astype(self.config.dtype)
        x = jax.nn.relu(conv3x3(self.second, x, way(self.second, x)))
        x = x.reshape(x.shape[0], -1)
        return (x @ self.embed.weight.astype(x.dtype)).astype(jnp.float32)


class Net(eqx.Module):
    """A trunk and a linear output layer."""

    trunk: Any
    head: Linear

    def __call__(self, seen: Shaped[Array, "batch ..."]) -> Float[Array, "batch outputs"]:
        return self.head(self.trunk(seen))


def way(layer: Linear, x: Float[Array, "batch rows cols c"]) -> str:
    """How `conv3x3` is fastest: arithmetic is cheap on a GPU, and memory near it small on a CPU."""
    backend, products = jax.default_backend(), 9 * math.prod(x.shape) * layer.bias.shape[-1]
    if backend == "gpu" and x.shape[2] <= 16:
        return "rows"
    is_direct = backend == "cpu" and x.dtype == jnp.float32 and products > DIRECT
    return "direct" if is_direct else "cells"


def conv3x3(
    layer: Linear, x: Float[Array, "batch rows cols c"], way: str
) -> Float[Array, "batch rows cols d"]:
    """A 3x3 convolution with zero padding.

    By `cells` (im2col) it is one product, for which every input is copied nine times. By `rows` it
    is copied three times and multiplied by a banded matrix that is mostly zeros: more arithmetic,
    less than half the memory traffic. `direct` copies nothing. All compute the same function.
    """
    rows, cols, c = x.shape[1:]
    if way == "cells":
        return layer(patches3x3(x))
    if way == "direct":
        return layer.shift(_direct(x, layer.weight.reshape(3, 3, c, -1)))
    padded = jnp.pad(x, ((0, 0), (1, 1), (0, 0), (0, 0))).reshape(-1, rows + 2, cols * c)
    three = jnp.concatenate([padded[:, i : i + rows] for i in range(3)], axis=-1)
    kernel = layer.weight.astype(x.dtype).reshape(3, 3, c, -1)
    shifted = [
        jnp.pad(kernel, ((0, 0), (col, cols - 1 - col), (0, 0), (0, 0))) for col in range(cols)
    ]
    band = jnp.stack(shifted, axis=3)[:, 1:-1].reshape(3 * cols * c, -1)
    return layer.shift((three @ band).reshape(-1, rows, cols, kernel.shape[-1]))


@jax.custom_batching.custom_vmap
def _convolve(
    x: Float[Array, "n rows cols c"], kernel: Float[Array, "i j c d"]
) -> Float[Array, "n down across d"]:
    """XLA's convolution, padded by one, in the order of axes in which a CPU is fast at it."""
    axes = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), [(1, 1)] * 2, dimension_numbers=axes)


@_convolve.def_vmap
def _(num: int, is_mapped: list[bool], *pair: Float[Array, "..."]) -> tuple[Array, bool]:
    """A network at a time, eight of them written out: the cores then share these out."""
    whole = [x if m else jnp.stack([x] * num) for x, m in zip(pair, is_mapped, strict=True)]
    each = lambda _, pair: (None, _convolve(*pair))  # noqa: E731
    return jax.lax.scan(each, None, whole, unroll=min(num, 8))[1], True


@jax.custom_vjp
def _direct(
    x: Float[Array, "n rows cols c"], kernel: Float[Array, "3 3 c d"]
) -> Float[Array, "n rows cols d"]:
    """A 3x3 convolution whose gradients, in x and in the kernel, are `_convolve` as well."""
    return _convolve(x, kernel)


def _direct_back(
    pair: tuple[Array, Array], g: Float[Array, "n rows cols d"]
) -> tuple[Array, Array]:
    x, kernel = pair
    of_kernel = _convolve(jnp.swapaxes(x, 0, 3), jnp.moveaxis(g, 0, 2))
    return _convolve(g, jnp.swapaxes(kernel[::-1, ::-1], 2, 3)), jnp.moveaxis(of_kernel, 0, 2)


_direct.defvjp(lambda x, kernel: (_convolve(x, kernel), (x, kernel)), _direct_back)


def patches3x3(
    x: Float[Array, "batch rows cols c"], stride: int = 1
) -> Float[Array, "batch down across nine_c"]:
    """The 3x3 surroundings of each cell, or of every other; zero beyond the edge."""
    rows, cols = x.shape[1:3]
    padded = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    shifts = [
        padded[:, i : i + rows : stride, j : j + cols : stride] for i in range(3) for j in range(3)
    ]
    return jnp.concatenate(shifts, axis=-1)


def patches(planes: Shaped[Array, "batch c rows cols"]) -> Float[Array, "batch rows cols nine_c"]:
    """Observations as the first layer wants them; computed once for all networks."""
    return patches3x3(jnp.moveaxis(planes, 1, -1).astype(jnp.float32))


def chosen(
    x: Float[Array, "batch n *rest"], index: Int[Array, " batch"]
) -> Float[Array, "batch *rest"]:
    """Each row's entry at its index; by a mask, for a gather's gradient is a scatter."""
    is_it = jax.nn.one_hot(index, x.shape[1], dtype=bool)
    is_it = is_it.reshape(*is_it.shape, *[1] * (x.ndim - 2))
    return jnp.sum(jnp.where(jnp.broadcast_to(is_it, x.shape), x, 0.0), axis=1)


def map_chunks(function: Callable[[Any], Any], rows: Any, at_once: int = 512) -> Any:
    """`function` of many rows, some at a time: what it needs in between stays small."""
    num = jax.tree.leaves(rows)[0].shape[0]
    at_once = max(1, min(num, at_once))

    def parted(x: Shaped[Array, "n *rest"]) -> Shaped[Array, "parts some *rest"]:
        filled = jnp.pad(x, ((0, -num % at_once), *[(0, 0)] * (x.ndim - 1)))
        return filled.reshape(-1, at_once, *x.shape[1:])

    done = jax.lax.map(function, jax.tree.map(parted, rows))
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[:num], done)


def layers(key: PRNGKeyArray, *shapes: tuple[int, int]) -> list[Linear]:
    """Fresh layers, (inputs, outputs) each: uniform within one over the root of the inputs.

    One draw serves them all: a draw a layer takes the compiler longer than all that trains them.
    """
    sizes = [(inputs + 1) * outputs for inputs, outputs in shapes]
    draws = jax.random.uniform(key, (sum(sizes),), minval=-1.0, maxval=1.0)
    made, start = [], 0
    for (inputs, outputs), size in zip(shapes, sizes, strict=True):
        part = draws[start : start + size].reshape(inputs + 1, outputs) * inputs**-0.5
        made.append(Linear(part[:-1], part[-1]))
        start += size
    return made


def _shapes(planes: tuple[int, ...], config: NetConfig) -> list[tuple[int, int]]:
    c, rows, cols = planes
    return [
        (9 * c, config.first_channels),
        (9 * config.first_channels, config.second_channels),
        (rows * cols * config.second_channels, config.embedding),
    ]


def with_trunk(
    key: PRNGKeyArray,
    planes: tuple[int, ...],
    config: NetConfig,
    *shapes: tuple[int, int],
) -> tuple[Trunk, list[Linear]]:
    """A fresh trunk for observations of the given planes, and layers of other shapes beside it."""
    first, second, embed, *rest = layers(key, *_shapes(planes, config), *shapes)
    return Trunk(first, second, embed, config), rest


def net(key: PRNGKeyArray, planes: tuple[int, ...], config: NetConfig, outputs: int) -> Net:
    """A fresh trunk with an output layer."""
    trunk, (head,) = with_trunk(key, planes, config, (config.embedding, outputs))
    return Net(trunk, head)
