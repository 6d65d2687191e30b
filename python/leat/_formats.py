# SPDX-License-Identifier: Apache-2.0
"""Formats of other tools as sources of ``leat.pack`` and ``leat pack``. Recognises the format of a path, and reads
FFCV, Mosaic MDS, LitData and LMDB files. A reader gives its fields before the first row. Rows have the order of the
format's own library. The C library encodes and writes them (src/ingest/source_reader.c)."""

from __future__ import annotations

import bz2
import importlib
import itertools
import json
import os
import posixpath
import struct
import tempfile
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from . import _check, _leat, _schema, _values
from ._errors import AdviceWarning, ArgumentError, DataError, Error, LimitError, NotFoundError, StorageError, reason

_PAGE = 1000  # names per page of a bucket's list
_LIST = 1 << 24  # maximum names of a folder
IMAGES = ("image", "img", "jpg", "jpeg", "png", "webp", "image_bytes", "pil")
LABELS = ("label", "labels", "cls", "class", "class_name", "target", "category")  # as in src/ingest/source.c

# key, path of the image or None, values or the error that prevents reading them
Sample = tuple[str | bytes, str | None, Mapping[str, object] | DataError]

# errors that reading a damaged file can raise
_DAMAGE = (struct.error, ValueError, LookupError, TypeError, ArithmeticError, AttributeError, EOFError, RecursionError)


@contextmanager
def damage_named(path: str) -> Iterator[None]:
    """Turns Python exceptions from a damaged or unreadable file into one line with the file's name."""
    try:
        yield
    except Error:
        raise
    except PermissionError as error:
        raise StorageError(f"{error.filename or path}: cannot open: {reason(error)}") from error
    except _DAMAGE as error:
        said = " ".join(str(error).split())[:200]
        raise DataError(f"{path}: damaged: {type(error).__name__}: {said}") from error


class Staged:
    """A remote file, copied to a temporary file for libraries that read only from a disk. The temporary file has no
    name (O_TMPFILE), so the kernel removes it even when the process is killed. A local file is used where it is."""

    def __init__(self, path: str) -> None:
        self.name, self.local, self._fd = path, path, -1
        if "://" not in path:
            return
        folder = os.environ.get("LEAT_STAGE_DIR") or tempfile.gettempdir()
        try:
            self._fd = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600)
        except OSError:  # a file system without O_TMPFILE
            self._fd, name = tempfile.mkstemp(dir=folder)
            os.unlink(name)
        self.local = f"/proc/self/fd/{self._fd}"
        free = os.statvfs(folder)
        limit = free.f_bavail * free.f_frsize
        size = _leat.stage_file(path, self._fd, limit)
        if size > limit:
            self.close()
            raise LimitError(f"{path}: its {size} bytes do not fit into {folder}, which has {limit} free: set "
                             "LEAT_STAGE_DIR to a larger disk")
        warnings.warn(f"{path}: {size} bytes were copied to a temporary file in {folder}, which lasts until they are read",
                      AdviceWarning, stacklevel=2)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class Reader:
    """Fields and rows of one data set. ``specs`` are its columns, as for leat.Writer; the image is renamed
    ``image``, the class ``label``."""

    kind: ClassVar[str] = ""
    source = ""
    classes: Mapping[str, Sequence[str]] = {}  # class names of int fields
    ignored: Collection[str] = ()  # names of files that are not part of the data set
    chosen = False  # only some columns are wanted
    keeps_names = False  # the columns are fields of a pack
    total = 0

    def start(self, specs: Mapping[str, object]) -> None:
        names = {name: name for name in specs} if self.keeps_names else _names(specs)
        self.specs, self.columns = specs, list(specs)
        self._fields = _schema.fields({names[name]: spec for name, spec in specs.items()})

    @property
    def fields(self) -> list[tuple]:
        return [f._replace(shape=None) if f.type == "ragged" else f for f in self._fields]

    def choose(self, members: list[str]) -> None:
        """Keeps these columns, in this order."""
        unknown = next((name for name in members if name not in self.specs), None)
        if unknown is not None:
            raise ArgumentError(f"members: there is no column {unknown!r}; {self.source} has {', '.join(self.specs)[:200]}")
        self.chosen = True
        self.start({name: self.specs[name] for name in members})

    def samples(self) -> Iterator[Sample]:
        raise NotImplementedError

    def rows(self) -> Iterator[tuple]:
        samples = self.samples()
        for i in itertools.count():
            with damage_named(self.source):
                sample = next(samples, None)
            if sample is None:
                return
            key, path, values = sample
            name = key if isinstance(key, bytes) else key.encode("utf-8", "surrogateescape")
            try:
                if isinstance(values, DataError):
                    raise values
                row = [_values.prepare(f, i, values.get(column)) if values.get(column) is not None else _missing(f, i)
                       for f, column in zip(self._fields, self.columns)]
            except Error as error:
                yield name, str(error).encode()
                continue
            yield name, None if path is None or "image" not in self.columns else os.fsencode(path), row

    def close(self) -> None:
        pass


