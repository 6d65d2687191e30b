# SPDX-License-Identifier: Apache-2.0
"""Augmentations of the user's own: over the batch, as a numba.cfunc, as a C plugin."""

import ctypes
import os
import shutil
import subprocess

import numpy as np
import pytest

import leat
from conftest import ROOT

OPS = "Resize((64, 64))"
FN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint32,
                      ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64)


def pictures(path: str, **options) -> np.ndarray:
    with leat.Loader(path, 16, OPS, order="sequential", seed=4, as_="numpy", **options) as loader:
        return np.concatenate([b.image.copy() for b in loader])


@pytest.fixture(scope="module")
def plugin(tmp_path_factory) -> str:
    cc = shutil.which("cc") or pytest.skip("no C compiler")
    out = str(tmp_path_factory.mktemp("plugin") / "invert.so")
    subprocess.run([cc, "-O2", "-shared", "-fPIC", "-I", os.path.join(ROOT, "include"),
                    os.path.join(ROOT, "examples", "plugin_invert.c"), "-o", out], check=True)
    return out


def check_inverted(path: str, got: np.ndarray) -> None:
    expected = pictures(path)
    inverted = [(g == 255 - e).all() for g, e in zip(got, expected)]
    kept = [(g == e).all() for g, e in zip(got, expected)]
    assert all(i or k for i, k in zip(inverted, kept)) and 25 < sum(inverted) < 75


def test_plugin(plain, plugin):
    op = leat.load_plugin(plugin)
    assert op.name == "invert" and "negative" in op.help
    got = pictures(plain, sample_fn=op, threads=2)
    check_inverted(plain, got)
    np.testing.assert_array_equal(got, pictures(plain, sample_fn=op, threads=1))


def test_numba(plain):
    numba = pytest.importorskip("numba")

    @numba.cfunc(leat.numba_signature())
    def invert(cookie, rows, fields, sample, epoch, random):
        image = numba.carray(rows[0], (3, 64, 64), np.uint8)
        if random & 1:
            image[:] = 255 - image
        return 0

    check_inverted(plain, pictures(plain, sample_fn=invert))


def test_ctypes_and_errors(plain):
    seen = []

    @FN
    def note(cookie, rows, fields, sample, epoch, random):
        seen.append((sample, fields, epoch))
        return 5 if sample == 70 else 0

    with pytest.raises(leat.DataError, match="the sample function returned 5") as e:
        pictures(plain, sample_fn=note)
    assert e.value.sample_id == 70
    seen.clear()
    assert len(pictures(plain, sample_fn=note, on_error="skip")) == 100
    assert sorted(seen) == [(i, 2, 0) for i in range(101)]


def test_transform(plain):
    got = pictures(plain, transform=lambda b: b._replace(image=255 - b.image))
    np.testing.assert_array_equal(got, 255 - pictures(plain))


def test_what_is_no_sample_function(plain, tmp_path):
    with pytest.raises(leat.ArgumentError, match="transform="):
        leat.Loader(plain, sample_fn=lambda batch: batch)
    with pytest.raises(leat.NotFoundError):
        leat.load_plugin(tmp_path / "none.so")
    from leat import _leat

    with pytest.raises(leat.FormatError, match="no leat_op"):
        leat.load_plugin(_leat.__file__)


def test_a_sample_fn_that_is_no_function_is_refused(plain):
    class Fake:
        address = 5

    for bad in (0, 5, 65535, 2**64, True, Fake(), ctypes.CFUNCTYPE(ctypes.c_int)(0)):
        with pytest.raises(leat.ArgumentError, match="sample_fn: "):
            leat.Loader(plain, sample_fn=bad)
