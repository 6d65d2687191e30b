# SPDX-License-Identifier: Apache-2.0
"""leat.curate: the same as its steps by hand, resumed after kills, limits, the page, the command."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time

import numpy as np
import pytest

import leat
from conftest import curate_command, jpeg
from leat import _curate, _curate_config, _curate_early, _curate_measure, _curate_plan, _curate_steps, _curate_text

COLUMNS = ("check.leat", "embed.leat", "duplicates.leat", "select.leat")
FILES = ("pack.leat", "bad.jsonl", "check.csv", "duplicates.csv", "selected.txt", *COLUMNS)


def data(folder, name):
    with open(os.path.join(folder, name), "rb") as file:
        return file.read()


def ran(result):
    return [step["step"] for step in result["steps"] if not step["reused"]]


def test_steps_are_those_of_the_commands(photos, whole, tmp_path):
    folder, result = whole
    assert result["samples"] == 40 and result["selected"] == 8 and result["unreadable"] == 1
    leat.pack(photos, tmp_path / "pack.leat", on_error="skip", report=tmp_path / "bad.jsonl")
    leat.check(tmp_path / "pack.leat", tmp_path / "check.leat", csv=tmp_path / "check.csv")
    leat.embed(tmp_path / "pack.leat", output=tmp_path / "embed.leat", quiet=True)
    leat.dedup_images(tmp_path / "check.leat", tmp_path / "duplicates.leat", csv=tmp_path / "duplicates.csv")
    by = ["diversity", {"strategy": "balance", "column": "pack.label", "distribution": "input"}]
    leat.select(tmp_path / "pack.leat", tmp_path / "select.leat", by, share=0.2, embeddings=tmp_path / "embed.leat",
                columns=[tmp_path / "check.leat", tmp_path / "duplicates.leat"], where="check.verdict == 0 and duplicates.keep == 1")
    for name in FILES:
        if name != "selected.txt" and not name.startswith("duplicates"):  # these name the place of the columns
            assert data(folder, name) == data(tmp_path, name), name
    found = [leat.open(place / "duplicates.leat") for place in (folder, tmp_path)]
    assert list(map(dict, found[0])) == list(map(dict, found[1]))
    assert data(folder, "duplicates.csv").replace(os.fsencode(folder / "pack.leat"), b"") == \
        data(tmp_path, "duplicates.csv").replace(os.fsencode(tmp_path / "check.leat"), b"")
    made = leat.open(tmp_path / "select.leat")
    order = made.column("order")
    rows = sorted(np.flatnonzero(order >= 0), key=lambda row: order[row])
    assert data(folder, "selected.txt").decode().split() == [made.keys[int(row)] for row in rows]
    dropped = {step["step"]: step["dropped"] for step in result["steps"]}
    assert dropped["pack"] == {"unreadable": 1} and dropped["dedup"] == {"duplicate": 5}
    assert dropped["select"] == {"left out by conditions": 5, "not chosen": 27}
    with leat.Loader(folder / "pack.leat", 4, select=folder / "select.leat") as loader:
        assert sum(len(batch.label) for batch in loader) == 8


def test_images_are_checked_while_they_are_packed(photos, whole, tmp_path, monkeypatch):
    result = whole[1]
    check = next(step for step in result["steps"] if step["step"] == "check")
    assert check["why"] == "checked while packing" and check["rows"] == 40
    calls, real = [], leat._images.check
    def check(source, output, **more):
        if output.startswith(str(tmp_path)):  # not that of one image, before the run
            calls.append(output)
        return real(source, output, **more)

    monkeypatch.setattr(leat._images, "check", check)
    config = {"check": {"limits": {"dark": 200, "grey": "off"}}}  # as JSON may have it
    leat.curate(photos, tmp_path / "run", config=config, share=0.2)
    assert not calls
    limits = {**config["check"]["limits"], "grey": False}  # as YAML reads "off"
    real(tmp_path / "run" / "pack.leat", tmp_path / "check.leat", csv=tmp_path / "check.csv", limits=limits)
    for name in ("check.leat", "check.csv"):
        assert data(tmp_path / "run", name) == data(tmp_path, name), name
    assert data(tmp_path / "run", "check.csv") != data(whole[0], "check.csv")
    # other limits: the pack is used again; options that packing does not have: a separate run
    config["check"]["limits"]["dark"] = 3
    assert ran(leat.curate(photos, tmp_path / "run", config=config, share=0.2))[0] == "check" and len(calls) == 1
    leat.curate(photos, tmp_path / "other", config={"check": {"max_pixels": 10**6}}, share=0.2)
    assert len(calls) == 2 and data(tmp_path / "other", "check.csv") == data(whole[0], "check.csv")
    plan = {row["step"]: row for row in leat.curate(photos, tmp_path / "x", plan=True)["steps"]}
    assert plan["check"]["read_bytes"] == 0 < plan["pack"]["read_bytes"]


def test_labels_are_balanced_unless_the_config_says_otherwise(photos, whole, tmp_path):
    record = json.loads(data(whole[0], "run.json"))["steps"]["select"]
    assert record["strategies"] == ["diversity", {"strategy": "balance", "column": "pack.label", "distribution": "input"}]
    pack = leat.open(whole[0] / "pack.leat")
    chosen = pack.column("label")[leat.open(whole[0] / "select.leat").column("selected") == 1]
    assert np.bincount(chosen, minlength=3).max() <= 3  # 8 of three classes
    alone = leat.curate(whole[0] / "pack.leat", tmp_path / "alone", share=0.2, config={"select": {"strategies": ["diversity"]}})
    assert alone["selected"] == 8
    assert json.loads(data(tmp_path / "alone", "run.json"))["steps"]["select"]["strategies"] == ["diversity"]
    with leat.Writer(tmp_path / "plain.leat", {"image": "image", "label": int}) as w:  # labels without classes
        for i in range(6):
            w.append({"image": jpeg(np.random.default_rng(i), 40, 40), "label": i})
    leat.curate(tmp_path / "plain.leat", tmp_path / "plain", count=3)
    assert json.loads(data(tmp_path / "plain", "run.json"))["steps"]["select"]["strategies"] == ["diversity"]


def test_a_balance_may_choose_fewer_than_asked(whole, tmp_path):
    config = {"select": {"strategies": [{"strategy": "balance", "column": "label", "distribution": {"cat": 1}}]}}
    result = leat.curate(whole[0] / "pack.leat", tmp_path / "run", config=config, count=30)
    labels = leat.open(whole[0] / "pack.leat").column("label")
    assert set(labels[leat.open(tmp_path / "run" / "select.leat").column("selected") == 1]) == {0}
    assert result["asked"] == 30 > result["selected"]


def in_child(work):
    """The wait status of a forked child that runs `work`."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException:
            os._exit(99)
        os._exit(0)
    return os.waitpid(pid, 0)[1]


