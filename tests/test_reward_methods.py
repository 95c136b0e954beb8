"""Every method: it fits every world, runs with several seeds, and gives the same bits twice."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reward_case import SPEC, dreamt, lived, tiny

from primax.methods import METHODS, build
from primax.presets import configure, paper
from primax.rewards.transition import Step
from primax.runs import trees
from primax.worlds import WORLDS

NAMES = {"random", "task", "smirl", "rnd", "disagreement", "s_adapt", "moss", "rnd_snapshot"}
NAMES |= {"ensemble_snapshot", "icm", "count", "dirichlet", "prime"}
NAMES |= {"noveld", "e3b", "ama", "lpm", "net_novelty"}
SMALL = {
    "disagreement": {"reward.models": "2", "reward.features": "4", "reward.hidden": "6"},
    "ensemble_snapshot": {"reward.models": "2", "reward.features": "4", "reward.hidden": "6"},
    "moss": {"reward.features": "4", "reward.hidden": "6", "reward.neighbours": "3"},
    "noveld": {"reward.features": "4"},
    "e3b": {"reward.features": "4"},
    "lpm": {"reward.hidden": "6", "reward.memory": "40"},
}
RUNS = {
    "smirl": "butterflies",
    "rnd": "maze",
    "disagreement": "two_wings",
    "s_adapt": "butterflies",
    "moss": "maze",
    "rnd_snapshot": "two_wings",
    "ensemble_snapshot": "maze",
    "icm": "two_wings",
    "count": "maze",
    "dirichlet": "two_wings",
    "noveld": "maze",
    "e3b": "two_wings",
    "ama": "maze",
    "lpm": "two_wings",
}


def test_the_names():
    assert set(METHODS) >= NAMES
    assert set(METHODS) - NAMES <= {"none"}


@pytest.mark.parametrize("method", sorted(RUNS))
def test_baselines_have_the_papers_baseline_table(method):
    config = paper(method, "butterflies")
    critics, explore = config.critics, config.explore
    assert (critics.gamma, critics.batch, critics.learning_rate) == (0.99, 64, 3e-4)
    assert (critics.sync_every, critics.grad_clip, critics.heads) == (1_000, 10.0, 1)
    assert (config.replay, config.warmup) == (100_000, 1_000)
    assert (explore.start, explore.end, explore.fraction) == (1.0, 0.05, 0.25)


def life(config):
    """All that a learner asks of a reward, once; its shapes are what matters."""
    world, reward = build(config)
    k_world, k_reward, k_step = jax.random.split(jax.random.key(0), 3)
    obs = world.observe(world.reset(k_world))
    state, memo = reward.begin(reward.init(k_reward), obs, k_step)
    zero = jnp.int32(0)
    after, next_memo = reward.observe(state, Step(obs, zero, obs, zero, jnp.float32(0)), k_step)
    many = lambda x, num: jax.tree.map(lambda y: jnp.broadcast_to(y, (num, *y.shape)), x)  # noqa: E731
    blank = reward.spec.no_rows()
    rows = replace(
        blank.rows,
        memo=many(memo, config.recent),
        next_memo=many(next_memo, config.recent),
        number=jnp.arange(config.recent),
    )
    recent = replace(blank, rows=rows)
    frozen, _ = reward.refresh(after, recent, k_step)
    batch = jax.tree.map(lambda x: x[: config.critics.batch], recent.rows)
    learnt, said = reward.learn(frozen, batch, k_step)
    view = reward.view(batch.next_obs, batch.next_memo)
    assert view.shape[1:] == reward.view(obs, memo).shape == reward.view_shape
    assert reward.score(learnt, batch).shape == (config.critics.batch,)
    for name, value in said.items():
        assert value.shape == (), name
    return state, after, frozen, learnt, (memo, next_memo)


@pytest.mark.parametrize(
    "world",
    [pytest.param(w, marks=() if w == "maze" else pytest.mark.slow) for w in sorted(WORLDS)],
)
def test_every_state_keeps_its_shape_in_every_world(world):
    """So it can be carried by a scan; and every leaf is an array, so it can be kept and resumed."""
    variants = [(method, {}) for method in sorted(NAMES)]
    variants += [("rnd", {"reward.read": "lived", "reward.whiten": "true"})]
    variants += [("smirl", {"reward.map": "cells"}), ("disagreement", {"reward.whiten": "true"})]
    variants += [("prime", {"reward.novelty": novelty}) for novelty in ("rnd", "ensemble", "cfn")]
    for method, settings in variants:
        *states, memos = jax.eval_shape(lambda: life(configure(method, world, "smoke", settings)))  # noqa: B023
        for state in states[1:]:
            assert jax.tree.structure(state) == jax.tree.structure(states[0]), method
        for leaves in zip(*map(jax.tree.leaves, states), strict=True):
            assert len({(x.shape, x.dtype) for x in leaves}) == 1, (method, leaves)
        first, second = map(jax.tree.leaves, memos)
        assert [(x.shape, x.dtype) for x in first] == [(x.shape, x.dtype) for x in second], method


def data(leaf):
    is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(leaf) if is_key else leaf)


def same_bits_twice(run):
    first, second = run(), run()
    for a, b in zip(*map(jax.tree.leaves, (first, second)), strict=True):
        np.testing.assert_array_equal(data(a), data(b))
    return first


def is_finite(tree) -> bool:
    return all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(tree))


COSTLY = ("disagreement", "moss", "rnd_snapshot", "ensemble_snapshot", "icm", "ama", "lpm")
"""Their programs take the longest, and each has a file of its own tests."""
BY_COST = [
    pytest.param(method, marks=pytest.mark.slow if method in COSTLY else ()) for method in RUNS
]


@pytest.mark.parametrize("method", BY_COST)
def test_the_same_seeds_give_the_same_bits_others_do_not_and_a_checkpoint_keeps_them(method):
    options = {name.removeprefix("reward."): int(x) for name, x in SMALL.get(method, {}).items()}
    reward = METHODS[method].reward(SPEC, METHODS[method].options(**options))
    state, (scores, said) = same_bits_twice(dreamt(reward))
    assert is_finite((state, scores, said))
    assert any(not np.array_equal(leaf[0], leaf[1]) for leaf in jax.tree.leaves(state))
    kept = trees.restore(trees.dump(state), jax.eval_shape(lambda: state))
    for a, b in zip(*map(jax.tree.leaves, (kept, state)), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    assert (scores != 0).any(axis=(1, 2)).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "world"),
    [
        pytest.param(*run, marks=() if run[0] in ("smirl", "rnd", "count") else pytest.mark.long)
        for run in RUNS.items()
    ],
)
def test_the_learner_gives_the_same_bits_twice_under_every_method(method, world):
    state, said = same_bits_twice(lived(tiny(method, world, **SMALL.get(method, {}))))
    assert is_finite((state.critics, state.reward, said["window"]))
    online = state.critics.online.head.weight
    assert not np.array_equal(online[0], online[1])
    assert (np.abs(said["window"]["reward"]) > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    "novelty", ["rnd", *(pytest.param(x, marks=pytest.mark.long) for x in ("ensemble", "cfn"))]
)
def test_prime_runs_on_a_learnt_novelty(novelty):
    small = {"reward.heads": "1", "reward.calibration": "8", "reward.probes": "2"}
    config = tiny("prime", "maze", **small | {"reward.novelty": novelty})
    state, said = same_bits_twice(lived(config))
    assert is_finite((state.critics, state.reward, said["window"]))
    assert (said["window"]["v_count"] > 0).all()
