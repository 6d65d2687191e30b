# SPDX-License-Identifier: Apache-2.0
"""leat.open(path, image=...): a map-style dataset with the pixels of a loader."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest
from PIL import Image

import leat

CENTER = [leat.ops.CenterCrop(32)]
RANDOM = [leat.ops.RandomResizedCrop(24), leat.ops.RandomHorizontalFlip(), leat.ops.ColorJitter(0.4, 0.4, 0.4, 0.1),
          leat.ops.Normalize((0.5, 0.4, 0.3), (0.2, 0.3, 0.4)), leat.ops.ToDtype("float16")]


def by_id(pack: str, image: object, epoch: int = 0, **options: object) -> dict[int, np.ndarray]:
    """What a loader makes of every sample."""
    loader = leat.Loader(pack, 16, image, as_="numpy", threads=2, **options)
    loader.set_epoch(epoch)
    return {int(i): np.array(x) for batch in loader for i, x in zip(batch["sample_id"], batch["image"])}


@pytest.mark.parametrize("ops", [CENTER, RANDOM, "Resize((20, 30)); RandomRotation(30); ToLayout(nhwc)"])
def test_the_pixels_are_those_of_a_loader(pack: str, ops: object) -> None:
    ds = leat.open(pack, image=ops, seed=5, as_="numpy")
    for epoch in (0, 3):
        ds.set_epoch(epoch)
        expected = by_id(pack, ops, epoch, seed=5)
        assert len(expected) == len(ds) == 101
        for i, want in expected.items():
            got = ds[i]
            assert got["image"].dtype == want.dtype and np.array_equal(got["image"], want)
            assert got["label"] == i % 10 and got["sample_id"] == got.sample_id == i
            assert got.key == f"dir/{i:04d}.jpg"
    assert ds.epoch == 3


def test_getitems_is_one_call_and_gives_the_same(pack: str) -> None:
    ds = leat.open(pack, image=RANDOM, seed=5, as_="numpy")
    several = ds.__getitems__([7, 3, -1, np.int64(3)])
    assert [s.sample_id for s in several] == [7, 3, 100, 3]
    for s in several:
        assert np.array_equal(s["image"], ds[s.sample_id]["image"])
    assert ds.__getitems__([]) == [] and ds[5:5] == []
    with pytest.raises(IndexError):
        ds.__getitems__([0, 101])


def test_fields_and_tuples(pack: str) -> None:
    ds = leat.open(pack, image=CENTER, fields=["label", "key"], as_="numpy")
    assert list(ds[4]) == ["image", "label", "key"] and ds[4]["key"] == "dir/0004.jpg"
    image, label, key = leat.open(pack, image=CENTER, fields=["image", "label", "key"], as_tuple=True, as_="numpy")[4]
    assert image.shape == (3, 32, 32) and label == 4 and key == "dir/0004.jpg"
    with pytest.raises(leat.ArgumentError, match="no field 'lable'"):
        leat.open(pack, image=CENTER, fields=["lable"])


def test_several_views_draw_as_in_a_loader(pack: str) -> None:
    views = {"a": ("image", RANDOM), "b": ("image", RANDOM)}
    ds = leat.open(pack, image=views, seed=2, as_="numpy")
    for batch in leat.Loader(pack, 50, views, seed=2, as_="numpy", order="sequential", fields=["label"]):
        for i, a, b in zip(batch["sample_id"], batch["a"], batch["b"]):
            assert np.array_equal(ds[i]["a"], a) and np.array_equal(ds[i]["b"], b)
            assert not np.array_equal(a, b)


@pytest.mark.parametrize("kind", ["tiled", "keep", "raw"])
def test_every_way_to_store_images(pack: str, tmp_path, kind: str) -> None:
    path = str(tmp_path / "again.leat")
    leat.pack(pack, path, images=kind, sync=False)
    ds = leat.open(path, image=RANDOM, as_="numpy")
    expected = by_id(path, RANDOM)
    assert all(np.array_equal(ds[i]["image"], x) for i, x in expected.items())


def test_arguments_are_checked(pack: str, tmp_path) -> None:
    with pytest.raises(leat.ArgumentError, match="only a leat.Loader has batches"):
        leat.open(pack, image=[leat.ops.CenterCrop(8), leat.ops.MixUp()])
    with pytest.raises(leat.ArgumentError, match="give image= too"):
        leat.open(pack, seed=3)
    with pytest.raises(leat.ArgumentError, match="leave it out beside image"):
        leat.open(pack, image=CENTER, rgb=True)
    with pytest.raises(leat.ArgumentError, match="neither a pipeline"):
        leat.open(pack, image=3)
    with pytest.raises(leat.ArgumentError, match="no image field 'label'"):
        leat.open(pack, image={"x": ("label", CENTER)})
    with pytest.raises(leat.ArgumentError, match="nothing is drawn"):
        leat.open(pack).set_epoch(1)
    path = str(tmp_path / "none.leat")
    with leat.Writer(path, {"label": int}, sync=False):
        pass
    assert len(leat.open(path)) == 0
    with pytest.raises(leat.ArgumentError, match="has no image field"):
        leat.open(path, image=CENTER)


def test_a_bad_image_names_its_sample(tmp_path) -> None:
    path = str(tmp_path / "bad.leat")
    with leat.Writer(path, {"image": "image"}, sync=False) as w:
        out = io.BytesIO()
        Image.new("RGB", (64, 64), (9, 8, 7)).save(out, "JPEG")
        w.append([out.getvalue()], key="whole")
        w.append([None], key="none")
    ds = leat.open(path, image=CENTER, as_="numpy")
    assert ds[0]["image"].shape == (3, 32, 32)
    with pytest.raises(leat.DataError, match='sample 1 "none".*absent'):
        ds[1]


def test_pickles_and_refuses_another_pack(pack: str, tmp_path) -> None:
    path = str(tmp_path / "small.leat")
    leat.pack(pack, path, sync=False)
    ds = leat.open(path, image=RANDOM, seed=4, as_="numpy")
    ds.set_epoch(6)
    text = pickle.dumps(ds)
    again = pickle.loads(text)
    assert again.epoch == 6 and np.array_equal(again[5]["image"], ds[5]["image"])
    assert pickle.loads(pickle.dumps(ds[5])).key == copy.copy(ds[5]).key == "dir/0005.jpg"
    leat.pack(pack, path, keys=["dir/0001.jpg"], force=True, sync=False)
    with pytest.raises(leat.StateError, match="was changed"):
        pickle.loads(text)


def test_rgb_and_faces_of_an_image(tmp_path) -> None:
    path = str(tmp_path / "modes.leat")
    rng = np.random.default_rng(1)
    shades = {m: rng.integers(0, 256, (9, 7, n), np.uint8) for m, n in (("L", 1), ("RGB", 3), ("RGBA", 4))}
    with leat.Writer(path, {"image": "image"}, sync=False) as w:
        for pixels in shades.values():
            out = io.BytesIO()
            Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels).save(out, "PNG")
            w.append([out.getvalue()])
    loaded = by_id(path, "CenterCrop(size=(9, 7)); ToLayout(nhwc)")
    for i, pixels in enumerate(shades.values()):
        plain, rgb = leat.open(path)[i]["image"], leat.open(path, rgb=True)[i]["image"]
        assert np.array_equal(np.asarray(plain), pixels)
        assert np.array_equal(np.asarray(rgb), loaded[i]) and np.array_equal(plain.decode(rgb=True), loaded[i])
        assert np.array_equal(np.asarray(plain.pil()).reshape(pixels.shape), pixels)
        shown = np.asarray(Image.open(io.BytesIO(plain._repr_png_())))
        assert np.array_equal(shown.reshape(pixels.shape), pixels)
        if pixels.shape[2] > 1:
            assert np.array_equal(np.asarray(Image.fromarray(plain)), pixels)


@pytest.mark.torch
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_a_data_loader(plain: str, method: str) -> None:
    import torch
    from torch.utils.data import DataLoader

    ds = leat.open(plain, image=RANDOM, seed=9)
    loader = DataLoader(ds, batch_size=16, shuffle=True, num_workers=2, multiprocessing_context=method,
                        persistent_workers=True)
    for epoch in (0, 1):
        ds.set_epoch(epoch)
        expected, seen = by_id(plain, RANDOM, epoch, seed=9), 0
        for batch in loader:
            assert isinstance(batch["image"], torch.Tensor) and batch["label"].dtype == torch.int64
            for i, x, label in zip(batch["sample_id"].tolist(), batch["image"], batch["label"].tolist()):
                assert np.array_equal(x.numpy(), expected[i]) and label == i % 10
                seen += 1
        assert seen == 101


@pytest.mark.torch
def test_channels_last_and_tuples_collate(plain: str) -> None:
    from torch.utils.data import DataLoader

    ds = leat.open(plain, image=CENTER, fields=["image", "label"], as_tuple=True, channels_last=True)
    assert ds[0][0].shape == (3, 32, 32) and ds[0][0].stride() == (1, 96, 3)
    image, label = next(iter(DataLoader(ds, batch_size=8)))
    assert image.shape == (8, 3, 32, 32) and label.tolist() == list(range(8))


def test_samples_travel_between_processes(pack: str) -> None:
    """Images are pickled with their bytes; the pack is opened once where they arrive."""
    ds = leat.open(pack)
    for i in (0, 57):
        for other in (pickle.loads(pickle.dumps(ds[i])), copy.deepcopy(ds[i]), copy.copy(ds[i])):
            assert (other.key, other.sample_id, other["label"]) == (ds[i].key, i, i % 10)
            assert np.array_equal(np.asarray(other["image"]), np.asarray(ds[i]["image"]))
            assert other["image"].file() == ds[i]["image"].file()


def same(batch: object) -> object:
    return batch


@pytest.mark.torch
@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers_give_samples_that_are_not_decoded(pack: str, start: str) -> None:
    torch = pytest.importorskip("torch")
    ds = leat.open(pack)
    loader = torch.utils.data.DataLoader(torch.utils.data.Subset(ds, range(6)), batch_size=3, num_workers=1,
                                         collate_fn=same, multiprocessing_context=start)
    got = [sample for batch in loader for sample in batch]
    assert [sample.sample_id for sample in got] == list(range(6))
    for sample in got:
        assert np.array_equal(np.asarray(sample["image"]), np.asarray(ds[sample.sample_id]["image"]))


@pytest.mark.parametrize("ops", [[leat.ops.Resize(40)], [leat.ops.CenterCrop(40), leat.ops.RandomRotation(9, expand=True)]])
def test_advice_is_about_datasets(pack: str, ops: object) -> None:
    with pytest.raises(leat.ArgumentError, match="one size: add ") as caught:
        leat.open(pack, image=ops)
    assert "collate" not in str(caught.value)
