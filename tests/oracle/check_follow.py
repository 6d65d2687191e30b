# SPDX-License-Identifier: Apache-2.0
"""Compares masks, boxes and points that follow an image with torchvision's v2 tv_tensors.

    PYTHONPATH=<where leat is> python tests/oracle/check_follow.py build/tests/oracle/op_oracle [--count N]

Each pipeline runs through leat.Loader over a pack of images of many sizes. op_oracle draws the recipe; torchvision
replays it step by step. Crops, flips, resizes and pads must be equal bit for bit (boxes as xyxy, points); rotated
ones within the stated tolerance.
"""
import argparse
import collections
import os
import random
import sys
import tempfile

import numpy as np
import torch

LIBRARY = torch.library.Library("torchvision", "DEF")
for name in ("nms", "qnms"):  # only declared: the compiled part of torchvision is not needed
    try:
        LIBRARY.define(name + "(Tensor a, Tensor b, float c) -> Tensor")
    except RuntimeError:
        pass
from torchvision import tv_tensors  # noqa: E402
from torchvision.transforms import InterpolationMode as M  # noqa: E402
from torchvision.transforms.v2 import functional as F  # noqa: E402

import leat  # noqa: E402
from check_ops import Oracle, picture  # noqa: E402
from replay import elastic_shifts  # noqa: E402

EDGES = ["constant", "edge", "reflect", "symmetric"]
BOX_TOLERANCE = {"exact": 0.0, "turned": 0.01, "bent": 0.01, "ties": 0.01, "expanded": 1.01}  # pixels
# Share of pixels. A quarter turn of an odd by even image puts every pixel between two: ties.
MASK_TOLERANCE = {"exact": 0.0, "turned": 0.03, "bent": 0.01, "ties": 0.25, "expanded": 0.25}
SEED = 11


