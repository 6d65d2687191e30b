# SPDX-License-Identifier: Apache-2.0
"""The page of `leat view` in a real browser: scroll, filter, click, similar, edit a selection. Needs Chromium.
LEAT_SCREENSHOTS=FOLDER keeps pictures of the page."""

from __future__ import annotations

import os

import numpy as np
import pytest

import leat
from browser import PROGRAM, Browser
from conftest import jpeg
from test_view import HOSTILE
from view_server import View

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="Chromium is not installed")

ROWS = 3000
LOADED = "[...document.querySelectorAll('.cell img')].length > 0 && [...document.querySelectorAll('.cell img')].every(i => i.naturalWidth)"
KEYS = "[...document.querySelectorAll('.cell')].map(c => c.title)"


@pytest.fixture(scope="module")
def browser():
    b = Browser()
    yield b
    b.close()


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """3,000 images of 12 colours in clusters of the same colour, with vectors and duplicates as columns."""
    folder = tmp_path_factory.mktemp("many")
    path, beside = str(folder / "many.leat"), str(folder / "beside.leat")
    rng = np.random.default_rng(3)
    files = [jpeg(rng, 48, 40) for _ in range(12)]
    with leat.Writer(path, {"image": "image", "label": int, "score": float}, sync=False,
                     classes={"label": [f"kind {i}" for i in range(12)]}) as w:
        for i in range(ROWS):
            w.append({"image": files[i % 12], "label": i % 12, "score": float(ROWS - i)}, key=f"dir/{i:06d}.jpg")
    fingerprint = f"{leat.open(path).fingerprint:016x}"
    centres = rng.normal(size=(12, 8))
    with leat.Writer(beside, {"vector": ("float32", (8,)), "cluster": int}, sync=False,
                     provenance={"fingerprint": fingerprint}) as w:
        for i in range(ROWS):
            vector = centres[i % 12] + 0.01 * rng.normal(size=8)
            w.append({"vector": vector.astype(np.float32), "cluster": i // 2 if i < 40 else -1}, key=f"dir/{i:06d}.jpg")
    return path, beside, str(folder / "chosen.leat")


@pytest.fixture
def page(browser, many):
    path, beside, save = many
    with View(path, "--save", save, "--with", beside) as v:
        browser.problems.clear()
        browser.open(v.url)
        browser.wait(LOADED)
        yield browser, v
        browser.drain()
        browser.open("about:blank")
        assert browser.problems == []


def shot(browser, name):
    folder = os.environ.get("LEAT_SCREENSHOTS")
    if folder:
        browser.screenshot(os.path.join(folder, name + ".png"))


def place(browser, selector):
    return browser.value(f"(() => {{ const r = document.querySelector({selector!r}).getBoundingClientRect();"
                         "return [r.left + r.width / 2, r.top + r.height / 2, r.width, r.height, r.left, r.top]; })()")


def choose(browser, name, value):
    browser.value(f"$({name!r}).value = {value!r}; $({name!r}).dispatchEvent(new Event('change'))")


def test_scrolling_shows_the_rows_below(page):
    browser, _ = page
    assert browser.value("document.querySelectorAll('.cell').length") < 200  # of 3,000
    assert browser.value(KEYS)[0] == "dir/000000.jpg"
    x, y = place(browser, "#scroller")[:2]
    browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=4000)
    browser.wait(f"{KEYS}.every(k => k > 'dir/000020.jpg') && {LOADED}")
    browser.value("$('scroller').scrollTop = 1e9")
    browser.wait(f"{KEYS}.includes('dir/{ROWS - 1:06d}.jpg') && {LOADED}")
    assert browser.value("document.querySelectorAll('.cell').length") < 200
    shot(browser, "scrolled")


def test_the_scroll_bar_is_a_scale_where_a_page_cannot_be_so_tall(page):
    browser, _ = page
    browser.value("list.most = 5000; layout()")  # a low limit in place of the browser's
    assert browser.value("$('spacer').clientHeight") == 5000
    x, y = place(browser, "#scroller")[:2]
    browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=500)
    browser.wait("list.offset === 500")  # the wheel moves by pixels, not by the scale
    browser.value("$('scroller').scrollTop = 1e9")
    browser.wait(f"{KEYS}.includes('dir/{ROWS - 1:06d}.jpg') && {LOADED}")
    browser.key("Home", 36)
    browser.wait(f"{KEYS}[0] === 'dir/000000.jpg' && list.offset === 0 && {LOADED}")
    browser.key("End", 35)
    browser.wait(f"{KEYS}.includes('dir/{ROWS - 1:06d}.jpg') && cursor === {ROWS - 1} && {LOADED}")
    browser.value("$('scroller').scrollTop = 2500")
    browser.wait(f"{KEYS}.some(k => k > 'dir/001400.jpg' && k < 'dir/001900.jpg') && {LOADED}")


