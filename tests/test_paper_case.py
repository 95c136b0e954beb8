"""Run folders with known content, for the tests of the paper's tables and figures."""

import gzip
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from primax.errors import InputError
from primax.paper import references
from primax.paper.experiments import CELLS, Cell
from primax.presets import configure
from primax.runs.config_json import as_json
from primax.runs.measures import measure, rolling
from primax.runs.read import Run, Unusable, find_run
from primax.runs.tables import csv_rows
from primax.worlds.tally import Outcome

HORIZON = 100


def write_run(
    folder: Path,
    cell: Cell,
    scores: np.ndarray,
    windows: Mapping[str, np.ndarray] | None = None,
    is_packed: bool = False,
    **columns: np.ndarray,
) -> Path:
    """A finished run's folder: scores [seed, episode], windows' columns [seed, window].

    Where there are fewer windows than a run has, each is written as many times over.
    """
    seeds, episodes = scores.shape
    steps = episodes * HORIZON
    method = cell.variant.method if cell.variant.is_available else "task"
    settings = cell.variant.settings if cell.variant.is_available else {}
    config = configure(method, cell.world, "paper", {**settings, "steps": str(steps)})
    content = as_json(config, tuple(range(seeds))) | {"method": cell.variant.method}
    every = content["window"]
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(content))
    (folder / "manifest.json").write_text(json.dumps({"steps": steps, "finished": "now"}))
    rows = {"score": scores, "reach": scores > 0, "coverage": 0.5 + 0 * scores, "distance": scores}
    windows = dict(windows or {"loss": np.ones((seeds, 10))})
    num = next(iter(windows.values())).shape[1]
    fine = next(k for k in range(1, steps) if steps % (num * k) == 0 and steps <= num * k * every)
    windows = {name: np.repeat(values, fine, axis=1) for name, values in windows.items()}
    tables = {"episodes.csv": rows | columns, "windows.csv": windows}
    for name, found in tables.items():
        raw = csv_rows(_table(steps, found), True)
        path = folder / (f"{name}.gz" if is_packed else name)
        path.write_bytes(gzip.compress(raw) if is_packed else raw)
    return folder


