"""S-Adapt: a bandit picks for each episode whether surprise is to be sought or shunned."""

from dataclasses import dataclass, replace
from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt8

from primax.config.fields import Range, check
from primax.config.symbols import Symbol
from primax.errors import InputError
from primax.rewards.base import Metrics, Reward, Spec
from primax.rewards.parts import density, normaliser
from primax.rewards.transition import Batch, Recent, Step

SEEK, SHUN = 0, 1
"""The arms: surprise is the reward, or its negative is."""


@dataclass(frozen=True)
class SAdaptConfig:
    """Options of S-Adapt."""

    surprise_clip: Annotated[float, Range(1e-6, 1e9)] = 300.0
    """Largest surprise, in nats; surprise is divided by it."""
    explore: Annotated[float, Range(0, 1e6), Symbol("c")] = 2**0.5
    """The weight of the bandit's confidence bound."""
    standardise: bool = True
    """Whether each arm's rewards are centred and divided by their running deviation."""

    def __post_init__(self):
        check(self, "reward.")

    def check_fits(self, config: Any) -> None:
        """Refuses a warm-up without one whole random episode to compare with."""
        if config.warmup < config.horizon:
            short = f"warmup ({config.warmup}) must hold one world.horizon ({config.horizon})"
            raise InputError(f"{short}: its random episodes are what the bandit compares with")


class Bandit(eqx.Module):
    """What the arms paid, and the entropy of an episode lived at random."""

    mean: Float[Array, " arms"]
    played: Int[Array, " arms"]
    random_entropy: Float[Array, ""]
    random_episodes: Int[Array, ""]


class Memo(eqx.Module):
    """Stored with every observation, and seen by the critics."""

    density: density.Density
    arm: Int[Array, "*n"]


class SAdaptState(eqx.Module):
    """The episode under way, the bandit, and the scale of each arm's rewards."""

    density: density.Density
    arm: Int[Array, ""]
    bandit: Bandit
    moments: normaliser.Running
    is_warm: Bool[Array, ""]
    """Whether the warm-up is over."""
    is_random: Bool[Array, ""]
    """Whether the episode under way began in the warm-up."""


