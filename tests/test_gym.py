"""The Gymnasium adapter: its contract by gymnasium's own checkers, its transitions by hand."""

import os
import re
import subprocess
import sys
import types
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box, Discrete
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import RecordVideo, RenderCollection

import primax.adapters.gymnasium as adapter
from primax.errors import InputError
from primax.worlds.drawing import render

PAGE = Path(__file__).parents[1] / "docs" / "gymnasium.md"
N, S, E, W, STAY = range(5)
TO_FLAG = [S] * 5 + [E] * 9 + [S] * 4
RING = """
SF....
.####.
.####.
.####.
.####.
......
...##.
"""
BUSY = {
    "size": 7,
    "butterflies": 20,
    "layout": "border",
    "start": "random",
    "catch": "after_each",
    "respawn": True,
    "horizon": 7,
}
SHORT = [
    ("primax/Butterflies-v0", BUSY),
    ("primax/Maze-v0", {"layout": RING, "horizon": 7}),
    ("primax/TwoWings-v0", {"noise_cells": 12, "horizon": 7}),
]
WINGS = SHORT[2][1]


def run(env, actions, seed=None):
    """Everything an episode returns, its reset first."""
    return [env.reset(seed=seed), *(env.step(action) for action in actions)]


def make_both(env_id, mode, **options):
    """Our vector env and gymnasium's own over single envs, which is the oracle."""
    ours = gymnasium.make_vec(env_id, num_envs=3, autoreset_mode=mode, **options)
    oracle = gymnasium.make_vec(
        env_id,
        num_envs=3,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": mode},
        **options,
    )
    return ours, oracle


# --- registration ------------------------------------------------------------------------------


def test_only_this_module_needs_gymnasium_and_the_id_alone_finds_it():
    script = """
import sys
import jax
import primax
assert "gymnasium" not in sys.modules, "the core imports gymnasium"
import gymnasium
env = gymnasium.make("primax.gym:primax/Maze-v0")
env.reset(seed=0)
env.step(0)
import primax.gym
primax.gym.register()
assert not jax.config.jax_platforms, "a platform was forced"
print(sorted(name for name in gymnasium.registry if name.startswith("primax/")))
"""
    command = [sys.executable, "-W", "error", "-c", script]
    env = {name: value for name, value in os.environ.items() if name != "JAX_PLATFORMS"}
    env["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(sorted(adapter.ids()))


def test_a_spec_survives_json():
    env = gymnasium.make("primax/Maze-v0", size=8, horizon=5)
    again = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert again.observation_space.shape == (3, 8, 8)
    assert again.unwrapped.world.horizon == 5


# --- one environment ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("env_id", "options"), [*((env_id, {}) for env_id in adapter.ids()), *SHORT]
)
def test_check_env_has_nothing_to_say(env_id, options):
    check_env(gymnasium.make(env_id, **options).unwrapped)


def test_spaces():
    env = gymnasium.make("primax/Butterflies-v0", size=12)
    assert env.observation_space == Box(0, 1, (4, 12, 12), np.uint8)
    assert env.action_space == Discrete(5)
    vec = gymnasium.make_vec("primax/TwoWings-v0", num_envs=3)
    assert vec.single_observation_space == Box(0, 1, (2, 3, 10), np.uint8)
    assert vec.observation_space == Box(0, 1, (3, 2, 3, 10), np.uint8)
    assert vec.action_space == gymnasium.spaces.MultiDiscrete([5, 5, 5])


def test_a_step_gives_numpy_and_plain_python():
    env = gymnasium.make("primax/Butterflies-v0").unwrapped
    obs, info = env.reset(seed=0)
    assert type(obs) is np.ndarray and obs.dtype == np.uint8 and obs.flags.writeable
    assert info == {"n_alive": 6, "state_key": 6, "task": 0.0}
    obs, reward, terminated, truncated, info = env.step(np.int64(E))
    assert type(obs) is np.ndarray and obs.dtype == np.uint8 and obs.flags.writeable
    assert type(reward) is float and terminated is False and truncated is False
    assert [type(value) for value in info.values()] == [int, int, float]


def test_maze_first_observation_by_hand():
    obs, info = gymnasium.make("primax/Maze-v0").reset(seed=0)
    agent, wall, flag = np.zeros((3, 10, 10), np.uint8)
    agent[0, 0] = flag[9, 9] = 1
    wall[3, 1:] = wall[6, :9] = 1
    np.testing.assert_array_equal(obs, [agent, wall, flag])
    assert info == {"n_alive": 1, "state_key": 0, "task": 0.0}


