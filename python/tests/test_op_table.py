# SPDX-License-Identifier: Apache-2.0
"""Every op of the table through the loader: it changes what is delivered, and equals its reference.

References are Pillow, NumPy and arithmetic written here. An op that has none fails the first test.
"""

import io
import itertools
import pathlib
import pickle
import sys

import numpy as np
import pytest
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

import leat

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tests" / "oracle"))
from replay import clahe  # noqa: E402

SIDE = 32
COUNT = 24
FLAT = "ToLayout(nhwc)"


@pytest.fixture(scope="module")
def photos() -> list[Image.Image]:
    rng = np.random.default_rng(5)
    out = []
    for _ in range(COUNT):
        smooth = Image.fromarray(rng.integers(20, 230, (4, 4, 3), np.uint8)).resize((SIDE, SIDE), Image.BICUBIC)
        noise = rng.integers(-12, 13, (SIDE, SIDE, 3))
        out.append(Image.fromarray(np.clip(np.asarray(smooth).astype(int) + noise, 0, 255).astype(np.uint8)))
    return out


@pytest.fixture(scope="module")
def pack(tmp_path_factory, photos) -> str:
    path = str(tmp_path_factory.mktemp("table") / "photos.leat")
    with leat.Writer(path, {"image": "image", "label": int}, sync=False) as w:
        for i, photo in enumerate(photos):
            w.append([np.asarray(photo), i % 5])
    return path


def load(path: str, text: str, **options):
    with leat.Loader(path, COUNT, text, order="sequential", seed=3, as_="numpy", **options) as loader:
        (batch,) = list(loader)
        return batch.asdict()


def images(path: str, text: str, **options) -> np.ndarray:
    return load(path, f"{text}; {FLAT}", **options)["image"].copy()


def enhance(kind, factor):
    return lambda im: kind(im).enhance(factor)


def padded(im, left, top, right, bottom, mode="constant", fill=0):
    border = ((top, bottom), (left, right), (0, 0))
    more = {"constant_values": fill} if mode == "constant" else {}
    return np.pad(np.asarray(im), border, mode, **more)


def hue(im, shift):
    h, s, v = im.convert("HSV").split()
    turned = (np.asarray(h).astype(int) + int(shift * 255)) % 256
    return Image.merge("HSV", (Image.fromarray(turned.astype(np.uint8)), s, v)).convert("RGB")


def gray(im):
    return np.repeat(np.asarray(im.convert("L"))[..., None], 3, -1)


def blur(im):
    half = np.linspace(-2, 2, 5, dtype=np.float32)
    k = np.exp(-0.5 * (half / np.float32(1.5)) ** 2)
    k /= k.sum()
    a = np.pad(np.asarray(im).astype(np.float32), ((2, 2), (2, 2), (0, 0)), "reflect")
    rows = sum(w * a[i:i + SIDE] for i, w in enumerate(k))
    return np.rint(sum(w * rows[:, i:i + SIDE] for i, w in enumerate(k)))


def affine(im, angle=0.0, translate=(0, 0), scale=1.0, shear=(0.0, 0.0), center=None):
    """torchvision's inverse matrix of an affine map, on PIL images."""
    cx, cy = center or (SIDE * 0.5, SIDE * 0.5)
    rot, sx, sy = np.radians(angle), np.radians(shear[0]), np.radians(shear[1])
    a = np.cos(rot - sy) / np.cos(sy)
    b = -np.cos(rot - sy) * np.tan(sx) / np.cos(sy) - np.sin(rot)
    c = np.sin(rot - sy) / np.cos(sy)
    d = -np.sin(rot - sy) * np.tan(sx) / np.cos(sy) + np.cos(rot)
    m = [d / scale, -b / scale, 0.0, -c / scale, a / scale, 0.0]
    m[2] += m[0] * (-cx - translate[0]) + m[1] * (-cy - translate[1]) + cx
    m[5] += m[3] * (-cx - translate[0]) + m[4] * (-cy - translate[1]) + cy
    return im.transform(im.size, Image.AFFINE, m, Image.NEAREST)


def jpeg(im, quality):
    file = io.BytesIO()
    im.save(file, "JPEG", quality=quality)
    return Image.open(file)


