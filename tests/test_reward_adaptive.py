"""S-Adapt and MOSS: the bandit and the clock by hand, their rewards against numpy."""

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reward_case import HORIZON, KEY, PLANES, SPEC, batch, features, mlp, observations, step
from reward_case import snapshot as recent

from primax.errors import InputError
from primax.presets import configure
from primax.rewards.moss import Memo, Moss, MossConfig, contrast, entropy, nearest
from primax.rewards.parts import density, normaliser
from primax.rewards.s_adapt import SEEK, SHUN, Bandit, SAdapt, SAdaptConfig, choose, settle
from primax.rewards.s_adapt import Memo as SMemo

COIN = jnp.int32(1)


def bandit(mean, played, usual=2.0, episodes=4) -> Bandit:
    return Bandit(
        jnp.asarray(mean, jnp.float32),
        jnp.asarray(played, jnp.int32),
        jnp.float32(usual),
        jnp.int32(episodes),
    )


@pytest.mark.parametrize(
    ("mean", "played", "arm"),
    [
        ([0.0, 0.0], [0, 0], 1),  # neither was played: the coin
        ([9.0, 0.0], [3, 0], 1),  # one was not
        ([0.0, 9.0], [0, 3], 0),
        ([0.5, 0.4], [10, 10], 0),  # equally often: the better one
        ([0.5, 0.4], [100, 4], 1),  # 0.5 + √(2 ln 104 / 100) against 0.4 + √(2 ln 104 / 4)
    ],
)
def test_the_bandit_plays_the_highest_bound(mean, played, arm):
    assert int(choose(bandit(mean, played), 2**0.5, COIN)) == arm


def test_an_episode_is_settled_once_as_random_or_as_played():
    """The entropy of random episodes is 2 over four of them; this one's is 3."""
    now, three, yes, no = bandit([0.2, 0.4], [1, 3]), jnp.float32(3), jnp.bool_(1), jnp.bool_(0)
    random = settle(now, jnp.int32(SHUN), three, yes, no)
    assert float(random.random_entropy) == pytest.approx(2.2) and random.random_episodes == 5
    np.testing.assert_array_equal(random.mean, now.mean)
    played = settle(now, jnp.int32(SHUN), three, no, yes)
    np.testing.assert_allclose(played.mean, [0.2, (3 * 0.4 + 0.5) / 4], rtol=1e-6)
    assert played.played.tolist() == [1, 4] and played.random_entropy == 2
    first = settle(now, jnp.int32(SEEK), three, no, no)
    for a, b in zip(*map(jax.tree.leaves, (first, now)), strict=True):
        np.testing.assert_array_equal(a, b)


@cache
def adaptive():
    reward = SAdapt(SPEC, SAdaptConfig())
    return reward, jax.jit(reward.begin), jax.jit(reward.observe), jax.jit(reward.refresh)


def lives(state, obs, key=KEY):
    """One episode; the state after it, and the memo of every observation."""
    _, begin, observe, _ = adaptive()
    state, memo = begin(state, jnp.asarray(obs[0]), key)
    memos = [memo]
    for i in range(1, len(obs)):
        state, memo = observe(state, step(obs[i - 1], 0, obs[i]), KEY)
        memos.append(memo)
    return state, memos


def theta(obs) -> np.ndarray:
    """Of all observations of an episode, its first among them, and an empty one."""
    share = np.concatenate([np.zeros((1, *PLANES)), obs]).mean(axis=0)
    return np.clip(share, 1e-4, 1 - 1e-4)


def test_episodes_of_the_warm_up_set_the_baseline_and_later_ones_pay_the_arm():
    reward, _, _, refresh = adaptive()
    rng = np.random.default_rng(0)
    episodes = [observations(rng, HORIZON + 1) for _ in range(4)]
    state = reward.init(KEY)
    for obs in episodes[:2]:
        state, _ = lives(state, obs)
    # The window begins before the next episode does: the second still counts as random.
    state, _ = refresh(state, recent(batch(0)), KEY)
    assert state.bandit.random_episodes == 1
    state, memos = lives(state, episodes[2])
    arm = int(memos[0].arm)
    assert all(int(memo.arm) == arm for memo in memos)
    state, _ = lives(state, episodes[3])

    chances = [theta(obs) for obs in episodes]
    found = [-(p * np.log(p) + (1 - p) * np.log(1 - p)).sum() for p in chances]
    usual = (found[0] + found[1]) / 2
    assert state.bandit.random_episodes == 2
    np.testing.assert_allclose(state.bandit.random_entropy, usual, rtol=1e-5)
    assert state.bandit.played[arm] == 1 and state.bandit.played[1 - arm] == 0
    paid = abs(found[2] - usual) / usual
    np.testing.assert_allclose(state.bandit.mean[arm], paid, rtol=1e-3)
    assert int(state.arm) == 1 - arm


