# SPDX-License-Identifier: Apache-2.0
"""Every option of `leat verify`, `merge`, `split`, `append`, `delete`, `compact`, `top`, `curate`, `selftest` and `demo` has
an effect that can be seen, or is refused where it has none.

The options come from the command's own table (`leat help --json`): a new one needs a row here. The last test looks for
commands that have no table in any file test_effect_*.py."""

from __future__ import annotations

import ast
import glob
import json
import os
import resource
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest

import leat
from conftest import ROOT, damage, jpeg

COMMON = {"json", "quiet", "verbose", "color", "help"}
REMOTE = {"anonymous", "ca-file"}  # tests/remote/test_commands.py
NOISE = {"seconds", "cpu_seconds", "rows_per_s"}
ROWS = 12


def run(*args, code=(0, 1), limit=None):
    """1: there is a finding. `limit`: no file may get larger."""
    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = subprocess.run([sys.executable, "-m", "leat", *map(str, args)], capture_output=True, text=True, timeout=300,
                          preexec_fn=small if limit else None)
    assert done.returncode in (code if isinstance(code, tuple) else (code,)), (args, done.returncode, done.stderr)
    return done


def reported(*args, **more):
    report = json.loads(run(*args, "--json", **more).stdout)
    return {name: value for name, value in report.items() if name not in NOISE}


def rows(path):
    with leat.open(path) as pack:
        return [(key, repr(pack[i])) for i, key in enumerate(pack.keys)]


def files(folder):
    return {os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names}


def options():
    """The options of each command, without those that all of them have."""
    listed = json.loads(run("help", "--json").stdout)["commands"]
    return {c["name"]: {option["name"] for option in c["options"]} - COMMON - REMOTE for c in listed}


