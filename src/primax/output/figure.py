"""Figures drawn by matplotlib, the same bytes each time."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

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
}
"""What every figure has in common."""
Draw = Callable[[Any], None]


def matplotlib() -> Any:
    """The library, or one line on how to get it."""
    try:
        import matplotlib
    except ImportError:
        raise InputError("figures need matplotlib: pip install 'primax-rl[report]'") from None
    return matplotlib


def make(path: Path, size: tuple[float, float], draw: Draw) -> None:
    """Draws a figure and writes it as SVG, to the same bytes each time."""
    _write(path.with_suffix(".svg"), size, draw, metadata={"Date": None, "Creator": None})


def make_png(path: Path, size: tuple[float, float], draw: Draw) -> None:
    """Draws a figure and writes it as PNG, whatever the file is called."""
    _write(path, size, draw, format="png", dpi=150)


def _write(path: Path, size: tuple[float, float], draw: Draw, **how: Any) -> None:
    library = matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    with library.rc_context(STYLE):
        figure = Figure(figsize=size, layout=ConstrainedLayoutEngine(w_pad=0.1))
        FigureCanvasAgg(figure)
        draw(figure)
        try:
            figure.savefig(path, **how)
        except OSError as error:
            raise InputError(f"cannot write {path}: {error.strerror}") from error
