"""φ: the encoder of an inverse-dynamics model, which learns to tell the action from (s, s')."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, Shaped

from primax.nn import nets
from primax.rewards.base import Spec

Seen = Shaped[Array, "n ..."]


class Inverse(eqx.Module):
    """The encoder and the classifier on top of it."""

    encoder: Any
    hidden: nets.Linear
    out: nets.Linear


def init(key: PRNGKeyArray, spec: Spec, features: int) -> Inverse:
    """A fresh model: the trunk mapped to `features`, then 64 hidden units, then the actions."""
    width = spec.net.embedding
    encoder = replace(spec.net, embedding=features, activation="linear")
    shapes = ((2 * features, width), (width, spec.num_actions))
    trunk, (hidden, out) = spec.trunk(key, encoder, *shapes)
    return Inverse(trunk, hidden, out)


def encode(encoder: Any, seen: Seen) -> Float[Array, "n features"]:
    """φ(s), each feature within (-1, 1): the squared norm is at most their number."""
    return jnp.tanh(encoder(seen))


def loss(
    model: Inverse,
    before: Seen,
    after: Seen,
    action: Int[Array, " n"],
    weight: Float[Array, " n"],
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Cross-entropy of the action that led from s to s', and how often it is guessed."""
    both = encode(model.encoder, jnp.concatenate([before, after]))
    pairs = jnp.concatenate(jnp.split(both, 2), axis=-1)
    logits = model.out(jax.nn.relu(model.hidden(pairs)))
    chosen = nets.chosen(jax.nn.log_softmax(logits), action)
    hits = (jnp.argmax(logits, axis=1) == action).astype(jnp.float32)
    return -jnp.mean(weight * chosen), jnp.sum(weight * hits) / jnp.maximum(jnp.sum(weight), 1.0)
