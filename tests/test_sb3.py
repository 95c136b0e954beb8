"""Stable-Baselines3's agents learn from the bonus as of now, of what steps led to, and keep the rest."""

import csv
import importlib.util
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import QUICK_CHILDREN
from gymnasium import spaces

import primax
from primax import InputError

NEEDED = "Stable-Baselines3 and torch are not installed: `make test-sb3` runs these tests"
sb3 = pytest.importorskip("stable_baselines3", reason=NEEDED)
torch = pytest.importorskip("torch", reason=NEEDED)

from stable_baselines3 import A2C, DQN, PPO  # noqa: E402
from stable_baselines3.common.callbacks import BaseCallback  # noqa: E402
from stable_baselines3.common.monitor import Monitor  # noqa: E402
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize  # noqa: E402

from primax.sb3 import BonusCallback, BonusReplayBuffer, load_bonus, save_bonus  # noqa: E402

ROOT = Path(__file__).parent.parent
SMALL = {"replay": 256, "recent": 16, "window": 6, "warmup": 4, "update_every": 0}
TINY = SMALL | {
    "net.embedding": 4,
    "reward.heads": 1,
    "reward.quantiles": 3,
    "reward.probes": 2,
    "reward.feature_dim": 3,
    "reward.calibration": 8,
    "reward.neighbours": 4,
    "critics.batch": 4,
    "reward.aleatoric_weight": 0,
    "reward.reward_scale": 1,
}
ENDS, CUTS = 4, 5
"""Steps of an episode that ends, and of one that is cut; they take turns."""


def step_of(obs):
    """An observation's key: the step of its episode."""
    return obs[1].astype(jnp.int32)


KEYS = (step_of, CUTS + 1)
COUNT = {"bonus": "count", "keys": KEYS, "settings": SMALL, "weight": 0.5}


class Walk(gymnasium.Env):
    """Shows its episode and step, so that no two observations are alike; pays the action taken."""

    observation_space = spaces.Box(-1e6, 1e6, (2,), np.float32)
    action_space = spaces.Discrete(3)

    def __init__(self, first: int = 0, kind: type = np.float32):
        self.episode, self.kind = first - 1, kind
        self.observation_space = spaces.Box(0, 255, (2,), kind)

    def shown(self):
        return np.array([self.episode, self.time], self.kind)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode, self.time = self.episode + 1, 0
        return self.shown(), {}

    def step(self, action):
        self.time += 1
        ends = self.episode % 2 == 0
        is_over = self.time == (ENDS if ends else CUTS)
        return self.shown(), float(action), is_over and ends, is_over and not ends, {}


def walks(envs: int = 1, kind: type = np.float32) -> DummyVecEnv:
    return DummyVecEnv([lambda i=i: Monitor(Walk(100 * i, kind)) for i in range(envs)])


def dqn(env=None, options=COUNT, **settings) -> DQN:
    given = {"learning_starts": 8, "batch_size": 16, "train_freq": 1, "buffer_size": 200, "seed": 0}
    beside = {"replay_buffer_class": BonusReplayBuffer, "replay_buffer_kwargs": options}
    beside = beside if options is not None else {}
    return DQN("MlpPolicy", env or walks(), device="cpu", **(given | beside | settings))


def on_policy(env=None, kind=PPO, **settings):
    given = {"n_steps": 8, "seed": 0, "device": "cpu"} | ({"batch_size": 8} if kind is PPO else {})
    return kind("MlpPolicy", env or walks(), **(given | settings))


def lived(kept) -> dict[str, np.ndarray]:
    """What a bonus was shown, in the order of time: [ticks, envs]."""
    state, envs = kept.state, kept.bonus.envs
    num = int(state.clock) // envs
    names = ("obs", "next_obs", "action", "terminated", "truncated")
    return {name: np.asarray(getattr(state.rows, name))[:num] for name in names}


