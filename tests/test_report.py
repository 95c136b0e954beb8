"""The page's data: what is thinned, packed and escaped, and what is said of what is missing."""

import base64
import bz2
import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from markupsafe import escape
from report_case import HOSTILE, PARTS, full_run, maps, replay, reproduction, walk
from test_paper_case import plausible, write_run

from primax.cli import main
from primax.errors import InputError
from primax.methods import METHODS
from primax.paper.experiments import CELLS, VARIANTS
from primax.paper.figures.drawing import STYLE
from primax.paper.scorecard import card
from primax.paper.scorecard.card import Number
from primax.paper.scorecard.rule import VERDICTS
from primax.paper.tables.readings import NOTE
from primax.report import make, naming, packing, sources
from primax.report.index import alike
from primax.report.page import unbroken
from primax.report.parts import curves, facts, heat, replays, scorecards
from primax.report.parts.frozen import Frozen
from primax.report.parts.promises import audited
from primax.runs import records
from primax.runs.measures import rolling
from primax.runs.naming import folders
from primax.runs.read import open_run
from primax.worlds import make_world

PUBLISHED = Path(__file__).parents[1] / "results" / "paper"
FLOATS = arrays(np.float64, st.integers(1, 40), elements=st.floats(-1e12, 1e12))


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A PRIME run with everything, and one of another method without maps and replays."""
    home = tmp_path_factory.mktemp("report")
    full_run(home)
    scores, windows, columns = plausible(CELLS["task_butterflies"])
    write_run(home / "other", CELLS["task_butterflies"], scores, windows, True, **columns)
    return home


# --- packing -----------------------------------------------------------------------------------


@given(FLOATS, st.sampled_from([packing.U8, packing.U16]))
def test_packed_numbers_are_off_by_half_a_step_at_most(values, none):
    scale = packing.scale_of(values)
    back = packing.restore(packing.quantise(values, scale, none), scale, none)
    step = (scale[1] - scale[0]) / (none - 1)
    assert np.all(np.abs(back - values) <= 0.5001 * step + 1e-9 * np.abs(values))


def test_what_is_no_number_stays_none_and_a_constant_is_exact():
    values = np.array([np.nan, 3.25, np.inf])
    scale = packing.scale_of(values)
    back = packing.restore(packing.quantise(values, scale, packing.U8), scale, packing.U8)
    np.testing.assert_array_equal(back, [np.nan, 3.25, np.nan])
    assert packing.scale_of(np.array([np.nan])) == (0.0, 0.0)


def test_embedded_json_cannot_leave_its_element():
    text = str(packing.embedded({"name": HOSTILE, "other": "<!-- & \u2028"}))
    assert not re.search("[<>&\u2028]", text)
    assert json.loads(text)["name"] == HOSTILE


# --- curves ------------------------------------------------------------------------------------


def unpacked(packed: dict, rows: int) -> np.ndarray:
    steps = np.frombuffer(base64.b64decode(packed["data"]), "<u2")
    return packing.restore(steps, tuple(packed["scale"]), packing.U16).reshape(rows, -1)


def test_a_curve_of_episodes_is_the_rolling_mean_at_evenly_spaced_episodes():
    scores = np.random.default_rng(0).normal(size=(2, 2_500))
    table = {"step": 100.0 * np.arange(1, 2_501), "score": scores}
    packed = curves.episodes(table)
    assert len(packed["steps"]) == curves.POINTS
    assert (packed["steps"][0], packed["steps"][-1]) == (2_000, 250_000)
    at = np.array(packed["steps"]) // 100 - 20
    expected = rolling(scores)[:, at]
    np.testing.assert_allclose(unpacked(packed["columns"]["score"], 2), expected, atol=1e-4)
    assert set(packed["columns"]) == {"score"}


def test_a_gap_is_left_out_of_its_mean():
    values = np.ones((1, 40))
    values[0, :25] = np.nan
    packed = curves.episodes({"step": np.arange(40.0), "score": values, "distance": values})
    found = unpacked(packed["columns"]["distance"], 1)[0]
    assert np.isnan(found[:6]).all() and (found[6:] == 1).all()


def test_windows_are_binned_and_of_maxima_the_maximum_is_kept():
    values = np.arange(12.0).reshape(1, 12)
    packed = curves.windows({"step": np.arange(12.0), "loss": values, "y_abs_max": values}, 4)
    assert packed["steps"] == [2, 5, 8, 11] and packed["windows"] == 12
    np.testing.assert_allclose(unpacked(packed["columns"]["loss"], 1)[0], [1, 4, 7, 10], atol=1e-3)
    np.testing.assert_allclose(
        unpacked(packed["columns"]["y_abs_max"], 1)[0], [2, 5, 8, 11], atol=1e-3
    )


def test_measures_are_the_papers_and_one_seed_has_no_spread():
    scores = np.zeros((2, 100))
    scores[0, 40:60], scores[1, 90:] = 2.0, 4.0
    found = curves.measures({"step": np.arange(100.0), "score": scores})
    assert found == {"average": [0.4, 0.4], "peak": [2.0, 2.0], "last": [0.0, 2.0]}
    assert curves.summary([0.5]) == {"mean": 0.5, "std": None, "low": None, "high": None}
    assert curves.summary([None]) is None
    both = curves.summary([1.0, 3.0])
    assert both is not None and (both["mean"], both["low"], both["high"]) == (2.0, 1.0, 3.0)


def test_forty_runs_of_fifteen_seeds_leave_room_under_ten_megabytes():
    """The budgets: windows, maps and replays by their own limits, episodes by arithmetic."""
    grid = {c.name: np.zeros((15, 249)) for c in curves.WINDOWS}
    points = curves.window_points([grid] * 40)
    windows = 40 * 15 * len(curves.WINDOWS) * points * 2 * 4 / 3
    episodes = 40 * 15 * len(curves.EPISODES) * curves.POINTS * 2 * 4 / 3
    maps = dict.fromkeys(heat.MAPS, np.zeros((250, 15, 10, 10), np.int8))
    (room, *others) = packing.shares([heat.need(maps)] * 40, heat.BYTES)
    positions, by_seed = heat.fit(250, 15, 6 * 100, room)
    drawn = 40 * positions * 6 * 100 * (16 if by_seed else 1) * 4 / 3
    assert points >= curves.FEWEST and positions >= heat.FEWEST and set(others) == {room}
    assert windows + episodes + drawn + replays.BYTES < 9e6


def test_who_needs_little_leaves_the_rest_to_the_others():
    assert packing.shares([100, 10, 90], 130) == [60, 10, 60]
    assert packing.shares([100, 10], 200) == [100, 10] and packing.shares([], 5) == []


def test_a_published_reproduction_keeps_every_seed_it_has():
    """16 runs of PRIME with 15 seeds, 4 with five, 20 of other methods; maps of ten windows."""
    kinds = {(16, 15): heat.MAPS, (4, 5): heat.MAPS, (20, 15): ("visits",)}
    needs = [
        heat.need(dict.fromkeys(parts, np.zeros((10, seeds, 10, 10))))
        for (num, seeds), parts in kinds.items()
        for _ in range(num)
    ]
    rooms = packing.shares(needs, heat.BYTES)
    assert rooms == needs
    for (_, seeds), parts, room in zip(kinds, kinds.values(), rooms[::18], strict=True):
        assert heat.fit(10, seeds, len(parts) * 100, room) == (10, True)


# --- maps and replays --------------------------------------------------------------------------


def test_maps_are_grouped_with_the_share_of_steps_and_the_mean_of_parts(monkeypatch):
    monkeypatch.setattr(heat, "POSITIONS", 5)
    world = make_world("maze")
    packed = heat.pack(heat.checked(maps(world, 2, 200), (0, 1)), 10**6)
    assert packed["by_seed"] and packed["windows"] == 20
    assert packed["begins"] == [0, 4_000, 8_000, 12_000, 16_000, 20_000]
    shape = (5, 3, *world.shape)
    for name, wanted in (("visits", 100.0), ("v_epi", None)):
        part = packed["maps"][name]
        steps = np.frombuffer(base64.b64decode(part["data"]), np.uint8).reshape(shape)
        frames = [
            packing.restore(frame, tuple(scale or (0, 0)), packing.U8)
            for frame, scale in zip(steps, part["scales"], strict=True)
        ]
        if wanted:
            np.testing.assert_allclose(np.stack(frames).sum(axis=(2, 3)), wanted, rtol=1e-2)
        else:
            # The first group leaves the warm-up out: windows 1 to 3; the last has 16 to 19.
            for frame, mean in ((frames[0], 2.0), (frames[-1], 17.5)):
                found = np.nanmean(frame, axis=(1, 2))
                np.testing.assert_allclose(found, [mean + 0.05, mean, mean + 0.1], atol=1e-3)
            assert np.isnan(frames[-1][0][np.asarray(world.walls)]).all()


@pytest.mark.parametrize(
    ("room", "expected"),
    [(10**9, (60, True)), (1_300 * 25 * 3, (24, True)), (60_000, (45, False)), (0, (8, False))],
)
def test_what_fits_is_kept(room, expected):
    assert heat.fit(250, 2, 1_000, room) == expected


def test_maps_that_are_not_the_runs_are_refused():
    found = maps(make_world("maze"), 2, 200)
    for broken in (
        {k: v for k, v in found.items() if k != "visits"},
        found | {"seed": np.array([0, 7])},
        found | {"visits": found["visits"][:, 0]},
        found | {"v_epi": found["v_epi"][:3]},
    ):
        with pytest.raises(InputError, match=r"maps\.npz"):
            heat.checked(broken, (0, 1))


def read_frames(packed: dict, episode: dict, num_cells: int) -> np.ndarray:
    """As the page's script does it."""
    kind = "u1" if packed["bytes"] == 1 else "<u2"
    numbers = np.frombuffer(base64.b64decode(episode["frames"]), kind).tolist()
    frames, i = [], 0
    while i < len(numbers):
        frame = {name: set(cells) for name, cells in packed["still"].items()}
        for name in packed["channels"]:
            frame[name] = set(numbers[i + 1 : i + 1 + numbers[i]])
            i += 1 + numbers[i]
        frames.append(frame)
    return frames


