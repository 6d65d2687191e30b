# SPDX-License-Identifier: Apache-2.0
"""leat.pack(check=…): the columns of leat.check on the pack, made while it is packed."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest

import leat
from conftest import jpeg

Image = pytest.importorskip("PIL.Image")


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """40 JPEGs, of which some are dark and one is grey; PNG, an animated GIF, a progressive and a misnamed file."""
    folder = tmp_path_factory.mktemp("check") / "photos"
    for name in ("a", "b"):
        (folder / name).mkdir(parents=True)
    rng = np.random.default_rng(0)
    for i in range(40):
        (folder / "ab"[i % 2] / f"{i:02d}.jpg").write_bytes(jpeg(rng, 60 + 3 * i, 90))
    Image.new("RGB", (80, 60), (3, 2, 4)).save(folder / "a" / "dark.jpg")
    Image.new("L", (80, 60), 90).save(folder / "a" / "grey.jpg")
    picture = Image.fromarray(rng.integers(0, 255, (50, 70, 3), np.uint8))
    picture.save(folder / "a" / "p.png")
    picture.save(folder / "b" / "progressive.jpg", progressive=True)
    picture.save(folder / "b" / "misnamed.jpg", "PNG")
    frames = [Image.fromarray(rng.integers(0, 255, (40, 40, 3), np.uint8)) for _ in range(3)]
    frames[0].save(folder / "b" / "moving.gif", save_all=True, append_images=frames[1:], duration=40)
    return folder


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("options", [
    {}, {"images": "keep"}, {"images": "raw"}, {"images": "mix"}, {"tiles": "fast"}, {"max_side": 64}, {"quality": 60},
    {"frames": "all"}, {"trust": True}, {"shuffle": 3}, {"where": "label == 1"}],
    ids=str)
def test_columns_are_those_of_the_pack(photos, tmp_path, options, threads):
    done = leat.pack(photos, tmp_path / "p.leat", check=tmp_path / "c.leat", threads=threads, sync=False, **options)
    plain = leat.pack(photos, tmp_path / "plain.leat", threads=threads, sync=False, **options)
    report = leat.check(tmp_path / "p.leat", tmp_path / "again.leat", sync=False)
    assert (tmp_path / "p.leat").read_bytes() == (tmp_path / "plain.leat").read_bytes()
    assert (tmp_path / "c.leat").read_bytes() == (tmp_path / "again.leat").read_bytes()
    found = done.pop("check")
    for name in ("samples", "ok", "found", "issues", "bytes_in", "bytes_out"):
        assert found[name] == report[name], name
    assert found["samples"] == done["samples"] == plain["samples"] and found["found"] > 0
    assert not [name for name in os.listdir(tmp_path) if "scores" in name or name.endswith((".partial", ".journal"))]


def test_every_kind_of_source(photos, tmp_path):
    """Packs: tiles with other tables, a row without an image."""
    leat.pack(photos, tmp_path / "first.leat", sync=False)
    with leat.Writer(tmp_path / "gap.leat", {"image": "image", "label": int}) as w:
        w.append({"image": (photos / "a" / "00.jpg").read_bytes(), "label": 1}, key="x.jpg")
        w.append({"image": None, "label": 2}, key="y.jpg")
    for source in ([tmp_path / "first.leat"], [tmp_path / "first.leat", tmp_path / "gap.leat"], [tmp_path / "gap.leat"]):
        leat.pack(source, tmp_path / "p.leat", check=tmp_path / "c.leat", sync=False, force=True)
        leat.check(tmp_path / "p.leat", tmp_path / "again.leat", sync=False, force=True)
        assert (tmp_path / "c.leat").read_bytes() == (tmp_path / "again.leat").read_bytes()


def test_bad_files_are_left_out_of_both(photos, tmp_path):
    source = tmp_path / "photos"
    source.mkdir()
    for i, path in enumerate(sorted((photos / "a").iterdir())):
        data = path.read_bytes()
        (source / path.name).write_bytes(data[:len(data) // 2] if i % 7 == 3 else data)
    command = [sys.executable, "-m", "leat", "pack", str(source), "-o", str(tmp_path / "p.leat"), "--check",
               str(tmp_path / "c.leat"), "--on-error", "skip", "--report", str(tmp_path / "bad.jsonl"), "--json"]
    run = subprocess.run(command, capture_output=True, text=True)
    said = json.loads(run.stdout)
    assert run.returncode == 1 and said["skipped"] == 3 and said["check"]["samples"] == said["samples"]
    assert len((tmp_path / "bad.jsonl").read_text().splitlines()) == 3
    leat.check(tmp_path / "p.leat", tmp_path / "again.leat", sync=False)
    assert (tmp_path / "c.leat").read_bytes() == (tmp_path / "again.leat").read_bytes()


def test_wide_images_are_left_out_like_broken_ones(photos, tmp_path):
    """A 16-bit PNG cannot be checked; it stopped the run even with skip."""
    source = tmp_path / "photos"
    source.mkdir()
    Image.fromarray(np.arange(4096, dtype=np.uint16).reshape(64, 64)).save(source / "00.png")
    for path in sorted((photos / "a").iterdir())[:4]:
        (source / path.name).write_bytes(path.read_bytes())
    command = [sys.executable, "-m", "leat", "pack", str(source), "-o", str(tmp_path / "p.leat"), "--check", str(tmp_path / "c.leat")]
    failed = subprocess.run(command, capture_output=True, text=True)
    assert failed.returncode == 4 and failed.stderr.startswith("leat pack: 00.png: uint16 images with 1 channel; only 8-bit images")
    run = subprocess.run([*command, "-f", "--on-error", "skip", "--report", str(tmp_path / "bad.jsonl"), "--json"], capture_output=True, text=True)
    said = json.loads(run.stdout)
    assert said["skipped"] == 1 and said["samples"] == said["check"]["samples"] == 4
    assert json.loads((tmp_path / "bad.jsonl").read_text())["key"] == "00.png"
    done = leat.curate(source, tmp_path / "run")
    assert done["unreadable"] == 1 and done["samples"] == 4


def test_the_exit_code_tells_of_issues(photos, tmp_path):
    for source, code in ((photos, 1), (photos.parent / "good", 0)):
        if code == 0:
            source.mkdir()
            rng = np.random.default_rng(5)
            for i in range(4):
                (source / f"{i}.jpg").write_bytes(jpeg(rng, 200, 150))
        command = [sys.executable, "-m", "leat", "pack", str(source), "-o", str(tmp_path / "p.leat"), "--check",
                   str(tmp_path / "c.leat"), "-f"]
        run = subprocess.run(command, capture_output=True, text=True)
        found = leat.check(tmp_path / "p.leat", tmp_path / "again.leat", force=True)["found"]
        assert run.returncode == (1 if found else 0) == code, run
        assert f"{found} images with issues" in run.stdout


def test_killed_runs_are_resumed_to_the_same_bytes(tmp_path):
    folder = tmp_path / "many"
    folder.mkdir()
    rng = np.random.default_rng(1)
    files = [jpeg(rng, 500, 400) for _ in range(8)]
    for i in range(400):
        (folder / f"{i:03d}.jpg").write_bytes(files[i % 8])
    leat.pack(folder, tmp_path / "whole.leat", check=tmp_path / "whole.check.leat", sync=False)
    command = [sys.executable, "-m", "leat", "pack", str(folder), "-o", str(tmp_path / "p.leat"), "--check",
               str(tmp_path / "c.leat"), "-q", "--page-bytes", "65536"]
    leat.pack(folder, tmp_path / "small.leat", page_bytes=65536, sync=False)
    for delay in (0.4, 0.8, 1.2, 1.6):
        run = subprocess.Popen([*command, "--resume"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(delay)
        run.kill()
        run.wait()
        if os.path.exists(tmp_path / "c.leat"):  # killed when all was written: what was left of it may be there
            for name in os.listdir(tmp_path):
                if name.startswith("c.leat."):
                    os.remove(tmp_path / name)
            break
    if not os.path.exists(tmp_path / "c.leat"):
        assert subprocess.run([*command, "--resume"], stdout=subprocess.DEVNULL).returncode in (0, 1)
    assert (tmp_path / "p.leat").read_bytes() == (tmp_path / "small.leat").read_bytes()
    leat.check(tmp_path / "p.leat", tmp_path / "again.leat", sync=False)
    assert (tmp_path / "c.leat").read_bytes() == (tmp_path / "again.leat").read_bytes()
    assert not [name for name in os.listdir(tmp_path) if "scores" in name or name.endswith((".partial", ".journal"))]


def test_columns_that_a_killed_run_owes_are_made(photos, tmp_path):
    """The pack had its name already: files beside the columns tell that the run was not done."""
    leat.pack(photos, tmp_path / "p.leat", sync=False)
    leat.check(tmp_path / "p.leat", tmp_path / "again.leat", sync=False)
    with pytest.raises(leat.ExistsError):
        leat.pack(photos, tmp_path / "p.leat", check=tmp_path / "c.leat", resume=True)
    (tmp_path / "c.leat.scores").write_bytes(b"")
    before = (tmp_path / "p.leat").read_bytes()
    done = leat.pack(photos, tmp_path / "p.leat", check=tmp_path / "c.leat", resume=True, sync=False)
    assert done["resumed"] == done["samples"] == done["check"]["samples"]
    assert (tmp_path / "p.leat").read_bytes() == before
    assert (tmp_path / "c.leat").read_bytes() == (tmp_path / "again.leat").read_bytes()


@pytest.mark.parametrize("named", [True, False])
def test_a_resumed_run_counts_what_a_killed_one_left_out(photos, tmp_path, named):
    """The pack had its name already; the list may have had its name or not."""
    source = tmp_path / "photos"
    shutil.copytree(photos, source)
    (source / "a" / "zz.jpg").write_bytes(b"junk")
    (source / "b" / "zz.jpg").write_bytes((photos / "b" / "01.jpg").read_bytes()[:-300])
    bad = tmp_path / "bad.jsonl"
    more = {"check": tmp_path / "c.leat", "report": bad, "on_error": "skip", "sync": False, "resume": True}
    first = leat.pack(source, tmp_path / "p.leat", **more)
    listed = bad.read_bytes()
    assert first["skipped"] == 2 and listed.count(b"\n") == 2
    (tmp_path / "c.leat").rename(tmp_path / "c.leat.scores")
    if not named:
        bad.rename(tmp_path / "bad.jsonl.partial")
    (tmp_path / "c.leat.scores").write_bytes(b"")
    done = leat.pack(source, tmp_path / "p.leat", **more)
    assert done["skipped"] == 2 and done["resumed"] == done["samples"] == first["samples"]
    assert bad.read_bytes() == listed and not (tmp_path / "bad.jsonl.partial").exists()
    # only packing counts what a condition leaves out, so a pack that may be replaced is packed again
    more.update(where="label == 1", force=True)
    first = leat.pack(source, tmp_path / "p.leat", **more)
    (tmp_path / "c.leat").unlink()
    (tmp_path / "c.leat.scores").write_bytes(b"")
    done = leat.pack(source, tmp_path / "p.leat", **more)
    assert first["filtered"] > 0 and all(done[name] == first[name] for name in ("samples", "skipped", "filtered"))
    (tmp_path / "c.leat").unlink()
    (tmp_path / "c.leat.scores").write_bytes(b"")
    bad.write_text("notes\n")
    del more["force"]
    with pytest.raises(leat.ArgumentError, match="bad.jsonl"):
        leat.pack(source, tmp_path / "p.leat", **more)


def test_what_is_refused(photos, tmp_path):
    def refused(kind, words, **options):
        with pytest.raises(kind, match=words):
            leat.pack(options.pop("source", photos), tmp_path / "p.leat", **options)
        assert not (tmp_path / "p.leat").exists()

    refused(leat.ArgumentError, "is the name of two results", check=tmp_path / "p.leat")
    (tmp_path / "there.leat").write_bytes(b"x")
    refused(leat.ArgumentError, "there.leat: is not a pack", check=tmp_path / "there.leat")
    (tmp_path / "there.leat").write_bytes(b"")
    refused(leat.ExistsError, "there.leat: already exists", check=tmp_path / "there.leat")
    leat.pack(photos, tmp_path / "in.leat", sync=False)
    refused(leat.ArgumentError, "is also an input", source=tmp_path / "in.leat", check=tmp_path / "in.leat", force=True)
    refused(leat.ArgumentError, "local file", check="s3://bucket/c.leat")
    with leat.Writer(tmp_path / "rows.leat", {"label": int}) as w:
        w.append({"label": 1}, key="a")
    refused(leat.ArgumentError, "has no images", source=tmp_path / "rows.leat", check=tmp_path / "c.leat")
    wide = tmp_path / "wide"
    wide.mkdir()
    data = io.BytesIO()
    Image.fromarray(np.arange(64 * 64, dtype=np.uint16).reshape(64, 64)).save(data, "PNG")
    (wide / "w.png").write_bytes(data.getvalue())
    refused(leat.FormatError, "only 8-bit images of 1, 3 or 4 channels can be checked", source=wide,
            check=tmp_path / "c.leat")
