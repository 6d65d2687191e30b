#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Batches on a GPU: correctness, rate, and how well they feed a trainer.

    python bench/gpu_feed.py --pack tiled.leat [--parts check,stress,capture,rate,models,locked,graphs,jax,train]

check   batches decoded on the device equal those of the CPUs, bit for bit: every image, random pipelines
stress  small batches dropped while kernels on side streams, and a CUDA graph, still read copies of them
capture batches released and taken while CUDA graphs are captured; values and replays are compared
rate    images/s to the device by threads, decoded there or by the CPUs, from the host or from tiles that
        stay on the device, compared with the bus and nvJPEG
models  one, two and four models trained at once in one process, each with its loader of the same pack
locked  peak of the resident memory of the process beside the peaks of the loader's budget
graphs  a network compiled with mode="reduce-overhead" (CUDA graphs) fed by leat, beside the same without graphs
jax     batches handed to JAX by DLPack, beside the same on the host
train   compiled ResNets fed by 1, 2, 4 threads, decoded by the CPUs, the device, or as `auto` finds best,
        beside one batch that is on the device already and a DataLoader of 16 processes (Pillow); --plot draws it;
        --ways leaves some out

Each part prints a table. The pack is repeated, so that an epoch has many batches.
"""
import argparse
import ctypes
import gc
import json
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import torch
from torch.nn import functional as F

import leat
from vram_measure import Basic, Bottleneck, resnet

MODELS = {"resnet18": (Basic, (2, 2, 2, 2)), "resnet50": (Bottleneck, (3, 4, 6, 3))}
CROP = "RandomResizedCrop(224); RandomHorizontalFlip()"
COLOURS = ["ColorJitter(0.4, 0.4, 0.4, 0.2)", "ColorJitter(hue=0.5); RandomGrayscale(p=0.3)", "Grayscale(3)",
           "RandomInvert(); RandomSolarize(130)", "RandomPosterize(3); RandomAutocontrast()", "RandomEqualize(p=1)",
           "RandomErasing(p=1, random=true); ColorJitter(0.3)", "ColorJitter(0.4, 0.4, 0.4, 0.1); RandomHorizontalFlip(p=1)",
           "RandomEqualize(p=1); RandomVerticalFlip(); ColorJitter(contrast=0.5); RandomHorizontalFlip()"]


def loader(o, **options):
    count = len(leat.open(o.pack))
    options = {"batch_size": o.batch, "order": "random", "seed": 1, "drop_last": True, "image": CROP, **options}
    return leat.Loader(o.pack, indices=np.tile(np.arange(count), max(1, o.images // count)), **options)


def forever(batches):
    while True:
        yield from batches


# ---- check ----------------------------------------------------------------------------------------------


def random_pipeline(rng):
    filters = ["bilinear", "bicubic", "box", "nearest"]
    size = f"({rng.randint(1, 300)}, {rng.randint(1, 300)})"
    crop = rng.choice([f"RandomResizedCrop({size}, interpolation={rng.choice(filters)})",
                       f"Resize({size}, interpolation={rng.choice(filters)})",
                       f"Resize(256); CenterCrop({rng.randint(1, 256)})",
                       f"RandomResizedCrop({rng.randint(8, 256)}, like=pillow12)"])
    flips = rng.choice(["", "; RandomHorizontalFlip()", "; RandomVerticalFlip(); RandomHorizontalFlip()"])
    flips += rng.choice([""] * len(COLOURS) + [f"; {c}" for c in COLOURS])
    norm = rng.choice(["", "; Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))"])
    erase = rng.choice(["", "; RandomErasing(p=0.5)"]) if norm else ""
    dtype = rng.choice(["f16", "bf16", "f32"] if norm else ["u8", "f16", "bf16", "f32"])
    mix = rng.choice(["", "", "", "; MixUp()", "; CutMix()", "; MixUp(0.2, p=0.5); CutMix(p=0.5)"])
    return f"{crop}{flips}{norm}{erase}; ToDtype({dtype}); ToLayout({rng.choice(['nchw', 'nhwc'])}){mix}"


def same(o, image, count, epoch=0):
    """Images compared, and how many the device decoded."""
    options = {"batch_size": 64, "order": "sequential", "image": image, "indices": np.arange(count), "seed": 7}
    if "Mix" in image:
        options["classes"] = 1000
    host = leat.Loader(o.pack, as_="torch", **options)
    device = leat.Loader(o.pack, device="cuda", decode="gpu", **options)
    host.set_epoch(epoch)
    device.set_epoch(epoch)
    n = 0
    for a, b in zip(host, device, strict=True):
        if not torch.equal(a.image, b.image.cpu()) or not torch.equal(a.label, b.label.cpu()):
            raise SystemExit(f"NOT EQUAL: {image}, epoch {epoch}, samples {a.sample_id[0]} to {a.sample_id[-1]}")
        n += len(a.label)
    there = device.stats()["device_images"]
    host.close()
    device.close()
    return n, there


def check(o):
    count = len(leat.open(o.pack))
    n, there = same(o, CROP, count)
    base = {"batch_size": 64, "order": "sequential", "image": CROP, "seed": 7}
    print(f"check: {n} images, {there} decoded on the device, all equal")
    for cache in "device", "process":  # of the second the device reads pages that were locked during the first epoch
        with leat.Loader(o.pack, device="cuda", decode="gpu", cache=cache, **base) as kept, \
                leat.Loader(o.pack, as_="torch", **base) as host:
            for epoch in range(3):
                kept.set_epoch(epoch)
                host.set_epoch(epoch)
                for a, b in zip(host, kept, strict=True):
                    if not torch.equal(a.image, b.image.cpu()):
                        raise SystemExit(f"NOT EQUAL: cache={cache}, epoch {epoch}")
            stats = kept.stats()
        print(f"check: cache={cache}, 3 epochs equal, {stats['device_cached_images']} images stay there, "
              f"{stats['read_bytes']} bytes read in the last epoch")
    rng, total, device, begin = random.Random(1), 0, 0, time.monotonic()
    pipelines = mixed = 0
    while pipelines < o.pipelines and time.monotonic() - begin < o.check_seconds:
        image = random_pipeline(rng)
        n, there = same(o, image, 16, pipelines)
        pipelines, total, device, mixed = pipelines + 1, total + n, device + there, mixed + ("Mix" in image)
    print(f"check: {pipelines} random pipelines ({mixed} with MixUp or CutMix), {total} images, {device} decoded on the "
          "device, all equal")


# ---- stress ---------------------------------------------------------------------------------------------


def stress(o):
    """Rows contain their own number; kernels on side streams read late, after the batch was dropped."""
    rows, width, samples = 32, 64, 8192
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/rows.leat"
        with leat.Writer(path, {"x": ("int32", (width,))}, sync=False) as w:
            for i in range(samples):
                w.append({"x": np.arange(width, dtype=np.int32) + i * width})
        streams = [torch.cuda.Stream() for _ in range(4)]
        wrong = [torch.zeros((), dtype=torch.int64, device="cuda") for _ in streams]
        places = torch.arange(rows * width, dtype=torch.int32, device="cuda").view(rows, width)
        static, graph_wrong = torch.zeros_like(places), torch.zeros((), dtype=torch.int64, device="cuda")
        base = torch.zeros((), dtype=torch.int32, device="cuda")
        graph = torch.cuda.CUDAGraph()
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(2):
                graph_wrong += (static != places + base).sum()
            torch.cuda.synchronize()
            graph_wrong.zero_()
        options = {"batch_size": rows, "order": "sequential", "image": None, "device": "cuda", "threads": 2}
        done, kept, begin, captured = 0, [], time.monotonic(), False
        with leat.Loader(path, device_memory="4M", **options) as loads:
            expected = [places + i * rows * width for i in range(samples // rows)]
            while time.monotonic() - begin < o.stress_seconds and done < o.handovers:
                for i, batch in enumerate(loads):
                    if not captured and i == 5:  # while the loader copies
                        with torch.cuda.graph(graph, stream=side):
                            graph_wrong += (static != places + base).sum()
                        captured = True
                    k = i // 8 % len(streams)
                    with torch.cuda.stream(streams[k]):
                        if i % 32 == 0:
                            torch.cuda._sleep(20000)
                        wrong[k] += torch.ne(batch.x, expected[i]).sum()
                    if captured and i % 16 == 0:
                        static.copy_(batch.x)
                        base.fill_(i * rows * width)
                        graph.replay()
                    if i % 50 == 0:
                        kept.append((i, batch.x))
                    if len(kept) > 8:
                        at, x = kept.pop(random.randrange(len(kept)))
                        graph_wrong += (x != places + at * rows * width).sum()
                        del x
                    done += 1
                    del batch
            torch.cuda.synchronize()
            stats = loads.stats()
        bad = sum(int(w) for w in wrong) + int(graph_wrong)
        spent = time.monotonic() - begin
        print(f"stress: {done} batches handed over in {spent:.0f} s, {bad} wrong values, "
              f"device memory at most {stats['device_peak_bytes'] >> 10} KiB of {stats['device_limit_bytes'] >> 10}")
        if bad:
            raise SystemExit("stress: WRONG VALUES")


def capture(o):
    """Batches are released and taken while a graph is captured; the graph adds up what was copied for it."""
    base = {"batch_size": 64, "order": "sequential", "image": CROP, "seed": 7}
    with leat.Loader(o.pack, as_="torch", **base) as host:
        expected = [int(b.image.sum(dtype=torch.int64)) for b in host]
    for cache, limit in ("os", 0), ("process", 0), ("os", "256M"):
        n = captured = 0
        with leat.Loader(o.pack, device="cuda", decode="gpu", cache=cache, device_memory=limit, **base) as loads:
            for _ in range(3):
                loads.set_epoch(0)
                run, held = iter(loads), []
                while (batch := next(run, None)) is not None:
                    static, mine, n = batch.image.clone(), [int(batch.image.sum(dtype=torch.int64))], n + 1
                    held.append(batch)
                    if len(batch.image) == 64 and len(held) % 2 == 0:
                        graph, seen = torch.cuda.CUDAGraph(), torch.zeros((), dtype=torch.int64, device="cuda")
                        torch.cuda.synchronize()
                        with torch.cuda.graph(graph):  # in the mode "global": no thread may disturb it
                            seen += static.sum(dtype=torch.int64)
                            del batch
                            threading.Thread(target=held.clear).start()  # as a garbage collector would
                            taken = [next(run, None) for _ in range(2)]
                        for b in filter(None, taken):
                            graph.replay()
                            if int(seen) != mine[0]:
                                raise SystemExit("capture: WRONG REPLAY")
                            seen.zero_()
                            mine.append(int(b.image.sum(dtype=torch.int64)))
                            n += 1
                        captured += 1
                        taken = b = None
                    first = n - len(mine)
                    if mine != expected[first % len(expected):][:len(mine)]:
                        raise SystemExit(f"capture: WRONG VALUES at batch {first}")
                    batch = None
        if n != 3 * len(expected):
            raise SystemExit(f"capture: {n} batches instead of {3 * len(expected)}")
        print(f"capture: cache={cache}, device_memory={limit}: {captured} graphs captured while batches were released and "
              f"taken, {n} batches, all equal")


# ---- rate -----------------------------------------------------------------------------------------------


def bus_rate():
    """Bytes/s of the best of many copies: the first ones find the device in a saving mode."""
    host = torch.empty(256 << 20, dtype=torch.uint8).pin_memory()
    there = torch.empty_like(host, device="cuda")
    best = float("inf")
    for _ in range(40):
        torch.cuda.synchronize()
        begin = time.monotonic()
        there.copy_(host, non_blocking=True)
        torch.cuda.synchronize()
        best = min(best, time.monotonic() - begin)
    return host.numel() / best


def switches():
    """Context switches of all threads so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_nvcsw + used.ru_nivcsw


