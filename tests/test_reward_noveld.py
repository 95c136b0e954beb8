"""NovelD against numpy: the difference of novelties, first visits, and what an episode remembers."""

from dataclasses import replace
from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from episodes_case import PATHS, PLANES, SMALL, live, many, places, probed, rows
from probes import Constant, Delayed, Seen, Walks
from reward_case import GAMMA, KEY, SPEC, batch, features, poisoned, running_std

import primax
from primax.rewards.noveld import NovelD, NovelDConfig, noveld, novelty
from primax.rewards.parts import episode


@cache
def made(**options):
    """A reward, its first state, and its compiled functions."""
    small = {"features": 8, "learning_rate": 0.01, "normaliser": "none", "reward_clip": 1e6}
    reward = NovelD(SPEC, NovelDConfig(**small | options))
    return reward, jax.jit(reward.init)(KEY), jax.jit(reward.learn), jax.jit(reward.score)


def distance(state, obs) -> np.ndarray:
    """The oracle of novelty, in float64."""
    off = features(state.rnd.predictor.trunk, obs) - features(state.rnd.target, obs)
    return np.sqrt((off**2).sum(axis=1))


def oracle(state, found, first, alpha: float = 0.5) -> np.ndarray:
    rise = distance(state, found.next_obs) - alpha * distance(state, found.obs)
    return np.maximum(rise, 0) * np.asarray(first)


def firsts(path, seen) -> list[bool]:
    """Which observations the episode had not shown, by their bytes."""
    known, found = {seen[path[0]].tobytes()}, []
    for place in path[1:]:
        found.append(seen[place].tobytes() not in known)
        known.add(seen[place].tobytes())
    return found


@cache
def lived(**options):
    """The two episodes: the state after them, their rows, and which were first visits."""
    reward, state, _, _ = made(**options)
    memos, seen = [], places()
    for path in PATHS:
        state, kept = live(reward, state, path, seen)
        memos.append(kept)
    first = np.concatenate([firsts(path, seen) for path in PATHS])
    return state, rows(PATHS, seen, memos), first


# Formulas


def test_novelty_is_a_norm_and_not_a_mean_square():
    """Nine features whose squares are 4 in the mean: √36."""
    np.testing.assert_allclose(novelty(jnp.array([4.0, 0.0]), 9), [6.0, 0.0], rtol=1e-6)


def test_noveld_by_hand():
    before, after = jnp.array([2.0, 2.0, 2.0, 4.0]), jnp.array([5.0, 0.5, 5.0, 3.0])
    first = jnp.array([True, True, False, True])
    np.testing.assert_allclose(noveld(before, after, first, 0.5), [4.0, 0.0, 0.0, 1.0], rtol=1e-6)
    np.testing.assert_allclose(noveld(before, after, first, 0.0), [5.0, 0.5, 0.0, 3.0], rtol=1e-6)


def test_a_reward_by_hand():
    """Networks that are 2 apart in each of 8 features: √32 less half of it, over a deviation of 0.5."""
    reward, state, _, _ = made(normaliser="rewards", reward_clip=9.0)
    says = lambda net, x: eqx.tree_at(  # noqa: E731
        lambda n: n.embed.bias, jax.tree.map(jnp.zeros_like, net), jnp.full(8, x)
    )
    rnd = replace(
        state.rnd,
        target=says(state.rnd.target, 1.0),
        predictor=replace(state.rnd.predictor, trunk=says(state.rnd.predictor.trunk, 3.0)),
    )
    moments = replace(state.scale.moments, mean=jnp.float32(7.0), variance=jnp.float32(0.25))
    state = replace(state, rnd=rnd, scale=replace(state.scale, moments=moments))
    found = batch(0, 2, next_memo=jnp.array([True, False]))
    np.testing.assert_allclose(reward.score(state, found), [32**0.5, 0.0], rtol=1e-5)
    clipped, *_ = made(normaliser="rewards", reward_clip=2.0)
    np.testing.assert_allclose(clipped.score(state, found), [2.0, 0.0], rtol=1e-6)


# Episodes


