# SPDX-License-Identifier: Apache-2.0
"""Writing packs from Python."""

from __future__ import annotations

import json
import os
import warnings
import zlib
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from . import _check, _leat, _schema, _values
from ._errors import (AdviceWarning, ArgumentError, DataError, ExistsError, FormatError, LimitError, StateError,
                      UnsupportedError, counted, hidden, shown, told)


class Writer:
    """Appends samples to a new pack.

    >>> with leat.Writer("train.leat", {"image": "image", "label": int}) as w:
    ...     for path, label in files:
    ...         w.append({"image": path, "label": label}, key=str(path))

    The complete pack appears under its name when the ``with`` block ends or ``close`` is called.
    When the block ends in an exception, what is written stays beside it and the exception says so:
    ``resume=True`` continues it (``resumed`` says how many samples it has), ``replace=True`` starts
    again.

    A value that does not fit its field is an ``ArgumentError`` naming field, sample and value: 300 in
    a uint8 array, 1.7 in an int, 1e300 in float32, text for a number, another shape. Nothing is
    wrapped or cut.

    Parameters
        path: of the pack; in a bucket (``s3://…``) it is written to this machine first (below
            ``LEAT_STAGE_DIR``) and sent by ``close``: a failed upload is continued by ``resume=True``, which needs the
            same fields, classes, provenance and sizes. The samples themselves are not compared: name their source
            in ``provenance`` to refuse a resume with another one
        fields: name to type of each field (see ``leat.Field``); left out, the first sample decides
        page_bytes: target size of a page ("2M"); 0 = the default
        shard_bytes: several files of at most this size ("10G"); 0 = one file
        classes: names of an int field's values: ``{"label": ["cat", "dog"]}``. -1 means no class. Other labels without a
            name, and names that two labels share, are errors
        provenance: a JSON-able dict kept in the pack: where it came from, settings
        resume: continue an unfinished pack of the same fields, if there is one
        append: the pack exists and gets a new generation: its files stay, and readers see it without or
            with all changes made by ``append``, ``update`` and ``delete``. Fields, classes (more may follow) and
            pages are those of the pack. What a killed append left is discarded by the next one
        replace: a pack of that name may exist and is replaced at the end; an unfinished one is
            discarded, unless another process is writing it
        sync: wait for the disk at the end; without, a power cut may lose the pack
    """

    def __init__(self, path: str | os.PathLike, fields: Mapping[str, object] | None = None, *,
                 page_bytes: int | str = 0, shard_bytes: int | str = 0,
                 classes: Mapping[str, Sequence[str]] | None = None,
                 provenance: Mapping[str, object] | None = None,
                 resume: bool = False, replace: bool = False, sync: bool = True, append: bool = False) -> None:
        self.path = _check.path("path", path)
        self.fields: list[_schema.Field] = []
        self._packer: _leat.Packer | None = None
        self._count = 0
        self._closed = False
        self._classes = _class_names(classes)
        self._limits: list[tuple[int, str, int]] = []  # (position, name, classes) of fields with class names
        self._options: dict[str, Any] = {
            "page_bytes": _check.size("page_bytes", page_bytes),
            "shard_bytes": _check.size("shard_bytes", shard_bytes), "resume": _check.flag("resume", resume),
            "replace": _check.flag("replace", replace), "sync": _check.flag("sync", sync),
            "provenance": _provenance(provenance),
        }
        if self._classes and "://" in self.path:  # a pack that waits for its upload is not opened again to read its classes
            self._options["identity"] = zlib.crc32(json.dumps(self._classes, sort_keys=True).encode())
        self._base: _leat.Pack | None = None  # the pack that is appended to
        self._gone: set[bytes] = set()  # keys of the base that are deleted or updated
        self._added: set[bytes] = set()  # keys of samples that are appended to the base
        if _check.flag("append", append):
            if resume or replace:
                raise ArgumentError("append: cannot be combined with resume or replace")
            self._append(fields)
        elif fields is not None:
            self._open(fields)
        elif resume:
            raise ArgumentError("resume needs fields: a resumed pack cannot infer them from the first sample")

    def _append(self, specs: Mapping[str, object] | None) -> None:
        base = _leat.Pack(self.path)
        self._options["append"] = True
        self.fields = [_schema.Field(*row) for row in base.fields()] if specs is None else _schema.fields(specs)
        try:
            self._make()
        except BaseException:
            self.abort(discard=True)
            raise
        self._base = _leat.Pack(self.path)  # opened again after taking the lock: no other writer can change it now
        self._count = len(self._base) + self._base.info()["dropped"]
        for i, f in enumerate(self.fields):
            names = self._base.classes(i) if f.type == "int" and f.name not in self._classes else []
            if names:
                self._limits.append((i, f.name, len(names)))

    def _open(self, specs: Mapping[str, object]) -> None:
        self.fields = _schema.fields(specs)
        self._make()
        self._count = self.resumed

    def _make(self) -> None:
        for name in self._classes:
            field = next((f for f in self.fields if f.name == name), None)
            if field is None:
                raise ArgumentError(f"classes: there is no field '{name}'")
            if field.type != "int":
                raise ArgumentError(f"classes: field '{name}' is {field.type}: only int fields have classes")
        rows = [f._replace(shape=None) if f.type == "ragged" else f for f in self.fields]  # packs do not store their sizes
        try:
            self._packer = _leat.Packer(self.path, rows, **self._options)
        except ExistsError as error:
            raise told(error, "replace=True, in from_dataset force=True, replaces it") from None
        names = [f.name for f in self.fields]
        for name, classes in self._classes.items():
            self._packer.classes(names.index(name), classes)
            self._limits.append((names.index(name), name, len(classes)))

    @property
    def resumed(self) -> int:
        """Samples that an earlier, unfinished run had written."""
        return self._packer.resumed() if self._packer is not None else 0

    def __len__(self) -> int:
        return self._count

    def append(self, sample: Mapping[str, object] | Sequence[object],
               key: str | bytes | None = None) -> None:
        """Adds one sample: a dict of its values, or a sequence in the order of the fields.

        Values that are None or left out are absent; int and float fields must be there. Without a
        key the sample's number is its key.
        """
        if self._packer is None:
            if self._closed:
                raise StateError("the writer is closed")
            if not isinstance(sample, Mapping):
                raise ArgumentError("without a schema the first sample must be a dict")
            self._open(_schema.infer(sample))
        made = self._new_key(key)
        self._put(made, self._values(sample))
        if self._base is not None and key is not None:
            self._added.add(made)
        self._count += 1

    def _put(self, key: bytes, values: list[object]) -> None:
        """Hands a sample to the packer. Errors name its number and key."""
        assert self._packer is not None
        try:
            self._packer.append(key, values)
        except (ArgumentError, DataError, FormatError, LimitError, UnsupportedError) as error:
            if error.key is None:
                images = [f.name for f in self.fields if f.type == "image"]
                field = f"field '{images[0]}', " if len(images) == 1 else ""
                error.key, error.sample_id = key.decode(errors="replace"), self._count
                error.args = (f"{field}sample {self._count} ({error.key}): {error}",)
            raise

    def _new_key(self, key: str | bytes | None) -> bytes:
        """Returns the key of a sample to append; refuses the key of a sample that exists."""
        made = _key(key, self._count)
        if self._base is None:
            return made
        while key is None and self._base.find(made) is not None:
            self._count += 1
            made = _key(None, self._count)
        if made not in self._gone and self._base.find(made) is not None:
            raise ExistsError(f"{self.path}: already has a sample with the key {shown(key)}: use update")
        if made in self._added:
            raise ExistsError(f"{self.path}: the key {shown(key)} was written by this writer already")
        return made

    def update(self, sample: Mapping[str, object] | Sequence[object], key: str | bytes) -> bool:
        """Replaces the samples with this key by a new one; returns whether there were any. Needs ``append=True``."""
        coded = _key(key, self._count)
        values = self._values(sample)
        if coded in self._gone:
            raise StateError(f"{self.path}: the key {shown(key)} was updated or deleted by this writer already")
        had = self.delete(key)
        self._gone.add(coded)
        self._added.add(coded)
        self._put(coded, values)
        self._count += 1
        return had > 0

    def delete(self, key: str | bytes) -> int:
        """Deletes the samples of the pack with this key; returns how many. Needs ``append=True``.

        Deleting or updating a sample that this writer wrote is a ``StateError``.
        """
        if self._packer is None or self._base is None:
            raise StateError("the writer is closed" if self._closed else "update and delete need append=True")
        if not isinstance(key, (str, bytes)):
            raise ArgumentError(f"key: {shown(key)} is not text or bytes")
        coded = _key(key, self._count)
        if coded in self._added:
            raise StateError(f"{self.path}: the key {shown(key)} was written by this writer: close it first")
        if coded in self._gone:
            return 0
        count = self._packer.drop(coded)
        if count:
            self._gone.add(coded)
        return count

    def extend(self, samples: Iterable[Mapping[str, object] | Sequence[object]]) -> None:
        """Adds many samples, with generated keys."""
        if isinstance(samples, (str, bytes, Mapping)) or not isinstance(samples, Iterable):
            raise ArgumentError(f"samples: {type(samples).__name__} is not a list of samples")
        for sample in samples:
            self.append(sample)

    def _values(self, sample: Mapping[str, object] | Sequence[object]) -> list[object]:
        if isinstance(sample, Mapping):
            unknown = sample.keys() - {f.name for f in self.fields}
            if unknown:
                raise ArgumentError(f"there is no field '{sorted(map(str, unknown))[0]}' in this pack")
            values = [sample.get(f.name) for f in self.fields]
        elif isinstance(sample, (str, bytes)) or not isinstance(sample, Iterable):
            raise ArgumentError(f"sample {self._count}: {shown(sample)} is not a dict or a sequence of values")
        else:
            values = list(sample)
            if len(values) != len(self.fields):
                raise ArgumentError(f"sample {self._count}: {len(self.fields)} values are expected, not {len(values)}")
        ready = [_values.prepare(f, self._count, value) for f, value in zip(self.fields, values)]
        for i, name, count in self._limits:
            if not -1 <= ready[i] < count:  # type: ignore[operator]
                raise ArgumentError(f"field '{name}', sample {self._count}: {ready[i]} is not a class: classes has "
                                    f"{counted(count, 'name')}, for 0 to {count - 1}; -1 means no class")
        return ready

    def finish(self) -> dict[str, int]:
        """Writes the index and renames the pack to its final name; returns how much was written."""
        if self._packer is None:
            raise StateError("the writer is closed" if self._closed else "nothing was appended")
        stats = self._packer.finish()
        self._packer = None
        self._base = None
        self._closed = True
        if stats["duplicate_keys"]:
            n = stats["duplicate_keys"]
            warnings.warn(f"{self.path}: {n} sample{' has' if n == 1 else 's have'} the key of an earlier one: by key only the "
                          "first is found", AdviceWarning, stacklevel=3)
        return stats

    def close(self) -> None:
        """Finishes the pack, as the end of a ``with`` block does; does nothing when it is closed."""
        if self._packer is not None:
            try:
                self.finish()
            except BaseException:
                self.abort()
                raise
        self._closed = True

    def abort(self, discard: bool = False) -> None:
        """Stops without finishing. What is written stays for ``resume=True``, unless ``discard``."""
        if self._packer is not None:
            self._packer.close(discard or self._base is not None)
        self._packer = self._base = None
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        unfinished = self._packer is not None and self._base is None
        if kind is None:
            if self._packer is None and not self._closed:
                raise StateError("nothing was appended, and without fields there is no pack")
            self.close()
            return
        self.abort()
        if unfinished and error is not None:
            error.add_note(f"leat: {self.path} is not finished: resume=True continues it, "
                           "replace=True starts over")

    def __del__(self) -> None:
        if getattr(self, "_packer", None) is not None:
            warnings.warn(f"{self!r} was never closed: the pack is not finished; resume=True "
                          "continues it", ResourceWarning, stacklevel=2, source=self)

    def __repr__(self) -> str:
        return f"leat.Writer({hidden(self.path)!r}, {counted(self._count, 'sample')})"


