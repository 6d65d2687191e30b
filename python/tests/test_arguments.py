# SPDX-License-Identifier: Apache-2.0
"""Every public function with wrong arguments: one line that names the argument, never a bare exception of another
layer, never a value that is taken for another."""

import inspect
import math
import os
import re
import signal

import numpy as np
import pytest

import leat
from leat import _leat

WRONG = [None, True, -1, 0, 3, 1.5, math.nan, math.inf, 2**70, "", "nonsense", "a\0b", "\ud800", b"\xff", [], [3], ["x"],
         {}, {"a": object()}, {3: 4}, object(), print, np.zeros((2, 2)), np.array([np.nan])]


def trouble(call, *names):
    """What is wrong with how `call` treats its arguments: nothing when it works, or raises leat.Error with one line."""
    try:
        made = call()
    except leat.Error as error:
        text = str(error)
        return None if len(text) > 8 and "\n" not in text else f"says {text!r}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    close = getattr(made, "abort", None) or getattr(made, "close", None)
    if callable(close):
        close()
    return None


def test_the_orders_are_those_of_the_library():
    """A static type cannot be read from the table at run time: it is compared with it."""
    written = inspect.signature(leat.Loader).parameters["order"].annotation
    assert sorted(re.findall(r"""["'](\w+)["']""", str(written))) == sorted(name for name, _ in _leat.orders())
    assert _leat.orders()[:3] == (("sequential", False), ("random", True), ("quasi_random", True))  # values are in the ABI


def check(calls):
    """calls: (what is called, function of one argument). Each with every wrong value."""
    rows = [(f"{name}({value!r})", trouble(lambda: call(value))) for name, call in calls for value in WRONG]
    wrong = [f"{what}: {how}" for what, how in rows if how is not None]
    assert not wrong, "\n".join(wrong)


def every_argument(function, required, **fixed):
    """Calls function with one wrong value at a time, all others as they must be."""
    parameters = inspect.signature(function).parameters.items()
    names = [n for n, p in parameters if p.kind is not p.VAR_KEYWORD and n not in fixed]
    check([(f"{function.__name__} {name}", lambda value, name=name: function(**{**required, **fixed, name: value}))
           for name in names])


@pytest.fixture
def inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # "nonsense" may become a file
    return tmp_path


def test_loader(plain, inside):
    every_argument(leat.Loader, {"path": plain}, image="Resize((8, 8))")
    check([("image", lambda value: leat.Loader(plain, image=value)),
           ("image of a dict", lambda value: leat.Loader(plain, image={"image": value})),
           ("image of a list", lambda value: leat.Loader(plain, image=[value])),
           ("name of an image", lambda value: leat.Loader(plain, image={str(value): ("image", "Resize((8, 8))")})),
           ("follow of a dict", lambda value: leat.Loader(plain, follow={"label": value}))])
    for name in (3, None, b"x"):
        assert trouble(lambda name=name: leat.Loader(plain, image={name: ("image", "Resize((8, 8))")})) is None


def test_methods_of_a_loader(plain, inside):
    with leat.Loader(plain, 8, "Resize((8, 8))") as loader:
        for name in ("set_epoch", "sample_ids", "load_state_dict", "report", "serve"):
            every_argument(getattr(loader, name), {"epoch": 0} if name == "sample_ids" else {})
        state = loader.state_dict()
        check([(f"state {key}", lambda value, key=key: loader.load_state_dict({**state, key: value})) for key in state])
        assert len(next(iter(leat.Loader(plain, 8, "Resize((8, 8))"))).label) == 8


def test_writer(inside):
    good = {"path": "w.leat", "fields": {"label": int, "x": ("float32", (2,))}, "replace": True}
    every_argument(leat.Writer, good)
    with leat.Writer(**good) as w:
        check([("append", w.append), ("extend", w.extend), ("label", lambda v: w.append({"label": v, "x": [1, 2]})),
               ("x", lambda v: w.append({"label": 1, "x": v})), ("of x", lambda v: w.append({"label": 1, "x": [1, v]})),
               ("key", lambda v: w.append({"label": 1, "x": [1, 2]}, key=v))])
    with leat.open("w.leat") as ds:
        assert len(ds) == len(w) and all(0 <= n <= 3 or n == -1 for n in ds.column("label"))


def test_from_dataset(inside):
    good = {"dataset": [{"a": 1}, {"a": 2}], "output": "d.leat", "force": True}
    every_argument(leat.from_dataset, good)
    assert leat.from_dataset(**good)["samples"] == 2


