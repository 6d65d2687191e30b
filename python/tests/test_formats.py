# SPDX-License-Identifier: Apache-2.0
"""Other people's formats as sources. tests/data/foreign was written by the formats' own libraries (mosaicml-streaming,
litdata, tfrecord, lmdb); FFCV, COCO, VOC and Parquet files are made here."""
import bz2
import errno
import http.server
import io
import json
import os
import pathlib
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import threading
import time
import urllib.parse
import zlib

import numpy as np
import pytest

import leat

DATA = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "foreign"
N = 5
FILES = [(DATA / f"{i}.jpg").read_bytes() for i in range(N)]


def pack(source, tmp_path, **options):
    leat.pack(source, tmp_path / "out.leat", images="keep", force=True, sync=False, **options)
    return leat.open(tmp_path / "out.leat")


def same(got, wanted):
    """Values and order: `wanted` has a dict for each sample."""
    assert len(got) == len(wanted)
    for i, sample in enumerate(wanted):
        for name, value in sample.items():
            found = got[i][name]
            if name == "image":
                found = found.file() if isinstance(value, bytes) else found.decode()
            if isinstance(value, np.ndarray):
                assert found.dtype == value.dtype
                np.testing.assert_array_equal(found, value)
            else:
                assert found == value, (i, name)


@pytest.mark.parametrize("name", ["mds", "mds-zstd"])
def test_mosaic(name, tmp_path):
    got = pack(DATA / name, tmp_path)
    same(got, [{"image": FILES[i], "label": i % 3, "txt": f"text {i} ä", "meta": {"a": i}, "score": i / 4,
                "vec": np.arange(3, dtype=np.float32) + i, "rag": np.arange(i + 1, dtype=np.int32)} for i in range(N)])
    assert got.keys[3] == "00000003"


def squeezed(source, folder, compression, squeeze):
    """A copy of an MDS folder whose shards are compressed."""
    folder.mkdir()
    index = json.loads((source / "index.json").read_text())
    for shard in index["shards"]:
        raw = shard["raw_data"]["basename"]
        data = squeeze((source / raw).read_bytes())
        (folder / f"{raw}.zip").write_bytes(data)
        shard.update(compression=compression, zip_data={"basename": f"{raw}.zip", "bytes": len(data), "hashes": {}})
    (folder / "index.json").write_text(json.dumps(index))
    return folder


def test_mosaic_of_bz2(tmp_path):
    source = squeezed(DATA / "mds", tmp_path / "bz2", "bz2:9", bz2.compress)
    same(pack(source, tmp_path), [{"image": FILES[i], "label": i % 3, "meta": {"a": i}} for i in range(N)])
    for size in (0, 10, 700):
        for file in source.glob("*.zip"):
            file.write_bytes(file.read_bytes()[:size])
        with pytest.raises(leat.DataError, match="shard.00000.mds.zip: (damaged or )?truncated"):
            pack(source, tmp_path)
    (source / "shard.00000.mds.zip").write_bytes(b"not bz2")
    with pytest.raises(leat.DataError, match=r"shard.00000.mds.zip: damaged or truncated \(bz2\): "):
        pack(source, tmp_path)


@pytest.mark.parametrize("name, module, package", [("br:11", "brotli", "brotli"), ("snappy", "snappy", "python-snappy")])
def test_mosaic_of_a_library(name, module, package, tmp_path, monkeypatch):
    source = squeezed(DATA / "mds", tmp_path / "mds", name, zlib.compress)
    monkeypatch.setitem(sys.modules, module, None)  # not installed
    with pytest.raises(leat.ArgumentError, match=f"shard.00000.mds.zip: the compression {name[:2]}.* needs the package {package}: pip "):
        pack(source, tmp_path)
    monkeypatch.setitem(sys.modules, module, zlib)  # has the same function
    same(pack(source, tmp_path), [{"image": FILES[i], "label": i % 3} for i in range(N)])
    monkeypatch.undo()
    library = pytest.importorskip(module)
    same(pack(squeezed(DATA / "mds", tmp_path / "real", name, library.compress), tmp_path),
         [{"image": FILES[i], "label": i % 3} for i in range(N)])


def test_mosaic_of_an_unknown_compression(tmp_path):
    source = squeezed(DATA / "mds", tmp_path / "mds", "lz4:1", zlib.compress)
    with pytest.raises(leat.DataError, match="shard.00000.mds.zip: the compression lz4 is not supported: write the shards with zstd, "):
        pack(source, tmp_path)


@pytest.mark.parametrize("name", ["lit", "lit-zstd"])
def test_litdata(name, tmp_path):
    same(pack(DATA / name, tmp_path),
         [{"image": FILES[i], "label": i % 3, "text": f"text {i}", "x": np.arange(3, dtype=np.float32) + i, "f": i / 4,
           "t": np.arange(6).reshape(2, 3) + i, "m": np.ones((2, i + 1), np.int16)} for i in range(N)])


def test_tfrecord(tmp_path):
    wanted = [{"image": FILES[i], "label": i % 3 - 1, "name": f"n{i}", "v": np.full(i % 4 + 2, i, np.float32),
               "ids": np.array([i, -i, 1 << 40]), "score": i / 4} for i in range(N)]
    same(pack(DATA / "a.tfrecord", tmp_path), wanted)
    same(pack([DATA / "a.tfrecord", DATA / "a.tfrecord"], tmp_path), wanted * 2)


def test_lmdb_of_caffe(tmp_path):
    got = pack(DATA / "caffe", tmp_path)
    same(got, [{"label": i % 3 - 1, **({"image": FILES[i]} if i % 2 else {})} for i in range(N)])
    same(got[0:1], [{"image": np.load(DATA / "0.npy")}])  # pixels in planes
    np.testing.assert_array_equal(got[4].image.decode(), np.load(DATA / "4.npy"))
    assert got.keys[2] == "00000002"


