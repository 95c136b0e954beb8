"""Runs that are killed, stopped, damaged or starved, and go on to the same bytes."""

import errno
import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import jax.numpy as jnp
import numpy as np
import pytest

from primax.agent import training
from primax.agent.learner import make_learner
from primax.api import train
from primax.cli import main
from primax.cli.common import SAME_BITS
from primax.errors import InputError, RunError
from primax.methods import build
from primax.presets import configure
from primax.runs import checkpoints, disk, loop, trees
from primax.runs.config_json import as_json, create, to_bytes
from primax.runs.export import load
from primax.runs.loop import check_finite
from primax.runs.proceed import Listener, proceed, reopen
from primax.runs.provenance import provenance
from primax.runs.read import open_run

SMOKE = ["train", "task", "maze", "--preset", "smoke", "--seeds", "2", "--save-every", "0"]
ARGS = ["task", "maze", "--preset", "smoke", "--seeds", "2", "--steps", "15000"]
PRIME = ["prime", "butterflies", "--preset", "smoke", "--seeds", "2", "--steps", "6000"]


@pytest.fixture(scope="module")
def environment():
    return {**os.environ, "XLA_FLAGS": "", "COLUMNS": "100"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory, environment):
    """An uninterrupted run."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    primax(environment, "train", *ARGS, "--out", folder)
    return folder


def command(*args) -> list[str]:
    return [sys.executable, "-m", "primax", *map(str, args)]


def primax(environment, *args) -> str:
    done = subprocess.run(command(*args), env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def assert_same(folder, whole) -> None:
    """Tables, maps, replays and final state, byte for byte."""
    for name in ("config.json", *disk.FINAL):
        assert (folder / name).read_bytes() == (whole / name).read_bytes(), name
    assert not (folder / "maps.raw").exists()
    last = sorted((whole / "checkpoints").iterdir())[-1].name
    ours, theirs = (path / "checkpoints" / last / "state.npz" for path in (folder, whole))
    assert ours.read_bytes() == theirs.read_bytes()


def kill_after(environment, folder, args, size: int) -> bool:
    """Starts a command and kills it once the episode table is so long; False if it finished."""
    process = subprocess.Popen(command(*args), env=environment, stdout=subprocess.DEVNULL)
    table = folder / "episodes.csv"
    while process.poll() is None:
        if table.exists() and table.stat().st_size >= size:
            process.send_signal(signal.SIGKILL)
            process.wait()
            return True
        time.sleep(0.002)
    return False


def assert_survives(environment, whole, folder, kills: int, seed: int, args=ARGS) -> None:
    """Kills at random moments until the run is through; every resume loses at most one interval."""
    draw = random.Random(seed)
    end = (whole / "episodes.csv").stat().st_size
    killed, args = 0, ["train", *args, "--out", folder, "--save-every", "0"]
    while killed < kills:
        at = draw.uniform(killed / kills, (killed + 1) / kills) * 0.9
        assert kill_after(environment, folder, args, int(at * end)), "it finished before the kill"
        killed += 1
        args = ["resume", folder, "--save-every", "0"]
    primax(environment, *args)
    assert_same(folder, whole)
    recomputed = json.loads((folder / "manifest.json").read_text())["recomputed_steps"]
    assert 0 <= recomputed <= killed * 500  # the smoke preset's window; here also the interval


@pytest.mark.slow
def test_five_kills_change_no_byte(environment, whole, tmp_path):
    assert_survives(environment, whole, tmp_path / "run", kills=5, seed=0)


@pytest.mark.long
def test_five_more_kills_change_no_byte(environment, whole, tmp_path):
    assert_survives(environment, whole, tmp_path / "run", kills=5, seed=1)


@pytest.mark.slow
def test_kills_change_no_byte_of_prime(environment, tmp_path):
    """On as many threads as there are cores, as a user's runs are."""
    environment = {name: value for name, value in environment.items() if name != "NPROC"}
    primax(environment, "train", *PRIME, "--out", tmp_path / "whole")
    assert_survives(environment, tmp_path / "whole", tmp_path / "run", 2, seed=0, args=PRIME)
    with np.load(tmp_path / "run" / "maps.npz") as maps:
        assert maps["v_epi"].shape == maps["visits"].shape == (12, 2, 6, 6)
        np.testing.assert_array_equal(maps["visits"].sum(axis=(2, 3)), 500)
        assert np.isnan(maps["r_int"][0]).all() and np.isfinite(maps["r_int"][1:]).any()
    primax(environment, "export", tmp_path / "run", "--which", "best")
    assert load(tmp_path / "run" / "export_best.npz").seeds == (0, 1)


