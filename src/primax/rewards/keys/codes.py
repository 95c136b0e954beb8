"""Codes: a few whole numbers from which an inverse model can tell the action."""

from dataclasses import dataclass
from typing import Annotated, Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from primax.config.fields import Range, check
from primax.rewards.keys.base import Obs
from primax.rewards.keys.encoded import features, inverse, pairs
from primax.rewards.keys.learnt import Learnt, Model, told
from primax.rewards.transition import Batch

GAIN = 10.0
"""What the encoder's numbers are multiplied by: observations not met yet shall not share one code."""


@dataclass(frozen=True, kw_only=True)
class Codes(Learnt):
    """Rounded features (Mentzer et al. 2024) of an inverse model (Pathak et al. 2017)."""

    dims: Annotated[int, Range(1, 16)] = 4
    """Whole numbers in a code."""
    levels: Annotated[int, Range(2, 64)] = 8
    """Values that each of them takes."""

    def __post_init__(self):
        check(self, "Codes: ")

    @property
    def num_codes(self) -> int:
        return self.levels**self.dims

    def model(self, key: PRNGKeyArray) -> Model:
        return Model(*inverse(key, self.spec, self.dims))

    def code(self, coder: Any, obs: Obs) -> Int[Array, " n"]:
        digits = jnp.floor(self._spread(coder, obs)).astype(jnp.int32)
        places = self.levels ** jnp.arange(self.dims)
        return jnp.sum(jnp.clip(digits, 0, self.levels - 1) * places[None], axis=1)

    def _spread(self, coder: Any, obs: Obs) -> Float[Array, "n dims"]:
        """The code before it is rounded down, within (0, levels)."""
        return self.levels * jax.nn.sigmoid(GAIN * features(coder, self.spec, obs))

    def loss(
        self, model: Model, batch: Batch, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Of rounded codes, to which a level's width of noise was added before.

        So a difference that decides nothing is not worth keeping. Rounding passes the gradient on.
        """
        value = self._spread(model.coder, jnp.concatenate([batch.obs, batch.next_obs]))
        value = value + jax.random.uniform(key, value.shape) - 0.5
        code = value + jax.lax.stop_gradient(jnp.floor(value) + 0.5 - value)
        return told(model.teacher(pairs(2.0 * code / self.levels - 1.0)), batch)
