"""A plain count bonus must not pass for PRIME: for each part a window in which it decides.

Every case says by hand what the reward must be, then takes the part out and sees that the reward
is no longer that. Counts are a thousand million unless a case needs novelty, so they pay nothing.
"""

import copy
import functools
from dataclasses import asdict

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tabular import ACTIONS, CELLS, GAMMA, NET, Bench, batch

from primax.errors import InputError
from primax.methods import METHODS
from primax.presets import configure
from primax.rewards.base import Spec
from primax.rewards.prime import Prime, PrimeConfig, heads, intrinsic, window
from primax.rewards.prime import reward as reward_file

FLAT = np.zeros((CELLS, ACTIONS))
NOISE = [(0, 0, 1), (0, 0, 2), (0, 1, 3), (0, 1, 3)]
"""From cell 0: action 0 leads to cell 1 or 2, action 1 to cell 3."""


def table(**rows) -> np.ndarray:
    """Logits by cell: `table(c1=[...])`, zero elsewhere."""
    made = FLAT.copy()
    for name, values in rows.items():
        made[int(name[1:])] = values
    return made


def policy(logits) -> np.ndarray:
    weights = np.exp(np.asarray(logits, float))
    return weights / weights.sum()


def g(reference, logits, slope=1.0) -> float:
    """The continuation by hand: (π_ref - u) · slope · logits."""
    return float((policy(reference) - 0.2) @ (slope * np.asarray(logits, float)))


def reward(v_epi: float, noise: float) -> float:
    """By hand, before the clip."""
    return float(50 * (v_epi - 0.5 * np.log1p(noise / 0.5)))


ONE, OTHER = [0.8, -0.4, 0.0, 0.0, 0.0], [-0.8, 0.4, 0.0, 0.0, 0.0]


def lotv_case():
    """Two heads agree on cell 3 and disagree on cells 1 and 2, where action 0 leads."""
    bench = Bench(
        [(0, 0, 1), (0, 0, 1), (0, 1, 3), (0, 1, 3)],
        [table(c1=ONE, c3=ONE), table(c1=OTHER, c3=ONE)],
        calibration=1,
        a_max=1.0,
        log_scale=1e6,
    )
    means = GAMMA * np.array([g(ONE, ONE), g(ONE, OTHER)])
    return bench, (0, 0), reward(means.var(), 0.0)


def heads_case():
    """One head values cells 1 and 2 differently; φ is blind and the ψ probes see less."""
    bench = Bench(NOISE, [table(c1=[1.9, -1.9, 0, 0, 0])], probes=1, feature_dim=2)
    y = GAMMA * np.array([g([1.9, -1.9, 0, 0, 0], [1.9, -1.9, 0, 0, 0]), 0.0])
    assert y.var() > bench.parts(0, 0).v_ale_psi
    return bench, (0, 0), reward(0.0, y.var())


def phi_case():
    """φ tells cells 1 and 2 apart by two full units; heads are blind and ψ sees less."""
    bench = Bench(NOISE, [FLAT, FLAT], phi=[[0, 0], [9, 9], [-9, -9], [0, 0]])
    spread = GAMMA * np.asarray(bench.state.window.phi_probes) @ np.array([1.0, 1.0])
    assert (spread**2).mean() > bench.parts(0, 0).v_ale_psi
    return bench, (0, 0), reward(0.0, (spread**2).mean())


def psi_case():
    """Heads and φ are blind: the observation itself shows the noise."""
    bench = Bench(NOISE, [FLAT, FLAT])
    probes = np.asarray(bench.state.window.psi_probes)
    half = GAMMA * (probes[:, 1] - probes[:, 2]) / 2
    return bench, (0, 0), reward(0.0, (half**2).mean())


def gate_case():
    """Noise again, but both cells it leads to have never been left by the probe action."""
    bench = Bench(NOISE, [FLAT, FLAT], counts={(1, 0): 0, (2, 0): 0})
    assert bench.parts(0, 0).v_ale_psi > 0
    return bench, (0, 0), reward(0.0, 0.0)


def probe_policy_case():
    """Only action 3 is new in cells 1 and 2, and the reference head prefers it there."""
    wants = [0, 0, 0, 1.0, 0]
    bench = Bench(NOISE, [table(c1=wants, c2=wants)], counts={(1, 3): 0, (2, 3): 0})
    return bench, (0, 0), reward(0.0, 0.0)


