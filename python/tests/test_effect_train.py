# SPDX-License-Identifier: Apache-2.0
"""Every option of `leat train`, `leat embed` and `leat tag` has an effect that can be seen, or is refused where it has none.

The options come from the command's own table (`leat help --json`): a new one needs a row here. A run takes a fraction of a
second: a tiny model, 48 images of 16 pixels, one epoch of three updates."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import types

import numpy as np
import pytest

import leat
from conftest import damage

torch = pytest.importorskip("torch")
if os.environ.get("TORCH") == "0":
    pytest.skip("TORCH=0", allow_module_level=True)

import train_run  # noqa: E402
from leat._train import checkpoint, data, distributed, embedding, loop, models, plan  # noqa: E402

COMMON = {"json", "quiet", "verbose", "color", "help"}
REMOTE = {"anonymous", "ca-file"}  # tests/remote/test_commands.py
BASE = {"model": "tiny_resnet", "epochs": 1, "batch_size": 16, "quiet": True, "tensorboard": False, "lr": 2.0, "threads": 1}
ROWS = 48


def same(a, b):
    return a.keys() == b.keys() and all(a[n].shape == b[n].shape and torch.equal(a[n], b[n]) for n in a)


class Runs:
    """train.leat and val.leat (image, label, other); each run in its own folder. Equal runs are made once."""

    def __init__(self, folder):
        self.folder, self.count, self.kept = folder, 0, {}
        self.packs = {name: self.write(name, seed) for name, seed in (("train", 0), ("val", 1))}
        self.packs["damaged"] = str(folder / "damaged.leat")
        damage(self.packs["train"], self.packs["damaged"], 5)

    def write(self, name, seed):
        draw = np.random.default_rng(seed)
        path = str(self.folder / f"{name}.leat")
        with leat.Writer(path, {"image": "image", "label": int, "other": int}, sync=False) as w:
            for i in range(ROWS):
                pixels = draw.integers(0, 80, (16, 16, 3)).astype(np.uint8)
                pixels[..., i % 3] += 120
                w.append({"image": pixels, "label": i % 3, "other": i % 2}, key=f"{i:02}")
        return path

    def new(self, suffix=""):
        self.count += 1
        return str(self.folder / f"out{self.count}{suffix}")

    # ---- train

    def train(self, *, pack="train", output=None, **changed):
        """The folder and the result of a run."""
        folder = output or self.new()
        changed = {k: self.packs.get(v, v) if k == "val" else v for k, v in changed.items()}
        return folder, leat.train(self.packs[pack], output=folder, **{**BASE, **changed})

    def weights(self, **changed):
        key = json.dumps(changed, sort_keys=True, default=str)
        if key not in self.kept:
            folder, _ = self.train(**changed)
            self.kept[key] = checkpoint.read_tensors(os.path.join(folder, "checkpoints/last/model.safetensors"))
        return self.kept[key]

    def differ(self, name, value, **also):
        """The weights at the end are others with the option."""
        assert not same(self.weights(**also), self.weights(**also, **{name: value})), f"{name}: {value!r} changes nothing"

    def refused(self, words, *, kind=leat.ArgumentError, **changed):
        with pytest.raises(kind, match=words):
            self.train(**changed)

    def says(self, key, **changed):
        """The result has the key only with the option."""
        (_, plain), (_, other) = self.train(val="val"), self.train(val="val", **changed)
        assert key in other and key not in plain

    def rows(self, kind, **changed):
        folder, _ = self.train(**changed)
        with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as file:
            return [row for row in map(json.loads, file) if row["kind"] == kind]

    def steps(self, **changed):
        """Names of the checkpoints that a run hands to its writer."""
        names = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(checkpoint.Keeper, "save", lambda self, name, *a, **k: names.append((name, k.get("kept"))))
            self.train(**changed)
        return names

    def loader_gets(self, name, value, **changed):
        """What the option means is the loader's: test_effect.py shows its effect there."""
        assert self.loader_options(**changed)[name] == value != self.loader_options()[name]

    def loader_options(self, **changed):
        seen = {}

        def look(*args, **options):
            seen.update(options)
            return leat.Loader(*args, **options)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(data, "Loader", look)
            self.train(max_steps=1, **changed)
        return seen

    def config(self):
        path = self.new(".yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write('{"seed": 7}\n')
        assert same(self.weights(config=path), self.weights(seed=7)) and not same(self.weights(), self.weights(seed=7))

    def teacher(self):
        self.refused("teacher: has no effect with method supervised", teacher="x.pt")
        made = []
        for pool in (torch.nn.AvgPool2d(4), torch.nn.MaxPool2d(4)):
            path = self.new(".pt")
            torch.jit.script(torch.nn.Sequential(pool, torch.nn.Flatten())).save(path)
            made.append(self.weights(method="distill", teacher=path))
        assert not same(*made)

    def on_error(self):
        self.refused("damaged", kind=leat.DataError, pack="damaged")
        for how in ("skip", "replace"):
            assert self.train(pack="damaged", on_error=how)[1]["steps"] == 3

    def compile(self):
        """The network is compiled only where that was asked for: on a CPU, auto means off."""
        for word, times in (("on", 1), ("off", 0), ("auto", 0)):
            made = []
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(torch, "compile", lambda net: made.append(net) or net)
                self.train(max_steps=1, compile=word)
            assert len(made) == times, word

    def checkpointing(self):
        """The activations are computed twice."""
        calls = []

        class Counted(train_run.Tiny):
            def __init__(self, small=True):
                super().__init__(small)
                self.body[0].register_forward_hook(lambda *_: calls.append(1))

        for on, times in ((False, 1), (True, 2)):
            calls.clear()
            with pytest.MonkeyPatch.context() as patch:
                patch.setitem(models._BUILT_IN, "tiny_resnet", Counted)
                self.train(max_steps=1, checkpointing=on)
            assert len(calls) == times

    def deterministic(self):
        seen, step = [], loop.Trainer._step

        def look(trainer, batches):
            seen.append(torch.are_deterministic_algorithms_enabled())
            return step(trainer, batches)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loop.Trainer, "_step", look)
            patch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
            for on in (True, False):
                self.train(max_steps=1, deterministic=on)
            os.environ.pop("CUBLAS_WORKSPACE_CONFIG", None)
        assert seen == [True, False]

    def strict(self):
        class Short(train_run.Tiny):
            def features(self, x):
                if len(x) > 8 and self.training:
                    raise torch.OutOfMemoryError("CUDA out of memory")
                return super().features(x)

        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(models._BUILT_IN, "tiny_resnet", Short)
            assert self.train(max_steps=1)[1]["batch_size"] == 8
            self.refused("a batch of 16 does not fit", kind=leat.BudgetError, strict=True)

    def launched(self, start):
        """With two devices, two ranks are started."""
        asked = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(distributed, "launch", lambda count, words: asked.append(count) or 5)
            patch.setattr(torch.cuda, "device_count", lambda: 2)
            with pytest.raises(SystemExit) as caught:
                start(devices=2)
        assert asked == [2] and caught.value.code == 5

    def accelerator(self):
        if torch.cuda.is_available():
            assert torch.cuda.max_memory_allocated() == 0 or self.train(accelerator="cpu")
        else:
            self.refused("accelerator: PyTorch sees no CUDA device", accelerator="cuda")

    def planned(self):
        """The plan itself is tested in test_train.py."""
        made = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(plan, "make", lambda *args: made.append(args))
            self.train(max_steps=1)
            assert not made
            self.train(max_steps=1, plan=True)
        assert len(made) == 1

    def resume(self):
        folder, first = self.train()
        assert first["steps"] == 3 and self.train(output=folder, epochs=2, resume=True)[1]["steps"] == 6

    def force(self):
        folder, _ = self.train(max_steps=1)
        self.refused("has checkpoints already", kind=leat.ExistsError, output=folder, max_steps=1)
        assert self.train(output=folder, max_steps=1, force=True)[1]["steps"] == 1

    def tensorboard(self):
        """Events are written where TensorBoard is installed."""
        class Writer:
            made: list = []

            def __init__(self, folder):
                self.made.append(folder)

            def __getattr__(self, name):
                return lambda *args, **options: None

        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(sys.modules, "torch.utils.tensorboard", types.SimpleNamespace(SummaryWriter=Writer))
            self.train(max_steps=1, tensorboard=False)
            assert not Writer.made
            folder, _ = self.train(max_steps=1, tensorboard=True)
        assert Writer.made == [folder]

    def wandb(self):
        opened, rows = [], []
        project = types.SimpleNamespace(log=lambda row, **k: rows.append(row), finish=lambda *a, **k: None)
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(sys.modules, "wandb", None)
            self.refused("wandb: is not installed", kind=leat.StorageError, wandb="cats")
            patch.setitem(sys.modules, "wandb", types.SimpleNamespace(init=lambda **k: opened.append(k["project"]) or project))
            self.train(max_steps=1, wandb="cats")
        assert opened == ["cats"] and rows

    # ---- embed

    def embed(self, **changed):
        out = changed.pop("output", None) or self.new(".leat")
        return out, leat.embed(self.packs["val"], **{"output": out, "batch_size": 16, "quiet": True, "threads": 1, **changed})

    def vectors(self, **changed):
        out, _ = self.embed(**changed)
        with leat.open(out) as made:
            name = made.fields[0].name
            return name, np.stack([row[name] for row in made])

    def run(self):
        """A run of leat train as a model."""
        if "run" not in self.kept:
            self.kept["run"] = self.train()[0]
        return self.kept["run"]

    def embeds_otherwise(self, **changed):
        (_, plain), (_, other) = self.vectors(model=self.run()), self.vectors(model=self.run(), **changed)
        assert plain.shape != other.shape or plain.dtype != other.dtype or not np.array_equal(plain, other)

    def embed_refused(self, words, *, kind=leat.ArgumentError, **changed):
        with pytest.raises(kind, match=words):
            self.embed(**changed)

    def embed_loader_gets(self, name, value, *, made=None, **changed):
        made, seen = made or self.embed, []

        def look(pack, batch_size, *args, **options):
            seen.append({"batch_size": batch_size, **options})
            return leat.Loader(pack, batch_size, *args, **options)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(embedding, "Loader", look)
            made()
            made(**changed)
        assert seen[1][name] == value != seen[0][name]

    def embed_resume(self, made=None):
        made, out = made or self.embed, self.new(".leat")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(embedding, "_PART", 1)
            with pytest.MonkeyPatch.context() as cut:
                cut.setattr(embedding, "_assemble", lambda *args: 1 / 0)  # killed at the end
                with pytest.raises(ZeroDivisionError):
                    made(output=out)
            with pytest.raises(leat.ExistsError, match="has an interrupted run"):
                made(output=out)
            assert made(output=out, resume=True)[1]["resumed"] == ROWS

    def embed_force(self, made=None):
        made = made or self.embed
        out, _ = made()
        with pytest.raises(leat.ExistsError, match="already exists"):
            made(output=out)
        made(output=out, force=True)

    def embed_npy(self):
        out, _ = self.embed(npy=True)
        assert np.array_equal(np.load(out.removesuffix(".leat") + ".npy"), self.vectors()[1])

    # ---- tag

    def tag(self, **changed):
        out = changed.pop("output", None) or self.new(".leat")
        given = {"output": out, "model": self.run(), "batch_size": 16, "quiet": True, "threads": 1, **changed}
        return out, leat.tag(self.packs["val"], **given)

    def tags(self, **changed):
        with leat.open(self.tag(**changed)[0]) as made:
            return list(made)

    def traced(self):
        """Another model: TorchScript, of three classes."""
        torch.manual_seed(3)
        net = torch.nn.Sequential(torch.nn.AvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(48, 3))
        path = self.new(".pt")
        torch.jit.trace(net.eval(), torch.zeros(2, 3, 16, 16)).save(path)
        return path

    def tags_otherwise(self, **changed):
        more = {"image_size": 16} if "model" in changed else {}
        assert list(map(repr, self.tags())) != list(map(repr, self.tags(**changed, **more)))

    def tag_refused(self, words, *, kind=leat.ArgumentError, **changed):
        with pytest.raises(kind, match=words):
            self.tag(**changed)

    def named(self):
        names = self.new(".txt")
        with open(names, "w", encoding="utf-8") as f:
            f.write("cat\ndog\nowl\n")
        with leat.open(self.tag(classes=names, model=self.traced(), image_size=16)[0]) as made:
            assert made.classes("tag") == ["cat", "dog", "owl"]


