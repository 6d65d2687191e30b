# SPDX-License-Identifier: Apache-2.0
"""Choosing samples: the command `leat select` from Python."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _check, _leat
from ._errors import ArgumentError, shown
from ._pack import Path, Progress, _run


def _value(name: str, value: Any) -> Any:
    """Converts a value of a strategy for JSON."""
    if isinstance(value, (os.PathLike, bytes)):
        return _check.utf8_path(name, value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):
        return {str(key): _value(f"{name}: {key}", inner) for key, inner in value.items()}
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ArgumentError(f"{name}: {shown(value)} is neither text nor a number")
    return _check.text(name, value) if isinstance(value, str) else value


def _strategies(given: Any) -> list[dict[str, Any]]:
    """Returns the strategies as a list of dicts; a word is a strategy without settings."""
    if isinstance(given, (str, Mapping)):
        given = [given]
    listed = _check.several("strategies", given, (str, Mapping), first=1)
    made = []
    for i, one in enumerate(listed, 1):
        if isinstance(one, str):
            one = {"strategy": one}
        made.append({_check.text("strategies", key): _value(f"strategies: number {i}: {key}", value)
                     for key, value in one.items()})
    return made


def _text(config: dict[str, Any]) -> str:
    """Returns the settings as JSON with a strategy per line, so that the line number in a message is the number of the
    strategy."""
    others = json.dumps({name: value for name, value in config.items() if name != "strategies"})[1:-1]
    return '{"strategies": [' + ",\n".join(map(json.dumps, config["strategies"])) + "]" + (", " + others if others else "") + "}"


def select(pack: Path, output: Path, strategies: Any = (), *, count: int | None = None, share: float | None = None,
           embeddings: Path | None = None, field: str | None = None, columns: Path | Sequence[Path] = (),
           where: str | None = None, previous: Path | None = None, threads: int = 0, memory: int | str = 0,
           force: bool = False, sync: bool = True, progress: Progress | None = None) -> dict[str, Any]:
    """Chooses samples of a pack by vectors and columns; what `leat select` does.

    >>> leat.select("photos.leat", "chosen.leat", "diversity", count=1000, embeddings="vectors.leat")
    {'samples': 60000, 'selected': 1000, 'previous': 0, 'round': 0, 'excluded': 0, ...}

    `output` gets columns beside the images: selected, order, round, score, distance and reason. Give it as ``select``
    to ``leat.Loader``, ``leat.pack`` and ``leat.export``. Strategies on vectors leave samples out whose vector is zeros or not
    finite; ``without_vector`` in the report counts them.

    Parameters
        pack: the samples
        output: the selection
        strategies: a strategy or a list of them, each a word or a dict: {"strategy": "weights", "column": "blur",
            "strength": 0.5}. "diversity" (min_distance), "weights" (column), "balance" (column, distribution: "uniform",
            "input" or a dict of shares), "typicality" (neighbours), "similarity" (query), "random" (seed), "threshold"
            (where); all but the last have a strength, and those on vectors may name their own embeddings
        count, share: how many samples to choose besides those of `previous`, or which share of all; neither: all that
            the strategies allow
        embeddings: pack of ``leat.embed``
        field: field of the vectors, when their pack has several
        columns: packs with columns of the same rows, as ``leat.check`` writes them. A column that several have is named with its
            file: "img.keep" of img.leat
        where: only samples that meet this condition on their columns: "issues == 0 and blur > 50"
        previous: an earlier selection: its samples stay, and others are chosen for what they add
        memory: refuse to start when more is needed; 0 means no limit
        force: replace a pack of that name
        sync: write through to the disk before the pack takes its name
        progress: called now and then with (done, total, 0, chosen)
    """
    config: dict[str, Any] = {"strategies": _strategies(strategies)}
    if count is not None:
        config["count"] = _check.whole("count", count, 1)
    if share is not None:
        config["share"] = _check.above("share", share, 1)
    if field is not None:
        config["field"] = _check.text("field", field)
    if embeddings is not None:
        config["embeddings"] = _check.utf8_path("embeddings", embeddings)
    if previous is not None:
        config["previous"] = _check.utf8_path("previous", previous)
    if where is not None:
        config["where"] = _check.text("where", where)
    beside = [] if isinstance(columns, (list, tuple)) and not columns else _check.paths("columns", columns)
    report = _run(
        progress, _leat.select, os.fsencode(_check.path("pack", pack)), os.fsencode(_check.path("output", output)),
        columns=beside, config=_text(config), threads=_check.whole("threads", threads, 0, 4096),
        memory=_check.size("memory", memory), replace=_check.flag("force", force), sync=_check.flag("sync", sync))
    return json.loads(report)


def rows_of(packs: Sequence[str], path: Path) -> np.ndarray:
    """Returns the rows of `packs`, joined, that a selection names."""
    found = _leat.selection([os.fsencode(pack) for pack in packs], os.fsencode(_check.path("select", path)))
    return np.frombuffer(found, np.uint64)
