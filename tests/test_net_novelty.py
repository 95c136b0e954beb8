"""Net novelty: its formulas by hand, its memory against numpy, and what each part is for."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reward_case import KEY, PLANES, SPEC, STATES, batch, observations, snapshot, step

from primax.errors import InputError
from primax.presets import configure
from primax.rewards.net_novelty import (
    Moments,
    NetNovelty,
    NetNoveltyConfig,
    merged,
    noise_share,
    nothing,
)

FLAT = int(np.prod(PLANES))
WEIGHT = 0.3


def made(**options):
    """The reward, with every direction a probe, so that the share of noise is exact."""
    reward = NetNovelty(SPEC, NetNoveltyConfig(aleatoric_weight=WEIGHT, **options))
    state = reward.init(KEY)
    size = {"probes": jnp.eye(FLAT), "moments": nothing(SPEC.num_keys, FLAT)}
    return reward, replace(state, **size)


REFRESH = jax.jit(lambda reward, state, recent: reward.refresh(state, recent, KEY))
"""One program for all tests of one size."""


def rows(seed: int, first: int, num: int = 8):
    """Rows numbered from `first` on, the last of which teaches nothing."""
    return replace(batch(seed, num), number=first + jnp.arange(num, dtype=jnp.int32))


def share(obs) -> float:
    """tr Var of observations scaled to unit length."""
    flat = np.asarray(obs, float).reshape(len(obs), -1)
    length = np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1.0)
    return float((flat / length).var(axis=0).sum())


def joined(*batches):
    """Snapshots' rows one after the other."""
    fields = ("next_obs", "key", "weight")
    return {x: np.concatenate([np.asarray(getattr(b, x)) for b in batches]) for x in fields}


def test_two_sets_of_readings_are_merged_by_hand():
    """0 and 2 with 5: mean 7/3, squared distances 49/9 + 1/9 + 64/9 = 38/3."""
    a = Moments(jnp.array([2.0]), jnp.array([[1.0]]), jnp.array([2.0]))
    b = Moments(jnp.array([1.0]), jnp.array([[5.0]]), jnp.array([0.0]))
    both = merged(a, b)
    np.testing.assert_allclose([both.num[0], both.mean[0, 0]], [3.0, 7 / 3], rtol=1e-6)
    np.testing.assert_allclose(both.spread[0], 38 / 3, rtol=1e-6)


def test_a_set_without_rows_changes_nothing():
    """Whatever its mean and spread say."""
    a = Moments(jnp.array([2.0]), jnp.array([[1.0]]), jnp.array([2.0]))
    empty = Moments(jnp.array([0.0]), jnp.array([[9e6]]), jnp.array([0.0]))
    for both in (merged(a, empty), merged(replace(empty, mean=jnp.zeros((1, 1))), a)):
        assert (both.num[0], both.mean[0, 0], both.spread[0]) == (2.0, 1.0, 2.0)


def test_the_share_of_noise_by_hand():
    """One coin beside the agent: means 0.853553 and 0.353553, so 1 - 0.728553 - 0.125 = 0.146447.

    Along the two axes the variances add up to that; their mean times two is the same.
    """
    psi = np.array([[1.0, 0.0], [2**-0.5, 2**-0.5]])
    spread = 2 * psi.var(axis=0).mean()  # of two rows, summed, and averaged over the two probes
    moments = Moments(jnp.array([2.0]), jnp.asarray(psi.mean(axis=0))[None], jnp.array([spread]))
    np.testing.assert_allclose(noise_share(moments, 2), [0.146447], atol=1e-6)
    np.testing.assert_allclose(noise_share(nothing(1, 2), 2), [0.0])


def test_the_reward_by_hand():
    """Met three times, with a tenth of noise: 1/√4 - 0.3 · 0.1 = 0.47; never met: 1."""
    reward, state = made()
    count, noise = state.frozen_count.at[7].set(3), state.frozen_noise.at[7].set(0.1)
    state = replace(state, frozen_count=count, frozen_noise=noise)
    found = reward.score(state, replace(batch(0, 2), key=jnp.array([7, 8])))
    np.testing.assert_allclose(found, [0.47, 1.0], rtol=1e-6)


@pytest.mark.parametrize("part", ["rows that teach nothing", "rows that were never written"])
def test_noise_is_that_of_all_rows_ever_lived_each_once(part):
    """Three snapshots that overlap by half, against numpy; what must be left out is poisoned."""
    reward, state = made()
    parts = [rows(seed, 4 * seed, 4) for seed in range(4)]
    if part == "rows that were never written":
        parts = [replace(x, weight=jnp.ones(4)) for x in parts]
    few = lambda x: x % 3  # noqa: E731
    parts = [replace(x, key=few(x.key)) for x in parts]
    for i in range(3):
        a, b = parts[i], parts[i + 1]
        recent = snapshot(jax.tree.map(lambda x, y: jnp.concatenate([x, y]), a, b))
        if part == "rows that were never written" and i == 0:
            recent = replace(recent, is_valid=jnp.arange(8) >= 4)
        state, _ = REFRESH(reward, state, recent)
    lived = joined(*(parts[1:] if part == "rows that were never written" else parts))
    met = set()
    for key in range(3):
        at = (lived["key"] == key) & (lived["weight"] > 0)
        met |= {int(at.sum())}
        np.testing.assert_allclose(
            state.frozen_noise[key], share(lived["next_obs"][at]), rtol=1e-4, atol=1e-6
        )
        assert state.moments.num[key] == at.sum()
    assert max(met) > 3 and float(state.frozen_noise[:3].max()) > 0.3
    assert not np.asarray(state.frozen_noise[3:]).any()


