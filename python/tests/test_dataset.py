# SPDX-License-Identifier: Apache-2.0
"""leat.open and leat.Writer."""

import io
import os
import threading

import numpy as np
import pytest
from PIL import Image

import leat
from conftest import pixels


def test_samples_come_back(pack, images):
    ds = leat.open(pack)
    assert len(ds) == len(images) == 101
    assert [f.name for f in ds.fields] == ["image", "label", "score", "caption", "boxes", "vector"]
    for i in (0, 1, 50, 100):
        s = ds[i]
        assert (s.key, s.sample_id) == (f"dir/{i:04d}.jpg", i)
        assert s["label"] == s.label == i % 10 and s["score"] == i / 2 and s["caption"] == f"caption {i} é"
        assert s["boxes"].shape == (i % 3, 4) and s["boxes"].dtype == np.float32
        assert (s["vector"] == i).all() and s["vector"].flags.writeable
        assert s["image"].file() == images[i]
        np.testing.assert_array_equal(np.asarray(s["image"]), pixels(images[i]))


def test_indexing(pack):
    ds = leat.open(pack)
    assert ds[-1].sample_id == 100 and ds["dir/0042.jpg"].sample_id == 42
    assert [s.sample_id for s in ds[98:]] == [98, 99, 100]
    assert [s.sample_id for s in ds[10:0:-5]] == [10, 5]
    assert [s.sample_id for s in ds][:3] == [0, 1, 2]
    assert "dir/0001.jpg" in ds and "nothing" not in ds and ds.find("nothing") is None
    for wrong, error in ((101, IndexError), (-102, IndexError), ("nothing", KeyError), (1.5, leat.ArgumentError)):
        with pytest.raises(error):
            ds[wrong]


def test_keys_columns_classes(pack):
    ds = leat.open(pack)
    assert len(ds.keys) == 101 and ds.keys[3] == "dir/0003.jpg" and ds.keys[-1] == "dir/0100.jpg"
    assert list(ds.keys) == ds.keys[:] == [f"dir/{i:04d}.jpg" for i in range(101)]
    assert "dir/0100.jpg" in ds.keys and ds.keys.index("dir/0007.jpg") == 7
    np.testing.assert_array_equal(ds.column("label"), np.arange(101) % 10)
    np.testing.assert_array_equal(ds.column("score"), np.arange(101) / 2)
    with pytest.raises(leat.ArgumentError, match="only int and float fields are columns"):
        ds.column("caption")
    assert ds.classes("label") == [f"class {i}" for i in range(10)]
    assert ds.provenance["source"] == {"made_by": "tests"}
    assert ds.schema["fields"][1]["name"] == "label"


def test_many_threads_read_one_dataset(pack):
    ds, wrong = leat.open(pack), []

    def work(seed: int) -> None:
        for i in np.random.default_rng(seed).integers(0, 101, 200):
            if ds[int(i)]["label"] != i % 10:
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_closed_dataset(pack):
    with leat.open(pack) as ds:
        image = ds[0]["image"]
    with pytest.raises(leat.StateError):
        ds[0]
    with pytest.raises(leat.StateError):
        image.decode()


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation(tmp_path, orientation):
    source = Image.fromarray(np.random.default_rng(1).integers(0, 256, (20, 30, 3), np.uint8))
    exif = Image.Exif()
    exif[0x0112] = orientation
    out = io.BytesIO()
    source.save(out, "JPEG", exif=exif, quality=90)
    path = tmp_path / "turned.leat"
    with leat.Writer(path, {"image": "image"}, sync=False) as w:
        w.append({"image": out.getvalue()})
    from PIL import ImageOps

    expected = ImageOps.exif_transpose(Image.open(io.BytesIO(out.getvalue())))
    np.testing.assert_array_equal(np.asarray(leat.open(path)[0]["image"]), np.asarray(expected))


def test_schema_is_inferred(tmp_path, images):
    path = tmp_path / "inferred.leat"
    rgb = np.random.default_rng(0).integers(0, 256, (5, 7, 3), np.uint8)
    sample = {"jpg": images[0], "rgb": rgb, "n": 3, "x": 0.5, "t": "text", "raw": b"\x00\x01",
              "meta": {"a": [1, None]}, "v": np.arange(6, dtype=np.int16).reshape(2, 3)}
    with leat.Writer(path, sync=False) as w:
        w.append(sample)
        w.append({"n": 4, "x": 1.5})
    ds = leat.open(path)
    assert {f.name: f.type for f in ds.fields} == {
        "jpg": "image", "rgb": "image", "n": "int", "x": "float", "t": "text", "raw": "bytes",
        "meta": "json", "v": "array"}
    s = ds[0]
    np.testing.assert_array_equal(np.asarray(s["rgb"]), rgb)
    np.testing.assert_array_equal(s["v"], sample["v"])
    assert s["meta"] == sample["meta"] and s["raw"] == sample["raw"] and s.key == "00000000"
    assert ds[1]["t"] is None and ds[1]["jpg"] is None and ds[1]["n"] == 4
    with pytest.raises(leat.UnsupportedError):
        s["rgb"].file()


