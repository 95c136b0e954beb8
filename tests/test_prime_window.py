"""Whole PRIME windows against a numpy oracle; what must be ignored, and what must stay."""

import copy
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from prime_case import (
    ACTIONS,
    BUCKET,
    GAMMA,
    IDLE,
    KEY,
    NEAREST,
    NEVER,
    NUM,
    SPEC,
    agent,
    begun,
    live,
    lived,
    planes,
    program,
    queries,
    recent,
    same_bits,
    truth,
)

from primax.errors import InputError
from primax.rewards.prime import Prime, PrimeConfig
from primax.rewards.transition import Step

QUICK = [BUCKET, ("knn16", "uniform"), ("knn16", "gaussian")]
"""One of each kind: those that other tests here compile as well."""
KINDS = [
    pytest.param(*kind, marks=() if kind in QUICK else pytest.mark.slow)
    for kind in (BUCKET, *NEAREST)
]


@pytest.mark.parametrize(("moments", "weights"), KINDS)
def test_every_part_of_the_reward_is_the_oracles(moments, weights):
    state, said, parts, _ = begun(moments, weights)
    wanted, ask = truth(moments, weights), queries()
    np.testing.assert_allclose(state.window.slope, wanted.slope, rtol=1e-4)
    np.testing.assert_allclose(state.window.offset, wanted.offset, rtol=1e-4, atol=1e-6)
    values = wanted.parts(*(np.asarray(x) for x in (ask.obs, ask.action, ask.key)))
    assert set(values) == set(vars(parts))
    for name, value in values.items():
        np.testing.assert_allclose(getattr(parts, name), value, rtol=1e-4, atol=1e-12, err_msg=name)
    speak, l1 = lived().speak, lambda p, q: np.abs(p - q).sum(axis=1)
    for name, other in (("pi_ref_from_u_recent", 1 / ACTIONS), ("pi_act_from_ref", agent())):
        mean = l1(wanted.policy, other)[speak].mean()
        assert float(said[name]) == pytest.approx(mean, rel=1e-4)


def test_the_reference_and_the_probe_policy_of_the_snapshots_states():
    state, freezer = live(0), program(*BUCKET)[0].freezer
    nets = (state.constants, state.online, state.prior, state.inverse.encoder)
    readout = jax.jit(freezer.read_out)(*nets, jnp.asarray(lived().next_obs))
    np.testing.assert_allclose(readout.policy, truth(*BUCKET).policy, rtol=1e-4)
    assert readout.probe.tolist() == truth(*BUCKET).policy.argmax(axis=1).tolist()
    window = begun(*BUCKET)[0].window
    for probes, dim in ((window.phi_probes, 5), (window.psi_probes, 40)):
        assert probes.shape == (3, dim)
        np.testing.assert_allclose(np.linalg.norm(probes, axis=1), 1.0, rtol=1e-5)


def test_the_data_puts_every_branch_to_the_test():
    """Else agreement would say little."""
    slope, offset = truth(*BUCKET).slope, truth(*BUCKET).offset
    assert slope[2] == 0.6 < slope[1] < 1 and offset[1] < offset[2] == 0.1
    parts, rows = begun(*BUCKET)[2], lived()
    seen = np.stack([getattr(parts, f"v_ale_{name}") for name in ("heads", "phi", "psi")])
    assert set(seen.argmax(axis=0)[np.asarray(parts.v_ale) > 1e-3]) == {0, 1, 2}
    assert {-1.0, 1.0} < set(np.asarray(parts.reward).tolist())
    for mask in (parts.v_lotv > parts.v_count, (parts.bracket > 0)[parts.has_data], parts.has_data):
        assert 0.2 < float(mask.mean()) < 0.9
    assert float(parts.v_lotv.max()) > 0.01 and float(parts.v_ahead.max()) > 0.1
    alone, sizes = np.unique(rows.key[rows.speak], return_counts=True)
    assert sizes.min() == 1 and sizes.max() >= 5 and len(alone) >= 10
    assert not begun("knn16", "uniform")[2].has_data.all()


