# SPDX-License-Identifier: Apache-2.0
"""Finds the bottleneck of a training loop, whatever loads its data.

>>> report = leat.diagnose(torch_loader, step=train_step)
>>> print(report)            # the sentence, bars, evidence, remedies
>>> report.limit, report.lost
('cpu', 0.46)

Three questions, asked of any iterable of batches: how long does the loop wait for data (fetch and
prep), how long does it train (ingest), and how fast would it be with a loader that costs nothing.
The third is measured by replaying a few batches: no line of the loop needs to change.

The clocks are read in the trainer's thread. /proc says what the workers did meanwhile: running counts as preparing;
waiting for disks counts as fetching, and so does sleeping while the trainer waits. Waiting inside collate_fn is part of
preparing. Facts that cannot be measured stay unknown, and the verdict says so.
"""

from __future__ import annotations

import dataclasses
import glob
import json
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from . import _check, _leat, _workers
from ._errors import ArgumentError, shown

if TYPE_CHECKING:
    from ._loader import Loader

_JSON, _PAGE = 2, 0
_NOTHING = "INCOMPLETE: nothing was measured yet: take batches from the loader first"
_TICK = os.sysconf("SC_CLK_TCK")
# A stall is a step that waits this long, and 20 times as long as nine of ten others take. Of ten steps or fewer none
# stands out, and more than one in a hundred are what the loader usually does.
_STALL_S, _STALL_TIMES, _STALL_STEPS, _STALL_ONE_IN = 0.25, 20.0, 10, 100
_SHORTEST = 3.0  # factor on the time of reading the clocks: a shorter wait counts as none


# ---- the machine, from /proc ---------------------------------------------------------------------


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as f:
            return f.read()
    except OSError:
        return ""


@dataclasses.dataclass
class _Process:
    """The fields of /proc/PID/stat that matter here. Children that have ended count, too."""

    pid: int
    state: str
    cpu_s: float
    faults: int


def _process(pid: int) -> _Process | None:
    text = _read(f"/proc/{pid}/stat")
    end = text.rfind(")")
    if end < 0:
        return None
    part = text[end + 2:].split()
    return _Process(pid, part[0], sum(map(int, part[11:15])) / _TICK, int(part[9]) + int(part[10]))


def _children(pid: int) -> list[int]:
    """Returns the living descendants: the workers of a loader that uses processes."""
    found: list[int] = []
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        for child in map(int, _read(path).split()):
            found.append(child)
            found.extend(_children(child))
    return found


def _host_busy_s() -> float:
    """Returns the CPU time of all processes on the CPUs that this one may use."""
    allowed, total = os.sched_getaffinity(0), 0
    for line in _read("/proc/stat").splitlines():
        part = line.split()
        if part and part[0].startswith("cpu") and part[0][3:].isdigit() and int(part[0][3:]) in allowed:
            total += sum(int(part[i]) for i in (1, 2, 3, 6, 7, 8) if i < len(part))
    return total / _TICK


def _line_s(pids: list[int]) -> float:
    """Returns the time that threads of these processes waited for a CPU."""
    total = 0
    for pid in pids:
        for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
            part = _read(path).split()
            total += int(part[1]) if len(part) > 1 else 0
    return total / 1e9


def _work_s() -> float:
    """Returns the CPU time of this thread, and the time it waited for a CPU."""
    part = _read("/proc/thread-self/schedstat").split()
    return time.thread_time() + (int(part[1]) / 1e9 if len(part) > 1 else 0.0)


def _clocks_s() -> float:
    """Returns how long it takes to read the clocks around a wait."""
    times = []
    for _ in range(9):
        begin = time.perf_counter()
        _work_s(), _work_s()
        times.append(time.perf_counter() - begin)
    return _percentile(times, 0.5)


def _read_bytes(pids: list[int]) -> float | None:
    """Returns the bytes that these processes read from storage, not from the page cache."""
    total, seen = 0, False
    for pid in pids:
        for line in _read(f"/proc/{pid}/io").splitlines():
            if line.startswith("read_bytes:"):
                total, seen = total + int(line.split()[1]), True
    return float(total) if seen else None


