"""Plays one episode in the terminal, or writes it as a GIF: of a scripted policy in a world, or of a \
trained agent, from a run's folder or a file of primax export."""

import argparse
from functools import partial
from pathlib import Path

import jax
from rich.console import Console

from primax.cli.common import SAME_BITS, flags, plain_console, set_option, start_jax, world_from
from primax.cli.evaluate import which_option
from primax.errors import InputError, canonical, check_choice, check_range
from primax.explain import first_seed
from primax.methods import find_method
from primax.runs import disk, replays
from primax.runs.evaluation import MOST_EPISODES, one_episode
from primax.runs.export import WHICH
from primax.runs.networks import find
from primax.runs.read import open_run
from primax.worlds import SUITE, WORLDS, GridWorld, World, is_prefixed
from primax.worlds.drawing.film import scenes, seen
from primax.worlds.drawing.render import Scene, rgb, show, write_gif
from primax.worlds.rollout import play
from primax.worlds.scripted import POLICIES, make_policy

OF_WORLDS, OF_RUNS = ("policy", "set"), ("which", "episode", "epsilon", "recorded")
"""Options that go with the name of a world, and with trained agents."""
OF_NETWORKS = ("which", "epsilon")


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "world",
        help=f"{', '.join(WORLDS)}, one of a suite ({SUITE}), or noisy: and one of these; or the folder of a run, or a file from primax export "
        "(./maze is a folder of that name)",
    )
    parser.add_argument("--policy", help=f"of a world: {', '.join(POLICIES)} (default: chase)")
    parser.add_argument(
        "--seed",
        type=int,
        help="of a world: which episode (default: 0); of a run: which of its seeds (default: its first)",
    )
    which_option(parser)
    parser.add_argument(
        "--episode",
        type=int,
        help="of a run: which fresh episode (default: 0); with --recorded, its number in the run "
        "(default: the last recorded)",
    )
    parser.add_argument(
        "--epsilon",
        type=float,
        help="of a run: the chance of a random action (default: 0, which is greedy)",
    )
    parser.add_argument(
        "--recorded",
        action="store_true",
        help="of a run: an episode that was recorded while it learnt, not a fresh one",
    )
    parser.add_argument("--gif", type=Path, metavar="FILE", help="write a GIF instead of playing")
    parser.add_argument(
        "--fps", type=int, default=8, help="steps per second (default: %(default)s)"
    )
    parser.add_argument(
        "--cell",
        type=int,
        default=32,
        help="width of a cell in the GIF, in pixels (default: %(default)s)",
    )
    set_option(parser, "OPTION=VALUE", "of a world: change its options; may be given several times")


def run(args: argparse.Namespace) -> None:
    check_range("--fps", args.fps, 1, 50)
    check_range("--seed", args.seed or 0, 0, 2**31 - 1)
    check_range("--cell", args.cell, 8, 128)
    check_range("--episode", args.episode or 0, 0, MOST_EPISODES)
    check_range("--epsilon", args.epsilon or 0.0, 0, 1)
    if args.which is not None:
        check_choice("--which", args.which, WHICH)
    console = plain_console()
    is_run = _is_path(args.world)
    film = _of_run(args, console) if is_run else _of_world(args)
    if args.gif is None:
        show(film, console, args.fps)
    else:
        write_gif(args.gif, (rgb(scene, args.cell) for scene in film), args.fps)
        what = f"{film[0].title}: " * is_run
        console.print(
            f"{args.gif}: {what}{len(film)} frames, score {film[-1].score:g}", soft_wrap=True
        )


def _is_path(text: str) -> bool:
    """Whether a folder or a file is meant: a world's name stays a world."""
    if canonical(text) in WORLDS or not text or is_prefixed(text):
        return False
    if "/" in text and not Path(text).exists():
        raise InputError(f"{text} is neither a run's folder nor an exported file")
    return Path(text).exists()


def _refuse(args: argparse.Namespace, names: tuple[str, ...], goes_with: str) -> None:
    for name in names:
        given = getattr(args, name)
        if given is not None and given is not False and given != []:
            raise InputError(f"--{name} goes with {goes_with}")


def _of_world(args: argparse.Namespace) -> list[Scene]:
    """A scripted policy."""
    seed, world = args.seed or 0, world_from(args.world, args.set)
    world, policy = world.for_seed(seed), args.policy or _policy(world)
    _refuse(args, OF_RUNS, "trained agents: give a run's folder, or a file from primax export")
    act = make_policy(policy, world)
    episode = jax.jit(lambda key: play(world, act, key))(jax.random.key(seed))
    return scenes(world, episode, title=f"{type(world).__name__} · {policy}")


def _policy(world: World) -> str:
    """The one that shows most."""
    return "chase" if isinstance(world, GridWorld) else "random"


def _of_run(args: argparse.Namespace, console: Console) -> list[Scene]:
    """A trained agent, or an episode of its past where there is no agent any more."""
    path = Path(args.world)
    _refuse(args, OF_WORLDS, "the name of a world, not with trained agents")
    if args.recorded and not path.is_dir():
        raise InputError(f"--recorded needs a run's folder: {path} has no recorded episodes")
    if args.recorded:
        _refuse(args, OF_NETWORKS, "fresh episodes: leave --recorded out")
        return _recorded(args)
    if path.is_dir() and disk.is_packed(path) and args.which is args.epsilon is None:
        console.print("a packed run has no networks: this is an episode that it recorded")
        return _recorded(args)
    return _fresh(args, console)


def _fresh(args: argparse.Namespace, console: Console) -> list[Scene]:
    start_jax(flags(*SAME_BITS))
    seed = first_seed(Path(args.world)) if args.seed is None else args.seed
    trained = find(args.world, args.which, (seed,), partial(console.print, soft_wrap=True))
    epsilon, number = args.epsilon or 0.0, args.episode or 0
    world, config = trained.learner.world, trained.learner.config
    label = find_method(config.method).label
    label += f" ({trained.which})" * (trained.which != "last")
    how = f"ε {epsilon:g}" if epsilon else "greedy"
    title = f"{type(world).__name__} · {label}, seed {seed}, {how}"
    return scenes(world.for_seed(seed), one_episode(trained, number, epsilon), title)


def _recorded(args: argparse.Namespace) -> list[Scene]:
    run = open_run(Path(args.world))
    found = replays.find(run, args.seed, args.episode)
    label = find_method(run.config.method).label
    title = (
        f"{type(found.world).__name__} · {label}, seed {found.seed}, step {found.step:,} of the run"
    )
    score = [*[None] * (len(found.planes) - 1), found.score]
    return seen(found.world, found.planes, score, found.left, title)
