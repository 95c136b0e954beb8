"""A tree of arrays as bytes, and back: npz without pickle."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from primax.errors import InputError
from primax.runs import npz


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _plain(leaf: Any) -> np.ndarray:
    """An array numpy can store by itself: keys as their data, bfloat16 as its bits."""
    array = np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)
    return array.view(np.uint16) if array.dtype == jnp.bfloat16 else array


def _arrays(tree: Any) -> Iterator[tuple[str, np.ndarray]]:
    """Leaf by leaf, so that a device's memory need not be on the host all at once."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        yield jax.tree_util.keystr(path), _plain(leaf)


def write(file: npz.Sink, tree: Any) -> None:
    """Every leaf under its path, uncompressed; the same tree gives the same bytes."""
    npz.write(file, _arrays(tree))


def dump(tree: Any) -> bytes:
    """What `write` would write."""
    return npz.to_bytes(_arrays(tree))


def restore(source: Path | bytes, like: Any) -> Any:
    """The tree that was written, in the shape of `like`; anything else is refused by name."""
    paths = jax.tree_util.tree_leaves_with_path(like)
    wanted = {jax.tree_util.keystr(path): leaf for path, leaf in paths}
    try:
        _check_fits(npz.headers(source), wanted)  # before any of it is in memory
        found = {name: _made(array, wanted[name]) for name, array in npz.read(source)}
    except npz.NpzError as error:
        raise InputError(f"the state cannot be read: {error}") from error
    return jax.tree.unflatten(jax.tree.structure(like), [found[name] for name in wanted])


def _check_fits(headers: dict[str, npz.Header], wanted: dict[str, Any]) -> None:
    for name in headers.keys() ^ wanted.keys():
        lacks = "no " if name in wanted else ""
        raise InputError(f"the state does not fit this configuration: {lacks}{name}")
    for name, like in wanted.items():
        as_stored = jax.eval_shape(jax.random.key_data, like) if _is_key(like) else like
        kind = np.dtype(np.uint16 if like.dtype == jnp.bfloat16 else as_stored.dtype)
        if headers[name] != (kind, as_stored.shape):
            (found, shape), fits = headers[name], f"{like.dtype}{list(like.shape)}"
            raise InputError(f"the state's {name} is {found}{list(shape)}, not {fits}")


def _made(array: np.ndarray, like: Any) -> jax.Array:
    is_short = like.dtype == jnp.bfloat16
    made = _put(array.view(jnp.bfloat16) if is_short else array, getattr(like, "sharding", None))
    return jax.random.wrap_key_data(made) if _is_key(like) else made


def _put(array: np.ndarray, sharding: jax.sharding.Sharding | None) -> jax.Array:
    """Where it is to lie, without passing through a device that has no room for all of it."""
    return jnp.asarray(array) if sharding is None else jax.device_put(array, sharding)
