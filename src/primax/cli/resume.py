"""Continues a run that was stopped or killed, from its newest checkpoint. Its results are the same \
to the bit as those of an uninterrupted run. With --steps, makes a finished run longer."""

import argparse
import os
from dataclasses import replace
from pathlib import Path

from primax.adapters.trackers import tracker
from primax.agent.memory import check_room
from primax.cli.common import SAME_BITS, start_jax, work_console
from primax.cli.train import announce, devices_option, in_folder, save_option, track_option
from primax.errors import InputError, check_range
from primax.runs.extend import extend
from primax.runs.proceed import devices_for, reopen
from primax.runs.read import is_finished, read_manifest


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dir", type=Path, help="the run's folder")
    parser.add_argument(
        "--steps",
        metavar="N",
        help="make a finished run longer: N environment steps for each seed in all; "
        "schedules stay as they were",
    )
    save_option(parser)
    track_option(parser)
    devices_option(parser, "as many as the run had")
    parser.add_argument(
        "--anyway",
        action="store_true",
        help="continue even if version, device or flags differ, or memory seems too small",
    )
    parser.add_argument(
        "--restart", action="store_true", help="begin again at step 0 if no checkpoint can be used"
    )


def run(args: argparse.Namespace) -> None:
    check_range("--save-every", args.save_every, 0, 1e6)
    followed = tracker(args.track)
    start_jax(_flags(args.dir))
    allow = frozenset(name for name in ("anyway", "restart") if getattr(args, name))
    job, console = reopen(args.dir), work_console()
    manifest = read_manifest(args.dir)
    if not is_finished(manifest) or args.steps is not None:
        devices = devices_for(args.devices, manifest, len(job.seeds), "--devices")
        job = replace(job, devices=devices)
        if not args.anyway:
            check_room(job.learner, len(job.seeds), job.devices)
    if args.steps is not None:
        job = extend(job, args.steps, allow)
        announce(console, job.config)
    in_folder(console, job, args.save_every, allow, followed)


def _flags(folder: Path) -> str:
    """The compiler flags the run was started with; other flags would give other bits.

    A folder may come from anyone, and flags can make the compiler write files: only those that
    primax sets, or that the user has set, are taken from it.
    """
    try:
        flags = str(read_manifest(folder)["flags"]).split()
    except (InputError, KeyError):
        return " ".join(SAME_BITS)
    known = {*SAME_BITS, *os.environ.get("XLA_FLAGS", "").split()}
    if unknown := [flag for flag in flags if flag not in known]:
        raise InputError(
            f"the run was started with the compiler flag {unknown[0]!r}: "
            "if you trust it, put it into XLA_FLAGS and resume again"
        )
    return " ".join(flags)
