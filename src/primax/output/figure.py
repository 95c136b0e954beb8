"""Figures drawn by matplotlib, the same bytes each time."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from primax.errors import InputError


def matplotlib() -> Any:
    """The library, or one line on how to get it."""
    try:
        import matplotlib
    except ImportError:
        raise InputError("figures need matplotlib: pip install 'primax-rl[report]'") from None
    return matplotlib


def make(path: Path, size: tuple[float, float], draw: Callable[[Any], None]) -> None:
    """Draws a figure and writes it as SVG, to the same bytes each time."""
    library = matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    style = {
        "svg.hashsalt": "primax",
        "font.family": "DejaVu Sans",
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.alpha": 0.25,
        "legend.frameon": False,
    }
    with library.rc_context(style):
        figure = Figure(figsize=size, layout=ConstrainedLayoutEngine(w_pad=0.1))
        FigureCanvasAgg(figure)
        draw(figure)
        try:
            figure.savefig(path.with_suffix(".svg"), metadata={"Date": None, "Creator": None})
        except OSError as error:
            raise InputError(f"cannot write {path}: {error.strerror}") from error
