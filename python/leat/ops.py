# SPDX-License-Identifier: Apache-2.0
"""Augmentations, one class each: ``leat.ops.RandomResizedCrop(224)``.

The classes are made from the table of ops in the C library: names, order and defaults of
parameters, ranges and help are written there once. An op holds its parameters and writes itself
as text; the pixels are made by the C workers.

>>> str(RandomHorizontalFlip(p=0.3))
'RandomHorizontalFlip(p=0.3)'
"""

from __future__ import annotations

import difflib
import inspect
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from . import _check, _leat
from ._errors import ArgumentError, shown

_DTYPE_NAMES = {"uint8": "u8", "uint16": "u16", "float16": "f16", "half": "f16", "bfloat16": "bf16",
                "float32": "f32", "float": "f32"}
_FORMATS = {"channels_first": "nchw", "channels_last": "nhwc"}


class _Param:
    """One declared parameter: how to check a value and write it as text."""

    def __init__(self, row: tuple) -> None:
        (self.name, self.kind, self.default, choices, self.min, self.max, self.arity,
         self.help) = row
        self.choices = choices.split("|") if choices else []

    def format(self, owner: str, value: object) -> str:
        where = f"{owner}.{self.name}"
        if self.kind == "choice":
            return self._choice(where, value)
        if self.kind == "flag":
            value = _plain(value)
            if not isinstance(value, (bool, int)) or value not in (0, 1):
                raise ArgumentError(f"{where}: {shown(value)} is neither True nor False")
            return "true" if value else "false"
        if self.kind in ("floats", "ints"):
            value = _plain(value)
            several = isinstance(value, Sequence) and not isinstance(value, (str, bytes))
            items = list(value) if several else [value]
            if self.arity and len(items) != self.arity:
                raise ArgumentError(f"{where}: {self.arity} numbers are expected, not {len(items)}")
            numbers = [self._number(where, item) for item in items]
            return numbers[0] if len(numbers) == 1 else "(" + ", ".join(numbers) + ")"
        if self.kind in ("int", "float"):
            return self._number(where, value)
        if self.kind == "ops":
            return f"[{_join(where, value)}]"
        return repr(str(value))

    def _number(self, where: str, value: object) -> str:
        value = _plain(value)
        whole = self.kind in ("int", "ints")
        try:
            if isinstance(value, (bool, str, bytes)):
                raise TypeError
            number = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise ArgumentError(f"{where}: {shown(value)} is not a number") from None
        if math.isnan(number) or (whole and not number.is_integer()):
            raise ArgumentError(f"{where}: {shown(value)} is not a {'whole ' * whole}number")
        if self.min is not None and not self.min <= number <= self.max:
            raise ArgumentError(f"{where}: {shown(value)} is out of range ({self.min:.16g} to {self.max:.16g})")
        return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)

    def _choice(self, where: str, value: object) -> str:
        if isinstance(value, type):  # numpy.float16
            word = value.__name__
        else:  # "f16", "float16", torch.float16, numpy.dtype("float16"), torch.channels_last
            word = str(getattr(value, "value", value)).removeprefix("torch.")
        word = word.lower()
        for candidate in (word, _DTYPE_NAMES.get(word), _FORMATS.get(word)):
            if candidate in self.choices:
                return candidate
        raise ArgumentError(f"{where}: {shown(value)} is not one of {', '.join(self.choices)}")

    def signature(self) -> inspect.Parameter:
        default = inspect.Parameter.empty if self.default is None else _default(self)
        return inspect.Parameter(self.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)

    def doc(self) -> str:
        limits = f" ({self.min:.16g} to {self.max:.16g})" if self.min is not None and not self.choices else ""
        words = f" ({', '.join(self.choices)})" if self.choices else ""
        given = "" if self.default is None else f"; default {self.default or 'False'}"
        return f"    {self.name}: {self.help}{limits}{words}{given}"


def _plain(value: Any) -> Any:
    """Converts scalars, arrays and tensors to Python's own numbers and lists."""
    return value.tolist() if hasattr(value, "tolist") else value


def _default(param: _Param) -> object:
    text = param.default
    if param.kind == "flag":
        return text in ("true", "1", "yes", "on")
    if param.kind == "int":
        return int(text)
    if param.kind == "float":
        return float(text)
    if param.kind in ("floats", "ints"):
        numbers = tuple(float(part) for part in text.strip("()").split(",") if part.strip())
        numbers = tuple(int(n) if n == int(n) else n for n in numbers)
        return numbers[0] if len(numbers) == 1 else numbers
    return text


