"""ICM: how far a forward model is off, in features from which the action can be told."""

from dataclasses import dataclass, replace
from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree, Shaped

from primax.config.fields import Choice, Range, check
from primax.config.symbols import Symbol
from primax.nn import nets
from primax.nn.optim import adam_start, adam_step
from primax.rewards.base import Metrics, Reward, Spec
from primax.rewards.parts import forward, normaliser
from primax.rewards.parts.normaliser import KINDS as NORMALISERS
from primax.rewards.transition import Batch, Step

Seen = Shaped[Array, "n ..."]


@dataclass(frozen=True)
class IcmConfig:
    """Options of ICM."""

    features: Annotated[int, Range(1, 4_096)] = 64
    """Width of φ."""
    hidden: Annotated[int, Range(1, 65_536)] = 256
    """Units of the hidden layer of the forward and of the inverse model."""
    forward_share: Annotated[float, Range(0, 1)] = 0.2
    """Of the loss, the forward model's part; the rest is the inverse model's."""
    loss_scale: Annotated[float, Range(1e-6, 1e9)] = 10.0
    """What the loss is multiplied by; it tells only where the gradient is clipped."""
    detach: bool = False
    """Whether φ is kept from learning what the forward model would like."""
    normaliser: Annotated[str, Choice(NORMALISERS)] = "rewards"
    """The error is divided by the running standard deviation of the `rewards`, of the `returns` or of \
recent rewards (`moving`); `standard` also subtracts the mean; `none` does not divide."""
    reward_clip: Annotated[float, Range(1e-6, 1e9)] = 5.0
    """Largest reward."""
    learning_rate: Annotated[float, Range(0, 1), Symbol("lr")] = 1e-4
    """Adam's step size."""
    grad_clip: Annotated[float, Range(1e-6, 1e9)] = 40.0
    """Largest global gradient norm."""

    def __post_init__(self):
        check(self, "reward.")


class Model(eqx.Module):
    """φ, which says what can be told apart, and the two models on top of it."""

    encoder: Any
    forward: forward.Forward
    hidden: nets.Linear
    out: nets.Linear


class IcmState(eqx.Module):
    """All of it learns."""

    model: Model
    optimiser: PyTree
    scale: normaliser.Scale


class Icm(Reward[IcmState]):
    """The forward model's error on each transition, with φ as it is when a row is sampled."""

    uses_keys = False

    spec: Spec
    config: IcmConfig = eqx.field(static=True)

    def init(self, key: PRNGKeyArray) -> IcmState:
        config, actions = self.config, self.spec.num_actions
        ahead = forward.shapes(config.features, actions, config.hidden)
        back = ((2 * config.features, config.hidden), (config.hidden, actions))
        encoder, layers = forward.encoder(key, self.spec, config.features, *ahead, *back)
        model = Model(encoder, forward.Forward(*layers[:2]), *layers[2:])
        return IcmState(model, adam_start(model), normaliser.fresh())

    @property
    def observes(self) -> bool:
        return self.config.normaliser == "returns"

    def stream(self, state: IcmState) -> Float[Array, ""]:
        return state.scale.filtered

    def with_stream(self, state: IcmState, stream: Float[Array, ""]) -> IcmState:
        return replace(state, scale=replace(state.scale, filtered=stream))

    def observe(self, state: IcmState, step: Step, key: PRNGKeyArray) -> tuple[IcmState, tuple]:
        kind = self.config.normaliser
        if kind == "returns":
            one = jax.tree.map(lambda x: x[None], (step.obs, step.action, step.next_obs))
            before, action, after = one
            see = self.spec.see
            found = self._errors(state.model, see(before), action, see(after))[0][0]
            scale = normaliser.stream(state.scale, found, kind, self.spec.gamma)
            state = replace(state, scale=scale)
        return state, ()

    def _errors(
        self, model: Model, before: Seen, action: Array, after: Seen
    ) -> tuple[Float[Array, " n"], Float[Array, " n"], Float[Array, "n actions"]]:
        """Of each transition half the squared error in φ, the cross-entropy, and the logits."""
        phi, phi_next = jnp.split(model.encoder(jnp.concatenate([before, after])), 2)
        logits = model.out(jax.nn.relu(model.hidden(jnp.concatenate([phi, phi_next], axis=1))))
        chosen = nets.chosen(jax.nn.log_softmax(logits), action)
        if self.config.detach:
            phi, phi_next = jax.lax.stop_gradient((phi, phi_next))
        off = model.forward(phi, action) - phi_next
        return 0.5 * jnp.sum(off**2, axis=-1), -chosen, logits

    def score(self, state: IcmState, batch: Batch) -> Float[Array, " batch"]:
        before, after = self.spec.see(batch.obs), self.spec.see(batch.next_obs)
        error, _, _ = self._errors(state.model, before, batch.action, after)
        ratio = normaliser.normalise(state.scale, error, self.config.normaliser)
        return jnp.clip(ratio, -self.config.reward_clip, self.config.reward_clip)

    def learn(self, state: IcmState, batch: Batch, key: PRNGKeyArray) -> tuple[IcmState, Metrics]:
        """One step of φ and both models on the minibatch that was scored."""
        config, share = self.config, self.config.forward_share
        before, after = self.spec.see(batch.obs), self.spec.see(batch.next_obs)

        def loss(model: Model):
            error, surprise, logits = self._errors(model, before, batch.action, after)
            mixed = (1.0 - share) * surprise + share * error
            return config.loss_scale * jnp.mean(batch.weight * mixed), (error, surprise, logits)

        grads, (error, surprise, logits) = jax.grad(loss, has_aux=True)(state.model)
        model, optimiser = adam_step(
            state.model,
            grads,
            state.optimiser,
            learning_rate=jnp.float32(config.learning_rate),
            grad_clip=jnp.float32(config.grad_clip),
        )
        scale = normaliser.minibatch(state.scale, error, batch.weight, config.normaliser)
        num = jnp.maximum(jnp.sum(batch.weight), 1.0)
        hits = (jnp.argmax(logits, axis=1) == batch.action).astype(jnp.float32)
        metrics = {
            "forward_loss": jnp.sum(batch.weight * error) / num,
            "inverse_loss": jnp.sum(batch.weight * surprise) / num,
            "inverse_accuracy": jnp.sum(batch.weight * hits) / num,
            "reward_std": normaliser.deviation(scale.moments),
        }
        return IcmState(model, optimiser, scale), metrics
