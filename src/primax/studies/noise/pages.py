"""Tables and the figure of the study, from whatever runs are there."""

from collections.abc import Callable, Iterable
from itertools import count as numbers
from pathlib import Path
from typing import Any

import numpy as np

from primax import stats
from primax.output.figure import make
from primax.output.sheet import ABSENT, Sheet, bracket
from primax.paper.evidence import MissingError
from primax.paper.figures.drawing import (
    BLUE,
    GREEN,
    GREY,
    MOST_POINTS,
    ORANGE,
    PINK,
    RED,
    SKY,
    legend_below,
)
from primax.paper.pages.embed import Blocks
from primax.paper.tables.results import mean_std
from primax.runs import disk
from primax.runs.measures import rolling
from primax.runs.read import Floats, Run
from primax.studies.noise import claims, reward_pages
from primax.studies.noise.cells import (
    ABLATIONS,
    BARE,
    BESIDE,
    CELLS,
    DOSES,
    NOISY,
    OTHERS,
    VARIANTS,
    WINGS,
    Place,
    Variant,
)
from primax.studies.noise.found import BY_NAME, Found
from primax.studies.noise.predict import MOST, predicted

LEFT = (*BESIDE, *OTHERS)
"""Of the figure's two panels."""
RIGHT = (BESIDE[0], BESIDE[1], *DOSES, *ABLATIONS)
COLOURS = (BLUE, "#117733", RED, ORANGE, GREEN, PINK, SKY, "#882255", "#8B6508", "#5D3A9B", GREY)
DASHES: tuple[Any, ...] = ("-", (0, (6, 1.5)), (0, (2, 1)))
SMOOTH = 20
"""Episodes in a point of a curve."""


def _shown(found: Found, write: Callable[[Floats], str], *what: str) -> str:
    """Of a variant in a place by a measure; a dash where there is none."""
    try:
        return write(found.sample(*what).values)
    except MissingError:
        return ABSENT


def _with_interval(values: Floats) -> str:
    return f"{values.mean():.2f} {bracket(*stats.interval(values, np.mean))}"


def wings(found: Found) -> Sheet:
    """Who is where in TwoWings."""
    columns = {
        "first fifth": ("score_start", mean_std),
        "last fifth, 95% interval": ("score_tail", _with_interval),
        "whole run": ("average", mean_std),
        "coverage, last fifth": ("coverage_tail", mean_std),
    }
    rows = tuple(
        (
            each.label,
            *(_shown(found, w, each.name, WINGS.name, name) for name, w in columns.values()),
        )
        for each in VARIANTS.values()
    )
    title = "Share of steps in the silent wing of TwoWings, and of cells visited in an episode"
    return Sheet("wings", title, ("method", *columns), rows, _missing(found, [WINGS]))


def predictions(found: Found) -> Sheet:
    """What the formulas say of PRIME in TwoWings, beside what it does."""
    rows = []
    for each in reward_pages.FAMILY:
        says = predicted(each, found.scale)
        turns = "never" if says.turns == MOST else f"{says.turns:,}"
        share = "—" if says.share is None else f"{says.share:.2f}"
        did = [
            _shown(found, mean_std, each.name, WINGS.name, name)
            for name in ("average", "score_tail")
        ]
        opens = f"{says.opens:,} (step {says.opens_at:,})"
        rows.append((each.label, f"{says.noise:.4f}", opens, turns, share, *did))
    columns = (
        "variant",
        "V_ale of ψ",
        "gate opens at N",
        "noise costs more than it pays from N",
        "silent share of the whole run, predicted",
        "found",
        "last fifth",
    )
    title = "What the formulas predict in TwoWings, where visits are spread evenly and nothing is forgotten"
    return Sheet("predicted", title, columns, tuple(rows))


def elsewhere(found: Found) -> Sheet:
    """Other worlds with noise, and without it."""
    rows = [
        (place.label, place.what, *(_score(found, each, place) for each in BESIDE))
        for place in (*NOISY, *BARE)
    ]
    columns = ("world", "measure", *(each.label for each in BESIDE))
    title = "Other worlds; in brackets the share of steps of the last fifth with the noise on"
    return Sheet("elsewhere", title, columns, tuple(rows), _missing(found, (*NOISY, *BARE)))


