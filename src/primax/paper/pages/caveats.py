"""What stands beside verdicts and above them: which runs there are, and what is wrong with them."""

from primax.output.sheet import ABSENT, Sheet
from primax.paper.evidence import LEFT_OUT, Runs
from primax.paper.experiments import CELLS
from primax.paper.references import average
from primax.runs.measures import rolling
from primax.runs.read import NOT_RUN, UNFINISHED, Run, Unusable

LEFT_OUT_NOTE = (
    f"`{LEFT_OUT}`: it stands beside the paper's own runs, and a small scale goes without; "
    "`--only` with its name runs it."
)


def states(runs: Runs) -> Sheet:
    """What was run, and under which settings that are not its cell's at the paper's scale."""
    found = {name: runs.of(cell) for name, cell in CELLS.items()}
    columns = (
        "cell",
        "state",
        "settings other than its own at the paper's scale",
        "settings missing from its config.json, filled in with this version's defaults",
    )
    is_left_out = any(isinstance(run, Unusable) and run.why == LEFT_OUT for run in found.values())
    rows = tuple(_state(runs, name, run) for name, run in found.items())
    notes = (LEFT_OUT_NOTE,) if is_left_out else ()
    return Sheet("runs", "The runs behind these pages", columns, rows, notes)


def _state(runs: Runs, name: str, run: Run | Unusable) -> tuple[str, ...]:
    if isinstance(run, Run):
        lists = (", ".join(of) or "none" for of in (runs.changes(CELLS[name]), run.unsaid))
        return (name, f"{len(run.seeds)} seeds, {run.steps:,} steps", *lists)
    reason = run.reason.replace(str(runs.folders.get(name)), name)
    state = f"{run.why}: {reason}" if reason else run.why
    is_available = CELLS[name].variant.is_available
    return (name, state if is_available else "not available yet", ABSENT, ABSENT)


def caveat(runs: Runs) -> tuple[str, ...]:
    """What must stand above verdicts: runs that are not the paper's, mixed, or broken."""
    caveats = []
    there = {name: runs.of(cell) for name, cell in CELLS.items()}
    gone = [
        CELLS[name]
        for name, run in there.items()
        if isinstance(run, Unusable) and run.why in (NOT_RUN, UNFINISHED)
    ]
    if gone:
        papers = sum(cell.variant.is_papers for cell in gone)
        own = f"({papers} of the paper's own {sum(c.variant.is_papers for c in CELLS.values())})"
        caveats.append(
            f"{len(gone)} of {len(CELLS)} cells {own} have no finished run yet. They are left out of every verdict."
        )
    if other := [c.name for c in CELLS.values() if runs.changes(c)]:
        not_papers = f"{len(other)} of these runs are not at the paper's settings"
        caveats.append(
            f"{not_papers} ([runs](runs.md) says which): "
            "verdicts on them say nothing about the paper."
        )
    if mixed := runs.mixed():
        caveats.append(
            "These runs differ in world settings or length from the first run in the same world, so "
            "they cannot be compared with it: "
            f"{', '.join(mixed)}."
        )
    if runs.broken:
        caveats.append(f"Not used, because their folders are broken: {', '.join(runs.broken)}.")
    return tuple(f"**{line}**" for line in caveats)


def curve_top(runs: Runs) -> tuple[str, ...]:
    """How far PRIME's curve on Maze rises above chance."""
    run = runs.run("prime", "maze")
    if isinstance(run, Unusable):
        return ()
    scores, chance = run.grid("episodes", "score"), average(runs, "maze", "random")
    assert scores is not None
    top = rolling(scores).mean(axis=0).max()
    return (
        f"PRIME on Maze: at the highest point of the curve averaged over {len(scores)} seeds, {top:.0%} "
        f"of episodes reach the goal; at the end {rolling(scores)[:, -1].mean():.0%} do. The tables "
        "give the mean of each seed's own peak, and these come at different times. A random walker "
        f"reaches the goal in {chance:.2%} of episodes.",
    )
