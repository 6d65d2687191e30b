#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writing a dataset: leat pack compared with FFCV's DatasetWriter and a plain copy of the same bytes.

    python3 bench/vs_ffcv_writer.py --leat build-release/tools/leat --images FOLDER

FOLDER is an image folder (class = sub-folder); its files are repeated under new names until there are --count of
them. Everything runs in turn, --rounds times, with the files in the page cache; the best round counts. Copy and leat
both end with the bytes on disk (sync). FFCV's writer does not sync: it is measured as it is ("ffcv jpg") and with a
sync of its file in the timed part ("ffcv jpg, synced"), for equal terms. Between measurements the disk gets --settle
seconds to become idle. FFCV needs its own Python (--python): pip install ffcv, with libopencv-dev,
libturbojpeg0-dev, pkg-config and g++ installed. Without it only copy and leat are measured. One JSON line per
measurement.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import time

FFCV = r"""
import os, sys, time
from PIL import Image
import numpy as np
from ffcv.writer import DatasetWriter
from ffcv.fields import RGBImageField, IntField
root, out, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
files = [(os.path.join(root, c, f), i) for i, c in enumerate(sorted(os.listdir(root)))
         for f in sorted(os.listdir(os.path.join(root, c)))]
class Folder:
    def __len__(self): return len(files)
    def __getitem__(self, i):
        path, label = files[i]
        return np.array(Image.open(path).convert("RGB")), label
t = time.monotonic()
DatasetWriter(out, {"image": RGBImageField(write_mode="jpg"), "label": IntField()},
              num_workers=threads).from_indexed_dataset(Folder())
unsynced = time.monotonic() - t
fd = os.open(out, os.O_RDONLY)
os.fsync(fd)
print(len(files), unsynced, time.monotonic() - t)
"""


def repeat(images, count, to):
    """A folder of `count` files; made once."""
    if os.path.isdir(to):
        return
    files = [(c, f) for c in sorted(os.listdir(images)) for f in sorted(os.listdir(f"{images}/{c}"))]
    for n in range(count):
        c, f = files[n % len(files)]
        os.makedirs(f"{to}/{c}", exist_ok=True)
        stem, ext = os.path.splitext(f)
        shutil.copyfile(f"{images}/{c}/{f}", f"{to}/{c}/{stem}_{n // len(files)}{ext}")


def copy(src, out, args):
    begin = time.monotonic()
    subprocess.run(f"find '{src}' -type f -print0 | sort -z | xargs -0 cat > '{out}' && sync '{out}'",
                   shell=True, check=True)
    return time.monotonic() - begin, os.path.getsize(out), 0


def leat(*flags):
    def one(src, out, args):
        done = subprocess.run([args.leat, "pack", src, "-o", out, "--force", "--threads",
                               str(args.threads), "--json", *flags], stdout=subprocess.PIPE, check=True)
        r = json.loads(done.stdout)
        assert r["samples"] == args.count and r["skipped"] == 0, r
        return r["seconds"], r["bytes_out"], r["peak_rss_bytes"]
    return one


def ffcv(src, out, args):
    done = subprocess.run([args.python, "-c", FFCV, src, out, str(args.threads)],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    _, unsynced, synced = done.stdout.split()
    return {"ffcv jpg": float(unsynced), "ffcv jpg, synced": float(synced)}, os.path.getsize(out), 0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--leat", required=True)
    p.add_argument("--images", required=True)
    p.add_argument("--python", help="interpreter that has ffcv")
    p.add_argument("--work", default="/tmp/leat-vs-ffcv")
    p.add_argument("--count", type=int, default=8000)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--settle", type=float, default=1.0)
    p.add_argument("--only", action="append", help="measure only these ways")
    args = p.parse_args()
    src = f"{args.work}/src-{args.count}"
    repeat(args.images, args.count, src)
    ways = {"copy": copy, "leat keep --trust": leat("--images", "keep", "--trust"),
            "leat keep": leat("--images", "keep"), "leat tiled": leat("--images", "tiled"),
            "leat tiled --trust": leat("--images", "tiled", "--trust")}
    if args.python:
        ways["ffcv jpg"] = ffcv
    if args.only:
        ways = {name: ways[name] for name in args.only}
    best = {}
    for turn in range(args.rounds):
        for name, way in ways.items():
            out = f"{args.work}/out"
            if os.path.exists(out):
                os.unlink(out)
            subprocess.run(f"find '{src}' -type f -print0 | xargs -0 cat > /dev/null", shell=True, check=True)
            subprocess.run(["sync"])
            time.sleep(args.settle)
            taken, size, rss = way(src, out, args)
            for what, seconds in (taken if isinstance(taken, dict) else {name: taken}).items():
                rate = args.count / seconds
                print(json.dumps({"way": what, "round": turn, "seconds": round(seconds, 3),
                                  "images_per_s": round(rate, 1), "bytes": size,
                                  "peak_rss_bytes": rss}), flush=True)
                best[what] = max(best.get(what, 0), rate)
    ratios = {f"{a} / {b}": round(best[a] / best[b], 3)
              for a in best if a.startswith("leat") for b in ("copy", "ffcv jpg", "ffcv jpg, synced") if b in best}
    print(json.dumps({"best_images_per_s": {k: round(v, 1) for k, v in best.items()},
                      "ratios": ratios, "count": args.count, "threads": args.threads}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
