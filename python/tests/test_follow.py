# SPDX-License-Identifier: Apache-2.0
"""Masks, boxes, labels and points that follow an image. torchvision is compared by
tests/oracle/check_follow.py; here are references in NumPy."""

import io

import numpy as np
import pytest
from PIL import Image

import leat
from leat import ops

COUNT = 40
MOVES = [ops.RandomCrop(40, padding=6), ops.RandomHorizontalFlip(), ops.RandomVerticalFlip(), ops.Pad((2, 1, 0, 3))]


def palette_png(mask, bits=8):
    im = Image.fromarray(mask, "P")
    im.putpalette([(7 * i + 3 * c) % 256 for i in range(256) for c in range(3)])
    out = io.BytesIO()
    im.save(out, "PNG", bits=bits)
    return out.getvalue()


@pytest.fixture(scope="module")
def data():
    """Images whose red is their mask: 1 + number inside each box, boxes never overlap."""
    rng = np.random.default_rng(3)
    rows = []
    for i in range(COUNT):
        h, w = int(rng.integers(44, 70)), int(rng.integers(44, 70))
        mask, boxes = np.zeros((h, w), np.uint8), []
        for k in range(i % 4):
            x, y = 2 + 14 * k, int(rng.integers(0, h - 12))
            bw, bh = int(rng.integers(3, 13)), int(rng.integers(3, 13))
            mask[y:y + bh, x:x + bw] = k + 1
            boxes.append([x, y, x + bw, y + bh])
        image = np.stack([mask, mask * 0 + 9, mask * 0 + 5], -1)
        rows.append((image, mask, np.array(boxes, np.float32).reshape(-1, 4)))
    return rows


def write(path, data, kind, dtype="float32", relative=False, bits=8):
    def coded(mask, boxes):
        b = boxes.copy()
        if kind != "xyxy":
            b[:, 2:] -= b[:, :2]
        if kind == "cxcywh":
            b[:, :2] += b[:, 2:] / 2
        return (b / np.float32([*mask.shape[::-1]] * 2) if relative else b).astype(dtype)

    with leat.Writer(path, {"image": "image", "mask": "image", "boxes": (dtype, (None, 4)),
                            "category": ("int64", (None,)), "points": ("float32", (None, 3)), "label": int},
                     sync=False) as w:
        for i, (image, mask, boxes) in enumerate(data):
            points = np.array([[b[0], b[1], 2] for b in boxes], np.float32).reshape(-1, 3)
            w.append([image, palette_png(mask, bits), coded(mask, boxes), np.arange(len(boxes)) + 100, points, i])
    return path


@pytest.fixture(scope="module")
def pack(tmp_path_factory, data):
    return write(str(tmp_path_factory.mktemp("follow") / "xyxy.leat"), data, "xyxy")


def load(path, pipeline=MOVES, **options):
    options = {"boxes": "follow", "category": "follow", "points": "follow", "mask": "follow"} | options
    options = {k: v for k, v in options.items() if v is not None}
    with leat.Loader(path, 16, pipeline, order="random", seed=2, as_="numpy", **options) as loader:
        for batch in loader:
            for i in range(len(batch.sample_id)):
                yield {name: value[i] for name, value in batch.items()}


def extent(mask, value):
    ys, xs = np.nonzero(mask == value)
    return (xs.min(), ys.min(), xs.max() + 1, ys.max() + 1) if len(xs) else None


def check(row, tolerance=0):
    """What the delivered mask shows is where the boxes are."""
    np.testing.assert_array_equal(row["mask"], row["image"][0])
    found = {int(v): extent(row["mask"], v) for v in np.unique(row["mask"]) if v}
    assert [c - 99 for c in row["category"].tolist()] == sorted(found)
    for box, (_, want) in zip(row["boxes"], sorted(found.items())):
        np.testing.assert_allclose(box, want, atol=tolerance)


def test_all_follow_exactly(pack, data):
    rows = list(load(pack))
    assert len(rows) == COUNT and sum(len(r["category"]) for r in rows) < sum(len(b) for *_, b in data)
    for row in rows:
        check(row)
        assert row["mask"].shape == (44, 42) and row["mask"].dtype == np.uint8
        assert len(row["points"]) == len(data[row["label"]][2])  # points are never dropped
        seen = (row["points"][:, :2] >= 0).all(1) & (row["points"][:, :2] < [42, 44]).all(1)
        np.testing.assert_array_equal(row["points"][:, 2], np.where(seen, 2, 0))


