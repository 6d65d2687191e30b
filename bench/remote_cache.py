#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stress test of the disk cache: `bench/remote_cache.py [--processes 8] [--kills 200] [--disk FOLDER] [LEAT]`.

Processes load a pack from SeaweedFS on 127.0.0.1 with one cache folder, in different orders, and are killed (-9) at
random times until the given number of kills; a byte of the cache files is changed from time to time. Then every
digest must be right, the folder must be within its limit, and a last run must read nothing over the network.
`--disk` may be a small file system: a full disk only stops the caching."""
import argparse
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "remote"))
os.environ.setdefault("LEAT", str(ROOT / "build" / "tools" / "leat"))
import servers  # noqa: E402
from test_remote import png  # noqa: E402


def damage(folder: str, rng: random.Random) -> None:
    for name in os.listdir(folder):
        file = os.path.join(folder, name)
        if name.endswith(".data") and os.path.getsize(file) > 0:
            try:
                with open(file, "r+b") as f:
                    f.seek(rng.randrange(os.path.getsize(file)))
                    f.write(b"\xff")
            except OSError:
                pass  # a full disk


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--limit", default="1G")
    parser.add_argument("--disk", help="folder of the cache")
    parser.add_argument("leat", nargs="?", default=os.environ["LEAT"])
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="leat-cache-")
    cache = args.disk or os.path.join(folder, "cache")
    os.makedirs(cache, exist_ok=True)
    rng = random.Random(1)
    weed = servers.Weed()
    try:
        images = os.path.join(folder, "images")
        os.makedirs(images)
        for i in range(400):
            pathlib.Path(images, f"{i:05}.png").write_bytes(png(i, 96))
        pack = os.path.join(folder, "p.leat")
        subprocess.run([args.leat, "pack", images, "-o", pack, "--images", "keep", "-q", "--page-bytes", "128K"], check=True)
        servers.make_bucket(weed.port)
        servers.put(weed.port, "p.leat", pathlib.Path(pack).read_bytes())
        env = servers.environment(weed.port, LEAT_REMOTE_TRIES="40", LEAT_REMOTE_STALL_S="20")
        right = {}

        def command(source: str, seed: int, *more: str) -> list[str]:
            return [args.leat, "load", source, "--order", "quasi_random", "--seed", str(seed), "--batch", "20", "--size", "32",
                    "--memory", "24M", "--digest", "--json", *more]

        cached = ("--cache", f"disk:{cache}", "--cache-bytes", args.limit)
        remote = f"s3://{servers.BUCKET}/p.leat"
        for seed in range(args.processes):
            out = subprocess.run(command(pack, seed), capture_output=True, text=True, check=True).stdout
            right[seed] = json.loads(out)["digest"]
        running: dict[int, tuple[subprocess.Popen, float]] = {}
        kills = whole = wrong = failed = 0
        while kills < args.kills:
            for seed in range(args.processes):
                if seed not in running:
                    child = subprocess.Popen(command(remote, seed, *cached), env=env, stdout=subprocess.PIPE, text=True)
                    running[seed] = (child, time.monotonic() + rng.uniform(0.05, 1.2))
                child, end = running[seed]
                if child.poll() is None and time.monotonic() < end:
                    continue
                if child.poll() is None:
                    child.kill()
                    kills += 1
                out = child.communicate()[0]
                if child.returncode == 0:
                    whole += 1
                    wrong += json.loads(out)["digest"] != right[seed]
                elif child.returncode > 0:
                    failed += 1  # with an error: the server did not answer
                del running[seed]
                if rng.random() < 0.1:
                    damage(cache, rng)
            time.sleep(0.01)
        for child, _ in running.values():
            child.kill()
            child.communicate()
        last = []
        for _ in range(2):
            out = subprocess.run(command(remote, 0, *cached), env=env, capture_output=True, text=True, check=True).stdout
            last.append(json.loads(out))
        wrong += any(line["digest"] != right[0] for line in last)
        used = sum(os.stat(os.path.join(cache, n)).st_blocks * 512 for n in os.listdir(cache))
        print(json.dumps({"processes": args.processes, "kills": kills, "runs_to_the_end": whole, "wrong": wrong, "failed": failed,
                          "cache_bytes": used, "pack_bytes": os.path.getsize(pack),
                          "remote_bytes_at_the_end": last[-1]["remote_bytes"]}))
        sys.exit(1 if wrong else 0)
    finally:
        weed.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
