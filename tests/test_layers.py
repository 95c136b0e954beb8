"""A module imports lower layers only, and the heavy libraries only where they are used."""

import ast
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "primax"
LAYERS = [
    {"errors"},
    {"files"},
    {"config"},
    {"stats", "output"},
    {"worlds", "nn"},
    {"rewards"},
    {"methods"},
    {"presets"},
    {"agent"},
    {"runs"},
    {"api", "anywhere", "explain"},
    {"adapters"},
    {"gym", "sb3", "export", "verify"},
    {"paper"},
    {"report", "sweep"},
    {"studies"},
    {"cli"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return found


def modules() -> list[tuple[str, Path]]:
    paths = [path for path in SOURCE.rglob("*.py") if path.parent != SOURCE or path.stem[0] != "_"]
    return [(path.relative_to(SOURCE).parts[0].removesuffix(".py"), path) for path in paths]


def test_every_module_has_a_layer():
    assert {name for name, _ in modules()} == set(RANK)


def test_layers_import_downwards_only():
    for here, path in modules():
        used = {name.split(".")[1] for name in imports(path) if name.startswith("primax.")}
        wrong = {name for name in used & set(RANK) if name != here and RANK[name] >= RANK[here]}
        assert not wrong, f"{path.relative_to(SOURCE)} must not import {wrong}"


def test_the_core_imports_nothing_heavy():
    """gymnasium, Stable-Baselines3 and trackers only in adapters, pillow only inside functions."""
    for here, path in modules():
        tops = {name.split(".")[0] for name in imports(path)}
        doors = {"gymnasium", "stable_baselines3", "tensorboardX", "wandb", "trackio"}
        assert here == "adapters" or not tops & doors, path
        assert not tops & {"pandas", "torch", "statsmodels", "gymnax", "pickle", "tyro"}, path
