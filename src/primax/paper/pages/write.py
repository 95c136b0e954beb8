"""Puts every table, figure, the scorecard and the claims into a folder."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from primax.errors import InputError
from primax.output.sheet import Sheet
from primax.paper import references
from primax.paper.claims.claims import CANNOT_FAIL, FAILS, HOLDS, Tested, claims_sheet, tested
from primax.paper.evidence import Runs
from primax.paper.figures.figures import FIGURES
from primax.paper.pages.both import TABLES, nearest_of, table
from primax.paper.pages.caveats import caveat, curve_top, states
from primax.paper.pages.embed import Blocks
from primax.paper.pages.promises import audit_sheet
from primax.paper.pages.times import times_sheet
from primax.paper.scorecard import card, effects, fixed, numbers, scalars, spreads
from primax.runs import disk
from primax.runs.config_json import to_bytes

CAPTIONS = {
    "figure1": "Figure 1. Learning curves: rolling mean of 20 episodes, one std over seeds shaded",
    "figure2": "Figure 2. Ceiling check (range over seeds shaded), pursuit distance and coverage",
    "figure3": "Figure 3. Magnitudes of the reward's parts, mean over seeds",
    "figureA": "Figure A. Readings, controls and other methods (not in the paper)",
}
FIGURES_FIT = ("figure1", "figure2", "figure3")
"""Drawn a second time, under the nearest reading."""
FIT_CAPTION = "under the reading nearest to the paper, a fit"


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