@pytest.mark.parametrize("size", [10, 17])
def test_frames_are_the_recorded_observations(size):
    """17 x 17 cells need two bytes each."""
    world = make_world("maze", size=size)
    line = replay(world, 0, 0)
    packed = replays.pack([line], world, replays.Known((0,)))
    planes = walk(world, [int(a) for a in line["actions"]])
    frames = read_frames(packed, packed["episodes"][0], size * size)
    assert len(frames) == len(planes) and "wall" in packed["still"]
    for frame, plane in zip(frames, planes, strict=True):
        for i, name in enumerate(world.channels):
            assert frame[name] == set(np.flatnonzero(plane[i]))


def test_a_step_has_the_means_of_its_cell_and_window_or_its_own_parts():
    world, line = make_world("maze"), replay(make_world("maze"), 1, 199)
    known = replays.Known((0, 1), heat.checked(maps(world, 2, 200), (0, 1)))
    episode = replays.pack([line], world, known)["episodes"][0]
    assert not episode["is_exact"]
    np.testing.assert_allclose(unpacked(episode["parts"]["v_epi"], 1), 19.1, rtol=1e-4)
    keys = np.arange(world.num_keys * 5)
    table = {name: keys.astype(np.float32) for name in PARTS}
    for ends, is_exact in ((20_000, True), (19_999, False)):
        exact = replays.Known((0, 1), known.maps, Frozen(ends - 1_000, ends, {1: table}))
        episode = replays.pack([line], world, exact)["episodes"][0]
        assert episode["is_exact"] is is_exact
    exact = replays.Known((0, 1), None, Frozen(19_900, 20_000, {1: table}))
    parts = replays.pack([line], world, exact)["episodes"][0]["parts"]
    np.testing.assert_allclose(unpacked(parts["reward"], 1)[0], line["keys"], atol=0.01)
    assert replays.pack([line], world, replays.Known((0, 1)))["episodes"][0]["parts"] is None


