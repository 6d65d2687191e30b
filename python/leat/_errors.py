# SPDX-License-Identifier: Apache-2.0
"""Exceptions: one class per kind of failure, each also the built-in exception it resembles."""

from __future__ import annotations

import os
import re


def _is_huge(value: object) -> bool:
    """Returns whether the repr would be too long; a few lines of YAML with aliases can stand for billions of values."""
    left, stack = 1000, [value]
    while stack and left > 0:
        left -= 1
        found = stack.pop()
        if isinstance(found, (list, tuple, set, frozenset, dict)):
            if len(found) > left:
                return True
            stack.extend(found)
            if isinstance(found, dict):
                stack.extend(found.values())
    return left == 0


def counted(number: int, noun: str, separator: str = "") -> str:
    """Returns "1 row" or "2000 rows"; with the separator ",", "2,000 rows"."""
    return f"{number:{separator}} {noun}{'' if number == 1 else 's'}"


def shown(value: object) -> str:
    """Returns a value for a message: its repr on one line, truncated when it is long."""
    if _is_huge(value):
        return f"a {type(value).__name__} of many values"
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else text[:77] + "..."


def hidden(text: str) -> str:
    """Returns a text that may be printed or stored: without user, password and query of URLs."""
    from . import _leat

    return _leat.hide_secrets(os.fsencode(text.replace("\0", "\\0"))) if "://" in text else text


def reason(error: OSError) -> str:
    """Returns the text of a system error, in words that fit any path."""
    return {FileExistsError: "is a file, not a folder", IsADirectoryError: "is a folder, not a file"}.get(
        type(error), error.strerror or str(error))


class Error(Exception):
    """Anything that leat reports. ``str(e)`` is the line the command would print."""

    marked: str = ""  # the message with names of options in backquotes, for the command: it prints flags
    code: str = ""  #: name of the code in C, "LEAT_EDATA"
    key: str | None = None  #: key of the sample it is about
    sample_id: int | None = None  #: number of the sample it is about
    offset: int | None = None  #: byte in the file or sample
    sys_errno: int | None = None  #: errno of the system call that failed

    def __init__(self, *args: object) -> None:
        if args and isinstance(args[0], str) and "`" in args[0]:
            self.marked = args[0]
            args = (re.sub(r"`([a-z_]+)`", r"\1", args[0]), *args[1:])
        if args and isinstance(args[0], str) and "://" in args[0]:
            self.marked, args = hidden(self.marked), (hidden(args[0]), *args[1:])
        super().__init__(*args)


class DataError(Error, ValueError):
    """Damaged or malformed data: ``key``, ``sample_id`` and ``offset`` say where."""


class FormatError(Error, ValueError):
    """Not a pack, not finished, or of a version that this build does not read."""


class ArgumentError(Error, ValueError):
    """An argument is wrong; the message names it."""


class NotFoundError(Error, FileNotFoundError):
    """No such file, key or entry."""


class SampleIndexError(Error, IndexError):
    """A sample's number is past the end."""


class MissingKeyError(Error, KeyError):
    """No sample has the key, or no field the name."""

    __str__ = Exception.__str__  # KeyError would show the message in quotes


class ExistsError(Error, FileExistsError):
    """Something of that name already exists."""


class StorageError(Error, OSError):
    """Reading or writing failed."""


class BudgetError(Error, MemoryError):
    """Does not fit the memory budget, or memory is short."""


class LimitError(Error, ValueError):
    """A configured limit was exceeded."""


class StateError(Error, RuntimeError):
    """Called in the wrong state: closed, canceled, or in use by another thread."""


class ForkError(StateError):
    """Used in a forked child of the process that made it."""


class UnsupportedError(Error, NotImplementedError):
    """Not supported by this build or machine."""


class InternalError(Error, RuntimeError):
    """A bug in leat: please report it."""


class AdviceWarning(UserWarning):
    """Advice about a loader: an order that reads slowly here, ranks with an empty last batch."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(hidden(text) if isinstance(text, str) else text for text in args))


def told(error: ExistsError, remedy: str) -> ExistsError:
    """Adds the remedy to a message that only says that something exists."""
    if str(error).endswith(": already exists"):
        error.args = (f"{error} ({remedy})",)
    return error


_CLASSES: dict[str, type[Error]] = {
    "LEAT_ENOMEM": BudgetError,
    "LEAT_EINVAL": ArgumentError,
    "LEAT_EIO": StorageError,
    "LEAT_ENOENT": NotFoundError,
    "LEAT_EEXIST": ExistsError,
    "LEAT_ENOSPC": StorageError,
    "LEAT_EDATA": DataError,
    "LEAT_EFORMAT": FormatError,
    "LEAT_ELIMIT": LimitError,
    "LEAT_EBUDGET": BudgetError,
    "LEAT_ECANCELED": StateError,
    "LEAT_ETIMEDOUT": StorageError,
    "LEAT_EAGAIN": StateError,
    "LEAT_ECLOSED": StateError,
    "LEAT_EFORK": ForkError,
    "LEAT_ETHREAD": BudgetError,
    "LEAT_EOVERFLOW": ArgumentError,
    "LEAT_ENOTSUP": UnsupportedError,
    "LEAT_EPERM": StorageError,
    "LEAT_ESTATE": StateError,
    "LEAT_EINTERNAL": InternalError,
    "LEAT_ENOFIELD": ArgumentError,
    "LEAT_ENOCLASS": ArgumentError,
    "LEAT_ECHANGED": StorageError,
}


def make(code: str, message: str, errno: int, key: str, sample: int, offset: int) -> Error:
    """Makes the exception for a failure that C reports; called by the extension."""
    error = _CLASSES.get(code, Error)(message)
    error.code = code
    error.key = key or None
    error.sample_id = sample if sample >= 0 else None
    error.offset = offset if offset >= 0 else None
    error.sys_errno = errno or None
    return error
