"""Puts every table, figure, the scorecard and the claims into a folder."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from primax import folder as disk
from primax.config_json import to_bytes
from primax.errors import InputError
from primax.paper import (
    beside,
    comparisons,
    exact,
    numbers,
    references,
    scalars,
    scorecard,
    tables,
)
from primax.paper.audit import audit_sheet
from primax.paper.claims import FAILS, HOLDS, claims_sheet
from primax.paper.embed import Blocks
from primax.paper.evidence import BROKEN, LEFT_OUT, Runs
from primax.paper.experiments import CELLS
from primax.paper.figures import FIGURES
from primax.paper.folders import NOT_RUN, UNFINISHED
from primax.paper.measures import rolling
from primax.paper.references import average
from primax.paper.sheet import ABSENT, Sheet
from primax.paper.times import times_sheet

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
    "tableD": comparisons.rest,
}
ABSENT_RUN = (NOT_RUN, UNFINISHED)
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
            asked = (variant.name, cell.world)
            lists = (
                ", ".join(found) or "none" for found in (runs.changes(*asked), runs.unsaid(*asked))
            )
            rows.append((name, f"{len(run.seeds)} seeds, {run.steps:,} steps", *lists))
        else:
            why = runs.broken.get(name, "").replace(str(runs.folders.get(name)), name)
            state = f"{run}: {why}" if why else run
            rows.append(
                (name, state if variant.is_available else "not available yet", *[ABSENT] * 2)
            )
    columns = (
        "cell",
        "state",
        "settings other than its own at the paper's scale",
        "settings its config.json does not give, read as they are now",
    )
    notes = (LEFT_OUT_NOTE,) if any(row[1] == LEFT_OUT for row in rows) else ()
    return Sheet("runs", "The runs behind these pages", columns, tuple(rows), notes)


def caveat(runs: Runs) -> tuple[str, ...]:
    """What must stand above verdicts: runs that are not the paper's, mixed, or broken."""
    said = []
    there = [runs.run(cell.variant.name, cell.world) for cell in CELLS.values()]
    gone = [cell for cell, run in zip(CELLS.values(), there, strict=True) if run in ABSENT_RUN]
    if gone:
        papers = sum(cell.variant.is_papers for cell in gone)
        own = f"({papers} of the paper's own {sum(c.variant.is_papers for c in CELLS.values())})"
        said.append(
            f"{len(gone)} of {len(CELLS)} cells {own} are not there yet: no verdict counts them."
        )
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


def curve_top(runs: Runs) -> tuple[str, ...]:
    """How far PRIME's curve on Maze rises above chance."""
    run = runs.run("prime", "maze")
    if isinstance(run, str):
        return ()
    scores, chance = run.grid("episodes", "score"), average(runs, "maze", "random")
    assert scores is not None
    top = rolling(scores).mean(axis=0).max()
    return (
        f"PRIME on Maze: where the mean curve of its {len(scores)} seeds is highest, {top:.0%} of "
        f"episodes reach the goal, and {rolling(scores)[:, -1].mean():.0%} at the end; a seed's own "
        f"peak, which tables give, may come at any time. A random walker's chance is {chance:.2%}.",
    )


def write_all(runs: Runs, out: Path, say: Callable[[str], None]) -> Blocks:
    """Tables as Markdown and CSV, figures as SVG, and a page that shows them all.

    Returns all of it by name, for pages elsewhere.
    """
    try:
        (out / "tables").mkdir(parents=True, exist_ok=True)
        (out / "figures").mkdir(exist_ok=True)
        for name, cell in CELLS.items():
            if runs.run(cell.variant.name, cell.world) == BROKEN:
                say(f"{name} is not used: {runs.broken[name]}")
        say("tables …")
        sheets = {name: make(runs) for name, make in TABLES.items()}
        say("scorecard and claims …")
        judged, claims = scorecard.sheet(all_numbers(runs)), claims_sheet(runs)
        warned = caveat(runs)
        told = (*warned, *judged.above, *claims.above, *curve_top(runs))
        pages = {page.name: replace(page, above=warned + page.above) for page in (judged, claims)}
        pages |= {page.name: page for page in (states(runs), audit_sheet(runs), times_sheet(runs))}
        for sheet in (*sheets.values(), *pages.values()):
            home = out / "tables" if sheet.name in sheets else out
            disk.write_whole(home / f"{sheet.name}.md", sheet.markdown().encode())
            disk.write_whole(home / f"{sheet.name}.csv", sheet.csv().encode())
        disk.write_whole(out / "references.json", to_bytes(references.all_of(runs)))
        say("figures …")
        for name, draw in FIGURES.items():
            draw(runs, out / "figures" / name)
        shown = {name: f"![{text}](figures/{name}.svg)" for name, text in CAPTIONS.items()}
        disk.write_whole(out / "index.md", _index(sheets, shown, told).encode())
        for line in curve_top(runs):
            say(line)
    except OSError as error:
        raise InputError(f"cannot write {out}: {error.strerror}") from error
    whole = {name: sheet.markdown() for name, sheet in (sheets | pages).items()}
    whole["missed"] = scorecard.missed(judged).markdown()
    whole["headline"] = _headline(shown["figure1"], sheets["table1"], told, claims)
    return whole | shown


def _headline(figure: str, table: Sheet, told: tuple[str, ...], claims: Sheet) -> str:
    """The main figure and table, the counts, and each claim by its verdict."""
    holds = [row[0] for row in claims.rows if row[4] == HOLDS]
    fails = [f"- {row[0]}: {row[2]} Ours: {row[5]}." for row in claims.rows if row[4] == FAILS]
    lists = [
        "Claims of the paper that fail here ([tests](claims.md)):" if fails else "No claim fails.",
        "\n".join(fails),
        f"Claims that hold: {', '.join(holds) or 'none'}.",
    ]
    return "\n\n".join([figure, table.body().strip(), *told, *filter(None, lists)]) + "\n"


def _index(sheets: dict[str, Sheet], figures: Blocks, told: tuple[str, ...]) -> str:
    """One page with all of it."""
    beside = ("scorecard", "claims", "runs", "audit", "times")
    links = ", ".join(f"[{name}]({name}.md)" for name in beside)
    parts = [
        "# The paper's tables and figures, from these runs",
        f"{links}. Made by `primax reproduce`.",
        *told,
    ]
    parts += [sheet.markdown() for sheet in sheets.values()]
    parts += [f"### {CAPTIONS[name]}\n\n{figure}" for name, figure in figures.items()]
    parts.append(
        "Level lines are policies that learn nothing: a random walker, a blind sweep row by row, and "
        "on Butterflies going to the centre to stay, the paper's position-only comparator."
    )
    return "\n\n".join(parts) + "\n"