def calibration_case():
    """The second head is the first at half the scale: calibrated, they agree."""
    bench = Bench(
        [(0, 0, 1), (0, 0, 1), (0, 1, 3), (0, 1, 3)],
        [table(c1=ONE), table(c1=np.array(ONE) / 2)],
        log_scale=1e6,
    )
    return bench, (0, 0), reward(0.0, 0.0)


def prior_case():
    """The networks say nothing: all that two heads disagree on comes from their priors."""
    prior = np.array([table(c1=[0.2, 0, 0, 0, 0]), table(c1=[-0.2, 0, 0, 0, 0])])
    bench = Bench(
        [(0, 0, 1)] * 4, [FLAT, FLAT], prior=prior, calibration=1, a_max=1.0, log_scale=1e6
    )
    logits = 2 * np.tanh(2 * prior[:, 1])
    means = GAMMA * np.array([g(logits[0], logits[0]), g(logits[0], logits[1])])
    return bench, (0, 0), reward(means.var(), 0.0)


def freeze_case():
    """A key never met when the window began stays new until it ends."""
    bench = Bench([(0, 0, 1)] * 4, [FLAT, FLAT], counts={(3, 2): 0})
    live = bench.state.novelty.at[3 * ACTIONS + 2].add(10**9)
    bench.state = jax.tree.map(lambda x: x, bench.state)
    object.__setattr__(bench.state, "novelty", live)
    return bench, (3, 2), reward(0.5 * GAMMA**2 * np.tanh(1.0) ** 2, 0.0)


def nothing(x, *_):
    return jnp.zeros(x.shape[:-1])


def live_parts(self, state, batch):
    """What scoring would be without the freeze: the novelty of now."""
    now = window.Window(**{**vars(state.window), "novelty": state.novelty})
    return self.freezer.parts(now, reward_file._where(batch))


CASES = {
    "lotv": (lotv_case, (window.lotv, "epistemic", nothing)),
    "heads": (heads_case, (window.lotv, "aleatoric", nothing)),
    "phi": (phi_case, (window.inverse, "encode", lambda _, seen: jnp.zeros((seen.shape[0], 2)))),
    "psi": (psi_case, (window.probes, "psi", lambda obs: jnp.zeros((obs.shape[0], CELLS)))),
    "gate": (gate_case, (window.gate, "look_ahead", lambda value, *_: jnp.zeros_like(value))),
    "bracket": (gate_case, (intrinsic, "bracket", lambda v_ale, *_: v_ale)),
    "probe policy": (
        probe_policy_case,
        (heads, "probe_policy", lambda p: jnp.zeros(p.shape[:-1], jnp.int32)),
    ),
    "calibration": (
        calibration_case,
        (heads, "calibrate", lambda e, *_: (jnp.ones(len(e)), jnp.zeros(len(e)))),
    ),
    "prior": (prior_case, (heads, "quantiles", None)),
    "freeze": (freeze_case, (Prime, "parts", live_parts)),
}


def without_prior(net, prior, patches, num_actions, constants):
    raw = net(patches)
    return constants.quantile_bound * jnp.tanh(raw).reshape(raw.shape[0], num_actions, -1)


@functools.cache
def case(make):
    """Made once; a test that changes it takes a copy."""
    return make()


