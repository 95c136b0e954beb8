"""The study of noise: its formulas by hand, its claims' rules, its plan, and all of it from the command line."""

import math
import tomllib
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from primax.cli import main
from primax.paper.evidence import MissingError
from primax.paper.pages import embed
from primax.presets import configure
from primax.rewards.prime import config as prime_config
from primax.rewards.prime import gate, intrinsic, novelty, probes
from primax.runs.measures import Sample
from primax.studies.noise import cells, claims, predict
from primax.studies.noise.found import Found
from primax.studies.noise.pages import write_all
from primax.sweep.plan import plan_cells
from primax.worlds import make_world

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "results" / "noise" / "quick"
PRIME = cells.VARIANTS["prime"]
NUMBERS = predict.Numbers(
    gamma=0.9,
    count_scale=0.5,
    gate_weight=0.5,
    gate_decay=0.95,
    gate_horizon=4,
    aleatoric_weight=0.5,
    log_scale=0.5,
)


def test_variance_of_one_coin_beside_the_agent():
    """ψ is (1, 0) or (1, 1)/√2: means 0.853553 and 0.353553, so tr Var = 1 - 0.728553 - 0.125."""
    assert predict.psi_variance(1, 2, 1.0) == pytest.approx(0.146447 / 2, abs=1e-6)
    assert predict.psi_variance(1, 2, 0.9) == pytest.approx(0.81 * 0.146447 / 2, abs=1e-6)
    assert predict.psi_variance(0, 60, 0.9) == 0


def test_variance_is_that_of_the_worlds_own_observations():
    """Twenty thousand noisy observations of one cell of TwoWings, through ψ."""
    world = make_world("two_wings", noisy="left")
    rng = np.random.default_rng(0)
    planes = np.zeros((20_000, 2, 3, 10), np.uint8)
    planes[:, 0, 1, 3] = 1
    planes[:, 1] = (rng.random((20_000, 3, 10)) < 0.5) & np.asarray(world.flickers)
    psi = np.asarray(probes.psi(jnp.asarray(planes)), float)
    found = 0.81 * psi.var(axis=0).sum() / psi.shape[1]
    assert predict.psi_variance(20, 60, 0.9) == pytest.approx(found, rel=0.01)


def test_novelty_and_look_ahead_by_hand():
    """tanh²(1/√4) = 0.213552; four steps at 0.95 weigh 3.709875."""
    assert predict.v_count(3, NUMBERS) == pytest.approx(0.405 * 0.213552, abs=1e-6)
    assert predict.look_ahead(3, NUMBERS) == pytest.approx(3.709875 * 0.405 * 0.213552, abs=1e-5)


@pytest.mark.parametrize("num", [0, 30, 119, 186, 5_000])
def test_the_reward_predicted_is_the_rewards_own(num):
    """Each part by the functions that the reward is made of."""
    config = configure("prime", "two_wings")
    constants = prime_config.constants(config.reward, config.critics.gamma)
    x = jnp.asarray(1 / math.sqrt(num + 1))
    new = novelty.v_epi(x, constants.count_scale, constants.gamma)
    last = jnp.zeros(8, bool)
    ahead = gate.look_ahead(
        jnp.full(8, new), last, constants.gate_decay, config.reward.gate_horizon
    )[0]
    noise = 0.006187
    left = gate.bracket(jnp.asarray(noise), ahead, constants.gate_weight)
    want = float(intrinsic.intrinsic(new, left, constants))
    assert predict.r_int(num, noise, NUMBERS) == pytest.approx(want, abs=1e-7)


def test_where_the_gate_opens_and_noise_turns():
    """0.0061873 against 0.5 · 3.709875 · 0.405 tanh²(1/√(N+1)): it opens between 119 and 120."""
    noise = predict.psi_variance(20, 60, 0.9)
    assert noise == pytest.approx(0.0061873, abs=1e-7)
    assert predict.gate_opens(noise, NUMBERS) == 120
    assert 0.5 * predict.look_ahead(120, NUMBERS) < noise <= 0.5 * predict.look_ahead(119, NUMBERS)
    turn = predict.turns(noise, NUMBERS)
    assert predict.r_int(turn, noise, NUMBERS) < 0 <= predict.r_int(turn - 1, noise, NUMBERS)
    assert predict.turns(0.0, NUMBERS) == predict.MOST


