# SPDX-License-Identifier: Apache-2.0
"""Compares whole ops with torchvision's functions on PIL images, with every number fixed.

    python tests/oracle/check_torchvision.py build/tests/oracle/op_oracle

check_ops.py replays drawn steps with Pillow; this shows that parameters mean the same: the
matrices of rotations, affine maps and policies, the rounding of sizes, blur, normalisation. Ops that draw more than
one number are replayed with torchvision's v2 functions, given what was drawn. CLAHE is compared with OpenCV where that is
installed. JPEG needs torchvision's compiled part and is left to check_ops.py where that does not load.
"""
import math
import sys

import numpy as np
import torch

torch.set_num_threads(1)
LIBRARY = torch.library.Library("torchvision", "DEF")
for name in ("nms", "qnms"):  # only declared: the compiled part of torchvision is not needed
    try:
        LIBRARY.define(name + "(Tensor a, Tensor b, float c) -> Tensor")
    except RuntimeError:
        pass
from PIL import Image  # noqa: E402
from torchvision.transforms import InterpolationMode as M  # noqa: E402
from torchvision.transforms import autoaugment  # noqa: E402
from torchvision.transforms import functional as F  # noqa: E402
from torchvision.transforms import v2  # noqa: E402
from torchvision.transforms.v2 import functional as F2  # noqa: E402

from check_ops import Oracle, picture  # noqa: E402
from replay import elastic_shifts  # noqa: E402

MODES = {"nearest": M.NEAREST, "bilinear": M.BILINEAR, "bicubic": M.BICUBIC}


def cases():
    """(leat's text, torchvision's function of a PIL image, largest difference allowed)"""
    for size in (64, 50, 97):
        for name, mode in MODES.items():
            if name != "nearest":
                yield f"Resize({size}, {name}); CenterCrop(48)", lambda im, s=size, m=mode: F.center_crop(F.resize(im, [s], m), [48]), 0
    yield "Resize(40, max_size=50); CenterCrop(44)", lambda im: F.center_crop(F.resize(im, [40], max_size=50), [44]), 0
    yield "CenterCrop((301, 20))", lambda im: F.center_crop(im, [301, 20]), 0
    for angle in (-170, -33.3, 12, 90, 180, 45.5):
        for name, mode in MODES.items():
            text = f"CenterCrop(90); RandomRotation(({angle}, {angle}), {name}, fill=(9,8,7))"
            yield text, lambda im, a=angle, m=mode: F.rotate(F.center_crop(im, [90]), a, m, fill=[9, 8, 7]), 0
        text = f"CenterCrop(90); RandomRotation(({angle}, {angle}), expand=true, center=()); CenterCrop(70)"
        yield text.replace(", center=()", ""), lambda im, a=angle: F.center_crop(F.rotate(F.center_crop(im, [90]), a, expand=True), [70]), 0
    for angle, scale, sx, sy in ((10, 1.1, 5, 0), (-70, 0.6, 0, 13), (0, 1, 30, -20), (200, 2.2, -3, 4)):
        for name, mode in MODES.items():
            text = f"CenterCrop(90); RandomAffine(({angle},{angle}), (0,0), ({scale},{scale}), ({sx},{sx},{sy},{sy}), {name})"
            yield text, lambda im, a=angle, s=scale, x=sx, y=sy, m=mode: F.affine(F.center_crop(im, [90]), a, [0, 0], s, [x, y], m), 0
    for factor in (0, 0.4, 1, 1.6, 3):
        for op, f in (("brightness", F.adjust_brightness), ("contrast", F.adjust_contrast), ("saturation", F.adjust_saturation)):
            yield f"CenterCrop(90); ColorJitter({op}=({factor},{factor}))", lambda im, f=f, v=factor: f(F.center_crop(im, [90]), v), 0
        yield f"CenterCrop(90); RandomAdjustSharpness({factor}, p=1)", lambda im, v=factor: F.adjust_sharpness(F.center_crop(im, [90]), v), 0
    for shift in (-0.5, -0.21, 0, 0.07, 0.5):
        yield f"CenterCrop(90); ColorJitter(hue=({shift},{shift}))", lambda im, v=shift: F.adjust_hue(F.center_crop(im, [90]), v) if v else F.center_crop(im, [90]), 0
    for bits in (1, 4, 7):
        yield f"CenterCrop(90); RandomPosterize({bits}, p=1)", lambda im, v=bits: F.posterize(F.center_crop(im, [90]), v), 0
    yield "CenterCrop(90); RandomSolarize(77, p=1)", lambda im: F.solarize(F.center_crop(im, [90]), 77), 0
    yield "CenterCrop(90); RandomEqualize(1)", lambda im: F.equalize(F.center_crop(im, [90])), 0
    yield "CenterCrop(90); RandomAutocontrast(1)", lambda im: F.autocontrast(F.center_crop(im, [90])), 0
    yield "CenterCrop(90); RandomInvert(1)", lambda im: F.invert(F.center_crop(im, [90])), 0
    yield "CenterCrop(90); RandomGrayscale(1)", lambda im: F.to_grayscale(F.center_crop(im, [90]), 3), 0
    for k, sigma in ((3, 0.5), (9, 2.0), (23, 1.3)):
        yield f"CenterCrop(90); GaussianBlur({k}, ({sigma},{sigma}))", lambda im, k=k, s=sigma: F.gaussian_blur(F.center_crop(im, [90]), [k, k], [s, s]), 1
    for mode in ("constant", "edge", "reflect", "symmetric"):
        fill = ", fill=5" if mode == "constant" else ""
        yield f"CenterCrop(60); Pad((1,2,3,4), padding_mode={mode}{fill})", lambda im, m=mode: F.pad(F.center_crop(im, [60]), [1, 2, 3, 4], 5 if m == "constant" else 0, m), 0


