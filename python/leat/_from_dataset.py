# SPDX-License-Identifier: Apache-2.0
"""Packs from datasets in Python: ``leat.from_dataset``."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import pickle
import signal
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import numpy as np

from . import _check
from ._errors import ArgumentError, DataError, shown
from ._schema import is_image
from ._writer import Writer

_WRITER_OPTIONS = {"page_bytes", "shard_bytes", "provenance", "resume", "sync"}
_CHUNK = 16  # samples that a worker makes at a time
# of a worker process
_dataset: Any = None  # inherited by fork
_making: Any = None
_place = 0


def from_dataset(dataset: Any, output: str | os.PathLike, fields: Mapping[str, object] | None = None, *,
                 keys: Callable[[int], str | bytes] | None = None,
                 classes: Mapping[str, Sequence[str]] | None = None, workers: int = 0, shuffle: int | None = None,
                 force: bool = False, progress: Callable[[int, int], None] | None = None,
                 **options: Any) -> dict[str, int]:
    """Packs a dataset of Python objects: anything with ``len`` and ``[i]``, or any iterable.

    >>> leat.from_dataset(torchvision.datasets.CIFAR10("data"), "cifar.leat", workers=4)
    >>> leat.from_dataset(({"x": row, "label": y} for row, y in rows), "rows.leat")

    Samples are dicts, or sequences in the order of `fields`; without `fields` a pair of an image and a
    number has the fields ``image`` and ``label``. Arrays of height x width x 1, 3 or 4 are images when they are
    uint8, or uint16 or float32 in a field called ``image``; all others are arrays of one shape. The order is the dataset's, for any number of workers.

    An ImageFolder (``samples``, ``classes`` and ``root``) without transforms is packed from its files: the
    images are the files byte for byte, keys are paths below the root. Images that a dataset hands out as
    PIL images or arrays are stored as pixels; ``leat.pack(output, other, quality=90)`` makes JPEGs of them.
    The names in ``dataset.classes`` are those of the field ``label``, as are those of the dataset of a torch ``Subset``.

    Parameters
        fields: name to type of each field, as for ``leat.Writer``; left out, the first sample decides
        keys: from a sample's number to its key; left out, the number is the key
        classes: names of an int field's values: ``{"label": ["cat", "dog"]}``; left out, those of the dataset; {} = none
        workers: processes that make samples; needs ``len`` and ``[i]``. 0 = this process
        shuffle: seed to shuffle the samples with; needs ``len`` and ``[i]``. Keys stay those of the dataset's order
        force: replace a pack of that name, finished or not
        progress: called with (done, total) after each sample; total 0 is unknown
        options: further arguments of ``leat.Writer``: page_bytes, shard_bytes, provenance, resume, sync
    """
    workers = _check.whole("workers", workers, 0, 4096)
    keys, progress = _check.called("keys", keys), _check.called("progress", progress)
    force = _check.flag("force", force)
    if isinstance(dataset, (str, bytes, Mapping)) or not (
            isinstance(dataset, Iterable) or hasattr(dataset, "__getitem__")):
        raise ArgumentError(f"dataset: {shown(dataset)} is not a dataset or an iterable of samples")
    unknown = options.keys() - _WRITER_OPTIONS
    if unknown:
        raise ArgumentError(f"{sorted(unknown)[0]}: leat.from_dataset has no such argument")
    if classes is None:
        classes = _classes(dataset, fields)
    if _is_image_folder(dataset):
        root = os.fspath(dataset.root)
        paths = [path for path, _ in dataset.samples]
        keys = keys or (lambda i: os.path.relpath(paths[i], root))
        fields = fields or {"image": "image", "label": int}
        dataset = dataset.samples
    indexed = hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")
    if workers > 0 and not indexed:
        raise ArgumentError("workers: an iterable has one reader; give a dataset with len() and [i]")
    total = len(dataset) if indexed else 0
    if shuffle is not None:
        if not indexed:
            raise ArgumentError("shuffle: an iterable has one order; give a dataset with len() and [i]")
        dataset = _Shuffled(dataset, _check.whole("shuffle", shuffle))
        order, named = dataset.order, keys or "{:08d}".format
        keys = lambda i: named(int(order[i]))  # noqa: E731
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
        if not w.fields:
            raise ArgumentError("dataset: it has no samples")
        return w.finish()


def _is_image_folder(dataset: Any) -> bool:
    return all(hasattr(dataset, name) for name in ("samples", "classes", "root", "loader")) and \
        getattr(dataset, "transform", None) is None and getattr(dataset, "target_transform", None) is None


def _classes(dataset: Any, fields: Mapping[str, object] | None) -> dict[str, list[str]] | None:
    """Returns the class names of the field ``label`` if the dataset has them, else None."""
    whole = dataset
    while not hasattr(whole, "classes") and hasattr(whole, "dataset") and hasattr(whole, "indices"):
        whole = whole.dataset  # of a torch Subset
    listed = getattr(whole, "classes", None)
    if not isinstance(listed, (list, tuple)) or len(listed) == 0 or getattr(whole, "target_transform", None) is not None or \
            not all(isinstance(name, (str, tuple)) for name in listed):
        return None
    if fields is not None:
        named = fields.get("label") in (int, "int")
    else:  # the first sample decides; a dataset of several tasks has no single label
        named = _is_image_folder(dataset) or hasattr(dataset, "__getitem__") and len(dataset) > 0 and \
            _is_labelled(_sample(dataset, 0))
    return {"label": _names(listed)} if named else None


def _is_labelled(sample: Any) -> bool:
    """True for samples with an int field ``label``: dicts, and pairs of an image and a number."""
    if isinstance(sample, Mapping):
        label = sample.get("label")
    else:
        label = sample[1] if isinstance(sample, Sequence) and len(sample) == 2 and is_image(sample[0]) else None
    return isinstance(label, (int, np.integer)) and not isinstance(label, bool)


def _names(classes: Iterable[Any]) -> list[str]:
    """Returns the names of a dataset's classes. Several names of one class are joined, equal names get a number."""
    names = [name if isinstance(name, str) else ", ".join(map(str, name)) for name in classes]
    often = Counter(names)
    return [name if often[name] == 1 else f"{name} ({i})" for i, name in enumerate(names)]


