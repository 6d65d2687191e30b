# SPDX-License-Identifier: Apache-2.0
"""Commands that write to a bucket of this process's memory: stopped, raced and refused."""
import base64
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
from collections.abc import Callable

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from servers import Bucket, environment  # noqa: E402
from test_remote import LEAT, png  # noqa: E402


class Case(unittest.TestCase):
    def setUp(self) -> None:
        self.dir = tempfile.mkdtemp(prefix="leat-bucket-test-")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        for name in ("stage", "images/a"):
            os.makedirs(self.path(name))
        for i in range(48):
            pathlib.Path(self.path(f"images/a/{i:02}.png")).write_bytes(png(i, 128))
        self.bucket = Bucket()
        self.addCleanup(self.bucket.stop)

    def path(self, name: str) -> str:
        return os.path.join(self.dir, name)

    def command(self, *args: str) -> list[str]:
        return [LEAT, *args]

    def env(self, **more: str) -> dict[str, str]:
        return environment(self.bucket.port, **{"LEAT_STAGE_DIR": self.path("stage"), "LEAT_REMOTE_STALL_S": "60", **more})

    def run_leat(self, *args: str, code: int = 0, **more: str) -> str:
        run = subprocess.run(self.command(*args), env=self.env(**more), capture_output=True, text=True, timeout=100)
        self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        return run.stdout + run.stderr

    def pack(self, *more: str, code: int = 0) -> str:
        return self.run_leat("pack", self.path("images"), "-o", "s3://b/p.leat", "--images", "keep", *more, code=code)


