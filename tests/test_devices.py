"""One run over several devices: the numbers of its seeds alone, and resumed there and elsewhere."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import jax
import pytest
from conftest import QUICK_CHILDREN

from primax.agent import devices, memory
from primax.agent.devices import num_devices
from primax.agent.learner import make_learner
from primax.agent.memory import check_room
from primax.errors import InputError
from primax.presets import configure
from primax.runs import checkpoints, disk
from primax.runs.proceed import Job, devices_for, same_machine
from primax.runs.provenance import provenance
from primax.runs.read import open_run

PUBLISHED = Path(__file__).parent.parent / "results" / "paper" / "runs"
TRAIN = ["train", "task", "maze", "--preset", "smoke", "--seeds", "4", "--save-every", "0"]


def primax(here: int, *args: object) -> subprocess.Popen:
    """A command on a machine with so many devices."""
    many = f"--xla_force_host_platform_device_count={here}" if here > 1 else ""
    return subprocess.Popen(
        [sys.executable, "-m", "primax", *map(str, args)],
        env=os.environ | QUICK_CHILDREN | {"XLA_FLAGS": many},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def told(here: int, *args: object, status: int = 0) -> str:
    process = primax(here, *args)
    out, err = process.communicate()
    assert process.returncode == status, err
    return out + err


def killed(here: int, folder: Path, *args: object) -> Path:
    """A run that is killed in the middle."""
    process = primax(here, *args, "--out", folder)
    while not (folder / "checkpoints" / "000001000").exists():
        assert process.poll() is None
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "seeds", "on"),
    [("prime", 4, 2), pytest.param("place", 4, 2, marks=pytest.mark.long), ("task", 8, 8)],
)
def test_a_seeds_numbers_are_those_of_its_devices_seeds_alone(case, seeds, on):
    """8 seeds on 4 devices are seeds 0 and 1, 2 and 3 and so on, each pair alone on one device.

    Every table, map, replay and leaf of the last state; and nothing passes between devices. It is so
    too from the middle on, where a run that was begun on another number of devices goes on.
    """
    script = Path(__file__).with_name("devices_case.py")
    flags = "--xla_force_host_platform_device_count=8"
    done = subprocess.run(
        [sys.executable, script, case, str(seeds), str(on)],
        env={**os.environ, "XLA_FLAGS": flags},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["differs"] == [] and found["collectives"] == []
    assert found["moved"] == ({"from one": [], "to one": []} if seeds == on else {})
    assert found["programs"] == 1, "each device has the program that one device has"
    maps = {"map of visits", "map of v_epi"} if case == "prime" else set()
    assert {"replays", "state.ring.rows.action", *maps} <= {*found["compared"]}
    assert found["renews"] == (case == "place")


@pytest.mark.slow
def test_killed_it_goes_on_with_as_many_devices_and_with_others_only_if_told(tmp_path):
    told(2, *TRAIN, "--devices", "2", "--out", tmp_path / "whole")
    folder = killed(2, tmp_path / "killed", *TRAIN, "--devices", "2")
    said = told(1, "resume", folder, status=2)
    assert "the run was started with the compiler flag" in said  # which makes virtual devices
    said = told(2, "resume", folder, "--devices", "1", status=2)
    assert "devices was 2, is now 1: 2 seeds a device are now 4, which rounds differently" in said
    assert "going on from step 1," in told(2, "resume", folder)
    run, whole = open_run(folder), open_run(tmp_path / "whole")
    assert run.devices == whole.devices == 2
    for name in ("config.json", *disk.FINAL):
        assert (folder / name).read_bytes() == (whole.path / name).read_bytes(), name
    state = Path("checkpoints", "000002000", "state.npz")
    assert (folder / state).read_bytes() == (whole.path / state).read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("begun", "then", "widths"),
    [
        (2, 1, "2 seeds a device are now 4"),
        pytest.param(1, 2, "4 seeds a device are now 2", marks=pytest.mark.long),
    ],
)
def test_killed_it_goes_on_with_others_only_if_told(tmp_path, begun, then, widths):
    """What it had until its checkpoint stays. What comes then equals what is said above, and the
    bytes of no run that was left alone."""
    folder = killed(2, tmp_path / "run", *TRAIN, "--devices", begun)
    assert open_run(folder).devices == begun
    clock = checkpoints.newest_step(folder)
    had = {name: rows(folder, name, clock) for name in ("episodes", "windows")}
    said = told(2, "resume", folder, "--devices", then, status=2)
    assert f"devices was {begun}, is now {then}: {widths}" in said and "--anyway" in said
    assert f"going on from step {clock:,}" in told(
        2, "resume", folder, "--devices", then, "--anyway"
    )
    run = open_run(folder)
    assert run.is_finished and run.devices == then and len(run.episodes["seed"]) == 4 * 20
    assert had == {name: rows(folder, name, clock) for name in had} and all(had.values())


def rows(folder: Path, name: str, clock: int) -> list[str]:
    """Of a table, until a step."""
    header, *lines = (folder / f"{name}.csv").read_text().splitlines()
    step = header.split(",").index("step")
    return [line for line in lines if int(line.split(",")[step]) <= clock]


def test_the_number_of_devices_is_one_there_is_and_divides_the_seeds(monkeypatch):
    there = [SimpleNamespace(device_kind="H200") for _ in range(8)]
    monkeypatch.setattr(devices.jax, "devices", lambda: there[:6])
    assert [num_devices(given, 12) for given in (1, "3", " ALL ", 6)] == [1, 3, 6, 6]
    with pytest.raises(InputError, match=r"--devices 8: there are 6 here, .*H200"):
        num_devices("8", 8, "--devices")
    with pytest.raises(
        InputError, match=r"15 seeds .* among 6 devices: here devices can be 1, 3, 5;"
    ):
        num_devices("all", 15)
    with pytest.raises(InputError, match="or take 18 seeds"):
        num_devices("all", 15)
    monkeypatch.setattr(devices.jax, "devices", lambda: [*there, SimpleNamespace(device_kind="T4")])
    with pytest.raises(InputError, match="devices 9: they are of several kinds"):
        num_devices("all", 9)
    for odd in ("0", "-1", "x", "", "1.5", True, "9" * 5_000):
        with pytest.raises(InputError, match="takes a number from 1 on, or all, got"):
            num_devices(odd, 4)


def test_a_run_goes_on_with_as_many_as_it_had(monkeypatch):
    monkeypatch.setattr(devices.jax, "devices", lambda: [SimpleNamespace(device_kind="H200")] * 2)
    assert [devices_for(None, made, 4) for made in ({}, {"devices": 2}, {"devices": "x"})] == [
        1,
        2,
        1,
    ]
    assert devices_for("1", {"devices": 2}, 4) == 1
    with pytest.raises(
        InputError, match=r"this run has devices 4: there are 2 here, .*another number"
    ):
        devices_for(None, {"devices": 4}, 4)


def test_a_run_that_does_not_say_was_made_on_one_device(tmp_path):
    run = open_run(PUBLISHED / "prime_maze")
    assert "devices" not in run.manifest and run.devices == 1
    job = Job(tmp_path, make_learner(configure("task", "maze", "smoke")), (0, 1, 2, 3))
    same_machine(provenance(), job, anyway=False)
    with pytest.raises(InputError, match="devices was 1, is now 2: 4 seeds a device are now 2"):
        same_machine(provenance(), replace(job, devices=2), anyway=False)
    same_machine(provenance(), replace(job, devices=2), anyway=True)


def test_memory_is_counted_for_each_device_but_a_cpus_is_one(monkeypatch):
    learner = make_learner(configure("task", "maze", "smoke"))
    a_seed = memory.TIMES * memory.seed_bytes(learner)
    monkeypatch.setattr(memory, "memory", lambda: (int(4.5 * a_seed), 0))
    with pytest.raises(InputError, match="8 seeds need"):
        check_room(learner, 8, 2)
    monkeypatch.setattr(memory.jax, "default_backend", lambda: "gpu")
    check_room(learner, 8, 2)
    with pytest.raises(InputError, match=r"8 seeds on each of 2 devices need .* for about 4"):
        check_room(learner, 16, 2)


def test_more_devices_than_there_are_are_refused_before_anything_is_written(tmp_path, capsys):
    from primax.cli import main

    out = tmp_path / "run"
    assert main([*TRAIN, "--devices", "2", "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert f"--devices 2: there is 1 here, {jax.devices()[0]}" in said and said.count("\n") == 1
    assert not out.exists()
