"""States as bytes and back, without pickle."""

import io
import pickle
import zipfile

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from primax.errors import InputError
from primax.runs import trees


def tree():
    return {
        "key": jax.random.split(jax.random.key(3), 2),
        "half": jnp.array([1.5, -2.25, 3e38], jnp.bfloat16),
        "bytes": jnp.arange(5, dtype=jnp.uint8),
        "count": jnp.int32(7),
        "flags": jnp.array([True, False]),
        "weights": (jnp.linspace(0, 1, 6).reshape(2, 3), ()),
    }


def test_every_kind_of_leaf_comes_back_with_its_type():
    before = tree()
    after = trees.restore(trees.dump(before), jax.eval_shape(tree))
    assert jax.tree.structure(before) == jax.tree.structure(after)
    for a, b in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert getattr(a, "weak_type", False) == getattr(b, "weak_type", False)
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_the_same_tree_gives_the_same_bytes():
    assert trees.dump(tree()) == trees.dump(tree())


def test_a_state_that_does_not_fit_is_refused_by_name():
    content = trees.dump(tree())
    other = tree() | {"count": jnp.float32(7)}
    with pytest.raises(InputError, match="'count'"):
        trees.restore(content, other)
    with pytest.raises(InputError, match="'extra'"):
        trees.restore(content, tree() | {"extra": jnp.int32(0)})
    with pytest.raises(InputError, match="cannot be read"):
        trees.restore(content[: len(content) // 2], tree())


class Hostile:
    """Unpickling this would raise KeyboardInterrupt, which no test survives quietly."""

    def __reduce__(self):
        return (exec, ("raise KeyboardInterrupt",))


def test_nothing_is_ever_unpickled():
    array = np.array([Hostile()], dtype=object)
    part = io.BytesIO()
    np.lib.format.write_array(part, array, allow_pickle=True)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("['count'].npy", part.getvalue())
    for content in (buffer.getvalue(), pickle.dumps(Hostile())):
        with pytest.raises(InputError, match="cannot be read"):
            trees.restore(content, {"count": jnp.int32(0)})
