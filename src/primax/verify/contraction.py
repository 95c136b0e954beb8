"""Prop. 1, second half: the Bellman operator of a frozen reward contracts by γ, to one fixed point."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from primax.agent import critics as critic
from primax.nn import nets
from primax.verify.lab import Lab, compiled
from primax.verify.row import SLACK, Row, text, verdict
from primax.verify.worldtable import WorldTable, enumerate_world

PAIRS, STARTS, SWEEPS, SHIFT = 256, 32, 300, 8.0


def contraction(lab: Lab, name: str) -> Row:
    """The operator as the critics apply it, on a world small enough to write down."""
    table = enumerate_world(lab.world)
    batch = table.batch()
    reward = compiled(lab.prime.score, lab.watch.now, batch)(lab.watch.now, batch)
    shape = table.key.shape
    gamma = lab.config.critics.gamma
    found = measure(reward.reshape(shape), table, lab.ends[0].rates.gamma)
    found |= {"update": through_update(lab), "window_gamma": float(lab.watch.now.constants.gamma)}
    same = [found[key] for key in ("shift_low", "shift_high", "update", "window_gamma")]
    is_gamma = all(abs(factor / gamma - 1) <= 1e-4 for factor in same)
    is_held = is_gamma and found["factor"] <= gamma * (1 + SLACK) and found["spread"] <= 1e-3
    world = type(lab.world).__name__
    return Row(
        name=name,
        statement=f"Prop. 1: the critics' operator contracts by γ to one fixed point, on {world} as a "
        f"table ({shape[0]} states x {shape[1]} actions, rewards of a frozen {lab.config.reward.moments} window)",
        bound=f"γ = {gamma:g}, attained by a constant shift",
        measured=f"at most {found['factor']:.6f} over {PAIRS} pairs; shifts {same[0]:.6f} to "
        f"{same[1]:.6f}, in the critics' update {same[2]:.6f}; {STARTS} starts end {text(found['spread'])} "
        "apart",
        verdict=verdict(is_held),
        numbers=found,
    )


def bellman(
    reward: Float[Array, "states actions"],
    table: WorldTable,
    gamma: Float[Array, ""],
    q: Float[Array, "states actions"],
) -> Float[Array, "states actions"]:
    """(BQ)(s, a): the mean over outcomes of the critics' own target."""
    after = q[table.to]
    discount = gamma * (1.0 - jnp.asarray(table.ends, jnp.float32))
    reward = jnp.broadcast_to(reward[..., None], table.to.shape)
    target = jax.vmap(jax.vmap(jax.vmap(critic.td_target)))(reward, discount, after, after)
    return jnp.mean(target, axis=-1)


def measure(
    reward: Float[Array, "states actions"], table: WorldTable, gamma: Float[Array, ""]
) -> dict[str, float]:
    """Contraction factors over pairs, over constant shifts, and how near fixed points end."""

    def program(a: Any, b: Any, starts: Any) -> Any:
        apply = jax.vmap(lambda q: bellman(reward, table, gamma, q))
        end = jax.lax.fori_loop(0, SWEEPS, lambda _, q: apply(q), starts)
        return apply(a) - apply(b), apply(a + SHIFT) - apply(a), end

    a, b, starts = _pairs(table.key.shape)
    moved, shifted, end = map(np.asarray, compiled(program, a, b, starts)(a, b, starts))
    apart = np.abs(np.asarray(a - b)).max(axis=(1, 2))
    return {
        "factor": float(np.max(np.abs(moved).max(axis=(1, 2)) / apart)),
        "shift_low": float(shifted.min() / SHIFT),
        "shift_high": float(shifted.max() / SHIFT),
        "spread": float(np.max(end.max(axis=0) - end.min(axis=0))),
    }


def _pairs(shape: tuple[int, int]) -> tuple[Array, Array, Array]:
    """Random pairs: some differ everywhere, some in one entry only, some by a constant in a state."""
    rng = np.random.default_rng(0)
    a = rng.normal(0, 10, (PAIRS, *shape))
    b = rng.normal(0, 10, (PAIRS, *shape))
    for i in range(0, PAIRS, 2):
        b[i] = a[i]
        state = rng.integers(shape[0])
        b[i, state] += 5.0 if i % 4 else 5.0 * np.eye(shape[1])[rng.integers(shape[1])]
    starts = rng.normal(0, 1, (STARTS, *shape)) * np.geomspace(0.1, 100, STARTS)[:, None, None]
    single = [jnp.asarray(x, jnp.float32) for x in (a, b, starts)]
    return single[0], single[1], single[2]


def through_update(lab: Lab) -> float:
    """The discount of the learner's own update: no reward, and targets that are the same everywhere."""
    state, rows = lab.ends[0], jax.tree.map(lambda x: x[-16:], lab.rows)
    zero = jax.tree.map(jnp.zeros_like, state.critics.online)
    level = eqx.tree_at(
        lambda net: net.head.bias, zero, replace_fn=lambda bias: jnp.full_like(bias, SHIFT)
    )

    def update(critics: critic.Critics, rates: critic.Rates) -> Any:
        batch = (rows.action, jnp.zeros_like(rows.task), rows.weight, rows.terminated)
        before, after = nets.patches(rows.obs), nets.patches(rows.next_obs)
        double = lab.config.critics.double
        return critic.update(critics, rates, before, after, batch, double)[1]["y_abs_max"]

    args = (critic.Critics(zero, level, state.critics.optimiser), state.rates)
    return float(compiled(update, *args)(*args)) / SHIFT
