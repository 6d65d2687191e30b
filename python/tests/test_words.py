# SPDX-License-Identifier: Apache-2.0
"""Words of a DataLoader, and hints for misspelt ones."""

from __future__ import annotations

import collections.abc
import copy
import pickle

import pytest

import leat


def test_shuffle_and_num_workers_are_understood(plain: str) -> None:
    def first(**options: object) -> list[int]:
        return next(iter(leat.Loader(plain, 32, "CenterCrop(8)", as_="numpy", **options))).sample_id.tolist()

    assert first(shuffle=False) == list(range(32))
    assert first(shuffle=True, num_workers=2) == first(order="random", threads=1) != list(range(32))
    assert leat.Loader(plain, shuffle=True, order="quasi_random").order == "quasi_random"
    with pytest.raises(leat.ArgumentError, match="contradicts order='sequential'"):
        leat.Loader(plain, shuffle=True, order="sequential")
    with pytest.raises(leat.ArgumentError, match="shuffle: False contradicts order='random'; give one of them"):
        leat.Loader(plain, shuffle=False, order="random")  # it was sequential
    with pytest.raises(leat.ArgumentError, match="contradicts threads=2"):
        leat.Loader(plain, num_workers=3, threads=2)
    with pytest.raises(leat.ArgumentError, match="neither True nor False"):
        leat.Loader(plain, shuffle="yes")


@pytest.mark.parametrize("word, hint", [
    ("sampler", "indices="), ("collate_fn", "transform="), ("pin_memory", "device="), ("prefetch_factor", "prefetch="),
    ("persistent_workers", "leave it out"), ("generator", "seed="), ("batch_sampler", "batch_size="),
    ("worker_init_fn", "sample_fn="), ("timeout", "leave it out"), ("workers", "threads="), ("defaults", "leat.Mix"),
    ("batches", "leat.Mix"), ("repeat", "leat.Mix"), ("choose", "leat.Mix")])
def test_other_words_are_explained_in_one_line(plain: str, word: str, hint: str) -> None:
    with pytest.raises(TypeError, match=f"no argument '{word}': .*{hint}") as caught:
        leat.Loader(plain, **{word: None})
    assert "\n" not in str(caught.value)


def test_two_outputs_of_one_name(plain: str, tmp_path) -> None:
    """The image would take the place of the field."""
    with pytest.raises(leat.ArgumentError, match="two outputs are named 'label'"):
        leat.Loader(plain, 4, {"label": ("image", "CenterCrop(8)")})
    with pytest.raises(leat.ArgumentError, match="two outputs are named 'label'"):
        leat.open(plain, image={"label": ("image", "CenterCrop(8)")})[0]
    with pytest.raises(leat.ArgumentError, match="two outputs are named 'sample_id'"):
        leat.Loader(plain, 4, {"sample_id": ("image", "CenterCrop(8)")})
    leat.Loader(plain, 4, {"label": ("image", "CenterCrop(8)")}, fields=[])
    with leat.Writer(tmp_path / "own.leat", {"sample_id": int, "x": int}) as w:
        w.append({"sample_id": 7, "x": 1})
    with pytest.raises(leat.ArgumentError, match="two outputs are named 'sample_id'"):
        leat.Loader(tmp_path / "own.leat", 1)
    assert leat.Loader(tmp_path / "own.leat", 1, fields=["x"]).field_names == ("x", "sample_id")


@pytest.mark.parametrize("name", ["label", "classes", "weights", "image"])
@pytest.mark.parametrize("role, words", [("follow", '"follow"'), (leat.ops.Labels(), r"leat\.ops\.Labels\(\.\.\.\)")])
def test_the_role_of_a_field_named_as_an_argument(plain: str, name: str, role: object, words: str) -> None:
    with pytest.raises(leat.ArgumentError, match=f'^{name}: is an argument of the loader.*use follow={{"{name}": {words}}}'):
        leat.Loader(plain, **{name: role})


def test_hints_for_misspelt_names(plain: str) -> None:
    with pytest.raises(TypeError, match="'btach_size'.*did you mean 'batch_size'"):
        leat.Loader(plain, btach_size=3)
    with pytest.raises(TypeError, match="'batch'.*did you mean 'batch_size'"):  # it suggested 'path'
        leat.Loader(plain, batch=32)
    with pytest.raises(TypeError, match="RandomResizedCrop has no parameter 'scael'; did you mean 'scale'"):
        leat.ops.RandomResizedCrop(32, scael=(0.5, 1))
    with pytest.raises(TypeError, match="RandomResizedCrop: missing a required argument: 'size'"):
        leat.ops.RandomResizedCrop()
    with pytest.raises(AttributeError, match="did you mean CenterCrop"):
        leat.ops.CentreCrop
    with pytest.raises(leat.ArgumentError, match="'sequental' is not one of .*did you mean 'sequential'"):
        leat.Loader(plain, order="sequental")


def test_one_is_singular(tmp_path) -> None:
    path = tmp_path / "one.leat"
    with leat.Writer(path, {"label": int}, classes={"label": ["a"]}, sync=False) as w:
        with pytest.raises(leat.ArgumentError, match="classes has 1 name, for 0 to 0"):
            w.append({"label": 3})
        w.append({"label": 0})
        assert "1 sample)" in repr(w)
    assert "1 sample," in repr(leat.open(path))
    with leat.Loader(path, 1, None) as loader:
        assert "1 sample, 1 batch)" in repr(loader)
    with pytest.raises(leat.ArgumentError, match="weights: 2 given for 1 sample"):
        leat.Loader(path, 1, None, weights=[1, 2])


