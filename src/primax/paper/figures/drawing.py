"""What every figure shares: colours that colour-blind people can tell apart, the same bytes twice."""

import textwrap
from functools import partial
from typing import Any

import numpy as np

from primax.paper.evidence import Runs
from primax.paper.experiments import VARIANTS
from primax.paper.references import average, reference
from primax.runs.measures import ROLLING, rolling
from primax.runs.read import Floats, Run

# Okabe and Ito's palette; lines differ in dash too, for print in grey.
BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PINK, SKY, GREY = "#CC79A7", "#56B4E9", "#777777"
STYLE: dict[str, tuple[str, Any]] = {
    "prime": (BLUE, "-"),
    "rnd": (ORANGE, (0, (6, 1.5))),
    "disagreement": (GREEN, (0, (4, 1.2, 1, 1.2))),
    "smirl": (RED, (0, (2.5, 1))),
    "task": ("#000000", (0, (1, 0.8))),
    "prime_k1": (PINK, "-"),
    "prime_no_gate": (RED, "-"),
    "prime_k1_statistics": (BLUE, (0, (1, 0.8))),
    "prime_no_penalty": (GREEN, "-"),
    "prime_relu": (SKY, "-"),
    "task_relu": (GREY, (0, (1, 0.8))),
    "prime_nearest16": (PINK, (0, (4, 1.2, 1, 1.2))),
    "prime_knn16": (RED, (0, (4, 1.2, 1, 1.2))),
    "rnd_gamma": (ORANGE, (0, (2, 1))),
    "rnd_snapshot": ("#8B6508", (0, (6, 1.5))),
    "count": ("#117733", "-"),
    "count_gamma": ("#117733", (0, (2, 1))),
    "count_heads5": ("#117733", (0, (6, 1.5))),
    "count_heads5_gamma": ("#117733", (0, (4, 1.2, 1, 1.2))),
    "s_adapt": ("#882255", (0, (3, 1, 1, 1, 1, 1))),
    "moss": ("#5D3A9B", (0, (2.5, 1))),
    "prime_window200": (SKY, (0, (2.5, 1))),
    "prime_window4000": (SKY, (0, (6, 1.5))),
    "random": (GREY, (0, (4, 1.2, 1, 1.2))),
}
STYLE |= {
    f"{name}_fit": (STYLE[name][0], (0, (9, 1.5)))
    for name in ("prime", "rnd", "disagreement", "smirl", "task", "prime_k1")
}
STYLE["prime_no_gate_fit"] = (RED, (0, (9, 1.5, 1, 1.5)))
STYLE["prime_fit_shared"] = (BLUE, (0, (9, 1.5, 1, 1.5)))
LINES = {
    "random": ("walker", (0, (1, 2)), -2),
    "sweep": ("sweep", (0, (5, 2)), 0),
    "centre_stay": ("centre", (0, (3, 1.5, 1, 1.5)), 2),
}
"""Of a policy that learns nothing: its short name, its dash, how far up its name stands."""
Names = tuple[str, ...]
Missing = dict[str, list[tuple[str, str]]]
"""By world, what is not drawn there and why."""
WIDE = 110
"""Letters in a line about what is missing."""
MOST_POINTS = 300
"""A curve has; more cannot be seen and make the file large."""


def curve(run: Run, table: str, column: str) -> tuple[Floats, Floats] | None:
    """Steps, and the rolling-20 mean of a column [seed, point], thinned; of few windows, fewer."""
    values, steps = run.grid(table, column), run.grid(table, "step")
    if values is None or steps is None:
        return None
    num = values.shape[1]
    length = min(ROLLING, num if table == "episodes" else max(1, num // 10))
    smooth = rolling(_filled(values), length)
    ends = steps[0][length - 1 :]
    thin = np.unique(np.linspace(0, len(ends) - 1, MOST_POINTS).round().astype(int))
    return ends[thin], smooth[:, thin]


def _filled(values: Floats) -> Floats:
    """Gaps (an episode without a target) take the seed's value before, or its first."""
    if not np.isnan(values).any():
        return values
    rows = []
    for row in values:
        known = np.flatnonzero(~np.isnan(row))
        if not len(known):
            rows.append(row)
            continue
        last = np.maximum.accumulate(np.where(np.isnan(row), -1, np.arange(len(row))))
        rows.append(row[np.where(last < 0, known[0], last)])
    return np.array(rows)


def plot_band(
    axes: Any, run: Run, variant: str, table: str, column: str, is_shaded: bool = True
) -> bool:
    """Mean over seeds with one std of shade, cut where no score can be; False without the column."""
    found = curve(run, table, column)
    if found is None:
        return False
    steps, values = found
    mean, (colour, dash) = values.mean(axis=0), STYLE[variant]
    axes.plot(steps / 1000, mean, color=colour, ls=dash, lw=1.5, label=VARIANTS[variant].label)
    if is_shaded and len(values) > 1:
        spread = values.std(axis=0, ddof=1)
        ends = np.clip([mean - spread, mean + spread], values.min(), values.max())
        axes.fill_between(steps / 1000, *ends, color=colour, alpha=0.15, lw=0)
    return True


def plot_references(axes: Any, runs: Runs, world: str, measure: str, policies: Names) -> None:
    """A level line for each policy that learns nothing, named beside the panel, where no curve is."""
    for policy in policies:
        name, dash, up = LINES[policy]
        if measure == "average":
            value = average(runs, world, policy)
        else:
            value = getattr(reference(runs, world, policy), measure)
        axes.axhline(value, color=GREY, ls=dash, lw=1, zorder=1)
        axes.annotate(
            f"{name} {value:.2f}",
            (1, value),
            xycoords=("axes fraction", "data"),
            xytext=(2, up),
            textcoords="offset points",
            va="center",
            fontsize=7,
            color="#444444",
            annotation_clip=False,
        )


def legend_below(place: Any, panels: Any, missing: Missing, **where: Any) -> None:
    """One legend under a figure or a panel: each name once, with the line it has first; above the
    lines, small, what is not drawn. Inside a panel such words would lie on its curves."""
    known: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            known.setdefault(label, handle)
    made = place.legend(
        list(known.values()), list(known), title=not_drawn(missing), fontsize=8, **where
    )
    made.get_title().set(fontsize=7, color="#444444", ha="center")


def not_drawn(missing: Missing) -> str:
    """Names by reason, and by world where worlds differ; lines of a length that fits."""
    worlds = list(missing)
    if len({tuple(missing[world]) for world in worlds}) == 1:
        missing = {"": missing[worlds[0]]}
    wrap, lines = partial(textwrap.wrap, break_on_hyphens=False), []
    for world, names in missing.items():
        by_reason: dict[str, list[str]] = {}
        for name, reason in names:
            by_reason.setdefault(reason, []).append(name.replace(" ", "\N{NO-BREAK SPACE}"))
        head = f"{world.capitalize()}, not drawn" if world else "not drawn"
        lines += [f"{head} ({reason}): {'; '.join(of)}" for reason, of in by_reason.items()]
    return "\n".join(part for line in lines for part in wrap(line, WIDE))
