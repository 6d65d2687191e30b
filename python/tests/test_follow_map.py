# SPDX-License-Identifier: Apache-2.0
"""Fields that follow an image in map-style datasets: the values of the loader."""

from __future__ import annotations

import numpy as np
import pytest
from test_follow import MOVES, data, pack, palette_png, write  # noqa: F401: fixtures

import leat
from leat import ops

ROLES = {"mask": "follow", "boxes": "follow", "category": "follow", "points": "follow"}
TURNS = [ops.RandomAffine(30, translate=(0.1, 0.1)), ops.ColorJitter(0.3), ops.RandomResizedCrop(33)]


def loaded(path, pipeline, epochs=1, **options):
    """Samples of the loader by (epoch, number)."""
    found = {}
    with leat.Loader(path, 16, pipeline, order="random", seed=2, as_="numpy", **options) as loader:
        for epoch in range(epochs):
            for batch in loader:
                for i, sample in enumerate(batch.sample_id.tolist()):
                    found[epoch, sample] = {name: value[i] for name, value in batch.items()}
    return found


def same(one, other):
    assert set(one) == set(other)
    for name, value in one.items():
        np.testing.assert_array_equal(np.asarray(value), np.asarray(other[name]), err_msg=name)
        assert np.asarray(value).dtype == np.asarray(other[name]).dtype or name in ("label", "sample_id"), name


@pytest.mark.parametrize("pipeline", [MOVES, TURNS])
def test_the_values_of_the_loader(pack, pipeline):  # noqa: F811
    want = loaded(pack, pipeline, 2, **ROLES)
    ds = leat.open(pack, image=pipeline, seed=2, as_="numpy", **ROLES)
    for epoch in range(2):
        ds.set_epoch(epoch)
        for i, sample in enumerate(ds.__getitems__(range(len(ds)))):
            same(sample, want[epoch, i])
            same(ds[i], want[epoch, i])
    assert any(len(s["boxes"]) == 0 for s in want.values()) and any(len(s["boxes"]) > 1 for s in want.values())


def test_views_and_roles_with_parameters(tmp_path, data):  # noqa: F811
    path = write(str(tmp_path / "a.leat"), data, "cxcywh", "float64", relative=True)
    image = {"one": ("image", MOVES), "two": ("image", TURNS)}
    roles = {"mask": ops.Mask(image="two", fill=7), "boxes": ops.Boxes("cxcywh", image="one", relative=True, min_visible=0.5),
             "category": "follow"}
    want = loaded(path, image, **roles)
    ds = leat.open(path, image=image, seed=2, as_="numpy", follow=roles)
    for i in range(len(ds)):
        same(ds[i], want[0, i])
    text = leat.open(path, image=image, seed=2, as_="numpy", follow="; ".join(f"{n} = {r}" for n, r in roles.items()))
    same(text[5], want[0, 5])
    some = leat.open(path, image=image, seed=2, as_="numpy", fields=["mask", "key"], as_tuple=True, mask=roles["mask"])
    assert len(some[3]) == 4
    np.testing.assert_array_equal(some[3][2], want[0, 3]["mask"])


@pytest.mark.torch
@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_under_a_dataloader(pack, context):  # noqa: F811
    import torch

    want = loaded(pack, MOVES, **ROLES)
    ds = leat.open(pack, image=MOVES, seed=2, **ROLES)
    loader = torch.utils.data.DataLoader(ds, batch_size=8, num_workers=2, multiprocessing_context=context,
                                         collate_fn=list)
    seen = 0
    for batch in loader:
        for sample in batch:
            assert isinstance(sample["mask"], torch.Tensor) and sample["boxes"].dtype == torch.float32
            same(sample, want[0, sample["sample_id"]])
            seen += 1
    assert seen == len(ds)
    masks = torch.utils.data.DataLoader(leat.open(pack, image=MOVES, fields=["label", "mask"], mask="follow"), 8)
    assert next(iter(masks))["mask"].shape == (8, 44, 42)


def test_what_does_not_fit_is_said(pack, tmp_path):  # noqa: F811
    with pytest.raises(TypeError, match="leat.open has no argument 'maks', and .* no such field; did you mean 'mask'"):
        leat.open(pack, image=MOVES, maks="follow")
    with pytest.raises(TypeError, match=r"leat.Loader has no argument 'size', .*: image=\[leat.ops"):
        leat.Loader(pack, batch_size=2, size=64)
    with pytest.raises(leat.ArgumentError, match="mask: is for images made by a pipeline"):
        leat.open(pack, mask="follow")
    with pytest.raises(leat.ArgumentError, match="follow: is for images made by a pipeline"):
        leat.open(pack, follow={"mask": "follow"})
    with pytest.raises(leat.ArgumentError, match="neither \"follow\" nor one of"):
        leat.open(pack, image=MOVES, mask=3)
    with pytest.raises(leat.ArgumentError, match="no image 'other' for 'mask' to follow"):
        leat.open(pack, image=MOVES, mask=ops.Mask(image="other"))
    with pytest.raises(leat.ArgumentError, match="say what field 'label' is"):
        leat.open(pack, image=MOVES, label="follow")
    bad = str(tmp_path / "bad.leat")
    with leat.Writer(bad, {"image": "image", "boxes": ("float32", (None, 4)), "labels": ("int64", (None,))}, sync=False) as w:
        w.append([palette_png(np.zeros((50, 50), np.uint8)), np.zeros((2, 4), np.float32), np.zeros(3, np.int64)])
        w.append([palette_png(np.zeros((50, 50), np.uint8)), None, np.zeros(3, np.int64)])
    ds = leat.open(bad, image=MOVES, boxes="follow", labels="follow")
    with pytest.raises(leat.DataError, match="field 'labels' has 3 rows for 2 boxes"):
        ds[0]
    with pytest.raises(leat.DataError, match="sample 1 .*field 'boxes' is absent"):
        ds[1]
