"""What the site is made of: every page has its place, every public name its entry, every field its row.

`make site` builds it; what is checked then is tried here on small sites.
"""

import ast
import inspect
import re
import runpy
from itertools import product
from pathlib import Path

import pytest

import primax
from primax.config.fields import walk
from primax.methods import METHODS
from primax.presets import paper
from primax.worlds import WORLDS

ROOT = Path(__file__).parent.parent
SITE = ROOT / "docs" / "site"
REFERENCE = {page: page.read_text(encoding="utf-8") for page in SITE.glob("reference/*.md")}
PAGES = {"export": "export.md", "gym": "gymnasium.md", "sb3": "sb3.md"}
TABLES = runpy.run_path(str(SITE / "tables.py"))
problems = runpy.run_path(str(SITE / "check.py"))["problems"]


def test_every_page_is_listed_once(monkeypatch):
    monkeypatch.setattr("sys.path", [])  # the settings add to it
    lists = runpy.run_path(str(SITE / "conf.py"))["NAV"]
    listed = [
        "README",
        *(page for groups in lists.values() for pages in groups.values() for page in pages),
    ]
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *REFERENCE]
    found += [*ROOT.glob("results/paper/*.md"), *ROOT.glob("results/readings/*.md")]
    names = [path.relative_to(ROOT).with_suffix("").as_posix() for path in found]
    assert sorted(listed) == sorted(names)


def named_by(door: str) -> list[str]:
    """What a module offers; read, not imported, for it may need an extra."""
    source = (ROOT / "src" / "primax" / f"{door}.py").read_text(encoding="utf-8")
    return ast.literal_eval(source.partition("__all__ = ")[2])


@pytest.mark.parametrize("door", ["export", "gym", "sb3"])
def test_every_name_of_a_module_has_an_entry(door):
    entries = re.findall(rf":: primax\.{door}\.(\w+)", REFERENCE[SITE / "reference" / PAGES[door]])
    assert sorted(entries) == sorted(named_by(door))


@pytest.mark.parametrize("name", primax.__all__)
def test_every_public_name_has_an_entry_and_a_docstring(name):
    entries = re.findall(
        rf"^\.\. (auto|py:)\w+:: primax\.{name}\b", "\n".join(REFERENCE.values()), re.MULTILINE
    )
    assert entries, f"{name} is in no page of docs/site/reference"
    thing = getattr(primax, name)
    if entries[0] == "auto":
        assert inspect.isroutine(thing) or inspect.isclass(thing)
        assert vars(thing).get("__doc__") or (inspect.isroutine(thing) and thing.__doc__)


def test_what_is_no_function_or_class_is_described_on_its_page():
    """`autodoc` would show a dict's own docstring."""
    text = "\n".join(REFERENCE.values())
    for name in ("METHODS", "WORLDS", "__version__"):
        assert re.search(rf"py:data:: primax\.{name}\n   :type: .+\n\n   \w", text)


@pytest.mark.parametrize(
    ("method", "world"),
    [*product(METHODS, WORLDS), ("task+prime", "maze"), ("prime", "noisy:maze")],
)
def test_every_field_is_in_the_settings(method, world):
    page = REFERENCE[SITE / "reference" / "settings.md"]
    asked = re.findall(r"<!-- table: (\w+) -->", page)
    text = "\n".join(TABLES[name]() for name in asked)
    for field in walk(paper(method, world)):
        assert field.name == "method" or f"| `{field.name}` " in text, field.name
        assert field.doc, f"{field.name} has no line under it"


def test_tables_hold_what_would_break_a_cell():
    text = TABLES["run"]()
    row = next(line for line in text.splitlines() if "`critics.q_max`" in line)
    assert r"soft bound on \|Q\| begins. From 1e-06 to 1e9." not in row
    assert r"\|Q\|" in row and "From 1e-6 to 1e9." in row and "Q_max" in row
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in text.splitlines()}) == 1


def built(folder: Path, **pages: str) -> list[str]:
    """The problems of a site of these pages, by name without `.html`; `style` is its style sheet."""
    for name, text in pages.items():
        (folder / ("style.css" if name == "style" else f"{name}.html")).write_text(text)
    return problems(folder.resolve())


GOOD = '<h1 id="top">A</h1><a href="b.html#part">b</a> <a href="https://example.org">there</a>'
OTHER = '<link rel="stylesheet" href="style.css"><p id="part"><a href="#part">b</a>'


def test_a_sound_site_has_no_problems(tmp_path):
    assert built(tmp_path, a=GOOD, b=OTHER, style="a { background: url(a.html) }") == []


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ('<a href="c.html">c</a>', "b.html: c.html leads nowhere"),
        ('<a href="a.html#gone">a</a>', "b.html: a.html#gone leads nowhere"),
        ('<a href="#gone">a</a>', "b.html: #gone leads nowhere"),
        ('<a href="../b.html">out of the site</a>', "b.html: ../b.html leads nowhere"),
        ('<img src="c.png">', "b.html: c.png is not there"),
        ('<script src="https://a.example/x.js"></script>', "https://a.example/x.js is loaded"),
        ('<img srcset="//a.example/x.png 2x">', "//a.example/x.png is loaded from elsewhere"),
        ('<p style="background: url(https://a.example)">', "https://a.example is loaded"),
        ("<style>@import 'https://a.example/x.css';</style>", "x.css is loaded from elsewhere"),
    ],
)
def test_what_is_wrong_with_a_page_is_said(tmp_path, bad, says):
    (found,) = built(tmp_path, a=GOOD, b=OTHER + bad, style="")
    assert says in found


def test_a_style_sheet_loads_nothing_from_elsewhere(tmp_path):
    font = '@font-face { src: url("https://a.example/x.woff2") }'
    (found,) = built(tmp_path, a=GOOD, b=OTHER, style=font)
    assert found == "style.css: https://a.example/x.woff2 is loaded from elsewhere"
