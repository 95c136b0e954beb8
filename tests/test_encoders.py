"""From observations to embeddings, against plain numpy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import primax
from primax.config.schema import NetConfig
from primax.nn import encoders, nets

NET = NetConfig(first_channels=3, second_channels=4, embedding=5)


@pytest.mark.parametrize(
    ("sides", "want"),
    [
        ((84, 84), (2, 2, 2, 2)),
        ((20, 12), (2, 2)),
        ((9, 4), (2, 1)),
        ((8, 8), (1, 1)),
        ((1, 1), (1, 1)),
    ],
)
def test_images_are_halved_until_they_are_small(sides, want):
    assert encoders.strides(*sides) == want


def convolved(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, stride: int) -> np.ndarray:
    """3x3, padded by one, by loops over every cell kept."""
    rows, cols, c = x.shape
    padded = np.zeros((rows + 2, cols + 2, c))
    padded[1:-1, 1:-1] = x
    kernel = weight.reshape(3, 3, c, -1)
    out = np.zeros((-(-rows // stride), -(-cols // stride), kernel.shape[-1]))
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            part = padded[i * stride : i * stride + 3, j * stride : j * stride + 3]
            out[i, j] = np.tensordot(part, kernel, axes=3) + bias
    return out


@pytest.mark.parametrize("shape", [(11, 6, 2), (7, 5, 1)])
def test_the_strided_network_by_loops(shape):
    rng = np.random.default_rng(0)
    obs = rng.integers(0, 256, (3, *shape)).astype(np.uint8)
    image = encoders.Image()
    trunk, beside = image.build(jax.random.key(1), shape, NET, (5, 2))
    found = trunk(image.see(jnp.asarray(obs)))
    assert beside[0].weight.shape == (5, 2)
    for row, one in enumerate(obs):
        x = one / 255.0
        for layer, stride in zip(trunk.layers, encoders.strides(*shape[:2]), strict=True):
            x = np.maximum(
                convolved(x, np.asarray(layer.weight), np.asarray(layer.bias), stride), 0
            )
        want = x.reshape(-1) @ np.asarray(trunk.embed.weight) + np.asarray(trunk.embed.bias)
        np.testing.assert_allclose(found[row], want, rtol=1e-4, atol=1e-6)


def test_the_layers_of_a_vector_by_hand():
    vector = encoders.Vector()
    trunk, _ = vector.build(jax.random.key(0), (3,), NET)
    x = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    want = x
    for layer in trunk.hidden:
        assert layer.bias.shape == (64,)
        want = np.maximum(want @ np.asarray(layer.weight) + np.asarray(layer.bias), 0)
    want = want @ np.asarray(trunk.embed.weight) + np.asarray(trunk.embed.bias)
    np.testing.assert_allclose(trunk(vector.see(jnp.asarray(x))), want, rtol=1e-5, atol=1e-6)


def test_planes_are_the_papers_trunk_bit_for_bit():
    obs = jnp.asarray(np.random.default_rng(0).integers(0, 2, (2, 3, 4, 5)), jnp.uint8)
    ours, beside = encoders.Planes().build(jax.random.key(3), (3, 4, 5), NET, (5, 7))
    theirs, others = nets.with_trunk(jax.random.key(3), (3, 4, 5), NET, (5, 7))
    seen = encoders.Planes().see(obs)
    np.testing.assert_array_equal(ours(seen), theirs(nets.patches(obs)))
    np.testing.assert_array_equal(beside[0].weight, others[0].weight)


def test_what_is_whitened_is_not_scaled_again():
    image = encoders.Image()
    bytes_ = jnp.full((1, 4, 4, 1), 51, jnp.uint8)
    np.testing.assert_allclose(jnp.max(image.see(bytes_)), 0.2, rtol=1e-6)
    np.testing.assert_allclose(jnp.max(image.see(jnp.full((1, 4, 4, 1), 2.5))), 2.5)


class Mine(eqx.Module):
    """As Equinox's users write it: its activation is no array."""

    mlp: eqx.nn.MLP

    def __call__(self, obs):
        return jax.vmap(self.mlp)(obs)


def test_an_equinox_module_learns_as_an_encoder():
    make = lambda key, width: Mine(eqx.nn.MLP(2, width, 8, 1, key=key))  # noqa: E731
    settings = {"warmup": 4, "window": 4, "recent": 8, "replay": 32, "critics.batch": 4}
    bonus = primax.bonus("rnd", primax.Space((2,), 3), encoder=make, settings=settings)
    obs = np.random.default_rng(0).normal(size=(9, 1, 2)).astype(np.float32)
    never = np.zeros((9, 1), bool)
    step = primax.Transition(obs, np.zeros((9, 1), int), obs, never, never)
    first = bonus.init(0).reward.predictor.trunk.arrays.mlp.layers[0].weight
    state, worth = bonus.step(bonus.init(0), step)
    assert np.all(worth[4:] > 0)
    assert not np.array_equal(first, state.reward.predictor.trunk.arrays.mlp.layers[0].weight)


def test_a_network_of_the_users_own_is_what_every_part_sees_through():
    """One that says the same of everything: RND can learn it, and nothing is surprising."""

    class Blind:
        def __init__(self, key, width):
            self.width = width

        def __call__(self, obs):
            return jnp.zeros((obs.shape[0], self.width)) + 0.0 * jnp.sum(obs)

    jax.tree_util.register_pytree_node(
        Blind, lambda b: ((), b.width), lambda width, _: Blind(None, width)
    )
    settings = {"warmup": 4, "window": 4, "recent": 8, "replay": 32, "critics.batch": 4}
    bonus = primax.bonus("rnd", primax.Space((2,), 3), encoder=Blind, settings=settings)
    obs = np.random.default_rng(0).normal(size=(9, 1, 2)).astype(np.float32)
    never = np.zeros((9, 1), bool)
    step = primax.Transition(obs, np.zeros((9, 1), int), obs, never, never)
    state, worth = bonus.step(bonus.init(0), step)
    np.testing.assert_array_equal(worth, 0)
    assert float(state.metrics["rnd_error"]) == 0
