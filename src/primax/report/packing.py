"""Numbers as short text: quantised, as base64; and JSON that is safe inside a page."""

import base64
import json
from typing import Any

import numpy as np
from markupsafe import Markup

U8, U16 = 255, 65_535
"""Not a number; what is below it are equal steps from the lowest to the highest value."""
Scale = tuple[float, float]


def scale_of(values: np.ndarray) -> Scale:
    """Lowest and highest number there is, in digits that are short to write."""
    known = values[np.isfinite(values)]
    if not known.size:
        return 0.0, 0.0
    return _short(float(known.min()), down=True), _short(float(known.max()), down=False)


def _short(value: float, down: bool) -> float:
    """Six digits, rounded outwards so that no value lies outside."""
    near = float(f"{value:.6g}")
    if near == value or (near < value) == down:
        return near
    step = 10.0 ** (np.floor(np.log10(abs(value))) - 5)
    return float(f"{near - step if down else near + step:.6g}")


def quantise(values: np.ndarray, scale: Scale, none: int) -> np.ndarray:
    """As whole numbers below `none`, which stands for what is not a number."""
    low, high = scale
    with np.errstate(invalid="ignore"):
        share = (values - low) / (high - low) if high > low else np.zeros_like(values, dtype=float)
        steps = np.clip(np.rint(share * (none - 1)), 0, none - 1)
    kind = np.uint8 if none == U8 else np.dtype("<u2")
    return np.where(np.isfinite(values), steps, none).astype(kind)


def restore(steps: np.ndarray, scale: Scale, none: int) -> np.ndarray:
    """What the page makes of it."""
    values = scale[0] + steps.astype(float) * (scale[1] - scale[0]) / (none - 1)
    return np.where(steps == none, np.nan, values)


def text(array: np.ndarray) -> str:
    """Bytes as base64."""
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")


def column(values: np.ndarray) -> dict[str, Any]:
    """A block of numbers with its scale, 65,535 steps fine."""
    scale = scale_of(values)
    return {"scale": list(scale), "data": text(quantise(values, scale, U16))}


def embedded(content: Any) -> Markup:
    """JSON for a script element: nothing in it can end the element or begin another."""
    body = json.dumps(content, separators=(",", ":"), allow_nan=False)
    for char, code in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
        body = body.replace(char, code)
    return Markup(body)


def shares(needs: list[int], room: int) -> list[int]:
    """Of a room that all have to share: what each needs, or an equal part of what is left."""
    found, order = list(needs), sorted(range(len(needs)), key=needs.__getitem__)
    for place, i in enumerate(order):
        found[i] = min(needs[i], room // (len(needs) - place))
        room -= found[i]
    return found


def number(value: float) -> float | None:
    """For JSON, which has no NaN."""
    return float(f"{value:.6g}") if np.isfinite(value) else None
