"""The paper's figures from run folders, and one beside them."""

from pathlib import Path
from typing import Any

import numpy as np

from primax.paper.drawing import (
    BLUE,
    GREY,
    ORANGE,
    RED,
    curve,
    make,
    plot_band,
    plot_references,
    say_missing,
)
from primax.paper.evidence import Runs
from primax.paper.experiments import VARIANTS
from primax.paper.published import published
from primax.paper.references import reference

METHODS = ("prime", "rnd", "disagreement", "smirl", "task")
BESIDE = (
    "prime",
    "prime_relu",
    "prime_nearest16",
    "prime_knn16",
    "rnd_gamma",
    "rnd_snapshot",
    "s_adapt",
    "moss",
    "task_relu",
)
SCORES = {"butterflies": "catches an episode", "maze": "episodes that reach the goal"}
PARTS = {"v_count": "count", "v_lotv": "cross-head variance", "v_ale": "aleatoric"}


def figure1(runs: Runs, path: Path) -> None:
    """Learning curves; Maze cropped as in the paper, and whole."""
    crop = published()["evaluation"]["maze_curves_cropped_at_steps"] / 1000

    def draw(figure: Any) -> None:
        panels = figure.subplots(1, 3)
        for axes, world in zip(panels, ("butterflies", "maze", "maze"), strict=True):
            _curves(axes, runs, world, METHODS)
        panels[1].set_xlim(0, min(crop, panels[1].get_xlim()[1]))
        panels[1].set_title("Maze, cropped as in the paper")
        panels[2].set(title="Maze, whole", ylabel="")
        _legend(figure, panels)

    make(path, (12.0, 4.3), draw)


def figure_a(runs: Runs, path: Path) -> None:
    """The same for readings, controls and other methods (not in the paper)."""

    def draw(figure: Any) -> None:
        panels = figure.subplots(1, 2)
        for axes, world in zip(panels, SCORES, strict=True):
            _curves(axes, runs, world, BESIDE, is_shaded=False)
        _legend(figure, panels)

    make(path, (11.0, 5.2), draw)


def _curves(
    axes: Any, runs: Runs, world: str, variants: tuple[str, ...], is_shaded: bool = True
) -> None:
    missing = []
    for variant in variants:
        run = runs.run(variant, world)
        if isinstance(run, str) or not plot_band(
            axes, run, variant, "episodes", "score", is_shaded
        ):
            missing.append(f"{VARIANTS[variant].label}: {runs.status(variant, world)}")
    policies = ("random", "sweep", "centre_stay") if world == "butterflies" else ("random", "sweep")
    plot_references(axes, runs, world, "average", policies)
    axes.set(title=world.capitalize(), xlabel="thousand steps", ylabel=SCORES[world])
    axes.set_ylim(*((-0.06, 1.1) if world == "maze" else (0, None)))
    say_missing(axes, missing)


def _legend(figure: Any, panels: Any) -> None:
    """One below all panels; a name stands once, with the line it has in the first panel that has it."""
    known: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            known.setdefault(label, handle)
    if known:
        figure.legend(
            list(known.values()), list(known), loc="outside lower center",
            ncols=min(5, len(known)), fontsize=8,
        )  # fmt: skip


def figure2(runs: Runs, path: Path) -> None:
    """Ceiling check; pursuit distance and coverage on Butterflies."""

    def draw(figure: Any) -> None:
        panels = figure.subplots(1, 3)
        _ceiling(panels[0], runs)
        _behaviour(panels[1], runs, "distance", ("random", "sweep"))
        _behaviour(panels[2], runs, "coverage", ("random",))
        panels[1].set(title="(b) Butterflies: pursuit", ylabel="cells to the nearest (L1)")
        panels[2].set(title="(c) Butterflies: coverage", ylabel="share of cells visited")
        sweep = reference(runs, "butterflies", "sweep").coverage
        panels[2].text(
            0.02, 0.03, f"blind sweep {sweep:.2f}: off the scale", fontsize=7, color="#444444",
            transform=panels[2].transAxes,
        )  # fmt: skip

    make(path, (12.0, 4.0), draw)