def check_walks(seen: dict[str, np.ndarray], ticks: int, envs: int) -> None:
    """Every step as Walk took it: what it led to is never the next episode's first observation."""
    assert seen["obs"].shape == (ticks, envs, 2)
    episode, time = (seen["obs"][..., i].astype(int) for i in range(2))
    np.testing.assert_array_equal(seen["next_obs"][..., 0], episode)
    np.testing.assert_array_equal(seen["next_obs"][..., 1], time + 1)
    ends = episode % 2 == 0
    np.testing.assert_array_equal(seen["terminated"], ends & (time + 1 == ENDS))
    np.testing.assert_array_equal(seen["truncated"], ~ends & (time + 1 == CUTS))
    assert seen["terminated"].any() and seen["truncated"].any()


def by_count(seen: dict[str, np.ndarray], num: int) -> np.ndarray:
    """N of every step and action after `num` ticks."""
    table = np.zeros((CUTS + 1, 3))
    np.add.at(table, (seen["obs"][:num, :, 1].astype(int), seen["action"][:num]), 1)
    return table


# What an agent with a replay buffer learns from


@pytest.mark.parametrize("envs", [1, 2])
def test_dqn_learns_from_the_task_and_what_rows_are_worth_now(envs, monkeypatch):
    """Every minibatch of a whole training, against `score` and against counts made by hand."""
    model, checked = dqn(walks(envs)), []
    kept, sample = model.replay_buffer.kept, BonusReplayBuffer.sample

    def spied(buffer, *args, **kwargs):
        data = sample(buffer, *args, **kwargs)
        obs, actions, next_obs = (x.numpy() for x in (data[0], data[1][:, 0], data[2]))
        worth = kept.bonus.score(kept.state, primax.Transition(obs, actions, next_obs))
        found = data.rewards.numpy()[:, 0]
        np.testing.assert_allclose(found, actions + 0.5 * worth, atol=1e-6)
        table = by_count(lived(kept), int(kept.state.clock))
        np.testing.assert_allclose(worth, table[obs[:, 1].astype(int), actions] ** -0.5, rtol=1e-6)
        checked.append(worth)
        return data

    monkeypatch.setattr(BonusReplayBuffer, "sample", spied)
    model.learn(40)
    assert len(checked) > 10 and len(np.unique(checked)) > 5
    check_walks(lived(kept), 40 // envs, envs)


def test_rows_replayed_after_a_new_window_have_its_rewards():
    """PRIME's rewards stay within a window and are others after it; the task's stay in the buffer."""
    options = {"bonus": "prime", "keys": KEYS, "settings": TINY, "weight": 1.0, "task": 0}
    model = dqn(options=options, learning_starts=1_000)
    buffer, rows = model.replay_buffer, np.arange(10)

    def rewards():
        return buffer._get_samples(rows).rewards.numpy()[:, 0]

    model.learn(10)
    first, windows = rewards(), int(buffer.kept.state.windows)
    assert windows == 2 and np.all(np.isfinite(first)) and first.std() > 0
    model.learn(5, reset_num_timesteps=False)
    assert int(buffer.kept.state.windows) == 2
    np.testing.assert_array_equal(rewards(), first)
    model.learn(1, reset_num_timesteps=False)
    assert int(buffer.kept.state.windows) == 3
    second = rewards()
    assert np.any(np.abs(second - first) > 1e-4)
    steps = primax.Transition(
        buffer.observations[rows, 0], buffer.actions[rows, 0, 0], buffer.next_observations[rows, 0]
    )
    np.testing.assert_allclose(second, buffer.kept.bonus.score(buffer.kept.state, steps), atol=1e-6)
    np.testing.assert_array_equal(buffer.rewards[rows, 0], buffer.actions[rows, 0, 0])


def test_a_time_limit_is_an_end_where_sb3_is_told_so():
    model = dqn(options=COUNT | {"handle_timeout_termination": False})
    model.learn(30)
    seen = lived(model.replay_buffer.kept)
    assert not seen["truncated"].any() and seen["terminated"].sum() == model._episode_num == 6


def test_a_weight_goes_to_zero_by_its_steps():
    options = COUNT | {"weight": 1, "schedule": "linear", "steps": 20, "task": 0}
    model = dqn(options=options, learning_starts=1_000)
    buffer, worth = model.replay_buffer, []
    for _ in range(3):
        model.learn(10, reset_num_timesteps=False)
        worth.append(buffer._get_samples(np.arange(10)).rewards.numpy())
    assert np.all(worth[0] > 0.1) and np.all(worth[1] == 0) and np.all(worth[2] == 0)


# What an agent without one learns from


class Rollouts(BaseCallback):
    """Keeps every rollout, with the values that SB3 had of the last observations."""

    def __init__(self):
        super().__init__()
        self.kept: list[dict] = []
        self.ends: dict[int, tuple[float, float]] = {}

    def _on_step(self) -> bool:
        tick = len(self.kept) * self.model.n_steps + (self.n_calls - 1) % self.model.n_steps
        for i, info in enumerate(self.locals["infos"]):
            if info.get("TimeLimit.truncated"):
                last, _ = self.model.policy.obs_to_tensor(info["terminal_observation"])
                with torch.no_grad():
                    self.ends[tick, i] = float(self.model.policy.predict_values(last))
        return True

    def _on_rollout_end(self) -> None:
        buffer = self.model.rollout_buffer
        names = ("rewards", "values", "advantages", "episode_starts", "actions", "observations")
        found = {name: getattr(buffer, name).copy() for name in names}
        found["last_values"] = self.locals["values"].numpy().flatten()
        found["last_dones"] = self.locals["dones"].copy()
        self.kept.append(found)


def gae(rollout: dict, rewards: np.ndarray, gamma: float, decay: float) -> np.ndarray:
    """Generalised advantages, one step after another from the end."""
    values, starts = rollout["values"], rollout["episode_starts"]
    found, onward = np.zeros(rewards.shape), np.zeros(rewards.shape[1])
    for t in reversed(range(len(rewards))):
        is_last = t == len(rewards) - 1
        goes_on = 1.0 - (rollout["last_dones"] if is_last else starts[t + 1])
        value = rollout["last_values"] if is_last else values[t + 1]
        delta = rewards[t] + gamma * value * goes_on - values[t]
        onward = delta + gamma * decay * goes_on * onward
        found[t] = onward
    return found


@pytest.mark.parametrize("kind, envs", [(PPO, 2), (A2C, 1)])
def test_advantages_contain_the_bonus(kind, envs):
    """Task, counts by hand and SB3's value after a cut, through GAE written out."""
    model, told = on_policy(walks(envs), kind, gamma=0.9, gae_lambda=0.8), COUNT | {"weight": 0.5}
    callback, rollouts = BonusCallback(told.pop("bonus"), **told), Rollouts()
    model.learn(32 * envs, callback=[callback, rollouts])
    seen = lived(callback.kept)
    check_walks(seen, 32, envs)
    assert len(rollouts.kept) == 4 and rollouts.ends
    for k, rollout in enumerate(rollouts.kept):
        want = np.zeros((8, envs))
        for t in range(8):
            tick = 8 * k + t
            at = seen["obs"][tick, :, 1].astype(int), seen["action"][tick]
            is_warm = (tick + 1) * envs > 4
            worth = by_count(seen, tick + 1)[at] ** -0.5 * is_warm
            more = [0.9 * rollouts.ends.get((tick, i), 0.0) for i in range(envs)]
            want[t] = seen["action"][tick] + 0.5 * worth + more
        np.testing.assert_allclose(rollout["rewards"], want, atol=1e-5)
        found = gae(rollout, want, 0.9, 0.8)
        np.testing.assert_allclose(rollout["advantages"], found, atol=1e-4)


def test_ppo_has_the_agents_discount_and_its_progress():
    model = on_policy(gamma=0.7)
    weights = []

    class Weights(BaseCallback):
        def _on_step(self):
            weights.append(self.logger.name_to_value["rollout/bonus_weight"])
            return True

    callback = BonusCallback("count", keys=KEYS, settings=SMALL, weight=2, schedule="linear")
    model.learn(32, callback=[callback, Weights()])
    assert callback.kept.bonus.config.critics.gamma == 0.7
    assert weights == [2.0] * 8 + [1.5] * 8 + [1.0] * 8 + [0.5] * 8
    assert int(callback.kept.state.clock) == 32
    model.learn(8, callback=callback, reset_num_timesteps=False)
    assert int(callback.kept.state.clock) == 40  # the same bonus goes on


# What stays as it is without


def networks(model) -> list[np.ndarray]:
    return [p.detach().numpy().copy() for p in model.policy.parameters()]


def test_with_weight_0_agents_learn_to_the_bit_what_they_do_without():
    none = COUNT | {"weight": 0}
    same = [networks(dqn(walks(2), options).learn(60)) for options in (None, none)]
    jax.tree.map(np.testing.assert_array_equal, *same)
    other = networks(dqn(walks(2)).learn(60))
    assert any(np.any(a != b) for a, b in zip(other, same[0], strict=True))
    told = {"keys": KEYS, "settings": SMALL}
    callbacks = [None, BonusCallback("count", weight=0, **told), BonusCallback("count", **told)]
    found = [networks(on_policy(walks(2)).learn(32, callback=callback)) for callback in callbacks]
    jax.tree.map(np.testing.assert_array_equal, *found[:2])
    assert any(np.any(a != b) for a, b in zip(found[0], found[2], strict=True))


def returns(seen: dict[str, np.ndarray]) -> list[float]:
    """What one environment's episodes paid, those that are over; an action pays its number."""
    over = np.flatnonzero(seen["terminated"][:, 0] | seen["truncated"][:, 0]) + 1
    return [float(part.sum()) for part in np.split(seen["action"][:, 0], over)[: len(over)]]


@pytest.mark.parametrize("is_scaled", [False, True])
def test_reported_returns_are_the_tasks(is_scaled):
    env = VecNormalize(walks()) if is_scaled else walks()
    off = dqn(env, COUNT | {"weight": 100}).learn(40)
    seen = lived(off.replay_buffer.kept)
    assert [episode["r"] for episode in off.ep_info_buffer] == returns(seen)
    env = VecNormalize(walks()) if is_scaled else walks()
    callback = BonusCallback("count", keys=KEYS, settings=SMALL, weight=100)
    on = on_policy(env).learn(40, callback=callback)
    assert [episode["r"] for episode in on.ep_info_buffer] == returns(lived(callback.kept))


# VecNormalize


def test_dqn_under_vecnormalize_scales_the_task_alone_and_the_bonus_sees_what_is_shown():
    env = VecNormalize(walks(2))
    model = dqn(env, COUNT).learn(40)
    kept, buffer = model.replay_buffer.kept, model.replay_buffer
    seen = lived(kept)
    rounded = seen | {"next_obs": np.rint(seen["next_obs"])}
    np.testing.assert_allclose(rounded["next_obs"], seen["next_obs"], atol=1e-3)
    check_walks(rounded, 20, 2)
    data = buffer.sample(64, env=env)
    obs = np.rint(env.unnormalize_obs(data.observations.numpy()))
    actions = data.actions.numpy()[:, 0]
    scaled = env.normalize_reward(actions.astype(np.float32))
    assert np.any(np.abs(scaled - actions) > 0.1)
    worth = by_count(seen, 20)[obs[:, 1].astype(int), actions] ** -0.5
    np.testing.assert_allclose(data.rewards.numpy()[:, 0], scaled + 0.5 * worth, rtol=1e-5)


def test_ppo_under_vecnormalize_scales_the_task_alone_and_the_bonus_sees_what_is_shown():
    class Paid(BaseCallback):
        """The rewards before and after; SB3 adds nothing in between."""

        def _on_step(self):
            found.append(self.locals["rewards"].copy())
            return True

    env, found = VecNormalize(walks(2)), []
    callback = BonusCallback("count", keys=KEYS, settings=SMALL, weight=0.5)
    on_policy(env).learn(32, callback=[Paid(), callback, Paid()])
    seen = lived(callback.kept)
    rounded = seen | {"next_obs": np.rint(seen["next_obs"])}
    np.testing.assert_allclose(rounded["next_obs"], seen["next_obs"], atol=1e-3)
    check_walks(rounded, 16, 2)
    before, after = np.array(found[::2]), np.array(found[1::2])
    at = seen["obs"][..., 1].astype(int), seen["action"]
    worth = np.stack([by_count(seen, t + 1)[at[0][t], at[1][t]] ** -0.5 for t in range(16)])
    worth[:2] = 0  # the warm-up: four steps of two environments
    np.testing.assert_allclose(after, before + 0.5 * worth, rtol=1e-5)
    plain = VecNormalize(walks(2))
    on_policy(plain).learn(16)
    assert plain.ret_rms.count < env.ret_rms.count
    returns = np.zeros(2)
    mine = type(env.ret_rms)(shape=())
    over = seen["terminated"] | seen["truncated"]
    for t in range(16):
        returns = returns * 0.99 + seen["action"][t]
        mine.update(returns)
        returns = returns * ~over[t]
    np.testing.assert_allclose(env.ret_rms.var, mine.var)


def test_whole_numbers_under_vecnormalize_are_refused_unless_they_stay():
    told = {"keys": KEYS, "settings": SMALL}
    for learn in (
        lambda env: dqn(env).learn(20),
        lambda env: on_policy(env).learn(20, callback=BonusCallback("count", **told)),
    ):
        with pytest.raises(InputError, match="norm_obs=False"):
            learn(VecNormalize(walks(kind=np.uint8)))
        learn(VecNormalize(walks(kind=np.uint8), norm_obs=False))


# Files


def test_an_agent_is_saved_without_its_bonus_and_goes_on_with_it(tmp_path):
    model = dqn(options=COUNT | {"schedule": lambda left: left, "steps": 100}).learn(30)
    model.save(tmp_path / "agent")
    save_bonus(model, tmp_path / "bonus.npz")
    kept = zipfile.ZipFile(tmp_path / "agent.zip").read("data").decode()
    assert "BonusReplayBuffer" in kept and "Kept" not in kept and "BonusState" not in kept
    again = DQN.load(tmp_path / "agent", env=walks())
    assert int(again.replay_buffer.kept.state.clock) == 0
    load_bonus(again, tmp_path / "bonus.npz")
    there = model.replay_buffer.kept, again.replay_buffer.kept
    assert [int(x.state.clock) for x in there] == [30, 30] and there[1].weight() == 0.5 * 0.7
    rows = primax.Transition(np.ones((5, 2), np.float32), np.arange(5) % 3, np.ones((5, 2)))
    np.testing.assert_array_equal(*(x.score(rows) for x in there))
    again.learn(10, reset_num_timesteps=False)
    assert int(again.replay_buffer.kept.state.clock) == 40


def test_a_replay_buffer_is_saved_without_its_bonus_and_gets_one_back(tmp_path):
    model = dqn(options=COUNT | {"schedule": lambda left: left, "steps": 100}).learn(30)
    model.save_replay_buffer(tmp_path / "rows.pkl")
    save_bonus(model, tmp_path / "bonus.npz")
    want = model.replay_buffer._get_samples(np.arange(20)).rewards.numpy()
    again = dqn(options=model.replay_buffer_kwargs)
    again.load_replay_buffer(tmp_path / "rows.pkl")
    with pytest.raises(InputError, match="load_bonus"):
        again.learn(1)
    load_bonus(again, None)
    assert int(again.replay_buffer.kept.state.clock) == 0
    load_bonus(again, tmp_path / "bonus.npz")
    np.testing.assert_array_equal(again.replay_buffer._get_samples(np.arange(20)).rewards, want)


def test_a_callbacks_bonus_is_saved_and_goes_on(tmp_path):
    told = {"keys": KEYS, "settings": SMALL}
    first, then = BonusCallback("count", **told), BonusCallback("count", **told)
    with pytest.raises(InputError, match="no bonus yet"):
        save_bonus(first, tmp_path / "bonus.npz")
    model = on_policy().learn(16, callback=first)
    save_bonus(first, tmp_path / "bonus.npz")
    model.save(tmp_path / "agent")
    load_bonus(then, tmp_path / "bonus.npz")  # before there is one
    again = PPO.load(tmp_path / "agent", env=walks())
    again.learn(8, callback=then)
    assert int(then.kept.state.clock) == 24
    load_bonus(then, tmp_path / "bonus.npz")
    assert int(then.kept.state.clock) == 16
    with pytest.raises(InputError, match="expected a model with"):
        save_bonus(model, tmp_path / "bonus.npz")


# What cannot be


class Odd(Walk):
    """With spaces of a test's choice."""

    def __init__(self, seen=None, done=None):
        super().__init__()
        self.observation_space = seen or self.observation_space
        self.action_space = done or self.action_space

    def shown(self):
        return self.observation_space.sample()


@pytest.mark.parametrize(
    "seen, done, words",
    [
        (None, spaces.Box(-1, 1, (2,)), "need discrete actions"),
        (None, spaces.MultiDiscrete([2, 2]), "need discrete actions"),
        (spaces.Dict(a=spaces.Box(0, 1, (2,))), None, "FlattenObservation"),
        (spaces.Discrete(4), None, "FlattenObservation"),
    ],
)
def test_spaces_that_no_bonus_takes_are_named(seen, done, words):
    env = DummyVecEnv([lambda: Odd(seen, done)])
    policy = "MultiInputPolicy" if isinstance(seen, spaces.Dict) else "MlpPolicy"
    with pytest.raises(InputError, match=words) as caught:
        BonusReplayBuffer(10, env.observation_space, env.action_space)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match=words):
        PPO(policy, env, n_steps=4, batch_size=4, device="cpu").learn(4, callback=BonusCallback())


