"""A run's folder: plain JSON and CSV that anyone can read."""

import csv
import json
import os
import platform
import subprocess
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jax
import numpy as np

import primax
from primax.config import Config
from primax.errors import InputError
from primax.methods import world_name
from primax.training import Result, Table


def create(folder: Path, config: Config, seeds: tuple[int, ...]) -> Path:
    """Makes the folder and writes the configuration, before anything costs time."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise InputError(f"{folder} is not empty: choose another --out, or remove it")
        write_json(folder / "config.json", as_json(config, seeds))
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror}") from error
    return folder


def finish(folder: Path, result: Result) -> None:
    """Writes the tables and the manifest of a finished run."""
    write_csv(folder / "episodes.csv", result.episodes)
    write_csv(folder / "windows.csv", result.windows)
    write_json(folder / "manifest.json", manifest(result))


def as_json(config: Config, seeds: tuple[int, ...]) -> dict[str, Any]:
    """The resolved configuration, with the world's and the seeds' names."""
    fields = asdict(config)
    fields["world"] = {"name": world_name(config.world), **fields["world"]}
    return {**fields, "seeds": list(seeds)}


def manifest(result: Result) -> dict[str, Any]:
    """What produced a run: command, code, versions, machine, times."""
    return {
        "command": " ".join(["primax", *sys.argv[1:]]),
        **provenance(),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "compile_s": round(result.compile_s, 2),
        "run_s": round(result.run_s, 2),
        "steps": result.config.total_steps,
        "seeds": len(result.seeds),
        "memory": result.memory,
    }


def provenance() -> dict[str, Any]:
    """Code, versions and machine, for any file that reports a number."""
    device = jax.devices()[0]
    return {
        "commit": commit(),
        "primax": primax.__version__,
        "jax": jax.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "device": device.device_kind if device.platform != "cpu" else f"{os.cpu_count()} CPU cores",
        "flags": os.environ.get("XLA_FLAGS", ""),
    }


def commit() -> str:
    """The commit this package runs from, `+` where files differ from it.

    Outside git it is what PRIMAX_COMMIT says, for copies sent to another machine, or nothing.
    """
    here = Path(__file__).parent
    try:
        ask = ["git", "-C", str(here), "describe", "--always", "--dirty=+", "--exclude=*"]
        return subprocess.run(
            ask, capture_output=True, text=True, timeout=10, check=True
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return os.environ.get("PRIMAX_COMMIT", "")


def write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def write_csv(path: Path, table: Table) -> None:
    """Columns to a CSV; floats with the digits that give the same float32 back."""
    columns = [_texts(column) for column in table.values()]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table)
        writer.writerows(zip(*columns, strict=True))


def _texts(column: np.ndarray) -> list[str]:
    if column.dtype == bool:
        return [str(int(value)) for value in column]
    if np.issubdtype(column.dtype, np.floating):
        return ["" if np.isnan(value) else str(value) for value in column.astype(np.float32)]
    return [str(value) for value in column]
