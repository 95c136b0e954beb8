"""Cells as jobs of Slurm: one array, a cell a task, the longest first.

submitit writes its jobs down as pickles. They hold its own objects around a list of strings; none of
ours is among them, and what it leaves behind is never read back: `remote` says why it need not be.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from primax.errors import InputError, one_line
from primax.output.sheet import counted
from primax.sweep.launch import Ended, Work
from primax.sweep.remote import Job, Sweep, follow
from primax.sweep.slurm_config import configured

JOBS = "slurm"
"""The folder beside the runs, where submitit keeps what it needs."""


def executor(folder: Path, settings: Mapping[str, str]) -> Any:
    """Whatever submits the array; refused in one line where there is no Slurm."""
    config, extra = configured(settings)
    submitit = _submitit()
    if not submitit.SlurmExecutor.affinity() > 0:
        raise InputError(
            "--launcher slurm needs sbatch, which is not here: run it where jobs are submitted"
        )
    made = submitit.SlurmExecutor(folder=folder / JOBS, max_num_timeout=config.requeues)
    made.update_parameters(
        job_name="primax",
        time=config.time,
        cpus_per_task=config.cpus,
        mem=config.mem,
        array_parallelism=config.at_once,
        **({"partition": config.partition} if config.partition else {}),
        **({"gpus_per_node": config.gpus} if config.gpus else {}),
        additional_parameters={"requeue": True, **extra},
    )
    return made


def slurm(works: Iterator[Work], executor: Any, sweep: Sweep) -> Iterator[Ended]:
    """Hands over all cells at once."""
    names = [work.name for work in works]
    if not names:
        return
    jobs = _submit(executor, [sweep.command(name) for name in names])
    which = " to ".join(dict.fromkeys((jobs[0].job_id, jobs[-1].job_id)))
    sweep.say(f"{counted(len(jobs), 'job')}: {which}; they write to {executor.folder}")
    yield from follow(sweep, {name: _job(job) for name, job in zip(names, jobs, strict=True)})


def _submit(executor: Any, commands: list[list[str]]) -> list[Any]:
    from submitit.core.utils import CommandFunction
    from submitit.helpers import FunctionSequence

    jobs = []
    try:
        with executor.batch():
            for command in commands:
                todo = FunctionSequence()  # which submitit requeues, as it does not a bare command
                todo.add(CommandFunction(command, verbose=False))
                jobs.append(executor.submit(todo))
    except Exception as error:  # sbatch's own words, and submitit has several kinds
        raise InputError(f"sbatch takes no such job: {one_line(error)}") from error
    return jobs


def _job(job: Any) -> Job:
    return Job(
        job.done, lambda: job.cancel(check=False), lambda: f"its job says why: {job.paths.stderr}"
    )


def _submitit() -> Any:
    try:
        import submitit
    except ImportError:
        raise InputError(
            "--launcher slurm needs submitit: pip install 'primax-rl[slurm]'"
        ) from None
    return submitit
