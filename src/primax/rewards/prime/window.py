"""The statistics window: everything that defines the reward, frozen at once."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from primax.nn import nets
from primax.rewards.base import Spec
from primax.rewards.prime import gate, heads, inverse, lotv, moments, probes
from primax.rewards.prime.config import Constants, PrimeConfig
from primax.rewards.prime.intrinsic import Parts, compose
from primax.rewards.prime.novelty import Novelty, Where, v_epi
from primax.rewards.transition import Obs, Recent


class Window(eqx.Module):
    """Until the next boundary the reward is a pure function of this and the transition."""

    constants: Constants
    heads: nets.Net
    """Target heads E⁻_k; the first is the reference head."""
    slope: Float[Array, " heads"]
    offset: Float[Array, " heads"]
    novelty: Any
    encoder: Any
    """φ."""
    phi_probes: Float[Array, "m features"]
    psi_probes: Float[Array, "m flat"]
    moments: moments.Moments
    """Channels: γ g_k of every head, the φ and the ψ readings, the look-ahead."""


class Readout(eqx.Module):
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
    ) -> tuple[Window, Readout]:
        """The window that begins now, from (constants, heads, priors, inverse model, novelty)."""
        constants, online, prior, model, novelty = live
        k_phi, k_psi, k_calibrate = jax.random.split(key, 3)
        readout = self.read_out(constants, online, prior, model.encoder, recent.rows.next_obs)
        is_valid = recent.is_lived
        chosen, is_chosen = draw_valid(k_calibrate, is_valid, self.config.calibration)
        slope, offset = heads.calibrate(readout.logits[:, chosen], is_chosen, constants)
        phi_probes = probes.unit_probes(k_phi, self.config.probes, self.config.feature_dim)
        psi_probes = probes.unit_probes(k_psi, self.config.probes, self.spec.num_pixels)
        frozen = self.novelty.freeze(novelty)

        returns = constants.gamma * continuations(readout, slope, offset).T
        noise = [
            probes.readings(readout.features, phi_probes, constants.gamma),
            self._psi_readings(recent.rows.next_obs, psi_probes, constants.gamma),
        ]
        index = self._index(model.encoder, recent, is_valid)
        worth = self._after(constants, frozen, index.moments(returns), readout, recent)
        ahead = gate.look_ahead(
            jnp.where(is_valid, worth, 0.0),
            recent.is_last,
            constants.gate_decay,
            self.config.gate_horizon,
        )
        channels = jnp.concatenate([returns, *noise, ahead[:, None]], axis=1)
        window = Window(
            constants=constants,
            heads=online,
            slope=slope,
            offset=offset,
            novelty=frozen,
            encoder=model.encoder,
            phi_probes=phi_probes,
            psi_probes=psi_probes,
            moments=index.moments(channels),
        )
        return window, readout

    def _psi_readings(
        self, obs: Obs, psi_probes: Float[Array, "m flat"], gamma: Float[Array, ""]
    ) -> Float[Array, "rows m"]:
        read = lambda obs: probes.readings(probes.psi(obs), psi_probes, gamma)  # noqa: E731
        # A snapshot of images is too large to be made into floats at once.
        return nets.map_chunks(read, obs) if self.spec.kind == "image" else read(obs)

    def read_out(
        self,
        constants: Constants,
        online: nets.Net,
        prior: nets.Net,
        encoder: Any,
        obs: Any,
    ) -> Readout:
        """Runs the networks over many states, some at a time."""
        num = self.spec.num_actions

        def some(obs):
            seen = self.spec.see(obs)
            quantiles = heads.ensemble(online, prior, seen, num, constants)
            return jnp.moveaxis(jnp.mean(quantiles, axis=-1), 0, 1), inverse.encode(encoder, seen)

        logits, features = nets.map_chunks(some, obs)
        logits = jnp.moveaxis(logits, 1, 0)
        policy = heads.reference_policy(logits[0], constants.temperature)
        return Readout(policy, heads.probe_policy(policy), logits, features)

    def _after(
        self,
        constants: Constants,
        frozen: Any,
        returns: moments.Moments,
        readout: Readout,
        recent: Recent,
    ) -> Float[Array, " rows"]:
        """V_epi at the state every row led to, with its probe action."""
        rows = recent.rows
        key = rows.next_key * self.spec.num_actions + readout.probe
        after = Where(rows.next_obs, readout.probe, key)
        means, _, _ = returns.at(self._at(after, lambda: readout.features))
        return jnp.maximum(lotv.epistemic(means), self._v_count(constants, frozen, after))

    def _index(self, encoder: Any, recent: Recent, is_valid: Bool[Array, " rows"]) -> moments.Index:
        rows, config = recent.rows, self.config
        if config.moments == "bucket":
            return moments.buckets(rows.key, is_valid, self.spec.num_keys)
        places = self._at(Where(rows.obs, rows.action, rows.key), self._encoding(encoder, rows.obs))
        return moments.nearest(places, is_valid, config.neighbours, config.weights)

    def _at(self, where: Where, features: Callable[[], Float[Array, "n features"]]) -> moments.At:
        """Where on the estimator's map; `features` gives φ, and is called only if that is the map."""
        if self.config.moments == "knn16":
            place = features()
        elif self.config.moments == "nearest16":
            place = jnp.stack(self.spec.coordinates(where.key), axis=-1).astype(jnp.float32)
        else:
            place = jnp.zeros((where.key.shape[0], 0), jnp.float32)
        return moments.At(where.key, where.action, place)

    def _encoding(self, encoder: Any, obs: Obs) -> Callable[[], Float[Array, "n features"]]:
        some = lambda obs: inverse.encode(encoder, self.spec.see(obs))  # noqa: E731
        return lambda: nets.map_chunks(some, obs)

    def _v_count(self, constants: Constants, frozen: Any, where: Where) -> Float[Array, " n"]:
        """The novelty's V_epi."""
        x = self.novelty.value(frozen, where)
        return v_epi(x, constants.count_scale, constants.gamma)

    def parts(self, window: Window, where: Where) -> Parts:
        """The reward at (s, a), with all it is made of."""
        at = self._at(where, self._encoding(window.encoder, where.obs))
        mean, variance, has_data = window.moments.at(at)
        num, m = self.config.heads, self.config.probes
        return compose(
            v_count=self._v_count(window.constants, window.novelty, where),
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


def continuations(
    readout: Readout, slope: Float[Array, " heads"], offset: Float[Array, " heads"]
) -> Float[Array, "heads rows"]:
    """g_k of every head: calibrated, centred by the uniform u, averaged under π_ref."""
    uniform = jnp.full(readout.logits.shape[-1], 1.0 / readout.logits.shape[-1])

    def one(
        logits: Float[Array, "rows actions"], a: Float[Array, ""], b: Float[Array, ""]
    ) -> Float[Array, " rows"]:
        return heads.continuation(readout.policy, heads.centre(a * logits + b, uniform))

    return jax.vmap(one)(readout.logits, slope, offset)


def draw_valid(
    key: PRNGKeyArray, is_valid: Bool[Array, " rows"], num: int
) -> tuple[Int[Array, " num"], Bool[Array, " num"]]:
    """`num` valid rows without replacement; where there are fewer, the rest are marked."""
    lots = jnp.where(is_valid, jax.random.uniform(key, is_valid.shape), -1.0)
    best, rows = jax.lax.top_k(lots, num)
    return rows, best >= 0
