"""Every example runs, is short, learns what its page says, and is on that page."""

import csv
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import QUICK_CHILDREN

import primax

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
LINES = {"ppo_jax": 200}
SHORT = 79
"""Lines of every other example."""
IN_SB3 = ("sb3_deepsea", "sb3_dqn", "sb3_ppo", "sb3_minigrid")
"""These need torch: tests/test_sb3.py runs them."""
HERE = ("gymnasium_many", "noise", "own_reward", "own_world", "ppo_jax")


def loaded(name: str, folder: Path = EXAMPLES):
    """An example as a module."""
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def ran(name: str, *words: str) -> str:
    """What an example prints."""
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *words]
    surroundings = os.environ | QUICK_CHILDREN
    done = subprocess.run(command, capture_output=True, text=True, env=surroundings)
    assert done.returncode == 0, done.stderr
    return done.stdout


def curves(path: Path) -> dict[str, dict[str, list[tuple[int, float]]]]:
    """Steps and shares of every curve and seed that an example wrote."""
    found: dict = {}
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            at = int(row["step"]), float(row["share"])
            found.setdefault(row["curve"], {}).setdefault(row["seed"], []).append(at)
    assert all(
        0 <= share <= 1 for seeds in found.values() for x in seeds.values() for _, share in x
    )
    return found


def test_every_example_is_tested_short_and_on_the_page():
    names = sorted(path.stem for path in EXAMPLES.glob("*.py"))
    assert names == sorted(IN_SB3 + HERE)
    page = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
    in_sb3 = (ROOT / "tests" / "test_sb3.py").read_text(encoding="utf-8")
    for name in names:
        text = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
        assert len(text.splitlines()) <= LINES.get(name, SHORT), name
        assert f"python examples/{name}.py" in text.partition('"""\n\n')[0], name
        assert f"examples/{name}.py" in page, name
    assert all(f'"{name}"' in in_sb3 for name in IN_SB3)


# PPO


@pytest.fixture(scope="module")
def ppo():
    return loaded("ppo_jax")


def rollout_of(ppo, task, terminated, truncated):
    """Steps of one environment, of which all but these is nothing."""
    task, terminated, truncated = (jnp.array(x)[:, None] for x in (task, terminated, truncated))
    nothing = jnp.zeros((len(task), 1))
    return ppo.Rollout(nothing, nothing, nothing, task, terminated, truncated, nothing)


def test_advantages_stop_at_an_end_and_go_on_through_a_cut(ppo):
    """Worked out by hand: a step, a cut, an end, a step under way; discount 1/2, lambda 1/2."""
    no, yes = False, True
    rollout = rollout_of(ppo, [1.0, 2.0, 4.0, 8.0], [no, no, yes, no], [no, yes, no, no])
    values, later = jnp.array([[2.0], [4.0], [8.0], [16.0]]), jnp.full((4, 1), 6.0)
    settings = ppo.Settings(gamma=0.5, decay=0.5)
    found = ppo.gae(rollout.task, values, later, rollout, settings)
    # 8 + 3 - 16; 4 - 8, whatever comes after; 2 + 3 - 4, what it led to but no step after;
    # 1 + 3 - 2, and a quarter of the next.
    np.testing.assert_allclose(found[:, 0], [2.25, 1.0, -4.0, -5.0])


def test_a_step_leads_to_its_own_episodes_last_observation(ppo):
    reset, step, space = ppo.make_world(3)
    obs, state = first = reset(jax.random.key(0))
    assert space.obs == (9,) and obs[0] == 1
    for tick in range(3):
        obs, state, next_obs, _, terminated, truncated = step(jax.random.key(tick), state, 0)
        assert bool(terminated) == (tick == 2) and not truncated
        if tick < 2:
            np.testing.assert_array_equal(obs, next_obs)
    assert not next_obs.any()  # DeepSea shows nothing at the bottom
    np.testing.assert_array_equal(obs, first[0])


