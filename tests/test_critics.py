"""The critics' losses, by hand and against rlax; targets, bounds and clipping."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import rlax

from primax.agent import critics
from primax.config.schema import CriticsConfig, NetConfig
from primax.nn import nets, optim

PLANES = (2, 3, 3)
NET = NetConfig(first_channels=3, second_channels=4, embedding=5)


update = jax.jit(critics.update, static_argnums=5)


def numbers(**changes) -> critics.Rates:
    return critics.rates(CriticsConfig(**({"q_penalty": 0.1} | changes)))


def minibatch(seed: int, size: int = 8):
    k_obs, k_next, k_action, k_reward, k_end = jax.random.split(jax.random.key(seed), 5)
    before, after = (
        nets.patches(jax.random.bernoulli(k, 0.4, (size, *PLANES))) for k in (k_obs, k_next)
    )
    action = jax.random.randint(k_action, (size,), 0, 5)
    reward = jax.random.normal(k_reward, (size,))
    return (
        before,
        after,
        (action, reward, jnp.ones(size), jax.random.bernoulli(k_end, 0.3, (size,))),
    )


def test_td_target_by_hand():
    """Best by the selector is action 2, worth 5 to the target: 1 + 0.9 * 5."""
    selector, value = jnp.array([1.0, 2.0, 3.0]), jnp.array([7.0, 6.0, 5.0])
    assert float(
        critics.td_target(jnp.float32(1), jnp.float32(0.9), selector, value)
    ) == pytest.approx(5.5)
    assert float(
        critics.td_target(jnp.float32(1), jnp.float32(0.9), value, value)
    ) == pytest.approx(7.3)
    assert float(critics.td_target(jnp.float32(1), jnp.float32(0), selector, value)) == 1.0


def test_soft_bound_by_hand():
    q = jnp.array([-25.0, -20.0, 0.0, 20.5, 30.0])
    np.testing.assert_allclose(critics.soft_bound(q, numbers()), [2.5, 0, 0, 0.025, 10], rtol=1e-5)


def test_the_loss_by_hand_beyond_the_bound():
    """Q = (25, -21, 0, 0, 0) everywhere, action 0, target 24: 1 + 0.1 * (25 + 1)."""
    net = critics.init(jax.random.key(0), 1, NET, PLANES, 5).online
    net = jax.tree.map(lambda x: jnp.zeros_like(x[0]), net)
    net = nets.Net(net.trunk, nets.Linear(net.head.weight, jnp.array([25.0, -21.0, 0.0, 0.0, 0.0])))
    before, _, (_, _, weight, _) = minibatch(0, size=4)
    action, y = jnp.zeros(4, jnp.int32), jnp.full(4, 24.0)
    head_loss = jax.jit(critics.head_loss)
    loss, taken = head_loss(net, before, action, y, weight, numbers())
    assert float(loss) == pytest.approx(3.6, rel=1e-5) and taken.tolist() == [25.0] * 4
    half = jnp.array([1.0, 1.0, 0.0, 0.0])
    assert float(head_loss(net, before, action, y, half, numbers())[0]) == pytest.approx(1.8)


@pytest.mark.parametrize("double", [True, False])
def test_the_loss_is_rlaxs_squared_error_for_every_head(double):
    rates = numbers(gamma=0.9, learning_rate=0.0)
    state = critics.init(jax.random.key(0), 3, NET, PLANES, 5)
    other = critics.init(jax.random.key(1), 3, NET, PLANES, 5)
    state = critics.Critics(state.online, other.online, state.optimiser)
    before, after, batch = minibatch(2)
    action, reward, _, terminated = batch
    _, metrics = update(state, rates, before, after, batch, double)
    discount = 0.9 * (1 - terminated.astype(jnp.float32))
    says = jax.jit(lambda net, seen: net(seen))
    losses = []
    for k in range(3):
        online, target = (
            jax.tree.map(lambda x, k=k: x[k], tree) for tree in (state.online, state.target)
        )
        q, q_online, q_target = says(online, before), says(online, after), says(target, after)
        if double:
            error = jax.vmap(rlax.double_q_learning)(
                q, action, reward, discount, q_target, q_online
            )
        else:
            error = jax.vmap(rlax.q_learning)(q, action, reward, discount, q_target)
        losses.append(jnp.mean(error**2))
    assert float(metrics["loss"]) == pytest.approx(float(np.mean(losses)), rel=1e-4)
    assert float(metrics["y_abs_top"]) == float(metrics["y_abs_max"]) > float(metrics["y_abs"])


def test_rows_of_no_weight_teach_nothing():
    """Poisoned rows, rewards of a million, leave the step as it is without them."""
    state = critics.init(jax.random.key(0), 2, NET, PLANES, 5)
    before, after, (action, reward, weight, terminated) = minibatch(3)
    poison = jnp.where(jnp.arange(8) < 4, reward, 1e6)
    weight = jnp.where(jnp.arange(8) < 4, 1.0, 0.0)
    rates = numbers()
    with_poison, _ = update(state, rates, before, after, (action, poison, weight, terminated), True)
    without, _ = update(
        state, rates, before, after, (action, reward * weight, weight, terminated), True
    )
    for a, b in zip(jax.tree.leaves(with_poison), jax.tree.leaves(without), strict=True):
        np.testing.assert_array_equal(a, b)


def test_heads_do_not_touch_each_other():
    """A head steps the same whichever heads are beside it."""
    rates = numbers()
    many = critics.init(jax.random.key(0), 3, NET, PLANES, 5)
    alone = jax.tree.map(lambda x: x[1:2], many)
    args = minibatch(4)
    many_after, _ = update(many, rates, args[0], args[1], args[2], True)
    alone_after, _ = update(alone, rates, args[0], args[1], args[2], True)
    for a, b in zip(jax.tree.leaves(many_after), jax.tree.leaves(alone_after), strict=True):
        np.testing.assert_allclose(a[1:2], b, rtol=2e-5, atol=1e-6)
    for leaf in jax.tree.leaves(many.online):
        assert not np.array_equal(leaf[0], leaf[1])


def test_a_shared_trunk_is_one_network_with_many_output_layers():
    """Against one whose trunk there is once: its loss is the sum of the heads' losses."""
    rates = numbers(gamma=0.9, grad_clip=0.5)
    state = critics.share(critics.init(jax.random.key(0), 3, NET, PLANES, 5))
    before, after, batch = minibatch(5)
    action, reward, weight, terminated = batch
    discount = 0.9 * (1 - terminated.astype(jnp.float32))
    q = critics.values(state.online, after)
    y = reward[None] + discount[None] * jnp.max(q, axis=-1)

    def loss(one):
        heads = [nets.Net(one[0], jax.tree.map(lambda x, k=k: x[k], one[1])) for k in range(3)]
        losses = [
            critics.head_loss(h, before, action, y[k], weight, rates)[0]
            for k, h in enumerate(heads)
        ]
        return sum(losses)

    one = (jax.tree.map(lambda x: x[0], state.online.trunk), state.online.head)
    grads = jax.jit(jax.grad(loss))(one)
    assert float(optax.tree.norm(grads)) > 0.5
    steps = {"learning_rate": rates.learning_rate, "grad_clip": rates.grad_clip}
    (trunk, head), _ = optim.adam_step(one, grads, optim.adam_start(one), **steps)
    ours, _ = jax.jit(critics.update, static_argnums=(5, 6))(
        state, rates, before, after, batch, True, True
    )
    for k in range(3):
        for a, b in zip(*map(jax.tree.leaves, (ours.online.trunk, trunk)), strict=True):
            np.testing.assert_array_equal(a[k], a[0])
            np.testing.assert_allclose(a[k], b, atol=2e-6)
    for a, b in zip(*map(jax.tree.leaves, (ours.online.head, head)), strict=True):
        np.testing.assert_allclose(a, b, atol=2e-6)


