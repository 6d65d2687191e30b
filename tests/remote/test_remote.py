# SPDX-License-Identifier: Apache-2.0
"""Packs read from a bucket, with real servers and through a proxy that breaks answers.

Everything is on 127.0.0.1. Every line that leat prints is searched for the credentials."""
import http.server
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import servers  # noqa: E402
from servers import BUCKET, SECRET, Proxy, environment  # noqa: E402

LEAT = os.environ["LEAT"]
IMAGES = 240


def png(seed: int, side: int) -> bytes:
    """A picture of noise: it does not compress, so sizes are known."""
    import random
    noise = random.Random(seed).randbytes(side * side * 3)
    rows = b"".join(b"\0" + noise[i * side * 3:(i + 1) * side * 3] for i in range(side))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b""))


class World:
    """The servers and the packs shared by all tests."""
    weed: servers.Weed
    dir: str
    printed: list[str] = []


def setUpModule() -> None:
    World.dir = tempfile.mkdtemp(prefix="leat-remote-test-")
    images = os.path.join(World.dir, "images")
    for i in range(IMAGES):
        folder = os.path.join(images, f"class{i % 5}")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"{i:04}.png"), "wb") as f:
            f.write(png(i, 96 + i % 32))
    leat("pack", images, "-o", path("one.leat"), "--images", "keep", "--page-bytes", "256K", "-q")
    leat("pack", images, "-o", path("set.leat"), "--images", "keep", "--page-bytes", "128K",
         "--shard-bytes", "3M", "-q")
    World.weed = servers.Weed()
    servers.make_bucket(World.weed.port)
    for name in sorted(os.listdir(World.dir)):
        if name.endswith(".leat"):
            servers.put(World.weed.port, f"packs/{name}", pathlib.Path(path(name)).read_bytes())


def tearDownModule() -> None:
    World.weed.stop()
    told = [os.path.join(folder, name) for folder, _, names in os.walk(World.dir) for name in names
            if name != "credentials" and SECRET.encode() in pathlib.Path(folder, name).read_bytes()]
    shutil.rmtree(World.dir, ignore_errors=True)
    if told:  # packs, states, caches and staged files: everything that leat wrote in the tests
        raise AssertionError(f"a secret was written to {told}")


def path(name: str) -> str:
    return os.path.join(World.dir, name)


def remote(name: str) -> str:
    return f"s3://{BUCKET}/packs/{name}"


def leat(*args: str, env: dict[str, str] | None = None, code: int = 0, seconds: int = 100) -> str:
    run = subprocess.run([LEAT, *args], env=env, capture_output=True, text=True, timeout=seconds)
    World.printed += [run.stdout, run.stderr]
    if SECRET in run.stdout + run.stderr:
        raise AssertionError("a secret was printed")
    if run.returncode != code:
        raise AssertionError(f"{args}: exit {run.returncode}, not {code}: {run.stdout}{run.stderr}")
    return run.stdout if code == 0 else run.stderr


def load(pack: str, *args: str, env: dict[str, str] | None = None) -> list[dict]:
    out = leat("load", pack, "--batch", "16", "--size", "64", "--digest", "--json", *args, env=env)
    return [json.loads(line) for line in out.splitlines()]


def digests(pack: str, *args: str, env: dict[str, str] | None = None) -> list[str]:
    return [epoch["digest"] for epoch in load(pack, *args, env=env)]


