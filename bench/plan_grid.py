#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How near `leat plan` comes: predicted against measured over a grid of runs.

    bench/plan_grid.py --leat build-release/tools/leat keep=k.leat raw=r.leat mix=m.leat
    bench/plan_grid.py … --part 2/6 --append grid.jsonl     a part of it
    bench/plan_grid.py --summary grid.jsonl                 errors over all lines

Each pack is loaded with two image sizes, one and two threads, two crops, its file in the page
cache or dropped from it, by `leat load` with the plan's settings:

  samples/s    nobody waits between batches. The median of runs before and after the calibration, so
               that a drift of the machine cancels; `spread` is half their range over it: what no
               prediction can be better than
  plain        the same against the plan without a calibration: tables and the pack's index alone
  peak memory  RSS; the consumer takes twice as long as the loader, so that every queue fills up:
               the moment that gets a job killed, and what the plan predicts (ram.resident_bytes)

One JSON line per setting, warm and cold; the summary has the 50th and 90th percentile and the largest
of the relative errors of each. Only on an idle machine do they mean much: the load average is in
each line. A setting takes some 15 seconds.
"""
import argparse
import itertools
import json
import math
import os
import statistics
import subprocess
import sys

BATCH = 128
MEMORY_BATCHES = 11
RUNS_BEFORE, RUNS_AFTER = 2, 3  # of a calibration
WARM_SECONDS = 0.7


def drop_cache(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def warm_cache(path):
    with open(path, "rb") as f:
        while f.read(1 << 22):
            pass


def run(*args):
    out = subprocess.run(args, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return [json.loads(line) for line in out.stdout.splitlines()]


def row(predicted, measured):
    middle = statistics.median(measured)
    return {"predicted": round(predicted, 1), "measured": round(middle, 1),
            "error": round((predicted - middle) / middle, 4),
            "spread": round((max(measured) - min(measured)) / 2 / middle, 4)}


class Setting:
    """One setting of the grid: its plan and its runs."""

    def __init__(self, leat, pack, size, threads, crop):
        self.pack = pack
        self.facts = [leat, "plan", "--dataset", pack, "--gpus", "0", "--dtype", "u8", "--image", str(size),
                      "--crop", crop, "--threads", str(threads), "--batch", str(BATCH), "--single-loader", "--json"]
        self.plain = self.plan()
        config = self.plain["config"]
        self.load = [leat, "load", pack, "--batch", str(BATCH), "--size", str(size), "--crop", crop, "--dtype", "u8",
                     "--threads", str(threads), "--memory", str(config["memory"]),
                     "--prefetch", str(config["prefetch"]), "--json"]
        self.rates = {warm: [] for warm in (True, False)}

    def plan(self, *flags):
        return run(*self.facts, *flags)[0]

    def set_cache(self, warm):
        (warm_cache if warm else drop_cache)(self.pack)

    def measure(self, warm):
        self.set_cache(warm)
        guess = self.rates[False][-1] if warm else 0  # a cold run comes first: warm ones are no slower
        epochs = max(1, math.ceil(WARM_SECONDS * guess / self.plain["facts"]["samples"]))
        done = run(*self.load, "--epochs", str(epochs))
        self.rates[warm].append(sum(e["samples"] for e in done) / sum(e["seconds"] for e in done))

    def measure_all(self, times):
        for _ in range(times):
            self.measure(False)
            self.measure(True)

    def memory(self, warm, rate):
        self.set_cache(warm)
        held = run(*self.load, "--step-ms", str(2000 * BATCH / rate), "--stop-after", str(MEMORY_BATCHES * BATCH))
        return max(e["peak_rss_bytes"] for e in held) / 1e6


def lines_of(leat, name, pack, size, threads, crop):
    """Two lines, warm and cold, from one calibration."""
    setting = Setting(leat, pack, size, threads, crop)
    setting.measure_all(RUNS_BEFORE)
    calibrated = setting.plan("--calibrate")
    setting.measure_all(RUNS_AFTER)
    in_memory = setting.plan("--storage", "memory")
    for warm in (True, False):
        speed, plain = calibrated["speed"], setting.plain["speed"]
        rate = (speed["rates"]["cpu"] if warm else speed["first_epoch_samples_per_s"])["mid"]
        guess = (plain["rates"]["cpu"] if warm else plain["first_epoch_samples_per_s"])["mid"]
        ram = (in_memory if warm else calibrated)["ram"]
        peaks = [setting.memory(warm, rate) for _ in range(1 if warm else 3)]
        yield {"images": name, "size": size, "threads": threads, "crop": crop, "cache": "warm" if warm else "cold",
               "load": round(os.getloadavg()[0], 2),
               "samples/s": row(rate, setting.rates[warm]), "plain": row(guess, setting.rates[warm]),
               "peak memory": row(ram["resident_bytes"] / 1e6, peaks)}


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))]


def summary(lines):
    """A row per quantity and state of the cache."""
    for cache, key in itertools.product(("warm", "cold"), ("samples/s", "plain", "peak memory")):
        some = [line[key] for line in lines if line["cache"] == cache]
        if some:
            errors, spreads = [abs(r["error"]) for r in some], [r["spread"] for r in some]
            yield {"cache": cache, "of": key, "runs": len(some), "p50": percentile(errors, 0.5),
                   "p90": percentile(errors, 0.9), "max": max(errors),
                   "mean": round(statistics.mean(r["error"] for r in some), 4),
                   "spread p50": percentile(spreads, 0.5), "spread p90": percentile(spreads, 0.9)}


def print_summary(lines):
    for line in summary(lines):
        print(json.dumps(line))


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--leat", default="build-release/tools/leat")
    p.add_argument("--sizes", default="160,224")
    p.add_argument("--part", default="1/1", metavar="I/N", help="every N-th setting of the grid, from the I-th on")
    p.add_argument("--append", metavar="FILE", help="add the lines to this file as well")
    p.add_argument("--summary", metavar="FILE", help="only sum up what --append wrote")
    p.add_argument("packs", nargs="*", metavar="NAME=PACK")
    args = p.parse_args()
    if args.summary:
        with open(args.summary, encoding="utf-8") as f:
            print_summary([json.loads(line) for line in f])
        return
    part, parts = (int(n) for n in args.part.split("/"))
    grid = list(itertools.product(args.packs, args.sizes.split(","), (1, 2), ("rrc", "center")))
    lines = []
    for pack, size, threads, crop in grid[part - 1::parts]:
        name, path = pack.split("=", 1)
        for line in lines_of(args.leat, name, path, int(size), threads, crop):
            print(json.dumps(line), flush=True)
            lines.append(line)
            if args.append:
                with open(args.append, "a", encoding="utf-8") as f:
                    f.write(json.dumps(line) + "\n")
    print_summary(lines)


if __name__ == "__main__":
    sys.exit(main())
