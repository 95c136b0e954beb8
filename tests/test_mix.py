"""A bonus beside the task: weights and targets by hand, learnt values, the whole program."""

import os
import signal
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from probes import Chosen, ProbeConfig

import primax
from primax.agent import critics
from primax.agent.learner import Learner
from primax.agent.training import compile_program
from primax.cli import main
from primax.config.schema import Config, CriticsConfig, ExploreConfig, MixConfig, NetConfig
from primax.errors import InputError
from primax.methods import METHODS, find_method, known_method, mixed, spec
from primax.nn import nets
from primax.presets import configure
from primax.rewards.base import Reward, Spec
from primax.rewards.task import NoOptions
from primax.runs.loop import in_memory
from primax.runs.networks import find

PLANES = (2, 3, 3)
NET = NetConfig(first_channels=3, second_channels=4, embedding=5)


def test_the_weighted_sum_by_hand():
    values = jnp.array([[1.0, 2.0, 3.0, 10.0, 20.0, 30.0]])
    np.testing.assert_array_equal(critics.split(values), [[[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]]])
    np.testing.assert_allclose(critics.combined(values, jnp.float32(0.5)), [[6.0, 12.0, 18.0]])


def test_two_targets_by_hand():
    """One head, two rows. By the sum action 1 is best in the first, and the second is an end:

    the task 1 + 0.5 * 3 and the bonus 2 + 0.25 * 8; then the rewards alone.
    """
    reward = jnp.array([[1.0, 2.0], [5.0, 7.0]])
    discount = jnp.array([[0.5, 0.25], [0.0, 0.0]])
    selector = jnp.array([[[0.0, 1.0], [1.0, 0.0]]])
    value = jnp.array([[[9.0, 3.0, 9.0, 8.0], [9.0, 9.0, 9.0, 9.0]]])
    y = critics.two_targets(reward, discount, selector, value)
    np.testing.assert_allclose(y, [[[2.5, 4.0], [5.0, 7.0]]])


def test_the_loss_of_two_values_by_hand():
    """The task's value of action 1 is 2 and its target 5, the bonus's 4 and 3: 9 + 1."""
    net = critics.init(jax.random.key(0), 1, NET, PLANES, 10).online
    net = jax.tree.map(lambda x: jnp.zeros_like(x[0]), net)
    bias = jnp.array([0.0, 2.0, 0, 0, 0, 0, 4.0, 0, 0, 0])
    net = nets.Net(net.trunk, nets.Linear(net.head.weight, bias))
    rates = critics.rates(CriticsConfig(), MixConfig())
    patches = nets.patches(jnp.zeros((2, *PLANES), jnp.uint8))
    y = jnp.array([[5.0, 3.0], [100.0, 100.0]])
    loss, taken = critics.head_loss(
        net, patches, jnp.array([1, 1]), y, jnp.array([1.0, 0.0]), rates
    )
    np.testing.assert_allclose(taken, [[2.0, 4.0], [2.0, 4.0]])
    assert float(loss) == pytest.approx(10 / 2)


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("constant", [2.0, 2.0, 2.0, 2.0]),
        ("linear", [2.0, 1.5, 1.0, 0.0]),
        ("cosine", [2.0, 1.0 + 0.5**0.5, 1.0, 0.0]),
    ],
)
def test_the_weight_by_hand(schedule, expected):
    """To zero by half of 2,000 steps; then it stays there."""
    settings = {"mix.weight": 2, "mix.schedule": schedule, "mix.fraction": 0.5}
    config = configure("task+count", "maze", "smoke", settings)
    rates, of = critics.rates(config.critics, config.mix), Learner.bonus_weight
    learner = Learner(config, *primax.methods.build(config))
    found = [float(of(learner, rates, jnp.int32(clock))) for clock in (0, 250, 500, 1_000)]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    last = float(of(learner, rates, jnp.int32(2_000)))
    assert last == pytest.approx(2.0 if schedule == "constant" else 0.0, abs=1e-6)


class ForFirst(Reward[tuple]):
    """Pays 1 for action 1."""

    spec: Spec
    config: NoOptions = eqx.field(static=True)

    def init(self, key):
        return ()

    def score(self, state, batch):
        return (batch.action == 1).astype(jnp.float32)


def learnt(**mix) -> np.ndarray:
    """Values of the actions in a world whose task pays 1 for action 2, and whose bonus 1 for action 1."""
    config = Config(
        method="task+probe",
        world=ProbeConfig(),
        reward=NoOptions(),
        steps=6_000,
        window=1_000,
        warmup=100,
        replay=2_000,
        recent=100,
        net=NetConfig(first_channels=8, second_channels=8, embedding=16),
        critics=CriticsConfig(heads=2, gamma=0.5, learning_rate=3e-3, batch=32, sync_every=20),
        explore=ExploreConfig(start=1.0, end=1.0),
        mix=MixConfig(schedule="constant", **mix),
    )
    world = Chosen()
    learner = Learner(config, world, ForFirst(spec(world, config), config.reward))
    state = in_memory(compile_program(learner, (0,))).state
    online = jax.tree.map(lambda x: x[0], state.critics.online)
    seen = nets.patches(jnp.eye(3, dtype=jnp.uint8).reshape(3, 1, 1, 3))
    return np.asarray(critics.values(online, seen).mean(axis=0))[0]


def test_one_value_is_of_the_weighted_sum():
    """A step is worth 1 for action 2 and 0.5 for action 1; the best from then on 1 / (1 - γ)."""
    np.testing.assert_allclose(learnt(weight=0.5), [1.0, 1.5, 2.0, 1.0, 1.0], atol=0.05)


