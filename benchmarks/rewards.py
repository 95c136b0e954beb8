"""What each method costs beside Extrinsic-DQN: the same world, preset and seeds, in one process.

    python benchmarks/rewards.py --preset quick --seeds 2 --windows 5
    python benchmarks/rewards.py --preset paper --seeds 5 --windows 3 --threads 8 --out rewards.json

Every method is compiled as `primax train` compiles it, flags included, but for its cache. Then they
run in turns, a window each, and a method's window is compared with the one of `task` in the same
turn; the median over turns is printed, and the range. A round is four steps and one update.
"""

import argparse
import json
import statistics
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from timing import begun, markdown, start_jax, timed

from primax.agent import training
from primax.agent.learner import make_learner
from primax.config.schema import Config
from primax.config.seeds import parse_seeds
from primax.errors import InputError, check_range
from primax.methods import METHODS
from primax.presets import configure
from primax.runs.provenance import provenance

BASE = "task"
COLUMNS = {
    "method": "method",
    "round_ms": "ms a round",
    "ratio": "× `task`",
    "range": "in single turns",
    "compile_s": "compile s",
    "state_mb": "state, MB a seed",
}


def measure(args: argparse.Namespace) -> list[dict]:
    """A row for each method, that of the base first."""
    names = list(dict.fromkeys([BASE, *args.methods]))
    configs = {name: configure(name, args.world, args.preset) for name in names}
    seeds = parse_seeds(args.seeds)
    with ThreadPoolExecutor(args.threads) as pool:
        made = pool.map(
            lambda name: training.compile_program(make_learner(configs[name]), seeds), names
        )
        programs = dict(zip(names, made, strict=True))
    states = {name: begun(program, len(seeds)) for name, program in programs.items()}
    times: dict[str, list[float]] = {name: [] for name in names}
    # The first turn is not counted: memory is laid out in it.
    for turn in range(args.windows + 1):
        for name, config in configs.items():
            clock = config.warmup + turn * config.window
            states[name], _, seconds = timed(programs[name].window, states[name], clock)
            times[name] += [seconds] if turn else []
    return [row(name, configs[name], programs[name], times) for name in names]


def row(
    name: str, config: Config, program: training.Program, times: dict[str, list[float]]
) -> dict:
    """What is reported of a method."""
    rounds = config.window // config.update_every
    ratios = [ours / base for ours, base in zip(times[name], times[BASE], strict=True)]
    return {
        "method": name,
        "round_ms": round(1e3 * statistics.median(times[name]) / rounds, 3),
        "ratio": round(statistics.median(ratios), 2),
        "ratios": [round(ratio, 3) for ratio in ratios],
        "range": f"{min(ratios):.2f} to {max(ratios):.2f}",
        "compile_s": round(program.compile_s, 1),
        "state_mb": round(program.memory["state_bytes_a_seed"] / 1e6, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="+", default=[x for x in METHODS if x != "none"])
    parser.add_argument("--world", default="butterflies")
    parser.add_argument("--preset", default="quick")
    parser.add_argument("--seeds", default="2", help="how many")
    parser.add_argument("--windows", type=int, default=5, help="turns that count")
    parser.add_argument("--threads", type=int, default=1, help="methods compiled at a time")
    parser.add_argument("--fast", action="store_true", help="as in primax train")
    parser.add_argument("--out", type=Path, help="a JSON file for all of it")
    args = parser.parse_args()
    start_jax(args.fast)
    try:
        check_range("--windows", args.windows, 1, 1_000)
        check_range("--threads", args.threads, 1, 100)
        rows = measure(args)
    except InputError as error:
        parser.error(str(error))
    about = {name: getattr(args, name) for name in ("world", "preset", "seeds", "threads")}
    found = {"rows": rows, "windows": args.windows, **about, **provenance()}
    if args.out:
        args.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(markdown(rows, COLUMNS))
    print(f"{found['device']}, jax {found['jax']}, commit {found['commit']}")


if __name__ == "__main__":
    main()
