"""Noise beside a world: the world goes on as without it, and the noise comes when it must."""

import json
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from own import Corridor, CorridorConfig

import primax
from primax.adapters.gymnasium import WorldEnv
from primax.cli import main
from primax.cli.completion import complete
from primax.errors import InputError, RunError
from primax.methods import find_world
from primax.presets import configure
from primax.runs import records
from primax.runs.config_json import as_json, from_json
from primax.runs.disk import FINAL
from primax.runs.measures import measure
from primax.runs.read import open_run
from primax.sweep.plan import read_plan
from primax.worlds import WORLDS, GridWorld, make_world, tally, with_noise, world_kind, world_name
from primax.worlds.exact import expected_score
from primax.worlds.noisy import NUMBERS, NoisyNoise, numbers
from primax.worlds.rollout import outcomes
from primax.worlds.scripted import make_policy

N, S, E, W, STAY, ASK = range(6)
ODD = "S......\n.......\n.......\n.......\n.......\n......F"
GRIDS = {
    "butterflies": {"size": 6, "respawn": True, "start": "random"},
    "maze": {"size": 6, "layout": "one_wide", "horizon": 40},
}


class Line:
    """Five cells in a row; every step pays a tenth, the last cell ends the episode."""

    num_actions, horizon = 2, 6

    def __init__(self, kind: str = "planes"):
        self.kind = kind

    def reset(self, key):
        return self.seen(0), jnp.int32(0)

    def step(self, key, state, action):
        state = jnp.clip(state + 2 * action - 1, 0, 4)
        return self.seen(state), state, 0.1, state == 4, False

    def seen(self, state):
        cells = jnp.arange(5) == state
        if self.kind == "planes":
            return cells[None, None]
        return cells * 1.0 if self.kind == "vector" else (cells * jnp.uint8(200))[None, :, None]


def walked(world, key, actions):
    """All states of an episode of these actions, as those who play them draw them."""
    k_reset, k_noise = jax.random.split(key)
    first, noise = world.reset(k_reset), world.noise(k_noise, len(actions))

    def step(state, draw):
        after = world.step(state, *draw)
        return after, after

    _, states = jax.lax.scan(step, first, (actions, noise))
    return jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), first, states)


def each(of, states):
    return np.asarray(jax.vmap(of)(states))


def assert_same(one, other):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("when", ["always", "region", "switch"])
@pytest.mark.parametrize("name", GRIDS)
def test_a_grid_goes_on_as_without_noise(name, when):
    """State for state under the same key; who takes the switch stays."""
    bare, world = make_world(name, **GRIDS[name]), make_world(f"noisy:{name}", **GRIDS[name])
    world = make_world(f"noisy:{name}", noise_when=when, **GRIDS[name]).for_seed(1)
    key = jax.random.key(2)
    actions = jax.random.randint(key, (40,), 0, world.num_actions)
    assert (actions == ASK).any() == (when == "switch")
    own = walked(bare, key, jnp.where(actions == ASK, STAY, actions))
    states = walked(world, key, actions)
    assert_same(states.inner, own)
    assert isinstance(world, GridWorld) and world.num_keys == bare.num_keys
    np.testing.assert_array_equal(states.agent, own.agent)
    for of in ("state_key", "task", "truncated", "terminated"):
        np.testing.assert_array_equal(
            each(getattr(world, of), states), each(getattr(bare, of), own)
        )
    assert_same(jax.vmap(world.targets)(states), jax.vmap(bare.targets)(own))
    planes = each(world.observe, states)
    np.testing.assert_array_equal(planes[:, :-1], each(bare.observe, own))
    assert world.channels == (*bare.channels, "noise") and planes.shape[1:] == world.obs_shape
    assert planes.dtype == np.uint8 and set(np.unique(planes)) == {0, 1}
    assert int(world.count_key(jax.tree.map(lambda x: x[3], states), jnp.int32(2))) == (
        int(bare.state_key(jax.tree.map(lambda x: x[3], own))) * world.num_actions + 2
    )
    np.testing.assert_array_equal(planes[:, -1].any(axis=(1, 2)), np.asarray(states.is_on))