def elastic(im, s):
    dx, dy = elastic_shifts(s, im.width, im.height)
    field = torch.from_numpy(np.stack([dx * (2 / im.width), dy * (2 / im.height)], -1))[None].float()
    return F2.elastic(im, field, M.NEAREST if s["filter"] == 0 else M.BILINEAR, fill=list(s["fill"]))


def clahe(im, s):
    import cv2

    one = cv2.createCLAHE(s["amount"], (s["width"], s["height"]))
    return Image.fromarray(np.stack([one.apply(np.ascontiguousarray(np.asarray(im)[..., c])) for c in range(3)], -1))


DRAWN = {
    "crop": lambda im, s: F2.crop(im, s["y"], s["x"], s["height"], s["width"]),
    "resize": lambda im, s: F2.resize(im, [s["height"], s["width"]], M.BILINEAR),
    "flip_h": lambda im, s: F2.horizontal_flip(im), "flip_v": lambda im, s: F2.vertical_flip(im),
    "pad": lambda im, s: F2.pad(im, [s["x"], s["y"], s["width"] - im.width - s["x"], s["height"] - im.height - s["y"]],
                                [int(v) for v in s["fill"]]),
    "brightness": lambda im, s: F2.adjust_brightness(im, s["amount"]),
    "contrast": lambda im, s: F2.adjust_contrast(im, s["amount"]),
    "saturation": lambda im, s: F2.adjust_saturation(im, s["amount"]),
    "hue": lambda im, s: F2.adjust_hue(im, s["amount"]),
    "permute": lambda im, s: F2.permute_channels(im, [s["x"] >> 2 * c & 3 for c in range(3)]),
    "invert": lambda im, s: F2.invert(im), "equalize": lambda im, s: F2.equalize(im),
    "solarize": lambda im, s: F2.solarize(im, s["amount"]), "sharpness": lambda im, s: F2.adjust_sharpness(im, s["amount"]),
    "affine": lambda im, s: F2.rotate(im, 25.0, M.NEAREST), "jpeg": lambda im, s: F2.jpeg(im, int(s["amount"])),
    "elastic": elastic, "clahe": clahe,
}
FAMILIES = {
    "RandomPhotometricDistort": (["CenterCrop(90); RandomPhotometricDistort()", "CenterCrop(90); RandomPhotometricDistort(p=1)"], 0),
    "RandomChannelPermutation": (["CenterCrop(90); RandomChannelPermutation()"], 0),
    "RandomZoomOut": (["RandomZoomOut((9, 8, 7), (1, 3), p=1); CenterCrop(120)"], 0),
    "ScaleJitter": (["ScaleJitter(120, (0.3, 1.7)); CenterCrop(90)"], 0),
    "RandomShortestSize": (["RandomShortestSize((50, 70, 111), max_size=130); CenterCrop(90)"], 0),
    "CenterCrop(ratio)": (["CenterCrop(70, ratio=224/256)", "CenterCrop((50, 90), ratio=0.6)"], 0),
    "combinators": (["RandomApply(RandomInvert(1); RandomHorizontalFlip(), p=0.5); CenterCrop(90)",
                     "CenterCrop(90); RandomChoice(RandomEqualize(1); RandomRotation((25, 25)); RandomSolarize(99, p=1))",
                     "CenterCrop(90); RandomOrder(RandomAdjustSharpness(3, p=1); ColorJitter(0.4); RandomVerticalFlip())"], 0),
    "ElasticTransform": (["CenterCrop(90); ElasticTransform(60, 4)", "CenterCrop((70, 90)); ElasticTransform(90, (3, 5), nearest, 200)"], 1),
    "CLAHE": (["CenterCrop(96); CLAHE(p=1)", "CenterCrop((70, 90)); CLAHE((1, 9), (5, 3), p=1)"], 1),
    "JPEG": (["CenterCrop(96); JPEG((5, 95))"], 0),
}


