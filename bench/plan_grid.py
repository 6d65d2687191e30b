#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How near `leat plan --calibrate` comes: predicted against measured over a grid of runs.

    bench/plan_grid.py --leat build-release/tools/leat keep=k.leat raw=r.leat mix=m.leat
    bench/plan_grid.py … --part 2/5 --append grid.jsonl     a part of it
    bench/plan_grid.py --summary grid.jsonl                 errors over all lines

Each pack is loaded with two image sizes, one and two threads, two crops, its file in the page
cache or dropped from it. The plan is made first, from a calibration on the same pack. Then two
runs of `leat load` with the plan's settings:

  samples/s    nobody waits between batches
  peak memory  RSS; the consumer takes twice as long as the loader, so that every queue fills up:
               the moment that gets a job killed, and what the plan predicts (ram.resident_bytes)

One JSON line per run; the summary has the 50th and 90th percentile and the largest of the relative
errors. Only on an idle machine do they mean much: the load average is in each line.
"""
import argparse
import itertools
import json
import math
import os
import subprocess
import sys

BATCH = 128
MEMORY_BATCHES = 11


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
    return {"predicted": round(predicted, 1), "measured": round(measured, 1),
            "error": round((predicted - measured) / measured, 4)}


def runs(leat, name, pack, size, threads, crop):
    """Two lines, warm and cold, from one calibration."""
    facts = [leat, "plan", "--dataset", pack, "--gpus", "0", "--dtype", "u8", "--image", str(size), "--crop", crop,
             "--threads", str(threads), "--batch", str(BATCH), "--single-loader", "--json"]
    plan = run(*facts, "--calibrate")[0]
    for warm in (True, False):
        if warm:
            rate = plan["speed"]["rates"]["cpu"]["mid"]
            ram = run(*facts, "--storage", "memory")[0]["ram"]
        else:
            rate = plan["speed"]["first_epoch_samples_per_s"]["mid"]
            ram = plan["ram"]
        config = plan["config"]
        load = [leat, "load", pack, "--batch", str(BATCH), "--size", str(size), "--crop", crop, "--dtype", "u8",
                "--threads", str(threads), "--memory", str(config["memory"]), "--prefetch", str(config["prefetch"]),
                "--json"]
        set_cache = warm_cache if warm else drop_cache
        set_cache(pack)
        samples = plan["facts"]["samples"]
        epochs = max(1, math.ceil(2 * rate / samples)) if warm else 1
        measured = run(*load, "--epochs", str(epochs))
        set_cache(pack)
        held = run(*load, "--step-ms", str(2000 * BATCH / rate), "--stop-after", str(MEMORY_BATCHES * BATCH))
        yield {"images": name, "size": size, "threads": threads, "crop": crop, "cache": "warm" if warm else "cold",
               "load": round(os.getloadavg()[0], 2),
               "samples/s": row(rate, sum(e["samples"] for e in measured) / sum(e["seconds"] for e in measured)),
               "peak memory": row(ram["resident_bytes"] / 1e6, max(e["peak_rss_bytes"] for e in held) / 1e6)}


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))]


def summary(lines):
    out = {"runs": len(lines)}
    for key in ("samples/s", "peak memory"):
        errors = [abs(line[key]["error"]) for line in lines]
        out[key] = {"p50": percentile(errors, 0.5), "p90": percentile(errors, 0.9), "max": max(errors)}
    return out


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
            print(json.dumps(summary([json.loads(line) for line in f])))
        return
    part, parts = (int(n) for n in args.part.split("/"))
    grid = list(itertools.product(args.packs, args.sizes.split(","), (1, 2), ("rrc", "center")))
    lines = []
    for pack, size, threads, crop in grid[part - 1::parts]:
        name, path = pack.split("=", 1)
        for line in runs(args.leat, name, path, int(size), threads, crop):
            print(json.dumps(line), flush=True)
            lines.append(line)
            if args.append:
                with open(args.append, "a", encoding="utf-8") as f:
                    f.write(json.dumps(line) + "\n")
    print(json.dumps(summary(lines)))


if __name__ == "__main__":
    sys.exit(main())
