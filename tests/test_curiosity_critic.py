"""The grid of "Curiosity-Critic": its rules and rewards by hand, its page from what is kept."""

import json
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import critic_grid as grid
import critic_rewards as rewards
import curiosity_critic as script

from primax.paper.pages.embed import filled

KEY = jax.random.key(0)
NOISE, SILENT = 2 * grid.SIDE + 20, 2 * grid.SIDE + 3


def test_a_cell_shows_its_picture_or_noise():
    """Every picture is the one before it, turned by three pixels: after 200 cells they come again."""
    first, after = grid.PICTURES[0], grid.PICTURES[grid.LEARNABLE[15]]
    assert_array_equal(after, np.roll(first, 45))
    assert len(grid.LEARNABLE) == 450
    assert len(np.unique(grid.PICTURES[grid.LEARNABLE], axis=0)) == 200
    one, other = jax.random.split(KEY)
    assert_array_equal(grid.screen(SILENT, one), grid.PICTURES[SILENT])
    noise = [np.asarray(grid.screen(NOISE, key)) for key in (one, other)]
    assert not np.array_equal(*noise) and set(np.unique(noise)) == {0, 1}
    assert 0.3 < np.mean(noise) < 0.7
    assert not grid.is_noise(14) and grid.is_noise(15) and grid.is_noise(grid.START)


def test_moves_keep_to_the_grid():
    assert_array_equal(grid.ALLOWED[0], [False, True, False, True])
    assert_array_equal(grid.ALLOWED[899], [True, False, True, False])
    assert_array_equal(grid.LEADS_TO[465], [435, 495, 464, 466])
    assert grid.ALLOWED.sum() == 4 * 900 - 4 * 30


def test_the_best_neighbour_is_chosen_and_walls_are_not():
    """Where a move is not allowed its number is that of cell 0, which is worth most here."""
    values = jnp.zeros(900).at[0].set(9.0).at[jnp.array([28, 59])].set(1.0)
    keys = jax.random.split(KEY, 200)
    pick = jax.vmap(lambda key, epsilon: grid.chosen(values, 29, epsilon, key), (0, None))
    assert set(np.asarray(pick(keys, 0.0)).tolist()) == {1, 2}, "ties are drawn"
    values = values.at[59].set(0.5)
    assert set(np.asarray(pick(keys, 0.0)).tolist()) == {2}
    among = np.bincount(np.asarray(pick(keys, 1.0)), minlength=4)
    assert among[[0, 3]].sum() == 0 and among.min(initial=99, where=among > 0) > 70
    rate = np.mean(np.asarray(pick(keys, 0.3)) == 1)
    assert 0.08 < rate < 0.23, "half of the random moves"


def test_a_value_by_hand():
    """3 + 0.05 (2 + 0.5 · 4 - 3), from the best of two neighbours; cell 0 must not count."""
    values = jnp.zeros(900).at[29].set(3.0).at[28].set(4.0).at[59].set(1.0).at[0].set(9.0)
    found = grid.updated(values, 29, 2.0, 0.5)
    assert_allclose(found[29], 3.05, rtol=1e-6)
    assert_array_equal(np.delete(found, 29), np.delete(values, 29))
    assert_allclose(grid.updated(values, 29, 2.0, 0.0)[29], 2.95, rtol=1e-6)


def test_rewards_are_divided_by_their_recent_deviation():
    """As it is published: the root of one moving average less the square of another, in float64."""
    stream = np.random.default_rng(0).normal(7.0, 0.1, 300)
    scale, mean, square = grid.Scale(jnp.zeros(()), jnp.zeros(())), 0.0, 0.0
    for reward in stream:
        mean, square = 0.95 * mean + 0.05 * reward, 0.95 * square + 0.05 * reward**2
        scale, found = jax.jit(grid.scaled)(scale, jnp.float32(reward))
        assert_allclose(found, reward / (np.sqrt(square - mean**2) + 1e-8), rtol=1e-4)


def _adam(weights, x, y, steps):
    """The published network and optimiser in numpy: ReLU between, mean squared error, Adam."""
    weights = [np.asarray(w, np.float64) for w in weights]
    first, second = ([np.zeros_like(w) for w in weights] for _ in range(2))
    for t in range(1, steps + 1):
        pre = x @ weights[0] + weights[1]
        hidden = np.maximum(pre, 0)
        out = 2 * (hidden @ weights[2] + weights[3] - y) / len(y)
        back = (weights[2] @ out) * (pre > 0)
        for i, g in enumerate((np.outer(x, back), back, np.outer(hidden, out), out)):
            first[i] = 0.9 * first[i] + 0.1 * g
            second[i] = 0.999 * second[i] + 0.001 * g**2
            size = np.sqrt(second[i] / (1 - 0.999**t)) + 1e-8
            weights[i] = weights[i] - 1e-3 * first[i] / (1 - 0.9**t) / size
    return weights