def check_drawn(oracle, count=60):
    bad = 0
    for name, (texts, tolerance) in FAMILIES.items():
        worst = exact = 0
        try:
            for i in range(count):
                rng = np.random.default_rng(i)
                pixels = picture(rng, int(rng.integers(91, 240)), int(rng.integers(91, 240)))
                out, recipe = oracle.run(pixels, texts[i % len(texts)] + "; ToLayout(nhwc)", seed=i, sample=3 * i)
                im = Image.fromarray(pixels)
                for s in recipe:
                    im = DRAWN[s["kind"]](im, s)
                want = np.asarray(im)
                diff = np.abs(np.frombuffer(out, np.uint8).reshape(want.shape).astype(int) - want)
                far = (diff > tolerance).mean()  # nearest: a place between two pixels may go either way
                worst, exact, bad = max(worst, int(diff.max())), exact + (diff.max() == 0), bad + (far > 0.0005)
            print(f"{name}: {exact} of {count} equal torchvision's v2 functions, largest difference {worst}")
        except (ImportError, RuntimeError) as e:
            print(f"{name}: not compared: {str(e)[:60]}")
    return bad


def check_sizes_and_noise(oracle, pixels, im):
    """Whole v2 transforms whose numbers can be forced, and the noise's arithmetic and deviation."""
    forced = {
        "ScaleJitter(130, (0.75, 0.75)); CenterCrop(60)": v2.Compose([v2.ScaleJitter((130, 130), (0.75, 0.75)), v2.CenterCrop(60)]),
        "RandomShortestSize(77, max_size=90); CenterCrop(60)": v2.Compose([v2.RandomShortestSize(77, 90), v2.CenterCrop(60)]),
        "FiveCrop((61, 80))": lambda im: np.stack([np.asarray(a) for a in F2.five_crop(im, [61, 80])]),
        "TenCrop(75)": lambda im: np.stack([np.asarray(a) for a in F2.ten_crop(im, [75, 75])]),
        "TenCrop(75, true)": lambda im: np.stack([np.asarray(a) for a in F2.ten_crop(im, [75, 75], vertical_flip=True)]),
    }
    tensor = torch.from_numpy(pixels).permute(2, 0, 1)
    for mean in (0.1, -0.3):
        forced[f"Resize((160, 211)); GaussianNoise({mean}, 0)"] = lambda im, m=mean: F2.gaussian_noise(
            tensor, mean=m, sigma=0.0).permute(1, 2, 0).numpy()
    bad = 0
    for text, function in forced.items():
        out, _ = oracle.run(pixels, text + "; ToLayout(nhwc)")
        bad += out != np.asarray(function(im)).tobytes()
    grey = torch.full((3, 400, 400), 128, dtype=torch.uint8)
    for sigma in (0.02, 0.1):
        out, _ = oracle.run(grey.permute(1, 2, 0).numpy(), f"CenterCrop(400); GaussianNoise(0, {sigma})")
        ours, theirs = np.frombuffer(out, np.uint8).astype(float), F2.gaussian_noise(grey, sigma=sigma).numpy().astype(float)
        bad += abs(ours.std() - theirs.std()) > 0.01 * theirs.std() or abs(ours.mean() - theirs.mean()) > 0.3
    print(f"forced transforms and noise: {len(forced) + 2 - bad} of {len(forced) + 2} equal torchvision")
    return bad