def _missing(f: _schema.Field, row: int) -> object:
    if f.type == "int":
        raise DataError(f"sample {row}: '{f.name}' has no value, but int fields must have one")
    return float("nan") if f.type == "float" else None


def _names(specs: Mapping[str, object]) -> dict[str, str]:
    """Returns the names of the columns in the pack."""
    names = {name: name for name in specs}
    images = [name for name, spec in specs.items() if spec == "image"]
    labels = [name for name in LABELS if specs.get(name) is int]
    if images and "image" not in images and "image" not in specs:
        names[next((n for n in IMAGES if n in images), images[0])] = "image"
    if labels and "label" not in labels and "label" not in specs:
        names[labels[0]] = "label"
    return names


def number(i: int) -> str:
    return f"{i:08d}"


def bytes_spec(data: object) -> object:
    """Returns the type of a column of bytes, by its first value."""
    return "image" if data is not None and _leat.image_sniff(data) else bytes


def _pil_bytes(data: bytes, name: str) -> bytes:
    """Encodes the pixels that Mosaic and LitData store of a PIL image as a PNG file."""
    width, height, size = struct.unpack_from("<III", data)
    mode = data[12:12 + size].decode()
    channels = {"L": 1, "RGB": 3, "RGBA": 4}.get(mode)
    if channels is None:
        raise DataError(f"column '{name}': images of mode {mode} are not read")
    pixels = np.frombuffer(data, np.uint8, width * height * channels, 12 + size)
    return _leat.png(pixels.reshape(height, width, channels))


def _slice(data: bytes, begin: int, end: int, path: str) -> bytes:
    if not 0 <= begin <= end <= len(data):
        raise DataError(f"{path}: damaged: bytes {begin} to {end} of {len(data)}")
    return data[begin:end]


def _below(folder: str, name: str, index: str = "index.json") -> str:
    """Returns the path of a file that an index names. It must be below the folder of the index, because the index is
    not trusted."""
    if posixpath.isabs(name) or "://" in name or ".." in name.split("/"):
        raise DataError(f"{posixpath.join(folder, index)}: names {name!r}, which is not below its folder")
    return posixpath.join(folder, name)


def _chunk(data: bytes, path: str) -> list[bytes]:
    """Splits a shard of Mosaic or LitData into items. Layout: number of items, offsets, items."""
    if len(data) < 8:
        raise DataError(f"{path}: truncated")
    (n,) = struct.unpack_from("<I", data)
    if len(data) < 4 * (n + 2):
        raise DataError(f"{path}: truncated")
    offsets = struct.unpack_from(f"<{n + 1}I", data, 4)
    return [_slice(data, a, b, path) for a, b in zip(offsets, offsets[1:])]


