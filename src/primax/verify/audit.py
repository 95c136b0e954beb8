"""A run's table of windows against the bounds of Lemma 2 and Corollary 3, seed by seed."""

from collections.abc import Callable, Iterable

import numpy as np

from primax.config.schema import Config
from primax.rewards.prime import PrimeConfig
from primax.runs.read import Run
from primax.verify.bounds import Bounds, bounds
from primax.verify.row import ABSENT, FAILS, Row, text
from primax.verify.windows import Table, assumed, column, judged, within


def zeta(table: Table, config: Config, limits: Bounds) -> Row:
    """Cor. 3: targets of the statistics heads."""
    found = column(table, "zeta_abs_max")
    return judged(
        "targets_zeta",
        "Cor. 3: |ζ| ≤ R₀ + γG_q for every target of the statistics heads",
        f"{limits.zeta:.4f} (R₀ = {limits.bonus:.4f})",
        table,
        within(found, limits.zeta),
        f"at most {np.max(found):.4f}",
    )


def targets(table: Table, config: Config, limits: Bounds) -> Row:
    """Cor. 3: targets of the critics."""
    found, q = column(table, "y_abs_max"), column(table, "q_target_abs_max")
    bound = limits.deployed + limits.gamma * q
    return judged(
        "targets_y",
        f"Cor. 3: |y| ≤ R_r + γ max|Q⁻| for every target of the critics, R_r = {limits.deployed:g}",
        f"{np.min(bound):.3f} to {np.max(bound):.3f}, by window",
        table,
        within(found, bound),
        f"at most {np.max(found):.3f}, {np.max(found / bound):.1%} of the bound",
    )


def premise(table: Table, config: Config, limits: Bounds | None) -> Row:
    """Cor. 3's premise: |Q⁻| ≤ Q_max."""
    found, q_max = column(table, "q_target_abs_max"), config.critics.q_max
    ceiling = (
        f"; where it holds, |y| ≤ {limits.deployed + limits.gamma * q_max:g}" if limits else ""
    )
    return assumed(
        "premise_q",
        f"Cor. 3's premise: |Q⁻| ≤ Q_max, only softly enforced{ceiling}",
        f"{q_max:g}",
        table,
        (found, within(found, q_max)),
        f"at most {np.max(found):.3f}",
    )


def clip(table: Table, config: Config, limits: Bounds) -> Row:
    """Lemma 2 as deployed: the reward's clip."""
    found = column(table, "reward_abs_max")
    return judged(
        "reward_clip",
        "Lemma 2 as deployed: the reward the critics get stays within its clip",
        f"{limits.deployed:g}",
        table,
        within(found, limits.deployed),
        f"at most {np.max(found):.4f}",
    )


def margin(table: Table, config: Config, limits: Bounds) -> Row:
    """The margin between π_ref and u."""
    found = column(table, "pi_ref_from_u")
    return assumed(
        "margin",
        "The margin δ_π all results assume: ‖π_ref-u‖₁ > 0, averaged over a window",
        "> 0",
        table,
        (found, found > 0),
        f"{text(np.min(found))} to {text(np.max(found))}",
    )


def calibration(table: Table, config: Config, limits: Bounds) -> Row:
    """The clamps of the calibration."""
    reward, heads = config.reward, range(config.reward.heads)
    slope, offset = (
        np.stack([column(table, f"{name}_{k}") for k in heads]) for name in ("slope", "offset")
    )
    held = within(slope, reward.a_max) & within(-slope, -reward.a_min)
    held = held & within(np.abs(offset), reward.b_max)
    return judged(
        "calibration",
        f"Calibration: a_k in [{reward.a_min:g}, {reward.a_max:g}] and |b_k| ≤ {reward.b_max:g}",
        f"G_E = {limits.logit:g}",
        table,
        np.all(held, axis=0),
        f"a {text(slope.min())} to {text(slope.max())}, |b| at most {text(np.abs(offset).max())}",
    )


