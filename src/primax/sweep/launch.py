"""Launchers: each is given command lines one by one, when it has room, and says how each ended."""

import os
import shlex
import socket
import subprocess
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import product, takewhile
from pathlib import Path

from primax import files
from primax.errors import InputError, StoppedError
from primax.runs.stops import claim, interrupts

POLL_S = 0.1
"""Seconds until a signal, or the end of a process, is answered."""
CANNOT_START = 127
"""The status a shell would give."""
ASK_S = 30.0
"""Seconds in which nvidia-smi answers."""
GPU = "CUDA_VISIBLE_DEVICES"
SEATS = 64
"""Of each GPU, as far as processes are counted."""
Place = dict[str, str]
"""Room for one process: what it finds in its environment."""


@dataclass(frozen=True)
class Work:
    """A process to start."""

    name: str
    command: list[str]
    log: Path
    """Where its output goes. It is locked as long as the process lives."""


@dataclass(frozen=True)
class Ended:
    """How it went."""

    name: str
    status: int | None
    """0 if all went well, minus the signal that ended it, None where another process is at it."""
    why: str = ""
    """What kept it from starting."""
    is_stopped: bool = False
    """Whether the launcher was asked to stop, and stopped it."""


Crew = dict["subprocess.Popen[bytes]", tuple[Work, Place]]
"""Processes that live, each with what it does and where."""
Launcher = Callable[[Iterator[Work]], Iterator[Ended]]
"""Takes the next only when there is room: until then nobody has decided what that is. Raises
StoppedError, after the last has ended, where it was asked to stop."""


def local(
    works: Iterator[Work],
    places: list[Place],
    tick: Callable[[], object] = bool,
    say: Callable[[str], object] = bool,
) -> Iterator[Ended]:
    """Processes of this machine, one in each place. `tick` is called while they work.

    On Ctrl-C or SIGTERM they are sent SIGTERM, upon which a run saves and stops, and are waited for;
    on a second Ctrl-C they are killed. They have groups of their own, so a terminal's Ctrl-C comes
    here alone.
    """
    crew: Crew = {}

    def kill() -> None:
        for process in crew:
            process.kill()

    with interrupts(kill) as is_asked:
        try:
            yield from _tend(works, list(places), crew, is_asked, tick, say)
        finally:  # whoever waits for the next one may have failed
            for process in crew:
                process.terminate()
            for process in crew:
                process.wait()
        if is_asked():
            raise StoppedError("stopped")


def _tend(
    works: Iterator[Work],
    free: list[Place],
    crew: Crew,
    is_asked: Callable[[], bool],
    tick: Callable[[], object],
    say: Callable[[str], object],
) -> Iterator[Ended]:
    """Fills the places until nothing is left, or until it is asked to stop; then waits."""
    is_told = False
    while True:
        yield from _fill(works, free, crew, is_asked)
        if is_asked() and not is_told:
            is_told = True
            say("stopping after the current windows (press Ctrl-C again to stop at once) …")
            for process in crew:
                process.terminate()
        if not crew:
            return
        tick()
        time.sleep(POLL_S)
        for process in [one for one in crew if one.poll() is not None]:
            work, place = crew.pop(process)
            free.append(place)
            is_stopped = is_told and process.returncode != 0
            yield Ended(work.name, process.returncode, is_stopped=is_stopped)


def _fill(
    works: Iterator[Work], free: list[Place], crew: Crew, is_asked: Callable[[], bool]
) -> Iterator[Ended]:
    """Starts as many as there are places; tells of those that do not start."""
    while free and not is_asked() and (work := next(works, None)):
        try:
            with seated(free) as (place, marks):
                process = _start(work, place, marks)
        except (OSError, InputError) as error:
            yield Ended(work.name, CANNOT_START, str(error))
            continue
        if process is None:
            yield Ended(work.name, None)
        else:
            free.remove(place)
            crew[process] = work, place


def _mark(name: str) -> socket.socket | None:
    """What one process at a time can have; the kernel takes it back when the process ends."""
    mark = socket.socket(socket.AF_UNIX)
    try:
        mark.bind(f"\0{name}")  # no file: Linux keeps such a name by itself
    except OSError:
        mark.close()
        return None
    return mark


@contextmanager
def seated(free: list[Place]) -> Generator[tuple[Place, list[int]]]:
    """The place whose GPU has the first free seat on this machine, and the seat's mark, which the
    process is to inherit; without GPUs the first place.

    So GPUs fill evenly also by sweeps of one cell each, which the workers of a cluster start side by
    side and which know nothing else of each other.
    """
    seats = product(range(SEATS), [place for place in free if GPU in place])
    marked = ((place, _mark(f"primax {place[GPU]} {num}")) for num, place in seats)
    place, mark = next((found for found in marked if found[1]), (free[0], None))
    with mark or nullcontext():
        yield place, [mark.fileno()] if mark else []


def _start(work: Work, place: Place, marks: Sequence[int] = ()) -> subprocess.Popen[bytes] | None:
    """A process that holds its log, and its marks; None where another holds the log."""
    log = claim(work.log)
    if log is None:
        return None
    with log:
        log.write(f"$ {shlex.join(work.command)}\n".encode("utf-8", "replace"))
        log.flush()
        return subprocess.Popen(
            work.command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=os.environ | place,
            process_group=0,
            pass_fds=marks,
        )


def devices() -> list[str]:
    """The GPUs there are, as CUDA_VISIBLE_DEVICES names them; none where jax is to use the CPU."""
    if os.environ.get("JAX_PLATFORMS", "") == "cpu":
        return []
    given = os.environ.get(GPU)
    if given is not None:
        return list(
            takewhile(lambda name: name not in ("", "-1"), map(str.strip, given.split(",")))
        )
    try:
        done = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=ASK_S)
    except (OSError, subprocess.SubprocessError):
        return []
    found = [line for line in done.stdout.splitlines() if line.startswith("GPU ")]
    return [str(i) for i in range(len(found))]


def places(jobs: int, gpus: list[str]) -> list[Place]:
    """Room for `jobs` processes, on each GPU if there are some; the GPUs fill evenly."""
    if not gpus:
        return [{} for _ in range(jobs)]
    share = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"} if jobs > 1 else {}
    return [{GPU: gpu} | share for _ in range(jobs) for gpu in gpus]


def has_mps() -> bool:
    """Whether the service runs that lets processes share a GPU."""
    home = Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps"))
    try:
        os.kill(int(files.read(home / "nvidia-cuda-mps-control.pid", 64)), 0)
    except PermissionError:  # somebody else's
        return True
    except (OSError, ValueError):
        return False
    return True
