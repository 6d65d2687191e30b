#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How near `leat plan --calibrate` comes: predicted against measured over a grid of runs.

    bench/plan_grid.py --leat build-release/tools/leat keep=k.leat raw=r.leat mix=m.leat

Each pack is loaded with two image sizes, one and two threads, two crops, its file in the page
cache or dropped from it. For each run the plan is made first, from a calibration on the same
pack; `leat load` then runs with the memory and prefetch that the plan gave. One JSON line per run and a summary line with
the 50th and 90th percentile of the relative errors. Only on an idle machine do they mean much:
the load average is recorded with each line.
"""
import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile


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
    return subprocess.run(args, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True).stdout


def one(leat, name, pack, size, threads, crop, warm, epochs):
    facts = [leat, "plan", "--dataset", pack, "--gpus", "0", "--dtype", "u8", "--image", str(size),
             "--crop", crop, "--threads", str(threads), "--batch", "128", "--single-loader",
             "--calibrate"]
    if warm:
        facts += ["--storage", "memory"]
    plan = json.loads(run(*facts, "--json"))
    rates = plan["speed"]["rates"]
    (warm_cache if warm else drop_cache)(pack)
    config = plan["config"]
    out = run(leat, "load", pack, "--batch", "128", "--size", str(size), "--crop", crop, "--dtype",
              "u8", "--threads", str(threads), "--epochs", str(epochs), "--memory",
              str(config["memory"]), "--prefetch", str(config["prefetch"]), "--json")
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        f.write(out)
        f.flush()
        # the same calibration for both sides: measured numbers are handed over
        facts.remove("--calibrate")
        facts += ["--cpu-us", str(plan["speed"]["cpu_us_per_sample"])]
        if not warm:
            facts += ["--io-mbs", str(rates["io"]["mid"] * plan["facts"]["sample_bytes"] / 1e6)]
        rows = json.loads(run(*facts, "--compare", f.name, "--json"))["compare"]
    line = {"images": name, "size": size, "threads": threads, "crop": crop,
            "cache": "warm" if warm else "cold", "load": round(os.getloadavg()[0], 2)}
    for r in rows:
        line[r["what"]] = {k: round(r[k], 4) for k in ("predicted", "measured", "error")}
    return line


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))]


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--leat", default="build-release/tools/leat")
    p.add_argument("--sizes", default="160,224")
    p.add_argument("--epochs", type=int, default=1)
    p.add_argument("packs", nargs="+", metavar="NAME=PACK")
    args = p.parse_args()
    errors = {}
    for pack in args.packs:
        name, path = pack.split("=", 1)
        for size, threads, crop, warm in itertools.product(
                args.sizes.split(","), (1, 2), ("rrc", "center"), (True, False)):
            line = one(args.leat, name, path, int(size), threads, crop, warm, args.epochs)
            print(json.dumps(line), flush=True)
            for key, value in line.items():
                if isinstance(value, dict):
                    errors.setdefault(key, []).append(abs(value["error"]))
    print(json.dumps({"runs": max(len(v) for v in errors.values()),
                      **{k: {"p50": round(statistics.median(v), 4),
                             "p90": round(percentile(v, 0.9), 4)} for k, v in errors.items()}}))


if __name__ == "__main__":
    sys.exit(main())
