#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packing that is killed, starved of space or given bad input.

    LEAT=build/tools/leat python3 tests/cli/test_interrupted_pack.py

LEAT_KILLS sets how many random kills there are (100 for a release; few here, because it is one of
the fast tests). The seed is printed; LEAT_SEED repeats a run.
"""
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
import unittest

LEAT = os.environ["LEAT"]
KILLS = int(os.environ.get("LEAT_KILLS", "4"))
SEED = int(os.environ.get("LEAT_SEED", str(random.SystemRandom().randrange(1 << 32))))


def run(*args, **more):
    return subprocess.run([LEAT, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=120, **more)


def catches(pid, number):
    """True when the process has installed a handler for this signal."""
    with open(f"/proc/{pid}/status") as f:
        mask = next(line for line in f if line.startswith("SigCgt")).split()[1]
    return int(mask, 16) >> (number - 1) & 1


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def jpeg(seed, size):
    """A grey JPEG of size x size pixels, written by hand: flat blocks whose DC depends on the seed."""
    def segment(marker, body):
        return bytes([0xFF, marker]) + (len(body) + 2).to_bytes(2, "big") + body
    lengths = [0, 1, 5, 1, 1, 1, 1, 1, 1] + [0] * 7            # the DC table of Annex K
    dc = bytes(lengths) + bytes(range(12))
    ac = bytes([0, 1] + [0] * 14) + bytes([0x00])              # end of block only: code "00"
    head = (b"\xff\xd8" + segment(0xDB, b"\0" + bytes([8] * 64))
            + segment(0xC0, b"\x08" + size.to_bytes(2, "big") * 2 + b"\x01\x01\x11\0")
            + segment(0xC4, b"\0" + dc) + segment(0xC4, b"\x10" + ac)
            + segment(0xDA, b"\x01\x01\0\0\x3f\0"))
    codes = {0: "00", 1: "010", 2: "011", 3: "100", 4: "101", 5: "110", 6: "1110"}
    rng, last, bits = random.Random(seed), 0, []
    for _ in range((size // 8) ** 2):
        value = rng.randrange(-40, 41)
        diff, last = value - last, value
        n = abs(diff).bit_length()
        bits.append(codes.get(n, "11110"))
        if n:
            bits.append(format(diff if diff > 0 else diff + (1 << n) - 1, f"0{n}b"))
        bits.append("00")
    text = "".join(bits)
    text += "1" * (-len(text) % 8)
    data = int(text, 2).to_bytes(len(text) // 8, "big").replace(b"\xff", b"\xff\0")
    return head + data + b"\xff\xd9"


# A disk with a bad sector: reads of one file return the bytes before it, then EIO.
BAD_SECTOR = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static ssize_t bad_read(int fd, void *buf, size_t len, off_t at, const char *name)
{
    ssize_t (*real)(int, void *, size_t, off_t) = dlsym(RTLD_NEXT, name);
    char link[64], path[4096] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (readlink(link, path, sizeof path - 1) > 0 && strcmp(path, getenv("BAD_PATH")) == 0) {
        off_t bad = atoll(getenv("BAD_AT"));
        if (at >= bad) return errno = EIO, -1;
        if ((off_t)len > bad - at) len = (size_t)(bad - at);
    }
    return real(fd, buf, len, at);
}
ssize_t pread(int fd, void *buf, size_t len, off_t at) { return bad_read(fd, buf, len, at, "pread"); }
ssize_t pread64(int fd, void *buf, size_t len, off_t at) { return bad_read(fd, buf, len, at, "pread64"); }
"""


