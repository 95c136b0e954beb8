"""What the runs took and where they were made, from their manifests."""

from collections import Counter
from typing import Any

from primax.paper.evidence import Runs
from primax.paper.experiments import CELLS
from primax.paper.sheet import ABSENT, Sheet

COLUMNS = ("run", "commit", "device", "jax", "parts", "compile s", "run s", "steps computed again")


def times_sheet(runs: Runs) -> Sheet:
    """A row a run; commits and the sum above."""
    rows, commits, total = [], Counter[str](), 0.0
    for name, cell in CELLS.items():
        run = runs.run(cell.variant.name, cell.world)
        if not isinstance(run, str):
            seconds = [_sum(run.manifest, kind) for kind in ("compile_s", "run_s")]
            known = [str(run.manifest.get(key) or ABSENT) for key in ("commit", "device", "jax")]
            again = str(run.manifest.get("recomputed_steps", ABSENT))
            parts = _parts(run.manifest)
            more = "+" if any("run_s" not in part for part in parts) else ""
            texts = (f"{s:,.0f}{more}" for s in seconds)
            rows.append((name, *known, str(len(parts)), *texts, again))
            commits[known[0]] += 1
            total += sum(seconds)
    is_more = any("+" in row[COLUMNS.index("run s")] for row in rows)
    made = ", ".join(f"{commit} ({num} runs)" for commit, num in commits.items()) or "none"
    above = (
        f"{len(rows)} runs took {'more than ' * is_more}{total:,.0f} seconds in all, "
        f"compiling included. Commits: {made}."
    )
    notes = ["A run killed or stopped and taken up again has more than one part, to the same bits."]
    if is_more:
        notes.append(
            "+: more, for a part that was killed, or stopped by a version that did not keep it, is not counted."
        )
    return Sheet("times", "What the runs took", COLUMNS, tuple(rows), tuple(notes), (above,))


def _parts(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    listed = manifest.get("parts")
    return [part for part in listed if isinstance(part, dict)] if isinstance(listed, list) else []


def _sum(manifest: dict[str, Any], kind: str) -> float:
    known = (part.get(kind) for part in _parts(manifest))
    return float(sum(value for value in known if isinstance(value, int | float)))
