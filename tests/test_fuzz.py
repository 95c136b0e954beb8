"""Every reader on files changed at random: it works, or ends in the project's own error.

A fixed budget of cases, the same in every run. Thousands more were tried by hand.
"""

import hashlib
import io
import json
import resource
import shutil
import signal
import warnings
import zipfile
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from report_case import full_run
from test_strangers import Waits, unpacked

from primax import explain
from primax.agent.learner import make_learner
from primax.agent.training import state_like
from primax.cli.resume import _flags
from primax.errors import InputError, RunError
from primax.report import make
from primax.runs import checkpoints, networks, npz, proceed, replays
from primax.runs.export import _digest, export, load
from primax.runs.measures import measure
from primax.runs.pack import packed
from primax.runs.provenance import provenance
from primax.runs.read import find_run, open_run
from primax.verify.audit import AUDITS
from primax.verify.checks import run_audit

MOST_BYTES = 1 << 30
"""That all cases together may add to the process."""
ODD = (
    *(None, True, 0, -1, 2**31, 10**30, 10**400, 1.5, 1e-320, float("nan"), float("inf")),
    *("", "x", "\ud800", "a\0b", "../../x", "x.txt", "\x1b[2J\n"),
    *([], [0], ["a"], [[[]]], {}, {"name": "maze"}, {"a": {"b": {}}}, list(range(50))),
)
CELLS = ("", "nan", "-inf", "1e400", "-1", "1e300", "1e-300", "0.5", "1e12", "x", '"', "\0", "é")
HEADERS = (
    "{'descr': '<f4', 'fortran_order': False, 'shape': (1,",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 1000000000000)}",
    "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
    "{'descr': '<U3', 'fortran_order': False, 'shape': (1,)}",
    "{'descr': [('seed', '<i4')], 'fortran_order': False, 'shape': (1,)}",
    "(" * 300,
    "'''",
    "[]",
)
BUDGET = settings(
    max_examples=30,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module", autouse=True)
def bounds():
    """Nothing waits, nothing takes all memory; numbers that are none may be warned of."""

    def late(*args):
        raise Waits

    before = signal.signal(signal.SIGALRM, late)
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield
    signal.signal(signal.SIGALRM, before)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - largest < MOST_BYTES / 1024


def ends_in_a_line(*doors) -> None:
    for door in doors:
        signal.alarm(60)
        try:
            door()
        except (InputError, RunError) as error:
            assert str(error).strip()
        finally:
            signal.alarm(0)


def changed(r: Random, name: str, raw: bytes) -> bytes:
    """A file of the same kind with something else in it."""
    kind = name.rpartition(".")[2]
    if r.random() < 0.2:
        return cut(r, raw)
    if kind == "json":
        return other_json(r, raw)
    if kind == "jsonl":
        first, _, rest = raw.partition(b"\n")
        return other_json(r, first) + b"\n" + rest
    if kind == "csv":
        rows = [line.split(",") for line in raw.decode().split("\n")]
        row = r.choice(rows[:30])
        row[r.randrange(len(row))] = r.choice(CELLS)
        return "\n".join(map(",".join, rows)).encode()
    if kind == "raw":
        return raw + header(r)
    return other_arrays(r, raw)


def cut(r: Random, raw: bytes) -> bytes:
    at = r.randrange(len(raw))
    return r.choice([raw[:at], raw[:at] + bytes([r.randrange(256)]) + raw[at + 1 :], b"", b"\0"])


def other_json(r: Random, raw: bytes) -> bytes:
    whole = json.loads(raw)
    place, name = r.choice(list(leaves(whole)))
    if r.random() < 0.2:
        del place[name]
    else:
        place[name] = r.choice(ODD)
    return json.dumps(whole).encode()


def leaves(value):
    """Every place something stands in: what holds it, and under which name."""
    names = value if isinstance(value, dict) else range(min(3, len(value)))
    for name in names:
        yield value, name
        if isinstance(value[name], dict | list):
            yield from leaves(value[name])


def header(r: Random) -> bytes:
    text = r.choice(HEADERS).encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(16)


def other_arrays(r: Random, raw: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    name = r.choice(list(members))
    array = np.load(io.BytesIO(members[name]))
    what = r.randrange(6)
    if what == 0:
        members[name] = header(r)
    elif what == 1:
        del members[name]
    elif what == 2:
        members["x.npy"] = members.pop(name)
    else:
        file = io.BytesIO()
        other = (array[..., :1], array.astype(float) * np.nan, np.full_like(array, 127))[what - 3]
        np.save(file, other)
        members[name] = file.getvalue()
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", r.choice([0, 8, 12, 14])) as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return file.getvalue()


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    return full_run(tmp_path_factory.mktemp("fuzz"), seeds=2)


@given(r=st.randoms(use_true_random=False))
@BUDGET
def test_a_finished_run(finished, r):
    path = r.choice(sorted(finished.iterdir()))
    before = path.read_bytes()
    path.write_bytes(changed(r, path.name, before))
    page = lambda: make([finished], lambda line: None).encode()  # noqa: E731
    try:
        ends_in_a_line(
            lambda: packed(finished),
            lambda: run_audit(AUDITS, finished, lambda line: None),
            lambda: measure(open_run(finished), r.choice(["peak", "tail:loss", "clamp_share"])),
            lambda: explain.recorded_maps(finished, 0, 700),
            lambda: find_run(finished),
            lambda: replays.find(open_run(finished)),
            lambda: _flags(finished),
            lambda: proceed.reopen(finished),
            page if r.random() < 0.2 else lambda: None,  # it takes longer than all others
        )
    finally:
        path.write_bytes(before)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory) -> Path:
    return unpacked(tmp_path_factory.mktemp("fuzz"))


def seal(folder: Path) -> None:
    """As whoever forges a checkpoint would: all its hashes are right."""
    place = next((folder / "checkpoints").iterdir())
    about = json.loads((place / "about.json").read_bytes())["content"]
    about["state"] = hashlib.sha256((place / "state.npz").read_bytes()).hexdigest()
    about["config"] = hashlib.sha256((folder / "config.json").read_bytes()).hexdigest()
    for name, seen in about["tables"].items():
        raw = (folder / name).read_bytes()[: seen[0]]
        seen[:] = [len(raw), hashlib.sha256(raw).hexdigest()]
    sealed = {"content": about, "seal": checkpoints._seal(about)}
    (place / "about.json").write_text(json.dumps(sealed))


@pytest.fixture(scope="module")
def traced_once():
    """Shapes by configuration: tracing them is most of a resume's time."""
    shapes = cache(lambda config, num_seeds: state_like(make_learner(config), num_seeds))
    with pytest.MonkeyPatch.context() as patch:
        # One device: no sharding.
        patch.setattr(proceed, "state_like", lambda learner, num, _: shapes(learner.config, num))
        patch.setattr(proceed, "provenance", cache(provenance))
        yield


@given(r=st.randoms(use_true_random=False))
@BUDGET
def test_a_run_that_is_resumed_or_exported(stopped, traced_once, r):
    folder = stopped.with_name("case")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(stopped, folder)
    path = r.choice(sorted(path for path in folder.rglob("*") if path.is_file()))
    path.write_bytes(changed(r, path.name, path.read_bytes()))
    if path.name != "about.json" and r.random() < 0.8:
        seal(folder)

    def resumed() -> None:
        job, manifest = proceed.reopen(folder), proceed.read_manifest(folder)
        with proceed.disk_errors(folder):
            proceed._check_unchanged(job)
            proceed._recover(job, manifest, lambda line: None, frozenset(["anyway"]))

    ends_in_a_line(lambda: export(folder), lambda: open_run(folder).maps(), resumed)


@pytest.fixture(scope="module")
def exported(stopped) -> bytes:
    return export(stopped)


@given(r=st.randoms(use_true_random=False))
@BUDGET
def test_an_exported_file(exported, tmp_path_factory, r):
    path = tmp_path_factory.getbasetemp() / "export.npz"
    path.write_bytes(other_export(r, exported) if r.random() < 0.8 else cut(r, exported))
    ends_in_a_line(
        lambda: load(path).critics(0),
        lambda: explain.explain(path, explain.first_seed(path)),
        lambda: networks.find(path) if r.random() < 0.3 else None,  # it traces a whole learner
    )


def other_export(r: Random, raw: bytes) -> bytes:
    """One whose digest is right."""
    texts = {name: array for name, array in npz.read(raw) if name in ("config", "about")}
    if r.random() < 0.5:
        name = r.choice(list(texts))
        other = np.frombuffer(other_json(r, texts[name].tobytes()), np.uint8)
        return npz.to_bytes((dict(npz.read(raw)) | {name: other}).items())
    try:
        arrays = dict(npz.read(other_arrays(r, raw)))
    except npz.NpzError:
        return raw[:-1]
    arrays = {name: array for name, array in arrays.items() if name not in texts}
    about = json.loads(texts["about"].tobytes()) | {"digest": _digest(arrays)}
    texts["about"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
    return npz.to_bytes((arrays | texts).items())
