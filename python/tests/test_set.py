# SPDX-License-Identifier: Apache-2.0
"""loader.set: a loader that is changed against loaders that were made so."""

import numpy as np
import pytest

import leat
from leat import ops

CROPS = {n: [ops.RandomResizedCrop(n), ops.RandomHorizontalFlip()] for n in (16, 24, 32)}


def batches(loader):
    return [(np.array(b.image), np.array(b.sample_id)) for b in loader]


def same(got, want):
    assert len(got) == len(want)
    for (a, i), (b, j) in zip(got, want):
        assert np.array_equal(i, j) and np.array_equal(a, b)


def make(pack, size, crop, **options):
    return leat.Loader(pack, size, CROPS[crop], as_="numpy", seed=2, threads=2, **options)


def test_progressive_resizing(plain):
    loader = make(plain, 16, 16)
    for epoch, (size, crop) in enumerate([(16, 16), (8, 24), (20, 32), (20, 16)]):
        loader.set(image=CROPS[crop], batch_size=size)
        assert loader.batch_size == size and len(loader) == -(-101 // size)
        fresh = make(plain, size, crop)
        fresh.set_epoch(epoch)
        same(batches(loader), batches(fresh))


def test_a_change_waits_for_the_next_epoch(plain):
    loader = make(plain, 16, 16)
    got = []
    for i, batch in enumerate(loader):
        if i == 1:
            loader.set(batch_size=50, image=CROPS[24])
            assert loader.batch_size == 16
        got.append((np.array(batch.image), np.array(batch.sample_id)))
        assert loader.state_dict()["position"] == min(16 * (i + 1), 101)
    same(got, batches(make(plain, 16, 16)))
    assert [len(i) for _, i in batches(loader)] == [50, 50, 1]


def test_a_change_with_the_next_batch_and_states(plain):
    loader = make(plain, 16, 16, drop_last=False)
    sizes, seen, states = [], [], []
    for i, batch in enumerate(loader):
        sizes.append(batch.image.shape[::3])
        seen += np.array(batch.sample_id).tolist()
        if i == 2:
            loader.set(batch_size=20, image=CROPS[32], when="batch")
            assert loader.state_dict()["position"] == 48
        states.append(loader.state_dict())
    assert sizes == [(16, 16)] * 3 + [(12, 32)] + [(20, 32)] * 2 + [(1, 32)]
    assert seen == make(plain, 16, 16).sample_ids(0).tolist()
    for k, state in enumerate(states[2:], 3):
        other = make(plain, 20, 32, drop_last=False)
        other.load_state_dict(state)
        rest = [i for _, ids in batches(other) for i in ids.tolist()] if state["position"] < 101 else []
        assert rest == seen[state["position"]:]
        assert state["global_batch"] == 20 and k >= 3
    with pytest.raises(leat.ArgumentError, match="global batch"):
        make(plain, 16, 16).load_state_dict(states[3])
    again = make(plain, 16, 16)
    again.set(batch_size=20)
    again.load_state_dict(states[3])


def test_the_order_of_a_change_that_waits(plain):
    loader = make(plain, 64, 16, drop_last=True)
    next(iter(loader))
    loader.set(batch_size=50)
    assert loader.sample_ids(1).tolist() == make(plain, 50, 16, drop_last=True).sample_ids(1).tolist()


def test_views_and_channels_last(plain):
    views = {"one": (None, CROPS[16]), "two": ("image", CROPS[24])}
    loader = leat.Loader(plain, 8, views, as_="numpy", channels_last=True, fields=["label"])
    loader.set(image={"one": (None, CROPS[32]), "two": ("image", CROPS[16])})
    batch = next(iter(loader))
    assert batch.one.shape == (8, 32, 32, 3) and batch.two.shape == (8, 16, 16, 3)
    with pytest.raises(leat.ArgumentError, match="fields"):
        loader.set(image={"other": (None, CROPS[32])})


def test_wrong_changes_are_named(plain):
    loader = make(plain, 16, 16)
    for change, words in [({}, "give image"), ({"batch_size": 0}, "batch_size"), ({"batch_size": 1.5}, "batch_size"),
                          ({"image": "RandomResizedCorp(3)"}, "RandomResizedCorp"), ({"image": None}, "cannot be None"),
                          ({"batch_size": 4, "when": "now"}, "when")]:
        with pytest.raises(leat.ArgumentError, match=words):
            loader.set(**change)
    for name in ("batch_size", "image"):
        with pytest.raises(AttributeError, match=rf"loader.set\({name}="):
            setattr(loader, name, 3)
    same(batches(loader), batches(make(plain, 16, 16)))
    loader.close()
    with pytest.raises(leat.StateError):
        loader.set(batch_size=3)
