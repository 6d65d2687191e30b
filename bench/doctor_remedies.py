#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the doctor's predictions: the predicted gain of each remedy against the measured one.

    bench/doctor_remedies.py --leat build-release/tools/leat --images FOLDER [--work DIR] [NAME...]
    bench/doctor_remedies.py … --prepare       only makes the packs (minutes), so that measuring is quick

Three kinds of remedies. Another pack or other delivery: the doctor measures them on a few samples; here the whole pack is made
again as the remedy says. Load flags (those --apply writes): here the loader runs with them. More of what a control group
limits (root, version 1): here the limit is raised. All are loaded before and after in turns, for --each seconds after an
equal time for settling; packs on a limited disk for one epoch of four times as many samples, so that its start counts for
little, dropped from the page cache before. A gain that the doctor itself marks as a guess (basis other than
"measured") is printed as one and does not count. A row takes about 30 seconds. Only Python's standard library is used.
"""
import argparse
import concurrent.futures
import contextlib
import json
import os
import shlex
import statistics
import subprocess
import sys
import threading

from doctor_situations import device_of, floor_of, group, hurry

WITHIN = 0.15
COLD_TIMES = 4  # as many samples in packs that are read for one epoch
NICE = 0     # set by --nice
LANE = threading.local()  # the CPUs of each thread, with --cpus
HEAVY = "RandomResizedCrop(224); ColorJitter(0.4, 0.4, 0.4, 0.2); GaussianBlur(23)"
NORMALIZED = ("RandomResizedCrop(224); RandomHorizontalFlip(0.5); Normalize([0.485, 0.456, 0.406], "
              "[0.229, 0.224, 0.225]); ToDtype({})")
PLAIN = "RandomResizedCrop(224); RandomHorizontalFlip(0.5)"
FAST = ["--batch", "64", "--step-ms", "1"]
SMALL = [*FAST, "--size", "128"]

# name, flags of leat pack before, load flags, text of the remedy, load flags after (None = another pack, made by the
# remedy's own command)
REMEDIES = [
    ("JPEG to tiles", ["--images", "keep"], FAST, "store as tiles", None),
    ("JPEG to pixels", ["--images", "keep"], FAST, "store pixels", None),
    ("JPEG, half of it pixels", ["--images", "keep"], FAST, "--images mix", None),
    ("JPEG, smaller", ["--images", "keep"], SMALL, "store smaller", None),
    ("JPEG, lower quality", ["--images", "keep"], FAST, "lower quality", None),
    ("tiles, smaller", ["--images", "tiled"], SMALL, "store smaller", None),
    ("tiles, lower quality", ["--images", "tiled"], FAST, "lower quality", None),
    ("tiles to pixels", ["--images", "tiled"], FAST, "store pixels", None),
    ("f32 normalised to u8", ["--images", "tiled"], [*FAST, "--ops", NORMALIZED.format("f32")], "deliver u8",
     [*FAST, "--ops", PLAIN]),
    ("f32 to f16", ["--images", "tiled"], [*FAST, "--ops", NORMALIZED.format("f32")], "deliver f16",
     [*FAST, "--ops", NORMALIZED.format("f16")]),
    ("augmentation to the GPU", ["--images", "tiled"], [*FAST, "--ops", HEAVY], "augmentation behind the crop",
     [*FAST, "--ops", "RandomResizedCrop(224)"]),
    ("batches of 1 to 32", ["--images", "raw", "--max-side", "8"],
     ["--batch", "1", "--ops", "Resize((8, 8))"], "batches of 32",
     ["--batch", "32", "--ops", "Resize((8, 8))"]),
]

BUDGET = ["--batch", "64", "--size", "320", "--dtype", "f32", "--step-ms", "4"]

# name, flags of leat pack, load flags, injected into reads (None = nothing), times the least memory (None = no budget): the
# flags of --apply are checked
APPLIED = [
    ("one thread of two CPUs, tiles", ["--images", "tiled"], [*FAST, "--threads", "1"], None, None),
    ("one thread of two CPUs, JPEG", ["--images", "keep"], [*FAST, "--threads", "1"], None, None),
    ("15 ms a read, --io-depth 4", ["--images", "tiled"], [*FAST, "--io-depth", "4"], "delay=15ms", None),
    ("40 ms a read, --io-depth 8", ["--images", "keep"], [*FAST, "--io-depth", "8"], "delay=40ms", None),
    ("a budget of 160 MB, 3 ms a read", ["--images", "tiled"], ["--batch", "256", "--step-ms", "1", "--memory", "160M"],
     "delay=3ms", None),
    ("a budget just above the least", ["--images", "tiled"], BUDGET, None, 1.05),
]

# Limits of control groups
SLOW_READS = {"blkio.throttle.read_iops_device": "{device} 500"}
SLOW_DISK = {"blkio.throttle.read_bps_device": "{device} 30000000"}
SMALL_GROUP = {"memory.limit_in_bytes": str(120 << 20)}


def quota(cpus):
    return {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": str(int(100000 * cpus)), "cpu.shares": "200000"}


# name, flags of leat pack, load flags, limits before, text of the remedy (None = what --apply writes), limits after (None = the
# same ones), whether the pack is dropped from the page cache before each run
STAGED = [
    ("500 reads/s, cold", ["--images", "tiled"], FAST, [("blkio", SLOW_READS)], None, None, True),
    ("500 reads/s, cold, JPEG", ["--images", "keep"], FAST, [("blkio", SLOW_READS)], None, None, True),
    ("a memory group of 120 MB, 30 MB/s", ["--images", "tiled"], FAST,
     [("blkio", SLOW_DISK), ("memory", SMALL_GROUP)], None, None, True),
    ("a memory group of 120 MB, 30 MB/s: more memory", ["--images", "tiled"], FAST,
     [("blkio", SLOW_DISK), ("memory", SMALL_GROUP)], "memory limit",
     [("blkio", SLOW_DISK), ("memory", {"memory.limit_in_bytes": str(1 << 30)})], True),
    ("a quota of 0.6 CPUs", ["--images", "keep"], FAST, [("cpu", quota(0.6))], "quota", [("cpu", quota(1.2))], False),
]


class Packs:
    """Made once and kept; named by their flags. Long epochs: each image is in them several times."""

    def __init__(self, o):
        self.leat, self.work, self.lock = o.leat, o.work, threading.Lock()
        os.makedirs(o.work, exist_ok=True)
        files = sorted(os.path.abspath(os.path.join(r, f)) for r, _, fs in os.walk(o.images) for f in fs)
        for times in (1, COLD_TIMES):
            with open(self.manifest(times), "w", encoding="utf-8") as f:
                f.write("path,key\n" + "".join(f"{files[i % len(files)]},s{i}\n" for i in range(times * o.samples)))

    def manifest(self, times):
        return os.path.join(self.work, f"images-{times}.csv")

    def get(self, flags, times=1):
        path = os.path.join(self.work, "-".join(f.strip("-") for f in [*flags, str(times)]) + ".leat")
        with self.lock:
            if not os.path.exists(path):
                subprocess.run([self.leat, "pack", self.manifest(times), "-o", path, "--quiet", "--resume", *flags], check=True,
                               stdout=subprocess.DEVNULL)
        return path


def json_lines(command, env=None, join=()):
    def enter():
        if NICE:
            hurry(NICE)
        for path in join:
            with open(f"{path}/cgroup.procs", "w", encoding="ascii") as f:
                f.write(str(os.getpid()))
    done = subprocess.run([*getattr(LANE, "prefix", []), *command], capture_output=True, text=True, check=False,
                          env={**os.environ, **(env or {})}, preexec_fn=enter if NICE or join else None)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{shlex.join(command)}: {done.stderr.strip()[-400:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def forget(path):
    """Drops the pack from the page cache, so that the run itself reads it at random, like training. Freshly written
    data is cached in larger pieces and copied up to a third faster."""
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def rates(leat, pack, flags, seconds, env=None):
    """Samples per second, and per second of CPU time, for about so long after as long for settling."""
    forget(pack)
    first = json_lines([leat, "load", pack, *flags, "--json", "--epochs", "2"], env)[-1]
    epochs = min(max(1, int(seconds / first["seconds"])), 2000)
    rows = json_lines([leat, "load", pack, *flags, "--json", "--epochs", str(2 * epochs)], env)[epochs:]
    samples = sum(r["samples"] for r in rows)
    return samples / sum(r["seconds"] for r in rows), samples / sum(r["cpu_seconds"] for r in rows)


@contextlib.contextmanager
def limited(limits, device):
    """Control groups with these limits, for processes to join."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(group(f"/sys/fs/cgroup/{controller}",
                                         {k: v.replace("{device}", device) for k, v in settings.items()}))["join"]
               for controller, settings in limits]


