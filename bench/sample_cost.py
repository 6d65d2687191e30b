#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits the loader's cost per sample as a linear function of bytes and pixels: the rows of data/plan/costs.txt.

    python bench/sample_cost.py --leat build-release/tools/leat IMAGES [--isa avx512,avx2,scalar]

Every fourth JPEG of the folder IMAGES is used as it is, and scaled and re-encoded in several sizes and qualities.
The files are repeated until a pack does not fit the CPU's cache, and packed in every way: JPEGs with entry points
(keep) and without (plain: `pack --trust`), small and fast tiles, raw pixels, PNG, WebP. One thread of `leat load`
then takes crops of each from the page cache. Its CPU time per sample, the minimum of some epochs, is fitted by

    fixed + byte · bytes + crop_byte · bytes · share + pixel · pixels + crop_pixel · pixels · share + out · out_pixels

without negative terms, by relative error; `share` is the part of the image that a crop covers by the plan. Prints
the rows of the table, and on stderr how well they fit: 50th, 90th percentile and largest error.
"""
import argparse
import itertools
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image

CROPS = (("rrc", 0.42, 160), ("rrc", 0.42, 224), ("center", 0.574, 224), ("none", 1.0, 224))  # same as in tools/plan.c
EPOCHS = 3
SCALES = (0.5, 1, 2)
COPIES, PACK_BYTES = 8, 400e6  # maximum copies of every file, while the files have fewer bytes than this
ORIGINAL = -1
KINDS = {  # how files are made, how they are packed
    "keep": ("jpeg", (60, 92, ORIGINAL), ["--images", "keep"]),
    "plain": ("jpeg", (60, 92, ORIGINAL), ["--images", "keep", "--trust"]),
    "tiled": ("jpeg", (60, 92, ORIGINAL), ["--images", "tiled"]),
    "fast": ("jpeg", (60, 92, ORIGINAL), ["--images", "tiled", "--tiles", "fast"]),
    "raw": ("jpeg", (92,), ["--images", "raw"]),
    "png": ("png", (0,), ["--images", "keep"]),
    "webp": ("webp", (60, 90), ["--images", "keep"]),
}
MASKS = {"avx512": None, "avx2": "avx2", "scalar": "scalar"}
COLUMNS = ("fixed_us", "byte_ns", "crop_byte_ns", "pixel_ns", "crop_pixel_ns", "out_ns")


def jpegs(folder):
    names = [os.path.join(at, n) for at, _, files in os.walk(folder) for n in files if n.lower().endswith((".jpeg", ".jpg"))]
    return sorted(names)[::4]


def make_file(path, out, scale, quality):
    with Image.open(path) as image:
        if quality == ORIGINAL:
            shutil.copy(path, out)
            return image.width * image.height
        rgb = image.convert("RGB")
    rgb = rgb.resize((round(rgb.width * scale), round(rgb.height * scale)), Image.Resampling.BICUBIC)
    rgb.save(out, **({"quality": quality, "subsampling": 0 if quality > 90 else 2} if quality else {}))
    return rgb.width * rgb.height


def make_files(sources, into, form, scale, quality, raw):
    """The mean pixels of the files."""
    os.makedirs(into)
    firsts = [f"{into}/{i:04}.{form}" for i in range(len(sources))]
    pixels = [make_file(path, out, scale, quality) for path, out in zip(sources, firsts)]
    size = 3 * sum(pixels) if raw else sum(os.path.getsize(f) for f in firsts)
    for copy in range(1, min(COPIES, math.ceil(PACK_BYTES / size)) if form == "jpeg" else 1):
        for first in firsts:
            os.link(first, first.replace(f".{form}", f"-{copy}.{form}"))
    return sum(pixels) / len(pixels)


def cpu_us(leat, pack, crop, size, mask):
    env = {**os.environ, **({"LEAT_CPU_MASK": mask} if mask else {})}
    out = subprocess.run([leat, "load", pack, "--threads", "1", "--batch", "256", "--size", str(size), "--crop", crop,
                          "--epochs", str(EPOCHS), "--json"], check=True, stdout=subprocess.PIPE, text=True, env=env)
    epochs = [json.loads(line) for line in out.stdout.splitlines()]
    return min(e["cpu_seconds"] / e["samples"] for e in epochs[1:]) * 1e6


def fit(rows, us):
    """Least squares of relative errors; drops the most negative coefficient until there is none."""
    a, b = rows / us[:, None], np.ones(len(us))
    used = list(range(rows.shape[1]))
    while True:
        x = np.linalg.lstsq(a[:, used], b, rcond=None)[0]
        if x.min() >= 0:
            break
        used.pop(int(np.argmin(x * np.abs(a[:, used]).mean(axis=0))))
    full = np.zeros(rows.shape[1])
    full[used] = x
    return full


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--leat", default="build-release/tools/leat")
    p.add_argument("--isa", default="avx512,avx2,scalar")
    p.add_argument("--kinds", default=",".join(KINDS))
    p.add_argument("--raw-data", metavar="FILE", help="write every measurement here, a JSON line each")
    p.add_argument("images")
    args = p.parse_args()
    sources = jpegs(args.images)
    seen, pixels = {}, {}
    with tempfile.TemporaryDirectory() as tmp:
        for kind, scale in itertools.product(args.kinds.split(","), SCALES):
            form, qualities, how = KINDS[kind]
            for quality in qualities:
                if quality == ORIGINAL and scale != 1:
                    continue
                raw = kind == "raw"
                files, pack = f"{tmp}/{form}-{scale}-{quality}-{raw}", f"{tmp}/p.leat"
                if files not in pixels:
                    pixels[files] = make_files(sources, files, form, scale, quality, raw)
                made = subprocess.run([args.leat, "pack", files, "-o", pack, "--force", "--json", *how],
                                      check=True, stdout=subprocess.PIPE, text=True)
                done = json.loads(made.stdout.splitlines()[-1])
                size, many = done["bytes_out"] / done["samples"] / 1e3, pixels[files] / 1e3
                for isa, (crop, share, side) in itertools.product(args.isa.split(","), CROPS):
                    us = cpu_us(args.leat, pack, crop, side, MASKS[isa])
                    row = [1, size, size * share, many, many * share, side * side / 1e3]
                    seen.setdefault((kind, isa), []).append((row, us))
                    if args.raw_data:
                        with open(args.raw_data, "a", encoding="utf-8") as f:
                            f.write(json.dumps({"kind": kind, "isa": isa, "scale": scale, "quality": quality,
                                                "crop": crop, "row": row, "us": us}) + "\n")
    print("method:s | isa:s  | " + " | ".join(f"{c}:f" for c in COLUMNS))
    for key, pairs in seen.items():
        rows, us = np.array([r for r, _ in pairs]), np.array([u for _, u in pairs])
        x = fit(rows, us)
        errors = np.sort(np.abs(rows @ x / us - 1))
        print(f"{key[0]:8} | {key[1]:6} | " + " | ".join(f"{v:.3g}" for v in x), flush=True)
        print(f"{key[0]} {key[1]}: {len(us)} measurements, error {errors[len(us) // 2]:.1%}, "
              f"{errors[int(0.9 * len(us))]:.1%}, {errors[-1]:.1%}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
