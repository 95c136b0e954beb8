"""Folders that are broken, mixed up or not there: named, marked, and the rest is used."""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from test_paper_case import write_run
from test_paper_reproduce import primax, refused, surroundings  # noqa: F401

from primax.errors import InputError
from primax.paper import reproduce
from primax.paper.evidence import LEFT_OUT, Runs
from primax.paper.experiments import CELLS
from primax.paper.pages.caveats import caveat, states
from primax.paper.scorecard import rule
from primax.paper.scorecard.effects import comparisons
from primax.paper.tables.results import table1
from primax.runs.config_json import as_json
from primax.runs.proceed import reopen
from primax.runs.read import BROKEN, NOT_RUN, Run, Unusable

CELL = CELLS["task_maze"]


def made(home: Path, name: str, holds: str = "") -> Path:
    """A folder of a cell's name, that holds a run of it or of another cell."""
    return write_run(home / name, CELLS[holds or name], np.ones((2, 40)))


def cut(name: str, size: int) -> Callable[[Path], object]:
    """The last bytes of a file are gone; of few, no number is missing, only digits."""
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:-size])


def told(name: str, change: Callable[[dict], object]) -> Callable[[Path], object]:
    """A JSON file says something else."""

    def do(folder: Path) -> None:
        content = json.loads((folder / name).read_text())
        change(content)
        (folder / name).write_text(json.dumps(content))

    return do


def text(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content)


def packed(is_both: bool, size: int | None = None) -> Callable[[Path], object]:
    """The episodes gzipped, perhaps cut short, perhaps beside the plain ones."""

    def do(folder: Path) -> None:
        plain = folder / "episodes.csv"
        (folder / "episodes.csv.gz").write_bytes(gzip.compress(plain.read_bytes())[:size])
        if not is_both:
            plain.unlink()

    return do


def without_a_window(folder: Path) -> None:
    table = folder / "windows.csv"
    table.write_text("".join(table.read_text().splitlines(keepends=True)[:-2]))  # of two seeds


def renamed(folder: Path) -> None:
    table = folder / "episodes.csv"
    table.write_text(table.read_text().replace("score", "skore"))


def without_a_seed(folder: Path) -> None:
    table = folder / "episodes.csv"
    rows = table.read_text().splitlines(keepends=True)
    table.write_text("".join(row for row in rows if not row.startswith("1,")))