def test_the_arm_gives_surprise_its_sign_and_each_has_a_scale_of_its_own():
    reward, *_ = adaptive()
    obs = observations(np.random.default_rng(1), HORIZON + 1)
    state, worth = reward.init(KEY), {}
    for key in map(jax.random.key, range(20)):
        state, memos = lives(state, obs, key)
        arm = int(memos[0].arm)
        rows = [jax.tree.map(lambda *x: jnp.stack(x), *part) for part in (memos[:-1], memos[1:])]
        rows = replace(batch(0, HORIZON), next_obs=jnp.asarray(obs[1:]), memo=rows[0])
        worth[arm] = (np.asarray(reward.raw(rows.memo, rows.next_obs)), rows)
        if len(worth) == 2:
            break
    p = [theta(obs[:t]) for t in range(1, HORIZON + 1)]
    logs = [
        np.where(x == 1, np.log(q), np.log(1 - q)).sum() for q, x in zip(p, obs[1:], strict=True)
    ]
    surprise = -np.array(logs) / 300
    assert (surprise > 0).all()
    np.testing.assert_allclose(worth[SEEK][0], surprise, rtol=1e-4)
    np.testing.assert_allclose(worth[SHUN][0], -surprise, rtol=1e-4)
    # Every episode was the same, so an arm's moments are those of its one episode.
    for arm, sign in ((SEEK, 1), (SHUN, -1)):
        expected = sign * (surprise - surprise.mean()) / surprise.std()
        found = np.asarray(reward.score(state, worth[arm][1]))
        np.testing.assert_allclose(found, expected, rtol=0.02, atol=0.02)


def test_the_critics_of_s_adapt_see_density_clock_and_arm():
    reward, *_ = adaptive()
    obs = jnp.asarray(observations(np.random.default_rng(2), 1)[0])
    state, memo = reward.begin(reward.init(KEY), obs, KEY)
    memo = replace(memo, arm=jnp.int32(SHUN))
    seen = np.asarray(reward.view(obs, memo))
    assert seen.shape == reward.view_shape == (6, 3, 4)
    np.testing.assert_allclose(seen[2:4], theta(np.asarray(obs)[None]), rtol=1e-6)
    np.testing.assert_allclose(seen[4], 2 / HORIZON, rtol=1e-6)
    np.testing.assert_array_equal(seen[5], 1.0)
    np.testing.assert_array_equal(density.theta(state.density), seen[2:4])


def test_a_warm_up_without_an_episode_is_refused():
    with pytest.raises(InputError, match="random episodes"):
        configure(
            "s_adapt", "maze", settings={"warmup": "100", "window": "100", "world.horizon": "200"}
        )


def test_surprise_falls_with_what_is_seen_again_and_its_negative_rises():
    reward, *_ = adaptive()
    obs = jnp.asarray(observations(np.random.default_rng(3), 1)[0])
    now, worth = density.start(SPEC), {SEEK: [], SHUN: []}
    for _ in range(4):
        for arm, found in worth.items():
            found.append(float(reward.raw(SMemo(now, jnp.int32(arm)), obs)))
        now = density.add(now, obs)
    assert (np.diff(worth[SEEK]) < 0).all() and worth[SEEK][0] > 0
    assert worth[SHUN] == [-x for x in worth[SEEK]]


@cache
def moss():
    options = {"skill_dim": 3, "skill_every": 2, "features": 4, "hidden": 6, "neighbours": 3}
    reward = Moss(SPEC, MossConfig(**options))
    return reward, jax.jit(reward.init)(KEY), jax.jit(reward.score), jax.jit(reward.learn)


def test_the_clock_decides_the_sign_and_when_a_skill_is_drawn():
    """Six steps in two parts of three; a new skill every two steps."""
    reward, state, *_ = moss()
    nothing = np.zeros(PLANES, np.uint8)
    memos = []
    for episode in range(2):
        state, memo = reward.begin(state, jnp.asarray(nothing), jax.random.key(episode))
        memos.append(memo)
        for t in range(HORIZON):
            state, memo = reward.observe(state, step(nothing, 0, nothing), jax.random.key(10 + t))
            memos.append(memo)
    sign = [float(memo.sign) for memo in memos]
    assert sign[:HORIZON] == sign[HORIZON + 1 : -1] == [1, 1, 1, -1, -1, -1]
    skills = np.stack([memo.skill for memo in memos])
    assert (np.sign(skills) == np.asarray(sign)[:, None]).all()
    plain = abs(skills)
    for t in range(HORIZON):
        assert np.array_equal(plain[t], plain[t + 1]) == ((t + 1) % 2 != 0)
    assert not np.array_equal(plain[0], plain[HORIZON + 1])
    seen = np.asarray(reward.view(jnp.asarray(nothing), memos[3]))
    assert seen.shape == reward.view_shape == (5, 3, 4)
    np.testing.assert_array_equal(seen[2:], np.broadcast_to(skills[3][:, None, None], (3, 3, 4)))


