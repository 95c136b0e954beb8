"""Puts what was made from runs into pages people write: between two marks, and nowhere else.

<!-- results: table1 -->
replaced by the table
<!-- /results -->
"""

import os
import re
from pathlib import Path

from primax.errors import InputError, hint
from primax.runs import disk

Blocks = dict[str, str]
"""Markdown by name; links lead from the folder it was made in."""
MARKED = re.compile(
    r"^(<!-- results: (\w+) -->\n)(?:(?!^<!-- results:).)*?^(<!-- /results -->)", re.DOTALL | re.M
)
MARK = re.compile(r"^<!-- (?:results:|/results)", re.M)
LINK = re.compile(r"\]\((?!\w+:|#)([^)]+)\)")


def fill(page: Path, blocks: Blocks, home: Path) -> None:
    """Fills every marked place of a page; whatever else is in it stays."""
    try:
        text = page.read_bytes().decode("utf-8")  # with whatever ends its lines
        disk.write_whole(page, filled(text, blocks, way(home, page.parent)).encode())
    except OSError as error:
        raise InputError(f"cannot write {page}: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{page}: {error}") from error


def way(home: Path, start: Path) -> str:
    """From one folder to another, for links."""
    return Path(os.path.relpath(home.resolve(), start.resolve())).as_posix()


def filled(text: str, blocks: Blocks, to: str) -> str:
    """A page's text with its marked places filled; `to` leads from it to where links begin."""
    places, marks = len(MARKED.findall(text)), len(MARK.findall(text))
    if marks != 2 * places or not places:
        wrong = "a mark has no other side" if marks else "no place is marked"
        raise InputError(
            f"{wrong}: <!-- results: NAME --> and <!-- /results -->, in lines of their own"
        )

    def block(match: re.Match[str]) -> str:
        if match[2] not in blocks:
            raise InputError(f"there is no {match[2]!r} to put in{hint(match[2], blocks)}")
        made = LINK.sub(rf"]({to}/\1)", blocks[match[2]].strip())
        return f"{match[1]}\n{made}\n\n{match[3]}"

    return MARKED.sub(block, text)