def limited_rate(o, pack, flags, limits, cold):
    """Samples per second inside the limits: of the epoch after the first where nothing is cold (that one fills caches)."""
    with limited(limits, device_of(o.work)) as join:
        forget(pack)
        rows = json_lines([o.leat, "load", pack, *flags, "--json", "--epochs", "1" if cold else "3"], join=join)
        rows = rows if cold else rows[1:]
        return sum(r["samples"] for r in rows) / sum(r["seconds"] for r in rows)


def remedy_of(leat, pack, flags, words, seconds):
    verdict = json_lines([leat, "doctor", pack, "--json", "--seconds", str(seconds), *flags])[0]
    found = [r for r in verdict["remedies"] if words in r["action"]]
    return (found[0] if found else None), verdict


def pack_flags(action):
    """The flags of the command that a remedy names: "store as tiles: leat pack --images tiled"."""
    words = action.split("leat pack ")[1].split(" (")[0].split()
    return words


def compared(o, name, remedy, before, after):
    """Loads before and after in turns: each a pack, flags and an environment."""
    turns = [(*rates(o.leat, *before[:2], o.each, before[2]), *rates(o.leat, *after[:2], o.each, after[2]))
             for _ in range(o.rounds)]
    real = statistics.median(t[2] / t[0] for t in turns)
    cpu = statistics.median(t[3] / t[1] for t in turns)
    return {"name": name, "predicted": remedy["gain"], "guess": remedy["basis"] != "measured", "real": real, "cpu": cpu,
            "error": remedy["gain"] / (cpu if o.by == "cpu" else real) - 1, "before": statistics.median(t[0] for t in turns),
            "after": statistics.median(t[2] for t in turns), "what": remedy.get("set") or remedy["action"]}


