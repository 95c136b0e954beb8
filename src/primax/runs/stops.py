"""What stops a run from outside: signals, a disk that is full, another process in its folder."""

import fcntl
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from primax import files
from primax.errors import InputError, RunError, StoppedError

LOOK_S = 0.02
"""Seconds in which whoever only looks at a lock has let go of it."""


class AtOnce:
    """What Ctrl-C does on the command line: one line, and the end of the process.

    Raised as an exception it would surface wherever the interpreter happens to be: in the loading of
    a compiled library, in a callback, while threads compile for half a minute more.
    """

    def __init__(self, line: str):
        self.line = line

    def __call__(self, kind: int, frame: object) -> None:
        with suppress(OSError, ValueError):  # streams may be closed: the end is still the end
            if sys.stdout.isatty():
                os.write(1, b"\x1b[?25h")  # a progress line may have hidden the cursor
            os.write(2, f"primax: {self.line}\n".encode())
        os._exit(130)


@contextmanager
def on_ctrl_c(line: str, is_first: bool = False) -> Generator[None]:
    """Ctrl-C says this line and ends the process, for as long as the context lasts.

    Only where the command line began so (`is_first`): elsewhere Ctrl-C is the caller's.
    """
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT) if is_main else None
    is_ours = isinstance(before, AtOnce) or (is_first and callable(before))
    if not is_ours:  # another thread, a caller of the library, or a signal that is ignored
        yield
        return
    signal.signal(signal.SIGINT, AtOnce(line))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def interrupts(last: Callable[[], object] = bool) -> Generator[Callable[[], bool]]:
    """Turns Ctrl-C, a scheduler's signals and a closed terminal into a question asked between windows.

    A second Ctrl-C does not wait: `last` is called, and the process ends, threads and all, as if it
    had been killed.
    """
    asked: list[bool] = []

    def note(kind: int, frame: object) -> None:
        if asked and kind == signal.SIGINT:
            last()
            AtOnce("stopped at once; what was saved stays")(kind, frame)
        asked.append(True)

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False  # signals go to the main thread, which may not be ours
        return
    # A scheduler sends SIGTERM, and SIGUSR2 before a time limit.
    every = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR2)
    # What is ignored stays so: `nohup` works by that.
    kinds = [kind for kind in every if signal.getsignal(kind) is not signal.SIG_IGN]
    before = [signal.signal(kind, note) for kind in kinds]
    try:
        yield lambda: bool(asked)
    finally:
        for kind, handler in zip(kinds, before, strict=True):
            signal.signal(kind, handler)


@contextmanager
def disk_errors(folder: Path) -> Generator[None]:
    """A full or failing disk, or Ctrl-C while compiling, in one line."""
    stopped = f"stopped; primax resume {folder} goes on with it"
    try:
        with on_ctrl_c(stopped):
            yield
    except KeyboardInterrupt:
        raise StoppedError(stopped) from None
    except OSError as error:
        kept = f"what was saved in {folder} is intact; primax resume {folder} goes on from it"
        what = f"{error.strerror or error}{f' ({error.filename})' if error.filename else ''}"
        raise RunError(f"cannot write: {what}; {kept}") from error


@contextmanager
def locked(folder: Path) -> Generator[None]:
    """Holds the folder for this process; the system lets go when the process ends, however it ends."""
    try:
        file = claim(folder / "lock")
    except OSError as error:
        raise InputError(f"cannot lock {folder}: {error.strerror}") from error
    if file is None:
        raise InputError(f"{folder} is in use by another process")
    with file:
        yield


def claim(path: Path) -> IO[bytes] | None:
    """A file to append to, locked until it is closed here and in every process that was given it;
    None where another has it."""
    file = files.opened(path, "ab")
    for pause in (LOOK_S, LOOK_S, LOOK_S, 0):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except BlockingIOError:  # `is_claimed` may be looking
            time.sleep(pause)
    file.close()
    return None


def is_claimed(path: Path) -> bool:
    """Whether a process has a file locked, as far as can be seen from here."""
    try:
        with files.opened(path) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # it is not there, or on a disk without locks
        return False
    return False
