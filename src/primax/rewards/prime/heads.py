"""The statistics ensemble: bounded quantile heads, their calibration, and the policies read off them."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Shaped

from primax.nn import nets
from primax.rewards.prime.config import Constants

Seen = Shaped[Array, "n ..."]


def quantiles(
    net: nets.Net, prior: nets.Net, seen: Seen, num_actions: int, constants: Constants
) -> Float[Array, "n actions quantiles"]:
    """One head's q_{k,i}(s, a) = G_q tanh(net + β_prior prior): bounded whatever the prior says."""
    raw = net(seen) + constants.prior_strength * prior(seen)
    return constants.quantile_bound * jnp.tanh(raw).reshape(raw.shape[0], num_actions, -1)


def ensemble(
    net: nets.Net, prior: nets.Net, seen: Seen, num_actions: int, constants: Constants
) -> Float[Array, "heads n actions quantiles"]:
    """Quantiles of every head; parameters lead with the heads' axis."""
    one = lambda net, prior: quantiles(net, prior, seen, num_actions, constants)  # noqa: E731
    return jax.vmap(one)(net, prior)


def calibrate(
    logits: Float[Array, "heads n actions"], is_valid: Bool[Array, " n"], constants: Constants
) -> tuple[Float[Array, " heads"], Float[Array, " heads"]]:
    """Per-head (a_k, b_k): least squares of Ē_k on the reference head, with clamps.

    The slope is fitted and clamped, then the offset is fitted to that slope and clamped. The
    reference head fits itself with slope 1, and so does a head that says the same everywhere,
    which has no slope to fit. Taken about one of the logits, so that such a head has no spread.
    """
    weight = jnp.broadcast_to(is_valid[:, None], logits.shape[1:]).astype(jnp.float32)
    weight = weight / jnp.maximum(jnp.sum(weight), 1.0)

    def moments(
        logit: Float[Array, "n actions"],
    ) -> tuple[Float[Array, ""], Float[Array, "n actions"]]:
        origin = logit[jnp.argmax(is_valid), 0]
        shift = jnp.sum(weight * (logit - origin))
        return origin + shift, (logit - origin) - shift

    mean, away = jax.vmap(moments)(logits)
    spread = jax.vmap(lambda x: jnp.sum(weight * x * x))(away)
    joint = jax.vmap(lambda x: jnp.sum(weight * x * away[0]))(away)
    slope = jnp.where(spread > 0, joint / jnp.where(spread > 0, spread, 1.0), 1.0)
    a = jnp.clip(slope.at[0].set(1.0), constants.a_min, constants.a_max)
    return a, jnp.clip(mean[0] - a * mean, -constants.b_max, constants.b_max)


def centre(
    calibrated: Float[Array, "*n actions"], baseline: Float[Array, " actions"]
) -> Float[Array, "*n actions"]:
    """Ẽ_k, eq. (4): calibrated logits less their mean under the baseline u."""
    # A sum, not a product: a GPU's matrix products would round away what heads differ in.
    mean = jnp.sum(calibrated * jnp.broadcast_to(baseline, calibrated.shape), axis=-1)
    return calibrated - mean[..., None]


def reference_policy(
    logits: Float[Array, "*n actions"], temperature: Float[Array, ""]
) -> Float[Array, "*n actions"]:
    """π_ref(a|s) ∝ exp(Ē_ref(s, a) / τ)."""
    return jax.nn.softmax(logits / temperature, axis=-1)


def probe_policy(policy: Float[Array, "*n actions"]) -> Int[Array, "*n"]:
    """π_probe(s) = argmax_a π_ref(a|s)."""
    return jnp.argmax(policy, axis=-1).astype(jnp.int32)


def continuation(
    policy: Float[Array, "*n actions"], centred: Float[Array, "*n actions"]
) -> Float[Array, "*n"]:
    """g_k(s), eq. (5): one head's centred logits averaged under π_ref."""
    return jnp.sum(policy * centred, axis=-1)
