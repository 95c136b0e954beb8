"""A reward that scores row by row, read as of the window's beginning while it goes on learning."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from primax.errors import InputError
from primax.nn import nets
from primax.rewards.base import Metrics, Reward, Spec
from primax.rewards.disagreement import Disagreement, DisagreementConfig
from primax.rewards.rnd import Rnd, RndConfig
from primax.rewards.transition import Batch, Obs, Recent, Step


class FrozenState(eqx.Module):
    """The reward's state, and a copy from the last boundary."""

    live: Any
    frozen: Any


class Frozen(Reward[FrozenState]):
    """Networks and normaliser freeze together, so that within a window a row's reward is fixed."""

    uses_keys = False

    spec: Spec
    inner: Reward

    def init(self, key: PRNGKeyArray) -> FrozenState:
        live = self.inner.init(key)
        # A copy: a buffer that is in the state twice could not be given to the next window.
        return FrozenState(live, jax.tree.map(jnp.copy, live))

    @property
    def reads_memo(self) -> bool:
        return self.inner.reads_memo

    @property
    def observes(self) -> bool:
        return self.inner.observes

    def stream(self, state: FrozenState) -> PyTree:
        return self.inner.stream(state.live)

    def with_stream(self, state: FrozenState, stream: PyTree) -> FrozenState:
        return replace(state, live=self.inner.with_stream(state.live, stream))

    def begin(self, state: FrozenState, obs: Obs, key: PRNGKeyArray) -> tuple[FrozenState, PyTree]:
        live, memo = self.inner.begin(state.live, obs, key)
        return replace(state, live=live), memo

    def observe(
        self, state: FrozenState, step: Step, key: PRNGKeyArray
    ) -> tuple[FrozenState, PyTree]:
        live, memo = self.inner.observe(state.live, step, key)
        return replace(state, live=live), memo

    def view(self, obs: Obs, memo: PyTree) -> Any:
        return self.inner.view(obs, memo)

    @property
    def view_shape(self) -> tuple[int, ...]:
        return self.inner.view_shape

    def refresh(
        self, state: FrozenState, recent: Recent, key: PRNGKeyArray
    ) -> tuple[FrozenState, Metrics]:
        """Freezes, and says by how much the reward of the newest rows jumped."""
        live, metrics = self.inner.refresh(state.live, recent, key)
        was, now = (self._scores(x, recent.rows) for x in (state.frozen, live))
        weight = recent.is_valid * recent.rows.weight
        jump = jnp.sum(weight * jnp.abs(now - was)) / jnp.maximum(jnp.sum(weight), 1.0)
        return FrozenState(live, live), metrics | {"reward_jump": jump}

    def _scores(self, state: Any, rows: Batch) -> Float[Array, " rows"]:
        return nets.map_chunks(lambda some: self.inner.score(state, some), rows)

    def score(self, state: FrozenState, batch: Batch) -> Float[Array, " batch"]:
        return self.inner.score(state.frozen, batch)

    def learn(
        self, state: FrozenState, batch: Batch, key: PRNGKeyArray
    ) -> tuple[FrozenState, Metrics]:
        live, metrics = self.inner.learn(state.live, batch, key)
        return replace(state, live=live), metrics


def rnd_snapshot(spec: Spec, config: RndConfig) -> Frozen:
    """RND whose predictor and scale change at boundaries only."""
    if config.read == "lived":
        raise InputError("reward.read=lived is for rnd: rnd_snapshot reads what a window froze")
    return Frozen(spec, Rnd(spec, config))


def ensemble_snapshot(spec: Spec, config: DisagreementConfig) -> Frozen:
    """Disagreement whose models and scale change at boundaries only."""
    return Frozen(spec, Disagreement(spec, config))
