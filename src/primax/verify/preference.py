"""Prop. 4: how much can be learnt decides against a difference in noise."""

import jax
import jax.numpy as jnp
import numpy as np

from primax.presets import paper
from primax.rewards.prime.config import constants
from primax.rewards.prime.intrinsic import compose
from primax.verify.row import Row, text, verdict

CASES, ROUNDING = 20_000, 1e-12


def preference(name: str = "gate_preference") -> Row:
    """Random and adversarial pairs of actions, through the project's own reward, in float64."""
    config = paper("prime", "maze")
    weight = config.reward.aleatoric_weight
    x1, x2 = _noises(np.random.default_rng(0))
    needed = weight * (x1 - x2) / (1 + np.minimum(x1, x2))
    gains = {
        "at": reward_gap(needed, x1, x2),
        "above": reward_gap(needed * 1.5 + 1e-3, x1, x2),
        "equal": reward_gap(np.zeros_like(x1), x1, x1),
        # What an inverted order takes: less than λ times the difference of the logarithms.
        "below": reward_gap(weight * np.log1p((x1 - x2) / (1 + x2)) - 1e-9, x1, x2),
        "other_way": reward_gap(-needed * (1 + x2) / (1 + x1), x2, x1),
        "as_printed": reward_gap(-needed, x2, x1),
    }
    violations = int(np.sum(gains["at"] < -ROUNDING) + np.sum(gains["above"] < -ROUNDING))
    violations += int(np.sum(gains["other_way"] < -ROUNDING))
    is_equal = np.max(np.abs(gains["equal"])) == 0
    is_sharp = bool(np.all(gains["below"] < 0))
    near = (x1 - x2 > 0) & (x1 - x2 < 1e-3 * (1 + x2))
    slack = float(np.max(gains["at"][near] / needed[near]))
    wrong = float(np.mean(gains["as_printed"][x1 > x2] < -ROUNDING))
    return Row(
        name=name,
        statement="Prop. 4: Δ ≥ λ(x₁-x₂)/(1+x₂) suffices for r_int(a₁) ≥ r_int(a₂), x being the gated noise; "
        "the paper's min{x₁,x₂} for x₂ is the same where x₁ ≥ x₂, and wrong elsewhere",
        bound=f"0 violations in {3 * len(x1):,} cases; equal where x₁ = x₂ and Δ = 0",
        measured=f"{violations} violations; equal: {'yes' if is_equal else 'no'}; with Δ at the bound and "
        f"x₁ near x₂, r_int(a₁) is larger by at most {text(slack)} of Δ; min{{x₁,x₂}} where x₁ < x₂: {wrong:.0%} violations",
        verdict=verdict(violations == 0 and is_equal and is_sharp),
        numbers={"violations": violations, "slack": slack, "wrong_as_printed": wrong},
    )


def reward_gap(gain: np.ndarray, x1: np.ndarray, x2: np.ndarray) -> np.ndarray:
    """r_int(a₁) - r_int(a₂), where a₁ has `gain` more to learn and x is noise the gate leaves, over σ₀²."""
    config = paper("prime", "maze")
    with jax.enable_x64(True):
        numbers = constants(config.reward, config.critics.gamma)
        numbers = jax.tree.map(lambda x: jnp.asarray(np.round(float(x), 6), jnp.float64), numbers)
        none = jnp.zeros(len(x1))

        def r_int(v_epi: np.ndarray, x: np.ndarray) -> np.ndarray:
            noise = jnp.asarray(x) * numbers.log_scale
            parts = compose(jnp.asarray(v_epi), none, (noise, none, none), none, none == 0, numbers)
            return np.asarray(parts.r_int)

        base = np.maximum(-gain, 0.0)
        return r_int(base + gain, x1) - r_int(base, x2)


def _noises(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """x₁ ≥ x₂ ≥ 0 over many scales; nearly equal, far apart, and zero."""
    low, high = np.sort(10.0 ** rng.uniform(-8, 5, (2, CASES)), axis=0)
    near = low * (1 + 10.0 ** rng.uniform(-7, -3, CASES))
    kind = rng.integers(4, size=CASES)
    x1 = np.select([kind == 0, kind == 1, kind == 2], [high, near, low], high)
    x2 = np.select([kind == 0, kind == 1, kind == 2], [low, low, low], np.zeros(CASES))
    return x1, x2
