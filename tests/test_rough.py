"""Small things that once went wrong in silence."""

import bz2
import json
import os
import re
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
from test_paper_case import write_run

import primax
from primax.cli import main
from primax.cli.resume import _flags
from primax.errors import InputError
from primax.paper.experiments import CELLS
from primax.presets import configure
from primax.runs.config_json import create
from primax.runs.pack import packed
from primax.runs.provenance import code, differences, provenance
from primax.runs.read import Run, open_run, reached
from primax.runs.stops import interrupts
from primax.worlds import WORLDS
from primax.worlds.maze import Maze, MazeConfig

TASK = ("train", "task", "maze", "--preset", "smoke", "--seeds", "1")


def refused(capsys, *args) -> str:
    assert main([str(arg) for arg in args]) == 2
    return capsys.readouterr().err


def test_settings_given_apart_add_up(capsys, monkeypatch, tmp_path):
    """The last `--set` replaced all before it: another experiment than the one asked for."""
    seen = []
    monkeypatch.setattr("primax.cli.train.begin", lambda out, learner, *rest: seen.append(learner))
    monkeypatch.setattr("primax.cli.train.in_folder", lambda *args, **named: None)
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
    assert reached(tmp_path) == 200


def test_a_folder_cannot_set_the_compilers_flags(tmp_path, monkeypatch):
    """A forged manifest made the compiler write files where it liked."""
    forged = "--xla_dump_to=somewhere"
    (tmp_path / "manifest.json").write_text(json.dumps({"flags": forged}))
    monkeypatch.setenv("XLA_FLAGS", "")
    with pytest.raises(InputError, match=r"the compiler flag '--xla_dump_to=somewhere'"):
        _flags(tmp_path)
    monkeypatch.setenv("XLA_FLAGS", forged)  # the user's own
    assert _flags(tmp_path) == forged


def test_a_long_run_is_announced_and_one_that_is_not_kept(capsys, monkeypatch):
    """The paper's size on a CPU showed nothing for minutes, and left nothing."""
    monkeypatch.setattr("primax.cli.train.execute", lambda *args: _stop())
    with pytest.raises(RuntimeError):
        main(["train", "prime", "maze"])
    text = " ".join(capsys.readouterr().out.split())
    assert re.search(r"take about \d+\.\d h on two cores; --preset quick", text)
    assert "nothing of this run is kept: --out DIR keeps it" in text
    with pytest.raises(RuntimeError):
        main([*TASK])
    text = capsys.readouterr().out
    assert "two cores" not in text and "--out DIR" in text


