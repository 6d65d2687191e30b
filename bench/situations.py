#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stages situations with a known cause, asks the doctor, and applies its advice.

    bench/situations.py --leat build-release/tools/leat [--python site] [--work DIR] [NAME...]

One row per situation: the staged cause, the doctor's verdict and confidence, the gain it predicted for one remedy,
and the measured gain when the cause was really removed. A verdict that names another limit with a confidence of 0.6
or more is "wrong and sure" and fails the run; so does an answer after 2 x --seconds + 5 s. Where a process that was not
staged took CPUs meanwhile, the situation is staged once more, in case that was a passing one. All data is made here
(Pillow and NumPy). Situations of Python loaders run in a separate child process, with the package found in --python.
Needs Linux; root for control groups (quota, memory, throttled disks): situations that cannot be staged are reported
and skipped. --nice -15 gives the runs priority on a busy machine.
"""
import argparse
import collections
import contextlib
import json
import os
import re
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time

from doctor_situations import SURE, device_of, evict, floor_of, group, hogs, hurry

HEAVY = "RandomResizedCrop(224); ColorJitter(0.4, 0.4, 0.4, 0.2); GaussianBlur(23); RandAugment()"
FAST = ["--batch", "64", "--step-ms", "4"]
HERE = os.path.dirname(os.path.abspath(__file__))


# ---- data ----------------------------------------------------------------------------------------


def photo(size, seed, noise=14):
    """Smooth colours and noise: about as many bytes as a photograph."""
    import numpy
    from PIL import Image, ImageFilter
    rng = numpy.random.default_rng(seed)
    width, height = size
    small = rng.integers(0, 255, (height // 16 + 1, width // 16 + 1, 3), dtype=numpy.uint8)
    pixels = numpy.asarray(Image.fromarray(small).resize(size, Image.BICUBIC)).astype(numpy.int16)
    grain = rng.normal(0, noise, (256, 256, 3)).astype(numpy.int16)
    pixels = pixels + numpy.tile(grain, (height // 256 + 1, width // 256 + 1, 1))[:height, :width]
    return Image.fromarray(pixels.clip(0, 255).astype(numpy.uint8)).filter(ImageFilter.GaussianBlur(0.6))


class Data:
    """Folders of images and packs of them, made once and kept."""

    def __init__(self, leat, work):
        self.leat, self.work = leat, os.path.abspath(work)
        os.makedirs(work, exist_ok=True)

    def folder(self, name, sizes, count, kind="jpg", **save):
        path = os.path.join(self.work, name)
        if not os.path.exists(path):
            os.makedirs(path + ".tmp/a")
            for i in range(count):
                photo(sizes[i % len(sizes)], i).save(f"{path}.tmp/a/{i:04}.{kind}", **save)
            os.rename(path + ".tmp", path)
        return path

    def photos(self):
        return self.folder("photos", [(500, 375), (375, 500), (500, 333), (640, 480)], 200, quality=88)

    def many_photos(self):
        """More than a situation reads: none is read twice."""
        return self.folder("many_photos", [(640, 480), (480, 640)], 600, quality=92)

    def pack(self, name, source, times=1, flags=()):
        """A pack of the folder, each image `times` times."""
        out = os.path.join(self.work, name + ".leat")
        if not os.path.exists(out):
            manifest = os.path.join(self.work, name + ".csv")
            files = sorted(os.path.join(r, f) for r, _, fs in os.walk(source) for f in fs)
            with open(manifest, "w", encoding="utf-8") as f:
                f.write("path,key\n" + "".join(f"{p},{c}-{os.path.basename(p)}\n" for c in range(times) for p in files))
            subprocess.run([self.leat, "pack", manifest, "-o", out, "--quiet", *flags], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return out

    def keep(self):
        return self.pack("keep", self.photos(), 10, ["--images", "keep"])

    def tiled(self):
        return self.pack("tiled", self.photos(), 10, ["--images", "tiled"])

    def raw(self):
        return self.pack("raw", self.photos(), 4, ["--images", "raw", "--max-side", "256"])

    def huge(self):
        return self.pack("huge", self.folder("huge", [(5184, 3888)], 4, quality=85), 15, ["--images", "keep"])

    def png(self):
        return self.pack("png", self.folder("png", [(512, 384)], 60, "png"), 8, ["--images", "keep"])

    def webp(self):
        return self.pack("webp", self.folder("webp", [(512, 384)], 60, "webp", quality=85), 10, ["--images", "keep"])

    def mix(self):
        return self.pack("mix", self.photos(), 6, ["--images", "mix", "--mix-raw", "0.3"])

    def tiny(self):
        return self.pack("tiny", self.folder("tiny", [(32, 32)], 500, "png"), 20, ["--images", "raw"])


# ---- staging -------------------------------------------------------------------------------------


@contextlib.contextmanager
def groups(*wanted):
    """Several control groups (version 1); processes join all of them."""
    with contextlib.ExitStack() as stack:
        yield {"join": [stack.enter_context(group(f"/sys/fs/cgroup/{c}", s))["join"] for c, s in wanted]}


def quota(cpus):
    return groups(("cpu", {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": str(int(cpus * 1e5)),
                           "cpu.shares": "200000"}))


@contextlib.contextmanager
def disk(pack, device, reads=0, bytes_per_s=0, memory=0):
    """A pack that is not in memory, on a disk with a limit."""
    wanted = []
    if reads:
        wanted.append(("blkio", {"blkio.throttle.read_iops_device": f"{device} {reads}"}))
    if bytes_per_s:
        wanted.append(("blkio", {"blkio.throttle.read_bps_device": f"{device} {bytes_per_s}"}))
    if memory:
        wanted.append(("memory", {"memory.limit_in_bytes": str(memory)}))
    evict(pack)
    with groups(*wanted) as how:
        yield dict(how, cold=True)


@contextlib.contextmanager
def shells(count):
    """Busy processes with the same priority as the run."""
    with hogs(count):
        yield {"hurry": False}


@contextlib.contextmanager
def inject(pack, rule):
    yield {"env": {"LEAT_IO_INJECT": f"path={os.path.basename(pack)},{rule}"}}


@contextlib.contextmanager
def web(pack, delay=0.0, bytes_per_s=0.0, answers=0.0, refuse=0.0):
    """A web server that answers ranges of one file: late, slowly, limited to a rate, or refusing more than a rate."""
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
    size, line, busy, queue = os.path.getsize(pack), threading.Lock(), [0.0], collections.deque()

    def gone(client):
        """The client has closed its connection: a real line carries nothing for it any more."""
        with contextlib.suppress(OSError):
            return bool(select.select([client], [], [], 0)[0]) and client.recv(1, socket.MSG_PEEK) == b""
        return True

    def book(seconds, client):
        """Waits for its turn in the one line that all answers stand in, and takes its time there."""
        turn = threading.Event()
        with line:
            queue.append(turn)
            if queue[0] is turn:
                turn.set()
        turn.wait()
        busy[0] = max(busy[0], time.monotonic()) + (0 if gone(client) else seconds)
        while (wait := busy[0] - time.monotonic()) > 0:
            if gone(client):
                busy[0] = time.monotonic()
            else:
                time.sleep(min(wait, 0.05))
        with line:
            queue.popleft()
            if queue:
                queue[0].set()

    def too_many():
        with line:
            now = time.monotonic()
            if busy[0] > now + 0.1:  # a tenth of a second ahead of its allowance
                return True
            busy[0] = max(busy[0], now) + 1 / refuse
            return False

    class Answer(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_HEAD(self):
            self.send(False)

        def do_GET(self):
            self.send(True)

        def send(self, body):
            time.sleep(delay)
            if answers:
                book(1 / answers, self.connection)
            if refuse and body and too_many():
                self.send_response(503)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            m = re.match(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
            first = 0 if not m else int(m[1]) if m[1] else size - int(m[2])
            last = min(int(m[2]), size - 1) if m and m[1] and m[2] else size - 1
            if body and bytes_per_s:
                book((last - first + 1) / bytes_per_s, self.connection)
            self.send_response(206 if m else 200)
            self.send_header("Content-Length", str(last - first + 1))
            self.send_header("Accept-Ranges", "bytes")
            self.send_header("ETag", '"1"')
            if m:
                self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
            self.end_headers()
            if body:
                with open(pack, "rb") as f, contextlib.suppress(OSError):
                    f.seek(first)
                    self.wfile.write(f.read(last - first + 1))

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 256

        def handle_error(self, *_):
            pass

    server = Quiet(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield {"pack": f"http://127.0.0.1:{server.server_port}/{os.path.basename(pack)}"}
    finally:
        server.shutdown()


# ---- asking --------------------------------------------------------------------------------------


class Asker:
    def __init__(self, o):
        self.o, self.leat = o, os.path.abspath(o.leat)

    def run(self, command, how, timeout):
        def enter():
            if self.o.nice and how.get("hurry", True):
                hurry(self.o.nice)
            for path in how.get("join", []):
                with open(f"{path}/cgroup.procs", "w", encoding="ascii") as f:
                    f.write(str(os.getpid()))
        env = dict(os.environ, **how.get("env", {}))
        begin = time.monotonic()
        done = subprocess.run([*how.get("prefix", []), *command], capture_output=True, text=True, env=env,
                              preexec_fn=enter, check=False, timeout=timeout)
        if done.returncode not in (0, 1) or not done.stdout:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()[-400:]}")
        return done.stdout, time.monotonic() - begin

    def doctor(self, pack, flags, how):
        out, took = self.run([self.leat, "doctor", how.get("pack", pack), "--json", "--seconds", str(self.o.seconds),
                              *flags], how, 10 * self.o.seconds + 60)
        return dict(json.loads(out.splitlines()[0]), took=took, ceiling=2 * self.o.seconds + 5)

    def rate(self, pack, flags, how):
        """Samples per second: of one epoch of a cold pack, which is warm afterwards; else of --each seconds after one epoch."""
        command = [self.leat, "load", how.get("pack", pack), "--json", *flags]
        first = json.loads(self.run(command, how, 300)[0].splitlines()[-1])
        if how.get("cold"):
            return first["samples_per_s"]
        epochs = min(2000, 1 + max(1, round(self.o.each / first["seconds"])))
        out = [json.loads(line) for line in self.run([*command, "--epochs", str(epochs)], how, 300)[0].splitlines()[1:]]
        return sum(e["samples"] for e in out) / sum(e["seconds"] for e in out)

    def child(self, name, lifted=False, how=None):
        """A situation of a Python loader, in a separate process."""
        env = dict(os.environ)
        if self.o.python:
            env["PYTHONPATH"] = os.path.abspath(self.o.python)
        command = [self.o.interpreter, os.path.join(HERE, "situations_python.py"), name, "--work", self.o.work,
                   "--leat", self.leat, *(["--lifted"] if lifted else [])]
        out, took = self.run(command, dict(how or {}, env=env), 240)
        return dict(json.loads(out.splitlines()[-1]), took=took, ceiling=None)


class Row:
    """A situation of `leat doctor`: `lift` has other flags, or another staging, without the cause. A stage may add "flags"."""

    def __init__(self, name, true, limit, causes, pack, flags, stage=contextlib.nullcontext, remedy=None, lift=None,
                 lift_stage=None):
        self.name, self.true, self.limit, self.causes = name, true, limit, causes
        self.pack, self.flags, self.stage, self.remedy = pack, flags, stage, remedy
        self.lift, self.lift_stage = lift, lift_stage

    def ask(self, asker):
        pack = self.pack()
        with self.stage() as how:
            return asker.doctor(pack, [*self.flags, *(how or {}).get("flags", [])], how or {})

    def real(self, asker):
        if self.lift is None and self.lift_stage is None:
            return None
        pack = self.pack()
        with self.stage() as how:
            before = asker.rate(pack, self.flags, how or {})
        with (self.lift_stage or self.stage)() as how:
            after = asker.rate((self.lift or {}).get("pack", self.pack)(), (self.lift or {}).get("flags", self.flags),
                               how or {})
        return after / before


class PythonRow:
    """A situation of a Python loader: situations_python.py stages it."""

    def __init__(self, name, true, limit, causes, remedy=None, stage=contextlib.nullcontext):
        self.name, self.true, self.limit, self.causes, self.remedy = name, true, limit, causes, remedy
        self.stage = stage

    def ask(self, asker):
        with self.stage() as how:
            return asker.child(self.name, how=how)

    def real(self, asker):
        if self.remedy is None:
            return None
        before = asker.child(self.name)["facts"]["samples_per_s"]
        return asker.child(self.name, True)["facts"]["samples_per_s"] / before


def cli_rows(data, device, cpus):
    keep, tiled, fast = data.keep, data.tiled, FAST
    none = contextlib.nullcontext
    one = lambda: contextlib.nullcontext({"prefix": ["taskset", "-c", "0"]})
    yield Row("JPEG decode", "plain JPEGs, a 4 ms step", "cpu", {"decode"}, keep, fast,
              remedy="images tiled", lift={"pack": tiled})
    yield Row("one core", "taskset to one of the machine's CPUs", "cpu", {"few_cpus"}, keep, fast, one,
              "affinity", lift_stage=none)
    yield Row("quota 0.6", "a cgroup's quota of 0.6 CPUs", "cpu", {"quota"}, keep, fast, lambda: quota(0.6),
              "quota", lift_stage=lambda: quota(1.2))
    yield Row("busy shells", "three busy processes", "cpu", {"other_processes"}, keep, fast, lambda: shells(3),
              "CPUs back", lift_stage=lambda: contextlib.nullcontext({"hurry": False}))
    yield Row("slow disk", "30 MB/s, cold", "io", {"cold_cache"}, tiled, fast,
              lambda: disk(tiled(), device, bytes_per_s=30_000_000), "page cache", lift_stage=none)
    yield Row("few reads", "250 reads/s, cold", "io", {"request_rate"}, tiled, ["--batch", "32", "--step-ms", "4"],
              lambda: disk(tiled(), device, reads=250), "order=quasi_random",
              lift={"flags": ["--batch", "32", "--step-ms", "4", "--order", "quasi_random"]})
    yield Row("memory group", "a cgroup of 120 MB, 40 MB/s", "io", {"memory_limit"}, tiled,
              ["--batch", "32", "--step-ms", "4"],
              lambda: disk(tiled(), device, bytes_per_s=40_000_000, memory=120 << 20), "memory limit")
    budget = ["--batch", "64", "--size", "320", "--dtype", "f32"]
    least = int(1.05 * floor_of(data.leat, tiled(), budget))
    yield Row("small budget", "--memory just above the least, batches of 79 MB", "memory", {"budget"}, tiled,
              [*budget, "--step-ms", "4", "--memory", str(least)], none, "budget of",
              lift={"flags": [*budget, "--step-ms", "4", "--memory", str(4 * least)]})
    yield Row("slow trainer", "a step of 250 ms", "trainer", {"trainer"}, tiled, ["--batch", "64", "--step-ms", "250"])
    yield Row("batches of 2", "32 x 32 pixels, no step time", "delivery", {"small_batches"}, data.tiny,
              ["--batch", "2", "--ops", "Resize((32, 32))"], none, "batches of 32",
              lift={"flags": ["--batch", "32", "--ops", "Resize((32, 32))"]})
    yield Row("20 megapixels", "JPEGs of 5184 x 3888", "cpu", {"large_images"}, data.huge,
              ["--batch", "16", "--step-ms", "5"])
    yield Row("heavy augmentation", "jitter, blur, RandAugment", "cpu", {"augment"}, tiled, [*fast, "--ops", HEAVY],
              none, "behind the crop", lift={"flags": [*fast, "--ops", "RandomResizedCrop(224)"]})
    yield Row("one thread", "--threads 1", "cpu", {"few_threads"}, keep, [*fast, "--threads", "1"], none,
              f"threads={cpus}", lift={"flags": fast})
    # designed from the documentation alone
    yield Row("PNG", "photographs stored as PNG", "cpu", {"png"}, data.png, ["--batch", "32", "--step-ms", "4"])
    yield Row("WebP", "photographs stored as WebP", "cpu", {"decode"}, data.webp, ["--batch", "32", "--step-ms", "4"])
    yield Row("late disk", "25 ms a read, 4 in flight", "io", {"latency", "bandwidth"}, tiled,
              [*fast, "--io-depth", "4"], lambda: inject(tiled(), "delay=25ms"), "io-depth=64",
              lift={"flags": [*fast, "--io-depth", "64"]})
    yield Row("quota 1.2", "a cgroup's quota of 1.2 CPUs", "cpu", {"quota"}, keep, fast, lambda: quota(1.2),
              "quota", lift_stage=none)
    yield Row("slow trainer, busy machine", "a step of 300 ms and three busy processes", "trainer", {"trainer"}, tiled,
              ["--batch", "64", "--step-ms", "300"], lambda: hogs(3))
    yield Row("cold, but enough", "cold, the disk unlimited, a step of 200 ms", "trainer", {"trainer"}, tiled,
              ["--batch", "32", "--step-ms", "200"], lambda: disk(tiled(), device))
    yield Row("sequential, slow disk", "20 MB/s, cold, --order sequential", "io", {"cold_cache", "bandwidth"}, tiled,
              [*fast, "--order", "sequential"], lambda: disk(tiled(), device, bytes_per_s=20_000_000))
    yield Row("pixels, slow disk", "raw pixels at 60 MB/s, cold", "io", {"cold_cache"}, data.raw, fast,
              lambda: disk(data.raw(), device, bytes_per_s=60_000_000))
    yield Row("web server, slow", "8 MB/s over HTTP", "io", {"bandwidth"}, tiled,
              ["--batch", "16", "--step-ms", "4"], lambda: web(tiled(), 0.005, 8e6), "disk:DIR")
    yield Row("web server, late", "500 ms an answer", "io", {"latency"}, tiled,
              ["--batch", "16", "--step-ms", "1"], lambda: web(tiled(), 0.5), "in flight")
    yield Row("web server, few answers", "40 answers a second", "io", {"request_rate"}, tiled,
              ["--batch", "16", "--step-ms", "1"], lambda: web(tiled(), 0.002, answers=40), "quasi_random")
    yield Row("web server, refuses", "503 for more than 60 requests a second", "io", {"throttling"}, tiled,
              ["--batch", "16", "--step-ms", "1"], lambda: web(tiled(), 0.002, refuse=60), "quasi_random")
    yield Row("quick trainer, tiny images", "32 x 32 pixels, batches of 1", "delivery", {"small_batches"}, data.tiny,
              ["--batch", "1", "--step-ms", "0.001", "--ops", "Resize((32, 32))"])


@contextlib.contextmanager
def empty_cache(stage, work):
    """The stage, and a disk cache without pages."""
    with tempfile.TemporaryDirectory(dir=work) as folder, stage as how:
        yield dict(how, flags=["--cache", f"disk:{folder}"])


@contextlib.contextmanager
def warm_disk(pack, device, bytes_per_s):
    """A slow disk without reads: the pack is in memory."""
    with open(pack, "rb") as f:
        while f.read(1 << 22):
            pass
    with groups(("blkio", {"blkio.throttle.read_bps_device": f"{device} {bytes_per_s}"})) as how:
        yield how


def more_rows(data, device):
    """Designed from the documentation alone, later than the others; half of them are harmless."""
    keep, tiled, fast, slow = data.keep, data.tiled, FAST, ["--batch", "64", "--step-ms", "300"]
    yield Row("half pixels", "a mixed pack, a 2 ms step", "cpu", {"decode"}, data.mix, ["--batch", "64", "--step-ms", "2"])
    yield Row("quota, but enough", "a quota of 1 CPU, a step of 300 ms", "trainer", {"trainer"}, tiled, slow,
              lambda: quota(1.0))
    yield Row("one thread, but enough", "--threads 1, a step of 300 ms", "trainer", {"trainer"}, tiled,
              [*slow, "--threads", "1"])
    yield Row("slow disk, in memory", "20 MB/s, but the pack is in the page cache", "cpu", {"decode"}, keep, fast,
              lambda: warm_disk(keep(), device, 20_000_000))
    yield Row("few reads, but pages", "250 reads/s, cold, --order quasi_random, a step of 400 ms", "trainer", {"trainer"},
              tiled, ["--batch", "64", "--step-ms", "400", "--order", "quasi_random"],
              lambda: disk(tiled(), device, reads=250))
    yield Row("memory group, but enough", "a cgroup of 700 MB", "cpu", {"decode"}, keep, fast,
              lambda: groups(("memory", {"memory.limit_in_bytes": str(700 << 20)})))
    yield Row("blur of pixels", "raw pixels, GaussianBlur(23)", "cpu", {"augment"}, data.raw,
              [*fast, "--ops", "RandomResizedCrop(224); GaussianBlur(23)"])
    yield Row("PNG, slow disk", "PNG at 5 MB/s, cold", "io", {"cold_cache"}, data.png, ["--batch", "16", "--step-ms", "4"],
              lambda: disk(data.png(), device, bytes_per_s=5_000_000))
    yield Row("late, sequential", "100 ms a read, 2 in flight, --order sequential", "io", {"latency", "bandwidth"}, keep,
              [*fast, "--order", "sequential", "--io-depth", "2"], lambda: inject(keep(), "delay=100ms"))
    yield Row("web server, but enough", "20 ms an answer, a step of 700 ms", "trainer", {"trainer"}, tiled,
              ["--batch", "16", "--step-ms", "700"], lambda: web(tiled(), 0.02))
    large = lambda: data.pack("large", data.photos(), 2, ["--images", "raw"])
    yield Row("web server, small budget", "20 MB/s over HTTP, which fills a budget of 60 MB", "io", {"bandwidth"}, large,
              ["--batch", "16", "--step-ms", "20", "--memory", "60M"], lambda: web(large(), 0.0, 20e6))
    yield Row("web server, late and full", "50 ms an answer, 30 MB/s over HTTP", "io", {"bandwidth"}, keep,
              ["--batch", "32", "--step-ms", "40"], lambda: web(keep(), 0.05, 30e6))
    yield Row("web server, disk cache, small budget", "50 ms an answer, an empty disk cache, a budget of 100 MB", "io", {"latency"},
              tiled, ["--batch", "32", "--step-ms", "20", "--memory", "100M"], lambda: empty_cache(web(tiled(), 0.05), data.work))
    yield Row("web server, no step in time", "2 MB/s over HTTP: the first batch comes late", "io", {"bandwidth"}, large,
              ["--batch", "64", "--step-ms", "20"], lambda: web(large(), 0.0, 2e6))
    yield Row("huge images, slow disk", "20 megapixels at 3 MB/s, cold", "io", {"cold_cache"}, data.huge,
              ["--batch", "4", "--step-ms", "5"], lambda: disk(data.huge(), device, bytes_per_s=3_000_000))


def more_python_rows():
    yield PythonRow("short epochs, in memory", "320 tiny images, 10 batches per epoch, 0.1 ms of training", "delivery",
                    {"short_epochs"})
    yield PythonRow("light step, in memory", "320 tiled images drawn 32,000 times, a step of 0.3 ms", "cpu", {"decode"})
    yield PythonRow("short transform", "transform= is busy for 1 ms, a step of 80 ms", "trainer", {"trainer"})
    yield PythonRow("transform, one thread", "transform= is busy for 50 ms, threads=1", "python", {"transform"})
    yield PythonRow("transform, diagnosed", "transform= waits for 50 ms, asked of leat.diagnose", "python", {"transform"},
                    "transform=")
    yield PythonRow("iterable: waits", "a generator that sleeps for 30 ms a batch", "io",
                    {"latency", "bandwidth", "worker_time", "fetch"})
    yield PythonRow("DataLoader: iterable", "an IterableDataset of busy Python, 2 workers", "cpu", {"worker_time"})
    yield PythonRow("DataLoader: PNG", "PNG files by Pillow, 2 workers", "cpu", {"decode", "png"})
    yield PythonRow("DataLoader: one worker", "JPEG, 1 worker on all CPUs", "cpu", {"few_threads"})
    yield PythonRow("DataLoader: busy, but enough", "2 ms of Python a sample, a step of 300 ms", "trainer", {"trainer"})
    yield PythonRow("DataLoader: NumPy", "a sort of a large array in __getitem__", "cpu", {"python_code", "worker_time"})
    yield PythonRow("DataLoader: many objects", "a list of 4,000 numbers a sample, kept as lists", "cpu",
                    {"transfer", "collate", "worker_time"})


@contextlib.contextmanager
def files_on_disk(folder, device, bytes_per_s):
    """Files that are not in memory, on a slow disk."""
    for root, _, names in os.walk(folder):
        for name in names:
            evict(os.path.join(root, name))
    with groups(("blkio", {"blkio.throttle.read_bps_device": f"{device} {bytes_per_s}"})) as how:
        yield how


def python_rows(data, device):
    yield PythonRow("bursty trainer", "10 ms steps, a pause of 400 ms now and then", "trainer", {"trainer"})
    yield PythonRow("second loader", "another leat loader of this process", "cpu", {"other_loader"}, "other loaders")
    yield PythonRow("Python loop", "the training loop is busy for 50 ms", "trainer", {"trainer"})
    yield PythonRow("matmul", "the step multiplies on all CPUs", "trainer", {"trainer"})
    yield PythonRow("affinity", "sched_setaffinity in the process", "cpu", {"few_cpus"})
    yield PythonRow("transform", "transform= is busy for 60 ms", "python", {"transform"}, "transform=")
    yield PythonRow("transform sleeps", "transform= waits for 40 ms", "python", {"transform"}, "transform=")
    yield PythonRow("DataLoader: late samples", "8 ms a sample, 2 workers", "io", {"latency"}, "num_workers=")
    yield PythonRow("DataLoader: slow disk", "JPEG files at 4 MB/s, cold, 2 workers", "io", {"bandwidth", "cold_cache"},
                    stage=lambda: files_on_disk(data.many_photos(), device, 4_000_000))
    yield PythonRow("DataLoader: Python code", "busy Python in __getitem__", "cpu", {"python_code", "worker_time"})
    yield PythonRow("DataLoader: collate", "collate_fn is busy, 2 workers", "cpu", {"collate", "worker_time"})
    yield PythonRow("DataLoader: collate waits", "collate_fn sleeps 50 ms, 2 workers", "cpu", {"collate"})
    yield PythonRow("DataLoader: collate waits, no workers", "collate_fn sleeps 50 ms, 0 workers", "cpu", {"collate"})
    yield PythonRow("DataLoader: collate, no workers", "collate_fn is busy, 0 workers", "cpu",
                    {"few_threads", "collate"})
    yield PythonRow("DataLoader: JPEG, no workers", "Pillow, 0 workers", "cpu", {"few_threads"}, "num_workers=")
    yield PythonRow("DataLoader: slow model", "a step of 400 ms", "trainer", {"trainer"})
    yield PythonRow("DataLoader: busy step", "a step of 50 ms of Python", "trainer", {"trainer"})
    yield PythonRow("DataLoader: large tensors", "20 MB a batch, no work", "cpu", {"transfer", "worker_time", "collate"})
    yield PythonRow("DataLoader: blur", "augmentation by Pillow", "cpu", {"augment", "worker_time"})


# ---- the table -----------------------------------------------------------------------------------


def predicted(v, words):
    """The gain of the remedy with this text, and whether it is an estimate."""
    for r in v["remedies"]:
        if words in r["action"] or words in (r["set"] or ""):
            return r["gain"], r["basis"] != "measured"
    return None


def cell(gain, guess=False):
    return "" if gain is None else f"{gain:.2f}{' (guess)' if guess else ''}"


def disturbed(row, v):
    """Another process took CPUs, and none was staged to."""
    return v["cause"] == "other_processes" and "other_processes" not in row.causes


def judge(row, v):
    right = v["limit"] == row.limit and v["cause"] in row.causes
    late = v["ceiling"] is not None and v["took"] > v["ceiling"]
    vague = v["limit"] == row.limit and not right
    sure = v["confidence"] >= SURE
    word = "LATE" if late else "yes" if right else "limit only" if vague else "wrong, sure" if sure else "wrong"
    return word, right and not late


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--leat", required=True)
    args.add_argument("--python", help="a folder with the Python package; without it those situations are left out")
    args.add_argument("--interpreter", default=sys.executable, help="the Python that can import it, torch and Pillow")
    args.add_argument("--work", default="situations")
    args.add_argument("--seconds", type=float, default=6)
    args.add_argument("--nice", type=int, default=0)
    args.add_argument("--real", action="store_true", help="also lift each cause, for the real gain")
    args.add_argument("--each", type=float, default=3, help="seconds of each run of --real")
    args.add_argument("--json", help="append all verdicts here")
    args.add_argument("names", nargs="*")
    o = args.parse_args()
    asker, data = Asker(o), Data(os.path.abspath(o.leat), o.work)
    device = device_of(data.work)
    rows = [*cli_rows(data, device, len(os.sched_getaffinity(0))), *more_rows(data, device),
            *([*python_rows(data, device), *more_python_rows()] if o.python else [])]
    counts = {}
    print("| situation | true cause | doctor says | sure | predicted | real | s | right |\n|" + "---|" * 8)
    for row in rows:
        if o.names and row.name not in o.names:
            continue
        try:
            v = row.ask(asker)
            if disturbed(row, v):
                v = row.ask(asker)
            real = row.real(asker) if o.real else None
        except (OSError, subprocess.TimeoutExpired, RuntimeError) as e:
            print(f"| {row.name} | {row.true} | not staged: {str(e)[-120:]} | | | | | |", flush=True)
            continue
        word, right = judge(row, v)
        counts[word] = counts.get(word, 0) + 1
        gain = predicted(v, row.remedy) if row.remedy else None
        print(f"| {row.name} | {row.true} | {v['limit']}, {v['cause']} | {v['confidence']:.2f} | "
              f"{cell(*gain) if gain else ''} | {cell(real)} | {v['took']:.0f} | {word} |", flush=True)
        if o.json:
            with open(o.json, "a", encoding="utf-8") as f:
                f.write(json.dumps(dict(v, situation=row.name, right=right, real=real)) + "\n")
    print("\n" + ", ".join(f"{n} {word}" for word, n in counts.items()))
    return 1 if counts.get("wrong, sure") or counts.get("LATE") else 0


if __name__ == "__main__":
    sys.exit(main())