def test_first_visits_of_two_episodes_and_what_they_pay():
    """The start is known, nothing is paid twice, and the second episode knows nothing of the first."""
    state, found, first = lived()
    assert first.tolist() == [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0]
    np.testing.assert_array_equal(found.next_memo, first)
    want = oracle(state, found, first)
    assert (want > 0).sum() >= 3
    np.testing.assert_allclose(made()[3](state, found), want, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("alpha", [0.0, 0.9])
def test_alpha_is_what_is_taken_off(alpha):
    _, _, _, score = made(alpha=alpha)
    state, found, first = lived()
    want = oracle(state, found, first, alpha)
    np.testing.assert_allclose(score(state, found), want, rtol=1e-4, atol=1e-6)
    assert np.abs(want - oracle(state, found, first)).max() > 0.01


def test_only_first_visits_are_paid():
    """Without the factor the same rows would be paid."""
    _, _, _, score = made()
    state, found, first = lived()
    every = np.asarray(score(state, replace(found, next_memo=jnp.ones(len(first), bool))))
    worth = np.asarray(score(state, found))
    np.testing.assert_array_equal(worth[first], every[first])
    assert (worth[~first] == 0).all() and (every[~first] > 0).any()


def test_an_episode_forgets_the_one_before():
    reward, state, _, _ = made()
    _, alone = live(reward, state, PATHS[1], places())
    after, _ = live(reward, state, PATHS[0], places())
    _, second = live(reward, after, PATHS[1], places())
    np.testing.assert_array_equal(alone, second)
    assert alone[1:].any()


def test_where_places_are_few_the_oldest_observation_goes():
    """Two are kept: 0 and 1, then 2 in the place of 0, then 0 in that of 1; 2 is still there."""
    reward, state, _, _ = made(memory=2)
    _, kept = live(reward, state, [0, 1, 0, 2, 1, 0, 2, 1], places())
    assert kept[1:].tolist() == [1, 0, 1, 0, 1, 0, 1]


def test_with_noise_every_visit_is_the_first():
    """A place that is left and come back to, under a plane of noise: nothing hides that it looks new."""
    reward, state, _, _ = made()
    seen = np.zeros((13, *SPEC.shape), np.uint8)
    seen[:, 1] = np.random.default_rng(4).permutation(4096)[:13, None, None] >> (
        np.arange(12).reshape(3, 4)
    )
    seen[:, 1] &= 1
    quiet = seen.copy()
    quiet[:, 1] = 0
    for obs, paid in ((seen, 12), (quiet, 0)):
        _, kept = live(reward, state, list(range(13)), obs)
        assert kept[1:].sum() == paid


# Memory


@pytest.mark.parametrize("kind", ["planes", "image", "vector"])
def test_observations_are_told_apart_to_the_last_number(kind):
    """As many codes as there are different observations; half of them differ in one number alone."""
    rng, num = np.random.default_rng(0), 3_000
    if kind == "vector":
        x = rng.choice([0.0, 1.0, 2.0, 0.5, 1e-3], (num, 24)).astype(np.float32)
        x[::2, 7] = np.arange(len(x[::2]))
    else:
        x = rng.integers(0, 2 if kind == "planes" else 256, (num, 24)).astype(np.uint8)
        x[::2, 7] = 1 - x[::2, 7]
    x[1::2] = x[::2]
    x[1::2, 3] = x[1::2, 3] * 2 + 1 if kind == "vector" else x[1::2, 3] ^ 1
    salt = episode.salt(KEY, replace(SPEC, shape=(24,)))
    codes = np.asarray(jax.jit(jax.vmap(lambda x: episode.code(salt, x)))(jnp.asarray(x)))
    assert len(np.unique(codes, axis=0)) == len(np.unique(x, axis=0)) > num // 2
    for half in range(2):
        assert len(np.unique(codes[:, half])) > num // 2
    again = np.asarray(jax.vmap(lambda x: episode.code(salt, x))(jnp.asarray(x)))
    np.testing.assert_array_equal(codes, again)


def test_zero_has_two_signs_and_is_one_number():
    salt = episode.salt(KEY, replace(SPEC, shape=(2,)))
    plus, minus = (episode.code(salt, jnp.array([x, 1.0])) for x in (0.0, -0.0))
    np.testing.assert_array_equal(plus, minus)


def test_an_empty_memory_knows_not_even_zeros():
    memory, zeros = episode.empty(3), jnp.zeros(2, jnp.uint32)
    assert not episode.met(memory, zeros)
    assert episode.met(episode.added(memory, zeros), zeros)


def test_a_memory_is_no_longer_than_an_episode():
    _, state, _, _ = made()
    assert state.memory.codes.shape == (SPEC.horizon + 1, 2)
    assert made(memory=2)[1].memory.codes.shape == (2, 2)


# Learning


def test_rewards_of_a_short_training_are_the_oracles():
    """Scored before it learns, over the deviation of the rewards before; later visits count as zeros."""
    _, _, learn, score = made(normaliser="rewards")
    state, found, first = lived(normaliser="rewards")
    found, past = replace(found, weight=found.weight.at[-1].set(0.0)), []
    for _ in range(4):
        raw = oracle(state, found, first)
        np.testing.assert_allclose(score(state, found), raw / running_std(past), rtol=2e-3)
        state, said = learn(state, found, KEY)
        past.append(raw[:-1])
    np.testing.assert_allclose(said["reward_std"], running_std(past), rtol=1e-3)
    np.testing.assert_allclose(said["first_visits"], first[:-1].mean(), rtol=1e-6)


def test_the_predictor_learns_the_observation_arrived_at_and_the_target_never():
    _, state, learn, _ = made()
    found = batch(0, next_memo=jnp.ones(8, bool))
    now, other = state, state
    for _ in range(60):
        now, _ = learn(now, found, KEY)
        other, _ = learn(other, replace(found, obs=batch(1).obs, action=0 * found.action), KEY)
    lower = distance(now, found.next_obs)[:-1] / distance(state, found.next_obs)[:-1]
    assert lower.max() < 0.5
    assert all(jax.tree.leaves(jax.tree.map(np.array_equal, now.rnd, other.rnd)))
    for a, b in zip(*(jax.tree.leaves(x.rnd.target) for x in (now, state)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_row_that_teaches_nothing_changes_nothing():
    _, state, learn, _ = made(normaliser="rewards")
    found = batch(0, next_memo=jnp.ones(8, bool))
    poison = replace(poisoned(found), next_memo=found.next_memo.at[-1].set(False))
    for a, b in zip(*(jax.tree.leaves(learn(state, x, KEY)) for x in (found, poison)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)


def test_returns_are_filtered_in_the_order_of_time():
    state, found, first = lived(normaliser="returns")
    sums = []
    for r in oracle(state, found, first):
        sums.append(r + GAMMA * (sums[-1] if sums else 0.0))
    np.testing.assert_allclose(state.scale.filtered, sums[-1], rtol=1e-3)
    worth = made(normaliser="returns")[3](state, found)
    want = oracle(state, found, first) / running_std([np.array(sums)])
    np.testing.assert_allclose(worth, want, rtol=1e-3, atol=1e-6)


# Worlds


def test_in_probe_worlds_the_first_visits_are_those_by_hand():
    """0 -> 1 -> 2 -> 0 -> 1, then a new episode; a place never left; 0 -> 1 -> 2 and an end."""
    for probe, want in (
        (Delayed, [1, 1, 0, 0] * 3),
        (Constant, [0, 0, 0, 0] * 3),
        (Walks, [1, 1, 0] * 4),  # the third row only resets
    ):
        reward, state, found = probed("noveld", probe, NovelDConfig(normaliser="none", features=4))
        assert found.next_memo.astype(int).tolist() == want, probe
        worth = np.asarray(reward.score(state.reward, found))
        assert (worth[np.array(want) == 0] == 0).all()


def test_a_coin_that_is_seen_is_new_once_an_episode():
    _, _, found = probed("noveld", Seen, NovelDConfig(features=4))
    sides = np.argmax(np.asarray(found.next_obs).reshape(3, 4, 3), axis=-1)
    start = np.argmax(np.asarray(found.obs).reshape(3, 4, 3), axis=-1)[:, 0]
    for i, kept in enumerate(np.asarray(found.next_memo).reshape(3, 4)):
        assert kept.tolist() == firsts(
            [0, *range(1, 5)], np.array([[start[i]], *sides[i][:, None]])
        )


def by_hand(part, after) -> np.ndarray:
    """First visits of each environment's own episodes."""
    ended, want = np.asarray(part.terminated | part.truncated), np.zeros(after.shape, bool)
    for env in range(after.shape[1]):
        known = set()
        for t in range(after.shape[0]):
            known = known or {part.obs[t, env].tobytes()}
            place = part.next_obs[t, env].tobytes()
            want[t, env] = place not in known
            known = set() if ended[t, env] else known | {place}
    return want


def test_many_environments_remember_their_own_episodes():
    """Across ends and cuts, with rows that only reset in between."""
    part, after = many(np.random.default_rng(1), 40, 3)
    bonus = primax.bonus("noveld", PLANES, envs=3, settings=SMALL | {"reward.normaliser": "none"})
    state, worth = bonus.step(bonus.init(0), part)
    want = by_hand(part, after)
    np.testing.assert_array_equal(state.rows.next_memo[:40], want)
    assert (worth[~want] == 0).all() and (worth[1:][want[1:]] > 0).mean() > 0.3
    row = jax.tree.map(lambda x: x[-1], part)
    again = bonus.score(state, replace(row, next_memo=state.memo))
    np.testing.assert_allclose(again, worth[-1], rtol=1e-5)
    for use in (bonus.score, bonus.learn):
        with pytest.raises(primax.InputError, match="noveld keeps something with what a step led"):
            use(state, row)


def test_steps_that_are_none_are_not_remembered():
    """The same steps with rows between them that only reset."""
    part, after = many(np.random.default_rng(2), 20, 2)
    wide = jax.tree.map(lambda x: np.repeat(x, 2, axis=0), part)
    valid = np.tile([[True], [False]], (20, 2))
    wide = replace(wide, valid=valid)
    wide.next_obs[1::2] = wide.obs[1::2, ::-1] ^ 1
    bonus = primax.bonus("noveld", PLANES, envs=2, settings=SMALL)
    state, _ = bonus.step(bonus.init(0), wide)
    np.testing.assert_array_equal(state.rows.next_memo[:40][::2], by_hand(part, after))


@pytest.mark.parametrize("obs", [(4,), (16, 16, 3)])
def test_vectors_and_images_fit(obs):
    """Traced, not compiled."""
    bonus = primax.bonus("noveld", primax.Space(obs, 3), envs=2, settings=SMALL)
    seen, never = (
        np.zeros((5, 2, *obs), np.uint8 if obs[1:] else np.float32),
        np.zeros((5, 2), bool),
    )
    part = primax.Transition(seen, np.zeros((5, 2), int), seen, never, never)
    _, worth = jax.eval_shape(bonus.step, jax.eval_shape(bonus.core.init, KEY), part)
    assert worth.shape == (5, 2)