def numbers(im):
    return np.asarray(im).astype(np.float32)


# name: (pipeline with forced parameters, reference of one PIL image, largest difference)
EXACT = {
    "RandomResizedCrop": ("RandomResizedCrop((20, 44), scale=(1, 1), ratio=(1, 1))",
                          lambda im: im.resize((44, 20), Image.BILINEAR), 0),
    "Resize": ("Resize((40, 21), bicubic)", lambda im: im.resize((21, 40), Image.BICUBIC), 0),
    "CenterCrop": ("CenterCrop((20, 12))", lambda im: im.crop((10, 6, 22, 26)), 0),
    "RandomCrop": ("RandomCrop((38, 36), padding=(2, 3), fill=(7, 8, 9))",
                   lambda im: np.stack([padded(im, 2, 3, 2, 3, fill=f)[..., c] for c, f in enumerate((7, 8, 9))], -1), 0),
    "Pad": ("Resize((32, 32)); Pad((1, 2, 3, 4), padding_mode=reflect)",
            lambda im: padded(im, 1, 2, 3, 4, "reflect"), 0),
    "RandomHorizontalFlip": ("Resize((32, 32)); RandomHorizontalFlip(1)", ImageOps.mirror, 0),
    "RandomVerticalFlip": ("Resize((32, 32)); RandomVerticalFlip(1)", ImageOps.flip, 0),
    "RandomRotation": ("CenterCrop(32); RandomRotation((33, 33), fill=(9, 8, 7))",
                       lambda im: im.rotate(33, Image.NEAREST, fillcolor=(9, 8, 7)), 0),
    "RandomAffine": ("CenterCrop(32); RandomAffine((20, 20), (0, 0), (1.2, 1.2), (5, 5, -7, -7))",
                     lambda im: affine(im, 20, scale=1.2, shear=(5, -7)), 0),
    "ColorJitter": ("CenterCrop(32); ColorJitter(hue=(0.2, 0.2))", lambda im: hue(im, 0.2), 0),
    "Grayscale": ("CenterCrop(32); Grayscale()", lambda im: np.asarray(im.convert("L"))[..., None], 0),
    "RandomGrayscale": ("CenterCrop(32); RandomGrayscale(1)", gray, 0),
    "RandomInvert": ("CenterCrop(32); RandomInvert(1)", ImageOps.invert, 0),
    "RandomPosterize": ("CenterCrop(32); RandomPosterize(3, p=1)", lambda im: ImageOps.posterize(im, 3), 0),
    "RandomSolarize": ("CenterCrop(32); RandomSolarize(77, p=1)", lambda im: ImageOps.solarize(im, 77), 0),
    "RandomAdjustSharpness": ("CenterCrop(32); RandomAdjustSharpness(2.5, p=1)", enhance(ImageEnhance.Sharpness, 2.5), 0),
    "RandomAutocontrast": ("CenterCrop(32); RandomAutocontrast(1)", ImageOps.autocontrast, 0),
    "RandomEqualize": ("CenterCrop(32); RandomEqualize(1)", ImageOps.equalize, 0),
    "GaussianBlur": ("CenterCrop(32); GaussianBlur(5, (1.5, 1.5))", blur, 1),
    "JPEG": ("CenterCrop(32); JPEG(37)", lambda im: jpeg(im, 37), 0),
    "MedianBlur": ("CenterCrop(32); MedianBlur(5)", lambda im: im.filter(ImageFilter.MedianFilter(5)), 0),
    "CLAHE": ("CenterCrop(32); CLAHE(3, (4, 5), p=1)", lambda im: clahe(im, {"amount": 3, "width": 4, "height": 5}), 0),
    "ScaleJitter": ("ScaleJitter((24, 40), (1.5, 1.5)); CenterCrop(40)",
                    lambda im: padded(im.resize((36, 36), Image.BILINEAR), 2, 2, 2, 2), 0),
    "RandomShortestSize": ("RandomShortestSize(50, max_size=41); CenterCrop(41)",
                           lambda im: im.resize((41, 41), Image.BILINEAR), 0),
    "Normalize": ("CenterCrop(32); Normalize((0.4, 0.5, 0.6), (0.2, 0.3, 0.4))",
                  lambda im: (numbers(im) / np.float32(255) - np.float32([0.4, 0.5, 0.6])) / np.float32([0.2, 0.3, 0.4]), 0),
    "ToDtype": ("CenterCrop(32); ToDtype(f32, scale=false)", numbers, 0),
}


