# SPDX-License-Identifier: Apache-2.0
"""Finds the bottleneck of a step of `leat curate`: as the step reports it, else from CPU time, bytes read and the load
of the machine."""

from __future__ import annotations

import os
import resource
import time
from typing import Any

_BUSY = 0.7  # from this share of the CPUs on, they are the bottleneck
_FULL = 0.9  # share of the machine's CPUs that all processes use, or of a budget
_WAITING = 0.2  # share of the time in which processes wait for memory

_ADVICE = {
    "I/O": "a faster disk or network; keep the data in the region of the machine, or copy it to a local SSD first",
    "CPU": "more CPU cores: the step uses all of them",
    "CPU, one thread": "a faster core: this step runs on one thread",
    "CPU, other processes": "fewer other processes: they used the CPUs",
    "GPU": "a faster GPU, a smaller model, or precision: bf16-mixed",
    "memory": "more memory, or fewer other processes that hold some; memory: in the config raises the budget of the steps",
    "none": "",
}
_STEP_ADVICE = {
    ("pack", "CPU"): "more CPU cores; or pack: {trust: true}, or pack: {images: keep}, which cost less CPU time",
    ("embed", "CPU"): "more CPU cores; a model runs faster on a GPU",
    ("tag", "CPU"): "a GPU, or a smaller model",
    ("train", "CPU"): "a GPU, or a smaller model",
    ("semantic", "memory"): "more memory (memory: in the config): vectors that do not fit are read from disk again",
    ("dedup", "CPU"): "more CPU cores; dedup: {orientations: 1} compares images as they are",
}
_OF_DOCTOR = {"io": "I/O", "read": "I/O", "cpu": "CPU", "gpu": "GPU", "model": "GPU", "step": "GPU", "memory": "memory"}


def advice(step: str, limit: str) -> str:
    return _STEP_ADVICE.get((step, limit), _ADVICE.get(limit, ""))


def usable_cpus() -> int:
    return len(os.sched_getaffinity(0))


def _cpu_seconds() -> float:
    total = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        used = resource.getrusage(who)
        total += used.ru_utime + used.ru_stime
    return total


def _bytes_read() -> int:
    """Returns the bytes that this process read from storage; 0 where the system does not say."""
    try:
        with open("/proc/self/io", encoding="ascii") as file:
            return next((int(line.split()[1]) for line in file if line.startswith("read_bytes")), 0)
    except (OSError, ValueError, IndexError):
        return 0


def _machine_ticks() -> tuple[int, int]:
    """Returns busy ticks and all ticks of the machine's CPUs."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            ticks = [int(word) for word in file.readline().split()[1:9]]
    except (OSError, ValueError):
        return 0, 0
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def _memory_wait() -> float:
    """Returns the seconds in which processes of this machine, or of the container, waited for memory; 0 where the system does not say."""
    places, longest = ["/proc/pressure/memory"], 0.0
    try:
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            places += [f"/sys/fs/cgroup{line.strip()[3:]}/memory.pressure" for line in file if line.startswith("0::")]
    except OSError:
        pass
    for place in places:
        try:
            with open(place, encoding="ascii") as file:
                some = next((line for line in file if line.startswith("some")), "total=0")
            longest = max(longest, int(some.rpartition("total=")[2]) / 1e6)
        except (OSError, ValueError):
            pass
    return longest


class Meter:
    """Measures a step from its start to `stop`."""

    def __init__(self) -> None:
        self.wall, self.cpu, self.read, self.ticks = time.monotonic(), _cpu_seconds(), _bytes_read(), _machine_ticks()
        self.waited = _memory_wait()

    def stop(self) -> dict[str, Any]:
        busy, ticks = _machine_ticks()
        machine = (busy - self.ticks[0]) / max(ticks - self.ticks[1], 1)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return {"seconds": time.monotonic() - self.wall, "cpu_seconds": _cpu_seconds() - self.cpu,
                "bytes_read": _bytes_read() - self.read, "machine_busy": machine, "peak_bytes": peak,
                "memory_wait": _memory_wait() - self.waited}


def _short_of_memory(seen: dict[str, Any], outcome: dict[str, Any], idle: bool) -> str:
    """Returns why memory limits a step, or "". `idle`: the CPUs are not the limit."""
    waited = seen.get("memory_wait", 0) / seen["seconds"]
    if waited >= _WAITING:
        return f"processes waited for memory {100 * waited:.0f} % of the time: the machine has too little"
    used = outcome.get("budget_share") or 0
    if idle and used >= _FULL:
        return f"{100 * used:.0f} % of the budget were in use, and CPUs were idle"
    return outcome.get("too_large", "") if idle else ""


def limit(step: str, seen: dict[str, Any], outcome: dict[str, Any], cpus: int, gpu: bool = False) -> dict[str, str]:
    """Returns the limit of a step, why, and what would help."""
    seconds, share = seen["seconds"], seen["cpu_seconds"] / max(seen["seconds"] * cpus, 1e-9)
    why = f"{100 * share:.0f} % of {cpus} CPU{'s' * (cpus > 1)}, {seen['bytes_read'] / 1e6:.0f} MB read"
    said = _OF_DOCTOR.get(outcome.get("limit") or "", "")
    if said and not (outcome.get("verdict") or "INCOMPLETE").startswith("INCOMPLETE"):
        found = "GPU" if said == "GPU" and gpu else "CPU" if said == "GPU" else said
        why = outcome["verdict"]
    elif outcome.get("note"):
        found, why = "none", outcome["note"]
    elif seconds < 0.5:
        found, why = "none", "too short to say"
    elif short := _short_of_memory(seen, outcome, share < _BUSY and seen["machine_busy"] < _FULL):
        found, why = "memory", f"{short}; {why}"
    elif share >= _BUSY:
        found = "CPU"
    elif seen["machine_busy"] >= _FULL:
        found = "CPU, other processes"
    elif cpus > 1 and share * cpus >= _BUSY:
        found = "CPU, one thread"
    else:
        found = "I/O"
    return {"limit": found, "why": why, "advice": advice(step, found)}
