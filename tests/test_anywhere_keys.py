"""Learnt keys beside someone's own loop: counts that stay true, and what the keys come to see."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import primax
from primax import InputError, Space, Transition
from primax.rewards.observations import scaled

SMALL = {
    "net.embedding": 8,
    "net.first_channels": 2,
    "net.second_channels": 2,
    "critics.batch": 16,
    "replay": 400,
    "recent": 100,
    "window": 80,
    "warmup": 60,
}
MOVES = np.array([[0, 0], [-1, 0], [1, 0], [0, -1], [0, 1]])


def walk(rng, time: int, envs: int, side: int) -> tuple[np.ndarray, np.ndarray]:
    """Random actions [time, envs] on a square board, and the cells [time + 1, envs, 2] they lead to."""
    actions, at = rng.integers(0, 5, (time, envs)), rng.integers(0, side, (envs, 2))
    cells = [at]
    for action in actions:
        at = np.clip(at + MOVES[action], 0, side - 1)
        cells.append(at)
    return actions, np.stack(cells)


def boards(rng, time: int, envs: int, start: int = 0) -> Transition:
    """Two planes of 4x4: where one is, and noise; some rows are no steps."""
    actions, cells = walk(rng, time, envs, 4)
    obs = rng.integers(0, 2, (time + 1, envs, 2, 4, 4)).astype(np.uint8)
    obs[:, :, 0] = np.eye(16, dtype=np.uint8)[cells @ [4, 1]].reshape(time + 1, envs, 4, 4)
    return transitions(obs, actions, valid=rng.random((time, envs)) > 0.15)


BOARD = Space((2, 4, 4), 5, kind="planes")


def carts(rng, time: int, envs: int, start: int = 0) -> Transition:
    """Four numbers, of which two swing with the actions, and wider with time."""
    actions = rng.integers(0, 2, (time, envs))
    push = np.concatenate([np.zeros((1, envs)), np.cumsum(2 * actions - 1, axis=0)])
    width = 1.0 + (start + np.arange(time + 1))[:, None] / 50
    noise = rng.normal(size=(2, time + 1, envs))
    obs = np.stack([push * width, 50 * noise[0] * width, np.sin(push), noise[1]], axis=-1)
    return transitions(obs.astype(np.float32), actions, valid=rng.random((time, envs)) > 0.15)


CART = Space((4,), 2)


def transitions(obs: np.ndarray, actions: np.ndarray, **fields) -> Transition:
    """Steps between observations [time + 1, envs, ...] of episodes that never end."""
    never = np.zeros(actions.shape, bool)
    return Transition(obs[:-1], actions, obs[1:], never, never, **fields)


def given(parts: list[Transition], name: str) -> np.ndarray:
    """A field of all steps ever given: [time, envs, ...]."""
    return np.concatenate([np.asarray(getattr(part, name)) for part in parts])


def keyed(bonus, state, parts: list[Transition], name: str = "obs") -> np.ndarray:
    """The keys of now of all steps ever given, part by part: one program serves parts of one length."""
    return np.concatenate([np.asarray(keys_of(bonus, state, getattr(p, name))) for p in parts])


@eqx.filter_jit
def keys_of(bonus, state, obs):
    return jax.vmap(lambda seen: bonus.core.keys.of(state.keys, scaled(state.scale, seen)))(obs)


def recount(bonus, state, parts: list[Transition]) -> np.ndarray:
    """How often each state and action was met in all steps ever given, under the keys of now."""
    key = keyed(bonus, state, parts) * bonus.space.num_actions + given(parts, "action")
    num = bonus.core.reward.spec.num_keys
    return np.bincount(key[given(parts, "valid")], minlength=num)


def weights(tree) -> np.ndarray:
    """All numbers of a tree in one row."""
    return np.concatenate([np.ravel(x) for x in jax.tree.leaves(tree)])


# Counts


def follow(bonus, make, calls: int, ticks: int) -> list[dict]:
    """After every call the table is the recount, and kept rows have the keys of now; what keys were."""
    rng, state, parts, said = np.random.default_rng(0), bonus.init(0), [], []
    for _ in range(calls):
        parts.append(make(rng, ticks, bonus.envs, len(parts) * ticks))
        state, worth = bonus.step(state, parts[-1])
        table, rows = recount(bonus, state, parts), state.rows
        np.testing.assert_array_equal(state.reward, table)
        assert table.sum() == sum(int(part.valid.sum()) for part in parts)
        if int(state.clock) <= bonus.config.replay:  # then the store holds them all, in order
            lived = given(parts, "valid")
            kept = [np.asarray(x)[: len(lived)][lived] for x in (rows.key, rows.next_key)]
            np.testing.assert_array_equal(np.bincount(kept[0], minlength=table.size), table)
            after = keyed(bonus, state, parts, "next_obs")
            np.testing.assert_array_equal(kept[1], after[lived])
        assert int(state.windows) == 0 or np.any(worth > 0)
        kept = {"frozen": state.keys.frozen, "live": state.keys.live}
        kept |= {"scale": state.scale, "moments": state.moments}
        said.append({"clock": int(state.clock), "met": int(np.sum(table > 0))})
        said[-1] |= {n: weights(x) for n, x in kept.items() if x is not None}
    return said


def changed(said: list[dict], name: str) -> list[int]:
    """At the end of which calls something was no longer what it was a call before."""
    pairs = itertools.pairwise(said)
    return [b["clock"] for a, b in pairs if not np.array_equal(a[name], b[name])]


def test_counts_are_those_of_the_place_now_in_four_environments():
    """Renewals with the windows that begin at 140, 220, 300 and 380; at 460 rows are lost."""
    bonus = primax.bonus("count", BOARD, envs=4, keys="place", settings=SMALL)
    assert bonus.core.keys.num == 16 * 8
    said = follow(bonus, boards, calls=13, ticks=10)
    assert changed(said, "frozen") == [160, 240, 320, 400]
    assert changed(said, "live") == list(range(80, 521, 40))
    assert said[-1]["met"] > 20


@pytest.mark.parametrize(
    "keys", [primax.Codes(dims=2, levels=4), pytest.param("encoded", marks=pytest.mark.slow)]
)
def test_counts_are_those_of_now_whatever_becomes_of_the_scale(keys):
    """The scale of networks moves with every window; that of the keys with the keys alone."""
    settings = SMALL | {"replay": 1_000}
    bonus = primax.bonus("count", CART, envs=2, keys=keys, settings=settings)
    said = follow(bonus, carts, calls=16, ticks=20)
    assert changed(said, "frozen") == [160, 240, 320, 400, 480, 640]
    assert changed(said, "moments") == list(range(80, 641, 80))
    assert changed(said, "scale") == [80, 240, 320, 400, 480, 640]
    for call in (5, 7, 15):  # that which the newest updates saw
        np.testing.assert_array_equal(said[call]["scale"], said[call - 1]["moments"])
    assert said[-1]["met"] > 8


def test_seeds_that_are_mapped_over_are_renewed_as_one_by_one():
    """Of three, one is a window ahead, and one begins its windows when the others do not.

    Renewals come after 1, 2 and 4 windows: when the first has its second, the second has none.
    """
    keys = primax.Place(slow_levels=2, growth=2.0)
    bonus = primax.bonus("count", BOARD, envs=2, keys=keys, settings=SMALL)
    rng = np.random.default_rng(3)
    part = jax.tree.map(jnp.asarray, boards(rng, 110, 2))
    states = [bonus.init(seed) for seed in range(3)]
    for seed, ahead in ((1, 40), (2, 30)):
        states[seed], _ = bonus.step(states[seed], jax.tree.map(lambda x, n=ahead: x[:n], part))
    many = jax.tree.map(lambda *x: jnp.stack(x), *states)
    many, worth = jax.jit(jax.vmap(bonus.step, in_axes=(0, None)))(many, part)
    assert many.windows.tolist() == [3, 4, 3]
    for seed, state in enumerate(states):
        alone, paid = bonus.step(state, part)
        np.testing.assert_allclose(worth[seed], paid, rtol=1e-6)
        np.testing.assert_array_equal(many.reward[seed], alone.reward)
        # Not the shifts: their gradient may be rounding alone, of which Adam makes whole steps.
        frozen = many.keys.frozen.first.weight[seed]
        np.testing.assert_allclose(frozen, alone.keys.frozen.first.weight, atol=1e-5)
        first = bonus.init(seed).keys.frozen.first.weight
        assert not np.allclose(frozen, first, atol=1e-3)


# Learning


def test_a_callers_minibatch_teaches_keys_and_changes_none():
    """Before the first window nothing is learnt; after it, what makes keys stays until a renewal."""
    settings = SMALL | {"update_every": 0}
    bonus = primax.bonus("count", BOARD, envs=4, keys="place", settings=settings)
    part = boards(np.random.default_rng(1), 20, 4)
    few = jax.tree.map(lambda x: x[:10], part)
    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), part)
    state, _ = bonus.step(bonus.init(0), few)
    fresh = weights(state.keys.live)
    state, _ = bonus.learn(state, flat)
    np.testing.assert_array_equal(weights(state.keys.live), fresh)
    state, _ = bonus.step(state, few)
    was, losses = bonus.score(state, flat), []
    for _ in range(200):
        state, metrics = bonus.learn(state, flat)
        losses.append(float(metrics["keys_loss"]))
    assert losses[-1] < 0.8 * losses[0]
    np.testing.assert_array_equal(bonus.score(state, flat), was)
    for _ in range(2):  # a window begins at 140
        state, _ = bonus.step(state, few)
    np.testing.assert_array_equal(weights(state.keys.frozen), weights(state.keys.live.coder))
    np.testing.assert_array_equal(state.reward, recount(bonus, state, [few] * 4))


def shots(rng, time: int, envs: int) -> tuple[Transition, np.ndarray]:
    """Images of 20x20: a white square of 2x2 over noise that flickers; and the square's block."""
    actions, cells = walk(rng, time, envs, 10)
    obs = rng.integers(0, 100, (time + 1, envs, 20, 20, 1)).astype(np.uint8)
    for when in np.ndindex(time + 1, envs):
        row, col = 2 * cells[when]
        obs[(*when, slice(row, row + 2), slice(col, col + 2))] = 255
    return transitions(obs, actions), cells[:-1] @ [10, 1]