def test_maze_walls_and_edges_hold():
    env = gymnasium.make("primax/Maze-v0")
    first, *rest = run(env, [N, W, STAY, E, S, S, S])
    for obs, *_ in rest[:3]:
        np.testing.assert_array_equal(obs, first[0])
    # E to (0, 1), S to (2, 1); the wall below holds.
    assert [tuple(np.argwhere(obs[0])[0]) for obs, *_ in rest[3:]] == [
        (0, 1),
        (1, 1),
        (2, 1),
        (2, 1),
    ]


def test_maze_pays_once_for_the_flag_and_truncates_at_100():
    env = gymnasium.make("primax/Maze-v0")
    back_and_forth = [W, E] * 41
    steps = run(env, TO_FLAG + back_and_forth)[1:]
    rewards = [reward for _, reward, *_ in steps]
    assert rewards == [0.0] * 17 + [1.0] + [0.0] * 82
    assert [info["task"] for *_, info in steps] == rewards
    assert [info["n_alive"] for *_, info in steps] == [1] * 17 + [0] * 83
    assert [truncated for *_, truncated, _ in steps] == [False] * 99 + [True]
    assert not any(terminated for _, _, terminated, *_ in steps)
    assert steps[-1][0][2].sum() == 0  # the flag is gone from the picture too


@pytest.mark.parametrize(("total", "options"), [(6, {}), (20, BUSY)])
def test_butterflies_caught_are_paid_and_counted(total, options):
    env = gymnasium.make("primax/Butterflies-v0", **options)
    horizon, caught = env.unwrapped.world.horizon, []
    for seed in range(3):
        (_, info), *steps = run(env, ([E, S, W, S] * 25)[:horizon], seed)
        caught = np.cumsum([reward for _, reward, *_ in steps])
        assert info["n_alive"] == total and caught[-1] > 0
        left = [total] * horizon if options else (total - caught).tolist()
        assert [info["n_alive"] for *_, info in steps] == left
        # A flash exactly where and when something was caught.
        for obs, reward, *_ in steps:
            np.testing.assert_array_equal(obs[3], obs[0] * (reward > 0))


@pytest.mark.parametrize(("seed", "right_pays"), [(0, True), (1, False), (2**40 + 1, False)])
def test_two_wings_takes_its_side_from_the_seed_and_keeps_it(seed, right_pays):
    env = gymnasium.make("primax/TwoWings-v0", **WINGS)
    for given in (seed, None):
        steps = run(env, [E] * 7, seed=given)[1:]
        # One step is enough to be in the right wing.
        assert [reward for _, reward, *_ in steps] == [pytest.approx(right_pays / 7)] * 7
        assert any(obs[1].any() for obs, *_ in steps) is not right_pays


@pytest.mark.parametrize("vector", [False, True])
def test_info_has_the_count_key_at_reset_and_step(vector):
    """Butterflies: seven levels a cell, of which the sixth has all six alive; Maze: the cell alone."""
    for env_id, levels, level, way in (("Butterflies", 7, 6, E), ("Maze", 1, 0, S)):
        env_id = f"primax/{env_id}-v0"
        env = gymnasium.make_vec(env_id, num_envs=2) if vector else gymnasium.make(env_id)
        world, (_, info) = env.unwrapped.world, env.reset(seed=0)
        assert np.all(info["state_key"] == level) and world.num_keys == 100 * levels
        *_, info = env.step([way, STAY] if vector else way)
        cells = np.array([1 if way == E else 10, 0]) if vector else 1 if way == E else 10
        left = info["n_alive"] if levels > 1 else 0
        np.testing.assert_array_equal(info["state_key"], cells * levels + left)


def test_no_step_led_to_the_reset_so_it_pays_nothing():
    env = gymnasium.make("primax/TwoWings-v0", **WINGS)
    starts = [env.reset(seed=seed) for seed in range(8)]
    assert all((info["n_alive"], info["task"]) == (1, 0.0) for _, info in starts)
    assert any(not obs[1].any() for obs, _ in starts)  # some are in the wing that pays


def test_noise_does_not_repeat_in_a_long_episode():
    env = gymnasium.make("primax/TwoWings-v0", noisy="left", noise_cells=30, horizon=1000)
    steps = run(env, [W] * (2 * adapter.BLOCK), seed=0)[1:]
    noise = np.array([obs[1] for obs, *_ in steps])
    assert 0.45 < noise.mean() < 0.55
    assert len(np.unique(noise.reshape(len(noise), -1), axis=0)) == len(noise)


