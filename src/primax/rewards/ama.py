"""AMA: how far a forward model is off, less how far it expects to be off by chance.

Aleatoric mapping agents (Mavor-Parker, Young, Barry & Griffin 2022). The model says a mean and a
variance of every number of the next observation. What is noise ends up in the variance.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree, Shaped

from primax.config.fields import Choice, Range, check
from primax.config.symbols import Symbol
from primax.nn.optim import adam_start, adam_step
from primax.rewards.base import Metrics, Reward, Spec
from primax.rewards.parts import forward, normaliser
from primax.rewards.parts.normaliser import KINDS as NORMALISERS
from primax.rewards.transition import Batch, Obs, Step


@dataclass(frozen=True)
class AmaConfig:
    """Options of AMA."""

    hidden: Annotated[int, Range(1, 65_536)] = 256
    """Units of the hidden layer of the mean's model and of the variance's."""
    variance_weight: Annotated[float, Range(0, 1e9), Symbol("η")] = 1.0
    """How much of the predicted variance is taken from the squared error."""
    log_weight: Annotated[float, Range(1e-6, 1e9), Symbol("λ")] = 1.0
    """Weight of the log-variance in the loss; the variance learns the squared error over this."""
    noise: Annotated[float, Range(1e-9, 1e9)] = 0.01
    """Variance of the noise that the loss adds to every number of the next observation."""
    normaliser: Annotated[str, Choice(NORMALISERS)] = "moving"
    """The difference is divided by the running standard deviation of the `rewards`, of the `returns` or \
of recent rewards (`moving`); `standard` also subtracts the mean; `none` does not divide."""
    reward_clip: Annotated[float, Range(1e-6, 1e9)] = 5.0
    """Largest reward, up or down."""
    learning_rate: Annotated[float, Range(0, 1), Symbol("lr")] = 1e-4
    """Adam's step size."""
    grad_clip: Annotated[float, Range(1e-6, 1e9)] = 10.0
    """Largest global gradient norm."""

    def __post_init__(self):
        check(self, "reward.")


class Model(eqx.Module):
    """A trunk, and what it says of the next observation given the action."""

    trunk: Any
    mean: forward.Forward
    log_variance: forward.Forward

    def __call__(
        self, seen: Shaped[Array, "n ..."], action: Int[Array, " n"]
    ) -> tuple[Float[Array, "n numbers"], Float[Array, "n numbers"]]:
        embedding = self.trunk(seen)
        log_variance = self.log_variance(embedding, action)
        return self.mean(embedding, action), jnp.exp(log_variance)


class AmaState(eqx.Module):
    """All of it learns."""

    model: Model
    optimiser: PyTree
    scale: normaliser.Scale


class Ama(Reward[AmaState]):
    """Squared error less predicted variance, with the model as it is when a row is sampled."""

    uses_keys = False

    spec: Spec
    config: AmaConfig = eqx.field(static=True)

    def init(self, key: PRNGKeyArray) -> AmaState:
        num = self.spec.num_pixels
        trunk, heads = forward.heads(key, self.spec, self.config.hidden, num, num)
        model = Model(trunk, *heads)
        return AmaState(model, adam_start(model), normaliser.fresh())

    @property
    def observes(self) -> bool:
        return self.config.normaliser == "returns"

    def stream(self, state: AmaState) -> Float[Array, ""]:
        return state.scale.filtered

    def with_stream(self, state: AmaState, stream: Float[Array, ""]) -> AmaState:
        return replace(state, scale=replace(state.scale, filtered=stream))

    def observe(self, state: AmaState, step: Step, key: PRNGKeyArray) -> tuple[AmaState, tuple]:
        kind = self.config.normaliser
        if kind == "returns":
            one = jax.tree.map(lambda x: x[None], (step.obs, step.action, step.next_obs))
            found = self.surplus(state, *one)[0]
            scale = normaliser.stream(state.scale, found, kind, self.spec.gamma)
            state = replace(state, scale=scale)
        return state, ()

    def surplus(
        self, state: AmaState, obs: Obs, action: Int[Array, " n"], next_obs: Obs
    ) -> Float[Array, " n"]:
        """The reward of each transition before it is brought to scale."""
        mean, variance = state.model(self.spec.see(obs), action)
        squared = (forward.numbers(self.spec, next_obs) - mean) ** 2
        return unexplained(squared, variance, self.config.variance_weight)

    def score(self, state: AmaState, batch: Batch) -> Float[Array, " batch"]:
        found = self.surplus(state, batch.obs, batch.action, batch.next_obs)
        ratio = normaliser.normalise(state.scale, found, self.config.normaliser)
        return jnp.clip(ratio, -self.config.reward_clip, self.config.reward_clip)

    def learn(self, state: AmaState, batch: Batch, key: PRNGKeyArray) -> tuple[AmaState, Metrics]:
        """One step of the model on the minibatch that was scored."""
        config, seen = self.config, self.spec.see(batch.obs)
        after = forward.numbers(self.spec, batch.next_obs)

        def loss(model: Model):
            mean, variance = model(seen, batch.action)
            squared = (after - mean) ** 2
            surprise = likelihood_loss(squared, variance, config.noise, config.log_weight)
            return jnp.mean(batch.weight * surprise), (squared, variance)

        grads, (squared, variance) = jax.grad(loss, has_aux=True)(state.model)
        model, optimiser = adam_step(
            state.model,
            grads,
            state.optimiser,
            learning_rate=jnp.float32(config.learning_rate),
            grad_clip=jnp.float32(config.grad_clip),
        )
        found = unexplained(squared, variance, config.variance_weight)
        scale = normaliser.minibatch(state.scale, found, batch.weight, config.normaliser)
        num = jnp.maximum(jnp.sum(batch.weight), 1.0)
        metrics = {
            "forward_loss": jnp.sum(batch.weight * jnp.mean(squared, axis=1)) / num,
            "variance": jnp.sum(batch.weight * jnp.mean(variance, axis=1)) / num,
            "reward_std": normaliser.deviation(scale.moments),
        }
        return AmaState(model, optimiser, scale), metrics


def likelihood_loss(
    squared: Float[Array, "n numbers"],
    variance: Float[Array, "n numbers"],
    noise: float,
    log_weight: float,
) -> Float[Array, " n"]:
    """(s' - μ)ᵀ Σ⁻¹ (s' - μ) + λ log det Σ as a mean over numbers, s' and Σ with the noise."""
    both = variance + noise
    return jnp.mean((squared + noise) / both + log_weight * jnp.log(both), axis=1)


def unexplained(
    squared: Float[Array, "n numbers"], variance: Float[Array, "n numbers"], weight: float
) -> Float[Array, " n"]:
    """‖s' - μ‖² - η Tr Σ, as a mean over numbers."""
    return jnp.mean(squared - weight * variance, axis=1)