@pytest.mark.long
def test_the_place_in_an_image_is_the_square_that_actions_move():
    """After 2,000 steps nine of ten keys name the square's block; before, next to none.

    The square is 255 and the noise below 100: where that goes up to 200, some seeds do not find it.
    """
    settings = {"replay": 4_000, "recent": 500, "window": 500, "warmup": 500, "update_every": 1}
    bonus = primax.bonus("count", Space((20, 20, 1), 5), envs=4, keys="place", settings=settings)
    assert bonus.core.keys.num == 100 * 8
    rng, state, shares = np.random.default_rng(0), bonus.init(0), []
    for _ in range(4):
        part, block = shots(rng, 125, 4)
        state, _ = bonus.step(state, part)
        key = bonus.core.keys.of(state.keys, jnp.asarray(part.obs.reshape(-1, 20, 20, 1)))
        shares.append(float(np.mean(np.asarray(key) // 8 == block.reshape(-1))))
    assert shares[0] < 0.1 and shares[-1] > 0.9


def test_coins_are_flipped_by_the_number_of_a_step():
    """Rows that are drawn say which step of the run they were, over all environments."""
    bonus = primax.bonus("count", Space((4,), 2, num_keys=4), envs=3, settings=SMALL)
    core, found = bonus.core, []
    part = carts(np.random.default_rng(0), 150, 3)
    keys = np.zeros((150, 3), int)
    task = np.arange(450.0).reshape(150, 3)
    part = Transition(part.obs, part.action, part.next_obs, keys > 0, keys > 0, keys, keys, task)
    state, _ = bonus.step(bonus.init(0), part)
    learnt = lambda state, batch, key, k: (found.append(batch), state.keys, {})  # noqa: E731
    object.__setattr__(core, "_learnt", learnt)
    core._updated(state, jax.random.key(0))
    recent = core._recent(state).rows
    assert found[0].number.min() >= 450 - 133 * 3
    for rows in (found[0], recent):
        np.testing.assert_array_equal(rows.number, rows.task)


# Files, names, and what is refused


def test_a_state_with_learnt_keys_saves_and_goes_on_to_the_same_bits(tmp_path):
    bonus = primax.bonus("count", BOARD, envs=4, keys="place", settings=SMALL)
    rng = np.random.default_rng(2)
    first, second = boards(rng, 20, 4), boards(rng, 20, 4)
    state, _ = bonus.step(bonus.init(0), first)
    bonus.save(state, tmp_path / "state.npz")
    going, a = bonus.step(state, second)
    loaded, b = bonus.step(bonus.load(tmp_path / "state.npz"), second)
    np.testing.assert_array_equal(a, b)
    for name in ("keys", "reward", "rows"):
        np.testing.assert_array_equal(*(weights(getattr(s, name)) for s in (going, loaded)))
    assert int(going.windows) == 2
    other = primax.bonus("count", BOARD, 4, keys=primax.Place(growth=2.0), settings=SMALL)
    with pytest.raises(
        InputError, match=r"keys = Place\(.*growth=1.25\).*has Place\(.*growth=2.0\)"
    ):
        other.load(tmp_path / "state.npz")


@pytest.mark.parametrize(
    "said, make",
    [
        ("a vector has no places", lambda: primax.bonus("prime", CART, keys="place")),
        ("a vector has no places", lambda: primax.bonus("count", CART, keys=primax.Place())),
        (
            "codes times slow_levels",
            lambda: primax.bonus("count", BOARD, keys=primax.Codes(dims=9)),
        ),
        ("Encoded: bits", lambda: primax.bonus("count", BOARD, keys=primax.Encoded(bits=33))),
        ("dirichlet cannot count again", lambda: primax.bonus("dirichlet", BOARD, keys="place")),
        ("key, next_key: not expected", lambda: with_keys()),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(said, make):
    with pytest.raises(InputError, match=said) as error:
        make()
    assert "\n" not in str(error.value)


def with_keys():
    bonus = primax.bonus("count", BOARD, keys="place")
    part = boards(np.random.default_rng(0), 2, 1)
    key = np.zeros((2, 1), int)
    bonus.step(bonus.init(0), Transition(*list(vars(part).values())[:5], key, key))


def test_keys_have_names_and_options():
    """By name and as objects; a reward that counts nothing has none."""
    codes = primax.bonus("prime", CART, keys=primax.Codes(dims=2)).core
    assert codes.keys.num == 8**2 * 8 and codes.reward.spec.num_keys == 2 * codes.keys.num
    place = primax.bonus("prime", BOARD, keys="place")
    assert "Place(slow_levels=8, learning_rate=0.001, growth=1.25)" in repr(place)
    assert not primax.bonus("rnd", BOARD, keys="place").core.keys.learns
    with pytest.warns(UserWarning, match=r"'place', 'codes' or 'encoded'"):
        primax.bonus("count", CART)
