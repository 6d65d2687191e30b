# SPDX-License-Identifier: Apache-2.0
"""Curating images: the command `leat check` from Python."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from . import _check, _leat
from ._errors import ArgumentError, shown
from ._pack import Path, Progress, _run


def _limits(limits: Any) -> str | None:
    """Limits of issues as text."""
    if limits is not None and not isinstance(limits, Mapping):
        raise ArgumentError(f"limits: {shown(limits)} is not a dict of issue to limit")
    parts = []
    for name, value in (limits or {}).items():
        _check.text("limits", name)
        number = "off" if value is None else repr(_check.real(f"limits: {name}", value, -math.inf, math.inf))
        parts.append(f"{name}={number}")
    return ",".join(parts) or None


def check(source: Path | Sequence[Path], output: Path, *, csv: Path | None = None,
          limits: dict[str, float | None] | None = None, strict: bool = False, threads: int = 0,
          memory: int | str = 0, max_pixels: int = 0, force: bool = False, sync: bool = True,
          progress: Progress | None = None) -> dict[str, Any]:
    """Finds broken, odd and poor images; what `leat check` does.

    >>> leat.check("photos.leat", "photos.check.leat")
    {'samples': 1000, 'ok': 998, 'found': 41, 'issues': {'dark': {'count': 3, 'limit': 87.0, ...}, ...}, ...}

    Every image is decoded once. `output` gets columns beside the images: a small pack with the same rows and keys.

    Parameters
        source: packs, tar shards, or one folder, manifest or other source of `pack`
        output: the columns
        csv: also write a CSV file, a line per image
        limits: limits of issues, as in {"dark": 40, "grey": None}; None switches an issue off, others adapt to the data
        strict: folders: take every file, whatever its name
        memory: hard budget of what is in flight, in bytes or text ("2G"); 0 is half of what is available
        max_pixels: largest image; 0 is 178956970
        force: replace a pack of that name
        sync: write through to the disk before the pack takes its name
        progress: called now and then with (done, total, bytes, found); total 0 is unknown
    """
    report = _run(
        progress, _leat.check_images, _check.paths("source", source), _check.utf8_path("output", output),
        csv=None if csv is None else _check.utf8_path("csv", csv), limits=_limits(limits),
        strict=_check.flag("strict", strict), threads=_check.whole("threads", threads, 0, 4096),
        memory=_check.size("memory", memory), max_pixels=_check.whole("max_pixels", max_pixels),
        replace=_check.flag("force", force), sync=_check.flag("sync", sync))
    return json.loads(report)
