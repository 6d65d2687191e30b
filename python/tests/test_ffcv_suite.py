# SPDX-License-Identifier: Apache-2.0
"""What FFCV's own test suite asks of FFCV, asked of leat.

COVERED has one row for each of FFCV's 82 tests (test_cuda_nonblocking aside, which checks nothing but
that CUDA streams run): the test here that asks the same, with the same numbers of samples, sizes and
batch sizes unless the comment says otherwise; or why it tests an internal of FFCV that leat has not.
"""

import io
import json
import sys
import tarfile

import numpy as np
import pytest
from PIL import Image

import leat
from leat import ops

_COMPILER = "internal: the same test with numba's compiler on; leat compiles nothing at run time"

COVERED = {
    "test_array_field.test_multi_fields": "test_several_arrays",
    "test_array_field.test_simple_activations": "test_arrays",
    "test_array_field.test_simple_activations_ch": "test_arrays_of_torch",
    "test_augmentations.test_cutout": "test_cutout",
    "test_augmentations.test_flip": "test_flip",
    "test_augmentations.test_mixup": "test_mixup",
    "test_augmentations.test_module_wrapper": "test_module_as_transform",
    "test_augmentations.test_poison": "test_poison",
    "test_augmentations.test_random_resized_crop": "test_random_resized_crop",
    "test_augmentations.test_torchvision_centercrop_pad": "test_centre_crop_and_pad",
    "test_augmentations.test_torchvision_color_jitter": "test_colour_jitter",
    "test_augmentations.test_torchvision_greyscale": "test_greyscale",
    "test_augmentations.test_torchvision_random_affine": "test_random_affine",
    "test_augmentations.test_torchvision_random_crop": "test_pad_and_random_crop",
    "test_augmentations.test_translate": "test_translate",
    "test_basic_pipeline.test_basic_simple": "test_doubled_values",
    "test_basic_pipeline.test_multiple_epoch_does_recompile": "internal: recompile=True makes numba compile the loop again",
    "test_basic_pipeline.test_multiple_epoch_doesnt_recompile": "internal: the code object that numba compiled stays",
    "test_basic_pipeline.test_multiple_iterators_success": "test_two_iterators",
    "test_custom_field.test_no_custom_field": "internal: a field class of the user must be named again to the loader",
    "test_custom_field.test_string_field": "test_captions",
    "test_image_normalization.test_cpu_normalization": "test_normalisation",
    "test_image_normalization.test_gpu_normalization": "test_device.py: test_the_device_decodes_the_same_bytes",
    "test_image_pipeline.test_cifar_subset": "test_small_images",
    "test_image_pipeline.test_simple_jpg_image_pipeline": "test_images_of_one_size",
    "test_image_pipeline.test_simple_jpg_image_pipeline_rev": "test_images_of_one_size",
    "test_image_pipeline.test_simple_raw_image_pipeline": "test_images_of_one_size",
    "test_image_pipeline.test_simple_raw_image_pipeline_rev": "test_images_of_one_size",
    "test_image_read.test_simple_image_dataset_jpg": "test_random_access_to_jpegs",
    "test_image_read.test_simple_image_dataset_jpg_compile": _COMPILER,
    "test_image_read.test_simple_image_dataset_raw": "test_random_access_to_pixels",
    "test_image_read.test_simple_image_dataset_raw_compile": _COMPILER,
    "test_json_field.test_simple_dict": "test_json",
    "test_loader_filter.test_basic_simple": "test_filtered_by_value",
    "test_memcpy.test_memcpy[float32]": "internal: a memcpy exported to numba",
    "test_memcpy.test_memcpy[float64]": "internal: a memcpy exported to numba",
    "test_memcpy.test_memcpy[int32]": "internal: a memcpy exported to numba",
    "test_memcpy.test_memcpy[int64]": "internal: a memcpy exported to numba",
    "test_memcpy.test_memcpy[uint8]": "internal: a memcpy exported to numba",
    "test_memory_allocation.test_large": "test_blobs",
    "test_memory_allocation.test_many": "test_blobs",
    "test_memory_allocation.test_simple": "test_blobs",
    "test_memory_leak.test_memory_leak_write": "test_a_dataset_larger_than_the_budget",
    "test_memory_reader.test_large": "test_blobs",
    "test_memory_reader.test_many": "test_blobs",
    "test_memory_reader.test_many_compiled": "test_a_million_blobs",
    "test_memory_reader.test_simple": "test_blobs",
    "test_partial_batches.test_not_partial": "test_partial_batches",
    "test_partial_batches.test_not_partial_multiple": "test_partial_batches",
    "test_partial_batches.test_partial": "test_partial_batches",
    "test_partial_batches.test_partial_multiple": "test_partial_batches",
    "test_partial_pipeline.test_basic_simple": "test_only_one_field",
    "test_rrc.test_cc_decoder_jpg_compiled": _COMPILER,
    "test_rrc.test_cc_decoder_jpg_nc": "test_centre_crop_by_ratio",
    "test_rrc.test_cc_decoder_raw_compiled": _COMPILER,
    "test_rrc.test_cc_decoder_raw_nc": "test_centre_crop_by_ratio",
    "test_rrc.test_rrc_decoder_jpg": "test_crops_of_different_sizes",
    "test_rrc.test_rrc_decoder_jpg_compiled": _COMPILER,
    "test_rrc.test_rrc_decoder_raw": "test_crops_of_different_sizes",
    "test_rrc.test_rrc_decoder_raw_compiled": _COMPILER,
    "test_rrc.test_simple_image_decoder_fails_with_variable_images": "test_different_sizes_need_a_crop",
    **{f"test_traversal_orders.test_traversal_{order}_{world}": "test_traversal"
       for order in ("sequential", "random", "quasirandom") for world in (1, 2, 3, 4)},
    **{f"test_traversal_orders.test_traversal_{order}_distributed_with_indices": "test_traversal_of_a_subset"
       for order in ("sequential", "random", "quasi_random")},
    "test_webdataset.__main__": "test_tar_shards",
    "test_writer.test_multiple_workers": "test_written_by_workers",
    "test_writer.test_small_chunks_multiple_workers": "test_written_by_workers",
    "test_writer.test_super_long": "test_very_many_samples",
    "test_writer.test_write_shuffle": "test_written_in_another_order",
    "test_writer.test_write_simple": "test_written_by_workers",
}


