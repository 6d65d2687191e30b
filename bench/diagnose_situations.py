#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The doctor's situations for a PyTorch DataLoader, through leat.diagnose.

    bench/diagnose_situations.py --images FOLDER [NAME...]        (leat, torch and Pillow importable)

Each row stages one problem of an ordinary training loop: Pillow decodes, workers are processes. A verdict that is
wrong and sure fails the run.
"""
import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

import torch
from PIL import Image, ImageFilter

import leat

SURE = 0.6


class Photos(torch.utils.data.Dataset):
    """JPEGs, decoded and cropped by Pillow, with optional extra costs per sample."""

    def __init__(self, names, side=224, wait=0.0, blurs=0, factor=1, png=None, bad=0):
        self.names, self.side, self.wait, self.blurs, self.factor = names, side, wait, blurs, factor
        self.png, self.bad = png, bad

    def __len__(self):
        return 100000

    def __getitem__(self, i):
        if self.wait:
            time.sleep(self.wait)  # a bucket with high latency
        path = self.png or self.names[i % len(self.names)]
        with Image.open(path) as image:
            image = image.convert("RGB")
        if self.factor > 1:
            image = image.resize((image.width * self.factor, image.height * self.factor))
        for _ in range(self.blurs):
            image = image.filter(ImageFilter.GaussianBlur(2))
        image = image.resize((self.side, self.side))
        return torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8)


class Ready(torch.utils.data.Dataset):
    def __len__(self):
        return 1000000

    def __getitem__(self, i):
        return torch.zeros(8)


@contextlib.contextmanager
def hogs(count):
    """Busy processes that are not children of this one: a loader's own workers are."""
    started = [int(subprocess.run(["sh", "-c", "(while :; do :; done) >/dev/null 2>&1 & echo $!"],
                                  capture_output=True, text=True, check=True).stdout) for _ in range(count)]
    try:
        yield
    finally:
        for pid in started:
            os.kill(pid, signal.SIGKILL)


def loader(data, batch=16, workers=None, **more):
    workers = max(1, len(os.sched_getaffinity(0))) if workers is None else workers
    return torch.utils.data.DataLoader(data, batch_size=batch, num_workers=workers, shuffle=False, **more)


def situations(names, folder):
    cpus = len(os.sched_getaffinity(0))
    nothing = contextlib.nullcontext

    def png():
        path = os.path.join(folder, "diagnose.png")
        with Image.open(names[0]) as image:
            image.resize((1024, 768)).save(path)
        return path
    yield "slow storage", "a sample arrives after 60 ms", "io", lambda: loader(Photos(names, wait=0.06)), 4, nothing()
    yield ("slow storage, no workers", "the same in the trainer's own process", "io",
           lambda: loader(Photos(names, wait=0.03), batch=4, workers=0), 4, nothing())
    yield "JPEG decode", "Pillow, as many workers as CPUs", "cpu", lambda: loader(Photos(names)), 4, nothing()
    yield ("JPEG decode, no workers", "the same in the trainer's own process", "cpu",
           lambda: loader(Photos(names), batch=8, workers=0), 4, nothing())
    yield "huge images", "4 times the side", "cpu", lambda: loader(Photos(names, factor=4), batch=4), 4, nothing()
    yield ("heavy augmentation", "six blurs a sample", "cpu", lambda: loader(Photos(names, blurs=6), batch=8), 4,
           nothing())
    yield "decode-heavy PNG", "1024 x 768 PNG", "cpu", lambda: loader(Photos(names, png=png()), batch=8), 4, nothing()
    yield "CPU hog", f"{2 * cpus} busy processes", "cpu", lambda: loader(Photos(names), batch=8), 4, hogs(2 * cpus)
    yield "slow trainer", "a step of 500 ms", "trainer", lambda: loader(Photos(names), batch=8), 500, nothing()
    yield "nothing to do", "zeros, a step of 20 ms", "trainer", lambda: loader(Ready(), batch=64), 20, nothing()
    yield ("too many workers", f"{8 * cpus} workers for {cpus} CPUs", "cpu",
           lambda: loader(Photos(names), batch=8, workers=8 * cpus), 4, nothing())


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--images", required=True)
    args.add_argument("--work", default=tempfile.gettempdir(), help="where a picture is written")
    args.add_argument("--steps", type=int, default=40)
    args.add_argument("names", nargs="*")
    o = args.parse_args()
    names = sorted(os.path.join(r, f) for r, _, files in os.walk(o.images) for f in files if f.lower().endswith(
        (".jpg", ".jpeg")))
    random.Random(1).shuffle(names)
    torch.set_num_threads(1)
    wrong = bad = count = 0
    print("| situation | staged | says | sure | lost | replay | right |\n|---|---|---|---|---|---|---|")
    for name, staged, limit, make, step_ms, around in situations(names, o.work):
        if o.names and name not in o.names:
            continue
        with around:
            d = leat.diagnose(make(), lambda batch, ms=step_ms: time.sleep(ms / 1e3), steps=o.steps, seconds=15)
        right = d.limit == limit
        count += 1
        wrong += not right
        bad += not right and d.confidence >= SURE
        gain = f"{d.replay['gain']:.1f}x" if d.replay else ""
        print(f"| {name} | {staged} | {d.limit}, {d.cause} | {d.confidence:.2f} | {100 * (d.lost or 0):.0f} % | "
              f"{gain} | {'yes' if right else 'NO: ' + d.verdict} |", flush=True)
    print(f"\n{count - wrong} of {count} right, {bad} wrong and sure")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
