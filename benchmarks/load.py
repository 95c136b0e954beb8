"""A reward of PRIME's size, for timing the engine: five quantile networks trained every round.

It is no method: the score is the task signal. What it costs is what the statistics ensemble costs:
online, target and frozen-prior passes, and a step of Adam, on the critics' minibatch.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from primax import nets
from primax.optim import adam_start, adam_step
from primax.replay import Batch
from primax.rewards.base import Recent, Reward, Spec
from primax.rewards.task import NoOptions

HEADS, QUANTILES, BOUND, PRIOR = 5, 11, 2.0, 2.0


class LoadState(eqx.Module):
    online: nets.Net
    target: nets.Net
    prior: nets.Net
    optimiser: PyTree


class Load(Reward[LoadState]):
    spec: Spec
    config: NoOptions = eqx.field(static=True)

    def init(self, key: PRNGKeyArray) -> LoadState:
        def one(key: PRNGKeyArray) -> nets.Net:
            outputs = self.spec.num_actions * QUANTILES
            return nets.net(key, self.spec.planes, self.spec.net, outputs)

        online, prior = (jax.vmap(one)(jax.random.split(k, HEADS)) for k in jax.random.split(key))
        optimiser = jax.vmap(adam_start)(online)
        return LoadState(online, jax.tree.map(jnp.copy, online), prior, optimiser)

    def refresh(self, state: LoadState, recent: Recent, key: PRNGKeyArray):
        return LoadState(state.online, state.online, state.prior, state.optimiser), {}

    def score(self, state: LoadState, batch: Batch) -> Float[Array, " batch"]:
        return batch.task

    def learn(self, state: LoadState, batch: Batch, key: PRNGKeyArray):
        before, after = nets.see(batch.obs), nets.see(batch.next_obs)
        rows = jnp.arange(batch.action.shape[0])

        def quantiles(net, prior, patches):
            out = BOUND * jnp.tanh(net(patches) + PRIOR * prior(patches))
            return out.reshape(-1, self.spec.num_actions, QUANTILES)

        def loss(net, target, prior):
            goal = batch.task[:, None] + 0.9 * quantiles(target, prior, after)[rows, batch.action]
            error = (
                jax.lax.stop_gradient(goal)[:, None, :]
                - quantiles(net, prior, before)[rows, batch.action][:, :, None]
            )
            middle = (jnp.arange(QUANTILES) + 0.5) / QUANTILES
            weight = jnp.abs(middle[None, :, None] - (error < 0))
            return jnp.mean(jnp.sum(jnp.mean(weight * optax.losses.huber_loss(error), 2), 1))

        losses, grads = jax.vmap(jax.value_and_grad(loss))(state.online, state.target, state.prior)
        rates = {"learning_rate": jnp.float32(1e-4), "grad_clip": jnp.float32(10.0)}
        online, optimiser = jax.vmap(lambda p, g, s: adam_step(p, g, s, **rates))(
            state.online, grads, state.optimiser
        )
        state = LoadState(online, state.target, state.prior, optimiser)
        return state, {"load_loss": jnp.mean(losses)}