def _table(steps: int, columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Long, in the order a run writes: window by window, seed by seed."""
    seeds, num = next(iter(columns.values())).shape
    ends = (1 + np.arange(num)) * steps // num
    seed, step = np.meshgrid(np.arange(seeds), ends)
    table = {"seed": seed, "episode": step // HORIZON - 1, "step": step}
    table |= {name: values.T for name, values in columns.items()}
    return {name: np.ascontiguousarray(values).ravel() for name, values in table.items()}


def plausible(cell: Cell, episodes: int = 200, seeds: int = 3) -> tuple[np.ndarray, dict, dict]:
    """Scores, windows and columns that look like a run's."""
    rng = np.random.default_rng(len(cell.name))
    time = np.linspace(0, 1, episodes)
    level = {"prime": 4.0, "rnd": 3.4, "smirl": 2.7, "disagreement": 1.8, "task": 5.4}
    target = level.get(cell.variant.name, 3.0 + 0.1 * len(cell.variant.name))
    rise = 2.3 + (target - 2.3) * np.minimum(1, 3 * time)
    if cell.world == "maze":
        rise = np.exp(-((time - 0.15) ** 2) / 0.01) if cell.variant.method != "task" else time**0.3
        scores = (rng.random((seeds, episodes)) < rise).astype(np.float32)
    else:
        scores = np.clip(np.round(rise + rng.normal(0, 1, (seeds, episodes))), 0, 6)
    late = np.linspace(0.02, 1, 100)

    def fade(first: float, last: float) -> np.ndarray:
        noise = rng.lognormal(0, 0.1, (seeds, len(late)))
        return first * (last / first) ** np.minimum(1, 2 * late) * noise

    windows = {
        "v_count": fade(5e-2, 6e-3),
        "v_lotv": fade(6e-4, 5e-7),
        "v_ale": fade(1e-3, 2.3e-3 if cell.world == "butterflies" else 2e-5),
        "v_epi": fade(5e-2, 6e-3),
        "y_abs": fade(2.0, 6.7),
        "y_abs_max": fade(2.0, 12.0),
        "q_taken_abs_max": fade(1.0, 16.0),
        "clamped": np.full((seeds, 100), 0.6),
        "no_data": np.full((seeds, 100), 0.1),
        "clamped_batch": np.full((seeds, 100), 0.2),
        "mutual_information": fade(0.1, 1.0),
        "greedy_entropy": fade(1.0, 1e-3),
        "pi_ref_from_u": fade(0.1, 0.03),
        "pi_act_from_ref": fade(1.0, 1.5),
        "reward_jump": fade(0.5, 0.01),
    }
    windows["reward_jump"][:, 0] = np.nan
    columns = {
        "coverage": 0.35 - 0.06 * time + rng.normal(0, 0.02, (seeds, episodes)),
        "distance": 4.0 + rng.normal(0, 0.3, (seeds, episodes)),
    }
    columns["distance"][0, 3] = np.nan
    return scores.astype(np.float32), windows, columns


def write_all_cells(home: Path, episodes: int = 200, seeds: int = 3) -> Path:
    """A folder for every cell; a third of them gzipped."""
    for i, cell in enumerate(CELLS.values()):
        scores, windows, columns = plausible(cell, episodes, seeds)
        write_run(home / cell.name, cell, scores, windows, i % 3 == 0, **columns)
    return home


def opened(folder: Path) -> Run:
    run = find_run(folder)
    if isinstance(run, Unusable):
        raise InputError(run.reason)
    return run


def whole_scores(values: dict[str, np.ndarray], episodes: int = 200) -> np.ndarray:
    """Whole scores whose best rolling-20 is each seed's peak, and whose mean its average if given."""
    rows = []
    for seed, peak in enumerate(values["peak"]):
        best = _spread(round(20 * peak), 20)
        total = values["average"][seed] * episodes if "average" in values else best.sum()
        rest = _spread(round(total - best.sum()), episodes - 20)
        rows.append(np.concatenate([rest[:50], best, rest[50:]]))
    scores = np.array(rows)
    np.testing.assert_allclose(rolling(scores).max(axis=1), values["peak"])
    return scores


def _spread(total: int, num: int) -> np.ndarray:
    """Whole numbers that add up to `total`, as even as can be."""
    return np.diff(total * np.arange(num + 1) // num).astype(float)


@contextmanager
def without_simulation() -> Iterator[None]:
    """Scripted policies score at once, and made-up numbers: compiling them would take a minute."""

    def outcomes(world: object, act: object, seed: int, episodes: int) -> Outcome:
        made_up = jnp.linspace(0, 1, episodes)
        return Outcome(2 + made_up, 0.3 + 0 * made_up, 4 - made_up)

    real, references.outcomes = references.outcomes, outcomes
    references._reference.cache_clear()
    try:
        yield
    finally:
        references.outcomes = real
        references._reference.cache_clear()


# --- measures and folders ----------------------------------------------------------------------

TASK = CELLS["task_butterflies"]


def small_run(tmp_path: Path) -> Run:
    """Two seeds, 100 episodes, 20 windows of known content."""
    scores = np.zeros((2, 100))
    scores[0, 40:60], scores[1, 90:] = 2.0, 4.0
    coverage = np.tile(np.linspace(1, 0, 100), (2, 1))
    distance = np.full((2, 100), 3.0)
    distance[0, 80:99] = np.nan
    windows = {
        "clamped": np.full((2, 20), 0.6),
        "no_data": np.tile([0.2, 0.25], (1, 1)).T @ np.ones((1, 20)),
        "v_lotv": np.tile(np.arange(20.0), (2, 1)),
    }
    folder = write_run(
        tmp_path / "run", TASK, scores, windows, False, coverage=coverage, distance=distance
    )
    return opened(folder)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("average", [0.4, 0.4]),
        ("peak", [2.0, 2.0]),
        ("last", [0.0, 2.0]),
        ("coverage_fall", [80 / 99, 80 / 99]),  # a line from 1 to 0: its ends are 80 rows apart
        ("distance_tail", [3.0, 3.0]),  # of what there is
        ("clamp_share", [0.75, 0.8]),
        ("tail:v_lotv", [17.5, 17.5]),  # 16, 17, 18, 19
        ("first:v_lotv", [0.5, 0.5]),  # 0, 1
        ("top:v_lotv", [19.0, 19.0]),
        ("late:v_lotv", [19.0, 19.0]),
        ("rolling:v_lotv", [9.5, 9.5]),  # all 20 windows
        ("peak:v_lotv", [11.0, 19.0]),  # five episodes a window: the 60th and the 100th end there
        ("score_tail", [0.0, 2.0]),
    ],
)
def test_measures_by_hand(tmp_path, name, expected):
    sample = measure(small_run(tmp_path), name)
    assert sample is not None and sample.seeds == (0, 1)
    np.testing.assert_allclose(sample.values, expected, rtol=1e-6)


