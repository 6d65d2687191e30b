# SPDX-License-Identifier: Apache-2.0
"""Words of a DataLoader, and hints for misspelt ones."""

from __future__ import annotations

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