def test_what_is_predicted_of_variants():
    """75 noisy keys met 186 times are 13,950 of 150,000 steps; without a penalty nothing is left."""
    says = predict.predicted(PRIME)
    assert (says.opens, says.opens_at, says.turns) == (120, 18_000, 186)
    assert says.share == pytest.approx(1 - 75 * 186 / 150_000)
    assert predict.predicted(cells.VARIANTS["no_penalty"]).share is None
    assert predict.predicted(cells.VARIANTS["no_gate"]).opens == 0
    turns = [
        predict.predicted(cells.VARIANTS[n]).turns
        for n in ("penalty_quarter", "prime", "penalty_four")
    ]
    assert turns == sorted(turns, reverse=True)
    assert (
        predict.predicted(cells.VARIANTS["penalty_quarter"], "quick").share == 0.5
    )  # met no more than half


@pytest.mark.parametrize("scale", list(cells.SCALES))
def test_every_run_of_the_plan_can_be_configured(scale):
    """The sweep's own reader takes it, to the last field, and the scale's seeds are in it."""
    found = plan_cells(tomllib.loads(cells.plan(scale)))
    names = [name for cell in cells.CELLS for name in cell.folders(scale)]
    assert [cell.name for cell in found] == names and len(set(names)) == len(names)
    for cell in cells.CELLS:
        for name in cell.folders(scale):
            planned = next(one for one in found if one.name == name)
            settings = cell.settings(scale)
            assert planned.config == configure(
                cell.variant.method, cell.place.world, scale, settings
            )


def test_seeds_are_balanced_and_those_of_trials_are_others():
    """Sides alternate over seeds, so TwoWings needs an even number of them."""
    seeds = {
        scale: sorted(
            seed
            for cell in plan_cells(tomllib.loads(cells.plan(scale)))
            if cell.name.startswith("prime_two_wings")
            for seed in cell.given_seeds
        )
        for scale in cells.SCALES
    }
    assert seeds["paper"] == list(range(30))
    assert seeds["quick"] == list(range(100, 104))
    assert all(len(some) % 2 == 0 for some in seeds.values())


def test_verdicts_on_alike():
    """Within the margin of 0.05, across its edge, beyond it."""
    assert claims.alike(-0.04, 0.05) == claims.HOLDS
    assert claims.alike(0.04, 0.06) == claims.OPEN
    assert claims.alike(-0.2, 0.2) == claims.OPEN
    assert claims.alike(0.051, 0.06) == claims.alike(-0.06, -0.051) == claims.OPPOSITE


def test_verdicts_on_sides():
    """The interval must leave zero out, p must be below 0.05, and the side decides."""
    assert claims.sided("above", 0.1, 0.2, 0.01) == claims.HOLDS
    assert claims.sided("below", 0.1, 0.2, 0.01) == claims.OPPOSITE
    assert claims.sided("below", -0.2, -0.1, 0.01) == claims.HOLDS
    assert claims.sided("above", 0.1, 0.2, 0.05) == claims.OPEN
    assert claims.sided("above", -0.1, 0.2, 0.01) == claims.OPEN


class Told(Found):
    """What runs would have: TwoWings alone, a few variants."""

    def __init__(self, **shares: list[float]):
        self.shares = shares

    def sample(self, variant, place, name):
        if place != "two_wings" or variant not in self.shares:
            raise MissingError(f"{variant} in {place}", "not run")
        return Sample(tuple(range(10)), np.array(self.shares[variant]))


