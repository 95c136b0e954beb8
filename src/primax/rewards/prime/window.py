"""The statistics window: everything that defines the reward, frozen at once."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from primax import nets
from primax.rewards.base import Recent, Spec
from primax.rewards.prime import gate, heads, inverse, lotv, moments, probes
from primax.rewards.prime.config import Constants, PrimeConfig
from primax.rewards.prime.intrinsic import Parts, compose
from primax.rewards.prime.novelty import Novelty, Where, v_epi


class Window(eqx.Module):
    """Until the next boundary the reward is a pure function of this and the transition."""

    constants: Constants
    heads: nets.Net
    """Target heads E⁻_k; the first is the reference head."""
    slope: Float[Array, " heads"]
    offset: Float[Array, " heads"]
    novelty: Any
    encoder: nets.Trunk
    """φ."""
    phi_probes: Float[Array, "m features"]
    psi_probes: Float[Array, "m flat"]
    moments: moments.Moments
    """Channels: γ g_k of every head, the φ and the ψ readings, the look-ahead."""


class Look(eqx.Module):
    """What the frozen networks say of the states the snapshot's rows led to."""

    policy: Float[Array, "rows actions"]
    """π_ref."""
    probe: Int[Array, " rows"]
    """π_probe."""
    logits: Float[Array, "heads rows actions"]
    """Ē⁻_k."""
    features: Float[Array, "rows features"]
    """φ."""


