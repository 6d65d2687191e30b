# SPDX-License-Identifier: Apache-2.0
"""Wide images at the edges of other parts: plan, check, export, masks, budgets, and what messages say."""

import io
import struct

import numpy as np
import pytest
from PIL import Image
from test_wide import command, loaded, pack, pixels, png16, run, tiff

import leat
from leat import ops

WIDE = [("uint16", 3), ("float32", 3), ("uint16", 5), ("uint8", 5)]


@pytest.mark.parametrize("dtype,channels", WIDE)
def test_plan_keeps_the_type_of_the_pack(tmp_path, dtype, channels):
    path = pack(tmp_path / "a.leat", [pixels(dtype, channels, seed=i) for i in range(8)])
    machine = ("--gpus", 0, "--cpus", 2, "--ram", "8G", "--threads", 1, "--batch", 4, "--image", 32)
    text = run("plan", "--dataset", path, *machine, "--yaml")
    assert "dtype" not in text and "size: 32" in text
    made = command("plan", "--dataset", path, *machine, "--dtype", "f32", "--yaml")
    assert made.returncode == 0 and "dtype: f32" in made.stdout
    ask = ("plan", "--dataset", path, *machine[:-2], "--ops", "CenterCrop(16); Normalize(" + str((0,) * channels) + ", 1)")
    assert command(*ask).returncode == 0
    if dtype != "uint8":
        made = command("plan", "--dataset", path, *machine, "--dtype", "u8")
        assert made.returncode == 2 and f"--dtype u8 would change the values of {dtype} images" in made.stderr


def test_the_message_names_the_sample_that_decided(tmp_path):
    for name, image in (("a/0.png", "wide"), ("a/1.png", ""), ("b/2.png", "")):
        file = tmp_path / "in" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if image:
            file.write_bytes(png16(pixels("uint16", 3)))
        else:
            Image.fromarray(pixels("uint8", 3)).save(file)
    done = command("pack", tmp_path / "in", "-o", tmp_path / "a.leat")
    assert done.returncode == 4 and "a/1.png" in done.stderr and "(set by 'a/0.png')" in done.stderr
    command("pack", tmp_path / "in", "-o", tmp_path / "b.leat", "--on-error", "skip")
    with pytest.raises(leat.FormatError, match=r"\(set by 'a/0.png'\)"), leat.Writer(tmp_path / "b.leat", append=True) as w:
        w.append({"image": pixels("uint8", 3), "label": 0}, key="new")
    path = tmp_path / "r.leat"
    with pytest.raises(RuntimeError), leat.Writer(path, {"image": "image"}, page_bytes=65536) as w:
        for i in range(20):
            w.append([pixels("uint16", 6)], key=f"old{i}")
        raise RuntimeError
    with leat.Writer(path, {"image": "image"}, page_bytes=65536, resume=True) as w:
        with pytest.raises(leat.FormatError, match=r"\(set by 'old0'\)"):
            w.append([pixels("uint8", 3)], key="new")


def test_check_says_what_it_reads(tmp_path):
    path = pack(tmp_path / "a.leat", [pixels("uint16", 3, seed=i) for i in range(3)])
    done = command("check", path, "-o", tmp_path / "c.leat")
    assert done.returncode == 2 and len(done.stderr.strip().splitlines()) == 1
    assert "a.leat: field 'image' has uint16 images with 3 channels; only 8-bit images of 1, 3 or 4 channels" in done.stderr
    assert "unreadable" not in done.stdout + done.stderr and not (tmp_path / "c.leat").exists()
    command("check", pack(tmp_path / "b.leat", [pixels("uint8", 3)]), "-o", tmp_path / "c.leat")
    assert (tmp_path / "c.leat").exists()


def test_sides_of_arrays(tmp_path):
    """A side of more than 65535 is stored as it is; of more than a million it is named."""
    long = np.arange(70000 * 3, dtype=np.uint32).astype(np.uint8).reshape(1, 70000, 3)
    path = pack(tmp_path / "a.leat", [long, long.reshape(70000, 1, 3)])
    ds = leat.open(path)
    assert np.array_equal(np.asarray(ds[0]["image"]), long) and ds[1]["image"].height == 70000
    with leat.Writer(tmp_path / "b.leat", {"image": "image"}) as w:
        for shape, side in (((1, 1_000_001), "width is 1000001"), ((1_000_001, 1, 1), "height is 1000001")):
            with pytest.raises(leat.ArgumentError, match=side):
                w.append([np.zeros(shape, np.uint8)])
        w.append([np.zeros((2, 2), np.uint8)])


