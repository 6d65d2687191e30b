# SPDX-License-Identifier: Apache-2.0
"""Converts tensors of the C library to tensors of the user's framework, without copying."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _leat
from ._errors import ArgumentError, shown

Converter = Callable[[_leat.Tensor], Any]


def bfloat16(bits: np.ndarray) -> np.ndarray:
    """Views uint16 as bfloat16 where the package ml_dtypes is installed, else returns it unchanged."""
    try:
        import ml_dtypes
    except ImportError:
        return bits
    return bits.view(ml_dtypes.bfloat16)


_CPU = 1  # kDLCPU


def to_numpy(tensor: _leat.Tensor) -> np.ndarray:
    array = np.asarray(tensor)
    return bfloat16(array) if tensor.dtype == "bfloat16" else array


def _torch() -> Converter:
    try:
        import torch
    except ModuleNotFoundError as error:
        raise ImportError('as_="torch" needs PyTorch, which is not installed: pip install torch, or as_="numpy"',
                          name=error.name) from error

    from_dlpack = torch.from_dlpack
    return lambda tensor: from_dlpack(tensor)


def _jax() -> Converter:
    try:
        import jax
    except ModuleNotFoundError as error:
        raise ImportError('as_="jax" needs JAX, which is not installed: pip install jax, or as_="numpy"',
                          name=error.name) from error

    from_dlpack = jax.dlpack.from_dlpack
    enable_x64 = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64

    def convert(tensor: _leat.Tensor) -> Any:
        # without x64 JAX has no 64-bit numbers: labels become int32 as everywhere in JAX
        if tensor.dtype not in ("int64", "float64", "uint64") or jax.config.read("jax_enable_x64"):
            return from_dlpack(tensor)
        if tensor.__dlpack_device__()[0] == _CPU:
            return jax.numpy.asarray(np.asarray(tensor))
        with enable_x64(True):  # on the device, where NumPy has no arrays
            return from_dlpack(tensor).astype(tensor.dtype.replace("64", "32"))

    return convert


_MAKERS: dict[str, Callable[[], Converter]] = {
    "numpy": lambda: to_numpy,
    "torch": _torch,
    "jax": _jax,
    "dlpack": lambda: lambda tensor: tensor,
}


def converter(name: str) -> tuple[str, Converter]:
    """Returns the converter of a framework; "auto" is torch where it is installed, else NumPy."""
    if isinstance(name, str) and name == "auto":
        name = "torch" if importlib.util.find_spec("torch") is not None else "numpy"
    if not isinstance(name, str) or name not in _MAKERS:
        raise ArgumentError(f"as_: {shown(name)} is not one of auto, {', '.join(_MAKERS)}")
    return name, _MAKERS[name]()
