"""The whole program, as a person uses it."""

import csv
import io
import json
import re
import subprocess
import sys
from dataclasses import fields

import numpy as np
import pytest
from rich.console import Console

from primax import api, stats
from primax.cli import COMMANDS, main
from primax.cli.stats import _table
from primax.cli.stats_sheets import comparisons
from primax.config.seeds import parse_seeds
from primax.errors import InputError
from primax.methods import METHODS
from primax.presets import configure

SMOKE = ["--preset", "smoke", "--seeds", "2"]


@pytest.fixture(autouse=True)
def surroundings(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "")
    monkeypatch.setenv("COLUMNS", "100")


def primax(capsys, *args: object) -> str:
    """What a command prints; it must succeed."""
    assert main([str(arg) for arg in args]) == 0
    return capsys.readouterr().out


def refused(capsys, *args: object) -> str:
    """The one line a command refuses with."""
    assert main([str(arg) for arg in args]) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1 and captured.err.startswith("primax: ")
    return captured.err


def test_help_lists_every_command(capsys):
    text = primax(capsys, "--help")
    assert all(name in text for name in COMMANDS)
    for name in COMMANDS:
        with pytest.raises(SystemExit) as stop:
            main([name, "--help"])
        assert stop.value.code == 0
        assert f"usage: primax {name}" in capsys.readouterr().out


def test_help_of_a_command_is_its_help(capsys):
    for argv in (["help", "stats"], ["stats", "--help"]):
        with pytest.raises(SystemExit):
            main(argv)
    text = capsys.readouterr().out
    assert text.count("usage: primax stats") == 2 and len({*text.split("usage: ")[1:]}) == 1
    assert primax(capsys, "help") == primax(capsys, "--help") == primax(capsys, "help", "help")
    assert "unknown command 'stat'; did you mean stats?" in refused(capsys, "help", "stat")


def test_version_and_module_run_in_a_fresh_process():
    done = subprocess.run(
        [sys.executable, "-m", "primax", "--version"], capture_output=True, text=True, check=True
    )
    assert re.fullmatch(r"primax \d+\.\d+\.\d+\n", done.stdout)


@pytest.mark.slow
def test_worlds_prints_simulated_exact_and_published(capsys):
    text = primax(capsys, "worlds", "--episodes", 200)
    assert "2.29 ± 1.21" in text and "2.2836906" in text and "0.0024539" in text
    assert all(name in text for name in ("butterflies", "maze", "two_wings", "centre_stay"))


def test_worlds_of_one_lists_its_options(capsys):
    text = primax(capsys, "worlds", "maze", "--episodes", 20, "--set", "size=6", "layout=one_wide")
    assert "one_wide" in text and "horizon" in text and "2.29" not in text


def test_watch_prints_the_end_and_writes_a_gif(capsys, tmp_path):
    text = primax(capsys, "watch", "maze", "--policy", "chase", "--set", "size=6")
    assert "score 1" in text and "100/100" in text
    path = tmp_path / "a.gif"
    primax(capsys, "watch", "butterflies", "--gif", path, "--cell", 8)
    assert path.read_bytes()[:6] == b"GIF89a"


def test_train_writes_tables_anyone_can_read(capsys, tmp_path, optimised):
    text = primax(capsys, "train", "task", "maze", *SMOKE, "--out", tmp_path / "run")
    assert "compiled in" in text and "peak" in text
    assert "random 0.085, sweep 1.000" in text
    config = json.loads((tmp_path / "run/config.json").read_text())
    assert config["world"]["name"] == "maze" and config["seeds"] == [0, 1]
    manifest = json.loads((tmp_path / "run/manifest.json").read_text())
    assert {"commit", "jax", "device", "flags", "finished", "steps"} <= set(manifest)
    assert {"command", "started", "from_step", "compile_s", "run_s"} == set(manifest["parts"][0])
    assert "--xla_gpu_deterministic_ops=true" in manifest["flags"]
    with (tmp_path / "run/episodes.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["seed", "episode", "step", "score", "reach", "coverage", "distance"]
    assert len(rows) == 2 * 20
    assert {int(row["seed"]) for row in rows} == {0, 1}
    assert all(0 < float(row["coverage"]) <= 1 for row in rows)
    windows = np.genfromtxt(tmp_path / "run/windows.csv", delimiter=",", names=True)
    assert windows.shape == (2 * 3,) and np.isfinite(windows["loss"]).all()
    again = primax(capsys, "train", "task", "maze", *SMOKE, "--out", tmp_path / "again")
    assert "peak" in again
    for name in ("episodes.csv", "windows.csv", "config.json"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "world"),
    [
        ("task", "butterflies"),
        ("none", "maze"),
        ("random", "two_wings"),
    ],
)
def test_plain_methods_train_in_every_world(capsys, method, world):
    """The others go through the whole learner in test_reward_methods.py and test_resume.py."""
    assert "average" in primax(capsys, "train", method, world, *SMOKE)


