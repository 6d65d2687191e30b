# SPDX-License-Identifier: Apache-2.0
"""Measures where the workers of a PyTorch DataLoader spend their time, and the rate with more workers.

The workers are other processes: from outside, only running and waiting can be told apart. So a few samples are made
again in this process, as a worker makes them, and measured:

- waiting (time on the clock that is not CPU time) is fetching,
- CPU time is split by looking at the stack every millisecond: decoding, augmentation, other Python code,
- then the samples are collated, which is collate time whether it runs or waits, and the batch is pickled as when it is
  sent to the trainer.

To find out whether more workers help, the same DataLoader is made again with more workers, and the loop (with its step)
runs with both, alternating. Facts that cannot be measured are left out, and the verdict then says "worker time".
"""

from __future__ import annotations

import linecache
import re
import statistics
import sys
import threading
import time
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._diagnose import _Limit

_LOOK_S = 0.001
_LEAST_LOOKS = 20
_SAMPLES = 1024  # at most
_ROUNDS = 3  # trials with more workers, and as many without
_LEAST_BATCHES = 4  # of a trial
# Frames are read from the innermost outwards; the first one that matches decides.
_DECODE_FILES = re.compile(r"/(PIL/\w*(ImageFile|ImagePlugin)|torchvision/io|turbojpeg|simplejpeg|imageio|av|decord|"
                           r"soundfile|torchaudio|nibabel|pydicom|tifffile)[/.\w]*")
_AUGMENT_FILES = re.compile(r"/(PIL/Image\w*|torchvision/transforms|albumentations|kornia|imgaug|scipy/ndimage|"
                            r"skimage)[/.\w]*")
# C functions have no frame: the line that calls them is read instead.
_DECODE_LINE = re.compile(r"\b(imread|imdecode|decode_jpeg|decode_image|read_image|decode_png)\s*\(")
_AUGMENT_LINE = re.compile(r"\b(cv2\.\w+|resize|rotate|warpAffine|GaussianBlur|flip|normalize|transform\w*)\s*\(")


def _kind(frame: Any) -> str:
    """Returns the purpose of the code that runs now."""
    while frame is not None:
        name = frame.f_code.co_filename
        if _DECODE_FILES.search(name):
            return "decode"
        if _AUGMENT_FILES.search(name):
            return "augment"
        line = linecache.getline(name, frame.f_lineno)
        if _DECODE_LINE.search(line):
            return "decode"
        if _AUGMENT_LINE.search(line):
            return "augment"
        if frame.f_code.co_name == "__getitem__":
            break
        frame = frame.f_back
    return "python"


class _Stacks(threading.Thread):
    """Samples what the thread that made it is doing, while it is on."""

    def __init__(self) -> None:
        super().__init__(name="leat-stacks", daemon=True)
        self.thread = threading.get_ident()
        self.counts = {"decode": 0, "augment": 0, "python": 0}
        self.on = False
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(_LOOK_S):
            frame = sys._current_frames().get(self.thread)
            if self.on and frame is not None:
                self.counts[_kind(frame)] += 1

    def stop(self) -> None:
        self._ended.set()
        self.join()


def _pickle(batch: Any) -> None:
    from multiprocessing.reduction import ForkingPickler

    ForkingPickler.dumps(batch)


