# SPDX-License-Identifier: Apache-2.0
"""Text curation of Arrow tables and Parquet files.

The texts go through JSONL files in a temporary folder, one per input, because that is what filter and
deduplication read. Rows that are kept are then taken from the table or the file by their number, so that other columns
never leave Arrow.
"""

from __future__ import annotations

import contextlib
import decimal
import fnmatch
import glob
import json
import math
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from . import _check, _leat
from ._errors import ArgumentError, DataError, Error, NotFoundError, shown
from ._formats_arrow import _pyarrow
from ._pack import Path, Progress
from ._text import NoTextError, dedup_text, filter_text, with_texts

_ROWS = 4096  # read at a time
_ROW = "row"
_WORK = ".leat-parquet-"  # followed by eight characters: the work folder in the output folder


def _is_utf8(text: str) -> bool:
    """Returns whether the text was decoded without an escaped byte."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _decoded(value: Any, errors: str) -> str | None:
    """Returns a value of a string column, which need not be UTF-8."""
    plain = value.value if hasattr(value, "index") else value  # of a dictionary
    return plain.as_buffer().to_pybytes().decode("utf-8", errors) if plain is not None and plain.is_valid else None


def _listed(column: Any, errors: str) -> list[Any]:
    """Returns the values of a column. Strings that are not UTF-8 are decoded with this error handler."""
    try:
        return column.to_pylist()
    except UnicodeDecodeError:
        return [_decoded(value, errors) for value in column]


def _check_text(name: str, field: str, kind: Any) -> None:
    """Refuses a column that cannot have texts."""
    types = _pyarrow().types
    plain = kind.value_type if types.is_dictionary(kind) else kind
    tests = (types.is_string, types.is_large_string, types.is_string_view, types.is_binary, types.is_large_binary, types.is_binary_view, types.is_null)
    if not any(test(plain) for test in tests):
        raise DataError(f"{name}: column {field!r} is {kind}, not text")


def _take(table: Any, rows: Any) -> Any:
    """Takes rows of a table. Arrow cannot take them from columns of views, which are converted for it."""
    pa = _pyarrow()
    large = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    if not any(field.type in large for field in table.schema):
        return table.take(rows)
    plain = table.cast(pa.schema([field.with_type(large.get(field.type, field.type)) for field in table.schema], table.schema.metadata))
    return plain.take(rows).cast(table.schema)


def _keep_key(keep_field: str) -> str:
    """Returns the key under which the lines hold the column's numbers."""
    return f"column {keep_field}" if keep_field in (_ROW, "id", "text") else keep_field


def _values(column: Any) -> list[Any]:
    """Returns the values of a column; times in nanoseconds, for which pyarrow needs pandas, as text."""
    pa = _pyarrow()
    if getattr(column.type, "unit", None) != "ns":
        return _listed(column, "backslashreplace")
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.string()).to_pylist()
    return [None if value is None else str(value) for value in column.cast(pa.int64()).to_pylist()]


def _number(value: Any) -> int | float | None:
    """Returns a number to compare rows by; None when the value is not a number."""
    if isinstance(value, decimal.Decimal) and value.is_finite():
        return int(value) if value == value.to_integral_value() else float(value)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) and not math.isnan(value) else None


def _write_rows(batches: Any, name: str, first: int, path: str, text_field: str, id_field: str, keep_field: str | None = None) -> int:
    """Writes the texts as JSONL. Returns the number of rows. A row without a text becomes a bad line; the bytes of a text that is
    not UTF-8 are written as they are, so that its line is bad for this reason."""
    row = first
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as out:
        for batch in batches:
            names = batch.schema.names
            texts = _listed(batch.column(names.index(text_field)), "surrogateescape")
            ids = _values(batch.column(names.index(id_field))) if id_field in names else [None] * len(texts)
            keeps = _values(batch.column(names.index(keep_field))) if keep_field is not None else [None] * len(texts)
            for text, key, keep in zip(texts, ids, keeps):
                if isinstance(key, float) and not math.isfinite(key):
                    key = None  # pandas stores a missing number as NaN, which JSON does not have
                number = isinstance(key, (int, float)) and not isinstance(key, bool)
                line: dict[str, Any] = {_ROW: row, "id": key if number else f"{name}:{row - first}" if key is None else str(key)}
                if isinstance(text, bytes):
                    text = text.decode("utf-8", "surrogateescape")
                line["text"] = text
                if keep_field is not None and _number(keep) is not None:
                    line[_keep_key(keep_field)] = _number(keep)
                out.write(json.dumps(line, ensure_ascii=text is None or _is_utf8(text)) + "\n")
                row += 1
    return row - first