@pytest.mark.parametrize("name", EXACT)
def test_exact(pack, photos, name):
    text, reference, tolerance = EXACT[name]
    got = images(pack, text)
    before = images(pack, "CenterCrop(32)")
    assert got.shape != before.shape or got.dtype != before.dtype or (got != before).any()
    for one, photo in zip(got, photos):
        want = np.asarray(reference(photo)).astype(np.float64)
        assert one.shape == want.shape
        assert np.abs(one.astype(np.float64) - want).max() <= tolerance


def test_layout(pack):
    woven = load(pack, "CenterCrop(32); ToLayout(nhwc)")["image"]
    plain = load(pack, "CenterCrop(32); ToLayout(nchw)")["image"]
    assert woven.shape == (COUNT, 32, 32, 3) and plain.shape == (COUNT, 3, 32, 32)
    np.testing.assert_array_equal(woven.transpose(0, 3, 1, 2), plain)


def test_perspective(pack, photos):
    """The corners move by what Pillow would move them: solved from where the pixels went."""
    got = images(pack, "CenterCrop(32); RandomPerspective(0.4, p=1, interpolation=nearest, fill=1)")
    before = images(pack, "CenterCrop(32)")
    still = images(pack, "CenterCrop(32); RandomPerspective(0, p=1, interpolation=nearest)")
    np.testing.assert_array_equal(still, before)
    for one, photo in zip(got, before):
        assert (one != photo).any()
        palette = {tuple(p) for p in photo.reshape(-1, 3)} | {(1, 1, 1)}
        assert {tuple(p) for p in one.reshape(-1, 3)} <= palette  # nearest: no new colours
        inside = (one != 1).any(-1)
        assert 0.2 < inside.mean() <= 1 and inside[16, 16]


@pytest.mark.parametrize("text, value", [("RandomErasing(1, value=9)", 9), ("Cutout(10, value=9)", 9)])
def test_blanks(pack, text, value):
    got, before = images(pack, f"CenterCrop(32); {text}"), images(pack, "CenterCrop(32)")
    places = set()
    for one, photo in zip(got, before):
        rows, columns = (np.flatnonzero((one != photo).any(-1).any(axis)) for axis in (1, 0))
        y, x = slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)
        assert (one[y, x] == value).all()
        again = photo.copy()
        again[y, x] = value
        np.testing.assert_array_equal(one, again)
        share = (y.stop - y.start) * (x.stop - x.start) / SIDE**2
        assert 0.01 < share < 0.36 if "Random" in text else 0 < share <= 100 / SIDE**2
        places.add((y.start, x.start))
    assert len(places) > COUNT // 2


def test_erasing_with_noise(pack):
    got, before = images(pack, "CenterCrop(32); RandomErasing(1, random=true)"), images(pack, "CenterCrop(32)")
    changed = (got != before).any(-1).mean((1, 2))
    assert (changed > 0.01).all() and (changed < 0.36).all()


def strengths(bins, wide):
    """torchvision's magnitudes per action of RandAugment and TrivialAugmentWide."""
    f = np.float32

    def space(lo, hi):
        return [float(v) for v in np.linspace(f(lo), f(hi), bins, dtype=np.float32)]
    most = 0.99 if wide else 0.9
    lost = 6 if wide else 4
    return {
        "Identity": [0.0], "AutoContrast": [0.0], "Equalize": [0.0], "Invert": [0.0],
        "ShearX": space(0, 0.99 if wide else 0.3), "ShearY": space(0, 0.99 if wide else 0.3),
        "TranslateX": space(0, 32 if wide else 150 / 331 * SIDE),
        "TranslateY": space(0, 32 if wide else 150 / 331 * SIDE),
        "Rotate": space(0, 135 if wide else 30), "Brightness": space(0, most), "Color": space(0, most),
        "Contrast": space(0, most), "Sharpness": space(0, most), "Solarize": space(255, 0),
        "Posterize": [8 - float(np.rint(i / ((bins - 1) / lost))) for i in range(bins)],
    }


