# SPDX-License-Identifier: Apache-2.0
"""Reading packs at random: ``leat.open(path)``."""

from __future__ import annotations

import functools
import inspect
import json
import operator
import os
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Self, overload

import numpy as np

from . import _check, _leat
from ._errors import ArgumentError, MissingKeyError, SampleIndexError, StateError, UnsupportedError, counted, shown
from ._follow import Role, roles_text
from ._made import Maker
from ._schema import Field

CODECS = ("", *_leat.codecs())


class Image:
    """An image of a sample, not decoded until asked for: ``np.asarray(image)``."""

    __slots__ = ("stored", "width", "height", "codec", "channels", "orientation", "flags", "cost_us",
                 "_pack", "_rgb")

    def __init__(self, pack: _leat.Pack, row: tuple, rgb: bool = False) -> None:
        self._pack = pack
        self._rgb = rgb
        (self.stored, self.width, self.height, codec, self.channels, self.orientation, self.flags,
         self.cost_us) = row
        self.codec = CODECS[codec]

    @property
    def dtype(self) -> np.dtype:
        """The type of the pixels: uint8, uint16 or float32."""
        return np.dtype("float32" if self.flags & 32 else "uint16" if self.flags & 16 else "uint8")

    @property
    def wide(self) -> bool:
        """False for 8-bit images of 1, 3 or 4 channels, True for all others."""
        return self.dtype != np.uint8 or self.channels not in (1, 3, 4)

    def decode(self, orientation: Literal["apply", "ignore"] = "apply", *, rgb: bool | None = None) -> np.ndarray:
        """Pixels: height x width x channels, of ``dtype``; turned as its EXIF orientation says, or as stored
        with ``orientation="ignore"``. With ``rgb``, three channels of grey and transparent images too, as
        pipelines have them; None is what ``leat.open(path, rgb=...)`` said."""
        if not isinstance(orientation, str) or orientation not in ("apply", "ignore"):
            raise ArgumentError(f'orientation: {shown(orientation)} is not "apply" or "ignore"')
        code = CODECS.index(self.codec)
        turned = self.orientation if orientation == "apply" else 1
        pixels = np.asarray(self._pack.decode(self.stored, code, turned))
        if not (self._rgb if rgb is None else rgb) or pixels.shape[2] == 3:
            return pixels
        if self.wide:
            raise UnsupportedError(f"rgb: an image of {self.dtype} with {self.channels} channels has no RGB form")
        return np.repeat(pixels, 3, 2) if pixels.shape[2] == 1 else np.ascontiguousarray(pixels[:, :, :3])

    def pil(self) -> Any:
        """The pixels as a Pillow image."""
        from PIL import Image as pillow

        pixels = self.decode()
        if self.wide and (pixels.shape[2] != 1 or pixels.dtype == np.uint8):
            raise UnsupportedError(f"Pillow has no mode for {self.dtype} with {self.channels} channels: decode() it")
        return pillow.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)

    def tobytes(self) -> bytes:
        """The decoded pixels, row by row."""
        return self.decode().tobytes()

    def _repr_png_(self) -> bytes | None:
        return None if self.wide else _leat.png(np.ascontiguousarray(self.decode()))

    @property
    def __array_interface__(self) -> dict[str, Any]:
        pixels = self.decode()
        return {"version": 3, "shape": pixels.shape, "typestr": pixels.dtype.str, "data": pixels.tobytes(),
                "strides": pixels.strides}

    @property
    def exact(self) -> bool:
        """Whether ``file()`` is the source's file byte for byte: false for images stored as pixels, resized
        or encoded again, and for progressive JPEGs that an older leat tiled."""
        resized, recoded = self.flags & 1, self.flags & 4
        return self.codec != "raw" and not resized and (self.codec != "tiled" or bool(recoded))

    def file(self) -> bytes:
        """The image file, byte for byte as it was packed where ``exact`` is true.

        Tiled images are restored from their tiles. For an image that was resized or encoded again, it is the new file.
        An image stored as pixels has no file and raises UnsupportedError: use decode()."""
        return self._pack.file(self.stored, CODECS.index(self.codec), self.orientation)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        pixels = self.decode()
        return pixels if dtype is None else pixels.astype(dtype)

    def __reduce__(self):
        """Pickles the image with its stored bytes; the other process opens the pack for the tables they need."""
        info = self._pack.info()
        row = (bytes(self.stored), self.width, self.height, CODECS.index(self.codec), self.channels, self.orientation,
               self.flags, self.cost_us)
        return _copy_image, (info["path"], info["fingerprint"], row, self._rgb)

    def __repr__(self) -> str:
        kind = f" {self.dtype} x {self.channels}," if self.wide else ""
        return f"leat.Image({self.width}x{self.height},{kind} {self.codec}, {counted(len(self.stored), 'byte')})"


