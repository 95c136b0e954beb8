"""The workflow runs what a change must pass, on the versions of Python that the package says it supports."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
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
    *_, python, checks, long = JOB["steps"]
    assert python["with"]["python-version"] == "${{ matrix.python }}"
    assert python["with"]["cache-dependency-path"] == "constraints.txt"
    assert checks["run"] == ".ci/run" and (ROOT / ".ci/run").stat().st_mode & 0o100
    assert long == {"run": "make test-long"}
    assert checks["env"] == {"PIP_EXTRA_INDEX_URL": "${{ vars.PIP_EXTRA_INDEX_URL }}"}
    # setup-python puts its `python3` first; with another name here the matrix would mean nothing.
    assert "\nPYTHON ?= python3\n" in (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "python" not in re.sub(r"#.*", "", (ROOT / ".ci/run").read_text(encoding="utf-8"))


def test_it_may_read_and_no_more_and_comes_to_an_end():
    assert WORKFLOW["permissions"] == {"contents": "read"} and "permissions" not in JOB
    assert 60 < JOB["timeout-minutes"] <= 120
    assert WORKFLOW["concurrency"]["cancel-in-progress"] is True
    used = [step["uses"] for step in JOB["steps"] if "uses" in step]
    assert used and all(re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", action) for action in used)


@pytest.mark.parametrize(
    "pip, is_tested",
    [
        ("echo 'Would install torch-2.13.0+cpu'", True),
        ("echo 'Would install torch-2.13.0'", False),  # from the package index: for GPUs
        ("echo 'no matching distribution' >&2; exit 1", False),
    ],
)
@pytest.mark.parametrize("is_github", [False, True])
def test_the_adapter_is_tested_where_torch_for_cpus_is_found(tmp_path, pip, is_tested, is_github):
    """The end of `.ci/run` with another pip and another make; what is left out is said aloud."""
    head, found, end = (ROOT / ".ci/run").read_text(encoding="utf-8").partition("# Stable-Base")
    assert found and "test-sb3" not in head
    for name, does in (("pip", pip), ("make", 'echo "made $1"')):
        path = tmp_path / ".venv" / "bin" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{does}\n")
        path.chmod(0o755)
    env = {"PATH": f"{tmp_path}/.venv/bin:/usr/bin:/bin"}
    env |= {"GITHUB_ACTIONS": "true"} if is_github else {}
    words = ["bash", "-c", f"set -euo pipefail\n{found}{end}"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    assert (done.stdout == "made test-sb3\n") == is_tested
    assert is_tested or "were not run" in done.stdout
    assert done.stdout.startswith("::warning::") == (is_github and not is_tested)
