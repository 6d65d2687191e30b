# SPDX-License-Identifier: Apache-2.0
"""Where the workers of a PyTorch DataLoader spend their time, and what more of them would bring.

The workers are other processes: from outside one only sees that they run or wait. So a few samples are
made once more in this process, as a worker makes them, and watched:

- waiting (time on the clock that is not CPU time) is fetching,
- CPU time is split by looking at the stack every millisecond: decoding, augmentation, other Python code,
- then the samples are collated, which is collate time whether it runs or waits, and the batch is pickled as it
  would be for the trip to the trainer.

Whether more workers help is tried: the same DataLoader is made again with more of them and run for a few seconds.
What cannot be seen is left out, and the verdict then says "worker time".
"""

from __future__ import annotations

import linecache
import re
import sys
import threading
import time
import warnings
from typing import Any

_LOOK_S = 0.001
_LEAST_LOOKS = 20
_SAMPLES = 1024  # at most
# Frames are read from the innermost out; the first that says something counts.
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
    work = _work_s() - work  # before the clock, so that it is part of the time that passed
    return row, time.perf_counter() - begin, work


def split(loader: Any, seconds: float = 1.0) -> dict[str, float] | None:
    """Shares of the time in which a worker makes a batch, as facts of the doctor, and that time (`make_ms`, not a
    fact); None when they cannot be seen: the loader has no samples that can be asked for one by one, or one of them raises."""
    dataset, collate = getattr(loader, "dataset", None), getattr(loader, "collate_fn", None)
    if dataset is None or collate is None or not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
        return None
    from ._diagnose import _work_s

    batch_size = getattr(loader, "batch_size", None) or 16
    stacks, samples, wall, cpu = _Stacks(), [], 0.0, 0.0
    switch = sys.getswitchinterval()
    sys.setswitchinterval(_LOOK_S)  # so that the stack is seen while Python code runs
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
            if now > until or (made >= batch_size and now > begin + seconds / 4):
                break
        wall, cpu = wall * batch_size / made, cpu * batch_size / made
        scale = batch_size / len(samples)
        begin, work = time.perf_counter(), _work_s()
        batch = collate(samples)
        work = _work_s() - work
        collated = (time.perf_counter() - begin) * scale
        idle = max(0.0, collated - work * scale)
        begin = time.perf_counter()
        if getattr(loader, "num_workers", 0) > 0:
            _pickle(batch)
        moved = (time.perf_counter() - begin) * scale
    except Exception:  # user code in another place than it was written for: nothing can be said
        return None
    finally:
        sys.setswitchinterval(switch)
        stacks.stop()
    made_ms = {"make_ms": 1e3 * (wall + collated + moved)}
    return made_ms | _shares(wall, cpu, collated, moved, stacks.counts, batch_size, idle)


def _shares(wall: float, cpu: float, collated: float, moved: float, counts: dict[str, int],
            samples: float, idle: float = 0.0) -> dict[str, float]:
    """`idle` is the part of `collated` that is not CPU time."""
    total = max(wall + collated + moved, 1e-9)
    facts = {"worker_fetch": (wall - cpu) / total, "worker_collate": collated / total,
             "collate_wait": idle / total,
             "worker_transfer": moved / total, "fetch_ms": 1e3 * (wall - cpu) / max(samples, 1)}
    looks = sum(counts.values())
    if looks >= _LEAST_LOOKS:
        for kind, seen in counts.items():
            facts[f"worker_{kind}"] = cpu / total * seen / looks
    return facts


def try_workers(loader: Any, workers: int, seconds: float) -> float | None:
    """Samples per second of the same DataLoader with this many workers, its batches unused; None
    when there is no such loader."""
    try:
        from torch.utils.data import DataLoader
    except ImportError:
        return None
    if type(loader) is not DataLoader or loader.batch_sampler is None:
        return None
    stream: Any = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that these are more workers than CPUs is meant
            again = DataLoader(loader.dataset, batch_sampler=loader.batch_sampler, num_workers=workers,
                               collate_fn=loader.collate_fn, timeout=60, worker_init_fn=loader.worker_init_fn,
                               multiprocessing_context=loader.multiprocessing_context)
            stream, samples, begin = iter(again), 0, 0.0
        until = time.monotonic() + seconds
        for number, batch in enumerate(stream):
            if number == 2 * workers:  # the first ones were made while the workers started
                begin = time.monotonic()
                until = begin + seconds
            elif number > 2 * workers:
                samples += _size(batch)
            if time.monotonic() > until:
                break
        passed = time.monotonic() - begin
        return samples / passed if begin and samples and passed > 0 else None
    except Exception:
        return None
    finally:
        del stream


def _size(batch: Any) -> int:
    from ._diagnose import _batch_size

    return _batch_size(batch) or 0