def verify(o, packs, row):
    name, made, flags, words, flags_after = row
    before = packs.get(made)
    found, verdict = remedy_of(o.leat, before, flags, words, o.seconds)
    if found is None:
        return {"name": name, "what": f"not offered: {verdict['limit']} limits"}
    after = before if flags_after is not None else packs.get(pack_flags(found["action"]))
    return compared(o, name, found, (before, flags, None), (after, flags if flags_after is None else flags_after, None))


def with_flags(flags, applied):
    """Load flags as --apply's file would change them: \"threads=2,memory=640M\"."""
    out = list(flags)
    for setting in applied.split(","):
        key, value = setting.split("=", 1)
        if f"--{key}" in out:
            out[out.index(f"--{key}") + 1] = value
        else:
            out += [f"--{key}", value]
    return out


def verify_applied(o, packs, row):
    name, made, flags, inject, times = row
    pack = packs.get(made)
    if times is not None:
        flags = [*flags, "--memory", str(int(times * floor_of(o.leat, pack, flags)))]
    env = {"LEAT_IO_INJECT": f"path={os.path.basename(pack)},{inject}"} if inject else None
    d = json_lines([o.leat, "doctor", pack, "--json", "--seconds", str(o.seconds), *flags], env)[0]
    applied = d["apply"]["set"]
    if not applied:
        return {"name": name, "what": f"nothing to apply: {d['limit']} limits"}
    remedy = {"gain": d["apply"]["gain"], "basis": d["apply"]["basis"], "set": applied}
    return compared(o, name, remedy, (pack, flags, env), (pack, with_flags(flags, applied), env))


def verify_staged(o, packs, row):
    """Limits of control groups: flags of --apply inside them, or the same flags inside wider ones."""
    name, made, flags, limits, words, wider, cold = row
    pack = packs.get(made, COLD_TIMES if cold else 1)
    with limited(limits, device_of(o.work)) as join:
        forget(pack)
        d = json_lines([o.leat, "doctor", pack, "--json", "--seconds", str(o.seconds), *flags], join=join)[0]
    if words is None:
        applied = d["apply"]["set"]
        if not applied:
            return {"name": name, "what": f"nothing to apply: {d['limit']}, {d['cause']}"}
        remedy = {"gain": d["apply"]["gain"], "basis": d["apply"]["basis"], "set": applied}
        after = with_flags(flags, applied)
    else:
        found = [r for r in d["remedies"] if words in r["action"]]
        if not found:
            return {"name": name, "what": f"not offered: {d['limit']}, {d['cause']}"}
        remedy, after = found[0], flags
    turns = [(limited_rate(o, pack, flags, limits, cold), limited_rate(o, pack, after, wider or limits, cold and wider is None))
             for _ in range(max(1, o.rounds - 1))]
    real = statistics.median(b / a for a, b in turns)
    return {"name": name, "predicted": remedy["gain"], "guess": remedy["basis"] != "measured", "real": real, "cpu": real,
            "error": remedy["gain"] / real - 1, "before": statistics.median(a for a, _ in turns),
            "after": statistics.median(b for _, b in turns), "what": remedy.get("set") or remedy["action"]}


