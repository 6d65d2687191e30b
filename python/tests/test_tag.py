# SPDX-License-Identifier: Apache-2.0
"""leat.tag: scores against NumPy, names, boxes, ranks and kills, what takes the columns, bad input."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import leat
from conftest import jpeg

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
PLAIN = {"quiet": True, "threads": 1, "batch_size": 8}


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("tag") / "photos.leat")
    with leat.Writer(path, {"image": "image", "label": int}, sync=False, classes={"label": ["a", "b", "c"]}) as w:
        for i in range(60):
            w.append({"image": jpeg(np.random.default_rng(i), 48 + i % 5, 40), "label": i % 3}, key=f"k{i}")
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A TorchScript classifier of six classes on images of 16 pixels."""
    torch.manual_seed(3)
    net = torch.nn.Sequential(torch.nn.AvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(48, 6))
    path = str(tmp_path_factory.mktemp("model") / "m.pt")
    torch.jit.trace(net.eval(), torch.zeros(2, 3, 16, 16)).save(path)
    return path


def column(path, name):
    return np.stack([np.asarray(sample[name]) for sample in leat.open(path)])


def test_scores_are_the_softmax_of_the_logits(photos, model, tmp_path):
    out = str(tmp_path / "t.leat")
    report = leat.tag(photos, output=out, model=model, image_size=16, top=4, logits=True, **PLAIN)
    tags, logits = leat.open(out), column(out, "logits").astype(np.float64)
    assert list(tags.keys) == list(leat.open(photos).keys) and logits.shape == (60, 6)
    want = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    order = np.argsort(-logits, 1)
    assert np.array_equal(tags.column("tag"), order[:, 0])
    assert np.array_equal(column(out, "tags"), order[:, :4])
    assert np.allclose(tags.column("tag_score"), want.max(1), atol=1e-12)
    assert np.allclose(column(out, "tag_scores"), np.take_along_axis(want, order[:, :4], 1), atol=1e-6)
    best = np.sort(want, 1)
    assert np.allclose(tags.column("tag_margin"), best[:, -1] - best[:, -2], atol=1e-12)
    assert np.allclose(tags.column("tag_entropy"), -(want * np.log(want)).sum(1), atol=1e-12)
    assert report["counts"] == {str(t): int(n) for t, n in zip(*np.unique(order[:, 0], return_counts=True))}
    assert report["not_finite"] == 0
    # the same rows without logits; what a model gives as scores already; scores of several labels
    leat.tag(photos, output=str(tmp_path / "few.leat"), model=model, image_size=16, **PLAIN)
    few = leat.open(tmp_path / "few.leat")
    assert [f.name for f in few.fields] == ["tag", "tag_score", "tag_margin", "tag_entropy", "tags", "tag_scores"]
    assert column(tmp_path / "few.leat", "tags").shape == (60, 5)
    for name, made in (("none", logits), ("sigmoid", 1 / (1 + np.exp(-logits)))):
        leat.tag(photos, output=str(tmp_path / f"{name}.leat"), model=model, image_size=16, activation=name, top=6, **PLAIN)
        assert np.allclose(column(tmp_path / f"{name}.leat", "tag_scores"), -np.sort(-made, 1), atol=1e-6)
        assert np.array_equal(leat.open(tmp_path / f"{name}.leat").column("tag"), order[:, 0])


def test_checkpoints_and_exported_files_agree_with_embed(photos, tmp_path):
    import train_run  # noqa: F401  # the model "tiny_resnet"

    leat.train(photos, output=tmp_path / "run", model="tiny_resnet", epochs=1, batch_size=8, image_size=16, quiet=True,
               tensorboard=False, threads=1)
    leat.embed(photos, output=str(tmp_path / "l.leat"), model=str(tmp_path / "run"), logits=True, **PLAIN)
    want = leat.open(tmp_path / "l.leat").column("label")
    for kind in ("run", "m.pt", "m.pt2"):
        if kind != "run":
            leat.export_model(tmp_path / "run", tmp_path / kind)
        out = tmp_path / f"{kind}.leat"
        leat.tag(photos, output=str(out), model=str(tmp_path / kind), logits=True, **PLAIN)
        made = leat.open(out)
        assert np.array_equal(made.column("tag"), want) and made.classes("tag") == ["a", "b", "c"]
        assert np.allclose(column(out, "logits"), column(tmp_path / "l.leat", "logits"), atol=1e-5)