class SAdapt(Reward[SAdaptState]):
    """One critic serves both arms: it sees which is played, the density and the clock."""

    uses_keys = False
    needs_horizon = True

    spec: Spec
    config: SAdaptConfig = eqx.field(static=True)

    def init(self, key: PRNGKeyArray) -> SAdaptState:
        zero = jnp.zeros((), jnp.int32)
        return SAdaptState(
            density=density.start(self.spec),
            arm=zero,
            bandit=Bandit(jnp.zeros(2), jnp.zeros(2, jnp.int32), jnp.zeros(()), zero),
            moments=normaliser.start((2,)),
            is_warm=jnp.zeros((), bool),
            is_random=jnp.zeros((), bool),
        )

    def stream(self, state: SAdaptState) -> tuple[density.Density, Int[Array, ""], Bool[Array, ""]]:
        return state.density, state.arm, state.is_random

    def with_stream(
        self, state: SAdaptState, stream: tuple[density.Density, Int[Array, ""], Bool[Array, ""]]
    ) -> SAdaptState:
        now, arm, is_random = stream
        return replace(state, density=now, arm=arm, is_random=is_random)

    def begin(
        self, state: SAdaptState, obs: UInt8[Array, "c rows cols"], key: PRNGKeyArray
    ) -> tuple[SAdaptState, Memo]:
        """Pays the bandit for the episode before, if there was one, and asks it for an arm."""
        was_lived = state.density.num > 1
        bandit = settle(
            state.bandit,
            state.arm,
            density.entropy(state.density),
            was_lived & state.is_random,
            was_lived & ~state.is_random,
        )
        coin = jax.random.bernoulli(key).astype(jnp.int32)
        arm = jnp.where(state.is_warm, choose(bandit, self.config.explore, coin), coin)
        now = density.add(density.start(self.spec), obs)
        state = replace(state, density=now, arm=arm, bandit=bandit, is_random=~state.is_warm)
        return state, Memo(now, arm)

    def observe(
        self, state: SAdaptState, step: Step, key: PRNGKeyArray
    ) -> tuple[SAdaptState, Memo]:
        raw = self.raw(Memo(state.density, state.arm), step.next_obs)
        chosen = jax.nn.one_hot(state.arm, 2)[None]
        moments = normaliser.merge(state.moments, jnp.full((1, 2), raw), chosen)
        now = density.add(state.density, step.next_obs)
        return replace(state, density=now, moments=moments), Memo(now, state.arm)

    def view(
        self, obs: UInt8[Array, "*n c rows cols"], memo: Memo
    ) -> Float[Array, "*n views rows cols"]:
        return density.view(obs, memo.density, self.spec.horizon, memo.arm)

    @property
    def view_shape(self) -> tuple[int, ...]:
        channels, rows, cols = self.spec.shape
        return 2 * channels + 2, rows, cols

    def raw(self, before: Memo, obs: UInt8[Array, "*n c rows cols"]) -> Float[Array, "*n"]:
        """Surprise under what was seen before, of the sign the arm gives it."""
        clip = self.config.surprise_clip
        surprise = jnp.clip(-density.log_density(before.density, obs), -clip, clip) / clip
        return jnp.where(before.arm == SEEK, surprise, -surprise)

    def score(self, state: SAdaptState, batch: Batch) -> Float[Array, " batch"]:
        raw, arm = self.raw(batch.memo, batch.next_obs), batch.memo.arm
        if not self.config.standardise:
            return raw
        return (raw - state.moments.mean[arm]) / normaliser.deviation(state.moments)[arm]

    def refresh(
        self, state: SAdaptState, recent: Recent, key: PRNGKeyArray
    ) -> tuple[SAdaptState, Metrics]:
        """The first window ends the warm-up; nothing is frozen."""
        bandit = state.bandit
        metrics = {
            "shun_share": bandit.played[SHUN] / jnp.maximum(jnp.sum(bandit.played), 1),
            "feedback_seek": bandit.mean[SEEK],
            "feedback_shun": bandit.mean[SHUN],
            "random_entropy": bandit.random_entropy,
        }
        return replace(state, is_warm=jnp.ones((), bool)), metrics


def settle(
    bandit: Bandit,
    arm: Int[Array, ""],
    entropy: Float[Array, ""],
    is_random: Bool[Array, ""],
    is_played: Bool[Array, ""],
) -> Bandit:
    """An episode of this entropy is over: it counts as a random one, as a play of the arm, or not.

    A play pays by how far the entropy is from the random one's, as a share of that.
    """
    episodes = bandit.random_episodes + is_random
    usual = bandit.random_entropy
    away = jnp.where(is_random, entropy - usual, 0.0) / jnp.maximum(episodes, 1)
    paid = jnp.abs(entropy - usual) / jnp.maximum(jnp.abs(usual), normaliser.SMALLEST)
    is_arm = (jnp.arange(2) == arm) & is_played
    played = bandit.played + is_arm
    step = jnp.where(is_arm, paid - bandit.mean, 0.0) / jnp.maximum(played, 1)
    return Bandit(bandit.mean + step, played, usual + away, episodes)


def choose(bandit: Bandit, explore: float, coin: Int[Array, ""]) -> Int[Array, ""]:
    """The arm of the highest confidence bound; one never played comes first, of two the coin's."""
    total = jnp.sum(bandit.played)
    played = jnp.maximum(bandit.played, 1)
    bound = bandit.mean + explore * jnp.sqrt(jnp.log(jnp.maximum(total, 1)) / played)
    best = jnp.argmax(jnp.where(bandit.played == 0, jnp.inf, bound)).astype(jnp.int32)
    return jnp.where(total == 0, coin, best)
