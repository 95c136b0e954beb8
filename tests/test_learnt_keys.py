"""Learnt keys: codes by hand, what is slow, what is controlled, and counts that stay true."""

import itertools
import os
import re
import signal
from dataclasses import replace
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.linalg import eigh

import primax
from primax import Codes, Encoded, Place
from primax.agent.learner import Learner, make_learner
from primax.agent.training import _traced, compile_program, windows
from primax.cli import main
from primax.config.schema import NetConfig
from primax.errors import InputError, RunError
from primax.nn.nets import Linear
from primax.presets import configure
from primax.rewards.base import Spec
from primax.rewards.keys import place, slow
from primax.rewards.keys.encoded import Projected
from primax.rewards.keys.slow import Slow
from primax.rewards.transition import Batch

SPEC = Spec(
    shape=(2, 1, 12),
    num_actions=2,
    num_keys=0,
    horizon=100,
    net=NetConfig(first_channels=4, second_channels=4, embedding=16),
    gamma=0.9,
    recent=100,
    has_cells=False,
)


class Flat(eqx.Module):
    """A coder that is one matrix; it looks at the middle of each cell's surroundings."""

    weight: jax.Array

    def __call__(self, seen):
        middle = jnp.split(seen, 9, axis=-1)[4]
        return jnp.moveaxis(middle, -1, 1).reshape(len(seen), -1) @ self.weight


def one_cell(channels=1):
    return replace(SPEC, shape=(channels, 1, 1))


# Codes, by hand


def test_a_code_is_the_levels_of_its_numbers():
    """sigmoid(ln 3.1) is above 3/4, so of 4 levels the last; sigmoid(-ln 2.9) is above 1/4: the second."""
    keys = Codes(dims=2, levels=4, slow_levels=1).fitted(one_cell())
    coder = Flat(jnp.array([[np.log(3.1), -np.log(2.9)]]) / 10.0)  # GAIN is 10
    obs = jnp.array([[[[1]]], [[[0]]]], jnp.uint8)
    np.testing.assert_array_equal(keys.code(coder, obs), [3 + 4 * 1, 2 + 4 * 2])


def test_an_encoders_signs_are_the_bits_of_its_code():
    keys = Encoded(bits=3, size=8, slow_levels=1).fitted(one_cell(2))
    coder = Projected(Flat(jnp.eye(2)), jnp.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]]))
    obs = jnp.array([[1, 0], [0, 1], [1, 1], [0, 0]], jnp.uint8).reshape(4, 2, 1, 1)
    np.testing.assert_array_equal(keys.code(coder, obs), [0b001, 0b010, 0b001, 0b000])


def finder(weight) -> place.Finder:
    """The weighted sum of a cell's contents, where it is positive."""
    first = Linear(jnp.asarray(weight, jnp.float32)[:, None], jnp.zeros(1))
    return place.Finder(first, Linear(jnp.ones((1, 1)), jnp.zeros(1)))


def test_the_place_is_the_likeliest_cell_by_its_contents_alone():
    keys = Place(slow_levels=1).fitted(replace(SPEC, shape=(2, 2, 3)))
    obs = np.zeros((2, 2, 2, 3), np.uint8)
    obs[0, 0, 1, 2] = obs[1, 0, 0, 1] = 1  # what the finder looks for
    obs[:, 1, 0, 0] = 1  # what it makes less of
    np.testing.assert_array_equal(keys.code(finder([2.0, 1.0]), jnp.asarray(obs)), [5, 1])
    assert keys.num == 6


def test_an_image_is_seen_in_blocks():
    """20 pixels are 10 blocks of 2; 33 are 11 blocks of 3, filled up with zeros."""
    image = partial(replace, SPEC, kind="image")
    small = Place(slow_levels=1).fitted(image(shape=(20, 20, 1)))
    assert small.num == 100 and Place(slow_levels=1).fitted(image(shape=(33, 31, 3))).num == 121
    pixels = np.zeros((1, 20, 20, 1), np.uint8)
    pixels[0, 7, 15] = 255
    assert int(small.code(finder([1.0] * 4), jnp.asarray(pixels))[0]) == 3 * 10 + 7