def _class_names(classes: Any) -> dict[str, list[str]]:
    """Returns the class names of each field, checked: texts without duplicates."""
    if classes is not None and not isinstance(classes, Mapping):
        raise ArgumentError(f"classes: {shown(classes)} is not a dict of a field's name to its class names")
    checked: dict[str, list[str]] = {}
    for field, names in (classes or {}).items():
        listed = [_check.text("classes", name) for name in _check.several("classes", names)]
        first: dict[str, int] = {}
        for i, name in enumerate(listed):
            if name in first:
                raise ArgumentError(f"classes: '{name}' is the name of both {first[name]} and {i} of field '{field}'")
            first[name] = i
        checked[field] = listed
    return checked


def _provenance(value: Any) -> str:
    if value is not None and not isinstance(value, Mapping):
        raise ArgumentError(f"provenance: {shown(value)} is not a dict")
    try:
        return json.dumps(dict(value or {}), sort_keys=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentError(f"provenance: not a JSON value: {error}") from None


def _key(key: str | bytes | None, row: int) -> bytes:
    if key is None:
        key = f"{row:08d}"
    if isinstance(key, bytes):
        return key
    try:
        return key.encode("utf-8", "surrogateescape")
    except (AttributeError, UnicodeEncodeError) as error:
        raise ArgumentError(f"sample {row}: the key {shown(key)} is not text or bytes") from error


def delete(path: str | os.PathLike, keys: str | bytes | Iterable[str | bytes], *, sync: bool = True) -> int:
    """Deletes the samples with these keys from a pack, as a new generation; returns how many.

    Keys that no sample has are a ``leat.AdviceWarning``. The bytes stay in the files until ``leat.compact``."""
    listed = [keys] if isinstance(keys, (str, bytes)) else _check.several("keys", keys, (str, bytes))
    with Writer(path, append=True, sync=sync) as writer:
        counts = [writer.delete(key) for key in listed]
    found = {key for key, count in zip(listed, counts) if count}
    missing = [key for key in dict.fromkeys(listed) if key not in found]
    if missing:
        warnings.warn(f"{path}: {len(missing)} {'key was' if len(missing) == 1 else 'keys were'} not in the pack ({shown(missing[0])}"
                      f"{'' if len(missing) == 1 else ', ...'})", AdviceWarning, stacklevel=2)
    return sum(counts)


def compact(path: str | os.PathLike, output: str | os.PathLike | None = None, *, shard_bytes: int | str = 0,
            replace: bool = False, sync: bool = True) -> dict[str, int]:
    """Rewrites a pack: one generation, without deleted samples, the bytes of packing all samples at once.

    Parameters
        path: of the pack
        output: write here; None replaces the pack itself
        shard_bytes: several files of at most this size ("10G"); 0 = one file
        replace: a pack at ``output`` may be replaced
    """
    return _leat.compact(_check.path("path", path), output=None if output is None else _check.path("output", output),
                         shard_bytes=_check.size("shard_bytes", shard_bytes),
                         replace=_check.flag("replace", replace), sync=_check.flag("sync", sync))
