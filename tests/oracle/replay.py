# SPDX-License-Identifier: Apache-2.0
"""Replays a drawn recipe with Pillow: what torchvision does on PIL images for each step."""
import numpy as np
from PIL import Image

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


STEPS = {
    "crop": lambda im, s: im.crop((s["x"], s["y"], s["x"] + s["width"], s["y"] + s["height"])),
    "resize": lambda im, s: im.resize((s["width"], s["height"]), FILTER[s["filter"]]),
    "flip_h": lambda im, s: im.transpose(Image.FLIP_LEFT_RIGHT),
    "flip_v": lambda im, s: im.transpose(Image.FLIP_TOP_BOTTOM),
    "pad": pad,
}
# steps whose arithmetic is not Pillow's integer arithmetic: largest difference allowed
TOLERANCE = {}


def replay(im, recipe):
    tolerance = 0
    for s in recipe:
        im = STEPS[s["kind"]](im, s)
        tolerance = max(tolerance, TOLERANCE.get(s["kind"], 0))
    return im, tolerance
