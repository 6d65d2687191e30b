# SPDX-License-Identifier: Apache-2.0
"""`leat.dedup_semantic(device=…)`: the same clusters and the same pairs by PyTorch, on a GPU or on the CPU.

Candidates come from matrix products. The distances that decide are then computed in the order of sums of the C kernel,
without fused operations, so that they have the same bits. What can differ is rounding in the sums of k-means on a GPU:
a row in the middle between two centres may go to the other one.
"""

from __future__ import annotations

import math
import os
import time
from typing import Any

import numpy as np
import torch
from torch import Tensor

from . import _check
from ._dataset import Dataset
from ._errors import ArgumentError, BudgetError, ExistsError
from ._loader import Loader
from ._pack import Progress
from ._writer import Writer

_LANES, _ROUNDS, _PER_CENTRE = 16, 10, 32  # as in src/dsp/distance.h, src/curate/kmeans.c and semantic_dedup.c
_NEAREST = 4  # candidates of a row whose distances are computed exactly
_SLACK = 1e-5  # error of a matrix product of unit vectors in float32
_TILE, _WIDE = 4096, 32768  # rows compared at a time, and the rows that they are compared with
_THRESHOLD = 0.95
_FIELDS = {"cluster": int, "keep": int, "duplicate_of": int, "similarity": float}


def _exact(a: Tensor, b: Tensor) -> Tensor:
    """Computes squared distances of vectors, as sixteen partial sums that are added in a fixed order."""
    square = (a - b).square()
    lanes = torch.zeros((*square.shape[:-1], _LANES), dtype=torch.float32, device=square.device)
    for i in range(0, square.shape[-1], _LANES):
        lanes = lanes + square[..., i:i + _LANES]
    half = lanes[..., :8] + lanes[..., 8:]
    half = half[..., :4] + half[..., 4:]
    return (half[..., 0] + half[..., 2]) + (half[..., 1] + half[..., 3])


def _scores(rows: Tensor, others: Tensor) -> Tensor:
    """Returns scores that are higher for nearer vectors; centres need not be of unit length."""
    return torch.addmm(-0.5 * others.square().sum(1)[None, :], rows, others.T)


def _search(rows: Tensor, others: Tensor, score: Tensor) -> tuple[Tensor, Tensor]:
    """Finds the nearest of all allowed others by exact distances; for the few rows with many candidates."""
    of, distance = [], []
    for row, own in zip(rows, score):
        every = torch.where(torch.isinf(own), math.inf, _exact(row[None, :], others))
        distance.append(every.min())
        of.append((every == distance[-1]).int().argmax())
    return torch.stack(of), torch.stack(distance)


def _choose(rows: Tensor, others: Tensor, score: Tensor) -> tuple[Tensor, Tensor]:
    """Finds the nearest of `others` for each row, the first of equally near ones, and its squared distance.

    `score` ranks them up to rounding; it is -inf for rows that are not allowed.
    """
    best, at = score.topk(min(_NEAREST, score.shape[1]), 1)
    at = at.sort(1).values
    distance = torch.where(torch.isinf(score.gather(1, at)), math.inf, _exact(rows[:, None, :], others[at]))
    least = distance.min(1).values
    of = at.gather(1, (distance == least[:, None]).int().argmax(1, keepdim=True))[:, 0]
    crowded = ((score >= best[:, :1] - _SLACK).sum(1) > _NEAREST) & ~torch.isinf(best[:, 0])
    if crowded.any():
        of[crowded], least[crowded] = _search(rows[crowded], others, score[crowded])
    return of, least


def _nearest(rows: Tensor, centres: Tensor) -> tuple[Tensor, Tensor]:
    of, distance = [], []
    for part in rows.split(_TILE):
        found = _choose(part, centres, _scores(part, centres))
        of.append(found[0])
        distance.append(found[1])
    return torch.cat(of), torch.cat(distance)


def _means(rows: Tensor, of: Tensor, centres: Tensor) -> Tensor:
    """Returns the mean of the rows of each centre, at unit length; a centre without rows stays."""
    total = torch.zeros(centres.shape, dtype=torch.float64, device=rows.device)
    for part, to in zip(rows.split(1 << 16), of.split(1 << 16)):
        total.index_add_(0, to, part.double())
    length = total.square().sum(1, keepdim=True)
    return torch.where(length > 0, total * (1 / length.clamp_min(1e-300).sqrt()), centres.double()).float()


