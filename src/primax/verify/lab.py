"""A small PRIME learner, run through the real code for two windows, and watched at their boundaries."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, PyTree, UInt8

from primax.agent import ring, training
from primax.agent.learner import Learner, State
from primax.config.schema import Config
from primax.methods import build
from primax.presets import configure
from primax.rewards.base import Metrics, Reward, Spec
from primax.rewards.prime import Prime
from primax.rewards.prime.intrinsic import Parts
from primax.rewards.prime.novelty import Where
from primax.rewards.prime.reward import PrimeState
from primax.rewards.prime.window import Readout
from primax.rewards.transition import Batch, Recent, Step
from primax.verify.bounds import Bounds, bounds
from primax.worlds import World

Table = dict[str, np.ndarray]
NINE_CELLS = "S..###\n...###\n...###\n######\n######\n######"
"""The smallest map a world takes, walled up but for 3x3 cells."""
SMALL = {
    "warmup": "1_000",
    "window": "500",
    "steps": "2_000",
    "replay": "4_000",
    "recent": "1_000",
    "update_every": "2",
    "reward.heads": "3",
}
LABS = {
    "bucket": ("butterflies", {"world.layout": NINE_CELLS, "world.butterflies": "1"}),
    "knn16": ("maze", {}),
}
"""The world of each way to condition S' on (s, a); φ matters to a frozen reward in the second only."""


class Watch(eqx.Module):
    """A reward's state, and copies of what it was like right after the last boundary."""

    now: PrimeState
    boundary: PrimeState
    recent: Recent
    """The snapshot that window was frozen from."""


class Watched(Reward[Watch]):
    """PRIME itself; all it adds is that a boundary is remembered."""

    spec: Spec
    prime: Prime

    def init(self, key: PRNGKeyArray) -> Watch:
        state = self.prime.init(key)
        return Watch(state, state, self.spec.no_rows())

    def begin(
        self, state: Watch, obs: UInt8[Array, "c rows cols"], key: PRNGKeyArray
    ) -> tuple[Watch, PyTree]:
        now, memo = self.prime.begin(state.now, obs, key)
        return replace(state, now=now), memo

    def observe(self, state: Watch, step: Step, key: PRNGKeyArray) -> tuple[Watch, PyTree]:
        now, memo = self.prime.observe(state.now, step, key)
        return replace(state, now=now), memo

    def refresh(self, state: Watch, recent: Recent, key: PRNGKeyArray) -> tuple[Watch, Metrics]:
        now, metrics = self.prime.refresh(state.now, recent, key)
        return Watch(now, now, recent), metrics

    def learn(self, state: Watch, batch: Batch, key: PRNGKeyArray) -> tuple[Watch, Metrics]:
        now, metrics = self.prime.learn(state.now, batch, key)
        return replace(state, now=now), metrics

    def score(self, state: Watch, batch: Batch) -> Float[Array, " batch"]:
        return self.prime.score(state.now, batch)


def compiled(function: Callable[..., Any], *args: Any) -> Any:
    """`function` for arguments like these; quickly on a CPU, where each runs a few times only."""
    options: Any = {"xla_backend_optimization_level": 0}
    # A lambda of its own: what was compiled before some part was replaced must not be found again.
    return (
        jax.jit(lambda *args: function(*args))
        .lower(*args)
        .compile(options if jax.default_backend() == "cpu" else None)
    )


@dataclass(frozen=True)
class Lab:
    """What the two windows left behind."""

    config: Config
    world: World
    prime: Prime
    ends: tuple[State, State]
    """At the end of each window."""
    table: Table
    """What the learner said of them, as `windows.csv` has it."""

    @property
    def watch(self) -> Watch:
        """The first window: how it began and how it ended."""
        return self.ends[0].reward

    @cached_property
    def bounds(self) -> Bounds:
        return bounds(self.config)

    @cached_property
    def rows(self) -> Batch:
        """Every row stored by the end of the first window, those lived within it too."""
        clock = self.config.warmup + self.config.window
        age = jnp.arange(clock, 0, -1)
        planes = self.prime.spec.shape
        return ring.read(self.ends[0].ring, jnp.int32(clock), age, planes)

    @cached_property
    def score(self) -> Callable[[PrimeState], tuple[np.ndarray, Parts]]:
        """Rewards and parts of those rows by any state, all through one compiled program."""

        def score(state: PrimeState, rows: Batch):
            return self.prime.score(state, rows), self.prime.parts(state, rows)

        program = compiled(score, self.watch.now, self.rows)
        return lambda state: jax.tree.map(np.asarray, program(state, self.rows))

    @cached_property
    def readout(self) -> Readout:
        """What the first window's frozen networks say of the states its snapshot led to."""
        state, readout = self.watch.boundary, self.prime.freezer.read_out
        window = state.window
        args = (window.constants, window.heads, state.prior, window.encoder)
        obs = self.watch.recent.rows.next_obs
        return jax.tree.map(np.asarray, compiled(readout, *args, obs)(*args, obs))

    def parts(self, where: Where) -> Parts:
        """The first window's reward at any (s, a)."""
        window, parts = self.watch.boundary.window, self.prime.freezer.parts
        return jax.tree.map(np.asarray, compiled(parts, window, where)(window, where))

    @property
    def every_key(self) -> Where:
        """All count keys; their observations are blank, so for `bucket` only."""
        num = self.prime.spec.num_keys
        key, obs = jnp.arange(num), jnp.zeros((num, *self.prime.spec.shape), jnp.uint8)
        return Where(obs, key % self.prime.spec.num_actions, key)


def run_lab(moments: str, seed: int = 0, others: dict[str, str] | None = None) -> Lab:
    """Trains for a warm-up and two windows: init, warm-up and window are the learner's own."""
    name, settings = LABS[moments]
    settings = SMALL | settings | {"reward.moments": moments} | (others or {})
    config = configure("prime", name, "smoke", settings)
    world, prime = build(config)
    assert isinstance(prime, Prime)
    learner = Learner(config, world, Watched(prime.spec, prime))

    def start(root: PRNGKeyArray, seed: Array) -> State:
        return learner.warm_up(learner.init(root, seed), jnp.int32(0))[0]

    first = (jax.random.key(0), jnp.int32(seed))
    state = compiled(start, *first)(*first)
    window = compiled(learner.window, state, jnp.int32(0))
    ends, parts = [], []
    for clock in (config.warmup, config.warmup + config.window):
        state, outputs = window(state, jnp.int32(clock))
        ends.append(state)
        metrics = {name: np.asarray(x)[None] for name, x in outputs["window"].items()}
        parts.append(training.window_rows((seed,), clock + config.window, metrics))
    table = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return Lab(config, world, prime, (ends[0], ends[1]), table)
