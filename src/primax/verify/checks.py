"""The rows of `primax verify`, by name."""

from collections.abc import Callable, Iterable
from pathlib import Path

from primax.runs.read import open_run
from primax.verify import audit, identities
from primax.verify.concentration import concentration
from primax.verify.contraction import contraction
from primax.verify.lab import Lab, run_lab
from primax.verify.lemma import lemma_random, lemma_window
from primax.verify.lookahead import freezing_bias, look_ahead
from primax.verify.neutrality import neutrality
from primax.verify.preference import preference
from primax.verify.probing import probe_dilution
from primax.verify.row import Row
from primax.verify.stationarity import stationarity

Say = Callable[[str], None]


class Bench:
    """What the rows share: two small learners, each trained when first asked for."""

    def __init__(self, seed: int = 0, plot: Path | None = None, say: Say = lambda line: None):
        self.seed, self.plot, self.say = seed, plot, say
        self._labs: dict[str, Lab] = {}

    def lab(self, moments: str) -> Lab:
        """The learner that conditions S' in this way."""
        if moments not in self._labs:
            self.say(f"  training a small learner ({moments}) for two windows …")
            self._labs[moments] = run_lab(moments, self.seed)
        return self._labs[moments]

    def audit(self, name: str) -> Row:
        """A row of the audit, on the windows of a learner trained here."""
        lab = self.lab("bucket")
        return audit.audit(name, lab.table, lab.config)


CHECKS: dict[str, Callable[[Bench], Row]] = {
    "stationarity_bucket": lambda b: stationarity(b.lab("bucket"), "stationarity_bucket"),
    "stationarity_knn16": lambda b: stationarity(b.lab("knn16"), "stationarity_knn16"),
    "contraction_butterfly": lambda b: contraction(b.lab("bucket"), "contraction_butterfly"),
    "contraction_maze": lambda b: contraction(b.lab("knn16"), "contraction_maze"),
    "lemma2_window": lambda b: lemma_window(b.lab("bucket")),
    "lemma2_random": lambda b: lemma_random(),
    **{name: (lambda b, name=name: b.audit(name)) for name in audit.AUDITS},
    "gate_preference": lambda b: preference(),
    "look_ahead": lambda b: look_ahead(b.lab("bucket")),
    "concentration_d1": lambda b: concentration(1),
    "concentration_d2": lambda b: concentration(2),
    "neutrality": lambda b: neutrality(b.lab("bucket"), b.plot),
    "bald": lambda b: identities.bald(),
    "pseudo_count": lambda b: identities.chain(),
    "probes": lambda b: probe_dilution(),
    "freezing_bias": lambda b: freezing_bias(b.lab("bucket")),
}


def run_checks(names: Iterable[str], bench: Bench) -> list[Row]:
    """The named rows, one after the other, saying which is being worked on."""
    names = list(names)
    rows = []
    for i, name in enumerate(names):
        bench.say(f"{i + 1}/{len(names)} {name}")
        rows.append(CHECKS[name](bench))
    return rows


def run_audit(names: Iterable[str], folder: Path, say: Say) -> list[Row]:
    """The rows that a run's own tables can show."""
    run = open_run(folder)
    run.check_made()
    say(f"{len(run.windows['seed'])} windows of {run.method} in {folder}")
    return audit.audit_run(run, names)
