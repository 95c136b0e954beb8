"""The best a seed has been: its networks as they were when the last episodes went best."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from primax.worlds.tally import Outcome

EPISODES = 20
"""How many episodes a seed is judged by."""


class Peak(eqx.Module):
    """The best moment by one measure."""

    mean: Float[Array, ""]
    """Of the last episodes then; minus infinity while there never were enough."""
    step: Int[Array, ""]
    online: PyTree
    """The critics as they were."""


class Best(eqx.Module):
    """Judged at every window's end; every leaf is an array."""

    coverages: Float[Array, " episodes"] | None
    """Of the last episodes, oldest first; NaN where there were none yet. None without a grid."""
    scores: Float[Array, " episodes"]
    by_coverage: Peak | None
    """Free of the task; None without a grid."""
    by_score: Peak
    """An oracle's choice: the task's own score, which no method here may choose by."""


def start(online: PyTree, has_grid: bool = True) -> Best:
    """Before the first episode."""
    nothing = jax.tree.map(jnp.zeros_like, online)
    never = Peak(jnp.float32(-jnp.inf), jnp.int32(0), nothing)
    none = jnp.full(EPISODES, jnp.nan)
    return Best(none if has_grid else None, none, never if has_grid else None, never)


def note(best: Best, outcomes: Outcome, is_over: Bool[Array, " n"]) -> Best:
    """Adds the episodes that ended, in their order."""
    is_kept = jnp.concatenate([jnp.ones(EPISODES, bool), is_over])
    newest = jnp.argsort(is_kept, stable=True)[-EPISODES:]
    scores = jnp.concatenate([best.scores, outcomes.score])[newest]
    coverages = best.coverages
    if coverages is not None and outcomes.coverage is not None:
        coverages = jnp.concatenate([coverages, outcomes.coverage])[newest]
    return Best(coverages, scores, best.by_coverage, best.by_score)


def update(best: Best, online: PyTree, clock: Int[Array, ""]) -> Best:
    """Keeps the critics where the last episodes were better than ever; a tie keeps the first."""
    by_coverage = best.by_coverage
    if by_coverage is not None and best.coverages is not None:
        by_coverage = _better(by_coverage, jnp.mean(best.coverages), online, clock)
    by_score = _better(best.by_score, jnp.mean(best.scores), online, clock)
    return Best(best.coverages, best.scores, by_coverage, by_score)


def _better(peak: Peak, mean: Float[Array, ""], online: PyTree, clock: Int[Array, ""]) -> Peak:
    is_better = mean > peak.mean  # never for NaN: too few episodes
    return jax.tree.map(
        lambda new, old: jnp.where(is_better, new, old), Peak(mean, clock, online), peak
    )