def text_of(r):
    if "real" not in r:
        return f"| {r['name']} | {r['what']} | | | | | |"
    guess = " (guess)" if r["guess"] else ""
    return (f"| {r['name']} | {r['what'].split(': ')[0].split(' (')[0][:60]} | {r['predicted']:.2f}{guess} | {r['real']:.2f} | {r['cpu']:.2f} | "
            f"{r['before']:.0f} to {r['after']:.0f} | {100 * r['error']:+.0f} % |")


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--leat", required=True)
    args.add_argument("--images", required=True, help="a folder of JPEGs, class folders inside")
    args.add_argument("--samples", type=int, default=2000, help="in a pack")
    args.add_argument("--work", default="doctor-remedies")
    args.add_argument("--seconds", type=float, default=8, help="of the doctor's examination")
    args.add_argument("--each", type=float, default=2, help="seconds of each measurement")
    args.add_argument("--rounds", type=int, default=3)
    args.add_argument("--prepare", action="store_true")
    args.add_argument("--json", help="append all rows to this file, one to a line")
    args.add_argument("names", nargs="*")
    args.add_argument("--by", choices=["time", "cpu"], default="time",
                      help="what a prediction is compared with; CPU time is what can be told on a busy machine")
    args.add_argument("--nice", type=int, default=0, help="priority of what is measured, below 0 on a busy machine")
    args.add_argument("--cpus", type=int, default=0, help="run each row on this many separate CPUs")
    args.add_argument("--jobs", type=int, default=1, help="rows measured at once, on a machine with CPUs to spare")
    o = args.parse_args()
    global NICE
    NICE = o.nice
    lanes = iter(range(o.jobs))

    def enter_lane():
        first = o.cpus * next(lanes)
        LANE.prefix = ["taskset", "-c", f"{first}-{first + o.cpus - 1}"] if o.cpus else []
    packs = Packs(o)
    wanted = [(verify, row) for row in REMEDIES if not o.names or row[0] in o.names]
    wanted += [(verify_applied, row) for row in APPLIED if not o.names or row[0] in o.names]
    wanted += [(verify_staged, row) for row in STAGED if not o.names or row[0] in o.names]
    for how, row in wanted:
        packs.get(row[1], COLD_TIMES if how is verify_staged and row[-1] else 1)
    if o.prepare:
        for how, (_, made, flags, words, flags_after, *_) in wanted:
            found = remedy_of(o.leat, packs.get(made), flags, words, 2)[0] if how is verify else None
            if found is not None and flags_after is None:
                packs.get(pack_flags(found["action"]))
        return 0
    print("| situation | remedy | predicted | real | of CPU time | samples/s | prediction off by |\n|" + "---|" * 7)
    rows = []
    with concurrent.futures.ThreadPoolExecutor(o.jobs, initializer=enter_lane) as pool:
        for task in [pool.submit(how, o, packs, row) for how, row in wanted]:
            rows.append(task.result())
            print(text_of(rows[-1]), flush=True)
    told = [r for r in rows if "real" in r and not r["guess"]]
    good = sum(abs(r["error"]) <= WITHIN for r in told)
    print(f"\n{good} of {len(told)} measured predictions within {100 * WITHIN:.0f} %, "
          f"{sum('real' in r and r['guess'] for r in rows)} guesses, {sum('real' not in r for r in rows)} not offered")
    if o.json:
        with open(o.json, "a", encoding="utf-8") as f:
            f.writelines(json.dumps(r) + "\n" for r in rows)
    return 0 if good == len(told) else 1


if __name__ == "__main__":
    sys.exit(main())
