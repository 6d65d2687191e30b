# SPDX-License-Identifier: Apache-2.0
"""Kernels per instruction set compared with OpenCV and Pillow, one thread: a Markdown table.

    python bench/kernel_table.py build-release [IMAGES] [--also PYTHON]

leat's figures are from tests/check/check_{resize,tile} --time (each kernel is first checked against the portable
one) and from bench/kernel_resize. Bytes are those a kernel reads and writes; the share is relative to copying 64
MiB. The others do the same work on whole images: OpenCV's bilinear resize uses two taps whatever the scale (no
antialiasing), Pillow's is the same arithmetic as leat's. With IMAGES (JPEGs), decoding of the first 200 is compared
as well, in full and (leat and libjpeg-turbo, the only ones that can) of a RandomResizedCrop, as GB/s of RGB written
and its share of copying. --also measures the libraries of another interpreter: Pillow-SIMD has the same name as
Pillow, so both cannot be in one. CPU time, medians; the libraries get as many pixels as leat.
"""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import time

import numpy as np

WIDTH, HEIGHT, SIDE = 333, 250, 224  # a typical crop of a typical photograph
IMAGES, REPEATS = 200, 5  # of decoding
LINE = re.compile(r"(.{28}) (.{14}) +([\d.]+) ns +([\d.]+) GB/s +(\d+) % of copying")
WANTED = ("idct", "h2v1", "h2v2", "rgb", "horizontal", "vertical", "entropy")


def measure(call, repeats=41):
    times = []
    for _ in range(repeats):
        start = time.process_time_ns()
        call()
        times.append(time.process_time_ns() - start)
    return statistics.median(times) / 1e3


def leat_kernels(build):
    """(what, isa) -> (GB/s, percent of copying), in order of appearance; and the GB/s of copying."""
    rows, copying = {}, 0.0
    for name in ("check_tile", "check_resize"):
        text = subprocess.run([build / "tests/check" / name, "--time"], check=True,
                              capture_output=True, text=True).stdout
        copying = float(re.search(r"reads and writes ([\d.]+) GB/s", text)[1])
        for what, isa, _, speed, share in LINE.findall(text):
            if what.startswith(WANTED) and isa.strip() in ("c", "avx2", "avx512icl"):
                rows[what.strip(), isa.strip()] = (float(speed), int(share))
    return rows, copying


def print_kernels(rows):
    print("| kernel | C GB/s (share of copying) | AVX2 | AVX-512 |\n|---|---|---|---|")
    for what in dict.fromkeys(what for what, _ in rows):
        cells = [rows.get((what, isa)) for isa in ("c", "avx2", "avx512icl")]
        print(f"| {what} | " + " | ".join(f"{c[0]:.1f} ({c[1]} %)" if c else "" for c in cells)
              + " |")


def peers():
    """name -> modules that import here."""
    found = {}
    try:
        import cv2

        cv2.setNumThreads(1)
        found["OpenCV " + cv2.__version__] = cv2
    except ImportError:
        pass
    try:
        import PIL
        from PIL import Image

        found[("Pillow-SIMD " if ".post" in PIL.__version__ else "Pillow ") + PIL.__version__] = Image
    except ImportError:
        pass
    return found


def peer_rows(name, module, images):
    """(work, microseconds) of one library."""
    rng = np.random.default_rng(1)
    pixels = rng.integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)
    if name.startswith("OpenCV"):
        ycc = module.cvtColor(pixels, module.COLOR_RGB2YCrCb)
        yield "resize", measure(lambda: module.resize(pixels, (SIDE, SIDE),
                                                      interpolation=module.INTER_LINEAR))
        yield "colour", measure(lambda: module.cvtColor(ycc, module.COLOR_YCrCb2RGB))
        decode = lambda d: module.imdecode(np.frombuffer(d, np.uint8), module.IMREAD_COLOR)
    else:
        import io

        image = module.fromarray(pixels)
        ycc = image.convert("YCbCr")
        yield "resize", measure(lambda: image.resize((SIDE, SIDE), module.BILINEAR))
        yield "colour", measure(lambda: ycc.convert("RGB"))
        decode = lambda d: module.open(io.BytesIO(d)).convert("RGB")
    if images:
        pixels = sum(np.asarray(decode(d)).nbytes for d in images)
        us = measure(lambda: [decode(d) for d in images], REPEATS)
        yield "decode", us / len(images)
        yield "decode GB/s", pixels / us / 1e3


