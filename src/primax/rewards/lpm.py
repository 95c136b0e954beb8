"""LPM: by how much a forward model is less wrong than it was lately, where it was (Hou, An & Du 2025).

An error model learns what the forward model erred by at (s, a), from errors that were remembered as
they were made. Noise is as wrong now as it was then, and pays nothing.
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
from primax.rewards.parts import forward, normaliser, past
from primax.rewards.parts.normaliser import KINDS as NORMALISERS
from primax.rewards.transition import Batch, Obs, Step

SMALLEST = 1e-6
"""Added to an error before its logarithm is taken."""
MOST = 10.0
"""Largest log-error that is believed."""


@dataclass(frozen=True)
class LpmConfig:
    """Options of LPM."""

    hidden: Annotated[int, Range(1, 65_536)] = 256
    """Units of the hidden layer of the forward model and of the error model."""
    memory: Annotated[int, Range(1, 10_000_000)] = 16_384
    """Errors that are remembered, with what they were made on; the error model learns from these."""
    past_weight: Annotated[float, Range(0, 1e9), Symbol("η")] = 1.0
    """What the past error is multiplied by before the present error is taken from it."""
    normaliser: Annotated[str, Choice(NORMALISERS)] = "moving"
    """Progress is divided by the running standard deviation of the `rewards`, of the `returns` or of \
recent rewards (`moving`); `standard` also subtracts the mean; `none` does not divide."""
    reward_clip: Annotated[float, Range(1e-6, 1e9)] = 5.0
    """Largest reward, up or down."""
    learning_rate: Annotated[float, Range(0, 1), Symbol("lr")] = 1e-4
    """Adam's step size for both models."""
    grad_clip: Annotated[float, Range(1e-6, 1e9)] = 10.0
    """Largest global gradient norm of a model."""

    def __post_init__(self):
        check(self, "reward.")


class Model(eqx.Module):
    """A trunk, and what it says given the action."""

    trunk: Any
    head: forward.Forward

    def __call__(
        self, seen: Shaped[Array, "n ..."], action: Int[Array, " n"]
    ) -> Float[Array, "n outputs"]:
        return self.head(self.trunk(seen), action)


class LpmState(eqx.Module):
    """Two models, with an optimiser each, and what the second learns from."""

    model: Model
    expects: Model
    optimisers: tuple[PyTree, PyTree]
    past: past.Past
    scale: normaliser.Scale


class Lpm(Reward[LpmState]):
    """The error that was to be expected less the one that is, with both models as they are now."""

    uses_keys = False

    spec: Spec
    config: LpmConfig = eqx.field(static=True)

    def init(self, key: PRNGKeyArray) -> LpmState:
        k_model, k_expects = jax.random.split(key)
        config, spec = self.config, self.spec
        trunk, heads = forward.heads(k_model, spec, config.hidden, spec.num_pixels)
        model = Model(trunk, *heads)
        trunk, heads = forward.heads(k_expects, spec, config.hidden, 1)
        expects = Model(trunk, *heads)
        optimisers = adam_start(model), adam_start(expects)
        nothing = past.nothing(spec, config.memory)
        return LpmState(model, expects, optimisers, nothing, normaliser.fresh())

    @property
    def observes(self) -> bool:
        return self.config.normaliser == "returns"

    def stream(self, state: LpmState) -> Float[Array, ""]:
        return state.scale.filtered

    def with_stream(self, state: LpmState, stream: Float[Array, ""]) -> LpmState:
        return replace(state, scale=replace(state.scale, filtered=stream))

    def observe(self, state: LpmState, step: Step, key: PRNGKeyArray) -> tuple[LpmState, tuple]:
        kind = self.config.normaliser
        if kind == "returns":
            one = jax.tree.map(lambda x: x[None], (step.obs, step.action, step.next_obs))
            found = self.gained(state, *one)[0]
            scale = normaliser.stream(state.scale, found, kind, self.spec.gamma)
            state = replace(state, scale=scale)
        return state, ()

    def gained(
        self, state: LpmState, obs: Obs, action: Int[Array, " n"], next_obs: Obs
    ) -> Float[Array, " n"]:
        """The reward of each transition before it is brought to scale."""
        seen, after = self.spec.see(obs), forward.numbers(self.spec, next_obs)
        error = mean_square(state.model(seen, action) - after)
        return progress(state.expects(seen, action)[:, 0], error, self.config.past_weight)

    def score(self, state: LpmState, batch: Batch) -> Float[Array, " batch"]:
        found = self.gained(state, batch.obs, batch.action, batch.next_obs)
        ratio = normaliser.normalise(state.scale, found, self.config.normaliser)
        return jnp.clip(ratio, -self.config.reward_clip, self.config.reward_clip)

    def learn(self, state: LpmState, batch: Batch, key: PRNGKeyArray) -> tuple[LpmState, Metrics]:
        """One step of the forward model on the minibatch, and one of the error model on the past."""
        config, seen = self.config, self.spec.see(batch.obs)
        after = forward.numbers(self.spec, batch.next_obs)

        def loss(model: Model):
            error = mean_square(model(seen, batch.action) - after)
            return jnp.mean(batch.weight * error), error

        grads, error = jax.grad(loss, has_aux=True)(state.model)
        made = past.remembered(state.past, batch, log_error(error), self.spec.kind)
        obs, action, target = past.drawn(made, key, batch.action.shape[0], self.spec)
        then, is_any = self.spec.see(obs), made.num > 0

        def past_loss(expects: Model):
            return is_any * jnp.mean((expects(then, action)[:, 0] - target) ** 2)

        value, past_grads = jax.value_and_grad(past_loss)(state.expects)
        model, first = self._step(state.model, grads, state.optimisers[0])
        expects, second = self._step(state.expects, past_grads, state.optimisers[1])
        found = progress(state.expects(seen, batch.action)[:, 0], error, config.past_weight)
        scale = normaliser.minibatch(state.scale, found, batch.weight, config.normaliser)
        num = jnp.maximum(jnp.sum(batch.weight), 1.0)
        metrics = {
            "forward_loss": jnp.sum(batch.weight * error) / num,
            "past_loss": value,
            "progress": jnp.sum(batch.weight * found) / num,
            "reward_std": normaliser.deviation(scale.moments),
        }
        return LpmState(model, expects, (first, second), made, scale), metrics

    def _step(self, model: Model, grads: Model, optimiser: PyTree) -> tuple[Model, PyTree]:
        return adam_step(
            model,
            grads,
            optimiser,
            learning_rate=jnp.float32(self.config.learning_rate),
            grad_clip=jnp.float32(self.config.grad_clip),
        )


def mean_square(off: Float[Array, "n numbers"]) -> Float[Array, " n"]:
    """The forward model's error: the mean over numbers of the squared difference."""
    return jnp.mean(off**2, axis=1)


def log_error(error: Float[Array, " n"]) -> Float[Array, " n"]:
    """log(ε + 1e-6): what the error model learns."""
    return jnp.log(error + SMALLEST)


def progress(
    expected: Float[Array, " n"], error: Float[Array, " n"], past_weight: float
) -> Float[Array, " n"]:
    """η exp(log-error expected of the past) less the present error."""
    return past_weight * jnp.exp(jnp.minimum(expected, MOST)) - error
