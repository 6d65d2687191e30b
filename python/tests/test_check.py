# SPDX-License-Identifier: Apache-2.0
"""Arguments: values that are not numbers are refused by name, attributes are true, all interfaces share their defaults."""

import inspect
import json
import math
import subprocess
import sys
import warnings

import numpy as np
import pytest

import leat
from leat import _check, _leat

OPS = "Resize((8, 8))"
WRONG = [-1, -5, 1.5, 2.0, "64", b"64", True, np.True_, math.nan, None, [1], 2**64, np.float32(3)]
COUNTS = ["batch_size", "seed", "threads", "max_bad", "window_pages", "streams", "prefetch", "io_depth", "draws"]


def refused(name, call):
    with pytest.raises(leat.ArgumentError) as caught:
        call()
    assert str(caught.value).startswith(f"{name}: "), caught.value
    assert isinstance(caught.value, (leat.Error, ValueError))


@pytest.mark.parametrize("name", COUNTS)
def test_loader_counts_are_whole_numbers(plain, name):
    for value in WRONG:
        refused(name, lambda value=value: leat.Loader(plain, **{"image": OPS, name: value}))
    needed = {"draws": {"balance": "label"}, "max_bad": {"on_error": "skip"}, "streams": {"order": "quasi_random"},
              "window_pages": {"order": "quasi_random"}}
    leat.Loader(plain, **{"image": OPS, **needed.get(name, {}), name: np.int64(4)}).close()


def test_loader_sizes(plain):
    for value in [-5, 1.5, True, math.nan, None, "much", "-1G", ""]:
        refused("memory", lambda value=value: leat.Loader(plain, image=OPS, memory=value))
    with leat.Loader(plain, image=OPS, memory="64M") as loader:
        for value in [-5, True, 1e9, "x"]:
            with pytest.raises(leat.ArgumentError, match="memory: "):
                loader.memory = value
        loader.memory = 80 << 20
        assert loader.memory == 80 << 20
        with pytest.raises(leat.BudgetError, match="memory: batches of 101 samples need at least"):
            loader.memory = 1  # no epoch runs: it would fail at the next one
        assert loader.memory == 80 << 20 and len(next(iter(loader)).label) == 101


class Mine(leat.Loader):
    def __init__(self, path):
        super().__init__(path, 8, OPS)
        self.note = "of the caller"


def test_subclasses_have_attributes_of_their_own(plain):
    with Mine(plain) as loader:
        assert loader.note == "of the caller"
        with pytest.raises(AttributeError, match="read-only"):
            loader.batch_size = 3


def test_loader_ranks_and_epochs(plain):
    for rank, world in [(-1, 2), (0, 0), (1.0, 2), ("0", 2), (0, True), (2, 2), (math.nan, 2)]:
        with pytest.raises(leat.ArgumentError, match="rank: |world_size: "):
            leat.Loader(plain, image=OPS, rank=rank, world_size=world)
    with pytest.raises(leat.ArgumentError, match="both"):
        leat.Loader(plain, image=OPS, rank=0)
    with leat.Loader(plain, 8, OPS) as loader:
        for value in [-1, 1.0, "3", True, 2**63, None]:
            refused("epoch", lambda value=value: loader.set_epoch(value))
            refused("epoch", lambda value=value: loader.sample_ids(value))
        refused("start", lambda: loader.sample_ids(0, -1))
        refused("stop", lambda: loader.sample_ids(0, 0, 2.5))
        refused("port", lambda: loader.serve(70000))
        loader.set_epoch(2**63 - 1)
        state = loader.state_dict()
        next(iter(loader))
    with leat.Loader(plain, 8, OPS) as loader:
        loader.load_state_dict(state)
        assert loader.epoch == 2**63 - 1