def test_sorting_searching_and_histograms_filter(page):
    browser, _ = page
    choose(browser, "sort", "score")
    browser.wait(f"{KEYS}[0] === 'dir/{ROWS - 1:06d}.jpg' && {LOADED}")
    browser.key("/", 191, "/")
    assert browser.value("document.activeElement.id") == "search"
    for c in "0012":
        browser.key(c, ord(c), c)
    found = sum("0012" in f"{i:06d}" for i in range(ROWS))
    browser.wait(f"$('count').textContent.startsWith('{found} of 3,000')")
    browser.value("$('search').value = ''; $('search').dispatchEvent(new Event('input'))")
    browser.wait("$('count').textContent.startsWith('3,000')")
    browser.key("Escape", 27)
    choose(browser, "column", "score")
    browser.wait("bars.data")
    left, top, width, height = (place(browser, "#bars")[i] for i in (4, 5, 2, 3))
    browser.drag(left + 0.25 * width, top + height / 2, left + 0.5 * width, top + height / 2)
    count = browser.wait("!$('count').textContent.startsWith('3,000') && matched")
    assert 700 < count < 800
    shot(browser, "histogram")
    choose(browser, "column", "label")
    browser.wait("$('values').children.length === 12")
    browser.value("$('values').querySelector('button').click()")
    browser.wait("matched > 50 && matched < 70")
    assert browser.value("$('chips').children.length") == 2


def test_a_click_opens_a_sample_and_its_similar_images(page):
    browser, _ = page
    x, y = place(browser, ".cell:nth-child(3)")[:2]
    browser.click(x, y - 20)
    browser.wait("!$('sample').hidden && document.querySelectorAll('#near .cell').length === 40")
    assert "dir/000002.jpg" in browser.value("$('sample').innerText")
    rows = browser.value("[...document.querySelectorAll('#near .cell')].map(c => Number(c.dataset.row))")
    assert all(r % 12 == 2 for r in rows)
    browser.wait("document.querySelector('#sample .big img').naturalWidth === 48")
    shot(browser, "sample")
    browser.key("ArrowRight", 39)
    browser.wait("$('sample').innerText.includes('dir/000003.jpg')")
    browser.key("Escape", 27)
    browser.wait("$('sample').hidden")
    browser.key("ArrowDown", 40)
    browser.key("Enter", 13)
    browser.wait("!$('sample').hidden")
    browser.key("Escape", 27)


def test_a_selection_is_edited_by_keys_and_clicks(page):
    browser, view = page
    browser.key("Home", 36)
    browser.key(" ", 32, " ")
    browser.wait("$('count').textContent.endsWith('1 selected')")
    browser.key("ArrowRight", 39)
    browser.key("ArrowRight", 39)
    browser.key(" ", 32, " ")
    x, y = place(browser, ".cell:nth-child(5)")[:2]
    browser.click(x, y - 20, modifiers=2)
    browser.wait("$('count').textContent.endsWith('3 selected')")
    assert browser.value("document.querySelectorAll('.cell.chosen').length") == 3
    browser.value("$('only').click()")
    browser.wait(f"matched === 3 && {KEYS}.join() === 'dir/000000.jpg,dir/000002.jpg,dir/000004.jpg'")
    shot(browser, "selection")
    browser.value("$('save').click()")
    browser.wait("$('note').textContent.includes('3 images saved to')")
    path = browser.value("$('note').textContent").split(" saved to ")[1]
    assert np.flatnonzero(leat.open(path).column("selected")).tolist() == [0, 2, 4]
    assert view.get("facts")["selected"] == 3


