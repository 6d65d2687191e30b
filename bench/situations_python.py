#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one situation of a Python loader for situations.py in this process; prints the verdict as JSON.

    bench/situations_python.py NAME --leat build-release/tools/leat --work DIR [--lifted]

--lifted stages the same without its cause.
"""
import argparse
import json
import os
import threading
import time

import numpy

import leat
from situations import Data

OPS = "RandomResizedCrop(224)"
STEPS = 60


def busy(seconds):
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def train(loader, step, seconds=6.0):
    """A training loop over epochs, and the loader's own doctor."""
    begin, steps = time.monotonic(), 0
    while time.monotonic() - begin < seconds and steps < 400:
        for batch in loader:
            step(batch)
            steps += 1
            if time.monotonic() - begin >= seconds:
                break
    return loader.doctor()


def leat_loader(pack, **more):
    return leat.Loader(pack, batch_size=64, image=OPS, doctor=True, **more)


# ---- leat.Loader ---------------------------------------------------------------------------------


def bursty_trainer(data, lifted):
    count = [0]

    def step(_):
        count[0] += 1
        time.sleep(0.4 if count[0] % 10 == 0 else 0.06)
    return train(leat_loader(data.tiled()), step)


def second_loader(data, lifted):
    stop = threading.Event()

    def other():
        with leat.Loader(data.keep(), batch_size=64, image=OPS) as loader:
            while not stop.is_set():
                for _ in loader:
                    if stop.is_set():
                        break
    thread = threading.Thread(target=other)
    if not lifted:
        thread.start()
    try:
        return train(leat_loader(data.keep()), lambda _: time.sleep(0.005))
    finally:
        stop.set()
        if not lifted:
            thread.join()


def python_loop(data, lifted):
    return train(leat_loader(data.tiled()), lambda _: busy(0.08))


def matmul(data, lifted):
    a = numpy.random.default_rng(0).random((1400, 1400), dtype=numpy.float32)

    def step(_):
        for _ in range(4):
            a @ a
    return train(leat_loader(data.raw()), step)


def affinity(data, lifted):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    return train(leat_loader(data.keep()), lambda _: time.sleep(0.005))


def transform(data, lifted):
    def slow(batch):
        busy(0.06)
        return batch
    return train(leat_loader(data.raw(), transform=None if lifted else slow), lambda _: time.sleep(0.005))


def transform_sleeps(data, lifted):
    def late(batch):
        time.sleep(0.04)
        return batch
    return train(leat_loader(data.raw(), transform=None if lifted else late), lambda _: time.sleep(0.005))


def short_transform(data, lifted):
    def quick(batch):
        busy(0.001)
        return batch
    return train(leat_loader(data.tiled(), transform=None if lifted else quick), lambda _: time.sleep(0.08))


def transform_one_thread(data, lifted):
    def slow(batch):
        busy(0.05)
        return batch
    return train(leat_loader(data.raw(), threads=1, transform=None if lifted else slow), lambda _: time.sleep(0.002))


def transform_diagnosed(data, lifted):
    def late(batch):
        time.sleep(0.05)
        return batch
    loader = leat.Loader(data.raw(), batch_size=32, image=OPS, transform=None if lifted else late)
    return ask(loader, 0.01)


def in_memory(pack):
    """The pack, read into the page cache."""
    with open(pack, "rb") as f:
        while f.read(1 << 22):
            pass
    return pack


def short_epochs(data, lifted):
    """Epochs of ten batches that are quickly made, and next to no training."""
    more = {"weights": numpy.ones(320), "draws": 320 * 400} if lifted else {}
    loader = leat.Loader(in_memory(data.tiny()), batch_size=32, image="Resize((32, 32))", indices=range(320), doctor=True, **more)
    begin = time.monotonic()
    while time.monotonic() - begin < 4:
        for _ in loader:
            busy(0.0001)
    return loader.doctor()


def light_step(data, lifted):
    """One long epoch of 320 samples, again and again, with a step of 0.3 ms."""
    loader = leat.Loader(in_memory(data.tiled()), batch_size=32, image=OPS, indices=range(320), weights=numpy.ones(320),
                         draws=32000, doctor=True)
    begin = time.monotonic()
    for _ in loader:
        busy(0.0003)
        if time.monotonic() - begin >= 6:
            break
    return loader.doctor()


# ---- torch.utils.data.DataLoader -----------------------------------------------------------------


class Samples:
    """Samples with a configurable cost: a wait, Python code, a JPEG, blurs, bytes."""

    def __init__(self, names=(), wait=0.0, spin=0.0, blurs=0, values=8):
        self.names, self.wait, self.spin, self.blurs, self.values = names, wait, spin, blurs, values

    def __len__(self):
        return 100000

    def __getitem__(self, i):
        import torch
        if self.wait:
            time.sleep(self.wait)
        if self.spin:
            count = 0
            until = time.perf_counter() + self.spin
            while time.perf_counter() < until:
                count += i % 7
        if not self.names:
            return torch.zeros(self.values)
        from PIL import Image, ImageFilter
        with Image.open(self.names[i % len(self.names)]) as image:
            image = image.convert("RGB").resize((224, 224))
        for _ in range(self.blurs):
            image = image.filter(ImageFilter.GaussianBlur(3))
        return torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8)


def slow_collate(samples):
    import torch
    busy(0.08)
    return torch.stack(samples)