@pytest.mark.slow
def test_steps_off_the_grid_are_rounded_up_and_said(capsys):
    text = primax(capsys, "train", "random", "maze", *SMOKE, "--steps", 600)
    assert "600 steps rounded up to 1,000" in text and "1,000/1,000" in text


def test_bench_keeps_a_figure(capsys, tmp_path, optimised):
    text = primax(capsys, "bench", "task", "maze", *SMOKE, "--out", tmp_path)
    assert "compiled in" in text
    (path,) = tmp_path.glob("*.json")
    figure = json.loads(path.read_text())
    assert figure["steps"] == 2000 and figure["run_s"] > 0 and figure["compile_s"] > 0
    assert {"method", "world", "seeds", "memory", "device", "commit", "command"} <= set(figure)
    assert "task" in text
    (tmp_path / "other.json").write_text("[]")
    (tmp_path / "train_broken.json").write_text("{")
    assert main(["bench", "task", "maze", *SMOKE, "--out", str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert "train_broken.json was not written by primax bench" in said.err
    assert not said.out, "before the run, not after it"


def test_bench_writes_nothing_unless_told_where(capsys, tmp_path, monkeypatch, optimised):
    """In a checkout that would be a folder of published figures."""
    monkeypatch.chdir(tmp_path)
    assert "steps_per_s" in primax(capsys, "bench", "task", "maze", *SMOKE)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("method", METHODS)
def test_list_shows_the_fields_of_every_method(capsys, method):
    text = primax(capsys, "list", method)
    assert f"fields of {method} in butterflies" in text
    assert "reward." in text or not fields(METHODS[method].options)


def test_list_shows_every_field(capsys):
    text = primax(capsys, "list")
    assert "fields of prime in butterflies" in text
    for name in (
        "critics.gamma",
        "net.precision",
        "explore.end",
        "world.layout",
        "window",
        "smoke",
    ):
        assert name in text


def test_list_of_one_method_in_one_world(capsys):
    """Its fields alone, with their symbols and that method's defaults."""
    text = primax(capsys, "list", "rnd", "maze")
    assert text.startswith("fields of rnd in maze") and "smirl" not in text
    rows = [line.split() for line in text.splitlines()]
    assert ["critics.gamma", "γ", "0.99", "Discount", "per", "step."] in rows
    assert any(row[:3] == ["explore.end", "ε_end", "0.05"] for row in rows)
    assert any(row[:2] == ["world.layout", "full_walls"] for row in rows)
    assert not any(row[:1] == ["method"] for row in rows), "it cannot be set"
    assert primax(capsys, "list", "prime", "maze") == primax(capsys, "list", "Maze")
    assert "unknown world 'mase'; did you mean maze?" in refused(capsys, "list", "rnd", "mase")
    says = "unknown method or world 'mase'; did you mean maze?"
    assert says in refused(capsys, "list", "mase")


SYMBOLS = {
    "K": "reward.heads (K) or critics.heads (K)",
    "reward.K": "reward.heads (K)",
    "N_q": "reward.quantiles (N_q)",
    "G_q": "reward.quantile_bound (G_q)",
    "Q_max": "critics.q_max (Q_max)",
    "β_prior": "reward.prior_strength (β_prior)",
    "kappa": "reward.count_scale (κ)",
    "m": "reward.probes (m)",
    "γ": "critics.gamma (γ)",
    "reward.gamma": "critics.gamma (γ)",
    "reward.lambda": "reward.aleatoric_weight (λ)",
    "λ": "reward.aleatoric_weight (λ)",
    "lam": "reward.aleatoric_weight (λ)",
    "Alpha": "reward.gate_weight (α)",
    "σ₀²": "reward.log_scale (σ₀²)",
    "reward.sigma_0^2": "reward.log_scale (σ₀²)",
    "sigma0": "reward.log_scale (σ₀²)",
    "beta": "reward.gate_decay (β)",
    "h_g": "reward.gate_horizon (h_g)",
    "tau": "reward.temperature (τ)",
    "ε": "explore.start (ε_start) or explore.end (ε_end)",
    "eps_end": "explore.end (ε_end)",
    "critics.lr": "critics.learning_rate (lr)",
    "heads": "reward.heads or critics.heads",
}
"""The letters of the paper's table of hyperparameters, and the field each is; one field's own name too."""


@pytest.mark.parametrize(("said", "meant"), SYMBOLS.items())
def test_the_papers_symbols_are_answered_with_their_fields(said, meant):
    with pytest.raises(InputError) as error:
        configure("prime", "maze", "smoke", {said: 1})
    assert str(error.value) == f"no field {said!r}; did you mean {meant}?"


def test_stats_of_a_file(capsys, tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("seed,a,b\n0,3.4,3.2\n1,3.5,3.1\n2,3.3,3.25\n")
    text = primax(capsys, "stats", path)
    assert "3.400" in text and "a - b" in text and "0.217" in text
    assert "b - a" in primax(capsys, "stats", path, "--against", "b")
    assert "has no method 'c'" in refused(capsys, "stats", path, "--against", "c")
    path.write_text("seed,a\n0,x\n")
    assert "x" in refused(capsys, "stats", path)
    path.write_text("seed,a,b\n" + "".join(f"{seed},{seed},{seed + 20}\n" for seed in range(15)))
    text = primax(capsys, "stats", path)
    assert text.count("<0.001") == 2


def test_stats_marks_an_interval_of_two_seeds(capsys, tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("seed,a,b\n0,1,2\n1,2,4\n")
    text = primax(capsys, "stats", path)
    note = "* an interval of only two seeds: it shows where the two lie, not how sure the number is"
    assert "1.000 to 2.000*" in text and "-2.000 to -1.000*" in text and text.count(note) == 2
    path.write_text("seed,a,b\n0,1,2\n1,2,4\n2,3,5\n")
    assert "*" not in primax(capsys, "stats", path)
    path.write_text("seed,a,b\n0,1,2\n")
    text = primax(capsys, "stats", path)
    assert " to " not in text and "With one seed there is no spread and no interval." in text


def test_stats_in_a_narrow_terminal_folds_names_and_no_words_of_numbers():
    console = Console(width=80, file=io.StringIO())
    names = ("prime", "prime reward.aleatoric_weight=0.25 critics.heads=1")
    scores = {name: np.array([0.25, 0.5, 0.75]) for name in names}
    sheet = comparisons(stats.compare_all(scores), 3)
    console.print(_table(sheet, console))
    words = console.file.getvalue().split()
    assert {"difference", "unpaired", "interval", "0.500"} <= set(words)


AWKWARD = 'seed,"a, ""b""",c_1 & 50%\n0,3.4,3.2\n1,3.5,3.75\n2,3.3,3.25\n'


def test_stats_as_csv(capsys, tmp_path):
    """One row a method, all digits; a program reads the names and numbers that were written."""
    path = tmp_path / "scores.csv"
    path.write_text(AWKWARD)
    first, second = csv.DictReader(primax(capsys, "stats", path, "--format", "csv").splitlines())
    assert first["method"] == 'a, "b"' and second["method"] == "c_1 & 50%"
    assert float(first["mean"]) == pytest.approx(3.4, abs=1e-15) and first["seeds"] == "3"
    assert first["compared"] == first["difference"] == first["p_paired"] == ""
    assert second["compared"] == 'a, "b" - c_1 & 50%'
    assert float(second["difference"]) == pytest.approx(0, abs=1e-15)
    assert float(second["p_paired"]) == 1.0  # signs + - +, of which the middle one is the largest
    path.write_text("seed,a\n0,1\n")
    (alone,) = csv.DictReader(primax(capsys, "stats", path, "--format", "csv").splitlines())
    assert alone["std"] == "" and alone["mean"] == "1.0"


def test_stats_as_latex(capsys, tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text(AWKWARD.replace("3.2\n", "9.2\n"))
    text = primax(capsys, "stats", path, "--format", "latex")
    assert text.count(r"\begin{tabular}") == text.count(r"\bottomrule") == 2
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert {row.count(" & ") for row in rows[:3]} == {5} and len(rows) == 5
    assert rows[0].endswith(r"mean of the middle half & its 95\% interval \\")
    assert rows[2].startswith(r"c\_1 \& 50\% & 3 & 5.400 & ")
    assert rows[4].startswith(r'a, "b" $-$ c\_1 \& 50\% & $-$2.000 & $-$5.800 to 0.050 & ')
    says = "--format has no value 'tex'; did you mean latex?"
    assert says in refused(capsys, "stats", path, "--format", "tex")


def test_stats_keeps_small_values_and_long_names(capsys, tmp_path, monkeypatch):
    monkeypatch.delenv("COLUMNS")  # as in a pipe
    path, long = tmp_path / "scores.csv", "a_method_whose_name_is_long" * 3
    path.write_text(f"seed,{long},b\n0,2e-10,3.3\n1,4e-10,3.3\n2,3e-10,3.3\n")
    text = primax(capsys, "stats", path)
    assert f"{long} - b" in text and "measure" not in text
    rows = {line.split()[0]: line.split() for line in text.splitlines() if line.strip()}
    assert rows["b"][2:4] == ["3.300", "0.000"] and "3.00e-10 " in text and "1.00e-10 " in text


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("wrlds", "unknown command 'wrlds'; did you mean worlds?"),
        ("worlds mase", "unknown world 'mase'; did you mean maze?"),
        ("worlds maze --set layot=x", "no field 'layot'; did you mean layout?"),
        ("worlds maze --set layout=one_wid", "unknown layout 'one_wid'; did you mean one_wide?"),
        ("worlds maze --set size=40", "size must be between 6 and 32, got 40"),
        ("worlds maze --set size", "--set takes FIELD=VALUE, got 'size'"),
        ("worlds --set size=6", "--set goes with one world"),
        ("worlds --episods 3", "unknown argument '--episods'; did you mean --episodes?"),
        ("train task maze --outt x", "unknown argument '--outt'; did you mean --out?"),
        ("train task maze --outt=x", "did you mean --out?"),
        ("train task maze --save_every 3", "did you mean --save-every?"),
        ("train task maze --bogus 3", "unknown argument '--bogus'; see primax train --help"),
        ("pack some --outt x", "unknown argument '--outt'; did you mean --out?"),
        (
            "train task maze --preset smoke --steps 9 --set steps=8",
            "set the same field: give only one of them",
        ),
        ("reproduce --out . --into none.md", "--into none.md: no such file"),
        ("worlds maze more", "unknown argument 'more'; see primax worlds --help"),
        ("worlds --episodes x", "invalid int value: 'x'"),
        ("watch", "required: world"),
        ("watch maze --policy chse", "unknown policy 'chse'; did you mean chase?"),
        ("watch maze --fps 0", "--fps must be between 1 and 50"),
        ("watch maze --gif /proc/none/a.gif", "cannot write"),
        ("watch maze --set layout=none.txt", "cannot read layout none.txt"),
        ("train tsk maze", "unknown method 'tsk'; did you mean task?"),
        ("train task maze --preset fast", "unknown preset 'fast'"),
        ("train task maze --seeds x", "--seeds takes a number"),
        ("train task maze --seeds 0", "--seeds must be between 1 and 10000, got 0"),
        ("train task maze --seeds 3,3", "names a seed twice"),
        ("train task maze --seeds 5-3", "--seeds takes a range that goes upwards, got 5-3"),
        ("train task maze --seeds -1", "--seeds takes a number"),
        ("train task maze --seeds 2147483648,1", "--seeds must be between 0 and 2147483647"),
        ("train task maze --seeds 99999999999", "--seeds must be between 1 and 10000"),
        (
            "train task maze --set method=random",
            "method is not a field to set: give it as the first argument",
        ),
        ("train task maze --set critics.grad_clip=inf", "critics.grad_clip must be between"),
        ("train task maze --set critics.gamma=nan", "critics.gamma must be between"),
        ("train task maze --save-every -1", "--save-every must be between 0"),
        ("watch maze --seed 9999999999999", "--seed must be between 0"),
        ("resume none", "none holds no run"),
        (
            "train task maze --set critics.gama=1",
            "no field 'critics.gama'; did you mean critics.gamma?",
        ),
        ("train rnd maze --set reward.lambda=1", "choose from reward.features, reward.predictor"),
        ("train task maze --set critics.gamma=1", "critics.gamma must be between 0 and 0.999999"),
        ("train task maze --set critics=1", "critics is a group; set one of critics.heads"),
        (
            "train task maze --set critics.heads=1.5",
            "critics.heads takes a whole number, got '1.5'",
        ),
        ("train task maze --set critics.heads=0", "critics.heads must be between 1 and 100"),
        ("train task maze --set critics.double=maybe", "takes true or false"),
        ("train task maze --set net.precision=half", "net.precision has no value 'half'"),
        ("train task maze --set window=250", "window (250) must be a multiple of update_every (4)"),
        ("train task maze --set replay=1050", "replay (1050) must be a multiple of world.horizon"),
        (
            "train task maze --set critics.sync_every=10",
            "critics.sync_every (10) must be a multiple",
        ),
        ("train task maze --set recent=100000", "recent (100000) must be shorter than replay"),
        ("train task maze --steps 0", "steps must be between 1"),
        ("train task maze --out /proc/none", "cannot write /proc/none"),
        ("bench task maze --out /proc/none", "cannot write /proc/none"),
        ("stats none.csv", "none.csv"),
    ],
)
def test_wrong_input_is_refused_in_one_line(capsys, line, says):
    assert says in refused(capsys, *line.split())


def test_a_bad_map_leaves_no_folder_behind(capsys, tmp_path):
    out = tmp_path / "run"
    refused(capsys, "train", "task", "maze", "--set", "world.layout=foo", "--out", out)
    assert not out.exists()
    refused(capsys, "train", "task", "maze", "--save-every", "-1", "--out", out)
    assert not out.exists()


@pytest.mark.slow
def test_an_episode_may_outlast_a_window(capsys):
    text = primax(
        capsys, "train", "random", "maze", *SMOKE, "--set", "world.horizon=1000", "replay=3000"
    )
    assert "score …" not in text and "average" in text


@pytest.mark.slow
def test_names_with_brackets_are_printed_as_they_are(capsys, tmp_path):
    out = tmp_path / "x[bold]y"
    assert "x[bold]y" in primax(capsys, "train", "random", "maze", *SMOKE, "--out", out).replace(
        "\n", ""
    )


@pytest.mark.slow
def test_two_wings_are_judged_on_the_sides_their_seeds_have(capsys):
    """0.52 with the left wing noisy, 0.48 with the right: two of three seeds have the left."""
    args = ["train", "random", "two_wings", "--preset", "smoke", "--seeds", "3"]
    assert "sweep 0.507" in primax(capsys, *args)


def test_a_folder_in_use_is_not_overwritten(capsys, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    says = refused(capsys, "train", "task", "maze", *SMOKE, "--out", tmp_path)
    assert "is not empty" in says and (tmp_path / "notes.txt").read_text() == "mine"
    (tmp_path / "config.json").write_text("{}")
    assert "is the folder of a run" in refused(capsys, "reproduce", "--no-run", "--out", tmp_path)


def test_seeds():
    assert parse_seeds(3) == (0, 1, 2)
    assert parse_seeds("2-4") == (2, 3, 4)
    assert parse_seeds("7,1-2") == (7, 1, 2)


@pytest.mark.parametrize("seeds", ["a", 0, "3,3", "5-3"])
def test_in_python_the_argument_is_named_not_the_option(seeds):
    with pytest.raises(InputError, match=r"^seeds (takes|must be|names)"):
        api.train("task", "maze", seeds=seeds)


def test_in_python_a_setting_may_be_the_value_itself():
    config = configure("task", "maze", "smoke", {"steps": 1_000, "critics.double": False})
    assert (config.steps, config.critics.double) == (1_000, False)
    assert config == configure("task", "maze", "smoke", {"steps": "1000", "critics.double": "no"})


def test_a_whole_number_may_be_written_as_1e5(capsys):
    config = configure("task", "maze", "smoke", {"steps": "1e5", "critics.learning_rate": "1e-3"})
    assert config.steps == 100_000 and isinstance(config.steps, int)
    assert config.critics.learning_rate == 1e-3
    for text in ("1e-1", "1.5", "inf", "nan"):
        with pytest.raises(InputError, match="steps takes a whole number"):
            configure("task", "maze", "smoke", {"steps": text})
    said = refused(capsys, "train", "task", "maze", "--steps", "1e4x")
    assert "steps takes a whole number, got '1e4x'" in said


def test_an_error_of_the_system_is_one_line(capsys, monkeypatch):
    def full(args):
        raise OSError(28, "No space left on device", "some/file")

    monkeypatch.setattr("primax.cli.list.run", full)
    assert main(["list"]) == 1
    assert capsys.readouterr().err == "primax: some/file: No space left on device\n"