def act(im, action, m):
    if action in ("ShearX", "ShearY"):
        angle = np.degrees(np.arctan(m))
        return affine(im, shear=(angle, 0) if action == "ShearX" else (0, angle), center=(0, 0))
    if action in ("TranslateX", "TranslateY"):
        return affine(im, translate=(int(m), 0) if action == "TranslateX" else (0, int(m)))
    kinds = {"Brightness": ImageEnhance.Brightness, "Color": ImageEnhance.Color,
             "Contrast": ImageEnhance.Contrast, "Sharpness": ImageEnhance.Sharpness}
    if action in kinds:
        return kinds[action](im).enhance(1 + m)
    return {"Identity": lambda: im, "Rotate": lambda: im.rotate(m, Image.NEAREST),
            "Posterize": lambda: ImageOps.posterize(im, int(m)), "Solarize": lambda: ImageOps.solarize(im, m),
            "AutoContrast": lambda: ImageOps.autocontrast(im), "Equalize": lambda: ImageOps.equalize(im),
            "Invert": lambda: ImageOps.invert(im)}[action]()


SIGNED = ("ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Brightness", "Color", "Contrast", "Sharpness")


def actions(im, table, only=None):
    for action, values in table.items():
        for m in values if only is None or len(values) == 1 else [values[only]]:
            for sign in (1, -1) if action in SIGNED else (1,):
                yield np.asarray(act(im, action, sign * m)).astype(int)


@pytest.mark.parametrize("text, table, only", [
    ("RandAugment(1, 20)", strengths(31, False), 20), ("TrivialAugmentWide()", strengths(31, True), None)])
def test_policies(pack, photos, text, table, only):
    got, before = images(pack, f"CenterCrop(32); {text}"), images(pack, "CenterCrop(32)")
    assert sum((a != b).any() for a, b in zip(got, before)) > COUNT // 2
    for one, photo in zip(got, photos):
        assert min(np.abs(one.astype(int) - want).max() for want in actions(photo, table, only)) <= 1


def test_auto_augment(pack, photos):
    """Each of the pairs has known actions: the result is one of them, two, or none."""
    got, before = images(pack, "CenterCrop(32); AutoAugment()"), images(pack, "CenterCrop(32)")
    assert sum((a != b).any() for a, b in zip(got, before)) > COUNT // 2
    table = strengths(10, False)
    for one, photo in zip(got[:6], photos):
        firsts = [photo] + [Image.fromarray(a.astype(np.uint8)) for a in actions(photo, table)]
        if not any(np.abs(one.astype(int) - np.asarray(a).astype(int)).max() <= 1 for a in firsts):
            best = min(np.abs(one.astype(int) - b).max() for a in firsts for b in actions(a, table))
            assert best <= 1


def test_elastic(pack, photos):
    """Shifts are drawn: each pixel stays near its place, and the field is smooth. check_ops.py replays them."""
    before = images(pack, "CenterCrop(32)")
    got = images(pack, "CenterCrop(32); ElasticTransform(40, 4, nearest, fill=1)")
    assert len({one.tobytes() for one in got}) == COUNT
    for one, photo in zip(got, before):
        palette = {tuple(p) for p in photo.reshape(-1, 3)} | {(1, 1, 1)}
        assert {tuple(p) for p in one.reshape(-1, 3)} <= palette  # nearest: no new colours
        assert 0.2 < (one != photo).any(-1).mean() < 1
    np.testing.assert_array_equal(images(pack, "CenterCrop(32); ElasticTransform(0)"), before)
    np.testing.assert_array_equal(images(pack, "CenterCrop(32); ElasticTransform(p=0)"), before)
    ramp = images(pack, "CenterCrop(32); ElasticTransform(30, 8)")
    assert np.abs(ramp.astype(int) - before)[:, 8:24, 8:24].mean() < 12
    for wrong, why in (("sigma=(1, 0)", "both are 0"), ("alpha=(1, 2, 3)", "1 or 2 numbers"), ("interpolation=bicubic", "bicubic")):
        with pytest.raises(leat.ArgumentError, match=why):
            load(pack, f"CenterCrop(32); ElasticTransform({wrong})")


