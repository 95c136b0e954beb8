"""Figures drawn by matplotlib, the same bytes each time."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

from primax import files
from primax.errors import InputError

STYLE = {
    "svg.hashsalt": "primax",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "pdf.fonttype": 42,  # letters as letters: publishers refuse the default
}
"""What every figure has in common."""
Draw = Callable[[Any], None]
FORMATS: dict[str, dict[str, str | None]] = {
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    ".svg": {"Date": None, "Creator": None},
    ".png": {"Software": None},
}
"""Endings a figure's name may have, and what is not written into the file: dates and versions."""
DPI = 200
SCREEN = 110
"""The same for a notebook."""


def matplotlib() -> Any:
    """The library, or one line on how to get it."""
    try:
        import matplotlib
    except ImportError:
        raise InputError("figures need matplotlib: pip install 'primax-rl[report]'") from None
    return matplotlib


def drawn(size: tuple[float, float], draw: Draw) -> Any:
    """A figure for whoever asked for it; a notebook shows it where a cell ends in it."""
    library = matplotlib()
    with library.rc_context(STYLE):
        figure = _figure(size, draw)
    # A notebook shows by itself only what pyplot has made, and that twice.
    figure._repr_png_ = lambda: _saved(figure, ".png")
    return figure


def make(path: Path, size: tuple[float, float], draw: Draw, title: str = "") -> None:
    """Draws a figure and writes it, as SVG unless its name says otherwise, to the same bytes each time.

    A title stands above all panels and in the file's own data, so that a copy still has it.
    """
    path = path if path.suffix in FORMATS else path.with_suffix(".svg")
    _write(path, path.suffix, size, draw, title)


def make_png(path: Path, size: tuple[float, float], draw: Draw) -> None:
    """Draws a figure and writes it as PNG, whatever the file is called."""
    _write(path, ".png", size, draw)


def _write(path: Path, ending: str, size: tuple[float, float], draw: Draw, title: str = "") -> None:
    library = matplotlib()
    with library.rc_context(STYLE):
        figure = _figure(size, draw)
        if title:
            figure.suptitle(title)
        content = _saved(figure, ending, DPI, title)
    files.overwrite(path, content)


def _figure(size: tuple[float, float], draw: Draw) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = Figure(figsize=size, layout=ConstrainedLayoutEngine(w_pad=0.1))
    FigureCanvasAgg(figure)
    draw(figure)
    return figure


def _saved(figure: Any, ending: str, dpi: int = SCREEN, title: str = "") -> bytes:
    content = io.BytesIO()
    known = FORMATS[ending] | ({"Title": title} if title else {})
    figure.savefig(content, format=ending[1:], metadata=known, dpi=dpi)
    return content.getvalue()
