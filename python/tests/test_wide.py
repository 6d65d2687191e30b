# SPDX-License-Identifier: Apache-2.0
"""uint16 and float32 images, and images of 1 to 16 channels, against NumPy and Pillow (mode F)."""

import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import leat
from leat import ops

KINDS = [("uint16", 1), ("uint16", 3), ("uint16", 5), ("float32", 1), ("float32", 3), ("float32", 16), ("uint8", 2),
         ("uint8", 7)]


def pixels(dtype: str, channels: int, height: int = 37, width: int = 53, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng([seed, channels])
    shape = (height, width, channels)
    if dtype == "float32":
        return rng.normal(0, 100, shape).astype(np.float32)
    return rng.integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)


def pack(path: Path, images: list[np.ndarray], **options: object) -> str:
    with leat.Writer(path, {"image": "image", "label": int}, **options) as w:
        for i, image in enumerate(images):
            w.append({"image": image, "label": i})
    return str(path)


def loaded(path: str, image: object, **options: object) -> dict[str, np.ndarray]:
    """The first batch, in the order of the pack."""
    with leat.Loader(path, image=image, batch_size=options.pop("batch_size", 4), order="sequential", as_="numpy",
                     drop_last=False, **options) as loader:
        for batch in loader:
            return {name: np.array(getattr(batch, name)) for name in ("image", "label")}
    raise AssertionError("no batch")


def png16(image: np.ndarray) -> bytes:
    """A 16-bit PNG: big-endian samples, filter 0."""
    height, width, channels = image.shape
    colour = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in image)
    made = b"\x89PNG\r\n\x1a\n"
    for name, body in ((b"IHDR", struct.pack(">IIBBBBB", width, height, 16, colour, 0, 0, 0)),
                       (b"IDAT", zlib.compress(rows)), (b"IEND", b"")):
        made += struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
    return made


def tiff(image: np.ndarray, *, planar: bool = False, big: bool = False, white: bool = False,
         photometric: int | None = None) -> bytes:
    """A TIFF of one strip (per plane), little- or big-endian."""
    end, (height, width, channels) = ">" if big else "<", image.shape
    data = image.astype(image.dtype.newbyteorder(end))
    planes = [np.ascontiguousarray(data[:, :, c]).tobytes() for c in range(channels)] if planar else [data.tobytes()]
    kind = 3 if image.dtype.kind == "f" else 1
    grey = channels not in (3, 4)
    if photometric is None:
        photometric = (0 if white else 1) if grey else 2
    extra = channels - (1 if photometric < 2 else 3)
    tags = [(256, 4, [width]), (257, 4, [height]), (258, 3, [8 * image.itemsize] * channels), (259, 3, [1]),
            (262, 3, [photometric]), (277, 3, [channels]), (278, 4, [height]), (284, 3, [2 if planar else 1]),
            (339, 3, [kind] * channels)]
    if extra:
        tags.append((338, 3, [0] * extra))
    tags += [(273, 4, [0] * len(planes)), (279, 4, [len(p) for p in planes])]
    tags.sort()
    at = 8 + 2 + 12 * len(tags) + 4
    later, entries = b"", b""
    start = at + sum(len(v) * (2 if t == 3 else 4) for _, t, v in tags if len(v) * (2 if t == 3 else 4) > 4)
    offsets = [start + sum(len(p) for p in planes[:i]) for i in range(len(planes))]
    for tag, kind, values in tags:
        values = offsets if tag == 273 else values
        body = struct.pack(f"{end}{len(values)}{'H' if kind == 3 else 'I'}", *values)
        if len(body) > 4:
            entries += struct.pack(f"{end}HHII", tag, kind, len(values), at + len(later))
            later += body
        else:
            entries += struct.pack(f"{end}HHI", tag, kind, len(values)) + body.ljust(4, b"\0")
    head = (b"MM\0*" if big else b"II*\0") + struct.pack(f"{end}I", 8) + struct.pack(f"{end}H", len(tags))
    return head + entries + bytes(4) + later + b"".join(planes)


