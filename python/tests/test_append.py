# SPDX-License-Identifier: Apache-2.0
"""Writer(append=True), delete, compact: generations of a pack."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import leat
from conftest import ORDERS

SCHEMA = {"image": "image", "label": int, "caption": str}


def write(path: str, images: list[bytes], first: int, last: int, **options: object) -> None:
    with leat.Writer(path, None if "append" in options else SCHEMA, sync=False, **options) as w:
        for i in range(first, last):
            w.append([images[i], i, f"caption {i}"], key=f"k{i}")


def test_append_update_delete(tmp_path, images: list[bytes]) -> None:
    path = str(tmp_path / "a.leat")
    write(path, images, 0, 20)
    old = leat.open(path)
    write(path, images, 20, 30, append=True)
    with leat.Writer(path, append=True, sync=False) as w:
        assert w.update([images[50], 500, "new"], key="k3") is True
        assert w.update([images[51], 510, "other"], key="fresh") is False
        assert w.delete("k7") == 1 and w.delete("k7") == 0 and w.delete("none") == 0
        with pytest.raises(leat.ExistsError, match="'k4': use update"):
            w.append([images[4], 4, ""], key="k4")
        with pytest.raises(leat.StateError, match="already"):
            w.update([images[4], 4, ""], key="k3")
        for key in ("k3", "fresh"):  # what it wrote stays: nothing is left in the pack silently
            with pytest.raises(leat.StateError, match=f"'{key}' was written by this writer"):
                w.delete(key)
            with pytest.raises(leat.ExistsError, match="already"):
                w.append([images[4], 4, ""], key=key)
    ds = leat.open(path)
    assert list(ds.keys) == [f"k{i}" for i in range(30) if i not in (3, 7)] + ["k3", "fresh"]
    assert ds["k3"]["label"] == 500 and ds["k3"]["image"].file() == images[50]
    assert ds.column("label").tolist() == [i for i in range(30) if i not in (3, 7)] + [500, 510]
    assert ds.info["dropped"] == 2 and "k7" not in ds and len(ds) == 30
    assert len(old) == 20 and old["k7"]["label"] == 7  # who has the old one open keeps it
    assert leat.delete(path, ["k0", "k29"], sync=False) == 2 and len(leat.open(path)) == 28


def test_compact_gives_the_bytes_of_packing_at_once(tmp_path, images: list[bytes]) -> None:
    once, path, to = (str(tmp_path / n) for n in ("once.leat", "a.leat", "to.leat"))
    write(once, images, 0, 60)
    write(path, images, 0, 7)
    for first in range(7, 60):
        write(path, images, first, first + 1, append=True)
    assert leat.open(path).info["shards"] == 54
    leat.compact(path, to, sync=False)
    leat.compact(path, sync=False)
    expected = open(once, "rb").read()
    assert open(path, "rb").read() == open(to, "rb").read() == expected
    with pytest.raises(leat.ExistsError):
        leat.compact(path, to)
    assert sorted(os.listdir(tmp_path)) == ["a.leat", "once.leat", "to.leat"]


def test_a_loader_sees_one_generation(tmp_path, images: list[bytes]) -> None:
    path = str(tmp_path / "a.leat")
    write(path, images, 0, 40)
    loader = leat.Loader(path, 8, "CenterCrop(16)", as_="numpy", order="quasi_random", seed=1)
    begun = iter(loader)
    seen = next(begun).label.tolist()
    state = loader.state_dict()
    with leat.Writer(path, append=True, sync=False) as w:
        for i in range(0, 40, 2):
            w.delete(f"k{i}")
        w.append([images[41], 41, ""], key="k41")
    for batch in begun:
        seen += batch.label.tolist()
    assert sorted(seen) == list(range(40))
    for order in ORDERS:
        for cache in ("os", "process"):
            now = leat.Loader(path, 8, "CenterCrop(16)", as_="numpy", order=order, cache=cache, seed=1, threads=2)
            labels = [n for batch in now for n in batch.label.tolist()]
            assert sorted(labels) == [*range(1, 40, 2), 41]
    other = str(tmp_path / "b.leat")
    write(other, images, 50, 55)
    joined = leat.Loader([other, path], 8, "CenterCrop(16)", as_="numpy", order="random", seed=1)
    labels = [n for batch in joined for n in batch["label"].tolist()]
    assert sorted(labels) == sorted([*range(50, 55), *range(1, 40, 2), 41])
    with pytest.raises(leat.ArgumentError, match="another pack"):
        now.load_state_dict(state)  # of another generation
    assert leat.open(path, image="CenterCrop(16)", as_="numpy")[20]["label"] == 41


def test_empty_and_dropped_to_nothing(tmp_path, images: list[bytes]) -> None:
    path = str(tmp_path / "a.leat")
    write(path, images, 0, 0)
    write(path, images, 0, 3, append=True)
    assert leat.delete(path, ["k0", "k1", "k2"], sync=False) == 3
    ds = leat.open(path)
    assert len(ds) == 0 and list(ds) == [] and ds.column("label").tolist() == []
    write(path, images, 5, 6, append=True)
    assert list(leat.open(path).keys) == ["k5"]
    before = leat.open(path).fingerprint
    with leat.Writer(path, append=True, sync=False):
        pass
    assert leat.open(path).fingerprint == before


def test_classes_and_default_keys(tmp_path) -> None:
    path = str(tmp_path / "a.leat")
    with leat.Writer(path, {"label": int}, classes={"label": ["a", "b"]}, sync=False) as w:
        w.extend([[0], [1]])
    with leat.Writer(path, append=True, classes={"label": ["a", "b", "c"]}, sync=False) as w:
        w.append([2])
    with pytest.raises(leat.ArgumentError, match="class names of the pack cannot be changed"):
        leat.Writer(path, append=True, classes={"label": ["b", "a"]})
    ds = leat.open(path)
    assert ds.classes() == ["a", "b", "c"] and list(ds.keys) == ["00000000", "00000001", "00000002"]
    leat.delete(path, "00000000", sync=False)
    leat.compact(path, sync=False)
    with leat.Writer(path, append=True, sync=False) as w:
        w.append([2])  # the number 2 is a key that is there
    assert list(leat.open(path).keys) == ["00000001", "00000002", "00000003"]


def test_what_is_refused(tmp_path, images: list[bytes]) -> None:
    path = str(tmp_path / "a.leat")
    with pytest.raises(leat.NotFoundError):
        leat.Writer(path, append=True)
    write(path, images, 0, 3)
    with pytest.raises(leat.ArgumentError, match="other fields"):
        leat.Writer(path, {"label": int}, append=True)
    with pytest.raises(leat.ArgumentError, match="cannot be combined"):
        leat.Writer(path, append=True, resume=True)
    first = leat.Writer(path, append=True, sync=False)
    with pytest.raises(leat.StateError, match="in use by another process"):
        leat.Writer(path, append=True)
    first.append([images[9], 9, ""], key="k9")
    first.abort()
    assert os.listdir(tmp_path) == ["a.leat"]
    w = leat.Writer(str(tmp_path / "b.leat"), SCHEMA, sync=False)
    with pytest.raises(leat.StateError, match="need append=True"):
        w.delete("k")
    w.abort(discard=True)
    try:
        with leat.Writer(path, append=True, sync=False) as w:
            w.delete("k0")
            raise KeyError
    except KeyError:
        pass
    assert len(leat.open(path)) == 3 and os.listdir(tmp_path) == ["a.leat"]


_CHILD = """
import sys, leat
path, first = sys.argv[1], int(sys.argv[2])
for generation in range(10**6):
    with leat.Writer(path, append=True, sync=False) as w:
        for i in range(5):
            n = first + generation * 5 + i
            w.update([n], key=f"k{n % 50}") if n % 3 == 0 else w.append([n], key=f"n{n}")
    if generation % 7 == 6:
        leat.compact(path, sync=False)
