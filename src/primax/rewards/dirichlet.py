"""Dirichlet: what one more look at (s, a) is expected to tell of where it leads, exactly."""

from dataclasses import dataclass
from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import digamma
from jaxtyping import Array, Float, Int, PRNGKeyArray

from primax.config.fields import Range, check
from primax.errors import InputError, check_range
from primax.rewards.base import Metrics, Reward, Spec
from primax.rewards.transition import Batch, Obs, Recent, Step

MOST_ENTRIES = 50_000_000
"""Of the table of transitions, four bytes each."""
KEYS_AT_ONCE = 500


@dataclass(frozen=True)
class DirichletConfig:
    """Options of the Dirichlet information gain."""

    prior: Annotated[float, Range(1e-6, 1e9)] = 1.0
    """How many visits the prior is worth, spread evenly over all next states."""
    reward_scale: Annotated[float, Range(0, 1e9)] = 1.0
    """What the gain, in nats, is multiplied by."""

    def __post_init__(self):
        check(self, "reward.")

    def check_fits(self, config: Any) -> None:
        """Refuses a learner in which steps would go uncounted."""
        for name in ("window", "warmup"):
            length = getattr(config, name)
            if length > config.recent:
                wrong = f"{name} ({length}) must not be longer than recent ({config.recent})"
                raise InputError(f"{wrong}: transitions are counted from the newest rows")
        if config.snapshot != "newest":
            raise InputError("snapshot=random would leave steps uncounted: dirichlet takes newest")


class DirichletState(eqx.Module):
    """Transitions counted up to the window's beginning, and what is left to learn of each key."""

    count: Int[Array, "keys states"]
    gain: Float[Array, " keys"]
    window: Int[Array, ""]
    """How many windows have begun; stored with every observation, it tells the new rows."""


class Dirichlet(Reward[DirichletState]):
    """The mutual information of the next state and the world's own chances, under a Dirichlet."""

    spec: Spec
    config: DirichletConfig = eqx.field(static=True)

    def __init__(self, spec: Spec, config: DirichletConfig):
        entries = spec.num_keys * (spec.num_keys // spec.num_actions)
        check_range("the world's count keys times its states", entries, 1, MOST_ENTRIES)
        self.spec, self.config = spec, config

    @property
    def num_states(self) -> int:
        """Keys of a state alone."""
        return self.spec.num_keys // self.spec.num_actions

    def init(self, key: PRNGKeyArray) -> DirichletState:
        count = jnp.zeros((self.spec.num_keys, self.num_states), jnp.int32)
        return DirichletState(count, jnp.zeros(self.spec.num_keys), jnp.zeros((), jnp.int32))

    @property
    def reads_memo(self) -> bool:
        return False  # only a boundary asks which rows are new

    def begin(
        self, state: DirichletState, obs: Obs, key: PRNGKeyArray
    ) -> tuple[DirichletState, Int[Array, ""]]:
        return state, state.window

    def observe(
        self, state: DirichletState, step: Step, key: PRNGKeyArray
    ) -> tuple[DirichletState, Int[Array, ""]]:
        return state, state.window

    def refresh(
        self, state: DirichletState, recent: Recent, key: PRNGKeyArray
    ) -> tuple[DirichletState, Metrics]:
        """Counts the rows since the last boundary, each once, and works out every key's gain."""
        rows = recent.rows
        is_new = recent.is_lived & (rows.next_memo == state.window)
        count = state.count.at[rows.key, rows.next_key].add(is_new.astype(jnp.int32))
        prior = self.config.prior / self.num_states
        one = lambda count: information_gain(count.astype(jnp.float32) + prior)  # noqa: E731
        gain = jax.lax.map(one, count, batch_size=KEYS_AT_ONCE)
        return DirichletState(count, gain, state.window + 1), {"gain": jnp.mean(gain)}

    def score(self, state: DirichletState, batch: Batch) -> Float[Array, " batch"]:
        return self.config.reward_scale * state.gain[batch.key]


def information_gain(alpha: Float[Array, " states"]) -> Float[Array, ""]:
    """I(s'; θ) = Σ p_j [ψ(α_j + 1) - log α_j] - [ψ(α_0 + 1) - log α_0] with p = α/α_0, in nats.

    The expected divergence of the posterior after one more visit from the one before: what the
    next state is uncertain about, less the noise that would be left were θ known.
    """
    total = jnp.sum(alpha)
    return jnp.maximum(jnp.sum(alpha / total * _excess(alpha)) - _excess(total), 0.0)


def _excess(x: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """ψ(x + 1) - log x; for large x the series of it, whose two terms would cancel."""
    y = 1.0 / x
    series = y * (1.0 / 2 + y * (-1.0 / 12 + y**2 / 120))
    return jnp.where(x > 8, series, digamma(x + 1.0) - jnp.log(x))
