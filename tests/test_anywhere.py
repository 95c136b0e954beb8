"""A reward beside someone's own loop: what is counted when, what ends where, what is refused."""

import itertools
import subprocess
import sys
import warnings
from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import primax
from primax import InputError, Space, Transition
from primax.anywhere import door
from primax.runs import npz

STATES, ACTIONS = 6, 3
SPACE = Space(obs=(2,), num_actions=ACTIONS, num_keys=STATES)
SMALL = {
    "net.embedding": 4,
    "net.first_channels": 2,
    "net.second_channels": 2,
    "critics.batch": 4,
    "replay": 64,
    "recent": 16,
    "window": 6,
    "warmup": 4,
}
TINY = SMALL | {
    "reward.heads": 1,
    "reward.quantiles": 3,
    "reward.probes": 2,
    "reward.feature_dim": 3,
    "reward.calibration": 8,
    "reward.neighbours": 4,
}
NOVELTY = {"reward.aleatoric_weight": 0, "reward.reward_scale": 1, "reward.bonus": "tanh"}
"""Of PRIME only V_count is left: one head agrees with itself, and noise costs nothing."""


def steps(keys: np.ndarray, actions: np.ndarray | None = None, **fields) -> Transition:
    """Transitions [time, envs] between states of these keys; an observation tells its key."""
    keys = np.asarray(keys)
    actions = np.zeros(keys.shape, int) if actions is None else np.asarray(actions)
    never = np.zeros(keys.shape, bool)
    seen = np.stack([keys, 10.0 - keys], axis=-1).astype(np.float32)
    given = {"terminated": never, "truncated": never, "key": keys, "next_key": (keys + 1) % STATES}
    return Transition(seen, actions, seen + 1, **(given | fields))


@cache
def prime(envs: int, is_novelty: bool = False):
    """One object for all tests, and steps of one length: a program is compiled once."""
    settings = TINY | (NOVELTY if is_novelty else {})
    return primax.bonus("prime", SPACE, envs=envs, gamma=0.8, settings=settings)


def run(bonus, *parts: Transition, seed: int = 0):
    """All parts in a row: the last state, and the rewards of each part."""
    state, worth = bonus.init(seed), []
    for part in parts:
        state, r = bonus.step(state, part)
        worth.append(r)
    return state, worth


def cut(part: Transition, *at: int) -> list[Transition]:
    """The same transitions in several calls."""
    edges = [0, *at, part.action.shape[0]]
    spans = [slice(a, b) for a, b in itertools.pairwise(edges)]
    return [jax.tree.map(lambda x, s=s: x[s], part) for s in spans]


# What is counted, and when


def test_counts_are_of_all_environments_and_rewards_of_what_was_counted():
    """1/√N with N after the step, every environment's steps of one tick together."""
    bonus = primax.bonus("count", SPACE, envs=2, settings=SMALL | {"warmup": 2, "window": 2})
    keys = np.array([[0, 0], [0, 1], [1, 0], [0, 0]])
    _, (worth,) = run(bonus, steps(keys))
    want = [[0, 0], [3**-0.5, 1], [2**-0.5, 4**-0.5], [6**-0.5, 6**-0.5]]
    np.testing.assert_allclose(worth, want, rtol=1e-6)


def by_hand(keys, actions, valid, envs, window, warmup, gamma):
    """PRIME's V_count by plain loops: counts as of the window in which a step is taken."""
    live, frozen = np.zeros((STATES, ACTIONS)), None
    windows, clock, worth = 0, 0, np.zeros(keys.shape)
    for t in range(keys.shape[0]):
        for e in range(envs):
            if valid[t, e]:
                live[keys[t, e], actions[t, e]] += 1
        if windows:
            count = frozen[keys[t], actions[t]]
            worth[t] = np.where(valid[t], 0.5 * gamma**2 * np.tanh((count + 1) ** -0.5) ** 2, 0)
        clock += envs
        begun = 1 + (clock - warmup) // window if clock >= warmup else 0
        if begun > windows:
            windows, frozen = begun, live.copy()
    return worth