TRAIN = {
    "method": lambda r: r.differ("method", "simclr"),
    "model": lambda r: r.differ("model", "resnet9", max_steps=1),
    "epochs": lambda r: r.differ("epochs", 2),
    "batch-size": lambda r: r.differ("batch_size", 8),
    "optimizer": lambda r: r.differ("optimizer", "adamw"),
    "lr": lambda r: r.differ("lr", 1.0),
    "scale-lr": lambda r: r.differ("scale_lr", False),
    "schedule": lambda r: r.differ("schedule", "constant"),
    "warmup": lambda r: r.differ("warmup", 1.0, schedule="constant"),
    "momentum": lambda r: (r.differ("momentum", 0.5), r.refused("momentum: has no effect with adamw", optimizer="adamw", momentum=0.5)),
    "weight-decay": lambda r: r.differ("weight_decay", 0.1),
    "label-smoothing": lambda r: r.differ("label_smoothing", 0.3),
    "mixup": lambda r: r.differ("mixup", 0.3),
    "cutmix": lambda r: r.differ("cutmix", 1.0),
    "mix-share": lambda r: (r.differ("mix_share", 0.3, mixup=0.3), r.refused("mix_share: has no effect without", mix_share=0.3)),
    "ema": lambda r: r.differ("ema", 0.5),
    "accumulate": lambda r: r.differ("accumulate", 2),
    "clip": lambda r: r.differ("clip", 0.01),
    "teacher": lambda r: r.teacher(),
    "dim": lambda r: (r.differ("dim", 16, method="simclr"), r.refused("dim: has no effect with method supervised", dim=16)),
    "temperature": lambda r: (r.differ("temperature", 0.1, method="simclr"), r.differ("temperature", 0.3, method="dino", dim=16),
                              r.refused("temperature: has no effect with method supervised", temperature=0.1)),
    "local-crops": lambda r: (r.differ("local_crops", 1, method="dino", dim=16),
                              r.refused("local_crops: has no effect with method simclr", method="simclr", local_crops=1)),
    "seed": lambda r: r.differ("seed", 1),
    "config": lambda r: r.config(),
    "val": lambda r: "top1" in r.train(val="val")[1] or pytest.fail("no accuracy"),
    "image-size": lambda r: r.differ("image_size", 12),
    "size-start": lambda r: r.differ("size_start", 8),
    "crop": lambda r: r.differ("crop", "none"),
    "flip": lambda r: r.differ("flip", 0.0),
    "erase": lambda r: r.differ("erase", 1.0),
    "jitter": lambda r: r.differ("jitter", 0.4),
    "label": lambda r: (r.differ("label", "other"), r.refused("has no int field 'nothing'", label="nothing")),
    "classes": lambda r: r.differ("classes", 7),
    "order": lambda r: r.loader_gets("order", "quasi_random", order="quasi_random"),
    "threads": lambda r: (r.loader_gets("threads", 2, threads=2), same(r.weights(), r.weights(threads=2)) or pytest.fail("other weights")),
    "memory": lambda r: r.refused("budget", kind=leat.BudgetError, memory=1),
    "decode": lambda r: (r.loader_gets("decode", "cpu", decode="cpu"), r.refused("decode gpu needs a device", accelerator="cpu", decode="gpu")),
    "on-error": lambda r: r.on_error(),
    "preset": lambda r: r.differ("preset", "conservative"),
    "precision": lambda r: r.differ("precision", "bf16-mixed"),
    "compile": lambda r: r.compile(),
    "channels-last": lambda r: r.loader_gets("channels_last", True, channels_last="on"),
    "checkpointing": lambda r: r.checkpointing(),
    "accelerator": lambda r: r.accelerator(),
    "devices": lambda r: r.launched(lambda **more: r.train(**more)),
    "nodes": lambda r: r.refused("nodes: start one process per GPU on each of the 2 machines", nodes=2),
    "deterministic": lambda r: r.deterministic(),
    "strict": lambda r: r.strict(),
    "plan": lambda r: r.planned(),
    "output": lambda r: "config.json" in os.listdir(r.train(max_steps=1)[0]) or pytest.fail("no config.json"),
    "resume": lambda r: r.resume(),
    "init": lambda r: r.differ("init", r.run()),
    "force": lambda r: r.force(),
    "save-every": lambda r: len(r.steps(save_every=1)) > len(r.steps()) or pytest.fail("no more checkpoints"),
    "keep-every": lambda r: [kept for _, kept in r.steps(epochs=2, keep_every=1)] == [True, True] or pytest.fail("not kept"),
    "eval-every": lambda r: (len(r.rows("eval", val="val", epochs=2)), len(r.rows("eval", val="val", epochs=2, eval_every=0))) == (2, 1)
    or pytest.fail("evaluated as often"),
    "log-every": lambda r: len(r.rows("train", log_every=1)) > len(r.rows("train")) or pytest.fail("no more rows"),
    "max-steps": lambda r: r.train(max_steps=1)[1]["steps"] == 1 or pytest.fail("more steps"),
    "tta": lambda r: r.train(val="val")[1]["val_loss"] != r.train(val="val", tta=True)[1]["val_loss"] or pytest.fail("the same loss"),
    "knn": lambda r: r.says("knn", knn=3),
    "probe": lambda r: r.says("probe", probe=2),
    "tensorboard": lambda r: r.tensorboard(),
    "wandb": lambda r: r.wandb(),
}