@pytest.mark.parametrize(
    "kind, words, shown",
    [
        ("planes", [0b1011, 2**31], [1, 1, 0, 1] + [0] * 59 + [1]),
        ("image", [0x04030201, 0xFF000000], [1, 2, 3, 4, 0, 0, 0, 255]),
        ("vector", [0, 2**31, 2**32 - 1], [0, 0.5, 1 - 2.0**-24]),
    ],
)
def test_words_are_coins_bytes_and_numbers(kind, words, shown):
    made = numbers(jnp.array(words, jnp.uint32), (len(shown),), kind)
    np.testing.assert_array_equal(made, np.array(shown))
    few = numbers(jnp.array(words, jnp.uint32), (3,), kind)
    np.testing.assert_array_equal(few, np.array(shown[:3]))
    assert made.dtype == (jnp.float32 if kind == "vector" else jnp.uint8)


def test_coins_are_fair_and_fresh():
    """Each cell's, over 40 episodes of 100 steps; from a key that the world draws from as well."""
    world = make_world("noisy:butterflies", size=6)
    keys = jax.random.split(jax.random.key(0), 40)
    actions = jnp.full(100, STAY)
    states = jax.jit(jax.vmap(lambda key: walked(world, key, actions)))(keys)
    shown = np.asarray(states.shown)[:, :, 0].astype(float)
    np.testing.assert_allclose(shown.mean(axis=(0, 1)), 0.5, atol=0.04)
    np.testing.assert_allclose((shown[:, 1:] * shown[:, :-1]).mean(axis=(0, 1)), 0.25, atol=0.04)
    pairs = shown.reshape(-1, 36).T @ shown.reshape(-1, 36) / 4040
    assert np.abs(pairs[~np.eye(36, dtype=bool)] - 0.25).max() < 0.04
    assert len({frame.tobytes() for frame in shown.reshape(-1, 36)}) == 4040


def test_noise_is_of_its_own_part_of_the_key():
    """Not of the words that butterflies move by."""
    world = make_world("noisy:butterflies", size=6, respawn=True)
    drawn = world.noise(jax.random.key(4), 500)
    own = np.concatenate([drawn.inner.moves.ravel(), drawn.inner.spawns.ravel()]).tolist()
    assert not set(own) & set(np.asarray(drawn.words).ravel().tolist())
    again = world.noise(jax.random.key(4), 500)
    assert_same(drawn, again)
    assert (world.noise(jax.random.key(5), 500).words != drawn.words).any()


def one(world, *words):
    """The noise of a step of Maze, by its words."""
    nothing = jax.tree.map(lambda x: x[0], world.inner.noise(jax.random.key(0), 1))
    return NoisyNoise(nothing, jnp.array(words, jnp.uint32))


