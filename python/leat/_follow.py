# SPDX-License-Identifier: Apache-2.0
"""Fields that follow the geometry of an image: their roles as text."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import _check, ops
from ._errors import ArgumentError, shown

Role = str | ops.Op

# Options of `leat load` and arguments of other loaders that are set through `image` in Python
IMAGE_OPTIONS = ("ops", "size", "crop", "dtype", "flip", "transforms", "pipeline")

_ROLES = ("Mask", "Boxes", "Labels", "Keypoints")


def roles_text(follow: Any, roles: Mapping[str, Role], owner: str, path: str, fields: Sequence[str],
               arguments: Iterable[str]) -> str | None:
    """Returns the roles as text for C; None for none. `arguments` are the arguments of `owner`, for hints."""
    if follow is None and not roles:
        return None
    if follow is not None and not isinstance(follow, Mapping):
        follow = _check.text("follow", follow)
    for name in roles:
        if name not in fields:
            known = [*arguments, *fields]
            near = [k for k in known if k.startswith(f"{name}_")] or difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            if name in IMAGE_OPTIONS:
                hint = "; ops of an image are given by its field: image=[leat.ops.RandomResizedCrop(224), …]"
            raise TypeError(f"{owner} has no argument {name!r}, and {path} no such field{hint}")
    parts = [follow] if isinstance(follow, str) else []
    for name, role in [*(follow.items() if isinstance(follow, Mapping) else ()), *roles.items()]:
        if isinstance(role, type) or not isinstance(role, (str, ops.Op)):
            raise ArgumentError(f'{name}: {shown(role)} is neither "follow" nor one of leat.ops.Mask, Boxes, '
                                "Labels and Keypoints")
        parts.append(f"{_quoted(_check.text('follow', name))} = {role}")
    return _check.text("follow", "; ".join(parts))


def refuse_roles(arguments: Mapping[str, Any]) -> None:
    """Fails for an argument that has the role of a field of the same name, such as ``label="follow"``."""
    for name, value in arguments.items():
        op = isinstance(value, ops.Op) and value.name in _ROLES
        if op or isinstance(value, str) and value == "follow":
            role = f"leat.ops.{value.name}(...)" if op else '"follow"'
            raise ArgumentError(f"{name}: is an argument of the loader; for a field of this name use "
                                f'follow={{"{name}": {role}}}')


def _quoted(name: str) -> str:
    return f'"{name}"' if "'" in name else f"'{name}'"