@pytest.mark.parametrize(
    "options, words",
    [
        ({"bonus": "prme"}, "did you mean prime"),
        ({"bonus": "smirl"}, "more to see"),
        ({"schedule": "linear"}, "say steps="),
        ({"schedule": lambda left: left}, "say steps="),
        ({"wieght": 0.1}, "did you mean weight"),
        ({"bonus": "rnd", "keys": None, "settings": {"reward.read": "lived"}}, "replayed here"),
        ({"bonus": "noveld", "keys": None}, "replayed here"),
        ({"bonus": "e3b", "keys": None}, "replayed here"),
    ],
)
def test_options_that_a_buffer_cannot_serve_are_named(options, words):
    with pytest.raises(InputError, match=words) as caught:
        dqn(options=COUNT | options)
    assert "\n" not in str(caught.value)


def test_memory_saving_and_wrong_places_are_refused():
    told = {"handle_timeout_termination": False}
    with pytest.raises(InputError, match="optimize_memory_usage"):
        dqn(options=COUNT | told, optimize_memory_usage=True)
    with pytest.raises(InputError, match="BonusCallback is for PPO and A2C: give DQN"):
        dqn(options=None).learn(4, callback=BonusCallback())


def test_rewards_that_are_whole_numbers_and_lost_observations_are_refused():
    class Whole(DummyVecEnv):
        def step_wait(self):
            obs, rewards, dones, infos = super().step_wait()
            return obs, rewards.astype(int), dones, infos

    class Forgets(DummyVecEnv):
        def step_wait(self):
            *found, _ = super().step_wait()
            return *found, [{}]

    told = {"keys": KEYS, "settings": SMALL}
    for kind, words in ((Whole, "rewards are int64"), (Forgets, "terminal_observation")):
        with pytest.raises(InputError, match=words):
            on_policy(kind([Walk])).learn(8, callback=BonusCallback("count", **told))


