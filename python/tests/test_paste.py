# SPDX-License-Identifier: Apache-2.0
"""CopyPaste through the loader, against NumPy: pixels, masks, boxes and labels."""

import numpy as np
import pytest

import leat
from leat import ops

COUNT, SIDE = 30, 40


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    rng = np.random.default_rng(5)
    path = tmp_path_factory.mktemp("paste") / "a.leat"
    with leat.Writer(path, {"image": "image", "mask": "image", "boxes": ("float32", (None, 4)),
                            "category": ("int64", (None,)), "label": int}, sync=False) as w:
        for i in range(COUNT):
            image, mask, boxes = rng.integers(0, 256, (SIDE, SIDE, 3), np.uint8), np.zeros((SIDE, SIDE), np.uint8), []
            for k in range(i % 5):
                x, y, bw, bh = (int(n) for n in rng.integers([0, 0, 3, 3], [30, 30, 20, 20]))
                box = [x, y, min(x + bw, SIDE), min(y + bh, SIDE)]
                mask[box[1]:box[3], box[0]:box[2]] = np.where(rng.random((box[3] - y, box[2] - x)) < 0.7, k + 1, 0)
                boxes.append([box[0] + 0.25, box[1], box[2] - 0.5, box[3]])
            w.append([image, mask, np.array(boxes, np.float32).reshape(-1, 4), np.arange(len(boxes)) + 10 * i, i])
    return str(path)


def rows(path, pipeline, **options):
    options = {"boxes": "follow", "category": "follow"} | options
    with leat.Loader(path, 8, pipeline, order="random", seed=2, as_="numpy", drop_last=False, fields=["label"], **options) as loader:
        for batch in loader:
            yield [{name: np.array(value[i]) for name, value in batch.items()} for i in range(len(batch.sample_id))]


def pixels_of(box):
    x0, y0, x1, y1 = int(np.floor(box[0])), int(np.floor(box[1])), int(np.ceil(box[2])), int(np.ceil(box[3]))
    return slice(y0, y1), slice(x0, x1)


def expected(own, other, chosen, masked, visible):
    """What a sample becomes when these boxes of the other one are pasted."""
    take = np.zeros((SIDE, SIDE), bool)
    for i in chosen:
        take[pixels_of(other["boxes"][i])] |= (other["mask"][pixels_of(other["boxes"][i])] != 0) if masked else True
    made = {"image": np.where(take[..., None], other["image"], own["image"])}
    if masked:
        made["mask"] = np.where(take, other["mask"], own["mask"])
    keep = [i for i, box in enumerate(own["boxes"])
            if (seen := 1 - take[pixels_of(box)].mean()) == 1 or (seen > 0 and seen >= visible)]
    made["boxes"] = np.concatenate([own["boxes"][keep], other["boxes"][chosen]])
    made["category"] = np.concatenate([own["category"][keep], other["category"][chosen]])
    return made


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("visible", [0, 0.6])
def test_objects_of_the_sample_before(pack, masked, visible):
    options = {"mask": "follow"} if masked else {}
    options |= {"boxes": ops.Boxes("xyxy", min_visible=visible)}
    moves = [ops.RandomHorizontalFlip(), ops.Resize((SIDE, SIDE)), ops.ToLayout("nhwc")]
    pasted = dropped = same = 0
    for before, after in zip(rows(pack, moves, **options), rows(pack, [*moves, ops.CopyPaste(share=0.6, p=0.7)], **options)):
        for i, row in enumerate(after):
            own, other = before[i], before[i - 1]
            chosen = [k for k, c in enumerate(other["category"]) if len(before) > 1 and c in row["category"]]
            for name, want in expected(own, other, chosen, masked, visible).items():
                np.testing.assert_array_equal(row[name], want, err_msg=f"{name} of row {i}")
            assert row["label"] == own["label"]
            pasted += len(chosen)
            dropped += len(own["boxes"]) + len(chosen) - len(row["boxes"])
            same += not chosen
    assert pasted > 8 and same > 5 and (dropped > 0) == (visible > 0 or dropped > 0)


def test_extremes(pack):
    moves = [ops.Resize((SIDE, SIDE))]
    plain = [row for batch in rows(pack, moves) for row in batch]
    for op in (ops.CopyPaste(p=0), ops.CopyPaste(share=0, p=1)):
        for a, b in zip(plain, (row for batch in rows(pack, [*moves, op]) for row in batch), strict=True):
            for name in a:
                np.testing.assert_array_equal(a[name], b[name])
    for before, after in zip(rows(pack, moves), rows(pack, [*moves, ops.CopyPaste(share=1, p=1)])):
        for i, row in enumerate(after):
            assert set(before[i - 1]["category"]) <= set(row["category"])


def test_threads_and_types_change_nothing(pack):
    made = []
    for threads in (1, 3):
        made.append([row for batch in rows(pack, [ops.Resize((SIDE, SIDE)), ops.ToDtype("f32"), ops.CopyPaste(p=1)], threads=threads)
                     for row in batch])
    for a, b in zip(*made, strict=True):
        for name in a:
            np.testing.assert_array_equal(a[name], b[name])
    whole = [row for batch in rows(pack, [ops.Resize((SIDE, SIDE)), ops.CopyPaste(p=1)]) for row in batch]
    for a, b in zip(made[0], whole, strict=True):
        np.testing.assert_array_equal(np.rint(a["image"] * 255), b["image"])


def test_what_does_not_fit_is_refused(pack):
    moves = [ops.CenterCrop(20), ops.CopyPaste()]
    with pytest.raises(leat.ArgumentError, match="CopyPaste needs boxes: let a field follow image 'image' as Boxes"):
        leat.Loader(pack, 8, moves)
    with pytest.raises(leat.ArgumentError, match="CopyPaste needs images of one size: collate must be stack"):
        leat.Loader(pack, 8, [ops.Resize(20), ops.CopyPaste()], collate="list", boxes="follow")
    with pytest.raises(leat.ArgumentError, match="cannot follow an image that MixUp or CutMix changes"):
        leat.Loader(pack, 8, [*moves, ops.MixUp()], boxes="follow")
