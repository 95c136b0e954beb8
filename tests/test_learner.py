"""The learner: learnt values on probe worlds, schedules, seeds, bits."""

import functools
import itertools
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from probes import (
    ENDLESS,
    Both,
    Chosen,
    Constant,
    Cut,
    Delayed,
    Ends,
    Numbered,
    ProbeConfig,
    Seen,
    Walks,
)

from primax.agent import critics, ring
from primax.agent.learner import Learner, _reduce, make_learner
from primax.agent.training import compile_program, windows
from primax.api import train
from primax.config.schema import Config, CriticsConfig, ExploreConfig, NetConfig
from primax.errors import InputError, RunError
from primax.methods import build, spec
from primax.nn import nets
from primax.presets import configure
from primax.rewards.task import NoOptions, Task
from primax.runs.loop import Result, in_memory
from primax.runs.measures import score_measures, scores_by_seed
from primax.runs.tables import by_seed
from primax.worlds import WORLDS, make_world
from primax.worlds.exact import expected_score

GAMMA = 0.5


def learnt(probe, steps: int = 6_000, **changes) -> np.ndarray:
    """Action values [observation, action] after training, averaged over two heads."""
    state, _ = trained(probe, steps, **changes)
    seen = nets.patches(jnp.eye(3, dtype=jnp.uint8).reshape(3, 1, 1, 3))
    return np.asarray(critics.values(state.critics.online, seen).mean(axis=0))


def trained(probe, steps: int, **changes):
    """The last state, and what the last window said."""
    settings = {"heads": 2, "gamma": GAMMA, "learning_rate": 3e-3, "batch": 32, "sync_every": 20}
    config = Config(
        method="task",
        world=ProbeConfig(),
        reward=NoOptions(),
        steps=steps,
        window=1_000,
        warmup=100,
        replay=2_000,
        recent=100,
        net=NetConfig(first_channels=8, second_channels=8, embedding=16),
        critics=CriticsConfig(**(settings | changes)),
        explore=ExploreConfig(start=1.0, end=1.0),
    )
    init, warm_up, window = program(config, probe if probe.can_end else None)
    number = jnp.int32(0 if probe.can_end else ENDLESS.index(probe))
    state = init(number, jax.random.key(0), jnp.int32(0))
    state, _ = warm_up(number, state, jnp.int32(0))
    for i in range(config.windows):
        state, said = window(number, state, jnp.int32(config.warmup + i * config.window))
    return state, said


@functools.cache
def program(config: Config, probe: type | None):
    """What a learner does, compiled, for the probe of a number."""

    def compiled(name: str):
        def do(number, *args):
            world = probe() if probe else Numbered(number)
            learner = Learner(config, world, Task(spec(world, config), config.reward))
            return getattr(learner, name)(*args)

        return jax.jit(do)

    return [compiled(name) for name in ("init", "warm_up", "window")]


def test_constant_reward_is_worth_r_over_one_minus_gamma():
    np.testing.assert_allclose(learnt(Constant)[0], 0.5 / (1 - GAMMA), atol=0.03)


def test_value_that_depends_on_the_observation():
    q = learnt(Seen)
    np.testing.assert_allclose(q[1], 1.0, atol=0.15)
    np.testing.assert_allclose(q[0], -1.0, atol=0.15)


def test_delayed_reward():
    q = learnt(Delayed)
    worth = 1 / (1 - GAMMA**3)
    np.testing.assert_allclose(q[2], worth, atol=0.05)
    np.testing.assert_allclose(q[1], GAMMA * worth, atol=0.05)
    np.testing.assert_allclose(q[0], GAMMA**2 * worth, atol=0.05)


def test_a_time_limit_that_is_an_end_by_hand():
    """Four steps an episode: 0 is seen first, worth γ Q(1), and last, worth nothing: Q(0) = γ Q(1) / 2.

    With Q(1) = γ Q(2) and Q(2) = 1 + γ Q(0) that is 2/15, 8/15 and 16/15 at γ = 1/2.
    """
    q = learnt(Delayed, truncation="end")
    np.testing.assert_allclose(q.mean(axis=1), np.array([2, 8, 16]) / 15, atol=0.05)


def test_value_that_depends_on_the_action():
    q = learnt(Chosen)[0]
    np.testing.assert_allclose(q, GAMMA / (1 - GAMMA) + (np.arange(5) == 2), atol=0.05)


def test_value_that_depends_on_both():
    q = learnt(Both)
    for bit in (0, 1):
        np.testing.assert_allclose(q[bit], GAMMA / (1 - GAMMA) + (np.arange(5) == bit), atol=0.15)


