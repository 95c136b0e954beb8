"""Finished runs made longer: to the bytes of a run made at once, whatever moment they are killed at."""

import json
import shutil
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from test_checkpoints import Crash, crash_at, everything

from primax.agent import critics
from primax.agent.learner import make_learner
from primax.api import train
from primax.cli import main
from primax.cli.common import SAME_BITS
from primax.errors import InputError, StoppedError
from primax.presets import configure
from primax.runs import checkpoints, disk, npz, proceed, records, start
from primax.runs.extend import extend, longer
from primax.runs.proceed import Listener, reopen
from primax.runs.provenance import provenance
from primax.runs.read import open_run, read_manifest

PUBLISHED = Path(__file__).parent.parent / "results" / "paper" / "runs"
SMOKE = ["--preset", "smoke", "--seeds", "2"]


class StopError(Exception):
    """The test has seen enough."""


@pytest.fixture
def here(monkeypatch, compiled_once):
    """In this process, compiled as a user's runs are, with the flags that commands set."""
    monkeypatch.setenv("XLA_FLAGS", " ".join(SAME_BITS))


@pytest.fixture
def made(here, tmp_path_factory):
    """Makes runs of 2,000 steps, and of 3,000 at once with the same schedules; each once."""

    def make(method: str = "task") -> tuple[Path, Path]:
        home = tmp_path_factory.getbasetemp() / f"made_{method}"
        train = ["train", method, "maze", *SMOKE, "--save-every", "0"]
        if not home.exists():
            at_once = ["--steps", "3000", "--set", "schedule_steps=2000"]
            assert main([*train, "--out", str(home / "short")]) == 0
            assert main([*train, *at_once, "--out", str(home / "whole")]) == 0
        return home / "short", home / "whole"

    return make


@pytest.fixture
def run(made, tmp_path) -> Path:
    """A copy of a finished run of 2,000 steps."""
    return shutil.copytree(made()[0], tmp_path / "run")


@pytest.fixture
def whole(made) -> Path:
    """A run of 3,000 steps made at once, its schedules laid over 2,000."""
    return made()[1]


def assert_same(folder: Path, whole: Path) -> None:
    """Configuration, tables, maps, replays and last state, byte for byte."""
    last = sorted((whole / "checkpoints").iterdir())[-1].name
    for name in ("config.json", *disk.FINAL, f"checkpoints/{last}/state.npz"):
        assert (folder / name).read_bytes() == (whole / name).read_bytes(), name
    assert not (folder / "maps.raw").exists() and open_run(folder).is_finished


def resumed(folder: Path, *options: str) -> None:
    assert main(["resume", str(folder), *options]) == 0


def opened(folder: Path, steps: str = "3000") -> None:
    """Makes a run longer up to where it would be compiled."""

    def compiled(*args):
        raise StopError

    with pytest.MonkeyPatch.context() as patch, pytest.raises(StopError):
        patch.setattr(start, "compiled", compiled)
        proceed.proceed(extend(reopen(folder), steps))