def test_every_row_names_a_test():
    assert len(COVERED) == 82
    assert sum(row.startswith("internal: ") for row in COVERED.values()) == 14
    here = sys.modules[__name__]
    for name, row in COVERED.items():
        if row.startswith("test_device.py: "):
            import test_device

            assert hasattr(test_device, row.split(": ")[1]), name
        elif not row.startswith("internal: "):
            assert callable(getattr(here, row, None)), f"{name}: there is no {row}"


class Sines:
    """A map-style dataset: (i, sin(i))."""

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if i >= self.n:
            raise IndexError(i)
        return i, float(np.sin(i))


SINES = {"index": int, "value": float}


@pytest.fixture(scope="module")
def sines(tmp_path_factory):
    path = tmp_path_factory.mktemp("ffcv") / "sines.leat"
    leat.from_dataset(Sines(600), path, SINES, sync=False)
    return path


def load(path, batch_size=8, **options):
    options = {"order": "sequential", "as_": "numpy", "threads": 2, "image": None, **options}
    with leat.Loader(path, batch_size, **options) as loader:
        return [batch.asdict() for batch in loader]


def joined(batches, name):
    return np.concatenate([batch[name] for batch in batches])


# ---- test_writer -----------------------------------------------------------------------------


def check_sines(path, n):
    ds = leat.open(path)
    assert len(ds) == n and [(f.name, f.type) for f in ds.fields] == [("index", "int"), ("value", "float")]
    index, value = ds.column("index"), ds.column("value")
    np.testing.assert_array_equal(np.sin(index), value)
    return index


@pytest.mark.parametrize("workers", [0, 4])
def test_written_by_workers(tmp_path, workers):
    leat.from_dataset(Sines(600), tmp_path / "a.leat", SINES, workers=workers, sync=False)
    np.testing.assert_array_equal(check_sines(tmp_path / "a.leat", 600), np.arange(600))
    zeros = [(i, np.zeros(2).tobytes()) for i in range(600)]
    leat.from_dataset(zeros, tmp_path / "b.leat", {"index": int, "value": bytes}, workers=workers, sync=False)
    assert all(sample["value"] == bytes(16) for sample in leat.open(tmp_path / "b.leat"))


