# SPDX-License-Identifier: Apache-2.0
"""Each op beside torchvision v2, Pillow and albumentations, one thread, 224 x 224 RGB: a Markdown table.

    python bench/ops_table.py build-release/bench/kernel_ops [--oracle build/tests/oracle/op_oracle]

Columns are CPU microseconds per image, the least of several rounds in which all of them take turns: Pillow (what
torchvision calls for PIL images), torchvision v2 on uint8 tensors, albumentations on NumPy arrays, and leat. A peer that
is not installed, or has no such op, has no number. albumentations resizes without antialiasing, and its CLAHE works on
lightness only. With --oracle the agreement of each op is measured by tests/oracle/check_ops.py in the same run.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import time

import numpy as np
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
KEEP = []  # what must live as long as torchvision
MAP = (1.1, 0.1, -5, 0.05, 1.2, -9, 0.0004, 0.0003)


def hue(im):
    h, s, v = im.convert("HSV").split()
    a = np.array(h, dtype=np.uint8)
    a += np.int32(0.2 * 255).astype(np.uint8)
    return Image.merge("HSV", (Image.fromarray(a), s, v)).convert("RGB")


def jpeg(im):
    import io

    file = io.BytesIO()
    im.save(file, "JPEG", quality=75)
    return Image.open(file).convert("RGB")


def pillow():
    """Functions of a PIL image, and that image."""
    def cropped(im, box):
        return im.crop(box)
    boxes = [(0, 0, 128, 128), (96, 0, 224, 128), (0, 96, 128, 224), (96, 96, 224, 224), (48, 48, 176, 176)]
    return {
        "flip_h": lambda im: im.transpose(Image.FLIP_LEFT_RIGHT),
        "flip_v": lambda im: im.transpose(Image.FLIP_TOP_BOTTOM),
        "pad_reflect": lambda im: Image.fromarray(
            np.pad(np.asarray(im), ((4, 4), (4, 4), (0, 0)), "reflect")).crop((4, 4, 228, 228)),
        "random_crop_padding": lambda im: ImageOps.expand(im, 16, 0).crop((5, 9, 229, 233)),
        "resize_96_bilinear": lambda im: im.resize((96, 96), Image.BILINEAR),
        "resize_96_bicubic": lambda im: im.resize((96, 96), Image.BICUBIC),
        "resize_96_lanczos": lambda im: im.resize((96, 96), Image.LANCZOS),
        "rotate_nearest": lambda im: im.rotate(30, Image.NEAREST),
        "rotate_bilinear": lambda im: im.rotate(30, Image.BILINEAR),
        "perspective_bilinear": lambda im: im.transform(im.size, Image.PERSPECTIVE, MAP, Image.BILINEAR),
        "brightness": lambda im: ImageEnhance.Brightness(im).enhance(1.3),
        "contrast": lambda im: ImageEnhance.Contrast(im).enhance(1.3),
        "saturation": lambda im: ImageEnhance.Color(im).enhance(1.3),
        "hue": hue,
        "grayscale": lambda im: im.convert("L").convert("RGB"),
        "invert": ImageOps.invert,
        "solarize": lambda im: ImageOps.solarize(im, 128),
        "posterize": lambda im: ImageOps.posterize(im, 4),
        "equalize": ImageOps.equalize,
        "autocontrast": ImageOps.autocontrast,
        "sharpness": lambda im: ImageEnhance.Sharpness(im).enhance(2),
        "jpeg_75": jpeg,
        "median_5": lambda im: im.filter(ImageFilter.MedianFilter(5)),
        "five_crop_128": lambda im: [cropped(im, b).load() for b in boxes],
        "zoom_out": lambda im: ImageOps.expand(im, 112, 0).crop((112, 112, 336, 336)),
        "scale_jitter": lambda im: im.resize((112, 112), Image.BILINEAR),
        "shortest_size_112": lambda im: im.resize((112, 112), Image.BILINEAR),
        "center_crop_ratio": lambda im: im.crop((14, 14, 210, 210)).resize((128, 128), Image.BILINEAR),
    }, Image.fromarray


def torchvision():
    """The same on uint8 tensors. torchvision's compiled part is not needed: where it does not load, the operators that it
    would have declared are declared for it."""
    import torch

    torch.set_num_threads(1)
    try:
        import torchvision.ops  # noqa: F401
    except RuntimeError:
        KEEP.append(torch.library.Library("torchvision", "DEF"))
        for name in ("nms", "qnms"):
            KEEP[0].define(name + "(Tensor a, Tensor b, float c) -> Tensor")
    from torchvision import tv_tensors
    from torchvision.transforms import v2
    from torchvision.transforms.v2 import InterpolationMode as M
    from torchvision.transforms.v2 import functional as F

    def normalize(t, dtype=torch.float32, last=False):
        t = F.normalize(F.to_dtype(t, torch.float32, scale=True), MEAN, STD).to(dtype)
        return t.permute(1, 2, 0).contiguous() if last else t
    augment, photometric, elastic, augmix = v2.RandAugment(), v2.RandomPhotometricDistort(p=1), v2.ElasticTransform(), v2.AugMix()
    noise, iou = v2.GaussianNoise(), v2.RandomIoUCrop()
    boxes = tv_tensors.BoundingBoxes([[20, 30, 90, 120], [100, 60, 200, 210]], format="XYXY", canvas_size=(224, 224))
    classes = torch.tensor([1, 2])
    return {
        "flip_h": F.horizontal_flip, "flip_v": F.vertical_flip,
        "pad_reflect": lambda t: F.crop(F.pad(t, [4, 4, 4, 4], padding_mode="reflect"), 4, 4, 224, 224),
        "random_crop_padding": lambda t: F.crop(F.pad(t, [16, 16, 16, 16]), 9, 5, 224, 224),
        "resize_96_bilinear": lambda t: F.resize(t, [96, 96], M.BILINEAR, antialias=True),
        "resize_96_bicubic": lambda t: F.resize(t, [96, 96], M.BICUBIC, antialias=True),
        "rotate_nearest": lambda t: F.rotate(t, 30.0, M.NEAREST),
        "rotate_bilinear": lambda t: F.rotate(t, 30.0, M.BILINEAR),
        "affine_nearest": lambda t: F.affine(t, 10.0, [0, 0], 1.1, [5.0, 0.0], M.NEAREST),
        "perspective_bilinear": lambda t: F.perspective(t, None, None, M.BILINEAR, coefficients=list(MAP)),
        "brightness": lambda t: F.adjust_brightness(t, 1.3), "contrast": lambda t: F.adjust_contrast(t, 1.3),
        "saturation": lambda t: F.adjust_saturation(t, 1.3), "hue": lambda t: F.adjust_hue(t, 0.2),
        "grayscale": lambda t: F.rgb_to_grayscale(t, 3), "invert": F.invert, "solarize": lambda t: F.solarize(t, 128),
        "posterize": lambda t: F.posterize(t, 4), "equalize": F.equalize, "autocontrast": F.autocontrast,
        "sharpness": lambda t: F.adjust_sharpness(t, 2), "blur_23": lambda t: F.gaussian_blur(t, [23, 23], [1.0, 1.0]),
        "erase": lambda t: F.erase(t, 20, 30, 100, 100, torch.zeros(3, 1, 1, dtype=t.dtype)),
        "normalize_f32": normalize, "normalize_f16": lambda t: normalize(t, torch.float16),
        "normalize_f32_nhwc": lambda t: normalize(t, last=True), "randaugment": augment, "noise": noise,
        "jpeg_75": lambda t: F.jpeg(t, 75), "photometric": photometric, "permute": lambda t: F.permute_channels(t, [2, 0, 1]),
        "elastic": elastic, "augmix": augmix, "five_crop_128": lambda t: torch.stack(F.five_crop(t, [128, 128])),
        "iou_crop": lambda t: iou({"image": tv_tensors.Image(t), "boxes": boxes, "labels": classes}),
        "zoom_out": lambda t: F.center_crop(F.pad(t, [112, 112, 112, 112]), [224, 224]),
        "scale_jitter": lambda t: F.resize(t, [112, 112], antialias=True),
        "shortest_size_112": lambda t: F.resize(t, [112, 112], antialias=True),
        "center_crop_ratio": lambda t: F.resize(F.center_crop(t, [196, 196]), [128, 128], antialias=True),
    }, lambda a: torch.from_numpy(a).permute(2, 0, 1).contiguous()


def albumentations():
    import albumentations as A
    import cv2

    cv2.setNumThreads(0)
    linear, nearest, cubic, lanczos = cv2.INTER_LINEAR, cv2.INTER_NEAREST, cv2.INTER_CUBIC, cv2.INTER_LANCZOS4
    jitter = {"brightness": (1, 1), "contrast": (1, 1), "saturation": (1, 1), "hue": (0, 0), "p": 1}
    made = {
        "flip_h": A.HorizontalFlip(p=1), "flip_v": A.VerticalFlip(p=1),
        "resize_96_bilinear": A.Resize(96, 96, linear), "resize_96_bicubic": A.Resize(96, 96, cubic),
        "resize_96_lanczos": A.Resize(96, 96, lanczos),
        "rotate_nearest": A.Rotate((30, 30), nearest, border_mode=0, p=1),
        "rotate_bilinear": A.Rotate((30, 30), linear, border_mode=0, p=1),
        "affine_nearest": A.Affine(1.1, rotate=10, shear=5, interpolation=nearest, p=1),
        "affine_bicubic": A.Affine(1.1, rotate=10, shear=5, interpolation=cubic, p=1),
        "perspective_bilinear": A.Perspective(interpolation=linear, p=1),
        "brightness": A.ColorJitter(**{**jitter, "brightness": (1.3, 1.3)}),
        "contrast": A.ColorJitter(**{**jitter, "contrast": (1.3, 1.3)}),
        "saturation": A.ColorJitter(**{**jitter, "saturation": (1.3, 1.3)}),
        "hue": A.ColorJitter(**{**jitter, "hue": (0.2, 0.2)}),
        "grayscale": A.ToGray(p=1), "invert": A.InvertImg(p=1), "solarize": A.Solarize((0.5, 0.5), p=1),
        "posterize": A.Posterize((4, 4), p=1), "equalize": A.Equalize(p=1), "autocontrast": A.AutoContrast(p=1),
        "sharpness": A.Sharpen((0.5, 0.5), p=1), "blur_23": A.GaussianBlur((23, 23), (1, 1), p=1),
        "normalize_f32_nhwc": A.Normalize(MEAN, STD, p=1), "noise": A.GaussNoise((0.1, 0.1), p=1),
        "jpeg_75": A.ImageCompression(quality_range=(75, 75), p=1), "permute": A.ChannelShuffle(p=1),
        "median_5": A.MedianBlur((5, 5), p=1), "grid_mask": A.GridDropout(0.5, unit_size_range=(96, 96), p=1),
        "clahe": A.CLAHE((2, 2), p=1), "elastic": A.ElasticTransform(50, 5, p=1),
        "scale_jitter": A.Resize(112, 112, linear), "shortest_size_112": A.SmallestMaxSize(112, interpolation=linear),
    }
    return {name: (lambda a, t=t: t(image=a)) for name, t in made.items()}, lambda a: a


def peers():
    """Name -> (functions, their input), for what is installed."""
    found = {}
    picture = np.asarray(Image.effect_mandelbrot((224, 224), (-2, -1.2, 1, 1.2), 100).convert("RGB")).copy()
    picture += np.random.default_rng(1).integers(0, 40, picture.shape, np.uint8)
    for name, make in (("Pillow", pillow), ("torchvision v2", torchvision), ("albumentations", albumentations)):
        try:
            functions, convert = make()
        except Exception as e:
            print(f"{name}: {e}", file=sys.stderr)
            continue
        found[name] = (functions, convert(picture))
    return found


def micro(f, x, seconds=0.012):
    """Mean CPU microseconds of one call; None where it fails."""
    try:
        f(x)
        t, runs = time.thread_time(), 0
        while time.thread_time() - t < seconds:
            f(x)
            runs += 1
        return (time.thread_time() - t) / runs * 1e6
    except Exception:
        return None


def agreement(oracle, count):
    """Family of check_ops.py -> 'exact' or the largest difference."""
    script = pathlib.Path(__file__).parent.parent / "tests/oracle/check_ops.py"
    text = subprocess.run([sys.executable, str(script), oracle, "--count", str(count)],
                          capture_output=True, text=True, check=True).stdout
    found = {}
    for line in text.splitlines():
        family, rest = line.split(": ", 1)
        exact, _, total = rest.split()[:3]
        found[family] = "exact" if exact == total else f"max. difference {rest.rsplit(' ', 1)[1]}"
    return found


FAMILY = {
    "flip_h": "geometry", "flip_v": "geometry", "pad_reflect": "geometry", "random_crop_padding": "geometry",
    "resize_96_bilinear": "geometry", "resize_96_bicubic": "geometry", "resize_96_lanczos": "geometry",
    "rotate_nearest": "rotation", "rotate_bilinear": "rotation", "affine_nearest": "affine",
    "affine_bicubic": "affine", "perspective_bilinear": "perspective", "blur_23": "blur", "jpeg_75": "jpeg",
    "median_5": "median", "grid_mask": "grid", "zoom_out": "sizes", "scale_jitter": "sizes", "shortest_size_112": "sizes",
    "center_crop_ratio": "sizes", "five_crop_128": "geometry",
}


def least(times, key, value):
    if value is not None:
        times[key] = min(times.get(key, value), value)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kernel_ops")
    parser.add_argument("--oracle")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    found, times, order = peers(), {}, []
    for _ in range(args.rounds):
        lines = subprocess.run([args.kernel_ops, "2"], capture_output=True, text=True, check=True).stdout
        for j in map(json.loads, lines.splitlines()):
            least(times, (j["op"], j["isa"]), max(j["us"], 0.1))
            order += [j["op"]] * (j["op"] not in order and j["op"] != "none")
        for op in order:
            for name, (functions, x) in found.items():
                if op in functions:
                    least(times, (op, name), micro(functions[op], x))
    same = agreement(args.oracle, args.count) if args.oracle else {}
    columns = [*found, "scalar", "avx2", "avx512"]
    print(f"| op | agreement with Pillow | {' | '.join(columns)} | times faster than torchvision v2 (AVX2) |")
    print("|---" * (len(columns) + 3) + "|")
    for op in order:
        cells = [f"{times[op, c]:.0f}" if (op, c) in times else "" for c in columns]
        them = times.get((op, "torchvision v2"), times.get((op, "Pillow")))
        faster = f"{them / times[op, 'avx2']:.1f}" if them else ""
        if them and (op, "torchvision v2") not in times:
            faster += " (Pillow)"
        says = same.get(FAMILY.get(op, op), "exact" if op.startswith("normalize") else "")
        print(f"| {op} | {says} | {' | '.join(cells)} | {faster} |")


if __name__ == "__main__":
    main()
