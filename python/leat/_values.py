# SPDX-License-Identifier: Apache-2.0
"""Values of a sample as C takes them. A value that does not fit its field is an error; values are never changed.

Whole numbers must fit in range and in value (2.0 is a whole number, 1.7 is not). Floating point
numbers may be rounded to their field's precision, but a finite one never becomes infinite. A
uint16 array given to a bfloat16 field holds the bits.
"""

from __future__ import annotations

import json
import math
import numbers
import operator
import os
from typing import Any, NoReturn

import numpy as np

from ._errors import ArgumentError, NotFoundError, StorageError, shown
from ._schema import Field, is_pil

_INT64 = np.iinfo(np.int64)


def prepare(f: Field, row: int, value: object) -> object:
    """Returns the value of field `f` in sample `row`: int, float, bytes-like or contiguous array."""
    if value is None:
        if f.type in ("int", "float"):
            raise ArgumentError(f"field '{f.name}' is missing or None in sample {row}: {f.type} fields have a value in every sample")
        return None
    if isinstance(value, np.ma.MaskedArray):
        _fail(f, row, "a masked array: its mask would be lost; give a.filled(value)")
    return _PREPARE[f.type](f, row, value)


def _fail(f: Field, row: int, what: str) -> NoReturn:
    raise ArgumentError(f"field '{f.name}', sample {row}: {what}")


# ---- numbers -----------------------------------------------------------------------------------


def _scalar(f: Field, row: int, value: object) -> Any:
    """Returns a Python number; arrays and tensors of one element count as their element."""
    if not isinstance(value, (numbers.Number, np.generic)) and getattr(value, "shape", None) == ():
        value = value.item()  # type: ignore[attr-defined]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, numbers.Real):
        return value
    if hasattr(value, "__index__") and not hasattr(value, "shape"):
        return operator.index(value)  # type: ignore[arg-type]
    _fail(f, row, f"{shown(value)} is not a number")


def _int(f: Field, row: int, value: object) -> int:
    number = _scalar(f, row, value)
    try:
        whole = int(number)
    except (ValueError, OverflowError):  # NaN, infinity
        _fail(f, row, f"{shown(number)} is not a whole number")
    if whole != number:
        _fail(f, row, f"{shown(number)} is not a whole number")
    if not _INT64.min <= whole <= _INT64.max:
        _fail(f, row, f"{whole} is out of range for int64")
    return whole


def _float(f: Field, row: int, value: object) -> float:
    number = _scalar(f, row, value)
    try:
        real = float(number)
    except OverflowError:
        _fail(f, row, f"{shown(number)} is out of range for float64")
    if isinstance(number, numbers.Integral) and real != number:
        _fail(f, row, f"{number} has no exact float64")
    return real


# ---- arrays ------------------------------------------------------------------------------------


def _to_numpy(f: Field, row: int, value: Any) -> np.ndarray:
    if str(getattr(value, "dtype", "")) == "torch.bfloat16":
        value = value.detach().cpu().float()  # exact; NumPy has no bfloat16
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        _fail(f, row, f"not an array: {error}")
    listed = array.dtype.kind == "O" or (array.dtype.kind == "f" and isinstance(value, (list, tuple)))
    if listed and (array.dtype.kind == "O" or bool(np.any(np.abs(array) >= 2**53))):
        return _exact(f, row, value, array)
    if array.dtype.kind in "biuf" or array.dtype.name == "bfloat16":
        return array
    flat = array.reshape(-1)
    _fail(f, row, f"{shown(flat[:1].tolist()[0] if flat.size else value)} is not of type {f.dtype}")