def test_where_not_all_seeds_fit_the_best_the_worst_and_the_middle_come_first():
    world = make_world("maze")
    packed = replays.pack([replay(world, s, 0) for s in range(5)], world, replays.Known((0,)))
    scores = {0: 0.2, 1: 0.9, 2: 0.5, 3: 0.1, 4: 0.3}
    one = len(packed["episodes"][0]["frames"]) + 500
    for room, kept in (
        (0, [1]),
        (2 * one, [1, 3]),
        (3 * one, [1, 3, 4]),
        (9 * one, [0, 1, 2, 3, 4]),
    ):
        found = replays.choose(packed, scores, room)
        assert found["kept"] == kept and found["seeds"] == 5
        assert {episode["seed"] for episode in found["episodes"]} == set(kept)


# --- names and settings ------------------------------------------------------------------------


def test_folders_of_the_same_name_are_told_apart(tmp_path):
    paths = [tmp_path / part for part in ("a/maze", "b/maze", "c/flies")]
    assert folders(paths) == ["a/maze", "b/maze", "flies"]


def test_a_method_has_one_colour_and_the_same_map_is_one_world(tmp_path):
    runs = []
    for name in ("prime_maze", "prime_butterflies", "rnd_maze", "count_maze"):
        cell = CELLS.get(name, CELLS["random_maze"])
        runs.append(write_run(tmp_path / name, cell, np.zeros((2, 40))))
    drawn = json.loads((runs[2] / "config.json").read_text())
    from primax.worlds.layouts import read as layout

    drawn["world"]["layout"] = layout(drawn["world"]["layout"])
    (runs[2] / "config.json").write_text(json.dumps(drawn))
    found = [open_run(path) for path in runs]
    names = [path.name for path in runs]
    places, of_run = naming.places(found)
    assert [place.title for place in places] == ["Maze 10 × 10", "Butterflies 10 × 10"]
    assert of_run == [0, 1, 0, 0]
    styles = naming.styles(found, names, of_run)
    assert styles[0] == styles[1] and styles[0].label == "PRIME"
    assert len({(style.colour, style.dash) for style in styles}) == 3
    again = naming.styles([found[0]] * 2, names[:1] * 2, [0, 0])
    assert again[0].label == "PRIME (prime_maze)" and again[0].colour == styles[0].colour
    assert again[0].dash == styles[0].dash != again[1].dash


