"""Rewards in the grid of "Curiosity-Critic": the paper's nine, and those of `primax.bonus`.

A reward is paid for arriving in a cell and seeing what it shows. Those of the paper depend on the cell,
the screen, or the world model's error there. Those of `primax.bonus` get the step that led there, with
the cell as its key; they see place and screen, as one vector, or one of the two.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from critic_grid import (
    EPSILON,
    NUM_ACTIONS,
    NUM_CELLS,
    NUM_PIXELS,
    PLACES,
    SIDE,
    Learner,
    Mlp,
    is_noise,
    mlp,
)
from jaxtyping import Array, Bool, Float, Int, Key

import primax

CRITIC_HIDDEN, RND_HIDDEN, RND_FEATURES = 128, 128, 128
CRITIC_MEMORY = 0.9
"""Of the table's averages."""
FLOOR = 0.5 * NUM_PIXELS**0.5
"""The error on a screen of fair coins that no prediction goes below on average: each pixel is off by 1/2."""
KEPT = 40_000
"""Transitions a bonus keeps; more than a run has, so nothing depends on it but memory."""
LENGTHS = {"place": 2 * SIDE, "screen": NUM_PIXELS, "both": 2 * SIDE + NUM_PIXELS}
Paid = tuple[Any, Float[Array, ""]]


class Seen(eqx.Module):
    """What a step shows."""

    cell: Int[Array, ""]
    screen: Float[Array, " pixels"]
    before: Float[Array, ""]
    """The world model's error on the screen."""
    after: Float[Array, ""]
    """The same after it has learnt from it."""
    last_cell: Int[Array, ""]
    last_screen: Float[Array, " pixels"]
    action: Int[Array, ""]
    """What was done there."""
    is_first: Bool[Array, ""]
    """Whether no step led here."""


@dataclass(frozen=True)
class Payer:
    """A reward: its state before the first step, and what it pays."""

    label: str
    init: Callable[[Key[Array, ""]], Any]
    pay: Callable[[Any, Seen], Paid]
    epsilon: float = EPSILON
    errors: tuple[float, ...] | None = None
    """Of the paper's five runs, seeds 1 to 5: the measure at the end."""
    shares: tuple[float, ...] | None = None
    """The same runs' shares of steps in the learnable half."""


def plain(of: Callable[[Seen], Float[Array, ""]]) -> dict[str, Any]:
    """One that remembers nothing."""
    return {"init": lambda key: (), "pay": lambda state, seen: (state, of(seen))}


def positive(x: Float[Array, ""]) -> Float[Array, ""]:
    """The paper pays no less than nothing."""
    return jnp.maximum(x, 0.0)


def count(visits: Int[Array, " cells"], seen: Seen) -> Paid:
    """1/√N of the cell; every count begins with one, and this visit is in it."""
    visits = visits.at[seen.cell].add(1)
    return visits, jax.lax.rsqrt(visits[seen.cell].astype(jnp.float32))


def table_critic(means: Float[Array, " cells"], seen: Seen) -> Paid:
    """The error less the cell's moving average of errors after learning, this one included."""
    away = seen.after - means[seen.cell]
    means = means.at[seen.cell].add((1 - CRITIC_MEMORY) * away)
    return means, positive(seen.before - means[seen.cell])


def net_critic(critic: Learner, seen: Seen) -> Paid:
    """The error less what a network, which has just learnt it, says the error after learning is."""
    place = jnp.asarray(PLACES)[seen.cell]
    critic = critic.learnt(place, seen.after[None])
    return critic, positive(seen.before - positive(critic.net(place)[0]))


def oracle(seen: Seen) -> Float[Array, ""]:
    """The error less the cell's least possible one."""
    return positive(seen.before - jnp.where(is_noise(seen.cell), FLOOR, 0.0))


def view(cell: Int[Array, ""], screen: Float[Array, " pixels"], sees: str) -> Float[Array, " n"]:
    """Place, screen, or both."""
    place = jnp.asarray(PLACES)[cell]
    return {"place": place, "screen": screen, "both": jnp.concatenate([place, screen])}[sees]


class Distillation(eqx.Module):
    """A random network, which never changes, and one that learns what it says."""

    target: Mlp
    predictor: Learner


def rnd(sees: str) -> dict[str, Any]:
    """Mean squared error in predicting a random network, before the predictor learns from it."""

    def init(key: Key[Array, ""]) -> Distillation:
        k_target, k_predictor = jax.random.split(key)
        sizes = (LENGTHS[sees], RND_HIDDEN, RND_FEATURES)
        return Distillation(mlp(k_target, *sizes), Learner.of(mlp(k_predictor, *sizes)))

    def pay(state: Distillation, seen: Seen) -> Paid:
        x = view(seen.cell, seen.screen, sees)
        says = state.target(x)
        reward = jnp.mean((state.predictor.net(x) - says) ** 2)
        return Distillation(state.target, state.predictor.learnt(x, says)), reward

    return {"init": init, "pay": pay}