@pytest.mark.parametrize(("env_id", "options"), SHORT)
def test_a_seed_fixes_the_episodes_after_it_too(env_id, options):
    actions = [E, S, W, S, E, N, STAY]
    env, other = gymnasium.make(env_id, **options), gymnasium.make(env_id, **options)
    other.reset(seed=99)
    for seed in (7, None, None):
        assert data_equivalence(run(env, actions, seed), run(other, actions, seed), exact=True)


def test_seeds_and_episodes_differ():
    env = gymnasium.make("primax/Butterflies-v0")
    starts = [env.reset(seed=seed)[0] for seed in (0, 1, None, None)]
    assert len(np.unique(starts, axis=0)) == 4


def test_what_the_caller_writes_on_an_observation_stays_with_him():
    env = gymnasium.make("primax/Maze-v0", render_mode="ansi")
    first, _ = env.reset()
    shown, first[:] = env.render(), 1
    assert env.render() == shown
    obs, *_ = env.step(STAY)
    assert obs[0].sum() == 1


# --- wrong input -------------------------------------------------------------------------------

BAD_ACTIONS = [5, -1, 2**70, 1.0, True, None, "N", [1], np.array([1]), np.array(1.0)]


@pytest.mark.parametrize("action", BAD_ACTIONS, ids=repr)
def test_a_wrong_action_is_refused_and_changes_nothing(action):
    env = gymnasium.make("primax/Maze-v0")
    env.reset()
    with pytest.raises(InputError, match=r"^action must be an integer 0 to 4 \(N, S, E, W, Stay\)"):
        env.step(action)
    assert env.step(E)[0][0, 0, 1] == 1


@pytest.mark.parametrize("action", [2, np.int64(2), np.uint8(2), np.array(2)], ids=repr)
def test_every_kind_of_integer_is_an_action(action):
    env = gymnasium.make("primax/Maze-v0")
    env.reset()
    assert env.step(action)[0][0, 0, 1] == 1


BAD_BATCHES = [
    0,
    [0, 1],
    [0, 1, 5],
    [0, -1, 1],
    [0.0, 1.0, 2.0],
    [True, False, True],
    [[0], [1], [2]],
    [[0], [1, 2], []],
    np.zeros((3, 1), int),
    None,
]


@pytest.mark.parametrize("actions", BAD_BATCHES, ids=repr)
def test_wrong_actions_are_refused_in_one_line(actions):
    vec = gymnasium.make_vec("primax/Maze-v0", num_envs=3)
    vec.reset()
    with pytest.raises(InputError, match=r"^actions must be 3 integers 0 to 4 \(N, .*\), got .*$"):
        vec.step(actions)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"layot": "open"}, "maze has no option 'layot'; did you mean layout?"),
        ({"layout": "half_wall"}, "unknown layout 'half_wall'; did you mean half_walls?"),
        ({"size": 99}, "size must be between 6 and 32, got 99"),
    ],
)
def test_wrong_options_come_out_as_one_plain_line(options, line):
    for make in (gymnasium.make, gymnasium.make_vec):
        with pytest.raises(InputError) as caught:
            make("primax/Maze-v0", **options)
        assert str(caught.value) == line


def test_wrong_vector_options():
    make = gymnasium.make_vec
    with pytest.raises(InputError, match=r"^render_mode has no value 'rgb'; choose from rgb_array"):
        make("primax/Maze-v0", render_mode="rgb")
    with pytest.raises(InputError, match=r"^autoreset_mode has no value 'same_step'.*SameStep"):
        make("primax/Maze-v0", autoreset_mode="same_step")
    with pytest.raises(InputError, match="num_envs must be at least 1, got 0"):
        make("primax/Maze-v0", num_envs=0)
    vec = make("primax/Maze-v0", num_envs=3)
    with pytest.raises(InputError, match="3 seeds are needed, got 2"):
        vec.reset(seed=[1, 2])
    with pytest.raises(InputError, match="lockstep"):
        vec.reset(options={"reset_mask": np.array([True, False, True])})


def test_step_and_render_need_a_running_episode():
    env = adapter.WorldEnv("maze", layout=RING, horizon=7, render_mode="ansi")
    for call in (env.render, lambda: env.step(S)):
        with pytest.raises(ResetNeeded, match=r"call reset\(\)"):
            call()
    *_, (obs, *_) = run(env, [S] * 7)
    with pytest.raises(ResetNeeded, match=r"call reset\(\)"):
        env.step(S)
    # The last moment can still be shown.
    assert env.render() == render.ansi(render.Scene(obs, env.world.channels))
    with pytest.raises(ResetNeeded):
        gymnasium.make("primax/Maze-v0").step(S)
    with pytest.raises(ResetNeeded):
        adapter.WorldVectorEnv(3, "maze").step([S, S, S])


