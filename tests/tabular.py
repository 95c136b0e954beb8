"""PRIME on a row of four cells, with networks that are tables: every number can be set by hand."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from primax.config.schema import NetConfig
from primax.nn import nets
from primax.rewards.base import Spec
from primax.rewards.prime import Prime, PrimeConfig
from primax.rewards.transition import Batch, Recent

CELLS, ACTIONS, GAMMA = 4, 5, 0.9
NET = NetConfig(first_channels=1, second_channels=1, embedding=CELLS)
MANY = 10**9


def trunk(table: np.ndarray) -> nets.Trunk:
    """A trunk whose embedding of cell s is table[s]: both convolutions pass the centre through."""
    centre = nets.Linear(jnp.zeros((9, 1)).at[4, 0].set(1.0), jnp.zeros(1))
    embed = nets.Linear(jnp.asarray(table, jnp.float32), jnp.zeros(table.shape[1]))
    return nets.Trunk(centre, centre, embed, replace(NET, embedding=table.shape[1]))


def net(table: np.ndarray) -> nets.Net:
    """A network that says table[s, a], the same for each of three quantiles."""
    wide = np.repeat(table, 3, axis=1)
    return nets.Net(
        trunk(np.eye(CELLS)), nets.Linear(jnp.asarray(wide, jnp.float32), jnp.zeros(wide.shape[1]))
    )


def stack(items):
    return jax.tree.map(lambda *x: jnp.stack(x), *items)


def observation(cell: np.ndarray) -> jnp.ndarray:
    return jnp.asarray(np.eye(CELLS, dtype=np.uint8)[cell].reshape(-1, 1, 1, CELLS))


def batch(rows: list[tuple[int, int, int]]) -> Batch:
    """Transitions (cell, action, next cell)."""
    cell, action, after = (np.array(column) for column in zip(*rows, strict=True))
    num = len(rows)
    return Batch(
        obs=observation(cell),
        action=jnp.asarray(action, jnp.int32),
        task=jnp.zeros(num),
        next_obs=observation(after),
        terminated=jnp.zeros(num, bool),
        truncated=jnp.zeros(num, bool),
        weight=jnp.ones(num),
        key=jnp.asarray(cell * ACTIONS + action, jnp.int32),
        next_key=jnp.asarray(after, jnp.int32),
        memo=(),
        next_memo=(),
    )


def recent(rows: list[tuple[int, int, int]], last: set[int] | None = None) -> Recent:
    """A snapshot of these rows, oldest first; every one ends an episode unless `last` says which."""
    num = len(rows)
    ends = range(num) if last is None else last
    return Recent(
        batch(rows),
        jnp.ones(num, bool),
        jnp.asarray([i in ends for i in range(num)]),
        jnp.full((num, ACTIONS), 1.0 / ACTIONS),
    )


def bounded(logits: np.ndarray) -> np.ndarray:
    """What a network must say for its quantiles to be `logits`: the inverse of 2 tanh."""
    return np.arctanh(np.asarray(logits, float) / 2)


class Bench:
    """A PRIME whose heads, priors, φ and counts are given, and the window frozen from them.

    Rewards are not clipped unless a test asks for it: what is clipped cannot be told apart.
    """

    def __init__(
        self, rows, heads, *, prior=None, phi=None, count=MANY, counts=None, last=None, **config
    ):
        num = len(rows)
        config = {
            "heads": len(heads),
            "quantiles": 3,
            "feature_dim": 2,
            "calibration": num,
            "reward_clip": 1e3,
        } | config
        self.options = PrimeConfig(**config)
        spec = Spec((1, 1, CELLS), ACTIONS, CELLS * ACTIONS, 100, NET, GAMMA, num)
        self.prime = Prime(spec, self.options)
        table = np.full((CELLS, ACTIONS), count)
        for (cell, action), value in (counts or {}).items():
            table[cell, action] = value
        prior = np.zeros((len(heads), CELLS, ACTIONS)) if prior is None else np.asarray(prior)
        phi = np.zeros((CELLS, 2)) if phi is None else np.asarray(phi, float)
        state = jax.jit(self.prime.init)(jax.random.key(0))
        state = eqx.tree_at(lambda s: s.inverse.encoder, state, trunk(phi))
        self.before = replace(
            state,
            online=stack([net(bounded(head)) for head in heads]),
            prior=stack([net(head) for head in prior]),
            novelty=jnp.asarray(table.reshape(-1), jnp.int32),
        )
        self.recent = recent(rows, last)
        self.refresh()

    def refresh(self):
        """Freezes the window again, by whatever the code now does."""
        self.trace()
        self.state, self.said = self.freeze(self.before, self.recent, jax.random.key(1))

    def trace(self):
        """Functions made anew, for jax would not trace the same one twice."""
        self.freeze = jax.jit(lambda state, rows, key: self.prime.refresh(state, rows, key))
        self.ask = jax.jit(lambda state, rows: self.prime.parts(state, rows))

    def parts(self, cell: int, action: int):
        """The parts at (cell, action)."""
        found = self.ask(self.state, batch([(cell, action, 0)]))
        return jax.tree.map(lambda x: x[0].item(), found)
