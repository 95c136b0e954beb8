"""`primax sweep --launcher slurm | dask`: submitit's local executor and a real Dask cluster.

What the cells' processes do is played; that they are begun, found, stopped and gone on with is not.
"""

import contextlib
import os
import signal
import sys
import threading
import uuid
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from test_sweep import Stage, wait_for, written

from primax.cli import main
from primax.errors import InputError, RunError, StoppedError
from primax.sweep import dask as by_dask
from primax.sweep import remote, slurm
from primax.sweep.plan import read_plan
from primax.sweep.slurm_config import SlurmConfig, configured

COMMAND = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from primax.sweep import launch, work
launch.POLL_S = 0.01
if sys.argv[1] == "sweep":
    work.PRIMAX = (sys.executable, {fake!r})
    from primax.cli import main
    sys.exit(main(sys.argv[1:]))
"""


wait_long = partial(wait_for, seconds=200.0)
"""A cell's process loads all of Primax, and others may be at work."""


class Far(Stage):
    """A stage whose cells are handed over."""

    def sweep(self, *options: str) -> remote.Sweep:
        cells = {cell.name: cell for cell in self.plan.cells}
        return remote.Sweep(self.home, cells, list(options), say=self.said.append)


@pytest.fixture
def far(tmp_path, monkeypatch):
    """`python -m primax sweep OUT --only CELL` for real, in which training is played."""
    path = tmp_path / "primax_for_tests.py"
    fake, tests = str(tmp_path / "fake.py"), str(Path(__file__).parent)
    path.write_text(COMMAND.format(fake=fake, tests=tests), encoding="utf-8")
    monkeypatch.setattr(remote, "PRIMAX", (sys.executable, str(path)))
    monkeypatch.setattr(remote, "EVERY_S", 0.02)
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    return Far(tmp_path)


@pytest.fixture
def submitit_local(far, monkeypatch):
    submitit = pytest.importorskip("submitit")
    monkeypatch.setenv("PYTHONWARNINGS", "ignore")

    def launcher(*options: str):
        made = submitit.LocalExecutor(folder=far.home.path / slurm.JOBS)
        made.update_parameters(timeout_min=5, signal_delay_s=30)
        return partial(slurm.slurm, executor=made, sweep=far.sweep(*options))

    return launcher


@pytest.fixture(scope="module")
def cluster():
    """One for all tests: two workers of one thread, each a process with a nanny."""
    distributed = pytest.importorskip("distributed")
    with (
        contextlib.closing(
            distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
            )
        ) as cluster,
    ):
        yield cluster


@pytest.fixture
def dask_local(far, cluster):
    with by_dask.client(cluster.scheduler_address) as client:
        yield lambda *options: partial(by_dask.dask, client=client, sweep=far.sweep(*options))


@pytest.fixture(params=["submitit_local", "dask_local"])
def launcher(request):
    return request.getfixturevalue(request.param)


@pytest.mark.slow
def test_cells_are_made_once_and_gone_on_with(far, launcher):
    assert sorted(far.go(launcher=launcher("--plugin", "sys")).through) == [
        "count_maze",
        "task_maze",
    ]
    assert sorted(far.order()) == ["train count_maze", "train task_maze"]
    assert far.go(launcher=launcher()).through == ["task_maze", "count_maze"]
    assert len(far.order()) == 2, "finished: nothing is run again"
    (far.home.path / "task_maze" / "manifest.json").unlink()
    assert set(far.go(launcher=launcher()).through) == {"task_maze", "count_maze"}
    assert far.order()[2:] == ["resume task_maze"]


@pytest.mark.slow
def test_failing_cells_are_named_with_their_logs_and_the_others_go_on(far, launcher):
    far.rule(count_maze="fail")
    with pytest.raises(RunError, match="1 of 2 cells failed: count_maze; their logs are in"):
        far.go(launcher=launcher())
    log = far.home.path / "logs" / "count_maze.log"
    assert f"count_maze: failed (status 1): primax: the disk is full; see {log}" in far.said
    assert far.states() == {"task_maze": "finished", "count_maze": "failed"}
    (far.home.path / "task_maze" / "manifest.json").unlink()
    far.rule(count_maze="fail", task_maze="fail")
    with pytest.raises(RunError, match="2 of 2 cells failed"):
        far.go(launcher=launcher())
    far.rule()
    assert set(far.go(launcher=launcher()).through) == {"task_maze", "count_maze"}


@pytest.mark.slow
def test_two_sweeps_at_once_make_no_cell_twice(far, launcher):
    far.rule(count_maze="wait")
    first = threading.Thread(target=far.go, kwargs={"launcher": launcher()})
    first.start()
    wait_long((far.folder / "count_maze.waits").exists)
    wait_long(lambda: far.states()["task_maze"] == "finished")
    second = far.go(launcher=launcher())
    assert second.held == ["count_maze"] and not second.failed
    (far.folder / "go").write_text("")
    first.join()
    assert sorted(far.order()) == ["train count_maze", "train task_maze"]
    assert set(far.states().values()) == {"finished"}


