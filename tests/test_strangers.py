"""Folders, files and arguments from anyone: they work, or end in one line."""

import bz2
import errno
import gzip
import io
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from report_case import full_run
from test_old_runs import ARCHIVE

import primax
from primax import explain, files
from primax.agent import memory
from primax.agent.learner import make_learner
from primax.cli import main, resume
from primax.config.seeds import parse_seeds
from primax.errors import InputError, RunError, one_line
from primax.output import figure
from primax.presets import configure
from primax.report import make
from primax.runs import checkpoints, disk, npz
from primax.runs.config_json import as_json, create, from_json
from primax.runs.export import load
from primax.runs.pack import packed
from primax.runs.read import open_run
from primax.runs.stops import locked
from primax.verify.audit import AUDITS
from primax.verify.checks import run_audit
from primax.worlds.layouts import read as read_layout


@pytest.fixture
def run(tmp_path) -> Path:
    """A finished run without checkpoints."""
    return full_run(tmp_path, seeds=2)


def unpacked(home: Path) -> Path:
    """A run that was stopped, with a checkpoint."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(home, filter="data")
    return home / ARCHIVE.name.removesuffix(".tar.bz2")


@pytest.fixture
def old(tmp_path) -> Path:
    return unpacked(tmp_path)


class Waits(BaseException):
    """Not an error that a reader could take for one of the file's."""


@pytest.fixture
def in_time():
    """What waits for ever fails."""

    def late(*args):
        raise Waits

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def refused(capsys, *args) -> str:
    assert main([str(arg) for arg in args]) in (1, 2)
    said = capsys.readouterr().err
    assert said.endswith("\n") and said[:-1].isprintable()  # one line, and no codes
    return said


def rewrite(path: Path, **changes) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


# Links


def append(folder: Path) -> None:
    disk.append(folder / "episodes.csv", b"0,0\n")


def hold(folder: Path) -> None:
    with locked(folder):
        pass


def rewind(folder: Path) -> None:
    at = checkpoints.Checkpoint(1, folder, {"tables": {"windows.csv": [1, ""]}})
    checkpoints.rewind(folder, at)


WRITERS = {
    "config.json.part": lambda folder: create(folder, configure("task", "maze", "smoke"), (0,)),
    "manifest.json.part": lambda folder: disk.write_whole(folder / "manifest.json", b"{}"),
    "lock": hold,
    "episodes.csv": append,
    "windows.csv": rewind,
    "state.npz": lambda folder: disk.stream(folder / "state.npz", lambda file: None),
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("is_there", [True, False])
def test_nothing_is_written_through_a_link(tmp_path, name, is_there):
    """A folder with the right links wrote into the files of whoever resumed it."""
    folder, mine = tmp_path / "run", tmp_path / "mine"
    folder.mkdir()
    if is_there:
        mine.write_text("dear to me")
    (folder / name).symlink_to(mine)
    with pytest.raises(InputError, match=f"{name} is a link, and links are not followed"):
        WRITERS[name](folder)
    assert mine.read_text() == "dear to me" if is_there else not mine.exists()
    assert (folder / name).is_symlink()


def test_no_checkpoint_is_removed_where_a_link_leads(tmp_path):
    mine = tmp_path / "mine"
    (mine / "000000001.part").mkdir(parents=True)
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "checkpoints").symlink_to(mine)
    for use in (checkpoints.clear, checkpoints.load, save):
        with pytest.raises(InputError, match="checkpoints is a link"):
            use(folder)
    assert (mine / "000000001.part").is_dir()


def save(folder: Path, tables=("episodes.csv",)) -> None:
    checkpoints.save(folder, 1, lambda file: None, {}, tables)


def test_a_run_may_be_reached_by_a_link(run, tmp_path):
    (tmp_path / "link").symlink_to(run)
    assert open_run(tmp_path / "link").episodes["step"][-1] == 20_000
    hold(tmp_path / "link")


