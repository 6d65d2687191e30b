# SPDX-License-Identifier: Apache-2.0
"""leat.Writer: values that do not fit are refused by name; closing, aborting, starting again."""

import gc
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import leat

NAN, INF = float("nan"), float("inf")


def kept(tmp_path, spec, value):
    """What a field of this type returns."""
    path = tmp_path / "v.leat"
    with leat.Writer(path, {"x": spec}, sync=False, replace=True) as w:
        w.append({"x": value})
    return leat.open(path)[0]["x"]


@pytest.mark.parametrize("spec, value, shown", [
    (("uint8", (2,)), [300, -1], "300 at [0] is out of range for uint8"),
    (("uint8", (2,)), np.array([3, -1]), "-1 at [1] is out of range for uint8"),
    (("uint8", (2, 2)), np.array([[1, 2], [3, 256]], np.int64), "256 at [1, 1] is out of range"),
    (("int8", (1,)), np.array([200], np.uint8), "200 at [0] is out of range for int8"),
    (("int32", (1,)), np.array([2**40]), "1099511627776 at [0] is out of range for int32"),
    (("int32", (1,)), np.array([1.7]), "1.7 at [0] is not a whole number"),
    (("int32", (1,)), np.array([1.7], np.float16), "is not a whole number"),
    (("int32", ()), 2.0**31, "2147483648.0 is out of range for int32"),
    (("int64", (1,)), np.array([2.0**63]), "is out of range for int64"),
    (("int64", (1,)), np.array([2**63], np.uint64), "9223372036854775808 at [0] is out of range for int64"),
    (("uint64", (1,)), [-1], "-1 at [0] is out of range for uint64"),
    (("uint64", (1,)), [2.0**64], "is out of range for uint64"),
    (("int16", (1,)), [NAN], "nan at [0] is not a whole number"),
    (("int16", (1,)), [INF], "inf at [0] is not a whole number"),
    (("int16", (1,)), [2**70], "1180591620717411303424 at [0] is out of range for int16"),
    (("int16", ()), 2**70, "1180591620717411303424 is out of range for int16"),
    (("uint64", (2,)), [2**64, 0], "18446744073709551616 at [0] is out of range for uint64"),
    (("int64", (2,)), [2**53 + 1, None], "None at [1] is not of type int64"),
    (("int64", (2,)), [2**53 + 1, INF], "inf at [1] is not a whole number"),
    (("float64", (2,)), [2**63 + 1, 1], "9223372036854775809 at [0] has no exact float64"),
    (("float32", (1,)), np.array([1e300]), "1e+300 at [0] is out of range for float32"),
    (("float16", (1,)), [70000.0], "70000.0 at [0] is out of range for float16"),
    (("float32", (1,)), [16777217], "16777217 at [0] has no exact float32"),
    (("float64", (1,)), [2**53 + 1], "has no exact float64"),
    (("bfloat16", (1,)), [1e39], "is out of range for bfloat16"),
    (("bfloat16", (1,)), [3.3999999e38], "is out of range for bfloat16"),
    (("bool", (2,)), [0, 2], "2 at [1] is out of range for bool"),
    (("float32", (1,)), ["7"], "'7' is not of type float32"),
    (("float32", (1,)), [1 + 2j], "is not of type float32"),
    (("float32", (1,)), [None], "is not of type float32"),
    (("float32", (2,)), [[1, 2]], "the array has the shape (1, 2), (2,) is expected"),
    (("float32", (2, 2)), [[1, 2], [3]], "not an array"),
    (("float32", (None, 4)), np.zeros((2, 3, 4)), "(2, 3, 4), (None, 4) is expected"),
    (int, 1.7, "1.7 is not a whole number"), (int, NAN, "nan is not a whole number"),
    (int, -INF, "-inf is not a whole number"), (int, "7", "'7' is not a number"),
    (int, 2**63, "9223372036854775808 is out of range for int64"), (int, [1], "[1] is not a number"),
    (int, np.zeros(2, np.int64), "is not a number"),
    (float, "7", "'7' is not a number"), (float, 10**400, "is out of range for float64"),
    (float, 2**53 + 1, "has no exact float64"), (float, 1j, "1j is not a number"),
    (str, 5, "5 is not a str"), (str, b"abc", "b'abc' is not a str"), (str, "\ud800", "not Unicode text"),
    (bytes, "text", "'text' is not bytes"), (bytes, 5, "5 is not bytes"),
    ("json", {1, 2}, "not a JSON value"), ("json", [NAN], "not a JSON value"),
    ("image", np.zeros((4, 4, 3), np.int8), "pixels must be uint8, uint16 or float32, not int8"),
    ("image", np.zeros((4, 4, 3), np.uint32), "pixels must be uint8, uint16 or float32, not uint32"),
    ("image", np.zeros((4, 4), bool), "pixels must be uint8, uint16 or float32, not bool"),
    ("image", np.zeros((3, 24, 24), np.uint8), "channels come last"),
    ("image", np.zeros((3, 16, 16), np.uint8), "channels come last"),
    ("image", np.zeros((1, 8, 5), np.float32), "channels come last"),
    ("image", 7, "pixels must be uint8"),
])
def test_what_does_not_fit_is_refused(tmp_path, spec, value, shown):
    w = leat.Writer(tmp_path / "w.leat", {"a": int, "x": spec}, sync=False)
    w.append([0, None] if spec not in (int, float) else [0, 0])
    with pytest.raises(leat.ArgumentError) as caught:
        w.append([1, value])
    message = str(caught.value)
    assert shown in message and message.startswith("field 'x', sample 1: ")
    w.abort(discard=True)


