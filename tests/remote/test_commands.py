# SPDX-License-Identifier: Apache-2.0
"""Commands with remote paths: leat plan, --anonymous and --ca-file, regions. Servers and packs are those of test_remote."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import servers  # noqa: E402
from servers import BUCKET, Proxy, environment  # noqa: E402
from test_remote import (LEAT, World, digests, leat, path, png, remote,  # noqa: E402
                         setUpModule, tearDownModule)  # noqa: F401


class Planning(unittest.TestCase):
    """leat plan on data in a bucket."""

    def plan(self, data: str, *args: str, env: dict[str, str]) -> dict:
        return json.loads(leat("plan", "--dataset", data, "--gpus", "0", "--ram", "8G", "--cpus", "2", "--json", *args,
                               env=env))

    def test_a_pack_is_storage_of_its_own(self) -> None:
        proxy = Proxy(World.weed.port)
        plan = self.plan(remote("one.leat"), "--order", "quasi_random", "--epochs", "3", "--samples", "1000000",
                         env=environment(proxy.port))
        local = json.loads(leat("plan", "--dataset", path("one.leat"), "--no-measure", "--json"))
        self.assertEqual(plan["facts"]["storage"], "bucket")
        for key in ("sample_bytes", "width", "height", "images"):
            self.assertEqual(plan["facts"][key], local["facts"][key])
        self.assertTrue(plan["speed"]["sources"]["io"].startswith("measured"))
        self.assertTrue(plan["speed"]["sources"]["cpu"].startswith("measured"))
        self.assertFalse(plan["speed"]["incomplete"])
        traffic = plan["traffic"]
        self.assertEqual(traffic["epoch_bytes"], plan["facts"]["samples"] * plan["facts"]["sample_bytes"])
        self.assertEqual(traffic["run_bytes"], 3 * traffic["epoch_bytes"])
        self.assertEqual(traffic["disk_cache_saves_bytes"], 2 * traffic["epoch_bytes"])
        self.assertNotIn("usd_run", traffic)  # another server than Amazon's
        self.assertLess(proxy.gets, 120)
        proxy.stop()

    def test_the_bytes_fetched_are_said(self) -> None:
        run = subprocess.run([LEAT, "plan", "--dataset", remote("one.leat"), "--gpus", "0"], capture_output=True,
                             text=True, env=environment(World.weed.port), timeout=100)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertRegex(run.stderr, r"measured on the bucket: .* in \d+ requests")
        self.assertIn("Traffic from the bucket", run.stdout)

    def test_gbps_is_the_link(self) -> None:
        env = environment(World.weed.port)
        plans = [self.plan(remote("one.leat"), "--no-measure", "--order", "sequential", "--gbps", gbps,
                           "--samples", "1000000", env=env)
                 for gbps in ("0.01", "0.02")]
        rates = [plan["speed"]["rates"]["io"]["mid"] for plan in plans]
        self.assertAlmostEqual(rates[1] / rates[0], 2)
        self.assertAlmostEqual(rates[0] * plans[0]["facts"]["sample_bytes"], 0.95 * 0.01e9 / 8)
        self.assertEqual(plans[0]["speed"]["limit"], "io")

    def test_few_requests_without_measuring(self) -> None:
        proxy = Proxy(World.weed.port)
        self.plan(remote("set.leat"), "--no-measure", "--gbps", "1", env=environment(proxy.port))
        self.assertLess(proxy.requests, 40)  # five shards, a few each
        proxy.stop()

    def test_a_slow_server_limits_random(self) -> None:
        proxy = Proxy(World.weed.port, latency=0.1)
        env = environment(proxy.port)
        many = ("--order", "random", "--samples", "10000000")
        plan = self.plan(remote("one.leat"), *many, "--memory", "256M", env=env)
        self.assertGreater(plan["facts"]["latency_seconds"], 0.09)
        self.assertLess(plan["speed"]["rates"]["io"]["mid"], 64 / 0.09)
        self.assertIn("quasi_random", json.dumps(plan["what_if"]) + plan["no_gain"])
        own = self.plan(remote("one.leat"), "--order", "random", env=env)  # in memory: pages are read, not samples
        self.assertLess(own["traffic"]["epoch_requests"], own["facts"]["samples"])
        proxy.stop()

    def test_a_prefix_of_images(self) -> None:
        for i in range(30):
            servers.put(World.weed.port, f"plain/c{i % 3}/{i}.png", png(i, 32))
        servers.put(World.weed.port, "plain/readme.txt", b"no image")
        sizes = [len(png(i, 32)) for i in range(30)]
        env = environment(World.weed.port)
        plan = self.plan(f"s3://{BUCKET}/plain", "--gbps", "1", env=env)
        self.assertEqual(plan["facts"]["samples"], 30)
        self.assertEqual(plan["facts"]["sample_bytes"], sum(sizes) // 30)
        self.assertEqual(plan["facts"]["storage"], "bucket")
        error = leat("plan", "--dataset", f"s3://{BUCKET}/plain", "--calibrate", env=env, code=2)
        self.assertIn("prefix of images", error)
        self.assertIn("nosuch", leat("plan", "--dataset", f"s3://{BUCKET}/nosuch.leat", env=env, code=4))

    def test_calibrate(self) -> None:
        plan = self.plan(remote("one.leat"), "--calibrate", env=environment(World.weed.port))
        self.assertTrue(plan["speed"]["sources"]["cpu"].startswith("calibrated"))


class Flags(unittest.TestCase):
    """--anonymous and --ca-file, of every command with remote paths."""

    def commands(self, pack: str) -> dict[str, list[str]]:
        folder = os.path.dirname(pack)
        return {"info": [pack], "verify": [pack], "load": [pack, "-s", "8"], "doctor": [pack], "show": [pack, "-o", path("x.png")],
                "plan": ["--dataset", pack], "export": [pack, "-o", path("flag-out")],
                "merge": [pack, "-o", path("flag-merge")], "split": [pack, "-o", path("flag-split")],
                "check": [pack, "-o", path("flag-check")], "pack": [folder, "-o", path("flag-pack")],
                "append": [folder, "-o", path("one.leat")], "uploads": [folder], "view": [pack],
                "select": [pack, "-o", path("flag-select"), "--count", "1", "--strategy", "random"]}

    def test_anonymous_requests_are_not_signed(self) -> None:
        table = json.loads(leat("help", "--json"))["commands"]
        flagged = {c["name"] for c in table if any(o["name"] == "anonymous" for o in c["options"])}
        commands = self.commands("s3://b/folder/none.leat")
        self.assertEqual(flagged, set(commands) | {"train", "embed", "tag", "curate"})  # these run in Python
        web = servers.Web(path("one.leat"))
        for name, args in commands.items():
            for flag, signed in (("--no-anonymous", True), ("--anonymous", False)):
                with self.subTest(name=name, flag=flag):
                    web.seen.clear()
                    leat(name, *args, flag, env=environment(web.port, LEAT_ANONYMOUS="1" if signed else ""), code=4)
                    self.assertTrue(web.seen)
                    self.assertEqual({"Authorization" in headers for headers in web.seen}, {signed})
        web.stop()

    def test_anonymous_needs_no_credentials(self) -> None:
        web = servers.Web(path("one.leat"))
        env = environment(web.port)
        del env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"]
        self.assertIn("--anonymous", leat("info", "s3://b/one.leat", env=env, code=4))
        self.assertEqual(digests(path("one.leat")), digests("s3://b/one.leat", "--anonymous", env=env))
        web.stop()

    @unittest.skipIf(shutil.which("openssl") is None, "openssl is not installed")
    def test_a_private_authority(self) -> None:
        for name in ("cert", "other"):
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", path(f"{name}.key"),
                            "-out", path(f"{name}.pem"), "-days", "2", "-subj", "/CN=127.0.0.1", "-addext",
                            "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
        pathlib.Path(path("both.pem")).write_text(pathlib.Path(path("cert.key")).read_text() +
                                                  pathlib.Path(path("cert.pem")).read_text())
        web = servers.Web(path("one.leat"), path("both.pem"))
        env = environment(1)
        env.pop("SSL_CERT_FILE", None)
        url = f"https://127.0.0.1:{web.port}/one.leat"
        self.assertEqual(digests(path("one.leat")), digests(url, "--ca-file", path("cert.pem"), env=env))
        leat("verify", url, "--ca-file", path("cert.pem"), env=env)
        for wrong in ((), ("--ca-file", path("other.pem"))):
            text = leat("info", url, *wrong, env=env, code=4)
            self.assertIn("certificate", text)
            self.assertEqual(len(text.splitlines()), 1)
        self.assertIn("--ca-file", leat("info", url, env=env, code=4))
        self.assertIn("--ca-file /nowhere", leat("info", url, "--ca-file", "/nowhere", env=env, code=2))
        self.assertIn("CA", leat("info", url, "--ca-file", path("one.leat"), env=env, code=4))
        web.stop()


class LocalOnly(unittest.TestCase):
    """Commands that write no bucket name what the user named, not a file that the user never named."""

    def test_commands_that_change_a_pack(self) -> None:
        env = environment(World.weed.port)
        name = remote("one.leat")
        for command in (("delete", name, "a"), ("append", path("one.leat"), "-o", name)):
            said = leat(*command, env=env, code=2)
            self.assertRegex(said, rf"{name}: only packs on this machine can be (changed|appended to)")
            self.assertNotIn(".journal", said)

    def test_commands_that_write_files(self) -> None:
        env = environment(World.weed.port)
        said = leat("split", path("one.leat"), "-o", f"s3://{BUCKET}/parts", env=env, code=2)
        self.assertIn(f"s3://{BUCKET}/parts: must be a local path", said)
        pathlib.Path(path("texts.jsonl")).write_text('{"id": "a", "text": "one two"}\n', encoding="utf-8")
        for command in (("filter", "--profile", "gopher@paper"), ("dedup", "exact")):
            said = leat(*command, path("texts.jsonl"), "-o", f"s3://{BUCKET}/kept", env=env, code=2)
            self.assertIn(f"s3://{BUCKET}/kept: must be a local path", said)
        self.assertFalse(os.path.exists("s3:"))
        said = leat("show", path("one.leat"), "-o", f"s3://{BUCKET}/sheet.png", env=env, code=2)
        self.assertIn(f"s3://{BUCKET}/sheet.png: must be a local path", said)


class Regions(unittest.TestCase):
    def run_in(self, region: str, *args: str) -> subprocess.CompletedProcess:
        self.web.seen.clear()
        run = subprocess.run([LEAT, *args], capture_output=True, text=True, timeout=100,
                             env=environment(self.web.port, AWS_REGION=region))
        self.assertEqual(run.returncode, 0, run.stderr)
        return run

    def setUp(self) -> None:
        self.web = servers.Web(path("one.leat"), region="us-west-2")
        self.addCleanup(self.web.stop)

    def test_another_region_is_followed_once_and_warned_of_once(self) -> None:
        for args in (("info",), ("load", "-s", "8", "-b", "16"), ("verify",), ("plan", "--gpus", "0", "--dataset")):
            with self.subTest(args=args):
                run = self.run_in("eu-north-1", *args, "s3://b/one.leat")
                warnings = [line for line in run.stderr.splitlines() if "region" in line]
                self.assertEqual(len(warnings), 1, run.stderr)
                self.assertIn("us-west-2", warnings[0])
                self.assertIn("eu-north-1", warnings[0])
                wrong = [h for h in self.web.seen if "/eu-north-1/" in h["Authorization"]]
                self.assertEqual(len(wrong), 1)

    def test_the_same_region_is_silent(self) -> None:
        self.assertEqual(self.run_in("us-west-2", "info", "s3://b/one.leat").stderr, "")


if __name__ == "__main__":
    if servers.program("weed") is None:
        print("skipped: no S3 server (SeaweedFS): scripts/setup.sh python installs it into .venv")
        sys.exit(servers.SKIP)
    unittest.main()