def test_what_left_the_snapshot_is_remembered():
    """Key 1 leads to noise in the first snapshot alone; ten snapshots later it still costs."""
    reward, state = made()
    noisy = replace(rows(0, 0), key=jnp.ones(8, jnp.int32))
    state, _ = REFRESH(reward, state, snapshot(noisy))
    before = float(state.frozen_noise[1])
    for i in range(1, 10):
        silent = replace(
            rows(1, 8 * i),
            key=jnp.full(8, 2, jnp.int32),
            next_obs=jnp.ones((8, *PLANES), jnp.uint8),
        )
        state, _ = REFRESH(reward, state, snapshot(silent))
    assert before > 0.3 and float(state.frozen_noise[1]) == before
    assert float(state.frozen_noise[2]) == pytest.approx(0.0, abs=1e-6)
    found = reward.score(state, replace(batch(0, 2), key=jnp.array([1, 2])))
    np.testing.assert_allclose(found[1] - found[0], WEIGHT * before, atol=1e-6)


def test_probes_see_the_share_on_average():
    """Sixteen random directions out of 24, over many draws of them."""
    reward = NetNovelty(SPEC, NetNoveltyConfig())
    obs = observations(np.random.default_rng(3), 8)
    same = replace(
        rows(0, 0), key=jnp.zeros(8, jnp.int32), next_obs=jnp.asarray(obs), weight=jnp.ones(8)
    )
    found = []
    for seed in range(40):
        state = reward.init(jax.random.key(seed))
        state, _ = REFRESH(reward, state, snapshot(same))
        found.append(float(state.frozen_noise[0]))
    assert np.mean(found) == pytest.approx(share(obs), rel=0.05)
    assert np.std(found) > 0


def test_within_a_window_nothing_moves():
    """Steps are counted as they are taken, and told at the next boundary."""
    reward, state = made()
    asked = replace(batch(0, 1), key=jnp.array([5]))
    for _ in range(3):
        state, _ = reward.observe(state, step(np.zeros(PLANES), 0, np.zeros(PLANES), 5), KEY)
    assert reward.score(state, asked)[0] == 1.0
    state = reward.count(state, jnp.array([5, 5, 6]), jnp.array([True, False, True]))
    state, said = REFRESH(reward, state, snapshot(rows(0, 0)))
    assert state.frozen_count[5] == 4 and state.frozen_count[6] == 1
    assert said["reward_jump"] >= 0


def test_other_keys_begin_anew():
    """After `forget` all rows of the snapshot are taken in again, under the keys they have then."""
    reward, state = made()
    first = replace(rows(0, 0), key=jnp.ones(8, jnp.int32))
    state, _ = REFRESH(reward, state, snapshot(first))
    state = reward.count(reward.forget(state), jnp.array([4]), jnp.array([True]))
    state, _ = REFRESH(reward, state, snapshot(replace(first, key=first.key + 2)))
    assert state.moments.num[1] == 0 and state.moments.num[3] == 7
    assert state.frozen_count[4] == 1 and not state.frozen_count[1]


def test_the_minibatch_is_told_by_its_parts():
    """Two rows of weight one: novelty 1 and 0.5, noise 0 and 0.2; the third counts for nothing."""
    reward, state = made()
    state = replace(
        state,
        frozen_count=state.frozen_count.at[jnp.array([2, 3])].set(jnp.array([3, 99])),
        frozen_noise=state.frozen_noise.at[jnp.array([2, 3])].set(jnp.array([0.2, 0.9])),
    )
    asked = replace(batch(0, 3), key=jnp.array([1, 2, 3]))
    same, said = reward.learn(state, asked, KEY)
    assert same is state
    np.testing.assert_allclose(
        [said["novelty"], said["noise"], said["penalty"]], [0.75, 0.1, 0.03], rtol=1e-6
    )


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"window": "6000", "recent": "5000"}, "window"),
        ({"warmup": "6000"}, "warmup"),
        ({"snapshot": "random"}, "newest"),
        ({"reward.aleatoric_weight": "-1"}, "reward.aleatoric_weight"),
    ],
)
def test_what_is_refused(settings, says):
    with pytest.raises(InputError, match=says):
        configure("net_novelty", "maze", settings=settings)


def test_a_table_that_would_not_fit_is_refused():
    with pytest.raises(InputError, match="count keys"):
        NetNovelty(replace(SPEC, num_keys=10**9), NetNoveltyConfig())
    assert SPEC.num_keys > STATES