def test_a_world_that_ends_is_worth_its_last_reward():
    np.testing.assert_allclose(learnt(Ends)[0], 1.0, atol=0.05)


def test_episodes_of_two_steps_are_worth_their_finite_sum():
    q = learnt(Walks)
    np.testing.assert_allclose(q[1], 1.0, atol=0.05)
    np.testing.assert_allclose(q[0], 1.0 + GAMMA, atol=0.05)


def test_a_cut_is_bootstrapped_through_where_episodes_could_end():
    np.testing.assert_allclose(learnt(Cut)[0], 0.5 / (1 - GAMMA), atol=0.03)


def test_a_cut_that_is_an_end_by_hand():
    """One row in four ends: Q = 1/2 + 3/4 γ Q, which is 4/5 at γ = 1/2."""
    np.testing.assert_allclose(learnt(Cut, truncation="end")[0], 0.8, atol=0.04)


def test_episodes_that_end_when_they_like_are_read_seed_by_seed(tmp_path):
    """Seed 0 has three, seed 1 two, seed 2 none yet; a gap is refused."""
    table = {
        "seed": np.array([0.0, 1, 0, 0, 1]),
        "episode": np.array([0.0, 0, 1, 2, 1]),
        "step": np.array([2.0, 4, 5, 8, 9]),
        "score": np.array([1.0, 2, 3, 4, 5]),
    }
    found = by_seed(table, (0, 1, 2), tmp_path, 4, steps=12, is_free=True)
    np.testing.assert_array_equal(found["score"], [1, 3, 4, 2, 5])
    scores, none = scores_by_seed(table, (0, 1, 2)), np.nan
    np.testing.assert_array_equal(scores, [[1, 3, 4], [2, 5, none], [none] * 3])
    measured = score_measures(scores, length=2)
    np.testing.assert_allclose(measured["average"], [8 / 3, 3.5, none])
    np.testing.assert_allclose(measured["peak"], [3.5, 3.5, none])
    np.testing.assert_allclose(measured["last"], [3.5, 3.5, none])
    gap = {name: column[[0, 1, 3, 4]] for name, column in table.items()}
    with pytest.raises(InputError, match="an episode of some seed is missing"):
        by_seed(gap, (0, 1), tmp_path, 4, steps=12, is_free=True)


def test_a_snapshot_of_random_episodes_needs_episodes_of_one_length(monkeypatch):
    monkeypatch.setitem(WORLDS, "walks", Walks)
    config = configure("count", "walks", "smoke", {"snapshot": "random"})
    with pytest.raises(InputError, match="all of one length"):
        make_learner(config)


