"""Draws prime.svg, the flow of a window: python docs/pictures/prime.py"""

from pathlib import Path

BOXES = {
    # name: (x, y, width, lines, kind)
    "ring": (20, 20, 170, ["the ring", "100,000 newest rows"], "live"),
    "heads": (20, 130, 170, ["statistics heads E_k", "quantile.py, heads.py"], "live"),
    "phi": (20, 240, 170, ["inverse model, φ", "inverse.py"], "live"),
    "counts": (20, 350, 170, ["live counts N", "counts.py"], "live"),
    "recent": (290, 20, 190, ["snapshot: 5,000 rows", "S' after each"], "frozen"),
    "policy": (290, 130, 190, ["calibrated, centred: g_k", "π_ref, π_probe"], "frozen"),
    "probes": (290, 240, 190, ["8 probes of φ, 8 of ψ", "probes.py"], "frozen"),
    "vcount": (290, 350, 190, ["V_count = κγ² tanh² x", "x = 1/√(N+1): novelty.py"], "frozen"),
    "moments": (580, 130, 190, ["moments of S' given (s, a)", "moments.py"], "frozen"),
    "ahead": (580, 20, 190, ["look-ahead over h_g steps", "gate.py"], "frozen"),
    "vale": (580, 240, 190, ["V_ale: largest of three", "lotv.py, probes.py"], "frozen"),
    "vepi": (580, 350, 190, ["V_epi: larger of two", "lotv.py, novelty.py"], "frozen"),
    "reward": (870, 190, 190, ["V_epi - λ log(1 + [·]₊/σ₀²)", "×50, clipped: intrinsic.py"], "out"),
    "critics": (870, 350, 190, ["control heads Q_k", "critics.py"], "live"),
}
ARROWS = [
    ("ring", "recent"),
    ("heads", "policy"),
    ("phi", "probes"),
    ("counts", "vcount"),
    ("recent", "moments"),
    ("policy", "moments"),
    ("probes", "moments"),
    ("moments", "ahead"),
    ("moments", "vale"),
    ("moments", "vepi"),
    ("vcount", "vepi"),
    ("vcount", "ahead"),
    ("ahead", "reward"),
    ("vale", "reward"),
    ("vepi", "reward"),
    ("reward", "critics"),
]
FILL = {"live": "#e8eef7", "frozen": "#fdf1d8", "out": "#dff0df"}
HEIGHT = 60


def box(name: str) -> str:
    x, y, width, lines, kind = BOXES[name]
    shape = (
        f'<rect x="{x}" y="{y}" width="{width}" height="{HEIGHT}" rx="8" fill="{FILL[kind]}" '
        'stroke="#445"/>'
    )
    texts = [
        f'<text x="{x + width / 2}" y="{y + 25 + 20 * i}" text-anchor="middle" '
        f'font-size="{13 if i == 0 else 11}" fill="{"#112" if i == 0 else "#556"}">{line}</text>'
        for i, line in enumerate(lines)
    ]
    return "\n".join([shape, *texts])


def arrow(a: str, b: str) -> str:
    ax, ay, aw, *_ = BOXES[a]
    bx, by, *_ = BOXES[b]
    if ax == bx and by - ay > 120:  # around the box between
        right, top, low = ax + aw, ay + HEIGHT - 12, by + 12
        curve = f"M{right},{top} C{right + 45},{top} {right + 45},{low} {right},{low}"
        return f'<path d="{curve}" fill="none" stroke="#667" marker-end="url(#tip)"/>'
    if ax == bx:
        x, down = ax + aw / 2, by > ay
        points = (x, ay + HEIGHT if down else ay, x, by if down else by + HEIGHT)
    else:
        points = (ax + aw, ay + HEIGHT / 2, bx, by + HEIGHT / 2)
    x1, y1, x2, y2 = points
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#667" marker-end="url(#tip)"/>'


def main() -> None:
    head = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1080 470" '
        'font-family="system-ui, sans-serif" role="img" aria-label="How PRIME makes its reward">'
        '<rect width="1080" height="470" fill="#fff"/>'
        '<defs><marker id="tip" markerWidth="9" markerHeight="7" refX="8" refY="3.5" '
        'orient="auto"><path d="M0,0 L9,3.5 L0,7 z" fill="#667"/></marker></defs>'
    )
    legend = (
        '<text x="20" y="450" font-size="12" fill="#334">blue: changes with every step or update'
        " · yellow: frozen at the window's boundary · green: the reward, a pure function of the"
        " frozen parts and the transition</text>"
    )
    body = [arrow(*pair) for pair in ARROWS] + [box(name) for name in BOXES]
    drawn = "\n".join([head, *body, legend, "</svg>\n"])
    Path(__file__).with_suffix(".svg").write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    main()
