"""What a run measures of its policy, as pure functions of integer tables."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

MI_ROWS = 10_000
"""Executed actions the mutual information is estimated from."""
MI_LEAST = 5
"""Rows a state needs to count in it."""
ENTROPY_LEAST = 4
"""Snapshot rows a state needs to count in the entropy of the greedy action."""


def joint_counts(
    key: Int[Array, " rows"], is_valid: Bool[Array, " rows"], num_keys: int, num_actions: int
) -> Int[Array, "states actions"]:
    """How often each action was met in each state, from count keys."""
    counts = jnp.zeros(num_keys, jnp.int32).at[key].add(is_valid.astype(jnp.int32))
    return counts.reshape(-1, num_actions)


def entropy(counts: Int[Array, "*n actions"], is_corrected: bool) -> Float[Array, "*n"]:
    """Of each row of counts, in nats; zero where there are none. Miller and Madow add (m - 1) / 2n."""
    total = jnp.sum(counts, axis=-1)
    share = counts / jnp.maximum(total, 1)[..., None]
    plain = -jnp.sum(jnp.where(counts > 0, share * jnp.log(jnp.where(counts > 0, share, 1)), 0), -1)
    met = jnp.sum(counts > 0, axis=-1)
    correction = jnp.where(total > 0, (met - 1) / (2 * jnp.maximum(total, 1)), 0.0)
    return plain + correction if is_corrected else plain


def kept(counts: Int[Array, "states actions"], least: int) -> Int[Array, "states actions"]:
    """The counts of states met at least so often, the others zero."""
    return jnp.where(jnp.sum(counts, axis=1, keepdims=True) >= least, counts, 0)


def mutual_information(counts: Int[Array, "states actions"]) -> Float[Array, ""]:
    """Between state and executed action: H(A) - Σ n_b/n H(A|b), each corrected, not below zero."""
    counts = kept(counts, MI_LEAST)
    return jnp.maximum(entropy(jnp.sum(counts, axis=0), True) - _conditional(counts, True), 0.0)


def greedy_entropy(counts: Int[Array, "states actions"]) -> Float[Array, ""]:
    """Of the greedy action among the observations that share a state's key, weighted by size."""
    return _conditional(kept(counts, ENTROPY_LEAST), False)


def _conditional(counts: Int[Array, "states actions"], is_corrected: bool) -> Float[Array, ""]:
    size = jnp.sum(counts, axis=1)
    share = size / jnp.maximum(jnp.sum(size), 1)
    return jnp.sum(share * entropy(counts, is_corrected))
