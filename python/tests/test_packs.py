# SPDX-License-Identifier: Apache-2.0
"""Several packs in one loader: concatenated and mixed, against references in NumPy."""

import json
import math

import numpy as np
import pytest
from conftest import ORDERS, jpeg

import leat
from leat import ops

SIZES = {"a": 60, "b": 17, "c": 1, "e": 0}
STILL = [ops.Resize((24, 24))]


@pytest.fixture(scope="module")
def packs(tmp_path_factory):
    """Four packs; each is tiled with its own tables, and has its number as the field `which`."""
    folder = tmp_path_factory.mktemp("packs")
    made = {}
    for number, (name, size) in enumerate(SIZES.items()):
        rng = np.random.default_rng(number)
        source = folder / name
        path = str(folder / f"{name}.leat")
        if size > 1:  # tiled by the command's packer: tables are trained on the pack
            (source / "x").mkdir(parents=True)
            for i in range(size):
                (source / "x" / f"{i:03d}.jpg").write_bytes(jpeg(rng, 40 + 3 * number + i % 30, 70 - i % 20, 60 + 9 * number))
            leat.pack(source, path, images="tiled")
        else:
            with leat.Writer(path, {"image": "image", "label": int}, sync=False) as w:
                for i in range(size):
                    w.append([jpeg(rng, 64, 48), 0], key=f"{name}/{i}")
        made[name] = path
    return made


def singles(path, **options):
    if len(leat.open(path)) == 0:
        return np.empty((0, 3, 24, 24), np.uint8)
    with leat.Loader(path, 8, STILL, order="sequential", as_="numpy", fields=["image"], **options) as loader:
        return np.concatenate([np.array(batch.image) for batch in loader])


@pytest.mark.parametrize("order", ORDERS)
def test_concatenation_has_every_sample_once_with_its_pixels(packs, order):
    names = ["a", "e", "b", "c", "a"]  # an empty one, and one twice
    want = np.concatenate([singles(packs[n]) for n in names])
    loader = leat.Loader([packs[n] for n in names], 8, STILL, order=order, as_="numpy", threads=3, seed=4)
    seen = []
    for batch in loader:
        ids = np.array(batch.sample_id)
        assert np.array_equal(batch.image, want[ids])
        seen += ids.tolist()
    assert sorted(seen) == list(range(len(want)))
    assert len(loader.dataset) == len(want)
    part, row = loader.locate(np.array([0, 59, 60, 76, 77, 78]))
    assert part.tolist() == [0, 0, 2, 2, 3, 4] and row.tolist() == [0, 59, 0, 16, 0, 0]
    assert np.asarray(loader.dataset[61]["image"]).shape == np.asarray(leat.open(packs["b"])[1]["image"]).shape
    loader.close()


def ids(mix, epoch=0, world=1, rank=0, batch=16, order="random", seed=3):
    with leat.Loader(mix, batch, None, fields=["label"], seed=seed, order=order, rank=rank, world_size=world, drop_last=False) as l:
        return l.sample_ids(epoch), l.locate(l.sample_ids(epoch))[0]


def test_proportions_of_a_million_draws(packs):
    for replacement in (False, True):
        mix = leat.Mix({packs["a"]: 0.7, packs["b"]: 0.2, packs["c"]: 0.1}, epoch_size=1_000_000, replacement=replacement)
        sample, part = ids(mix)
        assert np.bincount(part).tolist() == [700_000, 200_000, 100_000]
        counts = np.bincount(sample)[:60]
        if replacement:
            expected = 700_000 / 60
            chi = ((counts - expected) ** 2 / expected).sum()
            assert abs(chi - 59) < 6 * math.sqrt(2 * 59)
        else:
            assert counts.max() - counts.min() <= 1
        first = np.bincount(part[:100_000])  # shuffled over the epoch, not packs one by one
        assert abs(first[0] - 70_000) < 6 * math.sqrt(100_000 * 0.21)


def webster(draws, t):
    """One position after the other to the pack with the smallest (2k + 1) / draws."""
    counts = [0] * len(draws)
    for _ in range(t):
        turn = min((i for i in range(len(draws)) if counts[i] < draws[i]), key=lambda i: ((2 * counts[i] + 1) / draws[i], i))
        counts[turn] += 1
    return counts


