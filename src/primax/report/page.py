"""The page itself: a template, one style sheet, one script, and the data beside them."""

import base64
import hashlib
import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import jinja2
from markupsafe import Markup, escape

import primax
from primax.errors import InputError
from primax.paper.claims import claims
from primax.paper.experiments import FITTED, SHARED
from primax.paper.scorecard import rule
from primax.paper.tables.readings import NOTE
from primax.report import sources
from primax.report.entries import Entries, gather
from primax.report.index import chunks, grouped, index, ordered
from primax.report.packing import embedded
from primax.report.parts import curves, facts, scorecards
from primax.report.parts.promises import promises
from primax.report.reading import Gap
from primax.runs import measures
from primax.verify.row import FAILS as BROKEN
from primax.verify.row import HOLDS, PREMISE

SCRIPTS = (
    "base",
    "save",
    "theme",
    "curves",
    "lines",
    "seeds",
    "maps",
    "replays",
    "tables",
    "start",
)
"""In the order they stand on the page."""
CLASSES = {
    **dict.fromkeys((rule.REPRODUCED, claims.HOLDS, HOLDS), "good"),
    **dict.fromkeys((rule.ABOVE, rule.BELOW, PREMISE), "odd"),
    **dict.fromkeys((rule.DIFFERS, claims.FAILS, BROKEN), "bad"),
    **dict.fromkeys((rule.UNDECIDED, rule.UNDETERMINED), "open"),
}
"""How a verdict looks; one that is not here says that something is missing."""
FITS = {variant.name for variant in (*FITTED, SHARED)}
"""Runs under the nearest reading, which the page must call a fit."""
Say = Callable[[str], None]


def make(folders: list[Path], say: Say = lambda line: None) -> str:
    """The whole page, as text; the same folders give the same text."""
    found = sources.find(folders)
    say(f"reading {len(found.runs)} run{'s' * (len(found.runs) != 1)} …")
    entries = gather(found.runs)
    reproductions = [scorecards.read(folder) for folder in found.reproductions]
    if not entries.runs and not found.reproductions:
        name, why = entries.broken[0]
        raise InputError(f"{name} cannot be shown: {why}")
    for line in lacking(entries, reproductions):
        say(line)
    return render(entries, reproductions)


def lacking(entries: Entries, reproductions: list[scorecards.Reproduction]) -> list[str]:
    """A line for each thing that is missing or broken, as the page has it too."""
    lines = [f"{name}: not shown: {why}" for name, why in entries.broken]
    for entry in entries.runs:
        parts: dict[str, list[str]] = {}
        for gap in entry.gaps:
            parts.setdefault(gap.why, []).append(gap.part)
        lines += [f"{entry.folder}: no {', '.join(of)}: {why}" for why, of in parts.items()]
    for found in reproductions:
        sheets = (found.scorecard, found.claims)
        lines += [f"{found.path}: no {s.part}: {s.why}" for s in sheets if isinstance(s, Gap)]
        lines += [f"{found.path}: {caveat}" for caveat in found.caveats]
    return lines


def render(entries: Entries, reproductions: list[scorecards.Reproduction]) -> str:
    """The template filled in; every value is escaped, and no script but ours is let run."""
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        loader=jinja2.FunctionLoader(_static),
    )
    environment.filters |= {
        "num": shown,
        "verdict_class": lambda v: CLASSES.get(v, "none"),
        "unbroken": unbroken,
    }
    script = "\n".join(_static(f"{name}.js") for name in SCRIPTS)
    entries = ordered(entries)
    groups, runs = grouped(entries), list(entries.runs)
    audits = [entry.audit for entry in runs if not isinstance(entry.audit, Gap)]
    return environment.get_template("page.html").render(
        version=primax.__version__,
        title=_title(entries, reproductions),
        style=Markup(_static("style.css")),
        script=Markup(script),
        script_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        broken=entries.broken,
        runs=runs,
        places=groups,
        reproductions=reproductions,
        nearest=NOTE,
        has_nearest=any(entry.style.variant in FITS for entry in runs),
        settings=facts.settings(
            [e.run for e in runs],
            [e.name for e in runs],
            [entries.places[e.place].title for e in runs],
        ),
        measures=measures.SCORES,
        index=embedded(index(entries, groups)),
        chunks=[(name, embedded(content)) for name, content in chunks(entries)],
        verdicts=(BROKEN, PREMISE, HOLDS),
        promises=promises(audits),
        has_failure=any(audit.has_failure for audit in audits),
        gaps=_gaps(entries),
        is_gap=lambda thing: isinstance(thing, Gap),
        points=curves.POINTS,
        window_points=entries.window_points,
    )


def _static(name: str) -> str:
    return (files("primax.report") / "static" / name).read_text(encoding="utf-8")


def _title(entries: Entries, reproductions: list[scorecards.Reproduction]) -> str:
    if reproductions:
        names = [Path(r.path).resolve().name for r in reproductions]
        return "Reproduction of PRIME" + f": {', '.join(names)}" * (len(names) > 1)
    names = [entry.name for entry in entries.runs]
    return " and ".join(names) if len(names) <= 2 else f"{len(names)} runs"


def _gaps(entries: Entries) -> dict[str, list[tuple[str, str]]]:
    """By part: which runs lack it, and why."""
    found: dict[str, list[tuple[str, str]]] = {}
    for entry in entries.runs:
        for gap in entry.gaps:
            found.setdefault(gap.part, []).append((entry.name, gap.why))
    return found


def unbroken(text: str) -> Markup:
    """Text in which `Ext-DQN` and `10 × 10` are not broken over lines; numbers and long names may be."""
    found = r"\b[A-Za-z]\w{0,11}-\w{1,11}\b|\d+ × \d+"
    return Markup(re.sub(found, r'<span class="unbroken">\g<0></span>', str(escape(text))))


def shown(value: float | None, decimals: int | None = None) -> str:
    """A number for people: so many decimals, or as many as its size asks for."""
    if value is None:
        return "—"
    if decimals is not None:
        return f"{value:,.{decimals}f}"
    size = abs(value)
    if size and not 1e-3 <= size < 1e5:
        return f"{value:.1e}"
    return f"{value:.{4 if 0 < size < 0.01 else 3 if size < 1 else 2}f}"
