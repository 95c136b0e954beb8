"""Lists the worlds, and what scripted policies score in them, next to exact and published numbers."""

import argparse
import math

from rich.box import SIMPLE_HEAD
from rich.table import Table

from primax.cli.common import plain_console, set_option, world_from
from primax.config.fields import walk
from primax.errors import InputError, check_range
from primax.paper.published import scripted_score
from primax.worlds import SUITE, SUITES, WORLDS, GridWorld, World, noisy_names, world_name
from primax.worlds.exact import expected_score
from primax.worlds.rollout import outcomes
from primax.worlds.scripted import POLICIES, make_policy
from primax.worlds.tally import Outcome


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "world", nargs="?", help="show only this world, with its options (default: all worlds)"
    )
    parser.add_argument(
        "--episodes",
        type=int,
        default=10_000,
        help="episodes each policy plays (default: %(default)s)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of all randomness (default: %(default)s)"
    )
    set_option(parser, "OPTION=VALUE", "change options of the world; may be given several times")


def run(args: argparse.Namespace) -> None:
    check_range("--episodes", args.episodes, 2, 10_000_000)
    check_range("--seed", args.seed, 0, 2**31 - 1)
    if args.set and args.world is None:
        raise InputError("--set goes with one world: primax worlds NAME --set OPTION=VALUE")
    console = plain_console()
    for name in [args.world] if args.world else WORLDS:
        world = world_from(name, args.set).for_seed(args.seed)
        if args.world:
            console.print(_options(world))
        console.print(_scores(world_name(world.config), world, args))
    if not args.world:
        console.print("primax worlds NAME lists a world's options; primax watch NAME plays it.")
        console.print(f"Worlds of other suites ({', '.join(SUITES)}) are named so: {SUITE}.")
        console.print(
            f"noisy: before a name puts noise beside that world: {', '.join(noisy_names())}."
        )


def _options(world: World) -> Table:
    table = Table(
        "option", "value", "what", title=type(world).__doc__, title_justify="left", box=SIMPLE_HEAD
    )
    for field in walk(world.config):
        table.add_row(field.name, str(field.value).strip(), field.doc.replace("`", ""))
    return table


def _scores(name: str, world: World, args: argparse.Namespace) -> Table:
    """A row a policy; the interval is the mean's, by the normal approximation."""
    title = f"\n{name}: {world.score}, n = {args.episodes:,} episodes"
    columns = ["mean", "std", "95% interval", "exact", "paper"]
    has_grid = isinstance(world, GridWorld)
    if args.world:
        columns = [*columns[:-1], "coverage", "distance"] if has_grid else [*columns[:3], "length"]
    table = Table("policy", title=title, title_justify="left", box=SIMPLE_HEAD)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    is_papers = world.config == type(world.config)()
    for policy in POLICIES if has_grid else ("random",):
        result = outcomes(world, make_policy(policy, world), args.seed, args.episodes)
        cells = _cells(result, expected_score(world, policy))
        cells["paper"] = scripted_score(name, policy) if is_papers else ""
        table.add_row(policy, *(cells[column] for column in columns))
    return table


def _cells(result: Outcome, exact: float | None) -> dict[str, str]:
    mean, std = result.score.mean(dtype=float), result.score.std(ddof=1, dtype=float)
    half = 1.96 * std / math.sqrt(result.score.size)
    cells = {
        "mean": f"{mean:.4f}",
        "std": f"{std:.3f}",
        "95% interval": f"{mean - half:.4f} to {mean + half:.4f}",
        "exact": "" if exact is None else f"{exact:.7f}",
    }
    if result.coverage is None or result.distance is None:
        assert result.length is not None
        return cells | {"length": f"{result.length.mean():.1f}"}
    chased = result.distance[result.distance == result.distance]
    cells["coverage"] = f"{result.coverage.mean():.3f}"
    return cells | {"distance": f"{chased.mean():.2f}" if chased.size else ""}
