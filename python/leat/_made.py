# SPDX-License-Identifier: Apache-2.0
"""Samples with transformed images, one at a time: ``leat.open(path, image=[...])`` for map-style datasets."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _check, _convert, _leat, ops
from ._errors import ArgumentError, shown
from ._schema import Field

_ORIENTATIONS = {"apply": 0, "ignore": 1}
_EXTRA = ("sample_id", "key")


class SharedEpoch:
    """The epoch of a dataset. Worker processes of a DataLoader see when it is set, persistent ones too:
    it is in shared memory where torch is installed."""

    def __init__(self) -> None:
        torch = sys.modules.get("torch")
        self.cell: Any = np.zeros(1, np.int64) if torch is None else torch.zeros(
            1, dtype=torch.int64).share_memory_()

    def get(self) -> int:
        return int(self.cell[0])

    def set(self, epoch: int) -> None:
        self.cell[0] = epoch


def _pipeline(text: str, view: int, kind: int, field: str) -> _leat.Pipeline:
    try:
        return _leat.Pipeline(text, view, kind, field)
    except ArgumentError as error:  # advice that is for loaders only
        said = str(error).partition("; or let batches hold")[0].partition(", or collate pad")[0]
        raise ArgumentError(said) from None


class Maker:
    """Makes samples of a pack: which fields they have, and the pipelines of their images."""

    def __init__(self, pack: _leat.Pack, path: str, fields: tuple[Field, ...], image: Any, wanted: Sequence[str] | None,
                 *, seed: int, orientation: str, as_: str, channels_last: bool, roles: str | None) -> None:
        self.as_, self._convert = _convert.converter(as_)
        self.channels_last = _check.flag("channels_last", channels_last)
        self.seed = _check.whole("seed", seed)
        self.as_stored = _check.one_of("orientation", orientation, _ORIENTATIONS) == 1
        self.epoch = SharedEpoch()
        index = {f.name: i for i, f in enumerate(fields)}
        self.images: list[tuple[int, _leat.Pipeline]] = []
        self.names: list[str] = []
        for name, field, text in _views(path, fields, image, self.channels_last):
            number = index.get(field, -1)
            if number < 0 or fields[number].type != "image":
                raise ArgumentError(f"image: {path} has no image field {field!r}")
            view = sum(at == number for at, _ in self.images)
            self.images.append((number, _pipeline(text, view, pack.kind(number), field)))
            self.names.append(name)
        self.follow = None if roles is None else pack.follow(
            roles, [(name, *image) for name, image in zip(self.names, self.images)])
        self.followers: list[str] = [] if self.follow is None else self.follow.names()
        self.fields = self._choose(path, fields, wanted)

    def _choose(self, path: str, fields: tuple[Field, ...], wanted: Sequence[str] | None) -> list[str]:
        """Returns the names of a sample's values, in order."""
        plain = [f.name for f in fields if f.type != "image" or f.name in self.followers]
        if wanted is None:
            twice = next((n for n in self.names if n in (*plain, "sample_id")), None)
            if twice is not None:
                raise ArgumentError(f"{path}: two outputs are named '{twice}': give the image another name, or leave out the "
                                    "field (fields=)")
            return [*self.names, *plain, "sample_id"]
        names = _check.several("fields", wanted)
        known = {*self.names, *(f.name for f in fields), *_EXTRA}
        for name in names:
            if name not in known:
                raise ArgumentError(f"fields: {path} has no field {name!r}")
        return [*(n for n in self.names if n not in names), *names]

    def make(self, pack: _leat.Pack, indices: Sequence[int]) -> tuple[list[list[Any]], list[Any], list[dict[str, Any]]]:
        """Returns the values of each sample, one tensor of images per pipeline, and the fields that follow the images."""
        numbers = np.asarray(indices, np.uint64)
        rows, tensors, moved = pack.make(numbers, self.images, self.seed, self.epoch.get(), self.as_stored, self.follow)
        if self.channels_last and self.as_ == "torch":
            tensors = [t.permute(0, 3, 1, 2) for t in tensors]
        followers = [{name: self._moved(*value) for name, value in one.items()} for one in moved] or [{}] * len(rows)
        return rows, [self._convert(t) for t in tensors], followers

    def _moved(self, data: bytes, dtype: str, shape: tuple[int, ...]) -> Any:
        """Converts a mask, boxes or points to an array of the user's framework."""
        array = np.frombuffer(bytearray(data), np.uint16 if dtype == "bfloat16" else dtype).reshape(shape)
        if self.as_ == "torch":
            import torch

            return torch.from_numpy(array).view(torch.bfloat16) if dtype == "bfloat16" else torch.from_numpy(array)
        array = _convert.bfloat16(array) if dtype == "bfloat16" else array
        if self.as_ == "jax":
            import jax

            return jax.numpy.asarray(array)
        return array


def _views(path: str, fields: tuple[Field, ...], image: Any, channels_last: bool) -> list[tuple[str, str, str]]:
    """Returns (output name, field, pipeline as text) of each image to make."""
    if isinstance(image, Mapping):
        listed: list[tuple[str | None, str | None, str]] = [ops.view(item) for item in image.items()]
    elif isinstance(image, (str, ops.Op, Sequence)):
        listed = [(None, None, ops.text(image))]
    else:
        raise ArgumentError(f"image: {shown(image)} is neither a pipeline nor a dict of them")
    first = next((f.name for f in fields if f.type == "image"), None)
    if first is None and any(field is None for _, field, _ in listed):
        raise ArgumentError(f"image: {path} has no image field")
    return [(name or field or first, field or first, ops.laid_out(text, channels_last))  # type: ignore[misc]
            for name, field, text in listed]
