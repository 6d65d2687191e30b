#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A pack made from many small images in a bucket: `bench/remote_many.py [--images 100000] [--kills 50] [LEAT]`.

rclone serves a local folder of images as a bucket on 127.0.0.1. The folder is packed from the disk and from the bucket,
and the bytes of both packs must be equal. Prints images per second and the memory of the process by quarters of the
run. Then the run is killed (SIGKILL) at random times and resumed, and must give the same bytes again.
scripts/setup.sh python installs the server."""
import argparse
import hashlib
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "remote"))
import servers  # noqa: E402

SIDE, CLASSES = 16, 100


def png(i: int) -> bytes:
    pixel = struct.pack("<IQ", i, i * 0x9E3779B97F4A7C15 & (1 << 64) - 1)
    rows = b"".join(b"\0" + (pixel * (SIDE * 3))[y:y + SIDE * 3] for y in range(SIDE))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b""))


def resident(pid: int) -> int:
    """MiB of memory, 0 when the process has ended."""
    try:
        lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS:")), 0) // 1024


def digest(path: str) -> str:
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=100000)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("leat", nargs="?", default=str(ROOT / "build" / "tools" / "leat"))
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="leat-many-")
    server = None
    try:
        images = os.path.join(folder, "root", servers.BUCKET, "images")
        for c in range(CLASSES):
            os.makedirs(os.path.join(images, f"{c:03}"))
        for i in range(args.images):
            pathlib.Path(images, f"{i % CLASSES:03}", f"{i:07}.png").write_bytes(png(i))
        server = servers.Rclone(os.path.join(folder, "root"))
        env = servers.environment(server.port, LEAT_REMOTE_STALL_S="60")
        options = ["--images", "keep", "-q"]
        local, remote, killed = (os.path.join(folder, name) for name in ("local.leat", "remote.leat", "killed.leat"))
        subprocess.run([args.leat, "pack", images, "-o", local, *options], check=True)
        command = [args.leat, "pack", f"s3://{servers.BUCKET}/images", *options, "-o"]
        begin, memory = time.monotonic(), []
        run = subprocess.Popen([*command, remote], env=env)
        while run.poll() is None:
            memory.append(resident(run.pid))
            time.sleep(0.05)
        seconds = time.monotonic() - begin
        if run.returncode != 0:
            sys.exit("packing from the bucket failed")
        parts = [max(memory[len(memory) * k // 4:len(memory) * (k + 1) // 4] or [0]) for k in range(4)]
        print(f"{args.images} images in {seconds:.1f} s, {args.images / seconds:.0f} per second; MiB by quarters: {parts}; "
              f"same bytes as local: {digest(local) == digest(remote)}", flush=True)
        rng, kills = random.Random(1), 0
        while kills < args.kills and not os.path.exists(killed):
            run = subprocess.Popen([*command, killed, "--resume"], env=env)
            time.sleep(rng.uniform(0.05, 2 * seconds / max(args.kills, 1)))
            if run.poll() is None:
                run.kill()
                kills += 1
            run.wait()
        if not os.path.exists(killed):
            subprocess.run([*command, killed, "--resume"], env=env, check=True)
        print(f"{kills} kills: same bytes as local: {digest(local) == digest(killed)}")
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
