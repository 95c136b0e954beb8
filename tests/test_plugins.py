"""A method and a world from someone's own package."""

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from test_paper_case import write_run

from primax.cli import main
from primax.methods import METHODS
from primax.paper.experiments import CELLS
from primax.worlds import WORLDS

PAGE = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
(EXAMPLE,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
BOTH = """
import primax
from own import MOVED, Corridor

primax.METHODS["moved"], primax.WORLDS["corridor"] = MOVED, Corridor
"""


class Alone:
    """Each command as in a process of its own, in a folder with the packages."""

    def __init__(self, folder: Path, capsys):
        self.folder, self.capsys = folder, capsys
        self.before = dict(METHODS), dict(WORLDS), list(sys.path)

    def write(self, name: str, text: str) -> None:
        (self.folder / f"{name}.py").write_text(text, encoding="utf-8")

    def forget(self) -> None:
        methods, worlds, path = self.before
        for table, entries in ((METHODS, methods), (WORLDS, worlds)):
            table.clear()
            table.update(entries)
        for name in ("my_package", "both"):
            sys.modules.pop(name, None)
        sys.path[:] = path
        importlib.invalidate_caches()  # files are written between commands

    def __call__(self, line: str, status: int = 0) -> str:
        """What a command prints, stdout or the one line it refuses with."""
        assert main(line.split()) == status, self.capsys.readouterr().err
        said = self.capsys.readouterr()
        self.forget()
        return said.out if status == 0 else said.err


@pytest.fixture
def alone(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XLA_FLAGS", "")
    monkeypatch.setenv("COLUMNS", "200")
    found = Alone(tmp_path, capsys)
    yield found
    found.forget()


def test_the_documented_package_is_listed(alone):
    alone.write("my_package", EXAMPLE)
    alone.write("both", BOTH)
    text = alone("list --plugin my_package --plugin both")
    assert "every step that leads nowhere" in text and "every step that leads somewhere" in text
    assert "fields of still in corridor" in alone("list still corridor --plugin my_package --plugin both")  # fmt: skip
    assert "unknown method 'still'" in alone("list still maze", 2), "nobody named its package"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "cannot be imported (ModuleNotFoundError: No module named 'my_package')"),
        ("1 / 0", "cannot be imported (ZeroDivisionError: division by zero)"),
        ("import primax", "added nothing: when it is imported, it must put its methods into"),
        (
            "import primax\nprimax.METHODS['prime'] = primax.METHODS['rnd']",
            "takes the place of the method prime: choose another name",
        ),
        (
            "import primax\nprimax.METHODS['mine'] = primax.METHODS['rnd']",
            "has no primax.Method of the name 'mine' in primax.METHODS['mine']",
        ),
        (
            "import primax\nprimax.WORLDS['My-World'] = primax.WORLDS['maze']",
            "calls a world 'My-World': write 'my_world'",
        ),
        ("import primax\nprimax.WORLDS['x'] = 3", "has no class of worlds in primax.WORLDS['x']"),
    ],
)
def test_a_bad_package_is_refused_in_one_line(alone, text, says):
    if text is not None:
        alone.write("my_package", text)
    methods = dict(METHODS)
    assert main(["list", "--plugin", "my_package"]) == 2
    said = alone.capsys.readouterr().err
    assert (
        said.count("\n") == 1 and said.startswith("primax: --plugin my_package ") and says in said
    )
    assert methods == METHODS, "what it added is taken back"


def test_an_installed_package_is_known_unasked(alone, monkeypatch):
    alone.write("my_package", EXAMPLE)
    about = alone.folder / "mine-0.1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 0.1\n")
    (about / "entry_points.txt").write_text("[primax.plugins]\nmine = my_package\n")
    monkeypatch.syspath_prepend(alone.folder)
    assert "fields of still in maze" in alone("list still maze")
    alone.write("my_package", "1 / 0")
    sys.path.insert(0, str(alone.folder))
    assert main(["list", "rnd", "maze"]) == 0, "it is no reason to stop"
    said = alone.capsys.readouterr()
    assert "fields of rnd in maze" in said.out
    assert "the installed package my_package cannot be imported" in said.err


def test_a_folder_does_not_have_its_package_imported(alone):
    """It says what may be missing."""
    alone.write("my_package", EXAMPLE)
    path = write_run(alone.folder / "run", CELLS["task_maze"], np.zeros((2, 40)))
    config = path / "config.json"
    config.write_text(config.read_text().replace('"task"', '"still"'))
    for line in ("export run", "verify --run run", "resume run"):
        if line == "resume run":
            (path / "manifest.json").unlink()
        said = alone(line, 2)
        assert "there is no method 'still'; if it is in a package of your own, add --plugin" in said
    assert "my_package" not in sys.modules


@pytest.mark.slow
def test_the_documented_package_at_every_door(alone):
    alone.write("my_package", EXAMPLE)
    alone.write("both", BOTH)
    plugins = "--plugin my_package --plugin both"
    text = alone(f"train still corridor --preset smoke --seeds 2 --out run {plugins}")
    assert "still in Corridor" in text
    assert "run is finished" in alone(f"resume run {plugins}")
    assert "still" in alone(f"stats run --measure last {plugins}")
    assert "nothing fails" in alone(f"verify --run run {plugins}")
    assert "export_last.npz" in alone(f"export run {plugins}")
    assert "still in Corridor" in alone(f"evaluate run/export_last.npz --episodes 2 {plugins}")
    assert "Corridor · Still" in alone(f"watch run {plugins}")
    assert "explain works for PRIME's reward only" in alone(f"explain run {plugins}", 2)
    alone(f"report run --out page.html {plugins}")
    page = (alone.folder / "page.html").read_text(encoding="utf-8")
    assert "Still" in page and "Corridor 4 × 6" in page
    alone(f"plot run --out curves.svg {plugins}")
    assert "<!-- Still -->" in (alone.folder / "curves.svg").read_text(encoding="utf-8")
    assert "no world 'corridor'" in alone("export run", 2)