def pull_rate(o, **options):
    """Images/s of a consumer that only takes batches, its CPU seconds per 1000 images, and the stats."""
    if o.prefetch:
        options["prefetch"] = o.prefetch
    with loader(o, device="cuda", **options) as loads:
        run = forever(loads)
        for _ in range(3 * o.images // (2 * o.batch) if options.get("cache") else o.warm):
            next(run)
        torch.cuda.synchronize()
        before, cpu, begin, n, switched = loads.stats(all=True), time.process_time(), time.monotonic(), 0, switches()
        while time.monotonic() - begin < o.seconds:
            n += len(next(run).label)
        spent, cpu, after = time.monotonic() - begin, time.process_time() - cpu, loads.stats(all=True)
        switched = switches() - switched
        del run
    moved = after["copied_bytes"] - before["copied_bytes"]
    images = after["device_images"] - before["device_images"]
    busy = after["device_decode_seconds"] - before["device_decode_seconds"]
    kernels = images / busy if busy else 0
    return n / spent, cpu / n * 1000, moved / spent, kernels, switched / spent, after["page_locked"]


def nvjpeg_rate(o):
    try:
        from torchvision.io import ImageReadMode, decode_jpeg
    except ImportError:
        return 0
    with tempfile.TemporaryDirectory() as folder:
        leat.export(o.pack, folder)
        files = [torch.frombuffer(bytearray(p.read_bytes()), dtype=torch.uint8)
                 for p in sorted(pathlib.Path(folder).rglob("*.*"))[:256]]
    best = 0
    for _ in range(4):
        torch.cuda.synchronize()
        begin = time.monotonic()
        decode_jpeg(files, mode=ImageReadMode.RGB, device="cuda")
        torch.cuda.synchronize()
        best = max(best, len(files) / (time.monotonic() - begin))
    return best


RATE_WAYS = {"cpu": {}, "gpu": {}, "gpu-process": {"cache": "process"},
             "gpu-device": {"cache": "device", "device_memory": "16G"}}


def rate(o):
    bus = bus_rate()
    print(f"rate: bus {bus / 1e9:.1f} GB/s page-locked")
    try:
        nv = nvjpeg_rate(o) if o.nvjpeg else 0
    except Exception as e:  # noqa: BLE001: the rest is worth having
        nv = 0
        print(f"rate: nvJPEG could not be measured ({e})")
    if nv:
        print(f"rate: nvJPEG (torchvision, whole images, no resize) {nv:.0f} images/s")
    print("| decoded by | threads | images/s | CPU s per 1000 | moved GB/s | of the bus | images/s while the device "
          "decodes | switches/s | of nvJPEG |\n|---|---|---|---|---|---|---|---|---|")
    for way in o.decoders:
        for threads in o.rate_threads:
            r, cpu, moved, kernels, switched, locked = pull_rate(o, decode=way[:3], threads=threads, **RATE_WAYS[way])
            print(f"| {way} | {threads} | {r:.0f} | {cpu:.3f} | {moved / 1e9:.2f} | {moved / bus:.2f} | {kernels:.0f} | "
                  f"{switched:.0f} | "
                  f"{r / nv if nv else 0:.1f}× |" + ("" if locked else " not page-locked"), flush=True)


# ---- models and memory ----------------------------------------------------------------------------------


def resident(name="VmRSS"):
    with open("/proc/self/status") as f:
        return int(next(line for line in f if line.startswith(name)).split()[1]) << 10


def models(o):
    """Several trainers, each with a thread, a stream and a loader; eager, because a process compiles one model at a
    time."""
    print("| models | images/s together | slowest of fastest | CPUs used | RSS GiB | device GiB in use |\n"
          "|---|---|---|---|---|---|")
    o = argparse.Namespace(**{**vars(o), "compile": False})
    for count in (1, 2, 4):
        done, stop, ready = [0] * count, threading.Event(), threading.Barrier(count + 1)

        def one(k, done=done, stop=stop, ready=ready):
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                trainer = Trainer("resnet50", o)
                with loader(o, device="cuda", decode="gpu", threads=1, channels_last=True, device_memory="3G") as loads:
                    for i, b in enumerate(forever(loads)):
                        trainer.step(b.image, b.label)
                        done[k] += len(b.label)
                        del b
                        if i % 4 == 3:
                            stream.synchronize()
                        if i == 7:
                            ready.wait()
                        if stop.is_set():
                            break

        threads = [threading.Thread(target=one, args=(k,)) for k in range(count)]
        for t in threads:
            t.start()
        ready.wait()
        before, begin, cpu = list(done), time.monotonic(), time.process_time()
        time.sleep(o.seconds)
        rates = [(a - b) / (time.monotonic() - begin) for a, b in zip(done, before, strict=True)]
        free, total = torch.cuda.mem_get_info()
        used = (time.process_time() - cpu) / (time.monotonic() - begin)
        print(f"| {count} | {sum(rates):.0f} | {min(rates) / max(rates):.3f} | {used:.2f} | {resident() / 2**30:.2f} | "
              f"{(total - free) / 2**30:.1f} |", flush=True)
        stop.set()
        for t in threads:
            t.join()
        gc.collect()
        torch.cuda.empty_cache()


def locked_one(o, decode, memory, cache):
    """In a separate process, so that no memory of another loader is used again."""
    torch.zeros(1, device="cuda")
    tiny = argparse.Namespace(**{**vars(o), "batch": 2, "images": 400})
    with loader(tiny, device="cuda", decode=decode, threads=4, memory="1G") as loads:  # code and the driver's own
        next(iter(loads))
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what that loader freed would be used again without a trace in the RSS
    before = resident()
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # resets VmHWM
    with loader(o, device="cuda", decode=decode, threads=4, memory=memory, cache=cache) as loads:
        run = forever(loads)
        for _ in range(400):
            next(run)
        stats, rss = loads.stats(), resident("VmHWM") - before
        del run
    peak, there, charged = rss, stats["budget_memory_peak_bytes"], stats["budget_peak_bytes"]
    print(f"| {decode} | {cache} | {memory} | {peak >> 20} | {there >> 20} | {peak / there:.3f} | {charged >> 20} | "
          f"{peak / charged:.3f} |", flush=True)


def locked(o):
    """Peak growth of the resident memory by a loader, beside the peaks of its budget: allocated and charged."""
    print("| decoded by | cache | budget | RSS grew by MiB | allocated MiB | RSS of it | charged MiB | RSS of it |\n"
          "|---|---|---|---|---|---|---|---|", flush=True)
    for decode, cache in ("cpu", "os"), ("gpu", "os"), ("gpu", "process"):
        for memory in ("2G", "4G"):
            subprocess.run([sys.executable, __file__, "--pack", o.pack, "--locked-one", f"{decode},{memory},{cache}"],
                           check=False)


# ---- graphs and JAX -------------------------------------------------------------------------------------


def graphs(o):
    """CUDA graphs read the batch from separate memory: leat's memory may change between replays."""
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 7, 4), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1),
                              torch.nn.Flatten(), torch.nn.Linear(16, 8)).cuda()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    compiled = torch.compile(lambda x: net(x.float() / 255), mode="reduce-overhead")
    worst, n = 0.0, 0
    with torch.no_grad(), loader(o, device="cuda", decode="gpu", threads=4, batch_size=64) as loads:
        for batch in forever(loads):
            with_graph = compiled(batch.image).clone()
            plain = net(batch.image.float() / 255)
            worst, n = max(worst, float((with_graph - plain).abs().max())), n + 1
            del batch
            if n == 500:
                break
    print(f'graphs: {n} batches through torch.compile(mode="reduce-overhead"), largest difference {worst:.1e}')
    if worst > 1e-3:
        raise SystemExit("graphs: WRONG VALUES")


