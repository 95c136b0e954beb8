"""The page in a browser: drawn without an error or a request, and everything on it works.

Without Chromium these tests are skipped; with PRIMAX_BROWSER=required that is a failure.
"""

import csv
import json
import os
import shutil
import struct
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn
from xml.etree import ElementTree

import numpy as np
import pytest
from playwright.sync_api import Error, Page, sync_playwright
from report_case import HOSTILE, PARTS, full_run, maps, reproduction
from test_paper_case import plausible, write_run

from primax.paper.experiments import CELLS
from primax.report import make
from primax.runs import npz
from primax.worlds import make_world

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
HELP = "no Chromium to open the page with: apt-get install chromium"


def without(reason: str) -> NoReturn:
    """Nothing can be opened: that is a failure only where a browser was promised."""
    stop = pytest.fail if os.environ.get("PRIMAX_BROWSER") == "required" else pytest.skip
    stop(reason)


@pytest.fixture(scope="module")
def browser():
    found = next((path for path in map(shutil.which, NAMES) if path), None) or without(HELP)
    # A sandbox cannot be had as root, nor shared memory in many a container.
    flags = ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        try:
            opened = playwright.chromium.launch(executable_path=found, args=flags)
        except Error as error:
            without(f"{found} does not start: {str(error).splitlines()[0]}")
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    """A reproduction, under both readings, with three runs: one whole, one without maps, one with
    hostile names."""
    home = reproduction(tmp_path_factory.mktemp("page") / "made", has_nearest=True)
    prime = full_run(home / "runs")
    lines = [json.loads(line) for line in (prime / "replays.jsonl").read_text().splitlines()]
    scored = [line | {"score": 1.0 + (line["seed"] == 1)} for line in lines]
    (prime / "replays.jsonl").write_text("".join(json.dumps(line) + "\n" for line in scored))
    drawn = dict(npz.read(prime / "maps.npz"))
    for part in PARTS:
        drawn[part][-1, 1, 0, 1] = np.nan  # where seed 1 is after its first step
    (prime / "maps.npz").write_bytes(npz.to_bytes(drawn.items()))
    scores, windows, columns = plausible(CELLS["task_butterflies"])
    write_run(home / "runs" / "x", CELLS["task_butterflies"], scores, windows, **columns)
    odd = full_run(home / "other", "task_maze").rename(home / "runs" / "<script>alert(1)<")
    content = json.loads((odd / "config.json").read_text()) | {"method": HOSTILE}
    (odd / "config.json").write_text(json.dumps(content))
    path = home / "page.html"
    path.write_text(make([home]))
    return path


