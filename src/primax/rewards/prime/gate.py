"""The short-horizon gate: what there is to learn just ahead, along the trajectories that were lived."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


def look_ahead(
    value: Float[Array, " rows"],
    is_last: Bool[Array, " rows"],
    decay: Float[Array, ""],
    horizon: int,
) -> Float[Array, " rows"]:
    """The sum inside eq. (9) for every row of a trajectory, oldest first.

    `value` is V_epi at each row's next state and its probe action, so a row's own value is j = 1.
    The sum is cut where an episode ends (`is_last`) and after the newest row.
    """

    def extend(_, ahead: Float[Array, " rows"]) -> Float[Array, " rows"]:
        onward = jnp.append(ahead[1:], 0.0)
        return value + decay * jnp.where(is_last, 0.0, onward)

    return jax.lax.fori_loop(0, horizon, extend, jnp.zeros_like(value))


def bracket(
    v_ale: Float[Array, "*n"], v_ahead: Float[Array, "*n"], weight: Float[Array, ""]
) -> Float[Array, "*n"]:
    """[V_ale^aug - α Ṽ_epi]₊: noise that no look-ahead pays for."""
    return jax.nn.relu(v_ale - weight * v_ahead)