@pytest.mark.parametrize("order", ORDERS)
def test_stratified_batches_have_the_proportions(packs, order):
    mix = leat.Mix({packs["a"]: 0.7, packs["b"]: 0.2, packs["c"]: 0.1}, epoch_size=200, batches="stratified")
    _, part = ids(mix, batch=32, order=order)
    for end in [*range(32, 200, 32), 200]:
        assert np.bincount(part[:end], minlength=3).tolist() == webster([140, 40, 20], end)
    for begin in range(0, 192, 32):
        got = np.bincount(part[begin:begin + 32], minlength=3)
        assert np.all(np.abs(got - 32 * np.array([0.7, 0.2, 0.1])) < 2)


def test_single_source_batches(packs):
    mix = leat.Mix([packs["a"], packs["b"], packs["c"]], repeat=[2, 4, 30], batches="single")
    sample, part = ids(mix, batch=10)
    assert len(sample) == 210  # 120 + 68 + 30 in whole batches: 12 + 7 + 2, by the largest remainder
    rows = part.reshape(-1, 10)
    assert np.all(rows == rows[:, :1])
    assert sorted(np.bincount(rows[:, 0]).tolist()) == sorted([12, 6, 3])


def test_repeat_and_choose(packs):
    mix = leat.Mix([packs["a"], packs["b"], packs["c"]], repeat={packs["c"]: 5}, choose={packs["a"]: 20})
    _, part = ids(mix)
    assert np.bincount(part).tolist() == [20, 17, 5]
    # three epochs of a third of a pack are all of it
    assert len(np.unique(np.concatenate([s[p == 0] for s, p in (ids(mix, e) for e in range(3))]))) == 60
    mix = leat.Mix([packs["a"], packs["b"]], repeat=[0.5, 0])
    assert np.bincount(ids(mix)[1]).tolist() == [30]


