# SPDX-License-Identifier: Apache-2.0
"""Writes tests/unit/op/golden_ops.h: hashes of Pillow's results for drawn recipes.

    python tests/oracle/make_golden_ops.py build/tests/oracle/op_oracle > tests/unit/op/golden_ops.h

leat draws the recipes, Pillow makes the pixels. Steps that do not equal Pillow bit for bit (blur) are omitted.
"""
import sys

import numpy as np
import PIL

from check_ops import Oracle
from make_golden import fnv, picture
from replay import replay

TEXTS = [
    "Resize(48); CenterCrop(40); RandomHorizontalFlip()",
    "RandomResizedCrop(32); RandomHorizontalFlip(); RandomVerticalFlip()",
    "RandomVerticalFlip(1); RandomResizedCrop((20, 50), interpolation=bicubic)",
    "RandomResizedCrop(32, like=pillow12, interpolation=lanczos)",
    "CenterCrop(100)",
    "RandomCrop(32, padding=4)",
    "RandomCrop((90, 30), pad_if_needed=true, padding_mode=symmetric)",
    "Pad((1, 2, 3, 4), fill=(9, 8, 7)); CenterCrop(60)",
    "Pad(3, padding_mode=reflect); CenterCrop(60)",
    "Pad(5, padding_mode=edge); CenterCrop(60)",
    "CenterCrop(60); ColorJitter(0.4, 0.4, 0.4, 0.2)",
    "CenterCrop(60); ColorJitter(hue=0.5)",
    "CenterCrop(60); ColorJitter(brightness=(2, 3))",
    "CenterCrop(60); ColorJitter(contrast=(0.1, 0.2))",
    "CenterCrop(60); ColorJitter(saturation=(1.5, 4))",
    "CenterCrop(60); RandomGrayscale(1)",
    "CenterCrop(60); RandomInvert(1)",
    "CenterCrop(60); RandomPosterize(3, p=1)",
    "CenterCrop(60); RandomSolarize(100, p=1)",
    "CenterCrop(60); RandomAdjustSharpness(2.5, p=1)",
    "CenterCrop(60); RandomAutocontrast(1)",
    "CenterCrop(60); RandomEqualize(1)",
    "CenterCrop(60); RandomErasing(1, value=(4, 5, 6))",
    "CenterCrop(60); Cutout(16)",
    "CenterCrop(60); RandomRotation(80)",
    "CenterCrop(60); RandomRotation(80, bilinear, fill=(1, 2, 3))",
    "CenterCrop(60); RandomRotation(30, bicubic, expand=true); CenterCrop(64)",
    "CenterCrop(60); RandomAffine(20, (0.2, 0.2), (0.7, 1.4), (-9, 9, -9, 9))",
    "CenterCrop(60); RandomAffine(0, (0.3, 0.3), fill=77)",
    "CenterCrop(60); RandomAffine(20, (0.2, 0.2), (0.7, 1.4), 10, bicubic)",
    "CenterCrop(60); RandomPerspective(0.6, p=1)",
    "CenterCrop(60); RandomPerspective(0.6, p=1, interpolation=nearest, fill=200)",
    "CenterCrop(60); RandAugment(4, 20)",
    "CenterCrop(60); TrivialAugmentWide()",
    "CenterCrop(60); AutoAugment()",
    "CenterCrop(60); AutoAugment(cifar10); RandomHorizontalFlip(1)",
    "CenterCrop(60); AutoAugment(svhn, bilinear)",
]


def main():
    oracle = Oracle(sys.argv[1])
    planes = [np.asarray(picture(73, 59, seed)) for seed in (1, 2, 3)]
    # smooth, so that interpolation matters and histograms are not flat
    pixels = np.stack([p // 4 + np.add.outer(np.arange(59), np.arange(73)) for p in planes], -1).astype(np.uint8)
    print("/* SPDX-License-Identifier: Apache-2.0")
    print(" *")
    print(f" * Made by tests/oracle/make_golden_ops.py with Pillow {PIL.__version__}; do not edit. */")
    print("static const struct golden {")
    print("    const char *text;")
    print("    unsigned seed, orientation;")
    print("    uint64_t hash; /* of the output, 8-bit planes */")
    print("} goldens[] = {")
    for i, text in enumerate(TEXTS * 2):
        orientation = 1 if i < len(TEXTS) else i % 8 + 1
        _, recipe = oracle.run(pixels, text, seed=i, orientation=orientation)
        from check_ops import check_orientation

        im, tolerance = replay(check_orientation(pixels, orientation), recipe)
        assert tolerance == 0
        data = np.asarray(im).transpose(2, 0, 1).tobytes()
        print(f'    {{"{text}",')
        print(f"     {i}, {orientation}, 0x{fnv(data):016x}u}},")
    print("};")


if __name__ == "__main__":
    main()
