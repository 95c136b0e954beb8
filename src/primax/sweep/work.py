"""Working through the cells of a sweep."""

import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from primax.errors import RunError, StoppedError
from primax.runs.stops import is_claimed
from primax.sweep.launch import Ended, Launcher, Work
from primax.sweep.logs import last_words, note_end
from primax.sweep.plan import Cell
from primax.sweep.stand import FINISHED, LOGS, RUNNING, Home, Stand, saved, stand

Say = Callable[[str], object]
PRIMAX = (sys.executable, "-m", "primax")


@dataclass
class Account:
    """What became of the cells so far, by their names."""

    running: dict[str, Cell] = field(default_factory=dict)
    through: list[str] = field(default_factory=list)
    """Finished, now or before."""
    failed: list[str] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    """Left to another process."""


def command(home: Home, cell: Cell, options: list[str]) -> list[str]:
    """What begins a cell's run, or goes on with it; `options` are of both commands."""
    folder = home.folder(cell)
    if (folder / "config.json").exists():
        return [*PRIMAX, "resume", str(folder), *options]
    line = ["train", cell.method, cell.world, "--preset", cell.preset, "--seeds", cell.seeds]
    if cell.settings:
        line += ["--set", *(f"{key}={value}" for key, value in cell.settings.items())]
    return [*PRIMAX, *line, "--out", str(folder), *options]


def work_all(
    home: Home,
    stands: list[Stand],
    launcher: Launcher,
    account: Account,
    say: Say,
    options: list[str],
) -> None:
    """Runs what is left, in this order. A cell that fails is told of and stops no other; one that
    another process is at is left to it."""
    account.through += [one.cell.name for one in stands if one.state == FINISHED]

    def works() -> Iterator[Work]:
        for cell in [one.cell for one in stands if one.state != FINISHED]:
            now = stand(home, cell)  # others may work here too
            if now.state == FINISHED:
                account.through.append(cell.name)
            elif now.state == RUNNING:
                leave(cell.name)
            else:
                at = saved(home, cell)
                say(f"{cell.name}: {f'goes on from {at:,}' if at else 'begins'}")
                account.running[cell.name] = cell
                yield Work(cell.name, command(home, cell, options), home.log(cell))

    def leave(name: str) -> None:
        account.held.append(name)
        say(f"{name}: another process is at it")

    try:
        for ended in launcher(works()):
            cell = account.running.pop(ended.name)
            if ended.status is None or (ended.status and is_claimed(home.folder(cell) / "lock")):
                leave(cell.name)
            else:
                say(f"{cell.name}: {_told(home, cell, ended, account, len(stands))}")
    except StoppedError:
        again = f"the same command goes on with what is left in {home.path}"
        raise StoppedError(f"stopped; {again}") from None
    if account.failed:
        names = ", ".join(account.failed)
        logs = f"their logs are in {home.path / LOGS}"
        raise RunError(
            f"{len(account.failed)} of {len(stands)} cells failed: {names}; {logs}, and the same "
            "command tries them again"
        )


def _told(home: Home, cell: Cell, ended: Ended, account: Account, num: int) -> str:
    """Notes how a cell's process ended, and says so."""
    log, status = home.log(cell), ended.status or 0
    note_end(log, -signal.SIGTERM if ended.is_stopped else status)
    if ended.is_stopped:
        return f"stopped at {stand(home, cell).done:,}"
    if status == 0:
        account.through.append(cell.name)
        return f"done, {len(account.through)} of {num}"
    account.failed.append(cell.name)
    if status < 0:  # by nothing that it could have said
        at = saved(home, cell)
        return f"killed (signal {-status}){f'; checkpoint at step {at:,}' if at else ''}; see {log}"
    return f"failed (status {status}): {ended.why or last_words(log)[1]}; see {log}"