def test_a_forged_checkpoint_cuts_no_file_outside_the_folder(tmp_path):
    """Tables were cut by the names that it gave."""
    folder, mine = tmp_path / "run", tmp_path / "mine"
    folder.mkdir()
    mine.write_text("dear to me")
    save(folder, ("../mine",))
    about = next((folder / "checkpoints").iterdir()) / "about.json"
    sealed = json.loads(about.read_text())
    sealed["content"]["tables"]["../mine"] = disk.length_and_hash(mine, 4)
    sealed["seal"] = checkpoints._seal(sealed["content"])
    about.write_text(json.dumps(sealed))
    assert checkpoints.load(folder) == (None, [f"{about} is damaged"])


def test_a_checkpoints_number_is_plain_digits(tmp_path):
    """`²` is a digit to Python, and no number."""
    (tmp_path / "checkpoints" / "²").mkdir(parents=True)
    assert checkpoints.newest_step(tmp_path) == 0


# What is no plain file


FILES = ("config.json", "manifest.json", "episodes.csv", "windows.csv", "maps.npz", "replays.jsonl")


def every_door(folder: Path) -> list[str]:
    """What reads a finished run, and what each says."""
    doors = (
        lambda: packed(folder),
        lambda: run_audit(AUDITS, folder, lambda line: None),
        lambda: explain.recorded_maps(folder, 0, 700),
        lambda: open_run(folder).replays(),
        lambda: open_run(folder).as_written("episodes"),
        lambda: make([folder], lambda line: None),
        lambda: load(folder / "export_last.npz"),
        lambda: checkpoints.newest(folder),
    )
    said = []
    for door in doors:
        try:
            door()
        except (InputError, RunError) as error:
            said.append(str(error))
    return said


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_only_plain_files_are_read(run, in_time, name, make):
    """A pipe was waited for, for ever."""
    (run / name).unlink()
    make(run / name)
    assert every_door(run)


def test_a_checkpoint_of_pipes_is_damaged(old, in_time):
    state = next((old / "checkpoints").iterdir()) / "state.npz"
    state.unlink()
    os.mkfifo(state)
    assert checkpoints.load(old)[0] is None
    (old / "maps.raw").unlink()
    os.mkfifo(old / "maps.raw")
    with pytest.raises(InputError, match="not a plain file"):
        open_run(old).maps()


def test_a_layout_is_a_plain_file_and_a_run_keeps_the_map(tmp_path, in_time):
    """A configuration could name any file of whoever read it."""
    os.mkfifo(tmp_path / "map.txt")
    with pytest.raises(InputError, match="not a plain file"):
        read_layout(str(tmp_path / "map.txt"))
    content = as_json(configure("task", "maze", "smoke"), (0,))
    content["world"]["layout"] = str(tmp_path / "map.txt")
    with pytest.raises(ValueError, match=r"world\.layout names a file"):
        from_json(content)


# Bombs


@pytest.mark.parametrize(("end", "pack"), [(".bz2", bz2.compress), (".gz", gzip.compress)])
def test_a_small_file_does_not_become_a_large_one(run, end, pack):
    """Three kilobytes became gigabytes."""
    (run / "episodes.csv").rename(run / "gone")
    bomb = pack(bytes(10 << 20)) * 8
    assert len(bomb) < 100_000
    (run / f"episodes.csv{end}").write_bytes(bomb)
    with pytest.raises(InputError, match=r"has more than 67,108,864 bytes, more than any run"):
        _ = open_run(run).episodes


def test_a_large_file_may_become_a_larger_one(tmp_path, monkeypatch):
    """So many times its own size, whatever that is."""
    monkeypatch.setattr(files, "SMALL", 1_000)
    raw = np.random.default_rng(0).bytes(2_000)
    (tmp_path / "a.bz2").write_bytes(bz2.compress(raw))
    assert files.read(tmp_path / "a.bz2") == raw
    (tmp_path / "b.bz2").write_bytes(bz2.compress(bytes(1 << 20)))
    with pytest.raises(InputError, match="has more than"):
        files.read(tmp_path / "b.bz2")


