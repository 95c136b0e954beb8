"""A folder that an older version wrote: read, audited, explained, shown, and resumed."""

import json
import re
import tarfile
from pathlib import Path

import pytest

from primax.cli import main
from primax.config.fields import flatten
from primax.runs.read import open_run

ARCHIVE = Path(__file__).parent / "data" / "prime_maze_463fc38.tar.bz2"
"""`primax train prime maze --preset smoke --seeds 1` at 463fc38, stopped at step 1,000 of 2,000."""
LATER = {
    "schedule_steps": None,
    "snapshot": "newest",
    "critics.truncation": "bootstrap",
    "critics.acting": "mean",
    "critics.trunk": "own",
    "reward.truncation": "bootstrap",
    "reward.counts": "frozen",
}
"""Fields that this run's version did not have, and whose defaults are what it did."""
TABLES = ("episodes.csv", "windows.csv")


@pytest.fixture
def old(tmp_path) -> Path:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "prime_maze_463fc38"


def told(capsys, *args) -> str:
    assert main([str(arg) for arg in args]) == 0
    return re.sub(r"\s+", " ", capsys.readouterr().out)


def test_it_is_read_audited_explained_and_shown(old, capsys, tmp_path):
    run = open_run(old)
    assert (run.method, run.world, run.seeds, run.is_finished) == ("prime", "maze", (0,), False)
    assert not set(LATER) & set(run.settings)
    assert {name: flatten(run.config)[name] for name in LATER} == LATER
    assert run.unsaid == () and run.checkpoint.clock == 1_000
    assert run.episodes["step"].tolist() == [*range(100, 1_001, 100)]
    assert run.windows["step"].tolist() == [1_000] and len(run.replays()) == 1
    assert "nothing fails" in told(capsys, "verify", "--run", old)
    assert "frozen at step 500" in told(capsys, "explain", old)
    told(capsys, "export", old, "--out", tmp_path / "small.npz")
    told(capsys, "report", old, "--out", tmp_path / "page.html")
    assert "not finished" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_run_that_read_live_counts_is_told_that_it_is_not_stationary(old, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    content = json.loads((old / "config.json").read_text())
    content["reward"]["counts"] = "live"
    (old / "config.json").write_text(json.dumps(content))
    assert main(["verify", "--run", str(old), "--only", "margin"]) == 1
    said = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert "reward.counts=live" in said and "fails: stationarity" in said


@pytest.mark.slow
def test_it_resumes_to_the_bytes_of_a_run_made_in_one_go(old, capsys, tmp_path):
    """Where this processor computes as the one that began it; elsewhere what was written stays."""
    before = {name: (old / name).read_bytes() for name in TABLES}
    told(capsys, "resume", old, "--anyway")
    after = {name: (old / name).read_bytes() for name in TABLES}
    assert all(after[name].startswith(before[name]) for name in TABLES)
    assert open_run(old).is_finished and open_run(old).steps == 2_000
    told(capsys, "train", "prime", "maze", "--preset=smoke", "--seeds=1", "--out", tmp_path / "new")
    anew = {name: (tmp_path / "new" / name).read_bytes() for name in TABLES}
    if all(anew[name].startswith(before[name]) for name in TABLES):
        assert after == anew
        states = [
            open_run(folder).checkpoint.state.read_bytes() for folder in (old, tmp_path / "new")
        ]
        assert states[0] == states[1]