def test_distances_by_hand():
    """From 0 to 3, 4 and 9 on a line; the 4 teaches nothing."""
    before = jnp.zeros((1, 1))
    after = jnp.asarray([[3.0], [4.0], [-9.0]])
    weight = jnp.asarray([1.0, 0.0, 1.0])
    away, is_there = nearest(jnp.tile(before, (3, 1)), after, weight, 3)
    np.testing.assert_array_equal(away[0], [3, 9, 0])
    np.testing.assert_array_equal(is_there[0], [1, 1, 0])
    scale = normaliser.Running(jnp.float32(9), jnp.float32(5), jnp.float32(4))
    expected = np.log1p((0 + (9 - 5) / 2 - 5e-4) / 2)
    np.testing.assert_allclose(entropy(away, is_there, scale), [expected] * 3, rtol=1e-5)


def test_the_contrast_by_hand():
    """Three codes at right angles, each fitting its own skill: the others' sum is 3 + e² - e² - 1."""
    eye, ones = jnp.eye(3), jnp.ones(3)
    assert float(contrast(eye, 5 * eye, ones, 0.5)) == pytest.approx(np.log(2) - 2, rel=1e-4)
    wrong = jnp.roll(eye, 1, axis=0)
    assert float(contrast(eye, wrong, ones, 0.5)) > float(contrast(eye, eye, ones, 0.5))


def skilled(seed: int):
    rng = np.random.default_rng(seed)
    sign = np.array([1, 1, 1, 1, -1, -1, -1, 1.0])
    skill = sign[:, None] * rng.uniform(size=(8, 3))
    memo = Memo(jnp.asarray(skill, jnp.float32), jnp.asarray(sign, jnp.float32))
    return batch(seed, memo=memo, next_memo=memo)


def particle(state, rows, running: list) -> np.ndarray:
    """The oracle: distances to the three nearest, the last row not among them."""
    before, after = (features(state.model.encoder, x) for x in (rows.obs, rows.next_obs))
    away = np.sqrt(((before[:, None] - after[None, :-1]) ** 2).sum(axis=-1))
    away = np.sort(away, axis=1)[:, :3]
    x = np.concatenate([np.zeros(0), *running])
    num = x.size + 1e-4
    mean = x.sum() / num
    std = np.sqrt((1e-4 * (1 + mean**2) + ((x - mean) ** 2).sum()) / num)
    running.append(away[:-1].ravel())
    return np.log1p(np.maximum((away - mean) / (std + 1e-8) - 5e-4, 0).mean(axis=1))


def test_rewards_of_a_short_training_are_the_oracles():
    _, state, score, learn = moss()
    running, losses = [], []
    for i in range(3):
        rows = skilled(i)
        expected = np.asarray(rows.memo.sign) * particle(state, rows, running)
        np.testing.assert_allclose(score(state, rows), expected, rtol=1e-3, atol=1e-5)
        state, _ = learn(state, rows, KEY)
    for _ in range(100):
        state, said = learn(state, skilled(0), KEY)
        losses.append(float(said["skill_loss"]))
    assert losses[-1] < losses[0] - 0.05


def test_a_state_apart_from_all_others_is_sought_and_then_shunned():
    _, state, score, _ = moss()
    rows = skilled(0)
    same, apart = rows.obs[0], 1 - rows.obs[0]
    crowd = jnp.stack([same] * 6 + [apart, same])
    sign = jnp.asarray([1.0, 1, 1, -1, -1, -1, 1, 1])
    for side in (1, -1):
        memo = replace(rows.memo, sign=side * sign)
        worth = np.asarray(score(state, replace(rows, obs=crowd, next_obs=crowd, memo=memo)))
        assert side * worth[6] > 0
        np.testing.assert_array_equal(worth[:6], 0.0)


def test_the_loss_is_the_published_one():
    _, state, _, learn = moss()
    rows = skilled(0)
    _, said = learn(state, rows, KEY)
    model = state.model
    codes = np.concatenate([features(model.encoder, x) for x in (rows.obs, rows.next_obs)], axis=1)
    says, asks = mlp(codes, *model.of_transition), mlp(np.asarray(rows.memo.skill), *model.of_skill)
    says, asks = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (says, asks))
    fits = np.exp(asks @ says.T / 0.5)
    others = np.maximum(fits[:, :-1].sum(axis=1) - np.exp(2), 1e-6)
    losses = np.log(others + 1e-6) - np.log(np.diag(fits))
    np.testing.assert_allclose(said["skill_loss"], losses[:-1].sum() / 8, rtol=1e-3)