def _exact(f: Field, row: int, value: Any, array: np.ndarray) -> np.ndarray:
    """Returns the numbers of a list unrounded, as Python integers if the field has whole numbers.

    NumPy makes float64 of a list in which some whole numbers need uint64 and others do not.
    """
    items = np.array(value, dtype=object)
    whole = f.dtype != "bfloat16" and np.dtype(f.dtype).kind in "biu"
    if items.shape != array.shape:
        _fail(f, row, "not an array: its elements have different shapes")
    for at, item in np.ndenumerate(items):
        where = _where(at)
        if not isinstance(item, numbers.Real):
            _fail(f, row, f"{shown(item)}{where} is not of type {f.dtype}")
        if whole:
            if not isinstance(item, numbers.Integral) and (not math.isfinite(item) or int(item) != item):
                _fail(f, row, f"{shown(item)}{where} is not a whole number, as it must be for {f.dtype}")
            items[at] = int(item)
        elif isinstance(item, numbers.Integral) and (abs(int(item)) >= 2**1024 or float(item) != item):
            _fail(f, row, f"{item}{where} has no exact {f.dtype}")
    return items if whole else items.astype(np.float64)


def _where(at: tuple[int, ...]) -> str:
    return f" at [{', '.join(str(int(i)) for i in at)}]" if at else ""


def _first(f: Field, row: int, array: np.ndarray, good: np.ndarray, what: str) -> None:
    """Raises for the first element that is not good."""
    if good.all():
        return
    at = np.unravel_index(int(np.argmin(good)), good.shape)
    item = array[at]
    _fail(f, row, f"{item if isinstance(item, int) else item.item()!r}{_where(at)} {what} {f.dtype}")


def _check_whole(f: Field, row: int, array: np.ndarray, low: int, high: int) -> None:
    if array.size == 0:
        return
    if array.dtype.kind == "f":
        if array.dtype.itemsize < 8:
            array = array.astype(np.float64)  # the limits are exact there
        _first(f, row, array, np.isfinite(array) & (np.trunc(array) == array),
               "is not a whole number, as it must be for")
        # high + 1 is a power of two, so it is exact in every type; high itself may not be
        _first(f, row, array, (array >= low) & (array < float(high) + 1.0 if high > 2**52 else array <= high),
               "is out of range for")
    elif int(array.min()) < low or int(array.max()) > high:
        good = np.ones(array.shape, bool)
        if int(array.min()) < low:
            good &= array >= low
        if int(array.max()) > high:
            good &= array <= high
        _first(f, row, array, good, "is out of range for")


def _check_float(f: Field, row: int, array: np.ndarray, cast: np.ndarray) -> None:
    if array.dtype.kind == "f":
        _first(f, row, array, np.isfinite(cast) | ~np.isfinite(array), "is out of range for")
        return
    largest = 2 ** (np.finfo(cast.dtype).nmant + 1)
    if array.size and (int(array.max()) > largest or int(array.min()) < -largest):
        exact = [int(a) == b for a, b in zip(array.reshape(-1), cast.reshape(-1).tolist())]
        _first(f, row, array, np.reshape(exact, array.shape), "has no exact")


def _bfloat16(f: Field, row: int, array: np.ndarray) -> np.ndarray:
    """Returns the bits, rounded to nearest even."""
    if array.dtype.name == "bfloat16":
        return array.view(np.uint16)
    if array.dtype == np.uint16:
        return array
    with np.errstate(over="ignore"):
        single = array.astype(np.float32)
    _check_float(f, row, array, single)
    bits = single.view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    rounded = np.where(np.isnan(single), (bits >> 16 | 0x40).astype(np.uint16), rounded)
    _first(f, row, array, ((rounded & 0x7FFF) != 0x7F80) | ~np.isfinite(single), "is out of range for")
    return rounded


def _cast(f: Field, row: int, array: np.ndarray) -> np.ndarray:
    if f.dtype == "bfloat16":
        return _bfloat16(f, row, array)
    dtype = np.dtype(f.dtype)
    if array.dtype == dtype:
        return array
    if array.dtype.name == "bfloat16":
        array = array.astype(np.float32)
    if dtype.kind == "b":
        _check_whole(f, row, array, 0, 1)
    elif dtype.kind in "iu" and array.dtype.kind != "b":
        limits = np.iinfo(dtype)
        _check_whole(f, row, array, int(limits.min), int(limits.max))
    with np.errstate(over="ignore"):
        cast = array.astype(dtype)
    if dtype.kind == "f" and array.dtype.kind != "b":
        _check_float(f, row, array, cast)
    return cast


