"""How true estimated counts are: true keys are those of the world, and measures are worked by hand."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import keys

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


@pytest.mark.slow
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