def test_written_in_another_order(tmp_path):
    orders = []
    for seed, workers in ((1, 0), (1, 3), (2, 0)):
        path = tmp_path / f"{seed}-{workers}.leat"
        leat.from_dataset(Sines(600), path, SINES, shuffle=seed, workers=workers, sync=False)
        orders.append(check_sines(path, 600))
        assert sorted(orders[-1]) == list(range(600)) and not (orders[-1] == np.arange(600)).all()
        assert [int(key) for key in leat.open(path).keys] == orders[-1].tolist()
    assert (orders[0] == orders[1]).all() and not (orders[0] == orders[2]).all()
    with pytest.raises(leat.ArgumentError, match="shuffle: an iterable has one order"):
        leat.from_dataset(iter([(1, 2.0)]), tmp_path / "i.leat", SINES, shuffle=1)


def test_very_many_samples(tmp_path):
    n = 60_000  # FFCV: 600,000, with 30 processes
    leat.from_dataset(Sines(n), tmp_path / "a.leat", SINES, workers=2, sync=False)
    np.testing.assert_array_equal(check_sines(tmp_path / "a.leat", n), np.arange(n))


# ---- test_basic_pipeline, test_partial_*, test_loader_filter ---------------------------------


def doubled(batch):
    return batch._replace(value=batch.value * 2)


def test_doubled_values(sines):
    with leat.Loader(sines, 8, order="sequential", threads=5, seed=17, as_="numpy", transform=doubled) as loader:
        batch = next(iter(loader))
    np.testing.assert_array_equal(batch.index, np.arange(8))
    np.testing.assert_array_equal(batch.value, 2 * np.sin(np.arange(8)))


def test_two_iterators(sines):
    with leat.Loader(sines, 8, order="sequential", as_="numpy", transform=doubled) as loader:
        first = iter(loader)
        next(first)
        assert len(list(iter(loader))) == 75
        with pytest.raises(leat.StateError, match="another iteration began"):
            next(first)


@pytest.mark.parametrize(("size", "drop_last", "batches"), [(7, True, 85), (7, False, 86), (60, False, 10), (60, True, 10)])
def test_partial_batches(sines, size, drop_last, batches):
    with leat.Loader(sines, size, order="sequential", as_="numpy", drop_last=drop_last, transform=doubled) as loader:
        assert len(loader) == batches
        sizes = [len(batch.index) for batch in loader]
    assert len(sizes) == batches and all(n == size for n in sizes[:-1])
    assert sizes[-1] == (5 if batches == 86 else size)


def test_only_one_field(sines):
    batch = load(sines, fields=["value"])[0]
    assert list(batch) == ["value", "sample_id"]
    np.testing.assert_array_equal(batch["value"], np.sin(np.arange(8)))


def test_filtered_by_value(sines, tmp_path):
    value = leat.open(sines).column("value")
    wanted = np.flatnonzero((value >= 0.5) & (value < 1))
    batches = load(sines, indices=wanted, drop_last=True)
    assert len(batches) == len(wanted) // 8 > 0
    for batch in batches:
        assert len(batch["value"]) == 8 and ((batch["value"] >= 0.5) & (batch["value"] < 1)).all()
    leat.pack(sines, tmp_path / "some.leat", where="value >= 0.5 and value < 1", sync=False)
    np.testing.assert_array_equal(leat.open(tmp_path / "some.leat").column("index"), wanted)


# ---- test_array_field, test_json_field, test_custom_field ------------------------------------


def activations(i, n=1):
    return np.random.default_rng(i).standard_normal((n, 2048), np.float32)


@pytest.fixture(scope="module")
def arrays(tmp_path_factory):
    # FFCV: 4096 samples
    path = tmp_path_factory.mktemp("ffcv") / "arrays.leat"
    spec = {"index": int, **{f"activations{k}": ("float32", (2048,)) for k in range(3)}}
    with leat.Writer(path, spec, sync=False) as w:
        for i in range(500):
            w.append((i, *activations(i, 3)))
    return path


def test_arrays(arrays):
    for batch in load(arrays, 3, threads=5, fields=["index", "activations0"]):
        for i, row in zip(batch["index"], batch["activations0"]):
            np.testing.assert_array_equal(row, activations(i, 3)[0])