def test_select_all_says_how_many_images_pass_the_filters(page):
    browser, view = page
    browser.wait("$('all').textContent === 'select all 3,000'")
    browser.key("d", 68, "d")
    browser.wait("view === 'groups' && matched === 20 && $('all').textContent === 'select all 3,000'")
    browser.value("condition('label', { in: [3] })")
    browser.wait("$('all').textContent === 'select all 250'")
    browser.value("$('all').click()")
    browser.wait("facts.selected === 250")
    assert view.get("facts")["selected"] == 250


def test_groups_and_the_map(page):
    browser, view = page
    browser.key("d", 68, "d")
    browser.wait("view === 'groups' && document.querySelectorAll('.group .cell').length >= 8")
    assert browser.value("$('group-column').value") == "cluster" and browser.value("matched") == 20
    first = browser.value("[...document.querySelector('.group').querySelectorAll('.cell')].map(c => c.title)")
    assert first == ["dir/000000.jpg", "dir/000001.jpg"]
    assert browser.value("document.querySelector('header').clientHeight") < 50  # one line
    shot(browser, "groups")
    browser.key("m", 77, "m")
    browser.wait("view === 'map' && map.rows && map.rows.length === 3000")
    assert browser.value("['sort-by', 'way', 'size-of', 'empty'].every(id => $(id).hidden) && !$('map-of').hidden")
    assert browser.value("document.querySelector('header').clientHeight") < 50  # one line
    assert browser.value("$('map-colour').value") == "label"
    assert browser.value("new Set(map.tint).size") == 12 and browser.value("map.tint[0] === map.tint[12]")
    shot(browser, "map")
    point = browser.value("(() => { const r = $('map').getBoundingClientRect(), p = at(map.rows.indexOf(7));"
                          "return [r.left + p[0], r.top + p[1]]; })()")
    browser.drag(point[0] - 8, point[1] - 8, point[0] + 8, point[1] + 8, modifiers=8)
    browser.wait("facts.selected > 0")
    rows = [r["row"] for r in view.get("rows", q={"where": [{"selected": True}]}, count=2000)["rows"]]
    assert 7 in rows and len(rows) >= 250  # its whole kind is in one place
    browser.click(*point)
    browser.wait("!$('sample').hidden")
    browser.key("Escape", 27)
    assert browser.value("map.rows = null, loadMap(), !$('empty').hidden && $('empty').textContent") == "computing the map …"
    browser.wait("map.rows && $('empty').hidden")
    browser.key("g", 71, "g")
    browser.wait("view === 'grid' && !$('sort-by').hidden && !$('size-of').hidden")


def test_hostile_names_stay_text(browser, tmp_path):
    path = str(tmp_path / "hostile.leat")
    rng = np.random.default_rng(1)
    with leat.Writer(path, {"image": "image", "label": int, "caption": str}, sync=False,
                     classes={"label": ["<img src=x onerror=window.bad=1>", "plain"]}) as w:
        for i, key in enumerate(HOSTILE):
            w.append({"image": jpeg(rng, 40, 30), "label": i % 2, "caption": "<script>window.bad=2</script>"}, key=key)
    with View(path) as v:
        browser.problems.clear()
        browser.open(v.url)
        browser.wait(LOADED)
        assert browser.value(KEYS) == HOSTILE
        for column in ("label", "caption"):
            choose(browser, "column", column)
            browser.wait("$('values').children.length > 0")
        browser.key("Enter", 13)
        browser.wait("!$('sample').hidden && $('sample').innerText.includes('<script>window.bad=2</script>')")
        shot(browser, "hostile")
        assert browser.value("window.bad === undefined && document.querySelectorAll('script').length === 1")
        browser.drain()
        browser.open("about:blank")
        assert browser.problems == []
