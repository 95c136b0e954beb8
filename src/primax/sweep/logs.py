"""What a cell's processes left in its log: their last words, and how the last one ended."""

import os
import re
from contextlib import suppress
from pathlib import Path

from primax import files
from primax.errors import InputError, one_line
from primax.runs import disk
from primax.runs.progress import MOVES

ENDED = "primax sweep: it ended with status"
"""Before the status, on a log's last line, where a process did not end well."""
TAIL = 8_192
"""Bytes of a log in which its last lines are looked for."""


def last_words(log: Path) -> tuple[int, str]:
    """The status a cell's last process ended with, 0 where none is noted, and the last line it said;
    how far it was is no reason why it ended."""
    try:
        with files.opened(log) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
            lines = file.read(TAIL).decode("utf-8", "replace").splitlines()
    except OSError:
        return 0, ""
    lines = [line for line in lines if line.strip()]
    noted = re.fullmatch(rf"{ENDED} (-?\d{{1,5}})", lines[-1]) if lines else None
    said = [line for line in (lines[:-1] if noted else lines) if not MOVES.search(line)]
    return int(noted[1]) if noted else 0, one_line(said[-1].strip()) if said else ""


def note_end(log: Path, status: int) -> None:
    """Leaves in a log how its process ended, for whoever looks at the folder later."""
    if status and not last_words(log)[0]:  # whoever is nearer to the process may have noted it
        with suppress(OSError, InputError):  # a full disk may be why it ended
            disk.append(log, f"{ENDED} {status}\n".encode())
