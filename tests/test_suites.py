"""Worlds of other suites: the suite's own episodes, the engine's rows of them, every command."""

import json
from dataclasses import asdict
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import primax
from primax.agent import critics, ring
from primax.agent.learner import make_learner
from primax.agent.training import compile_program, windows
from primax.cli import main
from primax.config.schema import KeysConfig
from primax.errors import InputError, RunError
from primax.presets import configure
from primax.runs.measures import measure
from primax.runs.read import open_run
from primax.worlds import WORLDS, make_world, on_grid, world_name
from primax.worlds.suites import base, own, xminigrid

gymnax = pytest.importorskip("gymnax", reason="pip install 'primax-rl[suites]'")
pgx = pytest.importorskip("pgx")
xland = pytest.importorskip("xminigrid")

SEA = "gymnax:DeepSea-bsuite"
DOOR = "xminigrid:MiniGrid-DoorKey-5x5"
BREAKOUT = "pgx:minatar-breakout"
STEPS = 40


def ours(world, key, actions):
    """What a world shows, pays and says of ends, over episodes that follow each other."""

    def step(state, draw):
        k_step, action = draw
        k_reset = jax.random.split(k_step)[1]
        moved = world.step(state, action, base.SuiteNoise(k_step))
        fresh = world.reset(k_reset)
        ended = world.terminated(moved) | world.truncated(moved)
        after = jax.tree.map(lambda a, b: jnp.where(ended, a, b), fresh, moved)
        told = world.observe(moved), world.task(moved), world.terminated(moved), ended
        return after, told

    first = world.reset(key)
    keys = jax.random.split(key, len(actions))
    return world.observe(first), jax.lax.scan(step, first, (keys, actions))[1]


def theirs_gymnax(id_, see, key, actions, sizes, **params):
    """gymnax's own loop, which resets by itself."""
    env, defaults = gymnax.make(id_, **sizes)
    params = defaults.replace(**params)

    def step(state, draw):
        _, state, reward, terminated, truncated, info = env.step(*draw[:1], state, draw[1], params)
        return state, (see(info["final_observation"]), reward, terminated, terminated | truncated)

    obs, first = env.reset(key, params)
    keys = jax.random.split(key, len(actions))
    return see(obs), scanned(step, first, keys, actions)


def scanned(step, state, keys, actions):
    """Steps one by one, as a suite's user would take them."""
    told = []
    for key, action in zip(keys, actions, strict=True):
        state, said = step(state, (key, action))
        told.append(said)
    return tuple(np.stack(column) for column in zip(*told, strict=True))


def last_axis_first(obs):
    return np.moveaxis(np.asarray(obs), -1, 0)


CASES = {
    "sea": (SEA, lambda obs: np.asarray(obs)[None], {"size": 4}, {"deterministic": False}),
    "breakout": ("gymnax:Breakout-MinAtar", last_axis_first, {}, {}),
    "cartpole": ("gymnax:CartPole-v1", np.asarray, {}, {}),
}


@pytest.mark.parametrize("case", CASES)
def test_episodes_of_gymnax_are_its_own_step_by_step(case):
    """Observations, rewards and ends, through several episodes; vmapped as in a loop of its own."""
    name, see, sizes, params = CASES[case]
    world = make_world(name, **sizes, **params)
    keys = jax.random.split(jax.random.key(3), 2)
    actions = jax.random.randint(jax.random.key(4), (2, STEPS), 0, world.num_actions)
    first, told = jax.jit(jax.vmap(partial(ours, world)))(keys, actions)
    for i, key in enumerate(keys):
        seen, expected = theirs_gymnax(name[7:], see, key, actions[i], sizes, **params)
        np.testing.assert_array_equal(first[i], seen)
        for mine, other in zip(told, expected, strict=True):
            np.testing.assert_allclose(mine[i], other, atol=1e-6)
    assert np.asarray(told[3]).any(), "no episode ended: nothing was compared of ends"


