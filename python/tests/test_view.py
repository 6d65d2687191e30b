# SPDX-License-Identifier: Apache-2.0
"""The requests of `leat view`: rows, filters, histograms, pictures, selections, and what it refuses."""

from __future__ import annotations

import io
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import numpy as np
import pytest

import leat
from conftest import jpeg
from view_server import View

Image = pytest.importorskip("PIL.Image")

HOSTILE = ["<img src=x onerror=alert(1)>.jpg", "</script><script>alert(2)</script>", "a\"b'c`d&amp;.jpg", "new\nline.jpg",
           "‮gpj.exe", "%2e%2e/%00.jpg", "../../etc/passwd", b"\xff\xfe bytes".decode("latin-1")]


@pytest.fixture(scope="module")
def columns(pack, tmp_path_factory):
    folder = tmp_path_factory.mktemp("view")
    check, dup, vectors = (str(folder / f"{n}.leat") for n in ("check", "dup", "vectors"))
    leat.check(pack, check, sync=False)
    leat.dedup_images(pack, dup, sync=False)
    leat.embed(pack, output=vectors)
    return [check, dup, vectors]


@pytest.fixture(scope="module")
def view(pack, columns, tmp_path_factory):
    save = tmp_path_factory.mktemp("saved") / "mine.leat"
    with View(pack, "--save", save, "--with", *columns) as v:
        yield v


def test_facts_name_all_columns(view, pack):
    facts = view.get("facts")
    names = [c["name"] for c in facts["columns"]]
    assert facts["rows"] == 101 and facts["pack"] == "small" and len(names) == len(set(names))
    assert {"key", "label", "score", "caption", "vector", "mean", "issues", "cluster", "keep", "vectors.vector"} <= set(names)
    label = next(c for c in facts["columns"] if c["name"] == "label")
    assert label["classes"][3] == "class 3"
    assert "dark" in next(c for c in facts["columns"] if c["name"] == "issues")["bits"]


def test_rows_are_sorted_and_filtered_as_numpy_does(view, pack, columns):
    data, check = leat.open(pack), leat.open(columns[0])
    mean, label = check.column("mean"), data.column("label")
    assert view.rows({"sort": "mean"}, count=101) == list(np.argsort(mean, kind="stable"))
    assert view.rows({"sort": "mean", "desc": True}, count=101) == list(np.argsort(-mean, kind="stable"))
    low, high = np.quantile(mean, [0.2, 0.6])
    want = np.flatnonzero((mean >= low) & (mean <= high) & np.isin(label, [2, 5]))
    where = [{"column": "mean", "min": low, "max": high}, {"column": "label", "in": [2, 5]}]
    assert view.rows({"where": where}, count=101) == list(want)
    part = view.get("rows", q={"sort": "mean"}, **{"from": 95}, count=50, show="mean")
    assert part["matched"] == 101 and len(part["rows"]) == 6
    assert [r["value"] for r in part["rows"]] == sorted(mean)[95:]
    assert view.rows({"where": [{"column": "key", "has": "/001"}]}) == list(range(10, 20))
    assert view.rows({"where": [{"column": "caption", "has": "CAPTION 7 "}]}) == [7]


def test_histograms_count_every_row(view, columns):
    mean = leat.open(columns[0]).column("mean")
    h = view.get("histogram", column="mean")
    assert sum(h["bins"]) == 101 and h["lo"] == mean.min() and h["hi"] == mean.max()
    assert h["bins"] == list(np.histogram(mean, len(h["bins"]))[0])
    label = view.get("histogram", column="label", q={"where": [{"column": "score", "max": 4.5}]})
    assert label["values"][0] == {"value": 0, "name": "class 0", "count": 1} and len(label["values"]) == 10
    assert len(view.get("histogram", column="caption")["values"]) == 100


def test_thumbnails_are_small_images_of_leat(view, pack):
    data = leat.open(pack)

    def size_of(row):
        return data[row]["image"].width, data[row]["image"].height

    for row in range(0, 101, 20):
        status, kind, got = view.raw(f"t/{row}", s=32)
        image = Image.open(io.BytesIO(got))
        width, height = (max(1, int(side * 32 / max(size_of(row)) + 0.5)) for side in size_of(row))
        assert status == 200 and kind == "image/jpeg" and image.size == (width, height)
        with leat.Loader(pack, 1, f"Resize(({height}, {width}), like=fast)", indices=[row], fields=["image"], as_="numpy",
                         as_dict=True, threads=1) as loader:
            want = np.asarray(next(iter(loader))["image"])[0].transpose(1, 2, 0)
        assert abs(np.asarray(image, float) - want).mean() < 8  # the difference is JPEG's: strong colours with half the chroma samples
    status, kind, got = view.raw("i/4")
    assert kind == "image/jpeg" and Image.open(io.BytesIO(got)).size == size_of(4)


