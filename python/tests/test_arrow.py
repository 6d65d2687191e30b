# SPDX-License-Identifier: Apache-2.0
"""The index as an Arrow stream, read by a small consumer written here."""

import ctypes

import numpy as np
import pytest

import leat


class Schema(ctypes.Structure):
    pass


Schema._fields_ = [
    ("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64), ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(Schema))), ("dictionary", ctypes.c_void_p),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Schema))), ("private_data", ctypes.c_void_p)]


class Array(ctypes.Structure):
    pass


Array._fields_ = [
    ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)), ("children", ctypes.POINTER(ctypes.POINTER(Array))),
    ("dictionary", ctypes.c_void_p), ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Array))),
    ("private_data", ctypes.c_void_p)]


class Stream(ctypes.Structure):
    pass


Stream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Schema))),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Array))),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(Stream))),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Stream))), ("private_data", ctypes.c_void_p)]

NUMBERS = {"L": np.uint64, "l": np.int64, "g": np.float64, "I": np.uint32, "C": np.uint8}


def buffer(array: Array, i: int, size: int) -> bytes:
    return ctypes.string_at(array.buffers[i], size) if size else b""


def column(kind: str, array: Array) -> list:
    n = array.length
    valid = np.ones(n, bool)
    if array.buffers[0]:
        bits = np.frombuffer(buffer(array, 0, (n + 7) // 8), np.uint8)
        valid = np.unpackbits(bits, bitorder="little")[:n].astype(bool)
        assert (~valid).sum() == array.null_count
    if kind == "u":
        ends = np.frombuffer(buffer(array, 1, 4 * (n + 1)), np.int32)
        text = buffer(array, 2, int(ends[-1]))
        values = [text[a:b].decode() for a, b in zip(ends, ends[1:])]
    else:
        dtype = np.dtype(NUMBERS[kind])
        values = np.frombuffer(buffer(array, 1, n * dtype.itemsize), dtype).tolist()
    return [v if ok else None for v, ok in zip(values, valid)]


def read(capsule: object) -> dict[str, list]:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    stream = Stream.from_address(get(capsule, b"arrow_array_stream"))
    schema = Schema()
    assert stream.get_schema(stream, schema) == 0 and schema.format == b"+s"
    kinds = {c.name.decode(): c.format.decode()
             for c in (schema.children[i].contents for i in range(schema.n_children))}
    schema.release(schema)
    table: dict[str, list] = {name: [] for name in kinds}
    while True:
        array = Array()
        assert stream.get_next(stream, array) == 0, stream.get_last_error(stream)
        if not array.release:
            break
        for i, (name, kind) in enumerate(kinds.items()):
            table[name] += column(kind, array.children[i].contents)
        array.release(array)
    stream.release(stream)
    assert not stream.release
    return table


def test_every_column(pack, images):
    ds = leat.open(pack)
    table = read(ds.__arrow_c_stream__())
    assert table["sample_id"] == list(range(101)) and table["key"] == list(ds.keys)
    assert table["label"] == [i % 10 for i in range(101)] and table["score"] == [i / 2 for i in range(101)]
    assert table["image.bytes"] == [len(data) for data in images]
    assert table["image.width"] == [s["image"].width for s in ds]
    assert table["image.height"] == [s["image"].height for s in ds]
    assert set(table["image.codec"]) == {"jpeg"} and set(table["image.channels"]) == {3}
    assert table["vector.bytes"] == [6] * 101


def test_absent_values_are_null(tmp_path):
    path = tmp_path / "nulls.leat"
    with leat.Writer(path, {"t": str, "n": int}, sync=False) as w:
        for i in range(20):
            w.append({"t": "x" * i if i % 3 else None, "n": -i}, key=b"\xff%d" % i)
    table = read(leat.open(path).__arrow_c_stream__())
    assert table["t.bytes"] == [i if i % 3 else None for i in range(20)]
    assert table["n"] == [-i for i in range(20)]
    assert table["key"][3] == "?3"  # not UTF-8, which Arrow's strings are


def test_more_rows_than_one_batch(tmp_path):
    path = tmp_path / "many.leat"
    with leat.Writer(path, {"n": int}, sync=False) as w:
        for i in range(70000):
            w.append([i])
    assert read(leat.open(path).__arrow_c_stream__())["n"] == list(range(70000))


def test_stream_outlives_the_dataset_and_is_freed_unused(pack):
    capsule = leat.open(pack).__arrow_c_stream__()
    assert len(read(capsule)["label"]) == 101
    for _ in range(100):
        leat.open(pack).__arrow_c_stream__()  # never consumed


def frame_of(name: str, module, ds) -> dict[str, list]:
    """Columns as lists, read by a library that knows Arrow's C stream and nothing of leat."""
    if name == "pyarrow":
        return module.table(ds).to_pydict()
    if name == "polars":
        return module.DataFrame(ds).to_dict(as_series=False)
    if name == "duckdb":
        return module.sql("select * from ds").fetchnumpy()
    return {key: column.tolist() for key, column in module.DataFrame.from_arrow(ds).items()}


@pytest.mark.parametrize("name", ["pyarrow", "polars", "pandas", "duckdb"])
def test_with_other_readers(pack, name):
    module = pytest.importorskip(name)
    if name in ("pandas", "duckdb"):
        pytest.importorskip("pyarrow")  # both read Arrow through it
    ds = leat.open(pack)
    table = frame_of(name, module, ds)
    assert list(table["label"]) == ds.column("label").tolist()
    assert list(table["score"]) == ds.column("score").tolist()
    assert [str(key) for key in table["key"]] == [f"dir/{i:04d}.jpg" for i in range(101)]
    assert list(table["vector.bytes"]) == [6] * 101
