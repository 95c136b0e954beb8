"""NovelD: how much newer the observation arrived at is than the one before, on its first visit."""

from dataclasses import dataclass, replace
from typing import Annotated

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray, Shaped, UInt32

from primax.config.fields import Choice, Range, check
from primax.config.symbols import Symbol
from primax.rewards.base import Metrics, Reward, Spec
from primax.rewards.parts import episode, normaliser
from primax.rewards.parts.normaliser import KINDS as NORMALISERS
from primax.rewards.rnd import Rnd, RndConfig, RndState
from primax.rewards.transition import Batch, Obs, Step

Observations = Shaped[Array, "n ..."]


@dataclass(frozen=True)
class NovelDConfig:
    """Options of NovelD."""

    alpha: Annotated[float, Range(0, 1e6), Symbol("α")] = 0.5
    """How much of the novelty of s is taken off that of s'."""
    features: Annotated[int, Range(1, 4_096)] = 128
    """Numbers of the random network that are to be predicted."""
    predictor_layers: Annotated[int, Range(0, 10)] = 0
    """Layers of the predictor after its trunk; with none it is built like the random network."""
    memory: Annotated[int, Range(1, 1_000_000)] = 4_096
    """Different observations of an episode that are remembered; of more, the oldest is forgotten."""
    normaliser: Annotated[str, Choice(NORMALISERS)] = "moving"
    """The reward is divided by the running standard deviation of the `rewards`, of the `returns` or of \
recent rewards (`moving`); `standard` also subtracts the mean; `none` does not divide."""
    reward_clip: Annotated[float, Range(1e-6, 1e9)] = 5.0
    """Largest reward."""
    learning_rate: Annotated[float, Range(0, 1), Symbol("lr")] = 1e-4
    """Adam's step size for the predictor."""
    grad_clip: Annotated[float, Range(1e-6, 1e9)] = 40.0
    """Largest global gradient norm of the predictor."""

    def __post_init__(self):
        check(self, "reward.")


class NovelDState(eqx.Module):
    """RND, what the episode has shown, and the scale of the rewards."""

    rnd: RndState
    salt: UInt32[Array, "2 numbers"]
    memory: episode.Memory
    scale: normaliser.Scale


class NovelD(Reward[NovelDState]):
    """Novelty is RND's as of when a row is sampled; whether a visit was the first is stored with it."""

    uses_keys = False

    spec: Spec
    config: NovelDConfig = eqx.field(static=True)

    @property
    def _rnd(self) -> Rnd:
        """The two networks and what trains them; their scale is not used."""
        config = self.config
        options = RndConfig(
            features=config.features,
            predictor_layers=config.predictor_layers,
            normaliser="none",
            learning_rate=config.learning_rate,
            grad_clip=config.grad_clip,
        )
        return Rnd(self.spec, options)

    def init(self, key: PRNGKeyArray) -> NovelDState:
        k_rnd, k_salt = jax.random.split(key)
        return NovelDState(
            rnd=self._rnd.init(k_rnd),
            salt=episode.salt(k_salt, self.spec),
            memory=self._empty,
            scale=normaliser.fresh(),
        )

    @property
    def _empty(self) -> episode.Memory:
        return episode.empty(min(self.config.memory, self.spec.horizon + 1))

    @property
    def reads_memo(self) -> bool:
        return False

    @property
    def reads_next_memo(self) -> bool:
        return True

    def stream(self, state: NovelDState) -> tuple[episode.Memory, Float[Array, ""]]:
        return state.memory, state.scale.filtered

    def with_stream(
        self, state: NovelDState, stream: tuple[episode.Memory, Float[Array, ""]]
    ) -> NovelDState:
        memory, filtered = stream
        return replace(state, memory=memory, scale=replace(state.scale, filtered=filtered))

    def begin(
        self, state: NovelDState, obs: Obs, key: PRNGKeyArray
    ) -> tuple[NovelDState, Bool[Array, ""]]:
        """An episode's first observation is known from then on; nothing led to it."""
        memory = episode.added(self._empty, episode.code(state.salt, obs))
        return replace(state, memory=memory), jnp.zeros((), bool)

    def observe(
        self, state: NovelDState, step: Step, key: PRNGKeyArray
    ) -> tuple[NovelDState, Bool[Array, ""]]:
        """Whether what was arrived at is seen for the first time in this episode."""
        kind, scale = self.config.normaliser, state.scale
        code = episode.code(state.salt, step.next_obs)
        is_first = ~episode.met(state.memory, code)
        if kind == "returns":
            before, after, first = (x[None] for x in (step.obs, step.next_obs, is_first))
            raw = self.raw(state, before, after, first)[0]
            scale = normaliser.stream(scale, raw, kind, self.spec.gamma)
        return replace(state, memory=episode.added(state.memory, code), scale=scale), is_first

    def raw(
        self, state: NovelDState, before: Observations, after: Observations, is_first: Array
    ) -> Float[Array, " n"]:
        """NovelD before it is brought to scale."""
        error = self._rnd.error(state.rnd, jnp.concatenate([before, after]))
        old, new = jnp.split(novelty(error, self.config.features), 2)
        return noveld(old, new, is_first, self.config.alpha)

    def _raw(self, state: NovelDState, batch: Batch) -> Float[Array, " batch"]:
        return self.raw(state, batch.obs, batch.next_obs, batch.next_memo)

    def score(self, state: NovelDState, batch: Batch) -> Float[Array, " batch"]:
        worth = normaliser.normalise(state.scale, self._raw(state, batch), self.config.normaliser)
        return jnp.clip(worth, -self.config.reward_clip, self.config.reward_clip)

    def learn(
        self, state: NovelDState, batch: Batch, key: PRNGKeyArray
    ) -> tuple[NovelDState, Metrics]:
        """One step of the predictor on s', after the minibatch was scored."""
        raw, weight = self._raw(state, batch), batch.weight
        scale = normaliser.minibatch(state.scale, raw, weight, self.config.normaliser)
        rnd, said = self._rnd.learn(state.rnd, batch, key)
        first = jnp.sum(weight * batch.next_memo) / jnp.maximum(jnp.sum(weight), 1.0)
        metrics = {"first_visits": first, "reward_std": normaliser.deviation(scale.moments)}
        return replace(state, rnd=rnd, scale=scale), said | metrics


def novelty(error: Float[Array, " n"], features: int) -> Float[Array, " n"]:
    """‖f̂(s) - f(s)‖₂, from the mean square over features."""
    return jnp.sqrt(features * error)


def noveld(
    before: Float[Array, " n"], after: Float[Array, " n"], is_first: Bool[Array, " n"], alpha: float
) -> Float[Array, " n"]:
    """max(novelty(s') - α novelty(s), 0) · 1{N_e(s') = 1}: zero on every later visit of an episode."""
    return jnp.where(is_first, jnp.maximum(after - alpha * before, 0.0), 0.0)