@pytest.mark.torch
def test_arrays_of_torch(tmp_path):
    import torch

    with leat.Writer(tmp_path / "a.leat", {"index": int, "x": ("float32", (2048,))}, sync=False) as w:
        for i in range(100):
            w.append((i, torch.from_numpy(activations(i)[0])))
    with leat.Loader(tmp_path / "a.leat", 3, as_="torch", threads=2) as loader:
        for index, x, _ in loader:
            for i, row in zip(index.tolist(), x):
                assert torch.equal(row, torch.from_numpy(activations(i)[0]))


def test_several_arrays(arrays):
    seen = 0
    for batch in load(arrays, 3, threads=5):
        for at, i in enumerate(batch["index"]):
            want = activations(i, 3)
            for k in range(3):
                np.testing.assert_array_equal(batch[f"activations{k}"][at], want[k])
            seen += 1
    assert seen == 500


def test_json(tmp_path):
    rng = np.random.default_rng(3)
    documents = [{f"k{rng.integers(10**6)}": "x" * int(rng.integers(50, 250)) for _ in range(3)} for _ in range(32)]
    with leat.Writer(tmp_path / "a.leat", {"index": int, "document": "json"}, sync=False) as w:
        for row in enumerate(documents):
            w.append(row)
    got = [document for batch in load(tmp_path / "a.leat", 3, threads=5) for document in batch["document"]]
    assert got == documents


def test_captions(tmp_path):
    captions = [json.dumps(list(range(i % 13))) + " é" for i in range(100)]
    with leat.Writer(tmp_path / "a.leat", {"label": str}, sync=False) as w:
        for caption in captions:
            w.append((caption,))
    got = [caption for batch in load(tmp_path / "a.leat", 10, order="random") for caption in batch["label"]]
    assert sorted(got) == sorted(captions) and got != captions


# ---- test_image_pipeline, test_image_read, test_image_normalization, test_rrc ----------------


def flat(i, height, width):
    return np.full((height, width, 3), i % 255, np.uint8)


def encoded(pixels, form, quality=95):
    if form == "raw":
        return pixels
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, form, quality=quality)
    return out.getvalue()


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("form", ["raw", "JPEG"])
def test_images_of_one_size(tmp_path, form, reverse):
    # FFCV: 500 samples, and a decoder without a size; leat asks for the size that all images have
    names = ["value", "index"] if reverse else ["index", "value"]
    with leat.Writer(tmp_path / "a.leat", {n: "image" if n == "value" else int for n in names}, sync=False) as w:
        for i in range(60):
            w.append({"index": i * 4, "value": encoded(flat(i * 4, 500, 300), form)})
    count = 0
    with leat.Loader(tmp_path / "a.leat", 5, [ops.CenterCrop((500, 300))], order="sequential", threads=2, as_="numpy") as loader:
        assert set(loader.field_names) == {*names, "sample_id"}  # images come first
        for batch in loader:
            assert batch.value.shape == (5, 3, 500, 300) and batch.value.dtype == np.uint8
            for i, image in zip(batch.index, batch.value):
                assert (image == i % 255).all()
                count += 1
    assert count == 60


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """100 pictures of 32 x 32 with labels, in the place of CIFAR-10."""
    rng = np.random.default_rng(5)
    path = tmp_path_factory.mktemp("ffcv") / "small.leat"
    with leat.Writer(path, {"image": "image", "label": int}, classes={"label": [f"c{i}" for i in range(10)]},
                     sync=False) as w:
        for i in range(100):
            low = rng.integers(0, 256, (4, 4, 3), np.uint8)
            w.append((np.asarray(Image.fromarray(low).resize((32, 32), Image.BICUBIC)), i % 10))
    return path


def test_small_images(small):
    ds = leat.open(small)
    batches = load(small, 5, image=[ops.CenterCrop(32)])
    np.testing.assert_array_equal(joined(batches, "label"), ds.column("label"))
    images = joined(batches, "image").transpose(0, 2, 3, 1)
    assert all((image == np.asarray(sample["image"])).all() for image, sample in zip(images, ds))


def noise(i):
    return np.random.default_rng(37 + i).integers(0, 256, (128, 128, 3), np.uint8)


def test_random_access_to_pixels(tmp_path):
    with leat.Writer(tmp_path / "a.leat", {"index": int, "value": "image"}, sync=False) as w:
        for i in range(200):  # FFCV: 500
            w.append((i, noise(i)))
    ds = leat.open(tmp_path / "a.leat")
    for i in np.random.default_rng(0).permutation(200):
        np.testing.assert_array_equal(np.asarray(ds[i]["value"]), noise(i))


