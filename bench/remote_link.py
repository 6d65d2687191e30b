#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The share of a link that the loader uses: `bench/remote_link.py [--mib 1024] [--gbit 1,4,10] [--ms 0,20,100] [--seaweedfs]
[--pack FILE] [LEAT]`.

bench/link.c serves a pack on 127.0.0.1 with a latency before each answer and one rate for all connections together; with
--seaweedfs it passes requests on to that server, which holds the pack. For each setting, an epoch of `leat load` (quasi_random,
samples of 100 kB that are not decoded, pages of 4 MiB), three epochs with a window of 16 pages and memory for half of the pack,
of which the first and the last are shown, and curl with 64 ranges at once, of 8 MiB and of a page, take turns. Prints a table for
bench/RESULTS.md: the median rate of each, its share of the limit (0 Gbit/s: none), its ratios to the rates of curl in the same round (median,
smallest to largest), the time to the first batch, and CPU seconds of the reader and of server and link together. Server and reader share the CPUs.
Free memory is written to before each run. --pack names the pack, which is made if it does not exist and kept."""
import argparse
import io
import json
import mmap
import os
import pathlib
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "remote"))
import servers  # noqa: E402

PARTS = {"curl, 8 MiB": 8 << 20, "curl, a page": 4100000}
SMALL = ("--window-pages", "16", "--streams", "2", "--epochs", "3", "--memory")
SAMPLE = 100000


def make_pack(leat: str, pack: str, mib: int) -> None:
    rng, tar = random.Random(1), pack + ".tar"
    with tarfile.open(tar, "w") as archive:
        for i in range(mib * (1 << 20) // SAMPLE):
            info = tarfile.TarInfo(f"{i:06}.bin")
            info.size = SAMPLE
            archive.addfile(info, io.BytesIO(rng.randbytes(SAMPLE)))
    subprocess.run([leat, "pack", tar, "-o", pack, "--page-bytes", "4M", "-q"], check=True)
    os.unlink(tar)


def load(leat: str, url: str, env: dict[str, str], *more: str) -> list[dict[str, float]]:
    out = subprocess.run([leat, "load", url, "--order", "quasi_random", "--batch", "64", "--json", *more], check=True,
                         capture_output=True, text=True, env=env).stdout
    # an epoch that finds pages in memory is counted by what it read remotely, with the time of all
    return [{"rate": epoch["remote_bytes"] / epoch["seconds"], "first": epoch["first_batch_s"], "bytes": epoch["remote_bytes"],
             "cpu": epoch["cpu_seconds"] / epoch["remote_bytes"] * 1e9} for epoch in map(json.loads, out.splitlines())]


def curl(url: str, size: int, part: int, folder: str, sign: bool) -> dict[str, float]:
    config = os.path.join(folder, "curl")
    auth = f'aws-sigv4 = "aws:amz:us-east-1:s3"\nuser = "{servers.KEY_ID}:{servers.SECRET}"\n' if sign else ""
    with open(config, "w") as f:
        f.write("\nnext\n".join(f'{auth}url = "{url}"\nrange = "{at}-{min(at + part, size) - 1}"\noutput = "/dev/null"\nsilent\nfail'
                                for at in range(0, size, part)))
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(["curl", "-Z", "--parallel-max", "64", "--parallel-immediate", "-K", config], check=True,
                   capture_output=True)
    seconds, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"rate": size / seconds, "cpu": cpu / size * 1e9, "bytes": size}


def warm(size: int) -> None:
    """A virtual machine's free memory may have to be fetched from its host, at less than 1 GB/s: not what is measured."""
    with mmap.mmap(-1, size) as memory:
        memory.madvise(mmap.MADV_HUGEPAGE)
        memory[::4096] = bytes(len(range(0, size, 4096)))


def used(processes: list[subprocess.Popen]) -> float:
    """CPU seconds of running processes."""
    total = 0
    for process in processes:
        fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def setting(args: argparse.Namespace, folder: str, weed: "servers.Weed | None", gbit: float, ms: float) -> None:
    size = os.path.getsize(args.pack)
    runs: dict[str, list[dict[str, float]]] = {}
    link = subprocess.Popen([os.path.join(folder, "link"), str(weed.port) if weed else args.pack, str(ms), str(gbit)],
                            stdout=subprocess.PIPE, text=True)
    serving = [link, weed.process] if weed and weed.process else [link]

    def note(names: tuple[str, ...], before: float, found: list[dict[str, float]]) -> None:
        others = (used(serving) - before) / sum(one["bytes"] for one in found) * 1e9
        for name, one in zip(names, (found[0], found[-1])):
            runs.setdefault(name, []).append({**one, "others": others})

    try:
        port = int(link.stdout.readline())  # type: ignore[union-attr]
        plain, env = f"http://127.0.0.1:{port}/{servers.BUCKET}/a.leat", servers.environment(port, LEAT_REMOTE_STALL_S="20")
        url = f"s3://{servers.BUCKET}/a.leat" if weed else plain
        for _ in range(args.repeat):
            warm(2 * size)
            note(("leat",), used(serving), load(args.leat, url, env))
            warm(2 * size)
            note(("leat, 16 pages, first epoch", "leat, 16 pages, third epoch"), used(serving),
                 load(args.leat, url, env, *SMALL, str(size // 2)))
            for name, part in PARTS.items():
                note((name,), used(serving), [curl(plain, size, part, folder, weed is not None)])
    finally:
        link.kill()
        link.wait()
    limit = gbit * 1e9 / 8
    for name, found in runs.items():
        rate = statistics.median(one["rate"] for one in found)
        first = f"{statistics.median(one['first'] for one in found) * 1000:.0f}" if "first" in found[0] else ""
        share = f"{100 * rate / limit:.0f} %" if limit else ""
        of_curl = ", ".join(spread([one["rate"] / other["rate"] for one, other in zip(found, runs[part])]) for part in PARTS)
        print(f"| {f'{gbit:g}' if gbit else 'none'} | {ms:g} | {name} | {rate / 1e6:.0f} | {share} | {of_curl} | {first} | "
              f"{spread([one['cpu'] for one in found])} | {statistics.median(one['others'] for one in found):.2f} |", flush=True)


def measure(args: argparse.Namespace, folder: str) -> None:
    weed = None
    subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", "-pthread", "-o", os.path.join(folder, "link"), str(ROOT / "bench" / "link.c")],
                   check=True)
    try:
        if args.seaweedfs:
            tempfile.tempdir = folder
            weed = servers.Weed()
            servers.make_bucket(weed.port)
            servers.put(weed.port, "a.leat", pathlib.Path(args.pack).read_bytes())
        print("| Gbit/s | latency ms | reader | MB/s | of the limit | of curl's rates | ms to the first batch | CPU s per GB | of server and link |\n"
              "|---|---|---|---|---|---|---|---|---|", flush=True)
        for gbit in args.gbit.split(","):
            for ms in args.ms.split(","):
                setting(args, folder, weed, float(gbit), float(ms))
    finally:
        if weed is not None:
            weed.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=512)
    parser.add_argument("--gbit", default="1,4,10")
    parser.add_argument("--ms", default="0,20,100")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seaweedfs", action="store_true")
    parser.add_argument("--pack")
    parser.add_argument("leat", nargs="?", default=str(ROOT / "build" / "tools" / "leat"))
    args = parser.parse_args()
    # in memory where there is room: the disk is not measured
    room = shutil.disk_usage("/dev/shm").free if os.path.isdir("/dev/shm") else 0
    folder = tempfile.mkdtemp(prefix="leat-link-", dir="/dev/shm" if room > args.mib * (5 << 19) else None)
    try:
        args.pack = args.pack or os.path.join(folder, "a.leat")
        if not os.path.exists(args.pack):
            make_pack(args.leat, args.pack, args.mib)
        if args.repeat > 0:
            measure(args, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
