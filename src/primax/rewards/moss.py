"""MOSS: in one part of an episode entropy is sought, in the next it is shunned, by the clock."""

from dataclasses import dataclass, replace
from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from primax.config.fields import Range, check
from primax.config.symbols import Symbol
from primax.nn import nets
from primax.nn.optim import adam_start, adam_step
from primax.rewards.base import Metrics, Reward, Spec
from primax.rewards.parts import forward, normaliser
from primax.rewards.transition import Batch, Obs, Step

NEAREST_CLIP = 5e-4
"""Normalised distances below this count as none."""
TINY = 1e-6


@dataclass(frozen=True)
class MossConfig:
    """Options of MOSS."""

    skill_dim: Annotated[int, Range(1, 1_024)] = 8
    """Numbers of the skill the critics are given."""
    skill_every: Annotated[int, Range(1, 10**6)] = 50
    """Steps after which a new skill is drawn."""
    parts: Annotated[int, Range(1, 10**6)] = 2
    """Parts of an episode: sought, shunned, sought, and so on."""
    features: Annotated[int, Range(1, 4_096)] = 64
    """Width of the encoder in which distances are taken."""
    hidden: Annotated[int, Range(1, 65_536)] = 256
    """Units of the hidden layers that tell skills."""
    neighbours: Annotated[int, Range(1, 1_000)] = 16
    """Nearest states of the minibatch that the entropy is read off."""
    temperature: Annotated[float, Range(1e-3, 1e3)] = 0.5
    """Of the contrastive loss."""
    learning_rate: Annotated[float, Range(0, 1), Symbol("lr")] = 1e-4
    """Adam's step size."""
    grad_clip: Annotated[float, Range(1e-6, 1e9)] = 10.0
    """Largest global gradient norm."""

    def __post_init__(self):
        check(self, "reward.")


class Model(eqx.Module):
    """The encoder, and what is to match: a transition's code and a skill's."""

    encoder: Any
    of_transition: tuple[nets.Linear, nets.Linear]
    of_skill: tuple[nets.Linear, nets.Linear]


class Memo(eqx.Module):
    """Stored with every observation, and seen by the critics."""

    skill: Float[Array, "*n dim"]
    """Positive where entropy is sought, negative where it is shunned."""
    sign: Float[Array, "*n"]


class MossState(eqx.Module):
    """The clock and the skill of the episode under way, the networks, the scale of distances."""

    time: Int[Array, ""]
    drawn: Float[Array, " dim"]
    """The skill without its sign."""
    model: Model
    optimiser: PyTree
    distances: normaliser.Running


