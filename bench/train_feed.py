# SPDX-License-Identifier: Apache-2.0
"""Training from a pack compared with the same updates on one batch that stays on the device (the ceiling).

    python3 bench/train_feed.py PACK [--updates 100] [--decode auto,gpu] [option=value …]      # options of leat train

Prints one JSON line for each value of --decode: images/s of both, their ratio, the share of the time for which the
GPU had no data (data_share), and the share for which the host waited, while the GPU may still have computed.
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
        trainer.meter.stepped(trainer.device.type == "cuda")
        images += sum(len(b["view0"]) for b in group)
        del group
    torch.cuda.synchronize() if trainer.device.type == "cuda" else None
    return images / (time.perf_counter() - begin)


def endless(trainer: loop.Trainer):
    while True:
        yield from trainer._batches()
        trainer._end_epoch()


def measure(trainer: loop.Trainer, updates: int, decode: str) -> dict:
    if trainer.loader is not None:
        trainer.loader.close()
    trainer.o.decode, trainer.loader, trainer._ahead, trainer.in_epoch = decode, None, None, 0
    trainer._make_loader(0)
    fed = endless(trainer)
    group = next(fed)

    def again():
        while True:
            yield group

    rate(trainer, 20, again())  # tunes and compiles
    ceiling = [rate(trainer, updates, again())]
    del group
    rate(trainer, 30, fed)
    meter = trainer.meter
    meter._settle()
    meter.waited, meter.host_waited = 0.0, 0.0
    begin = time.perf_counter()
    from_pack = rate(trainer, updates, fed)
    seconds = time.perf_counter() - begin
    meter._settle()
    waited, host = meter.waited, meter.host_waited
    group = next(fed)
    ceiling.append(rate(trainer, updates, again()))
    whole = sum(ceiling) / 2
    row = {"decode": decode, "images_per_s": from_pack, "ceiling": whole, "share": from_pack / whole,
           "data_share": waited / seconds, "host_share": host / seconds, "updates": updates,
           "updates_per_epoch": trainer.per_epoch, "batch": trainer.o.batch_size, "precision": trainer.precision,
           "leat": leat.__version__}
    if trainer.device.type == "cuda":
        row["gpu"] = torch.cuda.get_device_name()
        row["gpu_bytes"] = torch.cuda.max_memory_allocated()
    return row


class HostMeter(report.Meter):
    """Also counts how long the host waited."""

    host_waited = 0.0

    def got(self, wait: float) -> None:
        self.host_waited += wait
        super().got(wait)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("pack")
    parser.add_argument("--updates", type=int, default=100)
    parser.add_argument("--decode", default="auto")
    parser.add_argument("options", nargs="*")
    a = parser.parse_intermixed_args()
    with tempfile.TemporaryDirectory() as output:
        o = settings(a.options, output)
        kind = distributed.accelerator(o.accelerator)
        trainer = loop.Trainer(a.pack, o, distributed.join(kind))
        trainer.prepare()
        trainer.meter = HostMeter(o, trainer.ranks, 0, [])
        trainer.task.train()
        for decode in a.decode.split(","):
            print(json.dumps(measure(trainer, a.updates, decode)), flush=True)
        trainer.loader.close()


if __name__ == "__main__":
    sys.exit(main())