@pytest.mark.slow
def test_a_run_that_is_killed_is_named_and_gone_on_with(far, launcher):
    far.rule(count_maze="wait")

    def kill():
        wait_long((far.folder / "count_maze.waits").exists)
        os.kill(int((far.folder / "count_maze.pid").read_text()), signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    with pytest.raises(RunError, match="1 of 2 cells failed: count_maze"):
        far.go(launcher=launcher())
    thread.join()
    assert any(line.startswith("count_maze: killed (signal 9); see ") for line in far.said)
    far.rule()
    far.go(launcher=launcher())
    assert far.order()[-1] == "resume count_maze"


def stopped(far, launcher) -> None:
    """A sweep in a thread's sight, sent a signal while the first cell is at work."""

    def send():
        wait_long((far.folder / "count_maze.waits").exists)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=send)
    thread.start()
    with pytest.raises(StoppedError, match="stopped; the same command goes on with what is left"):
        far.go(launcher=launcher)
    thread.join()


@pytest.mark.slow
def test_asked_to_stop_dask_says_what_goes_on(far, dask_local, cluster):
    far.rule(count_maze="wait", task_maze="wait")
    stopped(far, dask_local())
    assert any(line.startswith("count_maze: goes on to its end where it is") for line in far.said)
    (far.folder / "go").write_text("")
    wait_long(lambda: far.states()["count_maze"] == "finished")
    assert far.go(launcher=dask_local()).held in ([], ["task_maze"])


@pytest.mark.long
def test_a_worker_of_dask_that_is_killed_is_replaced(far, dask_local, cluster):
    """Its process lives on with the cell's lock, so another leaves the cell to it."""
    far.rule(count_maze="wait")
    before = {worker.pid for worker in cluster.workers.values()}

    def kill():
        wait_long((far.folder / "count_maze.waits").exists)
        for pid in before:
            os.kill(pid, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    account = far.go(launcher=dask_local())
    thread.join()
    assert account.held == ["count_maze"] and account.through == ["task_maze"]
    (far.folder / "go").write_text("")
    wait_long(lambda: far.states()["count_maze"] == "finished")
    assert far.order().count("train count_maze") == 1


@pytest.mark.slow
def test_workers_of_dask_that_see_the_same_gpus_take_one_each(far, dask_local):
    gpus = [f"{name}-{uuid.uuid4()}" for name in "ab"]
    script = far.folder / "primax_for_tests.py"
    seen = f"import os\nos.environ['CUDA_VISIBLE_DEVICES'] = {','.join(gpus)!r}\n"
    seen += "os.environ.pop('JAX_PLATFORMS', None)\n"
    script.write_text(seen + script.read_text())
    far.rule(count_maze="wait", task_maze="wait")
    thread = threading.Thread(target=far.go, kwargs={"launcher": dask_local()})
    thread.start()
    for name in ("count_maze", "task_maze"):
        wait_long((far.folder / f"{name}.waits").exists)
    (far.folder / "go").write_text("")
    thread.join()
    logs = [far.home.log(cell).read_text() for cell in far.plan.cells]
    assert {log.splitlines()[-1] for log in logs} == {f"done {gpu} True" for gpu in gpus}


@pytest.mark.slow
def test_a_job_of_submitit_that_is_preempted_saves_and_its_requeue_goes_on(far, submitit_local):
    """As Slurm does it: SIGUSR2 to every process of the job, and the job once more."""
    far.rule(count_maze="wait")

    def preempt():
        wait_long((far.folder / "count_maze.waits").exists)
        far.rule()
        for pid in _job_of(int((far.folder / "count_maze.pid").read_text())):
            os.kill(pid, signal.SIGUSR2)

    thread = threading.Thread(target=preempt)
    thread.start()
    account = far.go(launcher=submitit_local())
    thread.join()
    assert set(account.through) == {"count_maze", "task_maze"}
    assert far.order().count("train count_maze") == 1 and "resume count_maze" in far.order()
    assert "primax: stopped at step 500" in far.home.log(far.plan.cells[1]).read_text()


def _job_of(pid: int) -> list[int]:
    """The sweep of one cell above a run, and submitit's process above that."""
    parents = []
    for _ in range(2):
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        parents.append(pid)
    return parents[::-1]


def test_asked_to_stop_every_job_is_cancelled_and_told_of(far):
    """As with Slurm, whose cancelled jobs end."""
    cancelled: list[str] = []
    sweep = replace(far.sweep(), tick=lambda: os.kill(os.getpid(), signal.SIGTERM))

    def job(name: str) -> remote.Job:
        return remote.Job(lambda: name in cancelled, lambda: cancelled.append(name), lambda: "why")

    def launcher(works):
        yield from remote.follow(sweep, {one.name: job(one.name) for one in works})

    with pytest.raises(StoppedError, match="stopped; the same command goes on with what is left"):
        far.go(launcher=launcher)
    assert cancelled == ["count_maze", "task_maze"]
    assert far.said[-2:] == ["count_maze: stopped at 0", "task_maze: stopped at 0"]


# --- what is refused, and what is said --------------------------------------------------------


def test_only_some_cells_and_a_name_that_is_none(tmp_path, capsys):
    far = Far(tmp_path)
    args = ["sweep", str(far.path), "--out", str(far.home.path), "--status", "--only"]
    assert main([*args, "count_maze"]) == 0
    assert "task_maze" not in (said := capsys.readouterr().out) and "\n1 run, each" in said
    assert main([*args, "count_mase"]) == 2
    assert (
        "--only: the plan has no cell 'count_mase'; did you mean count_maze?"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--launcher", "slrm"], "--launcher has no value 'slrm'; did you mean slurm?"),
        (["--launcher", "dask"], "--launcher dask needs --address, such as tcp://"),
        (
            ["--slurm", "partion=a"],
            "slurm: no field 'partion'; did you mean partition? (extra.NAME is any other parameter",
        ),
        (["--slurm", "gpus=many"], "gpus takes a whole number, got 'many'\n"),
        (["--slurm", "time=0"], "time must be between 1"),
        (["--devices", "al"], "--devices takes a number from 1 on, or all, got 'al'"),
        (["--slurm", "gpus"], "--slurm takes FIELD=VALUE, got 'gpus'"),
        (
            ["--devices", "3"],
            "task_maze: --devices 3 does not divide its number of seeds, which is 1: take 1",
        ),
    ],
)
def test_what_cannot_be_is_refused_before_anything_starts(tmp_path, capsys, args, said):
    far = Far(tmp_path)
    assert main(["sweep", str(far.path), "--out", str(far.home.path), *args]) == 2
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1 and not far.home.path.exists()


