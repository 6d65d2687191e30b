#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The overhead of Python: images/s of leat.Loader against `leat load`, same pack, same flags, in turns in one run.
Prints every pair and the median ratio; 1.00 means no overhead.

    python bench/python_overhead.py PACK [--rounds N] [--as torch]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time

import leat


def command(path: str, options: argparse.Namespace) -> float:
    out = subprocess.run(
        [sys.executable, "-m", "leat", "load", path, "--batch", str(options.batch), "--size", "224",
         "--crop", "rrc", "--flip", "0.5", "--dtype", "u8", "--order", "random", "--seed", "1",
         "--epochs", str(options.epochs + 1), "--threads", str(options.threads), "--json"],
        capture_output=True, text=True, check=True).stdout
    rows = [json.loads(line) for line in out.splitlines()][1:]  # the first epoch warms up
    return sum(row["samples"] for row in rows) / sum(row["seconds"] for row in rows)


def python(path: str, options: argparse.Namespace) -> float:
    with leat.Loader(path, options.batch, [leat.ops.RandomResizedCrop(224), leat.ops.RandomHorizontalFlip(0.5)],
                     order="random", seed=1, threads=options.threads, as_=options.as_) as loader:
        for _ in loader:
            pass
        samples, start = 0, time.perf_counter()
        for _ in range(options.epochs):
            for batch in loader:
                samples += len(batch.label)
        return samples / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pack")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--as", dest="as_", default="numpy")
    options = parser.parse_args()
    python(options.pack, options)
    ratios = []
    for _ in range(options.rounds):
        a, b = command(options.pack, options), python(options.pack, options)
        ratios.append(b / a)
        print(f"leat load {a:8.0f} images/s   leat.Loader ({options.as_}) {b:8.0f} images/s   {b / a:.3f}")
    print(f"median ratio {statistics.median(ratios):.3f}, {min(ratios):.3f} to {max(ratios):.3f}")


main()