class _Chosen:
    """Columns to write: keys of the input (None: all), and scores."""

    def __init__(self, columns: str | Sequence[str] | None, modified: bool) -> None:
        names = [] if columns is None else columns.split(",") if isinstance(columns, str) else _check.several("columns", columns)
        self.keys = [name for name in names if not name.startswith("+")] or None
        self.scores = [name[1:] for name in names if name.startswith("+")]
        self.modified = modified
        twice = [name for name in self.keys or [] if name in self.scores]
        if twice:
            raise ArgumentError(f"columns: {shown(twice[0])} appears twice")

    def of_filter(self) -> list[str]:
        return [_ROW] + (["text"] if self.modified else []) + ["+" + name for name in self.scores]

    def table(self, table: Any, kept: list[dict[str, Any]], first: int, text_field: str) -> Any:
        """Returns the kept rows of a table, with the new columns."""
        pa = _pyarrow()
        if self.keys is not None:
            missing = [name for name in self.keys if name not in table.column_names]
            if missing:
                raise ArgumentError(f"columns: there is no column {shown(missing[0])}")
        result = _take(table, pa.array([row[_ROW] - first for row in kept], pa.int64()))
        if self.modified:
            at = result.column_names.index(text_field)
            result = result.set_column(at, text_field, pa.array([row["text"] for row in kept], table.schema.field(text_field).type))
        if self.keys is not None:
            result = result.select(self.keys)
        for name in self.scores:
            kind = pa.string() if name == "lang" else pa.float64()
            values = pa.array([row.get(name) for row in kept], kind)
            if name not in result.column_names:
                result = result.append_column(name, values)
            elif name == text_field:
                raise ArgumentError(f"columns: +{name} would replace the text (also name the columns to write)")
            else:
                result = result.set_column(result.column_names.index(name), name, values)
        return result


def _run(run: Callable[..., dict[str, Any]], names: dict[str, str], out: str, **options: Any) -> dict[str, Any]:
    """Runs `filter_text` or `dedup_text` and returns its report, also when no row has a text. Errors name the table or the Parquet file and
    the row, not the temporary file and its line."""
    def renamed(message: str) -> str:
        for part, path in names.items():
            if part in message:
                message = re.sub(re.escape(part) + r"(?:: line (\d+)(?:, offset \d+)?)?",
                                 lambda found: path + (f": row {int(found[1]) - 1}" if found[1] else ""), message)
        return message

    try:
        return run(list(names), out, **options)
    except NoTextError as error:
        return error.report
    except Error as error:
        error.args, error.marked = (renamed(str(error)),), renamed(error.marked)
        error.offset = None
        raise


def _kept_rows(folder: str) -> Iterator[dict[str, Any]]:
    for path in sorted(glob.glob(os.path.join(glob.escape(folder), "kept-*.jsonl"))):
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                yield json.loads(line)


def _table(table: Any, *needed: str) -> Any:
    """Returns an Arrow table, checked to have the first of these columns, the text."""
    pa = _pyarrow()
    if not isinstance(table, pa.Table):
        try:
            table = pa.table(table)
        except UnicodeError as error:
            raise ArgumentError("table: a text has a surrogate without its partner, which Arrow does not take") from error
        except Exception as error:
            raise ArgumentError(f"table: {shown(table)} is not an Arrow table") from error
    if needed[0] not in table.column_names:
        raise DataError(f"table: has no column {needed[0]!r}")
    if table.column_names.count(needed[0]) > 1:
        raise DataError(f"table: has several columns {needed[0]!r}")
    _check_text("table", needed[0], table.schema.field(needed[0]).type)
    return table


