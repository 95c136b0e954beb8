"""Which runs and which reproductions the folders on a command line hold."""

from dataclasses import dataclass
from pathlib import Path

from primax.errors import InputError
from primax.runs import disk

PAGES = ("scorecard.csv", "claims.csv", "runs.csv")
"""What `primax reproduce` writes beside its tables and figures."""


@dataclass(frozen=True)
class Sources:
    """Folders of runs, and folders `primax reproduce` wrote."""

    runs: tuple[Path, ...]
    reproductions: tuple[Path, ...]


def find(folders: list[Path]) -> Sources:
    """A run's folder, a folder of such, or a reproduction; anything else is refused in one line."""
    runs: list[Path] = []
    reproductions: list[Path] = []
    for folder in folders:
        found = disk.runs_in(folder)
        if _is_reproduction(folder):
            reproductions.append(folder)
        elif not found:
            raise InputError(
                f"{folder} holds no run (no config.json in it, nor one folder down): give the "
                "folder of primax train --out, or of primax reproduce"
            )
        runs += found
    unique = {path.resolve(): path for path in reversed(runs)}
    kept = [path for path in dict.fromkeys(runs) if unique[path.resolve()] is path]
    return Sources(tuple(kept), tuple(dict.fromkeys(reproductions)))


def _is_reproduction(folder: Path) -> bool:
    return any((folder / name).is_file() for name in (*PAGES, "scale"))
