# SPDX-License-Identifier: Apache-2.0
"""Recall of `leat dedup images` on edits, and speed of `leat check`.

    python bench/images_edits.py --leat build-release/tools/leat --images imagenet-sample [--limit 200] [--windows]

Every image gets each edit (Pillow, a fixed seed). Originals and edits of one kind are searched with --across. Recall
is the share of edits that are paired with their original as "duplicate"; pairs with another original are false
positives. The thresholds of the command are fixed: nothing is tuned here. Reports a table in Markdown.
"""
import argparse
import csv
import io
import json
import math
import pathlib
import random
import shutil
import subprocess
import tempfile

import numpy as np
from PIL import Image, ImageDraw, ImageEnhance, ImageFilter, ImageOps


def crop(image, share, draw):
    w, h = image.size
    nw, nh = max(8, round(w * (1 - share))), max(8, round(h * (1 - share)))
    x, y = draw.randint(0, w - nw), draw.randint(0, h - nh)
    return image.crop((x, y, x + nw, y + nh))


def noisy(image, sigma, draw):
    rng = np.random.default_rng(draw.randint(0, 1 << 30))
    pixels = np.asarray(image, np.float32)
    return Image.fromarray(np.clip(pixels + rng.normal(0, sigma, pixels.shape), 0, 255).astype(np.uint8))


def turned(image, degrees):
    """Rotated, without the empty corners."""
    w, h = image.size
    a = math.radians(abs(degrees))
    share = min(min(w, h) / (max(w, h) * math.sin(a) + min(w, h) * math.cos(a)), 1)
    nw, nh = int(w * share * 0.995), int(h * share * 0.995)
    x, y = (w - nw) // 2, (h - nh) // 2
    return image.rotate(degrees, Image.Resampling.BICUBIC).crop((x, y, x + nw, y + nh))


def captioned(image, draw):
    image = image.copy()
    w, h = image.size
    ImageDraw.Draw(image).rectangle((0, round(h * 0.88), w, h), fill=draw.choice(((255,) * 3, (0,) * 3)))
    return image


def scaled(image, factor):
    return image.resize((max(8, round(image.width * factor)), max(8, round(image.height * factor))), Image.Resampling.LANCZOS)


EDITS = {
    "recompressed, q30": (lambda i, d: i, 30), "recompressed, q70": (lambda i, d: i, 70),
    "resized x 0.5": (lambda i, d: scaled(i, 0.5), 90), "resized x 2": (lambda i, d: scaled(i, 2), 90),
    "brighter": (lambda i, d: ImageEnhance.Brightness(i).enhance(1.4), 90),
    "less contrast": (lambda i, d: ImageEnhance.Contrast(i).enhance(0.6), 90),
    "grey": (lambda i, d: ImageOps.grayscale(i), 90), "blurred": (lambda i, d: i.filter(ImageFilter.GaussianBlur(1.5)), 90),
    "noise": (lambda i, d: noisy(i, 12, d), 90), "mirrored": (lambda i, d: ImageOps.mirror(i), 90),
    "frame 10 %": (lambda i, d: ImageOps.expand(i, round(min(i.size) * 0.1), 0), 90),
    "rotated 3 degrees": (lambda i, d: turned(i, 3), 90), "crop 5 %": (lambda i, d: crop(i, 0.05, d), 90),
    "crop 10 %": (lambda i, d: crop(i, 0.1, d), 90), "crop 20 %": (lambda i, d: crop(i, 0.2, d), 90),
    "caption bar": (captioned, 90), "crop, resize, q50": (lambda i, d: scaled(crop(i, 0.06, d), 0.7), 50),
}


def run(leat, *args):
    done = subprocess.run([leat, *map(str, args)], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--leat", required=True)
    parser.add_argument("--images", required=True)
    parser.add_argument("--limit", type=int, default=200)
    parser.add_argument("--windows", action="store_true")
    given = parser.parse_args()
    names = sorted(p for p in pathlib.Path(given.images).rglob("*") if p.suffix.lower() in (".jpg", ".jpeg"))
    names = random.Random(11).sample(names, min(given.limit, len(names)))
    folder = pathlib.Path(tempfile.mkdtemp())
    (folder / "originals").mkdir()
    for n, name in enumerate(names):
        shutil.copy(name, folder / "originals" / f"{n:05d}.jpg")
    report = json.loads(run(given.leat, "check", folder / "originals", "-o", folder / "o.leat", "-t", 1, "--json"))
    print(f"leat check: {report['images_per_cpu_s']:.0f} images per CPU-second ({report['samples']} images)\n")
    print("| edit | found % | wrong pairs |\n|---|---|---|")
    for title, (edit, quality) in EDITS.items():
        shutil.rmtree(folder / "edited", ignore_errors=True)
        (folder / "edited").mkdir()
        for n, name in enumerate(names):
            out = io.BytesIO()
            edit(Image.open(name).convert("RGB"), random.Random(n)).save(out, "JPEG", quality=quality)
            (folder / "edited" / f"{n:05d}.jpg").write_bytes(out.getvalue())
        run(given.leat, "dedup", "images", folder / "o.leat", folder / "edited", "-o", folder / "d.leat", "-f", "--across",
            "--csv", folder / "d.csv", *(["--windows"] if given.windows else []))
        with open(folder / "d.csv", newline="") as f:
            pairs = [(row["key_a"], row["key_b"]) for row in csv.DictReader(f)]
        right = {a for a, b in pairs if a == b}
        print(f"| {title} | {100 * len(right) / len(names):.1f} | {sum(a != b for a, b in pairs)} |", flush=True)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
