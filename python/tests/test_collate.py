# SPDX-License-Identifier: Apache-2.0
"""Images of different size in one batch, against plain NumPy and Pillow."""

import io
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

import leat
from leat import ops

SIZES = [(1, 1), (1, 40), (37, 1), (300, 200), (64, 64), (5, 90), (31, 17), (120, 8), (50, 50), (77, 33)]
COUNT = 43


def png(array):
    out = io.BytesIO()
    Image.fromarray(array).save(out, "PNG", compress_level=1)
    return out.getvalue()


@pytest.fixture(scope="module")
def pictures():
    rng = np.random.default_rng(5)
    sizes = SIZES + [tuple(int(n) for n in rng.integers(1, 70, 2)) for _ in range(COUNT - len(SIZES))]
    return [rng.integers(0, 256, (h, w, 3), np.uint8) for h, w in sizes]


@pytest.fixture(scope="module")
def path(tmp_path_factory, pictures):
    """Images, masks (red < 100), boxes round the whole image, and their number."""
    path = str(tmp_path_factory.mktemp("collate") / "sizes.leat")
    schema = {"image": "image", "mask": "image", "boxes": ("float32", (None, 4)), "label": int}
    with leat.Writer(path, schema, sync=False, page_bytes="64K") as w:
        for i, p in enumerate(pictures):
            h, w_, _ = p.shape
            w.append([png(p), png((p[..., 0] < 100).astype(np.uint8)), np.float32([[0, 0, w_, h]]), i])
    return path


def shorter(picture, size):
    """Resize by the shorter side, as torchvision counts it."""
    h, w = picture.shape[:2]
    new = (size, int(size * h / w)) if w <= h else (int(size * w / h), size)
    return np.asarray(Image.fromarray(picture).resize((max(new[0], 1), max(new[1], 1)), Image.BILINEAR))


def batches(path, image="", batch_size=8, **options):
    options = {"fields": ["label"], "as_": "numpy", "seed": 3} | options
    with leat.Loader(path, batch_size, image, **options) as loader:
        yield from loader


def one_by_one(path, image, **options):
    return {int(b.sample_id[0]): b.image[0] for b in batches(path, image, 1, collate="list", **options)}


def test_stack_says_what_would_take_them(path):
    with pytest.raises(leat.ArgumentError, match="collate"):
        leat.Loader(path, 8, [ops.Resize(32)])


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_list_has_the_pixels_of_the_images(path, pictures, threads):
    seen = 0
    for batch in batches(path, collate="list", threads=threads):
        assert isinstance(batch.image, list) and len(batch.image) == len(batch.sample_id)
        for image, i in zip(batch.image, batch.sample_id):
            np.testing.assert_array_equal(image, pictures[i].transpose(2, 0, 1))
            seen += 1
    assert seen == COUNT


def test_list_is_made_of_views(path):
    batch = next(batches(path, collate="list"))
    assert all(not image.flags.owndata for image in batch.image)
    first, second = batch.image[:2]
    assert second.__array_interface__["data"][0] - first.__array_interface__["data"][0] == first.nbytes


def test_ragged_has_values_offsets_and_shapes(path, pictures):
    for batch in batches(path, collate="ragged"):
        flat = np.concatenate([pictures[i].transpose(2, 0, 1).ravel() for i in batch.sample_id])
        np.testing.assert_array_equal(batch.image.values, flat)
        for k, i in enumerate(batch.sample_id):
            h, w, _ = pictures[i].shape
            assert batch.image.shapes[k].tolist() == [3, h, w]
            np.testing.assert_array_equal(batch.image[k], pictures[i].transpose(2, 0, 1))
        assert batch.image.offsets[-1] == len(batch.image.values)


def test_resize_by_the_shorter_side(path, pictures):
    for batch in batches(path, [ops.Resize(20)], collate="list"):
        for image, i in zip(batch.image, batch.sample_id):
            np.testing.assert_array_equal(image, shorter(pictures[i], 20).transpose(2, 0, 1))


@pytest.mark.torch
def test_torch_lists_and_channels_last(path, pictures):
    import torch

    for batch in batches(path, [ops.ToDtype("float32")], collate="list", channels_last=True, as_="torch"):
        for image, i in zip(batch.image, batch.sample_id):
            assert image.shape[0] == 3 and image.dtype == torch.float32
            np.testing.assert_array_equal(image.numpy(), pictures[i].transpose(2, 0, 1).astype(np.float32) / np.float32(255))
    for batch in batches(path, collate="pad", channels_last=True, as_="torch", pad_value=7):
        assert batch.image.shape[1] == 3
        for image, (h, w), i in zip(batch.image, batch.image_size.tolist(), batch.sample_id.tolist()):
            np.testing.assert_array_equal(image[:, :h, :w].numpy(), pictures[i].transpose(2, 0, 1))
            assert (image[:, h:] == 7).all() and (image[:, :, w:] == 7).all()


