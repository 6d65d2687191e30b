#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cost of a custom augmentation, in three forms: a Python function over the batch, a numba.cfunc and a C plugin per
sample in the workers. All invert one picture in two (224x224, uint8). Measures CPU time of the function alone per
sample (minimum of the rounds), and images/s of the whole loader with it (median, in turns).

    python bench/python_augment.py PACK [--rounds N]
"""

from __future__ import annotations

import argparse
import ctypes
import os
import statistics
import subprocess
import tempfile
import time

import numpy as np

import leat
from leat._batch import batch_class

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def plugin(folder: str) -> leat.Plugin:
    out = os.path.join(folder, "invert.so")
    subprocess.run(["cc", "-O3", "-shared", "-fPIC", "-DSIDE=224", "-I", os.path.join(ROOT, "include"),
                    os.path.join(ROOT, "examples", "plugin_invert.c"), "-o", out], check=True)
    return leat.load_plugin(out)


def compiled():
    import numba

    @numba.cfunc(leat.numba_signature())
    def invert(cookie, rows, fields, sample, epoch, random):
        pixels = numba.carray(rows[0], (3 * 224 * 224,), np.uint8)
        if random & 1:
            for i in range(pixels.size):
                pixels[i] = 255 - pixels[i]
        return 0

    return invert


def over_batch(batch: leat.Batch) -> leat.Batch:
    chosen = np.random.default_rng(0).random(len(batch.image)) < 0.5
    batch.image[chosen] = 255 - batch.image[chosen]
    return batch


FN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint32,
                      ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64)
SAMPLES = 512


def alone(options: dict) -> float:
    """Microseconds of CPU per sample of the function itself."""
    images = np.full((SAMPLES, 3, 224, 224), 7, np.uint8)
    if "transform" in options:
        batch = batch_class(("image", "label"))(images, np.zeros(SAMPLES))
        start = time.thread_time()
        options["transform"](batch)
    elif "sample_fn" in options:
        fn = FN(options["sample_fn"].address)
        rows = [(ctypes.c_void_p * 1)(image.ctypes.data) for image in images]
        start = time.thread_time()
        for i, row in enumerate(rows):
            fn(None, row, 1, i, 0, i)
    else:
        return 0.0
    return (time.thread_time() - start) / SAMPLES * 1e6


def rate(path: str, options: dict) -> float:
    with leat.Loader(path, 128, "RandomResizedCrop(224)", order="random", as_="numpy", **options) as loader:
        for _ in loader:
            pass
        samples, start = 0, time.perf_counter()
        for _ in range(3):
            for batch in loader:
                samples += len(batch.label)
        return samples / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pack")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ways = {"none": {}, "Python over the batch": {"transform": over_batch},
                "C plugin": {"sample_fn": plugin(folder)}}
        try:
            ways["numba.cfunc"] = {"sample_fn": compiled()}
        except ImportError:
            print("numba is not installed: left out")
        rows = {name: [] for name in ways}
        for _ in range(options.rounds):  # in turns
            for name, chosen in ways.items():
                rows[name].append((alone(chosen), rate(options.pack, chosen)))
    for name, pairs in rows.items():
        costs, rates = zip(*pairs)
        print(f"{name:24} {min(costs):6.1f} us per sample   {statistics.median(rates):7.0f} images/s")


main()
