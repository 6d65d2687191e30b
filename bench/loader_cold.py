#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a pack that is not in memory: leat's orders and caches compared with a plain sequential direct read of the same
file, and with FFCV on the same images if it is installed.

    python bench/loader_cold.py --leat build-release/tools/leat --pack raw.leat [--beton raw.beton] [--repeats 5]

Before each run the file is dropped from the page cache. Runs alternate; medians are compared. Both scale the middle
of each image (about 96 pixels square) to 32, so that mostly reading is measured, though leat verifies every byte it
reads; --full-crop uses the usual random crop instead.

leat is timed over its whole first epoch. FFCV's process cache is timed in its second epoch, because it compiles in
the first while its threads continue reading: timed from the first batch on, most of its file would have been read
before the clock started. A file that FFCV has mapped cannot be dropped, so its os_cache is timed in the first epoch
from the first batch on.

A virtual disk may be served from its host's memory; an epoch shorter than a second is mostly start-up.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

from cold import drop

LEAT = {f"leat {order}, {cache}": ["--order", order, "--cache", cache]
        for order in ("quasi_random", "random") for cache in ("process", "os")}
FFCV = """
import json, sys, time
from ffcv.fields.decoders import CenterCropRGBImageDecoder, IntDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import ToTensor
path, os_cache, threads = sys.argv[1], sys.argv[2] == "os", int(sys.argv[3])
loader = Loader(path, batch_size=64, num_workers=threads, order=OrderOption.RANDOM, os_cache=os_cache,
                pipelines={"image": [CenterCropRGBImageDecoder((32, 32), 0.25), ToTensor()], "label": [IntDecoder(), ToTensor()]})
def epoch():
    samples, first, begin = 0, None, time.monotonic()
    for batch in loader:
        if samples == 0: first = time.monotonic()
        samples += len(batch[0])
    end = time.monotonic()
    return samples / (end - begin), (samples - 64) / (end - first)
rate = epoch()[1]
if not os_cache:
    sys.path.insert(0, sys.argv[4])
    from cold import drop
    drop(path)
    rate = epoch()[0]
print(json.dumps({"samples_per_s": rate}))
"""


def plain(path):
    """Bytes per second of a sequential read of the file that bypasses the page cache."""
    begin = time.monotonic()
    subprocess.run(["dd", f"if={path}", "of=/dev/null", "bs=4M", "iflag=direct"], check=True, stderr=subprocess.DEVNULL)
    return os.path.getsize(path) / (time.monotonic() - begin)


def leat(o, flags):
    crop = [] if o.full_crop else ["--ops", "CenterCrop(96); Resize(32)"]
    out = subprocess.run([o.leat, "load", o.pack, "--threads", str(o.threads), "--memory", o.memory, "--batch", "64",
                          "--json", *crop, *flags], check=True, capture_output=True, text=True).stdout
    line = json.loads(out.splitlines()[-1])
    return line["read_bytes"] / line["seconds"], line["samples_per_s"]


def ffcv(o, cache):
    run = subprocess.run([sys.executable, "-c", FFCV, o.beton, cache, str(o.threads), os.path.dirname(__file__)],
                         capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(run.stderr[-800:])
    return json.loads(run.stdout.splitlines()[-1])["samples_per_s"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--leat", required=True)
    p.add_argument("--pack", required=True)
    p.add_argument("--beton", help="the same images written raw by FFCV")
    p.add_argument("--memory", default="256M")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--repeats", type=int, default=5)
    p.add_argument("--full-crop", action="store_true")
    o = p.parse_args()
    plains, rates, samples = [], {n: [] for n in LEAT}, {n: [] for n in LEAT}
    peers = {n: [] for n in ("FFCV random, os_cache", "FFCV random, process cache")} if o.beton else {}
    for _ in range(o.repeats):
        drop(o.pack)
        plains.append(plain(o.pack))
        for name, flags in LEAT.items():
            drop(o.pack)
            rate, per_s = leat(o, flags)
            rates[name].append(rate)
            samples[name].append(per_s)
        for name, got in peers.items():
            drop(o.beton)
            got.append(ffcv(o, "os" if "os_cache" in name else "process"))
    base = statistics.median(plains)
    print(f"sequential direct read: {base / 1e6:.0f} MB/s ({min(plains) / 1e6:.0f}-{max(plains) / 1e6:.0f})")
    for name in LEAT:
        rate = statistics.median(rates[name])
        print(f"{name}: {rate / 1e6:.0f} MB/s, {100 * rate / base:.0f} % of it, "
              f"{statistics.median(samples[name]):.0f} samples/s")
    best = max((statistics.median(v) for v in peers.values()), default=0)
    for name, got in peers.items():
        print(f"{name}: {statistics.median(got):.0f} samples/s")
    if best:
        mine = max(statistics.median(samples[n]) for n in LEAT if " random" in n)
        print(f"leat random is {mine / best:.2f} x FFCV's best")


if __name__ == "__main__":
    main()
