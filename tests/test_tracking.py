"""Trackers are told what the tables say, once, and can neither change a run nor stop it."""

import csv
import errno
import inspect
import json
import os
import shutil
import struct
import sys
import types
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from tensorboardX import record_writer
from tensorboardX.crc32c import crc32c
from tensorboardX.proto.event_pb2 import Event, SessionLog
from tensorboardX.proto.plugin_hparams_pb2 import HParamsPluginData

import primax
from primax.agent.training import Progress
from primax.cli import main
from primax.errors import InputError
from primax.runs import pack
from primax.runs.proceed import Listener, proceed, reopen
from primax.runs.tracking import About, Book, Tracker, numbers

SMOKE = ("task", "maze", "--preset", "smoke", "--seeds", "2")
TABLES = ("config.json", "episodes.csv", "windows.csv", "maps.npz", "replays.jsonl")
ABOUT = About("0123abcd", "run", {"steps": 2_000})


def progress(clock: int, total: int = 2_000, **columns: list[float]) -> Progress:
    """A window of episodes of the seeds 3 and 5."""
    episodes = {name: np.array(column) for name, column in columns.items()}
    return Progress(clock, total, episodes, {}, 0.1)


def test_a_seed_counts_once_however_many_episodes_it_has():
    """Seed 3 has 1, 3 and 5 of mean 3, seed 5 has 7: their mean is 5, not 4."""
    told = progress(500, seed=[3, 3, 3, 5], score=[1.0, 3.0, 5.0, 7.0], step=[1, 2, 3, 4])
    assert numbers(told) == {
        "episodes/score": 5.0,
        "episodes/score/3": 3.0,
        "episodes/score/5": 7.0,
    }


def test_what_nobody_has_is_left_out():
    """An episode without a target has no distance."""
    nan = float("nan")
    told = progress(500, seed=[3, 3, 5], distance=[2.0, nan, nan], coverage=[nan] * 3)
    assert numbers(told) == {"episodes/distance": 2.0}
    assert numbers(progress(500)) == {}


# TensorBoard


def events(folder: Path) -> list[Event]:
    """Of all files in the order of their names, as TensorBoard reads them; each checked."""
    found = []
    for path in sorted(folder.iterdir(), key=lambda path: int(path.suffix[1:])):
        raw, at = path.read_bytes(), 0
        while at < len(raw):
            (size,) = struct.unpack_from("<Q", raw, at)
            (sum_,) = struct.unpack_from("<I", raw, at + 12 + size)
            content = raw[at + 12 : at + 12 + size]
            crc = crc32c(content)
            assert sum_ == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
            found.append(Event.FromString(content))
            at += 16 + size
    return found


