# SPDX-License-Identifier: Apache-2.0
"""leat.from_dataset: the same pack for any number of workers, files of an ImageFolder, resuming."""

import os

import numpy as np
import pytest

import leat


class Squares:
    """A map-style dataset that cannot be pickled."""

    def __init__(self, n):
        self.n = n
        self.make = lambda i: np.full((4, 5, 3), i % 256, np.uint8)

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if i >= self.n:
            raise IndexError(i)
        return self.make(i), i * i


class Folder:
    """What torchvision's ImageFolder has."""

    transform = target_transform = None

    def __init__(self, root, samples, classes):
        self.root, self.samples, self.classes, self.loader = root, samples, classes, None

    def __getitem__(self, i):
        raise AssertionError("the files are packed, not what loader makes of them")


def test_any_number_of_workers_gives_the_same_pack(tmp_path):
    files = []
    for workers in (0, 1, 3):
        path = tmp_path / f"{workers}.leat"
        stats = leat.from_dataset(Squares(101), path, workers=workers, sync=False)
        assert stats["samples"] == 101
        files.append(path.read_bytes())
    assert files[0] == files[1] == files[2]
    ds = leat.open(path)
    assert [s["label"] for s in ds] == [i * i for i in range(101)]
    assert (np.asarray(ds[100]["image"]) == 100).all()


def test_iterables_and_progress(tmp_path):
    path, calls = tmp_path / "i.leat", []
    leat.from_dataset(({"x": [i, -i], "name": f"n{i}"} for i in range(5)), path, {"x": ("int16", (2,)), "name": str},
                      keys=lambda i: f"k{i}", sync=False, progress=lambda *a: calls.append(a))
    ds = leat.open(path)
    assert ds["k3"]["x"].tolist() == [3, -3] and ds[4]["name"] == "n4"
    assert calls == [(i, 0) for i in range(1, 6)]
    with pytest.raises(leat.ExistsError):
        leat.from_dataset(iter([]), path, {"x": int})
    leat.from_dataset([[1], [2]], path, {"x": int}, force=True, sync=False)
    assert [s["x"] for s in leat.open(path)] == [1, 2]


def test_image_folders_are_packed_from_their_files(tmp_path, images):
    samples = []
    for i, data in enumerate(images[:4]):
        path = tmp_path / "root" / "ab"[i % 2] / f"{i}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        samples.append((os.fspath(path), i % 2))
    leat.from_dataset(Folder(tmp_path / "root", samples, ["a", "b"]), tmp_path / "f.leat", sync=False, workers=2)
    ds = leat.open(tmp_path / "f.leat")
    assert ds["b/1.jpg"]["image"].file() == images[1] and ds["b/1.jpg"]["label"] == 1
    assert list(ds.classes()) == ["a", "b"]


def test_class_names_of_a_dataset_are_kept(tmp_path):
    """Also with a transform, of CIFAR10 and others, and of a Subset: only files of an ImageFolder had them."""
    class Named(Squares):
        classes, target_transform = ["none", "one", ("two", "deux"), "three", "one"], None

        def __getitem__(self, i):
            return super().__getitem__(i)[0], i % 5

    class Subset:
        def __init__(self, dataset, indices):
            self.dataset, self.indices = dataset, indices

        def __len__(self):
            return len(self.indices)

        def __getitem__(self, i):
            return self.dataset[self.indices[i]]

    def classes(dataset, fields=None, **options):
        leat.from_dataset(dataset, tmp_path / "c.leat", fields, force=True, sync=False, **options)
        with leat.Loader(tmp_path / "c.leat", 2, "CenterCrop(4)", as_="numpy") as loader:
            return list(loader.dataset.classes())

    expected = ["none", "one (1)", "two, deux", "three", "one (4)"]
    assert classes(Named(9)) == classes(Subset(Named(9), [1, 3])) == classes(Named(9), {"image": "image", "label": int}) == expected
    assert classes(Named(9), workers=2, shuffle=1) == expected
    assert classes(Named(9), classes={}) == [] and classes(Named(9), classes={"label": list("abcde")}) == list("abcde")
    moved = Named(9)
    moved.target_transform = abs  # its labels are other numbers
    assert classes(moved) == classes(Squares(9)) == []


def test_a_failing_dataset_can_be_resumed(tmp_path):
    class Breaks(Squares):
        def __getitem__(self, i):
            if i == 70:
                raise RuntimeError("disk on fire")
            return os.urandom(0) + bytes([i]) * 9000, i

    fields = {"data": bytes, "n": int}
    path = tmp_path / "r.leat"
    for workers in (2, 0):
        with pytest.raises(RuntimeError, match="disk on fire"):
            leat.from_dataset(Breaks(100), path, fields, workers=workers, page_bytes="64K", sync=False, force=True)
    assert not path.exists()

    class Works(Squares):
        def __getitem__(self, i):
            return bytes([i]) * 9000, i

    stats = leat.from_dataset(Works(100), path, fields, workers=2, page_bytes="64K", sync=False, resume=True)
    assert stats["samples"] == 100
    assert all(s["n"] == i and s["data"] == bytes([i]) * 9000 for i, s in enumerate(leat.open(path)))


@pytest.mark.parametrize("dataset, options, error", [
    (iter([(1, 2)]), {"workers": 2}, "iterable has one reader"),
    ([(1, 2)], {}, "need fields"),
    ([(1, 2)], {"workers": -1}, "workers"),
    ([(300,)], {"fields": {"x": ("uint8", ())}}, "300 is out of range"),
])
def test_what_cannot_work_is_refused(tmp_path, dataset, options, error):
    with pytest.raises(leat.ArgumentError, match=error):
        leat.from_dataset(dataset, tmp_path / "x.leat", **options)


@pytest.mark.parametrize("mode", ["P", "CMYK", "HSV", "1", "I"])
def test_pil_images_of_other_modes_are_refused(tmp_path, mode):
    image = pytest.importorskip("PIL.Image")
    with pytest.raises(leat.ArgumentError, match=f"PIL image of mode {mode}"):
        leat.from_dataset([(image.new(mode, (4, 4)), 1)], tmp_path / "x.leat")


class Holes:
    """A dataset with a sample that is None."""

    def __len__(self):
        return 12

    def __getitem__(self, i):
        return None if i == 7 else {"label": i}


@pytest.mark.parametrize("workers", [0, 2])
def test_a_sample_without_values_is_named(tmp_path, workers):
    with pytest.raises(leat.ArgumentError, match="sample 7: None is not a dict or a sequence of values"):
        leat.from_dataset(Holes(), tmp_path / "p.leat", {"label": int}, workers=workers)
