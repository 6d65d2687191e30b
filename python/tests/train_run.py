# SPDX-License-Identifier: Apache-2.0
"""Runs of leat.train in child processes that may be killed at a chosen update.

Children are forked from a process that has imported torch but computed nothing: a run takes a fraction
of a second. Not a test itself.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import traceback
from typing import Any

import torch
from torch import nn

from leat._train import checkpoint, loop, models, train


class Tiny(models.Net):
    """Small enough for a test: one convolution with a norm, dropout, a mean."""

    def __init__(self, small: bool = True) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.2))
        self.width = 8

    def features(self, x: torch.Tensor) -> torch.Tensor:
        return self.run(self.body, x).mean((2, 3))


models._BUILT_IN["tiny_resnet"] = Tiny


def _arm(kill_at: int, number: int) -> None:
    """Sends this process a signal right after update ``kill_at``."""
    step = loop.Trainer._step

    def armed(self: Any, batches: Any) -> Any:
        loss = step(self, batches)
        if self.update == kill_at:
            os.kill(os.getpid(), number)
        return loss

    loop.Trainer._step = armed  # type: ignore[method-assign]


def _rank_variables(rank: int, world: int, port: int, slurm: bool) -> dict[str, str]:
    """What torchrun sets, or srun."""
    if not slurm:
        return {"RANK": str(rank), "WORLD_SIZE": str(world), "LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port)}
    return {"SLURM_PROCID": str(rank), "SLURM_NTASKS": str(world), "SLURM_LOCALID": str(rank), "SLURM_STEP_NODELIST": "localhost",
            "SLURM_JOB_ID": str(port - 20000), "SLURM_STEP_ID": "0"}


def _child(rank: int, world: int, port: int, kill_at: int, number: int, args: tuple, options: dict) -> int:
    try:
        if world > 1:
            os.environ.update(_rank_variables(rank, world, port, options.pop("slurm", False)))
        torch.set_num_threads(1)
        if kill_at:
            _arm(kill_at, number)
        return train(*args, **options).get("stopped", 0)
    except SystemExit as end:
        return int(str(end.code))
    except KeyboardInterrupt as end:
        return 130 if rank > 0 or "resume=True continues" in str(end) else 98
    except BaseException:
        traceback.print_exc()
        return 99


def run(*args: Any, world: int = 1, kill_at: int = 0, number: int = signal.SIGKILL, **options: Any) -> list[int]:
    """Wait status of each rank: the exit code, or minus the signal."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    sys.stdout.flush()
    sys.stderr.flush()
    pids = []
    for rank in range(world):
        pid = os.fork()
        if pid == 0:
            os._exit(_child(rank, world, port, kill_at, number, args, options))
        pids.append(pid)
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]


def final(output: str) -> dict[str, torch.Tensor]:
    """All tensors of the last checkpoint."""
    return checkpoint.read_tensors(os.path.join(output, "checkpoints", "last", "train.safetensors"))


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    """Bit for bit."""
    return a.keys() == b.keys() and all(a[name].numpy().tobytes() == b[name].numpy().tobytes() for name in a)
