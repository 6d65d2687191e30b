# SPDX-License-Identifier: Apache-2.0
"""leat.pack and leat.export."""

import io
import os
import signal
import tarfile
import time

import numpy as np
import pytest

import leat
from conftest import pixels


@pytest.fixture
def folder(tmp_path, images):
    root = tmp_path / "photos"
    for i, data in enumerate(images[:40]):
        path = root / ("cat" if i % 2 else "dog") / f"{i:03d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root


@pytest.mark.parametrize("mode", ["keep", "tiled", "raw"])
def test_folders(folder, tmp_path, mode):
    out = tmp_path / "out.leat"
    stats = leat.pack(folder, out, images=mode, threads=2, sync=False)
    assert stats["samples"] == 40 and stats["skipped"] == 0 and stats["bytes_out"] == out.stat().st_size
    ds = leat.open(out)
    assert ds.classes("label") == ["cat", "dog"]
    for s in ds:
        source = (folder / s.key).read_bytes()
        np.testing.assert_array_equal(np.asarray(s["image"]), pixels(source))
        assert s["image"].cost_us > 0
        if mode != "raw":
            assert s["image"].file() == source
        assert ds.classes("label")[s["label"]] == s.key.split("/")[0]


def test_export_gives_the_files_back(folder, tmp_path):
    out = tmp_path / "out.leat"
    leat.pack(folder, out, sync=False)
    stats = leat.export(out, tmp_path / "back")
    assert stats["files"] == 40 and stats["changed"] == 0
    for path in folder.rglob("*.jpg"):
        assert (tmp_path / "back" / path.relative_to(folder)).read_bytes() == path.read_bytes()
    assert leat.export(out, tmp_path / "two", keys=["dog/000.jpg", "cat/003.jpg"])["files"] == 2


def test_a_written_pack_is_a_source(plain, tmp_path):
    out = tmp_path / "tiled.leat"
    stats = leat.pack(plain, out, images="tiled", sync=False)
    assert stats["samples"] == 101
    a, b = leat.open(plain), leat.open(out)
    assert {s["image"].codec for s in b} == {"tiled"}
    np.testing.assert_array_equal(np.asarray(a[7]["image"]), np.asarray(b[7]["image"]))
    for as_pack in (plain, out):
        with leat.Loader(as_pack, 101, "Resize((20, 20))", order="sequential", as_="numpy") as loader:
            batch = next(iter(loader))
        if as_pack is plain:
            expected = batch.image
    np.testing.assert_array_equal(batch.image, expected)


def test_tar_shards_and_progress(tmp_path, images):
    shard = tmp_path / "shard.tar"
    with tarfile.open(shard, "w") as tar:
        for i, data in enumerate(images[:20]):
            for name, content in ((f"{i:03d}.jpg", data), (f"{i:03d}.cls", str(i % 5).encode())):
                info = tarfile.TarInfo(name)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    calls = []
    stats = leat.pack([shard], tmp_path / "out.leat", sync=False, progress=lambda *a: calls.append(a))
    assert stats["samples"] == 20 and stats["source_kind"]
    assert calls and calls[-1][0] <= 20 and all(len(call) == 4 for call in calls)


def test_damaged_files(folder, tmp_path):
    (folder / "cat" / "001.jpg").write_bytes(b"\xff\xd8\xff\xe0 cut short")
    with pytest.raises(leat.Error) as e:
        leat.pack(folder, tmp_path / "out.leat", sync=False)
    assert "cat/001.jpg" in str(e.value) and e.value.key == "cat/001.jpg"
    report = tmp_path / "left.jsonl"
    stats = leat.pack(folder, tmp_path / "skip.leat", on_error="skip", report=report, sync=False)
    assert (stats["samples"], stats["skipped"]) == (39, 1) and "cat/001.jpg" in report.read_text()


def test_an_exception_in_progress_cancels(folder, tmp_path):
    class Enough(Exception):
        pass

    def stop(*_):
        raise Enough

    with pytest.raises(Enough):
        leat.pack(folder, tmp_path / "out.leat", images="tiled", threads=1, progress=stop)


def test_a_resumed_run_counts_all_filtered_samples(folder, tmp_path):
    data = next(folder.rglob("*.jpg")).read_bytes()
    for i in range(900):
        (folder / "dog" / f"more{i}.jpg").write_bytes(data)
    more = {"where": "label == 1", "images": "keep", "page_bytes": "64K", "threads": 1, "resume": True, "sync": False}
    whole = leat.pack(folder, tmp_path / "whole.leat", **more)
    assert whole["filtered"] == 20
    last = folder / "dog" / "more899.jpg"
    last.write_bytes(b"junk")
    with pytest.raises(leat.Error, match="more899"):
        leat.pack(folder, tmp_path / "out.leat", **more)
    last.write_bytes(data)
    done = leat.pack(folder, tmp_path / "out.leat", **more)
    assert done["resumed"] > 0 and all(done[name] == whole[name] for name in ("samples", "filtered", "skipped"))


