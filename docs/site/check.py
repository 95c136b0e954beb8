"""Checks a built site: every link leads somewhere, and a browser loads nothing from another place.

python docs/site/check.py site
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADS = re.compile(r"""(?:url\(|@import\s)\s*["']?([^"')\s;]+)""")
"""In a style sheet."""
EVERYWHERE = ("http", "https", "mailto", "data", "javascript")


class Page(HTMLParser):
    """What a page has: ids, links that a reader follows, and what its browser loads by itself."""

    def __init__(self, text: str):
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self._in_style = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        self._in_style = tag == "style"
        if tag in ("a", "area"):
            self.links += [given["href"]] if "href" in given else []
            return
        self.loads += [given[name] for name in ("src", "href", "data", "poster") if name in given]
        self.loads += [part.split()[0] for part in given.get("srcset", "").split(",") if part]
        self.loads += LOADS.findall(given.get("style", ""))

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self.loads += LOADS.findall(data)


def problems(site: Path) -> list[str]:
    """A line for each link that leads nowhere, and for each thing that is loaded from elsewhere."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    found = []
    for path, page in pages.items():
        for link in page.links:
            if not _leads(site, pages, path, link):
                found.append(f"{path.relative_to(site)}: {link} leads nowhere")
        found += _unloaded(site, path, page.loads)
    for path in site.rglob("*.css"):
        found += _unloaded(site, path, LOADS.findall(path.read_text(encoding="utf-8")))
    return sorted(set(found))


def _leads(site: Path, pages: dict[Path, Page], path: Path, link: str) -> bool:
    parts = urlsplit(link)
    if parts.scheme in EVERYWHERE:
        return True
    target = path.parent.joinpath(unquote(parts.path)).resolve() if parts.path else path
    if not (target.is_file() and target.is_relative_to(site)):
        return False
    page = pages.get(target)
    return page is None or not parts.fragment or unquote(parts.fragment) in page.ids


def _unloaded(site: Path, path: Path, loads: list[str]) -> list[str]:
    where, found = path.relative_to(site), []
    for link in loads:
        parts = urlsplit(link)
        if parts.netloc:
            found.append(f"{where}: {link} is loaded from elsewhere")
        elif parts.path and parts.scheme != "data":
            target = path.parent.joinpath(unquote(parts.path))
            found += [] if target.is_file() else [f"{where}: {link} is not there"]
    return found


def main() -> int:
    site = Path(sys.argv[1]).resolve()
    found = problems(site)
    print("\n".join(found) or f"every link in {site.name} leads somewhere")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
