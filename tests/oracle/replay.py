# SPDX-License-Identifier: Apache-2.0
"""Replays a drawn recipe with Pillow: what torchvision does on PIL images for each step."""
import io

import numpy as np
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

FILTER = [Image.NEAREST, Image.BOX, Image.BILINEAR, Image.HAMMING, Image.BICUBIC, Image.LANCZOS]
EDGE = ["constant", "edge", "reflect", "symmetric"]


def pad(im, s):
    a = np.asarray(im)
    left, top = s["x"], s["y"]
    right, bottom = s["width"] - im.width - left, s["height"] - im.height - top
    border = ((top, bottom), (left, right), (0, 0))
    if s["edge"] == 0:
        out = np.empty((s["height"], s["width"], 3), np.uint8)
        out[:] = np.array(s["fill"]).astype(np.uint8)
        out[top:top + im.height, left:left + im.width] = a
        return Image.fromarray(out)
    return Image.fromarray(np.pad(a, border, EDGE[s["edge"]]))


def hue(im, s):
    h, sat, v = im.convert("HSV").split()
    a = np.array(h, dtype=np.uint8)
    a += np.int32(s["amount"] * 255).astype(np.uint8)
    return Image.merge("HSV", (Image.fromarray(a), sat, v)).convert("RGB")


def gray(im):
    a = np.array(im.convert("L"), dtype=np.uint8)
    return Image.fromarray(np.dstack([a, a, a]))


def transform(method, count):
    def run(im, s):
        size = (s["width"], s["height"]) if method == Image.AFFINE else im.size
        fill = tuple(int(v) for v in s["fill"])
        return im.transform(size, method, s["matrix"][:count], FILTER[s["filter"]], fillcolor=fill)
    return run


def gaussian(taps, sigma):
    half = (taps - 1) * 0.5
    x = np.linspace(-half, half, taps, dtype=np.float32)
    k = np.exp(-0.5 * (x / np.float32(sigma)) ** 2)
    return k / k.sum()


def blur(im, s):
    """torchvision's: reflect, one kernel of float weights, round half to even."""
    kx, ky = gaussian(s["width"], s["amount"]), gaussian(s["height"], s["amount"])
    a = np.asarray(im).astype(np.float32)
    px, py = s["width"] // 2, s["height"] // 2
    a = np.pad(a, ((py, py), (px, px), (0, 0)), "reflect")
    h, w = im.height, im.width
    rows = sum(k * a[i:i + h] for i, k in enumerate(ky))
    out = sum(k * rows[:, i:i + w] for i, k in enumerate(kx))
    return Image.fromarray(np.rint(out).astype(np.uint8))


def erase(im, s):
    a = np.array(im)
    part = a[s["y"]:s["y"] + s["height"], s["x"]:s["x"] + s["width"]]
    part[:] = np.array(s["fill"]).astype(np.uint8)
    return Image.fromarray(a)


def jpeg(im, s):
    file = io.BytesIO()
    im.save(file, "JPEG", quality=int(s["amount"]))
    return Image.open(file).convert("RGB")


def grid(im, s):
    rows, columns = ((np.arange(n) + s[o]) % s["width"] < s["height"] for n, o in ((im.height, "y"), (im.width, "x")))
    a = np.array(im)
    a[rows[:, None] & columns[None]] = np.array(s["fill"]).astype(np.uint8)
    return Image.fromarray(a)