def beton(path, samples):
    """An FFCV file by its layout: two kinds of images, a number, a float, bytes, JSON and an array."""
    page = 1 << 21
    kinds = [("image", 2), ("label", 1), ("score", 0), ("raw", 3), ("meta", 5), ("vec", 4)]
    image = np.dtype([("mode", "u1"), ("w", "<u2"), ("h", "<u2"), ("ptr", "<u8")])
    blob = np.dtype([("ptr", "<u8"), ("size", "<u8")])
    table = np.zeros(len(samples), np.dtype([("f0", image), ("f1", "<i8"), ("f2", "<f8"), ("f3", blob), ("f4", blob),
                                             ("f5", "<u8")], align=True))
    begin = -(-(24 + 1041 * len(kinds) + table.nbytes) // page) * page
    data, allocated = b"", []
    for i, s in enumerate(samples):
        values = [s["pixels"].tobytes() if "pixels" in s else s["jpeg"], s["raw"], json.dumps(s["meta"]).encode() + b"\0",
                  s["vec"].tobytes()]
        at = []
        for value in values:
            at.append(begin + len(data))
            allocated.append((i, begin + len(data), len(value)))
            data += value
        height, width = s["pixels"].shape[:2] if "pixels" in s else (1, 1)
        table[i] = ((1 if "pixels" in s else 0, width, height, at[0]), s["label"], s["score"], (at[1], len(values[1])),
                    (at[2], len(values[2])), at[3])
    shape = struct.pack("<32Q", 3, *([0] * 31))
    descr = json.dumps([["", "<f4"]]).encode()
    fields = b"".join(bytes([kind]) + name.encode().ljust(16, b"\0") +
                      (shape + struct.pack("<Q", len(descr)) + descr if kind == 4 else b"").ljust(1024, b"\0")
                      for name, kind in kinds)
    head = struct.pack("<HHIQQ", 2, len(kinds), page, len(samples), begin + len(data))
    path.write_bytes((head + fields + table.tobytes()).ljust(begin, b"\0") + data +
                     b"".join(struct.pack("<QQQ", *triple) for triple in allocated))


def test_ffcv(tmp_path):
    pixels = np.random.default_rng(1).integers(0, 255, (5, 7, 3), dtype=np.uint8)
    samples = [{**({"pixels": pixels + i} if i % 2 else {"jpeg": FILES[i]}), "label": i, "score": i / 8,
                "raw": b"x" * i, "meta": {"a": [i]}, "vec": np.arange(3, dtype=np.float32) * i} for i in range(N)]
    beton(tmp_path / "a.beton", samples)
    same(pack(tmp_path / "a.beton", tmp_path),
         [{"image": s["pixels"] if "pixels" in s else s["jpeg"], **{k: s[k] for k in
           ("label", "score", "raw", "meta", "vec")}} for s in samples])
    whole = (tmp_path / "a.beton").read_bytes()
    for broken in (whole[:20], whole[:16] + b"\0" * 8 + whole[24:], whole[:1 << 21]):
        (tmp_path / "b.beton").write_bytes(broken)
        with pytest.raises(leat.DataError, match="b.beton"):
            pack(tmp_path / "b.beton", tmp_path)


def test_coco(tmp_path):
    folder = tmp_path / "val2017"
    folder.mkdir()
    (tmp_path / "annotations").mkdir()
    for i in range(3):
        (folder / f"{i}.jpg").write_bytes(FILES[i])
    notes = tmp_path / "annotations" / "instances_val2017.json"
    notes.write_text(json.dumps({
        "images": [{"id": 10 + i, "file_name": f"{i}.jpg"} for i in (2, 0, 1)],
        "categories": [{"id": 7, "name": "cat"}, {"id": 90, "name": "dog"}],
        "annotations": [{"image_id": 10, "bbox": [1, 2, 3, 4], "category_id": 90, "iscrowd": 1},
                        {"image_id": 12, "bbox": [0.5, 0, 2, 2], "category_id": 7, "iscrowd": 0},
                        {"image_id": 10, "bbox": [0, 0, 1, 1], "category_id": 7, "iscrowd": 0}]}))
    got = pack(notes, tmp_path)
    same(got, [
        {"image": FILES[2], "boxes": np.array([[.5, 0, 2.5, 2]], np.float32), "box_names": ["cat"], "image_id": 12},
        {"image": FILES[0], "boxes": np.array([[1, 2, 4, 6], [0, 0, 1, 1]], np.float32),
         "box_labels": np.array([90, 7]), "crowd": np.array([1, 0], np.uint8)},
        {"image": FILES[1], "boxes": np.zeros((0, 4), np.float32), "box_labels": np.zeros(0, np.int64)}])
    assert list(got.keys) == ["2.jpg", "0.jpg", "1.jpg"]
    with leat.Loader(tmp_path / "out.leat", 3, image=[leat.ops.Resize(16), leat.ops.CenterCrop(16)], order="sequential",
                     boxes=leat.ops.Boxes("xyxy"), box_labels=leat.ops.Labels(), as_="numpy", drop_last=False) as loader:
        batch = next(iter(loader))
        assert [len(boxes) for boxes in batch.boxes] == [len(labels) for labels in batch.box_labels]
    (folder / "0.jpg").unlink()
    with pytest.raises(leat.Error, match="0.jpg"):
        pack(notes, tmp_path)
    assert len(pack(notes, tmp_path, on_error="skip")) == 2


def test_voc(tmp_path):
    for name in ("Annotations", "JPEGImages"):
        (tmp_path / "VOC" / name).mkdir(parents=True)
    for i in range(2):
        (tmp_path / "VOC" / "JPEGImages" / f"{i}.jpg").write_bytes(FILES[i])
        objects = "".join(f"<object><name>{n}</name><difficult>{d}</difficult><bndbox><xmin>{1 + i}</xmin><ymin>2</ymin>"
                          f"<xmax>5</xmax><ymax>6</ymax></bndbox></object>" for n, d in (("dog", 0), ("cat", 1))[:i + 1])
        (tmp_path / "VOC" / "Annotations" / f"{i}.xml").write_text(
            f"<annotation><filename>{i}.jpg</filename>{objects}</annotation>")
    same(pack(tmp_path / "VOC", tmp_path), [
        {"image": FILES[0], "boxes": np.array([[0, 1, 5, 6]], np.float32), "box_labels": np.array([1]),
         "box_names": ["dog"]},
        {"image": FILES[1], "boxes": np.array([[1, 1, 5, 6]] * 2, np.float32), "box_labels": np.array([1, 0]),
         "difficult": np.array([0, 1], np.uint8)}])


def test_parquet_and_arrow(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq
    features = {"info": {"features": {"labels": {"names": ["a", "b", "c"], "_type": "ClassLabel"}}}}
    table = pa.table({
        "img": pa.array([{"bytes": f, "path": None} for f in FILES], pa.struct([("bytes", pa.binary()),
                                                                              ("path", pa.string())])),
        "labels": pa.array([i % 3 for i in range(N)]), "caption": [f"c{i}" if i else None for i in range(N)],
        "bb": pa.array([[[i, 1., 2., 3.]] * i for i in range(N)], pa.list_(pa.list_(pa.float32(), 4))),
        "ids": pa.array([[i] * i for i in range(N)], pa.list_(pa.int16())), "raw": [b"%d" % i for i in range(N)],
        "meta": [{"a": i, "b": ["x"]} for i in range(N)]}).replace_schema_metadata({"huggingface": json.dumps(features)})
    wanted = [{"image": FILES[i], "label": i % 3, "caption": f"c{i}" if i else None, "raw": b"%d" % i,
               "bb": np.array([[i, 1, 2, 3]] * i, np.float32).reshape(-1, 4), "ids": np.full(i, i, np.int16),
               "meta": {"a": i, "b": ["x"]}} for i in range(N)]
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2)
    got = pack(tmp_path / "a.parquet", tmp_path)
    same(got, wanted)
    assert got.classes("label") == ["a", "b", "c"]
    (tmp_path / "hf").mkdir()
    (tmp_path / "hf" / "state.json").write_text("{}")
    with pa.OSFile(str(tmp_path / "hf" / "data-00000-of-00001.arrow"), "wb") as sink, \
            pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, 3)
    same(pack(tmp_path / "hf", tmp_path), wanted)


def stream(path, table):
    import pyarrow as pa
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def values(source, tmp_path, name, **options):
    got = pack(source, tmp_path, **options)
    return {f.name: f.type for f in got.fields}[name], [sample[name] for sample in got]