@pytest.mark.parametrize(("probe", "length"), [(Ends, 1), (Walks, 2), (Cut, 4)])
def test_after_an_end_one_idle_row_resets(probe, length):
    """In the ring, in the task signal and in the episodes; observations are those lived."""
    state, said = trained(probe, steps=1_000)
    rows, every = state.ring.rows, length + 1
    num = 400 // every * every
    idle = np.asarray(rows.idle[:num]).reshape(-1, every)
    np.testing.assert_array_equal(idle, [[False] * length + [True]] * len(idle))
    assert not np.any(np.asarray(rows.task[:num])[idle.reshape(-1)])
    ended = np.asarray(rows.terminated[:num]).reshape(-1, every)
    wants = np.zeros((len(idle), every), bool)
    wants[:, length - 1] = probe is not Cut
    np.testing.assert_array_equal(ended, wants)
    ages = jnp.arange(num, 0, -1)
    batch = ring.read(state.ring, jnp.int32(num), ages, (1, 1, 3))
    place = lambda obs: np.asarray(obs).reshape(-1, every, 3).argmax(-1)  # noqa: E731
    before, after = place(batch.obs), place(batch.next_obs)
    path = {Ends: ([0], [2]), Walks: ([0, 1], [1, 2]), Cut: ([0] * 4, [0] * 4)}[probe]
    np.testing.assert_array_equal(before[:, :length], [path[0]] * len(idle))
    np.testing.assert_array_equal(after[:, :length], [path[1]] * len(idle))
    np.testing.assert_array_equal(after[:, length], 0)
    cut = np.asarray(batch.truncated).reshape(-1, every)
    np.testing.assert_array_equal(cut[:-1].any(), probe is Cut)
    if probe is Cut:
        np.testing.assert_array_equal(cut[:-1], [[False] * 3 + [True, False]] * (len(cut) - 1))
    is_over = np.asarray(said["episodes"]["is_over"])
    worth = {Ends: 1.0, Walks: 2.0, Cut: 2.0}[probe]
    np.testing.assert_array_equal(said["episodes"]["outcome"].score[is_over], worth)
    numbers = np.asarray(said["episodes"]["episode"])[is_over]
    np.testing.assert_array_equal(np.diff(numbers), 1)
    assert is_over.sum() in (1_000 // every, 1_000 // every + 1)
    assert int(state.episodes) == numbers[-1] + 1


def test_the_soft_bound_holds_values_down():
    """Q would be 1; a strong bound at 0.2 keeps it near there."""
    assert learnt(Constant, q_max=0.2, q_penalty=100.0)[0].max() < 0.3


def run(config: Config, seeds: tuple[int, ...]) -> Result:
    return in_memory(compile_program(make_learner(config), seeds))


def smoke(**settings) -> Config:
    return configure("task", "butterflies", "smoke", {k: str(v) for k, v in settings.items()})


def test_same_seed_twice_is_the_same_bits_and_seeds_differ():
    config = smoke()
    first, second = (run(config, (0, 1, 2)) for _ in range(2))
    for a, b in zip(jax.tree.leaves(first.state), jax.tree.leaves(second.state), strict=True):
        np.testing.assert_array_equal(np.asarray(_data(a)), np.asarray(_data(b)))
    for name, column in first.episodes.items():
        np.testing.assert_array_equal(column, second.episodes[name])
    for i, j in ((0, 1), (0, 2), (1, 2)):
        for path, leaf in jax.tree_util.tree_leaves_with_path(first.state.critics.online):
            assert not np.array_equal(leaf[i], leaf[j]), f"{path} is the same in seeds {i} and {j}"
        rows = first.state.ring.rows
        assert not np.array_equal(rows.action[i], rows.action[j])
        assert not np.array_equal(first.state.ring.slots.bits[i], first.state.ring.slots.bits[j])


def _data(leaf):
    return jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf


@pytest.mark.slow
def test_a_seeds_stream_does_not_depend_on_the_seeds_beside_it():
    """Everything drawn is the same. What is learnt may round differently in another batch width,
    and where a gradient is nothing but rounding Adam still takes a step: hence one step's size."""
    config = smoke(**{"explore.end": 1.0})
    alone, among = run(config, (3,)), run(config, (1, 3, 5))
    for name in ("slots.bits", "rows.action", "rows.key"):
        part, leaf = name.split(".")
        ours = getattr(getattr(alone.state.ring, part), leaf)[0]
        theirs = getattr(getattr(among.state.ring, part), leaf)[1]
        np.testing.assert_array_equal(ours, theirs)
    for a, b in zip(
        *(jax.tree.leaves(x.state.critics.online) for x in (alone, among)), strict=True
    ):
        np.testing.assert_allclose(a[0], b[1], rtol=1e-3, atol=config.critics.learning_rate)


def test_a_program_that_overwrites_a_constant_is_stopped():
    """A compiled window once set PRIME's κ to zero on a GPU; nothing that was logged was not finite."""
    program = compile_program(make_learner(configure("prime", "maze", "smoke")), (0, 1))

    def spoilt(state, clock):
        state, outputs = program.window(state, clock)
        place = lambda state: state.reward.constants.count_scale  # noqa: E731
        return eqx.tree_at(place, state, jnp.zeros(2)), outputs

    assert len([*windows(program)]) == 4
    with pytest.raises(RunError, match=r"overwrote .*reward.*count_scale .* ends at step 1,000"):
        [*windows(replace(program, window=spoilt))]


@pytest.mark.slow
def test_updates_and_syncs_happen_at_the_stated_steps():
    config = smoke(window=100, warmup=200, steps=800, **{"critics.sync_every": 300})
    learner_states = []
    program = compile_program(make_learner(config), (0,))
    state = program.init(jax.random.key(0), jnp.arange(1))
    state, _ = program.warm_up(state, jnp.int32(0))
    for clock in range(200, 800, 100):
        state, _ = program.window(state, jnp.int32(clock))
        learner_states.append(jax.tree.map(lambda x: np.array(_data(x)), state.critics))
    counts = [int(s.optimiser.count[0, 0]) for s in learner_states]
    assert counts == [25, 50, 75, 100, 125, 150]
    targets = [s.target.head.weight for s in learner_states]
    # Syncs at 300 and 600: the second and the fifth window start with one.
    changed = [not np.array_equal(a, b) for a, b in itertools.pairwise(targets)]
    assert changed == [True, False, False, True, False]
    np.testing.assert_array_equal(targets[1], learner_states[0].online.head.weight)


def test_one_head_acts_for_an_episode():
    """Heads that want actions 1 and 2, whose mean wants 3."""
    config = smoke(**{"critics.acting": "episode"})
    learner = make_learner(config)
    state = learner.init(jax.random.key(0), jnp.int32(0))
    wants = jnp.array([[0.0, 5.0, 0.0, 4.0, 0.0], [0.0, 0.0, 5.0, 4.0, 0.0]])
    online = jax.tree.map(jnp.zeros_like, state.critics.online)
    online = replace(online, head=replace(online.head, bias=wants))
    state = replace(state, critics=replace(state.critics, online=online))
    greedy = jax.jit(lambda *args: learner._greedy(*args))
    acted = np.array([int(greedy(state, jnp.int32(clock))) for clock in range(0, 2_000, 25)])
    acted = acted.reshape(-1, 4)
    assert (acted == acted[:, :1]).all() and set(acted[:, 0]) == {1, 2}
    mean = replace(learner, config=smoke())
    assert int(mean._greedy(state, jnp.int32(0))) == 3


def test_a_snapshot_drawn_at_random_is_of_whole_episodes():
    """Rows of a ring that was written by hand: each remembers its number as its key."""
    config = smoke(snapshot="random", recent=300)
    learner = make_learner(config)
    state = learner.init(jax.random.key(0), jnp.int32(0))
    rows = replace(state.ring.rows, key=jnp.arange(1_000))
    state = replace(state, ring=replace(state.ring, rows=rows))
    recent, _ = jax.jit(lambda *args: learner._recent(*args))(state, jnp.int32(900))
    at = np.asarray(recent.rows.key).reshape(3, 100)
    assert recent.is_valid.all() and (np.diff(at[:, 0]) > 0).all() and at.max() < 900
    np.testing.assert_array_equal(at, at[:, :1] + np.arange(100))
    np.testing.assert_array_equal(recent.is_last, np.arange(300) % 100 == 99)
    assert at[:, 0].tolist() != [600, 700, 800]
    with pytest.raises(InputError, match=r"recent \(250\) must be a multiple of world.horizon"):
        smoke(snapshot="random", recent=250)


def test_epsilon_is_linear_then_flat():
    config = smoke(steps=10_500)
    learner = Learner(config, *build(config))
    clock = jnp.array([0, 1312, 2625, 10_000])
    np.testing.assert_allclose(learner.epsilon(clock), [1.0, 0.52519, 0.05, 0.05], atol=1e-4)


@pytest.mark.slow
def test_random_through_the_pipeline_scores_what_the_world_says():
    settings = {"steps": "10_000", "world.size": "10", "replay": "2_000", "recent": "50"}
    settings |= {"critics.batch": "1", "critics.heads": "1"}  # they learn, and decide nothing
    settings |= {f"net.{name}": "1" for name in ("first_channels", "second_channels", "embedding")}
    result = train("random", "butterflies", seeds=20, preset="smoke", settings=settings)
    scores = result.episodes["score"].astype(float)
    exact = expected_score(make_world("butterflies"), "random")
    assert scores.size == 20 * 100
    assert abs(scores.mean() - exact) < 4 * scores.std(ddof=1) / np.sqrt(scores.size)
    assert scores.std(ddof=1) == pytest.approx(1.22, abs=0.08)


@pytest.mark.slow
def test_windows_need_not_hold_whole_episodes():
    config = smoke(window=60, warmup=120, steps=420, **{"critics.sync_every": 60})
    assert config.segment == 20
    result = run(config, (0, 1))
    rows = sorted(
        zip(*(result.episodes[name].tolist() for name in ("seed", "episode", "step")), strict=True)
    )
    assert rows == [(seed, i, 100 * (i + 1)) for seed in (0, 1) for i in range(4)]


def test_of_the_largest_targets_the_mean_is_kept_and_the_maximum():
    """Two minibatches whose largest targets are 1 and 3."""
    said = _reduce({name: jnp.array([1.0, 3.0]) for name in ("y_abs_top", "y_abs_max")})
    assert said == {"y_abs_top": 2.0, "y_abs_max": 3.0}


def test_measures_by_hand():
    scores = np.array([0, 1, 2, 3, 4, 0, 5, 5], float)
    table = {
        "seed": np.array([0, 0, 0, 0, 1, 1, 1, 1]),
        "episode": np.array([3, 2, 1, 0, 0, 1, 2, 3]),
        "score": scores,
    }
    result = score_measures(scores_by_seed(table, (0, 1)), length=2)
    assert result["average"].tolist() == [1.5, 3.5]
    assert result["peak"].tolist() == [2.5, 5.0]
    assert result["last"].tolist() == [0.5, 5.0]
