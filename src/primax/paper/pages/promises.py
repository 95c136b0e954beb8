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
    """A row a run, a column a promise."""
    rows, verdicts = [], Counter[str]()
    for name, cell in CELLS.items():
        if cell.variant.method == "prime":
            found = _verdicts(runs.of(cell))
            verdicts.update(found)
            rows.append((name, *found))
    told = ", ".join(f"{verdicts[word]} {word}" for word in (HOLDS, PREMISE, FAILS))
    notes = (
        "`primax verify --run` on every window of every seed, from windows.csv alone. A premise is "
        "a condition the paper assumes, not something it promises. Where it is not met, the paper "
        "promises nothing.",
        "`primax verify --run RUN` gives bounds, values, steps and seeds.",
    )
    title = "What the paper promises, on every PRIME run"
    return Sheet("audit", title, ("run", *AUDITS), tuple(rows), notes, (f"Rows: {told}.",))


def _verdicts(run: Run | Unusable) -> list[str]:
    """Of every promise; in place of the first, why there are none."""
    if isinstance(run, Unusable):
        return [f"({run.why})", *[ABSENT] * (len(AUDITS) - 1)]
    try:
        return [row.verdict for row in audit_run(run)]
    except InputError as error:
        return [f"({error})", *[ABSENT] * (len(AUDITS) - 1)]