def padded(images, multiple, value):
    """The reference: C, H, W images into one array."""
    c = images[0].shape[0]
    h, w = (-(-max(i.shape[d] for i in images) // multiple) * multiple for d in (1, 2))
    out = np.full((len(images), c, h, w), value, images[0].dtype)
    for k, i in enumerate(images):
        out[k, :, :i.shape[1], :i.shape[2]] = i
    return out


PIPELINES = {
    "u8": ([], 0), "fill": ([], 255), "resize": ([ops.Resize(18, max_size=50)], 3),
    "f16": ([ops.Resize(9), ops.Normalize((0.5,) * 3, (0.2,) * 3), ops.ToDtype("float16")], -1.5),
    "grey": ([ops.Grayscale(1), ops.Pad((1, 2, 3, 0))], 9),
    "random sizes": ([ops.RandomZoomOut(side_range=(1, 2)), ops.ScaleJitter((40, 60), (0.5, 1.2))], 0),
    "shortest side": ([ops.RandomShortestSize((8, 20, 32), max_size=90)], 5),
    "turned": ([ops.RandomRotation(70, expand=True), ops.RandomHorizontalFlip()], 0),
}


@pytest.mark.parametrize("name", PIPELINES)
@pytest.mark.parametrize("multiple", [1, 16])
def test_pad(path, name, multiple):
    pipeline, value = PIPELINES[name]
    single = one_by_one(path, pipeline)
    for batch in batches(path, pipeline, collate="pad", pad_multiple=multiple, pad_value=value, pad_mask=True):
        want = [single[int(i)] for i in batch.sample_id]
        np.testing.assert_array_equal(batch.image, padded(want, multiple, value))
        assert batch.image_size.tolist() == [list(i.shape[1:]) for i in want]
        np.testing.assert_array_equal(batch.image_mask, padded([np.ones_like(i[:1], bool) for i in want], multiple, 0)[:, 0])


def test_masks_boxes_and_views_follow(path, pictures):
    views = {"a": ("image", [ops.RandomHorizontalFlip(), ops.Resize(24)]), "b": ("image", [ops.RandomRotation(50, expand=True)])}
    options = {"fields": None, "mask": leat.ops.Mask(fill=255, image="b"), "boxes": leat.ops.Boxes(min_size=0, image="a")}
    single = {}
    for batch in batches(path, views, 1, collate="list", **options):
        single[int(batch.sample_id[0])] = [batch[n][0] for n in ("a", "b", "mask", "boxes")]
    for collate in ("ragged", "pad"):
        for batch in batches(path, views, 11, collate=collate, threads=2, **options):
            rows = [single[int(i)] for i in batch.sample_id]
            for k, (a, b, mask, boxes) in enumerate(rows):
                assert mask.shape == b.shape[1:]
                np.testing.assert_array_equal(batch.boxes[k], boxes)
                np.testing.assert_allclose(boxes, [[0, 0, a.shape[2], a.shape[1]]], atol=1e-3)
                if collate == "ragged":
                    np.testing.assert_array_equal(batch.mask[k], mask)
                    np.testing.assert_array_equal(batch.b[k], b)
            if collate == "pad":
                np.testing.assert_array_equal(batch.mask, padded([r[2][None] for r in rows], 1, 255)[:, 0])
                np.testing.assert_array_equal(batch.a, padded([r[0] for r in rows], 1, 0))
                assert batch.b_size.tolist() == [list(r[1].shape[1:]) for r in rows]


@pytest.mark.parametrize("collate", ["list", "ragged", "pad"])
def test_resume_and_ranks(path, collate):
    def flat(batch):
        return [(int(i), np.asarray(batch.image[k]).tobytes() if collate != "pad" else
                 batch.image[k, :, :batch.image_size[k][0], :batch.image_size[k][1]].tobytes())
                for k, i in enumerate(batch.sample_id)]

    pipeline = [ops.RandomRotation(30, expand=True), ops.Resize(16)]
    whole = [row for b in batches(path, pipeline, 4, collate=collate) for row in flat(b)]
    with leat.Loader(path, 4, pipeline, collate=collate, as_="numpy", seed=3, fields=["label"]) as loader:
        run = iter(loader)
        got = [row for _ in range(3) for row in flat(next(run))]
        state = loader.state_dict()
    parts = []
    for rank in range(2):
        with leat.Loader(path, 2, pipeline, collate=collate, as_="numpy", seed=3, fields=["label"], rank=rank, world_size=2,
                         drop_last=False) as loader:
            loader.load_state_dict(state)
            parts.append([row for b in loader for row in flat(b)])
    assert sorted(got + parts[0] + parts[1]) == sorted(whole)


def test_digest_is_the_same_for_all_threads_and_kernels(path):
    code = ("import sys, json, leat\n"
            "out = []\n"
            "for collate in ('ragged', 'pad'):\n"
            "    for threads in (1, 2, 7):\n"
            f"        l = leat.Loader({path!r}, 8, 'Resize(19); ColorJitter(0.4)', collate=collate, threads=threads,"
            " digest=True, as_='numpy', fields=['label'])\n"
            "        [b for b in l]\n"
            "        out.append((collate, l.stats()['digest']))\n"
            "print(json.dumps(out))\n")
    runs = [json.loads(subprocess.run([sys.executable, "-c", code], env=os.environ | extra, check=True, text=True,
                                      stdout=subprocess.PIPE).stdout) for extra in ({}, {"LEAT_CPU_MASK": "scalar"})]
    assert runs[0] == runs[1]
    assert len({d for c, d in runs[0]}) == 2 and len({tuple(r) for r in runs[0]}) == 2


def test_crops_that_do_not_fit_are_skipped(path, pictures):
    """RandomCrop(30) cannot be drawn for smaller images: their rows have no size and are left out."""
    good = {i for i, p in enumerate(pictures) if min(p.shape[:2]) >= 30}
    for collate in ("list", "ragged", "pad"):
        seen = set()
        for batch in batches(path, [ops.RandomCrop(30), ops.Pad(2)], collate=collate, on_error="skip"):
            assert len(batch.image) == len(batch.sample_id)
            for image in batch.image:
                assert image.shape == (3, 34, 34)
            seen |= {int(i) for i in batch.sample_id}
        assert seen == good
    with pytest.raises(leat.Error, match="RandomCrop"):
        list(batches(path, [ops.RandomCrop(30), ops.Pad(2)], collate="pad"))


def test_set_changes_the_pipeline(path, pictures):
    with leat.Loader(path, 8, [ops.Resize(10)], collate="pad", as_="numpy", fields=["label"]) as loader:
        assert {min(s) for b in loader for s in b.image_size.tolist()} == {10}
        loader.set(image=[ops.Resize(14)], batch_size=5)
        assert {min(s) for b in loader for s in b.image_size.tolist()} == {14}


@pytest.mark.parametrize("collate", ["ragged", "pad"])
def test_budget_near_the_floor(path, collate):
    """One huge image among tiny ones: the floor holds for every batch, and a byte less is refused."""
    rows = [b.sample_id.tolist() for b in batches(path, "", collate=collate, threads=2)]
    def fits(memory):
        try:
            leat.Loader(path, 8, "", collate=collate, fields=["label"], threads=2, memory=memory).close()
        except leat.BudgetError as refused:
            told = re.search(r"at least ([\d.]+) ([KM])iB", str(refused))
            said.append(float(told[1]) * (1 << 10 if told[2] == "K" else 1 << 20))
            return False
        return True
    said: list[float] = []
    low, floor = 1000, 1 << 30
    assert not fits(low) and fits(floor)
    while floor - low > 1:
        middle = (low + floor) // 2
        low, floor = (low, middle) if fits(middle) else (middle, floor)
    assert all(floor <= size <= 1.02 * floor for size in said)
    assert floor > (8 if collate == "pad" else 1) * 300 * 200 * 3
    assert [b.sample_id.tolist() for b in batches(path, "", collate=collate, threads=2, memory=floor)] == rows
    with pytest.raises(leat.BudgetError):
        leat.Loader(path, 8, "", collate=collate, fields=["label"], threads=2, memory=floor - 1)


@pytest.mark.parametrize("options, text", [
    ({"collate": "pad", "on_error": "replace"}, "replace"),
    ({"collate": "heap"}, "collate"),
    ({"collate": "list", "as_": "dlpack"}, "list"),
    ({"collate": "ragged", "pad_multiple": 2}, "pad_multiple"),
    ({"pad_mask": True}, "pad_mask"),
    ({"collate": "pad", "pad_value": 256}, "pad_value"),
    ({"collate": "pad", "pad_value": 0.5}, "pad_value"),
    ({"collate": "pad", "pad_multiple": 0}, "pad_multiple"),
    ({"collate": "pad", "sample_fn": 123456}, "sample_fn"),
    ({"collate": "list", "image": "RandomResizedCrop(8); Mixup(classes=3)"}, "one size|Mixup"),
    ({"collate": "list", "image": None}, "no images"),
])
def test_what_does_not_go_together(path, options, text):
    with pytest.raises(leat.ArgumentError, match=text):
        leat.Loader(path, 8, **({"image": ""} | options))


def test_a_device_is_refused(path):
    with pytest.raises(leat.Error, match="collate"):
        leat.Loader(path, 8, "", collate="list", device="cuda", as_="auto")


def test_random_pipelines_stay_within_their_bounds(path):
    rng = np.random.default_rng(11)
    makers = [lambda: ops.Resize(int(rng.integers(1, 40))), lambda: ops.Pad(int(rng.integers(0, 9))),
              lambda: ops.Resize(int(rng.integers(1, 20)), max_size=int(rng.integers(21, 60))),
              lambda: ops.RandomRotation(float(rng.integers(1, 180)), expand=True), lambda: ops.RandomVerticalFlip(),
              lambda: ops.ColorJitter(0.3)]
    for _ in range(25):
        pipeline = [makers[i]() for i in rng.integers(0, len(makers), rng.integers(0, 4))]
        single = one_by_one(path, pipeline, threads=1)
        for batch in batches(path, pipeline, 9, collate="ragged", threads=2):
            for k, i in enumerate(batch.sample_id):
                np.testing.assert_array_equal(batch.image[k], single[int(i)])


def shape_key(kind, picture):
    h, w = picture.shape[:2]
    return w / h if kind == "aspect" else w * h


@pytest.mark.parametrize("kind", ["aspect", "size"])
@pytest.mark.parametrize("buckets", [3, [0.5, 1, 2], 1])
def test_buckets(path, pictures, kind, buckets):
    """Batches of one bucket, except the remainder; every sample once, in another order each epoch."""
    values = np.array([shape_key(kind, p) for p in pictures])
    edges = buckets if isinstance(buckets, list) else None
    if edges and kind == "size":
        edges = buckets = [100, 1000, 3000]
    rank_of = np.empty(COUNT, int)
    rank_of[np.lexsort((np.arange(COUNT), values))] = np.arange(COUNT)
    ends = [COUNT * (i + 1) // buckets for i in range(buckets)] if edges is None else None
    which = np.searchsorted(edges, values, side="right") if edges else np.searchsorted(ends, rank_of, side="right")
    options = {"bucket": kind, "buckets": buckets, "collate": "pad", "as_": "numpy", "fields": ["label"], "drop_last": False}
    with leat.Loader(path, 4, "", **options) as loader:
        epochs = [[b.sample_id.tolist() for b in loader] for _ in range(2)]
        assert loader.sample_ids(0).tolist() == sum(epochs[0], [])
    for ids in epochs:
        assert sorted(sum(ids, [])) == list(range(COUNT))
        pure = sum(len(set(which[b])) == 1 for b in ids if len(b) == 4)
        assert pure >= sum((which == k).sum() // 4 for k in set(which))
    assert epochs[0] != epochs[1]
    both = []
    for rank in range(2):
        with leat.Loader(path, 2, "", rank=rank, world_size=2, **options) as loader:
            both.append([b.sample_id.tolist() for b in loader])
    for whole, a, b in zip(epochs[0], *both):
        assert sorted(whole) == sorted(a + b)


def test_buckets_resume(path):
    options = {"bucket": "aspect", "collate": "list", "as_": "numpy", "fields": ["label"], "indices": list(range(40))}
    with leat.Loader(path, 4, "", **options) as loader:
        run = iter(loader)
        got = [next(run).sample_id.tolist() for _ in range(4)]
        state = loader.state_dict()
        rest = [b.sample_id.tolist() for b in run]
    assert sorted(sum(got + rest, [])) == list(range(40))
    with leat.Loader(path, 4, "", **options) as loader:
        loader.load_state_dict(state)
        assert [b.sample_id.tolist() for b in loader] == rest
    with leat.Loader(path, 4, "", **(options | {"buckets": 5})) as loader, pytest.raises(leat.Error, match="bucket"):
        loader.load_state_dict(state)
    with leat.Loader(path, 4, "", **options) as loader, pytest.raises(leat.Error, match="bucket"):
        loader.set(batch_size=5)


@pytest.mark.parametrize("options, text", [
    ({"bucket": "shape"}, "bucket"), ({"buckets": 3}, "buckets"), ({"bucket": "size", "order": "sequential"}, "order"),
    ({"bucket": "size", "buckets": [2, 1]}, "rising"), ({"bucket": "size", "buckets": []}, "empty"),
    ({"bucket": "size", "weights": [1.0] * COUNT}, "weights"), ({"bucket": "size", "buckets": "8"}, "buckets"),
    ({"bucket": "size", "buckets": [float("nan")]}, "buckets"),
])
def test_wrong_buckets(path, options, text):
    with pytest.raises(leat.ArgumentError, match=text):
        leat.Loader(path, 4, "RandomResizedCrop(8)", **options)
