# SPDX-License-Identifier: Apache-2.0
"""Fields of a pack, as Python users write them.

============================  =================================================
written                       field
============================  =================================================
``"image"``                   image: encoded bytes, a path, or pixels (uint8, uint16, float32)
``int``, ``"int"``            int64, kept in the index
``float``, ``"float"``        float64, kept in the index
``str``, ``"text"``           UTF-8
``bytes``, ``"bytes"``        any bytes
``dict``, ``list``, "json"    one JSON value
``("float32", (3, 4))``       array, the same shape in every sample
``("float32", (None, 4))``    ragged array: shape per sample, 4 in the last dimension
============================  =================================================
"""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from . import _leat
from ._errors import ArgumentError, shown


class Field(NamedTuple):
    """One field: ``type`` is image, bytes, text, int, float, array, ragged or json."""

    name: str
    type: str
    dtype: str | None = None
    shape: tuple[int | None, ...] | None = None  #: array; of a Writer's ragged field, None where sizes may differ
    ndim: int = 0  #: array and ragged


_TYPES = {int: "int", float: "float", str: "text", bytes: "bytes", dict: "json", list: "json",
          bool: "int"}
_PLAIN = ("image", "bytes", "text", "int", "float", "json")


def field(name: str, spec: object) -> Field:
    """Returns the field that `spec` describes."""
    if isinstance(spec, Field):
        return spec._replace(name=name)
    if isinstance(spec, type) and spec in _TYPES:
        return Field(name, _TYPES[spec])
    if isinstance(spec, str) and spec in _PLAIN:
        return Field(name, spec)
    if isinstance(spec, tuple) and len(spec) == 2:
        dtype, shape = spec
        try:
            shape = (shape,) if isinstance(shape, int) or shape is None else tuple(shape)
            dtype = "bfloat16" if str(dtype) in ("bf16", "bfloat16") else np.dtype(dtype).name
            if any(isinstance(size, bool) for size in shape):
                raise TypeError("True and False are not sizes")
            sizes = tuple(None if size is None else operator.index(size) for size in shape)
        except TypeError as error:
            raise ArgumentError(f"field '{name}': {shown(spec)} is not a (dtype, shape): {error}") from error
        if any(size is not None and size < 0 for size in sizes):
            raise ArgumentError(f"field '{name}': {shape} has a negative size")
        if any(size is None for size in sizes):
            fixed = any(size is not None for size in sizes)
            return Field(name, "ragged", dtype, sizes if fixed else None, len(sizes))
        return Field(name, "array", dtype, sizes, len(sizes))
    raise ArgumentError(
        f"field '{name}': {shown(spec)} is not a type; use one of {', '.join(map(repr, _PLAIN))}, "
        'int (one whole number), float, str, bytes, dict, or, for an array, (dtype, shape): ("uint8", (3, 4))')


def fields(specs: Mapping[str, object]) -> list[Field]:
    """Returns all fields of a schema, in order."""
    if not isinstance(specs, Mapping):
        raise ArgumentError(f"fields: {shown(specs)} is not a dict of names to types")
    if not specs:
        raise ArgumentError("fields: a pack needs at least one field")
    for name in specs:
        if not isinstance(name, str) or not name:
            raise ArgumentError(f"fields: {shown(name)} is not the name of a field")
    return [field(name, spec) for name, spec in specs.items()]


def infer(sample: Mapping[str, object]) -> dict[str, object]:
    """Returns a schema for samples like this one."""
    return {name: _infer(name, value) for name, value in sample.items()}


def _infer(name: str, value: object) -> object:
    if isinstance(value, (bool, int, np.integer)):
        return int
    if isinstance(value, (float, np.floating)):
        return float
    if isinstance(value, str):
        return str
    if isinstance(value, os.PathLike) or is_pil(value):
        return "image"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "image" if _leat.image_sniff(value) else bytes
    if isinstance(value, (dict, list)):
        return "json"
    if hasattr(value, "shape"):
        array = np.asarray(value)
        types = ("uint8", "uint16", "float32") if name == "image" else ("uint8",)  # other arrays are often points or optical flow
        pixels = array.dtype.name in types and array.ndim == 3 and array.shape[-1] in (1, 3, 4)
        return "image" if pixels else (array.dtype.name, array.shape)
    raise ArgumentError(f"field '{name}': a value of type {type(value).__name__} has no field type: name it in fields")


def is_image(value: object) -> bool:
    """Returns whether a value is a picture: PIL, encoded bytes, or pixels."""
    try:
        return _infer("image", value) == "image"
    except ArgumentError:
        return False


def is_pil(value: object) -> bool:
    return type(value).__module__.partition(".")[0] == "PIL"
