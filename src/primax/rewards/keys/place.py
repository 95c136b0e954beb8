"""Place: where in the observation the agent's actions show (after Choi et al. 2019).

Every cell looks at its surroundings before and after a step and says how likely each action was;
another small network looks at each cell's contents alone and says how likely it is that the action
shows there. The chance of an action is the mixture over cells: log Σ P(cell) P(action | cell) is what
is learnt. So that network learns to find the agent wherever it is, in cells it has never been to
as well, and what the agent does not move has no part in it.
"""

import math
from dataclasses import dataclass
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from primax.config.fields import check
from primax.errors import InputError
from primax.nn import nets
from primax.nn.nets import Linear
from primax.rewards.base import Spec
from primax.rewards.keys.base import Keys, Obs
from primax.rewards.keys.learnt import Learnt, Model, told
from primax.rewards.transition import Batch

WIDTH, HIDDEN, MARK = 16, 32, 8
"""Widths: of what is made of a cell, of the layer below the actions, and of each cell's own mark."""
MOST_CELLS = 16
"""An image is seen as this many cells a side at most, each a block of pixels."""


class Finder(eqx.Module):
    """From a cell's contents to how likely it is the place."""

    first: Linear
    second: Linear


class Teller(eqx.Module):
    """From a cell's surroundings before and after to the action."""

    around: Linear
    hidden: Linear
    out: Linear
    mark: Float[Array, "cells mark"]
    """Of each cell: what an action does may depend on where it is taken."""


@dataclass(frozen=True, kw_only=True)
class Place(Learnt):
    """The cell of the grid, or the block of the image, in which actions show."""

    def __post_init__(self):
        check(self, "Place: ")

    def fitted(self, spec: Spec) -> Keys:
        if spec.kind == "vector":
            raise InputError("keys of kind place need planes or an image: a vector has no places")
        return super().fitted(spec)

    @property
    def num_codes(self) -> int:
        return math.prod(self._cells)

    @property
    def _block(self) -> int:
        """Pixels of a cell's side."""
        shape = self.spec.shape
        return -(-max(shape[:2]) // MOST_CELLS) if self.spec.kind == "image" else 1

    @property
    def _cells(self) -> tuple[int, int]:
        """Rows and columns of cells."""
        spec = self.spec
        sides = spec.shape[1:] if spec.kind == "planes" else spec.shape[:2]
        return -(-sides[0] // self._block), -(-sides[1] // self._block)

    def model(self, key: PRNGKeyArray) -> Model:
        spec = self.spec
        channels = spec.shape[0] if spec.kind == "planes" else spec.shape[-1]
        contents = channels * self._block**2
        glance, find, around, hidden, out = nets.layers(
            key,
            (contents, WIDTH),
            (WIDTH, 1),
            (9 * contents, WIDTH),
            (2 * WIDTH + MARK, HIDDEN),
            (HIDDEN, spec.num_actions),
        )
        mark = jnp.zeros((self.num_codes, MARK))
        return Model(Finder(glance, find), Teller(around, hidden, out, mark))

    def code(self, coder: Finder, obs: Obs) -> Int[Array, " n"]:
        return jnp.argmax(found(coder, self._contents(obs)), axis=1)

    def loss(
        self, model: Model, batch: Batch, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Of the mixture; and of every cell by itself, or the place may never be looked at."""
        before, after = (self._contents(x) for x in (batch.obs, batch.next_obs))
        alone = by_cell(model.teacher, before, after)
        where = jax.nn.log_softmax(found(model.coder, after), axis=1)
        loss, accuracy = told(jax.nn.logsumexp(where[..., None] + alone, axis=1), batch)
        return loss + told(jnp.mean(alone, axis=1), batch)[0], accuracy

    def _contents(self, obs: Obs) -> Float[Array, "n rows cols contents"]:
        """The numbers of each cell."""
        if self.spec.kind == "planes":
            return jnp.moveaxis(obs, 1, -1).astype(jnp.float32)
        n, rows, cols, channels = obs.shape
        block, (down, across) = self._block, self._cells
        fill = ((0, 0), (0, down * block - rows), (0, across * block - cols), (0, 0))
        x = jnp.pad(obs, fill).reshape(n, down, block, across, block, channels)
        x = jnp.swapaxes(x, 2, 3).reshape(n, down, across, -1)
        return x.astype(jnp.float32) / 255.0


def found(
    finder: Finder, contents: Float[Array, "n rows cols contents"]
) -> Float[Array, "n cells"]:
    """How likely each cell is the place, as logits.

    In full precision: which is the largest must not depend on how many rows are asked at once.
    """
    product = partial(jnp.matmul, precision="highest")
    x = contents.reshape(contents.shape[0], -1, contents.shape[-1])
    x = jax.nn.relu(finder.first.shift(product(x, finder.first.weight)))
    return finder.second.shift(product(x, finder.second.weight))[..., 0]


def by_cell(
    teller: Teller,
    before: Float[Array, "n rows cols contents"],
    after: Float[Array, "n rows cols contents"],
) -> Float[Array, "n cells actions"]:
    """The logarithm of each action's chance, as every cell sees it."""
    num = before.shape[0]
    around = lambda x: jax.nn.relu(teller.around(nets.patches3x3(x))).reshape(num, -1, WIDTH)  # noqa: E731
    mark = jnp.broadcast_to(teller.mark[None], (num, *teller.mark.shape))
    seen = jnp.concatenate([around(before), around(after), mark], axis=-1)
    return jax.nn.log_softmax(teller.out(jax.nn.relu(teller.hidden(seen))))