@pytest.mark.slow
def test_killed_while_compiling_it_starts_again(environment, whole, tmp_path):
    folder = tmp_path / "run"
    process = subprocess.Popen(
        command("train", *ARGS, "--out", folder), env=environment, stdout=subprocess.DEVNULL
    )
    while not (folder / "manifest.json").exists():
        assert process.poll() is None
        time.sleep(0.002)
    process.kill()
    process.wait()
    assert "going on" not in primax(environment, "resume", folder)
    assert_same(folder, whole)


@pytest.mark.slow
def test_ctrl_c_saves_and_says_how_to_go_on(environment, whole, tmp_path):
    folder = tmp_path / "run"
    process = subprocess.Popen(
        command("train", *ARGS, "--out", folder),
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        stdout=subprocess.DEVNULL,
    )
    while not (folder / "windows.csv").exists():
        assert process.poll() is None
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1 and f"primax resume {folder} goes on" in said
    primax(environment, "resume", folder)
    assert_same(folder, whole)
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["recomputed_steps"] == 0
    assert [part["run_s"] > 0 for part in manifest["parts"]] == [True, True]


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR2])
def test_other_signals_are_ctrl_c(environment, tmp_path, sent):
    """SIGHUP, of a closed terminal, once ended a run unsaved."""
    folder = tmp_path / "run"
    process = subprocess.Popen(
        command("train", *ARGS, "--out", folder),
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (folder / "windows.csv").exists():
        assert process.poll() is None
        time.sleep(0.002)
    process.send_signal(sent)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1 and "primax resume" in said and said.count("\n") == 1
    checkpoint, _ = checkpoints.load(folder)
    assert checkpoint is not None and checkpoint.clock > 0


@pytest.mark.slow
def test_a_run_goes_on_when_nobody_reads_its_output(environment, whole, tmp_path):
    """`primax train ... | head -1` ended the run."""
    folder = tmp_path / "run"
    train = shlex.join(command("train", *ARGS, "--out", folder))
    done = subprocess.run(
        f"{train} | head -1", shell=True, env=environment, capture_output=True, text=True
    )
    assert done.stdout == "starting at step 0\n" and done.stderr == ""
    assert_same(folder, whole)


@pytest.mark.slow
def test_resuming_a_finished_run_does_nothing(environment, whole):
    """Not even a lock is left, so that the folder may be read-only."""
    (whole / "lock").unlink(missing_ok=True)

    def times() -> dict:
        return {path: path.stat().st_mtime_ns for path in (whole, *whole.rglob("*"))}

    before = times()
    assert "is finished" in primax(environment, "resume", whole)
    assert before == times()


def test_a_finished_run_that_cannot_be_read_is_not_called_finished(tmp_path):
    create(tmp_path / "run", configure("task", "maze", "smoke"), (0,))
    (tmp_path / "run" / "manifest.json").write_text('{"finished": "today", "steps": 2000}')
    (tmp_path / "run" / "episodes.csv.bz2").write_bytes(b"BZh9")
    said: list[str] = []
    with pytest.raises(InputError, match=r"episodes\.csv\.bz2 is not the table"):
        proceed(reopen(tmp_path / "run"), Listener(said.append))
    assert said == []


@pytest.fixture
def here(monkeypatch, optimised, compiled_once):
    """In this process, compiled as a user's runs are, with the flags that commands set."""
    monkeypatch.setenv("XLA_FLAGS", " ".join(SAME_BITS))


@pytest.fixture
def whole_here(here, tmp_path_factory):
    """An uninterrupted run in this process; one for all tests."""
    folder = tmp_path_factory.getbasetemp() / "whole_here"
    if not folder.exists():
        assert main([*SMOKE, "--out", str(folder)]) == 0
    return folder


@pytest.mark.slow
def test_a_folder_with_only_a_configuration_starts(whole_here, tmp_path):
    (tmp_path / "config.json").write_bytes((whole_here / "config.json").read_bytes())
    assert main(["resume", str(tmp_path)]) == 0
    assert_same(tmp_path, whole_here)


def refused(capsys, status: int, *args) -> str:
    assert main([str(arg) for arg in args]) == status
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


def test_what_holds_no_run_is_refused(here, capsys, tmp_path):
    assert "holds no run" in refused(capsys, 2, "resume", tmp_path / "none")
    (tmp_path / "config.json").write_text("{}")
    assert "is not a configuration" in refused(capsys, 2, "resume", tmp_path)
    for damaged in (b'{"method": "ta', b"", b"\xff\xff", b"[]"):
        (tmp_path / "config.json").write_bytes(damaged)
        said = refused(capsys, 2, "resume", tmp_path)
        assert "config.json is damaged" in said and "version" not in said


def test_a_configuration_of_the_wrong_kinds_is_refused(tmp_path):
    content = as_json(configure("task", "maze", "smoke"), (3, 5))
    (tmp_path / "config.json").write_bytes(to_bytes(content))
    assert open_run(tmp_path).given_seeds == (3, 5)
    for name, value in (("steps", True), ("seeds", []), ("seeds", ["a"])):
        (tmp_path / "config.json").write_bytes(to_bytes(content | {name: value}))
        with pytest.raises(InputError, match=f"of this version: {name} takes"):
            _ = open_run(tmp_path).config


@pytest.mark.slow
def test_a_full_disk_keeps_what_was_saved(here, capsys, tmp_path, monkeypatch):
    folder = tmp_path / "run"
    real, calls = disk.append, []

    def append(path, rows):
        calls.append(path)
        if len(calls) == 7:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(path, rows)

    monkeypatch.setattr(disk, "append", append)
    said = refused(capsys, 1, *SMOKE, "--out", folder)
    assert "No space left on device" in said and "goes on from it" in said
    monkeypatch.undo()
    assert checkpoints.load(folder)[0] is not None


TINY = """
mount -t tmpfs -o size={size} tmpfs {place} || exit 99
head -c {filler} /dev/zero > {place}/filler
{train} --out {place}/run; echo "status $?"
ls {place}/run/checkpoints
rm {place}/filler
{resume} {place}/run; echo "status $?"
cp -r {place}/run {out}
"""


@pytest.mark.slow
def test_a_disk_that_is_really_full(environment, whole, tmp_path):
    """A small file system of its own; two checkpoints and a half fit until space is made."""
    place, out = tmp_path / "tiny", tmp_path / "out"
    place.mkdir()
    state = sorted((whole / "checkpoints").iterdir())[-1] / "state.npz"
    size = state.stat().st_size
    script = TINY.format(
        size=8 * size,
        filler=int(5.5 * size),
        place=place,
        out=out,
        train=shlex.join(command("train", *ARGS, "--save-every", 0)),
        resume=shlex.join(command("resume", "--save-every", 0)),
    )
    unshare = shutil.which("unshare") or pytest.skip("needs unshare(1), to mount a small disk")
    done = subprocess.run(
        [unshare, "-rm", "sh", "-c", script], env=environment, capture_output=True, text=True
    )
    if done.returncode in (1, 99):
        pytest.skip(f"may not mount a small disk: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    (said,) = (line for line in done.stderr.splitlines() if line.startswith("primax: "))
    assert "cannot write: No space left on device" in said
    assert f"primax resume {place}/run goes on from it" in said
    before, after = done.stdout.split("status 1\n")
    assert "starting at step 0" in before and after.endswith("status 0\n")
    first, second = after.splitlines()[:2]
    assert (first, second) == ("000000500", "000001000"), "and no half of a third"
    assert "going on from step 1,000" in after
    assert_same(out, whole)


@pytest.mark.slow
def test_in_python_the_same_call_goes_on(here, tmp_path):
    folder, clocks = tmp_path / "run", []

    def stop(progress):
        if progress.clock == 1_000:
            os.kill(os.getpid(), signal.SIGINT)

    args = ("task", "maze", 2, "smoke")
    with pytest.raises(RunError, match="stopped at step 1,000"):
        train(*args, on_window=stop, out=folder)
    result = train(*args, on_window=lambda now: clocks.append(now.clock), out=str(folder))
    assert clocks == [1_500, 2_000] and result.run_s > 0
    with ThreadPoolExecutor(1) as elsewhere:  # where no signal can be caught
        elsewhere.submit(train, *args, out=tmp_path / "whole").result()
    assert_same(folder, tmp_path / "whole")
    plain = train(*args)
    for ours, theirs in ((result.episodes, plain.episodes), (result.windows, plain.windows)):
        assert list(ours) == list(theirs)
        for name, column in theirs.items():
            assert ours[name].dtype == column.dtype, name
            np.testing.assert_array_equal(ours[name], column)
    assert trees.dump(result.state) == trees.dump(plain.state)
    again = train(*args, on_window=stop, out=folder)
    assert again.episodes["score"].tolist() == plain.episodes["score"].tolist()
    with pytest.raises(InputError, match="holds a run of another configuration"):
        train("task", "maze", 3, "smoke", out=folder)


@pytest.mark.slow
def test_a_run_made_elsewhere_is_refused_unless_told(stopped, capsys, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("primax.runs.proceed.provenance", elsewhere(provenance()))
        said = refused(capsys, 2, "resume", stopped)
        assert "jax was" in said and "is now '9.9'" in said and "--anyway" in said
        assert main(["resume", str(stopped), "--anyway"]) == 0


def started(folder, monkeypatch, clock: int = 1_500) -> None:
    """A run that was stopped by force with its last checkpoint at that step."""
    with monkeypatch.context() as patch:
        patch.setattr(loop, "check_finite", stop_at(clock))
        with pytest.raises(StopError):
            main([*SMOKE, "--out", str(folder)])


@pytest.fixture
def stopped(here, monkeypatch, tmp_path, tmp_path_factory):
    """A copy of a run that was stopped at step 1,500."""
    made = tmp_path_factory.getbasetemp() / "stopped"
    if not made.exists():
        started(made, monkeypatch)
    return shutil.copytree(made, tmp_path / "run")


def damage(path) -> None:
    path.write_bytes(path.read_bytes()[:1000])


@pytest.mark.slow
def test_damaged_checkpoints_do_not_pass_for_the_newest(stopped, capsys):
    """Those of the resumed run have lower numbers, and are kept."""
    damage(stopped / "checkpoints" / "000001500" / "state.npz")
    assert main(["resume", str(stopped), "--save-every", "0"]) == 0
    said = capsys.readouterr().out.replace("\n", "")
    assert "000001500/state.npz is damaged" in said and "going on from step 1,000" in said
    checkpoint, damaged = checkpoints.load(stopped)
    assert checkpoint is not None and checkpoint.clock == 2_000 and damaged == []


@pytest.mark.slow
def test_without_a_usable_checkpoint_it_begins_again_only_when_told(stopped, capsys):
    table = stopped / "episodes.csv"
    table.write_bytes(table.read_bytes().replace(b",100,", b",101,"))
    before = table.read_bytes()
    assert "no usable checkpoint" in refused(capsys, 2, "resume", stopped)
    assert table.read_bytes() == before
    assert main(["resume", str(stopped), "--restart"]) == 0
    assert "starting at step 0" in capsys.readouterr().out
    assert b",101," not in table.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "is_first"),
    [
        ("save", False),
        pytest.param("save", True, marks=pytest.mark.slow),
        pytest.param("keep_only", False, marks=pytest.mark.slow),
    ],
)
def test_killed_at_the_very_end_a_resume_finishes_it(
    whole_here, capsys, tmp_path, monkeypatch, where, is_first
):
    """Before the last checkpoint, be it the first, and after it while maps.raw is still there."""
    home = checkpoints if where == "save" else disk
    folder, real = tmp_path / "run", getattr(home, where)

    def dies(folder, *args):
        if disk.FINAL in args:
            raise StopError
        real(folder, *args)

    with monkeypatch.context() as patch:
        patch.setattr(home, where, dies)
        with pytest.raises(StopError):
            main([*SMOKE, "--out", str(folder)])
    assert (folder / "maps.raw").exists() and (folder / "maps.npz").exists()
    if is_first:
        shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    capsys.readouterr()
    assert main(["resume", str(folder)]) == 0
    said = capsys.readouterr().out
    assert ("compiling" in said) == (where == "save"), "with the last checkpoint nothing is left"
    assert_same(folder, whole_here)


@pytest.mark.slow
def test_stopped_after_the_warm_up_it_goes_on(whole_here, tmp_path, monkeypatch):
    """Nothing is in the window table then, not even its header."""
    folder = tmp_path / "run"
    started(folder, monkeypatch, 500)
    (folder / "windows.csv").write_bytes(b"seed,step\n0,")
    assert main(["resume", str(folder), "--save-every", "0"]) == 0
    assert_same(folder, whole_here)


@pytest.mark.slow
def test_a_changed_configuration_is_refused(stopped, capsys):
    path = stopped / "config.json"
    path.write_text(path.read_text().replace("0.0003", "0.001"))
    assert "was changed since" in refused(capsys, 2, "resume", stopped)


@pytest.mark.slow
def test_the_manifest_keeps_every_part(stopped):
    assert main(["resume", str(stopped)]) == 0
    parts = json.loads((stopped / "manifest.json").read_text())["parts"]
    assert [part["from_step"] for part in parts] == [0, 1_500]
    assert "run_s" in parts[1]


@pytest.mark.slow
def test_spoilt_files_are_refused_in_one_line(stopped, capsys):
    assert "holds a run: primax resume" in refused(capsys, 2, *SMOKE, "--out", stopped)
    (stopped / "manifest.json").write_text("[1]")
    assert "manifest.json is damaged" in refused(capsys, 2, "resume", stopped)
    (stopped / "manifest.json").unlink()
    (stopped / "lock").unlink()
    (stopped / "lock").mkdir()
    assert "cannot lock" in refused(capsys, 2, "resume", stopped)
    (stopped / "lock").rmdir()
    assert main(["resume", str(stopped)]) == 0
    capsys.readouterr()
    (stopped / "episodes.csv").unlink()
    assert "episodes.csv is not the table" in refused(capsys, 2, "resume", stopped)


def test_a_run_carries_its_map(here, tmp_path, monkeypatch):
    path = tmp_path / "m.txt"
    path.write_text("\n".join(["S.....", *["......"] * 4, ".....F"]))
    monkeypatch.chdir(tmp_path)
    config = configure("task", "maze", "smoke", {"world.layout": "m.txt"})
    path.unlink()
    create(tmp_path / "run", config, (0,))
    again = open_run(tmp_path / "run").config
    assert build(again)[0].goal == 35


def elsewhere(now: dict):
    return lambda: {**now, "jax": "9.9"}


class StopError(Exception):
    """The test has seen enough."""


def stop_at(clock: int):
    def check(progress):
        if progress.clock > clock:
            raise StopError

    return check


def test_a_number_that_is_none_stops_the_run_by_name(tmp_path):
    window = {
        "seed": np.array([4, 9]),
        "step": np.array([500, 500]),
        "loss": np.array([0.1, np.nan]),
    }
    progress = training.Progress(500, 1_000, {}, window, 0.1)
    with pytest.raises(RunError, match=r"loss of seed 9 is nan in the window .* 500"):
        check_finite(progress)


def test_a_diverging_run_stops_and_keeps_its_last_good_checkpoint(
    here, capsys, tmp_path, monkeypatch
):
    real = training.window_rows

    def poisoned(seeds, clock, metrics):
        table = real(seeds, clock, metrics)
        return table | {"loss": table["loss"] * np.inf} if table and clock > 1_000 else table

    monkeypatch.setattr(training, "window_rows", poisoned)
    said = refused(capsys, 1, *SMOKE, "--out", tmp_path / "run")
    assert "loss of seed 0 is" in said and "1,500" in said
    checkpoint, _ = checkpoints.load(tmp_path / "run")
    assert checkpoint is not None and checkpoint.clock == 1_000


def test_configurations_survive_the_folder(tmp_path):
    settings = {"critics.heads": "3", "world.layout": "one_wide", "net.activation": "relu"}
    config = configure("none", "maze", "quick", settings)
    create(tmp_path / "run", config, (3, 5))
    run = open_run(tmp_path / "run")
    assert (run.config, run.given_seeds) == (config, (3, 5))


@pytest.mark.slow
def test_a_resumed_state_needs_no_second_program(here):
    """Types are the same, weak ones included, so that nothing is compiled again."""
    config = configure("task", "maze", "smoke")
    like = training.state_like(make_learner(config), 2)
    program = training.compile_program(make_learner(config), (0, 1))
    state = program.init(training.jax.random.key(0), jnp.arange(2))
    restored = trees.restore(trees.dump(state), like)
    after, _ = program.warm_up(restored, jnp.int32(0))
    assert after.obs.shape == state.obs.shape
