"""What `primax reproduce` wrote of a reproduction: its scorecard and claims, for a page."""

import csv
import io
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from primax import files
from primax.errors import InputError
from primax.output.sheet import ABSENT
from primax.paper.claims import claims
from primax.paper.scorecard import card
from primax.paper.scorecard.rule import VERDICTS
from primax.report.reading import Gap, attempt
from primax.runs.read import BROKEN

COLUMNS = {"scorecard.csv": card.COLUMNS, "claims.csv": claims.COLUMNS}
FIT = {"scorecard.csv": card.FIT, "claims.csv": claims.FIT}
"""What a reproduction has more where the nearest reading was run."""
PLACES = {
    "sec:setting": "Section 3",
    "sec:vepi": "Section 4.2",
    "sec:eval-setup": "Section 6.1",
    "sec:eval-h1": "Section 6.2",
    "sec:eval-theory": "Section 6.2",
    "sec:eval-butter": "Section 6.3",
    "sec:eval-gate": "Section 6.4",
    "sec:discussion": "Section 7",
    "app:exp": "Appendix A",
    "app:stats": "Appendix B",
    "app:estimators": "Appendix C",
    "app:noisytv": "Appendix D",
    "tab:main": "Table 1",
    "tab:ablations": "Table 2",
    "tab:hp-prime": "Table 3",
    "tab:hp-base": "Table 4",
    "tab:stats": "Table 5",
    "tab:iqm": "Table 6",
    "tab:seed": "Table 7",
    "tab:mi": "Table 8",
    "tab:scope": "Table 9",
}
"""What the labels in the paper's source are in print."""


@dataclass(frozen=True)
class Sheet:
    """A table of texts to be filtered by verdict, by place in the paper, and by words."""

    rows: tuple[dict[str, str], ...]
    counts: tuple[tuple[str, int], ...]
    """Of each verdict."""
    places: tuple[str, ...]
    """The paper's tables and sections."""
    nearest: tuple[tuple[str, int], ...] = ()
    """The counts under the nearest reading; none where it was not run."""


@dataclass(frozen=True)
class Reproduction:
    """A folder of `primax reproduce`; a part is a Gap where it cannot be read."""

    path: str
    scale: str
    scorecard: Sheet | Gap
    claims: Sheet | Gap
    caveats: tuple[str, ...]


def read(folder: Path) -> Reproduction:
    """From its CSV files, so that the page says what they say."""
    scorecard = attempt(
        "scorecard",
        lambda: _sheet(folder, "scorecard.csv", ("verdict", "nearest: verdict"), VERDICTS),
    )
    claimed = attempt(
        "claims", lambda: _sheet(folder, "claims.csv", ("ours", "nearest"), claims.VERDICTS)
    )
    note = folder / "scale"
    scale = attempt("scale", lambda: files.read(note).decode("utf-8").strip())
    caveats = attempt("runs", lambda: _caveats(_rows(folder, "runs.csv")))
    return Reproduction(
        str(folder),
        "" if isinstance(scale, Gap) else scale,
        scorecard,
        claimed,
        (f"runs.csv cannot be read: {caveats.why}",) if isinstance(caveats, Gap) else caveats,
    )


def _rows(folder: Path, name: str) -> list[dict[str, str]]:
    path = folder / name
    if not path.exists():
        raise InputError(f"no {name}: primax reproduce --no-run --out {folder} writes it")
    text = files.read(path).decode("utf-8")
    rows = list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
    if not rows or any(None in row or None in row.values() for row in rows):
        raise InputError(f"{path} is not the table primax reproduce writes")
    return [{key: value.strip("`") for key, value in row.items()} for row in rows]


def _sheet(folder: Path, name: str, verdicts: tuple[str, str], order: tuple[str, ...]) -> Sheet:
    """A table with its verdicts: those of the text taken literally, and of the nearest reading."""
    rows = _rows(folder, name)
    literal, fit = verdicts
    has_fit = fit in rows[0]
    lacking = [c for c in COLUMNS[name] + FIT[name] * has_fit if c not in rows[0]]
    if lacking:
        raise InputError(f"{folder / name} has no column {lacking[0]}")
    nearest = (
        _counts([row[fit] + _no_learning(name, row) for row in rows], order) if has_fit else ()
    )
    rows = [row | {"verdict": row[literal] + _no_learning(name, row)} for row in rows]
    counts = _counts([row["verdict"] for row in rows], order)
    rows = [row | {"where": _place(row["where"])} for row in rows]
    if name == "claims.csv":
        rank = {claims.FAILS: 0, claims.HOLDS: 2, claims.CANNOT_FAIL: 3}
        rows.sort(key=lambda row: rank.get(row["verdict"], 1))
    return Sheet(tuple(rows), counts, tuple(sorted({row["where"] for row in rows})), nearest)


def _counts(found: list[str], order: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    """How often each verdict is there, the known ones first."""
    num = Counter(found)
    names = [*order, *sorted(set(num) - set(order))]
    return tuple((word, num[word]) for word in names if num[word])


def _place(labels: str) -> str:
    """`tab:main` as `Table 1`; what is no label of the paper stays."""
    return ", ".join(PLACES.get(label, label) for label in labels.split(", "))


def _no_learning(name: str, row: dict[str, str]) -> str:
    """What no agent can change is not counted with what was learnt."""
    is_fixed = name == "scorecard.csv" and row["id"].partition(".")[0] in card.NO_LEARNING
    return ", without learning" if is_fixed else ""


def _caveats(rows: list[dict[str, str]]) -> tuple[str, ...]:
    """What must be read before any verdict."""
    state, changes = list(rows[0])[1:3]
    run = [row for row in rows if row[changes] != ABSENT]
    other = [row for row in run if row[changes] != "none"]
    broken = [row["cell"] for row in rows if row[state].startswith(BROKEN)]
    caveats = [f"{len(run)} of {len(rows)} runs are there."] if len(run) < len(rows) else []
    if other:
        caveats.append(
            f"{len(other)} of these runs are not at the paper's settings: "
            "verdicts on them say nothing about the paper."
        )
    if broken:
        caveats.append(f"Not used, because their folders are broken: {', '.join(broken)}.")
    return tuple(caveats)
