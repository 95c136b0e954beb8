"""RND: how badly a network predicts what a random one says of the observation arrived at."""

from dataclasses import dataclass, replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree, Shaped

from primax import nets
from primax.errors import check_choice, check_range
from primax.optim import adam_start, adam_step
from primax.replay import Batch
from primax.rewards import normaliser
from primax.rewards.base import Metrics, Reward, Spec, Step

Planes = Shaped[Array, "n c rows cols"]
SMALLEST_PIXEL = 1e-2
"""The least deviation a pixel is whitened by: many never change."""
LARGEST_PIXEL = 5.0
"""Where whitened pixels are clipped, up and down."""


@dataclass(frozen=True)
class RndConfig:
    """Options of RND."""

    features: int = 64
    """Numbers of the random network that are to be predicted."""
    whiten: bool = False
    """Whether pixels are centred, divided by their running deviation and clipped at 5."""
    normaliser: str = "rewards"
    """What the error is divided by the running deviation of: `rewards`, `returns`; `standard` \
subtracts the mean too; `none`."""
    reward_clip: float = 5.0
    """Largest reward."""
    learning_rate: float = 3e-4
    """Adam's step size for the predictor."""
    grad_clip: float = 10.0
    """Largest global gradient norm of the predictor."""

    def __post_init__(self):
        check_range("reward.features", self.features, 1, 4_096)
        check_choice("reward.normaliser", self.normaliser, normaliser.KINDS)
        check_range("reward.reward_clip", self.reward_clip, 1e-6, 1e9)
        check_range("reward.learning_rate", self.learning_rate, 0, 1)
        check_range("reward.grad_clip", self.grad_clip, 1e-6, 1e9)


class Predictor(eqx.Module):
    """The trunk and two layers more: it must be able to say whatever the random network says."""

    trunk: nets.Trunk
    hidden: nets.Linear
    out: nets.Linear

    def __call__(self, patches: Float[Array, "n rows cols nine_c"]) -> Float[Array, "n features"]:
        x = jax.nn.relu(self.trunk(patches))
        return self.out(jax.nn.relu(self.hidden(x)))


class RndState(eqx.Module):
    """The random network, which never changes, and all that does."""

    target: nets.Trunk
    predictor: Predictor
    optimiser: PyTree
    pixels: normaliser.Running
    scale: normaliser.Scale


class Rnd(Reward[RndState]):
    """Random network distillation, scored with the predictor as it is when a row is sampled."""

    spec: Spec
    config: RndConfig = eqx.field(static=True)

    def init(self, key: PRNGKeyArray) -> RndState:
        k_target, k_predictor = jax.random.split(key)
        spec, width = self.spec, self.spec.net.embedding
        random = replace(spec.net, embedding=self.config.features, activation="linear")
        target, _ = nets.with_trunk(k_target, spec.planes, random)
        shapes = ((width, width), (width, self.config.features))
        trunk, layers = nets.with_trunk(k_predictor, spec.planes, spec.net, *shapes)
        predictor = Predictor(trunk, *layers)
        return RndState(
            target=target,
            predictor=predictor,
            optimiser=adam_start(predictor),
            pixels=normaliser.start(spec.planes),
            scale=normaliser.fresh(),
        )

    def observe(self, state: RndState, step: Step, key: PRNGKeyArray) -> tuple[RndState, tuple]:
        """Takes in the pixels and, for `returns`, the error of what was arrived at."""
        after = step.next_obs[None]
        if self.config.whiten:
            pixels = normaliser.merge(
                state.pixels, after.astype(jnp.float32), jnp.ones(after.shape)
            )
            state = replace(state, pixels=pixels)
        kind = self.config.normaliser
        if kind == "returns":
            error = self.error(state, after)[0]
            scale = normaliser.stream(state.scale, error, kind, self.spec.gamma)
            state = replace(state, scale=scale)
        return state, ()

    def error(self, state: RndState, obs: Planes) -> Float[Array, " n"]:
        """The mean squared difference of the two networks on each observation."""
        seen = self._see(state, obs)
        return mean_square(state.predictor(seen) - state.target(seen))

    def worth(self, state: RndState, obs: Planes) -> Float[Array, " n"]:
        """The error at the scale of the past, clipped: the reward of arriving there."""
        ratio = normaliser.normalise(state.scale, self.error(state, obs), self.config.normaliser)
        return jnp.clip(ratio, -self.config.reward_clip, self.config.reward_clip)

    def score(self, state: RndState, batch: Batch) -> Float[Array, " batch"]:
        return self.worth(state, batch.next_obs)

    def learn(self, state: RndState, batch: Batch, key: PRNGKeyArray) -> tuple[RndState, Metrics]:
        """One step of the predictor, on the minibatch that was scored."""
        config, seen = self.config, self._see(state, batch.next_obs)
        says = state.target(seen)

        def loss(predictor: Predictor) -> tuple[Float[Array, ""], Float[Array, " batch"]]:
            error = mean_square(predictor(seen) - says)
            return jnp.mean(batch.weight * error), error

        (value, error), grads = jax.value_and_grad(loss, has_aux=True)(state.predictor)
        predictor, optimiser = adam_step(
            state.predictor,
            grads,
            state.optimiser,
            learning_rate=jnp.float32(config.learning_rate),
            grad_clip=jnp.float32(config.grad_clip),
        )
        scale = normaliser.minibatch(state.scale, error, batch.weight, config.normaliser)
        said = {"rnd_error": value, "reward_std": normaliser.deviation(scale.moments)}
        return replace(state, predictor=predictor, optimiser=optimiser, scale=scale), said

    def _see(self, state: RndState, obs: Planes) -> Float[Array, "n rows cols nine_c"]:
        """What both networks see: whitened before, never after, the patches are taken."""
        return nets.see(whitened(state.pixels, obs) if self.config.whiten else obs)


def whitened(pixels: normaliser.Running, obs: Planes) -> Float[Array, "n c rows cols"]:
    """Each pixel less its mean, over its deviation or 0.01, within five of them."""
    width = jnp.maximum(jnp.sqrt(pixels.variance), SMALLEST_PIXEL)
    ratio = (obs.astype(jnp.float32) - pixels.mean[None]) / width[None]
    return jnp.clip(ratio, -LARGEST_PIXEL, LARGEST_PIXEL)


def mean_square(x: Float[Array, "n features"]) -> Float[Array, " n"]:
    """The mean, not the sum, over features."""
    return jnp.mean(x**2, axis=-1)
