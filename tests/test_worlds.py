"""Every rule of the worlds, worked out by hand, and what must always hold."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from primax.errors import InputError
from primax.worlds import WORLDS, make_world
from primax.worlds.butterflies import ButterfliesNoise, ButterfliesState, distinct
from primax.worlds.maze import MazeNoise
from primax.worlds.rollout import play
from primax.worlds.scripted import make_policy

N, S, E, W, STAY = range(5)
NOTHING = MazeNoise(jnp.zeros(0, jnp.uint8))
VARIANTS = [
    ("butterflies", {}),
    ("butterflies", {"size": 6, "respawn": True}),
    ("butterflies", {"layout": "border", "start": "random", "catch": "after_each"}),
    ("butterflies", {"start": "centre", "catch": "after_agent"}),
    ("maze", {}),
    ("maze", {"size": 6, "layout": "one_wide"}),
    ("two_wings", {"noisy": "left"}),
    ("two_wings", {"noisy": "right", "noise_cells": 0}),
    ("noisy:maze", {"size": 6}),
    ("noisy:butterflies", {"size": 6, "noise_when": "switch"}),
    ("noisy:butterflies", {"noise_when": "region", "noise_region": "right"}),
]
OFTEN = [
    pytest.param(number, id=f"{name}-{number}", marks=pytest.mark.slow if number % 2 else ())
    for number, (name, _) in enumerate(VARIANTS)
]
"""Every other one, each world among them, is tried before every commit."""


@functools.cache
def walks(variant: int):
    """A world, how one of its episodes is played at random, and fifty of them."""
    name, options = VARIANTS[variant]
    world = make_world(name, **options)
    act = make_policy("random", world)
    alone = jax.jit(lambda key: play(world, act, key))
    return world, alone, jax.jit(jax.vmap(alone))(jax.random.split(jax.random.key(3), 50))


def each(function):
    """Of every state of every episode."""
    return jax.jit(jax.vmap(jax.vmap(function)))


def word(*digits: int) -> int:
    """The random word whose butterflies make these moves."""
    return sum(digit * 5**place for place, digit in enumerate(digits))


def butterflies_state(world, agent, cells, alive=None, caught=0, time=0):
    cells = jnp.array(cells, jnp.int32)
    alive = jnp.ones(len(cells), bool) if alive is None else jnp.array(alive)
    return ButterfliesState(jnp.int32(agent), cells, alive, jnp.int32(caught), jnp.int32(time))


def flutter(world, state, action, *moves, spawns=()):
    noise = ButterfliesNoise(jnp.array([word(*moves)], jnp.uint32), jnp.array(spawns, jnp.uint32))
    return world.step(state, jnp.int32(action), noise)


def small(**options):
    return make_world("butterflies", size=6, butterflies=3, **options)


@pytest.mark.parametrize(
    ("cell", "action", "after"),
    [
        (0, N, 0),
        (0, W, 0),
        (0, S, 6),
        (0, E, 1),
        (0, STAY, 0),
        (35, S, 35),
        (35, E, 35),
        (14, N, 8),
        (14, W, 13),
    ],
)
def test_moves_off_the_grid_are_blocked(cell, action, after):
    world = small()
    state = flutter(world, butterflies_state(world, cell, [20, 21, 22]), action, STAY, STAY, STAY)
    assert int(state.agent) == after


def test_moves_into_walls_are_blocked_for_agent_and_butterflies():
    world = small(layout="border")
    state = butterflies_state(world, 7, [8, 28, 10])
    state = flutter(world, state, N, N, S, E)
    assert int(state.agent) == 7
    assert state.butterflies.tolist() == [8, 28, 10]


def test_maze_walls_block():
    world = make_world("maze")
    state = world.reset(jax.random.key(0))
    for action, cell in [(S, 10), (S, 20), (E, 21), (S, 21), (W, 20), (S, 30), (E, 30), (S, 40)]:
        state = world.step(state, jnp.int32(action), NOTHING)
        assert int(state.agent) == cell


def test_butterflies_move_as_drawn():
    world = small()
    state = flutter(world, butterflies_state(world, 0, [14, 21, 35]), STAY, N, W, S)
    assert state.butterflies.tolist() == [8, 20, 35]


@pytest.mark.parametrize(
    ("catch", "met", "left"),
    [("after_both", True, False), ("after_each", True, True), ("after_agent", False, True)],
)
def test_when_a_shared_cell_is_a_catch(catch, met, left):
    """A butterfly that comes to the agent, one that swaps places with it, one the agent steps onto
    and that then leaves."""
    world = small(catch=catch)
    comes = flutter(world, butterflies_state(world, 14, [21, 0, 0], [True, False, False]), E, N)
    assert (int(comes.agent), bool(comes.caught)) == (15, met)
    swaps = flutter(world, butterflies_state(world, 14, [15, 0, 0], [True, False, False]), E, W)
    assert (int(swaps.agent), bool(swaps.caught)) == (15, left)
    leaves = flutter(world, butterflies_state(world, 14, [15, 0, 0], [True, False, False]), E, S)
    assert bool(leaves.caught) == left
    stays = flutter(world, butterflies_state(world, 14, [15, 0, 0], [True, False, False]), E, STAY)
    assert bool(stays.caught)


def test_a_catch_pays_once_flashes_once_and_removes():
    world = small()
    state = flutter(world, butterflies_state(world, 14, [15, 15, 30]), E, STAY, STAY, STAY)
    assert (int(state.caught), state.alive.tolist()) == (2, [False, False, True])
    assert float(world.task(state)) == 2.0
    agent, butterfly, wall, flash = np.asarray(world.observe(state))
    assert agent[2, 3] == flash[2, 3] == 1 and agent.sum() == flash.sum() == 1
    assert butterfly[5, 0] == 1 and butterfly.sum() == 1 and wall.sum() == 0
    assert int(world.state_key(state)) == 15 * 4 + 1
    assert int(world.count_key(state, jnp.int32(W))) == (15 * 4 + 1) * 5 + W
    state = flutter(world, state, STAY, STAY, STAY, STAY)
    assert float(world.task(state)) == 0.0
    assert np.asarray(world.observe(state))[3].sum() == 0


def test_respawn_puts_a_caught_butterfly_on_another_free_cell():
    world = small(respawn=True)
    for draw in range(35):
        state = butterflies_state(world, 14, [15, 20, 30])
        state = flutter(world, state, E, STAY, STAY, STAY, spawns=(draw, 0, 0))
        assert (int(state.caught), state.alive.all()) == (1, True)
        assert state.butterflies.tolist() == [draw + (draw >= 15), 20, 30]


def test_the_flag_is_taken_once():
    world = make_world("maze", size=6)
    path = [S, S, S, E, E, E, E, E, S, S]
    state, pay = world.reset(jax.random.key(0)), []
    for action in [*path, N, S, STAY]:
        assert np.asarray(world.observe(state))[2].sum() == (sum(pay) == 0)
        state = world.step(state, jnp.int32(action), NOTHING)
        pay.append(float(world.task(state)))
    assert pay == [0.0] * 9 + [1.0] + [0.0] * 3
    assert int(world.state_key(state)) == 35


def test_maze_planes():
    world = make_world("maze", size=6)
    agent, wall, flag = np.asarray(world.observe(world.reset(jax.random.key(0))))
    assert agent[0, 0] == 1 and agent.sum() == 1
    assert flag[5, 5] == 1 and flag.sum() == 1
    assert wall.tolist()[2] == [0, 1, 1, 1, 1, 1] and wall.tolist()[4] == [1, 1, 1, 1, 1, 0]
    assert wall.sum() == 10


@pytest.mark.parametrize("noisy", ["left", "right"])
def test_two_wings_shows_noise_in_one_wing_only(noisy):
    world = make_world("two_wings", noisy=noisy)
    seen = {"left": [], "right": []}
    episode = jax.jit(jax.vmap(lambda k: play(world, make_policy("random", world), k)))(
        jax.random.split(jax.random.key(0), 20)
    )
    planes = np.asarray(each(world.observe)(episode.states))
    cells = np.asarray(episode.states.agent)
    for side, inside in (("left", cells % 10 < 5), ("right", cells % 10 >= 5)):
        seen[side] = planes[inside][:, 1].reshape(-1, 30)
    silent = {"left": "right", "right": "left"}[noisy]
    assert seen[silent].sum() == 0
    assert seen[noisy][:, 20:].sum() == 0
    np.testing.assert_allclose(seen[noisy][:, :20].mean(axis=0), 0.5, atol=0.06)
    # Redrawn at every step: two consecutive planes of twenty coins are never the same.
    assert (seen[noisy][1:, :20] != seen[noisy][:-1, :20]).any(axis=1).mean() > 0.999


def test_two_wings_sides_swap_by_seed_and_pay_the_silent_wing():
    world = make_world("two_wings")
    sides = jax.vmap(lambda seed: world.for_seed(seed).right_is_noisy)(jnp.arange(4))
    assert sides.tolist() == [False, True, False, True]
    left_noisy = world.for_seed(0)
    state = left_noisy.reset(jax.random.key(0))
    noise = jax.tree.map(lambda x: x[0], left_noisy.noise(jax.random.key(1), 1))
    for _ in range(6):
        state = left_noisy.step(state, jnp.int32(E), noise)
    assert float(left_noisy.task(state)) == pytest.approx(0.01)
    assert float(world.for_seed(1).task(state)) == 0.0
    assert bool(make_world("two_wings", noisy="left").for_seed(1).right_is_noisy) is False


@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_truncation_at_exactly_the_horizon(name, options):
    world = make_world(name, horizon=7, **options)
    act = make_policy("random", world)
    episode = jax.jit(lambda key: play(world, act, key))(jax.random.key(0))
    assert jax.vmap(world.truncated)(episode.states).tolist() == [False] * 7 + [True]
    assert not jax.vmap(world.terminated)(episode.states).any()
    assert make_world(name, **options).horizon == 100


@pytest.mark.parametrize("variant", OFTEN)
def test_what_always_holds(variant):
    (name, options), (world, _, episodes) = VARIANTS[variant], walks(variant)
    states = episodes.states
    planes = np.asarray(each(world.observe)(states))
    keys = np.asarray(each(world.state_key)(states))
    cells = np.asarray(states.agent)
    assert planes.shape[2:] == world.obs_shape and planes.dtype == np.uint8
    assert set(np.unique(planes)) <= {0, 1}
    assert keys.min() >= 0 and keys.max() < world.num_keys
    assert not np.asarray(world.walls).ravel()[cells].any()
    np.testing.assert_array_equal(planes[:, :, 0].reshape(*cells.shape, -1).argmax(-1), cells)
    alive = np.asarray(each(world.targets)(states)[1]).sum(-1)
    if options.get("respawn"):
        assert (alive == alive[0, 0]).all()
    else:
        assert (np.diff(alive, axis=1) <= 0).all()
    if name == "butterflies":
        spots = np.asarray(states.butterflies)
        assert not np.asarray(world.walls).ravel()[spots].any()
        first = np.concatenate([spots[:, 0], cells[:, :1]], axis=1)
        assert all(len(set(row)) == len(row) for row in first.tolist())


@pytest.mark.parametrize("variant", OFTEN)
def test_vmap_equals_loop_and_same_key_same_episode(variant):
    _, play_alone, batch = walks(variant)
    for i, key in enumerate(jax.random.split(jax.random.key(3), 50)[:4]):
        alone = play_alone(key)
        for one, many in zip(jax.tree.leaves(alone), jax.tree.leaves(batch), strict=True):
            np.testing.assert_array_equal(one, many[i])
    assert not np.array_equal(batch.actions[0], batch.actions[1])


@pytest.mark.parametrize("variant", OFTEN)
def test_planes_are_painted_the_same_for_a_gpu(variant, monkeypatch):
    world, _, episodes = walks(variant)
    states = jax.tree.map(lambda x: x[:1], episodes.states)
    here = each(world.observe)(states)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    # Traced anew: what is painted is chosen by the device while it is traced.
    np.testing.assert_array_equal(each(lambda state: world.observe(state))(states), here)


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(num=st.integers(1, 10), spare=st.integers(0, 20), seed=st.integers(0, 2**31))
def test_distinct_numbers_are_distinct_and_inside(num, spare, seed):
    chosen = distinct(jax.random.key(seed), num, num + spare).tolist()
    assert len(set(chosen)) == num and min(chosen) >= 0 and max(chosen) < num + spare


def test_distinct_sets_are_uniform():
    """All ten pairs out of five come up equally often."""
    draws = jax.vmap(lambda k: distinct(k, 2, 5))(jax.random.split(jax.random.key(1), 20_000))
    pairs = np.sort(np.asarray(draws), axis=1)
    counts = np.unique(pairs @ [10, 1], return_counts=True)[1]
    assert len(counts) == 10
    assert ((counts - 2000) ** 2 / 2000).sum() < 27.9  # chi-square, 9 degrees, p = 0.001


def test_the_size_sets_the_number_of_butterflies():
    sizes = {6: 3, 8: 4, 10: 6, 32: 61}
    assert {size: make_world("butterflies", size=size).num_butterflies for size in sizes} == sizes


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("buterflies", {}, "unknown world 'buterflies'; did you mean butterflies?"),
        ("maze", {"layot": "x"}, "maze has no option 'layot'; did you mean layout?"),
        ("maze", {"layout": "halfwalls"}, "unknown layout 'halfwalls'; did you mean half_walls?"),
        ("maze", {"size": 5}, "size must be between 6 and 32, got 5"),
        ("maze", {"size": "10"}, "size takes a whole number, got '10'"),
        ("maze", {"size": True}, "size takes a whole number, got True"),
        ("maze", {"layout": 3}, "layout takes text, got 3"),
        ("butterflies", {"respawn": 1}, "respawn takes true or false, got 1"),
        ("butterflies", {"butterflies": 1.5}, "butterflies takes a whole number or none, got 1.5"),
        ("butterflies", {"catch": "after"}, "catch has no value 'after'"),
        ("butterflies", {"start": "center"}, "start has no value 'center'; did you mean centre?"),
        ("butterflies", {"butterflies": 0}, "butterflies must be between 1 and"),
        ("butterflies", {"size": 6, "butterflies": 36}, "butterflies must be between 1 and 35"),
        ("two_wings", {"noise_cells": 31}, "noise_cells must be between 0 and 30"),
        ("two_wings", {"noisy": "up"}, "noisy has no value 'up'"),
        ("maze", {"horizon": 0}, "horizon must be between 1"),
    ],
)
def test_bad_options_are_refused_in_one_line(name, options, says):
    with pytest.raises(InputError) as error:
        make_world(name, **options)
    assert says in str(error.value) and "\n" not in str(error.value)


def test_names_may_be_written_with_hyphens_and_capitals():
    assert type(make_world("Two-Wings")) is type(make_world("two_wings"))
    assert set(WORLDS) == {"butterflies", "maze", "two_wings"}