def test_killed_at_every_step_and_resumed(photos, tmp_path):
    folder, saved = tmp_path / "run", tmp_path / "saved"
    leat.curate(photos, folder, share=0.2)
    os.rename(folder, saved)

    def killed(step, before):
        real = _curate_steps.RUN[step]

        def run(*args):
            if before:
                os.kill(os.getpid(), signal.SIGKILL)
            real(*args)
            os.kill(os.getpid(), signal.SIGKILL)

        _curate_steps.RUN[step] = run
        leat.curate(photos, folder, share=0.2)

    for i, step in enumerate(("pack", "check", "embed", "dedup", "select", "dump")):
        status = in_child(lambda: killed(step, before=i % 2 == 1))
        assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, step
        assert json.loads(data(folder, "run.json"))["steps"][step]["state"] == "running"
    result = leat.curate(photos, folder, share=0.2)
    assert ran(result) == ["dump"]
    for name in FILES:
        assert data(folder, name) == data(saved, name), name
    assert not os.path.exists(folder / "embed.leat.parts")


def test_killed_inside_embed(photos, whole, tmp_path, monkeypatch):
    from leat._train import embedding

    config = {"embed": {"batch_size": 4}}
    monkeypatch.setattr(embedding, "_PART", 2)
    real, count = embedding._Parts.write, []

    def killed():
        def write(self, part, rows):
            count.append(part)
            if len(count) == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            real(self, part, rows)

        embedding._Parts.write = write
        leat.curate(photos, tmp_path / "run", config=config, share=0.2)

    assert os.WTERMSIG(in_child(killed)) == signal.SIGKILL
    assert len(os.listdir(tmp_path / "run" / "embed.leat.parts")) >= 2
    assert ran(leat.curate(photos, tmp_path / "run", config=config, share=0.2)) == ["embed", "dedup", "select", "dump"]
    vectors = [np.stack([s["vector"] for s in leat.open(folder / "embed.leat")]) for folder in (tmp_path / "run", whole[0])]
    assert np.array_equal(*vectors)


@pytest.mark.parametrize("named", [True, False])
def test_killed_between_the_pack_and_its_check(photos, whole, tmp_path, named):
    """A resumed run counts the images that the killed one left out."""
    folder = tmp_path / "run"
    shutil.copytree(whole[0], folder)
    state = json.loads(data(folder, "run.json"))
    state["steps"] = {"pack": {"state": "running", "key": state["steps"]["pack"]["key"]}, "check": {"state": "running"}}
    write_json(folder / "run.json", state)
    for name in os.listdir(folder):
        if name not in ("run.json", "pack.leat", "bad.jsonl"):
            os.unlink(folder / name)
    (folder / "check.leat.scores").write_bytes(b"")
    if not named:
        os.rename(folder / "bad.jsonl", folder / "bad.jsonl.partial")
    for again in range(2):
        result = leat.curate(photos, folder, share=0.2)
        assert result["unreadable"] == 1 and result["steps"][0]["dropped"] == {"unreadable": 1}
        assert [step["reused"] for step in result["steps"]] == [bool(again)] * 6
    assert b"1 could not be read" in data(folder, "report.html")
    for name in ("pack.leat", "bad.jsonl", "check.leat", "check.csv", "selected.txt"):
        assert data(folder, name) == data(whole[0], name), name
    assert not [name for name in os.listdir(folder) if name.endswith((".partial", ".scores"))]


