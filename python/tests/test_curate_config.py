# SPDX-License-Identifier: Apache-2.0
"""leat.curate: what each key of a config does, and what is refused before anything runs."""

from __future__ import annotations

import os
import random
import shutil

import pytest

import leat
import worker_yaml
from conftest import curate_command
from leat import _curate_config, _curate_steps
from leat._errors import shown


class Seen(Exception):
    pass


@pytest.mark.parametrize("step", [s for s in _curate_config.STEPS if s.name not in ("dump", "select")], ids=lambda s: s.name)
def test_every_key_reaches_its_function(step, whole, tmp_path, monkeypatch):
    run = _curate_steps.Run(str(tmp_path), ["nothing"], {name: {} for name in _curate_config.NAMES})
    seen = {}

    def record(*args, **kwargs):
        seen.update(kwargs)
        raise Seen

    for module in (_curate_steps._images, _curate_steps._pack, _curate_steps._select, _curate_steps._train):
        for name in ("pack", "check", "train", "embed", "tag", "dedup_images", "dedup_semantic"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, record)
    keys = _curate_config._keys(step)
    assert len(keys) >= 4
    given = {key: object() for key in keys}
    if step.name == "embed":
        given["model"] = "some"
        run.steps["embed"].update(model="some")
    with pytest.raises(Seen):
        _curate_steps.RUN[step.name](run, given, False, lambda *_: None)
    assert all(seen[key] is given[key] for key in keys)


def test_keys_of_select(whole, tmp_path):
    """What the others say of the sources; these are named in a file."""
    source = whole[0] / "pack.leat"
    shutil.copy(whole[0] / "check.leat", tmp_path / "earlier.leat")
    (tmp_path / "c.yaml").write_text(f"""
select:
  previous: {whole[0]}/select.leat
  columns: [{tmp_path}/earlier.leat]
  count: 4
  strategies: [random]
  where: earlier.contrast > 0
""")
    result = leat.curate(source, tmp_path / "run", config=tmp_path / "c.yaml")
    assert result["selected"] == 12
    assert leat.open(tmp_path / "run" / "select.leat").column("round").max() == 1
    with pytest.raises(leat.ArgumentError, match="either count or share"):
        leat.curate(source, tmp_path / "run", config=tmp_path / "c.yaml", count=3, share=0.5)
    for given, message in (({"count": 0}, "count: 0 is below 1"), ({"share": 0}, "share: 0 is not allowed"), ({"share": 0.0}, "share: 0 is not"),
                           ({"config": {"select": {"share": 0}}}, "select: share: 0 is not"), ({"config": {"select": {"count": 0}}}, "select: count: 0 is")):
        with pytest.raises(leat.ArgumentError, match=message):
            leat.curate(source, tmp_path / "run", **given)
    assert "--share: 0 is not allowed; leave it out for the default" in curate_command(source, "-o", tmp_path / "run", "--share", "0", code=2).stderr
    assert leat.curate(source, tmp_path / "run", config=tmp_path / "c.yaml", share=0.5)["selected"] == 28


BAD = [({"dedupe": {}}, "there is no 'dedupe'; did you mean 'dedup'"), ({"embed": {"modle": "x"}}, "did you mean 'model'"),
       ({"check": {"limits": {"darkk": 3}}}, "check: .*darkk"), ({"check": {"limits": {"dark": "x"}}}, "is not a number"),
       ({"select": {"strategies": ["divversity"], "count": 3}}, "did you mean 'diversity'"), ({"pack": False}, "cannot be switched off"),
       ({"select": {"count": 3, "share": 0.5}}, "either count or share"), ({"dump": {"to": "zip"}}, "dump: to: 'zip'"),
       ({"dump": {"output": "x"}}, "has no effect with to: list"), ({"dedup": {"threshold": 7}}, "not between 0 and 1"),
       ({"semantic": {"keep": "none"}}, "not one of first, outer, central"), ({"tag": True}, "tag: model is missing"),
       ({"semantic": True, "embed": False}, "needs embed"), ({"embed": 3}, "is not a list of options"), ([1], "neither a path"),
       ({"train": {"epochs": 0}}, "train: epochs: 0 is out of range"), ({"check": {"labels": True}}, "there is no 'labels'"),
       ({"embed": False, "select": {"strategies": ["diversity"], "count": 3}}, "diversity needs embeddings"),
       ({"pack": {"output": "x"}}, "there is no 'output'"), ({"pack": {"check": "x"}}, "pack: there is no 'check'"), ({"threads": -1}, "threads"), ({"pack": {1: 2}}, "there is no '1'")]