def with_tag(file: bytes, tag: int, value: int) -> bytes:
    """A TIFF of one sample with another value of a SHORT tag."""
    count = struct.unpack_from("<H", file, 8)[0]
    for i in range(count):
        at = 10 + 12 * i
        if struct.unpack_from("<H", file, at)[0] == tag:
            return file[:at + 8] + struct.pack("<HH", value, 0) + file[at + 12:]
    raise AssertionError("no such tag")


@pytest.mark.parametrize("image,format,text", [
    (np.zeros((4, 5, 1), np.uint16), 2, "signed samples of 16 bits are not supported"),
    (np.zeros((4, 5, 1), np.uint16), 3, "float samples of 16 bits are not supported: only 32 bits"),
    (np.zeros((4, 5, 1), np.float32), 2, "signed samples of 32 bits"),
    (np.zeros((4, 5, 1), np.float32), 6, "complex samples of 32 bits"),
    (np.zeros((4, 5, 17), np.uint16), None, "17 samples per pixel are not supported: at most 16"),
])
def test_tiff_is_refused_for_its_true_reason(tmp_path, image, format, text):
    file = tiff(image) if format is None else with_tag(tiff(image), 339, format)
    with pytest.raises(leat.Error, match=text), leat.Writer(tmp_path / "a.leat", {"image": "image"}) as w:
        w.append([file])


def test_wide_masks_are_refused_at_open(tmp_path):
    with leat.Writer(tmp_path / "a.leat", {"image": "image", "mask": "image"}) as w:
        for _ in range(3):
            w.append([pixels("uint8", 3), pixels("uint16", 1)])
    with pytest.raises(leat.ArgumentError, match="follow: field 'mask' has uint16 images with 1 channel: a Mask is an 8-bit"):
        leat.Loader(tmp_path / "a.leat", image=[ops.CenterCrop(8)], mask="follow", batch_size=1)


def test_fill_has_one_number_per_channel(tmp_path):
    image = pixels("uint16", 5)
    path = pack(tmp_path / "a.leat", [image])
    fill = [1, 200, 300, 40000, 65535]
    made = loaded(path, [ops.Pad(2, fill=fill), ops.CenterCrop((41, 57))], batch_size=1)["image"][0]
    assert np.array_equal(made[:, 2:-2, 2:-2], image.transpose(2, 0, 1))
    assert made[:, 0, 0].tolist() == fill
    made = loaded(path, [ops.RandomAffine(0, translate=(0, 0), scale=(0.5, 0.5), fill=fill), ops.CenterCrop((37, 53))],
                  batch_size=1)["image"][0]
    assert made[:, 0, 0].tolist() == fill
    blank = ops.RandomErasing(p=1, scale=(0.5, 0.5), ratio=(1, 1), value=[1, 2, 3, 4, 5])
    made = loaded(path, [ops.CenterCrop(32), ops.ToDtype("f32"), blank], batch_size=1)["image"][0]
    assert all((made[c] == c + 1).sum() > 200 for c in range(5))
    for chain in ([ops.Pad(1, fill=(1, 2, 3))], [ops.RandomRotation(5, fill=(1, 2))]):
        with pytest.raises(leat.ArgumentError, match="fill: one number or 5 for field 'image'"):
            leat.Loader(path, image=[*chain, ops.CenterCrop(8)])
    plain = pack(tmp_path / "b.leat", [pixels("uint8", 3)])
    for op, text in ((ops.Pad(1, fill=(1, 2, 3, 4, 5)), "Pad.fill: one number or three"),
                     (ops.RandomAffine(5, fill=(1, 2)), "RandomAffine.fill: one number or three"),
                     (ops.RandomRotation(5, fill=300), r"RandomRotation.fill: 300 is out of range \(0 to 255\)")):
        with pytest.raises(leat.ArgumentError, match=text):
            leat.Loader(plain, image=[op, ops.CenterCrop(8)])


def test_names_of_types(tmp_path):
    for name in ("uint16", np.uint16, np.dtype("uint16"), "u16"):
        assert str(ops.ToDtype(name)) == "ToDtype(dtype=u16)"


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
def test_from_dataset_without_fields(tmp_path, dtype):
    images = [pixels(dtype, 3, height=20 + i) for i in range(3)]
    leat.from_dataset([{"image": image, "label": i} for i, image in enumerate(images)], tmp_path / "a.leat")
    leat.from_dataset([(image, i) for i, image in enumerate(images)], tmp_path / "b.leat")
    for name in ("a", "b"):
        ds = leat.open(tmp_path / f"{name}.leat")
        assert all(isinstance(ds[i]["image"], leat.Image) and np.array_equal(np.asarray(ds[i]["image"]), images[i])
                   for i in range(3))
    if dtype == "uint8":
        return
    points = [{"points": image} for image in images]  # arrays of other names stay arrays
    with pytest.raises(leat.ArgumentError, match="is expected; fields={'points': 'image'} takes images of any size"):
        leat.from_dataset(points, tmp_path / "c.leat")


