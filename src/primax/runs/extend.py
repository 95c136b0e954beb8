"""A finished run made longer: it becomes one that goes on, and `proceed` takes it up.

The manifest goes first: it no longer says that the run is finished, and notes both configurations.
Killed then, it is a run at its last step, which a resume finishes again. config.json goes next, and
from then on every resume goes on to the new end.
"""

from primax.config.fields import override
from primax.config.schema import Config
from primax.errors import InputError
from primax.runs import checkpoints, disk
from primax.runs.config_json import as_json, to_bytes
from primax.runs.proceed import Job, check_said, config_hash, extensions, reopen, same_machine
from primax.runs.read import Run, open_run, read_manifest
from primax.runs.stops import disk_errors, locked
from primax.runs.tables import digest_of, read_whole


def extend(job: Job, steps: str, allow: frozenset[str] = frozenset()) -> Job:
    """The run a folder holds, with so many steps in all; where that is refused nothing is written.

    A run that is on its way there simply goes on. `allow` may name `anyway`, as for `proceed`.
    """
    folder, run = job.folder, open_run(job.folder)
    config = longer(run.config, steps)
    if disk.is_packed(folder):
        raise InputError(f"{folder} is a packed run: it can be read, but not resumed")
    if not run.is_finished and config.total_steps == run.config.total_steps:
        return job
    _check_over(run, config)
    _check_whole(job, run, "anyway" in allow)
    with locked(folder):
        if read_manifest(folder) != run.manifest:
            raise InputError(f"{folder} was in use by another process: try again")
        with disk_errors(folder):
            _write(run, config)
    return reopen(folder, job.devices)


def longer(config: Config, steps: str) -> Config:
    """A configuration with other steps, and its schedules as they were."""
    span = {} if config.schedule_steps else {"schedule_steps": str(config.total_steps)}
    return override(config, {"steps": steps, **span})


def _check_over(run: Run, config: Config) -> None:
    """Refuses a run that is not finished, or not shorter."""
    folder, now = run.path, run.config.total_steps
    run.check_made()
    if not (run.is_finished or _is_noted(run)):
        raise InputError(
            f"{folder} is not finished: primax resume {folder} goes on to step {now:,}, "
            "and --steps makes it longer after that"
        )
    if config.total_steps <= now:
        raise InputError(f"{folder} is already {now:,} steps long: --steps takes more than that")


def _is_noted(run: Run) -> bool:
    """Whether it was finished until an extension was noted, which came no further."""
    return any(
        (note["from_step"], note.get("before")) == (run.config.total_steps, config_hash(run.path))
        for note in extensions(run.manifest)
    )


def _check_whole(job: Job, run: Run, anyway: bool) -> None:
    """Refuses a run that could not be gone on with: its end stays as it is."""
    folder, end = run.path, run.config.total_steps
    check_said(run)
    try:
        if checkpoints.newest_step(folder) != end:
            raise InputError(f"the checkpoint of its last step, {end:,}, is gone")
        checkpoint = run.checkpoint
        if checkpoint.damaged:
            raise InputError(checkpoint.damaged[0])
        checkpoints.check_tables(folder, checkpoint)
        for name in filter(run.digest, disk.FINAL):
            read_whole(folder / name, run.digest(name))
    except (InputError, OSError, checkpoints.DamagedError) as error:
        raise InputError(f"{folder} cannot be made longer: {error}") from error
    same_machine(checkpoint.about.get("provenance", {}), job, anyway)
    run.state(job.learner)  # refused where it does not fit


def _write(run: Run, config: Config) -> None:
    """Opens the end: first the manifest, then the configuration."""
    folder, end = run.path, run.config.total_steps
    content = to_bytes(as_json(config, run.given_seeds))
    note = {"from_step": end, "before": config_hash(folder), "after": digest_of(content)}
    manifest = run.manifest | {"extended": [*extensions(run.manifest, end), note]}
    for name in ("files", "finished"):
        manifest.pop(name, None)
    disk.write_whole(folder / "manifest.json", to_bytes(manifest))
    disk.write_whole(folder / "config.json", content)
