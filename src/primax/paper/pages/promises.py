"""What `primax verify --run` says of every PRIME run, on one page."""

from collections import Counter

from primax.errors import InputError
from primax.output.sheet import ABSENT, Sheet
from primax.paper.evidence import Runs
from primax.paper.experiments import CELLS
from primax.runs.read import Run, Unusable
from primax.verify.audit import AUDITS, audit_run
from primax.verify.row import FAILS, HOLDS, PREMISE


def audit_sheet(runs: Runs) -> Sheet:
    """A row a run that has its windows, a column a promise."""
    primes = {name: runs.of(c) for name, c in CELLS.items() if c.variant.method == "prime"}
    found = {name: _verdicts(run) for name, run in primes.items() if not _is_less(run)}
    verdicts = Counter(verdict for row in found.values() for verdict in row.values())
    # Runs that gave a promise up have a row for it; the others none.
    columns = list(dict.fromkeys([*AUDITS, *(column for row in found.values() for column in row)]))
    rows = [(name, *(row.get(column, ABSENT) for column in columns)) for name, row in found.items()]
    told = ", ".join(f"{verdicts[word]} {word}" for word in (HOLDS, PREMISE, FAILS))
    notes = (
        "`primax verify --run` on every window of every seed, from windows.csv alone. A premise is "
        "a condition the paper assumes, not something it promises. Where it is not met, the paper "
        "promises nothing.",
        "`primax verify --run RUN` gives bounds, values, steps and seeds.",
    )
    title = "What the paper promises, on every PRIME run"
    return Sheet("audit", title, ("run", *columns), tuple(rows), notes, (f"Rows: {told}.",))


def _is_less(run: Run | Unusable) -> bool:
    """Whether its windows were left out when it was packed."""
    return isinstance(run, Run) and not run.keeps("windows.csv")


def _verdicts(run: Run | Unusable) -> dict[str, str]:
    """Of every promise; in place of the first, why there are none."""
    first = next(iter(AUDITS))
    if isinstance(run, Unusable):
        return {first: f"({run.why})"}
    try:
        return {row.name: row.verdict for row in audit_run(run)}
    except InputError as error:
        return {first: f"({error})"}
