"""From an observation to an embedding: the paper's trunk for binary planes, others for the rest.

An encoder says what its networks see of observations (`see`, computed once for all of them) and
builds fresh networks on top of that (`build`). It has no arrays of its own.
"""

import abc
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, Shaped

from primax.config.schema import NetConfig
from primax.nn import nets
from primax.nn.nets import Linear

SMALL = 8
"""Images are halved until no side is longer than this."""

Observations = Shaped[Array, "n ..."]
Built = tuple[Any, list[Linear]]


@dataclass(frozen=True)
class Encoder(abc.ABC):
    """Abstract; the same object serves observations of any shape of its kind."""

    @abc.abstractmethod
    def see(self, obs: Observations) -> Shaped[Array, "n ..."]:
        """What the first layer wants."""

    @abc.abstractmethod
    def build(
        self, key: PRNGKeyArray, shape: tuple[int, ...], config: NetConfig, *beside: tuple[int, int]
    ) -> Built:
        """A fresh network from what is seen to `config.embedding` numbers, and layers beside it."""


@dataclass(frozen=True)
class Planes(Encoder):
    """Binary planes, channels first: the paper's trunk."""

    def see(self, obs: Observations) -> Float[Array, "n rows cols nine_c"]:
        return nets.patches(obs)

    def build(
        self, key: PRNGKeyArray, shape: tuple[int, ...], config: NetConfig, *beside: tuple[int, int]
    ) -> Built:
        channels, rows, cols = shape
        return nets.with_trunk(key, (channels, rows, cols), config, *beside)


class Strided(eqx.Module):
    """3x3 convolutions with ReLU, those of stride two first, flattened and mapped to an embedding."""

    layers: list[Linear]
    embed: Linear
    strides: tuple[int, ...] = eqx.field(static=True)
    config: NetConfig = eqx.field(static=True)

    def __call__(self, patches: Float[Array, "n rows cols nine_c"]) -> Float[Array, "n embedding"]:
        x = jax.nn.relu(self.layers[0](patches)).astype(self.config.dtype)
        for layer, stride in zip(self.layers[1:], self.strides[1:], strict=True):
            x = jax.nn.relu(layer(nets.patches3x3(x, stride)))
        return _embedded(self.embed, x.reshape(x.shape[0], -1), self.config)


@dataclass(frozen=True)
class Image(Encoder):
    """Bytes, channels last: convolutions that halve the image until it is small."""

    def see(self, obs: Observations) -> Float[Array, "n rows cols nine_c"]:
        stride = strides(obs.shape[1], obs.shape[2])[0]
        scale = 255.0 if jnp.issubdtype(obs.dtype, jnp.integer) else 1.0  # whitened already
        return nets.patches3x3(obs.astype(jnp.float32) / scale, stride)

    def build(
        self, key: PRNGKeyArray, shape: tuple[int, ...], config: NetConfig, *beside: tuple[int, int]
    ) -> Built:
        rows, cols, channels = shape
        steps, shapes = strides(rows, cols), []
        for i, stride in enumerate(steps):
            width = config.second_channels if i else config.first_channels
            shapes.append((9 * channels, width))
            rows, cols, channels = -(-rows // stride), -(-cols // stride), width
        shapes.append((rows * cols * channels, config.embedding))
        made = nets.layers(key, *shapes, *beside)
        num = len(steps)
        return Strided(made[:num], made[num], steps, config), made[num + 1 :]


def strides(rows: int, cols: int) -> tuple[int, ...]:
    """Of the convolutions over an image: twos until it is small, and at least two layers."""
    found, side = [], max(rows, cols)
    while side > SMALL:
        found.append(2)
        side = -(-side // 2)
    return (*found, *[1] * (2 - len(found)))


class Layers(eqx.Module):
    """Two hidden layers with ReLU, mapped to an embedding."""

    hidden: list[Linear]
    embed: Linear
    config: NetConfig = eqx.field(static=True)

    def __call__(self, x: Float[Array, "n inputs"]) -> Float[Array, "n embedding"]:
        x = x.astype(self.config.dtype)
        for layer in self.hidden:
            x = jax.nn.relu(layer(x))
        return _embedded(self.embed, x, self.config)


@dataclass(frozen=True)
class Vector(Encoder):
    """Numbers of any size, brought to one scale before they get here."""

    def see(self, obs: Observations) -> Float[Array, "n inputs"]:
        return obs

    def build(
        self, key: PRNGKeyArray, shape: tuple[int, ...], config: NetConfig, *beside: tuple[int, int]
    ) -> Built:
        """As wide as the embedding, but never under 64: φ of a few numbers needs room all the same."""
        width = max(64, config.embedding)
        shapes = ((shape[0], width), (width, width), (width, config.embedding))
        *hidden, embed = (made := nets.layers(key, *shapes, *beside))[:3]
        return Layers(hidden, embed, config), made[3:]


class Wrapped(eqx.Module):
    """A module of the user's; what in it is no array, such as an activation, is no leaf here."""

    arrays: Any
    rest: Any = eqx.field(static=True)

    def __call__(self, obs: Observations) -> Float[Array, "n embedding"]:
        return eqx.combine(self.arrays, self.rest)(obs)


def named(function: Any) -> str:
    """A function's name with its module's: the same in every process."""
    kind = type(function)
    return f"{getattr(function, '__module__', kind.__module__)}.{getattr(function, '__qualname__', kind.__qualname__)}"


@dataclass(frozen=True)
class Own(Encoder):
    """A network of the user's: `make(key, width)` gives a module from observations to [n, width]."""

    make: Callable[[PRNGKeyArray, int], Any]

    def __repr__(self) -> str:
        return f"Own({named(self.make)})"

    def see(self, obs: Observations) -> Shaped[Array, "n ..."]:
        return obs

    def build(
        self, key: PRNGKeyArray, shape: tuple[int, ...], config: NetConfig, *beside: tuple[int, int]
    ) -> Built:
        k_own, k_beside = jax.random.split(key)
        arrays, rest = eqx.partition(self.make(k_own, config.embedding), eqx.is_array)
        return Wrapped(arrays, rest), nets.layers(k_beside, *beside)


def _embedded(
    embed: Linear, x: Float[Array, "n inputs"], config: NetConfig
) -> Float[Array, "n embedding"]:
    x = embed.shift((x @ embed.weight.astype(x.dtype)).astype(jnp.float32))
    return jax.nn.relu(x) if config.activation == "relu" else x


@dataclass(frozen=True)
class Flat(Encoder):
    """Binary planes as one row of numbers, through two hidden layers."""

    def see(self, obs: Observations) -> Float[Array, "n inputs"]:
        return obs.reshape(obs.shape[0], -1).astype(jnp.float32)

    def build(
        self, key: PRNGKeyArray, shape: tuple[int, ...], config: NetConfig, *beside: tuple[int, int]
    ) -> Built:
        return Vector().build(key, (math.prod(shape),), config, *beside)


def encoder(kind: str, net: NetConfig) -> Encoder:
    """How networks see observations of a kind, unless told otherwise."""
    return Flat() if kind == "planes" and net.planes == "flat" else KINDS[kind]


KINDS: dict[str, Encoder] = {"planes": Planes(), "image": Image(), "vector": Vector()}
"""Kinds of observations, and how networks see each by default."""