def test_augmix(pack, photos):
    """One op per copy and no weight lost: the result is between the image and what the op makes of it."""
    before = images(pack, "CenterCrop(32)").astype(int)
    got = images(pack, "CenterCrop(32); AugMix(10, 1, 1, interpolation=nearest)").astype(int)
    table = strengths(10, False) | {"TranslateX": [SIDE / 3 * i / 9 for i in range(10)]}
    table |= {"TranslateY": table["TranslateX"], "Posterize": [4 - float(np.rint(i / 9 * 4)) for i in range(8)]}
    del table["Identity"], table["Invert"]
    for one, plain, photo in zip(got[:8], before, photos):
        def off(changed):  # distance from the line between both, at its best weight
            way = changed - plain
            share = (way * (one + 0.5 - plain)).sum() / max((way * way).sum(), 1)
            return np.abs(one + 0.5 - plain - np.clip(share, 0, 1) * way).max()
        assert min(off(changed) for changed in [plain, plain * 0, *actions(photo, table)]) < 2.5
    assert (got != before).any((1, 2, 3)).mean() > 0.7
    np.testing.assert_array_equal(images(pack, "CenterCrop(32); AugMix(p=0)"), before)


@pytest.mark.parametrize("op", ["RandomRotation((33, 33))", "RandomAffine((20, 20))", "RandAugment(4)", "TrivialAugmentWide()",
                                "AutoAugment()", "AugMix()", "ElasticTransform()"])
def test_probability(pack, op):
    """p=1 draws what the op without p draws; otherwise a share of the samples stays unchanged."""
    before, always = images(pack, "CenterCrop(32)"), images(pack, f"CenterCrop(32); {op}")
    text = op[:-1] + (", p={})" if op[-2] != "(" else "p={})")
    np.testing.assert_array_equal(images(pack, f"CenterCrop(32); {text.format(1)}"), always)
    np.testing.assert_array_equal(images(pack, f"CenterCrop(32); {text.format(0)}"), before)
    same = (images(pack, f"CenterCrop(32); {text.format(0.5)}") == before).all((1, 2, 3)).mean()
    assert 0.15 < same < 0.95


def test_five_and_ten_crops(pack, photos):
    def five(a):
        h, w = a.shape[0] - 20, a.shape[1] - 13
        return [a[y:y + 20, x:x + 13] for y, x in ((0, 0), (0, w), (h, 0), (h, w), (round(h / 2), round(w / 2)))]
    got, ten = images(pack, "FiveCrop((20, 13))"), images(pack, "TenCrop((20, 13), true); RandomInvert(1)")
    for one, two, photo in zip(got, ten, photos):
        a = np.asarray(photo)
        np.testing.assert_array_equal(one, five(a))
        np.testing.assert_array_equal(two, 255 - np.stack(five(a) + five(a[::-1])))
    plain = load(pack, "FiveCrop(9); Normalize(0.5, 0.2); ToDtype(f16)")["image"]
    assert plain.shape == (COUNT, 5, 3, 9, 9) and plain.dtype == np.float16
    made = leat.open(pack, image="FiveCrop((20, 13)); ToLayout(nhwc)")
    np.testing.assert_array_equal(np.asarray(made[3]["image"]), got[3])
    with pytest.raises(leat.ArgumentError, match="FiveCrop needs collate stack"):
        load(pack, "FiveCrop(9)", collate="list")


def test_mixing(pack):
    """The arithmetic is in test_mix.py: here, that both have an effect."""
    before = load(pack, "CenterCrop(32)")
    for name in ("MixUp", "CutMix"):
        after = load(pack, f"CenterCrop(32); {name}()", classes=5)
        assert (after["image"] != before["image"]).any() and after["label"].shape == (COUNT, 5)