def test_the_files_of_save_to_disk_are_those_of_its_state(tmp_path, bucket):
    """Folders of `datasets` also have caches of `map` and `filter`, and files of an earlier save with more shards."""
    pa = pytest.importorskip("pyarrow")
    for place, source in ((tmp_path, tmp_path / "hf"), (bucket, "s3://b/hf")):
        folder = place / "hf"
        folder.mkdir()
        names = [f"data-0000{i}-of-00002.arrow" for i in (1, 0)]  # the order is the state's
        for i, name in enumerate(names):
            stream(folder / name, pa.table({"a": [i, i + 10]}))
        stream(folder / "data-00000-of-00003.arrow", pa.table({"a": [77]}))
        stream(folder / "cache-0a1b.arrow", pa.table({"indices": pa.array([1, 0], pa.uint64())}))
        state = {"_data_files": [{"filename": name} for name in names], "_format_type": None}
        (folder / "state.json").write_text(json.dumps(state))
        assert values(source, tmp_path, "a") == ("int", [0, 10, 1, 11])
        assert leat.pack(source, tmp_path / "out.leat", force=True)["ignored"] == 2
        for wrong, why in (({"_data_files": []}, "lists no files"), ({"_data_files": [{"filename": "../x.arrow"}]}, "not below its folder"),
                           ({"_data_files": [{}]}, "damaged"), ({**state, "_indices_data_files": [{"filename": "i.arrow"}]}, "flatten_indices")):
            (folder / "state.json").write_text(json.dumps(wrong))
            with pytest.raises(leat.DataError, match=why):
                pack(source, tmp_path)
        (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": "none.arrow"}]}))
        with pytest.raises(leat.Error, match="none.arrow"):
            pack(source, tmp_path)
        (folder / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
        (folder / "state.json").unlink()
        with pytest.raises(leat.ArgumentError, match="a DatasetDict: give the folder of one split, of train, test"):
            pack(source, tmp_path)


def test_save_to_disk_of_datasets(tmp_path):
    datasets = pytest.importorskip("datasets")
    whole = datasets.Dataset.from_dict({"a": list(range(10)), "label": [i % 2 for i in range(10)]})
    whole.save_to_disk(tmp_path / "hf", num_shards=3)
    loaded = datasets.load_from_disk(tmp_path / "hf")
    loaded.map(lambda row: {"a": row["a"] * 100})
    loaded.filter(lambda row: row["a"] % 2 == 1)
    loaded.shuffle(1).save_to_disk(tmp_path / "shuffled")
    for name in ("hf", "shuffled"):
        assert values(tmp_path / name, tmp_path, "a")[1] == list(datasets.load_from_disk(tmp_path / name)["a"])


def test_files_of_writers_are_not_part_of_a_folder_of_tables(tmp_path, bucket):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.dataset
    import pyarrow.parquet as pq
    for place, source in ((tmp_path, tmp_path / "t"), (bucket, "s3://b/t")):
        (place / "t").mkdir()
        for name, rows in (("part-0", [1, 2]), ("part-1", [3]), (".part-1", [3]), ("_tmp", [99])):
            pq.write_table(pa.table({"a": rows}), place / "t" / f"{name}.parquet")
        assert values(source, tmp_path, "a")[1] == pyarrow.dataset.dataset(place / "t").to_table()["a"].to_pylist()
    run = subprocess.run([sys.executable, "-m", "leat", "pack", tmp_path / "t", "-o", tmp_path / "out.leat", "-f"], capture_output=True, text=True)
    assert run.returncode == 0 and "skipped 2 files that are hidden or not part of the dataset (.part-1.parquet, ...)" in run.stderr
    (tmp_path / "t" / "dataset_info.json").touch()  # a cache of datasets
    stream(tmp_path / "t" / "cache-12.arrow", pa.table({"a": [5]}))
    assert values(tmp_path / "t", tmp_path, "a")[1] == [1, 2, 3]


def columns(pa):
    """Columns of one type each, with the field that they become and its values."""
    utc, day = "2024-07-01 12:00:00", [19000, None]
    nested = pa.struct([("d", pa.date32()), ("x", pa.list_(pa.decimal128(5, 2))), ("c", pa.string()), ("n", pa.uint64())])
    yield pa.array(["a\0b", None], pa.large_string()), "text", ["a\0b", None]
    yield pa.array(["u", None]).dictionary_encode(), "text", ["u", None]
    yield pa.array([b"a\0", None], pa.large_binary()), "bytes", [b"a\0", None]
    if hasattr(pa, "string_view"):
        yield pa.array(["a\0b", None], pa.string_view()), "text", ["a\0b", None]
        yield pa.array([b"a\0", None], pa.binary_view()), "bytes", [b"a\0", None]
    yield pa.array(day, pa.date32()), "text", ["2022-01-08", None]
    yield pa.array([19000 * 86400000, None], pa.date64()), "text", ["2022-01-08", None]
    yield pa.array([1719835200, None], pa.timestamp("s")), "text", [utc, None]
    yield pa.array([1719835200123456789, -1], pa.timestamp("ns")), "text", [utc + ".123456789", "1969-12-31 23:59:59.999999999"]
    yield pa.array([1719835200123, None], pa.timestamp("ms", "Europe/Berlin")), "text", [utc + ".123Z", None]
    yield pa.array([3723, None], pa.time32("s")), "text", ["01:02:03", None]
    yield pa.array([1, 86399999999999], pa.time64("ns")), "text", ["00:00:00.000000001", "23:59:59.999999999"]
    yield pa.array([90061, -1], pa.duration("s")), "int", [90061, -1]
    yield pa.array(["1.50", None]).cast(pa.decimal128(30, 2)), "text", ["1.50", None]
    yield pa.array(day, pa.date32()).dictionary_encode(), "text", ["2022-01-08", None]
    yield pa.array([[19000, None], None], pa.list_(pa.date32())), "json", [["2022-01-08", None], None]
    yield pa.array([["a\0"], []], pa.list_(pa.string())), "json", [["a\0"], []]
    yield pa.array([[("k", 19000)], None], pa.map_(pa.string(), pa.date32())), "json", [[["k", "2022-01-08"]], None]
    yield pa.array([{"d": 19000, "x": [], "c": "k", "n": 1 << 63}, None], nested), "json", [{"d": "2022-01-08", "x": [], "c": "k", "n": 1 << 63}, None]


@pytest.mark.parametrize("end", ["parquet", "arrow", "feather"])
def test_types_of_columns(end, tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.feather
    import pyarrow.parquet as pq
    for i, (column, kind, wanted) in enumerate(columns(pa)):
        path, table = tmp_path / f"{i}.{end}", pa.table({"c": column})
        if end == "parquet":
            if str(column.type) in ("time32[s]", "timestamp[s]"):  # milliseconds there
                continue
            pq.write_table(table, path)
        elif end == "feather":
            pyarrow.feather.write_feather(table, path)
        else:
            stream(path, table)
        assert values(path, tmp_path, "c") == (kind, wanted), column.type


def test_values_that_cannot_be_stored_are_named(tmp_path):
    pa = pytest.importorskip("pyarrow")
    dates = pa.list_(pa.date32())
    for column, why in ((pa.array([-100000000], pa.date32()), "column 'c': a date or time that cannot be written"),
                        (pa.array([90000], pa.time32("s")), "column 'c': a date or time"),
                        (pa.array([[1, -100000000]], dates), "column 'c': a date or time"),
                        (pa.array([{"b": b"x"}]), "field 'c', sample 0: not a JSON value: .* bytes"),
                        (pa.array([{"b": float("nan")}]), "field 'c', sample 0: not a JSON value: .* float"),
                        (pa.array([{"a\0b": 1}]), r"field 'c': a JSON object has a name with \\u0000")):
        stream(tmp_path / "t.arrow", pa.table({"c": column, "id": [7]}))
        with pytest.raises(leat.DataError, match=why):
            pack(tmp_path / "t.arrow", tmp_path)
        assert values(tmp_path / "t.arrow", tmp_path, "id", members=["id"]) == ("int", [7])


def test_features_of_hugging_face(tmp_path):
    """Arrays have the shape of their feature, and only images are images: Audio has the same struct."""
    pa = pytest.importorskip("pyarrow")
    features = {"a": {"_type": "Array2D", "dtype": "float32", "shape": [2, 2]}, "v": {"_type": "Array2D", "dtype": "int8", "shape": [None, 2]},
                "sound": {"_type": "Audio"}}
    table = pa.table({"a": pa.array([[[1, 2], [3, float("nan")]]], pa.list_(pa.list_(pa.float32()))),
                      "v": pa.array([[[1, 2]]], pa.list_(pa.list_(pa.int8()))), "sound": pa.array([{"bytes": b"RIFF", "path": None}])})
    stream(tmp_path / "t.arrow", table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})}))
    same(pack(tmp_path / "t.arrow", tmp_path), [{"a": np.array([[1, 2], [3, np.nan]], np.float32), "v": np.array([[1, 2]], np.int8), "sound": b"RIFF"}])