def samples(rng, count):
    for _ in range(count):
        w, h = (int(v) for v in rng.integers(20, 120, 2))
        mask = np.kron(rng.integers(0, 21, (h // 8 + 1, w // 8 + 1)), np.ones((8, 8), int))[:h, :w].astype(np.uint8)
        n = int(rng.integers(0, 5))
        xy = rng.uniform(0, 1, (n, 2, 2)) * [w, h]
        boxes = np.concatenate([xy.min(1), xy.max(1)], 1).astype(np.float32)
        points = (rng.uniform(0, 1, (3, 2)) * [w - 1, h - 1]).astype(np.float32)
        yield picture(rng, w, h), mask, boxes, points, np.arange(n)


def pipeline(rnd):
    """(text, kind): rotations with fixed numbers, everything else drawn."""
    s, t = rnd.choice([17, 32, 50, 64]), rnd.choice([24, 40, 64])
    color = rnd.choice(["", "ColorJitter(0.4, hue=0.1); ", "RandomInvert(); ", "RandomErasing(1); "])
    flips = rnd.choice(["", "RandomHorizontalFlip(); ", "RandomVerticalFlip(); RandomHorizontalFlip(); "])
    pad = rnd.choice(["", "Pad((1, 2, 3, 4)); ", "Pad(3, padding_mode=reflect); "])
    first = rnd.choice([f"RandomResizedCrop(({s}, {t}))", f"Resize({s}); CenterCrop({t})", f"Resize(({t}, {s}))",
                        f"RandomCrop({t}, pad_if_needed=true)", f"CenterCrop(({s}, {t}))",
                        f"Resize(({s}, {t})); RandomCrop(16, padding=3)"])
    angle, scale, shear = rnd.choice([-70, -20, 15, 33, 90]), rnd.choice([0.8, 1.0, 1.3]), rnd.choice([0, 7])
    turn = rnd.choice(["", "", "", f"RandomRotation(({angle}, {angle}))",
                       f"RandomRotation(({angle}, {angle}), expand=true)",
                       f"RandomAffine(({angle}, {angle}), (0, 0), ({scale}, {scale}), ({shear}, {shear}, 0, 0))",
                       "RandomPerspective(0.4, p=1)", "ElasticTransform(60, 2)"])
    kind = "exact" if not turn else "bent" if "Elastic" in turn else "expanded" if "expand" in turn else "ties" if "(90, 90)" in turn else "turned"
    last = "CenterCrop(30)" if kind == "expanded" else ""
    ops = [color + flips + first, pad.rstrip("; "), turn, last, rnd.choice(["", "RandomHorizontalFlip()"])]
    return "; ".join(op for op in ops if op), kind, (angle, scale, shear)


def replay(recipe, fixed, targets):
    """torchvision's functions on (mask, boxes, points)."""
    def each(f):
        return [f(t) for t in targets]
    for s in recipe:
        k = s["kind"]
        if k == "crop":
            targets = each(lambda t: F.crop(t, s["y"], s["x"], s["height"], s["width"]))
        elif k == "resize":
            targets = each(lambda t: F.resize(t, [s["height"], s["width"]]))
            targets[1] = F.clamp_bounding_boxes(targets[1])  # rounding may move it past the border
        elif k == "flip_h":
            targets = each(F.horizontal_flip)
        elif k == "flip_v":
            targets = each(F.vertical_flip)
        elif k == "pad":
            h, w = targets[0].shape[-2:]
            border = [s["x"], s["y"], s["width"] - w - s["x"], s["height"] - h - s["y"]]
            mask = F.pad(targets[0], border, padding_mode=EDGES[s["edge"]])
            targets = [mask, *(F.pad(t, border) for t in targets[1:])]
        elif k == "elastic":
            h, w = targets[0].shape[-2:]
            dx, dy = elastic_shifts(s, w, h)
            field = torch.from_numpy(np.stack([dx * (2 / w), dy * (2 / h)], -1))[None].float()
            targets = each(lambda t: F.elastic(t, field, fill=0))
        elif k == "perspective":
            targets = each(lambda t: F.perspective(t, None, None, coefficients=s["matrix"][:8],
                                                   interpolation=M.NEAREST))
        elif k == "affine":
            angle, scale, shear = fixed
            h, w = targets[0].shape[-2:]
            grown = (s["width"], s["height"]) != (w, h)
            if "Affine" in fixed_text:
                targets = each(lambda t: F.affine(t, angle, [0, 0], scale, [shear, 0], interpolation=M.NEAREST))
            else:
                targets = each(lambda t: F.rotate(t, angle, M.NEAREST, expand=grown or "expand" in fixed_text))
    return targets


fixed_text = ""


def compare(batch, i, want, kind, drops):
    mask, boxes, points = want
    wrong = (batch["mask"][i] != mask.numpy()[0]).mean() if batch["mask"][i].shape == mask.shape[1:] else 1.0
    keep = (boxes[:, 2] - boxes[:, 0] >= 1) & (boxes[:, 3] - boxes[:, 1] >= 1)
    near = kind != "exact" and bool((((boxes[:, 2:] - boxes[:, :2]) - 1).abs() < 1.1).any())
    got, numbers = batch["boxes"][i], batch["category"][i].tolist()
    if near and numbers != torch.nonzero(keep).flatten().tolist():
        off = 0.0  # at the threshold of a size that is only approximate
    elif numbers != torch.nonzero(keep).flatten().tolist():
        return wrong, float("inf"), 0.0
    else:
        off = float(np.abs(np.asarray(got) - boxes[keep].numpy()).max(initial=0))
    drops[0] += int((~keep).sum())
    near_by = np.abs(points.numpy()).max(1) < 1000  # a perspective may move points anywhere
    moved = np.abs(batch["points"][i] - points.numpy())[near_by].max(initial=0)
    return wrong, off, float(moved)


def main():
    global fixed_text
    parser = argparse.ArgumentParser()
    parser.add_argument("oracle")
    parser.add_argument("--count", type=int, default=10000, help="pipelines x images")
    parser.add_argument("--images", type=int, default=50)
    args = parser.parse_args()
    oracle, rnd, rng = Oracle(args.oracle), random.Random(5), np.random.default_rng(6)
    data = list(samples(rng, args.images))
    path = os.path.join(tempfile.mkdtemp(), "follow.leat")
    with leat.Writer(path, {"image": "image", "mask": "image", "boxes": ("float32", (None, 4)),
                            "points": ("float32", (3, 2)), "category": ("int64", (None,))}, sync=False) as w:
        for row in data:
            w.append(list(row))
    worst = collections.defaultdict(lambda: [0.0, 0.0, 0.0])
    seen, failures, drops = collections.Counter(), 0, [0]
    while sum(seen.values()) < args.count:
        text, kind, fixed = pipeline(rnd)
        fixed_text = text
        with leat.Loader(path, len(data), text, order="sequential", seed=SEED, as_="numpy", mask="follow",
                         boxes="follow", category=leat.ops.Labels(), points=leat.ops.Keypoints()) as loader:
            (batch,) = list(loader)
        for i, (pixels, mask, boxes, points, _) in enumerate(data):
            _, recipe = oracle.run(pixels, text, seed=SEED, sample=i)
            size = mask.shape
            want = replay(recipe, fixed, [
                tv_tensors.Mask(torch.from_numpy(mask)[None]),
                tv_tensors.BoundingBoxes(torch.from_numpy(boxes), format="XYXY", canvas_size=size),
                tv_tensors.KeyPoints(torch.from_numpy(points), canvas_size=size)])
            wrong, off, moved = compare(batch, i, want, kind, drops)
            seen[kind] += 1
            worst[kind] = [max(a, b) for a, b in zip(worst[kind], (wrong, off, moved))]
            point_limit = {"exact": 0, "turned": 0.5, "bent": 0.01, "ties": 0.5, "expanded": 1.6}[kind]
            if wrong > MASK_TOLERANCE[kind] or off > BOX_TOLERANCE[kind] or moved > point_limit:
                failures += 1
                if failures < 10:
                    print(f"{text} on image {i} {size}: mask {wrong:.4f}, boxes {off}, points {moved}")
    for kind, (wrong, off, moved) in worst.items():
        print(f"{kind}: {seen[kind]} pairs, at worst {wrong:.4f} of a mask's pixels, boxes {off:.5f}, "
              f"points {moved:.5f} pixels")
    print(f"{drops[0]} boxes were dropped; {failures} disagreements")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