def test_adam_step_is_optax_with_the_clip():
    params = {"a": jnp.array([1.0, -2.0]), "b": jnp.array([0.5])}
    grads = {"a": jnp.array([30.0, 40.0]), "b": jnp.array([0.0])}
    optimiser = optax.chain(optax.clip_by_global_norm(10.0), optax.adam(3e-4))
    theirs, ours, state = params, params, optax.scale_by_adam().init(params)
    reference = optimiser.init(params)
    for i in range(3):
        scaled = jax.tree.map(lambda g, i=i: g / 10**i, grads)
        updates, reference = optimiser.update(scaled, reference)
        theirs = optax.apply_updates(theirs, updates)
        ours, state = optim.adam_step(
            ours, scaled, state, learning_rate=jnp.float32(3e-4), grad_clip=jnp.float32(10)
        )
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_sync_copies_only_when_due():
    state = critics.init(jax.random.key(0), 2, NET, PLANES, 5)
    moved = critics.Critics(
        jax.tree.map(lambda x: x + 1, state.online), state.target, state.optimiser
    )
    kept, copied = (critics.sync(moved, jnp.bool_(due)) for due in (False, True))
    for old, new, a, b in zip(
        *map(jax.tree.leaves, (moved.target, moved.online, kept.target, copied.target)), strict=True
    ):
        np.testing.assert_array_equal(a, old)
        np.testing.assert_array_equal(b, new)