def anywhere(method: str, sees: str = "both", **settings: Any) -> dict[str, Any]:
    """A reward of `primax.bonus`, for the step that led here."""
    space = primax.Space((LENGTHS[sees],), NUM_ACTIONS, num_keys=NUM_CELLS)
    bonus = primax.bonus(method, space, keys="given", settings={"replay": KEPT} | settings)

    def pay(state: Any, seen: Seen) -> Paid:
        never = jnp.zeros((), bool)
        step = primax.Transition(
            obs=view(seen.last_cell, seen.last_screen, sees),
            action=seen.action,
            next_obs=view(seen.cell, seen.screen, sees),
            terminated=never,
            truncated=never,
            key=seen.last_cell,
            next_key=seen.cell,
            valid=~seen.is_first,
        )
        return bonus.step(state, step)

    return {"init": bonus.init, "pay": pay}


def payer(name: str) -> Payer:
    """The reward of that name."""
    return REWARDS[name]()


REWARDS: dict[str, Callable[[], Payer]] = {
    "curiosity": lambda: Payer(
        "Curiosity V1: the error",
        **plain(lambda seen: seen.before),
        errors=(7.287, 7.054, 7.093, 7.256, 6.882),
        shares=(0.000, 0.029, 0.007, 0.000, 0.047),
    ),
    "rnd_screen": lambda: Payer(
        "RND of the screen",
        **rnd("screen"),
        errors=(6.898, 6.810, 6.451, 7.018, 7.034),
        shares=(0.043, 0.065, 0.089, 0.043, 0.025),
    ),
    "visits": lambda: Payer(
        "Visit count",
        init=lambda key: jnp.ones(NUM_CELLS, jnp.int32),
        pay=count,
        errors=(5.676, 5.693, 4.578, 5.052, 6.939),
        shares=(0.504, 0.687, 0.998, 0.880, 0.043),
    ),
    "progress": lambda: Payer(
        "Curiosity V2: how much the error falls",
        **plain(lambda seen: positive(seen.before - seen.after)),
        errors=(2.546, 3.128, 3.204, 3.422, 2.393),
        shares=(0.393, 0.316, 0.275, 0.282, 0.341),
    ),
    "random": lambda: Payer(
        "Random moves",
        **plain(lambda seen: jnp.zeros(())),
        epsilon=1.0,
        errors=(2.268, 2.103, 2.027, 2.263, 3.080),
        shares=(0.493, 0.473, 0.559, 0.521, 0.550),
    ),
    "rnd_place": lambda: Payer(
        "RND of the place",
        **rnd("place"),
        errors=(2.427, 2.188, 2.217, 2.131, 2.135),
        shares=(0.513, 0.488, 0.493, 0.518, 0.439),
    ),
    "table_critic": lambda: Payer(
        "Curiosity-Critic, a table",
        init=lambda key: jnp.zeros(NUM_CELLS),
        pay=table_critic,
        errors=(1.921, 2.025, 1.827, 1.938, 1.851),
        shares=(0.271, 0.268, 0.263, 0.258, 0.266),
    ),
    "net_critic": lambda: Payer(
        "Curiosity-Critic, a network",
        init=lambda key: Learner.of(mlp(key, 2 * SIDE, CRITIC_HIDDEN, 1)),
        pay=net_critic,
        errors=(1.755, 1.817, 1.926, 1.975, 1.820),
        shares=(0.567, 0.572, 0.554, 0.559, 0.570),
    ),
    "oracle": lambda: Payer(
        "Curiosity-Critic, told the least error",
        **plain(oracle),
        errors=(1.624, 1.733, 1.816, 1.753, 1.757),
        shares=(0.903, 0.892, 0.873, 0.894, 0.896),
    ),
    "prime": lambda: Payer("PRIME", **anywhere("prime")),
    "prime_no_clip": lambda: Payer(
        "PRIME, not clipped", **anywhere("prime", **{"reward.reward_clip": 1e9})
    ),
    "count": lambda: Payer("Counts", **anywhere("count")),
    "rnd": lambda: Payer("RND", **anywhere("rnd")),
    "rnd_of_place": lambda: Payer("RND, of the place alone", **anywhere("rnd", "place")),
    "disagreement": lambda: Payer("Disagreement", **anywhere("disagreement")),
    "ama": lambda: Payer("AMA", **anywhere("ama")),
    "lpm": lambda: Payer("LPM", **anywhere("lpm")),
    "net_novelty": lambda: Payer("Net novelty", **anywhere("net_novelty")),
}
"""By name, worst of the paper's first."""
