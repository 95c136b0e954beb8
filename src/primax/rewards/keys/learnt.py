"""Learnt keys: a code that is trained, frozen, and renewed now and then.

Training goes on all the time; keys change only when they are renewed, and then everything that was
ever counted is counted again. So counts are always those of the keys in use. Renewals come at
windows 1, 2, 3, 4, 5, 7, 9, ... (by `growth`) and end when the store of steps is full.
"""

import abc
import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from primax.config.fields import Range
from primax.errors import check_range
from primax.nn import nets
from primax.nn.optim import adam_start, adam_step
from primax.rewards.base import Spec
from primax.rewards.keys import slow
from primax.rewards.keys.base import MOST, Keys, Obs
from primax.rewards.transition import Batch, Metrics

GRAD_CLIP = 10.0
"""Largest global gradient norm."""


class Model(eqx.Module):
    """What makes codes, and what they are trained with."""

    coder: PyTree
    teacher: PyTree


class LearntState(eqx.Module):
    """What learns, and what makes keys until they are renewed."""

    live: Model
    optimiser: PyTree
    frozen: PyTree
    slow: slow.Slow


@dataclass(frozen=True, kw_only=True)
class Learnt(Keys):
    """Abstract; a code learns to say which action was taken."""

    slow_levels: Annotated[int, Range(1, 64)] = 8
    """Levels of one number beside the code, for what changes slowly; 1 leaves it out."""
    learning_rate: Annotated[float, Range(0, 1)] = 1e-3
    """Adam's step size."""
    growth: Annotated[float, Range(1.01, 100)] = 1.25
    """Keys are renewed when there are so many times more windows."""
    world: Spec | None = field(default=None, repr=False)
    """What is known of it; set by `fitted`."""

    @property
    def spec(self) -> Spec:
        """What is known of the world."""
        assert self.world is not None
        return self.world

    @property
    @abc.abstractmethod
    def num_codes(self) -> int:
        """How many codes there are."""

    @abc.abstractmethod
    def model(self, key: PRNGKeyArray) -> Model:
        """A fresh model."""

    @abc.abstractmethod
    def code(self, coder: Any, obs: Obs) -> Int[Array, " n"]:
        """The codes of observations."""

    @abc.abstractmethod
    def loss(
        self, model: Model, batch: Batch, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """What training makes small, and the share of actions that are told."""

    @property
    def learns(self) -> bool:
        return True

    @property
    def num(self) -> int:
        return self.num_codes * self.slow_levels

    def fitted(self, spec: Spec) -> Keys:
        made = replace(self, world=spec)
        check_range(f"{type(self).__name__}: codes times slow_levels", made.num, 1, MOST)
        return made

    def init(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> LearntState:
        live = self.model(key)
        return LearntState(live, adam_start(live), live.coder, slow.nothing(self.spec))

    def of(self, state: LearntState, obs: Obs) -> Int[Array, " n"]:
        means = slow.means(obs, self.spec.kind)
        level = slow.level(state.slow, means, self.slow_levels)
        return self.code(state.frozen, obs) * self.slow_levels + level

    def learn(
        self, state: LearntState, batch: Batch, key: PRNGKeyArray
    ) -> tuple[LearntState, Metrics]:
        grad = jax.value_and_grad(self.loss, has_aux=True)
        (value, accuracy), grads = grad(state.live, batch, key)
        live, optimiser = adam_step(
            state.live,
            grads,
            state.optimiser,
            learning_rate=jnp.float32(self.learning_rate),
            grad_clip=jnp.float32(GRAD_CLIP),
        )
        metrics = {"keys_loss": value, "keys_accuracy": accuracy}
        return replace(state, live=live, optimiser=optimiser), metrics

    def renewals(self, windows: int) -> list[int]:
        found, at = [], 1
        while at < windows:
            found.append(at)
            at = max(at + 1, math.ceil(at * self.growth))
        return found

    def renew(
        self, state: LearntState, obs: Obs, next_obs: Obs, is_lived: Bool[Array, " n"]
    ) -> LearntState:
        coder, kind = state.live.coder, self.spec.kind
        some = partial(self.code, coder)
        before, after = (nets.map_chunks(some, x) for x in (obs, next_obs))
        found = slow.slowest(
            slow.means(obs, kind),
            slow.means(next_obs, kind),
            (before, after, self.num_codes),
            is_lived,
            self.slow_levels,
        )
        return replace(state, frozen=coder, slow=found)


def told(
    log_chance: Float[Array, "n actions"], batch: Batch
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Cross-entropy of the actions taken, and the share of them that was thought likeliest."""
    weight = batch.weight
    taken = jnp.take_along_axis(log_chance, batch.action[:, None], axis=1)[:, 0]
    hits = (jnp.argmax(log_chance, axis=1) == batch.action).astype(jnp.float32)
    return -jnp.mean(weight * taken), jnp.sum(weight * hits) / jnp.maximum(jnp.sum(weight), 1.0)