def test_pack_export_and_open(plain, inside):
    every_argument(leat.pack, {"source": plain, "output": "p.leat", "force": True})
    every_argument(leat.export, {"path": plain, "folder": "files", "force": True})
    every_argument(leat.open, {"path": plain})
    every_argument(leat.open, {"path": plain, "image": "Resize((8, 8))"})
    every_argument(leat.load_plugin, {})


def test_dataset(plain):
    with leat.open(plain) as ds:
        check([("[]", ds.__getitem__), ("find", ds.find), ("column", ds.column), ("classes", ds.classes),
               ("keys[]", ds.keys.__getitem__), ("keys.index", ds.keys.index), ("decode", ds[0]["image"].decode),
               ("in", ds.__contains__), ("in keys", ds.keys.__contains__)])


def test_text(inside):
    with open("t.jsonl", "w") as f:
        f.write('{"id": 1, "text": "one line of text"}\n')
    every_argument(leat.filter_text, {"source": "t.jsonl", "output": "kept", "force": True})
    every_argument(leat.dedup_text, {"source": "t.jsonl", "output": "unique", "force": True})
    with open("e.jsonl", "w") as f:
        f.write('{"text": "a text that has at least as many words as thirteen which is what it takes"}\n')
    every_argument(leat.decontaminate_text, {"source": "t.jsonl", "output": "clean", "evals": "e.jsonl", "force": True})
    every_argument(leat.score_text, {})
    every_argument(leat.text_signatures, {"texts": "one"})


def test_text_arrow(inside):
    pq = pytest.importorskip("pyarrow.parquet")
    rows = {"text": ["one line of text"]}
    every_argument(leat.filter_table, {"table": rows})
    every_argument(leat.dedup_table, {"table": rows})
    pq.write_table(pytest.importorskip("pyarrow").table(rows), "t.parquet")
    every_argument(leat.filter_parquet, {"source": "t.parquet", "output": "rows", "force": True})
    every_argument(leat.dedup_parquet, {"source": "t.parquet", "output": "unique", "force": True})


def test_images(inside, plain):
    every_argument(leat.check, {"source": plain, "output": "check.leat", "force": True})
    every_argument(leat.dedup_images, {"source": [plain, plain], "output": "dup.leat", "force": True})
    every_argument(leat.view, {"pack": plain})
    with leat.Writer("v.leat", {"vector": ("float32", (4,))}) as w:
        w.append({"vector": np.ones(4, np.float32)}, key="a")
    every_argument(leat.dedup_semantic, {"embeddings": "v.leat", "output": "near.leat", "force": True})
    every_argument(leat.curate, {"source": plain, "output": "curated", "plan": True})
    every_argument(leat.select, {"pack": plain, "output": "chosen.leat", "strategies": "random", "force": True})


def test_callbacks_diagnose_and_judge(inside):
    check([(kind, getattr(leat.callbacks, kind)) for kind in ("JsonLines", "TensorBoard", "WandB", "Lightning")])
    every_argument(leat.callbacks.Callback, {})
    every_argument(leat.diagnose, {"iterable": []}, seconds=0.01)
    every_argument(leat.judge, {})
    check([("steps", lambda value: leat.judge({"steps": value})), ("name", lambda value: leat.judge({str(value): 1}))])


def test_ops():
    for name in leat.ops.names():
        op = getattr(leat.ops, name)
        needed = {n: (8 if name != "Normalize" else 0.5) for n, p in inspect.signature(op).parameters.items()
                  if p.default is p.empty}
        every_argument(op, needed)


# ---- what was found, one by one ------------------------------------------------------------------


