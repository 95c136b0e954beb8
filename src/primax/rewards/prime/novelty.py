"""Novelty: a frozen number x(s, a) ≥ 0 with a stated bound, for the V_epi and the r̄ slot alike."""

import abc
from typing import Generic, TypeVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from primax.rewards.base import Metrics, Spec
from primax.rewards.transition import Batch, Obs, Step

Live = TypeVar("Live")
Frozen = TypeVar("Frozen")


class Where(eqx.Module):
    """States and an action in each."""

    obs: Obs
    action: Int[Array, "*n"]
    key: Int[Array, "*n"]
    """Their count key."""


class Novelty(eqx.Module, Generic[Live, Frozen]):
    """What can be known better; it learns while the window lasts and is read as of its beginning."""

    spec: eqx.AbstractVar[Spec]

    @property
    @abc.abstractmethod
    def bound(self) -> float:
        """No value exceeds it; infinite where tanh alone bounds what is made of it."""

    @abc.abstractmethod
    def init(self, key: PRNGKeyArray) -> Live:
        """Before the first step."""

    @abc.abstractmethod
    def freeze(self, live: Live) -> Frozen:
        """What a window reads until the next."""

    @abc.abstractmethod
    def value(self, frozen: Frozen, where: Where) -> Float[Array, "*n"]:
        """x(s, a): near zero where nothing is left to learn."""

    def observe(self, live: Live, step: Step) -> Live:
        """One step was taken."""
        return live

    def count(self, live: Live, key: Int[Array, " n"], is_lived: Bool[Array, " n"]) -> Live:
        """Many steps were taken."""
        return live

    def forget(self, live: Live) -> Live:
        """Nothing was ever counted."""
        return live

    def learn(self, live: Live, batch: Batch, key: PRNGKeyArray) -> tuple[Live, Metrics]:
        """One training step."""
        return live, {}


def v_epi(
    x: Float[Array, "*n"], scale: Float[Array, ""], gamma: Float[Array, ""]
) -> Float[Array, "*n"]:
    """κ γ² tanh²(x), eq. (7): at most κ γ², and κ γ² x² where x is small."""
    return scale * gamma**2 * jnp.tanh(x) ** 2


def continuation_bonus(
    x: Float[Array, "*n"], kind: str, scale: Float[Array, ""], gamma: Float[Array, ""]
) -> Float[Array, "*n"]:
    """r̄, admissible: bounded, and as frozen as x is."""
    return {"tanh": jnp.tanh(x), "v_count": v_epi(x, scale, gamma), "inv_sqrt": x}[kind]
