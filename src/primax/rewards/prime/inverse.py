"""φ: the encoder of an inverse-dynamics model, which learns to tell the action from (s, s')."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from primax.config.schema import NetConfig
from primax.nn import nets

Patches = Float[Array, "n rows cols nine_c"]


class Inverse(eqx.Module):
    """The encoder and the classifier on top of it."""

    encoder: nets.Trunk
    hidden: nets.Linear
    out: nets.Linear


def init(
    key: PRNGKeyArray, planes: tuple[int, int, int], net: NetConfig, features: int, actions: int
) -> Inverse:
    """A fresh model: the trunk mapped to `features`, then 64 hidden units, then the actions."""
    encoder = replace(net, embedding=features, activation="linear")
    shapes = ((2 * features, net.embedding), (net.embedding, actions))
    trunk, (hidden, out) = nets.with_trunk(key, planes, encoder, *shapes)
    return Inverse(trunk, hidden, out)


def encode(encoder: nets.Trunk, patches: Patches) -> Float[Array, "n features"]:
    """φ(s), each feature within (-1, 1): the squared norm is at most their number."""
    return jnp.tanh(encoder(patches))


def loss(
    model: Inverse,
    before: Patches,
    after: Patches,
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
