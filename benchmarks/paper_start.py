"""What starting runs costs: by `primax sweep`, as `make paper` does, and by xargs, as it did before.

    python benchmarks/paper_start.py smirl_fit_maze rnd_fit_maze task_fit_maze --scale paper --jobs 5

The present way is two programs, `primax reproduce --write-plan` and `primax sweep`, which starts a process
for each cell. The former was one program that listed the cells, and `primax reproduce --only CELL` for
each under xargs. Its option for the list is gone; this script has it (`--names`), with the same work before
the first name is printed. Both ways make the same cells, one after the other and in turns, each time in
an empty folder, after a round that is not timed and that leaves every program compiled. The tables
must be the same bytes.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import jax

from primax.cli.common import SAME_BITS, start_jax
from primax.errors import InputError, check_range
from primax.paper import reproduce
from primax.paper.experiments import select
from primax.runs.provenance import provenance

PRIMAX = [sys.executable, "-m", "primax"]
TABLE = "episodes.csv"
TAIL = 2_000
"""Characters of what a command said that are shown where it failed."""


def by_sweep(args: argparse.Namespace, out: Path) -> None:
    """As the Makefile has it."""
    _run([*PRIMAX, "reproduce", *_scale(args), "--write-plan", *_out(out), *_only(args)], out)
    _run([*PRIMAX, "sweep", str(out / "runs"), "--jobs", str(args.jobs)], out)


def by_xargs(args: argparse.Namespace, out: Path) -> None:
    """As the Makefile had it."""
    names = [sys.executable, __file__, *args.cell, *_scale(args), "--names", *_out(out)]
    each = ["reproduce", *_scale(args), "--no-pages", "--jobs", "2", *_out(out), "--only"]
    xargs = ["xargs", "-r", "-P", str(args.jobs), "-n", "1", *PRIMAX, *each]
    with subprocess.Popen(names, stdout=subprocess.PIPE) as listing:
        _run(xargs, out, listing.stdout, {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"})
    if listing.returncode:
        raise SystemExit("the cells could not be listed, see above")


WAYS: dict[str, Callable[[argparse.Namespace, Path], None]] = {"sweep": by_sweep, "xargs": by_xargs}


def _scale(args: argparse.Namespace) -> list[str]:
    return ["--scale", args.scale]


def _out(out: Path) -> list[str]:
    return ["--out", str(out)]


def _only(args: argparse.Namespace) -> list[str]:
    return [word for name in args.cell for word in ("--only", name)]


def _run(
    command: list[str],
    out: Path,
    given: object = subprocess.DEVNULL,
    env: dict[str, str] | None = None,
) -> None:
    """A command that must succeed; what it says is kept beside the runs, and shown if it does not."""
    log = out.with_suffix(".log")
    with open(log, "ab") as file:
        done = subprocess.run(
            command, stdin=given, stdout=file, stderr=file, env=os.environ | (env or {})
        )
    if done.returncode:
        raise SystemExit(f"{log.read_text(errors='replace')[-TAIL:]}\nfailed: {' '.join(command)}")


def timed(way: str, args: argparse.Namespace, out: Path) -> float:
    """Seconds from the first start to the last end."""
    start = time.perf_counter()
    WAYS[way](args, out)
    return time.perf_counter() - start


def tables(args: argparse.Namespace, out: Path) -> dict[str, bytes]:
    """The scores of every cell."""
    return {name: (out / "runs" / name / TABLE).read_bytes() for name in args.cell}


def measure(args: argparse.Namespace, home: Path) -> dict[str, list[float]]:
    """Seconds of each repeat; what goes first changes from one to the next."""
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    first: dict[str, bytes] = {}
    for repeat in range(args.repeats + 1):
        for way in list(WAYS)[:: 1 if repeat % 2 else -1]:
            took = timed(way, args, out := home / f"{way}{repeat}")
            if tables(args, out) != (first := first or tables(args, out)):
                raise SystemExit(f"{TABLE} by {way}, repeat {repeat}, has other bytes than before")
            if repeat:
                seconds[way].append(took)
        if repeat:
            times = ", ".join(f"{way} {found[-1]:.1f} s" for way, found in seconds.items())
            print(f"repeat {repeat}: {times}", flush=True)
    return seconds


def print_names(args: argparse.Namespace) -> None:
    """The runs still to do, one a line, in the order in which xargs is to start them."""
    home = reproduce.open_home(args.out, args.scale)
    start_jax(" ".join(SAME_BITS))
    tasks = reproduce.plan(home, select(args.cell, args.scale), jax.default_backend())
    for task in reproduce.in_order([task for task in tasks if task.is_open]):
        print(task.cell.name)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cell", nargs="+", help="as in primax reproduce --plan")
    parser.add_argument("--scale", default="smoke", help="as in primax reproduce (smoke)")
    parser.add_argument("--jobs", type=int, default=5, help="runs at the same time (5)")
    parser.add_argument("--repeats", type=int, default=3, help="times that each way is timed (3)")
    parser.add_argument("--names", action="store_true", help="only list the cells, for xargs")
    parser.add_argument("--out", type=Path, default=Path("none"), help="with --names: the folder")
    args = parser.parse_args()
    try:
        check_range("--jobs", args.jobs, 1, 1_000)
        check_range("--repeats", args.repeats, 1, 1_000)
        args.cell = list(dict.fromkeys(cell.name for cell in select(args.cell, args.scale)))
        if args.names:
            return print_names(args)
    except InputError as error:
        parser.error(str(error))
    with tempfile.TemporaryDirectory() as home:
        seconds = measure(args, Path(home))
    middle = {way: statistics.median(found) for way, found in seconds.items()}
    print("median: " + ", ".join(f"{way} {found:.1f} s" for way, found in middle.items()))
    print(f"sweep / xargs: {middle['sweep'] / middle['xargs']:.2f}; {TABLE}: the same bytes")
    made = provenance()  # last: until here no process but the timed ones has the device
    told = ("commit", "primax", "python", "jax", "jaxlib", "numpy", "device")
    print(", ".join(f"{name} {made[name]}" for name in told))
    load = f"{os.getloadavg()[0]:.1f}"
    print(
        f"{len(args.cell)} cells, scale {args.scale}, {args.jobs} at a time, load {load} at the end"
    )


if __name__ == "__main__":
    main()