def archive(*members: tuple[str, bytes], kind: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", kind) as made:
        for name, content in members:
            made.writestr(name, content)
    return file.getvalue()


def array(header: str, content: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    raw = header.encode() + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(raw)) + raw + content


def described(shape: str, kind: str = "'<f4'", order: bool = False) -> str:
    return f"{{'descr': {kind}, 'fortran_order': {order}, 'shape': {shape}}}"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (archive(("a.npy", bytes(80 << 20))), "would unpack to 83,886,080 bytes"),
        (archive(("a.npy", b"x"), kind=zipfile.ZIP_LZMA), "compressed in a way no run writes"),
        (archive(("a.npy", array(described("(10**12,)")))), None),
        (archive(("a.npy", array(described("(1000000000000,)")))), "larger than its file"),
        (archive(("a.npy", array(described("(1,)", "'|O'"), bytes(8)))), "none that a run writes"),
        (archive(("a.npy", array(described("(1,)", "'>f4'"), bytes(4)))), "none that a run"),
        (archive(("a.npy", array(described("(1,)", order=True), bytes(4)))), "none that a run"),
        (archive(("a.npy", array("{'descr': '<f4', 'shape': (1,"))), None),
        (archive(("a.npy", array("(" * 300))), None),
        (b"PK", None),
    ],
    ids=lambda x: (
        x if isinstance(x, str) else ""
    ),  # an archive holds the time: workers would differ
)
def test_arrays_are_held_against_the_file_before_there_is_room_for_them(content, why):
    """An unclosed header ended in a traceback, a shape of 10^12 in no memory."""
    with pytest.raises(npz.NpzError, match=why):
        dict(npz.read(content))


def test_a_member_that_lies_about_its_size_is_not_unpacked_further():
    raw = bytearray(archive(("a.npy", bytes(50 << 20))))
    for sign, at in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        place = raw.index(sign) + at
        raw[place : place + 4] = struct.pack("<I", 200)
    with pytest.raises(npz.NpzError):
        dict(npz.read(bytes(raw)))


# Numbers and names that cannot be


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1" + "0" * 30, "between 1 and 10000"),
        ("0-99999999999", "between 1 and 10000"),
        ("0-" + "9" * 40, "between 1 and 10000"),
        ("0-9999,10000-19999", "between 1 and 10000, got 20000"),
        ("9" * 5_000, "seeds takes a number"),
    ],
)
def test_seeds_that_cannot_be(text, why):
    with pytest.raises(InputError, match=why):
        parse_seeds(text)


ARGUMENTS = """
import primax
given = {"method": "task", "world": "maze", "seeds": 1, "preset": "smoke"}
for named in (
    {"out": ""}, {"out": "a\\0b"}, {"out": 5}, {"settings": ["steps=5"]}, {"settings": {5: 1}},
    {"settings": {"steps": None}}, {"settings": {"steps": 10**5000}}, {"preset": None},
    {"seeds": [0, 1]}, {"seeds": None}, {"seeds": 2.5}, {"seeds": 10**5000}, {"on_window": 5},
):
    try:
        primax.train(**{**given, **named})
    except primax.InputError as error:
        print(error)
for path in ("", "a\\0b", 5, "nowhere"):
    try:
        primax.export.load(path)
    except primax.InputError as error:
        print(error)
"""
SEEDS = "seeds takes a number (15), a range (0-4) or a list (3,7,9), got"


def test_wrong_arguments_in_python_are_one_line(tmp_path):
    """`out=""` was the folder one happened to be in. In a process without the tests' type checker."""
    command = [sys.executable, "-c", ARGUMENTS]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert [line[:70] for line in done.stdout.splitlines()] == [
        "'' names no file or folder",
        "'a\\x00b' names no file or folder",
        "a path is text, got 5",
        "settings takes values by the names of fields, got ['steps=5']",
        "settings takes values by the names of fields, got {5: 1}",
        "steps takes a whole number, got 'None'",
        "settings has a value that cannot be written: Exceeds the limit (4300 d",
        "unknown preset 'None'; choose from paper, quick, smoke",
        f"{SEEDS} '[0, 1]'"[:70],
        f"{SEEDS} 'None'"[:70],
        f"{SEEDS} '2.5'"[:70],
        f"{SEEDS} more digits than can be read"[:70],
        "on_window takes a function, got 5",
        "'' names no file or folder",
        "'a\\x00b' names no file or folder",
        "a path is text, got 5",
        "nowhere cannot be read: [Errno 2] No such file or directory: 'nowhere'",
    ]
    assert not list(tmp_path.iterdir())