def test_a_field_with_the_name_of_a_keyword(tmp_path) -> None:
    with leat.Writer(tmp_path / "class.leat", {"class": int}, sync=False) as w:
        w.append({"class": 3}, key="a")
    with leat.Loader(tmp_path / "class.leat", 1, None, as_="numpy") as loader:
        batch = next(iter(loader))
    assert batch["class"].tolist() == [3]
    assert getattr(batch, "class").tolist() == batch._0.tolist() == [3]
    assert batch._fields == batch.keys() == ("class", "sample_id") and list(batch._asdict()) == ["class", "sample_id"]
    assert batch._replace(**{"class": 5}).asdict() == {"class": 5, "sample_id": batch.sample_id}
    with pytest.raises(ValueError, match="the batch has no field '_0'"):
        batch._replace(_0=5)


def test_samples_are_copies(plain) -> None:
    with leat.open(plain) as ds:
        sample = ds[0]
        with pytest.raises(AttributeError, match=r"changed by name: sample\['label'\] = .*leat.Writer\(path, append=True\)"):
            sample.label = 3
        sample["label"] = 3
        assert sample.label == 3 and copy.deepcopy(sample).key == sample.key == ds[0].key


def test_why_an_iteration_ended(plain) -> None:
    def ended(change) -> None:
        with leat.Loader(plain, 8, None) as loader:
            run = iter(loader)
            next(run)
            keep = change(loader)
            next(run)
            del keep

    for change, why in ((leat.Loader.close, "the loader was closed"), (iter, "another iteration began"),
                        (lambda loader: loader.load_state_dict(loader.state_dict()), "a state was loaded")):
        with pytest.raises(leat.StateError, match=f"^this iteration ended when {why}$"):
            ended(change)


def test_a_loader_is_not_a_sequence(plain) -> None:
    with leat.Loader(plain, 8, None) as loader:
        with pytest.raises(TypeError, match="already a loader of batches: iterate over it"):
            loader[0]
        for wrong in (pickle.dumps, copy.deepcopy):
            with pytest.raises(TypeError, match="cannot be pickled or copied: make one in each process"):
                wrong(loader)
        whole = len(loader)
        assert sum(1 for _ in loader) == whole and not isinstance(loader, collections.abc.Sequence)
        torch = pytest.importorskip("torch")
        with pytest.raises(TypeError, match="already a loader of batches: iterate over it"):
            next(iter(torch.utils.data.DataLoader(loader, batch_size=4)))


def test_mistakes_of_a_newcomer(plain, tmp_path) -> None:
    cases = [
        (leat.ArgumentError, "indices: one row of numbers is expected, not generator: list(...) makes one",
         lambda: leat.Loader(plain, indices=(i for i in range(3)))),
        (leat.ArgumentError, "indices: one row of numbers is expected, not str", lambda: leat.Loader(plain, indices="0-3")),
        (leat.ArgumentError, "weights: one row of numbers is expected, not int", lambda: leat.Loader(plain, weights=3)),
        (leat.ArgumentError, "drop_last: 'yes' is neither True, False nor None", lambda: leat.Loader(plain, drop_last="yes")),
        (leat.ArgumentError, "dataset: it has no samples", lambda: leat.from_dataset([], tmp_path / "none.leat")),
        (leat.ArgumentError, "dataset: it has no samples", lambda: leat.from_dataset(iter([]), tmp_path / "none.leat")),
        (leat.ArgumentError, "field 'x': 'uint8' is not a type; use one of 'image', 'bytes', 'text', 'int', 'float', 'json', "
         'int (one whole number), float, str, bytes, dict, or, for an array, (dtype, shape): ("uint8", (3, 4))',
         lambda: leat.Writer(tmp_path / "none.leat", {"x": "uint8"})),
        (leat.ArgumentError, "pipeline: ',' or ')' is expected at the end of 'Resize(8'", lambda: leat.Loader(plain, 8, "Resize(8")),
    ]
    for kind, words, call in cases:
        with pytest.raises(kind) as caught:
            call()
        assert str(caught.value) == words
    assert not (tmp_path / "none.leat").exists()
    with pytest.raises(TypeError, match="has no argument 'shufle', .*; did you mean 'shuffle'"):
        leat.Loader(plain, shufle=True)
    with leat.Writer(tmp_path / "y.leat", {"y": int}) as w:
        w.append({"y": 1})
        for sample in ({}, {"y": None}):
            with pytest.raises(leat.ArgumentError, match="^field 'y' is missing or None in sample 1: int fields have a value"):
                w.append(sample)


def test_choices_in_any_case(plain) -> None:
    def made(image) -> bytes:
        with leat.Loader(plain, 4, image, order="sequential", as_="numpy") as loader:
            return next(iter(loader)).image.tobytes()

    as_ops = made([leat.ops.Resize((8, 8), interpolation="Bicubic"), leat.ops.ToLayout("NHWC"), leat.ops.ToDtype("F16")])
    assert as_ops == made("Resize((8, 8), interpolation=BICUBIC); ToLayout(NHWC); ToDtype('F16')")
    with pytest.raises(leat.ArgumentError, match="ToLayout.*'NHCW' is not one of nchw.nhwc"):
        made("Resize((8, 8)); ToLayout(NHCW)")
