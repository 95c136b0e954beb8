"""What `primax verify --run` says of every PRIME run, on one page."""

from collections import Counter

from primax.config_json import from_json
from primax.errors import InputError
from primax.guarantees.audit import AUDITS, audit
from primax.guarantees.row import FAILS, HOLDS, PREMISE
from primax.paper.evidence import Runs
from primax.paper.experiments import CELLS
from primax.paper.folders import RunFolder
from primax.paper.sheet import ABSENT, Sheet


def audit_sheet(runs: Runs) -> Sheet:
    """A row a run, a column a promise."""
    rows, verdicts = [], Counter[str]()
    for name, cell in CELLS.items():
        if cell.variant.method == "prime":
            run = runs.run(cell.variant.name, cell.world)
            found = _nothing(run) if isinstance(run, str) else _verdicts(run)
            rows.append((name, *found))
            verdicts.update(found)
    told = ", ".join(f"{verdicts[word]} {word}" for word in (HOLDS, PREMISE, FAILS))
    notes = (
        "`primax verify --run` on every window of every seed, from windows.csv alone. A premise is "
        "the paper's condition, not its promise: not met, nothing is promised.",
        "`primax verify --run RUN` names bounds, values, steps and seeds.",
    )
    title = "What the paper promises, on every PRIME run"
    return Sheet("audit", title, ("run", *AUDITS), tuple(rows), notes, (f"Rows: {told}.",))


def _nothing(why: str) -> list[str]:
    return [f"({why})", *[ABSENT] * (len(AUDITS) - 1)]


def _verdicts(run: RunFolder) -> list[str]:
    try:
        config, _ = from_json(run.content)
        return [audit(name, run.windows, config).verdict for name in AUDITS]
    except InputError as error:
        return _nothing(str(error))
    except (ValueError, KeyError, TypeError):
        return _nothing("config.json is not of this version")