def jax(o):
    try:
        import jax as j
    except ImportError:
        print("jax: not installed here")
        return
    options = {"batch_size": 64, "order": "sequential", "image": CROP, "seed": 7}
    n = 0
    with leat.Loader(o.pack, as_="dlpack", device="cuda", decode="gpu", **options) as device, \
            leat.Loader(o.pack, as_="numpy", **options) as host:
        for a, b in zip(host, device, strict=True):
            there = j.dlpack.from_dlpack(b.image)
            if not np.array_equal(np.asarray(there), a.image):
                raise SystemExit("jax: NOT EQUAL")
            n += len(a.label)
            del b, there
    print(f"jax: {j.__version__} on {j.devices()[0]}, {n} images by DLPack, all equal")


# ---- train ----------------------------------------------------------------------------------------------


class Trainer:
    def __init__(self, name, o):
        self.model = resnet(*MODELS[name]).cuda().to(memory_format=torch.channels_last)
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.01, 0.9)
        mean, std = torch.tensor([123.675, 116.28, 103.53]), torch.tensor([58.395, 57.12, 57.375])
        self.mean, self.std = mean.view(1, 3, 1, 1).cuda(), std.view(1, 3, 1, 1).cuda()
        self.loss = torch.compile(self._loss) if o.compile else self._loss

    def _loss(self, image, label):
        with torch.autocast("cuda", torch.bfloat16):
            return F.cross_entropy(self.model((image.float() - self.mean) / self.std), label)

    def step(self, image, label):
        loss = self.loss(image, label)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()