def filter_table(table: Any, *, text_field: str = "text", id_field: str = "id", columns: str | Sequence[str] | None = None,
                 profile: str | Sequence[str] | None = None, rules: dict[str, float | None] | None = None,
                 modify: str | Sequence[str] | None = None, lid: Path | None = None, lang: str | Sequence[str] | None = None,
                 lang_min: float = 0, threads: int = 0, memory: int | str = 0) -> tuple[Any, dict[str, Any]]:
    """Returns the rows of an Arrow table whose text passes named rules, and the report; see `filter_text`.

    >>> kept, report = leat.filter_table(table, profile="gopher@paper", columns=["id", "text", "+words"])

    Parameters
        table: a pyarrow.Table, or anything that pyarrow.table() takes
        columns: columns of the result; "+words" adds a score, "+lang" the language
        others: as in `filter_text`
    """
    table = _table(table, _check.text("text_field", text_field), _check.text("id_field", id_field))
    chosen = _Chosen(columns, modify is not None)
    with tempfile.TemporaryDirectory(prefix="leat-") as folder:
        path = os.path.join(folder, "rows.jsonl")
        _write_rows(table.to_batches(_ROWS), "table", 0, path, text_field, id_field)
        report = _run(filter_text, {path: "table"}, os.path.join(folder, "out"), profile=profile, rules=rules, modify=modify, lid=lid, lang=lang,
                      lang_min=lang_min, columns=chosen.of_filter(), threads=threads, memory=memory)
        with_texts(report, None, "row")
        return chosen.table(table, list(_kept_rows(os.path.join(folder, "out"))), 0, text_field), report


def _parquet_files(source: Path | Sequence[Path]) -> list[str]:
    found: list[str] = []
    for one in _check.paths("source", source):
        path = os.fsdecode(one)
        if os.path.isdir(path):
            inside = sorted(glob.glob(os.path.join(glob.escape(path), "**", "*.parquet"), recursive=True))
        else:
            inside = [path] if os.path.exists(path) else sorted(glob.glob(path))
        if not inside:
            raise NotFoundError(f"{path}: no such Parquet file")
        found += inside
    for folder in sorted({os.path.dirname(path) or "." for path in found if fnmatch.fnmatch(os.path.basename(path), "kept-*.parquet")}):
        _leat.finished_output(os.fsencode(folder))
    return found


@contextlib.contextmanager
def _reading(path: str) -> Iterator[None]:
    """Names the file in errors of Arrow."""
    pa = _pyarrow()
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise DataError(f"{path}: {error}") from error


def _open(path: str) -> Any:
    with _reading(path):
        return _pyarrow().parquet.ParquetFile(path)


def _batches(file: Any, path: str, columns: list[str] | None = None) -> Iterator[Any]:
    """Returns the rows of a file in batches."""
    found = iter(file.iter_batches(_ROWS, columns=columns))
    while True:
        with _reading(path):
            batch = next(found, None)
        if batch is None:
            return
        yield batch


def _write_kept(files: list[str], counts: list[int], kept: Iterator[dict[str, Any]], folder: str, chosen: _Chosen,
                text_field: str, compression: str) -> list[str]:
    """Reads the files again and writes the rows that are kept; one output for each input."""
    pa = _pyarrow()
    names = []
    first, row = 0, next(kept, None)
    for i, path in enumerate(files):
        end = first + counts[i]
        names.append(f"kept-{i:05}.parquet")
        with contextlib.ExitStack() as stack:
            writer = None
            for batch in _batches(stack.enter_context(_open(path)), path):
                here = []
                while row is not None and row[_ROW] < first + batch.num_rows:
                    here.append(row)
                    row = next(kept, None)
                table = chosen.table(pa.Table.from_batches([batch]), here, first, text_field)
                writer = writer or stack.enter_context(
                    pa.parquet.ParquetWriter(os.path.join(folder, names[-1]), table.schema, compression=compression))
                if table.num_rows > 0:
                    writer.write_table(table)
                first += batch.num_rows
            if writer is None:  # no rows at all
                empty = chosen.table(_open(path).schema_arrow.empty_table(), [], first, text_field)
                pa.parquet.write_table(empty, os.path.join(folder, names[-1]), compression=compression)
        if first != end:
            raise DataError(f"{path}: changed while it was read")
    return names


