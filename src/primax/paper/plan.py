"""What a reproduction has to do, in lines for people."""

import json
from collections import Counter
from collections.abc import Iterator

from primax.output.sheet import aligned, clock, counted
from primax.paper.experiments import Cell
from primax.paper.reproduce import HALFWAY, Home, Task, in_all
from primax.runs.read import BROKEN

HEAD = ("cell", "seeds × steps", "state", "seconds")
RATES = {
    "cpu": "rates measured on two cores of an AMD EPYC: elsewhere a rough prediction",
    "gpu": "rates measured on an H200",
}
"""What the seconds of a platform are predicted from."""


def told(home: Home, tasks: list[Task], jobs: int, platform: str) -> Iterator[str]:
    """A line a cell: its size, where it stands, seconds left; then where runs go, and the total."""
    yield from aligned([HEAD, *(_row(home, task) for task in tasks)])
    yield ""
    for task in tasks:
        if task.state == BROKEN:
            yield f"{task.cell.name} cannot be used: {task.why}"
    counts = Counter(task.state for task in tasks)
    states = ", ".join(f"{num} {state}" for state, num in counts.items())
    yield f"{counted(len(tasks), 'run')}, each in {home.runs}/CELL: {states}"
    if any(task.is_open for task in tasks):
        seconds = in_all(tasks, jobs, platform)
        how = "one after another" if jobs == 1 else f"{jobs} side by side"
        rates = RATES.get(platform, RATES["cpu"])  # as `predict` does
        yield f"about {seconds:,.0f} seconds in all ({clock(seconds)}), {how}, from {rates}"


def as_sweep(home: Home, cells: list[Cell]) -> str:
    """The same runs as a plan for `primax sweep`: their folders have the names of the cells."""
    entries = []
    for cell in cells:
        said = {"name": cell.name, "method": cell.variant.method, "world": cell.world}
        said |= {"seeds": str(len(cell.seeds(home.scale)))}
        entries.append((said, cell.settings(home.scale)))
    comment = f"The paper's runs at scale {home.scale}: primax sweep {home.runs} makes them."
    return sweep_plan(comment, home.scale, entries)


def sweep_plan(
    comment: str, preset: str, entries: list[tuple[dict[str, str], dict[str, str]]]
) -> str:
    """Runs named one by one as a plan for `primax sweep`, in TOML: what each is, and its settings."""
    lines = [f"# {comment}", f"preset = {_text(preset)}"]
    for said, settings in entries:
        lines += ["", "[[cell]]", *(f"{key} = {_text(value)}" for key, value in said.items())]
        pairs = ", ".join(f"{_text(key)} = {_text(value)}" for key, value in settings.items())
        lines += [f"set = {{ {pairs} }}"] * bool(pairs)
    return "\n".join([*lines, ""])


def _text(value: str) -> str:
    """Text as TOML has it, which for plain names is as JSON has it."""
    return json.dumps(value, ensure_ascii=False)


def _row(home: Home, task: Task) -> tuple[str, str, str, str]:
    config = task.cell.config(home.scale) if task.cell.variant.is_available else None
    size = f"{len(task.cell.seeds(home.scale))} × {config.total_steps:,}" if config else ""
    state = f"{task.state} from {task.done:,}" if task.state == HALFWAY else task.state
    return task.cell.name, size, state, f"{task.seconds:,.0f}" if task.is_open else ""
