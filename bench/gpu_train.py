#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains on a GPU, fed in turn by leat and by PyTorch's DataLoader with Pillow, and compares with a ceiling without
loading.

    python bench/gpu_train.py --images imagenet-sample --work /tmp/gpu [--model resnet18] [--batch 256] [--rounds 3]

Random resized crop to 224 and flip to uint8 on the CPU, normalisation and training (bf16, channels last) on the GPU.
The ceiling trains on one batch that stays on the GPU. Each loader trains the same number of steps, without its
warm-up; loaders alternate. Reported: images/s, the share of the ceiling, the share of time spent waiting for data,
and the verdict of leat's doctor on its own run.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import time

import torch
from torch.nn import functional as F

import leat
from vram_measure import Basic, Bottleneck, resnet

MODELS = {"resnet18": (Basic, (2, 2, 2, 2)), "resnet50": (Bottleneck, (3, 4, 6, 3))}
MEAN, STD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)


class Trainer:
    def __init__(self, model):
        self.model = resnet(*MODELS[model]).cuda().to(memory_format=torch.channels_last)
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.01, 0.9)
        self.mean, self.std = (torch.tensor(v, device="cuda").view(1, 3, 1, 1) for v in (MEAN, STD))

    def step(self, image, label):
        image, label = (t.cuda(non_blocking=True) for t in (image, label))
        x = ((image.float() - self.mean) / self.std).to(memory_format=torch.channels_last)
        with torch.autocast("cuda", torch.bfloat16):
            loss = F.cross_entropy(self.model(x), label)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()


def forever(make):
    while True:
        yield from make()


def run(trainer, batches, warm, steps, batch):
    """Images per second, and the share of the time spent waiting for a batch."""
    waited = 0.0
    for i in range(warm + steps):
        if i == warm:
            torch.cuda.synchronize()
            begin, waited = time.monotonic(), 0.0
        before = time.monotonic()
        image, label = next(batches)
        waited += time.monotonic() - before
        trainer.step(image, label)
        if i % 8 == 7:
            torch.cuda.synchronize()  # like a loop that reads its loss from time to time
    torch.cuda.synchronize()
    spent = time.monotonic() - begin
    return batch * steps / spent, waited / spent


def copies(images, work, times):
    """The folder repeated `times` times, so that an epoch has many batches."""
    out = work / "images"
    if not out.exists():
        for k in range(times):
            for path in sorted(images.rglob("*.*")):
                to = out / path.parent.name / f"{k}-{path.name}"
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, to)
    return out


class Folder(torch.utils.data.Dataset):
    """torchvision's ImageFolder, RandomResizedCrop and flip, with Pillow alone."""

    def __init__(self, root):
        self.files = [(str(p), c) for c, d in enumerate(sorted(root.iterdir())) for p in sorted(d.iterdir())]

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        import math
        import numpy
        from PIL import Image
        path, label = self.files[i]
        image = Image.open(path).convert("RGB")
        w, h = image.size
        box = (0, 0, w, h)
        for _ in range(10):
            area = w * h * torch.empty(1).uniform_(0.08, 1.0).item()
            ratio = math.exp(torch.empty(1).uniform_(math.log(3 / 4), math.log(4 / 3)).item())
            cw, ch = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < cw <= w and 0 < ch <= h:
                x, y = int(torch.randint(0, w - cw + 1, (1,))), int(torch.randint(0, h - ch + 1, (1,)))
                box = (x, y, x + cw, y + ch)
                break
        image = image.crop(box).resize((224, 224), Image.Resampling.BILINEAR)
        if torch.rand(1) < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        return torch.from_numpy(numpy.array(image)).permute(2, 0, 1), label


def leat_way(path, o):
    loader = leat.Loader(str(path), batch_size=o.batch, threads=o.workers, seed=1, drop_last=True,
                         image=[leat.ops.RandomResizedCrop(224), leat.ops.RandomHorizontalFlip()])
    return loader, forever(lambda: ((b.image, b.label) for b in loader))


def torch_way(root, o):
    loader = torch.utils.data.DataLoader(Folder(root), o.batch, shuffle=True, num_workers=o.workers, pin_memory=True,
                                         drop_last=True, persistent_workers=True, prefetch_factor=4)
    return loader, forever(lambda: loader)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--images", type=pathlib.Path, required=True)
    p.add_argument("--work", type=pathlib.Path, required=True)
    p.add_argument("--model", choices=MODELS, default="resnet18")
    p.add_argument("--batch", type=int, default=256)
    p.add_argument("--steps", type=int, default=150)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--copies", type=int, default=10)
    p.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    o = p.parse_args()
    torch.backends.cudnn.benchmark = True
    root = copies(o.images, o.work, o.copies)
    for mode in ("tiled", "keep"):
        leat.pack(str(root), str(o.work / f"{mode}.leat"), images=mode, force=True)
    trainer = Trainer(o.model)
    still = (torch.randint(0, 256, (o.batch, 3, 224, 224), dtype=torch.uint8).cuda(), torch.zeros(o.batch, dtype=torch.long).cuda())
    makers = {"a batch on the GPU": lambda: (None, forever(lambda: [still])),
              "leat tiled": lambda: leat_way(o.work / "tiled.leat", o),
              "leat keep": lambda: leat_way(o.work / "keep.leat", o),
              "PyTorch DataLoader + Pillow": lambda: torch_way(root, o)}
    results, said = {n: [] for n in makers}, {}
    for _ in range(o.rounds):
        for name, make in makers.items():
            loader, batches = make()
            results[name].append(run(trainer, batches, 20, o.steps, o.batch))
            if name.startswith("leat"):
                said[name] = str(loader.doctor()).splitlines()
                loader.close()
            batches.close()
            del loader, batches
    ceiling = statistics.median(r for r, _ in results["a batch on the GPU"])
    print(f"{torch.cuda.get_device_name()}, {o.model}, batch {o.batch}, {o.workers} workers, torch {torch.__version__}")
    print("| fed by | images/s (low–high) | of the ceiling | waiting for data |\n|---|---|---|---|")
    for name, got in results.items():
        rates = [r for r, _ in got]
        wait = statistics.median(w for _, w in got)
        print(f"| {name} | {statistics.median(rates):.0f} ({min(rates):.0f}–{max(rates):.0f}) | "
              f"{statistics.median(rates) / ceiling:.2f} | {wait:.1%} |")
    for name, lines in said.items():
        print(f"\ndoctor, {name}:", *lines[:14], sep="\n  ")
    print(json.dumps({n: [[round(r), round(w, 4)] for r, w in g] for n, g in results.items()}))


if __name__ == "__main__":
    main()
