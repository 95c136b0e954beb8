"""`primax verify`: every promise holds, and each planted fault is named by the row it breaks."""

import functools
import json
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from primax.agent import critics
from primax.cli import main
from primax.cli import verify as command
from primax.presets import configure, paper
from primax.rewards.prime import Prime, gate, intrinsic
from primax.rewards.prime.novelty import Where
from primax.runs import config_json
from primax.runs.tables import csv_rows, read_table
from primax.verify import checks
from primax.verify.audit import AUDITS
from primax.verify.bounds import bounds
from primax.verify.lab import LABS, run_lab
from primax.verify.row import ABSENT, FAILS, HOLDS, PREMISE
from primax.verify.windows import breaches
from primax.verify.worldtable import enumerate_world
from primax.worlds import make_world


@pytest.fixture(scope="module", autouse=True)
def wide():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "160")
        yield


@pytest.fixture(scope="module")
def lab():
    """A learner trained as it should be, when a test first asks for it."""
    return functools.cache(run_lab)


@pytest.fixture
def trained(lab, monkeypatch):
    """Commands find the learners trained; what rows compile for them is compiled anew."""
    labs = {moments: lab(moments) for moments in LABS}
    monkeypatch.setattr(checks, "run_lab", lambda moments, seed: replace(labs[moments]))
    return labs


def verify(capsys, *args: object) -> tuple[int, str]:
    status = main(["verify", *map(str, args)])
    return status, " ".join(capsys.readouterr().out.split())


def refused(capsys, *args: object) -> str:
    assert main(["verify", *map(str, args)]) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1 and captured.err.startswith("primax: ")
    return captured.err


def verdicts(path) -> dict[str, str]:
    return {row["name"]: row["verdict"] for row in json.loads(path.read_text(encoding="utf-8"))}


@pytest.mark.slow
def test_every_promise_holds(capsys, tmp_path, trained):
    file, picture = tmp_path / "rows.json", tmp_path / "neutrality.png"
    status, text = verify(capsys, "--json", file, "--plot", picture)
    assert status == 0 and "nothing fails" in text
    assert verdicts(file) == dict.fromkeys(checks.CHECKS, HOLDS)
    assert "R_r = 81" in text and "2 as deployed" in text and "2.5616" in text
    assert f"{len(checks.CHECKS)}/{len(checks.CHECKS)} freezing_bias" in text
    assert picture.read_bytes().startswith(b"\x89PNG")


def _unclipped_and_uncut(monkeypatch):
    """Two faults in one program: the reward has no clip, the gate looks into the next episode."""
    whole = gate.look_ahead
    monkeypatch.setattr(intrinsic, "deployed", lambda r, c: c.reward_scale * r)
    monkeypatch.setattr(
        gate, "look_ahead", lambda value, is_last, *rest: whole(value, is_last & False, *rest)
    )


def _other_gamma(monkeypatch):
    right = critics.rates
    monkeypatch.setattr(
        critics, "rates", lambda *configs: replace(right(*configs), gamma=jnp.float32(0.95))
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plant", "fails", "holds"),
    [
        (
            _unclipped_and_uncut,
            {"lemma2_window", "reward_clip", "look_ahead"},
            {"stationarity_bucket", "targets_zeta", "logged_bounds"},
        ),
        pytest.param(
            _other_gamma,
            {"contraction_butterfly"},
            {"targets_zeta", "reward_clip", "look_ahead"},
            marks=pytest.mark.long,
        ),
    ],
)
def test_a_fault_in_training_is_named(capsys, monkeypatch, tmp_path, plant, fails, holds):
    plant(monkeypatch)
    file = tmp_path / "rows.json"
    status, text = verify(capsys, "--only", *fails, *holds, "--json", file)
    assert status == 1
    assert verdicts(file) == dict.fromkeys(fails, FAILS) | dict.fromkeys(holds, HOLDS)
    assert all(name in text.split("fails:")[1] for name in fails)


def _live_counts(self, state, batch):
    window = replace(state.window, novelty=state.novelty)
    return self.freezer.parts(window, Where(batch.obs, batch.action, batch.key))


def _thawed_phi(self, state, batch):
    window = replace(state.window, encoder=state.inverse.encoder)
    return self.freezer.parts(window, Where(batch.obs, batch.action, batch.key))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parts", "fails"),
    [
        (_live_counts, {"stationarity_bucket", "stationarity_knn16"}),
        (_thawed_phi, {"stationarity_knn16"}),
    ],
)
def test_a_score_that_reads_what_lives_is_named(
    capsys, monkeypatch, tmp_path, trained, parts, fails
):
    monkeypatch.setattr(Prime, "parts", parts)
    file = tmp_path / "rows.json"
    only = ("stationarity_bucket", "stationarity_knn16")
    status, text = verify(capsys, "--only", *only, "--json", file)
    assert status == 1 and "fails: " + ", ".join(n for n in only if n in fails) in text
    assert {name for name, found in verdicts(file).items() if found == FAILS} == fails


