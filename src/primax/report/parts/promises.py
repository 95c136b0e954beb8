"""What `primax verify --run` says of a run, counted for a page."""

from collections import Counter
from dataclasses import dataclass

from primax.runs.read import Run
from primax.verify.audit import audit_run
from primax.verify.row import ABSENT, FAILS, HOLDS, PREMISE, Row


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


def audited(run: Run) -> Audit:
    """Every promise against the run's own table of windows."""
    rows = audit_run(run)
    kept = tuple(row for row in rows if row.verdict != ABSENT)
    return Audit(kept, len(rows) - len(kept))