class _Sampler(threading.Thread):
    """Samples the state of the workers every few milliseconds, separately for times when the trainer waits and works."""

    def __init__(self, workers: Iterable[int] = (), interval_s: float = 0.01) -> None:
        """`workers` are already running. Other processes that this process started earlier do not belong to the loader."""
        super().__init__(name="leat-diagnose", daemon=True)
        self.interval_s = interval_s
        self.others = set(_children(os.getpid())) - set(workers)
        self.waiting = False  # the trainer is inside next()
        self.looks = {True: [0, 0, 0], False: [0, 0, 0]}  # running, on a disk, asleep
        self.workers: set[int] = set()
        self._ended = threading.Event()

    def run(self) -> None:
        me, known, at = os.getpid(), [], 0.0
        while not self._ended.wait(self.interval_s):
            if time.monotonic() >= at:  # workers come and go with epochs
                known = [pid for pid in _children(me) if pid not in self.others]
                at = time.monotonic() + 0.25
                self.workers.update(known)
            row = self.looks[self.waiting]
            for pid in known:
                one = _process(pid)
                if one is not None:
                    row[0 if one.state == "R" else 1 if one.state == "D" else 2] += 1

    def stop(self) -> None:
        self._ended.set()
        self.join()


@dataclasses.dataclass
class _Look:
    wall_s: float
    cpu_s: float
    host_s: float
    line_s: float
    faults: int
    read_bytes: float | None
    periods: tuple[int, int] | None  #: periods of the CPU quota: all, and those in which it ran out


def _look() -> _Look:
    me = os.getpid()
    pids = [me, *_children(me)]
    rows = [p for p in map(_process, pids) if p is not None]
    return _Look(time.monotonic(), sum(p.cpu_s for p in rows), _host_busy_s(), _line_s(pids),
                 sum(p.faults for p in rows), _read_bytes(pids), _throttling())


# ---- the loop ------------------------------------------------------------------------------------


def _batch_size(batch: Any) -> int | None:
    """Returns the number of samples in a batch, by the first array in it."""
    while True:
        if hasattr(batch, "shape"):
            return int(batch.shape[0]) if len(batch.shape) else None
        if isinstance(batch, dict) and batch:
            batch = next(iter(batch.values()))
        elif isinstance(batch, (list, tuple)) and batch:
            if not hasattr(batch[0], "shape") and not isinstance(batch[0], (list, tuple, dict)):
                return len(batch)
            batch = batch[0]
        else:
            return None


def _declared(iterable: Any) -> int | None:
    """Returns the samples per batch of a DataLoader whose own collate_fn may return anything. None: ask each batch."""
    collate = getattr(iterable, "collate_fn", None)
    if not _is_dataloader(iterable) or getattr(collate, "__module__", "") == "torch.utils.data._utils.collate":
        return None
    size = getattr(iterable, "batch_size", None)
    return size if isinstance(size, int) and size > 0 else None


def _samples(batch: Any, declared: int | None) -> int:
    """Returns how many samples a batch counts as: the batch size of its DataLoader, else its rows, else 1."""
    return declared or _batch_size(batch) or 1


def _bytes(batch: Any) -> int:
    """Returns the bytes of the arrays of a batch, as far as known."""
    if isinstance(batch, dict):
        batch = list(batch.values())
    if isinstance(batch, (list, tuple)):
        return sum(map(_bytes, batch))
    return int(getattr(batch, "nbytes", 0))


def _percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@dataclasses.dataclass
class _Wait:
    """Further facts about the wait of one step."""

    at_s: float  #: when it began
    work_s: float  #: time in the wait that this thread ran or waited for a CPU
    looks: list[int]  #: samples of the state of the workers in the wait
    samples: int
    first: bool  #: True for the first step of an epoch


@dataclasses.dataclass
class _Recording:
    """All numbers of a run that the verdict depends on."""

    data_s: list[float] = dataclasses.field(default_factory=list)  #: inside next(), per step
    batch_s: list[float] = dataclasses.field(default_factory=list)  #: inside step(), per step
    trained: bool = True  #: a step function was given
    next_work_s: float = 0.0  #: inside next(): time this thread ran or waited for a CPU
    samples: int = 0
    looks: dict[bool, list[int]] = dataclasses.field(default_factory=lambda: {True: [0, 0, 0], False: [0, 0, 0]})
    processes: int = 0  #: worker processes seen
    num_workers: int | None = None  #: of a PyTorch DataLoader
    persistent: bool | None = None  #: whether the DataLoader keeps its workers between epochs
    begin: _Look | None = None
    end: _Look | None = None
    machine: dict[str, float | None] = dataclasses.field(default_factory=dict)  #: facts about the machine
    waits: list[_Wait] = dataclasses.field(default_factory=list)  #: one for each entry of data_s
    stalls: list[tuple[float, float]] = dataclasses.field(default_factory=list)  #: (seconds, when); not in data_s


