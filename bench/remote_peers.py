#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPU and time to read one epoch of images from a bucket: leat compared with other readers.

    bench/remote_peers.py [--images 2000] [--kib 50] [--latency 0,0.02,0.1] [--python PYTHON]

SeaweedFS on 127.0.0.1 holds the same images as a leat pack, as single objects, as LitData chunks and as Mosaic MDS
shards; each reader passes every image's bytes once, in its random order, to Python. The sums of their CRCs must be
equal. A proxy adds latency to each answer. PYTHON is an interpreter that has the readers (boto3, obstore,
s3torchconnector, litdata, mosaicml-streaming) and leat; readers that cannot be imported are skipped. Prints a table
for bench/RESULTS.md. CPU seconds are those of the reading process."""
import argparse
import importlib
import json
import os
import pathlib
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "remote"))
READERS = ("leat", "boto3", "obstore", "s3torchconnector", "litdata", "mosaic")
THREADS = 32
# imported before the clock starts
MODULES = {"leat": ["leat", "leat._loader", "leat._batch"], "boto3": ["boto3"], "obstore": ["obstore", "obstore.store"],
           "s3torchconnector": ["s3torchconnector"], "litdata": ["litdata"], "mosaic": []}


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


def images(count: int, size: int) -> list[bytes]:
    rng = random.Random(1)
    return [b"\xff\xd8\xff\xe0" + rng.randbytes(rng.randrange(size // 2, size * 3 // 2)) for _ in range(count)]


def write(folder: str, count: int, size: int) -> None:
    """The images in all forms below `folder`."""
    import leat
    data = images(count, size)
    os.makedirs(os.path.join(folder, "objects"))
    for i, one in enumerate(data):
        pathlib.Path(folder, "objects", f"{i:06}.bin").write_bytes(one)
    with leat.Writer(os.path.join(folder, "p.leat"), {"data": bytes}, page_bytes="4M", sync=False) as writer:
        for i, one in enumerate(data):
            writer.append({"data": one}, key=f"{i:06}")
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


def read_leat(bucket: str, keys: list[str]):
    import leat
    with leat.Loader(f"s3://{bucket}/p.leat", 64, order="quasi_random", drop_last=False, as_="numpy") as loader:
        for batch in loader:
            yield from batch.data


def read_boto3(bucket: str, keys: list[str]):
    from concurrent.futures import ThreadPoolExecutor

    import boto3
    from botocore.config import Config
    client = boto3.client("s3", config=Config(max_pool_connections=THREADS))
    with ThreadPoolExecutor(THREADS) as pool:
        yield from pool.map(lambda key: client.get_object(Bucket=bucket, Key=key)["Body"].read(), keys)


def read_obstore(bucket: str, keys: list[str]):
    import asyncio

    import obstore
    from obstore.store import S3Store
    store = S3Store(bucket, endpoint=os.environ["AWS_ENDPOINT_URL"], region="us-east-1",
                    client_options={"allow_http": True}, virtual_hosted_style_request=False)

    async def fetch() -> list[bytes]:
        gate = asyncio.Semaphore(THREADS)

        async def one(key: str) -> bytes:
            async with gate:
                return bytes(await (await obstore.get_async(store, key)).bytes_async())
        return await asyncio.gather(*(one(key) for key in keys))
    yield from asyncio.run(fetch())


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
    data = litdata.StreamingDataset(f"s3://{bucket}/lit", shuffle=True, cache_dir=tempfile.mkdtemp(),
                                    storage_options={"endpoint_url": os.environ["AWS_ENDPOINT_URL"]})
    yield from data


def read_mosaic(bucket: str, keys: list[str]):
    from streaming import StreamingDataset
    os.environ["S3_ENDPOINT_URL"] = os.environ["AWS_ENDPOINT_URL"]
    data = StreamingDataset(remote=f"s3://{bucket}/mds", local=tempfile.mkdtemp(), shuffle=True, batch_size=64)
    for sample in data:
        yield sample["data"]


def run(reader: str, bucket: str, count: int) -> None:
    """In a separate process: reads one epoch; prints its time and CPU time."""
    if reader == "mosaic":
        stub_torchvision()
        importlib.import_module("streaming")
    keys = [f"objects/{i:06}.bin" for i in range(count)]
    random.Random(2).shuffle(keys)
    for name in MODULES[reader]:
        importlib.import_module(name)
    before = resource.getrusage(resource.RUSAGE_SELF)
    begin, first, total, check, seen = time.monotonic(), 0.0, 0, 0, 0
    for data in globals()[f"read_{reader}"](bucket, keys):
        first = first or time.monotonic() - begin
        check = (check + zlib.crc32(data)) & 0xFFFFFFFF
        total += len(data)
        seen += 1
    use = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"reader": reader, "images": seen, "bytes": total, "check": check, "seconds": time.monotonic() - begin,
                      "first": first, "cpu": use.ru_utime + use.ru_stime - before.ru_utime - before.ru_stime}))


def measure(args: argparse.Namespace) -> None:
    import servers
    folder = tempfile.mkdtemp(prefix="leat-peers-")
    weed = servers.Weed()
    try:
        subprocess.run([args.python, __file__, "--write", folder, "--images", str(args.images), "--kib", str(args.kib)], check=True)
        servers.make_bucket(weed.port)
        for place, _, names in os.walk(folder):
            for name in names:
                file = os.path.join(place, name)
                servers.put(weed.port, os.path.relpath(file, folder), pathlib.Path(file).read_bytes())
        wanted = sum(zlib.crc32(one) for one in images(args.images, args.kib << 10)) & 0xFFFFFFFF
        print("| latency ms | reader | images/s | ms to the first | CPU s per GB | CPU µs per image |\n|---|---|---|---|---|---|")
        for latency in [float(word) for word in args.latency.split(",")]:
            for reader in READERS:
                proxy = servers.Proxy(weed.port, latency=latency) if latency else None
                env = servers.environment(proxy.port if proxy else weed.port, LEAT_REMOTE_STALL_S="30", AWS_ALLOW_HTTP="true")
                best: dict = {}
                for _ in range(args.repeat):
                    done = subprocess.run([args.python, __file__, "--run", reader, "--images", str(args.images)], env=env,
                                          capture_output=True, text=True, timeout=600)
                    line = done.stdout.strip().splitlines()[-1] if done.returncode == 0 and done.stdout.strip() else ""
                    if not line.startswith("{"):
                        print(f"# {reader}: {(done.stderr.strip().splitlines() or ['no output'])[-1][:160]}", file=sys.stderr)
                        break
                    one = json.loads(line)
                    if one["check"] != wanted or one["images"] != args.images:
                        sys.exit(f"{reader}: other bytes than were written: {one}")
                    if not best or one["cpu"] < best["cpu"]:
                        best = one
                if proxy:
                    proxy.stop()
                if best:
                    cpu = best["cpu"]
                    print(f"| {latency * 1000:g} | {reader} | {best['images'] / best['seconds']:.0f} | {best['first'] * 1000:.0f} | "
                          f"{cpu / best['bytes'] * 1e9:.2f} | {cpu / best['images'] * 1e6:.0f} |", flush=True)
    finally:
        weed.stop()
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--kib", type=int, default=50)
    parser.add_argument("--latency", default="0,0.02,0.1")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--run", choices=READERS, help=argparse.SUPPRESS)
    parser.add_argument("--write", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.run:
        from servers import BUCKET
        run(args.run, BUCKET, args.images)
    elif args.write:
        write(args.write, args.images, args.kib << 10)
    else:
        measure(args)


if __name__ == "__main__":
    main()
