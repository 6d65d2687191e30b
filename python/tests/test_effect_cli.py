# SPDX-License-Identifier: Apache-2.0
"""Every option of `leat load` and `leat pack` has an effect that can be seen, or is refused where it has none.

The options come from the command's own table (`leat help --json`): a new one needs a row here."""

import http.server
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import threading

import numpy as np
import pytest

import leat
from conftest import damage, jpeg

Image = pytest.importorskip("PIL.Image")

# figures of a run that load and time change
_NOISE = {"seconds", "samples_per_s", "cpu_seconds", "peak_rss_bytes", "budget_peak_bytes", "first_batch_s",
          "wait_seconds", "read_seconds", "decode_seconds", "decisions", "budget_limit_bytes", "io_depth", "prefetch",
          "cache_hits", "cache_misses", "read_bytes"}


def run(*args, code=0):
    done = subprocess.run([sys.executable, "-m", "leat", *map(str, args)], capture_output=True, text=True, timeout=300)
    assert done.returncode == code, (args, done.stderr)
    return done


def refused(words, *args):
    done = run(*args, code=2)
    assert words in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


def loaded(pack, *args, keep=(), code=0):
    """What a run says, without what changes by itself."""
    rows = []
    for line in run("load", pack, "--json", "--digest", "-t", 1, *args, code=code).stdout.splitlines():
        if line.startswith("{"):
            rows.append({k: v for k, v in json.loads(line).items() if k in keep or k not in _NOISE})
    return rows