def test_random_access_to_jpegs(tmp_path):
    with leat.Writer(tmp_path / "a.leat", {"index": int, "value": "image"}, sync=False) as w:
        for i in range(100):
            w.append((i, encoded(noise(i), "JPEG", 90)))
    ds = leat.open(tmp_path / "a.leat")
    for i in range(100):
        # FFCV asks for a mean distance below 80; these are the pixels of libjpeg
        want = np.asarray(Image.open(io.BytesIO(encoded(noise(i), "JPEG", 90))))
        np.testing.assert_array_equal(np.asarray(ds[i]["value"]), want)


def test_normalisation(tmp_path):
    with leat.Writer(tmp_path / "a.leat", {"index": int, "value": "image"}, sync=False) as w:
        for i in range(500):
            w.append((i, flat(i, 25, 30)))
    mean, std = np.array([0, 1, 2]), np.array([1, 10, 20])
    pipeline = [ops.CenterCrop((25, 30)), ops.Normalize(mean / 255, std / 255), ops.ToDtype("float16")]
    batches = load(tmp_path / "a.leat", 5, image=pipeline)
    images = joined(batches, "value")
    assert images.dtype == np.float16 and images.shape == (500, 3, 25, 30)
    want = ((np.arange(500) % 255)[:, None] - mean) / std
    np.testing.assert_allclose(images, np.broadcast_to(want[:, :, None, None], images.shape), rtol=2e-3, atol=1e-3)


@pytest.fixture(scope="module", params=["raw", "JPEG"])
def variable(request, tmp_path_factory):
    """Flat images of 300 to 500 pixels a side; FFCV: 500 of them."""
    rng = np.random.default_rng(9)
    path = tmp_path_factory.mktemp("ffcv") / "variable.leat"
    with leat.Writer(path, {"index": int, "value": "image"}, sync=False) as w:
        for i in range(0, 240, 4):
            height, width = rng.integers(300, 501, 2)
            w.append((i, encoded(flat(i, height, width), request.param)))
    return path


CENTRE = ops.CenterCrop((160, 160), ratio=224 / 256)


def check_flat(path, pipeline):
    batches = load(path, 5, image=[pipeline])
    for batch in batches:
        assert batch["value"].shape[1:] == (3, 160, 160)
        assert (np.abs(batch["value"].astype(int) - batch["index"][:, None, None, None]) < 2).all()
    assert sum(len(batch["index"]) for batch in batches) == 60


def test_different_sizes_need_a_crop(variable):
    with pytest.raises(leat.ArgumentError, match="size"):
        load(variable, 5, image=[])


def test_crops_of_different_sizes(variable):
    check_flat(variable, ops.RandomResizedCrop((160, 160)))


def test_centre_crop_by_ratio(variable):
    check_flat(variable, CENTRE)


# ---- test_augmentations ----------------------------------------------------------------------


def augmented(path, *pipeline, **options):
    """Images before and after, as (samples, height, width, 3); every label comes with its image."""
    before = load(path, 7, image=[ops.CenterCrop(32)], drop_last=False)
    after = load(path, 7, image=list(pipeline), drop_last=False, **options)
    assert len(before) == len(after) == 15
    if not options.get("label"):
        np.testing.assert_array_equal(joined(before, "label"), joined(after, "label"))
    one, two = (joined(batches, "image").transpose(0, 2, 3, 1) for batches in (before, after))
    assert len(one) == len(two) == 100
    return one, two


def test_cutout(small):
    before, after = augmented(small, ops.Cutout(8), ops.CenterCrop(32))
    changed = (before != after).any(3)
    assert (changed.sum((1, 2)) <= 64).all() and changed.any((1, 2)).sum() > 90
    assert len({image.tobytes() for image in changed}) > 50  # at other places


def test_flip(small):
    before, after = augmented(small, ops.RandomHorizontalFlip(1.0), ops.CenterCrop(32))
    np.testing.assert_array_equal(before[:, :, ::-1], after)


@pytest.mark.torch
def test_module_as_transform(small):
    import torch

    class Grey(torch.nn.Module):
        def forward(self, batch):
            grey = (batch.image.float() * torch.tensor([0.299, 0.587, 0.114])[:, None, None]).sum(1, keepdim=True)
            return batch._replace(image=grey.expand(-1, 3, -1, -1).to(torch.uint8))

    with leat.Loader(small, 7, [ops.CenterCrop(32)], as_="torch", transform=Grey(), drop_last=False) as loader:
        batches = list(loader)
    assert sum(len(batch.label) for batch in batches) == 100
    assert all(torch.equal(batch.image[:, 0], batch.image[:, 2]) for batch in batches)


