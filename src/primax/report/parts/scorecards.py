"""What `primax reproduce` wrote of a reproduction: its scorecard and claims, for a page."""

import csv
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from primax.errors import InputError
from primax.output.sheet import ABSENT
from primax.paper.claims import claims
from primax.paper.scorecard import card
from primax.paper.scorecard.rule import VERDICTS
from primax.report.reading import Gap, attempt
from primax.runs.read import BROKEN

COLUMNS = {"scorecard.csv": card.COLUMNS, "claims.csv": claims.COLUMNS}


@dataclass(frozen=True)
class Sheet:
    """A table of texts to be filtered by verdict, by place in the paper, and by words."""

    rows: tuple[dict[str, str], ...]
    counts: tuple[tuple[str, int], ...]
    """Of each verdict."""
    places: tuple[str, ...]
    """Labels of the paper's tables and sections."""


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
    scorecard = attempt("scorecard", lambda: _sheet(folder, "scorecard.csv", "verdict", VERDICTS))
    claimed = attempt("claims", lambda: _sheet(folder, "claims.csv", "ours", claims.VERDICTS))
    note = folder / "scale"
    scale = attempt("scale", lambda: note.read_text(encoding="utf-8").strip())
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
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, strict=True))
    if not rows or any(None in row or None in row.values() for row in rows):
        raise InputError(f"{path} is not the table primax reproduce writes")
    return [{key: value.strip("`") for key, value in row.items()} for row in rows]


def _sheet(folder: Path, name: str, verdict: str, order: tuple[str, ...]) -> Sheet:
    rows = _rows(folder, name)
    lacking = [column for column in COLUMNS[name] if column not in rows[0]]
    if lacking:
        raise InputError(f"{folder / name} has no column {lacking[0]}")
    rows = [row | {"verdict": row[verdict] + _no_learning(name, row)} for row in rows]
    found = Counter(row["verdict"] for row in rows)
    names = [*order, *sorted(set(found) - set(order))]
    counts = tuple((word, found[word]) for word in names if found[word])
    return Sheet(tuple(rows), counts, tuple(sorted({row["where"] for row in rows})))


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
