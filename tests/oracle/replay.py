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
