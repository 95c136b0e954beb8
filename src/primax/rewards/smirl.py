"""SMIRL: how likely an observation was under those of the same episode before it."""

from dataclasses import dataclass, replace
from typing import Annotated

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, UInt8

from primax.config.fields import Choice, Range, check
from primax.errors import InputError
from primax.rewards.base import Metrics, Reward, Spec
from primax.rewards.parts import density, normaliser
from primax.rewards.parts.normaliser import KINDS as NORMALISERS
from primax.rewards.transition import Batch, Step


@dataclass(frozen=True)
class SmirlConfig:
    """Options of SMIRL."""

    log_clip: Annotated[float, Range(1e-6, 1e9)] = 300.0
    """Largest log-density, up or down, in nats."""
    count_first: bool = False
    """Whether the observation an episode starts with enters its density."""
    agent: bool = False
    """Whether the agent's own plane enters the density."""
    prior: Annotated[float, Range(0, 1e6)] = 0.0
    """Pseudo-counts of a cell set and of a cell not set; 1 is Laplace's rule."""
    normaliser: Annotated[str, Choice(NORMALISERS)] = "rewards"
    """The log-density is divided by the running standard deviation of the `rewards`, of the `returns` or of \
recent rewards (`moving`); `standard` also subtracts the mean; `none` does not divide."""
    map: Annotated[str, Choice(("planes", "cells"))] = "planes"
    """What critics see of the density: a map for each of the `planes`, or their sum over `cells`."""

    def __post_init__(self):
        check(self, "reward.")


class SmirlState(eqx.Module):
    """The episode so far, and the scale of all rewards."""

    density: density.Density
    scale: normaliser.Scale


class Smirl(Reward[SmirlState]):
    """Pays for what is no surprise. The density is stored with every observation, and seen."""

    uses_keys = False
    needs_horizon = True

    spec: Spec
    config: SmirlConfig = eqx.field(static=True)

    def init(self, key: PRNGKeyArray) -> SmirlState:
        return SmirlState(density.start(self.spec), normaliser.fresh())

    def stream(self, state: SmirlState) -> tuple[density.Density, Float[Array, ""]]:
        return state.density, state.scale.filtered

    def with_stream(
        self, state: SmirlState, stream: tuple[density.Density, Float[Array, ""]]
    ) -> SmirlState:
        return SmirlState(stream[0], replace(state.scale, filtered=stream[1]))

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
        is_summed = self.config.map == "cells"
        return density.view(
            obs, memo, self.spec.horizon, is_summed=is_summed, prior=self.config.prior
        )

    @property
    def counted(self) -> tuple[int, ...]:
        """The planes that enter the density."""
        names, every = self.spec.channels, range(self.spec.shape[0])
        left_out = (
            () if self.config.agent else [i for i, name in enumerate(names) if name == "agent"]
        )
        counted = tuple(i for i in every if i not in left_out)
        if not counted:
            raise InputError("this world shows the agent alone: SMIRL needs reward.agent=true")
        return counted

    @property
    def view_shape(self) -> tuple[int, ...]:
        channels, rows, cols = self.spec.shape
        return channels + (channels if self.config.map == "planes" else 1) + 1, rows, cols

    def raw(
        self, before: density.Density, obs: UInt8[Array, "*n c rows cols"]
    ) -> Float[Array, "*n"]:
        """log p of what was arrived at, under the density from before it was added."""
        clip = self.config.log_clip
        found = density.log_density(before, obs, self.config.prior, self.counted)
        return jnp.clip(found, -clip, clip)

    def score(self, state: SmirlState, batch: Batch) -> Float[Array, " batch"]:
        raw = self.raw(batch.memo, batch.next_obs)
        return normaliser.normalise(state.scale, raw, self.config.normaliser)

    def learn(
        self, state: SmirlState, batch: Batch, key: PRNGKeyArray
    ) -> tuple[SmirlState, Metrics]:
        """Only the scale learns."""
        raw = self.raw(batch.memo, batch.next_obs)
        scale = normaliser.minibatch(state.scale, raw, batch.weight, self.config.normaliser)
        metrics = {
            "log_density": jnp.sum(batch.weight * raw) / jnp.maximum(jnp.sum(batch.weight), 1.0),
            "reward_std": normaliser.deviation(scale.moments),
        }
        return replace(state, scale=scale), metrics
