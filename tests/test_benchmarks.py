"""The benchmark scripts start; what they measure is not for a test to say."""

import importlib.util
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "benchmarks"
sys.path.insert(0, str(FOLDER))

import paper_start  # noqa: E402


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "table",
        "plots",
        "torch_loop",
        "worlds",
        "checkpoints",
        "telemetry",
        "rewards",
        "contrast",
        "readings",
        "keys",
        "keys_drift",
        "keys_image",
        "examples_page",
        "critic_parts",
        "curiosity_critic",
        "paper_start",
    ],
)
def test_a_script_starts(name):
    done = subprocess.run(
        [sys.executable, str(FOLDER / f"{name}.py"), "--help"], capture_output=True, text=True
    )
    if name == "torch_loop" and importlib.util.find_spec("torch") is None:
        assert "pip install" in done.stdout + done.stderr
    else:
        assert done.returncode == 0 and "usage:" in done.stdout, done.stderr


def test_two_ways_of_starting_runs_take_turns_and_must_make_the_same_bytes(tmp_path, monkeypatch):
    """The ways are played: each writes a table, and one of them another in its third round."""
    order: list[str] = []

    def played(way: str, odd_round: int = 9):
        def make(args, out):
            order.append(out.name)
            (out / "runs" / "a").mkdir(parents=True)
            is_odd = out.name == f"{way}{odd_round}"
            (out / "runs" / "a" / "episodes.csv").write_text("other" if is_odd else "same")

        return make

    ways = {"sweep": played("sweep"), "xargs": played("xargs")}
    monkeypatch.setattr(paper_start, "WAYS", ways)
    args = Namespace(cell=["a"], repeats=2)
    found = paper_start.measure(args, tmp_path / "same")
    assert order == ["xargs0", "sweep0", "sweep1", "xargs1", "xargs2", "sweep2"]
    assert {way: len(seconds) for way, seconds in found.items()} == {"sweep": 2, "xargs": 2}
    ways["sweep"] = played("sweep", odd_round=2)
    with pytest.raises(SystemExit, match=r"episodes\.csv by sweep, repeat 2, has other bytes"):
        paper_start.measure(args, tmp_path / "other")