class Moss(Reward[MossState]):
    """Particle entropy in the features of a skill encoder, of the sign the clock gives it."""

    uses_keys = False
    needs_horizon = True

    spec: Spec
    config: MossConfig = eqx.field(static=True)

    def init(self, key: PRNGKeyArray) -> MossState:
        config, skill = self.config, self.config.skill_dim
        told = ((2 * config.features, config.hidden), (config.hidden, skill))
        asked = ((skill, config.hidden), (config.hidden, skill))
        encoder, layers = forward.encoder(key, self.spec, config.features, *told, *asked)
        model = Model(encoder, (layers[0], layers[1]), (layers[2], layers[3]))
        return MossState(
            time=jnp.zeros((), jnp.int32),
            drawn=jnp.zeros(skill),
            model=model,
            optimiser=adam_start(model),
            distances=normaliser.start(),
        )

    def stream(self, state: MossState) -> tuple[Int[Array, ""], Float[Array, " dim"]]:
        return state.time, state.drawn

    def with_stream(
        self, state: MossState, stream: tuple[Int[Array, ""], Float[Array, " dim"]]
    ) -> MossState:
        return replace(state, time=stream[0], drawn=stream[1])

    def begin(self, state: MossState, obs: Obs, key: PRNGKeyArray) -> tuple[MossState, Memo]:
        drawn = jax.random.uniform(key, (self.config.skill_dim,))
        state = replace(state, time=jnp.zeros((), jnp.int32), drawn=drawn)
        return state, self._memo(state)

    def observe(self, state: MossState, step: Step, key: PRNGKeyArray) -> tuple[MossState, Memo]:
        time = state.time + 1
        fresh = jax.random.uniform(key, (self.config.skill_dim,))
        drawn = jnp.where(time % self.config.skill_every == 0, fresh, state.drawn)
        state = replace(state, time=time, drawn=drawn)
        return state, self._memo(state)

    def _memo(self, state: MossState) -> Memo:
        # The last observation belongs to the last part: no step is taken from it.
        time = jnp.minimum(state.time, self.spec.horizon - 1)
        part = time // max(1, self.spec.horizon // self.config.parts)
        sign = 1.0 - 2.0 * (part % 2).astype(jnp.float32)
        return Memo(sign * state.drawn, sign)

    def view(self, obs: Obs, memo: Memo) -> Float[Array, "..."]:
        return self.spec.beside(obs, memo.skill)

    @property
    def view_shape(self) -> tuple[int, ...]:
        return self.spec.shape_beside(self.config.skill_dim)

    def _near(
        self, before: Float[Array, "n f"], after: Float[Array, "n f"], batch: Batch
    ) -> tuple[Float[Array, "n num"], Float[Array, "n num"]]:
        """Distances from each state to the nearest that were arrived at, and which there are."""
        num = min(self.config.neighbours, batch.action.shape[0])
        return nearest(before, after, batch.weight, num)

    def _encode(
        self, encoder: Any, batch: Batch
    ) -> tuple[Float[Array, "n f"], Float[Array, "n f"]]:
        """Codes of the states before and after."""
        seen = self.spec.see(jnp.concatenate([batch.obs, batch.next_obs]))
        before, after = jnp.split(encoder(seen), 2)
        return before, after

    def score(self, state: MossState, batch: Batch) -> Float[Array, " batch"]:
        before, after = self._encode(state.model.encoder, batch)
        return batch.memo.sign * entropy(*self._near(before, after, batch), state.distances)

    def learn(self, state: MossState, batch: Batch, key: PRNGKeyArray) -> tuple[MossState, Metrics]:
        """One step toward telling each transition's skill from those of the others."""
        config = self.config

        def loss(model: Model):
            before, after = self._encode(model.encoder, batch)
            says = _two_layers(model.of_transition, jnp.concatenate([before, after], axis=1))
            asks = _two_layers(model.of_skill, batch.memo.skill)
            return contrast(asks, says, batch.weight, config.temperature), (before, after)

        (value, codes), grads = jax.value_and_grad(loss, has_aux=True)(state.model)
        away, is_there = self._near(*codes, batch)
        weight = (is_there * batch.weight[:, None]).astype(jnp.float32)
        distances = normaliser.merge(state.distances, away.reshape(-1), weight.reshape(-1))
        model, optimiser = adam_step(
            state.model,
            grads,
            state.optimiser,
            learning_rate=jnp.float32(config.learning_rate),
            grad_clip=jnp.float32(config.grad_clip),
        )
        metrics = {"skill_loss": value, "distance": distances.mean}
        return replace(state, model=model, optimiser=optimiser, distances=distances), metrics


def nearest(
    before: Float[Array, "n f"], after: Float[Array, "n f"], weight: Float[Array, " n"], num: int
) -> tuple[Float[Array, "n num"], Float[Array, "n num"]]:
    """Each row's `num` smallest distances to what rows led to, and a one for each that exists."""
    square = jnp.sum((before[:, None] - after[None]) ** 2, axis=-1)
    negative, _ = jax.lax.top_k(jnp.where(weight[None] > 0, -square, -jnp.inf), num)
    is_there = jnp.isfinite(negative)
    return jnp.sqrt(jnp.where(is_there, -negative, 0.0)), is_there.astype(jnp.float32)


def entropy(
    away: Float[Array, "n num"], is_there: Float[Array, "n num"], scale: normaliser.Running
) -> Float[Array, " n"]:
    """log(1 + mean of what the distances, brought to scale, exceed the clip by)."""
    ratio = (away - scale.mean) / normaliser.deviation(scale)
    above = is_there * jax.nn.relu(ratio - NEAREST_CLIP)
    return jnp.log1p(jnp.sum(above, axis=1) / jnp.maximum(jnp.sum(is_there, axis=1), 1.0))


def contrast(
    asks: Float[Array, "n dim"],
    says: Float[Array, "n dim"],
    weight: Float[Array, " n"],
    heat: float,
) -> Float[Array, ""]:
    """-log of how much better each code fits its own skill than the skills of all rows together.

    As published, the sum over all rows has e^(1/T) taken off, the most that a row's own can be.
    """
    asks, says = _unit(asks), _unit(says)
    fits = jnp.exp(asks @ says.T / heat)
    others = jnp.maximum(jnp.sum(fits * weight[None], axis=1) - jnp.exp(1.0 / heat), TINY)
    own = jnp.sum(asks * says, axis=1) / heat
    return jnp.mean(weight * (jnp.log(others + TINY) - own))


def _unit(x: Float[Array, "n dim"]) -> Float[Array, "n dim"]:
    return x * jax.lax.rsqrt(jnp.sum(x**2, axis=1, keepdims=True) + TINY**2)


def _two_layers(
    layers: tuple[nets.Linear, nets.Linear], x: Float[Array, "n inputs"]
) -> Float[Array, "n outputs"]:
    first, second = layers
    return second(jax.nn.relu(first(x)))
