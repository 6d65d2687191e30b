#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The share of a link that the loader uses: `bench/remote_link.py [--mib 1024] [--gbit 1,4,10] [--ms 0,20,100] [LEAT]`.

bench/link.c serves a pack on 127.0.0.1 with a latency before each answer and one rate for all connections together. For
each setting, an epoch of `leat load` (quasi_random, samples of 100 kB that are not decoded, pages of 4 MiB), the same with a
window of 16 pages in 256 MiB of memory, and curl with 64 ranges of 8 MiB at once take turns. Prints a table for
bench/RESULTS.md: the better of the runs of each as shares of the limit, the time to the first batch, and CPU seconds. Needs
about four minutes and an idle machine: server and reader share its CPUs."""
import argparse
import io
import json
import os
import pathlib
import random
import resource
import shutil
import subprocess
import tarfile
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
PART = 8 << 20
SMALL = ("--window-pages", "16", "--streams", "2", "--memory", "256M")
SAMPLE = 100000


def make_pack(leat: str, folder: str, mib: int) -> str:
    rng, tar, pack = random.Random(1), os.path.join(folder, "a.tar"), os.path.join(folder, "a.leat")
    with tarfile.open(tar, "w") as archive:
        for i in range(mib * (1 << 20) // SAMPLE):
            info = tarfile.TarInfo(f"{i:06}.bin")
            info.size = SAMPLE
            archive.addfile(info, io.BytesIO(rng.randbytes(SAMPLE)))
    subprocess.run([leat, "pack", tar, "-o", pack, "--page-bytes", "4M", "-q"], check=True)
    os.unlink(tar)
    return pack


def load(leat: str, url: str, *more: str) -> dict[str, float]:
    out = subprocess.run([leat, "load", url, "--order", "quasi_random", "--batch", "64", "--json", *more], check=True,
                         capture_output=True, text=True).stdout
    epoch = json.loads(out.splitlines()[0])
    return {"rate": epoch["remote_bytes"] / epoch["seconds"], "first": epoch["first_batch_s"],
            "cpu": epoch["cpu_seconds"] / epoch["remote_bytes"] * 1e9}


def curl(url: str, size: int, folder: str) -> dict[str, float]:
    config = os.path.join(folder, "curl")
    with open(config, "w") as f:
        f.write("\nnext\n".join(f'url = "{url}"\nrange = "{at}-{min(at + PART, size) - 1}"\noutput = "/dev/null"\nsilent'
                                for at in range(0, size, PART)))
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(["curl", "-Z", "--parallel-max", "64", "--parallel-immediate", "-K", config], check=True,
                   capture_output=True)
    seconds, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"rate": size / seconds, "cpu": cpu / size * 1e9}


def best(runs: list[dict[str, float]]) -> dict[str, float]:
    return max(runs, key=lambda run: run["rate"])


def setting(args: argparse.Namespace, link: str, pack: str, folder: str, gbit: float, ms: float) -> None:
    size, ours, small, theirs = os.path.getsize(pack), [], [], []
    server = subprocess.Popen([link, pack, str(ms), str(gbit)], stdout=subprocess.PIPE, text=True)
    try:
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}/a.leat"  # type: ignore[union-attr]
        for _ in range(args.repeat):
            ours.append(load(args.leat, url))
            small.append(load(args.leat, url, *SMALL))
            theirs.append(curl(url, size, folder))
    finally:
        server.kill()
        server.wait()
    limit, other = gbit * 1e9 / 8, best(theirs)
    for name, one in (("leat", best(ours)), ("leat, 16 pages", best(small)), ("curl", other)):
        first = f"{one['first'] * 1000:.0f}" if "first" in one else ""
        print(f"| {gbit:g} | {ms:g} | {name} | {one['rate'] / 1e6:.0f} | {100 * one['rate'] / limit:.0f} % | "
              f"{one['rate'] / other['rate']:.2f} | {first} | {one['cpu']:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--gbit", default="1,4,10")
    parser.add_argument("--ms", default="0,20,100")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("leat", nargs="?", default=str(ROOT / "build" / "tools" / "leat"))
    args = parser.parse_args()
    # in memory where there is room: the disk is not measured
    room = shutil.disk_usage("/dev/shm").free if os.path.isdir("/dev/shm") else 0
    folder = tempfile.mkdtemp(prefix="leat-link-", dir="/dev/shm" if room > args.mib * (5 << 19) else None)
    try:
        link, pack = os.path.join(folder, "link"), make_pack(args.leat, folder, args.mib)
        subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", "-pthread", "-o", link, str(ROOT / "bench" / "link.c")], check=True)
        print("| Gbit/s | latency ms | reader | MB/s | of the limit | of curl's rate | ms to the first batch | CPU s per GB |\n"
              "|---|---|---|---|---|---|---|---|", flush=True)
        for gbit in args.gbit.split(","):
            for ms in args.ms.split(","):
                setting(args, link, pack, folder, float(gbit), float(ms))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
