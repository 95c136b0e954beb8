"""A run's networks and its frozen reward in one small file that travels.

No ring, no optimiser, and weights in half precision. It is an npz without pickle, whose arrays
lead with the seed: `critics.*` are the control heads, `reward.*` what the reward was frozen to.
`config` and `about` are JSON as bytes.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from primax import files
from primax.agent import critics as critic
from primax.config.schema import Config
from primax.config.seeds import check_seeds
from primax.errors import InputError, check_choice
from primax.methods import build
from primax.nn import nets
from primax.runs import npz
from primax.runs.config_json import as_json, from_json
from primax.runs.read import Run, open_run
from primax.runs.tables import FURTHEST

FORMAT = 1
WHICH = {"last": ".critics.online", "best": ".best.by_coverage", "oracle": ".best.by_score"}
"""The control heads as they are, as they were at the best coverage, and at the best task score."""
FROZEN = (".reward.window.", ".reward.prior.")
"""Of a reward that is frozen to a window, this is what its value and reference policy come from."""
REFERENCE_ONLY = (".reward.window.heads.", ".reward.prior.")
"""Ensembles of which the first, the reference head, is enough."""


@dataclass(frozen=True)
class Exported:
    """What an exported file holds."""

    config: Config
    """All settings of the run."""
    all_seeds: tuple[int, ...]
    """All seeds of the run."""
    seeds: tuple[int, ...]
    """Those whose networks are here."""
    about: dict[str, Any]
    """Which networks, from which step of every seed, and the run's provenance."""
    arrays: dict[str, np.ndarray]
    """As they are in the file: [seed, ...]."""

    def critics(self, seed: int) -> nets.Net:
        """The control heads of a seed, to be used with `critics.values`."""
        sizes = critic.sized(self.config, build(self.config)[1])
        like = jax.eval_shape(lambda key: critic.init(key, **sizes).online, jax.random.key(0))
        return self.tree("critics", like, seed)

    def row(self, seed: int) -> int:
        """Where a seed stands in the arrays."""
        if seed not in self.seeds:
            raise InputError(f"seed {seed} is not one of the exported seeds: {_listed(self.seeds)}")
        return self.seeds.index(seed)

    @property
    def which(self) -> str:
        """The networks as they were in the end, at their best, or at the oracle's best."""
        return self.about["which"]

    @property
    def steps(self) -> tuple[int, ...]:
        """The step of the run at which each seed's networks were taken."""
        return tuple(self.about["step"])

    @property
    def digest(self) -> str:
        """Of names, types, shapes and contents of all arrays, as a number in hexadecimal."""
        return _digest(self.arrays)

    def tree(self, prefix: str, like: Any, seed: int, is_partial: bool = False) -> Any:
        """The arrays of a seed under a prefix, as the tree `like` and in its types.

        If `is_partial`, what was not exported, or not whole, is None; else it is refused.
        """
        row = self.row(seed)

        def fill(path: Any, leaf: Any) -> jax.Array | None:
            name = prefix + jax.tree_util.keystr(path)
            is_first_only = f".{name}".startswith(REFERENCE_ONLY)
            if is_partial and (is_first_only or name not in self.arrays):
                return None
            if name not in self.arrays:
                raise InputError(f"nothing was exported under the name {name}")
            found, fits = self.arrays[name], (len(self.seeds), *leaf.shape)
            if is_first_only:
                fits = (*fits[:1], 1, *fits[2:])
            if found.shape != fits:
                raise InputError(f"{name} is of shape {list(found.shape)}, not {list(fits)}")
            return jnp.asarray(found[row].astype(leaf.dtype))

        return jax.tree_util.tree_map_with_path(fill, like)