def curves(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """What TensorBoard shows: where a part begins, what came before and lies after that goes."""
    found = defaultdict(list)
    for event in events(folder):
        if event.session_log.status == SessionLog.START:
            for tag, points in found.items():
                found[tag] = [point for point in points if point[0] < event.step]
        for value in event.summary.value:
            if value.WhichOneof("value") == "simple_value":
                found[value.tag].append((event.step, value.simple_value))
    return dict(found)


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that is tracked."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    assert main(["train", *SMOKE, "--out", str(folder), "--track", "tensorboard"]) == 0
    return folder


def assert_same_tables(ours: Path, theirs: Path) -> None:
    for name in TABLES:
        assert (ours / name).read_bytes() == (theirs / name).read_bytes(), name


def test_a_tracked_run_writes_the_same_bytes(whole, tmp_path, compiled_once):
    plain = tmp_path / "plain"
    assert main(["train", *SMOKE, "--out", str(plain)]) == 0
    assert_same_tables(whole, plain)
    assert {path.name for path in whole.iterdir()} - {path.name for path in plain.iterdir()} == {
        "tensorboard"
    }
    assert set(pack.packed(whole)) == set(pack.packed(plain))


def test_curves_are_the_tables(whole):
    """Windows as they are, episodes by the window they ended in; a point for each, at its step."""
    shown, rows = curves(whole / "tensorboard"), table(whole / "windows.csv")
    losses = {int(row["step"]): [] for row in rows}
    for row in rows:
        losses[int(row["step"])].append(float(row["loss"]))
    assert [step for step, _ in shown["windows/loss"]] == list(losses)
    means = [np.mean(values) for values in losses.values()]
    np.testing.assert_allclose([value for _, value in shown["windows/loss"]], means, rtol=1e-6)
    scores = [row for row in table(whole / "episodes.csv") if row["seed"] == "1"]
    for step, value in shown["episodes/score/1"]:
        of = [float(row["score"]) for row in scores if step - 500 < int(row["step"]) <= step]
        assert value == pytest.approx(np.mean(of)), step
    assert [step for step, _ in shown["episodes/score/1"]] == [500, 1_000, 1_500, 2_000]
    columns = {f"windows/{name}" for name in rows[0]} | {f"episodes/{name}" for name in scores[0]}
    places = {f"{name}/{at}" for name in ("windows", "episodes") for at in ("seed", "step")}
    seeds = {"episodes/score/0", "episodes/score/1"}
    assert set(shown) == (columns | seeds) - places - {"episodes/episode"}


def test_the_configuration_goes_along(whole):
    """Plain values under dotted names, as TensorBoard's page of hyperparameters reads them."""
    told = {}
    for event in events(whole / "tensorboard"):
        for value in event.summary.value:
            if value.metadata.plugin_data.plugin_name == "hparams":
                content = value.metadata.plugin_data.content
                told[value.tag] = HParamsPluginData.FromString(content)
    settings = told["_hparams_/session_start_info"].session_start_info.hparams
    assert settings["world.name"].string_value == "maze"
    assert settings["explore.end"].number_value == 0.05
    assert settings["seeds"].string_value == "[0, 1]"
    assert told["_hparams_/session_end_info"].session_end_info.status == 1, "it is through"


@pytest.mark.slow
def test_a_run_that_is_made_longer_goes_on_with_its_curves(whole, tmp_path):
    longer = tmp_path / "longer"
    shutil.copytree(whole, longer)
    assert main(["resume", str(longer), "--steps", "2500", "--track", "tensorboard"]) == 0
    shown = curves(longer / "tensorboard")
    assert [step for step, _ in shown["windows/loss"]] == [1_000, 1_500, 2_000, 2_500]
    names = {path.name.split(".")[-2] for path in (longer / "tensorboard").iterdir()}
    assert len(names) == 1, "the run's id, in the file of each part"


class CrashError(Exception):
    pass


def crashed(folder: Path, tracker: Tracker, at: int) -> None:
    """A run that dies when trackers were told of a window, and before its checkpoint."""

    def crash(progress: Progress) -> None:
        if progress.clock == at:
            raise CrashError

    with pytest.raises(CrashError):
        proceed(reopen(folder), Listener(on_window=crash, tracker=tracker), every_s=0.0)


@pytest.fixture
def begun(whole, tmp_path):
    """A folder in which nothing was done yet."""
    (tmp_path / "run").mkdir()
    config = (whole / "config.json").read_bytes()
    (tmp_path / "run" / "config.json").write_bytes(config)
    return tmp_path / "run"


def test_a_run_that_was_killed_goes_on_with_its_curves(begun, whole, compiled_once):
    """Of the window that is computed again there are two points in the files, and one is shown."""
    crashed(begun, primax.tracker("tensorboard"), 1_500)
    assert main(["resume", str(begun), "--track", "tensorboard"]) == 0
    assert_same_tables(begun, whole)
    shown = curves(begun / "tensorboard")
    assert [step for step, _ in shown["windows/loss"]] == [1_000, 1_500, 2_000]
    written = [event.step for event in events(begun / "tensorboard") if event.summary.value]
    assert written.count(1_500) == 2


# What fails


class Notes:
    """A tracker that keeps what it is told, and fails when it is asked to."""

    def __init__(self, fails_at: int = 0, since: int = 0):
        self.told, self.closed, self.fails_at, self.since = [], [], fails_at, since

    def begin(self, run: About) -> Book:
        self.run = run
        return Book(self.write, self.closed.append, self.since)

    def write(self, step, values):
        if step == self.fails_at:
            raise OSError(errno.ENOSPC, "No space\nleft")
        self.told.append(step)


def follow(trackers: Tracker, clocks: tuple[int, ...] = (500, 1_000, 1_500, 2_000)) -> list[int]:
    heard = []
    with trackers.following(ABOUT, lambda at: heard.append(at.clock)) as tell:
        for clock in clocks:
            tell(progress(clock, seed=[3], score=[1.0]))
    return heard


def test_one_that_fails_is_told_of_once_and_left_out(capsys):
    bad, good = Notes(fails_at=1_000), Notes()
    heard = follow(Tracker((("bad", bad.begin), ("good", good.begin))))
    assert bad.told == [500] and good.told == heard == [500, 1_000, 1_500, 2_000]
    assert bad.closed == [False] and good.closed == [True]
    assert capsys.readouterr().err == (
        "primax: bad failed at step 1,000 and is left out (OSError: [Errno 28] No space left); "
        "the run is whole without it\n"
    )


def test_one_that_cannot_be_closed_is_told_of(capsys):
    def close(is_over):
        raise ValueError("no")

    follow(Tracker((("odd", lambda run: Book(lambda step, values: None, close)),)))
    assert capsys.readouterr().err.count("odd could not be closed (ValueError: no)") == 1


def test_a_run_that_stops_closes_them_as_not_over():
    notes = Notes()
    follow(Tracker((("notes", notes.begin),)), (500, 1_000))
    assert notes.closed == [False]


def test_what_a_tracker_has_it_is_not_told_again():
    notes = Notes(since=1_000)
    follow(Tracker((("notes", notes.begin),)))
    assert notes.told == [1_500, 2_000]


def test_a_full_disk_ends_the_files_and_not_the_run(tmp_path, monkeypatch, capsys):
    """With tensorboardX's own writer the run would wait for a thread that has died."""

    class Full:
        def __init__(self, file):
            self.file, self.flushes = file, 0

        def __getattr__(self, name):
            return getattr(self.file, name)

        def flush(self):
            self.flushes += 1
            if self.flushes > 2:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self.file.flush()

    real = record_writer.open_file
    monkeypatch.setattr(record_writer, "open_file", lambda path: Full(real(path)))
    assert follow(primax.tracker("tensorboard", tmp_path / "logs")) == [500, 1_000, 1_500, 2_000]
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "tensorboard failed at step 1,000 and is left out" in said
    assert "No space left on device" in said


def refused(capsys, *args: object) -> str:
    assert main([str(arg) for arg in args]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


def test_one_that_cannot_begin_is_refused_before_anything_is_made(capsys, tmp_path, monkeypatch):
    out = tmp_path / "run"
    said = refused(capsys, "train", *SMOKE, "--out", out, "--track", "tensorbord")
    assert "unknown tracker 'tensorbord'; did you mean tensorboard?" in said
    monkeypatch.setitem(sys.modules, "wandb", None)
    said = refused(capsys, "train", *SMOKE, "--out", out, "--track", "tensorboard", "wandb")
    assert "wandb is not there" in said and "pip install 'primax-rl[wandb]'" in said
    assert not out.exists()
    said = refused(capsys, "train", *SMOKE, "--track", "tensorboard")
    assert "tensorboard needs a folder: --out DIR" in said


def test_nor_where_its_folder_cannot_be_written(capsys, begun, tmp_path):
    place = begun / "tensorboard"
    place.write_text("a file", encoding="utf-8")
    assert "tensorboard: File exists" in refused(capsys, "resume", begun, "--track", "tensorboard")
    place.unlink()
    place.symlink_to(tmp_path)
    assert "is a link" in refused(capsys, "resume", begun, "--track", "tensorboard")
    assert not list(tmp_path.glob("events*")) and not (begun / "episodes.csv").exists()


def test_a_library_that_raises_at_first_is_refused():
    def begin(run):
        raise RuntimeError("no key\nconfigured")

    notes = Notes()
    trackers = Tracker((("notes", notes.begin), ("shy", begin)))
    with pytest.raises(InputError, match=r"^shy cannot begin \(RuntimeError: no key configured\)$"):
        follow(trackers)
    assert notes.closed == [False], "those before it are closed"


@pytest.mark.parametrize("names", [5, ["wandb", 5], None])
def test_names_are_texts(names, monkeypatch):
    given = inspect.unwrap(primax.tracker)  # the tests' type checker would speak first
    with pytest.raises(InputError, match="a tracker is one of tensorboard, wandb, trackio, got"):
        given(names)


def test_in_python_beside_a_function_of_ones_own(whole, tmp_path, compiled_once):
    heard = []
    own = [primax.tracker("tensorboard", tmp_path / "logs"), lambda at: heard.append(at.clock)]
    primax.train("task", "maze", 2, "smoke", on_window=own)
    assert heard == [500, 1_000, 1_500, 2_000]
    assert curves(tmp_path / "logs") == curves(whole / "tensorboard")
    with pytest.raises(InputError, match="on_window takes a function, got 'wandb'"):
        inspect.unwrap(primax.train)("task", "maze", 2, "smoke", on_window=[heard.append, "wandb"])


# Libraries that are not always there


def wandb_init(
    entity=None, project=None, dir=None, id=None, name=None, notes=None, tags=None, config=None,
    config_exclude_keys=None, config_include_keys=None, allow_val_change=None, group=None,
    job_type=None, mode=None, force=None, reinit=None, resume=None, resume_from=None,
    fork_from=None, save_code=None, settings=None,
):  # fmt: skip
    """What wandb 0.31 takes."""


def wandb_log(data, step=None, commit=None): ...


def wandb_finish(exit_code=None): ...


def trackio_init(
    project, name=None, group=None, space_id=None, server_url=None, dataset_id=None,
    bucket_id=None, config=None, resume="never", settings=None, private=None, embed=True,
):  # fmt: skip
    """What trackio 0.43 takes."""


def trackio_log(metrics, step=None): ...


class Stand:
    """In a library's place: takes what the real one takes, and remembers runs by what tells them
    apart."""

    def __init__(self, init, log, finish):
        self.init_like, self.log_like, self.finish_like = init, log, finish
        self.calls, self.runs, self.ends = [], {}, []

    def init(self, *args, **named):
        call = inspect.signature(self.init_like).bind(*args, **named).arguments
        self.calls.append(call)
        key = call.get("id", call["name"])
        assert call["resume"] == "allow" and all(
            isinstance(value, bool | int | float | str) for value in call["config"].values()
        )
        run = self.runs.setdefault(key, [])
        last = max((step for step, _ in run), default=-1) + 1

        def log(*args, **named):
            call = inspect.signature(self.log_like).bind(*args, **named).arguments
            assert self.log_like is not wandb_log or call.get("commit"), "kept until the next"
            run.append((call["step"], next(iter(call.values()))["episodes/score"]))

        def finish(*args, **named):
            inspect.signature(self.finish_like).bind(*args, **named)
            self.ends.append(named)

        made = {"starting_step": last, "_next_step": last}
        return types.SimpleNamespace(log=log, finish=finish, **made)


@pytest.mark.parametrize("name", ["wandb", "trackio"])
def test_a_resumed_run_is_the_same_run_without_a_point_twice(
    name, begun, whole, monkeypatch, compiled_once
):
    like = (wandb_init, wandb_log, wandb_finish)
    if name == "trackio":
        like = (trackio_init, trackio_log, lambda: None)
    stand = Stand(*like)
    settings = types.SimpleNamespace(Settings=lambda console: console)
    library = types.SimpleNamespace(init=stand.init, **vars(settings))
    monkeypatch.setitem(sys.modules, name, library)
    crashed(begun, primax.tracker(name), 1_500)
    proceed(reopen(begun), Listener(tracker=primax.tracker(name)))
    assert_same_tables(begun, whole)
    (points,) = stand.runs.values()
    assert_points(points, curves(whole / "tensorboard")["episodes/score"])
    first, second = stand.calls
    assert first["name"] == second["name"] and first.get("id") == second.get("id")
    if name == "wandb":
        assert stand.ends == [{"exit_code": 1}, {"exit_code": 0}]
        assert first["dir"] == begun and first["project"] == "primax"


@pytest.mark.parametrize("name", ["wandb", "trackio"])
def test_the_stand_ins_take_what_the_real_ones_take(name):
    """Runs where they are installed."""
    library = pytest.importorskip(name)
    ours = {"wandb": (wandb_init, wandb_log, wandb_finish), "trackio": (trackio_init, trackio_log)}
    theirs = [library.init, library.Run.log, library.Run.finish]
    for mine, real in zip(ours[name], theirs, strict=False):
        mine, real = (inspect.signature(one).parameters for one in (mine, real))
        assert set(mine) <= set(real), real


def records(path: Path) -> list[bytes]:
    """Of a file of wandb's: blocks of 32 KB, pieces with seven bytes before them."""
    raw, at, part, found = path.read_bytes(), 7, b"", []
    while at + 7 <= len(raw):
        if (left := 32_768 - at % 32_768) < 7:
            at += left
            continue
        size, kind = struct.unpack_from("<HB", raw, at + 4)
        part, at = part + raw[at + 7 : at + 7 + size], at + 7 + size
        if kind in (1, 4):
            found.append(part)
            part = b""
    return found


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_the_real_wandb_offline(begun, whole, monkeypatch, compiled_once):
    """Each part has a folder of its own, all of one run; a window that is in two is the same in both."""
    pytest.importorskip("wandb")
    from wandb.proto.wandb_internal_pb2 import Record

    monkeypatch.setenv("WANDB_MODE", "offline")
    crashed(begun, primax.tracker("wandb"), 1_500)
    assert main(["resume", str(begun), "--track", "wandb"]) == 0
    assert_same_tables(begun, whole)
    ids, points = set(), []
    parts = sorted((begun / "wandb").glob("offline-run-*/run-*.wandb"))
    for record in (Record.FromString(raw) for path in parts for raw in records(path)):
        if record.HasField("run"):
            ids.add(record.run.run_id)
        items = {(i.key or "/".join(i.nested_key)): i.value_json for i in record.history.item}
        if "windows/loss" in items:
            points.append((json.loads(items["_step"]), json.loads(items["windows/loss"])))
    assert len(parts) == 2 and len(ids) == 1
    assert_points(sorted(set(points)), curves(whole / "tensorboard")["windows/loss"])


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_the_real_trackio(begun, whole, monkeypatch, tmp_path, compiled_once):
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    pytest.importorskip("trackio")
    from trackio.sqlite_storage import SQLiteStorage

    crashed(begun, primax.tracker("trackio"), 1_500)
    assert main(["resume", str(begun), "--track", "trackio"]) == 0
    assert_same_tables(begun, whole)
    (name,) = SQLiteStorage.get_runs("primax")
    logs = SQLiteStorage.get_logs("primax", name)
    points = [(log["step"], log["windows/loss"]) for log in logs if "windows/loss" in log]
    assert_points(points, curves(whole / "tensorboard")["windows/loss"])
    assert SQLiteStorage.get_run_config("primax", name)["world.name"] == "maze"


def assert_points(points: list[tuple[int, float]], shown: list[tuple[int, float]]) -> None:
    assert [step for step, _ in points] == [step for step, _ in shown]
    np.testing.assert_allclose([x for _, x in points], [x for _, x in shown], rtol=1e-6)
