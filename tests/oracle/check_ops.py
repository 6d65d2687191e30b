# SPDX-License-Identifier: Apache-2.0
"""Compares leat's ops with Pillow, step by step, on random images and parameters.

op_oracle draws a recipe and runs it; this replays the same steps with Pillow (and with
torchvision's arithmetic where that is not Pillow's) and compares the pixels.

    python tests/oracle/check_ops.py build/tests/oracle/op_oracle [--count N] [--only TEXT]
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys

import numpy as np
from PIL import Image

from replay import replay

MASKS = {"scalar": 0x1, "avx2": 0x3, "avx512": 0xFFFF}


class Oracle:
    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, pixels, text, seed=1, epoch=0, sample=0, orientation=1, isa="avx512"):
        """Output bytes and the recipe, or raises ValueError with leat's message. `pixels` is an
        array, or the bytes of an encoded file."""
        if isinstance(pixels, bytes):
            w, h, channels, payload = len(pixels), 0, 0, pixels
        else:
            h, w = pixels.shape[:2]
            channels = 1 if pixels.ndim == 2 else pixels.shape[2]
            payload = np.ascontiguousarray(pixels).tobytes()
        pipe = self.process
        head = f"{w} {h} {channels} {seed} {epoch} {sample} {orientation} {MASKS[isa]:x} {len(text)}\n"
        pipe.stdin.write(head.encode() + text.encode() + payload)
        pipe.stdin.flush()
        rc, size, extra = map(int, pipe.stdout.readline().split())
        out = pipe.stdout.read(size)
        info = pipe.stdout.read(extra).decode()
        if rc:
            raise ValueError(f"{rc}: {info}")
        return out, json.loads(info)


def picture(rng, w, h, channels=3):
    """Smooth shapes and noise: both flat areas and hard edges."""
    y, x = np.mgrid[0:h, 0:w]
    planes = []
    for _ in range(channels):
        a, b, c = rng.uniform(0.01, 0.3, 3)
        wave = 127 + 127 * np.sin(a * x + b * y + 9 * c) * np.cos(c * x - a * y)
        noise = rng.integers(-40, 40, (h, w))
        planes.append(np.clip(wave + noise * (rng.random() < 0.7), 0, 255))
    im = np.stack(planes, -1).astype(np.uint8)
    return im[..., 0] if channels == 1 else im


def check_orientation(pixels, orientation):
    im = Image.fromarray(pixels)
    turn = {2: Image.FLIP_LEFT_RIGHT, 3: Image.ROTATE_180, 4: Image.FLIP_TOP_BOTTOM,
            5: Image.TRANSPOSE, 6: Image.ROTATE_270, 7: Image.TRANSVERSE, 8: Image.ROTATE_90}
    return im.transpose(turn[orientation]) if orientation in turn else im


FILTERS = ["box", "bilinear", "hamming", "bicubic", "lanczos", "nearest"]


def geometry_cases(rnd):
    f = rnd.choice(FILTERS)
    s = rnd.choice([1, 7, 32, 64, 97, 224])
    t = rnd.choice([1, 5, 48, 130, 224])
    return rnd.choice([
        f"Resize(({s}, {t}), interpolation={f})",
        f"RandomResizedCrop({s}, interpolation={f}); RandomHorizontalFlip(); RandomVerticalFlip()",
        f"RandomHorizontalFlip(); RandomVerticalFlip(); RandomResizedCrop(({s},{t}), interpolation={f})",
        f"Resize({s}, interpolation={f}); CenterCrop({t})",
        f"RandomHorizontalFlip(); Resize({s}, {f}); RandomHorizontalFlip(); RandomCrop({t}, pad_if_needed=true)",
        f"CenterCrop({t})",
        f"Resize({s}, {f}, max_size={s + 40}); CenterCrop(({s},{t})); RandomHorizontalFlip()",
        f"RandomCrop(({s},{t}), padding=(3, 9), pad_if_needed=true, fill=(1,2,3))",
        f"Pad((1,2,3,4), padding_mode={rnd.choice(['constant','edge','reflect','symmetric'])}, fill=7); CenterCrop({t})",
        f"Resize(({s}, {t}), {f}); RandomHorizontalFlip(); Resize(({t}, {s}), {rnd.choice(FILTERS)})",
    ])


def color_case(*texts):
    def make(rnd):
        return "Resize((64, 80)); " + rnd.choice(texts)
    return make


CASES = {
    "geometry": geometry_cases,
    "brightness": color_case("ColorJitter(brightness=0.9)", "ColorJitter(brightness=(0, 3))"),
    "contrast": color_case("ColorJitter(contrast=0.9)", "ColorJitter(contrast=(0, 3))"),
    "saturation": color_case("ColorJitter(saturation=0.9)", "ColorJitter(saturation=(0, 3))"),
    "hue": color_case("ColorJitter(hue=0.5)"),
    "jitter": color_case("ColorJitter(0.4, 0.4, 0.4, 0.1)"),
    "grayscale": color_case("RandomGrayscale(1)"),
    "invert": color_case("RandomInvert(1)"),
    "posterize": color_case(*(f"RandomPosterize({b}, p=1)" for b in range(1, 9))),
    "solarize": color_case(*(f"RandomSolarize({t}, p=1)" for t in (0, 1, 100.5, 128, 255, 256))),
    "sharpness": color_case(*(f"RandomAdjustSharpness({f}, p=1)" for f in (0, 0.3, 1, 1.7, 5))),
    "autocontrast": color_case("RandomAutocontrast(1)"),
    "equalize": color_case("RandomEqualize(1)"),
    "blur": color_case("GaussianBlur(3)", "GaussianBlur((5, 9), sigma=(0.1, 5))", "GaussianBlur(23, sigma=2)"),
    "jpeg": color_case("JPEG((1, 100))", "JPEG(75)"),
    "permute": color_case("RandomChannelPermutation()"),
    "photometric": color_case("RandomPhotometricDistort(p=1)", "RandomPhotometricDistort()"),
    "median": color_case("MedianBlur(3)", "MedianBlur(9)"),
    "clahe": color_case("CLAHE(p=1)", "CLAHE((0.5, 40), (3, 7), p=1)"),
    "grid": color_case("GridMask((5, 40), 0.4, p=1, fill=(1,2,3))"),
    "combine": color_case("RandomOrder(RandomInvert(1); JPEG(30); RandomApply(RandomRotation(20); MedianBlur()))",
                          "RandomChoice(RandomEqualize(1); RandomAffine(20); GridMask((9, 20), p=1), p=(1, 2, 3))"),
    "sizes": color_case("RandomZoomOut((1,2,3), (1, 2), p=1); CenterCrop(90)", "ScaleJitter(80, (0.3, 1.5)); CenterCrop(70)",
                        "RandomShortestSize((40, 60, 90), max_size=100); CenterCrop(70)", "CenterCrop(50, ratio=0.7)"),
    "erase": color_case("RandomErasing(1, value=(1,2,3))", "Cutout(20, value=9)", "Cutout(200)"),
    "rotation": color_case(*(f"RandomRotation({d}, interpolation={i}, fill=(3,4,5))"
                             for d in ("180", "(90,90)", "(180,180)") for i in ("nearest", "bilinear", "bicubic")),
                           "RandomRotation(45, expand=true, interpolation=bilinear); CenterCrop(70)"),
    "affine": color_case(*(f"RandomAffine(30, translate=(0.3,0.2), scale=(0.5,2), shear=(-10,10,-20,20), interpolation={i})"
                           for i in ("nearest", "bilinear", "bicubic")), "RandomAffine(0, translate=(0.5,0.5), fill=9)"),
    "perspective": color_case(*(f"RandomPerspective(0.6, p=1, interpolation={i}, fill=(200,1,2))"
                                for i in ("nearest", "bilinear", "bicubic"))),
    "randaugment": color_case("RandAugment()", "RandAugment(3, 30, interpolation=bilinear, fill=7)"),
    "trivialaugment": color_case("TrivialAugmentWide()", "TrivialAugmentWide(interpolation=bicubic)"),
    "elastic": color_case("ElasticTransform()", "ElasticTransform((90, 30), (4, 7), fill=(9, 8, 7))",
                          "ElasticTransform(120, 3, nearest, fill=200)", "ElasticTransform(9, 0)"),
    "augmix": color_case("AugMix()", "AugMix(10, 4, 2, 0.5, interpolation=nearest)", "AugMix(5, 1, all_ops=false)"),
    "autoaugment": color_case("AutoAugment()", "AutoAugment(cifar10)", "AutoAugment(svhn, interpolation=bilinear)"),
}


def check_files(oracle, folder, isas):
    """Whole files: decode, crop, resize and flip like Pillow."""
    texts = ["RandomResizedCrop(224); RandomHorizontalFlip()", "Resize(256); CenterCrop(224)",
             "RandomResizedCrop(224); RandomHorizontalFlip(); ColorJitter(0.4, 0.4, 0.4, 0.1)"]
    exact = total = 0
    for i, path in enumerate(sorted(p for p in pathlib.Path(folder).rglob("*") if p.is_file())):
        try:
            im = Image.open(path)
            im = im.convert("RGB")
        except Exception:
            continue
        text = texts[i % len(texts)]
        out, recipe = oracle.run(path.read_bytes(), text, seed=i, isa=isas[i % len(isas)])
        want, _ = replay(im, recipe)
        got = np.frombuffer(out, np.uint8).reshape(3, 224, 224).transpose(1, 2, 0)
        total, same = total + 1, bool((got == np.asarray(want)).all())
        exact += same
        if not same:
            diff = np.abs(got.astype(int) - np.asarray(want).astype(int)).max()
            print(f"{path.name} ({im.width}x{im.height}): {text}: differs by {diff}")
    print(f"files: {exact} of {total} exact")
    return total - exact


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", help="a folder of images to decode as well")
    parser.add_argument("oracle")
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--only", default="")
    parser.add_argument("--isa", default="scalar,avx2,avx512")
    args = parser.parse_args()
    oracle = Oracle(args.oracle)
    bad = check_files(oracle, args.files, args.isa.split(",")) if args.files else 0
    for family, make in CASES.items():
        if args.only and args.only not in family:
            continue
        worst, exact, total = 0, 0, 0
        for i in range(args.count):
            rnd, rng = random.Random(i), np.random.default_rng(i)
            w, h = rnd.choice([rnd.randint(1, 40), rnd.randint(40, 600)]), rnd.randint(1, 500)
            channels = rnd.choice([3, 3, 3, 1, 4])
            orientation = rnd.choice([1, 1, 1, rnd.randint(1, 8)])
            pixels = picture(rng, w, h, channels)
            text = make(rnd)
            isa = rnd.choice(args.isa.split(","))
            try:
                out, recipe = oracle.run(pixels, text, seed=i, sample=i * 7, orientation=orientation, isa=isa)
            except ValueError as e:
                print(f"{family} {i}: {text}: {e}")
                bad += 1
                continue
            im = check_orientation(pixels, orientation).convert("RGB")
            want, tolerance = replay(im, recipe)
            got = np.frombuffer(out, np.uint8).reshape(3, want.height, want.width).transpose(1, 2, 0)
            diff = int(np.abs(got.astype(int) - np.asarray(want).astype(int)).max())
            worst, exact, total = max(worst, diff), exact + (diff == 0), total + 1
            if diff > tolerance:
                bad += 1
                print(f"{family} {i}: {w}x{h}x{channels} o{orientation} {isa} {text}: differs by {diff}")
        print(f"{family}: {exact} of {total} exact, largest difference {worst}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
