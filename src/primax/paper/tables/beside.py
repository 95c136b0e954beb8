"""Tables that need no seeds (3, 4, 9) and those that stand beside the paper's (B, C)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from primax import stats
from primax.output.sheet import Sheet, plus_minus
from primax.paper.evidence import MissingError, Runs, need, pair
from primax.paper.experiments import VARIANTS, WORLDS
from primax.paper.published import published
from primax.paper.references import POLICIES, reference
from primax.paper.tables.results import METRICS, mean_std, shown
from primax.runs.read import Run

PRIME_FIELDS = {
    "K": ("reward.heads", "critics.heads"),
    "gamma": ("critics.gamma",),
    "N_q": ("reward.quantiles",),
    "lambda_aleatoric": ("reward.aleatoric_weight",),
    "G_q": ("reward.quantile_bound",),
    "alpha_gate": ("reward.gate_weight",),
    "Q_max": ("critics.q_max",),
    "sigma0_sq": ("reward.log_scale",),
    "calibration_a_min": ("reward.a_min",),
    "calibration_a_max": ("reward.a_max",),
    "calibration_b_max": ("reward.b_max",),
    "gate_decay_beta": ("reward.gate_decay",),
    "beta_prior": ("reward.prior_strength",),
    "gate_horizon_h_g": ("reward.gate_horizon",),
    "kappa_count": ("reward.count_scale",),
    "temperature_tau": ("reward.temperature",),
    "probes_m": ("reward.probes",),
    "phi_dim": ("reward.feature_dim",),
    "window_length": ("window",),
    "warmup_window": ("warmup",),
    "snapshot_buffer": ("recent",),
    "replay_buffer": ("replay",),
    "calibration_samples": ("reward.calibration",),
    "neighbors": ("reward.neighbours",),
    "batch_size": ("critics.batch",),
    "target_sync": ("critics.sync_every",),
    "update_period": ("update_every",),
    "eps_start": ("explore.start",),
    "eps_end": ("explore.end",),
    "lr": ("critics.learning_rate", "reward.stats_learning_rate", "reward.phi_learning_rate"),
    "reward_scale": ("reward.reward_scale",),
    "reward_clip": ("reward.reward_clip",),
}
BASELINE_FIELDS = {
    "gamma": ("critics.gamma",),
    "batch_size": ("critics.batch",),
    "lr": ("critics.learning_rate",),
    "target_sync": ("critics.sync_every",),
    "replay_buffer": ("replay",),
    "learning_starts": ("warmup",),
    "eps_end": ("explore.end",),
    "exploration_fraction": ("explore.fraction",),
    "grad_clip": ("critics.grad_clip",),
}
BASELINES = ("task", "rnd", "disagreement", "smirl")
CHECKED_BY = {
    "contraction": "Prop. 1",
    "bounds": "Lemma 2",
    "target_ceiling": "Cor. 3",
    "gate_preference": "Prop. 4",
    "concentration": "Prop. 5",
    "neutrality": "Prop. 6",
}


@dataclass(frozen=True)
class Setting:
    """A value the paper states of its settings, and those of our runs."""

    name: str
    paper: list[Any]
    ours: list[Any]
    """The values of the first run."""
    fields: tuple[str, ...]
    is_same: bool
    """Whether all our runs have the paper's."""

    @property
    def row(self) -> tuple[str, ...]:
        texts = ["/".join(f"{x:g}" for x in self.paper), "/".join(str(x) for x in self.ours)]
        return self.name, *texts, " ".join(self.fields), "yes" if self.is_same else "NO"


def compared_settings(
    group: str, fields: Mapping[str, tuple[str, ...]], runs: list[dict[str, Any]]
) -> list[Setting]:
    """Every setting of a group."""
    found = []
    for name, names in fields.items():
        given = published()[group][name]
        theirs = list(given.values()) if isinstance(given, dict) else [given]
        values = [[run.get(field) for field in names] for run in runs]
        # One field of ours may stand for several equal values of theirs, or the other way round.
        wanted = theirs if len(theirs) == len(names) else theirs[:1] * len(names)
        is_same = all(each == wanted for each in values)
        found.append(Setting(name, theirs, values[0], names, is_same))
    return found


def prime_settings(runs: Runs) -> list[Setting]:
    """PRIME's, the paper's beside those of our runs."""
    return compared_settings("prime_settings", PRIME_FIELDS, _both(runs, ("prime",)))


def inert(runs: Runs) -> dict[str, str]:
    """Settings of PRIME that have a value and no effect in our runs, and why."""
    found = {"calibration_b_max": "the offset cancels when logits are centred"}
    if all(run.get("reward.moments") == "bucket" for run in _both(runs, ("prime",))):
        found["neighbors"] = "moments are of rows with the same key"
    return found


