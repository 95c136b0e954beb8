"""What PRIME and its policy are measured by, on numbers worked by hand."""

import jax.numpy as jnp
import numpy as np
import pytest

from primax.agent import policy_metrics
from primax.config.schema import NetConfig
from primax.rewards.base import Spec
from primax.rewards.prime import intrinsic, telemetry
from primax.rewards.transition import Batch, Recent

assert_close = np.testing.assert_allclose
LOG2 = 0.6931472


def table(*rows: list[int]):
    return jnp.array(rows, jnp.int32)


def test_entropy_and_its_correction():
    """3 to 1: 0.5623351, and (2 - 1) / 8 more; one action has none; neither has nothing."""
    counts = table([3, 1, 0], [7, 0, 0], [0, 0, 0])
    assert_close(policy_metrics.entropy(counts, False), [0.5623351, 0, 0], rtol=1e-6)
    assert_close(policy_metrics.entropy(counts, True), [0.6873351, 0, 0], rtol=1e-6)


def test_mutual_information_by_hand():
    """Two states that always tell the action: H(A) = log 2 + 1/40, and nothing is left over."""
    told = table([10, 0], [0, 10])
    assert float(policy_metrics.mutual_information(told)) == pytest.approx(LOG2 + 0.025, rel=1e-6)
    # Four rows are too few for a state to count; five are enough: 15 to 10 of 25, and 1/50.
    few, enough = table([10, 0], [0, 10], [4, 0]), table([10, 0], [0, 10], [5, 0])
    assert float(policy_metrics.mutual_information(few)) == pytest.approx(LOG2 + 0.025, rel=1e-6)
    assert float(policy_metrics.mutual_information(enough)) == pytest.approx(
        0.6730117 + 0.02, rel=1e-6
    )
    # log 2 + 1/24 less log 2 + 1/12 is below zero.
    assert float(policy_metrics.mutual_information(table([3, 3], [3, 3]))) == 0.0
    # H(1/3) + 1/48 of all 24 rows, less a quarter of H(1/6) + 1/12 and three of H(1/6) + 1/36.
    mixed = float(policy_metrics.mutual_information(table([1, 5], [15, 3])))
    assert mixed == pytest.approx(0.6573475 - 0.25 * 0.5338945 - 0.75 * 0.4783390, rel=1e-5)
    assert float(policy_metrics.mutual_information(table([0, 0], [0, 0]))) == 0.0


def test_a_uniform_policy_has_no_mutual_information():
    """200 states of 25 rows, 5 actions: uncorrected it would be about 4 * 200 / 2 / 5000 = 0.08."""
    counts = np.random.default_rng(0).multinomial(25, [0.2] * 5, size=200)
    assert float(policy_metrics.mutual_information(jnp.asarray(counts, jnp.int32))) < 0.01


def test_greedy_entropy_by_hand():
    """States of 4 and 12 rows count, those of 3 do not: 4/16 log 2, and 12/16 of 3 to 1."""
    counts = table([2, 2], [9, 3], [2, 1], [0, 0])
    wanted = 0.25 * LOG2 + 0.75 * 0.5623351
    assert float(policy_metrics.greedy_entropy(counts)) == pytest.approx(wanted, rel=1e-6)
    assert float(policy_metrics.greedy_entropy(table([3, 0], [1, 2]))) == 0.0


def test_joint_counts_leave_out_what_is_not_valid():
    key, is_valid = jnp.array([0, 1, 1, 5, 5]), jnp.array([True, True, True, True, False])
    counts = policy_metrics.joint_counts(key, is_valid, num_keys=6, num_actions=2)
    assert counts.tolist() == [[1, 2], [0, 0], [0, 1]]


