# SPDX-License-Identifier: Apache-2.0
"""How well `leat check --labels` ranks labels that were changed at random, and what selections of a tenth are worth.

    python bench/labels_noise.py train --train train.leat --work FOLDER [--epochs 5]
    python bench/labels_noise.py labels --train train.leat --work FOLDER --vectors tiny.leat [FOLDER/vectors.leat] [--logits FOLDER/logits.leat]
    python bench/labels_noise.py select --train train.leat --test test.leat --with SELECTION.leat … [--seeds 0 1 2]

5 % of the labels of the pack become another class (a fixed seed). `train` trains a small network on these labels with
leat.train, and writes its vectors and logits. `labels`: the average precision is that of the column `suspicion` over all
rows, where the changed ones are what is to be found; chance is 0.05. `select`: trains the same network on the selected
rows and on as many random ones, and reports top-1 on the test pack. Reports tables in Markdown.
"""
import argparse
import os

import leat
import numpy as np

EPOCHS = 10
WIDTHS = (32, 64, 128)


def noisy(path, share, work):
    """A pack of keys and labels, a share of them changed, beside the pack. Which rows were changed."""
    data = leat.open(path)
    labels, classes = data.column("label").copy(), data.classes()
    draw = np.random.default_rng(11)
    changed = np.sort(draw.choice(len(labels), round(share * len(labels)), replace=False))
    labels[changed] = (labels[changed] + draw.integers(1, len(classes), len(changed))) % len(classes)
    out = os.path.join(work, "noisy.leat")
    if not os.path.exists(out):
        with leat.Writer(out, {"image": "image", "label": int}, classes={"label": classes}, sync=False, replace=True) as w:
            for i, label in enumerate(labels.tolist()):
                w.append({"image": data[i]["image"], "label": label}, key=data.keys[i])
    return out, changed


def average_precision(score, wrong):
    order = np.argsort(-score, kind="stable")
    hit = np.zeros(len(score), bool)
    hit[wrong] = True
    hit = hit[order]
    return float((np.cumsum(hit) / np.arange(1, len(hit) + 1))[hit].mean())


def rank_labels(a, work):
    pack, changed = noisy(a.train, a.share, work)
    if not a.vectors and not a.logits:
        a.vectors = [os.path.join(work, "tiny.leat")]
        leat.embed(pack, output=a.vectors[0], quiet=True, force=True)
    print("| ranking by | average precision | listed | of them changed | first 1,000: changed |\n|---|---|---|---|---|", flush=True)
    for path, kind in [(p, "embeddings") for p in a.vectors] + [(p, "predictions") for p in a.logits]:
        out = os.path.join(work, "labels.leat")
        done = leat.check(pack, out, labels=True, force=True, sync=False, **{kind: path})
        found = leat.open(out)
        suspicion, rank = found.column("suspicion"), found.column("rank")
        listed = np.flatnonzero(rank >= 0)
        first = np.argsort(-suspicion, kind="stable")[:1000]
        print(f"| {os.path.basename(path)} | {average_precision(suspicion, changed):.3f} | {done['wrong']} | "
              f"{np.isin(listed, changed).mean():.1%} | {np.isin(first, changed).mean():.1%} |", flush=True)


def pixels(path, rows=None):
    import torch
    with leat.Loader(path, 500, image=[leat.ops.Resize((32, 32))], order="sequential", drop_last=False, as_="numpy", threads=1,
                     **({} if rows is None else {"indices": np.asarray(rows)})) as loader:
        found = [(np.array(b["image"]), np.array(b["label"])) for b in loader]
    image, label = (torch.from_numpy(np.concatenate(part)) for part in zip(*found))
    return (image.float() / 255 - 0.47) / 0.25, label


def small_net(small=True):
    """Three convolutions of stride 2, as a model of leat.train."""
    from leat._train import models
    from torch import nn

    class Small(models.Net):
        width = WIDTHS[-1]

        def __init__(self):
            super().__init__()
            layers = []
            for before, after in zip((3, *WIDTHS), WIDTHS):
                layers += [nn.Conv2d(before, after, 3, 2, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
            self.body = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())

        def features(self, x):
            return self.body(x)

    return Small()


def train_noisy(a):
    import torch
    from leat._train import models
    torch.set_num_threads(a.threads)
    models._BUILT_IN["small_net"] = small_net
    pack, _ = noisy(a.train, a.share, a.work)
    run = os.path.join(a.work, "run")
    done = leat.train(pack, output=run, model="small_net", epochs=a.epochs, batch_size=256, image_size=32, lr=0.1, weight_decay=5e-4,
                      schedule="onecycle", tensorboard=False, quiet=True, threads=1, force=True, accelerator="cpu")
    print({name: done[name] for name in ("loss", "epochs", "seconds") if name in done}, flush=True)
    for name, more in (("vectors", {}), ("logits", {"logits": True})):
        leat.embed(pack, model=run, output=os.path.join(a.work, f"{name}.leat"), quiet=True, force=True, threads=1, accelerator="cpu", **more)


def train(x, y, seed):
    import torch
    torch.manual_seed(seed)
    model = small_net()
    model.head = torch.nn.Linear(model.width, 10)
    steps = len(x) // 100
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, EPOCHS * steps)
    for _ in range(EPOCHS):
        order = torch.randperm(len(x))
        for i in range(steps):
            take = order[100 * i:100 * i + 100]
            batch = x[take].flip(3) if torch.rand(()) < 0.5 else x[take]
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(batch), y[take]).backward()
            optimizer.step()
            schedule.step()
    return model.eval()


def accuracy(model, x, y):
    import torch
    with torch.no_grad():
        return sum((model(x[i:i + 500]).argmax(1) == y[i:i + 500]).sum().item() for i in range(0, len(x), 500)) / len(x)


def compare_selections(a):
    import torch
    torch.set_num_threads(a.threads)
    test = pixels(a.test)
    total = len(leat.open(a.train))
    count = int(leat.open(a.selections[0]).column("selected").sum()) if a.selections else total // 10
    runs = [("random", None)] * (not a.no_random) + [(path, path) for path in a.selections]
    print("| selection | " + " | ".join(f"seed {s}" for s in a.seeds) + " | rows of the largest and smallest class |\n|---|"
          + "---|" * len(a.seeds) + "---|", flush=True)
    labels = leat.open(a.train).column("label")
    for name, path in runs:
        cells = []
        for seed in a.seeds:
            rows = (np.sort(np.random.default_rng(seed).choice(total, count, replace=False)) if path is None
                    else np.flatnonzero(leat.open(path).column("selected")))
            cells.append(f"{100 * accuracy(train(*pixels(a.train, rows), seed), *test):.2f}")
            classes = np.bincount(labels[rows])
        print(f"| {os.path.basename(name)} | {' | '.join(cells)} | {classes.max()}, {classes.min()} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("train", "labels", "select"))
    parser.add_argument("--train", required=True)
    parser.add_argument("--test")
    parser.add_argument("--share", type=float, default=0.05)
    parser.add_argument("--work", default=".")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--vectors", nargs="*", default=[])
    parser.add_argument("--logits", nargs="*", default=[])
    parser.add_argument("--with", dest="selections", nargs="*", default=[])
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--no-random", action="store_true")
    a = parser.parse_args()
    os.makedirs(a.work, exist_ok=True)
    if a.what == "labels":
        rank_labels(a, a.work)
    else:
        (train_noisy if a.what == "train" else compare_selections)(a)


main()
