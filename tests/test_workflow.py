"""The workflow runs what a change must pass, on the versions of Python that the package says it supports."""

import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parent.parent
WORKFLOW = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
(JOB,) = WORKFLOW["jobs"].values()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_versions_are_those_of_the_package():
    prefix = "Programming Language :: Python :: "
    known = [name.removeprefix(prefix) for name in PROJECT["classifiers"] if prefix in name]
    assert JOB["strategy"]["matrix"]["python"] == known
    assert PROJECT["requires-python"] == f">={known[0]}"


def test_it_runs_what_a_change_must_pass_with_that_python():
    *_, python, last = JOB["steps"]
    assert python["with"]["python-version"] == "${{ matrix.python }}"
    assert python["with"]["cache-dependency-path"] == "constraints.txt"
    assert last == {"run": ".ci/run"} and (ROOT / ".ci/run").stat().st_mode & 0o100
    # setup-python puts its `python3` first; with another name here the matrix would mean nothing.
    assert "\nPYTHON ?= python3\n" in (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "python" not in re.sub(r"#.*", "", (ROOT / ".ci/run").read_text(encoding="utf-8"))


def test_it_may_read_and_no_more_and_comes_to_an_end():
    assert WORKFLOW["permissions"] == {"contents": "read"} and "permissions" not in JOB
    assert JOB["timeout-minutes"] <= 60 and WORKFLOW["concurrency"]["cancel-in-progress"] is True
    used = [step["uses"] for step in JOB["steps"] if "uses" in step]
    assert used and all(re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", action) for action in used)
