"""The grid of "Curiosity-Critic" (Bhaskara & Wang 2026): half of it shows pictures, half of it noise.

Every number here is the published one: the paper's repository, vinbhaskara/Curiosity-Critic, gives the
grid, the agent and the world model in its README, and the settings of every run with its results.
docs/curiosity_critic.md says which.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, Key

from primax.nn import nets

SIDE, NUM_PIXELS = 30, 200
NUM_CELLS, NUM_ACTIONS = SIDE**2, 4
GRID_SEED, SHIFT = 28_081_994, 3
"""Of the one picture that all pictures are, and by how many pixels the next cell's is turned."""
START = 15 * SIDE + 15
"""Beside the line between the halves, in the noise."""
HIDDEN, LEARNING_RATE, WARMUP = 1_024, 1e-3, 100
"""Of the world model; its warm-up is a random walk, the same for every reward."""
OPTIMISER = optax.adam(LEARNING_RATE)
EPSILON, STEP_SIZE, GAMMA, OPTIMISM = 0.3, 0.05, 0.0, 3.0
"""Of the agent: chance of a random move, what an update counts, discount, every cell's first value."""
MEMORY, SMALLEST = 0.95, 1e-8
"""Of the deviation that rewards are divided by."""

ROWS, COLS = np.divmod(np.arange(NUM_CELLS), SIDE)
LEARNABLE = np.flatnonzero(COLS < SIDE // 2)
"""Cells whose picture stays: the left half."""
PLACES = np.concatenate([np.eye(SIDE)[ROWS], np.eye(SIDE)[COLS]], axis=1).astype(np.float32)
"""Of every cell: its row and its column, one number of each set."""
MOVES = np.stack([ROWS - 1, ROWS + 1, COLS - 1, COLS + 1], axis=1)
ALLOWED = (MOVES >= 0) & (MOVES < SIDE)
"""Up, down, left, right; no move leads off the grid."""
LEADS_TO = np.where(ALLOWED, np.arange(NUM_CELLS)[:, None] + [-SIDE, SIDE, -1, 1], 0)


def pictures() -> Float[np.ndarray, "cells pixels"]:
    """Of the learnable cells, row by row: the same zeros and ones, turned further in each; else zeros."""
    base = np.random.default_rng(GRID_SEED).random(NUM_PIXELS).astype(np.float32) > 0.5
    found = np.zeros((NUM_CELLS, NUM_PIXELS), np.float32)
    for number, cell in enumerate(LEARNABLE):
        found[cell] = np.roll(base, SHIFT * number)
    return found


PICTURES = pictures()


def is_noise(cell: Int[Array, ""]) -> Bool[Array, ""]:
    """Whether a cell shows something else at every visit."""
    return cell % SIDE >= SIDE // 2


def screen(cell: Int[Array, ""], key: Key[Array, ""]) -> Float[Array, " pixels"]:
    """What a cell shows now."""
    coins = jax.random.bernoulli(key, shape=(NUM_PIXELS,)).astype(jnp.float32)
    return jnp.where(is_noise(cell), coins, jnp.asarray(PICTURES)[cell])


class Mlp(eqx.Module):
    """One hidden layer with ReLU."""

    hidden: nets.Linear
    last: nets.Linear

    def __call__(self, x: Float[Array, "*n inputs"]) -> Float[Array, "*n outputs"]:
        return self.last(jax.nn.relu(self.hidden(x)))


def mlp(key: Key[Array, ""], inputs: int, hidden: int, outputs: int) -> Mlp:
    """A fresh one, weights and biases uniform within one over the root of a layer's inputs."""
    return Mlp(*nets.layers(key, (inputs, hidden), (hidden, outputs)))


class Learner(eqx.Module):
    """A network and its Adam."""

    net: Mlp
    optimiser: Any

    @classmethod
    def of(cls, net: Mlp) -> "Learner":
        return cls(net, OPTIMISER.init(net))

    def learnt(self, x: Float[Array, " inputs"], y: Float[Array, " outputs"]) -> "Learner":
        """After one step on the mean squared error of one row."""
        grads = jax.grad(lambda net: jnp.mean((net(x) - y) ** 2))(self.net)
        steps, optimiser = OPTIMISER.update(grads, self.optimiser)
        return Learner(optax.apply_updates(self.net, steps), optimiser)


def distance(x: Float[Array, "*n pixels"], y: Float[Array, "*n pixels"]) -> Float[Array, "*n"]:
    """The L2 norm of the difference."""
    return jnp.linalg.norm(x - y, axis=-1)


def error(model: Mlp) -> Float[Array, ""]:
    """The measure: the mean distance between picture and prediction over the learnable cells."""
    return jnp.mean(distance(model(jnp.asarray(PLACES[LEARNABLE])), PICTURES[LEARNABLE]))


def world_model(key: Key[Array, ""]) -> Mlp:
    """The network all rewards of a seed begin with: it has learnt from a short random walk."""
    k_net, k_walk = jax.random.split(key)

    def step(carry: tuple[Learner, Int[Array, ""]], key: Key[Array, ""]):
        (model, cell), (k_screen, k_move) = carry, jax.random.split(key)
        model = model.learnt(jnp.asarray(PLACES)[cell], screen(cell, k_screen))
        return (model, jnp.asarray(LEADS_TO)[cell, drawn(jnp.asarray(ALLOWED)[cell], k_move)]), None

    begin = (Learner.of(mlp(k_net, 2 * SIDE, HIDDEN, NUM_PIXELS)), jnp.int32(START))
    (model, _), _ = jax.lax.scan(step, begin, jax.random.split(k_walk, WARMUP))
    return model.net


def drawn(among: Bool[Array, " n"], key: Key[Array, ""]) -> Int[Array, ""]:
    """One of those, each as likely."""
    return jnp.argmax(jnp.where(among, jax.random.uniform(key, among.shape), -1.0))


def chosen(
    values: Float[Array, " cells"], cell: Int[Array, ""], epsilon: float, key: Key[Array, ""]
) -> Int[Array, ""]:
    """A move: to the best neighbour (one of the best, drawn), or by chance any that is allowed."""
    k_explore, k_move = jax.random.split(key)
    allowed = jnp.asarray(ALLOWED)[cell]
    around = jnp.where(allowed, values[jnp.asarray(LEADS_TO)[cell]], -jnp.inf)
    is_random = jax.random.uniform(k_explore) < epsilon
    return drawn(jnp.where(is_random, allowed, around == jnp.max(around)), k_move)


def updated(
    values: Float[Array, " cells"], cell: Int[Array, ""], reward: Float[Array, ""], gamma: float
) -> Float[Array, " cells"]:
    """V(s) + α [r + γ max V(neighbours) - V(s)] at the cell, and all else as it was."""
    around = jnp.where(jnp.asarray(ALLOWED)[cell], values[jnp.asarray(LEADS_TO)[cell]], -jnp.inf)
    away = reward + gamma * jnp.max(around) - values[cell]
    return values.at[cell].add(STEP_SIZE * away)


class Scale(eqx.Module):
    """Exponential moments of the rewards so far, from zero."""

    mean: Float[Array, ""]
    variance: Float[Array, ""]


def scaled(scale: Scale, reward: Float[Array, ""]) -> tuple[Scale, Float[Array, ""]]:
    """r over √(EMA(r²) - EMA(r)²), this r included; the variance is kept as such, not as a difference."""
    away = reward - scale.mean
    variance = MEMORY * (scale.variance + (1 - MEMORY) * away**2)
    scale = Scale(scale.mean + (1 - MEMORY) * away, variance)
    return scale, reward / (jnp.sqrt(variance) + SMALLEST)
