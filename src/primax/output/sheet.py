"""A table of texts, as Markdown, CSV, HTML and LaTeX; and how numbers are written in it."""

import csv
import html
import io
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

ABSENT = "—"
"""Where there is nothing to be had."""


@dataclass(frozen=True)
class Sheet:
    """A table a person reads."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    """Below the table."""
    above: tuple[str, ...] = ()
    """What must be read first."""

    def __post_init__(self):
        for row in self.rows:
            assert len(row) == len(self.columns), (self.name, row)

    def markdown(self) -> str:
        """Title, what comes first, table, notes."""
        return f"### {self.title}\n\n{self.body()}"

    def body(self) -> str:
        """The same without its title."""
        lines = [f"{line}\n" for line in self.above]
        if self.rows:
            lines += [_line(self.columns), _line(["---"] * len(self.columns))]
            lines += [_line(row) for row in self.rows]
        lines += [f"\n{note}" for note in self.notes]
        return "\n".join(lines) + "\n"

    def csv(self) -> str:
        """The same cells."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([self.columns, *self.rows])
        return text.getvalue()

    def html(self) -> str:
        """The same for a notebook."""
        head, *rows = [[html.escape(cell) for cell in row] for row in (self.columns, *self.rows)]
        lines = [f"<caption>{html.escape(self.title)}</caption>"]
        lines += [_cells("th", head), *(_cells("td", row) for row in rows)]
        table = "".join(["<table>", *lines, "</table>"])
        return table + "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)

    def latex(self) -> str:
        """The same cells for a paper, with booktabs; the first column is text, the others numbers."""
        rows = [self.columns, *self.rows]
        first, *others = [" & ".join(map(latex_text, row)) + r" \\" for row in rows]
        columns = "l" + "r" * (len(self.columns) - 1)
        notes = [f"% {note}" for note in self.notes]
        return "\n".join(
            [
                rf"\begin{{tabular}}{{{columns}}}",
                r"\toprule",
                first,
                r"\midrule",
                *others,
                r"\bottomrule",
                r"\end{tabular}",
                *notes,
                "",
            ]
        )


def aligned(rows: Sequence[Sequence[str]], numbers: int = 1) -> Iterator[str]:
    """Rows as lines of a terminal, columns under each other; the last few hold numbers."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    texts = len(widths) - numbers
    for row in rows:
        cells = [
            text.ljust(width) if i < texts else text.rjust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()


LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"$<$",
    ">": r"$>$",
    "|": r"$|$",
    "∞": r"$\infty$",
    "—": "---",
    "±": r"$\pm$",
} | {mark: f"\\{mark}" for mark in "&%$#_{}"}
"""What LaTeX would read as something else, or cannot print."""


def latex_text(text: str) -> str:
    """Text that LaTeX prints as it is; a negative number has a minus sign, not a hyphen."""
    escaped = "".join(LATEX.get(letter, letter) for letter in text)
    return re.sub(r"(?<![\w.])-(?=\.?\d|\$|\s)", "$-$", escaped)


def _cells(kind: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{kind}>{cell}</{kind}>" for cell in cells) + "</tr>"


def _line(cells: tuple[str, ...] | list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def number(value: float, digits: int = 2) -> str:
    """A plain decimal; magnitudes far from one in powers of ten."""
    if math.isnan(value):
        return ABSENT
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if value and abs(value) < 10.0**-digits:
        return f"{value:.1e}"
    return f"{value:z.{digits}f}"


def plus_minus(mean: float, std: float, digits: int = 2) -> str:
    """Mean and std, as the paper prints them."""
    text = f"{mean:.{digits}f}"
    return text if math.isnan(std) else f"{text} ± {std:.{digits}f}"


def bracket(low: float, high: float, digits: int = 2, sign: str = "") -> str:
    """An interval."""
    return f"[{low:{sign}z.{digits}f}, {high:{sign}z.{digits}f}]"


def plain_p(value: float) -> str:
    """Three digits; no p is nought."""
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def p_value(value: float) -> str:
    """The same, bold below 0.05."""
    return f"**{plain_p(value)}**" if value < 0.05 else plain_p(value)


def clock(seconds: float) -> str:
    """Seconds, minutes or hours, whichever reads best."""
    if round(seconds) < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"


def counted(num: int, what: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{num} {what}{'' if num == 1 else 's'}"
