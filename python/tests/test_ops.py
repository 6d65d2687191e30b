# SPDX-License-Identifier: Apache-2.0
"""Ops: classes made from the C table."""

import inspect
import pickle

import numpy as np
import pytest

import leat
from leat import _leat, ops


def test_every_op_of_the_table_has_a_class_with_signature_and_doc():
    rows = _leat.ops()
    assert len(rows) == len(list(ops.names())) > 10
    for name, help_text, _kind, params in rows:
        cls = getattr(ops, name)
        assert list(inspect.signature(cls).parameters) == [p[0] for p in params]
        assert help_text[1:] in cls.__doc__
        for p in params:
            assert p[0] in cls.__doc__ and p[7] in cls.__doc__


def test_defaults_round_trip_through_the_parser():
    # an op written with all its defaults is the op written with none
    for name, _help, _kind, params in _leat.ops():
        cls = getattr(ops, name)
        if _kind == 7 or name == "ColorJitter" or any(p[2] is None for p in params):  # it needs a change to make
            continue
        op = cls()
        spelled = cls(**op.params)
        suffix = "" if name in ("MixUp", "CutMix", "Mosaic", "CopyPaste") else f"; {op}"
        full = "" if name in ("MixUp", "CutMix", "Mosaic", "CopyPaste") else f"; {spelled}"
        head = "RandomResizedCrop(32)"
        tail = "; CenterCrop(32)" if name in ("RandomZoomOut", "RandomIoUCrop") else ""  # it needs a fixed size after it
        assert _leat.pipeline_check(head + suffix + tail) == _leat.pipeline_check(head + full + tail), name


def test_text_of_a_pipeline():
    pipeline = [ops.RandomResizedCrop((96, 128), scale=(0.5, 1)), "RandomHorizontalFlip",
                ops.Normalize((0.5, 0.5, 0.5), (0.2, 0.2, 0.2)), ops.ToDtype("float16")]
    text = ops.text(pipeline)
    assert text == ("RandomResizedCrop(size=(96, 128), scale=(0.5, 1)); RandomHorizontalFlip; "
                    "Normalize(mean=(0.5, 0.5, 0.5), std=(0.2, 0.2, 0.2)); ToDtype(dtype=f16)")
    assert _leat.pipeline_check(text) == (96, 128, 3, "f16", "nchw", 96 * 128 * 3 * 2)


@pytest.mark.parametrize("dtype", ["f16", "float16", np.float16, np.dtype("float16")])
def test_names_of_dtypes(dtype):
    assert str(ops.ToDtype(dtype)) == "ToDtype(dtype=f16)"


@pytest.mark.torch
def test_torch_dtypes():
    import torch

    assert str(ops.ToDtype(torch.bfloat16)) == "ToDtype(dtype=bf16)"
    assert str(ops.ToLayout(torch.channels_last)) == "ToLayout(layout=nhwc)"


def test_ops_are_values():
    a = ops.RandomHorizontalFlip(p=0.25)
    assert a == ops.RandomHorizontalFlip(0.25) and hash(a) == hash(ops.RandomHorizontalFlip(0.25))
    assert a != ops.RandomHorizontalFlip()
    assert pickle.loads(pickle.dumps(a)) == a
    with pytest.raises(AttributeError):
        a.text = "other"


@pytest.mark.parametrize("make, words", [
    (lambda: ops.RandomHorizontalFlip(p=2), "RandomHorizontalFlip.p: 2 is out of range"),
    (lambda: ops.ToDtype("f64"), "ToDtype.dtype: 'f64' is not one of"),
    (lambda: ops.RandomResizedCrop("big"), "RandomResizedCrop.size: 'b' is not a number"),
    (lambda: ops.text([ops.RandomHorizontalFlip]), "did you mean RandomHorizontalFlip()?"),
])
def test_wrong_parameters_are_named(make, words):
    with pytest.raises(leat.ArgumentError) as e:
        make()
    assert words.split("'b'")[0] in str(e.value)


def test_missing_and_unknown_parameters():
    with pytest.raises(TypeError):
        ops.RandomResizedCrop()
    with pytest.raises(TypeError):
        ops.RandomResizedCrop(224, sale=(0, 1))


def test_fast_pixels_are_near_the_exact_ones(plain):
    def epoch(like):
        with leat.Loader(plain, 101, [ops.RandomResizedCrop(24, like=like)], order="sequential", as_="numpy") as loader:
            return next(iter(loader)).image.astype(int)

    away = np.abs(epoch("fast") - epoch("pillow13"))
    assert 0 < away.mean() < 1 and (away > 4).mean() < 0.01


def test_misspelt_names_get_a_hint():
    with pytest.raises(AttributeError, match="did you mean RandomErasing"):
        ops.RandomErase  # noqa: B018
    assert not hasattr(ops, "Nothing")


@pytest.mark.parametrize("text, shown", [
    ("CenterCrop(32.9)", "CenterCrop.size"), ("RandomResizedCrop(32.5)", "RandomResizedCrop.size"),
    ("Resize(8.5)", "Resize.size"), ("CenterCrop((8, 8.5))", "CenterCrop.size"),
    ("RandomCrop(8, padding=1.5)", "RandomCrop.padding"), ("Pad((1, 2, 3, 0.5))", "Pad.padding"),
    ("GaussianBlur(3.5)", "GaussianBlur.kernel_size"), ("CenterCrop(float('inf'))", "CenterCrop.size"),
])
def test_sizes_are_whole_numbers(pack, text, shown):
    with pytest.raises(leat.ArgumentError, match=shown):
        eval(text, dict(vars(ops), float=float))
    if "inf" not in text:
        with pytest.raises(leat.ArgumentError, match=f"{shown}: .* is not a whole number"):
            leat.Loader(pack, 4, text, as_="numpy")


def test_numpy_scalars_are_numbers():
    three, half = np.int64(3), np.float64(0.5)
    for op, same in [
            (ops.CenterCrop(three), ops.CenterCrop(3)), (ops.CenterCrop(np.float32(3)), ops.CenterCrop(3)),
            (ops.RandomResizedCrop(three, scale=(half, np.float32(1))), ops.RandomResizedCrop(3, scale=(0.5, 1))),
            (ops.Resize(np.array(3)), ops.Resize(3)), (ops.Pad(np.array([1, 2])), ops.Pad((1, 2))),
            (ops.GaussianBlur(three), ops.GaussianBlur(3)), (ops.RandomRotation(half), ops.RandomRotation(0.5)),
            (ops.RandomCrop(three, padding=np.uint8(1)), ops.RandomCrop(3, padding=1)),
            (ops.Normalize(half, half), ops.Normalize(0.5, 0.5)),
            (ops.RandomCrop(3, pad_if_needed=np.True_), ops.RandomCrop(3, pad_if_needed=True))]:
        assert op == same
    for bad in (np.True_, np.array([[3]]), np.float64("nan"), np.str_("3")):
        with pytest.raises(leat.ArgumentError, match="CenterCrop.size"):
            ops.CenterCrop(bad)


@pytest.mark.parametrize("name, use", [("ToTensor", 'ToDtype\\("float32"\\)'), ("Compose", "a list of ops"), ("PILToTensor", "leave it out")])
def test_names_of_torchvision_are_explained(name, use):
    with pytest.raises(AttributeError, match=f"there is no op '{name}': .*{use}"):
        getattr(leat.ops, name)
