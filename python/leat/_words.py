# SPDX-License-Identifier: Apache-2.0
"""Arguments of PyTorch's DataLoader, given to a leat.Loader: accepted if the meaning is the same, else explained in an error."""

from __future__ import annotations

from typing import Any

from . import _check, _leat
from ._errors import ArgumentError

UNDERSTOOD = ("shuffle", "num_workers")
_EXPLAINED = {
    "sampler": "leat.Loader draws itself: use indices=, keys=, weights= or balance=, or leat.open(path, image=...) "
               "under a DataLoader",
    "batch_sampler": "leat.Loader makes the batches itself: use batch_size=, indices=, weights= or balance=, or "
                     "leat.open(path, image=...) under a DataLoader",
    "collate_fn": "leat.Loader collates in C: use transform= to change a batch, or leat.open(path, image=...) under "
                  "a DataLoader",
    "pin_memory": "batches are page-locked when device= is given, and arrive there; leave it out",
    "pin_memory_device": "use device=",
    "persistent_workers": "the workers are threads that live as long as the loader; leave it out",
    "prefetch_factor": "use prefetch= (batches made ahead); leat.Loader decides while running without it",
    **{name: f"it belongs to a mix: leat.Loader(leat.Mix(packs, {name}=...))"
       for name in ("defaults", "batches", "repeat", "choose", "epoch_size")},
    "workers": "use threads= (the workers are C threads)",
    "timeout": "leat.Loader has no worker processes that could hang; leave it out",
    "worker_init_fn": "the workers are C threads; sample_fn= runs your C code in them, transform= Python code here",
    "multiprocessing_context": "the workers are threads, not processes; leave it out",
    "generator": "use seed=",
    "in_order": "batches always come in order; leave it out",
    "dataset": "the pack is the first argument: leat.Loader(path)",
}


def understand(given: dict[str, Any], order: str | None, usual: str, threads: int) -> tuple[str, int]:
    """Returns (order, threads) from DataLoader's arguments, which are removed from `given`. `usual` is the order when
    none is given."""
    if "shuffle" in given:
        shuffle = _check.flag("shuffle", given.pop("shuffle"))
        fits = [name for name, shuffled in _leat.orders() if shuffled == shuffle]
        if order is None:
            order = fits[0]
        elif order not in fits:
            raise ArgumentError(f"shuffle: {shuffle} contradicts order={order!r}; give one of them")
    if "num_workers" in given:
        workers = _check.whole("num_workers", given.pop("num_workers"), 0, 4096)
        if threads not in (0, workers):
            raise ArgumentError(f"num_workers: {workers} contradicts threads={threads!r}; give one of them")
        threads = workers
    for word, text in _EXPLAINED.items():
        if word in given:
            raise TypeError(f"leat.Loader has no argument {word!r}: {text}")
    return usual if order is None else order, threads
