"""What a plan and the command line say of jobs of Slurm."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from primax.config.fields import Range, check, flatten, override
from primax.errors import InputError

EXTRA = "extra."
"""Before the name of any other parameter of sbatch."""


@dataclass(frozen=True)
class SlurmConfig:
    """What a task of the array is given."""

    partition: str = ""
    """Where it is queued; the cluster's default if nothing is said."""
    time: Annotated[int, Range(1, 1_000_000)] = 1_440
    """Minutes it may take; a run that takes longer is requeued, and goes on."""
    gpus: Annotated[int, Range(0, 64)] = 1
    """GPUs; with more than one also give --devices all."""
    cpus: Annotated[int, Range(1, 1_024)] = 4
    """CPU cores."""
    mem: str = "16GB"
    """Memory of the host."""
    at_once: Annotated[int, Range(1, 100_000)] = 256
    """Tasks of the array at the same time."""
    requeues: Annotated[int, Range(0, 100_000)] = 100
    """How often a task is requeued because its time was over."""

    def __post_init__(self):
        check(self, "slurm.")


def configured(settings: Mapping[str, str]) -> tuple[SlurmConfig, dict[str, str]]:
    """What a plan and the command line say, and further parameters of sbatch."""
    extra = {name.removeprefix(EXTRA): v for name, v in settings.items() if name.startswith(EXTRA)}
    own = {name: value for name, value in settings.items() if not name.startswith(EXTRA)}
    try:
        return override(SlurmConfig(), own), extra
    except InputError as error:
        others = f" ({EXTRA}NAME is any other parameter of sbatch)"
        is_known = own.keys() <= flatten(SlurmConfig()).keys()
        raise InputError(f"slurm: {error}{'' if is_known else others}") from error