def _split(item: bytes, sizes: list[int | None], path: str) -> list[bytes]:
    """Returns the values of an item. Sizes that vary (None) are stored before the values."""
    free = sizes.count(None)
    if len(item) < 4 * free:
        raise DataError(f"{path}: damaged item")
    given = iter(struct.unpack_from(f"<{free}I", item))
    at, values = 4 * free, []
    for size in sizes:
        length = next(given) if size is None else size
        values.append(_slice(item, at, at + length, path))
        at += length
    return values


# ---- Mosaic MDS -------------------------------------------------------------------------------

_INTS = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64")
_MDS_DTYPES = {8: "uint8", 9: "int8", 16: "uint16", 17: "int16", 18: "float16", 32: "uint32", 33: "int32",
               34: "float32", 64: "uint64", 65: "int64", 66: "float64"}


def _mds_array(data: bytes, dtype: str | None, shape: tuple[int, ...] | None) -> np.ndarray:
    at = 0
    if dtype is None:
        dtype = _MDS_DTYPES[data[0]]
        at = 1
    if shape is None:
        ndim, width = data[at] >> 2, 1 << (data[at] & 3)
        shape = tuple(int(n) for n in np.frombuffer(data, f"<u{width}", ndim, at + 1))
        at += 1 + ndim * width
    return np.frombuffer(data, dtype, offset=at).reshape(shape)


def _mds_column(name: str, encoding: str) -> tuple[object, Callable[[bytes], object]]:
    """Returns type and decoder of a column; the type None is decided by the first value."""
    word, _, rest = encoding.partition(":")
    if word == "ndarray":
        dtype, _, dims = rest.partition(":")
        shape = tuple(int(n) for n in dims.split(",")) if dims else None
        spec = (dtype, shape) if dtype and shape else None
        return spec, lambda data: _mds_array(data, dtype or None, shape)
    if word in ("int", *_INTS):
        kind = np.dtype("int64" if word == "int" else word)
        return int, lambda data: int(np.frombuffer(data, kind)[0])
    if word in ("float16", "float32", "float64"):
        return float, lambda data: float(np.frombuffer(data, word)[0])
    plain: dict[str, tuple[object, Callable[[bytes], object]]] = {
        "str": (str, bytes.decode), "json": ("json", json.loads), "bytes": (None, bytes), "jpeg": ("image", bytes),
        "png": ("image", bytes), "str_int": (int, int), "str_float": (float, float),
        "pil": ("image", lambda data: _pil_bytes(data, name))}
    if word not in plain:
        raise DataError(f"column '{name}': the encoding {encoding} is not supported")
    return plain[word]


def _first_spec(value: object) -> object:
    if isinstance(value, np.ndarray):
        return value.dtype.name, (None,) * value.ndim
    return bytes_spec(value)


# compressions that the C library does not recognise by their first bytes: the module that has `decompress`, and its package
_MDS_MODULES = {"br": ("brotli", "brotli"), "snappy": ("snappy", "python-snappy")}


def _mds_unzip(path: str, name: str) -> Callable[[bytes], bytes]:
    """Returns the function that decompresses a shard after `_leat.read_file`, which decompresses gzip and zstd itself."""
    if name in ("", "gz", "zstd"):
        return bytes
    if name == "bz2":
        return bz2.decompress
    if name not in _MDS_MODULES:
        raise DataError(f"{path}: the compression {name} is not supported: write the shards with zstd, gz, bz2, br, snappy or none")
    module, package = _MDS_MODULES[name]
    try:
        return importlib.import_module(module).decompress
    except ImportError as error:
        raise ArgumentError(f"{path}: the compression {name} needs the package {package}: pip install {package}") from error