def test_every_method_has_a_label_and_each_variant_its_own_line():
    assert all(naming.label_of(name) == METHODS[name].label for name in METHODS)
    assert all(method.label for method in METHODS.values()) and set(STYLE) == set(VARIANTS)
    styles = [(colour, str(dash)) for colour, dash in STYLE.values()]
    assert len(set(styles)) == len(styles)
    papers = ("prime", "rnd", "disagreement", "smirl", "task", "s_adapt", "moss", "rnd_snapshot")
    assert len({STYLE[name][0] for name in papers}) == len(papers)


def test_runs_of_a_method_are_named_by_the_setting_that_differs(tmp_path):
    """By their folders where nothing differs, or so much that no name could tell it."""

    def made(name: str, world: dict | None = None, **changes: object) -> Path:
        folder = write_run(tmp_path / name, CELLS["prime_maze"], np.zeros((2, 40)))
        content = json.loads((folder / "config.json").read_text()) | changes
        content["world"] |= world or {}
        (folder / "config.json").write_text(json.dumps(content))
        return folder

    def labels(*folders: Path) -> list[str]:
        runs = [open_run(folder) for folder in folders]
        _, of_run = naming.places(runs)
        return [s.label for s in naming.styles(runs, [f.name for f in folders], of_run)]

    plain, short, again = made("a"), made("b", window=200), made("c")
    assert labels(plain, short) == ["PRIME, window 1,000", "PRIME, window 200"]
    assert labels(plain, again) == ["PRIME (a)", "PRIME (c)"]
    other = made("d", window=50, recent=7, replay=8, warmup=9)
    assert labels(plain, other) == ["PRIME (a)", "PRIME (d)"]
    runs = [open_run(folder) for folder in (plain, made("e", {"horizon": 50}))]
    titles = [place.title for place in naming.places(runs)[0]]
    assert titles == ["Maze 10 × 10, horizon 100", "Maze 10 × 10, horizon 50"]
    assert naming.label_of("prime_no_gate") == "PRIME, gate off"
    assert naming.label_of("prime_relu") == "PRIME, ReLU embedding"