class Idle:
    """Time for which the device had nothing to do because a batch was missing.

    The host runs ahead and may wait while the device still computes. So each wait counts at most the time
    between two events on the stream: the end of a step, and the start of the next.
    """

    def __init__(self):
        self.gaps, self.ended = [], None

    def stepped(self):
        self.ended = torch.cuda.Event(enable_timing=True)
        self.ended.record()

    def got(self, wait):
        began = torch.cuda.Event(enable_timing=True)
        began.record()
        if self.ended is not None:
            self.gaps.append((self.ended, began, wait))

    def seconds(self):
        torch.cuda.synchronize()
        return sum(min(wait, ended.elapsed_time(began) / 1e3) for ended, began, wait in self.gaps)


def feed(trainer, batches, o):
    """Images per second, the share of the time for which the device lacked a batch, that for which the host
    waited for one, and the CPUs used."""
    n, cpu = 0, 0.0
    for i in range(o.warm + o.steps):
        if i == o.warm:
            torch.cuda.synchronize()
            begin, waited, n, cpu, idle = time.monotonic(), 0.0, 0, time.process_time(), Idle()
        before = time.monotonic()
        image, label = next(batches)
        if i >= o.warm:
            waited += time.monotonic() - before
            idle.got(time.monotonic() - before)
        trainer.step(image, label)
        if i >= o.warm:
            idle.stepped()
        n += len(label)
        del image, label
        if i % 8 == 7:
            torch.cuda.synchronize()  # like a loop that reads its loss from time to time
    torch.cuda.synchronize()
    spent = time.monotonic() - begin
    return n / spent, idle.seconds() / spent, waited / spent, (time.process_time() - cpu) / spent


