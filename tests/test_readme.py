"""What the README shows is what happens."""

import re
from pathlib import Path

import pytest

from primax.cli import COMMANDS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_example_runs(capsys):
    (example,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    exec(example, {})
    assert capsys.readouterr().out.startswith("60 episodes; V_epi 0.")
    assert len(example.strip().splitlines()) <= 8


def test_every_command_is_in_the_docs():
    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert all(f"`primax {name}" in text for name in COMMANDS)


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "CONTRIBUTING.md",
        *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")),
    ],
)
def test_links_lead_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        assert (ROOT / page).parent.joinpath(target).exists(), f"{page} links to {target}"
