"""Mean and variance of what follows (s, a), from the snapshot: one search, any number of channels.

An index holds the rows of the snapshot. Given channels (a number a row each) it becomes moments,
which answer for any (s, a) with the mean, the biased variance about that mean, and whether any row
spoke for it. Rows that are not valid never count, whatever they contain.
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

Answer = tuple[Float[Array, "n channels"], Float[Array, "n channels"], Bool[Array, " n"]]
QUERIES_AT_ONCE = 500


class At(eqx.Module):
    """Where moments are asked for, or rows lie."""

    key: Int[Array, " n"]
    action: Int[Array, " n"]
    place: Float[Array, "n dim"]
    """The state's coordinates, for those that go by distance."""


class Moments(eqx.Module):
    """Abstract; frozen with the window."""

    @abc.abstractmethod
    def at(self, where: At) -> Answer:
        """Mean, variance, and whether there is data; zeros where there is none."""


class Index(eqx.Module):
    """Abstract; rows made ready to be asked."""

    @abc.abstractmethod
    def moments(self, channels: Float[Array, "rows channels"]) -> Moments:
        """What the rows say of these channels."""


class BucketMoments(Moments):
    """A bucket's moments lie at each of its rows."""

    first: Int[Array, " keys"]
    count: Int[Array, " keys"]
    mean: Float[Array, "rows channels"]
    variance: Float[Array, "rows channels"]

    def at(self, where: At) -> Answer:
        has_data, row = self.count[where.key] > 0, self.first[where.key]
        keep = lambda x: jnp.where(has_data[:, None], x[row], 0.0)  # noqa: E731
        return keep(self.mean), keep(self.variance), has_data


class Buckets(Index):
    """`bucket`: the rows with the same count key, sorted so that a bucket lies together."""

    order: Int[Array, " rows"]
    key: Int[Array, " rows"]
    """Of the rows in that order; those not valid come last, under a key of their own."""
    first: Int[Array, " keys_and_one"]
    count: Int[Array, " keys_and_one"]

    def moments(self, channels: Float[Array, "rows channels"]) -> BucketMoments:
        """Taken about each bucket's first row: what is all the same has no variance, exactly."""
        first, count = self.first[self.key], self.count[self.key]
        last, count = first + count - 1, count[:, None]
        x = channels[self.order]
        origin = x[first]
        x = x - origin
        mean = self._sums(x)[last] / count
        variance = self._sums((x - mean) ** 2)[last] / count
        return BucketMoments(self.first[:-1], self.count[:-1], origin + mean, variance)

    def _sums(self, x: Float[Array, "rows channels"]) -> Float[Array, "rows channels"]:
        """Running sums that begin anew with every bucket, in an order and so in bits that are fixed.

        In round d every row adds the sum that ends 2^d rows before it, if that is its own bucket's.
        """
        rows = jnp.arange(x.shape[0])

        def double(d: Int[Array, ""], x: Float[Array, "rows channels"]):
            back = rows - 2**d
            is_own = (back >= 0) & (self.key[jnp.maximum(back, 0)] == self.key)
            return x + jnp.where(is_own[:, None], x[jnp.maximum(back, 0)], 0.0)

        return jax.lax.fori_loop(0, (x.shape[0] - 1).bit_length(), double, x)


def buckets(key: Int[Array, " rows"], is_valid: Bool[Array, " rows"], num_keys: int) -> Buckets:
    """Sorts the rows by key."""
    key = jnp.where(is_valid, key, num_keys)
    order = jnp.argsort(key, stable=True)
    key = key[order]
    bounds = jnp.searchsorted(key, jnp.arange(num_keys + 2), method="sort").astype(jnp.int32)
    return Buckets(order, key, jnp.minimum(bounds[:-1], key.shape[0] - 1), jnp.diff(bounds))


class Nearest(Index):
    """`nearest16` and `knn16`: the rows of the same action whose places are nearest."""

    rows: At
    """Newest first: of rows equally near, the newest count."""
    is_valid: Bool[Array, " rows"]
    num: int = eqx.field(static=True)
    weights: str = eqx.field(static=True)

    def moments(self, channels: Float[Array, "rows channels"]) -> "NearestMoments":
        return NearestMoments(self, channels[::-1])


class NearestMoments(Moments):
    """The search is made when asked."""

    index: Nearest
    channels: Float[Array, "rows channels"]

    def at(self, where: At) -> Answer:
        return jax.lax.map(self._one, where, batch_size=QUERIES_AT_ONCE)

    def _one(
        self, where: At
    ) -> tuple[Float[Array, " channels"], Float[Array, " channels"], Bool[Array, ""]]:
        rows = self.index.rows
        away = jnp.sum((rows.place - jnp.broadcast_to(where.place, rows.place.shape)) ** 2, axis=1)
        is_like = self.index.is_valid & (rows.action == where.action)
        negative, row = jax.lax.top_k(jnp.where(is_like, -away, -jnp.inf), self.index.num)
        is_found = jnp.isfinite(negative)
        weight = neighbour_weights(-negative, is_found, self.index.weights)
        x = jnp.where(is_found[:, None], self.channels[row], 0.0)
        origin, x = x[0], jnp.where(is_found[:, None], x - x[:1], 0.0)
        average = lambda x: jnp.sum(weight[:, None] * x, axis=0)  # noqa: E731
        mean = average(x)
        return origin + mean, average((x - mean[None, :]) ** 2), jnp.any(is_found)


def neighbour_weights(
    away: Float[Array, " num"], is_found: Bool[Array, " num"], kind: str
) -> Float[Array, " num"]:
    """Weights of the neighbours, summing to one; `away` holds squared distances, ascending.

    `gaussian` has the root of the median squared distance as its width, and is `uniform` where
    that is zero.
    """
    num = away.shape[0]
    if kind == "gaussian":
        width = away[jnp.maximum(jnp.sum(is_found) - 1, 0) // 2]
        raw = jnp.exp(-0.5 * away / jnp.where(width > 0, width, jnp.inf))
    else:
        raw = 1.0 / (1.0 + jnp.arange(num)) if kind == "rank" else jnp.ones(num)
    raw = jnp.where(is_found, raw, 0.0)
    return raw / jnp.maximum(jnp.sum(raw), 1e-30)


def nearest(rows: At, is_valid: Bool[Array, " rows"], num: int, weights: str) -> Nearest:
    """Takes rows oldest first, as everywhere else."""
    newest_first = jax.tree.map(lambda x: x[::-1], rows)
    return Nearest(newest_first, is_valid[::-1], num, weights)