def _named(sample: Any) -> dict[str, object]:
    if isinstance(sample, Sequence) and len(sample) == 2 and is_image(sample[0]):
        return {"image": sample[0], "label": sample[1]}
    raise ArgumentError("samples that are not dicts need fields={name: type, ...} in their order")


def _each(dataset: Iterable[Any]) -> Iterator[Any]:
    yield from dataset


class _Shuffled:
    """A dataset in the order of hashes of its numbers: the same on every machine and with every version of NumPy."""

    def __init__(self, dataset: Any, seed: int) -> None:
        self.dataset = dataset
        hashed = np.arange(len(dataset), dtype=np.uint64) + np.uint64(seed * 0x9E3779B97F4A7C15 & _check.U64)
        for multiplier in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 1):
            hashed = (hashed ^ (hashed >> np.uint64(30))) * np.uint64(multiplier)
        self.order = np.argsort(hashed, kind="stable")

    def __len__(self) -> int:
        return len(self.order)


def _sample(dataset: Any, index: int) -> Any:
    """Returns dataset[index]; an exception names the sample."""
    if isinstance(dataset, _Shuffled):
        dataset, index = dataset.dataset, int(dataset.order[index])
    try:
        return dataset[index]
    except Exception as error:
        error.add_note(f"leat: dataset[{index}] raised this")
        raise


# ---- workers -------------------------------------------------------------------------------------


def _plain(value: Any) -> Any:
    """Returns a value that is cheap to send to another process: arrays instead of tensors and pictures."""
    if type(value).__module__.partition(".")[0] == "torch" and str(getattr(value, "dtype", "")) != "torch.bfloat16":
        return np.asarray(value)
    return value


def _begin(counter: Any, making: Any) -> None:
    """Starts a worker: takes a slot in `making`, which records what each worker does."""
    global _making, _place
    with counter.get_lock():
        _place = counter.value
        counter.value += 1
    _making = making
    making[2 * _place + 1] = os.getpid()


def _chunk(first: int, last: int) -> tuple[list[Any], Exception | None]:
    """Returns samples first to last, or those before one that raises, and its exception."""
    chunk: list[Any] = []
    for i in range(first, last):
        _making[2 * _place] = i + 1
        try:
            sample = _sample(_dataset, i)
            if isinstance(sample, Mapping):
                chunk.append({name: _plain(value) for name, value in sample.items()})
            elif isinstance(sample, (str, bytes)) or not isinstance(sample, Iterable):
                chunk.append(sample)  # the writer refuses the sample and names its number
            else:
                chunk.append([_plain(value) for value in sample])
            pickle.dumps(chunk[-1])
        except Exception as error:
            return chunk, _sendable(error, i)
    _making[2 * _place] = 0
    return chunk, None


def _sendable(error: Exception, index: int) -> Exception:
    """Returns the error itself if another process can read it, else its text."""
    try:
        if type(pickle.loads(pickle.dumps(error))) is type(error):
            return error
    except Exception:
        pass
    return DataError(f"sample {index}: {type(error).__name__}: {error}")


def _died(making: Sequence[int], children: Iterable[Any]) -> DataError:
    """Returns an error for a worker that died, with the sample it was making; the pool ends the others by SIGTERM."""
    codes = {child.pid: child.exitcode for child in children}
    busy = [(making[i] - 1, codes.get(making[i + 1])) for i in range(0, len(making), 2) if making[i] > 0]
    guilty = [(sample, code) for sample, code in busy if code not in (None, 0, -signal.SIGTERM)] or busy
    if len(guilty) != 1:
        where = "samples " + ", ".join(str(sample) for sample, _ in sorted(guilty)) + ": one of the processes that make them"
        return DataError(f"{where} died")
    sample, code = guilty[0]
    how = "" if code is None else f" by signal {-code}" if code < 0 else f" with exit code {code}"
    error = DataError(f"sample {sample}: the process that made it died{how}")
    error.sample_id = sample
    return error


def _made(dataset: Any, first: int, workers: int) -> Iterator[Any]:
    """Yields dataset[first:] in order, made a few chunks ahead of the consumer."""
    total = len(dataset)
    if workers == 0:
        yield from (_sample(dataset, i) for i in range(first, total))
        return
    global _dataset
    _dataset = dataset  # children inherit the dataset by fork: nothing needs to be picklable
    waiting: deque[Future] = deque()
    starts = iter(range(first, total, _CHUNK))
    context = multiprocessing.get_context("fork")
    making = context.Array("q", 2 * workers, lock=False)  # per worker: sample + 1, process
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_begin, initargs=(context.Value("q"), making))
    children: list[Any] = []
    try:
        for start in itertools.islice(starts, 2 * workers):
            waiting.append(pool.submit(_chunk, start, min(start + _CHUNK, total)))
        children = multiprocessing.active_children()
        while waiting:
            chunk, error = waiting.popleft().result()
            for start in itertools.islice(starts, 1):
                waiting.append(pool.submit(_chunk, start, min(start + _CHUNK, total)))
            yield from chunk
            if error is not None:
                raise error
    except BrokenProcessPool:
        pool.shutdown(cancel_futures=True)
        raise _died(making, children) from None
    finally:
        _dataset = None
        pool.shutdown(cancel_futures=True)
