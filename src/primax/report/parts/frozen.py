"""PRIME's reward as a run's newest checkpoint froze it: what each recorded step was worth."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from primax import explain
from primax.errors import InputError
from primax.runs.export import export
from primax.runs.read import Run
from primax.runs.tables import Table


@dataclass(frozen=True)
class Frozen:
    """The reward's parts by count key, and the steps they hold for."""

    begins: int
    ends: int
    tables: dict[int, Table]
    """By seed; a row a key."""

    def covers(self, seed: int, first: int, last: int) -> bool:
        """Whether an episode of a seed, by its first and last step, lies in the frozen window."""
        return seed in self.tables and self.begins <= first and last <= self.ends


def frozen(run: Run) -> Frozen:
    """From the newest checkpoint, or from what `primax export` left in the folder."""
    if run.method not in ("prime", "task+prime"):
        raise InputError("only PRIME's reward can be shown in parts")
    with TemporaryDirectory() as home:
        path = run.path / "export_last.npz"
        if (run.path / "checkpoints").is_dir():
            path = Path(home) / "export.npz"
            path.write_bytes(export(run.path))
        elif not path.exists():
            raise InputError("no checkpoints, and no export_last.npz")
        found = {seed: explain.explain(path, seed) for seed in run.seeds}
    one = found[run.seeds[0]]
    tables = {seed: part.table for seed, part in found.items()}
    return Frozen(one.step - one.config.window, one.step, tables)
