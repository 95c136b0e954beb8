"""Each use of randomness has its own stream of a seed's key, and a number for each time of use."""

import jax
from jaxtyping import Array, Int, PRNGKeyArray

INIT, EPISODE, ROUND, REFRESH, SNAPSHOT, HEAD, LEARN, PLAY, KEYS = range(9)


def stream(key: PRNGKeyArray, use: int, clock: Int[Array, ""] | int) -> PRNGKeyArray:
    """The key for one use at one time."""
    return jax.random.fold_in(jax.random.fold_in(key, use), clock)
