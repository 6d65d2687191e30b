# SPDX-License-Identifier: Apache-2.0
"""leat.dedup_semantic(device=…): PyTorch gives the rows of the C code."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import leat

pytest.importorskip("torch")
pytestmark = pytest.mark.torch
COLUMNS = ("cluster", "keep", "duplicate_of", "similarity")


def write(path, rows, dtype="float32"):
    with leat.Writer(path, {"vector": (dtype, rows.shape[1:])}, sync=False) as w:
        for i, row in enumerate(rows):
            w.append([row.astype(dtype)], key=f"k{i}")
    return path


def clustered(count, dim, seed=0):
    """Groups with many near rows, exact copies and a vector of zeros."""
    draw = np.random.default_rng(seed)
    rows = draw.normal(size=(12, dim))[draw.integers(0, 12, count)] + 0.15 * draw.normal(size=(count, dim))
    rows[count // 2:count // 2 + 20] = rows[:20]
    rows[-10:] = rows[0]
    rows[7], rows[8, 3] = 0, np.nan
    return rows


def columns(path):
    found = leat.open(path)
    return {name: found.column(name) for name in COLUMNS}


@pytest.mark.parametrize("count, dim, dtype, options", [
    (900, 24, "float32", {"threshold": 0.97}), (900, 24, "float16", {"keep_share": 0.5}),
    (900, 40, "float32", {"threshold": 0.9, "keep": "outer"}), (900, 16, "float64", {"threshold": 0.9, "keep": "central"}),
    (700, 7, "float32", {"centres": 1, "threshold": 0.6}), (300, 9, "float32", {"centres": 300}), (1, 5, "float32", {})])
def test_rows_are_those_of_the_c_code(tmp_path, count, dim, dtype, options):
    vectors = write(tmp_path / "v.leat", clustered(count, dim) if count > 40 else np.ones((count, dim)), dtype)
    want = leat.dedup_semantic(vectors, tmp_path / "c.leat", **options)
    seen = []
    got = leat.dedup_semantic(vectors, tmp_path / "t.leat", device="cpu", progress=lambda *at: seen.append(at), **options)
    a, b = columns(tmp_path / "c.leat"), columns(tmp_path / "t.leat")
    for name in COLUMNS:
        assert np.array_equal(a[name], b[name]), name
    assert leat.open(tmp_path / "c.leat").keys[:] == leat.open(tmp_path / "t.leat").keys[:]
    for name in ("samples", "kept", "removed", "without_vector", "asked", "threshold", "clusters", "largest", "pairs"):
        assert got[name] == want[name], name
    assert seen and seen[-1][0] <= seen[-1][1] == count - got["without_vector"]


def test_tiles_do_not_change_the_rows(tmp_path, monkeypatch):
    from leat import _semantic_torch

    vectors = write(tmp_path / "v.leat", clustered(900, 24))
    leat.dedup_semantic(vectors, tmp_path / "c.leat", threshold=0.9, centres=3)
    monkeypatch.setattr(_semantic_torch, "_TILE", 50)
    monkeypatch.setattr(_semantic_torch, "_WIDE", 70)
    leat.dedup_semantic(vectors, tmp_path / "t.leat", threshold=0.9, centres=3, device="cpu")
    a, b = columns(tmp_path / "c.leat"), columns(tmp_path / "t.leat")
    assert all(np.array_equal(a[name], b[name]) for name in COLUMNS)


def test_wrong_arguments(tmp_path):
    vectors = write(tmp_path / "v.leat", clustered(60, 8))
    out = tmp_path / "o.leat"
    for options, message in (({"device": "abacus"}, "device: 'abacus' cannot be used here"), ({"memory": "1G"}, "memory: has no effect with device"),
                             ({"threads": 2}, "threads: has no effect"), ({"threshold": 0.5, "keep_share": 0.5}, "either threshold or keep_share"),
                             ({"field": "none"}, "'none' is not a field of vectors; there is vector"), ({"keep": "all"}, "not one of first, outer"),
                             ({"threshold": 3}, "threshold")):
        with pytest.raises(leat.ArgumentError, match=message):
            leat.dedup_semantic(vectors, out, **{"device": "cpu", **options})
    with pytest.raises(leat.ArgumentError, match="also an input"):
        leat.dedup_semantic(vectors, vectors, device="cpu", force=True)
    assert not out.exists()
    leat.dedup_semantic(vectors, out, device="cpu")
    with pytest.raises(leat.ExistsError, match="already exists"):
        leat.dedup_semantic(vectors, out, device="cpu")
    leat.dedup_semantic(write(tmp_path / "none.leat", np.zeros((0, 8))), out, device="cpu", force=True)
    assert len(leat.open(out)) == 0


def test_the_command(tmp_path):
    vectors = write(tmp_path / "v.leat", clustered(300, 16))
    for more in ((), ("--device", "cpu")):
        done = subprocess.run([sys.executable, "-m", "leat", "dedup", "semantic", str(vectors), "-o", str(tmp_path / f"o{len(more)}.leat"),
                               "--threshold", "0.9", "--centres", "5", *more], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0 and "to remove, with a similarity of 0.9000 or more\n2 rows without a vector (zeros or not finite) were not compared and stay\n5 clusters" in done.stdout, done
    assert np.array_equal(columns(tmp_path / "o0.leat")["keep"], columns(tmp_path / "o2.leat")["keep"])
