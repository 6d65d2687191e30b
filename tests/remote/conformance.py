# SPDX-License-Identifier: Apache-2.0
"""Every operation on buckets against three S3 servers (`make test-s3`): SeaweedFS, Ceph's gateway, and rclone, which
answers ranges with 200 and ignores conditions. Prints a table: one row for each operation, one column for each server."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import servers  # noqa: E402
import test_remote  # noqa: E402
from servers import BUCKET, KEY_ID, Proxy, environment  # noqa: E402
from test_remote import World, digests, leat, load, path, png  # noqa: E402

MANY = 1030  # more than one page of a listing
ODD = ("a b", "plus+", "und&", "ä", "100%", "q?=")
TABLE: dict[str, dict[str, str]] = {}
# What a server does not do: the operation must then fail or pass as said here.
LACKS = {("rclone", "condition_of_the_server"): "ignored",
         ("rclone", "export_keeps_existing_files"): "replaced: the condition is ignored"}


def setUpModule() -> None:
    World.dir = tempfile.mkdtemp(prefix="leat-s3-test-")
    for i in range(60):
        folder = os.path.join(World.dir, "images", f"class{i % 3}")
        os.makedirs(folder, exist_ok=True)
        pathlib.Path(folder, f"{i:04}.png").write_bytes(png(i, 96 + i % 32))
    for i in range(MANY):
        os.makedirs(path("many"), exist_ok=True)
        pathlib.Path(path("many"), f"{i:05}.png").write_bytes(png(i % 50, 8))
    for i, name in enumerate(ODD):
        os.makedirs(path("odd"), exist_ok=True)
        pathlib.Path(path("odd"), f"{name}.png").write_bytes(png(i, 12))
    os.makedirs(path("big"))
    for i in range(10):
        pathlib.Path(path("big"), f"{i}.png").write_bytes(png(i, 1200))
    for name, source, more in (("one", "images", ("--page-bytes", "256K")), ("set", "images", ("--shard-bytes", "1M", "--page-bytes", "128K")),
                               ("many", "many", ()), ("odd", "odd", ()), ("big", "big", ())):
        leat("pack", path(source), "-o", path(f"{name}.leat"), "--images", "keep", "-q", *more)


def tearDownModule() -> None:
    columns = sorted({server for row in TABLE.values() for server in row})
    print("\n| operation | " + " | ".join(columns) + " |\n|---|" + "---|" * len(columns))
    for name, row in TABLE.items():
        print(f"| {name.replace('_', ' ')} | " + " | ".join(row.get(server, "not run") for server in columns) + " |")
    told = [str(file) for file in pathlib.Path(World.dir).rglob("*") if file.is_file() and servers.SECRET.encode() in file.read_bytes()]
    shutil.rmtree(World.dir, ignore_errors=True)
    if told:
        raise AssertionError(f"a secret was written to {told}")


class Operations:
    """The tests; a class for each server below."""
    name = ""
    server: servers.Server

    @classmethod
    def prepare(cls) -> None:
        servers.make_bucket(cls.server.port)
        for name in sorted(os.listdir(World.dir)):
            if name.endswith(".leat"):
                servers.put(cls.server.port, f"packs/{name}", pathlib.Path(path(name)).read_bytes())

    def setUp(self) -> None:
        self.stage = tempfile.mkdtemp(dir=World.dir)
        self.operation = self._testMethodName.removeprefix("test_")  # type: ignore[attr-defined]
        TABLE.setdefault(self.operation, {})[self.name] = "FAILED"

    def tearDown(self) -> None:
        shutil.rmtree(self.stage)
        outcome = self._outcome.result  # type: ignore[attr-defined]
        bad = [test for test, _ in outcome.failures + outcome.errors if test is self]
        if not bad and not getattr(self, "_subtest_failed", False):
            TABLE[self.operation][self.name] = LACKS.get((self.name, self.operation), "ok")

    @property
    def port(self) -> int:
        return self.server.port

    @property
    def lacks(self) -> bool:
        return (self.name, self.operation) in LACKS

    def env(self, port: int = 0, **more: str) -> dict[str, str]:
        return environment(port or self.port, LEAT_STAGE_DIR=self.stage, LEAT_REMOTE_STALL_S="20", **more)

    def get(self, key: str) -> bytes:
        return servers.signed("GET", self.port, f"/{BUCKET}/{key}")

    def there(self, name: str) -> str:
        return f"s3://{BUCKET}/{name}"

    def equal(self, a: object, b: object) -> None:
        self.assertEqual(a, b)  # type: ignore[attr-defined]

    def test_read_ranges(self) -> None:
        for name in ("one.leat", "set.leat"):
            for order in ("sequential", "random", "quasi_random"):
                args = ("--order", order, "--epochs", "2")
                self.equal(digests(path(name), *args), digests(self.there(f"packs/{name}"), *args, env=self.env()))

    def test_open_with_three_requests(self) -> None:
        proxy = Proxy(self.port)
        leat("info", self.there("packs/one.leat"), env=self.env(proxy.port))
        proxy.stop()
        self.assertLessEqual(proxy.requests, 3)  # type: ignore[attr-defined]

    def test_read_in_sequence(self) -> None:
        leat("verify", self.there("packs/one.leat"), env=self.env())
        leat("export", self.there("packs/one.leat"), "-o", os.path.join(self.stage, "out"), env=self.env())
        self.equal(pathlib.Path(self.stage, "out/class1/0001.png").read_bytes(), png(1, 97))

    def test_read_through_faults(self) -> None:
        kinds = {k: 0.05 for k in ("drop", "reset", "error", "truncate", "short", "wrong")}
        proxy = Proxy(self.port, seed=3, **kinds)
        found = digests(self.there("packs/one.leat"), "--order", "random", env=self.env(proxy.port, LEAT_REMOTE_TRIES="20"))
        proxy.stop()
        self.equal(digests(path("one.leat"), "--order", "random"), found)

    def test_disk_cache(self) -> None:
        args = ("--order", "quasi_random", "--epochs", "2", "--memory", "24M", "--cache", f"disk:{self.stage}/cache")
        found = load(self.there("packs/one.leat"), *args, env=self.env())
        self.equal([epoch["digest"] for epoch in found], digests(path("one.leat"), "--order", "quasi_random", "--epochs", "2"))
        self.equal(found[1]["remote_bytes"], 0)

    def source(self, name: str) -> None:
        for file in pathlib.Path(path(name)).rglob("*.png"):
            servers.put(self.port, str(file.relative_to(World.dir)), file.read_bytes())
        leat("pack", self.there(name), "-o", f"{self.stage}/a.leat", "--images", "keep", "-q", env=self.env())
        self.equal(pathlib.Path(self.stage, "a.leat").read_bytes(), pathlib.Path(path(f"{name}.leat")).read_bytes())

    def test_list_in_pages(self) -> None:
        self.source("many")

    def test_list_folders(self) -> None:
        for file in pathlib.Path(path("images")).rglob("*.png"):
            servers.put(self.port, str(file.relative_to(World.dir)), file.read_bytes())
        leat("pack", self.there("images"), "-o", f"{self.stage}/a.leat", "--images", "keep", "-q", "--page-bytes", "256K",
             env=self.env())
        self.equal(pathlib.Path(self.stage, "a.leat").read_bytes(), pathlib.Path(path("one.leat")).read_bytes())

    def test_odd_names(self) -> None:
        self.source("odd")

    def upload(self, source: str, key: str, *more: str, code: int = 0) -> str:
        return leat("pack", path(source), "-o", self.there(key), "--images", "keep", "-q", *more, env=self.env(), code=code)

    def test_put(self) -> None:
        self.upload("odd", "up/small.leat")
        self.equal(self.get("up/small.leat"), pathlib.Path(path("odd.leat")).read_bytes())

    def test_upload_in_parts(self) -> None:
        self.assertGreater(os.path.getsize(path("big.leat")), 2 * (16 << 20))  # type: ignore[attr-defined]
        self.upload("big", "up/big.leat")
        self.equal(self.get("up/big.leat"), pathlib.Path(path("big.leat")).read_bytes())

    def test_upload_of_a_set(self) -> None:
        self.upload("images", "up/set.leat", "--shard-bytes", "1M", "--page-bytes", "128K")
        self.equal(digests(path("set.leat")), digests(self.there("up/set.leat"), env=self.env()))

    def test_shards_of_a_replaced_set_go(self) -> None:
        self.upload("images", "up/old.leat", "--shard-bytes", "1M", "--page-bytes", "128K")
        shards = ["up/old-" + file.name.removeprefix("set-") for file in pathlib.Path(World.dir).glob("set-*.leat")]
        self.equal([len(self.get(key)) > 0 for key in shards], [True] * len(shards))
        self.upload("odd", "up/old.leat", "--force")
        self.equal(self.get("up/old.leat"), pathlib.Path(path("odd.leat")).read_bytes())
        for key in shards:
            with self.assertRaises(urllib.error.HTTPError):  # type: ignore[attr-defined]
                self.get(key)

    def test_two_writers_of_a_set(self) -> None:
        """The set of the run that finishes last is whole."""
        command = [test_remote.LEAT, "pack", path("images"), "-o", self.there("two/p.leat"), "--images", "keep", "-q", "--force",
                   "--shard-bytes", "1M", "--page-bytes", "128K"]
        leat(*command[1:], env=self.env())
        for i in range(6):
            runs = []
            for k, more in enumerate(([], ["--shuffle", "5"])):
                stage = os.path.join(self.stage, str(k))
                os.makedirs(stage, exist_ok=True)
                runs.append(subprocess.Popen(command + more, env={**self.env(), "LEAT_STAGE_DIR": stage}))
                time.sleep(0.05 * i)
            self.equal([run.wait(timeout=100) for run in runs], [0, 0])
            leat("verify", self.there("two/p.leat"), env=self.env())

    def test_upload_through_faults(self) -> None:
        proxy = Proxy(self.port, seed=5, drop=0.1, reset=0.1, error=0.1)
        proxy.method = "PUT"
        leat("pack", path("images"), "-o", self.there("up/faults.leat"), "--images", "keep", "-q", "--page-bytes", "256K",
             env=self.env(proxy.port))
        proxy.stop()
        self.equal(self.get("up/faults.leat"), pathlib.Path(path("one.leat")).read_bytes())

    def test_existing_packs_are_kept(self) -> None:
        self.upload("odd", "up/kept.leat")
        self.assertIn("already exists", self.upload("many", "up/kept.leat", code=2))  # type: ignore[attr-defined]
        self.equal(self.get("up/kept.leat"), pathlib.Path(path("odd.leat")).read_bytes())
        self.upload("many", "up/kept.leat", "--force")
        self.equal(self.get("up/kept.leat"), pathlib.Path(path("many.leat")).read_bytes())

    def test_condition_of_the_server(self) -> None:
        servers.put(self.port, "condition", b"first")
        status = 200
        try:
            servers.signed("PUT", self.port, f"/{BUCKET}/condition", b"second", headers={"If-None-Match": "*"})
        except urllib.error.HTTPError as error:
            status = error.code
        self.equal(status in (409, 412), not self.lacks)

    def test_a_replaced_pack_is_an_error(self) -> None:
        data = pathlib.Path(path("big.leat")).read_bytes()
        servers.put(self.port, "replaced.leat", data)
        proxy = Proxy(self.port)
        draw = proxy._draw

        def replace(method: str) -> str | None:
            draw(method)
            if proxy.gets == 5:
                servers.put(self.port, "replaced.leat", data[:-1] + b"x")
            return None
        proxy._draw = replace  # type: ignore[method-assign]
        text = leat("load", self.there("replaced.leat"), "--batch", "8", "--size", "32", "--order", "sequential",
                    env=self.env(proxy.port, LEAT_REMOTE_CONNECTIONS="1"), code=4)
        proxy.stop()
        self.assertIn("replaced while it was being read", text)  # type: ignore[attr-defined]

    def test_export_to_the_bucket(self) -> None:
        keys = path("keys.txt")
        pathlib.Path(keys).write_text("class0/0000.png\nclass1/0001.png\n")
        leat("export", path("one.leat"), "-o", self.there("out"), "--keys", keys, env=self.env())
        self.equal(self.get("out/class1/0001.png"), png(1, 97))

    def test_export_keeps_existing_files(self) -> None:
        keys = path("keys2.txt")
        pathlib.Path(keys).write_text("class0/0000.png\n")
        servers.put(self.port, "out2/class0/0000.png", b"mine")
        if self.lacks:
            return
        text = leat("export", path("one.leat"), "-o", self.there("out2"), "--keys", keys, env=self.env(), code=4)
        self.assertIn("already exists", text)  # type: ignore[attr-defined]
        self.equal(self.get("out2/class0/0000.png"), b"mine")

    def test_unfinished_uploads(self) -> None:
        servers.signed("POST", self.port, f"/{BUCKET}/left/one", query="uploads=")
        listed = json.loads(leat("uploads", self.there("left"), "--json", env=self.env()))["uploads"]
        self.equal([u["key"] for u in listed], ["left/one"])
        leat("uploads", self.there("left"), "--abort", env=self.env())
        self.equal(leat("uploads", self.there("left"), env=self.env()), "")

    def test_what_is_missing(self) -> None:
        for name in (self.there("packs/none.leat"), f"s3://{BUCKET}-none/packs/one.leat"):
            text = leat("info", name, env=self.env(), code=4)
            self.assertIn("none", text)  # type: ignore[attr-defined]
            self.equal(text.count("\n"), 1)
        servers.put(self.port, "empty", b"")
        self.equal(leat("info", self.there("empty"), env=self.env(), code=4).count("\n"), 1)

    def test_wrong_secret(self) -> None:
        for env in (self.env(AWS_SECRET_ACCESS_KEY="wrong"), self.env(AWS_ACCESS_KEY_ID=KEY_ID[::-1])):
            self.assertIn("40", leat("info", self.there("packs/one.leat"), env=env, code=4))  # type: ignore[attr-defined]

    def test_without_a_signature(self) -> None:
        self.assertIn("40", leat("info", self.there("packs/one.leat"), "--anonymous", env=self.env(), code=4))  # type: ignore[attr-defined]


class Weed(Operations, unittest.TestCase):
    name = "SeaweedFS"

    @classmethod
    def setUpClass(cls) -> None:
        if servers.program("weed") is None:
            raise unittest.SkipTest("SeaweedFS is not installed: scripts/setup.sh python")
        cls.server = servers.Weed()
        cls.addClassCleanup(cls.server.stop)
        cls.prepare()


class Ceph(Operations, unittest.TestCase):
    name = "Ceph"

    @classmethod
    def setUpClass(cls) -> None:
        if not servers.Ceph.available():
            raise unittest.SkipTest("Ceph is not there: scripts/ceph.sh")
        cls.server = servers.Ceph()
        cls.addClassCleanup(cls.server.stop)
        cls.prepare()


class Rclone(Operations, unittest.TestCase):
    name = "rclone"

    @classmethod
    def setUpClass(cls) -> None:
        if servers.program("rclone") is None:
            raise unittest.SkipTest("rclone is not installed: scripts/setup.sh python")
        folder = tempfile.mkdtemp(prefix="leat-rclone-")
        cls.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
        cls.server = servers.Rclone(folder)
        cls.addClassCleanup(cls.server.stop)
        cls.prepare()


if __name__ == "__main__":
    unittest.main()
