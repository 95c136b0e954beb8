"""A reward with its ring, its clock and its windows: pure functions over one state.

The reward is the engine's own. With one environment, the engine's settings and the engine's
transitions, everything here happens when it happens there, with the same random numbers.
"""

from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray, PyTree, Shaped

from primax.anywhere import store
from primax.anywhere.config import BonusConfig
from primax.anywhere.store import Rows
from primax.anywhere.transition import Transition
from primax.nn import nets
from primax.rewards import observations, streams
from primax.rewards.base import Metrics, Reward
from primax.rewards.keys import Given, Keys
from primax.rewards.parts import normaliser
from primax.rewards.transition import Batch, Recent, Step

Updated = tuple[PyTree, PyTree, Metrics]
"""The reward and the keys after an update, and what it said."""
MOST_SHARED = 256
"""Steps between updates up to which one environment has the engine's keys."""


class BonusState(eqx.Module):
    """All that a bonus is at one moment; every leaf is an array."""

    key: PRNGKeyArray
    clock: Int[Array, ""]
    """Transitions so far, over all environments."""
    windows: Int[Array, ""]
    """Windows that have begun."""
    learnt: Int[Array, ""]
    """Calls of `learn`."""
    reward: PyTree
    streams: PyTree
    """What of the reward's state belongs to each environment."""
    memo: PyTree
    """What the reward keeps with the observation each environment's newest step led to."""
    is_fresh: Bool[Array, " envs"]
    """Whether the next step of an environment is an episode's first."""
    time: Int[Array, " envs"]
    """Steps of the episode under way."""
    rows: Rows
    moments: normaliser.Running | None
    """By which vectors are brought to scale; fixed for a window."""
    keys: PyTree
    scale: normaliser.Running | None
    """By which learnt keys see vectors; other keys see them as they came."""
    metrics: Metrics
    """What the newest update and the newest boundary said."""


