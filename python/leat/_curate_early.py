# SPDX-License-Identifier: Apache-2.0
"""Finds, before the first step of `leat curate` runs, what would stop a later one: folders, conditions, columns."""

from __future__ import annotations

import contextlib
import os
import struct
import tempfile
import zlib
from collections.abc import Mapping
from typing import Any

from . import _curate_dump, _curate_report, _images, _select
from ._curate_config import Options, needs_vectors
from ._curate_steps import FILES, Run, dump_target, fingerprint, is_ours, named, step_conditions
from ._dataset import Dataset
from ._errors import ArgumentError, Error, ExistsError, reason
from ._writer import Writer

_REPLACED = "and the run would replace it; move it or give another folder"
_FOREIGN = f"is not from leat curate, {_REPLACED}"
_CHANGED = f"has changed since leat curate made it, {_REPLACED}"


def _png() -> bytes:
    """Makes a picture of 8x8 pixels."""
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    rows = b"".join(b"\0" + bytes(range(8 * y, 8 * y + 8)) for y in range(8))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0)) + \
        chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def _local(path: str) -> bool:
    return "://" not in path


def _inside(path: str, folder: str) -> bool:
    """Returns whether a path, which need not exist, is the folder or inside it."""
    path, folder = os.path.realpath(path), os.path.realpath(folder)
    return path == folder or path.startswith(os.path.join(folder, ""))


def check_folder(run: Run) -> None:
    """Refuses an output folder inside the source: its files would be packed by the next run."""
    for source in run.sources:
        if _local(source) and os.path.isdir(source) and _inside(run.folder, source):
            raise ArgumentError(f"{run.folder}: is inside the source {source}, so its files would be packed by the next run; "
                                "give a folder outside of it")


def check_ours(run: Run, records: Mapping[str, Any]) -> None:
    """Refuses to replace files that have the name of a step's file but are not from an earlier run."""
    for step, names in FILES.items():
        written = run.on(step) and not (step == "pack" and run.in_place)
        for path, name in ((run.path(name), name) for name in names if written and os.path.lexists(run.path(name))):
            if not is_ours(records, name):
                raise ExistsError(f"{path}: {_FOREIGN}")
            record = records.get(step) or {}
            made = (record.get("made") or {}).get(name)
            stopped = record.get("state") == "running" or record.get("unfinished")  # the step may have written more files
            if (name == "selected" or not stopped) and made not in (None, fingerprint(path)):
                raise ExistsError(f"{path}: {_CHANGED}")
    _check_report(run.path("report.html"))


def _check_report(path: str) -> None:
    """Refuses to replace a page that has changed: its last line is a hash of the rest."""
    if not os.path.lexists(path):
        return
    try:
        unchanged = _curate_report.is_unchanged(path)
    except OSError as error:
        raise ExistsError(f"{path}: {reason(error)}; move it or give another folder") from None
    if not unchanged:
        raise ExistsError(f"{path}: {_FOREIGN if unchanged is None else _CHANGED}")


def check_dump(run: Run, record: Mapping[str, Any]) -> None:
    """Refuses an output of the step dump that is the source, or that exists and is not from the earlier run of `record`."""
    target = dump_target(run)
    if target is None or not _local(target):
        return
    for source in run.sources:
        if _local(source) and (_inside(target, source) if os.path.isdir(source) else _same(target, source)):
            raise ArgumentError(f"dump: output: {target}: is the source; give another name")
    if os.path.dirname(target) == run.folder:
        return
    to = (run.steps["dump"] or {}).get("to", "list")
    if to != "pack" and os.path.lexists(target) and not os.path.isdir(target):
        raise ExistsError(f"dump: output: {target}: is a file, not a folder; give another name or remove it")
    with contextlib.ExitStack() as stack:
        keys = stack.enter_context(Dataset(run.pack)) if run.in_place else ()
        found = _curate_dump.taken(target, to, _curate_dump.files_of(record, target), lambda name: name in keys or _is_source(run, name))
    if found is not None:
        raise ExistsError(f"dump: output: {found}; give another output or remove it")


def _is_source(run: Run, name: str) -> bool:
    """Returns whether a source that is a folder has a file of this name. Names of other sources are known when dump begins."""
    return any(_local(path) and os.path.isfile(os.path.join(path, name)) for path in run.sources)


def _same(path: str, other: str) -> bool:
    return os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other)


def _fields(path: str) -> dict[str, Any]:
    """Returns the int and float fields of a pack."""
    with Dataset(path) as opened:
        return {field.name: {"int": int, "float": float}[field.type] for field in opened.fields if field.type in ("int", "float")}