@contextlib.contextmanager
def _output(folder: str, replace: bool, source: Path | Sequence[Path], files: list[str]) -> Iterator[str]:
    """Makes a work folder inside the output folder. Refuses output of an earlier run, and inputs that would be replaced."""
    for one in _check.paths("source", source):
        if os.path.realpath(os.fsdecode(one)) == os.path.realpath(folder):
            raise ArgumentError(f"{folder}: is an input (choose another output folder)")
    for path in files:
        if fnmatch.fnmatch(os.path.basename(path), "kept-*.parquet") and os.path.realpath(os.path.dirname(path)) == os.path.realpath(folder):
            raise ArgumentError(f"{path}: is an input, and the output would replace it (choose another output folder)")
    lock = _leat.lock_output(_check.local(folder))
    try:
        _leat.check_output(folder, replace)
        for left in glob.glob(os.path.join(glob.escape(folder), _WORK + "????????")):  # left by a run that was killed
            shutil.rmtree(left, ignore_errors=True)
        work = tempfile.mkdtemp(prefix=_WORK, dir=folder)
        try:
            yield work
        finally:
            shutil.rmtree(work, ignore_errors=True)
    finally:
        del lock


def _check_keep(name: str, keep_field: str | None, columns: list[str]) -> None:
    if keep_field is not None and _check.text("keep_field", keep_field) not in columns:
        raise DataError(f"{name}: has no column {keep_field!r}")


def _write_inputs(files: list[str], work: str, text_field: str, id_field: str, keep_field: str | None) -> tuple[list[int], dict[str, str]]:
    """Writes the texts of each file as JSONL. Returns the number of rows of each, and the Parquet file of each JSONL file."""
    rows: list[int] = []
    names: dict[str, str] = {}
    for i, path in enumerate(files):
        part = os.path.join(work, f"{i:08}.jsonl")
        names[part] = path
        with _open(path) as file:
            columns = file.schema_arrow.names
            if text_field not in columns:
                raise DataError(f"{path}: has no column {text_field!r}")
            _check_text(path, text_field, file.schema_arrow.field(text_field).type)
            _check_keep(path, keep_field, columns)
            wanted = list(dict.fromkeys(name for name in (text_field, id_field, keep_field) if name in columns))
            rows.append(_write_rows(_batches(file, path, wanted), path, sum(rows), part, text_field, id_field, keep_field))
    return rows, names


def _publish(folder: str, work: str, lists: Sequence[str], files: list[str], made: list[str], result: dict[str, Any]) -> None:
    """Moves lists and kept rows to the output folder, the report last."""
    _leat.refuse_empty(folder, result["documents"], result["bad"], "row")
    _leat.clear_output(folder)
    there = [name for name in lists if os.path.exists(os.path.join(work, "out", name))]
    for name in there:
        os.replace(os.path.join(work, "out", name), os.path.join(folder, name))
    for name in made:
        os.replace(os.path.join(work, name), os.path.join(folder, name))
    result.update(files=len(files), bytes_in=sum(os.path.getsize(path) for path in files), shards=len(made),
                  bytes_out=sum(os.path.getsize(os.path.join(folder, name)) for name in made))
    with open(os.path.join(work, "report.json"), "w", encoding="utf-8") as page:
        json.dump({**{key: value for key, value in result.items() if key != "looked"}, "written": sorted([*there, *made])}, page)
    os.replace(os.path.join(work, "report.json"), os.path.join(folder, "report.json"))