class Mds(Reader):
    kind = "mds"

    def __init__(self, folder: str, index: dict) -> None:
        self.folder, self.shards = folder, index["shards"]
        self.total = sum(shard["samples"] for shard in self.shards)
        first = self.shards[0]
        columns = [_mds_column(n, e) for n, e in zip(first["column_names"], first["column_encodings"])]
        self.names, self.decoders = first["column_names"], [decode for _, decode in columns]
        values = next(iter(self._items(first)))
        self.start({n: _first_spec(decode(v)) if spec is None else spec
                    for n, (spec, decode), v in zip(self.names, columns, values)})

    def _items(self, shard: dict) -> Iterator[list[bytes]]:
        file = shard["zip_data"] or shard["raw_data"]
        path = _below(self.folder, file["basename"])
        if shard.get("format", "mds") != "mds" or shard["column_names"] != self.shards[0]["column_names"]:
            raise DataError(f"{path}: not an MDS shard with the columns of the first one")
        name = (shard.get("compression") or "").partition(":")[0] if shard["zip_data"] else ""
        unzip, data = _mds_unzip(path, name), _leat.read_file(path)
        try:
            data = unzip(data)
        except MemoryError:
            raise
        except Exception as error:  # each library has its own exceptions
            said = " ".join(str(error).split())[:200] or type(error).__name__
            raise DataError(f"{path}: damaged or truncated ({name}): {said}") from error
        for item in _chunk(data, path):
            yield _split(item, shard["column_sizes"], path)

    def samples(self) -> Iterator[Sample]:
        i = 0
        for shard in self.shards:
            for values in self._items(shard):
                yield number(i), None, {n: f(v) for n, f, v in zip(self.names, self.decoders, values) if n in self.columns}
                i += 1


# ---- LitData ----------------------------------------------------------------------------------

_LIT_NUMPY = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")
_LIT_TORCH = {0: "float32", 1: "float32", 2: "float64", 3: "float64", 8: "float16", 9: "float16", 11: "uint8",
              12: "int8", 13: "int16", 14: "int16", 15: "int32", 16: "int32", 17: "int64", 18: "int64", 19: "bool",
              20: "uint16"}


def _lit_array(data: bytes, order: str, dtypes: Any) -> np.ndarray:
    kind, ndim = struct.unpack_from(f"{order}II", data)
    shape = struct.unpack_from(f"{order}{ndim}I", data, 8)
    return np.frombuffer(data, dtypes[kind], offset=8 + 4 * ndim).reshape(shape)


def _lit_column(name: str, form: str) -> tuple[object, Callable[[bytes], object]]:
    word, _, rest = form.partition(":")
    if word in ("no_header_numpy", "no_header_tensor"):
        dtypes: Any = _LIT_NUMPY if word == "no_header_numpy" else _LIT_TORCH
        dtype = dtypes[int(rest)]
        return (dtype, (None,)), lambda data: np.frombuffer(data, dtype)
    plain: dict[str, tuple[object, Callable[[bytes], object]]] = {
        "int": (int, lambda data: struct.unpack("<q", data)[0]), "str": (str, bytes.decode), "text": (str, bytes.decode),
        "float": (float, lambda data: struct.unpack("<d", data)[0]), "bool": (int, lambda data: data[0]),
        "bytes": (None, bytes), "file": (None, bytes), "jpeg": ("image", bytes), "png": ("image", bytes),
        "image": ("image", bytes), "pil": ("image", lambda data: _pil_bytes(data, name)),
        "numpy": (None, lambda data: _lit_array(data, "<", _LIT_NUMPY)),
        "tensor": (None, lambda data: _lit_array(data, ">", _LIT_TORCH))}
    if word not in plain:
        raise DataError(f"column '{name}': the LitData format {form} is not supported")
    return plain[word]


def _lit_names(config: dict) -> list[str]:
    """Returns the names of the columns: keys of a dict, positions of a list."""
    count = len(config["data_format"])
    spec = json.loads(config["data_spec"])[1] if config.get("data_spec") else {"type": None}
    if spec["type"] is None:
        return ["data"] if count == 1 else [str(i) for i in range(count)]
    if any(child["type"] is not None for child in spec["children_spec"]):
        raise DataError("LitData samples with nested dicts or lists are not read")
    return list(json.loads(spec["context"])) if spec["type"] == "builtins.dict" else [str(i) for i in range(count)]


