# SPDX-License-Identifier: Apache-2.0
"""Images of all kinds in one pack: no image may change what another one becomes."""

import hashlib
import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image, ImageOps, PngImagePlugin

import leat
from conftest import ROOT, pixels


def without(data: bytes, marker: int) -> bytes:
    """The JPEG without its segments of one kind before the first scan."""
    out, at = data[:2], 2
    while data[at + 1] != 0xDA:
        size = 2 + int.from_bytes(data[at + 2:at + 4], "big")
        if data[at + 1] != marker:
            out += data[at:at + size]
        at += size
    return out + data[at:]


def picture(seed: int) -> Image.Image:
    rng = np.random.default_rng(seed)
    small = Image.fromarray(rng.integers(0, 256, (6, 6, 3), np.uint8))
    return small.resize((int(rng.integers(40, 120)), int(rng.integers(40, 120))), Image.BICUBIC)


def encoded(kind: str, seed: int) -> bytes:
    out, image = io.BytesIO(), picture(seed)
    if kind == "png":
        image.quantize(16).save(out, "PNG") if seed % 2 else image.save(out, "PNG")
    elif kind == "webp":
        image.save(out, "WEBP", lossless=bool(seed % 2))
    else:
        if kind in ("L", "CMYK"):
            image = image.convert(kind)
        image.save(out, "JPEG", quality=50 + seed % 45, progressive=kind == "progressive",
                   optimize=kind == "optimised")
    return without(out.getvalue(), 0xC4) if kind == "no tables" else out.getvalue()


KINDS = ["baseline", "progressive", "optimised", "no tables", "L", "CMYK", "png", "webp"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("mixed")
    order = np.random.default_rng(3).permutation(96)
    for name, i in enumerate(order):
        path = root / f"class{name % 3}" / f"{name:03d}.jpg"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(encoded(KINDS[i % len(KINDS)], int(i)))
    return root


@pytest.mark.parametrize("mode", ["keep", "tiled", "raw", "mix"])
def test_each_image_is_its_own(folder, tmp_path, mode):
    packs = []
    for threads in (1, 2, 3):
        out = tmp_path / f"{threads}.leat"
        assert leat.pack(folder, out, images=mode, threads=threads, sync=False)["samples"] == 96
        packs.append(hashlib.sha256(out.read_bytes()).hexdigest())
    assert len(set(packs)) == 1
    for s in leat.open(tmp_path / "1.leat"):
        want = pixels((folder / s.key).read_bytes())
        np.testing.assert_array_equal(np.broadcast_to(np.asarray(s["image"]), want.shape), want)
    batches = []
    for threads in (1, 2, 3):
        with leat.Loader(tmp_path / "1.leat", 32, "CenterCrop(32)", threads=threads, seed=5,
                         order="random", as_="numpy") as loader:
            batches.append(np.concatenate([b["image"].copy() for b in loader]))
    assert np.array_equal(batches[0], batches[1]) and np.array_equal(batches[0], batches[2])


def test_a_jpeg_without_quantisers_is_refused(tmp_path):
    good = encoded("progressive", 1)
    for i, data in enumerate([good, without(encoded("baseline", 2), 0xDB), good]):
        path = tmp_path / "in" / "a" / f"{i}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    for mode in ("keep", "tiled", "raw"):
        with pytest.raises(leat.Error, match="a/1.jpg"):
            leat.pack(tmp_path / "in", tmp_path / f"{mode}.leat", images=mode, threads=1, sync=False)


@pytest.mark.parametrize("mode", ["keep", "tiled"])
def test_files_come_back_byte_for_byte(folder, tmp_path, mode):
    out = tmp_path / "out.leat"
    assert leat.pack(folder, out, images=mode, sync=False)["changed"] == 0
    kinds = {}
    for s in leat.open(out):
        source = (folder / s.key).read_bytes()
        assert s["image"].exact and s["image"].file() == source
        kinds[s["image"].codec] = kinds.get(s["image"].codec, 0) + 1
    if mode == "tiled":  # baseline, progressive, optimised and grey JPEGs
        assert kinds["tiled"] == 48
    assert leat.export(out, tmp_path / "back")["changed"] == 0
    again = tmp_path / "again.leat"  # a pack as the source
    assert leat.pack(out, again, images="tiled", sync=False)["changed"] == 0
    for s in leat.open(again):
        assert s["image"].file() == (folder / s.key).read_bytes()


def test_what_is_not_exact_is_counted(folder, tmp_path):
    raw = leat.pack(folder, tmp_path / "raw.leat", images="raw", sync=False)
    small = leat.pack(folder, tmp_path / "small.leat", max_side=30, sync=False)
    assert raw["changed"] == 96 and small["changed"] == 96
    assert not any(s["image"].exact for s in leat.open(tmp_path / "raw.leat"))


def test_tiles_of_before_are_read(tmp_path):
    """Two progressive JPEGs, tiled by a leat that restored them as baseline files."""
    old = os.path.join(ROOT, "tests", "data", "tiles-1.leat")
    for s in leat.open(old):
        image = s["image"]
        assert image.codec == "tiled" and not image.exact
        want = pixels(image.file())
        np.testing.assert_array_equal(np.broadcast_to(np.asarray(image), want.shape), want)
    assert leat.export(old, tmp_path / "back")["changed"] == 2
    assert leat.pack(old, tmp_path / "new.leat", sync=False)["changed"] == 2  # history stays


XMP = '<x:xmpmeta><rdf:Description tiff:Orientation="{}"/></x:xmpmeta>'


def turned(kind: str, orientation: int) -> bytes:
    out, image, exif = io.BytesIO(), picture(orientation), Image.Exif()
    exif[0x112] = orientation
    info = PngImagePlugin.PngInfo()
    if kind == "jpeg":
        image.save(out, "JPEG", exif=exif)
    elif kind == "jpeg xmp":
        image.save(out, "JPEG", xmp=XMP.format(orientation).encode())
    elif kind == "webp":
        image.save(out, "WEBP", exif=exif)
    elif kind == "webp xmp":
        image.save(out, "WEBP", xmp=XMP.format(orientation).encode())
    elif kind == "png":
        image.save(out, "PNG", exif=exif)
    elif kind.startswith("png xmp"):
        info.add_itxt("XML:com.adobe.xmp", XMP.format(orientation), zip=kind.endswith("zip"))
        image.save(out, "PNG", pnginfo=info)
    else:
        data = exif.tobytes()
        text = "\nexif\n%8d\n%s\n" % (len(data), data.hex())
        info.add_text("Raw profile type exif", text, zip=kind.endswith("zip"))
        image.save(out, "PNG", pnginfo=info)
    return out.getvalue()


@pytest.mark.parametrize("mode", ["keep", "tiled", "raw"])
def test_orientation_is_applied_or_ignored(tmp_path, mode):
    kinds = ["jpeg", "jpeg xmp", "webp", "webp xmp", "png", "png xmp", "png xmp zip", "png profile",
             "png profile zip"]
    files = [turned(kind, o) for kind in kinds for o in range(1, 9)]
    for i, data in enumerate(files):
        path = tmp_path / "in" / "a" / f"{i:03d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    out = tmp_path / "out.leat"
    leat.pack(tmp_path / "in", out, images=mode, sync=False)
    upright = [np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(d)))) for d in files]
    stored = [pixels(d) for d in files]
    for s in leat.open(out):
        i = int(s.key[2:5])
        np.testing.assert_array_equal(s["image"].decode(), upright[i])
        np.testing.assert_array_equal(s["image"].decode("ignore"), stored[i])
    for orientation, want in (("apply", upright), ("ignore", stored)):
        with leat.Loader(out, len(files), "CenterCrop(16)", order="sequential", as_="numpy",
                         orientation=orientation) as loader:
            got = next(iter(loader))["image"]
        for i, image in enumerate(want):
            top, left = (round((n - 16) / 2.0) for n in image.shape[:2])
            np.testing.assert_array_equal(got[i].transpose(1, 2, 0), image[top:top + 16, left:left + 16])
    digests = {o: json.loads(subprocess.run(
        [sys.executable, "-m", "leat", "load", str(out), "--crop", "center", "-s", "16", "--digest", "--json",
         "--orientation", o], capture_output=True, check=True).stdout)["digest"] for o in ("apply", "ignore")}
    assert digests["apply"] != digests["ignore"]
    with pytest.raises(leat.ArgumentError, match="orientation"):
        leat.Loader(out, 4, "CenterCrop(16)", orientation="turn")


