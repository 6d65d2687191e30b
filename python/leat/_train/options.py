# SPDX-License-Identifier: Apache-2.0
"""Options of ``leat.train`` and ``leat.embed``: the tables of the commands, read from C.

Flags, keys of a YAML file and Python arguments are the same names with the same defaults, ranges and
choices. A YAML file holds values only. The parser is that of ``leat select -c``; PyYAML is not needed.
"""

from __future__ import annotations

import difflib
import inspect
import math
import os
import re
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

from .. import _check, _leat
from .._errors import ArgumentError, NotFoundError, StorageError, reason, shown

_FRAME = frozenset(("help", "color", "json", "verbose", "anonymous", "ca_file"))


class Option(NamedTuple):
    """One row of a command's table."""

    name: str
    kind: str
    default: Any
    choices: tuple[str, ...]
    min: float | None
    max: float | None
    help: str

    def check(self, value: Any) -> Any:
        """Returns the value as the training loop takes it; raises an ArgumentError that names the option."""
        if value is None:
            return self.default
        if self.kind == "flag":
            if not isinstance(value, bool):
                raise ArgumentError(f"{self.name}: {value!r} is neither true nor false")
            return value
        if self.kind == "choice":
            word = ("on" if value else "off") if isinstance(value, bool) else str(value)
            if word not in self.choices:
                raise ArgumentError(f"{self.name}: {value!r} is not one of {', '.join(self.choices)}")
            return word
        if self.kind in ("int", "float", "bytes"):
            return self._number(value)
        if not isinstance(value, (str, os.PathLike)):
            raise ArgumentError(f"{self.name}: {value!r} is not text")
        return os.fspath(value)

    def _number(self, value: Any) -> int | float:
        if self.kind == "bytes" and isinstance(value, str):
            return _leat.parse_bytes(value)
        whole = self.kind != "float"
        if isinstance(value, bool) or not isinstance(value, (int, float)) and not hasattr(value, "__float__"):
            raise ArgumentError(f"{self.name}: {value!r} is not a number")
        try:
            number = float(value)
        except (TypeError, ValueError, RuntimeError):  # an array of several
            raise ArgumentError(f"{self.name}: {shown(value)} is not a number") from None
        if math.isnan(number) or whole and not number.is_integer():
            raise ArgumentError(f"{self.name}: {value!r} is not a {'whole ' * whole}number")
        if self.min is not None and not self.min <= number <= self.max:
            raise ArgumentError(f"{self.name}: {value!r} is out of range ({self.min:.16g} to {self.max:.16g})")
        return int(number) if whole else number


def _option(row: tuple) -> Option:
    name, kind, default, choices, low, high, help_text = row
    words = tuple(choices.split("|")) if choices else ()
    made = Option(name, kind, None, words, low, high, help_text)
    if kind == "flag":
        return made._replace(default=default in ("yes", "true", "1"))
    if default is None:
        return made
    numbers = {"int": int, "float": float, "bytes": _leat.parse_bytes}
    return made._replace(default=numbers.get(kind, str)(default))


def table(command: str) -> dict[str, Option]:
    """Returns the options of a command by name."""
    made = (_option(row) for row in _leat.options(command))
    return {option.name: option for option in made if option.name not in _FRAME}


def signature(command: str, *positional: str) -> inspect.Signature:
    """Returns the signature that ``help()`` shows for the function of a command."""
    first = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in positional]
    rest = [inspect.Parameter(o.name, inspect.Parameter.KEYWORD_ONLY, default=o.default)
            for o in table(command).values()]
    return inspect.Signature(first + rest)


def document(command: str) -> str:
    """Returns the table as the lines of a docstring."""
    lines = []
    for o in table(command).values():
        words = f" ({', '.join(o.choices)})" if o.choices else ""
        lines.append(f"    {o.name}: {o.help}{words}; default {o.default!r}")
    return "\n".join(lines)


_WORDS: dict[str, Any] = {"": None, "~": None, "null": None, "true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9_]{0,400})|0x[0-9a-fA-F]{1,400}|0o?[0-7]{1,400}", re.ASCII)
_REAL = re.compile(r"[-+]?([0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)([eE][-+]?[0-9]+)?", re.ASCII)
_SPECIAL = re.compile(r"[-+]?\.inf|\.nan", re.IGNORECASE | re.ASCII)


def _plain(text: str) -> Any:
    """Returns the value of a YAML scalar without quotes: null, a bool, a number, or text."""
    if text in (text.lower(), text.upper(), text.capitalize()) and text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _WHOLE.fullmatch(text):
        digits = text.replace("_", "")
        octal = len(digits) > 1 and digits[0] == "0" and digits[1] in "01234567"
        return int(digits, 8 if octal else 0)
    if _REAL.fullmatch(text):
        return float(text.replace("_", ""))
    return float(text.replace(".", "", 1)) if _SPECIAL.fullmatch(text) else text


def read_config(path: str) -> dict[str, Any]:
    """Reads the options in a YAML (or JSON) file. Nothing in it is run."""
    try:
        with open(path, "rb") as file:
            text = file.read()
    except FileNotFoundError:
        raise NotFoundError(f"{path}: no such file") from None
    except OSError as error:
        raise StorageError(f"{path}: {reason(error)}") from None
    found = _leat.yaml(text, os.fsencode(path), _plain)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise ArgumentError(f"{path}: a list of 'name: value' lines is expected")
    made: dict[str, Any] = {}
    for key, value in found.items():
        name = key.replace("-", "_")
        if name in made:
            raise ArgumentError(f"{path}: '{name}' appears twice")
        made[name] = value
    return made


def resolve(command: str, given: Mapping[str, Any], base: Mapping[str, Any] | None = None) -> SimpleNamespace:
    """Returns all options: the given value, else that of the config file, else of ``base``, else the default."""
    known = table(command)
    layers: list[tuple[str, Mapping[str, Any]]] = [("", given)]
    if given.get("config") is not None:
        path = _check.path("config", given["config"])
        layers.append((f"{path}: ", read_config(path)))
    if base is not None:
        base = {name: value for name, value in base.items() if name in known}
        layers.append(("", base))
    values = {option.name: option.default for option in known.values()}
    chosen: set[str] = set()
    for where, layer in layers:
        for name, value in layer.items():
            if name not in known:
                near = difflib.get_close_matches(name, known, 1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise ArgumentError(f"{where}there is no option {name!r}{hint}")
            try:
                checked = known[name].check(value)
            except ArgumentError as error:
                raise ArgumentError(f"{where}{error}") from None
            except ValueError as error:
                raise ArgumentError(f"{where}{name}: {error}") from None
            if name not in chosen:
                if layer is base and isinstance(value, str) and value.startswith(("http://", "https://")) and "…" in value:
                    raise ArgumentError(f"{name}: {value}: user, password and query of a URL are not stored; give `{name}` again")
                values[name] = checked
                chosen.add(name)
    made = SimpleNamespace(**values)
    named = layers[:-1] if base is not None else layers  # not those of the run that is resumed
    made.given = frozenset(name for _, layer in named for name in layer if values[name] != known[name].default)
    return made
