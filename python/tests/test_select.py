# SPDX-License-Identifier: Apache-2.0
"""leat.select, leat.dedup_semantic and leat.check(labels=True): against naive ones, what takes a selection, wrong input, killed runs."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from fractions import Fraction

import numpy as np
import pytest

import leat

ROWS, DIM = 300, 24


@pytest.fixture(scope="module")
def vectors() -> np.ndarray:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(12, DIM))[np.arange(ROWS) % 12] + 0.4 * rng.normal(size=(ROWS, DIM))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def box(tmp_path_factory, vectors):
    """rows.leat (label, score), vectors.leat."""
    path = tmp_path_factory.mktemp("select")
    with leat.Writer(path / "rows.leat", {"label": int, "score": float}, classes={"label": ["cat", "dog", "owl"]}) as w:
        for i in range(ROWS):
            w.append({"label": i % 7 % 3, "score": i * 37 % 101 / 10}, key=f"{'ab'[i % 2]}/{i}.jpg")
    with leat.Writer(path / "vectors.leat", {"vector": ("float32", (DIM,))}) as w:
        for i, row in enumerate(vectors):
            w.append({"vector": row}, key=f"{'ab'[i % 2]}/{i}.jpg")
    return path


def select(box, name, strategies, **options):
    used = {"diversity", "typicality", "similarity"} & {s if isinstance(s, str) else s.get("strategy") for s in
                                                        ([strategies] if isinstance(strategies, (str, dict)) else strategies
                                                         if isinstance(strategies, (list, tuple)) else [])}
    options = {**({"embeddings": box / "vectors.leat"} if used else {}), "force": True, "sync": False, **options}
    report = leat.select(box / "rows.leat", box / name, strategies, **options)
    return report, leat.open(box / name)


def test_diversity_is_that_of_a_naive_search(box, vectors):
    report, made = select(box, "far.leat", "diversity", count=40)
    chosen, near = [0], np.linalg.norm(vectors - vectors[0], axis=1)
    while len(chosen) < 40:
        chosen.append(int(near.argmax()))
        near = np.minimum(near, np.linalg.norm(vectors - vectors[chosen[-1]], axis=1))
    order = made.column("order")
    assert [int(np.flatnonzero(order == i)[0]) for i in range(40)] == chosen
    assert report["selected"] == made.column("selected").sum() == 40
    assert list(made.keys) == list(leat.open(box / "rows.leat").keys)
    spread = np.linalg.norm(vectors[:, None] - vectors[chosen][None], axis=2).min(1).max()
    some = np.random.default_rng(1).choice(ROWS, 40, replace=False)
    assert spread < np.linalg.norm(vectors[:, None] - vectors[some][None], axis=2).min(1).max()


def test_strategies_combine(box):
    _, made = select(box, "mix.leat", [{"strategy": "diversity"}, {"strategy": "weights", "column": "score", "strength": 2},
                                       {"strategy": "balance", "column": "label", "strength": 8,
                                        "distribution": {"owl": np.float64(0.5)}}],
                     count=60, where="score > 2")
    on = made.column("selected") == 1
    rows = leat.open(box / "rows.leat")
    assert rows.column("score")[on].min() > 2
    assert 28 <= (rows.column("label")[on] == 2).sum() <= 32
    assert made[int(np.flatnonzero(on)[0])]["reason"].startswith("diversity ")
    _, even = select(box, "folders.leat", {"strategy": "balance", "column": "folder", "distribution": {"b": 0.9}}, count=50)
    keys = np.array(even.keys)[even.column("selected") == 1]
    assert sum(key.startswith("b/") for key in keys) == 45


def test_balance_takes_the_first_of_equal_shares(tmp_path):
    """24 / 7.5 and 8 / 2.5 are equal, but not after a division by 60."""
    labels = np.random.default_rng(15).choice(5, 60, p=[.4, .3, .1, .1, .1])
    with leat.Writer(tmp_path / "t.leat", {"label": "int"}) as writer:
        for label in labels:
            writer.append({"label": int(label)})
    leat.select(tmp_path / "t.leat", tmp_path / "o.leat", {"strategy": "balance", "column": "label", "distribution": "input"}, count=30)
    counts, want = np.bincount(labels), []
    for _ in range(30):
        left = [row for row in range(60) if row not in want]
        have = np.bincount(labels[want], minlength=5) if want else np.zeros(5, int)
        want.append(max(left, key=lambda row: (Fraction(2 * int(counts[labels[row]]), 2 * int(have[labels[row]]) + 1), -row)))
    with leat.open(tmp_path / "o.leat") as rows:
        order = rows.column("order")
        chosen = sorted(np.flatnonzero(order >= 0).tolist(), key=lambda row: order[row])
        scores = rows.column("score")[chosen]
    assert chosen == want
    assert abs(scores[0] - 24 / 60 / 0.5) < 1e-12  # the share is that of all rows


@pytest.mark.parametrize("more", [[], ["random"], ["diversity"], [{"strategy": "weights", "column": "score"}, "typicality"]])
def test_a_balance_takes_no_value_without_a_share(tmp_path, more):
    """Also when the values with a share run out, and beside other strategies."""
    rng = np.random.default_rng(4)
    with leat.Writer(tmp_path / "t.leat", {"label": int, "score": float}, classes={"label": [f"c{i}" for i in range(5)]}) as w, \
            leat.Writer(tmp_path / "v.leat", {"vector": ("float32", (4,))}) as v:
        for i in range(400):
            w.append({"label": i % 5, "score": float(rng.random())}, key=str(i))
            v.append({"vector": rng.normal(size=4).astype(np.float32)}, key=str(i))
    embeddings = tmp_path / "v.leat" if {"diversity", "typicality"} & {s for s in more if isinstance(s, str)} else None

    def counts(distribution, count):
        by = [*more, {"strategy": "balance", "column": "label", "distribution": distribution}]
        report = leat.select(tmp_path / "t.leat", tmp_path / "o.leat", by, count=count, embeddings=embeddings, force=True)
        with leat.open(tmp_path / "o.leat") as made:
            on = made.column("selected") == 1
            reasons = {made[int(i)]["reason"] for i in np.flatnonzero(~on)}
            assert np.isfinite(made.column("score")).all() and (more or (made.column("score")[on] > 0).all())
        assert report["selected"] == on.sum() and report["asked"] == (count or 0)
        return np.bincount(np.arange(400)[on] % 5, minlength=5).tolist(), reasons

    gone = {"its value has no share"}
    assert counts({"c0": 1}, 120) == ([80, 0, 0, 0, 0], gone)
    assert counts({"c0": .5, "c1": .5}, 200) == ([80, 80, 0, 0, 0], gone)
    assert counts({"c0": .7, "c1": .2, "c3": .1}, 300) == ([80, 80, 0, 80, 0], gone)  # the sum is below 1 by rounding
    assert counts({"c0": 0, "c1": .5}, 399) == ([0, 80, 80, 80, 80], gone)
    assert counts({"c0": 0}, 8)[1] == {"others scored higher"}
    if "diversity" not in more:
        assert counts({"c0": .5, "c1": .5}, None) == ([80, 80, 0, 0, 0], gone)
    with pytest.raises(leat.ArgumentError, match="balance: all shares of label are 0"):
        counts(dict.fromkeys(["c0", "c1", "c2", "c3", "c4"], 0), 20)


def test_a_selection_is_taken_everywhere(box, images, tmp_path):
    """Loader, pack and export; also the rows that a dedup keeps."""
    with leat.Writer(tmp_path / "photos.leat", {"image": "image", "label": int}) as w:
        for i in range(20):
            w.append({"image": images[i], "label": i}, key=f"{i}.jpg")
    chosen = tmp_path / "chosen.leat"
    leat.select(tmp_path / "photos.leat", chosen, where="label in [3, 5, 18]")
    loader = leat.Loader(tmp_path / "photos.leat", 8, select=chosen, order="sequential", as_="numpy", drop_last=False)
    assert [int(i) for batch in loader for i in batch.label] == [3, 5, 18]
    assert leat.pack(tmp_path / "photos.leat", tmp_path / "few.leat", select=chosen, images="keep")["samples"] == 3
    assert list(leat.open(tmp_path / "few.leat").keys) == ["3.jpg", "5.jpg", "18.jpg"]
    assert leat.export(tmp_path / "photos.leat", tmp_path / "out", select=chosen)["samples"] == 3
    assert sorted(os.listdir(tmp_path / "out")) == ["18.jpg", "3.jpg", "5.jpg"]
    leat.dedup_images(tmp_path / "photos.leat", tmp_path / "dup.leat", sync=False)
    kept = int(leat.open(tmp_path / "dup.leat").column("keep").sum())
    assert leat.Loader(tmp_path / "photos.leat", 8, select=tmp_path / "dup.leat", as_="numpy").dataset is not None
    assert leat.pack(tmp_path / "photos.leat", tmp_path / "kept.leat", select=tmp_path / "dup.leat")["samples"] == kept
    with pytest.raises(leat.ArgumentError, match="either keys or select"):
        leat.pack(tmp_path / "photos.leat", tmp_path / "x.leat", select=chosen, keys=["3.jpg"])
    with pytest.raises(leat.ArgumentError, match="it was made from photos.leat; make it again"):
        leat.Loader(box / "rows.leat", 8, select=chosen, image=None)


def test_an_empty_selection_is_refused_everywhere(images, tmp_path):
    pack, none = tmp_path / "p.leat", tmp_path / "none.leat"
    with leat.Writer(pack, {"image": "image", "label": int}) as w:
        for i in range(4):
            w.append({"image": images[i], "label": i}, key=f"{i}.jpg")
    with pytest.raises(leat.DataError, match="p.leat: no sample is selected: none of 4 meets the conditions"):
        leat.select(pack, none, where="label > 50")
    assert not none.exists()
    with leat.Writer(none, {"selected": int}) as w:
        for i in range(4):
            w.append({"selected": 0}, key=f"{i}.jpg")
    kinds = ("folder", "webdataset", "parquet") if importlib.util.find_spec("pyarrow") else ("folder", "webdataset")
    for use in (lambda: leat.Loader(pack, 2, select=none), lambda: leat.pack(pack, tmp_path / "x.leat", select=none),
                *(lambda to=to: leat.export(pack, tmp_path / "out", to=to, select=none) for to in kinds)):
        with pytest.raises(leat.ArgumentError, match="none.leat: no row of .* is selected"):
            use()
    assert not (tmp_path / "x.leat").exists() and not os.listdir(tmp_path / "out")
    leat.select(pack, tmp_path / "some.leat", where="label == 1")
    more = leat.select(pack, tmp_path / "more.leat", where="label > 50", previous=tmp_path / "some.leat")
    assert more["selected"] == 0 and more["previous"] == 1


def test_columns_of_several_packs_are_taken_for_one(images, tmp_path):
    """Each pack takes its own rows: conditions, scores, and labels of the columns."""
    two = [tmp_path / "first.leat", tmp_path / "second.leat"]
    for path in two:
        with leat.Writer(path, {"image": "image"}, sync=False) as w:
            for i in range(6):
                w.append({"image": images[(i + 3 * (path == two[1])) % len(images)]}, key=f"{path.stem}{i}")
    leat.check(two, tmp_path / "both.leat", sync=False)
    for path in two:
        leat.check(path, tmp_path / "one.leat", sync=False, force=True)
        with leat.open(tmp_path / "one.leat") as one:
            limit = float(np.median(one.column("mean")))
        made = []
        for name in ("one.leat", "both.leat"):
            leat.select(path, tmp_path / "s.leat", [{"strategy": "weights", "column": "mean"}], columns=tmp_path / name,
                        where=f"mean <= {limit!r}", count=3, force=True, sync=False)
            with leat.open(tmp_path / "s.leat") as chosen:
                made.append((list(chosen.column("selected")), list(chosen.column("order"))))
        assert made[0] == made[1] and sum(made[0][0]) == 3


def test_two_packs_share_a_selection(images, tmp_path):
    for name in "ab":
        with leat.Writer(tmp_path / f"{name}.leat", {"image": "image"}) as w:
            for i in range(4):
                w.append({"image": images[i]}, key=f"{name}{i}.jpg")
    both = [tmp_path / "a.leat", tmp_path / "b.leat"]
    leat.dedup_images(both, tmp_path / "dup.leat", keep="first")
    assert leat.open(tmp_path / "dup.leat").column("keep").tolist() == [1, 1, 1, 1, 0, 0, 0, 0]
    loader = leat.Loader(both, 8, select=tmp_path / "dup.leat", as_="numpy", drop_last=False)
    assert sorted(int(i) for batch in loader for i in batch.sample_id) == [0, 1, 2, 3]
    assert leat.pack(both, tmp_path / "few.leat", select=tmp_path / "dup.leat")["samples"] == 4


def test_one_of_two_packs_takes_its_rows_of_a_selection(images, tmp_path):
    """b has copies of two images of a; cleaned by the result for both, it has its other two."""
    for name, first in (("a", 0), ("b", 2), ("c", 0)):
        with leat.Writer(tmp_path / f"{name}.leat", {"image": "image"}) as w:
            for i in range(first, first + 4):
                w.append({"image": images[i]}, key=f"{name}{i}.jpg")
    a, b, c, dup = (tmp_path / f"{name}.leat" for name in ("a", "b", "c", "dup"))
    leat.dedup_images([a, b], dup, across=True, keep="pack")
    assert leat.open(dup).column("keep").tolist() == [1, 1, 1, 1, 0, 0, 1, 1]
    assert leat.pack(a, tmp_path / "same.leat", select=dup)["samples"] == 4
    assert leat.pack(b, tmp_path / "clean.leat", select=dup)["samples"] == 2
    assert list(leat.open(tmp_path / "clean.leat").keys) == ["b4.jpg", "b5.jpg"]
    assert leat.export(b, tmp_path / "files", select=dup)["samples"] == 2
    assert sorted(os.listdir(tmp_path / "files")) == ["b4.jpg", "b5.jpg"]
    with leat.Loader(b, 8, select=dup, as_="numpy", drop_last=False) as loader:
        assert sorted(int(i) for batch in loader for i in batch.sample_id) == [2, 3]
    with pytest.raises(leat.ArgumentError, match="not made from .*c.leat as it is now .* but from .*a.leat, .*b.leat; make them again"):
        leat.pack(c, tmp_path / "x.leat", select=dup)


def test_parquet_takes_a_selection(box, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    leat.select(box / "rows.leat", tmp_path / "s.leat", where="label == 1")
    done = leat.export(box / "rows.leat", tmp_path / "out", to="parquet", select=tmp_path / "s.leat")
    table = pq.read_table(tmp_path / "out" / "00000.parquet")
    assert done["samples"] == table.num_rows > 0 and set(table["label"].to_pylist()) == {1}


def test_rounds_continue(box):
    _, first = select(box, "first.leat", "diversity", count=20)
    report, second = select(box, "second.leat", "diversity", count=20, previous=box / "first.leat")
    assert (report["previous"], report["selected"], report["round"]) == (20, 20, 1)
    on = first.column("selected") == 1
    assert (second.column("round")[on] == 0).all() and (second.column("round") == 1).sum() == 20
    _, once = select(box, "once.leat", "diversity", count=40)
    assert (once.column("order") == second.column("order")).all()


@pytest.mark.parametrize("words, strategies, options", [
    ("nothing to select by", (), {}),
    ("'divresity' is not a strategy; did you mean 'diversity'", "divresity", {}),
    ("'column' has no effect on random", {"strategy": "random", "column": "x"}, {}),
    ("unknown key 'weight'", {"strategy": "random", "weight": 3}, {}),
    ("neither text nor a number", {"strategy": "random", "seed": None}, {}),
    ("strategies: 3 is not a list", 3, {}),
    ("strategies: number 2: seed: None is neither", ["random", {"strategy": "random", "seed": None}], {}),
    ("strategies:2: 'nothing' is not a strategy", ["random", "nothing"], {}),
    ("there is no column 'scoer'; did you mean 'score'", {"strategy": "weights", "column": "scoer"}, {"count": 3}),
    ("either count or share", "random", {"count": 3, "share": 0.5}),
    ("where: column", "random", {"where": "score >"}),
    ("needs a limit", "diversity", {}),
    ("count: 0 is below 1", "random", {"count": 0}),
    ("share: 0 is not allowed", "random", {"share": 0}),
    ("no strategy uses these embeddings", "random", {"embeddings": "vectors.leat", "count": 3}),
    ("no strategy and no condition uses columns", "random", {"columns": "other.leat", "count": 3}),
    ("field: no strategy uses it", "random", {"field": "vector", "count": 3}),
    ("'vecto' is not a field of vectors; there is vector", "diversity", {"field": "vecto", "count": 3}),
])
def test_wrong_input_is_named(box, words, strategies, options):
    with pytest.raises(leat.ArgumentError, match=words):
        select(box, "never.leat", strategies, **options)
    assert not os.path.exists(box / "never.leat")


def test_limits_and_existing_files(box):
    with pytest.raises(leat.BudgetError, match="rows need .* of memory"):
        select(box, "never.leat", "diversity", count=3, memory=1000)
    select(box, "there.leat", "random", count=3)
    with pytest.raises(leat.ExistsError):
        select(box, "there.leat", "random", count=3, force=False)
    with pytest.raises(leat.FormatError):
        (box / "junk.leat").write_bytes(b"LEATPACK" + bytes(5000))
        select(box, "never.leat", "random", count=3, where="score > 1", columns=box / "junk.leat")


def columns_of(box, name, **columns):
    """A pack with these columns and the keys of rows.leat."""
    fields = {key: float for key in columns}
    with leat.Writer(box / name, fields, sync=False) as w:
        for i, key in enumerate(leat.open(box / "rows.leat").keys):
            w.append({field: float(values[i]) for field, values in columns.items()}, key=key)
    return box / name


def order_of(made):
    order = made.column("order")
    return [int(np.flatnonzero(order == i)[0]) for i in range(order.max() + 1)]


@pytest.mark.parametrize("strength", [1, -1, 16, -16])
def test_values_that_are_not_finite_are_left_out(box, tmp_path, strength):
    values = np.arange(ROWS, dtype=float)
    values[[3, 100, 200]] = [np.nan, np.inf, -np.inf]
    with_odd = columns_of(box, f"odd{strength}.leat", w=values)
    report, made = select(box, "w.leat", {"strategy": "weights", "column": "w", "strength": strength}, columns=with_odd)
    rows = [i for i in range(ROWS) if i not in (3, 100, 200)]
    assert order_of(made) == (rows[::-1] if strength > 0 else rows)
    assert (report["unknown"], report["selected"]) == (3, ROWS - 3)
    assert [made[i]["reason"] for i in (3, 100, 200)] == ["w is not a number", "w is infinite", "w is infinite"]


def test_ranges_and_products_beyond_a_double_keep_their_order(box):
    wide = columns_of(box, "wide.leat", w=np.linspace(-1, 1, ROWS) * 1e308, v=np.arange(ROWS) * 7 % ROWS)
    _, made = select(box, "w.leat", {"strategy": "weights", "column": "w"}, columns=wide)
    assert order_of(made) == list(range(ROWS))[::-1]
    for strength in (-16, 16):
        strategies = [{"strategy": "weights", "column": "v", "strength": strength}] * 64
        _, made = select(box, "w.leat", strategies, columns=wide)
        rows = sorted(range(ROWS), key=lambda i: i * 7 % ROWS, reverse=strength > 0)
        assert order_of(made) == rows
        assert np.isfinite(made.column("score")).all() and (made.column("score") > 0).all()


def test_untypical_rows_are_in_order(tmp_path):
    """Equal rows make the most typical one far more typical than others, which must not tie."""
    rows = np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32)
    rows[5:30] = rows[5]
    with leat.Writer(tmp_path / "v.leat", {"vector": ("float32", (8,))}) as w:
        w.extend([[row] for row in rows])
    leat.select(tmp_path / "v.leat", tmp_path / "s.leat", {"strategy": "typicality", "strength": -1}, count=15,
                embeddings=tmp_path / "v.leat")
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    far = np.linalg.norm(unit[:, None].astype(float) - unit[None], axis=2)
    mean = np.sort(far, axis=1)[:, 1:21].mean(1)
    assert order_of(leat.open(tmp_path / "s.leat")) == list(np.argsort(-mean)[:15])


def test_one_of_several_vectors_is_named(tmp_path):
    rng = np.random.default_rng(0)
    with leat.Writer(tmp_path / "v.leat", {"a": ("float32", (8,)), "vector": ("float32", (8,)), "label": int}) as w:
        w.extend([[*row, i % 2] for i, row in enumerate(rng.normal(size=(40, 2, 8)).astype(np.float32))])
    path = tmp_path / "v.leat"
    calls = {
        "select": lambda **o: leat.select(path, tmp_path / "s.leat", "diversity", count=9, embeddings=path, force=True, **o),
        "strategy": lambda **o: leat.select(path, tmp_path / "s.leat", {"strategy": "diversity", **o}, count=9,
                                            embeddings=path, force=True),
        "semantic": lambda **o: leat.dedup_semantic(path, tmp_path / "s.leat", keep_share=0.5, force=True, **o),
        "labels": lambda **o: leat.check(path, tmp_path / "s.leat", labels=True, embeddings=path, force=True, **o)}
    for name, call in calls.items():
        with pytest.raises(leat.ArgumentError, match=r"several fields of vectors \(a, vector\): name the field"):
            call()
        made = []
        for field in ("a", "vector"):
            call(field=field)
            made.append((tmp_path / "s.leat").read_bytes())
        assert made[0] != made[1], name


def test_columns_of_another_pack_are_refused_everywhere(tmp_path):
    """Two packs with the same keys: the fingerprint tells them apart."""
    from io import BytesIO

    from PIL import Image
    for name, shade in (("a", 20), ("b", 200)):
        with leat.Writer(tmp_path / f"{name}.leat", {"image": "image", "label": int}) as w:
            for i in range(10):
                data = BytesIO()
                Image.new("RGB", (64, 64), (shade, 25 * i, 9)).save(data, "JPEG")
                w.append({"image": data.getvalue(), "label": i % 2}, key=f"k{i}")
    a, b = tmp_path / "a.leat", tmp_path / "b.leat"
    leat.check(a, tmp_path / "check.leat")
    leat.embed(a, output=tmp_path / "v.leat", model="tiny")
    leat.select(a, tmp_path / "chosen.leat", "random", count=4)
    leat.dedup_semantic(tmp_path / "v.leat", tmp_path / "dup.leat", keep_share=0.5)
    leat.check(a, tmp_path / "labels.leat", labels=True, embeddings=tmp_path / "v.leat")
    out = tmp_path / "out.leat"
    takers = [lambda pack: leat.select(pack, out, "diversity", count=3, embeddings=tmp_path / "v.leat", force=True),
              lambda pack: leat.check(pack, out, labels=True, embeddings=tmp_path / "v.leat", force=True)]
    takers += [lambda pack, c=c: leat.select(pack, out, where="key != 'x'", columns=tmp_path / c, force=True)
               for c in ("check.leat", "labels.leat", "dup.leat", "chosen.leat")]
    for c in ("chosen.leat", "dup.leat"):
        takers += [lambda pack, c=c: leat.select(pack, out, "random", count=1, previous=tmp_path / c, force=True),
                   lambda pack, c=c: leat.pack(pack, out, select=tmp_path / c, force=True),
                   lambda pack, c=c: leat.export(pack, tmp_path / "files", select=tmp_path / c, force=True),
                   lambda pack, c=c: leat.Loader(pack, 2, select=tmp_path / c).close(),
                   lambda pack, c=c: leat.view(pack, selection=tmp_path / c).close()]
    takers += [lambda pack, c=c: leat.view(pack, tmp_path / c).close() for c in ("check.leat", "labels.leat", "dup.leat")]
    for take in takers:
        take(a)
        with pytest.raises(leat.ArgumentError, match="were not made from .*b.leat as it is now"):
            take(b)


def test_a_killed_run_is_started_again(box, tmp_path):
    """SIGKILL at any time leaves nothing that stands in the way, and the same bytes in the end."""
    rng = np.random.default_rng(1)
    with leat.Writer(tmp_path / "v.leat", {"vector": ("float32", (64,))}) as w:
        w.extend([[row] for row in rng.normal(size=(6000, 64)).astype(np.float32)])
    command = [sys.executable, "-m", "leat", "select", str(tmp_path / "v.leat"), "-e", str(tmp_path / "v.leat"), "-s",
               "diversity", "-n", "900", "-q", "-o"]
    subprocess.run([*command, str(tmp_path / "whole.leat")], check=True, stdout=subprocess.DEVNULL)
    for delay in (0.05, 0.25, 0.4):
        run = subprocess.Popen([*command, str(tmp_path / "killed.leat")], stdout=subprocess.DEVNULL)
        time.sleep(delay)
        run.send_signal(signal.SIGKILL)
        run.wait()
        (tmp_path / "killed.leat").unlink(missing_ok=True)
    subprocess.run([*command, str(tmp_path / "killed.leat"), "-t", "3"], check=True, stdout=subprocess.DEVNULL)
    assert (tmp_path / "killed.leat").read_bytes() == (tmp_path / "whole.leat").read_bytes()
    assert not [name for name in os.listdir(tmp_path) if name.endswith((".partial", ".journal"))]


def test_semantic_duplicates_are_found(tmp_path):
    rng = np.random.default_rng(5)
    scenes = rng.normal(size=(200, 48))
    rows = np.concatenate([scenes, scenes[:150] + 0.05 * rng.normal(size=(150, 48))]).astype(np.float32)
    with leat.Writer(tmp_path / "v.leat", {"vector": ("float32", (48,))}) as w:
        for i, row in enumerate(rows):
            w.append({"vector": row}, key=f"{i}.jpg")
    report = leat.dedup_semantic(tmp_path / "v.leat", tmp_path / "dup.leat", sync=False)
    made = leat.open(tmp_path / "dup.leat")
    assert report["samples"] == 350 and 120 <= report["removed"] <= 150 and report["threshold"] == 0.95
    gone = np.flatnonzero(made.column("keep") == 0)
    assert (made.column("duplicate_of")[gone] == gone - 200).all()
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    want = [unit[i] @ unit[i - 200] for i in gone]
    assert np.allclose(made.column("similarity")[gone], want, atol=1e-5)
    first = (tmp_path / "dup.leat").read_bytes()
    leat.dedup_semantic(tmp_path / "v.leat", tmp_path / "dup.leat", threads=3, memory="200K", force=True, sync=False)
    assert (tmp_path / "dup.leat").read_bytes() == first
    assert leat.dedup_semantic(tmp_path / "v.leat", tmp_path / "dup.leat", keep_share=0.9, force=True)["kept"] == 315
    few = leat.pack(tmp_path / "v.leat", tmp_path / "few.leat", select=tmp_path / "dup.leat")
    assert few["samples"] == 315
    with pytest.raises(leat.ArgumentError, match="either threshold or keep_share"):
        leat.dedup_semantic(tmp_path / "v.leat", tmp_path / "x.leat", keep_share=0.9, threshold=0.5)
    with pytest.raises(leat.ArgumentError, match="no field of vectors"):
        leat.dedup_semantic(tmp_path / "dup.leat", tmp_path / "x.leat")
    with pytest.raises(leat.BudgetError):
        leat.dedup_semantic(tmp_path / "v.leat", tmp_path / "x.leat", memory=5000)


@pytest.mark.parametrize("clusters", [1, 7])
@pytest.mark.parametrize("keep", ["outer", "central"])
def test_similar_rows_are_kept_by_the_mean_of_the_cluster(tmp_path, keep, clusters):
    rows = np.random.default_rng(4).normal(size=(400, 16)).astype(np.float32) + 0.3
    with leat.Writer(tmp_path / "v.leat", {"vector": ("float32", (16,))}) as w:
        w.extend([[row] for row in rows])
    made = {}
    for memory in ("0", "80K"):
        leat.dedup_semantic(tmp_path / "v.leat", tmp_path / "d.leat", threshold=0.9, keep=keep, centres=clusters,
                            memory=memory, force=True, sync=False)
        made[memory] = (tmp_path / "d.leat").read_bytes()
    assert made["0"] == made["80K"]
    got = leat.open(tmp_path / "d.leat")
    unit = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(float)
    for cluster in range(clusters):
        own = np.flatnonzero(got.column("cluster") == cluster)
        far = -unit[own] @ unit[own].mean(0)
        order = own[np.argsort(far if keep == "central" else -far, kind="stable")]
        for at, row in enumerate(order):
            want = (unit[order[:at]] @ unit[row]).max() if at else -1
            assert abs(got.column("similarity")[row] - want) < 1e-5, (cluster, at)


def test_a_share_below_one_row_of_each_cluster_is_said(box):
    report = leat.dedup_semantic(box / "vectors.leat", box / "d.leat", keep_share=0.01, force=True)
    assert report["asked"] == 3 and report["kept"] == report["clusters"] == 17
    run = subprocess.run([sys.executable, "-m", "leat", "dedup", "semantic", str(box / "vectors.leat"), "--keep-share", "0.01",
                          "-f", "-o", str(box / "d.leat")], capture_output=True, text=True, check=True)
    assert "keep share 0.01 asks for 3 rows, but each of the 17 clusters keeps one" in run.stderr
    for wrong in ({"keep_share": 0}, {"threshold": 0}):
        with pytest.raises(leat.ArgumentError, match="0 is not allowed"):
            leat.dedup_semantic(box / "vectors.leat", box / "d.leat", force=True, **wrong)


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    """Three classes of 100 rows; the labels of rows 7, 107 and 207 are wrong, row 50 is far from its class."""
    path = tmp_path_factory.mktemp("labels")
    rng = np.random.default_rng(2)
    truth = np.repeat(np.arange(3), 100)
    rows = np.eye(3)[truth] @ rng.normal(size=(3, 16)) * 3 + 0.3 * rng.normal(size=(300, 16))
    rows[50] = -rows[50]
    given = truth.copy()
    given[[7, 107, 207]] = [1, 2, 0]
    with leat.Writer(path / "rows.leat", {"label": int}, classes={"label": ["cat", "dog", "owl"]}) as w, \
            leat.Writer(path / "v.leat", {"vector": ("float32", (16,))}) as v, \
            leat.Writer(path / "p.leat", {"logits": ("float32", (3,))}) as p:
        for i in range(300):
            w.append({"label": int(given[i])}, key=f"{i}.jpg")
            v.append({"vector": rows[i].astype(np.float32)}, key=f"{i}.jpg")
            p.append({"logits": 4 * np.eye(3, dtype=np.float32)[truth[i]]}, key=f"{i}.jpg")
    return path, given, truth


@pytest.mark.parametrize("by", ["embeddings", "predictions"])
def test_wrong_labels_are_ranked_first(labelled, tmp_path, by):
    path, given, truth = labelled
    file = {"embeddings": "v.leat", "predictions": "p.leat"}[by]
    report = leat.check(path / "rows.leat", tmp_path / "l.leat", labels=True, csv=tmp_path / "l.csv", **{by: path / file})
    made = leat.open(tmp_path / "l.leat")
    rank = made.column("rank")
    assert report["labelled"] == 300 and report["classes"] == 3
    assert {7, 107, 207} <= set(np.flatnonzero((rank >= 0) & (rank < 4)))  # row 50 is as suspicious
    assert (made.column("suggested")[[7, 107, 207]] == truth[[7, 107, 207]]).all()
    assert report["wrong"] == (made.column("issues") & 1).sum() <= 5
    assert {"7.jpg", "107.jpg", "207.jpg"} <= set(report["examples"])
    assert (tmp_path / "l.csv").read_text().splitlines()[0] == "key,label,suggested,suspicion"
    if by == "embeddings":
        assert made.column("issues")[50] & 2 and report["outliers"] <= 10
        again = leat.check(path / "rows.leat", tmp_path / "m.leat", labels=True, embeddings=path / file, threads=3, sync=False)
        assert again["wrong"] == report["wrong"]
        assert (tmp_path / "m.leat").read_bytes() == (tmp_path / "l.leat").read_bytes()
        leat.select(path / "rows.leat", tmp_path / "good.leat", columns=tmp_path / "l.leat", where="issues == 0")


def test_wrong_options_of_labels_are_refused(labelled, tmp_path):
    path, *_ = labelled
    for words, options in (("need embeddings", {}), ("limits: has no effect with labels", {"limits": {"dark": 3}}),
                           ("no int or float column", {"embeddings": path / "v.leat", "column": "nothing"}),
                           ("neighbours: has no effect with predictions", {"predictions": path / "p.leat", "neighbours": 3}),
                           ("no float32 field 'logits'", {"predictions": path / "v.leat"})):
        with pytest.raises(leat.ArgumentError, match=words):
            leat.check(path / "rows.leat", tmp_path / "x.leat", labels=True, **options)
    with pytest.raises(leat.ArgumentError, match="has no effect without labels"):
        leat.check(path / "rows.leat", tmp_path / "x.leat", embeddings=path / "v.leat")
    with pytest.raises(leat.BudgetError):
        leat.check(path / "rows.leat", tmp_path / "x.leat", labels=True, embeddings=path / "v.leat", memory=100)


@pytest.mark.parametrize("strategy", ["typicality", "diversity"])
def test_samples_without_a_vector_are_left_out(tmp_path, strategy):
    rng = np.random.default_rng(4)
    vectors = rng.standard_normal((40, 6)).astype(np.float32)
    vectors[30:35], vectors[35:] = 0, np.nan
    for count in (30, 40):
        with leat.Writer(tmp_path / f"p{count}.leat", {"label": int}, sync=False) as rows, \
                leat.Writer(tmp_path / f"v{count}.leat", {"vector": ("float32", (6,))}, sync=False) as w:
            for i in range(count):
                rows.append({"label": i % 2}, key=str(i))
                w.append({"vector": vectors[i]}, key=str(i))
        made = leat.select(tmp_path / f"p{count}.leat", tmp_path / f"s{count}.leat", strategy, count=8, sync=False,
                           embeddings=tmp_path / f"v{count}.leat")
        assert made["selected"] == 8 and made["without_vector"] == count - 30
    few, all_ = leat.open(tmp_path / "s30.leat"), leat.open(tmp_path / "s40.leat")
    assert np.array_equal(few.column("order"), all_.column("order")[:30]) and np.array_equal(few.column("score"), all_.column("score")[:30])
    assert all_[32]["reason"] == all_[37]["reason"] == "has no vector (zeros or not finite)"
    made = leat.check(tmp_path / "p40.leat", tmp_path / "labels.leat", labels=True, embeddings=tmp_path / "v40.leat", neighbours=3)
    assert made["without_vector"] == 10
    with pytest.raises(leat.DataError, match="no sample is selected: of 40, 30 do not meet the conditions, 0 .*, 10 have no vector and 0 have a value without a share"):
        leat.select(tmp_path / "p40.leat", tmp_path / "none.leat", strategy, count=8, embeddings=tmp_path / "v40.leat",
                    where="key in [" + ", ".join(f"'{i}'" for i in range(30, 40)) + "]")


def test_a_column_of_several_packs_needs_its_full_name(tmp_path):
    for name, values in (("rows", [0, 0, 0]), ("img", [1, 0, 0]), ("sem", [0, 1, 0])):
        with leat.Writer(tmp_path / f"{name}.leat", {"mark" if name == "rows" else "keep": int}, sync=False) as w:
            for i, value in enumerate(values):
                w.append({"mark" if name == "rows" else "keep": value}, key=str(i))
    for order in (("img", "sem"), ("sem", "img")):
        beside = [tmp_path / f"{name}.leat" for name in order]
        for given in ({"where": "keep == 1"}, {"strategies": [{"strategy": "weights", "column": "keep"}]},
                      {"strategies": [{"strategy": "balance", "column": "keep"}]}, {"strategies": [{"strategy": "threshold", "where": "keep == 1"}]}):
            with pytest.raises(leat.ArgumentError, match=f"column 'keep' is in .*{order[0]}.leat and .*{order[1]}.leat; write '{order[0]}.keep' or '{order[1]}.keep'"):
                leat.select(tmp_path / "rows.leat", tmp_path / "s.leat", columns=beside, force=True, **given)
        leat.select(tmp_path / "rows.leat", tmp_path / "s.leat", columns=beside, where="sem.keep == 1 and mark == 0", force=True, sync=False)
        with leat.open(tmp_path / "s.leat") as made:
            assert made.column("selected").tolist() == [0, 1, 0]
