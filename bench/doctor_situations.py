#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stages situations with a known cause and checks whether the doctor names them.

    bench/doctor_situations.py --leat build-release/tools/leat --images FOLDER [--work DIR] [NAME...]

Each situation makes exactly one thing slow: a delay in the I/O layer, a quota, a CPU hog, a budget. The table shows
the staged cause, the doctor's verdict and its confidence; a verdict that is wrong and sure (confidence from 0.6)
fails the run. Situations that the machine cannot stage (no cgroups, fewer than two CPUs) are reported and skipped.
Needs Linux; root for quotas and throttled disks. Uses only Python's standard library; leat itself makes the data.
"""
import argparse
import contextlib
import json
import multiprocessing
import os
import random
import re
import shutil
import subprocess
import sys
import time
import zlib

SURE = 0.6
CPU_V1 = "/sys/fs/cgroup/cpu"
BLKIO_V1 = "/sys/fs/cgroup/blkio"


# ---- data --------------------------------------------------------------------------------------


def run(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()[-400:]}")
    return done


def png_bytes(width, height, seed):
    """A noisy gradient: decodes slowly, like photographs stored as PNG."""
    def chunk(kind, data):
        body = kind + data
        return len(data).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")
    noise = random.Random(seed).randbytes(3 * width)
    rows = bytearray()
    for y in range(height):
        shift = (7 * y) % len(noise)
        rows += b"\0" + noise[shift:] + noise[:shift]
    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([8, 2, 0, 0, 0])
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(rows), 6)) +
            chunk(b"IEND", b""))


class Data:
    """Packs, made once and kept in the work folder."""

    def __init__(self, leat, images, work):
        self.leat, self.images, self.work = leat, images, work
        os.makedirs(work, exist_ok=True)

    def path(self, name):
        return os.path.join(self.work, name)

    def pack(self, name, source, *flags):
        out = self.path(name)
        if not os.path.exists(out):
            run([self.leat, "pack", source, "-o", out, "--quiet", *flags])
        return out

    def keep(self):
        return self.pack("keep.leat", self.images, "--images", "keep")

    def tiled(self):
        return self.pack("tiled.leat", self.images, "--images", "tiled")

    def raw(self):
        """Raw pixels, repeated, so that the disk has enough to do."""
        many = self.path("many")
        if not os.path.exists(many):
            os.mkdir(many)
            for copy in range(8):
                os.symlink(os.path.abspath(self.images), f"{many}/{copy}")
        names = [os.path.join(root, f) for root, _, files in os.walk(self.images) for f in files]
        manifest = self.path("many.csv")
        if not os.path.exists(manifest):
            with open(manifest, "w", encoding="utf-8") as f:
                f.write("path,key\n")
                for copy in range(8):
                    for n in names:
                        f.write(f"{os.path.abspath(n)},{copy}-{os.path.basename(n)}\n")
        shutil.rmtree(many, ignore_errors=True)
        return self.pack("raw.leat", manifest, "--images", "raw")

    def made(self, name, width, height, count, *flags):
        folder = self.path(name)
        if not os.path.exists(folder):
            os.makedirs(f"{folder}/a")
            for i in range(count):
                with open(f"{folder}/a/{i:04}.png", "wb") as f:
                    f.write(png_bytes(width, height, i))
        return self.pack(f"{name}.leat", folder, *flags)

    def huge(self):
        return self.made("huge", 4000, 3000, 12, "--quality", "85", "--images", "keep")

    def png(self):
        return self.made("png", 512, 384, 300, "--images", "keep")

    def tiny(self):
        return self.made("tiny", 8, 8, 4000, "--images", "raw")

    def damaged(self):
        """One sample in ten has a flipped byte."""
        out = self.path("damaged.leat")
        if not os.path.exists(out):
            shutil.copy(self.keep(), out)
            info = json.loads(run([self.leat, "info", out, "--json"]).stdout)
            size, rng = os.path.getsize(out), random.Random(1)
            with open(out, "r+b") as f:
                for _ in range(max(1, info["samples"] // 10)):
                    at = rng.randrange(size // 10, size * 8 // 10)
                    f.seek(at)
                    byte = f.read(1)
                    f.seek(at)
                    f.write(bytes([byte[0] ^ 0x55]))
        return out


# ---- staging -----------------------------------------------------------------------------------


@contextlib.contextmanager
def nothing():
    yield {}


@contextlib.contextmanager
def slow_reads(pack, delay):
    yield {"env": {"LEAT_IO_INJECT": f"path={os.path.basename(pack)},delay={delay}"}}


def burn(stop):
    while not stop.is_set():
        for _ in range(100000):
            pass


@contextlib.contextmanager
def hogs(count):
    stop = multiprocessing.Event()
    busy = [multiprocessing.Process(target=burn, args=(stop,)) for _ in range(count)]
    for p in busy:
        p.start()
    try:
        yield {}
    finally:
        stop.set()
        for p in busy:
            p.join()


@contextlib.contextmanager
def group(controller, settings):
    """A control group (version 1) with these settings; processes join it before they start."""
    path = f"{controller}/leat-doctor-{os.getpid()}"
    os.mkdir(path)
    try:
        for name, value in settings.items():
            with open(f"{path}/{name}", "w", encoding="ascii") as f:
                f.write(value)
        yield {"join": path}
    finally:
        for _ in range(50):
            try:
                os.rmdir(path)
                break
            except OSError:
                time.sleep(0.1)


def evict(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)


@contextlib.contextmanager
def cold(pack, device=None, bytes_per_s=0):
    evict(pack)
    if device is None:
        yield {}
        return
    with group(BLKIO_V1, {"blkio.throttle.read_bps_device": f"{device} {bytes_per_s}"}) as how:
        yield how


def device_of(path):
    """major:minor of the disk below a file, or None."""
    number = os.stat(path).st_dev
    block = f"/sys/dev/block/{os.major(number)}:{os.minor(number)}"
    if not os.path.exists(block):
        return None
    if os.path.exists(f"{block}/partition"):
        with open(f"{os.path.realpath(block)}/../dev", encoding="ascii") as f:
            return f.read().strip()
    return f"{os.major(number)}:{os.minor(number)}"


# ---- asking ------------------------------------------------------------------------------------


def hurry(nice):
    """Raises the priority of the process and of its scheduling group above everything else."""
    os.setpriority(os.PRIO_PROCESS, 0, nice)
    if os.path.exists("/proc/self/autogroup"):
        os.setsid()
        with open("/proc/self/autogroup", "w", encoding="ascii") as f:
            f.write(str(nice))


def diagnose(leat, pack, flags, how, seconds, prefix, nice):
    env = dict(os.environ, **how.get("env", {}))
    join = how.get("join")

    def enter():
        if nice:
            hurry(nice)
        if join:
            with open(f"{join}/cgroup.procs", "w", encoding="ascii") as f:
                f.write(str(os.getpid()))
    command = [*prefix, *how.get("prefix", []), leat, "doctor", pack, "--json", "--seconds", str(seconds), *flags]
    done = subprocess.run(command, capture_output=True, text=True, env=env, preexec_fn=enter, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()[-400:]}")
    lines = done.stdout.splitlines()
    return json.loads(lines[0]), [json.loads(line) for line in lines[1:]]


def floor_of(leat, pack, flags):
    """Minimum memory of this loader, from its own error message."""
    done = subprocess.run([leat, "load", pack, "--memory", "64K", *flags], capture_output=True, text=True,
                          check=False)
    sizes = re.findall(r"([\d.]+) ?([KMG]iB|bytes)", done.stderr)
    unit = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "bytes": 1}
    if not sizes:
        raise RuntimeError(f"no floor in: {done.stderr.strip()}")
    return max(int(float(n) * unit[u]) for n, u in sizes)


def cpus():
    return len(os.sched_getaffinity(0))


def can_throttle_cpu():
    return os.path.isdir(CPU_V1) and os.access(CPU_V1, os.W_OK)


# Each: name, the situation, expected limit, expected causes, and a function that runs it. Causes are a set when two
# names are both right.
HEAVY = ("RandomResizedCrop(224); ColorJitter(0.4, 0.4, 0.4, 0.2); GaussianBlur(23); RandomRotation(30); "
         "RandAugment(); ToDtype(f32)")


def situations(data, leat, ask):
    one_step = ["--batch", "64", "--step-ms", "4"]
    yield ("slow disk", "every read takes 25 ms", "io", {"latency", "bandwidth"},
           lambda: ask(data.tiled(), one_step, slow_reads(data.tiled(), "25ms")))
    device = device_of(data.work)
    throttled = device if os.path.isdir(BLKIO_V1) and os.access(BLKIO_V1, os.W_OK) else None
    yield ("cold cache", "the pack was dropped from memory" + (", the disk gives 150 MB/s" if throttled else ""),
           "io", {"cold_cache"},
           lambda: ask(data.raw(), one_step, cold(data.raw(), throttled, 150_000_000), seconds=4))
    if cpus() > 1:
        yield ("one CPU", "taskset to one CPU", "cpu", {"few_cpus"},
               lambda: ask(data.keep(), one_step, nothing(), prefix=["taskset", "-c", "0"]))
        yield ("one thread", "--threads 1", "cpu", {"few_threads"},
               lambda: ask(data.keep(), [*one_step, "--threads", "1"], nothing()))
    yield ("CPU hog", f"{3 * cpus()} busy processes beside it", "cpu", {"other_processes"},
           lambda: ask(data.keep(), one_step, hogs(3 * cpus()), nice=0))
    yield ("JPEG decode", "plain JPEGs, a fast trainer", "cpu", {"decode"},
           lambda: ask(data.keep(), one_step, nothing()))
    yield ("huge images", "12 megapixels for 224", "cpu", {"large_images"},
           lambda: ask(data.huge(), ["--batch", "8", "--step-ms", "4"], nothing()))
    yield ("heavy augmentation", "five ops behind the crop", "cpu", {"augment"},
           lambda: ask(data.tiled(), [*one_step, "--ops", HEAVY], nothing()))
    yield ("decode-heavy PNG", "PNG photographs", "cpu", {"png"},
           lambda: ask(data.png(), ["--batch", "32", "--step-ms", "4"], nothing()))
    yield ("slow trainer", "a step of 400 ms", "trainer", {"trainer"},
           lambda: ask(data.tiled(), ["--batch", "64", "--step-ms", "400"], nothing()))
    yield ("tiny batches", "batches of 1, images of 8 x 8", "delivery", {"small_batches"},
           lambda: ask(data.tiny(), ["--batch", "1", "--ops", "Resize((8, 8))", "--step-ms", "0.001"], nothing()))
    flags = ["--batch", "64", "--size", "224", "--dtype", "f32"]
    yield ("small budget", "hardly more memory than one batch, slow reads to hide", "memory", {"budget"},
           lambda: ask(data.tiled(), [*flags, "--step-ms", "4", "--memory",
                                      str(int(1.02 * floor_of(leat, data.tiled(), flags)))],
                       slow_reads(data.tiled(), "3ms")))
    yield ("corrupt samples", "one in ten is damaged", "trainer", {"trainer"},
           lambda: ask(data.damaged(), ["--batch", "64", "--step-ms", "400", "--on-error", "skip"], nothing(),
                       check=lambda v: any("damaged" in f for f in v["findings"])))
    if can_throttle_cpu():
        yield ("quota throttling", "half a CPU by quota", "cpu", {"quota"},
               lambda: ask(data.keep(), one_step,
                           group(CPU_V1, {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "50000",
                                          "cpu.shares": "200000"})))


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--leat", required=True)
    args.add_argument("--images", required=True, help="a folder of JPEGs, class folders inside")
    args.add_argument("--work", default="doctor-situations")
    args.add_argument("--seconds", type=float, default=6)
    args.add_argument("--nice", type=int, default=0, help="priority of the doctor, below 0 on a busy machine")
    args.add_argument("--json", help="write all verdicts here")
    args.add_argument("names", nargs="*")
    o = args.parse_args()
    leat = os.path.abspath(o.leat)
    data = Data(leat, o.images, o.work)

    def ask(pack, flags, staging, seconds=None, prefix=(), check=None, nice=o.nice):
        with staging as how:
            verdict, _ = diagnose(leat, pack, flags, how, seconds or o.seconds, prefix, nice)
        verdict["checked"] = check is None or check(verdict)
        return verdict

    rows, bad, wrong = [], 0, 0
    print("| situation | staged | doctor says | sure | lost | right |\n|---|---|---|---|---|---|")
    for name, staged, limit, causes, perform in situations(data, leat, ask):
        if o.names and name not in o.names:
            continue
        v = perform()
        right = v["limit"] == limit and v["cause"] in causes and v["checked"]
        sure = v["confidence"] >= SURE
        wrong += not right
        bad += v["limit"] != limit and sure
        lost = "?" if v["lost"] is None else f"{100 * v['lost']:.0f} %"
        print(f"| {name} | {staged} | {v['limit']}, {v['cause']} | {v['confidence']:.2f} | {lost} | "
              f"{'yes' if right else 'NO: ' + v['verdict']} |", flush=True)
        rows.append(dict(v, situation=name, staged=staged, right=right))
    print(f"\n{len(rows) - wrong} of {len(rows)} right, {bad} wrong and sure")
    if o.json:
        with open(o.json, "w", encoding="utf-8") as f:
            json.dump(rows, f)
    return 1 if bad or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