def stepped(world, actions):
    """States of Maze in which every coin would show."""
    state = world.reset(jax.random.key(0))
    states = [state]
    ones = [2**32 - 1] * (-(-world.walls.size // 32))
    for action in actions:
        states.append(state := world.step(state, jnp.int32(action), one(world, *ones)))
    return states


@pytest.mark.parametrize(
    "side, on",
    [("left", [1, 1, 1, 0, 0, 0, 1]), ("right", [0, 0, 0, 1, 1, 1, 0])],
)
def test_a_region_by_hand(side, on):
    """Seven columns: 0, 1 and 2 are left, the middle one is right's."""
    world = make_world("noisy:maze", layout=ODD, noise_when="region", noise_region=side)
    states = stepped(world, [E, E, E, E, W, W])
    assert [int(state.agent) % 7 for state in states] == [0, 1, 2, 3, 4, 3, 2]
    assert [int(state.is_on) for state in states] == on
    shown = [int(world.observe(state)[-1].sum()) for state in states]
    assert shown[1:] == [42 * is_on for is_on in on[1:]] and (shown[0] > 0) == on[0]


def test_regions_alternate_by_seed():
    world = make_world("noisy:maze", noise_when="region")
    sides = jax.vmap(lambda seed: world.for_seed(seed).right)(jnp.arange(4))
    assert sides.tolist() == [False, True, False, True]
    for seed, side in enumerate(["left", "right"]):
        fixed = make_world("noisy:maze", noise_when="region", noise_region=side)
        assert bool(fixed.for_seed(1 - seed).right) == bool(world.for_seed(seed).right) == seed
    assert not bool(world.for_seed(1).is_in_region(jnp.int32(4)))
    assert bool(world.for_seed(1).is_in_region(jnp.int32(5)))


def test_a_switch_by_hand_on_a_grid():
    """Silent at first and without it; the agent stays, time goes on, and the task is the world's."""
    world = make_world("noisy:maze", size=6, noise_when="switch", horizon=6)
    assert world.actions == ("N", "S", "E", "W", "Stay", "noise")
    states = stepped(world, [S, ASK, ASK, S, STAY, ASK])
    assert [int(state.agent) for state in states] == [0, 6, 6, 6, 12, 12, 12]
    assert [int(world.observe(state)[-1].sum()) for state in states] == [0, 0, 36, 36, 0, 0, 36]
    assert [bool(world.truncated(state)) for state in states] == [False] * 6 + [True]
    state = stepped(world, [ASK])[1]
    mixed = world.step(state, jnp.int32(ASK), one(world, 0b101, 0))
    assert np.flatnonzero(world.observe(mixed)[-1]).tolist() == [0, 2]
    np.testing.assert_array_equal(world.moves[:, ASK], np.arange(36))


def test_a_switch_pays_what_comes_meanwhile_on_a_grid():
    """A butterfly that flies to the agent while it looks at noise is caught."""
    world = make_world("noisy:butterflies", size=6, butterflies=20, noise_when="switch")
    states = walked(world, jax.random.key(0), jnp.full(100, ASK))
    caught = each(world.task, states).sum()
    assert caught == 20 - int(states.inner.alive[-1].sum()) > 0


def test_a_switch_by_hand_without_a_grid():
    """The line stands still and pays nothing; steps count until the sixth cuts it, or the end comes."""
    world = with_noise(Line(), noise_when="switch")
    assert world.actions == ("0", "1", "noise") and world.horizon == 6 and world.num_keys is None
    right, ask = 1, 2
    states = walked(world, jax.random.key(0), jnp.array([right, ask, right, ask, ask, right]))
    seen = each(world.observe, states)
    assert seen.shape == (7, 2, 1, 5)
    assert seen[:, 0, 0].argmax(axis=1).tolist() == [0, 1, 1, 2, 2, 2, 3]
    assert np.asarray(states.is_on).tolist() == [False, False, True, False, True, True, False]
    assert seen[[0, 1, 3, 6], 1].sum() == 0 and seen[[2, 4, 5], 1].sum() > 0
    np.testing.assert_allclose(each(world.task, states), [0, 0.1, 0, 0.1, 0, 0, 0.1], rtol=1e-6)
    assert each(world.truncated, states).tolist() == [False] * 6 + [True]
    assert not each(world.terminated, states).any()
    states = walked(world, jax.random.key(0), jnp.array([right, ask, ask, right, right, right]))
    assert each(world.terminated, states).tolist() == [False] * 6 + [True]
    assert not each(world.truncated, states).any(), "an end is no cut"


@pytest.mark.parametrize("name", ["gymnax:CartPole-v1", "pgx:minatar-breakout"])
@pytest.mark.parametrize("when", ["always", "switch"])
def test_a_suites_world_goes_on_as_without_noise(name, when):
    """The bare world takes only those steps that are its own, with their own keys."""
    pytest.importorskip(name.partition(":")[0])
    bare, world = make_world(name), make_world(f"noisy:{name}", noise_when=when)
    assert not world.has_keys and world.can_end and world.score == bare.score
    key = jax.random.key(1)
    actions = jax.random.randint(key, (12,), 0, world.num_actions)
    states = jax.jit(partial(walked, world))(key, actions)
    k_reset, k_noise = jax.random.split(key)
    state, noise = bare.reset(k_reset), bare.noise(k_noise, 12)
    step = jax.jit(bare.step)
    for i, action in enumerate(actions):
        is_own = int(action) < bare.num_actions
        if is_own:
            state = step(state, action, jax.tree.map(lambda x: x[i], noise))  # noqa: B023
        mine = jax.tree.map(lambda x: x[i + 1], states)  # noqa: B023
        own = np.asarray(bare.observe(state))
        np.testing.assert_allclose(world.observe(mine)[: len(own)], own, rtol=1e-6)
        assert bool(mine.is_on) == (when == "always" or not is_own)
        assert float(world.task(mine)) == (float(bare.task(state)) if is_own else 0.0)
        assert bool(world.terminated(mine)) == bool(bare.terminated(state))
    assert (np.asarray(actions) == bare.num_actions).any() == (when == "switch")


@pytest.mark.parametrize("kind, shape", [("image", (1, 5, 2)), ("vector", (5 + NUMBERS,))])
def test_images_and_vectors_have_noise_beside_them(kind, shape):
    bare = primax.worlds.as_world(Line(kind))
    world = with_noise(Line(kind))
    states = walked(world, jax.random.key(0), jnp.zeros(200, int))
    seen, own = each(world.observe, states), each(bare.observe, states.inner)
    assert world.obs_shape == seen.shape[1:] == shape and world.channels == ()
    assert seen.dtype == own.dtype
    if kind == "image":
        np.testing.assert_array_equal(seen[..., :1], own)
        noise = seen[..., 1].ravel()
        assert noise.min() < 3 and noise.max() > 252 and abs(noise.mean() - 127.5) < 8
    else:
        np.testing.assert_array_equal(seen[:, :5], own)
        noise = seen[:, 5:]
        np.testing.assert_allclose(noise.mean(axis=0), 0.5, atol=0.08)
        assert 0 <= noise.min() < 0.02 and 0.98 < noise.max() < 1
        assert len(np.unique(noise)) == noise.size


def test_the_share_of_steps_with_noise_by_hand():
    """Columns 1 and 2 of 1, 2, 3, 4, 3, 2: the first observation is of no step."""
    world = make_world("noisy:maze", layout=ODD, noise_when="region", noise_region="left")
    states = stepped(world, [E, E, E, E, W, W])
    sums = tally.start(world, states[0])
    for state in states[1:]:
        sums = tally.add(world, sums, state)
    found = tally.outcome(sums)
    assert float(found.noise) == 0.5 and found.length is None
    assert float(found.coverage) == pytest.approx(5 / 42)
    line = with_noise(Line(), noise_when="switch")
    states = walked(line, jax.random.key(0), jnp.array([1, 2, 1, 2, 2]))
    states = [jax.tree.map(lambda x: x[i], states) for i in range(6)]  # noqa: B023
    sums = tally.start(line, states[0])
    for state in states[1:]:
        sums = tally.add(line, sums, state)
    found = tally.outcome(sums)
    assert float(found.noise) == pytest.approx(0.6) and int(found.length) == 5
    bare = tally.start(make_world("maze"), make_world("maze").reset(jax.random.key(0)))
    assert bare.noisy is bare.length is tally.outcome(bare).noise is None


def test_exact_scores_know_the_switch():
    """Always: the bare world's. With a switch a walker stays in two of six actions."""
    for name in ("maze", "butterflies"):
        bare, world = make_world(name, size=6), make_world(f"noisy:{name}", size=6)
        for policy in ("random", "sweep", "stay"):
            assert expected_score(world, policy) == expected_score(bare, policy)
    world = make_world("noisy:butterflies", size=6, noise_when="switch")
    exact, bare = (expected_score(w, "random") for w in (world, make_world("butterflies", size=6)))
    scores = outcomes(world, make_policy("random", world), 0, 4_000).score
    assert abs(scores.mean() - exact) < 4 * scores.std() / 4_000**0.5
    assert abs(exact - bare) > 0.005
    assert expected_score(with_noise(Line()), "random") is None


def test_all_options_of_the_world_are_there(tmp_path):
    config = configure("count", "Noisy:Butterflies", "quick", {"world.noise_when": "switch"})
    assert config.world.size == 6 and world_name(config.world) == "noisy:butterflies"
    assert config.steps == 40_000 and configure("count", "noisy:butterflies").steps == 250_000
    assert (
        make_world("noisy:butterflies", size=8).num_keys
        == make_world("butterflies", size=8).num_keys
    )
    defaults = find_world("noisy:maze")[1]
    assert (defaults.noise_when, defaults.noise_region) == ("always", "by_seed")
    (tmp_path / "a.txt").write_text(ODD)
    config = configure("count", "noisy:maze", settings={"world.layout": f"{tmp_path}/a.txt"})
    assert config.world.layout.strip() == ODD
    assert from_json(json.loads(json.dumps(as_json(config, (0, 1))))) == (config, (0, 1))
    assert as_json(config, (0,))["world"]["name"] == "noisy:maze"


@pytest.mark.parametrize(
    "name, options, says",
    [
        ("noisy:mase", {}, "unknown world 'noisy:mase'; did you mean noisy:maze?"),
        ("noisy:", {}, "choose from noisy:butterflies, noisy:maze"),
        ("nosy:maze", {}, "did you mean noisy?"),
        ("noisy:noisy:maze", {}, "noisy:noisy:maze is refused: that world has noise of its own"),
        ("noisy:two_wings", {}, "noisy:two_wings is refused: that world has noise of its own"),
        ("noisy:gymnax:deepse", {}, "did you mean gymnax:DeepSea-bsuite?"),
        ("noisy:maze", {"noise_when": "alwys"}, "did you mean always?"),
        ("noisy:maze", {"noise_region": "up"}, "noise_region has no value 'up'"),
        ("noisy:maze", {"sise": 6}, "noisy:maze has no option 'sise'; did you mean size?"),
        ("noisy:maze", {"size": 5}, "size must be between 6 and 32, got 5"),
        (
            "noisy:gymnax:CartPole-v1",
            {"noise_when": "region"},
            "noise_when=region needs a world on a grid: noisy:gymnax:CartPole-v1 is none",
        ),
        ("noisy:gymnax:CartPole-v1", {"noise_region": "left"}, "has no option 'noise_region'"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(name, options, says):
    if "gymnax" in name:
        pytest.importorskip("gymnax")
    with pytest.raises(InputError) as error:
        make_world(name, **options)
    assert says in str(error.value) and "\n" not in str(error.value)


def test_a_switch_needs_room_for_its_action():
    """The ring keeps an action in a byte."""
    line = Line()
    line.num_actions = 256
    assert with_noise(line).num_actions == 256
    with pytest.raises(InputError, match="actions of noisy:own:Line must be between 1 and 256"):
        with_noise(line, noise_when="switch")


def test_a_sweep_has_such_worlds(tmp_path):
    (tmp_path / "plan.toml").write_text(
        "methods = ['count']\nworlds = ['noisy:maze']\nseeds = 2\n"
        "[set]\nworld.noise_when = 'switch'\n"
    )
    (cell,) = read_plan(tmp_path / "plan.toml").cells
    assert cell.name == "count_noisy-maze" and cell.config.world.noise_when == "switch"


def test_objects_and_worlds_of_packages_have_noise_beside_them(tmp_path, monkeypatch):
    """By name they are in folders too; without one a folder refuses them."""
    given = with_noise(Corridor(CorridorConfig(length=5)), noise_when="switch")
    assert given.config.length == 5 and given.num_actions == 6 and not given.takes_targets
    settings = {"steps": 1_000, "window": 500}
    done = primax.train("none", given, 1, "smoke", settings)
    assert 0 < done.episodes["noise"].mean() < 0.5
    for world in (given, with_noise(Line())):
        with pytest.raises(InputError, match="a folder keeps a world by name"):
            primax.train("none", world, 1, "smoke", settings, out=tmp_path / "no")
    with pytest.raises(InputError, match="has no option 'nose_when'; did you mean noise_when"):
        with_noise(Line(), nose_when="always")
    with pytest.raises(InputError, match="noise of its own"):
        with_noise(make_world("two_wings"))
    monkeypatch.setitem(WORLDS, "corridor", Corridor)
    assert world_kind("noisy:corridor") is world_kind("noisy:corridor")
    primax.train("none", "noisy:corridor", 1, "smoke", settings, out=tmp_path / "corridor")
    content = json.loads((tmp_path / "corridor" / "config.json").read_text())
    monkeypatch.delitem(WORLDS, "corridor")
    with pytest.raises(ValueError, match="there is no world 'noisy:corridor'; if it is in a pack"):
        from_json(content)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Counts beside a switch, kept."""
    folder = tmp_path_factory.mktemp("noisy") / "run"
    settings = {"world.noise_when": "switch"}
    primax.train("count", "noisy:maze", 2, "smoke", settings, out=folder)
    return folder


def test_a_runs_column_is_the_share_in_its_recorded_episodes(run):
    """By the planes that were recorded, and by the actions."""
    found = open_run(run)
    assert found.world == "noisy:maze" and list(found.episodes) == [
        *("seed", "episode", "step", "score", "reach", "coverage", "distance", "noise")
    ]
    world = make_world("noisy:maze", size=6, noise_when="switch")
    for line in found.replays():
        planes = records.planes_of(line, world)[1:, -1].any(axis=(1, 2))
        asked = np.array(list(line["actions"])) == "5"
        np.testing.assert_array_equal(planes, asked)
        own = found.episodes["seed"] == line["seed"]
        share = found.episodes["noise"][own & (found.episodes["episode"] == line["episode"])]
        np.testing.assert_allclose(share, asked.mean(), rtol=1e-6)
    for name, rows in (("noise_start", slice(0, 4)), ("noise_tail", slice(16, 20))):
        noise = found.grid("episodes", "noise")[:, rows]  # of 20 episodes; five fifths
        np.testing.assert_allclose(measure(found, name).values, noise.mean(axis=1))


def test_a_run_that_was_stopped_goes_on_to_the_same_bytes(tmp_path, optimised, compiled_once):
    def stop(progress):
        if progress.clock == 1_000:
            raise KeyboardInterrupt

    settings = {"world.noise_when": "switch"}
    primax.train("count", "noisy:maze", 2, "smoke", settings, out=tmp_path / "whole")
    with pytest.raises(RunError, match="goes on with it"):
        primax.train("count", "noisy:maze", 2, "smoke", settings, stop, tmp_path / "half")
    assert main(["resume", str(tmp_path / "half")]) == 0
    for name in ("config.json", *FINAL):
        assert (tmp_path / "half" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_every_command_reads_such_a_run(run, tmp_path, capsys):
    commands = {
        ("stats", str(run), "--measure", "noise_tail"): "count",
        ("verify", "--run", str(run)): "nothing fails",
        ("evaluate", str(run), "--episodes", "20"): "noise",
        ("plot", str(run), "--column", "noise", "--out", str(tmp_path / "a.svg")): "1 run",
        ("report", str(run), "--out", str(tmp_path / "a.html")): "open it",
        ("watch", str(run), "--gif", str(tmp_path / "a.gif")): "101 frames",
        ("watch", str(run), "--recorded"): "NoisyMaze",
        ("watch", "noisy:maze", "--gif", str(tmp_path / "b.gif")): "101 frames",
        ("worlds", "noisy:maze", "--episodes", "20"): "noise_when",
        ("list", "noisy:maze"): "world.noise_region",
        ("list",): "noisy:butterflies, noisy:maze",
        ("pack", str(run), "--out", str(tmp_path / "packed")): "written",
    }
    for command, says in commands.items():
        assert main(list(command)) == 0, command
        assert says in " ".join(capsys.readouterr().out.split()), command
    page = (tmp_path / "a.html").read_text()
    assert '"noise"' in page and "noisy:maze 6 × 6" in page
    assert primax.evaluate(run, episodes=20).noise.shape == (2, 20)


def test_noise_is_drawn(capsys):
    assert main(["watch", "noisy:maze"]) == 0
    assert capsys.readouterr().out.count("::") > 20
    assert main(["watch", "noisy:maze", "--set", "noise_when=switch"]) == 0
    assert "::" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "line, found",
    [
        (["train", "prime", "noisy:m"], ["noisy:maze"]),
        (["train", "prime", "noi"], ["noisy:butterflies", "noisy:maze"]),
        (["train", "prime", "noisy", ":", "m"], ["maze"]),
        (["train", "prime", "noisy", ":"], ["butterflies", "maze"]),
        (["train", "prime", "noisy", ":", "maze", "--preset", "sm"], ["smoke"]),
        (["train", "prime", "noisy:maze", "--set", "world.noise_w"], ["world.noise_when="]),
    ],
)
def test_shells_complete_such_names(line, found):
    """bash cuts them at the colon and puts a word after it."""
    assert complete(line) == found


def test_gymnasium_has_the_switch():
    env = WorldEnv("noisy:maze", noise_when="switch", size=6)
    assert env.action_space.n == 6
    first, _ = env.reset(seed=0)
    assert first.shape == (4, 6, 6) and not first[-1].any()
    seen, *_ = env.step(ASK)
    assert seen[-1].any() and (seen[:-1] == first[:-1]).all()
    with pytest.raises(InputError, match=r"0 to 5 \(N, S, E, W, Stay, noise\)"):
        env.step(6)


@pytest.mark.parametrize("kind", ["image", "vector"])
def test_a_suites_world_trains_and_is_read(kind, tmp_path, monkeypatch):
    """Of an object that was given a name."""
    monkeypatch.setitem(WORLDS, "line", primax.worlds.suites.own.world_of(Line(kind), "own:line"))
    settings = {"steps": 1_000, "window": 500, "world.noise_when": "switch"}
    primax.train("none", "noisy:line", 1, "smoke", settings, out=tmp_path / "a")
    noise = open_run(tmp_path / "a").episodes["noise"]
    assert 0 < noise.mean() < 1 and open_run(tmp_path / "a").config.keys is not None
    assert primax.evaluate(tmp_path / "a", episodes=20).noise.shape == (1, 20)


@pytest.mark.long
def test_prime_is_explained_beside_a_switch(tmp_path, capsys):
    folder = str(tmp_path / "prime")
    args = ["train", "prime", "noisy:butterflies", "--preset", "smoke", "--seeds", "2"]
    assert main([*args, "--set", "world.noise_when=switch", "--out", folder]) == 0
    assert main(["explain", folder, "--top", "100", "--png", str(tmp_path / "a.png")]) == 0
    assert " noise " in capsys.readouterr().out
    assert main(["verify", "--run", folder]) == 0
