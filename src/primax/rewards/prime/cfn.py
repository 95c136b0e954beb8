"""Coin-flip networks (Lobel, Bagaria & Konidaris 2023): counts read off a network that learns noise.

Every visit of (s, a) has a vector of fair signs. What predicts them best is the mean of those met at
(s, a), and the mean square of a mean of N signs is 1/N in expectation. A frozen random network stands
beside the one that learns, so that what was never met is taken for met about once.
"""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree, Shaped, UInt32

from primax.errors import InputError
from primax.nn import nets
from primax.nn.optim import adam_start, adam_step
from primax.rewards.base import Metrics, Spec
from primax.rewards.parts import normaliser
from primax.rewards.prime.novelty import Novelty, Where
from primax.rewards.transition import Batch

FLIPS = 20
"""Signs of a visit."""
LEARNING_RATE = 3e-4
"""Adam's step size."""
GRAD_CLIP = 10.0
"""Largest global gradient norm."""
SMALLEST = 1e-4
"""The least deviation an output of the random network is divided by: rounding, not the state, is below."""


class Coins(eqx.Module):
    """All that an estimate is made from."""

    net: nets.Net
    prior: nets.Net
    """Random, and never changes."""
    moments: normaliser.Running
    """Of the random network's outputs on the rows learnt from."""


class CfnState(eqx.Module):
    """The estimate, and what only training needs."""

    coins: Coins
    optimiser: PyTree
    coin_key: UInt32[Array, " words"]
    """The key of the signs, as plain numbers."""


class CfnNovelty(Novelty[CfnState, Coins]):
    """x = 1/√(N+1), with 1/N by coin flips, which cannot tell never met from met once."""

    spec: Spec

    @property
    def bound(self) -> float:
        return 0.5**0.5

    def init(self, key: PRNGKeyArray) -> CfnState:
        k_net, k_prior, k_coins = jax.random.split(key, 3)
        num = self.spec.num_actions * FLIPS
        net, prior = (self.spec.network(k, num) for k in (k_net, k_prior))
        coins = Coins(net, prior, normaliser.start((num,)))
        return CfnState(coins, adam_start(net), jax.random.key_data(k_coins))

    def freeze(self, live: CfnState) -> Coins:
        """Both networks and the scale; what only training needs stays behind."""
        return live.coins

    def value(self, frozen: Coins, where: Where) -> Float[Array, "*n"]:
        share = self.inverse_count(frozen, where)
        return jnp.sqrt(share / (1.0 + share))

    def inverse_count(self, coins: Coins, where: Where) -> Float[Array, " n"]:
        """1/N as estimated, at most 1; before anything was learnt, 1 everywhere."""
        share = mean_square(self.says(coins, where))
        # Until a row was seen the random network's outputs are at no scale.
        return jnp.where(coins.moments.count[0] >= 1.0, jnp.minimum(share, 1.0), 1.0)

    def says(self, coins: Coins, where: Where) -> Float[Array, "n flips"]:
        """The signs as predicted: their mean over the visits, once that is learnt."""

        def some(rows: tuple[Array, Array]) -> Float[Array, "n flips"]:
            seen = self.spec.see(rows[0])
            prior = _to_scale(coins.moments, coins.prior(seen))
            return self._chosen(coins.net(seen) + prior, rows[1])

        return nets.map_chunks(some, (where.obs, where.action))

    def learn(self, live: CfnState, batch: Batch, key: PRNGKeyArray) -> tuple[CfnState, Metrics]:
        """One step toward the signs of the rows' visits."""
        if batch.number is None:
            raise InputError(
                "reward.novelty=cfn learns from steps whose number in the run is known, which a "
                "caller's own minibatches do not say: leave update_every above 0"
            )
        coins, seen = live.coins, self.spec.see(batch.obs)
        signs = flips(live.coin_key, batch.number)
        outputs = coins.prior(seen)
        weight = jnp.broadcast_to(batch.weight[:, None], outputs.shape)
        moments = normaliser.merge(coins.moments, outputs, weight)
        prior = _to_scale(moments, outputs)

        def loss(net: nets.Net) -> Float[Array, ""]:
            says = self._chosen(net(seen) + prior, batch.action)
            return jnp.mean(batch.weight * mean_square(says - signs))

        value, grads = jax.value_and_grad(loss)(coins.net)
        net, optimiser = adam_step(
            coins.net,
            grads,
            live.optimiser,
            learning_rate=jnp.float32(LEARNING_RATE),
            grad_clip=jnp.float32(GRAD_CLIP),
        )
        coins = Coins(net, coins.prior, moments)
        return replace(live, coins=coins, optimiser=optimiser), {"cfn_loss": value}

    def _chosen(
        self, outputs: Float[Array, "n outputs"], action: Int[Array, " n"]
    ) -> Float[Array, "n flips"]:
        """What is said of the action taken."""
        return nets.chosen(outputs.reshape(-1, self.spec.num_actions, FLIPS), action)


def flips(coin_key: UInt32[Array, " words"], number: Int[Array, " n"]) -> Float[Array, "n flips"]:
    """The signs of the visits that were the run's steps of these numbers, however often asked."""
    key = jax.random.wrap_key_data(coin_key)
    one = lambda i: jax.random.rademacher(jax.random.fold_in(key, i), (FLIPS,), jnp.float32)  # noqa: E731
    return jax.vmap(one)(number)


def mean_square(x: Float[Array, "n flips"]) -> Float[Array, " n"]:
    """Over the flips."""
    return jnp.mean(x**2, axis=-1)


def _to_scale(
    moments: normaliser.Running, outputs: Shaped[Array, "n outputs"]
) -> Float[Array, "n outputs"]:
    """The random network's outputs with mean 0 and mean square 1 over the rows learnt from."""
    return normaliser.whitened(moments, outputs, SMALLEST)
