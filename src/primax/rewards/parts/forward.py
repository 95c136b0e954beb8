"""Forward models: from the features of a state and the action to the features of the next."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from primax.nn import nets
from primax.rewards.base import Spec


class Forward(eqx.Module):
    """One hidden layer on the features and the one-hot action."""

    hidden: nets.Linear
    out: nets.Linear

    def __call__(
        self, features: Float[Array, "n features"], action: Int[Array, " n"]
    ) -> Float[Array, "n features"]:
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