class _Limit:
    """The time at which diagnose() has to end. Measurements that would take longer are skipped and counted."""

    def __init__(self, seconds: float) -> None:
        self.at, self.skipped = time.monotonic() + 2 * seconds + 5, 0

    def left(self) -> float:
        return self.at - time.monotonic()

    def fits(self, seconds: float) -> bool:
        return seconds <= self.left()

    def skip(self) -> None:
        self.skipped += 1


class _Loop:
    """Runs steps of an iterable and records all except the first."""

    def __init__(self, iterable: Iterable[Any], step: Callable[[Any], Any] | None, sync: Callable[[], Any] | None,
                 sampler: _Sampler, limit: _Limit) -> None:
        self.iterable, self.step, self.sync, self.sampler, self.limit = iterable, step, sync, sampler, limit
        self.kept: list[Any] = []
        self.room = math.inf  # bytes of batches that may be kept
        self.first = True  # no batch came yet
        self.start_s = 0.0  # from the call of iter() to the first batch
        self.seen = _Recording(trained=step is not None, looks=sampler.looks)
        self.declared = _declared(iterable)
        if _is_dataloader(iterable):
            self.seen.num_workers = int(iterable.num_workers)  # type: ignore[attr-defined]
            self.seen.persistent = bool(getattr(iterable, "persistent_workers", False))

    def train(self, batch: Any) -> float:
        begin = time.perf_counter()
        if self.step is not None:
            self.step(batch)
            if self.sync is not None:
                self.sync()
        return time.perf_counter() - begin

    def run(self, steps: int, seconds: float, keep: int) -> None:
        begun = time.monotonic()
        stream, until = iter(self.iterable), begun + seconds
        restarts, epochs, seen, before, started = 0, 0, self.seen, _look(), time.perf_counter()
        clocks_s, longest_s = _clocks_s(), 0.0
        while len(seen.data_s) < steps and (self.first or (time.monotonic() < until and self.limit.fits(longest_s))):
            self.sampler.waiting = True
            if restarts == epochs or self.first:  # else the wait includes the end of the last epoch
                looks = list(self.sampler.looks[True])
                begin, work = time.perf_counter(), _work_s()
            try:
                batch = next(stream)
            except StopIteration:
                restarts += 1
                if restarts > 1000 or (self.first and restarts > 1):
                    break
                stream = iter(self.iterable)
                continue
            work = _work_s() - work  # read before the clock, so that this time cannot exceed the wait
            waited = time.perf_counter() - begin
            if waited <= _SHORTEST * clocks_s:
                waited = work = 0.0
            self.sampler.waiting = False
            if self.first:
                self.start_s = time.monotonic() - begun
            trained = self.train(batch)
            if len(self.kept) < keep and _bytes(batch) <= self.room:
                self.kept.append(batch)
                self.room -= _bytes(batch)
            if self.first:
                self.first, seen.begin = False, _look()
                longest_s = time.monotonic() - begun
                if self.limit.fits(longest_s):  # further batches are measured even after a slow start
                    until = max(until, time.monotonic() + seconds / 2 + 1e-3)
                    continue
                seen.begin = before  # no time for a second batch: record the first one
            seen.data_s.append(waited)
            seen.batch_s.append(trained)
            seen.next_work_s += work
            samples = _samples(batch, self.declared)
            seen.samples += samples
            meanwhile = [b - a for a, b in zip(looks, self.sampler.looks[True])]
            seen.waits.append(_Wait(begin - started, work, meanwhile, samples, restarts > epochs))
            epochs = restarts
        seen.end = _look()
        close = getattr(stream, "close", None)
        if callable(close):
            close()
        if not seen.persistent:
            _workers.end(stream)

    def replay(self, steps: int, seconds: float) -> float | None:
        """Returns the mean step time when batches cost nothing."""
        if not self.kept or self.step is None:
            return None
        times, until, each_s = [], time.monotonic() + seconds, max(self.seen.batch_s)
        for i in range(steps):
            if time.monotonic() > until or not self.limit.fits(each_s):
                break
            times.append(self.train(self.kept[i % len(self.kept)]))
        if not times:
            self.limit.skip()
            return None
        return sum(times[1:] or times) / len(times[1:] or times)


# ---- facts ---------------------------------------------------------------------------------------


