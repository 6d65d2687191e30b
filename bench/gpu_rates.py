#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares leat plan's GPU model with every step of data/plan/steps.txt; held-out steps separately.

    bench/gpu_rates.py --leat build-release/tools/leat

Needs no GPU: the figures are measured or published (steps.txt has the sources). Rows used by the model match by
definition; the others show how good it is.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "plan", "steps.txt")


def rows():
    names = None
    with open(TABLE, encoding="ascii") as f:
        for line in f:
            if line.startswith("#") or "|" not in line:
                continue
            cells = [c.strip() for c in line.split("|")]
            if names is None:
                names = [c.split(":")[0] for c in cells]
                continue
            yield dict(zip(names, cells))


def planned(leat, r):
    flags = ["--model", r["model"], "--gpu", r["gpu"], "--batch", r["batch"], "--precision", r["precision"], "--image",
             r["image"], "--gpus", "1"]
    flags += ["--compile"] if r["compiled"] == "1" else []
    flags += ["--unfused-attention"] if r["unfused"] == "1" else []
    done = subprocess.run([leat, "plan", "--json", *flags], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)["speed"]["rates"]["gpu"]


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--leat", required=True)
    o = args.parse_args()
    errors, inside, outside = [], 0, 0
    print("| model, card, batch, precision | where | figure | plan (interval) | error | |\n|" + "---|" * 6)
    for r in rows():
        g, real = planned(o.leat, r), float(r["samples_per_s"])
        error = g["mid"] / real - 1
        held = r["fit"] == "0"
        if held:
            errors.append(abs(error))
            inside += g["low"] <= real <= g["high"]
            outside += not g["low"] <= real <= g["high"]
        size = "" if r["image"] == "224" else f" at {r['image']}"
        print(f"| {r['model']}{size}, {r['gpu']}, {r['batch']}, {r['precision']}{', compiled' * int(r['compiled'])} | "
              f"{r['where']} | {real:,.0f} | {g['mid']:,.0f} ({g['low']:,.0f}-{g['high']:,.0f}) | {100 * error:+.0f} % | "
              f"{'kept out' if held else 'in the model'} |")
    print(f"\n{len(errors)} kept out: mean error {100 * statistics.mean(errors):.0f} %, largest "
          f"{100 * max(errors):.0f} %; {inside} of {inside + outside} inside the interval")
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main())
