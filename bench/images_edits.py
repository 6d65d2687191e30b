# SPDX-License-Identifier: Apache-2.0
"""Recall of `leat dedup images` on edits of images, and speed of `leat check`.

    python bench/images_edits.py --leat build-release/tools/leat --images imagenet-sample --half 1 --wrong [--windows] [--hashes 50]
    python bench/images_edits.py --leat build-release/tools/leat --images cifar10/train --limit 300 --half 1 --all

Every chosen image gets each edit (Pillow, a fixed seed). The edits are searched among the originals, with --all among all
images of the folder. Recall is the share of edits that are paired with their original as "duplicate"; pairs with another
image are counted as wrong. (A real folder has duplicates, so some of these are right.) --half takes only one
half of the images, so that thresholds can be chosen on one half and reported on the other. --wrong makes the edits of the
other half as well and searches the edits of one half among those of the other: every pair that is found is wrong. --hashes adds
the recall of hashes of imagehash and imagededup at their best radius: the largest with at most one wrong pair in a
million. Reports a table in Markdown.
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
import zlib

import numpy as np
from PIL import Image, ImageDraw, ImageEnhance, ImageFilter, ImageFont, ImageOps

JPEG = (".jpg", ".jpeg")


def crop(image, share, draw):
    """A random part without `share` of each side."""
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


def boxed(image, box, colour):
    image = image.copy()
    ImageDraw.Draw(image).rectangle(box, fill=colour)
    return image


def captioned(image, draw):
    w, h = image.size
    return boxed(image, (0, round(h * 0.88), w, h), draw.choice(((255,) * 3, (0,) * 3)))


def marked(image, area, draw):
    """A logo in a corner."""
    w, h = image.size
    bw, bh = round(w * math.sqrt(area)), round(h * math.sqrt(area))
    x, y = draw.choice((0, w - bw)), draw.choice((0, h - bh))
    return boxed(image, (x, y, x + bw, y + bh), tuple(draw.randint(0, 255) for _ in range(3)))


def written(image, draw):
    image = image.copy()
    w, h = image.size
    place = (w * 0.05, h * draw.choice((0.05, 0.45, 0.8)))
    ImageDraw.Draw(image).text(place, "SAMPLE TEXT", fill=(255,) * 3, font=ImageFont.load_default(size=max(6, h // 8)),
                               stroke_width=max(1, h // 150), stroke_fill=(0, 0, 0))
    return image


def scaled(image, x, y=None):
    return image.resize((max(8, round(image.width * x)), max(8, round(image.height * (y or x)))), Image.Resampling.LANCZOS)


def framed(image, share, colour):
    return ImageOps.expand(image, max(1, round(min(image.size) * share)), colour)


def letterboxed(image, ratio):
    """Black bars above and below, or left and right."""
    w, h = image.size
    size = (w, round(w / ratio)) if w / h > ratio else (round(h * ratio), h)
    return ImageOps.pad(image, size, color=(0, 0, 0)) if size != image.size else image


def curved(image, gamma):
    return image.point([round(255 * (i / 255) ** gamma) for i in range(256)] * 3)


def tinted(image):
    return Image.fromarray(np.clip(np.asarray(image, np.float32) * (1.2, 1, 0.75), 0, 255).astype(np.uint8))


def edits(small):
    """group -> [(edit of (image, draw), JPEG quality)]. Blur and noise of tiny images are weaker."""
    blur, noise = (0.35, 0.6) if small else (1, 1)
    bright, contrast, colour = ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color
    way = Image.Transpose
    return {
        "recompressed, q 30 to 85": [(lambda i, d: i, q) for q in (30, 50, 70, 85)],
        "resized x 0.5 to 2, stretched": [(lambda i, d, s=s: scaled(i, s), 90) for s in (0.5, 0.75, 1.5, 2)] +
        [(lambda i, d: scaled(i, 1.2, 1), 90)],
        "brightness, contrast, gamma": [(lambda i, d, k=k: bright(i).enhance(k), 90) for k in (0.7, 1.4)] +
        [(lambda i, d, k=k: contrast(i).enhance(k), 90) for k in (0.6, 1.5)] +
        [(lambda i, d, k=k: curved(i, k), 90) for k in (0.6, 1.6)],
        "tint, saturation, grey": [(lambda i, d: tinted(i), 90), (lambda i, d: colour(i).enhance(1.6), 90),
                                   (lambda i, d: ImageOps.grayscale(i), 90)],
        "blurred": [(lambda i, d, s=s: i.filter(ImageFilter.GaussianBlur(s * blur)), 90) for s in (1, 2, 4)],
        "noise": [(lambda i, d, s=s: noisy(i, s * noise, d), 90) for s in (10, 25)],
        "mirrored": [(lambda i, d: ImageOps.mirror(i), 90)],
        "upside down, turned by 90, 180, 270 degrees":
        [(lambda i, d, w=w: i.transpose(w), 90) for w in (way.FLIP_TOP_BOTTOM, way.ROTATE_90, way.ROTATE_180, way.ROTATE_270)],
        "frames 5 and 10 %, letterbox": [(lambda i, d: framed(i, 0.05, (255,) * 3), 90), (lambda i, d: framed(i, 0.1, 0), 90),
                                         (lambda i, d: letterboxed(i, 4 / 3 if small else 1), 90),
                                         (lambda i, d: letterboxed(i, 16 / 9), 90)],
        "rotated by 1 to 5 degrees": [(lambda i, d, a=a: turned(i, a * d.choice((-1, 1))), 90) for a in (1, 2, 5)] +
        [(lambda i, d: i.rotate(3 * d.choice((-1, 1)), Image.Resampling.BICUBIC), 90)],
        "crops of 2, 5, 10 % of each side": [(lambda i, d, s=s: crop(i, s, d), 90) for s in (0.02, 0.05, 0.1)],
        "caption bar, logo, text": [(captioned, 90), (lambda i, d: marked(i, 0.04, d), 90), (lambda i, d: marked(i, 0.1, d), 90),
                                    (written, 90)],
        "combinations": [(lambda i, d: bright(crop(i, 0.05, d)).enhance(1.15), 50),
                         (lambda i, d: written(scaled(i, 0.75 if small else 0.5), d), 60),
                         (lambda i, d: crop(ImageOps.mirror(i), 0.1, d), 90),
                         (lambda i, d: framed(crop(contrast(i).enhance(1.1), 0.04, d), 0.04, (240,) * 3), 70)],
        "crops of 20 % of each side": [(lambda i, d: crop(i, 0.2, d), 90)],
        "crops of 30 % of each side": [(lambda i, d: crop(i, 0.3, d), 90)],
    }


def run(leat, *args):
    done = subprocess.run([leat, *map(str, args)], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    return done.stdout


def choose(given, half):
    """Paths of the originals, relative to the folder."""
    root = pathlib.Path(given.images)
    names = sorted(p.relative_to(root) for p in root.rglob("*") if p.suffix.lower() in JPEG)
    if half is not None:
        names = [n for n in names if zlib.crc32(str(n).encode()) % 2 == half]
    return random.Random(11).sample(names, min(given.limit, len(names)))


def make_edits(given, names, folder):
    """Writes GROUP_KIND/NAME for every edit; returns {group: number of kinds}."""
    groups = {}
    for n, name in enumerate(names):
        image = Image.open(pathlib.Path(given.images) / name).convert("RGB")
        for g, (group, kinds) in enumerate(edits(min(image.size) < 64).items()):
            groups[group] = len(kinds)
            for k, (edit, quality) in enumerate(kinds):
                path = folder / f"{g:02d}_{k}" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                edit(image, random.Random(1000 * n + 10 * g + k)).save(path, "JPEG", quality=quality)
    return groups


def hash_kinds():
    """{title: bits of a file}"""
    import imagehash
    from imagededup.methods import AHash, DHash, PHash, WHash
    kinds = {f"imagehash {n}": lambda p, f=f: np.packbits(f(Image.open(p)).hash.ravel())
             for n, f in (("phash", imagehash.phash), ("phash 256", lambda i: imagehash.phash(i, 16)),
                          ("dhash", imagehash.dhash), ("whash", imagehash.whash))}
    for method in (PHash, DHash, WHash, AHash):
        made = method(verbose=False)
        kinds[f"imagededup {method.__name__}"] = lambda p, m=made: np.frombuffer(bytes.fromhex(m.encode_image(p)), np.uint8)
    return kinds


def hash_recall(folder, names, groups):
    """{title: recall in % by group} at the largest radius with at most 1e-6 wrong pairs; the best of each package."""
    found = {}
    for title, bits in hash_kinds().items():
        own = np.array([bits(folder / "originals" / n) for n in names])
        wrong = np.zeros(260, np.int64)
        right = []
        for g, count in enumerate(groups.values()):
            near = []
            for k in range(count):
                for n, name in enumerate(names):
                    far = np.bitwise_count(own ^ bits(folder / "edits" / f"{g:02d}_{k}" / name)).sum(1)
                    near.append(far[n])
                    wrong[:257] += np.bincount(np.delete(far, n), minlength=257)[:257]
            right.append(np.array(near))
        radius = int(np.searchsorted(np.cumsum(wrong), 1e-6 * wrong.sum(), "right")) - 1
        recall = [100 * float(np.mean(r <= radius)) for r in right]
        total = 100 * float(np.mean(np.concatenate(right) <= radius))
        package = title.split()[0]
        print(f"{title}: {total:.1f} % of all edits at {radius} bits", flush=True)
        if package not in found or found[package][0] < total:
            found[package] = (total, f"{title}, {radius} bits", recall)
    return {title: recall for _, title, recall in found.values()}


def count_wrong(given, folder):
    """Searches the edits of one half among those of the other."""
    others = choose(given, 1 - given.half)
    if not (folder / "others").exists():
        make_edits(given, others, folder / "others")
    made = json.loads(run(given.leat, "check", folder / "others", "-o", folder / "x.leat", "-f", "-t", given.threads, "--json"))
    options = ["--windows"] * given.windows + (["--threshold", given.threshold] if given.threshold else [])
    report = json.loads(run(given.leat, "dedup", "images", folder / "x.leat", folder / "e.leat", "-o", folder / "w.leat", "-f", "--across",
                            "--csv", folder / "w.csv", "--orientations", given.orientations, "-t", given.threads, "--json", *options))
    pairs = made["samples"] * (report["samples"] - made["samples"])
    print(f"edits of other images: {report['pairs']} wrong pairs of {pairs:,} ({report['pairs'] / pairs:.1e}), {report['probable']} probable\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--leat", required=True)
    parser.add_argument("--images", required=True)
    parser.add_argument("--limit", type=int, default=200)
    parser.add_argument("--half", type=int, choices=(0, 1))
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--windows", action="store_true")
    parser.add_argument("--orientations", type=int, default=8)
    parser.add_argument("--threshold", type=float)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--hashes", type=int, default=0, metavar="N", help="hashes of imagehash and imagededup on N of the images")
    parser.add_argument("--wrong", action="store_true")
    parser.add_argument("--work", help="keep the edits here, and use them again")
    given = parser.parse_args()
    if given.wrong and given.half is None:
        parser.error("--wrong needs --half")
    names = choose(given, given.half)
    folder = pathlib.Path(given.work or tempfile.mkdtemp())
    groups = {g: len(k) for g, k in edits(True).items()}
    if not (folder / "edits").exists():
        for name in names:
            (folder / "originals" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(pathlib.Path(given.images) / name, folder / "originals" / name)
        groups = make_edits(given, names, folder / "edits")
    report = json.loads(run(given.leat, "check", given.images if given.all else folder / "originals", "-o", folder / "o.leat", "-f",
                            "-t", given.threads, "--json"))
    print(f"leat check: {report['images_per_cpu_s']:.0f} images per CPU-second ({report['samples']} images)")
    run(given.leat, "check", folder / "edits", "-o", folder / "e.leat", "-f", "-t", given.threads)
    options = ["--windows"] * given.windows + (["--threshold", given.threshold] if given.threshold else [])
    report = json.loads(run(given.leat, "dedup", "images", folder / "o.leat", folder / "e.leat", "-o", folder / "d.leat", "-f",
                            "--across", "--csv", folder / "d.csv", "--orientations", given.orientations, "-t", given.threads,
                            "--json", *options))
    print(f"leat dedup images: {report['cpu_seconds']:.1f} CPU-seconds for {len(names) * sum(groups.values())} edits, "
          f"{report['candidates']} pairs of thumbnails compared\n")
    right, wrong = {}, {}
    with open(folder / "d.csv", newline="") as f:
        for row in csv.DictReader(f):
            kind, _, name = row["key_b"].partition("/")
            if row["key_a"] == name:
                right.setdefault(int(kind[:2]), set()).add(row["key_b"])
            else:
                wrong[int(kind[:2])] = wrong.get(int(kind[:2]), 0) + 1
    if given.wrong:
        count_wrong(given, folder)
    hashes = hash_recall(folder, names[:given.hashes], groups) if given.hashes else {}
    print(f"{len(names)} images, {sum(groups.values())} edits of each\n\n| edit | found % | wrong pairs |" + "".join(f" {h} |" for h in hashes))
    print("|---|---|---|" + "---|" * len(hashes))
    for g, (group, kinds) in enumerate(groups.items()):
        found = 100 * len(right.get(g, ())) / (len(names) * kinds)
        print(f"| {group} | {found:.1f} | {wrong.get(g, 0)} |" + "".join(f" {v[g]:.1f} |" for v in hashes.values()))
    if not given.work:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