def test_mixup(small):
    plain = load(small, 7, image=[ops.CenterCrop(32)], drop_last=False)
    mixed = load(small, 7, image=[ops.CenterCrop(32), ops.MixUp(0.5)], drop_last=False, mix_labels="pairs")
    assert len(plain) == len(mixed) == 15
    changed = 0
    for a, b in zip(plain, mixed):
        lam = np.float32(b["label_lambda"][0])
        want = lam * a["image"].astype(np.float32) + (1 - lam) * np.roll(a["image"], 1, 0).astype(np.float32)
        assert np.abs(want - b["image"]).max() < 1
        np.testing.assert_array_equal(b["label"], a["label"])
        np.testing.assert_array_equal(b["label_partner"], np.roll(a["label"], 1))
        changed += (a["image"] != b["image"]).any((1, 2, 3)).sum()
    assert changed > 50


def test_poison(small):
    poisoned, mask = set(range(0, 100, 3)), np.zeros((3, 32, 32), bool)
    mask[0, :5, :5] = True  # a red square

    def poison(batch):
        image = batch.image.copy()
        for at, sample in enumerate(batch.sample_id.tolist()):
            if sample in poisoned:
                image[at][mask] = 255
        return batch._replace(image=image)

    plain = joined(load(small, 7, image=[ops.CenterCrop(32)]), "image")
    with leat.Loader(small, 7, [ops.CenterCrop(32)], order="random", as_="numpy", transform=poison) as loader:
        for batch in loader:
            for sample, image in zip(batch.sample_id.tolist(), batch.image):
                want = np.where(mask, 255, plain[sample]) if sample in poisoned else plain[sample]
                np.testing.assert_array_equal(image, want)


def test_random_resized_crop(small):
    before, after = augmented(small, ops.RandomResizedCrop(32, scale=(0.08, 1.0), ratio=(0.75, 4 / 3)))
    assert after.shape == before.shape and (before != after).any((1, 2, 3)).sum() > 90


def test_translate(small):
    before, after = augmented(small, ops.RandomCrop(32, padding=10))
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(before, ((0, 0), (10, 10), (10, 10), (0, 0))), (32, 32), (1, 2))
    moves = set()
    for image, places in zip(after, windows):  # places: 21 x 21 of 3 x 32 x 32
        at = np.argwhere((places == image.transpose(2, 0, 1)).all((2, 3, 4)))
        assert len(at)
        moves.add(tuple(at[0]))
    assert len(moves) > 50


def test_greyscale(small):
    before, after = augmented(small, ops.Grayscale(), ops.CenterCrop(32))
    assert (after == after[..., :1]).all()
    luma = before @ np.array([0.299, 0.587, 0.114])
    assert np.abs(after[..., 0] - luma).max() <= 1


def test_centre_crop_and_pad(small):
    before, after = augmented(small, ops.CenterCrop(10), ops.Pad(11))
    np.testing.assert_array_equal(after[:, 11:21, 11:21], before[:, 11:21, 11:21])
    after[:, 11:21, 11:21] = 0
    assert not after.any()


def test_random_affine(small):
    before, after = augmented(small, ops.RandomAffine(25), ops.CenterCrop(32))
    assert (before != after).any((1, 2, 3)).sum() > 90
    assert (before[:, 14:18, 14:18].mean() - after[:, 14:18, 14:18].mean()) ** 2 < 25  # turned about the centre


def test_pad_and_random_crop(small):
    _, after = augmented(small, ops.Pad(10), ops.RandomCrop(32))
    padding = (after == 0).all(3).mean((1, 2))
    assert padding.max() > 0.2 and len(set(padding)) > 20


def test_colour_jitter(small):
    before, after = augmented(small, ops.ColorJitter(0.5, 0.5, 0.5, 0.5), ops.CenterCrop(32))
    assert (before != after).any((1, 2, 3)).sum() > 90


# ---- test_traversal_orders -------------------------------------------------------------------