def _score(found: Found, variant: Variant, place: Place) -> str:
    """By the place's measure, and how much noise there was, if any; a dash where it is not run."""
    if (variant.name, place.name) not in BY_NAME:
        return ABSENT
    score = _shown(found, mean_std, variant.name, place.name, place.measure)
    on = _shown(found, lambda x: f"{x.mean():.0%}", variant.name, place.name, "noise_tail")
    return score if ABSENT in (score, on) else f"{score} ({on})"


def _missing(found: Found, places: Iterable[Place]) -> tuple[str, ...]:
    """A note where not all cells are there."""
    names = {place.name for place in places}
    cells = [cell for cell in CELLS if cell.place.name in names]
    whole = sum(found.is_there(cell) for cell in cells)
    return (f"{whole} of {len(cells)} cells are there.",) if whole < len(cells) else ()


def _curve(found: Found, variant: Variant) -> tuple[Floats, Floats] | None:
    """Steps, and the mean over seeds of the silent share, smoothed and thinned."""
    runs = [run for run in found.runs(BY_NAME[variant.name, WINGS.name]) if isinstance(run, Run)]
    grids = [(run.grid("episodes", "score"), run.grid("episodes", "step")) for run in runs]
    scores = [score for score, _ in grids if score is not None]
    if not scores or len({score.shape[1] for score in scores}) > 1:
        return None
    smooth = rolling(np.concatenate(scores), SMOOTH).mean(axis=0)
    steps = grids[0][1]
    assert steps is not None
    ends = steps[0][-len(smooth) :]
    thin = np.unique(np.linspace(0, len(ends) - 1, MOST_POINTS).round().astype(int))
    return ends[thin], smooth[thin]


def draw(found: Found, path: Path) -> None:
    """Silent share over training: PRIME among others, and its variants."""

    def fill_in(figure: Any) -> None:
        panels = list(figure.subplots(1, 2, sharey=True))
        heads = ("PRIME and other rewards", "what of PRIME it takes")
        for axes, variants, head in zip(panels, (LEFT, RIGHT), heads, strict=True):
            axes.set_title(head, fontsize=9)
            axes.axhline(0.5, color=GREY, lw=0.8, ls=(0, (1, 2)))
            for i, each in zip(numbers(), variants, strict=False):
                found_curve = _curve(found, each)
                if found_curve is None:
                    continue
                steps, share = found_curve
                width = 2.2 if each.name == "prime" else 1.2
                style = {"color": COLOURS[i % len(COLOURS)], "ls": DASHES[i // len(COLOURS)]}
                axes.plot(steps / 1000, share, lw=width, label=each.label, **style)
            axes.set_xlabel("thousand steps")
            axes.set_ylim(-0.02, 1.02)
            legend_below(
                axes, [axes], {"": []}, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2
            )
        panels[0].set_ylabel("share of steps in the silent wing")

    make(path, (9.0, 6.0), fill_in)


def write_all(found: Found, out: Path) -> Blocks:
    """Every table and the figure, into a folder; and as blocks for pages."""
    sheets = [
        wings(found),
        predictions(found),
        reward_pages.turns(found),
        reward_pages.over_time(found),
        elsewhere(found),
        claims.sheet(found),
    ]
    for name in ("tables", "figures"):
        (out / name).mkdir(parents=True, exist_ok=True)
    for sheet in sheets:
        disk.write_whole(out / "tables" / f"{sheet.name}.md", sheet.markdown().encode())
        disk.write_whole(out / "tables" / f"{sheet.name}.csv", sheet.csv().encode())
    draw(found, out / "figures" / "noise.svg")
    blocks = {sheet.name: sheet.body() for sheet in sheets}
    blocks["figure"] = "![Share of steps in the silent wing over training](figures/noise.svg)"
    pictures = [blocks["figure"]]
    if reward_pages.draw(found, out / "figures" / "reward.svg"):
        pictures.append(reward_pages.FIGURE)
        blocks["over_time"] = f"{reward_pages.FIGURE}\n\n{blocks['over_time']}"
    tables = [sheet.markdown() for sheet in sheets]
    index = "\n".join(["# Noise that never ends", "", "\n\n".join(pictures), "", *tables])
    disk.write_whole(out / "index.md", index.encode())
    return blocks