@pytest.mark.parametrize(
    ("moments", "weights"),
    [
        BUCKET,
        pytest.param("nearest16", "rank", marks=pytest.mark.slow),
        ("knn16", "gaussian"),
    ],
)
def test_rows_never_written_and_rows_of_no_weight_are_ignored_whatever_they_hold(moments, weights):
    """Poisoned with other observations, keys and actions, and not-a-numbers where there are floats."""
    rng, at = np.random.default_rng(7), np.concatenate([NEVER, IDLE])
    rows, policy, task = copy.deepcopy(lived()), agent().copy(), np.ones(NUM)
    rows.obs[at], rows.next_obs[at] = 255 * planes(rng, len(at)), planes(rng, len(at))
    # Some pose as rows of keys that are asked for, some of the action nobody took.
    rows.action[at], rows.next_key[at] = np.resize([0, 3, 1], len(at)), rng.integers(0, 60, len(at))
    rows.key[at] = rng.choice(lived().key // ACTIONS, len(at)) * ACTIONS + rows.action[at]
    rows.weight[NEVER] = np.resize([1.0, np.nan, 1e30], len(NEVER))
    rows.is_last[NEVER] = NEVER % 2 == 0
    policy[at], task[at] = np.nan, 1e30
    again, said, parts, maps = program(moments, weights)[1](live(0), recent(rows, policy, task))
    state, *before = begun(moments, weights)
    assert same_bits((said, parts, maps), tuple(before))
    assert same_bits(again.window.slope, state.window.slope)
    assert same_bits(again.window.offset, state.window.offset)
    assert not same_bits(again.window.moments, state.window.moments)


@pytest.mark.parametrize(("moments", "weights"), [BUCKET, ("knn16", "gaussian")])
def test_within_a_window_a_reward_recomputes_to_the_same_bits_whatever_lives_beside_it(
    moments, weights
):
    state, *_ = begun(moments, weights)
    broken = lambda tree: jax.tree.map(lambda x: x * jnp.nan, tree)  # noqa: E731
    other = replace(
        state,
        online=broken(state.online),
        inverse=broken(state.inverse),
        novelty=state.novelty[::-1] + 3,
    )
    score = jax.jit(program(moments, weights)[0].score)
    assert same_bits(score(state, queries()), score(other, queries()))
    assert float(jnp.abs(score(state, queries())).max()) > 0


def test_live_counts_move_what_counts_alone():
    """κγ²tanh²(1/√(N+1)) of the table as it is now; all else is of the window."""
    frozen, (state, *_) = program(*BUCKET)[0], begun(*BUCKET)
    prime = Prime(SPEC, replace(frozen.config, counts="live"))
    state = replace(state, novelty=state.novelty[::-1] + 3)
    ask = queries()
    parts = jax.jit(lambda *args: prime.parts(*args))(state, ask)
    old = jax.jit(lambda *args: frozen.parts(*args))(state, ask)
    count = np.asarray(state.novelty)[np.asarray(ask.key)]
    value = 0.5 * GAMMA**2 * np.tanh((count + 1.0) ** -0.5) ** 2
    np.testing.assert_allclose(parts.v_count, value, rtol=1e-5)
    assert not np.allclose(parts.v_count, old.v_count, rtol=0.1)
    for name in ("v_lotv", "v_ale_heads", "v_ale_phi", "v_ale_psi", "v_ahead", "has_data"):
        assert same_bits(getattr(parts, name), getattr(old, name)), name
    with pytest.raises(InputError, match=r"reward\.novelty=rnd counts nothing"):
        PrimeConfig(counts="live", novelty="rnd")


@pytest.mark.parametrize(
    ("part", "moved", "kept"),
    [
        ("online", ("v_lotv", "v_ale_heads", "v_ahead"), ("v_count", "v_ale_phi", "v_ale_psi")),
        ("inverse", ("v_ale_phi",), ("v_count", "v_lotv", "v_ale_heads", "v_ale_psi", "v_ahead")),
        ("novelty", ("v_count", "v_ahead"), ("v_lotv", "v_ale_heads", "v_ale_phi", "v_ale_psi")),
    ],
)
def test_the_next_boundary_takes_over_what_has_lived_since(part, moved, kept):
    state, _, old, _ = begun(*BUCKET)
    changed = replace(state, **{part: getattr(live(1), part)})
    state, said, new, _ = program(*BUCKET)[1](changed, recent(lived(), agent()))
    for name in kept:
        assert same_bits(getattr(old, name), getattr(new, name)), name
    for name in (*moved, "r_int"):
        assert not np.allclose(getattr(old, name), getattr(new, name), rtol=1e-3), name
    # The first queries are the rows of the snapshot.
    jump = np.abs(np.asarray(new.reward) - np.asarray(old.reward))[:NUM][lived().speak].mean()
    assert float(said["reward_jump"]) == pytest.approx(jump, rel=1e-4)


def test_a_step_counts_its_key_and_leaves_the_window_alone():
    state, rows = begun(*BUCKET)[0], lived()
    obs, next_obs = jnp.asarray(rows.obs[9]), jnp.asarray(rows.next_obs[9])
    step = Step(obs, jnp.int32(1), next_obs, jnp.int32(17), jnp.float32(0))
    after, _ = program(*BUCKET)[0].observe(state, step, KEY)
    assert np.flatnonzero(after.novelty - state.novelty).tolist() == [17]
    assert int(after.novelty[17] - state.novelty[17]) == 1
    assert same_bits(replace(after, novelty=0), replace(state, novelty=0))
