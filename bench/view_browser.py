# SPDX-License-Identifier: Apache-2.0
"""`leat view` of many images in headless Chromium: first picture, scrolling, sorting, filters, map, similar images, selections.

    PYTHONPATH=… python bench/view_browser.py big.leat [--with COLUMNS.leat …] [--shots FOLDER] [--screens 60]

A screen is scrolled at a time, as a wheel does it every 0.25 s. Waiting is the time from a screen's first frame to the frame
in which all of its pictures are there; the longest frame says whether the page itself hung. CPU seconds of the server are
counted: on a busy machine they are the figure. Reports a table in Markdown.
"""
import argparse
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python" / "tests"))
from browser import Browser  # noqa: E402
from view_server import View  # noqa: E402

ALL = "[...document.querySelectorAll('.cell img')]"
LOADED = f"{ALL}.length > 0 && {ALL}.every(i => i.naturalWidth)"
WATCH = """(async (by, screens, pause) => {
  const scroller = $('scroller'), frame = () => new Promise(requestAnimationFrame), waits = []; let longest = 0, last = performance.now();
  const images = () => [...document.querySelectorAll('.cell img')];
  const ready = () => { // every place of the screen has the picture of its own row
    const high = side + LABEL, first = Math.ceil(list.offset / high) * columns, last = Math.floor((list.offset + viewport()) / high) * columns;
    const have = new Set([...document.querySelectorAll('.cell')].filter(c => { const i = c.querySelector('img'); return i && i.naturalWidth; })
      .map(c => Number(c.dataset.index)));
    for (let i = first; i < Math.min(last, matched); i++) if (!have.has(i)) return false;
    return last > first;
  };
  for (let i = 0; i < screens; i++) {
    scroller.scrollTop = by < 0 ? Math.random() * scroller.scrollHeight : scroller.scrollTop + by;
    const begin = performance.now(); last = begin;
    do { await frame(); const now = performance.now(); longest = Math.max(longest, now - last); last = now; }
    while (!ready() && performance.now() - begin < 20000);
    waits.push(performance.now() - begin);
    while (performance.now() - begin < pause) await frame();
    last = performance.now();
  }
  return [waits, longest, images().length];
})"""


def cpu(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        words = file.read().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def choose(name, value):
    return lambda b: b.value(f"$({name!r}).value = {value!r}; $({name!r}).dispatchEvent(new Event('change'))")


def press(key):
    return lambda b: b.key(key, ord(key.upper()), key)


def drag_histogram(browser):
    left, top, width, height = browser.value("(() => { const r = $('bars').getBoundingClientRect(); return [r.left, r.top, r.width, r.height]; })()")
    browser.drag(left + 0.3 * width, top + height / 2, left + 0.4 * width, top + height / 2)


# name, action, condition that ends the wait; the first four need no columns
STEPS = (
    ("sort by size of the file: pictures are there", choose("sort", "bytes"), LOADED),
    ("histogram of a column: drawn", choose("column", "bytes"), "bars.data"),
    ("filter by dragging over it: pictures are there", drag_histogram, f"matched < facts.rows && {LOADED}"),
    ("select all that are shown and save: file written", lambda b: b.value("$('all').click(); setTimeout(() => $('save').click(), 300)"),
     "$('note').textContent.includes(' saved to ')"),
    ("similar images of a clicked one", lambda b: b.click(500, 300),
     "!$('sample').hidden && document.querySelectorAll('#near .cell').length > 10 && document.querySelector('#sample .big img').naturalWidth"),
    ("map: of the rows of the filter", press("m"), "map.rows && $('empty').hidden"),
    ("groups: by a column", press("d"), "view === 'groups'"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pack")
    parser.add_argument("--with", dest="columns", nargs="*", default=[])
    parser.add_argument("--shots")
    parser.add_argument("--screens", type=int, default=60)
    a = parser.parse_args()
    browser = Browser()

    def shot(name):
        if a.shots:
            browser.screenshot(os.path.join(a.shots, name + ".png"))

    with View(a.pack, *(["--with", *a.columns] if a.columns else [])) as view:
        pid = view.process.pid
        browser.open(view.url)
        begin = time.monotonic()
        browser.wait(f"{ALL}.some(i => i.naturalWidth)")
        first = time.monotonic() - begin
        browser.wait(LOADED)
        screen = time.monotonic() - begin
        shot("grid")
        print(f"load average {os.getloadavg()[0]:.1f}\n\n| | ms | CPU ms of the server |\n|---|---|---|")
        print(f"| first picture | {1000 * first:.0f} | |\n| all pictures of the first screen | {1000 * screen:.0f} | {1000 * cpu(pid):.0f} |", flush=True)
        for name, by, pause in (("scrolling by a screen every 250 ms", 700, 250), ("jumps to random places", -1, 250)):
            before = cpu(pid)
            waits, longest, images = browser.value(f"{WATCH}({by}, {a.screens}, {pause})")
            waits.sort()
            print(f"| {name}: wait for all {images} pictures, median, 95 %, longest | {waits[len(waits) // 2]:.0f}, {waits[len(waits) * 95 // 100]:.0f}, "
                  f"{waits[-1]:.0f} | {1000 * (cpu(pid) - before) / a.screens:.0f} a screen |\n| longest frame | {longest:.0f} | |", flush=True)
        shot("scrolled")
        for name, act, ready in STEPS[:None if a.columns else 4]:
            before, begin = cpu(pid), time.monotonic()
            act(browser)
            browser.wait(ready)
            wait = time.monotonic() - begin
            print(f"| {name} | {1000 * wait:.0f} | {1000 * (cpu(pid) - before):.0f} |", flush=True)
            time.sleep(0.5)
            shot(name.split(":")[0].replace(" ", "-"))
            if "similar" in name:
                browser.key("Escape", 27)
            if "save" in name:
                path = browser.value("$('note').textContent").split(" saved to ")[1]
                os.unlink(path)
        browser.drain()
        print(f"\nproblems of the page: {browser.problems or 'none'}")
    browser.close()


main()