def test_noise(pack):
    before = images(pack, "CenterCrop(32)").astype(int)
    for text, mean, sigma in (("GaussianNoise()", 0, 0.1), ("GaussianNoise(0.05, sigma=0.02)", 0.05, 0.02)):
        got = images(pack, f"CenterCrop(32); {text}").astype(int)
        inside = (got > 0) & (got < 255)
        noise = (got - before)[inside & (before > 60) & (before < 190)]
        assert abs(noise.mean() - int(mean * 255)) < 1 and abs(noise.std() - sigma * 255) < 1.2
        assert len({one.tobytes() for one in got - before}) == COUNT
    np.testing.assert_array_equal(images(pack, "CenterCrop(32); GaussianNoise(0, 0)"), before)
    shift = images(pack, "CenterCrop(32); GaussianNoise(-0.2, 0)")
    np.testing.assert_array_equal(shift, np.clip(before - 51, 0, 255))


def orders(im):
    return [np.asarray(im)[..., list(order)] for order in itertools.permutations(range(3))]


def test_channel_permutation(pack, photos):
    got = images(pack, "CenterCrop(32); RandomChannelPermutation()")
    seen = {[np.array_equal(one, want) for want in orders(im)].index(True) for one, im in zip(got, photos)}
    assert len(seen) == 6


def test_photometric_distort(pack, photos):
    """All changes, contrast second or last; only the order of the channels and of contrast is drawn."""
    got = images(pack, "CenterCrop(32); RandomPhotometricDistort((0.9, 0.9), (1.3, 1.3), (0.6, 0.6), (0.03, 0.03), p=1)")
    seen = set()
    for one, im in zip(got, photos):
        first = enhance(ImageEnhance.Brightness, 0.9)(im)
        contrast, color = enhance(ImageEnhance.Contrast, 1.3), enhance(ImageEnhance.Color, 0.6)
        wants = orders(hue(color(contrast(first)), 0.03)) + orders(contrast(hue(color(first), 0.03)))
        seen.add([np.array_equal(one, want) for want in wants].index(True))
    assert len(seen) > 6
    half = images(pack, "CenterCrop(32); RandomPhotometricDistort(p=0)")
    np.testing.assert_array_equal(half, images(pack, "CenterCrop(32)"))


def test_center_crop_by_share(pack, tmp_path):
    """FFCV's centre crop: int(ratio * shorter side), then a resize."""
    rng = np.random.default_rng(1)
    pictures = [rng.integers(0, 256, size, np.uint8) for size in ((50, 37, 3), (37, 61, 3), (9, 9, 3))]
    path = str(tmp_path / "sizes.leat")
    with leat.Writer(path, {"image": "image"}, sync=False) as w:
        for a in pictures:
            w.append([a])
    with leat.Loader(path, 3, f"CenterCrop((20, 28), ratio=224/256); {FLAT}", order="sequential", as_="numpy") as loader:
        (batch,) = list(loader)
        for one, a in zip(batch["image"], pictures):
            side = int(224 / 256 * min(a.shape[:2]))
            y, x = (a.shape[0] - side) // 2, (a.shape[1] - side) // 2
            want = Image.fromarray(a[y:y + side, x:x + side]).resize((28, 20), Image.BILINEAR)
            np.testing.assert_array_equal(one, np.asarray(want))
    assert str(leat.ops.CenterCrop(224, ratio=224 / 256)) == "CenterCrop(size=224, ratio=0.875)"


def test_zoom_out(pack, photos):
    got = images(pack, "RandomZoomOut(fill=(1, 2, 3), side_range=(2, 2), p=1); RandomCrop(64)")
    places = set()
    for one, im in zip(got, photos):
        rows, columns = (np.flatnonzero((one != [1, 2, 3]).any(-1).any(axis)) for axis in (1, 0))
        y, x = rows[0], columns[0]
        want = np.full((64, 64, 3), [1, 2, 3], np.uint8)
        want[y:y + 32, x:x + 32] = np.asarray(im)
        np.testing.assert_array_equal(one, want)
        places.add((y, x))
    assert len(places) > COUNT // 2