def epochs_of(path, order, world, **options):
    """What all ranks get in three epochs, rank behind rank."""
    parts = []
    for rank in range(world):
        with leat.Loader(path, 8, order=order, drop_last=False, rank=rank, world_size=world, threads=2, as_="numpy",
                         **options) as loader:
            parts.append([np.concatenate([batch.index for batch in loader]) for _ in range(3)])
    return [np.concatenate([part[epoch] for part in parts]) for epoch in range(3)]


@pytest.mark.parametrize("world", [1, 2, 3, 4])
@pytest.mark.parametrize("order", ["sequential", "random", "quasi_random"])
def test_traversal(sines, order, world):
    epochs = epochs_of(sines, order, world)
    for one, next_one in zip(epochs, epochs[1:]):
        assert (one == next_one).all() == (order == "sequential")
    for epoch in epochs:  # FFCV allows samples that come twice
        assert sorted(epoch) == list(range(600))


@pytest.mark.parametrize("order", ["sequential", "random", "quasi_random"])
def test_traversal_of_a_subset(sines, order):
    indices = np.random.default_rng(1).choice(600, 300, replace=False)
    for epoch in epochs_of(sines, order, 2, indices=indices):
        assert sorted(epoch) == sorted(indices)


# ---- test_memory_*, test_webdataset ----------------------------------------------------------


@pytest.mark.parametrize(("n", "size"), [(600, 76), (600, 1024), (60_000, 81)])
def test_blobs(tmp_path, n, size):
    data = np.random.default_rng(n).integers(0, 256, (n, size), np.uint8)
    with leat.Writer(tmp_path / "a.leat", {"index": int, "value": bytes}, sync=False) as w:
        for i, row in enumerate(data):
            w.append((i, row.tobytes()))
    ds = leat.open(tmp_path / "a.leat")
    assert len(ds) == n and (ds.column("index") == np.arange(n)).all()
    for i in np.random.default_rng(0).choice(n, 500):
        assert ds[i]["value"] == data[i].tobytes()
    for batch in load(tmp_path / "a.leat", 256):
        assert (np.diff(batch["value"].offsets) == size).all()
        np.testing.assert_array_equal(np.asarray(batch["value"].values).reshape(-1, size), data[batch["index"]])


def test_a_million_blobs(tmp_path):
    n = 100_000  # FFCV: 1,000,000
    with leat.Writer(tmp_path / "a.leat", {"value": bytes}, sync=False) as w:
        for i in range(n):
            w.append((bytes([i * 7 % 251]),))
    ds = leat.open(tmp_path / "a.leat")
    for i in np.random.default_rng(0).choice(n, 500):
        assert ds[i]["value"] == bytes([i * 7 % 251])


def test_a_dataset_larger_than_the_budget(tmp_path):
    # FFCV: 58 GB against the memory of the process; here the loader's own budget, which it must keep to
    size = 500 * 300 * 3
    rows = np.random.default_rng(2).integers(0, 256, (4, size), np.uint8)
    with leat.Writer(tmp_path / "a.leat", {"index": int, "value": bytes}, sync=False, page_bytes="1M") as w:
        for i in range(160):
            w.append((i, rows[i % 4].tobytes()))
    for cache in ("os", "process"):
        with leat.Loader(tmp_path / "a.leat", 8, order="random", memory="32M", cache=cache, as_="numpy") as loader:
            for _ in range(2):
                seen = 0
                for batch in loader:
                    assert batch.value[0] == rows[batch.index[0] % 4].tobytes()
                    seen += len(batch.index)
                assert seen == 160
            stats = loader.stats()
            assert stats["budget_peak_bytes"] <= stats["budget_limit_bytes"] == 32 << 20 < 160 * size


def test_tar_shards(tmp_path):
    n, shards = 1007, []
    for first in range(0, n, 200):  # FFCV: 20 samples a shard
        path = tmp_path / f"dataset-{first:06d}.tar"
        with tarfile.open(path, "w") as tar:
            for i in range(first, min(first + 200, n)):
                for member, data in (("cls", str(i)), ("txt", repr(float(np.sin(i))))):
                    info = tarfile.TarInfo(f"sample_{i:06d}.{member}")
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data.encode()))
        shards.append(path)
    leat.pack(shards, tmp_path / "a.leat", sync=False)
    ds = leat.open(tmp_path / "a.leat")
    np.testing.assert_array_equal(ds.column("label"), np.arange(n))
    assert [float(sample["txt"]) for sample in ds] == np.sin(np.arange(n)).tolist()
