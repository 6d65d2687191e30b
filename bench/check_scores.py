#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The quality scores of leat check against their definitions on pixels (NumPy and Pillow).

    python bench/check_scores.py --leat build-release/tools/leat --images imagenet-sample [--limit 200] [--originals]

Each image is checked as it is and after nine edits (darker, brighter, less contrast, blurred twice, noise, less
colour, grey, recompressed). Prints Spearman's rank correlation of each score with its definition, over the originals and over all
images; then, over the originals, how far the score is from its definition: the difference, or for blur the ratio. Then saves one image with Pillow at each JPEG quality from 1 to 100 and counts those that leat names exactly.
"""
import argparse
import csv
import io
import pathlib
import subprocess
import tempfile

import numpy as np
from PIL import Image, ImageEnhance, ImageFilter

SCORES = ("mean", "contrast", "blur", "saturation", "entropy", "p1", "p5", "p50", "p95", "p99", "cast", "noise")


def noisy(image):
    pixels = np.asarray(image, np.float32)
    noise = np.random.default_rng(1).normal(0, 12, pixels.shape)
    return Image.fromarray(np.clip(pixels + noise, 0, 255).astype(np.uint8))


def recompressed(image):
    out = io.BytesIO()
    image.save(out, "JPEG", quality=30)
    return Image.open(out)


EDITS = {
    "darker": lambda i: ImageEnhance.Brightness(i).enhance(0.5),
    "brighter": lambda i: ImageEnhance.Brightness(i).enhance(1.6),
    "contrast": lambda i: ImageEnhance.Contrast(i).enhance(0.5),
    "blur1": lambda i: i.filter(ImageFilter.GaussianBlur(1)),
    "blur3": lambda i: i.filter(ImageFilter.GaussianBlur(3)),
    "noise": noisy,
    "colour": lambda i: ImageEnhance.Color(i).enhance(0.5),
    "grey": lambda i: i.convert("L").convert("RGB"),
    "recompressed": recompressed,
}


def definitions(path):
    """The scores as docs/images.md defines them, from all pixels."""
    with Image.open(path) as image:
        ycc = np.asarray(image.convert("RGB").convert("YCbCr"), np.float64)
    y, cb, cr = ycc[..., 0], ycc[..., 1] - 128, ycc[..., 2] - 128
    laplacian = 4 * y[1:-1, 1:-1] - y[:-2, 1:-1] - y[2:, 1:-1] - y[1:-1, :-2] - y[1:-1, 2:]
    second = y[:-2] - 2 * y[1:-1] + y[2:]
    filtered = np.zeros_like(y)
    filtered[1:-1, 1:-1] = second[:, :-2] - 2 * second[:, 1:-1] + second[:, 2:]
    high, wide = y.shape[0] // 8, y.shape[1] // 8
    levels = (filtered[:8 * high, :8 * wide].reshape(high, 8, wide, 8) ** 2).mean((1, 3)) ** 0.5 / 6
    counts = np.bincount(y.astype(np.int64).ravel(), minlength=256)
    share = counts[counts > 0] / y.size
    out = {"mean": y.mean(), "contrast": y.std(), "blur": laplacian.var(), "saturation": np.hypot(cb, cr).mean(),
           "entropy": -(share * np.log2(share)).sum(), "cast": np.hypot(cb.mean(), cr.mean()),
           "noise": np.percentile(levels, 25)}
    for p in (1, 5, 50, 95, 99):
        out[f"p{p}"] = np.percentile(y, p)
    return out


def ranks(values):
    """Ranks from 0; equal values share their mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts + 1) / 2)[inverse]


def spearman(a, b):
    return float(np.corrcoef(ranks(np.asarray(a)), ranks(np.asarray(b)))[0, 1])


def check(leat, folder):
    """Rows of leat check, by name of the file."""
    table = pathlib.Path(f"{folder}.csv")
    done = subprocess.run([leat, "check", str(folder), "-o", f"{folder}.leat", "--csv", str(table)],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    if done.returncode not in (0, 1):  # 1: issues were found
        raise SystemExit(f"leat check: exit code {done.returncode}")
    with table.open(encoding="utf-8", newline="") as f:
        return {pathlib.Path(row["key"]).name: row for row in csv.DictReader(f)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--leat", default="leat")
    parser.add_argument("--images", required=True)
    parser.add_argument("--limit", type=int, default=200)
    parser.add_argument("--originals", action="store_true", help="make no edits")
    args = parser.parse_args()
    paths = sorted(p for p in pathlib.Path(args.images).rglob("*") if p.suffix.lower() in (".jpg", ".jpeg"))
    paths = paths[::max(1, len(paths) // args.limit)][:args.limit]
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work, "images")
        folder.mkdir()
        for i, path in enumerate(paths):
            (folder / f"{i:05}-original.jpg").write_bytes(path.read_bytes())
            with Image.open(path) as image:
                image = image.convert("RGB")
            for name, edit in ({} if args.originals else EDITS).items():
                edit(image).save(folder / f"{i:05}-{name}.jpg", quality=92)
        rows = check(args.leat, folder)
        keys = sorted(rows)
        wanted = [definitions(folder / k) for k in keys]
        original = np.array(["original" in k for k in keys])
        print(f"{len(keys)} images, {len(paths)} of them originals\n")
        print("| score | originals | all |\n|---|---|---|")
        for score in SCORES:
            found = np.array([float(rows[k][score]) for k in keys])
            pixels = np.array([w[score] for w in wanted])
            print(f"| {score} | {spearman(found[original], pixels[original]):.4f} | {spearman(found, pixels):.4f} |")
        print("\n| score | least | 0.5 % | median | 99.5 % | most |\n|---|---|---|---|---|---|")
        for score in SCORES:
            pairs = [(float(rows[k][score]), w[score]) for k, w, first in zip(keys, wanted, original) if first]
            off = [a / b for a, b in pairs if b > 0] if score == "blur" else [a - b for a, b in pairs]
            print(f"| {score} | " + " | ".join(f"{value:.2f}" for value in np.percentile(off, [0, 0.5, 50, 99.5, 100])) + " |")
        graded = pathlib.Path(work, "graded")
        graded.mkdir()
        with Image.open(paths[0]) as image:
            for quality in range(1, 101):
                image.convert("RGB").save(graded / f"{quality:03}.jpg", quality=quality)
        rows = check(args.leat, graded)
        exact = sum(int(pathlib.Path(k).stem) == float(row["jpeg_quality"]) for k, row in rows.items())
        print(f"\njpeg_quality: {exact} of 100 exact")


if __name__ == "__main__":
    main()
