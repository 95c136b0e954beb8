"""Puts every table, figure, the scorecard and the claims into a folder."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from primax.errors import InputError
from primax.output.sheet import ABSENT, Sheet
from primax.paper import references
from primax.paper.claims.claims import CANNOT_FAIL, FAILS, HOLDS, Tested, claims_sheet, tested
from primax.paper.evidence import LEFT_OUT, Nearest, Runs
from primax.paper.experiments import CELLS
from primax.paper.figures.figures import FIGURES
from primax.paper.pages.embed import Blocks
from primax.paper.pages.promises import audit_sheet
from primax.paper.pages.times import times_sheet
from primax.paper.references import average
from primax.paper.scorecard import card, effects, fixed, numbers, scalars, spreads
from primax.paper.tables import beside, comparisons, course, readings, results
from primax.paper.tables.results import MAIN
from primax.runs import disk
from primax.runs.config_json import to_bytes
from primax.runs.measures import rolling
from primax.runs.read import NOT_RUN, UNFINISHED, Run, Unusable

TABLES: dict[str, Callable[[Runs], Sheet]] = {
    "table1": results.table1,
    "table2": results.table2,
    "table3": beside.table3,
    "table4": beside.table4,
    "table5": results.table5,
    "table6": results.table6,
    "table7": results.table7,
    "table8": results.table8,
    "table9": lambda runs: beside.table9(),
    "tableA": comparisons.completed,
    "tableB": beside.table_b,
    "tableC": beside.table_c,
    "tableD": comparisons.rest,
    "tableE": course.table_e,
    "tableF": course.table_f,
}
INTERLEAVED = ("table1", "table2", "table6")
"""Under both readings: in columns; in rows; or by a note."""
STACKED = ("table5", "table7", "table8", "tableE", "tableF")
TOLD = {"table3": ("prime",), "table4": MAIN[1:5]}
CAPTIONS = {
    "figure1": "Figure 1. Learning curves: rolling mean of 20 episodes, one std over seeds shaded",
    "figure2": "Figure 2. Ceiling check (range over seeds shaded), pursuit distance and coverage",
    "figure3": "Figure 3. Magnitudes of the reward's parts, mean over seeds",
    "figureA": "Figure A. Readings, controls and other methods (not in the paper)",
}
FIGURES_FIT = ("figure1", "figure2", "figure3")
"""Drawn a second time, under the nearest reading."""
FIT_CAPTION = "under the reading nearest to the paper, a fit"
LEFT_OUT_NOTE = (
    f"`{LEFT_OUT}`: it stands beside the paper's own runs, and a small scale goes without; "
    "`--only` with its name runs it."
)


def all_numbers(runs: Runs) -> list[card.Number]:
    """Every number of the paper, judged."""
    parts = (
        numbers.means,
        numbers.iqms,
        spreads.of_scores,
        effects.comparisons,
        scalars.with_spread,
        spreads.of_scalars,
        scalars.magnitudes,
        scalars.ranges,
        scalars.open_points,
        fixed.exact,
        fixed.counts,
    )
    return [number for part in parts for number in part(runs)]


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


def nearest_of(runs: Runs) -> Nearest | None:
    """The same runs under the nearest reading, if there are any."""
    nearest = Nearest(runs)
    return nearest if nearest.is_there else None


def table(name: str, runs: Runs, nearest: Nearest | None) -> Sheet:
    """A table by name; where there are runs of the nearest reading, under both."""
    make = TABLES[name]
    if nearest is None or name not in (*INTERLEAVED, *STACKED, *TOLD):
        return make(runs)
    if name in TOLD:
        return readings.told(make, TOLD[name], runs)
    put = readings.interleaved if name in INTERLEAVED else readings.stacked
    return put(make, runs, nearest)


def write_all(runs: Runs, out: Path, say: Callable[[str], None]) -> Blocks:
    """Tables as Markdown and CSV, figures as SVG, and a page that shows them all.

    Returns all of it by name, for pages elsewhere.
    """
    try:
        (out / "tables").mkdir(parents=True, exist_ok=True)
        (out / "figures").mkdir(exist_ok=True)
        for name, reason in runs.broken.items():
            say(f"{name} is not used: {reason}")
        nearest = nearest_of(runs)
        say("tables …")
        sheets = {name: table(name, runs, nearest) for name in TABLES}
        say("scorecard and claims …")
        numbers_, claims = all_numbers(runs), tested(runs)
        numbers_fit = None if nearest is None else all_numbers(nearest)
        claims_fit = None if nearest is None else tested(nearest)
        judged = card.sheet(numbers_, numbers_fit)
        held = claims_sheet(runs, claims, claims_fit)
        warned = caveat(runs)
        told = (*warned, *judged.above, *held.above, *curve_top(runs))
        pages = {page.name: replace(page, above=warned + page.above) for page in (judged, held)}
        others = (card.rules(), states(runs), audit_sheet(runs), times_sheet(runs))
        pages |= {page.name: page for page in others}
        for sheet in (*sheets.values(), *pages.values()):
            home = out / "tables" if sheet.name in sheets else out
            disk.write_whole(home / f"{sheet.name}.md", sheet.markdown().encode())
            disk.write_whole(home / f"{sheet.name}.csv", sheet.csv().encode())
        disk.write_whole(out / "references.json", to_bytes(references.all_of(runs)))
        say("figures …")
        captions = dict(CAPTIONS)
        for name, draw in FIGURES.items():
            draw(runs, out / "figures" / name)
            if nearest is not None and name in FIGURES_FIT:
                draw(nearest, out / "figures" / f"{name}_fit")
                captions[f"{name}_fit"] = f"{CAPTIONS[name]}; {FIT_CAPTION}"
        shown = {name: f"![{text}](figures/{name}.svg)" for name, text in captions.items()}
        disk.write_whole(out / "index.md", _index(sheets, captions, told).encode())
        for line in curve_top(runs):
            say(line)
    except OSError as error:
        raise InputError(f"cannot write {out}: {error.strerror}") from error
    whole = {name: sheet.markdown() for name, sheet in (sheets | pages).items()}
    whole["missed"] = card.missed(numbers_, numbers_fit).markdown()
    if numbers_fit is not None:
        whole["explained"] = card.explained(numbers_, numbers_fit).body()
    whole["summary"] = _joined(
        shown["figure1"], sheets["table1"].body(), *judged.above, *held.above
    )
    whole["headline"] = _headline(shown["figure1"], sheets["table1"], told, claims)
    return whole | shown


def _headline(figure: str, table: Sheet, told: tuple[str, ...], claims: list[Tested]) -> str:
    """The main figure and table, the counts, and each claim by its verdict."""
    holds = [f"`{each.claim.id}`" for each in claims if each.verdict == HOLDS]
    fails = [
        f"- `{each.claim.id}`: {each.claim.words} Ours: {each.evidence}."
        for each in claims
        if each.verdict == FAILS
    ]
    forced = [f"`{each.claim.id}`" for each in claims if each.verdict == CANNOT_FAIL]
    lists = [
        "Claims of the paper that fail here ([tests](claims.md)):" if fails else "No claim fails.",
        "\n".join(fails),
        f"Claims that hold: {', '.join(holds) or 'none'}.",
        f"Claims whose tests cannot fail here: {', '.join(forced)}." if forced else "",
    ]
    return _joined(figure, table.body(), *told, *filter(None, lists))


def _joined(*blocks: str) -> str:
    """Blocks of Markdown, one under the other."""
    return "\n\n".join(block.strip() for block in blocks) + "\n"


def _index(sheets: dict[str, Sheet], captions: Blocks, told: tuple[str, ...]) -> str:
    """One page with all of it."""
    beside = ("scorecard", "rules", "claims", "runs", "audit", "times")
    links = ", ".join(f"[{name}]({name}.md)" for name in beside)
    parts = [
        "# The paper's tables and figures, from these runs",
        f"{links}. Made by `primax reproduce`.",
        *told,
    ]
    parts += [sheet.markdown() for sheet in sheets.values()]
    parts += [f"### {text}\n\n![{text}](figures/{name}.svg)" for name, text in captions.items()]
    parts.append(
        "Level lines are policies that learn nothing: a random walker; a blind sweep, row by row; and "
        "on Butterflies a policy that goes to the centre and stays there, the paper's position-only "
        "comparator."
    )
    return "\n\n".join(parts) + "\n"
