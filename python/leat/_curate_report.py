# SPDX-License-Identifier: Apache-2.0
"""The page of a run of `leat curate`: one HTML file that contains its pictures, without scripts and without links to the net."""

from __future__ import annotations

import base64
import csv
import hashlib
import html
import os
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from . import _check, _leat
from ._curate_steps import Run, chosen
from ._dataset import Dataset
from ._errors import Error, StorageError, counted

_SIDE = 96  # pixels of the shorter side of a picture
_CHOSEN, _PAIRS, _EXAMPLES, _BINS = 24, 8, 5, 40
_SCORES = ("blur", "mean", "contrast", "entropy", "size")
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#222;background:#fff}
table{border-collapse:collapse}td,th{padding:.2em .8em;text-align:left;border-bottom:1px solid #ddd;vertical-align:top}
td.n{text-align:right;font-variant-numeric:tabular-nums}figure{display:inline-block;margin:.3em;vertical-align:top;width:12em}
figure img{max-width:12em;max-height:9em;min-height:6em;object-fit:contain;object-position:left}figcaption{font-size:11px;color:#555;overflow-wrap:anywhere}
.pair{display:inline-block;border:1px solid #ddd;margin:.3em;padding:.2em}
.bar{background:#4a7ebb;height:1.1em}.gone{color:#888}svg{margin:.5em}
"""


def text(value: object) -> str:
    """Escapes a value for the page and removes control characters and broken Unicode."""
    plain = str(value).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return html.escape("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in plain))


class _Pictures:
    """Small pictures of samples, as PNG in the page."""

    def __init__(self, pack: str) -> None:
        self.pack = Dataset(pack, rgb=True)
        self.field = next((f.name for f in self.pack.fields if f.type == "image"), "")

    def _small(self, row: int) -> np.ndarray:
        """Shrinks an image by averaging squares of pixels; takes the first part of very long images."""
        pixels = self.pack[row][self.field].decode()
        step = max(min(pixels.shape[:2]) // _SIDE, 1)
        high, wide = (min(n // step, 3 * _SIDE) for n in pixels.shape[:2])
        squares = pixels[:high * step, :wide * step].reshape(high, step, wide, step, 3)
        return np.ascontiguousarray(squares.mean((1, 3)).round().astype(np.uint8))

    def row(self, row: int) -> str:
        try:
            data = base64.b64encode(_leat.png(self._small(row))).decode("ascii")
            shown = f'<img alt="" src="data:image/png;base64,{data}">'
        except (Error, AttributeError, ValueError):
            shown = '<span class="gone">cannot be shown</span>'
        return f"<figure>{shown}<figcaption>{text(self.pack.keys[row])}</figcaption></figure>"

    def key(self, key: str) -> str:
        row = self.pack.find(key)
        return self.row(row) if row is not None else f"<figure><figcaption>{text(key)}</figcaption></figure>"


def _funnel(state: dict[str, Any]) -> str:
    """Renders how many images are left after each step."""
    steps = state["steps"]
    left = steps["pack"]["rows"] + sum(steps["pack"]["dropped"].values())
    stages = [("in the source", left), ("packed", steps["pack"]["rows"])]
    left = steps["pack"]["rows"]
    for name, label in (("check", "readable"), ("dedup", "without duplicates"), ("semantic", "without similar ones")):
        if steps[name].get("state") == "done":
            left = max(left - sum(steps[name]["dropped"].values()), 0)
            stages.append((label, left))
    stages.append(("selected", steps["select"]["rows"]))
    most = max(stages[0][1], 1)
    rows = "".join(f'<tr><td>{label}<td class="n">{count:,}<td style="width:30em"><div class="bar" style="width:'
                   f'{100 * min(count / most, 1):.2f}%"></div>' for label, count in stages)
    return f"<h2>Images left</h2><table>{rows}</table>"


def _steps(result: dict[str, Any]) -> str:
    rows = ""
    for step in result["steps"]:
        dropped = ", ".join(f"{count:,} {name}" for name, count in step["dropped"].items())
        rows += (f'<tr><td>{step["step"]}<td class="n">{step["rows"]:,}<td>{text(dropped)}<td class="n">{step["seconds"]:.1f}'
                 f'<td class="n">{step["cpu_seconds"]:.1f}<td title="{text(step["why"])}">{text(step["limit"])}'
                 f'<td>{text(step["advice"])}')
    return ("<h2>Steps</h2><table><tr><th>step<th>rows<th>dropped<th>seconds<th>CPU seconds<th>limit<th>what would help"
            f"{rows}</table>")


def _issues(state: dict[str, Any], pictures: _Pictures) -> str:
    found = state["steps"]["check"].get("issues") or {}
    made = ""
    for name, issue in sorted(found.items(), key=lambda item: -item[1]["count"]):
        if issue["count"]:
            shown = "".join(pictures.key(key) for key in issue.get("examples", [])[:_EXAMPLES])
            made += f"<h3>{text(name)}: {issue['count']:,}</h3>{shown}"
    return f"<h2>Issues</h2>{made or '<p>None were found.</p>'}"


def _pairs_of(path: str) -> Iterator[dict[str, str]]:
    """Returns the most and the least similar pairs."""
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        rows = csv.DictReader(file)
        first = [row for _, row in zip(range(_PAIRS), rows)]
        yield from first
        yield from deque(rows, maxlen=_PAIRS)


def _duplicates(run: Run, pictures: _Pictures) -> str:
    made = ""
    for pair in _pairs_of(run.path("duplicates.csv")):
        made += (f'<div class="pair">{pictures.key(pair["key_a"])}{pictures.key(pair["key_b"])}<br>{text(pair["verdict"])}, '
                 f'similarity {float(pair["similarity"]):.3f}</div>')
    return f"<h2>Duplicates</h2><p>The most and the least similar pairs.</p>{made or '<p>None were found.</p>'}"


def _histogram(name: str, values: np.ndarray, kept: np.ndarray) -> str:
    """Draws all values in grey and values of chosen samples in blue, each scaled to its own highest bar."""
    finite = values[np.isfinite(values)]
    if len(finite) == 0:
        return ""
    low, high = np.quantile(finite, 0.001), np.quantile(finite, 0.999)
    edges = np.linspace(low, high if high > low else low + 1, _BINS + 1)
    bars = ""
    for data, colour, opacity in ((finite, "#999", 1), (kept[np.isfinite(kept)], "#2563b0", 0.6)):
        counts = np.histogram(data, edges)[0]
        top = max(counts.max(), 1)
        bars += "".join(f'<rect x="{8 * i}" y="{100 - 100 * n / top:.1f}" width="7" height="{100 * n / top:.1f}" '
                        f'fill="{colour}" opacity="{opacity}"/>' for i, n in enumerate(counts) if n)
    return (f'<figure style="width:22em"><svg width="320" height="100" role="img" aria-label="{text(name)}">{bars}</svg>'
            f"<figcaption>{text(name)}: {low:.4g} to {high:.4g}</figcaption></figure>")


def _histograms(run: Run, rows: np.ndarray) -> str:
    made = ""
    with Dataset(run.path("check.leat")) as columns:
        for name in _SCORES:
            values = columns.column(name)
            made += _histogram(name, values, values[rows])
    return f"<h2>Scores</h2><p>Grey: all images. Blue: selected ones.</p>{made}"


def _page(run: Run, state: dict[str, Any], result: dict[str, Any]) -> Iterator[str]:
    sources = ", ".join(text(_check.public(source)) for source in run.sources)
    yield ("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta http-equiv=\"Content-Security-Policy\" "
           "content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'\"><title>leat curate</title>"
           f"<style>{_STYLE}</style><h1>{sources}</h1>"
           f"<p>{result['selected']:,} of {counted(result['samples'], 'image', ',')} selected; {result['unreadable']:,} could not be read.</p>")
    yield _funnel(state)
    yield _steps(result)
    pictures, rows = _Pictures(run.pack), chosen(run)
    if run.on("check"):
        yield _issues(state, pictures)
    if run.on("dedup"):
        yield _duplicates(run, pictures)
    if run.on("check"):
        yield _histograms(run, rows)
    yield "<h2>Selected</h2><p>The first ones, in the order of the choice.</p>"
    yield "".join(pictures.row(int(row)) for row in rows[:_CHOSEN])
    yield "</html>\n"


def _seal(page: Any) -> str:
    """Returns the last line of a page: a hash of the text before it."""
    return f"<!-- leat curate {page.hexdigest()} -->\n"


def is_unchanged(path: str) -> bool | None:
    """Returns whether a page is unchanged since it was written; None when it is not a page of leat curate."""
    with open(path, "rb") as file:
        body = file.read()
    at = body.rfind(b"<!-- leat curate ")
    return None if at < 0 else body[at:] == _seal(hashlib.sha256(body[:at])).encode("ascii")


def write(run: Run, state: dict[str, Any], result: dict[str, Any]) -> None:
    """Writes RUN/report.html."""
    path = run.path("report.html")
    made = hashlib.sha256()
    try:
        with open(path + ".new", "wb") as file:
            for piece in _page(run, state, result):
                made.update(piece.encode("utf-8"))
                file.write(piece.encode("utf-8"))
            file.write(_seal(made).encode("ascii"))
        os.rename(path + ".new", path)
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}") from None
