# SPDX-License-Identifier: Apache-2.0
"""Several packs in one loader: ``leat.Mix``."""

from __future__ import annotations

import bisect
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, chain
from typing import Any

import numpy as np

from . import _check
from ._dataset import Dataset, Sample, numbered, sample_number
from ._errors import ArgumentError, MissingKeyError, SampleIndexError, counted, shown
from ._schema import Field

Path = str | os.PathLike

_BATCHES = {"shuffled": 0, "stratified": 1, "single": 2}
_NONE = 2**64 - 1  # value of `choose`: no sample of this pack


class Mix:
    """Packs that a loader draws from in given proportions.

    >>> mix = leat.Mix({"web.leat": 0.7, "books.leat": 0.2, "code.leat": 0.1}, epoch_size=1_000_000)
    >>> loader = leat.Loader(mix, batch_size=256, order="random", seed=1)

    A list of paths, here or as the loader's first argument, means all packs joined: every sample
    of each comes once per epoch.

    Parameters
        packs: a dict of path to weight, or a list of paths (the same one may come twice)
        weights: of the packs of a list. Weights are relative: 7, 2, 1 are 0.7, 0.2, 0.1
        repeat: without weights: how often each pack's samples come per epoch (2, 0.5), a list or a dict of
            paths; packs that are not in the dict come once
        choose: or how many of its samples come per epoch
        epoch_size: samples per epoch, with weights; 0 = as many as all packs have together. How many of a pack
            come is exact: its share, rounded so that the sum is right
        replacement: draw the samples of a pack with replacement. Else a sample comes again only when all
            samples of the pack have come, also across epochs: a small share of a large pack covers it in the end
        batches: "shuffled": only the epoch has the proportions. "stratified": each global batch has them; rounding is
            balanced over later batches. "single": each global batch is of one pack, and an epoch is whole batches
        defaults: dict of field name to the value for samples of packs without that field: a number for int, float
            and array fields, None (no value) for others

    A sample that comes several times in an epoch is augmented differently each time. With
    ``order="sequential"`` nothing is drawn at random: packs take turns, evenly. ``sample_id`` counts through all
    packs, those of the first one first; ``loader.locate`` says which pack and row it is.
    """

    def __init__(self, packs: Mapping[Path, float] | Sequence[Path], weights: Sequence[float] | None = None, *,
                 repeat: Mapping[Path, float] | Sequence[float] | None = None,
                 choose: Mapping[Path, int] | Sequence[int] | None = None, epoch_size: int = 0,
                 replacement: bool = False, batches: str = "shuffled",
                 defaults: Mapping[str, float | None] | None = None) -> None:
        if isinstance(packs, Mapping):
            if weights is not None:
                raise ArgumentError("weights: the dict of packs has them already")
            weights = list(packs.values())
        elif isinstance(packs, (str, bytes, os.PathLike)) or not isinstance(packs, Sequence):
            raise ArgumentError(f"packs: {packs!r} is neither a dict of path to weight nor a list of paths")
        self.packs: tuple[str, ...] = tuple(_check.path(f"packs: number {i}", p) for i, p in enumerate(packs))
        if not self.packs:
            raise ArgumentError("packs: the list is empty")
        self.weights = None if weights is None else _numbers("weights", weights, len(self.packs))
        if self.weights is not None and not sum(self.weights) > 0:
            raise ArgumentError("weights: all of them are 0")
        self.repeat = self._each("repeat", repeat, 1.0)
        chosen = self._each("choose", choose, None)
        self.choose = None if chosen is None else [
            None if n is None else _check.whole("choose", n if n != int(n) else int(n), 0, 2**48) for n in chosen]
        self.epoch_size = _check.whole("epoch_size", epoch_size, 0, 2**48)
        self.replacement = _check.flag("replacement", replacement)
        self.batches = batches
        self._batches = _check.one_of("batches", batches, _BATCHES)
        if defaults is not None and not isinstance(defaults, Mapping):
            raise ArgumentError(f"defaults: {defaults!r} is not a dict of field name to value")
        self.defaults = dict(defaults or {})

    def _each(self, name: str, given: Any, missing: float | None) -> list[Any] | None:
        """Returns one number per pack, from a list or a dict of paths."""
        if given is None:
            return None
        if not isinstance(given, Mapping):
            return _numbers(name, given, len(self.packs))
        by_path = {_check.path(name, path): value for path, value in given.items()}
        for path in by_path:
            if path not in self.packs:
                raise ArgumentError(f"{name}: {_check.public(path)!r} is not one of the packs")
        return [_numbers(name, [by_path[p]], 1)[0] if p in by_path else missing for p in self.packs]

    def options(self, fields: Sequence[Field]) -> dict[str, Any]:
        """Returns the options for C."""
        sources = []
        for i, path in enumerate(self.packs):
            weight = self.weights[i] if self.weights is not None else 0.0
            repeat = self.repeat[i] if self.repeat is not None else 0.0
            chosen = self.choose[i] if self.choose is not None else None
            count = 0 if chosen is None else chosen or _NONE
            if self.repeat is not None and repeat == 0:
                count = _NONE
            if chosen is not None and self.repeat is not None and repeat == 1:
                repeat = 0.0
            sources.append((os.fsencode(path), weight, repeat, count))
        return {"sources": sources, "epoch_size": self.epoch_size, "replacement": self.replacement,
                "mix_batches": self._batches, "defaults": self._defaults(fields)}

    def _defaults(self, fields: Sequence[Field]) -> list[tuple[str, int, float]]:
        types = {f.name: f for f in fields}
        made = []
        for name, value in self.defaults.items():
            field = types.get(name)
            if field is None:
                raise ArgumentError(f"defaults: no pack has a field {name!r}")
            if field.type not in ("int", "float", "array"):
                if value is not None:
                    raise ArgumentError(f"defaults: {name!r} is of type {field.type}: the only default is None (no value)")
                value = 0
            number = _check.real(f"defaults: {name}", value, -math.inf, math.inf) if value == value else math.nan
            whole = field.type == "int" or (field.type == "array" and not str(field.dtype).startswith(("f", "bf")))
            if whole and (number != number or math.isinf(number) or number != int(number)):
                raise ArgumentError(f"defaults: {name!r} has whole numbers, and {value!r} is not one")
            made.append((name, _check.whole(f"defaults: {name}", int(value), -2**63, 2**63 - 1) if whole else 0, number))
        return made

    def __repr__(self) -> str:
        packs = [_check.public(p) for p in self.packs]
        shares = dict(zip(packs, self.weights)) if self.weights is not None else packs
        return f"leat.Mix({shares!r}, batches={self.batches!r})"