class Visit:
    """A page that was opened, with what it complained of and asked for."""

    def __init__(self, browser, path: Path, **options):
        self.context = browser.new_context(
            **({"viewport": {"width": 1280, "height": 900}} | options)
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(10_000)
        self.said: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self._ask(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-ready]", state="attached")
        assert self.said[0] == path.as_uri()
        self.said = self.said[1:]

    def _ask(self, url: str) -> None:
        if not url.startswith("data:"):  # which asks nobody
            self.said.append(url)

    def scroll(self) -> None:
        """Past everything, so that everything is drawn."""
        height = self.page.evaluate("document.documentElement.scrollHeight")
        for top in range(0, height, 700):
            self.page.evaluate(f"scrollTo({{top: {top}, behavior: 'instant'}})")
            self.page.wait_for_timeout(20)

    def painted(self, selector: str) -> str:
        """What a canvas shows."""
        return self.page.eval_on_selector(selector, "node => node.toDataURL()")

    def colours(self, selector: str) -> int:
        """How many different ones."""
        script = """node => { const d = node.getContext('2d').getImageData(0, 0, node.width, node.height).data;
            const seen = new Set(); for (let i = 0; i < d.length; i += 4) seen.add(d[i] << 24 | d[i+1] << 16 | d[i+2] << 8 | d[i+3]);
            return seen.size; }"""
        return self.page.eval_on_selector(selector, script)


@pytest.fixture(scope="module")
def visit(browser, written):
    found = Visit(browser, written)
    found.scroll()
    yield found
    assert found.said == [], "the page complained, or asked for something"
    found.context.close()


def test_everything_is_drawn_without_a_word(visit):
    for selector in (
        "#charts canvas",
        "#strips canvas",
        "#map-panels canvas",
        "#stage",
        ".spark canvas",
    ):
        assert visit.page.locator(selector).count() and visit.colours(selector) > 2, selector
    assert visit.page.locator("#dots circle").count() == 3 * 3
    assert visit.page.locator("#map-panels figure").count() == 6
    assert visit.said == []


def test_hostile_names_are_text(visit):
    assert visit.page.evaluate("window.hacked") is None
    assert visit.page.locator("#runs th", has_text="<img src=x").count() == 1
    assert visit.page.locator(".chip", has_text=HOSTILE).count() == 1
    assert visit.page.locator("#settings pre", has_text="primax train task_maze").count() == 1
    assert visit.page.locator("img").count() == 0


def test_no_script_but_ours_can_run(visit):
    """The policy names our script by its hash: one that slipped in would not be run."""
    script = "const s = document.createElement('script'); s.textContent = 'window.hacked = 3'; document.body.append(s); s.remove()"
    visit.page.evaluate(script)
    assert visit.page.evaluate("window.hacked") is None
    refusal = visit.said.pop()
    assert "Content Security Policy" in refusal


def test_curves_answer_to_every_control(visit):
    page = visit.page
    seen = {visit.painted("#charts canvas")}
    for act in (
        lambda: page.select_option("#band", "range"),
        lambda: page.select_option("#band", "none"),
        lambda: page.check("#each-seed"),
        lambda: page.uncheck("#level-lines"),
        lambda: page.select_option("#quantity", "windows:loss"),
        lambda: page.uncheck("#log-scale"),
        lambda: page.select_option("#quantity", "episodes:coverage"),
        lambda: page.locator("#charts .chip input").first.click(),
    ):
        act()
        now = visit.painted("#charts canvas")
        assert now not in seen
        seen.add(now)
    page.locator("#charts .chip input").first.click()
    page.select_option("#quantity", "windows:v_epi")
    assert "did not record it: Ext-DQN" not in page.locator(".message").first.inner_text()
    page.select_option("#quantity", "episodes:score")
    page.check("#level-lines")


def test_a_chart_is_read_by_pointer_and_by_keyboard(visit, written):
    page = visit.page
    chart = page.locator(".chart canvas[tabindex]").nth(1)
    chart.scroll_into_view_if_needed()
    chart.hover(position={"x": 200, "y": 100})
    tip = page.locator(".chart .tip").nth(1)
    assert tip.is_visible() and "step" in tip.inner_text() and "±" in tip.inner_text()
    chart.focus()
    page.keyboard.press("End")
    index = json.loads(page.locator("#index").text_content() or "")
    place = next(p for p in index["places"] if p["title"].startswith("Butterflies"))
    last = index["runs"][place["runs"][0]]["summaries"]["last"]["mean"]
    shown = page.locator(".chart .tip", has_text="step 20,000")
    assert f"{last:.2f}" in shown.inner_text()
    page.keyboard.press("ArrowLeft")
    assert "step 19,800" in page.locator(".chart .tip:visible").inner_text()


def test_a_band_is_told_from_those_it_overlaps(visit):
    """Whoever is pointed at, in the list or on the chart, stands out; it has edges, dashed as its line."""
    page, chart = visit.page, page_chart(visit, "Maze")
    canvas = chart.locator("canvas[tabindex]")
    page.uncheck("#each-seed")
    page.select_option("#band", "std")
    page.locator("h1").hover()
    painted = [canvas.evaluate("node => node.toDataURL()")]
    for chip in chart.locator(".chip").all():
        chip.hover()
        painted.append(canvas.evaluate("node => node.toDataURL()"))
    page.locator("h1").hover()
    assert len(set(painted)) == 3 and canvas.evaluate("node => node.toDataURL()") == painted[0]
    dashes = page.evaluate("""() => {
        const place = P.index.places.find((p) => p.title.startsWith('Maze')), svg = P.chartPicture(place, new Set(place.runs));
        return [...svg.querySelectorAll('path')].filter((n) => n.getAttribute('stroke-width') === '0.8').map((n) => n.getAttribute('stroke-dasharray'));
    }""")
    assert len(dashes) == 4 and len(set(dashes)) == 2  # two edges each, a dash each


def page_chart(visit, title: str):
    return visit.page.locator("#charts .chart", has_text=title).first


@pytest.mark.parametrize(
    "what", ["#charts .chart", "#dots .chart", "#strips", "#map-view", "#replay-view"]
)
def test_every_chart_is_saved_as_svg_png_and_csv(visit, what, tmp_path):
    page, menu = visit.page, visit.page.locator(f"{what} .save").first
    page.select_option("#measure", "average")
    saved = {}
    for kind, begin in (("SVG", b"<svg"), ("PNG", b"\x89PNG"), ("CSV", b"")):
        menu.locator("summary").click()
        with page.expect_download() as waiting:
            menu.get_by_text(kind, exact=True).click()
        waiting.value.save_as(tmp_path / kind)
        assert waiting.value.suggested_filename.endswith(f".{kind.lower()}")
        saved[kind] = (tmp_path / kind).read_bytes()
        assert saved[kind].startswith(begin) and not menu.locator("button").first.is_visible()
    drawn = ElementTree.fromstring(saved["SVG"])
    texts = [node.text for node in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert len(texts) > 3 and len(saved["PNG"]) > 5_000
    width, height = struct.unpack(">II", saved["PNG"][16:24])
    assert (width, height) == (2 * float(drawn.attrib["width"]), 2 * float(drawn.attrib["height"]))
    table = list(csv.DictReader(saved["CSV"].decode().splitlines()))
    assert len(table) >= 3 and all(None not in row.values() for row in table)
    index = json.loads(page.locator("#index").text_content() or "")
    averages = {run["label"]: run["measures"]["average"] for run in index["runs"]}
    if what == "#dots .chart":
        assert all(
            float(row["average"]) == averages[row["method"]][int(row["seed"])] for row in table
        )
    if what == "#replay-view":  # east, then south, over and over
        assert [row["action"] for row in table[:3]] == ["east", "south", "east"]
        assert (table[1]["row"], table[1]["column"]) == ("0", "1")
    if what == "#charts .chart":
        seeds = [float(table[-1][f"seed {s}"]) for s in range(3)]
        assert float(table[-1]["mean"]) == pytest.approx(np.mean(seeds), rel=1e-4)
        assert table[-1]["step"] == "20000"


def test_seeds_change_with_the_measure(visit):
    before = visit.page.locator("#dots svg").first.inner_html()
    visit.page.select_option("#measure", "peak")
    assert visit.page.locator("#dots svg").first.inner_html() != before


def test_the_scorecard_is_filtered_by_word_verdict_and_place(visit):
    page = visit.page
    rows = "[data-filtered='scorecard-1'] tbody tr:visible"
    shown = page.locator("[data-filters='scorecard-1'] .shown")
    assert page.locator(rows).count() == 7 and shown.inner_text() == "7 of 7 numbers"
    page.fill("[data-filters='scorecard-1'] [data-words]", "number <3>")
    assert page.locator(rows).count() == 1 and shown.inner_text() == "1 of 7 numbers"
    page.fill("[data-filters='scorecard-1'] [data-words]", "")
    page.uncheck("[data-filters='scorecard-1'] [data-verdict='reproduced']")
    assert page.locator(rows).count() == 6
    page.select_option("[data-filters='claims-1'] [data-where]", "sec:1")
    assert page.locator("[data-filtered='claims-1'] article:visible").count() == 1
    page.check("[data-filters='settings'] [data-varied]")
    assert 0 < page.locator("[data-filtered='settings'] tbody tr:visible").count() < 30


def test_the_slider_moves_the_maps_and_a_cell_is_read(visit):
    page = visit.page
    assert page.locator("#map-when").inner_text() == "steps 19,001 to 20,000"  # the end
    page.select_option("#map-seed", "2")  # the second: 0.1 above the first in every part
    page.locator("#map-at").focus()
    page.keyboard.press("End")
    assert page.locator("#map-when").inner_text() == "steps 19,001 to 20,000"
    page.locator("#map-panels canvas[tabindex]").nth(1).focus()
    page.keyboard.press("ArrowRight")
    text = page.locator("#map-read").inner_text()
    assert text.startswith("row 0, column 0: visits ") and "V_epi 19.10" in text
    page.click("#map-back")
    assert page.locator("#map-when").inner_text() == "steps 18,001 to 19,000"
    assert "V_epi 18.10" in page.locator("#map-read").inner_text()
    page.keyboard.press("ArrowRight")


def test_a_map_is_read_at_the_pointer_and_has_its_own_scale_until_a_common_one_is_chosen(visit):
    page = visit.page
    page.select_option("#map-seed", "0")
    page.locator("#map-at").focus()
    page.keyboard.press("End")
    visits, ramp = page.locator("#map-panels canvas[tabindex]").first, ".ramp span"
    visits.hover(position={"x": 5, "y": 5})
    tip = page.locator("#map-panels .tip")
    shown = tip.inner_text().split()
    assert shown[:5] == ["row", "0,", "column", "0", "visits"]
    own = page.locator("#map-panels figure").first.locator(ramp).all_inner_texts()
    assert shown[5] == f"{own[0]}%"  # the fewest are on the left
    box, under = visits.bounding_box(), tip.bounding_box()
    assert box and under and 0 < under["x"] - box["x"] < 60 and under["y"] - box["y"] < 20
    parts = page.locator("#map-panels figure").nth(1).locator(ramp)
    assert parts.all_inner_texts() == ["19.10", "19.10"]  # the mean of three seeds, all cells alike
    page.check("#map-fixed")
    assert parts.all_inner_texts() == ["1.00", "19.20"]  # every window and seed
    page.uncheck("#map-fixed")
    page.locator("#map-when").hover()
    assert not tip.is_visible()


def test_worlds_that_differ_by_seed_are_not_averaged_unasked(browser, tmp_path):
    """Noise is on the left of even seeds: 19.0 and 19.2 there, 19.1 in the odd one."""
    folder, world = full_run(tmp_path), make_world("two_wings")
    content = json.loads((folder / "config.json").read_text())
    options = json.loads(json.dumps(asdict(world.config)))
    (folder / "config.json").write_text(
        json.dumps(content | {"world": {"name": "two_wings"} | options})
    )
    drawn = maps(world, 3, 200)
    (folder / "maps.npz").write_bytes(npz.to_bytes(drawn.items()))
    (tmp_path / "page.html").write_text(make([folder, full_run(tmp_path, "rnd_maze")]))
    found = Visit(browser, tmp_path / "page.html")
    found.scroll()
    page, said = found.page, "#map-differs"
    for other in ("RND · Maze 10 × 10", "PRIME · Two Wings 3 × 10"):
        page.select_option("#map-run", label=other)  # the mean there is no mean to show here
    choices = page.locator("#map-seed option").all_inner_texts()
    assert choices[0] == "mean of seeds 0, 2: one world"
    assert choices[-1] == "mean of 3, whose worlds differ" and len(choices) == 5
    page.locator("#map-panels canvas[tabindex]").first.hover(position={"x": 5, "y": 5})
    assert "V_epi 19.10" in page.locator("#map-read").inner_text()
    assert page.input_value("#map-seed") == "1,3" and not page.locator(said).is_visible()
    page.select_option("#map-seed", index=len(choices) - 1)
    assert page.locator(said).is_visible() and found.said == []
    found.context.close()


def test_the_player_plays_pauses_steps_and_names_the_parts(visit):
    page = visit.page
    assert page.input_value("#replay-seed") == "1"  # the highest score, and of equals the latest
    assert page.locator("#replay-episode option:checked").inner_text().startswith("199 ")
    assert "0 of 100" in page.locator("#replay-facts").inner_text()
    assert "east" in page.locator("#replay-facts").inner_text()
    first = visit.painted("#stage")
    page.click("#replay-next")
    assert "1 of 100" in page.locator("#replay-facts").inner_text()
    assert visit.painted("#stage") != first
    assert page.locator("#replay-lack").is_visible()
    assert "no data" in page.locator("#replay-parts").inner_text()
    page.click("#replay-back")
    assert not page.locator("#replay-lack").is_visible()
    assert visit.painted("#stage") == first
    page.select_option("#replay-speed", "30")
    page.click("#replay-play")
    assert page.locator("#replay-play").inner_text() == "Pause"
    while int(page.input_value("#replay-at")) < 3:
        page.wait_for_timeout(30)
    page.click("#replay-play")
    at = page.input_value("#replay-at")
    page.wait_for_timeout(120)
    assert (
        page.input_value("#replay-at") == at and page.locator("#replay-play").inner_text() == "Play"
    )
    parts = page.locator("#replay-parts .part")
    assert parts.count() == 5 and "19." in parts.first.inner_text()
    assert "maps.npz" in page.locator("#replay-why").inner_text()


def test_colours_follow_the_system_and_the_button(browser, written):
    dark = Visit(browser, written, color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark.scroll()
    night, chart = dark.page.evaluate(ground), dark.painted("#charts canvas")
    corner = """node => { const one = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
        one.drawImage(node, node.width - 9, 9, 1, 1, 0, 0, 1, 1); return Math.max(...one.getImageData(0, 0, 1, 1).data.slice(0, 3)); }"""
    assert dark.page.eval_on_selector("#stage", corner) < 80  # a floor cell of the board
    dark.page.click("#theme")
    assert dark.page.eval_on_selector("#stage", corner) > 200
    assert dark.page.evaluate(ground) != night and dark.painted("#charts canvas") != chart
    dark.page.click("#theme")
    assert dark.page.evaluate(ground) == night
    dark.page.emulate_media(color_scheme="light")
    assert dark.page.evaluate(ground) == night  # the button goes before the system
    dark.page.click("#theme")
    assert dark.page.evaluate(ground) != night
    assert dark.said == []
    dark.context.close()


def test_a_phone_shows_it_all_without_scrolling_sideways(browser, written):
    phone = Visit(browser, written, viewport={"width": 390, "height": 844}, has_touch=True)
    phone.scroll()
    assert phone.page.evaluate("document.documentElement.scrollWidth") == 390
    inside = "nodes => nodes.every(n => n.getBoundingClientRect().right <= 390)"
    assert phone.page.eval_on_selector_all(".settings .val", inside)
    for selector in ("#charts canvas", "#map-panels canvas", "#stage"):
        assert phone.colours(selector) > 1
    small = phone.page.eval_on_selector_all(
        "button, select, input[type=search]",
        "nodes => nodes.filter(n => n.offsetParent && n.getBoundingClientRect().height < 28 && !n.closest('legend')).length",
    )
    assert small == 0 and phone.said == []
    phone.context.close()


TOP = "id => document.querySelector(`#${id} h2`).getBoundingClientRect().top"


@pytest.mark.slow
@pytest.mark.parametrize("size", [(1280, 900), (390, 844)])
def test_a_link_leads_to_its_heading(browser, written, size):
    """On pages of which only the first screen is drawn yet: by every link, and by the address."""
    context = browser.new_context(viewport=dict(zip(("width", "height"), size, strict=True)))

    def opened(address: str) -> Page:
        page = context.new_page()
        page.goto(address)
        page.wait_for_selector("html[data-ready]", state="attached")
        return page

    direct = opened(f"{written.as_uri()}#replays")
    names = direct.eval_on_selector_all(".links a", "all => all.map(link => link.hash.slice(1))")
    assert len(names) == 10
    pages = {name: opened(written.as_uri()) for name in names}
    for name, page in pages.items():
        page.eval_on_selector(f".links a[href='#{name}']", "link => link.click()")
    found, before = [direct.evaluate(TOP, "replays")], None
    while found != before:  # they scroll smoothly, all at once
        direct.wait_for_timeout(300)
        before, found = found, [page.evaluate(TOP, name) for name, page in pages.items()]
    found.append(direct.evaluate(TOP, "replays"))
    off = {name: top for name, top in zip([*names, "direct"], found, strict=True) if top > 100}
    assert not off and min(found) > 46
    context.close()


def test_every_control_has_a_name_and_can_be_reached(visit):
    nameless = visit.page.eval_on_selector_all(
        "button, select, input, canvas[tabindex], [role=region]",
        """nodes => nodes.filter(n => !(n.getAttribute('aria-label') || n.labels?.[0]?.textContent.trim()
            || n.textContent.trim())).map(n => n.outerHTML)""",
    )
    assert nameless == []
    named = visit.page.eval_on_selector_all(
        "#charts legend button", "nodes => nodes.map(n => n.getAttribute('aria-label'))"
    )
    assert len(set(named)) == len(named)
    visit.page.locator("#theme").focus()
    visit.page.keyboard.press("Tab")
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert visit.page.evaluate(outline) != "none"


@pytest.mark.slow
def test_a_page_of_scraps_opens_without_a_word(browser, tmp_path):
    """No episodes; one seed and one episode; no score in any; no windows and no maps; nothing but noise."""
    for name in ("prime_maze", "rnd_maze"):
        (full_run(tmp_path, name) / "episodes.csv").unlink()
    write_run(tmp_path / "task_maze", CELLS["task_maze"], np.zeros((1, 1)))
    write_run(tmp_path / "moss_maze", CELLS["moss_maze"], np.full((2, 40), np.nan))
    for name in ("windows.csv", "maps.npz"):
        (full_run(tmp_path, "prime_butterflies") / name).unlink()
        shutil.move(tmp_path / "prime_butterflies", tmp_path / f"without_{name}")
    path = tmp_path / "page.html"
    path.write_text(make([tmp_path]))
    found = Visit(browser, path)
    found.scroll()
    for select in ("#quantity", "#measure", "#map-run", "#replay-run"):
        for value in found.page.eval_on_selector_all(
            f"{select} option", "all => all.map(o => o.value)"
        ):
            found.page.select_option(select, value)
    assert found.said == []
    found.context.close()


@pytest.mark.long
def test_forty_runs_open_within_two_seconds(browser, tmp_path):
    """15 seeds, 2,500 episodes, maps and replays: under 10 MB."""
    for name in [*CELLS][:40]:
        full_run(tmp_path / "runs", name, seeds=15, episodes=2_500)
    path = tmp_path / "page.html"
    said: list[str] = []
    path.write_text(make([tmp_path / "runs"], said.append))
    assert said == ["reading 40 runs …"]  # and nothing is missing
    size, began = path.stat().st_size, time.monotonic()
    found = Visit(browser, path)
    seconds = time.monotonic() - began
    sys.stdout.write(f"{size / 1e6:.2f} MB, {seconds:.2f} s\n")
    assert size < 10e6 and seconds < 2 and found.said == []
    found.context.close()