@pytest.mark.parametrize("line, call", [
    ("fields: 3 is not a dict", lambda: leat.Writer("x.leat", 3)),
    ("fields: a pack needs at least one field", lambda: leat.Writer("x.leat", {})),
    ("fields: 3 is not the name of a field", lambda: leat.Writer("x.leat", {3: int})),
    ("classes: 3 is not a dict", lambda: leat.Writer("x.leat", {"a": int}, classes=3)),
    ("classes: 'ab' is not a list of str", lambda: leat.Writer("x.leat", {"a": int}, classes={"a": "ab"})),
    ("classes: there is no field 'b'", lambda: leat.Writer("x.leat", {"a": int}, classes={"b": ["x"]})),
    ("classes: field 'a' is float: only int", lambda: leat.Writer("x.leat", {"a": float}, classes={"a": ["x"]})),
    ("classes: 'x' is the name of both 0 and 2 of field 'a'",
     lambda: leat.Writer("x.leat", {"a": int}, classes={"a": ["x", "y", "x"]})),
    ("provenance: 3 is not a dict", lambda: leat.Writer("x.leat", {"a": int}, provenance=3)),
    ("provenance: not a JSON value", lambda: leat.Writer("x.leat", {"a": int}, provenance={"a": object()})),
    ("dataset: 5 is not a dataset", lambda: leat.from_dataset(5, "x.leat")),
    ("keys: 3 cannot be called", lambda: leat.from_dataset([{"a": 1}], "x.leat", keys=3)),
    ("progress: 3 cannot be called", lambda: leat.from_dataset([{"a": 1}], "x.leat", progress=3)),
    ("fields: 3 is not a dict", lambda: leat.from_dataset([{"a": 1}], "x.leat", 3)),
    ("force: 2 is neither True nor False", lambda: leat.from_dataset([{"a": 1}], "x.leat", force=2)),
    ("progres: leat.from_dataset has no such argument", lambda: leat.from_dataset([{"a": 1}], "x.leat", progres=3)),
    ("report: 3 is not a path", lambda: leat.pack("x", "x.leat", report=3)),
    ("progress: 3 cannot be called", lambda: leat.pack("x", "x.leat", progress=3)),
    ("keys: 3 is not a list", lambda: leat.pack("x", "x.leat", keys=3)),
    ("source: None is not a path", lambda: leat.pack(None, "x.leat")),
    ("parts: '..' is not a name of a part", lambda: leat.split("x.leat", {"..": 0.5})),
    ("batch_size: 0 is out of range (1 to 1048576)", lambda: leat.train("x.leat", output="x", batch_size=0)),
    ("source: the list of paths is empty", lambda: leat.pack([], "x.leat")),
    ("output: 3 is not a path", lambda: leat.pack("x", 3)),
    ("folder: 3 is not a path", lambda: leat.export("x", 3)),
])
def test_the_line_names_the_argument(inside, line, call):
    with pytest.raises(leat.ArgumentError) as caught:
        call()
    assert str(caught.value).startswith(line), caught.value
    assert os.listdir(inside) == []


@pytest.mark.parametrize("line, more", [
    ("keys: the list is empty", {"keys": []}), ("as_: [3] is not one of auto", {"as_": [3]}),
    ("image: ", {"image": "a\0"}), ("sample_fn: 'x' is not a plugin", {"sample_fn": "x"}),
    ("sample_fn: -1 is not the address", {"sample_fn": -1}), ("sample_fn: 5 is not the address", {"sample_fn": 5}),
])
def test_the_line_names_the_argument_of_a_loader(plain, line, more):
    with pytest.raises(leat.ArgumentError) as caught:
        leat.Loader(plain, 4, **more)
    assert str(caught.value).startswith(line), caught.value


def test_more_ranks_say_what_they_leave_out(plain):
    """101 samples in batches of 12: one rank keeps the last 5, six ranks cannot share them."""
    with leat.Loader(plain, 12, "Resize((8, 8))") as one:
        for _ in zip(range(3), one):
            pass
        state = one.state_dict()
    with pytest.warns(leat.AdviceWarning, match="5 of 101 samples are left out"), \
            leat.Loader(plain, 2, "Resize((8, 8))", rank=0, world_size=6) as six:
        with pytest.warns(leat.AdviceWarning, match="^the last 5 samples of epoch 0 are left out: 6 ranks cannot share"):
            six.load_state_dict(state)
        assert sum(1 for _ in six) == 5  # of the 6 batches that are left


def test_samples_that_are_not_there(plain):
    with leat.open(plain) as ds:
        for index in (101, -102, 10**30):
            with pytest.raises(IndexError, match=rf"plain.leat: there is no sample {index}; numbers go from 0 to 100$"):
                ds[index]
            with pytest.raises(leat.SampleIndexError):
                ds.keys[index]
        with pytest.raises(KeyError) as caught:
            ds["nokey"]
        assert str(caught.value) == f"{plain}: there is no sample with the key 'nokey'"
        assert isinstance(caught.value, leat.MissingKeyError) and isinstance(caught.value, leat.Error)
        with pytest.raises(leat.MissingKeyError, match="there is no field 'nofield'; it has image, label"):
            ds.classes("nofield")
        for index in (1.5, None, [1], True, False, np.True_):
            for read in (ds.__getitem__, ds.keys.__getitem__, lambda i: ds.__getitems__([0, i])):
                with pytest.raises(leat.ArgumentError, match="is not a sample's number, a key or a slice"):
                    read(index)