def test_onnx(photos, model, tmp_path):
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    net = torch.jit.load(model)
    torch.onnx.export(net, (torch.zeros(2, 3, 16, 16),), str(tmp_path / "m.onnx"), dynamo=False, input_names=["image"],
                      dynamic_axes={"image": {0: "n"}})
    for name, path in (("o", str(tmp_path / "m.onnx")), ("t", model)):
        leat.tag(photos, output=str(tmp_path / f"{name}.leat"), model=path, image_size=16, logits=True, **PLAIN)
    assert np.allclose(column(tmp_path / "o.leat", "logits"), column(tmp_path / "t.leat", "logits"), atol=1e-4)


def test_names_of_classes(photos, model, tmp_path):
    names = tmp_path / "names.txt"
    names.write_text("cat\ndog\ncrane\ncrane\n\nowl\n")
    out = str(tmp_path / "n.leat")
    report = leat.tag(photos, output=out, model=model, image_size=16, classes=names, **PLAIN)
    assert leat.open(out).classes("tag") == ["cat", "dog", "crane", "crane (3)", " (4)", "owl"]
    assert set(report["counts"]) <= set(leat.open(out).classes("tag"))
    again = leat.tag(photos, output=out, model=model, image_size=16, classes=names, resume=True, **PLAIN)
    assert again["already_complete"] and again["counts"] == report["counts"] and again["not_finite"] == 0
    with pytest.raises(leat.ExistsError, match="already exists"):
        leat.tag(photos, output=out, model=model, image_size=16, classes=names, top=2, resume=True, **PLAIN)
    name, count = next(iter(report["counts"].items()))
    where = f"tag == '{name}'"
    assert leat.select(photos, tmp_path / "s.leat", columns=out, where=where)["selected"] == count
    leat.pack(out, tmp_path / "few.leat", where=where)
    assert len(leat.open(tmp_path / "few.leat")) == count


def test_images_without_a_result_beside_class_names(photos, tmp_path):
    import train_run  # noqa: F401  # the model "tiny_resnet"

    leat.train(photos, output=tmp_path / "run", model="tiny_resnet", epochs=1, batch_size=8, image_size=16, quiet=True,
               tensorboard=False, threads=1)
    with leat.Writer(tmp_path / "c.leat", {"verdict": int}, sync=False) as w:
        w.extend({"verdict": int(i == 5)} for i in range(60))
    plain = {"model": str(tmp_path / "run"), "logits": True, "checked": str(tmp_path / "c.leat"), **PLAIN}
    for command, name in ((leat.tag, "tag"), (leat.embed, "label")):
        command(photos, output=str(tmp_path / f"{name}.leat"), **plain)
        made = leat.open(tmp_path / f"{name}.leat")
        assert made.classes(name) == ["a", "b", "c"] and np.flatnonzero(made.column(name) == -1).tolist() == [5]


