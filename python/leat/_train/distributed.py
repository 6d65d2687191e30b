# SPDX-License-Identifier: Apache-2.0
"""Ranks: how they are found and joined, and their collective operations.

Gradients and the running statistics of norms are averaged after the backward pass, in flat buckets of
fixed order. All ranks hold the same bits after each update, also after resuming. A rank that runs out of
memory can tell the others before any of them waits for it.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from .. import _rank
from .._errors import ArgumentError

_BUCKET = 64 << 20  # bytes of a collective call; large ones are more efficient


class Ranks:
    """This process among the others, and its device."""

    def __init__(self, rank: int, world: int, device: torch.device, source: str) -> None:
        self.rank, self.world, self.device, self.source = rank, world, device, source

    @property
    def first(self) -> bool:
        return self.rank == 0

    def sum(self, values: Tensor) -> Tensor:
        """Sums over all ranks, in place."""
        if self.world > 1:
            dist.all_reduce(values)
        return values

    def any(self, flag: bool) -> bool:
        """Returns whether the flag is set on any rank."""
        if self.world == 1:
            return flag
        return bool(self.sum(torch.tensor([int(flag)], device=self.device)).item())

    def average(self, tensors: Sequence[Tensor]) -> None:
        """Replaces each tensor by its mean over the ranks."""
        if self.world == 1:
            return
        bucket: list[Tensor] = []
        size = 0
        for i, t in enumerate(tensors):
            bucket.append(t)
            size += t.numel() * t.element_size()
            last = i + 1 == len(tensors)
            if last or size >= _BUCKET or tensors[i + 1].dtype != t.dtype:
                self._average_bucket(bucket)
                bucket, size = [], 0

    def _average_bucket(self, bucket: list[Tensor]) -> None:
        flat = torch.cat([t.reshape(-1) for t in bucket])
        dist.all_reduce(flat)
        flat /= self.world
        at = 0
        for t in bucket:
            t.copy_(flat[at:at + t.numel()].view_as(t))
            at += t.numel()

    def gather(self, value: Any) -> list[Any]:
        """Returns the JSON-able values of all ranks, in order."""
        if self.world == 1:
            return [value]
        found: list[Any] = [None] * self.world
        dist.all_gather_object(found, value)
        return found

    def barrier(self) -> None:
        if self.world > 1:
            dist.barrier()

    def close(self) -> None:
        if self.world > 1 and dist.is_initialized():
            dist.destroy_process_group()


def accelerator(wanted: str) -> str:
    """Returns "cuda" or "cpu"."""
    if wanted == "cuda" and not torch.cuda.is_available():
        raise ArgumentError("accelerator: PyTorch sees no CUDA device; use `accelerator` cpu, or install a "
                            "PyTorch with CUDA")
    return "cuda" if wanted != "cpu" and torch.cuda.is_available() else "cpu"


def to_launch(devices: int, nodes: int, kind: str) -> int:
    """Returns how many ranks this process should start; 0 when it is a rank itself."""
    _, world, source = _rank.detect(None, None)
    if source != "single process":
        local = int(os.environ.get("LOCAL_WORLD_SIZE", os.environ.get("SLURM_NTASKS_PER_NODE", "0")) or 0)
        if devices and local and devices != local:
            raise ArgumentError(f"devices: {devices} are asked for, but the launcher started {local} processes here")
        if nodes and local and nodes * local != world:
            raise ArgumentError(f"nodes: {nodes} are asked for, but the launcher started {world} processes")
        return 0
    if nodes > 1:
        raise ArgumentError(f"nodes: start one process per GPU on each of the {nodes} machines with torchrun or srun")
    count = torch.cuda.device_count() if kind == "cuda" else 1
    if kind == "cuda" and devices > count:
        raise ArgumentError(f"devices: {devices} are asked for, PyTorch sees {count}")
    wanted = devices or count
    return wanted if wanted > 1 else 0


# Runs torchrun and ends with the exit code of the rank that failed first. torchrun itself ends with 1 and
# writes a page about it; the rank has already printed the error.
_TORCHRUN = """
import logging, sys
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.run import main
logging.disable(logging.ERROR)
try:
    main(sys.argv[1:])
except ChildFailedError as error:
    rank, failure = error.get_first_failure()
    if failure.exitcode < 0:
        print(f"leat: rank {rank} was ended by signal {-failure.exitcode}", file=sys.stderr)
    sys.exit(failure.exitcode if failure.exitcode >= 0 else 128 - failure.exitcode)
"""


def handle_signals(handler: Callable[[int, Any], None]) -> dict[int, Any]:
    """Sets the handler of SIGINT and SIGTERM; returns the old ones. Only the main thread may do so: in others nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    return {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}


def restore_signals(old: dict[int, Any]) -> None:
    for number, handler in old.items():
        signal.signal(number, signal.SIG_DFL if handler is None else handler)  # None: set by C


def launch(count: int, words: Sequence[str]) -> int:
    """Starts ``count`` ranks of this command through torchrun; returns their exit code."""
    command = [sys.executable, "-P", "-c", _TORCHRUN, "--standalone", "--nproc-per-node",
               str(count), "--no-python", sys.executable, "-P", *words]
    child = subprocess.Popen(command, start_new_session=True)
    asked: list[int] = []

    def forward(number: int, frame: Any) -> None:
        asked.append(number)
        child.send_signal(signal.SIGTERM)  # torchrun hands it to the ranks, which write a checkpoint

    old = handle_signals(forward)
    try:
        code = child.wait()
    finally:
        restore_signals(old)
    return 128 + asked[0] if asked else code


def first_host(nodes: str) -> str:
    """Returns the first machine of SLURM's list: ``gpu01`` of ``gpu[01-04,07],big1``."""
    first = re.split(r",(?![^\[]*\])", nodes)[0]
    return re.sub(r"\[([^\],-]+)[^\]]*\]", r"\1", first)


def _slurm_environment(environ: Any = os.environ) -> None:
    """Sets the variables that ``init_process_group`` needs and the launcher did not set, from SLURM's variables.

    Rank 0 runs on the first machine of the step. srun may have been started on another machine.
    """
    if "MASTER_ADDR" not in environ:
        lists = (environ.get(name) for name in ("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"))
        environ["MASTER_ADDR"] = first_host(next(filter(None, lists), "")) or socket.gethostname()
    if "MASTER_PORT" not in environ:  # steps of one job may run side by side
        number = sum(int(environ.get(name, "0") or 0) for name in ("SLURM_JOB_ID", "SLURM_STEP_ID"))
        environ["MASTER_PORT"] = str(20000 + number % 40000)


def join(kind: str) -> Ranks:
    """Joins as the rank that the launcher assigned; the device is that of LOCAL_RANK."""
    rank, world, source = _rank.detect(None, None)
    local = _rank.local()
    device = torch.device("cpu")
    if kind == "cuda":
        device = torch.device("cuda", local % max(torch.cuda.device_count(), 1))
        torch.cuda.set_device(device)
    if world > 1 and not dist.is_initialized():
        if source == "slurm":
            _slurm_environment()
        dist.init_process_group("nccl" if kind == "cuda" else "gloo", rank=rank, world_size=world,
                                timeout=timedelta(minutes=30))
    return Ranks(rank, world, device, source)
