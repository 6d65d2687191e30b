# SPDX-License-Identifier: Apache-2.0
"""Looking at images in a browser: the command `leat view` from Python."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from . import _check, _leat
from ._errors import ArgumentError, Error
from ._pack import Path

_LEAST_MEMORY = 1 << 20


class View:
    """A page that is served until `close`, the end of a `with` block, or the end of the process.

    url: address of the page
    samples, columns: how many images and columns it shows
    """

    url: str
    samples: int
    columns: int

    def __init__(self, process: subprocess.Popen[str], facts: dict[str, Any]) -> None:
        self._process = process
        self.url, self.samples, self.columns = facts["url"], facts["samples"], facts["columns"]

    def close(self) -> None:
        """Ends the page; a second call does nothing."""
        if self._process.poll() is None:
            self._process.terminate()
        self._process.communicate()

    def __enter__(self) -> View:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        process = getattr(self, "_process", None)
        if process is not None and process.poll() is None:
            process.kill()
            process.communicate()

    def __repr__(self) -> str:
        return f"<leat.view {self.url}>"


def _why(printed: str) -> str:
    """Returns the error that the command printed, with its options as keywords of Python."""
    text = re.sub(r" \(see leat view --help\)", "", printed.strip().removeprefix("leat view: "))
    return re.sub(r"--([a-z]+)", lambda found: {"with": "columns"}.get(found[1], found[1]), text)


def view(pack: Path, columns: Path | Sequence[Path] = (), *, selection: Path | None = None, save: Path | None = None,
         field: str | None = None, port: int = 0, memory: int | str = "1G") -> View:
    """Shows images and their columns in a browser; what `leat view` does.

    >>> page = leat.view("photos.leat", ["photos.check.leat", "photos.vectors.leat"])
    >>> page.url
    'http://127.0.0.1:40817/6f0c8a…/'

    Parameters
        pack: a pack with images
        columns: packs that were made from it by `check`, `dedup_images`, `embed` or `select`
        selection: begin with this selection
        save: save selections here, with a number added when it exists; None is beside the pack
        field: image field; None is the first
        port: port on 127.0.0.1; 0 is any free one
        memory: budget of columns and results that are held
    """
    budget = _check.whole("memory", _check.size("memory", memory), _LEAST_MEMORY)
    words = [sys.executable, "-m", "leat", "view", "--json", f"--port={_check.whole('port', port, 0, 65535)}",
             f"--memory={budget}"]
    for name, value in (("selection", selection), ("save", save)):
        if value is not None:
            words.append(f"--{name}={_check.utf8_path(name, value)}")
    if field is not None:
        words.append(f"--field={_check.text('field', field)}")
    beside = [] if isinstance(columns, (list, tuple)) and not columns else _check.paths("columns", columns)
    words += ["--with"] if beside else []
    shown = _check.utf8_path("pack", pack)
    words += ["--", shown, *beside]
    for path in (shown, *beside, *([] if selection is None else [_check.utf8_path("selection", selection)])):
        _leat.Pack(path)  # raises the usual error when the pack cannot be opened
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               errors="replace")
    line = process.stdout.readline() if process.stdout else ""
    if line:
        return View(process, json.loads(line))
    raise (ArgumentError if process.wait() == 2 else Error)(_why(process.communicate()[1]) or "the page was not served")
