# SPDX-License-Identifier: Apache-2.0
"""Files that the step dump of `leat curate` writes outside the folder of the run. The record of dump in run.json lists
these files with sizes and times. A later run replaces no other files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any

Files = dict[str, str | None]  # path below the output ("": the output itself) to stamp; None: a run ended while writing it

_SHARDS = {"webdataset": r"\d{5}\.tar(\.partial)?", "parquet": r"\d{5}\.parquet(\.partial)?"}


def listing(target: str) -> Files:
    """Returns the files at or below a path."""
    if not os.path.isdir(target):
        return {"": _stamp(target)} if os.path.lexists(target) else {}
    found = (os.path.join(folder, name) for folder, _, names in os.walk(target) for name in names)
    return {os.path.relpath(path, target): _stamp(path) for path in found}


def _stamp(path: str) -> str:
    found = os.lstat(path)
    return f"{found.st_size} {found.st_mtime_ns}"


def files_of(record: Mapping[str, Any], target: str) -> Files:
    """Returns what an earlier run wrote to the target, by its record."""
    return (record.get("wrote") or {}).get(target) or {}


def claim(to: str, keys: Callable[[], list[str]]) -> Files:
    """Returns the names that a dump is going to write; "*" stands for all shards."""
    return dict.fromkeys([""] if to == "pack" else ["*"] if to in _SHARDS else keys())


def taken(target: str, to: str, ours: Mapping[str, str | None], wanted: Callable[[str], bool]) -> str | None:
    """Returns a message about a file that a dump must not replace: one that is not from the earlier run, or has changed
    since; else None. wanted(name): whether dump may write a file of this name into a folder of images."""
    shard = re.compile(_SHARDS.get(to, ""))
    for name, stamp in sorted(listing(target).items()):
        if name in ours and ours[name] in (None, stamp) or to in _SHARDS and "*" in ours and shard.fullmatch(name):
            continue
        if name in ours or name == "" or (shard.fullmatch(name) is not None if to in _SHARDS else to == "folder" and wanted(name)):
            why = "has changed since leat curate made it" if name in ours else "already exists"
            return f"{os.path.join(target, name) if name else target}: {why}"
    return None


def settle(target: str, ours: Mapping[str, str | None], before: Mapping[str, str | None], force: bool) -> Files:
    """Returns the files of this run after a dump, and the files of earlier runs. With `force`, removes the latter."""
    after = listing(target)
    new = {name: stamp for name, stamp in after.items() if before.get(name) != stamp}
    old = {name: stamp for name, stamp in after.items() if name not in new and name in ours and ours[name] in (None, stamp)}
    for name in old if force else ():
        os.unlink(os.path.join(target, name))
        _prune(os.path.dirname(os.path.join(target, name)), target)
    return {**({} if force else old), **new}


def _prune(folder: str, top: str) -> None:
    """Removes a folder below `top` that has become empty, and empty folders above it."""
    while folder.startswith(os.path.join(top, "")) and not os.listdir(folder):
        os.rmdir(folder)
        folder = os.path.dirname(folder)
