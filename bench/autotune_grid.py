#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The controller's choice against the best of a full grid over threads x reads in flight x prefetch.

    bench/autotune_grid.py --leat build-release/tools/leat --pack PACK [--rounds 2]

Each situation is loaded with default settings (everything decided while running) and with every
point of the grid pinned, in turns, so that what else runs on the machine hits both. The rate is that
of the second half of a run. The budget's peak is printed: it may never pass the limit.
"""
import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys

NAMES = ("threads", "io-depth", "prefetch")


def load(leat, pack, flags, env, epochs):
    command = [leat, "load", pack, "--json", "--epochs", str(epochs), *flags]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, **env), check=True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    half = rows[len(rows) // 2:]
    seconds = sum(r["seconds"] for r in half)
    peak, limit = max(r["budget_peak_bytes"] for r in rows), rows[-1]["budget_limit_bytes"]
    return sum(r["samples"] for r in half) / seconds, peak <= limit, rows[-1]


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--leat", required=True)
    args.add_argument("--pack", required=True)
    args.add_argument("--epochs", type=int, default=6)
    args.add_argument("--rounds", type=int, default=2)
    o = args.parse_args()
    cpus = len(os.sched_getaffinity(0))
    name = os.path.basename(o.pack)
    situations = [
        ("decode-bound", [], {}),
        ("reads of 10 ms", [], {"LEAT_IO_INJECT": f"path={name},delay=10ms"}),
        ("a trainer of 20 ms", ["--step-ms", "20"], {}),
    ]
    grid = list(itertools.product(sorted({1, cpus}), (4, 16, 64), (2, 8)))
    print("| situation | default | settings reached | best of the grid | at | default / best |\n|---|---|---|---|---|---|")
    for title, flags, env in situations:
        flags = ["--batch", "64", "--memory", "1G", *flags]
        rates = {point: [] for point in grid}
        own, inside, last = [], True, {}
        for _ in range(o.rounds):
            for point in grid:
                pinned = [x for n, v in zip(NAMES, point) for x in (f"--{n}", str(v))]
                rate, ok, _ = load(o.leat, o.pack, flags + pinned, env, o.epochs)
                rates[point].append(rate)
                inside &= ok
                if point in grid[:: max(1, len(grid) // 4)]:
                    rate, ok, last = load(o.leat, o.pack, flags, env, o.epochs)
                    own.append(rate)
                    inside &= ok
        best = max(grid, key=lambda p: statistics.median(rates[p]))
        default, top = statistics.median(own), statistics.median(rates[best])
        at = ", ".join(f"{n} {v}" for n, v in zip(NAMES, best))
        reached = f"threads {last['threads']}, io-depth {last['io_depth']}, prefetch {last['prefetch']}"
        print(f"| {title} | {default:.0f}/s | {reached} | {top:.0f}/s | {at} | {default / top:.3f} |"
              f"{'' if inside else ' OVER BUDGET'}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
