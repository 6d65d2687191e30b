#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads through a proxy that breaks answers: `bench/remote_faults.py [--reads 20000] [--share 0.05] [LEAT]`.

A pack in SeaweedFS on 127.0.0.1 is loaded in random order, sample by sample, until the given number of reads, once
without faults and once with each fault at `share` (dropped connections, resets in the body, 503, truncated bodies,
short bodies with a right length, wrong bytes, stalls). The digests of both must be equal. Prints requests and bytes
compared with the ideal, and the memory of both runs. scripts/setup.sh python installs the server."""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "remote"))
os.environ.setdefault("LEAT", str(ROOT / "build" / "tools" / "leat"))
import servers  # noqa: E402
from test_remote import png  # noqa: E402

KINDS = ("drop", "reset", "error", "truncate", "short", "wrong", "stall")
SAMPLES = 2000


def load(leat: str, epochs: int, proxy: servers.Proxy) -> tuple[list[dict], int]:
    env = servers.environment(proxy.port, LEAT_REMOTE_TRIES="40")
    command = ["/usr/bin/time", "-f", "%M", leat, "load", f"s3://{servers.BUCKET}/p.leat", "--order", "random", "--batch", "50",
               "--size", "32", "--memory", "24M", "--epochs", str(epochs), "--digest", "--json"]
    run = subprocess.run(command, env=env, capture_output=True, text=True, timeout=3600)
    if run.returncode != 0:
        sys.exit(f"failed: {run.stderr}")
    return [json.loads(line) for line in run.stdout.splitlines()], int(run.stderr.split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reads", type=int, default=20000)
    parser.add_argument("--share", type=float, default=0.05)
    parser.add_argument("leat", nargs="?", default=os.environ["LEAT"])
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="leat-faults-")
    weed = servers.Weed()
    try:
        images = os.path.join(folder, "images")
        os.makedirs(images)
        for i in range(SAMPLES):
            pathlib.Path(images, f"{i:05}.png").write_bytes(png(i, 48))
        pack = os.path.join(folder, "p.leat")
        subprocess.run([args.leat, "pack", images, "-o", pack, "--images", "keep", "-q"], check=True)
        servers.make_bucket(weed.port)
        servers.put(weed.port, "p.leat", pathlib.Path(pack).read_bytes())
        epochs = -(-args.reads // SAMPLES)
        rows = {}
        for name, faults in (("ideal", {}), ("faults", {kind: args.share for kind in KINDS})):
            proxy = servers.Proxy(weed.port, seed=1, **faults)
            out, memory = load(args.leat, epochs, proxy)
            proxy.stop()
            rows[name] = {"digests": [line["digest"] for line in out], "requests": proxy.gets, "bytes": proxy.bytes,
                          "broken": sum(proxy.hits.values()), "retries": sum(line["remote_retries"] for line in out),
                          "max_rss_mib": memory // 1024, **{k: v for k, v in sorted(proxy.hits.items())}}
        same = rows["ideal"].pop("digests") == rows["faults"].pop("digests")
        ideal, found = rows["ideal"], rows["faults"]
        extra = (found["requests"] - found["broken"]) / ideal["requests"]
        print(json.dumps({"reads": epochs * SAMPLES, "share": args.share, "same_bytes": same, "ideal": ideal, "faults": found,
                          "requests_without_broken_ones": round(extra, 3)}))
        if not same or extra > 1.1:
            sys.exit("wrong bytes" if not same else "more requests than 1.1 times the ideal and the retries")
    finally:
        weed.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
