# SPDX-License-Identifier: Apache-2.0
"""leat.merge and leat.split: the bytes of packing at once, tiles copied, equal keys, interrupted runs."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import time

import numpy as np
import pytest

import leat


def tar(path: str, images: list[bytes], numbers: range) -> None:
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for i in numbers:
            for name, data in ((f"s{i:03d}.jpg", images[i]), (f"s{i:03d}.cls", str(i % 5).encode())):
                member = tarfile.TarInfo(name)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))


def data(path: str) -> bytes:
    with open(path, "rb") as f:
        return f.read()


@pytest.mark.parametrize("kind", ["keep", "raw", "mix"])
def test_the_bytes_of_packing_at_once(tmp_path, monkeypatch, images, kind):
    monkeypatch.chdir(tmp_path)
    names = ["a.tar", "b.tar", "c.tar"]
    for name, numbers in zip(names, (range(20), range(20, 30), range(30, 60))):
        tar(name, images, numbers)
        leat.pack(name, name + ".leat", images=kind, sync=False)
    leat.pack(names, "once.leat", images=kind, sync=False)
    seen = []
    stats = leat.merge([name + ".leat" for name in names], "m.leat", sync=False, progress=lambda *a: seen.append(a))
    assert stats["samples"] == 60 and stats["recoded"] == 0 and all(len(a) == 4 for a in seen)
    assert data("m.leat") == data("once.leat")


def test_tiles_are_copied_or_coded_again_without_loss(tmp_path, monkeypatch, images):
    monkeypatch.chdir(tmp_path)
    for name, numbers in (("a.tar", range(50)), ("b.tar", range(50, 101))):
        tar(name, images, numbers)
        leat.pack(name, name[0] + ".leat", sync=False)
    leat.split("a.leat", {"x": 0.5, "y": 0.5}, sync=False)  # two packs with the same tables
    stats = leat.merge(["a-x.leat", "a-y.leat"], "same.leat", sync=False)
    assert stats["recoded"] == 0
    stored = {s.key: s["image"].stored for s in leat.open("a.leat")}
    assert {s.key: s["image"].stored for s in leat.open("same.leat")} == stored
    stats = leat.merge(["a.leat", "b.leat"], "both.leat", sync=False)
    assert stats["recoded"] == 51
    for i, sample in enumerate(leat.open("both.leat")):
        assert sample["image"].codec == "tiled" and sample["image"].exact and sample["image"].file() == images[i]
        assert i >= 50 or sample["image"].stored == stored[sample.key]
    leat.pack("b.tar", "kept.leat", images="keep", sync=False)
    assert leat.merge(["kept.leat", "a.leat"], "c.leat", sync=False)["recoded"] == 0  # only one has tables
    assert [s["image"].file() for s in leat.open("c.leat")] == images[50:] + images[:50]


def test_fields_are_matched_by_name(tmp_path):
    a, b, c, out = (tmp_path / f"{n}.leat" for n in "abco")
    names = {"kind": ["p", "q"]}
    with leat.Writer(a, {"x": int, "kind": int, "note": str}, classes=names, sync=False) as w:
        w.append((1, 0, "one"), key="1")
    with leat.Writer(b, {"note": str, "kind": int, "x": int}, classes={"kind": ["p", "q", "r"]}, sync=False) as w:
        w.append((None, 2, 5), key="2")
    leat.merge([a, b], out, sync=False)
    ds = leat.open(out)
    assert [dict(s) for s in ds] == [{"x": 1, "kind": 0, "note": "one"}, {"x": 5, "kind": 2, "note": None}]
    assert ds.classes("kind") == ["p", "q", "r"]
    leat.pack([a, b], tmp_path / "packed.leat", sync=False)  # pack joins by name too, and keeps all class names
    assert leat.open(tmp_path / "packed.leat").classes("kind") == ["p", "q", "r"]
    with leat.Writer(c, {"x": int, "kind": int, "note": str}, classes={"kind": ["q", "p"]}, sync=False) as w:
        w.append((1, 0, "one"), key="3")
    with pytest.raises(leat.ArgumentError, match="class 0 of field 'kind' is \"q\", but \"p\" in an earlier pack"):
        leat.merge([a, c], out, force=True)
    assert len(leat.open(out)) == 2
    with leat.Writer(c, {"x": float, "kind": int, "note": str}, replace=True, sync=False) as w:
        w.append((1, 0, "one"))
    with pytest.raises(leat.ArgumentError, match="field 'x' is int in .*a.leat and float in .*c.leat"):
        leat.merge([a, c], out, force=True)


def test_equal_keys(tmp_path):
    paths = []
    for n in range(3):
        paths.append(tmp_path / f"{n}.leat")
        with leat.Writer(paths[-1], {"x": int}, sync=False) as w:
            for i in range(4):
                w.append((10 * n + i,))  # keys are numbers: the same in every pack
    out = tmp_path / "out.leat"
    with pytest.raises(leat.ExistsError, match="00000000"):
        leat.merge(paths, out)
    for rule, want in (("first", [0, 1, 2, 3]), ("last", [20, 21, 22, 23])):
        assert leat.merge(paths, out, duplicates=rule, force=True, sync=False)["existing"] == 8
        assert leat.open(out).column("x").tolist() == want
    leat.merge(paths, out, duplicates="rename", force=True, sync=False)
    ds = leat.open(out)
    assert len(set(ds.keys)) == 12 and ds["00000001-3"]["x"] == 21
    assert leat.merge(paths, out, duplicates="last", where="x < 13", force=True, sync=False)["samples"] == 4
    assert leat.open(out).column("x").tolist() == [3, 10, 11, 12]
    with pytest.raises(leat.ArgumentError, match="not one of error, first, last, rename"):
        leat.merge(paths, out, duplicates="newest")


def test_a_merge_into_one_of_its_packs_is_refused(tmp_path):
    a, b = tmp_path / "a.leat", tmp_path / "b.leat"
    for path, first in ((a, 0), (b, 5)):
        with leat.Writer(path, {"x": int}, sync=False) as w:
            for i in range(first, first + 5):
                w.append((i,), key=str(i))
    for force in (False, True):
        with pytest.raises(leat.ArgumentError, match="a.leat: is also an input"):
            leat.merge([a, b], a, force=force, sync=False)
    assert leat.open(a).column("x").tolist() == list(range(5))


def test_killed_runs_are_resumed(tmp_path):
    paths = []
    for n in range(2):
        paths.append(str(tmp_path / f"{n}.leat"))
        with leat.Writer(paths[-1], {"x": ("uint8", (20000,))}, sync=False) as w:
            for i in range(1500):
                w.append((np.full(20000, (n + i) % 251, np.uint8),), key=f"{n}/{i}")
    want, out = str(tmp_path / "want.leat"), str(tmp_path / "out.leat")
    leat.merge(paths, want, sync=False)
    code = f"import leat; leat.merge({paths!r}, {out!r}, resume=True, sync=False)"
    for wait in (0.02, 0.05, 0.1):
        child = subprocess.Popen([sys.executable, "-c", "import leat, sys; leat.pack; print(flush=True); " + code],
                                 stdout=subprocess.PIPE)
        child.stdout.readline()
        time.sleep(wait)
        child.kill()
        child.wait()
        assert not os.path.exists(out) or data(out) == data(want)
        if os.path.exists(out):
            os.unlink(out)
    leat.merge(paths, out, resume=True, sync=False)
    assert data(out) == data(want)


def test_split(pack, tmp_path):
    parts = leat.split(pack, {"train": 0.7, "val": 0.3}, tmp_path / "new" / "folder", stratify="label", sync=False)
    assert list(parts) == ["train", "val"] and sum(p["samples"] for p in parts.values()) == 101
    keys = {name: set(leat.open(p["path"]).keys) for name, p in parts.items()}
    assert not keys["train"] & keys["val"] and keys["train"] | keys["val"] == set(leat.open(pack).keys)
    for label in range(10):
        counts = [int((leat.open(p["path"]).column("label") == label).sum()) for p in parts.values()]
        assert counts[0] in (7, 8)
    with pytest.raises(leat.ExistsError):
        leat.split(pack, {"train": 0.7, "val": 0.3}, tmp_path / "new" / "folder")
    other = leat.split(pack, {"train": 0.7, "val": 0.3}, tmp_path / "new" / "folder", seed=1, force=True, sync=False)
    assert set(leat.open(other["train"]["path"]).keys) != keys["train"]
    for bad, words in (({}, "dict of names"), ({"a/b": 1}, "not a name"), ({"a": 2}, "a"), ([("a", 1)], "dict of names")):
        with pytest.raises(leat.ArgumentError, match=words):
            leat.split(pack, bad)
    with pytest.raises(leat.ArgumentError, match="more than 1"):
        leat.split(pack, {"a": 0.7, "b": 0.7}, tmp_path)
    with pytest.raises(leat.ArgumentError, match="no int field"):
        leat.split(pack, {"a": 1}, tmp_path, stratify="score")