def refused(capsys, *args) -> str:
    assert main([str(arg) for arg in args]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


# --- what does not need a run --------------------------------------------------------------------


def test_schedules_are_laid_over_their_span():
    """ε falls from 1 to 0.05 in a quarter of 2,000 steps, whatever the run's length."""
    config = configure("task", "maze", "smoke")
    assert (config.schedule_steps, config.schedule_span, config.total_steps) == (None, 2_000, 2_000)
    more = longer(config, "3_900")
    assert (more.steps, more.total_steps, more.schedule_span) == (3_900, 4_000, 2_000)
    assert longer(more, "9e3") == replace(more, steps=9_000), "they stay with the first"
    for each in (config, more):
        epsilon = make_learner(each).epsilon(jnp.array([0, 250, 500, 3_000]))
        np.testing.assert_allclose(epsilon, [1, 0.525, 0.05, 0.05], rtol=1e-6)
    without = make_learner(replace(more, schedule_steps=None)).epsilon(jnp.array([250, 1_000]))
    np.testing.assert_allclose(without, [0.7625, 0.05], rtol=1e-6)
    mixed = configure("task+prime", "maze", "smoke", {"mix.schedule": "linear"})
    for each in (mixed, longer(mixed, "4000")):
        rates = critics.rates(each.critics, each.mix)
        weights = [make_learner(each).bonus_weight(rates, jnp.int32(at)) for at in (500, 2_500)]
        np.testing.assert_allclose(weights, [0.075, 0], rtol=1e-6)
    for wrong in ("none", "0", "1.5"):
        with pytest.raises(InputError, match="steps"):
            longer(config, wrong)


def test_recorded_windows_go_on_at_the_same_distance():
    few = configure("task", "maze", "smoke")
    assert records.recorded(longer(few, "3000")) == {
        1_000: 9,
        1_500: 14,
        2_000: 19,
        2_500: 24,
        3_000: 29,
    }
    even = configure("task", "maze", "smoke", {"steps": 10_500})
    assert list(records.recorded(longer(even, "13_000"))) == [*range(1_500, 13_000, 1_000)]
    early = configure("task", "maze", "smoke", {"steps": 3_000, "schedule_steps": 10_500})
    assert records.recorded(early) == {1_500: 14, 2_500: 24}
    long = configure("task", "maze", "smoke", {"world.horizon": "800", "replay": "1_600"})
    assert records.recorded(longer(long, "3500")) == {1_000: 0, 2_000: 1, 2_500: 2, 3_500: 3}


def test_published_runs_have_no_span_of_their_own():
    """And record what they did: ten windows, evenly."""
    run = open_run(PUBLISHED / "prime_maze")
    assert "schedule_steps" not in run.settings and run.unsaid == ()
    config = run.config
    assert config.schedule_steps is None and config.schedule_span == run.steps
    ends = [config.warmup + -(-part * config.windows // 10) * 1_000 for part in range(1, 11)]
    assert list(records.recorded(config)) == ends
    assert set(ends) == {replay["step"] for replay in run.replays()}


def test_a_run_that_ends_before_its_first_recorded_window_can_be_packed(run, tmp_path):
    content = json.loads((run / "config.json").read_text()) | {"schedule_steps": 20_000}
    (run / "config.json").write_text(json.dumps(content))
    (run / "manifest.json").write_text(json.dumps({"finished": "today", "steps": 2_000}))
    (run / "replays.jsonl").unlink()
    assert main(["pack", str(run), "--out", str(tmp_path / "packed")]) == 0
    assert open_run(tmp_path / "packed" / "run").maps()["step"].tolist() == [2_000]


def test_maps_come_back_as_they_were_written(tmp_path):
    """To the byte: the warm-up draws visits only, and not every NaN has the same bits."""
    draw = np.random.default_rng(0)
    windows = [{"visits": draw.integers(0, 9, (2, 3, 4))} for _ in range(4)]
    for window in windows[1:]:
        window["r_int"] = draw.normal(size=(2, 3, 4)).astype(np.float32)
    windows[2]["r_int"][0, 0] = np.nan
    windows[3]["r_int"] = np.full((2, 3, 4), -np.float32(np.nan))
    raw = b"".join(records.map_rows((8, 7), 100 * i, window) for i, window in enumerate(windows))
    (tmp_path / "maps.raw").write_bytes(raw)
    packed = records.packed_maps(tmp_path / "maps.raw")
    (tmp_path / "maps.npz").write_bytes(packed)
    assert records.unpacked_maps(tmp_path / "maps.npz", (8, 7)) == raw
    with pytest.raises(InputError, match="different seeds"):
        records.unpacked_maps(tmp_path / "maps.npz", (8,))
    late = dict(npz.read(packed)) | {"step": np.full(4, 1 << 40)}
    for spoilt in (packed[:99], npz.to_bytes(late.items())):
        (tmp_path / "maps.npz").write_bytes(spoilt)
        with pytest.raises(InputError, match=r"maps\.npz cannot be read"):
            records.unpacked_maps(tmp_path / "maps.npz", (8, 7))


# --- to the same bytes ---------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("method", [pytest.param("prime", marks=pytest.mark.long), "smirl"])
def test_a_run_made_longer_has_the_bytes_of_one_made_at_once(made, tmp_path, capsys, method):
    short, whole = made(method)
    folder = shutil.copytree(short, tmp_path / "run")
    capsys.readouterr()
    resumed(folder, "--steps", "2_900")
    said = capsys.readouterr().out
    assert "2,900 steps rounded up to 3,000" in said and "going on from step 2,000" in said
    content = json.loads((whole / "config.json").read_text()) | {"steps": 2_900}
    assert json.loads((folder / "config.json").read_text()) == content
    (folder / "config.json").write_bytes((whole / "config.json").read_bytes())
    (folder / "manifest.json").write_bytes((whole / "manifest.json").read_bytes())
    assert_same(folder, whole)


def test_it_can_be_made_longer_again(run, whole):
    """Never with a checkpoint between, so that each end is all there is to go on from."""
    for steps in ("2500", "3000"):
        resumed(run, "--steps", steps)
    assert_same(run, whole)
    manifest = open_run(run).manifest
    assert [part["from_step"] for part in manifest["parts"]] == [0, 2_000, 2_500]
    assert [note["from_step"] for note in manifest["extended"]] == [2_000, 2_500]
    assert (manifest["steps"], manifest["recomputed_steps"]) == (3_000, 0)
    result = train("task", "maze", 2, "smoke", {"steps": 3_000, "schedule_steps": 2_000}, out=run)
    assert result.episodes["step"].max() == 3_000 and len(result.episodes["step"]) == 60


@pytest.mark.slow
def test_stopped_on_its_way_it_goes_on(run, whole, capsys):
    """By a plain resume, or by the same command again; not by one that wants another length."""
    with pytest.raises(StoppedError, match="stopped at step 2,500"):
        listener = Listener(is_asked=lambda: True)
        proceed.proceed(extend(reopen(run), "3000"), listener)
    assert not open_run(run).is_finished
    assert open_run(run).maps()["step"].tolist() == [500, 1_000, 1_500, 2_000, 2_500]
    said = refused(capsys, "resume", run, "--steps", "3500")
    assert f"is not finished: primax resume {run} goes on to step 3,000" in said
    again = shutil.copytree(run, run.with_name("again"))
    resumed(run)
    assert_same(run, whole)
    resumed(again, "--steps", "3000")
    assert_same(again, whole)


@pytest.mark.slow
def test_killed_at_the_new_end_nothing_is_lost(run, whole, monkeypatch):
    """The new maps.npz is there, and the only checkpoint is the one that knew the old."""
    shutil.rmtree(run / "checkpoints" / "000001500")
    with monkeypatch.context() as patch, pytest.raises(StopError):

        def save(*args):
            raise StopError

        patch.setattr(checkpoints, "save", save)
        main(["resume", str(run), "--steps", "3000"])
    assert (run / "maps.npz").read_bytes() == (whole / "maps.npz").read_bytes()
    assert checkpoints.newest(run).clock == 2_000
    resumed(run)
    assert_same(run, whole)


@pytest.mark.slow
def test_the_checkpoint_before_the_old_end_serves_too(run, whole, capsys):
    """Its configuration is the old one, and the maps it saw are there again."""
    opened(run)
    state = run / "checkpoints" / "000002000" / "state.npz"
    state.write_bytes(state.read_bytes()[:1000])
    resumed(run)
    assert "going on from step 1,500" in capsys.readouterr().out
    assert_same(run, whole)


# --- killed while it is opened -------------------------------------------------------------------


def crashed(folder: Path, countdown: int) -> bool:
    """Whether it died at the n-th touch of the disk, before it would be compiled."""
    with pytest.MonkeyPatch.context() as patch:
        crash_at(patch, countdown)
        try:
            opened(folder)
        except Crash:
            return True
    return False


def told(folder: Path) -> dict[str, bytes]:
    """All files but the manifest, which has times."""
    return {k: v for k, v in everything(folder).items() if k != "manifest.json"}


@pytest.mark.slow
def test_a_crash_at_every_touch_of_the_disk_is_survived(run, tmp_path):
    """`--steps` again leads where it would have led; a plain resume too, or back to the old end."""
    ready = shutil.copytree(run, tmp_path / "ready")
    opened(ready)
    before, after, outcomes = told(run), told(ready), []
    assert "maps.raw" in after and "maps.npz" not in after
    for countdown in range(1, 1_000):
        folder = shutil.copytree(run, tmp_path / str(countdown))
        if not crashed(folder, countdown):
            break
        assert open_run(folder).maps()["step"].tolist() == [500, 1_000, 1_500, 2_000]
        again = shutil.copytree(folder, tmp_path / f"{countdown}_again")
        opened(again)
        assert after.items() <= told(again).items(), f"after a crash at touch {countdown}"
        assert [note["from_step"] for note in open_run(again).manifest["extended"]] == [2_000]
        is_back = (folder / "config.json").read_bytes() == before["config.json"]
        outcomes.append(is_back)
        if is_back:
            proceed.proceed(reopen(folder))
            assert before.items() <= told(folder).items()
            assert open_run(folder).manifest.get("extended", []) == []
            continue
        with pytest.MonkeyPatch.context() as patch, pytest.raises(StopError):
            patch.setattr(start, "compiled", lambda *args: (_ for _ in ()).throw(StopError))
            proceed.proceed(reopen(folder))
        assert after.items() <= told(folder).items()
    # The manifest and the configuration are written, renamed and synced; the tables kept are synced;
    # maps.raw and the checkpoint's description again; maps.npz goes, a sync; the manifest at last.
    assert outcomes == [True] * (3 + 2) + [False] * (1 + 2 + 3 + 3 + 2 + 3)


def test_killed_between_manifest_and_configuration(run, tmp_path, monkeypatch, capsys):
    """It is a run at its last step: a resume finishes it again, and --steps goes on."""
    real = disk.write_whole

    def write(path, content):
        if path.name == "config.json":
            raise StopError
        real(path, content)

    with monkeypatch.context() as patch, pytest.raises(StopError):
        patch.setattr(disk, "write_whole", write)
        extend(reopen(run), "3000")
    assert not open_run(run).is_finished
    again = shutil.copytree(run, tmp_path / "again")
    resumed(run)
    assert "compiling" not in capsys.readouterr().out
    assert open_run(run).is_finished and open_run(run).manifest["extended"] == []
    opened(again, "2500")
    assert open_run(again).config.total_steps == 2_500


# --- refused -------------------------------------------------------------------------------------


def test_what_cannot_be_made_longer_is_left_as_it_is(run, capsys, tmp_path):
    (run / "lock").unlink()
    before = everything(run)
    assert "is already 2,000 steps long" in refused(capsys, "resume", run, "--steps", "2000")
    assert "is already 2,000 steps long" in refused(capsys, "resume", run, "--steps", "1000")
    assert "steps takes a whole number" in refused(capsys, "resume", run, "--steps", "many")
    assert everything(run) == before and not (run / "lock").exists()
    assert main(["pack", str(run), "--out", str(tmp_path / "packed")]) == 0
    capsys.readouterr()
    said = refused(capsys, "resume", tmp_path / "packed" / "run", "--steps", "3000")
    assert "is a packed run: it can be read, but not resumed" in said


def test_an_end_that_is_not_whole_is_refused(run, capsys, tmp_path, monkeypatch):
    def spoilt(name: str, content: bytes | None) -> str:
        folder = shutil.copytree(run, tmp_path / "spoilt", dirs_exist_ok=True)
        (folder / name).unlink()
        if content is not None:
            (folder / name).write_bytes(content)
        before = everything(folder)
        said = refused(capsys, "resume", folder, "--steps", "3000")
        assert everything(folder) == before
        shutil.rmtree(folder)
        return said

    last = "checkpoints/000002000"
    assert "000002000/state.npz is damaged" in spoilt(f"{last}/state.npz", b"")
    assert "000002000: cannot be read" in spoilt(f"{last}/about.json", None)
    assert "episodes.csv was changed after" in spoilt("episodes.csv", None)
    longer_table = (run / "windows.csv").read_bytes() + b"0,1\n"
    assert "windows.csv was changed after the run had" in spoilt("windows.csv", longer_table)
    shutil.rmtree(run / last)
    before = everything(run)
    said = refused(capsys, "resume", run, "--steps", "3000")
    assert "the checkpoint of its last step, 2,000, is gone" in said
    assert everything(run) == before


def test_a_run_made_elsewhere_is_refused_unless_told(run, capsys, monkeypatch):
    now, before = provenance(), everything(run)
    monkeypatch.setattr(proceed, "provenance", lambda: {**now, "jax": "9.9"})
    assert "is now '9.9'; --anyway" in refused(capsys, "resume", run, "--steps", "3000")
    assert everything(run) == before
    assert extend(reopen(run), "3000", frozenset(["anyway"])).config.total_steps == 3_000


def test_a_state_that_does_not_fit_is_refused(run):
    """Other code, allowed by --anyway, might have another."""
    before = everything(run)
    other = make_learner(configure("task", "maze", "smoke", {"critics.heads": 3}))
    with pytest.raises(InputError, match="the state"):
        extend(replace(reopen(run), learner=other), "3000", frozenset(["anyway"]))
    assert everything(run) == before


def test_a_run_of_another_version_is_refused(run, capsys):
    content = json.loads((run / "config.json").read_text())
    del content["update_every"]
    (run / "config.json").write_text(json.dumps(content))
    manifest = read_manifest(run)
    manifest["files"]["config.json"] = proceed.config_hash(run)
    (run / "manifest.json").write_text(json.dumps(manifest))
    before = everything(run)
    assert "has no value for update_every" in refused(capsys, "resume", run, "--steps", "3000")
    assert everything(run) == before


def test_a_run_that_another_process_has_changed_is_refused(run, monkeypatch):
    @contextmanager
    def locked(folder):
        (folder / "manifest.json").write_text("{}")
        yield

    monkeypatch.setattr("primax.runs.extend.locked", locked)
    with pytest.raises(InputError, match="was in use by another process"):
        extend(reopen(run), "3000")
    assert (run / "manifest.json").read_text() == "{}"


def test_a_run_that_is_not_finished_is_refused(run, capsys):
    manifest = open_run(run).manifest
    (run / "manifest.json").write_text(json.dumps({"parts": manifest["parts"]}))
    said = refused(capsys, "resume", run, "--steps", "3000")
    assert f"is not finished: primax resume {run} goes on to step 2,000" in said


def test_steps_edited_by_hand_are_answered_with_the_command(run, capsys):
    path = run / "config.json"
    content = path.read_text()
    path.write_text(content.replace('"steps": 2000', '"steps": 3000'))
    said = refused(capsys, "resume", run)
    assert "was changed after the run had finished" in said
    assert f"primax resume {run} --steps N makes a run longer" in said
    path.write_text(content.replace("0.0003", "0.001"))
    assert "--steps" not in refused(capsys, "resume", run)


def test_other_settings_edited_on_the_way_are_refused(run, capsys):
    """The old end is taken for the configuration that was written then, and for no other."""
    extend(reopen(run), "3000")
    path = run / "config.json"
    path.write_text(path.read_text().replace("0.0003", "0.001"))
    assert "was changed since the last checkpoint" in refused(capsys, "resume", run)


def test_a_run_that_was_made_longer_meanwhile_is_not_cut_short(run):
    job = reopen(run)
    extend(job, "3000")
    with pytest.raises(InputError, match="has other steps by now"):
        proceed.proceed(job)


def test_in_python_the_message_names_the_command(run):
    args = ("task", "maze", 2, "smoke")
    with pytest.raises(InputError, match=f"primax resume {run} --steps 3000 makes it so long"):
        train(*args, {"steps": 3_000}, out=run)
    for other in ({"steps": 1_500}, {"steps": 3_000, "critics.gamma": 0.5}):
        with pytest.raises(InputError, match="another configuration: choose another folder"):
            train(*args, other, out=run)


def test_maps_are_read_from_the_growing_file_while_the_run_goes_on(run):
    opened(run)
    (run / "maps.npz").write_bytes(npz.to_bytes([("visits", np.zeros(3))]))
    assert open_run(run).maps()["step"].tolist() == [500, 1_000, 1_500, 2_000]
