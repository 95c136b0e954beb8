"""Prop. 6: where everything is resolved, the noise penalty is all that remains."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from primax import files
from primax.verify.lab import Lab, compiled
from primax.verify.row import Row, text, verdict

COUNTS = np.array([0, 1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 100_000, 1_000_000])
ROUNDING = 1e-7


def neutrality(lab: Lab, plot: Path | None = None) -> Row:
    """Windows frozen from the same rows with heads made equal and every count at N, for growing N."""
    found = remainders(lab)
    gaps, allowed, limit = found["gaps"], found["allowed"], found["limit"]
    if plot:
        draw(plot, gaps, allowed)
    is_within = np.all(gaps["most"] <= allowed + ROUNDING) and np.all(gaps["least"] >= -ROUNDING)
    rising = (COUNTS >= 10) & (COUNTS <= 100_000)
    slope = float(np.polyfit(np.log(COUNTS[rising] + 1), np.log(gaps["most"][0, rising]), 1)[0])
    is_zero = found["lotv"] <= 1e-12
    return Row(
        name="neutrality",
        statement="Prop. 6: with equal heads and every count at N, r_int is -λ log(1+V_ale^aug/σ₀²) up to "
        "κγ²/(N+1), times 1 + λα/σ₀² Σβʲ with the gate",
        bound=f"{text(allowed[0, -1])}, {text(allowed[1, -1])} with the gate, at N = {COUNTS[-1]:,}",
        measured=f"{text(gaps['most'][0, -1])}, {text(gaps['most'][1, -1])} ({text(gaps['most'][0, 0])} at N = 0), "
        f"slope {slope:.3f} in N; V_LoTV {text(found['lotv'])}; limits {text(-limit.max())} to "
        f"{text(0.0 - limit.min())}",
        verdict=verdict(bool(is_within) and is_zero and slope < -0.99, bool(limit.max() > 0)),
        numbers={"slope": slope, "lotv": found["lotv"], "gap": float(gaps["most"][0, -1])},
    )


def remainders(lab: Lab) -> dict[str, Any]:
    """r_int less its limit over all keys with data, without and with the gate, and what is allowed."""
    state, recent, reward = lab.watch.boundary, lab.watch.recent, lab.config.reward
    alike = lambda tree: jax.tree.map(lambda x: jnp.broadcast_to(x[:1], x.shape), tree)  # noqa: E731
    online, prior = alike(state.online), alike(state.prior)
    freezer, where = lab.prime.freezer, lab.every_key

    def at(numbers: Any, counts: Any) -> Any:
        live = (numbers, online, prior, state.inverse, counts)
        window, _ = freezer.freeze(live, recent, jax.random.key(0))
        return freezer.parts(window, where)

    program = compiled(at, state.constants, state.novelty)
    gates = [jnp.zeros_like(state.constants.gate_weight), state.constants.gate_weight]
    most, least, lotv, limit = np.zeros((2, len(COUNTS))), np.zeros((2, len(COUNTS))), 0.0, None
    for i, j in np.ndindex(most.shape):
        numbers = replace(state.constants, gate_weight=gates[i])
        counts = jnp.full_like(state.novelty, int(COUNTS[j]))
        parts = jax.tree.map(lambda x: np.asarray(x, float), program(numbers, counts))
        has_data = parts.has_data > 0
        limit = reward.aleatoric_weight * np.log1p(parts.v_ale / reward.log_scale)[has_data]
        gap = parts.r_int[has_data] + limit
        most[i, j], least[i, j] = gap.max(), gap.min()
        lotv = max(lotv, float(parts.v_lotv.max()))
    first = reward.count_scale * lab.config.critics.gamma**2 / (COUNTS + 1)
    ahead = np.sum(reward.gate_decay ** np.arange(reward.gate_horizon))
    relief = reward.aleatoric_weight * reward.gate_weight / reward.log_scale * ahead
    allowed = np.stack([first, first * (1 + relief)])
    return {
        "gaps": {"most": most, "least": least},
        "allowed": allowed,
        "limit": limit,
        "lotv": lotv,
    }


def draw(path: Path, gaps: dict[str, np.ndarray], allowed: np.ndarray) -> None:
    """The remainder and its bound against N, as a picture."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(5, 3.5), layout="constrained")
    for i, what in enumerate(("no look-ahead", "with the gate")):
        axes.loglog(COUNTS + 1, gaps["most"][i], "o", color=f"C{i}", label=f"measured, {what}")
        axes.loglog(COUNTS + 1, allowed[i], "-", color=f"C{i}", label="bound")
    axes.set(
        xlabel="N + 1", ylabel="r_int less its limit", title="Prop. 6: only the penalty remains"
    )
    axes.legend(fontsize=8)
    drawn = io.BytesIO()
    try:
        figure.savefig(drawn, dpi=150, format="png")
    finally:
        pyplot.close(figure)
    files.overwrite(path, drawn.getvalue())
