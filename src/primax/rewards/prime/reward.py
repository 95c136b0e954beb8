"""PRIME as a reward: it observes, learns, freezes and scores."""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from primax.errors import InputError, check_range
from primax.nn import nets
from primax.nn.optim import adam_start, adam_step
from primax.rewards.base import Metrics, Reward, Spec
from primax.rewards.prime import heads, inverse, quantile, telemetry
from primax.rewards.prime.config import Constants, PrimeConfig, constants
from primax.rewards.prime.intrinsic import Parts
from primax.rewards.prime.learnt import NOVELTIES
from primax.rewards.prime.novelty import Where, continuation_bonus
from primax.rewards.prime.window import Freezer, Window
from primax.rewards.transition import Batch, Recent, Step

MOST_KEYS = 20_000_000
"""Entries of the count table; a seed holds two, of four bytes each."""


class PrimeState(eqx.Module):
    """What lives, and the window that scores."""

    constants: Constants
    online: nets.Net
    """Statistics heads."""
    prior: nets.Net
    """Their frozen randomized priors, one each."""
    optimiser: PyTree
    inverse: inverse.Inverse
    inverse_optimiser: PyTree
    novelty: Any
    window: Window


class Prime(Reward[PrimeState]):
    """Pays for what can still be learnt, charges for what never can."""

    only_counts = True

    spec: Spec
    config: PrimeConfig = eqx.field(static=True)
    freezer: Freezer

    def __init__(self, spec: Spec, config: PrimeConfig):
        cells = spec.num_actions * (math.prod(spec.shape[1:]) if spec.has_cells else 1)
        check_range("the world's count keys", spec.num_keys, cells, MOST_KEYS)
        if spec.num_keys % cells:
            raise InputError(
                f"{spec.num_keys} count keys are not so many for every cell and action"
            )
        if config.moments == "nearest16" and not spec.has_cells:
            raise InputError("reward.moments=nearest16 needs keys that are cells of a grid")
        self.spec, self.config = spec, config
        self.freezer = Freezer(spec, config, NOVELTIES[config.novelty](spec))

    def init(self, key: PRNGKeyArray) -> PrimeState:
        k_online, k_prior, k_inverse, k_novelty = jax.random.split(key, 4)
        spec, num = self.spec, self.config.heads
        outputs = spec.num_actions * self.config.quantiles
        one = lambda key: spec.network(key, outputs)  # noqa: E731
        online, prior = (jax.vmap(one)(jax.random.split(k, num)) for k in (k_online, k_prior))
        model = inverse.init(k_inverse, spec, self.config.feature_dim)
        numbers = constants(self.config, spec.gamma)
        novelty = self.freezer.novelty.init(k_novelty)
        live = (numbers, online, prior, model, novelty)
        like = jax.eval_shape(lambda: self.freezer.freeze(live, spec.no_rows(), key)[0])
        nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), like)
        return PrimeState(
            constants=numbers,
            online=online,
            prior=prior,
            optimiser=jax.vmap(adam_start)(online),
            inverse=model,
            inverse_optimiser=adam_start(model),
            novelty=novelty,
            window=replace(nothing, constants=numbers),
        )

    def observe(self, state: PrimeState, step: Step, key: PRNGKeyArray) -> tuple[PrimeState, tuple]:
        return replace(state, novelty=self.freezer.novelty.observe(state.novelty, step)), ()

    def refresh(
        self, state: PrimeState, recent: Recent, key: PRNGKeyArray
    ) -> tuple[PrimeState, Metrics]:
        live = (state.constants, state.online, state.prior, state.inverse, state.novelty)
        window, readout = self.freezer.freeze(live, recent, key)
        was, now = (self.freezer.parts(w, _where(recent.rows)) for w in (self.reads(state), window))
        metrics = telemetry.boundary(window, readout, recent, was.reward, now.reward)
        return replace(state, window=window), metrics

    def count(
        self, state: PrimeState, key: Int[Array, " n"], is_lived: Bool[Array, " n"]
    ) -> PrimeState:
        return replace(state, novelty=self.freezer.novelty.count(state.novelty, key, is_lived))

    def forget(self, state: PrimeState) -> PrimeState:
        return replace(state, novelty=self.freezer.novelty.forget(state.novelty))

    def maps(self, state: PrimeState, recent: Recent) -> dict[str, Float[Array, "rows cols"]]:
        if not self.spec.has_cells:
            return {}
        return telemetry.maps(self.spec, self.parts(state, recent.rows), recent)

    def parts(self, state: PrimeState, batch: Batch) -> Parts:
        """The reward of transitions, with all it is made of."""
        return self.freezer.parts(self.reads(state), _where(batch))

    def reads(self, state: PrimeState) -> Window:
        """What scores: the window, with live counts in the place of its own where that is asked."""
        is_live = self.config.counts == "live"
        return replace(state.window, novelty=state.novelty) if is_live else state.window

    def score(self, state: PrimeState, batch: Batch) -> Float[Array, " batch"]:
        return self.parts(state, batch).reward

    def learn(
        self, state: PrimeState, batch: Batch, key: PRNGKeyArray
    ) -> tuple[PrimeState, Metrics]:
        before, after = self.spec.see(batch.obs), self.spec.see(batch.next_obs)
        k_action, k_novelty = jax.random.split(key)
        policy, targets = self._targets(state, batch, after, k_action)
        losses, state = self._evaluate(state, batch, before, targets)
        inverse_loss, accuracy, state = self._tell_actions(state, batch, before, after)
        novelty, more = self.freezer.novelty.learn(state.novelty, batch, k_novelty)
        metrics = {
            "stats_loss": jnp.mean(losses),
            "zeta_abs_max": jnp.max(jnp.abs(targets) * (batch.weight > 0)[None, :, None]),
            "inverse_loss": inverse_loss,
            "inverse_accuracy": accuracy,
            "pi_ref_from_u": telemetry.from_uniform(policy, batch.weight),
        }
        clip = state.window.constants.reward_clip
        metrics |= telemetry.of_parts(self.parts(state, batch), batch.weight, clip)
        return replace(state, novelty=novelty), metrics | more

    def _targets(
        self, state: PrimeState, batch: Batch, after: heads.Seen, key: PRNGKeyArray
    ) -> tuple[Float[Array, "batch actions"], Float[Array, "heads batch quantiles"]]:
        """π_ref at s', and ζ_k of every transition; a' is drawn once and shared by the heads."""
        window, num = self.reads(state), self.spec.num_actions
        q = heads.ensemble(window.heads, state.prior, after, num, window.constants)
        policy = heads.reference_policy(jnp.mean(q[0], axis=-1), window.constants.temperature)
        action = jax.random.categorical(key, jnp.log(policy))
        q_taken = jax.vmap(nets.chosen, in_axes=(0, None))(q, action)
        numbers = window.constants
        x = self.freezer.novelty.value(window.novelty, _where(batch))
        bonus = continuation_bonus(x, self.config.bonus, numbers.count_scale, numbers.gamma)
        is_end = batch.is_end(self.config.truncation)
        discount = numbers.gamma * (1.0 - is_end.astype(jnp.float32))
        per_row = jax.vmap(quantile.zeta)
        return policy, jax.vmap(per_row, in_axes=(None, None, 0))(bonus, discount, q_taken)

    def _evaluate(
        self,
        state: PrimeState,
        batch: Batch,
        before: heads.Seen,
        targets: Float[Array, "heads batch quantiles"],
    ) -> tuple[Float[Array, " heads"], PrimeState]:
        """One step of every statistics head toward its targets."""
        numbers, num = state.constants, self.spec.num_actions

        def loss(net: nets.Net, prior: nets.Net, zeta: Float[Array, "batch quantiles"]):
            q = heads.quantiles(net, prior, before, num, numbers)
            q_taken = nets.chosen(q, batch.action)
            return jnp.mean(batch.weight * jax.vmap(quantile.quantile_huber)(q_taken, zeta))

        losses, grads = jax.vmap(jax.value_and_grad(loss))(state.online, state.prior, targets)
        rates = {"learning_rate": numbers.stats_learning_rate, "grad_clip": numbers.grad_clip}
        step = jax.vmap(partial(adam_step, **rates))
        online, optimiser = step(state.online, grads, state.optimiser)
        return losses, replace(state, online=online, optimiser=optimiser)

    def _tell_actions(
        self, state: PrimeState, batch: Batch, before: heads.Seen, after: heads.Seen
    ) -> tuple[Float[Array, ""], Float[Array, ""], PrimeState]:
        """One step of the inverse model."""
        numbers = state.constants
        loss = partial(
            inverse.loss, before=before, after=after, action=batch.action, weight=batch.weight
        )
        (value, accuracy), grads = jax.value_and_grad(loss, has_aux=True)(state.inverse)
        model, optimiser = adam_step(
            state.inverse,
            grads,
            state.inverse_optimiser,
            learning_rate=numbers.phi_learning_rate,
            grad_clip=numbers.grad_clip,
        )
        return value, accuracy, replace(state, inverse=model, inverse_optimiser=optimiser)


def _where(batch: Batch) -> Where:
    return Where(batch.obs, batch.action, batch.key)
