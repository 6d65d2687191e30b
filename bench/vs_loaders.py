#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""leat's loader compared with others: same images, same cores, same output, alternating, several repeats.

    python bench/vs_loaders.py --images DIR --leat build-release/tools/leat --work /tmp/vs

Each run is a separate process that loads one warm-up epoch and then times `--epochs` more of RandomResizedCrop 224 +
horizontal flip to uint8 batches. Peers that are not installed are named and skipped: pip install torch torchvision
ffcv webdataset litdata mosaicml-streaming spdl opencv-python-headless tensorflow-cpu (FFCV also needs libopencv-dev
and libturbojpeg0-dev to build, SPDL the libraries of FFmpeg). Results go to stdout as a table, with --out to a
Markdown file and with --plot to an SVG.

Reported per peer: images/s (median, lowest, highest), CPU seconds per 1,000 images of the whole process tree, peak
resident memory (sum of PSS of the tree), time to the first batch, ratio to leat.
"""
import argparse
import io
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import threading
import time

SIZE, SCALE, RATIO = 224, (0.08, 1.0), (3 / 4, 4 / 3)


# ---- measuring --------------------------------------------------------------------------------
class Memory(threading.Thread):
    """Highest sum of PSS over this process and its children."""

    def __init__(self):
        super().__init__(daemon=True)
        self.peak, self.stop = 0, False

    @staticmethod
    def tree(pid):
        yield pid
        try:
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/children") as f:
                    for child in f.read().split():
                        yield from Memory.tree(int(child))
        except OSError:
            return

    @staticmethod
    def pss(pid):
        try:
            with open(f"/proc/{pid}/smaps_rollup") as f:
                for line in f:
                    if line.startswith("Pss:"):
                        return int(line.split()[1]) * 1024
        except OSError:
            pass
        return 0

    def run(self):
        while not self.stop:
            self.peak = max(self.peak, sum(self.pss(p) for p in set(self.tree(os.getpid()))))
            time.sleep(0.1)


def cpu_seconds():
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def measure(loader, epochs):
    """loader() returns an iterable of batches (first item: images, batch first) for one epoch."""
    memory = Memory()
    memory.start()
    begin, cpu_begin = time.perf_counter(), cpu_seconds()
    first = None
    for batch in loader():
        first = first or time.perf_counter() - begin
        shape = tuple(batch.shape)
        assert sorted(shape[1:]) == [3, SIZE, SIZE] and "uint8" in str(batch.dtype), (shape, batch.dtype)
    # the warm-up epoch is over: time the rest; CPU of worker processes counts when they end
    images, cpu_begin, begin = 0, cpu_seconds(), time.perf_counter()
    for _ in range(epochs):
        for batch in loader():
            images += len(batch)
    seconds, cpu = time.perf_counter() - begin, cpu_seconds() - cpu_begin
    memory.stop = True
    memory.join()
    assert images > 0 and images % epochs == 0, f"{images} images in {epochs} epochs"
    print(json.dumps({"images": images, "seconds": seconds, "cpu_seconds": cpu, "peak_bytes": memory.peak,
                      "first_batch_s": first}))


# ---- peers ------------------------------------------------------------------------------------
class Peer:
    """prepare() makes the data set once; load() returns a function that iterates over one epoch."""

    def __init__(self, options):
        self.o = options
        self.dir = pathlib.Path(options.work) / self.name

    def files(self):
        found = sorted(p for p in pathlib.Path(self.o.images).rglob("*") if p.suffix.lower() in (".jpeg", ".jpg"))
        return [(p, i // max(1, len(found) // 20)) for i, p in enumerate(found)] * self.o.repeat


def pil_transform():
    from torchvision import transforms as T

    return T.Compose([T.RandomResizedCrop(SIZE, SCALE, RATIO), T.RandomHorizontalFlip(), T.PILToTensor()])


def open_rgb(data):
    from PIL import Image

    return Image.open(io.BytesIO(data)).convert("RGB")


def open_size(path):
    from PIL import Image

    with Image.open(path) as im:
        return im.size


class TorchPillow(Peer):
    name = "PyTorch DataLoader + Pillow"
    needs = "torch torchvision PIL"

    def load(self):
        import torch
        from PIL import Image

        files, transform = self.files(), pil_transform()

        class Images(torch.utils.data.Dataset):
            def __len__(self):
                return len(files)

            def __getitem__(self, i):
                with Image.open(files[i][0]) as im:
                    return transform(im.convert("RGB")), files[i][1]

        loader = torch.utils.data.DataLoader(Images(), self.o.batch, shuffle=True, num_workers=self.o.threads,
                                             prefetch_factor=4)
        return lambda: (images for images, _ in loader)


class TorchVision(Peer):
    name = "PyTorch DataLoader + torchvision v2"
    needs = "torch torchvision"

    def load(self):
        import torch
        from torchvision import io as vio
        from torchvision.transforms import v2

        files = self.files()
        transform = v2.Compose([v2.RandomResizedCrop(SIZE, SCALE, RATIO, antialias=True), v2.RandomHorizontalFlip()])

        class Images(torch.utils.data.Dataset):
            def __len__(self):
                return len(files)

            def __getitem__(self, i):
                raw = vio.read_file(str(files[i][0]))
                return transform(vio.decode_jpeg(raw, mode=vio.ImageReadMode.RGB)), files[i][1]

        def start(_):
            torch.set_num_threads(1)

        loader = torch.utils.data.DataLoader(Images(), self.o.batch, shuffle=True, num_workers=self.o.threads,
                                             prefetch_factor=4, worker_init_fn=start)
        return lambda: (images for images, _ in loader)


class OpenCV(Peer):
    """Full decode, crop, area or bilinear resize: not Pillow's pixels, but common for speed."""

    name = "PyTorch DataLoader + OpenCV"
    needs = "torch torchvision cv2"

    def load(self):
        import cv2
        import torch
        from torchvision import transforms as T

        files = self.files()

        class Images(torch.utils.data.Dataset):
            def __len__(self):
                return len(files)

            def __getitem__(self, i):
                im = cv2.cvtColor(cv2.imread(str(files[i][0]), cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)
                size = torch.empty((3, *im.shape[:2]), device="meta")
                y, x, h, w = T.RandomResizedCrop.get_params(size, SCALE, RATIO)
                im = cv2.resize(im[y:y + h, x:x + w], (SIZE, SIZE),
                                interpolation=cv2.INTER_AREA if h > SIZE and w > SIZE else cv2.INTER_LINEAR)
                if torch.rand(()) < 0.5:
                    im = im[:, ::-1]
                return torch.from_numpy(im.transpose(2, 0, 1).copy()), files[i][1]

        def start(_):
            cv2.setNumThreads(0)

        loader = torch.utils.data.DataLoader(Images(), self.o.batch, shuffle=True, num_workers=self.o.threads,
                                             prefetch_factor=4, worker_init_fn=start)
        return lambda: (images for images, _ in loader)


class Spdl(Peer):
    """Threads; FFmpeg decodes in full, then crops, scales and flips by its filter."""

    name = "SPDL (FFmpeg)"
    needs = "spdl.io spdl.pipeline torchvision"

    def load(self):
        import random

        import spdl.io
        import torch
        from spdl.pipeline import PipelineBuilder
        from torchvision import transforms as T

        files = [str(path) for path, _ in self.files()]
        sizes = [open_size(path) for path in files]

        def frames(i):
            width, height = sizes[i]
            y, x, h, w = T.RandomResizedCrop.get_params(torch.empty((3, height, width), device="meta"), SCALE, RATIO)
            flip = ",hflip" if random.random() < 0.5 else ""
            filters = f"crop={w}:{h}:{x}:{y}:exact=1,scale={SIZE}:{SIZE}:flags=bilinear{flip},format=rgb24"
            return spdl.io.decode_packets(spdl.io.demux_image(files[i]), filter_desc=filters)

        def batch(items):
            return spdl.io.to_numpy(spdl.io.convert_frames(items))

        def epoch():
            order = random.sample(range(len(files)), len(files))
            pipeline = (PipelineBuilder().add_source(order).pipe(frames, concurrency=self.o.threads)
                        .aggregate(self.o.batch).pipe(batch).add_sink(4).build(num_threads=self.o.threads))
            with pipeline.auto_stop():
                yield from pipeline.get_iterator(timeout=60)

        return epoch


class TensorFlow(Peer):
    """tf.data: decodes only the rows of the crop, bilinear without antialiasing."""

    name = "tf.data decode_and_crop_jpeg"
    needs = "tensorflow"

    def load(self):
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(self.o.threads)
        tf.config.threading.set_inter_op_parallelism_threads(self.o.threads)
        files = [str(path) for path, _ in self.files()]

        def sample(path):
            data = tf.io.read_file(path)
            begin, size, _ = tf.image.sample_distorted_bounding_box(
                tf.image.extract_jpeg_shape(data), tf.zeros([1, 0, 4]), min_object_covered=0.0,
                area_range=SCALE, aspect_ratio_range=RATIO, use_image_if_no_bounding_boxes=True)
            window = tf.stack([begin[0], begin[1], size[0], size[1]])
            image = tf.image.decode_and_crop_jpeg(data, window, channels=3, dct_method="INTEGER_ACCURATE")
            image = tf.image.random_flip_left_right(tf.image.resize(image, (SIZE, SIZE)))
            return tf.cast(tf.round(image), tf.uint8)

        data = (tf.data.Dataset.from_tensor_slices(files).shuffle(len(files))
                .map(sample, num_parallel_calls=self.o.threads, deterministic=False).batch(self.o.batch).prefetch(4))
        return lambda: data.as_numpy_iterator()


class FfcvBase(Peer):
    needs = "ffcv torch"
    image = {}

    def prepare(self):
        import numpy as np
        from ffcv.fields import IntField, RGBImageField
        from ffcv.writer import DatasetWriter

        files = self.files()

        class Images:
            def __len__(self):
                return len(files)

            def __getitem__(self, i):
                return np.array(open_rgb(files[i][0].read_bytes())), files[i][1]

        writer = DatasetWriter(str(self.dir / "d.beton"), {"image": RGBImageField(**self.image), "label": IntField()},
                               num_workers=self.o.threads)
        writer.from_indexed_dataset(Images())

    def load(self):
        from ffcv.fields.decoders import IntDecoder, RandomResizedCropRGBImageDecoder
        from ffcv.loader import Loader, OrderOption
        from ffcv.transforms import RandomHorizontalFlip, ToTensor, ToTorchImage

        loader = Loader(str(self.dir / "d.beton"), batch_size=self.o.batch, num_workers=self.o.threads,
                        order=OrderOption.RANDOM, os_cache=True, drop_last=False,
                        pipelines={"image": [RandomResizedCropRGBImageDecoder((SIZE, SIZE)), RandomHorizontalFlip(),
                                             ToTensor(), ToTorchImage(convert_back_int16=False)],
                                   "label": [IntDecoder(), ToTensor()]})
        return lambda: (images for images, _ in loader)


class FfcvJpg(FfcvBase):
    name = "FFCV jpg q90"
    image = dict(write_mode="jpg", jpeg_quality=90)


class FfcvMix(FfcvBase):
    name = "FFCV 50% raw, max side 500"
    image = dict(write_mode="proportion", compress_probability=0.5, max_resolution=500, jpeg_quality=90)


class FfcvRaw(FfcvBase):
    name = "FFCV raw, max side 256"
    image = dict(write_mode="raw", max_resolution=256)


class WebDataset(Peer):
    name = "WebDataset + Pillow"
    needs = "webdataset torch torchvision"

    def prepare(self):
        import webdataset as wds

        with wds.ShardWriter(str(self.dir / "d-%04d.tar"), maxcount=500, verbose=0) as sink:
            for i, (path, label) in enumerate(self.files()):
                sink.write({"__key__": f"{i:08d}", "jpg": path.read_bytes(), "cls": label})

    def load(self):
        import torch
        import webdataset as wds

        shards, transform = sorted(str(p) for p in self.dir.glob("*.tar")), pil_transform()
        data = (wds.WebDataset(shards, shardshuffle=len(shards), empty_check=False).shuffle(500)
                .to_tuple("jpg", "cls").map_tuple(lambda b: transform(open_rgb(b)), int))
        loader = torch.utils.data.DataLoader(data, self.o.batch, num_workers=self.o.threads, prefetch_factor=4)
        return lambda: (images for images, _ in loader)


class LitData(Peer):
    name = "LitData + Pillow"
    needs = "litdata torch torchvision"

    def prepare(self):
        from litdata.streaming.writer import BinaryWriter

        writer = BinaryWriter(str(self.dir / "d"), chunk_bytes="64MB")
        for i, (path, label) in enumerate(self.files()):
            writer[i] = {"image": path.read_bytes(), "label": label}
        writer.done()
        writer.merge(1)

    def load(self):
        import litdata

        transform = pil_transform()

        class Images(litdata.StreamingDataset):
            def __getitem__(self, i):
                return transform(open_rgb(super().__getitem__(i)["image"]))

        data = Images(str(self.dir / "d"), shuffle=True, seed=1)
        loader = litdata.StreamingDataLoader(data, batch_size=self.o.batch, num_workers=self.o.threads)
        return lambda: iter(loader)


class Mosaic(Peer):
    name = "Mosaic streaming + Pillow"
    needs = "streaming torch torchvision"

    def prepare(self):
        from streaming import MDSWriter

        with MDSWriter(out=str(self.dir / "d"), columns={"image": "bytes", "label": "int"}) as out:
            for path, label in self.files():
                out.write({"image": path.read_bytes(), "label": label})

    def load(self):
        import torch
        from streaming import StreamingDataset

        transform = pil_transform()

        class Images(StreamingDataset):
            def __getitem__(self, i):
                return transform(open_rgb(super().__getitem__(i)["image"]))

        data = Images(local=str(self.dir / "d"), shuffle=True, batch_size=self.o.batch)
        loader = torch.utils.data.DataLoader(data, self.o.batch, num_workers=self.o.threads, prefetch_factor=4)
        return lambda: iter(loader)


class Leat(Peer):
    """Through the command: the same C loader that Python uses."""

    needs = ""
    flags = ()  # of leat pack
    how = ()  # of leat load

    def prepare(self):
        source = self.dir / "images"
        source.mkdir()
        for i, (path, label) in enumerate(self.files()):
            (source / f"{label:03d}").mkdir(exist_ok=True)
            os.link(path, source / f"{label:03d}" / f"{i:06d}.jpg") if same_device(path, source) else shutil.copy(
                path, source / f"{label:03d}" / f"{i:06d}.jpg")
        subprocess.run([self.o.leat, "pack", str(source), "-o", str(self.dir / "d.leat"), "--quiet", *self.flags],
                       check=True)

    def run(self):
        out = subprocess.run([self.o.leat, "load", str(self.dir / "d.leat"), "--batch", str(self.o.batch), "--threads",
                              str(self.o.threads), "--order", "random", "--epochs", str(self.o.epochs + 1), "--json", *self.how],
                             check=True, capture_output=True, text=True).stdout
        lines = [json.loads(line) for line in out.splitlines()]
        timed = lines[1:]
        assert all(line["bad_samples"] == 0 for line in lines)
        print(json.dumps({"images": sum(line["samples"] for line in timed),
                          "seconds": sum(line["seconds"] for line in timed),
                          "cpu_seconds": sum(line["cpu_seconds"] for line in timed),
                          "peak_bytes": timed[-1]["peak_rss_bytes"], "first_batch_s": lines[0]["first_batch_s"]}))


class LeatKeep(Leat):
    name = "leat keep (the JPEGs themselves)"
    flags = ("--images", "keep")


class LeatTiled(Leat):
    name = "leat tiled"
    flags = ("--images", "tiled")


class LeatFast(Leat):
    name = "leat tiled, --tiles fast"
    flags = ("--images", "tiled", "--tiles", "fast")


class LeatFastPixels(LeatFast):
    """Pixels close to Pillow's, not equal: docs/fast.md says how close."""

    name = "leat tiled, --tiles fast, --like fast"
    how = ("--like", "fast")


class LeatFastCached(LeatFastPixels):
    name = "leat tiled, --tiles fast, --like fast --cache process"
    how = ("--like", "fast", "--cache", "process")


class LeatTiledCached(LeatTiled):
    name = "leat tiled, --cache process"
    how = ("--cache", "process")


class LeatCached(LeatFast):
    name = "leat tiled, --tiles fast, --cache process"
    how = ("--cache", "process")


class LeatRaw(Leat):
    name = "leat raw, max side 256"
    flags = ("--images", "raw", "--max-side", "256")


PEERS = [LeatTiled, LeatTiledCached, LeatFast, LeatCached, LeatFastPixels, LeatFastCached, LeatKeep, LeatRaw, FfcvJpg,
         FfcvMix, FfcvRaw, TorchPillow, TorchVision, OpenCV, WebDataset, LitData, Mosaic, Spdl, TensorFlow]


def same_device(a, b):
    return os.stat(a).st_dev == os.stat(b).st_dev


# ---- the comparison ---------------------------------------------------------------------------
def prepare_all(options):
    ready = []
    for kind in PEERS:
        peer = kind(options)
        if options.only and not any(word in peer.name for word in options.only):
            continue
        command = [sys.executable, __file__, *sys.argv[1:], "--prepare-one", peer.name]
        if not (peer.dir / "ready").exists():
            shutil.rmtree(peer.dir, ignore_errors=True)
            peer.dir.mkdir(parents=True)
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                why = (done.stderr.strip().splitlines() or ["?"])[-1]
                print(f"left out: {peer.name}: {why}", file=sys.stderr)
                continue
            (peer.dir / "ready").touch()
        ready.append(peer.name)
    return ready


def compare(options):
    names = prepare_all(options)
    results = {name: [] for name in names}
    for repeat in range(options.repeats):
        for name in names if repeat % 2 == 0 else names[::-1]:
            command = [sys.executable, __file__, *sys.argv[1:], "--run-one", name]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                print(f"failed: {name}: {(done.stderr.strip().splitlines() or ['?'])[-1]}", file=sys.stderr)
                continue
            results[name].append(json.loads(done.stdout.strip().splitlines()[-1]))
            r = results[name][-1]
            print(f"{name}: {r['images'] / r['seconds']:.0f} images/s", file=sys.stderr)
    return {name: runs for name, runs in results.items() if runs}


def summarise(results):
    rows = []
    for name, runs in results.items():
        rates = [r["images"] / r["seconds"] for r in runs]
        rows.append({"name": name, "rate": statistics.median(rates), "low": min(rates), "high": max(rates),
                     "cpu": statistics.median(1000 * r["cpu_seconds"] / r["images"] for r in runs),
                     "peak": max(r["peak_bytes"] for r in runs) / 2**20,
                     "first": statistics.median(r["first_batch_s"] for r in runs) * 1e3})
    rows.sort(key=lambda r: -r["rate"])
    return rows


def table(rows, options):
    base = next((r["rate"] for r in rows if r["name"] == LeatTiled.name), rows[0]["rate"])
    lines = ["| loader | images/s (low–high) | CPU s per 1,000 | peak MiB | first batch ms | leat tiled is |",
             "|---|---|---|---|---|---|"]
    for r in rows:
        lines.append(f"| {r['name']} | {r['rate']:.0f} ({r['low']:.0f}–{r['high']:.0f}) | {r['cpu']:.2f} | "
                     f"{r['peak']:.0f} | {r['first']:.0f} | {base / r['rate']:.1f}× |")
    return "\n".join(lines)


def plot(rows, path):
    width, bar, names = 860, 26, 370
    top = max(r["rate"] for r in rows)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{bar * len(rows) + 40}" '
             'font-family="sans-serif" font-size="13">', '<text x="10" y="20" font-weight="bold">images/s</text>']
    for i, r in enumerate(rows):
        y, length = 34 + i * bar, 380 * r["rate"] / top
        colour = "#1f77b4" if r["name"].startswith("leat") else "#aaaaaa"
        parts.append(f'<text x="{names}" y="{y + 14}" text-anchor="end">{r["name"]}</text>'
                     f'<rect x="{names + 8}" y="{y}" width="{length:.1f}" height="{bar - 7}" fill="{colour}"/>'
                     f'<text x="{names + 14 + length:.1f}" y="{y + 14}">{r["rate"]:.0f}</text>')
    pathlib.Path(path).write_text("\n".join(parts) + "\n</svg>\n")


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--images", required=True, help="folder of JPEG files")
    p.add_argument("--leat", default="build-release/tools/leat")
    p.add_argument("--work", default="/tmp/leat-vs-loaders", help="data sets are made here, once")
    p.add_argument("--batch", type=int, default=128)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--repeat", type=int, default=5, help="how often the images are repeated in the data set")
    p.add_argument("--repeats", type=int, default=3, help="runs of each peer")
    p.add_argument("--only", action="append", help="peers whose name contains this word")
    p.add_argument("--json", help="write raw results here")
    p.add_argument("--out", help="append the table to this Markdown file")
    p.add_argument("--plot", help="write an SVG here")
    p.add_argument("--prepare-one", help=argparse.SUPPRESS)
    p.add_argument("--run-one", help=argparse.SUPPRESS)
    options = p.parse_args()
    by_name = {kind.name: kind for kind in PEERS}
    if options.prepare_one:
        peer = by_name[options.prepare_one](options)
        for module in peer.needs.split():
            __import__(module)
        if hasattr(peer, "prepare"):
            peer.prepare()
    elif options.run_one:
        peer = by_name[options.run_one](options)
        peer.run() if hasattr(peer, "run") else measure(peer.load(), options.epochs)
    else:
        results = compare(options)
        rows = summarise(results)
        text = table(rows, options)
        print(text)
        if options.json:
            pathlib.Path(options.json).write_text(json.dumps(results))
        if options.out:
            with open(options.out, "a") as f:
                f.write(text + "\n")
        if options.plot:
            plot(rows, options.plot)


if __name__ == "__main__":
    main()