def test_grid_mask(pack):
    got, before = images(pack, "CenterCrop(32); GridMask((8, 8), 0.5, p=1, fill=(7, 8, 9))"), images(pack, "CenterCrop(32)")
    seen = set()
    for one, photo in zip(got, before):
        hit = (one == [7, 8, 9]).all(-1)
        for x, y in itertools.product(range(8), range(8)):
            holes = (((np.arange(32) + y) % 8 < 4)[:, None]) & ((np.arange(32) + x) % 8 < 4)[None]
            if np.array_equal(one, np.where(holes[..., None], np.uint8([7, 8, 9]), photo)):
                seen.add((x, y))
        assert 0.2 < hit.mean() < 0.3
    assert len(seen) > COUNT // 2


def ops_of(one, photo, table):
    """The name in `table` whose answer `one` is."""
    return [name for name, answer in table.items() if np.array_equal(one, np.asarray(answer(photo)))]


def test_combinators(pack, photos):
    flat, eq = ImageOps.mirror, ImageOps.equalize
    inside = "RandomHorizontalFlip(1); RandomEqualize(1)"
    got = images(pack, f"CenterCrop(32); RandomApply({inside}, p=0.5)")
    names = [ops_of(a, b, {"both": lambda im: eq(flat(im)), "none": lambda im: im}) for a, b in zip(got, photos)]
    assert all(len(n) == 1 for n in names) and {n[0] for n in names} == {"both", "none"}
    got = images(pack, f"CenterCrop(32); RandomChoice({inside}, p=(1, 1))")
    names = [ops_of(a, b, {"flip": flat, "equalize": eq}) for a, b in zip(got, photos)]
    assert all(len(n) == 1 for n in names) and {n[0] for n in names} == {"flip", "equalize"}
    got = images(pack, "CenterCrop(32); RandomOrder(RandomInvert(1); RandomSolarize(70, p=1))")
    inv, sol = ImageOps.invert, lambda im: ImageOps.solarize(im, 70)
    names = [ops_of(a, b, {"is": lambda im: sol(inv(im)), "si": lambda im: inv(sol(im))}) for a, b in zip(got, photos)]
    assert all(len(n) == 1 for n in names) and {n[0] for n in names} == {"is", "si"}


def test_combinators_as_classes(pack):
    ops = leat.ops
    one = ops.RandomApply([ops.RandomHorizontalFlip(1), "RandomInvert(1)"], p=0.3)
    assert str(one) == "RandomApply(transforms=[RandomHorizontalFlip(p=1); RandomInvert(1)], p=0.3)"
    deep = ops.RandomChoice([one, ops.RandomOrder(ops.RandomInvert(0.5))], (1, 2))
    with leat.Loader(pack, COUNT, [ops.CenterCrop(32), deep], order="sequential", seed=3, as_="numpy") as loader:
        (batch,) = list(loader)
    text = "CenterCrop(32); RandomChoice(RandomApply(RandomHorizontalFlip(1), RandomInvert(1), 0.3); RandomOrder(RandomInvert), p=(1, 2))"
    np.testing.assert_array_equal(batch["image"], load(pack, text)["image"])
    assert pickle.loads(pickle.dumps(deep)) == deep
    for wrong, why in (([], "at least one op"), ([ops.Normalize(0, 1)], "cannot be used inside")):
        with pytest.raises(leat.ArgumentError, match=why):
            load(pack, f"CenterCrop(8); {ops.RandomApply(wrong)}")
    for wrong, why in (([3], "RandomApply.transforms: 3 is not an op"), (3, "RandomApply.transforms: 3 is not a pipeline"),
                       ([ops.RandomInvert], "did you mean RandomInvert")):
        with pytest.raises(leat.ArgumentError, match=why):
            ops.RandomApply(wrong)


def test_combinators_draw_by_the_key(pack):
    text = "RandomChoice(RandomResizedCrop(16); CenterCrop(16)); RandomOrder(ColorJitter(0.4); RandomVerticalFlip)"
    first = images(pack, text, threads=1)
    np.testing.assert_array_equal(first, images(pack, text, threads=3))
    with leat.Loader(pack, COUNT, f"{text}; {FLAT}", order="sequential", seed=4, as_="numpy") as loader:
        assert (next(iter(loader))["image"] != first).any()