@pytest.mark.parametrize(
    "envs", [pytest.param(1, marks=pytest.mark.long), 2, pytest.param(3, marks=pytest.mark.long)]
)
def test_a_reward_is_that_of_the_window_its_step_is_taken_in(envs):
    """Calls may cross boundaries anywhere, and windows need not be whole ticks."""
    bonus = prime(envs, is_novelty=True)
    rng = np.random.default_rng(envs)
    keys, actions = (rng.integers(0, n, (16, envs)) for n in (STATES, ACTIONS))
    valid = rng.random(keys.shape) > 0.2
    part = steps(keys, actions, valid=valid)
    want = by_hand(keys, actions, valid, envs, 6, 4, 0.8)
    assert len(np.unique(want)) >= 3
    whole, (worth,) = run(bonus, part)
    np.testing.assert_allclose(worth, want, atol=1e-6)
    parted, pieces = run(bonus, *cut(part, 8))
    np.testing.assert_array_equal(np.concatenate(pieces), worth)
    same = jax.tree.map(lambda a, b: bool(jnp.all(a == b)), plain(whole), plain(parted))
    assert all(jax.tree.leaves(same))
    keep = np.random.default_rng(0).integers(0, 16, 9)
    asked = jax.tree.map(lambda x: x[keep], part)
    clock = 16 * envs
    frozen_at = 4 + (clock - 4) // 6 * 6
    ticks = -(-frozen_at // envs)
    live = np.zeros((STATES, ACTIONS))
    np.add.at(live, (keys[:ticks], actions[:ticks]), valid[:ticks])
    count = live[keys[keep], actions[keep]]
    now = np.where(valid[keep], 0.5 * 0.8**2 * np.tanh((count + 1) ** -0.5) ** 2, 0)
    np.testing.assert_allclose(bonus.score(whole, asked), now, atol=1e-6)


def plain(state):
    """Without the key, which has no equality."""
    return jax.tree.map(
        lambda x: jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x,
        state,
    )


def test_rows_that_are_no_steps_may_hold_anything():
    """Poison: NaN, actions and keys out of range, an end; nothing of it is ever read."""
    bonus = prime(2)
    rng = np.random.default_rng(5)
    keys, actions = (rng.integers(0, n, (16, 2)) for n in (STATES, ACTIONS))
    valid = rng.random(keys.shape) > 0.3
    clean = steps(keys, actions, valid=valid)
    dirty = jax.tree.map(np.array, clean)
    for x in (dirty.obs, dirty.next_obs):
        x[~valid] = np.nan
    for x in (dirty.action, dirty.key, dirty.next_key):
        x[~valid] = -99
    dirty.terminated[~valid] = True
    (one, a), (two, b) = run(bonus, clean), run(bonus, dirty)
    np.testing.assert_array_equal(a, b)
    same = jax.tree.map(np.array_equal, plain(one), plain(two))
    assert all(jax.tree.leaves(same))
    assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves(plain(two)))


# Episodes


def planes(rng, *lead):
    return rng.integers(0, 2, (*lead, 1, 2, 3)).astype(np.uint8)


PLANES = Space(obs=(1, 2, 3), num_actions=ACTIONS, kind="planes", horizon=9)


def lived(rng, time: int, envs: int) -> Transition:
    """Episodes of one step and more, ending at different times, cut or ended."""
    obs = planes(rng, time + 1, envs)
    ended = rng.random((time, envs)) < 0.3
    ended[3] = ended[4] = True, *[False] * (envs - 1)  # an episode of one step
    is_cut = rng.random((time, envs)) < 0.5
    after = np.where(ended[..., None, None, None], planes(rng, time, envs), obs[1:])
    actions = rng.integers(0, ACTIONS, (time, envs))
    return Transition(obs[:-1], actions, after, ended & ~is_cut, ended & is_cut)


