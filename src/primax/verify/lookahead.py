"""The gate looks ahead within an episode; and what acting otherwise than π_ref does to g."""

import jax.numpy as jnp
import numpy as np

from primax.rewards.prime.novelty import Where
from primax.verify.lab import Lab
from primax.verify.row import SLACK, Row, text, verdict


def look_ahead(lab: Lab) -> Row:
    """V_ahead of a real window against a plain loop over the rows it was frozen from."""
    config = lab.config
    step = config.warmup - config.recent + np.arange(1, config.recent + 1)
    ends = step % config.world.horizon == 0
    key, value = _values(lab)
    keys = lab.parts(lab.every_key)
    is_met = keys.has_data
    wanted, crossing = (
        _bucket_means(key, plain_sum(value, cut, lab), len(is_met)) for cut in (ends, ends & False)
    )
    off = np.max(np.abs(keys.v_ahead - wanted)[is_met])
    differs = np.max(np.abs(crossing - wanted)[is_met])
    reach = np.max(wanted)
    return Row(
        name="look_ahead",
        statement=f"Gate: V_ahead of {int(is_met.sum())} keys is the loop's sum of at most "
        f"{config.reward.gate_horizon} steps, which never crosses an episode's end",
        bound=f"{text(1e-4 * reach)} from the loop's",
        measured=f"{text(off)}; across ends it would be up to {text(differs)} off (largest V_ahead {text(reach)})",
        verdict=verdict(bool(off <= 1e-4 * reach), bool(differs > 1e-3 * reach)),
        numbers={"off": float(off), "crossing": float(differs)},
    )


def _values(lab: Lab) -> tuple[np.ndarray, np.ndarray]:
    """The snapshot's count keys, and V_epi where each row led, with the probe action."""
    rows, probe = lab.watch.recent.rows, jnp.asarray(lab.readout.probe)
    key = rows.next_key * lab.prime.spec.num_actions + probe
    value = lab.parts(Where(rows.next_obs, probe, key)).v_epi
    return np.asarray(rows.key), np.asarray(value)


def plain_sum(value: np.ndarray, ends: np.ndarray, lab: Lab) -> np.ndarray:
    """Eq. (9)'s sum, one row and one step at a time."""
    decay, most = lab.config.reward.gate_decay, lab.config.reward.gate_horizon
    sums = np.zeros(len(value))
    for row in range(len(value)):
        for j in range(most):
            if row + j == len(value):
                break
            sums[row] += decay**j * value[row + j]
            if ends[row + j]:
                break
    return sums


def _bucket_means(key: np.ndarray, x: np.ndarray, num: int) -> np.ndarray:
    count = np.bincount(key, minlength=num)
    return np.bincount(key, weights=x, minlength=num) / np.maximum(count, 1)


def freezing_bias(lab: Lab) -> Row:
    """How far g would be off if it were read under what the agent does instead of π_ref."""
    window, readout, limits = lab.watch.boundary.window, lab.readout, lab.bounds
    slope, offset = np.asarray(window.slope), np.asarray(window.offset)
    calibrated = slope[:, None, None] * readout.logits + offset[:, None, None]
    centred = calibrated - calibrated.mean(axis=-1, keepdims=True)
    drift = np.asarray(lab.watch.recent.policy) - readout.policy
    bias = limits.gamma * np.abs(np.sum(drift[None] * centred, axis=-1))
    allowed = 2 * limits.gamma * limits.logit * np.abs(drift).sum(axis=-1)
    broken = int(np.sum(bias > allowed[None] * (1 + SLACK)))
    return Row(
        name="freezing_bias",
        statement="Cost of freezing: π_act in place of π_ref biases γg_k by at most "
        f"2γG_E‖π_act-π_ref‖₁, row by row ({bias.shape[1]} rows x {bias.shape[0]} heads)",
        bound=f"0 rows over; on average {text(allowed.mean())}",
        measured=f"{broken} over; bias {text(bias.mean())} on average, {text(bias.max())} at most",
        verdict=verdict(broken == 0),
        numbers={"broken": broken, "bias": float(bias.mean()), "bound": float(allowed.mean())},
    )
