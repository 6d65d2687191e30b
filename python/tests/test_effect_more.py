# SPDX-License-Identifier: Apache-2.0
"""Every option of `leat plan`, `check`, `select`, `export`, `show`, `view`, `doctor` and of `dedup` for images and vectors has an
effect that can be seen, or is refused where it has none.

The options come from the command's own table (`leat help --json`): a new one needs a row here."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

import leat
from view_server import View

COMMON = {"json", "quiet", "verbose", "color", "help"}
REMOTE = {"anonymous", "ca-file"}  # tests/remote/test_commands.py
NOISE = {"seconds", "cpu_seconds", "images_per_s", "peak_rss_bytes", "budget_peak_bytes", "rows_per_s"}
ROWS, DIM = 48, 8


def run(*args, code=(0, 1)):
    """1: there is a finding."""
    done = subprocess.run([sys.executable, "-m", "leat", *map(str, args)], capture_output=True, text=True, timeout=300)
    assert done.returncode in (code if isinstance(code, tuple) else (code,)), (args, done.returncode, done.stderr)
    return done


def table(name):
    listed = json.loads(run("help", "--json").stdout)["commands"]
    return {option["name"] for command in listed if command["name"] == name for option in command["options"]}


# ---- plan: arithmetic, so no pack is needed ----------------------------------------------------

FACTS = ("--samples", 1000000, "--model", "resnet50", "--gpu", "A100", "--gpus", 1, "--cpus", 8, "--ram", "64G", "--storage", "ssd")
GENERIC = (*FACTS[:2], "--model", "generic", "--params", 10**8, "--activation-bytes", "50M", "--gmacs", 4, *FACTS[4:])


def plan(*args):
    return run("plan", *args, code=(0, 3)).stdout  # 3: does not fit


def planned(name, value, base=FACTS):
    """Two plans, with and without the option, differ. A value of None: a flag."""
    args = (f"--{name}",) if value is None else (f"--{name}", value)
    assert plan(*base, "--json") != plan(*base, *args, "--json"), f"{args} changes nothing"


def instead(name, value, base=FACTS):
    """The same with another value of an option that the facts have."""
    at = base.index(f"--{name}")
    assert plan(*base, "--json") != plan(*base[:at + 1], value, *base[at + 2:], "--json"), f"--{name} changes nothing"


def no_effect(name, words, value):
    """Refused, because it would change nothing."""
    assert f"has an effect only with {words}" in run("plan", *FACTS, f"--{name}", value, code=2).stderr


def says(words, *args):
    done = run("plan", *args)
    assert words in done.stdout + done.stderr, (args, done.stdout, done.stderr)


TEXT = ("--documents", 10**8)
SIZED = (*FACTS, "--width", 500, "--height", 375)
VIDEO = (*FACTS[2:], "--video-hours", 10)

# An option that the facts do not have changes the plan: its values, and the facts if they are others.
ADDED = {
    "sample-bytes": [50000],
    "images": ["raw"],
    "mix-raw": [0.9, (*FACTS, "--images", "mix")],
    "video-hours": [10, FACTS[2:]],
    "fps": [10, VIDEO],
    "batch": [64],
    "image": [160],
    "crop": ["none"],
    "precision": ["fp32"],
    "optimizer": ["adamw"],
    "epochs": [9],
    "compile": [None],
    "unfused-attention": [None, (*FACTS[:2], "--model", "vit_b", *FACTS[4:])],
    "lr": [0.1],
    "limit": ["8G"],
    "vram": ["12G", (*FACTS[:4], *FACTS[6:])],
    "nodes": [2],
    "io-mbs": [10],
    "gbps": [1, (*FACTS[:-1], "bucket")],
    "cpu-us": [9000],
    "step-ms": [500],
    "h2d-gbs": [0.1],
    "threads": [2],
    "workers": [2],
    "prefetch": [9],
    "loader": ["process"],
    "preset": ["aggressive"],
    "dtype": ["f32"],
    "ops": ["RandomResizedCrop(224); GaussianBlur(23)"],
    "order": ["quasi_random"],
    "cache": ["process"],
    "memory": ["200M"],
    "single-loader": [None],
    "solve": ["batch", FACTS[:-2]],
    "recommend": ["images", FACTS[:4]],
    "hashes": [120, TEXT],
    "bands": [10, TEXT],
    "bands-per-iteration": [1, TEXT],
}
# Another value of an option that the facts have changes the plan.
CHANGED = {
    "samples": [2000000],
    "width": [2000, SIZED],
    "height": [2000, SIZED],
    "storage": ["hdd"],
    "dataset-bytes": ["20G", ("--recommend", "text", "--dataset-bytes", "900G")],
    "model": ["vit_b"],
    "params": [10**9, GENERIC],
    "activation-bytes": ["200M", GENERIC],
    "gmacs": [40, GENERIC],
    "cpus": [2],
    "ram": ["16G"],
    "gpus": [4],
    "gpu": ["T4"],
    "videos": [10**6, ("--recommend", "video", "--videos", 10)],
    "stage": ["TransNetV2", ("--stage", "QualityClassifier", "--samples", 10**6, "--gpus", 1, "--gpu", "A100")],
    "text": ["1T", ("--text", "10G", "--cpus", 8)],
    "documents": [10**7, TEXT],
}
# Without the option that they belong to they are refused.
ALONE = {"height": ["--width", 9], "mix-raw": ["--images mix", 0.9], "like": ["--dataset", "fast"]}


def plan_row(name):
    def row(box):
        if name in ADDED:
            planned(name, *ADDED[name])
        if name in CHANGED:
            instead(name, *CHANGED[name])
        if name in ALONE:
            no_effect(name, *ALONE[name])
        if name in OTHERS:
            OTHERS[name](box)
    return row


# What has another effect than on the numbers of a plan.
OTHERS = {
    "dataset": lambda c: c.plans("--dataset", c.pack, "--no-measure"),
    "calibrate": lambda c: c.plan_source("calibrated", "--calibrate"),
    "measure": lambda c: (c.plan_source("measured"), c.plan_source("table", "--no-measure")),
    "like": lambda c: c.plan_ops("fast"),
    "compare": lambda c: c.compares(),
    "yaml": lambda c: says("order: random", *FACTS, "--yaml"),
}
PLAN = {name: plan_row(name) for name in {**ADDED, **CHANGED, **ALONE, **OTHERS}}


class Box:
    """photos.leat (image, second, label, score, blob), vectors.leat, columns.leat of leat check; each result under its own name."""

    def __init__(self, folder):
        self.folder, self.runs = folder, 0
        self.pack, self.vectors, self.columns = (folder / f"{name}.leat" for name in ("photos", "vectors", "columns"))
        rng = np.random.default_rng(5)
        small = rng.integers(0, 256, (ROWS, 6, 6, 3), np.uint8)
        photos = [np.kron(small[i], np.ones((8, 8, 1), np.uint8)) for i in range(ROWS)]
        photos[7] = photos[6]
        photos[9] = np.ascontiguousarray(photos[8][:, ::-1])
        photos[11] = np.ascontiguousarray(np.rot90(photos[10]))
        photos[12] = photos[12] // 16
        photos[13] = np.clip(photos[6].astype(int) + 3, 0, 255).astype(np.uint8)
        photos[14] = np.ascontiguousarray(photos[15][6:, 6:])
        with leat.Writer(self.pack, {"image": "image", "second": "image", "label": int, "score": float, "blob": bytes},
                         classes={"label": ["cat", "dog", "owl"]}, sync=False) as w:
            for i, photo in enumerate(photos):
                w.append({"image": photo, "second": 255 - photo, "label": i % 3, "score": i * 37 % 101 / 10,
                          "blob": rng.bytes(30000)},
                         key=f"{'ab'[i % 2]}/{i:02}.png")
        near = rng.normal(size=(3, DIM))[np.arange(ROWS) % 3] + 0.5 * rng.normal(size=(ROWS, DIM))
        near[5] = near[2]
        near /= np.linalg.norm(near, axis=1, keepdims=True)
        with leat.Writer(self.vectors, {"vector": ("float32", (DIM,))}, sync=False) as w:
            for i, row in enumerate(near.astype(np.float32)):
                w.append({"vector": row}, key=f"{'ab'[i % 2]}/{i:02}.png")
        run("check", self.pack, "-o", self.columns, "--quiet")

    def file(self, name=None):
        self.runs += 1
        return self.folder / (name or f"out{self.runs}")

    def done(self, command, *args, source=None, out=".leat"):
        """What a run reports, and the rows that it writes."""
        path = self.file(f"out{self.runs}{out}")
        given = () if "-o" in args else ("-o", path)
        done = run(*command.split(), source or self.pack, *given, "--json", *args)
        report = {k: v for k, v in json.loads(done.stdout).items() if k not in NOISE and "path" not in k and k != "output"}
        if not path.exists():
            return report, None
        if path.is_dir():
            return report, {str(p.relative_to(path)): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()}
        with leat.open(path) as made:
            return report, [repr(made[i]) for i in range(len(made))]

    def differ(self, command, *args, base=(), source=None, out=".leat"):
        plain = self.done(command, *base, source=source, out=out)
        assert plain != self.done(command, *base, *args, source=source, out=out), f"{args} changes nothing"

    def refused(self, words, command, *args, code=2, source=None):
        done = run(*command.split(), source or self.pack, *args, code=code)
        assert words in done.stderr, done.stderr

    def writes(self, command, option, name, *args):
        self.done(command, *args, option, self.folder / name)
        assert (self.folder / name).stat().st_size > 0

    def force(self, command, *args, taken=2):
        out = self.file(f"forced{self.runs}.leat")
        run(*command.split(), self.pack, "-o", out, *args)
        run(*command.split(), self.pack, "-o", out, *args, code=taken)
        run(*command.split(), self.pack, "-o", out, *args, "--force")

    def threads(self, command, *args, source=None):
        """Any number of threads gives the same rows; more than there can be are refused."""
        assert self.done(command, *args, "-t", 1, source=source)[1] == self.done(command, *args, "-t", 5, source=source)[1]
        self.refused("-t: 99999", command, "-o", self.file(), *args, "-t", 99999, source=source)

    def differ2(self, command, first, second):
        assert self.done(command, *first) != self.done(command, *second), f"{second} is as {first}"

    def writes_only(self, command, option, name):
        run(command, self.pack, option, self.folder / name)
        assert (self.folder / name).stat().st_size > 0

    def across(self):
        """Only pairs of one pack and another count."""
        copy = self.folder / "copy.leat"
        shutil.copy(self.pack, copy)
        both, only = (json.loads(run("dedup", "images", self.pack, copy, "-o", self.file(), "--json", *more).stdout)
                      for more in ((), ("--across",)))
        assert {k: v for k, v in both.items() if k not in NOISE} != {k: v for k, v in only.items() if k not in NOISE}

    def strict(self):
        """A folder with a file whose name does not tell that it is an image."""
        folder = self.folder / "strict"
        if not folder.exists():
            run("export", self.pack, "-o", folder)
            next(folder.rglob("*.png")).rename(folder / "photo.data")
        self.differ("check", "--strict", source=folder)

    def select_config(self):
        path = self.file("select.yaml")
        path.write_text("strategies:\n- strategy: weights\n  column: score\n")
        assert self.done("select", "-c", path, "-n", 5)[1] == self.done("select", "-s", "weights", "--column", "score", "-n", 5)[1]

    def chosen(self):
        path = self.folder / "five.leat"
        if not path.exists():
            run("select", self.pack, "-s", "random", "-n", 5, "-o", path)
        return path

    def previous(self):
        report, _ = self.done("select", "-s", "random", "-n", 4, "--previous", self.chosen())
        assert report["previous"] == 5

    def key_file(self):
        path = self.folder / "keys.txt"
        path.write_text("a/00.png\nb/01.png\n")
        return path

    def shown(self, *args):
        plain, changed = (run("show", self.pack, "--as", "blocks", "--color", "always", *more).stdout for more in ((), args))
        assert plain != changed, f"{args} changes nothing"

    def viewed(self, test, *args):
        with View(self.pack, *args) as view:
            assert test(view), f"{args} changes nothing"

    def diagnosed(self, option, *words):
        path = self.file(f"diagnosis{option}")
        run("doctor", self.pack, "--size", 16, "--batch", 8, "--seconds", 1, "--step-ms", 1, option, path)
        text = path.read_text()
        assert all(word in text for word in words), (words, text[:2000])

    def doctor(self, *args):
        more = () if "--step-ms" in args else ("--step-ms", 5)
        return run("doctor", self.pack, "--size", 16, "--batch", 8, *more, *args)

    def facts(self, *args):
        seconds = () if "--seconds" in args else ("--seconds", 1)
        return json.loads(self.doctor(*seconds, *args, "--json").stdout)["facts"]

    def attached(self):
        path = self.file("run.jsonl")
        run("load", self.pack, "-s", 16, "-b", 8, "--epochs", 3, "--run-file", path)
        assert "limit" in json.loads(run("doctor", "--attach", path, "--json").stdout)

    def verified(self):
        done = self.doctor("--seconds", 1, "--verify")
        assert "Verified with" in done.stdout or "nothing to verify" in done.stderr, done.stderr

    # ---- plan

    def plans(self, *args):
        facts = json.loads(plan(*args, "--gpus", 0, "--json"))["facts"]
        assert facts["samples"] == ROWS and 40 < facts["width"] <= 48

    def plan_source(self, word, *args):
        sources = json.loads(plan("--dataset", self.pack, "--gpus", 0, "--batch", 8, "--image", 16, *args, "--json"))["speed"]["sources"]
        assert sources["cpu"].startswith(word) or word in sources["cpu"], sources

    def plan_ops(self, like):
        """It is measured on the pack: the plan says so."""
        made = json.loads(plan("--dataset", self.pack, "--gpus", 0, "--batch", 8, "--image", 16, "--like", like, "--json"))
        assert "measured" in made["speed"]["sources"]["cpu"]

    def compares(self):
        path = self.file("run.json")
        path.write_text(run("load", self.pack, "--json", "-s", 8).stdout)
        says("samples/s", "--dataset", self.pack, "--gpus", 0, "--image", 8, "--no-measure", "--compare", path)


# ---- check -------------------------------------------------------------------------------------

CHECK = {
    "output": lambda c: c.writes("check", "-o", "here.leat"),
    "csv": lambda c: c.writes("check", "--csv", "check.csv"),
    "limits": lambda c: c.differ("check", "--limits", "dark=250"),
    "strict": lambda c: c.strict(),
    "force": lambda c: c.force("check"),
    "threads": lambda c: c.threads("check"),
    "memory": lambda c: c.refused("not fit the 1 B given", "check", "-o", c.file(), "--memory", "1", code=3),
    "max-pixels": lambda c: c.differ("check", "--max-pixels", 2000),
    "labels": lambda c: c.differ("check", "--labels", "-e", c.vectors),
    "embeddings": lambda c: c.refused("embeddings", "check", "-o", c.file(), "--labels"),
    "predictions": lambda c: c.refused("", "check", "-o", c.file(), "--labels", "--predictions", c.columns),
    "column": lambda c: c.refused("nothing", "check", "-o", c.file(), "--labels", "-e", c.vectors, "--column", "nothing"),
    "field": lambda c: c.refused("nothing", "check", "-o", c.file(), "--labels", "-e", c.vectors, "--field", "nothing"),
    "neighbours": lambda c: c.differ("check", "--neighbours", 3, base=("--labels", "-e", c.vectors)),
}

# ---- select ------------------------------------------------------------------------------------

S = "select"
SELECT = {
    "output": lambda c: c.writes(S, "-o", "chosen.leat", "-s", "random", "-n", 5),
    "count": lambda c: c.differ2(S, ("-s", "random", "-n", 5), ("-s", "random", "-n", 7)),
    "share": lambda c: c.differ2(S, ("-s", "random", "--share", 0.25), ("-s", "random", "--share", 0.5)),
    "config": lambda c: c.select_config(),
    "strategy": lambda c: c.differ2(S, ("-s", "random", "-n", 5), ("-s", "diversity", "-n", 5, "-e", c.vectors)),
    "embeddings": lambda c: c.refused("embeddings", S, "-o", c.file(), "-s", "diversity", "-n", 3),
    "field": lambda c: c.refused("nothing", S, "-o", c.file(), "-s", "diversity", "-n", 3, "-e", c.vectors, "--field", "nothing"),
    "with": lambda c: (c.refused("mean", S, "-o", c.file(), "-s", "weights", "--column", "mean", "-n", 4),
                       c.done(S, "-s", "weights", "--column", "mean", "-n", 4, "--with", c.columns)),
    "where": lambda c: c.differ(S, "--where", "score > 5", base=("-s", "random", "-n", 5)),
    "previous": lambda c: c.previous(),
    "min-distance": lambda c: c.differ(S, "--min-distance", 1.2, base=("-s", "diversity", "-n", 20, "-e", c.vectors)),
    "column": lambda c: c.differ2(S, ("-s", "weights", "--column", "score", "-n", 5), ("-s", "weights", "--column", "label", "-n", 5)),
    "strength": lambda c: c.differ(S, "--strength", -2, base=("-s", "weights", "--column", "score", "-n", 5)),
    "distribution": lambda c: c.differ(S, "--distribution", "input", base=("-s", "balance", "--column", "label", "-n", 9, "--where", "score < 8 or label = 0")),
    "query": lambda c: c.refused("query", S, "-o", c.file(), "-s", "similarity", "-e", c.vectors, "-n", 3),
    "neighbours": lambda c: c.differ(S, "--neighbours", 2, base=("-s", "typicality", "-n", 9, "-e", c.vectors)),
    "seed": lambda c: c.differ(S, "--seed", 1, base=("-s", "random", "-n", 9)),
    "force": lambda c: c.force(S, "-s", "random", "-n", 5),
    "threads": lambda c: c.threads(S, "-s", "diversity", "-n", 5, "-e", c.vectors),
    "memory": lambda c: c.refused("memory", S, "-o", c.file(), "-s", "random", "-n", 5, "--memory", 1, code=3),
}

# ---- export, show, view ------------------------------------------------------------------------

EXPORT = {
    "output": lambda c: len(c.done("export", out="")[1]) == ROWS or pytest.fail("files are missing"),
    "to": lambda c: c.differ("export", "--to", "webdataset", out=""),
    "shard-bytes": lambda c: c.differ("export", "--shard-bytes", "1M", base=("--to", "webdataset"), out=""),
    "keys": lambda c: c.differ("export", "--keys", c.key_file(), out=""),
    "select": lambda c: c.differ("export", "--select", c.chosen(), out=""),
    "force": lambda c: c.force("export", taken=4),
    "checkpoint": lambda c: c.refused("", "export", "--checkpoint", "-o", c.file("x.pt"), code=4),
}
SHOW = {
    "output": lambda c: c.writes_only("show", "-o", "sheet.png"),
    "force": lambda c: (run("show", c.pack, "-o", c.file("twice.png")), run("show", c.pack, "-o", c.file("twice.png"), code=2),
                        run("show", c.pack, "-o", c.file("twice.png"), "--force")),
    "count": lambda c: c.shown("-n", 3),
    "size": lambda c: c.shown("--size", 16),
    "field": lambda c: (c.shown("--field", "second"), c.refused("label", "show", "--as", "blocks", "--field", "label")),
    "as": lambda c: c.shown("--as", "sixel"),
}
VIEW = {
    "with": lambda c: c.viewed(lambda v: "issues" in {k["name"] for k in v.get("facts")["columns"]}, "--with", c.columns),
    "selection": lambda c: c.viewed(lambda v: v.get("facts")["selected"] == 5, "--selection", c.chosen()),
    "save": lambda c: c.viewed(lambda v: "mine" in json.dumps(v.get("facts")), "--save", c.folder / "mine.leat"),
    "field": lambda c: c.refused("label", "view", "--field", "label"),
    "port": lambda c: c.refused("--port", "view", "--port", 99999),
    "memory": lambda c: c.refused("--memory", "view", "--memory", 1),
}

# ---- dedup images, dedup semantic --------------------------------------------------------------

I, V = "dedup images", "dedup semantic"
IMAGES = {
    "output": lambda c: c.writes(I, "-o", "pairs.leat"),
    "threshold": lambda c: c.differ(I, "--threshold", 0.999),
    "keep": lambda c: c.differ(I, "--keep", "first"),
    "report": lambda c: c.refused("is for texts", I, "-o", c.file(), "--report", c.file()),
    "csv": lambda c: c.writes(I, "--csv", "pairs.csv"),
    "orientations": lambda c: (c.differ(I, "--orientations", "1"), c.differ(I, "--orientations", "8")),
    "windows": lambda c: c.differ(I, "--windows"),
    "across": lambda c: (c.across(), c.refused("two inputs", I, "-o", c.file(), "--across")),
    "list-probable": lambda c: (c.done(I, "--csv", c.file(), "--list-probable"), c.refused("--csv", I, "-o", c.file(), "--list-probable")),
    "force": lambda c: c.force(I),
    "threads": lambda c: c.threads(I),
    "memory": lambda c: c.refused("not fit the 1 B given", I, "-o", c.file(), "--memory", "1", code=3),
}
SEMANTIC = {
    "output": lambda c: c.done(V, "-o", c.folder / "near.leat", source=c.vectors),
    "threshold": lambda c: c.differ(V, "--threshold", 0.5, source=c.vectors),
    "keep": lambda c: c.differ(V, "--keep", "central", base=("--threshold", 0.5), source=c.vectors),
    "report": lambda c: c.refused("is for texts", V, "-o", c.file(), "--report", c.file(), source=c.vectors),
    "csv": lambda c: c.refused("is for images", V, "-o", c.file(), "--csv", c.file(), source=c.vectors),
    "keep-share": lambda c: c.differ(V, "--keep-share", 0.5, source=c.vectors),
    "centres": lambda c: c.differ(V, "--centres", 40, base=("--threshold", 0.5), source=c.vectors),
    "device": lambda c: c.refused("device: 'abacus' cannot be used here", V, "-o", c.file(), "--device", "abacus", source=c.vectors),
    "threads": lambda c: c.threads(V, source=c.vectors),
}
# Of the doctor's own options; the loader's flags are those of leat load (test_effect_cli.py).
DOCTOR = {
    "report": lambda c: c.diagnosed("--report", "photos.leat", "doctor", leat.__version__, "logarithmic", " CPU"),
    "trace": lambda c: c.diagnosed("--trace", "traceEvents"),
    "apply": lambda c: c.diagnosed("--apply"),
    "attach": lambda c: c.attached(),
    "seconds": lambda c: c.facts("--seconds", 3)["steps"] > 1.5 * c.facts("--seconds", 1)["steps"] or pytest.fail("as many steps"),
    "spin": lambda c: c.facts("--step-ms", 50, "--spin")["cpu_used"] > 2 * c.facts("--step-ms", 50)["cpu_used"] or pytest.fail("no more CPU"),
    "verify": lambda c: c.verified(),
}


TABLES = {"plan": PLAN, "check": CHECK, "select": SELECT, "export": EXPORT, "show": SHOW, "view": VIEW, "dedup images": IMAGES,
          "dedup semantic": SEMANTIC, "doctor": DOCTOR}


@pytest.fixture(scope="module")
def box(tmp_path_factory):
    return Box(tmp_path_factory.mktemp("effects"))


def test_the_tables_have_every_option():
    for name in ("plan", "check", "select", "export", "show", "view"):
        assert set(TABLES[name]) | REMOTE | COMMON == table(name), name
    assert set(IMAGES) | set(SEMANTIC) <= table("dedup")
    assert set(DOCTOR) == table("doctor") - table("load") | {"report", "trace"}


@pytest.mark.parametrize("command, name", [(command, name) for command, rows in TABLES.items() for name in rows])
def test_an_option_has_an_effect(command, name, box):
    TABLES[command][name](box)