# Others' agents, examples, pages


def test_qr_dqn_takes_the_same_buffer():
    contrib = pytest.importorskip("sb3_contrib", reason="sb3-contrib is not installed")
    beside = {"replay_buffer_class": BonusReplayBuffer, "replay_buffer_kwargs": COUNT}
    settings = {"learning_starts": 8, "buffer_size": 100, "device": "cpu"}
    model = contrib.QRDQN("MlpPolicy", walks(2), **settings, **beside).learn(40)
    check_walks(lived(model.replay_buffer.kept), 20, 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, steps, more, made",
    [
        ("sb3_dqn", 1_200, (), ("agents/agent.zip", "agents/bonus.npz")),
        ("sb3_ppo", 1_200, ("--seeds", "3,5"), ("agents/agent3.zip", "agents/bonus5.npz")),
        ("sb3_minigrid", 3_072, ("--seeds", "0-0"), ()),
        ("sb3_deepsea", 1_200, ("--seeds", "0-0"), ()),
    ],
)
def test_an_example_runs(name, steps, more, made, tmp_path):
    library = {"sb3_minigrid": "minigrid", "sb3_deepsea": "gymnax"}.get(name, "primax")
    pytest.importorskip(library, reason=f"{library} is not installed")
    words = [sys.executable, str(ROOT / "examples" / f"{name}.py"), "--steps", str(steps), *more]
    words += ["--curve", "curve.csv", *(("--out", "agents") if made else ())]
    env = os.environ | QUICK_CHILDREN
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    assert "episodes" in done.stdout and all((tmp_path / file).exists() for file in made)
    with (tmp_path / "curve.csv").open(newline="", encoding="utf-8") as file:
        ends = [int(row["step"]) for row in csv.DictReader(file)]
    assert ends and max(ends) <= steps and min(ends) > 0


