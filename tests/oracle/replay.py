# SPDX-License-Identifier: Apache-2.0
"""Replays a drawn recipe with Pillow, doing each step like torchvision on PIL images."""
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


def elastic_shifts(s, width, height):
    """Where the pixels of an elastic step come from, in pixels: hashed noise, blurred as torchvision does it."""
    with np.errstate(over="ignore"):
        h = np.uint64(s["seed"]) + np.arange(width * height, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        for _ in range(2):
            h = (h ^ h >> np.uint64(32)) * np.uint64(0xD6E8FEB86659FD93)
        h ^= h >> np.uint64(32)
    alpha, sigma = s["matrix"][:2], s["matrix"][2:4]
    for axis, shift in enumerate((40, 8)):
        noise = (h >> np.uint64(shift) & np.uint64(0xFFFFFF)).astype(np.float32) * np.float32(2.0**-23) - np.float32(1)
        noise = noise.reshape(height, width)
        if sigma[axis] > 0:
            taps = int(8 * sigma[axis] + 1) | 1
            a = np.pad(noise, taps // 2, "reflect")
            rows = sum(k * a[:, i:i + width] for i, k in enumerate(gaussian(taps, sigma[0])))
            noise = sum(k * rows[i:i + height] for i, k in enumerate(gaussian(taps, sigma[1])))
        yield noise * np.float32(0.5 * alpha[axis])


def elastic(im, s):
    """torchvision's grid sampling, fill at the border included."""
    a = np.asarray(im).astype(np.float64)
    height, width = a.shape[:2]
    dx, dy = elastic_shifts(s, width, height)
    u, v = np.arange(width)[None] + dx.astype(float), np.arange(height)[:, None] + dy.astype(float)
    fill = np.array(s["fill"])
    if FILTER[s["filter"]] == Image.NEAREST:
        x, y = np.rint(u).astype(int), np.rint(v).astype(int)
        inside = (x >= 0) & (y >= 0) & (x < width) & (y < height)
        out = np.where(inside[..., None], a[np.clip(y, 0, height - 1), np.clip(x, 0, width - 1)], fill)
        return Image.fromarray(out.astype(np.uint8))
    total, share = np.zeros_like(a), np.zeros(u.shape)
    for k in range(4):
        x, y = np.floor(u) + k % 2, np.floor(v) + k // 2
        inside = (x >= 0) & (y >= 0) & (x < width) & (y < height)
        weight = (1 - abs(u - x)) * (1 - abs(v - y)) * inside
        share += weight
        total += weight[..., None] * a[np.clip(y, 0, height - 1).astype(int), np.clip(x, 0, width - 1).astype(int)]
    return Image.fromarray(np.rint((total - fill) * share[..., None] + fill).astype(np.uint8))


def clahe_tables(channel, limit, across, down):
    """A table per tile: OpenCV's counts, clipped at the limit, the excess spread evenly."""
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
    whole = h % down == 0 and w % across == 0  # otherwise OpenCV pads both axes
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
    "posterize": lambda im, s: ImageOps.posterize(im, int(s["amount"])) if s["amount"] else im.point(lambda v: 0),
    "equalize": lambda im, s: ImageOps.equalize(im),
    "autocontrast": lambda im, s: ImageOps.autocontrast(im),
    "blur": blur,
    "erase": erase,
    "jpeg": jpeg,
    "permute": lambda im, s: Image.fromarray(np.asarray(im)[..., [s["x"] >> 2 * c & 3 for c in range(3)]]),
    "median": lambda im, s: im.filter(ImageFilter.MedianFilter(s["width"])),
    "grid": grid,
    "clahe": clahe,
    "elastic": elastic,
    "crop": lambda im, s: im.crop((s["x"], s["y"], s["x"] + s["width"], s["y"] + s["height"])),
    "resize": lambda im, s: im.resize((s["width"], s["height"]), FILTER[s["filter"]]),
    "flip_h": lambda im, s: im.transpose(Image.FLIP_LEFT_RIGHT),
    "flip_v": lambda im, s: im.transpose(Image.FLIP_TOP_BOTTOM),
    "pad": pad,
}
# steps whose arithmetic is not Pillow's integer arithmetic: largest difference allowed
TOLERANCE = {"blur": 1, "elastic": 1}


def replay(im, recipe):
    tolerance = 0
    base = total = None
    for s in recipe:
        if s["kind"] in ("blend_start", "blend_add"):  # AugMix: float sums of copies, cut to whole numbers
            part = np.float32(s["amount"]) * np.asarray(im).astype(np.float32)
            base, total = (im, part) if s["kind"] == "blend_start" else (base, total + part)
            im = Image.fromarray(np.minimum(total, 255).astype(np.uint8)) if s["x"] else base
            continue
        im = STEPS[s["kind"]](im, s)
        tolerance = max(tolerance, TOLERANCE.get(s["kind"], 0))
    return im, tolerance
