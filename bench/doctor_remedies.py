#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes the doctor at its word: for each remedy that needs another pack or other deliveries, what gain it
predicts, what comes out when it is done, and how far the two are apart; and for flags that --apply writes, the same
by the doctor's own --verify.

    bench/doctor_remedies.py --leat build-release/tools/leat --images FOLDER [--work DIR] [NAME...]
    bench/doctor_remedies.py … --prepare       only makes the packs (minutes), so that measuring is quick

The doctor prices a remedy on a few samples of the pack that is there; here the whole pack is made anew as
the remedy says and loaded, before and after in turns. A row takes about 20 seconds. Only Python's standard
library is used.
"""
import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys

from doctor_situations import hurry

WITHIN = 0.15
NICE = 0  # set by --nice
HEAVY = "RandomResizedCrop(224); ColorJitter(0.4, 0.4, 0.4, 0.2); GaussianBlur(23)"
NORMALIZED = ("RandomResizedCrop(224); RandomHorizontalFlip(0.5); Normalize([0.485, 0.456, 0.406], "
              "[0.229, 0.224, 0.225]); ToDtype({})")
PLAIN = "RandomResizedCrop(224); RandomHorizontalFlip(0.5)"
FAST = ["--batch", "64", "--step-ms", "1"]
SMALL = [*FAST, "--size", "128"]

# name, pack before (flags of leat pack), load flags, words of the remedy, load flags after (None = another pack, as
# the remedy's own command says)
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

# name, load flags, injected into reads (None = nothing): what --apply writes is checked by --verify
APPLIED = [
    ("one thread of two CPUs", [*FAST, "--threads", "1"], None),
    ("15 ms a read, --io-depth 4", [*FAST, "--io-depth", "4"], "delay=15ms"),
    ("a budget of 160 MB, 3 ms a read", ["--batch", "256", "--step-ms", "1", "--memory", "160M"], "delay=3ms"),
]


class Packs:
    """Made once and kept; named by their flags."""

    def __init__(self, leat, images, work):
        self.leat, self.images, self.work = leat, images, work
        os.makedirs(work, exist_ok=True)

    def get(self, flags):
        path = os.path.join(self.work, "-".join(f.strip("-") for f in flags) + ".leat")
        if not os.path.exists(path):
            subprocess.run([self.leat, "pack", self.images, "-o", path, "--quiet", "--resume", *flags], check=True)
        return path


def json_lines(command, env=None):
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **(env or {})},
                          preexec_fn=(lambda: hurry(NICE)) if NICE else None)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{shlex.join(command)}: {done.stderr.strip()[-400:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def forget(path):
    """Out of the page cache, so that the run itself reads it in, at random, as training does. What a program just
    wrote lies there in larger pieces and is copied up to a third faster."""
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def rates(leat, pack, flags, seconds):
    """Samples per second, and per second of CPU time, for about so long after as long for settling."""
    forget(pack)
    first = json_lines([leat, "load", pack, *flags, "--json", "--epochs", "2"])[-1]
    epochs = max(2, int(seconds / first["seconds"]))
    rows = json_lines([leat, "load", pack, *flags, "--json", "--epochs", str(2 * epochs)])[epochs:]
    samples = sum(r["samples"] for r in rows)
    return samples / sum(r["seconds"] for r in rows), samples / sum(r["cpu_seconds"] for r in rows)


def remedy_of(leat, pack, flags, words, seconds):
    verdict = json_lines([leat, "doctor", pack, "--json", "--seconds", str(seconds), *flags])[0]
    found = [r for r in verdict["remedies"] if words in r["action"]]
    return (found[0] if found else None), verdict


def pack_flags(action):
    """Of the command that a remedy names: "store as tiles: leat pack --images tiled"."""
    words = action.split("leat pack ")[1].split(" (")[0].split()
    return words


def verify(o, packs, row):
    name, made, flags, words, flags_after = row
    before = packs.get(made)
    found, verdict = remedy_of(o.leat, before, flags, words, o.seconds)
    if found is None:
        option = [x for x in verdict["facts"]["options"] if words in x["action"]]
        print(f"| {name} | not offered ({verdict['limit']} limits{', priced' if option else ''}) | | | | |", flush=True)
        return None
    after = before if flags_after is not None else packs.get(pack_flags(found["action"]))
    turns = []
    for _ in range(o.rounds):
        turns.append((*rates(o.leat, before, flags, o.each),
                      *rates(o.leat, after, flags if flags_after is None else flags_after, o.each)))
    real = statistics.median(t[2] / t[0] for t in turns)
    cpu = statistics.median(t[3] / t[1] for t in turns)
    error = found["gain"] / (cpu if o.by == "cpu" else real) - 1
    a, b = statistics.median(t[0] for t in turns), statistics.median(t[2] for t in turns)
    print(f"| {name} | {found['gain']:.2f} | {real:.2f} | {cpu:.2f} | {a:.0f} to {b:.0f} | {100 * error:+.0f} % |",
          flush=True)
    return {"name": name, "predicted": found["gain"], "real": real, "real_cpu": cpu, "error": error, "before": a,
            "after": b, "basis": found["basis"], "next": found["next"]}


def verify_applied(o, packs, row):
    name, flags, inject = row
    pack = packs.get(["--images", "tiled"])
    env = {"LEAT_IO_INJECT": f"path={os.path.basename(pack)},{inject}"} if inject else {}
    command = [o.leat, "doctor", pack, "--json", "--seconds", str(o.seconds), *flags,
               "--apply", os.path.join(o.work, "applied.yaml"), "--verify"]
    turns = [lines[1] for lines in (json_lines(command, env) for _ in range(o.rounds)) if len(lines) > 1]
    if not turns:
        print(f"| {name} | nothing to apply | | | |", flush=True)
        return None
    predicted, real, error = (statistics.median(t[k] for t in turns)
                              for k in ("predicted_gain", "real_gain", "error"))
    each = ", ".join(f"{100 * t['error']:+.0f}" for t in turns)
    print(f"| {name} | {turns[0]['verified']} | {predicted:.2f} | {real:.2f} | {100 * error:+.0f} % ({each}) |",
          flush=True)
    return {"name": name, "turns": turns, "real": real, "error": error}


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--leat", required=True)
    args.add_argument("--images", required=True, help="a folder of JPEGs, class folders inside")
    args.add_argument("--work", default="doctor-remedies")
    args.add_argument("--seconds", type=float, default=8, help="of the doctor's examination")
    args.add_argument("--each", type=float, default=1.5, help="seconds of each measurement")
    args.add_argument("--rounds", type=int, default=3)
    args.add_argument("--prepare", action="store_true")
    args.add_argument("--json", help="write all rows here")
    args.add_argument("names", nargs="*")
    args.add_argument("--by", choices=["time", "cpu"], default="time",
                      help="what a prediction is compared with; CPU time is what can be told on a busy machine")
    args.add_argument("--nice", type=int, default=0, help="priority of what is measured, below 0 on a busy machine")
    o = args.parse_args()
    global NICE
    NICE = o.nice
    packs = Packs(o.leat, o.images, o.work)
    wanted = [row for row in REMEDIES if not o.names or row[0] in o.names]
    if o.prepare:
        for name, made, flags, words, flags_after in wanted:
            found, _ = remedy_of(o.leat, packs.get(made), flags, words, 2)
            if flags_after is None and found is not None:
                packs.get(pack_flags(found["action"]))
        return 0
    print("| remedy | predicted | real | of CPU time | samples/s | prediction off by |\n|---|---|---|---|---|---|")
    rows = [r for r in (verify(o, packs, row) for row in wanted) if r is not None]
    applied = [row for row in APPLIED if not o.names or row[0] in o.names]
    if applied:
        print("\n| applied | flags | predicted | real | off by (each round) |\n|---|---|---|---|---|")
    rows += [r for r in (verify_applied(o, packs, row) for row in applied) if r is not None]
    good = sum(abs(r["error"]) <= WITHIN for r in rows)
    print(f"\n{good} of {len(rows)} within {100 * WITHIN:.0f} %")
    if o.json:
        with open(o.json, "w", encoding="utf-8") as f:
            json.dump(rows, f)
    return 0 if good == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
