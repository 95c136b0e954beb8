"""Puts every table, figure, the scorecard and the claims into a folder."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from primax import folder as disk
from primax.errors import InputError
from primax.paper import beside, comparisons, exact, numbers, scalars, scorecard, tables
from primax.paper.claims import claims_sheet
from primax.paper.evidence import BROKEN, LEFT_OUT, Runs
from primax.paper.experiments import CELLS
from primax.paper.figures import FIGURES
from primax.paper.measures import rolling
from primax.paper.references import average
from primax.paper.sheet import ABSENT, Sheet

TABLES: dict[str, Callable[[Runs], Sheet]] = {
    "table1": tables.table1,
    "table2": tables.table2,
    "table3": beside.table3,
    "table4": beside.table4,
    "table5": tables.table5,
    "table6": tables.table6,
    "table7": tables.table7,
    "table8": tables.table8,
    "table9": lambda runs: beside.table9(),
    "tableA": comparisons.completed,
    "tableB": beside.table_b,
    "tableC": beside.table_c,
}
CAPTIONS = {
    "figure1": "Figure 1. Learning curves: rolling mean of 20 episodes, one std over seeds shaded",
    "figure2": "Figure 2. Ceiling check (range over seeds shaded), pursuit distance and coverage",
    "figure3": "Figure 3. Magnitudes of the reward's parts, mean over seeds",
    "figureA": "Figure A. Readings, controls and other methods (not in the paper)",
}
LEFT_OUT_NOTE = (
    f"`{LEFT_OUT}`: it stands beside the paper's own runs, and a small scale goes without; "
    "`--only` with its name runs it."
)


def all_numbers(runs: Runs) -> list[scorecard.Number]:
    """Every number of the paper, judged."""
    parts = (
        numbers.means,
        numbers.iqms,
        numbers.comparisons,
        scalars.with_spread,
        scalars.magnitudes,
        scalars.ranges,
        scalars.open_points,
        exact.exact,
        exact.counts,
    )
    return [number for part in parts for number in part(runs)]


def states(runs: Runs) -> Sheet:
    """What was run, and under which settings that are not its cell's at the paper's scale."""
    rows = []
    for name, cell in CELLS.items():
        variant = cell.variant
        run = runs.run(variant.name, cell.world)
        if not isinstance(run, str):
            changes = ", ".join(runs.changes(variant.name, cell.world)) or "none"
            rows.append((name, f"{len(run.seeds)} seeds, {run.steps:,} steps", changes))
        else:
            why = runs.broken.get(name, "").replace(str(runs.folders.get(name)), name)
            state = f"{run}: {why}" if why else run
            rows.append((name, state if variant.is_available else "not available yet", ABSENT))
    columns = ("cell", "state", "settings other than its own at the paper's scale")
    notes = (LEFT_OUT_NOTE,) if any(row[1] == LEFT_OUT for row in rows) else ()
    return Sheet("runs", "The runs behind these pages", columns, tuple(rows), notes)


def caveat(runs: Runs) -> tuple[str, ...]:
    """What must stand above verdicts: runs that are not the paper's, mixed, or broken."""
    said = []
    if other := [c.name for c in CELLS.values() if runs.changes(c.variant.name, c.world)]:
        not_papers = f"{len(other)} of these runs are not at the paper's settings"
        said.append(
            f"{not_papers} ([runs](runs.md) says which): "
            "verdicts on them say nothing about the paper."
        )
    if mixed := runs.mixed():
        said.append(
            "Runs of one world differ in that world or in length, and do not compare: "
            f"{', '.join(mixed)}."
        )
    if runs.broken:
        said.append(f"Not used, for their folders are broken: {', '.join(runs.broken)}.")
    return tuple(f"**{line}**" for line in said)


def headline(runs: Runs) -> tuple[str, ...]:
    """How far PRIME's curve on Maze rises above chance."""
    run = runs.run("prime", "maze")
    if isinstance(run, str):
        return ()
    scores, chance = run.grid("episodes", "score"), average(runs, "maze", "random")
    assert scores is not None
    top = rolling(scores).mean(axis=0).max()
    return (
        f"PRIME on Maze: where its curve is highest, {top:.2f} of 20 episodes reach the goal (mean "
        f"over {len(scores)} seeds); a random walker's chance is {chance:.4f} (exact).",
    )


def write_all(runs: Runs, out: Path, say: Callable[[str], None]) -> None:
    """Tables as Markdown and CSV, figures as SVG and PNG, and a page that shows them all."""
    try:
        (out / "tables").mkdir(parents=True, exist_ok=True)
        (out / "figures").mkdir(exist_ok=True)
        for name, cell in CELLS.items():
            if runs.run(cell.variant.name, cell.world) == BROKEN:
                say(f"{name} is not used: {runs.broken[name]}")
        say("tables …")
        sheets = {name: make(runs) for name, make in TABLES.items()}
        say("scorecard and claims …")
        pages = {"scorecard": scorecard.sheet(all_numbers(runs)), "claims": claims_sheet(runs)}
        warned = caveat(runs)
        told = [*warned, *(line for page in pages.values() for line in page.above)]
        told += headline(runs)
        pages = {name: replace(page, above=warned + page.above) for name, page in pages.items()}
        pages["runs"] = states(runs)
        for sheet in (*sheets.values(), *pages.values()):
            home = out / "tables" if sheet.name in sheets else out
            disk.write_whole(home / f"{sheet.name}.md", sheet.markdown().encode())
            disk.write_whole(home / f"{sheet.name}.csv", sheet.csv().encode())
        say("figures …")
        for name, draw in FIGURES.items():
            draw(runs, out / "figures" / name)
        disk.write_whole(out / "index.md", _index(sheets, told).encode())
        for line in headline(runs):
            say(line)
    except OSError as error:
        raise InputError(f"cannot write {out}: {error.strerror}") from error


def _index(sheets: dict[str, Sheet], told: list[str]) -> str:
    """One page with all of it."""
    parts = [
        "# The paper's tables and figures, from these runs",
        "[scorecard](scorecard.md), [claims](claims.md), [runs](runs.md). Made by `primax reproduce`.",
        *told,
    ]
    parts += [sheet.markdown() for sheet in sheets.values()]
    parts += [f"### {text}\n\n![{text}](figures/{name}.svg)" for name, text in CAPTIONS.items()]
    parts.append(
        "Level lines are policies that learn nothing: a random walker, a blind sweep row by row, and "
        "on Butterflies going to the centre to stay, the paper's position-only comparator."
    )
    return "\n\n".join(parts) + "\n"
