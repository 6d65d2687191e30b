#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The share of a link that the loader uses: `bench/remote_link.py [--mib 512] [LEAT]`.

bench/link.c serves a pack on 127.0.0.1 with 0, 20 and 100 ms of latency and 1, 4 and 10 Gbit/s for all connections
together. For each setting it prints the MB/s of an epoch of `leat load` (quasi_random, samples of 100 kB that are not
decoded, pages of 4 MiB) and of curl with 64 ranges of 8 MiB at once, in turns, as shares of the limit, and the seconds
to the first batch."""
import argparse
import io
import json
import os
import pathlib
import random
import shutil
import subprocess
import tarfile
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
PART = 8 << 20


def make_pack(leat: str, folder: str, mib: int) -> str:
    rng, tar, pack = random.Random(1), os.path.join(folder, "a.tar"), os.path.join(folder, "a.leat")
    with tarfile.open(tar, "w") as archive:
        for i in range(mib * (1 << 20) // 100000):
            info = tarfile.TarInfo(f"{i:06}.bin")
            info.size = 100000
            archive.addfile(info, io.BytesIO(rng.randbytes(info.size)))
    subprocess.run([leat, "pack", tar, "-o", pack, "--page-bytes", "4M", "-q"], check=True)
    os.unlink(tar)
    return pack


def load(leat: str, url: str) -> tuple[float, float, float]:
    out = subprocess.run([leat, "load", url, "--order", "quasi_random", "--batch", "64", "--json"], check=True,
                         capture_output=True, text=True).stdout
    epoch = json.loads(out.splitlines()[0])
    return epoch["remote_bytes"] / epoch["seconds"], epoch["first_batch_s"], epoch["cpu_seconds"] / epoch["remote_bytes"]


def curl(url: str, size: int, folder: str) -> float:
    config = os.path.join(folder, "curl")
    with open(config, "w") as f:
        f.write("\nnext\n".join(f'url = "{url}"\nrange = "{at}-{min(at + PART, size) - 1}"\noutput = "/dev/null"\nsilent'
                                for at in range(0, size, PART)))
    begin = time.monotonic()
    subprocess.run(["curl", "-Z", "--parallel-max", "64", "--parallel-immediate", "-K", config], check=True,
                   capture_output=True)
    return size / (time.monotonic() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=512)
    parser.add_argument("leat", nargs="?", default=str(ROOT / "build" / "tools" / "leat"))
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="leat-link-")
    try:
        link, pack = os.path.join(folder, "link"), make_pack(args.leat, folder, args.mib)
        subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", "-pthread", "-o", link, str(ROOT / "bench" / "link.c")], check=True)
        size = os.path.getsize(pack)
        for gbit in (1, 4, 10):
            for ms in (0, 20, 100):
                server = subprocess.Popen([link, pack, str(ms), str(gbit)], stdout=subprocess.PIPE, text=True)
                try:
                    url = f"http://127.0.0.1:{server.stdout.readline().strip()}/a.leat"  # type: ignore[union-attr]
                    ours, theirs = [], []
                    for _ in range(2):
                        ours.append(load(args.leat, url))
                        theirs.append(curl(url, size, folder))
                finally:
                    server.kill()
                    server.wait()
                best, limit = max(ours), gbit * 1e9 / 8
                print(f"{gbit:2} Gbit/s {ms:3} ms: leat {best[0] / 1e6:6.0f} MB/s, {100 * best[0] / limit:3.0f} % of the limit, "
                      f"first batch {best[1]:.2f} s, {1e9 * best[2]:.2f} CPU s/GB; curl {100 * max(theirs) / limit:3.0f} %",
                      flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