@dataclass(frozen=True)
class Core:
    """What does not change."""

    config: BonusConfig
    reward: Reward
    keys: Keys

    def init(self, key: PRNGKeyArray) -> BonusState:
        """The state before the first transition; it depends on the key alone."""
        _, _, k_reward, k_keys = jax.random.split(streams.stream(key, streams.INIT, 0), 4)
        spec, envs = self.reward.spec, self.config.envs
        reward = self.reward.init(k_reward)
        obs = jnp.zeros(spec.shape, jnp.float32 if spec.kind == "vector" else jnp.uint8)
        like = jax.eval_shape(lambda: self.reward.begin(reward, obs, key)[1])
        memo = jax.tree.map(lambda x: jnp.zeros((envs, *x.shape), x.dtype), like)
        every = lambda x: jnp.broadcast_to(x, (envs, *x.shape))  # noqa: E731
        moments = normaliser.start(spec.shape) if spec.kind == "vector" else None
        learns = self.keys.learns
        state = BonusState(
            key=key,
            clock=jnp.int32(0),
            windows=jnp.int32(0),
            learnt=jnp.int32(0),
            reward=reward,
            streams=jax.tree.map(every, self.reward.stream(reward)),
            memo=memo,
            is_fresh=jnp.ones(envs, bool),
            time=jnp.zeros(envs, jnp.int32),
            rows=self._no_rows(every(obs), memo),
            moments=moments,
            # Learnt ones begin as they do in the engine.
            keys=self.keys.init(
                streams.stream(key, streams.KEYS, 0) if learns else k_keys, spec.shape
            ),
            scale=moments if learns else None,
            metrics={},
        )
        said = jax.eval_shape(lambda: self._refreshed(state)[-1] | self._updated(state, key)[-1])
        return replace(state, metrics={name: jnp.zeros((), x.dtype) for name, x in said.items()})

    def _no_rows(self, obs: Shaped[Array, "envs ..."], memo: PyTree) -> Rows:
        """As many as are kept, of zeros: nothing in them is a step."""
        kept, envs = observations.packed(obs, self.reward.spec.kind), self.config.envs
        whole, number, never = (jnp.zeros(envs, kind) for kind in (jnp.int32, jnp.float32, bool))
        tick = Rows(kept, kept, whole, number, whole, whole, never, never, never, memo, memo)
        return jax.tree.map(lambda x: jnp.zeros((self.config.ticks, *x.shape), x.dtype), tick)

    def step(self, state: BonusState, steps: Transition) -> tuple[BonusState, Float[Array, "t e"]]:
        """Takes in steps [time, envs], one tick after another, and says what each is worth."""
        return jax.lax.scan(self._tick, state, steps)

    def _tick(
        self, state: BonusState, step: Transition
    ) -> tuple[BonusState, Float[Array, " envs"]]:
        """A step of every environment; then the updates that are due; then the window, if one begins."""
        spec, before = self.reward.spec, state.clock
        state = self._begin(state, step)
        key, next_key = self._keys(state, step)
        obs, next_obs = (observations.scaled(state.moments, x) for x in (step.obs, step.next_obs))
        lived = Step(obs, step.action, next_obs, key * spec.num_actions + step.action, step.task)
        memo = state.memo
        state = self._observe(state, lived, step.valid)
        is_over = step.terminated | step.truncated
        rows = Rows(
            obs=observations.packed(step.obs, spec.kind),
            next_obs=observations.packed(step.next_obs, spec.kind),
            action=step.action,
            task=step.task,
            key=lived.key,
            next_key=next_key,
            terminated=step.terminated,
            truncated=step.truncated,
            is_lived=step.valid,
            memo=memo,
            next_memo=state.memo,
        )
        state = replace(
            state,
            clock=before + self.config.envs,
            is_fresh=jnp.where(step.valid, is_over, state.is_fresh),
            time=jnp.where(step.valid, jnp.where(is_over, 0, state.time + 1), state.time),
            rows=store.put(state.rows, rows, before // self.config.envs % self.config.ticks),
        )
        number = before + jnp.arange(self.config.envs)
        batch = store.batch(rows, state.moments, spec.kind, spec.shape, number)
        worth = self.score(state, batch)
        return self._refresh(self._updates(state, before)), worth

    def score(self, state: BonusState, batch: Batch) -> Float[Array, " n"]:
        """What transitions are worth as of now: nothing before the first window."""
        worth = self.reward.score(state.reward, batch)
        return jnp.where((state.windows > 0) & (batch.weight > 0), worth, 0.0)

    def learn(self, state: BonusState, batch: Batch) -> tuple[BonusState, Metrics]:
        """One update of all networks on a caller's minibatch; none in the warm-up."""
        key = streams.stream(state.key, streams.LEARN, state.learnt)
        *after, metrics = self._learnt(state, batch, key, key)
        before = [state.reward, state.keys]
        reward, keys = _select(state.windows > 0, after, before)
        return replace(state, reward=reward, keys=keys, learnt=state.learnt + 1), metrics

    def batch(self, state: BonusState, steps: Transition) -> Batch:
        """Transitions [n] as the reward sees them."""
        key, next_key = self._keys(state, steps)
        obs, next_obs = (observations.scaled(state.moments, x) for x in (steps.obs, steps.next_obs))
        return Batch(
            obs=obs,
            action=steps.action,
            task=steps.task,
            next_obs=next_obs,
            terminated=steps.terminated,
            truncated=steps.truncated,
            weight=steps.valid.astype(jnp.float32),
            key=key * self.reward.spec.num_actions + steps.action,
            next_key=next_key,
            memo=steps.memo,
            next_memo=steps.next_memo,
        )

    def _keys(
        self, state: BonusState, steps: Transition
    ) -> tuple[Int[Array, " n"], Int[Array, " n"]]:
        if isinstance(self.keys, Given) or steps.key is not None:
            return steps.key, steps.next_key
        return self._key(state, steps.obs), self._key(state, steps.next_obs)

    def _key(self, state: BonusState, obs: Shaped[Array, "n ..."]) -> Int[Array, " n"]:
        """The keys of observations as they came."""
        return self.keys.of(state.keys, observations.scaled(state.scale, obs))

    # Episodes

    def memo(self, state: BonusState, obs: Shaped[Array, "envs ..."]) -> PyTree:
        """What the reward keeps with the observation each environment shows now."""
        nothing = jnp.zeros(self.config.envs, jnp.int32)
        step = Transition(obs, nothing, obs, valid=jnp.ones(self.config.envs, bool))
        return self._begin(state, step).memo

    def _begin(self, state: BonusState, step: Transition) -> BonusState:
        """Episodes that start with this step, one environment after another: they share the rest."""
        reward = self.reward
        if not reward.begins:
            return state
        k_first = jax.random.split(streams.stream(state.key, streams.INIT, 0), 4)[3]
        _, k_later = jax.random.split(streams.stream(state.key, streams.EPISODE, state.clock))
        keys = self._by_env(jnp.where(state.clock == 0, k_first, k_later))
        obs = observations.scaled(state.moments, step.obs)

        def one(now, env):
            own, memo, obs, is_first, key = env
            now = reward.with_stream(now, own)
            now, memo = _select(is_first, reward.begin(now, obs, key), (now, memo))
            return now, (reward.stream(now), memo)

        every = (state.streams, state.memo, obs, state.is_fresh & step.valid, keys)
        now, (own, memo) = jax.lax.scan(one, state.reward, every)
        return replace(state, reward=now, streams=own, memo=memo)

    def _observe(self, state: BonusState, steps: Step, is_lived: Bool[Array, " envs"]):
        """The reward sees a step of every environment."""
        reward = self.reward
        if reward.only_counts:
            return replace(state, reward=reward.count(state.reward, steps.key, is_lived))
        if not reward.observes:
            return state
        keys = self._observe_keys(state)

        def one(now, env):
            own, memo, step, is_lived, key = env
            now = reward.with_stream(now, own)
            now, memo = _select(is_lived, reward.observe(now, step, key), (now, memo))
            return now, (reward.stream(now), memo)

        every = (state.streams, state.memo, steps, is_lived, keys)
        now, (own, memo) = jax.lax.scan(one, state.reward, every)
        return replace(state, reward=now, streams=own, memo=memo)

    def _observe_keys(self, state: BonusState) -> Key[Array, " n"]:
        """With one environment a key of the engine's round, which has one for each of its steps."""
        each = max(1, self.config.update_every)
        if self.config.envs > 1 or each > MOST_SHARED:
            return jax.random.split(self._round(state.key, state.clock)[3], self.config.envs)
        place = state.clock % each
        return jax.random.split(self._round(state.key, state.clock - place)[3], each)[place][None]

    def _round(self, key: PRNGKeyArray, clock: Int[Array, ""]) -> Key[Array, " n"]:
        return jax.random.split(streams.stream(key, streams.ROUND, clock), 5)

    def _by_env(self, key: PRNGKeyArray) -> Key[Array, " n"]:
        envs = self.config.envs
        return key[None] if envs == 1 else jax.random.split(key, envs)

    # Updates

    def _updates(self, state: BonusState, before: Int[Array, ""]) -> BonusState:
        """One for every `update_every` transitions since the warm-up."""
        each = self.config.update_every
        if not each:
            return state
        # Not before the first window, which begins with a tick.
        first = jnp.maximum(before, self.config.warm_ticks * self.config.envs) // each
        num = jnp.maximum(state.clock // each - first, 0)

        def one(i: Int[Array, ""], carry: Updated) -> Updated:
            reward, keys, metrics = carry
            key = self._round(state.key, (first + i) * each)[4]
            reward, keys, said = self._updated(replace(state, reward=reward, keys=keys), key)
            return _select(i < num, (reward, keys, metrics | said), carry)

        begin = (state.reward, state.keys, state.metrics)
        reward, keys, metrics = jax.lax.fori_loop(0, shared(num), one, begin)
        return replace(state, reward=reward, keys=keys, metrics=metrics)

    def _updated(self, state: BonusState, key: PRNGKeyArray) -> Updated:
        """What one update on rows drawn from those kept makes of the state."""
        config, spec = self.config, self.reward.spec
        k_sample, k_learn = jax.random.split(key)
        high = jnp.minimum(state.clock, config.ticks * config.envs - 1)
        age = 1 + jax.random.randint(k_sample, (config.critics.batch,), 0, high)
        number = state.clock - age
        tick, env = jnp.divmod(number, config.envs)
        rows = jax.tree.map(lambda x: x[tick % config.ticks, env], state.rows)
        batch = store.batch(rows, state.moments, spec.kind, spec.shape, number)
        return self._learnt(state, batch, key, k_learn)

    def _learnt(
        self, state: BonusState, batch: Batch, key: PRNGKeyArray, k_reward: PRNGKeyArray
    ) -> Updated:
        """The reward takes a training step, and keys that learn take one on the same rows."""
        reward, metrics = self.reward.learn(state.reward, batch, k_reward)
        k_keys = jax.random.fold_in(key, streams.KEYS)
        keys, told = self.keys.learn(state.keys, batch, k_keys)
        return reward, keys, metrics | told

    # Windows

    def _refresh(self, state: BonusState) -> BonusState:
        """Freezes the reward where a window begins."""
        config = self.config
        begun = jnp.where(
            state.clock >= config.warmup, 1 + (state.clock - config.warmup) // config.window, 0
        )
        is_due = begun > state.windows

        def freeze(state: BonusState) -> tuple:
            return _select(is_due, self._refreshed(state), _changing(state))

        # A branch, for it is rare and dear; of seeds that are mapped over, one is enough to take it.
        found = jax.lax.cond(shared(is_due.astype(jnp.int32)) > 0, freeze, _changing, state)
        return replace(_changed(state, found), windows=begun)

    def _refreshed(self, state: BonusState) -> tuple:
        """What changes with the window that begins now."""
        spec, rows = self.reward.spec, state.rows
        state = self._renewed(state)
        if state.moments is not None:
            moments = observations.moments(
                rows.obs.reshape(-1, *spec.shape), rows.is_lived.reshape(-1)
            )
            state = replace(state, moments=moments)
        state = self._settled(state)
        key = streams.stream(state.key, streams.REFRESH, state.clock)
        reward, metrics = self.reward.refresh(state.reward, self._recent(state), key)
        return _changing(replace(state, reward=reward, metrics=state.metrics | metrics))

    def _settled(self, state: BonusState) -> BonusState:
        """At the first window: keys as they will be, and what was lived so far counted by them."""
        if type(self.keys).settle is Keys.settle and state.scale is None:
            return state
        spec, num = self.reward.spec, self.config.warm_ticks
        obs, is_lived = (
            x[:num].reshape(-1, *x.shape[2:]) for x in (state.rows.obs, state.rows.is_lived)
        )
        obs = observations.unpacked(obs, spec.kind, spec.shape)
        keys = self.keys.settle(state.keys, obs, is_lived, spec.kind)
        scale = None if state.scale is None else state.moments
        settled = self._recounted(
            replace(state, keys=keys, scale=scale), num, at_once=num * self.config.envs
        )
        is_first = state.windows == 0
        return _changed(state, _select(is_first, _changing(settled), _changing(state)))

    def _renewed(self, state: BonusState) -> BonusState:
        """Learnt keys are renewed now and then, as long as every row is kept."""
        keys, config = self.keys, self.config
        if not keys.learns:
            return state
        most = config.ticks * config.envs
        after = jnp.array(keys.renewals(most // config.window + 1), jnp.int32)
        is_due = jnp.any(state.windows == after) & (state.clock < most)

        def renew(state: BonusState) -> tuple:
            recent = self._recent(state)
            rows = recent.rows
            made = keys.renew(state.keys, rows.obs, rows.next_obs, recent.is_lived)
            # Vectors by the scale that the newest updates saw, which is kept until the next renewal:
            # the scale of networks moves with every window, and keys must not move with it.
            fresh = replace(state, keys=made, scale=state.moments)
            again = self._recounted(fresh, config.ticks)
            return _select(is_due, _changing(again), _changing(state))

        # A branch, as windows are: most begin without.
        found = jax.lax.cond(shared(is_due.astype(jnp.int32)) > 0, renew, _changing, state)
        return _changed(state, found)

    def _recounted(self, state: BonusState, num: int, at_once: int = 512) -> BonusState:
        """The first ticks kept under the keys of now; what was counted before is forgotten."""
        spec, rows, envs = self.reward.spec, state.rows, self.config.envs

        def some(place: Int[Array, " n"]) -> list[Int[Array, " n"]]:
            tick, env = jnp.divmod(place, envs)
            both = (x[tick, env] for x in (rows.obs, rows.next_obs))
            return [self._key(state, observations.unpacked(x, spec.kind, spec.shape)) for x in both]

        found, next_key = nets.map_chunks(some, jnp.arange(num * envs), at_once)
        action, is_lived = (x[:num].reshape(-1) for x in (rows.action, rows.is_lived))
        key = found * spec.num_actions + action
        written = lambda x, new: x.at[:num].set(new.reshape(num, -1))  # noqa: E731
        return replace(
            state,
            reward=self.reward.count(self.reward.forget(state.reward), key, is_lived),
            rows=replace(
                rows,
                key=written(rows.key, key),
                next_key=written(rows.next_key, next_key),
            ),
        )

    def _recent(self, state: BonusState) -> Recent:
        """The newest rows, an environment after another, each oldest first."""
        config, spec = self.config, self.reward.spec
        age = jnp.arange(config.recent_ticks, 0, -1)
        tick = state.clock // config.envs - age
        rows = jax.tree.map(
            lambda x: jnp.swapaxes(x[tick % config.ticks], 0, 1).reshape(-1, *x.shape[2:]),
            state.rows,
        )
        every = lambda x: jnp.tile(x, config.envs)  # noqa: E731
        is_last = rows.terminated | rows.truncated | every(age == 1)
        number = every(tick * config.envs) + jnp.repeat(jnp.arange(config.envs), tick.shape[0])
        batch = store.batch(rows, state.moments, spec.kind, spec.shape, number)
        return Recent(batch, every(tick >= 0), is_last)


@jax.custom_batching.custom_vmap
def shared(x: Int[Array, ""]) -> Int[Array, ""]:
    """The largest of what is mapped over, as one number: a loop or a branch then stays one."""
    return x


@shared.def_vmap
def _(size: int, is_mapped: list[bool], x: Int[Array, "..."]) -> tuple[Array, bool]:
    return (jnp.max(x, axis=0) if is_mapped[0] else x), False


def _select(predicate: Bool[Array, ""], yes: Any, no: Any) -> Any:
    """Leaf by leaf; what is the same on both sides is left alone."""
    return jax.tree.map(lambda a, b: a if a is b else jnp.where(predicate, a, b), yes, no)


def _changing(state: BonusState) -> tuple:
    """What a boundary may change; rows change their keys alone."""
    rows, kept = state.rows, (state.moments, state.keys, state.scale)
    return state.reward, kept, (rows.key, rows.next_key), state.metrics


def _changed(state: BonusState, found: tuple) -> BonusState:
    """The state with what a boundary made of it."""
    reward, (moments, keys, scale), (key, next_key), metrics = found
    return replace(
        state,
        reward=reward,
        moments=moments,
        keys=keys,
        scale=scale,
        rows=replace(state.rows, key=key, next_key=next_key),
        metrics=metrics,
    )
