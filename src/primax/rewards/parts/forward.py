"""Forward models: from the features of a state and the action to the features of the next, or to it."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from primax.nn import nets
from primax.rewards.base import Spec
from primax.rewards.transition import Obs


class Forward(eqx.Module):
    """One hidden layer on the features and the one-hot action."""

    hidden: nets.Linear
    out: nets.Linear

    def __call__(
        self, features: Float[Array, "n features"], action: Int[Array, " n"]
    ) -> Float[Array, "n outputs"]:
        num_actions = self.hidden.weight.shape[0] - features.shape[1]
        chosen = jax.nn.one_hot(action, num_actions)
        return self.out(jax.nn.relu(self.hidden(jnp.concatenate([features, chosen], axis=1))))


def shapes(features: int, actions: int, hidden: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Of its two layers."""
    return (features + actions, hidden), (hidden, features)


def model(key: PRNGKeyArray, features: int, actions: int, hidden: int) -> Forward:
    """A fresh model."""
    return Forward(*nets.layers(key, *shapes(features, actions, hidden)))


def encoder(
    key: PRNGKeyArray, spec: Spec, features: int, *others: tuple[int, int]
) -> tuple[Any, list[nets.Linear]]:
    """The trunk mapped to `features` numbers of either sign, and layers beside it."""
    net = replace(spec.net, embedding=features, activation="linear")
    return spec.trunk(key, net, *others)


def heads(
    key: PRNGKeyArray, spec: Spec, hidden: int, *outputs: int
) -> tuple[Any, tuple[Forward, ...]]:
    """A trunk and, on its embedding and the action, one model for each of these numbers of outputs."""
    width = spec.net.embedding + spec.num_actions
    pairs = [pair for num in outputs for pair in ((width, hidden), (hidden, num))]
    trunk, layers = spec.trunk(key, spec.net, *pairs)
    return trunk, tuple(map(Forward, layers[::2], layers[1::2]))


def numbers(spec: Spec, obs: Obs) -> Float[Array, "n numbers"]:
    """Observations as what is to be predicted: bytes of an image over 255, all else as it is."""
    scale = 255.0 if spec.kind == "image" else 1.0
    return obs.reshape(obs.shape[0], -1).astype(jnp.float32) / scale