def test_members_choose_columns(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq
    (tmp_path / "t").mkdir()
    pq.write_table(pa.table({"pic": FILES[:3], "cls": [1, 0, 1], "more": [{"b": b"x"}] * 3}), tmp_path / "t/0.parquet")
    pq.write_table(pa.table({"cls": [0], "other": [b"x"], "pic": FILES[3:4]}), tmp_path / "t/1.parquet")
    got = pack(tmp_path / "t", tmp_path, members=["cls", "pic"])
    assert [f.name for f in got.fields] == ["label", "image"]
    same(got, [{"image": FILES[i], "label": label} for i, label in enumerate([1, 0, 1, 0])])
    with pytest.raises(leat.ArgumentError, match="members: there is no column 'x'; .*t has pic, cls, more"):
        pack(tmp_path / "t", tmp_path, members=["pic", "x"])
    with pytest.raises(leat.DataError, match="1.parquet: has other columns than .*0.parquet"):
        pack(tmp_path / "t", tmp_path, members=["more"])
    for source, name in ((DATA / "mds", "score"), (DATA / "lit", "f")):
        assert [f.name for f in pack(source, tmp_path, members=[name]).fields] == [name]
        assert values(source, tmp_path, name, members=[name])[1] == [i / 4 for i in range(N)]
    with pytest.raises(leat.ArgumentError, match="members has no effect"):
        pack(DATA / "a.tfrecord", tmp_path, members=["name"])


@pytest.mark.parametrize("on_error", ["fail", "skip"])
@pytest.mark.parametrize("kind", ["parquet", "file", "stream"])
def test_damaged_tables_are_one_line_with_the_file_and_the_place(kind, on_error, tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq
    table = pa.table({"raw": [b"%d" % i * 50 for i in range(600)]})
    folder = tmp_path / "tables"
    folder.mkdir()
    for i in range(2):
        path = folder / f"{i}.{'parquet' if kind == 'parquet' else 'arrow'}"
        if kind == "parquet":
            pq.write_table(table, path, row_group_size=100)
            middle = pq.read_metadata(path).row_group(4).column(0).data_page_offset
        else:
            with pa.OSFile(str(path), "wb") as sink, (pa.ipc.new_file if kind == "file" else pa.ipc.new_stream)(sink, table.schema) as w:
                w.write_table(table, 100)
            middle = path.stat().st_size * 5 // 8
    data = path.read_bytes()
    path.write_bytes(data[:middle] + b"\xff" * 200 + data[middle + 200:] if kind != "stream" else data[:middle])
    if kind == "file":  # the values are not checked by pyarrow: damage the head of a batch
        at = data.index(b"\xff\xff\xff\xff", middle)
        path.write_bytes(data[:at] + b"\0" * 64 + data[at + 64:])
    with pytest.raises(leat.DataError) as error:
        pack(folder, tmp_path, on_error=on_error)
    said = str(error.value)
    assert f"{path}: {'rows from 256: ' if kind == 'parquet' else 'record batch '}" in said and "\n" not in said, said


def test_same_bytes_after_an_interrupted_run(tmp_path):
    leat.pack(DATA / "mds", tmp_path / "whole.leat", sync=False)

    class Enough(Exception):
        pass

    def stop(done, *rest):
        if done:
            raise Enough
    try:
        leat.pack(DATA / "mds", tmp_path / "cut.leat", sync=False, progress=stop)
    except Enough:
        pass
    if not (tmp_path / "cut.leat").exists():
        leat.pack(DATA / "mds", tmp_path / "cut.leat", sync=False, resume=True)
    assert (tmp_path / "cut.leat").read_bytes() == (tmp_path / "whole.leat").read_bytes()


@pytest.fixture
def bucket(tmp_path, monkeypatch):
    """A server that answers s3:// requests with the files of a folder: ranges, HEAD, and lists of a prefix."""
    root = tmp_path / "bucket"
    root.mkdir()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            path, _, query = self.path.partition("?")
            name = urllib.parse.unquote(path).removeprefix("/b/")
            file = root / name
            headers, status, body = {"ETag": '"1"'}, 404, b"<Error><Code>NoSuchKey</Code></Error>"
            if "list-type=2" in query:
                prefix = urllib.parse.parse_qs(query).get("prefix", [""])[0]
                keys = [str(f.relative_to(root)) for f in root.rglob("*") if f.is_file()]
                below = sorted(k for k in keys if k.startswith(prefix))
                folders = sorted({prefix + k[len(prefix):].split("/")[0] + "/" for k in below if "/" in k[len(prefix):]})
                files = [k for k in below if "/" not in k[len(prefix):]] if "delimiter" in query else below
                body = ("<ListBucketResult><IsTruncated>false</IsTruncated>" +
                        "".join(f"<Contents><Key>{k}</Key><Size>{(root / k).stat().st_size}</Size><ETag>1</ETag></Contents>"
                                for k in files) +
                        "".join(f"<CommonPrefixes><Prefix>{k}</Prefix></CommonPrefixes>" for k in folders
                                if "delimiter" in query) + "</ListBucketResult>").encode()
                status = 200
            elif name and file.is_file():
                body, status = file.read_bytes(), 200
                if "Range" in self.headers:
                    first, last = self.headers["Range"].removeprefix("bytes=").split("-")
                    begin = int(first) if first else max(0, len(body) - int(last))
                    end = min(int(last), len(body) - 1) if first else len(body) - 1
                    headers["Content-Range"] = f"bytes {begin}-{end}/{len(body)}"
                    body, status = body[begin:end + 1], 206
            self.send_response(status)
            for key, value in headers.items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for key, value in {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}", "AWS_ACCESS_KEY_ID": "ID",
                       "AWS_SECRET_ACCESS_KEY": "S", "AWS_REGION": "us-east-1", "NO_PROXY": "127.0.0.1",
                       "LEAT_STAGE_DIR": str(tmp_path)}.items():
        monkeypatch.setenv(key, value)
    yield root
    server.shutdown()
    server.server_close()


def test_parquet_lmdb_and_coco_in_a_bucket(tmp_path, bucket):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet
    tables = []
    for k in range(2):
        table = pa.table({"image": [FILES[1 + 2 * k]] * 3, "label": [k, 2, 3], "caption": ["a", "b", "c"]})
        pyarrow.parquet.write_table(table, bucket / f"{k}.parquet")
        tables.append(f"s3://b/{k}.parquet")
    with pytest.warns(leat.AdviceWarning, match="copied to a temporary file"):
        got = pack(tables, tmp_path)
    assert [row.label for row in got] == [0, 2, 3, 1, 2, 3] and got[0].caption == "a"
    shutil.copytree(DATA / "caffe", bucket / "caffe")
    with pytest.warns(leat.AdviceWarning, match="data.mdb"):
        there = pack("s3://b/caffe", tmp_path)
    here = pack(DATA / "caffe", tmp_path)
    assert [row.label for row in there] == [row.label for row in here] and there.keys[2] == here.keys[2]
    (bucket / "images").mkdir()
    (bucket / "images/1.jpg").write_bytes(FILES[1])
    (bucket / "instances.json").write_text(json.dumps({
        "images": [{"id": 7, "file_name": "1.jpg"}], "categories": [{"id": 3, "name": "cat"}],
        "annotations": [{"id": 1, "image_id": 7, "category_id": 3, "bbox": [1, 2, 3, 4]}]}))
    got = pack("s3://b/instances.json", tmp_path)
    assert got[0].boxes.tolist() == [[1, 2, 4, 6]] and got[0].box_names == ["cat"]
    assert not [name for name in os.listdir(tmp_path) if name.startswith("tmp")]


def test_formats_behind_a_query(tmp_path, bucket):
    """Signed URLs: the name of the file ends before the query. Messages and warnings do not have it."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet
    server = os.environ["AWS_ENDPOINT_URL"].replace("http://", "http://me:PASSWORD@") + "/b/"
    pyarrow.parquet.write_table(pa.table({"image": [FILES[1]] * 3, "label": [0, 2, 3]}), bucket / "t.parquet")
    with pytest.warns(leat.AdviceWarning) as told:
        got = pack([f"{server}t.parquet?sig=SECRET1", f"{server}t.parquet?sig=SECRET2"], tmp_path)
    assert [row.label for row in got] == [0, 2, 3] * 2
    shutil.copy(DATA / "caffe/data.mdb", bucket / "data.mdb")
    with pytest.warns(leat.AdviceWarning) as more:
        assert len(pack(f"{server}data.mdb?sig=a/SECRET", tmp_path)) == len(pack(DATA / "caffe", tmp_path))
    for warning in [*told, *more]:
        assert "SECRET" not in str(warning.message) and "PASSWORD" not in str(warning.message)
    (bucket / "x y.jpg").write_bytes(FILES[1])
    (bucket / "instances.json").write_text(json.dumps({
        "images": [{"id": 7, "file_name": "x y.jpg"}], "categories": [{"id": 3, "name": "cat"}], "annotations": []}))
    assert pack(f"{server}instances.json?sig=a/SECRET", tmp_path).keys[0] == "x y.jpg"


def test_folders_with_the_suffix_of_a_file_in_a_bucket(tmp_path, bucket):
    """x.lmdb and x.parquet are folders, too; the path needs no "/" at its end."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet
    for place in (bucket, tmp_path):
        shutil.copytree(DATA / "caffe", place / "x.lmdb")
        (place / "t.parquet").mkdir()
        pyarrow.parquet.write_table(pa.table({"image": [FILES[1]] * 3, "label": [0, 2, 3]}), place / "t.parquet/0.parquet")
    for name in ("x.lmdb", "t.parquet"):
        here = pack(tmp_path / name, tmp_path)
        for path in (f"s3://b/{name}", f"s3://b/{name}/"):
            with pytest.warns(leat.AdviceWarning, match="copied to a temporary file"):
                assert pack(path, tmp_path).column("label").tolist() == here.column("label").tolist()
    with pytest.raises(leat.NotFoundError, match="none.parquet"):
        pack("s3://b/none.parquet", tmp_path)


def test_a_folder_of_parquet_files_in_a_bucket(tmp_path, bucket):
    """Recognised like a local one; the footers tell how many rows there are before they are copied."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet
    for place in (bucket / "tables", tmp_path / "tables"):
        place.mkdir()
        for k, rows in enumerate((4, 0, 3)):
            table = pa.table({"image": pa.array([FILES[k]] * rows, pa.binary()), "label": pa.array(range(rows), pa.int64())})
            pyarrow.parquet.write_table(table, place / f"part-{k}.parquet")
        (place / "_SUCCESS").write_bytes(b"")
    told = []
    for path in ("s3://b/tables", "s3://b/tables/"):
        with pytest.warns(leat.AdviceWarning, match="copied to a temporary file"):
            got = pack(path, tmp_path, progress=lambda *numbers: told.append(numbers))
        same(got, [{"image": FILES[0], "label": i} for i in range(4)] + [{"image": FILES[2], "label": i} for i in range(3)])
    assert told[-1][:2] == (7, 7)
    here = pack(tmp_path / "tables", tmp_path)
    assert [row.label for row in here] == [row.label for row in got]
    (bucket / "tables/part-2.parquet").write_bytes(b"PAR1 cut")
    with pytest.raises(leat.Error, match="part-2.parquet"):
        pack("s3://b/tables", tmp_path)


def test_what_a_bucket_cannot_have_is_one_line(tmp_path, bucket):
    for folder in ("Annotations", "JPEGImages"):
        (bucket / "voc" / folder).mkdir(parents=True)
        (bucket / "voc" / folder / "1").write_bytes(b"x")
    with pytest.raises(leat.UnsupportedError, match="Pascal VOC is read from local disks only"):
        pack("s3://b/voc", tmp_path)


def test_a_parquet_file_that_cannot_be_copied_is_one_line(tmp_path, bucket, monkeypatch):
    pytest.importorskip("pyarrow")
    with pytest.raises(leat.Error, match="nothing.parquet"):
        pack("s3://b/nothing.parquet", tmp_path)
    (bucket / "big.parquet").write_bytes(b"PAR1")
    small = os.statvfs(tmp_path)
    monkeypatch.setattr(os, "statvfs", lambda folder: type("S", (), {"f_bavail": 0, "f_frsize": small.f_frsize}))
    with pytest.raises(leat.LimitError, match="LEAT_STAGE_DIR"):  # exit code 3 of the command
        pack("s3://b/big.parquet", tmp_path)


def test_the_command_reads_them(tmp_path):
    def run(*args):
        return subprocess.run([sys.executable, "-m", "leat", *map(str, args)], capture_output=True, text=True)
    done = run("pack", DATA / "mds", "-o", tmp_path / "c.leat", "--images", "keep")
    assert done.returncode == 0, done.stderr
    assert len(leat.open(tmp_path / "c.leat")) == N
    done = run("pack", DATA / "lit", "-o", tmp_path / "d.leat", "--shuffle", "1")
    assert done.returncode == 2 and "only be read in order" in done.stderr
    (tmp_path / "bad.json").write_text("{}")
    done = run("pack", tmp_path / "bad.json", "-o", tmp_path / "e.leat")
    assert done.returncode == 4 and done.stderr.count("\n") == 1 and "not a COCO file" in done.stderr


def damaged(tmp_path, name, change):
    """A copy of a data set with one file changed."""
    folder = tmp_path / "copy"
    folder.mkdir()
    for file in (DATA / name).iterdir():
        (folder / file.name).write_bytes(change(file.name, file.read_bytes()))
    return folder


@pytest.mark.parametrize("name", ["mds", "lit", "caffe", "mds-zstd", "lit-zstd"])
def test_damage_is_an_error_with_a_name(name, tmp_path):
    folder = damaged(tmp_path, name, lambda n, d: d if n.endswith("json") else d[:len(d) // 2])
    with pytest.raises(leat.Error) as error:
        pack(folder, tmp_path)
    assert "copy" in str(error.value) or "chunk" in str(error.value)


def test_webdataset_and_back(tmp_path):
    with leat.Writer(tmp_path / "p.leat", {"image": "image", "label": int, "txt": str, "score": float, "json": dict,
                                           "boxes": ("float32", (None, 4)), "raw": bytes}, sync=False) as w:
        for i in range(N):
            w.append({"image": FILES[i], "label": i, "txt": f"t{i}", "score": i / 4, "json": {"i": i},
                      "boxes": np.full((i, 4), i, np.float32), "raw": b"%d" % i}, key=f"a.b/{i}.x.jpg")
    stats = leat.export(tmp_path / "p.leat", tmp_path / "shards", to="webdataset", shard_bytes="1M")
    assert stats["samples"] == N
    with tarfile.open(tmp_path / "shards" / "00000.tar") as tar:
        names = tar.getnames()
        assert names[:7] == [f"a.b/0_x.{e}" for e in ("jpg", "cls", "txt", "score.txt", "json", "boxes.npy", "raw")]
        boxes = np.load(io.BytesIO(tar.extractfile("a.b/3_x.boxes.npy").read()))
        np.testing.assert_array_equal(boxes, np.full((3, 4), 3, np.float32))
    got = pack(tmp_path / "shards" / "00000.tar", tmp_path)
    same(got, [{"image": FILES[i], "label": i, "txt": f"t{i}", "score.txt": str(i / 4 if i % 4 else i // 4),
                "json": {"i": i}, "raw": b"%d" % i} for i in range(N)])


def test_fields_with_names_of_member_kinds_can_be_packed_again(tmp_path):
    fields = {"image": "image", "png": "image", "label": int, "cls": int, "jpg": bytes, "txt": str, "json": dict, "text": bytes,
              "mask.png": bytes, "JPEG": "image", "x.cls": int}
    names = ["jpg", "png.jpg", "cls", "cls.cls", "jpg.bin", "txt", "json", "text.bin", "mask.png.bin", "JPEG.jpg", "x.cls"]
    with leat.Writer(tmp_path / "p.leat", fields, sync=False) as w:
        w.append({"image": FILES[0], "png": FILES[1], "label": 1, "cls": 2, "jpg": b"j", "txt": "t", "json": {"a": 1}, "text": b"\xff",
                  "mask.png": b"m", "JPEG": FILES[2], "x.cls": 3}, key="s0")
    leat.export(tmp_path / "p.leat", tmp_path / "shards", to="webdataset")
    with tarfile.open(tmp_path / "shards" / "00000.tar") as tar:
        assert tar.getnames() == [f"s0.{name}" for name in names]
    same(pack(tmp_path / "shards" / "00000.tar", tmp_path),
         [{"image": FILES[0], "label": 1, "cls.cls": 2, "jpg.bin": b"j", "txt": "t", "json": {"a": 1}, "text.bin": b"\xff",
           "mask.png.bin": b"m", "x.cls": 3}])
    assert [leat.open(tmp_path / "out.leat")[0][name].file() for name in ("png.jpg", "jpeg.jpg")] == FILES[1:3]


def test_bytes_called_image_or_label_stay_bytes_in_tar_shards(tmp_path):
    with leat.Writer(tmp_path / "p.leat", {"photo": "image", "image": bytes, "label": bytes}, sync=False) as w:
        w.append({"photo": FILES[0], "image": b"i", "label": b"l"}, key="s0")
    leat.export(tmp_path / "p.leat", tmp_path / "shards", to="webdataset")
    same(pack(tmp_path / "shards" / "00000.tar", tmp_path), [{"image": FILES[0], "image.bin": b"i", "label.bin": b"l"}])


def test_parquet_and_back(tmp_path):
    pytest.importorskip("pyarrow")
    with leat.Writer(tmp_path / "p.leat", {"image": "image", "label": int, "boxes": ("float32", (None, 4)),
                                           "note": str}, sync=False) as w:
        for i in range(N):
            w.append({"image": FILES[i], "label": i, "boxes": np.full((i, 4), i, np.float32),
                      "note": None if i == 1 else "n"}, key=f"k{i}")
    stats = leat.export(tmp_path / "p.leat", tmp_path / "table", to="parquet")
    assert (stats["samples"], stats["files"]) == (N, 1)
    with pytest.raises(leat.Error, match="already exists"):
        leat.export(tmp_path / "p.leat", tmp_path / "table", to="parquet")
    back = pack(tmp_path / "table" / "00000.parquet", tmp_path)
    same(back, [{"image": FILES[i], "label": i, "note": None if i == 1 else "n"} for i in range(N)])
    assert list(back.keys) == [f"k{i}" for i in range(N)]
    assert [f.name for f in back.fields] == ["image", "label", "boxes", "note"]
    some = pack(tmp_path / "table" / "00000.parquet", tmp_path, members=["label"])
    assert list(some.keys) == list(back.keys) and [f.name for f in some.fields] == ["label"]


DTYPES = ("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "bfloat16", "float32", "float64")


def of_dtype(dtype, shape):
    """An array with the limits of its type."""
    kind = np.dtype("float32" if dtype == "bfloat16" else dtype)
    ends = [0, 1] if kind.kind == "b" else [np.iinfo(kind).min, np.iinfo(kind).max] if kind.kind in "iu" else [np.nan, -np.inf, 1.5, -0.0]
    return np.resize(np.array(ends, kind), shape)


def every_field():
    """Fields of all types, with a function that makes the values of sample i."""
    fields = {"i": int, "f": float, "t": str, "b": bytes, "j": "json", "photo": "image", "png": "image", "target": int, "key": int,
              "thumb": bytes, "gone": ("int16", (2,)), "none": ("float32", (3, 0, 2))}
    makers = {"i": lambda i: (1 << 63) - 1 - i, "f": lambda i: float("nan") if i == 2 else i / 7, "t": lambda i: f"ä\0{i}",
              "b": lambda i: bytes(i << 19), "j": lambda i: {"b": [i, None, 1.0, "ä"], "a": {}}, "photo": lambda i: FILES[i],
              "png": lambda i: FILES[-1 - i], "target": int, "key": lambda i: -i, "thumb": lambda i: FILES[i],
              "gone": lambda i: None, "none": lambda i: np.zeros((3, 0, 2), np.float32)}
    for dtype in DTYPES:
        for shape in ((), (4,), (3, 2), (2, 3, 2)):
            name = "_".join(map(str, (dtype, *shape)))
            fields[name] = (dtype, shape)
            makers[name] = lambda i, dtype=dtype, shape=shape: of_dtype(dtype, shape)
        for shape in ((None,), (None, 4), (None, None), (2, None, 3)):
            name = "_".join(map(str, (dtype, *shape)))
            fields[name] = (dtype, shape)
            makers[name] = lambda i, dtype=dtype, shape=shape: of_dtype(dtype, tuple(i if n is None else n for n in shape))
    fields["empties"] = ("float32", (None, None, None))
    makers["empties"] = lambda i: np.zeros([(0, 4, 2), (0, 4, 2), (2, 0, 5), (1, 2, 0), (0, 1, 1)][i], np.float32)

    def values(i):
        made = {name: make(i) for name, make in makers.items()}
        return {name: None if i == 1 and fields[name] not in (int, float) else value for name, value in made.items()}
    return fields, values


def exactly(got, wanted):
    """Fields, keys and values, bit by bit."""
    assert got.fields == wanted.fields and list(got.keys) == list(wanted.keys)
    assert [got.classes(f.name) for f in got.fields] == [wanted.classes(f.name) for f in wanted.fields]
    for i, row in enumerate(wanted):
        for name, value in row.items():
            found = got[i][name]
            if isinstance(value, np.ndarray):
                assert (found.shape, found.dtype, found.tobytes()) == (value.shape, value.dtype, value.tobytes()), name
            elif isinstance(value, leat.Image):
                assert found.file() == value.file()
            else:
                assert repr(found) == repr(value), (i, name)  # the order of JSON objects, NaN


def test_every_field_comes_back_from_parquet(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    fields, values = every_field()
    classes = {"target": [f"t{i}" for i in range(N)], "label": ["a", "b"]}
    with leat.Writer(tmp_path / "p.leat", {**fields, "label": int}, classes=classes, sync=False) as w:
        for i in range(N):
            w.append({**values(i), "label": i % 2}, key=f"k{i}")
    for size, files in (("1G", 1), ("1M", 3)):
        assert leat.export(tmp_path / "p.leat", tmp_path / "table", to="parquet", force=True, shard_bytes=size)["files"] == files
        pack(tmp_path / "table", tmp_path)
        exactly(leat.open(tmp_path / "out.leat"), leat.open(tmp_path / "p.leat"))
    table = pq.read_table(tmp_path / "table")
    assert table.schema.names[0] == "sample_key" and table["sample_key"].to_pylist() == [f"k{i}" for i in range(N)]
    assert table["key"].to_pylist() == [-i for i in range(N)]
    some = pack(tmp_path / "table", tmp_path, members=["empties", "photo"])
    assert [f.name for f in some.fields] == ["empties", "photo"] and [s["empties"].shape for s in some if s["empties"] is not None][0] == (0, 4, 2)


@pytest.mark.parametrize("name", ["mds", "lit"])
def test_arrays_of_other_formats_come_back_from_parquet(name, tmp_path):
    pytest.importorskip("pyarrow")
    leat.pack(DATA / name, tmp_path / "p.leat", images="keep", sync=False)
    leat.export(tmp_path / "p.leat", tmp_path / "table", to="parquet")
    exactly(pack(tmp_path / "table", tmp_path), leat.open(tmp_path / "p.leat"))


def test_columns_of_an_export_that_were_changed(tmp_path):
    """A column of another type than the recorded one is packed as in tables of others; arrays need no record."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq
    with leat.Writer(tmp_path / "p.leat", {"a": ("float32", (3, 2)), "v": ("float32", (2, 3, 2)), "j": "json"}, sync=False) as w:
        w.append({"a": np.ones((3, 2)), "v": np.ones((2, 3, 2)), "j": [1]}, key="k")
    leat.export(tmp_path / "p.leat", tmp_path / "table", to="parquet")
    table = pq.read_table(tmp_path / "table" / "00000.parquet")
    changed = table.set_column(3, "j", pa.array([7])).append_column("new", pa.array(["x"]))
    pq.write_table(changed, tmp_path / "changed.parquet")
    got = pack(tmp_path / "changed.parquet", tmp_path)
    same(got, [{"a": np.ones((3, 2), np.float32), "j": 7, "new": "x"}])
    stream(tmp_path / "t.arrow", table.replace_schema_metadata(None))  # as the files of save_to_disk
    got = pack(tmp_path / "t.arrow", tmp_path)
    same(got, [{"key": "k", "a": np.ones((3, 2), np.float32), "v": np.ones((2, 3, 2), np.float32), "j": "[1]"}])
    for wrong in (b"", b"[]", b'{"key": "key", "fields": {"a": 7}}', b'{"key": "key", "fields": {"a": ["no", [null]]}}'):
        stream(tmp_path / "t.arrow", table.replace_schema_metadata({"leat.pack": wrong}))
        same(pack(tmp_path / "t.arrow", tmp_path), [{"key": "k", "j": "[1]"}])


def test_parquet_keeps_class_names(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "photos").mkdir()
    for name in ("cat", "dog", "horse"):
        (tmp_path / "photos" / name).mkdir()
        (tmp_path / "photos" / name / "a.jpg").write_bytes(FILES[0])
    leat.pack(tmp_path / "photos", tmp_path / "p.leat", sync=False)
    leat.export(tmp_path / "p.leat", tmp_path / "table", to="parquet")
    leat.export(tmp_path / "p.leat", tmp_path / "table", to="parquet", force=True)  # still known as leat's
    features = json.loads(pq.read_schema(tmp_path / "table" / "00000.parquet").metadata[b"huggingface"])["info"]["features"]
    assert features == {"image": {"_type": "Image"},
                        "label": {"names": ["cat", "dog", "horse"], "_type": "ClassLabel"}}
    back = pack(tmp_path / "table" / "00000.parquet", tmp_path)
    assert back.classes() == ["cat", "dog", "horse"] and list(back.column("label")) == [0, 1, 2]
    assert list(back.keys) == ["cat/a.jpg", "dog/a.jpg", "horse/a.jpg"]
    with pytest.warns(leat.AdviceWarning, match="tar shards have no class names: 1 field has only"):
        stats = leat.export(tmp_path / "p.leat", tmp_path / "tars", to="webdataset")
    assert stats["unnamed"] == 1 and "classes" not in str(pack(tmp_path / "tars" / "00000.tar", tmp_path).fields)


@pytest.mark.parametrize("to, end", [("webdataset", "tar"), ("parquet", "parquet")])
def test_shards_of_a_longer_run_are_removed(tmp_path, to, end):
    pytest.importorskip("pyarrow")
    source, folder = many(tmp_path / "p.leat"), tmp_path / "out"
    stats = leat.export(source, folder, to=to, shard_bytes="64K")
    there = len(list(folder.iterdir()))
    assert stats["files"] == there > 2 and stats["members"] == (0 if to == "parquet" else 2000)
    foreign = [f"1.{end}", f"000003.{end}", f"90000.{end}"]  # names that follow no shard of that run
    for name in foreign:
        (folder / name).write_bytes((folder / f"00001.{end}").read_bytes())
    stats = leat.export(source, folder, to=to, force=True)
    assert (stats["samples"], stats["removed"], stats["stayed"]) == (2000, there - 1, 2)
    assert sorted(p.name for p in folder.iterdir()) == sorted([f"00000.{end}", *foreign])


@pytest.mark.parametrize("to, end", [("webdataset", "tar"), ("parquet", "parquet")])
def test_only_shards_of_leat_are_replaced(tmp_path, to, end):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    source, folder = many(tmp_path / "p.leat"), tmp_path / "out"
    mine = tmp_path / f"mine.{end}"
    if to == "parquet":
        pq.write_table(pa.table({"leat": ["export"]}), mine)
    else:
        with tarfile.open(mine, "w", format=tarfile.USTAR_FORMAT) as tar:
            tar.add(source, "a.leat")
    whole = mine.read_bytes()
    count = leat.export(source, folder, to=to, shard_bytes="64K")["files"]
    for later in (count, count + 1):
        (folder / f"{later:05d}.{end}").write_bytes(whole)
    (folder / f"{count + 2:05d}.{end}").write_bytes((folder / f"00000.{end}").read_bytes())  # of leat
    stats = leat.export(source, folder, to=to, shard_bytes="64K", force=True)
    assert (stats["files"], stats["removed"], stats["stayed"]) == (count, 1, 2)
    for place in (1, 0):  # found when the second one begins, and before the first
        (folder / f"{place:05d}.{end}").write_bytes(whole)
        there = {p.name: p.read_bytes() for p in folder.iterdir()}
        with pytest.raises(leat.ArgumentError, match=f"{place:05d}.{end}: is not an unchanged shard of leat export.*move it away"):
            leat.export(source, folder, to=to, shard_bytes="64K", force=True)
        assert {p.name: p.read_bytes() for p in folder.iterdir()} == there


def test_a_shard_that_was_extended_is_kept(tmp_path):
    """Members that were added to a tar shard of leat are not lost."""
    with leat.Writer(tmp_path / "p.leat", {"image": "image"}, sync=False) as w:
        w.append({"image": FILES[0]}, key="k")
    leat.export(tmp_path / "p.leat", tmp_path / "s", to="webdataset")
    shard = tmp_path / "s" / "00000.tar"
    leat.export(tmp_path / "p.leat", tmp_path / "s", to="webdataset", force=True)
    with tarfile.open(shard, "a") as tar:
        tar.add(tmp_path / "p.leat", "mine.leat")
    before = shard.read_bytes()
    with pytest.raises(leat.ArgumentError, match="00000.tar: is not an unchanged shard of leat export"):
        leat.export(tmp_path / "p.leat", tmp_path / "s", to="webdataset", force=True)
    assert shard.read_bytes() == before


def test_odd_paths_of_tables_are_those_of_shards(tmp_path):
    """The same lines and the same classes of errors, and the same names that work."""
    pytest.importorskip("pyarrow")
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    for end in ("tar", "parquet"):
        (tmp_path / "taken" / f"00000.{end}").mkdir(parents=True)
    with leat.Writer(tmp_path / "p.leat", {"image": "image"}, sync=False) as w:
        w.append({"image": FILES[0]}, key="k")

    def failed(to, folder, pack="p.leat", **more):
        try:
            return leat.export(tmp_path / pack, tmp_path / folder, to=to, **more)["files"]
        except leat.Error as error:
            return type(error), error.code, str(error).replace(".parquet", ".tar")

    for case in (("file",), ("file/sub",), ("taken",), ("empty", "none.leat"), ("empty", "file"), ("made/by/it",), ("file:x",), ("a\nb",)):
        assert failed("parquet", *case) == failed("webdataset", *case), case
    for more in ({"keys": tmp_path / "none"}, {"keys": tmp_path / "empty"}):
        assert failed("parquet", "empty", **more) == failed("webdataset", "empty", **more)
    assert failed("parquet", "taken", force=True) == failed("webdataset", "taken", force=True)
    assert failed("parquet", "taken")[1:] == ("LEAT_EINVAL", f"{tmp_path}/taken/00000.tar: is a folder, not a file")
    assert failed("parquet", "new", "none.leat")[1] == "LEAT_ENOENT" and not (tmp_path / "new").exists()
    leat.export(tmp_path / "p.leat", os.fsencode(tmp_path) + b"/\xff", to="parquet")
    assert os.listdir(os.fsencode(tmp_path) + b"/\xff") == [b"00000.parquet"]
    with leat.Writer(tmp_path / "odd.leat", {"image": "image"}, sync=False) as w:
        w.append({"image": FILES[0]}, key="k\udcff")
    with pytest.raises(leat.DataError, match="sample 0: its key 'k.udcff' is not UTF-8"):
        leat.export(tmp_path / "odd.leat", tmp_path / "odd", to="parquet")


@pytest.mark.parametrize("field", ["image", "array", "bytes"])
def test_a_table_ends_at_the_size(tmp_path, field):
    """Also with fewer rows than a row group usually has."""
    pq = pytest.importorskip("pyarrow.parquet")
    value = {"image": FILES[0], "array": np.arange(1000, dtype=np.float32), "bytes": os.urandom(4000)}[field]
    with leat.Writer(tmp_path / "p.leat", {"x": {"image": "image", "array": ("float32", (1000,)), "bytes": bytes}[field]}, sync=False) as w:
        for i in range(60):
            w.append({"x": value}, key=f"{i:02d}")
    one = len(value) if field != "array" else value.nbytes
    stats = leat.export(tmp_path / "p.leat", tmp_path / "out", to="parquet", shard_bytes=10 * one)
    rows = [pq.read_metadata(path).num_rows for path in sorted((tmp_path / "out").iterdir())]
    assert rows == [10] * 6 and stats["files"] == 6


def test_tables_are_replaced_together(tmp_path):
    pytest.importorskip("pyarrow")
    source, folder, keys = many(tmp_path / "p.leat"), tmp_path / "out", [str(i) for i in range(1500)]
    leat.export(source, folder, to="parquet", shard_bytes="64K", keys=keys)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    (folder / "00090.parquet.partial").touch()  # not the name of the next file
    with pytest.raises(leat.DataError, match="there is no sample 'none'"):
        leat.export(source, folder, to="parquet", shard_bytes="64K", keys=[*keys[700:], "none"], force=True)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {**before, "00090.parquet.partial": b""}
    (folder / f"{len(before):05d}.parquet.partial").touch()  # of a killed run
    stats = leat.export(source, folder, to="parquet", shard_bytes="64K", keys=[*keys[::-1][:-1], "1999"], force=True)
    after = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix == ".parquet"}
    assert stats["files"] == len(after) and before["00000.parquet"] != after["00000.parquet"]
    assert [path.name for path in folder.iterdir() if path.suffix == ".partial"] == ["00090.parquet.partial"]