def test_ext_dqn_is_no_level_line(tmp_path):
    """Those are dotted on a page."""
    names = ("task_maze", "task_relu_maze", "rnd_maze")
    runs = [open_run(write_run(tmp_path / n, CELLS[n], np.zeros((2, 40)))) for n in names]
    dashes = [style.dash for style in naming.styles(runs, names, [0, 0, 0])]
    assert dashes[:2] == [(), ()] and dashes[2]


def test_seeds_whose_worlds_are_alike_are_found():
    """TwoWings has its noise on the left for even seeds and on the right for odd ones."""
    found = alike(make_world("two_wings"), (3, 4, 6, 9))
    assert [group["seeds"] for group in found] == [[0, 3], [1, 2]]
    assert alike(make_world("two_wings", noisy="left"), (3, 4)) == []
    assert alike(make_world("maze"), (0, 1, 2)) == [] and alike(None, (0, 1)) == []


def test_settings_an_old_run_does_not_give_are_named(tmp_path):
    folder = write_run(tmp_path / "task_maze", CELLS["task_maze"], np.zeros((2, 40)))
    content = json.loads((folder / "config.json").read_text())
    label = "settings missing from config.json, filled in with this version's defaults"
    assert label not in dict(facts.origin(open_run(folder)).facts)
    content["net"].pop("kernels")
    (folder / "config.json").write_text(json.dumps(content))
    named = dict(facts.origin(open_run(folder)).facts)
    assert named[label] == "net.kernels"


def test_plain_and_compressed_tables_that_may_differ_are_refused(tmp_path):
    folder = full_run(tmp_path)
    (folder / "episodes.csv.gz").write_bytes(b"")
    assert "is also there as episodes.csv.gz: remove one of them" in make([folder])


def test_settings_say_who_has_which_value(tmp_path):
    names = ("prime_maze", "prime_butterflies", "task_maze")
    runs = [open_run(write_run(tmp_path / n, CELLS[n], np.zeros((2, 40)))) for n in names]
    worlds = ["Maze", "Butterflies", "Maze"]
    found = {s.name: s for s in facts.settings(runs, list(names), worlds)}
    assert found["window"].values == (("1000", ""),) and not found["window"].is_varied
    assert found["world.name"].values == (("maze", "Maze"), ("butterflies", "Butterflies"))
    assert found["critics.heads"].values == (("5", "prime"), ("1", "task"))
    assert found["reward.heads"].only == "prime" and found["world.start"].only == "Butterflies"


# --- the page ----------------------------------------------------------------------------------


def test_the_same_folders_give_the_same_page_and_it_asks_for_nothing(whole):
    page = make([whole])
    assert page == make([whole]) == make([whole / "other", whole / "prime_maze"])
    links = set(re.findall(r"""(?:src|href)=["']([^"'#]*)""", page)) - {"", "data:,"}
    assert not links and set(re.findall('https?://[^"]*', page)) == {"http://www.w3.org/2000/svg"}
    assert page.startswith("<!doctype html>") and page.count("<script") == 2 + page.count(
        'id="data-'
    )
    for said in ("Maze 10 × 10", "PRIME", "Ext-DQN", "random walker", "0.0025", "primax train"):
        assert said in page
    assert "no maps.npz" in page and "no replays.jsonl" in page