def _columns_of_steps(run: Run, folder: str) -> dict[str, dict[str, Any]]:
    """Returns the columns that the steps of this run write, by file, found by a run over one image."""
    image, check, twins = (os.path.join(folder, name) for name in ("one.leat", "check.leat", "twins.leat"))
    with Writer(image, {"image": "image"}, sync=False) as writer:
        writer.append({"image": _png()}, key="one")
    _images.check(image, check, sync=False)
    _images.dedup_images(check, twins, sync=False)
    made = {"check.leat": _fields(check)} if run.on("check") else {}
    made.update({"duplicates.leat": _fields(twins)} if run.on("dedup") else {})
    made.update({"distinct.leat": {"selected": int}} if run.on("semantic") else {})
    return {run.path(name): fields for name, fields in made.items()}


def _known(run: Run, options: Options, folder: str) -> tuple[dict[str, dict[str, Any]], dict[str, list[str]], bool]:
    """Returns the fields that select will find, by file and with the pack first, class names, and whether the list is complete."""
    listed = options.get("columns") or []
    fields: dict[str, Any] = {}
    classes, all_known = {}, not run.on("tag")
    if run.in_place:
        fields = _fields(run.pack)
        with Dataset(run.pack) as opened:
            classes = {"label": list(opened.classes())} if fields.get("label") is int and opened.classes() else {}
    elif all(_local(path) and os.path.isdir(path) for path in run.sources):
        fields = {"label": int}
        all_known = all_known and not any(name.endswith((".json", ".csv", ".tsv", ".jsonl", ".parquet", ".tar", ".mds", ".index"))
                                          for path in run.sources for name in os.listdir(path))
    else:
        all_known = False
    files = {run.pack: fields, **_columns_of_steps(run, folder)}
    files.update((path, _fields(path)) for path in ([listed] if isinstance(listed, str) else listed))
    return files, classes, all_known


def _imitate(files: dict[str, dict[str, Any]], classes: dict[str, list[str]], folder: str) -> dict[str, str]:
    """Writes packs of two rows that have the names and fields of `files`. Returns their paths, with those of `files`."""
    made: dict[str, str] = {}
    for path, fields in files.items():
        place = os.path.join(folder, str(len(made)))
        os.mkdir(place)
        copy = os.path.join(place, os.path.basename(path))
        kinds = fields or {"text": str}  # a pack has a field
        with Writer(copy, kinds, classes={} if made else classes, sync=False) as writer:
            for key in "ab":
                writer.append({name: kind(0) for name, kind in kinds.items()}, key=key)
        made[copy] = path
    return made


def check_files(run: Run, where: str = "") -> None:
    """Refuses packs that select names and that neither exist nor are made by this run."""
    for path in named(run.steps["select"] or {}):
        if _local(path) and not os.path.exists(path) and not _inside(path, run.folder):
            raise ArgumentError(f"{where}select: {path}: no such file")


def check_select(run: Run, where: str = "") -> None:
    """Tries the conditions and strategies of select on two rows that have the fields of the run."""
    options = dict(run.steps["select"] or {})
    strategies = options.get("strategies") or []
    if not options.get("where") and not strategies:
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # after Ctrl-C, a step may still be writing
        files, classes, all_known = _known(run, options, folder)
        made, vectors = _imitate(files, classes, folder), os.path.join(folder, "vectors.leat")
        rows, *columns = made
        takes = run.on("embed") and needs_vectors(options)
        if takes:
            with Writer(vectors, {"embedding": ("float32", (4,))}, sync=False) as writer:
                for key in "ab":
                    writer.append({"embedding": [1.0, 0.0, 0.0, 0.0]}, key=key)
        steps = {"strategy": "threshold", "where": " and ".join(["key != ''", *step_conditions(run, "check.leat" if run.on("check") else None)])}
        by = [*([strategies] if isinstance(strategies, (str, Mapping)) else strategies), steps]
        try:
            _select.select(rows, os.path.join(folder, "select.leat"), by, where=options.get("where"), columns=columns,
                           count=1 if strategies else None, sync=False, embeddings=vectors if takes else None)
        except Error as error:
            text = str(error)
            of_data = error.code == "LEAT_ENOCLASS" and not run.in_place or error.code == "LEAT_ENOFIELD" and not all_known
            if isinstance(error, ArgumentError) and not of_data and vectors not in text:
                for copy, path in made.items():
                    text = text.replace(copy, path)
                raise ArgumentError(f"{where}select: {text}") from None
