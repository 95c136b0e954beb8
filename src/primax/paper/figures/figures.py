"""The paper's figures from run folders, and one beside them."""

from pathlib import Path
from typing import Any

import numpy as np

from primax.output.figure import Draw, make
from primax.paper.evidence import Nearest, Runs
from primax.paper.experiments import VARIANTS
from primax.paper.figures.drawing import (
    BLUE,
    GREY,
    ORANGE,
    RED,
    Missing,
    curve,
    legend_below,
    plot_band,
    plot_references,
)
from primax.paper.published import published
from primax.paper.references import reference
from primax.runs.read import Run, Unusable

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
FIT_TITLE = "Under the reading nearest to the paper: a fit"
PARTS = {"v_count": "count", "v_lotv": "cross-head variance", "v_ale": "aleatoric"}


def _make(runs: Runs, path: Path, size: tuple[float, float], draw: Draw) -> None:
    """A figure of the nearest reading says so itself: it may be shown without its caption."""
    make(path, size, draw, FIT_TITLE if isinstance(runs, Nearest) else "")


def figure1(runs: Runs, path: Path) -> None:
    """Learning curves; Maze whole, and before it cropped as in the paper where it is longer."""
    crop = published()["evaluation"]["maze_curves_cropped_at_steps"]
    is_cropped = _longest(runs, "maze") > crop

    def draw(figure: Any) -> None:
        worlds = ("butterflies", "maze", "maze")[: 2 + is_cropped]
        panels = figure.subplots(1, len(worlds))
        missing = {
            world: _curves(axes, runs, world, METHODS)
            for axes, world in zip(panels, worlds, strict=True)
        }
        if is_cropped:
            panels[1].set_xlim(0, crop / 1000)
            panels[1].set_title("Maze, cropped as in the paper")
            panels[2].set(title="Maze, whole", ylabel="")
        _under_all(figure, panels, missing)

    _make(runs, path, (12.0 if is_cropped else 9.0, 4.3), draw)


def _longest(runs: Runs, world: str) -> int:
    """Steps of the longest run there is."""
    found = (runs.run(variant, world) for variant in METHODS)
    return max((run.steps or 0 for run in found if isinstance(run, Run)), default=0)


def figure_a(runs: Runs, path: Path) -> None:
    """The same for readings, controls and other methods (not in the paper)."""

    def draw(figure: Any) -> None:
        panels = figure.subplots(1, 2)
        missing = {
            world: _curves(axes, runs, world, BESIDE, is_shaded=False)
            for axes, world in zip(panels, SCORES, strict=True)
        }
        _under_all(figure, panels, missing)

    _make(runs, path, (11.0, 5.2), draw)


def _curves(
    axes: Any, runs: Runs, world: str, variants: tuple[str, ...], is_shaded: bool = True
) -> list[tuple[str, str]]:
    """Draws a world's panel; returns what could not be drawn, and why."""
    missing = []
    for variant in variants:
        run = runs.run(variant, world)
        if isinstance(run, Unusable) or not plot_band(
            axes, run, variant, "episodes", "score", is_shaded
        ):
            missing.append((VARIANTS[variant].label, runs.status(variant, world)))
    policies = ("random", "sweep", "centre_stay") if world == "butterflies" else ("random", "sweep")
    plot_references(axes, runs, world, "average", policies)
    axes.set(title=world.capitalize(), xlabel="thousand steps", ylabel=SCORES[world])
    axes.set_ylim(*((-0.06, 1.1) if world == "maze" else (0, None)))
    return missing


def _under_all(figure: Any, panels: Any, missing: Missing) -> None:
    """One legend for all panels."""
    legend_below(figure, panels, missing, loc="outside lower center", ncols=5)


def _under(axes: Any, missing: Missing) -> None:
    """A panel's own."""
    legend_below(axes, [axes], missing, loc="upper center", bbox_to_anchor=(0.5, -0.16))


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

    _make(runs, path, (12.0, 4.0), draw)


def _behaviour(axes: Any, runs: Runs, column: str, policies: tuple[str, ...]) -> None:
    run, missing = runs.run("prime", "butterflies"), []
    if isinstance(run, Unusable) or not plot_band(axes, run, "prime", "episodes", column):
        missing.append(("PRIME", runs.status("prime", "butterflies")))
    plot_references(axes, runs, "butterflies", column, policies)
    axes.set(xlabel="thousand steps")
    axes.margins(y=0.2)
    _under(axes, {"butterflies": missing})


def _ceiling(axes: Any, runs: Runs) -> None:
    missing = []
    for world, colour, dash in (("butterflies", BLUE, "-"), ("maze", ORANGE, (0, (6, 1.5)))):
        run = runs.run("prime", world)
        found = None if isinstance(run, Unusable) else curve(run, "windows", "q_taken_abs_max")
        if found is None:
            missing.append((f"PRIME, {world.capitalize()}", runs.status("prime", world)))
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
    _under(axes, {"": missing})


def figure3(runs: Runs, path: Path) -> None:
    """Magnitudes of the reward's parts, with the paper's tails as marks."""
    floor = published()["components"]["display_floor"]

    def draw(figure: Any) -> None:
        panels = figure.subplots(1, 2, sharey=True)
        missing = {
            world: _parts(axes, runs, world, floor)
            for axes, world in zip(panels, SCORES, strict=True)
        }
        panels[0].set_ylabel("mean over minibatches (log scale)")
        panels[0].plot(
            [], [], marker="D", ms=5, color="white", mec="black", mew=0.6, ls="",
            label="the paper's tail-20%, in the line's colour",
        )  # fmt: skip
        _under_all(figure, panels, missing)

    _make(runs, path, (9.5, 4.0), draw)


def _parts(axes: Any, runs: Runs, world: str, floor: float) -> list[tuple[str, str]]:
    run, missing, last = runs.run("prime", world), [], 250.0
    looks = ((BLUE, "-"), (ORANGE, (0, (6, 1.5))), (RED, (0, (2.5, 1))))
    for (column, label), (colour, dash) in zip(PARTS.items(), looks, strict=True):
        found = None if isinstance(run, Unusable) else curve(run, "windows", column)
        if found is None:
            missing.append((label, runs.status("prime", world)))
        else:
            steps, last = found[0] / 1000, found[0][-1] / 1000
            mean = np.maximum(found[1].mean(axis=0), floor)
            axes.plot(steps, mean, color=colour, ls=dash, lw=1.5, label=label)
        axes.plot(
            [last], [_papers_tail(world, column)], marker="D", ms=5, color=colour, mec="black",
            mew=0.6, ls="", clip_on=False, zorder=3,
        )  # fmt: skip
    axes.set_yscale("log")
    axes.set_xlim(0, 1.03 * last)
    axes.set_ylim(floor / 2, 1)
    axes.axhline(floor, color=GREY, lw=0.8, ls=":", label="display floor")
    axes.set(title=world.capitalize(), xlabel="thousand steps")
    return missing


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
