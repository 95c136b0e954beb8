"""How a run shows itself, in a terminal and from Python."""

import io
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from rich.console import Console

import primax
from primax import api
from primax.agent.training import Program, Progress
from primax.output.sheet import clock
from primax.runs import progress, start
from primax.runs.progress import Reporter


def told(clock: int, steps: int, seconds: float, is_learning: bool = True) -> Progress:
    """Two seeds of 2,000 steps; every episode scores 3."""
    episodes, window = (
        {"score": np.full(4, 3.0), "step": np.array([1, 2, 1, 2])},
        {"loss": np.zeros(2)} if is_learning else {},
    )
    return Progress(clock, 2_000, episodes, window, 0.05, {}, steps, seconds)


def test_the_time_left_is_known_after_the_first_window():
    """500 steps in 2 s: 1,000 more take 4 s, and two seeds do 500 a second. The warm-up is no measure."""
    console = Console(file=io.StringIO(), width=100)
    reporter = Reporter(console, 2)
    reporter(told(500, 500, 0.001, is_learning=False))
    assert not console.file.getvalue(), "nothing to tell yet"
    reporter(told(1_000, 500, 2.0))
    line = "━━━━━╌╌╌╌╌ 1,000/2,000  500 steps/s  4 s left  score 3.00  ε 0.05\n"
    assert console.file.getvalue() == line
    reporter(told(1_500, 500, 2.0))
    assert console.file.getvalue() == line, "the next plain line is ten seconds later, or the last"


def test_a_time_is_said_in_seconds_below_a_minute():
    assert [clock(seconds) for seconds in (0.0, 29.6, 59.4)] == ["0 s", "30 s", "59 s"]
    assert [clock(seconds) for seconds in (59.6, 89.0, 91.0)] == ["1 min", "1 min", "2 min"]
    assert [clock(3_600.0 * hours) for hours in (1.5, 2)] == ["90 min", "2.0 h"]


def test_a_resumed_run_knows_it_too():
    console = Console(file=io.StringIO(), width=100)
    Reporter(console, 1)(told(1_500, 250, 500.0))
    assert "0 steps/s  17 min left" in console.file.getvalue()


@pytest.fixture
def untrained(monkeypatch):
    """`primax.train` without its compiler: what it says and where it keeps programs stay."""

    def compiled(learner, seeds, say, devices):
        say("compiling …")
        return Program(learner, seeds, say, say, say, 0.0, {})

    def in_memory(program, tell):
        tell(told(1_000, 500, 2.0))
        return primax.Result(primax.configure("task", "maze"), (0, 1), {}, {}, None, 0.0, 0.0, {})

    monkeypatch.setattr(start, "compiled", compiled)
    monkeypatch.setattr(api, "in_memory", in_memory)


@pytest.mark.parametrize(
    ("watched", "asked", "is_told"),
    [(True, None, True), (False, None, False), (True, False, False), (False, True, True)],
)
def test_python_is_told_where_a_person_reads(
    untrained, monkeypatch, capsys, watched, asked, is_told
):
    monkeypatch.setattr(api, "is_watched", lambda: watched)
    heard = []
    primax.train("task", "maze", 2, "smoke", on_window=heard.append, progress=asked)
    said = capsys.readouterr()
    assert ("compiling …\n━━━━━╌╌╌╌╌ 1,000/2,000" in said.err) == is_told
    assert bool(said.err) == is_told and not said.out and len(heard) == 1


def test_a_person_reads_a_terminal_or_a_notebook(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    assert not progress.is_watched()
    monkeypatch.setitem(sys.modules, "ipykernel", pytest)
    assert progress.is_watched()
    monkeypatch.delitem(sys.modules, "ipykernel")
    monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    assert progress.is_watched()


@pytest.mark.parametrize("own", [None, "elsewhere"])
def test_python_has_the_command_lines_cache(untrained, monkeypatch, tmp_path, own):
    """Unless jax was told of another."""
    before = jax.config.jax_compilation_cache_dir
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    jax.config.update("jax_compilation_cache_dir", own)
    try:
        primax.train("task", "maze", 2, "smoke")
        found = jax.config.jax_compilation_cache_dir
    finally:
        jax.config.update("jax_compilation_cache_dir", before)
    assert Path(found) == (tmp_path / "primax" if own is None else Path(own))
