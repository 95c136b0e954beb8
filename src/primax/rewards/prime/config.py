"""PRIME's options, named as in the paper's hyperparameter table; the defaults are its values."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from primax.errors import InputError, check_choice, check_range

NOVELTIES = ("count", "rnd", "ensemble")
BONUSES = ("tanh", "v_count", "inv_sqrt")
MOMENTS = ("bucket", "nearest16", "knn16")
WEIGHTS = ("uniform", "gaussian", "rank")


@dataclass(frozen=True)
class PrimeConfig:
    """The reward PRIME; one configuration for every world."""

    heads: int = 5
    """K, heads of the statistics ensemble."""
    quantiles: int = 11
    """N_q, quantile locations a head has for an action."""
    quantile_bound: float = 2.0
    """G_q, the hard bound on every quantile."""
    prior_strength: float = 2.0
    """Weight of the frozen randomized prior, inside the tanh."""
    a_min: float = 1.0
    """Smallest slope of a head's calibration."""
    a_max: float = 2.0
    """Largest slope of a head's calibration."""
    b_max: float = 1.0
    """Largest offset of a head's calibration, up or down."""
    calibration: int = 256
    """Snapshot states a calibration is fitted on."""
    temperature: float = 1.0
    """τ of the reference policy."""
    count_scale: float = 0.5
    """κ of the count realization."""
    novelty: str = "count"
    """x, what is new: `count`, or `rnd` or a forward `ensemble`, each frozen with the window."""
    bonus: str = "tanh"
    """The continuation bonus, of x (1/√(N+1) for counts): `tanh` (of x), `v_count` (κγ²tanh² x), `inv_sqrt` (x)."""
    moments: str = "bucket"
    """What conditions S' on (s, a): rows of the same key (`bucket`), or the nearest of the same \
action in the key (`nearest16`) or in φ (`knn16`)."""
    neighbours: int = 16
    """How many rows `nearest16` and `knn16` take."""
    weights: str = "uniform"
    """Of those rows: `uniform`, `gaussian` (of the distance) or `rank` (one over it)."""
    probes: int = 8
    """m, unit probes of φ and as many of ψ."""
    feature_dim: int = 32
    """Width of φ."""
    gate_horizon: int = 4
    """h_g, steps the gate looks ahead."""
    gate_decay: float = 0.95
    """β, weight of a step further ahead."""
    gate_weight: float = 0.5
    """α, how much look-ahead offsets noise; 0 turns the gate off."""
    aleatoric_weight: float = 0.5
    """λ, the penalty's weight; 0 leaves pure novelty."""
    log_scale: float = 0.5
    """σ₀², the variance below which noise is ignored."""
    reward_scale: float = 50.0
    """What the reward is multiplied by before it is clipped."""
    reward_clip: float = 2.0
    """Largest reward, up or down."""
    stats_learning_rate: float = 1e-4
    """Adam's step size for the statistics heads."""
    phi_learning_rate: float = 1e-3
    """Adam's step size for the inverse model."""
    grad_clip: float = 10.0
    """Largest global gradient norm of a statistics head and of the inverse model."""

    def __post_init__(self):
        counts = {"heads": 100, "quantiles": 1_000, "calibration": 10**6, "neighbours": 1_000}
        counts |= {"probes": 1_000, "feature_dim": 4_096, "gate_horizon": 1_000}
        for name, most in counts.items():
            check_range(f"reward.{name}", getattr(self, name), 1, most)
        for name in ("quantile_bound", "temperature", "log_scale", "reward_clip", "grad_clip"):
            check_range(f"reward.{name}", getattr(self, name), 1e-6, 1e9)
        for name in ("prior_strength", "a_min", "a_max", "b_max", "count_scale", "reward_scale"):
            check_range(f"reward.{name}", getattr(self, name), 0, 1e9)
        for name in ("gate_weight", "aleatoric_weight"):
            check_range(f"reward.{name}", getattr(self, name), 0, 1e9)
        for name in ("stats_learning_rate", "phi_learning_rate"):
            check_range(f"reward.{name}", getattr(self, name), 0, 1)
        check_range("reward.gate_decay", self.gate_decay, 1e-6, 1)
        check_choice("reward.novelty", self.novelty, NOVELTIES)
        check_choice("reward.bonus", self.bonus, BONUSES)
        check_choice("reward.moments", self.moments, MOMENTS)
        check_choice("reward.weights", self.weights, WEIGHTS)
        if self.novelty == "ensemble" and self.bonus == "inv_sqrt":
            raise InputError(
                "reward.bonus=inv_sqrt is x itself, which reward.novelty=ensemble does not bound"
            )
        if self.a_min > self.a_max:
            raise InputError(
                f"reward.a_min ({self.a_min}) must not exceed reward.a_max ({self.a_max})"
            )

    def check_fits(self, config: Any) -> None:
        """Refuses a learner under which this reward would not be what it says."""
        if config.window > config.recent:
            longer = f"window ({config.window}) must not be longer than recent ({config.recent})"
            raise InputError(f"{longer}, the snapshot the reward is frozen from")
        if config.critics.gamma <= 0:
            raise InputError("critics.gamma must be above 0: the reward's variances scale with it")
        for name, most in (("calibration", config.recent), ("neighbours", config.recent)):
            check_range(f"reward.{name}", getattr(self, name), 1, most)


class Constants(eqx.Module):
    """The numbers of the options as arrays: runs that differ in them share a program."""

    gamma: Float[Array, ""]
    quantile_bound: Float[Array, ""]
    prior_strength: Float[Array, ""]
    a_min: Float[Array, ""]
    a_max: Float[Array, ""]
    b_max: Float[Array, ""]
    temperature: Float[Array, ""]
    count_scale: Float[Array, ""]
    gate_decay: Float[Array, ""]
    gate_weight: Float[Array, ""]
    aleatoric_weight: Float[Array, ""]
    log_scale: Float[Array, ""]
    reward_scale: Float[Array, ""]
    reward_clip: Float[Array, ""]
    stats_learning_rate: Float[Array, ""]
    phi_learning_rate: Float[Array, ""]
    grad_clip: Float[Array, ""]


def constants(config: PrimeConfig, gamma: float) -> Constants:
    """The configured numbers, and the critics' discount."""
    values = {"gamma": gamma} | vars(config)
    return Constants(
        **{name: jnp.asarray(values[name], jnp.float32) for name in Constants.__annotations__}
    )
