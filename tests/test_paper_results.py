"""The published runs in results/paper: whole, and all pages made of them anew to the same bytes.

The same is tried on made-up runs, packed and filled in as those are.
"""

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from report_case import full_run
from test_paper_case import without_simulation

from primax.cli import main
from primax.errors import InputError
from primax.paper import references
from primax.paper.evidence import Runs
from primax.paper.experiments import CELLS
from primax.paper.pages import embed
from primax.paper.pages.write import write_all
from primax.paper.references import Reference
from primax.report import make
from primax.runs import npz
from primax.runs.pack import packed, rounded
from primax.runs.read import Run, open_run
from primax.runs.tables import read_table, read_whole
from primax.verify.audit import AUDITS, audit
from primax.verify.row import FAILS

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results" / "paper"
PAGES = (ROOT / "README.md", ROOT / "docs" / "reproduction.md")
REPORT = ROOT / "docs" / "report_paper.html"
CODE_OF_FIT = "8c793ce9c783"
"""At 2e08417, and at 58e618c."""
MOST_BYTES, MOST_REPORT, MOST_RESULTS = 24_000_000, 10_500_000, 30_000_000
published = pytest.mark.skipif(
    not (RESULTS / "index.md").exists(), reason="results/paper is not there yet: no run to publish"
)


def content(folder: Path) -> dict[str, bytes]:
    """Every file but the runs themselves."""
    files = (path for path in folder.rglob("*") if path.is_file())
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
    return {name: raw for name, raw in found.items() if not name.startswith("runs/")}


@contextmanager
def known_references(home: Path) -> Iterator[None]:
    """What scripted policies score is read, not simulated: compiling them takes half a minute."""
    known = json.loads((home / "references.json").read_text())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(references, "_reference", lambda w, _, p, __: Reference(**known[w][p]))
        patch.setattr(references, "_average", lambda w, _, p: known[w][p]["average"])
        yield


def check_pages(home: Path, runs: Runs, pages: tuple[Path, ...], out: Path) -> embed.Blocks:
    """Writes all of it anew beside, and compares."""
    blocks = write_all(runs, out, lambda said: None)
    ours, theirs = content(out), content(home)
    theirs.pop("scale", None)
    assert set(ours) == set(theirs)
    check_references(*(json.loads(files.pop("references.json")) for files in (ours, theirs)))
    assert [name for name in ours if ours[name] != theirs[name]] == []
    for page in pages:
        check_filled(home, page, blocks)
    return blocks


def check_references(ours: dict, theirs: dict) -> None:
    """The same numbers; of exact averages, which are long sums of products, but for the last digits.

    Another processor adds them up in another order. Pages print four digits of them.
    """
    assert {world: set(of) for world, of in ours.items()} == {
        w: set(of) for w, of in theirs.items()
    }
    for world, policies in theirs.items():
        for policy, known in policies.items():
            found = ours[world][policy]
            assert found["average"] == pytest.approx(known["average"], rel=1e-13, abs=1e-15)
            assert found == known | {"average": found["average"]}, (world, policy)


def check_filled(home: Path, page: Path, blocks: embed.Blocks) -> None:
    text = page.read_text(encoding="utf-8")
    made = embed.filled(text, blocks, embed.way(home, page.parent))
    assert made == text, f"{page.name}: primax reproduce --into"


