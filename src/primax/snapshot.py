"""A tree of arrays as bytes, and back: npz without pickle."""

import io
import zipfile
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from primax.errors import InputError


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _plain(leaf: Any) -> np.ndarray:
    """An array numpy can store by itself: keys as their data, bfloat16 as its bits."""
    array = np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)
    return array.view(np.uint16) if array.dtype == jnp.bfloat16 else array


def dump(tree: Any) -> bytes:
    """Every leaf under its path, uncompressed; the same tree gives the same bytes."""
    arrays = {jax.tree_util.keystr(path): _plain(leaf) for path, leaf in _leaves(tree)}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            part = io.BytesIO()
            np.lib.format.write_array(part, np.asarray(array, order="C"), allow_pickle=False)
            # A fixed date: a time stamp would make equal states unequal files.
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0)), part.getvalue())
    return buffer.getvalue()


def restore(content: bytes, like: Any) -> Any:
    """The tree `dump` wrote, in the shape of `like`; anything else is refused by name."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, zipfile.BadZipFile, EOFError) as error:
        raise InputError(f"the state cannot be read: {error}") from error
    leaves = _leaves(like)
    names = [jax.tree_util.keystr(path) for path, _ in leaves]
    if set(names) != set(arrays):
        odd = sorted(set(names) ^ set(arrays))
        raise InputError(f"the state does not fit this configuration: {odd[0]}")
    fitted = [_fit(name, arrays[name], leaf) for name, (_, leaf) in zip(names, leaves, strict=True)]
    return jax.tree.unflatten(jax.tree.structure(like), fitted)


def _leaves(tree: Any) -> list[tuple[Any, Any]]:
    return jax.tree_util.tree_leaves_with_path(tree)


def _fit(name: str, array: np.ndarray, like: Any) -> jax.Array:
    if _is_key(like):
        made: Any = jax.random.wrap_key_data(jnp.asarray(array))
    elif like.dtype == jnp.bfloat16:
        made = jnp.asarray(array.view(jnp.bfloat16))
    else:
        made = jnp.asarray(array)
    if (made.shape, made.dtype) != (like.shape, like.dtype):
        found = f"{made.dtype}{list(made.shape)}"
        raise InputError(f"the state's {name} is {found}, not {like.dtype}{list(like.shape)}")
    return made