def test_hostile_names_are_shown_and_not_run(tmp_path):
    folder = full_run(tmp_path)
    content = json.loads((folder / "config.json").read_text())
    content["method"] = content["world"]["odd"] = HOSTILE
    (folder / "config.json").write_text(json.dumps(content))
    (folder / "manifest.json").write_text(json.dumps({"parts": [{"command": HOSTILE}]}))
    odd = folder.rename(tmp_path / "<script>alert(1)<")
    page = make([odd, full_run(tmp_path / "two", "task_maze")])
    assert HOSTILE not in page and "<script>alert" not in page and "<img" not in page
    assert "&lt;script&gt;window.hacked=1" in page and "&lt;script&gt;alert(1)&lt;" in page


DAMAGE = {
    "config.json": ["{", "[]", "{}", '{"method": 1}', '{"method": "x", "world": {}, "seeds": ["a"]}'],
    "manifest.json": [None, "{", "[]", '{"parts": 3, "finished": 1}', '{"parts": [1, {}]}'],
    "episodes.csv": [None, "", "seed,step,score\n", "seed,step,score\n0,1\n", "a,b\n1,2\n",
                     "seed,step,score\n0,nan,x\n", "seed,step,score\n0,nan,1\n1,1,1\n2,1,1\n",
                     "seed,step\n0,1\n1,1\n2,1\n", "seed,step,score\n0,1,1\n9,1,1\n"],
    "windows.csv": [None, "", "seed,step,loss\n0,1,1\n1,1,inf\n2,1,nan\n", "\x00\x00\n"],
    "maps.npz": [None, "", "PK not a zip"],
    "replays.jsonl": [None, "", "{}\n", "[]\n", '{"seed": 0}\n', "not json\n"],
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGE)
def test_whatever_is_broken_there_is_a_page_and_it_says_so(tmp_path, name):
    """Beside a run that is whole; each time in another way."""
    folder, good = full_run(tmp_path), full_run(tmp_path / "good", "task_maze")
    before = (folder / name).read_bytes()
    for content in DAMAGE[name]:
        (folder / name).unlink(missing_ok=True)
        if content is not None:
            (folder / name).write_text(content)
        page = make([folder, good])
        assert "Ext-DQN" in page
        said = ("could not be read", "Not here", "Not finished", "manifest names no command")
        assert any(words in page for words in said), content
        assert name in page or name == "manifest.json", content
    (folder / name).write_bytes(before)
    assert "Not here" not in make([folder])


def test_a_run_that_goes_on_is_shown_as_far_as_it_is(tmp_path):
    """A last line that is half written, seeds of unequal length, no manifest's end, maps still raw."""
    folder = full_run(tmp_path)
    text = (folder / "episodes.csv").read_text()
    (folder / "episodes.csv").write_text("\n".join(text.split("\n")[:101]) + "\n0,33,34")
    (folder / "manifest.json").write_text('{"parts": []}')
    (folder / "maps.npz").unlink()
    drawn = {"visits": np.ones((3, 10, 10), np.int32)}
    rows = [records.map_rows((0, 1, 2), clock, drawn) for clock in (1_000, 2_000)]
    (folder / "maps.raw").write_bytes(b"".join(rows))
    page = make([folder])
    assert "unfinished" in page and "primax resume" in page and "3,300" in page
    assert '"hasMaps":true' in page and '"begins":[0,1000,2000]' in page


def test_of_many_runs_the_papers_own_come_first(tmp_path):
    """Eight of a world: by average within the paper's own, then the others; of seven all by average."""
    names = ("prime", "rnd", "smirl", "task", "moss", "s_adapt", "rnd_gamma", "task_relu")
    for i, name in enumerate(names):
        cell = CELLS[f"{name}_maze"]
        write_run(tmp_path / cell.name, cell, np.full((2, 40), i / 10))

    def order(page: str) -> list[str]:
        rows = re.findall(r'<tr(?: class="apart")?><th scope="(?:row|colgroup)".*?</th>', page)
        return [re.sub("<.*?>", "", row) for row in rows[: 1 + len(names)]]

    own, others = [3, 2, 1, 0], [7, 6, 5, 4]
    labels = [naming.label_of(name) for name in names]
    page = make([tmp_path])
    first, second = [[labels[i] for i in which] for which in (own, others)]
    assert order(page) == [*first, "Not in the paper", *second] and '"own":4' in page
    every = json.loads(page.split('id="index">')[1].split("</script>")[0])["runs"]
    assert [run["label"] for run in every] == [*first, *second]  # for every other list
    page = make([tmp_path / f"{name}_maze" for name in names[1:]])
    assert order(page)[:7] == labels[:0:-1] and '"own":7' in page