@pytest.mark.parametrize("pipeline", [
    [ops.ColorJitter(0.0, p=1), *MOVES], [MOVES[0], ops.RandomErasing(0), *MOVES[1:]],
    ["RandomResizedCrop(40, interpolation=nearest)"]])
def test_colour_does_not_matter(pack, pipeline):
    for a, b in zip(load(pack, pipeline), load(pack, [*pipeline, ops.RandomInvert(1)])):
        for name in ("mask", "boxes", "category", "points"):
            np.testing.assert_array_equal(a[name], b[name])


@pytest.mark.parametrize("pipeline", [
    [ops.RandomApply([MOVES[0], ops.RandomHorizontalFlip(1)], 0.5), "CenterCrop((44, 42))"],
    [MOVES[0], ops.RandomChoice([ops.RandomHorizontalFlip(1), ops.RandomVerticalFlip(1), "RandomApply(Pad(3); CenterCrop(40), p=1)"])],
    [ops.RandomOrder([ops.Pad((0, 3, 6, 1)), ops.RandomHorizontalFlip(1), ops.RandomCrop(40)]), "CenterCrop(44)"]])
def test_all_follow_inside_combinators(pack, pipeline):
    rows = list(load(pack, pipeline))
    assert len(rows) == COUNT and sum(len(r["category"]) for r in rows) > 20
    for row in rows:
        check(row)


@pytest.mark.parametrize("kind", ["xyxy", "xywh", "cxcywh"])
@pytest.mark.parametrize("relative", [False, True])
def test_formats(tmp_path, pack, data, kind, relative):
    path = write(str(tmp_path / "p.leat"), data, kind, relative=relative)
    for a, b in zip(load(pack), load(path, boxes=ops.Boxes(kind, relative=relative))):
        got = b["boxes"] * ([42, 44, 42, 44] if relative else 1)
        if kind == "cxcywh":
            got[:, :2] -= got[:, 2:] / 2
        if kind != "xyxy":
            got[:, 2:] += got[:, :2]
        np.testing.assert_allclose(got, a["boxes"], atol=1e-3)
        np.testing.assert_array_equal(a["category"], b["category"])


@pytest.mark.parametrize("dtype", ["float64", "int32", "int64"])
def test_types(tmp_path, pack, data, dtype):
    path = write(str(tmp_path / "p.leat"), data, "xyxy", dtype=dtype)
    for a, b in zip(load(pack), load(path)):
        assert b["boxes"].dtype == np.float32
        np.testing.assert_array_equal(a["boxes"], b["boxes"])


@pytest.mark.parametrize("bits", [4, 2])
def test_packed_palettes(tmp_path, pack, data, bits):
    path = write(str(tmp_path / "p.leat"), data, "xyxy", bits=bits)
    for a, b in zip(load(pack), load(path)):
        np.testing.assert_array_equal(a["mask"], b["mask"])


def test_elastic_moves_all_alike(pack):
    """The red of an image is its mask, moved by the same shifts."""
    moved = 0
    for row in load(pack, [ops.CenterCrop(44), ops.ElasticTransform(80, 5, "nearest"), ops.ToLayout("nhwc")]):
        np.testing.assert_array_equal(row["image"][..., 0], row["mask"])
        for number, box in zip(row["category"], row["boxes"]):
            ys, xs = np.nonzero(row["mask"] == number - 99)
            if len(xs) > 20:
                centre = (box[:2] + box[2:]) / 2
                assert np.abs(centre - [xs.mean() + 0.5, ys.mean() + 0.5]).max() < 4
                moved += 1
        assert len(row["boxes"]) == len(row["category"])
    assert moved > 10


def test_nothing_follows_augmix(pack):
    with pytest.raises(leat.ArgumentError, match="'mask' cannot follow AugMix, which makes several images of one"):
        next(load(pack, [ops.CenterCrop(32), ops.AugMix()], boxes=None, category=None, points=None))