def test_indices_weights_and_flags(plain):
    for value, words in [([1.7], "number 0 is"), ([0, -1], "number 1 is -1"), ([[1, 2]], "one row"),
                         (np.zeros(101, bool), "flatnonzero"), (["1"], "number 0"), ([True], "mask"), (3, "one row")]:
        with pytest.raises(leat.ArgumentError, match="indices: .*" + words):
            leat.Loader(plain, image=OPS, indices=value)
    for value in [[1.0], [1.0] * 102, [[1.0] * 101], ["a"] * 101, [True] * 101, 2.0]:
        refused("weights", lambda value=value: leat.Loader(plain, image=OPS, weights=value))
    refused("weights", lambda: leat.Loader(plain, image=OPS, weights=[1.0] * 101, indices=[1, 2]))
    for name in ["drop_last", "channels_last", "as_dict", "digest", "doctor"]:
        for value in ["no", 2, -1, 1.0, []]:
            refused(name, lambda name=name, value=value: leat.Loader(plain, image=OPS, **{name: value}))
    with leat.Loader(plain, 1, OPS, weights=[1] * 101, indices=range(101)) as loader:
        assert loader.samples == 101


def test_pack_writer_open_and_callbacks(plain, tmp_path):
    out = tmp_path / "x.leat"
    for name in ["max_side", "quality", "threads", "shuffle", "memory", "shard_bytes", "page_bytes"]:
        for value in [-1, 1.5, True, math.nan, "x", [1]]:
            refused(name, lambda name=name, value=value: leat.pack(plain, out, **{name: value}))
    for value in [-0.1, 1.1, math.nan, "0.5", True, None]:
        refused("mix_raw", lambda value=value: leat.pack(plain, out, images="mix", mix_raw=value))
    for name in ["trust", "resume", "force", "sync"]:
        refused(name, lambda name=name: leat.pack(plain, out, **{name: "yes"}))
    for name in ["page_bytes", "shard_bytes"]:
        for value in [-1, 1.5, True, math.nan, "x"]:
            refused(name, lambda name=name, value=value: leat.Writer(out, {"a": int}, **{name: value}))
    refused("replace", lambda: leat.Writer(out, {"a": int}, replace="no"))
    refused("verify", lambda: leat.open(plain, verify="no"))
    refused("every", lambda: leat.callbacks.Callback(every=0.5))
    refused("steps", lambda: leat.diagnose([], steps=-1))
    refused("seconds", lambda: leat.diagnose([], seconds=math.nan))
    assert not list(tmp_path.iterdir())


def test_ops_take_numbers_only():
    for value in ["224", True, math.nan, None, (True, 8)]:
        with pytest.raises(leat.ArgumentError, match="Resize.size: .* is not a (whole )?number"):
            leat.ops.Resize(value)


def test_attributes_are_read_only(plain):
    with leat.Loader(plain, 8, OPS) as loader:
        before = repr(loader)
        for name, value in [("batch_size", 4), ("order", "sequential"), ("image", []), ("seed", 3), ("rank", 1),
                            ("drop_last", True), ("num_workers", 4), ("pin_memory", True), ("path", "x")]:
            with pytest.raises(AttributeError, match=f"{name} is read-only: (make a new leat.Loader|loader.set)"):
                setattr(loader, name, value)
        assert repr(loader) == before and "order='random'" in before and len(next(iter(loader)).label) == 8
        loader.transform = lambda batch: batch.label  # it has an effect
        with pytest.raises(AttributeError, match="leat.Loader has no attribute 'foo'$"):
            loader.foo = 3
        with pytest.raises(AttributeError, match="no attribute 'transfrom'; did you mean 'transform'"):
            loader.transfrom = print
        with pytest.raises(AttributeError, match=r"epoch is read-only: loader.set_epoch\(...\) changes it"):
            loader.epoch = 2
        with pytest.raises(AttributeError, match="close is read-only"):
            loader.close = None
        with pytest.raises(leat.ArgumentError, match="^transform: 3 cannot be called"):
            loader.transform = 3
        assert next(iter(loader)).shape == (8,)


def test_defaults_are_those_of_c_and_of_the_command(plain):
    given = {n: p.default for n, p in inspect.signature(leat.Loader).parameters.items()}
    table = _leat.defaults()
    assert (given["batch_size"], given["cache"], given["memory"], given["image"]) == (
        table["batch_size"], table["cache"], table["memory"], table["ops"]) == (
        256, "os", 0, "RandomResizedCrop(224); RandomHorizontalFlip(0.5)")
    assert leat.Loader(plain).order == table["order"] == "random"
    command = [sys.executable, "-m", "leat", "load", plain, "--json"]
    report = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    digest = json.loads(report.splitlines()[-1])
    with leat.Loader(plain, image="RandomResizedCrop(224, like=pillow13); RandomHorizontalFlip(0.5)") as named, \
            leat.Loader(plain) as loader:
        a, b = next(iter(named)), next(iter(loader))
        assert (np.asarray(a.image) == np.asarray(b.image)).all() and digest["samples"] == len(b.label)


