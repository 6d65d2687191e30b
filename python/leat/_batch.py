# SPDX-License-Identifier: Apache-2.0
"""The batches that a loader yields."""

from __future__ import annotations

import json
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np


class Batch(tuple):
    """The fields of a batch, as a named tuple that also reads like a dict.

    ``image, label, sample_id = batch``, ``batch.label`` and ``batch["label"]`` are the same
    thing. Each loader has its own class with the names of its fields; this is their base.
    The memory stays valid and unchanged while any of its tensors is kept.

    For a type checker, say what a batch has and which loader yields it:

    >>> class Images(leat.Batch):
    ...     image: torch.Tensor
    ...     label: torch.Tensor
    >>> loader: leat.Loader[Images] = leat.Loader("train.leat", 64)
    """

    __slots__ = ()
    names: tuple[str, ...] = ()  #: names of the fields, as in the pack
    _fields: tuple[str, ...]
    _make: Callable[[Iterable[Any]], Batch]

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            try:
                return tuple.__getitem__(self, self.names.index(key))
            except ValueError:
                raise KeyError(f"the batch has no field {key!r} (it has {', '.join(self.names)})") from None
        return tuple.__getitem__(self, key)

    def __getattr__(self, name: str) -> Any:  # only called for names that are not attributes
        if name in self.names:  # for getattr(): not an identifier
            return self[name]
        raise AttributeError(f"the batch has no field {name!r} (it has {', '.join(self.names)})",
                             name=name, obj=self)

    def keys(self) -> tuple[str, ...]:
        return self.names

    def items(self) -> Iterator[tuple[str, Any]]:
        return zip(self.names, self)

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self.names else default

    def _asdict(self) -> dict[str, Any]:
        return dict(zip(self.names, self))

    def _replace(self, **values: Any) -> Batch:
        unknown = next((name for name in values if name not in self.names), None)
        if unknown is not None:
            raise ValueError(f"the batch has no field {unknown!r} (it has {', '.join(self.names)})")
        return self._make(values.get(name, old) for name, old in self.items())

    def asdict(self) -> dict[str, Any]:
        """Returns a plain dict, as Hugging Face's Trainer needs it."""
        return dict(zip(self.names, self))

    def __reduce__(self):
        return _rebuild, (self.names, tuple(self))


def _rebuild(names: tuple[str, ...], values: tuple[Any, ...]) -> Batch:
    return batch_class(names)._make(values)


@lru_cache(maxsize=64)
def batch_class(names: tuple[str, ...]) -> type[Batch]:
    """Makes the class of batches with these fields. Names that are not identifiers also get positional attributes (`_3`)."""
    plain = namedtuple("Batch", names, rename=True)  # type: ignore[misc]
    made = type("Batch", (Batch, plain), {"__slots__": (), "names": names, "_fields": names, "__module__": "leat",
                                          "__getitem__": Batch.__getitem__})
    return made


class Ragged:
    """Values of different length, one per sample: bytes, text, JSON or ragged arrays.

    ``values`` holds the elements of all samples in sequence. ``offsets`` (one more than samples) says where each sample
    begins. Both are tensors of the user's framework; ``ragged[i]`` is one value.
    """

    __slots__ = ("type", "values", "offsets", "shapes", "_bounds", "_elements", "_shapes")

    def __init__(self, kind: str, values: Any, offsets: Any, shapes: Any,
                 raw: tuple[np.ndarray, np.ndarray, np.ndarray | None]) -> None:
        self.type = kind
        self.values = values
        self.offsets = offsets
        self.shapes = shapes
        self._elements, self._bounds, self._shapes = raw

    def __len__(self) -> int:
        return max(len(self._bounds) - 1, 0)

    def __getitem__(self, index: int) -> Any:
        i = range(len(self))[index]
        first, end = int(self._bounds[i]), int(self._bounds[i + 1])
        if self.type == "ragged":
            assert self._shapes is not None
            return self.values[first:end].reshape(tuple(int(n) for n in self._shapes[i]))
        data = self._elements[first:end].tobytes()
        if self.type == "text":
            return data.decode("utf-8")
        if self.type == "json":
            return json.loads(data) if data else None
        return data

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def tolist(self) -> list[Any]:
        return list(self)

    def __repr__(self) -> str:
        return f"leat.Ragged({self.type}, {len(self)} values)"