def _behaviour(axes: Any, runs: Runs, column: str, policies: tuple[str, ...]) -> None:
    run = runs.run("prime", "butterflies")
    if isinstance(run, str) or not plot_band(axes, run, "prime", "episodes", column):
        say_missing(axes, [f"PRIME: {runs.status('prime', 'butterflies')}"], 0.4)
    plot_references(axes, runs, "butterflies", column, policies)
    axes.set(xlabel="thousand steps")
    axes.margins(y=0.2)
    _below(axes)


def _below(axes: Any) -> None:
    """A panel's own legend, under it."""
    if axes.get_legend_handles_labels()[1]:
        axes.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=1)


def _ceiling(axes: Any, runs: Runs) -> None:
    missing = []
    for world, colour, dash in (("butterflies", BLUE, "-"), ("maze", ORANGE, (0, (6, 1.5)))):
        run = runs.run("prime", world)
        found = None if isinstance(run, str) else curve(run, "windows", "q_taken_abs_max")
        if found is None:
            missing.append(f"{world.capitalize()}: {runs.status('prime', world)}")
            continue
        steps, values = found
        label = f"largest |q_taken|, {world.capitalize()}"
        axes.plot(steps / 1000, values.mean(axis=0), color=colour, ls=dash, lw=1.5, label=label)
        ends = (values.min(axis=0), values.max(axis=0))
        axes.fill_between(steps / 1000, *ends, color=colour, alpha=0.15, lw=0)
    ceiling = runs.ceiling()
    axes.axhline(ceiling, color=RED, ls=":", lw=1.4, label=f"ceiling R_r + γ·Q_max = {ceiling:g}")
    axes.set(title="(a) Values and the targets' ceiling", xlabel="thousand steps", ylabel="|q|")
    axes.set_ylim(0, ceiling * 1.25)
    _below(axes)
    say_missing(axes, missing)


def figure3(runs: Runs, path: Path) -> None:
    """Magnitudes of the reward's parts, with the paper's tails as marks."""
    floor = published()["components"]["display_floor"]

    def draw(figure: Any) -> None:
        panels = figure.subplots(1, 2, sharey=True)
        for axes, world in zip(panels, SCORES, strict=True):
            _parts(axes, runs, world, floor)
        panels[0].set_ylabel("mean over minibatches (log scale)")
        _legend(figure, panels)

    make(path, (9.0, 4.0), draw)


def _parts(axes: Any, runs: Runs, world: str, floor: float) -> None:
    run, missing, last = runs.run("prime", world), [], 250.0
    looks = ((BLUE, "-"), (ORANGE, (0, (6, 1.5))), (RED, (0, (2.5, 1))))
    for (column, label), (colour, dash) in zip(PARTS.items(), looks, strict=True):
        found = None if isinstance(run, str) else curve(run, "windows", column)
        if found is None:
            missing.append(f"{label}: {runs.status('prime', world)}")
        else:
            steps, last = found[0] / 1000, found[0][-1] / 1000
            mean = np.maximum(found[1].mean(axis=0), floor)
            axes.plot(steps, mean, color=colour, ls=dash, lw=1.5, label=label)
        axes.plot(
            [last], [_papers_tail(world, column)], marker="D", ms=5, color=colour, mec="black",
            mew=0.6, ls="", label="the paper's tail-20%, in the same colour",
        )  # fmt: skip
    axes.set_yscale("log")
    axes.set_xlim(0, 1.03 * last)
    axes.set_ylim(floor / 2, 1)
    axes.axhline(floor, color=GREY, lw=0.8, ls=":", label="display floor")
    axes.set(title=world.capitalize(), xlabel="thousand steps")
    say_missing(axes, missing)


def _papers_tail(world: str, column: str) -> float:
    parts = published()["components"]
    if column == "v_ale":
        return parts["aleatoric"][world]
    return parts["count" if column == "v_count" else "cross_head_variance"][world]["tail20"]


FIGURES = {
    "figure1": figure1,
    "figure2": figure2,
    "figure3": figure3,
    "figureA": figure_a,
}
