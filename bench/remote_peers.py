#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPU and time to read one epoch of images from a bucket: leat compared with other readers.

    bench/remote_peers.py [--images 2000] [--source FOLDER] [--job fetch,crop] [--latency 0,0.02,0.1] [--python PYTHON]

SeaweedFS on 127.0.0.1 holds the same JPEG files as leat packs, as single objects, as LitData chunks and as Mosaic MDS
shards: those below FOLDER, or made ones of SIDE x SIDE pixels. The jobs:

  fetch   hands every file's bytes to Python once, as bytes or as a view of the reader's memory where it has one (leat, obstore)
  crop    what training reads: a random crop (scale 0.08 to 1, ratio 3/4 to 4/3), resized to 224 x 224 x 3 bytes; leat
          reads a pack of tiled images and decodes the tiles it needs, the others decode the JPEG file with Pillow and
          resize the box with it, in as many threads as there are CPUs
  decode  all pixels, H x W x 3 bytes (made images only), by leat (`leat`: kept JPEG, `leat_tiled`: a tiled pack) or Pillow

Each reader has its own random order: leat shuffles within 16 pages of 4 MiB, with 320 MiB of memory, as docs/remote.md
says; LitData and Mosaic shuffle chunks of 16 MiB and their samples, the others read single objects in any order. Before the measured runs, one run per reader adds up the CRCs of all that it gave: the
sums must be equal (of `crop`, whose boxes are random, only the shapes are checked). bench/link.c adds latency to each answer. PYTHON is an interpreter
that has leat, Pillow and the readers (boto3, s3fs, obstore, s3torchconnector, litdata, mosaicml-streaming); a reader that
cannot be imported is left out. Runs alternate between the readers. Prints a table for bench/RESULTS.md: the median CPU time
of the reading process, its threads included. With --folder the files are kept there for the next call; --no-check leaves
the checked runs out, --repeat 0 the measured ones."""
import argparse
import importlib
import io
import json
import math
import os
import pathlib
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "remote"))
READERS = ("leat", "leat_tiled", "boto3", "s3fs", "obstore", "s3torchconnector", "litdata", "mosaic")
THREADS = 32
CROP = 224
DISTINCT = 200  # pictures; further objects repeat them
# imported before the clock starts
MODULES = {"leat": ["leat", "leat._loader", "leat._batch"], "leat_tiled": ["leat", "leat._loader", "leat._batch"], "boto3": ["boto3"], "s3fs": ["s3fs"],
           "obstore": ["obstore", "obstore.store"], "s3torchconnector": ["s3torchconnector"], "litdata": ["litdata"],
           "mosaic": ["streaming"]}


def stub_torchvision() -> None:
    """Mosaic imports torchvision for data sets that are not used here."""
    import importlib.machinery
    import types
    for name in ("torchvision", "torchvision.datasets", "torchvision.transforms", "torchvision.transforms.functional"):
        module = types.ModuleType(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        sys.modules[name] = module
    sys.modules["torchvision.datasets"].VisionDataset = object  # type: ignore[attr-defined]
    sys.modules["torchvision.transforms.functional"].to_tensor = None  # type: ignore[attr-defined]
    sys.modules["torchvision"].datasets = sys.modules["torchvision.datasets"]  # type: ignore[attr-defined]
    sys.modules["torchvision"].transforms = sys.modules["torchvision.transforms"]  # type: ignore[attr-defined]


def images(count: int, side: int) -> list[bytes]:
    """JPEG files of smooth colours with grain, as photographs have."""
    import numpy
    from PIL import Image
    rng = numpy.random.default_rng(1)
    made = []
    for _ in range(min(count, DISTINCT)):
        small = Image.fromarray(rng.integers(0, 256, (side // 16, side // 16, 3), numpy.uint8))
        pixels = numpy.asarray(small.resize((side, side), Image.Resampling.BICUBIC)).astype(numpy.int16)
        pixels = (pixels + rng.integers(-12, 13, pixels.shape)).clip(0, 255).astype(numpy.uint8)
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "JPEG", quality=85)
        made.append(file.getvalue())
    return [made[i % len(made)] for i in range(count)]


def photographs(folder: str, count: int) -> list[bytes]:
    found = sorted(p for p in pathlib.Path(folder).rglob("*") if p.suffix.lower() in (".jpeg", ".jpg"))
    return [found[i % len(found)].read_bytes() for i in range(count)]


def write(folder: str, source: str | None, count: int, side: int) -> None:
    """The images in all forms below `folder`, and the sums of the CRCs of files and pixels."""
    import numpy
    from PIL import Image

    import leat
    data = photographs(source, count) if source else images(count, side)
    os.makedirs(os.path.join(folder, "objects"))
    for i, one in enumerate(data):
        pathlib.Path(folder, "objects", f"{i:06}.jpg").write_bytes(one)
    for name, kind in (("bytes", bytes), ("image", "image")):
        with leat.Writer(os.path.join(folder, f"{name}.leat"), {name: kind}, page_bytes="4M", sync=False) as writer:
            for i, one in enumerate(data):
                writer.append({name: one}, key=f"{i:06}")
    leat.pack(os.path.join(folder, "image.leat"), os.path.join(folder, "tiled.leat"), images="tiled", page_bytes="4M", sync=False)
    try:
        from litdata.streaming.writer import BinaryWriter
        chunks = BinaryWriter(os.path.join(folder, "lit"), chunk_bytes=16 << 20)
        for i, one in enumerate(data):
            chunks[i] = one
        chunks.done()
        chunks.merge(1)
    except ImportError:
        pass
    try:
        stub_torchvision()
        from streaming import MDSWriter
        with MDSWriter(out=os.path.join(folder, "mds"), columns={"data": "bytes"}, size_limit=16 << 20) as shards:
            for one in data:
                shards.write({"data": one})
    except ImportError:
        pass
    pixels = {one: zlib.crc32(numpy.asarray(Image.open(io.BytesIO(one)))) for one in set(data)}
    pathlib.Path(folder, "sums.json").write_text(json.dumps({"fetch": sum(map(zlib.crc32, data)) & 0xFFFFFFFF, "decode": sum(pixels[d] for d in data) & 0xFFFFFFFF,
                                                             "crop": 0, "bytes": sum(map(len, data))}))


def read_leat(bucket: str, job: str, side: int, pack: str = "image"):
    import leat
    options = {"order": "quasi_random", "window_pages": 16, "streams": 2, "memory": "320M", "drop_last": False, "as_": "numpy"}
    if job != "fetch":
        op = leat.ops.RandomResizedCrop(CROP) if job == "crop" else leat.ops.CenterCrop(side)
        with leat.Loader(f"s3://{bucket}/{pack}.leat", 64, [op], channels_last=True, **options) as loader:
            for batch in loader:
                yield from batch.image
        return
    with leat.Loader(f"s3://{bucket}/bytes.leat", 64, **options) as loader:
        for batch in loader:
            values, ends = memoryview(batch.bytes.values), batch.bytes.offsets.tolist()
            yield from (values[first:end] for first, end in zip(ends, ends[1:]))


def read_boto3(bucket: str, keys: list[str]):
    from concurrent.futures import ThreadPoolExecutor

    import boto3
    from botocore.config import Config
    client = boto3.client("s3", config=Config(max_pool_connections=THREADS))
    with ThreadPoolExecutor(THREADS) as pool:
        yield from pool.map(lambda key: client.get_object(Bucket=bucket, Key=key)["Body"].read(), keys)


def read_s3fs(bucket: str, keys: list[str]):
    import s3fs
    files = s3fs.S3FileSystem(endpoint_url=os.environ["AWS_ENDPOINT_URL"])
    for at in range(0, len(keys), 256):
        names = [f"{bucket}/{key}" for key in keys[at:at + 256]]
        found = files.cat(names, batch_size=THREADS)
        yield from (found[name] for name in names)


def read_obstore(bucket: str, keys: list[str]):
    import asyncio

    import obstore
    from obstore.store import S3Store
    store = S3Store(bucket, endpoint=os.environ["AWS_ENDPOINT_URL"], region="us-east-1",
                    client_options={"allow_http": True}, virtual_hosted_style_request=False)

    async def fetch(some: list[str]) -> list:
        gate = asyncio.Semaphore(THREADS)

        async def one(key: str):
            async with gate:
                return memoryview(await (await obstore.get_async(store, key)).bytes_async())
        return await asyncio.gather(*(one(key) for key in some))
    with asyncio.Runner() as runner:
        for at in range(0, len(keys), 256):
            yield from runner.run(fetch(keys[at:at + 256]))


def read_s3torchconnector(bucket: str, keys: list[str]):
    from concurrent.futures import ThreadPoolExecutor

    from s3torchconnector import S3ClientConfig
    from s3torchconnector._s3client import S3Client
    client = S3Client("us-east-1", endpoint=os.environ["AWS_ENDPOINT_URL"],
                      s3client_config=S3ClientConfig(force_path_style=True))
    with ThreadPoolExecutor(THREADS) as pool:
        yield from pool.map(lambda key: client.get_object(bucket, key).read(), keys)


def read_litdata(bucket: str, keys: list[str]):
    import litdata
    import litdata.streaming.downloader
    litdata.streaming.downloader._OBSTORE_INIT_PID = -1  # boto3 instead of obstore, which it does not let use plain HTTP
    cache = tempfile.mkdtemp()
    try:
        yield from litdata.StreamingDataset(f"s3://{bucket}/lit", shuffle=True, cache_dir=cache,
                                            storage_options={"endpoint_url": os.environ["AWS_ENDPOINT_URL"]})
    finally:
        shutil.rmtree(cache, ignore_errors=True)


def read_mosaic(bucket: str, keys: list[str]):
    from streaming import StreamingDataset
    os.environ["S3_ENDPOINT_URL"] = os.environ["AWS_ENDPOINT_URL"]
    cache = tempfile.mkdtemp()
    try:
        for sample in StreamingDataset(remote=f"s3://{bucket}/mds", local=cache, shuffle=True, batch_size=64):
            yield sample["data"]
    finally:
        shutil.rmtree(cache, ignore_errors=True)


def whole(data: bytes):
    import numpy
    from PIL import Image
    return numpy.asarray(Image.open(io.BytesIO(data)))


def random_crop(data: bytes):
    """torchvision's RandomResizedCrop on a Pillow image, without torchvision."""
    import numpy
    from PIL import Image
    image = Image.open(io.BytesIO(data)).convert("RGB")
    width, height = image.size
    for _ in range(10):
        area = width * height * random.uniform(0.08, 1)
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            break
    else:
        w = h = min(width, height)
    x, y = random.randint(0, width - w), random.randint(0, height - h)
    return numpy.asarray(image.resize((CROP, CROP), Image.Resampling.BILINEAR, (x, y, x + w, y + h)))