def test_balance_needs_no_order(plain):
    with leat.Loader(plain, 8, OPS, balance="label") as loader:
        assert loader.order == "random"
        next(iter(loader))


@pytest.mark.parametrize("drop", [None, False, True])
def test_empty_batches_are_announced_and_avoided(plain, drop):
    sizes = []
    for rank in range(2):  # 101 samples: one is left in the last global batch
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            with leat.Loader(plain, 10, OPS, rank=rank, world_size=2, drop_last=drop) as loader:
                sizes.append([len(b.label) for b in loader])
                assert len(loader) == len(sizes[-1]) == (6 if drop is False else 5)
                assert loader.drop_last is (drop is not False)
        lines = [str(w.message) for w in said if issubclass(w.category, leat.AdviceWarning)]
        words = {None: "1 of 101 samples is left out", False: "1 of 2 ranks gets an empty last batch"}
        assert len(lines) == (drop is not True) and (not lines or words[drop] in lines[0])
    if drop is False:
        assert sizes == [[10] * 5 + [1], [10] * 5 + [0]]
    else:
        assert sizes == [[10] * 5] * 2


def test_check_names_the_value():
    with pytest.raises(leat.ArgumentError, match="^n: 1.5 is not a whole number$"):
        _check.whole("n", 1.5)
    with pytest.raises(leat.ArgumentError, match="^n: 7 is above 6$"):
        _check.whole("n", 7, 0, 6)


@pytest.mark.parametrize("name, value", [
    ("keys", ["nope"]), ("keys", "abc"), ("keys", [3]), ("keys", 3), ("balance", 5), ("balance", "\ud800"),
    ("callbacks", 3), ("callbacks", "x"), ("callbacks", [3]), ("callbacks", False), ("image", 3), ("image", False),
    ("fields", 3), ("fields", "label"), ("fields", [3]), ("quarantine", 3), ("quarantine", ""), ("run", 3),
    ("run", ""), ("label", 3), ("transform", 3),
])
def test_wrong_arguments_are_named(pack, name, value):
    with pytest.raises(leat.ArgumentError, match=f"^{name}: "):
        leat.Loader(pack, 4, **{"as_": "numpy", name: value})


@pytest.mark.parametrize("value", [None, 3, "{}", [1]])
def test_what_is_no_state_or_path_is_named(pack, value):
    with leat.Loader(pack, 4, as_="numpy") as loader, pytest.raises(leat.ArgumentError, match="^state: "):
        loader.load_state_dict(value)
    if not isinstance(value, str):
        with pytest.raises(leat.ArgumentError, match="^path: "):
            leat.open(value)


def test_messages_name_what_there_is(plain, monkeypatch):
    with leat.open(plain) as dataset:
        sample = dataset[0]
        with pytest.raises(AttributeError, match=r"no field 'imag' \(it has image, label\)"):
            sample.imag
        assert getattr(sample, "imag", None) is None
    with pytest.raises(leat.ArgumentError, match="device: 'tpu' is not cpu, cuda or cuda:N"):
        leat.Loader(plain, 8, OPS, as_="numpy", device="tpu")
    with pytest.raises(leat.ArgumentError, match="indices: number 1 is 'a', not a whole number"):
        leat.Loader(plain, 8, OPS, indices=[1, "a"])
    with pytest.raises(leat.ArgumentError, match="cache: 'disk' is not one of os, process, device, disk:DIR"):
        leat.Loader(plain, 8, OPS, cache="disk")
    with pytest.raises(leat.ArgumentError, match="buckets has no effect: bucket is not given"):
        leat.Loader(plain, 8, OPS, buckets=[1, 2])
    for opened in (leat.Loader, leat.open):
        with pytest.raises(leat.ArgumentError, match="channels_last has no effect: the pipeline has ToLayout"):
            opened(plain, image=[leat.ops.CenterCrop(8), leat.ops.ToLayout("nhwc")], channels_last=True)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match='as_="torch" needs PyTorch, which is not installed'):
        leat.Loader(plain, 8, OPS, as_="torch")
