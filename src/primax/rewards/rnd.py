"""RND: how badly a network predicts what a random one says of the observation arrived at."""

import itertools
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
from primax.rewards.parts import normaliser
from primax.rewards.parts.normaliser import KINDS as NORMALISERS
from primax.rewards.transition import Batch, Obs, Step

Observations = Shaped[Array, "n ..."]
SMALLEST_PIXEL = 1e-2
"""The least deviation a pixel is whitened by: many never change."""


@dataclass(frozen=True)
class RndConfig:
    """Options of RND."""

    features: Annotated[int, Range(1, 4_096)] = 64
    """Numbers of the random network that are to be predicted."""
    predictor_layers: Annotated[int, Range(0, 10)] = 0
    """Layers of the predictor after its trunk; with none it is built like the random network."""
    input: Annotated[str, Choice(("next", "current"))] = "next"
    """What is predicted of: the observation arrived at (`next`), or the one before (`current`)."""
    read: Annotated[str, Choice(("sampled", "lived"))] = "sampled"
    """When the reward is computed: whenever a row is `sampled`, or once, when it is `lived`."""
    whiten: bool = False
    """Whether pixels are centred, divided by their running deviation and clipped at 5."""
    normaliser: Annotated[str, Choice(NORMALISERS)] = "moving"
    """The error is divided by the running standard deviation of the `rewards`, of the `returns` or of \
recent rewards (`moving`); `standard` also subtracts the mean; `none` does not divide."""
    reward_clip: Annotated[float, Range(1e-6, 1e9)] = 5.0
    """Largest reward."""
    learning_rate: Annotated[float, Range(0, 1), Symbol("lr")] = 3e-4
    """Adam's step size for the predictor."""
    grad_clip: Annotated[float, Range(1e-6, 1e9)] = 10.0
    """Largest global gradient norm of the predictor."""

    def __post_init__(self):
        check(self, "reward.")


class Predictor(eqx.Module):
    """The trunk and layers more: it must be able to say whatever the random network says."""

    trunk: Any
    layers: tuple[nets.Linear, ...]

    def __call__(self, seen: Shaped[Array, "n ..."]) -> Float[Array, "n features"]:
        x = self.trunk(seen)
        for layer in self.layers:
            x = layer(jax.nn.relu(x))
        return x


class RndState(eqx.Module):
    """The random network, which never changes, and all that does."""

    target: Any
    predictor: Predictor
    optimiser: PyTree
    pixels: normaliser.Running
    scale: normaliser.Scale


class Rnd(Reward[RndState]):
    """Random network distillation, scored with the predictor as it is when a row is sampled."""

    uses_keys = False

    spec: Spec
    config: RndConfig = eqx.field(static=True)

    def init(self, key: PRNGKeyArray) -> RndState:
        k_target, k_predictor = jax.random.split(key)
        spec, width, num = self.spec, self.spec.net.embedding, self.config.predictor_layers
        random = replace(spec.net, embedding=self.config.features, activation="linear")
        target, _ = spec.trunk(k_target, random)
        widths = [*[width] * num, self.config.features]
        trunk, layers = spec.trunk(
            k_predictor, spec.net if num else random, *itertools.pairwise(widths)
        )
        predictor = Predictor(trunk, tuple(layers))
        return RndState(
            target=target,
            predictor=predictor,
            optimiser=adam_start(predictor),
            pixels=normaliser.start(spec.shape),
            scale=normaliser.fresh(),
        )

    @property
    def _is_stored(self) -> bool:
        return self.config.read == "lived"

    @property
    def begins(self) -> bool:
        return self._is_stored

    @property
    def reads_memo(self) -> bool:
        return False

    @property
    def pays_once(self) -> bool:
        return self._is_stored

    @property
    def observes(self) -> bool:
        return self.config.whiten or self.config.normaliser == "returns" or self._is_stored

    def stream(self, state: RndState) -> Float[Array, ""]:
        return state.scale.filtered

    def with_stream(self, state: RndState, stream: Float[Array, ""]) -> RndState:
        return replace(state, scale=replace(state.scale, filtered=stream))

    def begin(self, state: RndState, obs: Obs, key: PRNGKeyArray) -> tuple[RndState, PyTree]:
        """Nothing led to an episode's first observation."""
        return state, jnp.zeros(()) if self._is_stored else ()

    def observe(self, state: RndState, step: Step, key: PRNGKeyArray) -> tuple[RndState, PyTree]:
        """Takes in the pixels and, where the stream of errors matters, the error of this step."""
        config, after = self.config, step.next_obs[None]
        if config.whiten:
            pixels = normaliser.merge(
                state.pixels, after.astype(jnp.float32), jnp.ones(after.shape)
            )
            state = replace(state, pixels=pixels)
        if config.normaliser != "returns" and not self._is_stored:
            return state, ()
        error = self.error(state, self._asked(step)[None])
        worth = self._scaled(state.scale, error)[0]
        scale = normaliser.stream(state.scale, error[0], config.normaliser, self.spec.gamma)
        if self._is_stored:
            scale = normaliser.minibatch(scale, error, jnp.ones(1), config.normaliser)
        return replace(state, scale=scale), worth if self._is_stored else ()

    def _asked(self, step: Step | Batch) -> Obs:
        """The observation whose error is the reward."""
        return step.next_obs if self.config.input == "next" else step.obs

    def error(self, state: RndState, obs: Observations) -> Float[Array, " n"]:
        """The mean squared difference of the two networks on each observation."""
        seen = self._see(state, obs)
        return mean_square(state.predictor(seen) - state.target(seen))

    def worth(self, state: RndState, obs: Observations) -> Float[Array, " n"]:
        """The error at the scale of the past, clipped: the reward of arriving there."""
        return self._scaled(state.scale, self.error(state, obs))

    def _scaled(self, scale: normaliser.Scale, error: Float[Array, " n"]) -> Float[Array, " n"]:
        ratio = normaliser.normalise(scale, error, self.config.normaliser)
        return jnp.clip(ratio, -self.config.reward_clip, self.config.reward_clip)

    def score(self, state: RndState, batch: Batch) -> Float[Array, " batch"]:
        return batch.next_memo if self._is_stored else self.worth(state, self._asked(batch))

    def learn(self, state: RndState, batch: Batch, key: PRNGKeyArray) -> tuple[RndState, Metrics]:
        """One step of the predictor, on the minibatch that was scored."""
        config, seen = self.config, self._see(state, self._asked(batch))
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
        scale = state.scale
        if not self._is_stored:
            scale = normaliser.minibatch(scale, error, batch.weight, config.normaliser)
        metrics = {"rnd_error": value, "reward_std": normaliser.deviation(scale.moments)}
        return replace(state, predictor=predictor, optimiser=optimiser, scale=scale), metrics

    def _see(self, state: RndState, obs: Observations) -> Shaped[Array, "n ..."]:
        """What both networks see: whitened before, never after, the patches are taken."""
        if self.config.whiten:
            obs = normaliser.whitened(state.pixels, obs, SMALLEST_PIXEL)
        return self.spec.see(obs)


def mean_square(x: Float[Array, "n features"]) -> Float[Array, " n"]:
    """The mean, not the sum, over features."""
    return jnp.mean(x**2, axis=-1)