# ---- packs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype,channels", KINDS)
def test_pixels_come_back_bit_by_bit(tmp_path, dtype, channels):
    images = [pixels(dtype, channels, 9 + i, 5 + 3 * i, i) for i in range(5)]
    if dtype == "float32":
        images[2][0, 0, 0], images[2][1, 1, 0], images[2][2, 2, 0] = np.nan, np.inf, -0.0
    ds = leat.open(pack(tmp_path / "a.leat", images))
    for i, image in enumerate(images):
        got = ds[i]["image"]
        assert (got.dtype, got.channels, got.codec, got.wide) == (np.dtype(dtype), channels, "raw", True)
        assert np.asarray(got).dtype == image.dtype
        assert np.asarray(got).tobytes() == image.tobytes()
        assert np.asarray(memoryview(got.tobytes())).tobytes() == image.tobytes()
    assert f"{dtype} x {channels}" in repr(ds[0]["image"])


def test_two_dimensions_are_one_channel(tmp_path):
    image = pixels("uint16", 1)[:, :, 0]
    ds = leat.open(pack(tmp_path / "a.leat", [image, image.astype(">u2")]))
    assert ds[0]["image"].channels == 1
    assert all(np.array_equal(np.asarray(ds[i]["image"])[:, :, 0], image) for i in (0, 1))
    assert np.array_equal(np.asarray(ds[0]["image"].pil()), image)


def test_8_bit_pixels_are_stored_as_before(tmp_path):
    for channels in (1, 3, 4):
        image = pixels("uint8", channels)
        stored = leat.open(pack(tmp_path / f"{channels}.leat", [image]))[0]["image"].stored
        head = b"LRAW" + bytes([1, channels, 1, 0]) + struct.pack("<II", 53, 37)
        assert stored == head + image.tobytes()


@pytest.mark.parametrize("value,text", [
    (pixels("uint8", 3).astype(np.int16), "uint8, uint16 or float32, not int16"),
    (pixels("uint8", 3).astype(np.float64), "uint8, uint16 or float32, not float64"),
    (np.zeros((4, 5, 17), np.uint16), r"1 to 16 channels, not \(4, 5, 17\)"),
    (np.zeros((5, 40, 50), np.uint16), "channels come last"),
    (np.zeros((4, 5, 0), np.uint16), "1 to 16 channels"),
])
def test_pixels_that_are_refused(tmp_path, value, text):
    with leat.Writer(tmp_path / "a.leat", {"image": "image"}) as w:
        with pytest.raises(leat.ArgumentError, match=text):
            w.append({"image": value})
        w.append({"image": pixels("uint8", 3)})


def test_a_field_has_one_kind(tmp_path):
    path = tmp_path / "a.leat"
    with leat.Writer(path, {"image": "image"}) as w:
        w.append({"image": pixels("uint16", 3)})
        with pytest.raises(leat.Error, match="sample 'other', field 'image': float32 images with 3 channels in a field of "
                           "uint16 images with 3 channels"):
            w.append({"image": pixels("float32", 3)}, key="other")
        with pytest.raises(leat.Error, match="8-bit images of 1, 3 or 4 channels in a field of uint16"):
            w.append({"image": pixels("uint8", 3)})
        w.append({"image": pixels("uint16", 3)})
    assert len(leat.open(path)) == 2
    with leat.Writer(path, append=True) as w:
        with pytest.raises(leat.Error, match="uint16 images with 2 channels in a field of uint16 images with 3"):
            w.append({"image": pixels("uint16", 2)})
        w.append({"image": pixels("uint16", 3, seed=4)})
    assert np.array_equal(np.asarray(leat.open(path)[2]["image"]), pixels("uint16", 3, seed=4))


def test_from_dataset(tmp_path):
    rows = [(pixels("float32", 6, seed=i), i) for i in range(5)]
    leat.from_dataset(rows, tmp_path / "a.leat", {"image": "image", "label": int}, workers=2)
    ds = leat.open(tmp_path / "a.leat")
    assert all(np.array_equal(np.asarray(ds[i]["image"]), rows[i][0]) for i in range(5))


