"""Net novelty: what is rarely met, less what is noise for as long as anyone remembers.

It keeps PRIME's aim and lets go of three of its parts. Novelty is 1/√N, which lasts longer than the
count realization's 1/N. Noise is remembered of the whole run, and not of the newest rows alone: a
place that is left is not forgotten. There is no gate, whose look-ahead would hide the noise for as
long as anything near it is new.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from primax.config.fields import Range, check
from primax.config.symbols import Symbol
from primax.errors import InputError, check_range
from primax.nn import nets
from primax.rewards.base import Metrics, Reward, Spec
from primax.rewards.count import MOST_KEYS
from primax.rewards.prime import probes
from primax.rewards.prime.counts import inverse_root
from primax.rewards.prime.moments import At, buckets
from primax.rewards.transition import Batch, Recent, Step


@dataclass(frozen=True)
class NetNoveltyConfig:
    """Options of net novelty."""

    aleatoric_weight: Annotated[float, Range(0, 1e9), Symbol("λ")] = 0.3
    """What noise costs: all that a state and action lead to is noise where this is paid in full."""
    probes: Annotated[int, Range(1, 1_000), Symbol("m")] = 16
    """Unit probes of ψ, along which noise is measured."""

    def __post_init__(self):
        check(self, "reward.")

    def check_fits(self, config: Any) -> None:
        """Refuses a learner in which steps would be left out of the moments."""
        for name in ("window", "warmup"):
            length = getattr(config, name)
            if length > config.recent:
                wrong = f"{name} ({length}) must not be longer than recent ({config.recent})"
                raise InputError(f"{wrong}: noise is measured from the newest rows")
        if config.snapshot != "newest":
            raise InputError("snapshot=random would leave steps out: net_novelty takes newest")


class Moments(eqx.Module):
    """Of the readings that followed each key, over all rows taken in."""

    num: Float[Array, " keys"]
    mean: Float[Array, "keys m"]
    spread: Float[Array, " keys"]
    """Squared distances from the mean, summed over rows and averaged over probes."""


class NetNoveltyState(eqx.Module):
    """What is counted and measured, and both as the window froze them."""

    count: Int[Array, " keys"]
    probes: Float[Array, "m flat"]
    moments: Moments
    taken: Int[Array, ""]
    """Rows of the run that are in the moments."""
    frozen_count: Int[Array, " keys"]
    frozen_noise: Float[Array, " keys"]


class NetNovelty(Reward[NetNoveltyState]):
    """1/√(N+1) less λ times the share of noise; a table over keys, fixed within a window."""

    only_counts = True

    spec: Spec
    config: NetNoveltyConfig = eqx.field(static=True)

    def __init__(self, spec: Spec, config: NetNoveltyConfig):
        check_range("the world's count keys", spec.num_keys, 1, MOST_KEYS)
        self.spec, self.config = spec, config

    def init(self, key: PRNGKeyArray) -> NetNoveltyState:
        num, m = self.spec.num_keys, self.config.probes
        none = lambda: jnp.zeros(num, jnp.int32)  # noqa: E731
        return NetNoveltyState(
            count=none(),
            probes=probes.unit_probes(key, m, self.spec.num_pixels),
            moments=nothing(num, m),
            taken=jnp.int32(0),
            frozen_count=none(),
            frozen_noise=jnp.zeros(num),
        )

    def observe(
        self, state: NetNoveltyState, step: Step, key: PRNGKeyArray
    ) -> tuple[NetNoveltyState, tuple]:
        return replace(state, count=state.count.at[step.key].add(1)), ()

    def count(
        self, state: NetNoveltyState, key: Int[Array, " n"], is_lived: Bool[Array, " n"]
    ) -> NetNoveltyState:
        return replace(state, count=state.count.at[key].add(is_lived.astype(jnp.int32)))

    def forget(self, state: NetNoveltyState) -> NetNoveltyState:
        """Keys are others: the next window measures noise anew, in all the newest rows."""
        num, m = state.moments.mean.shape
        again = {"moments": nothing(num, m), "taken": jnp.int32(0)}
        return replace(state, count=jnp.zeros_like(state.count), **again)

    def refresh(
        self, state: NetNoveltyState, recent: Recent, key: PRNGKeyArray
    ) -> tuple[NetNoveltyState, Metrics]:
        """Takes in each row once, then freezes."""
        rows = recent.rows
        assert rows.number is not None
        is_new = recent.is_lived & (rows.number >= state.taken)
        moments = merged(state.moments, self._moments(state, recent, is_new))
        noise = noise_share(moments, self.spec.num_pixels)
        was, now = self.worth(state, rows.key), self._of(state.count, noise, rows.key)
        weight = recent.is_lived / jnp.maximum(jnp.sum(recent.is_lived), 1)
        after = replace(
            state,
            moments=moments,
            taken=jnp.max(jnp.where(recent.is_valid, rows.number, -1)) + 1,
            frozen_count=state.count,
            frozen_noise=noise,
        )
        return after, {"reward_jump": jnp.sum(weight * jnp.abs(now - was))}

    def _moments(
        self, state: NetNoveltyState, recent: Recent, is_new: Bool[Array, " rows"]
    ) -> Moments:
        """Of some rows alone, for every key."""
        one = jnp.float32(1)
        read = lambda obs: probes.readings(probes.psi(obs), state.probes, one)  # noqa: E731
        readings = nets.map_chunks(read, recent.rows.next_obs)
        num = self.spec.num_keys
        index = buckets(recent.rows.key, is_new, num)
        every = At(jnp.arange(num), jnp.zeros(num, jnp.int32), jnp.zeros((num, 0)))
        mean, variance, _ = index.moments(readings).at(every)
        met = index.count[:-1].astype(jnp.float32)
        return Moments(met, mean, met * probes.probe_variance(variance))

    def worth(self, state: NetNoveltyState, key: Int[Array, " n"]) -> Float[Array, " n"]:
        """The reward of keys, as the window has it."""
        return self._of(state.frozen_count, state.frozen_noise, key)

    def _of(self, count: Array, noise: Array, key: Int[Array, " n"]) -> Float[Array, " n"]:
        return inverse_root(count[key]) - self.config.aleatoric_weight * noise[key]

    def score(self, state: NetNoveltyState, batch: Batch) -> Float[Array, " batch"]:
        return self.worth(state, batch.key)

    def learn(
        self, state: NetNoveltyState, batch: Batch, key: PRNGKeyArray
    ) -> tuple[NetNoveltyState, Metrics]:
        """Nothing is learnt; what the minibatch was worth is told by its parts."""
        weight = batch.weight / jnp.maximum(jnp.sum(batch.weight), 1.0)
        novelty, noise = inverse_root(state.frozen_count[batch.key]), state.frozen_noise[batch.key]
        mean = lambda x: jnp.sum(weight * x)  # noqa: E731
        penalty = self.config.aleatoric_weight * noise
        return state, {"novelty": mean(novelty), "noise": mean(noise), "penalty": mean(penalty)}


def nothing(num: int, m: int) -> Moments:
    """No row was taken in."""
    return Moments(jnp.zeros(num), jnp.zeros((num, m)), jnp.zeros(num))


def merged(a: Moments, b: Moments) -> Moments:
    """Of both sets of rows together: each set's spread, and that of the two means (Chan et al. 1983)."""
    num = a.num + b.num
    share = b.num / jnp.maximum(num, 1.0)
    away = jnp.where(b.num[:, None] > 0, b.mean - a.mean, 0.0)
    mean = a.mean + share[:, None] * away
    between = a.num * share * probes.probe_variance(away**2)
    return Moments(num, mean, a.spread + b.spread + between)


def noise_share(moments: Moments, dim: int) -> Float[Array, " keys"]:
    """tr Var(ψ | s, a), which is at most one since ψ is: d times a probe's mean variance."""
    return jnp.clip(dim * moments.spread / jnp.maximum(moments.num, 1.0), 0.0, 1.0)