@pytest.mark.parametrize(("name", "module"), [("slurm", "submitit"), ("dask", "distributed")])
def test_a_missing_extra_says_what_to_install(tmp_path, capsys, monkeypatch, name, module):
    far = Far(tmp_path)
    monkeypatch.setitem(sys.modules, module, None)
    args = ["sweep", str(far.path), "--out", str(far.home.path), "--launcher", name]
    assert main([*args, "--address", "tcp://127.0.0.1:1"]) == 2
    assert f"pip install 'primax-rl[{name}]'" in capsys.readouterr().err
    assert not far.home.path.exists()


def test_where_there_is_no_slurm_and_no_scheduler(tmp_path, capsys, monkeypatch):
    pytest.importorskip("submitit"), pytest.importorskip("distributed")
    far = Far(tmp_path)
    monkeypatch.setattr(by_dask, "CONNECT_S", 0.2)
    args = ["sweep", str(far.path), "--out", str(far.home.path), "--launcher"]
    assert main([*args, "slurm"]) == 2
    assert "--launcher slurm needs sbatch" in capsys.readouterr().err
    assert main([*args, "dask", "--address", "tcp://127.0.0.1:1"]) == 2
    assert "no Dask scheduler answers at tcp://127.0.0.1:1" in capsys.readouterr().err
    assert not far.home.path.exists()


def test_a_plan_says_what_a_job_is_given_and_the_command_line_goes_before(tmp_path):
    text = """
    methods = ["task"]
    worlds = ["maze"]
    preset = "smoke"
    [slurm]
    partition = "short"
    time = 90
    extra.account = "x"
    """
    plan = read_plan(written(tmp_path, text))
    config, extra = configured(plan.slurm | {"time": "30", "extra.qos": "low"})
    assert config == SlurmConfig(partition="short", time=30) and extra == {
        "account": "x",
        "qos": "low",
    }
    with pytest.raises(InputError, match=r"plan.toml: slurm: no field 'tim'; did you mean time"):
        read_plan(written(tmp_path, text.replace("time", "tim")))


def test_an_array_is_what_sbatch_takes(far, monkeypatch, tmp_path):
    """The text of the job that submitit would submit, by a stand-in for sbatch."""
    pytest.importorskip("submitit")
    for name in ("srun", "sbatch"):
        (tmp_path / name).write_text(
            f"#!/bin/sh\ncp $1 {tmp_path}/given\necho Submitted batch job 7\n"
        )
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    settings = {"partition": "gpus", "gpus": "2", "at_once": "1", "extra.account": "x"}
    made = slurm.executor(far.home.path, settings)
    jobs = slurm._submit(made, [["true"], ["false"]])
    assert [job.job_id for job in jobs] == ["7_0", "7_1"]
    given = (tmp_path / "given").read_text()
    for said in (
        "--array=0-1%1",
        "--partition=gpus",
        "--gpus-per-node=2",
        "--account=x",
        "--requeue",
    ):
        assert f"#SBATCH {said}\n" in given, said
    assert "--time=1440" in given and "--signal=USR2@" in given


def test_only_a_command_line_travels(far):
    line = far.sweep("--save-every", "9").command("task_maze")[2:]
    assert line == ["sweep", str(far.home.path), "--only", "task_maze", "--save-every", "9"]