def test_an_empty_path_is_no_path(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = refused(capsys, "train", "task", "maze", "--preset", "smoke", "--out", "")
    assert "--out" in said and not list(tmp_path.iterdir())


def test_a_misspelt_column_gets_a_hint(run, capsys):
    said = refused(capsys, "stats", run, "--measure", "tail:los")
    assert "has no column 'los'; did you mean loss?" in said


@pytest.mark.parametrize(
    "content",
    ["[" * 100_000, '{"a":' * 50 + "1" + "}" * 50, "[]", '{"seeds": ' + "9" * 5_000 + "}"],
)
def test_json_that_cannot_be_walked_over(run, capsys, content):
    (run / "config.json").write_text(content)
    assert "config.json" in refused(capsys, "verify", "--run", run)


def test_half_a_character_does_not_end_a_page(run, tmp_path):
    """No file can hold one, and JSON can."""
    rewrite(run / "manifest.json", parts=[{"command": "\ud800 <"}], commit="\udfff")
    assert "? &lt;" in make([run], lambda line: None).encode().decode()


def test_a_folder_whose_name_is_no_text(run, tmp_path, capsys):
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\x1b[2J"))
    run.rename(odd)
    assert main(["report", str(odd), "--out", str(tmp_path / "page.html")]) == 0
    (odd / "config.json").write_text("{")
    assert "\\udcff\\x1b[2J" in refused(capsys, "verify", "--run", odd)


def test_a_message_is_one_line_whatever_it_quotes():
    assert one_line("a\nb \x1b[2J é \ud800") == "a\\nb \\x1b[2J é \\ud800"


@pytest.mark.parametrize(
    "manifest",
    [
        {"steps": 10**12},
        {"steps": 10**400},
        {"parts": [{"compile_s": 10**400, "run_s": "x"}, 5]},
        {"parts": 5, "memory": [], "flags": {}, "files": []},
        {"finished": None, "seeds": "x", "recomputed_steps": {}},
    ],
)
def test_a_manifest_of_wrong_types(run, in_time, manifest):
    rewrite(run / "manifest.json", **manifest)
    every_door(run)


@pytest.mark.parametrize("seeds", [[10**400], [0, 0], [-1], [True], [], list(range(20_000)), ["0"]])
def test_a_configuration_of_impossible_seeds(run, seeds):
    rewrite(run / "config.json", seeds=seeds)
    with pytest.raises(InputError, match="seeds"):
        open_run(run)


@pytest.mark.parametrize("step", ["1e-300", "1e300", "0.5", "nan", "inf"])
def test_a_step_that_is_none(run, step):
    """Ends of windows that lie 1e-300 apart would be more rows than there is memory for."""
    rows = (run / "windows.csv").read_text().split("\n")
    cells = rows[3].split(",")
    cells[rows[0].split(",").index("step")] = step
    rows[3] = ",".join(cells)
    (run / "windows.csv").write_text("\n".join(rows))
    with pytest.raises(InputError, match="a row has no step"):
        _ = open_run(run).windows


# Memory


def test_the_bytes_of_a_state_by_hand(monkeypatch):
    """15 floats, 7 halves, a key of two words."""
    like = jax.eval_shape(
        lambda: (jnp.zeros((3, 5)), jnp.zeros(7, jnp.bfloat16), jax.random.key(0))
    )
    monkeypatch.setattr(memory, "state_like", lambda learner, num_seeds: like)
    assert memory.seed_bytes(make_learner(configure("task", "maze", "smoke"))) == 60 + 14 + 8


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="of the host's memory")
def test_a_container_may_have_less_than_the_machine(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "LIMIT", tmp_path / "memory.max")
    whole = memory.memory()
    for limit, have in (("5000\n", 5_000), ("max\n", whole[0]), ("9" * 30, whole[0])):
        (tmp_path / "memory.max").write_text(limit)
        assert memory.memory() == (have, memory.COMPILER)


def test_more_seeds_than_fit_are_refused_before_anything_is_compiled(
    capsys, monkeypatch, tmp_path, old
):
    """After minutes of compiling, the machine ended the process without a word."""
    a_seed = 2 * memory.seed_bytes(make_learner(configure("task", "maze", "smoke")))
    monkeypatch.setattr(memory, "memory", lambda: (1e9 + 7.5 * a_seed, 1e9))
    monkeypatch.setattr("primax.cli.train.in_folder", lambda *args, **named: None)
    task = ("train", "task", "maze", "--preset", "smoke", "--out", tmp_path / "run")
    said = refused(capsys, *task, "--seeds", 8)
    assert "8 seeds need about 1.0 GB" in said and "enough for about 7" in said
    assert "--anyway" in said and not (tmp_path / "run").exists()
    assert main([*map(str, task), "--seeds", "7"]) == 0
    with pytest.raises(InputError, match="100 seeds need about"):
        primax.train("task", "maze", 100, "smoke")
    monkeypatch.setattr(memory, "memory", lambda: (1e6, 1e6))
    monkeypatch.setattr(resume, "in_folder", lambda *args: None)
    assert "enough for about 0" in refused(capsys, "resume", old)
    assert main(["resume", str(old), "--anyway"]) == 0
    monkeypatch.setattr(memory, "memory", lambda: (None, 0.0))
    assert main(["resume", str(old)]) == 0


# --- what leads on ----------------------------------------------------------------------------


@pytest.mark.parametrize("platforms", ["nonsense", "cuda"])
def test_a_device_that_is_not_there_is_said_in_one_line(platforms, tmp_path):
    """Sixty lines of jax's own, and at their end an assertion without a word."""
    command = [sys.executable, "-m", "primax", "train", "task", "maze", "--preset", "smoke"]
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "run")],
        env=os.environ | {"JAX_PLATFORMS": platforms},
        capture_output=True,
        text=True,
    )
    if platforms == "cuda" and done.returncode == 0:
        return  # there is one
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert f"JAX_PLATFORMS is '{platforms}'" in done.stderr and not (tmp_path / "run").exists()


