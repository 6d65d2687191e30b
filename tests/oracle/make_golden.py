# SPDX-License-Identifier: Apache-2.0
"""Writes tests/unit/dsp/golden_resize.h: Pillow's results for deterministic images.

    python tests/oracle/make_golden.py > tests/unit/dsp/golden_resize.h     (Pillow 13)
"""
import random

import numpy as np
import PIL
from PIL import Image

FILTERS = ["NEAREST", "BOX", "BILINEAR", "HAMMING", "BICUBIC", "LANCZOS"]
M = (1 << 64) - 1


def picture(w, h, seed):
    """Bytes of a 64-bit congruential generator, top byte of each state: the test has the same."""
    out = bytearray()
    s = seed
    for _ in range(w * h):
        s = (s * 6364136223846793005 + 1442695040888963407) & M
        out.append(s >> 56)
    return Image.frombytes("L", (w, h), bytes(out))


def fnv(data):
    h = 14695981039346656037
    for b in data:
        h = ((h ^ b) * 1099511628211) & M
    return h


def main():
    rnd = random.Random(5)
    print("/* SPDX-License-Identifier: Apache-2.0")
    print(" *")
    print(f" * Made by tests/oracle/make_golden.py with Pillow {PIL.__version__}; do not edit. */")
    print("static const struct golden {")
    print("    unsigned seed, in_w, in_h, out_w, out_h;")
    print("    leat__filter filter;")
    print("    float box[4];")
    print("    uint64_t hash;")
    print("} goldens[] = {")
    for i in range(96):
        w, h = rnd.choice([rnd.randint(1, 9), rnd.randint(10, 300)]), rnd.randint(1, 300)
        ow, oh = rnd.choice([224, rnd.randint(1, 260)]), rnd.choice([224, rnd.randint(1, 120)])
        f = i % len(FILTERS)
        box = (0.0, 0.0, 0.0, 0.0)
        kwargs = {}
        if i % 4 == 3 and w > 2 and h > 2:
            x0, y0 = round(rnd.uniform(0, w / 3), 2), round(rnd.uniform(0, h / 3), 2)
            box = (x0, y0, round(rnd.uniform(x0 + 1, w), 2), round(rnd.uniform(y0 + 1, h), 2))
            kwargs["box"] = box
        out = picture(w, h, i).resize((ow, oh), getattr(Image, FILTERS[f]), **kwargs)
        b = ", ".join(f"{v}f" for v in np.float32(box))
        print(f"    {{{i}, {w}, {h}, {ow}, {oh}, LEAT__FILTER_{FILTERS[f]},")
        print(f"     {{{b}}}, 0x{fnv(out.tobytes()):016x}u}},")
    print("};")


if __name__ == "__main__":
    main()