# --- many environments -------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
@pytest.mark.parametrize(("env_id", "options"), SHORT)
def test_vector_env_is_gymnasiums_own_over_single_envs_bit_for_bit(env_id, options, mode):
    ours, oracle = make_both(env_id, mode, **options)
    assert ours.metadata["autoreset_mode"] is mode
    actions = np.random.default_rng(0).integers(5, size=(20, 3))
    rewards = 0.0
    for seed in (4, [9, 2, 9], [None, 8, None], None):
        first = ours.reset(seed=seed)
        assert data_equivalence(first, oracle.reset(seed=seed), exact=True)
        assert ours.np_random_seed == oracle.np_random_seed
        for action in actions:
            step = ours.step(action)
            assert data_equivalence(step, oracle.step(action), exact=True)
            rewards += step[1].sum()
    assert rewards > 0


def test_disabled_autoreset_waits_for_the_caller():
    ours, oracle = make_both("primax/TwoWings-v0", AutoresetMode.DISABLED, **WINGS)
    for env in (ours, oracle):
        env.reset(seed=0)
    for t in range(1, 8):
        step = ours.step([E, S, W])
        assert data_equivalence(step, oracle.step(np.array([E, S, W])), exact=True)
        assert step[3].tolist() == [t == 7] * 3
    with pytest.raises(ResetNeeded):
        ours.step([E, S, W])
    anew = [env.reset(options={"reset_mask": np.ones(3, bool)}) for env in (ours, oracle)]
    assert data_equivalence(*anew, exact=True)


def test_next_step_resets_in_a_step_of_its_own():
    vec = gymnasium.make_vec("primax/Maze-v0", num_envs=3)
    assert vec.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    vec.reset(seed=0)
    for _ in range(100):
        obs, _, _, truncated, _ = vec.step([S, E, STAY])
    assert truncated.all() and obs[0, 0, 5, 0] == 1 and obs[1, 0, 0, 9] == 1
    obs, reward, terminated, truncated, info = vec.step([S, E, STAY])
    assert obs[:, 0, 0, 0].all() and not truncated.any() and not terminated.any()
    assert reward.tolist() == [0, 0, 0] and "final_obs" not in info
    assert vec.step([S, E, STAY])[0][0, 0, 1, 0] == 1


def test_same_step_keeps_the_last_observation():
    vec = gymnasium.make_vec("primax/Maze-v0", num_envs=3, autoreset_mode="SameStep")
    vec.reset(seed=0)
    for action in [*TO_FLAG, *[STAY] * 81]:
        *_, info = vec.step([action, STAY, E])
        assert "final_obs" not in info
    obs, _, _, truncated, info = vec.step([STAY, STAY, E])
    assert truncated.all() and obs[:, 0, 0, 0].all() and obs[:, 2, 9, 9].all()
    ends = [tuple(np.argwhere(final[0])[0]) for final in info["final_obs"]]
    assert ends == [(9, 9), (0, 0), (0, 9)]
    assert info["final_info"]["n_alive"].tolist() == [0, 1, 1]
    assert info["n_alive"].tolist() == [1, 1, 1]


def test_the_reset_is_one_call_an_episode(monkeypatch):
    calls, begin = [], adapter._begin
    monkeypatch.setattr(adapter, "_begin", lambda *args: calls.append(1) or begin(*args))
    vec = gymnasium.make_vec("primax/TwoWings-v0", 3, autoreset_mode="SameStep", **WINGS)
    vec.reset(seed=0)
    for _ in range(21):
        vec.step([0, 0, 0])
    assert len(calls) == 1 + 3


def test_gymnasiums_vector_envs_leave_no_mark_on_the_class():
    make_both("primax/Maze-v0", AutoresetMode.DISABLED)
    assert "autoreset_mode" not in adapter.WorldEnv.metadata
    assert "autoreset_mode" not in gymnasium.make("primax/Maze-v0").metadata