class Stopping(Case):
    """A signal ends a command that writes within about a second, and nothing appears after it."""

    def stop(self, number: int, writes: int, *args: str) -> str:
        self.bucket.delay = 8
        if writes > 1:
            self.bucket.delay = 0.5
        child = subprocess.Popen(self.command(*args), env=self.env(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 text=True)
        end = time.monotonic() + 60
        while self.bucket.count("PUT") < writes and child.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
        child.send_signal(number)
        begun, there = time.monotonic(), set(self.bucket.objects)
        out, _ = child.communicate(timeout=60)
        self.assertLess(time.monotonic() - begun, 3)
        self.assertEqual(child.returncode, 128 + number, out)
        sent = self.bucket.count("PUT")
        time.sleep(self.bucket.delay if writes > 1 else 0.2)
        self.assertLessEqual(sent, writes + 1)
        self.assertLessEqual(len(set(self.bucket.objects) - there), 1)  # one that was in flight
        self.bucket.delay = 0
        return out

    def pack_stopped(self, number: int, writes: int, *more: str) -> None:
        images = self.path("images")
        out = self.stop(number, writes, "pack", images, "-o", "s3://b/p.leat", "--images", "keep", *more)
        self.assertIn("interrupted", out)
        self.assertIn("--resume continues", out)
        self.assertNotIn("/b/p.leat", self.bucket.objects)
        self.run_leat("pack", images, "-o", self.path("p.leat"), "--images", "keep", *more)
        self.pack("--resume", *more)
        self.assertEqual(self.bucket.objects["/b/p.leat"], pathlib.Path(self.path("p.leat")).read_bytes())
        self.assertEqual(os.listdir(self.path("stage")), [])

    def test_pack_of_one_file(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number=number):
                self.bucket.objects.clear()
                self.bucket.seen.clear()
                self.pack_stopped(number, 1, "--force")

    def test_pack_of_shards(self) -> None:
        self.pack_stopped(signal.SIGTERM, 2, "--page-bytes", "64K", "--shard-bytes", "1M")

    def test_pack_in_parts(self) -> None:
        for i in range(48, 400):
            pathlib.Path(self.path(f"images/a/{i}.png")).write_bytes(png(i, 128))
        self.pack_stopped(signal.SIGTERM, 1)

    def test_export(self) -> None:
        self.run_leat("pack", self.path("images"), "-o", self.path("p.leat"), "--images", "keep")
        self.bucket.seen.clear()
        out = self.stop(signal.SIGTERM, 3, "export", self.path("p.leat"), "-o", "s3://b/out")
        self.assertIn("stopped by a signal", out)


class Killed(Case):
    """kill -9 at any time: a resumed run publishes its own pack, whatever earlier runs left in the stage folder."""

    def kill(self, ready: Callable[[], bool], *args: str) -> None:
        child = subprocess.Popen(self.command(*args), env=self.env(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while not ready() and child.poll() is None and time.monotonic() < end:
            pass
        child.kill()
        child.wait()

    def staged(self, name: str) -> bytes | None:
        for folder in os.listdir(self.path("stage")):
            with contextlib.suppress(FileNotFoundError):
                return pathlib.Path(self.path("stage"), folder, name).read_bytes()
        return None

    def check_other_run(self, *more: str) -> None:
        os.makedirs(self.path("others/b"))
        for i in range(40):
            pathlib.Path(self.path(f"others/b/{i:02}.png")).write_bytes(png(1000 + i, 128))
        first = ["pack", self.path("images"), "-o", "s3://b/p.leat", "--images", "keep", *more]
        second = ["pack", self.path("others"), "-o", "s3://b/p.leat", "--images", "keep", *more]
        self.bucket.delay = 8
        self.kill(lambda: self.bucket.count("PUT") > 0, *first)
        origin = self.staged("p.leat.origin")
        self.assertIsNotNone(origin)
        self.kill(lambda: self.staged("p.leat.origin") not in (None, origin), *second)
        self.bucket.delay = 0
        self.bucket.objects.clear()
        self.run_leat(*second, "--resume")
        self.run_leat(*second[:3], self.path("p.leat"), *second[4:])
        self.assertEqual(self.bucket.objects["/b/p.leat"], pathlib.Path(self.path("p.leat")).read_bytes())
        self.assertEqual(os.listdir(self.path("stage")), [])

    def test_pack_of_one_file(self) -> None:
        self.check_other_run()

    def test_pack_of_shards(self) -> None:
        self.check_other_run("--page-bytes", "64K", "--shard-bytes", "1M")

    def test_leftovers(self) -> None:
        """Files that killed runs left in the stage folder go when the pack is in the bucket."""
        self.bucket.delay = 8
        self.kill(lambda: self.bucket.count("PUT") > 0, "pack", self.path("images"), "-o", "s3://b/p.leat", "--images", "keep")
        self.bucket.delay = 0
        folder = pathlib.Path(self.path("stage"), os.listdir(self.path("stage"))[0])
        (folder / "p-00007.leat.partial").write_bytes(b"partial")
        self.pack("--resume")
        self.assertEqual(os.listdir(self.path("stage")), [])

    def test_other_files(self) -> None:
        """A finished pack that waits for its upload has pages and shards of the sizes that were given."""
        command = ["pack", self.path("images"), "-o", "s3://b/p.leat", "--images", "keep"]
        self.bucket.delay = 8
        self.kill(lambda: self.bucket.count("PUT") > 0, *command)
        self.bucket.delay = 0
        for more in ("--page-bytes", "128K"), ("--shard-bytes", "1M"):
            self.assertIn("other settings", self.run_leat(*command, "--resume", *more, code=4))
        self.run_leat(*command, "--resume")

    def test_shuffled(self) -> None:
        """The names of a shuffled source are listed in the stage folder, not in the bucket."""
        command = ["pack", self.path("images"), "-o", "s3://b/p.leat", "--images", "keep", "--shuffle", "1"]
        self.bucket.delay = 8
        self.kill(lambda: self.bucket.count("PUT") > 0, *command)
        self.bucket.delay = 0
        self.bucket.objects.clear()
        self.run_leat(*command, "--resume")
        self.run_leat(*command[:3], self.path("p.leat"), *command[4:])
        self.assertEqual(self.bucket.objects["/b/p.leat"], pathlib.Path(self.path("p.leat")).read_bytes())


class Unfinished(Case):
    """What an unfinished run has sent goes when the next one starts from the beginning."""
    shards = ("--page-bytes", "64K", "--shard-bytes", "1M")

    def setUp(self) -> None:
        super().setUp()
        os.makedirs(self.path("others/b"))
        for i in range(8):
            pathlib.Path(self.path(f"others/b/{i:02}.png")).write_bytes(png(1000 + i, 128))

    def stop_after(self, writes: int, *more: str) -> set[str]:
        self.bucket.delay = 0 if self.bucket.hold else 0.3
        child = subprocess.Popen(self.command("pack", self.path("images"), "-o", "s3://b/p.leat", "--images", "keep", *self.shards, *more),
                                 env=self.env(), stderr=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while self.bucket.count("PUT") < writes and child.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
        child.kill()
        child.wait()
        time.sleep(0.8)  # the bucket stores what was in flight
        self.bucket.delay = 0
        sent = set(self.bucket.objects)
        self.assertNotIn("/b/p.leat", sent)
        return sent

    def pack_others(self, *more: str) -> str:
        return self.run_leat("pack", self.path("others"), "-o", "s3://b/p.leat", "--images", "keep", *more)

    def test_shards_are_removed(self) -> None:
        sent = self.stop_after(3)
        self.assertGreater(len(sent), 1)
        self.pack_others()
        self.assertEqual(set(self.bucket.objects), {"/b/p.leat"})
        self.run_leat("verify", "s3://b/p.leat")

    def test_a_shard_in_flight_is_removed(self) -> None:
        """Its answer never arrived; also when a resumed run, which found it, is killed."""
        for resumed in False, True:
            with self.subTest(resumed=resumed):
                self.bucket.objects.clear()
                self.bucket.seen.clear()
                self.bucket.hold = 0.5  # the objects appear after that time, whether the client waits or not
                sent = self.stop_after(1)
                self.assertEqual(len(sent), 1)
                if resumed:
                    self.bucket.seen.clear()
                    self.stop_after(1, "--resume")
                self.bucket.hold = 0
                self.pack_others()
                self.assertEqual(set(self.bucket.objects), {"/b/p.leat"})

    def test_shards_that_existed_stay(self) -> None:
        """The same shards were in the bucket before: another set may name them."""
        self.pack(*self.shards)
        self.bucket.objects["/b/q.leat"] = self.bucket.objects.pop("/b/p.leat")
        self.bucket.seen.clear()
        before = set(self.bucket.objects)
        self.stop_after(3)
        self.pack_others()
        self.assertEqual(before - set(self.bucket.objects), set())
        self.run_leat("verify", "s3://b/q.leat")

    def test_where_nothing_may_be_removed(self) -> None:
        sent = self.stop_after(3)
        self.bucket.forbid_removal = True
        told = self.pack_others("-q")
        self.assertIn("shards of an unfinished run stay in the bucket", told)
        self.assertEqual(sent - set(self.bucket.objects), set())

    def test_shards_that_were_changed(self) -> None:
        """An object of the same size that is not the one that was sent is sent again."""
        sent = self.stop_after(3)
        for path in sent:
            self.bucket.objects[path] = bytes(len(self.bucket.objects[path]))
        self.pack("--resume", *self.shards)
        self.run_leat("verify", "s3://b/p.leat")

    def test_shards_that_another_machine_removed(self) -> None:
        """The last request is sent only when all shards are there."""
        removed: list[str] = []

        def remove(_: str) -> None:
            if len(self.bucket.objects) > 1 and not removed:
                removed.append(min(self.bucket.objects))
                del self.bucket.objects[removed[0]]
        self.bucket.before_write = remove
        self.pack(*self.shards)
        self.assertEqual(len(removed), 1)
        self.run_leat("verify", "s3://b/p.leat")

    def test_two_runs_at_once(self) -> None:
        """The second run leaves the first one's files and objects alone."""
        self.bucket.delay = 1
        child = subprocess.Popen(self.command("pack", self.path("images"), "-o", "s3://b/p.leat", "--images", "keep", *self.shards),
                                 env=self.env(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while self.bucket.count("PUT") < 2 and child.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
        for more in [], ["--force"], ["--resume"]:
            told = self.run_leat("pack", self.path("others"), "-o", "s3://b/p.leat", *more, code=4)
            self.assertIn("s3://b/p.leat: another run or writer is writing this pack", told)
            self.assertNotIn("starts again", told)
        self.bucket.delay = 0
        self.assertEqual(child.wait(), 0)
        self.run_leat("verify", "s3://b/p.leat")
        self.assertEqual(os.listdir(self.path("stage")), [])


class Replaced(Case):
    """--force removes the shards of the set that is replaced, but none that the new one names."""
    shards = ("--page-bytes", "64K", "--shard-bytes", "1M")

    def setUp(self) -> None:
        super().setUp()
        self.pack(*self.shards)
        self.old = set(self.bucket.objects)
        self.assertGreater(len(self.old), 3)
        self.bucket.objects["/b/p-other"] = b"not of leat"

    def change(self) -> None:
        """The first shards stay the same."""
        for i in range(40, 48):
            pathlib.Path(self.path(f"images/a/{i:02}.png")).write_bytes(png(2000 + i, 128))

    def check(self) -> None:
        self.run_leat("verify", "s3://b/p.leat")
        count = json.loads(self.run_leat("info", "s3://b/p.leat", "--json"))["shards"]
        self.assertEqual(len(self.bucket.objects), 1 + count + 1 if count > 1 else 2, self.bucket.objects.keys())
        self.assertEqual(os.listdir(self.path("stage")), [])

    def test_by_a_set(self) -> None:
        self.change()
        self.pack("--force", *self.shards)
        self.assertEqual(self.old & set(self.bucket.objects), {"/b/p.leat"})
        self.check()

    def test_by_the_same_set(self) -> None:
        """Its shards get a tag: a run on another machine may still be removing shards of these names."""
        for _ in range(2):
            self.pack("--force", *self.shards)
            self.assertEqual(self.old & set(self.bucket.objects), {"/b/p.leat"})
            self.assertEqual(len(self.bucket.objects), len(self.old) + 1)
            self.check()

    def test_by_one_file(self) -> None:
        self.pack("--force")
        self.check()

    def test_by_a_run_that_was_killed(self) -> None:
        """After the new set was stored, before the old shards were removed."""
        self.change()
        child: list[subprocess.Popen] = []
        self.bucket.before_removal = lambda: child[0].kill() is None
        child.append(subprocess.Popen(self.command("pack", self.path("images"), "-o", "s3://b/p.leat", "--images", "keep", "--force",
                                                   *self.shards), env=self.env(), stderr=subprocess.DEVNULL))
        child[0].wait()
        self.bucket.before_removal = lambda: False
        self.assertEqual(self.old - set(self.bucket.objects), set())
        self.pack("--force", "--resume", *self.shards)
        self.assertGreater(len(self.old - set(self.bucket.objects)), 0)
        self.check()

    def test_by_two_runs(self) -> None:
        """A run on another machine publishes the old set again while this one removes its shards."""
        before = dict(self.bucket.objects)

        def publish() -> bool:
            self.bucket.objects["/b/p.leat"] = before["/b/p.leat"]
            return False
        self.bucket.before_removal = publish
        self.pack("--force", "-q")
        self.assertEqual(self.bucket.count("DELETE"), 1)  # in flight when the pack changed
        self.assertEqual(len(before.keys() - self.bucket.objects.keys()), 1)

    def test_where_nothing_may_be_removed(self) -> None:
        self.bucket.forbid_removal = True
        told = self.pack("--force", "-q")
        self.assertEqual(self.old - set(self.bucket.objects), set())
        for path in self.old - {"/b/p.leat"}:
            self.assertIn(path.removeprefix("/b/"), told)
        self.assertIn(f"{len(self.old) - 1} shards of the pack that was replaced stay", told)
        self.assertEqual(self.bucket.count("DELETE"), 1)

    def test_shards_of_another_name(self) -> None:
        """A set that was copied to another name shares its shards."""
        self.bucket.objects["/b/q.leat"] = self.bucket.objects["/b/p.leat"]
        self.run_leat("pack", self.path("images"), "-o", "s3://b/q.leat", "--images", "keep", "--force")
        self.run_leat("verify", "s3://b/p.leat")


class Concurrent(Case):
    """Runs of several machines replace one pack: the pack in the bucket is whole, and no shards are left over."""
    shards = ("--page-bytes", "64K", "--shard-bytes", "1M", "--force")

    def start(self, number: int, *more: str) -> subprocess.Popen:
        stage = self.path(f"stage{number}")
        os.makedirs(stage, exist_ok=True)
        return subprocess.Popen(self.command("pack", self.path("images"), "-o", "s3://b/p.leat", "-q", "--images", "keep",
                                             *self.shards, *more), env=self.env(LEAT_STAGE_DIR=stage),
                                stderr=subprocess.PIPE, text=True)

    def end(self, *runs: subprocess.Popen) -> None:
        for run in runs:
            self.assertEqual((run.communicate(timeout=100)[1], run.returncode), ("", 0))
        self.run_leat("verify", "s3://b/p.leat")
        count = json.loads(self.run_leat("info", "s3://b/p.leat", "--json"))["shards"]
        self.assertEqual(len(self.bucket.objects), 1 + count, self.bucket.objects.keys())

    def test_where_nothing_is(self) -> None:
        for other in [], ["--shuffle", "5"]:
            with self.subTest(other=other):
                self.bucket.objects.clear()
                self.bucket.delay = 0.03
                self.end(self.start(1), self.start(2, *other), self.start(3, *other))

    def test_over_a_set(self) -> None:
        self.end(self.start(1))
        for wait in 0, 0.1, 0.2, 0.3, 0.5:
            with self.subTest(wait=wait):
                self.bucket.delay = 0.03
                first = self.start(2, "--shuffle", "5")
                time.sleep(wait)
                self.end(first, self.start(1))

    def test_a_set_that_appears_before_the_last_request(self) -> None:
        """The set of another run, with equal shards, appears and is replaced in its turn while this run publishes."""
        rounds = iter(range(3))

        def rival(path: str) -> None:
            if path == "/b/p.leat" and next(rounds, None) is not None:
                self.bucket.before_write = lambda _: None
                told = self.start(2).communicate(timeout=100)[1]
                self.assertEqual(told, "")
                self.run_leat("verify", "s3://b/p.leat")
                self.bucket.before_write = rival
        self.bucket.before_write = rival
        self.end(self.start(1))
        self.assertIsNone(next(rounds, None))

    def test_a_run_that_was_killed_and_whose_set_was_replaced(self) -> None:
        """Its shards get new names: those that it had may still be removed by the other run."""
        self.end(self.start(1))
        child: list[subprocess.Popen] = []
        self.bucket.before_removal = lambda: child[0].kill() is None
        child.append(self.start(1))
        child[0].communicate()
        self.bucket.before_removal = lambda: False
        killed = set(self.bucket.objects)
        run = self.start(2)
        self.assertEqual((run.communicate(timeout=100)[1], run.returncode), ("", 0))
        self.end(self.start(1, "--resume"))
        self.assertEqual(killed & set(self.bucket.objects), {"/b/p.leat"})


class Refusals(Case):
    def test_a_bucket_without_a_key(self) -> None:
        """It is not a pack. No request is sent."""
        for command in ("info",), ("verify",), ("load",), ("load", "--json"):
            for path in "s3://b", "s3://b/":
                told = self.run_leat(*command, path, code=2)
                self.assertIn(f"{path}: the name of the pack is missing after the bucket: s3://b/NAME.leat", told)
        self.assertEqual(self.bucket.seen, [])

    def test_export_to_a_web_server(self) -> None:
        self.run_leat("pack", self.path("images"), "-o", self.path("p.leat"), "--images", "keep")
        told = self.run_leat("export", self.path("p.leat"), "-o", f"http://127.0.0.1:{self.bucket.port}/out", code=2)
        self.assertEqual(told.count("\n"), 1)
        self.assertIn("a web server cannot be written", told)


    def test_a_bucket_that_does_not_exist(self) -> None:
        """It is refused before the pack is made."""
        self.bucket.fail_after, self.bucket.failure = 0, (404, "NoSuchBucket")
        self.assertIn("the server answered 404 NoSuchBucket", self.pack(code=4))
        self.assertEqual((os.listdir(self.path("stage")), self.bucket.count("PUT")), ([], 0))

    def test_a_container_that_does_not_exist(self) -> None:
        pack = "pack", self.path("images"), "-o", "az://c/p.leat", "--images", "keep"
        env = {"AZURE_STORAGE_ENDPOINT": f"http://127.0.0.1:{self.bucket.port}", "LEAT_ANONYMOUS": "1"}
        self.bucket.fail_after, self.bucket.failure = 0, (404, "ContainerNotFound")
        self.assertIn("az://c/p.leat: GET: the server answered 404 ContainerNotFound", self.run_leat(*pack, code=4, **env))
        self.assertEqual((os.listdir(self.path("stage")), self.bucket.count("PUT")), ([], 0))
        self.bucket.failure = 404, "BlobNotFound"
        self.run_leat(*pack, **env)
        self.assertIn("/c/p.leat", self.bucket.objects)

    def test_uploads_of_other_stores(self) -> None:
        for path in "az://c/p", "https://127.0.0.1/p":
            self.assertIn("for s3:// and gs:// only", self.run_leat("uploads", path, code=2))

    def test_names_too_long_for_a_file(self) -> None:
        for i, name in enumerate(("n" * 235, "\u00e4" * 300 + ".leat", "o" * 1000)):
            for more in (), ("--page-bytes", "64K", "--shard-bytes", "1M"), ("--force", "--page-bytes", "64K", "--shard-bytes", "1M"):
                pack = ["pack", self.path("images"), "--images", "keep", *more, "-o"]
                self.run_leat(*pack, f"s3://b/{i}{len(more)}/{name}")
                self.run_leat(*pack, self.path("local.leat"), "--force")
                self.run_leat("verify", f"s3://b/{i}{len(more)}/{name}")
            self.run_leat(*pack, f"s3://b/{i}4/{name}")  # replaces a sharded one
            load = ("--batch", "4", "--size", "32", "--digest", "--json")
            self.assertEqual(json.loads(self.run_leat("load", f"s3://b/{i}0/{name}", *load))["digest"],
                             json.loads(self.run_leat("load", self.path("local.leat"), *load))["digest"])
        self.assertEqual(os.listdir(self.path("stage")), [])

    def test_settings_and_schemes(self) -> None:
        pack = "s3://b/p.leat"
        self.assertIn("LEAT_ANONYMOUS: 'maybe' is not yes or no", self.run_leat("info", pack, code=2, LEAT_ANONYMOUS="maybe"))
        for name in "LEAT_CA_FILE", "AWS_CA_BUNDLE":
            self.assertIn(f"{name}: /no/such.pem: cannot read", self.run_leat("info", pack, code=4, **{name: "/no/such.pem"}))
        for url, scheme in (("S3://b/p.leat", "S3"), ("ftp://h/p.leat", "ftp"), ("file:///p.leat", "file")):
            for command in (["info", url], ["load", url], ["verify", url], ["pack", url, "-o", self.path("x.leat")]):
                self.assertIn(f'{url}: unknown scheme "{scheme}"', self.run_leat(*command, code=2))
        self.assertIn("No such file", self.run_leat("info", "nothing.leat", code=4))
        self.bucket.objects["/b"] = self.bucket.objects["/b/"] = b"<ListBucketResult/>"
        for url in "s3://b", "s3://b/":
            told = self.run_leat("pack", self.path("images"), "-o", url, code=2)
            self.assertIn(f"{url}: the name of the pack is missing after the bucket: s3://b/NAME.leat", told)


class Reading(Case):
    def setUp(self) -> None:
        super().setUp()
        self.run_leat("pack", self.path("images"), "-o", self.path("p.leat"), "--images", "keep")
        self.bucket.objects["/b/p.leat"] = pathlib.Path(self.path("p.leat")).read_bytes()

    def test_a_server_without_ranges_from_the_end(self) -> None:
        self.bucket.suffixes = False
        self.run_leat("verify", "s3://b/p.leat")
        self.assertEqual(self.bucket.count("HEAD"), 1)

    def test_a_manifest_on_a_web_server_with_blanks_in_its_paths(self) -> None:
        base = f"http://127.0.0.1:{self.bucket.port}/"
        names = {"a b/1.png": "a%20b/1.png", "c%20d.png": "c%20d.png", "e#1.png": "e%231.png", "\u00e4.png": "%C3%A4.png"}
        for i, place in enumerate(names.values()):
            self.bucket.objects["/" + place] = png(i, 32)
        self.bucket.objects["/list.csv"] = ("path,label\n" + "".join(f"{name},1\n" for name in names)).encode()
        self.run_leat("pack", base + "list.csv", "-o", self.path("l.leat"))
        self.run_leat("export", self.path("l.leat"), "-o", self.path("keys"))
        self.assertEqual({str(p.relative_to(self.path("keys"))) for p in pathlib.Path(self.path("keys")).rglob("*.png")}, set(names))

    def test_another_range(self) -> None:
        self.bucket.shift = 100
        self.assertIn("another range than requested", self.run_leat("info", "s3://b/p.leat", code=4))


class Uploads(Case):
    def types(self, method: str) -> set[tuple[str, str | None]]:
        return {(path.partition("?")[2].split("=")[0], headers.get("content-type")) for name, path, headers in self.bucket.seen
                if name == method}

    def test_types_of_the_content(self) -> None:
        self.pack()
        self.assertEqual(self.types("PUT"), {("", "application/octet-stream")})
        self.bucket.seen.clear()
        for i in range(48, 400):
            pathlib.Path(self.path(f"images/a/{i}.png")).write_bytes(png(i, 128))
        self.pack("--force")
        self.assertEqual(self.types("POST"), {("uploads", "application/octet-stream"), ("uploadId", "application/xml")})
        self.assertEqual(self.types("PUT"), {("partNumber", None)})
        for _, path, headers in self.bucket.seen:
            signed = headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
            self.assertEqual("content-type" in signed, "content-type" in headers, path)

    def test_conflicts(self) -> None:
        """A server that saw another write to the same name asks for the request again."""
        self.bucket.conflicts = 2
        self.pack()
        self.assertEqual((self.bucket.conflicts, os.listdir(self.path("stage"))), (0, []))
        self.run_leat("verify", "s3://b/p.leat")
        self.bucket.conflicts = 1000  # it never ends
        told = self.run_leat("pack", self.path("images"), "-o", "s3://b/q.leat", "--images", "keep", code=4, LEAT_REMOTE_TRIES="2")
        self.assertIn("the server answered 409 ConditionalRequestConflict", told)
        self.assertNotIn("--force", told)

    def test_lost_answers(self) -> None:
        """The last request is sent again when its answer is lost; 412 then means that the object is there, and ours."""
        self.run_leat("pack", self.path("images"), "-o", self.path("p.leat"), "--images", "keep")
        self.bucket.lost_answers = 1
        self.pack()
        self.assertTrue(self.bucket.objects["/b/p.leat"] == pathlib.Path(self.path("p.leat")).read_bytes())
        self.assertEqual((self.bucket.lost_answers, os.listdir(self.path("stage"))), (0, []))
        self.bucket.lost_answers = 3
        self.run_leat("export", self.path("p.leat"), "-o", "s3://b/out")
        self.assertEqual(self.bucket.lost_answers, 0)
        self.run_leat("export", self.path("p.leat"), "-o", "s3://b/out", code=4)  # these exist

    def test_a_lost_answer_of_an_upload_in_parts(self) -> None:
        for i in range(48, 400):
            pathlib.Path(self.path(f"images/a/{i}.png")).write_bytes(png(i, 128))
        self.bucket.lost_answers = 1
        self.pack()
        self.assertEqual(self.bucket.lost_answers, 0)
        self.assertEqual(sum(1 for _, path, _ in self.bucket.seen if path == "/b/p.leat?uploadId=1"), 2)

    def test_a_lost_answer_and_a_lost_race(self) -> None:
        """Another object of the same size is not taken for ours."""
        self.run_leat("pack", self.path("images"), "-o", self.path("p.leat"), "--images", "keep")
        rival = bytes(os.path.getsize(self.path("p.leat")))
        self.bucket.lost_answers = 1

        def replace(key: str) -> None:
            if self.bucket.lost_answers == 0:
                self.bucket.objects[key] = rival

        self.bucket.before_write = replace
        self.assertIn("already exists", self.pack(code=2))

    def test_a_lost_race_for_the_name(self) -> None:
        """Another object appears during the upload: the message says where the pack is and what uploads it."""
        rival = b"not this pack"
        self.bucket.before_write = lambda key: self.bucket.objects.setdefault(key, rival) and None
        told = self.pack(code=2)
        self.bucket.before_write = lambda key: None
        self.assertIn(os.path.join(self.path("stage"), os.listdir(self.path("stage"))[0]), told)
        self.assertIn("--force --resume", told)
        self.assertEqual(self.bucket.objects["/b/p.leat"], rival)
        self.run_leat("pack", self.path("images"), "-o", self.path("p.leat"), "--images", "keep")
        self.run_leat("pack", self.path("images"), "-o", self.path("q.leat"), "--images", "keep", "--page-bytes", "64K")
        self.bucket.objects["/b/p.leat"] = pathlib.Path(self.path("q.leat")).read_bytes()  # only a pack is replaced
        self.pack("--force", "--resume")
        self.assertEqual(self.bucket.objects["/b/p.leat"], pathlib.Path(self.path("p.leat")).read_bytes())
        self.assertEqual(os.listdir(self.path("stage")), [])


    def test_shards_after_a_lost_race(self) -> None:
        """They are removed, and sent again on request. Where they cannot be removed, a warning names them."""
        shards = ("--page-bytes", "64K", "--shard-bytes", "1M")
        self.run_leat("pack", self.path("images"), "-o", self.path("q.leat"), "--images", "keep")
        rival = pathlib.Path(self.path("q.leat")).read_bytes()

        def lose() -> str:
            self.bucket.before_write = lambda key: key == "/b/p.leat" and self.bucket.objects.setdefault(key, rival) and None
            told = self.pack("--resume", *shards, code=2)
            self.bucket.before_write = lambda key: None
            self.assertIn("appeared during the upload", told)
            return told

        self.assertNotIn("in the bucket", lose())
        self.assertEqual(self.bucket.objects, {"/b/p.leat": rival})
        self.pack("--force", "--resume", *shards)
        self.assertGreater(len(self.bucket.objects), 3)
        self.run_leat("verify", "s3://b/p.leat")
        self.assertEqual(os.listdir(self.path("stage")), [])
        self.bucket.objects.clear()
        rival = b"not this pack"
        told = lose()
        sent = [path.removeprefix("/b/") for path in self.bucket.objects if path != "/b/p.leat"]
        self.assertGreater(len(sent), 2)
        self.assertIn(f"{len(sent)} shards of an unfinished run stay in the bucket: {', '.join(sorted(sent))}", told)
        self.bucket.objects.pop("/b/p.leat")
        self.pack("--resume", *shards)
        self.run_leat("verify", "s3://b/p.leat")


class Failing(Case):
    def test_replacements_end_when_the_storage_fails(self) -> None:
        """One error after three candidates for a sample, instead of 16 for each."""
        self.run_leat("pack", self.path("images"), "-o", self.path("p.leat"), "--images", "keep", "--page-bytes", "64K")
        self.bucket.objects["/b/p.leat"] = pathlib.Path(self.path("p.leat")).read_bytes()
        self.bucket.fail_after = 8
        told = self.run_leat("load", "s3://b/p.leat", "--batch", "8", "-s", "64", "--on-error", "replace", "--order", "random", code=4,
                             LEAT_REMOTE_TRIES="2")
        self.assertIn("the storage fails", told)
        self.assertLess(self.bucket.count("GET"), 400)

    def test_ranges_that_cannot_be_read(self) -> None:
        """A pack that can be opened, but not read in its middle or at its beginning: the samples there are skipped."""
        for more in (), ("--shard-bytes", "1M"):
            self.run_leat("pack", self.path("images"), "-o", self.path("p.leat"), "--images", "keep", "--page-bytes", "256K", "--force",
                          *more)
            for file in pathlib.Path(self.dir).glob("p*.leat"):  # the shards, too
                self.bucket.objects["/b/" + file.name] = file.read_bytes()
            largest = max(self.bucket.objects, key=lambda name: len(self.bucket.objects[name]))
            for bad, least in ({700_000}, 1), (set(range(70_000, 700_000, 20_000)), 12):
                self.bucket.unreadable = {largest: bad}
                for policy in "skip", "replace":
                    with self.subTest(more=more, least=least, policy=policy):
                        out = self.run_leat("load", "s3://b/p.leat", "--batch", "8", "-s", "64", "--json", "--on-error", policy, code=1,
                                            LEAT_REMOTE_TRIES="2")
                        epoch = json.loads(out.splitlines()[0])
                        self.assertGreaterEqual(epoch["bad_samples"], least)
                        self.assertLess(epoch["bad_samples"], 4 * least + 24 if policy == "replace" or more else 2 * least + 3)
                        self.assertEqual(epoch["samples"], 48 if policy == "replace" else 48 - epoch["bad_samples"])
                with self.subTest(more=more, least=least):
                    self.assertRegex(self.run_leat("pack", "s3://b/p.leat", "-o", self.path("q.leat"), "--images", "keep", "--on-error",
                                                   "skip", "--force", code=1, LEAT_REMOTE_TRIES="2"), r"samples? (was|were) left out")
            self.bucket.unreadable.clear()
            self.bucket.objects.clear()

    def test_objects_that_cannot_be_read_whole(self) -> None:
        self.manifest()
        self.bucket.broken = {"/b/src/03.png", "/b/src/20.png"}
        self.assertIn("2 samples were left out", self.pack_listed(code=1))

    def test_an_export_ends_when_the_storage_fails(self) -> None:
        """At the first sample, whose attempts are used up; the others would take as long."""
        self.run_leat("pack", self.path("images"), "-o", self.path("p.leat"), "--images", "keep")
        self.bucket.fail_writes = True
        told = self.run_leat("export", self.path("p.leat"), "-o", "s3://b/out", code=4, LEAT_REMOTE_TRIES="2")
        self.assertIn("gave up after 2 attempts", told)
        self.assertEqual((self.bucket.count("PUT"), told.count("not exported")), (2, 0), told)
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))  # refuses connections
            told = self.run_leat("export", self.path("p.leat"), "-o", "s3://b/out", code=4, LEAT_REMOTE_TRIES="2",
                                 AWS_ENDPOINT_URL=f"http://127.0.0.1:{unused.getsockname()[1]}")
        self.assertIn("gave up after 2 attempts", told)
        self.assertNotIn("not exported", told)

    def test_answers_that_trickle(self) -> None:
        """Counted as stalled: requested again, up to the limit of attempts."""
        self.run_leat("pack", self.path("images"), "-o", self.path("p.leat"), "--images", "keep", "--page-bytes", "64K")
        self.bucket.objects["/b/p.leat"] = pathlib.Path(self.path("p.leat")).read_bytes()
        command = "load", "s3://b/p.leat", "--batch", "8", "-s", "64"
        env = {"LEAT_REMOTE_TRIES": "2", "LEAT_REMOTE_HEDGE": "0", "LEAT_REMOTE_STALL_S": "1"}
        self.bucket.trickle = lambda get: get == 3
        self.run_leat(*command, **env)
        self.bucket.trickle = lambda get: get > 3
        self.bucket.seen.clear()
        self.assertIn("gave up after 2 attempts", self.run_leat(*command, code=4, **env))

    def manifest(self) -> str:
        for image in sorted(pathlib.Path(self.path("images/a")).iterdir()):
            self.bucket.objects["/b/src/" + image.name] = image.read_bytes()
        path = pathlib.Path(self.path("list.csv"))
        path.write_text("path\n" + "".join(f"s3://b/src/{i:02}.png\n" for i in range(48)))
        return str(path)

    def pack_listed(self, *more: str, code: int) -> str:
        return self.run_leat("pack", self.path("list.csv"), "-o", self.path("p.leat"), "--images", "keep", "--on-error", "skip",
                             *more, code=code, LEAT_REMOTE_TRIES="2")

    def test_a_pack_ends_when_the_storage_fails(self) -> None:
        """An outage or expired credentials end the run, which can be resumed: the samples are not bad."""
        self.manifest()
        for failure in (503, "SlowDown"), (403, "ExpiredToken"):
            with self.subTest(failure=failure):
                self.bucket.fail_after, self.bucket.failure = self.bucket.count("GET") + 20, failure
                told = self.pack_listed("--force", code=4)
                self.assertIn("the storage fails", told)
                self.assertIn(f"{failure[0]} {failure[1]}", told)
                self.assertIn("--resume continues", told)
                self.assertFalse(os.path.exists(self.path("p.leat")))
                self.bucket.fail_after = 1 << 60
                self.pack_listed("--resume", code=0)
                self.assertEqual(json.loads(self.run_leat("info", self.path("p.leat"), "--json"))["samples"], 48)
                os.remove(self.path("p.leat"))

    def test_expired_keys_of_the_environment(self) -> None:
        """They cannot be renewed: the first answer is final."""
        self.pack()
        self.bucket.seen.clear()
        self.bucket.fail_after, self.bucket.failure = 0, (403, "ExpiredToken")
        self.assertIn("403 ExpiredToken", self.run_leat("info", "s3://b/p.leat", code=4))
        self.assertEqual(self.bucket.count("GET"), 1)

    def test_an_outage_beside_reads_in_flight(self) -> None:
        """The sample that fails first ends the run, although those after it were read before."""
        self.manifest()
        self.bucket.outage_key, self.bucket.failure = "/b/src/20.png", (503, "SlowDown")
        self.assertIn("the storage fails", self.pack_listed(code=4))
        self.bucket.outage_key, self.bucket.fail_after = "", 1 << 60
        self.pack_listed("--resume", code=0)
        self.assertEqual(json.loads(self.run_leat("info", self.path("p.leat"), "--json"))["samples"], 48)

    def test_an_outage_that_ends(self) -> None:
        """A sample that failed and can be read now is not bad: the run ends, and --resume reads it."""
        self.manifest()
        self.bucket.outage_key, self.bucket.outage_ends = "/b/src/20.png", True
        self.assertIn("the storage failed for a while", self.pack_listed(code=4))
        self.pack_listed("--resume", code=0)
        self.assertEqual(json.loads(self.run_leat("info", self.path("p.leat"), "--json"))["samples"], 48)

    def test_everything_is_refused_after_some_objects(self) -> None:
        """Refused objects, then no access at all: also then the run ends."""
        self.manifest()
        self.bucket.forbidden = {f"/b/src/{i:02}.png" for i in (0, 1, 5, 6, 7)}
        self.bucket.fail_after, self.bucket.failure = 40, (403, "AccessDenied")
        self.assertIn("the storage fails", self.pack_listed(code=4))
        self.bucket.fail_after = 1 << 60
        self.assertIn("5 samples were left out", self.pack_listed("--resume", code=1))

    def test_no_sample_can_be_read(self) -> None:
        self.manifest()
        self.bucket.fail_after, self.bucket.failure = 0, (403, "AccessDenied")
        self.assertIn("the storage fails: several consecutive samples cannot be read", self.pack_listed(code=4))

    def test_keys_with_control_characters(self) -> None:
        """`leat export` writes them, `leat pack` shows them escaped and says how to leave them out."""
        self.bucket.objects.update({"/b/src/a%09b.png": png(1, 8), "/b/src/c.png": png(2, 8)})
        pathlib.Path(self.path("list.jsonl")).write_text(
            "".join(json.dumps({"path": f"s3://b/src/{name}"}) + "\n" for name in ("c.png", "a\tb.png")))
        command = "pack", self.path("list.jsonl"), "-o", self.path("p.leat"), "--images", "keep"
        told = self.run_leat(*command, code=2)
        self.assertIn("leat pack: s3://b/src/a\\x09b.png: has a control character", told)
        self.assertIn("to leave out such samples: --resume --on-error skip", told)
        self.assertIn("1 sample was left out", self.run_leat(*command, "--on-error", "skip", "--resume", code=1))

    def test_a_pack_of_a_pack_ends_when_the_storage_fails(self) -> None:
        self.run_leat("pack", self.path("images"), "-o", self.path("q.leat"), "--images", "keep", "--page-bytes", "64K")
        self.bucket.objects["/b/q.leat"] = pathlib.Path(self.path("q.leat")).read_bytes()
        self.bucket.fail_after = 20
        told = self.run_leat("pack", "s3://b/q.leat", "-o", self.path("p.leat"), "--images", "keep", "--on-error", "skip", code=4,
                             LEAT_REMOTE_TRIES="2")
        self.assertIn("the storage fails", told)
        self.assertIn("500 InternalError", told)

    changes = ((412, "replaced"), (416, "replaced"), (404, "removed"), (410, "removed"))

    def test_a_pack_of_a_pack_that_is_replaced_or_removed(self) -> None:
        """That is not a bad sample: the run ends, and no pack appears that lacks samples."""
        for name, more in ("q", ()), ("set", ("--shard-bytes", "1M")):
            self.run_leat("pack", self.path("images"), "-o", self.path(f"{name}.leat"), "--images", "keep", "--page-bytes", "64K", *more)
        for file in pathlib.Path(self.dir).glob("*.leat"):
            self.bucket.objects["/b/" + file.name] = file.read_bytes()
        for name in "q", "set":
            for status, word in self.changes:
                with self.subTest(name=name, status=status):
                    self.bucket.fail_after, self.bucket.failure = self.bucket.count("GET") + 20, (status, "Code")
                    told = self.run_leat("pack", f"s3://b/{name}.leat", "-o", self.path("p.leat"), "--images", "keep", "--on-error",
                                         "skip", "--force", code=4)
                    self.assertIn("the source changed during the run", told)
                    self.assertIn(f"was {word} while it was being read", told)
                    self.assertFalse(os.path.exists(self.path("p.leat")))
                    self.assertTrue(os.path.exists(self.path("p.leat.partial")))

    def test_a_tar_that_is_refused_with_412(self) -> None:
        """That is storage that fails, not something that exists."""
        with tarfile.open(self.path("x.tar"), "w") as tar:
            tar.add(self.path("images"), "images")
        self.bucket.objects["/b/x.tar"] = pathlib.Path(self.path("x.tar")).read_bytes()
        for gets in 0, 1, 2:
            self.bucket.fail_after, self.bucket.failure = self.bucket.count("GET") + gets, (412, "PreconditionFailed")
            self.assertNotIn("--force", self.run_leat("pack", "s3://b/x.tar", "-o", self.path("p.leat"), "--images", "keep", code=4))

    def test_a_bucket_that_is_removed(self) -> None:
        self.manifest()
        self.bucket.fail_after, self.bucket.failure = 15, (404, "NoSuchBucket")
        self.assertIn("the storage fails: the bucket does not exist any more", self.pack_listed(code=4))
        self.assertFalse(os.path.exists(self.path("p.leat")))

    def test_a_load_or_export_of_a_pack_that_is_replaced_or_removed(self) -> None:
        """The epoch ends with an error, whatever the policy."""
        self.run_leat("pack", self.path("images"), "-o", self.path("p.leat"), "--images", "keep", "--page-bytes", "64K")
        self.bucket.objects["/b/p.leat"] = pathlib.Path(self.path("p.leat")).read_bytes()
        self.bucket.opens = True  # a busy machine may open the pack with more requests than one
        load = "load", "s3://b/p.leat", "--batch", "8", "-s", "64"
        commands = [(*load, "--on-error", policy, "--order", order)
                    for policy in ("fail", "skip", "replace") for order in ("random", "sequential")]
        others = [("export", "s3://b/p.leat", "-o", self.path("out"), "--force"), ("verify", "s3://b/p.leat"),
                  ("check", "s3://b/p.leat", "-o", self.path("check.leat"), "--force")]
        for command in [*commands, *others]:
            for status, word in self.changes:
                with self.subTest(command=command, status=status):
                    self.bucket.seen.clear()
                    self.bucket.fail_after, self.bucket.failure = 8 if "random" in command else 3, (status, "Code")
                    told = self.run_leat(*command, code=4)
                    self.assertIn(f"was {word} while it was being read", told)
                    self.assertNotIn("not exported", told)
                    self.assertLess(self.bucket.count("GET"), 100)

    def test_single_objects_that_are_refused_are_skipped(self) -> None:
        self.manifest()
        self.bucket.forbidden = {"/b/src/03.png", "/b/src/20.png"}
        for name in "30", "31", "32":  # objects that are not there, one after another
            del self.bucket.objects[f"/b/src/{name}.png"]
        self.assertIn("5 samples were left out", self.pack_listed(code=1))

    def test_damaged_pages_are_no_hits(self) -> None:
        self.run_leat("pack", self.path("images"), "-o", self.path("p.leat"), "--images", "keep", "--page-bytes", "256K")
        self.bucket.objects["/b/p.leat"] = pathlib.Path(self.path("p.leat")).read_bytes()

        def hits() -> int:
            out = self.run_leat("load", "s3://b/p.leat", "-s", "64", "--order", "quasi_random", "--json", "--cache",
                                "disk:" + self.path("cache"))
            return json.loads(out.splitlines()[0])["disk_cache_hits"]

        self.assertEqual(hits(), 0)
        self.assertGreater(hits(), 4)
        data = max(pathlib.Path(self.path("cache")).iterdir(), key=lambda p: p.stat().st_size)
        with data.open("r+b") as f:
            for at in range(0, data.stat().st_size, 10_000):
                f.seek(at)
                f.write(b"damage!")
        self.assertEqual(hits(), 0)
        self.assertGreater(hits(), 4)


    def test_bytes_damaged_in_transit_are_verified_again(self) -> None:
        """Up to six times, also the bytes of a block that was prefetched and that several threads read."""
        self.run_leat("pack", self.path("images"), "-o", self.path("p.leat"), "--images", "keep", "--page-bytes", "64K")
        self.bucket.objects["/b/p.leat"] = pathlib.Path(self.path("p.leat")).read_bytes()
        for first, last in (3, 3), (4, 4), (5, 5), (3, 6), (4, 7):
            for threads in "1", "8":
                with self.subTest(first=first, last=last, threads=threads):
                    self.bucket.seen.clear()
                    self.bucket.flip = lambda get: first <= get <= last  # noqa: B023
                    self.assertIn("intact, 48 samples", self.run_leat("verify", "s3://b/p.leat", "--threads", threads))
        self.bucket.flip = lambda get: get > 2
        self.assertIn("checksum does not match", self.run_leat("verify", "s3://b/p.leat", code=4))


class Secrets(Case):
    """User, password and query of a URL are in no output and no file, whatever the command and its result."""
    words = ("bob-user", "PASSWORD", "SIGNATURE")

    def search(self, told: str) -> None:
        for word in self.words:
            self.assertNotIn(word, told)
        for folder, folders, names in os.walk(self.dir):
            for name in folders + names:
                where = os.path.join(folder, name)
                text = b"" if os.path.isdir(where) else pathlib.Path(where).read_bytes()
                for word in self.words:
                    self.assertNotIn(word, name)
                    self.assertFalse(word.encode() in text, f"{word} is in {where}")

    def commands(self, pack: str, tar: str) -> list[list[str]]:
        out = [["info"], ["info", "--json"], ["verify"], ["verify", "--json"], ["doctor", "--seconds", "1", "--report", "doctor.html"],
               ["doctor", "--seconds", "1", "--json"],
               ["load", "-s", "64", "--report", "load.html", "--trace", "load.trace", "--run-file", "load.run", "--state", "load.state",
                "--quarantine", "load.bad", "--on-error", "skip"],
               ["load", "-s", "64", "--json", "--cache", "disk:" + self.path("cache")],
               ["show", "-o", "sheet.png", "--force"], ["export", "-o", "files", "--force"], ["merge", "-o", "merged.leat", "--force"],
               ["split", "-o", "parts"], ["check", "-o", "checked.leat", "--force"],
               ["pack", "-o", "again.leat", "--force"], ["select", "-o", "chosen.leat", "--force", "--count", "3", "--strategy", "random"],
               ["uploads"], ["append", "-o", "own.leat"], ["delete", "a/00.png"], ["compact"], ["dedup", "images", "-o", "dedup.leat", "--csv", "pairs.csv", "--force"]]
        return ([[c[0], *c[1:2] * (c[0] == "dedup"), pack, *c[1 + (c[0] == "dedup"):]] for c in out] +
                [["plan", "--dataset", pack, "--gpus", "0"], ["plan", "--dataset", pack, "--gpus", "0", "--no-measure", "--json"],
                 ["pack", tar, "-o", "tar.leat", "--force"], ["pack", tar.replace("t.tar", "bad.tar"), "-o", "tar2.leat", "--on-error", "skip", "--report", "tar.bad", "--force"],
                 ["pack", "list.csv", "-o", "list.leat", "--on-error", "skip", "--report", "list.bad", "--force", "--images", "keep"],
                 ["pack", tar.replace("t.tar", "list.csv"), "-o", "list2.leat", "--on-error", "skip", "--report", "list.bad", "--force"], ["export", self.path("p.leat"), "-o", pack],
                 ["pack", self.path("images"), "-o", pack], ["load", pack, "--state", pack], ["load", pack, "--report", pack],
                 ["info", pack.replace("http", "HTTP")], ["info", pack + " x"], ["info", pack.replace("user:", "user:PASS@")]])

    def test_settings_and_names(self) -> None:
        told = self.run_leat("info", "s3://b/p.leat", code=2, AWS_ENDPOINT_URL="ftp://bob-user:PASSWORD@h")
        self.assertIn("AWS_ENDPOINT_URL: must begin with http", told)
        self.search(told)
        for password in ("PASSWORD", "PASSWORD" * 20):
            told = self.run_leat("info", f"s3://bob-user:{password}@b/p.leat", code=2)
            self.assertIn("s3://…@b/p.leat: not a valid bucket name", told)
            self.search(told)
            self.search(self.run_leat("info", f"ftp://bob-user:{password}@b/p.leat?SIGNATURE", code=2))

    def test_answers_that_repeat_the_request(self) -> None:
        """Access key, signature, token, password: no server brings them onto the screen."""
        self.bucket.echo = True
        told = self.run_leat("info", "s3://b/none.leat", code=4, AWS_SESSION_TOKEN="SESSION-PASSWORD")
        headers = self.bucket.seen[-1][2]
        self.assertIn("x-amz-security-token", headers)
        signature = headers["authorization"].partition("Signature=")[2]
        self.assertEqual(len(signature), 64)
        self.assertIn("Signature=…", told)
        for secret in (signature, "LEATTESTKEY0000001", "SESSION-PASSWORD"):
            self.assertNotIn(secret, told)
        url = f"http://bob-user:PASSWORD@127.0.0.1:{self.bucket.port}/none.leat?X-Sig=SIGNA%2FTURE&id=SIGNATURE"
        told = self.run_leat("info", url, code=4)
        self.assertIn("/none.leat?X-Sig=…", told)
        self.search(told)
        self.assertNotIn("SIGNA", told)
        self.assertNotIn(base64.b64encode(b"bob-user:PASSWORD").decode(), told)

    def test_every_command(self) -> None:
        os.chdir(self.dir)
        self.run_leat("pack", self.path("images"), "-o", self.path("p.leat"), "--images", "keep", "--page-bytes", "64K")
        shutil.copy(self.path("p.leat"), self.path("own.leat"))
        with tarfile.open(self.path("t.tar"), "w") as tar:
            tar.add(self.path("images/a/00.png"), "00.png")
        data = bytearray(pathlib.Path(self.path("p.leat")).read_bytes())
        self.bucket.objects["/p.leat"] = bytes(data)
        data[100000:100010] = b"damaged..."
        self.bucket.objects["/bad.leat"] = bytes(data)
        self.bucket.objects["/t.tar"] = pathlib.Path(self.path("t.tar")).read_bytes()
        self.bucket.signed = True  # the query is of no interest to the server
        base = f"http://bob-user:PASSWORD@127.0.0.1:{self.bucket.port}/"
        query = "?X-Sig=SIGNATURE&b=c/SIGNATURE"
        self.bucket.objects["/bad.tar"] = self.bucket.objects["/t.tar"][:1000]
        listed = "".join(f"{base}{name}{query}\n" for name in ("0.png", "none.png"))
        self.bucket.objects["/0.png"] = png(1, 32)
        self.bucket.objects["/list.csv"] = b"path,label\n0.png,1\nnone.png,2\n"
        for name in ("p.leat", "bad.leat", "none.leat"):
            for args in self.commands(base + name + query, base + "t.tar" + query):
                with self.subTest(args=args):
                    pathlib.Path("list.csv").write_text("path\n" + listed)
                    run = subprocess.run(self.command(*args), env=self.env(LEAT_REMOTE_TRIES="2"), capture_output=True,
                                         text=True, timeout=100, stdin=subprocess.DEVNULL)
                    os.unlink("list.csv")
                    self.search(run.stdout + run.stderr)
                    self.assertIn(run.returncode, (0, 1, 2, 3, 4), run.stderr)
        for name in ("doctor.html", "load.html", "load.trace", "load.run", "load.state", "merged.leat", "tar.leat", "dedup.leat", "list.leat", "list2.leat", "list.bad"):
            self.assertTrue(os.path.getsize(name) > 0, name)  # one of the packs is whole


if __name__ == "__main__":
    unittest.main()
