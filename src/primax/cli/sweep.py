"""Makes the runs of a plan, several at a time. Finished runs are not run again; stopped or killed \
runs are continued."""

import argparse
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from rich.console import Console

from primax.adapters.trackers import tracker
from primax.agent.devices import parse_devices
from primax.cli.common import work_console
from primax.cli.train import devices_option, save_option, track_option
from primax.config.fields import flatten, parse_pairs
from primax.errors import InputError, LeftError, check_choice, check_range
from primax.output.sheet import clock
from primax.paper.predict import side_by_side
from primax.sweep import launch
from primax.sweep.board import Board
from primax.sweep.dask import client, dask
from primax.sweep.launch import GPU
from primax.sweep.plan import Plan, read_plan
from primax.sweep.remote import Sweep
from primax.sweep.slurm import executor, slurm
from primax.sweep.slurm_config import EXTRA, SlurmConfig, configured
from primax.sweep.stand import FINISHED, PLAN, Home, Stand, begin, check_home, in_order, stand, told
from primax.sweep.work import Account, work_all

LOCAL, JOBS = "local", 1
LAUNCHERS = (LOCAL, "slurm", "dask")


def options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "Exit status: 0 if every run is finished, 1 if one failed or the sweep was stopped, 2 for "
        "wrong input, 3 if none failed but some were left to other processes, which have not "
        "finished them yet."
    )
    parser.add_argument(
        "plan", type=Path, help=f"a plan in TOML, or the folder of a sweep, which has its {PLAN}"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="where the runs' folders are (default: the plan's name without its ending)",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        metavar="K",
        help=f"how many runs at the same time, on each GPU if there are some (default: {JOBS})",
    )
    parser.add_argument(
        "--status", "--plan", action="store_true", help="only print where every run stands"
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="CELL",
        help="make only this run of the plan; can be given several times",
    )
    parser.add_argument(
        "--launcher",
        default=LOCAL,
        metavar="NAME",
        help=f"who starts the runs: {', '.join(LAUNCHERS)} (default: %(default)s)",
    )
    parser.add_argument("--address", metavar="URL", help="of the Dask scheduler: tcp://host:8786")
    parser.add_argument(
        "--slurm",
        nargs="+",
        action="extend",
        default=[],
        metavar="FIELD=VALUE",
        help="what a job is given, before what the plan says: "
        f"{', '.join(flatten(SlurmConfig()))}, or {EXTRA}NAME for any other parameter of sbatch",
    )
    devices_option(parser, "1; passed on to every run")
    save_option(parser)
    track_option(parser)


def run(args: argparse.Namespace) -> None:
    jobs = JOBS if args.jobs is None else args.jobs
    _check(args, jobs)
    home, plan = _opened(args)
    job_settings = plan.slurm | parse_pairs(args.slurm, "--slurm")
    configured(job_settings)
    cells = plan.only(args.only)
    platform, places = _room(args, jobs)
    stands = [stand(home, cell) for cell in cells]
    if args.devices is not None:
        _check_devices(parse_devices(args.devices, "--devices"), stands)
    if args.status:
        num = len(places) or len(stands)
        is_known = bool(args.jobs and places)  # a folder does not say how many a sweep was given
        print("\n".join(told(home, stands, num, platform, is_known)))
        return
    console, account = work_console(), Account()
    board = Board(console, home, in_order(stands, platform), account, platform)
    sweep = Sweep(home, {cell.name: cell for cell in cells}, _passed(args), board.tick, board.say)
    with ExitStack() as stack:
        launcher = _launcher(args, sweep, job_settings, places, stack)
        begin(home, plan)
        _announce(console, args, board, places)
        with board:
            work_all(home, board.stands, launcher, account, board.say, sweep.options)
    left = [name for name in account.held if stand(home, sweep.cells[name]).state != FINISHED]
    through = f"{len(cells) - len(left)} of {len(cells)} runs are finished"
    console.print(f"{through}; see primax report {home.path}", soft_wrap=True)
    if left:
        raise LeftError(
            f"left to other processes, and not finished: {', '.join(left)}; when those processes "
            "have ended, the same command makes what is missing"
        )


def _check(args: argparse.Namespace, jobs: int) -> None:
    """Refuses what can be known to be wrong without looking at a plan."""
    check_choice("--launcher", args.launcher, LAUNCHERS)
    check_range("--jobs", jobs, 1, 1_000)
    check_range("--save-every", args.save_every, 0, 1e6)
    tracker(args.track)  # a wrong name ends here


def _opened(args: argparse.Namespace) -> tuple[Home, Plan]:
    """The folder and the plan, if they fit each other."""
    is_folder = args.plan.is_dir()
    home = Home(args.out or (args.plan if is_folder else Path(args.plan.stem)))
    plan = read_plan(args.plan / PLAN if is_folder else args.plan)
    check_home(home, plan)
    return home, plan


def _check_devices(num: int | None, stands: list[Stand]) -> None:
    """Refuses a number that does not divide the seeds of a run which is still to be made."""
    for one in stands:
        seeds = len(one.cell.given_seeds)
        if one.state != FINISHED and num and seeds % num:
            fit = ", ".join(str(n) for n in range(1, seeds + 1) if seeds % n == 0)
            raise InputError(
                f"{one.cell.name}: --devices {num} does not divide its number of seeds, which is "
                f"{seeds}: take {fit}"
            )


def _room(args: argparse.Namespace, jobs: int) -> tuple[str, list[launch.Place]]:
    """What the runs will have, and the places for them here; none where others look after that."""
    if args.launcher != LOCAL:
        return "gpu", []
    gpus = launch.devices()
    places = launch.places(jobs, [] if args.devices else gpus)  # who takes several sees all
    return "gpu" if gpus else "cpu", places


def _passed(args: argparse.Namespace) -> list[str]:
    """Options of every run."""
    passed = ["--save-every", f"{args.save_every:g}"]
    passed += ["--devices", args.devices] if args.devices else []
    passed += ["--track", *args.track] if args.track else []
    return passed + [word for package in args.plugin for word in ("--plugin", package)]


def _launcher(
    args: argparse.Namespace,
    sweep: Sweep,
    job_settings: dict[str, str],
    places: list[launch.Place],
    stack: ExitStack,
) -> launch.Launcher:
    """Whoever starts the runs; refused before anything is written."""
    if args.launcher == "slurm":
        return partial(slurm, executor=executor(sweep.home.path, job_settings), sweep=sweep)
    if args.launcher == "dask":
        return partial(dask, client=stack.enter_context(client(args.address)), sweep=sweep)
    return partial(launch.local, places=places, tick=sweep.tick, say=sweep.say)


def _announce(
    console: Console, args: argparse.Namespace, board: Board, places: list[launch.Place]
) -> None:
    """How much there is to do, and how long it should take."""
    seconds = list(board.seconds.values())
    todo = f"{sum(map(bool, seconds))} of {len(seconds)} runs to do"
    if not places:
        console.print(f"{todo}, by {args.launcher}", soft_wrap=True)
        return
    left = clock(side_by_side(seconds, len(places), board.platform))
    num = len({place.get(GPU) for place in places if GPU in place})
    where = f" on {num} GPUs" if num > 1 else ""
    console.print(f"{todo}, {len(places)} at a time{where}: about {left}", soft_wrap=True)
    if len(places) > num > 0 and not launch.has_mps():
        console.print("runs share a GPU better after: nvidia-cuda-mps-control -d", soft_wrap=True)
