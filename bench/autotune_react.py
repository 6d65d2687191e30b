#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How soon the controller reacts: something happens to a running loader, and what it decides.

    bench/autotune_react.py --react build-release/bench/autotune_react --pack PACK [SITUATION...]

For each situation a timeline: rate before, the disturbance, each decision with its reason and how
long after the disturbance it came, rate after; then the best of a grid of fixed settings under the
same disturbance. Exit 1 when the first decision takes longer than 3 s, the rate after is below 90 %
of the best fixed setting, or the budget was passed once it had been obeyed. Run on a quiet machine.
"""
import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys

WHAT = {"hog": "three spinning processes", "disk": "every read takes 40 ms",
        "budget": "the budget is lowered to 1.25 of the least it can run with",
        "fast": "the trainer's step goes from 60 to 8 ms", "slow": "the trainer's step goes from 4 to 60 ms"}
KNOBS = {"hog": {"threads"}, "disk": {"io_depth", "prefetch"}, "budget": {"io_depth", "prefetch"},
         "fast": {"threads", "prefetch"}, "slow": {"threads"}}


def run(o, name, seconds, at, fixed=()):
    command = [o.react, o.pack, name, str(seconds), str(at), *map(str, fixed)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=seconds + 30)
    return [json.loads(line) for line in done.stdout.splitlines()]


def rate(rows, first, last):
    rates = [r["rate"] for r in rows if "rate" in r and first <= r["t"] <= last]
    return statistics.mean(rates) if rates else 0.0


def timeline(o, name):
    rows = run(o, name, o.seconds, o.at)
    at = next(r["t"] for r in rows if "disturbance" in r)
    before, after = rate(rows, at - 1.5, at), rate(rows, o.seconds - 3, o.seconds + 1)
    low = min((r["rate"] for r in rows if "rate" in r and at + 0.25 < r["t"] < at + 2), default=0)
    print(f"\n{name}: {WHAT[name]}, at {at:.2f} s; {before:.0f}/s before, {low:.0f}/s at the worst, {after:.0f}/s at the end")
    for r in rows:
        if "knob" in r:
            when = f"{r['t'] - at:+6.2f} s" if r["t"] >= at else f"{r['t']:5.2f} s "
            print(f"  {when}  {r['knob']} {r['from']} -> {r['to']}: {r['reason']}")
    first = next((r["t"] - at for r in rows if "knob" in r and r["t"] > at and r["knob"] in KNOBS[name]), None)
    obeyed = [r for r in rows if "rate" in r and r["t"] > at + 1 and r["budget_used"] > r["budget_limit"]]
    return first, before, after, not obeyed


def best_fixed(o, name):
    cpus = len(os.sched_getaffinity(0))
    found = (0.0, ())
    for point in itertools.product(sorted({1, cpus}), (32, 512), (4, 16)):
        found = max(found, (rate(run(o, name, o.fixed, 0, point), o.fixed - 1.5, o.fixed + 1), point))
    return found


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--react", required=True)
    args.add_argument("--pack", required=True)
    args.add_argument("--seconds", type=float, default=12)
    args.add_argument("--at", type=float, default=5)
    args.add_argument("--fixed", type=float, default=2.5, help="seconds of each fixed setting")
    args.add_argument("names", nargs="*")
    o = args.parse_args()
    bad, table = 0, []
    for name in o.names or WHAT:
        first, before, after, inside = timeline(o, name)
        best, point = best_fixed(o, name)
        good = first is not None and first <= 3 and after >= 0.9 * best and inside
        bad += not good
        table.append(f"| {WHAT[name]} | {'none' if first is None else f'{first:.2f} s'} | {before:.0f} | {after:.0f} | "
                     f"{best:.0f} (threads {point[0]}, io-depth {point[1]}, prefetch {point[2]}) | {after / best:.2f} | "
                     f"{'yes' if inside else 'NO'} |")
    print("\n| what happens | first decision after | samples/s before | after | best fixed, after | share | inside the budget |")
    print("|---|---|---|---|---|---|---|")
    print("\n".join(table))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