class Op:
    """An augmentation with its parameters. Immutable; two ops are equal when they do the same."""

    name: str = ""
    _table: tuple[_Param, ...] = ()
    __slots__ = ("params", "text")

    def __init__(self, *args: object, **kwargs: object) -> None:
        try:
            bound = self.__signature__.bind(*args, **kwargs)  # type: ignore[attr-defined]
        except TypeError as error:
            raise TypeError(self._explain(kwargs, str(error))) from None
        parts = []
        for param in self._table:
            if param.name in bound.arguments:
                parts.append(f"{param.name}={param.format(self.name, bound.arguments[param.name])}")
        object.__setattr__(self, "text", f"{self.name}({', '.join(parts)})")
        bound.apply_defaults()
        object.__setattr__(self, "params", dict(bound.arguments))

    @classmethod
    def _explain(cls, kwargs: dict[str, object], why: str) -> str:
        known = [param.name for param in cls._table]
        for name in kwargs:
            if name not in known:
                near = difflib.get_close_matches(name, known, 1)
                hint = f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(known) or 'none'}"
                return f"{cls.name} has no parameter {name!r}{hint}"
        return f"{cls.name}: {why}"

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{self.name} cannot be changed: make a new one")

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Op) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __reduce__(self):
        return _rebuild, (self.name, self.params)


def _rebuild(name: str, params: dict[str, object]) -> Op:
    return globals()[name](**params)


def _make(name: str, help_text: str, params: Sequence[tuple]) -> type[Op]:
    table = tuple(_Param(row) for row in params)
    doc = help_text[:1].upper() + help_text[1:] + "."
    if table:
        doc += "\n\nParameters\n" + "\n".join(param.doc() for param in table)
    return type(name, (Op,), {
        "__doc__": doc,
        "__module__": __name__,
        "__slots__": (),
        "__signature__": inspect.Signature([param.signature() for param in table]),
        "name": name,
        "_table": table,
    })


def _join(where: str, ops: object) -> str:
    if isinstance(ops, (str, Op)):
        return _check.text(where, str(ops))
    if not isinstance(ops, Sequence) or isinstance(ops, bytes):
        raise ArgumentError(f"{where}: {shown(ops)} is not a pipeline")
    for part in ops:
        if not isinstance(part, (str, Op)):
            hint = f"; did you mean {part.__name__}()?" if isinstance(part, type) else ""
            raise ArgumentError(f"{where}: {shown(part)} is not an op of leat.ops{hint}")
    return _check.text(where, "; ".join(str(part) for part in ops))


def text(ops: str | Op | Sequence[str | Op]) -> str:
    """Returns a pipeline as text, from an op, a list of ops, or text."""
    return _join("image", ops)


def laid_out(text: str, channels_last: bool) -> str:
    """Returns the pipeline with the layout that channels_last means."""
    if not channels_last:
        return text
    if re.search(r"\bToLayout\b", text):
        raise ArgumentError("channels_last has no effect: the pipeline has ToLayout; give one of them")
    return text + "; ToLayout(nhwc)"


def view(item: tuple[Any, Any]) -> tuple[str, str | None, str]:
    """Returns (output name, field or None, pipeline as text) of one entry of a dict of images."""
    name, row = item
    pair = isinstance(row, (tuple, list)) and len(row) == 2 and (row[0] is None or isinstance(row[0], str))
    if not pair:
        raise ArgumentError(f"image: {shown(row)} is not a pair of a field and a pipeline: a dict is "
                            "{name: (field, pipeline)}, and a single pipeline needs no dict")
    field, pipeline = row
    return _check.text("image", name), None if field is None else _check.text("image", field), text(pipeline)


_CLASSES = {name: _make(name, help_text, params) for name, help_text, _kind, params in _leat.ops()}
globals().update(_CLASSES)
__all__ = ["Op", "text", "names", "view", *_CLASSES]


# Transforms of torchvision that are another op of leat, or have none.
_TORCHVISION = {
    "ToTensor": 'use ToDtype("float32"); batches are tensors already',
    "PILToTensor": "leave it out; batches are tensors already",
    "ToImage": "leave it out; batches are tensors already",
    "ConvertImageDtype": 'use ToDtype("float32")',
    "Compose": "give a list of ops",
}


def __getattr__(name: str) -> object:
    if name in _TORCHVISION:
        raise AttributeError(f"there is no op {name!r}: {_TORCHVISION[name]}")
    near = difflib.get_close_matches(name, _CLASSES, 1)
    hint = f"; did you mean {near[0]}?" if near and not name.startswith("_") else ""
    raise AttributeError(f"there is no op {name!r}{hint}")


def names() -> Iterator[str]:
    """Names of all ops."""
    return iter(_CLASSES)