def check_policies(oracle, pixels, im):
    """Each magnitude of each action: the recipes of many draws against torchvision's _apply_op."""
    bad = seen = 0
    base = F.center_crop(im, [90])
    for text, space in (("RandAugment(1, 17)", autoaugment.RandAugment()._augmentation_space(31, (90, 90))),
                        ("TrivialAugmentWide()", autoaugment.TrivialAugmentWide()._augmentation_space(31))):
        wanted = {}
        for name, (magnitudes, signed) in space.items():
            values = [0.0] if magnitudes.ndim == 0 else [float(v) for v in (magnitudes if "Triv" in text else magnitudes[17:18])]
            for v in values:
                for sign in ((1, -1) if signed else (1,)):
                    out = autoaugment._apply_op(base, name, v * sign, M.NEAREST, None)
                    wanted[np.asarray(out).tobytes()] = name
        for i in range(600):
            out, _ = oracle.run(pixels, f"CenterCrop(90); {text}; ToLayout(nhwc)", seed=i)
            seen += 1
            if out not in wanted:
                bad += 1
                print(f"{text}, seed {i}: not what torchvision gives for any action")
    print(f"policies: {seen - bad} of {seen} draws equal an action of torchvision")
    return bad


def check_numbers(oracle, pixels, im):
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    bad = 0
    for isa in ("scalar", "avx2", "avx512"):
        text = f"CenterCrop(90); Normalize(({','.join(map(str, mean))}), ({','.join(map(str, std))})); ToDtype"
        want = F.normalize(F.to_tensor(F.center_crop(im, [90])), mean, std)
        for dtype, kind in (("f32", torch.float32), ("f16", torch.float16), ("bf16", torch.bfloat16)):
            out, _ = oracle.run(pixels, f"{text}({dtype})", isa=isa)
            if out != want.to(kind).contiguous().view(torch.uint8).numpy().tobytes():
                bad += 1
                print(f"Normalize to {dtype} on {isa}: not equal to torchvision")
    print("numbers: Normalize to f32, f16 and bf16 equal torchvision bit for bit" if not bad else "numbers: differ")
    return bad


def main():
    oracle = Oracle(sys.argv[1])
    pixels = picture(np.random.default_rng(3), 211, 160)
    im = Image.fromarray(pixels)
    bad = total = exact = 0
    for text, function, tolerance in cases():
        out, _ = oracle.run(pixels, text + "; ToLayout(nhwc)")
        want = np.asarray(function(im))
        got = np.frombuffer(out, np.uint8).reshape(want.shape)
        diff = int(np.abs(got.astype(int) - want.astype(int)).max())
        total, exact = total + 1, exact + (diff == 0)
        if diff > tolerance:
            bad += 1
            print(f"{text}: differs by {diff}")
    print(f"functions: {exact} of {total} exact, the others (blur) within 1")
    bad += check_drawn(oracle) + check_sizes_and_noise(oracle, pixels, im)
    bad += check_policies(oracle, pixels, im) + check_numbers(oracle, pixels, im)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
