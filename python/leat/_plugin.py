# SPDX-License-Identifier: Apache-2.0
"""Custom augmentations, which run per sample inside the C workers, without the GIL.

A sample function is C: ``int fn(void *cookie, void *const *rows, uint32_t fields, uint64_t sample,
uint64_t epoch, uint64_t random)``. rows[i] points to field i of the sample in the batch, in
the order of ``loader.field_names``. Any result except 0 marks the sample as bad.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any, NamedTuple

from . import _check
from ._errors import ArgumentError, FormatError, NotFoundError, shown

_ABI = 1
_LEAST = 65536


class _Export(ctypes.Structure):
    _fields_ = [("abi", ctypes.c_uint32), ("reserved", ctypes.c_uint32), ("name", ctypes.c_char_p),
                ("help", ctypes.c_char_p), ("sample", ctypes.c_void_p), ("cookie", ctypes.c_void_p)]


class Plugin(NamedTuple):
    """A sample function of a shared object; give it to ``Loader(sample_fn=…)``."""

    name: str
    help: str
    path: str
    address: int
    cookie: int


def load_plugin(path: str | os.PathLike) -> Plugin:
    """Loads a shared object that exports ``leat_op`` (``leat_op_plugin`` of leat/loader.h).

    This runs the code in it. Plugins are loaded only here: no configuration file and no pack can name one.
    """
    path = os.path.abspath(_check.utf8_path("path", path))
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise NotFoundError(f"{path}: {error}") from None
    try:
        export = _Export.in_dll(library, "leat_op")
    except ValueError:
        raise FormatError(f"{path}: exports no leat_op") from None
    if export.abi != _ABI or not export.sample:
        raise FormatError(f"{path}: made for version {export.abi} of the interface, not {_ABI}")
    return Plugin((export.name or b"").decode(), (export.help or b"").decode(), path, export.sample,
                  export.cookie or 0)


def numba_signature() -> Any:
    """Returns the signature for ``@numba.cfunc(leat.numba_signature())``."""
    from numba import types

    return types.intc(types.voidptr, types.CPointer(types.voidptr), types.uint32, types.uint64,
                      types.uint64, types.uint64)


def _address(fn: Any, value: int) -> int:
    """Returns the address if it can be a function's: Linux maps nothing below 64 KiB (vm.mmap_min_addr)."""
    if not _LEAST <= value <= _check.U64:
        raise ArgumentError(f"sample_fn: {shown(fn)} is not the address of a function")
    return value


def resolve(fn: Any) -> tuple[int, int]:
    """Returns (address, cookie) of a plugin, a numba.cfunc, a ctypes function or an address."""
    if fn is None:
        return 0, 0
    if isinstance(fn, Plugin):
        return fn.address, fn.cookie
    if isinstance(fn, int) and not isinstance(fn, bool):
        return _address(fn, fn), 0
    if type(fn).__module__.partition(".")[0] == "numba" and isinstance(getattr(fn, "address", None), int):
        return _address(fn, fn.address), 0
    if isinstance(fn, ctypes._CFuncPtr):  # type: ignore[attr-defined]
        return _address(fn, ctypes.cast(fn, ctypes.c_void_p).value or 0), 0
    raise ArgumentError(f"sample_fn: {shown(fn)} is not a plugin, numba.cfunc, ctypes function or address; a Python "
                        "function over whole batches is given as transform=")