class Case:
    """What the rows of the tables may use."""

    def __init__(self, folder, plain, damaged):
        self.folder, self.plain, self.damaged = str(folder), plain, damaged

    def file(self, name):
        return os.path.join(self.folder, name)

    def checks(self):
        """The columns of leat check."""
        args = ["pack", self.photos(), "-o", self.file("x.leat"), "--check", self.file("c.leat")]
        done = subprocess.run([sys.executable, "-m", "leat", *args], capture_output=True, text=True, timeout=300)
        assert done.returncode in (0, 1) and "images with issues" in done.stdout, done
        assert list(leat.open(self.file("c.leat")).keys) == list(leat.open(self.file("x.leat")).keys)

    def tar(self):
        """Three samples: one without a text, one without a class."""
        rng = np.random.default_rng(1)
        members = [("0.jpg", jpeg(rng, 40, 30)), ("0.cls", b"4"), ("1.jpg", jpeg(rng, 40, 30)), ("1.txt", b"words"),
                   ("2.jpg", jpeg(rng, 40, 30)), ("2.cls", b"6"), ("2.txt", b"more")]
        with tarfile.open(self.file("t.tar"), "w") as archive:
            for name, data in members:
                info = tarfile.TarInfo(name)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
        return self.file("t.tar")

    def unsigned(self):
        """A server sees whether requests are signed."""
        seen = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                seen.append("Authorization" in self.headers)
                self.send_error(404)

            def log_message(self, *args):
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            env = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}", "AWS_ACCESS_KEY_ID": "ID",
                   "AWS_SECRET_ACCESS_KEY": "S", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
            for flag, signed in (("--no-anonymous", True), ("--anonymous", False)):
                seen.clear()
                subprocess.run([sys.executable, "-m", "leat", "load", "s3://b/x.leat", flag], env=os.environ | env,
                               capture_output=True, timeout=300)
                assert seen and set(seen) == {signed}
            server.shutdown()

    # -- load

    def differ(self, *args, base=("-s", 8, "-b", 16), keep=(), pack=None):
        pack = pack or self.plain
        before = loaded(pack, *base, keep=keep)
        assert before != loaded(pack, *base, *args, keep=keep), f"{args} changes nothing"

    def refused(self, words, *args):
        refused(words, "load", self.plain, "-s", 8, *args)

    def writes(self, name, *args, pack=None, code=0):
        loaded(pack or self.plain, "-s", 8, *args, self.file(name), code=code)
        assert os.path.getsize(self.file(name)) > 0

    def prints(self, words, *args):
        assert words not in run("load", self.plain, "-s", 8, "-t", 1).stdout
        done = run("load", self.plain, "-s", 8, "-t", 1, *args)
        assert words in done.stdout + done.stderr

    def resumes(self):
        state = self.file("state")
        whole = loaded(self.plain, "-s", 8, "-b", 16)
        part = loaded(self.plain, "-s", 8, "-b", 16, "--stop-after", 32, "--state", state)
        rest = loaded(self.plain, "-s", 8, "-b", 16, "--resume", state)
        assert part[0]["samples"] == 32 and part != whole and rest[-1]["digest"] == whole[-1]["digest"]

    def turned(self):
        exif = Image.Exif()
        exif[0x112] = 6
        picture = Image.fromarray(np.arange(40 * 60 * 3, dtype=np.uint8).reshape(40, 60, 3))
        picture.save(self.file("a.jpg"), exif=exif)
        with leat.Writer(self.file("turned.leat"), {"image": "image"}) as w:
            w.append({"image": self.file("a.jpg")})
        return self.file("turned.leat")

    def rows(self):
        with leat.Writer(self.file("rows.leat"), {"row": ("uint8", (8192,))}, page_bytes="64K") as w:
            w.extend([[np.full(8192, i % 256, np.uint8)] for i in range(500)])
        return self.file("rows.leat")

    def two_bad(self):
        damage(self.damaged, self.file("two.leat"), 50)
        return self.file("two.leat")

    def text(self, name, content):
        with open(self.file(name), "w") as f:
            f.write(content)
        return self.file(name)

    def classed(self):
        with leat.Writer(self.file("classed.leat"), {"image": "image", "label": int},
                         classes={"label": ["a", "b"]}) as w:
            w.extend([[jpeg(np.random.default_rng(i), 20, 20), i % 2] for i in range(8)])
        return self.file("classed.leat")

    def chosen(self):
        leat.select(self.plain, self.file("chosen.leat"), "random", count=5, force=True, sync=False)
        return self.file("chosen.leat")

    def several(self):
        shutil.copy(self.plain, self.file("again.leat"))
        return self.file("again.leat"), "-s", 8, "-b", 16

    def policies(self):
        run("load", self.damaged, "-s", 8, code=4)
        base = ("-s", 8, "-b", 16)
        skipped = loaded(self.damaged, *base, "--on-error", "skip", code=1)
        assert skipped[0]["bad_samples"] == 1 and skipped[0]["samples"] == 100

    def slower(self):
        row = json.loads(run("load", self.plain, "-s", 8, "-b", 50, "--json", "--step-ms", 50).stdout.splitlines()[-1])
        assert row["seconds"] >= 0.1  # two of three steps at least

    # -- pack

    def photos(self):
        folder = self.file("photos")
        if not os.path.isdir(folder):
            os.mkdir(folder)
            rng = np.random.default_rng(3)
            for i in range(8):
                with open(f"{folder}/{i}.jpg", "wb") as f:
                    f.write(jpeg(rng, 96, 64))
        return folder

    def packed(self, *args, source=None, name="p.leat", code=0):
        run("pack", source or self.photos(), "-o", self.file(name), "-f", "--json", *args, code=code)
        with leat.open(self.file(name)) as ds:
            return [(s.key, s["image"].codec, s["image"].width, s["image"].stored) for s in ds]

    def same(self, one, other):
        assert one == other

    def numbers(self, *args):
        """Fields and labels of the tar shard, packed so."""
        run("pack", self.tar(), "-o", self.file("numbers.leat"), "-f", *args)
        ds = leat.open(self.file("numbers.leat"))
        return [f.name for f in ds.fields], ds.column("label").tolist()

    def packs_otherwise(self, *args, source=None, base=()):
        assert self.packed(*base, source=source) != self.packed(*base, *args, source=source), f"{args} changes nothing"

    def not_packed(self, words, *args, code=3):
        done = run("pack", self.photos(), "-o", self.file("n.leat"), *args, code=code)
        assert words in done.stderr and not os.path.exists(self.file("n.leat"))

    def not_packed_twice(self):
        run("pack", self.photos(), "-o", self.file("t.leat"))
        assert "already exists" in run("pack", self.photos(), "-o", self.file("t.leat"), code=2).stderr
        run("pack", self.photos(), "-o", self.file("t.leat"), "-f")
        assert "already exists" in run("pack", self.photos(), "-o", self.file("t.leat"), "--resume", code=2).stderr

    def frames(self):
        folder = self.photos()
        parts = [Image.fromarray(np.full((8, 8), 60 * i, np.uint8)) for i in range(3)]
        parts[0].save(f"{folder}/moving.gif", save_all=True, append_images=parts[1:])
        keys = [[key for key in leat.open(self.file("f.leat")).keys if "moving" in key]
                for options in ((), ("--frames", "all"))
                if run("pack", folder, "-o", self.file("f.leat"), "-f", *options)]
        assert keys == [["moving.gif"], ["moving.gif#0000", "moving.gif#0001", "moving.gif#0002"]]

    def trusts(self):
        """A file whose end is missing is found by decoding it only."""
        folder = self.photos()
        with open(f"{folder}/0.jpg", "r+b") as f:
            f.truncate(os.path.getsize(f"{folder}/0.jpg") // 2)
        self.not_packed("0.jpg", "--images", "keep", code=4)
        assert len(self.packed("--images", "keep", "--trust")) == 8

    def shards(self):
        folder = self.photos()
        for i in range(40):
            Image.fromarray(np.random.default_rng(i).integers(0, 255, (200, 200, 3), np.uint8)).save(
                f"{folder}/n{i}.png")
        self.packed(name="one.leat")
        self.packed("--shard-bytes", "1M", name="set.leat")
        files = os.listdir(self.folder)
        assert sum(name.startswith("one") for name in files) == 1 and sum(name.startswith("set") for name in files) > 3

    def pages(self):
        self.packed("--images", "raw", name="a.leat")
        self.packed("--images", "raw", "--page-bytes", "64K", name="b.leat")
        with leat.open(self.file("a.leat")) as a, leat.open(self.file("b.leat")) as b:
            assert a.info["pages"] < b.info["pages"]

    def scans(self):
        with Image.open(f"{self.photos()}/0.jpg") as picture:
            picture.save(f"{self.photos()}/0.jpg", progressive=True)
        self.not_packed("0.jpg", "--max-scans", 2)
        assert len(self.packed()) == 8

    def stray(self):
        folder = self.photos()
        self.text("photos/bad.jpg", "no image")
        self.text("photos/README.txt", "no image")
        return folder


MIX = ("--ops", "Resize((8, 8)); MixUp(0.2)")
QUASI = ("--order", "quasi_random", "--window-pages", 48, "--streams", 4)

LOAD = {
    "batch": lambda c: c.differ("-b", 7),
    "size": lambda c: c.differ("-s", 9),
    "crop": lambda c: c.differ("--crop", "center"),
    "flip": lambda c: (c.differ("--flip", 0), c.refused("--flip needs --crop rrc", "--crop", "none", "--flip", 0.3)),
    "dtype": lambda c: c.differ("--dtype", "f32"),
    "layout": lambda c: c.differ("--layout", "nhwc"),
    "like": lambda c: c.differ("--like", "fast"),
    "orientation": lambda c: c.differ("--orientation", "ignore", base=("-s", 8, "--crop", "none"),
                                      pack=c.turned()),
    "ops": lambda c: (c.differ("--ops", "CenterCrop(8)", base=("-b", 16)),
                      c.refused("--ops is the whole pipeline", "--ops", "CenterCrop(8)")),
    "collate": lambda c: c.differ("--collate", "pad"),
    "pad-multiple": lambda c: c.refused("--pad-multiple has no effect", "--pad-multiple", 2),
    "pad-value": lambda c: (c.refused("--pad-value has no effect", "--pad-value", 1),
                            c.refused("--pad-value 256", "--collate", "pad", "--pad-value", 256)),
    "pad-mask": lambda c: (c.refused("--pad-mask has no effect", "--pad-mask"),
                           c.differ("--pad-mask", base=("-s", 8, "--collate", "pad"))),
    "bucket": lambda c: c.differ("--bucket", "size"),
    "buckets": lambda c: (c.refused("--buckets has no effect", "--buckets", 3),
                          c.differ("--buckets", 2, base=("-s", 8, "--bucket", "aspect"))),
    "bucket-edges": lambda c: (c.refused("--bucket-edges has no effect", "--bucket-edges", "1,2"),
                               c.differ("--bucket-edges", "0.9,1.1", base=("-s", 8, "--bucket", "aspect"))),
    "follow": lambda c: c.refused("follow", "--follow", "label"),
    "mix-labels": lambda c: (c.refused("--mix-labels has no effect", "--mix-labels", "soft"),
                             c.differ("--mix-labels", "pairs", base=MIX, pack=c.classed())),
    "label": lambda c: c.refused("--label has no effect", "--label", "label"),
    "classes": lambda c: (c.refused("--classes has no effect", "--classes", 3),
                          c.differ("--classes", 30, base=(*MIX, "--classes", 20))),
    "order": lambda c: c.differ("--order", "sequential"),
    "seed": lambda c: c.differ("--seed", 3),
    "epochs": lambda c: c.differ("--epochs", 2),
    "drop-last": lambda c: c.differ("--drop-last"),
    "keep-last": lambda c: c.differ("--keep-last", base=("-s", 8, "-b", 10, "--world", 2)),
    "keys": lambda c: c.differ("--keys", c.text("keys", "00000003\n00000001\n")),
    "select": lambda c: (c.differ("--select", c.chosen()),
                         c.refused("either --keys or --select", "--select", c.chosen(), "--keys", c.text("k", "00000003\n"))),
    "balance": lambda c: c.differ("--balance", "label"),
    "window-pages": lambda c: (c.refused("--window-pages has no effect", "--window-pages", 4),
                               c.differ("--window-pages", 16, base=QUASI, pack=c.rows())),
    "streams": lambda c: (c.refused("--streams has no effect", "--streams", 4),
                          c.differ("--streams", 2, base=QUASI, pack=c.rows())),
    "on-error": lambda c: c.policies(),
    "max-bad": lambda c: (c.refused("--max-bad has no effect", "--max-bad", 3),
                          run("load", c.two_bad(), "-s", 8, "--on-error", "skip", "--max-bad", 1, code=4)),
    "quarantine": lambda c: (c.refused("--quarantine has no effect", "--quarantine", "list"),
                             c.writes("bad", "--on-error", "skip", "--quarantine", pack=c.damaged, code=1)),
    "threads": lambda c: c.differ("-t", 2),
    "memory": lambda c: c.differ("--memory", "200M", keep=("budget_limit_bytes",)),
    "cache": lambda c: c.differ("--cache", "process", keep=("cache_misses",)),
    "cache-bytes": lambda c: c.refused("--cache-bytes needs --cache disk:DIR", "--cache-bytes", "1G"),
    "prefetch": lambda c: c.differ("--prefetch", 2, keep=("prefetch",)),
    "io-depth": lambda c: c.differ("--io-depth", 3, keep=("io_depth",)),
    "device": lambda c: c.refused("--device: 'tpu' is not cpu", "--device", "tpu"),
    "decode": lambda c: c.refused("--decode gpu needs a --device", "--decode", "gpu"),
    "device-memory": lambda c: c.refused("--device-memory needs a --device", "--device-memory", "1G"),
    "rank": lambda c: c.differ("--rank", 1, base=("-s", 8, "--world", 2)),
    "world": lambda c: c.differ("--world", 2),
    "step-ms": lambda c: c.slower(),
    "config": lambda c: c.differ("--config", c.text("load.yaml", "size: 11\n"), base=("-b", 16)),
    "stop-after": lambda c: c.resumes(),
    "state": lambda c: c.resumes(),
    "resume": lambda c: c.resumes(),
    "digest": lambda c: c.prints("digest", "--digest"),
    "live": lambda c: None,  # needs a terminal: tests/cli/test_live.py
    "serve": lambda c: c.prints("http://127.0.0.1:", "--serve", 0),
    "doctor": lambda c: c.prints("few steps", "--doctor"),
    "run-file": lambda c: c.writes("run", "--run-file"),
    "report": lambda c: c.writes("report.html", "--report"),
    "trace": lambda c: c.writes("trace.json", "--trace"),
    "mix": lambda c: c.differ("--mix", "1,3", base=c.several()),
    "repeat": lambda c: c.differ("--repeat", "1,2", base=c.several()),
    "choose": lambda c: c.differ("--choose", "10,20", base=c.several()),
    "epoch-size": lambda c: (c.differ("--epoch-size", 50, base=(*c.several(), "--mix", "1,1")),
                             c.refused("--epoch-size needs weights", "--epoch-size", 50)),
    "mix-batches": lambda c: c.differ("--mix-batches", "single", base=c.several()),
    "replacement": lambda c: c.differ("--replacement", base=c.several()),
    "default": lambda c: c.refused("has no effect", "--default", "label=3"),
}

PACK = {
    "output": lambda c: run("pack", c.photos(), code=2),
    "resume": lambda c: c.not_packed_twice(),
    "force": lambda c: c.not_packed_twice(),
    "on-error": lambda c: (run("pack", c.stray(), "-o", c.file("x"), code=4),
                           run("pack", c.stray(), "-o", c.file("x"), "--on-error", "skip", "-f", code=1)),
    "strict": lambda c: (c.stray(), os.remove(c.file("photos/bad.jpg")), c.not_packed("README.txt", "--strict", code=4)),
    "report": lambda c: (run("pack", c.stray(), "-o", c.file("x"), "--on-error", "skip", "--report", c.file("r"), code=1),
                         open(c.file("r")).read().index("bad.jpg")),
    "check": lambda c: c.checks(),
    "threads": lambda c: run("pack", c.photos(), "-o", c.file("x"), "-t", 5000, code=2),
    "memory": lambda c: c.not_packed("not fit the 1.00 MiB given (--memory)", "--memory", "1M"),
    "images": lambda c: c.packs_otherwise("--images", "keep"),
    "tiles": lambda c: (c.packs_otherwise("--tiles", "fast"),
                        c.not_packed("--tiles needs", "--tiles", "fast", "--images", "keep", code=2)),
    "mix-raw": lambda c: (c.packs_otherwise("--mix-raw", 1, base=("--images", "mix")),
                          c.not_packed("--mix-raw needs", "--mix-raw", 0.1, code=2)),
    "max-side": lambda c: c.packs_otherwise("--max-side", 40),
    "quality": lambda c: (c.packs_otherwise("--quality", 30),
                          c.not_packed("--quality has no effect", "--quality", 30, "--images", "raw", code=2)),
    "frames": lambda c: c.frames(),
    "trust": lambda c: (c.trusts(), c.not_packed("--trust has no effect", "--trust", "--images", "raw", code=2)),
    "shuffle": lambda c: c.packs_otherwise("--shuffle", 5),
    "keys": lambda c: (c.packs_otherwise("--keys", c.text("k", "00000002\n"), source=c.plain),
                       c.not_packed("works on packs only", "--keys", c.text("k", "0.jpg\n"), code=2)),
    "select": lambda c: (c.packs_otherwise("--select", c.chosen(), source=c.plain),
                         c.not_packed("--select works on packs only", "--select", c.chosen(), code=2)),
    "where": lambda c: (c.packs_otherwise("--where", "label == 1", source=c.plain),
                        c.not_packed("where: column 1", "--where", "label ==", code=2)),
    "members": lambda c: (c.same(c.numbers("--members", "cls,jpg", "--default", "label=-1"), (["label", "image"], [4, -1, 6])),
                          c.not_packed("not a tar shard", "--members", "jpg", code=2),
                          'no sample has a member "clss"; the shards have jpg, cls' in
                          run("pack", c.tar(), "-o", c.file("x"), "--members", "jpg,clss", code=2).stderr or pytest.fail("not told")),
    "infer": lambda c: (run("pack", c.tar(), "-o", c.file("x"), "--infer", 1, code=4),
                        c.not_packed("not a tar shard", "--infer", 2, code=2),
                        run("pack", c.tar(), "-o", c.file("x"), "--infer", 2, "--members", "jpg", code=2)),
    "default": lambda c: (run("pack", c.tar(), "-o", c.file("x"), code=4),
                          c.same(c.numbers("--default", "label=-2"), (["image", "label", "txt"], [4, -2, 6])),
                          c.not_packed("not a tar shard", "--default", "label=1", code=2)),
    "shard-bytes": lambda c: c.shards(),
    "page-bytes": lambda c: c.pages(),
    "max-pixels": lambda c: c.not_packed("over the limit of 5", "--max-pixels", 5),
    "max-out-bytes": lambda c: c.not_packed("over the limit of 5", "--max-out-bytes", 5),
    "max-sample-bytes": lambda c: c.not_packed("over the limit of 5", "--max-sample-bytes", 5),
    "max-scans": lambda c: c.scans(),
    "max-work": lambda c: c.not_packed("over the limit of 5", "--max-work", 5),
}

# of every command with remote paths; tests/remote/test_commands.py tries them on each
REMOTE = {
    "anonymous": lambda c: c.unsigned(),
    "ca-file": lambda c: run("load", c.plain, "--ca-file", c.file("nowhere"), code=2).stderr.index("--ca-file"),
}
LOAD |= REMOTE
PACK |= REMOTE

TABLES = {"load": LOAD, "pack": PACK}
# of every command: tests/cli/cases/options.t
COMMON = {"json", "quiet", "verbose", "color", "help"}


def table(name):
    listed = json.loads(run("help", "--json").stdout)["commands"]
    return {option["name"] for command in listed if command["name"] == name for option in command["options"]}


def test_the_tables_have_every_option():
    assert set(LOAD) | COMMON == table("load")
    assert set(PACK) | COMMON == table("pack")


def test_commands_in_python_take_the_remote_options(case):
    run("embed", case.plain, "-o", case.file("v.leat"), "--anonymous", "--ca-file", case.text("ca.pem", ""))
    assert "anonymous" not in leat.embed.__doc__


@pytest.fixture
def case(tmp_path, plain, damaged):
    return Case(tmp_path, plain, damaged)


@pytest.mark.parametrize("name", LOAD)
def test_an_option_of_load_has_an_effect(name, case):
    LOAD[name](case)


@pytest.mark.parametrize("name", PACK)
def test_an_option_of_pack_has_an_effect(name, case):
    PACK[name](case)