@pytest.mark.parametrize("config, message", BAD, ids=[str(i) for i in range(len(BAD))])
def test_bad_configs(config, message, photos, tmp_path):
    with pytest.raises(leat.Error, match=message) as caught:
        leat.curate(photos, tmp_path / "run", config=config)
    assert "\n" not in str(caught.value) and not os.path.exists(tmp_path / "run")


def test_mutated_configs_are_accepted_or_refused(tmp_path):
    draw = random.Random(11)
    for _ in range(300):
        worker_yaml.try_one(str(tmp_path / "c.yaml"), worker_yaml.mutant(draw))


def test_aliases_that_stand_for_billions_of_values(tmp_path):
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
    for key in ("embed", "dedup"):
        nested = "".join("  " + line + "\n" for line in bomb.splitlines())
        for text in (f"{bomb}{key}: *a11\n", f"threads: &t\n{nested}{key}: *t\n", f"{key}:\n  model: &t\n  {nested}"):
            worker_yaml.try_one(str(tmp_path / "c.yaml"), text)
    assert shown([[1, 2], {"a": (3,)}]) == "[[1, 2], {'a': (3,)}]"
    assert shown([1] * 2000) == "a list of many values"


def test_bad_files_and_folders(photos, tmp_path):
    for text in ("pack: [", "- a\n- b\n", "pack: {a: {b: {c: }}}}", "!!python/object/apply:os.system ['echo']", "\0", "3"):
        (tmp_path / "c.yaml").write_text(text)
        with pytest.raises(leat.Error, match="c.yaml"):
            leat.curate(photos, tmp_path / "run", config=tmp_path / "c.yaml")
    with pytest.raises(leat.NotFoundError, match="nowhere"):
        leat.curate(tmp_path / "nowhere", tmp_path / "run")
    with pytest.raises(leat.NotFoundError, match="nowhere.yaml: no such file"):
        leat.curate(photos, tmp_path / "run", config=tmp_path / "nowhere.yaml")
    with pytest.raises(leat.ArgumentError, match="from: 'tag' is not a step"):
        leat.curate(photos, tmp_path / "run", from_="tag")
    with pytest.raises(leat.ArgumentError, match="from: has no effect: .* has no earlier run"):
        leat.curate(photos, tmp_path / "run", from_="select")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(leat.ArgumentError, match="file: is a file, not a folder"):
        leat.curate(photos, tmp_path / "file")
    with pytest.raises(leat.StorageError, match="is a folder, not a file"):
        leat.curate(photos, tmp_path / "run", config=tmp_path)
    assert not os.path.exists(tmp_path / "run")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("words")
    for force in (False, True):
        with pytest.raises(leat.ExistsError, match="is not empty and has no run"):
            leat.curate(photos, tmp_path / "mine", force=force)
    assert os.listdir(tmp_path / "mine") == ["thesis.txt"]