def test_episodes_of_pgx_are_its_own_step_by_step():
    world, key = make_world(BREAKOUT, horizon=12), jax.random.key(5)
    actions = jax.random.randint(jax.random.key(6), (STEPS,), 0, world.num_actions)
    first, told = jax.jit(partial(ours, world))(key, actions)
    env = pgx.make("minatar-breakout")
    state, count, expected = env.init(key), 0, []
    np.testing.assert_array_equal(first, last_axis_first(state.observation))
    for k_step, action in zip(jax.random.split(key, STEPS), actions, strict=True):
        state, count = env.step(state, action, k_step), count + 1
        is_over = bool(state.terminated) or count == 12
        seen = last_axis_first(state.observation)
        expected.append((seen, float(state.rewards[0]), bool(state.terminated), is_over))
        if is_over:
            state, count = env.init(jax.random.split(k_step)[1]), 0
    for mine, other in zip(told, zip(*expected, strict=True), strict=True):
        np.testing.assert_array_equal(mine, np.stack(other))
    assert np.asarray(told[3]).sum() > np.asarray(told[2]).sum() > 0, (
        "both kinds of ends are needed"
    )


def test_episodes_of_xminigrid_are_its_own_step_by_step():
    """A plane is one where the view has that tile or that colour."""
    world, key = make_world(DOOR, horizon=15, carries=False), jax.random.key(7)
    actions = jax.random.randint(jax.random.key(8), (STEPS,), 0, world.num_actions)
    first, told = jax.jit(partial(ours, world))(key, actions)
    env, params = xland.make("MiniGrid-DoorKey-5x5", max_steps=15)
    now, expected = env.reset(params, key), []

    def planes(view):
        view = np.asarray(view)
        tiles = [view[..., 0] == tile for tile in range(13)]
        return np.stack(tiles + [view[..., 1] == colour for colour in range(12)])

    np.testing.assert_array_equal(first, planes(now.observation))
    step = jax.jit(partial(env.step, params))
    for k_step, action in zip(jax.random.split(key, STEPS), actions, strict=True):
        now = step(now, action)
        ended = bool(now.last())
        terminated = ended and float(now.discount) == 0
        expected.append((planes(now.observation), float(now.reward), terminated, ended))
        if ended:
            now = env.reset(params, jax.random.split(k_step)[1])
    for mine, other in zip(told, zip(*expected, strict=True), strict=True):
        np.testing.assert_array_equal(mine, np.stack(other))
    assert np.asarray(told[3]).sum() == 2, "the horizon cuts twice"


