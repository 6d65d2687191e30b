# SPDX-License-Identifier: Apache-2.0
"""Kills `leat append` with SIGKILL at random moments: a reader sees the pack before or after it, never a half.

    python bench/append_kills.py --leat build/tools/leat [--appends 200] [--seed 1]

Every append adds one tar shard. It is started again until its samples are there; most starts are killed at a random moment
of their run. After each start the pack must have the samples of all finished appends, or these and all new ones; after a
kill every sample must be whole (`leat verify`); and meanwhile another process reads the pack without end. In the end the compacted pack must
have the bytes of `leat pack` over all shards. Prints one line of JSON; exit code 1 when anything was wrong.
"""
import argparse
import io
import json
import pathlib
import random
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import zlib


def png(value):
    """A grey picture of 8 x 8 pixels."""
    def chunk(kind, data):
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")
    rows = b"".join(b"\0" + bytes([(value * 7 + x * y) % 256 for x in range(8)]) for y in range(8))
    head = (8).to_bytes(4, "big") * 2 + b"\x08\0\0\0\0"
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def shard(path, first, count):
    with tarfile.open(path, "w") as tar:
        for i in range(first, first + count):
            for ending, data in (("png", png(i)), ("cls", str(i).encode())):
                info = tarfile.TarInfo(f"s{i:06d}.{ending}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))


class Run:
    def __init__(self, leat, folder, seed):
        self.leat, self.folder, self.draw = leat, folder, random.Random(seed)
        self.pack = folder / "p.leat"
        self.starts = self.killed = self.killed_but_done = self.looks = 0
        self.wrong, self.over = [], threading.Event()
        self.seconds = 0.2  # of an append, a running mean

    def call(self, *args):
        return subprocess.run([*self.leat, *map(str, args)], capture_output=True, text=True)

    def samples(self):
        done = self.call("info", self.pack, "--json")
        if done.returncode != 0:
            self.wrong.append(f"info: {done.stderr.strip()}")
            return -1
        return json.loads(done.stdout)["samples"]

    def read_without_end(self, counts):
        """What another process sees must be one of the states there have been."""
        while not self.over.is_set():
            seen = self.samples()
            self.looks += 1
            if seen >= 0 and seen not in counts:
                self.wrong.append(f"a reader saw {seen} samples")

    def append(self, tar):
        """One start of the command, killed or not."""
        begin = time.monotonic()
        child = subprocess.Popen([*self.leat, "append", str(tar), "-o", str(self.pack), "-q"], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, text=True)
        self.starts += 1
        if self.draw.random() < 0.75:
            try:
                child.wait(self.draw.uniform(0, 1.2) * self.seconds)
            except subprocess.TimeoutExpired:
                child.kill()
        error = child.stderr.read()
        child.stderr.close()
        code = child.wait()
        if code == -9:
            self.killed += 1
        elif code != 0:
            self.wrong.append(f"append: {error.strip()}")
        else:
            self.seconds = 0.8 * self.seconds + 0.2 * (time.monotonic() - begin)
        return code

    def grow(self, tars, counts):
        have = counts[0]
        for tar, after in zip(tars, counts[1:]):
            while have < after and not self.wrong:
                code = self.append(tar)
                seen = self.samples()
                if seen not in (have, after):
                    self.wrong.append(f"{seen} samples after an append from {have} to {after}")
                if code == -9 and (whole := self.call("verify", self.pack, "-q")).returncode != 0:
                    self.wrong.append(f"verify: {whole.stderr.strip()}")
                if code == 0 and seen != after:
                    self.wrong.append(f"an append that ended well left {seen} samples, not {after}")
                self.killed_but_done += code == -9 and seen == after
                have = seen


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--leat", default="build/tools/leat", help="the command, with its arguments")
    parser.add_argument("--appends", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        run = Run(args.leat.split(), folder, args.seed)
        sizes = [run.draw.randint(1, 9) for _ in range(args.appends + 1)]
        tars, counts = [], [0]
        for i, n in enumerate(sizes):
            tars.append(folder / f"{i:04d}.tar")
            shard(tars[-1], counts[-1], n)
            counts.append(counts[-1] + n)
        done = run.call("pack", tars[0], "-o", run.pack, "--images", "keep", "-q")
        if done.returncode != 0:
            sys.exit(done.stderr)
        reader = threading.Thread(target=run.read_without_end, args=(frozenset(counts[1:]),))
        reader.start()
        begin = time.monotonic()
        run.grow(tars[1:], counts[1:])
        run.over.set()
        reader.join()
        for step in (("verify", run.pack, "-q"), ("compact", run.pack, "-q"),
                     ("pack", *tars, "-o", folder / "once.leat", "--images", "keep", "-q")):
            done = run.call(*step)
            if done.returncode != 0:
                run.wrong.append(f"{step[0]}: {done.stderr.strip()}")
        same = not run.wrong and run.pack.read_bytes() == (folder / "once.leat").read_bytes()
        left = sorted(p.name for p in folder.iterdir() if p.suffix != ".tar" and p.name not in ("p.leat", "once.leat"))
        print(json.dumps({"appends": args.appends, "starts": run.starts, "killed": run.killed,
                          "killed_but_done": run.killed_but_done, "looks_of_a_reader": run.looks, "samples": counts[-1],
                          "compacted_is_packed_at_once": same, "files_left": left, "wrong": run.wrong[:5],
                          "seconds": round(time.monotonic() - begin, 1)}))
        sys.exit(0 if same and not left and not run.wrong else 1)


if __name__ == "__main__":
    main()
