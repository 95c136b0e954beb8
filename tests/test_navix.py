"""Worlds of navix: its own episodes step by step, what an agent carries, and versions that are refused."""

import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_suites import ours

import primax
from primax.cli import main
from primax.errors import InputError
from primax.worlds import make_world
from primax.worlds.drawing import film
from primax.worlds.suites import base
from primax.worlds.suites import navix as adapter

EMPTY = "navix:Navix-Empty-5x5-v0"
DOOR = "navix:Navix-DoorKey-5x5-v0"
FORWARD = 2
STEPS = 40


@pytest.fixture(autouse=True)
def as_navix_needs():
    """Its own arithmetic adds arrays of different ranks, which our tests forbid elsewhere."""
    with jax.numpy_rank_promotion("allow"):
        yield


def planes(view):
    """By plain comparisons: eleven kinds of things, six colours, four states."""
    view = np.asarray(view)
    sizes = zip(range(3), (11, 6, 4), strict=True)
    return np.stack([view[..., part] == one for part, size in sizes for one in range(size)])


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="navix 4 runs on this Python")
def test_a_python_that_is_too_old_is_named():
    with pytest.raises(InputError, match=r"need Python 3\.12 or newer: this is 3\.11"):
        make_world(EMPTY)


def test_an_old_navix_is_refused_and_a_missing_one_has_its_extra(monkeypatch):
    monkeypatch.setattr(adapter, "PYTHON", (3, 11))
    adapter.kind.cache_clear()
    monkeypatch.setattr(adapter, "library", lambda name, extra: sys)
    monkeypatch.setattr(adapter, "version", lambda name: "0.7.4")
    with pytest.raises(InputError, match=r"version 4 or newer, and this is 0\.7\.4"):
        make_world(EMPTY)
    monkeypatch.undo()
    monkeypatch.setattr(adapter, "PYTHON", (3, 11))
    monkeypatch.setitem(sys.modules, "navix", None)
    with pytest.raises(InputError, match=r"pip install 'primax-rl\[navix\]'"):
        make_world(EMPTY)


def test_a_picture_shows_things_and_the_agent_and_not_of_what_kind_they_are():
    channels = ("floor", "key", "agent", "colour red", "state 0")
    planes = np.zeros((1, 5, 2, 2), np.uint8)
    planes[0, [1, 2], [0, 1], 1] = 1  # the agent is in the last of four cells
    shown = jnp.asarray(planes[0])
    step = lambda key, state, action: (0, shown, 0.0, False, False)  # noqa: E731
    made = base.Environment(lambda key: (0, shown), step, 2, 9, "planes", channels)
    world = base.world_class("own:shown", "Always the same.", {}, lambda chosen: made).of_defaults()
    (scene,) = film.seen(world, planes, [None], None)
    assert scene.channels == ("key", "agent")
    np.testing.assert_array_equal(scene.planes, planes[0, 1:3])


@pytest.mark.parametrize("seen", ["all", "part"])
def test_episodes_are_its_own_step_by_step(seen):
    """Observations, rewards and ends, beside navix's own `step` on its own resets."""
    navix = pytest.importorskip("navix", reason="pip install 'primax-rl[navix]', Python 3.12")
    is_part = seen == "part"
    world = make_world(EMPTY, horizon=12, partial=is_part, carries=False)
    key = jax.random.key(7)
    actions = jax.random.choice(jax.random.key(8), jnp.array([1, FORWARD, FORWARD]), (STEPS,))
    first, told = jax.jit(partial(ours, world))(key, actions)
    see = navix.observations.symbolic_first_person if is_part else navix.observations.symbolic
    env = navix.make(EMPTY[6:], max_steps=12, observation_fn=see)
    reset, step, expected = jax.jit(env.reset), jax.jit(env.step), []
    now = reset(key)
    np.testing.assert_array_equal(first, planes(now.observation))
    for k_step, action in zip(jax.random.split(key, STEPS), actions, strict=True):
        now = step(now, action)
        ended, cut = bool(now.is_termination()), bool(now.is_truncation())
        expected.append((planes(now.observation), float(now.reward), ended, ended | cut))
        if ended | cut:
            now = reset(jax.random.split(k_step)[1])
    for mine, other in zip(told, zip(*expected, strict=True), strict=True):
        np.testing.assert_array_equal(mine, np.stack(other))
    assert np.asarray(told[3]).sum() > np.asarray(told[2]).sum() > 0, "both ends are needed"
    assert np.asarray(told[1]).sum() == np.asarray(told[2]).sum(), "the goal pays one"