@pytest.mark.parametrize("method", ["smirl", "moss"])
def test_every_environment_has_episodes_of_its_own(method):
    """What is kept with observations is what each environment alone would have."""
    part = lived(np.random.default_rng(2), 14, 3)
    settings = SMALL | {"update_every": 0, "warmup": 1}
    if method == "smirl":
        settings |= {"reward.normaliser": "none", "reward.agent": "true"}
    together = primax.bonus(method, PLANES, envs=3, settings=settings)
    alone = primax.bonus(method, PLANES, envs=1, settings=settings)
    state, (worth,) = run(together, part)
    time = np.zeros(3, int)
    for over in np.asarray(part.terminated | part.truncated):
        time = np.where(over, 0, time + 1)
    np.testing.assert_array_equal(state.time, time)
    for env in range(3):
        single, (r,) = run(alone, jax.tree.map(lambda x, e=env: x[:, e : e + 1], part))
        if method == "smirl":  # nothing in it is random
            np.testing.assert_allclose(worth[:, env], r[:, 0], rtol=1e-6)
            for a, b in zip(jax.tree.leaves(state.memo), jax.tree.leaves(single.memo), strict=True):
                np.testing.assert_array_equal(a[env], b[0])
        else:
            assert single.memo.sign[0] == state.memo.sign[env]


def test_smirl_by_hand_over_ends():
    """log p under the episode's own density, which begins anew after an end and after a cut."""
    part = lived(np.random.default_rng(4), 9, 2)
    settings = SMALL | {"warmup": 2, "update_every": 0, "reward.normaliser": "none"}
    bonus = primax.bonus("smirl", PLANES, envs=2, settings=settings | {"reward.agent": "true"})
    _, (worth,) = run(bonus, part)
    want = np.zeros((9, 2))
    for env in range(2):
        total, num = np.zeros((1, 2, 3)), 1
        for t in range(9):
            theta = np.clip(total / num, 1e-4, 1 - 1e-4)
            x = part.next_obs[t, env]
            want[t, env] = np.sum(x * np.log(theta) + (1 - x) * np.log1p(-theta))
            total, num = total + x, num + 1
            if part.terminated[t, env] or part.truncated[t, env]:
                total, num = np.zeros((1, 2, 3)), 1
    np.testing.assert_allclose(worth[1:], want[1:], rtol=1e-5)
    np.testing.assert_array_equal(worth[0], 0)


