# SPDX-License-Identifier: Apache-2.0
"""Parquet and Arrow files, also those of Hugging Face datasets, read by pyarrow a batch of rows at a time."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from . import _check, _leat, _schema
from ._errors import ArgumentError, DataError, Error, ExistsError, NotFoundError, StorageError, reason
from ._formats import Reader, Sample, Staged, bytes_spec, number

_ROWS = 256  # read at a time
_TABLE = 64 << 20  # bytes of images written at a time
_TAIL = 256 << 10  # bytes that opening a remote file reads anyway
_MARK = {"leat": "export"}  # metadata of leat's own files: --force replaces only these
_PACK = "leat.pack"  # metadata of these files: the column of the keys and the types of the fields, as JSON
_EMPTY = "leat.empty"  # metadata of these files: the shapes of empty arrays that nested lists do not show


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ArgumentError("Parquet and Arrow files need pyarrow: pip install pyarrow") from error
    return pyarrow


Rows = list[dict[str, Any]]


def _batches(file: Staged, columns: list[str] | None = None) -> tuple[Any, int | None, Iterator[Rows]]:
    """Returns the schema, the number of rows (None if unknown) and the rows of each batch of a file, with all columns or
    these."""
    pa = _pyarrow()
    path = file.local
    try:
        if _check.file_name(file.name).lower().endswith(".parquet"):
            table = pa.parquet.ParquetFile(path)
            found = table.iter_batches(_ROWS, columns=columns)
            schema = table.schema_arrow.with_metadata({**(table.schema_arrow.metadata or {}), **(table.metadata.metadata or {})})
            return schema, table.metadata.num_rows, _named(file.name, found, columns, True)
        source = pa.memory_map(path)
        try:
            whole = pa.ipc.open_file(source)
            return whole.schema, None, _named(file.name, map(whole.get_batch, range(whole.num_record_batches)), columns)
        except pa.ArrowInvalid:
            stream = pa.ipc.open_stream(pa.memory_map(path))
            return stream.schema, None, _named(file.name, stream, columns)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"{file.name}: {error}") from error


def _named(path: str, batches: Iterable[Any], columns: list[str] | None, parquet: bool = False) -> Iterator[Rows]:
    """Yields the rows of each batch. Errors of pyarrow get the name of the file and the place in it: the record batch,
    or the first row of the batch in a Parquet file, where a batch may span row groups."""
    pa = _pyarrow()
    found, row = iter(batches), 0
    for i in itertools.count():
        place = f"rows from {row}" if parquet else f"record batch {i}"
        try:
            batch = next(found, None)
            rows = _rows(pa, batch, columns or batch.schema.names) if batch is not None else []
        except (pa.ArrowException, OSError, ValueError) as error:
            what = "cannot be read" if isinstance(error, NotImplementedError) else "damaged"
            raise DataError(f"{path}: {place}: {what}: {' '.join(str(error).split())}") from error
        if batch is None:
            return
        yield rows
        row += len(rows)


def _rows(pa: Any, batch: Any, columns: list[str]) -> Rows:
    """Returns the values of a batch as Python objects."""
    values = []
    for name in columns:
        column = batch.column(name)
        for kind in _steps(pa, column.type):
            column = column.cast(kind)
        values.append(column.to_pylist())
    return [dict(zip(columns, row)) for row in zip(*values)]


def _steps(pa: Any, kind: Any) -> list[Any]:
    """Returns the types that a column is cast to in turn before its values are read."""
    steps = [_mapped(pa, kind, _utc)]
    steps.append(_mapped(pa, steps[0], _plain_type))
    return [step for step, before in zip(steps, [kind, *steps]) if step != before]


def _mapped(pa: Any, kind: Any, leaf: Callable[[Any, Any], Any]) -> Any:
    """Returns a type with the types of its values replaced, also within structs and lists."""
    t = pa.types
    if t.is_struct(kind):
        return pa.struct([f.with_type(_mapped(pa, f.type, leaf)) for f in kind])
    if t.is_map(kind):
        return pa.map_(_mapped(pa, kind.key_type, leaf), _mapped(pa, kind.item_type, leaf))
    if t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind):
        value = kind.value_field.with_type(_mapped(pa, kind.value_type, leaf))
        return pa.list_(value, kind.list_size) if t.is_fixed_size_list(kind) else \
            pa.large_list(value) if t.is_large_list(kind) else pa.list_(value)
    return leaf(pa, kind)


def _utc(pa: Any, kind: Any) -> Any:
    return pa.timestamp(kind.unit, "UTC") if pa.types.is_timestamp(kind) and kind.tz else kind


def _plain_type(pa: Any, kind: Any) -> Any:
    """Returns the type that holds the values of `kind` as a pack can store them: dates, times and decimals as text, since
    their Python objects would round nanoseconds; durations as whole numbers; categories as their values."""
    t = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return _mapped(pa, kind.storage_type, _plain_type)
    if t.is_dictionary(kind):
        return _mapped(pa, kind.value_type, _plain_type)
    if t.is_duration(kind):
        return pa.int64()
    dated = t.is_temporal(kind) and not t.is_interval(kind)
    return pa.string() if dated or t.is_decimal(kind) else kind


def _remote_rows(path: str) -> int:
    """Returns the rows of a Parquet file in a bucket, by its footer: one request unless that exceeds 256 KiB."""
    pa = _pyarrow()
    tail = _leat.file_tail(path, _TAIL)
    length = int.from_bytes(tail[-8:-4], "little") + 8
    if _TAIL < length < 1 << 30:
        tail = _leat.file_tail(path, length)
    try:
        return pa.parquet.read_metadata(pa.BufferReader(tail)).num_rows
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"{path}: {error}") from error


def _counts(paths: list[str]) -> list[int | None]:
    """Returns the rows of each file; None where the whole file would have to be read."""
    remote = [path for path in paths if "://" in path and _check.file_name(path).lower().endswith(".parquet")]
    with ThreadPoolExecutor(16) as pool:
        found = dict(zip(remote, pool.map(_remote_rows, remote)))
    return [found[path] if path in found else None if "://" in path else _batches(Staged(path))[1] for path in paths]


def _spec(pa: Any, kind: Any, feature: Any) -> object:
    """Returns the type of a column; None for bytes, whose type the first value decides. `feature` is that of Hugging
    Face, or {}."""
    kind = next(reversed(_steps(pa, kind)), kind)
    t, name = pa.types, str(kind)
    if t.is_struct(kind) and {f.name for f in kind} >= {"bytes", "path"}:
        return "image" if feature.get("_type", "Image") == "Image" else bytes  # Audio and Video have the same struct
    if re.fullmatch(r"Array\dD", feature.get("_type", "")):
        return feature["dtype"], tuple(feature["shape"])
    if t.is_boolean(kind) or t.is_integer(kind):
        return int
    if t.is_floating(kind):
        return float
    if name in ("string", "large_string", "string_view"):
        return str
    if name in ("binary", "large_binary", "binary_view") or t.is_fixed_size_binary(kind):
        return None
    sizes: list[int | None] = []
    while t.is_fixed_size_list(kind) or (not sizes and (t.is_list(kind) or t.is_large_list(kind))):
        sizes.append(kind.list_size if t.is_fixed_size_list(kind) else None)
        kind = kind.value_type
    return (_number(pa, kind), tuple(sizes)) if sizes and _number(pa, kind) else "json"


def _number(pa: Any, kind: Any) -> str | None:
    if pa.types.is_boolean(kind):
        return "bool"
    fits = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return kind.to_pandas_dtype().__name__ if fits else None


def _features(schema: Any) -> dict[str, dict[str, Any]]:
    """Returns the features of Hugging Face by column; {} for other files."""
    try:
        features = json.loads(schema.metadata[b"huggingface"])["info"]["features"]
    except (KeyError, TypeError, ValueError):
        return {}
    return {name: f for name, f in features.items() if isinstance(f, dict)}


def _recorded(pa: Any, schema: Any) -> tuple[str, dict[str, object]]:
    """Returns the column of the keys and the types of the fields of a table that ``leat export`` wrote; "" and {} for
    other files. Columns whose type was changed since are left out."""
    try:
        pack = json.loads(schema.metadata[_PACK.encode()])
        fields = _schema.fields({name: tuple(spec) if isinstance(spec, list) else spec for name, spec in pack["fields"].items()})
        specs = {f.name: f for f in fields if f.name in schema.names and schema.field(f.name).type == _column_type(pa, f)}
        return (pack["key"] if pack["key"] in schema.names else ""), specs
    except (KeyError, TypeError, ValueError, AttributeError, ArgumentError):
        return "", {}


def _empty_shapes(schema: Any) -> dict[str, Iterator[tuple[int, ...]]]:
    """Returns by column the shapes of the empty arrays in a file that ``leat export`` wrote, in the order of its rows."""
    runs = json.loads((schema.metadata or {}).get(_EMPTY.encode(), "{}"))
    return {name: itertools.chain.from_iterable(itertools.repeat(tuple(shape), count) for count, shape in found)
            for name, found in runs.items()}


def _is_shapeless(f: _schema.Field, shape: tuple[int, ...]) -> bool:
    """True for shapes of empty arrays that nested lists do not show: (0, 4) becomes []."""
    return f.type == "ragged" and 0 in shape[:-1]


def _listed_shape(value: list[Any]) -> tuple[int, ...]:
    """Returns the shape of nested lists, up to the first empty one."""
    shape = []
    while isinstance(value, list):
        shape.append(len(value))
        value = value[0] if value else None  # type: ignore[assignment]
    return tuple(shape)


def _restored(value: Any, f: _schema.Field, shapes: Iterator[tuple[int, ...]]) -> Any:
    """Returns the value of a field from its cell in a table that ``leat export`` wrote."""
    if value is None or f.type not in ("json", "array", "ragged"):
        return _plain(value, f)
    if f.type == "json":
        return json.loads(value)
    shape = f.shape if f.type == "array" else _listed_shape(value) if f.ndim > 1 else (len(value),)
    if f.type == "ragged" and len(shape) < f.ndim:
        shape = next(shapes, (0,) * f.ndim)
    return np.zeros(shape, bool) if 0 in shape else value


def _plain(value: Any, f: Any) -> Any:
    """Converts a value: bytes of an image of Hugging Face, empty lists of numbers to arrays; others stay."""
    if value is not None and f.type == "ragged" and not len(value):
        return np.zeros([size or 0 for size in f.shape or (0,)], f.dtype)
    if isinstance(value, dict) and value.keys() >= {"bytes", "path"}:
        if value["bytes"] is None and value["path"]:
            with open(value["path"], "rb") as file:
                return file.read()
        return value["bytes"]
    return value


class Table(Reader):
    kind = "arrow"

    def __init__(self, paths: list[str]) -> None:
        pa = _pyarrow()
        self.paths = paths
        self.file = Staged(paths[0])  # only one remote file at a time is on the disk
        self.schema, count, batches = _batches(self.file)
        counts = [count, *_counts(paths[1:])]
        self.total = 0 if None in counts else sum(counts)
        self.features = _features(self.schema)
        self.dated = {f.name for f in self.schema if re.search(r"\b(date|time|timestamp)(32|64)?\[", str(f.type))}
        self.key, self.recorded = _recorded(pa, self.schema)
        self.keeps_names = bool(self.recorded)
        specs = {f.name: self.recorded.get(f.name) or _spec(pa, f.type, self.features.get(f.name, {}))
                 for f in self.schema if f.name != self.key}
        if len(set(self.schema.names)) < len(self.schema.names):
            raise DataError(f"{paths[0]}: two columns have the same name")
        if None in specs.values():
            first = next((rows for rows in batches if rows), [])
            specs.update({name: bytes_spec(next((row[name] for row in first if row[name] is not None), None))
                          for name, spec in specs.items() if spec is None})
        self.start(specs)

    def start(self, specs: Mapping[str, object]) -> None:
        super().start(specs)
        found = [(f, self.features.get(column, {})) for column, f in zip(self.columns, self._fields)]
        self.classes = {f.name: feature.get("names") or () for f, feature in found
                        if f.type == "int" and feature.get("_type") == "ClassLabel"}

    def samples(self) -> Iterator[Sample]:
        i = 0
        for k, path in enumerate(self.paths):
            if k > 0:
                self.file.close()
                self.file = Staged(path)
            chosen = [*self.columns, self.key] if self.key else self.columns
            schema, _, batches = _batches(self.file, chosen if self.chosen else None)
            if not set(chosen) <= set(schema.names) or (not self.chosen and schema.names != self.schema.names):
                raise DataError(f"{path}: has other columns than {self.paths[0]}")
            shapes = _empty_shapes(schema)
            for row in itertools.chain.from_iterable(batches):
                yield row.get(self.key) or number(i), None, self._values(row, shapes)
                i += 1

    def _values(self, row: dict[str, Any], shapes: dict[str, Iterator[tuple[int, ...]]]) -> dict[str, object] | DataError:
        for name in self.dated & row.keys():
            if "<value out of range: " in str(row[name]):  # what the cast of pyarrow writes
                return DataError(f"column '{name}': a date or time that cannot be written as text")
        return {name: _restored(row[name], f, shapes.get(name, iter(()))) if name in self.recorded else _plain(row[name], f)
                for name, f in zip(self.columns, self._fields)}

    def close(self) -> None:
        self.file.close()


# ---- writing ----------------------------------------------------------------------------------

def _column_type(pa: Any, f: Any) -> Any:
    plain = {"int": pa.int64(), "float": pa.float64(), "text": pa.string(), "json": pa.string(), "bytes": pa.binary(),
             "image": pa.struct([("bytes", pa.binary()), ("path", pa.string())])}
    if f.type in plain:
        return plain[f.type]
    kind = pa.float32() if f.dtype == "bfloat16" else pa.from_numpy_dtype(f.dtype)
    for size in reversed(f.shape if _is_fixed(f) else (-1,) * f.ndim):
        kind = pa.list_(kind, size)
    return kind


def _is_fixed(f: _schema.Field) -> bool:
    """True for arrays that become fixed-size lists. pyarrow cannot read lists of the size 0 from Parquet."""
    return f.type == "array" and 0 not in f.shape  # type: ignore[operator]


def _column(pa: Any, f: _schema.Field, kind: Any, cells: list[Any]) -> Any:
    """Returns a column of cells."""
    if f.type not in ("array", "ragged"):
        return pa.array(cells, kind)
    fixed, missing = _is_fixed(f), np.array([cell is None for cell in cells])
    blank = np.zeros(f.shape if fixed else (0,) * f.ndim, "float32" if f.dtype == "bfloat16" else f.dtype)
    arrays = [blank if cell is None else cell for cell in cells]
    column = pa.array(np.concatenate([a.reshape(-1) for a in arrays]), mask=None if f.ndim else missing)
    for d in reversed(range(f.ndim)):
        mask = pa.array(missing) if d == 0 and missing.any() else None
        if fixed:
            column = pa.FixedSizeListArray.from_arrays(column, f.shape[d], mask=mask)  # type: ignore[index]
        else:
            ends = np.cumsum(np.repeat([a.shape[d] for a in arrays], [math.prod(a.shape[:d]) for a in arrays]), dtype=np.int64)
            column = pa.ListArray.from_arrays(pa.array(np.append(0, ends), pa.int32()), column, mask=mask)
    return column


def _record(key: str, fields: Iterable[_schema.Field]) -> str:
    """Returns the metadata by which `leat pack` knows the column of the keys and the types of the fields."""
    specs = {f.name: (f.dtype, f.shape or (None,) * f.ndim) if f.type in ("array", "ragged") else f.type for f in fields}
    return json.dumps({"key": key, "fields": specs})


def _hugging_face(pack: Any) -> str:
    """Returns the metadata by which Hugging Face datasets know images and the names of classes."""
    features: dict[str, object] = {f.name: {"_type": "Image"} for f in pack.fields if f.type == "image"}
    for f in pack.fields:
        names = pack.classes(f.name) if f.type == "int" else []
        if names:
            features[f.name] = {"names": names, "_type": "ClassLabel"}
    return json.dumps({"info": {"features": features}})


def _cell(f: Any, value: Any, key: str) -> Any:
    if value is None:
        return None
    if f.type == "image":
        return {"bytes": _leat.pixel_file(value.stored) if value.codec == "raw" else value.file(), "path": key}
    if f.type == "json":
        return json.dumps(value)
    if f.dtype == "bfloat16":
        return (value.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return value


class _Shards:
    """Parquet files 00000.parquet … of a folder. A file is NNNNN.parquet.partial until it is complete. With `replace`,
    files are renamed only when all are complete, so a failed run leaves the files of an earlier run unchanged."""

    def __init__(self, folder: str, schema: Any, replace: bool, shard_bytes: int) -> None:
        self.folder, self.schema, self.replace, self.shard_bytes = folder, schema, replace, shard_bytes or 1 << 30
        self.samples = self.files = self.bytes = 0  # of complete files
        self.named = 0  # complete files that are renamed
        self.writer: Any = None
        self.file: Any = None
        self.rows = self.held = 0  # rows and bytes of the file that is being written
        self.empty: dict[str, list[tuple[int, tuple[int, ...]]]] = {}  # by column, count and shape of consecutive empty arrays

    def _name(self, number: int) -> str:
        return os.path.join(self.folder, f"{number:05d}.parquet")

    @property
    def room(self) -> int:
        """Returns the bytes left in the file that is being written."""
        return self.shard_bytes - self.held

    def add(self, table: Any, empty: dict[str, list[tuple[int, ...]]]) -> None:
        """Writes a table. `empty` has by column the shapes of empty arrays that lists do not show."""
        if self.writer is None:
            self._begin()
        self.writer.write_table(table)
        for name, shapes in empty.items():
            runs = self.empty.setdefault(name, [])
            for shape in shapes:
                count = runs.pop()[0] if runs and runs[-1][1] == shape else 0
                runs.append((count + 1, shape))
        self.rows += table.num_rows
        self.held += table.nbytes
        if self.held >= self.shard_bytes:
            self._end()

    def _begin(self) -> None:
        pa, name = _pyarrow(), self._name(self.files)
        if self.replace:
            _leat.check_shard(name)
        elif os.path.lexists(name):
            raise ExistsError(f"{name}: already exists")
        _remove(name + ".partial")  # of a killed run
        self.file = pa.OSFile(os.fsencode(name + ".partial"), "wb")  # given the path, pyarrow would read some names as URLs
        self.writer = pa.parquet.ParquetWriter(self.file, self.schema)
        self.rows = self.held = 0
        self.empty = {}

    def _close(self) -> None:
        if self.empty:
            self.writer.add_key_value_metadata({_EMPTY: json.dumps(self.empty)})
        self.writer.close()
        self.file.close()

    def _end(self) -> None:
        """Completes the file that is being written."""
        if self.writer is None:
            return
        self._close()
        self.bytes += os.path.getsize(self._name(self.files) + ".partial")
        self.writer = self.file = None
        self.files += 1
        self.samples += self.rows
        self.held = 0
        if not self.replace:
            self._publish()

    def _publish(self) -> None:
        """Gives the complete files their names."""
        while self.named < self.files:
            name = self._name(self.named)
            try:
                os.replace(name + ".partial", name)
            except OSError as error:
                mixed = f"; {self.named} of {self.files} files of this run replaced earlier ones" if self.replace and self.named else ""
                raise StorageError(f"{name}: cannot write: {reason(error)}{mixed}") from None
            self.named += 1

    def finish(self) -> None:
        self._end()
        self._publish()

    def discard(self) -> None:
        """Removes files that were not renamed."""
        if self.writer is not None:
            with contextlib.suppress(OSError, _pyarrow().ArrowException):
                self._close()
        for number in range(self.named, self.files + (self.file is not None)):
            with contextlib.suppress(OSError):
                _remove(self._name(number) + ".partial")
        self.writer = self.file = None
        if self.named == 0:
            self.samples = self.files = self.bytes = 0

    @contextlib.contextmanager
    def named_errors(self) -> Iterator[None]:
        """Puts errors of Python and pyarrow on one line, with the name of the file."""
        try:
            yield
        except (Error, MemoryError):
            raise
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else " ".join(str(error).split())
            raise StorageError(f"{self._name(self.files)}: cannot write: {why}") from error
        except (ValueError, _pyarrow().ArrowException) as error:
            raise DataError(f"{self._name(self.files)}: cannot write: {' '.join(str(error).split())}") from error


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def write(path: str, folder: str, keys: str | None, replace: bool, shard_bytes: int, select: str | None,
          tell: Callable[[int, int, int], bool]) -> tuple[int, int, int]:
    """Writes the pack as 00000.parquet …; returns how many samples, files and bytes. Ends early when tell(done, total,
    bytes) returns True."""
    pa = _pyarrow()
    from . import open as open_pack
    from ._select import rows_of
    with open_pack(path) as pack:
        key = "key"
        while any(f.name == key for f in pack.fields):
            key = "sample_" + key
        schema = pa.schema([(key, pa.string()), *((f.name, _column_type(pa, f)) for f in pack.fields)],
                           {**_MARK, _PACK: _record(key, pack.fields), "huggingface": _hugging_face(pack)})
        rows = range(len(pack)) if keys is None else _rows_of(pack, keys)
        if select is not None:
            rows = rows_of([path], select).tolist()
        total = 0 if keys is not None and select is None else len(rows)  # type: ignore[arg-type]
        shards = _Shards(folder, schema, replace, shard_bytes)
        try:
            with shards.named_errors():
                for found in _tables(pack, schema, rows, lambda: shards.room,
                                     lambda done: tell(done, total, shards.bytes + shards.held)):
                    if found is None:
                        break
                    shards.add(*found)
                else:
                    shards.finish()
        finally:
            shards.discard()
    return shards.samples, shards.files, shards.bytes


def _tables(pack: Any, schema: Any, rows: Iterable[int], room: Callable[[], int],
            tell: Callable[[int], bool]) -> Iterator[tuple[Any, dict[str, list[tuple[int, ...]]]] | None]:
    """Yields the rows as tables of up to 256 rows and about 64 MiB, so that writing a table takes well under a second,
    with the shapes of empty arrays. Tables are smaller when the file has no `room` for more. Yields None when `tell`,
    which is called for each row, returns True."""
    pa = _pyarrow()
    done = held = 0
    keys: list[str] = []
    cells: list[list[Any]] = [[] for _ in pack.fields]

    def made() -> tuple[Any, dict[str, list[tuple[int, ...]]]]:
        columns = [_column(pa, f, schema.field(f.name).type, column) for f, column in zip(pack.fields, cells)]
        empty = {f.name: [cell.shape for cell in column if cell is not None and _is_shapeless(f, cell.shape)]
                 for f, column in zip(pack.fields, cells) if f.type == "ragged"}
        return pa.table([pa.array(keys, pa.string()), *columns], schema=schema), {name: found for name, found in empty.items() if found}

    for i in rows:
        if tell(done):
            yield None
            return
        key, sample = pack.keys[i], pack[i]
        if not _is_utf8(key):
            raise DataError(f"sample {i}: its key {ascii(key)} is not UTF-8, which Parquet needs")
        keys.append(key)
        for f, column in zip(pack.fields, cells):
            column.append(_cell(f, sample[f.name], key))
            held += _size(column[-1])
        done += 1
        if len(keys) == _ROWS or held >= min(_TABLE, room()):
            yield made()
            keys, cells, held = [], [[] for _ in pack.fields], 0
    if keys:
        yield made()


def _size(cell: Any) -> int:
    """Returns about how many bytes a cell has."""
    data = cell["bytes"] if isinstance(cell, dict) else cell
    return len(data) if isinstance(data, (bytes, str)) else getattr(data, "nbytes", 8)


def _is_utf8(key: str) -> bool:
    try:
        key.encode()
        return True
    except UnicodeEncodeError:  # a byte of another encoding
        return False


def _lines(path: str) -> Iterator[str]:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            yield from file
    except IsADirectoryError as error:
        raise ArgumentError(f"{path}: {reason(error)}") from None
    except OSError as error:
        kind = NotFoundError if isinstance(error, FileNotFoundError) else StorageError
        raise kind(f"{path}: cannot open: {error.strerror}") from None


def _rows_of(pack: Any, keys: str) -> Iterator[int]:
    with contextlib.closing(_lines(keys)) as lines:
        for line in lines:
            key = _check.unlisted(line.removesuffix("\n").removesuffix("\r"))
            row = pack.find(key) if key else -1
            if row is None:
                raise DataError(f"{keys}: there is no sample {key!r}")
            if row >= 0:
                yield row
