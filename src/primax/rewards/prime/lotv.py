"""The law of total variance over (head, S'): what heads disagree on, and what each finds noisy."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def epistemic(means: Float[Array, "*n heads"]) -> Float[Array, "*n"]:
    """V_epi,LoTV, eq. (6) left: the variance over heads of E[Y_k | s, a]."""
    return jnp.var(means, axis=-1)


def aleatoric(variances: Float[Array, "*n heads"]) -> Float[Array, "*n"]:
    """V_ale, eq. (6) right: the mean over heads of Var[Y_k | s, a]."""
    return jnp.mean(variances, axis=-1)
