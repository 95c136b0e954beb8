"""Runs are named by what sets them apart."""

import csv
import json

import numpy as np
import pytest
from test_paper_case import opened, write_run

from primax.cli import main
from primax.errors import InputError
from primax.paper.experiments import CELLS
from primax.runs.naming import name_runs


def named(tmp_path, *cells: str, episodes: int = 40) -> list:
    """Names of runs whose folders say nothing."""
    scores = np.zeros((2, episodes))
    paths = [write_run(tmp_path / f"run{i}", CELLS[cell], scores) for i, cell in enumerate(cells)]
    return name_runs([opened(path) for path in paths])


def test_by_method_and_by_settings_that_differ(tmp_path):
    """All have fewer steps than the paper's, which sets none of them apart."""
    names = named(tmp_path, "prime_maze", "prime_no_gate_maze", "rnd_gamma_maze", "rnd_maze")
    assert [name.text for name in names] == [
        "prime",
        "prime reward.gate_weight=0",
        "rnd critics.gamma=0.9",
        "rnd",
    ]
    assert [name.label for name in names] == ["PRIME", "PRIME, α = 0", "RND, γ = 0.9", "RND"]


def test_a_symbol_stands_for_all_its_fields_or_for_none(tmp_path):
    names = named(tmp_path, "prime_k1_maze", "prime_k1_statistics_maze", "prime_relu_maze")
    assert [name.label for name in names] == [
        "PRIME, K = 1",
        "PRIME, reward.heads = 1",
        "PRIME, activation = relu",
    ]
    assert names[0].text == "prime reward.heads=1 critics.heads=1"


def test_by_world_where_there_are_several_and_by_folder_where_nothing_differs(tmp_path):
    names = named(tmp_path, "task_maze", "task_butterflies", "task_maze")
    assert [name.text for name in names] == [
        "task maze (run0)",
        "task butterflies",
        "task maze (run2)",
    ]
    assert [name.label for name in names][:2] == ["Ext-DQN (run0)", "Ext-DQN"]


def test_a_method_that_is_not_known_is_compared_with_the_first_of_its_kind(tmp_path):
    runs = []
    for i, weight in enumerate((0.5, 0.25)):
        path = write_run(tmp_path / f"run{i}", CELLS["prime_maze"], np.zeros((2, 40)))
        content = json.loads((path / "config.json").read_text())
        content["method"], content["reward"]["gate_weight"] = "strange", weight
        (path / "config.json").write_text(json.dumps(content))
        runs.append(opened(path))
    names = name_runs(runs)
    assert [name.text for name in names] == ["strange", "strange reward.gate_weight=0.25"]
    assert names[1].label == "strange, reward.gate_weight = 0.25"


def test_a_run_given_twice_is_refused(tmp_path):
    run = opened(write_run(tmp_path / "run", CELLS["task_maze"], np.zeros((2, 40))))
    with pytest.raises(InputError, match="run is given twice"):
        name_runs([run, run])


def test_scores_as_shares_of_an_experts(tmp_path, capsys):
    """Every episode of seed 0 pays 1 and of seed 1 pays 3; the expert's mean is 4."""
    scores = {"run": [1.0, 3.0], "expert": [3.0, 5.0], "nothing": [0.0, 0.0]}
    for name, each in scores.items():
        write_run(tmp_path / name, CELLS["task_butterflies"], np.array(each)[:, None] * np.ones(40))
    write_run(tmp_path / "maze", CELLS["task_maze"], np.ones((2, 40)))
    args = ["stats", str(tmp_path / "run"), "--measure", "average", "--format", "csv", "--expert"]
    assert main([*args, str(tmp_path / "expert")]) == 0
    row = next(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert float(row["mean"]) == 0.5
    for name, says in (("maze", "is a run in maze"), ("nothing", "has a mean of 0")):
        assert main([*args, str(tmp_path / name)]) == 2
        assert says in capsys.readouterr().err
