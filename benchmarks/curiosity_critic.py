"""Which reward makes a world model learn what can be learnt? A grid of which half is noise.

    python benchmarks/curiosity_critic.py                       # all rewards, five seeds: 20 minutes
    python benchmarks/curiosity_critic.py random prime --seeds 1-2 --steps 2000
    python benchmarks/curiosity_critic.py --page FILE           # docs/curiosity_critic.md from FILE

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
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from critic_rewards import REWARDS, Payer, Seen, payer
from jaxtyping import Array, Float, Int, Key

from primax.config.seeds import parse_seeds
from primax.errors import check_choice, check_range
from primax.output.sheet import ABSENT, Sheet, plus_minus
from primax.paper.pages.embed import fill
from primax.runs.provenance import provenance

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "curiosity_critic.md"
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
        clock=jnp.int32(0),
    )


def step(reward: Payer, life: Life, key: Key[Array, ""]) -> tuple[Life, Float[Array, ""]]:
    """Look, learn, be paid, move, and value the cell that was left; says whether it was learnable."""
    k_screen, k_move = jax.random.split(key)
    cell, place = life.cell, jnp.asarray(grid.PLACES)[life.cell]
    screen = grid.screen(cell, k_screen)
    model = life.model.learnt(place, screen)
    before, after = (grid.distance(x.net(place), screen) for x in (life.model, model))
    seen = Seen(cell, screen, before, after, *life.last, life.clock == 0)
    paid, worth = reward.pay(life.paid, seen)
    action = grid.chosen(life.values, cell, reward.epsilon, k_move)
    scale, worth = grid.scaled(life.scale, worth)
    life = Life(
        cell=jnp.asarray(grid.LEADS_TO)[cell, action],
        values=grid.updated(life.values, cell, worth, grid.GAMMA),
        scale=scale,
        model=model,
        paid=paid,
        last=(cell, screen, action),
        clock=life.clock + 1,
    )
    return life, ~grid.is_noise(cell)


def lived(
    reward: Payer, num: int, life: Life, key: Key[Array, ""]
) -> tuple[Life, tuple[Float[Array, ""], Float[Array, ""]]]:
    """So many steps; then the measure, and the share of the steps in the learnable half."""
    life, is_learnable = jax.lax.scan(partial(step, reward), life, jax.random.split(key, num))
    return life, (grid.error(life.model.net), jnp.mean(is_learnable))


def run(name: str, seeds: Sequence[int], steps: int) -> dict[str, Any]:
    """A reward on all seeds: one program, called for a thousand steps at a time."""
    begin, reward, chunk = time.perf_counter(), payer(name), min(CHUNK, steps)
    roots = jnp.stack([jax.random.fold_in(jax.random.key(0), seed) for seed in seeds])
    k_born, k_lived = jnp.moveaxis(jax.vmap(jax.random.split)(roots), 1, 0)
    lives = jax.jit(jax.vmap(partial(born, reward)))(k_born)
    program = jax.jit(jax.vmap(partial(lived, reward, chunk)), donate_argnums=0)
    told = []
    for number in range(steps // chunk):
        keys = jax.vmap(jax.random.fold_in, (0, None))(k_lived, number)
        lives, found = program(lives, keys)
        told.append([np.asarray(x, float) for x in found])
        shown = f"{name} {(number + 1) * chunk:,} steps: {told[-1][0].mean():.3f}"
        print(shown, f"{time.perf_counter() - begin:.0f} s", file=sys.stderr, flush=True)
    errors, shares = np.moveaxis(np.array(told), 1, 0)
    return {
        "reward": name,
        "errors": errors[-1].round(4).tolist(),
        "shares": shares.mean(axis=0).round(4).tolist(),
        "curve": errors.mean(axis=1).round(3).tolist(),
        "took_s": round(time.perf_counter() - begin, 1),
    }


def sheet(rows: Sequence[dict[str, Any]]) -> Sheet:
    """Every reward: the paper's number beside ours, best of ours last."""
    columns = ("reward", "error, paper", "error, here", "share, paper", "share, here")
    lines = []
    for row in rows:
        reward = payer(row["reward"])
        pairs = ((reward.errors, row["errors"]), (reward.shares, row["shares"]))
        lines.append((reward.label, *(_spread(x) for pair in pairs for x in pair)))
    return Sheet("table", "Error on the learnable half at the end", columns, tuple(lines))


def _spread(values: Sequence[float] | None) -> str:
    """Mean and the deviation over seeds that the paper has: divided by their number."""
    return ABSENT if values is None else plus_minus(np.mean(values), np.std(values))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rewards", nargs="*", help=f"of {', '.join(REWARDS)}; all unless said")
    parser.add_argument("--seeds", default="1-5")
    parser.add_argument("--steps", type=int, default=STEPS, help="whole thousands, or fewer")
    parser.add_argument("--out", type=Path, help="a JSON file for all of it")
    parser.add_argument("--page", type=Path, metavar="FILE", help="put what FILE has into the page")
    args = parser.parse_args()
    if args.page:
        rows = json.loads(args.page.read_text(encoding="utf-8"))["rows"]
        fill(PAGE, {"table": sheet(rows).body()}, ROOT)
        return
    for name in args.rewards:
        check_choice("reward", name, tuple(REWARDS))
    check_range("--steps", args.steps, 1, 10**6)
    if args.steps > CHUNK and args.steps % CHUNK:
        parser.error(f"--steps takes whole thousands above {CHUNK:,}, got {args.steps:,}")
    code, seeds = provenance(), parse_seeds(args.seeds)
    rows = [run(name, seeds, args.steps) for name in args.rewards or REWARDS]
    print(sheet(rows).body())
    if args.out:
        told = {"command": shlex.join(["python", "benchmarks/curiosity_critic.py", *sys.argv[1:]])}
        told |= {"seeds": list(seeds), "steps": args.steps, **code}
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(told | {"rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