def _cpus() -> tuple[float, float]:
    """Returns (CPUs this process may use, quota or 0)."""
    usable, quota = float(len(os.sched_getaffinity(0))), 0.0
    text = _read("/sys/fs/cgroup/cpu.max").split()
    if len(text) == 2 and text[0] != "max":
        quota = int(text[0]) / int(text[1])
    own = next((line.split(":")[2] for line in _read("/proc/self/cgroup").splitlines()
                if line.split(":")[1] == "cpu" or line.split(":")[1].startswith("cpu,")), None)
    if own is not None:
        limit, period = (_read(f"/sys/fs/cgroup/cpu{own}/cpu.cfs_{name}_us").strip() for name in ("quota", "period"))
        if limit and period and int(limit) > 0:
            quota = int(limit) / int(period)
    return (min(usable, quota) if quota else usable), quota


def _throttling() -> tuple[int, int] | None:
    own = next((line.split(":")[2] for line in _read("/proc/self/cgroup").splitlines()
                if line.split(":")[1] in ("cpu", "cpu,cpuacct")), "")
    for path in (f"/sys/fs/cgroup/cpu{own}/cpu.stat", "/sys/fs/cgroup/cpu.stat"):
        rows = dict(line.split() for line in _read(path).splitlines() if len(line.split()) == 2)
        if "nr_periods" in rows:
            return int(rows["nr_periods"]), int(rows["nr_throttled"])
    return None


