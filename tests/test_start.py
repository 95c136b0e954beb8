"""Starting and stopping the command line: nothing heavy before it is needed, Ctrl-C at any moment."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from primax.runs.stops import AtOnce, on_ctrl_c

TRAIN = ("train", "prime", "maze", "--preset", "smoke", "--seeds", "2")


@pytest.mark.parametrize(
    "args",
    [
        ["--help"],
        ["help"],
        ["--version"],
        ["nonsense"],
        [],
        ["completion", "bash"],
        ["completion", "words", "--", "train", "pr"],
    ],
)
def test_what_needs_no_learner_loads_none(args):
    script = f"""
import sys
from primax.cli import main
main({args})
heavy = {{"jax", "numpy", "scipy", "rich", "equinox", "gymnasium"}} & set(sys.modules)
assert not heavy, heavy
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_starting_a_command_loads_nothing_that_only_its_end_may_need():
    """Half of the time until a command begins was once the loading of `scipy.stats`."""
    script = """
import sys
import primax.cli.reproduce, primax.cli.report, primax.cli.sweep, primax.cli.train, primax.cli.verify
late = {"scipy.stats", "scipy.signal", "scipy.optimize", "gymnasium", "matplotlib.pyplot"}
late &= set(sys.modules)
assert not late, late
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_public_names_are_all_there_and_no_others():
    import primax

    assert set(dir(primax)) == set(primax.__all__)
    assert all(getattr(primax, name) is not None for name in primax.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'trian'"):
        _ = primax.trian


def begun(*args) -> subprocess.Popen:
    command = [sys.executable, "-m", "primax", *map(str, args)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def interrupted(process: subprocess.Popen) -> str:
    """What is said within seconds of Ctrl-C."""
    process.send_signal(signal.SIGINT)
    try:
        _, said = process.communicate(timeout=10)
    finally:
        process.kill()
    assert process.returncode == 130, said
    assert said.count("\n") == 1 and said.startswith("primax: stopped"), said
    return said


@pytest.mark.parametrize("seconds", [0.0, 0.3, 0.6])
def test_ctrl_c_while_libraries_load(seconds):
    """An exception would surface in the loading of compiled libraries, as a page of traceback."""
    process = begun("worlds")
    loaded = Path(f"/proc/{process.pid}/maps")
    while loaded.exists() and "numpy" not in loaded.read_text():  # until then Python itself begins
        assert process.poll() is None
        time.sleep(0.005)
    time.sleep(seconds if loaded.exists() else 0.2 + seconds)
    assert interrupted(process) == "primax: stopped\n"


def test_ctrl_c_while_compiling_answers_at_once_and_says_how_to_go_on(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    process = begun(*TRAIN, "--out", tmp_path / "run")
    manifest = tmp_path / "run" / "manifest.json"
    while not manifest.exists():
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(1.0)  # it compiles for many more
    said = interrupted(process)
    assert f"primax resume {tmp_path / 'run'} goes on" in said
    assert os.listdir(tmp_path / "run")  # and nothing is lost


def test_in_python_ctrl_c_is_the_callers():
    """A library does not end the process: it leaves the signal as it finds it."""
    before = signal.getsignal(signal.SIGINT)
    with on_ctrl_c("stopped"):
        assert signal.getsignal(signal.SIGINT) is before
    with on_ctrl_c("stopped", is_first=True):
        assert isinstance(signal.getsignal(signal.SIGINT), AtOnce)
        with on_ctrl_c("stopped; primax resume DIR goes on"):
            assert signal.getsignal(signal.SIGINT).line.endswith("goes on")
        assert signal.getsignal(signal.SIGINT).line == "stopped"
    assert signal.getsignal(signal.SIGINT) is before
