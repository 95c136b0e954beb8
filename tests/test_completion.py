"""What a shell completes."""

import json
import shutil
import subprocess
import sys

import pytest

from primax.cli import COMMANDS, words
from primax.cli.completion import SCRIPTS, complete


def test_the_stored_words_are_those_of_the_commands():
    stored = json.loads(words.FILE.read_text(encoding="utf-8"))
    assert stored == words.collect(), "python -m primax.cli.words writes it anew"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("st", ["stats"]),
        ("help wat", ["watch"]),
        ("train pr", ["prime"]),
        ("train prime ma", ["maze"]),
        ("train --fast prime ma", ["maze"]),
        ("train --seeds 3 prime ma", ["maze"]),
        ("train prime maze --pres", ["--preset"]),
        ("train prime maze --preset sm", ["smoke"]),
        ("train prime maze --preset = sm", ["smoke"]),
        ("train prime maze --set reward.ale", ["reward.aleatoric_weight="]),
        ("train prime maze --set steps=9 critics.he", ["critics.heads="]),
        ("train prime maze --seeds ", []),
        ("train prime maze --out ", []),
        ("resume ", []),
        ("list rnd two", ["two_wings"]),
        ("export run --which o", ["oracle"]),
        ("completion ", list(SCRIPTS)),
        ("nonsense ", []),
    ],
)
def test_words_at_the_end_of_a_line(line, found):
    """None where a file is wanted: the shell then completes files."""
    assert complete(line.split(" ")) == found


def test_the_first_word_is_a_command():
    assert complete([""]) == complete([]) == [*COMMANDS, "help", "--help", "--version"]


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
def test_bash_completes_with_the_script():
    """As Tab does: the words of the line and the place of the cursor in, COMPREPLY out."""
    script = f"""
primax() {{ {sys.executable} -m primax "$@"; }}
eval "$(primax completion bash)"
COMP_WORDS=(primax train prime m maze) COMP_CWORD=3
_primax
echo "${{COMPREPLY[@]}}"
complete -p primax
"""
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["maze", "complete -o default -F _primax primax"]