def test_claims_on_told_numbers():
    """PRIME is above chance on every one of ten seeds: p = 2/1024, times the comparisons there are."""
    rise = [0.7 + 0.01 * i for i in range(10)]
    flat = [0.5 + 0.001 * (-1) ** i for i in range(10)]
    done, missing = claims.tested(Told(prime=rise, no_penalty=flat, count=flat))
    by_id = {each.claim.id: each for each in done}
    assert set(by_id) == {
        "prime_leaves",
        "penalty_decides",
        "novelty_indifferent",
        "count_indifferent",
    }
    assert by_id["prime_leaves"].verdict == by_id["penalty_decides"].verdict == claims.HOLDS
    assert by_id["prime_leaves"].p == pytest.approx(2 * 2 / 1024)  # two comparisons are there
    assert by_id["prime_leaves"].difference == pytest.approx(0.245)
    assert (
        by_id["count_indifferent"].verdict == claims.HOLDS and by_id["count_indifferent"].p is None
    )
    assert len(missing) == len(claims.CLAIMS) - 4
    assert missing["rnd_held"] == "rnd in two_wings: not run"


def test_a_claim_may_turn_out_the_other_way():
    fallen = [0.3 - 0.01 * i for i in range(10)]
    done, _ = claims.tested(Told(prime=fallen))
    assert [each.verdict for each in done] == [claims.OPPOSITE]


def test_every_claim_names_cells_that_are_run():
    there = {(cell.variant.name, cell.place.name) for cell in cells.CELLS}
    for claim in claims.CLAIMS:
        sides = [claim.first, *([claim.second] if isinstance(claim.second, str) else [])]
        assert all((side, claim.place) in there for side in sides), claim.id
    assert len({claim.id for claim in claims.CLAIMS}) == len(claims.CLAIMS)


@pytest.mark.slow
def test_the_study_from_the_command_line(tmp_path, capsys, quick_children):
    """Two of its runs are made, its page is written, and a folder with other settings is not used."""
    out = tmp_path / "study"
    line = ["reproduce", "--study", "noise", "--scale", "smoke", "--out", str(out)]
    assert main([*line, "--plan"]) == 0
    assert "rnd_two_wings" in capsys.readouterr().out
    only = ["--only", "prime_two_wings", "--only", "count_maze_switch"]
    assert main([*line, *only, "--jobs", "2"]) == 0
    page = (out / "index.md").read_text(encoding="utf-8")
    assert "cells are there" in page and "<svg" in (out / "figures" / "noise.svg").read_text(
        "utf-8"
    )
    rows = (out / "tables" / "wings.csv").read_text("utf-8").splitlines()
    row = next(row for row in rows if row.startswith("PRIME,"))
    assert "—" not in row and next(row for row in rows if row.startswith("Counts,")).count("—") == 4
    elsewhere = (out / "tables" / "elsewhere.csv").read_text("utf-8")
    assert "(" in next(
        row for row in elsewhere.splitlines() if "by an action" in row and "Maze" in row
    )
    before = {path: path.read_bytes() for path in (out / "tables").iterdir()}
    assert main([*line, "--no-run"]) == 0
    assert {path: path.read_bytes() for path in before} == before
    capsys.readouterr()
    (out / "runs" / "prime_two_wings").rename(out / "runs" / "count_two_wings")
    assert main([*line, "--no-run"]) != 0
    assert "count_two_wings" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--study", "nose"], "noise"),
        (["--study", "noise", "--scale", "huge"], "--scale"),
        (["--study", "noise", "--only", "prime_to_wings", "--scale", "smoke"], "prime_two_wings"),
    ],
)
def test_what_the_study_refuses(words, says, tmp_path, capsys):
    assert main(["reproduce", *words, "--out", str(tmp_path / "out")]) != 0
    said = capsys.readouterr().err
    assert says in said and "Traceback" not in said


def test_the_page_is_that_of_the_published_runs(tmp_path):
    """Every table and the index are made anew from the kept runs, to the same bytes."""
    found = Found(KEPT / "runs", "quick")
    blocks = write_all(found, tmp_path)
    assert not found.broken
    for path in (*(tmp_path / "tables").iterdir(), tmp_path / "index.md"):
        assert path.read_bytes() == (KEPT / path.relative_to(tmp_path)).read_bytes(), path.name
    page = ROOT / "docs" / "noise.md"
    text = page.read_text(encoding="utf-8")
    assert embed.filled(text, blocks, embed.way(KEPT, page.parent)) == text
