"""What the timing scripts share: runs compiled side by side, then timed one after another.

    python benchmarks/timing.py prime:15:paper critics.heads=3

Every run has a process of its own, which compiles as `primax train` does (flags included, cache
not), says that it is ready, waits for a line of input, times windows and prints JSON.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from primax.agent import training
from primax.agent.learner import make_learner
from primax.cli.common import SAME_BITS
from primax.config.fields import parse_pairs
from primax.config.schema import Config
from primax.config.seeds import parse_seeds
from primax.errors import InputError, check_range
from primax.methods import build
from primax.presets import configure
from primax.runs.provenance import provenance


@dataclass(frozen=True)
class Case:
    """A run in Butterflies to be timed."""

    method: str
    seeds: int
    preset: str
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def config(self) -> Config:
        return configure(self.method, "butterflies", self.preset, self.settings)

    @property
    def words(self) -> list[str]:
        """As on a command line."""
        pairs = [f"{name}={value}" for name, value in self.settings.items()]
        return [f"{self.method}:{self.seeds}:{self.preset}", *pairs]


def parse_case(words: Sequence[str]) -> Case:
    """METHOD:SEEDS:PRESET, then settings."""
    match words[0].split(":"):
        case [method, seeds, preset]:
            return Case(method, len(parse_seeds(seeds)), preset, parse_pairs(words[1:]))
    raise InputError(f"a case is METHOD:SEEDS:PRESET, as prime:15:paper, got {words[0]!r}")


def start_jax(fast: bool) -> None:
    """The compiler's flags of `primax train`; memory is taken as it is needed."""
    flags = os.environ.get("XLA_FLAGS", "").split()
    os.environ["XLA_FLAGS"] = " ".join(dict.fromkeys(flags if fast else [*flags, *SAME_BITS]))
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def timed(program: Callable[..., Any], state: Any, clock: int) -> tuple[Any, Any, float]:
    """What a compiled part of a run makes of a state, and how many seconds it takes."""
    start = time.perf_counter()
    state, metrics = jax.block_until_ready(program(state, jnp.int32(clock)))
    return state, metrics, time.perf_counter() - start


def begun(program: training.Program, seeds: int) -> Any:
    """The state after the warm-up."""
    ids = jnp.arange(seeds, dtype=jnp.int32)
    return timed(program.warm_up, program.init(jax.random.key(0), ids), 0)[0]


def wait() -> None:
    """Says that this process is ready, and returns when it is its turn."""
    print("ready", flush=True)
    if not sys.stdin.readline():
        raise SystemExit("nobody is left to report to")


class Waiting:
    """A process that gets ready, and waits for its turn."""

    def __init__(self, script: str, words: Sequence[str], env: dict[str, str] | None = None):
        self.command = [sys.executable, str(Path(__file__).with_name(script)), *words]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(self.command, env=os.environ | (env or {}), **pipes)

    def ready(self) -> None:
        """Returns when it is."""
        assert self.process.stdout
        if not any(line == "ready\n" for line in self.process.stdout):
            raise SystemExit(f"failed, see above: {' '.join(self.command)}")

    def go(self) -> dict[str, Any]:
        """Its turn: what it reports."""
        said, _ = self.process.communicate("go\n")
        if self.process.returncode:
            raise SystemExit(f"failed, see above: {' '.join(self.command)}")
        return json.loads(said.splitlines()[-1])


def in_turns(starts: Sequence[Callable[[], Waiting]], jobs: int) -> list[dict[str, Any]]:
    """What processes report: so many get ready at once, and then only one works at a time."""
    found = []
    for first in range(0, len(starts), jobs):
        batch = [start() for start in starts[first : first + jobs]]
        for waiting in batch:
            waiting.ready()
        found += [waiting.go() for waiting in batch]
    return found


def run_of(case: Case, args: argparse.Namespace) -> Callable[[], Waiting]:
    """How the process of a case is started; bad settings are refused at once."""
    build(case.config)
    words = [*case.words, "--windows", str(args.windows), "--seconds", str(args.seconds)]
    return lambda: Waiting("timing.py", [*words, *["--fast"] * args.fast])


def measure(case: Case, windows: int, seconds: float) -> dict[str, Any]:
    """Compile seconds, bytes, and seconds of a run's first windows, as many as begin in time."""
    config = case.config
    program = training.compile_program(make_learner(config), tuple(range(case.seeds)))
    wait()
    state, times = begun(program, case.seeds), []
    while len(times) < windows and sum(times) < seconds:
        clock = config.warmup + len(times) * config.window
        state, _, took = timed(program.window, state, clock)
        times.append(took)
    rounds = config.window // config.update_every
    return {
        "round_ms": 1e3 * min(times) / rounds,
        "window_s": times,
        "compile_s": program.compile_s,
        **program.memory,
    }


def markdown(rows: Sequence[dict], columns: dict[str, str]) -> str:
    """A table for people; what a row does not have is a dash."""
    lines = [list(columns.values()), ["---"] + ["---:"] * (len(columns) - 1)]
    lines += [[_short(row.get(name)) for name in columns] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _short(value: Any) -> str:
    """Three digits, and no exponent for a large number."""
    if not isinstance(value, float):
        return "-" if value is None else str(value)
    return f"{value:.3g}" if abs(value) < 999.5 else f"{value:,.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("case", nargs="+", metavar="METHOD:SEEDS:PRESET FIELD=VALUE")
    timing_options(parser)
    args = parser.parse_args()
    start_jax(args.fast)
    try:
        found = measure(parse_case(args.case), args.windows, args.seconds)
    except InputError as error:
        parser.error(str(error))
    print(json.dumps(found))


def timing_options(parser: argparse.ArgumentParser) -> None:
    """How long to time, and with which flags."""
    parser.add_argument("--windows", type=int, default=3, help="the fastest counts (3)")
    parser.add_argument("--seconds", type=float, default=10.0, help="after which none begins (10)")
    parser.add_argument("--fast", action="store_true", help="as in primax train")


def options(parser: argparse.ArgumentParser) -> None:
    """Of the scripts that time many cases."""
    timing_options(parser)
    jobs = max(1, (os.cpu_count() or 1) - 1)
    parser.add_argument("--jobs", type=int, default=jobs, help=f"compiled at a time ({jobs})")
    parser.add_argument("--out", type=Path, help="a JSON file for all of it")


def reported(work: Callable[[], dict[str, Any]], parser: argparse.ArgumentParser) -> dict[str, Any]:
    """What a script's work found, with what it took; written where asked to."""
    args, begin = parser.parse_args(), time.perf_counter()
    try:
        check_range("--windows", args.windows, 1, 1_000)
        check_range("--jobs", args.jobs, 1, 100)
        found = work()
    except InputError as error:
        parser.error(str(error))
    found |= {"jobs": args.jobs, "took_s": round(time.perf_counter() - begin, 1)}
    # Folders are this machine's own, and say nothing of what was run.
    words = [Path(word).name if Path(word).is_absolute() else word for word in sys.argv]
    found |= {"command": shlex.join(["python", *words]), **provenance()}
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return found


if __name__ == "__main__":
    main()