def a_file(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("not a folder")


DAMAGE = {
    "a number cut short": (cut("episodes.csv", 3), "a row is cut short"),
    "a row cut short": (cut("episodes.csv", 8), "a row is cut short"),
    "the last window gone": (
        without_a_window,
        "18 of 20 rows of a finished run, from step 400 to 3,600 of 4,000",
    ),
    "gzip cut short": (packed(False, 60), "is not the table a run writes"),
    "gzip spoilt": (text("windows.csv", b"\0\xff"), "is not numbers"),
    "plain and gzipped": (packed(True), "is also there as episodes.csv.gz: remove one"),
    "an empty table": (text("episodes.csv", b""), "is not numbers"),
    "a seed gone": (without_a_seed, "have different seeds: only one of them has seed 1"),
    "a column gone": (renamed, "has no column score"),
    "a table gone": (lambda f: (f / "windows.csv").unlink(), "No such file"),
    "a folder for a table": (
        lambda f: ((f / "windows.csv").unlink(), (f / "windows.csv").mkdir()),
        "Is a directory",
    ),
    "half a config": (text("config.json", b"{"), "config.json is damaged"),
    "a list for a manifest": (text("manifest.json", b"[1]"), "manifest.json is damaged"),
    "words for steps": (told("manifest.json", lambda c: c.update(steps="many")), "how many steps"),
    "no world": (told("config.json", lambda c: c.pop("world")), "names no method, world"),
    "no horizon": (told("config.json", lambda c: c["world"].pop("horizon")), "world.horizon"),
    "no map": (told("config.json", lambda c: c["world"].update(layout="?")), "cannot be built"),
    "words for a number": (told("config.json", lambda c: c["critics"].update(gamma="x")), "gamma"),
    "a seed too many": (told("config.json", lambda c: c.update(seeds=[0, 20])), "has seed 20"),
    "a file": (a_file, "is a file"),
}


@pytest.mark.parametrize(("damage", "said"), DAMAGE.values(), ids=DAMAGE)
def test_a_broken_folder_is_named_and_marked(tmp_path, damage, said):
    damage(made(tmp_path, "task_maze"))
    made(tmp_path, "rnd_maze")
    runs = Runs.under(tmp_path)
    assert runs.run("task", "maze").why == BROKEN and said in runs.broken["task_maze"]
    assert str(tmp_path / "task_maze") in runs.broken["task_maze"]
    (row,) = (row for row in states(runs).rows if row[0] == "task_maze")
    assert row[1].startswith("broken: task_maze") and str(tmp_path) not in row[1]
    assert "broken: task_maze" in caveat(runs)[-1]
    shown = {row[0]: row for row in table1(runs).rows}
    assert "(broken)" in shown["Ext-DQN"] and "1.00 ± 0.00" in shown["RND"]


@pytest.mark.parametrize(
    ("name", "holds", "said"),
    [
        ("task_maze", "rnd_maze", "holds a run of rnd in maze"),
        ("task_maze", "task_butterflies", "holds a run of task in butterflies"),
        ("prime_no_gate_maze", "prime_maze", "lacks the settings that make a run prime_no_gate"),
        ("prime_maze", "prime_no_gate_maze", "has the settings of prime_no_gate"),
        ("prime_k1_statistics_maze", "prime_k1_maze", "has the settings of prime_k1"),
        ("prime_k1_maze", "prime_k1_statistics_maze", "lacks the settings"),
    ],
)
def test_a_run_of_another_cell_is_not_taken_for_this_one(tmp_path, name, holds, said):
    made(tmp_path, name, holds)
    runs, cell = Runs.under(tmp_path), CELLS[name]
    assert runs.of(cell).why == BROKEN and said in runs.broken[name]


@pytest.mark.parametrize("scale", ["smoke", "quick", "paper"])
def test_every_cells_own_settings_pass_at_every_scale(tmp_path, scale):
    for name, cell in CELLS.items():
        windows = {"loss": np.ones((2, 40))}  # no window of any scale is shorter than 100 steps
        folder = write_run(tmp_path / name, cell, np.ones((2, 40)), windows)
        own = as_json(cell.config(scale), (0, 1))
        (folder / "config.json").write_text(json.dumps(own))
    runs = Runs.under(tmp_path)
    assert runs.broken == {} and set(runs.usable) == set(CELLS)


def test_settings_an_old_run_does_not_give_are_named_and_it_does_not_go_on(tmp_path):
    folder = made(tmp_path, "task_maze")
    told("config.json", lambda c: c["net"].pop("kernels"))(folder)
    (row,) = (row for row in states(Runs.under(tmp_path)).rows if row[0] == "task_maze")
    assert row[3] == "net.kernels"
    told("manifest.json", lambda c: c.pop("finished"))(folder)
    with pytest.raises(InputError, match=r"has no value for net\.kernels"):
        reproduce.proceed(reopen(folder))


def test_a_corrected_p_value_waits_for_its_whole_family(tmp_path):
    """PRIME and one ablation are there: their difference can be told, what depends on others not."""
    for name in ("prime_maze", "prime_k1_maze"):
        made(tmp_path, name)
    found = {n.id: n.verdict for n in comparisons(Runs.under(tmp_path))}
    ours = "prime-prime_k1.maze.peak"
    assert found[f"holm_wilcoxon.{ours}"] == found[f"holm_mann_whitney.{ours}"] == rule.NOT_RUN
    assert found[f"delta.{ours}"] != rule.NOT_RUN != found[f"interval.{ours}"]


def test_worlds_that_differ_are_named(tmp_path):
    made(tmp_path, "task_maze")
    told("config.json", lambda c: c["world"].update(size=6))(made(tmp_path, "rnd_maze"))
    runs = Runs.under(tmp_path)
    assert runs.mixed() == ["task_maze (world.size 10)"]  # RND comes first
    assert any(
        "cannot be compared with it" in line and "task_maze" in line for line in caveat(runs)
    )


def test_what_a_scale_goes_without_is_not_missing(tmp_path):
    made(tmp_path, "moss_maze")
    runs = Runs.under(tmp_path, "quick")
    assert runs.run("moss", "butterflies").why == LEFT_OUT
    assert runs.run("task", "maze") == Unusable(NOT_RUN)
    assert isinstance(runs.run("moss", "maze"), Run), "what is there is shown all the same"
    assert any("--only" in note for note in states(runs).notes)
    assert Runs.under(tmp_path, "smoke").run("moss", "butterflies").why == NOT_RUN


def test_an_empty_folder_and_none_are_not_run(tmp_path):
    (tmp_path / "task_maze").mkdir()
    runs = Runs.under(tmp_path)
    assert runs.run("task", "maze") == runs.run("rnd", "maze") == Unusable(NOT_RUN)
    assert not runs.broken


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read_is_named(tmp_path):
    folder = made(tmp_path, "task_maze")
    folder.chmod(0)
    assert Runs.under(tmp_path).run("task", "maze").why == BROKEN
    folder.chmod(0o700)


# --- through the command line ------------------------------------------------------------------


def test_the_rest_is_run_and_shown_and_the_status_tells(capsys, tmp_path, monkeypatch):
    """One folder broken, one of another configuration, one to run; no learning here."""
    run: list[str] = []
    monkeypatch.setattr(reproduce, "proceed", lambda job, *_: run.append(job.folder.name))
    monkeypatch.setattr("primax.cli.reproduce.write_all", lambda runs, out, say: say("pages"))
    text("config.json", b"{")(made(tmp_path / "runs", "task_maze"))
    (made(tmp_path / "runs", "rnd_maze") / "manifest.json").unlink()
    args = ("reproduce", "--out", tmp_path, *(f"--only={n}_maze" for n in ("task", "rnd", "smirl")))
    assert len(re.findall(r"_maze .* broken", primax(capsys, *args, "--plan"))) == 2
    said = refused(capsys, *args, status=1)
    assert "rnd_maze, task_maze" in said and "other settings" in said and run == ["smirl_maze"]


@pytest.mark.parametrize("kind", ["file", "under a file", "scale is a folder"])
def test_a_place_that_cannot_be_written_is_refused_in_one_line(capsys, tmp_path, kind):
    place = tmp_path / "file"
    if kind == "scale is a folder":
        (place / "scale").mkdir(parents=True)
    else:
        place.write_text("")
    out = place / "below" if kind == "under a file" else place
    said = refused(capsys, "reproduce", "--only", "task_maze", "--out", out)
    assert str(place) in said and ("cannot write" in said or "choose another --out" in said)


FULL = """
mount -t tmpfs -o size=400k tmpfs {place} || exit 99
{python} -m primax reproduce --no-run --runs {runs} --out {place}/out; echo "status $?"
ls {place}/out/*/* {place}/out | grep part
"""


@pytest.mark.slow
def test_a_disk_that_is_really_full_is_said_in_one_line(tmp_path):
    """Room for the tables and not for the figures."""
    (tmp_path / "tiny").mkdir()
    made(tmp_path / "runs", "task_maze")
    names = {"place": tmp_path / "tiny", "runs": tmp_path / "runs", "python": sys.executable}
    unshare = shutil.which("unshare") or pytest.skip("needs unshare(1), to mount a small disk")
    command = [unshare, "-rm", "sh", "-c", FULL.format(**names)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 99:
        pytest.skip(f"may not mount a small disk: {done.stderr.strip()}")
    assert "status 2" in done.stdout and done.stderr.count("\n") == 1
    assert "cannot write" in done.stderr and "No space left on device" in done.stderr