def test_the_bonus_stands_beside_the_task(ppo):
    space = primax.Space(obs=(1,), num_actions=2)
    keys = (lambda obs: obs[0].astype(jnp.int32), 10)
    bonus = primax.bonus("count", space, keys=keys, settings={"warmup": 1})
    rollout = rollout_of(ppo, [1.0, 0.0, 3.0], [False] * 3, [False] * 3)
    obs = jnp.array([4.0, 5.0, 4.0]).reshape(3, 1, 1)
    rollout = rollout._replace(obs=obs, next_obs=obs, action=jnp.zeros((3, 1), jnp.int32))
    kept, rewards = ppo.rewarded(bonus, bonus.init(0), rollout, 10.0)
    assert int(kept.clock) == 3
    # The first step is the warm-up; the second is new, the third was met once before.
    np.testing.assert_allclose(rewards[:, 0], [1.0, 10.0, 3.0 + 10.0 / np.sqrt(2)], rtol=1e-6)


@pytest.mark.slow
def test_ppo_learns_from_the_bonus_and_the_same_seed_gives_the_same_bytes(ppo, monkeypatch):
    """The whole program at a tiny size: what advantages are made of, before and after the warm-up."""
    seen, gae = [], ppo.gae

    def spied(rewards, values, later, rollout, settings):
        jax.debug.callback(lambda x: seen.append(np.array(x)), rewards - rollout.task, ordered=True)
        return gae(rewards, values, later, rollout, settings)

    monkeypatch.setattr(ppo, "gae", spied)
    settings = ppo.Settings(envs=4, ticks=64, epochs=1, minibatches=2)
    train = jax.jit(ppo.make_train(ppo.make_world(4), settings, 8))
    found = [np.asarray(train(jax.random.key(seed))) for seed in (0, 0, 1)]
    jax.effects_barrier()
    added = np.array(seen).reshape(3, 8, -1)
    assert not added[:, :3].any()  # 768 of the 1,000 steps of the warm-up
    assert np.all(np.abs(added[:, 4:]).max(axis=2) > 1e-3)
    most = 0.1 * 2 * (1 - np.arange(8) / 8)  # the weight, what is left of it, PRIME's most
    assert np.all(np.abs(added).max(axis=2) <= most + 1e-6)
    np.testing.assert_array_equal(added[0], added[1])
    np.testing.assert_array_equal(found[0], found[1])
    assert np.any(added[0] != added[2]) and np.any(found[0] != found[2])
    assert found[0].shape == (8,) and found[0].max() > 0


@pytest.mark.slow
def test_ppo_prints_and_writes_its_curve(tmp_path):
    words = ("--size", "3", "--steps", "4096", "--seeds", "3,7", "--without")
    said = ran("ppo_jax", *words, "--curve", str(tmp_path / "curve.csv"))
    assert said.count("PPO, seed") == 2 and "seed 7: at the goal by step" in said
    found = curves(tmp_path / "curve.csv")["PPO"]
    assert list(found) == ["3", "7"] and [step for step, _ in found["3"]] == [
        1024,
        2048,
        3072,
        4096,
    ]


# The others


def test_a_table_in_many_environments_counts_no_step_that_only_resets(monkeypatch):
    """What the bonus is told of MountainCar's vectors: 200 steps of an episode, and one that resets."""
    many, told = loaded("gymnasium_many"), []

    def bonus(*args):
        made = primax.bonus("count", *args[1:], settings={"warmup": 8})
        step = made.step

        def spied(state, steps):
            told.append(steps)
            return step(state, steps)

        made.step = spied
        return made

    given = {"Space": primax.Space, "Transition": primax.Transition}
    monkeypatch.setattr(many, "primax", SimpleNamespace(bonus=bonus, **given))
    met = many.train("count", 8 * 205, 0)
    places = [many.place(steps.next_obs) for steps in told]
    assert met == [len(np.unique(places[: i + 1])) / 400 for i in range(205)]
    valid = np.array([steps.valid for steps in told])
    assert valid.shape == (205, 8) and not valid[200].any() and valid.sum() == 204 * 8
    last, first = told[199], told[201]
    assert last.truncated.all() and not last.terminated.any()
    np.testing.assert_array_equal(told[200].next_obs, first.obs)
    assert np.all(first.obs[:, 1] == 0) and np.any(last.next_obs[:, 1] != 0)
    np.testing.assert_array_equal(last.next_key, many.place(last.next_obs))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, steps, lines",
    [
        pytest.param("noise", "2000", 6, marks=pytest.mark.long),
        pytest.param("own_reward", "2000", 4, marks=pytest.mark.long),
        ("own_world", "2000", 4),
    ],
)
def test_an_example_that_trains_prints_and_writes(name, steps, lines, tmp_path):
    said = ran(name, "--steps", steps, "--seeds", "2", "--curve", str(tmp_path / "curve.csv"))
    assert len(said.splitlines()) == lines, said
    found = curves(tmp_path / "curve.csv")
    assert len(found) == 2 and all(list(seeds) == ["0", "1"] for seeds in found.values())
    assert all(seeds["0"][-1][0] <= 2_000 for seeds in found.values())