def test_episode_statistics_of_the_vector_env():
    vec = gymnasium.make_vec("primax/TwoWings-v0", num_envs=3, **WINGS)
    vec = gymnasium.wrappers.vector.RecordEpisodeStatistics(vec)
    vec.reset(seed=[0, 2, 1])
    for _ in range(7):
        *_, info = vec.step([E, E, E])
    assert info["episode"]["l"].tolist() == [7, 7, 7]
    np.testing.assert_allclose(info["episode"]["r"], [1, 1, 0], atol=1e-6)


# --- pictures ----------------------------------------------------------------------------------


@pytest.fixture
def filmed(monkeypatch):
    """Stands in for moviepy, which the tests do not need: takes what its clip takes."""
    clips = []

    class ImageSequenceClip:
        def __init__(self, sequence, fps):
            shapes = {frame.shape for frame in sequence}
            assert len(shapes) == 1 and all(frame.dtype == np.uint8 for frame in sequence)
            clips.append((sequence, fps))

        def write_videofile(self, path, **_):
            Path(path).write_bytes(b"film")

    name = "moviepy.video.io.ImageSequenceClip"
    for part in ("moviepy", "moviepy.video", "moviepy.video.io", name):
        monkeypatch.setitem(sys.modules, part, types.ModuleType(part))
    sys.modules[name].ImageSequenceClip = ImageSequenceClip
    return clips


def test_record_video_films_every_moment(filmed, tmp_path):
    env = gymnasium.make("primax/Maze-v0", render_mode="rgb_array")
    env = RecordVideo(env, str(tmp_path / "film"), episode_trigger=lambda episode: True)
    run(env, TO_FLAG + [STAY] * 2)
    env.close()
    [(frames, fps)] = filmed
    assert fps == 8 and len(frames) == 21
    height, width, colours = frames[0].shape
    assert height % 2 == width % 2 == 0 and colours == 3  # or the usual encoder refuses them
    assert len(np.unique([frame.tobytes() for frame in frames])) == 21
    assert [path.suffix for path in (tmp_path / "film").iterdir()] == [".mp4"]


def test_a_scene_is_of_this_episode_alone(monkeypatch):
    monkeypatch.setitem(adapter.RENDERERS, "ansi", lambda scene: scene)
    env = adapter.WorldEnv("maze", render_mode="ansi")
    run(env, TO_FLAG)
    obs = run(env, TO_FLAG)[-1][0]
    scene = env.render()
    np.testing.assert_array_equal(scene.planes, obs)
    assert scene.channels == ("agent", "wall", "flag")
    assert scene.trail == (*range(0, 50, 10), *range(50, 60), *range(69, 99, 10))
    assert (scene.time, scene.horizon, scene.score) == (18, 100, 1.0)
    assert (scene.alive, scene.total) == (0, 1)


def test_frames_are_the_scenes_pictures():
    env = gymnasium.make("primax/Maze-v0", render_mode="rgb_array_list")
    assert isinstance(env, RenderCollection)
    obs = run(env, [S, S])[-1][0]
    scene = render.Scene(obs, env.unwrapped.world.channels, (0, 10), 2, 100, 0.0, 1, 1)
    frames = env.render()
    assert len(frames) == 3
    np.testing.assert_array_equal(frames[-1], render.rgb(scene))


def test_text_of_one_and_of_many():
    env = gymnasium.make("primax/Maze-v0", render_mode="ansi")
    vec = gymnasium.make_vec("primax/Maze-v0", num_envs=3, render_mode="ansi")
    obs, _ = vec.reset(seed=0)
    obs, *_ = vec.step([E, S, STAY])
    expected = [render.ansi(render.Scene(planes, vec.world.channels)) for planes in obs]
    assert list(vec.render()) == expected and len(set(expected)) == 3
    run(env, [S])
    assert env.render() == expected[1]


def test_vector_pictures_have_each_its_own_trail():
    vec = gymnasium.make_vec("primax/Maze-v0", num_envs=3, render_mode="rgb_array")
    vec.reset(seed=0)
    vec.step([E, S, STAY])
    obs, *_ = vec.step([W, N, STAY])
    for planes, cell, frame in zip(obs, (1, 10, 0), vec.render(), strict=True):
        scene = render.Scene(planes, vec.world.channels, (0, cell), 2, 100, 0.0, 1, 1)
        np.testing.assert_array_equal(frame, render.rgb(scene))


def test_render_without_a_mode_warns():
    env = adapter.WorldEnv("maze")
    env.reset()
    with pytest.warns(UserWarning, match="no render_mode"):
        assert env.render() is None


# --- the page ----------------------------------------------------------------------------------


def test_the_page_runs(filmed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 5
    names: dict = {}
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), names)
    assert filmed
