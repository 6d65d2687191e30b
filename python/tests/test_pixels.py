# SPDX-License-Identifier: Apache-2.0
"""GIF, BMP, TIFF, AVIF and animated WebP as sources, kept or as pixels, against Pillow."""

import io
import json
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image, ImageOps, features

import leat

AVIF = features.check("avif")


def picture(rng: np.random.Generator, width: int, height: int, channels: int) -> Image.Image:
    small = rng.integers(0, 256, (7, 7, channels), np.uint8)
    return Image.fromarray(small if channels > 1 else small[:, :, 0]).resize((width, height), Image.BICUBIC)


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def files() -> dict[str, bytes]:
    rng, made = np.random.default_rng(1), {}
    for width, height in ((1, 1), (5, 3), (67, 45)):
        rgb, rgba, grey = (picture(rng, width, height, c) for c in (3, 4, 1))
        palette, size = rgb.quantize(37), f"{width}x{height}"
        made[f"palette{size}.gif"] = encoded(palette, "GIF", interlace=0)
        made[f"interlaced{size}.gif"] = encoded(palette, "GIF", interlace=1)
        made[f"grey{size}.gif"] = encoded(grey, "GIF")
        made[f"transparent{size}.gif"] = encoded(rgba.quantize(20), "GIF", transparency=3)
        made[f"frames{size}.gif"] = encoded(palette, "GIF", save_all=True, append_images=[rgb.quantize(9), grey])
        modes = {"rgb": rgb, "rgba": rgba, "grey": grey, "palette": palette, "one": grey.convert("1")}
        for mode, image in modes.items():
            made[f"{mode}{size}.bmp"] = encoded(image, "BMP")
        for packing in ("raw", "tiff_lzw", "tiff_deflate", "packbits"):
            for mode, image in {**modes, "la": rgba.convert("LA")}.items():
                made[f"{mode}{size}{packing}.tif"] = encoded(image, "TIFF", compression=packing)
        made[f"jpeg{size}.tif"] = encoded(rgb, "TIFF", compression="jpeg")
        made[f"fax{size}.tif"] = encoded(grey.convert("1"), "TIFF", compression="group4")
        if AVIF:
            made[f"rgb{size}.avif"] = encoded(rgb, "AVIF", quality=90, subsampling="4:4:4")
            made[f"rgba{size}.avif"] = encoded(rgba, "AVIF", quality=90, subsampling="4:4:4")
    for turn in range(1, 9):
        exif = Image.Exif()
        exif[0x112] = turn
        made[f"turn{turn}.tif"] = encoded(picture(rng, 40, 30, 3), "TIFF", exif=exif)
        if AVIF:
            made[f"turn{turn}.avif"] = encoded(picture(rng, 40, 30, 3), "AVIF", exif=exif, subsampling="4:4:4")
    for alpha in (3, 4):
        frames = [picture(rng, 48, 40, alpha) for _ in range(3)]
        for name, options in (("lossless", {"lossless": True}), ("lossy", {"quality": 80})):
            made[f"{name}{alpha}.webp"] = encoded(frames[0], "WEBP", save_all=True, append_images=frames[1:],
                                                  **options)
    pages = [picture(rng, 20, 30, 3) for _ in range(2)]
    made["pages.tif"] = encoded(pages[0], "TIFF", save_all=True, append_images=pages[1:])
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("foreign") / "images"
    root.mkdir()
    for name, data in files().items():
        (root / name).write_bytes(data)
    return root


def built() -> dict[str, bool]:
    ran = subprocess.run([sys.executable, "-m", "leat", "--version", "--json"], capture_output=True, check=True)
    return json.loads(ran.stdout)["features"]


def readable(name: str) -> bool:
    """Whether this machine reads it: the libraries are optional."""
    data = {".tif": "tiff", ".avif": "avif"}.get(name[name.rindex("."):])
    return data is None or built()[data]