def vectors_of(path):
    data = leat.open(path)
    return np.stack([np.asarray(data[i]["vector"], np.float64) for i in range(len(data))])


def test_similar_rows_are_those_of_the_cosine(view, columns):
    vectors = vectors_of(columns[2])
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    for row in (0, 33):
        cosine = unit @ unit[row]
        cosine[row] = -2
        got = view.get("similar", row=row, column="vectors.vector", count=10)
        assert np.allclose([g["cosine"] for g in got], np.sort(cosine)[::-1][:10], atol=1e-4)
        assert got[0]["row"]["row"] == cosine.argmax()


def test_the_map_has_the_distances_of_principal_components(view, columns):
    vectors = vectors_of(columns[2])
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    centred = unit - unit.mean(0)
    want = centred @ np.linalg.svd(centred)[2][:2].T
    _, kind, data = view.raw("map", column="vectors.vector")
    count, matched = np.frombuffer(data[:8], "<u4")
    points = np.frombuffer(data[8:], np.dtype([("row", "<u4"), ("x", "<u2"), ("y", "<u2")]))
    assert kind == "application/octet-stream" and count == matched == len(points) == 101
    for axis, name in enumerate("xy"):
        assert abs(np.corrcoef(points[name], want[points["row"], axis])[0, 1]) > 0.98


def test_groups_have_equal_values(view):
    groups = view.get("groups", column="label", count=20)
    assert groups["groups"] == 10 and [g["size"] for g in groups["list"]] == [11] + [10] * 9
    assert [r["row"] for r in groups["list"][3]["rows"]] == list(range(3, 101, 10))


def test_a_selection_is_edited_and_saved_as_a_new_pack(view, pack):
    assert view.post("select", {"rows": [3, 5, 100], "on": True}) == {"selected": 3}
    assert view.post("select", {"rows": [5], "on": False}) == {"selected": 2}
    assert view.rows({"where": [{"selected": True}]}) == [3, 100]
    first, second = view.post("save", {}), view.post("save", {})
    assert first["path"].endswith("mine.leat") and second["path"].endswith("mine-2.leat")
    saved = leat.open(first["path"])
    assert list(saved.keys) == list(leat.open(pack).keys)
    assert np.flatnonzero(saved.column("selected")).tolist() == [3, 100]
    with View(pack, "--selection", first["path"]) as again:
        assert again.get("facts")["selected"] == 2
    assert view.post("select", {"q": "{}", "on": False}) == {"selected": 0}


def test_requests_without_the_right_address_are_refused(view):
    host = view.url.split("/")[2]
    token = view.url.split("/")[3]
    wrong = "0" * 32 if token[0] != "0" else "1" * 32
    for base in (f"http://{host}/", f"http://{host}/{wrong}/", f"http://{host}/{token[:-1]}/"):
        assert view.raw("facts", base=base)[0] == 403
    assert view.raw("facts", headers={"Host": "evil.example"})[0] == 403
    assert view.raw("facts", headers={"Host": f"127.0.0.1.evil.example:{host.split(':')[1]}"})[0] == 403
    assert view.raw("facts", headers={"Host": f"localhost:{host.split(':')[1]}"})[0] == 200
    assert view.raw("select", body={"rows": [1], "on": True}, headers={"Origin": "http://evil.example"})[0] == 403
    assert view.raw("select", body={"rows": [1], "on": True}, headers={"Sec-Fetch-Site": "cross-site"})[0] == 403
    assert view.raw("facts", headers={"Host": f"{host}.evil.example"})[0] == 403
    assert view.raw("select", body={"rows": [1], "on": True}, base=f"http://{host}/")[0] == 403
    assert view.raw("select")[0] == 404  # only by POST
    assert view.get("facts")["selected"] == 0


def test_idle_connections_neither_block_nor_hold_up_the_end(pack):
    with View(pack) as v:
        host, port = v.url.split("/")[2].split(":")
        idle = [socket.create_connection((host, int(port))) for _ in range(200)]
        assert v.get("facts")["rows"] == 101
        request = urllib.request.Request(v.url + "facts", method="HEAD")
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.status == 200 and int(answer.headers["Content-Length"]) > 100 and not answer.read()
        assert v.close() == 143  # by one signal
        for one in idle:
            one.close()


@pytest.mark.parametrize(("path", "args", "status"), [
    ("rows", {"from": 2**32 - 1, "count": 2000}, 200), ("rows", {"from": 2**32}, 400), ("rows", {"count": 10**9}, 400),
    ("rows", {"q": "{"}, 400), ("rows", {"q": "[" * 5000}, 400), ("rows", {"q": {"sort": "none"}}, 400),
    ("t/101", {}, 404), ("t/-1", {}, 404), ("t/1", {"s": 10**6}, 400), ("i/99999999999999999999", {}, 404),
    ("similar", {"row": 101, "column": "vector"}, 400), ("../facts", {}, 404), ("nothing", {}, 404)])