def _array(f: Field, row: int, value: object) -> np.ndarray:
    array = _to_numpy(f, row, value)
    want = None if f.shape is None else tuple(f.shape)
    if want is not None and (len(want) != array.ndim or any(n not in (None, m) for n, m in zip(want, array.shape))):
        pixels = array.ndim == 3 and f.dtype in ("uint8", "uint16", "float32") and array.shape[2] <= 16
        hint = f"; fields={{'{f.name}': 'image'}} takes images of any size" if pixels else ""
        _fail(f, row, f"the array has the shape {array.shape}, {want} is expected{hint}")
    if array.ndim != f.ndim:
        _fail(f, row, f"the array has the shape {array.shape}, {f.ndim} dimensions are expected")
    return np.ascontiguousarray(_cast(f, row, array)).reshape(array.shape)


# ---- the rest ----------------------------------------------------------------------------------


def _text(f: Field, row: int, value: object) -> bytes:
    if not isinstance(value, str):
        _fail(f, row, f"{shown(value)} is not a str")
    try:
        return value.encode("utf-8")
    except UnicodeEncodeError as error:
        _fail(f, row, f"not Unicode text: {error.reason} at {error.start}")


def _json(f: Field, row: int, value: object) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        _fail(f, row, f"not a JSON value: {error}")


def _bytes(f: Field, row: int, value: object) -> object:
    try:
        return memoryview(value).cast("B")  # type: ignore[arg-type]
    except (TypeError, ValueError):
        pass
    try:  # not contiguous, or empty with a shape
        return bytes(memoryview(value))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        _fail(f, row, f"{shown(value)} is not bytes")


def _image(f: Field, row: int, value: object) -> object:
    if isinstance(value, (str, os.PathLike)):
        return _read(f, row, value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return value
    mode = value.mode if is_pil(value) else "RGB"  # type: ignore[attr-defined]
    if mode not in ("L", "RGB", "RGBA", "I;16", "F"):  # in other modes, the numbers are not the colours that a viewer shows
        _fail(f, row, f"a PIL image of mode {mode}; convert it to L, RGB, RGBA, I;16 or F")
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        _fail(f, row, f"not an image: {error}")
    if array.dtype.newbyteorder("=") not in (np.uint8, np.uint16, np.float32):
        _fail(f, row, f"pixels must be uint8, uint16 or float32, not {array.dtype}")
    if array.ndim > 1 and (array.ndim > 3 or (array.ndim == 3 and not 1 <= array.shape[2] <= 16)):
        hint = ": channels come last" if array.ndim == 3 and 1 <= array.shape[0] <= 16 else ""
        _fail(f, row, "pixels must be height x width x channels, with 1 to 16 channels, not "
              f"{array.shape}{hint}")
    if array.ndim == 3 and array.shape[0] in (1, 3, 4) and array.shape[1] > 4 < array.shape[2]:
        _fail(f, row, f"pixels of shape {array.shape}: channels come last. An image of {array.shape[0]} rows with "
              f"{array.shape[2]} channels must be given as a TIFF file")
    return np.ascontiguousarray(array, array.dtype.newbyteorder("="))


def _read(f: Field, row: int, path: str | os.PathLike) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError as error:
        raise NotFoundError(f"field '{f.name}', sample {row}: {error}") from error
    except (OSError, ValueError) as error:
        raise StorageError(f"field '{f.name}', sample {row}: {error}") from error


_PREPARE = {"int": _int, "float": _float, "array": _array, "ragged": _array, "text": _text,
            "json": _json, "bytes": _bytes, "image": _image}