def _rename_inputs(path: str, names: dict[str, str]) -> None:
    """Makes the lists of dropped and bad rows name the Parquet file and the row, not the temporary file and its line."""
    with open(path, encoding="utf-8") as lines, open(path + ".new", "w", encoding="utf-8") as out:
        for line in lines:
            entry = json.loads(line)
            entry["file"] = names.get(entry["file"], entry["file"])
            entry["row"] = entry.pop("line") - 1
            entry.pop("offset", None)
            out.write(json.dumps(entry, ensure_ascii=False) + "\n")
    os.replace(path + ".new", path)


def filter_parquet(source: Path | Sequence[Path], output: Path, *, text_field: str = "text", id_field: str = "id",
                   columns: str | Sequence[str] | None = None, profile: str | Sequence[str] | None = None,
                   rules: dict[str, float | None] | None = None, modify: str | Sequence[str] | None = None,
                   lid: Path | None = None, lang: str | Sequence[str] | None = None, lang_min: float = 0,
                   report: Path | Sequence[Path] | None = None, look: int = 0, seed: int = 0, compression: str = "zstd",
                   on_error: str = "skip", threads: int = 0, memory: int | str = 0, force: bool = False,
                   progress: Progress | None = None) -> dict[str, Any]:
    """Keeps the rows of Parquet files whose text passes named rules; see `filter_text`. Needs pyarrow.

    >>> leat.filter_parquet("crawl", "kept", profile="gopher@paper", columns=["id", "text", "+words"])

    The folder gets kept-00000.parquet and so on (one for each input, rows in order), reasons.jsonl, bad.jsonl and report.json. The
    texts are written to the folder as JSONL while the run lasts.

    Parameters
        source: Parquet files, folders or patterns
        output: folder for kept rows, reasons, bad rows and the report
        columns: columns to write; "+words" adds a score, "+lang" the language; only scores: all columns with them
        compression: "none", "snappy", "gzip" or "zstd"
        others: as in `filter_text`
    """
    _check.text("text_field", text_field)
    _check.text("id_field", id_field)
    _check.one_of("compression", compression, {"none": 0, "snappy": 1, "gzip": 2, "zstd": 3})
    folder = _check.utf8_path("output", output)
    replace = _check.flag("force", force)
    chosen = _Chosen(columns, modify is not None)
    files = _parquet_files(source)
    with _output(folder, replace, source, files) as work:
        rows, names = _write_inputs(files, work, text_field, id_field, None)
        out = os.path.join(work, "out")
        result = _run(filter_text, names, out, profile=profile, rules=rules, modify=modify, lid=lid, lang=lang, lang_min=lang_min,
                      columns=chosen.of_filter(), report=report, look=look, seed=seed, on_error=on_error, threads=threads,
                      memory=memory, progress=progress)
        made = _write_kept(files, rows, _kept_rows(out), work, chosen, text_field, compression)
        for name in ("reasons.jsonl", "bad.jsonl"):
            _rename_inputs(os.path.join(out, name), names)
        _publish(folder, work, ("reasons.jsonl", "bad.jsonl"), files, made, result)
        return with_texts(result, folder, "row")


def _cuts(kind: str, level: str) -> bool:
    """Returns whether texts are changed. `dedup_text` refuses wrong values."""
    return isinstance(kind, str) and isinstance(level, str) and (kind == "substring" or level != "document")


_DEDUP_FILES = ("clusters.jsonl", "changed.jsonl", "bad.jsonl", "index.leat-dedup")


