"""How true are counts where the world gives no key? Estimates beside what was really lived.

    python benchmarks/keys.py counts maze place --out maze_place.json   # one world, one kind
    python benchmarks/keys.py cost --out cost.json                      # what each kind costs
    python benchmarks/keys.py table *_*.json
    python benchmarks/keys.py figure *_*.json --out docs/pictures/keys.svg

PRIME is trained with keys of that kind, or with counts off coin-flip networks (`cfn`), for as long
as the ring holds every step. The true key of a step is derived from what the ring holds, and the
true count is that of all steps so far. Schedules are those of a run of the usual length.
"""

import argparse
import json
import math
import re
import shlex
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import spearmanr
from timing import begun, markdown, start_jax, timed

from primax.agent import ring, training
from primax.agent.learner import Learner, make_learner
from primax.config.schema import Config
from primax.config.seeds import parse_seeds
from primax.errors import InputError, check_range
from primax.output.figure import make
from primax.output.sheet import ABSENT, Sheet
from primax.paper.figures.drawing import BLUE, GREEN, GREY, ORANGE, PINK, RED, legend_below
from primax.presets import configure
from primax.rewards.prime import Prime
from primax.rewards.prime.novelty import Where
from primax.runs.provenance import provenance
from primax.worlds import World
from primax.worlds.butterflies import Butterflies

ROOT = Path(__file__).parents[1]
WORLDS = ("butterflies", "maze", "two_wings")
GIVEN = "given"
KINDS: dict[str, dict[str, Any]] = {
    "simhash": {"keys.kind": "simhash"},
    "encoded": {"keys.kind": "encoded", "keys.bits": 12},
    "codes": {"keys.kind": "codes"},
    "place": {"keys.kind": "place"},
    "cfn": {"reward.novelty": "cfn", "keys.kind": "place"},
}
"""By name, the settings."""
STYLE: dict[str, tuple[str, Any, str]] = {
    "simhash": (RED, (0, (2.5, 1)), "v"),
    "encoded": (ORANGE, (0, (6, 1.5)), "s"),
    "codes": (GREEN, (0, (4, 1.2, 1, 1.2)), "D"),
    "place": (BLUE, "-", "o"),
    "cfn": (PINK, (0, (3, 1, 1, 1, 1, 1)), "^"),
    GIVEN: (GREY, "-", "P"),
}
"""Colour, dash and mark."""
WINDOWS = (1, 2, 5, 10, 20, 50, 99)
"""After which there is a comparison."""
MOST_STEPS = 100_000
SHOWN = (2_000, 10_000, 100_000)
"""Steps of the table's rank correlations; the nearest that were measured are taken."""
TICKS = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
"""Of the figure's steps."""
SMALLEST = 1e-6
"""The least novelty a count is read from."""
Arrays = dict[str, np.ndarray]


