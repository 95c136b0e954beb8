"""Small things that once went wrong in silence."""

import json
import signal
import subprocess
import sys
import time

import pytest

from primax.cli import main
from primax.cli.resume import _flags
from primax.errors import InputError
from primax.presets import configure
from primax.runs.config_json import create
from primax.runs.proceed import _reached
from primax.runs.read import open_run

TASK = ("train", "task", "maze", "--preset", "smoke", "--seeds", "1")


def refused(capsys, *args) -> str:
    assert main([str(arg) for arg in args]) == 2
    return capsys.readouterr().err


def test_settings_given_apart_add_up(capsys, monkeypatch, tmp_path):
    """The last `--set` replaced all before it: another experiment than the one asked for."""
    seen = []
    monkeypatch.setattr("primax.cli.train.begin", lambda out, learner, seeds: seen.append(learner))
    monkeypatch.setattr("primax.cli.train.in_folder", lambda *args: None)
    apart = ("--set", "critics.gamma=0.5", "--set", "critics.heads=3", "net.embedding=9")
    assert main([*TASK, *apart, "--out", str(tmp_path / "run")]) == 0
    config = seen[0].config
    assert (config.critics.gamma, config.critics.heads, config.net.embedding) == (0.5, 3, 9)
    assert "twice" in refused(capsys, *TASK, "--set", "steps=2000", "--set", "steps=3000")
    assert "unknown row" in refused(capsys, "verify", "--only", "nonsense", "--only", "bald")
    assert "no field" in refused(capsys, "worlds", "maze", "--set", "sise=8", "--set", "horizon=9")


def test_killed_before_the_configuration_had_its_name_a_folder_can_be_used(tmp_path):
    """The half-written file was in the way for ever."""
    config = configure("task", "maze", "smoke")
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "config.json.part").write_text("{")
    create(folder, config, (0,))
    assert open_run(folder).config == config
    assert [path.name for path in folder.iterdir()] == ["config.json"]


@pytest.mark.parametrize(
    "end", [b"", b"nonsense\n", b"0,9\n", b"\xff\xff,\n", b"0,1,x,0\n", b"0,2,3"]
)
def test_a_last_line_that_is_no_row_does_not_end_a_resume(tmp_path, end):
    """It lies after the newest checkpoint and is cut anyway."""
    rows = b"seed,episode,step,score\n0,0,100,0\n0,1,200,0\n"
    (tmp_path / "episodes.csv").write_bytes(rows + end)
    assert _reached(tmp_path) == 200


def test_a_folder_cannot_set_the_compilers_flags(tmp_path, monkeypatch):
    """A forged manifest made the compiler write files where it liked."""
    forged = "--xla_dump_to=somewhere"
    (tmp_path / "manifest.json").write_text(json.dumps({"flags": forged}))
    monkeypatch.setenv("XLA_FLAGS", "")
    with pytest.raises(InputError, match=r"the compiler flag '--xla_dump_to=somewhere'"):
        _flags(tmp_path)
    monkeypatch.setenv("XLA_FLAGS", forged)  # the user's own
    assert _flags(tmp_path) == forged


def test_a_closed_terminal_stops_and_saves(tmp_path, monkeypatch):
    """SIGHUP ended a run unsaved."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    command = [*TASK, "--steps", "2000000", "--set", "replay=100000", "--out", tmp_path / "run"]
    process = subprocess.Popen(
        [sys.executable, "-m", "primax", *map(str, command)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (tmp_path / "run" / "episodes.csv").exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGHUP)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1 and "primax resume" in said and said.count("\n") == 1
    assert open_run(tmp_path / "run").checkpoint.clock > 0
