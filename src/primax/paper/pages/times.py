"""What the runs took and where they were made, from their manifests."""

from collections import Counter
from dataclasses import dataclass

from primax.output.sheet import ABSENT, Sheet
from primax.paper.evidence import Runs
from primax.runs.read import Run

COLUMNS = ("run", "commit", "device", "jax", "parts", "compile s", "run s", "steps computed again")


@dataclass(frozen=True)
class Times:
    """How one run was made."""

    name: str
    known: tuple[str, ...]
    """Commit, device and version of jax."""
    parts: int
    compile_s: float
    run_s: float
    is_more: bool
    """Whether a part's seconds are not known."""
    recomputed: str

    @property
    def row(self) -> tuple[str, ...]:
        seconds = (f"{s:,.0f}{'+' * self.is_more}" for s in (self.compile_s, self.run_s))
        return self.name, *self.known, str(self.parts), *seconds, self.recomputed


def times_of(name: str, run: Run) -> Times:
    """From a run's manifest."""
    known = tuple(str(run.manifest.get(key) or ABSENT) for key in ("commit", "device", "jax"))
    compile_s, run_s = (run.seconds(kind) for kind in ("compile_s", "run_s"))
    recomputed = str(run.manifest.get("recomputed_steps", ABSENT))
    total = (float(sum(filter(None, seconds))) for seconds in (compile_s, run_s))
    return Times(name, known, len(run.parts), *total, None in run_s, recomputed)


def times_sheet(runs: Runs) -> Sheet:
    """A row a run; commits and the sum above."""
    found = [times_of(name, run) for name, run in runs.usable.items()]
    commits = Counter(times.known[0] for times in found)
    total = sum(times.compile_s + times.run_s for times in found)
    is_more = any(times.is_more for times in found)
    made = ", ".join(f"{commit} ({num} runs)" for commit, num in commits.items()) or "none"
    above = (
        f"{len(found)} runs took {'more than ' * is_more}{total:,.0f} seconds in all, "
        f"compiling included. Commits: {made}."
    )
    notes = [
        "A run that was stopped or killed and then resumed has more than one part. Its results are "
        "the same to the bit as those of an uninterrupted run."
    ]
    if is_more:
        notes.append(
            "+: the real time is longer. A part that was killed is not counted, nor is one stopped by a "
            "version that did not record its time."
        )
    rows = tuple(times.row for times in found)
    return Sheet("times", "What the runs took", COLUMNS, rows, tuple(notes), (above,))
