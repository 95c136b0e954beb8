"""The trunk's kernels, interpreted, against the plain trunk; on a GPU, the kernels themselves."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from primax.config.schema import NetConfig
from primax.nn import kernels, nets

ROWS, COLS, PLANES = 4, 6, 3
SMALL = NetConfig(8, 16, 16)
ON_GPU = jax.default_backend() == "gpu"
EXACT = {"rtol": 2e-5, "atol": 2e-5}


def case(batch: int, num: tuple[int, ...] = (), shape=(PLANES, ROWS, COLS), sizes=SMALL):
    """A trunk, or several, with observations and weights for what it says of them."""
    k_net, k_see, k_weigh = jax.random.split(jax.random.key(0), 3)
    make = lambda key: nets.with_trunk(key, shape, sizes)[0]  # noqa: E731
    for _ in num:
        make = jax.vmap(make)
    net = make(jax.random.split(k_net, num) if num else k_net)
    seen = jax.random.bernoulli(k_see, 0.3, (batch, *shape))
    return net, seen, jax.random.normal(k_weigh, (batch, sizes.embedding))


def by_kernels(net: nets.Trunk, planes, dtype="float32"):
    layers = ((layer.weight, layer.bias) for layer in (net.first, net.second))
    x = jnp.moveaxis(planes, 1, -1).astype(jnp.float32)
    return net.embed.shift(kernels.trunk(x, *layers, net.embed.weight, dtype, not ON_GPU))


def plain(net: nets.Trunk, planes):
    return replace(net, config=replace(net.config, kernels=False))(nets.patches(planes))


def assert_close(found, wanted, **how):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, **how), found, wanted)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "sizes"),
    [
        ((4, ROWS, COLS), SMALL),
        ((9, ROWS, COLS), SMALL),
        ((2, 3, 5), NetConfig(9, 10, 17)),
    ],
    ids=["four columns a tile", "filled up", "odd sides and widths"],
)
def test_networks_and_their_gradients(shape, sizes):
    """Two networks on a minibatch that fills one block and a part of another."""
    net, planes, weight = case(70, (2,), shape, sizes)

    def both(say):
        def loss(net):
            out = jax.vmap(lambda net: say(net, planes))(net)
            return jnp.sum(out * jnp.stack([weight, weight])), out

        grads, out = jax.jit(jax.grad(loss, has_aux=True))(net)
        return replace(grads, config=sizes), out

    found, wanted = both(by_kernels), both(plain)
    assert_close(found, wanted, **EXACT)
    alone = jax.jit(jax.vmap(lambda net: by_kernels(net, planes)))(net)
    assert_close(alone, wanted[1], **EXACT)
    assert all(np.any(np.asarray(leaf)) for leaf in jax.tree.leaves(found))


def test_one_observation():
    net, planes, _ = case(1)
    assert_close(jax.jit(by_kernels)(net, planes), jax.jit(plain)(net, planes), **EXACT)


@pytest.mark.slow
def test_float16_is_as_fine_as_tf32():
    """Ten bits of fraction: relative errors near 2^-11, and gradients of any size survive."""
    net, planes, weight = case(16)
    far = lambda a, b: float(jnp.linalg.norm(a - b) / jnp.linalg.norm(b))  # noqa: E731

    @jax.jit
    def both(net, size):
        def loss(net):
            out = by_kernels(net, planes, "float16")
            return jnp.sum(out * (weight * size)), out

        return jax.grad(loss, has_aux=True)(net)

    slope = jax.jit(jax.grad(lambda net: jnp.sum(plain(net, planes) * weight)))
    exact, wanted = jax.tree.leaves(slope(net)), jax.jit(plain)(net, planes)
    for size in (1e-12, 1.0, 1e6):
        grads, out = both(net, size)
        assert 1e-6 < far(out, wanted) < 1e-3
        apart = [far(a / size, b) for a, b in zip(jax.tree.leaves(grads), exact, strict=True)]
        assert max(apart) < 2e-2, "a rounding that flips a ReLU moves what lies before it"
        assert apart[4] < 1e-3
    assert not any(np.any(np.asarray(leaf)) for leaf in jax.tree.leaves(both(net, 0.0)[0]))


@pytest.fixture
def asked_anew(monkeypatch):
    """On a device that calls itself a GPU."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    kernels.works.cache_clear()
    yield
    kernels.works.cache_clear()


@pytest.mark.parametrize("widths", [(4, 32, 64), (16, 32, 8)])
def test_narrow_layers_are_not_filled_up(widths, asked_anew, monkeypatch):
    monkeypatch.setattr(kernels, "trunk", None)  # not even tried
    assert not kernels.works(widths=widths)


def test_more_planes_than_fit_are_told_of(asked_anew, monkeypatch):
    monkeypatch.setattr(kernels, "trunk", None)
    with pytest.warns(UserWarning, match="11 planes, at most 10 fit"):
        assert not kernels.works(channels=11)


def test_a_trunk_takes_the_plain_way_where_it_must(monkeypatch):
    """Off a GPU, at the highest precision, and when told to."""
    net, planes, _ = case(16)
    patches = nets.patches(planes)
    assert net._fits(patches) == ON_GPU
    monkeypatch.setattr(kernels, "works", lambda *sizes: True)
    assert net._fits(patches)
    for change in ({"kernels": False}, {"precision": "highest"}):
        assert not replace(net, config=replace(SMALL, **change))._fits(patches)


@pytest.mark.slow
def test_kernels_that_compile_are_taken_even_when_asked_in_a_trace(asked_anew, monkeypatch):
    if not ON_GPU:
        monkeypatch.setattr(kernels, "trunk", partial(kernels.trunk, interpret=True))
    answers = []
    sizes = (ROWS, COLS, PLANES, (8, 16, 16))
    jax.eval_shape(lambda x: answers.append(kernels.works(*sizes)) or x, jnp.ones(3))
    assert answers == [True]


@pytest.mark.skipif(ON_GPU, reason="kernels compile here")
def test_a_device_the_kernels_fail_on_is_named(asked_anew):
    """Here a CPU: kernels do not compile for it, and that is no error."""
    with pytest.warns(UserWarning, match="plain matrix products"):
        assert not kernels.works()