@pytest.mark.parametrize("batches", ["shuffled", "stratified", "single"])
def test_worlds_share_one_order(packs, batches):
    mix = leat.Mix({packs["a"]: 0.6, packs["b"]: 0.4}, epoch_size=384, batches=batches)
    want, _ = ids(mix, 2, batch=64)
    for world in (2, 8, 64):
        for rank in {0, 1, world - 1}:
            got, _ = ids(mix, 2, world, rank, 64 // world)
            assert np.array_equal(got, want[rank::world])


def test_resume_of_a_mix_has_the_same_pixels(packs):
    def loader(world=1, rank=0, **options):
        mix = leat.Mix({packs["a"]: 0.5, packs["b"]: 0.3, packs["c"]: 0.2}, epoch_size=120, batches="stratified")
        return leat.Loader(mix, 12 // world, [ops.RandomResizedCrop(16)], as_="numpy", seed=5, rank=rank, world_size=world, **options)

    whole = [(np.array(b.sample_id), np.array(b.image)) for b in loader()]
    before = loader()
    for k, _ in enumerate(before):
        if k == 3:
            break
    state = json.loads(json.dumps(before.state_dict()))
    assert len(state["packs"]) == 3 and len(json.dumps(state)) < 600
    for rank in range(3):
        rest = loader(3, rank, threads=2)
        rest.load_state_dict(state)
        for (sample, image), batch in zip(whole[4:], rest, strict=True):
            assert np.array_equal(batch.sample_id, sample[rank::3])
            assert np.array_equal(batch.image, image[rank::3])
    with pytest.raises(leat.ArgumentError, match="pack number 2 of 3"):
        leat.Loader(leat.Mix({packs["a"]: 0.5, packs["c"]: 0.3, packs["b"]: 0.2}, epoch_size=120), 12).load_state_dict(state)


def test_missing_fields(packs, tmp_path):
    path = str(tmp_path / "more.leat")
    schema = {"image": "image", "label": int, "score": float, "caption": str, "vector": ("float16", (3,)), "codes": ("int32", (2,))}
    with leat.Writer(path, schema, sync=False) as w:
        w.append([jpeg(np.random.default_rng(0), 40, 40), 7, 0.25, "words", np.ones(3), np.arange(2)])
    with pytest.raises(leat.ArgumentError, match="no field 'score'.*default"):
        leat.Loader([packs["c"], path])
    mix = leat.Mix([packs["c"], path], defaults={"score": math.nan, "caption": None, "vector": 0.5, "codes": -1})
    (batch,) = leat.Loader(mix, 2, STILL, order="sequential", as_="numpy")
    assert math.isnan(batch.score[0]) and batch.score[1] == 0.25
    assert list(batch.caption) == ["", "words"]
    assert batch.vector.tolist() == [[0.5] * 3, [1] * 3] and batch.codes.tolist() == [[-1, -1], [0, 1]]
    assert batch.label.tolist() == [0, 7]
    with pytest.raises(leat.ArgumentError, match="whole"):
        leat.Loader(leat.Mix([packs["c"], path], defaults={"codes": 1.5}))
    with pytest.raises(leat.ArgumentError, match="no pack has a field"):
        leat.Loader(leat.Mix([packs["c"], path], defaults={"colour": 1}))
    other = str(tmp_path / "other.leat")
    with leat.Writer(other, {"label": float}, sync=False) as w:
        w.append([0.5])
    with pytest.raises(leat.ArgumentError, match="'label' of .*other.leat has another type"):
        leat.Loader([packs["c"], other], 2, None)


def test_bad_mixes_are_named(packs):
    a, b, e = packs["a"], packs["b"], packs["e"]
    for make, words in [
            (lambda: leat.Mix({a: 0.0, b: 0}), "all of them are 0"),
            (lambda: leat.Mix({a: -1, b: 1}), "weights: number 0"),
            (lambda: leat.Mix({a: math.nan, b: 1}), "weights: number 0"),
            (lambda: leat.Mix({a: math.inf, b: 1}), "weights: number 0"),
            (lambda: leat.Mix([a, b], [1]), "1 given for 2 packs"),
            (lambda: leat.Mix([]), "the list is empty"),
            (lambda: leat.Mix(a), "list of paths"),
            (lambda: leat.Mix([a, b], repeat={"x": 1}), "not one of the packs"),
            (lambda: leat.Mix([a, b], choose=[1.5, 1]), "choose"),
            (lambda: leat.Mix([a, b], batches="mixed"), "batches"),
            (lambda: leat.Loader([]), "the list is empty"),
            (lambda: leat.Loader(leat.Mix({a: 1, e: 1})), "no samples"),
            (lambda: leat.Loader([e, e]), "no samples"),
            (lambda: leat.Loader(leat.Mix({a: 1, b: 1}), weights=np.ones(77)), "weights"),
            (lambda: leat.Loader(leat.Mix([a, b], [1, 1], repeat=[1, 1])), "either weights"),
            (lambda: leat.Loader(leat.Mix([a, b], epoch_size=5)), "epoch_size needs weights"),
            (lambda: leat.Loader(leat.Mix([a, b], batches="single"), 1000), "global batch")]:
        with pytest.raises(leat.ArgumentError, match=words):
            make()


def test_more_ranks_than_samples(packs):
    mix = leat.Mix({packs["b"]: 1, packs["c"]: 1}, epoch_size=3)
    got = [ids(mix, 0, 8, rank, 1)[0].tolist() for rank in range(8)]
    assert sum(got, []) == ids(mix, 0, 1, 0, 8)[0].tolist() and [len(g) for g in got] == [1, 1, 1, 0, 0, 0, 0, 0]


def test_a_subset_of_mixed_packs(packs):
    mix = leat.Mix({packs["a"]: 1, packs["b"]: 1}, epoch_size=40)
    chosen = [70, 3, 61, 5, 4]
    with leat.Loader(mix, 8, None, fields=["label"], indices=chosen, seed=1) as loader:
        sample = loader.sample_ids(0)
    assert set(sample.tolist()) == set(chosen)
    assert (sample >= 60).sum() == 20


def test_a_replacement_comes_from_the_same_pack(packs, tmp_path):
    bad = str(tmp_path / "bad.leat")
    rng = np.random.default_rng(1)
    with leat.Writer(bad, {"image": "image", "label": int}, sync=False) as w:
        for i in range(6):
            data = jpeg(rng, 50, 50)
            w.append([data[:len(data) // 2] + b"\xff" * (len(data) // 2) if i == 2 else data, 5])
    mix = leat.Mix([packs["a"], bad], repeat=[1, 3], batches="single")
    got = []
    with leat.Loader(mix, 6, STILL, as_="numpy", on_error="replace", quarantine=tmp_path / "q") as loader:
        for batch in loader:
            got.append(loader.locate(batch.sample_id)[0])
            assert len(set(got[-1].tolist())) == 1
    lines = [json.loads(line) for line in (tmp_path / "q").read_text().splitlines()]
    assert lines and all(line["pack"] == bad and line["sample"] == 2 for line in lines)


def test_locate_takes_numbers_of_samples_only(tmp_path):
    with leat.Writer(tmp_path / "p.leat", {"n": int}, sync=False) as w:
        w.extend([{"n": i} for i in range(5)])
    with leat.Loader(tmp_path / "p.leat", 2, as_="numpy") as loader:
        assert [int(x) for x in loader.locate(4)] == [0, 4] and loader.locate([])[0].shape == (0,)
        for bad in ("x", 1.5, None, [0, "a"], [[0], [1, 2]], True):
            with pytest.raises(leat.ArgumentError, match="sample_id: "):
                loader.locate(bad)
        for bad in (5, 10**9, -5, [0, -1], [4, 5]):
            with pytest.raises(leat.SampleIndexError, match="is not one of the 5 samples"):
                loader.locate(bad)


def named(path, names, keys, **fields):
    with leat.Writer(path, {"label": int, **{name: int for name in fields}}, classes={"label": names} if names else None, sync=False) as w:
        for i, key in enumerate(keys):
            w.append({"label": i, **fields}, key=key)
    return str(path)


def test_the_dataset_of_several_packs(tmp_path):
    a = named(tmp_path / "a.leat", ["cat", "dog"], ["x", "y"], score=3)
    b = named(tmp_path / "b.leat", ["cat", "dog", "owl"], ["y", "z", "w"], score=5)
    with leat.Loader([a, b], 2, None) as loader:
        packs = loader.dataset
        assert packs.classes() == ["cat", "dog", "owl"] and packs.classes("score") == []
        assert packs.column("label").tolist() == [0, 1, 0, 1, 2] and packs.column("score").tolist() == [3, 3, 5, 5, 5]
        assert list(packs.keys) == ["x", "y", "y", "z", "w"] and len(packs.keys) == 5
        assert packs.keys[3] == "z" and packs.keys[1:3] == ["y", "y"] and packs.keys.index("w") == 4
        assert "w" in packs.keys and "w" in packs and "v" not in packs
        assert packs["z"].sample_id == 3 and packs["z"]["label"] == 1
        with pytest.raises(leat.ArgumentError, match="the key 'y' is in .*a.leat and .*b.leat: give the number"):
            packs["y"]
        with pytest.raises(KeyError, match="no pack has a sample with the key 'v'"):
            packs["v"]
        for wrong in (5, -6, 10**20):
            with pytest.raises(leat.SampleIndexError, match=f"there is no sample {wrong}; numbers go from 0 to 4"):
                packs[wrong]
            with pytest.raises(IndexError):
                packs.keys[wrong]
        assert packs[-1].sample_id == 4 and packs.keys[-5] == "x"
        with pytest.raises(leat.ArgumentError, match="1.5 is not a sample's number"):
            packs[1.5]
        with pytest.raises(KeyError, match="no pack has a field 'lable'; they have label, score"):
            packs.classes("lable")
    c = named(tmp_path / "c.leat", ["dog", "cat"], ["v"])
    with pytest.warns(leat.AdviceWarning, match="other class names"), leat.Loader([a, c], 2, None, fields=["label"]) as loader:
        with pytest.raises(leat.ArgumentError, match=r"field 'label' has other class names .*: leat merge joins"):
            loader.dataset.classes()
        with pytest.raises(KeyError, match="no field 'score'"):
            loader.dataset.column("score")
