# SPDX-License-Identifier: Apache-2.0
"""`leat view` of many images in headless Chromium: first picture, scrolling, jumps, map, similar images.

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
        if a.columns:
            before, begin = cpu(pid), time.monotonic()
            browser.click(500, 300)
            browser.wait("!$('sample').hidden && document.querySelectorAll('#near .cell').length > 10 && "
                         "document.querySelector('#sample .big img').naturalWidth")
            time.sleep(1)
            shot("sample")
            browser.key("Escape", 27)
            for name, key, code, ready in (("map", "m", 77, "map.rows && $('empty').hidden"), ("groups", "d", 68, "true"), ("grid-again", "g", 71, LOADED)):
                browser.key(key, code, key)
                browser.wait(ready)
                time.sleep(1)
                shot(name)
            print(f"| sample, map, groups | {1000 * (time.monotonic() - begin):.0f} with pauses | {1000 * (cpu(pid) - before):.0f} |")
        browser.drain()
        print(f"\nproblems of the page: {browser.problems or 'none'}")
    browser.close()


main()
