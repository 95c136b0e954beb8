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

    def row(self, name: str) -> Row | None:
        """The row of a promise; None where it does not apply."""
        return next((row for row in self.rows if row.name == name), None)


def audited(run: Run) -> Audit:
    """Every promise against the run's own table of windows."""
    rows = audit_run(run)
    kept = tuple(row for row in rows if row.verdict != ABSENT)
    return Audit(kept, len(rows) - len(kept))


def promises(audits: list[Audit]) -> dict[str, str]:
    """Every promise that applies to some run, in the order of the longest list: name and statement."""
    longest = sorted(audits, key=lambda audit: -len(audit.rows))
    return {row.name: row.statement for audit in longest for row in audit.rows}
