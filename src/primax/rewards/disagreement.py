"""Disagreement: how much forward models that learnt the same differ on what comes next."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from primax.config.fields import Choice, Range, check
from primax.config.symbols import Symbol
from primax.nn import nets
from primax.nn.optim import adam_start, adam_step
from primax.rewards.base import Metrics, Reward, Spec
from primax.rewards.parts import forward, normaliser
from primax.rewards.parts.normaliser import KINDS as NORMALISERS
from primax.rewards.transition import Batch, Obs, Step


@dataclass(frozen=True)
class DisagreementConfig:
    """Options of Disagreement."""

    models: Annotated[int, Range(2, 100), Symbol("K")] = 5
    """Forward models."""
    features: Annotated[int, Range(1, 4_096)] = 64
    """Width of the frozen random features they predict."""
    hidden: Annotated[int, Range(1, 65_536)] = 256
    """Units of a model's hidden layer."""
    whiten: bool = False
    """Whether features are centred, divided by their running deviation and clipped at 5."""
    prediction_clip: Annotated[float, Range(1e-6, 1e9)] = 5.0
    """Largest prediction, up or down, when they are compared."""
    keep: Annotated[float, Range(1e-6, 1)] = 0.8
    """Chance that a model learns from a row, drawn for each model by itself."""
    normaliser: Annotated[str, Choice(NORMALISERS)] = "rewards"
    """The variance is divided by the running standard deviation of the `rewards`, of the `returns` or of \
recent rewards (`moving`); `standard` also subtracts the mean; `none` does not divide."""
    learning_rate: Annotated[float, Range(0, 1), Symbol("lr")] = 3e-4
    """Adam's step size."""
    grad_clip: Annotated[float, Range(1e-6, 1e9)] = 10.0
    """Largest global gradient norm of one model."""

    def __post_init__(self):
        check(self, "reward.")


class DisagreementState(eqx.Module):
    """A random encoder, which never changes, and the models; theirs lead with the models' axis."""

    encoder: Any
    models: forward.Forward
    optimiser: PyTree
    moments: normaliser.Running
    """Of the features, where they are whitened."""
    scale: normaliser.Scale


class Disagreement(Reward[DisagreementState]):
    """Variance over the models, which noise that all have learnt does not raise."""

    uses_keys = False

    spec: Spec
    config: DisagreementConfig = eqx.field(static=True)

    def init(self, key: PRNGKeyArray) -> DisagreementState:
        k_encoder, k_models = jax.random.split(key)
        config, spec = self.config, self.spec
        encoder, _ = forward.encoder(k_encoder, spec, config.features)
        one = lambda key: forward.model(key, config.features, spec.num_actions, config.hidden)  # noqa: E731
        models = jax.vmap(one)(jax.random.split(k_models, config.models))
        return DisagreementState(
            encoder=encoder,
            models=models,
            optimiser=jax.vmap(adam_start)(models),
            moments=normaliser.start((config.features,)),
            scale=normaliser.fresh(),
        )

    @property
    def observes(self) -> bool:
        return self.config.normaliser == "returns"

    def stream(self, state: DisagreementState) -> Float[Array, ""]:
        return state.scale.filtered

    def with_stream(self, state: DisagreementState, stream: Float[Array, ""]) -> DisagreementState:
        return replace(state, scale=replace(state.scale, filtered=stream))

    def observe(
        self, state: DisagreementState, step: Step, key: PRNGKeyArray
    ) -> tuple[DisagreementState, tuple]:
        kind = self.config.normaliser
        if kind == "returns":
            found = self.variance(state, step.obs[None], step.action[None])[0]
            scale = normaliser.stream(state.scale, found, kind, self.spec.gamma)
            state = replace(state, scale=scale)
        return state, ()

    def variance(
        self,
        state: DisagreementState,
        obs: Obs,
        action: Int[Array, " n"],
    ) -> Float[Array, " n"]:
        """What the models disagree by at each (s, a)."""
        codes = nets.map_chunks(lambda obs: state.encoder(self.spec.see(obs)), obs)
        features = self._features(state, codes)
        says = jax.vmap(lambda model: model(features, action))(state.models)
        return spread(says, self.config.prediction_clip)

    def _features(
        self, state: DisagreementState, codes: Float[Array, "n features"]
    ) -> Float[Array, "n features"]:
        """What is predicted, and from what: the encoder's codes or, whitened, those at one scale."""
        if not self.config.whiten:
            return codes
        return normaliser.whitened(state.moments, codes, normaliser.SMALLEST)

    def worth(
        self,
        state: DisagreementState,
        obs: Obs,
        action: Int[Array, " n"],
    ) -> Float[Array, " n"]:
        """The variance at the scale of the past."""
        found = self.variance(state, obs, action)
        return normaliser.normalise(state.scale, found, self.config.normaliser)

    def score(self, state: DisagreementState, batch: Batch) -> Float[Array, " batch"]:
        return self.worth(state, batch.obs, batch.action)

    def learn(
        self, state: DisagreementState, batch: Batch, key: PRNGKeyArray
    ) -> tuple[DisagreementState, Metrics]:
        """One step of every model on the minibatch, less the rows it happens to miss."""
        config, num = self.config, batch.action.shape[0]
        codes = state.encoder(self.spec.see(jnp.concatenate([batch.obs, batch.next_obs])))
        before, after = jnp.split(self._features(state, codes), 2)
        kept = jax.random.bernoulli(key, config.keep, (config.models, num)).astype(jnp.float32)

        def loss(model: forward.Forward, kept: Float[Array, " batch"]):
            says = model(before, batch.action)
            error = jnp.mean((says - after) ** 2, axis=-1)
            return jnp.mean(kept * batch.weight * error), says

        (losses, says), grads = jax.vmap(jax.value_and_grad(loss, has_aux=True))(state.models, kept)
        rates = {
            "learning_rate": jnp.float32(config.learning_rate),
            "grad_clip": jnp.float32(config.grad_clip),
        }
        models, optimiser = jax.vmap(partial(adam_step, **rates))(
            state.models, grads, state.optimiser
        )
        found = spread(says, config.prediction_clip)
        scale = normaliser.minibatch(state.scale, found, batch.weight, config.normaliser)
        if config.whiten:
            weight = jnp.broadcast_to(batch.weight[:, None], after.shape)
            state = replace(state, moments=normaliser.merge(state.moments, codes[num:], weight))
        metrics = {
            "forward_loss": jnp.mean(losses),
            "reward_std": normaliser.deviation(scale.moments),
        }
        return replace(state, models=models, optimiser=optimiser, scale=scale), metrics


def spread(says: Float[Array, "models n features"], clip: float) -> Float[Array, " n"]:
    """The variance over models (biased) of their clipped predictions, averaged over features."""
    return jnp.mean(jnp.var(jnp.clip(says, -clip, clip), axis=0), axis=-1)
