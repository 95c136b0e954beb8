"""What several commands share."""

import argparse
import os
import sys
from collections.abc import Iterable

import jax
from rich.console import Console

from primax.agent.learner import Learner, make_learner
from primax.agent.memory import check_room
from primax.config.fields import override, parse_pairs
from primax.config.schema import Config
from primax.config.seeds import parse_seeds
from primax.errors import InputError
from primax.presets import configure
from primax.runs.cache import use_cache
from primax.worlds import SUITE, WORLDS, World, world_kind

# The first stops the compiler from choosing GPU kernels by timing them, which differs from process
# to process; without timing, its Triton products are slower than the vendor's.
SAME_BITS = ("--xla_gpu_deterministic_ops=true", "--xla_gpu_enable_triton_gemm=false")


def world_from(name: str, pairs: Iterable[str]) -> World:
    """A world by name, with `OPTION=VALUE` pairs; `world.OPTION` is the same option."""
    kind = world_kind(name)
    settings = {key.removeprefix("world."): value for key, value in parse_pairs(pairs).items()}
    return kind.of(override(kind.options()(), settings))


def set_option(parser: argparse.ArgumentParser, takes: str, what: str) -> None:
    """`--set`; given again it adds to what was given before."""
    parser.add_argument("--set", nargs="+", action="extend", default=[], metavar=takes, help=what)


def run_options(parser: argparse.ArgumentParser) -> None:
    """The options of every command that trains."""
    parser.add_argument("method", help="see primax list")
    parser.add_argument(
        "world", help=f"{', '.join(WORLDS)}, one of a suite ({SUITE}), or noisy: and one of these"
    )
    parser.add_argument(
        "--seeds",
        default="15",
        help="how many (15 is seeds 0 to 14), a range (0-4; 9-9 is seed 9 alone) or a list (3,7); "
        "default: %(default)s",
    )
    parser.add_argument("--steps", help="environment steps for each seed")
    parser.add_argument(
        "--preset", default="paper", help="paper, quick or smoke (default: %(default)s)"
    )
    set_option(
        parser, "FIELD=VALUE", "change any field that primax list shows; may be given several times"
    )
    parser.add_argument(
        "--anyway", action="store_true", help="begin even if the seeds seem not to fit into memory"
    )
    parser.add_argument(
        "--fast",
        action="store_true",
        help="let the compiler pick GPU kernels by timing them: faster, "
        "but results then differ from one process to the next",
    )


def asked(args: argparse.Namespace) -> tuple[Config, tuple[int, ...]]:
    """The configuration and the seeds a command line asks for; sets up jax before it starts."""
    settings = parse_pairs(args.set)
    if args.steps is not None:
        if "steps" in settings:
            raise InputError(
                "--steps and --set steps=... set the same field: give only one of them"
            )
        settings["steps"] = args.steps
    config = configure(args.method, args.world, args.preset, settings)
    seeds = parse_seeds(args.seeds, "--seeds")
    start_jax(flags() if args.fast else flags(*SAME_BITS))
    return config, seeds


def prepare(config: Config, num_seeds: int, anyway: bool, devices: int = 1) -> Learner:
    """The learner of a configuration, if that many seeds fit into memory."""
    learner = make_learner(config)
    if not anyway:
        check_room(learner, num_seeds, devices)
    return learner


class WorkConsole(Console):
    """For work that goes on when nobody listens any more: a closed pipe (`| head`) mutes it."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def work_console() -> Console:
    """As `plain_console`, for commands that train."""
    return WorkConsole(markup=False, highlight=False)


def plain_console() -> Console:
    """A console that prints paths and names as they are, brackets and all."""
    return Console(markup=False, highlight=False)


def flags(*more: str) -> str:
    """The user's flags for the compiler and more, each once."""
    return " ".join(dict.fromkeys([*os.environ.get("XLA_FLAGS", "").split(), *more]))


def start_jax(flags: str) -> None:
    """Sets the compiler's flags, read when the first device is asked for, and its cache."""
    os.environ["XLA_FLAGS"] = flags
    use_cache()
    try:
        jax.devices()
    except (RuntimeError, AssertionError) as error:  # jax asserts where there is no driver
        platforms = os.environ.get("JAX_PLATFORMS", "")
        asked = f"JAX_PLATFORMS is {platforms!r}: is there such a device? " if platforms else ""
        raise InputError(f"jax finds no device to run on; {asked}{error}") from error