class Lit(Reader):
    kind = "litdata"

    def __init__(self, folder: str, index: dict) -> None:
        self.folder, self.chunks, self.config = folder, index["chunks"], index["config"]
        if self.config.get("encryption"):
            raise DataError(f"{folder}: encrypted LitData chunks are not read")
        self.total = sum(chunk["chunk_size"] for chunk in self.chunks)
        self.names = _lit_names(self.config)
        columns = [_lit_column(n, f) for n, f in zip(self.names, self.config["data_format"])]
        self.decoders = [decode for _, decode in columns]
        first = next(iter(self._items(self.chunks[0])))
        self.start({n: _first_spec(decode(v)) if spec is None else spec
                    for n, (spec, decode), v in zip(self.names, columns, first)})

    def _items(self, chunk: dict) -> Iterator[list[bytes]]:
        path = _below(self.folder, chunk["filename"])
        data = _leat.read_file(path)
        items = _framed(data, path) if data[:8] == b"LDFZ01\0\0" else _chunk(data, path)
        for item in items:
            if self.config.get("compression_level") == "sample":
                item = _leat.decompress(path, item)
            yield _split(item, [None] * len(self.names), path)

    def samples(self) -> Iterator[Sample]:
        i = 0
        for chunk in self.chunks:
            for values in self._items(chunk):
                yield number(i), None, {n: f(v) for n, f, v in zip(self.names, self.decoders, values) if n in self.columns}
                i += 1


def _framed(data: bytes, path: str) -> list[bytes]:
    """Returns the items of a chunk whose items are compressed in groups."""
    _, _, n, _, frames = struct.unpack_from("<HHIII", data, 8)
    offsets = struct.unpack_from(f"<{n + 1}I", data, 24)
    at = 24 + 4 * (n + 1)
    whole = b""
    for i in range(frames):
        _, _, begin, length, _ = struct.unpack_from("<IIQII", data, at + 24 * i)
        whole += _leat.decompress(path, _slice(data, begin, begin + length, path))
    return [_slice(whole, a, b, path) for a, b in zip(offsets, offsets[1:])]


# ---- FFCV -------------------------------------------------------------------------------------

