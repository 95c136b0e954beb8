"""The command line: `primax COMMAND`. Each command is one module of this folder."""

import argparse
import difflib
import importlib
import io
import itertools
import sys
from pathlib import Path
from typing import Any, NoReturn

from primax.errors import InputError, RunError, hint, one_line
from primax.files import place
from primax.runs.stops import on_ctrl_c

COMMANDS = {
    "train": "train a method in a world",
    "resume": "continue a run that was stopped or killed",
    "evaluate": "play fresh episodes with a run's trained agents, and say how they do",
    "sweep": "make many runs, as a plan says, several at a time",
    "export": "write a run's networks and frozen reward to one small file",
    "pack": "make small copies of finished runs, without checkpoints, to publish",
    "bench": "time a training run, with compile time measured separately",
    "reproduce": "run the paper's experiments; compare with its tables and figures",
    "report": "write one page about runs: curves, maps, replays, audit, settings",
    "plot": "draw learning curves of runs for a paper",
    "stats": "means, intervals and tests for a CSV of scores, or for runs",
    "explain": "show why transitions get the reward they get",
    "verify": "check what the paper promises, on a small learner or on a run",
    "list": "list methods, worlds, presets, and every field that can be set",
    "worlds": "list the worlds, and what scripted policies score in them",
    "watch": "play an episode of a trained agent or a scripted policy, or write it as a GIF",
    "completion": "print the script that makes a shell complete all this",
}


LIGHT = ("completion",)
"""Commands that know no methods and no worlds."""


class Parser(argparse.ArgumentParser):
    """Reports what is wrong in one line, with the nearest option."""

    def __init__(self, **named: Any):
        super().__init__(**named)
        self.register("type", Path, place)  # wherever an option takes a path

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message}; see {self.prog} --help")

    def parse_all(self, argv: list[str]) -> argparse.Namespace:
        """Like `parse_args`, but an unknown option gets a hint."""
        known = [name for action in self._actions for name in action.option_strings]
        before = itertools.takewhile(lambda arg: arg != "--", argv)
        given = [arg.partition("=")[0] for arg in before if arg.startswith("--")]
        # First, for a misspelt option may be the very one that is missed.
        for name in (name for name in given if name not in known):
            close = difflib.get_close_matches(name.lstrip("-"), [k.lstrip("-") for k in known], n=1)
            says = f"did you mean --{close[0]}?" if close else f"see {self.prog} --help"
            raise InputError(f"unknown argument {name!r}; {says}")
        args, rest = self.parse_known_args(argv)
        if rest:
            raise InputError(f"unknown argument {rest[0]!r}; see {self.prog} --help")
        return args


def _usage() -> str:
    width = max(map(len, COMMANDS)) + 2
    lines = [f"  {name:{width}}{what}" for name, what in COMMANDS.items()]
    return (
        "usage: primax COMMAND [options]\n\n"
        + "\n".join(lines)
        + "\n\nprimax help COMMAND says more.\n"
    )


def run(argv: list[str]) -> int:
    """Runs one command; wrong input raises InputError."""
    if argv[:1] == ["help"]:
        argv = [*(name for name in argv[1:2] if name != "help"), "--help"]
    if not argv or argv[0] in ("-h", "--help"):
        sys.stdout.write(_usage())
        return 0 if argv else 2
    if argv[0] == "--version":
        from primax import __version__

        sys.stdout.write(f"primax {__version__}\n")
        return 0
    if argv[0] not in COMMANDS:
        raise InputError(f"unknown command {argv[0]!r}{hint(argv[0], [*COMMANDS, 'help'])}")
    command, parser = command_of(argv[0])
    args = parser.parse_all(argv[1:])
    if argv[0] not in LIGHT:
        importlib.import_module("primax.cli.plugins").load(args.plugin)
    return command.run(args) or 0


def command_of(name: str) -> tuple[Any, Parser]:
    """A command's module, imported only when asked for as jax takes a second to load, and its parser."""
    command = importlib.import_module(f"primax.cli.{name}")
    parser = Parser(prog=f"primax {name}", description=command.__doc__, allow_abbrev=False)
    command.options(parser)
    if name not in LIGHT:
        parser.add_argument(
            "--plugin",
            action="append",
            default=[],
            metavar="PACKAGE",
            help="import this package of your own, for its methods and worlds; may be given several times",
        )
    return command, parser


def main(argv: list[str] | None = None) -> int:
    """The entry point: exit status 2 and one line for wrong input."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ε shows ?, and goes on
    try:
        with on_ctrl_c("stopped", is_first=True):
            return run(sys.argv[1:] if argv is None else argv)
    except InputError as error:
        sys.stderr.write(f"primax: {one_line(error)}\n")
        return 2
    except RunError as error:
        sys.stderr.write(f"primax: {one_line(error)}\n")
        return error.status
    except KeyboardInterrupt:
        sys.stderr.write("primax: stopped\n")
        return 130
    except BrokenPipeError:
        # The reader (`| head`) has gone; there is nobody to tell.
        sys.stderr.close()
        return 141
    except OSError as error:
        says = f"{error.filename or 'the disk'}: {error.strerror or error}"
        sys.stderr.write(f"primax: {one_line(says)}\n")
        return 1