@pytest.mark.parametrize("spec, value, want", [
    (("uint8", (2,)), [255.0, 0.0], np.array([255, 0], np.uint8)),
    (("int64", (2,)), [-(2**63), 2**63 - 1], np.array([-(2**63), 2**63 - 1])),
    (("int64", (1,)), [-(2.0**63)], np.array([-(2**63)])),
    (("uint64", (3,)), [2**64 - 1, 2**63 + 1, 1], np.array([2**64 - 1, 2**63 + 1, 1], np.uint64)),
    (("int64", (2,)), [2**53 + 1, 1.0], np.array([2**53 + 1, 1])),
    (("uint64", (2, 2)), [[2**63 + 1, 1], (2, True)], np.array([[2**63 + 1, 1], [2, 1]], np.uint64)),
    (("float64", (2,)), [2**63, 1], np.array([2.0**63, 1.0])),
    (("uint64", (1,)), np.array([2**64 - 1], np.uint64), np.array([2**64 - 1], np.uint64)),
    (("float32", (3,)), [NAN, -INF, 0.1], np.array([NAN, -INF, 0.1], np.float32)),
    (("float32", (2,)), [16777216, 2**100], np.array([16777216, 2**100], np.float32)),
    (("float16", (2,)), np.array([65504.0, 1e-9]), np.array([65504.0, 0], np.float16)),
    (("bool", (2,)), [True, 0], np.array([True, False])),
    (("float32", ()), np.float64(3), np.array(3, np.float32)),
    (("int32", (0,)), [], np.zeros(0, np.int32)),
    (("int32", (None, 2)), np.arange(8).reshape(4, 2)[::2], np.array([[0, 1], [4, 5]], np.int32)),
])
def test_what_fits_is_kept(tmp_path, spec, value, want):
    if spec[0] == "float32" and 2**100 in np.ravel(value).tolist():
        value = np.array(value, dtype=float)
    got = kept(tmp_path, spec, value)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


def test_numbers_of_any_kind(tmp_path):
    assert kept(tmp_path, int, np.array(7, np.uint8)) == 7
    assert kept(tmp_path, int, 2.0) == 2
    assert kept(tmp_path, int, True) == 1
    assert kept(tmp_path, float, np.float32(0.5)) == 0.5
    assert kept(tmp_path, float, 3) == 3.0
    assert kept(tmp_path, bytes, np.arange(3, dtype=np.uint8)[::2]) == b"\x00\x02"


def test_bfloat16_is_rounded_to_even(tmp_path):
    values = np.array([1.0, 1.00390625, 1.01171875, -2.5, 0.0, INF, 3.3895e38], np.float32)
    bits = kept(tmp_path, ("bfloat16", (7,)), values).view(np.uint16)
    assert bits.tolist() == [0x3F80, 0x3F80, 0x3F82, 0xC020, 0, 0x7F80, 0x7F7F]
    assert kept(tmp_path, ("bfloat16", (1,)), [NAN]).view(np.uint16)[0] & 0x7FFF > 0x7F80