def test_what_a_drawing_replaces_stays_until_the_new_one_is_whole(monkeypatch, tmp_path):
    """A full disk left half a picture where a whole one had been."""
    path = tmp_path / "curves.pdf"
    path.write_bytes(b"the old one")
    whole = Path.write_bytes

    def full(path, data):
        whole(path, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(
            InputError, match=r"cannot write .*curves\.pdf: No space left on device"
        ):
            figure.make(path, (2.0, 2.0), lambda figure: figure.subplots())
    assert path.read_bytes() == b"the old one" and [*tmp_path.iterdir()] == [path]
    figure.make(path, (2.0, 2.0), lambda figure: figure.subplots())
    assert path.read_bytes().startswith(b"%PDF")
    link = tmp_path / "link.pdf"
    link.symlink_to(path)
    files.overwrite(link, b"through the link")
    assert link.is_symlink() and path.read_bytes() == b"through the link"


def test_a_folder_of_runs_says_so(capsys, tmp_path, run):
    shutil.copytree(run, tmp_path / "all" / "one")
    said = refused(capsys, "evaluate", tmp_path / "all")
    assert f"it contains 1; give one of them, such as {tmp_path / 'all' / 'one'}" in said
    odd = tmp_path / "odd"
    (odd / "config.json").mkdir(parents=True)
    assert "it contains" not in refused(capsys, "evaluate", odd), "it is not in itself"


def test_no_advice_that_goes_in_a_circle(capsys, run):
    """Of a finished run without checkpoints it was said that resume would go on with it."""
    for command in ("evaluate", "export"):
        said = refused(capsys, command, run)
        assert "no checkpoints any more: its networks are gone" in said and "resume" not in said


def test_a_range_of_seeds_goes_upwards():
    with pytest.raises(InputError, match="takes a range that goes upwards, got 3-1"):
        parse_seeds("3-1")