def test_what_takes_tags(photos, model, tmp_path):
    tags = str(tmp_path / "t.leat")
    leat.tag(photos, output=tags, model=model, image_size=16, **PLAIN)
    made = leat.open(tags)
    tag, score = made.column("tag"), made.column("tag_score")
    chosen = str(tmp_path / "s.leat")
    limit = float(np.median(score))
    report = leat.select(photos, chosen, columns=tags, where=f"tag_score < {limit!r}")
    assert report["selected"] == (score < limit).sum()
    with leat.Loader(photos, 4, select=chosen) as loader:
        seen = sum(len(batch.label) for batch in loader)
    assert seen == (score < limit).sum()
    common = [int(t) for t, n in zip(*np.unique(tag, return_counts=True)) if n >= 3]
    leat.select(photos, chosen, [{"strategy": "balance", "column": "tag"}], columns=tags, count=3 * len(set(tag.tolist())),
                force=True)
    kept = tag[leat.open(chosen).column("selected") == 1]
    assert all((kept == t).sum() >= 3 for t in common)
    leat.select(photos, chosen, [{"strategy": "weights", "column": "tag_score", "strength": -1}], columns=tags, count=5,
                force=True)
    assert set(np.flatnonzero(leat.open(chosen).column("selected"))) == set(np.argsort(score, kind="stable")[:5])
    try:
        with leat.view(photos, tags) as shown:
            assert shown.url.startswith("http://127.0.0.1")
    except leat.Error as error:  # a machine without it
        assert "libmicrohttpd" in str(error)


class Detector(torch.nn.Module):
    """Boxes by the brightness of an image: none of dark ones, as torchvision gives them when scripted."""

    def forward(self, images: list[torch.Tensor]) -> tuple[dict[str, torch.Tensor], list[dict[str, torch.Tensor]]]:
        made: list[dict[str, torch.Tensor]] = []
        for image in images:
            n = int(image.mean() * 10)
            side = torch.arange(n).float()
            boxes = torch.stack([side, side, side + image.shape[2], side + image.shape[1]], 1)
            made.append({"boxes": boxes, "labels": torch.arange(n) % 3 + 1, "scores": (side + 1) / 100})
        losses: dict[str, torch.Tensor] = {}
        return losses, made


def test_boxes_of_a_scripted_detector(photos, tmp_path):
    torch.jit.script(Detector()).save(str(tmp_path / "d.pt"))
    out = str(tmp_path / "b.leat")
    report = leat.tag(photos, output=out, model=str(tmp_path / "d.pt"), top=4, **PLAIN)
    made, source = leat.open(out), leat.open(photos)
    total = 0
    for i, sample in enumerate(made):
        image = np.asarray(source[i]["image"], np.float32) / 255
        n = int(np.float32(image.mean()) * 10)
        kept = min(n, 4)
        total += kept
        if abs(image.mean() * 10 - round(image.mean() * 10)) < 1e-3:
            continue  # at the edge the order of sums decides
        assert sample["box_count"] == kept and sample["boxes"].shape == (kept, 4)
        for j in range(kept):  # the last ones have the highest scores
            k = n - 1 - j
            assert sample["boxes"][j].tolist() == [k, k, k + image.shape[1], k + image.shape[0]]
            assert sample["box_tags"][j] == k % 3 + 1 and sample["box_scores"][j] == np.float32((k + 1) / 100)
        assert sample["tag"] == (sample["box_tags"][0] if kept else -1)
        assert kept or sample["tag_score"] == 0
    assert report["boxes"] == made.column("box_count").sum() and report["not_finite"] == 0
    with pytest.raises(leat.ArgumentError, match="gives boxes, not vectors: leat tag takes it"):
        leat.embed(photos, output=str(tmp_path / "v.leat"), model=str(tmp_path / "d.pt"), **PLAIN)
    for given in ({"image_size": 32}, {"logits": True}, {"activation": "none"}):
        with pytest.raises(leat.ArgumentError, match="has no effect on a model of boxes"):
            leat.tag(photos, output=str(tmp_path / "v.leat"), model=str(tmp_path / "d.pt"), **given, **PLAIN)
    (tmp_path / "two.txt").write_text("background\none\n")
    with pytest.raises(leat.ArgumentError, match="2 names, but .*d.pt gives the class [23]"):
        leat.tag(photos, output=str(tmp_path / "v.leat"), model=str(tmp_path / "d.pt"), classes=tmp_path / "two.txt", **PLAIN)


