# SPDX-License-Identifier: Apache-2.0
"""Packs from datasets in Python: ``leat.from_dataset``."""

from __future__ import annotations

import itertools
import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any

import numpy as np

from ._errors import ArgumentError
from ._schema import is_image
from ._writer import Writer

_CHUNK = 16  # samples that a worker makes at a time
_dataset: Any = None  # of the worker process, inherited by fork


def from_dataset(dataset: Any, output: str | os.PathLike, fields: Mapping[str, object] | None = None, *,
                 keys: Callable[[int], str | bytes] | None = None,
                 classes: Mapping[str, Sequence[str]] | None = None, workers: int = 0,
                 force: bool = False, progress: Callable[[int, int], None] | None = None,
                 **options: Any) -> dict[str, int]:
    """Packs a dataset of Python objects: anything with ``len`` and ``[i]``, or any iterable.

    >>> leat.from_dataset(torchvision.datasets.CIFAR10("data"), "cifar.leat", workers=4)
    >>> leat.from_dataset(({"x": row, "label": y} for row, y in rows), "rows.leat")

    Samples are dicts, or sequences in the order of `fields`; without `fields` a pair of an image and a
    number has the fields ``image`` and ``label``. The order is the dataset's, for any number of workers.

    An ImageFolder (``samples``, ``classes`` and ``root``) without transforms is packed from its files: the
    images are the files byte for byte, keys are paths below the root. Images that a dataset hands out as
    PIL images or arrays are stored as pixels; ``leat.pack(output, other, quality=90)`` makes JPEGs of them.

    Parameters
        fields: name to type of each field, as for ``leat.Writer``; left out, the first sample decides
        keys: from a sample's number to its key; left out, the number is the key
        classes: names of an int field's values: ``{"label": ["cat", "dog"]}``
        workers: processes that make samples; needs ``len`` and ``[i]``. 0 = this process
        force: replace a pack of that name, finished or not
        progress: called with (done, total) after each sample; total 0 is unknown
        options: further arguments of ``leat.Writer``: page_bytes, shard_bytes, provenance, resume, sync
    """
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 0:
        raise ArgumentError(f"workers: {workers!r} is not a number of processes")
    if _is_image_folder(dataset):
        root = os.fspath(dataset.root)
        paths = [path for path, _ in dataset.samples]
        keys = keys or (lambda i: os.path.relpath(paths[i], root))
        classes = classes or {"label": list(dataset.classes)}
        fields = fields or {"image": "image", "label": int}
        dataset = dataset.samples
    indexed = hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")
    if workers > 0 and not indexed:
        raise ArgumentError("workers: an iterable has one reader; give a dataset with len() and [i]")
    total = len(dataset) if indexed else 0
    with Writer(output, fields, classes=classes, replace=force, **options) as w:
        samples = _made(dataset, w.resumed, workers) if indexed else \
            itertools.islice(_each(dataset), w.resumed, None)
        for sample in samples:
            if w.fields or isinstance(sample, Mapping):
                row = sample
            else:
                row = _named(sample)
            w.append(row, key=None if keys is None else keys(len(w)))
            if progress is not None:
                progress(len(w), total)
        return w.finish()


def _is_image_folder(dataset: Any) -> bool:
    return all(hasattr(dataset, name) for name in ("samples", "classes", "root", "loader")) and \
        getattr(dataset, "transform", None) is None and getattr(dataset, "target_transform", None) is None


def _named(sample: Any) -> dict[str, object]:
    if isinstance(sample, Sequence) and len(sample) == 2 and is_image(sample[0]):
        return {"image": sample[0], "label": sample[1]}
    raise ArgumentError("samples that are not dicts need fields={name: type, ...} in their order")


def _each(dataset: Iterable[Any]) -> Iterator[Any]:
    yield from dataset


# ---- workers -------------------------------------------------------------------------------------


def _plain(value: Any) -> Any:
    """What goes to another process cheaply: arrays instead of tensors and pictures."""
    if type(value).__module__.partition(".")[0] == "torch" and str(getattr(value, "dtype", "")) != "torch.bfloat16":
        return np.asarray(value)
    return value


def _chunk(first: int, last: int) -> list[Any]:
    chunk = []
    for i in range(first, last):
        sample = _dataset[i]
        if isinstance(sample, Mapping):
            chunk.append({name: _plain(value) for name, value in sample.items()})
        else:
            chunk.append([_plain(value) for value in sample])
    return chunk


def _made(dataset: Any, first: int, workers: int) -> Iterator[Any]:
    """dataset[first:], in order; a few chunks ahead of whoever takes them."""
    total = len(dataset)
    if workers == 0:
        yield from (dataset[i] for i in range(first, total))
        return
    global _dataset
    _dataset = dataset  # children get it by fork: nothing needs to be picklable
    waiting: deque[Future] = deque()
    starts = iter(range(first, total, _CHUNK))
    pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("fork"))
    try:
        for start in itertools.islice(starts, 2 * workers):
            waiting.append(pool.submit(_chunk, start, min(start + _CHUNK, total)))
        while waiting:
            chunk = waiting.popleft().result()
            for start in itertools.islice(starts, 1):
                waiting.append(pool.submit(_chunk, start, min(start + _CHUNK, total)))
            yield from chunk
    finally:
        _dataset = None
        pool.shutdown(cancel_futures=True)
