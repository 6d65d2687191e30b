# SPDX-License-Identifier: Apache-2.0
"""Training from a pack compared with the same updates on one batch that stays on the device (the ceiling).

    python3 bench/train_feed.py PACK [--updates 100] [option=value …]      # options of leat train

Prints one JSON line: images/s of both, their ratio, and the share of the time spent waiting for data.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time

import torch

import leat
from leat._train import distributed, loop, options, report


def settings(words: list[str], output: str):
    given = {}
    for word in words:
        name, _, value = word.partition("=")
        kind = options.table("train")[name].kind
        given[name] = {"int": int, "float": float, "flag": lambda v: v == "true"}.get(kind, str)(value)
    o = options.resolve("train", {"tensorboard": False, "output": output, **given})
    o.config_values = {}
    return o


def rate(trainer: loop.Trainer, updates: int, batches) -> float:
    torch.cuda.synchronize() if trainer.device.type == "cuda" else None
    begin = time.perf_counter()
    images = 0
    for _ in range(updates):
        group = next(batches)
        trainer._step(group)
        images += sum(len(b["view0"]) for b in group)
        del group
    torch.cuda.synchronize() if trainer.device.type == "cuda" else None
    return images / (time.perf_counter() - begin)


def endless(trainer: loop.Trainer):
    while True:
        yield from trainer._batches()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("pack")
    parser.add_argument("--updates", type=int, default=100)
    parser.add_argument("options", nargs="*")
    a = parser.parse_intermixed_args()
    with tempfile.TemporaryDirectory() as output:
        o = settings(a.options, output)
        kind = distributed.accelerator(o.accelerator)
        trainer = loop.Trainer(a.pack, o, distributed.join(kind))
        trainer.prepare()
        trainer.meter = report.Meter(o, trainer.ranks, 0, [])
        trainer.task.train()
        fed = endless(trainer)
        group = next(fed)

        def again():
            while True:
                yield group

        rate(trainer, 20, again())  # tunes and compiles
        ceiling = [rate(trainer, a.updates, again())]
        del group
        rate(trainer, 10, fed)
        trainer.meter.waited = 0.0
        begin = time.perf_counter()
        from_pack = rate(trainer, a.updates, fed)
        waited = trainer.meter.waited / (time.perf_counter() - begin)
        group = next(fed)
        ceiling.append(rate(trainer, a.updates, again()))
        row = {"images_per_s": from_pack, "ceiling": sum(ceiling) / 2, "share": from_pack / (sum(ceiling) / 2),
               "data_share": waited, "batch": o.batch_size, "precision": trainer.precision, "leat": leat.__version__}
        if kind == "cuda":
            row["gpu"] = torch.cuda.get_device_name()
            row["gpu_bytes"] = torch.cuda.max_memory_allocated()
        print(json.dumps(row))
        trainer.loader.close()


if __name__ == "__main__":
    sys.exit(main())