@pytest.mark.parametrize("part", CASES)
def test_the_part_decides_the_reward(part):
    bench, (cell, action), expected = case(CASES[part][0])
    assert bench.parts(cell, action).reward == pytest.approx(expected, rel=1e-4, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("part", CASES)
def test_without_the_part_the_reward_is_another(part, monkeypatch):
    bench, (cell, action), expected = case(CASES[part][0])
    where, name, substitute = CASES[part][1]
    monkeypatch.setattr(where, name, substitute or without_prior)
    bench = copy.copy(bench)
    if part == "freeze":  # the live counts are in the state that is there
        bench.trace()
    else:
        bench.refresh()
    assert abs(bench.parts(cell, action).reward - expected) > 0.01


def test_no_weight_on_noise_leaves_scaled_novelty_alone():
    """λ = 0: clip(50 V_epi), noise or not."""
    counts = {(0, 0): 3, (0, 1): 40}
    bench = Bench(NOISE, [FLAT, FLAT], counts=counts, aleatoric_weight=0.0, reward_clip=2.0)
    for action, count in ((0, 3), (1, 40)):
        v_epi = 0.5 * GAMMA**2 * np.tanh((count + 1) ** -0.5) ** 2
        assert bench.parts(0, action).v_ale_psi > 0 or action == 1
        assert bench.parts(0, action).reward == pytest.approx(min(2.0, 50 * v_epi), rel=1e-5)


@pytest.mark.slow
def test_one_head_disagrees_with_nobody():
    bench = Bench(NOISE, [table(c1=ONE, c2=OTHER)])
    assert all(bench.parts(cell, action).v_lotv == 0.0 for cell in range(4) for action in range(5))


def test_without_gate_weight_look_ahead_subtracts_nothing():
    counts = {(1, 0): 0, (2, 0): 0}
    gated, ungated = (Bench(NOISE, [FLAT], counts=counts, gate_weight=w) for w in (0.5, 0.0))
    parts = ungated.parts(0, 0)
    assert parts.v_ahead == gated.parts(0, 0).v_ahead > 0
    assert parts.bracket == parts.v_ale > 0 == gated.parts(0, 0).bracket


def test_where_the_snapshot_knows_nothing_only_the_count_speaks():
    bench = Bench(NOISE, [table(c1=ONE), table(c1=OTHER)], counts={(2, 4): 8})
    parts = bench.parts(2, 4)
    assert not parts.has_data
    assert parts.v_lotv == parts.v_ale == parts.v_ahead == 0.0
    assert parts.reward == pytest.approx(50 * 0.5 * GAMMA**2 * np.tanh(1 / 3) ** 2, rel=1e-5)


def test_only_prime_has_the_soft_bound():
    """The paper gives it with PRIME's networks; its baseline table has none."""
    bound = {name: configure(name, "maze").critics.q_penalty for name in METHODS}
    assert bound == dict.fromkeys(METHODS, 0.0) | {"prime": 0.1}


def test_one_configuration_for_both_worlds():
    """Byte-identical but for the world and its budget of steps."""
    ours = [asdict(configure("prime", world)) for world in ("butterflies", "maze")]
    assert [config.pop("steps") for config in ours] == [250_000, 200_000]
    assert [config.pop("world")["layout"][:4] for config in ours] == ["open", "full"]
    assert ours[0] == ours[1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reward.temperature": "0"}, "reward.temperature"),
        ({"reward.a_min": "3"}, "must not exceed reward.a_max"),
        ({"reward.gate_horizon": "0"}, "reward.gate_horizon"),
        ({"reward.log_scale": "0"}, "reward.log_scale"),
        ({"reward.gate_decay": "1.5"}, "reward.gate_decay"),
        ({"reward.aleatoric_weight": "-1"}, "reward.aleatoric_weight"),
        ({"reward.bonus": "sqrt"}, "reward.bonus"),
        ({"reward.moments": "knn"}, "reward.moments"),
        ({"reward.heads": "0"}, "reward.heads"),
        ({"reward.calibration": "6_000"}, "reward.calibration"),
        ({"critics.gamma": "1"}, "critics.gamma"),
        ({"critics.gamma": "0"}, "critics.gamma"),
        ({"window": "6_000"}, "must not be longer than recent"),
    ],
)
def test_bad_options_are_refused_before_anything_is_compiled(settings, message):
    with pytest.raises(InputError, match=message):
        configure("prime", "maze", "paper", settings)


def test_a_key_space_that_does_not_fit_is_refused():
    like = Spec((1, 1, CELLS), ACTIONS, CELLS * ACTIONS, 100, NET, GAMMA, 4)
    for num_keys in (10**9, 21, 3):
        spec = Spec(**{**vars(like), "num_keys": num_keys})
        with pytest.raises(InputError, match="count keys"):
            Prime(spec, PrimeConfig())


@pytest.mark.slow
def test_batches_are_scored_row_by_row():
    bench = Bench(NOISE, [table(c1=ONE), table(c1=OTHER)], counts={(1, 1): 5})
    rows = [(0, 0, 1), (1, 1, 2), (3, 4, 0)]
    together = np.asarray(bench.prime.score(bench.state, batch(rows)))
    alone = [bench.parts(cell, action).reward for cell, action, _ in rows]
    np.testing.assert_array_equal(together, np.array(alone, np.float32))
