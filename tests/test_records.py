"""Maps and recorded episodes: readable without this package, and true to the run."""

import base64
import io
import json
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

from primax.api import train
from primax.methods import build
from primax.presets import configure
from primax.runs import records
from primax.runs.read import open_run
from primax.runs.tables import read_table


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run whose ring has been overwritten and whose episodes do not fit its windows."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    settings = {
        "steps": "2_400",
        "window": "160",
        "warmup": "240",
        "recent": "160",
        "replay": "400",
        "critics.sync_every": "40",
        "world.horizon": "200",
    }
    train("task", "butterflies", "3,5", "smoke", settings, out=folder)
    return folder


def test_windows_are_chosen_by_the_configuration_alone():
    even = configure("task", "maze", "smoke", {"steps": "10_500"})
    assert records.recorded(even) == {
        clock: clock // 100 - 1 for clock in range(1_500, 11_000, 1_000)
    }
    few = configure("task", "maze", "smoke")
    assert records.recorded(few) == {1_000: 9, 1_500: 14, 2_000: 19}
    long = configure("task", "maze", "smoke", {"world.horizon": "800", "replay": "1_600"})
    assert records.recorded(long) == {1_000: 0, 2_000: 1}, "the same episode only once"
    paper = configure("prime", "butterflies")
    assert len(records.recorded(paper)) == 10 and max(records.recorded(paper)) == paper.total_steps


@pytest.mark.slow
def test_recorded_episodes_are_those_of_the_tables(folder):
    """Scores, cells and actions agree with each other and with what the world would do."""
    table = read_table(folder / "episodes.csv")
    names = zip(table["seed"].astype(int), table["episode"].astype(int), strict=True)
    scores = dict(zip(names, table["score"], strict=True))
    lines = [json.loads(line) for line in (folder / "replays.jsonl").read_text().splitlines()]
    config, seeds = open_run(folder).config, open_run(folder).given_seeds
    chosen = records.recorded(config)
    assert [(line["seed"], line["episode"]) for line in lines] == [
        (seed, episode) for episode in chosen.values() for seed in seeds
    ]
    world = build(config)[0]
    for line in lines:
        assert line["score"] == pytest.approx(scores[line["seed"], line["episode"]])
        assert line["step"] == 200 * (line["episode"] + 1)
        bits = np.frombuffer(base64.b64decode(line["observations"]), np.uint8).reshape(201, -1)
        count = int(np.prod(line["planes"]))
        planes = np.unpackbits(bits, axis=1, count=count).reshape(201, *line["planes"])
        cells = planes[:, 0].reshape(201, -1).argmax(axis=1)
        actions, keys = np.array([int(c) for c in line["actions"]]), np.array(line["keys"])
        np.testing.assert_array_equal(keys % 5, actions)
        levels = world.num_keys // planes[0, 0].size
        np.testing.assert_array_equal(keys // 5 // levels, cells[:-1])
        np.testing.assert_array_equal(np.asarray(world.moves)[cells[:-1], actions], cells[1:])


@pytest.mark.slow
def test_maps_are_plain_arrays(folder):
    with np.load(folder / "maps.npz") as maps:
        assert sorted(maps) == ["seed", "step", "visits"]
        assert maps["visits"].dtype == np.int32 and maps["visits"].shape == (15, 2, 6, 6)
        assert maps["seed"].tolist() == [3, 5]
        assert maps["step"].tolist() == list(range(240, 2_500, 160))
        totals = maps["visits"].sum(axis=(2, 3))
    assert (totals[0] == 240).all() and (totals[1:] == 160).all()
    assert not (folder / "maps.raw").exists()


def test_maps_pile_up_and_are_packed(tmp_path):
    """The warm-up draws visits only; while the run lasts, numpy alone reads what there is."""
    draw = np.random.default_rng(0)
    windows = [{"visits": draw.integers(0, 9, (2, 3, 4))} for _ in range(4)]
    for window in windows[1:]:
        window["r_int"] = draw.normal(size=(2, 3, 4)).astype(np.float32)
        window["r_int"][0, 0] = np.nan
    path = tmp_path / "maps.raw"
    for i, window in enumerate(windows):
        path.write_bytes(
            (path.read_bytes() if i else b"") + records.map_rows((7, 8), 100 * i, window)
        )
    with path.open("rb") as file:
        rows = [np.load(file) for _ in windows]
    assert rows[0].dtype.names == ("seed", "step", "visits")
    np.testing.assert_array_equal(rows[2]["r_int"], windows[2]["r_int"])
    packed = records.packed_maps(path)
    assert packed == records.packed_maps(path)
    with np.load(io.BytesIO(packed)) as maps:
        assert maps["step"].tolist() == [0, 100, 200, 300] and maps["seed"].tolist() == [7, 8]
        assert (maps["visits"].dtype, maps["r_int"].dtype) == (np.int32, np.float32)
        np.testing.assert_array_equal(maps["visits"], [window["visits"] for window in windows])
        np.testing.assert_array_equal(maps["r_int"][1:], [w["r_int"] for w in windows[1:]])
        assert np.isnan(maps["r_int"][0]).all()


def test_a_run_of_the_papers_size_records_about_a_megabyte():
    config = configure("prime", "butterflies")
    clock, slots = config.total_steps, config.replay // 100 * 101
    draw = np.random.default_rng(0)
    rows = SimpleNamespace(
        action=jnp.zeros((15, config.replay), jnp.uint8),
        task=jnp.zeros((15, config.replay)),
        key=jnp.full((15, config.replay), 3_499),
    )
    bits = jnp.asarray(draw.integers(0, 256, (15, slots, 50), dtype=np.uint8))
    ring = SimpleNamespace(rows=rows, slots=SimpleNamespace(bits=bits))
    obs = jnp.zeros((15, 4, 10, 10), jnp.uint8)
    state = SimpleNamespace(obs=obs, ring=ring, episodes=None)
    size = 10 * len(records.replay_lines(config, tuple(range(15)), clock, state))
    assert 1.0e6 < size < 1.2e6
