# SPDX-License-Identifier: Apache-2.0
"""Augmentations for detection: crops that keep boxes, elastic transforms, mosaics; ten crops for validation.

    python examples/detection_ops.py [PACK]

Without a pack it makes one: bright rectangles on noise, each with its box, its class and a mask of the same pixels. After
every op the boxes still surround what the mask shows.
"""

import os
import sys
import tempfile

import numpy as np

import leat
from leat import ops


def make(path: str, samples: int = 48) -> str:
    rng = np.random.default_rng(1)
    schema = {"image": "image", "mask": "image", "boxes": ("float32", (None, 4)), "category": ("int64", (None,))}
    with leat.Writer(path, schema, sync=False) as writer:
        for _ in range(samples):
            image, mask, boxes = rng.integers(0, 60, (96, 128, 3), np.uint8), np.zeros((96, 128), np.uint8), []
            for number in range(rng.integers(1, 4)):
                x, y, w, h = (int(v) for v in (rng.integers(40 * number, 40 * number + 10), rng.integers(0, 50), *rng.integers(12, 30, 2)))
                image[y:y + h, x:x + w], mask[y:y + h, x:x + w] = 200 + 10 * number, number + 1
                boxes.append([x, y, x + w, y + h])
            writer.append([image, mask, np.float32(boxes), np.arange(len(boxes))])
    return path


def inside(batch) -> float:
    """The share of all marked pixels that are in a box, one pixel more on each side."""
    hit = total = 0
    for mask, boxes in zip(batch.mask, batch.boxes):
        ys, xs = np.nonzero(mask)
        seen = np.zeros(len(xs), bool)
        for x0, y0, x1, y1 in boxes:
            seen |= (xs + 2 > x0) & (xs < x1 + 1) & (ys + 2 > y0) & (ys < y1 + 1)
        hit, total = hit + seen.sum(), total + len(xs)
    return hit / max(total, 1)


def main(path: str) -> None:
    follow = {"mask": "follow", "boxes": ops.Boxes(min_size=1), "category": ops.Labels()}
    pipelines = {
        "RandomIoUCrop": [ops.RandomIoUCrop(), ops.Resize((64, 64))],
        "ElasticTransform": [ops.Resize((64, 64)), ops.ElasticTransform(30, 6)],
        "Mosaic": [ops.RandomCrop(64, pad_if_needed=True), ops.RandomHorizontalFlip(), ops.Mosaic()],
    }
    for name, pipeline in pipelines.items():
        with leat.Loader(path, 16, pipeline, order="random", seed=1, as_="numpy", **follow) as loader:
            batches = [(inside(batch), sum(map(len, batch.boxes)), batch.image.shape) for batch in loader]
        share, boxes = np.mean([b[0] for b in batches]), sum(b[1] for b in batches)
        print(f"{name}: images {batches[0][2]}, {boxes} boxes, {100 * share:.0f} % of the marked pixels in a box")
    with leat.Loader(path, 16, [ops.Resize(72), ops.TenCrop(64)], order="sequential", as_="numpy", fields=[]) as loader:
        print(f"TenCrop: images {next(iter(loader)).image.shape}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(make(os.path.join(folder, "boxes.leat")))