def test_what_a_run_did_not_record_is_none(tmp_path):
    assert measure(small_run(tmp_path), "tail:v_ale") is None
    with pytest.raises(InputError, match="did you mean peak"):
        measure(small_run(tmp_path / "again"), "peek")
    with pytest.raises(InputError, match="did you mean tail"):
        measure(small_run(tmp_path / "third"), "tial:v_lotv")


def test_gzipped_tables_are_the_same(tmp_path):
    scores, windows, columns = plausible(TASK)
    runs = [
        opened(write_run(tmp_path / name, TASK, scores, windows, is_packed, **columns))
        for name, is_packed in (("plain", False), ("packed", True))
    ]
    for name in ("average", "peak", "tail:v_count", "distance_tail"):
        first, second = (measure(run, name) for run in runs)
        assert first is not None and second is not None
        np.testing.assert_array_equal(first.values, second.values)


def test_a_folder_says_in_a_word_why_it_has_no_run(tmp_path):
    assert find_run(tmp_path / "nowhere") == Unusable("not run")
    folder = write_run(tmp_path / "run", TASK, np.zeros((2, 40)))
    (folder / "manifest.json").write_text('{"steps": 4000}')
    assert find_run(folder) == Unusable("unfinished")
    (folder / "manifest.json").unlink()
    assert find_run(folder) == Unusable("unfinished")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("config.json", "{", "is damaged"),
        ("config.json", "[]", "it holds no fields"),
        ("config.json", '{"seeds": []}', "names no method, world or seeds"),
        ("episodes.csv", "seed,step,score\n0,100,1\n0,200", "is not the table a run writes"),
        ("episodes.csv", "seed,step,score\n0,100,x\n", "is not the table a run writes"),
        ("episodes.csv", "seed,score\n0,1\n", "it has no column step"),
        ("episodes.csv", "seed,step,score\n0,100,1\n1,100,1\n", "is not whole: 2 of 80"),
    ],
)
def test_a_broken_folder_is_refused_in_one_line(tmp_path, name, content, said):
    folder = write_run(tmp_path / "run", TASK, np.zeros((2, 40)))
    (folder / name).write_text(content)
    with pytest.raises(InputError, match=said) as error:
        measure(opened(folder), "peak")
    assert "\n" not in str(error.value) and str(folder) in str(error.value)


def test_a_table_that_is_gone_is_named(tmp_path):
    folder = write_run(tmp_path / "run", TASK, np.zeros((2, 40)))
    (folder / "episodes.csv").unlink()
    with pytest.raises(InputError, match=r"episodes\.csv is not the table"):
        measure(opened(folder), "peak")