def _indices(loader: Any, count: int) -> list[int]:
    size = len(loader.dataset)
    return [i * size // count for i in range(min(count, size))]


def _make(dataset: Any, index: int, stacks: _Stacks) -> tuple[Any, float, float]:
    """Makes one sample. Returns it, the time it took, and how much of that this thread ran or waited for a CPU."""
    from ._diagnose import _work_s

    begin, work = time.perf_counter(), _work_s()
    stacks.on = True
    row = dataset[index]
    stacks.on = False
    work = _work_s() - work  # read before the clock, so that this time is part of the measured time
    return row, time.perf_counter() - begin, work


def split(loader: Any, seconds: float, make_s: float, limit: _Limit) -> dict[str, float] | None:
    """Returns the shares of a worker's time per batch, as facts of the doctor, and that time (`make_ms`, not a fact).
    None when they cannot be measured: the loader has no samples with an index, a sample raises, or the rest of the time
    is too short for collate_fn, given that a batch takes up to `make_s`."""
    dataset, collate = getattr(loader, "dataset", None), getattr(loader, "collate_fn", None)
    if dataset is None or collate is None or not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
        return None
    from ._diagnose import _samples, _work_s

    single = getattr(loader, "batch_sampler", loader) is None  # batch_size=None: collate_fn gets each sample
    batch_size = 1 if single else getattr(loader, "batch_size", None) or 16
    stacks, samples, wall, cpu = _Stacks(), [], 0.0, 0.0
    switch = sys.getswitchinterval()
    sys.setswitchinterval(_LOOK_S)  # so that the stack can be read while Python code runs
    stacks.start()
    try:
        begin, until = time.monotonic(), time.monotonic() + seconds
        made = 0
        for index in _indices(loader, _SAMPLES):
            row, one, work = _make(dataset, index, stacks)
            made, wall, cpu = made + 1, wall + one, cpu + min(work, one)
            if len(samples) < batch_size:
                samples.append(row)
            now = time.monotonic()
            if now > until or (made >= batch_size and now > begin + seconds / 4) or not limit.fits(one):
                break
        wall, cpu = wall * batch_size / made, cpu * batch_size / made
        if not limit.fits((make_s - wall) * len(samples) / batch_size):
            limit.skip()
            return None
        scale = batch_size / len(samples)
        begin, work = time.perf_counter(), _work_s()
        batch = collate(samples[0] if single else samples)
        work = _work_s() - work
        collated = (time.perf_counter() - begin) * scale
        idle = max(0.0, collated - work * scale)
        begin = time.perf_counter()
        if getattr(loader, "num_workers", 0) > 0:
            _pickle(batch)
        moved = (time.perf_counter() - begin) * scale
    except Exception:  # the user's code does not work in this process: nothing can be measured
        return None
    finally:
        sys.setswitchinterval(switch)
        stacks.stop()
    made_ms = {"make_ms": 1e3 * (wall + collated + moved)}
    rows = _samples(batch, None) if single else batch_size  # counted as in the loop
    return made_ms | _shares(wall, cpu, collated, moved, stacks.counts, rows, idle)


def _shares(wall: float, cpu: float, collated: float, moved: float, counts: dict[str, int],
            samples: float, idle: float = 0.0) -> dict[str, float]:
    """Returns the shares as facts. `idle` is the part of `collated` that is not CPU time."""
    total = max(wall + collated + moved, 1e-9)
    facts = {"worker_fetch": (wall - cpu) / total, "worker_collate": collated / total,
             "collate_wait": idle / total,
             "worker_transfer": moved / total, "fetch_ms": 1e3 * (wall - cpu) / max(samples, 1)}
    looks = sum(counts.values())
    if looks >= _LEAST_LOOKS:
        for kind, seen in counts.items():
            facts[f"worker_{kind}"] = cpu / total * seen / looks
    return facts


def compare_workers(loader: Any, workers: int, seconds: float, train: Callable[[Any], Any], limit: _Limit,
                    trial_s: float) -> dict[str, float] | None:
    """Runs the loop with this many workers, alternating with the unchanged loop, for `seconds` each. The step runs too,
    because it also needs a CPU: a loader alone would be too fast. A trial takes at most `trial_s`. Returns None when
    there is no such loader, or no time for two trials of each."""
    try:
        from torch.utils.data import DataLoader
    except ImportError:
        return None
    if type(loader) is not DataLoader:
        return None
    pairs: list[dict[int, float]] = []
    for number in range(_ROUNDS):
        pair: dict[int, float] = {}
        for count in sorted((loader.num_workers, workers), reverse=number % 2 == 1):
            if not limit.fits(trial_s):
                break
            rate = _trial(loader, count, seconds, train)
            if rate is None:
                return None
            pair[count] = rate
        if len(pair) < 2:
            break
        pairs.append(pair)
    if len(pairs) < 2:  # one pair does not show the noise
        limit.skip()
        return None
    more, now = [pair[workers] for pair in pairs], [pair[loader.num_workers] for pair in pairs]
    return {"more_workers": float(workers), "more_workers_rate": statistics.median(more),
            "more_workers_gain": statistics.median(a / b for a, b in zip(more, now)),
            "more_workers_least": min(more) / max(now)}


def _again(loader: Any, workers: int) -> Any:
    from torch.utils.data import DataLoader, IterableDataset

    only = {"prefetch_factor": loader.prefetch_factor, "persistent_workers": loader.persistent_workers,
            "timeout": 60, "multiprocessing_context": loader.multiprocessing_context} if workers > 0 else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch warns of more workers than CPUs, which is intended here
        if isinstance(loader.dataset, IterableDataset):  # has no sampler
            order = {"batch_size": loader.batch_size, "drop_last": loader.drop_last}
        elif loader.batch_sampler is not None:
            order = {"batch_sampler": loader.batch_sampler}
        else:
            order = {"batch_size": None, "sampler": loader.sampler}
        return DataLoader(loader.dataset, **order, num_workers=workers, collate_fn=loader.collate_fn,
                          worker_init_fn=loader.worker_init_fn, **only)


def _trial(loader: Any, workers: int, seconds: float, train: Callable[[Any], Any]) -> float | None:
    """Returns the samples per second of the loop with this many workers; None when it cannot be run or has too few
    batches. Starts of epochs count, except the first and the batches made during it."""
    from ._diagnose import _declared, _samples

    stream: Any = None
    declared = _declared(loader)
    least = max(_LEAST_BATCHES, workers)
    number, samples, counted, first, begin = 0, 0, 0, 0.0, 0.0
    try:
        again, more = _again(loader, workers), True
        while more:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                stream, more = iter(again), False
            for batch in stream:
                train(batch)
                number, more, now = number + 1, True, time.monotonic()
                if number == 1:
                    first = now
                if begin:
                    samples, counted = samples + _samples(batch, declared), counted + 1
                elif number > 2 * workers or now > first + seconds:
                    begin = now
                if begin and now > begin + (seconds if counted >= least else 3 * seconds):
                    more = False
                    break
        return samples / (now - begin) if counted >= least and now > begin else None
    except Exception:  # the user's code does not work with other workers
        return None
    finally:
        end(stream)


def end(stream: Any) -> None:
    """Ends the worker processes of a DataLoader's iterator. PyTorch waits five seconds for each one that is making
    a batch, and then terminates it; here that takes a second for all of them."""
    workers, shut_down = getattr(stream, "_workers", None), getattr(stream, "_shutdown_workers", None)
    if not workers or shut_down is None:
        return
    from torch.utils.data import _utils

    before = _utils.MP_STATUS_CHECK_INTERVAL
    _utils.MP_STATUS_CHECK_INTERVAL = 1.0 / len(workers)
    try:
        shut_down()
    finally:
        _utils.MP_STATUS_CHECK_INTERVAL = before
