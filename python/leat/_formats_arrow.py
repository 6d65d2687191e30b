# SPDX-License-Identifier: Apache-2.0
"""Parquet and Arrow files, also those of Hugging Face datasets, read by pyarrow a batch of rows at a time."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from . import _check, _leat
from ._errors import ArgumentError, DataError, Error, ExistsError, NotFoundError, StorageError, reason
from ._formats import Reader, Sample, Staged, bytes_spec, number

_ROWS = 256  # read at a time
_TABLE = 64 << 20  # bytes of images written at a time
_TAIL = 256 << 10  # bytes that opening a remote file reads anyway
_MARK = {"leat": "export"}  # metadata of leat's own files: --force replaces only these, and their column `key` has the keys


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
            return table.schema_arrow, table.metadata.num_rows, _named(file.name, found, columns, True)
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
    lists = t.is_list(kind) or t.is_large_list(kind)
    if lists or t.is_fixed_size_list(kind):
        size = None if lists else kind.list_size
        inner = kind.value_type
        if t.is_fixed_size_list(inner) and _number(pa, inner.value_type):
            return _number(pa, inner.value_type), (size, inner.list_size)
        if _number(pa, inner):
            return _number(pa, inner), (size,)
    return "json"


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


def _is_marked(schema: Any) -> bool:
    """True for the files that ``leat export`` writes: their column `key` has the keys of the samples."""
    metadata = schema.metadata or {}
    return "key" in schema.names and all(metadata.get(k.encode()) == v.encode() for k, v in _MARK.items())


def _plain(value: Any, f: Any) -> Any:
    """Converts a value: bytes of an image of Hugging Face, lists of numbers to arrays; others stay."""
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
        self.key = "key" if _is_marked(self.schema) else ""
        specs = {f.name: _spec(pa, f.type, self.features.get(f.name, {})) for f in self.schema if f.name != self.key}
        if len(set(self.schema.names)) < len(self.schema.names):
            raise DataError(f"{paths[0]}: two columns have the same name")
        if None in specs.values():
            first = next((rows for rows in batches if rows), [])
            specs.update({name: bytes_spec(next((row[name] for row in first if row[name] is not None), None))
                          for name, spec in specs.items() if spec is None})
        self.start(specs)

    def start(self, specs: Mapping[str, object]) -> None:
        super().start(specs)
        label = next((column for column, f in zip(self.columns, self._fields) if f.name == "label"), "")
        feature = self.features.get(label, {})
        self.classes = feature.get("names") or () if feature.get("_type") == "ClassLabel" else ()

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
            for row in itertools.chain.from_iterable(batches):
                yield row.get(self.key) or number(i), None, self._values(row)
                i += 1

    def _values(self, row: dict[str, Any]) -> dict[str, object] | DataError:
        for name in self.dated & row.keys():
            if "<value out of range: " in str(row[name]):  # what the cast of pyarrow writes
                return DataError(f"column '{name}': a date or time that cannot be written as text")
        return {name: _plain(row[name], f) for name, f in zip(self.columns, self._fields)}

    def close(self) -> None:
        self.file.close()


# ---- writing ----------------------------------------------------------------------------------

def _column_type(pa: Any, f: Any) -> Any:
    plain = {"int": pa.int64(), "float": pa.float64(), "text": pa.string(), "json": pa.string(), "bytes": pa.binary(),
             "image": pa.struct([("bytes", pa.binary()), ("path", pa.string())])}
    if f.type in plain:
        return plain[f.type]
    kind = pa.float32() if f.dtype == "bfloat16" else pa.from_numpy_dtype(f.dtype)
    for _ in range(f.ndim):
        kind = pa.list_(kind)
    return kind


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
        return json.dumps(value, sort_keys=True)
    return value.tolist() if hasattr(value, "tolist") else value


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

    def _name(self, number: int) -> str:
        return os.path.join(self.folder, f"{number:05d}.parquet")

    @property
    def room(self) -> int:
        """Returns the bytes left in the file that is being written."""
        return self.shard_bytes - self.held

    def add(self, table: Any) -> None:
        if self.writer is None:
            self._begin()
        self.writer.write_table(table)
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

    def _close(self) -> None:
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
        schema = pa.schema([("key", pa.string()), *((f.name, _column_type(pa, f)) for f in pack.fields)],
                           {**_MARK, "huggingface": _hugging_face(pack)})
        rows = range(len(pack)) if keys is None else _rows_of(pack, keys)
        if select is not None:
            rows = rows_of([path], select).tolist()
        total = 0 if keys is not None and select is None else len(rows)  # type: ignore[arg-type]
        shards = _Shards(folder, schema, replace, shard_bytes)
        try:
            with shards.named_errors():
                for table in _tables(pack, schema, rows, lambda: shards.room,
                                     lambda done: tell(done, total, shards.bytes + shards.held)):
                    if table is None:
                        break
                    shards.add(table)
                else:
                    shards.finish()
        finally:
            shards.discard()
    return shards.samples, shards.files, shards.bytes


def _tables(pack: Any, schema: Any, rows: Iterable[int], room: Callable[[], int], tell: Callable[[int], bool]) -> Iterator[Any]:
    """Yields the rows as tables of up to 256 rows and about 64 MiB, so that writing a table takes well under a second.
    Tables are smaller when the file has no `room` for more. Yields None when `tell`, which is called for each row,
    returns True."""
    pa = _pyarrow()
    done = held = 0
    data: dict[str, list[Any]] = {name: [] for name in schema.names}
    for i in rows:
        if tell(done):
            yield None
            return
        key, sample = pack.keys[i], pack[i]
        if not _is_utf8(key):
            raise DataError(f"sample {i}: its key {ascii(key)} is not UTF-8, which Parquet needs")
        data["key"].append(key)
        for f in pack.fields:
            cell = _cell(f, sample[f.name], key)
            data[f.name].append(cell)
            held += _size(cell, sample[f.name])
        done += 1
        if len(data["key"]) == _ROWS or held >= min(_TABLE, room()):
            yield pa.table(data, schema=schema)
            data, held = {name: [] for name in schema.names}, 0
    if data["key"]:
        yield pa.table(data, schema=schema)


def _size(cell: Any, value: Any) -> int:
    """Returns about how many bytes a cell has."""
    data = cell["bytes"] if isinstance(cell, dict) else cell
    return len(data) if isinstance(data, (bytes, str)) else getattr(value, "nbytes", 8)


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