def export(
    folder: str | Path,
    which: str = "last",
    seeds: tuple[int, ...] | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> bytes:
    """The file's content, from a run's newest checkpoint; the run may be going on meanwhile.

    `which` is `last`, `best` (by coverage) or `oracle` (by the task's score); `seeds` are by default
    all of the run's. Write the bytes to a file that ends in .npz: `load`, `evaluate` and `train` read it.
    `say` is told of newer checkpoints that cannot be used.
    """
    return to_bytes(take(open_run(files.place(folder)), which, seeds, say))


def take(
    run: Run,
    which: str = "last",
    seeds: tuple[int, ...] | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Exported:
    """What the file of a run would hold, weights in half precision as there."""
    check_choice("which", which, WHICH)
    config, all_seeds = run.config, run.given_seeds
    if which == "best" and config.is_free:
        says = "which takes last, or oracle for the networks at the best task score"
        raise InputError(
            f"the best networks are those at the best coverage, which needs a grid: {says}"
        )
    seeds = all_seeds if seeds is None else seeds
    for seed in seeds:
        if seed not in all_seeds:
            raise InputError(f"seed {seed} is not one of the run's seeds: {_listed(all_seeds)}")
    rows = [all_seeds.index(seed) for seed in seeds]
    checkpoint = run.checkpoint
    for reason in checkpoint.damaged:
        say(f"a newer checkpoint cannot be used ({reason}): this is step {checkpoint.clock:,}")
    try:
        arrays, peak = _collect(checkpoint.state, which, rows)
    except npz.NpzError as error:
        raise InputError(f"{checkpoint.state} cannot be read: {error}") from error
    for seed, mean in zip(seeds, peak.get("mean", ()), strict=bool(peak)):
        if not np.isfinite(mean):
            raise InputError(
                f"seed {seed} has no best networks yet: "
                "they are first kept at the end of a window, after 20 episodes"
            )
    about = {
        "format": FORMAT,
        "which": which,
        "seeds": list(seeds),
        "step": peak.get("step", np.full(len(seeds), checkpoint.clock)).tolist(),
        **({"mean": peak["mean"].tolist()} if peak else {}),
        "reward_step": checkpoint.clock,
        "run": checkpoint.about.get("provenance", {}),
    }
    return Exported(config, all_seeds, seeds, about, arrays)


def find(
    path: str | Path,
    which: str | None = None,
    seeds: tuple[int, ...] | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Exported:
    """What a run's folder would export, or what an exported file holds, of some seeds or all.

    `which` is by default the last of a folder, and whatever a file has.
    """
    if which is not None:
        check_choice("which", which, WHICH)
    path = files.place(path)
    try:
        if not path.exists():
            raise InputError(f"{path} is neither a run's folder nor an exported file")
        is_folder = path.is_dir()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    if is_folder:
        return take(open_run(path), which or "last", seeds, say)
    found = load(path)
    if which not in (None, found.which):
        raise InputError(f"{path} has other networks: primax export --which {which} writes those")
    for seed in seeds or ():
        found.row(seed)
    return found


def only_critics(found: Exported, seeds: tuple[int, ...]) -> Exported:
    """The control heads of some seeds, without the reward."""
    rows = [found.row(seed) for seed in seeds]
    arrays = {n: array[rows] for n, array in found.arrays.items() if n.startswith("critics.")}
    about = {
        name: [value[row] for row in rows] if isinstance(value, list) else value
        for name, value in found.about.items()
    }
    return Exported(found.config, found.all_seeds, seeds, about, arrays)


def to_bytes(made: Exported) -> bytes:
    """The content of a file that `load` reads."""
    about = made.about | {"digest": made.digest}
    texts = {"config": as_json(made.config, made.all_seeds), "about": about}
    whole = made.arrays | {name: _text(content) for name, content in texts.items()}
    return npz.to_bytes(whole.items(), is_compressed=True)


def _collect(
    state: Path, which: str, rows: list[int]
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """What is exported of a state, and when and how good it was where that is kept."""
    nets_at = WHICH[which] if which == "last" else f"{WHICH[which]}.online"
    named = {f"{WHICH[which]}.{name}": name for name in ("mean", "step") if which != "last"}
    has_window = any(name.startswith(FROZEN[0]) for name in npz.headers(state))

    def is_wanted(name: str) -> bool:
        if name.startswith(".reward"):
            return name.startswith(FROZEN) if has_window else "optimiser" not in name
        return name.startswith((f"{nets_at}.", ".moments.")) or name in named

    arrays, peak = {}, {}
    for name, array in npz.read(state, is_wanted):
        if name in named:
            peak[named[name]] = array[rows]
        elif name.startswith(nets_at):
            arrays["critics" + name.removeprefix(nets_at)] = _small(name, array[rows])
        else:
            arrays[name.removeprefix(".")] = _small(name, array[rows])
    return arrays, peak


def _small(name: str, array: np.ndarray) -> np.ndarray:
    """Weights in half precision where it can hold them; of some ensembles the first head."""
    if name.startswith(REFERENCE_ONLY):
        array = array[:, :1]
    if not name.endswith((".weight", ".bias")) or np.abs(array).max() > np.finfo(np.float16).max:
        return array
    return array.astype(np.float16)


def _listed(seeds: tuple[int, ...]) -> str:
    return ", ".join(map(str, seeds))


def _text(content: dict[str, Any]) -> np.ndarray:
    return np.frombuffer(json.dumps(content, sort_keys=True).encode(), np.uint8)


def _digest(arrays: dict[str, np.ndarray]) -> str:
    """Of names, types, shapes and contents."""
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def load(path: str | Path | bytes, name: str = "") -> Exported:
    """Reads an exported file, or its bytes under a name; a damaged one is refused in one line."""
    source = path if isinstance(path, bytes) else files.place(path)
    path = name or path
    try:
        arrays = dict(npz.read(source))
    except npz.NpzError as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    try:
        config, about = (files.from_json(arrays.pop(n).tobytes()) for n in ("config", "about"))
        seeds, written, digest = tuple(about["seeds"]), about["format"], about["digest"]
        check_seeds(seeds)
        steps = [about["reward_step"], *about["step"]]
        if any(type(step) is not int or not 0 <= step < FURTHEST for step in steps):
            raise ValueError("steps that can be")
        if about["which"] not in list(WHICH) or len(about["step"]) != len(seeds):
            raise ValueError("which, or a step for each seed")
    except (KeyError, ValueError, TypeError) as error:
        raise InputError(f"{path} was not written by primax export: no {error}") from error
    if written != FORMAT:
        raise InputError(f"{path} has format {written!r}; this version reads {FORMAT}")
    if digest != _digest(arrays):
        raise InputError(f"{path} is damaged: its arrays are not those that were written")
    try:
        return Exported(*from_json(config), seeds, about, arrays)
    except (KeyError, ValueError, TypeError) as error:
        raise InputError(
            f"{path} has a configuration that this version cannot read: {error}"
        ) from error