def baseline_settings(runs: Runs) -> list[Setting]:
    """The baselines'."""
    return compared_settings("baseline_settings", BASELINE_FIELDS, _both(runs, _baselines()))


def _baselines() -> tuple[str, ...]:
    return tuple(name for name in BASELINES if VARIANTS[name].is_available)


def table3(runs: Runs) -> Sheet:
    """PRIME's settings, the paper's beside those of our runs."""
    rows = tuple(setting.row for setting in prime_settings(runs))
    note = "`neighbors` is used by the readings `nearest16` and `knn16` only."
    return Sheet("table3", "Table 3. PRIME's settings", _HEADS, rows, (note,))


def table4(runs: Runs) -> Sheet:
    """The baselines' settings."""
    rows = tuple(setting.row for setting in baseline_settings(runs))
    note = f"Same: of {', '.join(_baselines())} in both worlds."
    return Sheet("table4", "Table 4. Settings of the baselines", _HEADS, rows, (note,))


def _both(runs: Runs, variants: tuple[str, ...]) -> list[dict[str, Any]]:
    """Their settings in both worlds."""
    return [runs.settings(name, world) for name in variants for world in WORLDS]


_HEADS = ("setting", "paper", "ours", "field", "same")


def table9() -> Sheet:
    """What the paper says of its results, and where each is checked."""
    rows = tuple(
        (name.replace("_", " "), CHECKED_BY[name], *status)
        for name, status in published()["scope"]["rows"].items()
    )
    columns = ("result", "primax verify", "status in deployment", "function approximation")
    note = "The paper's words; `primax verify` checks each on the objects of a run."
    return Sheet("table9", "Table 9. Results and their status", columns, rows, (note,))


def table_b(runs: Runs) -> Sheet:
    """Every variant there is, by every measure, with the policies that learn nothing."""
    measures = (
        ("butterflies", "average"),
        ("butterflies", "peak"),
        ("butterflies", "last"),
        ("maze", "average"),
        ("maze", "peak"),
        ("maze", "last"),
    )
    cell = shown(runs, mean_std)
    rows = [(v.label, *(cell(name, *m) for m in measures)) for name, v in VARIANTS.items()]
    for policy, label in POLICIES.items():
        found = {world: reference(runs, world, policy) for world in ("butterflies", "maze")}
        texts = [
            f"{getattr(found[w], 'peak' if m == 'peak' else 'average'):.2f}" for w, m in measures
        ]
        rows.append((f"{label} (scripted)", *texts))
    columns = ("variant", *(f"{world.capitalize()} {m}" for world, m in measures))
    note = "Scripted: the average is exact, the peak simulated over runs of the same length."
    title = "Table B. Every variant and reading, and what needs no learning (not in the paper)"
    return Sheet("tableB", title, columns, tuple(rows), (note,))


def table_c(runs: Runs) -> Sheet:
    """How long a window lasts: the seeds the sweep has, PRIME's own on the same."""
    rows = []
    measures = [(*each, 2) for each in METRICS.values()]
    measures += [("butterflies", "tail:reward_jump", 4), ("butterflies", "tail:pi_act_from_ref", 3)]
    for name in ("prime_window200", "prime", "prime_window4000"):
        window = runs.settings(name, "butterflies")["window"]
        texts = [_on_sweep(runs, name, *each) for each in measures]
        rows.append((VARIANTS[name].label, f"{window:,}", *texts))
    columns = ("variant", "window, steps", *METRICS, "reward jump", "policy from π_ref")
    notes = (
        "Each row on the seeds that it shares with the first. Reward jump: how much the reward of a "
        "stored transition changes at a window's end, on average. Policy from π_ref: L1 distance of the agent's "
        "policy from π_ref. Both are means over the last 20% of a run on Butterflies.",
        "A run is made of whole windows, so with long windows it may take somewhat more steps.",
    )
    title = "Table C. Window length (not in the paper)"
    return Sheet("tableC", title, columns, tuple(rows), notes)


def _on_sweep(runs: Runs, variant: str, world: str, measure: str, digits: int) -> str:
    """On the seeds of the sweep alone, where it was run."""
    try:
        values = need(runs, variant, world, measure)
        if isinstance(runs.run("prime_window200", world), Run):
            values = pair(runs, (variant, "prime_window200"), world, measure)[0]
        return f"{plus_minus(*stats.mean_std(values), digits)} (n = {len(values)})"
    except MissingError as error:
        return f"({error.why})"
