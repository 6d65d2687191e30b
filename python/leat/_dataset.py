# SPDX-License-Identifier: Apache-2.0
"""Reading packs at random: ``leat.open(path)``."""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Self, overload

import numpy as np

from . import _check, _leat
from ._schema import Field

CODECS = ("", "jpeg", "png", "webp", "raw", "tiled")


class Image:
    """An image of a sample, not decoded until asked for: ``np.asarray(image)``."""

    __slots__ = ("stored", "width", "height", "codec", "channels", "orientation", "flags", "cost_us",
                 "_pack")

    def __init__(self, pack: _leat.Pack, row: tuple) -> None:
        self._pack = pack
        (self.stored, self.width, self.height, codec, self.channels, self.orientation, self.flags,
         self.cost_us) = row
        self.codec = CODECS[codec]

    def decode(self, orientation: str = "apply") -> np.ndarray:
        """Pixels: uint8, height x width x channels; turned as its EXIF orientation says, or as stored
        with ``orientation="ignore"``."""
        if orientation not in ("apply", "ignore"):
            raise _leat.ArgumentError(f'orientation: {orientation!r} is not "apply" or "ignore"')
        code = CODECS.index(self.codec)
        turned = self.orientation if orientation == "apply" else 1
        return np.asarray(self._pack.decode(self.stored, code, turned))

    @property
    def exact(self) -> bool:
        """Whether ``file()`` is the source's file byte for byte: not of pixels, nor of what was resized
        or encoded again, nor of progressive JPEGs that a leat of before tiled."""
        resized, recoded = self.flags & 1, self.flags & 4
        return self.codec != "raw" and not resized and (self.codec != "tiled" or bool(recoded))

    def file(self) -> bytes:
        """The image file, byte for byte as it was packed where ``exact`` is true.

        Tiled images are restored from their tiles. Of an image that was resized or encoded again this is
        the file that was made then. An image stored as pixels has no file: UnsupportedError; decode() it."""
        return self._pack.file(self.stored, CODECS.index(self.codec), self.orientation)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        pixels = self.decode()
        return pixels if dtype is None else pixels.astype(dtype)

    def __repr__(self) -> str:
        return f"leat.Image({self.width}x{self.height}, {self.codec}, {len(self.stored)} bytes)"


