#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the GPU memory and time of a training step: the reference for `leat plan`'s VRAM model (src/plan/arch*.c)
and for its GPU rates (data/plan/costs.txt).

PyTorch only; the models are defined here with torch.nn, so that the figures depend only on the architecture. One
JSON line per run:

    model, precision, batch, image, optimizer, channels_last, params
    saved_bytes   distinct storages autograd keeps from forward to backward (parameters and the
                  batch itself not counted)
    steady_bytes  allocated between steps: weights, gradients, optimizer state, the batch
    peak_bytes    torch.cuda.max_memory_allocated over whole steps after the first
    reserved_bytes  what the caching allocator took from the driver
    step_ms       median of the timed steps, forward + backward + optimizer

    python3 bench/vram_measure.py > vram.jsonl
    python3 bench/vram_measure.py --models resnet50 --batches 256 --precisions bf16 --compile
"""
import argparse
import gc
import json
import statistics
import sys

import torch
from torch import nn
from torch.nn import functional as F


# ---- ResNet (He et al. 2015; stride on the 3x3 as in torchvision, "v1.5") -------------------
class Basic(nn.Module):
    out_mul = 1

    def __init__(self, cin, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.down = down_path(cin, width, stride)

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        y += x if self.down is None else self.down(x)
        return self.relu(y)


class Bottleneck(nn.Module):
    out_mul = 4

    def __init__(self, cin, width, stride):
        super().__init__()
        cout = width * 4
        self.conv1 = nn.Conv2d(cin, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, cout, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(cout)
        self.relu = nn.ReLU(inplace=True)
        self.down = down_path(cin, cout, stride)

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        y += x if self.down is None else self.down(x)
        return self.relu(y)


def down_path(cin, cout, stride):
    if stride == 1 and cin == cout:
        return None
    return nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))


def resnet(block, depths, classes=1000):
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
              nn.MaxPool2d(3, 2, 1)]
    cin = 64
    for stage, depth in enumerate(depths):
        width = 64 << stage
        for i in range(depth):
            layers.append(block(cin, width, 2 if stage > 0 and i == 0 else 1))
            cin = width * block.out_mul
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(cin, classes)]
    return nn.Sequential(*layers)


# ---- ViT (Dosovitskiy et al. 2020), patch 16, class token, fused attention ------------------
class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.fc1, self.fc2 = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v)
        x = x + self.proj(a.transpose(1, 2).reshape(b, n, d))
        return x + self.fc2(F.gelu(self.fc1(self.ln2(x))))


class ViT(nn.Module):
    def __init__(self, dim, depth, heads, image, classes=1000):
        super().__init__()
        self.patch = nn.Conv2d(3, dim, 16, 16)
        self.cls = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos = nn.Parameter(torch.zeros(1, (image // 16) ** 2 + 1, dim))
        self.blocks = nn.Sequential(*[Block(dim, heads) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, classes)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.pos
        return self.head(self.norm(self.blocks(x))[:, 0])


# ---- ConvNeXt (Liu et al. 2022) --------------------------------------------------------------
class NextBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dw = nn.Conv2d(dim, dim, 7, padding=3, groups=dim)
        self.ln = nn.LayerNorm(dim, eps=1e-6)
        self.fc1, self.fc2 = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)
        self.gamma = nn.Parameter(1e-6 * torch.ones(dim))

    def forward(self, x):
        y = self.ln(self.dw(x).permute(0, 2, 3, 1))
        y = self.gamma * self.fc2(F.gelu(self.fc1(y)))
        return x + y.permute(0, 3, 1, 2)


class ChannelNorm(nn.LayerNorm):
    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def convnext(depths, dims, classes=1000):
    layers = [nn.Conv2d(3, dims[0], 4, 4), ChannelNorm(dims[0], eps=1e-6)]
    for stage, depth in enumerate(depths):
        if stage > 0:
            layers += [ChannelNorm(dims[stage - 1], eps=1e-6),
                       nn.Conv2d(dims[stage - 1], dims[stage], 2, 2)]
        layers += [NextBlock(dims[stage]) for _ in range(depth)]
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(dims[-1], eps=1e-6),
               nn.Linear(dims[-1], classes)]
    return nn.Sequential(*layers)


MODELS = {
    "resnet18": lambda s: resnet(Basic, (2, 2, 2, 2)),
    "resnet34": lambda s: resnet(Basic, (3, 4, 6, 3)),
    "resnet50": lambda s: resnet(Bottleneck, (3, 4, 6, 3)),
    "resnet101": lambda s: resnet(Bottleneck, (3, 4, 23, 3)),
    "resnet152": lambda s: resnet(Bottleneck, (3, 8, 36, 3)),
    "vit_s": lambda s: ViT(384, 12, 6, s),
    "vit_b": lambda s: ViT(768, 12, 12, s),
    "vit_l": lambda s: ViT(1024, 24, 16, s),
    "convnext_t": lambda s: convnext((3, 3, 9, 3), (96, 192, 384, 768)),
    "convnext_s": lambda s: convnext((3, 3, 27, 3), (96, 192, 384, 768)),
    "convnext_b": lambda s: convnext((3, 3, 27, 3), (128, 256, 512, 1024)),
}


class Saved:
    """Bytes of the distinct storages that autograd packs, parameters and batch excluded."""

    def __init__(self, model, batch):
        self.skip = {p.untyped_storage().data_ptr() for p in model.parameters()}
        self.skip.add(batch.untyped_storage().data_ptr())
        self.seen = {}

    def pack(self, t):
        s = t.untyped_storage()
        if s.data_ptr() not in self.skip:
            self.seen[s.data_ptr()] = s.nbytes()
        return t.detach()  # the tensor itself would tie graph and hook into a leaked cycle

    def bytes(self):
        return sum(self.seen.values())


def measure(name, precision, batch, args):
    torch.manual_seed(0)
    cnn = not name.startswith("vit")
    model = MODELS[name](args.image).cuda().train()
    if cnn:
        model = model.to(memory_format=torch.channels_last)
    run = torch.compile(model) if args.compile else model
    if args.optimizer == "adamw":
        opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
    else:
        opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    x = torch.randn(batch, 3, args.image, args.image, device="cuda")
    if cnn:
        x = x.contiguous(memory_format=torch.channels_last)
    y = torch.randint(0, 1000, (batch,), device="cuda")
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision)
    scaler = torch.amp.GradScaler("cuda", enabled=precision == "fp16")

    def forward():
        with torch.autocast("cuda", dtype=dtype or torch.bfloat16, enabled=dtype is not None):
            return F.cross_entropy(run(x), y)

    def step():
        scaler.scale(forward()).backward()
        scaler.step(opt)
        scaler.update()
        opt.zero_grad(set_to_none=not args.keep_grads)

    for _ in range(args.warmup):
        step()
    torch.cuda.synchronize()
    steady = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    times = []
    for _ in range(args.steps):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        step()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    peak, reserved = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
    saved = Saved(model, x)
    with torch.autograd.graph.saved_tensors_hooks(saved.pack, lambda t: t):
        loss = forward()
    saved_bytes = saved.bytes()
    del loss
    step_ms = statistics.median(times)
    return {"model": name, "precision": precision, "batch": batch, "image": args.image,
            "optimizer": args.optimizer, "channels_last": cnn, "compiled": args.compile,
            "keep_grads": args.keep_grads,
            "params": sum(p.numel() for p in model.parameters()),
            "saved_bytes": saved_bytes, "steady_bytes": steady, "peak_bytes": peak,
            "reserved_bytes": reserved, "step_ms": round(step_ms, 3),
            "samples_per_s": round(batch * 1000 / step_ms, 1)}


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--models", default="resnet18,resnet50,resnet101,vit_s,vit_b")
    p.add_argument("--batches", default="64,128,256")
    p.add_argument("--precisions", default="fp32,bf16")
    p.add_argument("--image", type=int, default=224)
    p.add_argument("--optimizer", choices=("sgd", "adamw"), default="sgd")
    p.add_argument("--warmup", type=int, default=3)
    p.add_argument("--steps", type=int, default=8)
    p.add_argument("--compile", action="store_true")
    p.add_argument("--keep-grads", action="store_true",
                   help="zero_grad(set_to_none=False): gradients stay allocated between steps")
    p.add_argument("--cudnn-benchmark", action="store_true")
    args = p.parse_args()
    if not torch.cuda.is_available():
        sys.exit("vram_measure: no CUDA device")
    torch.backends.cudnn.benchmark = args.cudnn_benchmark
    print(json.dumps({"torch": torch.__version__, "device": torch.cuda.get_device_name(),
                      "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(),
                      "cudnn_benchmark": args.cudnn_benchmark,
                      "tf32_conv": torch.backends.cudnn.allow_tf32,
                      "tf32_matmul": torch.backends.cuda.matmul.allow_tf32}), flush=True)
    for name in args.models.split(","):
        for precision in args.precisions.split(","):
            for batch in (int(b) for b in args.batches.split(",")):
                try:
                    line = measure(name, precision, batch, args)
                except torch.cuda.OutOfMemoryError as e:
                    line = {"model": name, "precision": precision, "batch": batch,
                            "error": str(e).split("\n")[0]}
                print(json.dumps(line), flush=True)
                gc.collect()
                torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