def test_an_actions_chance_is_the_mixture_over_cells():
    """Against plain numpy: Σ_cell softmax(found) softmax(by cell), and every cell's own loss beside."""
    keys = Place().fitted(SPEC)
    model = keys.model(jax.random.key(0))
    _, action, before, after = steps_of(np.random.default_rng(0), 5)
    batch = batch_of(before, action, after)
    batch = replace(batch, weight=jnp.array([1.0, 1.0, 0.0, 1.0, 1.0]))
    loss, accuracy = keys.loss(model, batch, jax.random.key(0))
    seen = [jnp.moveaxis(x, 1, -1).astype(jnp.float32) for x in (batch.obs, batch.next_obs)]
    alone = np.asarray(place.by_cell(model.teacher, *seen), np.float64)
    where = np.asarray(place.found(model.coder, seen[1]), np.float64)
    where = np.exp(where) / np.exp(where).sum(1, keepdims=True)
    chance = (where[:, :, None] * np.exp(alone)).sum(1)
    np.testing.assert_allclose(chance.sum(1), 1.0, rtol=1e-5)
    lived = [0, 1, 3, 4]
    taken = (
        np.log(chance[lived, action[lived]])
        + alone[lived][:, :, :].mean(1)[np.arange(4), action[lived]]
    )
    assert float(loss) == pytest.approx(-taken.sum() / 5, rel=1e-5)
    assert float(accuracy) == np.mean(chance[lived].argmax(1) == action[lived])


# What is slow


def test_the_slow_number_stands_below_the_code_and_is_cut_off_at_its_ends():
    keys = Codes(dims=1, levels=2, slow_levels=3).fitted(replace(SPEC, shape=(1, 3, 3)))
    state = keys.init(jax.random.key(0), (1, 3, 3))
    state = replace(
        state,
        frozen=Flat(jnp.zeros((9, 1))),
        slow=Slow(jnp.ones(1), jnp.float32(1.0), jnp.float32(2.0)),
    )
    planes = np.zeros((5, 1, 3, 3), np.uint8)
    for i, num in enumerate((0, 1, 3, 5, 9)):
        planes[i].reshape(-1)[:num] = 1
    # (0 - 1) / 2 is below zero; 1, 3 and 5 are the levels 0, 1 and 2; 9 would be 4.
    expected = 3 + np.array([0, 0, 1, 2, 2])
    np.testing.assert_array_equal(keys.of(state, jnp.asarray(planes)), expected)


def test_the_slowest_direction_is_that_of_the_generalised_eigenproblem():
    """Of what the codes leave open; rows that are not lived are poisoned."""
    rng, num, codes = np.random.default_rng(0), 400, 3
    code = rng.integers(0, codes, num + 1)
    rare = np.cumsum(rng.random(num + 1) < 0.05).astype(float)
    noise = 3.0 * rng.normal(size=num + 1)
    x = np.stack([rare + 20.0 * code, noise + 0.5 * rare, np.full(num + 1, 7.0)], axis=1)
    before, after, is_lived = x[:-1], x[1:].copy(), np.arange(num) % 7 > 0
    poisoned = before.copy(), after.copy()
    for part in poisoned:
        part[~is_lived] = 1e6
    pair = jnp.asarray(code[:-1]), jnp.asarray(code[1:]), codes
    shown = (jnp.asarray(part, jnp.float32) for part in poisoned)
    got = slow.slowest(*shown, pair, jnp.asarray(is_lived), 8)
    table = np.stack([before[is_lived & (code[:-1] == c)].mean(0) for c in range(codes)])
    b, a = (before - table[code[:-1]])[is_lived], (after - table[code[1:]])[is_lived]
    scale = np.where(b.std(0) > 1e-3, 1 / np.maximum(np.sqrt((b**2).mean(0)), 1e-9), 0)
    d, c = (a - b) * scale, b * scale
    ridge = slow.RIDGE * np.eye(3)
    _, vectors = eigh(d.T @ d / len(b) + ridge, c.T @ c / len(b) + ridge)
    expected, direction = vectors[:, 0] * scale, np.asarray(got.direction)
    cosine = direction @ expected / np.linalg.norm(direction) / np.linalg.norm(expected)
    assert abs(cosine) == pytest.approx(1.0, abs=1e-4)
    value = before[is_lived] @ direction
    rms = np.sqrt(np.mean(((after - before)[is_lived] @ direction) ** 2))
    width = max(2 * rms, np.ptp(value) / 7)
    assert float(got.width) == pytest.approx(width, rel=1e-3)
    assert float(got.lowest) == pytest.approx(value.min() - slow.FIRST * width, rel=1e-3)