def late_collate(samples):
    import torch
    time.sleep(0.05)
    return torch.stack(samples)


def data_loader(samples, workers, batch=16, **more):
    import torch
    torch.set_num_threads(1)
    return torch.utils.data.DataLoader(samples, batch_size=batch, num_workers=workers, **more)


def ask(loader, step_s):
    return leat.diagnose(loader, lambda _: time.sleep(step_s), steps=STEPS, seconds=8)


def photos(data):
    folder = data.photos()
    return sorted(os.path.join(r, f) for r, _, fs in os.walk(folder) for f in fs)


def late_samples(data, lifted):
    return ask(data_loader(Samples(wait=0.008), 8 if lifted else 2), 0.005)


def slow_disk(data, lifted):
    folder = data.many_photos()
    files = sorted(os.path.join(r, f) for r, _, fs in os.walk(folder) for f in fs)
    return ask(data_loader(Samples(files), 2), 0.005)


def python_code(data, lifted):
    return ask(data_loader(Samples(spin=0.004), 2), 0.005)


def collate(data, lifted):
    return ask(data_loader(Samples(), 2, collate_fn=slow_collate), 0.005)


def collate_no_workers(data, lifted):
    return ask(data_loader(Samples(), 0, collate_fn=slow_collate), 0.005)


def collate_waits(data, lifted):
    return ask(data_loader(Samples(), 2, collate_fn=None if lifted else late_collate), 0.005)


def collate_waits_no_workers(data, lifted):
    return ask(data_loader(Samples(), 0, collate_fn=None if lifted else late_collate), 0.005)


def jpeg_no_workers(data, lifted):
    return ask(data_loader(Samples(photos(data)), 2 if lifted else 0), 0.005)


def slow_model(data, lifted):
    return ask(data_loader(Samples(photos(data)), 2), 0.4)


def busy_step(data, lifted):
    return leat.diagnose(data_loader(Samples(), 1), lambda _: busy(0.05), steps=STEPS, seconds=8)


def large_tensors(data, lifted):
    return ask(data_loader(Samples(values=320000), 2), 0.001)


def blur(data, lifted):
    return ask(data_loader(Samples(photos(data), blurs=6), 2), 0.005)


def iterable_waits(data, lifted):
    def batches():
        while True:
            time.sleep(0.03)
            yield numpy.zeros(16)
    return ask(batches(), 0.005)


def stream_of(samples):
    import torch

    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            return (samples[i] for i in range(len(samples)))
    return Stream()


def iterable_dataset(data, lifted):
    return ask(data_loader(stream_of(Samples(spin=0.004)), 2), 0.005)


def png_files(data, lifted):
    folder = data.folder("png", [(512, 384)], 60, "png")
    files = sorted(os.path.join(r, f) for r, _, fs in os.walk(folder) for f in fs)
    return ask(data_loader(Samples(files), 2), 0.002)


def one_worker(data, lifted):
    return ask(data_loader(Samples(photos(data)), 2 if lifted else 1), 0.002)


def busy_enough(data, lifted):
    return ask(data_loader(Samples(spin=0.002), 2), 0.3)


class Sorted:
    """Samples that NumPy computes."""

    def __len__(self):
        return 100000

    def __getitem__(self, i):
        return numpy.sort(numpy.random.default_rng(i).random(150000))[:8]


def numpy_samples(data, lifted):
    return ask(data_loader(Sorted(), 2), 0.005)


class Lists:
    """Samples that are Python objects."""

    def __len__(self):
        return 100000

    def __getitem__(self, i):
        return LIST


LIST = list(range(4000))


def as_they_are(samples):
    return [list(s) for s in samples]


def many_objects(data, lifted):
    return ask(data_loader(Lists(), 2, batch=64, collate_fn=as_they_are), 0.001)


SITUATIONS = {
    "short epochs, in memory": short_epochs, "light step, in memory": light_step,
    "short transform": short_transform, "transform, one thread": transform_one_thread, "iterable: waits": iterable_waits,
    "DataLoader: iterable": iterable_dataset, "DataLoader: PNG": png_files, "DataLoader: one worker": one_worker,
    "DataLoader: busy, but enough": busy_enough, "DataLoader: NumPy": numpy_samples, "DataLoader: many objects": many_objects,
    "bursty trainer": bursty_trainer, "second loader": second_loader, "Python loop": python_loop, "matmul": matmul,
    "affinity": affinity, "transform, diagnosed": transform_diagnosed, "transform": transform, "transform sleeps": transform_sleeps,
    "DataLoader: late samples": late_samples, "DataLoader: slow disk": slow_disk, "DataLoader: Python code": python_code, "DataLoader: collate": collate,
    "DataLoader: collate waits": collate_waits, "DataLoader: collate waits, no workers": collate_waits_no_workers,
    "DataLoader: collate, no workers": collate_no_workers, "DataLoader: JPEG, no workers": jpeg_no_workers,
    "DataLoader: slow model": slow_model, "DataLoader: busy step": busy_step,
    "DataLoader: large tensors": large_tensors, "DataLoader: blur": blur,
}


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("name", choices=SITUATIONS)
    args.add_argument("--leat", required=True)
    args.add_argument("--work", required=True)
    args.add_argument("--lifted", action="store_true")
    o = args.parse_args()
    verdict = SITUATIONS[o.name](Data(o.leat, o.work), o.lifted)
    print(json.dumps(dict(verdict)))


if __name__ == "__main__":
    main()
