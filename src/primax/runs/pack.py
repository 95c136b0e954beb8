"""A finished run as it is published: whole tables, compressed, a few maps and episodes, no state.

Everything that reads a run reads this too, but for what needs a checkpoint.
"""

import bz2
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from primax import files
from primax.errors import InputError
from primax.runs import npz, records
from primax.runs.config_json import to_bytes
from primax.runs.measures import score_measures
from primax.runs.read import Run, open_run
from primax.runs.tables import digest_of, read_whole, stored

DIGITS = 5
"""Of means in windows.csv, which are most of a run's bytes; all of episodes.csv is kept."""
EXACT = "_max"
"""Columns that end so are held against bounds, which they reach: no digit of them may go."""
KEPT = ("visits", "step", "seed")
"""Arrays of maps.npz that are no parts of a reward."""
TEXTS = ("episodes.csv", "windows.csv", "replays.jsonl")
"""Files that are compressed."""
KEEPS = ("all", "maps", "episodes", "scores")
"""How much is kept: all; episodes.csv and a few maps; episodes.csv alone; its columns SCORES alone."""
SCORES = ("seed", "episode", "step", "score")
Files = dict[str, bytes]


def packed(folder: Path, keep: str = KEEPS[0]) -> Files:
    """The files of a finished run by name; equal runs give equal bytes, and a packed one itself."""
    run = open_run(folder)
    with _reading(folder / "manifest.json"):
        run.check_made()
    if not run.is_finished:
        raise InputError(f"{folder} is not finished: primax resume {folder} goes on with it")
    config = files.read(folder / "config.json")
    with _reading(folder / "episodes.csv") as path:
        kept, episodes = _kept(run), read_whole(path)
    rows = _scores(episodes) if keep == "scores" else episodes
    less = {"config.json": config, "episodes.csv": rows}
    if keep == "maps":
        return _files(run, less | ({"maps.npz": _drawn(run)} if run.has_maps else {}))
    if keep != KEEPS[0]:
        return _files(run, less)
    with _reading(folder / "windows.csv") as path:
        windows = rounded(read_whole(path)) if run.windows else b""
    maps = _drawn(run) if run.has_maps else b""
    with _reading(folder / "replays.jsonl") as path:
        has_none = run.can_end or not records.recorded(run.config)  # it records no episode
        is_none = has_none and not stored(path).exists()
        replays = b"" if is_none else _few(read_whole(path, run.digest("replays.jsonl")), kept)
    return _files(run, less | {"windows.csv": windows, "maps.npz": maps, "replays.jsonl": replays})


def _drawn(run: Run) -> bytes:
    """The maps that are kept of a run that has some."""
    with _reading(run.path / "maps.npz") as path:
        if run.keeps("maps.npz"):
            path.stat()  # a finished run has it
        return _few_maps(run.maps(), list(records.recorded(run.config)))


def _files(run: Run, content: Files) -> Files:
    """As they are stored, with the manifest."""
    made = {"config.json": content["config.json"], "manifest.json": _manifest(run, content)}
    made |= {f"{name}.bz2": bz2.compress(content[name]) for name in TEXTS if name in content}
    return made | {name: raw for name, raw in content.items() if name == "maps.npz" and raw}


def _manifest(run: Run, content: Files) -> bytes:
    """The run's own; where it has digests of the run's files, or not all are kept, those of the
    packed ones instead."""
    if "files" not in run.manifest and "windows.csv" in content:
        return files.read(run.path / "manifest.json")
    return to_bytes(run.manifest | {"files": {n: digest_of(raw) for n, raw in content.items()}})


def _scores(episodes: bytes) -> bytes:
    """The scores alone."""
    header, *lines = (line.split(",") for line in episodes.decode().splitlines())
    at = [header.index(name) for name in SCORES]
    return "".join(",".join(line[i] for i in at) + "\n" for line in (header, *lines)).encode()


@contextmanager
def _reading(path: Path) -> Generator[Path]:
    """Says in one line for which file a run cannot be packed, and why."""
    try:
        yield path
    except InputError as error:
        raise InputError(f"{path.parent} cannot be packed: {error}") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path.parent} cannot be packed: {path.name}: {reason}") from error
    except (LookupError, TypeError) as error:
        reason = f"{path.name} is not what a run writes ({error})"
        raise InputError(f"{path.parent} cannot be packed: {reason}") from error


def _kept(run: Run) -> set[int]:
    """The seeds whose episodes are kept: the best, the worst and the middle one."""
    scores = run.grid("episodes", "score")
    if scores is None:
        raise InputError(f"{run.path / 'episodes.csv'} has no column score")
    averages = score_measures(scores)["average"].tolist()
    return set(records.telling(dict(zip(run.seeds, averages, strict=True)))[:3])


def rounded(table: bytes) -> bytes:
    """A CSV whose numbers with a point have DIGITS digits at most; maxima and whole numbers stay."""
    header, *lines = (line.split(",") for line in table.decode().splitlines())
    rows = [
        [
            cell if name.endswith(EXACT) else _short(cell)
            for name, cell in zip(header, line, strict=True)
        ]
        for line in lines
    ]
    return "".join(",".join(line) + "\n" for line in (header, *rows)).encode()


def _short(cell: str) -> str:
    return f"{float(cell):.{DIGITS}g}" if "." in cell or "e" in cell else cell


def _few_maps(maps: dict[str, np.ndarray], ends: list[int]) -> bytes:
    """Of the windows with a recorded episode, and the last: visits since the one before, parts then."""
    steps = maps["step"]
    at = np.flatnonzero(np.isin(steps, [*ends, steps[-1]]))
    begins = np.concatenate([[0], at[:-1] + 1])
    few = {name: values[at].astype(np.float16) for name, values in maps.items() if name not in KEPT}
    few |= {"visits": np.add.reduceat(maps["visits"], begins, axis=0, dtype=np.int32)}
    few |= {"step": steps[at], "seed": maps["seed"]}
    return npz.to_bytes(few.items(), is_compressed=True)


def _few(replays: bytes, seeds: set[int]) -> bytes:
    lines = replays.splitlines(keepends=True)
    return b"".join(line for line in lines if files.from_json(line)["seed"] in seeds)