def dedup_table(table: Any, *, text_field: str = "text", id_field: str = "id", kind: str = "fuzzy", normalize: bool = False,
                words: int = 0, chars: int = 0, bands: int = 0, rows: int = 0, threshold: float | None = None, clusters: str = "star",
                compatible: str = "none", level: str = "document", keep: str = "first", keep_field: str | None = None,
                against: Path | None = None, threads: int = 0, memory: int | str = 0) -> tuple[Any, dict[str, Any]]:
    """Returns the rows of an Arrow table without duplicates, and the report; see `dedup_text`.

    >>> unique, report = leat.dedup_table(table, threshold=0.8)

    Parameters
        table: a pyarrow.Table, or anything that pyarrow.table() takes
        keep_field: column of numbers: with keep="field" the row with the largest is kept
        others: as in `dedup_text`
    """
    table = _table(table, _check.text("text_field", text_field), _check.text("id_field", id_field))
    _check_keep("table", keep_field, table.column_names)
    chosen = _Chosen(None, _cuts(kind, level))
    with tempfile.TemporaryDirectory(prefix="leat-") as folder:
        path = os.path.join(folder, "rows.jsonl")
        _write_rows(table.to_batches(_ROWS), "table", 0, path, text_field, id_field, keep_field)
        report = _run(dedup_text, {path: "table"}, os.path.join(folder, "out"), kind=kind, normalize=normalize, words=words, chars=chars, bands=bands,
                      rows=rows, threshold=threshold, clusters=clusters, compatible=compatible, level=level, keep=keep,
                      keep_field=None if keep_field is None else _keep_key(keep_field), against=against, threads=threads, memory=memory)
        with_texts(report, None, "row")
        return chosen.table(table, list(_kept_rows(os.path.join(folder, "out"))), 0, text_field), report


def dedup_parquet(source: Path | Sequence[Path], output: Path, *, text_field: str = "text", id_field: str = "id",
                  kind: str = "fuzzy", normalize: bool = False, words: int = 0, chars: int = 0, bands: int = 0, rows: int = 0,
                  threshold: float | None = None, clusters: str = "star", compatible: str = "none", level: str = "document",
                  keep: str = "first", keep_field: str | None = None, bands_per_iteration: int = 0, index: bool = False,
                  against: Path | None = None, report: Path | Sequence[Path] | None = None, compression: str = "zstd",
                  on_error: str = "skip", threads: int = 0, memory: int | str = 0, force: bool = False,
                  progress: Progress | None = None) -> dict[str, Any]:
    """Removes duplicate rows of Parquet files by their text; see `dedup_text`. Needs pyarrow.

    >>> leat.dedup_parquet("crawl", "unique", kind="fuzzy", memory="4G")

    The folder gets kept-00000.parquet and so on (one for each input, rows in order), clusters.jsonl, bad.jsonl and report.json. The
    texts are written to the folder as JSONL while the run lasts. An interrupted run cannot be resumed.

    Parameters
        source: Parquet files, folders or patterns
        output: folder for kept rows, clusters, bad rows and the report
        keep_field: column of numbers: with keep="field" the row with the largest is kept
        compression: "none", "snappy", "gzip" or "zstd"
        others: as in `dedup_text`
    """
    _check.text("text_field", text_field)
    _check.text("id_field", id_field)
    _check.one_of("compression", compression, {"none": 0, "snappy": 1, "gzip": 2, "zstd": 3})
    folder = _check.utf8_path("output", output)
    replace = _check.flag("force", force)
    chosen = _Chosen(None, _cuts(kind, level))
    files = _parquet_files(source)
    with _output(folder, replace, source, files) as work:
        counts, names = _write_inputs(files, work, text_field, id_field, keep_field)
        out = os.path.join(work, "out")
        result = _run(dedup_text, names, out, kind=kind, normalize=normalize, words=words, chars=chars, bands=bands, rows=rows,
                      threshold=threshold, clusters=clusters, compatible=compatible, level=level, keep=keep,
                      keep_field=None if keep_field is None else _keep_key(keep_field), bands_per_iteration=bands_per_iteration, index=index,
                      against=against, report=report, on_error=on_error, threads=threads, memory=memory, progress=progress)
        made = _write_kept(files, counts, _kept_rows(out), work, chosen, text_field, compression)
        _rename_inputs(os.path.join(out, "bad.jsonl"), names)
        _publish(folder, work, _DEDUP_FILES, files, made, result)
        return with_texts(result, folder, "row")
