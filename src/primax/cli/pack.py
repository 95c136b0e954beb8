"""Makes small copies of finished runs, to publish: one folder for each run, with compressed tables, \
a few maps and episodes, and no checkpoints.

Pages, reports, audits and statistics can be made from them; they cannot be resumed or explained.
"""

import argparse
from pathlib import Path

from primax.cli.common import plain_console
from primax.errors import InputError, check_choice
from primax.runs import disk
from primax.runs.pack import KEEPS, Files, packed


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "dir", type=Path, nargs="+", help="folders of runs, or folders that contain them"
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="where to put the copies"
    )
    parser.add_argument(
        "--keep",
        default=KEEPS[0],
        help="how much of a run: all; maps, its maps and episodes; episodes, enough for stats and plot; "
        "scores, of its episodes the scores alone (default: %(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    check_choice("--keep", args.keep, KEEPS)
    console, left_out = plain_console(), []
    folders = [found for given in args.dir for found in disk.runs_in(given)]
    if not folders:
        raise InputError(f"no run in {', '.join(map(str, args.dir))}")
    out = args.out.resolve()
    for around in (out, *out.parents):
        if all((around / name).exists() for name in ("config.json", "manifest.json")):
            raise InputError(
                f"{args.out} is inside the folder of a run, {around}: choose another --out"
            )
    for folder in folders:
        name = folder.resolve().name
        if (args.out / name).resolve() == folder.resolve():
            raise InputError(f"{folder} would be packed into itself: choose another --out")
        try:
            content = packed(folder, args.keep)
        except InputError as error:
            left_out.append(name)
            console.print(f"left out: {error}", soft_wrap=True)
            continue
        state = "already there" if _write(args.out / name, content) else "written"
        size = sum(map(len, content.values())) / 1e6
        console.print(f"{args.out / name}: {size:.2f} MB, {state}", soft_wrap=True)
    return 1 if left_out else 0


def _write(place: Path, content: Files) -> bool:
    """Whether it was there already; another run of that name is never overwritten."""
    try:
        if place.exists():
            if {path.name: path.read_bytes() for path in place.iterdir()} != content:
                raise InputError(f"{place} holds another run: remove it first")
            return True
        temporary = place.with_name(f"{place.name}.part")
        temporary.mkdir(parents=True, exist_ok=True)
        for name, raw in content.items():
            disk.write_whole(temporary / name, raw)
        temporary.rename(place)
        return False
    except OSError as error:
        raise InputError(f"cannot write {place}: {error.strerror}") from error
