"""Training from Python, in memory or in a folder that survives."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from primax import folder as disk
from primax import runs, snapshot, training
from primax.config_json import create, read_config
from primax.errors import InputError
from primax.methods import configure, parse_seeds
from primax.tables import Table, read_table


def train(
    method: str,
    world: str,
    seeds: int | str = 15,
    preset: str = "paper",
    settings: Mapping[str, object] | None = None,
    on_window: runs.OnWindow = lambda progress: None,
    out: str | Path | None = None,
) -> training.Result:
    """Trains a method in a world, all seeds at once; see `configure` for `preset` and `settings`.

    With `out` the run lives in that folder: if it is stopped or killed, the same call takes it up.
    """
    config, numbers = configure(method, world, preset, settings), parse_seeds(seeds)
    if out is None:
        return training.run(config, numbers, on_window)
    folder = Path(out)
    if not (folder / "config.json").exists():
        create(folder, config, numbers)
    elif read_config(folder) != (config, numbers):
        raise InputError(f"{folder} holds a run of another configuration: choose another folder")
    runs.proceed(folder, lambda said: None, on_window)
    return result(folder)


def result(folder: Path) -> training.Result:
    """A finished run, from its folder: what `training.run` would have returned."""
    config, seeds = read_config(folder)
    manifest, checkpoint = runs.read_manifest(folder), disk.newest(folder)
    if "finished" not in manifest or checkpoint.clock != config.total_steps:
        raise InputError(f"{folder} has no whole run: primax resume {folder} goes on with it")
    seconds = {name: [part.get(name, 0.0) for part in manifest["parts"]] for name in runs.TIMES}
    return training.Result(
        config=config,
        seeds=seeds,
        episodes=_typed(read_table(folder / "episodes.csv")),
        windows=_typed(read_table(folder / "windows.csv")),
        state=snapshot.restore(checkpoint.state, training.state_like(config, seeds)),
        memory=manifest.get("memory", {}),
        **{name: sum(values) for name, values in seconds.items()},
    )


def _typed(table: Table) -> Table:
    """The columns in the types they were written from."""
    kinds = {"seed": int, "episode": int, "step": int, "reach": bool}
    return {name: column.astype(kinds.get(name, np.float32)) for name, column in table.items()}