EMBED = {
    "model": lambda r: r.vectors()[1].shape != r.vectors(model=r.run())[1].shape or pytest.fail("the same vectors"),
    "logits": lambda r: r.vectors(model=r.run(), logits=True)[0] == "logits" or pytest.fail("no logits"),
    "image-size": lambda r: (r.embeds_otherwise(image_size=12), r.embed_refused("image_size: has no effect with tiny", image_size=12)),
    "dtype": lambda r: r.embeds_otherwise(dtype="float16"),
    "precision": lambda r: (r.embeds_otherwise(precision="bf16-mixed"),
                            r.embed_refused("precision: has no effect with tiny", precision="bf16-mixed")),
    "output": lambda r: os.path.exists(r.embed()[0]) or pytest.fail("no pack"),
    "batch-size": lambda r: r.embed_loader_gets("batch_size", 8, batch_size=8),
    "accelerator": lambda r: (r.embed_refused("accelerator: has no effect with tiny", accelerator="cuda"), torch.cuda.is_available() or
                              r.embed_refused("accelerator: PyTorch sees no CUDA device", model=r.run(), accelerator="cuda")),
    "devices": lambda r: (r.launched(lambda **more: r.embed(model=r.run(), **more)),
                          r.embed_refused("devices: has no effect with tiny", devices=2)),
    "threads": lambda r: r.embed_loader_gets("threads", 2, threads=2),
    "memory": lambda r: r.embed_refused("budget", kind=leat.BudgetError, memory=1),
    "decode": lambda r: (r.embed_loader_gets("decode", "cpu", decode="cpu"), r.embed_refused("decode gpu needs a device", decode="gpu")),
    "resume": lambda r: r.embed_resume(),
    "force": lambda r: r.embed_force(),
    "npy": lambda r: r.embed_npy(),
}
TAG = {
    "model": lambda r: r.tags_otherwise(model=r.traced()),
    "top": lambda r: len(r.tags(top=2)[0].tags) == 2 < len(r.tags()[0].tags) or pytest.fail("not two"),
    "activation": lambda r: r.tags_otherwise(activation="sigmoid"),
    "classes": lambda r: r.named(),
    "logits": lambda r: hasattr(r.tags(logits=True)[0], "logits") and not hasattr(r.tags()[0], "logits") or pytest.fail("no logits"),
    "image-size": lambda r: r.tags_otherwise(image_size=12),
    "precision": lambda r: r.tags_otherwise(precision="bf16-mixed"),
    "output": lambda r: os.path.exists(r.tag()[0]) or pytest.fail("no pack"),
    "batch-size": lambda r: r.embed_loader_gets("batch_size", 8, made=r.tag, batch_size=8),
    "accelerator": lambda r: torch.cuda.is_available() or r.tag_refused("accelerator: PyTorch sees no CUDA device", accelerator="cuda"),
    "devices": lambda r: r.launched(lambda **more: r.tag(**more)),
    "threads": lambda r: r.embed_loader_gets("threads", 2, made=r.tag, threads=2),
    "memory": lambda r: r.tag_refused("budget", kind=leat.BudgetError, memory=1),
    "decode": lambda r: (r.embed_loader_gets("decode", "cpu", made=r.tag, decode="cpu"), r.tag_refused("decode gpu needs a device", decode="gpu")),
    "resume": lambda r: r.embed_resume(made=r.tag),
    "force": lambda r: r.embed_force(made=r.tag),
}
TABLES = {"train": TRAIN, "embed": EMBED, "tag": TAG}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    torch.set_num_threads(1)
    return Runs(tmp_path_factory.mktemp("effects"))


@pytest.mark.parametrize("command", TABLES)
def test_the_tables_have_every_option(command):
    done = subprocess.run([sys.executable, "-P", "-m", "leat", "help", "--json"], capture_output=True, text=True, check=True)
    listed = {c["name"]: {option["name"] for option in c["options"]} for c in json.loads(done.stdout)["commands"]}
    assert set(TABLES[command]) | REMOTE | COMMON == listed[command]


@pytest.mark.parametrize("command, name", [(command, name) for command, rows in TABLES.items() for name in rows])
def test_an_option_has_an_effect(command, name, runs):
    TABLES[command][name](runs)