def _numbers(name: str, given: Any, count: int) -> list[float]:
    if isinstance(given, (str, bytes)) or not isinstance(given, Sequence | np.ndarray):
        raise ArgumentError(f"{name}: {given!r} is not a list of numbers")
    if len(given) != count:
        raise ArgumentError(f"{name}: {len(given)} given for {counted(count, 'pack')}")
    return [_check.real(f"{name}: number {i}", value, 0, 1e300) for i, value in enumerate(given)]


class Datasets(Sequence):
    """The packs of a loader for random access: sample numbers count through all of them."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.parts = tuple(Dataset(path) for path in paths)
        self.starts = [0, *accumulate(len(part) for part in self.parts)]
        fields: dict[str, Field] = {}
        for part in self.parts:
            for field in part.fields:
                fields.setdefault(field.name, field)
        self.fields = tuple(fields.values())

    @property
    def keys(self) -> JoinedKeys:
        """The keys of all packs, in order: a sequence that reads them on demand."""
        return JoinedKeys(self)

    def classes(self, name: str = "label") -> list[str]:
        """Returns the class names of an int field; [] when it has none. The lists of the packs may differ only in length."""
        listed = [(part, part.classes(name)) for part in self._with(name)]
        longest: list[str] = max((names for _, names in listed), key=len)
        for part, names in listed:
            if names != longest[:len(names)]:
                raise ArgumentError(f"{part.path}: field '{name}' has other class names than in the other packs, which number them "
                                    "differently: leat merge joins the packs and their class names")
        return longest

    def column(self, name: str) -> np.ndarray:
        """Returns all values of an int or float field, from the indexes; every pack must have the field."""
        return np.concatenate([part.column(name) for part in self.parts])

    def _with(self, name: str) -> list[Dataset]:
        """Returns the packs that have this field."""
        having = [part for part in self.parts if any(field.name == name for field in part.fields)]
        if not having:
            raise MissingKeyError(f"no pack has a field {shown(name)}; they have {', '.join(f.name for f in self.fields)}")
        return having

    def __len__(self) -> int:
        return self.starts[-1]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if isinstance(index, (str, bytes)):
            having = [i for i, part in enumerate(self.parts) if index in part]
            if not having:
                raise MissingKeyError(f"no pack has a sample with the key {index!r}")
            if len(having) > 1:
                paths = " and ".join(self.parts[i].path for i in having[:2])
                raise ArgumentError(f"the key {index!r} is in {paths}: give the number of the sample")
            index = self.find(index)
        part, row = self.place(index)
        sample: Sample = self.parts[part][row]
        sample.sample_id = self.starts[part] + row
        return sample

    def place(self, index: Any) -> tuple[int, int]:
        """Returns which pack a sample is in, and its row there."""
        count, i = len(self), sample_number(index)
        if not -count <= i < count:
            raise SampleIndexError(f"there is no sample {i}; {numbered(count)}")
        i += count if i < 0 else 0
        part = bisect.bisect_right(self.starts, i) - 1
        return part, i - self.starts[part]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def find(self, key: str | bytes) -> int | None:
        """Returns the number of the sample with this key, in the first pack that has it."""
        for start, part in zip(self.starts, self.parts):
            index = part.find(key)
            if index is not None:
                return start + index
        return None

    def __contains__(self, key: object) -> bool:
        return any(key in part for part in self.parts)


class JoinedKeys(Sequence):
    """The keys of several packs."""

    def __init__(self, packs: Datasets) -> None:
        self._packs = packs

    def __len__(self) -> int:
        return len(self._packs)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        part, row = self._packs.place(index)
        return self._packs.parts[part].keys[row]

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(part.keys for part in self._packs.parts)

    def __contains__(self, key: object) -> bool:
        return key in self._packs

    def index(self, key: str, start: int = 0, stop: int | None = None) -> int:
        """Returns the number of the first sample with this key."""
        found = self._packs.find(key)
        if found is None:
            raise ArgumentError(f"there is no sample with the key {shown(key)}")
        return found
