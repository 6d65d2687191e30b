# SPDX-License-Identifier: Apache-2.0
"""Checks of arguments: each returns the value as C takes it, or raises ArgumentError naming the argument.

Numbers are taken as numbers only: ``True``, ``"64"``, ``1.5`` and NaN are refused where a whole number is
meant, because every one of them was an accident where it was seen.
"""

from __future__ import annotations

import difflib
import math
import operator
import os
import re
import stat
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from . import _leat
from ._errors import ArgumentError, NotFoundError, StorageError, UnsupportedError, counted, reason, shown

U32 = 2**32 - 1
U64 = 2**64 - 1
EPOCH_MAX = 2**63 - 1


def listed(key: str) -> str:
    """Returns a key as a line of a list of keys: in quotes when it has a line break or would be read as quoted."""
    if not key.startswith('"') and "\n" not in key and "\r" not in key:
        return key
    return '"' + key.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r") + '"'


def unlisted(line: str) -> str:
    """Returns the key of a line that `listed` made, as C reads it (leat__str_unquote)."""
    if re.fullmatch(r'"(?:[^"\\]|\\[nr"\\])*"', line, re.DOTALL) is None:
        return line
    return re.sub(r"\\(.)", lambda m: {"n": "\n", "r": "\r"}.get(m[1], m[1]), line[1:-1])


def whole(name: str, value: object, least: int = 0, most: int = U64) -> int:
    """Returns a whole number from `least` to `most`: an int, or an integer of NumPy."""
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ArgumentError(f"{name}: {shown(value)} is not a whole number") from None
    if number < least:
        raise ArgumentError(f"{name}: {shown(value)} is below {least}")
    if number > most:
        raise ArgumentError(f"{name}: {shown(value)} is above {most}")
    return number


def real(name: str, value: object, least: float, most: float) -> float:
    """Returns a number from `least` to `most`; refuses NaN."""
    text = isinstance(value, (bool, np.bool_, str, bytes))
    try:
        number = math.nan if text else float(value)  # type: ignore[arg-type]
    except OverflowError:  # an integer of more than 300 digits
        raise ArgumentError(f"{name}: {shown(value)} is not between {least:g} and {most:g}") from None
    except (TypeError, ValueError):
        number = math.nan
    if math.isnan(number):
        raise ArgumentError(f"{name}: {shown(value)} is not a number")
    if not least <= number <= most:
        raise ArgumentError(f"{name}: {shown(value)} is not between {least:g} and {most:g}")
    return number


def above(name: str, value: object, most: float) -> float:
    """Returns a number above 0, up to `most`. None becomes 0, which means the default in C."""
    if value is None:
        return 0
    number = real(name, value, 0, most)
    if number == 0:
        raise ArgumentError(f"{name}: 0 is not allowed; leave it out for the default")
    return number


def flag(name: str, value: object, choices: str = "True nor False") -> bool:
    """Returns True or False; accepts 1 and 0 too. `choices` are those of the message."""
    if isinstance(value, (bool, np.bool_)) or (isinstance(value, int) and value in (0, 1)):
        return bool(value)
    raise ArgumentError(f"{name}: {shown(value)} is neither {choices}")


def size(name: str, value: object) -> int:
    """Returns a number of bytes, given as a whole number or as text like "2G"."""
    if isinstance(value, str):
        try:
            return _leat.parse_bytes(value)
        except ValueError as error:
            raise ArgumentError(f"{name}: {error}") from None
    return whole(name, value)


def one_of(name: str, value: object, choices: Mapping[str, int]) -> int:
    """Returns the number that stands for one of a few words in C."""
    if isinstance(value, str) and value in choices:
        return choices[value]
    near = difflib.get_close_matches(value, choices, 1) if isinstance(value, str) else []
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ArgumentError(f"{name}: {shown(value)} is not one of {', '.join(choices)}{hint}")


def called(name: str, value: Any) -> Any:
    """A function, or None."""
    if value is not None and not callable(value):
        raise ArgumentError(f"{name}: {shown(value)} cannot be called")
    return value


def text(name: str, value: object) -> str:
    """Returns a text that C can take: valid UTF-8 without NUL characters."""
    if not isinstance(value, str) or "\0" in value or not _is_utf8(value):
        raise ArgumentError(f"{name}: {shown(value)} is not text")
    return value


def document(name: str, value: object) -> str:
    """Returns a text to score, with any characters. A surrogate without its partner counts as U+FFFD, as in files."""
    if not isinstance(value, str):
        raise ArgumentError(f"{name}: {shown(value)} is not text")
    return value if _is_utf8(value) else value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def key(name: str, value: str) -> str:
    """Returns a key: text, with surrogates for bytes that are not UTF-8."""
    try:
        value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ArgumentError(f"{name}: {shown(value)} is not Unicode text") from None
    return value


def _is_utf8(value: str) -> bool:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def path(name: str, value: object) -> str:
    """Returns a path: text or os.PathLike, not empty."""
    try:
        given = os.fspath(value)  # type: ignore[arg-type]
    except TypeError:
        raise ArgumentError(f"{name}: {shown(value)} is not a path") from None
    if not given:
        raise ArgumentError(f"{name}: the path is empty")
    given = os.fsdecode(given)
    if "\0" in given:
        raise ArgumentError(f"{name}: {given!r} has a zero byte in it")
    try:
        os.fsencode(given)
    except UnicodeEncodeError:
        raise ArgumentError(f"{name}: {given!r} is not a path") from None
    return given


