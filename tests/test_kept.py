"""What is common to adapters: options, weights, and what is refused; no other library is needed."""

import subprocess
import sys

import numpy as np
import pytest

import primax
from primax import InputError, Space
from primax.adapters.kept import Kept, Options

SPACE = Space(obs=(2,), num_actions=3)
SMALL = {"replay": 64, "recent": 16, "window": 6, "warmup": 4}


def count(space: Space, envs: int):
    return primax.bonus("count", space, envs=envs, keys="simhash", settings=SMALL)


def kept(envs: int = 1, **options) -> Kept:
    return Kept(Options(count, **options), SPACE, envs, 0.99)


def step(envs: int = 1) -> primax.Transition:
    obs, never = np.ones((envs, 2), np.float32), np.zeros(envs, bool)
    return primax.Transition(obs, np.zeros(envs, int), obs, never, never)


@pytest.mark.parametrize(
    "schedule, want",
    [("constant", [2, 2, 2]), ("linear", [2, 1, 0]), (lambda left: left**2, [2, 0.5, 0])],
)
def test_a_weight_follows_the_progress_that_remains(schedule, want):
    options = Options(weight=2.0, schedule=schedule)
    assert [options.weight_at(left) for left in (1.0, 0.5, 0.0)] == want


def test_steps_count_the_progress_over_all_environments_and_not_below_zero():
    mine = kept(envs=2, schedule="linear", weight=1, steps=8)
    weights = []
    for _ in range(6):
        weights.append(mine.weight(0.123))
        mine.step(step(2))
    assert weights == [1.0, 0.75, 0.5, 0.25, 0.0, 0.0]
    assert kept(schedule="linear", weight=1).weight(0.125) == 0.125


def test_the_sum_has_both_weights():
    mine = kept(task=0.5)
    task, worth = np.array([1.0, 2.0]), np.array([10.0, 20.0])
    total = mine.added(task, worth, 0.1)
    assert total.dtype == np.float32
    np.testing.assert_allclose(total, [1.5, 3.0])
    np.testing.assert_allclose(kept(task=0).added(task, worth, 1.0), worth)


def test_a_state_is_saved_and_goes_on(tmp_path):
    mine, other = kept(), kept()
    for _ in range(7):
        mine.step(step())
    mine.save(tmp_path / "bonus.npz")
    other.load(tmp_path / "bonus.npz")
    assert int(other.state.clock) == 7
    np.testing.assert_array_equal(mine.score(step()), other.score(step()))
    np.testing.assert_array_equal(mine.step(step()), other.step(step()))


def test_names_keys_settings_discount_and_seed_reach_the_bonus():
    options = Options("prime", keys=primax.SimHash(bits=4), settings={"window": 7}, seed=3)
    made = options.make(SPACE, 2, 0.8)
    config = made.config
    assert (config.method, config.envs, config.window, config.critics.gamma) == ("prime", 2, 7, 0.8)
    assert made.core.keys == primax.SimHash(bits=4)
    assert Options("prime").make(SPACE, 1, 0.8).core.keys == primax.SimHash()
    own = Options(primax.METHODS["rnd"]).make(SPACE, 1, 0.8)
    assert own.config.method == "rnd"
    mine = [Kept(Options(count, seed=seed), SPACE, 1, 0.9).state.keys for seed in (0, 0, 1)]
    same = [np.array_equal(mine[0].directions, other.directions) for other in mine]
    assert same == [True, True, False]
    told = Kept(Options("prime", gamma=0.5), SPACE, 1, 0.99)
    assert told.bonus.config.critics.gamma == 0.5


@pytest.mark.parametrize(
    "given, words",
    [
        ({"bonus": "prme"}, "did you mean prime"),
        ({"bonus": "smirl"}, "smirl gives the agent more to see"),
        ({"bonus": "s_adapt"}, "more to see"),
        ({"bonus": "moss"}, "more to see"),
        ({"bonus": "task+prime"}, "is a mix"),
        ({"bonus": lambda space, envs: "prime"}, "expected a primax.bonus"),
        ({"bonus": lambda space, envs: count(space, 3)}, "3 environments, the agent has 1"),
        ({"bonus": count, "keys": "simhash"}, "say it in the function"),
        ({"keys": "given"}, "num_keys"),
        ({"weight": -1}, "weight must be"),
        ({"weight": "0.1"}, "weight takes a number"),
        ({"task": True}, "task takes a number"),
        ({"weight": float("nan")}, "weight must be"),
        ({"schedule": "linaer"}, "did you mean linear"),
        ({"schedule": "cosine"}, "schedule has no value"),
        ({"settings": 3}, "settings takes fields by name"),
        ({"steps": 0}, "steps must be"),
        ({"steps": 1.5}, "steps takes a whole number"),
        ({"wieght": 1}, "did you mean weight"),
        ({"settings": {"widnow": 2}}, "window"),
        ({"gamma": 1.5}, "gamma"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_options_are_answered_in_one_line(given, words):
    given = {"bonus": "prime"} | given
    with pytest.raises(InputError, match=words) as caught:
        Kept(Options.of(given.pop("bonus"), given), SPACE, 1, 0.99)
    assert "\n" not in str(caught.value)


def test_objects_and_given_keys_and_odd_schedules_are_refused():
    with pytest.raises(InputError, match="how it is made"):
        Options(count(SPACE, 1)).make(SPACE, 1, 0.99)
    keyed = Space(obs=(2,), num_actions=3, num_keys=5)
    with pytest.raises(InputError, match="keys='given' cannot be had"):
        Options("count", keys="given").make(keyed, 1, 0.99)
    for odd in (float("nan"), "0.1", None):
        with pytest.raises(InputError, match="schedule: expected a number"):
            Options(schedule=lambda left, odd=odd: odd).weight_at(1.0)


def test_without_stable_baselines_the_import_says_what_to_install():
    code = "import sys; sys.modules['stable_baselines3'] = None; import primax.sb3"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1 and last.startswith("ImportError: Stable-Baselines3 is not there")
    assert last.endswith("pip install 'primax-rl[sb3]'")