def decoded(files, decode):
    """In threads: Pillow decodes without Python's lock."""
    from collections import deque
    from concurrent.futures import ThreadPoolExecutor
    cpus = len(os.sched_getaffinity(0))
    with ThreadPoolExecutor(cpus) as pool:
        waiting: deque = deque()
        for one in files:
            waiting.append(pool.submit(decode, one))
            if len(waiting) > 4 * cpus:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def results(reader: str, bucket: str, keys: list[str], job: str, side: int):
    if reader.startswith("leat"):
        return read_leat(bucket, job, side, "tiled" if reader == "leat_tiled" or job == "crop" else "image")
    files = globals()[f"read_{reader}"](bucket, keys)
    return files if job == "fetch" else decoded(files, random_crop if job == "crop" else whole)


def used() -> float:
    return sum(use.ru_utime + use.ru_stime for use in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def run(args: argparse.Namespace, bucket: str) -> None:
    """In a separate process: reads one epoch; prints its time and CPU time, and with --check the sum of the CRCs."""
    import numpy
    from PIL import Image
    Image.init()
    if args.run == "mosaic":
        stub_torchvision()
    keys = [f"objects/{i:06}.jpg" for i in range(args.images)]
    random.Random(2).shuffle(keys)
    for name in MODULES[args.run]:
        importlib.import_module(name)
    before, begin, first, total, check, seen = used(), time.monotonic(), 0.0, 0, 0, 0
    for data in results(args.run, bucket, keys, args.job, args.side):
        first = first or time.monotonic() - begin
        if args.job == "crop" and data.shape != (CROP, CROP, 3):
            sys.exit(f"an image of the shape {data.shape}")
        if args.check and args.job != "crop":
            check = (check + zlib.crc32(numpy.ascontiguousarray(data) if args.job == "decode" else data)) & 0xFFFFFFFF
        total += len(data)
        seen += 1
    print(json.dumps({"images": seen, "check": check, "seconds": time.monotonic() - begin, "first": first, "cpu": used() - before}))


def child(args: argparse.Namespace, env: dict[str, str], reader: str, job: str, *more: str) -> dict:
    done = subprocess.run([args.python, __file__, "--run", reader, "--images", str(args.images), "--side", str(args.side),
                           "--job", job, *more], env=env, capture_output=True, text=True, timeout=600)
    line = done.stdout.strip().splitlines()[-1] if done.returncode == 0 and done.stdout.strip() else ""
    if line.startswith("{"):
        return json.loads(line)
    print(f"# {reader}: {(done.stderr.strip().splitlines() or ['no output'])[-1][:160]}", file=sys.stderr)
    return {}


def one_setting(args: argparse.Namespace, env: dict[str, str], job: str, made: dict) -> dict[str, list[dict]]:
    runs: dict[str, list[dict]] = {}
    for reader in args.readers.split(","):
        if reader == "leat_tiled" and job != "decode":
            continue
        checked = child(args, env, reader, job, "--check") if not args.no_check else {"check": made[job], "images": args.images}
        if checked and (checked["check"] != made[job] or checked["images"] != args.images):
            sys.exit(f"{reader}: other data than was written: {checked}")
        if checked:
            runs[reader] = []
    for _ in range(args.repeat):
        for reader, found in runs.items():
            one = child(args, env, reader, job)
            if one:
                found.append(one)
    return {reader: found for reader, found in runs.items() if found}


def prepare(args: argparse.Namespace) -> dict:
    sums = pathlib.Path(args.folder, "sums.json")
    if not sums.exists():
        more = ["--source", args.source] if args.source else []
        subprocess.run([args.python, __file__, "--write", args.folder, "--images", str(args.images), "--side", str(args.side), *more],
                       check=True)
    return json.loads(sums.read_text())


def upload(port: int, folder: str) -> None:
    import servers
    servers.make_bucket(port)
    for place, _, names in os.walk(folder):
        for name in names:
            file = os.path.join(place, name)
            servers.put(port, os.path.relpath(file, folder), pathlib.Path(file).read_bytes())


def ratios(ours: list[dict], found: list[dict]) -> str:
    """CPU time divided by that of leat's run in the same round: the median, the smallest and the largest."""
    each = [one["cpu"] / other["cpu"] for one, other in zip(found, ours)]
    return f"{statistics.median(each):.1f} ({min(each):.1f} to {max(each):.1f})" if each else ""


def table(args: argparse.Namespace, port: int, link: str, made: dict) -> None:
    import servers
    print(f"{args.images} JPEG files of {made['bytes'] / args.images / 1024:.0f} KiB each on average; medians of {args.repeat} runs\n")
    print("| job | latency ms | reader | images/s | ms to the first | CPU s per GB | CPU µs per image | × leat's CPU |\n"
          "|---|---|---|---|---|---|---|---|")
    for latency in [float(word) for word in args.latency.split(",")]:
        for job in args.job.split(","):
            slow = subprocess.Popen([link, str(port), str(latency * 1000), "0"], stdout=subprocess.PIPE, text=True)
            env = servers.environment(int(slow.stdout.readline()), LEAT_REMOTE_STALL_S="30",  # type: ignore[union-attr]
                                      AWS_ALLOW_HTTP="true")
            try:
                runs = one_setting(args, env, job, made)
            finally:
                slow.kill()
                slow.wait()
            for reader, found in runs.items():
                cpu = statistics.median(one["cpu"] for one in found)
                print(f"| {job} | {latency * 1000:g} | {reader} | "
                      f"{args.images / statistics.median(one['seconds'] for one in found):.0f} | "
                      f"{statistics.median(one['first'] for one in found) * 1000:.0f} | {cpu / made['bytes'] * 1e9:.2f} | "
                      f"{cpu / args.images * 1e6:.0f} | {ratios(runs.get('leat', []), found)} |", flush=True)


def measure(args: argparse.Namespace) -> None:
    import servers
    own = tempfile.mkdtemp(prefix="leat-peers-")
    args.folder = args.folder or os.path.join(own, "files")
    link, weed = os.path.join(own, "link"), None
    try:
        os.makedirs(args.folder, exist_ok=True)
        made = prepare(args)
        subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", "-pthread", "-o", link, str(ROOT / "bench" / "link.c")], check=True)
        weed = servers.Weed()
        upload(weed.port, args.folder)
        table(args, weed.port, link, made)
    finally:
        if weed is not None:
            weed.stop()
        shutil.rmtree(own, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--side", type=int, default=320)
    parser.add_argument("--source")
    parser.add_argument("--folder")
    parser.add_argument("--job", default="fetch,crop")
    parser.add_argument("--latency", default="0,0.02,0.1")
    parser.add_argument("--no-check", action="store_true")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--readers", default=",".join(READERS))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--run", choices=READERS, help=argparse.SUPPRESS)
    parser.add_argument("--check", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--write", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.run:
        from servers import BUCKET
        run(args, BUCKET)
    elif args.write:
        write(args.write, args.source, args.images, args.side)
    else:
        measure(args)


if __name__ == "__main__":
    main()
