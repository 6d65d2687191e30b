# SPDX-License-Identifier: Apache-2.0
"""Which rank this process is: arguments, torch.distributed, torchrun, SLURM, MPI, in this order."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from . import _check
from ._errors import ArgumentError

# Source, variable of the rank, variable of the world size.
_ENVIRONMENTS = (
    ("torchrun", "RANK", "WORLD_SIZE"),
    ("slurm", "SLURM_PROCID", "SLURM_NTASKS"),
    ("mpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("mpi", "PMI_RANK", "PMI_SIZE"),
    ("mpi", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
)


def _from_torch() -> tuple[int, int] | None:
    # never imports torch: a process group that is initialised has imported it
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed.get_rank(), distributed.get_world_size()


def _number(environ: Mapping[str, str], name: str) -> int | None:
    value = environ.get(name, "")
    return int(value) if value.isdecimal() else None


def detect(rank: int | None, world_size: int | None,
           environ: Mapping[str, str] = os.environ) -> tuple[int, int, str]:
    """(rank, world size, where they were found)."""
    if rank is not None or world_size is not None:
        if rank is None or world_size is None:
            raise ArgumentError("give both rank and world_size, or neither")
        world_size = _check.whole("world_size", world_size, 1, 10**6)
        rank = _check.whole("rank", rank)
        if rank >= world_size:
            raise ArgumentError(f"rank: {rank} is not below world_size {world_size}")
        return rank, world_size, "arguments"
    found = _from_torch()
    if found is not None:
        return *found, "torch.distributed"
    for source, rank_name, world_name in _ENVIRONMENTS:
        here, world = _number(environ, rank_name), _number(environ, world_name)
        if here is None or world is None or here >= world:
            continue
        # a shell inside an allocation has SLURM's variables but is one process, not one of many
        if source == "slurm" and environ.get("SLURM_STEP_NUM_TASKS", str(world)) != str(world):
            continue
        if source == "slurm" and environ.get("SLURM_JOB_NAME") in ("bash", "interactive"):
            continue
        return here, world, source
    return 0, 1, "single process"
