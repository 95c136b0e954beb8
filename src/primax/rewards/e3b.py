"""E3B: how far the features of an observation lie outside those that its episode has shown."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from primax.config.fields import Choice, Range, check
from primax.config.symbols import Symbol
from primax.nn.optim import adam_start, adam_step
from primax.rewards.base import Metrics, Reward, Spec
from primax.rewards.parts import normaliser
from primax.rewards.parts.normaliser import KINDS as NORMALISERS
from primax.rewards.prime import inverse
from primax.rewards.transition import Batch, Obs, Step


@dataclass(frozen=True)
class E3bConfig:
    """Options of E3B."""

    features: Annotated[int, Range(1, 4_096)] = 64
    """Width of φ."""
    ridge: Annotated[float, Range(1e-6, 1e9), Symbol("λ")] = 0.1
    """What C is, on its diagonal, when an episode begins."""
    normaliser: Annotated[str, Choice(NORMALISERS)] = "rewards"
    """The bonus is divided by the running standard deviation of the `rewards`, of the `returns` or of \
recent rewards (`moving`); `standard` also subtracts the mean; `none` does not divide."""
    reward_clip: Annotated[float, Range(1e-6, 1e9)] = 5.0
    """Largest reward."""
    learning_rate: Annotated[float, Range(0, 1), Symbol("lr")] = 1e-4
    """Adam's step size."""
    grad_clip: Annotated[float, Range(1e-6, 1e9)] = 40.0
    """Largest global gradient norm."""

    def __post_init__(self):
        check(self, "reward.")


class E3bState(eqx.Module):
    """φ with the model that teaches it, the episode's C⁻¹, and the scale of the bonuses."""

    model: inverse.Inverse
    optimiser: PyTree
    precision: Float[Array, "features features"]
    scale: normaliser.Scale


class E3b(Reward[E3bState]):
    """The bonus is settled when the step is taken: C⁻¹ of that moment is not kept with rows."""

    uses_keys = False

    spec: Spec
    config: E3bConfig = eqx.field(static=True)

    def init(self, key: PRNGKeyArray) -> E3bState:
        model = inverse.init(key, self.spec, self.config.features)
        return E3bState(model, adam_start(model), self._nothing, normaliser.fresh())

    @property
    def _nothing(self) -> Float[Array, "features features"]:
        """C⁻¹ where C = λI."""
        return jnp.eye(self.config.features) / self.config.ridge

    @property
    def reads_memo(self) -> bool:
        return False

    @property
    def pays_once(self) -> bool:
        return True

    def stream(self, state: E3bState) -> tuple[Float[Array, "f f"], Float[Array, ""]]:
        return state.precision, state.scale.filtered

    def with_stream(
        self, state: E3bState, stream: tuple[Float[Array, "f f"], Float[Array, ""]]
    ) -> E3bState:
        precision, filtered = stream
        return replace(state, precision=precision, scale=replace(state.scale, filtered=filtered))

    def _phi(self, state: E3bState, obs: Obs) -> Float[Array, " features"]:
        return inverse.encode(state.model.encoder, self.spec.see(obs[None]))[0]

    def begin(
        self, state: E3bState, obs: Obs, key: PRNGKeyArray
    ) -> tuple[E3bState, Float[Array, ""]]:
        """C begins anew with the first observation, which is paid nothing."""
        precision = added(self._nothing, self._phi(state, obs))
        return replace(state, precision=precision), jnp.zeros(())

    def observe(
        self, state: E3bState, step: Step, key: PRNGKeyArray
    ) -> tuple[E3bState, Float[Array, ""]]:
        """The bonus under what the episode showed before, which is then part of it."""
        kind, phi = self.config.normaliser, self._phi(state, step.next_obs)
        paid = bonus(state.precision, phi)
        scale = normaliser.stream(state.scale, paid, kind, self.spec.gamma)
        scale = normaliser.minibatch(scale, paid[None], jnp.ones(1), kind)
        return replace(state, precision=added(state.precision, phi), scale=scale), paid

    def score(self, state: E3bState, batch: Batch) -> Float[Array, " batch"]:
        worth = normaliser.normalise(state.scale, batch.next_memo, self.config.normaliser)
        return jnp.clip(worth, -self.config.reward_clip, self.config.reward_clip)

    def learn(self, state: E3bState, batch: Batch, key: PRNGKeyArray) -> tuple[E3bState, Metrics]:
        """One step of φ and of the model that tells the action from φ(s) and φ(s')."""
        before, after = self.spec.see(batch.obs), self.spec.see(batch.next_obs)
        loss = partial(
            inverse.loss, before=before, after=after, action=batch.action, weight=batch.weight
        )
        (value, accuracy), grads = jax.value_and_grad(loss, has_aux=True)(state.model)
        model, optimiser = adam_step(
            state.model,
            grads,
            state.optimiser,
            learning_rate=jnp.float32(self.config.learning_rate),
            grad_clip=jnp.float32(self.config.grad_clip),
        )
        metrics = {
            "inverse_loss": value,
            "inverse_accuracy": accuracy,
            "reward_std": normaliser.deviation(state.scale.moments),
        }
        return replace(state, model=model, optimiser=optimiser), metrics


# In full precision: what a product leaves off stays in C⁻¹ to the episode's end.
_product = partial(jnp.matmul, precision="highest")


def bonus(precision: Float[Array, "f f"], phi: Float[Array, " f"]) -> Float[Array, ""]:
    """φᵀ C⁻¹ φ; rounding must not make it negative."""
    return jnp.maximum(_product(phi, _product(precision, phi)), 0.0)


def added(precision: Float[Array, "f f"], phi: Float[Array, " f"]) -> Float[Array, "f f"]:
    """(C + φφᵀ)⁻¹ = C⁻¹ - uuᵀ / (1 + φᵀu) with u = C⁻¹φ (Sherman and Morrison)."""
    u = _product(precision, phi)
    return precision - u[:, None] * u[None, :] / (1.0 + bonus(precision, phi))