def crops(pack, threads, **options):
    pipeline = [ops.RandomIoUCrop(sampler_options=(0, 0.01)), ops.RandomCrop(70, pad_if_needed=True), ops.ToLayout("nhwc")]
    return {int(row["label"]): row for row in load(pack, pipeline, threads=threads, **options)}


def test_iou_crop(pack, data):
    """A box stays, with its middle inside; others go with their labels; the mask is cropped alike."""
    rows, cropped = crops(pack, 1), 0
    for number, (_, mask, boxes) in enumerate(data):
        row = rows[number]
        np.testing.assert_array_equal(row["image"][..., 0], row["mask"])
        assert len(row["boxes"]) == len(row["category"])
        if len(boxes):
            assert 1 <= len(row["boxes"])
            cropped += row["mask"].astype(bool).sum() < mask.astype(bool).sum() or len(row["boxes"]) < len(boxes)
        for box, name in zip(row["boxes"], row["category"]):
            whole = boxes[name - 100]
            assert (box[2:] - box[:2] <= whole[2:] - whole[:2] + 1e-3).all()
            ys, xs = np.nonzero(row["mask"] == name - 99)
            np.testing.assert_allclose([xs.min(), ys.min(), xs.max() + 1, ys.max() + 1], box, atol=1e-3)
    assert cropped > 5
    again = crops(pack, 3)
    for number, row in rows.items():
        for field, value in row.items():
            np.testing.assert_array_equal(again[number][field], value)


@pytest.mark.parametrize("kind, relative", [("xywh", False), ("cxcywh", True)])
def test_iou_crop_reads_all_formats(tmp_path, pack, data, kind, relative):
    rows, path = crops(pack, 2), write(str(tmp_path / "other.leat"), data, kind, relative=relative)
    for number, row in crops(path, 2, boxes=ops.Boxes(kind, relative=relative)).items():
        np.testing.assert_array_equal(row["mask"], rows[number]["mask"])


def test_iou_crop_needs_boxes(pack):
    pipeline = [ops.RandomIoUCrop(), ops.Resize((20, 20))]
    with pytest.raises(leat.ArgumentError, match="RandomIoUCrop needs boxes: let a field follow image 'image'"):
        next(load(pack, pipeline, boxes=None, category=None))
    with pytest.raises(leat.ArgumentError, match="RandomIoUCrop needs boxes"):
        next(load(pack, pipeline, boxes=None, category=None, points=None, mask=None))
    with pytest.raises(leat.ArgumentError, match="RandomIoUCrop needs boxes"):
        leat.open(pack, image=pipeline)
    with pytest.raises(leat.ArgumentError, match="output size of RandomIoUCrop is not known in advance"):
        next(load(pack, pipeline[:1], collate="list"))
    with pytest.raises(leat.ArgumentError, match="cannot follow FiveCrop"):
        next(load(pack, "FiveCrop(20)"))