def parts(**changes) -> intrinsic.Parts:
    """Four elements; the last has no weight in the tests below."""
    heads, phi, psi = [0.4, 0.0, 0.0, 9.0], [0.1, 0.2, 0.0, 9.0], [0.1, 0.2, 0.0, 9.0]
    values = {
        "v_count": [0.1, 0.2, 0.3, 9.0],
        "v_lotv": [0.2, 0.1, 0.0, 99.0],
        "v_epi": [0.2, 0.2, 0.3, 99.0],
        "v_ale_heads": heads,
        "v_ale_phi": phi,
        "v_ale_psi": psi,
        "v_ale": [0.4, 0.2, 0.0, 9.0],
        "v_ahead": [0.2, 0.8, 0.0, 0.0],
        "bracket": [0.3, 0.0, 0.0, 9.0],
        "r_int": [-0.1, 0.2, 0.3, 1.0],
        "reward": [-1.5, 2.0, 0.5, -2.0],
    } | changes
    has_data = jnp.array([True, True, False, True])
    return intrinsic.Parts(
        **{name: jnp.array(x, jnp.float32) for name, x in values.items()}, has_data=has_data
    )


def test_what_is_said_of_a_minibatch():
    """Of three elements the gate closed one with data, one has none; φ and ψ tie, and φ is first."""
    weight = jnp.array([1.0, 1.0, 1.0, 0.0])
    said = telemetry.of_parts(parts(), weight, jnp.float32(2.0))
    wanted = {"v_count": 0.2, "v_lotv": 0.1, "v_epi": 0.7 / 3, "v_ale_heads": 0.4 / 3}
    wanted |= {"v_ale_phi": 0.1, "v_ale_psi": 0.1, "v_ale": 0.2, "v_ahead": 1 / 3, "bracket": 0.1}
    wanted |= {"r_int": 0.4 / 3, "penalty": 0.1, "lotv_leads": 1 / 3, "reward_clipped": 1 / 3}
    wanted |= {"clamped": 1 / 3, "no_data": 1 / 3, "clamped_batch": 0.0, "reward_abs_max": 2.0}
    wanted |= {"wins_heads": 1 / 3, "wins_phi": 1 / 3, "wins_psi": 0.0}
    assert set(said) == set(wanted)
    for name, value in wanted.items():
        assert float(said[name]) == pytest.approx(value, rel=1e-5, abs=1e-7), name


def test_a_batch_is_clamped_when_none_of_its_brackets_is_open():
    closed = parts(bracket=[0.0, 0.0, 0.0, 9.0])
    weight = jnp.array([1.0, 1.0, 1.0, 0.0])
    said = telemetry.of_parts(closed, weight, jnp.float32(2.0))
    assert float(said["clamped_batch"]) == 1.0
    assert float(said["clamped"]) == pytest.approx(2 / 3)


def test_the_margin_of_a_policy_from_uniform():
    """0.5 + 0.25 + 0.25 away, nothing away, and a row of no weight."""
    policy = jnp.array([[0.75, 0.0, 0.25, 0.0], [0.25] * 4, [1.0, 0.0, 0.0, 0.0]])
    weight = jnp.array([1.0, 1.0, 0.0])
    assert float(telemetry.from_uniform(policy, weight)) == pytest.approx(0.5)


def test_maps_are_means_over_the_rows_that_start_in_a_cell():
    """Rows in cells (0, 1) and (1, 0) of a 2x3 grid, levels and actions together; one not valid."""
    spec = Spec((1, 2, 3), 2, 24, 10, NetConfig(), 0.9, 4)
    assert spec.levels == 2
    cell, level, action = np.array([1, 1, 3, 1]), np.array([0, 1, 1, 0]), np.array([1, 0, 0, 0])
    key = jnp.asarray((cell * 2 + level) * 2 + action, jnp.int32)
    obs, zero = jnp.zeros((4, 1, 2, 3), jnp.uint8), jnp.zeros(4, jnp.float32)
    never, one = jnp.zeros(4, bool), jnp.ones(4, jnp.float32)
    rows = Batch(obs, key % 2, zero, obs, never, never, one, key, key // 2, (), ())
    is_valid = jnp.array([True, True, True, False])
    drawn = telemetry.maps(spec, parts(), Recent(rows, is_valid, never, jnp.zeros((4, 2))))
    nan = np.nan
    assert_close(drawn["v_epi"], [[nan, 0.2, nan], [0.3, nan, nan]], rtol=1e-6)
    assert_close(drawn["r_int"], [[nan, 0.05, nan], [0.3, nan, nan]], rtol=1e-5)
    assert_close(drawn["reward"], [[nan, 0.25, nan], [0.5, nan, nan]], rtol=1e-5)
    assert set(drawn) == {"v_epi", "v_ale", "v_ahead", "r_int", "reward"}