def test_grey_and_alpha_pixels(tmp_path):
    rng = np.random.default_rng(2)
    arrays = [rng.integers(0, 256, shape, np.uint8) for shape in ((4, 6), (4, 6, 1), (9, 3, 4))]
    path = tmp_path / "pixels.leat"
    with leat.Writer(path, {"image": "image"}, sync=False) as w:
        w.extend([[a] for a in arrays])
    for a, s in zip(arrays, leat.open(path)):
        np.testing.assert_array_equal(np.asarray(s["image"]), a.reshape(a.shape[0], a.shape[1], -1))


def test_paths_and_pil_images(tmp_path, images):
    file = tmp_path / "a.jpg"
    file.write_bytes(images[0])
    path = tmp_path / "p.leat"
    with leat.Writer(path, {"image": "image"}, sync=False) as w:
        w.append({"image": file})
        w.append({"image": Image.open(file)})
    ds = leat.open(path)
    assert ds[0]["image"].file() == images[0]
    np.testing.assert_array_equal(np.asarray(ds[1]["image"]), pixels(images[0]))


def test_bfloat16_fields(tmp_path):
    path = tmp_path / "bf16.leat"
    bits = np.array([0x3F80, 0x4000, 0xC000], np.uint16)
    with leat.Writer(path, {"v": ("bfloat16", (3,))}, sync=False) as w:
        w.append({"v": bits})
    np.testing.assert_array_equal(leat.open(path)[0]["v"].view(np.uint16), bits)


@pytest.mark.parametrize("sample, error", [
    ({"label": 1, "other": 2}, "there is no field 'other'"),
    ({"vector": [1, 2, 3]}, "int fields have a value"),
    ({"label": 1, "vector": np.zeros(4)}, r"shape \(4,\), \(3,\) is expected"),
    ({"label": 1, "image": b"no image"}, "not an image format that leat reads"),
    ([1, 2], "3 values are expected"),
])
def test_wrong_samples_are_refused(tmp_path, sample, error):
    w = leat.Writer(tmp_path / "w.leat", {"label": int, "vector": ("float32", (3,)), "image": "image"})
    with pytest.raises(ValueError, match=error):
        w.append(sample)
    w.append({"label": 1})  # a refused sample leaves the writer usable
    assert len(w) == 1
    w.close()


@pytest.mark.parametrize("spec", ["picture", ("f99", (3,)), ("complex64", (3,)), ("f4", (-1,)), ("f4", (1.5,)), 7, ()])
def test_wrong_schemas_are_refused(tmp_path, spec):
    with pytest.raises(leat.ArgumentError):
        leat.Writer(tmp_path / "w.leat", {"x": spec} if spec != () else {})


def test_unfinished_packs_are_resumed(tmp_path):
    path = tmp_path / "r.leat"
    rows = [{"label": i, "data": os.urandom(40000)} for i in range(20)]
    schema = {"label": int, "data": bytes}
    with pytest.raises(RuntimeError, match="stop"):
        with leat.Writer(path, schema, page_bytes="64K") as w:
            for i, row in enumerate(rows):
                if i == 13:
                    raise RuntimeError("stop")
                w.append(row)
    assert not path.exists()
    with pytest.raises(leat.ExistsError):
        leat.Writer(path, schema, page_bytes="64K")
    with leat.Writer(path, schema, page_bytes="64K", resume=True) as w:
        assert 0 < w.resumed <= 13 and len(w) == w.resumed
        w.extend(rows[w.resumed:])
    ds = leat.open(path)
    assert [s["label"] for s in ds] == list(range(20)) and all(s["data"] == r["data"] for s, r in zip(ds, rows))
    assert ds.keys[19] == "00000019"


def test_sets_of_shards(tmp_path):
    path = tmp_path / "set.leat"
    with leat.Writer(path, {"data": bytes}, page_bytes="64K", shard_bytes="1M", sync=False) as w:
        w.extend([[bytes([i]) * 50000] for i in range(60)])
        stats = w.finish()
    assert stats["samples"] == 60 and stats["shards"] > 1
    ds = leat.open(path)
    assert ds.info["shards"] == stats["shards"] and ds[59]["data"] == bytes([59]) * 50000


def test_finished_writer_refuses_more(tmp_path):
    w = leat.Writer(tmp_path / "f.leat", {"x": int}, sync=False)
    w.append([1])
    w.finish()
    with pytest.raises(leat.StateError):
        w.append([2])
    with pytest.raises(leat.ExistsError):
        leat.Writer(tmp_path / "f.leat", {"x": int})