class Files(torch.utils.data.Dataset):
    """Exported JPEGs, decoded and cropped by Pillow, like a stock training script."""

    def __init__(self, folder, count):
        self.paths, self.count = sorted(str(p) for p in pathlib.Path(folder).rglob("*.*")), count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        from PIL import Image
        from torchvision import transforms as t
        image = Image.open(self.paths[i % len(self.paths)]).convert("RGB")
        crop = t.RandomResizedCrop.get_params(image, (0.08, 1.0), (3 / 4, 4 / 3))
        image = t.functional.resized_crop(image, *crop, (224, 224))
        return torch.from_numpy(np.array(image)).permute(2, 0, 1), i % 1000


def stock_batches(o):
    with tempfile.TemporaryDirectory() as folder:
        leat.export(o.pack, folder)
        data = torch.utils.data.DataLoader(Files(folder, o.images), o.batch, shuffle=True, num_workers=o.workers,
                                           pin_memory=True, drop_last=True, persistent_workers=True)
        for image, label in forever(data):
            image = image.cuda(non_blocking=True).contiguous(memory_format=torch.channels_last)
            yield image, label.cuda(non_blocking=True)


def ways(o):
    with loader(o, device="cuda", decode="cpu", channels_last=True) as loads:
        first = next(iter(loads))
        still = first.image.clone(), first.label.clone()
        del first
    ceiling = "a batch on the device", 0, lambda: (None, forever([still]))
    yield ceiling  # before, after and in between, so that a device whose clock changes is seen

    def make(decode, threads):
        loads = loader(o, device="cuda", decode=decode, threads=threads, channels_last=True)
        return loads, ((b.image, b.label) for b in forever(loads))

    if o.workers:
        yield "PyTorch DataLoader", o.workers, lambda: (None, stock_batches(o))
    for threads in o.threads:
        for decode in o.ways:
            yield f"leat {decode}", threads, lambda d=decode, t=threads: make(d, t)
        yield ceiling