def clahe_tables(channel, limit, across, down):
    """A table per tile: OpenCV's counts, cut at the limit, what is over spread evenly."""
    th, tw = channel.shape[0] // down, channel.shape[1] // across
    area, f = th * tw, np.float32
    tables = np.empty((down, across, 256), f)
    for ty in range(down):
        for tx in range(across):
            counts = np.bincount(channel[ty * th:(ty + 1) * th, tx * tw:(tx + 1) * tw].ravel(), minlength=256)
            most = max(int(limit * area / 256), 1)
            over = int(np.maximum(counts - most, 0).sum())
            counts = np.minimum(counts, most) + over // 256
            rest = over % 256
            counts[[i * max(256 // rest, 1) for i in range(rest)] if rest else []] += 1
            tables[ty, tx] = np.minimum(np.rint(np.cumsum(counts).astype(f) * (f(255) / f(area))), 255)
    return tables


def clahe(im, s):
    """OpenCV's CLAHE of each channel."""
    a, across, down, f = np.asarray(im), s["width"], s["height"], np.float32
    h, w = a.shape[:2]
    whole = h % down == 0 and w % across == 0  # else OpenCV continues both axes
    th, tw = (n // t if whole else (n + t - n % t) // t for n, t in ((h, down), (w, across)))

    def between(n, size, tiles):
        at = np.arange(n, dtype=f) * (f(1) / f(size)) - f(0.5)
        low = np.floor(at)
        return np.maximum(low, 0).astype(int), np.minimum(low + 1, tiles - 1).astype(int), (at - low).astype(f)

    x1, x2, xa = between(w, tw, across)
    y1, y2, ya = (v[:, None] for v in between(h, th, down))
    out = np.empty_like(a)
    for c in range(a.shape[2]):
        v, one = a[..., c], f(1)
        tables = clahe_tables(np.pad(v, ((0, th * down - h), (0, tw * across - w)), "reflect"), s["amount"], across, down)
        upper = tables[y1, x1, v] * (one - xa) + tables[y1, x2, v] * xa
        lower = tables[y2, x1, v] * (one - xa) + tables[y2, x2, v] * xa
        out[..., c] = np.rint(upper * (one - ya) + lower * ya)
    return Image.fromarray(out)


STEPS = {
    "affine": transform(Image.AFFINE, 6),
    "perspective": transform(Image.PERSPECTIVE, 8),
    "brightness": lambda im, s: ImageEnhance.Brightness(im).enhance(s["amount"]),
    "contrast": lambda im, s: ImageEnhance.Contrast(im).enhance(s["amount"]),
    "saturation": lambda im, s: ImageEnhance.Color(im).enhance(s["amount"]),
    "sharpness": lambda im, s: ImageEnhance.Sharpness(im).enhance(s["amount"]),
    "hue": hue,
    "grayscale": lambda im, s: gray(im),
    "invert": lambda im, s: ImageOps.invert(im),
    "solarize": lambda im, s: ImageOps.solarize(im, s["amount"]),
    "posterize": lambda im, s: ImageOps.posterize(im, int(s["amount"])),
    "equalize": lambda im, s: ImageOps.equalize(im),
    "autocontrast": lambda im, s: ImageOps.autocontrast(im),
    "blur": blur,
    "erase": erase,
    "jpeg": jpeg,
    "permute": lambda im, s: Image.fromarray(np.asarray(im)[..., [s["x"] >> 2 * c & 3 for c in range(3)]]),
    "median": lambda im, s: im.filter(ImageFilter.MedianFilter(s["width"])),
    "grid": grid,
    "clahe": clahe,
    "crop": lambda im, s: im.crop((s["x"], s["y"], s["x"] + s["width"], s["y"] + s["height"])),
    "resize": lambda im, s: im.resize((s["width"], s["height"]), FILTER[s["filter"]]),
    "flip_h": lambda im, s: im.transpose(Image.FLIP_LEFT_RIGHT),
    "flip_v": lambda im, s: im.transpose(Image.FLIP_TOP_BOTTOM),
    "pad": pad,
}
# steps whose arithmetic is not Pillow's integer arithmetic: largest difference allowed
TOLERANCE = {"blur": 1}


def replay(im, recipe):
    tolerance = 0
    for s in recipe:
        im = STEPS[s["kind"]](im, s)
        tolerance = max(tolerance, TOLERANCE.get(s["kind"], 0))
    return im, tolerance
