# SPDX-License-Identifier: Apache-2.0
"""leat.train: options, what a run writes, memory, bad input. Tiny models and packs, on the CPU."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest

import leat

torch = pytest.importorskip("torch")
if os.environ.get("TORCH") == "0":
    pytest.skip("TORCH=0", allow_module_level=True)

import train_run  # noqa: E402
from leat._train import checkpoint, data, evaluate, loop, models, optim, options, plan, report  # noqa: E402
from leat._train.distributed import Ranks  # noqa: E402


def make_pack(path, samples, seed=0, side=16, classes=3, label=True):
    draw = np.random.default_rng(seed)
    fields = {"image": "image", "label": int} if label else {"image": "image"}
    names = {"label": [f"c{i}" for i in range(classes)]} if label else None
    with leat.Writer(path, fields, classes=names, sync=False) as w:
        for i in range(samples):
            pixels = draw.integers(0, 80, (side, side, 3)).astype(np.uint8)
            pixels[..., i % classes % 3] += 120
            w.append({"image": pixels, "label": i % classes} if label else {"image": pixels}, key=f"{i:05d}")
    return str(path)


@pytest.fixture(scope="session")
def packs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("train")
    return {"train": make_pack(folder / "train.leat", 50, 0), "val": make_pack(folder / "val.leat", 31, 1),
            "bare": make_pack(folder / "bare.leat", 20, 2, label=False)}


TINY = {"model": "tiny_resnet", "epochs": 2, "batch_size": 8, "quiet": True, "tensorboard": False, "lr": 2.0, "threads": 1}


def test_a_run_learns_and_writes_what_it_promises(packs, tmp_path):
    result = leat.train(packs["train"], val=packs["val"], output=tmp_path, **{**TINY, "epochs": 6}, ema=0.5, tta=True,
                        log_every=2)
    assert result["epochs"] == 6 and result["steps"] == 36
    assert result["top1"] > 0.9 and result["top5"] == 1.0 and result["samples"] == 31
    assert {"checkpoints", "config.json", "metrics.jsonl", "report.html", "result.json"} <= set(os.listdir(tmp_path))
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [r["step"] for r in rows if r["kind"] == "eval"] == [6, 12, 18, 24, 30, 36]
    losses = [r["loss"] for r in rows if r["kind"] == "train"]
    assert losses[-1] < losses[0]
    page = (tmp_path / "report.html").read_text()
    assert page.count("<svg") >= 5 and "Confusion" in page and "<script" not in page and "http" not in page
    weights = checkpoint.read_tensors(tmp_path / "checkpoints/last/model.safetensors")
    average = {n: t for n, t in train_run.final(tmp_path).items() if n.startswith("average.")}
    assert all(torch.equal(average[f"average.{n}"], t) for n, t in weights.items())


def test_safetensors_are_those_of_the_package(tmp_path):
    tensors = {"a": torch.randn(3, 4), "b.c": torch.arange(5), "half": torch.randn(2, 2).bfloat16(),
               "none": torch.zeros(0, 3), "flag": torch.tensor([True, False]), "scalar": torch.tensor(2.5)}
    checkpoint.write_tensors(tmp_path / "x.safetensors", tensors)
    theirs = pytest.importorskip("safetensors.torch").load_file(tmp_path / "x.safetensors")
    mine = checkpoint.read_tensors(tmp_path / "x.safetensors")
    assert theirs.keys() == mine.keys() == tensors.keys()
    for name, t in tensors.items():
        assert mine[name].dtype == t.dtype and torch.equal(mine[name], t) and torch.equal(theirs[name], t)


@pytest.mark.parametrize("damage", ["short", "header", "length", "offsets"])
def test_a_damaged_checkpoint_is_one_line(tmp_path, damage):
    path = str(tmp_path / "x.safetensors")
    checkpoint.write_tensors(path, {"a": torch.ones(4)})
    whole = open(path, "rb").read()
    broken = {"short": whole[:-4], "header": whole[:8] + b"!" + whole[9:], "length": b"\xff" * 8 + whole[8:],
              "offsets": whole.replace(b"[0,16]", b"[0,99]")}[damage]
    open(path, "wb").write(broken)
    with pytest.raises(leat.DataError, match="not a complete safetensors file"):
        checkpoint.read_tensors(path)


def test_the_table_is_one_for_flags_files_and_arguments(tmp_path):
    assert options.table("train")["batch_size"].default == 256
    assert options.table("train")["scale_lr"].default is True
    assert "label-smoothing" in subprocess.run([sys.executable, "-P", "-m", "leat", "train", "--help"], capture_output=True,
                                               text=True, check=True).stdout
    assert "label_smoothing" in leat.train.__doc__
    config = tmp_path / "c.yaml"
    config.write_text("batch-size: 7\nmixup: 0.2\ncompile: off\n")
    o = options.resolve("train", {"config": str(config), "mixup": 0.5}, {"epochs": 3, "mixup": 9.0})
    assert (o.batch_size, o.mixup, o.epochs, o.compile) == (7, 0.5, 3, "off")


@pytest.mark.parametrize("text, message", [
    ("batchsize: 7", "no option 'batchsize'; did you mean 'batch_size'"),
    ("batch_size: 0", "batch_size: 0 is out of range"),
    ("model: !!python/object/apply:os.system ['touch pwned']", "python/object"),
    ("- a", "'name: value'"), ("epochs: 1.5", "not a whole number"), ("precision: 8", "is not one of auto, 32")])
def test_a_bad_config_is_named(tmp_path, text, message):
    config = tmp_path / "c.yaml"
    config.write_text(text)
    with pytest.raises(leat.ArgumentError, match=message) as caught:
        options.resolve("train", {"config": str(config)})
    assert "c.yaml" in str(caught.value) and "\n" not in str(caught.value)
    assert not os.path.exists("pwned")


def test_a_config_needs_no_other_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)  # import yaml fails
    config = tmp_path / "c.yaml"
    config.write_text("# a comment\na: 12\nb: -1e-3\nc: 'off'\nd: off\ne: ~\nf: [x, 0x10, 0o17, .5, .inf, 1_000]\ng: {1: '2', y-z: true}\nh-i: |\n  text\n")
    assert options.read_config(str(config)) == {"a": 12, "b": -1e-3, "c": "off", "d": False, "e": None, "f": ["x", 16, 15, 0.5, math.inf, 1000],
                                                "g": {"1": "2", "y-z": True}, "h_i": "text\n"}
    config.write_text('{"batch_size": 7,\n\t"scale_lr": false, "model": "a\\u00e4"}')
    assert options.read_config(str(config)) == {"batch_size": 7, "scale_lr": False, "model": "a\u00e4"}
    for text, message in (("a: 1\nb: ]\n", "c.yaml:2: did not find expected node content"), ("a: 1\n---\nb: 2\n", "c.yaml:2: a second document begins here"), ("a: 1\na: 2\n", "c.yaml:2: 'a' appears twice"),
                          ("a: 1\nb: \x07\n", "c.yaml:2: control characters are not allowed"), ("a: 1\n? [b]\n: 2\n", "c.yaml:2: a key must be a single value"),
                          ("a: &a [*a]\n", "c.yaml:1: .*nested too deeply"), ("a-b: 1\na_b: 2\n", "'a_b' appears twice")):
        config.write_text(text)
        with pytest.raises(leat.ArgumentError, match=message):
            options.read_config(str(config))


def test_bad_input_is_one_line(packs, tmp_path):
    def fails(kind, message, *args, **changed):
        with pytest.raises(kind, match=message) as caught:
            leat.train(*(args or (packs["train"],)), output=tmp_path / "o", **{**TINY, **changed})
        assert "\n" not in str(caught.value)

    fails(leat.ArgumentError, "no 'resnet5' here; did you mean resnet50", model="resnet5")
    fails(leat.ArgumentError, "has the label 2, but there are 2 classes", classes=2)
    fails(leat.ArgumentError, "has no int field 'label'", packs["bare"])
    fails(leat.ArgumentError, "distill needs one", method="distill")
    fails(leat.ArgumentError, "mixup: has no effect with method simclr", method="simclr", mixup=0.2)
    fails(leat.ArgumentError, "teacher: has no effect with method supervised", teacher="x.pt")
    for name, value in (("knn", 5), ("probe", 2), ("tta", True), ("eval_every", 3)):
        fails(leat.ArgumentError, f"{name}: needs val", val=None, **{name: value})
    fails(leat.NotFoundError, "nowhere", str(tmp_path / "nowhere.leat"))
    fails(leat.ArgumentError, "no CUDA device", accelerator="cuda") if not torch.cuda.is_available() else None
    other = make_pack(tmp_path / "four.leat", 12, classes=4)
    fails(leat.ArgumentError, "has 4 classes", val=other)
    with leat.Writer(tmp_path / "names.leat", {"image": "image", "label": int}, classes={"label": ["c0", "x", "c2"]}, sync=False) as w:
        for i in range(12):
            w.append({"image": np.full((16, 16, 3), i, np.uint8), "label": i % 3}, key=str(i))
    fails(leat.ArgumentError, "class 1 is 'x' there and 'c1' here", val=tmp_path / "names.leat")
    leat.train(packs["train"], output=tmp_path / "o", **TINY, max_steps=1)
    fails(leat.ExistsError, "has checkpoints already")
    fails(leat.ArgumentError, "is of another model: model is 'tiny_resnet'", model="resnet9", resume=True)
    fails(leat.ArgumentError, "was trained on another pack", packs["val"], resume=True)
    fails(leat.ArgumentError, "was trained with sgd, not lamb", resume=True, optimizer="lamb")


def test_a_finished_run_says_so(packs, tmp_path, capfd):
    def said(**changed):
        leat.train(packs["train"], output=tmp_path / "o", **{**TINY, "quiet": False, **changed})
        return capfd.readouterr().err

    assert "is finished" not in said(epochs=1)
    assert "the run is finished, nothing is left to train: a larger number of epochs (1 so far) trains longer" in said(epochs=1, resume=True)
    assert "is finished" not in said(epochs=2, resume=True)
    updates = json.loads((tmp_path / "o" / "result.json").read_text())["steps"]
    assert f"a larger number of max_steps ({updates} so far) trains longer" in said(epochs=3, max_steps=updates, resume=True)


def test_a_folder_takes_one_run_at_a_time(packs, tmp_path):
    import fcntl

    os.mkdir(tmp_path / "o")
    with open(tmp_path / "o" / ".lock", "w", encoding="utf-8") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(leat.ExistsError, match="another run is writing there"):
            leat.train(packs["train"], output=tmp_path / "o", **TINY, max_steps=1)
        assert os.listdir(tmp_path / "o") == [".lock"]
    leat.train(packs["train"], output=tmp_path / "o", **TINY, max_steps=1)


def test_the_learning_rate_is_for_the_samples_of_an_update(packs, tmp_path, capfd):
    samples = len(leat.open(packs["train"]))
    leat.train(packs["train"], output=tmp_path / "o", optimizer="sgd", max_steps=1,
               **{**TINY, "batch_size": 100000, "lr": 0.5, "quiet": False})
    said = capfd.readouterr().err
    assert f"learning rate {0.5 * samples / 256:g} (" in said and f"only {samples} samples" in said, said


def test_the_command_names_its_own_options(packs, tmp_path):
    done = subprocess.run([sys.executable, "-P", "-m", "leat", "train", packs["train"], "-o", str(tmp_path / "o"), "--knn", "5"],
                          capture_output=True, text=True)
    assert done.returncode == 2 and "leat train: --knn: needs --val" in done.stderr, done


def test_out_of_memory_halves_the_batch_and_keeps_the_update(packs, tmp_path, monkeypatch, capfd):
    def out(name, limit, **changed):
        class Short(train_run.Tiny):
            def features(self, x):
                if len(x) > limit and self.training:
                    raise torch.OutOfMemoryError("CUDA out of memory")
                return super().features(x)

        monkeypatch.setitem(models._BUILT_IN, "tiny_resnet", Short)
        return leat.train(packs["train"], output=tmp_path / name, **{**TINY, "quiet": False, **changed})

    assert out("short", 3)["batch_size"] == 2
    said = capfd.readouterr().err
    assert "a batch of 8 does not fit; continuing with 4" in said and "accumulated over 4 steps" in said
    assert out("whole", 99, max_steps=1)["batch_size"] == 8
    with pytest.raises(leat.BudgetError, match=r"\(strict\)"):
        out("strict", 3, strict=True)
    with pytest.raises(leat.BudgetError, match="not even one sample"):
        out("none", 0)


def test_a_full_disk_leaves_the_earlier_checkpoint(packs, tmp_path, monkeypatch, capfd):
    real, calls = checkpoint.write_tensors, []

    def full(path, tensors):
        calls.append(path)
        if len(calls) > 2:
            raise OSError(28, "No space left on device")
        real(path, tensors)

    monkeypatch.setattr(checkpoint, "write_tensors", full)
    with pytest.raises(leat.StorageError, match="No space left on device; earlier ones are untouched"):
        leat.train(packs["train"], output=tmp_path, **TINY)
    assert os.listdir(tmp_path / "checkpoints").count("step-00000006-end") == 1
    assert not [n for n in os.listdir(tmp_path / "checkpoints") if n.startswith(".writing")]
    monkeypatch.setattr(checkpoint, "write_tensors", real)
    assert leat.train(packs["train"], output=tmp_path, **TINY, resume=True)["steps"] == 12


def test_short_epochs_are_not_all_saved(packs, tmp_path, monkeypatch):
    names = []
    monkeypatch.setattr(checkpoint, "write", lambda folder, name, *rest: names.append(name) or os.path.join(folder, name))
    leat.train(packs["train"], output=tmp_path, **{**TINY, "epochs": 4})
    assert names == ["step-00000006-end", "step-00000024-end"]


def test_checkpoints_are_kept_by_the_rule(packs, tmp_path):
    leat.train(packs["train"], output=tmp_path, **{**TINY, "epochs": 5}, keep_every=2, save_every=5)
    names = sorted(n for n in os.listdir(tmp_path / "checkpoints") if n.startswith("step"))
    assert names == ["step-00000012-end", "step-00000024-end", "step-00000030-end"]
    assert os.readlink(tmp_path / "checkpoints/last") == "step-00000030-end"


@pytest.mark.parametrize("precision", ["32", "tf32", "16-mixed", "bf16-mixed", "bf16-true"])
def test_each_precision_trains(packs, tmp_path, precision):
    result = leat.train(packs["train"], val=packs["val"], output=tmp_path, **TINY, precision=precision)
    assert np.isfinite(result["loss"]) and result["steps"] == 12


@pytest.mark.parametrize("name", ["sgd", "adamw", "lamb"])
def test_each_optimizer_lowers_the_loss(packs, tmp_path, name):
    lr = {"sgd": 2.0, "adamw": 0.5, "lamb": 0.5}[name]
    leat.train(packs["train"], output=tmp_path, **{**TINY, "epochs": 4, "lr": lr}, optimizer=name, log_every=3, clip=5.0)
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    losses = [r["loss"] for r in rows if r["kind"] == "train"]
    assert losses[-1] < losses[0]


def test_options_have_an_effect(packs, tmp_path):
    def weights(name, **changed):
        leat.train(packs["train"], output=tmp_path / name, **{**TINY, "epochs": 1, **changed})
        return checkpoint.read_tensors(str(tmp_path / name / "checkpoints/last/model.safetensors"))

    plain = weights("plain")
    assert train_run.same(plain, weights("again"))
    for name, value in {"seed": 1, "mixup": 0.3, "cutmix": 1.0, "erase": 1.0, "flip": 0.0, "crop": "none", "jitter": 0.4,
                        "momentum": 0.5, "weight_decay": 0.1, "label_smoothing": 0.3, "schedule": "onecycle",
                        "warmup": 0.0, "clip": 0.01, "accumulate": 2, "ema": 0.5, "scale_lr": False, "image_size": 12,
                        "size_start": 8, "preset": "conservative", "optimizer": "adamw"}.items():
        changed = {"schedule": "constant", "warmup": 1.0} if name == "warmup" else {}
        other = weights(name, **{**changed, name: value})
        assert not train_run.same(plain, other), name
    assert not train_run.same(weights("all", mixup=0.3), weights("some", mixup=0.3, mix_share=0.3))
    with pytest.raises(leat.ArgumentError, match="mix_share: has no effect without mixup or cutmix"):
        weights("none", mix_share=0.3)


def test_the_next_epoch_is_loaded_during_the_last_update(packs, tmp_path, monkeypatch):
    seen, step = [], loop.Trainer._step

    def look(self, batches):
        seen.append((self.epoch, self.in_epoch, self.loader.epoch))
        return step(self, batches)

    monkeypatch.setattr(loop.Trainer, "_step", look)
    leat.train(packs["train"], output=tmp_path, **{**TINY, "epochs": 3}, accumulate=3)
    assert seen == [(0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 2), (2, 0, 2), (2, 1, 2)]


def test_accumulation_over_equal_parts_is_the_large_batch(packs, tmp_path, monkeypatch):
    class Plain(train_run.Tiny):  # norms of small batches differ
        def __init__(self, small):
            super().__init__()
            self.body = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, 2, 1), torch.nn.ReLU())

    monkeypatch.setitem(models._BUILT_IN, "tiny_resnet", Plain)
    still = {"crop": "none", "flip": 0.0, "max_steps": 3}
    leat.train(packs["train"], output=tmp_path / "large", **{**TINY, "batch_size": 8}, **still)
    leat.train(packs["train"], output=tmp_path / "small", **{**TINY, "batch_size": 4}, accumulate=2, **still)
    a, b = train_run.final(tmp_path / "large"), train_run.final(tmp_path / "small")
    for name, t in a.items():
        assert torch.allclose(t, b[name], atol=1e-5), name


def test_sgd_is_that_of_torch():
    made = []
    for kind in ("mine", "torch"):
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
        parts = optim.groups([net], 0.1)
        used = optim.Sgd(parts, 0.2, 0.9) if kind == "mine" else torch.optim.SGD(parts, 0.2, 0.9, nesterov=True, foreach=True)
        for i in range(4):
            if kind == "mine" and i == 2:  # a run that is resumed
                kept = used.state_dict()
                used = optim.Sgd(parts, 0.2, 0.9)
                used.load_state_dict(kept)
            used.zero_grad(set_to_none=True)
            net(torch.ones(5, 3) * (i + 1)).square().sum().mul(1e-3).backward()
            used.step()
        made.append([p.detach() for p in net.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*made))


def test_the_average_has_the_statistics_of_its_weights():
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    average = optim.Average(net, 0.9)
    net(torch.tensor([[1.0, 2.0], [3.0, 5.0]]))
    average.update(net, 1000)
    found = average.tensors["1.running_mean"]
    assert torch.allclose(found, 0.1 * net[1].running_mean, atol=1e-6)
    assert average.tensors["1.num_batches_tracked"] == 1


def test_schedules_and_groups():
    cosine = optim.Schedule("cosine", 100, 10)
    assert cosine.share(0) == pytest.approx(1 / 11) and cosine.share(10) == 1.0 and cosine.share(100) < 1e-9
    triangle = optim.Schedule("onecycle", 100, 20)
    assert triangle.share(60) == pytest.approx(0.5) and triangle.share(100) == 0.0
    plain, bare = optim.groups([models.build("resnet9", 32, 10)], 0.1)
    assert plain["weight_decay"] == 0.1 and all(p.ndim > 1 for p in plain["params"])
    assert bare["weight_decay"] == 0.0 and all(p.ndim <= 1 for p in bare["params"])


@pytest.mark.parametrize("name, millions", [("resnet9", 6.57), ("resnet11", 9.98), ("resnet18", 11.18), ("resnet50", 23.53),
                                             ("vit_ti", 5.49), ("convnext_t", 27.8)])
def test_built_in_models_have_their_size(name, millions):
    with torch.device("meta"):
        net = models.build(name, 224, 10)
    assert sum(p.numel() for p in net.parameters()) / 1e6 == pytest.approx(millions, rel=0.02)


def test_small_images_get_a_stem_that_keeps_their_size():
    small, large = models.backbone("resnet18", 32), models.backbone("resnet18", 224)
    x = torch.zeros(1, 3, 32, 32)
    assert small.stem(x).shape[2:] == (32, 32) and large.stem(x).shape[2:] == (8, 8)


def test_activation_checkpointing_changes_nothing_but_memory():
    gradients, statistics = [], []
    for on in (False, True):
        torch.manual_seed(0)
        net = models.build("resnet18", 32, 4, checkpointing=on)
        for _ in range(2):
            net(torch.rand(2, 3, 8, 8)).sum().backward()
        gradients.append([p.grad for p in net.parameters()])
        statistics.append(list(net.buffers()))
    assert all(torch.allclose(a, b) for a, b in zip(*gradients))
    assert len(statistics[0]) > 0 and all(torch.equal(a, b) for a, b in zip(*statistics))


def test_mixup_and_cutmix_share_the_batches(packs):
    """Each in half of the batches that are mixed."""
    facts = data.Facts(packs["train"], "label")
    for share in (1.0, 0.5):
        o = options.resolve("train", {"mixup": 1.0, "cutmix": 1.0, "mix_share": share, "batch_size": 2, "seed": 1,
                                      "threads": 1, "crop": "none", "flip": 0.0})
        plain = options.resolve("train", {"batch_size": 2, "seed": 1, "threads": 1, "crop": "none", "flip": 0.0})
        counts = {"none": 0, "mixup": 0, "cutmix": 0}
        with data.train_loader(o, facts, 8, "32", "cpu", False, 3, 1, None) as mixed, \
                data.train_loader(plain, facts, 8, "32", "cpu", False, 3, 1, None) as as_is:
            for _ in range(4):
                for a, b in zip(mixed, as_is):
                    counts[_kind_of_mix(a["view0"], b["view0"])] += 1
        batches = sum(counts.values())
        assert abs(counts["none"] / batches - (1 - share)) < 0.15, counts  # a box of CutMix may have no pixel
        for kind in ("mixup", "cutmix"):
            assert 0.3 * share < counts[kind] / batches < 0.7 * share, counts


def _kind_of_mix(mixed, plain):
    """What became of a batch of two: pixels pasted (each is one of the two), or blended."""
    if torch.equal(mixed, plain):
        return "none"
    other = plain.flip(0)
    return "cutmix" if bool(((mixed == plain) | (mixed == other)).all()) else "mixup"


def test_evaluation_sees_every_sample_once(packs):
    facts, ranks = data.Facts(packs["val"], "label"), Ranks(0, 1, torch.device("cpu"), "")
    o = options.resolve("train", {"threads": 1})
    pack = leat.open(packs["val"])
    with data.eval_loader(o, facts, 8, 16, "32", "cpu", False) as loader:
        best = lambda x: x.mean((2, 3))  # noqa: E731  # the colour is the class
        found = evaluate.classify(best, loader, "label", 3, ranks)
    assert found["samples"] == len(pack) == np.sum(found["confusion"])
    assert found["top1"] == 1.0 and np.array_equal(np.diag(found["confusion"]), np.bincount(pack.column("label")))


def test_views_of_an_evaluation():
    image = torch.arange(2 * 3 * 4 * 4.0).view(2, 3, 4, 4)
    assert [len(list(evaluate.views(image, *on))) for on in ((False, False), (True, False), (True, True))] == [1, 2, 18]
    seen = list(evaluate.views(image, True, True))
    assert torch.equal(seen[8], image) and torch.equal(seen[9], image.flip(3))
    assert torch.equal(seen[0][:, :, 1:, 1:], image[:, :, :3, :3])  # moved down and to the right


def test_erased_squares_have_the_mean_colour(tmp_path):
    with leat.Writer(tmp_path / "white.leat", {"image": "image", "label": int}, sync=False) as w:
        for i in range(4):
            w.append({"image": np.full((16, 16, 3), 255, np.uint8), "label": 0}, key=str(i))
    o = options.resolve("train", {"threads": 1, "erase": 1.0, "batch_size": 4, "crop": "none"})
    facts = data.Facts(str(tmp_path / "white.leat"), "label")
    with data.train_loader(o, facts, 16, "32", "cpu", False, 1, 1, None) as loader:
        image = next(iter(loader))["view0"]
    assert image.abs().amin((1, 2, 3)).max() < 0.01 and image.min() > -0.01  # 0 is the mean; black is -2


def test_knn_and_probe_find_classes_that_are_apart():
    draw = torch.Generator().manual_seed(0)
    label = torch.arange(60) % 3
    vectors = torch.eye(3)[label] * 4 + torch.randn(60, 3, generator=draw)
    assert evaluate.knn(vectors[:40], label[:40], vectors[40:], label[40:], 3, 5) > 0.8
    assert evaluate.probe(vectors[:40], label[:40], vectors[40:], label[40:], 3, 20, 0) > 0.8


@pytest.mark.parametrize("method", ["simclr", "dino"])
def test_methods_without_labels(packs, tmp_path, method):
    result = leat.train(packs["bare"], output=tmp_path / "bare", **{**TINY, "lr": 0.1}, method=method, dim=16)
    assert result["steps"] == 4 and np.isfinite(result["loss"]) and "knn" not in result
    result = leat.train(packs["train"], val=packs["val"], output=tmp_path / "labelled", **{**TINY, "lr": 0.1}, method=method,
                        dim=16, probe=5)
    assert 0 <= result["knn"] <= 1 and 0 <= result["probe"] <= 1


def test_distillation_follows_a_teacher(packs, tmp_path):
    teacher = torch.jit.script(torch.nn.Sequential(torch.nn.AvgPool2d(4), torch.nn.Flatten()))
    teacher.save(str(tmp_path / "teacher.pt"))
    leat.train(packs["bare"], output=tmp_path / "o", **{**TINY, "epochs": 8}, method="distill", log_every=1,
               teacher=str(tmp_path / "teacher.pt"))
    rows = [json.loads(line) for line in (tmp_path / "o/metrics.jsonl").read_text().splitlines()]
    losses = [r["loss"] for r in rows if r["kind"] == "train"]
    assert losses[-1] < 0.5 * losses[0]
    (tmp_path / "broken.pt").write_bytes(b"nothing")
    with pytest.raises(leat.DataError, match="broken.pt: not a TorchScript file"):
        leat.train(packs["bare"], output=tmp_path / "b", **TINY, method="distill", teacher=str(tmp_path / "broken.pt"))


@pytest.mark.parametrize("kind", [".pt", ".pt2", ".onnx"])
def test_a_run_is_exported_and_predicts(packs, tmp_path, kind):
    for name in ("onnx", "onnxscript", "onnxruntime") if kind == ".onnx" else ():
        pytest.importorskip(name)
    leat.train(packs["train"], output=tmp_path / "run", **TINY)
    out = str(tmp_path / f"model{kind}")
    facts = leat.export_model(tmp_path / "run", out)
    assert facts["width"] == 3 and facts["class_names"] == ["c0", "c1", "c2"] and facts["image_size"] == 16
    with pytest.raises(leat.ExistsError, match="already exists"):
        leat.export_model(tmp_path / "run", out)
    with pytest.raises(leat.ArgumentError, match="TorchScript"):
        leat.export_model(tmp_path / "run", tmp_path / "model.bin")
    plain = {"quiet": True, "threads": 1, "batch_size": 8}
    leat.predict(packs["val"], tmp_path / "mine.leat", tmp_path / "run", **plain)
    leat.embed(packs["val"], output=tmp_path / "theirs.leat", model=out, **plain)  # the file says the side of its images
    mine = np.stack([s["logits"] for s in leat.open(tmp_path / "mine.leat")])
    assert np.allclose(mine, np.stack([s["vector"] for s in leat.open(tmp_path / "theirs.leat")]), atol=1e-5)
    if kind != ".pt":
        with pytest.raises(leat.DataError, match=f"model{kind}: fails on images of 24 pixels"):
            leat.embed(packs["val"], output=tmp_path / "other.leat", model=out, image_size=24, **plain)
        assert not os.path.exists(tmp_path / "other.leat.parts")


def test_ranks_that_fail_give_their_exit_code_and_message(packs, tmp_path, capfd):
    with pytest.raises(SystemExit) as caught:
        leat.train(packs["bare"], output=tmp_path / "a", devices=2, **TINY)
    said = capfd.readouterr().err
    assert caught.value.code == 2 and "has no int field 'label'" in said
    assert "Traceback" not in said and "ChildFailedError" not in said and "exitcode" not in said


def test_the_plan_is_compared_with_the_run(packs, tmp_path, capfd):
    result = leat.train(packs["train"], output=tmp_path, **{**TINY, "quiet": False}, plan=True, max_steps=2)
    assert result["plan"]["images_per_s"]["measured"] == result["images_per_s"]
    assert result["plan"]["loader_bytes"]["predicted"] > 0 and "plan: loader_bytes predicted" in capfd.readouterr().err


@pytest.mark.parametrize("precision, pixels", [("32", "f32"), ("bf16-mixed", "f16")])
def test_the_plan_is_for_the_loader_of_the_run(packs, tmp_path, precision, pixels):
    o = options.resolve("train", {**TINY, "output": str(tmp_path), "precision": precision, "order": "quasi_random"})
    words = plan.words(packs["train"], o, loop.Trainer(packs["train"], o, Ranks(0, 1, torch.device("cpu"), "")))
    asked = dict(zip(words, words[1:]))
    assert (asked["--dtype"], asked["--order"], asked["--threads"]) == (pixels, "quasi_random", "1")
    assert asked["--gpus"] == "0" and "--optimizer" not in asked  # a step is planned for GPUs only
    step = plan._step(o, loop.Trainer(packs["train"], o, Ranks(0, 1, torch.device("cpu"), "")))
    asked = dict(zip(step, step[1:]))
    assert (asked["--optimizer"], asked["--lr"]) == ("momentum", f"{TINY['lr']:g}")
    parts = {f"{name}_bytes": 10**i for i, name in enumerate(("queue", "assembling", "borrowed", "pages", "workers"))}
    assert plan._loader_bytes({"ram": {**parts, "budget_bytes": 7}}) == 11111


def test_recipes_of_the_examples_are_valid():
    examples = os.path.join(os.path.dirname(__file__), "../../examples")
    o = options.resolve("train", {"config": os.path.join(examples, "cifar10/resnet9.yaml")})
    assert (o.model, o.schedule, o.tta) == ("resnet9", "onecycle", True)
    o = options.resolve("train", {"config": os.path.join(examples, "cifar10/resnet11.yaml")})
    assert (o.model, o.mix_share, o.tta) == ("resnet11", 0.5, True)
    assert options.resolve("train", {"config": os.path.join(examples, "imagenet/resnet50.yaml")}).size_start == 128


def test_models_that_need_more_pixels_or_samples(packs, tmp_path):
    for name, words, changed in (("a", "image_size: images of 1 pixels are too small for resnet9", {"image_size": 1}),
                                 ("b", "batch_size: the norms of resnet9 need more than one value",
                                  {"image_size": 8, "batch_size": 1})):
        with pytest.raises(leat.ArgumentError, match=words):
            leat.train(packs["train"], output=tmp_path / name, **{**TINY, "model": "resnet9", **changed})


def test_a_record_that_cannot_be_written_does_not_end_the_run(packs, tmp_path, monkeypatch, capsys):
    close = leat.Loader.close

    def fail(self):
        close(self)
        raise leat.StorageError("run.jsonl: cannot write: No space left on device")

    monkeypatch.setattr(leat.Loader, "close", fail)
    result = leat.train(packs["train"], output=tmp_path / "x", **TINY)
    assert result["epochs"] == 2 and "warning: run.jsonl: cannot write" in capsys.readouterr().err


def test_a_loss_that_rises_is_said(packs, tmp_path, monkeypatch, capsys):
    end = report.Meter.end

    def look(self, trainer):
        end(self, trainer)
        self.first_loss = self.epoch_loss / 11

    monkeypatch.setattr(report.Meter, "end", look)
    leat.train(packs["train"], output=tmp_path / "x", **TINY)
    assert "warning: the loss rose from" in capsys.readouterr().err


def test_resume_and_force_exclude_each_other(packs, tmp_path):
    with pytest.raises(leat.ArgumentError, match="resume: continues a run, and force starts again"):
        leat.train(packs["train"], output=tmp_path / "x", **TINY, resume=True, force=True)


def test_sizes_that_do_not_grow_are_refused(packs, tmp_path):
    with pytest.raises(leat.ArgumentError, match="size_start: 32 is not smaller than the images of 16 pixels"):
        leat.train(packs["train"], output=tmp_path / "x", **{**TINY, "image_size": 16, "size_start": 32})


def test_progressive_resizing_ends_at_the_full_size():
    o = options.resolve("train", {"size_start": 128, "epochs": 10})
    sides = [data.side_at(o, 224, epoch) for epoch in range(10)]
    assert sides[0] == 128 and sides[-1] == 224 and sides == sorted(sides) and len(set(sides)) > 2
    small = options.resolve("train", {"size_start": 24, "epochs": 10})
    assert [data.side_at(small, 32, epoch) for epoch in (0, 9)] == [24, 32]


def test_the_progress_line():
    line = report.progress_line(3, 601, 5004, 45.0, 0, 3.214, 0.41, 74.13)
    assert line == "Epoch 3: 12 %| 601/5004 [00:45<05:29, 13.4 it/s, loss 3.21, data 0.4 ms, step 74.1 ms]"


def test_a_folder_of_others_is_refused_and_nothing_stays(packs, tmp_path):
    mine = tmp_path / "mine"
    (mine / "checkpoints").mkdir(parents=True)
    for name in ("config.json", "report.html", "checkpoints/best.txt"):
        (mine / name).write_text('{"mine": 1}')
    before = sorted(str(path) for path in mine.rglob("*"))
    for force in (False, True):
        with pytest.raises(leat.ExistsError, match="is not empty and has no run of leat train"):
            leat.train(packs["train"], output=mine, **TINY, force=force)
    assert sorted(str(path) for path in mine.rglob("*")) == before
    assert (mine / "config.json").read_text() == '{"mine": 1}'
    with pytest.raises(leat.NotFoundError):
        leat.train(tmp_path / "nowhere.leat", output=tmp_path / "a" / "b", **TINY)
    with pytest.raises(leat.ArgumentError, match="is a file, not a folder"):
        leat.train(packs["train"], output=mine / "config.json", **TINY)
    assert os.listdir(tmp_path) == ["mine"]


def test_a_refused_run_does_not_change_the_one_that_is_there(packs, tmp_path):
    leat.train(packs["train"], output=tmp_path / "o", **TINY, max_steps=1)
    before = (tmp_path / "o" / "config.json").read_bytes()
    with pytest.raises(leat.ExistsError, match=r"\(use resume to continue, force to start again\)"):
        leat.train(packs["train"], output=tmp_path / "o", **TINY, max_steps=2)
    assert (tmp_path / "o" / "config.json").read_bytes() == before
    leat.train(packs["train"], output=tmp_path / "o", **TINY, max_steps=2, force=True)


def test_wrong_types_are_argument_errors(packs, tmp_path):
    for call in (leat.train, leat.embed, leat.tag):
        for bad in (5, None, ["a"], ""):
            with pytest.raises(leat.ArgumentError, match="pack: "):
                call(bad, output=tmp_path / "o")
        for name in ("output", "config"):
            with pytest.raises(leat.ArgumentError, match=f"{name}: "):
                call(packs["train"], **{"output": tmp_path / "o", name: 5})
    with pytest.raises(leat.ArgumentError, match="output: "):
        leat.train(packs["train"], output=5, resume=True)
    for args in ((5, "x.pt"), ("run", 5)):
        with pytest.raises(leat.ArgumentError, match="is not a path"):
            leat.export_model(*args)
    with pytest.raises(leat.ArgumentError, match="batch_size: .* is not a number"):
        leat.train(packs["train"], output=tmp_path / "o", batch_size=np.ones(2))
    with pytest.raises(leat.ArgumentError, match="use method simclr or dino, or name the field with label"):
        leat.train(packs["train"], output=tmp_path / "o", **{**TINY, "label": "zz"})
    with pytest.raises(leat.NotFoundError, match="nope.yaml: no such file"):
        leat.train(packs["train"], output=tmp_path / "o", config="nope.yaml")
    assert os.listdir(tmp_path) == []


def test_exit_codes_are_those_of_the_other_commands(packs, tmp_path):
    def code(*words):
        done = subprocess.run([sys.executable, "-P", "-m", "leat", *map(str, words)], capture_output=True, text=True)
        return done.returncode, done.stderr

    (tmp_path / "file").write_text("mine")
    assert code("train", packs["train"], "-o", tmp_path / "file")[0] == 2
    assert code("curate", packs["train"], "-o", tmp_path / "file")[0] == 2
    (tmp_path / "v.leat.parts").mkdir()
    failed, text = code("embed", packs["train"], "-o", tmp_path / "v.leat")
    assert failed == 2 and "(use --resume to continue it, --force to start again)" in text
    failed, text = code("train", packs["train"], "-o", tmp_path / "o", "--label", "zz")
    assert failed == 2 and "use --method simclr or dino, or name the field with --label" in text