class Sample(dict):
    """The fields of one sample by name; ``key`` and ``sample_id`` say which one it is."""

    __slots__ = ("key", "sample_id")
    key: str
    sample_id: int

    def __getattr__(self, name: str) -> object:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the sample has no field {name!r} (it has {', '.join(self)})",
                                 name=name, obj=self) from None

    def __setattr__(self, name: str, value: object) -> None:
        if name not in Sample.__slots__:
            raise AttributeError(f"a sample is a copy, whose values are changed by name: sample[{name!r}] = ...; the pack is changed by "
                                 "leat.Writer(path, append=True).update(sample, key)", name=name, obj=self)
        super().__setattr__(name, value)


class Dataset:
    """A pack, or a set of shards, open for reading.

    >>> ds = leat.open("train.leat")
    >>> len(ds), ds.keys[:2]
    >>> ds[0]["label"], np.asarray(ds[0]["image"]).shape
    >>> ds["n01440764/img_1.jpeg"]                 # by key
    >>> ds[10:20]                                  # a slice is a list of samples
    >>> polars.DataFrame(ds)                       # labels, sizes … without touching an image

    With ``image`` it is a map-style dataset with the pixels of a loader:

    >>> ds = leat.open("train.leat", image=[leat.ops.RandomResizedCrop(224)], seed=1)
    >>> torch.utils.data.DataLoader(ds, batch_size=64, num_workers=4)

    Any number of threads may read at the same time, and forked children too.

    Parameters
        path: of the pack
        verify: check samples against their checksums
        image: pipeline as of ``leat.Loader``: images are decoded, augmented and delivered as tensors. What
            is drawn depends on the seed, the epoch (``set_epoch``) and the number of the sample, as in a loader
        fields: with image: which fields a sample has, in this order; "sample_id" and "key" may be among them. The
            transformed images come first if they are not. None: the transformed images, all fields that are not
            images, and "sample_id"
        as_tuple: with image: samples are plain tuples of the fields, not dicts
        seed, orientation, channels_last, as_: with image: as of ``leat.Loader``
        rgb: without image: pixels have three channels, of grey and transparent images too
        follow, **roles: with image: fields that follow its geometry, as of ``leat.Loader``: ``mask="follow"``,
            ``boxes=leat.ops.Boxes("xywh")``; with the values of a loader. Boxes of samples differ in number: a
            DataLoader needs a ``collate_fn`` for them
    """

    def __init__(self, path: str | os.PathLike, *, verify: bool = True, image: Any = None,
                 fields: Sequence[str] | None = None, as_tuple: bool = False, seed: int = 0,
                 orientation: Literal["apply", "ignore"] = "apply", channels_last: bool = False,
                 as_: Literal["auto", "torch", "numpy", "jax", "dlpack"] = "auto", rgb: bool = False,
                 follow: Mapping[str, Role] | str | None = None, **roles: Any) -> None:
        self._given = _check.path("path", path)
        self._pack = _leat.Pack(self._given, verify=_check.flag("verify", verify))
        self._options = {"verify": verify, "image": image, "fields": fields, "as_tuple": as_tuple, "seed": seed,
                         "orientation": orientation, "channels_last": channels_last, "as_": as_, "rgb": rgb,
                         "follow": follow, **roles}
        self._rgb = _check.flag("rgb", rgb)
        self._as_tuple = _check.flag("as_tuple", as_tuple)
        self._maker: Maker | None = None
        self.info: dict = self._pack.info()
        self.fields: tuple[Field, ...] = tuple(Field(*row) for row in self._pack.fields())
        self._index = {f.name: i for i, f in enumerate(self.fields)}
        text = roles_text(follow, roles, "leat.open", self.path, list(self._index),
                          inspect.signature(Dataset).parameters)
        if image is not None:
            self._maker = Maker(self._pack, self.path, self.fields, image, fields, seed=seed, orientation=orientation,
                                as_=as_, channels_last=channels_last, roles=text)
            if rgb:
                raise ArgumentError("rgb: pipelines deliver three channels anyway; leave it out beside image")
            return
        for name, given in ((next(iter(roles), "follow"), text is not None), ("fields", fields is not None), ("as_tuple", self._as_tuple), ("seed", _check.whole("seed", seed) != 0),
                            ("orientation", not _is_text(orientation, "apply")),
                            ("channels_last", _check.flag("channels_last", channels_last)),
                            ("as_", not _is_text(as_, "auto"))):
            if given:
                raise ArgumentError(f"{name}: is for images made by a pipeline; give image= too")

    @property
    def epoch(self) -> int:
        """The epoch that random ops draw for."""
        return 0 if self._maker is None else self._maker.epoch.get()

    def set_epoch(self, epoch: int) -> None:
        """Makes random ops draw as a loader does in this epoch. Worker processes of a DataLoader see it too."""
        epoch = _check.whole("epoch", epoch, 0, _check.EPOCH_MAX)
        if self._maker is None:
            raise ArgumentError("set_epoch: nothing is drawn without image=")
        self._maker.epoch.set(epoch)

    @property
    def path(self) -> str:
        return _check.public(self.info["path"])

    @property
    def fingerprint(self) -> int:
        """A hash of the whole content: equal for equal packs."""
        return self.info["fingerprint"]

    @property
    def provenance(self) -> dict:
        """Where the pack came from and its settings, as the writer recorded them."""
        return json.loads(self._pack.provenance() or "{}")

    @property
    def schema(self) -> dict:
        return json.loads(self._pack.schema())

    @property
    def keys(self) -> Keys:
        """The keys, in order: a sequence that reads them on demand."""
        return Keys(self._pack)

    def classes(self, name: str = "label") -> list[str]:
        """Returns the class names of an int field; [] when it has none."""
        return self._pack.classes(self._field(name))

    def column(self, name: str) -> np.ndarray:
        """Returns all values of an int or float field, from the index. Other fields are read sample by sample."""
        f = self.fields[self._field(name)]
        if f.type not in ("int", "float"):
            raise ArgumentError(f"{self.path}: field '{name}' is {f.type}: only int and float fields are columns; read others sample by sample")
        out = np.empty(len(self), np.int64 if f.type == "int" else np.float64)
        if len(out):
            self._pack.column(self._index[name], 0, out)
        return out

    def find(self, key: str | bytes) -> int | None:
        """Returns the number of the sample with this key, or None."""
        return self._pack.find(_encode(key))

    def __len__(self) -> int:
        return len(self._pack)

    @overload
    def __getitem__(self, index: int | str | bytes) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> list[Sample]: ...

    def __getitem__(self, index: int | str | bytes | slice) -> Sample | list[Sample]:
        if isinstance(index, slice):
            return self._read_all(range(*index.indices(len(self))))
        if isinstance(index, (str, bytes)):
            found = self.find(index)
            if found is None:
                raise MissingKeyError(f"{self.path}: there is no sample with the key {index!r}")
            return self._read(found)
        return self._read(_position(index, self._pack))

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """Reads several samples in one call; PyTorch's DataLoader uses it."""
        return self._read_all([_position(i, self._pack) for i in indices])

    def __iter__(self) -> Iterator[Sample]:
        return (self._read(i) for i in range(len(self)))

    def __contains__(self, key: object) -> bool:
        return isinstance(key, (str, bytes)) and self.find(key) is not None

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The index as an Arrow stream: sample_id, key, and what the index holds of each field."""
        return self._pack.arrow()

    def _field(self, name: str) -> int:
        try:
            return self._index[name]
        except KeyError:
            raise MissingKeyError(f"{self.path}: there is no field {name!r}; it has {', '.join(self._index)}") from None
        except TypeError:
            raise ArgumentError(f"name: {shown(name)} is not the name of a field") from None

    def _read_all(self, indices: Sequence[int]) -> list[Any]:
        if self._maker is None:
            return [self._read(i) for i in indices]
        maker, made = self._maker, []
        rows, tensors, followers = maker.make(self._pack, indices)
        for at, ((*values, key), index) in enumerate(zip(rows, indices)):
            named = {"sample_id": index, "key": _decode(key)}
            named.update((f.name, self._value(f, v)) for f, v in zip(self.fields, values) if f.name in maker.fields)
            named.update(followers[at])
            named.update((name, tensor[at]) for name, tensor in zip(maker.names, tensors))
            made.append(self._made(named, _decode(key), index))
        return made

    def _made(self, named: dict[str, Any], key: str, index: int) -> Any:
        assert self._maker is not None
        if self._as_tuple:
            return tuple(named[name] for name in self._maker.fields)
        sample = Sample((name, named[name]) for name in self._maker.fields)
        sample.key, sample.sample_id = key, index
        return sample

    def _read(self, index: int) -> Any:
        if self._maker is not None:
            return self._read_all([index])[0]
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
            return Image(self._pack, value, self._rgb)
        data, shape = value
        return _array(data, f.dtype, shape)

    def close(self) -> None:
        """Closes the files. Arrow streams and images read before stay valid."""
        self._pack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        names = ", ".join(f"{f.name}: {f.type}" for f in self.fields)
        return f"leat.Dataset({self.path!r}, {counted(len(self), 'sample')}, {names})"

    def __reduce__(self):
        epoch = None if self._maker is None else self._maker.epoch
        path = self._given if "://" in self._given else self.info["path"]  # the shown path lacks the signature
        return _reopen, (self._options, path, self.fingerprint, epoch)


def _reopen(options: dict[str, Any], path: str, fingerprint: int, epoch: Any) -> Dataset:
    """Opens a pickled dataset again, usually in a worker process."""
    dataset = Dataset(path, **options)
    if dataset.fingerprint != fingerprint:
        raise StateError(f"{dataset.path}: was changed since the dataset was opened; open it again")
    if dataset._maker is not None:
        dataset._maker.epoch = epoch
    return dataset


@functools.lru_cache(maxsize=8)
def _pack_of_images(path: str, fingerprint: int) -> _leat.Pack:
    pack = _leat.Pack(path)
    if pack.info()["fingerprint"] != fingerprint:
        raise StateError(f"{dataset.path}: was changed since the image was read; open it again")
    return pack


def _copy_image(path: str, fingerprint: int, row: tuple, rgb: bool) -> Image:
    return Image(_pack_of_images(path, fingerprint), row, rgb)


class Keys(Sequence):
    """The keys of a dataset, read from the index on demand."""

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
        return _decode(self._pack.keys(_position(index, self._pack), 1)[0])

    def __iter__(self) -> Iterator[str]:
        for first in range(0, len(self), 4096):
            yield from self[first:first + 4096]

    def __contains__(self, key: object) -> bool:
        return isinstance(key, (str, bytes)) and self._pack.find(_encode(key)) is not None

    def index(self, key: str, start: int = 0, stop: int | None = None) -> int:
        """Returns the number of the sample with this key."""
        found = self._pack.find(_encode(key))
        if found is None:
            raise ArgumentError(f"there is no sample with the key {shown(key)}")
        return found


def _is_text(value: object, text: str) -> bool:
    return isinstance(value, str) and value == text


def _array(data: bytes, dtype: str | None, shape: tuple[int, ...]) -> np.ndarray:
    if dtype == "bfloat16":
        from ._convert import bfloat16
        return bfloat16(np.frombuffer(data, np.uint16).reshape(shape).copy())
    return np.frombuffer(data, dtype).reshape(shape).copy()


def _position(index: object, pack: _leat.Pack) -> int:
    count, i = len(pack), sample_number(index)
    if not -count <= i < count:
        raise SampleIndexError(f"{pack.info()['path']}: there is no sample {i}; {numbered(count)}")
    return i + count if i < 0 else i


def numbered(count: int) -> str:
    """Returns which numbers samples have, for messages."""
    return f"numbers go from 0 to {count - 1}" if count else "there are none"


def sample_number(index: object) -> int:
    """Returns the number of a sample as an int."""
    try:
        if isinstance(index, bool):
            raise TypeError
        return operator.index(index)  # type: ignore[arg-type]
    except TypeError:
        raise ArgumentError(f"{shown(index)} is not a sample's number, a key or a slice") from None


def _decode(key: bytes) -> str:
    return key.decode("utf-8", "surrogateescape")


def _encode(key: str | bytes) -> bytes:
    if not isinstance(key, (str, bytes)):
        raise ArgumentError(f"key: {shown(key)} is not text or bytes")
    try:
        return key if isinstance(key, bytes) else key.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ArgumentError(f"key: {shown(key)} is not Unicode text") from None
