"""SimHash of an encoder: signs of random projections of what an inverse model sees."""

from dataclasses import dataclass, replace
from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from primax.config.fields import Range, check
from primax.nn.nets import Linear
from primax.rewards.base import Spec
from primax.rewards.keys.base import MOST, Obs
from primax.rewards.keys.learnt import Learnt, Model, told
from primax.rewards.keys.simhash import hashed
from primax.rewards.transition import Batch

FEATURES = 32
"""Numbers that the encoder makes of an observation."""


class Projected(eqx.Module):
    """The encoder, and the directions whose signs are the code; these do not learn."""

    encoder: Any
    directions: Float[Array, "features bits"]


class Classifier(eqx.Module):
    """From two encodings to the action."""

    hidden: Linear
    out: Linear

    def __call__(self, pairs: Float[Array, "n numbers"]) -> Float[Array, "n actions"]:
        """The logarithm of each action's chance."""
        return jax.nn.log_softmax(self.out(jax.nn.relu(self.hidden(pairs))))


@dataclass(frozen=True, kw_only=True)
class Encoded(Learnt):
    """SimHash (Tang et al. 2017) of the features of an inverse model (Pathak et al. 2017)."""

    bits: Annotated[int, Range(1, 32)] = 32
    """Signs in a code."""
    size: Annotated[int, Range(2, MOST)] = 65_536
    """Codes that these are spread over, where there are more."""

    def __post_init__(self):
        check(self, "Encoded: ")

    @property
    def num_codes(self) -> int:
        return min(2**self.bits, self.size)

    def model(self, key: PRNGKeyArray) -> Model:
        k_layers, k_directions = jax.random.split(key)
        encoder, classifier = inverse(k_layers, self.spec, FEATURES)
        directions = jax.random.normal(k_directions, (FEATURES, self.bits))
        return Model(Projected(encoder, directions), classifier)

    def code(self, coder: Projected, obs: Obs) -> Int[Array, " n"]:
        seen = jnp.tanh(features(coder.encoder, self.spec, obs))
        return hashed(seen, coder.directions, self.size)

    def loss(
        self, model: Model, batch: Batch, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        both = jnp.concatenate([batch.obs, batch.next_obs])
        seen = jnp.tanh(features(model.coder.encoder, self.spec, both))
        return told(model.teacher(pairs(seen)), batch)


def inverse(key: PRNGKeyArray, spec: Spec, num: int) -> tuple[Any, Classifier]:
    """A trunk to so many features, by products alone, and a classifier of two of them."""
    net = replace(spec.net, embedding=num, activation="linear", precision="highest", kernels=False)
    shapes = ((2 * num, spec.net.embedding), (spec.net.embedding, spec.num_actions))
    trunk, (hidden, out) = spec.trunk(key, net, *shapes)
    return trunk, Classifier(hidden, out)


def features(encoder: Any, spec: Spec, obs: Obs) -> Float[Array, "n features"]:
    """In full precision: a code must not depend on how many rows are asked at once."""
    with jax.default_matmul_precision("highest"):
        return encoder(spec.see(obs))


def pairs(both: Float[Array, "twice features"]) -> Float[Array, "n two_features"]:
    """What was seen before a step beside what was seen after."""
    return jnp.concatenate(jnp.split(both, 2), axis=-1)