def test_tensors(tmp_path):
    torch = pytest.importorskip("torch")
    assert kept(tmp_path, int, torch.tensor(5)) == 5
    half = torch.tensor([1.5, -2.0], dtype=torch.bfloat16)
    assert kept(tmp_path, ("bfloat16", (2,)), half).view(np.uint16).tolist() == [0x3FC0, 0xC000]
    with pytest.raises(leat.ArgumentError, match="300 at"):
        kept(tmp_path, ("uint8", (1,)), torch.tensor([300]))


def test_a_missing_image_file(tmp_path):
    w = leat.Writer(tmp_path / "w.leat", {"image": "image"}, sync=False)
    with pytest.raises(leat.NotFoundError, match="field 'image', sample 0"):
        w.append([tmp_path / "none.jpg"])
    w.abort(discard=True)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("key", [7, "\ud800"])
def test_wrong_keys(tmp_path, key):
    w = leat.Writer(tmp_path / "w.leat", {"x": int}, sync=False)
    with pytest.raises(leat.ArgumentError, match="key"):
        w.append([1], key=key)
    w.abort(discard=True)


# ---- closing ---------------------------------------------------------------------------------


def test_close_finishes(tmp_path):
    w = leat.Writer(tmp_path / "c.leat", {"x": int}, sync=False)
    w.append([4])
    w.close()
    w.close()
    assert leat.open(tmp_path / "c.leat")[0]["x"] == 4
    assert os.listdir(tmp_path) == ["c.leat"]


def test_abort_leaves_it_resumable_or_nothing(tmp_path):
    path = tmp_path / "a.leat"
    w = leat.Writer(path, {"x": bytes}, sync=False, page_bytes="64K")
    w.extend([[bytes(60000)]] * 4)
    w.abort()
    assert not path.exists()
    w = leat.Writer(path, {"x": bytes}, sync=False, page_bytes="64K", resume=True)
    assert w.resumed >= 3
    w.abort(discard=True)
    assert os.listdir(tmp_path) == []


def test_an_exception_says_what_is_left(tmp_path):
    path = tmp_path / "e.leat"
    with pytest.raises(RuntimeError, match="stop") as caught:
        with leat.Writer(path, {"x": int}, sync=False) as w:
            w.append([1])
            raise RuntimeError("stop")
    assert "e.leat is not finished: resume=True" in caught.value.__notes__[0]
    # the same again, with other fields: replace starts from scratch
    with leat.Writer(path, {"y": float}, sync=False, replace=True) as w:
        w.append([2.5])
    assert leat.open(path)[0]["y"] == 2.5 and os.listdir(tmp_path) == ["e.leat"]


def test_resume_needs_fields(tmp_path):
    with pytest.raises(leat.ArgumentError, match="resume needs fields"):
        leat.Writer(tmp_path / "n.leat", resume=True)


def test_a_live_writer_is_not_replaced(tmp_path):
    path = tmp_path / "l.leat"
    w = leat.Writer(path, {"x": int}, sync=False)
    for options in ({}, {"replace": True}, {"resume": True}):
        with pytest.raises(leat.StateError, match="in use by another"):
            leat.Writer(path, {"x": int}, **options)
    w.append([1])
    w.close()
    assert len(leat.open(path)) == 1


def test_a_forgotten_writer_warns(tmp_path):
    w = leat.Writer(tmp_path / "f.leat", {"x": int}, sync=False)
    w.append([1])
    with pytest.warns(ResourceWarning, match="never closed"):
        del w
        gc.collect()


