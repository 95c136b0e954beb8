"""Which reward makes a world model learn what can be learnt? A grid of which half is noise.

    python benchmarks/curiosity_critic.py                       # all rewards, five seeds
    python benchmarks/curiosity_critic.py visits prime --seeds 1-2 --steps 2000 --undivided
    python benchmarks/curiosity_critic.py --page                # the tables of docs/curiosity_critic.md

The experiment of "Curiosity-Critic" (Bhaskara & Wang 2026), built from its description: the world and
the agent are in critic_grid.py, the rewards in critic_rewards.py. An agent moves for 35,000 steps with
no reward but a curious one, a world model learns from what it sees, and what counts is the model's error
on the learnable half at the end. All seeds of a reward are one program.
"""

import argparse
import json
import shlex
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import critic_grid as grid
import critic_parts
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from critic_rewards import REWARDS, Payer, Seen, payer
from jaxtyping import Array, Bool, Float, Int, Key

from primax.config.seeds import parse_seeds
from primax.errors import check_choice, check_range
from primax.output.sheet import ABSENT, Sheet, plus_minus
from primax.paper.pages.embed import Blocks, fill
from primax.runs.provenance import provenance

ROOT = Path(__file__).parents[1]
PAGE, KEPT = ROOT / "docs" / "curiosity_critic.md", ROOT / "results" / "noise"
TABLES = {
    "divided": ("curiosity_critic.json", "curiosity_critic_more.json"),
    "undivided": ("curiosity_critic_undivided.json",),
}
"""By their names in the page, each with the files that have its rows."""
PARTS = "curiosity_critic_parts.json"
"""What PRIME makes of it, by critic_parts.py."""
STEPS, CHUNK = 35_000, 1_000


class Life(eqx.Module):
    """All that changes in a run."""

    cell: Int[Array, ""]
    values: Float[Array, " cells"]
    scale: grid.Scale
    model: grid.Learner
    paid: Any
    """The reward's own state."""
    last: tuple[Int[Array, ""], Float[Array, " pixels"], Int[Array, ""]]
    """The cell before, what it showed, and what was done."""
    is_met: Bool[Array, " cells"]
    """Cells that were visited."""
    clock: Int[Array, ""]


def born(reward: Payer, key: Key[Array, ""]) -> Life:
    """A run before its first step; the world model is the same for all rewards."""
    k_model, k_paid = jax.random.split(key)
    none = jnp.zeros(())
    return Life(
        cell=jnp.int32(grid.START),
        values=jnp.full(grid.NUM_CELLS, grid.OPTIMISM),
        scale=grid.Scale(none, none),
        model=grid.Learner.of(grid.world_model(k_model)),
        paid=reward.init(k_paid),
        last=(jnp.int32(grid.START), jnp.zeros(grid.NUM_PIXELS), jnp.int32(0)),
        is_met=jnp.zeros(grid.NUM_CELLS, bool),
        clock=jnp.int32(0),
    )


def step(
    reward: Payer, is_divided: bool, life: Life, key: Key[Array, ""]
) -> tuple[Life, Bool[Array, ""]]:
    """Look, learn, be paid, move, and value the cell that was left; says whether it was learnable."""
    k_screen, k_move = jax.random.split(key)
    cell, place = life.cell, jnp.asarray(grid.PLACES)[life.cell]
    screen = grid.screen(cell, k_screen)
    model = life.model.learnt(place, screen)
    before, after = (grid.distance(x.net(place), screen) for x in (life.model, model))
    seen = Seen(cell, screen, before, after, *life.last, life.clock == 0)
    paid, worth = reward.pay(life.paid, seen)
    action = grid.chosen(life.values, cell, reward.epsilon, k_move)
    scale, ratio = grid.scaled(life.scale, worth)
    worth = ratio if is_divided else worth
    life = Life(
        cell=jnp.asarray(grid.LEADS_TO)[cell, action],
        values=grid.updated(life.values, cell, worth, grid.GAMMA),
        scale=scale,
        model=model,
        paid=paid,
        last=(cell, screen, action),
        is_met=life.is_met.at[cell].set(True),
        clock=life.clock + 1,
    )
    return life, ~grid.is_noise(cell)


def lived(
    reward: Payer, is_divided: bool, num: int, life: Life, key: Key[Array, ""]
) -> tuple[Life, tuple[Float[Array, ""], Float[Array, ""], Int[Array, ""]]]:
    """So many steps; then the measure, the share of steps in the learnable half, its cells met so far."""
    one = partial(step, reward, is_divided)
    life, is_learnable = jax.lax.scan(one, life, jax.random.split(key, num))
    met = jnp.sum(life.is_met[grid.LEARNABLE])
    return life, (grid.error(life.model.net), jnp.mean(is_learnable), met)


