# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: folders that appear under their names when they are complete.

    OUT/checkpoints/step-00001200/model.safetensors    weights to use: the moving average if there is one
                                  train.safetensors    raw weights, optimizer, average
                                  state.json           counters, random states, loader state, facts of the model
    OUT/checkpoints/step-00001200-end/                 the same after the evaluation that ends an epoch
    OUT/checkpoints/last, best                         links to two of them

A folder is written under a temporary name, synced, and renamed. Files are safetensors and JSON: reading
one runs no code. A separate thread writes, from copies in host memory.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._errors import ArgumentError, DataError, NotFoundError, StorageError, reason

VERSION = 1
_DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
           "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8,
           "U8": torch.uint8, "BOOL": torch.bool}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_HEADER_MAX = 100 << 20
_FOLDER = re.compile(r"step-(\d{8,})(-end)?$")


# ---- safetensors ---------------------------------------------------------------------------------


def write_tensors(path: str, tensors: Mapping[str, Tensor]) -> None:
    """Writes host tensors as safetensors and syncs the file."""
    header: dict[str, Any] = {}
    at = 0
    flat = {name: t.detach().contiguous() for name, t in sorted(tensors.items())}
    for name, t in flat.items():
        size = t.numel() * t.element_size()
        header[name] = {"dtype": _NAMES[t.dtype], "shape": list(t.shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for t in flat.values():
            if t.numel():
                file.write(memoryview(t.view(-1).view(torch.uint8).numpy()))
        file.flush()
        os.fsync(file.fileno())


def _bad(path: str, what: str) -> DataError:
    return DataError(f"{path}: {what}: not a complete safetensors file")


def _rows(path: str, text: bytes, room: int) -> dict[str, tuple[torch.dtype, list[int], int, int]]:
    try:
        header = json.loads(text)
        header.pop("__metadata__", None)
        rows = {name: (_DTYPES[row["dtype"]], [int(n) for n in row["shape"]], *map(int, row["data_offsets"]))
                for name, row in header.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _bad(path, "the header is damaged") from None
    for name, (dtype, shape, begin, end) in rows.items():
        count = 1
        for n in shape:
            count *= n
        if min(shape, default=0) < 0 or not 0 <= begin <= end <= room or end - begin != count * dtype.itemsize:
            raise _bad(path, f"tensor '{name}' is outside the file")
    return rows


def read_tensors(path: str) -> dict[str, Tensor]:
    """Reads the tensors of a safetensors file, checked against its size."""
    try:
        size = os.path.getsize(path)
        with open(path, "rb") as file:
            start = file.read(8)
            length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
            if not 2 <= length <= min(_HEADER_MAX, size - 8):
                raise _bad(path, "the header is damaged")
            rows = _rows(path, file.read(length), size - 8 - length)
            data = np.fromfile(file, np.uint8)
    except OSError as error:
        raise StorageError(f"{path}: {reason(error)}") from None
    whole = torch.from_numpy(data)
    found = {}
    for name, (dtype, shape, begin, end) in rows.items():
        found[name] = whole[begin:end].clone().view(dtype).view(shape)
    return found


# ---- one checkpoint ------------------------------------------------------------------------------


def _sync_folder(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write(folder: str, name: str, model: Mapping[str, Tensor], train: Mapping[str, Tensor],
          state: Mapping[str, Any]) -> str:
    """Writes one checkpoint and returns its path. It appears under its name when it is complete.

    A checkpoint that exists already is left unchanged: the same position of the same run has the same state.
    """
    final = os.path.join(folder, name)
    if os.path.isdir(final):
        return final
    temporary = os.path.join(folder, f".writing-{name}")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        os.makedirs(temporary)
        write_tensors(os.path.join(temporary, "model.safetensors"), model)
        write_tensors(os.path.join(temporary, "train.safetensors"), train)
        with open(os.path.join(temporary, "state.json"), "w", encoding="utf-8") as file:
            json.dump(state, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        _sync_folder(temporary)
        os.rename(temporary, final)
        _sync_folder(folder)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        raise StorageError(f"{final}: cannot write the checkpoint: {error.strerror}; earlier ones are "
                           "untouched") from None
    return final


def link(folder: str, name: str, target: str) -> None:
    """Makes the link ``name`` point at a checkpoint, in one step."""
    temporary = os.path.join(folder, f".{name}")
    if os.path.lexists(temporary):
        os.unlink(temporary)
    os.symlink(os.path.basename(target), temporary)
    os.replace(temporary, os.path.join(folder, name))


def newest(folder: str) -> str | None:
    """Returns the newest complete checkpoint of a folder, or None."""
    found = sorted((int(match[1]), match[0]) for match in map(_FOLDER.match, _names(folder)) if match)
    for _, name in reversed(found):  # "step-8-end" comes after "step-8"
        if os.path.isfile(os.path.join(folder, name, "state.json")):
            return os.path.join(folder, name)
    return None


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def find(path: str) -> str:
    """Finds the checkpoint that a user names by its folder, its model file, or the output folder of a run."""
    if os.path.isfile(path) and path.endswith(".safetensors"):
        path = os.path.dirname(path) or "."
    for candidate in (path, os.path.join(path, "checkpoints", "best"), os.path.join(path, "checkpoints", "last")):
        if os.path.isfile(os.path.join(candidate, "state.json")):
            return candidate
    found = newest(os.path.join(path, "checkpoints"))
    if found is None:
        raise NotFoundError(f"{path}: there is no checkpoint")
    return found


def read_state(path: str) -> dict[str, Any]:
    """Reads state.json of a checkpoint."""
    name = os.path.join(path, "state.json")
    try:
        with open(name, encoding="utf-8") as file:
            state = json.load(file)
    except OSError as error:
        raise StorageError(f"{name}: {reason(error)}") from None
    except ValueError:
        raise DataError(f"{name}: not JSON") from None
    if not isinstance(state, dict) or state.get("leat_checkpoint") != VERSION:
        raise DataError(f"{name}: not a checkpoint of this version of leat")
    return state


def load_weights(net: torch.nn.Module, tensors: Mapping[str, Tensor], what: str) -> None:
    """Loads weights whose names and shapes must be those of the model."""
    mine = net.state_dict()
    for name, t in mine.items():
        if name not in tensors:
            raise ArgumentError(f"{what}: is of another model: it has no '{name}'")
        if tensors[name].shape != t.shape:
            raise ArgumentError(f"{what}: is of another model: '{name}' is {list(tensors[name].shape)}, "
                                f"not {list(t.shape)}")
    extra = sorted(set(tensors) - set(mine))
    if extra:
        raise ArgumentError(f"{what}: is of another model: this one has no '{extra[0]}'")
    net.load_state_dict(dict(tensors))


# ---- writing while the run continues --------------------------------------------------------------


class Keeper:
    """Writes checkpoints on a separate thread and removes those that the rule does not keep.

    It keeps the last, the best, and those of each N-th epoch. A failed write is reported by ``failure``
    and leaves the earlier ones as they are.
    """

    def __init__(self, folder: str, best: str | None = None) -> None:
        self.folder = folder
        self.failure: StorageError | None = None
        self.last: str | None = newest(folder)
        self._best = best
        self._marked: set[str] = set()
        self._thread: threading.Thread | None = None
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            raise StorageError(f"{folder}: {error.strerror}") from None
        for name in _names(folder):
            if name.startswith(".writing-"):
                shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
        for name in _names(folder):
            try:
                if _FOLDER.match(name) and read_state(os.path.join(folder, name)).get("kept"):
                    self._marked.add(name)
            except (StorageError, DataError):
                continue

    def save(self, name: str, model: Mapping[str, Tensor], train: Mapping[str, Tensor],
             state: Mapping[str, Any], *, best: bool = False, kept: bool = False, wait: bool = False) -> None:
        """Writes a checkpoint of host tensors. The caller must not change them afterwards."""
        self.wait()
        state = {"leat_checkpoint": VERSION, "kept": kept, **state}
        self._thread = threading.Thread(target=self._write, args=(name, model, train, state, best, kept),
                                        name="leat-checkpoint")
        self._thread.start()
        if wait:
            self.wait()

    def _write(self, name: str, model: Mapping[str, Tensor], train: Mapping[str, Tensor],
               state: Mapping[str, Any], best: bool, kept: bool) -> None:
        try:
            path = write(self.folder, name, model, train, state)
            if kept:
                self._marked.add(name)
            if best:
                self._best = name
                link(self.folder, "best", path)
            link(self.folder, "last", path)
            self.last, self.failure = path, None
            self._prune(name)
        except StorageError as error:
            self.failure = error
        except OSError as error:
            self.failure = StorageError(f"{self.folder}: {error.strerror}")

    def _prune(self, newest_name: str) -> None:
        for name in _names(self.folder):
            if _FOLDER.match(name) and name not in (newest_name, self._best) and name not in self._marked:
                shutil.rmtree(os.path.join(self.folder, name), ignore_errors=True)

    def wait(self) -> None:
        """Waits until the checkpoint that is being written is complete."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