def draw(name, results, path):
    """Images/s against threads, one line per way of feeding, as SVG."""
    wide, high, left, top = 560, 320, 60, 40
    ceiling = statistics.median(r[0] for r in results["a batch on the device", 0])
    most = max(t for _, t in results)
    lines = {}
    for (way, threads), got in results.items():
        lines.setdefault(way, []).append((threads, statistics.median(r[0] for r in got)))
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide + 240}" height="{high + 90}" font-family="sans-serif" '
             f'font-size="13">', f'<text x="{left}" y="20" font-weight="bold">{name}: images/s against threads (processes)</text>',
             f'<rect x="{left}" y="{top}" width="{wide}" height="{high}" fill="none" stroke="#999"/>']
    for k in range(5):
        y = top + high - high * k / 4.4
        parts.append(f'<text x="{left - 6}" y="{y + 4:.0f}" text-anchor="end">{ceiling * k / 4:.0f}</text>')
    for t in sorted({t for _, t in results if t}):
        parts.append(f'<text x="{left + wide * t / (most * 1.05):.0f}" y="{top + high + 18}" text-anchor="middle">{t}</text>')
    colours = ["#444444", "#aaaaaa", "#1f77b4", "#d62728", "#2ca02c", "#9467bd"]
    for i, (way, points) in enumerate(lines.items()):
        points = [(0, points[0][1]), (most * 1.05, points[0][1])] if points[0][0] == 0 else sorted(points)
        xy = [(left + wide * t / (most * 1.05), top + high - high * r / (ceiling * 1.1)) for t, r in points]
        path_of = " ".join(f"{x:.1f},{y:.1f}" for x, y in xy)
        parts.append(f'<polyline points="{path_of}" fill="none" stroke="{colours[i % 6]}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colours[i % 6]}"/>' for x, y in xy]
        parts.append(f'<text x="{left + wide + 12}" y="{top + 14 + 18 * i}" fill="{colours[i % 6]}">{way}</text>')
    pathlib.Path(path).write_text("\n".join(parts) + "\n</svg>\n")