def check_run(run: Run, name: str) -> None:
    """A cell has all its seeds, each its own, to the last episode."""
    cell = CELLS[name]
    config = cell.config("paper")
    assert run.seeds == cell.seeds("paper"), name
    columns = ("score", "distance", "coverage") if has_all(run) else ("score",)
    scores, *others = (run.grid("episodes", column) for column in columns)
    assert scores is not None and all(values is not None for values in others)
    assert scores.shape == (len(run.seeds), config.total_steps // config.world.horizon), name
    lives = {np.stack([scores[i], *(x[i] for x in others)]).tobytes() for i in range(len(scores))}
    assert len(lives) == len(run.seeds), f"two seeds of {name} are the same"
    assert np.isfinite(scores).all(), name


def has_all(run: Run) -> bool:
    """Whether more of its episodes was kept than the scores."""
    return "distance" in run.episodes


def check_whole(home: Path, runs: Runs) -> None:
    """Of every run there is; and all of them from one commit, but for the counts' and those of the
    nearest reading, which came later. These were made from copies of the tree between 397e6d2 and 2e08417
    whose manifests call it 58e618c+; the digest of all code that numbers depend on is that of each.
    """
    found = {name: runs.run(cell.variant.name, cell.world) for name, cell in CELLS.items()}
    assert not runs.broken and not runs.mixed()
    there = {name: run for name, run in found.items() if isinstance(run, Run)}
    assert {path.name for path in (home / "runs").iterdir()} == set(there)
    lives = set()
    for name, run in there.items():
        check_run(run, name)
        assert runs.changes(CELLS[name]) == []
        assert run.unsaid == ()
        lives.add((run.content["world"]["name"], run.episodes["score"].tobytes()))
    assert len(lives) == len(there), "two cells have the same episodes"
    check_commits({name: run.manifest for name, run in there.items()})


def check_commits(manifests: dict[str, dict]) -> None:
    """No run of the text taken literally is from a changed tree; of the fit, the code is known."""
    later = ("count", "_fit")
    first = {m["commit"] for name, m in manifests.items() if not any(w in name for w in later)}
    assert len(first) == 1
    for name, manifest in manifests.items():
        if "_fit" in name:
            assert manifest.get("code") == CODE_OF_FIT, name
        else:
            assert not manifest["commit"].endswith("+"), name


# --- what is published -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ours() -> Runs:
    """Read once for all tests."""
    return Runs.under(RESULTS / "runs")


@pytest.mark.slow
@published
def test_the_published_pages_are_made_anew_to_the_same_bytes(ours, tmp_path):
    with known_references(RESULTS):
        check_pages(RESULTS, ours, PAGES, tmp_path)


@published
@pytest.mark.slow
def test_the_published_pages_are_made_anew_with_every_policy_simulated(ours, tmp_path):
    check_pages(RESULTS, ours, PAGES, tmp_path)


@published
def test_every_number_that_the_data_are_said_to_show_is_in_a_table():
    text = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    said = text.split("## What the data say\n")[1].split("\n## ")[0].splitlines()
    numbers = re.compile(r"\d+(?:[.,]\d+)*")
    shown = {n for row in said if row.startswith("|") for n in numbers.findall(row)}
    told = {n for line in said if line.startswith("- ") for n in numbers.findall(line)}
    assert len(told) > 20 and told - shown == set()


@pytest.mark.slow
@published
def test_the_published_runs_are_all_there_and_whole(ours):
    assert {path.name for path in (RESULTS / "runs").iterdir()} == set(CELLS)
    check_whole(RESULTS, ours)
    for home, most in ((RESULTS, MOST_BYTES), (RESULTS.parent, MOST_RESULTS)):
        assert sum(path.stat().st_size for path in home.rglob("*") if path.is_file()) < most


@published
def test_no_published_run_breaks_a_promise():
    rows = (RESULTS / "audit.csv").read_text(encoding="utf-8").splitlines()[1:]
    assert rows and not any(FAILS in row for row in rows)
    assert not any("(" in row for row in rows), "an audit could not be made"


@pytest.mark.slow
@published
def test_the_published_report_is_made_anew_to_the_same_bytes(monkeypatch):
    monkeypatch.chdir(ROOT)
    page = make([RESULTS.relative_to(ROOT)]).encode()
    assert page == REPORT.read_bytes() and len(page) < MOST_REPORT


# --- the same on made-up runs ------------------------------------------------------------------

MADE_UP = ("prime_maze", "prime_butterflies", "task_maze")


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """Three runs packed by the command, pages, and a page with marks."""
    place = tmp_path_factory.mktemp("published")
    for name in MADE_UP:
        full_run(place / "made", name)
    home = place / "paper"
    assert main(["pack", str(place / "made"), "--out", str(home / "runs")]) == 0
    page = place / "page.md"
    marks = "\n".join(f"<!-- results: {n} -->\n<!-- /results -->" for n in ("headline", "table1"))
    page.write_text(f"before\n{marks}\nafter\n", encoding="utf-8")
    with without_simulation(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(references, "_average", lambda *_: 0.25)  # exactly, it takes seconds
        args = ["--no-run", "--scale", "paper", "--out", str(home), "--into", str(page)]
        assert main(["reproduce", *args]) == 0
    return home


@pytest.mark.slow
def test_made_up_runs_give_their_pages_twice(home, tmp_path):
    page = home.parent / "page.md"
    with known_references(home):
        blocks = check_pages(home, Runs.under(home / "runs"), (page,), tmp_path)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n") and text.endswith("after\n")
    assert (
        "](paper/figures/figure1.svg)" in text
        and "61 of 64 cells (13 of the paper's own 16) have no finished run yet" in text
    )
    other = page.with_name("other.md")
    other.write_text(text.replace("| PRIME |", "| PRIME! |"), encoding="utf-8")
    with pytest.raises(AssertionError, match=r"other\.md"):
        check_filled(home, other, blocks)


def test_what_is_packed_reads_like_the_run(home):
    for name in MADE_UP:
        before, after = home.parent / "made" / name, home / "runs" / name
        runs = [Runs({name: path}).run(*name.rsplit("_", 1)) for path in (before, after)]
        a, b = (run for run in runs if isinstance(run, Run))
        assert a.manifest == b.manifest and a.content == b.content
        for column, values in a.episodes.items():
            np.testing.assert_array_equal(values, b.episodes[column])
        for column, values in a.windows.items():
            np.testing.assert_allclose(b.windows[column], values, rtol=5e-5)
        old, new = (np.load(path / "maps.npz") for path in (before, after))
        assert set(old) == set(new) and len(new["step"]) == 10
        np.testing.assert_array_equal(old["visits"].sum(axis=0), new["visits"].sum(axis=0))
        rows = np.searchsorted(old["step"], new["step"])
        np.testing.assert_allclose(old["v_epi"][rows], new["v_epi"], rtol=1e-3)
        assert packed(after) == {path.name: path.read_bytes() for path in after.iterdir()}


@pytest.mark.parametrize("name", ["prime_maze", "prime_butterflies"])
def test_what_is_rounded_keeps_every_promise_it_kept(name, tmp_path):
    """On real runs: a tenth of the targets reach their bound to five digits."""
    folder = ROOT / "results" / "preliminary" / name
    run = open_run(folder)
    config, table = run.config, run.windows
    (tmp_path / "windows.csv").write_bytes(rounded(read_whole(folder / "windows.csv")))
    fewer = read_table(tmp_path / "windows.csv")
    by_seed = np.lexsort((fewer["step"], fewer["seed"]))
    np.testing.assert_array_equal(fewer["y_abs_max"][by_seed], table["y_abs_max"])
    for row in AUDITS:
        assert audit(row, fewer, config).verdict == audit(row, table, config).verdict != FAILS


def test_a_packed_run_has_a_report_an_audit_and_statistics(home, capsys, monkeypatch):
    monkeypatch.setattr("primax.report.index._lines", lambda place: [])
    page = make([home])
    assert '"hasMaps":true,"hasReplays":true' in page and "Not here" not in page
    folder = str(home / "runs" / "prime_maze")
    assert main(["stats", folder, "--measure", "tail:v_epi"]) == 0
    assert main(["verify", "--run", folder]) in (0, 1)
    for command in ("explain", "export"):
        assert main([command, folder]) == 2
        said = capsys.readouterr().err
        assert "is a packed run, which has no networks: give the folder" in said
    assert main(["resume", folder]) == 0
    assert "is finished" in capsys.readouterr().out.replace("\n", "")  # wherever the path is cut


def test_a_packed_run_is_never_run_again(home, tmp_path, capsys):
    """Without its manifest it would pass for one to begin, and be trained over its tables."""
    folder = tmp_path / "run"
    shutil.copytree(home / "runs" / "task_maze", folder)
    (folder / "manifest.json").write_text("[1]")
    assert main(["resume", str(folder)]) == 2
    assert "restore it from a copy" in capsys.readouterr().err
    (folder / "manifest.json").unlink()
    for more in ([], ["--restart"]):
        assert main(["resume", str(folder), *more]) == 2
        assert "is a packed run: it can be read, but not resumed" in capsys.readouterr().err
    assert {path.name for path in folder.iterdir()} - {"lock"} == {
        path.name
        for path in (home / "runs" / "task_maze").iterdir()
        if path.name != "manifest.json"
    }


def test_what_is_left_of_a_finished_run_is_not_thrown_away(home, tmp_path, capsys):
    """Manifest and checkpoints are gone; its tables are all there is."""
    folder = tmp_path / "run"
    shutil.copytree(home.parent / "made" / "task_maze", folder)
    (folder / "manifest.json").unlink()
    before = (folder / "episodes.csv").read_bytes()
    assert main(["resume", str(folder)]) == 2
    assert "resume --restart begins it again" in capsys.readouterr().err
    assert (folder / "episodes.csv").read_bytes() == before


DAMAGED = (
    ("maps.npz", lambda raw: raw[: len(raw) // 2]),
    ("maps.npz", lambda raw: npz.to_bytes([("visits", np.zeros(3))])),
    ("maps.npz", lambda raw: npz.to_bytes([("step", np.zeros(0))])),
    ("replays.jsonl", lambda raw: raw[: len(raw) // 2]),
    ("replays.jsonl", lambda raw: b"[1]\n"),
    ("replays.jsonl", lambda raw: b"{}\n"),
)


def test_a_run_is_not_packed_into_a_run(home, capsys):
    made, runs = home.parent / "made", home / "runs"
    for out in (runs / "prime_maze", runs / "prime_maze" / "deep" / "in"):
        assert main(["pack", str(made / "task_maze"), "--out", str(out)]) == 2
        assert "is inside the folder of a run" in capsys.readouterr().err
    assert not (runs / "prime_maze" / "task_maze").exists()


def test_packing_overwrites_nothing_and_names_what_it_leaves_out(home, tmp_path, capsys):
    def told() -> str:
        return capsys.readouterr().out.replace("\n", " ")

    out, made = tmp_path / "out", tmp_path / "made"
    shutil.copytree(home.parent / "made" / "task_maze", made / "task_maze")
    command = ["pack", str(made), "--out", str(out)]
    for said in ("written", "already there"):
        assert main(command) == 0 and said in capsys.readouterr().out
    manifest = made / "task_maze" / "manifest.json"
    about = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(about | {"python": "3"}))
    assert main(command) == 2 and "holds another run" in capsys.readouterr().err
    about.pop("finished")
    manifest.write_text(json.dumps(about))
    assert main(command) == 1 and "is not finished" in capsys.readouterr().out
    manifest.write_text(json.dumps(about | {"finished": "now"}))
    for name, damage in DAMAGED:
        path = made / "task_maze" / name
        before = path.read_bytes()
        path.write_bytes(damage(before))
        assert main(command) == 1
        assert f"cannot be packed: {name}" in capsys.readouterr().out
        path.write_bytes(before)
    windows = made / "task_maze" / "windows.csv"
    whole = windows.read_bytes()
    for damaged in (whole[: len(whole) // 2 + 3], b"[1, 2]\n", b""):
        windows.write_bytes(damaged)
        assert main(command) == 1
        assert "windows.csv is not the table" in told()
    windows.write_bytes(b"".join(whole.splitlines(keepends=True)[:-1]))
    assert main(command) == 1 and "windows.csv is not whole" in told()
    windows.write_bytes(whole)
    (made / "task_maze" / "maps.npz").unlink()
    assert main(command) == 1 and "cannot be packed: maps.npz" in capsys.readouterr().out
    config = made / "task_maze" / "config.json"
    config.write_text(config.read_text().replace('"seeds": [', '"seeds": [7, '))
    assert main(command) == 1 and "and config.json have different seeds" in told()
    (out / "nothing").mkdir()
    assert main(["pack", str(out / "nothing"), "--out", str(out)]) == 2
    assert main(["pack", str(made / "task_maze"), "--out", str(made)]) == 2
    said = capsys.readouterr().err
    assert "no run in" in said and "into itself" in said


def test_a_run_that_is_not_whole_is_found(home, monkeypatch):
    """Made-up runs are shorter than the paper's, have three seeds and no commit."""
    with pytest.raises(AssertionError, match="prime_butterflies"):
        check_whole(home, Runs.under(home / "runs"))
    run = Runs.under(home / "runs").run("task", "maze")
    assert isinstance(run, Run)
    cell = type(CELLS["task_maze"])
    monkeypatch.setattr(cell, "seeds", lambda *_: (0, 1, 2))
    monkeypatch.setattr(cell, "config", lambda *_: make_config(run))
    check_run(run, "task_maze")
    order = np.argsort(run.episodes["seed"] == 2, kind="stable")
    first = run.episodes["seed"][order] == 0
    for column in ("score", "distance", "coverage"):
        run.episodes[column][run.episodes["seed"] == 1] = run.episodes[column][order][first]
    with pytest.raises(AssertionError, match="two seeds of task_maze are the same"):
        check_run(run, "task_maze")


def test_a_clean_tree_will_do_for_any_run_and_a_changed_one_for_the_fit_alone():
    literal, fit = {"commit": "442f739"}, {"commit": "58e618c+", "code": CODE_OF_FIT}
    check_commits({"prime_maze": literal, "count_maze": {"commit": "a"}, "prime_fit_maze": fit})
    check_commits({"prime_maze": literal, "prime_fit_maze": fit | {"commit": "58e618c"}})
    for wrong in (
        {"prime_maze": {"commit": "442f739+"}},
        {"prime_maze": literal, "count_maze": {"commit": "a+"}},
        {"prime_maze": literal, "rnd_maze": {"commit": "b"}},
        {"prime_maze": literal, "prime_fit_maze": fit | {"code": "another"}},
    ):
        with pytest.raises(AssertionError):
            check_commits(wrong)


def make_config(run: Run):
    from primax.runs.config_json import from_json

    return from_json(run.content)[0]


# --- marks -------------------------------------------------------------------------------------


def test_marked_places_are_filled_and_links_lead_from_the_page():
    text = "a\n<!-- results: t -->\nold\n<!-- /results -->\nb [x](y.md)\n"
    block = "[runs](runs.md) [far](https://x.org/y)"
    once = embed.filled(text, {"t": block}, "../results")
    assert "[runs](../results/runs.md) [far](https://x.org/y)" in once and "old" not in once
    assert once.endswith("b [x](y.md)\n") and embed.filled(once, {"t": block}, "../results") == once


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nothing", "no place is marked"),
        ("<!-- results: tabel1 -->\n<!-- /results -->", "table1"),
        ("<!-- results: table1 -->\nprose", "no other side"),
        (
            "<!-- results: table1 -->\nprose\n<!-- results: table1 -->\n<!-- /results -->",
            "no other",
        ),
    ],
)
def test_a_page_that_cannot_be_filled_is_refused_in_one_line(tmp_path, text, said):
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(InputError, match=said) as error:
        embed.fill(page, {"table1": ""}, tmp_path)
    assert re.match(r".*page\.md: ", str(error.value)) and page.read_text() == text
    with pytest.raises(InputError, match="cannot write"):
        embed.fill(tmp_path / "nowhere.md", {}, tmp_path)