class Reading(unittest.TestCase):
    def env(self, **more: str) -> dict[str, str]:
        return environment(World.weed.port, **more)

    def test_digests_equal_local(self) -> None:
        for name in ("one.leat", "set.leat"):
            for order in ("sequential", "random", "quasi_random"):
                for more in ((), ("--rank", "1", "--world", "2"), ("--cache", "process", "--memory", "24M"),
                             ("--threads", "1")):
                    with self.subTest(name=name, order=order, more=more):
                        args = ("--order", order, "--epochs", "2", *more)
                        self.assertEqual(digests(path(name), *args),
                                         digests(remote(name), *args, env=self.env()))

    def test_resume_gives_the_rest(self) -> None:
        args = ("--order", "quasi_random", "--epochs", "1")
        whole = digests(path("set.leat"), *args)
        state = path("state.json")
        leat("load", remote("set.leat"), "--batch", "16", "--size", "64", "--digest", "--json", *args,
             "--stop-after", "96", "--state", state, env=self.env())
        self.assertNotIn(SECRET, pathlib.Path(state).read_text())
        self.assertEqual(whole, digests(remote("set.leat"), *args, "--resume", state, env=self.env()))

    def test_traces_and_reports_have_no_secret(self) -> None:
        """tearDownModule searches them, as it does everything else that leat wrote."""
        files = [path(name) for name in ("secret.trace", "secret.html", "secret.run", "secret.state", "secret.bad")]
        env = self.env(AWS_SESSION_TOKEN="")
        leat("load", remote("one.leat"), "--batch", "16", "--size", "64", "--trace", files[0], "--report", files[1],
             "--run-file", files[2], "--state", files[3], "--quarantine", files[4], "--on-error", "skip", env=env)
        leat("doctor", remote("one.leat"), "--seconds", "1", "--report", path("doctor.html"), "--json", env=env)
        for name in (*files[:4], path("doctor.html")):
            self.assertGreater(os.path.getsize(name), 0)

    def test_info_and_verify(self) -> None:
        ours = json.loads(leat("info", remote("set.leat"), "--json", env=self.env()))
        local = json.loads(leat("info", path("set.leat"), "--json"))
        for key in ("samples", "bytes", "pages", "fingerprint"):
            if key in local:
                self.assertEqual(ours[key], local[key])
        leat("verify", remote("set.leat"), env=self.env())
        leat("verify", remote("one.leat"), "--threads", "4", env=self.env())

    def test_export_equals_local(self) -> None:
        leat("export", remote("one.leat"), "-o", path("out"), env=self.env())
        for folder, _, files in os.walk(os.path.join(World.dir, "images")):
            for name in files:
                whole = os.path.join(folder, name)
                copy = os.path.join(path("out"), os.path.relpath(whole, os.path.join(World.dir, "images")))
                self.assertEqual(pathlib.Path(whole).read_bytes(), pathlib.Path(copy).read_bytes())

    def test_opening_takes_three_requests(self) -> None:
        proxy = Proxy(World.weed.port)
        leat("info", remote("one.leat"), env=environment(proxy.port))
        proxy.stop()
        self.assertLessEqual(proxy.requests, 3)

    def test_traffic_is_that_of_the_file(self) -> None:
        for order in ("sequential", "quasi_random"):
            proxy = Proxy(World.weed.port)
            load(remote("one.leat"), "--order", order, env=environment(proxy.port))
            proxy.stop()
            size = os.path.getsize(path("one.leat"))
            self.assertLess(proxy.bytes, 1.1 * size + (1 << 20), order)
            pages = json.loads(leat("info", path("one.leat"), "--json"))["pages"]
            self.assertLess(proxy.gets, pages + 12, order)

    def test_missing_and_refused(self) -> None:
        text = leat("info", remote("none.leat"), env=self.env(), code=4)
        self.assertIn(f"s3://{BUCKET}/packs/none.leat", text)
        self.assertEqual(text.count("\n"), 1)
        wrong = self.env(AWS_SECRET_ACCESS_KEY="another-secret-that-is-wrong")
        text = leat("info", remote("one.leat"), env=wrong, code=4)
        self.assertIn("403", text)
        self.assertNotIn("another-secret", text)
        none = self.env(AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="")
        self.assertIn("AWS_ACCESS_KEY_ID", leat("info", remote("one.leat"), env=none, code=4))
        missing = self.env(LEAT_CURL="/nowhere.so")
        self.assertIn("libcurl", leat("info", remote("one.leat"), env=missing, code=2))

    def test_profile_in_files(self) -> None:
        credentials = path("credentials")
        pathlib.Path(credentials).write_text(
            f"[other]\naws_access_key_id = x\n[work]\naws_access_key_id = {servers.KEY_ID}\n"
            f"aws_secret_access_key={SECRET}\n")
        env = self.env(AWS_PROFILE="work", AWS_SHARED_CREDENTIALS_FILE=credentials, AWS_ACCESS_KEY_ID="",
                       AWS_SECRET_ACCESS_KEY="")
        leat("info", remote("one.leat"), env=env)


