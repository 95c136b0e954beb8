"""Adam with a clipped gradient, for one network at a time."""

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PyTree


def adam_start(params: PyTree) -> PyTree:
    """Adam's state before the first step."""
    return optax.scale_by_adam().init(params)


def adam_step(
    params: PyTree,
    grads: PyTree,
    state: PyTree,
    *,
    learning_rate: Float[Array, ""],
    grad_clip: Float[Array, ""],
) -> tuple[PyTree, PyTree]:
    """One network's step of Adam on its gradient, clipped by its global norm."""
    norm = optax.tree.norm(grads)
    scale = jnp.where(norm > grad_clip, grad_clip / norm, 1.0)
    grads = jax.tree.map(lambda g: g * scale, grads)
    steps, state = optax.scale_by_adam().update(grads, state)
    return jax.tree.map(lambda p, s: p - learning_rate * s, params, steps), state
