#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the predictions of `leat plan` with runs of `leat load`, over 25 settings.

    bench/plan_accuracy.py --leat build-release/tools/leat --images FOLDER [--work DIR] [NAME...]
    bench/plan_accuracy.py --summary accuracy.jsonl        the tables of lines written with --append

Each setting (kind of pack, size, threads, ops, order, cache, batch, budget) is planned three ways:
  calibrated   leat plan --calibrate
  quick        leat plan: what a user gets, the loader runs for under a second
  tables       leat plan --no-measure
and loaded with the memory and prefetch of the plan. The speed of a shared machine changes within seconds, so plans and
runs alternate, --rounds times: run, quick, run, calibrated, run, ... Compared are
  rate    samples/s with no step between batches, where epochs are short after one for settling: each plan with the mean
          of the runs right before and right after it; the error of a setting is the median of its rounds
  inside  how many of the rounds' means are in their plan's interval
  memory  peak RSS against ram.resident_bytes; steps are long, so that all queues fill
  a run   is compared with its neighbours like a plan: no prediction can be nearer than that

A `warm` pack is in the page cache, a `cold` one is dropped from it before each run; cold settings are left out
where the system cannot drop it. `spread` is half the range of the runs over their median. `others` is how many CPUs were
busy with anything else meanwhile. LEAT_CPU_MASK=avx2 limits the instruction set; --masks runs the settings once for each.
A setting takes some 15 seconds and as many for each round. Only Python's standard library is used.
"""
import argparse
import concurrent.futures
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import threading
import time

from doctor_situations import hurry

HEAVY = "ColorJitter(0.4, 0.4, 0.4, 0.2); GaussianBlur(23); RandAugment()"
WAYS = {"calibrated": ["--calibrate"], "quick": [], "tables": ["--no-measure"]}
RUN_SECONDS = 1.0
LONG_EPOCH = 2.0
# Peak memory: a step as long as FEW batches take to make fills all queues at once, where an epoch has no more of them; in
# longer epochs they fill with a step of MANY, and all samples are seen, the largest too.
MEMORY_FEW, MEMORY_MANY, MEMORY_BATCHES = 12, 2, 2
MEMORY_STEP, MEMORY_STEP_GB = 2.0, 3.0  # seconds at least, and for each GB: memory that the machine never used is slow to get
LANE = threading.local()  # separate packs for each job: a calibration drops them from the page cache

# ---- settings ------------------------------------------------------------------------------------


def setting(pack, size, threads, batch=128, crop="rrc", **more):
    return dict({"pack": pack, "size": size, "threads": threads, "batch": batch, "crop": crop, "dtype": "u8"}, **more)


SETTINGS = {
    "k224rrc-t2-u8": setting("keep", 224, 2),
    "k320none-t1-u8": setting("keep", 320, 1, 32, "none"),
    "k96rrc-t2-f32": setting("keep", 96, 2, 256, dtype="f32"),
    "k160center-t2-f32nhwc": setting("keep", 160, 2, crop="center", dtype="f32", layout="nhwc"),
    "t224rrc-t2-f32": setting("tiled", 224, 2, dtype="f32"),
    "t96center-t1-u8": setting("tiled", 96, 1, 32, "center"),
    "t320rrc-t2-u8nhwc": setting("tiled", 320, 2, 512, layout="nhwc"),
    "f224rrc-t2-u8": setting("fast", 224, 2),
    "f160none-t1-f32": setting("fast", 160, 1, crop="none", dtype="f32"),
    "r224rrc-t2-u8": setting("raw", 224, 2),
    "r96rrc-t1-u8-b16": setting("raw", 96, 1, 16),
    "r320center-t2-f32": setting("raw", 320, 2, 512, "center", dtype="f32"),
    "m224rrc-t2-u8": setting("mix", 224, 2),
    "m160none-t2-u8-qr": setting("mix", 160, 2, crop="none", order="quasi_random"),
    "t224rrc-t2-qr-proc": setting("tiled", 224, 2, order="quasi_random", cache="process"),
    "t224rrc-t2-rand-proc": setting("tiled", 224, 2, order="random", cache="process"),
    "c32none-t2-u8": setting("small", 32, 2, crop="none"),
    "c32rrc-t1-f32-b512": setting("small", 32, 1, 512, dtype="f32"),
    "t224heavy-t2": setting("tiled", 224, 2, ops=f"RandomResizedCrop(224); {HEAVY}"),
    "c32heavy-t2": setting("small", 32, 2, ops=f"RandomResizedCrop(32); {HEAVY}"),
    "t224rrc-tight": setting("tiled", 224, 2, memory="110M"),
    "k320rrc-loose-b512": setting("keep", 320, 2, 512, memory="6G"),
    # not in memory
    "t224rrc-t2-cold": setting("tiled", 224, 2, cold=True),
    "k160center-t1-cold": setting("keep", 160, 1, crop="center", cold=True),
    "m224rrc-t2-qr-cold": setting("mix", 224, 2, order="quasi_random", cold=True),
}


class Packs:
    """Packs of the images, made once and kept."""

    KINDS = {"keep": ["--images", "keep"], "tiled": ["--images", "tiled"], "fast": ["--images", "tiled", "--tiles", "fast"],
             "raw": ["--images", "raw", "--max-side", "256"], "mix": ["--images", "mix"],
             "small": ["--images", "raw", "--max-side", "32"]}

    def __init__(self, o):
        self.leat, self.work, self.samples = os.path.abspath(o.leat), os.path.abspath(o.work), o.samples
        self.files = sorted(os.path.join(r, f) for r, _, fs in os.walk(o.images) for f in fs)
        os.makedirs(self.work, exist_ok=True)

    def get(self, kind):
        out = os.path.join(self.work, kind + ".leat")
        if not os.path.exists(out):
            count = self.samples * (6 if kind == "small" else 1)
            manifest = os.path.join(self.work, kind + ".csv")
            with open(manifest, "w", encoding="utf-8") as f:
                f.write("path,key\n")
                f.writelines(f"{os.path.abspath(self.files[i % len(self.files)])},s{i}\n" for i in range(count))
            subprocess.run([self.leat, "pack", manifest, "-o", out, "--quiet", *self.KINDS[kind]], check=True,
                           stdout=subprocess.DEVNULL)
        if getattr(LANE, "number", 0) == 0:
            return out
        own = os.path.join(self.work, f"lane{LANE.number}-{kind}.leat")
        if not os.path.exists(own):
            shutil.copyfile(out, own)
        return own


# ---- one setting ---------------------------------------------------------------------------------


def drop_cache(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def warm_cache(path):
    with open(path, "rb") as f:
        while f.read(1 << 22):
            pass


class Trial:
    def __init__(self, o, pack, s, mask):
        self.o, self.pack, self.s = o, pack, s
        self.env = dict(os.environ, **({"LEAT_CPU_MASK": mask} if mask != "all" else {}))
        common = ["--threads", str(s["threads"]), "--batch", str(s["batch"]), "--json"]
        for key in ("order", "cache", "ops", "memory"):
            common += [f"--{key}", s[key]] if key in s else []
        image = [] if "ops" in s else ["--crop", s["crop"], "--dtype", s["dtype"]]
        size = [] if "ops" in s else [str(s["size"])]
        self.plan_command = [o.leat, "plan", "--dataset", pack, "--gpus", "0", "--single-loader", *common, *image,
                             *(["--image", *size] if size else [])]
        self.load_command = [o.leat, "load", pack, *common, *image, *(["--size", *size] if size else [])]
        if "layout" in s:
            self.load_command += ["--layout", s["layout"]]
        self.rates = []

    def run(self, command):
        done = subprocess.run(command, capture_output=True, text=True, env=self.env, check=False,
                              preexec_fn=(lambda: hurry(self.o.nice)) if self.o.nice else None)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()[-300:]}")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def set_cache(self):
        (drop_cache if self.s.get("cold") else warm_cache)(self.pack)

    def read_in(self):
        """The loader itself brings the pack into the page cache, at random, as training does: what is read in one go is
        there in larger pieces and is copied up to a third faster. Returns its samples per second."""
        drop_cache(self.pack)
        done = self.run([*self.load_command, "--epochs", "1"])[0]
        return done["samples_per_s"]

    def plan(self, way):
        self.set_cache()
        return self.run([*self.plan_command, *WAYS[way]])[0]

    def follow(self, plan):
        """Load with the settings of the plan, as its --yaml would."""
        config = plan["config"]
        self.samples = plan["facts"]["samples"]
        self.planned = plan["ram"]["resident_bytes"]
        self.load_command += ["--prefetch", str(config["prefetch"])]
        if "memory" not in self.s:
            self.load_command += ["--memory", str(config["memory"])]

    def measure(self, guess):
        self.set_cache()
        rate = self.rates[-1] if self.rates else guess
        epochs = 1 if self.s.get("cold") else max(1, math.ceil(RUN_SECONDS * rate / self.samples))
        # memory is used for the first time, which a long epoch does not feel; a cache in the process fills
        skip = 0 if self.s.get("cold") or self.samples / rate > LONG_EPOCH and "cache" not in self.s else 1
        done = self.run([*self.load_command, "--epochs", str(epochs + skip)])[skip:]
        self.rates.append(sum(e["samples"] for e in done) / sum(e["seconds"] for e in done))

    def peak(self, rate):
        self.set_cache()
        batches, flags = self.samples / self.s["batch"], ["--epochs", "1"]
        times = MEMORY_MANY if batches > MEMORY_FEW else MEMORY_FEW
        step = times * self.s["batch"] / rate
        if times == MEMORY_FEW:
            step = max(step, MEMORY_STEP + MEMORY_STEP_GB * self.planned / 1e9)
            flags = ["--stop-after", str(MEMORY_BATCHES * self.s["batch"])]
        if self.s.get("cache") == "process":  # it fills in the first epoch
            flags = ["--epochs", "2"]
        done = self.run([*self.load_command, "--step-ms", str(1000 * step), *flags])
        return max(e["peak_rss_bytes"] for e in done)


def error(predicted, real):
    return round((predicted - real) / real, 4)


class Others:
    """CPUs that were busy with anything but this process and its children."""

    def __init__(self):
        self.begin = self.now()

    @staticmethod
    def now():
        with open("/proc/stat", encoding="ascii") as f:
            ticks = [int(t) for t in f.readline().split()[1:4]]
        own = sum(os.times()[:4])
        return time.monotonic(), sum(ticks) / os.sysconf("SC_CLK_TCK") - own

    def cpus(self):
        (begin, busy), (end, later) = self.begin, self.now()
        return round(max(0.0, later - busy) / (end - begin), 2)


def line_of(o, packs, name, mask):
    s, others = SETTINGS[name], Others()
    t = Trial(o, packs.get(s["pack"]), s, mask)
    guess = t.read_in()
    tables = t.plan("tables")
    t.follow(tables)
    t.measure(guess)
    plans = {"calibrated": [], "quick": []}
    for _ in range(o.rounds):
        for way in ("quick", "calibrated"):
            plan = t.plan(way)
            t.measure(guess)
            plans[way].append((plan, statistics.mean(t.rates[-2:])))
    rate = statistics.median(t.rates)
    plans["tables"] = [(tables, rate)]
    peak = None if o.no_memory else t.peak(rate)
    line = {"setting": name, "mask": mask, "isa": tables["facts"]["isa"], "others": others.cpus(),
            "measured": round(rate, 1), "runs": [round(r, 1) for r in t.rates],
            "spread": round((max(t.rates) - min(t.rates)) / 2 / rate, 4), "peak": peak,
            "noise": [error(b, (a + c) / 2) for a, b, c in zip(t.rates, t.rates[1:], t.rates[2:])]}
    line.update((way, judged(plans[way], peak, s.get("cold"))) for way in WAYS)
    return line


def judged(plans, peak, cold):
    """The median of one way's plans, each compared with its own runs."""
    speeds = [p["speed"]["first_epoch_samples_per_s" if cold else "later_epochs_samples_per_s"] for p, _ in plans]
    errors = [error(v["mid"], real) for v, (_, real) in zip(speeds, plans)]
    memory = statistics.median(p["ram"]["resident_bytes"] for p, _ in plans)
    return {**{key: round(statistics.median(v[at] for v in speeds), 1)
               for key, at in (("rate", "mid"), ("low", "low"), ("high", "high"))},
            "errors": errors, "error": statistics.median(errors),
            "inside": [v["low"] <= real <= v["high"] for v, (_, real) in zip(speeds, plans)],
            "memory": memory, "memory_error": error(memory, peak) if peak else None}