def shifted(rows, row, k, side):
    """Boxes and labels of part k of a mosaic whose parts meet in the middle."""
    half, part = side // 2, rows[(row - k) % len(rows)]
    low = np.float32([half * (k % 2), half * (k // 2)])
    boxes = part["boxes"] + np.tile(low - np.float32([half * (1 - k % 2), half * (1 - k // 2)]), 2)
    boxes = np.clip(boxes, np.tile(low, 2), np.tile(low + half, 2))
    keep = (boxes[:, 2:] - boxes[:, :2] >= 1).all(1)
    return boxes[keep], part["category"][keep]


def in_batches(path, pipeline, **options):
    options = {"boxes": "follow", "category": "follow", "mask": "follow"} | options
    with leat.Loader(path, 16, pipeline, order="random", seed=2, as_="numpy", fields=["label"], digest=True, **options) as loader:
        for batch in loader:
            yield [{name: value[i] for name, value in batch.items()} for i in range(len(batch.sample_id))]


def test_mosaic(pack):
    """Four parts meet in the middle: images, masks, boxes and labels of four samples."""
    moves = [ops.RandomCrop(40, padding=6), ops.RandomHorizontalFlip(), ops.ToLayout("nhwc")]
    more = 0
    for before, after in zip(in_batches(pack, moves), in_batches(pack, [*moves, ops.Mosaic((0.5, 0.5))])):
        for i, row in enumerate(after):
            for field in ("image", "mask"):
                a, b, c, d = (before[(i - k) % len(before)][field] for k in range(4))
                want = np.concatenate([np.concatenate([a[20:, 20:], b[20:, :20]], 1), np.concatenate([c[:20, 20:], d[:20, :20]], 1)])
                np.testing.assert_array_equal(row[field], want)
            boxes, labels = zip(*(shifted(before, i, k, 40) for k in range(4)))
            np.testing.assert_array_equal(row["boxes"], np.concatenate(boxes))
            np.testing.assert_array_equal(row["category"], np.concatenate(labels))
            more += len(row["boxes"]) > len(before[i]["boxes"])
    assert more > 10


def test_mosaic_threads_and_options(pack):
    moves = [ops.CenterCrop(44), ops.Mosaic(p=0.5), ops.ToLayout("nhwc")]
    first = [row for batch in in_batches(pack, moves, threads=1) for row in batch]
    again = [row for batch in in_batches(pack, moves, threads=3) for row in batch]
    plain = [row for batch in in_batches(pack, [moves[0], moves[2]]) for row in batch]
    for a, b in zip(first, again):
        for field in a:
            np.testing.assert_array_equal(a[field], b[field])
    same = np.mean([np.array_equal(a["image"], b["image"]) for a, b in zip(first, plain)])
    assert 0.2 < same < 0.8
    for row in first:
        np.testing.assert_array_equal(row["image"][..., 0], row["mask"])
        assert len(row["boxes"]) == len(row["category"])
    for pipeline, options, why in (
            ([*moves[:2]], {"points": "follow"}, "points cannot follow Mosaic"),
            ([*moves[:1], ops.Mosaic(), ops.MixUp()], {}, "cannot follow an image that MixUp or CutMix changes"),
            ([*moves[:2]], {"classes": 3}, "classes has no effect"), ("Resize(30); Mosaic()", {"collate": "list"}, "must be stack"),
            ("CenterCrop(9); Mosaic((0.7, 0.3))", {}, "Mosaic.center")):
        with pytest.raises(leat.ArgumentError, match=why):
            list(in_batches(pack, pipeline, **options))


def test_mosaic_resumes_inside_a_batch(pack):
    options = {"order": "random", "seed": 2, "as_": "numpy", "boxes": "follow", "category": "follow", "mask": "follow", "fields": ["label"]}
    pipeline = [ops.CenterCrop(44), ops.Mosaic()]
    with leat.Loader(pack, 16, pipeline, **options) as loader:
        whole = [{n: [np.array(v) for v in value] for n, value in batch.items()} for batch in loader]
    with leat.Loader(pack, 16, pipeline, **options) as loader:
        next(iter(loader))
        state = loader.state_dict() | {"position": 21}
    with leat.Loader(pack, 16, pipeline, **options) as loader:
        loader.load_state_dict(state)
        rest = next(iter(loader))
        for name, value in rest.items():
            for got, want in zip(value, whole[1][name][5:], strict=True):
                np.testing.assert_array_equal(got, want)


def test_visible_share_and_size(pack):
    def boxes(**rule):
        return [(r["label"], c) for r in load(pack, boxes=ops.Boxes(**rule)) for c in r["category"].tolist()]
    every, half, whole, large = boxes(), boxes(min_visible=0.5), boxes(min_visible=1), boxes(min_size=8)
    assert set(whole) < set(half) < set(every) and set(large) < set(every)


def test_rotation_fill_and_views(pack):
    turned = [ops.Resize((40, 40)), ops.RandomRotation((90, 90))]
    for row in load(pack, turned, mask=ops.Mask(fill=255)):
        for box, value in zip(row["boxes"], row["category"] - 99):
            want = extent(row["mask"], value)
            if want is not None:
                np.testing.assert_allclose(box, want, atol=1.5)
    grown = list(load(pack, [ops.Resize((40, 40)), ops.Pad(3)], mask=ops.Mask(fill=255)))
    assert all((r["mask"][:3] == 255).all() and (r["mask"][3:-3, 3:-3] != 255).all() for r in grown)
    views = {"a": ("image", MOVES), "b": ("image", MOVES)}
    for row in load(pack, views, mask=ops.Mask(image="b")):
        np.testing.assert_array_equal(row["mask"], row["b"][0])


def test_threads_resume_and_skip(pack):
    one, two = list(load(pack, threads=1)), list(load(pack, threads=3))
    for a, b in zip(one, two):
        np.testing.assert_array_equal(a["boxes"], b["boxes"])
    options = {"order": "random", "seed": 2, "as_": "numpy", "mask": "follow", "boxes": "follow"}
    with leat.Loader(pack, 16, MOVES, **options) as loader:
        next(iter(loader))
        state = loader.state_dict()
    with leat.Loader(pack, 16, MOVES, **options) as loader:
        loader.load_state_dict(state)
        rest = [batch.mask[i] for batch in loader for i in range(len(batch.mask))]
    for a, b in zip(one[16:], rest):
        np.testing.assert_array_equal(a["mask"], b)


@pytest.mark.parametrize("options, why", [
    ({"mask": ops.Boxes()}, "Boxes need a ragged field"),
    ({"boxes": ops.Mask()}, "is not an image"),
    ({"label": None, "follow": {"label": "follow"}}, "say what field 'label' is"),
    ({"boxes": None}, "'category' has no boxes"),
    ({"mask": ops.Mask(image="other")}, "no image 'other'"),
    ({"follow": {"image": "follow"}}, "cannot follow itself"),
    ({"follow": {"nothing": "follow"}}, "there is no field 'nothing'"),
    ({"mask": ops.Resize(3)}, "cannot be Resize"),
    ({"mask": 3}, "neither"),
    ({"on_error": "replace"}, "fixed size"),
])
def test_refusals(pack, options, why):
    with pytest.raises(leat.ArgumentError, match=why):
        next(load(pack, **options))


def test_more_refusals(pack):
    with pytest.raises(TypeError, match="did you mean 'mask'"):
        leat.Loader(pack, 4, MOVES, masc="follow")
    with pytest.raises(leat.ArgumentError, match="MixUp or CutMix"):
        leat.Loader(pack, 4, [*MOVES, ops.MixUp()], classes=40, mask="follow")
    with pytest.raises(leat.ArgumentError, match="give it to follow"):
        leat.Loader(pack, 4, [*MOVES, ops.Mask()])


def test_masks_that_do_not_fit(tmp_path, data):
    path = str(tmp_path / "p.leat")
    with leat.Writer(path, {"image": "image", "mask": "image"}, sync=False) as w:
        w.append([data[0][0], data[0][1][:-1]])
        w.append([data[0][0], data[0][0]])
    for sample, why in ((0, "field 'mask'.*a mask of"), (1, "3 channels")):
        with pytest.raises(leat.DataError, match=why):
            list(leat.Loader(path, 1, "CenterCrop(8)", mask="follow", indices=[sample]))


@pytest.mark.parametrize("angle", [90, -90, 270, -270])
@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_quarter_turns(tmp_path, angle, mode):
    """As Pillow, pixel by pixel, for odd and even sides; a box stays on its pixels."""
    sizes = [(5, 8), (8, 5), (7, 9), (6, 4), (1, 2)]
    rng = np.random.default_rng(1)
    images = [rng.integers(0, 256, (h, w, 3), np.uint8) for w, h in sizes]
    path = str(tmp_path / "quarter.leat")
    with leat.Writer(path, {"image": "image", "boxes": ("float32", (None, 4))}, sync=False) as w:
        for image in images:
            w.append([image, np.float32([[0, 0, 1, 2]])])
    pipeline = [ops.RandomRotation((angle, angle), mode, expand=True), ops.ToLayout("nhwc")]
    with leat.Loader(path, len(images), pipeline, order="sequential", collate="list", boxes="follow", as_="numpy") as loader:
        batch = next(iter(loader))
    for image, got, boxes in zip(images, batch["image"], batch["boxes"]):
        want = np.asarray(Image.fromarray(image).rotate(angle, expand=True))
        np.testing.assert_array_equal(got, want)
        height, width = image.shape[:2]
        box = [0, width - 1, 2, width] if angle in (90, -270) else [height - 2, 0, height, 1]
        np.testing.assert_array_equal(boxes, [box])