class Pack(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="leat-pack-")
        self.src = os.path.join(self.dir, "photos")
        for i in range(400):
            folder = os.path.join(self.src, f"class{i % 5}")
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, f"{i}.jpg"), "wb") as f:
                f.write(jpeg(i, 160 + 8 * (i % 40)))
        self.out = os.path.join(self.dir, "out.leat")

    def tearDown(self):
        shutil.rmtree(self.dir)

    def pack(self, *more, out=None, **opts):
        return run("pack", self.src, "-o", out or self.out, "--page-bytes", "64KiB", *more, **opts)

    def check_whole(self, path):
        done = run("verify", path)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_killed_and_resumed(self):
        rng = random.Random(SEED)
        print(f"seed {SEED}, {KILLS} kills", flush=True)
        for flags in (["--images", "keep"], ["--images", "tiled"],
                      ["--images", "keep", "--shard-bytes", "1MiB"]):
            with self.subTest(" ".join(flags)):
                self.kill_and_resume(rng, flags)
        print(f"{KILLS} kills each: the same bytes", flush=True)

    def digests(self, folder):
        """Of every file of a pack or set."""
        return {f: digest(os.path.join(folder, f)) for f in os.listdir(folder)}

    def kill_and_resume(self, rng, flags):
        want, got = os.path.join(self.dir, "want"), os.path.join(self.dir, "got")
        for folder in (want, got):
            shutil.rmtree(folder, ignore_errors=True)
            os.mkdir(folder)
        begin = time.monotonic()
        done = self.pack(*flags, out=os.path.join(want, "out.leat"))
        self.assertEqual(done.returncode, 0, done.stderr)
        took = time.monotonic() - begin
        whole, out = self.digests(want), os.path.join(got, "out.leat")
        for _ in range(KILLS):
            p = subprocess.Popen([LEAT, "pack", self.src, "-o", out, *flags, "--page-bytes", "64KiB",
                                  "--resume", "--threads", str(rng.choice([1, 2, 8]))],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            time.sleep(rng.uniform(0, took))
            p.send_signal(signal.SIGKILL)
            err = p.communicate()[1].decode()
            self.assertIn(p.returncode, (0, -signal.SIGKILL), err)
            if os.path.exists(out):      # if it exists it is complete; its journal may still exist
                for name in whole:
                    self.assertEqual(digest(os.path.join(got, name)), whole[name])
                    os.unlink(os.path.join(got, name))
                continue
            partial = out + ".partial"
            if os.path.exists(partial) and run("info", partial).returncode != 4:
                self.assertEqual(digest(partial), whole["out.leat"])  # about to be renamed
        done = run("pack", self.src, "-o", out, *flags, "--page-bytes", "64KiB", "--resume", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.digests(got), whole, f"resumed {json.loads(done.stdout)['resumed']}")
        self.check_whole(out)

    def test_no_space(self):
        box = os.path.join(self.dir, "small")
        os.mkdir(box)
        size = sum(os.path.getsize(os.path.join(d, f)) for d, _, fs in os.walk(self.src) for f in fs)
        half = max(size // 2 // 4096 * 4096, 1 << 19)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={half}", "tmpfs", box],
                                 stderr=subprocess.DEVNULL)
        if mounted.returncode != 0:
            self.skipTest("a small tmpfs cannot be mounted here")
        try:
            out = os.path.join(box, "out.leat")
            done = self.pack("--images", "keep", out=out)
            self.assertEqual(done.returncode, 4, done.stderr)
            self.assertIn("space", done.stderr)
            self.assertFalse(os.path.exists(out))
            subprocess.run(["mount", "-o", f"remount,size={8 * size + (8 << 20)}", box], check=True)
            done = self.pack("--images", "keep", "--resume", "--json", out=out)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertGreater(json.loads(done.stdout)["resumed"], 0)
            self.assertEqual(self.pack("--images", "keep").returncode, 0)
            self.assertEqual(digest(out), digest(self.out))
        finally:
            subprocess.run(["umount", box], check=True)

    def test_a_file_over_the_size_limit_is_an_error(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (65536, resource.RLIM_INFINITY))
        done = self.pack("--images", "keep", preexec_fn=limit)
        self.assertEqual(done.returncode, 4, done.stderr)  # SIGXFSZ used to end it
        self.assertIn("too large", done.stderr.lower())
        self.assertFalse(os.path.exists(self.out))

    def test_a_set_of_more_shards_than_descriptors_loads(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))
        done = self.pack("--images", "raw", "--shard-bytes", "1MiB")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(len(os.listdir(self.dir)), 24)
        for cache in "os", "process":
            args = ["load", self.out, "--crop", "center", "--size", "32", "--digest", "--json",
                    "--cache", cache, "-t", "2"]
            wide, narrow = run(*args), run(*args, preexec_fn=limit)
            self.assertEqual(narrow.returncode, 0, narrow.stderr)
            self.assertEqual(json.loads(narrow.stdout)["digest"], json.loads(wide.stdout)["digest"])

    def test_bad_sector(self):
        shim = os.path.join(self.dir, "shim.so")
        built = subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, "-x", "c", "-", "-ldl"],
                               input=BAD_SECTOR, text=True, stderr=subprocess.DEVNULL)
        if built.returncode != 0:
            self.skipTest("no C compiler here")
        bad = os.path.join(self.src, "class4", "394.jpg")
        env = dict(os.environ, LD_PRELOAD=shim, BAD_PATH=os.path.realpath(bad), BAD_AT="700")
        if run("--version", env=env).returncode != 0:
            self.skipTest("nothing can be loaded before this program")
        done = self.pack("--images", "keep", env=env)
        self.assertEqual(done.returncode, 4, done.stderr)
        first = done.stderr.splitlines()[0]
        self.assertIn(bad, first)
        self.assertIn("at byte 700", first)
        self.assertFalse(os.path.exists(self.out))
        skipped = self.pack("--images", "keep", "--on-error", "skip", "--json", env=env,
                            out=os.path.join(self.dir, "skipped.leat"))
        self.assertEqual(skipped.returncode, 1, skipped.stderr)  # a finding
        self.assertEqual(json.loads(skipped.stdout)["skipped"], 1)
        done = self.pack("--images", "keep", "--resume", "--json")   # after replacing a cable, for example
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(json.loads(done.stdout)["resumed"], 0)
        whole = os.path.join(self.dir, "whole.leat")
        self.assertEqual(self.pack("--images", "keep", out=whole).returncode, 0)
        self.assertEqual(digest(self.out), digest(whole))

    def test_export_gives_the_files_back(self):
        for mode in ("keep", "tiled"):
            back = os.path.join(self.dir, "back")
            self.assertEqual(self.pack("--images", mode, "--force").returncode, 0)
            self.assertEqual(run("export", self.out, "-o", back).returncode, 0)
            compared = subprocess.run(["diff", "-r", self.src, back])
            self.assertEqual(compared.returncode, 0)
            shutil.rmtree(back)

    def files_of(self, folder):
        return sorted(os.path.relpath(os.path.join(d, f), folder) for d, _, fs in os.walk(folder) for f in fs)

    def test_an_export_that_fails_leaves_complete_files(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        self.assertEqual(self.pack("--images", "keep").returncode, 0)
        files, shards = os.path.join(self.dir, "files"), os.path.join(self.dir, "shards")
        done = run("export", self.out, "-o", files, preexec_fn=limit)
        self.assertEqual(done.returncode, 4, done.stderr)
        for name in self.files_of(files):
            self.assertEqual(digest(os.path.join(files, name)), digest(os.path.join(self.src, name)), name)
        done = run("export", self.out, "-o", shards, "--to", "webdataset", preexec_fn=limit)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertEqual(os.listdir(shards), [])

    def test_an_export_that_cannot_begin_a_shard_counts_those_before(self):
        self.assertEqual(self.pack("--images", "keep").returncode, 0)
        folder = os.path.join(self.dir, "shards")
        os.makedirs(os.path.join(folder, "00001.tar.partial"))
        done = run("export", self.out, "-o", folder, "--to", "webdataset", "--shard-bytes", "1M", "--json")
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertEqual(done.stderr.count("00001.tar.partial"), 1, done.stderr)
        with tarfile.open(os.path.join(folder, "00000.tar")) as tar:
            members = tar.getmembers()
        told = json.loads(done.stdout)
        self.assertEqual([told[n] for n in ("samples", "files", "members", "bytes", "failed")],
                         [len(members) // 2, 1, len(members), sum(m.size for m in members), 0])  # image and label
        # a folder after the last shard
        done = run("export", self.out, "-o", folder, "--to", "webdataset", "--force", "--json")
        self.assertEqual(done.returncode, 4, done.stderr)
        told = json.loads(done.stdout)
        self.assertEqual((told["samples"], told["files"]), (len(self.files_of(self.src)), 1))

    def export_slowly(self, *more, stop):
        """Starts an export of a slow disk and sends a signal; its exit code, its stderr and how long it took to end."""
        env = dict(os.environ, LEAT_IO_INJECT=f"path={os.path.basename(self.out)},delay=50ms")
        export = subprocess.Popen([LEAT, "export", self.out, *more], text=True, env=env,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while not catches(export.pid, signal.SIGINT):
            time.sleep(0.01)
        time.sleep(0.5)
        begin = time.monotonic()
        export.send_signal(stop)
        out, err = export.communicate(timeout=60)
        self.assertEqual(out, "")
        return export.returncode, err, time.monotonic() - begin

    def test_a_signal_ends_export_in_words(self):
        self.assertEqual(self.pack("--images", "keep").returncode, 0)
        for form, most in (("folder", 399), ("webdataset", 0)):
            for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
                folder = os.path.join(self.dir, f"{form}{code}")
                got, err, took = self.export_slowly("-o", folder, "--to", form, stop=number)
                self.assertEqual(got, code, err)
                self.assertLess(took, 2)
                there = self.files_of(folder)
                self.assertLessEqual(len(there), most)
                self.assertEqual([name for name in there if name.endswith(".partial")], [])
                self.assertRegex(err, rf"^stopped by a signal; written to .*: {len(there)} samples?, {len(there)} files?\n$")

    def test_a_killed_export_leaves_partial_names(self):
        self.assertEqual(self.pack("--images", "keep").returncode, 0)
        folder = os.path.join(self.dir, "shards")
        self.assertEqual(self.export_slowly("-o", folder, "--to", "webdataset", stop=signal.SIGKILL)[0], -signal.SIGKILL)
        self.assertEqual(os.listdir(folder), ["00000.tar.partial"])
        done = run("export", self.out, "-o", folder, "--to", "webdataset")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(os.listdir(folder), ["00000.tar"])

    def test_entry_points_change_no_pixel(self):
        def pixels(path):
            done = run("load", path, "--order", "random", "--size", "64", "--batch", "50", "--digest", "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(done.stdout.splitlines()[-1])["digest"]

        def indexed(path):
            done = run("info", path, "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(done.stdout)["indexed"]

        trusted, tiled, again, kept = (os.path.join(self.dir, n + ".leat") for n in ("trust", "tiled", "again", "kept"))
        self.assertEqual(self.pack("--images", "keep").returncode, 0)
        self.assertEqual(self.pack("--images", "keep", "--trust", out=trusted).returncode, 0)
        self.assertEqual(self.pack("--images", "tiled", out=tiled).returncode, 0)
        self.assertGreater(indexed(self.out), 100)
        self.assertEqual(indexed(trusted), 0)
        self.assertEqual(pixels(self.out), pixels(trusted))
        self.assertEqual(pixels(self.out), pixels(tiled))
        # from a pack: encoded again, or copied
        self.assertEqual(run("pack", trusted, "-o", again, "--images", "keep").returncode, 0)
        self.assertEqual(run("pack", self.out, "-o", kept, "--images", "keep", "--trust").returncode, 0)
        for path in (again, kept):
            self.assertEqual(indexed(path), indexed(self.out))
            self.assertEqual(pixels(path), pixels(self.out))

    def test_flipped_bytes_are_found(self):
        self.assertEqual(self.pack("--images", "keep").returncode, 0)
        rng = random.Random(SEED)
        with open(self.out, "rb") as f:
            whole = f.read()
        for _ in range(10):
            at = rng.randrange(len(whole))
            with open(self.out, "r+b") as f:
                f.seek(at)
                f.write(bytes([whole[at] ^ 1 << rng.randrange(8)]))
            done = run("verify", self.out, "--json")
            self.assertEqual(done.returncode, 4, f"flip at {at} was not found")
            with open(self.out, "r+b") as f:
                f.seek(at)
                f.write(whole[at:at + 1])
        self.check_whole(self.out)

    def test_replaced_samples_count_once_in_a_state(self):
        self.assertEqual(self.pack("--images", "keep").returncode, 0)
        with open(self.out, "r+b") as f:
            for at in range(6000, os.path.getsize(self.out) // 2, 40000):
                f.seek(at)
                f.write(b"\0\xff\0\xff")

        def load(*more):
            done = run("load", self.out, "--order", "random", "--size", "32", "--batch", "8", "--on-error",
                       "replace", "--digest", "--json", *more)
            self.assertEqual(done.returncode, 1, done.stderr)  # bad samples are a finding
            return json.loads(done.stdout.splitlines()[-1])

        whole, state = load(), os.path.join(self.dir, "state.json")
        self.assertGreater(whole["bad_samples"], 2)
        load("--stop-after", "45", "--state", state)  # in the middle of a batch, after bad ones
        self.assertEqual(load("--resume", state)["digest"], whole["digest"])

    def test_memory_is_bounded(self):
        done = self.pack("--images", "tiled", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLess(json.loads(done.stdout)["peak_rss_bytes"], 300 << 20)
        large = bytearray(400 << 20)  # memory of this process is not that of the command
        done = self.pack("--images", "keep", "--json", out=os.path.join(self.dir, "rss.leat"))
        self.assertLess(json.loads(done.stdout)["peak_rss_bytes"], 300 << 20)
        del large

    def test_a_second_packer_is_told_that_the_first_is_alive(self):
        first = subprocess.Popen([LEAT, "pack", self.src, "-o", self.out, "--images", "tiled", "-t", "1"],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not os.path.exists(self.out + ".partial"):
            time.sleep(0.001)
            self.assertIsNone(first.poll())
        os.kill(first.pid, signal.SIGSTOP)
        try:
            for more in ([], ["--force"], ["--resume"]):
                done = self.pack("--images", "tiled", *more)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn("in use by another process", done.stderr)
                self.assertNotIn("remove", done.stderr)
        finally:
            os.kill(first.pid, signal.SIGCONT)
        self.assertEqual(first.wait(120), 0)
        self.assertEqual(run("verify", self.out).returncode, 0)

    def test_force_after_a_failed_pack(self):
        with open(os.path.join(self.src, "class0", "empty.jpg"), "wb"):
            pass
        self.assertEqual(self.pack("--images", "keep").returncode, 4)
        done = self.pack("--images", "tiled", "--force", "--on-error", "skip")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(run("verify", self.out).returncode, 0)
        self.assertEqual([f for f in os.listdir(self.dir) if f.endswith((".journal", ".partial"))], [])

    def test_an_unfinished_merge_names_resume(self):
        one, two, whole = (os.path.join(self.dir, f"{name}.leat") for name in ("one", "two", "whole"))
        self.assertEqual(self.pack("--images", "keep").returncode, 0)
        self.assertEqual(run("merge", self.out, "-o", whole).returncode, 0)
        env = dict(os.environ, LEAT_IO_INJECT=f"path={os.path.basename(self.out)},delay=50ms")
        merge = subprocess.Popen([LEAT, "merge", self.out, "-o", one, "--threads", "1"], text=True, env=env,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while merge.poll() is None and not (os.path.exists(one + ".partial") and os.path.getsize(one + ".partial") > 1 << 16):
            time.sleep(0.01)
        merge.send_signal(signal.SIGINT)
        _, err = merge.communicate(timeout=60)
        self.assertEqual((merge.returncode, err),
                         (130, "what is written so far is kept: --resume continues from there\n"))
        again = run("merge", self.out, "-o", one)
        self.assertEqual(again.returncode, 2)
        self.assertIn("--resume continues an unfinished pack; --force replaces what is there", again.stderr)
        again = run("merge", self.out, "-o", one, "--resume")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(digest(one), digest(whole))
        with open(self.out, "r+b") as f:  # a damaged input
            f.seek(os.path.getsize(self.out) // 2)
            f.write(b"damaged here")
        done = run("merge", self.out, "-o", two)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertEqual(os.path.exists(two + ".journal"), "--resume --on-error skip leaves out" in done.stderr)

    def test_a_signal_ends_load_in_words(self):
        self.assertEqual(self.pack("--images", "keep").returncode, 0)
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            state = os.path.join(self.dir, "stopped.json")
            load = subprocess.Popen([LEAT, "load", self.out, "--size", "32", "--batch", "8", "--epochs", "1000",
                                     "--step-ms", "400", "--state", state], text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            while not catches(load.pid, number):
                time.sleep(0.01)
            time.sleep(0.3)
            load.send_signal(number)
            _, err = load.communicate(timeout=60)
            self.assertEqual(load.returncode, code, err)
            self.assertIn("stopped by a signal after", err)
            self.assertNotIn("200 ms", err)
            self.assertNotIn("no error", err)
            self.assertTrue(os.path.exists(state))

    def test_a_signal_says_what_is_left(self):
        """check, dedup images, split and compact: one line, and the same command then succeeds."""
        self.assertEqual(self.pack("--images", "keep").returncode, 0)
        env = dict(os.environ, LEAT_IO_INJECT=f"path={os.path.basename(self.out)},delay=30ms")
        kept = r"interrupted: (nothing was written|\S+ was not written; the same command continues from \S+)\n"
        nothing = r"interrupted: nothing was written\n"
        for line, (*words, out) in ((kept, ("check", self.out, "-o", "check.leat")), (kept, ("dedup", "images", self.out, "-o", "dup.leat")),
                                    (nothing, ("compact", self.out, "--shard-bytes", "1M", "-o", "less.leat")),
                                    (nothing, ("split", self.out, "--parts", "a=0.5,b=0.5", "-o", "parts"))):
            path = os.path.join(self.dir, out)
            work = subprocess.Popen([LEAT, *words, path], text=True, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            while not catches(work.pid, signal.SIGINT):
                time.sleep(0.01)
            time.sleep(0.2)
            work.send_signal(signal.SIGINT)
            told, err = work.communicate(timeout=60)
            self.assertEqual((work.returncode, told), (130, ""), err)
            self.assertRegex(err, f"^{line}$")
            self.assertFalse(os.path.isfile(path))
            done = run(*words, path)
            self.assertIn(done.returncode, (0, 1), done.stderr)
            self.assertEqual([f for f in os.listdir(self.dir) if f.endswith((".scores", ".state", ".journal", ".partial"))], [])

    def test_a_signal_before_the_first_batch_ends_the_doctor_in_words(self):
        self.assertEqual(self.pack("--images", "keep").returncode, 0)
        env = dict(os.environ, LEAT_IO_INJECT=f"path={os.path.basename(self.out)},delay=3s")
        doctor = subprocess.Popen([LEAT, "doctor", self.out, "--step-ms", "5"], text=True, env=env,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while not catches(doctor.pid, signal.SIGINT):
            time.sleep(0.01)
        doctor.send_signal(signal.SIGINT)
        out, err = doctor.communicate(timeout=60)
        self.assertEqual((doctor.returncode, out), (130, ""), err)
        self.assertIn("stopped: nothing was measured yet", err)


if __name__ == "__main__":
    unittest.main()