class Freezer(eqx.Module):
    """How windows are made and read; nothing in it changes in a run."""

    spec: Spec
    config: PrimeConfig = eqx.field(static=True)
    novelty: Novelty

    def freeze(
        self,
        live: tuple[Constants, nets.Net, nets.Net, inverse.Inverse, Any],
        recent: Recent,
        key: PRNGKeyArray,
    ) -> tuple[Window, Look]:
        """The window that begins now, from (constants, heads, priors, inverse model, novelty)."""
        constants, online, prior, model, novelty = live
        k_phi, k_psi, k_calibrate = jax.random.split(key, 3)
        look = self.look(constants, online, prior, model.encoder, recent.rows.next_obs)
        is_valid = recent.is_valid & (recent.rows.weight > 0)
        chosen, is_chosen = draw_valid(k_calibrate, is_valid, self.config.calibration)
        slope, offset = heads.calibrate(look.logits[:, chosen], is_chosen, constants)
        window = Window(
            constants=constants,
            heads=online,
            slope=slope,
            offset=offset,
            novelty=self.novelty.freeze(novelty),
            encoder=model.encoder,
            phi_probes=probes.unit_probes(k_phi, self.config.probes, self.config.feature_dim),
            psi_probes=probes.unit_probes(k_psi, self.config.probes, self.spec.num_pixels),
            moments=None,  # type: ignore[arg-type]
        )
        known = self._moments(window, look, recent, is_valid)
        return eqx.tree_at(lambda w: w.moments, window, known, is_leaf=lambda x: x is None), look

    def look(
        self,
        constants: Constants,
        online: nets.Net,
        prior: nets.Net,
        encoder: nets.Trunk,
        obs: Any,
    ) -> Look:
        """Runs the networks over many states, some at a time."""
        num = self.spec.num_actions

        def some(obs):
            seen = nets.see(obs)
            quantiles = heads.ensemble(online, prior, seen, num, constants)
            return jnp.moveaxis(jnp.mean(quantiles, axis=-1), 0, 1), inverse.encode(encoder, seen)

        logits, features = nets.sweep(some, obs)
        logits = jnp.moveaxis(logits, 1, 0)
        policy = heads.reference_policy(logits[0], constants.temperature)
        return Look(policy, heads.probe_policy(policy), logits, features)

    def _moments(
        self, window: Window, look: Look, recent: Recent, is_valid: Bool[Array, " rows"]
    ) -> moments.Moments:
        """The conditional moments of all channels; the gate's needs those of the heads first."""
        rows, config, gamma = recent.rows, self.config, window.constants.gamma
        channels = jnp.concatenate(
            [
                gamma * continuations(window, look).T,
                probes.readings(look.features, window.phi_probes, gamma),
                probes.readings(probes.psi(rows.next_obs), window.psi_probes, gamma),
            ],
            axis=1,
        )
        index = self._index(window, recent, is_valid)
        ahead = Where(rows.next_obs, look.probe, rows.next_key * self.spec.num_actions + look.probe)
        means, _, _ = index.moments(channels[:, : config.heads]).at(
            self._at(ahead, lambda: look.features)
        )
        value = jnp.maximum(lotv.epistemic(means), self.v_count(window, ahead))
        summed = gate.look_ahead(
            value, recent.is_last, window.constants.gate_decay, config.gate_horizon
        )
        return index.moments(jnp.concatenate([channels, summed[:, None]], axis=1))

    def _index(
        self, window: Window, recent: Recent, is_valid: Bool[Array, " rows"]
    ) -> moments.Index:
        rows, config = recent.rows, self.config
        if config.moments == "bucket":
            return moments.buckets(rows.key, is_valid, self.spec.num_keys)
        place = self._at(Where(rows.obs, rows.action, rows.key), self._encoding(window, rows.obs))
        return moments.nearest(place, is_valid, config.neighbours, config.weights)

    def _encoding(self, window: Window, obs: Any) -> Any:
        some = lambda obs: inverse.encode(window.encoder, nets.see(obs))  # noqa: E731
        return lambda: nets.sweep(some, obs)

    def _at(self, where: Where, features: Any) -> moments.At:
        """Where on the estimator's map; `features` gives φ, and is called only if that is the map."""
        if self.config.moments == "knn16":
            place = features()
        elif self.config.moments == "nearest16":
            place = jnp.stack(self.spec.coordinates(where.key), axis=-1).astype(jnp.float32)
        else:
            place = jnp.zeros((where.key.shape[0], 0), jnp.float32)
        return moments.At(where.key, where.action, place)

    def v_count(self, window: Window, where: Where) -> Float[Array, " n"]:
        """The novelty's V_epi as the window has it."""
        x = self.novelty.value(window.novelty, where)
        return v_epi(x, window.constants.count_scale, window.constants.gamma)

    def parts(self, window: Window, where: Where) -> Parts:
        """The reward at (s, a), with all it is made of."""
        at = self._at(where, self._encoding(window, where.obs))
        mean, variance, has_data = window.moments.at(at)
        num, m = self.config.heads, self.config.probes
        return compose(
            v_count=self.v_count(window, where),
            v_lotv=lotv.epistemic(mean[:, :num]),
            detectors=(
                lotv.aleatoric(variance[:, :num]),
                probes.probe_variance(variance[:, num : num + m]),
                probes.probe_variance(variance[:, num + m : num + 2 * m]),
            ),
            v_ahead=mean[:, -1],
            has_data=has_data,
            constants=window.constants,
        )


def continuations(window: Window, look: Look) -> Float[Array, "heads rows"]:
    """g_k of every head: calibrated, centred by the uniform u, averaged under π_ref."""
    num = look.logits.shape[-1]
    shape = look.logits.shape
    slope = jnp.broadcast_to(window.slope[:, None, None], shape)
    offset = jnp.broadcast_to(window.offset[:, None, None], shape)
    centred = heads.centre(slope * look.logits + offset, jnp.full(num, 1.0 / num))
    return jax.vmap(lambda head: heads.continuation(look.policy, head))(centred)


def draw_valid(
    key: PRNGKeyArray, is_valid: Bool[Array, " rows"], num: int
) -> tuple[Int[Array, " num"], Bool[Array, " num"]]:
    """`num` valid rows without replacement; where there are fewer, the rest are marked."""
    lots = jnp.where(is_valid, jax.random.uniform(key, is_valid.shape), -1.0)
    best, rows = jax.lax.top_k(lots, num)
    return rows, best >= 0