def test_deepsea_shows_what_its_last_step_led_to():
    """Three right steps; then a wrong first one, after which the goal cannot be reached."""
    gymnax = pytest.importorskip("gymnax", reason="gymnax is not installed")
    spec = importlib.util.spec_from_file_location("deepsea", ROOT / "examples" / "sb3_deepsea.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    inner, params = gymnax.make("DeepSea-bsuite", size=3)
    env, right = example.DeepSea(inner, params), np.asarray(inner.action_mapping)
    for is_right in (True, False):
        obs, _ = env.reset(seed=0)
        at, rewards = [int(np.argmax(obs))], []
        for i in range(3):
            action = right[divmod(at[-1], 3)]
            obs, reward, terminated, truncated, _ = env.step(
                int(action if is_right or i else 1 - action)
            )
            at.append(int(np.argmax(obs)))
            rewards.append(reward)
            assert terminated == (i == 2) and truncated is False
        assert at[:3] == ([0, 4, 8] if is_right else [0, 3, 7]) and not np.any(obs)
        cost = 0.01 / 3
        want = [-cost, -cost, 1 - cost] if is_right else [0, -cost, -cost]
        np.testing.assert_allclose(rewards, want, rtol=1e-4)


@pytest.mark.slow
def test_the_benchmark_starts():
    words = [sys.executable, str(ROOT / "benchmarks" / "sb3.py"), "--help"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0 and "corridor" in done.stdout, done.stderr


@pytest.mark.slow
def test_the_page_shows_what_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "sb3.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    names: dict = {}
    for block in blocks:
        exec(re.sub(r"learn\(\d[\d_]*", "learn(32", block), names)
    assert len(blocks) >= 4 and (tmp_path / "bonus.npz").exists()
