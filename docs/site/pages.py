"""What the site needs beyond the pages: lists of them, the files they link to, and tables from the code."""

import html
import importlib
import re
import shutil
import typing
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

TABLE = re.compile(r"^<!-- table: (\w+) -->$", re.MULTILINE)
REPLACED = (
    (re.compile(r"<class '[\w.]*?(\w+)'>"), r"\1"),
    (re.compile(r"Annotated\[([^,]+), [^]]*]"), r"\1"),
    (re.compile("<factory>"), "..."),
)
"""In a signature: what one would not write."""
SHORT, LONG = 20, 60
"""Letters of a cell that stays in one line, and of one that is prose."""
FIRST = 100
"""Of `doctree-read`: before files that are linked to are collected elsewhere."""


def extend_page(app: Sphinx, page: str, source: list[str]) -> None:
    """Puts tables where a page asks for them, and lists of pages at its end."""
    source[0] = TABLE.sub(lambda found: _table(found[1]), source[0])
    for heading, pages in app.config.NAV.get(page, {}).items():
        entries = "\n".join(f"/{name}" for name in pages)
        source[0] += f"\n\n```{{toctree}}\n:hidden:\n:caption: {heading}\n\n{entries}\n```\n"


def _table(name: str) -> str:
    """Of `tables`, which loads the package: after `setup`."""
    return getattr(importlib.import_module("tables"), name)()


def shorten(*told: Any) -> tuple[str | None, str | None]:
    """A signature as one would write it: without a field's rules, and with short defaults."""
    *_, args, gives = told
    for found, written in REPLACED if args else ():
        args = found.sub(written, args)
    return args, gives


def link_files(linked: set[Path], app: Sphinx, tree: nodes.document) -> None:
    """Links to what is no page: they stay as they are, and what they lead to goes into the site."""
    root = Path(app.srcdir)
    here = root.joinpath(app.env.docname).parent
    for node in [*tree.findall(addnodes.download_reference), *tree.findall(addnodes.pending_xref)]:
        target = node["reftarget"]
        path = here.joinpath(target).resolve()
        is_folder = node["refdomain"] is None and path.is_dir()
        if not (is_folder or isinstance(node, addnodes.download_reference)):
            continue
        name = path.relative_to(root)
        if f"{name.as_posix()}/index" not in app.env.found_docs:
            linked.add(name)
        uri = f"{target}/index.html" if is_folder else target
        node.replace_self(nodes.reference("", "", *node.children, refuri=uri, internal=True))


def mark_cells(app: Sphinx, tree: nodes.document) -> None:
    """Says which cells of a table are short and which are prose, for the style sheet."""
    for body in tree.findall(nodes.tbody):
        for cell in body.findall(nodes.entry):
            if (length := len(cell.astext())) <= SHORT or length > LONG:
                cell["classes"].append("short" if length <= SHORT else "long")


def folder_pages(linked: set[Path], app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """A page for each folder that is linked to, which lists its files."""
    root = Path(app.srcdir)
    for folder in sorted(path for path in linked if (root / path).is_dir()):
        rows = [
            f'<li><a href="{html.escape(name)}">{html.escape(name)}</a>, {_size(path)}</li>'
            for path in _files(root / folder)
            for name in [path.relative_to(root / folder).as_posix()]
        ]
        title = folder.as_posix()
        body = f"<h1>{title}</h1><p>The files of this folder.</p><ul>{''.join(rows)}</ul>"
        yield f"{title}/index", {"title": title, "body": body}, "page.html"


def copy_files(linked: set[Path], app: Sphinx, error: Exception | None) -> None:
    """Under the paths they have here."""
    root, site = Path(app.srcdir), Path(app.outdir)
    for path in linked if error is None else ():
        for source in _files(root / path):
            target = site / source.relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    if error is None:  # what a browser opens first
        shutil.copyfile(site / "README.html", site / "index.html")


def _files(path: Path) -> list[Path]:
    """A file itself, or those of a folder but for what Python leaves there."""
    found = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [one for one in found if one.is_file() and one.parent.name != "__pycache__"]


def _size(path: Path) -> str:
    size = path.stat().st_size
    return f"{size:,} bytes" if size < 10_000 else f"{size / 1_000:,.0f} kB"


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    # jaxtyping then calls types what they are called in the source.
    typing.GENERATING_DOCUMENTATION = "primax"
    linked: set[Path] = set()
    app.add_config_value("NAV", {}, "env")
    app.connect("source-read", extend_page)
    app.connect("autodoc-process-signature", shorten)
    app.connect("doctree-read", partial(link_files, linked), priority=FIRST)
    app.connect("doctree-read", mark_cells)
    app.connect("html-collect-pages", partial(folder_pages, linked))
    app.connect("build-finished", partial(copy_files, linked))
