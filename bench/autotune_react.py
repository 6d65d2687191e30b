#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how fast the controller reacts to a disturbance of a running loader, and what it decides.

    bench/autotune_react.py --react build-release/bench/autotune_react --pack PACK [SITUATION...]

First a grid of fixed settings runs under each disturbance. Then two things run in turns, so that other load affects
both: a timeline of the default settings (rate before, the disturbance, each decision with its reason and its delay,
rate of the last seconds), and the best two settings of the grid. The share is the median over the rounds. Exit 1
when the first decision takes longer than 3 s, when the final rate is below 95 % of the best fixed setting, or when
the budget was exceeded after it was first reached. Run on a quiet machine: other load is also a disturbance.
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
    before, after = rate(rows, at - 1.5, at), rate(rows, o.seconds - o.tail, o.seconds + 1)
    low = min((r["rate"] for r in rows if "rate" in r and at + 0.25 < r["t"] < at + 2), default=0)
    print(f"\n{name}: {WHAT[name]}, at {at:.2f} s; {before:.0f}/s before, {low:.0f}/s at the worst, {after:.0f}/s at the end")
    for r in rows:
        if "knob" in r:
            when = f"{r['t'] - at:+6.2f} s" if r["t"] >= at else f"{r['t']:5.2f} s "
            print(f"  {when}  {r['knob']} {r['from']} -> {r['to']}: {r['reason']}")
    first = next((r["t"] - at for r in rows if "knob" in r and r["t"] > at and r["knob"] in KNOBS[name]), None)
    over = [r for r in rows if "rate" in r and r["t"] > at + 1 and r["budget_used"] > r["budget_limit"]]
    return first, before, after, not over


def fixed_rate(o, name, point):
    return rate(run(o, name, 1 + o.tail, 0, point), 1, 2 + o.tail)


def situation(o, name):
    """A row of the table, and whether it passes."""
    cpus = len(os.sched_getaffinity(0))
    grid = list(itertools.product(sorted({1, cpus}), (32, 512), (4, 16)))
    best = sorted(grid, key=lambda p: -fixed_rate(o, name, p))[:2]
    rounds = [(timeline(o, name), [fixed_rate(o, name, p) for p in best]) for _ in range(o.rounds)]
    shares = [own[2] / max(fixed) for own, fixed in rounds]
    firsts = [own[0] for own, _ in rounds]
    first = None if None in firsts else max(firsts)
    before, after = (statistics.median(own[i] for own, _ in rounds) for i in (1, 2))
    rates = [statistics.median(fixed[i] for _, fixed in rounds) for i in range(len(best))]
    top, inside = rates.index(max(rates)), all(own[3] for own, _ in rounds)
    share, point = statistics.median(shares), best[top]
    good = first is not None and first <= 3 and share >= 0.95 and inside
    return (f"| {WHAT[name]} | {'none' if first is None else f'{first:.2f} s'} | {before:.0f} | {after:.0f} | "
            f"{rates[top]:.0f} (threads {point[0]}, io-depth {point[1]}, prefetch {point[2]}) | {share:.2f} | "
            f"{', '.join(f'{s:.2f}' for s in shares)} | {'yes' if inside else 'NO'} |"), good


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--react", required=True)
    args.add_argument("--pack", required=True)
    args.add_argument("--seconds", type=float, default=12)
    args.add_argument("--at", type=float, default=5)
    args.add_argument("--tail", type=float, default=2, help="seconds that count, at the end of each run")
    args.add_argument("--rounds", type=int, default=2)
    args.add_argument("names", nargs="*")
    o = args.parse_args()
    rows = [situation(o, name) for name in o.names or WHAT]
    print("\n| what happens | first decision after | samples/s before | after | best fixed, after | share | of each round "
          "| inside the budget |\n|---|---|---|---|---|---|---|---|")
    print("\n".join(row for row, _ in rows))
    return 0 if all(good for _, good in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
