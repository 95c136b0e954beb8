"""How true estimated counts are: true keys are those of the world, and measures are worked by hand."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import keys
import keys_drift
import keys_image

from primax.agent import training
from primax.agent.learner import make_learner
from primax.errors import InputError
from primax.presets import configure


@pytest.mark.parametrize("world", keys.WORLDS)
def test_true_keys_are_the_worlds_own(world):
    """Of every step in the ring: derived from what is seen and paid, and as the world gave them."""
    config = configure("random", world, "smoke", {"steps": 1_000})
    learner = make_learner(config)
    program = training.compile_program(learner, (0, 1))
    *_, (state, progress) = training.windows(program)
    assert config.keys is None and progress.clock == config.replay
    for own in keys.lived(keys.reader(learner), state, progress.clock):
        true = keys.true_states(learner.world, own["cell"], own["task"])
        np.testing.assert_array_equal(true * learner.world.num_actions + own["action"], own["key"])
        assert world != "butterflies" or own["task"].sum() > 10


def test_measures_by_hand():
    """Six steps in two states of one action; a code tells one of them from a part of the other."""
    state, code = np.array([7, 7, 7, 7, 2, 2]), np.array([1, 1, 0, 0, 0, 0])
    count, estimate = keys.by_key(state, np.array([2, 2, 4, 4, 4, 4]))
    assert count.tolist() == [2, 4] and estimate.tolist() == [4, 3]
    found = keys.compared(state, code, count, estimate)
    # Three pairs of state and code, two steps each: log2 3 bits; one in three is log2 3 - 2/3.
    assert found["rank"] == -1 and found["calibration"] == (2 + 0.75) / 2
    assert found["true_given_code"] == pytest.approx(2 / 3, abs=1e-4)
    assert found["code_given_true"] == pytest.approx(2 / 3, abs=1e-4)
    assert found["codes"] == found["states"] == 2
    assert keys.compared(state, None, count, np.array([1.0, 1.0]))["rank"] is None


def test_a_picture_by_powers_of_two():
    rows = keys.pictured(np.array([1, 2, 3, 3, 2]), np.array([5.0, 1.0, 2.0, 3.0, 4.0]))
    assert [row["keys"] for row in rows] == [1, 4]
    assert [row["true"] for row in rows] == [1, 2.5]
    assert list(rows[1].values())[2:] == [1.75, 2.5, 3.25]


def _file(path: Path, kind: str) -> Path:
    """As `counts` writes it, of one seed."""
    row = {"seed": 0, "rank": 0.5, "calibration": 1.25, "states": 30}
    more = {"true_given_code": 0.1, "code_given_true": 2.0, "codes": 40}
    points = [{"window": 1, "steps": 2_000, "seeds": [row | (more if kind != "cfn" else {})]}]
    joint = [{"keys": 3, "true": 4.0, "low": 2.0, "middle": 5.0, "high": 9.0}]
    found = {"world": "maze", "kind": kind, "points": points, "joint": joint}
    path.write_text(json.dumps(found))
    return path


def test_a_table_and_a_figure_of_files(tmp_path):
    files = [_file(tmp_path / f"{kind}.json", kind) for kind in ("cfn", "place")]
    sheet = keys.table(keys.opened(files))
    assert [row[1] for row in sheet.rows] == ["place", "cfn"]
    assert sheet.rows[0][2:] == ("0.50", "1.25", "0.10", "2.00", "40 / 30")
    assert sheet.rows[1][-1] == "— / 30"
    picture = tmp_path / "keys.svg"
    keys.make(picture, (8.0, 3.0), lambda figure: keys.draw(keys.opened(files), figure))
    assert "</svg>" in picture.read_text()
    with pytest.raises(InputError, match="twice"):
        keys.opened([files[0], files[0]])


def test_a_bonus_is_the_root_of_true_over_estimated_count():
    """Estimates 4 and 1/4 times too high: bonuses half and twice what they should be. None of no count."""
    seeds = [{"calibration": x} for x in (4.0, 0.25, 0.0)]
    assert keys.bonus({"seeds": seeds}) == (0.5 + 2.0) / 2
    point, never = {"steps": 2_000, "seeds": seeds}, {"steps": 11_000, "seeds": seeds[2:]}
    files = {("maze", "place"): {"points": [point]}, ("maze", "cfn"): {"points": [point, never]}}
    sheet = keys.bonuses(files)
    assert sheet.columns == ("world", "keys", "2k", "11k")
    assert sheet.rows == (("maze", "place", "1.25", "—"), ("maze", "cfn", "1.25", "—"))


def test_drift_by_hand():
    """Other names are no move; of eight rows in two states, two told apart, or all taken together."""
    old = np.array([4, 4, 4, 4, 7, 7, 7, 7])
    still = keys_drift.compared(old, np.array([9, 9, 9, 9, 1, 1, 1, 1]))
    assert list(still.values()) == [0, 0, 0, 2, 2]
    # Half of the rows are cut into halves: half a bit. Two of eight are in the smaller part.
    split = keys_drift.compared(old, np.array([9, 9, 9, 9, 1, 1, 2, 2]))
    assert list(split.values()) == [0.25, 0, 0.5, 2, 3]
    taken = keys_drift.compared(old, np.zeros(8, int))
    assert list(taken.values()) == [0.5, 1, 0, 2, 1]
    # 0 takes 6 and 1 takes 5: three rows stay. If 0 took 5, which most of its rows have, two would.
    mixed = keys_drift.compared(np.array([0, 0, 0, 1, 1]), np.array([5, 5, 6, 5, 5]))
    assert mixed["moved"] == pytest.approx(2 / 5)


def test_a_table_of_drift(tmp_path):
    row = {"moved": 0.25, "old_given_new": 1.0, "new_given_old": 0.5}
    points = [{"steps": 2_000, "seeds": [row, row | {"moved": 0.75}]}]
    files = [tmp_path / f"{kind}.json" for kind in ("codes", "place")]
    for path in files:
        found = {"world": "maze", "kind": path.stem, "points": points}
        path.write_text(json.dumps(found))
    place, codes = keys_drift.table(files).rows
    assert place[:4] == ("maze", "place", "0.50 (1.50)", "—") and codes[1] == "codes"


def test_the_square_of_an_image_is_where_its_block_is():
    part, block = keys_image.shots(np.random.default_rng(0), 200)
    assert part.obs[part.obs < 255].max() == 199 and (part.obs == 255).sum() == 4 * block.size
    for obs, at in zip(part.obs.reshape(-1, 20, 20), block.reshape(-1), strict=True):
        rows, cols = np.nonzero(obs == 255)
        assert (rows // 2 * 10 + cols // 2 == at).all()
    table = keys_image.table({"noise": [{"below": 100, "shares": [0.95, 0.9, 1.0]}]})
    assert table.rows == (("100", "2 of 3", "0.95, 0.90, 1.00"),)


@pytest.mark.long
def test_drift_at_smoke_scale(tmp_path, monkeypatch):
    """At the renewals after 1, 2, 3, 4 and 5 windows of 500, and at no other time."""
    out = tmp_path / "found.json"
    words = ["maze", "place", "--preset", "smoke", "--seeds", "0-0", "--steps", "4000"]
    monkeypatch.setattr(sys, "argv", ["keys_drift.py", *words, "--out", str(out)])
    monkeypatch.setenv("XLA_FLAGS", "")
    keys_drift.main()
    points = json.loads(out.read_text())["points"]
    assert [point["steps"] for point in points] == [1_000, 1_500, 2_000, 2_500, 3_000]
    assert any(row["moved"] > 0 for point in points for row in point["seeds"])


@pytest.mark.long
@pytest.mark.parametrize("kind", ["place", "cfn"])
def test_counts_at_smoke_scale(tmp_path, monkeypatch, kind):
    out = tmp_path / "found.json"
    words = ["counts", "maze", kind, "--preset", "smoke", "--seeds", "0-0", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", ["keys.py", *words])
    monkeypatch.setenv("XLA_FLAGS", "")
    keys.main()
    found = json.loads(out.read_text())
    assert [point["steps"] for point in found["points"]] == [1_000]
    assert found["about"]["command"].startswith("python keys.py counts maze")
    assert sum(row["keys"] for row in found["joint"]) > 10