def facing_the_key(env):
    """A state in which the key of DoorKey lies before the agent."""
    now = jax.jit(env.reset)(jax.random.key(0))
    player, key = now.state.get_player(), now.state.get_keys()
    beside = key.position[0] + jnp.array([0, -1])  # it looks east
    player = player.replace(position=beside, direction=jnp.zeros_like(player.direction))
    return now.replace(state=now.state.set_player(player))


def test_what_the_agent_carries_lies_on_its_own_cell():
    """As in MiniGrid, and nothing else changes; with empty hands the view is the suite's."""
    navix = pytest.importorskip("navix", reason="pip install 'primax-rl[navix]', Python 3.12")
    now = facing_the_key(navix.make(DOOR[6:]))
    views = jax.jit(adapter.planes, static_argnums=(1, 2))
    plain = np.asarray(views(now.state, True, False))
    np.testing.assert_array_equal(views(now.state, True, True), plain)
    rows, cols = plain.shape[1:]
    assert plain[adapter.TAGS.index("key"), rows - 2, cols // 2] == 1
    held = navix.actions.pickup(now.state)
    plain, shown = (np.asarray(views(held, True, carries)) for carries in (False, True))
    own = shown[:, rows - 1, cols // 2]
    yellow = len(adapter.TAGS) + adapter.COLOURS.index("yellow")
    assert own[adapter.TAGS.index("key")] == 1 and own[yellow] == 1 and own.sum() == 3
    changed = np.any(shown != plain, axis=0)
    assert changed.sum() == 1 and changed[rows - 1, cols // 2]


def test_key_corridors_pay():
    """What the refused versions get wrong: the object behind the door, once the agent stands there."""
    pytest.importorskip("navix", reason="pip install 'primax-rl[navix]', Python 3.12")
    world = make_world("navix:Navix-KeyCorridorS3R1-v0")
    inner = jax.jit(world.reset)(jax.random.key(0)).inner
    goal, player = inner.state.get_goals().position[0], inner.state.get_player()
    floor = inner.state.grid == 0
    ways = {0: (0, 1), 1: (1, 0), 2: (0, -1), 3: (-1, 0)}
    way, beside = next(
        (d, goal - jnp.array(m)) for d, m in ways.items() if floor[*(goal - jnp.array(m))]
    )
    player = player.replace(position=beside, direction=jnp.full_like(player.direction, way))
    placed = inner.replace(state=inner.state.set_player(player))
    step = jax.jit(world.environment.step)
    *_, paid, ended, cut = step(jax.random.key(1), placed, jnp.int32(FORWARD))
    assert paid == 1.0 and ended and not cut


@pytest.mark.slow
def test_runs_in_folders_and_from_python(tmp_path):
    pytest.importorskip("navix", reason="pip install 'primax-rl[navix]', Python 3.12")
    folder = str(tmp_path / "run")
    line = ["train", "task+count", EMPTY, "--preset", "smoke", "--seeds", "2", "--out", folder]
    assert main([*line, "--set", "world.horizon=20"]) == 0
    assert main(["verify", "--run", folder]) == 0
    import navix

    env = navix.make(EMPTY[6:], max_steps=20)
    result = primax.train("count", env, seeds=1, preset="smoke", settings={"steps": 1_000})
    assert result.episodes["length"].max() <= 20 and result.episodes["score"].max() <= 1.0
    with pytest.raises(InputError, match="did you mean navix:Navix-Empty-5x5-v0"):
        make_world("navix:Navix-Empty-5x5")
    with pytest.raises(InputError, match="no option 'partal'; did you mean partial"):
        make_world(EMPTY, partal=True)
