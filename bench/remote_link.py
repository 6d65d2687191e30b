#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The share of a link that the loader uses: `bench/remote_link.py [--mib 1024] [--gbit 1,4,10] [--ms 0,20,100] [LEAT]`.

bench/link.c serves a pack on 127.0.0.1 with a latency before each answer and one rate for all connections together. For
each setting, an epoch of `leat load` (quasi_random, samples of 100 kB that are not decoded, pages of 4 MiB) and curl with
64 ranges of 8 MiB at once take turns. Prints a table for bench/RESULTS.md: the better of the runs of each as shares of the
limit, the time to the first batch, and CPU seconds. Needs about three minutes and an idle machine: server and reader
share its CPUs."""
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


def load(leat: str, url: str) -> dict[str, float]:
    out = subprocess.run([leat, "load", url, "--order", "quasi_random", "--batch", "64", "--json"], check=True,
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


def setting(args: argparse.Namespace, link: str, pack: str, folder: str, gbit: float, ms: float) -> str:
    size, ours, theirs = os.path.getsize(pack), [], []
    server = subprocess.Popen([link, pack, str(ms), str(gbit)], stdout=subprocess.PIPE, text=True)
    try:
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}/a.leat"  # type: ignore[union-attr]
        for _ in range(args.repeat):
            ours.append(load(args.leat, url))
            theirs.append(curl(url, size, folder))
    finally:
        server.kill()
        server.wait()
    best, other = max(ours, key=lambda run: run["rate"]), max(theirs, key=lambda run: run["rate"])
    limit = gbit * 1e9 / 8
    return (f"| {gbit:g} | {ms:g} | {best['rate'] / 1e6:.0f} | {100 * best['rate'] / limit:.0f} % | "
            f"{100 * other['rate'] / limit:.0f} % | {best['rate'] / other['rate']:.2f} | {best['first'] * 1000:.0f} | "
            f"{best['cpu']:.2f} | {other['cpu']:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--gbit", default="1,4,10")
    parser.add_argument("--ms", default="0,20,100")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("leat", nargs="?", default=str(ROOT / "build" / "tools" / "leat"))
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="leat-link-")
    try:
        link, pack = os.path.join(folder, "link"), make_pack(args.leat, folder, args.mib)
        subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", "-pthread", "-o", link, str(ROOT / "bench" / "link.c")], check=True)
        print("| Gbit/s | latency ms | leat MB/s | of the limit | curl, of the limit | leat / curl | ms to the first batch | "
              "leat CPU s per GB | curl CPU s per GB |\n|---|---|---|---|---|---|---|---|---|", flush=True)
        for gbit in args.gbit.split(","):
            for ms in args.ms.split(","):
                print(setting(args, link, pack, folder, float(gbit), float(ms)), flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
