# SPDX-License-Identifier: Apache-2.0
"""Each op beside torchvision on PIL images, one thread, 224 x 224 RGB: a Markdown table.

    python bench/ops_table.py build-release/bench/kernel_ops [--oracle build/tests/oracle/op_oracle]

torchvision is used where it imports, else the Pillow calls it is made of. With --oracle the
agreement of each op is measured by tests/oracle/check_ops.py in the same run.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import time

import numpy as np
from PIL import Image, ImageEnhance, ImageOps


def find_torchvision():
    """torchvision's functional module, or None. Its compiled part is not needed here: where that does
    not load, the operators that it would have declared are declared for it."""
    try:
        import torch

        torch.set_num_threads(1)
        try:
            import torchvision
        except RuntimeError:
            find_torchvision.keep = torch.library.Library("torchvision", "DEF")
            for name in ("nms", "qnms"):
                find_torchvision.keep.define(name + "(Tensor a, Tensor b, float c) -> Tensor")
            import torchvision
        from torchvision.transforms import functional

        return functional, f"torchvision {torchvision.__version__}, torch {torch.__version__}"
    except Exception:
        return None, "Pillow only"


def references(F):
    """Name -> (what it is compared with, function of a PIL image)."""
    import math

    def affine(im, interpolation):
        if F:
            return F.affine(im, 10.0, [0, 0], 1.1, [5.0, 0.0], interpolation)
        raise LookupError

    def hue(im):
        h, s, v = im.convert("HSV").split()
        a = np.array(h, dtype=np.uint8)
        a += np.int32(0.2 * 255).astype(np.uint8)
        return Image.merge("HSV", (Image.fromarray(a), s, v)).convert("RGB")

    def normalize(im, half=False, last=False):
        import torch

        t = F.normalize(F.to_tensor(im), [0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
        t = t.half() if half else t
        return t.permute(1, 2, 0).contiguous() if last else t

    names = {
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
        "perspective_bilinear": lambda im: im.transform(
            im.size, Image.PERSPECTIVE, (1.1, 0.1, -5, 0.05, 1.2, -9, 0.0004, 0.0003), Image.BILINEAR),
        "brightness": lambda im: ImageEnhance.Brightness(im).enhance(1.3),
        "contrast": lambda im: ImageEnhance.Contrast(im).enhance(1.3),
        "saturation": lambda im: ImageEnhance.Color(im).enhance(1.3),
        "hue": hue,
        "grayscale": (lambda im: F.to_grayscale(im, 3)) if F else (lambda im: im.convert("L").convert("RGB")),
        "invert": ImageOps.invert,
        "solarize": lambda im: ImageOps.solarize(im, 128),
        "posterize": lambda im: ImageOps.posterize(im, 4),
        "equalize": ImageOps.equalize,
        "autocontrast": ImageOps.autocontrast,
        "sharpness": lambda im: ImageEnhance.Sharpness(im).enhance(2),
    }
    if F:
        from torchvision.transforms import InterpolationMode as M
        from torchvision.transforms import RandAugment

        augment = RandAugment()
        names.update({
            "affine_nearest": lambda im: affine(im, M.NEAREST),
            "affine_bicubic": lambda im: affine(im, M.BICUBIC),
            "blur_23": lambda im: F.gaussian_blur(im, [23, 23], [1.0, 1.0]),
            "normalize_f32": normalize,
            "normalize_f16": lambda im: normalize(im, half=True),
            "normalize_f32_nhwc": lambda im: normalize(im, last=True),
            "randaugment": augment,
        })
    return names


def micro(f, im, runs=60):
    """Best of five means, CPU time of this thread."""
    best = float("inf")
    f(im)
    for _ in range(5):
        t = time.thread_time()
        for _ in range(runs // 5):
            f(im)
        best = min(best, (time.thread_time() - t) / (runs // 5))
    return best * 1e6


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
    "affine_bicubic": "affine", "perspective_bilinear": "perspective", "blur_23": "blur",
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kernel_ops")
    parser.add_argument("--oracle")
    parser.add_argument("--count", type=int, default=200)
    args = parser.parse_args()
    F, name = find_torchvision()
    lines = subprocess.run([args.kernel_ops, "9"], capture_output=True, text=True, check=True).stdout
    ours = {}
    for line in lines.splitlines():
        j = json.loads(line)
        ours.setdefault(j["op"], {})[j["isa"]] = max(j["us"], 0.1)
    found = agreement(args.oracle, args.count) if args.oracle else {}
    rng = np.random.default_rng(1)
    y, x = np.mgrid[0:224, 0:224]
    base = 110 + 60 * np.sin(0.05 * x) * np.cos(0.03 * y)
    im = Image.fromarray((base[..., None] + rng.integers(0, 40, (224, 224, 3))).astype(np.uint8))
    print(f"Reference: {name}, Pillow {Image.__version__}. One thread, 224 x 224 RGB, microseconds of CPU time.\n")
    print("| op | agreement | reference | scalar | AVX2 | AVX-512 | times faster (AVX2 / AVX-512) |")
    print("|---|---|---|---|---|---|---|")
    for op, f in references(F).items():
        them, us = micro(f, im), ours[op]
        same = found.get(FAMILY.get(op, op), "exact" if op.startswith("normalize") else "")
        print(f"| {op} | {same} | {them:.0f} | {us['scalar']:.1f} | {us['avx2']:.1f} | {us['avx512']:.1f} "
              f"| {them / us['avx2']:.1f} / {them / us['avx512']:.1f} |")


if __name__ == "__main__":
    main()
