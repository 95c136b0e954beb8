"""Which reward should I use? Bonuses beside the task in other people's worlds: docs/suite.md.

    python benchmarks/suite.py plan           # writes results/suite/plan.toml
    primax sweep results/suite/plan.toml --out RUNS --jobs 12
    primax pack RUNS --keep scores --out results/suite/runs
    python benchmarks/suite.py                # the tables and the figure, from what is kept

The weights are those that trials in Maze's corridors chose (docs/beyond.md); ICM was not among them
and has RND's. Nothing was chosen in these worlds.
"""

import argparse
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "results" / "suite"
WEIGHTS = {"prime": 0.01, "count": 0.1, "rnd": 0.1, "icm": 0.1, "disagreement": 10}
"""What a bonus counts beside the task in the beginning; it goes to zero in a linear way."""
SEEDS = 10


@dataclass(frozen=True)
class Place:
    """A world of the benchmark."""

    name: str
    """Of the cells in it."""
    world: str
    steps: int
    solved: float | None = None
    """The mean score of the last 20 episodes from which on a seed counts as having solved it."""
    options: dict[str, Any] = field(default_factory=dict)


def _deep_sea(size: int, steps: int, **options: Any) -> Place:
    name = f"deepsea{size}" + "-stochastic" * bool(options)
    # The way to the goal pays 0.99; a step to the right in a random sea may fail.
    solved = 0.5 if options else 0.9
    return Place(name, "gymnax:DeepSea-bsuite", steps, solved, {"size": size, **options})


def _rooms(name: str, id_: str, steps: int) -> Place:
    return Place(name, f"xminigrid:MiniGrid-{id_}", steps, 0.5)


PLACES = (
    _deep_sea(10, 50_000),
    _deep_sea(20, 100_000),
    _deep_sea(30, 150_000),
    _deep_sea(40, 200_000),
    _deep_sea(20, 100_000, deterministic=False),
    _rooms("doorkey5", "DoorKey-5x5", 50_000),
    _rooms("doorkey6", "DoorKey-6x6", 100_000),
    _rooms("doorkey8", "DoorKey-8x8", 200_000),
    _rooms("doorkey16", "DoorKey-16x16", 200_000),
    _rooms("unlockpickup", "UnlockPickUp", 200_000),
    Place("breakout", "pgx:minatar-breakout", 100_000),
    Place("spaceinvaders", "pgx:minatar-space_invaders", 100_000),
)


def plan() -> str:
    """The runs as `primax sweep` takes them."""
    methods = ["task", *(f"task+{bonus}" for bonus in WEIGHTS)]
    lines = [
        "# Made by benchmarks/suite.py: every bonus beside the task in every world of the benchmark.",
        f"methods = {_list(methods)}",
        f"worlds = {_list(dict.fromkeys(place.world for place in PLACES))}",
        f'seeds = "{SEEDS}"',
        "plain = false",
    ]
    for place in PLACES:
        for method in methods:
            settings = {"steps": place.steps}
            settings |= {f"world.{name}": value for name, value in place.options.items()}
            settings |= {"net.planes": "flat"} if "DeepSea" in place.world else {}
            if method != "task":
                settings |= {"mix.weight": WEIGHTS[method.removeprefix("task+")]}
            lines += ["", "[[vary]]", f'name = "{place.name}"', f'methods = ["{method}"]']
            lines += [f'worlds = ["{place.world}"]', f"set = {{ {_pairs(settings)} }}"]
    return "\n".join(lines) + "\n"


def _list(names: Any) -> str:
    return "[" + ", ".join(f'"{name}"' for name in names) + "]"


def _pairs(settings: dict[str, Any]) -> str:
    texts = {
        name: f'"{x}"' if isinstance(x, str) else str(x).lower() for name, x in settings.items()
    }
    return ", ".join(f"{name} = {text}" for name, text in texts.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="?", choices=("plan", "tables"), default="tables")
    args = parser.parse_args()
    if args.what == "plan":
        KEPT.mkdir(parents=True, exist_ok=True)
        (KEPT / "plan.toml").write_text(plan(), encoding="utf-8")


if __name__ == "__main__":
    main()
