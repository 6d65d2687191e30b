# SPDX-License-Identifier: Apache-2.0
"""The whole path of one sample compared with Pillow's, one thread, the same crops, in turn.

    python bench/vs_pillow_path.py build-release/bench/sample_path IMAGES [--rounds 5]

Both decode a JPEG, cut out the same RandomResizedCrop, resize it to 224 x 224 (bilinear, antialiased) and flip it.
Pillow decodes in full with its own libjpeg-turbo; leat reads the tiled form, on AVX-512 and on AVX2. Rounds
alternate between the two programs. The samples must agree before anything is timed. CPU time; a Markdown table on
stdout.
"""
import argparse
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
from PIL import Image, __version__ as pillow_version, features

SIDE = 224


def load(path):
    with open(path, "rb") as f:
        return f.read()


def decode(data):
    image = Image.open(io.BytesIO(data))
    image.load()
    return image if image.mode == "RGB" else image.convert("RGB")


def shape(image, crop, flip):
    x, y, width, height = crop
    image = image.crop((x, y, x + width, y + height))
    image = image.resize((SIDE, SIDE), Image.BILINEAR)
    return image.transpose(Image.FLIP_LEFT_RIGHT) if flip else image


def differing(samples, images):
    """Number of images with a byte that differs from leat's, and the largest difference."""
    want = np.fromfile(samples, np.uint8).reshape(-1, 3, SIDE, SIDE)
    bad, most = 0, 0
    for i, im in enumerate(images):
        got = np.asarray(shape(decode(im["data"]), im["crop"], im["flip"])).transpose(2, 0, 1)
        delta = int(np.abs(got.astype(int) - want[i]).max())
        bad += delta > 0
        most = max(most, delta)
    return bad, most


def pillow_round(images):
    """CPU microseconds per image: decoding, and the rest."""
    decoding = shaping = 0
    for im in images:
        start = time.process_time_ns()
        image = decode(im["data"])
        middle = time.process_time_ns()
        shape(image, im["crop"], im["flip"])
        decoding += middle - start
        shaping += time.process_time_ns() - middle
    return decoding / 1e3 / len(images), shaping / 1e3 / len(images)


def ask(program):
    program.stdin.write("\n")
    program.stdin.flush()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sample_path")
    parser.add_argument("images")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        samples = os.path.join(folder, "samples")
        program = subprocess.Popen(
            [args.sample_path, "-m", "tiled", "-s", samples, "-t", args.images,
             str(args.rounds)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        note = program.stderr.readline()
        count = int(note.split()[0])
        distance = json.loads(program.stdout.readline())["fast_against_exact"]
        images = [json.loads(program.stdout.readline()) for _ in range(count)]
        for im in images:
            im["data"] = load(im["path"])
        bad, most = differing(samples, images)
        rounds = []
        for _ in range(args.rounds):
            ask(program)
            assert "turn" in json.loads(program.stdout.readline())
            rounds.append(pillow_round(images))
        leat = [m for m in map(json.loads, program.stdout) if m["method"].startswith("tiled")]
        if program.wait() != 0:
            sys.exit("sample_path failed")

    large = sum(im["crop"][2] >= 2 * SIDE and im["crop"][3] >= 2 * SIDE for im in images)
    pixels = statistics.mean(im["crop"][2] * im["crop"][3] for im in images)
    total = [a + b for a, b in rounds]
    whole = statistics.median(total)
    print(f"Pillow {pillow_version}, libjpeg-turbo {features.version_feature('libjpeg_turbo')}; "
          f"{count} images, {args.rounds} rounds in turn; mean crop {pixels:,.0f} pixels, "
          f"{large} crops at least twice the output both ways; {bad} samples differ"
          + (f" (by at most {most})" if bad else "")
          + f"; those of like=fast by {distance['mean']:.2f} levels on average.\n")
    print("| way | µs per image | images/s | times faster |\n|---|---|---|---|")
    print(f"| Pillow: full decode {statistics.median(a for a, _ in rounds):.0f} + crop, resize, flip "
          f"{statistics.median(b for _, b in rounds):.0f} | {whole:.0f} ({min(total):.0f}–"
          f"{max(total):.0f}) | {1e6 / whole:,.0f} | 1.0 |")
    for m in leat:
        print(f"| leat, {m['method']} | {m['us_median']:.0f} ({m['us_min']:.0f}–{m['us_max']:.0f}) "
              f"| {m['images_per_s']:,} | {whole / m['us_median']:.1f} |")


if __name__ == "__main__":
    main()