def test_the_snapshot_is_an_environment_after_another():
    """The gate looks ahead along rows: those of two environments must not alternate."""
    bonus = prime(2)
    keys = np.random.default_rng(1).integers(0, STATES, (16, 2))
    ended = np.zeros((16, 2), bool)
    ended[9, 0] = ended[13, 1] = True
    state, _ = run(bonus, steps(keys, truncated=ended))
    recent = bonus.core._recent(state)
    np.testing.assert_array_equal(recent.rows.key // ACTIONS, [*keys[8:, 0], *keys[8:, 1]])
    np.testing.assert_array_equal(np.flatnonzero(recent.is_last), [1, 7, 8 + 5, 15])
    assert bool(jnp.all(recent.is_valid))


def test_a_cut_is_bootstrapped_through_and_an_end_is_not():
    """What a statistics head is taught: r̄ + γ q(s') after a cut, r̄ after an end."""
    bonus = prime(2)
    state, _ = run(bonus, steps(np.arange(32).reshape(16, 2) % STATES))
    reward = bonus.core.reward
    one = {"key": np.zeros(1, int), "next_key": np.ones(1, int)}
    seen = np.ones((1, 2), np.float32)
    zeta = []
    for name in ("terminated", "truncated"):
        flags = {"terminated": np.zeros(1, bool), "truncated": np.zeros(1, bool)}
        row = Transition(
            seen, np.zeros(1, int), 3 * seen, **(flags | {name: np.ones(1, bool)}), **one
        )
        batch = bonus.core.batch(state, bonus._rows(row)[1])
        after = reward.spec.see(batch.next_obs)
        _, targets = reward._targets(state.reward, batch, after, jax.random.key(0))
        zeta.append(np.asarray(targets[0, 0]))
    count = int(np.asarray(state.reward.window.novelty)[0])
    bonus_alone = np.tanh((count + 1) ** -0.5)
    np.testing.assert_allclose(zeta[0], bonus_alone, rtol=1e-6)
    assert np.all(np.abs(zeta[1] - bonus_alone) > 1e-4)


# States


def test_jit_vmap_and_seeds():
    """Seeds mapped over are the seeds one by one, and differ."""
    bonus = primax.bonus("rnd", SPACE.__class__((2,), ACTIONS), envs=2, settings=SMALL)
    rng = np.random.default_rng(0)
    part = steps(rng.integers(0, STATES, (9, 2)), key=None, next_key=None)
    part = jax.tree.map(jnp.asarray, part)
    roots = jax.vmap(lambda seed: jax.random.fold_in(jax.random.key(0), seed))(jnp.arange(3))
    many = jax.vmap(bonus.init)(roots)
    _, worth = jax.jit(jax.vmap(bonus.step, in_axes=(0, None)))(many, part)
    each = [run(bonus, part, seed=seed)[1][0] for seed in range(3)]
    np.testing.assert_allclose(worth, np.stack(each), rtol=2e-5, atol=1e-6)
    assert not np.allclose(each[0], each[1])
    again = run(bonus, part, seed=1)[1][0]
    np.testing.assert_array_equal(again, each[1])


def test_a_state_saves_to_one_file_and_goes_on_to_the_same_bits(tmp_path):
    bonus = prime(2)
    rng = np.random.default_rng(1)
    keys, actions = (rng.integers(0, n, (32, 2)) for n in (STATES, ACTIONS))
    first, second = cut(steps(keys, actions), 16)
    state, _ = run(bonus, first)
    bonus.save(state, tmp_path / "state.npz")
    going, a = bonus.step(state, second)
    loaded, b = bonus.step(bonus.load(tmp_path / "state.npz"), second)
    np.testing.assert_array_equal(a, b)
    same = jax.tree.map(lambda x, y: np.array_equal(x, y), plain(going), plain(loaded))
    assert all(jax.tree.leaves(same))
    other = primax.bonus("prime", SPACE, envs=2, gamma=0.8, settings=TINY | {"window": 5})
    with pytest.raises(InputError, match="window = 6, this bonus has 5"):
        other.load(tmp_path / "state.npz")
    npz_of = lambda about: npz.to_bytes([("['about']", np.frombuffer(about, np.uint8))])  # noqa: E731
    (tmp_path / "state.npz").write_bytes(npz_of(b"[" * 200_000))
    with pytest.raises(InputError, match="no saved bonus"):
        bonus.load(tmp_path / "state.npz")
    (tmp_path / "state.npz").write_bytes(b"nothing")
    with pytest.raises(InputError, match="no saved bonus"):
        bonus.load(tmp_path / "state.npz")
    with pytest.raises(InputError, match=r"used up.*returned"):
        bonus.score(state, second)
    with pytest.raises(InputError, match=r"used up.*returned"):
        bonus.save(state, tmp_path / "again.npz")


def test_axes_come_back_as_they_came_and_numpy_stays_numpy():
    bonus = primax.bonus("count", SPACE, envs=1, settings=SMALL)
    one = jax.tree.map(lambda x: x[0, 0], steps(np.array([[3]])))
    state, r = bonus.step(bonus.init(0), one)
    assert isinstance(r, np.ndarray) and r.shape == ()
    state, r = bonus.step(state, jax.tree.map(lambda x: x[None], one))
    assert r.shape == (1,)
    state, r = bonus.step(state, jax.tree.map(lambda x: jnp.asarray(x)[None, None], one))
    assert isinstance(r, jax.Array) and r.shape == (1, 1)
    many = jax.tree.map(lambda x: np.broadcast_to(x, (2, 3, 4, *np.shape(x))), one)
    assert bonus.score(state, many).shape == (2, 3, 4)


def test_learn_is_an_update_on_the_callers_minibatch():
    bonus = primax.bonus("rnd", Space((2,), ACTIONS), settings=SMALL | {"update_every": 0})
    part = steps(np.arange(8)[:, None] % STATES, key=None, next_key=None)
    state, _ = run(bonus, part)
    flat = jax.tree.map(lambda x: x[:, 0], part)
    before = state.reward.predictor.trunk.embed.weight + 0
    errors = []
    for _ in range(60):
        state, metrics = bonus.learn(state, flat)
        errors.append(float(metrics["rnd_error"]))
    assert errors[-1] < 0.5 * errors[0]
    assert not np.array_equal(before, state.reward.predictor.trunk.embed.weight)


def test_nothing_is_learnt_before_the_first_window():
    """It begins with a whole tick: after six transitions of three environments, not after four."""
    settings = SMALL | {"update_every": 1, "warmup": 4}
    bonus = primax.bonus("rnd", Space((2,), ACTIONS), envs=3, settings=settings)
    fresh = bonus.init(0).reward.predictor
    first, second = cut(steps(np.ones((3, 3), int), key=None, next_key=None), 2)
    state, _ = bonus.step(bonus.init(0), first)
    assert int(state.windows) == 1
    same = jax.tree.map(np.array_equal, fresh, state.reward.predictor)
    assert all(jax.tree.leaves(same))
    learnt, _ = bonus.step(state, second)
    same = jax.tree.map(np.array_equal, fresh, learnt.reward.predictor)
    assert not all(jax.tree.leaves(same))
    untaught, _ = bonus.learn(bonus.init(0), second)
    same = jax.tree.map(np.array_equal, fresh, untaught.reward.predictor)
    assert all(jax.tree.leaves(same))


def test_dirichlet_counts_every_transition_once():
    """Three environments, and a window and a snapshot that are no whole ticks."""
    settings = SMALL | {"window": 10, "recent": 10}
    bonus = primax.bonus("dirichlet", SPACE, envs=3, settings=settings)
    keys = np.random.default_rng(0).integers(0, STATES, (38, 3))
    state, _ = run(bonus, steps(keys))
    seen = 38 * 3  # the last window began with the last tick: 4 + 11 * 10 = 114
    assert int(jnp.sum(state.reward.count)) == seen


def test_numpy_steps_inside_a_jit_of_the_state():
    bonus, state = counting(2)
    rows = jax.tree.map(lambda x: x[0], GOOD)
    inside = jax.jit(lambda state: bonus.score(state, rows))(state)
    np.testing.assert_array_equal(inside, bonus.score(state, rows))


def test_long_whole_numbers_are_not_cut():
    """jax keeps 32 bits of them; a vector is float32 in any case."""
    x = np.array([[2**32 + 5, 2**31]])
    taken = door.observations(SPACE, "obs", x, (1,))
    np.testing.assert_array_equal(taken, x.astype(np.float32))


# Refusals


GOOD, ONE = steps(np.array([[1, 2]])), steps(np.array([[1]]))
WRONG = {
    "obs: expected [time, 2, 2]": {"obs": np.zeros((1, 3, 2), np.float32)},
    "obs: expected [..., 2]": {"obs": np.zeros((1, 2, 5), np.float32)},
    "obs: expected finite": {"obs": np.full((1, 2, 2), np.nan, np.float32)},
    "next_obs: expected finite": {"next_obs": np.full((1, 2, 2), np.inf, np.float32)},
    "next_obs: expected shape [1, 2, 2]": {"next_obs": np.zeros((2, 2), np.float32)},
    "action: expected whole numbers from 0 to 2, got 3": {"action": np.array([[0, 3]])},
    "action: expected whole numbers, got float64": {"action": np.array([[0.0, 1.0]])},
    "action: expected shape [1, 2]": {"action": np.array([0, 1])},
    "key: expected whole numbers from 0 to 5, got 6": {"key": np.array([[6, 0]])},
    "next_key: expected whole numbers from 0 to 5, got -1": {"next_key": np.array([[-1, 0]])},
    "key, next_key: expected with every": {"key": None},
    "terminated: expected true or false for every": {"terminated": None},
    "truncated: expected true or false, got int": {"truncated": np.array([[0, 2]])},
    "task: expected finite": {"task": np.array([[0, np.nan]])},
    "obs: expected numbers, got <U1": {"obs": np.full((1, 2, 2), "a")},
}


@pytest.mark.parametrize("said", WRONG)
def test_what_is_wrong_is_named_before_anything_is_written(said):
    bonus, state = counting(2)
    fields = {name: getattr(GOOD, name) for name in vars(GOOD)} | WRONG[said]
    with pytest.raises(InputError) as caught:
        bonus.step(state, Transition(**fields))
    assert said in str(caught.value) and "\n" not in str(caught.value)
    assert int(state.clock) == 0


@pytest.mark.parametrize(
    ("said", "make"),
    [
        (
            "discrete actions",
            lambda: primax.Space.of(FakeEnv(Box((3,), "float32"), Box((1,), "float32"))),
        ),
        ("Dict[]", lambda: primax.Space.of(FakeEnv(Dict(), Discrete(2)))),
        ("start at 1", lambda: primax.Space.of(FakeEnv(Box((3,), "float32"), Discrete(2, 1)))),
        ("kind='planes'", lambda: primax.Space.of(FakeEnv(Box((4, 4, 2), "float32"), Discrete(2)))),
        ("an environment with spaces", lambda: primax.Space.of(object())),
        ("flatten it", lambda: Space((3, 4), 2)),
        ("num_actions", lambda: Space((3,), 0)),
        ("kind has no value", lambda: Space((1, 2, 3), 2, kind="pictures")),
        ("unknown method", lambda: primax.bonus("prim", SPACE)),
        ("take the bonus alone", lambda: primax.bonus("task+rnd", SPACE)),
        ("how long episodes are", lambda: primax.bonus("moss", SPACE)),
        ("binary planes", lambda: primax.bonus("smirl", Space((4,), 2, horizon=9)).init(0)),
        (
            "cells of a grid",
            lambda: primax.bonus("prime", SPACE, settings={"reward.moments": "nearest16"}),
        ),
        ("keys takes", lambda: primax.bonus("prime", SPACE, keys=3)),
        ("num_keys", lambda: primax.bonus("prime", Space((4,), 2), keys="given")),
        ("encoder takes", lambda: primax.bonus("rnd", SPACE, encoder=3)),
        ("no field 'windw'", lambda: primax.bonus("rnd", SPACE, settings={"windw": 3})),
        ("envs must be between", lambda: primax.bonus("rnd", SPACE, envs=2_000)),
        (
            "warmup (1000) must be shorter",
            lambda: primax.bonus("rnd", SPACE, settings={"replay": 100}),
        ),
        (
            "how long episodes are",
            lambda: primax.bonus("s_adapt", Space((1, 2, 3), 2, kind="planes")),
        ),
        (
            "counts 2,147,483,647",
            lambda: with_state(
                lambda b, s: b.step(eqx.tree_at(lambda s: s.clock, s, jnp.int32(2**31 - 1)), ONE)
            ),
        ),
        ("paid once", lambda: with_lived(lambda b, s: b.score(s, ONE))),
        (
            "at least one",
            lambda: with_state(lambda b, s: b.learn(s, jax.tree.map(lambda x: x[:0], ONE))),
        ),
        ("shows now, got 2 steps", lambda: with_state(lambda b, s: b.memo(s, np.zeros((2, 1, 2))))),
        (
            "one seed",
            lambda: with_state(lambda b, s: b.save(jax.tree.map(lambda x: x[None], s), "x")),
        ),
        ("seed takes", lambda: primax.bonus("rnd", SPACE).init(-1)),
        ("keeps no memo", lambda: with_state(lambda b, s: b.view(np.zeros((1, 2)), memo=3))),
        ("prime has", lambda: with_state(lambda b, s: b.parts(s, GOOD))),
    ],
)
def test_bad_input_is_one_line(said, make):
    with pytest.raises(InputError) as caught:
        make()
    assert said in str(caught.value) and "\n" not in str(caught.value)


TYPES = """
import primax
space = primax.Space((2,), 3)
bonus = primax.bonus("none", space)
for said, make in {
    "num_actions takes a whole number": lambda: primax.Space((3,), 2.5),
    "tuple of whole numbers": lambda: primax.Space([3], 2),
    "num_keys takes a whole number": lambda: primax.Space((3,), 2, num_keys=5.0),
    "primax.Space": lambda: primax.bonus("rnd", (4,)),
    "primax.Method": lambda: primax.bonus(None, space),
    "expected what init gives": lambda: bonus.step(3, primax.Transition(0, 0, 0)),
    "a primax.Transition": lambda: bonus.step(bonus.init(0), 3),
    "seed takes": lambda: bonus.init("a"),
}.items():
    try:
        make()
    except primax.InputError as error:
        assert said in str(error) and "\\n" not in str(error), error
    else:
        raise AssertionError(said)
"""


def test_wrong_types_are_one_line_without_a_type_checker():
    subprocess.run([sys.executable, "-c", TYPES], check=True)


def with_lived(use):
    settings = SMALL | {"reward.read": "lived"}
    bonus = primax.bonus("rnd", SPACE, settings=settings)
    return use(bonus, bonus.init(0))


@cache
def counting(envs):
    bonus = primax.bonus("count", SPACE, envs=envs, settings=SMALL)
    return bonus, bonus.init(0)


def with_state(use):
    return use(*counting(1))


def test_a_memo_is_asked_for_and_an_episode_may_not_outlast_its_bound():
    settings = SMALL | {"reward.agent": "true", "update_every": 0}
    bonus = primax.bonus("smirl", PLANES, settings=settings)
    obs = planes(np.random.default_rng(0), 10, 1)
    never = np.zeros((10, 1), bool)
    part = Transition(obs, np.zeros((10, 1), int), obs, never, never)
    state = bonus.init(0)
    with pytest.raises(InputError, match="more than 9 steps"):
        bonus.step(state, part)
    with pytest.raises(InputError, match=r"bonus\.memo"):
        bonus.score(state, part)
    memo = bonus.memo(state, obs[0])
    seen = bonus.view(obs[0], memo)
    assert seen.shape == (1, *bonus.view_shape) == (1, 3, 2, 3)


class Discrete:
    def __init__(self, n, start=0):
        self.n, self.start = n, start


class Box:
    def __init__(self, shape, dtype, high=1):
        self.shape, self.dtype, self.high = shape, np.dtype(dtype), np.asarray(high)


class Dict:
    shape = None


class FakeEnv:
    def __init__(self, seen, done):
        self.observation_space, self.action_space = seen, done


# Spaces, keys, encoders


def test_spaces_of_other_peoples_environments():
    of = lambda *box: primax.Space.of(FakeEnv(Box(*box), Discrete(4)))  # noqa: E731
    assert (of((7,), "float64").kind, of((7,), "float64").num_actions) == ("vector", 4)
    image = of((84, 80, 3), "uint8", 255)
    assert (image.kind, image.channels, image.shape) == ("image", "last", (84, 80, 3))
    turned = of((3, 84, 80), "uint8", 255)
    assert (turned.kind, turned.channels, turned.shape) == ("image", "first", (84, 80, 3))
    binary = of((10, 10, 4), "bool")
    assert (binary.kind, binary.channels, binary.shape) == ("planes", "last", (4, 10, 10))
    world = primax.Space.of(primax.make_world("butterflies"))
    assert (world.kind, world.horizon, world.has_cells) == ("planes", 100, True)

    class Gymnax:
        default_params = "p"

        def observation_space(self, params):
            assert params == "p"
            return Box((4,), "float32")

        def action_space(self, params):
            return Discrete(2)

    assert primax.Space.of(Gymnax()) == Space((4,), 2)


def test_observations_are_turned_as_their_axes_say():
    x = np.arange(2 * 3 * 4).reshape(2, 3, 4) % 2
    space = Space((2, 3, 4), 2, kind="planes", channels="last")
    np.testing.assert_array_equal(space.turned(jnp.asarray(x)), np.moveaxis(x, -1, 0))
    space = Space((2, 3, 4), 2, channels="first")
    np.testing.assert_array_equal(space.turned(jnp.asarray(x)), np.moveaxis(x, 0, -1))


def test_no_keys_is_said_and_given_keys_or_none_at_all_are_not():
    with pytest.warns(UserWarning, match=r"SimHash.*keys='simhash'"):
        primax.bonus("prime", Space((4,), 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        primax.bonus("prime", SPACE)
        primax.bonus("prime", Space((4,), 2), keys="simhash")
        primax.bonus("rnd", Space((4,), 2))


def test_vectors_are_brought_to_scale_and_the_scale_holds_for_a_window():
    """What networks see has mean 0 and deviation 1 over what is kept, whatever the units."""
    bonus = primax.bonus("rnd", Space((2,), ACTIONS), settings=SMALL | {"update_every": 0})
    rng = np.random.default_rng(3)
    obs = rng.normal([1e4, -3e-3], [1e2, 1e-4], (10, 1, 2)).astype(np.float32)
    never = np.zeros((10, 1), bool)
    part = Transition(obs, np.zeros((10, 1), int), obs, never, never)
    state, _ = run(bonus, part)  # windows begin after 4 and after 10
    np.testing.assert_allclose(state.moments.mean, obs.mean((0, 1)), rtol=1e-3)
    np.testing.assert_allclose(state.moments.variance**0.5, obs.std((0, 1)), rtol=1e-3)
    was = np.asarray(state.moments.mean)
    state, _ = bonus.step(state, jax.tree.map(lambda x: x[:5], part))
    np.testing.assert_array_equal(state.moments.mean, was)
    state, _ = bonus.step(state, jax.tree.map(lambda x: x[:1] + x.dtype.type(0), part))
    assert not np.array_equal(state.moments.mean, was)


@pytest.mark.slow
def test_planes_and_images_go_through_every_part():
    """Stored, drawn, encoded and scored; PRIME's reward is finite, bounded and not all the same."""
    rng = np.random.default_rng(0)
    for space, dtype, high in (
        (Space((5, 4, 2), ACTIONS, kind="planes", channels="last"), bool, 2),
        (Space((20, 12, 1), ACTIONS), np.uint8, 256),
    ):
        bonus = primax.bonus("prime", space, envs=2, keys="simhash", settings=TINY)
        obs = rng.integers(0, high, (13, 2, *space.obs)).astype(dtype)
        never = np.zeros((12, 2), bool)
        part = Transition(obs[:-1], rng.integers(0, ACTIONS, (12, 2)), obs[1:], never, never)
        state, (worth,) = run(bonus, part)
        assert np.all(np.isfinite(worth)) and np.max(np.abs(worth)) <= 2.0
        assert float(state.metrics["v_epi"]) > 0
        found = bonus.parts(state, part)
        assert found["v_epi"].shape == (12, 2) and np.all(found["v_ale"] >= 0)
