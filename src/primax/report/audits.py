"""What `primax verify --run` says of a run, counted for a page."""

from collections import Counter
from dataclasses import dataclass

from primax.config_json import from_json
from primax.errors import InputError
from primax.guarantees.audit import AUDITS, audit
from primax.guarantees.row import ABSENT, FAILS, HOLDS, PREMISE, Row
from primax.report.reading import Run
from primax.tables import Table


@dataclass(frozen=True)
class Audit:
    """The rows that apply to a run, and how many do not."""

    rows: tuple[Row, ...]
    absent: int

    @property
    def counts(self) -> list[tuple[str, int]]:
        """Of each verdict there is, worst first."""
        found = Counter(row.verdict for row in self.rows)
        return [(verdict, found[verdict]) for verdict in (FAILS, PREMISE, HOLDS) if found[verdict]]

    @property
    def has_failure(self) -> bool:
        return any(row.verdict == FAILS for row in self.rows)


def audited(run: Run, windows: Table) -> Audit:
    """Every promise against the run's own table of windows."""
    try:
        config, _ = from_json(run.content)
    except (ValueError, KeyError, TypeError) as error:
        said = f"config.json is not a configuration of this version: {error}"
        raise InputError(said) from error
    rows = [audit(name, windows, config) for name in AUDITS]
    kept = tuple(row for row in rows if row.verdict != ABSENT)
    return Audit(kept, len(rows) - len(kept))
