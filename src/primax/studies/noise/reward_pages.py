"""Two tables and a figure: what PRIME's reward was made of over training, beside the formulas."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from primax.output.figure import make
from primax.output.sheet import ABSENT, Sheet
from primax.paper.figures.drawing import BLUE, GREY, legend_below
from primax.studies.noise.cells import BESIDE, DOSES, Variant
from primax.studies.noise.found import Found
from primax.studies.noise.inside import (
    Inside,
    computed,
    gate_opens,
    inside,
    noise_costs,
    why_not,
)
from primax.studies.noise.predict import MOST, predicted

PRIME = BESIDE[0]
FAMILY = (PRIME, BESIDE[1], *DOSES)
"""What the formulas speak of."""
PARTS = {"v_epi": "V_epi", "v_ale": "V_ale", "gate": "αṼ", "penalty": "penalty", "r_int": "R_int"}
FIGURE = "![What PRIME's reward is made of in either wing over training](figures/reward.svg)"
EVENTS = {"the gate opens": gate_opens, "noise costs more than it pays": noise_costs}
HOW = ("predicted", "from visits", "found")


def over_time(found: Found) -> Sheet:
    """Of PRIME in the noisy wing: found, and computed from the visits that were found."""
    seen = inside(found, PRIME, is_noisy=True)
    columns = ("step", "N", "cells held", *PARTS.values())
    title = "What PRIME's reward is made of in the noisy wing of TwoWings"
    if seen is None:
        return Sheet("over_time", title, columns, (), (why_not(found, PRIME),))
    notes = (
        "Step: when the reward was frozen. N: visits of a state and action of the noisy wing until "
        "then, on average. Cells held: share of the wing's cells that the newest rows hold; the parts of "
        "the reward are means over these. Before the stroke is what was found, after it what the formulas "
        "give for N, both in thousandths. R_int is the reward before it is scaled and clipped.",
    )
    says = computed(found, PRIME, seen)
    rows = tuple(_row(seen, says, i) for i in range(len(seen.steps)))
    return Sheet("over_time", title, columns, rows, notes)


def _row(seen: Inside, says: Inside, i: int) -> tuple[str, ...]:
    pairs = ((getattr(seen, name)[i], getattr(says, name)[i]) for name in PARTS)
    parts = (f"{_thousandths(was)} / {_thousandths(would)}" for was, would in pairs)
    return f"{seen.steps[i]:,.0f}", f"{seen.visits[i]:.0f}", f"{seen.held[i]:.2f}", *parts


def _thousandths(value: float) -> str:
    return ABSENT if math.isnan(value) else f"{1e3 * value:z.1f}"


def turns(found: Found) -> Sheet:
    """When the gate opens, and when noise costs more than it pays: predicted, computed, found."""
    columns = ("variant", *(f"{what}: {how}" for what in EVENTS for how in HOW))
    title = "From which step the gate is open, and noise costs more than it pays, in the noisy wing"
    rows = tuple((each.label, *_steps(found, each)) for each in FAMILY)
    notes = (
        "Predicted: all states and actions are met equally often; the step may be later than the run's "
        "last. From visits: what the formulas give for the visits that were counted. Found: by the means "
        "of the reward's parts over the noisy wing, so for some states and actions it is earlier. The "
        "last two are read off straight lines between the windows that are kept; “by” means that it was "
        "already so at the first of them, “never” that it was so at none.",
        "A dash: not run, or no maps were kept.",
    )
    return Sheet("turns", title, columns, rows, notes)


def _steps(found: Found, variant: Variant) -> tuple[str, ...]:
    says, seen = predicted(variant, found.scale), inside(found, variant, is_noisy=True)
    steps = (says.opens_at, None if says.turns == MOST else says.turns_at)
    would = None if seen is None else computed(found, variant, seen)
    told = lambda event: (_read(of, event) for of in (would, seen))  # noqa: E731
    pairs = zip(steps, EVENTS.values(), strict=True)
    return tuple(text for step, event in pairs for text in (_said(step), *told(event)))


def _read(of: Inside | None, event: Callable[[Inside], float | None]) -> str:
    if of is None:
        return ABSENT
    step = event(of)
    return f"by {_said(step)}" if step == of.steps[0] else _said(step)


def _said(step: int | float | None) -> str:
    return "never" if step is None else f"{step:,.0f}"


def draw(found: Found, path: Path) -> bool:
    """Both wings over training; whether there was anything to draw."""
    noisy, silent = (inside(found, PRIME, is_noisy) for is_noisy in (True, False))
    if noisy is None or silent is None:
        return False
    says = computed(found, PRIME, noisy)
    noise, quiet = {"color": BLUE, "lw": 1.8}, {"color": GREY, "lw": 1.4}
    lines = (
        (noisy, "noisy wing, found", noise),
        (says, "noisy wing, by the formulas from visits", noise | {"ls": (0, (4, 2)), "lw": 1.2}),
        (silent, "silent wing, found", quiet),
    )

    def fill_in(figure: Any) -> None:
        panels = list(figure.subplots(1, 4, sharex=True))
        shown = {"v_epi": "V_epi", "v_ale": "V_ale less αṼ", "penalty": "penalty", "r_int": "R_int"}
        for axes, (name, title) in zip(panels, shown.items(), strict=True):
            axes.set_title(title, fontsize=9)
            axes.axhline(0.0, color=GREY, lw=0.8, ls=(0, (1, 2)))
            for of, label, style in lines:
                values = of.v_ale - of.gate if name == "v_ale" else getattr(of, name)
                axes.plot(of.steps / 1000, 1e3 * values, label=label, **style)
            axes.set_xlabel("thousand steps")
        panels[0].set_ylabel("thousandths")
        legend_below(figure, panels[:1], {"": []}, loc="outside lower center", ncols=3)

    make(path, (9.0, 3.0), fill_in)
    return True