LONG = ("RandomResizedCrop(48); RandomHorizontalFlip(); RandomRotation(30); RandAugment(); "
        "RandomPerspective(); ColorJitter(0.4, 0.4, 0.4, 0.1); GaussianBlur(5); RandomErasing(0.5)")


def rows(loader):
    """The image of each sample by its number."""
    out = {}
    for batch in loader:
        for i, image in zip(batch["sample_id"], batch["image"]):
            out[int(i)] = image.copy()
    return out


@pytest.mark.parametrize("mode", ["keep", "tiled", "raw"])
def test_a_sample_does_not_depend_on_those_before(folder, tmp_path, mode):
    """Damaged images in between, many ops, any number of workers: each sample is what it is alone."""
    bad = tmp_path / "in" / "a"
    bad.mkdir(parents=True)
    rng = np.random.default_rng(11)
    for i, path in enumerate(sorted(folder.rglob("*.jpg"))):
        data = path.read_bytes()
        if i % 4 == 1 and mode == "keep":
            data = data[:int(rng.integers(len(data) // 2, len(data)))]
        elif i % 4 == 3 and mode == "keep":
            at = int(rng.integers(len(data) // 2, len(data) - 4))
            data = data[:at] + bytes(rng.integers(0, 256, 4, np.uint8)) + data[at + 4:]
        (bad / f"{i:03d}.jpg").write_bytes(data)
    pack = tmp_path / "out.leat"
    leat.pack(tmp_path / "in", pack, images=mode, trust=mode == "keep", on_error="skip", sync=False)
    options = dict(image=LONG, seed=9, as_="numpy", on_error="skip")
    seen = []
    for threads in (1, 2, 3):
        with leat.Loader(pack, 8, order="random", threads=threads, **options) as loader:
            seen.append(rows(loader))
    assert seen[0].keys() == seen[1].keys() == seen[2].keys() and len(seen[0]) > 40
    for i in seen[0]:
        assert np.array_equal(seen[0][i], seen[1][i]) and np.array_equal(seen[0][i], seen[2][i])
    for i in list(seen[0])[::8]:
        with leat.Loader(pack, 1, order="sequential", indices=[i], threads=1, **options) as loader:
            assert np.array_equal(rows(loader)[i], seen[0][i])
