"""The intrinsic reward, and every part it is made of."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from primax.rewards.prime.config import Constants
from primax.rewards.prime.gate import bracket

DETECTORS = ("heads", "phi", "psi")


class Parts(eqx.Module):
    """Why transitions are worth what they are."""

    v_count: Float[Array, "*n"]
    """The count realization, eq. (7)."""
    v_lotv: Float[Array, "*n"]
    """Cross-head variance, eq. (6)."""
    v_epi: Float[Array, "*n"]
    """The larger of the two."""
    v_ale_heads: Float[Array, "*n"]
    """Within-head variance, eq. (6)."""
    v_ale_phi: Float[Array, "*n"]
    """Probes of φ, eq. (8)."""
    v_ale_psi: Float[Array, "*n"]
    """Probes of ψ, eq. (8)."""
    v_ale: Float[Array, "*n"]
    """The largest of the three."""
    v_ahead: Float[Array, "*n"]
    """Readout-ahead, eq. (9)."""
    bracket: Float[Array, "*n"]
    """What noise the gate leaves."""
    has_data: Bool[Array, "*n"]
    """Whether the snapshot knows anything of this (s, a)."""
    r_int: Float[Array, "*n"]
    """The reward of eq. (10)."""
    reward: Float[Array, "*n"]
    """Scaled and clipped, as the critics get it."""


def intrinsic(
    v_epi: Float[Array, "*n"], net_noise: Float[Array, "*n"], constants: Constants
) -> Float[Array, "*n"]:
    """r_int, eq. (10): what can be learnt, less λ log(1 + the gated noise / σ₀²)."""
    return v_epi - constants.aleatoric_weight * jnp.log1p(net_noise / constants.log_scale)


def deployed(r_int: Float[Array, "*n"], constants: Constants) -> Float[Array, "*n"]:
    """Scaled, then clipped."""
    clip = constants.reward_clip
    return jnp.clip(constants.reward_scale * r_int, -clip, clip)


def compose(
    v_count: Float[Array, "*n"],
    v_lotv: Float[Array, "*n"],
    detectors: tuple[Float[Array, "*n"], Float[Array, "*n"], Float[Array, "*n"]],
    v_ahead: Float[Array, "*n"],
    has_data: Bool[Array, "*n"],
    constants: Constants,
) -> Parts:
    """All parts from the estimates."""
    heads, phi, psi = detectors
    v_epi, v_ale = jnp.maximum(v_lotv, v_count), jnp.maximum(jnp.maximum(heads, phi), psi)
    net_noise = bracket(v_ale, v_ahead, constants.gate_weight)
    r_int = intrinsic(v_epi, net_noise, constants)
    return Parts(
        v_count=v_count,
        v_lotv=v_lotv,
        v_epi=v_epi,
        v_ale_heads=heads,
        v_ale_phi=phi,
        v_ale_psi=psi,
        v_ale=v_ale,
        v_ahead=v_ahead,
        bracket=net_noise,
        has_data=has_data,
        r_int=r_int,
        reward=deployed(r_int, constants),
    )
