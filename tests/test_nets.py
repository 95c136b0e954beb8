"""Networks against jax's own convolution, and ensembles that share nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from primax.config.schema import NetConfig
from primax.nn import nets


def convolve(layer: nets.Linear, x: jax.Array) -> jax.Array:
    kernel = layer.weight.reshape(3, 3, x.shape[-1], -1)
    layout = ("NHWC", "HWIO", "NHWC")
    product = jax.lax.conv_general_dilated(
        x, kernel, (1, 1), "SAME", dimension_numbers=layout, precision="highest"
    )
    return product + layer.bias[None, None, None]


@pytest.mark.parametrize("way", ["cells", "rows", "direct"])
@pytest.mark.parametrize(("rows", "cols"), [(10, 10), (6, 6), (3, 10), (1, 1)])
def test_conv3x3_is_a_convolution_and_so_is_its_gradient(rows, cols, way):
    k_x, k_layer, k_weight = jax.random.split(jax.random.key(0), 3)
    x = jax.random.normal(k_x, (2, rows, cols, 3))
    layer, weight = (
        nets.layers(k_layer, (27, 5))[0],
        jax.random.normal(k_weight, (2, rows, cols, 5)),
    )
    ours, theirs = (
        jax.jit(jax.value_and_grad(lambda args, f=f: jnp.sum(weight * f(*args))))((layer, x))
        for f in (lambda layer, x: nets.conv3x3(layer, x, way), convolve)
    )
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4)


def test_trunk_is_the_papers():
    """3x3 C to 16 to 32 with padding, 3200 to 64, nothing after the embedding by default."""
    planes = (4, 10, 10)
    net = nets.net(jax.random.key(0), planes, NetConfig(), outputs=5)
    shapes = jax.tree.map(jnp.shape, net)
    assert shapes.trunk.first.weight == (36, 16) and shapes.trunk.second.weight == (144, 32)
    assert shapes.trunk.embed.weight == (3200, 64) and shapes.head.weight == (64, 5)
    x = jax.random.bernoulli(jax.random.key(1), 0.3, (7, *planes)).astype(jnp.float32)

    @jax.jit
    def embed(trunk, x):
        hidden = jax.nn.relu(convolve(trunk.first, jnp.moveaxis(x, 1, -1)))
        hidden = jax.nn.relu(convolve(trunk.second, hidden)).reshape(7, -1)
        return hidden @ trunk.embed.weight + trunk.embed.bias[None]

    embedding, says = embed(net.trunk, x), jax.jit(lambda trunk, seen: trunk(seen))
    np.testing.assert_allclose(says(net.trunk, nets.patches(x)), embedding, rtol=1e-4, atol=1e-5)
    relu = nets.Trunk(
        net.trunk.first, net.trunk.second, net.trunk.embed, NetConfig(activation="relu")
    )
    np.testing.assert_allclose(
        says(relu, nets.patches(x)), jax.nn.relu(embedding), rtol=1e-4, atol=1e-5
    )
    assert (embedding < 0).any()


def test_an_ensemble_is_convolved_directly_as_by_cells():
    """Under two axes of networks, with more members than are written out."""
    k_x, k_layer = jax.random.split(jax.random.key(0))
    x = jax.random.normal(k_x, (2, 4, 5, 3))
    keys = jax.random.split(k_layer, (2, 9))
    ensemble = jax.vmap(jax.vmap(lambda key: nets.layers(key, (27, 4))[0]))(keys)

    def grads(way):
        loss = lambda layer, x: jnp.sum(nets.conv3x3(layer, x, way) ** 2)  # noqa: E731
        one = jax.vmap(jax.value_and_grad(loss, (0, 1)), (0, None))
        return jax.jit(jax.vmap(one, (0, None)))(ensemble, x)

    ours, theirs = (jax.tree.leaves(grads(way)) for way in ("direct", "cells"))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("backend", "batch", "dtype", "expected"),
    [
        ("cpu", 64, "float32", "direct"),
        ("cpu", 1, "float32", "cells"),
        ("cpu", 64, "bfloat16", "cells"),
        ("gpu", 64, "float32", "rows"),
    ],
)
def test_the_way_depends_on_device_and_size(monkeypatch, backend, batch, dtype, expected):
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    (layer,) = nets.layers(jax.random.key(0), (144, 32))
    assert nets.way(layer, jnp.zeros((batch, 10, 10, 16), dtype)) == expected


def test_bfloat16_is_close_and_keeps_float32_outside():
    planes = (4, 10, 10)
    net = nets.net(jax.random.key(0), planes, NetConfig(), outputs=5)
    half = nets.Net(
        nets.Trunk(
            net.trunk.first, net.trunk.second, net.trunk.embed, NetConfig(precision="bfloat16")
        ),
        net.head,
    )
    x = nets.patches(jax.random.bernoulli(jax.random.key(1), 0.3, (64, *planes)))
    full, low = (jax.jit(lambda net, x: net(x))(net, x) for net in (net, half))
    assert low.dtype == jnp.float32
    error = float(jnp.linalg.norm(low - full) / jnp.linalg.norm(full))
    assert 1e-5 < error < 1e-2


def test_initial_weights_are_uniform_within_one_over_the_root_of_the_inputs():
    (layer,) = nets.layers(jax.random.key(0), (400, 300))
    assert float(jnp.abs(layer.weight).max()) <= 0.05
    assert float(layer.weight.std()) == pytest.approx(0.05 / 3**0.5, rel=0.02)
    assert float(jnp.abs(layer.bias).max()) <= 0.05 and float(layer.bias.std()) > 0.02