@pytest.mark.slow
def test_counts_read_live_break_stationarity():
    lab = run_lab("bucket", others={"reward.counts": "live"})
    row = checks.stationarity(lab, "stationarity_bucket")
    assert row.verdict == FAILS and row.numbers["changed"] > 0


@pytest.mark.slow
def test_a_discount_wrong_in_the_target_alone_is_named(capsys, monkeypatch, trained):
    right = critics.td_target
    monkeypatch.setattr(critics, "td_target", lambda r, d, *rest: right(r, 1.05 * d, *rest))
    status, text = verify(capsys, "--only", "contraction_maze")
    assert status == 1 and "fails: contraction_maze" in text and "0.945000" in text


def test_a_reward_that_forgets_the_penalty_is_named(capsys, monkeypatch):
    monkeypatch.setattr(intrinsic, "bracket", lambda v_ale, v_ahead, weight: 0.0 * v_ale)
    assert verify(capsys, "--only", "gate_preference")[0] == 1


@pytest.fixture
def folder(lab, tmp_path):
    """A run's folder of two seeds, made from what a learner really said."""
    bucket = lab("bucket")
    table = {name: np.concatenate([column, column]) for name, column in bucket.table.items()}
    table["seed"] = np.array([0, 0, 1, 1])
    config_json.create(tmp_path / "run", bucket.config, (0, 1))

    def put(**changes: float):
        doctored = {name: np.array(column, float) for name, column in table.items()}
        for name, value in changes.items():
            doctored[name][3] = value
        doctored["seed"], doctored["step"] = table["seed"], table["step"]
        (tmp_path / "run" / "windows.csv").write_bytes(csv_rows(doctored, True))
        return tmp_path / "run"

    return put


@pytest.mark.slow
def test_a_sound_run_passes(capsys, folder, tmp_path):
    status, text = verify(capsys, "--run", folder(), "--json", tmp_path / "rows.json")
    assert status == 0 and "4 windows" in text
    assert verdicts(tmp_path / "rows.json") == dict.fromkeys(AUDITS, HOLDS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "row"),
    [
        ({"zeta_abs_max": 2.6}, "targets_zeta"),
        ({"zeta_abs_max": np.nan}, "targets_zeta"),
        ({"y_abs_max": 30.0}, "targets_y"),
        ({"reward_abs_max": 2.001}, "reward_clip"),
        ({"slope_1": 2.1}, "calibration"),
        ({"slope_2": 0.9}, "calibration"),
        ({"offset_0": -1.1}, "calibration"),
        ({"v_count": 0.41}, "logged_bounds"),
        ({"v_ale_psi": -1e-6}, "logged_bounds"),
        ({"pi_act_from_ref": 2.1}, "freezing_cost"),
        ({"reward_jump": np.nan}, "freezing_cost"),
        ({"pi_ref_from_u": np.nan}, "margin"),
    ],
)
def test_a_doctored_table_fails_by_window_and_seed(capsys, folder, tmp_path, changes, row):
    status, text = verify(capsys, "--run", folder(**changes), "--json", tmp_path / "rows.json")
    assert status == 1 and f"fails: {row}" in text
    rows = json.loads((tmp_path / "rows.json").read_text(encoding="utf-8"))
    (broken,) = [found for found in rows if found["verdict"] == FAILS]
    assert broken["measured"].startswith("broken at step 2,000 seed 1;")


@pytest.mark.slow
def test_a_premise_is_neither_pass_nor_failure(capsys, folder, tmp_path):
    """The paper's own run has |Q⁻| up to 20.06."""
    file = tmp_path / "rows.json"
    status, text = verify(capsys, "--run", folder(q_target_abs_max=20.06), "--json", file)
    assert status == 0 and "premise not met" in text and "step 2,000 seed 1" in text
    assert {name for name, found in verdicts(file).items() if found == PREMISE} == {"premise_q"}
    verify(capsys, "--run", folder(pi_ref_from_u=0.0), "--json", file)
    assert {name for name, found in verdicts(file).items() if found == PREMISE} == {"margin"}