def test_one_seed_has_a_page_without_intervals(tmp_path):
    page = make([full_run(tmp_path, seeds=1)])
    assert "±" not in page.split("<tbody>")[1].split("</tbody>")[0]


def test_what_needs_no_learning_is_counted_apart(tmp_path):
    numbers = [Number(name, "tab:x", "w", "1", "1", "—", "reproduced") for name in ("d.x", "log5")]
    (tmp_path / "scorecard.csv").write_text(card.sheet(numbers).csv(), "utf-8")
    found = scorecards.read(tmp_path).scorecard
    assert found.counts == (("reproduced", 1), ("reproduced, without learning", 1))


def test_a_reproduction_has_its_scorecard_and_claims(tmp_path):
    home = reproduction(tmp_path / "made")
    full_run(home / "runs")
    page = make([home])
    assert "<h1>Reproduction of PRIME</h1>" in page and "at scale <code>smoke</code>" in page
    assert "1 of 2 runs are there. 1 of these runs are not at the paper&#39;s settings" in page
    head = re.sub(r"<[^>]*>", "", page.split("</header>")[0])
    assert "7 numbers beside the paper’s: reproduced 1, above 1," in head
    assert "2 sentences of the paper: holds 1, fails 1" in head and "1 of 2 runs are there" in head
    assert page.count("<tr data-verdict=") == 7 and page.count("<article data-verdict=") == 2
    assert "number &lt;0&gt;" in page and "PRIME" in page
    (home / "scorecard.csv").write_text("id,where\n1\n")
    (home / "claims.csv").unlink()
    page = make([home])
    assert "No scorecard:" in page and "primax reproduce --no-run --out" in page
    (home / "claims.csv").write_text("id,where,claim,ours\n1,2,3,4\n")
    assert "has no column it holds when" in make([home])


def test_a_second_column_is_on_the_page_and_called_a_fit(tmp_path):
    page = make([reproduction(tmp_path / "two", has_nearest=True)])
    plain = make([reproduction(tmp_path / "one")])
    body = page.split("</header>")[1]
    assert body.count(escape(NOTE)) == 2 and "a fit" not in plain
    head = re.sub(r"<[^>]*>", "", page.split("</header>")[0])
    assert "under the nearest reading, a fit: reproduced 1, above 1," in head
    assert "holds 1, fails 1; under the nearest reading, a fit: fails 1, not recorded 1" in head
    row = next(row for row in body.split("<tr ") if "number &lt;0&gt;" in row)
    verdicts = re.findall(r'class="verdict [^"]*">([^<]*)', row)
    assert verdicts == [VERDICTS[0], VERDICTS[-1]]
    assert 'data-label="nearest, a fit"><span>3.00<span class="under">[+1, +2]' in row
    assert "under the nearest reading, a fit: evidence of the fit" in body
    path = tmp_path / "two" / "claims.csv"
    path.write_text(path.read_text().replace("nearest: evidence", "other"))
    assert "has no column nearest: evidence" in make([tmp_path / "two"])


def test_runs_of_a_fit_are_called_so(tmp_path):
    folders = [full_run(tmp_path, name) for name in ("prime_maze", "prime_fit_maze")]
    assert escape(NOTE) in make(folders) and escape(NOTE) not in make(folders[:1])