@pytest.mark.parametrize("options", [{"images": "webp"}, {"on_error": "replace"}, {"memory": "x"}])
def test_wrong_options(folder, tmp_path, options):
    with pytest.raises(ValueError):
        leat.pack(folder, tmp_path / "out.leat", **options)


@pytest.mark.parametrize("options", [{"threads": -1}, {"memory": -5}, {"max_side": 1.5}, {"quality": "90"},
                                     {"shard_bytes": -1}, {"shuffle": -1}])
def test_wrong_numbers_are_refused(tmp_path, options):
    with pytest.raises(leat.ArgumentError, match=next(iter(options))):
        leat.pack(tmp_path, tmp_path / "x.leat", **options)


def test_what_the_command_refuses_is_refused(plain, tmp_path):
    with pytest.raises(leat.ArgumentError, match="max_side: 1000000 is above 65500"):
        leat.pack(plain, tmp_path / "p.leat", max_side=1_000_000)
    with pytest.raises(leat.ArgumentError, match="shard_bytes has no effect: to folder writes a file per image"):
        leat.export(plain, tmp_path / "out", shard_bytes="5M")
    for share in (-1, 0, 1.5):
        with pytest.raises(leat.ArgumentError, match="is .*, not above 0 and up to 1"):
            leat.split(plain, {"a": share})
    assert not (tmp_path / "out").exists()


def test_stray_files_and_empty_folders(tmp_path, images):
    folder = tmp_path / "photos" / "a"
    folder.mkdir(parents=True)
    with pytest.raises(leat.DataError, match="nothing to pack"):
        leat.pack(tmp_path / "photos", tmp_path / "p.leat", sync=False)
    (folder / "README.txt").write_text("hello")
    (folder / "1.jpg").write_bytes(images[0])
    stats = leat.pack(tmp_path / "photos", tmp_path / "p.leat", sync=False)
    assert stats["samples"] == 1 and stats["ignored"] == 1
    with pytest.raises(leat.FormatError, match="README.txt"):
        leat.pack(tmp_path / "photos", tmp_path / "s.leat", sync=False, strict=True)


def test_a_tar_of_class_folders_has_no_labels(tmp_path):
    import tarfile

    from PIL import Image as pillow

    with tarfile.open(tmp_path / "photos.tar", "w") as tar:
        for name in ("cat/a.png", "dog/b.png"):
            pillow.new("RGB", (8, 8)).save(tmp_path / "p.png")
            tar.add(tmp_path / "p.png", "photos/" + name)
    with pytest.warns(leat.AdviceWarning, match="labels are not taken from them: unpack the tar and pack the folder"):
        assert leat.pack(tmp_path / "photos.tar", tmp_path / "p.leat")["in_folders"] == 2


def test_images_beside_class_folders_are_said(tmp_path):
    from PIL import Image as pillow

    (tmp_path / "photos" / "cat").mkdir(parents=True)
    for name in ("cat/a.png", "b.png"):
        pillow.new("RGB", (8, 8)).save(tmp_path / "photos" / name)
    with pytest.warns(leat.AdviceWarning, match="1 image of .* is in no class folder: the label is -1"):
        stats = leat.pack(tmp_path / "photos", tmp_path / "p.leat")
    assert stats["unlabelled"] == 1 and leat.open(tmp_path / "p.leat").column("label").tolist() == [-1, 0]


def test_class_names_with_blanks_at_their_ends_are_said(tmp_path):
    from PIL import Image as pillow

    pillow.new("RGB", (8, 8)).save(tmp_path / "a.png")
    (tmp_path / "list.csv").write_text("path, label,\tcount \na.png,cat, 2\na.png, cat,\t3 \n")
    with pytest.warns(leat.AdviceWarning, match="1 label begins or ends with a blank, the first in line 3"):
        stats = leat.pack(tmp_path / "list.csv", tmp_path / "p.leat")
    assert (stats["blank_labels"], stats["blank_label_line"]) == (1, 3)
    packed = leat.open(tmp_path / "p.leat")
    assert packed.classes() == [" cat", "cat"] and packed.column("count").tolist() == [2, 3]


def test_an_image_larger_than_the_default_memory_is_packed(tmp_path):
    """Its 283 MB of pixels are read alone: the default memory with two threads is 256 MiB."""
    with leat.Writer(tmp_path / "in.leat", {"image": "image"}, sync=False) as w:
        w.append({"image": np.zeros((9800, 9630, 3), np.uint8)})
    assert leat.pack(tmp_path / "in.leat", tmp_path / "out.leat", threads=2)["samples"] == 1
    (tmp_path / "in.leat").unlink()
    (tmp_path / "out.leat").unlink()


def test_ctrl_c_waits_until_the_run_has_stopped():
    from leat import _pack

    left = []

    def call(first, second, control):
        time.sleep(0.2)  # the main thread waits
        os.kill(os.getpid(), signal.SIGINT)
        while not control[0]:
            time.sleep(0.01)
        time.sleep(0.3)
        left.append(True)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored in a background job
    try:
        with pytest.raises(KeyboardInterrupt):
            _pack._run(None, call, "a", "b")
    finally:
        signal.signal(signal.SIGINT, before)
    assert left == [True]
