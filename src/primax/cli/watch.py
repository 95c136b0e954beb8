"""Plays one episode of a scripted policy in the terminal, or writes it as a GIF."""

import argparse
from pathlib import Path

import jax

from primax.cli.common import plain_console, set_option, world_from
from primax.errors import check_range
from primax.worlds import WORLDS
from primax.worlds.drawing.film import scenes
from primax.worlds.drawing.render import rgb, show, write_gif
from primax.worlds.rollout import play
from primax.worlds.scripted import POLICIES, make_policy


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("world", help=", ".join(WORLDS))
    parser.add_argument(
        "--policy", default="chase", help=f"{', '.join(POLICIES)} (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="which episode (default: %(default)s)")
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
    set_option(parser, "OPTION=VALUE", "change options of the world; may be given several times")


def run(args: argparse.Namespace) -> None:
    check_range("--fps", args.fps, 1, 50)
    check_range("--seed", args.seed, 0, 2**31 - 1)
    check_range("--cell", args.cell, 8, 128)
    world = world_from(args.world, args.set).for_seed(args.seed)
    act = make_policy(args.policy, world)
    episode = jax.jit(lambda key: play(world, act, key))(jax.random.key(args.seed))
    film = scenes(world, episode, title=f"{type(world).__name__} · {args.policy}")
    console = plain_console()
    if args.gif is None:
        show(film, console, args.fps)
    else:
        write_gif(args.gif, (rgb(scene, args.cell) for scene in film), args.fps)
        console.print(f"{args.gif}: {len(film)} frames, score {film[-1].score:g}")
