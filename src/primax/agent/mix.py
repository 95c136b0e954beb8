"""A bonus beside the task: what it counts, and what the critics are paid."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from primax.agent.critics import mean_of
from primax.config.schema import Config

Weight = Float[Array, ""] | None
"""Of the bonus beside the task, where there is one."""


def bonus_weight(config: Config, full: Weight, clock: Int[Array, ""]) -> Weight:
    """The weight in the window that begins here, of one that is `full` at first; None without a mix."""
    mix = config.mix
    if mix is None or full is None:
        return None
    progress = jnp.minimum(1.0, clock / (mix.fraction * config.schedule_span))
    left = {
        "constant": jnp.float32(1.0),
        "linear": 1.0 - progress,
        "cosine": 0.5 * (1.0 + jnp.cos(jnp.pi * progress)),
    }
    return full * left[mix.schedule]


def paid(
    config: Config,
    task: Float[Array, " batch"],
    score: Float[Array, " batch"],
    weight: Weight,
    lived: Float[Array, " batch"] | None = None,
) -> tuple[Float[Array, "batch *two"], dict[str, Float[Array, "..."]]]:
    """What the critics learn from, and its parts: the reward alone, or what it adds to the task.

    `lived` are weights of the rows, where some are idle: means are over the others.
    """
    if weight is None:
        return score, {}
    is_one = config.num_values == 1
    made = task + weight * score if is_one else jnp.stack([task, score], axis=1)
    return made, {"reward_task": mean_of(task, lived), "reward_bonus": mean_of(score, lived)}
