#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the controller's settings with the best of a full grid over threads x reads in flight x prefetch.

    bench/autotune_grid.py --leat build-release/tools/leat --pack PACK [--rounds 3] [NAME...]

First every point of the grid is run with pinned settings. Then the best three points and the default settings
(everything decided at run time) are run in turns, so that other load on the machine affects all of them equally and
the best point is not just the luckiest one. The share is the median over these rounds of default / best. In two of
the situations the start values are clearly wrong: slow reads need many more in flight, a slow trainer needs fewer
workers.

Every run counts epochs over the same time after settling: --settle seconds for the default, one second for pinned
settings, which never change. The peak of the budget must never exceed the limit. Exit 1 when the default stays below
95 % of the best or a budget was exceeded.
"""
import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import time

NAMES = ("threads", "io-depth", "prefetch")


class Run:
    """Runs `leat load` for a given time; returns its rate after settling, and the decisions."""

    def __init__(self, leat, pack, flags, env, settle, seconds):
        command = [leat, "load", pack, "--json", "--epochs", "1000000", *flags]
        rows, begin = [], time.monotonic()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ, **env)) as load:
            for line in load.stdout:
                rows.append(dict(json.loads(line), ended=time.monotonic() - begin))
                if rows[-1]["ended"] > settle + seconds:
                    break
            load.kill()
        counted = [r for r in rows if r["ended"] - r["seconds"] >= settle] or rows[-1:]
        self.rate = sum(r["samples"] for r in counted) / sum(r["seconds"] for r in counted)
        self.inside = max(r["budget_peak_bytes"] for r in rows) <= rows[-1]["budget_limit_bytes"]
        self.decisions = [d for r in rows for d in r["decisions"]]
        last = {n: rows[-1][n.replace("-", "_")] for n in NAMES}
        first = dict(last)
        for d in reversed(self.decisions):
            first[d["knob"].replace("_", "-")] = d["from"]
        self.began, self.reached = (", ".join(f"{n} {v}" for n, v in at.items()) for at in (first, last))


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--leat", required=True)
    args.add_argument("--pack", required=True)
    args.add_argument("--rounds", type=int, default=3, help="of the default and the best points, in turns")
    args.add_argument("--settle", type=float, default=5, help="seconds before the default counts")
    args.add_argument("--seconds", type=float, default=2, help="seconds that count")
    args.add_argument("--verbose", action="store_true", help="print every decision")
    args.add_argument("names", nargs="*", help="decode, reads, trainer; all when none is given")
    o = args.parse_args()
    cpus = len(os.sched_getaffinity(0))
    situations = {  # name: the situation, flags, environment
        "decode": ("decode-bound", [], {}),
        "reads": ("every read takes 50 ms", [],
                  {"LEAT_IO_INJECT": f"path={os.path.basename(o.pack)},delay=50ms"}),
        "trainer": ("a trainer's step of 50 ms", ["--step-ms", "50"], {}),
    }
    grid = list(itertools.product(sorted({1, cpus}), (32, 128, 512), (2, 8)))
    bad = 0
    print("| situation | began with | reached | samples/s | best of the grid | at | share | of each round | decisions |\n"
          "|---|---|---|---|---|---|---|---|---|")
    for title, flags, env in (situations[n] for n in o.names or situations):
        def load(point, settle):
            pinned = [x for n, v in zip(NAMES, point) for x in (f"--{n}", str(v))]
            return Run(o.leat, o.pack, ["--batch", "64", "--memory", "1G", *flags, *pinned], env, settle, o.seconds)

        runs = {point: load(point, 1) for point in grid}
        best = sorted(grid, key=lambda p: -runs[p].rate)[:3]
        rounds = [(load((), o.settle), [load(p, 1) for p in best]) for _ in range(o.rounds)]
        shares = [own.rate / max(r.rate for r in fixed) for own, fixed in rounds]
        share, own = statistics.median(shares), rounds[-1][0]
        rates = [statistics.median(fixed[i].rate for _, fixed in rounds) for i in range(len(best))]
        inside = all(r.inside for r in [*runs.values(), *(r for own, fixed in rounds for r in [own, *fixed])])
        top = rates.index(max(rates))
        at = ", ".join(f"{n} {v}" for n, v in zip(NAMES, best[top]))
        bad += share < 0.95 or not inside
        print(f"| {title} | {own.began} | {own.reached} | {statistics.median(r.rate for r, _ in rounds):.0f} | "
              f"{rates[top]:.0f} | {at} | {share:.3f} | {', '.join(f'{s:.2f}' for s in shares)} | {len(own.decisions)} |"
              f"{'' if inside else ' OVER BUDGET'}", flush=True)
        for d in own.decisions if o.verbose else []:
            print(f"    {d['at_s']:6.2f} s  {d['knob']} {d['from']} -> {d['to']}: {d['reason']}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