def _memory_free() -> float | None:
    for line in _read("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return float(line.split()[1]) * 1024
    return None


def _machine() -> dict[str, float | None]:
    cpus, quota = _cpus()
    return {"cpus": cpus, "quota": quota, "cpus_host": float(os.cpu_count() or 1), "memory_free": _memory_free()}


def _is_dataloader(iterable: Any) -> bool:
    """Returns whether the iterable is a DataLoader of PyTorch, or has its attributes. A leat.Loader does not count: it
    has no worker processes."""
    from ._loader import Loader

    return hasattr(iterable, "num_workers") and hasattr(iterable, "collate_fn") and not isinstance(iterable, Loader)


def _persistent(iterable: Any) -> list[int]:
    """Returns the worker processes that a DataLoader with persistent_workers has kept."""
    return [worker.pid for worker in getattr(getattr(iterable, "_iterator", None), "_workers", [])]


def _without_stalls(seen: _Recording) -> _Recording:
    """Returns the recording without single steps that waited far longer than all others, so that one of them does not
    decide the verdict. First steps of epochs are kept: they are slow in every epoch."""
    n = len(seen.data_s)
    if n <= _STALL_STEPS or len(seen.waits) != n:
        return seen
    least = max(_STALL_S, _STALL_TIMES * _percentile([a + b for a, b in zip(seen.data_s, seen.batch_s)], 0.9))
    found = [i for i in range(n) if seen.data_s[i] >= least and not seen.waits[i].first]
    if not found or len(found) > max(1, n // _STALL_ONE_IN):
        return seen
    rest = [i for i in range(n) if i not in found]
    looks = [all_ - sum(seen.waits[i].looks[k] for i in found) for k, all_ in enumerate(seen.looks[True])]
    return dataclasses.replace(
        seen, data_s=[seen.data_s[i] for i in rest], batch_s=[seen.batch_s[i] for i in rest],
        waits=[seen.waits[i] for i in rest], samples=sum(seen.waits[i].samples for i in rest),
        next_work_s=sum(seen.waits[i].work_s for i in rest), looks={True: looks, False: seen.looks[False]},
        stalls=[(seen.data_s[i], seen.waits[i].at_s) for i in found])


def _start_s(seen: _Recording, make_s: float | None) -> float | None:
    """Returns the mean wait at the start of an epoch. None when there was no second epoch, or when the wait is mostly
    the time to make a batch: `make_s`, or at most what the workers together take for the other steps."""
    starts = [s for s, wait in zip(seen.data_s, seen.waits) if wait.first]
    if not starts:
        return None
    start_s = sum(starts) / len(starts)
    if make_s is None:
        others = [a + b for a, b, wait in zip(seen.data_s, seen.batch_s, seen.waits) if not wait.first]
        if not others:
            return None
        make_s = max(seen.num_workers or 1, 1) * sum(others) / len(others)
    return start_s if start_s > 2 * make_s else None


def _epoch_steps(seen: _Recording) -> float:
    """Returns the mean number of steps per epoch. The first step of the run is not in `waits`."""
    at = [i for i, wait in enumerate(seen.waits) if wait.first]
    return (at[-1] + 1) / len(at)


def _without_starts(seen: _Recording) -> _Recording:
    """Returns the recording without the first steps of epochs."""
    rest = [i for i, wait in enumerate(seen.waits) if not wait.first]
    looks = [sum(seen.waits[i].looks[k] for i in rest) for k in range(3)]
    return dataclasses.replace(
        seen, data_s=[seen.data_s[i] for i in rest], batch_s=[seen.batch_s[i] for i in rest],
        waits=[seen.waits[i] for i in rest], samples=sum(seen.waits[i].samples for i in rest),
        next_work_s=sum(seen.waits[i].work_s for i in rest), looks={True: looks, False: seen.looks[False]})


def _stall_facts(seen: _Recording) -> dict[str, float | None]:
    if not seen.stalls:
        return {}
    longest, at_s = max(seen.stalls)
    all_s = sum(s for s, _ in seen.stalls)
    return {"stalls": float(len(seen.stalls)), "stall_s": longest, "stall_at_s": at_s,
            "stall_share": all_s / (all_s + sum(seen.data_s) + sum(seen.batch_s))}


def _worker_facts(seen: _Recording, facts: dict[str, float | None], collate_wait: float) -> None:
    """Sets shares of the workers' time. Running and waiting in collate_fn count as preparing. Waiting for disks, and
    other sleep while the trainer waits, count as fetching. While the trainer's thread unpacks a batch, it does not wait
    for workers."""
    looks = seen.looks
    both = [a + b for a, b in zip(looks[True], looks[False])]
    total, waited_s = sum(both), sum(seen.data_s)
    if seen.processes == 0 or total < 20 or waited_s <= 0:
        return
    rate = seen.samples / (waited_s + sum(seen.batch_s))
    running, disk = float(both[0]), both[1]
    unpacking = min(1.0, seen.next_work_s / waited_s)
    asleep_while_needed = looks[True][2] * (1 - unpacking)
    collating = asleep_while_needed * collate_wait
    running, asleep_while_needed = running + collating, asleep_while_needed - collating
    facts["decode_share"] = max(running / total, unpacking * waited_s / (waited_s + sum(seen.batch_s)))
    facts["read_share"] = (disk + asleep_while_needed) / total
    waited = sum(looks[True])
    if waited >= 20:  # whether workers had something to do while the trainer waited
        facts["decode_ready"] = max((looks[True][0] + collating) / waited, unpacking)
    if running > 0 and rate > 0:
        facts["cpu_all"] = rate * total / running
    if unpacking > 0 and seen.samples:
        facts["cpu_all"] = min(facts.get("cpu_all") or math.inf, seen.samples / seen.next_work_s)
    if disk + asleep_while_needed > 0 and rate > 0:
        facts["io_cold"] = rate * total / (disk + asleep_while_needed)


def _own_thread_facts(seen: _Recording, facts: dict[str, float | None], collate_wait: float) -> None:
    """Sets the shares of a loader without workers. Preparing is the time inside next() in which this thread ran, waited
    for a CPU or waited in collate_fn; fetching is the rest."""
    waited = sum(seen.data_s)
    if seen.processes > 0 or seen.num_workers or not seen.data_s:
        return
    if waited <= 0:  # all batches were ready
        facts.update(threads=1.0, decode_ready=0.0, decode_share=0.0, read_share=0.0)
        return
    share = min(1.0, seen.next_work_s / waited)
    share += (1 - share) * collate_wait
    facts["threads"] = 1.0
    facts["decode_ready"] = share
    lost = waited / (waited + sum(seen.batch_s))
    facts["decode_share"] = share * lost
    facts["read_share"] = (1 - share) * lost
    if share > 0:
        facts["cpu_all"] = facts["cpu_one"] = seen.samples / (share * waited)
    if share < 1:
        facts["io_cold"] = seen.samples / ((1 - share) * waited)


def _start_facts(seen: _Recording, rest: _Recording, start_s: float | None, facts: dict[str, float | None]) -> None:
    """Sets the cost of starting an epoch. `rest` are the other steps: if the loader kept up in them, none of its parts
    is slow."""
    if any(wait.first for wait in seen.waits):
        facts["epoch_steps"] = _epoch_steps(seen)
    if start_s is None:
        return
    facts["start_ms"] = 1e3 * start_s
    if sum(rest.data_s) <= 0.05 * (sum(rest.data_s) + sum(rest.batch_s)):
        for name in ("decode_ready", "decode_share", "read_share"):
            facts.setdefault(name, 0.0)


def _facts(seen: _Recording, collate_wait: float = 0.0, start_s: float | None = None) -> dict[str, float | None]:
    """Returns the facts for the doctor, from the recorded numbers alone. `collate_wait` is the share of a loader's
    waiting that is inside collate_fn, `start_s` the wait at the start of an epoch, where it is a separate cost."""
    n = len(seen.data_s)
    rest = seen if start_s is None else _without_starts(seen)
    data_s = rest.data_s if start_s is not None and _epoch_steps(seen) > 2 else seen.data_s
    begin, end = seen.begin, seen.end
    facts: dict[str, float | None] = {"steps": float(n)}
    if n == 0 or begin is None or end is None:
        return facts
    facts["data_ms"] = 1e3 * sum(data_s) / len(data_s)
    facts["data_ms_p50"] = 1e3 * _percentile(data_s, 0.5)
    facts["data_ms_p95"] = 1e3 * _percentile(data_s, 0.95)
    if seen.trained:
        facts["batch_ms"] = 1e3 * sum(seen.batch_s) / n
        facts["batch_ms_p50"] = 1e3 * _percentile(seen.batch_s, 0.5)
        facts["batch_ms_p95"] = 1e3 * _percentile(seen.batch_s, 0.95)
    time_s = sum(seen.data_s) + sum(seen.batch_s)
    if seen.samples:
        facts["batch"] = seen.samples / n
        facts["samples_per_s"] = seen.samples / time_s if time_s > 0 else None
        ready_s = _percentile(seen.data_s, 0.1)
        facts["delivery"] = facts["batch"] / ready_s if ready_s > 0 else None
    wall = end.wall_s - begin.wall_s
    if wall > 0:
        cpu = max(0.0, end.cpu_s - begin.cpu_s)
        busy_s = max(wall - sum(s for s, _ in seen.stalls), 1e-3)
        facts["cpu_used"] = min(cpu / busy_s, seen.machine.get("cpus") or math.inf)
        facts["others"] = max(0.0, end.host_s - begin.host_s - cpu) / wall
        line = max(0.0, end.line_s - begin.line_s)
        facts["run_delay"] = line / (line + cpu) if line + cpu > 0 else 0.0
        facts["faults"] = max(0, end.faults - begin.faults) / wall
        if begin.read_bytes is not None and end.read_bytes is not None and seen.samples:
            facts["read_bytes"] = max(0.0, end.read_bytes - begin.read_bytes) / seen.samples
    if begin.periods is not None and end.periods is not None and end.periods[0] > begin.periods[0]:
        facts["throttled"] = (end.periods[1] - begin.periods[1]) / (end.periods[0] - begin.periods[0])
    facts["blocked"] = 0.0  # other loaders have no memory budget to wait for
    facts.update(seen.machine)
    facts.update(_stall_facts(seen))
    if seen.num_workers is not None:
        facts["workers"] = float(seen.num_workers)
        facts["persistent"] = float(seen.persistent or False)
    if seen.processes > 0 or seen.num_workers:  # workers restarted in each epoch count as many processes
        facts["threads"] = float(seen.num_workers or seen.processes)
    _worker_facts(rest, facts, collate_wait)
    _own_thread_facts(rest, facts, collate_wait)
    _start_facts(seen, rest, start_s, facts)
    if seen.processes == 0 or (facts.get("decode_ready") or 0) > 0.5:
        facts["delivery"] = None  # batches were never ready, so their delivery could not be measured
    return facts


def _own_meters(loader: Loader, before: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Returns facts from the meters of a leat.Loader since `before`: only the loader can separate its transform from waiting."""
    after: dict[str, Any] = dict(loader.doctor()["facts"])
    was, now = before.get("steps") or 0.0, after.get("steps") or 0.0
    if now <= was:
        return dict(facts)
    for name in ("data_ms", "batch_ms", "prepare_ms"):
        total = (after.get(name) or 0.0) * now - (before.get(name) or 0.0) * was
        after[name] = max(0.0, total) / (now - was)
    after["steps"] = now - was
    for name in ("batch", "samples_per_s", "stalls", "stall_s", "stall_at_s", "stall_share"):
        after[name] = facts.get(name)
    if facts.get("stalls"):  # the loader's meters include the stalls
        after.update({name: facts.get(name) for name in ("data_ms", "data_ms_p50", "data_ms_p95")})
    if facts.get("batch_ms") is None:  # no step: the time between two batches is not training
        after.update(dict.fromkeys(("batch_ms", "batch_ms_p50", "batch_ms_p95")))
    return after


# ---- the report ----------------------------------------------------------------------------------


class Diagnosis(dict):
    """What the doctor says: the keys of ``leat doctor --json``, also as attributes; ``str()`` is the
    page for people."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __str__(self) -> str:
        if self["verdict"] == _NOTHING:
            return _NOTHING + "\n"
        page = _leat.doctor_judge(json.dumps({"facts": self["facts"]}), _PAGE)
        if self.get("replay"):
            alone, beside = self["replay"]["step_ms"], self["facts"].get("batch_ms") or 0.0
            page += (f"\nWith a loader that costs nothing this loop would be {self['replay']['gain']:.2f} times as "
                     f"fast ({max(alone, beside):.1f} ms a step)\n")
            if alone < 0.8 * beside:
                page += (f"Alone, the step took {alone:.1f} ms, in the loop {beside:.1f}: it shares the CPUs with the loader or with "
                         "other processes\n")
        return page

    def __repr__(self) -> str:
        return f"<leat.Diagnosis: {self['verdict']}>"


def from_text(text: str) -> Diagnosis:
    """Returns a diagnosis from the line that ``leat doctor --json`` prints."""
    return Diagnosis(json.loads(text))


def of_loader(text: str, batches: int) -> Diagnosis:
    """Returns a diagnosis from a loader's own meters; incomplete before its first batch."""
    found = from_text(text)
    if batches == 0:
        found.update(verdict=_NOTHING, limit="none", cause="none", next="none", confidence=0.0, findings=[], remedies=[])
    return found


def judge(facts: Mapping[str, Any]) -> Diagnosis:
    """Returns the doctor's diagnosis of facts that were measured elsewhere (keys as in ``leat doctor --json``)."""
    if not isinstance(facts, Mapping):
        raise ArgumentError(f"facts: a dict is expected, not {type(facts).__name__}")
    try:
        text = json.dumps({"facts": dict(facts)}, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"facts: {error}") from None
    return from_text(_leat.doctor_judge(text, _JSON))


def _look_closer(iterable: Any, facts: dict[str, float | None], seconds: float,
                 loop: _Loop) -> dict[str, float | None]:
    """Returns facts about a worker's time and about the rate with more workers, as far as they can be measured. Empty
    when the loop does not wait for data."""
    data, step = facts.get("data_ms"), facts.get("batch_ms")
    if facts.get("workers") is None or data is None or data < 0.05 * (data + (step or 0.0)):
        return {}
    limit = loop.limit
    make_s = (data if not facts["workers"] else facts["workers"] * (data + (step or 0.0))) / 1e3  # at most
    asked_s = max(0.0, loop.start_s - make_s)  # time of the start without the batch, such as len(dataset)
    closer: dict[str, float | None] = {}
    if limit.fits(asked_s + make_s / max(facts.get("batch") or 1.0, 1.0)):
        closer.update(_workers.split(iterable, min(2.0, seconds / 10), make_s, limit) or {})
    else:
        limit.skip()
    more, each_s = _workers_to_try(facts | closer), max(0.3, min(1.5, seconds / 20))
    if more:
        closer.update(_workers.compare_workers(iterable, more, each_s, loop.train, limit,
                                                2 * loop.start_s + 3 * each_s) or {})
    return closer


def _bound_reads(facts: dict[str, float | None]) -> None:
    """Limits io_cold: workers that wait `fetch_ms` for each sample cannot read more often, however long they were seen
    to wait."""
    reads, each_ms = facts.get("io_cold"), facts.get("fetch_ms")
    if reads and each_ms:
        most = max(facts.get("workers") or 1.0, 1.0) * 1e3 / each_ms
        facts["io_cold"] = min(reads, max(most, facts.get("samples_per_s") or 0.0))


def _workers_to_try(facts: dict[str, float | None]) -> int:
    """Returns how many workers to try: four times as many if they mostly wait, else one per CPU; 0 when this is not
    more than now."""
    now, cpus = facts.get("workers") or 0.0, facts.get("cpus") or 1.0
    fetching, preparing = facts.get("worker_fetch"), facts.get("decode_share") or 0.0
    if fetching is None:  # an IterableDataset: what was seen of its workers
        reading = facts.get("read_share") or 0.0
        fetching = reading / (reading + preparing) if reading > 0 else 0.0
    waiting = fetching + (facts.get("collate_wait") or 0.0) > 0.3
    more = int(min(4 * max(now, 1.0) if waiting else max(cpus, 1.0), 64))
    return more if more > now else 0


def _verdict(seen: _Recording, facts: dict[str, float | None], free_s: float | None) -> Diagnosis:
    """Returns the diagnosis of these facts; `free_s` is the step time when batches cost nothing. The gain counts only
    waiting: a step may be faster in the replay just because other processes ran during the loop."""
    result = judge(facts)
    n = max(len(seen.data_s), 1)
    step_s = sum(seen.batch_s) / n
    gain = (sum(seen.data_s) / n + step_s) / max(free_s, step_s) if free_s else None
    result["replay"] = {"step_ms": 1e3 * free_s, "gain": gain} if free_s else None
    return result


def diagnose(iterable: Iterable[Any], step: Callable[[Any], Any] | None = None, *, steps: int = 100,
             seconds: float = 30.0, replay: int = 10, sync: Callable[[], Any] | None = None) -> Diagnosis:
    """Runs some steps of a training loop and names its bottleneck.

    iterable: anything that yields batches: a PyTorch DataLoader, a leat.Loader, a generator function's
        result (then it is run once)
    step: called with each batch: the training step, also in trials and in the replay. Without it the loader runs
        alone, and the verdict is incomplete
    steps, seconds: measure this many steps after the first, or until the time is over. diagnose() returns after 2 *
      seconds + 5 at the latest, unless a batch takes longer: it waits for a batch that was started. Trials that do not
      fit are left out, and the report says so
    replay: how many batches to keep and replay, to see how fast the loop could be; 0 = none
    sync: called after each step, to wait for the device (``torch.cuda.synchronize``)
    """
    if isinstance(iterable, (str, bytes, os.PathLike)):
        raise ArgumentError(f"iterable: {shown(iterable)} is a path, not batches: give leat.Loader(path)")
    if not isinstance(iterable, Iterable) and not hasattr(iterable, "__getitem__"):
        raise ArgumentError(f"iterable: {shown(iterable)} yields no batches")
    step, sync = _check.called("step", step), _check.called("sync", sync)
    if sync is not None and step is None:
        raise ArgumentError("sync: is called after each step: give step too")
    steps = _check.whole("steps", steps, 1)
    replay = _check.whole("replay", replay)
    seconds = _check.real("seconds", seconds, 0, 1e9)
    from ._loader import Loader

    limit = _Limit(seconds)
    own = iterable if isinstance(iterable, Loader) else None
    before = own.doctor()["facts"] if own is not None else {}
    sampler = _Sampler(_persistent(iterable))
    loop = _Loop(iterable, step, sync, sampler, limit)
    if own is not None:  # kept batches count in the loader's budget, which its other batches need
        loop.room = (before.get("budget") or math.inf) / 4
    sampler.start()
    try:
        loop.run(steps, seconds, replay)
    finally:
        sampler.stop()
    seen = loop.seen
    if not seen.data_s:
        raise ArgumentError("iterable: gave no batches" if loop.first else
                            "iterable: gave one batch, and the first one is not measured: two are needed")
    seen.processes, seen.machine = len(sampler.workers), _machine()
    if isinstance(iterable, (list, tuple)):  # all batches are in memory: other processes cause any wait
        seen.data_s = [0.0] * len(seen.data_s)
    seen = _without_stalls(seen)
    facts = _facts(seen) if own is None else _own_meters(own, before, _facts(seen))
    free_s = loop.replay(min(steps, 50), seconds / 4) if replay else None
    closer = _look_closer(iterable, facts, seconds, loop)
    make_ms = closer.pop("make_ms", None)
    collate_wait, fetch = closer.get("collate_wait") or 0.0, closer.get("worker_fetch") or 0.0
    start_s = _start_s(seen, None if make_ms is None else make_ms / 1e3)
    if own is None and (collate_wait > 0 or start_s is not None):
        facts = _facts(seen, collate_wait / (collate_wait + fetch) if collate_wait > 0 else 0.0, start_s)
    facts.update(closer)
    _bound_reads(facts)
    if own is None and seen.num_workers is None:
        facts["plain"] = 1.0
    if limit.skipped:
        facts["skipped"] = float(limit.skipped)
    return _verdict(seen, facts, free_s)