def test_the_new_reward_pays_most_for_what_was_never_met(monkeypatch):
    methods = dict(primax.METHODS)
    rarest = loaded("own_reward").Rarest
    added = set(primax.METHODS) - set(methods)
    assert added == {"rarest"}
    del primax.METHODS["rarest"]
    reward = rarest(type("Spec", (), {"num_keys": 8, "num_actions": 2})(), None)
    state = reward.init(None)
    for key in (2, 3, 3, 5):  # states 1, 1, 1 and 2
        state, _ = reward.observe(state, type("Step", (), {"key": key})(), None)
    np.testing.assert_array_equal(state, [0, 3, 1, 0])
    worth = reward.score(state, type("Batch", (), {"next_key": jnp.array([0, 1, 2])})())
    np.testing.assert_allclose(worth, [1.0, 1 - np.log(3) / np.log(4), 1.0], rtol=1e-6)


def test_pictures_show_means_of_parts_of_a_run(tmp_path):
    page = loaded("examples_page", ROOT / "benchmarks")
    found = page.shares([(5, 1.0), (10, 0.0), (25, 1.0)], np.array([0, 10, 20, 30]))
    np.testing.assert_array_equal(found, [0.5, 0.5, 1.0])  # no episode ended in the second part
    file = tmp_path / "noise.csv"
    file.write_text("curve,seed,step,share\nRND,3,10,0.5\nRND,3,20,1.0\nPRIME,3,10,0.0\n")
    assert page.read([file]) == {"RND": {"3": [(10, 0.5), (20, 1.0)]}, "PRIME": {"3": [(10, 0.0)]}}
    page.figure.make(
        tmp_path / "a.svg", (4.0, 3.0), lambda into: page.draw("noise", page.read([file]), into)
    )
    assert "svg" in (tmp_path / "a.svg").read_text(encoding="utf-8")


def test_pictures_of_what_was_measured_show_seeds_that_have_found_the_goal(tmp_path):
    page = loaded("examples_page", ROOT / "benchmarks")
    rows = [{"bonus": "prime, short windows", "seed": 0, "first": 1}]
    rows += [{"bonus": "none", "seed": seed, "first": None} for seed in (0, 1)]
    (tmp_path / "a_x.json").write_text(json.dumps({"rows": rows}), encoding="utf-8")
    rows = [{"bonus": "prime", "seed": 3, "first_step": 101}]
    (tmp_path / "b_x.json").write_text(json.dumps({"rows": rows}), encoding="utf-8")
    found = page.read_measured(tmp_path, "DQN", "a_*.json", 2_000)
    assert list(found) == ["DQN with PRIME", "DQN"] and list(found["DQN"]) == ["0", "1"]
    # Its second episode of 100 steps ends at step 200; parts are of 100.
    assert found["DQN with PRIME"]["0"][:2] == [(100, 0.0), (200, 1.0)]
    assert all(at == 0 for _, at in found["DQN"]["1"]) and len(found["DQN"]["1"]) == 20
    found = page.read_measured(tmp_path, "PPO", "b_*.json", 2_000)
    assert found["PPO with PRIME"]["3"][:2] == [(100, 0.0), (200, 1.0)]


@pytest.mark.parametrize("name, lacks", [("sb3_minigrid", "minigrid"), ("sb3_deepsea", "gymnax")])
def test_what_an_example_lacks_is_said_in_one_line(name, lacks):
    code = f"import runpy, sys; sys.modules[{lacks!r}] = None; runpy.run_path(sys.argv[1])"
    words = [sys.executable, "-c", code, str(EXAMPLES / f"{name}.py")]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done.stderr
    assert "pip install 'primax-rl[sb3," in done.stderr


def test_pictures_of_the_page_are_there_and_small():
    text = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
    pictures = [
        part.partition(")")[0] for part in text.split("](")[1:] if part.startswith("pictures/")
    ]
    assert len(pictures) >= 5
    for picture in pictures:
        assert (ROOT / "docs" / picture).stat().st_size < 60_000
