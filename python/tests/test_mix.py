# SPDX-License-Identifier: Apache-2.0
"""MixUp and CutMix through the loader: pixels and labels against torchvision's arithmetic."""

import numpy as np
import pytest

import leat
from leat import ops

CROP = [ops.RandomResizedCrop(32), ops.RandomHorizontalFlip()]


def load(path, pipeline, **options):
    with leat.Loader(path, 16, pipeline, order="random", seed=4, **options) as loader:
        return [batch.asdict() for batch in loader]


@pytest.mark.torch
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("alpha", [0.2, 1.0])
def test_mixup_is_torchvisions(pack, dtype, alpha):
    import torch

    output = [ops.Normalize(0.4, 0.2), ops.ToDtype(dtype)]
    plain = load(pack, CROP + output)
    soft = load(pack, CROP + output + [ops.MixUp(alpha)])
    pairs = load(pack, CROP + output + [ops.MixUp(alpha)], mix_labels="pairs")
    assert len({float(b["label_lambda"][0]) for b in pairs}) == len(pairs)
    for a, b, c in zip(plain, soft, pairs):
        x, lam = a["image"], float(c["label_lambda"][0])
        assert (c["label_lambda"] == c["label_lambda"][0]).all()
        mixed = x.roll(1, 0).mul_(1.0 - lam).add_(x.mul(lam))  # torchvision.transforms.v2.MixUp
        assert torch.equal(b["image"], mixed) and torch.equal(c["image"], mixed)
        one_hot = torch.nn.functional.one_hot(a["label"], 10).float()
        assert torch.equal(b["label"], one_hot.roll(1, 0).mul_(1.0 - lam).add_(one_hot.mul(lam)))
        assert torch.equal(c["label"], a["label"])
        assert torch.equal(c["label_partner"], a["label"].roll(1, 0))


@pytest.mark.parametrize("channels_last", [False, True])
def test_cutmix_is_torchvisions(pack, channels_last):
    options = {"as_": "numpy", "channels_last": channels_last}
    plain = load(pack, CROP, **options)
    pairs = load(pack, CROP + [ops.CutMix()], mix_labels="pairs", **options)
    assert len(plain) == len(pairs)
    for a, c in zip(plain, pairs):
        changed = (a["image"] != c["image"]).any(0).any(-1 if channels_last else 0)
        rows, columns = np.flatnonzero(changed.any(1)), np.flatnonzero(changed.any(0))
        lam = float(c["label_lambda"][0])
        box = np.zeros_like(changed)
        if len(rows):
            box[rows[0]:rows[-1] + 1, columns[0]:columns[-1] + 1] = True
        box = box[None, ..., None] if channels_last else box[None, None]
        np.testing.assert_array_equal(c["image"], np.where(box, np.roll(a["image"], 1, 0), a["image"]))
        assert abs(lam - (1 - box.mean())) < 1e-6


def test_integers_are_rounded(pack):
    plain = load(pack, CROP, as_="numpy")
    pairs = load(pack, CROP + [ops.MixUp()], mix_labels="pairs", as_="numpy")
    for a, c in zip(plain, pairs):
        lam, x = np.float32(c["label_lambda"][0]), a["image"].astype(np.float32)
        want = np.floor(lam * x + np.float32(1 - np.float64(lam)) * np.roll(x, 1, 0) + np.float32(0.5))
        np.testing.assert_array_equal(c["image"], want.astype(np.uint8))


def test_resume_and_ranks(pack):
    pipeline = [*CROP, ops.MixUp(), ops.CutMix(p=0.5)]
    whole = load(pack, pipeline, as_="numpy", threads=1)
    again = load(pack, pipeline, as_="numpy", threads=3)
    with leat.Loader(pack, 16, pipeline, order="random", seed=4, as_="numpy") as loader:
        run = iter(loader)
        for _ in range(3):
            next(run)
        state = loader.state_dict()
    with leat.Loader(pack, 16, pipeline, order="random", seed=4, as_="numpy") as loader:
        loader.load_state_dict(state)
        rest = [batch.asdict() for batch in loader]
    assert len(rest) == len(whole) - 3
    for a, b in zip(whole, again):
        np.testing.assert_array_equal(a["image"], b["image"])
        np.testing.assert_array_equal(a["label"], b["label"])
        np.testing.assert_allclose(a["label"].sum(1), 1, atol=1e-6)
    for a, b in zip(whole[3:], rest):
        np.testing.assert_array_equal(a["image"], b["image"])
        np.testing.assert_array_equal(a["label"], b["label"])
    ranks = [load(pack, CROP + [ops.MixUp()], mix_labels="pairs", rank=r, world_size=2, as_="numpy") for r in (0, 1)]
    assert float(ranks[0][0]["label_lambda"][0]) != float(ranks[1][0]["label_lambda"][0])


def test_refusals(pack, plain):
    with pytest.raises(leat.ArgumentError, match="number of classes"):
        load(plain, CROP + [ops.MixUp()])  # no class names
    assert load(plain, CROP + [ops.MixUp()], classes=12, as_="numpy")[0]["label"].shape == (16, 12)
    with pytest.raises(leat.ArgumentError, match="'score' is not an int field"):
        load(pack, CROP + [ops.MixUp()], label="score")
    with pytest.raises(leat.ArgumentError, match="classes has no effect"):
        load(pack, CROP, classes=10)
    with pytest.raises(leat.ArgumentError, match="not one of soft, pairs"):
        load(pack, CROP + [ops.MixUp()], mix_labels="hard")
    with pytest.raises(leat.ArgumentError, match="must be among fields"):
        load(pack, CROP + [ops.MixUp()], fields=["score"])
    with pytest.raises(leat.DataError, match="label 3 is not one of 3 classes|label . is not one of 3 classes"):
        load(pack, CROP + [ops.MixUp()], classes=3)