class Beton(Reader):
    """A FFCV file: a header, descriptors of the fields, a table with a record per sample, pages of data, and at the end
    the sizes of all data."""

    kind = "beton"

    def __init__(self, path: str) -> None:
        self.path = path
        self.data = np.memmap(path, np.uint8, "r") if "://" not in path else np.frombuffer(_leat.read_file(path), np.uint8)
        if len(self.data) < 24:
            raise DataError(f"{path}: not an FFCV file")
        version, count, _, self.total, table = struct.unpack("<HHIQQ", self.data[:24].tobytes())
        if version != 2 or count == 0 or table == 0 or table > len(self.data):
            raise DataError(f"{path}: not a finished FFCV file of version 2")
        kinds, names = [], []
        specs: dict[str, object] = {}
        self.readers: list[tuple[str, str, Any]] = []
        for i in range(count):
            raw = self.data[24 + 1041 * i:24 + 1041 * (i + 1)].tobytes()
            name = raw[1:17].rstrip(b"\0").decode("ascii", "replace") or f"f{i}"
            kind, spec, read = self._field(name, raw[0], raw[17:])
            kinds.append((f"f{i}", kind))
            names.append(name)
            specs[name] = spec
            self.readers.append((f"f{i}", name, read))
        dtype = np.dtype(kinds, align=True)
        begin = 24 + 1041 * count
        self.rows_table = self.data[begin:begin + dtype.itemsize * self.total].view(dtype)
        triples = self.data[table:len(self.data) - (len(self.data) - table) % 24].view("<u8").reshape(-1, 3)
        self.sizes = {int(ptr): int(size) for _, ptr, size in triples}
        self.start(specs)

    def _field(self, name: str, kind: int, args: bytes) -> tuple[object, object, Callable[[Any], object]]:
        blob = np.dtype([("ptr", "<u8"), ("size", "<u8")])
        if kind == 0:
            return "<f8", float, float
        if kind == 1:
            return "<i8", int, int
        if kind == 2:
            packed = np.dtype([("mode", "u1"), ("w", "<u2"), ("h", "<u2"), ("ptr", "<u8")])  # the table is aligned
            return packed, "image", self._image
        if kind == 3:
            return blob, bytes, lambda m: self._bytes(int(m["ptr"]), int(m["size"]))
        if kind == 5:
            return blob, "json", \
                lambda m: json.loads(self._bytes(int(m["ptr"]), int(m["size"])).rstrip(b"\0"))
        if kind == 4:
            shape = tuple(n for n in struct.unpack_from("<32Q", args) if n)
            (length,) = struct.unpack_from("<Q", args, 256)
            dtype = np.dtype(json.loads(args[264:264 + length])[0][1])
            size = int(np.prod(shape)) * dtype.itemsize
            return "<u8", (dtype.name, shape), \
                lambda m: np.frombuffer(self._bytes(int(m), size), dtype).reshape(shape)
        raise DataError(f"{self.path}: field '{name}' of FFCV type {kind} is not supported")

    def _bytes(self, begin: int, size: int) -> bytes:
        if begin + size > len(self.data):
            raise DataError(f"{self.path}: damaged: bytes {begin} to {begin + size} of {len(self.data)}")
        return self.data[begin:begin + size].tobytes()

    def _image(self, m: Any) -> bytes:
        begin = int(m["ptr"])
        if m["mode"] == 0:
            if begin not in self.sizes:
                raise DataError(f"{self.path}: damaged: no data at byte {begin}")
            return self._bytes(begin, self.sizes[begin])
        height, width = int(m["h"]), int(m["w"])
        pixels = np.frombuffer(self._bytes(begin, height * width * 3), np.uint8)
        return _leat.png(pixels.reshape(height, width, 3))

    def samples(self) -> Iterator[Sample]:
        for i in range(self.total):
            record = self.rows_table[i]
            yield number(i), None, {name: read(record[column]) for column, name, read in self.readers if name in self.columns}


# ---- LMDB -------------------------------------------------------------------------------------

def _lmdb_items(file: Staged) -> Iterator[tuple[bytes, bytes]]:
    """Yields keys and values of the main database, in the order of the keys; needs no LMDB library."""
    path = file.name
    data = np.memmap(file.local, np.uint8, "r")
    view = memoryview(data)

    def meta(at: int) -> tuple[int, int, int, int]:
        magic, version = struct.unpack_from("<II", view, at + 16)
        size, _, _, _, _, _, _, _ = struct.unpack_from("<IHHQQQQQ", view, at + 40)
        depth_entries_root = struct.unpack_from("<IHHQQQQQ", view, at + 88)
        (_, txn) = struct.unpack_from("<QQ", view, at + 136)
        if magic != 0xBEEFC0DE or version != 1:
            raise DataError(f"{path}: not an LMDB file")
        return txn, depth_entries_root[7], size, depth_entries_root[1]

    if len(view) < 8192:
        raise DataError(f"{path}: not an LMDB file")
    first = meta(0)
    page = first[2] or 4096
    txn, root, _, flags = max(first, meta(page))
    if flags & 0x04:
        raise DataError(f"{path}: LMDB with several values per key is not supported")
    stack = [] if root == 0xFFFFFFFFFFFFFFFF else [root]
    while stack:
        at = stack.pop() * page
        if at + page > len(view):
            raise DataError(f"{path}: damaged or truncated at byte {at}")
        kind, lower = struct.unpack_from("<HH", view, at + 10)
        nodes = struct.unpack_from(f"<{(lower - 16) // 2}H", view, at + 16)
        if kind & 0x01:
            for node in reversed(nodes):
                low, high, more, _ = struct.unpack_from("<HHHH", view, at + node)
                stack.append(low | high << 16 | more << 32)
            continue
        for node in nodes:
            low, high, more, size = struct.unpack_from("<HHHH", view, at + node)
            begin, length = at + node + 8 + size, low | high << 16
            if more & 0x01:  # the value is on separate pages
                begin = struct.unpack_from("<Q", view, begin)[0] * page + 16
            if begin + length > len(view):
                raise DataError(f"{path}: damaged or truncated at byte {begin}")
            yield bytes(view[at + node + 8:at + node + 8 + size]), bytes(view[begin:begin + length])


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def datum(data: bytes) -> dict[int, Any] | None:
    """Returns the fields of Caffe's Datum by number; None when the bytes are not a Datum."""
    fields: dict[int, Any] = {}
    at = 0
    try:
        while at < len(data):
            tag, at = _varint(data, at)
            if tag >> 3 not in range(1, 8):
                return None
            if tag & 7 == 0:
                fields[tag >> 3], at = _varint(data, at)
            elif tag & 7 == 2:
                size, at = _varint(data, at)
                fields[tag >> 3] = data[at:at + size]
                at += size
            elif tag & 7 == 5:
                at += 4
            else:
                return None
    except IndexError:
        return None
    return fields if at == len(data) and 4 in fields else None