def test_odd_requests_get_an_answer(view, path, args, status):
    assert view.raw(path, **args)[0] == status
    assert view.get("facts")["rows"] == 101


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("hostile") / "<b>odd.leat")
    rng = np.random.default_rng(1)
    with leat.Writer(path, {"image": "image", "label": int, "caption": str}, sync=False,
                     classes={"label": ["<script>alert(3)</script>", "plain"]}) as w:
        for i, key in enumerate(HOSTILE):
            w.append({"image": jpeg(rng, 40, 30), "label": i % 2, "caption": key[::-1]}, key=key)
    return path


def test_hostile_names_are_data(hostile):
    with View(hostile) as v:
        assert [r["key"] for r in v.get("rows")["rows"]] == HOSTILE
        assert v.raw("rows")[1] == "application/json"
        for i, key in enumerate(HOSTILE):
            assert i in v.rows({"where": [{"column": "key", "has": key}]})
        page = v.raw("")[2].decode()
        assert "alert(" not in page and "innerHTML" not in page
        v.post("select", {"rows": [0], "on": True})
        saved = v.post("save", {})["path"]
    assert os.path.dirname(saved) == os.path.dirname(hostile) and list(leat.open(saved).keys) == HOSTILE


def refuses(*args):
    done = subprocess.run([sys.executable, "-m", "leat", "view", *map(str, args)], capture_output=True, text=True, timeout=120)
    assert done.stdout == "" and len(done.stderr.splitlines()) == 1, done.stderr
    return done.returncode, done.stderr


def test_other_columns_are_refused(pack, plain, columns, tmp_path):
    code, words = refuses(plain, "--with", columns[0])
    assert code == 2 and "check.leat: its columns were not made from" in words
    code, words = refuses(pack, columns[0])
    assert code == 2 and "come after --with" in words
    code, words = refuses(pack, "--with")
    assert code == 2 and "no pack of columns" in words
    assert refuses(columns[0])[0] == 2  # no images
    assert refuses(tmp_path / "none.leat")[0] == 4


def test_columns_of_several_packs_find_their_rows(plain, images, tmp_path):
    both, other, dup = (str(tmp_path / n) for n in ("both.leat", "other.leat", "dup.leat"))
    with leat.Writer(other, {"image": "image", "label": int}, sync=False) as w:
        for data in images[:7]:
            w.append([data, 1])
    leat.check([plain, other], both, sync=False)
    mean = leat.open(both).column("mean")
    with View(other, "--with", both) as v:
        got = v.get("rows", show="mean")["rows"]
    assert [r["value"] for r in got] == list(mean[101:])
    leat.dedup_images([plain, both], dup, sync=False)  # a pack, and columns of two
    with View(other, "--with", dup) as v:
        got = v.get("rows", show="row")["rows"]
    assert [r["value"] for r in got] == list(range(101, 108))


def test_a_saved_selection_is_taken_by_other_commands(view, pack, columns, tmp_path):
    with leat.view(pack, columns[0], save=tmp_path / "chosen.leat") as page:
        assert page.samples == 101 and page.columns > 20 and page.url in repr(page)
        urllib.request.urlopen(page.url + "select", b'{"rows": [2, 40], "on": true}', timeout=60).read()
        urllib.request.urlopen(page.url + "save", b"{}", timeout=60).read()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(page.url, timeout=60)
    with leat.Loader(pack, 2, "Resize((8, 8))", select=tmp_path / "chosen.leat", as_="numpy", as_dict=True,
                     order="sequential") as loader:
        assert next(iter(loader))["label"].tolist() == [2, 0]
    with leat.view(pack, [columns[1], columns[2]], selection=tmp_path / "chosen.leat", port=0, memory="64M") as page:
        assert page.samples == 101
        page.close()
    for wrong, words in (({"columns": plain_text(tmp_path)}, "not a leat pack"), ({"field": "label"}, "has no image field"),
                         ({"selection": columns[2]}, "not a selection"), ({"memory": 5}, "memory")):
        with pytest.raises(leat.Error, match=words) as raised:
            leat.view(pack, **wrong)
        assert "--" not in str(raised.value)
    for wrong in ({"selection": "nope.leat"}, {"columns": "nope.leat"}):
        with pytest.raises(leat.NotFoundError):
            leat.view(pack, **wrong)
    with pytest.raises(leat.NotFoundError):
        leat.view("nope.leat")
    with pytest.raises(leat.Error, match="there is no folder"):
        leat.view(pack, save=tmp_path / "nowhere" / "s.leat")
    with View(pack, "--with", ",".join(columns)) as v:
        assert len({c["source"] for c in v.get("facts")["columns"]}) == 4


def plain_text(folder):
    (folder / "a.txt").write_text("no pack " * 2000)
    return folder / "a.txt"


def test_a_signal_ends_the_view(pack):
    v = View(pack, "--json")
    assert v.url.startswith('{"url":"http://127.0.0.1:')
    assert v.close() == 143
