# SPDX-License-Identifier: Apache-2.0
"""Finds the rank of this process, from arguments, torch.distributed, torchrun, SLURM or MPI, in this order."""

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


def _broken(what: str) -> ArgumentError:
    # without this error, every rank would count as a single process and train on everything
    return ArgumentError(f"rank: the environment is broken: {what}; correct it, or give rank and world_size")


def _read(environ: Mapping[str, str], rank_name: str, world_name: str) -> tuple[int, int] | str | None:
    """Returns (rank, world size), None when neither is set, or a text that names the missing one."""
    texts = environ.get(rank_name, ""), environ.get(world_name, "")
    for name, text in zip((rank_name, world_name), texts):
        if text and not (text.isascii() and text.isdecimal()):
            raise _broken(f"{name}={text} is not a whole number")
    here, world = (int(text) if text else None for text in texts)
    if world is None:  # a rank above 0 is one of several; a lone rank 0 may be a single process
        return f"{rank_name}={here} is set, but {world_name} is not" if here else None
    if here is None:
        return f"{world_name}={world} is set, but {rank_name} is not" if world != 1 else None
    if here >= world:
        raise _broken(f"{rank_name}={here} is not below {world_name}={world}")
    return here, world


def _one_of_many(source: str, environ: Mapping[str, str]) -> bool:
    """Returns whether the variables describe this process.

    A shell inside an allocation has SLURM's variables but is one process.
    """
    if source != "slurm":
        return True
    tasks = environ.get("SLURM_NTASKS", "")
    return (environ.get("SLURM_PROCID", "") != "" and environ.get("SLURM_STEP_NUM_TASKS", tasks) == tasks
            and environ.get("SLURM_JOB_NAME") not in ("bash", "interactive"))


def detect(rank: int | None, world_size: int | None,
           environ: Mapping[str, str] = os.environ) -> tuple[int, int, str]:
    """Returns (rank, world size, where they were found)."""
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
    missing = None
    for source, rank_name, world_name in _ENVIRONMENTS:
        if not _one_of_many(source, environ):
            continue
        shares = _read(environ, rank_name, world_name)
        if isinstance(shares, tuple):  # job scripts export WORLD_SIZE but leave the rank to SLURM
            return *shares, source
        missing = missing or shares
    if missing is not None:
        raise _broken(missing)
    return 0, 1, "single process"


def local(environ: Mapping[str, str] = os.environ) -> int:
    """Returns the number of this process on its machine; 0 where the launcher does not say."""
    for name in ("LOCAL_RANK", "SLURM_LOCALID"):
        text = environ.get(name, "")
        if text and not (text.isascii() and text.isdecimal()):
            raise ArgumentError(f"the environment is broken: {name}={text} is not a rank")
        if text:
            return int(text)
    return 0