# ---- files -------------------------------------------------------------------------------------


def command(*args: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "leat", *map(str, args)], capture_output=True, text=True, timeout=120)


def run(*args: object) -> str:
    done = command(*args)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("kind", ["png1", "png2", "png3", "png4", "tiff1", "tiff5", "planar", "floats", "bytes7"])
@pytest.mark.parametrize("mode", ["keep", "raw", "tiled"])
def test_files_are_packed_without_loss(tmp_path, kind, mode):
    dtype = {"floats": "float32", "bytes7": "uint8"}.get(kind, "uint16")
    channels = int(kind[-1]) if kind[-1].isdigit() else 3
    folder = tmp_path / "in" / "class"
    folder.mkdir(parents=True)
    images = [pixels(dtype, channels, seed=i) for i in range(3)]
    for i, image in enumerate(images):
        if kind.startswith("png"):
            (folder / f"{i}.png").write_bytes(png16(image))
        else:
            (folder / f"{i}.tif").write_bytes(tiff(image, planar=kind == "planar", big=i == 1))
    path = tmp_path / "a.leat"
    run("pack", tmp_path / "in", "-o", path, "--images", mode)
    ds = leat.open(path)
    for i, image in enumerate(images):
        got = ds[i]["image"]
        assert (got.dtype, got.channels) == (np.dtype(dtype), channels)
        assert got.codec == ("raw" if mode == "raw" else "png" if kind.startswith("png") else "tiff")
        assert np.array_equal(np.asarray(got), image)
    crop = loaded(str(path), [ops.CenterCrop(21)])["image"]
    assert np.array_equal(crop, nchw([i[8:29, 16:37] for i in images]))
    assert f"{dtype} images with {channels} channel" in run("info", path)
    run("verify", path)


def test_export_gives_the_pixels_back(tmp_path):
    for dtype, channels in KINDS:
        image = pixels(dtype, channels)
        path = pack(tmp_path / f"{dtype}{channels}.leat", [image])
        out = tmp_path / f"{dtype}{channels}"
        run("export", path, "-o", out)
        (file,) = out.iterdir()
        assert file.name == "00000000.tif"
        if (dtype, channels) == ("uint8", 2):
            continue  # TIFF of bytes with two samples is read as grey with alpha
        with leat.Writer(tmp_path / f"{dtype}{channels}b.leat", {"image": "image"}) as w:
            w.append({"image": file})
        assert np.array_equal(np.asarray(leat.open(w.path)[0]["image"]), image)
        if channels == 1:
            assert np.array_equal(np.asarray(Image.open(file)), image[:, :, 0])


def test_merge_split_append_and_compact(tmp_path):
    a = pack(tmp_path / "a.leat", [pixels("uint16", 3, seed=i) for i in range(4)])
    with leat.Writer(tmp_path / "b.leat", {"image": "image", "label": int}) as w:
        for i in range(4, 8):
            w.append({"image": pixels("uint16", 3, seed=i), "label": i}, key=f"b{i}")
    run("merge", a, w.path, "-o", tmp_path / "c.leat")
    ds = leat.open(tmp_path / "c.leat")
    assert len(ds) == 8
    assert all(np.array_equal(np.asarray(ds[i]["image"]), pixels("uint16", 3, seed=i)) for i in range(8))
    run("split", tmp_path / "c.leat", "--parts", "train=0.5,val=0.5", "-o", tmp_path / "parts")
    parts = [leat.open(p) for p in sorted((tmp_path / "parts").glob("*.leat"))]
    assert sum(map(len, parts)) == 8
    for part in parts:
        for sample in part:
            assert np.array_equal(np.asarray(sample["image"]), pixels("uint16", 3, seed=sample["label"]))
    run("append", w.path, "-o", a)
    leat.compact(a)
    assert np.array_equal(np.asarray(leat.open(a)[7]["image"]), pixels("uint16", 3, seed=7))
    other = pack(tmp_path / "d.leat", [pixels("float32", 3)])
    done = command("merge", a, other, "-o", tmp_path / "e.leat", "--duplicates", "rename")
    assert done.returncode == 4 and "float32 images with 3 channels in a field of uint16" in done.stderr


