"""SMIRL: how likely an observation was under those of the same episode before it."""

from dataclasses import dataclass, replace

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, UInt8

from primax.errors import check_choice, check_range
from primax.replay import Batch
from primax.rewards import density, normaliser
from primax.rewards.base import Metrics, Reward, Spec, Step


@dataclass(frozen=True)
class SmirlConfig:
    """Options of SMIRL."""

    log_clip: float = 300.0
    """Largest log-density, up or down, in nats."""
    count_first: bool = False
    """Whether the observation an episode starts with enters its density."""
    normaliser: str = "rewards"
    """What the log-density is divided by the running deviation of: `rewards`, `returns`; \
`standard` subtracts the mean too; `none`."""

    def __post_init__(self):
        check_range("reward.log_clip", self.log_clip, 1e-6, 1e9)
        check_choice("reward.normaliser", self.normaliser, normaliser.KINDS)


class SmirlState(eqx.Module):
    """The episode so far, and the scale of all rewards."""

    density: density.Density
    scale: normaliser.Scale


class Smirl(Reward[SmirlState]):
    """Pays for what is no surprise. The density is stored with every observation, and seen."""

    spec: Spec
    config: SmirlConfig = eqx.field(static=True)

    def init(self, key: PRNGKeyArray) -> SmirlState:
        return SmirlState(density.start(self.spec), normaliser.fresh())

    def begin(
        self, state: SmirlState, obs: UInt8[Array, "c rows cols"], key: PRNGKeyArray
    ) -> tuple[SmirlState, density.Density]:
        """Every episode has a density of its own."""
        now = density.start(self.spec)
        now = density.add(now, obs) if self.config.count_first else now
        return replace(state, density=now), now

    def observe(
        self, state: SmirlState, step: Step, key: PRNGKeyArray
    ) -> tuple[SmirlState, density.Density]:
        raw = self.raw(state.density, step.next_obs)
        scale = normaliser.stream(state.scale, raw, self.config.normaliser, self.spec.gamma)
        now = density.add(state.density, step.next_obs)
        return SmirlState(now, scale), now

    def view(
        self, obs: UInt8[Array, "*n c rows cols"], memo: density.Density
    ) -> Float[Array, "*n views rows cols"]:
        return density.view(obs, memo, self.spec.horizon)

    @property
    def view_planes(self) -> tuple[int, int, int]:
        channels, rows, cols = self.spec.planes
        return 2 * channels + 1, rows, cols

    def raw(
        self, before: density.Density, obs: UInt8[Array, "*n c rows cols"]
    ) -> Float[Array, "*n"]:
        """log p of what was arrived at, under the density from before it was added."""
        clip = self.config.log_clip
        return jnp.clip(density.log_density(before, obs), -clip, clip)

    def score(self, state: SmirlState, batch: Batch) -> Float[Array, " batch"]:
        raw = self.raw(batch.memo, batch.next_obs)
        return normaliser.normalise(state.scale, raw, self.config.normaliser)

    def learn(
        self, state: SmirlState, batch: Batch, key: PRNGKeyArray
    ) -> tuple[SmirlState, Metrics]:
        """Only the scale learns."""
        raw = self.raw(batch.memo, batch.next_obs)
        scale = normaliser.minibatch(state.scale, raw, batch.weight, self.config.normaliser)
        said = {
            "log_density": jnp.sum(batch.weight * raw) / jnp.maximum(jnp.sum(batch.weight), 1.0),
            "reward_std": normaliser.deviation(scale.moments),
        }
        return replace(state, scale=scale), said