def many(path):
    """A pack of 2,000 images."""
    with leat.Writer(path, {"image": "image"}, sync=False) as w:
        for i in range(2000):
            w.append({"image": FILES[i % N]}, key=f"{i}")
    return path


def test_a_parquet_export_can_be_stopped(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    from leat import _formats_arrow
    cell, seen = _formats_arrow._cell, []
    monkeypatch.setattr(_formats_arrow, "_cell", lambda *args: time.sleep(0.002) or cell(*args))

    def stop(done, total, size, failed):
        seen.append((done, total))
        if done > 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        leat.export(many(tmp_path / "p.leat"), tmp_path / "table", to="parquet", progress=stop)
    assert 0 < seen[-1][0] < 2000 and seen[-1][1] == 2000
    assert list((tmp_path / "table").iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_a_parquet_export(tmp_path, number):
    pytest.importorskip("pyarrow")
    folder = tmp_path / "table"
    command = [sys.executable, "-m", "leat", "export", str(many(tmp_path / "p.leat")), "-o", str(folder), "--to", "parquet"]
    run = subprocess.Popen(command, env=dict(os.environ, LEAT_IO_INJECT="path=p.leat,delay=10ms"), text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while run.poll() is None and not (folder / "00000.parquet.partial").exists():
        time.sleep(0.01)
    run.send_signal(number)
    out, err = run.communicate(timeout=60)
    assert out == ""
    if number != signal.SIGKILL:
        assert run.returncode == 128 + number
        assert err == f"stopped by a signal; written to {folder}: 0 samples, 0 files\n"
        assert list(folder.iterdir()) == []
        return
    assert [path.name for path in folder.iterdir()] == ["00000.parquet.partial"]
    assert subprocess.run(command, stdout=subprocess.DEVNULL).returncode == 0
    assert [path.name for path in folder.iterdir()] == ["00000.parquet"]


def test_a_parquet_export_to_a_full_disk_leaves_complete_files(tmp_path):
    pytest.importorskip("pyarrow")
    many(tmp_path / "p.leat")
    done = subprocess.run([sys.executable, "-m", "leat", "export", str(tmp_path / "p.leat"), "-o", str(tmp_path / "table"),
                           "--to", "parquet"], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (16384, resource.RLIM_INFINITY)))
    assert done.returncode == 4
    assert done.stderr == f"leat export: {tmp_path}/table/00000.parquet: cannot write: File too large\n"
    assert list((tmp_path / "table").iterdir()) == []


def test_a_folder_that_may_not_be_read_is_named(tmp_path, monkeypatch):
    def refuse(path):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(os, "listdir", refuse)
    with pytest.raises(leat.StorageError) as error:
        leat.pack(tmp_path, tmp_path / "out.leat", sync=False)
    assert str(error.value) == f"{tmp_path}: cannot open: Permission denied"


def odd_coco(tmp_path, change):
    """A COCO file of five images, changed; its second image has one annotation."""
    for i in range(N):
        (tmp_path / f"{i}.jpg").write_bytes(FILES[i])
    data = {"images": [{"id": i, "file_name": f"{i}.jpg"} for i in range(N)],
            "annotations": [{"id": 9, "image_id": 1, "category_id": 4, "bbox": [1, 2, 3, 4]}],
            "categories": [{"id": 4, "name": "cat"}]}
    change(data)
    (tmp_path / "odd.json").write_text(json.dumps(data))
    return tmp_path / "odd.json"


@pytest.mark.parametrize(("change", "words"), [
    (lambda d: d["annotations"][0].pop("bbox"), "image 1.jpg: annotation 9: its bbox is None, not 4 numbers"),
    (lambda d: d["annotations"][0].update(bbox=[1, 2, "x", 4]), "not 4 numbers"),
    (lambda d: d["annotations"][0].update(bbox=[1, 2, -3, 4]), "negative size"),
    (lambda d: d["annotations"][0].update(category_id=5), "its category_id 5 is not in categories"),
    (lambda d: d["annotations"][0].update(category_id=None), "its category_id None is not in categories")])
def test_odd_annotations_of_coco_are_one_sample_left_out(tmp_path, change, words):
    path = odd_coco(tmp_path, change)
    with pytest.raises(leat.DataError, match=words) as error:
        pack(path, tmp_path)
    assert "odd.json" in str(error.value) and "\n" not in str(error.value)
    got = pack(path, tmp_path, on_error="skip", report=tmp_path / "report")
    assert list(got.keys) == ["0.jpg", "2.jpg", "3.jpg", "4.jpg"]
    assert json.loads((tmp_path / "report").read_text())["key"] == "1.jpg"


@pytest.mark.parametrize(("change", "words"), [
    (lambda d: d["images"][2].pop("file_name"), r"images\[2\] has no file_name"),
    (lambda d: d["images"].append(3), r"images\[5\] has no id"),
    (lambda d: d.update(categories={}), r"categories\[0\] has no id"),
    (lambda d: d["annotations"][0].update(image_id=77), "annotations of an image that is not listed: image_id 77"),
    (lambda d: d["annotations"][0].pop("image_id"), r"annotations\[0\] has no image_id"),
    (lambda d: d.pop("images"), "not a COCO file")])
def test_odd_coco_files_say_what_is_wrong(tmp_path, change, words):
    with pytest.raises(leat.DataError, match=words) as error:
        pack(odd_coco(tmp_path, change), tmp_path)
    assert "odd.json" in str(error.value) and "\n" not in str(error.value)


def test_coco_without_annotations(tmp_path):
    got = pack(odd_coco(tmp_path, lambda d: d.pop("annotations")), tmp_path)
    assert len(got) == N and got[1]["boxes"].shape == (0, 4)


@pytest.mark.parametrize("xml", ["", "<annotation><object>", "<a><object><name>cat</name></object></a>",
                                 "<a><object><name>cat</name><bndbox><xmin>1</xmin><ymin>x</ymin></bndbox></object></a>",
                                 "<a><object><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>2</xmax><ymax>nan</ymax></bndbox></object></a>"])
def test_odd_voc_files_are_one_sample_left_out(tmp_path, xml):
    folder = tmp_path / "voc"
    for name in ("Annotations", "JPEGImages"):
        (folder / name).mkdir(parents=True)
    for i in range(3):
        (folder / "JPEGImages" / f"{i}.jpg").write_bytes(FILES[i])
        (folder / "Annotations" / f"{i}.xml").write_text("<a><object><name>dog</name><bndbox><xmin>1</xmin><ymin>1</ymin>"
                                                        "<xmax>5</xmax><ymax>6</ymax></bndbox></object></a>")
    (folder / "Annotations" / "1.xml").write_text(xml)
    with pytest.raises(leat.DataError, match="1.xml") as error:
        pack(folder, tmp_path)
    assert "\n" not in str(error.value)
    assert list(pack(folder, tmp_path, on_error="skip").keys) == ["0.jpg", "2.jpg"]


def cuts(size):
    return sorted({0, 1, 7, 12, 25, size // 3, size // 2, size - 30, size - 1} & set(range(size)))


def test_truncated_files_are_one_line_with_a_name(tmp_path):
    samples = [{"jpeg": FILES[i], "label": i, "score": 0.0, "raw": b"", "meta": {}, "vec": np.zeros(3, np.float32)}
               for i in range(N)]
    beton(tmp_path / "a.beton", samples)
    sources = [(tmp_path / "a.beton", tmp_path / "a.beton")]
    for name in ("mds", "mds-zstd", "lit", "lit-zstd", "caffe"):
        sources += [(DATA / name, file) for file in sorted((DATA / name).iterdir()) if file.name != "lock.mdb"]
    for source, file in sources:
        whole = file.read_bytes()
        for size in cuts(len(whole)):
            if source.is_file():
                to = tmp_path / "x.beton"
                to.write_bytes(whole[:size])
            else:
                to = tmp_path / "x"
                to.mkdir(exist_ok=True)
                for other in to.iterdir():
                    other.unlink()
                for other in source.iterdir():
                    (to / other.name).write_bytes(whole[:size] if other == file else other.read_bytes())
            try:
                pack(to, tmp_path)
            except leat.Error as error:
                said = str(error)
                assert "\n" not in said and len(said) < 400 and ("x" in said or "sample" in said), (file.name, size, said)
                assert "unpack" not in said or str(to) in said, said


@pytest.mark.parametrize("name", ["../secret.mds", "/secret.mds", "a/../../secret.mds", "s3://bucket/secret.mds"])
def test_an_index_names_no_files_outside_its_folder(name):
    from leat._formats import _below
    with pytest.raises(leat.DataError, match="not below its folder"):
        _below("data", name)
    assert _below("data", "0/shard.00000.mds") == "data/0/shard.00000.mds"