@pytest.mark.parametrize("images", ["keep", "raw"])
def test_pixels_are_pillows(folder, tmp_path, images):
    if not all(built()[f] for f in ("tiff", "avif")):
        pytest.skip("built without TIFF or AVIF")
    stats = leat.pack(folder, tmp_path / "a.leat", images=images)
    assert stats["animated"] == 8  # three GIFs, four WebPs and one TIFF
    dataset, worst = leat.open(tmp_path / "a.leat"), 0
    assert len(dataset) == len(list(folder.iterdir()))
    for sample in dataset:
        ours = sample["image"].decode()
        want = ImageOps.exif_transpose(Image.open(folder / sample.key))
        mode = {1: "L", 3: "RGB", 4: "RGBA"}[ours.shape[2]]
        want = np.asarray(want.convert(mode)).reshape(ours.shape)
        apart = int(np.abs(ours.astype(int) - want).max())
        if sample.key.endswith(".avif"):  # lossy, and the two libraries may be of other versions
            worst = max(worst, apart)
        else:
            assert apart == 0, sample.key
        if images == "keep":
            assert sample["image"].codec == {"tif": "tiff"}.get(sample.key[-3:], sample.key.split(".")[-1])
            assert sample["image"].file() == (folder / sample.key).read_bytes()
    assert worst <= 2


def test_loader_takes_them(folder, tmp_path):
    if not built()["tiff"]:
        pytest.skip("built without TIFF")
    few = tmp_path / "few"
    few.mkdir()
    for name in ("rgb67x45tiff_lzw.tif", "palette67x45.gif", "rgb67x45.bmp", "grey67x45raw.tif"):
        (few / name).write_bytes((folder / name).read_bytes())
    leat.pack(few, tmp_path / "b.leat", images="keep")
    loader = leat.Loader(tmp_path / "b.leat", batch_size=4, order="sequential",
                         image=[leat.ops.Resize((24, 32)), leat.ops.ToDtype("f32")])
    batch = next(iter(loader))
    for name, ours in zip(sorted(p.name for p in few.iterdir()), np.asarray(batch["image"]), strict=True):
        want = Image.open(few / name).convert("RGB").resize((32, 24), Image.BILINEAR)
        want = np.asarray(want, np.float32).transpose(2, 0, 1) / 255
        assert np.abs(ours - want).max() < 1e-6, name


@pytest.mark.parametrize("name", ["palette67x45.gif", "rgb67x45.bmp", "rgb67x45tiff_lzw.tif", "rgb67x45.avif"])
def test_truncated_files_give_one_line(folder, tmp_path, name):
    if not (folder / name).exists() or not readable(name):
        pytest.skip("not in this build")
    bad = tmp_path / "bad"
    bad.mkdir()
    data = (folder / name).read_bytes()
    (bad / name).write_bytes(data[:len(data) // 2])
    ran = subprocess.run([sys.executable, "-m", "leat", "pack", bad, "-o", tmp_path / "c.leat"],
                         capture_output=True, text=True)
    assert ran.returncode == 4
    error, remedy = ran.stderr.splitlines()
    assert name in error and remedy == "--on-error skip leaves out samples that cannot be packed", ran.stderr


def test_pack_says_that_first_frames_count(folder, tmp_path):
    one = tmp_path / "one"
    one.mkdir()
    (one / "a.gif").write_bytes((folder / "frames67x45.gif").read_bytes())
    ran = subprocess.run([sys.executable, "-m", "leat", "pack", one, "-o", tmp_path / "d.leat"],
                         capture_output=True, text=True, check=True)
    assert "1 image has several frames or pages: the first one is used" in ran.stdout + ran.stderr


def test_palettes_of_gif_are_masks(tmp_path):
    rng = np.random.default_rng(5)
    numbers = rng.integers(0, 7, (40, 50), np.uint8)
    mask = Image.frombytes("P", (50, 40), numbers.tobytes())
    mask.putpalette([v for i in range(256) for v in ((i * 5) & 255, (i * 9) & 255, 255 - i)])
    with leat.Writer(tmp_path / "e.leat", {"image": "image", "mask": "image"}) as writer:
        writer.append({"image": encoded(picture(rng, 50, 40, 3), "BMP"), "mask": encoded(mask, "GIF")})
    loader = leat.Loader(tmp_path / "e.leat", batch_size=1, mask="follow",
                         image=[leat.ops.CenterCrop((40, 50)), leat.ops.RandomHorizontalFlip(1.0)])
    assert np.array_equal(np.asarray(next(iter(loader))["mask"])[0].reshape(40, 50), numbers[:, ::-1])