def _datum_image(fields: dict[int, Any]) -> bytes:
    """Returns the image. Encoded images are unchanged; pixels are planes, blue first, as Caffe's tools write them."""
    data = fields[4]
    if fields.get(7):
        return data
    channels, height, width = fields.get(1, 1), fields.get(2, 0), fields.get(3, 0)
    if channels not in (1, 3) or len(data) != channels * height * width:
        raise DataError(f"a Datum of {channels} x {height} x {width} with {len(data)} bytes is not supported")
    pixels = np.frombuffer(data, np.uint8).reshape(channels, height, width)[::-1]
    return _leat.png(np.ascontiguousarray(pixels.transpose(1, 2, 0)))


class Lmdb(Reader):
    kind = "lmdb"

    def __init__(self, path: str) -> None:
        self.path, self.file = path, Staged(path)
        _, value = next(_lmdb_items(self.file), (b"", None))
        if value is None:
            raise DataError(f"{path}: no samples")
        self.datum = not _leat.image_sniff(value) and datum(value) is not None
        self.start({"image": "image", "label": int} if self.datum else
                   {"image": "image"} if _leat.image_sniff(value) else {"value": bytes})

    def samples(self) -> Iterator[Sample]:
        for key, value in _lmdb_items(self.file):
            if not self.datum:
                yield key, None, {self.columns[0]: value}
                continue
            fields = datum(value)
            if fields is None:
                raise DataError(f"{self.path}: {key!r} is not a Datum")
            label = fields.get(5, 0)
            yield key, None, {"image": _datum_image(fields), "label": label - (1 << 64) if label >> 63 else label}

    def close(self) -> None:
        self.file.close()


# ---- which is which ---------------------------------------------------------------------------

def _index(path: str) -> Reader | None:
    try:
        index = json.loads(_leat.read_file(posixpath.join(path, "index.json")))
    except (Error, ValueError):
        return None
    if isinstance(index, dict) and index.get("shards"):
        return Mds(path, index)
    return Lit(path, index) if isinstance(index, dict) and index.get("chunks") else None


_TABLES = (".parquet", ".arrow", ".feather")


def _saved_files(path: str) -> list[str] | None:
    """Returns the files that state.json of ``Dataset.save_to_disk`` lists, which are the whole data set: the folder may
    also have caches and files of an earlier save. None: not such a state.json."""
    try:
        state = json.loads(_leat.read_file(posixpath.join(path, "state.json")))
    except ValueError:  # DataError, too
        return None
    if not isinstance(state, dict) or "_data_files" not in state:
        return None
    if state.get("_indices_data_files") or state.get("_indices_files"):
        raise DataError(f"{path}: saved by datasets 1 with a table of indices, which is not read: load it there, and save "
                        "it again after flatten_indices()")
    files = [_below(path, file["filename"], "state.json") for file in state["_data_files"]]
    if not files:
        raise DataError(f"{path}: nothing to pack: its state.json lists no files")
    return files


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))  # as pyarrow.dataset


