"""The plain count bonus, by hand."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from reward_case import KEY, PLANES, SPEC, batch, step

from primax.errors import InputError
from primax.rewards.count import Count, CountConfig

NOTHING = np.zeros(PLANES, np.uint8)


def counted(keys, **options):
    reward = Count(SPEC, CountConfig(**options))
    state = reward.init(KEY)
    for key in keys:
        state, memo = reward.observe(state, step(NOTHING, key % 5, NOTHING, key), KEY)
        assert memo == ()
    return reward, state


def worth(reward, state, keys):
    rows = batch(0, len(keys))
    return np.asarray(reward.score(state, replace(rows, key=jnp.asarray(keys, jnp.int32))))


def test_one_over_the_root_of_the_count():
    """Key 7 was met four times, key 8 once; what is new is worth more."""
    reward, state = counted([7, 7, 8, 7, 7])
    np.testing.assert_allclose(worth(reward, state, [7, 8]), [0.5, 1.0])


def test_states_alone_can_be_counted():
    """Keys 5 to 9 are the five actions of one state."""
    reward, state = counted([7, 7, 8, 9], of="state", reward_scale=3.0)
    np.testing.assert_allclose(worth(reward, state, [5, 7, 9]), [1.5] * 3)


def test_a_table_that_would_not_fit_is_refused():
    with pytest.raises(InputError, match="count keys"):
        Count(replace(SPEC, num_keys=10**9), CountConfig())