def test_claims_that_fail_come_first_and_places_are_those_of_the_printed_paper():
    found = scorecards.read(PUBLISHED)
    rows = [*found.claims.rows, *found.scorecard.rows]
    verdicts = [row["verdict"] for row in found.claims.rows]
    assert list(dict.fromkeys(verdicts)) == ["fails", "holds", "cannot fail here"]
    assert verdicts == sorted(verdicts, key=["fails", "holds", "cannot fail here"].index)
    printed = re.compile(
        r"(Section \d(\.\d)?|Table \d|Appendix [A-D])(, Appendix A|, Section 6\.4)?"
    )
    assert all(printed.fullmatch(row["where"]) for row in rows)


def test_the_audit_is_a_matrix_of_runs_and_promises(tmp_path):
    """All of PRIME's, and of another method's the one that is not PRIME's alone."""
    folders = {"PRIME": full_run(tmp_path), "RND": full_run(tmp_path, "rnd_maze")}
    table = make(list(folders.values())).split('<table class="matrix">')[1].split("</table>")[0]
    heads = re.findall(r'<th scope="col" title="[^"]*">([^<]*)', table)
    rows = {re.findall(r"</i>(\w+)</th>", row)[0]: row for row in table.split("<tr>")[2:]}
    for name, folder in folders.items():
        cells = [re.findall(r'unseen">([^<]*)', cell) for cell in rows[name].split("<td>")[1:]]
        found = {head: cell[0] for head, cell in zip(heads, cells, strict=True) if cell}
        said = audited(open_run(folder)).rows
        assert found == {row.name.replace("_", " "): row.verdict for row in said}
        assert len(found) == (len(heads) if name == "PRIME" else 1)
    assert len(heads) == 8 and "fails" in rows["PRIME"] and "v-bad" in rows["PRIME"]


def test_no_line_ends_inside_a_name():
    assert unbroken("Ext-DQN < 2.0e-05 on 10 × 10") == (
        '<span class="unbroken">Ext-DQN</span> &lt; 2.0e-05 on <span class="unbroken">10 × 10</span>'
    )


def test_a_reproduction_without_runs_says_so(tmp_path):
    page = make([reproduction(tmp_path / "made")])
    assert "There are no runs here." in page and "number &lt;0&gt;" in page


# --- the command -------------------------------------------------------------------------------


def refused(capsys, *args: object) -> str:
    assert main(["report", *map(str, args)]) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1 and captured.err.startswith("primax: ")
    return captured.err


def test_the_command_writes_a_page_and_says_where(capsys, whole, tmp_path):
    out = tmp_path / "page.html"
    assert main(["report", str(whole), "--out", str(out)]) == 0
    assert str(out) in capsys.readouterr().out and out.read_text().endswith("</html>\n")


def test_the_command_names_what_is_missing_or_broken(capsys, tmp_path):
    folder = full_run(tmp_path)
    packed = bz2.compress((folder / "episodes.csv").read_bytes())
    (folder / "episodes.csv").unlink()
    (folder / "episodes.csv.bz2").write_bytes(packed[: len(packed) // 2])
    (folder / "windows.csv").unlink()
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "config.json").write_text("{")
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "page.html")]) == 0
    said = capsys.readouterr().out.splitlines()[1:-1]
    begins = ("x: not shown: ", "prime_maze: no episodes: ", "prime_maze: no windows, audit: ")
    assert len(said) == 3 and all(map(str.startswith, said, begins)), said


def test_bad_input_is_one_line(capsys, whole, tmp_path):
    assert "is not a folder" in refused(capsys, tmp_path / "nowhere")
    assert "holds no run" in refused(capsys, tmp_path)
    assert "cannot write" in refused(capsys, whole, "--out", tmp_path)
    assert "cannot write" in refused(capsys, whole, "--out", tmp_path / "no" / "page.html")
    (tmp_path / "config.json").write_text("{")
    assert "cannot be shown" in refused(capsys, tmp_path)


def test_a_folder_given_twice_is_shown_once(whole):
    found = sources.find([whole, whole / "other", whole / "prime_maze" / ".." / "other"])
    assert [path.name for path in found.runs] == ["other", "prime_maze"]
