"""Episodes of a trained agent: it acts on what it has learnt, and learns nothing more."""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray, PyTree, Shaped

from primax.agent import critics as critic
from primax.agent.learner import Learner
from primax.rewards.observations import scaled
from primax.rewards.parts.normaliser import Running
from primax.rewards.transition import Step
from primax.worlds import World, tally
from primax.worlds.rollout import Episode


class Agent(eqx.Module):
    """What is left of a seed when it has learnt; every leaf is an array."""

    seed: Int[Array, "*seeds"]
    online: PyTree
    """The control heads."""
    reward: PyTree
    """The reward's state, for what the critics see of it; nothing where they see the world alone."""
    bonus_weight: Float[Array, "*seeds"] | None = None
    """What the bonus counts beside the task, where the agent is of a mix."""
    moments: Running | None = None
    """By which vectors are brought to scale."""


class Moment(eqx.Module):
    """Where an episode stands."""

    world: PyTree
    obs: Shaped[Array, "..."]
    memo: PyTree
    reward: PyTree
    tally: tally.Tally


def play(
    learner: Learner,
    agent: Agent,
    epsilon: Float[Array, ""],
    keys: Key[Array, " episodes"],
) -> tuple[tally.Outcome, Episode]:
    """Episodes of one seed side by side, one for each key: how they went, and all their states.

    Each begins with the reward's state as it is, and leaves nothing of it. Where the world ends,
    or cuts it short, an episode stays as it is until all are over.
    """
    world = learner.world.for_seed(agent.seed)
    begun, heads, draws = jax.vmap(partial(_begin, learner, world, agent, epsilon))(keys)

    def step(now: Moment, draw: Any) -> tuple[Moment, Any]:
        views = learner.reward.view(scaled(agent.moments, now.obs), now.memo)
        values = learner.action_values(agent.online, views, agent.bonus_weight)
        greedy = jax.vmap(critic.greedy, in_axes=(1, 0))(values, heads)
        after, action = jax.vmap(partial(_step, learner, world, agent))(now, greedy, draw)
        return after, (after.world, action)

    by_step = jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), draws)
    last, (states, actions) = jax.lax.scan(step, begun, by_step)
    states = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), begun.world, states)
    return jax.vmap(tally.outcome)(last.tally), jax.vmap(Episode, in_axes=1)(states, actions)


def _begin(
    learner: Learner, world: World, agent: Agent, epsilon: Float[Array, ""], key: PRNGKeyArray
) -> tuple[Moment, Array | None, Any]:
    """An episode's first moment, the head that acts in it, and all that is random in its steps."""
    k_reset, k_begin, k_head, k_noise, k_action, k_reward = jax.random.split(key, 6)
    first, num = world.reset(k_reset), world.horizon
    obs = world.observe(first)
    reward, memo = agent.reward, ()
    if learner.reward.begins:
        seen = scaled(agent.moments, obs[None])[0]
        reward, memo = learner.reward.begin(reward, seen, k_begin)
    words = jax.random.bits(k_action, (num, 2), "uint32")
    draws = (
        world.noise(k_noise, num),
        (words[:, 0] >> 8) * 2.0**-24 < epsilon,
        (words[:, 1] % world.num_actions).astype(jnp.int32),
        jax.random.split(k_reward, num),
    )
    moment = Moment(first, obs, memo, reward, tally.start(world, first))
    return moment, learner.acting_head(k_head, 0), draws


def _step(
    learner: Learner, world: World, agent: Agent, now: Moment, greedy: Int[Array, ""], draw: Any
) -> tuple[Moment, Int[Array, ""]]:
    noise, is_explored, drawn, key = draw
    action = jnp.where(is_explored, drawn, greedy)
    state = world.step(now.world, action, noise)
    obs, reward, memo = world.observe(state), now.reward, now.memo
    if learner.reward.begins:
        # No key is left where observations were hashed; nothing that is seen of rewards needs it.
        count_key = world.count_key(now.world, action) if world.has_keys else jnp.int32(0)
        before, later = (scaled(agent.moments, x[None])[0] for x in (now.obs, obs))
        seen = Step(before, action, later, count_key, world.task(state))
        reward, memo = learner.reward.observe(reward, seen, key)
    after = Moment(state, obs, memo, reward, tally.add(world, now.tally, state))
    is_over = world.terminated(now.world) | world.truncated(now.world)
    return _unless(is_over, now, after), action


def _unless(is_over: Bool[Array, ""], now: Moment, after: Moment) -> Moment:
    return jax.tree.map(lambda a, b: jnp.where(is_over, a, b), now, after)