def test_what_jitters_as_much_as_it_varies_is_not_slow_and_whole_numbers_have_their_levels():
    x = jnp.asarray(np.random.default_rng(1).normal(size=(501, 2)), jnp.float32)
    same = jnp.zeros(500, jnp.int32)
    found = partial(slow.slowest, codes=(same, same, 1), is_lived=jnp.ones(500, bool), levels=8)
    assert float(found(x[:-1], x[1:]).width) == 0
    left = jnp.repeat(jnp.arange(6, -1, -1.0), 72)[:501, None]  # six are taken, one after another
    levels = np.asarray(slow.level(found(left[:-1], left[1:]), left, 8))
    assert len({(int(a), int(b)) for a, b in zip(left[:, 0], levels, strict=True)}) == 7
    assert len(set(levels.tolist())) == 7


def test_noise_in_a_part_of_the_world_is_not_slow_where_the_code_tells_the_part():
    """Long stays in a noisy half: slow by itself, and not once the half is known."""
    rng, num = np.random.default_rng(2), 2_000
    half = (np.arange(num + 1) // 50) % 2
    x = jnp.asarray((half * (10 + rng.normal(size=num + 1)))[:, None], jnp.float32)
    blind, told = (jnp.asarray(code, jnp.int32) for code in (0 * half, half))

    def found(code):
        codes = code[:-1], code[1:], 2
        return slow.slowest(x[:-1], x[1:], codes, jnp.ones(num, bool), 8)

    assert float(found(blind).width) > 0
    assert float(found(told).width) == 0


# What is controlled


def steps_of(rng, num):
    """Ring of 12 cells: action 1 moves on, 0 stays; the other plane is noise that nobody controls."""
    at = rng.integers(0, 12, num)
    action = rng.integers(0, 2, num)
    cells = np.eye(12, dtype=np.uint8)
    noise = rng.integers(0, 2, (2, num, 12), dtype=np.uint8)
    before = np.stack([cells[at], noise[0]], axis=1)[:, :, None]
    after = np.stack([cells[(at + action) % 12], noise[1]], axis=1)[:, :, None]
    return at, action, before, after


def batch_of(before, action, after):
    num = len(action)
    zero, never = jnp.zeros(num, jnp.int32), jnp.zeros(num, bool)
    pair = jnp.asarray(before), jnp.asarray(after)
    one = jnp.ones(num)
    return Batch(pair[0], jnp.asarray(action), one, pair[1], never, never, one, zero, zero, (), ())


def entropy(x):
    return stats.entropy(np.unique(x, return_counts=True)[1], base=2)


@pytest.mark.parametrize(
    ("keys", "left_open", "noise"),
    [
        (Place(slow_levels=1), 0.01, 0.01),
        (Codes(slow_levels=1), 2.7, 0.1),
        pytest.param(Encoded(slow_levels=1, bits=8), 2.7, 0.3, marks=pytest.mark.slow),
    ],
    ids=["place", "codes", "encoded"],
)
def test_a_key_tells_what_is_controlled_from_what_is_not(keys, left_open, noise):
    """In bits: of 3.6 of the cell `left_open` at most are not in the key; of 12 of noise `noise` are.

    Codes and encoders keep what tells the action: here it is enough to know whether the cell is an
    even one. Place says which cell it is.
    """
    rng, num = np.random.default_rng(0), 2_000
    keys = keys.fitted(replace(SPEC, net=NetConfig()))
    first = keys.init(jax.random.key(0), SPEC.shape)
    _, action, before, after = steps_of(rng, 64 * num)
    parts = jax.tree.map(
        lambda x: x.reshape(num, 64, *x.shape[1:]), batch_of(before, action, after)
    )

    @jax.jit
    def train(state):
        step = lambda state, x: keys.learn(state, *x)  # noqa: E731
        return jax.lax.scan(step, state, (parts, jax.random.split(jax.random.key(1), num)))

    state, told = train(first)
    assert np.mean(told["keys_accuracy"][-100:]) > 0.9
    at, _, before, after = steps_of(rng, 4_000)
    before, after = jnp.asarray(before), jnp.asarray(after)
    # learning alone does not change the keys
    np.testing.assert_array_equal(*(keys.of(one, before) for one in (first, state)))
    state = keys.renew(state, before, after, jnp.ones(4_000, bool))
    code = np.asarray(keys.of(state, before))
    both = entropy(code.astype(np.int64) * 12 + at)
    assert both - entropy(code) < left_open
    assert both - entropy(at) < noise


# In the engine


def program_of(method="count", seeds=(3,), **settings):
    settings = {"keys.kind": "place", "steps": 3_000, "replay": 10_000} | settings
    return compile_program(make_learner(configure(method, "maze", "smoke", settings)), seeds)


@pytest.fixture(scope="module")
def run():
    """A learner, and its state at each window's end."""
    program = program_of(**{"keys.growth": 2})
    states = [jax.tree.map(lambda x: x[0], state) for state, _ in windows_of(program)]
    return program.learner, states


def windows_of(program):
    """The states, copied: the next window uses them up."""
    for state, progress in windows(program):
        yield jax.tree.map(jnp.copy, state), progress


def test_counts_are_those_of_the_keys_now(run):
    """After every window: each row's key, made anew, and how often it is there."""
    learner, states = run
    assert len(states) == 6
    for number, state in enumerate(states):
        clock = 500 * (number + 1)
        rows = learner.read(state, jnp.int32(clock), jnp.arange(clock, 0, -1))
        of = partial(learner.keys.of, state.hashed.projection)
        key = np.asarray(of(rows.obs)) * 5 + np.asarray(rows.action)
        np.testing.assert_array_equal(rows.key, key)
        np.testing.assert_array_equal(rows.next_key, of(rows.next_obs))
        np.testing.assert_array_equal(state.reward, np.bincount(key, minlength=len(state.reward)))
        met = set((key // 5).tolist()) | set(np.asarray(rows.next_key).tolist())
        # An episode's first observation is met before a step is taken from it.
        assert (
            met <= set(np.flatnonzero(state.hashed.met)) and state.hashed.met.sum() <= len(met) + 1
        )


def test_after_how_many_windows_keys_are_renewed():
    """Never less than one window on; then by the factor, rounded up."""
    assert Place(growth=2.0).renewals(20) == [1, 2, 4, 8, 16]
    assert Place(growth=1.25).renewals(20) == [1, 2, 3, 4, 5, 7, 9, 12, 15, 19]


def test_keys_are_renewed_after_1_2_and_4_windows(run):
    """What keys are made with changes at the beginning of the second, third and fifth window."""
    learner, states = run
    frozen = [np.asarray(state.hashed.projection.frozen.first.weight) for state in states]
    changed = [not np.array_equal(a, b) for a, b in itertools.pairwise(frozen)]
    assert changed == [False, True, True, False, True]
    assert [learner.renews(500 * n) for n in range(7)] == [
        False,
        False,
        True,
        True,
        False,
        True,
        False,
    ]


def test_a_ring_that_has_lost_rows_keeps_its_keys():
    settings = {"keys.kind": "place", "replay": 1_500, "keys.growth": 1.01}
    learner = make_learner(configure("count", "maze", "smoke", settings))
    due = [learner.renews(clock) for clock in range(500, 4_000, 500)]
    assert due == [False, True, False, False, False, False, False]


def shuffled(world):
    """A world under other keys of the same states."""

    class Shuffled(type(world)):
        def state_key(self, state):
            return (7 * super().state_key(state) + 3) % self.num_keys

    return Shuffled(world.config)


def whole_run(learner):
    """All that a run of two seeds says, and its last state."""
    ran = [*windows(compile_program(learner, (0, 1)))]
    said = [(progress.episodes, progress.window) for _, progress in ran]
    last = ran[-1][0]
    return jax.tree.leaves((said, last.obs, last.critics, last.reward, last.ring, last.hashed))


def program(learner):
    """All that a run of two seeds is for the compiler."""
    return [part.lower().as_text() for part in _traced(learner, 2)]


PLACE = {"keys.kind": "place"}


@pytest.mark.parametrize(
    ("method", "world", "settings", "is_same"),
    [
        ("prime", "maze", PLACE, True),
        ("prime", "maze", {"keys.kind": "simhash"}, True),
        ("count", "butterflies", PLACE, True),
        ("count", "butterflies", {}, False),
        ("prime", "two_wings", PLACE, True),
        ("prime", "maze", {"keys.kind": "codes"}, True),
        ("prime", "maze", {"keys.kind": "encoded"}, True),
        pytest.param(
            "prime", "maze", PLACE | {"reward.novelty": "cfn"}, True, marks=pytest.mark.slow
        ),
        pytest.param("prime", "maze", {}, False, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_the_worlds_own_key_is_not_used(method, world, settings, is_same):
    """Under another key of the world it is the same program; with the given key it is not."""
    learner = make_learner(configure(method, world, "smoke", settings))
    other = Learner(learner.config, shuffled(learner.world), learner.reward)
    assert (program(learner) == program(other)) == is_same


@pytest.mark.long
@pytest.mark.parametrize(("settings", "is_same"), [(PLACE, True), ({}, False)], ids=str)
def test_nor_does_it_change_a_run(settings, is_same):
    """Under another key of the world everything is the same byte; with the given key it is not."""
    learner = make_learner(configure("count", "butterflies", "smoke", settings))
    other = Learner(learner.config, shuffled(learner.world), learner.reward)
    pairs = zip(whole_run(learner), whole_run(other), strict=True)
    assert all(np.array_equal(a, b) for a, b in pairs) == is_same


def _stop(progress):
    if progress.clock == 1_000:
        os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.slow
def test_a_run_that_was_stopped_goes_on_to_the_same_bytes(tmp_path, compiled_once):
    """Stopped before a renewal; the one that is due next is made after the resume."""
    settings = {"keys.kind": "place", "replay": 4_000}
    train = partial(primax.train, "prime", "butterflies", 2, "smoke", settings, progress=False)
    train(out=tmp_path / "whole")
    with pytest.raises(RunError):
        train(_stop, tmp_path / "stopped")
    assert main(["resume", str(tmp_path / "stopped")]) == 0
    for name in ("episodes.csv", "windows.csv"):
        whole, stopped = (tmp_path / run / name for run in ("whole", "stopped"))
        assert whole.read_bytes() == stopped.read_bytes()
    columns = (tmp_path / "whole" / "windows.csv").read_text().splitlines()[0].split(",")
    assert {"keys_accuracy", "keys_loss", "states_met"} <= set(columns)
    _commands(tmp_path)


def _commands(home):
    """Every command reads the run; what needs cells of a grid is refused or left out, in one line."""
    run, packed = str(home / "whole"), str(home / "packed")
    for command in (
        ["explain", run],
        ["verify", "--run", run],
        ["watch", run, "--gif", str(home / "a.gif")],
        ["pack", run, "--out", packed],
        ["stats", packed],
        ["report", run, packed, "--out", str(home / "page.html")],
    ):
        assert main(command) == 0, command
    assert not (home / "packed" / "whole" / "maps.npz").exists()
    assert main(["explain", run, "--png", str(home / "a.png")]) == 2


def test_what_does_not_fit_is_refused():
    made = lambda method, world="maze", **settings: make_learner(  # noqa: E731
        configure(method, world, settings={f"keys.{k}": v for k, v in settings.items()})
    )
    with pytest.raises(InputError, match=r"Codes: codes times slow_levels"):
        made("prime", kind="codes", dims=16)
    with pytest.raises(InputError, match=r"keys\.kind has no value 'code'; did you mean codes"):
        made("prime", kind="code")
    with pytest.raises(InputError, match=r"keys\.bits is of keys .* set keys\.kind"):
        made("prime", bits=4)
    with pytest.raises(InputError, match="dirichlet cannot count again"):
        made("dirichlet", kind="place")
    with pytest.raises(InputError, match="place need planes or an image"):
        made("prime", "gymnax:CartPole-v1", kind="place")


@pytest.mark.parametrize(
    "keys", [Place(), Codes(), Encoded()], ids=lambda keys: type(keys).__name__
)
def test_every_product_that_makes_a_key_is_in_full_precision(keys):
    """On a GPU a key would else depend on how many rows are asked at once."""
    keys = keys.fitted(SPEC)
    state = keys.init(jax.random.key(0), SPEC.shape)
    text = str(jax.make_jaxpr(keys.of)(state, jnp.zeros((3, *SPEC.shape), jnp.uint8)))
    products = re.findall(r"dot_general\[(.*?)\]\s", text, flags=re.DOTALL)
    assert len(products) == text.count("dot_general") >= 3
    assert all("HIGHEST" in product for product in products)
