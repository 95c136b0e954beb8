"""What probes see of noise: its total, divided by the number of dimensions."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from primax.presets import paper
from primax.rewards.prime import moments, probes
from primax.verify.lab import compiled
from primax.verify.row import Row, verdict

DIMS, PROBES, ROWS = (2, 8, 32, 128, 400), 4_096, 64
"""φ has 32 dimensions, ψ of the paper's Butterflies 400."""


def probe_dilution() -> Row:
    """The estimator on noise of one size in spaces of growing dimension."""
    shares, away = zip(*(share_seen(dim) for dim in DIMS), strict=True)
    farthest = float(np.max(np.abs(away)))
    slope = float(np.polyfit(np.log(DIMS), np.log(shares), 1)[0])
    text = ", ".join(f"{share:.2g} at {dim}" for dim, share in zip(DIMS, shares, strict=True))
    return Row(
        name="probes",
        statement=f"Probes: {PROBES:,} of them see γ² tr Σ/d, so the same noise counts 1/d as much "
        "in d dimensions",
        bound="within 5 standard errors; slope -1 in d",
        measured=f"{farthest:.1f} standard errors, slope {slope:.3f}; share of γ² tr Σ: {text}",
        verdict=verdict(farthest <= 5 and abs(slope + 1) <= 0.02),
        numbers={"standard_errors": farthest, "slope": slope},
    )


def share_seen(dim: int) -> tuple[float, float]:
    """The estimate over γ² tr Σ, and how many standard errors it is from 1/d."""
    gamma = paper("prime", "maze").critics.gamma
    spread = 0.5 ** np.arange(dim)  # most of the noise lies in a few directions
    features = np.random.default_rng(dim).normal(size=(ROWS, dim)) * spread[None, :]
    args = (jnp.asarray(features, jnp.float32), jax.random.key(dim), jnp.float32(gamma))
    found = float(compiled(estimate, *args)(*args))
    sigma = gamma**2 * np.cov(features.T, bias=True)
    trace, square = np.trace(sigma), np.trace(sigma @ sigma)
    variance = 2 / (dim * (dim + 2)) * (square - trace**2 / dim)
    return found / trace, (found - trace / dim) / np.sqrt(variance / PROBES)


def estimate(
    features: Float[Array, "rows dim"], key: PRNGKeyArray, gamma: Float[Array, ""]
) -> Float[Array, ""]:
    """Ṽ_ale of rows that share one key, through the estimator a window uses."""
    w = probes.unit_probes(key, PROBES, features.shape[1])
    index = moments.buckets(jnp.zeros(ROWS, jnp.int32), jnp.ones(ROWS, bool), 1)
    here = moments.At(jnp.zeros(1, jnp.int32), jnp.zeros(1, jnp.int32), jnp.zeros((1, 0)))
    _, variance, _ = index.moments(probes.readings(features, w, gamma)).at(here)
    return probes.probe_variance(variance)[0]
