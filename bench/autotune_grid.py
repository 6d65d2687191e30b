#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The controller's choice against the best of a full grid over threads x reads in flight x prefetch.

    bench/autotune_grid.py --leat build-release/tools/leat --pack PACK [--rounds 2] [NAME...]

Each situation is loaded with default settings (everything decided while running) and with every
point of the grid pinned, in turns, so that what else runs on the machine hits both. In two of them
the start values are clearly wrong: slow reads want many more in flight than the start has, a slow
trainer fewer workers. The rate is that of the second half of a run; the budget's peak may never pass
the limit. Exit 1 when the default stays below 95 % of the best or a budget was passed.
"""
import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys

NAMES = ("threads", "io-depth", "prefetch")


class Run:
    """One `leat load`: rate and CPU time of its second half, and what was decided."""

    def __init__(self, leat, pack, flags, env, epochs):
        command = [leat, "load", pack, "--json", "--epochs", str(epochs), *flags]
        done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, **env), check=True)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        half = rows[len(rows) // 2:]
        samples = sum(r["samples"] for r in half)
        self.rate = samples / sum(r["seconds"] for r in half)
        self.inside = max(r["budget_peak_bytes"] for r in rows) <= rows[-1]["budget_limit_bytes"]
        self.decisions = [d for r in rows for d in r["decisions"]]
        self.reached = ", ".join(f"{n} {rows[-1][n.replace('-', '_')]}" for n in NAMES)
        first = {}
        for d in self.decisions:
            first.setdefault(d["knob"], d["from"])
        self.began = ", ".join(f"{n} {first.get(n.replace('-', '_'), rows[-1][n.replace('-', '_')])}" for n in NAMES)


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--leat", required=True)
    args.add_argument("--pack", required=True)
    args.add_argument("--rounds", type=int, default=1)
    args.add_argument("--verbose", action="store_true", help="print every decision")
    args.add_argument("names", nargs="*", help="decode, reads, trainer; all when none is given")
    o = args.parse_args()
    cpus = len(os.sched_getaffinity(0))
    # name: what is true, flags, environment, epochs with fixed settings, epochs with the controller
    situations = {
        "decode": ("decode-bound", [], {}, 6, 24),
        "reads": ("every read takes 50 ms", [],
                  {"LEAT_IO_INJECT": f"path={os.path.basename(o.pack)},delay=50ms"}, 2, 16),
        "trainer": ("a trainer's step of 50 ms", ["--step-ms", "50"], {}, 1, 4),
    }
    grid = list(itertools.product(sorted({1, cpus}), (32, 128, 512), (2, 8)))
    bad = 0
    print("| situation | began with | reached | samples/s | best of the grid | at | share | decisions |\n"
          "|---|---|---|---|---|---|---|---|")
    for title, flags, env, few, many in (situations[n] for n in o.names or situations):
        flags = ["--batch", "64", "--memory", "1G", *flags]
        fixed, own = {point: [] for point in grid}, []
        for _ in range(o.rounds):
            for point in grid:
                pinned = [x for n, v in zip(NAMES, point) for x in (f"--{n}", str(v))]
                fixed[point].append(Run(o.leat, o.pack, flags + pinned, env, few))
            own.append(Run(o.leat, o.pack, flags, env, many))
        rates = {point: statistics.median(r.rate for r in runs) for point, runs in fixed.items()}
        best = max(grid, key=rates.get)
        rate = statistics.median(r.rate for r in own)
        inside = all(r.inside for runs in [own, *fixed.values()] for r in runs)
        at = ", ".join(f"{n} {v}" for n, v in zip(NAMES, best))
        bad += rate < 0.95 * rates[best] or not inside
        print(f"| {title} | {own[-1].began} | {own[-1].reached} | {rate:.0f} | {rates[best]:.0f} | {at} | "
              f"{rate / rates[best]:.3f} | {len(own[-1].decisions)} |{'' if inside else ' OVER BUDGET'}", flush=True)
        for d in own[-1].decisions if o.verbose else []:
            print(f"    {d['at_s']:6.2f} s  {d['knob']} {d['from']} -> {d['to']}: {d['reason']}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