# ---- tables --------------------------------------------------------------------------------------


def percentile(values, share):
    """The smallest value that this share of them does not exceed."""
    values = sorted(values)
    return values[max(0, math.ceil(share * len(values)) - 1)]


def percent(value):
    return f"{100 * value:+.0f} %"


def print_lines(lines):
    print("| setting | ISA | measured | spread | calibrated | | quick | | tables | | RSS, MB | plan | |\n|" + "---|" * 13)
    for r in lines:
        cells = [r["setting"], r["isa"], f"{r['measured']:,.0f}", percent(r["spread"])[1:]]
        for way in WAYS:
            w = r[way]
            cells += [f"{w['rate']:,.0f} ({w['low']:,.0f} to {w['high']:,.0f})",
                      percent(w["error"]) + ("" if all(w["inside"]) else f" {sum(w['inside'])} of {len(w['inside'])}")]
        q = r["quick"]
        cells += [f"{r['peak'] / 1e6:,.1f}", f"{q['memory'] / 1e6:,.1f}", percent(q["memory_error"])] if r["peak"] else [""] * 3
        print("| " + " | ".join(cells) + " |")


def print_summary(lines):
    """Of settings (the median of their rounds), and of single plans."""
    print("\n| ISA | of | settings | p50 | p90 | max | plans | p50 | p90 | max | inside |\n|" + "---|" * 11)

    def row(isa, of, settings, plans, inside):
        both = [f"{len(errors)} | {100 * percentile(errors, 0.5):.1f} % | {100 * percentile(errors, 0.9):.1f} % | "
                f"{100 * max(errors):.0f} %" for errors in ([abs(e) for e in settings], [abs(e) for e in plans])]
        print(f"| {isa} | {of} | {' | '.join(both)} | {inside} |")
    for isa in sorted({r["isa"] for r in lines}):
        some = [r for r in lines if r["isa"] == isa]
        for way in WAYS:
            inside = [i for r in some for i in r[way]["inside"]]
            row(isa, f"rate, {way}", [r[way]["error"] for r in some], [e for r in some for e in r[way]["errors"]],
                f"{sum(inside)} of {len(inside)}")
        row(isa, "a run as the plan", [statistics.median(r["noise"]) for r in some], [e for r in some for e in r["noise"]], "")
        errors = [r["quick"]["memory_error"] for r in some if r["peak"]]
        if errors:
            row(isa, "memory, quick", errors, errors, f"lowest {percent(min(errors))}")


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--leat", default="build-release/tools/leat")
    args.add_argument("--images", help="a folder of JPEGs")
    args.add_argument("--work", default="plan-accuracy", help="packs are made here and kept")
    args.add_argument("--samples", type=int, default=3000, help="in a pack; of the small images six times as many")
    args.add_argument("--rounds", type=int, default=3, help="of plans and runs in turns")
    args.add_argument("--no-memory", action="store_true", help="leave out the peak memory, which no instruction set changes")
    args.add_argument("--masks", default="all", help="values of LEAT_CPU_MASK divided by commas; all = none")
    args.add_argument("--jobs", type=int, default=1, help="settings measured at once, on a machine with CPUs to spare")
    args.add_argument("--nice", type=int, default=0, help="priority of what is measured, below 0 on a busy machine")
    args.add_argument("--append", metavar="FILE", help="add a JSON line per setting to this file")
    args.add_argument("--summary", metavar="FILE", help="only print the tables of such a file")
    args.add_argument("names", nargs="*", metavar="NAME")
    o = args.parse_args()
    if o.summary:
        with open(o.summary, encoding="utf-8") as f:
            lines = [json.loads(line) for line in f]
        print_lines(lines)
        print_summary(lines)
        return 0
    if not o.images:
        args.error("--images is needed")
    packs, names = Packs(o), o.names or list(SETTINGS)
    for kind in sorted({SETTINGS[n]["pack"] for n in names}):
        packs.get(kind)
    probe = packs.get(SETTINGS[names[0]]["pack"])
    drop_cache(probe)
    plan = subprocess.run([o.leat, "plan", "--dataset", probe, "--gpus", "0", "--no-measure", "--json"], check=True,
                          capture_output=True, text=True).stdout
    if json.loads(plan)["facts"]["cached"] > 0.5 and len(names) > 1:
        print("cold settings are left out: the page cache cannot be dropped here", file=sys.stderr)
        names = [n for n in names if not SETTINGS[n].get("cold")]
    lines = []
    lanes = iter(range(o.jobs))

    def enter_lane():
        LANE.number = next(lanes)
    with concurrent.futures.ThreadPoolExecutor(o.jobs, initializer=enter_lane) as pool:
        tasks = [pool.submit(line_of, o, packs, name, mask) for mask in o.masks.split(",") for name in names]
        for task in tasks:
            try:
                lines.append(task.result())
            except RuntimeError as e:
                print(f"not measured: {e}", file=sys.stderr)
                continue
            if o.append:
                with open(o.append, "a", encoding="utf-8") as f:
                    f.write(json.dumps(lines[-1]) + "\n")
    print_lines(lines)
    print_summary(lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