def test_what_the_agent_carries_lies_on_its_own_cell():
    """As in MiniGrid, and nothing else moves; with empty hands the view is the suite's."""
    env, params = xland.make("MiniGrid-DoorKey-5x5")
    now = env.reset(params, jax.random.key(0))
    plain = xminigrid.planes(now, carries=False)
    np.testing.assert_array_equal(xminigrid.planes(now, carries=True), plain)
    agent = now.state.agent.replace(pocket=jnp.array([7, 5], jnp.uint8))  # a yellow key
    held = now.replace(state=now.state.replace(agent=agent))
    np.testing.assert_array_equal(xminigrid.planes(held, carries=False), plain)
    shown, rows, cols = xminigrid.planes(held, carries=True), *plain.shape[1:]
    assert shown[7, rows - 1, cols // 2] == 1 and shown[13 + 5, rows - 1, cols // 2] == 1
    changed = np.any(np.asarray(shown) != np.asarray(plain), axis=0)
    assert changed.sum() == 1 and changed[rows - 1, cols // 2]


def test_a_sea_is_as_long_as_it_is_deep_and_ends_rather_than_being_cut():
    world = make_world(SEA, size=5)
    assert world.horizon == 5 and world.config.horizon is None
    assert make_world(SEA, size=5, horizon=3).horizon == 3
    state = world.reset(jax.random.key(0))
    for _ in range(5):
        assert not world.terminated(state)
        state = world.step(state, jnp.int32(0), base.SuiteNoise(jax.random.key(1)))
    assert world.terminated(state) and not world.truncated(state)


class Line:
    """A row of cells; the last one pays and ends it."""

    num_actions, horizon = 2, 6

    def __init__(self, length: int = 3):
        self.length = length

    def reset(self, key):
        return self._seen(0), 0

    def step(self, key, state, action):
        state = jnp.clip(state + 2 * action - 1, 0, self.length - 1)
        is_end = state == self.length - 1
        return self._seen(state), state, is_end * 1.0, is_end, False

    def _seen(self, state):
        return (jnp.arange(self.length) == state)[None, None, :]


class Clock:
    """Shows one number and pays one for every step: ends after one (`ends`), or is cut after three."""

    num_actions, horizon = 1, 3

    def __init__(self, ends: bool):
        self.ends = ends

    def reset(self, key):
        return jnp.full(2, 5.0), ()

    def step(self, key, state, action):
        return jnp.full(2, 5.0), (), 1.0, self.ends, False


SMALL = {
    "steps": 3_000,
    "window": 500,
    "warmup": 100,
    "replay": 1_000,
    "recent": 100,
    "critics.batch": 32,
    "critics.learning_rate": 3e-3,
    "critics.sync_every": 20,
    "critics.gamma": 0.5,
    "net.embedding": 16,
}


@pytest.mark.parametrize("ends, value", [(True, 1.0), (False, 2.0)])
def test_an_end_is_worth_its_reward_and_a_cut_is_bootstrapped_through(ends, value):
    """Q = 1 where the world ends; Q = 1 + Q/2 = 2 where only time is up."""
    world = Clock(ends)
    result = primax.train("task", world, seeds=1, settings=SMALL)
    learner = make_learner(result.config, "task", world)
    online = jax.tree.map(lambda x: x[0], result.state.critics.online)
    seen = learner.reward.spec.see(jnp.zeros((1, 2)))  # the numbers never vary: scaled, they are 0
    np.testing.assert_allclose(critics.values(online, seen), value, atol=0.03)


def line_rows(method="count"):
    """The last state of a short run on a line, and its rows, the oldest first."""
    config = configure(method, Line(), settings=SMALL | {"steps": 600})
    learner = make_learner(config, method, Line())
    for state, progress in windows(compile_program(learner, (0,))):
        last, clock = jax.tree.map(lambda x: x[0], state), progress.clock
    age = jnp.arange(clock, 0, -1)
    return learner, last, ring.read(last.ring, jnp.int32(clock), age, learner.world.obs_shape)


def test_the_ring_holds_the_worlds_transitions_and_an_idle_row_after_each_end():
    """Every row is a step of the line, by plain arithmetic; the row after an end only resets."""
    _, _, rows = line_rows()
    before, after = (np.asarray(x).reshape(-1, 3).argmax(axis=1) for x in (rows.obs, rows.next_obs))
    action, task = np.asarray(rows.action), np.asarray(rows.task)
    ended, cut, lived = (
        np.asarray(x, bool) for x in (rows.terminated, rows.truncated, rows.weight)
    )
    expected = np.clip(before + 2 * action - 1, 0, 2)
    np.testing.assert_array_equal(after[lived], expected[lived])
    np.testing.assert_array_equal(task, lived & (after == 2))
    np.testing.assert_array_equal(ended, lived & (after == 2))
    np.testing.assert_array_equal(~lived[1:], (ended | cut)[:-1])
    assert (after[~lived] == 0).all() and cut.any() and ended.any()
    begins = np.flatnonzero(~lived) + 1
    lengths = np.diff([0, *begins]) - 1
    assert lengths.max() == 6, "a line is cut after six steps"
    np.testing.assert_array_equal((lengths == 6) & ~ended[begins - 2], cut[begins - 2])


def test_a_round_in_one_piece_as_on_a_gpu_is_the_loop_of_its_steps(monkeypatch):
    """The same rows and integers, and the same numbers but for rounding."""
    _, looped, rows = line_rows()
    monkeypatch.setattr("primax.agent.learner.is_in_one_piece", lambda world: True)
    learner, state, again = line_rows()
    shapes = jax.eval_shape(learner.init, jax.random.key(0), jnp.int32(0))
    assert "unroll=4" in str(jax.make_jaxpr(learner.window)(shapes, jnp.int32(0)))
    for mine, other in zip(*map(jax.tree.leaves, ((state, again), (looped, rows))), strict=True):
        if jnp.issubdtype(mine.dtype, jnp.floating):
            np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-6)
        elif not jnp.issubdtype(mine.dtype, jax.dtypes.prng_key):
            np.testing.assert_array_equal(mine, other)


def test_keys_are_those_of_observations_and_the_warm_up_is_counted_again():
    """Counts by a dictionary over all that was lived; the three cells have three keys."""
    learner, state, rows = line_rows()
    keys, projection = learner.keys, state.hashed.projection
    of_cell = np.asarray(keys.of(projection, jnp.eye(3, dtype=jnp.uint8).reshape(3, 1, 1, 3)))
    assert len(set(of_cell.tolist())) == 3
    lived = np.asarray(rows.weight) > 0
    cells = np.asarray(rows.obs).reshape(-1, 3).argmax(axis=1)
    key = of_cell[cells] * 2 + np.asarray(rows.action)
    np.testing.assert_array_equal(np.asarray(rows.key)[lived], key[lived])
    counts = np.zeros(keys.num * 2, int)
    np.add.at(counts, key[lived], 1)
    np.testing.assert_array_equal(np.asarray(state.reward), counts)
    np.testing.assert_array_equal(np.flatnonzero(state.hashed.met), np.sort(of_cell))


def test_vectors_are_brought_to_scale_by_what_the_warm_up_has_lived():
    """Mean and deviation in plain numpy over the lived rows of the warm-up; idle ones are left out."""
    config = configure("rnd", "gymnax:CartPole-v1", settings=SMALL | {"steps": 600})
    learner = make_learner(config)
    parts = windows(compile_program(learner, (0,)))
    state, progress = next(parts)
    first = jax.tree.map(lambda x: x[0], state)
    age = jnp.arange(progress.clock, 0, -1)
    rows = ring.read(first.ring, jnp.int32(progress.clock), age, (4,), "vector")
    lived = np.asarray(rows.obs)[np.asarray(rows.weight) > 0]
    assert len(lived) < progress.clock, "an episode must have ended for this to tell"
    np.testing.assert_allclose(first.moments.mean, lived.mean(axis=0), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(first.moments.variance, lived.var(axis=0), rtol=1e-4)
    read = learner.read(first, jnp.int32(progress.clock), age).obs
    scaled = (np.asarray(rows.obs) - lived.mean(axis=0)) / lived.std(axis=0)
    np.testing.assert_allclose(read, np.clip(scaled, -10, 10), rtol=1e-3, atol=1e-4)
    later, _ = next(parts)
    np.testing.assert_array_equal(later.moments.mean[0], first.moments.mean)  # from then on fixed


@pytest.mark.parametrize("name", [SEA, "gymnax:CartPole-v1"])
def test_every_method_fits_or_says_in_one_line_why_not(name):
    """Traced, not compiled. SMIRL and S-Adapt need planes; a Dirichlet of 65,536 states has no room."""
    refused = {}
    for method in primax.METHODS:
        try:
            learner = make_learner(configure(method, name, "smoke"))
            state = jax.eval_shape(learner.init, jax.random.key(0), jnp.int32(0))
            jax.eval_shape(learner.window, state, jnp.int32(1_000))
        except InputError as error:
            refused[method] = str(error)
    expected = {"smirl", "s_adapt"} if "CartPole" in name else set()
    assert set(refused) == {"dirichlet", *expected}, refused
    assert all("\n" not in line for line in refused.values())


def test_flat_planes_are_a_row_of_numbers_through_hidden_layers():
    learner = make_learner(configure("task", SEA, "smoke", {"net.planes": "flat"}))
    online = jax.eval_shape(learner.init, jax.random.key(0), jnp.int32(0)).critics.online
    assert [layer.weight.shape[-2:] for layer in online.trunk.hidden] == [(64, 64), (64, 64)]
    seen = learner.reward.spec.see(jnp.arange(64, dtype=jnp.uint8).reshape(1, 1, 8, 8) % 2)
    np.testing.assert_array_equal(seen[0], np.arange(64) % 2)


def test_names_and_options_that_are_wrong_are_refused_in_one_line(monkeypatch):
    wrong = {
        "gymnax:deepse": "did you mean gymnax:DeepSea-bsuite?",
        "xminigrid:DoorKey": "choose from xminigrid:MiniGrid-DoorKey-5x5",
        "gym:CartPole": "did you mean gymnax?",
        "pgx:chess": "is for 2 players",
        "gymnax:Pendulum-v1": "discrete ones are needed",
    }
    for name, says in wrong.items():
        with pytest.raises(InputError) as error:
            make_world(name)
        assert says in str(error.value) and "\n" not in str(error.value)
    with pytest.raises(InputError, match="no option 'sise'; did you mean size"):
        make_world(SEA, sise=3)
    with pytest.raises(InputError, match="size takes a whole number"):
        configure("task", SEA, settings={"world.size": "deep"})
    for name, wrong in {
        SEA: {"size": 0},
        DOOR: {"view_size": 0},
        "gymnax:CartPole-v1": {"horizon": 0},
    }.items():
        with pytest.raises(InputError) as error:
            make_world(name, **wrong)
        assert "\n" not in str(error.value)
    with pytest.raises(InputError, match="needs a world on a grid"):
        on_grid(make_world(SEA), "this")

    def missing(name):
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(base.importlib, "import_module", missing)
    with pytest.raises(InputError, match=r"pip install 'primax-rl\[suites\]'"):
        base.library("gymnax", "suites")


def test_what_is_told_of_a_minibatch_leaves_idle_rows_out():
    """By hand: of 1, 100 and 3 the second is idle, so the mean is 2 and the largest 3."""
    x, weight = jnp.array([1.0, 100.0, 3.0]), jnp.array([1.0, 0.0, 1.0])
    assert critics.mean_of(x, weight) == 2.0 and critics.max_of(x, weight) == 3.0
    heads = jnp.stack([x, x + 2])
    assert critics.mean_of(heads, weight, 1) == 3.0 and critics.max_of(heads, weight, 1) == 5.0
    assert critics.mean_of(x, jnp.zeros(3)) == 0.0
    _, _, rows = line_rows("task")
    lived = np.asarray(rows.weight) > 0
    assert lived.mean() < 0.95  # so that a mean over all would tell


class Short:
    """Is cut after four steps by its own word, long before its horizon."""

    num_actions = np.int64(2)

    def reset(self, key):
        return jnp.zeros(2), 0

    def step(self, key, state, action):
        return jnp.zeros(2), state + 1, 1, False, state == 3


def test_trained_agents_stop_at_a_cut_that_comes_before_the_horizon(tmp_path, monkeypatch):
    """Each episode is four steps long, in training and in play, also of a reward with a memo."""
    monkeypatch.setitem(WORLDS, "short", own.world_of(Short(), "own:short"))
    for method in ("none", "moss"):
        primax.train(method, "short", 1, "smoke", {"steps": 1_000}, out=tmp_path / method)
        done = primax.evaluate(tmp_path / method, episodes=20)
        assert (done.length == 4).all() and (done.score == 4).all()


class NoStep:
    num_actions = 2

    def reset(self, key):
        return jnp.zeros(3), ()


class Still(NoStep):
    """Nothing ever happens."""

    horizon = 100_000

    def step(self, key, state, action):
        return jnp.zeros(3), (), 0.0, False, False


class Grows(NoStep):
    def step(self, key, state, action):
        return jnp.zeros(3), (1,), 0.0, False, False


class Pair(NoStep):
    def step(self, key, state, action):
        return jnp.zeros(3), (), jnp.zeros(2), False, False


class Backwards(Still):
    horizon = -1


class Branches(NoStep):
    def step(self, key, state, action):
        return jnp.zeros(3), (), 1.0 if action else 0.0, False, False


class Shrinks(NoStep):
    def step(self, key, state, action):
        return jnp.zeros(2), (), 0.0, False, False


class Many(Still):
    num_actions = 300


class Four(NoStep):
    def step(self, key, state, action):
        return jnp.zeros(3), (), 0.0, False


@pytest.mark.parametrize(
    "given, says",
    [
        (NoStep(), "world takes a name, a primax.World or an object"),
        (Grows(), "other shapes than a reset"),
        (Four(), "step must give five values"),
        (Pair(), "gives reward of shape"),
        (Backwards(), "horizon of a world takes a whole number from 1"),
        (Line, "not a class: Line"),
        (pgx.make("tic_tac_toe"), "is for 2 players"),
        (Branches(), "must be jax functions"),
        (Shrinks(), r"a step shows \(2,\), a reset \(3,\)"),
        (Many(), "actions of own:Many must be between 1 and 256"),
        (object(), "world takes a name"),
    ],
)
def test_objects_that_are_no_worlds_are_refused_in_one_line(given, says):
    with pytest.raises(InputError, match=says) as error:
        configure("task", given)
        make_learner(configure("task", given), "task", given)
    assert "\n" not in str(error.value)


def test_objects_of_suites_are_worlds_too():
    env, params = gymnax.make("Catch-bsuite")
    assert own.of_object(env).obs_shape == own.of_object((env, params)).obs_shape == (1, 10, 5)
    assert own.of_object(pgx.make("minatar-freeway")).horizon == 2_500
    assert own.of_object(xland.make("MiniGrid-Empty-5x5")).kind == "planes"
    with pytest.raises(InputError, match="needs its parameters"):
        own.of_object(xland.make("MiniGrid-Empty-5x5")[0])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """PRIME in a small sea, kept."""
    folder = tmp_path_factory.mktemp("suites") / "sea"
    args = ["train", "prime", SEA, "--preset", "smoke", "--seeds", "2", "--out", str(folder)]
    assert main([*args, "--set", "world.size=4", "keys.size=512", "net.planes=flat"]) == 0
    return folder


def test_a_run_is_the_same_twice_and_seeds_differ(run, tmp_path):
    """Bit by bit, from Python as from the command line."""
    settings = {"world.size": 4, "keys.size": 512, "net.planes": "flat"}
    again = primax.train("prime", SEA, 2, "smoke", settings, out=tmp_path / "again")
    for name in ("config.json", "episodes.csv", "windows.csv"):
        assert (tmp_path / "again" / name).read_bytes() == (run / name).read_bytes()
    assert not (run / "maps.npz").exists() and not (run / "replays.jsonl").exists()
    for path, leaf in jax.tree_util.tree_leaves_with_path(again.state.critics.online):
        assert not np.array_equal(leaf[0], leaf[1]), jax.tree_util.keystr(path)


@pytest.mark.slow
def test_a_run_that_is_stopped_and_made_longer_has_the_bytes_of_one_in_one_go(
    run, tmp_path, compiled_once
):
    """Stopped after its second window, taken up; then twice as long."""
    settings = {"world.size": 4, "keys.size": 512, "net.planes": "flat"}

    def stop(progress):
        if progress.clock == 1_000:
            raise KeyboardInterrupt

    with pytest.raises(RunError, match="goes on with it"):
        primax.train("prime", SEA, 2, "smoke", settings, stop, tmp_path / "half")
    assert main(["resume", str(tmp_path / "half")]) == 0
    for name in ("episodes.csv", "windows.csv"):
        assert (tmp_path / "half" / name).read_bytes() == (run / name).read_bytes()
    assert main(["resume", str(tmp_path / "half"), "--steps", "4000"]) == 0
    long = {**settings, "steps": 4_000, "schedule_steps": 2_000}
    primax.train("prime", SEA, 2, "smoke", long, out=tmp_path / "long")
    for name in ("episodes.csv", "windows.csv"):
        assert (tmp_path / "half" / name).read_bytes() == (tmp_path / "long" / name).read_bytes()


def test_every_command_reads_such_a_run(run, tmp_path, capsys):
    """What a world cannot give is left out, and said."""
    commands = {
        ("stats", str(run)): "prime",
        ("verify", "--run", str(run)): "nothing fails",
        ("explain", str(run)): "state",
        ("evaluate", str(run), "--episodes", "20"): "length",
        ("plot", str(run), "--out", str(tmp_path / "a.png")): "1 run",
        ("report", str(run), "--out", str(tmp_path / "a.html")): "no grid to draw",
        ("export", str(run), "--out", str(tmp_path / "a.npz")): "MB",
        ("evaluate", str(tmp_path / "a.npz"), "--episodes", "20"): "length",
        ("explain", str(tmp_path / "a.npz")): "state",
        ("pack", str(run), "--out", str(tmp_path / "packed")): "written",
        ("stats", str(tmp_path / "packed" / "sea")): "prime",
        ("watch", str(run), "--gif", str(tmp_path / "a.gif")): "5 frames",
        ("worlds", SEA, "--episodes", "20"): "random",
        ("list", SEA): "unscaled_move_cost",
    }
    for command, says in commands.items():
        assert main(list(command)) == 0, command
        assert says in capsys.readouterr().out, command
    refused = {
        ("explain", str(run), "--png", str(tmp_path / "a.png")): "draws maps over a grid",
        ("explain", str(run), "--at", "1,2"): "a cell of a grid",
        ("watch", str(run), "--recorded"): "end when they like",
        ("export", str(run), "--which", "best", "--out", str(tmp_path / "b.npz")): "needs a grid",
        ("watch", "gymnax:CartPole-v1"): "only planes can be drawn",
    }
    for command, says in refused.items():
        assert main(list(command)) == 2, command
        assert says in " ".join(capsys.readouterr().err.split()), command


def test_evaluation_plays_the_suites_episodes(run):
    """Greedy in a sea without chance, every episode of a seed is the same and four steps long."""
    done = primax.evaluate(run, episodes=20)
    assert (done.length == 4).all() and (np.ptp(done.score, axis=1) == 0).all()
    assert set(done.table) == {"seed", "episode", "score", "reach", "length"}


def test_a_run_in_which_no_episode_ends_says_so(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(WORLDS, "still", own.world_of(Still(), "own:still"))
    args = ["train", "none", "still", "--preset", "smoke", "--seeds", "2"]
    assert main([*args, "--set", "steps=1000", "--out", str(tmp_path / "a")]) == 0
    assert "of 2 of 2 seeds no episode is over yet" in " ".join(capsys.readouterr().out.split())
    assert main(["report", str(tmp_path / "a"), "--out", str(tmp_path / "a.html")]) == 0
    assert "no episode is over yet" in capsys.readouterr().out
    assert main(["plot", str(tmp_path / "a"), "--out", str(tmp_path / "a.png")]) == 2
    assert "no episode is over yet" in capsys.readouterr().err
    assert measure(open_run(tmp_path / "a"), "peak:reward") is None


@pytest.mark.parametrize("name", ["maze", "", "a/b", "gymnax:mine", 5])
def test_a_name_that_is_taken_or_odd_is_refused(name):
    with pytest.raises(InputError, match="register_world"):
        primax.register_world(name, Line())
    with pytest.raises(InputError, match="world takes a name"):
        primax.register_world("nothing", object())
    assert "nothing" not in WORLDS


def test_an_object_has_a_name_when_it_is_registered(tmp_path, monkeypatch):
    settings = {**SMALL, "steps": 600}
    with pytest.raises(InputError, match="register_world"):
        primax.train("count", Line(), 1, settings=settings, out=tmp_path / "no")
    monkeypatch.setattr("primax.worlds.WORLDS", WORLDS)
    monkeypatch.delitem(WORLDS, "line", raising=False)
    try:
        primax.register_world("line", Line())
        primax.train("count", "line", 1, settings=settings, out=tmp_path / "line")
    finally:
        kind = WORLDS.pop("line")
    content = json.loads((tmp_path / "line" / "config.json").read_text())
    assert content["world"] == {"name": "line", "horizon": None}
    assert content["keys"] == asdict(KeysConfig()) and content["keys"]["kind"] == "simhash"
    monkeypatch.setitem(WORLDS, "line", kind)
    assert world_name(kind.options()()) == "line"
    assert primax.evaluate(tmp_path / "line", episodes=20).length.max() <= 6