@pytest.mark.parametrize("collate", ["list", "pad", "ragged"])
def test_images_over_the_limit_need_no_room(tmp_path, collate):
    """An image that says 100000 x 100000 is never decoded, so no batch has to hold it."""
    made = bytearray(tiff(np.zeros((4, 5, 1), np.uint8)))
    for at in range(10, 10 + 12 * struct.unpack_from("<H", made, 8)[0], 12):
        if struct.unpack_from("<H", made, at)[0] in (256, 257, 278):  # width, height, rows of the strip
            struct.pack_into("<I", made, at + 8, 100_000)
    with leat.Writer(tmp_path / "a.leat", {"image": "image", "label": int}) as w:
        w.append([pixels("uint8", 3), 0])
        w.append([bytes(made), 1])
    with leat.Loader(tmp_path / "a.leat", image=[], collate=collate, batch_size=2, on_error="skip", drop_last=False,
                     as_="numpy", order="sequential") as loader:
        labels = [int(label) for batch in loader for label in batch.label]
    assert labels == [0]


def test_masked_arrays_are_refused(tmp_path):
    masked = np.ma.masked_array(pixels("uint8", 3), mask=True)
    with leat.Writer(tmp_path / "a.leat", {"image": "image", "box": ("float32", (4,)), "n": int}) as w:
        whole = {"image": np.asarray(masked), "box": np.zeros(4, np.float32), "n": 0}
        for name, value in (("image", masked), ("box", np.ma.zeros(4)), ("n", np.ma.masked)):
            with pytest.raises(leat.ArgumentError, match=f"field '{name}', sample 0: a masked array"):
                w.append({**whole, name: value})
        w.append(whole)


def test_parquet_has_files_of_pixels(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    for dtype, channels in (("uint8", 3), ("uint8", 1), ("uint16", 3), ("float32", 5)):
        images = [pixels(dtype, channels, seed=i) for i in range(3)]
        path = pack(tmp_path / f"{dtype}{channels}.leat", images)
        out = tmp_path / f"{dtype}{channels}"
        run("export", path, "-o", out, "--to", "parquet")
        rows = pq.read_table(out / "00000.parquet").to_pylist()
        assert [row["label"] for row in rows] == [0, 1, 2]
        for row, image in zip(rows, images):
            if dtype == "uint8":
                read = np.asarray(Image.open(io.BytesIO(row["image"]["bytes"])))
                assert np.array_equal(read.reshape(image.shape), image)
        back = tmp_path / f"{dtype}{channels}.back.leat"
        leat.pack(out / "00000.parquet", back)
        assert all(np.array_equal(np.asarray(sample["image"]), image) for sample, image in zip(leat.open(back), images))


@pytest.mark.parametrize("dtype,channels", [("uint16", 1), ("float32", 1), ("uint8", 5), ("float32", 3)])
@pytest.mark.parametrize("op", [
    ops.RandomAffine(20, translate=(0.1, 0.1)), ops.RandomAffine(0, scale=(0.5, 1.5)), ops.RandomAffine(0, shear=10),
    ops.RandomRotation(45), ops.RandomRotation(90, expand=True), ops.RandomPerspective(p=1, interpolation="nearest")],
    ids=lambda op: str(op)[:30])
def test_nearest_maps_cut_image_and_mask_alike(tmp_path, dtype, channels, op):
    rng = np.random.default_rng(8)
    masks = [rng.integers(0, 256, (40, 50), np.uint8) for _ in range(12)]
    with leat.Writer(tmp_path / "a.leat", {"image": "image", "mask": "image"}) as w:
        for mask in masks:
            w.append([np.repeat(mask[..., None], channels, 2).astype(dtype), mask])
    with leat.Loader(tmp_path / "a.leat", image=[op, ops.CenterCrop(30)], mask="follow", batch_size=4, seed=3,
                     as_="numpy") as loader:
        for _ in range(2):
            for batch in loader:
                assert np.array_equal(np.asarray(batch.image)[:, 0], np.asarray(batch.mask).astype(dtype))


def test_nearest_rotation_is_pillows_of_mode_f(tmp_path):
    images = [pixels("float32", 1, 80, 100, seed=i) for i in range(2)]
    path = pack(tmp_path / "a.leat", images)
    for angle in range(-170, 180, 19):
        made = loaded(path, [ops.RandomRotation((angle, angle)), ops.CenterCrop((80, 100))], batch_size=2)["image"]
        for image, got in zip(images, made):
            want = np.asarray(Image.fromarray(image[..., 0]).rotate(angle))
            assert np.array_equal(got[0], want), angle
