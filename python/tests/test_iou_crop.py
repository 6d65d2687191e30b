# SPDX-License-Identifier: Apache-2.0
"""RandomIoUCrop beside torchvision's: each crop is applied by torchvision too, and both draw alike."""

import numpy as np
import pytest

import leat
from conftest import need_torchvision
from leat import ops

torch = pytest.importorskip("torch")
need_torchvision()
from torchvision import tv_tensors  # noqa: E402
from torchvision.transforms import v2  # noqa: E402

WIDTH, HEIGHT, SIDE, COUNT = 120, 90, 128, 1500
BOXES = np.float32([[10, 8, 46, 40], [50, 20, 110, 84], [30, 60, 44, 74]])


def coordinates():
    """Red is x + 1 and green is y + 1: a crop can be read from its pixels, padding is black."""
    image = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    image[..., 0] = np.arange(WIDTH)[None] + 1
    image[..., 1] = np.arange(HEIGHT)[:, None] + 1
    return image


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("iou") / "boxes.leat")
    schema = {"image": "image", "boxes": ("float32", (None, 4)), "name": ("int64", (None,))}
    with leat.Writer(path, schema, sync=False) as w:
        for _ in range(COUNT):
            w.append([coordinates(), BOXES, np.arange(3)])
    with leat.Loader(path, 50, [ops.RandomIoUCrop(), ops.CenterCrop(SIDE), ops.ToLayout("nhwc")], order="sequential",
                     seed=5, boxes=ops.Boxes("xyxy"), name=ops.Labels(), as_="numpy") as loader:
        return [row for batch in loader for row in zip(batch["image"], batch["boxes"], batch["name"])]


def crop_of(image):
    seen = image[image[..., 0] > 0]
    left, top = (int(v) - 1 for v in seen[:, :2].min(0))
    right, bottom = (int(v) for v in seen[:, :2].max(0))
    return left, top, right, bottom


def test_each_crop_as_torchvision_does_it(rows):
    whole = tv_tensors.Image(torch.from_numpy(coordinates()).permute(2, 0, 1))
    boxes = tv_tensors.BoundingBoxes(torch.from_numpy(BOXES), format="XYXY", canvas_size=(HEIGHT, WIDTH))
    for image, moved, names in rows[:300]:
        left, top, right, bottom = crop_of(image)
        centre = (BOXES[:, :2] + BOXES[:, 2:]) / 2
        if (right - left, bottom - top) == (WIDTH, HEIGHT):
            kept = np.ones(3, bool)
        else:  # torchvision keeps the boxes whose centre is inside
            kept = ((centre > [left, top]) & (centre < [right, bottom])).all(1)
        box = (top, left, bottom - top, right - left)
        cropped = v2.functional.center_crop(v2.functional.crop(whole, *box), [SIDE, SIDE])
        np.testing.assert_array_equal(cropped.permute(1, 2, 0).numpy(), image)
        np.testing.assert_array_equal(np.flatnonzero(kept), names)
        # torchvision's center_crop pads odd sides of an image and of its boxes one pixel apart: move boxes as the image
        left_pad, top_pad = (SIDE - (right - left)) // 2, (SIDE - (bottom - top)) // 2
        clipped = v2.functional.clamp_bounding_boxes(v2.functional.crop(boxes, *box)).numpy()
        np.testing.assert_allclose(clipped[kept] + np.float32([left_pad, top_pad] * 2), moved, atol=1e-4)


def test_both_draw_alike(rows):
    """Kolmogorov and Smirnov's distance of the crops' sides and places: below what 1500 draws allow."""
    torch.manual_seed(1)
    crop = v2.RandomIoUCrop()
    image = tv_tensors.Image(torch.zeros(1, HEIGHT, WIDTH, dtype=torch.uint8))
    boxes = tv_tensors.BoundingBoxes(torch.from_numpy(BOXES), format="XYXY", canvas_size=(HEIGHT, WIDTH))
    theirs = []
    for _ in range(COUNT):
        drawn = crop.make_params([image, boxes])
        theirs.append([drawn["left"], drawn["top"], drawn["left"] + drawn["width"], drawn["top"] + drawn["height"]]
                      if drawn else [0, 0, WIDTH, HEIGHT])
    ours, theirs = np.array([crop_of(row[0]) for row in rows]), np.array(theirs)
    limit = 2.69 * np.sqrt(2 / COUNT)  # passed by chance once in a million draws of the seeds
    for name, pick in {"left": lambda c: c[:, 0], "top": lambda c: c[:, 1], "width": lambda c: c[:, 2] - c[:, 0],
                       "height": lambda c: c[:, 3] - c[:, 1]}.items():
        grid = np.arange(WIDTH + 1)
        a, b = ((pick(c)[:, None] <= grid).mean(0) for c in (ours, theirs))
        assert np.abs(a - b).max() < limit, name
    whole = [(c[:, 2] - c[:, 0] == WIDTH).mean() for c in (ours, theirs)]
    assert 0.05 < min(whole) and max(whole) < 0.6
