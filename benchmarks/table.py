"""One table: what training costs by method and seeds, beside PyTorch and the measured ceiling.

    python benchmarks/table.py --out table.json
    python benchmarks/table.py prime:15:paper rnd:15:paper

A case is METHOD:SEEDS:PRESET, in Butterflies; docs/benchmarks.md says what each column is.
"""

import argparse
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from timing import (
    Case,
    Waiting,
    in_turns,
    markdown,
    options,
    parse_case,
    reported,
    run_of,
    start_jax,
)

from primax.config.schema import Config
from primax.methods import build
from primax.runs.provenance import provenance

ON_GPU = [f"{method}:{seeds}:paper" for method in ("task", "prime") for seeds in (1, 15, 60, 240)]
ON_CPU = [f"{method}:{seeds}:quick" for method in ("task", "prime") for seeds in (1, 4)]
ON_CPU += ["task:1:paper", "prime:1:paper"]
IN_TORCH = ("task", "prime")
COLUMNS = {
    "method": "method",
    "preset": "preset",
    "seeds": "seeds",
    "steps_per_s": "env-steps/s, learning",
    "round_ms": "ms a round",
    "gflop_s": "GFLOP/s",
    "share": "of the ceiling, %",
    "state_mb": "state, MB a seed",
    "temporary_mb": "temporaries, MB",
    "compile_s": "compile, s",
    "torch_ms": "PyTorch, ms a round and seed",
    "ratio": "× PyTorch",
}


def flop_a_round(config: Config) -> int | None:
    """Of the matrix products that one seed's steps, update and share of a refresh ask for.

    A way back counts as two ways forward. What is only reported is not counted; None for methods
    whose networks are not counted here.
    """
    if config.method not in IN_TORCH:
        return None
    spec, net, rows = build(config)[1].spec, config.net, config.critics.batch
    (channels, *sides), actions = spec.shape, spec.num_actions
    cells, first, second = sides[0] * sides[1], net.first_channels, net.second_channels

    def trunk(embedding: int) -> int:
        return 2 * cells * (9 * channels * first + 9 * first * second + second * embedding)

    def whole(outputs: int) -> int:
        return trunk(net.embedding) + 2 * net.embedding * outputs

    # Online and target after the step, online before it and back; and one row to act on each step.
    flop = config.critics.heads * whole(actions) * (rows * 5 + config.update_every)
    if config.method == "prime":
        reward, head = config.reward, whole(actions * config.reward.quantiles)
        features = trunk(reward.feature_dim)
        # Target and prior after the step, prior and online before it, and back; φ of both, and back.
        flop += rows * (reward.heads * head * 6 + features * 6)
        looked_at = config.recent * config.update_every // config.window
        flop += looked_at * (reward.heads * head * 2 + features)
    return flop


def ceilings() -> dict[str, float]:
    """GFLOP/s of one large matrix product, by what its factors are rounded to."""
    is_gpu = jax.default_backend() == "gpu"
    kinds = {"float16": jnp.float16, "TF32": jnp.float32} if is_gpu else {"float32": jnp.float32}
    size, found = (8192 if is_gpu else 2048), {}
    multiply = jax.jit(lambda a, b: jnp.matmul(a, b, preferred_element_type=jnp.float32))
    for name, kind in kinds.items():
        a = jax.random.normal(jax.random.key(0), (size, size)).astype(kind)
        jax.block_until_ready(multiply(a, a))
        times = []
        for _ in range(5):
            start = time.perf_counter()
            jax.block_until_ready([multiply(a, a) for _ in range(4)])
            times.append((time.perf_counter() - start) / 4)
        found[name] = 2e-9 * size**3 / min(times)
    return found


def row(case: Case, took: dict[str, Any], about: dict[str, Any]) -> dict[str, Any]:
    """What is reported of a case."""
    config, flop, ms = case.config, flop_a_round(case.config), took["round_ms"]
    found = {
        "method": case.method,
        "preset": case.preset,
        "seeds": case.seeds,
        "steps_per_s": 1e3 * case.seeds * config.update_every / ms,
        "state_mb": took["state_bytes_a_seed"] / 1e6,
        "temporary_mb": took["temporary_bytes"] / 1e6,
        **took,
    }
    if flop is not None:
        found["gflop_s"] = 1e-6 * flop * case.seeds / ms
        found["share"] = 100 * found["gflop_s"] / about["ceilings"][about["factors"]]
    torch = about["torch"].get("cases", {}).get(f"{case.method}:{case.preset}")
    if torch:
        found["torch_ms"] = torch["round_ms"]
        found["ratio"] = torch["round_ms"] * case.seeds / ms
    return found


def comparator(cases: list[Case]) -> list[Callable[[], Waiting]]:
    """How the PyTorch side is started, if there is anything to compare, and PyTorch."""
    names = list(dict.fromkeys(f"{x.method}:{x.preset}" for x in cases if x.method in IN_TORCH))
    if not names:
        return []
    if importlib.util.find_spec("torch") is None:
        print("no PyTorch here; to compare: pip install -c constraints.txt -e '.[bench]'")
        return []
    device = "cuda" if jax.default_backend() == "gpu" else "cpu"
    words = [*names, "--device", device, "--wait"]
    return [lambda: Waiting("torch_loop.py", words, {"JAX_PLATFORMS": "cpu"})]


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Everything: PyTorch, the cases, the ceiling."""
    is_gpu = jax.default_backend() == "gpu"
    cases = [parse_case([name]) for name in args.cases or (ON_GPU if is_gpu else ON_CPU)]
    runs = [run_of(case, args) for case in cases]
    torch = [] if args.no_torch else comparator(cases)
    found = in_turns([*torch, *runs], args.jobs)
    about = {"torch": found.pop(0) if torch else {}, "ceilings": ceilings()}
    by_kernels = "float16" if provenance()["kernels"] else "TF32"
    about["factors"] = by_kernels if is_gpu else "float32"
    rows = [row(case, took, about) for case, took in zip(cases, found, strict=True)]
    return {"rows": rows, **about}


def show(found: dict[str, Any]) -> None:
    """The table, and what it was made with."""
    print(markdown(found["rows"], COLUMNS))
    tops = ", ".join(f"{name} {value:,.0f}" for name, value in found["ceilings"].items())
    print(f"\nceiling, GFLOP/s: {tops}; factors here are {found['factors']}")
    for preset, gaps in found["torch"].get("check", {}).items():
        apart = ", ".join(f"{name} {gap:.0e}" for name, gap in gaps.items())
        print(f"PyTorch and primax apart by, {preset}: {apart}")
    libraries = {"jax": found["jax"], "torch": found["torch"].get("torch", "none")}
    made = [found["device"], *(f"{name} {value}" for name, value in libraries.items())]
    made += [f"commit {found['commit']}", f"{found['jobs']} compiled at a time"]
    print(", ".join([*made, f"{found['took_s']:.0f} s in all"]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", metavar="METHOD:SEEDS:PRESET")
    options(parser)
    parser.add_argument("--no-torch", action="store_true", help="leave PyTorch out")
    args = parser.parse_args()
    start_jax(args.fast)
    show(reported(lambda: measure(args), parser))


if __name__ == "__main__":
    main()