def test_a_negative_class_of_a_detector(photos, tmp_path):
    class Minus(torch.nn.Module):
        def forward(self, images: list[torch.Tensor]) -> list[dict[str, torch.Tensor]]:
            made: list[dict[str, torch.Tensor]] = []
            for _ in images:
                made.append({"boxes": torch.ones((2, 4)), "labels": torch.tensor([1, -7]), "scores": torch.ones(2)})
            return made

    torch.jit.script(Minus()).save(str(tmp_path / "d.pt"))
    (tmp_path / "two.txt").write_text("a\nb\n")
    for classes in (None, tmp_path / "two.txt"):
        with pytest.raises(leat.DataError, match="^[^ ]*d.pt: gives the class -7: classes are 0 or more$"):
            leat.tag(photos, output=str(tmp_path / "v.leat"), model=str(tmp_path / "d.pt"), classes=classes, **PLAIN)


def test_boxes_that_are_not_finite_are_counted(photos, tmp_path):
    class Shaky(torch.nn.Module):
        def forward(self, images: list[torch.Tensor]) -> tuple[dict[str, torch.Tensor], list[dict[str, torch.Tensor]]]:
            made: list[dict[str, torch.Tensor]] = []
            for i, image in enumerate(images):
                boxes, scores = torch.ones((2, 4)), torch.tensor([0.5, 0.25])
                if i == 0:
                    scores[0] = float("nan")
                made.append({"boxes": boxes, "labels": torch.ones(2, dtype=torch.int64), "scores": scores})
            losses: dict[str, torch.Tensor] = {}
            return losses, made

    torch.jit.script(Shaky()).save(str(tmp_path / "s.pt"))
    plain = dict(output=str(tmp_path / "s.leat"), model=str(tmp_path / "s.pt"), **PLAIN)
    report = leat.tag(photos, **plain)
    made = leat.open(tmp_path / "s.leat")
    bad = np.isnan(made.column("tag_score"))
    assert report["not_finite"] == bad.sum() == 8
    assert (made.column("tag")[bad] == -1).all() and (made.column("box_count")[bad] == 0).all()
    assert (made.column("tag")[~bad] == 1).all() and (made.column("box_count")[~bad] == 2).all()
    again = leat.tag(photos, **plain, resume=True)
    assert again["already_complete"] and again["not_finite"] == 8


CHILD = """
import json, os, signal, sys
import leat
from leat._train import embedding as module
module._PART = 2
real, count = module._Parts.write, []

def write(self, part, rows):
    count.append(part)
    if len(count) == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    real(self, part, rows)

module._Parts.write = write
leat.tag(**json.loads(sys.argv[1]))
"""


def child(options, kill=0, **environ):
    """A new process: a fork of a process that has computed with torch may hang."""
    return subprocess.Popen([sys.executable, "-c", CHILD, json.dumps(options), str(kill)],
                            env={**os.environ, "OMP_NUM_THREADS": "1", **environ})


def test_rows_do_not_depend_on_ranks_or_kills(photos, model, tmp_path, monkeypatch):
    from leat._train import embedding as module

    monkeypatch.setattr(module, "_PART", 2)
    plain = {**PLAIN, "batch_size": 4, "model": model, "image_size": 16, "pack": photos}
    ranks = [child({**plain, "output": str(tmp_path / "two.leat")}, RANK=str(rank), WORLD_SIZE="2", MASTER_PORT="1234")
             for rank in range(2)]
    killed = child({**plain, "output": str(tmp_path / "killed.leat")}, kill=4)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    leat.tag(**plain, output=str(tmp_path / "one.leat"))
    assert killed.wait(300) == -signal.SIGKILL and [rank.wait(300) for rank in ranks] == [0, 0]
    assert leat.tag(**plain, output=str(tmp_path / "killed.leat"), resume=True)["resumed"] >= 16
    torch.set_num_threads(threads)
    one = open(tmp_path / "one.leat", "rb").read()
    assert open(tmp_path / "two.leat", "rb").read() == one
    assert open(tmp_path / "killed.leat", "rb").read() == one


