# SPDX-License-Identifier: Apache-2.0
"""Evaluation: every sample once, summed over ranks in whole numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from .._loader import Loader
from .distributed import Ranks

Forward = Callable[[Tensor], Tensor]


def views(image: Tensor, flip: bool, shift: bool) -> Iterator[Tensor]:
    """Yields the image, its mirror image, and both moved by a pixel in each of eight directions."""
    places = [(0, 0)]
    padded = image
    if shift:
        padded = F.pad(image, (1, 1, 1, 1), mode="reflect")
        places = [(y, x) for y in range(3) for x in range(3)]
    for y, x in places:
        moved = padded[:, :, y:y + image.shape[2], x:x + image.shape[3]]
        yield moved
        if flip:
            yield moved.flip(3)


def classify(forward: Forward, loader: Loader, label: str, classes: int, ranks: Ranks, *,
             flip: bool = False, shift: bool = False) -> dict[str, Any]:
    """Returns top-1, top-5, mean loss and the confusion matrix (rows: true class), averaged over the views."""
    device = ranks.device
    confusion = torch.zeros(classes * classes, dtype=torch.int64, device=device)
    counts = torch.zeros(3, dtype=torch.int64, device=device)  # samples, right, among five
    loss = torch.zeros(1, dtype=torch.float64, device=device)
    with torch.inference_mode():
        for batch in loader:
            image, truth = batch["view0"].to(device), batch[label].to(device)
            if not len(truth):
                continue
            out = torch.stack([forward(view).float() for view in views(image, flip, shift)]).mean(0)
            best = out.topk(min(5, classes), 1).indices
            right = best == truth[:, None]
            counts += torch.stack([torch.tensor(len(truth), device=device), right[:, 0].sum(), right.any(1).sum()])
            confusion += torch.bincount(truth * classes + best[:, 0], minlength=classes * classes)
            loss += F.cross_entropy(out, truth, reduction="sum").double()
    ranks.sum(counts), ranks.sum(confusion), ranks.sum(loss)
    samples, right, five = counts.tolist()
    return {"samples": samples, "top1": right / max(samples, 1), "top5": five / max(samples, 1),
            "val_loss": loss.item() / max(samples, 1), "confusion": confusion.view(classes, classes).tolist()}


def features(forward: Forward, loader: Loader, label: str | None, ranks: Ranks) -> tuple[Tensor, Tensor]:
    """Returns feature vectors and labels of all samples, on every rank, in the order of the pack."""
    vectors, labels, ids = [], [], []
    with torch.inference_mode():
        for batch in loader:
            if len(batch.sample_id):
                vectors.append(forward(batch["view0"].to(ranks.device)).float())
                ids.append(torch.as_tensor(batch.sample_id).to(ranks.device, torch.int64))
                if label is not None:
                    labels.append(batch[label].to(ranks.device))
    found = torch.cat(vectors) if vectors else torch.zeros(0, 1, device=ranks.device)
    place = torch.cat(ids) if ids else torch.zeros(0, dtype=torch.int64, device=ranks.device)
    truth = torch.cat(labels) if labels else torch.full_like(place, -1)
    if ranks.world > 1:
        pieces = ranks.gather((found.cpu(), place.cpu(), truth.cpu()))
        found, place, truth = (torch.cat([p[i] for p in pieces if len(p[1])]).to(ranks.device) for i in range(3))
    order = place.argsort()
    return found[order].clone(), truth[order].clone()


def knn(bank: Tensor, bank_label: Tensor, query: Tensor, query_label: Tensor, classes: int,
        k: int, temperature: float = 0.07) -> float:
    """Returns the share of queries whose k nearest neighbours (cosine, weighted) vote for their class."""
    bank, query = F.normalize(bank, dim=1), F.normalize(query, dim=1)
    right = 0
    for first in range(0, len(query), 1024):
        near, index = (query[first:first + 1024] @ bank.T).topk(min(k, len(bank)), 1)
        votes = torch.zeros(len(near), classes, device=bank.device)
        votes.scatter_add_(1, bank_label[index], (near / temperature).exp())
        right += int((votes.argmax(1) == query_label[first:first + 1024]).sum())
    return right / max(len(query), 1)


def probe(bank: Tensor, bank_label: Tensor, query: Tensor, query_label: Tensor, classes: int,
          epochs: int, seed: int) -> float:
    """Returns the accuracy of a linear classifier that is trained on fixed features."""
    mean, std = bank.mean(0), bank.std(0).clamp_min(1e-6)
    bank, query = (bank - mean) / std, (query - mean) / std
    generator = torch.Generator().manual_seed(seed)
    layer = torch.nn.Linear(bank.shape[1], classes).to(bank.device)
    torch.nn.init.zeros_(layer.weight)
    torch.nn.init.zeros_(layer.bias)
    optimizer = torch.optim.SGD(layer.parameters(), 0.1, 0.9, weight_decay=1e-4)
    size = min(256, len(bank))
    steps = max(epochs * (len(bank) // size), 1)
    done = 0
    for _ in range(epochs):
        order = torch.randperm(len(bank), generator=generator).to(bank.device)
        for first in range(0, len(bank) - size + 1, size):
            rows = order[first:first + size]
            for group in optimizer.param_groups:
                group["lr"] = 0.1 * (1 - done / steps)
            loss = F.cross_entropy(layer(bank[rows]), bank_label[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            done += 1
    with torch.no_grad():
        return float((layer(query).argmax(1) == query_label).double().mean())
