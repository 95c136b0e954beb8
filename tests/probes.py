"""Worlds so small that their action values can be worked out by hand. They never end, but one."""

from dataclasses import dataclass
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp

from primax.worlds.base import GridWorld, WorldState


@dataclass(frozen=True)
class ProbeConfig:
    """Options of a probe."""

    horizon: int = 4
    """Steps an episode lasts."""


class ProbeState(WorldState):
    agent: jax.Array
    time: jax.Array
    paid: jax.Array


class ProbeNoise(eqx.Module):
    bit: jax.Array


class Probe(GridWorld):
    """`agent` in 0, 1, 2 is the observation, one-hot over three cells; the rest is per probe."""

    config: ProbeConfig = eqx.field(static=True)
    channels: tuple[str, ...] = eqx.field(static=True)
    shape: tuple[int, int] = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    num_keys: int = eqx.field(static=True)
    start: int | None = eqx.field(static=True)
    walls: jax.Array
    moves: jax.Array

    def __init__(self, config: ProbeConfig = ProbeConfig()):  # noqa: B008
        self.config, self.horizon = config, config.horizon
        self.channels, self.shape, self.num_keys, self.start = ("agent",), (1, 3), 3, None
        self.walls = jnp.zeros((1, 3), bool)
        self.moves = jnp.zeros((3, 5), jnp.int32)

    def first(self, bit):
        return jnp.int32(0)

    def reset(self, key):
        bit = jax.random.bernoulli(key).astype(jnp.int32)
        return ProbeState(self.first(bit), jnp.int32(0), jnp.float32(0))

    def noise(self, key, num_steps):
        return ProbeNoise(jax.random.bernoulli(key, shape=(num_steps,)).astype(jnp.int32))

    def step(self, state, action, noise):
        agent, paid = self.rule(state.agent, action, noise.bit)
        return ProbeState(jnp.int32(agent), state.time + 1, jnp.float32(paid))

    def observe(self, state):
        return (jnp.arange(3) == state.agent).astype(jnp.uint8).reshape(1, 1, 3)

    def state_key(self, state):
        return state.agent

    def task(self, state):
        return state.paid

    def targets(self, state):
        return jnp.zeros(1, jnp.int32), jnp.zeros(1, bool)


class Constant(Probe):
    """Pays 0.5 a step: Q = 0.5 / (1 - γ) everywhere."""

    def rule(self, agent, action, bit):
        return agent, 0.5


class Seen(Probe):
    """Pays 1 in observation 1 and -1 in 0, which come by a fair coin: Q is just that."""

    def first(self, bit):
        return bit

    def rule(self, agent, action, bit):
        return bit, 2 * agent - 1


class Delayed(Probe):
    """0 -> 1 -> 2 -> 0, paying 1 on leaving 2: Q(2) = 1 / (1 - γ³), Q(1) = γ Q(2), Q(0) = γ² Q(2)."""

    def rule(self, agent, action, bit):
        return (agent + 1) % 3, agent == 2


class Chosen(Probe):
    """Pays 1 for action 2: Q(2) = 1 / (1 - γ), the others γ / (1 - γ)."""

    def rule(self, agent, action, bit):
        return agent, action == 2


class Both(Probe):
    """Pays 1 for the action that is the observation, a fair coin: 1 + γ / (1 - γ), else γ / (1 - γ)."""

    def first(self, bit):
        return bit

    def rule(self, agent, action, bit):
        return bit, action == agent


class Walks(Probe):
    """0 -> 1 -> 2, where it ends; pays 1 a step: Q(1) = 1, Q(0) = 1 + γ."""

    can_end = True

    def rule(self, agent, action, bit):
        return agent + 1, 1.0

    def terminated(self, state):
        return state.agent == 2


class Cut(Probe):
    """Pays 0.5 a step and could end, but only its time does: Q = 0.5 / (1 - γ)."""

    can_end = True

    def rule(self, agent, action, bit):
        return agent, 0.5


class Ends(Probe):
    """Pays 1 and ends after one step: Q(0) = 1."""

    can_end = True

    def rule(self, agent, action, bit):
        return 2, 1.0

    def terminated(self, state):
        return state.agent == 2


ENDLESS = (Constant, Seen, Delayed, Chosen, Both)


class Numbered(Probe):
    """The probe of that number in `ENDLESS`: one compiled program then serves them all."""

    number: jax.Array

    def __init__(self, number):
        super().__init__()
        self.number = number

    def first(self, bit):
        return jax.lax.switch(self.number, [partial(probe.first, self) for probe in ENDLESS], bit)

    def rule(self, agent, action, bit):
        def typed(probe, *args):
            agent, paid = probe.rule(self, *args)
            return jnp.int32(agent), jnp.float32(paid)

        rules = [partial(typed, probe) for probe in ENDLESS]
        return jax.lax.switch(self.number, rules, agent, action, bit)