def test_what_changed_is_run_again(photos, whole, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(whole[0], folder)
    assert ran(leat.curate(photos, folder, share=0.2)) == []
    assert ran(leat.curate(photos, folder, share=0.2, threads=1, memory="1G")) == []  # the results are the same
    assert ran(leat.curate(photos, folder, count=5)) == ["select", "dump"]
    assert len(data(folder, "selected.txt").split()) == 5
    few = {"dedup": {"keep": "first"}}
    assert ran(leat.curate(photos, folder, count=5, config=few))[0] == "dedup"
    assert ran(leat.curate(photos, folder, count=5, config=few, from_="embed")) == ["embed", "dedup", "select", "dump"]
    off = {"dedup": False}
    assert ran(leat.curate(photos, folder, count=5, config=off)) == ["select", "dump"]
    assert json.loads(data(folder, "run.json"))["steps"]["dedup"]["state"] == "off"
    os.unlink(folder / "check.leat")
    assert "check" in ran(leat.curate(photos, folder, count=5, config=off))
    assert ran(leat.curate(photos, folder, count=5, config=off, force=True)) == ["pack", "check", "embed", "select", "dump"]
    assert not os.path.exists(folder / "duplicates.leat")


def test_a_changed_source_is_noticed(tmp_path):
    (tmp_path / "photos").mkdir()
    for i in range(6):
        (tmp_path / "photos" / f"{i}.jpg").write_bytes(jpeg(np.random.default_rng(i), 40, 40))
    assert leat.curate(tmp_path / "photos", tmp_path / "run")["samples"] == 6
    (tmp_path / "photos" / "6.jpg").write_bytes(jpeg(np.random.default_rng(6), 40, 40))
    result = leat.curate(tmp_path / "photos", tmp_path / "run")
    assert result["samples"] == result["selected"] == 7 and ran(result)[0] == "pack"
    # as tar, and as a pack, which is read where it is
    with tarfile.open(tmp_path / "photos.tar", "w") as tar:
        for i in range(7):
            tar.add(tmp_path / "photos" / f"{i}.jpg", f"{i}.jpg")
    assert leat.curate(tmp_path / "photos.tar", tmp_path / "by-tar")["selected"] == 7
    leat.curate(tmp_path / "run" / "pack.leat", tmp_path / "in-place", count=3)
    assert not os.path.exists(tmp_path / "in-place" / "pack.leat")
    assert len(data(tmp_path / "in-place", "selected.txt").split()) == 3
    leat.curate(tmp_path / "run" / "pack.leat", tmp_path / "again", config={"pack": {"images": "raw"}})
    assert leat.open(tmp_path / "again" / "pack.leat")[0]["image"].codec == "raw"


@pytest.mark.parametrize("to, made", [("pack", "selected.leat"), ("folder", "selected"), ("webdataset", "selected")])
def test_dumps(whole, to, made, tmp_path):
    source, config = whole[0] / "pack.leat", {"dump": {"to": to}}
    result = leat.curate(source, tmp_path / "run", config=config, count=6)
    assert result["dump"] == str(tmp_path / "run" / made)
    keys = sorted(data(tmp_path / "run", "selected.txt").decode().split())

    def found():
        if to == "pack":
            return sorted(leat.open(result["dump"]).keys)
        if to == "folder":
            return sorted(os.path.relpath(os.path.join(folder, name), result["dump"])
                          for folder, _, files in os.walk(result["dump"]) for name in files)
        shards = [os.path.join(result["dump"], name) for name in os.listdir(result["dump"])]
        return [name for shard in shards for name in tarfile.open(shard).getnames() if name.endswith("jpg")]

    assert found() == keys or to == "webdataset" and len(found()) == len(keys)
    assert ran(leat.curate(source, tmp_path / "run", config=config, count=6)) == []
    leat.curate(source, tmp_path / "run", config=config, count=3)  # nothing of the larger selection stays
    assert len(found()) == 3
    leat.curate(source, tmp_path / "run", count=3)
    assert not os.path.exists(result["dump"])
    # elsewhere: what is there is replaced only when this run wrote it
    elsewhere = str(tmp_path / f"out-{to}{'.leat' * (to == 'pack')}")
    config["dump"]["output"] = elsewhere
    assert leat.curate(source, tmp_path / "run", config=config, count=3)["dump"] == elsewhere
    leat.curate(source, tmp_path / "run", config=config, count=4)
    with pytest.raises(leat.Error, match="exists"):
        leat.curate(source, tmp_path / "other", config=config, count=4)


def tree(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("to", ["pack", "folder", "webdataset", "parquet"])
def test_force_replaces_a_dump_elsewhere_and_nothing_else(whole, to, tmp_path):
    if to == "parquet":
        pytest.importorskip("pyarrow")
    source, place = whole[0] / "pack.leat", tmp_path / "place"
    place.mkdir()
    (place / "mine.txt").write_text("words")
    out = place / "out.leat" if to == "pack" else place
    config = {"dump": {"to": to, "output": str(out)}}
    leat.curate(source, tmp_path / "run", config=config, count=6)
    leat.curate(source, tmp_path / "run", config=config, count=3, force=True)
    other = tmp_path / "other" / "out.leat" if to == "pack" else tmp_path / "other"
    (tmp_path / "other").mkdir()
    leat.curate(source, tmp_path / "fresh", config={"dump": {"to": to, "output": str(other)}}, count=3)
    assert set(tree(place)) == {"mine.txt", *tree(tmp_path / "other")}  # nothing of the larger selection stays
    assert (place / "mine.txt").read_text() == "words"
    # files that the earlier run did not write, or that have changed since, are found before the first step
    changed = next(path for path in sorted(place.rglob("*")) if path.is_file() and path.name != "mine.txt")
    changed.write_bytes(b"words")
    before = data(tmp_path / "run", "run.json")
    for more in ({}, {"force": True}):
        with pytest.raises(leat.ExistsError, match=f"{changed.name}: has changed since leat curate made it"):
            leat.curate(source, tmp_path / "run", config=config, count=4, **more)
    assert changed.read_bytes() == b"words" and data(tmp_path / "run", "run.json") == before


def test_a_file_in_the_way_of_a_dump_is_found_before_it_writes(photos, whole, tmp_path):
    key = data(whole[0], "selected.txt").decode().split()[-1]
    place = tmp_path / "place"
    (place / key).parent.mkdir(parents=True)
    (place / key).write_text("words")
    config = {"dump": {"to": "folder", "output": str(place)}}
    for source in (photos, whole[0] / "pack.leat"):  # their names are known before the first step
        with pytest.raises(leat.ExistsError, match=f"{key}: already exists; give another output"):
            leat.curate(source, tmp_path / "run", config=config, share=0.2)
        assert not (tmp_path / "run").exists()
    (place / key).rename(place / "mine.jpg")  # not in the way
    leat.export(whole[0] / "pack.leat", tmp_path / "tar", to="webdataset")
    shard = str(tmp_path / "tar" / "00000.tar")
    leat.curate(shard, tmp_path / "list", share=0.2)
    chosen = data(tmp_path / "list", "selected.txt").decode().split()[-1]
    (place / chosen).parent.mkdir(parents=True, exist_ok=True)
    (place / chosen).write_text("words")
    done = subprocess.run([sys.executable, "-m", "leat", "curate", shard, "-o", str(tmp_path / "run"), "--share", "0.2", "--config",
                           str(write_json(tmp_path / "c.yaml", config))], capture_output=True, text=True, timeout=300)
    assert done.returncode == 4 and "already exists; dump has not written anything" in done.stderr, done
    assert set(tree(place)) == {"mine.jpg", chosen}
    (place / chosen).unlink()
    assert leat.curate(shard, tmp_path / "run", config=config, share=0.2)["selected"] == 8
    assert len(tree(place)) == 17 and (place / "mine.jpg").read_text() == "words"


def write_json(path, value):
    """JSON is YAML."""
    path.write_text(json.dumps(value))
    return path


def test_a_dump_that_was_stopped_is_replaced(whole, tmp_path, monkeypatch):
    source, place = whole[0] / "pack.leat", tmp_path / "place"
    config = {"dump": {"to": "folder", "output": str(place)}}

    def stop(*args, **kwargs):
        export(*args, **kwargs)
        raise KeyboardInterrupt

    export = _curate_steps._pack.export
    for force in (False, True):
        monkeypatch.setattr(_curate_steps._pack, "export", stop)
        with pytest.raises(KeyboardInterrupt):
            leat.curate(source, tmp_path / "run", config=config, count=6, force=force)
        monkeypatch.setattr(_curate_steps._pack, "export", export)
        leat.curate(source, tmp_path / "run", config=config, count=3, force=force)
    assert len(tree(place)) == 3


def test_semantic_and_conditions(whole, tmp_path):
    source = whole[0] / "pack.leat"
    config = {"semantic": {"keep_share": 0.5}, "select": {"where": "blur > 0", "strategies": [
        {"strategy": "balance", "column": "folder"}, {"strategy": "weights", "column": "blur"}]}}
    result = leat.curate(source, tmp_path / "run", config=config)
    similar, dup = (leat.open(tmp_path / "run" / name).column("keep") for name in ("similar.leat", "duplicates.leat"))
    assert {step["step"]: step["dropped"] for step in result["steps"]}["semantic"] == {"similar": 20}
    chosen = leat.open(tmp_path / "run" / "select.leat").column("selected")
    assert np.array_equal(chosen == 1, (similar == 1) & (dup == 1))
    with leat.Writer(tmp_path / "odd.leat", {"image": "image", "keep": int}) as w:
        w.append({"image": jpeg(np.random.default_rng(0), 40, 40), "keep": 1})
    assert leat.curate(tmp_path / "odd.leat", tmp_path / "odd", config={"semantic": {}})["selected"] == 1  # the steps use full names
    os.rename(tmp_path / "odd.leat", tmp_path / "duplicates.leat")
    with pytest.raises(leat.ArgumentError, match="column 'keep' is in .*: two files have the same name, so rename one"):
        leat.curate(tmp_path / "duplicates.leat", tmp_path / "more", config={"select": {"where": "blur >= 0"}})
    assert not (tmp_path / "more").exists()


def test_hostile_names_do_not_reach_the_page(tmp_path):
    names = ["<script>alert(1)</script>.jpg", '"><img src=x onerror=alert(2)>.jpg', "a\nb.jpg", "\x1b[31mred.jpg", "é\udcff.jpg",
             "&lt;b&gt;.jpg", "' onload='x.jpg"]
    with leat.Writer(tmp_path / "odd.leat", {"image": "image"}) as w:
        for i in range(4):
            for name in names:  # dark ones, and copies: names in all parts of the page
                picture = np.full((40, 40, 3), 3, np.uint8) if i == 3 else np.asarray(
                    np.random.default_rng(i % 2).integers(0, 255, (40, 40, 3), np.uint8))
                w.append({"image": picture}, key=f"{i}{name}")
    result = leat.curate(tmp_path / "odd.leat", tmp_path / "run", config={"dedup": False})
    leat.curate(tmp_path / "odd.leat", tmp_path / "run2")
    for folder in ("run", "run2"):
        page = data(tmp_path / folder, "report.html").decode("utf-8")
        body = page.split("</style>")[1]
        for bad in ("<script", "<img src=x", "\x1b", "' onload", '"><img src'):
            assert bad not in body, bad
        assert "&lt;script&gt;alert(1)" in page and "default-src 'none'" in page
        assert "http://" not in page and "https://" not in page and "data:image/png;base64," in page
    listed = data(tmp_path / "run", "selected.txt").split(b"\n")
    assert len(listed) - 1 == 28 and result["selected"] == 28
    assert {s["step"]: s["dropped"] for s in result["steps"]}["dump"] == {}


def test_limits_are_told_apart():
    seen = {"seconds": 10.0, "cpu_seconds": 19.0, "bytes_read": 0, "machine_busy": 1.0}
    assert _curate_measure.limit("check", seen, {}, 2)["limit"] == "CPU"
    assert _curate_measure.limit("check", {**seen, "cpu_seconds": 2.0}, {}, 2)["limit"] == "CPU, other processes"
    assert _curate_measure.limit("select", {**seen, "cpu_seconds": 9.8, "machine_busy": 0.5}, {}, 2)["limit"] == "CPU, one thread"
    io = _curate_measure.limit("pack", {**seen, "cpu_seconds": 1.0, "machine_busy": 0.1}, {}, 2)
    assert io["limit"] == "I/O" and "SSD" in io["advice"]
    assert _curate_measure.limit("pack", {**seen, "seconds": 0.1}, {}, 2)["limit"] == "none"
    idle = {**seen, "cpu_seconds": 2.0, "machine_busy": 0.2}
    for more, outcome in (({"memory_wait": 4.0}, {}), ({}, {"budget_share": 0.97}), ({}, {"too_large": "did not fit"})):
        found = _curate_measure.limit("semantic", {**idle, **more}, outcome, 2)
        assert found["limit"] == "memory" and "memory" in found["advice"], found
    assert _curate_measure.limit("pack", seen, {"budget_share": 0.97}, 2)["limit"] == "CPU"
    assert _curate_measure.limit("pack", {**seen, "memory_wait": 4.0}, {}, 2)["limit"] == "memory"
    assert _curate_measure.limit("pack", idle, {"budget_share": 0.5}, 2)["limit"] == "I/O"
    said = {"limit": "io", "verdict": "I/O-bound: storage gives 100 samples/s"}
    assert _curate_measure.limit("embed", seen, said, 2)["limit"] == "I/O"
    assert _curate_measure.limit("embed", seen, {**said, "verdict": "INCOMPLETE: few steps"}, 2)["limit"] == "CPU"
    assert _curate_measure.limit("train", seen, {"limit": "model", "verdict": "x"}, 2, gpu=True)["limit"] == "GPU"
    for step in _curate_config.NAMES:
        for limit in ("CPU", "I/O", "GPU", "memory"):
            assert _curate_measure.advice(step, limit)


def test_vectors_that_do_not_fit_are_a_matter_of_memory(tmp_path):
    draw = np.random.default_rng(5)
    with leat.Writer(tmp_path / "v.leat", {"vector": ("float32", (256,))}) as w:
        for row in draw.normal(size=(3000, 256)):
            w.append([row.astype(np.float32)])
    run = _curate_steps.Run(str(tmp_path), [str(tmp_path / "v.leat")], {name: {} for name in _curate_config.NAMES})
    os.rename(tmp_path / "v.leat", tmp_path / "embed.leat")
    run.sources[0] = str(tmp_path / "embed.leat")
    assert _curate_steps.RUN["semantic"](run, {}, False, lambda *_: None)["too_large"] == ""
    outcome = _curate_steps.RUN["semantic"](run, {"memory": "3M"}, False, lambda *_: None)
    idle = {"seconds": 10.0, "cpu_seconds": 2.0, "bytes_read": 0, "machine_busy": 0.2, "memory_wait": 0.0}
    assert _curate_measure.limit("semantic", idle, outcome, 2)["limit"] == "memory"
    assert "memory_wait" in _curate_measure.Meter().stop()


def test_the_plan(photos, whole, tmp_path, monkeypatch):
    plan = leat.curate(photos, tmp_path / "run", share=0.5, config={"semantic": True, "dump": {"to": "folder"}}, plan=True)
    assert not os.path.exists(tmp_path / "run")
    size = sum(os.path.getsize(os.path.join(folder, name)) for folder, _, files in os.walk(photos) for name in files)
    assert plan["samples"] == 41 and plan["bytes"] == size and not plan["short"] and not plan["incomplete"]
    rows = {row["step"]: row for row in plan["steps"]}
    assert list(rows) == ["pack", "check", "embed", "dedup", "semantic", "select", "dump"]
    assert rows["pack"]["read_bytes"] == size and all(row["traffic_bytes"] == 0 for row in rows.values())
    assert abs(plan["hours"] - sum(row["hours"] for row in plan["steps"])) < 1e-12
    assert "4 GB" in plan["sanity"] or str(4 * plan["cpus"]) in plan["sanity"]
    more = _curate_plan.make(_curate_steps.Run(str(tmp_path), ["s3://b/x", "s3://b/y"], _curate_config.read(
        {"dump": {"to": "pack", "output": "s3://b/z.leat"}}, {"select": {}}, {})))
    assert more["samples"] == 0 and more["traffic_bytes"] == 0
    monkeypatch.setattr(_curate_plan.shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(1, 1, 0))
    with pytest.raises(leat.BudgetError, match="iB are needed, 0 B are free"):
        leat.curate(photos, tmp_path / "run")
    assert leat.curate(photos, tmp_path / "run", plan=True)["short"]


def test_the_plan_counts_the_memory_of_threads(photos, tmp_path):
    def planned(**options):
        plan = leat.curate(photos, tmp_path / "run", share=0.5, plan=True, **options)
        return {row["step"]: row["memory_bytes"] for row in plan["steps"]}

    one, four, limited = planned(threads=1), planned(threads=4), planned(threads=4, memory="30M")
    assert all(four[step] > one[step] for step in ("pack", "check", "embed", "dedup")) and four["select"] == one["select"]
    assert four["pack"] - one["pack"] >= 30e6 and limited["pack"] - _curate_plan._PROGRAM - _curate_plan._LEFT == 30 << 20


def test_the_plan_counts_the_disk_of_all_files(photos, whole, tmp_path):
    """The report and files that a step deletes before it ends were left out, so a run that "fits" ended on a full disk."""
    plan = leat.curate(photos, tmp_path / "run", share=0.5, plan=True)
    there = sum(file.stat().st_size for file in (whole[0]).rglob("*") if file.is_file())
    assert plan["disk_bytes"] >= there
    assert plan["disk_bytes"] >= plan["report_bytes"] + sum(row["disk_bytes"] for row in plan["steps"])
    assert (whole[0] / "report.html").stat().st_size <= plan["report_bytes"]
    big = {"samples": 10**6, "bytes": 10**9}
    rows = [{"step": "check", "disk_bytes": 10**9}, {"step": "dedup", "disk_bytes": 10**8}]
    run = _curate_steps.Run(str(tmp_path), [str(photos)], _curate_config.read(None, {}, {}))
    assert _curate_plan._most_disk(run, rows, big, 10**6) > 3 * 10**9  # the scores of check, beside its columns


def test_the_plan_agrees_with_a_run(tmp_path):
    with leat.Writer(tmp_path / "many.leat", {"image": "image", "label": "int"}) as writer:
        rng = np.random.default_rng(7)
        for i in range(3000):
            writer.append({"image": jpeg(rng, 16, 16), "label": i % 3})
    plan = leat.curate(tmp_path / "many.leat", tmp_path / "run", share=0.2, plan=True)
    leat.curate(tmp_path / "many.leat", tmp_path / "run", share=0.2)
    for row in plan["steps"]:
        there = sum((tmp_path / "run" / name).stat().st_size for name in _curate_steps.FILES[row["step"]]
                    if (tmp_path / "run" / name).exists())
        assert 0.9 * there <= row["disk_bytes"] <= 1.25 * there + 12_000, row["step"]  # keys are short here


def test_a_memory_limit_is_compared_before_the_first_step(photos, whole, tmp_path):
    plan = leat.curate(photos, tmp_path / "run", count=5, memory="12M", plan=True)
    assert re.fullmatch(r"dedup needs 14\.1 MiB of memory, more than the 12\.0 MiB given", plan["short"])
    with pytest.raises(leat.BudgetError, match="^dedup needs 14.1 MiB"):
        leat.curate(photos, tmp_path / "run", count=5, memory="12M")
    assert not (tmp_path / "run").exists()
    assert "dedup needs" in curate_command(photos, "-o", tmp_path / "run", "-n", 5, "--memory", "12M", code=3).stderr
    for config, step in (({"select": {"memory": 9000, "count": 5}}, "select"), ({"semantic": {"memory": 9000}}, "semantic")):
        assert leat.curate(photos, tmp_path / "run", config=config, plan=True)["short"].startswith(f"{step} needs ")
    # a step refuses what the plan refuses, and the plan accepts what all steps accept
    run = _curate_steps.Run(str(whole[0]), [str(photos)], _curate_config.read(None, {}, {}))
    with pytest.raises(leat.BudgetError):
        leat.dedup_images(whole[0] / "check.leat", tmp_path / "d.leat", memory=_curate_plan._least(run, "dedup", 40) - 1)
    assert not leat.curate(photos, tmp_path / "run", count=5, memory="30M", threads=1, plan=True)["short"]
    assert leat.curate(photos, tmp_path / "run", count=5, memory="30M", threads=1)["selected"] == 5


def test_the_plan_names_memory_that_dedup_accepts(tmp_path):
    """The plan named less than the step itself, which then refused the run after the steps before it."""
    with leat.Writer(tmp_path / "many.leat", {"image": "image"}) as writer:
        rng = np.random.default_rng(4)
        for _ in range(2000):
            writer.append({"image": jpeg(rng, 16, 16)})
    leat.check(tmp_path / "many.leat", tmp_path / "check.leat", sync=False)
    for given in ({}, {"orientations": 8}, {"windows": True}):
        with pytest.raises(leat.BudgetError) as caught:
            leat.dedup_images(tmp_path / "check.leat", tmp_path / "d.leat", memory=1024, force=True, **given)
        wanted = float(re.search(r": ([\d.]+) MiB is enough", str(caught.value))[1])
        plan = leat.curate(tmp_path / "many.leat", tmp_path / "run", count=5, plan=True, config={"dedup": {"memory": "1M", **given}})
        named = re.fullmatch(r"dedup needs ([\d.]+) MiB of memory, more than the 1.00 MiB given", plan["short"])[1]
        assert wanted <= float(named) < wanted + 2
        leat.dedup_images(tmp_path / "check.leat", tmp_path / "d.leat", memory=f"{named}MiB", force=True, sync=False, **given)


def test_the_plan_names_the_step_that_needs_most(photos, tmp_path):
    config = {"memory": "15M", "embed": {"model": "tiny"}, "select": {"count": 5}}
    run = _curate_steps.Run(str(tmp_path), [str(photos)], _curate_config.read(config, {}, {}))
    assert _curate_plan._over_limit(run, ["dedup", "select"], 40) == ""
    assert _curate_plan._over_limit(run, ["dedup", "select"], 10**6).startswith("select needs ")  # vectors of all images


def test_a_condition_that_no_image_meets(whole, tmp_path):
    with pytest.raises(leat.DataError) as caught:
        leat.curate(whole[0] / "pack.leat", tmp_path / "run", config={"select": {"where": "width > 100000"}})
    assert "meets the conditions; change where or strategies of this step" in str(caught.value) and "--from" not in str(caught.value)


def test_sizes_are_written_as_in_other_messages():
    """The same units as the library, rounded up."""
    assert [_curate_plan._size(n) for n in (0, 1, 1023, 1024, 99_999, 14 << 20, (14 << 20) + 1, 5 << 30)] == [
        "0 B", "1 B", "1023 B", "1.00 KiB", "97.7 KiB", "14.0 MiB", "14.1 MiB", "5.00 GiB"]


def test_the_command(photos, whole, tmp_path):
    done = curate_command(photos, "-o", tmp_path / "run", "--share", "0.2", "--json", code=1)  # a file was cut
    result = json.loads(done.stdout)
    assert result["selected"] == 8 and [step["step"] for step in result["steps"]] == ["pack", "check", "embed", "dedup", "select",
                                                                                     "dump"]
    assert data(tmp_path / "run", "select.leat") == data(whole[0], "select.leat")
    text = curate_command(whole[0] / "pack.leat", "-o", tmp_path / "clean", "-n", "3", code=0)
    assert "3 of 40 images selected, 0 unreadable" in text.stdout and "what would help" in text.stdout
    assert "[2/6] check: 40 rows in" in text.stderr
    (tmp_path / "bad.yaml").write_text("selekt: {}\n")
    wrong = curate_command(photos, "-o", tmp_path / "x", "-c", tmp_path / "bad.yaml", code=2)
    assert wrong.stderr.startswith("leat curate: ") and "did you mean 'select'" in wrong.stderr
    assert "nowhere" in curate_command(tmp_path / "nowhere", "-o", tmp_path / "x", code=4).stderr
    assert "the rule of thumb" in curate_command(photos, "-o", tmp_path / "x", "--plan", code=0).stdout
    assert not os.path.exists(tmp_path / "x")


def test_without_torch(whole, tmp_path):
    code = (f"import sys; sys.modules['torch'] = None; import leat; "
            f"print(leat.curate({str(whole[0] / 'pack.leat')!r}, {str(tmp_path / 'run')!r}, share=0.2)['selected'])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "8", done.stderr
    assert data(tmp_path / "run", "select.leat") == data(whole[0], "select.leat")


def test_two_runs_at_once_are_refused(photos, tmp_path):
    (tmp_path / "run").mkdir()
    held = _curate._hold(str(tmp_path / "run"))
    with pytest.raises(leat.ExistsError, match="another run is writing there"):
        leat.curate(photos, tmp_path / "run")
    held.close()


@pytest.mark.torch
def test_train_and_tag(whole, tmp_path):
    torch = pytest.importorskip("torch")
    import train_run  # noqa: F401  # the model "tiny_resnet"

    net = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(3, 2))
    torch.jit.trace(net.eval(), torch.zeros(2, 3, 16, 16)).save(str(tmp_path / "m.pt"))
    config = {"train": {"model": "tiny_resnet", "epochs": 1, "batch_size": 8, "image_size": 16, "tensorboard": False},
              "tag": {"model": str(tmp_path / "m.pt"), "image_size": 16}, "threads": 1,
              "select": {"where": "tag_score > 0", "strategies": [{"strategy": "balance", "column": "tag"}]}}
    result = leat.curate(whole[0] / "pack.leat", tmp_path / "run", config=config, count=4)
    assert [step["step"] for step in result["steps"]] == ["pack", "check", "train", "embed", "tag", "dedup", "select", "dump"]
    assert len(leat.open(tmp_path / "run" / "embed.leat")[0]["vector"]) == 8  # by the trained model
    again = leat.curate(whole[0] / "pack.leat", tmp_path / "run", config=config, count=4)
    assert ran(again) == []
    config["tag"]["top"] = 1
    assert ran(leat.curate(whole[0] / "pack.leat", tmp_path / "run", config=config, count=4))[:2] == ["tag", "select"]


@pytest.mark.torch
def test_tags_with_class_names_beside_unreadable_images(photos, tmp_path):
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(3, 2))
    torch.jit.trace(net.eval(), torch.zeros(2, 3, 16, 16)).save(str(tmp_path / "m.pt"))
    (tmp_path / "names.txt").write_text("day\nnight\n")
    config = {"tag": {"model": str(tmp_path / "m.pt"), "image_size": 16, "classes": str(tmp_path / "names.txt")}, "threads": 1}
    assert leat.curate(_broken_pack(photos, tmp_path), tmp_path / "run", count=4, config=config)["unreadable"] == 3
    with leat.open(tmp_path / "run" / "tags.leat") as made:
        assert made.classes("tag") == ["day", "night"] and (made.column("tag") == -1).sum() == 3


def test_keys_with_line_breaks_are_listed_in_quotes_and_results_printed(photos, tmp_path):
    source = tmp_path / "odd"
    source.mkdir()
    names = ("a.jpg", "new\nline.jpg", "cr\r\nx\\n.jpg", '"q".jpg')
    for i, name in enumerate(names):
        (source / name).write_bytes(jpeg(np.random.default_rng(100 + i), 64, 48, 85))
    run = subprocess.run([sys.executable, "-m", "leat", "curate", str(source), "-o", str(tmp_path / "run"), "-q"], capture_output=True, text=True)
    assert run.returncode == 0 and "4 of 4 images selected" in run.stdout and run.stderr == ""
    written = tmp_path / "run" / "selected.txt"
    assert sorted(written.read_bytes().split(b"\n")) == [
        b"", b'"\\"q\\".jpg"', rb'"cr\r\nx\\n.jpg"', rb'"new\nline.jpg"', b"a.jpg"]
    pack = tmp_path / "run" / "pack.leat"
    assert leat.pack(pack, tmp_path / "few.leat", keys=written, images="keep")["samples"] == 4
    assert leat.export(pack, tmp_path / "files", keys=written)["samples"] == 4
    assert sorted(os.listdir(tmp_path / "files")) == sorted(names)
    if importlib.util.find_spec("pyarrow"):
        assert leat.export(pack, tmp_path / "rows", to="parquet", keys=written)["samples"] == 4
    assert leat.pack(pack, tmp_path / "two.leat", keys=["new\nline.jpg", '"q".jpg'], images="keep")["samples"] == 2
    loaded = subprocess.run([sys.executable, "-m", "leat", "load", str(pack), "--keys", str(written), "--json"], capture_output=True, text=True)
    assert loaded.returncode == 0 and json.loads(loaded.stdout)["samples"] == 4, loaded.stderr


def test_lists_name_the_folder_as_it_was_given(photos, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    leat.curate(photos, "run", config={"embed": False})
    rows = (tmp_path / "run" / "duplicates.csv").read_text().splitlines()[1:]
    assert rows and all(row.split(",")[1::2][:2] == ["run/pack.leat"] * 2 for row in rows)
    leat.curate("run/pack.leat", "again", config={"embed": False})
    rows = (tmp_path / "again" / "duplicates.csv").read_text().splitlines()[1:]
    assert rows and all(row.split(",")[1::2][:2] == ["run/pack.leat"] * 2 for row in rows)


@pytest.mark.parametrize("config", [{"embed": False}, {"embed": False, "check": False}])
def test_equal_runs_in_two_folders_give_equal_columns(photos, tmp_path, monkeypatch, config):
    """The duplicates named the columns by their absolute path."""
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        leat.curate(photos, name, config=config)
    for name in ("pack.leat", "duplicates.leat", "select.leat"):
        assert data("one", name) == data("two", name), name
    with leat.open("one/duplicates.leat") as found:
        assert found.classes("pack") == ["pack.leat"]


def test_a_run_in_place_remembers_the_pack_of_an_earlier_run(photos, tmp_path):
    """R/pack.leat stays a file of leat curate after a run that reads another pack where it is, or this one."""
    run, few, pack = tmp_path / "run", {"embed": False, "dedup": False}, tmp_path / "photos.leat"
    leat.pack(photos, pack, on_error="skip")
    leat.curate(photos, run, config=few)
    for force in (False, True):
        leat.curate(pack, run, config=few)
        leat.curate(pack, run, config=few, from_="pack")
        leat.curate(photos, run, config=few, force=force)
        assert (run / "pack.leat").exists()
        leat.curate(run / "pack.leat", run, config=few, force=force)
        assert (run / "pack.leat").exists()
        leat.curate(photos, run, config=few)
    leat.curate(pack, run, config=few)
    (run / "pack.leat").write_bytes(b"mine")
    with pytest.raises(leat.ExistsError, match="pack.leat: has changed since leat curate made it"):
        leat.curate(photos, run, config=few, force=True)


def test_an_edited_report_is_kept(photos, tmp_path):
    """Pages say themselves whether they have changed, also after a run that was killed."""
    run, few = tmp_path / "run", {"embed": False, "dedup": False}
    page = run / "report.html"
    leat.curate(photos, run, config=few)
    first = page.read_bytes()
    leat.curate(photos, run, config=few, from_="select")
    for edited, message in ((first.replace(b"</h1>", b" (my notes)</h1>", 1), "has changed since leat curate made it"),
                            (first + b"notes", "has changed since"), (b"<p>mine", "is not from leat curate")):
        page.write_bytes(edited)
        for force in (False, True):
            with pytest.raises(leat.ExistsError, match=f"report.html: {message}"):
                leat.curate(photos, run, config=few, force=force)
        assert page.read_bytes() == edited
    page.unlink()
    leat.curate(photos, run, config=few)
    assert page.exists()


def test_an_early_interrupt_is_quiet(photos, tmp_path):
    """A fast machine may end the run before a late signal comes; it drops damaged images then: exit code 1. While Python
    itself starts, which a busy machine draws out, it prints its own traceback, without a frame of leat."""
    codes = []
    for delay in (0.02, 0.05, 0.1, 0.15, 0.2, 0.3):
        run = subprocess.Popen([sys.executable, "-m", "leat", "curate", str(photos), "-o", str(tmp_path / "run"), "-q"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(delay)
        while delay > 0.02 and run.poll() is None and b"import importlib" not in data(f"/proc/{run.pid}", "cmdline"):
            time.sleep(0.005)
        run.send_signal(signal.SIGINT)
        said = run.communicate()[1]
        if delay > 0.02:  # before that, Python itself starts
            assert run.returncode in (1, 130, -signal.SIGINT), (delay, said)
            assert not re.search(r'File "[^"]*/leat/\w+\.py"', said), (delay, said)
            codes.append(run.returncode)
    assert set(codes) != {1}


def test_an_interrupt_says_what_is_left(photos, tmp_path):
    """The run waits for a slow pack; the same command then ends it."""
    source, run = tmp_path / "slow.leat", tmp_path / "run"
    leat.pack(photos, source, images="keep", on_error="skip")
    work = subprocess.Popen([sys.executable, "-m", "leat", "curate", str(source), "-o", str(run)], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env={**os.environ, "LEAT_IO_INJECT": "path=slow.leat,delay=200ms"})
    while work.poll() is None and not (run.exists() and any(f.startswith("check.leat") for f in os.listdir(run))):
        time.sleep(0.01)
    work.send_signal(signal.SIGINT)
    said = work.communicate(timeout=60)[1]
    assert work.returncode == 130 and said.splitlines()[-1] == f"interrupted: the same command continues from {run}", said
    curate_command(source, "-o", run, code=0)


def test_a_run_that_was_killed_when_it_began(photos, tmp_path):
    """run.json.new is all that it left."""
    run = tmp_path / "run"
    run.mkdir()
    (run / "run.json.new").write_text('{"version": 1, ')
    leat.curate(photos, run, config={"embed": False, "dedup": False})
    assert sorted(path.name for path in run.iterdir() if path.name.startswith("run.")) == ["run.json"]


def test_messages_say_how_to_recover(photos, tmp_path):
    run = tmp_path / "run"
    leat.curate(photos, run, share=0.2)
    whole = (run / "run.json").read_text()
    for written, force, message in ((whole[:50], False, "run.json: is damaged"), (whole[:50], True, "run.json: is damaged"),
                                    (whole.replace('"version": 1', '"version": 0'), False, "of another version of leat; force")):
        (run / "run.json").write_text(written)
        with pytest.raises(leat.ExistsError, match=message):
            leat.curate(photos, run, share=0.2, force=force)
        if not force:
            with pytest.raises(leat.ExistsError, match=message):
                leat.curate(photos, run, share=0.2, from_="select")
        assert (run / "pack.leat").exists()
    (run / "run.json").write_text(whole)
    body = bytearray((run / "embed.leat").read_bytes())
    third = len(body) // 3
    body[third:2 * third] = bytes(third)
    (run / "embed.leat").write_bytes(body)
    with pytest.raises(leat.Error, match="--from embed makes embed.leat again"):
        leat.curate(photos, run, share=0.3)
    assert leat.curate(photos, run, share=0.3, from_="embed")["selected"] == 12
    assert leat.curate(photos, run, share=0.2, force=True)["selected"] == 8


def test_only_files_of_an_earlier_run_are_replaced(photos, tmp_path):
    run, mine = tmp_path / "run", tmp_path / "run" / "selected" / "thesis.txt"
    leat.curate(photos, run, share=0.2)
    before = data(run, "run.json")
    mine.parent.mkdir()
    mine.write_text("words")
    for force in (False, True):
        for more in ({}, {"config": {"dump": {"to": "folder"}}}):
            with pytest.raises(leat.ExistsError, match="run/selected: is not from leat curate"):
                leat.curate(photos, run, share=0.3, force=force, **more)
        assert mine.read_text() == "words" and data(run, "run.json") == before
    shutil.rmtree(mine.parent)
    leat.curate(photos, run, share=0.2, config={"dump": {"to": "folder"}})
    assert len(list(mine.parent.iterdir())) > 0
    mine.write_text("words")
    with pytest.raises(leat.ExistsError, match="run/selected: has changed since leat curate made it"):
        leat.curate(photos, run, share=0.2, force=True)
    assert mine.read_text() == "words"
    shutil.rmtree(mine.parent)
    for name in ("selected.txt", "pack.leat", "check.csv"):
        kept, info = (run / name).read_bytes(), (run / name).stat()
        (run / name).write_text("words")
        for more in ({}, {"force": True}, {"from_": "pack"}):
            with pytest.raises(leat.ExistsError, match=f"run/{name}: has changed since leat curate made it"):
                leat.curate(photos, run, share=0.2, **more)
        assert (run / name).read_text() == "words"
        (run / name).write_bytes(kept)
        os.utime(run / name, ns=(info.st_atime_ns, info.st_mtime_ns))
    (run / "tags.leat").write_text("words")  # no step of this run has this name
    assert leat.curate(photos, run, share=0.2, force=True)["selected"] == 8
    assert (run / "tags.leat").read_text() == "words"


def test_a_source_that_cannot_be_packed_leaves_nothing(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.leat").write_bytes(b"not a pack")
    for source in ("empty", "bad.leat"):
        with pytest.raises(leat.Error):
            leat.curate(tmp_path / source, tmp_path / "run")
        assert sorted(os.listdir(tmp_path)) == ["bad.leat", "empty"]
    with pytest.raises(leat.NotFoundError, match="nope.yaml: no such file"):
        leat.curate(tmp_path / "empty", tmp_path / "run", config="nope.yaml")


def _broken_pack(photos, tmp_path):
    """A pack with three images that cannot be decoded, one of them the first."""
    folder = tmp_path / "broken"
    shutil.copytree(photos, folder)
    png = _curate_early._png()
    for name in ("cat/(a).png", "dog/x.png", "owl/zz.png"):
        (folder / name).write_bytes(png[:-30])
    (folder / "cat" / "cut.jpg").unlink()
    leat.pack(folder, tmp_path / "trusted.leat", trust=True, images="keep")
    return str(tmp_path / "trusted.leat")


def test_unreadable_images_are_left_out_without_a_check(photos, tmp_path):
    pack = _broken_pack(photos, tmp_path)
    config = {"check": False, "dedup": False, "embed": {"batch_size": 4}}
    for again in range(2):
        result = leat.curate(pack, tmp_path / "run", count=40, config=config)
        assert result["unreadable"] == 3 and result["selected"] == 40
        assert [step["reused"] for step in result["steps"]] == [bool(again)] * 4
    with leat.open(tmp_path / "run" / "readable.leat") as found, leat.open(tmp_path / "run" / "select.leat") as chosen:
        assert not (chosen.column("selected").astype(bool) & (found.column("verdict") != 0)).any()
    result = leat.curate(pack, tmp_path / "run", count=40, config=config, from_="embed")
    assert result["unreadable"] == 3 and result["selected"] == 40


def test_unreadable_images_of_a_pack_are_left_out(photos, tmp_path):
    pack = _broken_pack(photos, tmp_path)
    result = leat.curate(pack, tmp_path / "run", count=5, config={"semantic": {"threshold": 0.99}, "embed": {"batch_size": 4}})
    assert result["samples"] == 43 and result["unreadable"] == 3 and result["selected"] == 5
    with leat.open(tmp_path / "run" / "check.leat") as check, leat.open(tmp_path / "run" / "embed.leat") as made:
        bad = check.column("verdict") != 0
        assert bad.sum() == 3 and bad[0]
        zero = np.array([not row["vector"].any() for row in made])
        assert (zero == bad).all()
    with leat.open(tmp_path / "run" / "select.leat") as chosen:
        assert not (chosen.column("selected").astype(bool) & bad).any()
    good = tmp_path / "good"
    leat.select(pack, tmp_path / "good.leat", where="verdict == 0", columns=tmp_path / "run" / "check.leat")
    leat.pack(pack, good.with_suffix(".pack.leat"), select=tmp_path / "good.leat")
    leat.embed(good.with_suffix(".pack.leat"), output=tmp_path / "alone.leat", quiet=True)
    with leat.open(tmp_path / "alone.leat") as alone, leat.open(tmp_path / "run" / "embed.leat") as made:
        rows = np.stack([row["vector"] for row in made])[~bad]
        assert (rows == np.stack([row["vector"] for row in alone])).all()


def test_a_pack_without_a_readable_image_is_an_error(tmp_path):
    with leat.Writer(tmp_path / "p.leat", {"image": "image"}) as writer:
        writer.append({"image": _curate_early._png()}, key="a")
    checked = str(tmp_path / "c.leat")
    with leat.Writer(checked, {"verdict": int}) as writer:
        writer.append({"verdict": 2}, key="a")
    with pytest.raises(leat.DataError, match="no image can be read"):
        leat.embed(tmp_path / "p.leat", output=tmp_path / "e.leat", checked=checked)


def test_a_choice_without_vectors_is_called_random(whole, tmp_path):
    text, source = "images were chosen at random: diversity needs vectors, and the step embed is off", whole[0] / "pack.leat"
    result = leat.curate(source, tmp_path / "run", config={"embed": False}, count=5)
    assert result["note"] == text and text in _curate_text.result(result).splitlines()
    result = leat.curate(source, tmp_path / "run", config={"embed": False, "select": {"count": 5, "strategies": ["random"]}})
    assert result["note"] == "" and "random" not in _curate_text.result(result)  # as the config says
    assert whole[1]["note"] == ""


def test_fewer_images_than_asked_for(photos, tmp_path):
    result = leat.curate(photos, tmp_path / "run", count=5000)
    assert result["selected"] == 35 and result["asked"] == 5000
    assert "5000 images were asked for: fewer were left to select from" in _curate_text.result(result)
    assert leat.curate(photos, tmp_path / "run", count=7)["asked"] == 0
    result = leat.curate(photos, tmp_path / "run", share=1)
    assert result["samples"] > 35 and result["selected"] == 35 and result["asked"] == result["samples"]
    assert f"{result['samples']} images were asked for: fewer were left to select from" in _curate_text.result(result)