def test_a_network_learns_as_published():
    net = grid.mlp(KEY, 6, 8, 3)
    assert np.abs(net.last.weight).max() <= 8**-0.5 and np.abs(net.hidden.bias).max() <= 6**-0.5
    x, y = np.eye(6)[2] + np.eye(6)[5], np.array([1.0, 0.0, -1.0])
    learner = grid.Learner.of(net)
    for _ in range(3):
        learner = learner.learnt(jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32))
    for found, wanted in zip(
        jax.tree.leaves(learner.net), _adam(jax.tree.leaves(net), x, y, 3), strict=True
    ):
        assert_allclose(found, wanted, atol=2e-6)


def test_the_measure_by_hand():
    """A model that says nothing is off by the root of how many pixels are set, in every cell."""
    nothing = jax.tree.map(jnp.zeros_like, grid.mlp(KEY, 60, 4, 200))
    assert_allclose(grid.error(nothing), np.sqrt(grid.PICTURES[0].sum()), rtol=1e-6)


def _seen(cell=SILENT, before=5.0, after=4.0, last=SILENT, is_first=False):
    screen = jnp.ones(200)
    numbers = (jnp.float32(before), jnp.float32(after), jnp.int32(last))
    return rewards.Seen(
        jnp.int32(cell), screen, *numbers, 1 - screen, jnp.int32(1), jnp.bool_(is_first)
    )


@pytest.mark.parametrize(
    "name, given, wanted",
    [
        ("curiosity", {}, 5.0),
        ("progress", {}, 1.0),
        ("progress", {"after": 6.0}, 0.0),
        ("oracle", {}, 5.0),
        ("oracle", {"cell": NOISE, "before": 8.0}, 8.0 - np.sqrt(50)),
        ("oracle", {"cell": NOISE, "before": 7.0}, 0.0),
        ("random", {}, 0.0),
    ],
)
def test_rewards_without_memory_by_hand(name, given, wanted):
    _, found = rewards.payer(name).pay((), _seen(**given))
    assert_allclose(found, wanted, rtol=1e-6)


def _paid(name, many):
    reward = rewards.payer(name)
    state, found = reward.init(KEY), []
    for seen in many:
        state, worth = reward.pay(state, seen)
        found.append(float(worth))
    return state, found


def test_visits_and_the_table_by_hand():
    """Counts begin with one; the table's averages with nothing, and know this visit's error."""
    _, found = _paid("visits", [_seen(), _seen(), _seen(NOISE)])
    assert_allclose(found, [2**-0.5, 3**-0.5, 2**-0.5], rtol=1e-6)
    many = [_seen(after=4.0), _seen(after=2.0), _seen(NOISE, before=0.3)]
    _, found = _paid("table_critic", many)
    assert_allclose(found, [5 - 0.4, 5 - (0.9 * 0.4 + 0.2), 0.0], rtol=1e-6)


def test_the_network_critic_says_what_it_has_just_learnt():
    state, found = _paid("net_critic", [_seen(), _seen(after=4.5)])
    start, place = rewards.payer("net_critic").init(KEY), jnp.asarray(grid.PLACES)[SILENT]
    wanted = start.learnt(place, jnp.array([4.0])).learnt(place, jnp.array([4.5]))
    says = wanted.net(place)[0]
    assert_allclose(found[-1], 5.0 - max(0.0, float(says)), rtol=1e-6)
    assert_array_equal(state.net.last.weight, wanted.net.last.weight)
    again = lambda _, critic: critic.learnt(place, jnp.array([4.0]))  # noqa: E731
    state = jax.jit(lambda state: jax.lax.fori_loop(0, 1_000, again, state))(state)
    pay = jax.jit(rewards.payer("net_critic").pay)
    assert abs(float(pay(state, _seen(before=4.0))[1])) < 0.05, "nothing is left to be paid"
    assert float(pay(state, _seen(before=1.0))[1]) == 0.0


@pytest.mark.parametrize("sees", ["place", "screen"])
def test_distillation_pays_before_it_learns(sees):
    reward = rewards.payer(f"rnd_{sees}")
    start, seen = reward.init(KEY), _seen()
    x = {"place": jnp.asarray(grid.PLACES)[SILENT], "screen": seen.screen}[sees]
    state, first = reward.pay(start, seen)
    wanted = np.mean(np.square(start.predictor.net(x) - start.target(x)))
    assert_allclose(first, wanted, rtol=1e-5)
    assert_array_equal(state.target.last.weight, start.target.last.weight)
    _, second = reward.pay(state, seen)
    assert second < first