"""


def test_kills_and_readers(tmp_path) -> None:
    """A process that appends without end is killed again and again while others read."""
    path = str(tmp_path / "a.leat")
    with leat.Writer(path, {"n": int}, sync=False) as w:
        for n in range(50):
            w.append([n], key=f"k{n}")
    rng = np.random.default_rng(5)
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    for round in range(6):
        child = subprocess.Popen([sys.executable, "-c", _CHILD, path, str(1000 * (round + 1))], env=env)
        until = time.monotonic() + 0.4 + 0.4 * float(rng.random())
        reads = 0
        while time.monotonic() < until or reads == 0:
            with leat.open(path) as ds:
                values = ds.column("n")
                assert len(values) == len(ds) and len(set(ds.keys)) == len(ds)  # never half, never twice
                assert {f"k{n}" for n in range(50)} <= set(ds.keys)
            reads += 1
        child.send_signal(signal.SIGKILL)
        child.wait()
    leat.compact(path, sync=False)
    if len(os.listdir(tmp_path)) > 1:  # leftovers of the last kill
        with pytest.warns(leat.AdviceWarning):
            leat.delete(path, "none", sync=False)
    assert os.listdir(tmp_path) == ["a.leat"]


def test_delete_names_keys_that_are_not_there(tmp_path) -> None:
    path = str(tmp_path / "a.leat")
    with leat.Writer(path, {"n": int}, sync=False) as w:
        w.append({"n": 1}, key="a")
        w.append({"n": 2}, key="b")
    with pytest.warns(leat.AdviceWarning, match=r"a.leat: 1 key was not in the pack \('nokey'\)"):
        assert leat.delete(path, ["a", "nokey", "a"], sync=False) == 1
    with pytest.warns(leat.AdviceWarning, match="2 keys were not in the pack"):
        assert leat.delete(path, ["x", "y"], sync=False) == 0
    assert list(leat.open(path).keys) == ["b"]


@pytest.mark.parametrize(("keys", "words"), [
    (3, "keys: 3 is not a list of str or bytes"), (None, "keys: None is not a list of str or bytes"),
    ([3], "keys: number 0 is 3, not str or bytes"), (["k1", None], "keys: number 1 is None, not str or bytes")])
def test_keys_to_delete_of_a_wrong_type(tmp_path, keys, words):
    path = tmp_path / "d.leat"
    with leat.Writer(path, {"n": int}, sync=False) as w:
        w.extend([{"n": n} for n in range(4)])
    with pytest.raises(leat.ArgumentError) as error:
        leat.delete(path, keys, sync=False)
    assert str(error.value) == words and len(leat.open(path)) == 4
    with leat.Writer(path, append=True, sync=False) as writer:
        for key in 3, None:
            with pytest.raises(leat.ArgumentError, match=f"^key: {key} is not text or bytes"):
                writer.delete(key)
