"""ICM: how far a forward model is off, in features from which the action can be told."""

from dataclasses import dataclass, replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from primax import nets
from primax.errors import check_choice, check_range
from primax.optim import adam_start, adam_step
from primax.replay import Batch
from primax.rewards import forward, normaliser
from primax.rewards.base import Metrics, Reward, Spec, Step

Patches = Float[Array, "n rows cols nine_c"]


@dataclass(frozen=True)
class IcmConfig:
    """Options of ICM."""

    features: int = 64
    """Width of φ."""
    hidden: int = 256
    """Units of the hidden layer of the forward and of the inverse model."""
    forward_share: float = 0.2
    """Of the loss, the forward model's part; the rest is the inverse model's."""
    loss_scale: float = 10.0
    """What the loss is multiplied by; it tells only where the gradient is clipped."""
    detach: bool = False
    """Whether φ is kept from learning what the forward model would like."""
    normaliser: str = "rewards"
    """What the error is divided by the running deviation of: `rewards`, `returns`, the \
newest rewards (`moving`); `standard` subtracts the mean too; `none`."""
    reward_clip: float = 5.0
    """Largest reward."""
    learning_rate: float = 1e-4
    """Adam's step size."""
    grad_clip: float = 40.0
    """Largest global gradient norm."""

    def __post_init__(self):
        check_range("reward.features", self.features, 1, 4_096)
        check_range("reward.hidden", self.hidden, 1, 65_536)
        check_range("reward.forward_share", self.forward_share, 0, 1)
        check_range("reward.loss_scale", self.loss_scale, 1e-6, 1e9)
        check_choice("reward.normaliser", self.normaliser, normaliser.KINDS)
        check_range("reward.reward_clip", self.reward_clip, 1e-6, 1e9)
        check_range("reward.learning_rate", self.learning_rate, 0, 1)
        check_range("reward.grad_clip", self.grad_clip, 1e-6, 1e9)


class Model(eqx.Module):
    """φ, which says what can be told apart, and the two models on top of it."""

    encoder: nets.Trunk
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

    spec: Spec
    config: IcmConfig = eqx.field(static=True)

    def init(self, key: PRNGKeyArray) -> IcmState:
        config, actions = self.config, self.spec.num_actions
        ahead = forward.shapes(config.features, actions, config.hidden)
        back = ((2 * config.features, config.hidden), (config.hidden, actions))
        encoder, layers = forward.encoder(key, self.spec, config.features, *ahead, *back)
        model = Model(encoder, forward.Forward(*layers[:2]), *layers[2:])
        return IcmState(model, adam_start(model), normaliser.fresh())

    def observe(self, state: IcmState, step: Step, key: PRNGKeyArray) -> tuple[IcmState, tuple]:
        kind = self.config.normaliser
        if kind == "returns":
            one = jax.tree.map(lambda x: x[None], (step.obs, step.action, step.next_obs))
            before, action, after = one
            found = self._errors(state.model, nets.see(before), action, nets.see(after))[0][0]
            scale = normaliser.stream(state.scale, found, kind, self.spec.gamma)
            state = replace(state, scale=scale)
        return state, ()

    def _errors(
        self, model: Model, before: Patches, action: Array, after: Patches
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
        before, after = nets.see(batch.obs), nets.see(batch.next_obs)
        error, _, _ = self._errors(state.model, before, batch.action, after)
        ratio = normaliser.normalise(state.scale, error, self.config.normaliser)
        return jnp.clip(ratio, -self.config.reward_clip, self.config.reward_clip)

    def learn(self, state: IcmState, batch: Batch, key: PRNGKeyArray) -> tuple[IcmState, Metrics]:
        """One step of φ and both models on the minibatch that was scored."""
        config, share = self.config, self.config.forward_share
        before, after = nets.see(batch.obs), nets.see(batch.next_obs)

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
        said = {
            "forward_loss": jnp.sum(batch.weight * error) / num,
            "inverse_loss": jnp.sum(batch.weight * surprise) / num,
            "inverse_accuracy": jnp.sum(batch.weight * hits) / num,
            "reward_std": normaliser.deviation(scale.moments),
        }
        return IcmState(model, optimiser, scale), said