class Case:
    """Packs a.leat and b.leat (image, label), which share the key 3.jpg; and folders of images."""

    def __init__(self, folder):
        self.folder, self.runs = str(folder), 0
        self.a, self.b = self.write("a", range(ROWS)), self.write("b", [3, *range(ROWS, 2 * ROWS)])

    def write(self, name, numbers):
        path = self.file(f"{name}.leat")
        with leat.Writer(path, {"image": "image", "label": int}, classes={"label": ["cat", "dog"]}, page_bytes="64K", sync=False) as w:
            for i in numbers:
                w.append({"image": jpeg(np.random.default_rng([i, name == "b"]), 640, 480, 97), "label": i % 2}, key=f"{i}.jpg")
        return path

    def file(self, name=None):
        self.runs += 1
        return os.path.join(self.folder, name or f"out{self.runs}.leat")

    def text(self, name, text):
        path = self.file(name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def copy(self, pack=None):
        path = self.file()
        shutil.copy(pack or self.a, path)
        return path

    def damaged(self, pack=None):
        path = self.file()
        damage(pack or self.a, path, 5)
        return path

    def photos(self):
        """Three images; one of them has a name that does not tell so, one is cut."""
        folder = self.file(f"photos{self.runs}")
        for i, name in enumerate(("cat/x.jpg", "cat/y.data", "dog/z.jpg")):
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as f:
                f.write(jpeg(np.random.default_rng(i), 64, 48)[:None if i < 2 else -300])
        return folder

    def refused(self, words, *args, code=2):
        done = run(*args, code=code)
        assert words in done.stderr, done.stderr

    # ---- verify

    def verify_threads(self):
        bad = self.damaged()
        found = [json.loads(run("verify", bad, "--json", "-t", n, code=4).stdout) for n in (1, 7)]
        assert found[0]["damaged_samples"] == 1 and found[0] == found[1]
        self.refused("-t: 0", "verify", self.a, "-t", 0)

    # ---- merge

    def merged(self, *args, packs=None, **more):
        out = self.file()
        report = reported("merge", *(packs or (self.a, self.b)), "-o", out, *args, **more)
        return report, rows(out)

    def merge_duplicates(self):
        self.refused("3.jpg", "merge", self.a, self.b, "-o", self.file())
        found = {how: dict(self.merged("--duplicates", how)[1]) for how in ("first", "last", "rename")}
        assert len(found["first"]) == len(found["last"]) == len(found["rename"]) - 1
        assert found["first"]["3.jpg"] != found["last"]["3.jpg"] == found["rename"]["3-2.jpg"]

    def merge_where(self):
        report, made = self.merged("--where", "label == 'cat'", "--duplicates", "first")
        assert report["filtered"] == ROWS + 1 and len(made) == ROWS

    def merge_resume(self):
        """A file may not get larger than two thirds of the result: the run stops there."""
        out = self.file()
        limit = (os.path.getsize(self.a) + os.path.getsize(self.b)) * 2 // 3
        args = ("merge", self.a, self.b, "-o", out, "--duplicates", "first")
        run(*args, limit=limit, code=4)
        self.refused("unfinished", *args)
        run(*args, "--resume")
        assert rows(out) == self.merged("--duplicates", "first")[1]

    def merge_force(self):
        out = self.copy()
        self.refused("already exists", "merge", self.b, "-o", out)
        assert reported("merge", self.b, "-o", out, "--force")["samples"] == ROWS + 1 == len(rows(out))

    def merge_skips(self):
        """--on-error and --report: a damaged sample stops a merge, or is listed."""
        bad, listed = self.damaged(), self.file(f"skipped{self.runs}.jsonl")
        self.refused("5.jpg", "merge", bad, "-o", self.file(), code=4)
        report, made = self.merged("--on-error", "skip", "--report", listed, packs=[bad])
        assert report["skipped"] == 1 and len(made) == ROWS - 1
        with open(listed, encoding="utf-8") as f:
            assert [json.loads(line)["key"] for line in f] == ["5.jpg"]

    def merge_shards(self):
        report, made = self.merged("--shard-bytes", "1M", "--duplicates", "first")
        plain, same = self.merged("--duplicates", "first")
        assert report["shards"] > plain["shards"] == 1 and made == same
        self.refused("1 MiB", "merge", self.a, "-o", self.file(), "--shard-bytes", 1000)

    def merge_threads(self):
        assert self.merged("-t", 1, "--duplicates", "last") == self.merged("-t", 5, "--duplicates", "last")
        self.refused("-t: 99999", "merge", self.a, "-o", self.file(), "-t", 99999)

    # ---- split

    def parts(self, *args):
        folder = self.file(f"parts{self.runs}")
        report = reported("split", self.a, "-o", folder, *args)
        return {part["name"]: [key for key, _ in rows(part["path"])] for part in report["parts"]}

    def split_parts(self):
        assert list(self.parts()) == ["train", "val"]
        made = self.parts("--parts", "one=0.5,two=0.25")
        assert list(made) == ["one", "two"] and sum(map(len, made.values())) < ROWS

    def split_stratify(self):
        made = self.parts("--parts", "x=0.5,y=0.5", "--stratify", "label")
        with leat.open(self.a) as pack:
            label = dict(zip(pack.keys, pack.column("label").tolist()))
        assert {name: sorted(label[key] for key in keys) for name, keys in made.items()} == {name: [0] * 3 + [1] * 3 for name in "xy"}
        self.refused("nothing", "split", self.a, "-o", self.file(), "--stratify", "nothing")

    def split_output(self):
        pack = self.copy()
        beside = reported("split", pack)["parts"][0]["path"]
        assert os.path.dirname(beside) == self.folder
        folder = self.file("deep/parts")
        assert os.path.dirname(reported("split", pack, "-o", folder)["parts"][0]["path"]) == folder

    def split_force(self):
        pack = self.copy()
        run("split", pack)
        self.refused("already exists", "split", pack)
        run("split", pack, "--force")

    # ---- append

    def appended(self, source, *args, to=None, **more):
        out = self.copy(to)
        return reported("append", source, "-o", out, *args, **more), rows(out)

    def append_existing(self):
        self.refused('"3.jpg"', "append", self.b, "-o", self.copy())
        skip, kept = self.appended(self.b, "--if-exists", "skip")
        update, new = self.appended(self.b, "--if-exists", "update")
        assert skip["existing"] == update["existing"] == 1 and dict(kept)["3.jpg"] != dict(new)["3.jpg"]

    def append_errors(self):
        folder, listed = self.photos(), self.file(f"left{self.runs}.jsonl")
        self.refused("z.jpg", "append", folder, "-o", self.copy(), code=4)
        report, made = self.appended(folder, "--on-error", "skip", "--report", listed)
        assert (report["samples"], report["skipped"], len(made)) == (1, 1, ROWS + 1)
        with open(listed, encoding="utf-8") as f:
            assert [json.loads(line)["key"] for line in f] == ["dog/z.jpg"]

    def append_strict(self):
        folder = self.photos()
        counts = [self.appended(folder, "--on-error", "skip", *more)[0]["samples"] for more in ((), ("--strict",))]
        assert counts == [1, 2]

    def append_threads(self):
        assert self.appended(self.b, "--if-exists", "skip", "-t", 1) == self.appended(self.b, "--if-exists", "skip", "-t", 5)
        self.refused("-t: 99999", "append", self.b, "-o", self.copy(), "-t", 99999)

    def append_images(self):
        """Raw pixels take more bytes."""
        folder = self.photos()
        sizes = [self.appended(folder, "--on-error", "skip", *more)[0]["bytes_out"] for more in ((), ("--images", "raw"))]
        assert sizes[1] > sizes[0] + 5000

    def append_trust(self):
        """The cut image is not noticed."""
        assert self.appended(self.photos(), "--trust")[0]["samples"] == 2

    def append_keys(self):
        listed = self.text("keys.txt", "15.jpg\n14.jpg\n")
        report, made = self.appended(self.b, "--keys", listed)
        assert report["samples"] == 2 and [key for key, _ in made[ROWS:]] == ["15.jpg", "14.jpg"]
        self.refused("keys", "append", self.photos(), "-o", self.copy(), "--keys", listed)

    # ---- delete, compact

    def delete_keys(self):
        pack, listed = self.copy(), self.text("gone.txt", "1.jpg\n7.jpg\nnobody\n")
        assert reported("delete", pack, "--keys", listed) == {"samples": 2, "missing": 1}
        assert len(rows(pack)) == ROWS - 2

    def delete_missing(self):
        run("delete", self.copy(), "1.jpg", "nobody", code=1)
        assert run("delete", self.copy(), "1.jpg", "nobody", "--missing-ok", code=0).stderr.count("nobody") == 0

    def grown(self):
        pack = self.copy()
        run("delete", pack, "1.jpg")
        run("append", self.b, "-o", pack, "--if-exists", "skip")
        return pack

    def compact_output(self):
        pack, out = self.grown(), self.file()
        before = rows(pack)
        assert reported("compact", pack, "-o", out)["shards"] == 1
        with leat.open(pack) as old, leat.open(out) as new:
            assert old.info["dropped"] > 0 == new.info["dropped"]
        assert rows(pack) == rows(out) == before

    def compact_force(self):
        pack, out = self.grown(), self.copy()
        self.refused("already exists", "compact", pack, "-o", out)
        run("compact", pack, "-o", out, "--force")
        assert rows(out) == rows(pack)

    def compact_shards(self):
        pack = self.grown()
        before = rows(pack)
        assert reported("compact", pack, "--shard-bytes", "1M")["shards"] > 1 and rows(pack) == before

    # ---- top

    def top_once(self):
        """Prints the verdict of a run and ends. A run that is missing is an error; without --once it is waited for."""
        path, missing = self.file("run.jsonl"), self.file("nowhere.jsonl")
        run("load", self.a, "-s", 8, "-b", 4, "--run-file", path)
        assert run("top", path, "--once", code=0).stdout != ""
        assert "No such file" in run("top", missing, "--once", code=4).stderr
        with subprocess.Popen([sys.executable, "-m", "leat", "top", missing], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as follows:
            time.sleep(1)
            assert follows.poll() is None, "it does not wait"
            follows.terminate()

    def top_wait(self):
        """A run that does not begin in time, or was killed, is an error."""
        begin = time.monotonic()
        assert "nowhere.jsonl" in run("top", self.file("nowhere.jsonl"), "--wait", "1s", code=4).stderr
        assert 1 <= time.monotonic() - begin < 30
        assert "no new record for 1 s" in run("top", self.text("cut.jsonl", ""), "--wait", "1s", code=4).stderr

    # ---- curate

    def curated(self, *args, source=None, folder=None, code=(0, 1)):
        folder = folder or self.file(f"run{self.runs}")
        return folder, reported("curate", source or self.many(), "-o", folder, *args, code=code)

    def many(self):
        path = os.path.join(self.folder, "many.leat")
        if not os.path.exists(path):
            with leat.Writer(path, {"image": "image", "label": int}, sync=False) as w:
                for i in range(40):
                    w.append({"image": jpeg(np.random.default_rng(i), 64, 48), "label": i % 3}, key=f"{i:02}.jpg")
        return path

    def ran(self, report):
        return [step["step"] for step in report["steps"] if not step["reused"]]

    def curate_output(self):
        folder, _ = self.curated("-n", 5)
        assert {"run.json", "select.leat", "selected.txt", "report.html"} <= files(folder)

    def curate_config(self):
        config = self.text("steps.yaml", "select:\n  count: 7\n")
        assert self.curated("-c", config)[1]["selected"] == 7
        assert self.curated("-c", config, "-n", 3)[1]["selected"] == 3

    def curate_model(self):
        self.refused("nomodel", "curate", self.many(), "-o", self.file(), "-n", 5, "-m", "nomodel", code=(2, 4))

    def curate_threads(self):
        made = [self.curated("-n", 5, "-t", n)[0] for n in (1, 5)]
        assert rows(os.path.join(made[0], "select.leat")) == rows(os.path.join(made[1], "select.leat"))
        self.refused("-t: 99999", "curate", self.many(), "-o", self.file(), "-t", 99999)

    def curate_from(self):
        folder, first = self.curated("-n", 5)
        assert "select" in self.ran(first) and self.ran(self.curated("-n", 5, folder=folder)[1]) == []
        again = self.ran(self.curated("-n", 5, "--from", "select", folder=folder)[1])
        assert "select" in again and "check" not in again and "embed" not in again

    def curate_force(self):
        folder, first = self.curated("-n", 5)
        assert self.ran(self.curated("-n", 5, folder=folder)[1]) == []
        assert self.ran(self.curated("-n", 5, "--force", folder=folder)[1]) == self.ran(first)

    def curate_plan(self):
        folder, report = self.curated("-n", 5, "--plan")
        assert report["steps"] and not os.path.exists(os.path.join(folder, "select.leat"))


    # ---- selftest, demo

    def tested(self, *args):
        quick = () if "--work-time" in args else ("--work-time", "10us")
        few = () if "-n" in args else ("-n", 64)
        return json.loads(run("selftest", "engine", "--read-time", "0s", *quick, *few, "--task-bytes", "1KiB", *args, "--json", code=0).stdout)

    def stage(self, report, name):
        return next(stage for stage in report["stages"] if stage["name"] == name)

    def selftest_time(self, option, name, seconds):
        """The stage is busy for so long, and was not before."""
        plain, slow = (self.stage(self.tested(*more), name)["busy_s"] for more in ((), (option, "5ms")))
        assert slow >= seconds > plain

    def selftest_group(self):
        few, many = (self.tested("--group", n)["stages"][-1]["items"] for n in (32, 4))
        assert (few, many) == (2, 16)

    def selftest_mode(self):
        """batch keeps many tasks in flight, streaming finishes them first."""
        args = ("-n", 400, "--task-bytes", "64KiB", "--work-time", "1ms", "--threads", 1, "--io-depth", 4, "--memory", "16M", "--mode")
        streaming, batch = (self.tested(*args, mode)["budget_peak_bytes"] for mode in ("streaming", "batch"))
        assert batch > 1.5 * streaming

    def demo(self):
        """It is stopped once its first step is done."""
        folder = self.file("demo")
        command = [sys.executable, "-m", "leat", "demo", "--dir", folder, "--images", "24", "--classes", "3"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as made:
            for line in made.stdout:
                if "leat pack" in line:
                    break
            made.terminate()
        photos = [path for path in files(folder) if path.endswith(".jpg")]
        assert len(photos) == 24 and len({os.path.dirname(path) for path in photos}) == 3


VERIFY = {"threads": lambda c: c.verify_threads()}
MERGE = {
    "output": lambda c: c.merged("--duplicates", "first"),
    "duplicates": lambda c: c.merge_duplicates(),
    "where": lambda c: c.merge_where(),
    "resume": lambda c: c.merge_resume(),
    "force": lambda c: c.merge_force(),
    "on-error": lambda c: c.merge_skips(),
    "report": lambda c: c.merge_skips(),
    "shard-bytes": lambda c: c.merge_shards(),
    "threads": lambda c: c.merge_threads(),
}
SPLIT = {
    "parts": lambda c: c.split_parts(),
    "stratify": lambda c: c.split_stratify(),
    "output": lambda c: c.split_output(),
    "seed": lambda c: c.parts("--parts", "x=0.5,y=0.5") != c.parts("--parts", "x=0.5,y=0.5", "--seed", 1) or pytest.fail("the same parts"),
    "force": lambda c: c.split_force(),
}
APPEND = {
    "output": lambda c: len(c.appended(c.b, "--if-exists", "skip")[1]) == 2 * ROWS or pytest.fail("nothing was appended"),
    "if-exists": lambda c: c.append_existing(),
    "on-error": lambda c: c.append_errors(),
    "strict": lambda c: c.append_strict(),
    "report": lambda c: c.append_errors(),
    "threads": lambda c: c.append_threads(),
    "memory": lambda c: c.refused("", "append", c.photos(), "-o", c.copy(), "--memory", "1K", code=3),
    "images": lambda c: c.append_images(),
    "trust": lambda c: c.append_trust(),
    "keys": lambda c: c.append_keys(),
}
DELETE = {"keys": lambda c: c.delete_keys(), "missing-ok": lambda c: c.delete_missing()}
COMPACT = {
    "output": lambda c: c.compact_output(),
    "force": lambda c: c.compact_force(),
    "shard-bytes": lambda c: c.compact_shards(),
}
TOP = {"once": lambda c: c.top_once(), "wait": lambda c: c.top_wait()}
CURATE = {
    "output": lambda c: c.curate_output(),
    "config": lambda c: c.curate_config(),
    "count": lambda c: c.curated("-n", 5)[1]["selected"] == 5 or pytest.fail("not five"),
    "share": lambda c: c.curated("--share", 0.25)[1]["selected"] == 10 or pytest.fail("not ten"),
    "model": lambda c: c.curate_model(),
    "threads": lambda c: c.curate_threads(),
    "memory": lambda c: c.refused("", "curate", c.many(), "-o", c.file(), "-n", 5, "--memory", "1", code=3),
    "from": lambda c: c.curate_from(),
    "force": lambda c: c.curate_force(),
    "plan": lambda c: c.curate_plan(),
}
SELFTEST = {
    "tasks": lambda c: c.tested("-n", 96)["tasks"] == 96 or pytest.fail("not 96"),
    "task-bytes": lambda c: c.refused("", "selftest", "engine", "-n", 9, "--task-bytes", "1M", "--memory", "1K", code=3),
    "group": lambda c: c.selftest_group(),
    "read-time": lambda c: c.selftest_time("--read-time", "read", 64 * 0.004),
    "work-time": lambda c: c.selftest_time("--work-time", "work", 64 * 0.004),
    "write-time": lambda c: c.selftest_time("--write-time", "write", 4 * 0.004),
    "memory": lambda c: c.tested("--memory", "64M")["budget_bytes"] == 64 << 20 or pytest.fail("another budget"),
    "threads": lambda c: c.tested("--threads", 1)["threads"] == 1 or pytest.fail("not one"),
    "io-depth": lambda c: c.tested("--io-depth", 7)["io_depth"] == 7 or pytest.fail("not seven"),
    "mode": lambda c: c.selftest_mode(),
}
DEMO = {"dir": lambda c: c.demo(), "images": lambda c: c.demo(), "classes": lambda c: c.demo()}
TABLES = {"verify": VERIFY, "merge": MERGE, "split": SPLIT, "append": APPEND, "delete": DELETE, "compact": COMPACT, "top": TOP,
          "curate": CURATE, "selftest": SELFTEST, "demo": DEMO}


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    return Case(tmp_path_factory.mktemp("effects"))


def test_the_tables_have_every_option():
    listed = options()
    for name, table in TABLES.items():
        assert set(table) == listed[name], name


@pytest.mark.parametrize("command, name", [(command, name) for command, table in TABLES.items() for name in table])
def test_an_option_has_an_effect(command, name, case):
    TABLES[command][name](case)


# Commands whose options are tested elsewhere: the file.
ELSEWHERE = {"uploads": "tests/remote/test_sources.py", "help": "tests/cli/test_pages.py"}


def tables(path):
    """The names in TABLES = {"name": …} of a file. It is not imported: it may need torch."""
    with open(path, encoding="utf-8") as f:
        for node in ast.parse(f.read()).body:
            if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["TABLES"]:
                return {ast.literal_eval(key).split()[0] for key in node.value.keys}
    return set()


def test_every_command_has_a_table():
    found = set().union(*map(tables, glob.glob(os.path.join(os.path.dirname(__file__), "test_effect*.py"))))
    need = {name for name, own in options().items() if own}
    assert need - found - set(ELSEWHERE) == set()
    assert set(ELSEWHERE) <= need - found
    for name, path in ELSEWHERE.items():
        with open(os.path.join(ROOT, path), encoding="utf-8") as f:
            text = f.read()
        assert [option for option in options()[name] if f'"--{option}"' not in text] == [], path