def other_peers(python, build, images):
    """The same rows of another interpreter's libraries: name -> {work: figure}."""
    done = subprocess.run([python, __file__, build, *([images] if images else []), "--peers"],
                          capture_output=True, text=True)
    if done.returncode == 0:
        return json.loads(done.stdout)
    print(f"{python}: not measured: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
    return {}


def leat_rows(build, kernels, folder):
    """(work, isa) -> microseconds for the same work."""
    rows = {}
    text = subprocess.run([build / "bench/kernel_resize", "7"], check=True, capture_output=True,
                          text=True).stdout
    for line in map(json.loads, text.splitlines()):
        if line.get("output") == "u8 nhwc":
            rows["resize", line["isa"]] = line["us_median"]
    for isa, column in (("scalar", "c"), ("avx2", "avx2"), ("avx512", "avx512icl")):
        for speed in (v[0] for (what, i), v in kernels.items() if what.startswith("rgb") and i == column):
            rows["colour", isa] = WIDTH * HEIGHT * 6 / speed / 1e3
    if folder:
        text = subprocess.run([build / "bench/kernel_tile", folder, str(REPEATS), str(IMAGES)], check=True,
                              capture_output=True, text=True).stdout
        for line in map(json.loads, text.splitlines()):
            column = {"tiles small": line.get("isa"), "libjpeg-turbo": "libjpeg-turbo"}.get(line.get("method"))
            if column:
                work = {"full": "decode", "crop": "crop"}[line["region"]]
                rows[work, column] = line["us"]
                rows[work + " GB/s", column] = line["rgb_gb_per_s"]
    return rows


WORKS = {"resize": f"resize of crops (mean {87000:,} pixels; others {WIDTH} x {HEIGHT}) to {SIDE}, RGB, µs",
         "colour": f"YCbCr to RGB, {WIDTH} x {HEIGHT}, µs",
         "decode": "JPEG or its tiles in full, mean, µs",
         "decode GB/s": "the same, GB/s of RGB (share of copying)",
         "crop": "the crop alone, mean, µs",
         "crop GB/s": "the same, GB/s of RGB (share of copying)"}


def print_works(table, columns, copying):
    print("\n| work | " + " | ".join(columns) + " |\n|---|" + "---|" * len(columns))
    for work, text in WORKS.items():
        cells = [table.get((work, c)) for c in columns.values()]
        show = (lambda v: f"{v:.2f} ({100 * v / copying:.0f} %)") if "GB/s" in work else "{:.1f}".format
        if any(cells):
            print(f"| {text} | " + " | ".join(show(c) if c else "" for c in cells) + " |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("images", nargs="?", type=pathlib.Path)
    parser.add_argument("--also", help="a Python whose Pillow is to be measured as well")
    parser.add_argument("--peers", action="store_true", help="only the libraries of this Python, as JSON")
    args = parser.parse_args()
    paths = sorted(args.images.rglob("*.[jJ][pP]*[gG]"))[:IMAGES] if args.images else []
    found = {name: dict(peer_rows(name, module, [p.read_bytes() for p in paths]))
             for name, module in peers().items()}
    if args.peers:
        print(json.dumps(found))
        return
    if args.also:
        found.update(other_peers(args.also, args.build, args.images))
    kernels, copying = leat_kernels(args.build)
    print_kernels(kernels)
    table = leat_rows(args.build, kernels, args.images)
    columns = {"leat scalar": "scalar", "leat AVX2": "avx2", "leat AVX-512": "avx512"}
    if args.images:
        columns["libjpeg-turbo"] = "libjpeg-turbo"
    for name, rows in found.items():
        columns[name] = name
        table.update({(work, name): figure for work, figure in rows.items()})
    print_works(table, columns, copying)


if __name__ == "__main__":
    main()