def utf8_path(name: str, value: object) -> str:
    """Returns the path, which must be UTF-8."""
    given = path(name, value)
    if not _is_utf8(given):
        raise ArgumentError(f"{name}: {given!r} is not UTF-8")
    return given


def local(folder: str) -> str:
    """Returns the path of a folder that will be made on this machine."""
    if "://" in folder:
        raise UnsupportedError(f"{public(folder)}: must be a local path")
    return folder


def output(name: str, value: object, head: bytes, kind: str) -> str:
    """Checks a file to write before any work: it must be new, empty, or an earlier file of this kind, which begins with
    the pattern `head`. C has the same rule (leat__file_only_kind). Pipes and devices are written to."""
    given = local(utf8_path(name, value))
    if given.startswith(("/dev/std", "/dev/fd/", "/proc/")):
        return given
    folder = os.path.dirname(os.path.realpath(given))
    try:
        found = os.stat(given) if os.path.exists(given) else None
        if found is not None and stat.S_ISDIR(found.st_mode):
            raise ArgumentError(f"{name}: {given}: is a folder; give the name of a file to write")
        if found is not None and not stat.S_ISREG(found.st_mode):
            return given
        if not os.path.isdir(folder):
            raise NotFoundError(f"{name}: {folder}: no such folder")
        if not os.access(folder if found is None else given, os.W_OK):
            raise StorageError(f"{name}: {given}: cannot be written")
        if found is None:
            return given
        with open(given, "rb") as file:
            begin = file.read(256)
    except OSError as error:
        if isinstance(error, (NotFoundError, StorageError)):
            raise
        raise StorageError(f"{name}: {given}: {reason(error)}") from None
    if begin and re.match(head, begin) is None:
        raise ArgumentError(f"{name}: {given}: is not {kind}, and only such a file may be written to; give another name")
    return given


def public(path: str) -> str:
    """Returns a path without secrets: a URL without user, password and the part after '?'."""
    scheme, mark, rest = path.partition("://")
    if not mark:
        return path
    rest, query, _ = rest.partition("?")
    place, slash, key = rest.partition("/")
    return scheme + mark + place.rpartition("@")[2] + slash + key + ("?…" if query else "")


def file_name(path: str) -> str:
    """Returns the name of a file: the last part of a path, without the query of a URL."""
    return os.path.basename(re.split("[?#]", path)[0] if path.lower().startswith(("http://", "https://")) else path)


def paths(name: str, value: object) -> list[bytes]:
    """A path, or several."""
    if isinstance(value, (str, bytes, os.PathLike)):
        return [os.fsencode(path(name, value))]
    if not isinstance(value, Iterable):
        raise ArgumentError(f"{name}: {shown(value)} is not a path or a list of paths")
    found = [os.fsencode(path(name, one)) for one in value]
    if not found:
        raise ArgumentError(f"{name}: the list of paths is empty")
    return found


def several(name: str, values: object, kinds: tuple[type, ...] = (str,), first: int = 0) -> list[Any]:
    """Returns a list of values of these types. Messages number them from `first`. A single text is refused: its letters
    would be taken as values."""
    what = " or ".join(kind.__name__ for kind in kinds)
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ArgumentError(f"{name}: {shown(values)} is not a list" + (f" of {what}" if kinds != (object,) else ""))
    listed = list(values)
    for i, value in enumerate(listed, first):
        if not isinstance(value, kinds):
            raise ArgumentError(f"{name}: number {i} is {shown(value)}, not {what}")
    return listed


def _array(name: str, values: Any) -> np.ndarray:
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:  # rows of different length, say
        raise ArgumentError(f"{name}: one row of numbers is expected: {error}") from None
    if array.ndim == 0:  # a generator, a text, one number
        hint = ": list(...) makes one" if isinstance(values, Iterable) and not isinstance(values, (str, bytes)) else ""
        raise ArgumentError(f"{name}: one row of numbers is expected, not {type(values).__name__}{hint}")
    return array


def indices(name: str, values: Any) -> np.ndarray:
    """Returns numbers of samples as one row of uint64."""
    array = _array(name, values)
    if array.ndim != 1:
        raise ArgumentError(f"{name}: one row of numbers is expected, not an array of shape {array.shape}")
    if array.dtype == np.bool_:
        raise ArgumentError(f"{name}: numbers of samples are expected, not a mask: use numpy.flatnonzero(mask)")
    if array.size and array.dtype.kind not in "iu":
        given = list(values) if isinstance(values, (list, tuple)) else array.tolist()  # NumPy makes [1, "a"] text
        bad = next((i for i, v in enumerate(given) if isinstance(v, bool) or not isinstance(v, int)), 0)
        raise ArgumentError(f"{name}: number {bad} is {given[bad]!r}, not a whole number")
    if array.size and array.dtype.kind == "i" and array.min() < 0:
        bad = int(array.argmin())
        raise ArgumentError(f"{name}: number {bad} is {int(array[bad])}, below 0")
    return np.ascontiguousarray(array, np.uint64)


def weights(name: str, values: Any, count: int) -> np.ndarray:
    """Returns one weight for each of `count` samples, as one row of float64."""
    array = _array(name, values)
    if array.ndim != 1 or array.dtype.kind not in "iuf":
        raise ArgumentError(f"{name}: one row of numbers is expected, not {array.dtype} of shape {array.shape}")
    if len(array) != count:
        raise ArgumentError(f"{name}: {len(array)} given for {counted(count, 'sample')}")
    return np.ascontiguousarray(array, np.float64)
