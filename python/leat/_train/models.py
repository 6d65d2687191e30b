# SPDX-License-Identifier: Apache-2.0
"""Models: a few built in, any of torchvision or timm by name.

A model is a backbone whose ``features(x)`` gives one vector per image, and a linear ``head``. Images of
up to 96 pixels get a stem that does not shrink them.
"""

from __future__ import annotations

import contextlib
import difflib
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from .._errors import ArgumentError

SMALL = 96  #: images up to this side get the small stem


@contextlib.contextmanager
def _without_statistics(block: nn.Module) -> Iterator[None]:
    """Makes norms update copies of their running statistics: a second pass over a batch must not count."""
    norms = [m for m in block.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm) and m.track_running_stats]
    kept = [dict(norm.named_buffers(recurse=False)) for norm in norms]
    for norm, buffers in zip(norms, kept):
        for name, values in buffers.items():
            setattr(norm, name, values.clone())
    try:
        yield
    finally:
        for norm, buffers in zip(norms, kept):
            for name, values in buffers.items():
                setattr(norm, name, values)


class Net(nn.Module):
    """A backbone and a head. ``width`` is the length of its feature vectors."""

    checkpointing = False
    width = 0

    def __init__(self) -> None:
        super().__init__()
        self.head: nn.Module = nn.Identity()

    def run(self, block: nn.Module, x: Tensor) -> Tensor:
        """Runs a block; with checkpointing, recomputes its activations in the backward pass."""
        if not (self.checkpointing and self.training and torch.is_grad_enabled()):
            return block(x)
        if torch.compiler.is_compiling():  # the compiler recomputes without side effects
            return checkpoint(block, x, use_reentrant=False)  # type: ignore[no-any-return]
        contexts = lambda: (contextlib.nullcontext(), _without_statistics(block))  # noqa: E731
        return checkpoint(block, x, use_reentrant=False, context_fn=contexts)  # type: ignore[no-any-return]

    def features(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.features(x))


# ---- ResNets -------------------------------------------------------------------------------------


def _conv_bn(inside: int, outside: int, size: int = 3, stride: int = 1, act: bool = True) -> nn.Sequential:
    layers: list[nn.Module] = [nn.Conv2d(inside, outside, size, stride, size // 2, bias=False),
                               nn.BatchNorm2d(outside)]
    return nn.Sequential(*layers, *([nn.ReLU(inplace=True)] if act else []))


class _Residual(nn.Module):
    def __init__(self, inside: int, outside: int, stride: int, bottleneck: bool) -> None:
        super().__init__()
        middle = outside // 4 if bottleneck else outside
        parts = ([_conv_bn(inside, middle, 1), _conv_bn(middle, middle, 3, stride),
                  _conv_bn(middle, outside, 1, act=False)] if bottleneck
                 else [_conv_bn(inside, middle, 3, stride), _conv_bn(middle, outside, 3, act=False)])
        nn.init.zeros_(parts[-1][1].weight)  # a block begins as the identity
        self.body = nn.Sequential(*parts)
        same = stride == 1 and inside == outside
        self.skip = nn.Identity() if same else _conv_bn(inside, outside, 1, stride, act=False)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.body(x) + self.skip(x))