def test_two_values_are_of_the_policy_that_acts_on_their_sum():
    """At weight 3 the bonus leads: from then on action 1 is taken, which the task pays nothing for.

    A critic of the task alone would have 1 more everywhere. The bonus's discount is its own, 0.75.
    """
    task, bonus = critics.split(jnp.asarray(learnt(weight=3.0, values="two", gamma=0.75)))
    np.testing.assert_allclose(task, [0.0, 0.0, 1.0, 0.0, 0.0], atol=0.05)
    np.testing.assert_allclose(bonus, [3.0, 4.0, 3.0, 3.0, 3.0], atol=0.1)


def test_a_mix_has_the_tasks_defaults_and_the_bonuss_options():
    config, task = configure("task+prime", "maze"), configure("task", "maze")
    assert config.reward == configure("prime", "maze").reward
    assert (config.critics, config.explore, config.steps) == (
        task.critics,
        task.explore,
        task.steps,
    )
    assert config.mix == MixConfig(gamma=0.9) and configure("task+rnd", "maze").mix == MixConfig()
    assert find_method("Task+RND-Snapshot").label == "Ext-DQN + RND, frozen by window"
    assert task.mix is None and known_method("task+prime") == mixed(METHODS["prime"])
    two = configure("task+prime", "maze", settings={"mix.values": "two", "critics.gamma": 0.95})
    one = replace(two, mix=replace(two.mix, values="one"))
    assert (two.reward_gamma, one.reward_gamma) == (0.9, 0.95)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("task+random",), "random is no bonus"),
        (("task+task",), "task is no bonus"),
        (("rnd+prime",), "'rnd+prime' is no mix: task+BONUS is one, such as task+prime"),
        (("task+prim",), "unknown method 'prim'; did you mean prime?"),
        (("task+prime+rnd",), "unknown method 'prime+rnd'"),
        (("task+",), "unknown method ''"),
        (("rnd", {"mix.weight": 1}), "mix.weight is of a mix: task+rnd is one"),
        (("random", {"mix.weight": 1}), "mix.weight is of a mix: task+prime is one"),
        (("task+prime", {"mix.weight": -1}), "mix.weight must be between"),
        (("task+prime", {"mix.schedule": "linar"}), "mix.schedule has no value .linar.; did"),
        (("task+prime", {"mix.fraction": 0}), "mix.fraction must be between"),
        (
            ("task+prime", {"mix.values": "two", "mix.gamma": 0, "critics.gamma": 0}),
            "mix.gamma must be above 0",
        ),
    ],
)
def test_what_is_no_mix_is_refused(args, says):
    method, settings = (*args, {})[:2]
    with pytest.raises(InputError, match="^" + says.replace("+", r"\+").replace("?", r"\?")):
        configure(method, "maze", "smoke", settings)
    assert known_method(method) is None or settings


def test_a_bonus_that_counts_nothing_leaves_the_task():
    """At weight 0 the run is the task's, episode by episode; the bonus is logged all the same."""
    both = [
        primax.train(method, "maze", 2, "smoke", settings)
        for method, settings in (("task", {}), ("task+count", {"mix.weight": 0}))
    ]
    for name, column in both[0].episodes.items():
        np.testing.assert_array_equal(column, both[1].episodes[name])
    np.testing.assert_array_equal(both[0].windows["loss"], both[1].windows["loss"])
    assert (both[1].windows["reward_bonus"] > 0).all() and not both[1].windows["bonus_weight"].any()


@pytest.mark.slow
def test_two_values_through_the_program(tmp_path, capsys, monkeypatch, compiled_once):
    """Trained, stopped and gone on with to the same bytes, and shown; parts add up."""
    monkeypatch.setenv("COLUMNS", "200")
    settings = {"mix.values": "two", "mix.schedule": "linear", "mix.weight": 0.5}
    whole, halved = tmp_path / "whole", tmp_path / "halved"
    pairs = [f"{name}={value}" for name, value in settings.items()]
    told = lambda *args: main([str(arg) for arg in args]) == 0 and capsys.readouterr().out  # noqa: E731
    text = told("train", "task+prime", "maze", "--preset", "smoke", "--seeds", 2, "--out", whole, "--set", *pairs)  # fmt: skip
    assert "task+prime in Maze" in text
    with pytest.raises(primax.errors.RunError, match="stopped"):
        primax.train("task+prime", "maze", 2, "smoke", settings, _stop_at(1_000), halved)
    result = primax.train("task+prime", "maze", 2, "smoke", settings, out=halved)
    for name in ("episodes.csv", "windows.csv", "maps.npz", "replays.jsonl"):
        assert (whole / name).read_bytes() == (halved / name).read_bytes(), name
    columns = result.windows
    np.testing.assert_allclose(columns["bonus_weight"][::2], [0.375, 0.25, 0.125], rtol=1e-6)
    added = columns["reward_task"] + columns["bonus_weight"] * columns["reward_bonus"]
    np.testing.assert_allclose(columns["reward"], added, rtol=1e-5)
    assert "mix.gamma" in told("list", "task+prime", "maze")
    assert "nothing fails" in (text := told("verify", "--run", whole))
    assert "a promise of prime alone; this run is task+prime" in " ".join(text.split())
    told("explain", whole)
    assert "mean" in told("evaluate", whole, "--episodes", 3)
    np.testing.assert_array_equal(find(whole).agents.bonus_weight, [0.0, 0.0])  # linear, at its end
    told("export", whole)
    assert "task+prime" in told("stats", whole)
    page = tmp_path / "page.html"
    told("report", whole, "--out", page)
    assert "Ext-DQN + PRIME" in page.read_text(encoding="utf-8")


def _stop_at(clock: int):
    return lambda at: at.clock == clock and os.kill(os.getpid(), signal.SIGTERM)