def test_killed_and_replaced(tmp_path):
    path = tmp_path / "k.leat"
    code = f"""
import leat, os
w = leat.Writer({os.fspath(path)!r}, {{"x": ("uint8", (1 << 16,))}}, page_bytes="64K", sync=False)
for i in range(8):
    w.append([[i] * (1 << 16)])
os._exit(9)
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == 9
    with pytest.raises(leat.ExistsError, match="unfinished"):
        leat.Writer(path, {"x": int})
    with leat.Writer(path, {"x": int}, replace=True, sync=False) as w:
        w.append([3])
    assert leat.open(path)[0]["x"] == 3 and os.listdir(tmp_path) == ["k.leat"]


@pytest.mark.parametrize("shape, good, bad", [
    ((None, 4), [(2, 4), (0, 4), (1, 4)], [(2, 3), (2, 5), (8,), (1, 4, 1), (0, 3)]),
    ((2, None), [(2, 1), (2, 0), (2, 9)], [(3, 1), (4, 2)]),
    ((None, 3, None), [(1, 3, 2), (0, 3, 0)], [(3, 1, 2), (1, 3)]),
    ((None, 0), [(3, 0)], [(3, 1)]),
])
def test_fixed_sizes_of_ragged_fields_are_checked(tmp_path, shape, good, bad):
    path = tmp_path / "boxes.leat"
    with leat.Writer(path, {"b": ("float32", shape)}, sync=False) as w:
        for size in good:
            w.append({"b": np.ones(size, np.float32)})
            for wrong in bad:
                with pytest.raises(leat.ArgumentError, match=r"field 'b', sample \d+: the array has the shape"):
                    w.append({"b": np.ones(wrong, np.float32)})
        assert w.fields[0].shape == shape
    ds = leat.open(path)
    assert [ds[i]["b"].shape for i in range(len(ds))] == good
    with leat.Writer(tmp_path / "copy.leat", {f.name: f for f in ds.fields}, sync=False) as w:
        w.append({"b": np.ones(good[0], np.float32)})


def test_bad_images_are_named(tmp_path):
    """In a loop over a million files one must know which."""
    good = np.zeros((4, 4, 3), np.uint8)
    with leat.Writer(tmp_path / "w.leat", {"image": "image", "label": int}, sync=False) as w:
        w.append([good, 1], key="first.png")
        for bad, kind in ((b"\xff\xd8\xff\xe0 cut", leat.DataError), (b"junk", leat.FormatError), (np.zeros((0, 5, 3), np.uint8),
                                                                                               leat.ArgumentError)):
            with pytest.raises(kind, match=r"field 'image', sample 1 \(bad.jpg\): ") as caught:
                w.append([bad, 2], key="bad.jpg")
            assert (caught.value.key, caught.value.sample_id) == ("bad.jpg", 1)
        w.append([good, 3], key="bad.jpg")
    assert leat.open(tmp_path / "w.leat").keys[:] == ["first.png", "bad.jpg"]


def test_a_copied_set_shares_its_shards(tmp_path):
    """The original still needs them when the copy is replaced."""
    def write(name, first):
        with leat.Writer(tmp_path / name, {"x": ("uint8", (4096,))}, page_bytes="64K", shard_bytes="1M", replace=True) as w:
            for i in range(600):
                w.append({"x": np.full(4096, (first + i) % 251, np.uint8)})
    write("a.leat", 0)
    shutil.copy(tmp_path / "a.leat", tmp_path / "copy.leat")
    write("copy.leat", 7)
    for name in "a", "copy":
        assert len(list(leat.open(tmp_path / f"{name}.leat"))) == 600
        assert len(list(tmp_path.glob(f"{name}-*.leat"))) > 1
    write("copy.leat", 9)
    assert len(list(tmp_path.glob("copy-*.leat"))) == len(list(tmp_path.glob("a-*.leat")))  # its own old ones go


def test_a_shard_of_the_input_is_no_output(tmp_path):
    path = tmp_path / "a.leat"
    with leat.Writer(path, {"x": ("uint8", (4096,))}, page_bytes="64K", shard_bytes="1M") as w:
        for i in range(600):
            w.append({"x": np.full(4096, i % 251, np.uint8)})
    shard = sorted(tmp_path.glob("a-*.leat"))[1]
    with pytest.raises(leat.ArgumentError, match=r"a-00001-.*: is a part of the input .*a\.leat: give the result another name"):
        leat.pack(path, shard, force=True)
    with pytest.raises(leat.ArgumentError, match="is a part of the input"):
        leat.compact(path, shard, replace=True)
    with pytest.raises(leat.ArgumentError, match="is a part of the input"):
        leat.split(path, {shard.stem.removeprefix("a-"): 0.5, "rest": 0.5}, force=True)
    assert len(list(leat.open(path))) == 600


def test_equal_keys_are_told(tmp_path) -> None:
    with pytest.warns(leat.AdviceWarning, match="1 sample has the key of an earlier one"):
        with leat.Writer(tmp_path / "d.leat", {"x": int}) as w:
            w.append({"x": 1}, key="a")
            w.append({"x": 2}, key="a")
    assert leat.open(tmp_path / "d.leat")["a"]["x"] == 1
    with pytest.raises(leat.ExistsError, match="already exists .*replace=True"):
        leat.Writer(tmp_path / "d.leat", {"x": int})
