"""How the statistics heads learn: QR-DQN policy evaluation under π_ref."""

import jax.numpy as jnp
import optax
from jaxtyping import Array, Float


def zeta(
    bonus: Float[Array, ""], discount: Float[Array, ""], after: Float[Array, " quantiles"]
) -> Float[Array, " quantiles"]:
    """ζ_k, the targets of one transition: r̄ + γ q⁻_{k,j}(s', a') with a' drawn from π_ref."""
    return bonus + discount * after


def quantile_huber(
    quantiles: Float[Array, " quantiles"], targets: Float[Array, " targets"]
) -> Float[Array, ""]:
    """The quantile Huber loss (κ = 1) at the midpoints: a sum over quantiles of means over targets."""
    num = quantiles.shape[0]
    middle = (jnp.arange(num) + 0.5) / num
    error = targets[None, :] - quantiles[:, None]
    tilt = jnp.abs(middle[:, None] - (error < 0))
    return jnp.sum(jnp.mean(tilt * optax.losses.huber_loss(error), axis=1))
