"""One world, one reward and one critic ensemble joined into a learner, written for one seed.

The clock is the only thing seeds share: it is passed beside the state and never batched, so that
under `vmap` one index serves every seed's ring and one predicate every seed's schedule.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree, Shaped

from primax.agent import best, keyed, mix, policy_metrics, ring
from primax.agent import critics as critic
from primax.agent.mix import Weight
from primax.config.schema import Config
from primax.errors import InputError
from primax.methods import Method, build
from primax.nn import nets
from primax.rewards import keys as named
from primax.rewards import observations
from primax.rewards.base import Reward
from primax.rewards.keys import Keys
from primax.rewards.parts import normaliser
from primax.rewards.parts.normaliser import Running
from primax.rewards.streams import EPISODE, HEAD, INIT, KEYS, REFRESH, ROUND, SNAPSHOT, stream
from primax.rewards.transition import Batch, Recent, Step
from primax.worlds import GridWorld, World, tally

Clock = Int[Array, ""]
Metrics = dict[str, Float[Array, "..."]]


class State(eqx.Module):
    """All of one seed's run; every leaf is an array."""

    seed: Int[Array, ""]
    key: PRNGKeyArray
    rates: critic.Rates
    world: PyTree
    obs: Shaped[Array, "..."]
    memo: PyTree
    tally: tally.Tally
    critics: critic.Critics
    best: best.Best
    reward: PyTree
    ring: ring.Ring
    episodes: Int[Array, ""] | None = None
    """How many are over, where they end when they like."""
    moments: Running | None = None
    """By which vectors are brought to scale; those of the warm-up, from its end on."""
    hashed: keyed.Hashed | None = None
    """How states are told apart, where the world does not say."""