def _tables(path: str, names: Collection[str]) -> Reader | None:
    """Returns a reader of a folder of Parquet or Arrow files; None for other folders."""
    tables = sorted(n for n in names if n.endswith(_TABLES))
    files = _saved_files(path) if "state.json" in names else None
    if files is None:
        if "dataset_dict.json" in names:
            splits = json.loads(_leat.read_file(posixpath.join(path, "dataset_dict.json")))["splits"]
            raise ArgumentError(f"{path}: a DatasetDict: give the folder of one split, of {', '.join(map(str, splits))[:200]}")
        if any(n.lower().endswith((".jpg", ".png")) for n in names):
            return None
        cached = "dataset_info.json" in names  # a cache of datasets has results of `map` and indices of `filter` besides
        files = [posixpath.join(path, n) for n in tables if not _is_hidden(n) and not (cached and n.startswith("cache-"))]
    if not files:
        return None
    from ._formats_arrow import Table
    table = Table(files)
    table.ignored = [n for n in tables if posixpath.join(path, n) not in set(files)]
    return table


def _bucket(path: str) -> Reader | None:
    """Returns a reader of a folder in a bucket, by the first page of its list. None: the C library lists the folder,
    which may have millions of images."""
    try:
        names = _leat.list_folder(path + "/", _PAGE)
    except Error:  # a file may be readable where listing is forbidden
        return None
    if "data.mdb" in names:
        return Lmdb(posixpath.join(path, "data.mdb"))
    if len(names) == _PAGE and any(n.endswith(_TABLES) for n in names):
        names = _leat.list_folder(path + "/", _LIST)
    return _tables(path, names)


def _folder(path: str) -> Reader | None:
    if "://" in path:
        found = _index(path)
        if found is not None or path.startswith("http"):
            return found
        return _bucket(path.rstrip("/"))
    names = set(os.listdir(path))
    if "index.json" in names:
        return _index(path)
    if "data.mdb" in names:
        return Lmdb(os.path.join(path, "data.mdb"))
    if {"Annotations", "JPEGImages"} <= names:
        from ._formats_boxes import Voc
        return Voc(path)
    return _tables(path, names)


def open_paths(paths: list[str], members: str | None = None) -> Reader | None:
    """Returns a reader of the paths, with all columns or those that `members` lists; None when they are not in one of these
    formats."""
    with damage_named(paths[0]):
        reader = _open(paths)
    if reader is not None:
        reader.source = paths[0]
        try:
            if members is not None:
                reader.choose(members.split(","))
        except ArgumentError:
            reader.close()
            raise
    return reader


def _file_or_folder(reader: Callable[[Any], Reader], given: Any, paths: list[str]) -> Reader:
    """Returns a reader of a file or, if a bucket has no such file, of the folder of this name: x.lmdb/ or x.parquet/."""
    try:
        return reader(given)
    except NotFoundError:
        found = _folder(paths[0]) if len(paths) == 1 and "://" in paths[0] else None
        if found is None:
            raise
        return found


def _open(paths: list[str]) -> Reader | None:
    names = [_check.file_name(p).lower() for p in paths]  # without the query of a signed URL
    first = names[0]
    if len(paths) == 1 and os.path.isdir(paths[0]):
        return _folder(paths[0])
    if all(name.endswith(_TABLES) for name in names):
        from ._formats_arrow import Table
        return _file_or_folder(Table, paths, paths)
    if len(paths) > 1:
        return None
    if first.endswith(".beton"):
        return Beton(paths[0])
    if first.endswith((".lmdb", ".mdb")):
        return _file_or_folder(Lmdb, paths[0], paths)
    if first.endswith(".json"):
        from ._formats_boxes import Coco
        return Coco(paths[0])
    return _folder(paths[0]) if "://" in paths[0] else None
