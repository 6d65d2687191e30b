# SPDX-License-Identifier: Apache-2.0
"""Curating images: the commands `leat check`, `leat dedup images` and `leat dedup semantic` from Python."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

from . import _check, _leat
from ._errors import ArgumentError, shown
from ._pack import Path, Progress, _run

_KEEP_SIMILAR = {"first": 0, "outer": 1, "central": 2}
_KEEP = {"largest": 0, "quality": 1, "first": 2, "pack": 3}


def limits_text(limits: Any) -> str | None:
    """Returns the limits of issues as text for C."""
    if limits is not None and not isinstance(limits, Mapping):
        raise ArgumentError(f"limits: {shown(limits)} is not a dict of issue to limit")
    parts = []
    for name, value in (limits or {}).items():
        _check.text("limits", name)
        number = "off" if value is None or value is False or value == "off" else repr(_check.real(f"limits: {name}", value, -math.inf, math.inf))
        parts.append(f"{name}={number}")
    return ",".join(parts) or None


def _refuse(when: str, **given: Any) -> None:
    for name, value in given.items():
        if value:
            raise ArgumentError(f"{name}: has no effect {when}")


def _check_labels(source: Any, output: Path, csv: Path | None, threads: int, memory: int | str, force: bool, sync: bool,
                  progress: Progress | None, options: dict[str, Any]) -> dict[str, Any]:
    packs = _check.paths("source", source)
    if len(packs) != 1:
        raise ArgumentError("source: labels are checked in one pack")
    if options["predictions"] is not None:
        _refuse("with predictions", neighbours=options["neighbours"])
    if options["vectors"] is None:
        _refuse("without embeddings", field=options["field"])
    report = _run(
        progress, _leat.check_labels, packs, _check.utf8_path("output", output),
        csv=None if csv is None else _check.utf8_path("csv", csv),
        threads=_check.whole("threads", threads, 0, 4096), memory=_check.size("memory", memory),
        replace=_check.flag("force", force), sync=_check.flag("sync", sync), **options)
    return json.loads(report)


def check(source: Path | Sequence[Path], output: Path, *, csv: Path | None = None,
          limits: dict[str, float | str | None] | None = None, strict: bool = False, threads: int = 0,
          memory: int | str = 0, max_pixels: int = 0, force: bool = False, sync: bool = True,
          labels: bool = False, embeddings: Path | None = None, predictions: Path | None = None, column: str = "label",
          neighbours: int | None = None, field: str | None = None, progress: Progress | None = None) -> dict[str, Any]:
    """Finds broken, odd and poor images, or wrong labels; what `leat check` does.

    >>> leat.check("photos.leat", "photos.check.leat")
    {'samples': 1000, 'ok': 998, 'found': 41, 'issues': {'dark': {'count': 3, 'limit': 87.0, ...}, ...}, ...}

    Every image is decoded once. `output` gets columns beside the images: a small pack with the same rows and keys.

    Parameters
        source: packs, tar shards, or one folder, manifest or other source of `pack`
        output: the columns
        csv: also write a CSV file, a line per image; ``force`` replaces an earlier one
        limits: limits of issues, as in {"dark": 40, "grey": None}; None, False or "off" switches an issue off, others adapt to the data
        strict: folders: take every file, whatever its name
        memory: hard budget, in bytes or text ("2G"); 0 is half of what is available
        max_pixels: largest image; 0 is 178956970
        force: replace a pack of that name
        sync: write through to the disk before the pack takes its name
        labels: check the labels of one pack instead of its images. The columns are label, suggested, issues (1: wrong
            label, 2: far from its class), rank (0: the most suspicious), suspicion, confidence and outlier
        embeddings: labels: pack of ``leat.embed``: similar images vote on a label
        predictions: labels: pack of ``leat.embed(logits=True)``, instead of votes
        column: labels: int field with the labels
        neighbours: labels: how many images vote, up to 1000; None is 20
        field: labels: field of the vectors, when the pack of embeddings has several
        progress: called now and then with (done, total, bytes, found); total 0 is unknown
    """
    of_labels = {"vectors": None if embeddings is None else _check.utf8_path("embeddings", embeddings),
                 "predictions": None if predictions is None else _check.utf8_path("predictions", predictions),
                 "neighbours": 0 if neighbours is None else _check.whole("neighbours", neighbours, 1, 1000), "column": _check.text("column", column),
                 "field": None if field is None else _check.text("field", field)}
    if _check.flag("labels", labels):
        _refuse("with labels", limits=limits_text(limits), strict=_check.flag("strict", strict),
                max_pixels=_check.whole("max_pixels", max_pixels))
        return _check_labels(source, output, csv, threads, memory, force, sync, progress, of_labels)
    _refuse("without labels", embeddings=of_labels["vectors"], predictions=of_labels["predictions"], neighbours=neighbours,
            column=None if column == "label" else column, field=field)
    report = _run(
        progress, _leat.check_images, _check.paths("source", source), _check.utf8_path("output", output),
        csv=None if csv is None else _check.utf8_path("csv", csv), limits=limits_text(limits),
        strict=_check.flag("strict", strict), threads=_check.whole("threads", threads, 0, 4096),
        memory=_check.size("memory", memory), max_pixels=_check.whole("max_pixels", max_pixels),
        replace=_check.flag("force", force), sync=_check.flag("sync", sync))
    return json.loads(report)


class Named(str):
    """The path of a pack or of its columns. Lists of duplicates name `pack` instead, and their rows its file name."""

    pack: str


def dedup_images(source: Path | Sequence[Path], output: Path, *, csv: Path | None = None, keep: str = "largest",
                 orientations: int = 2, windows: bool = False, across: bool = False, list_probable: bool = False,
                 threshold: float | None = None, probable: float | None = None, threads: int = 0, memory: int | str = 0, force: bool = False,
                 sync: bool = True, progress: Progress | None = None) -> dict[str, Any]:
    """Finds exact and near duplicates inside packs of images and across them; what `leat dedup images` does.

    >>> leat.dedup_images(["train.leat", "test.leat"], "dup.leat", csv="pairs.csv", across=True)
    {'samples': 60000, 'kept': 58712, 'removed': 1288, 'clusters': 1201, 'pairs': 1322, ...}

    `output` gets a row per image of all sources: its cluster, whether it is kept, and which image is kept for it.

    Parameters
        source: packs, or their columns of `check`, or other sources of images
        output: the rows
        csv: pairs of duplicates, the most similar first
        keep: "largest", "quality" (of JPEGs; among other formats the largest), "first", or "pack": of the source named first
        orientations: 1: images as they are, 2: also mirrored, 8: also turned
        windows: also find large crops; takes about five times as long
        across: only pairs of different sources
        list_probable: the CSV file has probable pairs as well
        threshold, probable: least similarity of duplicates (0.7) and of probable pairs (0.6)
        memory: hard limit, in bytes or text ("2G"); 0 is half of what is available. Descriptors that do not fit are in files beside
            `output` until the end; the result is the same
        force: replace a pack of that name
        sync: write through to the disk before the pack takes its name
        progress: called now and then with (done, total, 0, pairs)
    """
    turns = _check.whole("orientations", orientations, 1, 8)
    if turns not in (1, 2, 8):
        raise ArgumentError(f"orientations: {turns} is not 1, 2 or 8")
    if _check.flag("list_probable", list_probable) and csv is None:
        raise ArgumentError("list_probable: has an effect only with csv")
    report = _run(
        progress, _leat.dedup_images, _check.paths("source", source), _check.utf8_path("output", output),
        csv=None if csv is None else _check.utf8_path("csv", csv), keep=_check.one_of("keep", keep, _KEEP),
        orientations=turns, windows=_check.flag("windows", windows), across=_check.flag("across", across),
        list_probable=_check.flag("list_probable", list_probable), threshold=_check.above("threshold", threshold, 1),
        probable=_check.above("probable", probable, 1), csv_pack=getattr(source, "pack", None), threads=_check.whole("threads", threads, 0, 4096),
        memory=_check.size("memory", memory), replace=_check.flag("force", force), sync=_check.flag("sync", sync))
    return json.loads(report)


def dedup_semantic(embeddings: Path, output: Path, *, threshold: float | None = None, keep_share: float | None = None,
                   keep: str = "first", centres: int = 0, field: str | None = None, device: str | None = None, threads: int = 0,
                   memory: int | str = 0, force: bool = False, sync: bool = True,
                   progress: Progress | None = None) -> dict[str, Any]:
    """Finds samples whose vectors are similar; what `leat dedup semantic` does.

    >>> leat.dedup_semantic("vectors.leat", "dup.leat", keep_share=0.8)
    {'samples': 60000, 'kept': 48000, 'removed': 12000, 'threshold': 0.9127, ...}

    Rows are clustered by k-means, and all pairs inside a cluster are compared by cosine. `output` gets a row per vector:
    cluster, keep, duplicate_of, similarity. Give it as ``select`` to ``leat.Loader``, ``leat.pack`` and ``leat.export``.
    Rows whose vector is zeros or not finite are not compared and stay; ``without_vector`` in the report counts them.

    Parameters
        embeddings: pack of ``leat.embed``
        output: the rows
        threshold: rows with this similarity or more are removed; None is 0.95
        keep_share: or the share of rows to keep. Each cluster keeps one row, so with many clusters more rows are kept:
          ``kept`` in the report is then above ``asked``
        keep: of similar rows the "first", the one farthest from the mean of its cluster ("outer"), or nearest ("central")
        field: field of the vectors, when the pack has several
        centres: clusters of k-means; 0 is the square root of the number of rows
        device: run by PyTorch on this device, such as "cuda": all vectors are in its memory. The result is that of the CPU,
            except that rows in the middle between two clusters may go to the other one, by rounding
        memory: hard limit, in bytes or text ("2G"); 0 is half of what is available. Vectors that do not fit are read again
        force: replace a pack of that name
        sync: write through to the disk before the pack takes its name
        progress: called now and then with (done, total, 0, 0)
    """
    if device is not None:
        _refuse("with device", threads=_check.whole("threads", threads, 0, 4096), memory=_check.size("memory", memory))
        try:
            from . import _semantic_torch
        except ModuleNotFoundError:
            raise ArgumentError(f"device: {device} needs PyTorch: pip install torch; or leave it out") from None
        _check.one_of("keep", keep, _KEEP_SIMILAR)
        _check.above("threshold", threshold, 1)
        _check.above("keep_share", keep_share, 1)
        return _semantic_torch.run(
            os.fsdecode(_check.path("embeddings", embeddings)), os.fsdecode(_check.utf8_path("output", output)), device=device,
            threshold=threshold, keep_share=keep_share, keep=keep, clusters=_check.whole("centres", centres, 0, _check.U32),
            field=None if field is None else _check.text("field", field), force=_check.flag("force", force),
            sync=_check.flag("sync", sync), progress=progress)
    report = _run(
        progress, _leat.dedup_semantic, [os.fsencode(_check.path("embeddings", embeddings))],
        _check.utf8_path("output", output), threshold=_check.above("threshold", threshold, 1),
        keep_share=_check.above("keep_share", keep_share, 1), keep=_check.one_of("keep", keep, _KEEP_SIMILAR),
        clusters=_check.whole("centres", centres, 0, _check.U32),
        field=None if field is None else _check.text("field", field), threads=_check.whole("threads", threads, 0, 4096),
        memory=_check.size("memory", memory), replace=_check.flag("force", force), sync=_check.flag("sync", sync))
    return json.loads(report)
