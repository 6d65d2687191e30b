# SPDX-License-Identifier: Apache-2.0
"""JSON of measurements, which any parser reads."""

from __future__ import annotations

import json
import math
from typing import Any


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def text(value: Any, indent: int | None = None) -> str:
    """Returns the JSON text. Numbers that are not finite become null: JSON has no NaN."""
    return json.dumps(_finite(value), indent=indent, allow_nan=False)