@pytest.mark.slow
def test_the_first_window_has_no_jump(capsys, folder):
    path = folder() / "windows.csv"
    table = read_table(path)
    table["reward_jump"][[0, 2]] = np.nan
    path.write_bytes(csv_rows(table, True))
    assert verify(capsys, "--run", path.parent)[0] == 0


@pytest.mark.slow
def test_a_run_of_another_method_says_what_does_not_apply(capsys, folder, tmp_path):
    run, out = folder(), tmp_path / "other"
    config_json.create(out, configure("task", "maze", "smoke"), (0, 1))
    (out / "windows.csv").write_bytes((run / "windows.csv").read_bytes())
    status, text = verify(capsys, "--run", out, "--json", tmp_path / "rows.json")
    assert status == 0 and "a promise of prime; this run is task" in text
    found = verdicts(tmp_path / "rows.json")
    assert found == dict.fromkeys(AUDITS, ABSENT) | {"premise_q": HOLDS}


@pytest.mark.slow
def test_a_damaged_folder_is_refused_in_one_line(capsys, folder, tmp_path):
    assert "holds no run" in refused(capsys, "--run", tmp_path / "none")
    run = folder()
    table, config = run / "windows.csv", run / "config.json"
    whole = table.read_bytes()
    table.write_bytes(whole[:-20])
    status, text = verify(capsys, "--run", run)  # its last row is still being written
    assert status == 0 and "2 windows of prime" in text
    (run / "manifest.json").write_text('{"finished": "now", "steps": 2000}')
    assert "is not the table a run writes" in refused(capsys, "--run", run)
    table.write_bytes(whole.replace(b"zeta_abs_max", b"zeta"))
    assert "has no column zeta_abs_max" in refused(capsys, "--run", run)
    table.write_bytes(whole.replace(b"seed,", b"sed,", 1))
    assert "no column seed" in refused(capsys, "--run", run)
    table.unlink()
    assert "windows.csv" in refused(capsys, "--run", run)
    table.write_bytes(whole)
    config.write_text(config.read_text().replace("0,\n  1", "0"))
    assert "have different seeds: only one of them has seed 1" in refused(capsys, "--run", run)
    config.write_text("{")
    assert "config.json is damaged" in refused(capsys, "--run", run)


def test_wrong_options_are_refused(capsys, tmp_path, monkeypatch):
    assert "did you mean look_ahead?" in refused(capsys, "--only", "lok_ahead")
    assert "unknown row of a run" in refused(capsys, "--run", tmp_path, "--only", "bald")
    assert "--plot draws" in refused(capsys, "--plot", tmp_path / "a.png", "--only", "bald")
    assert "cannot write" in refused(capsys, "--only", "bald", "--json", tmp_path / "no" / "a")
    assert "--seed must be between" in refused(capsys, "--seed", -1)
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    assert "needs matplotlib" in refused(capsys, "--plot", tmp_path / "a.png")


def test_the_paper_s_constants():
    """Worked by hand: G_E = 2·2 + 1, 4·0.81·25 = 81, tanh(1) + 0.9·2, ½ log(1 + 81/½)."""
    found = bounds(paper("prime", "butterflies"))
    assert found.logit == 5 and found.deployed == 2 and found.v_count == pytest.approx(0.405)
    assert found.r_r == found.b_ale == found.v_heads == pytest.approx(81)
    assert found.zeta == pytest.approx(2.5616, abs=5e-5)
    assert found.r_low == pytest.approx(-0.5 * np.log(163))
    assert found.deployed + found.gamma * found.q_max == pytest.approx(20)


def test_worlds_are_enumerated_in_full():
    """A flag that must be passed: 163 states of 82 cells; the 3x3 world: 72 alive, 9 and 9 caught."""
    maze = enumerate_world(make_world("maze"))
    assert maze.to.shape == (163, 5, 1) and set(maze.to.reshape(-1)) == set(range(163))
    config = configure("prime", "butterflies", "smoke", LABS["bucket"][1])
    nine = enumerate_world(make_world("butterflies", layout=config.world.layout, butterflies=1))
    assert nine.to.shape == (90, 5, 5)
    caught = nine.obs[:, 1].reshape(90, -1).sum(axis=1) == 0
    assert caught.sum() == 18 and not np.any(~caught[nine.to[caught].reshape(-1)])


def test_breaches_are_named_by_step_whatever_the_order_of_rows():
    table = {"seed": np.array([0, 0, 1, 1]), "step": np.array([1_000, 2_000, 1_000, 2_000])}
    held = np.array([True, False, False, False])
    assert breaches(table, held) == "step 1,000 seed 1, step 2,000 seed 0, step 2,000 seed 1"