def _stop() -> None:
    raise RuntimeError("far enough")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A small run that is through."""
    home = tmp_path_factory.mktemp("finished")
    assert main([*TASK, "--save-every", "0", "--out", str(home / "run")]) == 0
    return home / "run"


@pytest.fixture
def copied(finished, tmp_path):
    return Path(shutil.copytree(finished, tmp_path / "run"))


def told(capsys, *args) -> str:
    assert main([str(arg) for arg in args]) == 0
    return " ".join(capsys.readouterr().out.split())


def change_a_digit(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    at = next(i for i in reversed(range(len(raw))) if chr(raw[i]).isdigit())
    raw[at] = ord("1") + (raw[at] - ord("0")) % 9
    path.write_bytes(raw)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "commands"),
    [
        ("episodes.csv", ["resume {run}", "stats {run}", "pack {run} --out {out}"]),
        ("windows.csv", ["verify --run {run}", "stats {run} --measure tail:loss"]),
        ("config.json", ["resume {run}", "export {run}", "verify --run {run}"]),
        ("replays.jsonl", ["pack {run} --out {out}"]),
    ],
)
def test_a_digit_changed_after_the_end_is_found_everywhere(
    copied, capsys, tmp_path, name, commands
):
    """It was reported, packed and called finished without a word."""
    change_a_digit(copied / name)
    for command in commands:
        args = command.format(run=copied, out=tmp_path / "out").split()
        assert main(args) in (1, 2)
        output = capsys.readouterr()
        assert "was changed after the run had finished" in " ".join(
            (output.out + output.err).split()
        )


@pytest.mark.slow
def test_a_packed_run_has_digests_of_its_own(finished, capsys, tmp_path):
    told(capsys, "pack", finished, "--out", tmp_path / "out")
    packed = tmp_path / "out" / "run"
    told(capsys, "pack", packed, "--out", tmp_path / "again")
    assert (tmp_path / "again" / "run" / "manifest.json").read_bytes() == (
        packed / "manifest.json"
    ).read_bytes()
    assert "nothing fails" in told(capsys, "verify", "--run", packed)
    table = packed / "windows.csv.bz2"
    raw = bz2.decompress(table.read_bytes())
    table.write_bytes(bz2.compress(raw[:-2] + (b"8\n" if raw.endswith(b"7\n") else b"7\n")))
    assert "was changed after" in refused(capsys, "verify", "--run", packed)


def test_of_a_run_the_scores_alone_can_be_kept(finished, capsys, tmp_path):
    """Enough for statistics and curves; what is not there is said in a line."""
    told(capsys, "pack", finished, "--keep", "scores", "--out", tmp_path / "out")
    kept = tmp_path / "out" / "run"
    assert {path.name for path in kept.iterdir()} == {
        "config.json", "manifest.json", "episodes.csv.bz2",
    }  # fmt: skip
    assert open_run(kept).episodes.keys() == {"seed", "episode", "step", "score"}
    for name in ("seed", "episode", "step", "score"):
        assert (open_run(kept).episodes[name] == open_run(finished).episodes[name]).all(), name
    assert told(capsys, "stats", kept) == told(capsys, "stats", finished)
    told(capsys, "plot", kept, "--out", tmp_path / "curves.svg")
    told(capsys, "pack", finished, "--keep", "episodes", "--out", tmp_path / "more")
    more = open_run(tmp_path / "more" / "run").episodes
    assert more.keys() == open_run(finished).episodes.keys() > open_run(kept).episodes.keys()
    assert "did you mean scores?" in refused(capsys, "pack", kept, "--keep", "score", "--out", kept)
    told(capsys, "pack", kept, "--keep", "scores", "--out", tmp_path / "again")
    for path in kept.iterdir():
        assert path.read_bytes() == (tmp_path / "again" / "run" / path.name).read_bytes()
    told(capsys, "report", kept, "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "only the episodes were kept: it has no maps.npz" in page
    for command in (
        f"verify --run {kept}",
        f"stats {kept} --measure tail:loss",
        f"plot {kept} --column loss --out {tmp_path / 'loss.svg'}",
        f"pack {kept} --out {tmp_path / 'whole'}",
    ):
        assert main(command.split()) in (1, 2)
        said = capsys.readouterr()
        text = " ".join((said.out + said.err).split())
        assert "only the episodes were kept: it has no windows.csv" in text, command


def test_of_a_run_the_episodes_and_maps_can_be_kept(finished, capsys, tmp_path, monkeypatch):
    """To the same bytes each time; what is not there is said in a line."""
    told(capsys, "pack", finished, "--keep", "maps", "--out", tmp_path / "out")
    kept = tmp_path / "out" / "run"
    assert {path.name for path in kept.iterdir()} == {
        "config.json", "manifest.json", "episodes.csv.bz2", "maps.npz",
    }  # fmt: skip
    assert set(open_run(kept).manifest["files"]) == {"config.json", "episodes.csv", "maps.npz"}
    told(capsys, "pack", finished, "--out", tmp_path / "all")
    for name in ("config.json", "episodes.csv.bz2", "maps.npz"):
        same = (tmp_path / "all" / "run" / name).read_bytes()
        assert (kept / name).read_bytes() == same, name
    for given, place in ((kept, "again"), (tmp_path / "all", "of_all")):
        told(capsys, "pack", given, "--keep", "maps", "--out", tmp_path / place)
        for path in kept.iterdir():
            assert path.read_bytes() == (tmp_path / place / "run" / path.name).read_bytes()
    assert told(capsys, "stats", kept) == told(capsys, "stats", finished)
    told(capsys, "report", kept, "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "it has no maps.npz" not in page and '"hasMaps":true' in page
    for command, lacks in (
        (f"verify --run {kept}", "windows.csv"),
        (f"stats {kept} --measure tail:loss", "windows.csv"),
        (f"pack {kept} --out {tmp_path / 'whole'}", "windows.csv"),
        (f"watch {kept}", "replays.jsonl"),
    ):
        assert main(command.split()) in (1, 2)
        said = capsys.readouterr()
        text = " ".join((said.out + said.err).split())
        assert f"only the episodes and maps were kept: it has no {lacks}" in text, command

    told(capsys, "pack", kept, "--keep", "episodes", "--out", tmp_path / "less")
    less = tmp_path / "less" / "run"
    assert main(["pack", str(less), "--keep", "maps", "--out", str(tmp_path / "more")]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "only the episodes were kept: it has no maps.npz" in said
    monkeypatch.setattr(Run, "has_maps", False)  # as where states are no cells of a grid
    assert packed(finished, "maps") == packed(finished, "episodes")


@pytest.mark.slow
def test_an_older_checkpoint_is_not_taken_in_silence(copied, capsys):
    newest = max((copied / "checkpoints").iterdir()) / "state.npz"
    newest.write_bytes(newest.read_bytes()[:-100])
    assert "a newer checkpoint cannot be used" in told(capsys, "export", copied)


@pytest.mark.long
def test_nor_when_it_is_explained(capsys, tmp_path):
    run = tmp_path / "run"
    told(capsys, "train", "prime", *TASK[2:], "--save-every", "0", "--out", run)
    newest = max((run / "checkpoints").iterdir()) / "state.npz"
    newest.write_bytes(newest.read_bytes()[:-100])
    assert "a newer checkpoint cannot be used" in told(capsys, "explain", run)


@pytest.mark.parametrize(
    ("then", "odd"),
    [
        ({"code": "other"}, ["code"]),
        ({"numpy": "1.0", "jaxlib": "0.1"}, ["jaxlib", "numpy"]),
        ({"device": "64 CPU cores"}, []),
        ({"device": "NVIDIA H200"}, ["device"]),
        ({}, []),
    ],
)
def test_what_makes_a_resumed_run_differ(then, odd):
    """Edited code counts, and the libraries; the number of cores does not; what is not known neither."""
    now = provenance() | {"device": "2 CPU cores"}
    found = differences({"jax": now["jax"]} | then, now)
    assert [line.split()[0] for line in found] == odd


def test_the_digest_of_the_code_follows_every_file(tmp_path, monkeypatch):
    home = tmp_path / "primax"
    shutil.copytree(Path(primax.__file__).parent, home)
    monkeypatch.setattr(primax, "__file__", str(home / "__init__.py"))
    before = code.__wrapped__()
    (home / "report" / "page.py").write_text("# no number depends on this")
    assert code.__wrapped__() == before
    with (home / "rewards" / "prime" / "gate.py").open("a") as file:
        file.write("# edited\n")
    assert code.__wrapped__() != before


def test_a_signal_that_is_ignored_stays_ignored():
    """`nohup` works by that; a run under it was stopped by closing the terminal."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interrupts() as is_asked:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not is_asked()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.fixture