def run(name: str, seeds: Sequence[int], steps: int, is_divided: bool) -> dict[str, Any]:
    """A reward on all seeds: one program, called for a thousand steps at a time."""
    reward, chunk, begin = payer(name), min(CHUNK, steps), time.process_time()
    roots = jnp.stack([jax.random.fold_in(jax.random.key(0), seed) for seed in seeds])
    k_born, k_lived = jnp.moveaxis(jax.vmap(jax.random.split)(roots), 1, 0)
    lives = jax.jit(jax.vmap(partial(born, reward)))(k_born)
    program = jax.jit(jax.vmap(partial(lived, reward, is_divided, chunk)), donate_argnums=0)
    told = []
    for number in range(steps // chunk):
        keys = jax.vmap(jax.random.fold_in, (0, None))(k_lived, number)
        lives, found = program(lives, keys)
        told.append([np.asarray(x, float) for x in found])
        shown = f"{name} {(number + 1) * chunk:,} steps: {told[-1][0].mean():.3f}"
        print(shown, f"{time.process_time() - begin:.0f} s", file=sys.stderr, flush=True)
    errors, shares, met = np.moveaxis(np.array(told), 1, 0)
    return {
        "reward": name,
        "errors": errors[-1].round(4).tolist(),
        "shares": shares.mean(axis=0).round(4).tolist(),
        "met": met[-1].astype(int).tolist(),
        "curve": errors.mean(axis=1).round(3).tolist(),
        "processor_s": round(time.process_time() - begin, 1),
    }


def sheet(told: dict[str, Any]) -> Sheet:
    """Every reward; where the agent is the paper's, its numbers beside ours."""
    lines, is_theirs = [], not told["undivided"]
    for row in told["rows"]:
        reward = payer(row["reward"])
        error, share = ([_spread(row[name])] for name in ("errors", "shares"))
        if is_theirs:
            error, share = [_spread(reward.errors), *error], [_spread(reward.shares), *share]
        lines.append((reward.label, *error, *share, f"{np.mean(row['met']):.0f}"))
    both = (", paper", ", here") if is_theirs else ("",)
    columns = (*(f"error{x}" for x in both), *(f"share of steps{x}" for x in both))
    title = "The learnable half at the end"
    return Sheet("table", title, ("reward", *columns, "cells met"), tuple(lines))


def _spread(values: Sequence[float] | None) -> str:
    """Mean and the deviation over seeds that the paper has: divided by their number."""
    return ABSENT if values is None else plus_minus(np.mean(values), np.std(values))


def blocks() -> Blocks:
    """The tables of the page, from what is kept."""
    made = {}
    for name, files in TABLES.items():
        told = [_read(file) for file in files]
        rows = [row for one in told for row in one["rows"]]
        made[name] = sheet(told[0] | {"rows": rows}).body()
    return made | {"parts": critic_parts.sheet(_read(PARTS)).body()}


def _read(file: str) -> dict[str, Any]:
    """What is kept."""
    return json.loads((KEPT / file).read_text(encoding="utf-8"))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rewards", nargs="*", help=f"of {', '.join(REWARDS)}; all unless said")
    parser.add_argument("--seeds", default="1-5")
    parser.add_argument("--steps", type=int, default=STEPS, help="whole thousands, or fewer")
    parser.add_argument("--out", type=Path, help="a JSON file for all of it")
    parser.add_argument("--undivided", action="store_true", help="rewards as they come")
    parser.add_argument("--page", action="store_true", help="put what is kept into the page")
    args = parser.parse_args()
    if args.page:
        fill(PAGE, blocks(), ROOT)
        return
    for name in args.rewards:
        check_choice("reward", name, tuple(REWARDS))
    check_range("--steps", args.steps, 1, 10**6)
    if args.steps > CHUNK and args.steps % CHUNK:
        parser.error(f"--steps takes whole thousands above {CHUNK:,}, got {args.steps:,}")
    seeds, names = parse_seeds(args.seeds), args.rewards or list(REWARDS)
    told = {"command": shlex.join(["python", "benchmarks/curiosity_critic.py", *sys.argv[1:]])}
    told |= {"seeds": list(seeds), "steps": args.steps, "undivided": args.undivided, **provenance()}
    told["rows"] = [run(name, seeds, args.steps, not args.undivided) for name in names]
    print(sheet(told).body())
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
