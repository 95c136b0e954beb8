"""Plays fresh episodes with the trained agents of a run, of all seeds at once, and says how they do. \
Nothing is learnt, and the run is left as it is."""

import argparse
from functools import partial
from pathlib import Path

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from primax import stats
from primax.cli.common import SAME_BITS, flags, start_jax, work_console
from primax.cli.stats_sheets import FEW, FOOTNOTE, interval, text
from primax.cli.train import references
from primax.config.seeds import parse_some
from primax.errors import InputError, check_choice
from primax.runs import disk
from primax.runs.evaluation import Evaluation, check, play_all
from primax.runs.export import WHICH
from primax.runs.networks import Trained, find
from primax.runs.progress import Counter
from primax.runs.tables import csv_rows
from primax.worlds import World


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", type=Path, help="a run's folder, or a file from primax export")
    parser.add_argument(
        "--episodes", type=int, default=100, help="of each seed (default: %(default)s)"
    )
    parser.add_argument(
        "--epsilon",
        type=float,
        default=0.0,
        help="the chance of a random action (default: 0, which is greedy)",
    )
    which_option(parser)
    parser.add_argument(
        "--seeds",
        help="which of the run's seeds: a list (0,3) or a range (0-4; 9-9 is seed 9 alone); "
        "default: all",
    )
    parser.add_argument(
        "--key",
        type=int,
        default=0,
        help="of all randomness; another key gives other episodes (default: %(default)s)",
    )
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write one row for each episode")


def which_option(parser: argparse.ArgumentParser) -> None:
    """`--which`, of trained agents."""
    parser.add_argument(
        "--which",
        help=f"{', '.join(WHICH)}: the networks as they are now, as they were at the best coverage, "
        "or as they were at the best task score (default: last; of a file, what it has)",
    )


def run(args: argparse.Namespace) -> None:
    check(args.episodes, args.epsilon, args.key, "--")
    if args.which is not None:
        check_choice("--which", args.which, WHICH)
    if args.csv and not args.csv.parent.is_dir():
        raise InputError(f"cannot write {args.csv}: there is no such folder")  # before the work
    seeds = parse_some(args.seeds, "--seeds")
    start_jax(flags(*SAME_BITS))
    console = work_console()
    trained = find(args.path, args.which, seeds, partial(console.print, soft_wrap=True))
    console.print(_announced(trained, args.episodes, args.epsilon), soft_wrap=True)
    done = play_all(
        trained, args.episodes, args.epsilon, args.key, Counter(console, "episodes of each seed")
    )
    console.print(_table(done))
    for note in _notes(done, trained.learner.world):
        console.print(note, soft_wrap=True)
    if args.csv:
        try:
            disk.write_whole(args.csv, csv_rows(done.table, True))
        except OSError as error:
            raise InputError(f"cannot write {args.csv}: {error.strerror}") from error
        console.print(f"{args.csv}: {done.score.size:,} episodes")


def _announced(trained: Trained, episodes: int, epsilon: float) -> str:
    steps = sorted(set(trained.steps))
    ends = f"{steps[0]:,}" if len(steps) == 1 else f"{steps[0]:,} to {steps[-1]:,}"
    how = f"at ε {epsilon:g}" if epsilon else "greedily"
    what = f"{trained.learner.config.method} in {type(trained.learner.world).__name__}"
    return (
        f"{what}: {trained.which} networks, of step {ends}, play {episodes:,} episodes a seed {how}"
    )


def _table(done: Evaluation) -> Table:
    """A row for each seed, and one for their mean."""
    table = Table(box=SIMPLE_HEAD)
    last = "coverage" if done.length is None else "length"
    more = () if done.noise is None else ("noise",)
    for column in ("seed", "episodes", "score", "95% interval", "reach", last, *more):
        table.add_column(column, justify="right")
    for row, seed in enumerate(done.seeds):
        mean, std = stats.mean_std(done.score[row])
        half = 1.96 * std / np.sqrt(done.episodes)
        between = f"{text(mean - half)} to {text(mean + half)}" if done.episodes > 1 else ""
        own = slice(row, row + 1)
        table.add_row(str(seed), f"{done.episodes:,}", text(mean), between, *_shares(done, own))
    if len(done.seeds) > 1:
        means = done.score.mean(axis=1, dtype=float)
        between = interval(*stats.interval(means, np.mean), len(means))
        size, shares = f"{done.score.size:,}", _shares(done, slice(None))
        table.add_row("mean", size, text(means.mean()), between, *shares)
    return table


def _notes(done: Evaluation, world: World) -> list[str]:
    """What the columns are."""
    notes = [
        f"score: {world.score}; reach: share of episodes with a score above 0",
        "interval of a seed: over its episodes, by the normal approximation",
    ]
    if len(done.seeds) > 1:
        notes[-1] += "; of the mean: over the seeds' means, by bootstrap"
    if len(done.seeds) == FEW:
        notes.append(FOOTNOTE)
    return [*notes, *filter(None, [references(world, done.seeds)])]


def _shares(done: Evaluation, rows: slice) -> tuple[str, ...]:
    reach = f"{done.reach[rows].mean():.3f}"
    noise = () if done.noise is None else (f"{done.noise[rows].mean(dtype=float):.3f}",)
    if done.coverage is None:
        assert done.length is not None
        return reach, f"{done.length[rows].mean(dtype=float):.1f}", *noise
    return reach, f"{done.coverage[rows].mean(dtype=float):.3f}", *noise