def made_up(tmp_path):
    """A folder that a finished run might have left, without digests."""
    return write_run(tmp_path / "task_maze", CELLS["task_maze"], np.ones((2, 40)))


def rewrite(path: Path, **changes) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize("command", ["verify --run", "stats"])
def test_a_damaged_manifest_is_not_passed_over(made_up, capsys, command):
    (made_up / "manifest.json").write_text("{")
    assert "manifest.json is damaged" in refused(capsys, *command.split(), made_up)


def test_files_that_tell_of_different_lengths_are_refused(made_up, capsys):
    rewrite(made_up / "manifest.json", steps=123_000)
    assert "is not the run its files tell of" in refused(capsys, "verify", "--run", made_up)


@pytest.mark.parametrize("horizon", [0, "100", None, 0.5, True])
def test_an_odd_number_in_a_configuration_is_one_line(made_up, capsys, horizon):
    world = json.loads((made_up / "config.json").read_text())["world"]
    rewrite(made_up / "config.json", world=world | {"horizon": horizon})
    assert "is not a configuration" in refused(capsys, "stats", made_up)


def test_a_world_without_a_name_is_refused(made_up, capsys):
    world = json.loads((made_up / "config.json").read_text())["world"]
    world.pop("name")
    rewrite(made_up / "config.json", world=world)
    assert "names no world" in refused(capsys, "stats", made_up)


def test_a_world_that_borrows_options_has_no_folder(monkeypatch, tmp_path):
    """It would be resumed as the world whose options they are."""

    class Borrowed(Maze):
        """Another world with Maze's options."""

    monkeypatch.setitem(WORLDS, "borrowed", Borrowed)
    with pytest.raises(InputError, match="Borrowed needs options of its own"):
        primax.train("task", Borrowed(MazeConfig()), 1, "smoke", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_export_can_be_imported_by_its_name():
    from primax.export import load

    assert primax.export.load is load