def configured(world: str, kind: str, preset: str, steps: int | None = None) -> Config:
    """PRIME with that kind of keys; no more steps than the ring holds, unless that is made longer."""
    config = configure("prime", world, preset, KINDS.get(kind))
    num = min(config.replay, MOST_STEPS) if steps is None else steps
    check_range("--steps", num, config.warmup + 1, MOST_STEPS)
    config = replace(config, steps=num, schedule_steps=config.schedule_span)
    horizon = config.world.horizon
    whole = -(-config.total_steps // horizon) * horizon
    return replace(config, replay=max(config.replay, whole))


def reader(learner: Learner) -> Any:
    """Of every row of every seed's ring: the cell, the action, what was paid, the key, the estimate."""
    spec, config = learner.reward.spec, learner.config
    agent = learner.world.channels.index("agent")

    def read(state: Any, clock: Any) -> dict[str, Any]:
        age = clock - jnp.arange(config.replay)
        rows = ring.read(state.ring, clock, age, spec.shape, spec.kind)
        cell = jnp.argmax(rows.obs[:, agent].reshape(config.replay, -1), axis=1)
        found = {"cell": cell, "action": rows.action, "task": rows.task, "key": rows.key}
        if not isinstance(learner.reward, Prime):
            return found
        novelty, live = learner.reward.freezer.novelty, state.reward.novelty
        if config.reward.novelty == "count":
            return found | {"estimate": live[rows.key]}
        where = Where(rows.obs, rows.action, rows.key)
        x = jnp.maximum(novelty.value(novelty.freeze(live), where), SMALLEST)
        return found | {"estimate": x**-2 - 1.0}

    return jax.jit(jax.vmap(read, in_axes=(0, None)))


def lived(read: Any, state: Any, clock: int) -> list[Arrays]:
    """The same for all steps so far, oldest first, of every seed."""
    found = {name: np.asarray(x) for name, x in read(state, jnp.int32(clock)).items()}
    num = len(found["cell"])
    return [{name: x[i, :clock] for name, x in found.items()} for i in range(num)]


def true_states(world: World, cell: np.ndarray, task: np.ndarray) -> np.ndarray:
    """The key of the state before every step: the cell and, in Butterflies, how many are alive."""
    if not isinstance(world, Butterflies):
        return cell
    before = np.cumsum(task) - task
    step = np.arange(len(task))
    caught = before - before[step - step % world.horizon]
    alive = world.num_butterflies - np.rint(caught).astype(int)
    return cell * (world.num_butterflies + 1) + alive


def by_key(key: np.ndarray, estimate: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of every distinct true key: how often it was met, and the mean estimate over its steps."""
    _, at, count = np.unique(key, return_inverse=True, return_counts=True)
    return count, np.bincount(at, weights=estimate) / count


def entropy(key: np.ndarray) -> float:
    """In bits, over rows."""
    share = np.unique(key, return_counts=True)[1] / len(key)
    return float(-np.sum(share * np.log2(share)))


def compared(
    state: np.ndarray, code: np.ndarray | None, count: np.ndarray, estimate: np.ndarray
) -> dict[str, float | None]:
    """How true the estimates of counts are, and what codes tell of states and the other way round."""
    varies = np.ptp(count) > 0 and np.ptp(estimate) > 0
    found: dict[str, Any] = {
        "rank": float(spearmanr(count, estimate).statistic) if varies else None,
        "calibration": float(np.median(estimate / count)),
        "states": len(np.unique(state)),
    }
    if code is not None:
        both = entropy(state.astype(np.int64) * (int(code.max()) + 1) + code)
        found["true_given_code"] = both - entropy(code)
        found["code_given_true"] = both - entropy(state)
        found["codes"] = len(np.unique(code))
    return {name: float(f"{x:.5g}") if isinstance(x, float) else x for name, x in found.items()}


def pictured(count: np.ndarray, estimate: np.ndarray) -> list[dict[str, float]]:
    """Quartiles of the estimates of keys whose true counts lie between two powers of two."""
    rows, power = [], np.floor(np.log2(count)).astype(int)
    for k in np.unique(power):
        own = power == k
        numbers = [np.median(count[own]), *np.quantile(estimate[own], (0.25, 0.5, 0.75))]
        named = zip(("true", "low", "middle", "high"), numbers, strict=True)
        rows.append({"keys": int(own.sum())} | {name: float(f"{x:.4g}") for name, x in named})
    return rows


def counts(args: argparse.Namespace) -> dict[str, Any]:
    """Trains, and compares after some of the windows."""
    config = configured(args.world, args.kind, args.preset, args.steps)
    learner, seeds = make_learner(config), parse_seeds(args.seeds)
    program = training.compile_program(learner, seeds)
    with training.multiplying(config):
        read = reader(learner)
        points, joint = [], []
        for state, progress in training.windows(program):
            window = (progress.clock - config.warmup) // config.window
            is_last = progress.clock >= config.total_steps
            if window in WINDOWS or is_last:
                rows, joint = _point(learner, lived(read, state, progress.clock))
                rows = [{"seed": seed} | row for seed, row in zip(seeds, rows, strict=True)]
                points.append({"window": window, "steps": progress.clock, "seeds": rows})
                print(json.dumps(points[-1]), file=sys.stderr, flush=True)
    about = {"world": args.world, "kind": args.kind, "preset": args.preset}
    about |= {"settings": KINDS.get(args.kind, {}), "compile_s": round(program.compile_s, 1)}
    return about | {"points": points, "joint": joint}


def _point(
    learner: Learner, seeds: Sequence[Arrays]
) -> tuple[list[dict[str, Any]], list[dict[str, float]]]:
    """What is found of every seed, and the picture of all together."""
    rows, found, num = [], [], learner.world.num_actions
    is_counted = learner.config.reward.novelty == "count"
    for own in seeds:
        state = true_states(learner.world, own["cell"], own["task"])
        found.append(by_key(state * num + own["action"], own["estimate"]))
        rows.append(compared(state, own["key"] // num if is_counted else None, *found[-1]))
    return rows, pictured(*(np.concatenate(x) for x in zip(*found, strict=True)))


def cost(args: argparse.Namespace) -> dict[str, Any]:
    """Windows of every kind in turns; the first is not counted, for memory is laid out in it."""
    names, seeds = (GIVEN, *KINDS), len(parse_seeds(args.seeds))
    check_range("--windows", args.windows, 1, WINDOWS[-1] - 1)
    usual = configured("maze", GIVEN, args.preset)
    # Keys are renewed only as long as the ring holds every step.
    steps = max(usual.total_steps, usual.warmup + (args.windows + 1) * usual.window)
    configs = {name: configured("maze", name, args.preset, steps) for name in names}
    learners = {name: make_learner(config) for name, config in configs.items()}
    programs = {
        name: training.compile_program(learner, tuple(range(seeds)))
        for name, learner in learners.items()
    }
    states = {name: begun(program, seeds) for name, program in programs.items()}
    times: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(args.windows + 1):
        for name, config in configs.items():
            clock = config.warmup + turn * config.window
            began = time.process_time()
            states[name], _, took = timed(whole(programs[name]), states[name], clock)
            times[name].append(time.process_time() - began if args.cpu else took)
    rows = [_costs(name, learners[name], times, seeds) for name in names]
    about = {"world": "maze", "preset": args.preset, "seeds": seeds, "cpu": args.cpu}
    return about | {"kinds": rows}


def whole(program: training.Program) -> Any:
    """A window, and before it the renewal of keys where one is due."""

    def one(state: Any, clock: Any) -> Any:
        if program.renew and program.learner.renews(int(clock)):
            state = program.renew(state, clock)
        return program.window(state, clock)

    return one


def _costs(
    name: str, learner: Learner, times: dict[str, list[float]], seeds: int
) -> dict[str, Any]:
    """Of one kind: windows that renew keys apart from those that do not, and a whole ring of both."""
    keys, config, whole = learner.keys, learner.config, learner.config.replay
    windows = (whole - config.warmup) // config.window
    due = set(keys.renewals(windows)) if keys else set()

    def ratio(is_due: bool) -> float | None:
        turns = [t for t in range(1, len(times[name])) if (t in due) == is_due]
        found = [times[name][t] / times[GIVEN][t] for t in turns]
        return statistics.median(found) if found else None

    plain, renewing = ratio(False), ratio(True)
    parts = [(plain, windows - len(due)), (renewing, len(due))]
    known = [(each, num) for each, num in parts if each is not None]
    all_ = sum(each * num for each, num in known) / max(sum(num for _, num in known), 1)
    base = statistics.median(times[GIVEN][1:])
    ratios = {"ratio": all_ or None, "plain": plain, "renewing": renewing}
    return {
        "kind": name,
        "steps_per_s": round(seeds * config.window / (base * all_), 1) if all_ else None,
        **{what: x and round(x, 3) for what, x in ratios.items()},
        "renewals": f"{len(due)} of {windows}",
        "window_s": [round(x, 4) for x in times[name]],
    }


COSTS = {
    "kind": "kind",
    "steps_per_s": "steps/s",
    "ratio": "time × that of the given key",
    "plain": "in plain windows",
    "renewing": "in windows that renew keys",
    "renewals": "of these",
}


def costs(found: dict[str, Any]) -> str:
    """The table of what `cost` found."""
    heads = COSTS | ({"steps_per_s": "steps per CPU second"} if found["cpu"] else {})
    return markdown(found["kinds"], heads)


def opened(files: Sequence[Path]) -> dict[tuple[str, str], dict[str, Any]]:
    """What `counts` wrote, by world and kind, in the order of both."""
    found = {}
    for path in files:
        one = json.loads(path.read_text(encoding="utf-8"))
        if "points" not in one:
            raise InputError(f"{path} is no file that counts wrote")
        if (one["world"], one["kind"]) in found:
            raise InputError(f"{path}: {one['world']} with {one['kind']} is there twice")
        found[one["world"], one["kind"]] = one
    order = [(world, kind) for world in WORLDS for kind in (GIVEN, *KINDS)]
    return {pair: found[pair] for pair in sorted(found, key=order.index)}


def mean(point: dict[str, Any], name: str) -> float:
    """Over the seeds that have it."""
    known = [row[name] for row in point["seeds"] if row.get(name) is not None]
    return float(np.mean(known)) if known else math.nan


def table(files: dict[tuple[str, str], dict[str, Any]]) -> Sheet:
    """Means over seeds."""
    steps = {point["steps"] for one in files.values() for point in one["points"]}
    shown = [min(steps, key=lambda x: abs(math.log(x / wanted))) for wanted in SHOWN]
    shown, rows = list(dict.fromkeys(shown)), []
    for (world, kind), one in files.items():
        at = {point["steps"]: point for point in one["points"]}
        last = one["points"][-1]
        ranks = [_text(mean(at[x], "rank")) if x in at else ABSENT for x in shown]
        names = ("calibration", "true_given_code", "code_given_true")
        codes, states = (_text(mean(last, name), 0) for name in ("codes", "states"))
        each = [_text(mean(last, name)) for name in names]
        rows.append((world, kind, *ranks, *each, f"{codes} / {states}"))
    heads = [f"rank correlation at {x / 1000:g}k" for x in shown]
    heads += ["estimate / true", "H(true | code)", "H(code | true)", "codes / true states"]
    return Sheet("keys", "", ("world", "keys", *heads), tuple(rows))


def bonuses(files: dict[tuple[str, str], dict[str, Any]]) -> Sheet:
    """Over training, how many times its true value a bonus of 1/√count is: means over seeds."""
    steps = sorted({point["steps"] for one in files.values() for point in one["points"]})
    rows = []
    for (world, kind), one in files.items():
        at = {point["steps"]: point for point in one["points"]}
        rows.append((world, kind, *(_text(bonus(at[x])) if x in at else ABSENT for x in steps)))
    return Sheet("bonus", "", ("world", "keys", *(f"{x / 1000:g}k" for x in steps)), tuple(rows))


def bonus(point: dict[str, Any]) -> float:
    """√(true / estimated count) of each seed's median over keys, its mean over the seeds."""
    known = [row["calibration"] for row in point["seeds"] if row["calibration"] > 0]
    return float(np.mean(np.array(known) ** -0.5)) if known else math.nan


def _text(value: float, digits: int = 2) -> str:
    """A decimal, large numbers as well; a dash where there is none."""
    return ABSENT if math.isnan(value) else f"{value:z,.{digits}f}"


def draw(files: dict[tuple[str, str], dict[str, Any]], figure: Any) -> None:
    """A row of panels for each world: rank correlation over steps, and both counts at the end."""
    worlds = list(dict.fromkeys(world for world, _ in files))
    panels = figure.subplots(len(worlds), 2, squeeze=False, sharex="col", width_ratios=(1, 1.15))
    for (ranks, ends), world in zip(panels, worlds, strict=True):
        own = {kind: one for (place, kind), one in files.items() if place == world}
        for i, (kind, one) in enumerate(own.items()):
            _rank_line(ranks, kind, one["points"])
            _quartiles(ends, kind, one["joint"], 1.05 ** (i - (len(own) - 1) / 2))
        _dressed(ranks, ends, max(row["true"] for one in own.values() for row in one["joint"]))
        ranks.set_title(world.replace("_", " ").capitalize(), fontsize=9)
    last = max(one["points"][-1]["steps"] for one in files.values())
    ticks = [x for x in TICKS if x <= last * 1.1]
    panels[0][0].set_xticks(ticks, [f"{x // 1000}k" for x in ticks])
    panels[-1][0].set_xlabel("steps")
    panels[-1][1].set_xlabel(f"true count after {last:,} steps")
    legend_below(figure, panels[:, 0], {}, loc="outside lower center", ncols=len(STYLE))


def _dressed(ranks: Any, ends: Any, most: float) -> None:
    """What a world's two panels have beside the data."""
    ranks.set(xscale="log", ylabel="rank correlation")
    ranks.set_ylim(min(0.0, ranks.get_ylim()[0]), 1.03)
    ends.plot([1, most], [1, most], color="#000000", lw=1, ls=(0, (1, 1.5)), zorder=1)
    ends.set(xscale="log", yscale="log", ylabel="estimated count")
    for axes in (ranks, ends):
        axes.tick_params(labelsize=8)
        axes.minorticks_off()


def _rank_line(axes: Any, kind: str, points: Sequence[dict[str, Any]]) -> None:
    """The mean over seeds."""
    colour, dash, mark = STYLE[kind]
    at, middle = [point["steps"] for point in points], [mean(point, "rank") for point in points]
    axes.plot(at, middle, color=colour, ls=dash, lw=1.5, marker=mark, ms=4.5, mew=0, label=kind)


def _quartiles(axes: Any, kind: str, rows: Sequence[dict[str, float]], aside: float) -> None:
    """Medians with bars from the first quartile to the third, a little aside from other kinds'."""
    colour, dash, mark = STYLE[kind]
    x = np.array([row["true"] for row in rows]) * aside
    low, middle, high = (
        np.array([row[name] for row in rows]) for name in ("low", "middle", "high")
    )
    gap = np.full(len(x), np.nan)
    bars = [np.stack(each, axis=1).ravel() for each in ((x, x, gap), (low, high, gap))]
    axes.plot(*bars, color=colour, lw=1.8, alpha=0.6)  # one path: the file stays small
    axes.plot(x, middle, color=colour, ls=dash, lw=1, marker=mark, ms=4.5, mew=0)


def shortened(svg: str) -> str:
    """The same picture: coordinates to a tenth of a point, and no indentation."""
    return re.sub(r"(\d\d\.\d)\d+", r"\1", re.sub(r"\n +", "\n", svg))


def written(path: Path, found: dict[str, Any], began: float) -> None:
    """With how it was made."""
    # Folders are this machine's own, and say nothing of what was run.
    words = [Path(word).name if Path(word).is_absolute() else word for word in sys.argv]
    about: dict[str, Any] = {"command": shlex.join(["python", *words])}
    about |= {"seconds": round(time.perf_counter() - began, 1), **provenance()}
    text = json.dumps({"about": about} | found)
    for opening in ("world", "window", "seed", "keys", "kind"):
        text = text.replace(f'{{"{opening}"', f'\n{{"{opening}"')
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")


def run(args: argparse.Namespace) -> None:
    """One of the commands."""
    began = time.perf_counter()
    if args.what in ("counts", "cost"):
        start_jax(fast=False)
        found = counts(args) if args.what == "counts" else cost(args)
        written(args.out, found, began)
        if args.what == "cost":
            print(costs(found))
        return
    files = opened(args.files)
    if args.what == "table":
        print(table(files).body(), bonuses(files).body(), sep="\n", end="")
    else:
        rows = len({world for world, _ in files})
        make(args.out, (8.6, 0.5 + 2.3 * rows), lambda figure: draw(files, figure))
        if args.out.suffix == ".svg":
            args.out.write_text(shortened(args.out.read_text("utf-8")), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="what", required=True)
    one = commands.add_parser("counts", help="estimates beside true counts")
    one.add_argument("world", choices=WORLDS)
    one.add_argument("kind", choices=(GIVEN, *KINDS))
    one.add_argument("--steps", type=int, help="as many as the ring holds, if not given")
    one.add_argument("--seeds", default="100-102", help="100-102, if not given")
    one.add_argument("--out", type=Path, required=True, help="a JSON file")
    two = commands.add_parser("cost", help="what each kind costs beside the given key")
    two.add_argument("--seeds", default="3", help="how many")
    two.add_argument("--windows", type=int, default=8, help="turns that count")
    two.add_argument("--cpu", action="store_true", help="the processor's seconds, not the clock's")
    two.add_argument("--out", type=Path, default=ROOT / "results" / "keys" / "cost.json")
    for each in (one, two):
        each.add_argument("--preset", default="paper", choices=("paper", "quick", "smoke"))
    for name in ("figure", "table"):
        each = commands.add_parser(name, help="of files that counts wrote")
        each.add_argument("files", nargs="+", type=Path)
        if name == "figure":
            each.add_argument("--out", type=Path, default=ROOT / "docs" / "pictures" / "keys.svg")
    args = parser.parse_args()
    try:
        run(args)
    except InputError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