def _train(sample: Tensor, count: int, tell: Any) -> Tensor:
    """Finds the centres of spherical k-means, beginning with evenly spaced rows."""
    centres = sample[torch.arange(count, device=sample.device) * len(sample) // count].clone()
    for _ in range(_ROUNDS if count > 1 else 0):
        of, distance = _nearest(sample, centres)
        centres = _means(sample, of, centres)
        for empty in (torch.bincount(of, minlength=count) == 0).nonzero()[:, 0].tolist():
            far = int((distance == distance.max()).int().argmax())
            centres[empty] = sample[far]
            distance[far] = 0
        tell(0)
    return centres


def _unit(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns vectors at unit length, and which rows have a vector: zeros and values that are not finite do not count."""
    wide = rows.astype(np.float64)
    with np.errstate(over="ignore"):
        length = np.cumsum(wide * wide, 1)[:, -1]  # added in order, as the C code does
    found = np.isfinite(length) & (length > 0)
    padded = np.zeros((int(found.sum()), -(-rows.shape[1] // _LANES) * _LANES), np.float32)
    padded[:, :rows.shape[1]] = wide[found] * (1 / np.sqrt(length[found]))[:, None]
    return padded, found


def _vectors(path: str, name: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Returns the vectors of a pack at unit length, and which of its rows have a vector."""
    with Dataset(path) as pack:
        names = [f.name for f in pack.fields if f.type == "array" and f.shape is not None and len(f.shape) == 1
                 and str(f.dtype).startswith("float")]
        if name is None and len(names) > 1:
            raise ArgumentError(f"{path}: has several fields of vectors ({', '.join(names)}): name the field")
        if name is not None and name not in names or not names:
            raise ArgumentError(f"{path}: has no field of vectors (leat embed writes them)" if not names else
                                f"{path}: '{name}' is not a field of vectors; there is {', '.join(names)}")
        name = name or names[0]
        if not len(pack):
            return np.zeros((0, _LANES), np.float32), np.zeros(0, bool)
    rows, found = [], []
    with Loader(path, 4096, fields=[name], order="sequential", drop_last=False, as_="numpy") as loader:
        for batch in loader:
            for made, of in zip(_unit(np.asarray(batch[name])), (rows, found)):
                of.append(made)
    return np.concatenate(rows), np.concatenate(found)


def _order(of: np.ndarray, distance: np.ndarray, keep: str) -> np.ndarray:
    """Returns the rows cluster by cluster, in the order in which they are kept."""
    row = np.arange(len(of))
    return np.lexsort((row, of) if keep == "first" else (row, -distance if keep == "outer" else distance, of))


def _earlier(part: Tensor, own: Tensor, at: int) -> tuple[Tensor, Tensor]:
    """Finds the nearest earlier row of the cluster for each row of a part, which begins at `at`, and its squared distance."""
    number = at + torch.arange(len(part), device=part.device)
    to, distance = torch.zeros_like(number), torch.full((len(part),), math.inf, device=part.device)
    for begin in range(0, at + len(part), _WIDE):
        others = own[begin:min(begin + _WIDE, at + len(part))]
        score = _scores(part, others)
        score.masked_fill_(begin + torch.arange(len(others), device=part.device)[None, :] >= number[:, None], -math.inf)
        found, near = _choose(part, others, score)
        to = torch.where(near < distance, begin + found, to)
        distance = torch.minimum(near, distance)
    return to, distance


def _compare(rows: Tensor, of: np.ndarray, order: np.ndarray, tell: Any) -> tuple[np.ndarray, np.ndarray, int, int]:
    """Returns the similarity to the most similar earlier row of the cluster, that row (-1: none), pairs, the largest cluster."""
    similarity, near = np.full(len(of), -1, np.float32), np.full(len(of), -1, np.int64)
    ends = np.flatnonzero(np.diff(of[order], append=-1)) + 1
    pairs = largest = begin = 0
    for end in ends.tolist():
        members = order[begin:end]
        own = rows[torch.from_numpy(members).to(rows.device)]
        for at in range(0, len(members), _TILE):
            part = own[at:at + _TILE]
            to, distance = _earlier(part, own, at)
            mine = members[at:at + len(part)]
            similarity[mine] = (1 - distance / 2).cpu().numpy()
            near[mine] = members[to.cpu().numpy()]
        similarity[members[0]], near[members[0]] = -1, -1
        pairs += len(members) * (len(members) - 1) // 2
        largest = max(largest, len(members))
        begin = end
        tell(len(of) // 2 + end // 2)
    return similarity, near, pairs, largest


def _decide(similarity: np.ndarray, near: np.ndarray, threshold: float | None, share: float | None) -> tuple[np.ndarray, float, int]:
    """Decides which rows are removed. Also returns the threshold, and how many rows were asked for."""
    if share is None:
        least = _THRESHOLD if threshold is None else threshold
        return (near >= 0) & (similarity.astype(np.float64) >= least), least, 0
    asked = int(share * len(near) + 0.5)
    order = np.lexsort((-np.arange(len(near)), -similarity.astype(np.float64)))[:len(near) - asked]
    gone = order[np.cumprod(near[order] >= 0, dtype=bool)] if len(order) else order
    removed = np.zeros(len(near), bool)
    removed[gone] = True
    return removed, float(similarity[gone[-1]]) if len(gone) else 1.0, asked


def _kept(removed: np.ndarray, near: np.ndarray) -> np.ndarray:
    """Returns the kept row for each removed one; -1 for kept rows."""
    to = np.where(removed, near, np.arange(len(near)))
    while True:
        further = to[to]
        if np.array_equal(further, to):
            return np.where(removed, to, -1)
        to = further


def _spread(values: np.ndarray, found: np.ndarray, missing: int) -> np.ndarray:
    """Returns a column of the pack: the values of rows with a vector, and `missing` for the others."""
    column = np.full(len(found), missing, values.dtype)
    column[found] = values
    return column


def _device(device: str) -> torch.device:
    try:
        made = torch.device(_check.text("device", device))
        torch.zeros(1, device=made)
    except (RuntimeError, AssertionError) as error:
        raise ArgumentError(f"device: {device!r} cannot be used here: {str(error).splitlines()[0]}") from None
    return made


def _fits(made: torch.device, count: int, dim: int) -> None:
    if made.type != "cuda":
        return
    free, need = torch.cuda.mem_get_info(made)[0], 4 * count * dim + 16 * _TILE * _WIDE
    if need > free:
        raise BudgetError(f"{count} rows need {need} bytes of GPU memory, {free} are free: leave out device to run on the CPU, which can read vectors from disk")


def _write(output: str, source: str, columns: dict[str, np.ndarray], force: bool, sync: bool) -> None:
    with Dataset(source) as pack:
        about = pack.provenance.get("source", pack.provenance) if isinstance(pack.provenance, dict) else {}
        passed = {name: about[name] for name in ("fingerprint", "packs") if name in about}
        with Writer(output, _FIELDS, replace=force, sync=sync, provenance={"kind": "leat dedup semantic 1", **passed}) as out:
            for key, *values in zip(pack.keys, *(column.tolist() for column in columns.values())):
                out.append(values, key=key)


def run(source: str, output: str, *, device: str, threshold: float | None, keep_share: float | None, keep: str, clusters: int,
        field: str | None, force: bool, sync: bool, progress: Progress | None) -> dict[str, Any]:
    """Runs `leat.dedup_semantic` in PyTorch; returns the same report."""
    begin, cpu = time.monotonic(), time.process_time()
    if os.path.lexists(output) and not force:
        raise ExistsError(f"{output}: already exists")
    if os.path.exists(output) and os.path.samefile(output, source):
        raise ArgumentError(f"{output}: is also an input")
    if keep_share is not None and threshold is not None:
        raise ArgumentError("give either threshold or keep_share, not both")
    made = _device(device)
    data, found = _vectors(source, field)
    count = len(data)

    def tell(done: int) -> None:
        if progress is not None:
            progress(done, count, 0, 0)

    with torch.inference_mode():
        torch.backends.cuda.matmul.allow_tf32 = False
        _fits(made, *data.shape)
        rows = torch.from_numpy(data).to(made)
        centres = min(max(clusters or int(math.sqrt(count)), 1), max(count, 1))
        sample = min(count, centres * _PER_CENTRE)
        of, distance = np.zeros(count, np.int64), np.zeros(count, np.float32)
        if count:
            taken = torch.arange(sample, device=made) * count // sample
            centre = _train(rows[taken], centres, tell)
            to, near = _nearest(rows, centre)
            if keep != "first":
                centre = _means(rows, to, centre)
                near = torch.cat([_exact(part, centre[of]) for part, of in zip(rows.split(_WIDE), to.split(_WIDE))])
            of, distance = to.cpu().numpy(), near.cpu().numpy()
            tell(count // 2)
        similarity, nearest, pairs, largest = _compare(rows, of, _order(of, distance, keep), tell)
    removed, least, asked = _decide(similarity, nearest, threshold, keep_share)
    in_pack, kept = np.flatnonzero(found), _kept(removed, nearest)
    _write(output, source, {"cluster": _spread(of, found, -1), "keep": _spread((~removed).astype(np.int64), found, 1),
                            "duplicate_of": _spread(np.where(kept < 0, -1, in_pack[kept]), found, -1) if count else _spread(kept, found, -1),
                            "similarity": _spread(similarity.astype(np.float64), found, -1)}, force, sync)
    return {"samples": len(found), "kept": count - int(removed.sum()), "removed": int(removed.sum()), "without_vector": len(found) - count,
            "asked": asked, "threshold": least, "clusters": centres, "largest": largest, "pairs": pairs, "in_memory": True, "plan_memory": data.nbytes,
            "seconds": time.monotonic() - begin, "cpu_seconds": time.process_time() - cpu}
