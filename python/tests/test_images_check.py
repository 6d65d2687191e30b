# SPDX-License-Identifier: Apache-2.0
"""leat.check and leat.dedup_images: scores against definitions on pixels, columns, edits, options."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
import sys
import tarfile

import numpy as np
import pytest

import leat
from conftest import jpeg

Image = pytest.importorskip("PIL.Image")


def scene(seed: int, width: int = 200, height: int = 150) -> Image.Image:
    """Smooth noise at several scales, with a range of contrasts and brightness."""
    rng = np.random.default_rng(seed)
    pixels = np.zeros((height, width, 3))
    for side in (3, 8, 40, 150):
        small = Image.fromarray(rng.integers(0, 255, (side, side, 3), np.uint8))
        pixels += np.asarray(small.resize((width, height), Image.Resampling.BICUBIC), float) * rng.uniform(0.1, 0.5)
    pixels = (pixels - pixels.mean()) * rng.uniform(0.2, 1.2) + rng.uniform(60, 190)
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


def ranks(values) -> np.ndarray:
    return np.argsort(np.argsort(np.asarray(values)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("check") / "photos"
    path.mkdir()
    for i in range(60):
        scene(i).save(path / f"{i:02d}.jpg", quality=70 + i // 2)
    return path


@pytest.fixture(scope="module")
def columns(folder):
    out = str(folder.parent / "check.leat")
    leat.check(folder, out, sync=False)
    return leat.open(out)


def test_scores_are_those_of_the_pixels(folder, columns):
    mean, contrast, blur, entropy, dark, saturation = [], [], [], [], [], []
    for i in range(60):
        image = Image.open(folder / f"{i:02d}.jpg").convert("YCbCr")
        y, cb, cr = (np.asarray(plane, float) for plane in image.split())
        mean.append(y.mean())
        contrast.append(y.std())
        blur.append((4 * y[1:-1, 1:-1] - y[:-2, 1:-1] - y[2:, 1:-1] - y[1:-1, :-2] - y[1:-1, 2:]).var())
        share = np.bincount(y.astype(int).ravel(), minlength=256) / y.size
        entropy.append(-(share[share > 0] * np.log2(share[share > 0])).sum())
        dark.append(np.percentile(y, 5))
        saturation.append(np.hypot(cb - 128, cr - 128).mean())
    for name, wanted, least in (("mean", mean, 0.99), ("contrast", contrast, 0.99), ("blur", blur, 0.99),
                                ("saturation", saturation, 0.99), ("entropy", entropy, 0.95), ("p5", dark, 0.95)):
        found = np.corrcoef(ranks(wanted), ranks(columns.column(name)))[0, 1]
        assert found >= least, f"{name}: rank correlation {found:.4f}"
    assert list(columns.column("jpeg_quality")) == [70 + i // 2 for i in range(60)]


def test_noise_is_measured_and_listed(tmp_path):
    """In pixels and in coefficients; a JPEG has the level of its tiles."""
    (tmp_path / "in").mkdir()
    rng = np.random.default_rng(5)
    for i in range(12):
        small = Image.fromarray(rng.integers(0, 255, (8, 8, 3), np.uint8))
        clean = np.asarray(small.resize((200, 150), Image.Resampling.BICUBIC), float)  # scene() has fine detail
        noisy = (clean.clip(50, 200) + rng.normal(0, 16, clean.shape[:2])[..., None]).clip(0, 255).astype(np.uint8)
        Image.fromarray(noisy if i < 3 else clean.astype(np.uint8)).save(tmp_path / "in" / f"{i:02d}.png")
        Image.fromarray(noisy if i < 3 else clean.astype(np.uint8)).save(tmp_path / "in" / f"{i:02d}.jpg", quality=96)
    leat.pack(tmp_path / "in", tmp_path / "p.leat", sync=False)
    report = leat.check(tmp_path / "in", tmp_path / "c.leat", sync=False)
    leat.check(tmp_path / "p.leat", tmp_path / "t.leat", sync=False)
    columns = leat.open(tmp_path / "c.leat")
    noise = columns.column("noise")
    assert np.array_equal(noise, leat.open(tmp_path / "t.leat").column("noise"))
    for key, level in zip(columns.keys, noise):
        assert 12 < level < 17 if int(key[:2]) < 3 else level < 3, f"{key}: {level}"
    assert report["issues"]["noisy"]["count"] == 6


def test_columns_have_the_rows_of_the_pack(folder, tmp_path):
    leat.pack(folder, tmp_path / "p.leat", sync=False)
    report = leat.check(tmp_path / "p.leat", tmp_path / "c.leat", sync=False, threads=2)
    made = leat.open(tmp_path / "c.leat")
    assert list(made.keys) == list(leat.open(tmp_path / "p.leat").keys)
    assert report["samples"] == report["ok"] == 60
    row = made[3]
    assert row["thumb"].shape == (1536,) and row["coarse"].dtype == np.int8 and row["fine"].shape == (112,)


def test_tiles_and_files_have_the_same_content(folder, columns, tmp_path):
    leat.pack(folder, tmp_path / "p.leat", sync=False)
    leat.check(tmp_path / "p.leat", tmp_path / "c.leat", sync=False)
    tiles = leat.open(tmp_path / "c.leat")
    for name in ("content_hash", "blur", "entropy", "mean"):
        assert np.array_equal(tiles.column(name), columns.column(name)), name
    assert not np.array_equal(tiles.column("file_hash"), columns.column("file_hash"))


def test_options(folder, tmp_path):
    out = tmp_path / "c.leat"
    seen = []
    report = leat.check(folder, out, sync=False, limits={"dark": 300, "blurry": None}, csv=tmp_path / "c.csv",
                        progress=lambda *n: seen.append(n), memory="64M")
    assert report["issues"]["dark"]["count"] == 60 and report["issues"]["blurry"]["count"] == 0
    assert report["issues"]["dark"]["limit"] == 300 and len(report["issues"]["dark"]["examples"]) == 5
    assert seen
    with open(tmp_path / "c.csv", newline="") as f:
        rows = list(csv.DictReader(f))
    assert len(rows) == 60 and all("dark" in row["issues"].split() for row in rows)
    with pytest.raises(leat.ExistsError):
        leat.check(folder, out)
    assert leat.check(folder, out, force=True, max_pixels=100)["ok"] == 0
    with pytest.raises(leat.ArgumentError, match="did you mean dark"):
        leat.check(folder, tmp_path / "d.leat", limits={"drak": 1})
    with pytest.raises(leat.ArgumentError, match="no images"):
        with leat.Writer(tmp_path / "n.leat", {"x": int}, sync=False) as w:
            w.append({"x": 1}, key="k")
        leat.check(tmp_path / "n.leat", tmp_path / "e.leat")


def test_command(folder, tmp_path):
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "a.jpg").write_bytes((folder / "00.jpg").read_bytes())
    (tmp_path / "p" / "b.jpg").write_bytes((folder / "01.jpg").read_bytes()[:3000])
    args = [sys.executable, "-m", "leat", "check", str(tmp_path / "p"), "-o", str(tmp_path / "c.leat"), "--json"]
    done = subprocess.run(args, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    assert report["ok"] == 1 and report["issues"]["truncated"]["examples"] == ["b.jpg"]


def test_progressive_grey_alpha_and_webp(tmp_path):
    (tmp_path / "p").mkdir()
    image = scene(5)
    image.save(tmp_path / "p" / "a.jpg", progressive=True, quality=95)
    image.save(tmp_path / "p" / "b.png")
    image.convert("L").save(tmp_path / "p" / "c.png")
    image.convert("RGBA").save(tmp_path / "p" / "d.png")
    image.save(tmp_path / "p" / "e.webp", quality=95)
    image.convert("CMYK").save(tmp_path / "p" / "f.jpg", quality=95)
    image.save(tmp_path / "p" / "g.jpg", quality=95)
    report = leat.check(tmp_path / "p", tmp_path / "c.leat", sync=False)
    assert report["ok"] == 7
    mean = leat.open(tmp_path / "c.leat").column("mean")
    assert np.ptp(mean) < 3
    assert leat.open(tmp_path / "c.leat").column("saturation")[2] == 0


EDITS = {
    "recompressed": lambda image: (image, {"quality": 40}),
    "smaller": lambda image: (image.resize((100, 75)), {}),
    "brighter": lambda image: (image.point(lambda v: min(255, int(v * 0.8 + 50))), {}),
    "mirrored": lambda image: (image.transpose(Image.Transpose.FLIP_LEFT_RIGHT), {}),
    "cropped": lambda image: (image.crop((10, 6, 192, 144)), {}),
    "rotated": lambda image: (image.rotate(3, Image.Resampling.BICUBIC, fillcolor=(90, 90, 90)), {}),
}


def test_edits_are_found_as_duplicates(tmp_path):
    for name in ("train", "test"):
        (tmp_path / name).mkdir()
    for i in range(40):
        scene(i).save(tmp_path / "train" / f"{i:02d}.jpg", quality=92)
        scene(500 + i).save(tmp_path / "test" / f"other{i:02d}.jpg", quality=92)
    for i, (name, edit) in enumerate(EDITS.items()):
        image, how = edit(scene(i))
        image.save(tmp_path / "test" / f"{name}.jpg", **how)
    report = leat.dedup_images([tmp_path / "train", tmp_path / "test"], tmp_path / "dup.leat", csv=tmp_path / "pairs.csv",
                               keep="pack", sync=False)
    with open(tmp_path / "pairs.csv", newline="") as f:
        found = {(row["key_a"], row["key_b"]) for row in csv.DictReader(f)}
    assert found == {(f"{i:02d}.jpg", f"{name}.jpg") for i, name in enumerate(EDITS)}
    rows = leat.open(tmp_path / "dup.leat")
    assert report["removed"] == len(EDITS) == int((rows.column("keep") == 0).sum())
    kept = rows.column("duplicate_of")
    for i, name in enumerate(EDITS):
        assert kept[rows.keys.index(f"{name}.jpg")] == i
    with pytest.raises(leat.ArgumentError, match="orientations"):
        leat.dedup_images(tmp_path / "train", tmp_path / "x.leat", orientations=3)


@pytest.mark.parametrize("suffix", ["bmp", "tiff", "gif", "png", "webp", "jpg"])
def test_truncated_files_of_all_formats(tmp_path, suffix):
    """The verdict does not depend on the format."""
    photos = tmp_path / "photos"
    photos.mkdir()
    whole = io.BytesIO()
    scene(3).save(whole, {"jpg": "JPEG"}.get(suffix, suffix.upper()))
    (photos / f"cut.{suffix}").write_bytes(whole.getvalue()[:len(whole.getvalue()) * 2 // 3])
    (photos / f"whole.{suffix}").write_bytes(whole.getvalue())
    leat.check(photos, tmp_path / "c.leat", sync=False)
    with leat.open(tmp_path / "c.leat") as rows:
        assert rows.column("verdict").tolist() == [1, 0], rows[0]["reason"]
        assert "4294967295" not in rows[0]["reason"]  # libtiff, of strips
        assert np.isnan(rows.column("blur")).tolist() == [True, False]


def test_dedup_names_one_amount_of_memory(tmp_path):
    """The amount that a refusal named depended on the limit that was given."""
    rng = np.random.default_rng(8)
    with leat.Writer(tmp_path / "p.leat", {"image": "image"}) as writer:
        for _ in range(1500):
            file = io.BytesIO()
            Image.fromarray(rng.integers(0, 255, (16, 16, 3), np.uint8)).save(file, "PNG")
            writer.append({"image": file.getvalue()})
    leat.check(tmp_path / "p.leat", tmp_path / "c.leat", sync=False)
    named = set()
    for given in (1 << 20, 14 << 20, 14_800_000):
        with pytest.raises(leat.BudgetError) as caught:
            leat.dedup_images(tmp_path / "c.leat", tmp_path / "d.leat", memory=given, force=True)
        named.add(re.search(r"([0-9.]+ [KM]iB) is enough", str(caught.value))[1])
    assert len(named) == 1, named
    leat.dedup_images(tmp_path / "c.leat", tmp_path / "d.leat", memory=named.pop().replace(" ", ""), force=True)


def test_packs_without_samples_are_bad_data(tmp_path):
    with leat.Writer(tmp_path / "none.leat", {"image": "image"}):
        pass
    for call in (leat.check, leat.embed):
        with pytest.raises(leat.DataError):
            call(tmp_path / "none.leat", output=tmp_path / "o.leat")


def test_arguments_have_the_ranges_of_the_command(folder, tmp_path):
    leat.pack(folder, tmp_path / "p.leat", sync=False)
    leat.embed(tmp_path / "p.leat", output=tmp_path / "e.leat", quiet=True)
    for value in (-0.5, 0, 1.5):
        with pytest.raises(leat.ArgumentError, match="threshold"):
            leat.dedup_semantic(tmp_path / "e.leat", tmp_path / "d.leat", threshold=value)
    for value in (0, -1, 1001):
        with pytest.raises(leat.ArgumentError, match="neighbours"):
            leat.check(tmp_path / "p.leat", tmp_path / "l.leat", labels=True, embeddings=tmp_path / "e.leat", neighbours=value)


def test_labels_of_few_images_are_a_warning(folder, tmp_path):
    """With fewer images than neighbours, all images vote on each label."""
    for name in "ab":
        shutil.copytree(folder, tmp_path / "classes" / name)
    leat.pack(tmp_path / "classes", tmp_path / "p.leat", sync=False)
    leat.embed(tmp_path / "p.leat", output=tmp_path / "e.leat", quiet=True)
    args = [sys.executable, "-m", "leat", "check", str(tmp_path / "p.leat"), "--labels", "-e", str(tmp_path / "e.leat"),
            "-o", str(tmp_path / "l.leat"), "--force", "--neighbours"]
    for count, warns in ((1000, True), (1, False)):
        done = subprocess.run([*args, str(count)], capture_output=True, text=True)
        assert done.returncode in (0, 1), done.stderr
        assert ("are too few for 1000 neighbours" in done.stderr) == warns


def test_conditions_and_weights_leave_out_what_is_not_ok(folder, tmp_path):
    """Scores of images that are not ok are NaN: missing for all that reads them."""
    photos = tmp_path / "photos"
    photos.mkdir()
    for i in range(8):
        (photos / f"{i}.jpg").write_bytes((folder / f"{i:02d}.jpg").read_bytes()[:-800 if i < 2 else None])
    leat.pack(photos, tmp_path / "p.leat", trust=True, images="keep", sync=False)
    leat.check(tmp_path / "p.leat", tmp_path / "c.leat", sync=False)
    rows = leat.open(tmp_path / "c.leat")
    assert np.isnan(rows.column("blur")).tolist() == [True] * 2 + [False] * 6
    assert (rows.column("verdict")[:2] == 1).all() and (rows.column("width")[:2] == 200).all()

    def chosen(**how):
        leat.select(tmp_path / "p.leat", tmp_path / "s.leat", columns=tmp_path / "c.leat", force=True, **how)
        return set(np.flatnonzero(leat.open(tmp_path / "s.leat").column("selected")).tolist())

    assert chosen(where="blur < 1e9") == set(range(2, 8))
    assert chosen(strategies={"strategy": "weights", "column": "blur", "strength": -1}, count=8) == set(range(2, 8))


def test_the_copy_of_highest_quality_is_kept(tmp_path):
    """A quality that is not known, or that of a progressive JPEG, does not win."""
    worse = {"progressive": ("JPEG", {"quality": 40, "progressive": True}), "webp": ("WEBP", {"quality": 40})}
    for kind, (form, options) in worse.items():
        (tmp_path / kind).mkdir()
        for i in range(6):
            image = scene(i)
            image.save(tmp_path / kind / f"{i}-{'ab'[i % 2]}-good.jpg", quality=95)
            image.save(tmp_path / kind / f"{i}-{'ba'[i % 2]}-worse.{form.lower()}", form, **options)
        leat.dedup_images(tmp_path / kind, tmp_path / f"{kind}.leat", keep="quality")
        rows = leat.open(tmp_path / f"{kind}.leat")
        assert [key for key, keep in zip(rows.keys, rows.column("keep")) if keep] == [
            f"{i}-{'ab'[i % 2]}-good.jpg" for i in range(6)]
    leat.check(tmp_path / "progressive", tmp_path / "check.leat")
    columns = leat.open(tmp_path / "check.leat")
    assert columns.column("jpeg_quality").tolist() == [95, 40, 40, 95] * 3


def test_duplicates_count_what_cannot_be_read(folder, tmp_path, capfd):
    """They are not compared, and nothing says that they are duplicates."""
    photos = tmp_path / "photos"
    photos.mkdir()
    for i in range(4):
        (photos / f"{i}.jpg").write_bytes((folder / f"{i:02d}.jpg").read_bytes())
    (photos / "cut.jpg").write_bytes((folder / "05.jpg").read_bytes()[:900])
    (photos / "empty.jpg").write_bytes(b"")
    done = leat.dedup_images(photos, tmp_path / "d.leat", sync=False)
    assert (done["samples"], done["kept"], done["unreadable"]) == (6, 6, 2)


def test_the_memory_that_is_named_is_enough(tmp_path):
    """The first refusal names what all steps need: the flow, the largest image, and the search."""
    (tmp_path / "photos").mkdir()
    for i, side in enumerate((100, 700, 1500, 900)):
        scene(i, side, side).save(tmp_path / "photos" / f"{i}.jpg", progressive=i == 3)
    out = tmp_path / "out.leat"
    runs = {"pack": lambda source, memory: leat.pack(source, out, memory=memory, force=True, sync=False),
            "keep": lambda source, memory: leat.pack(source, out, memory=memory, images="keep", force=True, sync=False),
            "check": lambda source, memory: leat.check(source, out, memory=memory, force=True, sync=False),
            "dedup": lambda source, memory: leat.dedup_images(source, out, memory=memory, force=True, sync=False),
            "windows": lambda source, memory: leat.dedup_images(source, out, memory=memory, windows=True, force=True, sync=False)}
    leat.check(tmp_path / "photos", tmp_path / "check.leat", sync=False)
    for name, run in runs.items():
        for source in ("photos", "check.leat")[:1 if name in ("pack", "keep", "check") else 2]:
            with pytest.raises(leat.BudgetError) as refused:
                run(tmp_path / source, "64K")
            number, unit = re.search(r"([0-9.]+) ([KM])iB is enough", str(refused.value)).groups()
            run(tmp_path / source, number + unit)


def test_samples_of_shards_without_a_label_are_images_like_others(tmp_path):
    """Every second sample lacks its .cls: it was called unreadable, though nothing here needs a label."""
    for shard in range(2):
        with tarfile.open(tmp_path / f"train-{shard}.tar", "w") as tar:
            for i in range(6):
                data = io.BytesIO()
                scene(10 * shard + i).save(data, "JPEG")
                for suffix, body in (("jpg", data.getvalue()), ("cls", b"3"))[:2 - i % 2]:
                    member = tarfile.TarInfo(f"{shard}{i:04d}.{suffix}")
                    member.size = len(body)
                    tar.addfile(member, io.BytesIO(body))
    shards = [tmp_path / "train-0.tar", tmp_path / "train-1.tar"]
    checked = leat.check(shards, tmp_path / "check.leat", sync=False)
    assert checked["samples"] == 12 and checked["issues"].get("unreadable", {"count": 0})["count"] == 0
    found = leat.dedup_images(shards, tmp_path / "dup.leat", csv=tmp_path / "dup.csv", sync=False)
    assert found["samples"] == 12 and found.get("skipped", 0) == 0
    with pytest.raises(leat.DataError, match="label=-1"):
        leat.pack(shards, tmp_path / "p.leat", sync=False)
    for name, pack, label in (("plain", {}, -1), ("default", {"default": "label=7"}, 7), ("defaults", {"defaults": {"label": 8}}, 8)):
        config = {"pack": pack, "embed": False, "dedup": False}
        assert leat.curate(shards, tmp_path / name, config=config)["samples"] == 12
        assert [s["label"] for s in leat.open(tmp_path / name / "pack.leat")] == [3, label] * 6
    with pytest.raises(leat.ArgumentError, match="pack: default: 'label' is not FIELD=NUMBER"):
        leat.curate(shards, tmp_path / "wrong", config={"pack": {"default": "label"}})
