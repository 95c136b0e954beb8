"""What a round costs against seeds, heads, grid size and replay size: measured, then drawn.

    python benchmarks/plots.py --out costs.json
    python benchmarks/plots.py --draw costs.json --picture docs/pictures/costs.svg

Seeds and heads are PRIME's; grid and replay cost every method alike, and are timed with `task`.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import jax
from timing import Case, in_turns, markdown, options, reported, run_of, start_jax

from primax.paper.figures import drawing

AXES = {
    "seeds": ("prime", (), "seeds"),
    "heads": ("prime", ("critics.heads", "reward.heads"), "heads of either ensemble"),
    "grid": ("task", ("world.size",), "rows and columns of the grid"),
    "replay": ("task", ("replay",), "rows the ring holds"),
}
"""By name: the method, the fields that are set, and what the axis says."""
ON_GPU = {
    "seeds": (1, 5, 15, 60),
    "heads": (1, 2, 5, 10),
    "grid": (6, 8, 10, 14, 20),
    "replay": (25_000, 100_000, 400_000),
}
ON_CPU = {
    "seeds": (1, 2, 4),
    "heads": (1, 2, 4),
    "grid": (6, 8, 10, 14),
    "replay": (25_000, 100_000, 400_000),
}
USUAL = {"gpu": (15, "paper", ON_GPU), "cpu": (1, "quick", ON_CPU)}
"""Seeds, preset, and the points of every axis."""
COLUMNS = {"axis": "axis", "at": "at", "method": "method", "seeds": "seeds"}
COLUMNS |= {"round_ms": "ms a round", "state_mb": "state, MB a seed", "compile_s": "compile, s"}
POWER = {"seeds": 1, "heads": 1, "grid": 2, "replay": 0}
"""Of the axis, that the networks' arithmetic grows with."""


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Every point of every axis; where axes cross, a program is timed once."""
    seeds, preset, points = USUAL[jax.default_backend()]
    cases = {}
    for name, (method, fields, _) in AXES.items():
        for at in points[name]:
            settings = {field: str(at) for field in fields}
            cases[name, at] = Case(method, seeds if fields else at, preset, settings)
    known = {(x.seeds, repr(x.config)): x for x in cases.values()}
    found = in_turns([run_of(case, args) for case in known.values()], args.jobs)
    times = dict(zip(known, found, strict=True))
    rows = []
    for (name, at), x in cases.items():
        took = times[x.seeds, repr(x.config)]
        about = {"axis": name, "at": at, "method": x.method, "seeds": x.seeds, "preset": preset}
        rows.append(about | took | {"state_mb": took["state_bytes_a_seed"] / 1e6})
    return {"rows": rows}


def draw(found: dict[str, Any], figure: Any) -> None:
    """A panel for each axis, both scales logarithmic; in grey, how the arithmetic grows."""
    panels = figure.subplots(1, len(AXES))
    for panel, (name, (method, _, label)) in zip(panels, AXES.items(), strict=True):
        rows = [row for row in found["rows"] if row["axis"] == name]
        x, y = [row["at"] for row in rows], [row["round_ms"] for row in rows]
        (colour, _), middle = drawing.STYLE[method], len(x) // 2
        steep = [y[middle] * (at / x[middle]) ** POWER[name] for at in x]
        panel.plot(x, steep, color=drawing.GREY, lw=0.8, ls=(0, (4, 3)))
        panel.plot(x, y, color=colour, lw=1.5, marker="o", ms=3.5)
        panel.set_xscale("log", base=2)
        panel.set_yscale("log")
        panel.set_xticks(x, [f"{at // 1000}k" if at >= 1000 else str(at) for at in x])
        panel.minorticks_off()
        ticks = sorted({float(f"{value:.2g}") for value in (min(y), max(y))})
        panel.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        panel.set_ylim(min(y) / 2, max(y) * 2)
        fixed = [] if name == "seeds" else [f"seeds: {rows[0]['seeds']}"]
        panel.set_title(", ".join([method, *fixed]), fontsize=9)
        panel.set_xlabel(label)
    panels[0].set_ylabel("ms a round")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options(parser)
    parser.add_argument("--draw", type=Path, help="a JSON file of this script: measure nothing")
    parser.add_argument("--picture", type=Path, help="the SVG file to draw")
    args = parser.parse_args()
    start_jax(args.fast)
    if args.draw:
        found = json.loads(args.draw.read_text(encoding="utf-8"))
    else:
        found = reported(lambda: measure(args), parser)
    print(markdown(found["rows"], COLUMNS))
    print(f"\n{found['device']}, jax {found['jax']}, commit {found['commit']}", end=", ")
    print(f"{found['jobs']} compiled at a time, {found['took_s']:.0f} s in all")
    if args.picture:
        drawing.make(args.picture, (9.0, 2.4), lambda figure: draw(found, figure))


if __name__ == "__main__":
    main()