def test_a_bonus_counts_the_step_that_led_here():
    """The first arrival has none; then the same two steps in turns, after a warm-up of two."""
    settings = {"warmup": 2, "window": 1_000}
    reward = rewards.Payer("", **rewards.anywhere("count", **settings))
    state, pay, found = reward.init(KEY), jax.jit(reward.pay), []
    for number in range(6):
        cell, last = (SILENT, NOISE) if number % 2 else (NOISE, SILENT)
        state, worth = pay(state, _seen(cell, last=last, is_first=number == 0))
        found.append(float(worth))
    # Steps 1, 3, 5 leave one cell and 2, 4 the other; the first arrival fills a place of the warm-up.
    assert_allclose(found[:2], 0.0)
    assert_allclose(found[2:], [1.0, 2**-0.5, 2**-0.5, 3**-0.5], rtol=1e-6)


def test_a_seed_has_one_world_model_for_all_rewards():
    first, second = (
        jax.jit(lambda key, name=name: script.born(rewards.payer(name), key))(KEY)
        for name in ("visits", "rnd_place")
    )
    assert_array_equal(first.model.net.last.weight, second.model.net.last.weight)
    fresh = grid.mlp(jax.random.split(jax.random.split(KEY)[0])[0], 60, 1_024, 200)
    assert float(grid.error(first.model.net)) < float(grid.error(fresh)), "it has been warmed up"
    assert int(jax.tree.leaves(first.model.optimiser)[0]) == 0, "its optimiser is new"


def test_a_run_from_its_command(tmp_path, monkeypatch, capsys):
    """Two seeds, twice: the same numbers, which differ by seed; the table has the paper's too."""
    told = []
    for name in ("a.json", "b.json"):
        words = ["oracle", "--seeds", "1-2", "--steps", "30", "--out", str(tmp_path / name)]
        monkeypatch.setattr(sys, "argv", ["curiosity_critic.py", *words])
        script.main()
        told.append(json.loads((tmp_path / name).read_text(encoding="utf-8")))
    one, other = (x["rows"][0] for x in told)
    assert one["errors"] == other["errors"] and one["shares"] == other["shares"]
    assert one["errors"][0] != one["errors"][1] and told[0]["steps"] == 30
    assert all(6 < error < 9 for error in one["errors"])
    shown = capsys.readouterr()
    assert "1.74 ± 0.06" in shown.out and "oracle 30 steps" in shown.err


def test_undivided_rewards_reach_the_values_as_they_come():
    """The first cell is worth 3 and pays √½: 3 + 0.05 (√½ - 3); divided, √½ is over its own deviation."""
    for is_divided, worth in ((False, 0.5**0.5), (True, 1 / np.sqrt(0.05 * 0.95))):
        reward = rewards.payer("visits")
        life = jax.jit(lambda key, reward=reward: script.born(reward, key))(KEY)
        life, is_learnable = script.step(reward, is_divided, life, KEY)
        assert_allclose(life.values[grid.START], 3 + 0.05 * (worth - 3), rtol=1e-5)
        assert not is_learnable and np.flatnonzero(life.is_met).tolist() == [grid.START]


def test_the_papers_numbers_are_its_table():
    """Mean and deviation over five seeds, as printed."""
    printed = {
        "curiosity": (7.114, 0.147),
        "rnd_screen": (6.842, 0.212),
        "visits": (5.588, 0.794),
        "progress": (2.939, 0.398),
        "random": (2.348, 0.377),
        "rnd_place": (2.220, 0.109),
        "table_critic": (1.912, 0.070),
        "net_critic": (1.858, 0.080),
        "oracle": (1.736, 0.063),
    }
    for name, (mean, std) in printed.items():
        errors = rewards.payer(name).errors
        assert_allclose([np.mean(errors), np.std(errors)], [mean, std], atol=1e-3)


def test_the_page_is_what_the_kept_runs_say():
    made, page = script.blocks(), script.PAGE.read_text(encoding="utf-8")
    assert filled(page, made, "..") == page
    for name, is_undivided in (("divided", False), ("undivided", True)):
        told = [script._read(file) for file in script.TABLES[name]]
        assert all(one["undivided"] == is_undivided for one in told)
        assert len({(*one["seeds"], one["steps"]) for one in told}) == 1
    rows = [
        row["reward"] for file in script.TABLES["divided"] for row in script._read(file)["rows"]
    ]
    assert rows == list(rewards.REWARDS)