class Learner(eqx.Module):
    """What does not change in a run."""

    config: Config = eqx.field(static=True)
    world: World
    reward: Reward

    @property
    def keys(self) -> Keys | None:
        """How observations become keys; None where the world gives them."""
        if self.config.keys is None:
            return None
        return named.made(self.config.keys, self.reward.spec)

    @property
    def is_shared(self) -> bool:
        """Whether all critics have one trunk."""
        return self.config.critics.trunk == "shared"

    def init(self, root: PRNGKeyArray, seed: Int[Array, ""]) -> State:
        """A seed's first state; it depends on the root key and the seed alone."""
        key = jax.random.fold_in(root, seed)
        k_world, k_critics, k_reward, k_begin = jax.random.split(stream(key, INIT, 0), 4)
        world, spec = self.world.for_seed(seed), self.reward.spec
        first = world.reset(k_world)
        obs = world.observe(first)
        moments = normaliser.start(spec.shape) if spec.kind == "vector" else None
        seen = _scaled(moments, obs)
        reward, memo = self.reward.begin(self.reward.init(k_reward), seen, k_begin)
        slot = ring.Slot(ring.pack(obs, spec.kind), memo)
        zero, never = jnp.int32(0), jnp.bool_(False)
        row = _row(zero, jnp.float32(0), (zero, zero), never, never)
        critics = critic.init(k_critics, **critic.sized(self.config, self.reward))
        critics = critic.share(critics) if self.is_shared else critics
        return State(
            seed=seed,
            key=key,
            rates=critic.rates(self.config.critics, self.config.mix),
            world=first,
            obs=obs,
            memo=memo,
            tally=tally.start(world, first),
            critics=critics,
            best=best.start(critics.online, isinstance(world, GridWorld)),
            reward=reward,
            ring=ring.empty(
                self.config.replay, None if world.can_end else world.horizon, slot, row
            ),
            episodes=zero if world.can_end else None,
            moments=moments,
            hashed=keyed.start(self.keys, stream(key, KEYS, 0), obs),
        )

    def warm_up(self, state: State, clock: Clock) -> tuple[State, dict[str, Any]]:
        """Random steps; nothing is learnt but the scale of what is seen."""

        def round_(carry, _):
            state, clock = carry
            *k_collect, _ = jax.random.split(stream(state.key, ROUND, clock), 5)
            state, ended = self._collect(state, clock, k_collect, None, is_random=True)
            return (state, clock + self.config.update_every), ({}, ended)

        state, outputs = self._segments(state, clock, self.config.warmup, round_)
        return self._settled(state, clock + self.config.warmup), outputs

    def _settled(self, state: State, clock: Clock) -> State:
        """Scale and keys by what the warm-up has seen, which is counted again by those keys."""
        if state.moments is None and state.hashed is None:
            return state
        spec, num = self.reward.spec, self.config.warmup
        rows = ring.read(state.ring, clock, jnp.arange(num, 0, -1), spec.shape, spec.kind)
        is_lived = rows.weight > 0
        if state.moments is not None:
            state = replace(state, moments=observations.moments(rows.obs, is_lived))
        if state.hashed is None or self.keys is None:
            return state
        settled = self.keys.settle(state.hashed.projection, rows.obs, is_lived, spec.kind)
        return self._recounted(state, clock, settled, *self._named(state, clock, settled, num))

    def renews(self, clock: int) -> bool:
        """Whether learnt keys are renewed before the window that begins here.

        Only as long as the ring holds every step, for everything is then counted again.
        """
        config, keys = self.config, self.keys
        if keys is None or not keys.learns or not config.warmup < clock < config.replay:
            return False
        number = (clock - config.warmup) // config.window
        return number in keys.renewals(number + 1)

    def renew(self, state: State, clock: Clock) -> State:
        """The state under keys by all that was learnt so far.

        A program of its own, which the host calls when it is due: a branch inside the window's
        program was seen to be compiled wrongly on a GPU (jax 0.11.2), other leaves of the state
        being overwritten.
        """
        assert self.keys is not None and state.hashed is not None
        age = jnp.arange(self.config.recent, 0, -1)
        rows = self.read(state, clock, age)
        is_lived = (age <= clock) & (rows.weight > 0)
        renewed = self.keys.renew(state.hashed.projection, rows.obs, rows.next_obs, is_lived)
        most = self.config.replay - 1
        return self._recounted(state, clock, renewed, *self._named(state, clock, renewed, most))

    def _named(
        self, state: State, clock: Clock, projection: PyTree, most: int
    ) -> tuple[Int[Array, " most"], Int[Array, " most"]]:
        """Other keys of the newest rows, oldest first: of state and action, and of what came after."""
        keys, num = self.keys, self.reward.spec.num_actions
        assert keys is not None
        of = partial(keys.of, projection)

        def some(age: Int[Array, " n"]) -> tuple[Array, Array]:
            rows = self._as_keyed(state, clock, age)
            return of(rows.obs) * num + rows.action, of(rows.next_obs)

        return nets.map_chunks(some, jnp.arange(most, 0, -1))

    def _recounted(
        self,
        state: State,
        clock: Clock,
        projection: PyTree,
        key: Int[Array, " most"],
        after: Int[Array, " most"],
    ) -> State:
        """Everything that was lived, all of it in the newest rows, under other keys."""
        assert self.keys is not None
        _, is_lived = ring.lived(state.ring, clock, jnp.arange(key.shape[0], 0, -1))
        met = jnp.zeros(self.keys.num, bool).at[key // self.reward.spec.num_actions].max(is_lived)
        hashed = keyed.Hashed(projection, jnp.int32(0), met.at[after].max(is_lived))
        return replace(
            state,
            hashed=keyed.seen(self.keys, hashed, self._shown(state, state.obs)),
            reward=self.reward.count(self.reward.forget(state.reward), key, is_lived),
            ring=ring.rename(state.ring, clock, key, after),
        )

    def _as_keyed(self, state: State, clock: Clock, age: Int[Array, " n"]) -> Batch:
        """Rows of the ring as keys see them: those that learn, as networks do."""
        spec = self.reward.spec
        if self.keys is not None and self.keys.learns:
            return self.read(state, clock, age)
        return ring.read(state.ring, clock, age, spec.shape, spec.kind)

    def _shown(self, state: State, obs: Shaped[Array, "..."]) -> Shaped[Array, "..."]:
        """One observation as keys see it."""
        is_scaled = self.keys is not None and self.keys.learns
        return _scaled(state.moments, obs) if is_scaled else obs

    def window(self, state: State, clock: Clock) -> tuple[State, dict[str, Any]]:
        """Freezes the reward, then acts and learns for a window."""
        config = self.config
        bonus_weight = self.bonus_weight(state.rates, clock)
        recent, greedy = self._recent(state, clock, bonus_weight)
        k_refresh = stream(state.key, REFRESH, clock)
        reward, metrics = self.reward.refresh(state.reward, recent, k_refresh)
        state = replace(state, reward=reward)
        maps = self.reward.maps(reward, recent)

        def round_(carry, _):
            state, clock = carry
            *k_collect, k_update = jax.random.split(stream(state.key, ROUND, clock), 5)
            state, ended = self._collect(state, clock, k_collect, bonus_weight, is_random=False)
            clock = clock + config.update_every
            state, metrics = self._update(state, clock, k_update, bonus_weight)
            return (state, clock), (metrics, ended)

        state, outputs = self._segments(state, clock, config.window, round_)
        judged = best.update(state.best, state.critics.online, clock + config.window)
        state = replace(state, best=judged)
        outputs["window"] |= metrics | self._policy_metrics(state, recent, greedy, clock)
        outputs["window"] |= {} if bonus_weight is None else {"bonus_weight": bonus_weight}
        if state.hashed is not None:
            outputs["window"] |= {"states_met": jnp.sum(state.hashed.met, dtype=jnp.float32)}
        outputs["maps"] |= maps
        return state, outputs

    def _recent(
        self, state: State, clock: Clock, bonus_weight: Weight = None
    ) -> tuple[Recent, Int[Array, " rows"]]:
        """The snapshot a window is frozen from, and the greedy actions after its rows."""
        age, is_written = self._ages(state, clock)
        rows = self.read(state, clock, age)

        def values(views):
            found = self.action_values(state.critics.online, views, bonus_weight)
            return jnp.moveaxis(found, 0, 1)

        views = self.reward.view(rows.next_obs, rows.next_memo)
        greedy = jnp.argmax(jnp.mean(nets.map_chunks(values, views), axis=1), axis=1)
        epsilon = self.epsilon(clock)
        num = self.world.num_actions
        policy = epsilon / num + (1.0 - epsilon) * jax.nn.one_hot(greedy, num)
        return Recent(rows, is_written, rows.is_end("end"), policy), greedy

    def read(self, state: State, clock: Clock, age: Int[Array, " n"]) -> Batch:
        """Rows of the ring, with vectors brought to scale."""
        spec = self.reward.spec
        rows = ring.read(state.ring, clock, age, spec.shape, spec.kind)
        if state.moments is None:
            return rows
        before, after = (observations.scaled(state.moments, x) for x in (rows.obs, rows.next_obs))
        return replace(rows, obs=before, next_obs=after)

    def _ages(self, state: State, clock: Clock) -> tuple[Int[Array, " rows"], Bool[Array, " rows"]]:
        """How old the snapshot's rows are, oldest first, and which of them were ever written."""
        num = self.config.recent
        if self.config.snapshot == "newest":
            age = jnp.arange(num, 0, -1)
            return age, age <= clock
        return ring.draw_episodes(state.ring, clock, num, stream(state.key, SNAPSHOT, clock))

    def _policy_metrics(
        self, state: State, recent: Recent, greedy: Int[Array, " rows"], began: Clock
    ) -> Metrics:
        """How much the policy depends on the state: greedy as of the snapshot, executed as of now."""
        num_keys, num = self.reward.spec.num_keys, self.world.num_actions
        clock = began + self.config.window
        greedy = recent.rows.next_key * num + greedy
        age = jnp.arange(1, min(policy_metrics.MI_ROWS, state.ring.capacity - 1) + 1)
        key, is_lived = ring.lived(state.ring, clock, age)
        return {
            "greedy_entropy": policy_metrics.greedy_entropy(
                policy_metrics.joint_counts(greedy, recent.is_lived, num_keys, num)
            ),
            "mutual_information": policy_metrics.mutual_information(
                policy_metrics.joint_counts(key, is_lived, num_keys, num)
            ),
        }

    def _maps(self, state: State, clock: Clock, steps: int) -> dict[str, Int[Array, "rows cols"]]:
        """How often each cell was where a step was taken from, in the last steps; if there are cells."""
        if not isinstance(self.world, GridWorld) or not self.reward.spec.has_cells:
            return {}
        age = jnp.arange(1, min(steps, state.ring.capacity - 1) + 1)
        key, is_lived = ring.lived(state.ring, clock, age)
        row, col, _ = self.reward.spec.coordinates(key)
        visits = jnp.zeros(self.world.shape, jnp.int32)
        return {"visits": visits.at[row, col].add(is_lived.astype(jnp.int32))}

    def epsilon(self, clock: Int[Array, "*n"]) -> Float[Array, "*n"]:
        """The chance of a random action at a step."""
        explore = self.config.explore
        ramp = max(1.0, explore.fraction * self.config.schedule_span)
        progress = jnp.minimum(1.0, clock / ramp)
        return explore.start + (explore.end - explore.start) * progress

    def bonus_weight(self, rates: critic.Rates, clock: Clock) -> Weight:
        """What the bonus counts beside the task in the window that begins here; None without a mix."""
        return mix.bonus_weight(self.config, rates.mix_weight, clock)

    def action_values(
        self, online: PyTree, views: Any, bonus_weight: Weight = None
    ) -> Float[Array, "heads batch actions"]:
        """What every head thinks of each action: of the task and the bonus together."""
        values = critic.values(online, self.reward.spec.see(views))
        if self.config.num_values == 2:
            assert bonus_weight is not None
            return critic.combined(values, bonus_weight)
        return values

    def _segments(self, state: State, clock: Clock, steps: int, round_: Any):
        """Runs `steps` in stretches, and says how the episodes that ended went.

        Where all episodes are of one length, none ends inside a stretch and one may at its end.
        """
        config = self.config

        def segment(carry, _):
            state, clock = carry
            state = self._open(state, clock) if self.world.can_end else self._begin(state, clock)
            rounds = config.segment // config.update_every
            (state, clock), (means, ended) = jax.lax.scan(round_, (state, clock), length=rounds)
            if self.world.can_end:
                return (state, clock), (ended, _reduce(means))
            is_over = self.world.for_seed(state.seed).truncated(state.world)
            episode = {"outcome": tally.outcome(state.tally), "is_over": is_over}
            return (state, clock), (episode, _reduce(means))

        length = steps // config.segment
        (state, clock), (episodes, means) = jax.lax.scan(segment, (state, clock), length=length)
        episodes = jax.tree.map(lambda x: x.reshape(-1), episodes)
        noted = best.note(state.best, episodes["outcome"], episodes["is_over"])
        state = replace(state, best=noted)
        maps = self._maps(state, clock, steps)
        return state, {"episodes": episodes, "window": _reduce(means), "maps": maps}

    def _begin(self, state: State, clock: Clock) -> State:
        """Where an episode is over, starts the next; and syncs the targets when due."""
        k_world, k_reward = jax.random.split(stream(state.key, EPISODE, clock))
        world = self.world.for_seed(state.seed)
        fresh = world.reset(k_world)
        obs = world.observe(fresh)
        reward, memo = self.reward.begin(state.reward, obs, k_reward)
        is_new = world.truncated(state.world)
        started = (fresh, obs, memo, tally.start(world, fresh), reward)
        going = (state.world, state.obs, state.memo, state.tally, state.reward)
        now, obs, memo, sums, reward = _select(is_new, started, going)
        is_due = clock % self.config.critics.sync_every == 0
        slot = ring.Slot(ring.pack(obs), memo)
        hashed = state.hashed
        if hashed is not None and self.keys is not None:
            hashed = keyed.seen(self.keys, hashed, self._shown(state, obs))
        return replace(
            state,
            hashed=hashed,
            world=now,
            obs=obs,
            memo=memo,
            tally=sums,
            critics=critic.sync(state.critics, is_due),
            reward=reward,
            ring=ring.open_slot(state.ring, clock, slot),
        )

    def _open(self, state: State, clock: Clock) -> State:
        """Where episodes end when they like: only the slot, should the ring begin anew, and the sync."""
        is_due = clock % self.config.critics.sync_every == 0
        slot = ring.Slot(ring.pack(state.obs, self.reward.spec.kind), state.memo)
        critics, kept = critic.sync(state.critics, is_due), ring.open_slot(state.ring, clock, slot)
        return replace(state, critics=critics, ring=kept)

    def _collect(
        self,
        state: State,
        clock: Clock,
        keys: list[PRNGKeyArray],
        bonus_weight: Weight,
        is_random: bool,
    ) -> tuple[State, dict[str, Any]]:
        """Acts for one round and writes what happened to the ring; says which episodes ended."""
        k_world, k_explore, k_action, k_reward = keys
        world, num = self.world.for_seed(state.seed), self.config.update_every
        draws = (
            world.noise(k_world, num),
            jax.random.uniform(k_explore, (num,)) < self.epsilon(clock + jnp.arange(num)),
            jax.random.randint(k_action, (num,), 0, world.num_actions),
            jax.random.split(k_reward, num),
        )
        fresh = None
        if world.can_end:  # a first state for every step, in case it is needed, made all at once
            fresh = jax.vmap(lambda key: world.reset(jax.random.split(key)[0]))(draws[3])

        def step(state: State, draw) -> tuple[State, tuple[ring.Slot, ring.Row, dict[str, Any]]]:
            (noise, is_explored, action, k_reward), fresh = draw
            if not is_random:
                greedy = self._greedy(state, clock, bonus_weight)
                action = jnp.where(is_explored, action, greedy)
            if fresh is not None:
                return self._step_or_reset(world, state, action, noise, (fresh, k_reward))
            return self._step(world, state, action, noise, k_reward)

        state, (slots, rows, ended) = jax.lax.scan(
            step, state, (draws, fresh), unroll=is_in_one_piece(world)
        )
        return replace(state, ring=ring.write(state.ring, clock, slots, rows)), ended

    def _greedy(self, state: State, clock: Clock, bonus_weight: Weight = None) -> Int[Array, ""]:
        """The action of the highest value: averaged over heads, or by this episode's head."""
        view = self.reward.view(_scaled(state.moments, state.obs), state.memo)[None]
        values = self.action_values(state.critics.online, view, bonus_weight)
        by_clock = clock // self.world.horizon
        number = by_clock if state.episodes is None else state.episodes
        return critic.greedy(values[:, 0], self.acting_head(state.key, number))

    def acting_head(self, key: PRNGKeyArray, episode: Int[Array, ""] | int) -> Array | None:
        """The head that acts in an episode; None where all do, by their mean."""
        if self.config.critics.acting == "mean":
            return None
        k_head = stream(key, HEAD, episode)
        return jax.random.randint(k_head, (), 0, self.config.critics.heads)

    def _step(
        self, world: World, state: State, action: Int[Array, ""], noise: Any, key: PRNGKeyArray
    ):
        """One environment step of a world whose episodes are all of one length."""
        is_idle = world.terminated(state.world)
        now = world.step(state.world, action, noise)
        task = jnp.where(is_idle, 0.0, world.task(now))
        obs = world.observe(now)
        hashed, keys = self._keyed(world, state, action, now, obs)
        reward, memo = self.reward.observe(
            state.reward, Step(state.obs, action, obs, keys[0], task), key
        )
        reward = _select(is_idle, state.reward, reward)
        sums = _select(is_idle, state.tally, tally.add(world, state.tally, now))
        row = _row(action, task, keys, world.terminated(now), is_idle)
        after = replace(
            state, world=now, obs=obs, memo=memo, tally=sums, reward=reward, hashed=hashed
        )
        return after, (ring.Slot(ring.pack(obs), memo), row, {})

    def _step_or_reset(
        self,
        world: World,
        state: State,
        action: Int[Array, ""],
        noise: Any,
        anew: tuple[Any, PRNGKeyArray],
    ):
        """One environment step, or after an episode's end a reset in its place: an idle row.

        The idle row's slot holds the first observation of the episode that begins. So a row still
        reads its own slot and the next, and an episode's last row the last observation.
        """
        (fresh, key), moved = anew, world.step(state.world, action, noise)
        k_reward = jax.random.split(key)[1]  # the first has made the fresh state
        is_idle = world.terminated(state.world) | world.truncated(state.world)
        now = _select(is_idle, fresh, moved)
        task = jnp.where(is_idle, 0.0, world.task(moved))
        obs = world.observe(now)
        hashed, (count_key, next_key) = self._keyed(world, state, action, now, obs)
        before, after = (_scaled(state.moments, x) for x in (state.obs, obs))
        seen = Step(before, action, after, count_key, task)
        if self.reward.only_counts:  # in place: a table of counts must not be copied at every step
            reward, memo = self.reward.count(state.reward, count_key[None], ~is_idle[None]), ()
        else:
            reward, memo = _select(
                is_idle,
                self.reward.begin(state.reward, after, k_reward),
                self.reward.observe(state.reward, seen, k_reward),
            )
        sums = _select(is_idle, tally.start(world, fresh), tally.add(world, state.tally, moved))
        terminated = world.terminated(now) & ~is_idle
        is_over = terminated | (world.truncated(now) & ~is_idle)
        row = _row(action, task, (count_key, next_key), terminated, is_idle)
        number = state.episodes
        assert number is not None
        ended = {"outcome": tally.outcome(sums), "is_over": is_over, "episode": number}
        after = replace(
            state,
            world=now,
            obs=obs,
            memo=memo,
            tally=sums,
            reward=reward,
            episodes=number + is_over,
            hashed=hashed,
        )
        return after, (ring.Slot(ring.pack(obs, self.reward.spec.kind), memo), row, ended)

    def _keyed(
        self,
        world: World,
        state: State,
        action: Int[Array, ""],
        now: Any,
        obs: Shaped[Array, "..."],
    ) -> tuple[keyed.Hashed | None, tuple[Int[Array, ""], Int[Array, ""]]]:
        """The key of state and action, and that of the state they led to."""
        if state.hashed is None or self.keys is None:
            return None, (world.count_key(state.world, action), world.state_key(now))
        hashed = keyed.seen(self.keys, state.hashed, self._shown(state, obs))
        return hashed, (state.hashed.now * world.num_actions + action, hashed.now)

    def _update(
        self, state: State, clock: Clock, key: PRNGKeyArray, bonus_weight: Weight = None
    ) -> tuple[State, Metrics]:
        """Samples a minibatch, scores it with the frozen reward, and takes one step everywhere."""
        config, (k_sample, k_learn) = self.config, jax.random.split(key)
        high = ring.open_rows(state.ring, clock)
        age = 1 + jax.random.randint(k_sample, (config.critics.batch,), 0, high)
        batch = self.read(state, clock, age)
        score = self.reward.score(state.reward, batch)
        has_idle = self.world.can_end
        lived = batch.weight if has_idle else None
        paid, parts = mix.paid(config, batch.task, score, bonus_weight, lived)
        see = self.reward.spec.see
        before = see(self.reward.view(batch.obs, batch.memo))
        after = see(self.reward.view(batch.next_obs, batch.next_memo))
        critics, metrics = critic.update(
            state.critics,
            state.rates,
            before,
            after,
            (batch.action, paid, batch.weight, batch.is_end(config.critics.truncation)),
            config.critics.double,
            self.is_shared,
            bonus_weight if config.num_values == 2 else None,
            has_idle,
        )
        reward, more = self.reward.learn(state.reward, batch, k_learn)
        state = replace(state, critics=critics, reward=reward)
        if state.hashed is None or self.keys is None or not self.keys.learns:
            return state, metrics | parts | more
        k_codes = jax.random.fold_in(key, KEYS)
        projection, told = self.keys.learn(state.hashed.projection, batch, k_codes)
        hashed = replace(state.hashed, projection=projection)
        return replace(state, hashed=hashed), metrics | parts | more | told


def make_learner(
    config: Config, method: str | Method | None = None, world: object | None = None
) -> Learner:
    """The learner of a configuration, with the world and the reward it names or those given."""
    made, reward = build(config, method, world)
    if made.can_end and config.snapshot != "newest":
        raise InputError("snapshot=random needs a world whose episodes are all of one length")
    learner = Learner(config, made, reward)
    if learner.keys is not None:
        named.check_counts(learner.keys, reward, config.method)
    return learner


def is_in_one_piece(world: World) -> bool:
    """Whether the steps of a round are unrolled: where resets are among them, only on a GPU.

    On a CPU the compiler would fuse those into one kernel that computes each of them many times.
    """
    return not world.can_end or jax.default_backend() == "gpu"


def _scaled(moments: Running | None, obs: Shaped[Array, "..."]) -> Shaped[Array, "..."]:
    """One observation as rewards and critics see it."""
    return obs if moments is None else observations.scaled(moments, obs[None])[0]


def _row(action, task, keys, terminated, idle) -> ring.Row:
    return ring.Row(action.astype(jnp.uint8), task, *keys, terminated, idle)


def _select(predicate: Bool[Array, ""], yes: Any, no: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(predicate, a, b), yes, no)


def _reduce(metrics: Metrics) -> Metrics:
    """Over the leading axis: the maximum of what is named so, else the mean."""
    return {
        name: jnp.max(x, axis=0) if name.endswith("_max") else jnp.mean(x, axis=0)
        for name, x in metrics.items()
    }