def train(o):
    for name in o.models:
        trainer, results = Trainer(name, o), {}
        for turn in range(o.rounds):
            for way, threads, make in ways(o):
                loads, batches = make()
                got = feed(trainer, batches, o)
                share = loads.stats()["device_share"] if loads is not None else 0
                results.setdefault((way, threads), []).append((*got, share))
                del batches
                if loads is not None:
                    loads.close()
        ceiling = statistics.median(r[0] for r in results["a batch on the device", 0])
        print(f"train: {torch.cuda.get_device_name()}, {name}, {'compiled, ' if o.compile else ''}bf16, channels last, "
              f"batch {o.batch}, {o.steps} steps, {o.rounds} rounds, torch {torch.__version__}")
        print("| fed by | threads | images/s (low–high) | of the ceiling | device idle | host waits | CPUs used | "
              "share of the device |\n|---|---|---|---|---|---|---|---|")
        for (way, threads), got in results.items():
            rates = [r[0] for r in got]
            print(f"| {way} | {threads or ''} | {statistics.median(rates):.0f} ({min(rates):.0f}–{max(rates):.0f}) | "
                  f"{statistics.median(rates) / ceiling:.3f} | {statistics.median(r[1] for r in got):.2%} | "
                  f"{statistics.median(r[2] for r in got):.1%} | {statistics.median(r[3] for r in got):.2f} | "
                  f"{got[-1][4]:.2f} |", flush=True)
        if o.plot:
            draw(f"{torch.cuda.get_device_name()}, {name}", results, f"{o.plot}/gpu_{name}.svg")
        print(json.dumps({f"{name} {w} {t}": [[round(r[0]), round(r[1], 4), round(r[2], 4)] for r in g]
                          for (w, t), g in results.items()}))
        del trainer
        torch.cuda.empty_cache()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--pack", required=True)
    p.add_argument("--parts", default="check,stress,capture,rate,models,locked,graphs,jax,train")
    p.add_argument("--plot", help="folder for the plots of train")
    p.add_argument("--locked-one", help=argparse.SUPPRESS)
    p.add_argument("--batch", type=int, default=256)
    p.add_argument("--images", type=int, default=51200, help="of an epoch: the pack, repeated")
    p.add_argument("--handovers", type=int, default=1_000_000)
    p.add_argument("--workers", type=int, default=16, help="processes of the DataLoader, 0 = leave it out")
    p.add_argument("--pipelines", type=int, default=1000)
    p.add_argument("--check-seconds", type=float, default=120)
    p.add_argument("--stress-seconds", type=float, default=30)
    p.add_argument("--seconds", type=float, default=3, help="of each rate")
    p.add_argument("--prefetch", type=int, default=0, help="batches made ahead, in rate; 0 = as the loader finds best")
    p.add_argument("--warm", type=int, default=20, help="batches or steps before the clock starts")
    p.add_argument("--steps", type=int, default=100)
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("--threads", type=int, nargs="*", default=[1, 2, 4])
    p.add_argument("--rate-threads", type=int, nargs="*", default=[1, 2, 4, 8, 16])
    p.add_argument("--models", nargs="*", default=["resnet50", "resnet18"], choices=MODELS)
    p.add_argument("--ways", nargs="*", default=["cpu", "gpu", "auto"], help="decode= of the loaders in train")
    p.add_argument("--decoders", nargs="*", default=list(RATE_WAYS), choices=RATE_WAYS, help="rows of rate")
    p.add_argument("--no-nvjpeg", dest="nvjpeg", action="store_false", help="leave nvJPEG out of rate")
    p.add_argument("--no-compile", dest="compile", action="store_false")
    o = p.parse_args()
    torch.backends.cudnn.benchmark = True
    if o.locked_one:
        locked_one(o, *o.locked_one.split(","))
        return
    for part in o.parts.split(","):
        {"check": check, "stress": stress, "models": models, "locked": locked, "rate": rate, "train": train,
         "graphs": graphs, "jax": jax, "capture": capture}[part](o)


if __name__ == "__main__":
    main()
