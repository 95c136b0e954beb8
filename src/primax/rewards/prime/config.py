"""PRIME's options, named as in the paper's hyperparameter table; the defaults are its values."""

from dataclasses import dataclass
from typing import Annotated, Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from primax.config.fields import Choice, Later, Range, check
from primax.config.schema import TRUNCATIONS
from primax.config.symbols import Symbol
from primax.errors import InputError, check_range

NOVELTIES = ("count", "rnd", "ensemble", "cfn")
BONUSES = ("tanh", "v_count", "inv_sqrt")
MOMENTS = ("bucket", "nearest16", "knn16")
WEIGHTS = ("uniform", "gaussian", "rank")


@dataclass(frozen=True)
class PrimeConfig:
    """The reward PRIME; one configuration for every world."""

    heads: Annotated[int, Range(1, 100), Symbol("K")] = 5
    """Heads of the statistics ensemble."""
    quantiles: Annotated[int, Range(1, 1_000), Symbol("N_q")] = 11
    """Quantile locations a head has for an action."""
    quantile_bound: Annotated[float, Range(1e-6, 1e9), Symbol("G_q")] = 2.0
    """The hard bound on every quantile."""
    prior_strength: Annotated[float, Range(0, 1e9), Symbol("β_prior")] = 2.0
    """Weight of the frozen randomized prior, inside the tanh."""
    a_min: Annotated[float, Range(0, 1e9)] = 1.0
    """Smallest slope of a head's calibration."""
    a_max: Annotated[float, Range(0, 1e9)] = 2.0
    """Largest slope of a head's calibration."""
    b_max: Annotated[float, Range(0, 1e9)] = 1.0
    """Largest offset of a head's calibration, up or down."""
    calibration: Annotated[int, Range(1, 10**6)] = 256
    """Snapshot states a calibration is fitted on."""
    temperature: Annotated[float, Range(1e-6, 1e9), Symbol("τ")] = 1.0
    """Of the reference policy."""
    count_scale: Annotated[float, Range(0, 1e9), Symbol("κ")] = 0.5
    """Of the count realization."""
    novelty: Annotated[str, Choice(NOVELTIES)] = "count"
    """x, what is new: `count`, or `rnd`, a forward `ensemble` or coin-flip networks (`cfn`), each \
frozen with the window."""
    bonus: Annotated[str, Choice(BONUSES)] = "tanh"
    """The continuation bonus, of x (1/√(N+1) for counts): `tanh` (of x), `v_count` (κγ²tanh² x), `inv_sqrt` (x)."""
    moments: Annotated[str, Choice(MOMENTS)] = "bucket"
    """What conditions S' on (s, a): rows of the same key (`bucket`), or the nearest of the same \
action in the key (`nearest16`) or in φ (`knn16`)."""
    neighbours: Annotated[int, Range(1, 1_000)] = 16
    """How many rows `nearest16` and `knn16` take."""
    weights: Annotated[str, Choice(WEIGHTS)] = "uniform"
    """Of those rows: `uniform`, `gaussian` (of the distance) or `rank` (one over it)."""
    probes: Annotated[int, Range(1, 1_000), Symbol("m")] = 8
    """Unit probes of φ and as many of ψ."""
    feature_dim: Annotated[int, Range(1, 4_096)] = 32
    """Width of φ."""
    gate_horizon: Annotated[int, Range(1, 1_000), Symbol("h_g")] = 4
    """Steps the gate looks ahead."""
    gate_decay: Annotated[float, Range(1e-6, 1), Symbol("β")] = 0.95
    """Weight of a step further ahead."""
    gate_weight: Annotated[float, Range(0, 1e9), Symbol("α")] = 0.5
    """How much look-ahead offsets noise; 0 turns the gate off."""
    aleatoric_weight: Annotated[float, Range(0, 1e9), Symbol("λ")] = 0.5
    """The penalty's weight; 0 leaves pure novelty."""
    log_scale: Annotated[float, Range(1e-6, 1e9), Symbol("σ₀²")] = 0.5
    """The variance below which noise is ignored."""
    reward_scale: Annotated[float, Range(0, 1e9)] = 50.0
    """What the reward is multiplied by before it is clipped."""
    reward_clip: Annotated[float, Range(1e-6, 1e9)] = 2.0
    """Largest reward, up or down."""
    stats_learning_rate: Annotated[float, Range(0, 1), Symbol("lr_stats")] = 1e-4
    """Adam's step size for the statistics heads."""
    phi_learning_rate: Annotated[float, Range(0, 1), Symbol("lr_φ")] = 1e-3
    """Adam's step size for the inverse model."""
    grad_clip: Annotated[float, Range(1e-6, 1e9)] = 10.0
    """Largest global gradient norm of a statistics head and of the inverse model."""
    truncation: Annotated[str, Choice(TRUNCATIONS), Later()] = "bootstrap"
    """What the statistics heads' targets take the time limit for, as `critics.truncation` has it."""
    counts: Annotated[str, Choice(("frozen", "live")), Later()] = "frozen"
    """Counts the reward and r̄ read: `frozen` with the window, or `live`, so that no window is stationary."""

    def __post_init__(self):
        check(self, "reward.")
        if self.novelty == "ensemble" and self.bonus == "inv_sqrt":
            raise InputError(
                "reward.bonus=inv_sqrt is x itself, which reward.novelty=ensemble does not bound"
            )
        if self.novelty != "count" and self.counts == "live":
            raise InputError(f"reward.counts=live: reward.novelty={self.novelty} counts nothing")
        if self.a_min > self.a_max:
            raise InputError(
                f"reward.a_min ({self.a_min}) must not exceed reward.a_max ({self.a_max})"
            )

    def check_fits(self, config: Any) -> None:
        """Refuses a learner under which this reward would not be what it says."""
        if config.window > config.recent:
            longer = f"window ({config.window}) must not be longer than recent ({config.recent})"
            raise InputError(f"{longer}, the snapshot the reward is frozen from")
        if config.reward_gamma <= 0:
            name = "mix.gamma" if getattr(config, "num_values", 1) == 2 else "critics.gamma"
            raise InputError(f"{name} must be above 0: the reward's variances scale with it")
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
    """The configured numbers, and the discount under which the reward is valued."""
    values = {"gamma": gamma} | vars(config)
    return Constants(
        **{name: jnp.asarray(values[name], jnp.float32) for name in Constants.__annotations__}
    )