class Sample(dict):
    """The fields of one sample by name; ``key`` and ``sample_id`` say which one it is."""

    __slots__ = ("key", "sample_id")
    key: str
    sample_id: int

    def __getattr__(self, name: str) -> object:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class Dataset:
    """A pack, or a set of shards, open for reading.

    >>> ds = leat.open("train.leat")
    >>> len(ds), ds.keys[:2]
    >>> ds[0]["label"], np.asarray(ds[0]["image"]).shape
    >>> ds["n01440764/img_1.jpeg"]                 # by key
    >>> ds[10:20]                                  # a slice is a list of samples
    >>> polars.DataFrame(ds)                       # labels, sizes … without touching an image

    Any number of threads may read at the same time, and forked children too.
    """

    def __init__(self, path: str | os.PathLike, *, verify: bool = True) -> None:
        self._pack = _leat.Pack(_check.path("path", path), verify=_check.flag("verify", verify))
        self.info: dict = self._pack.info()
        self.fields: tuple[Field, ...] = tuple(Field(*row) for row in self._pack.fields())
        self._index = {f.name: i for i, f in enumerate(self.fields)}

    @property
    def path(self) -> str:
        return self.info["path"]

    @property
    def fingerprint(self) -> int:
        """A hash of the whole content: equal for equal packs."""
        return self.info["fingerprint"]

    @property
    def provenance(self) -> dict:
        """What the writer noted about where the pack came from."""
        return json.loads(self._pack.provenance() or "{}")

    @property
    def schema(self) -> dict:
        return json.loads(self._pack.schema())

    @property
    def keys(self) -> Keys:
        """The keys, in order: a sequence that reads them when asked."""
        return Keys(self._pack)

    def classes(self, name: str = "label") -> list[str]:
        """Class names of an int field; [] when it has none."""
        return self._pack.classes(self._field(name))

    def column(self, name: str) -> np.ndarray:
        """All values of an int or float field, from the index."""
        f = self.fields[self._field(name)]
        if f.type not in ("int", "float"):
            raise TypeError(f"field '{name}' is {f.type}: only int and float fields are columns")
        out = np.empty(len(self), np.int64 if f.type == "int" else np.float64)
        if len(out):
            self._pack.column(self._index[name], 0, out)
        return out

    def find(self, key: str | bytes) -> int | None:
        """Number of the sample with this key; None when there is none."""
        return self._pack.find(_encode(key))

    def __len__(self) -> int:
        return len(self._pack)

    @overload
    def __getitem__(self, index: int | str | bytes) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> list[Sample]: ...

    def __getitem__(self, index: int | str | bytes | slice) -> Sample | list[Sample]:
        if isinstance(index, slice):
            return [self._read(i) for i in range(*index.indices(len(self)))]
        if isinstance(index, (str, bytes)):
            found = self.find(index)
            if found is None:
                raise KeyError(index)
            return self._read(found)
        return self._read(_position(index, len(self)))

    def __iter__(self) -> Iterator[Sample]:
        return (self._read(i) for i in range(len(self)))

    def __contains__(self, key: object) -> bool:
        return isinstance(key, (str, bytes)) and self.find(key) is not None

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The index as an Arrow stream: sample_id, key, and what is known of each field."""
        return self._pack.arrow()

    def _field(self, name: str) -> int:
        try:
            return self._index[name]
        except KeyError:
            raise KeyError(f"{self.path}: there is no field '{name}'") from None

    def _read(self, index: int) -> Sample:
        *values, key = self._pack.sample(index)
        sample = Sample((f.name, self._value(f, v)) for f, v in zip(self.fields, values))
        sample.key = _decode(key)
        sample.sample_id = index
        return sample

    def _value(self, f: Field, value: Any) -> object:
        if value is None or f.type in ("int", "float", "bytes"):
            return value
        if f.type == "text":
            return value.decode("utf-8")
        if f.type == "json":
            return json.loads(value)
        if f.type == "image":
            return Image(self._pack, value)
        data, shape = value
        return _array(data, f.dtype, shape)

    def close(self) -> None:
        """Lets go of the files. Arrow streams and images taken before stay good."""
        self._pack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        names = ", ".join(f"{f.name}: {f.type}" for f in self.fields)
        return f"leat.Dataset({self.path!r}, {len(self)} samples, {names})"

    def __reduce__(self):
        return Dataset, (self.path,)


class Keys(Sequence):
    """The keys of a dataset, read from the index when asked for."""

    def __init__(self, pack: _leat.Pack) -> None:
        self._pack = pack

    def __len__(self) -> int:
        return len(self._pack)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1:
                return [_decode(k) for k in self._pack.keys(start, max(stop - start, 0))]
            return [self[i] for i in range(start, stop, step)]
        return _decode(self._pack.keys(_position(index, len(self)), 1)[0])

    def __iter__(self) -> Iterator[str]:
        for first in range(0, len(self), 4096):
            yield from self[first:first + 4096]

    def __contains__(self, key: object) -> bool:
        return isinstance(key, (str, bytes)) and self._pack.find(_encode(key)) is not None

    def index(self, key: str, start: int = 0, stop: int | None = None) -> int:
        """Number of the sample with this key."""
        found = self._pack.find(_encode(key))
        if found is None:
            raise ValueError(f"there is no key {key!r}")
        return found


def _array(data: bytes, dtype: str | None, shape: tuple[int, ...]) -> np.ndarray:
    if dtype == "bfloat16":
        from ._convert import bfloat16
        return bfloat16(np.frombuffer(data, np.uint16).reshape(shape).copy())
    return np.frombuffer(data, dtype).reshape(shape).copy()


def _position(index: object, count: int) -> int:
    i = operator.index(index)  # type: ignore[arg-type]
    if not -count <= i < count:
        raise IndexError(f"sample {i} of {count}")
    return i + count if i < 0 else i


def _decode(key: bytes) -> str:
    return key.decode("utf-8", "surrogateescape")


def _encode(key: str | bytes) -> bytes:
    return key if isinstance(key, bytes) else key.encode("utf-8", "surrogateescape")
