"""The benchmark scripts start; what they measure is not for a test to say."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "benchmarks"


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