class ResNet(Net):
    """ResNet-18 to -101."""

    def __init__(self, depths: tuple[int, ...], bottleneck: bool, small: bool) -> None:
        super().__init__()
        self.stem: nn.Module = _conv_bn(3, 64) if small else nn.Sequential(
            _conv_bn(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1))
        inside, blocks = 64, []
        for stage, depth in enumerate(depths):
            outside = 64 * 2**stage * (4 if bottleneck else 1)
            for i in range(depth):
                blocks.append(_Residual(inside, outside, 2 if stage > 0 and i == 0 else 1, bottleneck))
                inside = outside
        self.blocks = nn.ModuleList(blocks)
        self.width = inside
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def features(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for block in self.blocks:
            x = self.run(block, x)
        return x.mean((2, 3))


class _Pair(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(_conv_bn(width, width), _conv_bn(width, width))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x)


class ResNet9(Net):
    """The small network of fast CIFAR-10 training: eight convolutions, two residual pairs."""

    def __init__(self, small: bool) -> None:
        super().__init__()
        stem = _conv_bn(3, 64) if small else nn.Sequential(_conv_bn(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1))
        self.blocks = nn.ModuleList([
            stem, nn.Sequential(_conv_bn(64, 128), nn.MaxPool2d(2)), _Pair(128),
            nn.Sequential(_conv_bn(128, 256), nn.MaxPool2d(2)),
            nn.Sequential(_conv_bn(256, 512), nn.MaxPool2d(2)), _Pair(512)])
        self.width = 512

    def features(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = self.run(block, x)
        return x.amax((2, 3))


class ResNet11(Net):
    """ResNet-9 with a residual pair in each stage and more channels; pooling comes before the norm, which then
    sees a quarter of the pixels.
    """

    def __init__(self, small: bool, widths: tuple[int, ...] = (128, 384, 512)) -> None:
        super().__init__()
        inside = 64
        blocks = [_conv_bn(3, inside) if small else nn.Sequential(_conv_bn(3, inside, 7, 2), nn.MaxPool2d(3, 2, 1))]
        for width in widths:
            blocks += [nn.Sequential(nn.Conv2d(inside, width, 3, 1, 1, bias=False), nn.MaxPool2d(2),
                                     nn.BatchNorm2d(width), nn.ReLU(inplace=True)), _Pair(width)]
            inside = width
        self.blocks = nn.ModuleList(blocks)
        self.width = inside

    def features(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = self.run(block, x)
        return x.amax((2, 3))


class _Scaled(nn.Linear):
    """A linear layer without bias whose output is divided by 8: softer targets at the start."""

    def __init__(self, inside: int, outside: int) -> None:
        super().__init__(inside, outside, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * 0.125


# ---- ViTs ----------------------------------------------------------------------------------------


class _Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width, 1e-6), nn.LayerNorm(width, 1e-6)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        n, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(n, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.out(mixed.transpose(1, 2).reshape(n, length, width))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


def _positions(rows: int, columns: int, width: int) -> Tensor:
    """Sine and cosine of row and column: positions for any image size, without parameters."""
    steps = torch.exp(-math.log(10000.0) * torch.arange(width // 4) / (width // 4))
    y, x = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
    angles = torch.cat([y.reshape(-1, 1) * steps, x.reshape(-1, 1) * steps], 1)
    return torch.cat([angles.sin(), angles.cos()], 1)


class ViT(Net):
    """Vision transformer; patches of 16 pixels, 4 for small images; mean of the tokens."""

    def __init__(self, width: int, depth: int, heads: int, small: bool) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, width, 4 if small else 16, 4 if small else 16)
        self.blocks = nn.ModuleList([_Block(width, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(width, 1e-6)
        self.width = width
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Conv2d)):
                nn.init.trunc_normal_(module.weight, std=0.02)
                nn.init.zeros_(module.bias)

    def features(self, x: Tensor) -> Tensor:
        x = self.patch(x)
        rows, columns = x.shape[2:]
        x = x.flatten(2).transpose(1, 2)
        x = x + _positions(rows, columns, self.width).to(x.device, x.dtype)
        for block in self.blocks:
            x = self.run(block, x)
        return self.norm(x).mean(1)


# ---- ConvNeXt ------------------------------------------------------------------------------------


class _ChannelNorm(nn.LayerNorm):
    """LayerNorm over the channels of NCHW."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class _NextBlock(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.mix = nn.Conv2d(width, width, 7, 1, 3, groups=width)
        self.norm = nn.LayerNorm(width, 1e-6)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.full((width,), 1e-6))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(self.mix(x).permute(0, 2, 3, 1))
        return x + (self.scale * self.down(nn.functional.gelu(self.up(y)))).permute(0, 3, 1, 2)


class ConvNeXt(Net):
    """ConvNeXt."""

    def __init__(self, depths: tuple[int, ...], widths: tuple[int, ...], small: bool) -> None:
        super().__init__()
        first = 1 if small else 4
        blocks: list[nn.Module] = []
        inside = 3
        for stage, (depth, width) in enumerate(zip(depths, widths)):
            step = first if stage == 0 else 2
            shrink = nn.Conv2d(inside, width, 3 if step == 1 else step, step, 1 if step == 1 else 0)
            norm = _ChannelNorm(width if stage == 0 else inside, 1e-6)
            blocks.append(nn.Sequential(*((shrink, norm) if stage == 0 else (norm, shrink))))
            blocks += [_NextBlock(width) for _ in range(depth)]
            inside = width
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(inside, 1e-6)
        self.width = inside
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Conv2d)):
                nn.init.trunc_normal_(module.weight, std=0.02)
                nn.init.zeros_(module.bias)

    def features(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = self.run(block, x)
        return self.norm(x.mean((2, 3)))


# ---- by name -------------------------------------------------------------------------------------

_BUILT_IN: dict[str, Callable[[bool], Net]] = {
    "resnet9": ResNet9,
    "resnet11": ResNet11,
    "resnet18": lambda small: ResNet((2, 2, 2, 2), False, small),
    "resnet34": lambda small: ResNet((3, 4, 6, 3), False, small),
    "resnet50": lambda small: ResNet((3, 4, 6, 3), True, small),
    "resnet101": lambda small: ResNet((3, 4, 23, 3), True, small),
    "vit_ti": lambda small: ViT(192, 12, 3, small),
    "vit_s": lambda small: ViT(384, 12, 6, small),
    "vit_b": lambda small: ViT(768, 12, 12, small),
    "convnext_t": lambda small: ConvNeXt((3, 3, 9, 3), (96, 192, 384, 768), small),
}


class Foreign(Net):
    """A model of torchvision or timm without its classifier."""

    def __init__(self, body: nn.Module, width: int) -> None:
        super().__init__()
        self.body = body
        self.width = width

    def features(self, x: Tensor) -> Tensor:
        return self.body(x)


def _from_timm(name: str, pretrained: bool) -> Net | None:
    try:
        import timm  # type: ignore[import-not-found]
    except ImportError:
        return None
    if not timm.is_model(name):
        return None
    body = timm.create_model(name, pretrained=pretrained, num_classes=0)
    # some models have a layer between the pooled features and the classifier: MobileNetV3, for example
    return Foreign(body, getattr(body, "head_hidden_size", body.num_features))


def _from_torchvision(name: str, pretrained: bool) -> Net | None:
    try:
        from torchvision import models as zoo  # type: ignore[import-not-found]
    except ImportError:
        return None
    except RuntimeError as e:  # torchvision was built for another torch: its operators are missing
        raise ArgumentError(f"model: torchvision cannot be imported ({e}): install the one that fits torch "
                            f"{torch.__version__}, or remove it") from e
    if name not in zoo.list_models():
        return None
    body = zoo.get_model(name, weights="DEFAULT" if pretrained else None)
    for place in ("fc", "classifier", "head", "heads"):  # attributes in which torchvision keeps the classifier
        last = getattr(body, place, None)
        linear = last if isinstance(last, nn.Linear) else _last_linear(last)
        if linear is None:
            continue
        if last is linear:
            setattr(body, place, nn.Identity())
        else:
            _replace(last, linear)
        return Foreign(body, linear.in_features)
    raise ArgumentError(f"model: torchvision's {name} does not end in a linear layer")


def _last_linear(part: Any) -> nn.Linear | None:
    found = [m for m in part.modules() if isinstance(m, nn.Linear)] if isinstance(part, nn.Module) else []
    return found[-1] if found else None


def _replace(parent: nn.Module, old: nn.Module) -> None:
    for module in parent.modules():
        for name, child in module.named_children():
            if child is old:
                setattr(module, name, nn.Identity())


def backbone(name: str, side: int, *, pretrained: bool = False) -> Net:
    """Returns a model without a head. ``side`` is that of its images: small ones get the small stem."""
    if name in _BUILT_IN and not pretrained:
        return _BUILT_IN[name](side <= SMALL)
    source, _, rest = name.partition("/")
    found = None
    if source in ("timm", "torchvision") and rest:
        found = (_from_timm if source == "timm" else _from_torchvision)(rest, pretrained)
    else:
        found = _from_torchvision(name, pretrained) or _from_timm(name, pretrained)
    if found is not None:
        return found
    raise _unknown(name)


def _unknown(name: str) -> ArgumentError:
    if name in _BUILT_IN:
        return ArgumentError(f"model: there are no trained weights of {name!r} here: give a checkpoint of leat train, a "
                            "TorchScript, exported or ONNX file, or install torchvision or timm")
    near = difflib.get_close_matches(name, _BUILT_IN, 1)
    hint = f"did you mean {near[0]}?" if near else f"built in are {', '.join(_BUILT_IN)}; others need torchvision or timm"
    return ArgumentError(f"model: there is no {name!r} here; {hint}")


def check_name(name: str) -> None:
    """Refuses a name without a trained model; does not build the model."""
    source, _, rest = name.partition("/")
    with contextlib.suppress(ImportError, RuntimeError):
        import timm  # type: ignore[import-not-found]

        if source != "torchvision" and timm.is_model(rest if source == "timm" and rest else name):
            return
    with contextlib.suppress(ImportError, RuntimeError):
        from torchvision import models as zoo  # type: ignore[import-not-found]

        if source != "timm" and (rest if source == "torchvision" and rest else name) in zoo.list_models():
            return
    raise _unknown(name)


def build(name: str, side: int, classes: int, *, checkpointing: bool = False) -> Net:
    """Returns a model with a linear head for ``classes``; without a head when that is 0."""
    net = backbone(name, side)
    if checkpointing and isinstance(net, Foreign):
        raise ArgumentError(f"checkpointing: works with built-in models only, and {name} comes from torchvision or timm")
    net.checkpointing = checkpointing
    if classes > 0:
        net.head = _Scaled(net.width, classes) if isinstance(net, (ResNet9, ResNet11)) else nn.Linear(net.width, classes)
        if isinstance(net, (ViT, ConvNeXt)):
            nn.init.trunc_normal_(net.head.weight, std=0.02)
            nn.init.zeros_(net.head.bias)
    return net


def convolutional(net: nn.Module) -> bool:
    """Returns whether channels_last helps: the model has convolutions besides a patch embedding."""
    return sum(isinstance(m, nn.Conv2d) for m in net.modules()) > 1