def logged(table: Table, config: Config, limits: Bounds) -> Row:
    """Lemma 2 on the logged means, which the bounds on their elements bound too."""
    get = lambda name: column(table, name)  # noqa: E731
    heads = get("v_lotv") + get("v_ale_heads")
    held = within(heads, limits.v_heads) & within(get("v_count"), limits.v_count)
    held &= within(get("v_ale"), limits.b_ale) & within(get("r_int"), limits.r_high)
    held &= within(-get("r_int"), -limits.r_low)
    for name in ("v_lotv", "v_count", "v_ale_heads", "v_ale_phi", "v_ale_psi", "v_ahead"):
        held &= get(name) >= 0
    return judged(
        "logged_bounds",
        "Lemma 2 on the logged means: V_LoTV + V_ale, V_count, V_ale^aug and r_int",
        f"{limits.v_heads:g}, {limits.v_count:g}, {limits.b_ale:g}, [{limits.r_low:.3f}, {limits.r_high:g}]",
        table,
        held,
        f"{text(heads.max())}, {text(get('v_count').max())}, {text(get('v_ale').max())}, "
        f"[{text(get('r_int').min())}, {text(get('r_int').max())}]",
    )


def freezing(table: Table, config: Config, limits: Bounds) -> Row:
    """Cost of freezing: drift from π_ref, and the jump at boundaries."""
    drift, jump = column(table, "pi_act_from_ref"), column(table, "reward_jump")
    # The first window follows none: whatever its row says, there was no jump.
    is_later = table["step"] > table["step"].min()
    held = within(drift, 2.0) & (drift >= 0) & (within(jump, 2 * limits.deployed) | ~is_later)
    bias = 2 * limits.gamma * limits.logit * drift
    mean = f"{np.mean(jump[is_later]):.3f}" if np.any(is_later) else "not known after one window"
    return judged(
        "freezing_cost",
        "Cost of freezing: bias of γg_k at most 2γG_E‖π_act-π_ref‖₁, jump of the reward at most 2R_r",
        f"‖·‖₁ ≤ 2; jump ≤ {2 * limits.deployed:g}",
        table,
        held,
        f"‖·‖₁ {drift.mean():.3f}, so bias ≤ {bias.mean():.2f} on average; mean jump {mean}",
    )


def unfrozen(config: Config) -> list[Row]:
    """Prop. 1, of a run that gave it up: the tables of a run need not show it, its settings do."""
    if getattr(config.reward, "counts", "frozen") == "frozen":
        return []
    return [
        Row(
            "stationarity",
            "Prop. 1: within a window stored rows score to the same bits",
            "counts frozen with the window",
            "reward.counts=live: the reward of a row falls with every visit to its key",
            FAILS,
        )
    ]


AUDITS: dict[str, Callable[[Table, Config, Bounds], Row]] = {
    "targets_zeta": zeta,
    "targets_y": targets,
    "premise_q": premise,
    "reward_clip": clip,
    "margin": margin,
    "calibration": calibration,
    "logged_bounds": logged,
    "freezing_cost": freezing,
}


OF_TARGETS = ("targets_y", "premise_q")
"""About what the critics learn from, of which PRIME is only a part where it is mixed with the task."""


def audit(name: str, table: Table, config: Config) -> Row:
    """One row on a table of windows; where the method is another, only the critics' premise applies."""
    is_prime = isinstance(config.reward, PrimeConfig)
    if is_prime and not (config.mix and name in OF_TARGETS):
        return AUDITS[name](table, config, bounds(config))
    if name == "premise_q":
        return premise(table, config, None)
    statement = str(AUDITS[name].__doc__).rstrip(".")
    alone = " alone" if is_prime else ""
    why = f"a promise of prime{alone}; this run is {config.method}"
    return Row(name, statement, "", why, ABSENT)


def audit_run(run: Run, names: Iterable[str] = AUDITS) -> list[Row]:
    """Promises against a run's own table of windows."""
    return [*unfrozen(run.config), *(audit(name, run.windows, run.config) for name in names)]