def test_not_finite_scores_are_counted(photos, tmp_path):
    class Odd(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            rows = x.mean((2, 3)).clone()
            rows[0, 1] = float("nan")
            return rows

    torch.jit.script(Odd()).save(str(tmp_path / "odd.pt"))
    report = leat.tag(photos, output=str(tmp_path / "o.leat"), model=str(tmp_path / "odd.pt"), image_size=16, **PLAIN)
    made = leat.open(tmp_path / "o.leat")
    bad = np.isnan(made.column("tag_score"))
    assert report["not_finite"] == 8 == bad.sum()
    assert (made.column("tag")[bad] == -1).all() and (made.column("tag")[~bad] >= 0).all()
    first = made[int(bad.argmax())]
    assert (first["tags"] == -1).all() and np.isnan(first["tag_scores"]).all() and np.isnan(first["tag_margin"])
    assert sum(report["counts"].values()) == report["samples"] - 8  # a tag without a score is none


def test_the_command(photos, model, tmp_path):
    words = [sys.executable, "-m", "leat", "tag", photos, "-o", str(tmp_path / "c.leat"), "-m", model, "--image-size", "16",
             "-b", "8", "-t", "1"]
    done = subprocess.run([*words, "--json"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["samples"] == 60
    again = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert again.returncode == 2 and "already exists (use --force to replace it)" in again.stderr
    text = subprocess.run([*words, "--force"], capture_output=True, text=True, timeout=300)
    assert text.returncode == 0 and text.stdout.startswith("60 images by m.pt") and "most frequent: " in text.stdout


def test_bad_input_is_one_line(photos, model, tmp_path):
    def fails(kind, message, pack=photos, **changed):
        with pytest.raises(kind, match=message) as caught:
            leat.tag(pack, **{"output": str(tmp_path / "o.leat"), "model": model, "image_size": 16, **PLAIN, **changed})
        assert "\n" not in str(caught.value)
        assert not (tmp_path / "o.leat").exists() and not (tmp_path / "o.leat.parts").exists()

    (tmp_path / "three.txt").write_text("a\nb\nc\n")
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe\n")
    fails(leat.ArgumentError, "model: is missing", model=None)
    fails(leat.ArgumentError, "model: tiny: no such file or run", model="tiny")
    fails(leat.ArgumentError, "classes: 3 names, but .* gives 6 scores", classes=tmp_path / "three.txt")
    fails(leat.ArgumentError, "is empty", classes=tmp_path / "empty.txt")
    fails(leat.ArgumentError, "not a text file", classes=tmp_path / "bytes.txt")
    fails(leat.StorageError, "nowhere.txt", classes=tmp_path / "nowhere.txt")
    fails(leat.ArgumentError, "top", top=-1)
    fails(leat.ArgumentError, "no option 'clases'; did you mean 'classes'", clases="x")
    net = torch.nn.Sequential(torch.nn.Flatten(0), torch.nn.Unflatten(0, (1, -1)))
    torch.jit.script(net).save(str(tmp_path / "flat.pt"))
    fails(leat.DataError, r"flat.pt: gives numbers of shape \[1, 6144\] for 8 images: a row for each is needed", model=str(tmp_path / "flat.pt"))
    net = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(3, 1), torch.nn.Flatten(0))
    torch.jit.script(net).save(str(tmp_path / "one.pt"))
    for call in (leat.tag, leat.embed):
        with pytest.raises(leat.DataError, match=r"one.pt: gives numbers of shape \[8\] for 8 images: a row for each is needed, as in \[8, 512\]$"):
            call(photos, output=str(tmp_path / "o.leat"), model=str(tmp_path / "one.pt"), image_size=16, **PLAIN)
    leat.train(photos, output=tmp_path / "ssl", model="resnet9", method="simclr", epochs=1, max_steps=1, batch_size=4,
               image_size=16, quiet=True, tensorboard=False, threads=1)
    fails(leat.ArgumentError, "has no classifier", model=str(tmp_path / "ssl"))