OTHERS = {"GaussianNoise": test_noise, "RandomChannelPermutation": test_channel_permutation,
          "RandomPhotometricDistort": test_photometric_distort, "RandomZoomOut": test_zoom_out,
          "GridMask": test_grid_mask, "RandomApply": test_combinators, "RandomChoice": test_combinators, "RandomOrder": test_combinators,
          "ToLayout": test_layout, "RandomPerspective": test_perspective, "RandomErasing": test_blanks,
          "Cutout": test_blanks, "RandAugment": test_policies, "TrivialAugmentWide": test_policies,
          "AutoAugment": test_auto_augment, "AugMix": test_augmix, "ElasticTransform": test_elastic,
          "FiveCrop": test_five_and_ten_crops, "TenCrop": test_five_and_ten_crops, "MixUp": test_mixing, "CutMix": test_mixing}


def test_the_table_is_covered():
    follow = {"Mask", "Boxes", "Keypoints", "Labels", "RandomIoUCrop", "Mosaic", "CopyPaste"}  # test_follow.py
    assert set(EXACT) | set(OTHERS) | follow == set(leat.ops.names())


@pytest.mark.parametrize("text, why", [
    ("CenterCrop(8); Normalize(0, 1); Normalize(0, 1)", "Normalize is given twice"),
    ("CenterCrop(8); ToDtype(u8); ToDtype(f32)", "ToDtype is given twice"),
    ("CenterCrop(8); ToLayout(nhwc); ToLayout(nchw)", "ToLayout is given twice"),
    ("CenterCrop(8); ToDtype(u8, scale=false)", "ToDtype.scale has no effect"),
    ("CenterCrop(8); Pad(2, fill=3, padding_mode=edge)", "Pad.fill has no effect"),
    ("RandomCrop(8, fill=3)", "RandomCrop.fill has no effect"),
    ("RandomCrop(8, padding_mode=edge)", "RandomCrop.padding_mode has no effect"),
    ("RandomCrop(8, 2, fill=1, padding_mode=edge)", "RandomCrop.fill has no effect"),
    ("CenterCrop(8); RandomErasing(value=3, random=true)", "RandomErasing.value has no effect"),
    ("CenterCrop(8, interpolation=nearest)", "CenterCrop.interpolation has no effect without ratio"),
    ("CenterCrop(8, like=pillow12)", "CenterCrop.like has no effect without ratio"),
    ("CenterCrop(8); ColorJitter()", "ColorJitter has no effect"),
])
def test_what_has_no_effect_is_refused(pack, text, why):
    with pytest.raises(leat.ArgumentError, match=why):
        load(pack, text)


def test_fields_without_effect_are_refused(tmp_path, photos):
    path = str(tmp_path / "two.leat")
    with leat.Writer(path, {"image": "image", "mask": "image", "label": int}, sync=False) as w:
        for i in range(COUNT):
            w.append([np.asarray(photos[i]), np.asarray(photos[i])[..., 0], i])
    with pytest.raises(leat.ArgumentError, match="field 'mask' is an image: give it a pipeline"):
        load(path, "CenterCrop(32)", fields=["mask", "label"])
    crop = [leat.ops.RandomResizedCrop(16), leat.ops.RandomHorizontalFlip()]
    color = leat.ops.ColorJitter(brightness=(1, 1), hue=(0, 0))  # draws, and changes nothing

    def both(image, mask, **options):
        return load(path, {"image": ("image", image), "mask": ("mask", mask)}, **options)

    for image in ([color, *crop], [crop[0], color, crop[1]], [*crop, color]):
        batch = both(image, crop)
        np.testing.assert_array_equal(batch["image"][:, 0], batch["mask"][:, 0])
    for image in (crop[:1], crop[::-1], ["Resize((16, 16))"], [*crop, leat.ops.RandAugment()],
                  ["RandomResizedCrop(16, scale=(0.5, 1))", crop[1]]):
        with pytest.raises(leat.ArgumentError, match="'image' and 'mask' would be cropped and turned differently"):
            both(image, crop)
        both(image, crop, independent=True)
    with pytest.raises(leat.ArgumentError, match="independent has no effect"):
        both(crop, crop, independent=True)
    both(["Resize(20)", "CenterCrop(16)"], ["Resize((9, 9))"])  # nothing random: nothing to go apart
    both(crop, ["RandomResizedCrop(8, interpolation=nearest)", crop[1]])
