# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of each op and prints the rows of the first table of data/plan/ops.txt.

    python bench/op_costs.py [--leat build-release/tools/leat] [--rounds 3] build-release/bench/kernel_ops [OP ...]

A row is the CPU microseconds for 224 x 224 pixels with p = 1, and fixed_us, from a 32 x 32 image. With --leat it compares
instead: for two sizes and each instruction set, what was measured, what `leat plan --no-measure` says, and how many times
too much that is. Batch ops and ops that need boxes are not measured here; bench/ops_table.py has those.
"""
import argparse
import json
import os
import subprocess

ISAS = ("avx512", "avx2", "scalar")
TABLE, SMALL, LARGE = 224, 32, 448
# Arguments of ops that need some; {s} is the side of the image, {h} half of it.
OPS = {
    "Pad": "Pad(16); CenterCrop({s})", "RandomZoomOut": "RandomZoomOut(side_range=(2, 2), p=1); Resize(({s}, {s}))",
    "RandomRotation": "RandomRotation(30)", "RandomAffine": "RandomAffine(10, (0.1, 0.1), (0.9, 1.1), 5)",
    "RandomPerspective": "RandomPerspective(0.5, p=1)",
    "ColorJitter": "ColorJitter(0.4, 0.4, 0.4, 0.1)", "Grayscale": "Grayscale(3)", "RandomGrayscale": "RandomGrayscale(1)",
    "RandomInvert": "RandomInvert(1)", "RandomPosterize": "RandomPosterize(4, p=1)",
    "RandomSolarize": "RandomSolarize(128, p=1)", "RandomAdjustSharpness": "RandomAdjustSharpness(2, p=1)",
    "RandomAutocontrast": "RandomAutocontrast(1)", "RandomEqualize": "RandomEqualize(1)",
    "GaussianBlur": "GaussianBlur(23)", "GaussianNoise": "GaussianNoise()", "JPEG": "JPEG(75)",
    "RandomPhotometricDistort": "RandomPhotometricDistort(p=1)", "RandomChannelPermutation": "RandomChannelPermutation()",
    "MedianBlur": "MedianBlur(3)", "GridMask": "GridMask(p=1)", "CLAHE": "CLAHE(p=1)", "AutoAugment": "AutoAugment()",
    "RandAugment": "RandAugment()", "TrivialAugmentWide": "TrivialAugmentWide()", "RandomErasing": "RandomErasing(1)",
    "Cutout": "Cutout({h})", "FiveCrop": "FiveCrop({h})", "TenCrop": "TenCrop({h})",
    "ElasticTransform": "ElasticTransform()", "AugMix": "AugMix()", "Normalize": "Normalize(0.5, 0.5)",
}
CROPS = {"FiveCrop": 5, "TenCrop": 10}
CANVAS = {"RandomZoomOut": 4}  # pixels of the result, in those of the image


def measured(kernel_ops, rounds, side, ops):
    """(op, isa) -> microseconds that the op adds to a copy of the image. Crops: to a crop in the middle."""
    crop = f"CenterCrop({side // 2})"
    text = {op: OPS[op].format(s=side, h=side // 2) for op in ops}
    done = subprocess.run([kernel_ops, str(rounds), str(side), crop, *text.values()], capture_output=True, text=True,
                          check=True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    us = {(row["op"], row["isa"]): row["us"] for row in rows}
    return {(op, isa): us[text[op], isa] - (us[crop, isa] if op in CROPS else 0) for op in ops for isa in ISAS}


def planned(leat, side, op, isa):
    """Microseconds that `leat plan` adds for the op."""
    def total(ops):
        command = [leat, "plan", "--samples", "100000", "--gpus", "0", "--cpus", "1", "--threads", "1", "--width", str(side),
                   "--height", str(side), "--no-measure", "--json", "--ops", ops]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LEAT_CPU_MASK": isa})
        return json.loads(done.stdout)["speed"]["cpu_us_per_sample"]
    bare = f"CenterCrop({side // 2})" if op in CROPS else f"CenterCrop({side})"
    text = OPS[op].format(s=side, h=side // 2)
    return total(text if op in CROPS else f"CenterCrop({side}); {text}") - total(bare)


def print_rows(at, small, ops):
    scale = (SMALL / TABLE) ** 2
    for op in ops:
        area = CROPS[op] / 4 if op in CROPS else CANVAS.get(op, 1)  # crops of half the side
        cells = [f"{max(at[op, isa], 0) / area:6.0f}" for isa in ISAS]
        fixed = max(0.0, min(small[op, isa] - at[op, isa] * scale for isa in ISAS))
        print(f"{op:24} | {' | '.join(cells)} | {fixed:2.0f}")


def print_check(leat, args, ops):
    print("| op | side | isa | measured us | planned us | times |\n|---|---|---|---|---|---|")
    for side in (TABLE, LARGE):
        real = measured(args.kernel_ops, args.rounds, side, ops)
        for op in ops:
            for isa in ISAS[:2]:
                says = planned(leat, side, op, isa)
                print(f"| {op} | {side} | {isa} | {real[op, isa]:.0f} | {says:.0f} | {says / max(real[op, isa], 1):.2f} |",
                      flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kernel_ops")
    parser.add_argument("ops", nargs="*", metavar="OP")
    parser.add_argument("--leat")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    ops = args.ops or list(OPS)
    if args.leat:
        print_check(args.leat, args, ops)
        return
    print_rows(measured(args.kernel_ops, args.rounds, TABLE, ops), measured(args.kernel_ops, args.rounds, SMALL, ops), ops)


if __name__ == "__main__":
    main()