def test_true_is_no_number(inside, plain):
    """What takes whole numbers outside the tables that every_argument() walks."""
    for shape in (True, (True,), (2, False)):
        with pytest.raises(leat.ArgumentError, match="field 'x'.*True and False are not sizes"):
            leat.Writer("x.leat", {"x": ("uint8", shape)})
    for more in ({"weights": [True, 1]}, {"repeat": [True, 1]}, {"choose": [True, 1]}, {"choose": [1, False]}):
        with pytest.raises(leat.ArgumentError, match=f"{next(iter(more))}.*: (True|False) is not a"):
            leat.Mix([plain, plain], **more)


@pytest.mark.parametrize("call", [leat.open, lambda path, image: leat.Loader(path, 4, image)])
def test_dicts_of_images_say_what_they_hold(plain, call):
    for row in ([leat.ops.Resize((8, 8))], [leat.ops.Resize((8, 8)), leat.ops.RandomHorizontalFlip()], "Resize((8, 8))", 3,
                leat.ops.Resize((8, 8))):
        with pytest.raises(leat.ArgumentError, match=r"^image: .* is not a pair of a field and a pipeline: a dict is "
                                                     r"\{name: \(field, pipeline\)\}, and a single pipeline needs no dict$"):
            call(plain, image={"image": row})


def test_samples_of_a_writer(inside):
    with leat.Writer("w.leat", {"label": int}, classes={"label": ["cat", "dog"]}) as w:
        for value, line in ((5, "sample 0: 5 is not a dict or a sequence"), (None, "sample 0: None is not"),
                            ("ab", "sample 0: 'ab' is not"), ([1, 2], "sample 0: 1 values are expected, not 2"),
                            ({"label": 2}, "field 'label', sample 0: 2 is not a class: classes has 2 names, for 0 to 1"),
                            ({"label": -2}, "field 'label', sample 0: -2 is not a class")):
            with pytest.raises(leat.ArgumentError) as caught:
                w.append(value)
            assert str(caught.value).startswith(line), caught.value
        w.extend([[0], {"label": 1}, [-1]])
    with leat.Writer("w.leat", append=True) as w:
        w.append({"label": -1})
    with leat.open("w.leat") as ds:
        assert ds.column("label").tolist() == [0, 1, -1, -1] and ds.classes() == ["cat", "dog"]


class Dying:
    """A dataset one of whose samples ends the process that makes it."""

    def __init__(self, how):
        self.how = how

    def __len__(self):
        return 100

    def __getitem__(self, i):
        if i == 37:
            self.how()
        return {"a": i}


class NoCopy(Exception):
    def __init__(self, one, two):
        super().__init__("odd")


def test_a_dying_worker_is_named(inside):
    for how, words in ((lambda: os._exit(3), "died with exit code 3"),
                       (lambda: os.kill(os.getpid(), signal.SIGKILL), "died by signal 9")):
        for workers in (1, 3):
            with pytest.raises(leat.DataError) as caught:
                leat.from_dataset(Dying(how), "d.leat", workers=workers, force=True)
            assert str(caught.value) == f"sample 37: the process that made it {words}"
            assert caught.value.sample_id == 37


@pytest.mark.parametrize("workers", [0, 2])
def test_a_sample_that_raises_is_named(inside, workers):
    def fail():
        raise KeyError("no such row")

    with pytest.raises(KeyError, match="no such row") as caught:
        leat.from_dataset(Dying(fail), "d.leat", workers=workers, force=True)
    assert "leat: dataset[37] raised this" in caught.value.__notes__

    def odd():
        raise NoCopy(1, 2)

    if workers:
        with pytest.raises(leat.DataError, match="^sample 37: NoCopy: odd"):
            leat.from_dataset(Dying(odd), "d.leat", workers=workers, force=True)


def test_equal_class_names_of_a_dataset_get_their_number(inside):
    from types import SimpleNamespace

    from leat._from_dataset import _names

    assert _names(["a", "b"]) == ["a", "b"]
    assert _names([("crane", "bird"), ("crane",), "crane"]) == ["crane, bird", "crane (1)", "crane (2)"]
    class Folder(SimpleNamespace):
        def __getitem__(self, i):
            raise IndexError

    folder = Folder(samples=[], classes=["x", "x"], root=".", loader=None)
    assert leat.from_dataset(folder, "f.leat")["samples"] == 0
    assert leat.open("f.leat").classes() == ["x (0)", "x (1)"]


def test_ops_as_transform_are_told_of_image(tmp_path):
    for transform in ([leat.ops.CenterCrop(8)], leat.ops.CenterCrop(8)):
        with pytest.raises(leat.ArgumentError, match=r"transform: ops belong to image=\[...\]"):
            leat.Loader(tmp_path / "p.leat", transform=transform)