class Faults(unittest.TestCase):
    """The right bytes through a proxy that breaks every tenth answer in one way, and in all ways."""
    KINDS = ("drop", "reset", "error", "truncate", "short", "wrong", "stall")

    def run_with(self, **faults: float) -> None:
        args = ("--order", "quasi_random", "--epochs", "1", "--memory", "64M")
        proxy = Proxy(World.weed.port, seed=5, **faults)
        env = environment(proxy.port, LEAT_REMOTE_TRIES="20")
        self.assertEqual(digests(path("set.leat"), *args), digests(remote("set.leat"), *args, env=env))
        proxy.stop()
        self.assertGreater(sum(proxy.hits.values()), 0, "no fault was drawn")
        ideal = sum(os.path.getsize(path(n)) for n in os.listdir(World.dir) if n.startswith("set"))
        self.assertLess(proxy.bytes, ideal * (1.2 + 2 * sum(faults.values())) + (4 << 20))

    def test_each_kind(self) -> None:
        for kind in self.KINDS:
            with self.subTest(kind=kind):
                self.run_with(**{kind: 0.1 if kind != "stall" else 0.03})

    def test_all_kinds_at_once(self) -> None:
        self.run_with(**{kind: 0.05 for kind in self.KINDS if kind != "stall"})

    def test_verify_and_info(self) -> None:
        proxy = Proxy(World.weed.port, seed=3, **{k: 0.04 for k in self.KINDS if k != "stall"})
        env = environment(proxy.port, LEAT_REMOTE_TRIES="20")
        leat("verify", remote("set.leat"), env=env)
        leat("info", remote("set.leat"), env=env)
        proxy.stop()

    def test_after_the_last_try_the_range_is_named(self) -> None:
        proxy = Proxy(World.weed.port)
        env = environment(proxy.port, LEAT_REMOTE_TRIES="2")
        leat("info", remote("one.leat"), env=env)
        opened = proxy.gets
        draw = proxy._draw

        def later(method: str) -> str | None:
            draw(method)
            return "error" if proxy.gets > 2 * opened else None
        proxy._draw = later  # type: ignore[method-assign]
        text = leat("load", remote("one.leat"), "--batch", "16", "--size", "64", "--order", "sequential", env=env,
                    code=4)
        proxy.stop()
        self.assertIn(remote("one.leat"), text)
        self.assertIn("503", text)
        self.assertIn("bytes ", text)
        self.assertIn("2 attempts", text)

    def test_ctrl_c_does_not_wait_for_a_dead_network(self) -> None:
        proxy = Proxy(World.weed.port)
        draw = proxy._draw

        def sleepy(method: str) -> str | None:
            draw(method)
            if proxy.gets > 8:
                proxy.latency = 120
            return None
        proxy._draw = sleepy  # type: ignore[method-assign]
        env = environment(proxy.port, LEAT_REMOTE_STALL_S="100")
        child = subprocess.Popen([LEAT, "load", remote("one.leat"), "--batch", "16", "--size", "64"], env=env,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while proxy.latency == 0 and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(1)
        child.send_signal(signal.SIGINT)
        try:
            child.wait(40)
        finally:
            child.kill()
            proxy.stop()

    def test_a_pack_replaced_while_it_is_read_is_an_error(self) -> None:
        key = "packs/changing.leat"
        data = pathlib.Path(path("one.leat")).read_bytes()
        servers.put(World.weed.port, key, data)
        proxy = Proxy(World.weed.port)
        draw = proxy._draw

        def replace(method: str) -> str | None:
            draw(method)
            if proxy.gets == 3:  # the first ones open the pack; what follows may be one request
                servers.put(World.weed.port, key, data[:-1] + b"x")
            return None
        proxy._draw = replace  # type: ignore[method-assign]
        text = leat("load", f"s3://{BUCKET}/{key}", "--batch", "16", "--size", "64", "--order", "sequential",
                    env=environment(proxy.port, LEAT_REMOTE_CONNECTIONS="1"), code=4)
        proxy.stop()
        self.assertIn("replaced while it was being read", text)


class Writing(unittest.TestCase):
    def setUp(self) -> None:
        self.stage = tempfile.mkdtemp(dir=World.dir)
        self.images = os.path.join(World.dir, "images")

    def env(self, port: int = 0, **more: str) -> dict[str, str]:
        return environment(port or World.weed.port, LEAT_STAGE_DIR=self.stage, **more)

    def pack(self, name: str, *more: str, port: int = 0, code: int = 0) -> str:
        return leat("pack", self.images, "-o", remote(name), "--images", "keep", "-q", *more,
                    env=self.env(port), code=code)

    def get(self, key: str) -> bytes:
        return servers.signed("GET", World.weed.port, f"/{BUCKET}/packs/{key}")

    def test_same_bytes_as_local(self) -> None:
        self.pack("up.leat", "--page-bytes", "256K")
        self.assertEqual(self.get("up.leat"), pathlib.Path(path("one.leat")).read_bytes())
        self.assertEqual(os.listdir(self.stage), [])
        self.assertIn("already exists", self.pack("up.leat", code=2))
        self.pack("up.leat", "--force", "--page-bytes", "128K")
        self.assertNotEqual(self.get("up.leat"), pathlib.Path(path("one.leat")).read_bytes())
        servers.signed("PUT", World.weed.port, f"/{BUCKET}/packs/photo.jpg", b"no pack at all")
        self.assertIn("is not a pack", self.pack("photo.jpg", "--force", code=2))
        self.assertEqual(self.get("photo.jpg"), b"no pack at all")

    def test_sets(self) -> None:
        self.pack("upset.leat", "--page-bytes", "128K", "--shard-bytes", "3M")
        leat("verify", remote("upset.leat"), env=self.env())
        self.assertEqual(digests(path("set.leat")), digests(remote("upset.leat"), env=self.env()))

    def test_broken_answers_to_writes(self) -> None:
        kinds = {k: 0.15 for k in ("drop", "reset", "error")}
        for method in ("PUT", "POST"):
            proxy = Proxy(World.weed.port, seed=11, **kinds)
            proxy.method = method
            self.pack(f"broken-{method}.leat", "--page-bytes", "256K", port=proxy.port)
            proxy.stop()
            self.assertEqual(self.get(f"broken-{method}.leat"), pathlib.Path(path("one.leat")).read_bytes())

    def test_killed_and_resumed(self) -> None:
        proxy = Proxy(World.weed.port, latency=0.02)
        command = [LEAT, "pack", self.images, "-o", remote("killed.leat"), "--images", "keep", "-q",
                   "--page-bytes", "256K", "--resume"]
        for i in range(12):
            child = subprocess.Popen(command, env=self.env(proxy.port), stderr=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL)
            try:
                child.wait(0.02 + 0.04 * i)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        # The server may still finish what a killed run asked for: then the last run finds the whole pack.
        last = subprocess.run(command, env=self.env(proxy.port), capture_output=True, text=True, timeout=300)
        if last.returncode != 0:
            self.assertIn("killed.leat: already exists", last.stderr)
        proxy.stop()
        self.assertEqual(self.get("killed.leat"), pathlib.Path(path("one.leat")).read_bytes())

    def test_export_to_a_bucket(self) -> None:
        keys = path("keys.txt")
        pathlib.Path(keys).write_text("class0/0000.png\nclass1/0001.png\n")
        out = f"s3://{BUCKET}/out"
        leat("export", path("one.leat"), "-o", out, "--keys", keys, env=self.env())
        self.assertEqual(servers.signed("GET", World.weed.port, f"/{BUCKET}/out/class1/0001.png"), png(1, 97))
        self.assertFalse(os.path.exists("s3:"))
        self.assertIn("already exists", leat("export", path("one.leat"), "-o", out, "--keys", keys,
                                             env=self.env(), code=4))


class DiskCache(unittest.TestCase):
    """Pages of a remote pack cached in a folder."""
    ARGS = ("--order", "quasi_random", "--epochs", "2")

    def setUp(self) -> None:
        self.dir = tempfile.mkdtemp(dir=World.dir)
        self.env = environment(World.weed.port)
        self.right = digests(path("set.leat"), *self.ARGS)

    def run_cached(self, *more: str) -> list[dict]:
        out = load(remote("set.leat"), *self.ARGS, "--cache", f"disk:{self.dir}", *more, env=self.env)
        self.assertEqual([epoch["digest"] for epoch in out], self.right)
        return out

    def data_file(self) -> str:
        return os.path.join(self.dir, next(n for n in os.listdir(self.dir) if n.endswith(".data")))

    def test_the_second_epoch_and_run_read_nothing_remote(self) -> None:
        # with little memory, so that the pages are not cached there
        first = self.run_cached("--memory", "16M")
        self.assertGreater(first[0]["remote_bytes"], 0)
        self.assertEqual(first[1]["remote_bytes"], 0)
        for epoch in self.run_cached("--memory", "16M"):
            self.assertEqual((epoch["remote_bytes"], epoch["remote_requests"]), (0, 0))
            self.assertGreater(epoch["disk_cache_hits"], 0)

    def test_pages_of_another_subset_make_room(self) -> None:
        limit = str(os.path.getsize(path("one.leat")) // 2)
        for name, classes in (("first", "01"), ("second", "34")):
            keys = [f"class{i % 5}/{i:04}.png" for i in range(IMAGES) if str(i % 5) in classes]
            pathlib.Path(path(name)).write_text("\n".join(keys) + "\n")

        def fetched(name: str) -> int:
            return load(remote("one.leat"), "--order", "quasi_random", "--keys", path(name), "--cache",
                        f"disk:{self.dir}", "--cache-bytes", limit, env=self.env)[0]["remote_bytes"]

        fetched("first")
        before = fetched("second")  # its pages replace those of the first subset, which filled the folder
        self.assertLess(fetched("second"), before / 4)

    def test_damaged_files_are_read_again(self) -> None:
        self.run_cached()
        size = os.path.getsize(self.data_file())
        with open(self.data_file(), "r+b") as f:
            for at in range(5000, size, 200_000):
                f.seek(at)
                f.write(b"damage!")
        again = self.run_cached()
        self.assertGreater(again[0]["remote_bytes"], 0)
        self.assertEqual(self.run_cached()[0]["remote_bytes"], 0)  # and repaired
        os.truncate(self.data_file(), size // 2)
        self.run_cached()

    def test_bounded(self) -> None:
        limit = 4 << 20
        self.run_cached("--cache-bytes", str(limit), "--memory", "16M")
        used = sum(os.stat(os.path.join(self.dir, n)).st_blocks * 512 for n in os.listdir(self.dir))
        self.assertLessEqual(used, limit)
        self.assertGreater(used, limit // 2)

    def test_processes_share_it_and_may_be_killed(self) -> None:
        command = [LEAT, "load", remote("set.leat"), "--batch", "16", "--size", "64", *self.ARGS, "--cache",
                   f"disk:{self.dir}", "--memory", "16M"]
        children = [subprocess.Popen(command + ["--seed", str(i)], env=self.env, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL) for i in range(4)]
        for i, child in enumerate(children):
            try:
                child.wait(0.1 + 0.15 * i)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        self.run_cached()
        self.run_cached("--memory", "16M")

    def test_a_page_is_fetched_once_per_machine(self) -> None:
        command = [LEAT, "load", remote("one.leat"), "--batch", "16", "--size", "64", "--order", "sequential",
                   "--cache", f"disk:{self.dir}", "--memory", "24M", "--json"]
        sizes, begin = [], time.monotonic()
        for _ in range(2):  # the second time everything is cached: only opening needs requests
            proxy = Proxy(World.weed.port, latency=0.02)
            children = [subprocess.Popen(command, env=environment(proxy.port), stdout=subprocess.PIPE)
                        for _ in range(4)]
            for child in children:
                child.communicate()
                self.assertEqual(child.returncode, 0)
            proxy.stop()
            sizes.append(proxy.bytes)
        # Without sharing it would be four times the pack. On a busy machine a process that waited 20 s for
        # another one's page fetches it itself.
        busy = time.monotonic() - begin > 20
        self.assertLess(sizes[0] - sizes[1], (3.9 if busy else 1.2) * os.path.getsize(path("one.leat")))

    def test_wrong_use(self) -> None:
        self.assertIn("is for remote packs", leat("load", path("one.leat"), "--cache", f"disk:{self.dir}", code=2))
        self.assertIn("disk:DIR", leat("load", remote("one.leat"), "--cache", "disk:", env=self.env, code=2))


class Others(unittest.TestCase):
    def test_http_with_ranges(self) -> None:
        filer = World.weed.filer
        url = f"http://127.0.0.1:{filer}/buckets/{BUCKET}/packs/set.leat"
        env = environment(1)
        self.assertEqual(digests(path("set.leat")), digests(url, env=env))
        leat("verify", url, env=env)
        # the part after '?' may be a signature: it is not shown
        text = leat("info", url.replace("set", "none") + "?X-Amz-Signature=do-not-show", env=env, code=4)
        self.assertNotIn("do-not-show", text)

    def test_http_without_ranges(self) -> None:
        class Quiet(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *args: object) -> None:
                super().__init__(*args, directory=World.dir)  # type: ignore[arg-type]

            def log_message(self, *args: object) -> None:
                pass
        web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
        web.handle_error = lambda *args: None  # type: ignore[method-assign]
        threading.Thread(target=web.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{web.server_port}/one.leat"
        text = leat("info", url, env=environment(1), code=2)
        web.shutdown()
        web.server_close()
        self.assertIn("byte ranges", text)

    def odd_server(self, change) -> "tuple[dict[str, str], list[str]]":
        """The environment of a server that has one.leat under every name; `change(count, first, last, size)` gives the status and
        Content-Range of each answer, and the seconds for which it stops in the middle of its body. And the list of the paths it was asked for."""
        data, seen = pathlib.Path(path("one.leat")).read_bytes(), []

        class Odd(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                seen.append(self.path)
                low, high = self.headers["Range"].removeprefix("bytes=").split("-")
                first = int(low) if low else max(0, len(data) - int(high))
                last = min(int(high), len(data) - 1) if low else len(data) - 1
                status, where, *pause = change(len(seen), first, last, len(data))
                body = data[first:last + 1] if status == 206 else data
                self.send_response(status)
                if where:
                    self.send_header("Content-Range", where)
                self.send_header("ETag", '"1"')
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if any(pause):
                    self.wfile.write(body[:len(body) // 2])
                    self.wfile.flush()
                    time.sleep(pause[0])
                    self.close_connection = True
                    return
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                pass
        web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Odd)
        web.daemon_threads = True
        web.handle_error = lambda *args: None  # type: ignore[method-assign]
        threading.Thread(target=web.serve_forever, daemon=True).start()
        self.addCleanup(web.server_close)
        self.addCleanup(web.shutdown)
        return environment(web.server_port, LEAT_REMOTE_TRIES="2"), seen

    def test_keys_with_dots_between_slashes(self) -> None:
        env, seen = self.odd_server(lambda count, first, last, size: (206, f"bytes {first}-{last}/{size}"))
        leat("info", "s3://b/a/../c/./one.leat", env=env)
        self.assertEqual(set(seen), {"/b/a/../c/./one.leat"})

    def test_odd_content_ranges_are_told(self) -> None:
        for where in ("bytes {0}-{1}/-5", "bytes {0}-{1}/*", "bytes abc", "bytes {1}-{0}/{2}", ""):
            with self.subTest(where=where):
                env, _ = self.odd_server(lambda count, *numbers: (206, where.format(*numbers)))
                self.assertIn("Content-Range", leat("info", "s3://b/one.leat", env=env, code=4))

    def test_a_server_that_stops_answering_ranges(self) -> None:
        env, _ = self.odd_server(lambda count, first, last, size:
                                 (206, f"bytes {first}-{last}/{size}") if count < 5 else (200, ""))
        text = leat("load", "s3://b/one.leat", "--batch", "16", "--size", "64", env=env, code=4)
        self.assertIn("another range", text)

    def test_ctrl_c_while_a_pack_is_opened(self) -> None:
        class Busy(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.set()
                self.send_response(503)
                self.send_header("Retry-After", "100000")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args: object) -> None:
                pass
        asked = threading.Event()
        web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Busy)
        threading.Thread(target=web.serve_forever, daemon=True).start()
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            asked.clear()
            child = subprocess.Popen([LEAT, "info", "s3://b/one.leat"], env=environment(web.server_port),
                                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            try:
                self.assertTrue(asked.wait(60))
                time.sleep(0.2)
                child.send_signal(number)
                said = child.communicate(timeout=20)[1]  # without it, the next attempt is after 30 s
                self.assertEqual(child.returncode, code)
                self.assertEqual(said, "leat info: s3://b/one.leat: interrupted while waiting for the server\n")
            finally:
                child.kill()
        web.shutdown()
        web.server_close()

    def test_settings_that_make_no_sense(self) -> None:
        for name, value in (("TRIES", "abc"), ("CONNECTIONS", "0"), ("STALL_S", "-1"), ("HEDGE", "maybe")):
            text = leat("info", remote("one.leat"), env=environment(World.weed.port, **{f"LEAT_REMOTE_{name}": value}), code=2)
            self.assertIn(f"LEAT_REMOTE_{name}: '{value}'", text)

    def test_a_body_that_stops_is_given_up_in_time(self) -> None:
        times = []

        def stop_once(count: int, first: int, last: int, size: int) -> tuple:
            times.append(time.monotonic())
            return 206, f"bytes {first}-{last}/{size}", 15 if count == 4 else 0
        env, _ = self.odd_server(stop_once)
        env.update(LEAT_REMOTE_STALL_S="1", LEAT_REMOTE_HEDGE="0", LEAT_REMOTE_CONNECTIONS="1")
        self.assertEqual(digests(path("one.leat"), "--order", "sequential"),
                         digests("s3://b/one.leat", "--order", "sequential", env=env))
        self.assertLess(times[4] - times[3], 6)  # 7 where libcurl judges by the mean of the last seconds

    @unittest.skipIf(servers.program("rclone") is None, "rclone is not installed")
    def test_a_server_that_answers_ranges_with_200(self) -> None:
        folder = path("rclone")
        os.makedirs(os.path.join(folder, BUCKET, "packs"))
        for name in os.listdir(World.dir):
            if name.endswith(".leat"):
                shutil.copy(path(name), os.path.join(folder, BUCKET, "packs"))
        server = servers.Rclone(folder)
        try:
            env = environment(server.port)
            for order in ("sequential", "quasi_random"):
                args = ("--order", order)
                self.assertEqual(digests(path("set.leat"), *args), digests(remote("set.leat"), *args, env=env))
            leat("verify", remote("one.leat"), env=env)
        finally:
            server.stop()


if __name__ == "__main__":
    if servers.program("weed") is None:
        print("skipped: no S3 server (SeaweedFS): scripts/setup.sh python installs it into .venv")
        sys.exit(servers.SKIP)
    unittest.main()