def test_a_stray_kind_in_a_folder_is_one_bad_sample(tmp_path):
    folder = tmp_path / "in" / "c"
    folder.mkdir(parents=True)
    for i in range(4):
        Image.fromarray(pixels("uint8", 3, seed=i)).save(folder / f"{i}.png")
    (folder / "2x.png").write_bytes(png16(pixels("uint16", 3)))
    done = command("pack", tmp_path / "in", "-o", tmp_path / "a.leat")
    assert done.returncode == 4 and "2x.png" in done.stderr and "uint16 images with 3 channels" in done.stderr
    done = command("pack", tmp_path / "in", "-o", tmp_path / "b.leat", "--on-error", "skip")
    assert done.returncode == 1 and "1 sample was left out" in done.stderr
    assert len(leat.open(tmp_path / "b.leat")) == 4


@pytest.mark.parametrize("name,whole", [("a.png", png16(pixels("uint16", 3))), ("a.tif", tiff(pixels("float32", 5)))])
def test_damaged_files_are_one_line(tmp_path, name, whole):
    for cut in (9, len(whole) // 3, len(whole) - 7):
        folder = tmp_path / str(cut) / "c"
        folder.mkdir(parents=True)
        (folder / name).write_bytes(whole[:cut])
        done = command("pack", folder.parent, "-o", tmp_path / "a.leat")
        assert done.returncode == 4, done.stderr
        assert name in done.stderr and len(done.stderr.strip().splitlines()) <= 2


def test_seventeen_channels_are_refused(tmp_path):
    folder = tmp_path / "in" / "c"
    folder.mkdir(parents=True)
    (folder / "a.tif").write_bytes(tiff(np.zeros((4, 5, 17), np.uint16)))
    done = command("pack", tmp_path / "in", "-o", tmp_path / "a.leat")
    assert done.returncode == 4 and "17 samples per pixel are not supported" in done.stderr


def test_encoding_again_is_refused(tmp_path):
    folder = tmp_path / "in" / "c"
    folder.mkdir(parents=True)
    (folder / "a.png").write_bytes(png16(pixels("uint16", 3)))
    for flag, value in (("--max-side", 20), ("--quality", 90)):
        done = command("pack", tmp_path / "in", "-o", tmp_path / "a.leat", flag, value)
        assert done.returncode == 4 and "works on 8-bit images" in done.stderr


def test_orientation_is_applied(tmp_path):
    image = pixels("uint16", 1, 20, 30)
    out = tmp_path / "a.tif"
    exif = Image.Exif()
    exif[0x112] = 6
    Image.fromarray(image[:, :, 0]).save(out, exif=exif)
    with leat.Writer(tmp_path / "a.leat", {"image": "image"}) as w:
        w.append({"image": out})
    got = leat.open(w.path)[0]["image"]
    want = np.rot90(image[:, :, 0], -1)
    assert got.orientation == 6
    assert np.array_equal(np.asarray(got)[:, :, 0], want)
    assert np.array_equal(got.decode("ignore")[:, :, 0], image[:, :, 0])
    with leat.Loader(w.path, image=[ops.CenterCrop((30, 20))], batch_size=1, as_="numpy") as loader:
        assert np.array_equal(np.array(next(iter(loader)).image)[0, 0], want)


def test_load_command(tmp_path):
    path = pack(tmp_path / "a.leat", [pixels("uint16", 5, seed=i) for i in range(6)])
    run("load", path, "--size", 16, "--batch", 2)
    run("load", path, "--size", 16, "--batch", 2, "--dtype", "f32")
    done = command("load", path, "--size", 16, "--dtype", "u8")
    assert done.returncode == 2 and "ToDtype(u8) would change the values of field 'image'" in done.stderr


# ---- pipelines ---------------------------------------------------------------------------------


def nchw(images: list[np.ndarray]) -> np.ndarray:
    return np.stack([i.transpose(2, 0, 1) for i in images])


@pytest.mark.parametrize("dtype,channels", KINDS)
def test_crop_flip_and_pad_are_exact(tmp_path, dtype, channels):
    images = [pixels(dtype, channels, seed=i) for i in range(4)]
    path = pack(tmp_path / "a.leat", images)
    crop = [i[8:29, 16:37] for i in images]
    got = loaded(path, [ops.CenterCrop(21)])
    assert got["image"].dtype == np.dtype(dtype)
    assert np.array_equal(got["image"], nchw(crop))
    assert got["label"].tolist() == [0, 1, 2, 3]
    flipped = loaded(path, [ops.CenterCrop(21), ops.RandomHorizontalFlip(1), ops.RandomVerticalFlip(1)])
    assert np.array_equal(flipped["image"], nchw([i[::-1, ::-1] for i in crop]))
    last = loaded(path, [ops.CenterCrop(21)], channels_last=True)
    assert np.array_equal(last["image"], np.stack(crop))
    for mode in ("constant", "edge", "reflect", "symmetric"):
        padded = loaded(path, [ops.CenterCrop(21), ops.Pad((3, 2, 1, 4), fill=7 if mode == "constant" else 0,
                                                           padding_mode=mode)])
        extra = {"constant_values": 7} if mode == "constant" else {}
        want = [np.pad(i, ((2, 4), (3, 1), (0, 0)), mode, **extra) for i in crop]
        assert np.array_equal(padded["image"], nchw(want)), mode


def test_fill_in_the_units_of_the_image(tmp_path):
    path = pack(tmp_path / "a.leat", [pixels("uint16", 2)])
    got = loaded(path, [ops.CenterCrop(8), ops.Pad(1, fill=40000)])["image"]
    assert got[0, 0, 0, 0] == 40000
    plain = pack(tmp_path / "b.leat", [pixels("uint8", 3)])
    with pytest.raises(leat.ArgumentError, match=r"Pad.fill: 40000 is out of range \(0 to 255\)"):
        leat.Loader(plain, image=[ops.CenterCrop(8), ops.Pad(1, fill=40000)])


@pytest.mark.parametrize("dtype,channels", [("uint16", 1), ("float32", 1), ("float32", 3), ("uint8", 5)])
@pytest.mark.parametrize("name,filter", [("nearest", Image.NEAREST), ("box", Image.BOX), ("bilinear", Image.BILINEAR),
                                         ("hamming", Image.HAMMING), ("bicubic", Image.BICUBIC),
                                         ("lanczos", Image.LANCZOS)])
def test_resize_is_pillows_of_mode_f(tmp_path, dtype, channels, name, filter):
    image = pixels(dtype, channels)
    path = pack(tmp_path / "a.leat", [image])
    for size in ((20, 30), (37, 53), (80, 100), (9, 70), (3, 53), (37, 5)):
        got = loaded(path, [ops.Resize(size, interpolation=name)])["image"][0]
        planes = [np.asarray(Image.fromarray(image[:, :, c].astype(np.float32)).resize(size[::-1], filter))
                  for c in range(channels)]
        want = np.stack(planes)
        if dtype == "float32":
            assert np.array_equal(got, want), size
        else:
            most = np.iinfo(dtype).max
            assert np.array_equal(got, np.rint(np.clip(want, 0, most)).astype(dtype)), size


def test_random_resized_crop_is_that_of_8_bit_images(tmp_path):
    """The same draws, whatever the pixels: what is drawn for an 8-bit image, applied to floats."""
    small = pixels("uint8", 3)
    chain = [ops.RandomResizedCrop(16, interpolation="nearest"), ops.RandomHorizontalFlip()]
    bytes_ = loaded(pack(tmp_path / "a.leat", [small] * 4), chain, seed=5)["image"]
    floats = loaded(pack(tmp_path / "b.leat", [small.astype(np.float32)] * 4), chain, seed=5)["image"]
    assert np.array_equal(bytes_, floats)


@pytest.mark.parametrize("name,filter", [("nearest", Image.NEAREST), ("bilinear", Image.BILINEAR),
                                         ("bicubic", Image.BICUBIC)])
def test_rotation_is_pillows_of_mode_f(tmp_path, name, filter):
    image = pixels("float32", 2, 40, 40)
    path = pack(tmp_path / "a.leat", [image])
    for degrees in (90, 180, 270, 33):
        got = loaded(path, [ops.CenterCrop(40), ops.RandomRotation((degrees, degrees), interpolation=name)])["image"][0]
        want = np.stack([np.asarray(Image.fromarray(image[:, :, c]).rotate(degrees, filter)) for c in (0, 1)])
        if degrees % 90 == 0:
            assert np.array_equal(got, np.rot90(image, degrees // 90).transpose(2, 0, 1)), degrees
        else:
            assert np.mean(np.abs(got - want) > 1e-3) < (0.01 if name == "nearest" else 1e-6)


def test_normalize_and_types(tmp_path):
    image = pixels("uint16", 5)
    path = pack(tmp_path / "a.leat", [image])
    mean, std = [0.1, 0.2, 0.3, 0.4, 0.5], [0.5, 0.4, 0.3, 0.2, 0.1]
    scaled = image.transpose(2, 0, 1).astype(np.float32) / np.float32(65535)
    want = (scaled - np.float32(mean)[:, None, None]) / np.float32(std)[:, None, None]
    crop = [ops.CenterCrop((37, 53))]
    assert np.array_equal(loaded(path, [*crop, ops.Normalize(mean, std)])["image"][0], want)
    assert np.array_equal(loaded(path, [*crop, ops.ToDtype("f32")])["image"][0], scaled)
    assert np.array_equal(loaded(path, [*crop, ops.ToDtype("f32", scale=False)])["image"][0],
                          image.transpose(2, 0, 1).astype(np.float32))
    assert np.array_equal(loaded(path, [*crop, ops.Normalize(mean, std), ops.ToDtype("f16")])["image"][0],
                          want.astype(np.float16))
    assert np.array_equal(loaded(path, [*crop, ops.ToDtype("u16")])["image"][0], image.transpose(2, 0, 1))
    one = loaded(path, [*crop, ops.Normalize(0.5, 0.25)])["image"][0]
    assert np.array_equal(one, (scaled - np.float32(0.5)) / np.float32(0.25))


def test_floats_are_delivered_as_they_are(tmp_path):
    image = pixels("float32", 4)
    image[0, 0, 0], image[1, 1, 1] = np.nan, -np.inf
    path = pack(tmp_path / "a.leat", [image])
    got = loaded(path, [ops.CenterCrop((37, 53))])["image"][0]
    assert got.tobytes() == np.ascontiguousarray(image.transpose(2, 0, 1)).tobytes()
    normal = loaded(path, [ops.CenterCrop((37, 53)), ops.Normalize(1, 2)])["image"][0]
    assert np.array_equal(normal, (image.transpose(2, 0, 1) - np.float32(1)) / np.float32(2), equal_nan=True)


def test_bfloat16_and_torch(tmp_path):
    torch = pytest.importorskip("torch")
    image = pixels("uint16", 6)
    path = pack(tmp_path / "a.leat", [image] * 2)
    with leat.Loader(path, image=[ops.CenterCrop(8)], batch_size=2, as_="torch") as loader:
        batch = next(iter(loader))
        assert (batch.image.dtype, tuple(batch.image.shape)) == (torch.uint16, (2, 6, 8, 8))
    with leat.Loader(path, image=[ops.CenterCrop((37, 53)), ops.ToDtype("bf16")], batch_size=2, as_="torch") as loader:
        got = next(iter(loader)).image[0]
    want = torch.from_numpy(image.transpose(2, 0, 1).astype(np.float32)) / 65535
    assert torch.equal(got, want.bfloat16())


def test_views_crops_collate_and_batch_ops(tmp_path):
    images = [pixels("uint16", 3, 30 + i, 40, i) for i in range(4)]
    path = pack(tmp_path / "a.leat", images)
    five = loaded(path, [ops.FiveCrop(16)])["image"]
    assert five.shape == (4, 5, 3, 16, 16)
    assert np.array_equal(five[:, 0], nchw([i[:16, :16] for i in images]))
    padded = loaded(path, [ops.RandomHorizontalFlip(1)], collate="pad", pad_value=9)["image"]
    assert padded.shape == (4, 3, 33, 40) and padded[0, 0, 32, 0] == 9
    assert np.array_equal(padded[1, :, :31], images[1][:, ::-1].transpose(2, 0, 1))
    views = {"a": ("image", [ops.CenterCrop(8)]), "b": ("image", [ops.CenterCrop(12), ops.ToDtype("f32")])}
    with leat.Loader(path, image=views, batch_size=4, order="sequential", as_="numpy") as loader:
        batch = next(iter(loader))
        assert batch.a.shape == (4, 3, 8, 8) and batch.a.dtype == np.uint16
        assert np.array_equal(np.array(batch.b)[:, :, 2:10, 2:10], np.array(batch.a) / np.float32(65535))
    mixed = loaded(path, [ops.CenterCrop(8), ops.MixUp()], classes=4, label="label")["image"]
    assert mixed.dtype == np.uint16 and mixed.shape == (4, 3, 8, 8)


def test_masks_follow(tmp_path):
    rng = np.random.default_rng(1)
    masks = [rng.integers(0, 9, (37, 53), np.uint8) for _ in range(4)]
    with leat.Writer(tmp_path / "a.leat", {"image": "image", "mask": "image"}) as w:
        for mask in masks:
            w.append({"image": np.repeat(mask[:, :, None], 6, 2).astype(np.float32), "mask": mask})
    chain = [ops.RandomCrop(20, padding=3), ops.RandomHorizontalFlip(), ops.RandomVerticalFlip()]
    with leat.Loader(w.path, image={"image": ("image", chain)}, mask="follow", batch_size=4, as_="numpy") as loader:
        batch = next(iter(loader))
        assert np.array_equal(np.array(batch.image)[:, 5], np.array(batch.mask))


def test_a_change_while_it_lives(tmp_path):
    path = pack(tmp_path / "a.leat", [pixels("uint16", 5, seed=i) for i in range(4)])
    with leat.Loader(path, image=[ops.CenterCrop(8)], batch_size=2, as_="numpy") as loader:
        assert next(iter(loader)).image.shape == (2, 5, 8, 8)
        loader.set(image=[ops.CenterCrop(12)])
        assert next(iter(loader)).image.shape == (2, 5, 12, 12)
        with pytest.raises(leat.ArgumentError, match="ColorJitter works on 8-bit"):
            loader.set(image=[ops.CenterCrop(12), ops.ColorJitter(0.1)])


def test_map_style_has_the_loaders_pixels(tmp_path):
    images = [pixels("float32", 7, seed=i) for i in range(6)]
    path = pack(tmp_path / "a.leat", images)
    chain = [ops.RandomResizedCrop(16), ops.RandomHorizontalFlip(), ops.Normalize([0.1] * 7, [2.0] * 7)]
    ds = leat.open(path, image=chain, seed=3, as_="numpy")
    batch = loaded(path, chain, seed=3, batch_size=6)["image"]
    assert batch.shape == (6, 7, 16, 16)
    assert all(np.array_equal(ds[i]["image"], batch[i]) for i in range(6))


@pytest.mark.parametrize("op,text", [
    (ops.ColorJitter(0.4), "ColorJitter works on 8-bit images of 1, 3 or 4 channels, and not on field 'image' "
                           r"\(uint16, 5 channels\)"),
    (ops.RandomPosterize(4), "RandomPosterize works on 8-bit"),
    (ops.RandomEqualize(), "RandomEqualize works on 8-bit"),
    (ops.RandAugment(), "RandAugment works on 8-bit"),
    (ops.ElasticTransform(), "ElasticTransform works on 8-bit"),
    (ops.RandomApply([ops.GaussianBlur(3)]), "GaussianBlur works on 8-bit"),
    (ops.RandomErasing(), "RandomErasing blanks 8-bit pixels: put it after Normalize or ToDtype"),
    (ops.ToDtype("u8"), r"ToDtype\(u8\) would change the values of field 'image' \(uint16, 5 channels\): use u16"),
    (ops.Normalize([0, 0, 0], 1), "Normalize.mean: one number or 5 for field 'image'"),
    (ops.Pad(1, fill=(1, 2, 3)), "Pad.fill: one number or 5 for field 'image'"),
])
def test_ops_without_meaning_are_refused_at_open(tmp_path, op, text):
    path = pack(tmp_path / "a.leat", [pixels("uint16", 5)])
    with pytest.raises(leat.ArgumentError, match=text):
        leat.Loader(path, image=[ops.CenterCrop(8), op])
    with pytest.raises(leat.ArgumentError, match=text):
        leat.open(path, image=[ops.CenterCrop(8), op])


def test_u16_is_refused_for_8_bit_images(tmp_path):
    path = pack(tmp_path / "a.leat", [pixels("uint8", 3)])
    with pytest.raises(leat.ArgumentError, match=r"ToDtype\(u16\) needs images of uint16 samples"):
        leat.Loader(path, image=[ops.CenterCrop(8), ops.ToDtype("u16")])
    with pytest.raises(leat.ArgumentError, match="Normalize.mean: one number or three"):
        leat.Loader(path, image=[ops.CenterCrop(8), ops.Normalize([0] * 5, 1)])


def test_packs_of_different_kinds_are_not_mixed(tmp_path):
    a, b = (pack(tmp_path / f"{d}.leat", [pixels(d, 3)] * 3) for d in ("uint16", "float32"))
    with pytest.raises(leat.ArgumentError, match="float32.leat: field 'image' has float32 images with 3 channels, and "
                       "uint16 images with 3 channels in the packs before it"):
        leat.Loader([a, b], image=[ops.CenterCrop(8)])


def test_threads_do_not_change_pixels(tmp_path):
    path = pack(tmp_path / "a.leat", [pixels("uint16", 3, seed=i) for i in range(30)])
    chain = [ops.RandomResizedCrop(16), ops.RandomAffine(20, interpolation="bilinear"), ops.ToDtype("f32")]
    made = [loaded(path, chain, seed=1, threads=t, batch_size=30)["image"] for t in (1, 2, 7)]
    assert np.array_equal(made[0], made[1]) and np.array_equal(made[0], made[2])


@pytest.mark.parametrize("first, then", [((np.uint16, 6), (np.uint8, 3)), ((np.uint8, 3), (np.uint16, 3)),
                                         ((np.float32, 2), (np.uint16, 2))])
def test_a_resumed_writer_knows_the_kind(tmp_path, first, then):
    """What was written before the interruption decides, as it does without one."""
    def image(kind):
        return np.ones((40, 30, kind[1]), kind[0])

    path, fields = tmp_path / "r.leat", {"image": "image"}
    with pytest.raises(RuntimeError), leat.Writer(path, fields, page_bytes=65536) as w:
        for _ in range(20):
            w.append([image(first)])
        raise RuntimeError
    with leat.Writer(path, fields, page_bytes=65536, resume=True) as w:
        assert w.resumed > 0
        with pytest.raises(leat.FormatError, match="in a field of"):
            w.append([image(then)])
        w.append([image(first)])
    assert np.asarray(leat.open(path)[0]["image"]).dtype == first[0]


@pytest.mark.parametrize("dtype, channels", [(np.uint16, 3), (np.float32, 3), (np.uint16, 1), (np.uint8, 5)])
def test_the_built_in_embedding_is_for_bytes(tmp_path, dtype, channels):
    path = tmp_path / "w.leat"
    with leat.Writer(path, {"image": "image"}) as w:
        w.extend([[np.ones((40, 30, channels), dtype)] for _ in range(3)])
    with pytest.raises(leat.ArgumentError, match="model: tiny takes 8-bit images of 1, 3 or 4 channels"):
        leat.embed(str(path), output=str(tmp_path / "e.leat"), model="tiny")
    assert not (tmp_path / "e.leat").exists()