def test_wrong_values_are_found_before_anything_runs(photos, tmp_path):
    """Each of these was found by the last steps, after images were packed and embedded."""
    taken = tmp_path / "taken.leat"
    taken.write_bytes(b"x")
    pack = tmp_path / "pack.leat"
    leat.pack(photos, pack, on_error="skip", sync=False)
    for source, config, message in (
            (photos, {"select": {"where": "issues >< 3"}}, 'select: where: column 9: .* in "issues >< 3"$'),
            (photos, {"select": {"where": "isues == 0"}}, "no field 'isues'"),
            (photos, {"select": {"count": 3, "strategies": [{"strategy": "weights", "column": "blurr"}]}}, "no column 'blurr'; did you mean 'blur'"),
            (photos, {"select": {"count": 3, "strategies": [{"strategy": "balance", "column": "lable"}]}}, "there is no .*'lable'"),
            (photos, {"select": {"where": "orientation == 1"}}, "column 'orientation' is in .*run/check.leat and .*run/duplicates.leat; write 'check.orientation' or"),
            (photos, {"select": {"where": "check.blurr > 1"}}, "no field 'check.blurr'"),
            (pack, {"select": {"where": "label == 'cow'"}}, "no class of the name 'cow'"),
            (photos, {"select": {"count": 3}, "dump": {"to": "folder", "output": str(photos)}}, "is the source"),
            (pack, {"select": {"count": 3}, "dump": {"to": "pack", "output": str(pack)}}, "is the source"),
            (photos, {"select": {"count": 3}, "dump": {"to": "pack", "output": str(taken)}}, "taken.leat: already exists"),
            (photos, {"select": {"count": 3, "shard-bytes": 1}}, "there is no"),
            (photos, {"semantic": {"clusters": 3}}, "'clusters' is named 'centres'"),
            (photos, {"dump": {"to": "pack", "shard-bytes": 5, "shard_bytes": 6}}, "'shard_bytes' appears twice")):
        with pytest.raises(leat.Error, match=message):
            leat.curate(source, tmp_path / "run", config=config)
        assert not (tmp_path / "run").exists()
    with pytest.raises(leat.ArgumentError, match="list_probable: has an effect only with csv"):
        leat.dedup_images(pack, tmp_path / "d.leat", list_probable=True)
    done = leat.curate(photos, tmp_path / "run", config={"dedup": {"list_probable": True}, "select": {"where": "issues == 0 and label in ['cat', 'dog']"}})
    assert 0 < done["selected"] <= 27


def test_a_run_inside_its_source_is_refused(photos, tmp_path):
    source = tmp_path / "photos"
    shutil.copytree(photos, source)
    for folder in (source / "run", source, tmp_path / "photos" / ".." / "photos" / "a" / "b"):
        with pytest.raises(leat.ArgumentError, match="is inside the source"):
            leat.curate(source, folder, share=0.2)
    assert not (source / "run").exists()


def test_keys_that_are_there_twice_are_refused(photos, tmp_path):
    config = tmp_path / "c.yaml"
    for text, message in (("select: {count: 3}\nselect: {count: 4}\n", "c.yaml:2: 'select' appears twice"),
                          ("select:\n  count: 3\n  count: 4\n", "c.yaml:3: 'count' appears twice")):
        config.write_text(text)
        with pytest.raises(leat.ArgumentError, match=message):
            leat.curate(photos, tmp_path / "run", config=config)


@pytest.mark.parametrize("config, message", [
    ({"embed": {"model": "./nosuch.pt"}}, "embed: model: ./nosuch.pt: no such file"),
    ({"tag": {"model": "nosuch"}}, "tag: model: nosuch: no such file"),
    ({"select": {"previous": "missing.leat", "strategies": ["random"]}}, "select: missing.leat: no such file"),
    ({"select": {"columns": ["missing.leat"], "where": "x > 1"}}, "select: missing.leat: no such file"),
])
def test_what_is_named_must_exist(photos, tmp_path, config, message):
    with pytest.raises(leat.ArgumentError) as caught:
        leat.curate(photos, tmp_path / "run", config=config)
    assert str(caught.value).startswith(message) and not (tmp_path / "run").exists()


def test_unknown_models_are_refused_first(photos, tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "c.yaml").write_text("embed: {model: nosuch}")
    with pytest.raises(leat.ArgumentError) as caught:
        leat.curate(photos, tmp_path / "run", config=tmp_path / "c.yaml")
    assert str(caught.value).startswith(f"{tmp_path / 'c.yaml'}: embed: model: there is no 'nosuch' here")
    assert not (tmp_path / "run").exists()
